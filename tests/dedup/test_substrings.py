"""Exact substrings: what is cut equals brute force, reads well, and can be put back."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datakit.dedup import _kernels_substrings as kernels
from datakit.dedup.substrings import DedupSubstrings, SubstringsConfig, word_bounds
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.text.words import hash_words, split_words
from tests.dedup.conftest import LevelOutcome, documents, restored, run_level


def substrings(rows: pa.RecordBatch | Sequence[str], cut: int = 1000, workers: int = 2, **config: Any) -> LevelOutcome:
    stage = DedupSubstrings(SubstringsConfig(**({"min_words_left": 0} | config)))
    return run_level(stage, rows, cut=cut, workers=workers)


def reference(rows: Sequence[Sequence[Any]], size: int, min_left: int = 0) -> list[list[Any] | None]:
    """The definition, token by token: what is left of each row, None for a row that is dropped."""
    whole: set[tuple[Any, ...]] = set()  # windows that stay whole in an earlier row
    left: list[list[Any] | None] = []
    for row in rows:
        gone: set[int] = set()
        own: set[tuple[Any, ...]] = set()
        for i in range(len(row)):
            j = i - size  # no later window can cut into this one any more
            if j >= 0 and not gone & set(range(j, i)):
                own.add(tuple(row[j:i]))
            window = tuple(row[i : i + size])
            if len(window) == size and (window in whole or window in own):
                gone |= set(range(i, i + size))
        kept = [token for i, token in enumerate(row) if i not in gone]
        if gone and len(kept) < min_left:
            left.append(None)
            continue
        left.append(kept)
        whole |= {tuple(row[j : j + size]) for j in range(len(row) - size + 1) if not gone & set(range(j, j + size))}
    return left


def words_left(outcome: LevelOutcome, rows: int) -> list[list[str] | None]:
    return [split_words(outcome.kept[str(n)]) if str(n) in outcome.kept else None for n in range(rows)]


letters = st.lists(st.sampled_from("ab"), max_size=40)


@given(st.lists(letters, min_size=1, max_size=6), st.integers(2, 6), st.sampled_from([0, 3]))
@example([list("a" * 40)], 4, 0)
@example([list("abab" * 10), list("baba" * 10)], 3, 0)
@settings(max_examples=300, deadline=None)
def test_random_rows_lose_what_the_definition_says(rows: list[list[str]], size: int, min_left: int) -> None:
    outcome = substrings([" ".join(row) for row in rows], min_tokens=size, min_words_left=min_left)
    assert words_left(outcome, len(rows)) == reference(rows, size, min_left)


def shared_passages(seed: int, count: int = 60) -> list[str]:
    """Rows of prose that share passages of 10 to 200 words, in other case and with other marks."""
    rng = random.Random(seed)
    words = [f"word{n}" for n in range(400)]
    pool = [rng.choices(words, k=rng.randrange(10, 200)) for _ in range(25)]
    rows = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randrange(1, 6)):
            passage = rng.choice(pool) if rng.random() < 0.5 else rng.choices(words, k=rng.randrange(1, 90))
            parts.append([w.title() if rng.random() < 0.1 else w for w in passage])
        rows.append(rng.choice([". ", ",\n", " — ", ".\n\n"]).join(" ".join(part) for part in parts) + ".")
    return rows


@pytest.mark.parametrize("size", [7, 50])
def test_prose_loses_what_the_definition_says_and_nothing_else(size: int) -> None:
    rows = shared_passages(size)
    outcome = substrings(rows, min_tokens=size)
    assert words_left(outcome, len(rows)) == reference([split_words(row) for row in rows], size)
    assert len(outcome.edited) > 10
    for n, text in enumerate(rows):
        cuts = [cut for cut in outcome.cuts if cut["id"] == str(n)]
        assert restored(outcome.kept[str(n)], cuts) == text
        for cut in cuts:
            piece = split_words(cut["text"])
            owner = split_words(outcome.kept[cut["duplicate_of"]])
            window = piece[: min(size, len(piece))]
            assert any(owner[i : i + len(window)] == window for i in range(len(owner)))


def repeating(words: Sequence[str], between: Sequence[str], seed: int, rows: int, length: int) -> list[str]:
    """Rows of words, with runs that stand in several rows or twice in one."""
    rng = random.Random(seed)
    pool = [rng.choices(words, k=rng.randrange(5, 60)) for _ in range(8)]
    made = []
    for _ in range(rows):
        row: list[str] = []
        while len(row) < length:
            row += rng.choice(pool) if rng.random() < 0.4 else rng.choices(words, k=rng.randrange(1, 30))
        made.append("".join(word + rng.choice(between) for word in row))
    return made


UNLIKE_PROSE = {
    "Chinese without spaces": repeating(
        [chr(0x4E00 + n * 7) for n in range(200)], ["", "", "", "，", "。\n"], 1, 20, 150
    ),
    "emoji between the words": repeating(["it", "是", "naïve", "x"], [" 😀 ", "👍🏽", " 👩‍👩‍👧 ", " "], 2, 12, 90),
    "all kinds of white space": repeating(
        [f"w{n}" for n in range(90)], ["\t", "\u00a0", "\r\n", "\u3000", "   "], 3, 20, 150
    ),
    "one long line": repeating([f"w{n}" for n in range(90)], [" "], 4, 1, 6000),
    "one row with itself": ["a b c d e f g h i j " * 12 + "end", "x " * 100],
}


@pytest.mark.parametrize("name", UNLIKE_PROSE)
def test_texts_unlike_prose_lose_what_the_definition_says(name: str) -> None:
    rows = UNLIKE_PROSE[name]
    outcome = substrings(rows, min_tokens=12)
    assert words_left(outcome, len(rows)) == reference([split_words(row) for row in rows], 12)
    assert outcome.cuts
    for n, text in enumerate(rows):
        assert restored(outcome.kept[str(n)], [cut for cut in outcome.cuts if cut["id"] == str(n)]) == text


def test_workers_shards_and_memory_do_not_change_what_is_decided() -> None:
    rows = shared_passages(3, 400)
    one = substrings(rows, 400, 1, min_tokens=20)
    other = substrings(rows, 57, 3, min_tokens=20, memory_mb=1)
    assert (one.kept, one.dropped, one.facts) == (other.kept, other.dropped, other.facts)
    assert one.facts["tokens_lost"] > 1000


@pytest.mark.parametrize(
    ("before", "passage", "behind", "left"),
    [
        ("Some words first. ", "A passage of six words here.", " Then more.", "Some words first. Then more."),
        ("One (see ", "the passage of six words here", ") two", "One (see ) two"),
        ("First.\n\n", "A passage of six words here!", "\n\nLast.", "First.\n\nLast."),
        ("- item one\n- ", "a passage of six words here", "\n- item two", "- item one\n- item two"),
        ("He said ", "“A passage of six words here.”", " She left.", "He said She left."),
        ("第一句。", "这是一个六字以上的段落", "。第三句", "第一句。第三句"),
        ("", "A passage of six words here.", " Then more.", "Then more."),
        ("It ends: ", "a passage of six words here...", "", "It ends:"),
    ],
)
def test_seams_are_readable(before: str, passage: str, behind: str, left: str) -> None:
    outcome = substrings([f"0 {passage} 9", f"{before}{passage}{behind}"], min_tokens=6)
    assert outcome.kept["1"] == left
    assert restored(outcome.kept["1"], outcome.cuts) == f"{before}{passage}{behind}"


def test_a_row_that_keeps_too_little_is_dropped_and_owns_nothing() -> None:
    passage = " ".join(f"w{n}" for n in range(10))
    other = " ".join(f"x{n}" for n in range(10))
    outcome = substrings([passage, f"{passage} {other}", other, f"{other} more"], min_tokens=5, min_words_left=11)
    assert outcome.dropped == {
        "1": ("duplicate_substrings", "10 of its 20 words stand before it, 10 are new", "0"),
        "3": ("duplicate_substrings", "10 of its 11 words stand before it, 1 are new", "2"),
    }
    assert outcome.kept["2"] == other, "the dropped row had it first"


@given(st.text(alphabet="aB1 .-か\u3099が字ไทย\u0301é\u00df\n", max_size=40))
def test_words_lie_where_they_are_hashed(text: str) -> None:
    texts = pa.array([text, "", text])
    bounds = word_bounds(texts)
    hashes, starts = hash_words(texts)
    assert bounds.row_starts.tolist() == starts.tolist() and len(hashes) == len(bounds.starts)
    data = (text + text).encode()
    found = [data[a:b].decode() for a, b in zip(bounds.starts, bounds.ends, strict=True)]
    assert [word.casefold() for word in found] == split_words(text) * 2


def test_other_unicode_forms_are_the_same_words() -> None:
    passage = "le café était fermé à côté du château"
    import unicodedata

    kana = "これはがっこうでべんきょうするひとです"
    for text in (passage, kana):
        outcome = substrings([text + " un", "deux " + unicodedata.normalize("NFD", text)], min_tokens=5)
        assert restored(outcome.kept["1"], outcome.cuts) == "deux " + unicodedata.normalize("NFD", text)
    assert (
        substrings([passage + " un", "deux " + unicodedata.normalize("NFD", passage)], min_tokens=5).kept["1"] == "deux"
    )


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(2, 9))
def test_anchors_are_the_least_runs_of_every_window(values: list[int], size: int) -> None:
    """Winnowing in plain Python: the last of the least hashes in each window."""
    words = np.array([v * 0x9E3779B97F4A7C15 % 2**32 for v in values], np.uint32)
    short = max(size // 2, 1)
    hashes, firsts = np.empty(len(words), np.uint64), np.empty(len(words), np.uint32)
    starts = np.empty(2, np.int64)
    kernels.winnow(words, np.array([0, len(words)]), size, short, hashes, firsts, starts)
    runs = [tuple(values[i : i + short]) for i in range(len(values) - short + 1)]
    named = {run: h for h, run in zip(_hashes_of(words, short), runs, strict=True)}
    expected, last = [], None
    for window in range(len(values) - size + 1):
        inside = range(window, window + size - short + 1)
        at = max(inside, key=lambda i: (-int(named[runs[i]]), i))
        if at != last:
            expected.append((int(named[runs[at]]), window))
        last = at
    assert list(zip(hashes[: starts[1]].tolist(), firsts[: starts[1]].tolist(), strict=True)) == expected


def _hashes_of(words: np.ndarray, short: int) -> list[int]:
    base, mask = 0xA0761D6478BD642F, 2**64 - 1
    found = []
    for i in range(len(words) - short + 1):
        h = 0
        for word in words[i : i + short].tolist():
            h = (h * base + word) & mask
        h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & mask
        h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & mask
        found.append(min(h ^ h >> 33, mask - 1))
    return found


def test_ids_of_a_tokenizer_can_be_the_tokens_and_cuts_end_between_words(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=280, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(["unbelievable things happen"] * 3, trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    passage = "unbelievable things happen in the harbour, naïve 港口"
    rows = [f"one {passage} end", f"two {passage}x more"]
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        outcome = substrings(rows, min_tokens=20, tokenizer=str(path))
        assert restored(outcome.kept["1"], outcome.cuts) == rows[1]
        assert outcome.kept["1"].split() == ["two", "x", "more"]
    outcome = substrings(
        ["one unbelievable things happen", "two unbelievable things happening"], min_tokens=3, tokenizer=str(path)
    )
    assert outcome.kept["1"] == "two happening", "its first ids are cut, but they are no whole word"
    with pytest.raises(ModelError, match="none: expected a tokenizer"):
        DedupSubstrings(SubstringsConfig(tokenizer=str(tmp_path / "none"))).resources()


@pytest.mark.parametrize("kind", ["conversation", "preference"])
def test_conversations_are_refused(kind: str) -> None:
    with pytest.raises(UsageError, match="an answer without some of its passages"):
        DedupSubstrings().for_kind(kind)


def test_a_set_that_loses_most_of_its_words_raises_an_alarm() -> None:
    text = " ".join(f"w{n}" for n in range(200))
    (alarm,) = substrings(documents([text, text + " end", "x " + text])).facts["alarms"]
    assert alarm.startswith(
        "400 of all 602 words are lost (66.4%; max_loss is 30.0%). Most passages are lost for: '0' 2."
    )


def test_senseless_configuration_is_refused() -> None:
    with pytest.raises(ConfigError, match="min_tokens must be at least 2"):
        SubstringsConfig(min_tokens=1)
    assert substrings([]).kept == {} and substrings(["", "  ", "a"]).kept == {"0": "", "1": "  ", "2": "a"}
