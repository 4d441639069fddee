"""Signals: what one pass over a batch of texts counts, for every rule set to put thresholds on.

Words are white-space tokens with their punctuation, as Rae et al. (2021) leave them; each character of a script written
without spaces is a word of its own. Lines end where `str.splitlines` ends them and count only if there is more than
white space in them; paragraphs are lines between blank lines. A character is a code point.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from datakit.filter.chars import classes
from datakit.text.buffers import string_buffers

Counts = NDArray[np.int64]
Ratios = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Signals:
    """Counts of each row, all int64[N]; the names and what they count are those of `_kernels_signals.SIGNALS`."""

    counts: Mapping[str, Counts]

    def __getitem__(self, name: str) -> Counts:
        return self.counts[name]

    def ratio(self, part: str, whole: str) -> Ratios:
        """part / whole of each row, 0 where the whole is 0, rounded to 1e-3 as everything that decides."""
        return ratio(self[part], self[whole])

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> "Signals":
        """The signals that are columns of `batch`: those of integers."""
        names = [f.name for f in batch.schema if pa.types.is_int64(f.type)]
        return cls({n: batch.column(n).to_numpy(zero_copy_only=False) for n in names})


def measure(texts: pa.Array) -> Signals:
    """Count everything in one pass; a null is an empty text."""
    from datakit.filter import _kernels, _kernels_signals  # numba takes a while to import: not before there is text

    data, offsets = string_buffers(texts)
    counted = _kernels.measure(data, offsets, classes())
    return Signals(dict(zip(_kernels_signals.SIGNALS, counted, strict=True)))


def ratio(part: Counts, whole: Counts) -> Ratios:
    """part / whole, 0 where the whole is 0, rounded to 1e-3."""
    shares: Ratios = np.divide(part, whole, out=np.zeros(len(part)), where=whole != 0)
    return np.round(shares, 3)
