"""Open hash tables: looking up the n-grams of evaluation items, and stop words."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

_PRIME, _GOLDEN = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)


@kernel
def rolling(words, length):
    """The hash of every run of `length` words: words uint64[W] -> uint64[max(0, W - length + 1)], never 0."""
    total = max(0, words.size - length + 1)
    out = np.empty(total, np.uint64)
    last = np.uint64(1)  # the factor of the word that leaves the n-gram
    for _ in range(length):
        last *= _PRIME
    key = np.uint64(0)
    for i in range(words.size):
        key = key * _PRIME + (words[i] ^ words[i] >> np.uint64(29)) * _GOLDEN
        if i >= length:
            key -= (words[i - length] ^ words[i - length] >> np.uint64(29)) * _GOLDEN * last
        if i >= length - 1:
            # the length keeps n-grams of two sizes apart
            out[i - length + 1] = max((key ^ np.uint64(length)) * _GOLDEN, np.uint64(1))
    return out


@kernel
def table_of(keys):
    """(slots uint64, numbers int32): an open table of different keys, none of them 0, at most half full."""
    size = 64
    while size < 2 * keys.size:
        size *= 2
    slots, numbers = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    for i in range(keys.size):
        slot = keys[i] >> np.uint64(20) & np.uint64(size - 1)
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & np.uint64(size - 1)
        slots[slot], numbers[slot] = keys[i], i
    return slots, numbers


@kernel
def find(words, starts, lengths, slots, numbers):
    """Where the rows hold n-grams of the table.

    words uint64[W] and starts int64[N+1] of the rows in it, lengths int64[L] of the n-grams. Returns three arrays
    int64[H]: the row, the number of the key, the index of its first word in `words`.
    """
    mask = np.uint64(slots.size - 1)
    rows, keys, places = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int64)
    found = 0
    for row in range(starts.size - 1):
        for length in lengths:
            hashes = rolling(words[starts[row] : starts[row + 1]], length)
            for i in range(hashes.size):
                slot = hashes[i] >> np.uint64(20) & mask
                while slots[slot] != 0 and slots[slot] != hashes[i]:
                    slot = (slot + np.uint64(1)) & mask
                if slots[slot] == 0:
                    continue
                if found == rows.size:
                    rows, keys, places = doubled(rows), doubled(keys), doubled(places)
                rows[found], keys[found], places[found] = row, numbers[slot], starts[row] + i
                found += 1
    return rows[:found], keys[:found], places[:found]


@kernel
def doubled(array):
    """A copy of twice the size; the second half is not set."""
    out = np.empty(2 * array.size, array.dtype)
    out[: array.size] = array
    return out


_LANGUAGES = 64  # bits of a mask


@kernel
def count_stop_words(words, starts, languages, slots, numbers, masks):
    """How many different stop words each row has.

    words uint64[W] (hashes) and starts int64[N+1] of the rows in it; languages int64[N]: the bit of the row's language,
    negative for the language that it has most stop words of; slots and numbers: the table of the stop words' hashes;
    masks uint64[V]: the languages of each stop word, as bits -> int64[N].
    """
    rows = starts.size - 1
    out = np.zeros(rows, np.int64)
    seen = np.full(masks.size, -1, np.int64)  # the last row with that word
    of = np.empty(_LANGUAGES, np.int64)
    last = np.uint64(slots.size - 1)
    for row in range(rows):
        of[:] = 0
        for i in range(starts[row], starts[row + 1]):
            slot = words[i] >> np.uint64(20) & last
            while slots[slot] != 0 and slots[slot] != words[i]:
                slot = (slot + np.uint64(1)) & last
            number = numbers[slot]
            if slots[slot] != 0 and seen[number] != row:
                seen[number] = row
                for bit in range(_LANGUAGES):
                    of[bit] += np.int64(masks[number] >> np.uint64(bit) & np.uint64(1))
        out[row] = of[languages[row]] if languages[row] >= 0 else of.max()
    return out
