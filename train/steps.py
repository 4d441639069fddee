"""Which micro-batches make which optimizer step, and how ranks share them.

A step's rows depend on nothing that ran before, nor on how many ranks and workers there are, so the index of the step
is all the state that a resumed run needs.
"""

import math
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from train.order import Dealt, Epochs, Int64, Key, Listed, MicroBatch, Mixed, Order, Shuffle

Schedule = Sequence[tuple[int, int]]
"""(steps taken, micro-batches of each step from then on), ascending; the first is from step 0 on."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Steps of equally many micro-batches, and where they begin: a step, its epoch, its micro-batch there."""

    step: int
    grad_accum: int
    epoch: int
    micro: int

    def at(self, step: int, batches: int) -> tuple[int, int]:
        """Epoch and first micro-batch of a step, if the stretch goes on that far; an epoch has `batches` of them.

        An epoch's last step has the rest of its micro-batches, so each epoch begins with a step.
        """
        left = -(-(batches - self.micro) // self.grad_accum)
        after = step - self.step - left
        if after < 0:
            return self.epoch, self.micro + (step - self.step) * self.grad_accum
        epochs, within = divmod(after, -(-batches // self.grad_accum))
        return self.epoch + 1 + epochs, within * self.grad_accum


class StepPlan:
    """The steps of a data set: `step(i)` for any i, in any order, from any thread."""

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

        With `shares` it is a mix of sources that have `source_rows` rows each, one after another, and a source's share
        is of the rows drawn.
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
        self._stretches = _stretches([(0, grad_accum)] if isinstance(grad_accum, int) else grad_accum, self.epochs)
        self._starts = [s.step for s in self._stretches]
        self._lock = threading.Lock()

    @property
    def steps_per_epoch(self) -> int:
        """Steps of the first epoch, and of every other if all steps are of one size."""
        return self.first_step_of(1)

    def first_step_of(self, epoch: int) -> int:
        """The step (from 0) that an epoch (from 0) begins with."""
        return bisect_left(range(epoch * self.epochs.batches + 1), epoch, key=self.epoch_of)

    def epoch_of(self, step: int) -> int:
        """The epoch, from 0, that a step (from 0) belongs to."""
        return self._stretch(step).at(step, self.epochs.batches)[0]

    def grad_accum_of(self, step: int) -> int:
        """Micro-batches of a step; the last one of an epoch may have fewer."""
        return self._stretch(step).grad_accum

    def steps_alike(self, step: int) -> int:
        """How many steps from this one on have as many micro-batches; at most a billion."""
        later = bisect_right(self._starts, step)
        return self._starts[later] - step if later < len(self._starts) else 10**9

    def step(self, step: int) -> list[MicroBatch]:
        """The micro-batches of a step."""
        return self.steps(step, 1)[0]

    def steps(self, first: int, count: int) -> list[list[MicroBatch]]:
        """The micro-batches of steps one after another; together they cost little more than one."""
        found: list[list[MicroBatch]] = []
        while len(found) < count:
            begin, batches = first + len(found), self.epochs.batches
            each, (epoch, micro) = self.grad_accum_of(begin), self._stretch(begin).at(begin, batches)
            many = min(count - len(found), self.steps_alike(begin), -(-(batches - micro) // each))
            with self._lock:  # an epoch's list is made once
                units = self.epochs.of(epoch, micro, micro + many * each)
            micros = [MicroBatch(self._rows(u.rows), u.width) for u in units] if self.rows_per_unit > 1 else units
            found += [micros[i * each : (i + 1) * each] for i in range(many)]
        return found

    def _stretch(self, step: int) -> _Stretch:
        return self._stretches[bisect_right(self._starts, step) - 1]

    def _rows(self, units: Int64) -> Int64:
        rows: Int64 = (units[:, None] * self.rows_per_unit + np.arange(self.rows_per_unit)).ravel()
        return rows


def _stretches(schedule: Schedule, epochs: Epochs) -> list[_Stretch]:
    found: list[_Stretch] = []
    for step, grad_accum in schedule:
        place = found[-1].at(step, epochs.batches) if found else (0, 0)
        found.append(_Stretch(step, grad_accum, *place))
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """How ranks share a step of `grad_accum` micro-batches of `batch_units` units: rank `rank` of `ranks`.

    Micro-batches are cut by rows just as far as it takes for each rank to have equally many pieces.
    """

    rank: int = 0
    ranks: int = 1
    grad_accum: int = 1
    batch_rows: int = 1
    rows_per_unit: int = 1

    @property
    def pieces(self) -> int:
        """That a micro-batch is cut into."""
        return self.ranks // math.gcd(self.ranks, self.grad_accum)

    @property
    def piece_rows(self) -> int:
        """Rows of a piece."""
        return -(-self.batch_rows // self.rows_per_unit // self.pieces) * self.rows_per_unit

    def of(self, step: list[MicroBatch]) -> list[MicroBatch]:
        """This rank's pieces of a step: as many as every other rank has, empty ones where the step is a short one."""
        if self.ranks == 1:
            return step
        rows = self.piece_rows
        found = [MicroBatch(m.rows[i : i + rows], m.width) for m in step for i in range(0, len(m.rows), rows)]
        found.sort(key=lambda m: -m.width)  # so that ranks are busy for equally long
        each = -(-len(found) // self.ranks)
        own = found[self.rank :: self.ranks]
        return own + [MicroBatch(found[-1].rows[:0], found[-1].width)] * (each - len(own))
