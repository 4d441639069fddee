"""N-grams of earlier rows and the Bloom filter that knows them."""

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.data import MESSAGES
from datakit.dedup import _kernels_ngrams as kernels
from datakit.dedup.exact import Memory
from datakit.dedup.ngrams import (
    PROBES,
    DedupNgrams,
    NgramsConfig,
    false_positive_rate,
    hash_fields,
    hash_ngrams,
    make_filter,
)
from datakit.errors import ConfigError, UsageError
from datakit.text.words import split_words
from tests.dedup.conftest import LevelOutcome, documents, restored, run_level
from tests.dedup.test_repeats import sentence, units_of


def ngrams(texts: Any, cut: int = 1000, workers: int = 2, **config: Any) -> LevelOutcome:
    stage = DedupNgrams(NgramsConfig(**({"min_words_left": 0, "false_positive_rate": 1e-7} | config)))
    return run_level(stage, texts, cut=cut, workers=workers)


def expected(texts: Sequence[str], size: int, least: Fraction, remove: str, min_left: int) -> list[set[int] | None]:
    """For each row None if it is dropped, else the lines that it loses; with a set that is never wrong."""
    known: set[tuple[str, ...]] = set()
    decided: list[set[int] | None] = []
    for text in texts:
        lines = [split_words(line) for line in units_of(text, "line")]
        words = [(word, number) for number, line in enumerate(lines) for word in line]
        windows = [words[i : i + size] for i in range(len(words) - size + 1)]
        seen = [tuple(w for w, _ in window) in known for window in windows]
        cut: set[int] = set()
        for number in range(len(lines) if remove != "document" else 0):
            inside = [s for s, w in zip(seen, windows, strict=True) if {n for _, n in w} == {number}]
            if inside and Fraction(sum(inside), len(inside)) >= least:
                cut.add(number)
        left = sum(len(line) for number, line in enumerate(lines) if number not in cut)
        share = Fraction(sum(seen), len(seen)) if seen else Fraction(0)
        if (remove != "parts" and seen and share >= least) or (cut and left < min_left):
            decided.append(None)
            continue
        decided.append(cut)
        known |= {tuple(w for w, _ in window) for window in windows if not {n for _, n in window} & cut}
    return decided


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.text(alphabet="abc", min_size=1, max_size=9).map(" ".join), max_size=5), max_size=6),
    st.integers(1, 4),
    st.sampled_from([0.3, 0.5, 0.8, 1.0]),
    st.sampled_from(["document", "parts", "both"]),
    st.integers(0, 5),
    st.integers(1, 3),
)
def test_rows_and_lines_go_as_plain_python_lets_them_go(
    rows: list[list[str]], size: int, threshold: float, remove: str, min_left: int, cut: int
) -> None:
    texts = ["\n".join(lines) for lines in rows]
    config = {"ngram_words": size, "threshold": threshold, "remove": remove, "min_words_left": min_left}
    with patch("datakit.dedup.ngrams.PROBES", 1 << 10):  # the rate has tests of its own
        outcome = ngrams(texts, cut, **config)
    decided = expected(texts, size, Fraction(round(threshold * 10), 10), remove, min_left)
    assert set(outcome.dropped) == {str(row) for row, lines in enumerate(decided) if lines is None}
    for row, lines in enumerate(decided):
        cuts = [c for c in outcome.cuts if c["id"] == str(row)]
        if lines is not None:
            assert [c["text"].strip() for c in cuts] == [units_of(texts[row], "line")[n] for n in sorted(lines)]
            assert restored(outcome.kept[str(row)], cuts) == texts[row]


def test_a_row_never_counts_against_itself() -> None:
    """A filter that added n-grams while it compares a row would know each repeated n-gram of this row."""
    text = "\n".join([sentence(1, 20)] * 50)
    outcome = ngrams([text, sentence(2, 20)], remove="both")
    assert outcome.kept == {"0": text, "1": sentence(2, 20)} and not outcome.cuts


def test_a_line_is_judged_by_what_lies_in_it_and_a_row_by_all_it_has() -> None:
    a, b, c = (sentence(n, 20) for n in range(3))
    outcome = ngrams([a, f"{a}\n{b}\n{c}", f"{b}\n{c}", f"{c}\n{sentence(9, 300)}"])
    assert outcome.kept == {"0": a, "1": f"{b}\n{c}", "3": sentence(9, 300)}
    assert outcome.dropped == {"2": ("duplicate_ngrams", "28 of its 28 13-grams stand before it", None)}
    assert outcome.edited == {"1", "3"} and outcome.notes["lines_cut"] == 2


def test_short_lines_do_not_condemn_a_row_for_its_one_long_line() -> None:
    long = sentence(1, 20)
    page = "\n".join([long, *(sentence(n, 6) for n in range(10, 40))])
    assert ngrams([long, page]).kept["1"] == page.removeprefix(long + "\n")


def test_text_without_spaces_is_compared_by_its_characters() -> None:
    text = "三个和尚没水喝是一个古老的中国故事讲的是人多反而办不成事情"
    assert ngrams([text, f"他说：{text}。"]).dropped["1"][0] == "duplicate_ngrams"


def test_workers_and_shards_do_not_change_what_is_decided() -> None:
    rng = random.Random(3)
    texts = ["\n".join(sentence(rng.randrange(300), 20) for _ in range(10)) for _ in range(400)]
    one, other = (ngrams(texts, cut, n, min_words_left=20) for cut, n in ((100, 1), (399, 3)))
    assert (one.kept, one.dropped, one.cuts, one.facts) == (other.kept, other.dropped, other.cuts, other.facts)
    assert len(one.cuts) > 500 and len(one.dropped) > 50


@pytest.mark.parametrize("texts", [[], [""], ["too short"], [sentence(1, 13)] * 300])
def test_nothing_one_row_and_equal_rows(texts: list[str]) -> None:
    outcome = ngrams(texts, false_positive_rate=0.01)
    assert len(outcome.kept) == min(len(texts), 1)
    assert outcome.facts["filter"]["false_positive_rate_measured"] <= 0.02


def test_conversations_are_dropped_whole_and_never_cut() -> None:
    said = [[{"role": "user", "content": f"{n}?"}, {"role": "assistant", "content": sentence(1, 40)}] for n in range(2)]
    rows = documents(["", ""]).drop_columns(["text"]).append_column("messages", pa.array(said, MESSAGES))
    stage = DedupNgrams(NgramsConfig(on="answer")).for_kind("conversation")
    assert stage.config.remove == "document"
    sketch = stage.sketch(rows)
    assert sketch.column("hashes").to_pylist()[0] == sketch.column("hashes").to_pylist()[1] != []
    with pytest.raises(UsageError, match='set remove = "document"'):
        DedupNgrams(NgramsConfig(remove="both")).for_kind("preference")


@pytest.mark.parametrize("rate", [0.1, 0.01, 0.001, 1e-4])
def test_a_full_filter_is_wrong_as_often_as_was_asked_for(rate: float, tmp_path: Any) -> None:
    made = make_filter(200_000, rate, Memory(1 << 30, tmp_path))
    hashes = np.random.default_rng(5).integers(0, 1 << 64, 200_000, np.uint64)
    kernels.insert(made.bits, hashes, made.num_hashes)
    known = np.empty(len(hashes), np.bool_)
    assert kernels.contains(made.bits, hashes, made.num_hashes, known) == len(hashes) and known.all()
    measured = made.measured_rate()
    error = 5 * math.sqrt(rate / PROBES)
    assert 0.8 * rate - error < measured < 1.1 * rate + error
    assert made.bits.nbytes * 8 / 200_000 < 1.45 * -math.log(rate) / math.log(2) ** 2  # a filter of one piece


def test_a_filter_larger_than_memory_lies_in_a_file_and_says_the_same(tmp_path: Any) -> None:
    hashes = np.random.default_rng(5).integers(0, 1 << 64, 10_000, np.uint64)
    filters = [make_filter(10_000, 0.01, Memory(size, tmp_path)) for size in (1 << 30, 1)]
    for made in filters:
        kernels.insert(made.bits, hashes, made.num_hashes)
    assert np.array_equal(filters[0].bits, filters[1].bits)
    assert list(tmp_path.iterdir()) == []


def test_the_rate_is_that_of_an_independent_sum() -> None:
    """The chance that all k probes hit, over binomially many keys in a block, by plain arithmetic."""
    keys, bits_per_key, k = 10_000, 12.0, 5
    blocks = round(keys * bits_per_key / 512)
    chance = 0.0
    for n in range(200):
        weight = math.comb(keys, n) / blocks**n * (1 - 1 / blocks) ** (keys - n)
        chance += weight * (1 - (511 / 512) ** (k * n)) ** k
    assert false_positive_rate(bits_per_key, k) == pytest.approx(chance, rel=0.01)


@pytest.mark.parametrize("values", [{"threshold": 0.0}, {"false_positive_rate": 0.9}, {"ngram_words": 0}])
def test_values_that_make_no_sense_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        NgramsConfig(**values)


def test_the_ngrams_of_the_sides_of_a_pair_are_told_apart() -> None:
    ask, good, bad = (" ".join(f"{side}{n}" for n in range(20)) for side in "abc")
    fields = [pa.array(texts) for texts in ([ask, ask, ""], [good, bad, ask], [bad, good, "short"])]
    made = hash_fields(fields, 13)
    rows = [set(made.hashes[begin:end].tolist()) for begin, end in pairwise(made.hash_starts)]
    assert [len(row) for row in rows] == [24, 24, 8]
    assert rows[0] & rows[1] == set(hash_ngrams(pa.array([ask]), None, 13).hashes.tolist())
    assert rows[0] & rows[2] == set()
    assert made.words.tolist() == [60, 60, 21]
    assert made.part_starts.tolist() == [0, 1, 2, 3]
