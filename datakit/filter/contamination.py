"""Rows that hold items of evaluation sets: the rows are dropped, or the lines that hold the items are cut.

Each text of an item (`evaluation.Item`) is compared by itself. What counts is the share of its words that lie in
n-grams of 5 words that the row has, too, by their weights: rare words have 1, stop words and numbers of up to four
digits 0.25, characters of scripts without spaces 0.4, and all of them less in n-grams that many items share. A row is
judged by its best text, but only if the matched words weigh enough, or if the row holds little else: eight common words
say nothing about a long text. A changed word costs its own weight, so that slightly reworded items are found. (Weighing
by rarity and by parts: allenai/decon, 2025, which requires an item's answer near the question, and skips items of fewer
than 20 tokens.) These are copies, not paraphrases; texts of fewer than five words are not searched.

Words are those of dedup (letters, marks and digits, case-folded; punctuation and white space do not matter). The whole
row is searched: documents, all turns with system prompts and tool results, tool-call arguments, `extra`. Texts with
escapes (JSON inside a text) are searched a second time without them. Every row and item that match are listed in the
table `matches/` beside the rows: item, part, overlap, passage.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.errors import ConfigError, InputError
from datakit.filter.evaluation import EvaluationSets, evaluation_sets
from datakit.filter.rule_set import Edits, Measure, MeasuredRows, Report, Resources, RuleSet, Signals
from datakit.filter.stop_words import common_words
from datakit.text.words import hash_words, spaceless_words

_NGRAM_WORDS: Final = 5
_NGRAM_CHARACTERS: Final = 8
"""The same for texts in a script that is written without spaces."""
_COMMON: Final = 250
_CHARACTER: Final = 400
"""The weights of common words and of characters of such scripts, in thousandths of a rare word's."""
_SHARED_BY: Final = 100
"""An n-gram that so many items have weighs nothing."""
_LONG: Final = 300_000
"""No more than this weight (300 rare words) of a long text must be in a row."""
_MAX_PASSAGE_CHARS: Final = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Contamination(RuleSet):
    """The evaluation sets, and how much of an item is too much."""

    name: ClassVar[str] = "contamination"
    measured_with: ClassVar[tuple[str, ...]] = ("eval_fields", "min_rare_words")

    eval: tuple[str, ...] = option((), "evaluation sets: files, folders, globs of any layout", path=True, flag="--eval")
    eval_fields: tuple[str, ...] = option(
        (), "fields of the items that count (question, choices.text); none: all", flag="--eval-field"
    )
    max_match_ratio: float = option(0.5, "drop rows that hold a larger share of a text of an item")
    min_rare_words: float = option(4.0, "rare words that must match, in rows that hold more than the item")
    action: Literal["drop", "cut"] = option("drop", "cut: documents lose the lines that hold such items, and stay")

    def resources(self) -> Resources:
        """The evaluation files, by name and SHA-256; how their fields are read; what can be searched.

        Raises:
            ConfigError: no file is named.
            InputError: a file that is missing, cannot be read, or holds no item that is long enough to search.
        """
        if not self.eval:
            raise ConfigError("the rule set contamination is on, but contamination.eval names no evaluation files")
        sets, index = self._sets(), self._index()
        short = [item.name for item, found in zip(sets.items, index.searched.tolist(), strict=True) if not found]
        if len(short) == len(sets.items):
            raise InputError(f"{self.eval[0]}: no evaluation item in it is long enough to search: {sets.lines[0]}")
        too_short = (
            f"{len(short)} of {sets.read} evaluation items are too short or too common to search ({short[0]}"
            f"{', ...' if len(short) > 1 else ''}): rows that hold them stay"
        ) if short else ""  # fmt: skip
        return Resources(
            digests={"evaluation": sets.digests},
            lines=sets.lines,
            counters={
                "evaluation_items_read": sets.read,
                "evaluation_items_searched": len(sets.items) - len(short),
                "evaluation_items_too_short": len(short),
                "evaluation_items_without_text": sets.without_text,
                "evaluation_lines_unreadable": sets.unreadable,
            },
            alarms=(*sets.alarms, *([too_short] if short else [])),
        )

    def signals(self, rows: MeasuredRows) -> Signals:
        """The largest share of each row of any item's text, in thousandths, and the number of that item; -1: none."""
        found = self._search(rows.whole_rows)
        best, item = np.zeros(rows.batch.num_rows, np.int64), np.full(rows.batch.num_rows, -1, np.int64)
        order = np.lexsort((-found.item, found.share))  # the largest is written last; of equals the first item
        best[found.row[order]], item[found.row[order]] = found.share[order], found.item[order]
        return Signals(contamination_match=best, contamination_match_item=item)

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The share; documents that are cut instead are not judged."""
        cut = self.action == "cut" and "text" in rows.batch.schema.names
        applies = np.zeros(rows.batch.num_rows, np.bool_) if cut else None
        yield Measure("max_match_ratio", rows.counted(self)["contamination_match"] / 1000, applies)

    def edit(self, table: pa.RecordBatch, stays: NDArray[np.bool_]) -> Edits | None:
        """Documents without the lines that hold n-grams of an item, where they hold too much of the item."""
        if self.action == "drop" or "text" not in table.schema.names:
            return None
        of = pa.array(np.flatnonzero(stays))
        texts, changed = table.column("text"), np.zeros(table.num_rows, np.bool_)
        found, made = self._search(pc.fill_null(texts.take(of), "")), []
        too_much = (found.share > 1000 * self.max_match_ratio) & (found.text < len(of))
        rows = np.unique(found.row[too_much])
        for row in rows.tolist():
            items = set(found.item[too_much & (found.row == row)].tolist())
            made.append(self._index().without_lines(texts[int(of[row].as_py())].as_py(), items))
        if not made:
            return None
        changed[np.flatnonzero(stays)[rows]] = True
        return Edits({"text": pc.replace_with_mask(texts, pa.array(changed), pa.array(made, texts.type))}, changed)

    def report(self, rows: MeasuredRows, stays: NDArray[np.bool_]) -> Report:
        """`matches`: one line for each row and part of an item that match."""
        hit = np.flatnonzero(rows.counted(self)["contamination_match_item"] >= 0)
        found = self._search(rows.whole_rows.take(pa.array(hit)))
        items, fields = self._sets().items, self._index().fields
        keys = [n for n in ("row_key", "id", "source") if n in rows.batch.schema.names]
        columns = {n: rows.batch.column(n).take(pa.array(hit[found.row])) for n in keys}
        columns |= {
            "item": pa.array([items[i].name for i in found.item.tolist()], pa.string()),
            "part": pa.array([fields[p] for p in found.part.tolist()], pa.string()),
            "overlap": pa.array(np.round(found.share / 1000, 3), pa.float64()),
            "passage": pa.array(found.passages(), pa.string()),
        }
        return Report(tables={"matches": pa.record_batch(columns)})

    def _sets(self) -> EvaluationSets:
        return evaluation_sets(self.eval, self.eval_fields)

    def _index(self) -> "PartIndex":
        return part_index(self._sets())

    def _search(self, texts: pa.Array) -> "_Found":
        """The items that rows hold, in their texts as they are and without escapes."""
        plain, escaped = _unescaped(texts)
        every = pa.concat_arrays([texts, plain])
        words, starts = hash_words(every)
        text, part, share, first, last = self._index().search(words, starts, round(1000 * self.min_rare_words))
        row = np.append(np.arange(len(texts)), escaped)[text]
        item = self._index().item_of[part]
        order = np.lexsort((text, -share, part, item, row))  # of one part the best, of equals that as it is
        keys = np.stack([row, part])[:, order]
        once = order[np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)]]
        begins = starts[text[once]]
        return _Found(
            every, row[once], item[once], part[once], share[once], text[once], first[once] - begins, last[once] - begins
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """What rows hold of items, int64[H] each, by row, item and part; shares in thousandths."""

    texts: pa.Array
    """The texts that were searched."""
    row: NDArray[np.int64]
    item: NDArray[np.int64]
    part: NDArray[np.int64]
    share: NDArray[np.int64]
    text: NDArray[np.int64]
    """The index in `texts`."""
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    """The first and the last matched word of that text."""

    def passages(self) -> list[str]:
        """The text from the first to the last matched word of each match, shortened."""
        bounds = zip(self.text.tolist(), self.first.tolist(), self.last.tolist(), strict=True)
        return [_passage(self.texts[text].as_py(), first, last) for text, first, last in bounds]


def _passage(text: str, first: int, last: int) -> str:
    pieces = re.findall(r"\s*\S+", text)
    _, starts = hash_words(pa.array(pieces, pa.string()))
    begin, end = np.searchsorted(starts, [first, last], side="right") - 1
    passage = "".join(pieces[begin : end + 1]).strip()
    return passage if len(passage) <= _MAX_PASSAGE_CHARS else f"{passage[:_MAX_PASSAGE_CHARS]}..."


_ESCAPE: Final = r"\\(?:\"|u[0-9a-fA-F]{4})"
_ESCAPES: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.", re.DOTALL)


def _unescaped(texts: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """(the texts that have escapes of JSON, without them; the index of each)."""
    escaped = np.flatnonzero(pc.match_substring_regex(texts, _ESCAPE).to_numpy(zero_copy_only=False))
    plain = texts.take(pa.array(escaped)).to_pylist()
    for _ in range(2):  # the arguments of a tool call are JSON in JSON
        plain = [_ESCAPES.sub(_character, text) for text in plain]
    return pa.array(plain, pa.string()), escaped


def _character(escape: re.Match[str]) -> str:
    if escape[0][1] != "u" or len(escape[0]) < 6:
        return {"n": "\n", "t": "\t", "r": "\r"}.get(escape[0][1], escape[0][1])
    units = b"".join(int(code, 16).to_bytes(2, "little") for code in escape[0].split("\\u")[1:])
    return units.decode("utf-16-le", errors="replace")


@dataclass(frozen=True, slots=True)
class PartIndex:
    """The words of all parts of all items, what each weighs, and their n-grams. Weights are in thousandths.

    Legend: K different n-grams, W words of items, P parts.
    """

    slots: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    """The table of the n-grams, as `_kernels_lookup.find` takes it."""
    grams: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    """sizes int64[K] in words; where n-gram k begins in the items' words: starts int64[K+1] of the places."""
    parts: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    """weights and part_of int64[W], totals and item_of int64[P]."""
    fields: tuple[str, ...]
    """By part: its field."""
    searched: NDArray[np.bool_]
    """By item: whether it can be found."""

    @property
    def item_of(self) -> NDArray[np.int64]:
        """int64[P]: the item of each part."""
        return self.parts[3]

    def _hits(self, words: NDArray[np.uint64], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """(row, n-gram, place) of the n-grams in rows, in order."""
        from datakit.filter import _kernels_lookup

        sizes = np.unique(self.grams[0])
        rows, keys, places = _kernels_lookup.find(words, starts, sizes, self.slots, self.numbers)
        order = np.argsort(places, kind="stable")
        return rows[order], keys[order], places[order]

    def search(
        self, words: NDArray[np.uint64], starts: NDArray[np.int64], min_weight: int
    ) -> tuple[NDArray[np.int64], ...]:
        """Text, part, share, first and last word of each match."""
        from datakit.filter import _kernels_contamination as kernels

        found = kernels.score(*self._hits(words, starts), starts, self.grams, self.parts, min_weight)
        return tuple(found[:, i] for i in range(5))

    def without_lines(self, text: str, items: set[int]) -> str:
        """The text without the lines that hold a word of an n-gram of these items."""
        lines = text.splitlines(keepends=True)
        words, starts = hash_words(pa.array(lines, pa.string()))
        _, keys, places = self._hits(words, np.array([0, len(words)], np.int64))
        sizes, begins, postings = self.grams
        held = np.zeros(len(words) + 1, np.bool_)
        for key, place in zip(keys.tolist(), places.tolist(), strict=True):
            holders = self.item_of[self.parts[1][postings[begins[key] : begins[key + 1]]]]
            if not items.isdisjoint(holders.tolist()):
                held[place : place + sizes[key]] = True
        return "".join(line for line, (a, b) in zip(lines, pairwise(starts), strict=True) if not held[a:b].any())


@functools.lru_cache(maxsize=4)
def part_index(sets: EvaluationSets) -> PartIndex:
    """The index of the items of evaluation sets."""
    from datakit.filter import _kernels_contamination as kernels
    from datakit.filter import _kernels_lookup

    parts = [(number, field, text) for number, item in enumerate(sets.items) for field, text in item.parts]
    item_of = np.array([number for number, _, _ in parts], np.int64)
    words, starts = hash_words(pa.array([text for _, _, text in parts], pa.string()))
    counts = np.diff(starts)
    part_of = np.repeat(np.arange(len(parts)), counts)
    unsegmented = np.isin(words, spaceless_words())
    dense = 2 * np.add.reduceat(np.append(unsegmented, False).astype(np.int64), starts[:-1]) > counts
    sizes = np.where(dense, _NGRAM_CHARACTERS, _NGRAM_WORDS).astype(np.int64)
    # An n-gram that many items have says little about each: df items, weight 1 - ln(df) / ln(_SHARED_BY).
    grams = kernels.grams_of(words, starts, sizes)
    places = np.flatnonzero(grams)
    pairs = np.unique(np.stack([grams[places], item_of[part_of[places]].astype(np.uint64)]), axis=1)[0]
    keys, shared = np.unique(pairs, return_counts=True)
    rarity = np.zeros(len(words))
    rarity[places] = np.maximum(0, 1 - np.log(shared) / np.log(_SHARED_BY))[np.searchsorted(keys, grams[places])]
    base = np.where(unsegmented, _CHARACTER, 1000)
    base[np.isin(words, common_words())] = _COMMON
    weights = np.round(base * kernels.spread(rarity, starts, sizes)).astype(np.int64)
    totals = np.bincount(part_of, weights, minlength=len(parts)).astype(np.int64)
    places = places[rarity[places] > 0]
    keys, number = np.unique(grams[places], return_inverse=True)
    order = np.argsort(number, kind="stable")
    size_of = np.zeros(len(keys), np.int64)
    size_of[number] = sizes[part_of[places]]
    begins = np.searchsorted(number[order], np.arange(len(keys) + 1)).astype(np.int64)
    slots, numbers = _kernels_lookup.table_of(keys)
    searched = np.zeros(len(sets.items), np.bool_)
    searched[item_of[totals > 0]] = True
    return PartIndex(
        slots=slots,
        numbers=numbers,
        grams=(size_of, begins, places[order].astype(np.int64)),
        parts=(weights, part_of, np.minimum(totals, _LONG), item_of),
        fields=tuple(field for _, field, _ in parts),
        searched=searched,
    )
