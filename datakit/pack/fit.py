"""Fits sequences into rows.

`packing = "best_fit"` uses best-fit decreasing (Johnson 1973; for training data: Ding et al. 2024, "Fewer Truncations
Improve Language Modeling"): the longest sequence first, each into the fullest row that still has space for it. If a set
has no short sequences that fill gaps, this leaves 4% or more of the space empty. So rows are also filled one by one
with pairs that fit exactly (a minimum bin slack heuristic after Gupta and Ho 1999, on a histogram of lengths), and the
denser result is used. If both need clearly more rows than a lower bound, sequential value correction is tried, too (see
`_kernels_fit`).

Sequences are fitted within a window of a bounded number of tokens, so memory does not grow with the dataset. A window
ends after the sequence that fills it, so the result does not depend on the size of the input batches.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from datakit.pack.cut import TRUNCATED, TokenSequences
from datakit.pack.format import SOURCE_DTYPE, Block, Int64, PackedWriter, Records, gather, starts_of

Packing = Literal["best_fit", "wrap", "pad"]

CLOSE = 1.005
"""A result with at most this many times the lower bound of rows is accepted."""
QUARTERS, FIRST_ROUNDS, ROUNDS, PROMISING = (1, 2, 3, 4, 6, 8), 2, 12, 2
"""Else sequential value correction: start with length ** (1 + quarters / 4), `FIRST_ROUNDS` rounds for each number of
quarters, then `ROUNDS` rounds for the `PROMISING` best."""
BLOCK_TOKENS = 1 << 22
"""Tokens that are laid out and written at once, at most."""

PLACE = np.dtype([("sequence", "<i8"), ("offset", "<i8"), ("length", "<i8"), ("row", "<i8")])
"""A piece of a sequence in a row: the index of the sequence, the piece's first token in it, its tokens, and the row."""


def fit(lengths: Int64, stride: int, packing: Packing, align_bos: bool = False) -> Records:
    """Fit sequences of `lengths`, int64, into rows of `stride` tokens: `PLACE` records by row; rows are numbered from 0
    without gaps. `wrap` cuts sequences; `best_fit` and `pad` need lengths <= stride.

    With `align_bos`, each row of `wrap` starts with the start of a sequence; tokens cut off at a row's end are left
    out.
    """
    if packing == "wrap":
        return _aligned(lengths, stride) if align_bos else _joined(lengths, stride)
    everything = np.arange(len(lengths))
    if packing == "pad":
        return _places(everything, 0, lengths, everything)
    bins = best_bins(lengths, stride)
    # Number the rows by their first sequence, and keep the order of sequences in a row: close to the order of the data.
    _, first, row = np.unique(bins, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    order = np.argsort(rank[row], kind="stable")
    return _places(order, 0, lengths[order], rank[row][order])


def best_bins(lengths: Int64, stride: int) -> Int64:
    """The bin of each sequence, int64, in the densest packing that is found."""
    from datakit.pack import _kernels_fit as kernels

    longest_first = np.argsort(-lengths, kind="stable")
    tries = [way(longest_first, lengths, stride) for way in (kernels.best_fit, kernels.paired_fit)]
    if min(bins.max(initial=-1) + 1 for bins in tries) > CLOSE * fewest_rows(lengths, stride):
        found = {q: kernels.valued_fit(longest_first, lengths, stride, FIRST_ROUNDS, q) for q in QUARTERS}
        promising = sorted(found, key=lambda q: int(found[q].max()))[:PROMISING]
        tries += found.values()
        tries += [kernels.valued_fit(longest_first, lengths, stride, ROUNDS, q) for q in promising]
    return min(tries, key=lambda bins: int(bins.max(initial=-1)))


def fewest_rows(lengths: Int64, stride: int) -> int:
    """A lower bound on the rows of `stride` tokens that uncut sequences need: the bound L2 of Martello and Toth (1990).

    For each k up to stride / 2, sequences shorter than k are ignored. Sequences longer than stride / 2 need a row each.
    The others need further rows for the tokens that do not fit next to the sequences of (stride / 2, stride - k].
    """
    count = np.bincount(lengths, minlength=stride + 1)
    number, tokens = (np.concatenate([[0], np.cumsum(c)]) for c in (count, count * np.arange(stride + 1)))
    k, half = np.arange(stride // 2 + 1), stride // 2
    large = number[-1] - number[half + 1]
    beside = (number[stride - k + 1] - number[half + 1]) * stride - (tokens[stride - k + 1] - tokens[half + 1])
    small = tokens[half + 1] - tokens[k]
    return int(large + np.maximum(-(-(small - beside) // stride), 0).max(initial=0))


def _joined(lengths: Int64, stride: int) -> Records:
    """Join the sequences, and cut them where a row is full."""
    starts, total = starts_of(lengths), int(lengths.sum())
    cuts = np.union1d(starts[lengths > 0], np.arange(0, total, stride))
    sequence = np.searchsorted(starts, cuts, side="right") - 1
    return _places(sequence, cuts - starts[sequence], np.diff(np.append(cuts, total)), cuts // stride)


def _aligned(lengths: Int64, stride: int) -> Records:
    """Join the sequences; the sequence at a row's end is truncated, and the next one starts the next row."""
    ends, fitted, row = np.cumsum(lengths), lengths.copy(), np.zeros_like(lengths)
    first = number = 0
    while first < len(lengths):
        full = int(ends[first] - lengths[first]) + stride
        after = min(int(np.searchsorted(ends, full)) + 1, len(lengths))
        row[first:after] = number
        fitted[after - 1] -= max(int(ends[after - 1]) - full, 0)
        first, number = after, number + 1
    return _places(np.arange(len(lengths)), 0, fitted, row)


def _places(sequence: Int64, offset: Int64 | int, length: Int64, row: Int64) -> Records:
    made = np.empty(len(sequence), PLACE)
    made["sequence"], made["offset"], made["length"], made["row"] = sequence, offset, length, row
    return made


class Packer:
    """Collects the sequences of one split into windows and writes the rows of each window.

    With several writers (in order of ascending row length), the longest rows are filled first, and shorter sequences
    fill their gaps. A row without any sequence longer than the next shorter row length is not written: its sequences go
    to the shorter rows.
    """

    def __init__(
        self, writers: Sequence[PackedWriter], packing: Packing, window_tokens: int, align_bos: bool, lost: Counter[str]
    ) -> None:
        self.sides = writers[0].header.rows_per_unit
        self.packing: Packing = "pad" if self.sides == 2 else packing
        self.writers, self.window_tokens, self.align_bos, self.lost = writers, window_tokens, align_bos, lost
        self._waiting: list[TokenSequences] = []
        self._tokens = 0

    def add(self, sequences: TokenSequences) -> None:
        """Add sequences. A window ends after the sequence (of pairs: after the pair) that reaches `window_tokens`."""
        while len(sequences):
            ends = self._tokens + np.cumsum(sequences.table["length"])
            count = int(np.searchsorted(ends, self.window_tokens)) + 1
            count = min(-(-count // self.sides) * self.sides, len(sequences))
            self._waiting.append(sequences.take(slice(0, count)))
            self._tokens = int(ends[count - 1])
            sequences = sequences.take(slice(count, None))
            if self._tokens >= self.window_tokens:
                self.flush(final=False)

    def flush(self, final: bool) -> None:
        """Write the rows of the window. With `wrap`, the tokens of a partly filled last row go to the next window,
        unless this is the `final` one."""
        if not self._waiting:
            return
        window = TokenSequences.join(self._waiting)
        self._waiting, self._tokens = [], 0
        for writer, places in self._fitted(window):
            if self.packing == "wrap" and not final:
                stride = writer.header.stride
                full = np.bincount(places["row"], places["length"])[places["row"]] == stride
                rest = places[~full]
                self._waiting = [TokenSequences.join([window.parts(rest["sequence"], rest["offset"], rest["length"])])]
                self._tokens = int(rest["length"].sum())
                places = places[full]
            _write(writer, window, places)

    def _fitted(self, window: TokenSequences) -> Iterator[tuple[PackedWriter, Records]]:
        """The `PLACE` records of each writer, the longest row length first."""
        length, left = window.table["length"], np.arange(len(window))
        unit = length.reshape(-1, self.sides).max(axis=1, initial=0).repeat(self.sides)  # a pair goes to one writer
        for shorter, writer in zip([None, *self.writers][-2::-1], self.writers[::-1], strict=True):
            places = fit(length[left], writer.header.stride, self.packing, self.align_bos)
            cut_off = int(length[left].sum() - places["length"].sum())
            self.lost.update({TRUNCATED: cut_off} if cut_off else {})
            places["sequence"] = left[places["sequence"]]
            if shorter is not None:
                long = unit[places["sequence"]] > shorter.header.stride
                stays = np.isin(places["row"], places["row"][long])
                left = np.sort(places["sequence"][~stays])
                places = places[stays]
                places["row"] = np.unique(places["row"], return_inverse=True)[1]
            yield writer, places


def _write(writer: PackedWriter, window: TokenSequences, places: Records) -> None:
    """Write rows, in blocks of `BLOCK_TOKENS`."""
    num_rows = int(places["row"].max(initial=-1)) + 1
    size = max(1, BLOCK_TOKENS // writer.header.stride)
    for first in range(0, num_rows, size):
        rows = min(size, num_rows - first)
        a, b = np.searchsorted(places["row"], [first, first + rows])
        some = places[a:b][places["length"][a:b] > 0]  # the missing side of a pair is a row without a sequence
        table, row = window.parts(some["sequence"], some["offset"], some["length"]).table, some["row"] - first
        sources = np.empty(len(some), SOURCE_DTYPE)
        sources["row_key"], sources["start"], sources["tokens"] = table["row_key"], table["offset"], table["length"]
        sources["row"], sources["head"] = writer.num_rows + row, table["head"]
        sources["segment"] = np.arange(len(some)) - np.searchsorted(row, row)
        learnt = gather(window.mask, table["start"], table["length"]).astype(bool)
        learnt[starts_of(table["length"])] = False  # nothing predicts the first token of a sequence
        ids, counts = gather(window.ids, table["start"], table["length"]), np.bincount(row, minlength=rows)
        writer.append(Block(ids, learnt, table["length"].copy(), counts, sources))
