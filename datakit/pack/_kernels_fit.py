"""Kernels that fit sequences into rows, and that copy tokens and labels into them. Numba and numpy only.

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

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

LEARNING_RATE = 0.3
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)


def _de_bruijn_table() -> npt.NDArray[np.int64]:
    """At index (x * _DE_BRUIJN) >> 58: the position of the only set bit of x."""
    table = np.zeros(64, np.int64)
    for bit in range(64):
        table[((1 << bit) * int(_DE_BRUIJN) & (1 << 64) - 1) >> 58] = bit
    return table


_BIT = _de_bruijn_table()


@kernel
def by_length(lengths: Int64, longest: int) -> Int64:
    """Indices of sequences by descending length; a stable counting sort, O(n + longest)."""
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
    """Best fit: the bin of each sequence, int64. In the given `order`, each goes to the fullest bin that fits.

    Bins are in stacks by remaining space. A bitmap of the non-empty stacks is searched 64 at a time, so a sequence
    costs O(capacity / 64) in the worst case, and usually O(1).
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
def copy_rows(ids: Int32, starts: Int64, lengths: Int64, rows: Int64, ids_NS: Int32) -> None:
    """Copy pieces, sorted by row, into the rows of `ids_NS`."""
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
    """Copy pieces into `flat`, in order."""
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
    """Write the label positions and the sequence boundaries of each row; pieces are sorted by row.

    `mask` is empty for plain text. `places` gets the index of each piece in its row.
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
