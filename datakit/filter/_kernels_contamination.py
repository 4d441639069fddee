"""Shares of the parts of evaluation items that rows hold, weighed by how rare their words are."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.filter._kernels_lookup import rolling
from datakit.kernels import kernel

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
def spread(values, starts, sizes):
    """The largest value of the n-grams that cover each word; values float64[W]: that of the n-gram beginning there."""
    out = np.zeros(values.size)
    for i in range(sizes.size):
        for place in range(starts[i], starts[i + 1] - sizes[i] + 1):
            for k in range(sizes[i]):
                out[place + k] = max(out[place + k], values[place])
    return out


@kernel
def score(rows, keys, places, starts, grams, parts, min_weight):
    """What rows hold of the parts of items.

    rows, keys, places int64[H]: the n-grams found (`_kernels_lookup.find`), in ascending order of rows and places;
    starts int64[N+1] of the rows in their words. grams: sizes int64[K] of the n-grams in words, and where n-gram k
    begins in the items' words: `postings[posting_starts[k]:posting_starts[k + 1]]`. parts: weights int64[W] and
    part_of int64[W] of the items' words, totals int64[P] and item_of int64[P] of the parts. min_weight: what the
    matched words must weigh in a row that holds more than this item; up to one and a half times that weight the share
    counts less, down to three quarters.
    Returns int64[M, 5]: row, part, share in thousandths, and the first and last matched word, in the rows' words.
    """
    sizes, posting_starts, postings = grams
    weights, part_of, totals, item_of = parts
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
                if made == out.shape[0]:
                    larger = np.empty((2 * made, 5), np.int64)
                    larger[:made] = out
                    out = larger
                out[made, 0], out[made, 1], out[made, 2] = row, part, share
                out[made, 3], out[made, 4] = first[part], last[part]
                made += 1
        if end < rows.size and rows[end] == row:
            while places[begin] < low + WINDOW // 2:
                begin += 1
        else:
            begin = end
    return out[:made]
