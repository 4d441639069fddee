"""The order of training: which rows make which optimizer step, as a pure function of lengths, seed and epoch.

A step's rows depend on nothing that ran before, so the index of the step is all the state that a resumed run needs.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


def windowed_permutation(rows: int, window: int, key: tuple[int, ...]) -> Int64:
    """Rows 0..rows-1 in the order of a shuffle buffer: windows in random order, each shuffled within.

    Windows hold `window` rows and begin at a random place, so neighbours differ between epochs; 0 or 1 keeps the
    file's order and a window of all rows is a full permutation. `key` seeds it.
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
    """Rows that pass through the model at once, and the positions that each is given."""

    rows: Int64
    width: int


def micro_batches(order: Int64, widths: Int64, batch_rows: int) -> list[MicroBatch]:
    """Rows in `order`, gathered by width into micro-batches of `batch_rows`, each emitted when it is full.

    `widths` is the bucket of every row. What is left at the end comes last, in smaller micro-batches: every row
    is in exactly one.
    """
    found: list[tuple[int, MicroBatch]] = []
    for width in np.unique(widths):
        places = np.flatnonzero(widths[order] == width)
        for i in range(0, len(places), batch_rows):
            here = places[i : i + batch_rows]
            full = len(here) == batch_rows
            found.append((int(here[-1]) if full else len(order), MicroBatch(order[here], int(width))))
    return [batch for _, batch in sorted(found, key=lambda f: (f[0], f[1].width))]


class StepPlan:
    """The steps of a data set: `step(i)` for any i, in any order."""

    def __init__(
        self,
        widths: Int64,
        *,
        batch_rows: int,
        grad_accum: int,
        shuffle_buffer: int,
        seed: tuple[int, ...],
        rows_per_unit: int = 1,
    ) -> None:
        """`widths` is the bucket of each row; a step has `grad_accum` micro-batches of `batch_rows` rows.

        Rows move in units of `rows_per_unit` neighbours, which share a micro-batch and the widest one's bucket.
        """
        self.widths = widths.reshape(-1, rows_per_unit).max(1)
        self.rows_per_unit, self.batch_units = rows_per_unit, batch_rows // rows_per_unit
        self.grad_accum, self.shuffle_units, self.seed = grad_accum, shuffle_buffer // rows_per_unit, seed
        self._epoch: tuple[int, list[MicroBatch]] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """The same in every epoch, because the buckets are."""
        _, units = np.unique(self.widths, return_counts=True)
        batches = int((-(-units // self.batch_units)).sum())
        return -(-batches // self.grad_accum)

    def epoch_of(self, step: int) -> int:
        """The epoch, from 0, that a step (from 0) belongs to."""
        return step // self.steps_per_epoch

    def step(self, step: int) -> list[MicroBatch]:
        """The micro-batches of a step; the last step of an epoch may have fewer."""
        epoch, within = divmod(step, self.steps_per_epoch)
        if self._epoch is None or self._epoch[0] != epoch:
            order = windowed_permutation(len(self.widths), self.shuffle_units, (*self.seed, epoch))
            self._epoch = epoch, micro_batches(order, self.widths, self.batch_units)
        units = self._epoch[1][within * self.grad_accum : (within + 1) * self.grad_accum]
        return [MicroBatch(self._rows(unit.rows), unit.width) for unit in units]

    def _rows(self, units: Int64) -> Int64:
        rows: Int64 = (units[:, None] * self.rows_per_unit + np.arange(self.rows_per_unit)).ravel()
        return rows
