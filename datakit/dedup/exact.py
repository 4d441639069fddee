"""Exact duplicates: rows with equal digests, found over all rows in bounded memory.

The comparison of all rows maps their sketches (Arrow IPC files) into memory (`SketchRows`). Large arrays lie in files
without a name (`Memory`), and what must be sorted is cut into ranges of its hashes. The comparisons of near duplicates,
URLs, lines, spans and n-grams use the same classes.
"""

import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ARRAY_SHARE = 64
"""An array larger than this part of the memory lies in a file: about twenty arrays are alive at one time."""

_SORT_SHARE = 4  # what is sorted at one time takes no more than this part
_READ_SHARE = 4  # memory of mapped sketches is released once they take this part of the memory,
_MAPPED_SHARE = 2  # or once all that is mapped takes this part
_PART_ROWS = 1 << 19
_DIGEST_BYTES = 96  # per row while digests are sorted: the digest twice, its place, the order, ...


@dataclass(frozen=True, slots=True)
class Memory:
    """`bytes` that arrays may take, and the folder for larger ones. Neither changes a result.

    This is not a hard limit: temporary arrays of single steps stay in memory, about 30 bytes a row.
    """

    bytes: int
    folder: Path
    _arrays: weakref.WeakSet[mmap.mmap] = field(default_factory=weakref.WeakSet, repr=False, compare=False)
    _read: weakref.WeakSet[mmap.mmap] = field(default_factory=weakref.WeakSet, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _before: int = field(default_factory=lambda: _resident_bytes() or 0, repr=False, compare=False)

    def full(self, shape: tuple[int, ...], value: int, dtype: Any) -> npt.NDArray[Any]:
        """An array filled with a value. A large one lies in a file without a name, which vanishes with the process.

        Raises:
            OSError: the disk has no space for it. (The space is allocated at once: a mapped file that finds none later
                would kill the process without a message.)
        """
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size <= self.bytes // ARRAY_SHARE:
            return np.full(shape, value, dtype) if value else np.zeros(shape, dtype)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as e:
                raise OSError(e.errno, e.strerror, str(self.folder)) from None
            mapped = mmap.mmap(file.fileno(), size)
        with self._lock:
            self._arrays.add(mapped)
        array = np.frombuffer(mapped, dtype).reshape(shape)
        if value:  # a new file holds zeros
            array[...] = value
            _release(mapped)
        return array

    def keep(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The array, moved to a file if it is large."""
        if array.nbytes <= self.bytes // ARRAY_SHARE:
            return array
        kept = self.full(array.shape, 0, array.dtype)
        kept[...] = array
        return kept

    def take(self, array: npt.NDArray[Any], at: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """`array[at]`, computed in parts; a large result lies in a file."""
        taken = self.full(at.shape, 0, array.dtype)
        for part in parts(len(at)):
            taken[part] = array[at[part]]
        return taken

    def map(self, path: Path) -> mmap.mmap:
        """The bytes of a file, mapped for reading."""
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with self._lock:
            self._read.add(mapped)
        return mapped

    def release(self) -> None:
        """Return mapped memory to the system once it is much; later reads mostly come from the page cache.

        Files mapped for reading go first: their parts are rarely read twice, while arrays are read all the time. They
        may take their share in addition to the arrays and to what was mapped before, but at most half of `bytes`:
        much may be mapped between two calls.
        """
        with self._lock:
            read, arrays = list(self._read), list(self._arrays)
        others = self._before + sum(map(len, arrays)) + self.bytes // _READ_SHARE
        for mappings, most in ((read, min(others, self.bytes // _MAPPED_SHARE)), (arrays, self.bytes)):
            resident = _resident_bytes()
            if (sum(map(len, [*read, *arrays])) if resident is None else resident) > most:
                for mapped in mappings:
                    _release(mapped)

    def ranges(self, size: int) -> int:
        """The number of ranges (a power of two) that work on `size` bytes must be cut into."""
        ranges = 1
        while ranges < 1 << 16 and size > ranges * max(self.bytes // _SORT_SHARE, 1):
            ranges *= 2
        return ranges


def _resident_bytes() -> int | None:
    """Bytes of mapped files in the memory of this process; None where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * mmap.PAGESIZE
    except OSError:
        return None


def _release(mapped: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


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


@dataclass(frozen=True, slots=True)
class SketchRows:
    """The sketches of all rows, mapped into memory. Rows are numbered through all files.

    `batches` own the mapped memory. `begins` int64 (batches + 1,): the number of each batch's first row.
    """

    batches: list[pa.RecordBatch]
    begins: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.begins[-1])

    def ids(self, numbers: npt.NDArray[np.int64]) -> pa.Array:
        """The ids of the given rows, in that order; null for -1."""
        distinct, place = np.unique(numbers, return_inverse=True)
        known = distinct[distinct >= 0]
        cuts = np.searchsorted(known, self.begins)
        found = [
            batch.column("id").take(pa.array(known[low:high] - begin))
            for batch, begin, low, high in zip(self.batches, self.begins, cuts, cuts[1:], strict=False)
            if high > low
        ]
        unknown = pa.nulls(len(distinct) - len(known), pa.string())
        return pa.concat_arrays([unknown, *found]).take(pa.array(place))

    def column(self, name: str, memory: Memory) -> npt.NDArray[np.uint64]:
        """A uint64 column of all rows."""
        values = memory.full((len(self),), 0, np.uint64)
        for batch, begin in zip(self.batches, self.begins, strict=False):
            values[begin : begin + batch.num_rows] = batch.column(name).to_numpy()
        return values

    def digests(self, part: int, ranges: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
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
    ranges = memory.ranges(len(order) * _DIGEST_BYTES)
    for number in range(ranges):
        numbers, digests = rows.digests(number, ranges)
        places = place[numbers]
        by_place = np.argsort(places)
        by_place = by_place[np.searchsorted(places[by_place], 0) :]
        places = places[by_place]
        first[places] = places[first_of_equals(digests[by_place])]
        memory.release()
    return first


def first_of_equals(digests: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """For each row the first row with the same digest (itself where it is the first).

    `digests` is uint64 (rows, 2), the two halves of 128 bits. Returns int64 (rows,).
    """
    rows = len(digests)
    order = np.argsort(digests[:, 0], kind="stable")
    ordered = digests[order]
    same_half = ordered[1:, 0] == ordered[:-1, 0]
    same = same_half & (ordered[1:, 1] == ordered[:-1, 1])
    if not np.array_equal(same, same_half):  # two digests share a half: sort by both
        order = np.lexsort((digests[:, 1], digests[:, 0]))
        ordered = digests[order]
        same = (ordered[1:] == ordered[:-1]).all(axis=1)
    begins = np.flatnonzero(np.concatenate(([True], ~same))) if rows else np.empty(0, np.int64)
    first = np.empty(rows, dtype=np.int64)
    first[order] = np.repeat(order[begins], np.diff(begins, append=rows))
    return first
