"""Lines, paragraphs and sentences: found as plain Python finds them, cut so that nothing else changes."""

import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datakit.dedup import _kernels_units as kernels
from datakit.dedup import units
from datakit.dedup.units import NONE, Unit, cut_units, find_units, flags, hash_spans
from datakit.text.characters import QUOTES, TERMINALS, string_buffers
from datakit.text.words import split_words

UNITS: tuple[Unit, ...] = ("line", "paragraph", "sentence")
CLOSERS = QUOTES + ")]}》」』】）］"
T, C, CLOSED = (re.escape(s) for s in (TERMINALS, CLOSERS, "".join(c for c in CLOSERS if c not in "“‘")))
SENTENCE = re.compile(
    rf"(?=\S).*?(?:[{T}][{T}{CLOSED}]*?[၊။។៕。！？｡][{T}{CLOSED}]*|[၊။។៕。！？｡][{T}{CLOSED}]*|[{T}][{T}{C}]*(?=\s|$)|$)"
)
texts = st.lists(st.text(alphabet="ab1é字ก.!…。！”“)》 \t\u3000\n\r\x85\u2028"), max_size=4)


def units_of(text: str, unit: Unit) -> list[str]:
    data, offsets = string_buffers(pa.array(["before ", text, " behind"]))
    found = find_units(data, offsets, unit)
    assert found.row_starts.tolist()[0] == 0
    low, high = found.row_starts[1:3]
    spans = zip(found.starts[low:high], found.ends[low:high], strict=True)
    return [data[begin:end].tobytes().decode() for begin, end in spans]


def expected_units(text: str, unit: Unit) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    if unit == "line":
        return [line for line in lines if line]
    if unit == "sentence":
        return [s.strip() for line in lines for s in SENTENCE.findall(line) if s.strip()]
    return [" ".join(p.split()) for p in re.split("\n\n+", "\n".join(lines).strip("\n")) if p]


@pytest.mark.parametrize("unit", UNITS)
@given(text=st.text(alphabet="ab1é字ก.!…。！”“)》 \t\u3000\n\r\x85\u2028"))
@example("One.\r\n\r\nTwo.\rThree\n \t\nFour\u2029five.")
@example("他说：“好。”然后走了！“真的吗？”她问。Yes. 3.5 is (a number.) And…this")
@example("यह एक वाक्य है। दूसरा। هذا سؤال؟ نعم.")
def test_units_are_those_of_plain_python(unit: Unit, text: str) -> None:
    found = units_of(text, unit)
    if unit == "paragraph":
        found = [" ".join(u.split()) for u in found]
    assert found == expected_units(text, unit)


@pytest.mark.parametrize("unit", UNITS)
@given(rows=texts, data=st.data())
def test_what_was_cut_can_be_put_back_and_the_rest_stays_as_it_was(
    unit: Unit, rows: list[str], data: st.DataObject
) -> None:
    found = [units_of(row, unit) for row in rows]
    flags = [[data.draw(st.booleans()) for _ in row] for row in found]
    places = [(r, u) for r, row in enumerate(flags) for u, cut in enumerate(row) if cut]
    made = cut_units(
        pa.array(rows, pa.string()),
        unit,
        np.array([r for r, _ in places], np.int64),
        np.array([u for _, u in places], np.int64),
    )
    back = [text.encode() for text in made.texts.to_pylist()]
    for (row, number), piece, start in zip(places, made.pieces.to_pylist(), made.places.tolist(), strict=True):
        assert piece.strip() == found[row][number]
        back[row] = back[row][:start] + piece.encode() + back[row][start:]
    assert [b.decode() for b in back] == rows
    for row, text in enumerate(made.texts.to_pylist()):
        kept = [u for u, cut in zip(found[row], flags[row], strict=True) if not cut]
        assert units_of(text, unit) == kept


@pytest.mark.parametrize(
    ("text", "unit", "cut", "left"),
    [
        ("a\nb\nc\n", "line", [1], "a\nc\n"),
        ("a\r\nb\r\nc", "line", [1], "a\r\nc"),
        ("a\nb", "line", [1], "a"),
        ("a\nb\n", "line", [0], "b\n"),
        ("a\n\nb\n\nc", "line", [1], "a\n\nc"),
        ("a\n\nb\nc", "line", [1], "a\n\nc"),
        ("if x:\n    b\n        c", "line", [1], "if x:\n        c"),
        ("if x:\n\n    b\n        c", "line", [1], "if x:\n\n        c"),
        ("    a\n  b", "line", [0], "  b"),
        ("a\nb\n\nc\nd\n\ne", "paragraph", [1], "a\nb\n\ne"),
        ("One. Two. Three.", "sentence", [1], "One. Three."),
        ("One. Two.\nThree.", "sentence", [1], "One.\nThree."),
        ("One.\nTwo. Three.", "sentence", [1], "One.\nThree."),
        ("一。二。三。", "sentence", [1], "一。三。"),
        ("a\nb", "line", [0, 1], ""),
    ],
)
def test_white_space_around_a_cut_reads_as_if_nothing_had_been_there(
    text: str, unit: Unit, cut: list[int], left: str
) -> None:
    made = cut_units(pa.array([text]), unit, np.zeros(len(cut), np.int64), np.array(cut))
    assert made.texts.to_pylist() == [left]


def test_units_are_numbered_alike_before_and_after_nfc_and_for_any_digits() -> None:
    """The hashes are of the composed text, the cut is in the text as it was written."""
    table = flags()
    for code in range(0x110000):
        char = chr(code)
        if 0xD800 <= code < 0xE000 or unicodedata.is_normalized("NFC", char):
            continue
        kinds = {int(table[ord(c)]) for c in unicodedata.normalize("NFC", char)}
        assert kinds == {int(table[code])}, f"U+{code:04X}"
    assert not any(table[c] for c in range(0x110000) if unicodedata.category(chr(c)) == "Nd")


@given(st.lists(st.text(alphabet="aBé1.!、字 \n"), max_size=3), st.integers(1, 3), st.integers(1, 4))
def test_spans_are_equal_exactly_where_their_words_are(rows: list[str], span: int, min_words: int) -> None:
    spans = hash_spans(pa.array(rows, pa.string()), "sentence", span, min_words, "as_written")
    seen: dict[tuple[tuple[str, ...], ...], int] = {}
    for row, text in enumerate(rows):
        words = [tuple(split_words(unicodedata.normalize("NFC", u))) for u in units_of(text, "sentence")]
        low, high = spans.row_starts[row : row + 2]
        assert spans.words[low:high].tolist() == list(map(len, words))
        for at, found in enumerate(spans.hashes[low:high].tolist()):
            own = tuple(words[at : at + span])
            compared = len(own) == span and sum(map(len, own)) >= min_words
            assert compared == (found != NONE)
            if compared:
                assert seen.setdefault(own, found) == found
    assert len(set(seen.values())) == len(seen)


def test_kernels_have_the_numbers_that_tables_are_made_with() -> None:
    for name in ("SPACE", "BREAK", "TERMINAL", "CLOSER", "OPENER", "ALONE", "NONE"):
        assert getattr(kernels, name) == getattr(units, name)
    assert [units._MODES[unit] for unit in UNITS] == [kernels.LINE, kernels.PARAGRAPH, kernels.SENTENCE]


def test_digits_count_as_zero_where_asked() -> None:
    rows = pa.array(["On 12 May 2020 at ٣", "on 99 may 1999 at ٧!", "On 1 May 2020 at ٣"])
    zero = hash_spans(rows, "line", 1, 1, "zero").hashes.tolist()
    assert zero[0] == zero[1] != zero[2]
    assert len(set(hash_spans(rows, "line", 1, 1, "as_written").hashes.tolist())) == 3
