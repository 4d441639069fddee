"""Counting n-grams and estimating their probabilities: the inner loops of `kneser_ney`, over blocks of records.

A record is uint64[3]: the high and the low half of a key of 128 bits, and a value. An n-gram of words w1 .. wn is a key
of n fields of `bits` bits. In suffix order the last word wn is the highest field and w1 the lowest, so that n-grams
with the same end are neighbours. In context order w(n-1) .. w1 are the higher fields and wn is the lowest, so that
n-grams with the same beginning are neighbours. Each kernel does as much as fits into its output and says how far it
came, so that tables of any size pass through in blocks.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

UNKNOWN, BEGIN, END = 0, 1, 2
"""The numbers of `<unk>`, `<s>` and `</s>`, as in KenLM."""

RADIX_BITS = 8
PRUNED = np.uint64(1)
"""The lowest bit of the value of a counted n-gram; its count is in the bits above."""

_SPACE, _NEW_LINE = 0x20, 0x0A
_MIX = np.uint64(0x9E3779B97F4A7C15)


# Words to numbers.


@kernel
def add_words(data, in_line, blob, offsets, hashes, table, ids):
    """Number the words of text: one line a sentence, words between spaces; new words enter the vocabulary.

    `data` ends with a space or a new line; `in_line` words of its first line came before. `ids` (uint32) gets the words
    of each line and then `END`; lines without a word get nothing. `offsets[-1]` holds how many words there are; the
    caller leaves room for as many new ones as the text can have. Returns (how many ids, words of the last line if it
    goes on, how many words were left out because they are `<unk>`, `<s>` or `</s>`).
    """
    n, left_out, i = 0, 0, 0
    mask = np.int64(len(table) - 1)
    known = offsets[len(offsets) - 1]
    while i < len(data):
        if data[i] == _SPACE or data[i] == _NEW_LINE:
            if data[i] == _NEW_LINE and in_line > 0:
                ids[n] = END
                n, in_line = n + 1, 0
            i += 1
            continue
        begin, h = i, np.uint64(14695981039346656037)
        while data[i] != _SPACE and data[i] != _NEW_LINE:
            h = np.uint64((h ^ np.uint64(data[i])) * np.uint64(1099511628211))
            i += 1
        h = np.uint64(h ^ h >> np.uint64(32)) * _MIX
        size, slot, word = i - begin, np.int64(h >> np.uint64(32)) & mask, np.int64(-1)
        while table[slot] >= 0:
            word = np.int64(table[slot])
            at, same = offsets[word], 0
            if hashes[word] == h and offsets[word + 1] - at == size:
                while same < size and blob[at + same] == data[begin + same]:
                    same += 1
                if same == size:
                    break
            word = np.int64(-1)
            slot = (slot + 1) & mask
        if word < 0:
            word, at = known, offsets[known]
            for k in range(size):
                blob[at + k] = data[begin + k]
            offsets[known + 1], hashes[known], table[slot] = at + size, h, np.int32(known)
            known += 1
        if word <= END:
            left_out += 1
        else:
            ids[n] = np.uint32(word)
            n, in_line = n + 1, in_line + 1
    offsets[len(offsets) - 1] = known
    return n, in_line, left_out


@kernel
def enter(hashes, words, table):
    """Enter the words into a new `table` (int32, a power of two, all -1)."""
    mask = np.int64(len(table) - 1)
    for word in range(words):
        slot = np.int64(hashes[word] >> np.uint64(32)) & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = word


# Keys.


@kernel(forceinline=True)
def _field(high, low, shift, bits):
    """The field of `bits` (at most 32) bits at a place of a key."""
    if shift >= 64:
        found = high >> np.uint64(shift - 64)
    elif shift == 0:
        found = low
    else:
        found = low >> np.uint64(shift) | high << np.uint64(64 - shift)
    return found & (np.uint64(1) << np.uint64(bits)) - np.uint64(1)


@kernel(forceinline=True)
def _right(high, low, by):
    """(high, low) of a key shifted right by 0 to 127 bits."""
    if by == 0:
        return high, low
    if by >= 64:
        return np.uint64(0), high >> np.uint64(by - 64)
    return high >> np.uint64(by), low >> np.uint64(by) | high << np.uint64(64 - by)


@kernel(forceinline=True)
def _left(high, low, by):
    """(high, low) of a key shifted left by 0 to 127 bits."""
    if by == 0:
        return high, low
    if by >= 64:
        return low << np.uint64(by - 64), np.uint64(0)
    return high << np.uint64(by) | low >> np.uint64(64 - by), low << np.uint64(by)


@kernel(forceinline=True)
def _low_bits(high, low, width):
    """(high, low) of the lowest `width` bits (1 to 127) of a key."""
    if width >= 64:
        return high & (np.uint64(1) << np.uint64(width - 64)) - np.uint64(1), low
    return np.uint64(0), low & (np.uint64(1) << np.uint64(width)) - np.uint64(1)


@kernel(forceinline=True)
def _less(high, low, other_high, other_low):
    return high < other_high or (high == other_high and low < other_low)


# Sorting and merging.


@kernel
def sort(records, spare, bits):
    """Sort by the lowest `bits` of the keys (radix sort from the lowest digit); whether the result is in `spare`."""
    passes = (bits + RADIX_BITS - 1) // RADIX_BITS
    counts = np.zeros((passes, 1 << RADIX_BITS), np.int64)
    mask = np.uint64((1 << RADIX_BITS) - 1)
    for i in range(len(records)):
        low, high = records[i, 1], records[i, 0]
        for p in range(passes):
            if p * RADIX_BITS < 64:
                counts[p, low >> np.uint64(p * RADIX_BITS) & mask] += 1
            else:
                counts[p, high >> np.uint64(p * RADIX_BITS - 64) & mask] += 1
    moved = False
    for p in range(passes):
        total, one = 0, False
        for d in range(1 << RADIX_BITS):
            n = counts[p, d]
            one |= n == len(records)
            counts[p, d] = total
            total += n
        if one:
            continue
        column, shift = (1, p * RADIX_BITS) if p * RADIX_BITS < 64 else (0, p * RADIX_BITS - 64)
        from_, to = (spare, records) if moved else (records, spare)
        for i in range(len(from_)):
            d = from_[i, column] >> np.uint64(shift) & mask
            at = counts[p, d]
            counts[p, d] = at + 1
            to[at, 0], to[at, 1], to[at, 2] = from_[i, 0], from_[i, 1], from_[i, 2]
        moved = not moved
    return moved


@kernel
def add_equal(records):
    """Make one record of neighbours with equal keys, with the sum of their values; returns how many remain."""
    n = 0
    for i in range(len(records)):
        if n > 0 and records[i, 1] == records[n - 1, 1] and records[i, 0] == records[n - 1, 0]:
            records[n - 1, 2] += records[i, 2]
        else:
            records[n, 0], records[n, 1], records[n, 2] = records[i, 0], records[i, 1], records[i, 2]
            n += 1
    return n


@kernel
def merge(one, other, out):
    """Merge two sorted tables into `out`, with the sums of equal keys' values; returns how many records there are."""
    i, j, n = 0, 0, 0
    while i < len(one) or j < len(other):
        first = j >= len(other) or (i < len(one) and not _less(other[j, 0], other[j, 1], one[i, 0], one[i, 1]))
        second = not first or (j < len(other) and other[j, 0] == one[i, 0] and other[j, 1] == one[i, 1])
        from_, k = (one, i) if first else (other, j)
        out[n, 0], out[n, 1], out[n, 2] = from_[k, 0], from_[k, 1], from_[k, 2]
        if first and second:
            out[n, 2] += other[j, 2]
        i, j, n = i + np.int64(first), j + np.int64(second), n + 1
    return n


@kernel
def lower_bound(records, high, low):
    """The first place in a sorted table whose key is not less than a key."""
    begin, end = 0, len(records)
    while begin < end:
        middle = (begin + end) // 2
        if _less(records[middle, 0], records[middle, 1], high, low):
            begin = middle + 1
        else:
            end = middle
    return begin


# Counts.


@kernel
def windows(ids, key, order, bits, out):
    """A record with the value 1 for each n-gram of `order` that ends in one of `ids`; `key` (uint64[2]) goes on.

    A sentence begins after `END`, and at the first call, where `key` is zeros: all words before it are `BEGIN`.
    """
    top = bits * (order - 1)
    high, low = key[0], key[1]
    begin_high, begin_low = np.uint64(0), np.uint64(0)
    for k in range(order):
        more_high, more_low = _left(np.uint64(0), np.uint64(BEGIN), bits * k)
        begin_high, begin_low = begin_high | more_high, begin_low | more_low
    if high == 0 and low == 0:
        high, low = begin_high, begin_low
    for i in range(len(ids)):
        high, low = _right(high, low, bits)
        more_high, more_low = _left(np.uint64(0), np.uint64(ids[i]), top)
        high, low = high | more_high, low | more_low
        out[i, 0], out[i, 1], out[i, 2] = high, low, np.uint64(1)
        if ids[i] == END:
            high, low = begin_high, begin_low
    key[0], key[1] = high, low


@kernel
def adjust(records, last, order, bits, min_pruned, state, out, sizes, totals):
    """Counts of the n-grams of all orders from those of the highest order, which come in suffix order.

    The adjusted count of an n-gram of a lower order is in how many words' company it occurs on its left, or how often
    it occurs if it begins with `BEGIN`. `out[n - 1]` gets the n-grams of order n with their adjusted counts, and
    `sizes[n - 1]` how many there are. N-grams that occur at most `min_pruned[n - 1]` times are marked `PRUNED`.
    `totals[n - 1, k]` counts n-grams whose adjusted count is k (1 to 4), in 0 those that stay. `state` (int64[4, order
    + 1], zeros at first) goes from call to call: the words of the record before, from the last to the first, with how
    many of them count in place `order`; adjusted and actual counts of the n-grams that are not finished. With `last`
    these are finished too.
    """
    words, adjusted, actual, current = state[0], state[1], state[2], state[3]
    for n in range(order):
        sizes[n] = 0
    for i in range(len(records) + np.int64(last)):
        size, same, count = 0, 0, np.uint64(0)
        if i < len(records):
            high, low, count = records[i, 0], records[i, 1], records[i, 2]
            for k in range(order):
                current[k] = np.int64(_field(high, low, bits * (order - 1 - k), bits))
            size = order
            while size > 1 and current[size - 1] == BEGIN and current[size - 2] == BEGIN:
                size -= 1  # of several `<s>` one counts
            while same < min(size, words[order]) and words[same] == current[same]:
                same += 1
        for n in range(same + 1, min(words[order], order - 1) + 1):
            _emit(words, n, bits, adjusted[n], actual[n] <= min_pruned[n - 1], out[n - 1], sizes, totals)
        for n in range(same + 1, size + 1):
            adjusted[n], actual[n] = 0, 0
            adjusted[n - 1] += 1
        for n in range(1, size + 1):
            actual[n] += np.int64(count)
        adjusted[size] = np.int64(count) if size < order and size > 0 else adjusted[size]
        for k in range(order):
            words[k] = current[k]
        words[order] = size
        if size == order:
            gone = np.int64(count) <= min_pruned[order - 1]
            _emit(words, order, bits, np.int64(count), gone, out[order - 1], sizes, totals)


@kernel
def _emit(words, n, bits, count, pruned, out, sizes, totals):
    high, low, at = np.uint64(0), np.uint64(0), sizes[n - 1]
    for k in range(n):
        high, low = _left(high, low, bits)
        low |= np.uint64(words[k])
    out[at, 0], out[at, 1] = high, low
    out[at, 2] = np.uint64(count) << np.uint64(1) | (PRUNED if pruned else np.uint64(0))
    sizes[n - 1] = at + 1
    totals[n - 1, 0] += np.int64(not pruned)
    if 0 < count < 5:
        totals[n - 1, count] += 1


# Probabilities.


@kernel
def to_contexts(records, order, bits, out):
    """The records with keys in context order instead of suffix order."""
    top = bits * (order - 1)
    for i in range(len(records)):
        last = _field(records[i, 0], records[i, 1], top, bits)
        high, low = _low_bits(records[i, 0], records[i, 1], top)
        high, low = _left(high, low, bits)
        out[i, 0], out[i, 1], out[i, 2] = high, low | last, records[i, 2]


@kernel
def discount(records, last, order, bits, discounts, out, parts, contexts, gammas):
    """What discounting leaves to the n-grams of each context, which come in context order.

    `out` gets the n-grams that stay, in the order of the input with keys in suffix order; `parts` is `out` as float32
    [M, 6]: in 4 and 5 are the discounted share of the n-gram and the share of its context that goes to lower orders.
    `contexts` gets the contexts, keys in suffix order, and `gammas` (`contexts` as float64[M, 3]) that share in 2.
    Returns (how many records are done, n-grams, contexts); a context at the end may go on, unless these are the `last`.
    """
    n, groups, i, top = 0, 0, 0, bits * (order - 1)
    while i < len(records):
        high, low = _right(records[i, 0], records[i, 1], bits)
        j, total, left = i, 0.0, 0.0
        while j < len(records):
            this_high, this_low = _right(records[j, 0], records[j, 1], bits)
            if this_high != high or this_low != low:
                break
            count = np.int64(records[j, 2] >> np.uint64(1))
            total += count
            left += count if records[j, 2] & PRUNED else discounts[min(count, 3)]
            j += 1
        if j == len(records) and not last:
            break
        for k in range(i, j):
            if not records[k, 2] & PRUNED:
                count = np.int64(records[k, 2] >> np.uint64(1))
                word = _field(records[k, 0], records[k, 1], 0, bits)
                up_high, up_low = _left(np.uint64(0), word, top)
                out[n, 0], out[n, 1] = high | up_high, low | up_low
                parts[n, 4] = np.float32((count - discounts[min(count, 3)]) / total)
                parts[n, 5] = np.float32(left / total)
                n += 1
        contexts[groups, 0], contexts[groups, 1] = high, low
        gammas[groups, 2] = left / total
        groups += 1
        i = j
    return i, n, groups


@kernel
def interpolate(upper, parts, lower, lower_p, bits, out, out_p):
    """Add to each n-gram's share that of the n-gram without its first word, from the table of the lower order.

    All are in suffix order. `parts` is `upper` as float32[M, 6]; `lower_p` and `out_p` are `lower` and `out` as float64
    [M, 3], with probabilities in 2. Returns how many of (upper, lower) are done; one of them is done wholly.
    """
    i, j = 0, 0
    while i < len(upper):
        high, low = _right(upper[i, 0], upper[i, 1], bits)
        while j < len(lower) and _less(lower[j, 0], lower[j, 1], high, low):
            j += 1
        if j == len(lower):
            break
        out[i, 0], out[i, 1] = upper[i, 0], upper[i, 1]
        out_p[i, 2] = np.float64(parts[i, 4]) + np.float64(parts[i, 5]) * lower_p[j, 2]
        i += 1
    return i, j


# Text.


@kernel(forceinline=True)
def _write_number(value, text, at):
    """Write a logarithm of at most 0 with six decimals; returns the place behind it."""
    scaled = np.int64(np.rint(-value * 1e6))
    if scaled <= 0:
        text[at] = 0x30
        return at + 1
    text[at] = 0x2D
    at += 1
    whole, rest = scaled // 1_000_000, scaled % 1_000_000
    digits, power = 1, 10
    while power <= whole:
        digits, power = digits + 1, power * 10
    for k in range(digits - 1, -1, -1):
        text[at + k] = np.uint8(0x30 + whole % 10)
        whole //= 10
    at += digits
    text[at] = 0x2E
    for k in range(6, 0, -1):
        text[at + k] = np.uint8(0x30 + rest % 10)
        rest //= 10
    return at + 7


@kernel
def arpa_lines(grams, probabilities, contexts, gammas, more, order, bits, with_backoff, blob, offsets, text):
    """Lines of an ARPA file: logarithm of the probability, words, logarithm of the back-off weight.

    `grams` and `contexts` are in suffix order; `probabilities` and `gammas` are the same as float64[M, 3], with the
    value in 2. A context that is no n-gram here was pruned; an n-gram that is no context has no weight. `more` says
    that other contexts may follow these. Returns (n-grams done, contexts done, bytes of `text`).
    """
    i, j, at = 0, 0, 0
    while i < len(grams):
        high, low = grams[i, 0], grams[i, 1]
        while j < len(contexts) and _less(contexts[j, 0], contexts[j, 1], high, low):
            j += 1
        if with_backoff and more and j == len(contexts):
            break
        size = 64
        for k in range(order):
            word = np.int64(_field(high, low, bits * k, bits))
            size += offsets[word + 1] - offsets[word] + 1
        if at + size > len(text):
            break
        if order == 1 and low == BEGIN:
            text[at] = 0x30  # `<s>` is given, never predicted
            at += 1
        else:
            at = _write_number(min(np.log10(probabilities[i, 2]), 0.0), text, at)
        for k in range(order):
            text[at] = 0x09 if k == 0 else _SPACE
            at += 1
            word = np.int64(_field(high, low, bits * k, bits))
            for b in range(offsets[word], offsets[word + 1]):
                text[at] = blob[b]
                at += 1
        if with_backoff:
            text[at] = 0x09
            same = j < len(contexts) and contexts[j, 0] == high and contexts[j, 1] == low
            at = _write_number(min(np.log10(gammas[j, 2]), 0.0) if same else 0.0, text, at + 1)
        text[at] = _NEW_LINE
        at += 1
        i += 1
    return i, j, at
