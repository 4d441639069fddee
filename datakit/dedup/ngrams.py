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
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.dedup import bloom
from datakit.dedup.bloom import Bloom
from datakit.dedup.cutting import Cutting, source, text_bytes
from datakit.dedup.decisions import decided, write
from datakit.dedup.levels import NgramsConfig
from datakit.dedup.losses import Losses
from datakit.dedup.memory import Memory
from datakit.dedup.parts import hash_ngrams, hash_sides
from datakit.dedup.rows import Rows, lists, open_rows, starts, values
from datakit.dedup.units import Unit
from datakit.errors import UsageError
from datakit.native import Kernels
from datakit.data import sides

_kernels = Kernels("datakit.dedup._kernels_bloom")
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


class _Rows(NamedTuple):
    part_starts: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint32]
    hash_starts: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]


@dataclass(frozen=True)
class DedupNgrams(Cutting):
    """Drops rows, and cuts parts of texts, that consist of known n-grams; the reason is `duplicate_ngrams`."""

    config: NgramsConfig = field(default_factory=NgramsConfig)
    name: ClassVar[str] = "dedup_ngrams"

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
        need = bloom.filter_bytes(ngrams, self.config.false_positive_rate)
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
        made = bloom.make(ngrams, self.config.false_positive_rate, memory)
        counts = {"ngrams": ngrams, "ngrams_inserted": 0, "ngrams_known": 0}
        write(out, self._decide_all(rows, made, losses, counts))
        known = counts["ngrams_inserted"]
        expected = bloom.false_positive_rate(made.bits.nbytes * 8 / known, made.num_hashes) if known else 0.0
        return counts | {
            "words": losses.whole.total(),
            "words_lost": losses.lost.total(),
            "filter": {
                "bytes": made.bits.nbytes,
                "hashes": made.num_hashes,
                "false_positive_rate": self.config.false_positive_rate,
                "false_positive_rate_expected": round(expected, 9),
                "false_positive_rate_measured": round(made.measured_rate(), 9),
                "probes": bloom.PROBES,
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
            found = _Rows(parts, words, hash_starts, values(batch, "hashes"))
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
