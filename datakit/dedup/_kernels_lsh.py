"""Which band hashes occur more than once, before anything is sorted. Arrays only."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def repeated(hashes, seen, twice, out):  # type: ignore[no-untyped-def]
    """Write the numbers of the rows whose hash may occur again to `out` int32 (rows,), in order; returns how many.

    All of those whose hash does, and few others: hashes are told apart by their leading bits. `seen` and `twice` are
    zeros, uint64, a bit for each such number; their length is a power of two.
    """
    bits = 6
    while 1 << (bits - 6) < len(seen):
        bits += 1
    shift, low = np.uint64(64 - bits), np.uint64(63)
    for row in range(len(hashes)):
        slot = hashes[row] >> shift
        word, bit = np.int64(slot >> np.uint64(6)), np.uint64(1) << (slot & low)
        twice[word] |= seen[word] & bit
        seen[word] |= bit
    count = np.int64(0)
    for row in range(len(hashes)):
        slot = hashes[row] >> shift
        out[count] = row  # and is written over unless it counts
        count += np.int64(twice[np.int64(slot >> np.uint64(6))] >> (slot & low) & np.uint64(1))
    return count
