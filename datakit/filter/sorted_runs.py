"""Sorting more records than fit into memory: sorted runs on the disk, merged range by range.

A buffer of records is sorted when it is full and written as a run. To read them in order, the range of keys is cut
where the runs' own samples say that a part fits into memory; the slices of all runs in that part are merged in pairs.
Records are those of `_kernels_kneser_ney`: uint64[N, 3]. Records with equal keys become one, with the sum of their
values, so that the result depends neither on the size of the buffer nor on the number of threads.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from datakit.filter import _kernels_kneser_ney as kernels

Records = NDArray[np.uint64]
"""uint64[N, 3]: the high and the low half of a key, and a value."""

RECORD_BYTES: Final = 24
_SAMPLE: Final = 1 << 12
"""Every so many records of a run, a key stays in memory."""
_LEAST: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where records are sorted: a folder for temporary files, the memory to use, and threads."""

    folder: Path
    bytes: int
    pool: ThreadPoolExecutor
    threads: int

    @property
    def buffer_records(self) -> int:
        """Records of one buffer, so that the one that is filled and two for each thread fit into the memory."""
        return max(self.bytes // RECORD_BYTES // (1 + 2 * self.threads), _LEAST)


class SortedRuns:
    """Records in any order, to be read in the order of the lowest `bits` of their keys, once."""

    def __init__(self, work: Workspace, name: str, bits: int) -> None:
        self._work, self._name, self._bits = work, name, bits
        self._buffer, self._filled = np.empty((work.buffer_records, 3), np.uint64), 0
        self._runs: list[Future[tuple[Path, Records]]] = []

    def room(self) -> Records:
        """The free part of the buffer, never empty, to write records into; `wrote` says how many these were."""
        return self._buffer[self._filled :]

    def wrote(self, count: int) -> None:
        """`count` records are in the part that `room` gave."""
        self._filled += count
        if self._filled == len(self._buffer):
            self._spill()

    def tables(self) -> Iterator[Records]:
        """All records in order, in parts of about half a buffer or less."""
        if not self._runs:
            yield self._sorted(self._buffer[: self._filled])
            return
        self._spill()
        self._buffer = np.empty((0, 3), np.uint64)
        runs = [run.result() for run in self._runs]
        cuts = self._cuts([samples for _, samples in runs])
        maps = [np.memmap(path, np.uint64, "r").reshape(-1, 3) for path, _ in runs]
        places = [[int(kernels.lower_bound(m, *cut)) for cut in cuts] for m in maps]
        bounds = [[0, *inner, len(m)] for m, inner in zip(maps, places, strict=True)]
        del maps
        ahead: list[Future[Records]] = []
        for part in range(len(cuts) + 1 + self._work.threads):
            if part <= len(cuts):
                slices = [(path, b[part], b[part + 1]) for (path, _), b in zip(runs, bounds, strict=True)]
                ahead.append(self._work.pool.submit(_merged, slices))
            if part >= self._work.threads:
                yield ahead.pop(0).result()
        for path, _ in runs:
            path.unlink()

    def _cuts(self, samples: list[Records]) -> list[tuple[np.uint64, np.uint64]]:
        """Keys that cut the records of all runs into parts which fit into half a buffer."""
        every = np.concatenate(samples)
        ordered = every[np.lexsort((every[:, 1], every[:, 0]))]
        step = max(self._work.buffer_records // 2 // _SAMPLE, 1)
        return list(dict.fromkeys((high, low) for high, low in ordered[step::step, :2]))

    def _spill(self) -> None:
        """Sort and write the buffer in a thread; wait first where all threads have one."""
        pending = [run for run in self._runs if not run.done()]
        if len(pending) >= self._work.threads:
            pending[0].result()
        if self._filled:
            path = self._work.folder / f"{self._name}.{len(self._runs)}.run"
            self._runs.append(self._work.pool.submit(self._write, self._buffer[: self._filled], path))
            self._buffer = np.empty((self._work.buffer_records, 3), np.uint64)
        self._filled = 0

    def _sorted(self, records: Records) -> Records:
        spare = np.empty_like(records)
        found = spare if kernels.sort(records, spare, self._bits) else records
        return found[: kernels.add_equal(found)]

    def _write(self, records: Records, path: Path) -> tuple[Path, Records]:
        """Write a run; returns its path, and every `_SAMPLE`th of its records."""
        found = self._sorted(records)
        found.tofile(path)
        return path, found[_SAMPLE // 2 :: _SAMPLE].copy()


def _merged(slices: Iterable[tuple[Path, int, int]]) -> Records:
    """The records of slices (run, begin, end) in order."""
    tables = [
        np.fromfile(path, np.uint64, (end - begin) * 3, offset=begin * RECORD_BYTES).reshape(-1, 3)
        for path, begin, end in slices
        if end > begin
    ]
    while len(tables) > 1:
        one, other = tables.pop(0), tables.pop(0)
        out = np.empty((len(one) + len(other), 3), np.uint64)
        tables.append(out[: kernels.merge(one, other, out)])
    return tables[0] if tables else np.empty((0, 3), np.uint64)


# Tables that are in order already.


class TableFile:
    """A table on the disk that is written once, from its beginning to its end, and read in blocks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = path.open("wb")

    def write(self, records: Records) -> None:
        """Add records at the end."""
        assert self._file is not None, "a table is read after it was written"
        self._file.write(records.data)

    def blocks(self, records: int) -> Iterator[Records]:
        """All records in order, up to `records` at a time."""
        if self._file is not None:
            self._file.close()
            self._file = None
        with self._path.open("rb") as file:
            while len(block := np.fromfile(file, np.uint64, 3 * records)):
                yield block.reshape(-1, 3)

    def remove(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
        self._path.unlink()


class Cursor:
    """The part of a table that was read and not used yet."""

    def __init__(self, blocks: Iterator[Records]) -> None:
        self._blocks, self.rest, self.more = blocks, np.empty((0, 3), np.uint64), True

    def use(self, count: int) -> None:
        """The first `count` records of `rest` are done; where none remain, `rest` is the next block, if there is
        `more`."""
        self.rest = self.rest[count:]
        while not len(self.rest) and self.more:
            block = next(self._blocks, None)
            self.more, self.rest = block is not None, self.rest if block is None else block
