"""Shares of evaluation items that rows hold, weighed by how rare their words are."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.filter._kernels_lookup import doubled, rolling
from datakit.kernels import kernel

NEAR = 60  # words between a question and a short answer
WINDOW = 1000  # words within which all that counts for one item must be, or three times the item's words


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
def search(words, starts, lengths, slots, numbers, posting_starts, postings, index, least):
    """The items that each row may hold.

    words uint64[W], starts int64[N+1] of the rows in it; lengths, slots, numbers: the n-grams, as for
    `_kernels_lookup.find`; postings: the places in the items' words where n-gram k begins,
    `postings[posting_starts[k]:posting_starts[k + 1]]`. `index` is `WeightedIndex.arrays`. least: the
    weight that an item's matched words must have in a row that holds more than this item; up to one and a
    half times that weight the share counts less, down to three quarters.
    Returns int64[H, 6]: row, item, part, share in thousandths, and the first and last matched word, in `words`.
    """
    item_words, weights, part_of, totals, alone, item_of, part_starts, item_sizes, short_starts, short_ends, shorts = (
        index
    )
    mask = np.uint64(slots.size - 1)
    stamp, epoch = np.zeros(item_words.size, np.int64), 0
    part_stamp, item_stamp = np.zeros(totals.size, np.int64), np.zeros(item_sizes.size, np.int64)
    held, count = np.zeros(totals.size, np.int64), np.zeros(totals.size, np.int64)
    first, last = np.zeros(totals.size, np.int64), np.zeros(totals.size, np.int64)
    touched = np.empty(item_sizes.size, np.int64)
    places, keys, spans = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int64)
    seen, counted, tokens = np.zeros(2 * WINDOW + 64, np.int64), np.zeros(item_words.size, np.int64), 0
    out, made = np.empty((256, 6), np.int64), 0
    for row in range(starts.size - 1):
        hits = 0
        for length in lengths:
            hashes = rolling(words[starts[row] : starts[row + 1]], length)
            for i in range(hashes.size):
                slot = hashes[i] >> np.uint64(20) & mask
                while slots[slot] != 0 and slots[slot] != hashes[i]:
                    slot = (slot + np.uint64(1)) & mask
                if slots[slot] == 0:
                    continue
                if hits == places.size:
                    places, keys, spans = doubled(places), doubled(keys), doubled(spans)
                places[hits], keys[hits], spans[hits] = starts[row] + i, numbers[slot], length
                hits += 1
        if hits == 0:
            continue
        order = np.argsort(places[:hits])
        begin = 0
        while begin < hits:
            low = places[order[begin]]
            high = low + 2 * WINDOW
            epoch, items, end = epoch + 1, 0, begin
            while end < hits and places[order[end]] < high:
                hit = order[end]
                end += 1
                for at in range(posting_starts[keys[hit]], posting_starts[keys[hit] + 1]):
                    for k in range(spans[hit]):
                        place = postings[at] + k
                        if stamp[place] == epoch:
                            continue
                        stamp[place] = epoch
                        part = part_of[place]
                        item = item_of[part]
                        if item_stamp[item] != epoch:
                            item_stamp[item] = epoch
                            touched[items] = item
                            items += 1
                        if part_stamp[part] != epoch:
                            part_stamp[part] = epoch
                            held[part], count[part], first[part] = 0, 0, places[hit]
                        held[part] += weights[place]
                        count[part] += 1
                        last[part] = places[hit] + spans[hit] - 1
            for n in range(items):
                item = touched[n]
                best, of = 0, -1
                matched = 0
                for part in range(part_starts[item], part_starts[item + 1]):
                    if part_stamp[part] == epoch:
                        matched += count[part]
                whole = 2 * matched >= min(starts[row + 1] - starts[row], high - low)
                evidence = -1
                for part in range(part_starts[item], part_starts[item + 1]):
                    if part_stamp[part] != epoch or alone[part] == 0 or totals[part] == 0:
                        continue
                    share = 1000 * held[part] // totals[part]
                    own = held[part] // alone[part]
                    if 2 * own < 3 * least and alone[part] == 1 and share >= 300:
                        if evidence < 0:
                            tokens += 1
                            evidence = _evidence(
                                (places, keys, spans, order[begin:end], posting_starts, postings),
                                (part_of, item_of, alone, weights), item, low, seen, counted, tokens,
                            )  # fmt: skip
                        own = evidence
                        for short in range(short_starts[item], short_starts[item + 1]):
                            around = (starts[row], starts[row + 1], first[part], last[part])
                            own += _near(words, around, item_words, short_ends[shorts[short]], shorts[short], weights)
                    if not whole:
                        if own < least:
                            continue
                        share = share * min(4 * least, 2 * own + least) // (4 * least)
                    if share > best:
                        best, of = share, part
                if of >= 0:
                    if made == out.shape[0]:
                        larger = np.empty((2 * made, 6), np.int64)
                        larger[:made] = out
                        out = larger
                    out[made, 0], out[made, 1], out[made, 2] = row, item, of
                    out[made, 3], out[made, 4], out[made, 5] = best, first[of], last[of]
                    made += 1
            if end == hits:
                break
            while places[order[begin]] < low + WINDOW:  # windows overlap by half
                begin += 1
                if begin == hits:
                    break
    return out[:made]


@kernel
def _evidence(hits, parts, item, low, seen, counted, token):
    """The weight of the words that match, each word of the row and of the item once; half for words of a passage.

    `seen` and `counted`, int64[2 * WINDOW + 64] and int64[W], have the last token with which each word of the window,
    and of the items, was counted.
    """
    places, keys, spans, order, posting_starts, postings = hits
    part_of, item_of, alone, weights = parts
    total = 0
    for hit in order:
        for at in range(posting_starts[keys[hit]], posting_starts[keys[hit] + 1]):
            if item_of[part_of[postings[at]]] != item:
                continue
            for k in range(spans[hit]):
                place, word = postings[at] + k, places[hit] + k - low
                if seen[word] != token and counted[place] != token:
                    seen[word], counted[place] = token, token
                    total += weights[place] if alone[part_of[place]] else weights[place] // 2
    return total


@kernel
def _near(words, around, item_words, end, begin, weights):
    """The weight of a short text of an item (words `begin` to `end`) within NEAR words of a match, or 0.

    `around`: where the row begins and ends, and the first and last word of the match.
    """
    low, high, first, last = around
    size, total = end - begin, 0
    for k in range(size):
        total += weights[begin + k]
    for at in range(max(low, first - NEAR), min(high - size, last + NEAR) + 1):
        if first <= at <= last:
            continue
        k = 0
        while k < size and words[at + k] == item_words[begin + k]:
            k += 1
        if k == size:
            return total
    return 0
