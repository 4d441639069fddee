"""Windows of sequences: gathered, fitted into rows, written."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from datakit.pack._kernels import copy_flat, copy_rows, lay_out
from datakit.pack.fit import Fit, Packing, fit
from datakit.pack.format import SOURCE_DTYPE
from datakit.pack.sequences import TRUNCATED, Sequences
from datakit.pack.writers import RowWriter

Int64 = npt.NDArray[np.int64]


@dataclass(slots=True)
class Output:
    """One set that is being written, and what went into it."""

    name: str
    """The last part of its prefix."""
    writer: RowWriter
    packed_rows: int = 0
    sequences: int = 0
    tokens: int = 0
    labels: int = 0

    @property
    def stride(self) -> int:
        """Tokens that a row holds."""
        return self.writer.header.stride


class Packer:
    """Gathers sequences into windows and writes each window's rows.

    With several outputs, of ascending row lengths, a row is as short as its longest sequence allows; shorter sequences
    fill the gaps of longer rows first.
    """

    def __init__(
        self, packing: Packing, window_tokens: int, outputs: Sequence[Output], lost: Counter[str], align_bos: bool
    ) -> None:
        self.packing, self.window_tokens, self.outputs = packing, window_tokens, outputs
        self.lost, self.align_bos = lost, align_bos
        self._waiting: list[Sequences] = []
        self._tokens = 0
        self._sides = outputs[0].writer.header.rows_per_unit
        if self._sides == 2:
            self.packing = "pad"

    def add(self, sequences: Sequences) -> None:
        """Take sequences; whenever the window is full, the sequence that fills it ends it."""
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
        """Write the window's rows; joined sequences leave what fills no row to the next window."""
        if not self._waiting:
            return
        window = Sequences.join(self._waiting)
        self._waiting, self._tokens = [], 0
        for output, fitted in self._fitted(window):
            if self.packing == "concat" and not final:
                full = np.bincount(fitted.row, fitted.length)[fitted.row] == output.stride
                self._keep(window, Fit(*_part(fitted, ~full)))
                fitted = Fit(*_part(fitted, full))
            if fitted.num_rows:
                _write(output, window, fitted)

    def _fitted(self, window: Sequences) -> Iterator[tuple[Output, Fit]]:
        """The rows of each output, the longest first."""
        left = np.arange(len(window))
        unit = window.length.reshape(-1, self._sides).max(axis=1).repeat(self._sides)  # a pair goes where both fit
        for shorter, output in zip([None, *self.outputs][-2::-1], self.outputs[::-1], strict=True):
            fitted = fit(window.length[left], output.stride, self.packing, self.align_bos)
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

    def _keep(self, window: Sequences, fitted: Fit) -> None:
        left = _placed(window, fitted)
        if len(left):
            self._waiting, self._tokens = [Sequences.join([left.alone()])], int(left.length.sum())


def _write(output: Output, window: Sequences, fitted: Fit) -> None:
    pieces, header = _placed(window, fitted), output.writer.header
    rows, tokens = fitted.num_rows, int(fitted.length.sum())
    labels = np.empty(tokens if header.labelled else 0, np.int32)
    segments = np.empty(len(pieces) + rows, np.int32)
    label_counts, segment_counts = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    places = np.empty(len(pieces), np.int64)
    lay_out(
        pieces.mask, pieces.start, pieces.length, fitted.row,
        labels, label_counts, segments, segment_counts, places,
    )  # fmt: skip
    sources = np.empty(len(pieces), SOURCE_DTYPE)
    sources["row_key"], sources["start"], sources["tokens"] = pieces.row_key, pieces.offset, pieces.length
    sources["row"], sources["segment"] = fitted.row + output.packed_rows, places
    labels = labels[: int(label_counts.sum())]
    ids = _ids(output.writer, pieces, fitted)
    output.writer.append(ids, labels, label_counts, segments, segment_counts, sources)
    output.packed_rows += rows
    output.sequences += len(pieces)
    output.tokens += tokens
    output.labels += len(labels) if header.labelled else tokens - len(pieces)


def _ids(writer: RowWriter, pieces: Sequences, fitted: Fit) -> npt.NDArray[np.int32]:
    """The rows' ids: a matrix with padding, or one after another."""
    if not writer.padded:
        flat = np.empty(int(pieces.length.sum()), np.int32)
        copy_flat(pieces.ids, pieces.start, pieces.length, flat)
        return flat
    ids_NS = np.full((fitted.num_rows, writer.header.stride), writer.header.pad_id, np.int32)
    copy_rows(pieces.ids, pieces.start, pieces.length, fitted.row, ids_NS)
    return ids_NS


def _part(fitted: Fit, which: Any) -> Iterator[Any]:
    return (a[which] for a in (fitted.sequence, fitted.offset, fitted.length, fitted.row))


def _placed(window: Sequences, fitted: Fit) -> Sequences:
    """The fitted pieces as sequences of their own, in order of their rows."""
    whole = window.take(fitted.sequence)
    start, offset = whole.start + fitted.offset, whole.offset + fitted.offset
    return Sequences(window.ids, window.mask, start, fitted.length, whole.row_key, offset)
