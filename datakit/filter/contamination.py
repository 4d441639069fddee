"""Rows that hold items of evaluation sets: the rows are dropped, or the lines that hold the items are cut.

Word n-grams as in Brown et al. 2020, Language Models are Few-Shot Learners, appendix C: 13 words, fewer for items with
fewer words. An item's prompt and its answer are searched separately, and the share of the part's different n-grams that
a row holds decides: a sentence that both quote is no leak, a question that was copied whole is one. A reworded item
shares hardly any run of 13 words: this finds copies, not paraphrases.

Words are those of dedup (letters, marks and digits, case-folded; punctuation and white space do not matter). The whole
row is searched, prompts, answers and reasoning, whatever part of it the other rule sets look at. Every row and item
with an n-gram in common is listed in the table `matches/` beside the rows: item, part, row, overlap.
"""

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from datakit.config import option, sha256_file
from datakit.data import On
from datakit.errors import ConfigError, InputError
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, Signals
from datakit.text.words import hash_words

PROMPTS = ("question", "prompt", "instruction", "problem", "query", "input", "text", "goal", "ctx", "sentence")
ANSWERS = ("answer", "output", "completion", "response", "solution", "target", "canonical_solution")
"""The fields of an item's prompt and answer: all of these that hold text, joined in this order."""

PARTS = ("prompt", "answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Contamination(RuleSet):
    """The evaluation sets, and how much of an item is too much."""

    name: ClassVar[str] = "contamination"
    counts: ClassVar[bool] = True
    edits: ClassVar[bool] = True
    on: ClassVar[On | None] = "all"

    eval: tuple[str, ...] = option((), "files with evaluation items (JSON lines or an array)", path=True, flag="--eval")
    ngram_words: int = option(13, "words in an n-gram")
    short_ngram_words: int = option(8, "the same for prompts and answers with fewer words than that")
    max_prompt_overlap_ratio: float = option(0.5, "drop rows that hold a larger share of a prompt's n-grams")
    max_answer_overlap_ratio: float = option(1.0, "the same for an answer's; 1 drops none")
    action: Literal["drop", "cut"] = option("drop", "cut: documents lose the lines that hold such items, and stay")

    def check(self) -> None:
        """Refuse short n-grams that are longer than the others."""
        if not 0 < self.short_ngram_words <= self.ngram_words:
            raise ConfigError(
                f"short_ngram_words = {self.short_ngram_words}: expected 1 to ngram_words = {self.ngram_words}"
            )

    def resources(self) -> dict[str, Any]:
        """The evaluation files, by name and SHA-256.

        Raises:
            ConfigError: no file is named.
            InputError: a file that does not exist, or two files of one name.
        """
        if not self.eval:
            raise ConfigError("the rule set contamination is on, but contamination.eval names no evaluation files")
        return {"evaluation": digests(self.eval)}

    def open(self) -> None:
        """Read the evaluation files.

        Raises:
            InputError: a file that cannot be read, or holds no item with text.
        """
        self._index()

    def counted_with(self) -> dict[str, Any]:
        """The sizes of n-grams."""
        return {"ngram_words": self.ngram_words, "short_ngram_words": self.short_ngram_words}

    def count(self, texts: pa.Array) -> Signals:
        """The largest overlap of each row with any prompt and with any answer, in thousandths, and the items' numbers.

        The number is -1 where a row has no n-gram in common with any item.
        """
        found = _overlaps(texts, self._index())
        counts: dict[str, NDArray[np.int64]] = {}
        for which, part in enumerate(PARTS):
            of = found.part % 2 == which
            best, item = np.zeros(len(texts), np.int64), np.full(len(texts), -1, np.int64)
            # the largest share is written last; of equal shares that of the first item
            order = np.lexsort((-found.part[of], found.share[of]))
            best[found.row[of][order]] = found.share[of][order]
            item[found.row[of][order]] = found.part[of][order] // 2
            counts |= {f"contamination_{part}_overlap": best, f"contamination_{part}_item": item}
        return Signals(counts)

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The overlaps with prompts, then with answers; documents that are cut instead are not judged."""
        counts = rows.counted(self)
        cut = self.action == "cut" and "text" in rows.batch.schema.names
        applies = np.zeros(rows.batch.num_rows, np.bool_) if cut else None
        for part in PARTS:
            yield Measure(f"max_{part}_overlap_ratio", counts[f"contamination_{part}_overlap"] / 1000, applies)

    def edit(self, texts: pa.Array, kind: str) -> pa.Array:
        """Documents without the lines that hold n-grams of an item, where they hold too much of the item."""
        if self.action == "drop" or kind != "document":
            return texts
        index = self._index()
        found = _overlaps(texts, index)
        limits = np.where(found.part % 2 == 0, self.max_prompt_overlap_ratio, self.max_answer_overlap_ratio)
        too_much = found.share > 1000 * limits
        made = texts.to_pylist() if too_much.any() else []
        for row in np.unique(found.row[too_much]).tolist():
            parts = set(found.part[too_much & (found.row == row)].tolist())
            made[row] = _without_lines(made[row], parts, index)
        return pa.array(made, pa.string()) if made else texts

    def side_tables(self, rows: MeasuredRows) -> dict[str, pa.RecordBatch]:
        """`matches`: one line for each row and part of an item with an n-gram in common."""
        counts = rows.counted(self)
        hit = np.flatnonzero((counts["contamination_prompt_item"] >= 0) | (counts["contamination_answer_item"] >= 0))
        index = self._index()
        found = _overlaps(rows.texts_for(self).take(pa.array(hit)), index)
        keys = [n for n in ("row_key", "id") if n in rows.batch.schema.names]
        columns = {n: rows.batch.column(n).take(pa.array(hit[found.row])) for n in keys}
        columns |= {
            "item": pa.array([index.items[p // 2] for p in found.part.tolist()], pa.string()),
            "part": pa.array([PARTS[p % 2] for p in found.part.tolist()], pa.string()),
            "overlap": pa.array(np.round(found.share / 1000, 3), pa.float64()),
        }
        return {"matches": pa.record_batch(columns)}

    def _index(self) -> "EvaluationIndex":
        return evaluation_index(self.eval, self.ngram_words, self.short_ngram_words)


@dataclass(frozen=True, slots=True)
class EvaluationIndex:
    """The n-grams of the items of some files. A part is the prompt or the answer of one item."""

    slots: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    """The table of n-gram hashes that `_kernels_lookup.find` takes."""
    lengths: NDArray[np.int64]
    """The sizes of n-grams that occur, in words."""
    gram_parts: NDArray[np.int64]
    """The parts that hold n-gram i: `gram_parts[gram_starts[i]:gram_starts[i + 1]]`."""
    gram_starts: NDArray[np.int64]
    grams: NDArray[np.int64]
    """By part: the number of its different n-grams; 0 for a part with too few words."""
    sizes: NDArray[np.int64]
    """By part: the words of its n-grams."""
    items: tuple[str, ...]
    """By item: `<file name>:<record>`, records counted from 0. Item i has the parts 2i (prompt) and 2i + 1 (answer)."""


@functools.lru_cache(maxsize=4)
def evaluation_index(files: tuple[str, ...], words: int, short_words: int) -> EvaluationIndex:
    """The index of evaluation files: n-grams of `words` words, of `short_words` in parts with fewer words.

    Raises:
        InputError: a file that cannot be read, or holds no item with text.
    """
    from datakit.filter import _kernels_lookup

    names, texts = [], []
    for file in files:
        items = list(_items(Path(file)))
        names += [f"{Path(file).name}:{record}" for record, _, _ in items]
        texts += [text for _, *parts in items for text in parts]
    hashes, starts = hash_words(pa.array(texts, pa.string()))
    counts = np.diff(starts)
    sizes = np.where(counts >= words, words, short_words)
    grams = [
        np.unique(_kernels_lookup.rolling(hashes[begin:end], size))
        for (begin, end), size in zip(pairwise(starts.tolist()), sizes.tolist(), strict=True)
    ]
    held = np.array([len(g) for g in grams], np.int64)
    part = np.repeat(np.arange(len(grams)), held)
    keys, inverse = np.unique(np.concatenate([*grams, np.empty(0, np.uint64)]), return_inverse=True)
    slots, numbers = _kernels_lookup.table_of(keys)
    return EvaluationIndex(
        slots=slots,
        numbers=numbers,
        lengths=np.unique(sizes[held > 0]).astype(np.int64),
        gram_parts=part[np.argsort(inverse, kind="stable")],
        gram_starts=np.searchsorted(np.sort(inverse), np.arange(len(keys) + 1)),
        grams=held,
        sizes=sizes,
        items=tuple(names),
    )


def digests(files: tuple[str, ...]) -> dict[str, str]:
    """SHA-256 of each file, by its name.

    Raises:
        InputError: a file that does not exist, or two files of one name.
    """
    found: dict[str, str] = {}
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise InputError(f"{file}: the evaluation file is not there; contamination.eval names files")
        if path.name in found:
            raise InputError(f"{file}: two evaluation files are named {path.name}; results could not tell them apart")
        found[path.name] = sha256_file(path)
    return found


def _items(path: Path) -> Iterator[tuple[int, str, str]]:
    """(record, prompt, answer) of each item of a JSONL file or JSON array, compressed or not."""
    try:
        with pa.input_stream(str(path)) as stream:
            raw = stream.read()
        records = (
            json.loads(raw) if raw.lstrip()[:1] == b"[" else [json.loads(s) for s in raw.splitlines() if s.strip()]
        )
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: cannot be read as JSON lines or a JSON array of evaluation items: {e}") from None
    found = 0
    for record, item in enumerate(records):
        prompt, answer = _part(item, PROMPTS), _part(item, ANSWERS)
        if prompt or answer:
            found += 1
            yield record, prompt, answer
    if not found:
        raise InputError(
            f"{path}: no record has text in a field that evaluation items have: {', '.join(PROMPTS + ANSWERS)}"
        )


def _part(item: Any, names: tuple[str, ...]) -> str:
    values = [item.get(name) for name in names] if isinstance(item, dict) else [item] if names is PROMPTS else []
    return "\n".join(v for v in values if isinstance(v, str) and v.strip())


@dataclass(frozen=True, slots=True)
class _Overlaps:
    """Pairs of a row and a part of an item, int64 each, by row and part; shares in thousandths, at least 1."""

    row: NDArray[np.int64]
    part: NDArray[np.int64]
    share: NDArray[np.int64]


def _overlaps(texts: pa.Array, index: EvaluationIndex) -> _Overlaps:
    from datakit.filter import _kernels_lookup

    words, starts = hash_words(texts)
    rows, keys, _ = _kernels_lookup.find(words, starts, index.lengths, index.slots, index.numbers)
    row, key = np.divmod(np.unique(rows * len(index.gram_starts) + keys), len(index.gram_starts))
    parts = np.diff(index.gram_starts)[key]
    held = index.gram_parts[
        np.repeat(index.gram_starts[key] - np.cumsum(parts) + parts, parts) + np.arange(parts.sum())
    ]
    pair, count = np.unique(np.repeat(row, parts) * len(index.grams) + held, return_counts=True)
    row, part = np.divmod(pair, len(index.grams))
    return _Overlaps(row, part, np.maximum(1, np.round(1000 * count / index.grams[part]).astype(np.int64)))


def _without_lines(text: str, parts: set[int], index: EvaluationIndex) -> str:
    """The text without the lines that hold a word of an n-gram of these parts."""
    from datakit.filter import _kernels_lookup

    lines = text.splitlines(keepends=True)
    words, starts = hash_words(pa.array(lines, pa.string()))
    whole = np.array([0, len(words)], np.int64)
    _, keys, places = _kernels_lookup.find(words, whole, index.lengths, index.slots, index.numbers)
    held = np.zeros(len(words) + 1, np.int64)
    for key, place in zip(keys.tolist(), places.tolist(), strict=True):
        of = parts.intersection(index.gram_parts[index.gram_starts[key] : index.gram_starts[key + 1]].tolist())
        if of:
            held[place : place + int(index.sizes[next(iter(of))])] = 1
    return "".join(line for line, (a, b) in zip(lines, pairwise(starts), strict=True) if not held[a:b].any())
