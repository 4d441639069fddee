"""Locality-sensitive hashing (Indyk and Motwani, 1998): rows that share a band of their signatures are candidates."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Buckets:
    """Rows by shared band.

    `of_row` is int32 (rows, num_bands): the bucket that holds the row for that band, -1 where it is alone in it.
    `sizes` is int64 (buckets,): rows in each, at least 2. Buckets are numbered by band, then by band hash.
    """

    of_row: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int64]

    @property
    def pairs(self) -> int:
        """Pairs of rows in the same bucket, counted once for each band that they share."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())


def find_buckets(bands: npt.NDArray[np.uint64], workers: int) -> Buckets:
    """Group rows by each of their bands; `bands` is uint64 (rows, num_bands). Each band is a task of its own."""
    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(_one_band, bands.T))
    of_row = np.empty(bands.shape, dtype=np.int32)
    first = 0
    for band, (bucket, sizes) in enumerate(found):
        of_row[:, band] = np.where(bucket >= 0, bucket + first, -1)
        first += len(sizes)
    return Buckets(of_row, np.concatenate([sizes for _, sizes in found]) if found else np.empty(0, np.int64))


def _one_band(hashes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(each row's bucket or -1, the buckets' sizes) for one band."""
    order = np.argsort(hashes)
    ordered = hashes[order]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(hashes) else order
    sizes = np.diff(begins, append=len(hashes))
    shared = sizes > 1
    number = np.where(shared, np.cumsum(shared) - 1, -1)
    bucket = np.empty(len(hashes), dtype=np.int64)
    bucket[order] = np.repeat(number, sizes)
    return bucket, sizes[shared]


def candidate_probability(similarity: float, num_bands: int, rows_per_band: int) -> float:
    """P(two rows of this Jaccard similarity share a band) = 1 - (1 - s^r)^b, rounded to 1e-3."""
    return round(1.0 - (1.0 - similarity**rows_per_band) ** num_bands, 3)
