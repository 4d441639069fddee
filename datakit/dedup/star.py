"""Who stays: each near-duplicate row is dropped for a kept row that it truly resembles."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from datakit.dedup import _kernels_sets, _kernels_star
from datakit.dedup.components import first_of_component
from datakit.dedup.lsh import Buckets
from datakit.dedup.memory import Memory

CROWD = 64
"""Kept rows in a bucket from which on they are looked up in an index instead of compared one by one."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """For rows in the policy's order: who stays, and how similar the others are to it.

    `survivor` int64 (rows,): the row that stays for this one, -1 where the row stays itself. `similarity` float64
    (rows,): exact Jaccard similarity with the survivor, rounded to 1e-3; 1 where the row stays.
    """

    survivor: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float64]
    pairs_compared: int
    entries_visited: int


def star(
    buckets: Buckets,
    address: npt.NDArray[np.uint64],
    length: npt.NDArray[np.int64],
    least: Fraction,
    memory: Memory,
    crowd: int = CROWD,
    settled: int = 0,
) -> Clusters:
    """A row is dropped exactly if an earlier kept row shares a band and their Jaccard similarity is at least `least`.

    Of several such rows the first is named. The first `settled` rows are kept without a comparison: an earlier run did.
    Rows are in the policy's order; `address` and `length` say where each row's set of shingles lies (`_kernels_sets`).
    The similarity is compared as a ratio of counts, without rounding.
    """
    rows = _kernels_star.Rows(buckets.of_row, address, length, least.numerator, least.denominator)
    head, tail, kept = (memory.full(buckets.sizes.shape, value, np.int32) for value in (-1, -1, 0))
    lists = _kernels_star.Lists(head, tail, kept, memory.full(buckets.of_row.shape, -1, np.int32))
    survivor, shared = (memory.full(length.shape, value, np.int64) for value in (-1, 0))
    room = (memory.full(length.shape, -1, np.int32) for _ in range(2))
    compared, visited = _kernels_star.star(rows, settled, buckets.sizes, crowd, lists, survivor, shared, *room)
    return Clusters(survivor, _similarity(survivor, shared, length), compared, visited)


def components(buckets: Buckets, address: npt.NDArray[np.uint64], length: npt.NDArray[np.int64]) -> Clusters:
    """The first row of each chain of shared bands stays. The similarity with it is exact, and may be low."""
    first = first_of_component(buckets)
    survivor = np.where(first == np.arange(len(first)), -1, first)
    shared = np.zeros(len(first), dtype=np.int64)
    _kernels_sets.shared_with(address, length, survivor, shared)
    return Clusters(survivor, _similarity(survivor, shared, length), int((survivor >= 0).sum()), 0)


def _similarity(
    survivor: npt.NDArray[np.int64], shared: npt.NDArray[np.int64], length: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    return np.where(survivor < 0, 1.0, to_thousandths(shared, length + length[survivor] - shared))


def to_thousandths(shared: npt.NDArray[np.int64], union: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """shared / union rounded to 1e-3 (halves up) from the counts themselves, so that every host agrees; 0 / 0 is 0."""
    whole = np.maximum(union, 1)
    thousandths: npt.NDArray[np.int64] = (2000 * shared + whole) // (2 * whole)
    return thousandths / 1000
