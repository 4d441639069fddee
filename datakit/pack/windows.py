"""Windows of sequences: gathered, fitted into rows, written."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from datakit.pack._kernels import lay_out
from datakit.pack.fit import Fit, Packing, fit
from datakit.pack.format import SOURCE_DTYPE, Writer
from datakit.pack.sequences import Sequences


@dataclass(slots=True)
class Tally:
    """Running counts of one set."""

    rows: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    rows_in: int = 0
    tokens_in: int = 0
    kept: int = 0
    packed_rows: int = 0
    sequences: int = 0
    labels: int = 0


class Packer:
    """Gathers sequences into windows and writes each window's rows."""

    def __init__(self, packing: Packing, window_tokens: int, writer: Writer, tally: Tally) -> None:
        self.packing, self.window_tokens, self.writer, self.tally = packing, window_tokens, writer, tally
        self._waiting: list[Sequences] = []
        self._tokens = 0

    def add(self, sequences: Sequences) -> None:
        """Take sequences; whenever the window is full, the sequence that fills it ends it."""
        pairs = self.writer.header.rows_per_unit
        while len(sequences):
            ends = self._tokens + np.cumsum(sequences.length)
            count = int(np.searchsorted(ends, self.window_tokens)) + 1
            count = min(-(-count // pairs) * pairs, len(sequences))
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
        stride = self.writer.header.stride
        fitted = fit(window.length, stride, "pad" if self._pairs else self.packing)
        self._waiting, self._tokens = [], 0
        if self.packing == "concat" and not final and not self._pairs:
            full = int(window.length.sum()) // stride
            self._keep(window, Fit(*(_part(fitted, fitted.row >= full))))
            fitted = Fit(*(_part(fitted, fitted.row < full)))
        if fitted.num_rows:
            self._write(window, fitted)

    @property
    def _pairs(self) -> bool:
        return self.writer.header.rows_per_unit == 2

    def _keep(self, window: Sequences, fitted: Fit) -> None:
        left = _placed(window, fitted)
        if len(left):
            self._waiting, self._tokens = [Sequences.join([left.alone()])], int(left.length.sum())

    def _write(self, window: Sequences, fitted: Fit) -> None:
        pieces, header, tally = _placed(window, fitted), self.writer.header, self.tally
        rows, tokens = fitted.num_rows, int(fitted.length.sum())
        ids = np.full((rows, header.stride), header.pad_id, np.int32)
        labels = np.empty(tokens if header.labelled else 0, np.int32)
        segments = np.empty(len(pieces) + rows, np.int32)
        label_counts, segment_counts = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        places = np.empty(len(pieces), np.int64)
        lay_out(
            pieces.ids, pieces.mask, pieces.start, pieces.length, fitted.row, ids,
            labels, label_counts, segments, segment_counts, places,
        )  # fmt: skip
        sources = np.empty(len(pieces), SOURCE_DTYPE)
        sources["row_key"], sources["start"], sources["tokens"] = pieces.row_key, pieces.offset, pieces.length
        sources["row"], sources["segment"] = fitted.row + tally.packed_rows, places
        labels = labels[: int(label_counts.sum())]
        self.writer.append(ids, labels, label_counts, segments, segment_counts, sources)
        tally.packed_rows += rows
        tally.sequences += len(pieces)
        tally.kept += tokens
        tally.labels += len(labels) if header.labelled else tokens - len(pieces)


def _part(fitted: Fit, which: Any) -> Iterator[Any]:
    return (a[which] for a in (fitted.sequence, fitted.offset, fitted.length, fitted.row))


def _placed(window: Sequences, fitted: Fit) -> Sequences:
    """The fitted pieces as sequences of their own, in order of their rows."""
    whole = window.take(fitted.sequence)
    start, offset = whole.start + fitted.offset, whole.offset + fitted.offset
    return Sequences(window.ids, window.mask, start, fitted.length, whole.row_key, offset)
