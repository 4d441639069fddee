"""Repeated passages: the first whole occurrence of each stays, nothing else is cut, no unit disappears altogether."""

import itertools
import random
import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datakit.data import string_buffers
from datakit.dedup.cuts import Runs, Unit, bounds, cut_runs, flags
from datakit.dedup.repeats import DedupRepeats, RepeatsConfig, Units, anchors_of, equal_windows, hash_units
from datakit.dedup.shuffle import Memory
from datakit.errors import ConfigError
from datakit.text._kernels_text import NONE
from datakit.text.words import TERMINALS, digest, hash_words, split_words
from tests.dedup.conftest import Outcome, conversations, documents, pair, preferences, restored, run_stage, talk

UNITS: tuple[Unit, ...] = ("line", "paragraph", "sentence")
OPENING = "".join(c for c in map(chr, range(0x10000)) if unicodedata.category(c) == "Pi") + "¿¡"
CLOSED = "".join(c for c in map(chr, range(0x10000)) if unicodedata.category(c) in ("Pe", "Pf")) + "\"'"
T, C, N = (re.escape(s) for s in (TERMINALS, CLOSED + OPENING, CLOSED))
SENTENCE = re.compile(
    rf"(?=\S).*?(?:[{T}][{T}{N}]*?[၊။។៕。！？｡][{T}{N}]*|[၊။។៕。！？｡][{T}{N}]*|[{T}][{T}{C}]*(?=\s|$)|$)"
)
ANY = "ab1é字ก.!…。！”“)》«» \t\u3000\n\r\x85\u2028"


# Units and cuts.


def units_of(text: str, unit: Unit) -> list[str]:
    data, offsets = string_buffers(pa.array(["before ", text, " behind"]))
    found = bounds(data, offsets, unit)
    assert found.row_starts.tolist()[0] == 0
    low, high = found.row_starts[1:3]
    spans = zip(found.starts[low:high], found.ends[low:high], strict=True)
    return [data[begin:end].tobytes().decode() for begin, end in spans]


def expected_units(text: str, unit: Unit) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    if unit == "line":
        return [line for line in lines if line]
    if unit == "sentence":
        found = [match[0].strip() for line in lines for match in SENTENCE.finditer(line)]
        return [sentence for sentence in found if sentence]
    return [" ".join(p.split()) for p in re.split("\n\n+", "\n".join(lines).strip("\n")) if p]


@pytest.mark.parametrize("unit", UNITS)
@given(text=st.text(alphabet=ANY))
@example("One.\r\n\r\nTwo.\rThree\r\nthree.\n\rFour\n \t\nFive\u2029five.")
@example("他说：“好。”然后走了！“真的吗？”她问。Yes. 3.5 is (a number.) And…this")
@example("यह एक वाक्य है। दूसरा। هذا سؤال؟ نعم.")
def test_units_are_those_of_plain_python(unit, text):
    found = units_of(text, unit)
    if unit == "paragraph":
        found = [" ".join(u.split()) for u in found]
    assert found == expected_units(text, unit)


@given(text=st.text(alphabet="aB1 .-か\u3099が字ไทย\u0301é\u00df\n", max_size=40))
def test_words_lie_where_they_are_hashed(text):
    assert [word.casefold() for word in units_of(text, "token")] == split_words(text)
    assert len(units_of(text, "token")) == len(hash_words(pa.array([text]))[0])


@pytest.mark.parametrize("unit", [*UNITS, "token"])
@given(rows=st.lists(st.text(alphabet=ANY), max_size=4), data=st.data())
def test_what_was_cut_can_be_put_back_and_the_rest_stays_as_it_was(unit, rows, data):
    found = [units_of(row, unit) for row in rows]
    marks = [[data.draw(st.sampled_from([False, False, True])) for _ in row] for row in found]
    alone = data.draw(st.booleans())  # each cut unit is a run, or adjoining ones are one run
    runs = list[tuple[int, int, int]]()
    for row, cut in enumerate(marks):
        for unit_number in itertools.compress(range(len(cut)), cut):
            if not alone and runs and runs[-1][0] == row and runs[-1][2] == unit_number:
                runs[-1] = (row, runs[-1][1], unit_number + 1)
            else:
                runs.append((row, unit_number, unit_number + 1))
    texts = pa.array(rows, pa.string())
    columns = np.array(runs, np.int64).reshape(-1, 3).T
    cuts = Runs(*(np.ascontiguousarray(c) for c in columns))
    made, pieces, places = cut_runs(texts, bounds(*string_buffers(texts), unit), cuts)
    back = [text.encode() for text in made.to_pylist()]
    for (row, first, stop), piece, start in zip(runs, pieces.to_pylist(), places.tolist(), strict=True):
        assert units_of(piece, unit)[: stop - first] == found[row][first:stop] or unit == "sentence"
        back[row] = back[row][:start] + piece.encode() + back[row][start:]
    assert [b.decode() for b in back] == rows
    for row, text in enumerate(made.to_pylist()):
        kept = [u for u, cut in zip(found[row], marks[row], strict=True) if not cut]
        if unit in ("line", "paragraph"):
            assert units_of(text, unit) == kept
        else:
            assert split_words(text) == [word for u in kept for word in split_words(u)] or unit == "token"


@pytest.mark.parametrize(
    ("text", "unit", "cut", "left"),
    [
        ("a\nb\nc\n", "line", [1], "a\nc\n"), ("a\r\nb\r\nc", "line", [1], "a\r\nc"), ("a\nb", "line", [1], "a"),
        ("a \nb\nc", "line", [1], "a\nc"), ("a\nb\n", "line", [0], "b\n"), ("a\n\nb\n\nc", "line", [1], "a\n\nc"),
        ("a\n\nb\nc", "line", [1], "a\n\nc"), ("if x:\n    b\n        c", "line", [1], "if x:\n        c"),
        ("if x:\n\n    b\n        c", "line", [1], "if x:\n\n        c"), ("    a\n  b", "line", [0], "  b"),
        ("a\nb", "line", [0, 1], ""), ("a\nb\n\nc\nd\n\ne", "paragraph", [1], "a\nb\n\ne"),
        ("One. Two. Three.", "sentence", [1], "One. Three."), ("One. Two.\nThree.", "sentence", [1], "One.\nThree."),
        ("One.\nTwo. Three.", "sentence", [1], "One.\nThree."), ("一。二。三。", "sentence", [1], "一。三。"),
        ("One (see b c) two", "token", [2, 3], "One (see ) two"),
        ("First. B c! Last.", "token", [1, 2], "First. Last."),
        ("- a\n- b\n- c", "token", [1], "- a\n- c"), ("He said “B.” She.", "token", [2], "He said She."),
        ("第，一，句", "token", [1], "第，句"), ("... a b", "token", [0], "b"), ("a: b...", "token", [1], "a:"),
    ],
)  # fmt: skip
def test_white_space_and_marks_around_a_cut_read_as_if_nothing_had_been_there(text, unit, cut, left):
    texts, first = pa.array([text]), np.array(cut)
    made, _, _ = cut_runs(texts, bounds(*string_buffers(texts), unit), Runs(first * 0, first, first + 1))
    assert made.to_pylist() == [left]


def test_units_are_numbered_alike_before_and_after_nfc_and_for_any_digits():
    """The hashes are of the composed text, the cut is in the text as it was written."""
    table = flags()
    for code in range(0x110000):
        char = chr(code)
        if 0xD800 <= code < 0xE000 or unicodedata.is_normalized("NFC", char):
            continue
        kinds = {int(table[ord(c)]) for c in unicodedata.normalize("NFC", char)}
        assert kinds == {int(table[code])}, f"U+{code:04X}"
    assert not any(table[c] for c in range(0x110000) if unicodedata.category(chr(c)) == "Nd")


# Hashes.


@given(st.lists(st.text(alphabet="aBé1.!、字 \n"), max_size=3))
def test_units_are_equal_exactly_where_their_words_are(rows):
    found = hash_units(pa.array(rows, pa.string()), "sentence")
    seen: dict[tuple[str, ...], tuple[int, int]] = {}
    for row, text in enumerate(rows):
        words = [tuple(split_words(unicodedata.normalize("NFC", u))) for u in units_of(text, "sentence")]
        low, high = found.row_starts[row : row + 2]
        assert found.words[low:high].tolist() == list(map(len, words))
        halves = zip(found.hashes[low:high].tolist(), found.checks[low:high].tolist(), strict=True)
        assert all(seen.setdefault(own, both) == both for own, both in zip(words, halves, strict=True))
    for half in zip(*seen.values(), strict=True):
        assert len(set(half)) == len(seen)


def rows_of(values: Sequence[Sequence[int]], words: int = 0) -> Units:
    """Rows of units that are made of numbers; each has so many words (0: it is a token)."""
    hashes = np.array([v * 0x9E3779B97F4A7C15 % 2**64 for row in values for v in row], np.uint64)
    starts = np.cumsum([0, *map(len, values)])
    counts = np.full(len(hashes), words, np.uint32) if words else np.empty(0, np.uint32)
    return Units(hashes, hashes.copy() if words else np.empty(0, np.uint64), counts, starts)


def polynomial(hashes: Sequence[int]) -> int:
    base, mask, h = 0xA0761D6478BD642F, 2**64 - 1, 0
    for one in hashes:
        h = (h * base + one) & mask
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & mask
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & mask
    return min(h ^ h >> 33, mask - 1)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(2, 9))
def test_anchors_are_the_least_runs_of_every_window(values, size):
    """Winnowing in plain Python: the last of the least hashes in each window."""
    units, short = rows_of([values, values]), max(size // 2, 1)
    hashes, firsts, counts = anchors_of(units, RepeatsConfig(unit="token", window=size))
    own = units.hashes[: len(values)].tolist()
    runs = [polynomial(own[i : i + short]) for i in range(len(values) - short + 1)]
    expected, last = [], None
    for window in range(len(values) - size + 1):
        at = min(range(window, window + size - short + 1), key=lambda i: (runs[i], -i))
        if at != last:
            expected.append((runs[at], window))
        last = at
    assert list(zip(hashes.tolist(), firsts.tolist(), strict=True)) == expected * 2
    assert counts.tolist() == [len(expected)] * 2


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(1, 3), st.integers(1, 9))
def test_windows_of_few_words_are_not_compared(values, size, min_words):
    units = rows_of([values], words=2)
    hashes = anchors_of(units, RepeatsConfig(unit="sentence", window=size, min_words=min_words))[0]
    windows = [polynomial(units.hashes[i : i + size].tolist()) for i in range(len(values) - size + 1)]
    assert hashes.tolist() == (windows if 2 * size >= min_words else [int(NONE)] * len(windows))


def test_equal_hashes_alone_do_not_make_windows_equal(tmp_path):
    """Windows are compared by 128 bits: here all first halves are equal, in one part of the tables or many."""
    for count in (3, 5000):
        hashes = np.full(count, 7, np.uint64)
        hashes[-1] = NONE
        checks = np.arange(count, dtype=np.uint64) // 2
        numbers, groups, compared = equal_windows(hashes, checks, Memory(256, tmp_path))
        assert (groups, compared) == ((count - 1) // 2, count - 1)
        assert numbers[: count // 2 * 2 - 1 : 2].tolist() == list(range(count // 2)) or count % 2 == 0
        assert numbers[-1] == -1 and (numbers[: (count - 1) // 2 * 2] >= 0).all()


# What is cut: the definition in plain Python.

Key = tuple[tuple[str, ...], ...]


def run(texts: Any, cut: int = 1000, workers: int = 2, **config: Any) -> Outcome:
    return run_stage(DedupRepeats(RepeatsConfig(**({"min_words_left": 0} | config))), texts, cut=cut, workers=workers)


def expected(rows: Sequence[Sequence[tuple[str, ...]]], size: int, min_words: int, min_left: int) -> list[Any]:
    """For each row None if it is dropped, else the row that each of its units is cut for (None: it stays)."""
    stands_in: dict[Key, int] = {}
    decided: list[Any] = []
    for row, units in enumerate(rows):
        keys = [tuple(units[i : i + size]) for i in range(len(units) - size + 1)]
        compared = [sum(map(len, key)) >= min_words for key in keys]
        cut: list[int | None] = [None] * len(units)
        for i, key in enumerate(keys):
            own = {keys[j]: row for j in range(i - size + 1) if compared[j] and cut[j : j + size] == [None] * size}
            known = own | stands_in
            if compared[i] and key in known:
                cut[i : i + size] = [known[key] if c is None else c for c in cut[i : i + size]]
        left = sum(len(u) for u, c in zip(units, cut, strict=True) if c is None)
        if left < min_left and any(c is not None for c in cut):
            decided.append(None)
            continue
        decided.append(cut)
        for i, key in enumerate(keys):
            if compared[i] and cut[i : i + size] == [None] * size:
                stands_in.setdefault(key, row)
    return decided


def check(texts: Sequence[str], cut: int, unit: Unit, size: int, min_words: int, min_left: int) -> Outcome:
    """Compare the stage with `expected`, piece by piece."""
    outcome = run(texts, cut, unit=unit, window=size, min_words=min_words, min_words_left=min_left)
    units = [units_of(text, unit) for text in texts]
    words = [[tuple(split_words(unicodedata.normalize("NFC", u))) for u in row] for row in units]
    decided = expected(words, size, min_words, min_left)
    assert set(outcome.rows) == {str(row) for row, owners in enumerate(decided) if owners is None}
    for row, owners in enumerate(decided):
        if owners is None:
            assert outcome.rows[str(row)][0] == "duplicate_passages"
            continue
        pieces = [c for c in outcome.cuts if c["id"] == str(row)]
        grouped = [(owner, list(g)) for owner, g in itertools.groupby(range(len(owners)), owners.__getitem__)]
        runs = [(owner, numbers) for owner, numbers in grouped if owner is not None]
        assert [c["duplicate_of"] for c in pieces] == [str(owner) for owner, _ in runs]
        for piece, (_, numbers) in zip(pieces, runs, strict=True):
            said = [word for n in numbers for word in words[row][n]]
            assert split_words(unicodedata.normalize("NFC", piece["text"])) == said
        assert restored(outcome.texts[str(row)], pieces) == texts[row]
        assert (str(row) in outcome.edited) == bool(pieces)
    return outcome


letters = st.lists(st.lists(st.sampled_from("abcde"), max_size=9), max_size=7)
few = st.lists(st.lists(st.sampled_from("ab"), max_size=40), min_size=1, max_size=6)


@settings(max_examples=50)
@given(letters, st.integers(1, 3), st.integers(0, 6), st.integers(1, 3))
def test_spans_are_cut_as_plain_python_cuts_them(rows, size, min_left, cut):
    check([" ".join(f"{c} {c}!" for c in row) for row in rows], cut, "sentence", size, 2 * size - 1, min_left)


@settings(max_examples=50)
@given(letters, st.sampled_from(["line", "paragraph"]), st.integers(0, 6), st.integers(1, 3), st.data())
def test_lines_and_paragraphs_are_cut_as_plain_python_cuts_them(rows, unit, min_left, min_words, data):
    ends = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n  "])
    texts = ["".join(f"{c}, {c.upper() * 2}{data.draw(ends)}" for c in row) for row in rows]
    check(texts, 2, unit, 1, min_words, min_left)


@given(few, st.integers(2, 6), st.sampled_from([0, 3]))
@example([list("a" * 40)], 4, 0)
@example([list("abab" * 10), list("baba" * 10)], 3, 0)
def test_tokens_are_cut_as_plain_python_cuts_them(rows, size, min_left):
    check([" ".join(row) for row in rows], 1000, "token", size, 1, min_left)


@settings(max_examples=40)
@given(few, st.integers(1, 4), st.sampled_from(["line", "token"]))
def test_no_unit_disappears_and_a_second_run_cuts_only_what_seams_made(rows, size, unit):
    size += unit == "token"
    texts = ["\n".join(f"{c}x y" for c in row) if unit == "line" else " ".join(row) for row in rows]
    config = {"unit": unit, "window": size, "min_words": 1}
    first = run(texts, **config)
    before, after = ({u for text in all_of for u in units_of(text, unit)} for all_of in (texts, first.texts.values()))
    assert before == after
    again = run([first.texts[str(n)] for n in range(len(rows))], **config)
    assert {cut["id"] for cut in again.cuts} <= first.edited
    assert not again.cuts or size > 1


# Rows that are dropped.


def known_rows(rows: Sequence[Sequence[str]], size: int, share: Fraction) -> dict[str, str]:
    """By the number of each dropped row the earlier row that has most of its words."""
    stands_in, dropped = dict[tuple[str, ...], int](), dict[str, str]()
    for n, row in enumerate(rows):
        of = [-1] * len(row)
        for i in range(len(row) - size + 1):
            owner = stands_in.get(tuple(row[i : i + size]), -1)
            if owner >= 0:
                of[i : i + size] = [owner if before < 0 else before for before in of[i : i + size]]
        known = [owner for owner in of if owner >= 0]
        if len(known) > share * len(row):
            dropped[str(n)] = str(min(set(known), key=lambda owner: (-known.count(owner), owner)))
            continue
        for i in range(len(row) - size + 1):
            stands_in.setdefault(tuple(row[i : i + size]), n)
    return dropped


@settings(max_examples=60)
@given(few, st.integers(2, 6), st.sampled_from([0.001, 0.25, 0.5, 0.8, 1.0]), st.integers(1, 4))
def test_rows_of_mostly_known_windows_are_dropped_whole(rows, size, share, cut):
    texts = [" ".join(row) for row in rows]
    outcome = run(texts, cut, unit="token", window=size, max_repeated_share=share)
    dropped = known_rows(rows, size, Fraction(round(share * 1000), 1000))
    assert outcome.dropped_for == dropped
    assert outcome.texts == {str(n): text for n, text in enumerate(texts) if str(n) not in dropped}
    assert not outcome.cuts and not outcome.edited


def test_conversations_are_dropped_whole_and_never_cut():
    answers = [sentence(1, 40), f"{sentence(1, 40)} {sentence(2, 5)}", f"{sentence(1, 40)} {sentence(2, 25)}"]
    stage = DedupRepeats(RepeatsConfig(unit="token", window=13)).for_kind("conversation")
    assert stage.config.max_repeated_share == 0.8
    outcome = run_stage(stage, conversations(*(talk(f"{n}?", answer) for n, answer in enumerate(answers))))
    assert outcome.rows == {"1": ("duplicate_passages", "0")} and not outcome.cuts
    own = DedupRepeats(RepeatsConfig(max_repeated_share=0.5))
    assert own.for_kind("preference").config == own.config


def test_the_sides_of_a_pair_are_told_apart():
    """A pair whose answers changed places is new."""
    ask, good, bad = (" ".join(f"{side}{n}" for n in range(20)) for side in "abc")
    rows = preferences([pair(ask, good, bad), pair(ask, bad, good)])
    sketch = DedupRepeats(RepeatsConfig(unit="token")).sketch(rows)
    one, other = (set(row) for row in sketch.column("hashes").to_pylist())
    assert len(one) == len(other) == 60 and len(one & other) == 20


# The stage.

BANNER = "Subscribe to our letter and never miss a thing again"
WORDS = [f"w{n}" for n in range(400)]


def sentence(seed: int, words: int = 8) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words)) + "."


def test_a_line_that_a_dropped_row_had_first_stays_in_the_next_row():
    first, other = sentence(1), sentence(2)
    texts = [f"{other}\n{sentence(5, 60)}", f"{other}\n{first}", f"{first}\n{sentence(3, 60)}"]
    outcome = run(texts, min_words_left=20)
    assert outcome.rows == {"1": ("duplicate_passages", "0")}
    assert outcome.details == {"1": "8 of its 16 words stand before it, 8 are new"}
    assert outcome.texts["2"] == texts[2] and not outcome.cuts


CODE = "import numpy as np\n\n{\n    }\n--------------------\n"
COMPOSED, DECOMPOSED = "Überall dürfen Bäume grün sein", "U\u0308berall du\u0308rfen Ba\u0308ume gru\u0308n sein"
PAGES = ["Page 1 of the manual for users", "Page 2 of the manual for users"]


@pytest.mark.parametrize(
    ("texts", "config", "left"),
    [
        ([CODE + BANNER] * 2, {}, CODE.removesuffix("\n")),  # short lines and lines without words stay
        ([CODE, "{\n}\n" * 3], {}, "{\n}\n" * 3),
        ([BANNER, f"  * {BANNER.upper().replace(' ', '  ')}!!"], {}, ""),  # case, marks and white space
        ([BANNER, BANNER.replace("e", "é")], {}, BANNER.replace("e", "é")),
        (PAGES, {}, PAGES[1]),
        (PAGES, {"digits": "zero"}, ""),
        ([COMPOSED + "\nab", DECOMPOSED + "\nab"], {}, "ab"),
        ([COMPOSED, f"deux {DECOMPOSED}"], {"unit": "token", "window": 5}, "deux"),
    ],
)
def test_what_makes_passages_different(texts, config, left):
    outcome = run(texts, **config)
    assert outcome.texts == {"0": texts[0], "1": left}
    assert restored(left, outcome.cuts) == texts[1], "what was cut comes back as it was written"


@pytest.mark.parametrize("texts", [[], [""], ["\n \n"], ["one two three four five six"], ["a b c d e f"] * 1500])
@pytest.mark.parametrize(
    "config", [{}, {"unit": "sentence", "window": 1}, {"unit": "token", "window": 5}, {"max_repeated_share": 0.9}]
)
def test_nothing_one_row_and_equal_rows(texts, config):
    outcome = run(texts, **({"min_words": 1, "min_words_left": 1} | config))
    assert len(outcome.texts) == min(len(texts), 1)
    assert all(of == "0" for of in outcome.dropped_for.values())


def test_an_edited_row_gets_the_hash_of_its_new_text():
    rows = documents([BANNER, f"new\n{BANNER}\n{BANNER}"], content_hash=pa.array(["old"] * 2))
    outcome = run_stage(DedupRepeats(RepeatsConfig(min_words_left=0)), rows)
    assert outcome.texts["1"] == "new" and outcome.edited == {"1"}
    assert outcome.notes == {"lines_cut": 2, "bytes_cut": 2 * len(BANNER) + 2}
    assert outcome.hashes == {"0": "old", "1": digest(pa.array(["new"]))[0].as_py()}


def test_a_source_that_loses_most_of_its_words_raises_an_alarm():
    texts = [sentence(n) for n in range(20)]
    rows = documents(texts * 2, source=pa.array(["new.jsonl"] * 20 + ["copy.jsonl"] * 20))
    whole, source = run(rows).facts["alarms"]
    assert whole.startswith("160 of all 320 words are lost (50.0%; max_loss is 30.0%). Most passages are lost for: ")
    assert "for: '0' 1, " in whole and "Check with `datakit explain`" in whole
    assert source == "the source 'copy.jsonl' loses 160 of its 160 words (100.0%; max_loss is 30.0%)"


@pytest.mark.parametrize(
    "values",
    [
        {"min_words": -1}, {"window": -1}, {"max_loss": 1.5}, {"max_repeated_share": 2.0},
        {"window": 1, "unit": "token"}, {"digits": "zero", "unit": "token"},
    ],
)  # fmt: skip
def test_values_that_make_no_sense_are_refused(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        RepeatsConfig(**values)
