"""Repeated lines, paragraphs and spans: each stays in its first row, and nothing disappears altogether."""

import itertools
import random
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datakit.data import string_buffers
from datakit.dedup import _kernels_repeats as kernels
from datakit.dedup import repeats
from datakit.dedup.repeats import (
    DedupLines,
    DedupSpans,
    LinesConfig,
    SpansConfig,
    Unit,
    cut_units,
    find_units,
    flags,
    hash_spans,
)
from datakit.errors import ConfigError, UsageError
from datakit.text.words import QUOTES, TERMINALS, digest, normalize, split_words
from tests.dedup.conftest import LevelOutcome, documents, restored, run_level

UNITS: tuple[Unit, ...] = ("line", "paragraph", "sentence")
CLOSERS = QUOTES + ")]}》」』】）］"
T, C, CLOSED = (re.escape(s) for s in (TERMINALS, CLOSERS, "".join(c for c in CLOSERS if c not in "“‘")))
SENTENCE = re.compile(
    rf"(?=\S).*?(?:[{T}][{T}{CLOSED}]*?[၊။។៕。！？｡][{T}{CLOSED}]*|[၊။។៕。！？｡][{T}{CLOSED}]*|[{T}][{T}{C}]*(?=\s|$)|$)"
)
some_texts = st.lists(st.text(alphabet="ab1é字ก.!…。！”“)》 \t\u3000\n\r\x85\u2028"), max_size=4)


def units_of(text: str, unit: Unit) -> list[str]:
    data, offsets = string_buffers(pa.array(["before ", text, " behind"]))
    found = find_units(data, offsets, unit)
    assert found.row_starts.tolist()[0] == 0
    low, high = found.row_starts[1:3]
    spans = zip(found.starts[low:high], found.ends[low:high], strict=True)
    return [data[begin:end].tobytes().decode() for begin, end in spans]


def sentences_of(line: str) -> list[str]:
    """A sentence goes on after an initial or an abbreviation, after some only before a digit or a small letter."""
    found, begin = [], 0
    for end in (match.end() for match in SENTENCE.finditer(line)):
        word = re.search(rf"(?<![A-Za-z])([A-Za-z]+)\.[{C}]*$", line[begin:end])
        said = word[1].lower() if word else ""
        often = said in repeats._MAY_GO_ON.split() and re.match(r"[ \t]*[a-z0-9](?![^\0-\x7f])", line[end:])
        if (len(said) == 1 and said != "i") or said in repeats._GOES_ON.split() or often:
            continue
        found.append(line[begin:end].strip())
        begin = end
    return [sentence for sentence in [*found, line[begin:].strip()] if sentence]


def expected_units(text: str, unit: Unit) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    if unit == "line":
        return [line for line in lines if line]
    if unit == "sentence":
        return [sentence for line in lines for sentence in sentences_of(line)]
    return [" ".join(p.split()) for p in re.split("\n\n+", "\n".join(lines).strip("\n")) if p]


@pytest.mark.parametrize("unit", UNITS)
@given(text=st.text(alphabet="ab1é字ก.!…。！”“)》 \t\u3000\n\r\x85\u2028"))
@example("a.\t1 (b.) ab. 1. i. b.”字 e.g. it, etc. and etc. And No. 5, cf.\u30001")
@example("One.\r\n\r\nTwo.\rThree\n \t\nFour\u2029five.")
@example("他说：“好。”然后走了！“真的吗？”她问。Yes. 3.5 is (a number.) And…this")
@example("यह एक वाक्य है। दूसरा। هذا سؤال؟ نعم.")
def test_units_are_those_of_plain_python(unit: Unit, text: str) -> None:
    found = units_of(text, unit)
    if unit == "paragraph":
        found = [" ".join(u.split()) for u in found]
    assert found == expected_units(text, unit)


@pytest.mark.parametrize("unit", UNITS)
@given(rows=some_texts, data=st.data())
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
            assert compared == (found != kernels.NONE)
            if compared:
                assert seen.setdefault(own, found) == found
    assert len(set(seen.values())) == len(seen)


def test_kernels_have_the_numbers_of_the_units() -> None:
    assert [repeats._MODES[unit] for unit in UNITS] == [kernels.LINE, kernels.PARAGRAPH, kernels.SENTENCE]


def test_digits_count_as_zero_where_asked() -> None:
    rows = pa.array(["On 12 May 2020 at ٣", "on 99 may 1999 at ٧!", "On 1 May 2020 at ٣"])
    zero = hash_spans(rows, "line", 1, 1, "zero").hashes.tolist()
    assert zero[0] == zero[1] != zero[2]
    assert len(set(hash_spans(rows, "line", 1, 1, "as_written").hashes.tolist())) == 3


Key = tuple[tuple[str, ...], ...]

BANNER = "Subscribe to our letter and never miss a thing again"
WORDS = [f"w{n}" for n in range(400)]


def sentence(seed: int, words: int = 8) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words)) + "."


def lines(texts: Any, cut: int = 1000, workers: int = 2, **config: Any) -> LevelOutcome:
    return run_level(DedupLines(LinesConfig(**({"min_words_left": 0} | config))), texts, cut=cut, workers=workers)


def spans(texts: Any, cut: int = 1000, **config: Any) -> LevelOutcome:
    return run_level(DedupSpans(SpansConfig(**({"min_words_left": 0} | config))), texts, cut=cut)


def expected(rows: Sequence[Sequence[tuple[str, ...]]], span: int, min_words: int, min_left: int) -> list[Any]:
    """For each row None if it is dropped, else the row that each of its units is cut for (None: it stays)."""
    stands_in: dict[Key, int] = {}
    decided: list[Any] = []
    for row, units in enumerate(rows):
        keys = [tuple(units[i : i + span]) for i in range(len(units) - span + 1)]
        compared = [sum(map(len, key)) >= min_words for key in keys]
        cut: list[int | None] = [None] * len(units)
        for i, key in enumerate(keys):
            own = {keys[j]: row for j in range(i - span + 1) if compared[j] and cut[j : j + span] == [None] * span}
            known = own | stands_in
            if compared[i] and key in known:
                cut[i : i + span] = [known[key] if c is None else c for c in cut[i : i + span]]
        left = sum(len(u) for u, c in zip(units, cut, strict=True) if c is None)
        if left < min_left and any(c is not None for c in cut):
            decided.append(None)
            continue
        decided.append(cut)
        for i, key in enumerate(keys):
            if compared[i] and cut[i : i + span] == [None] * span:
                stands_in.setdefault(key, row)
    return decided


def check(outcome: LevelOutcome, texts: Sequence[str], unit: Any, span: int, min_words: int, min_left: int) -> None:
    units = [units_of(text, unit) for text in texts]
    words = [[tuple(split_words(u)) for u in row] for row in units]
    decided = expected(words, span, min_words, min_left)
    assert set(outcome.dropped) == {str(row) for row, cut in enumerate(decided) if cut is None}
    for row, cut in enumerate(decided):
        if cut is None:
            continue
        cuts = [c for c in outcome.cuts if c["id"] == str(row)]
        assert [c["text"].strip() for c in cuts] == [u for u, c in zip(units[row], cut, strict=True) if c is not None]
        assert [c["duplicate_of"] for c in cuts] == [str(c) for c in cut if c is not None]
        assert restored(outcome.kept[str(row)], cuts) == texts[row]
        assert (str(row) in outcome.edited) == bool(cuts)


TEXTS = st.lists(st.lists(st.sampled_from("abcde"), max_size=9), max_size=7)


@settings(max_examples=100)
@given(TEXTS, st.integers(1, 3), st.integers(0, 6), st.integers(1, 3))
def test_spans_are_cut_as_plain_python_cuts_them(rows: list[list[str]], span: int, min_left: int, cut: int) -> None:
    texts = [" ".join(f"{c} {c}!" for c in row) for row in rows]
    outcome = spans(texts, cut, span_sentences=span, min_words=2, min_words_left=min_left)
    check(outcome, texts, "sentence", span, 2, min_left)


@given(TEXTS, st.sampled_from(["line", "paragraph"]), st.integers(0, 6), st.data())
def test_lines_and_paragraphs_are_cut_as_plain_python_cuts_them(
    rows: list[list[str]], unit: Any, min_left: int, data: st.DataObject
) -> None:
    ends = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n  "])
    texts = ["".join(f"{c}, {c.upper() * 2}{data.draw(ends)}" for c in row) for row in rows]
    check(lines(texts, 2, unit=unit, min_words=2, min_words_left=min_left), texts, unit, 1, 2, min_left)


def test_what_is_cut_can_be_read_in_the_row_that_is_named() -> None:
    rng = random.Random(4)
    pieces = [(rng.randrange(1000), rng.randrange(1000), rng.randrange(2, 8)) for _ in range(300)]
    texts = [" ".join(sentence(n) for at in piece[:2] for n in range(at, at + piece[2])) for piece in pieces]
    outcome = spans(texts, min_words_left=12)
    assert len(outcome.cuts) > 300 and len(outcome.dropped) > 10
    read = {name: [tuple(split_words(u)) for u in units_of(text, "sentence")] for name, text in outcome.kept.items()}
    for piece in outcome.cuts:
        assert tuple(split_words(piece["text"])) in read[piece["duplicate_of"]]
    for reason, _, duplicate_of in outcome.dropped.values():
        assert reason == "duplicate_spans"
        assert duplicate_of is None or duplicate_of in outcome.kept


def test_a_line_that_a_dropped_row_had_first_stays_in_the_next_row() -> None:
    first, other = sentence(1), sentence(2)
    texts = [f"{other}\n{sentence(5, 60)}", f"{other}\n{first}", f"{first}\n{sentence(3, 60)}"]
    outcome = lines(texts, min_words_left=20)
    assert outcome.dropped == {"1": ("duplicate_lines", "1 of its 2 lines stand before it, 8 words are new", "0")}
    assert outcome.kept["2"] == texts[2] and not outcome.cuts


def test_short_lines_and_lines_without_words_are_left_alone() -> None:
    text = "import numpy as np\n\n{\n    }\n--------------------\n" + BANNER
    outcome = lines([text, text, "{\n}\n" * 3])
    assert outcome.kept == {"0": text, "1": text.removesuffix("\n" + BANNER), "2": "{\n}\n" * 3}


def test_case_punctuation_and_white_space_do_not_tell_lines_apart_and_accents_and_digits_do() -> None:
    same = f"  * {BANNER.upper().replace(' ', '  ')}!!"
    texts = [BANNER, same, BANNER.replace("e", "é"), "Page 1 of the manual for users", "Page 2 of the manual for users"]
    assert lines(texts).kept == {str(n): "" if n == 1 else t for n, t in enumerate(texts)}
    assert lines(texts, digits="zero").kept["4"] == ""


def test_decomposed_text_is_the_same_and_comes_back_as_it_was_written() -> None:
    composed, decomposed = "Überall dürfen Bäume grün sein", "U\u0308berall du\u0308rfen Ba\u0308ume gru\u0308n sein"
    outcome = lines([composed + "\nab", decomposed + "\nab"])
    assert outcome.kept == {"0": composed + "\nab", "1": "ab"}
    assert outcome.cuts[0]["text"] == decomposed + "\n"


@pytest.mark.parametrize("memory_mb", [1, 1024])
def test_workers_shards_and_memory_do_not_change_what_is_decided(memory_mb: int) -> None:
    rng = random.Random(7)
    texts = ["\n".join(sentence(rng.randrange(900)) for _ in range(40)) for _ in range(2000)]
    reference = lines(texts, 500, 1)
    assert reference.facts["units"] == 80_000 and len(reference.cuts) > 70_000
    for cut, workers in ((500, 3), (1999, 2)):
        other = lines(texts, cut, workers, memory_mb=memory_mb)
        assert (other.kept, other.cuts, other.facts) == (reference.kept, reference.cuts, reference.facts)
        if cut == 500:
            assert other.decisions == reference.decisions


@pytest.mark.parametrize("texts", [[], [""], ["\n \n"], ["one two three four five six"], ["a b c d e f"] * 3000])
def test_nothing_one_row_and_equal_rows(texts: list[str]) -> None:
    for outcome in (lines(texts, min_words_left=1), spans(texts, min_words_left=1, span_sentences=1, min_words=1)):
        assert len(outcome.kept) == min(len(texts), 1)
        assert all(of == "0" for _, _, of in outcome.dropped.values())


def test_an_edited_row_gets_the_hash_of_its_new_text() -> None:
    texts = [BANNER, f"new\n{BANNER}"]
    rows = documents(texts, content_hash=pa.array(["old"] * 2))
    stage = DedupLines(LinesConfig(min_words_left=0))
    outcome = run_level(stage, rows)
    assert outcome.kept["1"] == "new" and outcome.edited == {"1"}
    assert outcome.notes == {"lines_cut": 1, "bytes_cut": len(BANNER) + 1}
    assert digest(normalize(pa.array(["new"]))).to_pylist() == _hashes(stage, rows)[1:]


def _hashes(stage: DedupLines, rows: pa.RecordBatch) -> list[str]:
    hashes: list[str] = []

    class Spy(DedupLines):
        def decide(self, batch: pa.RecordBatch) -> Any:
            decision = super().decide(batch)
            hashes.extend(decision.columns["content_hash"].to_pylist())
            return decision

    run_level(Spy(stage.config), rows)
    return hashes


def test_a_source_that_loses_most_of_its_words_raises_an_alarm() -> None:
    texts = [sentence(n) for n in range(20)]
    rows = documents(texts * 2, source=pa.array(["new.jsonl"] * 20 + ["copy.jsonl"] * 20))
    whole, source = lines(rows).facts["alarms"]
    assert whole.startswith(
        "160 of all 320 words are lost (50.0%; max_loss is 30.0%). Most lines are lost for: '0' 1, "
    )
    assert "Check with `datakit explain`" in whole
    assert source == "the source 'copy.jsonl' loses 160 of its 160 words (100.0%; max_loss is 30.0%)"


@pytest.mark.parametrize("stage", [DedupLines(), DedupSpans()])
@pytest.mark.parametrize("kind", ["conversation", "preference"])
def test_rows_that_are_no_texts_are_refused(stage: Any, kind: str) -> None:
    with pytest.raises(
        UsageError, match=f"{stage.name} cuts pieces out of texts, and these rows are of the kind {kind}"
    ):
        stage.for_kind(kind)


@pytest.mark.parametrize(
    ("config", "values"),
    [(LinesConfig, {"min_words": 0}), (SpansConfig, {"span_sentences": 0}), (LinesConfig, {"max_loss": 1.5})],
)
def test_values_that_make_no_sense_are_refused(config: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        config(**values)


def corpus(shared: Path, name: str, rows: int) -> list[str]:
    with pa.input_stream(str(shared / "corpora/web" / name)) as stream:
        return [orjson.loads(line)["text"] for line in itertools.islice(stream.read().splitlines(), rows)]


@pytest.mark.parametrize(
    "name", ["react_docs_zh.jsonl.zst", "fastapi_docs_13_langs.jsonl.gz", "electron_8_langs.jsonl.zst"]
)
def test_real_documents_lose_what_plain_python_cuts(shared: Path, name: str) -> None:
    texts = [text[:3000] for text in corpus(shared, name, 60)]
    check(lines(texts, 50, min_words_left=20), texts, "line", 1, 5, 20)
    check(spans(texts, 50, min_words_left=20), texts, "sentence", 3, 10, 20)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mr. J. R. Smith came to Washington, D.C. yesterday.", "He left.", "So did I.", "Then it rained."],
        ["U.S. Rev. Stat. § 12 applies.", "See No. 5, art. 3 and p. 7.", "The answer is no.", "Five more followed."],
        ["Prof. Dr. Müller wohnt z.B. in der Nr. 5.", "Er kommt am Montag."],
        ["La Sra. García y el Sr. López llegaron.", "Era tarde."],
        ["It costs 3.14 dollars approx. at the market etc. and so on...", "Then what?"],
    ],
)
def test_a_full_stop_after_an_abbreviation_ends_no_sentence(sentences: list[str]) -> None:
    data, offsets = string_buffers(pa.array([" ".join(sentences)]))
    found = find_units(data, offsets, "sentence")
    assert [bytes(data[a:b]).decode() for a, b in zip(found.starts, found.ends, strict=True)] == sentences
