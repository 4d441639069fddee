"""The order of training: which rows make which micro-batch, and which micro-batches make which step.

The order is a pure function of row lengths, weights, seed and epoch. It does not depend on earlier steps, ranks or
workers, so the index of the step is the whole state of a resumed run.

Rows are ordered in units of `rows_per_unit` neighbouring rows (the two sides of a preference pair stay together); in
the classes for epochs a row is such a unit. Units of one width (bucket) make a micro-batch. Listing an epoch costs one
stable sort of its rows, and 32 bytes a micro-batch.
"""

import math
import threading
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Key = tuple[int, ...]
Sizes = Sequence[tuple[int, int]]
"""A schedule of batch sizes: (first step, rows of a micro-batch from there on), ascending, the first at step 0."""
NO_ROWS = np.empty(0, np.int64)


def windowed_permutation(rows: int, window: int, key: Key) -> Int64:
    """Rows 0..rows-1 in the order of a shuffle buffer: windows in random order, shuffled inside.

    Windows have `window` rows. The first window has a random length, so that windows differ between epochs. 0 or 1
    keeps the order of the file; a window of all rows is a full permutation. `key` is the random seed.
    """
    if window <= 1:
        return np.arange(rows)
    rng = np.random.default_rng(key)
    if window >= rows:
        return rng.permutation(rows)
    cuts = np.r_[0, np.arange(int(rng.integers(1, window + 1)), rows, window), rows]
    pieces = [cuts[i] + rng.permutation(cuts[i + 1] - cuts[i]) for i in rng.permutation(len(cuts) - 1)]
    return np.concatenate(pieces)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Rows of one micro-batch, and their width in positions."""

    rows: Int64
    width: int


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """Micro-batches in the order of training, as arrays; a list of objects would be ten times as large."""

    rows: Int64
    """Rows of all micro-batches."""
    begins_sizes_widths: Int64
    """(M, 3): first row of each micro-batch in `rows`, number of its rows, width."""

    def of(self, first: int = 0, last: int | None = None) -> list[MicroBatch]:
        """Micro-batches `first` to `last`, by default all."""
        found = self.begins_sizes_widths[first:last].tolist()
        return [MicroBatch(self.rows[begin : begin + size], width) for begin, size, width in found]


def micro_batches(order: Int64, widths: Int64, batch_rows: int) -> MicroBatches:
    """Group rows in `order` by width into micro-batches of `batch_rows`; each is emitted when it is full.

    `widths` is the bucket of every row. The rows left at the end make smaller micro-batches, which come last, so that
    every row is in exactly one micro-batch.
    """
    places = np.argsort(widths[order], kind="stable")  # rows of one width are neighbours, in order
    kinds, counts = np.unique(widths[order], return_counts=True)
    batches = -(-counts // batch_rows)
    ends = np.repeat(np.cumsum(counts), batches)
    number = np.arange(batches.sum()) - np.repeat(np.cumsum(batches) - batches, batches)  # within its width
    begins = np.repeat(np.cumsum(counts) - counts, batches) + number * batch_rows
    sizes, found = np.minimum(batch_rows, ends - begins), np.repeat(kinds, batches)
    full = np.where(sizes == batch_rows, places[begins + sizes - 1] if len(places) else 0, len(order))
    return MicroBatches(order[places], np.stack([begins, sizes, found], 1)[np.lexsort((found, full))])


class Epochs:
    """Every unit once per epoch; stores the micro-batches of one epoch at a time."""

    def __init__(self, widths: Int64, batch_units: int, window: int, key: Key) -> None:
        self.widths, self.batch_units, self.window, self.key = widths, batch_units, window, key
        self.batches = int((-(-np.unique(widths, return_counts=True)[1] // batch_units)).sum())
        """Number of micro-batches of an epoch, the same for every epoch."""
        self._epoch = -1

    def of(self, epoch: int, first: int, last: int) -> list[MicroBatch]:
        """Micro-batches `first` to `last` of an epoch."""
        if self._epoch != epoch:
            order = windowed_permutation(len(self.widths), self.window, (*self.key, epoch))
            self._epoch, self._listed = epoch, micro_batches(order, self.widths, self.batch_units)
        return self._listed.of(first, last)


class Mixed:
    """A weighted mix of sources, each with its own epochs; every part of the run has the same weights.

    An epoch of the mix has as many micro-batches as all units would fill. Units left at its end go into the next epoch,
    and so does the position in each source, so that a unit comes once in each epoch of its source.
    """

    def __init__(
        self, widths: Int64, units: Int64, shares: Sequence[float], batch_units: int, window: int, key: Key
    ) -> None:
        """`units` is the number of units of each source, in order; `shares` are shares of the units drawn."""
        self.widths, self.units, self.shares = widths, units, np.array(shares) / sum(shares)
        self.batch_units, self.window, self.key = batch_units, window, key
        self.batches = -(-len(widths) // batch_units)
        self._begins = [(np.zeros(len(units), np.int64), NO_ROWS)]
        """By epoch: units drawn from each source before it, and drawn units that wait for a full micro-batch."""
        self._epoch, self._listed = -1, list[MicroBatch]()

    def of(self, epoch: int, first: int, last: int) -> list[MicroBatch]:
        """Micro-batches `first` to `last` of an epoch."""
        while self._epoch != epoch:  # an epoch begins where the one before ended
            self._list(min(epoch, len(self._begins) - 1))
        return self._listed[first:last]

    def _list(self, epoch: int) -> None:
        drawn, queue = self._begins[epoch]
        full: list[MicroBatch] = []
        while len(full) < self.batches:
            more, drawn = self._draw(drawn, (self.batches - len(full)) * self.batch_units)
            found = micro_batches(np.concatenate([queue, more]), self.widths, self.batch_units).of()
            full += [b for b in found if len(b.rows) == self.batch_units]
            queue = np.concatenate([NO_ROWS, *(b.rows for b in found if len(b.rows) < self.batch_units)])
        left = np.concatenate([queue, *(b.rows for b in full[self.batches :])])
        self._epoch, self._listed = epoch, full[: self.batches]
        if len(self._begins) == epoch + 1:
            self._begins.append((drawn, left))

    def _draw(self, drawn: Int64, count: int) -> tuple[Int64, Int64]:
        """The next `count` units of the mix, and the number of units drawn from each source so far.

        Unit j of a source is due at (j + 1/2) / share, so that no source is ever behind by more than a unit.
        """
        ahead = np.ceil(count * self.shares).astype(np.int64) + 2
        source = np.repeat(np.arange(len(ahead)), ahead)
        place = np.concatenate([d + np.arange(a) for d, a in zip(drawn, ahead, strict=True)])
        chosen = np.argsort((place + 0.5) / self.shares[source], kind="stable")[:count]
        source, place = source[chosen], place[chosen]
        found = np.empty(count, np.int64)
        for i, first in enumerate(np.cumsum(self.units) - self.units):
            here, units = source == i, int(self.units[i])
            for epoch in np.unique(place[here] // units):  # each epoch of the source has its own order
                now = here & (place // units == epoch)
                order = windowed_permutation(units, self.window, (*self.key, i, int(epoch)))
                found[now] = first + order[place[now] % units]
        return found, drawn + np.bincount(source, minlength=len(drawn))


class StepPlan:
    """All steps of a run: `step(i)` for any i, in any order, from any thread.

    The last step of an epoch takes the remaining micro-batches, so every epoch starts with a new step. With a schedule
    of batch sizes the rows are listed in pieces that divide all sizes, and a step joins pieces of one width.
    """

    def __init__(
        self, widths: Int64, *, sizes: Sizes, grad_accum: int = 1, seed: Key, shuffle_buffer: int = 0,
        rows_per_unit: int = 1, source_rows: Sequence[int] = (), shares: Sequence[float] = (),
    ) -> None:  # fmt: skip
        """`widths` is the bucket of each row; a step has `grad_accum` micro-batches of as many rows as `sizes` says.

        With `shares` the rows are a mix: source i has `source_rows[i]` rows, in order, and `shares[i]` of those drawn.
        """
        self.sizes, self.grad_accum, self.rows_per_unit = tuple(sizes), grad_accum, rows_per_unit
        piece = math.gcd(*(rows for _, rows in sizes)) // rows_per_unit
        window, units = shuffle_buffer // rows_per_unit, widths.reshape(-1, rows_per_unit).max(1)
        self.epochs: Epochs | Mixed = Epochs(units, piece, window, seed)
        if shares:
            self.epochs = Mixed(units, np.array(source_rows) // rows_per_unit, shares, piece, window, seed)
        self._pieces = [(first, rows // rows_per_unit // piece) for first, rows in sizes]
        """From which step on a micro-batch has so many pieces."""
        self.steps_per_epoch = self.first_step(1)
        """Steps of the first epoch, and of every one where the batch size stays."""
        self._lock = threading.Lock()

    def rows_at(self, step: int) -> int:
        """Rows of a micro-batch of a step."""
        return next(rows for first, rows in reversed(self.sizes) if first <= step)

    def epoch_of(self, step: int) -> int:
        """The epoch (from 0) of a step (from 0)."""
        return self._place(step)[0]

    def first_step(self, epoch: int) -> int:
        """The first step of an epoch (from 0)."""
        most = range(epoch * self.epochs.batches)  # an epoch has no more steps than pieces
        return bisect_left(most, epoch, key=self.epoch_of)

    def _place(self, step: int) -> tuple[int, int, int]:
        """The epoch of a step, its first piece within the epoch, and the pieces of a micro-batch."""
        epoch, piece, total, at = 0, 0, self.epochs.batches, 0
        ends = [first for first, _ in self._pieces[1:]] + [step + 1]
        for (_, many), end in zip(self._pieces, ends, strict=True):
            each, steps = many * self.grad_accum, min(step, end) - at
            left = -(-(total - piece) // each)  # steps to the end of the epoch
            if steps < left:
                piece += steps * each
            else:
                whole, within = divmod(steps - left, -(-total // each))
                epoch, piece = epoch + 1 + whole, within * each
            at = min(step, end)
            if step < end:
                break
        return epoch, piece, many

    def step(self, step: int) -> list[MicroBatch]:
        """The micro-batches of a step."""
        epoch, piece, many = self._place(step)
        with self._lock:  # one thread makes the list of an epoch
            found = self.epochs.of(epoch, piece, min(piece + many * self.grad_accum, self.epochs.batches))
        if many > 1:
            found = _joined(found, self.rows_at(step) // self.rows_per_unit)
        within = np.arange(self.rows_per_unit)
        return [MicroBatch((m.rows[:, None] * self.rows_per_unit + within).ravel(), m.width) for m in found]

    def share(self, step: int, rank: int, ranks: int) -> tuple[list[MicroBatch], int]:
        """The part of a step that one rank computes, and the rows of its full micro-batches.

        Micro-batches are cut by rows into as few pieces as give every rank the same number of pieces; in a short step
        some are empty.
        """
        found, rows = self.step(step), self.rows_at(step)
        if ranks == 1:
            return found, rows
        pieces = ranks // math.gcd(ranks, self.grad_accum)
        rows = -(-rows // self.rows_per_unit // pieces) * self.rows_per_unit
        found = [MicroBatch(m.rows[i : i + rows], m.width) for m in found for i in range(0, len(m.rows), rows)]
        found.sort(key=lambda m: -m.width)  # so that ranks take equally long
        own, each = found[rank::ranks], -(-len(found) // ranks)
        return own + [MicroBatch(NO_ROWS, found[-1].width)] * (each - len(own)), rows


def _joined(pieces: Sequence[MicroBatch], most: int) -> list[MicroBatch]:
    """Pieces of one width joined to micro-batches of up to `most` units; wide ones first."""
    found = []
    for width in sorted({p.width for p in pieces}, reverse=True):
        units = np.concatenate([p.rows for p in pieces if p.width == width])
        found += [MicroBatch(units[i : i + most], width) for i in range(0, len(units), most)]
    return found
