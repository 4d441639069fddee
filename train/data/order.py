"""The order of training: which rows make which micro-batch, and which micro-batches make which step.

The order is a pure function of row lengths, weights, seed and epoch. It does not depend on earlier steps, ranks or
workers, so the index of the step is the whole state of a resumed run.

Rows are ordered in units of `rows_per_unit` neighbouring rows; in the classes for epochs a row is such a unit. Units of
one width (bucket) make a micro-batch.
"""

import math
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Order = Literal["shuffle_buffer", "permutation", "sequential"]
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


ROUNDS = 8
"""Rounds of the Feistel network; four are enough in theory (Luby and Rackoff, 1988), small networks need more."""


def permuted(places: Int64, rows: int, key: Key) -> Int64:
    """The rows at some indices of a random permutation of 0..rows-1, without storing the permutation.

    A Feistel network permutes numbers with an even number of bits. Results outside 0..rows-1 go through it again until
    they are inside (cycle walking: Black and Rogaway, 2002). `key` is the random seed.
    """
    half = np.uint64(max(1, -(-(max(2, rows) - 1).bit_length() // 2)))
    keys = np.random.SeedSequence(key).generate_state(ROUNDS, np.uint64).astype(np.uint64)
    found = _feistel(places.astype(np.uint64), half, keys)
    while len(outside := np.flatnonzero(found >= rows)):
        found[outside] = _feistel(found[outside], half, keys)
    return found.astype(np.int64)


def _feistel(x: npt.NDArray[np.uint64], half: np.uint64, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = x >> half, x & mask
    for k in keys:
        mixed = (right ^ k) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
        left, right = right, left ^ ((mixed >> np.uint64(32)) & mask)
    return (left << half) | right


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Shuffle:
    """The order of the units of one source in each epoch."""

    order: Order
    window: int
    """Units in the shuffle buffer."""

    def at(self, places: Int64, units: int, key: Key) -> Int64:
        """The units at the given indices of all epochs of the source in a row; each epoch has its own order."""
        epochs, places = np.divmod(places, units)
        found = np.empty_like(places)
        for epoch in np.unique(epochs):
            here, seed = epochs == epoch, (*key, int(epoch))
            if self.order == "permutation":
                found[here] = permuted(places[here], units, seed)
            else:
                window = self.window if self.order == "shuffle_buffer" else 0
                found[here] = windowed_permutation(units, window, seed)[places[here]]
        return found


class Epochs(Protocol):
    """Interface: the micro-batches of every epoch, with units as rows."""

    batches: int
    """Number of micro-batches of an epoch, the same for every epoch."""

    def of(self, epoch: int, first: int, last: int) -> list[MicroBatch]:
        """Micro-batches `first` to `last` of an epoch."""
        ...


class Dealt:
    """A full permutation with access to any micro-batch of any epoch; stores only the width of each unit.

    The units of each width are permuted, and then the micro-batches.
    """

    def __init__(self, widths: Int64, batch_units: int, key: Key) -> None:
        self.by_width = np.argsort(widths, kind="stable")
        self.kinds, self.units = np.unique(widths, return_counts=True)
        self.batch_units, self.key = batch_units, key
        self.ends = np.cumsum(-(-self.units // batch_units))
        self.batches = int(self.ends[-1])

    def of(self, epoch: int, first: int, last: int) -> list[MicroBatch]:
        """Micro-batches `first` to `last` of an epoch."""
        numbers = permuted(np.arange(first, min(last, self.batches)), self.batches, (*self.key, epoch, 0))
        kinds = np.searchsorted(self.ends, numbers, side="right")
        begins = (numbers - np.r_[0, self.ends][kinds]) * self.batch_units
        sizes = np.minimum(self.units[kinds] - begins, self.batch_units)
        found: dict[int, MicroBatch] = {}
        for kind in np.unique(kinds).tolist():
            here = np.flatnonzero(kinds == kind)
            ends = np.cumsum(sizes[here])
            places = np.arange(ends[-1]) + np.repeat(begins[here] - (ends - sizes[here]), sizes[here])
            units = permuted(places, int(self.units[kind]), (*self.key, epoch, 1 + kind)) + self.units[:kind].sum()
            parts = np.split(self.by_width[units], ends[:-1])
            found |= {i: MicroBatch(p, int(self.kinds[kind])) for i, p in zip(here.tolist(), parts, strict=True)}
        return [found[i] for i in range(len(numbers))]


class Listed:
    """A shuffle buffer, or the order of the files; stores the micro-batches of one epoch at a time."""

    def __init__(self, widths: Int64, batch_units: int, shuffle: Shuffle, key: Key) -> None:
        self.widths, self.batch_units, self.shuffle, self.key = widths, batch_units, shuffle, key
        self.batches = int((-(-np.unique(widths, return_counts=True)[1] // batch_units)).sum())
        self._epoch: tuple[int, Listing] | None = None

    def of(self, epoch: int, first: int, last: int) -> list[MicroBatch]:
        """Micro-batches `first` to `last` of an epoch."""
        if self._epoch is None or self._epoch[0] != epoch:
            units = len(self.widths)
            order = self.shuffle.at(epoch * units + np.arange(units), units, self.key)
            self._epoch = epoch, micro_batches(order, self.widths, self.batch_units)
        return self._epoch[1].of(first, last)


class Mixed:
    """A weighted mix of sources, each with its own epochs; every part of the run has the same weights.

    An epoch of the mix has as many micro-batches as all units would fill. Units left at its end go into the next epoch,
    and so does the position in each source, so that a unit comes once in each epoch of its source.
    """

    def __init__(
        self, widths: Int64, units: Int64, shares: Shares, batch_units: int, shuffle: Shuffle, key: Key
    ) -> None:
        """`units` is the number of units of each source, in order; `shares` are shares of the units drawn."""
        self.widths, self.units, self.shares = widths, units, shares / shares.sum()
        self.batch_units, self.shuffle, self.key = batch_units, shuffle, key
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
        drawn, carried = self._begins[epoch]
        full: list[MicroBatch] = []
        queue = carried
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
            here = source == i
            found[here] = first + self.shuffle.at(place[here], int(self.units[i]), (*self.key, i))
        return found, drawn + np.bincount(source, minlength=len(drawn))


Schedule = Sequence[tuple[int, int]]
"""Pairs (first step, micro-batches per step), ascending; the first pair starts at step 0."""


@dataclass(frozen=True, slots=True)
class _StepRange:
    """A range of steps with the same number of micro-batches: first step, its epoch, its micro-batch in the epoch."""

    step: int
    grad_accum: int
    epoch: int
    micro: int

    def at(self, step: int, batches: int) -> tuple[int, int]:
        """Epoch and first micro-batch of a step, if the range goes that far; an epoch has `batches` micro-batches.

        The last step of an epoch takes the remaining micro-batches, so every epoch starts with a new step.
        """
        left = -(-(batches - self.micro) // self.grad_accum)
        after = step - self.step - left
        if after < 0:
            return self.epoch, self.micro + (step - self.step) * self.grad_accum
        epochs, within = divmod(after, -(-batches // self.grad_accum))
        return self.epoch + 1 + epochs, within * self.grad_accum


class StepPlan:
    """All steps of a run: `step(i)` for any i, in any order, from any thread."""

    def __init__(
        self,
        widths: Int64,
        *,
        batch_rows: int,
        grad_accum: int | Schedule,
        seed: Key,
        order: Order = "shuffle_buffer",
        shuffle_buffer: int = 0,
        rows_per_unit: int = 1,
        source_rows: Sequence[int] = (),
        shares: Sequence[float] = (),
    ) -> None:
        """`widths` is the bucket of each row; a step has `grad_accum` micro-batches of `batch_rows` rows.

        With `shares` the rows are a mix: source i has `source_rows[i]` rows, in order, and `shares[i]` of the rows
        drawn.
        """
        self.rows_per_unit, batch_units = rows_per_unit, batch_rows // rows_per_unit
        shuffle = Shuffle(order=order, window=shuffle_buffer // rows_per_unit)
        units = widths.reshape(-1, rows_per_unit).max(1)
        self.epochs: Epochs
        if shares:
            sizes = np.array(source_rows) // rows_per_unit
            self.epochs = Mixed(units, sizes, np.array(shares), batch_units, shuffle, seed)
        elif order == "permutation":
            self.epochs = Dealt(units, batch_units, seed)
        else:
            self.epochs = Listed(units, batch_units, shuffle, seed)
        self._ranges = _step_ranges([(0, grad_accum)] if isinstance(grad_accum, int) else grad_accum, self.epochs)
        self._starts = [s.step for s in self._ranges]
        self._lock = threading.Lock()

    @property
    def steps_per_epoch(self) -> int:
        """Steps of the first epoch; all epochs have as many, unless the batch size has a schedule."""
        return self.first_step_of(1)

    def first_step_of(self, epoch: int) -> int:
        """The first step (from 0) of an epoch (from 0)."""
        return bisect_left(range(epoch * self.epochs.batches + 1), epoch, key=self.epoch_of)

    def epoch_of(self, step: int) -> int:
        """The epoch (from 0) of a step (from 0)."""
        return self._range(step).at(step, self.epochs.batches)[0]

    def grad_accum_of(self, step: int) -> int:
        """Micro-batches of a step; the last one of an epoch may have fewer."""
        return self._range(step).grad_accum

    def steps_alike(self, step: int) -> int:
        """Number of steps from this one on with the same number of micro-batches; at most a billion."""
        later = bisect_right(self._starts, step)
        return self._starts[later] - step if later < len(self._starts) else 10**9

    def step(self, step: int) -> list[MicroBatch]:
        """The micro-batches of a step."""
        return self.steps(step, 1)[0]

    def steps(self, first: int, count: int) -> list[list[MicroBatch]]:
        """The micro-batches of `count` steps in a row; together they cost little more than one step."""
        found: list[list[MicroBatch]] = []
        while len(found) < count:
            begin, batches = first + len(found), self.epochs.batches
            each, (epoch, micro) = self.grad_accum_of(begin), self._range(begin).at(begin, batches)
            many = min(count - len(found), self.steps_alike(begin), -(-(batches - micro) // each))
            with self._lock:  # one thread makes the list of an epoch
                units = self.epochs.of(epoch, micro, micro + many * each)
            micros = [MicroBatch(self._rows(u.rows), u.width) for u in units] if self.rows_per_unit > 1 else units
            found += [micros[i * each : (i + 1) * each] for i in range(many)]
        return found

    def _range(self, step: int) -> _StepRange:
        return self._ranges[bisect_right(self._starts, step) - 1]

    def _rows(self, units: Int64) -> Int64:
        rows: Int64 = (units[:, None] * self.rows_per_unit + np.arange(self.rows_per_unit)).ravel()
        return rows


def _step_ranges(schedule: Schedule, epochs: Epochs) -> list[_StepRange]:
    found: list[_StepRange] = []
    for step, grad_accum in schedule:
        place = found[-1].at(step, epochs.batches) if found else (0, 0)
        found.append(_StepRange(step, grad_accum, *place))
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
