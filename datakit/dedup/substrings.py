"""Passages that occur again, wherever they begin: every occurrence but the first is cut (Lee et al., 2022).

Lee et al. build a suffix array over the whole text and remove every repeated substring of at least 50 tokens. Here a
window is `min_tokens` consecutive tokens (words as dedup compares them, or the ids of a tokenizer). A token is cut if
it lies in a window that equals one which begins earlier, in row order and then position, and stays whole: no token of
that earlier window is cut, and its row is not dropped. So everything that is cut can still be read, at least a window
of it at a time, in the row that is named. Of a passage that repeats itself within its own length, the first
`min_tokens` tokens stay.

A suffix array needs 5 to 9 bytes of memory for every byte of text, and all text at one time. Winnowing (Schleimer,
Wilkerson, Aiken 2003) needs neither and misses nothing:

1. Each row is sketched by itself: of every window the run of `min_tokens / 2` tokens in it with the least hash is its
   anchor. Equal windows have equal anchors, and neighbouring windows mostly share theirs: about one token in thirteen
   begins an anchor.
2. A window whose anchor occurs once in the data occurs once. Only windows of repeated anchors are looked at again: they
   are hashed whole (64 bits) from the tokens in the sketch, and sorted in ranges that fit into `memory_mb`.
3. One pass over the tokens in such windows, in row order, decides what is cut.

Words are kept as 32 bits of their hashes: two different windows with one anchor are taken for equal with a probability
of 2^-32 at most.
"""

import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import row_chunks, string_array, string_buffers
from datakit.dedup.exact import Memory, SketchRows, in_range
from datakit.dedup.index import AllRows, without_unneeded
from datakit.dedup.repeats import (
    CHECK_CUTS,
    MIN_ALARM_WORDS,
    Cut,
    CuttingConfig,
    CuttingStage,
    flags,
    groups_of_equals,
    list_column,
    list_starts,
    list_values,
    most_of,
    number_type,
)
from datakit.dedup.sharing import SharedRows, SharingStage
from datakit.dedup.stage import at_least, frequent_survivors, source_column, text_bytes, write_decisions
from datakit.stage import Losses
from datakit.text.ids import open_tokenizer, tokenizer_digest
from datakit.text.words import character_table, compose, hash_words_in, may_not_be_nfc

_CHUNK_BYTES = 1 << 20
_WORD_BYTES = 5  # of English text per word, a low guess
_TOKEN_BYTES = 6  # in the sketch of a token: itself, and its share of an anchor


@dataclass(frozen=True, kw_only=True, slots=True)
class SubstringsConfig(CuttingConfig):
    """Passages that stand in an earlier row, or earlier in their row, are cut out of the text."""

    min_tokens: int = option(50, "tokens of the shortest passage that is cut")
    tokenizer: str = option("", "a tokenizer.json whose ids are the tokens; none: words", path=True)

    def __post_init__(self) -> None:
        CuttingConfig.__post_init__(self)
        at_least(2, self, "min_tokens")


# Texts as tokens.


class TokenRows(NamedTuple):
    """Tokens (uint64 hashes, or ids) of several rows: those of row i are `[row_starts[i], row_starts[i + 1])`."""

    values: npt.NDArray[np.uint64]
    row_starts: npt.NDArray[np.int64]


class Bounds(NamedTuple):
    """The bytes of a string array's buffer where tokens begin and end; int64 each, numbered as in `TokenRows`."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    row_starts: npt.NDArray[np.int64]


def word_tokens(texts: pa.Array) -> pa.Array:
    """The texts whose words are the tokens: in NFC, unless a text has fewer words then.

    (Kana with a separate voicing mark are two words that NFC makes one.) So word n of what is compared is word n of the
    text as it is, where it is cut.
    """
    composed = compose(texts)
    if composed is texts:
        return texts
    table, (data, offsets) = character_table(), string_buffers(texts)
    suspect = np.flatnonzero(may_not_be_nfc(data, offsets, table.pages, table.entries))
    one, other = (texts.take(pa.array(suspect)), composed.take(pa.array(suspect)))
    counts = [np.diff(word_bounds(array).row_starts) for array in (one, other)]
    differs = np.zeros(len(texts), np.bool_)
    differs[suspect] = counts[0] != counts[1]
    return pc.if_else(pa.array(differs), texts, composed)


def word_bounds(texts: pa.Array) -> Bounds:
    """Where the words of texts lie."""
    from datakit.dedup import _kernels_substrings as kernels

    data, offsets = string_buffers(texts)
    table = character_table()
    starts, ends = np.empty(len(data) + 1, np.int64), np.empty(len(data) + 1, np.int64)
    row_starts = np.empty_like(offsets)
    kernels.word_bounds(data, offsets, table.pages, table.entries, starts, ends, row_starts)
    return Bounds(starts[: row_starts[-1]], ends[: row_starts[-1]], row_starts)


def id_tokens(texts: pa.Array, tokenizer: str) -> TokenRows:
    """The ids of texts, without special tokens."""
    found = open_tokenizer(tokenizer).encode_batch_fast(texts.to_pylist(), add_special_tokens=False)
    ids = [np.array(one.ids, np.uint64) for one in found]
    starts = np.concatenate(([0], np.cumsum([len(one) for one in ids], dtype=np.int64)))
    return TokenRows(np.concatenate([np.empty(0, np.uint64), *ids]), starts)


def words_within(texts: pa.Array, tokenizer: str, runs: "Runs", words: Bounds) -> "Runs":
    """Runs of ids as runs of the words that lie in them whole: a cut ends at the boundary of a word."""
    data, offsets = string_buffers(texts)
    found = open_tokenizer(tokenizer).encode_batch(texts.to_pylist(), add_special_tokens=False)
    firsts, ends = np.empty_like(runs.firsts), np.empty_like(runs.ends)
    for row, encoding in enumerate(found):
        text = data[offsets[row] : offsets[row + 1]]
        at_character = offsets[row] + np.append(np.flatnonzero((text & 0xC0) != 0x80), len(text))
        bounds = at_character[np.array(encoding.offsets, np.int64).reshape(-1, 2)]
        low, high = words.row_starts[row : row + 2]
        part = slice(runs.row_starts[row], runs.row_starts[row + 1])
        begins, stops = bounds[runs.firsts[part], 0], bounds[runs.ends[part] - 1, 1]
        firsts[part] = np.searchsorted(words.starts[low:high], begins)
        ends[part] = np.searchsorted(words.ends[low:high], stops, side="right")
    return Runs(firsts, np.maximum(ends, firsts), runs.row_starts)


# From all sketches to what is cut.


class Runs(NamedTuple):
    """Runs of tokens that are cut: token `firsts[k]` up to `ends[k]` of its row; those of row i are numbered from
    `row_starts[i]` on. int64 each.
    """

    firsts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    row_starts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Passages:
    """The tokens that lie in windows of repeated anchors, and what is decided about them.

    Those of row i are `[row_starts[i], row_starts[i + 1])`. `token_of` int32: their numbers in the row. `found`: the
    number of the row that a cut token stays in, -1 where it is not cut. `tokens` int64 (rows,): how many each row has.
    `dropped` bool (rows,).
    """

    row_starts: npt.NDArray[np.int64]
    token_of: npt.NDArray[np.int32]
    found: npt.NDArray[Any]
    tokens: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.bool_]
    facts: dict[str, Any]


def find_passages(rows: AllRows, size: int, min_left: int, memory: Memory, workers: int) -> Passages:
    """Compare the sketches of all rows, which have the columns `tokens`, `anchors` and `firsts`.

    The rows of indexes come first: they are texts between what was cut, and nothing is cut out of them.
    """
    from datakit.dedup import _kernels_substrings as kernels
    from datakit.dedup._kernels_repeats import settle

    chosen, repeated = _repeated_anchors(rows, memory)
    lengths, counts = (memory.full((len(rows),), 0, np.int64) for _ in range(2))
    parts = list(zip(rows.batches, rows.begins, rows.begins[1:], chosen, strict=False))
    for batch, begin, end, mask in parts:
        lengths[begin:end] = np.diff(list_starts(batch, "tokens"))
        starts, firsts = list_starts(batch, "anchors"), list_values(batch, "firsts")
        kernels.count_candidates(starts, firsts, mask, lengths[begin:end], size, counts[begin:end])
    row_starts = memory.keep(np.concatenate(([0], np.cumsum(counts))))
    total = int(row_starts[-1])
    token_of, hashes = memory.full((total,), 0, np.int32), memory.full((total,), 0, np.uint64)

    def hash_one(part: Any) -> None:
        batch, begin, end, mask = part
        at = slice(row_starts[begin], row_starts[end])
        kernels.hash_candidates(
            list_starts(batch, "anchors"), list_values(batch, "firsts"), mask, lengths[begin:end],
            list_values(batch, "tokens"), list_starts(batch, "tokens"), size, token_of[at], hashes[at],
        )  # fmt: skip
        memory.release()

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(hash_one, parts))
    begins = row_starts[rows.begins]
    slices = [hashes[low:high] for low, high in pairwise(begins)]
    groups, windows, compared = groups_of_equals(slices, begins, memory, workers)
    owner = memory.full((windows,), -1, number_type(len(rows)))
    found = memory.full((total,), -1, number_type(len(rows)))
    dropped = np.zeros(len(rows), np.bool_)
    settle(row_starts, groups, rows.live, _first_of_texts(rows), owner)
    kernels.choose(row_starts, lengths, groups, size, min_left, rows.old, owner, found, dropped)
    facts = {"anchors_repeated": repeated, "windows_compared": compared, "windows_repeated": windows}
    return Passages(row_starts, token_of, found, lengths, dropped, facts)


def _first_of_texts(rows: AllRows) -> npt.NDArray[np.int64]:
    """For each row of an index the first of those that are of the same text, int64 (old,)."""
    first = np.arange(rows.old)
    for batch, begin in zip(rows.batches[: rows.new.start], rows.begins, strict=False):
        keys = batch.column("row_key").to_numpy()
        first[begin + 1 : begin + len(keys)][keys[1:] == keys[:-1]] = 0
    return np.maximum.accumulate(first)


def _repeated_anchors(rows: SketchRows, memory: Memory) -> tuple[list[npt.NDArray[np.bool_]], int]:
    """(for the anchors of each batch whether they occur more than once in all rows; how many do)."""
    from datakit.dedup.minhash import repeated_hashes

    found = [list_values(batch, "anchors") for batch in rows.batches]
    begins = np.cumsum([0, *map(len, found)])
    hashes = memory.full((int(begins[-1]),), 0, np.uint64)
    for values, begin in zip(found, begins, strict=False):
        hashes[begin : begin + len(values)] = values
    suspects = repeated_hashes(hashes, memory)
    taken, chosen = memory.take(hashes, suspects), memory.full((len(hashes),), 0, np.bool_)
    ranges, repeated = memory.ranges(len(suspects) * 32), 0
    for part in range(ranges):
        places = in_range(taken, part, ranges)
        order = np.argsort(taken[places])
        places = places[order]
        ordered = taken[places]
        same = np.zeros(len(ordered) + 1, np.bool_)
        same[1:-1] = ordered[1:] == ordered[:-1]
        twice = same[1:] | same[:-1]
        chosen[suspects[places[twice]]] = True
        repeated += int(twice.sum())
    masks = [chosen[begin:end] for begin, end in pairwise(begins)]
    return masks, repeated


# The stage.


@dataclass(frozen=True)
class DedupSubstrings(SharingStage, CuttingStage):
    """Cuts passages that stand earlier; rows that keep too little are dropped as `duplicate_substrings`."""

    config: SubstringsConfig = field(default_factory=SubstringsConfig)

    name: ClassVar[str] = "dedup_substrings"
    help: ClassVar[str] = "Passages may begin and end within a line. The cut text is recorded in cuts/."
    Config: ClassVar[type] = SubstringsConfig

    @property
    def unit(self) -> str:
        """What is cut."""
        return "passage"

    @property
    def _token(self) -> str:
        return "token" if self.config.tokenizer else "word"

    def resources(self) -> dict[str, Any]:
        """The Unicode version of words, the tokenizer, and the earlier runs."""
        if not self.config.tokenizer:
            return super().resources()
        return super().resources() | {"tokenizer": tokenizer_digest(self.config.tokenizer)}

    def forecast(self, shards: Sequence[Path]) -> str:
        """The disk space for the tokens of these shards."""
        rows, size = text_bytes(shards)
        disk = size // _WORD_BYTES * _TOKEN_BYTES
        return (
            f"{rows:,} rows, about {disk / 1e6:,.0f} MB of disk for their {self._token}s, and more for what is repeated"
            f"{self.forecast_earlier()}"
        )

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, `source`; the `tokens` (uint32) of each row, the hashes of its `anchors`, and `firsts`, the
        first window that has each."""
        texts = batch.column("text")
        texts = texts if self.config.tokenizer else word_tokens(texts)
        offsets = string_buffers(texts)[1]
        tokens, counts = [np.empty(0, np.uint32)], [np.zeros(1, np.int64)]
        for begin, end in row_chunks(offsets, _CHUNK_BYTES):
            found = self._tokens(texts.slice(begin, end - begin))
            tokens.append(found.values.astype(np.uint32))
            counts.append(np.diff(found.row_starts))
        columns = self._with_anchors(np.concatenate(tokens), np.cumsum(np.concatenate(counts)))
        head = {"row_key": batch.column("row_key"), "id": batch.column("id"), "source": source_column(batch)}
        return pa.record_batch(head | columns)

    def _with_anchors(self, tokens: npt.NDArray[np.uint32], starts: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """The columns `tokens`, `anchors` and `firsts` of rows of tokens."""
        from datakit.dedup import _kernels_substrings as kernels

        size = self.config.min_tokens
        hashes, firsts = np.empty(len(tokens), np.uint64), np.empty(len(tokens), np.uint32)
        ends = np.empty_like(starts)
        kernels.winnow(tokens, starts, size, max(size // 2, 1), hashes, firsts, ends)
        return {
            "tokens": list_column(tokens, starts),
            "anchors": list_column(hashes[: ends[-1]].copy(), ends),
            "firsts": list_column(firsts[: ends[-1]].copy(), ends),
        }

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """Of each kept row in a batch of sketches what lies between its cuts and holds a window, each as a row.

        A row without any has one without tokens. Equal windows have equal anchors, so these are made anew.
        """
        decided, tokens = self.look_up(sketches.column("row_key")), list_values(sketches, "tokens")
        stays = decided.column("reason").is_null().to_numpy(zero_copy_only=False)
        starts = list_starts(sketches, "tokens")
        counts = pc.fill_null(pc.list_value_length(decided.column("cut")), 0).to_numpy(zero_copy_only=False)
        cut_starts = np.concatenate(([0], np.cumsum(counts)))
        firsts, ends = (
            decided.column(name).flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            for name in ("cut", "cut_end")
        )
        begins = np.insert(ends, cut_starts[:-1], 0)  # a text begins with its row, and behind each cut
        ends = np.insert(firsts, cut_starts[1:], np.diff(starts))
        row_of = np.repeat(np.arange(len(stays)), counts + 1)
        long = ends - begins >= self.config.min_tokens
        alone = np.zeros(len(row_of), np.bool_)
        alone[cut_starts[:-1] + np.arange(len(stays))] = np.bincount(row_of[long], minlength=len(stays)) == 0
        chosen = (long | alone) & stays[row_of]
        begins, row_of, lengths = begins[chosen], row_of[chosen], np.where(long, ends - begins, 0)[chosen]
        made = np.concatenate(([0], np.cumsum(lengths)))
        at = np.arange(made[-1]) + np.repeat(starts[row_of] + begins - made[:-1], lengths)
        head = without_unneeded(sketches.select(["row_key", "id", "source"])).take(pa.array(row_of))
        columns = dict(zip(head.schema.names, head.columns, strict=True)) | self._with_anchors(tokens[at], made)
        return pa.record_batch(columns)

    def _tokens(self, texts: pa.Array) -> TokenRows:
        if self.config.tokenizer:
            return id_tokens(texts, self.config.tokenizer)
        return TokenRows(*hash_words_in(*string_buffers(texts)))

    def values(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """The anchors: equal windows have equal ones."""
        rows = np.repeat(np.arange(batch.num_rows), np.diff(list_starts(batch, "anchors")))
        return list_values(batch, "anchors"), rows

    def amounts(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The tokens of each row."""
        return np.diff(list_starts(batch, "tokens"))

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write what is cut and dropped to `out`; returns counts and alarms.

        Raises:
            IntegrityError: an index is damaged.
        """
        memory = Memory(self.config.memory_mb << 20, out.parent)
        shared = self.shared_with(sketches, out, workers)
        rows, losses = shared.rows(memory), Losses(f"{self._token}s")
        passages = find_passages(rows, self.config.min_tokens, self.config.min_words_left, memory, workers)
        stays: npt.NDArray[np.int64] = np.zeros(len(rows), np.int64)
        write_decisions(out, (self._decide(rows, n, passages, losses, stays) for n in rows.new))
        losses.whole.update(shared.amounts())
        survivors = frequent_survivors(rows, stays)
        alarms = losses.alarms(self.config.max_loss, MIN_ALARM_WORDS, CHECK_CUTS, survivors, "passages")
        tokens = {"tokens": losses.whole.total(), "anchors": shared.values}
        return tokens | passages.facts | {"tokens_lost": losses.lost.total(), "alarms": alarms}

    def _decide(
        self, rows: SharedRows, number: int, passages: Passages, losses: Losses, stays: npt.NDArray[np.int64]
    ) -> pa.RecordBatch:
        """The decisions about one batch of sketches; `losses` counts what its sources lose, `stays` what rows still
        have of others."""
        from datakit.dedup import _kernels_substrings as kernels

        batch, begin, end = rows.batches[number], rows.begins[number], rows.begins[number + 1]
        starts = passages.row_starts[begin : end + 1]
        found, token_of = (array[starts[0] : starts[-1]] for array in (passages.found, passages.token_of))
        dropped, tokens, starts = passages.dropped[begin:end], passages.tokens[begin:end], starts - starts[0]
        counts = np.zeros(end - begin, np.int64)
        kernels.count_runs(starts, token_of, found, counts)
        firsts, ends, owners = (np.empty(counts.sum(), np.int64) for _ in range(3))
        kernels.write_runs(starts, token_of, found, firsts, ends, owners)
        row_of = np.repeat(np.arange(end - begin), counts)
        cut = np.bincount(row_of, ends - firsts, end - begin).astype(np.int64)
        losses.add(batch.column("source"), np.zeros_like(tokens), np.where(dropped, tokens, cut))
        np.add.at(stays, owners, 1)
        touched = np.flatnonzero((counts > 0) | dropped)
        kept = ~dropped[row_of]
        left = np.cumsum([0, *np.where(dropped, 0, counts)[touched]])
        lists = pa.array(left, pa.int32())
        details: Callable[[int], str] = lambda row: (  # noqa: E731
            f"{cut[row]} of its {tokens[row]} {self._token}s stand before it, {tokens[row] - cut[row]} are new"
        )
        survivor = most_of(owners, row_of, dropped, int(begin), weights=ends - firsts)
        columns = {
            "row_key": batch.column("row_key").take(pa.array(touched)),
            "reason": pa.array(["duplicate_substrings" if dropped[row] else None for row in touched], pa.string()),
            "detail": pa.array([details(row) if dropped[row] else None for row in touched.tolist()], pa.string()),
            "duplicate_of": rows.ids(survivor[touched]),
            "duplicate_in": self.versions_of(rows.among_all(survivor[touched])),
            "cut": pa.ListArray.from_arrays(lists, pa.array(firsts[kept], pa.int32())),
            "cut_end": pa.ListArray.from_arrays(lists, pa.array(ends[kept], pa.int32())),
        }
        return pa.record_batch(columns | self.kept_in(rows, owners[kept], lists))

    def cut(self, texts: pa.Array, changed: pa.RecordBatch) -> Cut:
        """Cut runs of tokens out of texts, up to the boundaries of words, with the marks that belong to them."""
        lengths = pc.list_value_length(changed.column("cut")).to_numpy(zero_copy_only=False)
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        firsts, ends = (
            changed.column(name).flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            for name in ("cut", "cut_end")
        )
        words, runs = word_bounds(texts), Runs(firsts, ends, starts)
        if self.config.tokenizer:
            runs = words_within(texts, self.config.tokenizer, runs, words)
        return cut_runs(texts, words, runs)


@lru_cache(maxsize=1)
def _marks() -> npt.NDArray[np.uint8]:
    """uint8[0x110000]: which marks open something, by Unicode's categories Ps, Pi and Pe. Read-only."""
    from datakit.dedup import _kernels_substrings as kernels

    opens = kernels.OPENING | kernels.OPENS_BRACKET
    kinds = {"Ps": opens, "Pi": kernels.OPENING, "Pe": kernels.CLOSES_BRACKET}
    table = np.zeros(0x110000, np.uint8)
    for code in range(0x10000):  # there are none beyond
        table[code] = kinds.get(unicodedata.category(chr(code)), 0)
    table[[ord(c) for c in "¿¡"]] = kernels.OPENING
    table.setflags(write=False)
    return table


def cut_runs(texts: pa.Array, words: Bounds, runs: Runs) -> Cut:
    """Cut runs of words out of texts.

    Marks between a cut word and one that stays belong to the word that they follow, up to white space or an opening
    mark. White space around a cut is treated as `cut_units` treats it.
    """
    from datakit.dedup import _kernels_repeats
    from datakit.dedup import _kernels_substrings as kernels

    data, offsets = string_buffers(texts)
    most = 3 * len(runs.firsts) + len(texts)
    starts, stops, cut = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.bool_)
    row_starts = np.empty_like(offsets)
    kernels.units_around(
        data,
        offsets,
        flags(),
        _marks(),
        words,
        runs.row_starts,
        runs.firsts,
        runs.ends,
        starts,
        stops,
        row_starts,
        cut,
    )
    size, count = offsets[-1] - offsets[0], row_starts[-1]
    kept, gone = np.empty(size, np.uint8), np.empty(size, np.uint8)
    kept_offsets, gone_offsets = np.empty_like(offsets), np.zeros(len(runs.firsts) + 1, np.int64)
    places = np.empty(len(runs.firsts), np.int64)
    units = Bounds(starts[:count], stops[:count], row_starts)
    _kernels_repeats.cut_units(
        data, offsets, flags(), units, cut[:count], kept, kept_offsets, gone, gone_offsets, places
    )
    made = string_array(kept[: kept_offsets[-1]], kept_offsets)
    return Cut(made, string_array(gone[: gone_offsets[-1]], gone_offsets), places)
