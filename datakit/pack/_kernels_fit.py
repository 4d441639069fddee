"""Rows filled by what lengths are worth: sequential value correction. Numba and numpy, arrays in and out.

Where hardly any sequence is short, what fills a row best now may leave lengths over that fit nothing. So each length
has a value, at first a power of it: of two ways to fill a gap, the one with the longer sequences is worth more. A row
begins with the longest sequence that is left and takes those that add most value. What stands in a row with much waste
gains value, so that the next round spends it earlier (Mukhacheva and Zalgaller 1993; Belov, Scheithauer and Mukhacheva
2008). Powers are quarters, made of square roots, which every machine rounds alike.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

Int64 = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

LEARNING_RATE = 0.3


@njit(cache=True, nogil=True)
def valued_fit(order: Int64, lengths: Int64, capacity: int, rounds: int, quarters: int) -> Int64:
    """The bin of each sequence in the best of several rounds, with values that begin as length ** (1 + quarters / 4).

    Sequences of one length are taken in `order`.
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


@njit(cache=True, nogil=True)
def _fill(order: Int64, count: Int64, first: Float, value: Float, capacity: int, bins: Int64) -> int:
    """Fill rows until nothing is left, correct the values, and return how many there are."""
    left = count.copy()
    at = np.cumsum(count[::-1])[::-1] - count  # where in `order` the next sequence of a length stands
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


@njit(cache=True, nogil=True)
def _row(left: Int64, value: Float, worthiest: Int64, capacity: int, top: int, row: Int64) -> tuple[int, int]:
    """Put the lengths of a row that begins with `top` into `row`; returns the space left, and how many they are."""
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


@njit(cache=True, nogil=True)
def _worthiest(left: Int64, value: Float, worthiest: Int64, space: int) -> tuple[int, int]:
    """The one or two lengths of most value that fit into a space; 0 for none."""
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


@njit(cache=True, nogil=True)
def _times(left: Int64, row: Int64) -> int:
    """How often to repeat a row: half as often as its lengths would last."""
    times = int(left[row[0]])
    for length in row:
        times = min(times, int(left[length]) // int(np.sum(row == length)))
    return max(1, times // 2) if times > 2 else times
