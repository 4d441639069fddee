"""Packed rows -> micro-batches, those of several steps in one pass over whole arrays.

Eight rows are so few that numpy's calls for each micro-batch would cost ten times what copying its bytes does. So the
rows of one width are gathered together, straight into the memory that the device copies from, and cut into views.

Shapes: M micro-batches of B rows, T positions, S sequences, L labels. Places are flat positions in all M*B rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from datakit.errors import IntegrityError
from train.attention import arranged_each, from_zero
from train.batch import Batch, Packet
from train.order import Int64, MicroBatch
from train.packed import Mixture, PackedSet, mixture

Array = npt.NDArray[Any]
_EMPTY = np.empty(0, np.int64)


def collate(data: PackedSet | Mixture, micro: MicroBatch, batch_rows: int, label_sizes: Sequence[int] = ()) -> Batch:
    """One micro-batch of `packets`, unfolded on the CPU."""
    return packets(data, [micro], batch_rows, label_sizes)[0].to("cpu")


def packets(
    data: PackedSet | Mixture,
    micros: Sequence[MicroBatch],
    batch_rows: int,
    label_sizes: Sequence[int] = (),
    label_fill: int = 0,
    pin: bool = False,
) -> list[Packet]:
    """Micro-batches of `batch_rows` rows; missing ones are padding, so a bucket has one shape.

    `label_sizes` are counts that labels are filled up to; beyond the largest they are filled to every position. Without
    them, `label_fill` 16 fills labels up to the next sixteenth of the positions. With `pin` all lies in memory that a
    GPU copies from by itself.

    Raises:
        IntegrityError: a token outside the vocabulary, or a label on padding, across two sequences or out of order.
    """
    found: dict[int, Packet] = {}
    for width in sorted({m.width for m in micros}):
        here = [i for i, m in enumerate(micros) if m.width == width]
        block = _Block(mixture(data), [micros[i] for i in here], batch_rows, width, pin)
        part = -(-block.places // label_fill) if label_fill else 0
        sizes = label_sizes or (range(part, block.places + part, part) if part else ())
        found |= dict(zip(here, block.packets(sizes), strict=True))
    return [found[i] for i in range(len(micros))]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one packed file gives to a block."""

    starts: Int64
    """(S,) place of each sequence, ascending."""
    lengths: Int64
    """(S,) input positions of each."""
    targets: Int64
    """(S,) of plain text: how many places from its start on are labels."""
    labels: Array | None
    """(L,) of a labelled set: places, ascending."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Micro-batches of one width."""

    data: Mixture
    micros: Sequence[MicroBatch]
    batch_rows: int
    width: int
    pin: bool

    @property
    def places(self) -> int:
        """Of a micro-batch."""
        return self.batch_rows * self.width

    def packets(self, label_sizes: Sequence[int]) -> list[Packet]:
        """One for each micro-batch."""
        ids, part = self._gathered()
        micro_S, row_S = part.starts // self.places, part.starts // self.width
        local_S, number_S = part.starts - micro_S * self.places, _numbers(row_S)
        table, cuts, groups, tokens = arranged_each(local_S, part.lengths, number_S, micro_S, len(self.micros))
        each = np.diff(cuts).tolist()
        runs: Sequence[Tensor | None] = [None] * len(self.micros)
        label_pos = runs
        if part.labels is None and not label_sizes:
            runs = torch.split(self._sent(np.stack([local_S, part.targets], 1)), each)
            labels = np.diff(from_zero(part.targets)[cuts]).tolist()
        else:
            label_pos, labels = self._labels(_labels_of(part), label_sizes)
        tables = torch.split(self._sent(table), each)
        return [
            Packet(
                ids_BS=ids[i], sequences_S4=tables[i], groups=groups[i], tokens=tokens[i], runs_R2=runs[i],
                label_pos_L=label_pos[i], labels=labels[i], rows=micro.rows,
            )
            for i, micro in enumerate(self.micros)
        ]  # fmt: skip

    def _gathered(self) -> tuple[Sequence[Tensor], _Part]:
        """Ids of each micro-batch, (B, T + 1), and what lies beside them."""
        rows, header = np.concatenate([m.rows for m in self.micros]), self.data.header
        sizes = np.array([len(m.rows) for m in self.micros])
        shape = len(sizes), self.batch_rows, self.width + 1
        kind = torch.from_numpy(np.empty(0, header.dtype)).dtype
        ids = torch.empty(shape, dtype=kind, pin_memory=self.pin)
        flat = ids.numpy().reshape(-1, shape[-1])
        if len(rows) < len(flat) or len(self.data.sets) > 1:
            flat[:] = header.pad_id
        to = _ranges(np.arange(shape[0]) * self.batch_rows, sizes)
        parts = [_gather(owner, own, to[here], flat) for owner, own, here in self.data.places(rows)]
        return ids.unbind(0), parts[0] if len(parts) == 1 else _joined(parts)

    def _labels(self, labels: Array, sizes: Sequence[int]) -> tuple[list[Tensor | None], list[int]]:
        """Flat positions of each micro-batch's labels with their filling, and how many are labels."""
        cuts = np.searchsorted(labels, np.arange(len(self.micros) + 1) * self.places)
        found = [labels[a:b] for a, b in pairwise(cuts.tolist())]
        for i, own in enumerate(found):
            own -= i * self.places
        counts = [len(own) for own in found]
        if not sizes:
            return list(torch.split(self._sent(labels), counts)), counts
        return [self._sent(_filled(own, sizes, self.places)) for own in found], counts

    def _sent(self, values: Array) -> Tensor:
        tensor = torch.from_numpy(values)
        return tensor.pin_memory() if self.pin else tensor


def _gather(data: PackedSet, own: Int64, to: Int64, ids: Array) -> _Part:
    """Rows `own` of a file become rows `to` of `ids`, (M*B, T + 1)."""
    packed, width = data.packed, ids.shape[1] - 1
    _copy(data, own, to, ids)
    starts, ends, rows = _sequences(np.asarray(packed.segments), _index(packed.segment_index, own))
    first, shown = to[rows] * width + starts, np.minimum(ends, width) - starts
    labels = None
    if packed.labels is not None and packed.label_index is not None:
        index = _index(packed.label_index, own)
        values = np.asarray(packed.labels)
        within = np.concatenate([values[o : o + c] for o, c in index.tolist()] or [values[:0]])
        kind = np.int32 if len(ids) * width <= np.iinfo(np.int32).max else np.int64
        labels = np.repeat((to * width).astype(kind), index[:, 1])
        labels += within
        _check_labels(data, own, index[:, 1], within, labels, (to[rows] * width + ends - 1)[ends <= width])
    part = _Part(first, shown, ends - starts - 1, labels)
    if shown.all():
        return part
    real = shown > 0  # not a sequence whose one token is only a target
    return _Part(first[real], shown[real], part.targets[real], labels)


def _copy(data: PackedSet, own: Int64, to: Int64, ids: Array) -> None:
    stored, header = np.asarray(data.packed.ids), data.header
    if len(own) == len(ids) and header.stride == ids.shape[1]:  # all rows, in order
        copied = np.take(stored, own, 0, out=ids, mode="clip")  # the other modes copy twice
    else:
        copied = stored[:, : ids.shape[1]][own]
        ids[to, : copied.shape[1]] = copied
    ids_N = copied.view(copied.dtype.str.replace("i", "u"))
    if int(ids_N.max()) >= header.vocab_size:
        row = int(own[(ids_N >= header.vocab_size).any(1).argmax()])
        raise IntegrityError(
            f"{data.manifest}: a token id of packed row {row} lies outside the vocabulary of {header.vocab_size}; the "
            f"packed files are damaged: check them with `datakit verify`"
        )


def _index(pairs: Array, own: Int64) -> Int64:
    found: Int64 = np.asarray(pairs)[own].astype(np.int64)
    return found


def _ranges(starts: Int64, counts: Int64) -> Int64:
    """start, start + 1, ... of each pair, after one another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    found: Int64 = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return found


def _sequences(segments: npt.NDArray[np.int32], index: Int64) -> tuple[Int64, Int64, Int64]:
    """Start, end and row of each sequence of the rows that an index names."""
    offsets, counts = index.T
    bounds = segments[_ranges(offsets, counts)].astype(np.int64)
    firsts = np.cumsum(counts) - counts
    begins, ends = np.ones((2, len(bounds)), np.bool_)
    begins[firsts + counts - 1] = ends[firsts] = False
    return bounds[begins], bounds[ends], np.repeat(np.arange(len(counts)), counts - 1)


def _numbers(rows_S: Int64) -> Int64:
    """Number of each sequence in its row, from 1; `rows_S` ascends."""
    found: Int64 = np.arange(1, len(rows_S) + 1) - np.searchsorted(rows_S, rows_S)
    return found


def _labels_of(part: _Part) -> Array:
    return _ranges(part.starts, part.targets) if part.labels is None else part.labels


def _joined(parts: Sequence[_Part]) -> _Part:
    """Sequences and labels of several files, in order of place."""
    starts, lengths = (np.concatenate([_EMPTY, *(getattr(p, n) for p in parts)]) for n in ("starts", "lengths"))
    labels = np.sort(np.concatenate([_EMPTY, *map(_labels_of, parts)]))
    order = np.argsort(starts, kind="stable")
    return _Part(starts[order], lengths[order], _EMPTY, labels)


def _check_labels(data: PackedSet, own: Int64, counts: Int64, within: Array, places: Array, last_S: Int64) -> None:
    """Refuse labels that do not ascend in their row, and those whose target is padding or of another sequence.

    `within` are their positions in the rows `own`, `counts` of each; `last_S` the places where a sequence ends.
    """
    if not len(places):
        return
    ends = np.cumsum(counts)
    some = counts > 0
    first, last = (ends - counts)[some], ends[some] - 1
    fit = (within[first] >= 0) & (within[last] < data.lengths[own[some]] - 1)
    found = np.searchsorted(places, last_S.astype(places.dtype))
    across = places[np.minimum(found, len(places) - 1)] == last_S
    if fit.all() and not across.any() and (places[1:] > places[:-1]).all():
        return
    raise _refused(data, own)


def _refused(data: PackedSet, own: Int64) -> IntegrityError:
    """What to say of the first row whose labels are wrong."""
    for row in own.tolist():
        labels, bounds = np.asarray(data.packed.labels_of(row)), data.packed.segments_of(row)
        wrong = (labels < 0) | (labels >= bounds[-1]) | np.isin(labels + 1, bounds)
        if wrong.any() or (np.diff(labels) <= 0).any():
            break
    about = "on padding or across two sequences" if wrong.any() else "twice, or labels that do not ascend"
    return IntegrityError(
        f"{data.manifest}: packed row {row} has a label {about} (labels {labels[0]}..{labels[-1]}, boundaries "
        f"{bounds.tolist()}); pack the set again"
    )


def _filled(label_pos: Array, sizes: Sequence[int], positions: int) -> Array:
    """Labels, and behind them other positions up to the next size."""
    size = min(next((s for s in sizes if s >= len(label_pos)), positions), positions)
    free = np.ones(positions, np.bool_)
    free[label_pos] = False
    return np.concatenate([label_pos, np.flatnonzero(free)[: size - len(label_pos)]])
