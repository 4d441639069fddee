"""Rows filled by what lengths are worth: sequential value correction. Numba and numpy, arrays in and out.

Where hardly any sequence is short, what fills a row best now may leave lengths over that fit nothing. So each length
has a value, at first a power of it: of two ways to fill a gap, the one with the longer sequences is worth more. A row
begins with the longest sequence that is left and takes those that add most value. What stands in a row with much waste
gains value, so that the next round spends it earlier (Mukhacheva and Zalgaller 1993; Belov, Scheithauer and Mukhacheva
2008). Powers are quarters, made of square roots, which every machine rounds alike.
"""

import numpy as np
import numpy.typing as npt

from datakit.kernels import kernel

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

LEARNING_RATE = 0.3
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)


def _de_bruijn_table() -> npt.NDArray[np.int64]:
    """Index of the only set bit of x, at place (x * sequence) >> 58."""
    table = np.zeros(64, np.int64)
    for bit in range(64):
        table[((1 << bit) * int(_DE_BRUIJN) & (1 << 64) - 1) >> 58] = bit
    return table


_BIT = _de_bruijn_table()


@kernel
def by_length(lengths: Int64, longest: int) -> Int64:
    """Indices of sequences in order of falling length, equal ones in their own order: a counting sort, O(n + L)."""
    starts = np.zeros(longest + 2, np.int64)
    for length in lengths:
        starts[longest - length + 1] += 1
    starts = np.cumsum(starts)
    order = np.empty(len(lengths), np.int64)
    for i in range(len(lengths)):
        place = longest - lengths[i]
        order[starts[place]] = i
        starts[place] += 1
    return order


@kernel
def best_fit(order: Int64, lengths: Int64, capacity: int) -> Int64:
    """The bin of each sequence: taken in `order`, each goes where the least space remains that it fits into.

    Bins lie in stacks by remaining space; a bitmap of non-empty stacks is searched 64 spaces at a time, so a sequence
    costs O(capacity / 64) at worst and O(1) as a rule.
    """
    bins = np.empty(len(lengths), np.int64)
    head = np.full(capacity + 1, -1, np.int64)
    below = np.empty(len(lengths), np.int64)
    words = np.zeros(capacity // 64 + 1, np.uint64)
    count = 0
    for i in order:
        length = lengths[i]
        space = _least_space(words, length)
        if space < 0:
            made, space = count, capacity
            count += 1
        else:
            made = int(head[space])
            head[space] = below[made]
            if head[space] < 0:
                words[space >> 6] &= ~(np.uint64(1) << np.uint64(space & 63))
        bins[i] = made
        left = space - length
        if left > 0:
            below[made] = head[left]
            head[left] = made
            words[left >> 6] |= np.uint64(1) << np.uint64(left & 63)
    return bins


@kernel
def _least_space(words: npt.NDArray[np.uint64], length: int) -> int:
    """The least remaining space >= length that some bin has, or -1."""
    word = length >> 6
    bits = words[word] >> np.uint64(length & 63) << np.uint64(length & 63)
    while bits == 0:
        word += 1
        if word == len(words):
            return -1
        bits = words[word]
    lowest = bits & (~bits + np.uint64(1))
    space: int = (word << 6) + _BIT[(lowest * _DE_BRUIJN) >> np.uint64(58)]
    return space


@kernel
def paired_fit(order: Int64, lengths: Int64, capacity: int) -> Int64:
    """The bin of each sequence, bin by bin: the longest first, then what fills the bin best, looking two ahead.

    Where best-fit decreasing leaves gaps because no short sequences are left for them, this one saves them up: of the
    pairs that fill a bin exactly, the most even one is taken. Sequences of one length are taken in `order`.
    """
    bins = np.empty(len(lengths), np.int64)
    count = np.zeros(capacity + 1, np.int64)
    for length in lengths:
        count[length] += 1
    count[0] = 1  # nothing is always there, so that every search ends
    at = np.cumsum(count[::-1])[::-1] - count  # where in `order` the next sequence of a length stands
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
    """The greatest length <= `length` that is left, or 0; used-up lengths point to shorter ones, paths are halved."""
    while shorter[length] != length:
        shorter[length] = shorter[shorter[length]]
        length = shorter[length]
    return length


@kernel
def _first_of_two(count: Int64, shorter: Int64, single: int, space: int) -> int:
    """The longer of the two lengths that fill a space best, or `single`, the longest that fits, if two do no better."""
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
def mark(mask: npt.NDArray[np.uint8], starts: Int64, ends: Int64) -> None:
    """Set mask[start:end] to 1 for each span."""
    for i in range(len(starts)):
        for t in range(starts[i], ends[i]):
            mask[t] = 1


@kernel
def count_labels(mask: npt.NDArray[np.uint8], starts: Int64, lengths: Int64) -> Int64:
    """Label tokens of each piece; a piece's first token is never a target."""
    counts = np.zeros(len(starts), np.int64)
    for i in range(len(starts)):
        for t in range(starts[i] + 1, starts[i] + lengths[i]):
            counts[i] += mask[t]
    return counts


@kernel
def copy_rows(ids: Int32, starts: Int64, lengths: Int64, rows: Int64, ids_NS: Int32) -> None:
    """Copy pieces, sorted by row, one after another into the rows of `ids_NS`."""
    at = 0
    previous = -1
    for i in range(len(starts)):
        row = rows[i]
        if row != previous:
            at, previous = 0, row
        first = starts[i]
        for t in range(lengths[i]):
            ids_NS[row, at + t] = ids[first + t]
        at += lengths[i]


@kernel
def copy_flat(ids: Int32, starts: Int64, lengths: Int64, flat: Int32) -> None:
    """Copy pieces one after another."""
    at = 0
    for i in range(len(starts)):
        first = starts[i]
        for t in range(lengths[i]):
            flat[at + t] = ids[first + t]
        at += lengths[i]


@kernel
def lay_out(
    mask: npt.NDArray[np.uint8], starts: Int64, lengths: Int64, rows: Int64,
    labels: Int32, label_counts: Int64, segments: Int32, segment_counts: Int64, places: Int64,
) -> None:  # fmt: skip
    """Note label positions and boundaries of each row of pieces, sorted by row.

    `mask` may be empty (plain text). `places` gets each piece's number within its row.
    """
    at = label = boundary = 0
    previous = -1
    for i in range(len(starts)):
        row = rows[i]
        if row != previous:
            at, previous = 0, row
            segments[boundary] = 0
            boundary += 1
            segment_counts[row] = 1
        places[i] = segment_counts[row] - 1
        first = starts[i]
        if len(mask):
            for t in range(1, lengths[i]):
                if mask[first + t]:
                    labels[label] = at + t - 1
                    label += 1
                    label_counts[row] += 1
        at += lengths[i]
        segments[boundary] = at
        boundary += 1
        segment_counts[row] += 1


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
def _times(left: Int64, row: Int64) -> int:
    """How often to repeat a row: half as often as its lengths would last."""
    times = int(left[row[0]])
    for length in row:
        times = min(times, int(left[length]) // int(np.sum(row == length)))
    return max(1, times // 2) if times > 2 else times
