"""The order of training: which rows make which micro-batch, and which micro-batches make which step.

The order is a pure function of row lengths, weights, seed and epoch. It does not depend on earlier steps, ranks or
workers, so the index of the step is the whole state of a resumed run.

Rows are ordered in units of `rows_per_unit` neighbouring rows; in the classes for epochs a row is such a unit. Units of
one width (bucket) make a micro-batch.
"""

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Key = tuple[int, ...]
Shares = npt.NDArray[np.float64]


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
class Listing:
    """Micro-batches in the order of training, as arrays; a list of objects would be ten times as large."""

    rows: Int64
    """Rows of all micro-batches."""
    begins: Int64
    sizes: Int64
    """First row of each micro-batch in `rows`, and its number of rows."""
    widths: Int64

    def __len__(self) -> int:
        return len(self.begins)

    def of(self, first: int, last: int) -> list[MicroBatch]:
        """Micro-batches `first` to `last`."""
        parts = (values[first:last].tolist() for values in (self.begins, self.sizes, self.widths))
        return [MicroBatch(self.rows[begin : begin + size], width) for begin, size, width in zip(*parts, strict=True)]

    def __iter__(self) -> Iterator[MicroBatch]:
        return iter(self.of(0, len(self)))


def micro_batches(order: Int64, widths: Int64, batch_rows: int) -> Listing:
    """Group rows in `order` by width into micro-batches of `batch_rows`; each is emitted when it is full.

    `widths` is the bucket of every row. The rows left at the end make smaller micro-batches, which come last, so that
    every row is in exactly one micro-batch.
    """
    places = np.argsort(widths[order], kind="stable")
    kinds, counts = np.unique(widths[order], return_counts=True)
    batches = -(-counts // batch_rows)
    ends = np.repeat(np.cumsum(counts), batches)
    number = np.arange(batches.sum()) - np.repeat(np.cumsum(batches) - batches, batches)
    begins = np.repeat(np.cumsum(counts) - counts, batches) + number * batch_rows
    sizes, found = np.minimum(batch_rows, ends - begins), np.repeat(kinds, batches)
    full = np.where(sizes == batch_rows, places[begins + sizes - 1] if len(places) else 0, len(order))
    emitted = np.lexsort((found, full))
    return Listing(order[places], begins[emitted], sizes[emitted], found[emitted])


def by_size(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Numbers of neighbouring items whose sizes add up to `most` at the most; an item that is larger is alone."""
    found, room = list[list[int]](), 0
    for i, size in enumerate(sizes):
        if not found or size > room:
            found.append([])
            room = most
        found[-1].append(i)
        room -= size
    return found


class Epochs:
    """Every unit once per epoch; stores the micro-batches of one epoch at a time."""

    def __init__(self, widths: Int64, batch_units: int, window: int, key: Key) -> None:
        self.widths, self.batch_units, self.window, self.key = widths, batch_units, window, key
        self.batches = int((-(-np.unique(widths, return_counts=True)[1] // batch_units)).sum())
        """Number of micro-batches of an epoch, the same for every epoch."""
        self._epoch: tuple[int, Listing] | None = None

    def of(self, epoch: int, first: int, last: int) -> list[MicroBatch]:
        """Micro-batches `first` to `last` of an epoch."""
        if self._epoch is None or self._epoch[0] != epoch:
            order = windowed_permutation(len(self.widths), self.window, (*self.key, epoch))
            self._epoch = epoch, micro_batches(order, self.widths, self.batch_units)
        return self._epoch[1].of(first, last)


class Mixed:
    """A weighted mix of sources, each with its own epochs; every part of the run has the same weights.

    An epoch of the mix has as many micro-batches as all units would fill. Units left at its end go into the next epoch,
    and so does the position in each source, so that a unit comes once in each epoch of its source.
    """

    def __init__(self, widths: Int64, units: Int64, shares: Shares, batch_units: int, window: int, key: Key) -> None:
        """`units` is the number of units of each source, in order; `shares` are shares of the units drawn."""
        self.widths, self.units, self.shares = widths, units, shares / shares.sum()
        self.batch_units, self.window, self.key = batch_units, window, key
        self.batches = -(-len(widths) // batch_units)
        self._begins = [(np.zeros(len(self.units), np.int64), np.empty(0, np.int64))]
        self._epoch: tuple[int, list[MicroBatch]] | None = None

    def of(self, epoch: int, first: int, last: int) -> list[MicroBatch]:
        """Micro-batches `first` to `last` of an epoch."""
        while self._epoch is None or self._epoch[0] != epoch:
            self._list(min(epoch, len(self._begins) - 1))
        return self._epoch[1][first:last]

    def _list(self, epoch: int) -> None:
        """List the micro-batches of an epoch, and store the state at its end."""
        drawn, queue = self._begins[epoch]
        full: list[MicroBatch] = []
        while len(full) < self.batches:
            more, drawn = self._draw(drawn, (self.batches - len(full)) * self.batch_units)
            found = micro_batches(np.concatenate([queue, more]), self.widths, self.batch_units)
            full += [b for b in found if len(b.rows) == self.batch_units]
            queue = np.concatenate([np.empty(0, np.int64), *(b.rows for b in found if len(b.rows) < self.batch_units)])
        left = np.concatenate([queue, *(b.rows for b in full[self.batches :])])
        self._epoch = epoch, full[: self.batches]
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


Sizes = Sequence[tuple[int, int]]
"""A schedule of batch sizes: (first step, rows of a micro-batch from there on), ascending, the first at step 0."""


class StepPlan:
    """All steps of a run: `step(i)` for any i, in any order, from any thread.

    The last step of an epoch takes the remaining micro-batches, so every epoch starts with a new step. With a schedule
    of batch sizes the rows are listed in pieces that divide all sizes, and a step joins pieces of one width.
    """

    def __init__(
        self, widths: Int64, *, batch_rows: int, grad_accum: int, seed: Key, shuffle_buffer: int = 0,
        rows_per_unit: int = 1, source_rows: Sequence[int] = (), shares: Sequence[float] = (), sizes: Sizes = (),
    ) -> None:  # fmt: skip
        """`widths` is the bucket of each row; a step has `grad_accum` micro-batches of `batch_rows` rows, or as `sizes`
        says.

        With `shares` the rows are a mix: source i has `source_rows[i]` rows, in order, and `shares[i]` of those drawn.
        """
        self.grad_accum, self.rows_per_unit = grad_accum, rows_per_unit
        self.sizes = tuple(sizes) or ((0, batch_rows),)
        piece = math.gcd(*(rows for _, rows in self.sizes)) // rows_per_unit
        window, units = shuffle_buffer // rows_per_unit, widths.reshape(-1, rows_per_unit).max(1)
        self.epochs: Epochs | Mixed = Epochs(units, piece, window, seed)
        if shares:
            self.epochs = Mixed(units, np.array(source_rows) // rows_per_unit, np.array(shares), piece, window, seed)
        self._pieces = [(first, rows // rows_per_unit // piece) for first, rows in self.sizes]
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
        low, high = 0, epoch * self.epochs.batches  # an epoch has no more steps than pieces
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._place(middle)[0] >= epoch else (middle + 1, high)
        return low

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
        return self.steps(step, 1)[0]

    def steps(self, first: int, count: int) -> list[list[MicroBatch]]:
        """The micro-batches of `count` steps in a row."""
        found: list[list[MicroBatch]] = []
        for step in range(first, first + count):
            epoch, piece, many = self._place(step)
            last = min(piece + many * self.grad_accum, self.epochs.batches)
            with self._lock:  # one thread makes the list of an epoch
                units = self.epochs.of(epoch, piece, last)
            micros = units if many == 1 else _joined(units, self.rows_at(step) // self.rows_per_unit)
            found.append(
                [MicroBatch(self._rows(u.rows), u.width) for u in micros] if self.rows_per_unit > 1 else micros
            )
        return found

    def _rows(self, units: Int64) -> Int64:
        rows: Int64 = (units[:, None] * self.rows_per_unit + np.arange(self.rows_per_unit)).ravel()
        return rows


def _joined(pieces: Sequence[MicroBatch], most: int) -> list[MicroBatch]:
    """Pieces of one width joined to micro-batches of up to `most` units; wide ones first."""
    found = []
    for width in sorted({p.width for p in pieces}, reverse=True):
        units = np.concatenate([p.rows for p in pieces if p.width == width])
        found += [MicroBatch(units[i : i + most], width) for i in range(0, len(units), most)]
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """How ranks share a step of `grad_accum` micro-batches of `batch_rows` rows; for rank `rank` of `ranks`.

    Micro-batches are cut by rows into as few pieces as give every rank the same number of pieces.
    """

    rank: int = 0
    ranks: int = 1
    grad_accum: int = 1
    batch_rows: int = 1
    rows_per_unit: int = 1

    @property
    def pieces(self) -> int:
        """Number of pieces of a micro-batch."""
        return self.ranks // math.gcd(self.ranks, self.grad_accum)

    @property
    def piece_rows(self) -> int:
        """Rows per piece."""
        return -(-self.batch_rows // self.rows_per_unit // self.pieces) * self.rows_per_unit

    def of(self, step: list[MicroBatch]) -> list[MicroBatch]:
        """The pieces of this rank; every rank has the same number, some of them empty if the step is short."""
        if self.ranks == 1:
            return step
        rows = self.piece_rows
        found = [MicroBatch(m.rows[i : i + rows], m.width) for m in step for i in range(0, len(m.rows), rows)]
        found.sort(key=lambda m: -m.width)  # so that ranks take equally long
        each = -(-len(found) // self.ranks)
        own = found[self.rank :: self.ranks]
        return own + [MicroBatch(found[-1].rows[:0], found[-1].width)] * (each - len(own))
