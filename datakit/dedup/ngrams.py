"""N-grams of earlier rows, kept in a Bloom filter (BFF, of DataComp-LM: Li et al. 2024): mostly known text is removed.

BFF cuts a line if 80% of its 13-grams are known, drops a document if 80% of all are ("old-both"), and adds the rest to
the filter. This stage does the same, with these differences:
- a row is compared with the rows before it. Its own n-grams are added once, after it is decided: no n-gram counts
  against the row that brought it.
- rows are processed in the order of their keys, and only what stays is added. So the result does not depend on the
  number of workers, and what is dropped can still be read in kept rows (except for false positives of the filter).
- all n-grams of a row count for its share, also those that cross line ends: BFF judges a page of short lines by the few
  long ones.
- words are dedup's (`text.words`): CJK, Thai and others have no spaces to split at.
- what has fewer words than an n-gram is not compared.
- the n-grams of prompt, chosen and rejected differ: a pair whose answers changed places is new.

A filter knows that it has seen an n-gram, not where: these drops name no other row. The size of the filter is computed
from the number of n-grams. The manifest has the requested rate of false positives, and the rate measured at the end.

The filter is a blocked Bloom filter. Keys fall into blocks at random, so a block of a filter with c bits per key holds
a Poisson-distributed number of them, with mean 512 / c, and a block with i keys takes a new one for known with
probability (1 - (1 - 1/512)^(ki))^k (Putze, Sanders, Singler 2007, section 3). A filter without blocks would need fewer
bits, but would read k cache lines per key.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.config import option
from datakit.data import compared_fields, row_chunks, string_buffers
from datakit.dedup.exact import Memory
from datakit.dedup.index import AllRows, index_rows, open_all
from datakit.dedup.repeats import (
    CHECK_CUTS,
    MIN_ALARM_WORDS,
    Cut,
    CuttingConfig,
    CuttingStage,
    Unit,
    Units,
    cut_decided,
    decisions_about,
    find_units,
    list_column,
    list_starts,
    list_values,
    units_cut,
    whole_runs,
    with_values,
    words_of,
)
from datakit.dedup.stage import at_least, exact_ratio, source_column, text_bytes, write_decisions
from datakit.errors import ConfigError, UsageError
from datakit.stage import Losses

BLOCK_BITS = 512
"""Bits of a block, a cache line; the kernels have the same number."""

PROBES = 1 << 20
"""Hashes that the rate of false positives is measured with."""

_MAX_HASHES = 32
_WORD_BYTES = 5  # of English text per word, a low guess: each word begins one n-gram
_CHUNK_BYTES = 1 << 20
_SALTS = np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, kw_only=True, slots=True)
class NgramsConfig(CuttingConfig):
    """Rows, and lines or paragraphs of texts, whose n-grams occur in earlier rows are dropped and cut."""

    ngram_words: int = option(13, "words in an n-gram")
    threshold: float = option(0.8, "least share of n-grams that occur in earlier rows")
    remove: Literal["auto", "document", "parts", "both"] = option(
        "auto", "whole rows, parts of their texts, or either as its share is; auto: both for texts, else document"
    )
    part: Literal["line", "paragraph"] = option("line", "what is cut, where the n-grams within it are known")
    on: Literal["all", "prompt", "answer"] = option("all", "the part of a conversation or preference pair to compare")
    false_positive_rate: float = option(0.001, "share of new n-grams that the full filter takes for known ones")

    def __post_init__(self) -> None:
        CuttingConfig.__post_init__(self)
        at_least(1, self, "ngram_words")
        exact_ratio(self.threshold)
        if not 1e-9 <= self.false_positive_rate <= 0.5:
            raise ConfigError(f"false_positive_rate must lie in [1e-9, 0.5], found {self.false_positive_rate}")


# Texts as the n-grams of their words.


class TextParts(NamedTuple):
    """The parts of row i have `words[part_starts[i]:part_starts[i + 1]]` words each (uint32). Its n-grams (uint64), one
    for each word that enough words follow, are `hashes[hash_starts[i]:hash_starts[i + 1]]`.
    """

    part_starts: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint32]
    hash_starts: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]


def hash_ngrams(texts: pa.Array, part: Unit | None, ngram_words: int) -> TextParts:
    """Hash every `ngram_words` consecutive words of each text; with `part` None a text is one part."""
    from datakit.dedup import _kernels_ngrams as kernels
    from datakit.text.words import compose

    data, offsets = string_buffers(compose(texts))
    words, parts = [np.empty(0, np.uint32)], [np.empty(0, np.int64)]
    hashes, sizes = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for begin, end in row_chunks(offsets, _CHUNK_BYTES):
        chunk = offsets[begin : end + 1]
        units = find_units(data, chunk, part) if part else Units(chunk[:-1], chunk[1:], np.arange(len(chunk)))
        of_word, word_starts = words_of(data, chunk, units)
        found, starts = np.empty(len(of_word) + 1, np.uint64), np.empty_like(chunk)
        kernels.hash_ngrams(of_word, word_starts[units.row_starts], ngram_words, found, starts)
        words.append(np.diff(word_starts).astype(np.uint32))
        parts.append(np.diff(units.row_starts))
        hashes.append(found[: starts[-1]].copy())
        sizes.append(np.diff(starts))
    part_starts, hash_starts = (np.concatenate(([0], np.cumsum(np.concatenate(n)))) for n in (parts, sizes))
    return TextParts(part_starts, np.concatenate(words), hash_starts, np.concatenate(hashes))


def hash_fields(texts: Sequence[pa.Array], ngram_words: int) -> TextParts:
    """The n-grams of each field of a row (prompt, chosen, rejected), different for each field; a row is one part."""
    found = [hash_ngrams(text, None, ngram_words) for text in texts]
    if len(found) == 1:
        return found[0]
    rows = [np.repeat(np.arange(len(one.words)), np.diff(one.hash_starts)) for one in found]
    hashes = np.concatenate([one.hashes ^ salt for one, salt in zip(found, _SALTS, strict=True)])
    return TextParts(
        part_starts=found[0].part_starts,
        words=np.sum([one.words for one in found], axis=0, dtype=np.uint32),
        hash_starts=np.sum([one.hash_starts for one in found], axis=0, dtype=np.int64),
        hashes=hashes[np.argsort(np.concatenate(rows), kind="stable")],
    )


# The Bloom filter: how large it must be, and how often it is wrong.


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """A blocked Bloom filter: `bits` uint64, eight words per block."""

    bits: npt.NDArray[np.uint64]
    num_hashes: int

    def measured_rate(self) -> float:
        """Share of `PROBES` hashes, none of them inserted, that the filter takes for known."""
        from datakit.dedup import _kernels_ngrams as kernels

        probes = np.empty(PROBES, np.uint64)
        kernels.fresh_hashes(1, probes)
        found: int = kernels.contains(self.bits, probes, self.num_hashes, np.empty(PROBES, np.bool_))
        return found / PROBES


def false_positive_rate(bits_per_key: float, num_hashes: int) -> float:
    """The expected share of new keys that a filter with so many bits for each key takes for known."""
    mean, total, chance = BLOCK_BITS / bits_per_key, 0.0, 0.0
    keys = 0
    while total < 1 - 1e-15 and keys < 10 * mean + 100:
        weight = math.exp(keys * math.log(mean) - mean - math.lgamma(keys + 1))
        chance += weight * (1 - (1 - 1 / BLOCK_BITS) ** (num_hashes * keys)) ** num_hashes
        total += weight
        keys += 1
    return chance


@lru_cache(maxsize=16)
def best_size(rate: float) -> tuple[float, int]:
    """(bits per key, hashes per key) of the smallest filter whose rate of false positives is at most `rate`."""
    best = (math.inf, 0)
    for num_hashes in range(1, _MAX_HASHES + 1):
        low, high = 0.5, min(best[0], 512.0)
        if false_positive_rate(high, num_hashes) > rate:
            continue
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if false_positive_rate(middle, num_hashes) <= rate else (middle, high)
        best = min(best, (high, num_hashes))
    return best


def filter_bytes(keys: int, rate: float) -> int:
    """Bytes of a filter for so many keys."""
    return (math.ceil(keys * best_size(rate)[0] / BLOCK_BITS) + 1) * BLOCK_BITS // 8


def make_filter(keys: int, rate: float, memory: Memory) -> BloomFilter:
    """An empty filter for so many keys; in memory if it fits into it, else in a file (correct, but slow)."""
    size = filter_bytes(keys, rate)
    words = size // 8
    bits = np.zeros(words, np.uint64) if size <= memory.bytes else memory.full((words,), 0, np.uint64)
    return BloomFilter(bits, best_size(rate)[1])


# The stage.


class Rules(NamedTuple):
    """What decides about a row, for the kernel: numerator / denominator is the threshold."""

    ngram_words: int
    numerator: int
    denominator: int
    cuts_parts: bool
    drops_rows: bool
    min_words_left: int


@dataclass(frozen=True)
class DedupNgrams(CuttingStage):
    """Drops rows, and cuts parts of texts, that consist of known n-grams; the reason is `duplicate_ngrams`."""

    config: NgramsConfig = field(default_factory=NgramsConfig)

    name: ClassVar[str] = "dedup_ngrams"
    help: ClassVar[str] = "A Bloom filter stores the n-grams of earlier rows. Texts that are cut are recorded in cuts/."
    Config: ClassVar[type] = NgramsConfig
    probe_kinds: ClassVar[tuple[str, ...]] = ("document", "conversation", "preference")

    @property
    def unit(self) -> Unit:
        """Line or paragraph."""
        return self.config.part

    def cut(self, texts: pa.Array, changed: pa.RecordBatch) -> Cut:
        """Cut lines or paragraphs."""
        return cut_decided(texts, self.unit, changed)

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind, with what `remove = "auto"` means for them in its config.

        Raises:
            UsageError: parts would be cut out of conversations or preference pairs.
        """
        if self.config.remove == "auto":
            settled: Literal["both", "document"] = "both" if kind == "document" else "document"
            return replace(self, config=replace(self.config, remove=settled))
        if kind != "document" and self.config.remove != "document":
            raise UsageError(
                f'{self.name}: remove = "{self.config.remove}" cuts {self.unit}s out of texts, and these rows are of '
                f'the kind {kind}; set remove = "document", which drops them whole'
            )
        return self

    def forecast(self, shards: Sequence[Path]) -> str:
        """The disk space for the n-grams of these shards, and the memory for the filter."""
        rows, size = text_bytes(shards)
        ngrams = size // _WORD_BYTES
        need = filter_bytes(ngrams, self.config.false_positive_rate)
        where = "memory" if need <= self.config.memory_mb << 20 else "disk (more than memory_mb: slow)"
        return (
            f"{rows:,} rows, at most about {8 * ngrams / 1e6:,.0f} MB of disk for their n-grams, and "
            f"{need / 1e6:,.0f} MB of {where} for the filter{self.forecast_earlier()}"
        )

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, `source`; the `hashes` of the n-grams of each row, and the `words` of its parts."""
        config, texts = self.config, compared_fields(batch, self.config.on, include_calls=True)
        whole = config.remove == "document"
        parts = (
            hash_fields(texts, config.ngram_words) if whole else hash_ngrams(texts[0], config.part, config.ngram_words)
        )
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source_column(batch),
                "words": list_column(parts.words, parts.part_starts),
                "hashes": list_column(parts.hashes, parts.hash_starts),
            }
        )

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """Of each kept row in a batch of sketches the `hashes` of the n-grams that were added to the filter.

        The filter itself would be smaller, but no row could be removed from it.
        """
        decided, parts = self.look_up(sketches.column("row_key")), list_starts(sketches, "words")
        in_part = list_values(sketches, "words").astype(np.int64)
        of_words = np.concatenate(([0], np.cumsum(in_part)))[parts]
        cut = np.repeat(units_cut(decided, parts), in_part)
        whole = whole_runs(cut, of_words, list_starts(sketches, "hashes"), self.config.ngram_words)
        made = with_values(sketches.drop_columns(["words"]), "hashes", whole)
        return index_rows(made, decided.column("reason").is_null())

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write what is cut and dropped to `out`; returns counts, the filter's rates and alarms.

        Raises:
            IntegrityError: an index is damaged.
        """
        memory = Memory(self.config.memory_mb << 20, out.parent)
        rows, losses = open_all(sketches, self.earlier, memory, workers), Losses("words")
        of_batches = [len(list_values(batch, "hashes")) for batch in rows.batches]
        made = make_filter(sum(of_batches), self.config.false_positive_rate, memory)
        counts = {"ngrams": sum(of_batches[n] for n in rows.new), "ngrams_inserted": 0, "ngrams_known": 0}
        counts |= {"ngrams_of_earlier_runs": self._insert_earlier(rows, made)} if self.earlier else {}
        write_decisions(out, self._decide_all(rows, made, losses, counts))
        known = counts["ngrams_inserted"] + counts.get("ngrams_of_earlier_runs", 0)
        expected = false_positive_rate(made.bits.nbytes * 8 / known, made.num_hashes) if known else 0.0
        return counts | {
            "words": losses.whole.total(),
            "words_lost": losses.lost.total(),
            "filter": {
                "bytes": made.bits.nbytes,
                "hashes": made.num_hashes,
                "false_positive_rate": self.config.false_positive_rate,
                "false_positive_rate_expected": round(expected, 9),
                "false_positive_rate_measured": round(made.measured_rate(), 9),
                "probes": PROBES,
            },
            "alarms": losses.alarms(self.config.max_loss, MIN_ALARM_WORDS, CHECK_CUTS),
        }

    def _insert_earlier(self, rows: AllRows, made: BloomFilter) -> int:
        """Add the n-grams of the earlier runs' rows; returns how many."""
        from datakit.dedup import _kernels_ngrams as kernels

        added = 0
        for batch, begin in zip(rows.batches[: rows.new.start], rows.begins, strict=False):
            hashes = list_values(batch, "hashes")
            gone = ~rows.live[begin : begin + batch.num_rows]
            if gone.any():
                hashes = hashes[~np.repeat(gone, np.diff(list_starts(batch, "hashes")))]
            hashes.setflags(write=False)  # as those of a batch are, so that the kernel is compiled once
            kernels.insert(made.bits, hashes, made.num_hashes)
            added += len(hashes)
        return added

    def _decide_all(
        self, rows: AllRows, made: BloomFilter, losses: Losses, counts: dict[str, int]
    ) -> Iterator[pa.RecordBatch]:
        """The decisions, batch by batch in the order of the rows: each row adds to the filter."""
        from datakit.dedup import _kernels_ngrams as kernels

        config, least = self.config, exact_ratio(self.config.threshold)
        cuts_parts, drops_rows = config.remove in ("parts", "both"), config.remove in ("document", "both")
        rules = Rules(
            config.ngram_words, least.numerator, least.denominator, cuts_parts, drops_rows, config.min_words_left
        )
        for batch in rows.batches[rows.new.start :]:
            parts = TextParts(
                list_starts(batch, "words"), list_values(batch, "words"),
                list_starts(batch, "hashes"), list_values(batch, "hashes"),
            )  # fmt: skip
            is_known = np.empty(np.diff(parts.hash_starts).max(initial=0), np.bool_)
            cut, dropped = np.zeros(len(parts.words), np.bool_), np.zeros(batch.num_rows, np.uint8)
            known = np.zeros(batch.num_rows, np.int64)
            counts["ngrams_inserted"] += kernels.decide_rows(
                made.bits, made.num_hashes, rules, parts, is_known, cut, dropped, known
            )
            counts["ngrams_known"] += int(known.sum())
            yield self._decided(batch, parts, cut, dropped, known, losses)

    def _decided(
        self,
        batch: pa.RecordBatch,
        parts: TextParts,
        cut: npt.NDArray[np.bool_],
        dropped: npt.NDArray[np.uint8],
        known: npt.NDArray[np.int64],
        losses: Losses,
    ) -> pa.RecordBatch:
        row_of = np.repeat(np.arange(batch.num_rows), np.diff(parts.part_starts))
        in_row, left = (
            np.bincount(row_of, weight, batch.num_rows).astype(np.int64)
            for weight in (parts.words, np.where(cut, 0, parts.words))
        )
        losses.add(batch.column("source"), in_row, in_row - np.where(dropped > 0, 0, left))
        ngrams = np.diff(parts.hash_starts)

        def detail(row: int) -> str:
            few = f", {left[row]} words would be left" if dropped[row] == 2 else ""
            return f"{known[row]} of its {ngrams[row]} {self.config.ngram_words}-grams stand before it{few}"

        cut = cut & (dropped[row_of] == 0)
        key = batch.column("row_key")
        return decisions_about(key, "duplicate_ngrams", dropped > 0, parts.part_starts, cut, detail)[0]
