"""fastText on rows of text: their words and n-grams, the mean of their input vectors, the output layer.

First: from UTF-8 bytes to the rows of the input matrix, by words, their character n-grams and the dictionary.
Bojanowski et al. 2017, Enriching Word Vectors with Subword Information; hashes are 32-bit FNV-1a. A row of text is one
line: white space and new lines of every kind separate words, and so does the text `</s>`, fastText's end-of-line mark,
at which fastText would stop.

Second, the hidden layer: the mean of the input vectors of a row's words and n-grams.
Joulin et al. 2016, Bag of Tricks for Efficient Text Classification, and FastText.zip for pruned and quantized matrices.
The vectors of a row are added one after another in float32, in fastText's order, so that the sums are fastText's to the
last bit. A cache holds which rows of the matrix a word has. The n-grams of all words of a block that the cache does not
hold are hashed together, by position: vector instructions do it. Text is (data uint8, offsets int64), as
`string_buffers` gives it.

Third, the output layer on that mean: softmax, hierarchical softmax, one-vs-all.
Sums, logarithms and ties are those of fastText. With hierarchical softmax (Joulin et al. 2016) a
label's probability is the product of those of the branches from the root of a Huffman tree to its leaf.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from datakit.filter._kernels_bytes import HIGH, first, load
from datakit.kernels import kernel

_FNV_BASIS, _FNV_PRIME = np.uint32(2166136261), np.uint32(16777619)
_MIX = np.uint64(0x9E3779B97F4A7C15)
LESS, GREATER, SLASH, S = 0x3C, 0x3E, 0x2F, 0x73
END_OF_LINE = np.uint64(0x3E732F3C)
_EACH, _LOW_SEVEN = np.uint64(0x0101010101010101), np.uint64(0x7F7F7F7F7F7F7F7F)
_CONTROLS, _MARKS, _CASE = np.uint64(0x5F) * _EACH, np.uint64(LESS) * _EACH, np.uint64(0x20) * _EACH
_LEADS = np.uint64(0xE2) * _EACH
_LABEL = np.uint64(0x5F6C6562616C5F5F)  # `__label_`, and one more underscore follows


@kernel(forceinline=True)
def _step(h, byte):
    """One step of FNV-1a as in fastText: bytes are signed, so that those above 127 flip the upper bits, too."""
    return np.uint32((h ^ np.uint32(np.int8(byte))) * _FNV_PRIME)


@kernel(forceinline=True)
def _separator(eight):
    """Bytes of the separator that eight bytes begin with, 0 inside a word: white space, a zero byte, `</s>`, U+0085,
    U+2028, U+2029."""
    byte = eight & np.uint64(0xFF)
    if byte == 0x20 or byte - np.uint64(0x09) <= np.uint64(4) or byte == 0:
        return 1
    if eight & np.uint64(0xFFFFFFFF) == END_OF_LINE:
        return 4
    if eight & np.uint64(0xFFFF) == np.uint64(0x85C2):
        return 2
    return 3 if eight & np.uint64(0xFEFFFF) == np.uint64(0xA880E2) else 0


@kernel(forceinline=True)
def _may_separate(eight):
    """The highest bit of each byte that a separator can begin with, and some others: up to 0x20, `<`, 0xC2, 0xE2."""
    equal, lead = eight ^ _MARKS, (eight | _CASE) ^ _LEADS  # 0xC2 and 0xE2 differ in the bit of `_CASE`
    inside = (eight & _LOW_SEVEN) + _CONTROLS | eight
    inside &= (equal & _LOW_SEVEN) + _LOW_SEVEN | equal
    inside &= (lead & _LOW_SEVEN) + _LOW_SEVEN | lead
    return ~inside & HIGH


@kernel(forceinline=True)
def _word_part(eight, following):
    """(the part of a word that eight bytes begin with, zeros after its end; its size; bytes of the separator).

    `following` are the eight bytes after them; bytes after the end of a row are zeros, which count as a separator. A
    word that goes on has eight bytes and a separator of 0.
    """
    maybe = _may_separate(eight)
    while maybe != 0:
        n = first(maybe)
        bits = np.uint64(8 * n)
        gap = _separator(eight if n == 0 else eight >> bits | following << np.uint64(64) - bits)
        if gap > 0:
            return eight & ((np.uint64(1) << bits) - np.uint64(1)), n, np.int64(gap)
        maybe &= maybe - np.uint64(1)
    return eight, np.int64(8), np.int64(0)


@kernel(forceinline=True)
def _until(eight, left):
    """Eight bytes, zeros for those after the first `left` ones, which may be negative."""
    if left >= 8:
        return eight
    return eight & ((np.uint64(1) << np.uint64(8 * max(left, 0))) - np.uint64(1))


@kernel
def parse_entries(data, start, count):
    """The dictionary of a model file: (where each entry begins, word bytes, counts, kinds, where the dictionary ends).

    An entry is a word, a zero byte, its count (int64) and its kind (int8: 0 word, 1 label). The end is -1 where the
    data ends first.
    """
    begins, sizes = np.empty(count, np.int64), np.empty(count, np.int64)
    counts, kinds = np.empty(count, np.int64), np.empty(count, np.int8)
    at, size = start, len(data)
    for i in range(count):
        begins[i] = at
        while at < size and data[at] != 0:
            at += 1
        if at + 10 > size:
            return begins, sizes, counts, kinds, -1
        sizes[i] = at - begins[i]
        value = np.uint64(0)
        for k in range(8):
            value |= np.uint64(data[at + 1 + k]) << np.uint64(8 * k)
        counts[i] = np.int64(value)
        kinds[i] = np.int8(data[at + 9])
        at += 10
    return begins, sizes, counts, kinds, at


@kernel(forceinline=True)
def _fingerprint(head, last, size):
    """64 bits made from a word's first eight bytes, its last eight (0: it has no more than eight) and its size; never
    0, which marks a free place."""
    mixed = (head ^ last * _MIX) * _MIX + np.uint64(size)
    return (mixed ^ mixed >> np.uint64(29)) * _MIX | np.uint64(1)


@kernel
def build_table(blob, word_offsets, table, prints):
    """Enter every word into `table` (int32, a power of two, all -1) and its fingerprint into `prints` (uint64, all 0).

    `blob` has eight more bytes than the words.
    """
    mask = np.int64(len(table) - 1)
    for word in range(len(word_offsets) - 1):
        begin, size = word_offsets[word], word_offsets[word + 1] - word_offsets[word]
        last = load(blob, begin + size - 8) if size > 8 else np.uint64(0)
        found = _fingerprint(_until(load(blob, begin), size), last, size)
        slot = np.int64(found >> np.uint64(32)) & mask
        while table[slot] >= 0:
            slot = slot + 1 & mask
        table[slot], prints[slot] = word, found


@kernel(forceinline=True)
def _modulo(h, magic, bucket):
    """h % bucket without a division (Lemire, Kaser and Kurz 2019); magic = 2**64 // bucket + 1, h and bucket uint32."""
    low = np.uint64(magic * np.uint64(h))
    high = (low >> np.uint64(32)) * bucket + ((low & np.uint64(0xFFFFFFFF)) * bucket >> np.uint64(32))
    return np.int64(high >> np.uint64(32))


@kernel(forceinline=True)
def _ones_below(bits, place):
    """How many of the bits below `place` are set."""
    x = bits & ((np.uint64(1) << np.uint64(place)) - np.uint64(1))
    x -= x >> np.uint64(1) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + (x >> np.uint64(2) & np.uint64(0x3333333333333333))
    x = x + (x >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(x * _EACH >> np.uint64(56))


_WORD_NGRAM_PRIME = np.uint64(116049371)


class Arrays(NamedTuple):
    """A model as the kernels read it: V words and labels, R rows of the input matrix, D dimensions, L labels."""

    blob: np.ndarray  # uint8: the bytes of all words and labels, in the order of the file, and eight zeros
    word_offsets: np.ndarray  # int64[V + 1]
    table: np.ndarray  # int32[power of two]: word numbers by fingerprint, -1 free; open addressing
    prints: np.ndarray  # uint64: these fingerprints, 0 free
    num_words: int  # words come before labels
    min_chars: int
    max_chars: int  # of character n-grams; 0: none
    word_ngrams: int
    bucket: int
    seen: np.ndarray  # uint64[bucket / 64 + 1] of a pruned model: one bit for each hashed n-gram, 1: kept; else empty
    ranks: np.ndarray  # int64[bucket / 64 + 1]: how many are kept before these 64; rows of n-grams are in that order
    end_of_line: int  # the row of the word `</s>`, -1: there is none
    input_RD: np.ndarray  # float32; (0, D) where the rows stay quantized
    codes: np.ndarray  # uint8[R, subvectors]; empty where input_RD is there
    centroids: np.ndarray  # float32[subvectors, 256, width], the last one padded with zeros
    norms: np.ndarray  # float32[R], 1 where the model has none
    output_DL: np.ndarray  # float32, transposed; hierarchical: the inner nodes of the tree
    output_norms: np.ndarray  # float32[L]
    loss: int
    left: np.ndarray  # int32[2 L - 1]: children of the nodes of the tree, -1 leaf; leaves are the labels
    right: np.ndarray
    parent: np.ndarray
    sigmoid: np.ndarray  # float32[513]: fastText's table over -8..8


@intrinsic
def _add_sixteen(typing, matrix, rows, n, acc, at):
    """Add 16 neighbouring columns, from `at` on, of `matrix[rows[:n]]` to `acc[at:at + 16]`, row after row.

    The sums stay in registers. In a loop of numba's they are stored after each row, since it cannot know that the
    arrays do not overlap; that takes five times as long.
    """

    def generate(context, builder, signature, arguments):
        matrix, rows, acc = (make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 1, 3))
        vector = ir.VectorType(ir.FloatType(), 16)
        at, width = arguments[4], builder.extract_value(matrix.shape, 1)
        total = cgutils.alloca_once(builder, vector)
        sums = builder.bitcast(builder.gep(acc.data, [at]), vector.as_pointer())
        builder.store(builder.load(sums, align=4), total)
        with cgutils.for_range(builder, arguments[2]) as loop:
            row = builder.sext(builder.load(builder.gep(rows.data, [loop.index])), width.type)
            values = builder.gep(matrix.data, [builder.add(builder.mul(row, width), at)])
            values = builder.load(builder.bitcast(values, vector.as_pointer()), align=4)
            builder.store(builder.fadd(builder.load(total), values), total)
        builder.store(builder.load(total), sums, align=4)
        return context.get_dummy_value()

    return types.void(matrix, rows, n, acc, at), generate


@kernel
def _add_rows(m, rows, n, acc_D):
    """Add n rows of the input matrix to `acc_D`, in order."""
    dims = len(acc_D)
    if len(m.codes) == 0:
        whole = dims - dims % 16
        for at in range(0, whole, 16):
            _add_sixteen(m.input_RD, rows, n, acc_D, at)
        for d in range(whole, dims):
            for k in range(n):
                acc_D[d] += m.input_RD[rows[k], d]
        return
    width = m.centroids.shape[2]
    for k in range(n):
        for d in range(dims):
            acc_D[d] += m.norms[rows[k]] * m.centroids[d // width, m.codes[rows[k], d // width], d % width]


class _ReaderScratch(NamedTuple):
    """Scratch buffers of one call, and the cache of words, which outlives the call."""

    parts: np.ndarray  # uint64[W, 3]: the first 24 bytes of the words of a block
    words: np.ndarray  # int64[4, W]: more of these words, see `_read_words`
    text: np.ndarray  # uint8: the bytes of missing words
    hashes: np.ndarray  # uint32: of the n-grams of one size, by position in the text
    places: np.ndarray  # uint32: these modulo the number of buckets, for all sizes
    kept: np.ndarray  # uint8: the highest bit is set where an n-gram begins that has a row
    found: np.ndarray  # int32: rows of missing words
    word_hashes: np.ndarray  # uint32: of missing words, for word n-grams
    rows: np.ndarray  # int32: rows of the input matrix to add next
    line: np.ndarray  # int32: the words of a line, for word n-grams
    keys: np.ndarray  # uint64[places, 4 + rows / 2]: the cache of words, see `_read_words`
    acc_D: np.ndarray  # float32


@kernel
def _scratch(m, longest, keys):
    room = TEXT + 8 * m.max_chars + 64
    sizes = max(m.max_chars - max(m.min_chars, 1) + 1, 0)
    return _ReaderScratch(
        np.empty((BLOCK, 3), np.uint64),
        np.empty((4, BLOCK), np.int64),
        np.empty(room, np.uint8),
        np.empty(room, np.uint32),
        np.empty(room * sizes, np.uint32),
        np.empty(room, np.uint8),
        np.empty(room * sizes + BLOCK + 1, np.int32),
        np.zeros(BLOCK, np.uint32),
        np.empty(room * sizes + BLOCK * 2 * keys.shape[1] + m.word_ngrams, np.int32),
        np.empty(longest // 2 + 3 if m.word_ngrams > 1 else 1, np.int32),
        keys,
        np.empty(m.output_DL.shape[0], np.float32),
    )


# Numba counts references for every call that is given arrays, also for most inlined ones. So the next kernels work on a
# block of words at a time, call functions of numbers, and are long.

INFO, START, SIZE, SLOT = range(4)
BLOCK = 1 << 9  # words
TEXT = 1 << 13  # bytes of a block
LONG_WORD = 1 << 10  # bytes of a word that is read by itself, piece by piece
USED = 1 << 38  # in what the cache holds of a word: it was found since its place was last wanted for another


@kernel
def _read_words(data, begin, end, keys, parts, words):
    """Split a block of text from `begin` on into words: (where it stopped, how many words).

    `parts` (uint64[W, 3]) gets the first 24 bytes of each word, `words` its `START`, `SIZE` and, as `SLOT`, its place
    in the cache. A word of `LONG_WORD` bytes ends the block before it. `data` has 16 more bytes
    than the rows.
    """
    n, i, most, until = 0, begin, words.shape[1], min(end, begin + TEXT - LONG_WORD)
    shift = np.uint64(64)
    while len(keys) >> (np.uint64(64) - shift) > 1:
        shift -= np.uint64(1)
    while i < until and n < most:
        low, high = _until(load(data, i), end - i), _until(load(data, i + 8), end - i - 8)
        a, size, gap = _word_part(low, high)
        if size == 0:
            i += gap
            continue
        b, c = np.uint64(0), np.uint64(0)
        at = i
        while gap == 0:
            at += 8
            low, high = high, np.uint64(0) if at + 8 >= end else _until(load(data, at + 8), end - at - 8)
            part, more, gap = _word_part(low, high)
            b, c = part if size == 8 else b, part if size == 16 else c
            size += more
        if size >= LONG_WORD:
            return i, n
        key = (a ^ (b ^ c * _MIX) * _MIX) * _MIX
        slot = np.int64((key ^ key >> np.uint64(32)) * _MIX >> shift)
        parts[n, 0], parts[n, 1], parts[n, 2] = a, b, c
        words[START, n], words[SIZE, n], words[SLOT, n] = i, size, slot
        i += size + gap
        n += 1
    return i, n


@kernel
def _look_up(data, keys, parts, words, n, text):
    """Look up n words in the cache: (how many are missing, bytes of `text`).

    `INFO` of word w becomes what the cache holds: where its rows are, or will be (`places + m` for missing word m),
    whether it is a label, how many rows, its hash. Of each missing word, `START` and `SIZE` become those of its bytes
    in `text`, where a zero is before and after each; `SLOT` is the place that it takes, -1 for none. A key has the
    bytes of a word of less than 24 bytes (a word holds no zero byte, so that shorter words differ, too). A word has two
    places. One that was used since it was last in question stays there.
    """
    missing, used, places = 0, 1, len(keys)
    text[0] = 0
    for w in range(n):
        a, b, c, size, slot = parts[w, 0], parts[w, 1], parts[w, 2], words[SIZE, w], words[SLOT, w]
        other = slot ^ 1
        first_is = (keys[slot, 0] == a) & (keys[slot, 1] == b) & (keys[slot, 2] == c)
        other_is = (keys[other, 0] == a) & (keys[other, 1] == b) & (keys[other, 2] == c)
        here = slot if first_is else other
        if (first_is | other_is) & (size < 24):
            info = np.int64(keys[here, 3])
            words[INFO, w] = info
            if info & USED == 0:
                keys[here, 3] = np.uint64(info | USED)
            continue
        start = words[START, w]
        words[INFO, w] = places + missing << 40
        words[START, missing], words[SIZE, missing], words[SLOT, missing] = used, size, -1
        for k in range(8):
            text[used + k] = np.uint8(a >> np.uint64(8 * k))
        for k in range(8, size):
            text[used + k] = data[start + k]
        if size < 24:
            if np.int64(keys[slot, 3]) & USED == 0:
                here = slot
            elif np.int64(keys[other, 3]) & USED == 0:
                here = other
            else:
                keys[slot, 3] &= np.uint64(~USED)
                keys[other, 3] &= np.uint64(~USED)
                here = -1
            if here >= 0:
                keys[here, 0], keys[here, 1], keys[here, 2] = a, b, c
                keys[here, 3] = np.uint64(places + missing << 40)
                words[SLOT, missing] = here
        used += size + 1
        text[used - 1] = 0
        missing += 1
    return missing, used


@kernel
def _find_rows(
    text, used, words, missing, look_up, blob, word_offsets, table, prints, num_words, least, most, bucket, magic,
    seen, ranks, hashes, places, kept, found, word_hashes, lines,
):  # fmt: skip
    """Find the rows of the input matrix of each missing word, in fastText's order: the word, then its n-grams by their
    first character and their size.

    `text` has the words with a zero before and after each, and `4 * most` zeros at the end. Of word m, `START` becomes
    where its rows begin in `found`, and `SIZE` their number, or -1 for a label, which is no word. `places` (uint32) has
    the hashed n-grams of one size after those of another; all positions of the text are hashed together, so that
    vector instructions do it. An n-gram that goes over the end of its word is none.
    """
    pruned, mask, none = len(ranks) > 0, np.int64(len(table) - 1), np.uint32(bucket)
    for chars in range(1, most + 1):
        of_size = np.uint64((chars - least) * len(kept))
        for k in range(used):
            byte, before = text[np.uint64(k + chars - 1)], hashes[np.uint64(k)] if chars > 1 else _FNV_BASIS
            bracket = np.uint8(GREATER) if chars > 1 else np.uint8(LESS)
            hashes[np.uint64(k)] = _step(before, byte if byte > 0 else bracket)
        for k in range(used):  # the lowest bit: the n-gram would go over the end of the word
            if chars == 1:
                kept[np.uint64(k)] = np.uint8(0)
            elif chars > 2:
                kept[np.uint64(k)] |= np.uint8(text[np.uint64(k + chars - 2)] == 0)
        if chars >= least:
            for k in range(used):
                place = np.uint32(_modulo(hashes[np.uint64(k)], magic, bucket))
                over = kept[np.uint64(k)] & np.uint8(1) > 0 or (chars == 1 and text[np.uint64(k)] == 0)
                places[of_size + np.uint64(k)] = none if over else place
            for k in range(used):
                place = places[of_size + np.uint64(k)]
                if pruned:
                    bits = seen[np.uint64(place >> np.uint32(6))] >> np.uint64(place & np.uint32(63))
                    kept[np.uint64(k)] |= np.uint8(bits & np.uint64(1)) << np.uint8(7)
                else:
                    kept[np.uint64(k)] |= np.uint8(place != none) << np.uint8(7)
    filled = 0
    for m in range(missing):
        start, size = words[START, m], words[SIZE, m]
        words[START, m] = filled
        if look_up:
            if lines:
                h = _FNV_BASIS
                for k in range(start, start + size):
                    h = _step(h, text[k])
                word_hashes[m] = h
            head, last = _until(load(text, start), size), np.uint64(0)
            if size > 8:
                last = load(text, start + size - 8)
            key = _fingerprint(head, last, size)
            slot, word = np.int64(key >> np.uint64(32)) & mask, np.int64(-1)
            while prints[slot] != 0 and word < 0:
                if prints[slot] == key:
                    word = np.int64(table[slot])
                    from_ = word_offsets[word]
                    same = 0 if word_offsets[word + 1] - from_ == size else -1
                    while 0 <= same < size:
                        same = same + 1 if blob[from_ + same] == text[start + same] else -1
                    word = word if same == size else -1
                slot = (slot + 1) & mask
            if word >= num_words or (word < 0 and head == _LABEL and size >= 9 and text[start + 8] == 0x5F):
                words[SIZE, m] = -1
                continue
            found[filled] = word
            filled += np.int64(word >= 0)
        stop = start + size
        start -= np.int64(text[start - 1] == 0)
        beyond = np.uint64(0)
        until = stop if look_up else stop + 4 * most
        for k in range(start, until, 8):
            beyond |= _until(load(text, k), until - k)
        k = start
        while beyond & HIGH == 0 and most > 0 and k < stop:
            marks = _until(load(kept, k), stop - k) & HIGH
            while marks != 0:
                j = np.uint64(k + first(marks))
                marks &= marks - np.uint64(1)
                for c in range(most - least + 1):
                    place = places[np.uint64(c * len(kept)) + j]
                    found[filled] = np.int32(place)
                    if pruned:
                        bits = seen[np.uint64(place >> np.uint32(6))]
                        rank = ranks[np.uint64(place >> np.uint32(6))] + _ones_below(bits, place & np.uint32(63))
                        found[filled] = num_words + rank
                        filled += np.int64(bits >> np.uint64(place & np.uint32(63)) & np.uint64(1))
                    else:
                        found[filled] = num_words + np.int64(place)
                        filled += np.int64(place != none)
            k += 8
        while beyond & HIGH > 0 and most > 0 and k < stop:
            g, j, chars, closed = _FNV_BASIS, k, 0, text[k] & 0xC0 == 0x80
            while chars < most and not closed:
                byte = text[j]
                closed = byte == 0 and j > k
                g = _step(g, byte if byte > 0 else np.uint8(GREATER) if closed else np.uint8(LESS))
                j += 1
                while text[j] & 0xC0 == 0x80:
                    g = _step(g, text[j])
                    j += 1
                chars += 1
                if chars >= least and (chars > 1 or text[k] > 0):
                    place = _modulo(g, magic, bucket)
                    if not pruned:
                        found[filled] = num_words + place
                        filled += 1
                    elif seen[place >> 6] >> np.uint64(place & 63) & np.uint64(1):
                        found[filled] = num_words + ranks[place >> 6] + _ones_below(seen[place >> 6], place & 63)
                        filled += 1
            k += 1
            while text[k] & 0xC0 == 0x80:
                k += 1
        words[SIZE, m] = filled - words[START, m]
    return filled


@kernel
def _gather(words, n, missing, word_hashes, found, keys, rows, line, in_line):
    """Write the rows of n words to `rows`, in order; then put those of missing words into the cache.

    Returns (how many rows, words of the line so far, whose hashes are in `line`).
    """
    places, filled, lines = np.int64(len(keys)), 0, len(line) > 1
    cached, width = keys.view(np.int32), 2 * keys.shape[1] - 8
    for w in range(n):
        info = words[INFO, w]
        place = info >> 40
        if place < places:
            if width == 8:
                for k in range(8):
                    rows[filled + k] = cached[place, 8 + k]
            else:
                for k in range(info >> 32 & 0x3F):
                    rows[filled + k] = cached[place, 8 + k]
            filled += info >> 32 & 0x3F
            if lines and not info >> 39 & 1:
                line[in_line] = np.int32(info & 0xFFFFFFFF)
                in_line += 1
        else:
            start, size = words[START, place - places], words[SIZE, place - places]
            for k in range(size):
                rows[filled + k] = found[start + k]
            filled += max(size, 0)
            if lines and size >= 0:
                line[in_line] = np.int32(word_hashes[place - places])
                in_line += 1
    for m in range(missing):
        slot, start, size = words[SLOT, m], words[START, m], words[SIZE, m]
        if slot >= 0 and size <= width:
            label = np.int64(size < 0)
            keys[slot, 3] = np.uint64(slot << 40 | label << 39 | max(size, 0) << 32 | np.int64(word_hashes[m]))
            for k in range(size):
                cached[slot, 8 + k] = found[start + k]
        elif slot >= 0:
            keys[slot, 0], keys[slot, 3] = np.uint64(0), np.uint64(0)
    return filled, in_line


@kernel
def _word_end(data, at, end):
    """Where the word that goes on at `at` ends."""
    while at < end:
        four = np.uint64(0)
        for k in range(min(end - at, 4)):
            four |= np.uint64(data[at + k]) << np.uint64(8 * k)
        if _separator(four) > 0:
            return at
        at += 1
    return end


@kernel
def _rows_of(m, magic, s, used, missing, look_up):
    """Call `_find_rows` with the arrays of a model."""
    return _find_rows(
        s.text, used, s.words, missing, look_up, m.blob, m.word_offsets, m.table, m.prints, np.int64(m.num_words),
        np.int64(max(m.min_chars, 1)), np.int64(m.max_chars), np.uint64(m.bucket), magic, m.seen, m.ranks, s.hashes,
        s.places, s.kept, s.found, s.word_hashes, m.word_ngrams > 1,
    )  # fmt: skip


@kernel
def _long_word(m, magic, data, begin, size, s):
    """Add the rows of a word that is too long for a block to `s.acc_D`, in pieces: their number, -1 for a label."""
    total, ahead = 0, 4 * np.int64(m.max_chars)
    for word in range(len(m.word_offsets) - 1):
        same = 0 if m.word_offsets[word + 1] - m.word_offsets[word] == size else -1
        while 0 <= same < size:
            same = same + 1 if m.blob[m.word_offsets[word] + same] == data[begin + same] else -1
        if same == size:
            if word >= m.num_words:
                return -1
            s.rows[0], total = word, 1
            _add_rows(m, s.rows, 1, s.acc_D)
            break
    if total == 0 and load(data, begin) == _LABEL and data[begin + 8] == 0x5F:
        return -1
    for at in range(0, size, LONG_WORD):
        stop = min(at + LONG_WORD + ahead, size)
        s.text[0] = data[begin + at - 1] if at > 0 else np.uint8(0)
        for k in range(at, stop):
            s.text[1 + k - at] = data[begin + k]
        used = 1 + stop - at
        s.text[used : used + ahead + 16] = 0
        s.words[START, 0], s.words[SIZE, 0] = 1, min(LONG_WORD, size - at)
        filled = _rows_of(m, magic, s, used, 1, False)
        _add_rows(m, s.found, filled, s.acc_D)
        total += filled
    return total


@kernel
def _piece(m, magic, data, begin, end, s, in_line):
    """Add the rows of all words of a piece of text to `s.acc_D`. Returns (how many rows, words of the line)."""
    total, i = np.int64(0), begin
    while i < end:
        i, n = _read_words(data, i, end, s.keys, s.parts, s.words)
        if n > 0:
            missing, used = _look_up(data, s.keys, s.parts, s.words, n, s.text)
            if missing > 0:
                s.text[used : used + 4 * m.max_chars + 16] = 0
                _rows_of(m, magic, s, used, missing, True)
            filled, in_line = _gather(s.words, n, missing, s.word_hashes, s.found, s.keys, s.rows, s.line, in_line)
            _add_rows(m, s.rows, filled, s.acc_D)
            total += filled
        elif i < end and _word_end(data, i, min(i + LONG_WORD, end)) - i >= LONG_WORD:
            stop = _word_end(data, i, end)
            found = _long_word(m, magic, data, i, stop - i, s)
            if found >= 0 and m.word_ngrams > 1:
                h = _FNV_BASIS
                for k in range(i, stop):
                    h = _step(h, data[k])
                s.line[in_line] = np.int32(h)
                in_line += 1
            total += max(found, 0)
            i = stop
    return total, in_line


@kernel
def _end_of_line(m, s, in_line):
    """Add the end of the line: the word `</s>`, then the word n-grams of the line. Returns how many rows."""
    total = 0
    if m.end_of_line >= 0:
        s.rows[0] = m.end_of_line
        _add_rows(m, s.rows, 1, s.acc_D)
        total = 1
    if m.word_ngrams > 1:
        h = _FNV_BASIS
        for byte in (LESS, SLASH, S, GREATER):
            h = _step(h, np.uint8(byte))
        s.line[in_line] = np.int32(h)
        total += _word_ngrams(m, s, in_line + 1)
    return total


@kernel
def _word_ngrams(m, s, in_line):
    """Add the rows of the n-grams of two words and more; how many."""
    total, n = 0, 0
    for i in range(in_line):
        if n + m.word_ngrams > len(s.rows):
            _add_rows(m, s.rows, n, s.acc_D)
            total, n = total + n, 0
        h = np.uint64(np.int64(s.line[i]))
        for j in range(i + 1, min(in_line, i + m.word_ngrams)):
            h = np.uint64(h * _WORD_NGRAM_PRIME + np.uint64(np.int64(s.line[j])))
            row = np.int64(h % np.uint64(m.bucket))
            if len(m.ranks) == 0:
                s.rows[n] = m.num_words + row
                n += 1
            elif m.seen[row >> 6] >> np.uint64(row & 63) & np.uint64(1):
                s.rows[n] = m.num_words + m.ranks[row >> 6] + _ones_below(m.seen[row >> 6], row & 63)
                n += 1
    _add_rows(m, s.rows, n, s.acc_D)
    return total + n


@kernel
def _after_character(data, at, end):
    """The first place from `at` on where a character begins."""
    while at < end and data[at] & 0xC0 == 0x80:
        at += 1
    return at


@kernel
def _hidden(m, magic, data, begin, end, sample, s):
    """Fill `s.acc_D` with the mean of a row's input vectors; returns their number.

    Of a row longer than `sample` bytes (0: no limit) only the first, the middle and the last third of that are read.
    """
    s.acc_D[:] = np.float32(0)
    third = sample // 3
    if sample <= 0 or end - begin <= sample:
        total, hashes = _piece(m, magic, data, begin, end, s, 0)
    else:
        total, hashes = 0, 0
        for first in (begin, begin + (end - begin - third) // 2, end - third):
            start, stop = _after_character(data, first, end), _after_character(data, first + third, end)
            n, hashes = _piece(m, magic, data, start, stop, s, hashes)
            total += n
    total += _end_of_line(m, s, hashes)
    if total > 0:
        scale = np.float32(1.0 / total)
        for d in range(len(s.acc_D)):
            s.acc_D[d] *= scale
    return total


@kernel
def means(m, magic, data, offsets, sample, keys, means_ND, counts):
    """Write the mean of each row's input vectors (float32[N, D]) and how many there were (int64[N]).

    `keys` (uint64[places, 4 + R / 2], zeros at first; places are a power of two) is the cache of words that have
    at most R rows of the input matrix, R being 8 to 62. `data` has 16 bytes more than the rows.
    """
    longest = np.int64(0)
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    s = _scratch(m, longest, keys)
    for row in range(len(offsets) - 1):
        counts[row] = _hidden(m, magic, data, offsets[row], offsets[row + 1], sample, s)
        for d in range(len(s.acc_D)):
            means_ND[row, d] = s.acc_D[d]


SOFTMAX, HIERARCHICAL, ONE_VS_ALL = range(3)

_SIGMOID_LIMIT, _SIGMOID_STEPS = np.float32(8), 512
_FLOOR = 1e-5  # fastText takes log(p + 1e-5), and its probabilities come back through exp
_NEVER = np.float32(-np.inf)


@kernel
def _fill_logits(output_DL, norms, acc_D, logits_L):
    """Fill `logits_L`: each output row times the hidden vector, summed over the dimensions in order."""
    labels = len(logits_L)
    for label in range(labels):
        logits_L[label] = np.float32(0)
    for d in range(len(acc_D)):
        x = acc_D[d]
        for label in range(labels):
            logits_L[label] += output_DL[d, label] * x
    for label in range(labels):
        logits_L[label] *= norms[label]


@kernel(forceinline=True)
def _log(p):
    """fastText's logarithm of a float32, which is never that of zero."""
    return np.float32(np.log(np.float64(p) + _FLOOR))


@kernel
def _to_probabilities(loss, sigmoid, p):
    """Turn logits `p` into probabilities: softmax, or a sigmoid of each from fastText's table."""
    if loss == ONE_VS_ALL:
        for label in range(len(p)):
            x = p[label]
            if x < -_SIGMOID_LIMIT:
                p[label] = np.float32(0)
            elif x > _SIGMOID_LIMIT:
                p[label] = np.float32(1)
            else:
                step = (x + _SIGMOID_LIMIT) * np.float32(_SIGMOID_STEPS) / _SIGMOID_LIMIT / np.float32(2)
                p[label] = sigmoid[np.int64(step)]
        return
    largest = p[0]
    for label in range(len(p)):
        largest = max(largest, p[label])
    total = np.float32(0)
    for label in range(len(p)):
        p[label] = np.exp(p[label] - largest)
        total += p[label]
    for label in range(len(p)):
        p[label] /= total


@kernel
def _best_flat(p):
    """(label, log score) of the most probable label; of equal ones the last, as in fastText's heap."""
    largest = p[0]
    for label in range(len(p)):
        largest = max(largest, p[label])
    best, score = -1, _NEVER
    for label in range(len(p)):
        if p[label] >= largest * np.float32(0.999):  # other values may have equal logarithms
            this = _log(p[label])
            if this >= score:
                best, score = label, this
    return best, score


@kernel(forceinline=True)
def _turn(logit):
    """(log probability of the left child, of the right child) of an inner node."""
    f = np.float32(1.0 / np.float64(np.float32(1) + np.exp(-logit)))
    return _log(np.float32(1.0 - np.float64(f))), _log(f)


@kernel
def _best_leaf(left, right, logits_L, stack, scores):
    """(label, log score) of the best leaf, in fastText's depth-first order; (-1, floor) where all fall below 1e-5."""
    labels = (len(left) + 1) // 2
    best, score = np.int64(-1), _log(np.float32(0))
    stack[0], scores[0] = len(left) - 1, np.float32(0)
    depth = 1
    while depth > 0:
        depth -= 1
        node, here = np.int64(stack[depth]), scores[depth]
        if here < score:
            continue
        if node < labels:
            best, score = node, here
            continue
        go_left, go_right = _turn(logits_L[node - labels])
        stack[depth], scores[depth] = right[node], here + go_right
        stack[depth + 1], scores[depth + 1] = left[node], here + go_left
        depth += 2
    return best, score


@kernel
def _leaf(left, parent, logits_L, stack, label):
    """Log score of one label: the sum over the path from the root to its leaf."""
    labels = (len(left) + 1) // 2
    depth, node = 0, label
    while parent[node] >= 0:
        stack[depth] = node
        depth, node = depth + 1, parent[node]
    score = np.float32(0)
    while depth > 0:
        depth -= 1
        go_left, go_right = _turn(logits_L[node - labels])
        score += go_left if left[node] == stack[depth] else go_right
        node = stack[depth]
    return score


@kernel
def best(loss, output_DL, norms, left, right, sigmoid, means_ND, counts, labels, scores):
    """Write the best label of each row (int32, -1: there is none) and its probability (float32)."""
    logits_L = np.empty(output_DL.shape[1], np.float32)
    stack, stack_scores = np.empty(len(left) + 1, np.int32), np.empty(len(left) + 1, np.float32)
    for row in range(len(counts)):
        labels[row], scores[row] = -1, np.float32(0)
        if counts[row] == 0:
            continue
        _fill_logits(output_DL, norms, means_ND[row], logits_L)
        if loss == HIERARCHICAL:
            label, score = _best_leaf(left, right, logits_L, stack, stack_scores)
        else:
            _to_probabilities(loss, sigmoid, logits_L)
            label, score = _best_flat(logits_L)
        if label >= 0:
            labels[row], scores[row] = label, np.exp(score)


@kernel
def best_among(loss, output_DL, norms, left, parent, sigmoid, means_ND, counts, some, labels, scores):
    """As `best`, but only among the labels of `some` (int64); of equal ones the last."""
    logits_L, stack = np.empty(output_DL.shape[1], np.float32), np.empty(len(left) + 1, np.int32)
    for row in range(len(counts)):
        labels[row], scores[row] = -1, np.float32(0)
        if counts[row] == 0:
            continue
        _fill_logits(output_DL, norms, means_ND[row], logits_L)
        if loss != HIERARCHICAL:
            _to_probabilities(loss, sigmoid, logits_L)
        chosen, score = np.int64(-1), _NEVER
        for label in some:
            this = _leaf(left, parent, logits_L, stack, label) if loss == HIERARCHICAL else _log(logits_L[label])
            if this >= score:
                chosen, score = label, this
        labels[row], scores[row] = chosen, np.exp(score)
