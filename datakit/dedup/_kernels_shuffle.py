"""Which hashes occur more than once, and which rows are joined through them."""

import numpy as np

from datakit.kernels import kernel


@kernel
def repeated(hashes, seen, twice, out):  # type: ignore[no-untyped-def]
    """Write the places of the hashes that may occur again to `out` int32 (hashes,), in order; returns how many.

    All that do are among them, and few others: hashes are compared by their leading bits. `seen` and `twice` (uint64,
    zeros) have one bit for each value of those; their length is a power of two, so that no index leaves them.
    """
    bits = 6
    while 1 << (bits - 6) < len(seen):
        bits += 1
    shift, low = np.uint64(64 - bits), np.uint64(63)
    for at in range(len(hashes)):
        slot = hashes[at] >> shift
        word, bit = np.int64(slot >> np.uint64(6)), np.uint64(1) << (slot & low)
        twice[word] |= seen[word] & bit
        seen[word] |= bit
    count = np.int64(0)
    for at in range(len(hashes)):
        slot = hashes[at] >> shift
        out[count] = at  # branch-free: always write, advance only if it counts
        count += np.int64(twice[np.int64(slot >> np.uint64(6))] >> (slot & low) & np.uint64(1))
    return count


@kernel
def join(one, other, first):  # type: ignore[no-untyped-def]
    """Union-find: join the rows `one[k]` and `other[k]` (int64). `first` int64 (rows,) holds each row's own number, and
    becomes the smallest row of its component. A parent is never larger than its child, so one ascending pass flattens.
    """
    for k in range(len(one)):
        a, b = one[k], other[k]
        while first[a] != a:
            first[a] = first[first[a]]
            a = first[a]
        while first[b] != b:
            first[b] = first[first[b]]
            b = first[b]
        first[max(a, b)] = min(a, b)
    for row in range(len(first)):
        first[row] = first[first[row]]
