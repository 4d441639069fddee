"""Repetition: which of a row's lines, paragraphs and n-grams occur more than once. Part of the signal pass."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

MIN_TOP, MAX_TOP, MIN_DUP, MAX_DUP = 2, 4, 5, 10  # n of the n-grams: the most frequent one, all duplicate ones

_FIRST_SIZE = 4096
_ONE, _GOLDEN = np.uint64(1), np.uint64(0x9E3779B97F4A7C15)


@kernel
def duplicates(sizes, total, numbers, counts, firsts, out):
    """Fill out[4]: copies after the first and their code points, all copies of what occurs twice and theirs."""
    for i in range(total):
        if counts[numbers[i]] > 1:
            out[2] += 1
            out[3] += sizes[i]
            if firsts[numbers[i]] != i:
                out[0] += 1
                out[1] += sizes[i]


@kernel
def table_size(entries):
    """Slots for that many entries at half load at most: a power of two."""
    size = 64
    while size < 2 * entries:
        size *= 2
    return size


@kernel
def number(keys, total, table, numbers, counts, firsts):
    """Number equal keys alike, in order of their first occurrence; returns how many different ones there are.

    Fills numbers[i] of each key, counts[number] and firsts[number] (the i of the first occurrence). A key of 0 counts
    as 1: keys are hashes, or pairs that never are 0. `table` (uint64, twice `table_size(total)`) holds a key and its
    number side by side; it begins small and grows with the different keys, so that few of them stay in the cache.
    """
    limit = table_size(total)
    size = min(limit, _FIRST_SIZE)
    table[: 2 * size] = 0
    distinct = 0
    for i in range(total):
        key = max(keys[np.uintp(i)], np.uint64(1))
        slot = _slot(key, table, size)
        if table[slot] == 0:
            if 2 * distinct >= size and size < limit:
                size = _grown(keys, distinct, table, size, limit, firsts)
                slot = _slot(key, table, size)
            table[slot], table[slot + _ONE] = key, distinct
            counts[distinct], firsts[distinct] = 0, i
            distinct += 1
        number = table[slot + _ONE]
        numbers[np.uintp(i)] = number
        counts[number] += 1
    return distinct


@kernel
def _slot(key, table, size):
    """Where a key is in the table, or would be."""
    mixed = key * _GOLDEN
    mask = np.uint64(size - 1)
    slot = (mixed ^ mixed >> np.uint64(32)) & mask
    while table[slot << _ONE] != 0 and table[slot << _ONE] != key:
        slot = (slot + _ONE) & mask
    return slot << _ONE


@kernel
def _grown(keys, distinct, table, size, limit, firsts):
    """Make the table four times as large; returns its size."""
    size = min(4 * size, limit)
    table[: 2 * size] = 0
    for number in range(distinct):
        key = max(keys[firsts[number]], np.uint64(1))
        slot = _slot(key, table, size)
        table[slot], table[slot + _ONE] = key, number
    return size


@kernel
def ngrams(keys, total_words, step, sizes, starts, words, places, numbers, counts, firsts, table, chars, out):
    """Characters in the most frequent 2..4-gram and in repeated 5..10-grams of one row; an n-gram is n * step words.

    An n-gram can repeat only where the (n-1)-grams at its place and a step behind it do, so the places still worth a
    look shrink with n. An n-gram's key is exact: the number of its (n-1)-gram and the number of its last `step` words.
    Fills out: top 2..4-grams, then duplicate 5..10-grams counted as extra copies, then the same counted as all copies.
    """
    number(keys, total_words, table, words, counts, firsts)
    for i in range(total_words):
        places[np.uintp(i)] = i
    numbers[:total_words] = words[:total_words]
    left = _repeated(places, numbers, counts, total_words)
    for length in range(2, step + 1):
        total = _longer(keys, words, places, numbers, left, length - 1, 1)
        number(keys, total, table, numbers, counts, firsts)
        left = _repeated(places, numbers, counts, total)
    for i in range(left):
        words[np.uintp(places[np.uintp(i)])] = numbers[np.uintp(i)]
    for n in range(MIN_TOP, MAX_DUP + 1):
        total = _longer(keys, words, places, numbers, left, (n - 1) * step, step)
        if total < 2:
            return
        distinct = number(keys, total, table, numbers, counts, firsts)
        if n <= MAX_TOP:
            out[n - MIN_TOP] = _top(sizes, starts, places, counts, firsts, distinct, n * step, chars)
        left = _repeated(places, numbers, counts, total)
        if n >= MIN_DUP:
            extra = MAX_TOP - MIN_TOP + 1 + n - MIN_DUP
            out[extra + MAX_DUP - MIN_DUP + 1] = _covered(sizes, places, left, n * step)
            out[extra] = _extra(sizes, places, numbers, counts, left, n * step)


# Both write each element whether or not it stays: what stays is no branch that a processor could guess.
@kernel
def _repeated(places, numbers, counts, total):
    """Leave only the places whose number occurs more than once; returns how many."""
    left = 0
    for i in range(total):
        same = numbers[np.uintp(i)]
        places[np.uintp(left)], numbers[np.uintp(left)] = places[np.uintp(i)], same
        left += counts[np.uintp(same)] > 1
    return left


@kernel
def _longer(keys, words, places, numbers, left, length, step):
    """Leave only the places of grams of `length` words that have another one `step` words behind them, and fill keys:
    the number of the gram and of the `step` words behind it. Returns how many."""
    total, behind = 0, 0
    for i in range(left):
        place = places[np.uintp(i)]
        while behind < left and places[np.uintp(behind)] < place + step:
            behind += 1
        if behind == left:
            break
        last = np.uint64(words[np.uintp(place + length)])
        keys[np.uintp(total)] = np.uint64(numbers[np.uintp(i)] + 1) << np.uint64(32) | last
        places[np.uintp(total)] = place
        total += places[np.uintp(behind)] == place + step
    return total


@kernel
def _top(sizes, starts, places, counts, firsts, distinct, length, chars):
    """Characters in all occurrences of the most frequent n-gram (the first of equals), spaces between words included;
    0 if none occurs twice. Occurrences may overlap, so the row's characters are the limit."""
    best = 0
    for i in range(distinct):
        if counts[i] > counts[best]:
            best = i
    if counts[best] < 2:
        return 0
    first = places[firsts[best]]
    last = first + length - 1
    return min(np.int64(counts[best]) * (starts[last] + sizes[last] - starts[first]), chars)


@kernel
def _covered(sizes, places, total, length):
    """Characters of the words that lie in any repeated n-gram, each word once."""
    chars, done = 0, 0
    for i in range(total):
        for word in range(max(done, places[i]), places[i] + length):
            chars += sizes[word]
        done = places[i] + length
    return chars


@kernel
def _extra(sizes, places, numbers, counts, total, length):
    """Characters of the words in n-grams seen before, from left to right; behind a hit reading goes on."""
    for i in range(total):
        counts[numbers[i]] = 0  # from here on: has been seen
    chars, free = 0, 0
    for i in range(total):
        if places[i] < free:
            continue
        if counts[numbers[i]]:
            for word in range(places[i], places[i] + length):
                chars += sizes[word]
            free = places[i] + length
        counts[numbers[i]] = 1
    return chars
