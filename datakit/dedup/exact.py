"""Exact duplicates, and what every comparison of all rows needs: their sketches where they lie, and bounded memory."""

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

ARRAY_SHARE = (
    64  # some twenty arrays are alive at one time; an array larger than this part of the memory goes to a file
)
_SORT_SHARE = 4  # what is sorted at one time takes no more than this part
_READ_SHARE = 4  # files mapped for reading are given back once they take this part of the memory,
_MAPPED_SHARE = 2  # or once all that is mapped takes this part
_PART_ROWS = 1 << 19


@dataclass(frozen=True, slots=True)
class Memory:
    """`bytes` that arrays may take, and the folder for what is beyond. Results are the same whatever the two are.

    It is no hard limit: what is made and dropped between two steps stays in memory, about 30 bytes a row.
    """

    bytes: int
    folder: Path
    _arrays: weakref.WeakSet[mmap.mmap] = field(default_factory=weakref.WeakSet, repr=False, compare=False)
    _read: weakref.WeakSet[mmap.mmap] = field(default_factory=weakref.WeakSet, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _before: int = field(default_factory=lambda: _mapped_here() or 0, repr=False, compare=False)

    def full(self, shape: tuple[int, ...], value: int, dtype: Any) -> npt.NDArray[Any]:
        """An array filled with a value; a large one lies in a file that has no name, and so cannot be left behind.

        Raises:
            OSError: the disk has no room for it. (Room is taken beforehand: a mapped file that finds none later would
                end the process without a word.)
        """
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size <= self.bytes // ARRAY_SHARE:
            return np.full(shape, value, dtype)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as e:
                raise OSError(e.errno, e.strerror, str(self.folder)) from None
            mapped = mmap.mmap(file.fileno(), size)
        with self._lock:
            self._arrays.add(mapped)
        array = np.frombuffer(mapped, dtype).reshape(shape)
        if value:  # the file is made of zeros
            array[...] = value
            _give_back(mapped)
        return array

    def take(self, array: npt.NDArray[Any], at: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """`array[at]`, made in parts; a large one lies in a file."""
        taken = self.full(at.shape, 0, array.dtype)
        for part in parts(len(at)):
            taken[part] = array[at[part]]
        return taken

    def map(self, path: Path) -> mmap.mmap:
        """The bytes of a file where they lie, for reading."""
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with self._lock:
            self._read.add(mapped)
        return mapped

    def release(self) -> None:
        """Give back the memory of what is mapped, once it is much; it is read again, mostly from the cache.

        Files mapped for reading go first: what is read of them is rarely read again, of arrays all the time. So they
        have their share beside the arrays and what was mapped before, within half of the whole: between two looks much
        may be mapped.
        """
        with self._lock:
            read, arrays = list(self._read), list(self._arrays)
        beside = self._before + sum(map(len, arrays)) + self.bytes // _READ_SHARE
        for mappings, most in ((read, min(beside, self.bytes // _MAPPED_SHARE)), (arrays, self.bytes)):
            resident = _mapped_here()
            if (sum(map(len, [*read, *arrays])) if resident is None else resident) > most:
                for mapped in mappings:
                    _give_back(mapped)

    def keep(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The array, moved to a file if it is large."""
        if array.nbytes <= self.bytes // ARRAY_SHARE:
            return array
        kept = self.full(array.shape, 0, array.dtype)
        kept[...] = array
        return kept

    def ranges(self, size: int) -> int:
        """Into how many ranges (a power of two) work that takes `size` bytes at once is to be cut."""
        parts = 1
        while parts < 1 << 16 and size > parts * max(self.bytes // _SORT_SHARE, 1):
            parts *= 2
        return parts


def _mapped_here() -> int | None:
    """Bytes of files that lie in this process's memory; None where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * mmap.PAGESIZE
    except OSError:
        return None


def _give_back(mapped: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def in_range(hashes: npt.NDArray[np.uint64], part: int, ranges: int) -> npt.NDArray[np.int64]:
    """Where the hashes lie that belong to part number `part` of so many (a power of two) equal ranges, in order."""
    if ranges == 1:
        return np.arange(len(hashes))
    width = (1 << 64) // ranges
    inside = hashes >= np.uint64(part * width)
    inside &= hashes <= np.uint64((part + 1) * width - 1)
    return np.flatnonzero(inside)


def parts(count: int) -> list[slice]:
    """Slices of so many rows, each few enough to be worked on in memory."""
    return [slice(begin, min(begin + _PART_ROWS, count)) for begin in range(0, count, _PART_ROWS)]


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows, numbered through all files; `begins` (batches + 1) is where each batch's numbers begin."""

    batches: list[pa.RecordBatch]
    begins: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.begins[-1])

    def ids(self, numbers: npt.NDArray[np.int64]) -> pa.Array:
        """The ids of the given rows, in that order; null for -1."""
        distinct, place = np.unique(numbers, return_inverse=True)
        known = distinct[distinct >= 0]
        cuts = np.searchsorted(known, self.begins)
        parts = [
            batch.column("id").take(pa.array(known[low:high] - begin))
            for batch, begin, low, high in zip(self.batches, self.begins, cuts, cuts[1:], strict=False)
            if high > low
        ]
        unknown = pa.nulls(len(distinct) - len(known), pa.string())
        return pa.concat_arrays([unknown, *parts]).take(pa.array(place))


def open_rows(paths: Sequence[Path]) -> Rows:
    """Map the sketch files, in the order of their shards; rows are in the order of their keys."""
    readers = [pa.ipc.open_file(pa.memory_map(str(path))) for path in paths]
    batches = [reader.get_batch(i) for reader in readers for i in range(reader.num_record_batches)]
    batches = [batch for batch in batches if batch.num_rows]
    last = -1
    for batch in batches:
        keys = batch.column("row_key").to_numpy()
        assert int(keys[0]) > last and (keys[1:] > keys[:-1]).all(), "rows flow in the order of their keys"
        last = int(keys[-1])
    return Rows(batches, np.cumsum([0, *(b.num_rows for b in batches)], dtype=np.int64))


def values(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    """All values of a column of lists of numbers, where they lie."""
    return np.asarray(batch.column(name).flatten().to_numpy())


def starts(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    """Where the list of each row begins in `values` (rows + 1)."""
    offsets: npt.NDArray[np.int64] = batch.column(name).offsets.to_numpy()
    return np.asarray(offsets - offsets[0], np.int64)


def lists(numbers: npt.NDArray[Any], begins: npt.NDArray[np.int64]) -> pa.Array:
    """The large_list array whose row i is `numbers[begins[i]:begins[i + 1]]`."""
    kind = pa.large_list(pa.field("item", pa.from_numpy_dtype(numbers.dtype), nullable=False))
    return pa.LargeListArray.from_arrays(pa.array(begins), pa.array(numbers), type=kind)


def first_of_equals(digests: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """For each row the first row with the same digest (itself where it is the first); rows are in the policy's order.

    `digests` is uint64 (rows, 2), the two halves of 128 bits. Returns int64 (rows,).
    """
    rows = len(digests)
    order = np.argsort(digests[:, 0], kind="stable")
    ordered = digests[order]
    same_half = ordered[1:, 0] == ordered[:-1, 0]
    same = same_half & (ordered[1:, 1] == ordered[:-1, 1])
    if not np.array_equal(same, same_half):  # two digests share a half: sort by all of it
        order = np.lexsort((digests[:, 1], digests[:, 0]))
        ordered = digests[order]
        same = (ordered[1:] == ordered[:-1]).all(axis=1)
    begins = np.flatnonzero(np.concatenate(([True], ~same))) if rows else np.empty(0, np.int64)
    first = np.empty(rows, dtype=np.int64)
    first[order] = np.repeat(order[begins], np.diff(begins, append=rows))
    return first
