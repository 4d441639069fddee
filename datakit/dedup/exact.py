"""Helpers of stages that are not on `shuffle` yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.dedup.index import EarlierRun
from datakit.dedup.shuffle import Memory, SketchRows, first_of_equals

_PART_ROWS = 1 << 19
_DIGEST_BYTES = 96
_SORT_SHARE = 4


def ranges_of(memory: Memory, size: int) -> int:
    """The number of ranges (a power of two) that work on `size` bytes must be cut into."""
    ranges = 1
    while ranges < 1 << 16 and size > ranges * max(memory.bytes // _SORT_SHARE, 1):
        ranges *= 2
    return ranges


def in_range(hashes: npt.NDArray[np.uint64], part: int, ranges: int) -> npt.NDArray[np.int64]:
    """Indices of the hashes that lie in range number `part` of `ranges` (a power of two) equal ranges, ascending."""
    if ranges == 1:
        return np.arange(len(hashes))
    width = (1 << 64) // ranges
    inside = hashes >= np.uint64(part * width)
    inside &= hashes <= np.uint64((part + 1) * width - 1)
    return np.flatnonzero(inside)


def parts(count: int) -> list[slice]:
    """Slices of `count` rows, each small enough to work on in memory."""
    return [slice(begin, min(begin + _PART_ROWS, count)) for begin in range(0, count, _PART_ROWS)]


def _digests(self: SketchRows, part: int, ranges: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """(row numbers int64 (n,), digests uint64 (n, 2)) of the rows whose digest lies in one of `ranges` ranges.

    Rows without a digest (null) are left out.
    """
    rows, digests = [np.empty(0, np.int64)], [np.empty((0, 2), np.uint64)]
    for batch, begin in zip(self.batches, self.begins, strict=False):
        column = batch.column("digest")
        assert column.offset == 0
        halves = np.frombuffer(column.buffers()[1], np.uint64)[: 2 * len(column)].reshape(-1, 2)
        chosen = in_range(halves[:, 0], part, ranges)
        if column.null_count:
            chosen = chosen[column.is_valid().to_numpy(zero_copy_only=False)[chosen]]
        rows.append(begin + chosen)
        digests.append(halves[chosen])
    return np.concatenate(rows), np.concatenate(digests)


def open_rows(paths: Sequence[Path], memory: Memory, *, by_key: bool = True) -> SketchRows:
    """Map the sketch files, in the order of their shards. With `by_key`, rows must come in the order of their keys."""
    readers = [pa.ipc.open_file(pa.py_buffer(memory.map(path))) for path in paths]
    batches = [reader.get_batch(i) for reader in readers for i in range(reader.num_record_batches)]
    batches = [batch for batch in batches if batch.num_rows]
    last = -1
    for keys in (batch.column("row_key").to_numpy() for batch in batches if by_key):
        assert int(keys[0]) > last and (keys[1:] > keys[:-1]).all(), "rows come in the order of their keys"
        last = int(keys[-1])
    return SketchRows(batches, np.cumsum([0, *(b.num_rows for b in batches)], dtype=np.int64))


def first_equal_rows(rows: SketchRows, order: npt.NDArray[np.int64], memory: Memory) -> npt.NDArray[np.int64]:
    """For each place in `order` (row numbers) the first place whose row has the same digest; -1 without a digest.

    Returns int64 (len(order),). Rows that `order` leaves out do not count.
    """
    place, first = memory.full((len(rows),), -1, np.int64), memory.full(order.shape, -1, np.int64)
    for part in parts(len(order)):
        place[order[part]] = np.arange(part.start, part.stop)
    ranges = ranges_of(memory, len(order) * _DIGEST_BYTES)
    for number in range(ranges):
        numbers, digests = _digests(rows, number, ranges)
        places = place[numbers]
        by_place = np.argsort(places)
        by_place = by_place[np.searchsorted(places[by_place], 0) :]
        places = places[by_place]
        first[places] = places[first_of_equals(digests[by_place])]
        memory.release()
    return first


def live_rows(sketches: SketchRows, earlier: tuple[EarlierRun, ...]) -> npt.NDArray[np.int64]:
    """The numbers of the earlier rows that are not removed, in order; sketches begin with the rows of all indexes."""
    live, begin = [np.empty(0, np.int64)], 0
    for run in earlier:
        rows = np.arange(begin, begin + run.rows)
        if run.removed.ids:
            removed = pa.array(run.removed.ids, pa.string())
            known = [
                pc.is_in(batch.column("id"), removed).to_numpy(zero_copy_only=False)
                for batch, first in zip(sketches.batches, sketches.begins, strict=False)
                if begin <= first < begin + run.rows
            ]
            rows = rows[~np.concatenate([np.empty(0, np.bool_), *known])]
        live.append(rows)
        begin += run.rows
    return np.concatenate(live)


@dataclass(frozen=True, slots=True)
class AllRows(SketchRows):
    """The sketches of a run behind the indexes of earlier runs, whose rows come first.

    `old`: how many rows these are. `live` bool (old,): whether a row of an index still counts.
    """

    old: int
    live: npt.NDArray[np.bool_]

    def among_all(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers of some rows among all rows of the runs; -1 stays."""
        return rows

    @property
    def new(self) -> range:
        """The numbers of the batches that hold the rows of this run."""
        return range(int(np.searchsorted(self.begins, self.old)), len(self.batches))


def open_all(sketches: Sequence[Path], earlier: tuple[EarlierRun, ...], memory: Memory, workers: int) -> AllRows:
    """Map the sketch files of this run, and before them the indexes of earlier runs.

    Raises:
        IntegrityError: an index is damaged.
    """
    for run in earlier:
        run.check(workers)
    before = open_rows([path for run in earlier for path in run.paths], memory, by_key=False)
    here = open_rows(sketches, memory)
    live = np.zeros(len(before), np.bool_)
    live[live_rows(before, earlier) if earlier else []] = True
    begins = np.concatenate([before.begins[:-1], len(before) + here.begins])
    return AllRows([*before.batches, *here.batches], begins, len(before), live)
