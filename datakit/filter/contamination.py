"""Rows that hold items of evaluation sets: the rows are dropped, or the lines that hold the items are cut.

Three ways to decide, all by word n-grams:

- `weighted` (default): each part of an item (question, choices, each field of an answer) is compared by itself. What
  counts is the share of its words that lie in n-grams of 5 words that the row has, too, by their weights: rare words
  have 1, stop words and numbers of up to four digits 0.25, characters of scripts without spaces 0.4, and all of them
  less in n-grams that many items share. A row is judged by its best part, but only if the matched words of the item
  weigh enough, or if the row holds little else: eight common words say nothing about a long text. A changed word costs
  its own weight, so that slightly reworded items are found. (Weighing by rarity and by parts: allenai/decon, 2025,
  which requires an item's answer near the question, and skips items of fewer than 20 tokens.)
- `overlap`: the share of an item's different n-grams of 13 words, 8 for shorter items, by prompt and by answer.
- `any`: one such n-gram is enough, as in Brown et al. 2020, Language Models are Few-Shot Learners, appendix C.

Words are those of dedup (letters, marks and digits, case-folded; punctuation and white space do not matter). The whole
row is searched: documents, all turns with system prompts and tool results, tool-call arguments, `extra`. Texts with
escapes (JSON inside a text) are searched a second time without them. Every row and item that match are listed in the
table `matches/` beside the rows: item, part, overlap, passage. These are copies, not paraphrases.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.data import On
from datakit.errors import ConfigError, InputError
from datakit.filter.evaluation import EvaluationSets, Item, evaluation_sets
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, Signals, all_stop_words
from datakit.text.words import hash_words, spaceless_words

PARTS: Final = ("prompt", "answer")
"""The parts of an item where the mode is `overlap` or `any`."""

_NGRAM_WORDS: Final = 5
_NGRAM_CHARACTERS: Final = 8
"""The same for parts in a script that is written without spaces."""
_COMMON: Final = 250
_CHARACTER: Final = 400
"""The weights of common words and of characters of such scripts, in thousandths of a rare word's."""
_SHARED_BY: Final = 100
"""An n-gram that so many items have weighs nothing."""
_LONG: Final = 300_000
"""No more than this weight (300 rare words) of a long part must be in a row."""
_MOST_PASSAGE: Final = 300
"""Characters of a passage in `matches`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Contamination(RuleSet):
    """The evaluation sets, and how much of an item is too much."""

    name: ClassVar[str] = "contamination"
    counts: ClassVar[bool] = True
    edits: ClassVar[bool] = True
    on: ClassVar[On | None] = "all"
    whole_row: ClassVar[bool] = True

    eval: tuple[str, ...] = option((), "evaluation sets: files, folders, globs of any layout", path=True, flag="--eval")
    eval_fields: tuple[str, ...] = option(
        (),
        "fields with names that are not known: NAME (a question), answer=NAME, choices=NAME, passage=NAME",
        flag="--eval-field",
    )
    mode: Literal["weighted", "overlap", "any"] = option(
        "weighted", "weighted: parts of items by rare words; overlap: share of n-grams; any: one n-gram is enough"
    )
    max_match_ratio: float = option(0.5, "weighted: drop rows that hold a larger share of a part of an item")
    min_rare_words: float = option(4.0, "weighted: rare words that must match, in rows that hold more than the item")
    ngram_words: int = option(13, "overlap, any: words in an n-gram")
    short_ngram_words: int = option(8, "the same for prompts and answers with fewer words than that")
    max_prompt_overlap_ratio: float = option(0.5, "overlap: drop rows that hold a larger share of a prompt's n-grams")
    max_answer_overlap_ratio: float = option(1.0, "the same for an answer's; 1 drops none")
    max_shared_items: int = option(0, "any: drop rows that share an n-gram with more items than this")
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
            InputError: a file that does not exist, cannot be read, or holds no item with text.
        """
        return {"evaluation": self._sets().digests}

    def open(self) -> None:
        """Read the evaluation files.

        Raises:
            InputError: a file that cannot be read or holds no item with text, or no item can be searched.
        """
        if not self._index().searched.any():
            raise InputError(
                f"{self.eval[0]}: no evaluation item in it is long enough to search: {self._sets().lines[0]}"
            )

    def _sets(self) -> EvaluationSets:
        if not self.eval:
            raise ConfigError("the rule set contamination is on, but contamination.eval names no evaluation files")
        return evaluation_sets(self.eval, self.eval_fields)

    def describe(self) -> tuple[str, ...]:
        """How the fields of each evaluation file are read."""
        return self._sets().lines

    def ledger(self) -> dict[str, int]:
        """How many items were read and can be searched."""
        sets, searched = self._sets(), self._index().searched
        return {
            "evaluation_items_read": sets.read,
            "evaluation_items_searched": int(searched.sum()),
            "evaluation_items_too_short": int((~searched).sum()),
            "evaluation_items_without_text": sets.without_text,
            "evaluation_lines_unreadable": sets.unreadable,
        }

    def alarms(self) -> Iterator[str]:
        """Items that cannot be searched."""
        sets, searched = self._sets(), self._index().searched
        yield from sets.alarms
        if not searched.all():
            short = [sets.items[i].name for i in np.flatnonzero(~searched)]
            yield (
                f"{len(short)} of {sets.read} evaluation items are too short or too common to search ({short[0]}"
                f"{', ...' if len(short) > 1 else ''}): rows that hold them stay"
            )

    def counted_with(self) -> dict[str, Any]:
        """What shapes the search, besides the files."""
        sizes = {"ngram_words": self.ngram_words, "short_ngram_words": self.short_ngram_words}
        own = {"min_rare_words": self.min_rare_words} if self.mode == "weighted" else sizes
        return {"mode": self.mode, "eval_fields": self.eval_fields} | own

    def count(self, texts: pa.Array) -> Signals:
        """The largest share of each row of any item's part, in thousandths, and the number of that item.

        The number is -1 where a row matches no item. `overlap` and `any` have both by prompt and answer.
        """
        found, counts = self._search(texts), {}
        if self.mode == "weighted":
            counts = _best(found, np.ones(len(found.row), np.bool_), len(texts), "match")
        else:
            for part in PARTS:
                counts |= _best(found, found.part == PARTS.index(part), len(texts), part)
            pairs = np.unique(np.stack([found.row, found.item]), axis=1)
            counts["contamination_items"] = np.bincount(pairs[0], minlength=len(texts)).astype(np.int64)
        return Signals(counts)

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The shares, by the mode; documents that are cut instead are not judged."""
        counts = rows.counted(self)
        cut = self.action == "cut" and "text" in rows.batch.schema.names
        applies = np.zeros(rows.batch.num_rows, np.bool_) if cut else None
        if self.mode == "weighted":
            yield Measure("max_match_ratio", counts["contamination_match"] / 1000, applies)
        elif self.mode == "any":
            yield Measure("max_shared_items", counts["contamination_items"], applies)
        else:
            for part in PARTS:
                yield Measure(f"max_{part}_overlap_ratio", counts[f"contamination_{part}"] / 1000, applies)

    def edit(self, texts: pa.Array, kind: str) -> pa.Array:
        """Documents without the lines that hold n-grams of an item, where they hold too much of the item."""
        if self.action == "drop" or kind != "document":
            return texts
        found = self._search(texts)
        too_much = self._too_much(found) & (found.text < len(texts))
        made = texts.to_pylist() if too_much.any() else []
        for row in np.unique(found.row[too_much]).tolist():
            items = set(found.item[too_much & (found.row == row)].tolist())
            made[row] = _without_lines(made[row], items, self._index().grams)
        return pa.array(made, pa.string()) if made else texts

    def side_tables(self, rows: MeasuredRows) -> dict[str, pa.RecordBatch]:
        """`matches`: one line for each row and part of an item that match."""
        counts = rows.counted(self)
        hit = np.flatnonzero(np.max([v for n, v in counts.counts.items() if n in _ITEM_COLUMNS], axis=0) >= 0)
        found = self._search(rows.texts_for(self).take(pa.array(hit)))
        names = [item.name for item in self._sets().items]
        kinds = PARTS if self.mode != "weighted" else self._weighted().kinds
        keys = [n for n in ("row_key", "id") if n in rows.batch.schema.names]
        columns = {n: rows.batch.column(n).take(pa.array(hit[found.row])) for n in keys}
        columns |= {
            "item": pa.array([names[i] for i in found.item.tolist()], pa.string()),
            "part": pa.array([kinds[p] for p in found.part.tolist()], pa.string()),
            "overlap": pa.array(np.round(found.share / 1000, 3), pa.float64()),
            "passage": pa.array(found.passages(), pa.string()),
        }
        return {"matches": pa.record_batch(columns)}

    def _too_much(self, found: "_Found") -> NDArray[np.bool_]:
        if self.mode == "weighted":
            return found.share > 1000 * self.max_match_ratio
        if self.mode == "any":
            return np.ones(len(found.share), np.bool_)
        limits = np.where(found.part == 0, self.max_prompt_overlap_ratio, self.max_answer_overlap_ratio)
        return np.asarray(found.share > 1000 * limits)

    def _index(self) -> "WeightedIndex | OverlapIndex":
        return self._weighted() if self.mode == "weighted" else self._overlap()

    def _weighted(self) -> "WeightedIndex":
        return weighted_index(self._sets(), self.min_rare_words)

    def _overlap(self) -> "OverlapIndex":
        return overlap_index(self._sets(), self.ngram_words, self.short_ngram_words)

    def _search(self, texts: pa.Array) -> "_Found":
        """The items that rows hold, in their texts as they are and without escapes."""
        plain, escaped = _unescaped(texts)
        every = pa.concat_arrays([texts, plain])
        words, starts = hash_words(every)
        if self.mode == "weighted":
            text, item, part, share, first, last = self._weighted().search(words, starts)
        else:
            text, item, part, share, first, last = self._overlap().search(words, starts)
        row = np.where(text < len(texts), text, np.append(escaped, -1)[np.maximum(text - len(texts), -1)])
        order = np.lexsort((text, -share, part, item, row))  # of one part the best, of equals that as it is
        keys = np.stack([row, item, part])[:, order]
        once = order[np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)]]
        at = starts[text[once]]
        return _Found(
            every, row[once], item[once], part[once], share[once], text[once], first[once] - at, last[once] - at
        )


_ITEM_COLUMNS: Final = tuple(f"contamination_{name}_item" for name in ("match", *PARTS))


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
        return [
            _passage(self.texts[text].as_py(), first, last)
            for text, first, last in zip(self.text.tolist(), self.first.tolist(), self.last.tolist(), strict=True)
        ]


def _best(found: _Found, of: NDArray[np.bool_], rows: int, name: str) -> dict[str, NDArray[np.int64]]:
    """The largest share of each row and its item, as signals."""
    best, item = np.zeros(rows, np.int64), np.full(rows, -1, np.int64)
    order = np.lexsort((-found.item[of], found.share[of]))  # the largest is written last; of equals the first item
    best[found.row[of][order]] = found.share[of][order]
    item[found.row[of][order]] = found.item[of][order]
    return {f"contamination_{name}": best, f"contamination_{name}_item": item}


_ESCAPE: Final = r"\\(?:\"|u[0-9a-fA-F]{4})"
_ESCAPES: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.", re.DOTALL)


def _unescaped(texts: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """(the texts that have escapes of JSON, without them; the index of each)."""
    escaped = np.flatnonzero(pc.match_substring_regex(texts, _ESCAPE).to_numpy(zero_copy_only=False))
    plain = []
    for text in texts.take(pa.array(escaped)).to_pylist():
        for _ in range(2):  # the arguments of a tool call are JSON in JSON
            text = _ESCAPES.sub(_character, text)
        plain.append(text)
    return pa.array(plain, pa.string()), escaped


def _character(escape: re.Match[str]) -> str:
    if escape[0][1] != "u" or len(escape[0]) < 6:
        return {"n": "\n", "t": "\t", "r": "\r"}.get(escape[0][1], escape[0][1])
    units = b"".join(int(code, 16).to_bytes(2, "little") for code in escape[0].split("\\u")[1:])
    return units.decode("utf-16-le", errors="replace")


def _passage(text: str, first: int, last: int) -> str:
    """The text from word `first` to word `last`, shortened."""
    pieces = re.findall(r"\s*\S+", text)
    _, starts = hash_words(pa.array(pieces, pa.string()))
    begin, end = np.searchsorted(starts, [first, last], side="right") - 1
    passage = "".join(pieces[begin : end + 1]).strip()
    return passage if len(passage) <= _MOST_PASSAGE else f"{passage[:_MOST_PASSAGE]}..."


@dataclass(frozen=True, slots=True)
class GramTable:
    """The n-grams of items in a hash table, as `_kernels_lookup.find` takes it, and where they stand."""

    slots: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    lengths: NDArray[np.int64]
    """The sizes of n-grams that occur, in words."""
    starts: NDArray[np.int64]
    holders: NDArray[np.int64]
    """The items that hold n-gram i: `holders[starts[i]:starts[i + 1]]`."""
    sizes: NDArray[np.int64]
    """By n-gram: its words."""


def _gram_table(
    grams: NDArray[np.uint64], sizes: NDArray[np.int64], holders: NDArray[np.int64]
) -> tuple[GramTable, NDArray[np.int64]]:
    """The table of n-grams, which may repeat, with their sizes and holders; and the order that `holders` are in."""
    from datakit.filter import _kernels_lookup

    keys, inverse = np.unique(grams, return_inverse=True)
    slots, numbers = _kernels_lookup.table_of(keys)
    order = np.argsort(inverse, kind="stable")
    starts = np.searchsorted(inverse[order], np.arange(len(keys) + 1)).astype(np.int64)
    of_key = np.zeros(len(keys), np.int64)
    of_key[inverse] = sizes
    lengths = np.unique(sizes).astype(np.int64)
    return GramTable(slots, numbers, lengths, starts, holders[order], of_key), order


def _without_lines(text: str, items: set[int], table: GramTable) -> str:
    """The text without the lines that hold a word of an n-gram of these items."""
    from datakit.filter import _kernels_lookup

    lines = text.splitlines(keepends=True)
    words, starts = hash_words(pa.array(lines, pa.string()))
    whole = np.array([0, len(words)], np.int64)
    _, keys, places = _kernels_lookup.find(words, whole, table.lengths, table.slots, table.numbers)
    held = np.zeros(len(words) + 1, np.int64)
    for key, place in zip(keys.tolist(), places.tolist(), strict=True):
        if items.intersection(table.holders[table.starts[key] : table.starts[key + 1]].tolist()):
            held[place : place + int(table.sizes[key])] = 1
    return "".join(line for line, (a, b) in zip(lines, pairwise(starts), strict=True) if not held[a:b].any())


# Weighted: the parts of items, word by word.


@dataclass(frozen=True, slots=True)
class WeightedIndex:
    """The words of all parts of all items, what each weighs, and their n-grams. Weights are in thousandths."""

    grams: GramTable
    places: NDArray[np.int64]
    """Where n-gram i begins in the items' words: `places[grams.starts[i]:grams.starts[i + 1]]`."""
    arrays: tuple[NDArray[Any], ...]
    """For the kernel: item_words uint64[W], weights int64[W], part_of int64[W] (the part of each word), totals int64[P]
    (the weight of each part), alone int64[P] (how many times `least` a part needs: 1 question, 2 others; 0: a passage,
    which only supports), item_of int64[P], part_starts int64[I+1], item_sizes int64[I] in words, short_starts
    int64[I+1], short_ends int64[W], shorts int64[S] (where texts of an item begin that are too short for an n-gram)."""
    kinds: tuple[str, ...]
    """By part: what it is."""
    searched: NDArray[np.bool_]
    """By item: whether it can be found."""
    least: int

    def search(self, words: NDArray[np.uint64], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Text, item, part, share, first and last word of each match."""
        from datakit.filter import _kernels_contamination as kernels

        table = self.grams
        found = kernels.search(
            words, starts, table.lengths, table.slots, table.numbers, table.starts, self.places, self.arrays, self.least
        )
        return tuple(found[:, i] for i in range(6))


@functools.lru_cache(maxsize=4)
def weighted_index(sets: EvaluationSets, min_rare_words: float) -> WeightedIndex:
    """The index of the items of evaluation sets, by the parts of items."""
    from datakit.filter import _kernels_contamination as kernels

    items = sets.items
    texts, parts = _segments(items)
    hashes, starts = hash_words(pa.array([text for text, _ in texts], pa.string()))
    part_of_text = np.array([part for _, part in texts], np.int64)
    counts = np.diff(starts)
    item_of = np.array([item for item, _ in parts], np.int64)
    spaceless = np.isin(hashes, spaceless_words())
    running = np.append(0, np.cumsum(spaceless))
    dense = 2 * (running[starts[1:]] - running[starts[:-1]]) > counts
    sizes = np.where(dense, _NGRAM_CHARACTERS, _NGRAM_WORDS).astype(np.int64)
    part_of = np.repeat(part_of_text, counts)
    # An n-gram that many items have says little about each: df items, weight 1 - ln(df) / ln(_SHARED_BY).
    grams = kernels.grams_of(hashes, starts, sizes)
    places = np.flatnonzero(grams)
    pairs = np.unique(np.stack([grams[places], item_of[part_of[places]].astype(np.uint64)]), axis=1)[0]
    keys, shared = np.unique(pairs, return_counts=True)
    rarity = np.maximum(0, 1 - np.log(shared) / np.log(_SHARED_BY))
    of_gram = np.zeros(len(hashes))
    of_gram[places] = rarity[np.searchsorted(keys, grams[places])]
    base = np.where(spaceless, _CHARACTER, 1000)
    base[np.isin(hashes, all_stop_words())] = _COMMON
    weights = np.round(base * kernels.spread(of_gram, starts, sizes)).astype(np.int64)
    totals = np.bincount(part_of, weights, minlength=len(parts)).astype(np.int64)
    # Texts without an n-gram support a question that is near.
    short = np.flatnonzero((counts < sizes) & (counts > 0))
    short = short[np.isin([parts[p][1] for p in part_of_text[short].tolist()], ["answer", "choices"])]
    ends = np.zeros(len(hashes), np.int64)
    ends[starts[short]] = starts[short + 1]
    for text in short.tolist():
        weights[starts[text] : starts[text + 1]] = base[starts[text] : starts[text + 1]]
    places = places[of_gram[places] > 0]
    sized = np.repeat(sizes, counts)
    table, order = _gram_table(grams[places], sized[places], item_of[part_of[places]])
    alone = np.array([{"question": 1, "passage": 0}.get(kind, 2) for _, kind in parts], np.int64)
    found = np.zeros(len(items), np.bool_)
    found[item_of[(totals > 0) & (alone > 0)]] = True
    number = np.arange(len(items) + 1)
    return WeightedIndex(
        grams=table,
        places=places[order].astype(np.int64),
        arrays=(
            hashes,
            weights,
            part_of,
            np.minimum(totals, _LONG),
            alone,
            item_of,
            np.searchsorted(item_of, number).astype(np.int64),
            np.bincount(item_of[part_of], minlength=len(items)).astype(np.int64),
            np.searchsorted(item_of[part_of_text[short]], number).astype(np.int64),
            ends,
            starts[short],
        ),
        kinds=tuple(kind for _, kind in parts),
        searched=found,
        least=round(1000 * min_rare_words),
    )


def _segments(items: tuple[Item, ...]) -> tuple[list[tuple[str, int]], list[tuple[int, str]]]:
    """((text, number of its part) of all texts, (number of its item, kind) of all parts).

    A question of a few words is searched with the choices, or else the answer, behind it.
    """
    texts: list[tuple[str, int]] = []
    parts: list[tuple[int, str]] = []
    for number, item in enumerate(items):
        joined = [list(part.texts) for part in item.parts]
        _, starts = hash_words(pa.array([text for held in joined for text in held], pa.string()))
        longest = np.maximum.reduceat(np.diff(starts), np.cumsum([0, *map(len, joined[:-1])]))
        asks = next((i for i, part in enumerate(item.parts) if part.kind == "question"), None)
        if asks is not None and longest[asks] < _NGRAM_WORDS:
            more = [i for kind in ("choices", "answer", "other") for i, p in enumerate(item.parts) if p.kind == kind]
            behind = [" ".join(joined[i]) for i in more[:1]]
            joined[asks] = [" ".join([*joined[asks], *behind])]
        for part, held in zip(item.parts, joined, strict=True):
            texts += [(text, len(parts)) for text in held]
            parts.append((number, part.kind))
    return texts, parts


# Overlap, any: the different n-grams of a prompt and of an answer.


@dataclass(frozen=True, slots=True)
class OverlapIndex:
    """The n-grams of all items. Item i has the parts 2i (prompt) and 2i + 1 (answer)."""

    grams: GramTable
    """Its holders are items."""
    parts: NDArray[np.int64]
    """The same, as parts."""
    held: NDArray[np.int64]
    """By part: the number of its different n-grams; 0 for a part with too few words."""
    searched: NDArray[np.bool_]

    def search(self, words: NDArray[np.uint64], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Text, item, part, share, first and last word of each match."""
        from datakit.filter import _kernels_lookup

        table = self.grams
        rows, keys, places = _kernels_lookup.find(words, starts, table.lengths, table.slots, table.numbers)
        parts = np.diff(table.starts)[keys]
        hit = np.repeat(np.arange(len(keys)), parts)
        of = self.parts[np.repeat(table.starts[keys] - np.cumsum(parts) + parts, parts) + np.arange(parts.sum())]
        pair = rows[hit] * len(self.held) + of
        order = np.lexsort((keys[hit], pair))
        pair, key, place = pair[order], keys[hit][order], places[hit][order]
        new = np.append(True, (pair[1:] != pair[:-1]) | (key[1:] != key[:-1]))[: len(pair)]
        begins = np.flatnonzero(np.append(True, pair[1:] != pair[:-1])[: len(pair)])
        if not len(begins):
            return tuple(np.empty(0, np.int64) for _ in range(6))
        count = np.add.reduceat(new.astype(np.int64), begins)
        first = np.minimum.reduceat(place, begins)
        last = np.maximum.reduceat(place + table.sizes[key], begins) - 1
        text, part = np.divmod(pair[begins], len(self.held))
        share = np.maximum(1, np.round(1000 * count / self.held[part]).astype(np.int64))
        return text, part // 2, part % 2, share, first, last


@functools.lru_cache(maxsize=4)
def overlap_index(sets: EvaluationSets, words: int, short_words: int) -> OverlapIndex:
    """The index of evaluation sets: n-grams of `words` words, of `short_words` in parts with fewer words."""
    from datakit.filter import _kernels_lookup

    items = sets.items
    texts = [text for item in items for text in _prompt_and_answer(item)]
    hashes, starts = hash_words(pa.array(texts, pa.string()))
    sizes = np.where(np.diff(starts) >= words, words, short_words)
    grams = [
        np.unique(_kernels_lookup.rolling(hashes[begin:end], size))
        for (begin, end), size in zip(pairwise(starts.tolist()), sizes.tolist(), strict=True)
    ]
    held = np.array([len(g) for g in grams], np.int64)
    part = np.repeat(np.arange(len(grams)), held)
    table, order = _gram_table(np.concatenate([*grams, np.empty(0, np.uint64)]), np.repeat(sizes, held), part // 2)
    return OverlapIndex(table, part[order], held, (held[::2] > 0) | (held[1::2] > 0))


def _prompt_and_answer(item: Item) -> tuple[str, str]:
    texts = {
        kind: "\n".join(t for p in item.parts if p.kind == kind for t in p.texts) for kind in ("question", "answer")
    }
    return texts["question"], texts["answer"]
