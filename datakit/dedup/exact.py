"""Exact duplicates: rows whose normalised text has the same digest."""

import numpy as np
import numpy.typing as npt


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
