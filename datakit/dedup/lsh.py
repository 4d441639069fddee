"""Locality-sensitive hashing (Indyk and Motwani, 1998): rows that share a band of their signatures are candidates."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from datakit.dedup.memory import Memory, in_range
from datakit.native import Kernels

_kernels = Kernels("datakit.dedup._kernels_lsh")
_SLOTS_A_ROW = 8  # at least: one row in eight is taken for one that shares its hash, or fewer
_SORT_BYTES = 64  # a row takes while its band is sorted: the order, the hashes in it, where buckets begin, ...


@dataclass(frozen=True, slots=True)
class Buckets:
    """Rows by shared band.

    `of_row` is int32 (num_bands, rows): the bucket that holds the row for that band, -1 where it is alone in it.
    `sizes` is int64 (buckets,): rows in each, at least 2. Buckets are numbered by band, then by band hash.
    """

    of_row: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int64]

    @property
    def pairs(self) -> int:
        """Pairs of rows in the same bucket, counted once for each band that they share."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())

    def leave_settled(self, settled: int) -> None:
        """Take the first `settled` rows out of the buckets that hold no other: there is nothing left to decide there.

        Changes `of_row` in place; `sizes` stay as they were found.
        """
        for of_row in self.of_row if settled and len(self.sizes) else ():
            holds_new = np.zeros(len(self.sizes), np.bool_)
            fresh, old = of_row[settled:], of_row[:settled]
            holds_new[fresh[fresh >= 0]] = True
            old[~holds_new[old]] = -1


def find_buckets(
    band: Callable[[int], npt.NDArray[np.uint64]], num_bands: int, rows: int, memory: Memory, workers: int = 1
) -> Buckets:
    """Group rows by each of their bands; `band(n)` gives the hashes of band n, uint64 (rows,).

    Each band is a task of its own, and is sorted by ranges of its hashes where all of it is too much.
    """
    of_row = memory.full((num_bands, rows), -1, np.int32)
    ranges = memory.ranges(rows * workers * _SORT_BYTES)

    def one(number: int) -> npt.NDArray[np.int64]:
        sizes = _one_band(band(number), of_row[number], ranges, memory)
        memory.release()
        return sizes

    with ThreadPoolExecutor(workers) as pool:
        sizes = list(pool.map(one, range(num_bands)))
    first = 0
    for number, found in enumerate(sizes):
        np.add(of_row[number], first, out=of_row[number], where=of_row[number] >= 0)
        first += len(found)
    return Buckets(of_row, memory.keep(np.concatenate(sizes) if sizes else np.empty(0, np.int64)))


def _one_band(
    hashes: npt.NDArray[np.uint64], of_row: npt.NDArray[np.int32], ranges: int, memory: Memory
) -> npt.NDArray[np.int64]:
    """Write each row's bucket, numbered by hash within the band, to `of_row`; returns the buckets' sizes."""
    found, first = [np.empty(0, np.int64)], 0
    repeated = repeated_hashes(hashes, memory)
    chosen = memory.take(hashes, repeated)
    for part in range(ranges):
        places = in_range(chosen, part, ranges)
        order = np.argsort(chosen[places])
        places = places[order]
        rows, ordered = repeated[places], chosen[places]
        begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(rows) else order
        sizes = np.diff(begins, append=len(rows))
        shared = sizes > 1
        number = np.where(shared, first + np.cumsum(shared) - 1, -1)
        of_row[rows] = np.repeat(number, sizes)
        found.append(sizes[shared])
        first += int(shared.sum())
    return np.concatenate(found)


def repeated_hashes(hashes: npt.NDArray[np.uint64], memory: Memory) -> npt.NDArray[np.int32]:
    """The rows that may share their hash, in order: all that do and few others.

    Most rows are alone, and not worth a sort.
    """
    words = 1
    while 64 * words < _SLOTS_A_ROW * len(hashes):
        words *= 2
    seen, twice, out = (memory.full((n,), 0, kind) for n, kind in
                        ((words, np.uint64), (words, np.uint64), (len(hashes), np.int32)))  # fmt: skip
    return out[: _kernels.repeated(hashes, seen, twice, out)]


def candidate_probability(similarity: float, num_bands: int, rows_per_band: int) -> float:
    """P(two rows of this Jaccard similarity share a band) = 1 - (1 - s^r)^b, rounded to 1e-3."""
    return round(1.0 - (1.0 - similarity**rows_per_band) ** num_bands, 3)
