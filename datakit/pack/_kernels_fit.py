"""Kernels that fit sequences into rows. Numba and numpy only.

Three ways to fit: best-fit decreasing, exact pairs, and sequential value correction (Mukhacheva and Zalgaller 1993;
Belov, Scheithauer and Mukhacheva 2008). The last is for sets with few short sequences, where the best way to fill one
row may leave lengths that fit nowhere. So each length has a value, at first a power of the length. A row starts with
the longest sequence that is left, and takes those that add the most value. Lengths in rows with much waste gain value,
so the next round uses them earlier. Exponents are multiples of 1/4: such powers need square roots only, which all
machines round in the same way.
"""

import numpy as np
import numpy.typing as npt

from datakit.kernels import kernel

Int64 = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

LEARNING_RATE = 0.3


@kernel
def best_fit(order: Int64, lengths: Int64, capacity: int) -> Int64:
    """Best fit: the bin of each sequence, int64. In the given `order`, each goes to the fullest bin that fits.

    Bins are in stacks by remaining space: `head[space]` is the last one, `below[bin]` the one below it. The search goes
    through the spaces upwards, and skips 64 at a time where no bin has one of these: O(capacity / 64) for a sequence in
    the worst case, and usually a few steps.
    """
    bins = np.empty(len(lengths), np.int64)
    head = np.full(capacity + 1, -1, np.int64)
    below = np.empty(len(lengths), np.int64)
    filled = np.zeros(capacity // 64 + 1, np.int64)  # how many bins have one of 64 spaces
    count = 0
    for i in order:
        space = lengths[i]
        while space <= capacity and head[space] < 0:
            space += 64 if space % 64 == 0 and filled[space // 64] == 0 else 1
        if space <= capacity:
            taken = head[space]
            head[space] = below[taken]
            filled[space // 64] -= 1
        else:
            taken, space = count, capacity
            count += 1
        bins[i] = taken
        left = space - lengths[i]
        if left > 0:
            below[taken] = head[left]
            head[left] = taken
            filled[left // 64] += 1
    return bins


@kernel
def paired_fit(order: Int64, lengths: Int64, capacity: int) -> Int64:
    """The bin of each sequence, int64. Bins are filled one by one: the longest sequence first, then the one or two that
    fill the bin best.

    Best-fit decreasing leaves gaps when no short sequences are left. This one saves short sequences: of the pairs that
    fill a bin exactly, it takes the one with the smallest difference. Sequences of one length are used in `order`.
    """
    bins = np.empty(len(lengths), np.int64)
    count = np.zeros(capacity + 1, np.int64)
    for length in lengths:
        count[length] += 1
    count[0] = 1  # length 0 is always left, so every search ends
    at = np.cumsum(count[::-1])[::-1] - count  # index in `order` of the next sequence of a length
    shorter = np.arange(capacity + 1)
    for length in range(1, capacity + 1):
        if count[length] == 0:
            shorter[length] = length - 1
    made, left = 0, capacity
    for _ in range(len(lengths)):
        length = _most(shorter, left)
        if length == 0:
            made, left = made + 1, capacity
            length = _most(shorter, left)
        elif length < left < capacity:
            length = _first_of_two(count, shorter, length, left)
        bins[order[at[length]]] = made
        at[length] += 1
        left -= length
        count[length] -= 1
        if count[length] == 0:
            shorter[length] = length - 1
    return bins


@kernel
def _most(shorter: Int64, length: int) -> int:
    """The greatest length <= `length` that is left, or 0: union-find with path halving over the used lengths."""
    while shorter[length] != length:
        shorter[length] = shorter[shorter[length]]
        length = shorter[length]
    return length


@kernel
def _first_of_two(count: Int64, shorter: Int64, single: int, space: int) -> int:
    """The longer of the two lengths that fill a space best, or `single`, the longest that fits, if that is better."""
    if 2 * single < space:
        return single
    longer = (space + 1) // 2
    while longer <= single:
        other = space - longer
        if count[longer] > 0 and other > 0 and count[other] > (longer == other):
            return longer
        longer += 1
    best, taken, longer = single, single, single
    while longer > 0 and 2 * longer > best:
        other = _most(shorter, min(space - longer, longer))
        if other == longer and count[other] == 1:
            other = _most(shorter, longer - 1)
        if other > 0 and longer + other >= best:
            best, taken = longer + other, longer
        longer = _most(shorter, longer - 1)
    return taken


@kernel
def valued_fit(order: Int64, lengths: Int64, capacity: int, rounds: int, quarters: int) -> Int64:
    """Sequential value correction: the bin of each sequence, int64, in the best of several rounds.

    Values start as length ** (1 + quarters / 4). Sequences of one length are used in `order`.
    """
    count = np.zeros(capacity + 1, np.int64)
    for length in lengths:
        count[length] += 1
    first = np.empty(capacity + 1)
    for length in range(capacity + 1):
        first[length] = length
        for _ in range(quarters):
            first[length] *= np.sqrt(np.sqrt(length))
    value = first.copy()
    bins, tried, fewest = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64), len(lengths) + 1
    for _ in range(rounds):
        made = _fill(order, count, first, value, capacity, tried)
        if made < fewest:
            bins, tried, fewest = tried, bins, made
    return bins


@kernel
def _fill(order: Int64, count: Int64, first: Float, value: Float, capacity: int, bins: Int64) -> int:
    """Fill rows until no sequence is left, correct the values, and return the number of rows."""
    left = count.copy()
    at = np.cumsum(count[::-1])[::-1] - count  # index in `order` of the next sequence of a length
    worthiest, row = np.zeros(capacity + 1, np.int64), np.empty(capacity + 1, np.int64)
    made, top, remaining = 0, capacity, len(order)
    while remaining > 0:
        while left[top] == 0:
            top -= 1
        space, n = _row(left, value, worthiest, capacity, top, row)
        times = _times(left, row[:n])
        for _ in range(times):
            for length in row[:n]:
                bins[order[at[length]]] = made
                at[length] += 1
            made += 1
        remaining -= times * n
        for length in row[:n]:
            left[length] -= times
            share = min(1.0, LEARNING_RATE * times / count[length])
            corrected = first[length] * capacity / (capacity - space)
            value[length] = (1 - share) * value[length] + share * corrected
    return made


@kernel
def _row(left: Int64, value: Float, worthiest: Int64, capacity: int, top: int, row: Int64) -> tuple[int, int]:
    """Write the lengths of a row that starts with `top` into `row`; returns the remaining space and their number."""
    row[0], n, space = top, 1, capacity - top
    left[top] -= 1
    while space > 0:
        longer, other = _worthiest(left, value, worthiest, space)
        if longer == 0:
            break
        for length in (longer, other):
            if length > 0:
                row[n] = length
                left[length] -= 1
                space -= length
                n += 1
    for length in row[:n]:
        left[length] += 1
    return space, n


@kernel
def _worthiest(left: Int64, value: Float, worthiest: Int64, space: int) -> tuple[int, int]:
    """The one or two lengths of most value that fit into a space; 0 stands for none."""
    best, most = 0, 0.0
    for length in range(1, space + 1):
        if left[length] > 0 and value[length] >= most:
            best, most = length, value[length]
        worthiest[length] = best
    longer, other = best, 0
    for length in range(space - 1, space // 4, -1):
        if left[length] == 0:
            continue
        second = worthiest[min(space - length, length)]
        if second == length and left[length] == 1:
            second = worthiest[length - 1]
        if second > 0 and value[length] + value[second] > most:
            longer, other, most = length, second, value[length] + value[second]
    return longer, other


@kernel
def _times(left: Int64, row: Int64) -> int:
    """How often to repeat a row: half as often as the remaining sequences allow."""
    times = int(left[row[0]])
    for length in row:
        times = min(times, int(left[length]) // int(np.sum(row == length)))
    return max(1, times // 2) if times > 2 else times
