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
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from datakit.pack.cut import TRUNCATED, TokenSequences, split_lengths
from datakit.pack.format import SOURCE_DTYPE, PackedWriter

Int64 = npt.NDArray[np.int64]

Packing = Literal["best_fit", "wrap", "pad"]

CLOSE = 1.005
"""A result with at most this many times the lower bound of rows is accepted."""
QUARTERS, FIRST_ROUNDS, ROUNDS, PROMISING = (1, 2, 3, 4, 6, 8), 2, 12, 2
"""Else sequential value correction: start with length ** (1 + quarters / 4), `FIRST_ROUNDS` rounds for each number of
quarters, then `ROUNDS` rounds for the `PROMISING` best."""
OTHER: dict[Packing, Packing] = {"best_fit": "wrap", "wrap": "best_fit"}
"""The way to fill rows whose density is stated beside that of the one in use."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Pieces of sequences and the rows that they go to, sorted by row. One entry per piece."""

    sequence: Int64
    """Index of the sequence that the piece belongs to."""
    offset: Int64
    """Offset of the piece's first token in that sequence."""
    length: Int64
    row: Int64
    """Index of the row: ascending from 0, without gaps."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.row[-1]) + 1 if len(self.row) else 0


def fit(lengths: Int64, stride: int, packing: Packing, align_bos: bool = False) -> Fit:
    """Fit sequences of `lengths`, int64, into rows of `stride` tokens. `wrap` cuts them; `best_fit` and `pad` need
    lengths <= stride.

    With `align_bos`, each row of `wrap` starts with the start of a sequence; tokens cut off at a row's end are left
    out.
    """
    from datakit.pack import _kernels_fit as kernels

    if packing == "wrap":
        return _aligned(lengths, stride) if align_bos else _cut(lengths, stride)
    everything = np.arange(len(lengths))
    if packing == "pad":
        return Fit(everything, np.zeros_like(everything), lengths, everything)
    longest_first = kernels.by_length(lengths, stride)
    tries = [pack(longest_first, lengths, stride) for pack in (kernels.best_fit, kernels.paired_fit)]
    if min(bins.max(initial=-1) + 1 for bins in tries) > CLOSE * fewest_rows(lengths, stride):
        tries += _by_value(longest_first, lengths, stride)
    bins = min(tries, key=lambda bins: bins.max(initial=-1))
    # Number the rows by their first sequence, and keep the order of sequences in a row: close to the order of the data.
    first_of_bin = np.empty(int(bins.max(initial=-1)) + 1, np.int64)
    first_of_bin[bins[::-1]] = everything[::-1]  # the last assignment to an index wins: the first sequence
    rank = np.empty(len(first_of_bin), np.int64)
    rank[np.argsort(first_of_bin, kind="stable")] = np.arange(len(first_of_bin))
    rows = rank[bins]
    order = np.argsort(rows, kind="stable")
    return Fit(order, np.zeros(len(order), np.int64), lengths[order], rows[order])


def _by_value(longest_first: Int64, lengths: Int64, stride: int) -> list[Int64]:
    from datakit.pack import _kernels_fit as kernels

    found = {q: kernels.valued_fit(longest_first, lengths, stride, FIRST_ROUNDS, q) for q in QUARTERS}
    promising = sorted(found, key=lambda q: int(found[q].max()))[:PROMISING]
    return [*found.values(), *(kernels.valued_fit(longest_first, lengths, stride, ROUNDS, q) for q in promising)]


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


def _cut(lengths: Int64, stride: int) -> Fit:
    """Join the sequences, and cut them where a row is full."""
    starts = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    cuts = np.union1d(starts[lengths > 0], np.arange(0, total, stride))
    sequence = np.searchsorted(starts, cuts, side="right") - 1
    return Fit(sequence, cuts - starts[sequence], np.diff(np.append(cuts, total)), cuts // stride)


def _aligned(lengths: Int64, stride: int) -> Fit:
    """Join the sequences; the sequence at a row's end is truncated, and the next one starts the next row."""
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


@dataclass(slots=True)
class Output:
    """A packed set that is being written, with its totals."""

    name: str
    """The last part of its prefix: `train`, `validation`, `train-256`."""
    writer: PackedWriter
    packed_rows: int = 0
    sequences: int = 0
    tokens: int = 0
    labels: int = 0
    chosen: int = 0
    """Of preference pairs: sequences that are chosen sides."""

    @property
    def stride(self) -> int:
        """Tokens in a row."""
        return self.writer.header.stride


class Packer:
    """Collects sequences into windows and writes the rows of each window.

    With several outputs (in order of ascending row length), the longest rows are filled first, and shorter sequences
    fill their gaps. A row without any sequence longer than the next shorter row length is not written: its sequences go
    to the shorter rows.
    """

    def __init__(
        self, packing: Packing, window_tokens: int, outputs: Sequence[Output], lost: Counter[str], align_bos: bool
    ) -> None:
        self.packing, self.window_tokens, self.outputs = packing, window_tokens, outputs
        self.lost, self.align_bos = lost, align_bos
        self._waiting: list[TokenSequences] = []
        self._tokens = 0
        self._best_fit_rows = 0
        self._sides = outputs[0].writer.header.rows_per_unit
        if self._sides == 2:
            self.packing = "pad"

    def add(self, sequences: TokenSequences) -> None:
        """Add sequences. A window ends after the sequence that reaches `window_tokens`."""
        while len(sequences):
            ends = self._tokens + np.cumsum(sequences.length)
            count = int(np.searchsorted(ends, self.window_tokens)) + 1
            count = min(-(-count // self._sides) * self._sides, len(sequences))
            self._waiting.append(sequences.take(slice(0, count)).alone())
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
        for output, fitted in self._fitted(window):
            if self.packing == "wrap" and not final:
                full = np.bincount(fitted.row, fitted.length)[fitted.row] == output.stride
                self._keep(window, Fit(*_part(fitted, ~full)))
                fitted = Fit(*_part(fitted, full))
            if fitted.num_rows:
                _write(output, window, fitted)

    def other_rows(self, tokens: int) -> int:
        """How many of the longest rows `OTHER` fills with all sequences, which have so many tokens."""
        return self._best_fit_rows if self.packing == "wrap" else -(-tokens // self.outputs[-1].stride)

    def _fitted(self, window: TokenSequences) -> Iterator[tuple[Output, Fit]]:
        """The rows of each output, the longest row length first."""
        left = np.arange(len(window))
        unit = window.length.reshape(-1, self._sides).max(axis=1).repeat(self._sides)  # a pair goes to one output
        for shorter, output in zip([None, *self.outputs][-2::-1], self.outputs[::-1], strict=True):
            fitted = fit(window.length[left], output.stride, self.packing, self.align_bos)
            if self.packing == "wrap":
                self._best_fit_rows += fit(
                    split_lengths(window.length, output.stride)[2], output.stride, "best_fit"
                ).num_rows
            cut_off = int(window.length[left].sum() - fitted.length.sum())
            self.lost.update({TRUNCATED: cut_off} if cut_off else {})
            if shorter is not None:
                needed = unit[left][fitted.sequence] > shorter.stride
                stays = np.bincount(fitted.row, needed, fitted.num_rows)[fitted.row] > 0
                rest = np.sort(left[fitted.sequence[~stays]])
                fitted = Fit(*_part(fitted, stays))
                _, rows = np.unique(fitted.row, return_inverse=True)
                fitted = Fit(left[fitted.sequence], fitted.offset, fitted.length, rows)
                left = rest
            else:
                fitted = Fit(left[fitted.sequence], fitted.offset, fitted.length, fitted.row)
            yield output, fitted

    def _keep(self, window: TokenSequences, fitted: Fit) -> None:
        left = _placed(window, fitted)
        if len(left):
            self._waiting, self._tokens = [TokenSequences.join([left.alone()])], int(left.length.sum())


def _write(output: Output, window: TokenSequences, fitted: Fit) -> None:
    from datakit.pack import _kernels_fit as kernels

    pieces, header = _placed(window, fitted), output.writer.header
    rows, tokens = fitted.num_rows, int(fitted.length.sum())
    labels = np.empty(tokens if header.labelled else 0, np.int32)
    segments = np.empty(len(pieces) + rows, np.int32)
    label_counts, segment_counts = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    places = np.empty(len(pieces), np.int64)
    kernels.lay_out(
        pieces.mask, pieces.start, pieces.length, fitted.row,
        labels, label_counts, segments, segment_counts, places,
    )  # fmt: skip
    sources = np.empty(len(pieces), SOURCE_DTYPE)
    sources["row_key"], sources["start"], sources["tokens"] = pieces.row_key, pieces.offset, pieces.length
    sources["row"], sources["segment"] = fitted.row + output.packed_rows, places
    sources["head"] = pieces.head
    if header.rows_per_unit == 2:
        sources, segments = _without_empty(sources, segments, segment_counts)
        output.chosen += int((sources["row"] % 2 == 0).sum())
    labels = labels[: int(label_counts.sum())]
    ids = _ids(output.writer, pieces, fitted)
    output.writer.append(ids, labels, label_counts, segments, segment_counts, sources)
    output.packed_rows += rows
    output.sequences += len(sources)
    output.tokens += tokens
    output.labels += len(labels) if header.labelled else tokens - len(pieces)


def _without_empty(
    sources: npt.NDArray[Any], segments: npt.NDArray[np.int32], segment_counts: Int64
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """Sources and boundaries of rows of one sequence each, without the sequences of no tokens. `segment_counts` then
    says 1 for such a row, which stands for the missing side of a pair."""
    empty = sources["tokens"] == 0
    segment_counts[empty] = 1
    return sources[~empty], np.delete(segments, 2 * np.flatnonzero(empty) + 1)


def _ids(writer: PackedWriter, pieces: TokenSequences, fitted: Fit) -> npt.NDArray[np.int32]:
    """The ids of the rows: int32 (rows, stride) with padding, or the real tokens, flat."""
    from datakit.pack import _kernels_fit as kernels

    if not writer.padded:
        flat = np.empty(int(pieces.length.sum()), np.int32)
        kernels.copy_flat(pieces.ids, pieces.start, pieces.length, flat)
        return flat
    ids_NS = np.full((fitted.num_rows, writer.header.stride), writer.header.pad_id, np.int32)
    kernels.copy_rows(pieces.ids, pieces.start, pieces.length, fitted.row, ids_NS)
    return ids_NS


def _part(fitted: Fit, which: Any) -> Iterator[Any]:
    return (a[which] for a in (fitted.sequence, fitted.offset, fitted.length, fitted.row))


def _placed(window: TokenSequences, fitted: Fit) -> TokenSequences:
    """The fitted pieces as sequences, in the order of their rows."""
    whole = window.take(fitted.sequence)
    start, offset = whole.start + fitted.offset, whole.offset + fitted.offset
    return TokenSequences(window.ids, window.mask, start, fitted.length, whole.row_key, offset, whole.head)
