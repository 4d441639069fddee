"""N-grams of earlier rows, which a Bloom filter knows (BFF, of DataComp-LM: Li et al. 2024): what mostly has them goes.

BFF cuts a line of which 80% of the 13-grams are known, drops a document where 80% of all are ("old-both"), and makes
the rest known. Ours does the same, with these differences:
- a row is held against the rows before it, and becomes known whole and once, after it is decided: no n-gram counts
  against the row that brought it.
- rows are gone through in the order of their keys, and only what stays becomes known: the result is one, whatever the
  workers, and what is dropped can still be read in rows that stay (but for the filter's false positives).
- all n-grams of a row count for its share, also those that reach from one line into the next: BFF judges a page of
  short lines by the few long ones.
- words are dedup's (`text.words`): CJK, Thai and others have no spaces to split at.
- what has fewer words than an n-gram is not compared.
- the n-grams of prompt, chosen and rejected are told apart: a pair whose answers changed places is new.

A filter knows that it has seen an n-gram, not where: what goes names no row. The filter's size is computed from the
n-grams there are; the manifest has the rate that was asked for, and the one measured at the end.

How large a blocked Bloom filter must be, and how often it is wrong.

Keys fall into blocks at random, so a block of a filter with c bits a key holds a Poisson-distributed number of them,
with mean 512 / c, and a block with i keys takes a new one for known with probability (1 - (1 - 1/512)^(ki))^k (Putze,
Sanders, Singler 2007, section 3). A filter of one piece would need fewer bits, and touch k cache lines a key.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.config import option
from datakit.data import sides
from datakit.dedup.exact import Memory, Rows, lists, open_rows, starts, values
from datakit.dedup.repeats import Cutting, Unit, Units, find_units, words_of
from datakit.dedup.stage import MEMORY, SOURCE_LOSS, Losses, check_values, decided, source, text_bytes, write
from datakit.errors import ConfigError, UsageError
from datakit.native import Kernels
from datakit.text.characters import row_chunks, string_buffers
from datakit.text.normal_form import compose

_kernels = Kernels("datakit.dedup._kernels_ngrams")


@dataclass(frozen=True, kw_only=True, slots=True)
class NgramsConfig:
    """Rows, and lines or paragraphs of texts, whose n-grams stand in earlier rows are dropped and cut."""

    ngram_words: int = option(13, "words in an n-gram")
    threshold: float = option(0.8, "least share of n-grams that stand in earlier rows")
    remove: Literal["auto", "document", "parts", "both"] = option(
        "auto", "rows whole, parts of their texts, or either as its share is; auto: both for texts, else document"
    )
    part: Literal["line", "paragraph"] = option("line", "what is cut, where the n-grams within it are known")
    on: Literal["all", "prompt", "answer"] = option("all", "the part of a conversation or preference pair to compare")
    false_positive_rate: float = option(0.001, "share of new n-grams that the full filter takes for known ones")
    min_words_left: int = option(50, "drop a row that was cut and keeps fewer words than this")
    max_source_loss: float = option(0.75, SOURCE_LOSS)
    memory_mb: int = option(1024, MEMORY, result=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold <= 1.0 or round(self.threshold, 3) != self.threshold:
            raise ConfigError(f"threshold must lie in (0, 1], with at most three decimals; found {self.threshold}")
        if not 1e-9 <= self.false_positive_rate <= 0.5:
            raise ConfigError(f"false_positive_rate must lie in [1e-9, 0.5], found {self.false_positive_rate}")
        check_values(self)

    @property
    def least(self) -> Fraction:
        """The threshold as the exact ratio that counts of n-grams are compared with."""
        return Fraction(round(self.threshold * 1000), 1000)


_CHUNK_BYTES = 1 << 20
_SALTS = np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of row i have `words[part_starts[i]:part_starts[i + 1]]` words each (uint32). Its n-grams (uint64), one
    for each word that enough words follow, are `hashes[hash_starts[i]:hash_starts[i + 1]]`.
    """

    words: npt.NDArray[np.uint32]
    part_starts: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]
    hash_starts: npt.NDArray[np.int64]


def hash_ngrams(texts: pa.Array, part: Unit | None, ngram_words: int) -> Parts:
    """Hash every `ngram_words` words in a row of each text; with `part` None a text is one part."""
    data, offsets = string_buffers(compose(texts))
    chunks = [_parts(data, offsets[b : e + 1], part, ngram_words) for b, e in row_chunks(offsets, _CHUNK_BYTES)]
    return Parts(
        np.concatenate([np.empty(0, np.uint32), *(c.words for c in chunks)]),
        _joined([c.part_starts for c in chunks]),
        np.concatenate([np.empty(0, np.uint64), *(c.hashes for c in chunks)]),
        _joined([c.hash_starts for c in chunks]),
    )


def hash_sides(sides: Sequence[pa.Array], ngram_words: int) -> Parts:
    """The n-grams of each side of a row by itself, told apart by the side; a row is one part (`text.view.sides`)."""
    found = [hash_ngrams(texts, None, ngram_words) for texts in sides]
    if len(found) == 1:
        return found[0]
    rows = [np.repeat(np.arange(len(one.words)), np.diff(one.hash_starts)) for one in found]
    hashes = np.concatenate([one.hashes ^ salt for one, salt in zip(found, _SALTS, strict=True)])
    return Parts(
        words=np.sum([one.words for one in found], axis=0, dtype=np.uint32),
        part_starts=found[0].part_starts,
        hashes=hashes[np.argsort(np.concatenate(rows), kind="stable")],
        hash_starts=np.sum([one.hash_starts for one in found], axis=0, dtype=np.int64),
    )


def _joined(starts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.cumsum(np.concatenate([[0], *map(np.diff, starts)]), dtype=np.int64)


def _parts(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], part: Unit | None, ngram_words: int) -> Parts:
    whole = Units(offsets[:-1], offsets[1:], np.arange(len(offsets)))
    units = find_units(data, offsets, part) if part else whole
    words, word_starts = words_of(data, offsets, units)
    hashes, hash_starts = np.empty(len(words) + 1, np.uint64), np.empty_like(offsets)
    _kernels.hash_ngrams(words, word_starts[units.row_starts], ngram_words, hashes, hash_starts)
    return Parts(
        np.diff(word_starts).astype(np.uint32), units.row_starts, hashes[: hash_starts[-1]].copy(), hash_starts
    )


BLOCK_BITS = 512
"""As the kernels have it: a cache line."""

MOST_HASHES = 32
PROBES = 1 << 20
"""Hashes that the rate of false positives is measured with."""


@dataclass(frozen=True, slots=True)
class Bloom:
    """A filter: `bits` uint64, eight words a block."""

    bits: npt.NDArray[np.uint64]
    num_hashes: int

    def measured_rate(self) -> float:
        """Share of `PROBES` hashes which were never inserted that the filter takes for known."""
        probes = np.empty(PROBES, np.uint64)
        _kernels.fresh_hashes(1, probes)
        found: int = _kernels.contains(self.bits, probes, self.num_hashes, np.empty(PROBES, np.bool_))
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
    """(bits a key, hashes a key) of the smallest filter whose rate of false positives is at most `rate` when full."""
    best = (math.inf, 0)
    for num_hashes in range(1, MOST_HASHES + 1):
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


def make_filter(keys: int, rate: float, memory: Memory) -> Bloom:
    """An empty filter for so many keys; in memory where it is no larger than that, else in a file (slow, and right)."""
    size = filter_bytes(keys, rate)
    words = size // 8
    bits = np.zeros(words, np.uint64) if size <= memory.bytes else memory.full((words,), 0, np.uint64)
    return Bloom(bits, best_size(rate)[1])


_WORD_BYTES = 5  # of English text a word, rather too few: one n-gram begins with each


class _Filter(NamedTuple):
    bits: npt.NDArray[np.uint64]
    num_hashes: int


class _Rules(NamedTuple):
    ngram_words: int
    numerator: int
    denominator: int
    cuts: bool
    drops: bool
    min_words_left: int


class _RowNgrams(NamedTuple):
    part_starts: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint32]
    hash_starts: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]


@dataclass(frozen=True)
class DedupNgrams(Cutting):
    """Drops rows, and cuts parts of texts, that consist of known n-grams; the reason is `duplicate_ngrams`."""

    config: NgramsConfig = field(default_factory=NgramsConfig)
    name: ClassVar[str] = "dedup_ngrams"
    Config: ClassVar[type] = NgramsConfig

    @property
    def unit(self) -> Unit:
        """Line or paragraph."""
        return self.config.part

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind, with what `remove = "auto"` means for them in its config.

        Raises:
            UsageError: parts are to be cut out of conversations or preference pairs.
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

    def forecast(self, files: Sequence[Path]) -> str:
        """How much disk the n-grams of these shards will take, and how much memory the filter."""
        rows, size = text_bytes(files)
        ngrams = size // _WORD_BYTES
        need = filter_bytes(ngrams, self.config.false_positive_rate)
        where = "memory" if need <= self.config.memory_mb << 20 else "disk (more than memory_mb: slow)"
        return (
            f"{rows:,} rows, at most about {8 * ngrams / 1e6:,.0f} MB of disk for their n-grams, and "
            f"{need / 1e6:,.0f} MB of {where} for the filter"
        )

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, `source`; the `hashes` of the n-grams of each row, and the `words` of its parts."""
        config, texts = self.config, sides(batch, self.config.on, include_calls=True)
        parts = (
            hash_sides(texts, config.ngram_words)
            if config.remove == "document"
            else hash_ngrams(texts[0], config.part, config.ngram_words)
        )
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source(batch),
                "words": lists(parts.words, parts.part_starts),
                "hashes": lists(parts.hashes, parts.hash_starts),
            }
        )

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write what is cut and dropped to `out`; returns counts, the filter's rates and alarms."""
        rows, losses = open_rows(sketches), Losses("words")
        ngrams = sum(len(values(batch, "hashes")) for batch in rows.batches)
        memory = Memory(self.config.memory_mb << 20, out.parent)
        made = make_filter(ngrams, self.config.false_positive_rate, memory)
        counts = {"ngrams": ngrams, "ngrams_inserted": 0, "ngrams_known": 0}
        write(out, self._decide_all(rows, made, losses, counts))
        known = counts["ngrams_inserted"]
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
            "alarms": losses.alarms(self.config.max_source_loss),
        }

    def _decide_all(self, rows: Rows, made: Bloom, losses: Losses, counts: dict[str, int]) -> Iterator[pa.RecordBatch]:
        remove, least = self.config.remove, self.config.least
        asked = (remove in ("parts", "both"), remove in ("document", "both"), self.config.min_words_left)
        rules = _Rules(self.config.ngram_words, least.numerator, least.denominator, *asked)
        for batch in rows.batches:
            parts, words = starts(batch, "words"), values(batch, "words")
            hash_starts = starts(batch, "hashes")
            found = _RowNgrams(parts, words, hash_starts, values(batch, "hashes"))
            is_known = np.empty(np.diff(hash_starts).max(initial=0), np.bool_)
            cut, dropped = np.zeros(len(words), np.bool_), np.zeros(batch.num_rows, np.uint8)
            known = np.zeros(batch.num_rows, np.int64)
            bits = _Filter(made.bits, made.num_hashes)
            counts["ngrams_inserted"] += _kernels.go_through(bits, rules, found, is_known, cut, dropped, known)
            counts["ngrams_known"] += int(known.sum())
            yield self._decided(batch, parts, words, cut, dropped, known, losses)

    def _decided(
        self,
        batch: pa.RecordBatch,
        parts: npt.NDArray[np.int64],
        words: npt.NDArray[np.uint32],
        cut: npt.NDArray[np.bool_],
        dropped: npt.NDArray[np.uint8],
        known: npt.NDArray[np.int64],
        losses: Losses,
    ) -> pa.RecordBatch:
        row_of = np.repeat(np.arange(batch.num_rows), np.diff(parts))
        in_row, left = (
            np.bincount(row_of, weight, batch.num_rows).astype(np.int64) for weight in (words, np.where(cut, 0, words))
        )
        losses.add(batch.column("source"), in_row, in_row - np.where(dropped > 0, 0, left))
        ngrams = np.diff(starts(batch, "hashes"))

        def tell(row: int) -> str:
            few = f", {left[row]} words would be left" if dropped[row] == 2 else ""
            return f"{known[row]} of its {ngrams[row]} {self.config.ngram_words}-grams stand before it{few}"

        cut = cut & (dropped[row_of] == 0)
        return decided(batch.column("row_key"), "duplicate_ngrams", dropped > 0, parts, cut, tell)[0]
