"""Which sequences share a row.

Best-fit decreasing (Johnson 1973; for training data: Ding et al. 2024, "Fewer Truncations Improve Language Modeling"):
longest first, each into the fullest row that still holds it. Where a set has no short sequences to fill gaps with, that
leaves 4% and more of the space empty, so rows are also filled one by one with pairs that fit exactly (a minimum bin
slack heuristic after Gupta and Ho 1999, on a histogram of lengths), and the denser of the two results is taken. Where
both need clearly more rows than a lower bound says, a third way is tried, which learns what lengths are worth.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from datakit.pack._kernels import best_fit, by_length, paired_fit
from datakit.pack._kernels_fit import valued_fit

Int64 = npt.NDArray[np.int64]
Packing = Literal["best_fit", "concat", "pad"]

CLOSE = 1.005
"""Rows over the lower bound that are few enough."""
QUARTERS, FIRST_ROUNDS, ROUNDS, PROMISING = (1, 2, 3, 4, 6, 8), 2, 12, 2
"""Otherwise: powers that lengths are worth, how often each is tried, and how often the promising ones are."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Pieces of sequences and the rows that they go to, sorted by row."""

    sequence: Int64
    """Which of the given sequences the piece is of."""
    offset: Int64
    """The piece's first token within that sequence."""
    length: Int64
    row: Int64
    """0-based, without gaps."""

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return int(self.row[-1]) + 1 if len(self.row) else 0


def fit(lengths: Int64, stride: int, packing: Packing, align_bos: bool = False) -> Fit:
    """Lay sequences out in rows of `stride` tokens; `concat` cuts them, `best_fit` needs lengths <= stride.

    With `align_bos` a row of `concat` begins where a sequence does: what a row's end cuts off is left out.
    """
    if packing == "concat":
        return _aligned(lengths, stride) if align_bos else _cut(lengths, stride)
    everything = np.arange(len(lengths))
    if packing == "pad":
        return Fit(everything, np.zeros_like(everything), lengths, everything)
    longest_first = by_length(lengths, stride)
    tries = [pack(longest_first, lengths, stride) for pack in (best_fit, paired_fit)]
    if min(bins.max(initial=-1) + 1 for bins in tries) > CLOSE * fewest_rows(lengths, stride):
        tries += _by_value(longest_first, lengths, stride)
    bins = min(tries, key=lambda bins: bins.max(initial=-1))
    # Rows in order of their first sequence, sequences in their own order: near to the order of the data.
    first_of_bin = np.empty(int(bins.max(initial=-1)) + 1, np.int64)
    first_of_bin[bins[::-1]] = everything[::-1]  # of equal indices the last assignment stays: the first sequence
    rank = np.empty(len(first_of_bin), np.int64)
    rank[np.argsort(first_of_bin, kind="stable")] = np.arange(len(first_of_bin))
    rows = rank[bins]
    order = np.argsort(rows, kind="stable")
    return Fit(order, np.zeros(len(order), np.int64), lengths[order], rows[order])


def _by_value(longest_first: Int64, lengths: Int64, stride: int) -> list[Int64]:
    found = {q: valued_fit(longest_first, lengths, stride, FIRST_ROUNDS, q) for q in QUARTERS}
    promising = sorted(found, key=lambda q: int(found[q].max()))[:PROMISING]
    return [*found.values(), *(valued_fit(longest_first, lengths, stride, ROUNDS, q) for q in promising)]


def fewest_rows(lengths: Int64, stride: int) -> int:
    """Rows of `stride` tokens that whole sequences cannot do without: the bound L2 of Martello and Toth (1990).

    Whatever k: sequences above stride - k stand alone, but for shorter ones than k; those above half a row, one in a
    row each; and those from k on that do not fit beside the latter need rows of their own.
    """
    count = np.bincount(lengths, minlength=stride + 1)
    number, tokens = (np.concatenate([[0], np.cumsum(c)]) for c in (count, count * np.arange(stride + 1)))
    k, half = np.arange(stride // 2 + 1), stride // 2
    large = number[-1] - number[half + 1]
    beside = (number[stride - k + 1] - number[half + 1]) * stride - (tokens[stride - k + 1] - tokens[half + 1])
    small = tokens[half + 1] - tokens[k]
    return int(large + np.maximum(-(-(small - beside) // stride), 0).max(initial=0))


def _cut(lengths: Int64, stride: int) -> Fit:
    """The sequences one after another, cut where a row is full."""
    starts = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    cuts = np.union1d(starts[lengths > 0], np.arange(0, total, stride))
    sequence = np.searchsorted(starts, cuts, side="right") - 1
    return Fit(sequence, cuts - starts[sequence], np.diff(np.append(cuts, total)), cuts // stride)


def _aligned(lengths: Int64, stride: int) -> Fit:
    """The sequences one after another, the one that a row's end meets cut short there."""
    ends = np.cumsum(lengths)
    edges, base = [0], 0
    while edges[-1] < len(lengths):
        edges.append(min(int(np.searchsorted(ends, base + stride)) + 1, len(lengths)))
        base = int(ends[edges[-1] - 1])
    row = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    fitted = lengths.copy()
    last = np.array(edges[1:], np.int64) - 1
    begins = np.concatenate([[0], ends[last]])[:-1]
    fitted[last] -= np.maximum(ends[last] - begins - stride, 0)
    return Fit(np.arange(len(lengths)), np.zeros(len(lengths), np.int64), fitted, row)
