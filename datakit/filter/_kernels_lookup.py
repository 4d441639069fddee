"""Open hash tables of n-grams of words: entries of lists, stop words, evaluation items and what rows hold of them.

A table is (slots uint64, a power of two; numbers int32): a slot has a key, or 0 where it is free, and `numbers` the
number of that key. Keys are hashes of 64 bits and stand for their n-grams, which are not compared.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

_PRIME, _GOLDEN = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)


@kernel(inner=True)
def rolling(words, length):
    """The hash of every run of `length` words, 1 or more: words uint64[W] -> uint64[max(0, W - length + 1)], never 0.

    A polynomial over the words; as multiplying is modulo 2**64, the word that leaves is subtracted exactly.
    """
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


@kernel(forceinline=True, inner=True)
def slot_of(slots, key):
    """The place of a key, or the free place where it would be: one of them is always free."""
    last = np.uint64(slots.size - 1)
    slot = key >> np.uint64(20) & last
    while slots[slot] != 0 and slots[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@kernel
def table_of(keys):
    """(slots, numbers): the table of less than 2**31 different keys, none of them 0, at most half full."""
    size = 64
    while size < 2 * keys.size:
        size *= 2
    slots, numbers = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    for i in range(keys.size):
        slot = slot_of(slots, keys[i])
        slots[slot], numbers[slot] = keys[i], i
    return slots, numbers


@kernel
def find(words, starts, lengths, slots, numbers):
    """Where the rows hold n-grams of the table.

    words uint64[W] and starts int64[N+1] of the rows in it, lengths int64[L] of the n-grams. Returns int64[H, 3]: the
    row, the number of the key, the index of its first word in `words`.
    """
    hits, found = np.empty((1024, 3), np.int64), 0
    for row in range(starts.size - 1):
        for length in lengths:
            hashes = rolling(words[starts[row] : starts[row + 1]], length)
            for i in range(hashes.size):
                slot = slot_of(slots, hashes[i])
                if slots[slot] == 0:
                    continue
                if found == len(hits):
                    hits = _doubled(hits)
                hits[found, 0], hits[found, 1], hits[found, 2] = row, numbers[slot], starts[row] + i
                found += 1
    return hits[:found]


@kernel(inner=True)
def _doubled(rows):
    """A copy with twice as many rows; the second half is not set."""
    out = np.empty((2 * len(rows), rows.shape[1]), np.int64)
    out[: len(rows)] = rows
    return out


_LANGUAGES = 64  # bits of a mask


@kernel
def count_stop_words(words, starts, languages, slots, numbers, masks):
    """How many different stop words each row has.

    words uint64[W] (hashes) and starts int64[N+1] of the rows in it; languages int64[N]: the bit of the row's language,
    negative for the language that it has most stop words of; slots and numbers: the table of the stop words' hashes;
    masks uint64[V]: the languages of each stop word, as bits, so no more than 64 -> int64[N].
    """
    rows = starts.size - 1
    out = np.zeros(rows, np.int64)
    seen = np.full(masks.size, -1, np.int64)  # the last row with that word
    of = np.empty(_LANGUAGES, np.int64)
    for row in range(rows):
        of[:] = 0
        for i in range(starts[row], starts[row + 1]):
            slot = slot_of(slots, words[i])
            number = numbers[slot]
            if slots[slot] != 0 and seen[number] != row:
                seen[number] = row
                for bit in range(_LANGUAGES):
                    of[bit] += np.int64(masks[number] >> np.uint64(bit) & np.uint64(1))
        out[row] = of[languages[row]] if languages[row] >= 0 else of.max()
    return out


# Shares of the parts of evaluation items that rows hold, weighed by how rare their words are.

WINDOW = 2000  # words within which all that counts for one part must be; the next window begins half of that later


@kernel
def grams_of(words, starts, sizes):
    """The n-gram that begins at each word of some texts, uint64[W]; 0 where a text has no more than n - 1 words left.

    words uint64[W], starts int64[N+1] of the texts in it, sizes int64[N]: n of each text.
    """
    out = np.zeros(words.size, np.uint64)
    for i in range(sizes.size):
        hashes = rolling(words[starts[i] : starts[i + 1]], sizes[i])
        out[starts[i] : starts[i] + hashes.size] = hashes
    return out


@kernel
def score(hits, starts, grams, parts, min_weight):
    """What rows hold of the parts of items.

    hits int64[H, 3]: row, number and place of the n-grams found (`find`), in ascending order of rows and places;
    starts int64[N+1] of the rows in their words. grams: sizes int64[K] of the n-grams in words, and where n-gram k
    begins in the items' words: `postings[posting_starts[k]:posting_starts[k + 1]]`. parts: weights int64[W] and
    part_of int64[W] of the items' words, totals int64[P] and item_of int64[P] of the parts. min_weight: what the
    matched words must weigh in a row that holds more than this item; up to one and a half times that weight the share
    counts less, down to three quarters.
    Returns int64[M, 5]: row, part, share in thousandths, and the first and last matched word, in the rows' words.
    """
    sizes, posting_starts, postings = grams
    weights, part_of, totals, item_of = parts
    rows, keys, places = hits[:, 0], hits[:, 1], hits[:, 2]
    # An entry of an earlier window counts as none: `word_seen` (by word) and `part_seen` have the window's number.
    word_seen, window = np.zeros(weights.size, np.int64), 0
    part_seen, held = np.zeros(totals.size, np.int64), np.zeros(totals.size, np.int64)
    first, last = np.zeros(totals.size, np.int64), np.zeros(totals.size, np.int64)
    item_seen, matched = np.zeros(totals.size, np.int64), np.zeros(totals.size, np.int64)  # items <= parts
    touched, out, made = np.empty(totals.size, np.int64), np.empty((256, 5), np.int64), 0
    begin = 0
    while begin < rows.size:
        row, low = rows[begin], places[begin]
        window, count, end = window + 1, 0, begin
        while end < rows.size and rows[end] == row and places[end] < low + WINDOW:
            key = keys[end]
            for at in range(posting_starts[key], posting_starts[key + 1]):
                part = part_of[postings[at]]
                item = item_of[part]
                if part_seen[part] != window:
                    part_seen[part], held[part], first[part] = window, 0, places[end]
                    touched[count] = part
                    count += 1
                if item_seen[item] != window:
                    item_seen[item], matched[item] = window, 0
                for place in range(postings[at], postings[at] + sizes[key]):
                    if word_seen[place] != window:
                        word_seen[place] = window
                        held[part] += weights[place]
                        matched[item] += 1
                last[part] = places[end] + sizes[key] - 1
            end += 1
        for n in range(count):
            part = touched[n]
            share = 1000 * held[part] // max(totals[part], 1)
            if 2 * matched[item_of[part]] < min(starts[row + 1] - starts[row], WINDOW):
                share = share * min(4 * min_weight, 2 * held[part] + min_weight) // max(4 * min_weight, 1)
                share *= held[part] >= min_weight
            if share > 0:
                if made == len(out):
                    out = _doubled(out)
                out[made, 0], out[made, 1], out[made, 2] = row, part, share
                out[made, 3], out[made, 4] = first[part], last[part]
                made += 1
        if end < rows.size and rows[end] == row:
            while places[begin] < low + WINDOW // 2:
                begin += 1
        else:
            begin = end
    return out[:made]
