"""Lines, paragraphs and spans that are said again: each stays where it stood first, and nothing vanishes altogether."""

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.dedup.levels import LinesConfig, SpansConfig
from datakit.dedup.lines import DedupLines
from datakit.dedup.spans import DedupSpans
from datakit.errors import ConfigError, UsageError
from datakit.text.normal_form import digest, normalize
from datakit.text.words import split_words
from tests.dedup.levels import Outcome, documents, restored, run
from tests.dedup.test_units import units_of

Key = tuple[tuple[str, ...], ...]

BANNER = "Subscribe to our letter and never miss a thing again"
WORDS = [f"w{n}" for n in range(400)]


def sentence(seed: int, words: int = 8) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words)) + "."


def lines(texts: Any, cut: int = 1000, workers: int = 2, **config: Any) -> Outcome:
    return run(DedupLines(LinesConfig(**({"min_words_left": 0} | config))), texts, cut=cut, workers=workers)


def spans(texts: Any, cut: int = 1000, **config: Any) -> Outcome:
    return run(DedupSpans(SpansConfig(**({"min_words_left": 0} | config))), texts, cut=cut)


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


def check(outcome: Outcome, texts: Sequence[str], unit: Any, span: int, min_words: int, min_left: int) -> None:
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
    outcome = run(stage, rows)
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

    run(Spy(stage.config), rows)
    return hashes


def test_a_source_that_loses_most_of_its_words_raises_an_alarm() -> None:
    texts = [sentence(n) for n in range(20)]
    rows = documents(texts * 2, source=pa.array(["new.jsonl"] * 20 + ["copy.jsonl"] * 20))
    assert lines(rows).facts["alarms"] == [
        "the source 'copy.jsonl' loses 160 of its 160 words (100.0%; max_source_loss is 75.0%)"
    ]


@pytest.mark.parametrize("stage", [DedupLines(), DedupSpans()])
@pytest.mark.parametrize("kind", ["conversation", "preference"])
def test_rows_that_are_no_texts_are_refused(stage: Any, kind: str) -> None:
    with pytest.raises(
        UsageError, match=f"{stage.name} cuts pieces out of texts, and these rows are of the kind {kind}"
    ):
        stage.for_kind(kind)


@pytest.mark.parametrize(
    ("config", "values"),
    [(LinesConfig, {"min_words": 0}), (SpansConfig, {"span_sentences": 0}), (LinesConfig, {"max_source_loss": 1.5})],
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
