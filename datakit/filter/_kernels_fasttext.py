"""fastText on rows of text: their words and n-grams, the mean of their input vectors, the output layer.

First: from UTF-8 bytes to the rows of the input matrix, by words, their character n-grams and the dictionary.
Bojanowski et al. 2017, Enriching Word Vectors with Subword Information; hashes are 32-bit FNV-1a. A row of text is one
line: white space and new lines of every kind separate words, and so does the text `</s>`, fastText's end-of-line mark,
at which fastText would stop.

Second, the hidden layer: the mean of the input vectors of a row's words and n-grams.
Joulin et al. 2016, Bag of Tricks for Efficient Text Classification, and FastText.zip for pruned and quantized matrices.
The vectors of one word and of its n-grams are summed first, in fastText's order; then the words of a row are summed, in
their order. A cache holds the sums of words that occurred before. A sum is the same whether the cache had it or not, so
that a score depends on the row alone. fastText adds all vectors of a row one after another: its float32 sums round
differently in the last bits. Text is (data uint8, offsets int64), as `string_buffers` gives it.

Third, the output layer on that mean: softmax, hierarchical softmax, one-vs-all.
Sums, logarithms and ties are those of fastText. With hierarchical softmax (Joulin et al. 2016) a
label's probability is the product of those of the branches from the root of a Huffman tree to its leaf.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

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


@kernel
def build_table(blob, word_offsets, table):
    """Enter every word into `table` (int32, a power of two, all -1)."""
    mask = np.int64(len(table) - 1)
    for word in range(len(word_offsets) - 1):
        h = _FNV_BASIS
        for i in range(word_offsets[word], word_offsets[word + 1]):
            h = _step(h, blob[i])
        slot = np.int64(h) & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = word


@kernel(forceinline=True)
def _modulo(h, magic, bucket):
    """h % bucket without a division (Lemire, Kaser and Kurz 2019); magic = 2**64 // bucket + 1, h and bucket uint32."""
    low = np.uint64(magic * np.uint64(h))
    high = (low >> np.uint64(32)) * bucket + ((low & np.uint64(0xFFFFFFFF)) * bucket >> np.uint64(32))
    return np.int64(high >> np.uint64(32))


# Each of the next three kernels works on a block of words. Numba counts references for every call that is given arrays,
# also for most inlined ones: so they call functions of numbers only, and are long.

PLACE, INFO, SLOT, START, SIZE = range(5)


@kernel(forceinline=True)
def _ones_below(bits, place):
    """How many of the bits below `place` are set."""
    x = bits & ((np.uint64(1) << np.uint64(place)) - np.uint64(1))
    x -= x >> np.uint64(1) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + (x >> np.uint64(2) & np.uint64(0x3333333333333333))
    x = x + (x >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(x * _EACH >> np.uint64(56))


@kernel
def _read_words(data, begin, end, keys, words):
    """Look up the words from `begin` on in the cache: (where it stopped, how many words, how many are missing).

    `words` (int64[5, W]) is filled: `PLACE` of word w says where its sum is, or will be: at a place of the cache, or
    behind all of them, at `places + m` for missing word m. `INFO` has what the cache knows of a word. Of each missing
    word, `SLOT` is the place that it takes, -1 for none; `START` and `SIZE` are those of its bytes. A key has the bytes
    of a word of less than 32 bytes (a word holds no zero byte, so that shorter words differ, too), the place of its
    sum, its info. `data` has 16 more bytes than the rows.
    """
    n, missing, i, places = 0, 0, begin, len(keys)
    shift = np.uint64(64)
    while places >> (np.uint64(64) - shift) > 1:
        shift -= np.uint64(1)
    while i < end and n < words.shape[1]:
        low, high = _until(load(data, i), end - i), _until(load(data, i + 8), end - i - 8)
        a, size, gap = _word_part(low, high)
        if size == 0:
            i += gap
            continue
        key, b, c, d = a, np.uint64(0), np.uint64(0), np.uint64(0)
        at = i
        while gap == 0:
            at += 8
            low, high = high, np.uint64(0) if at + 8 >= end else _until(load(data, at + 8), end - at - 8)
            part, more, gap = _word_part(low, high)
            b, c, d = part if size == 8 else b, part if size == 16 else c, part if size == 24 else d
            key = key * _MIX ^ part
            size += more
        key *= _MIX
        slot = np.int64((key ^ key >> np.uint64(32)) * _MIX >> shift)
        if size < 32 and keys[slot, 0] == a and keys[slot, 1] == b and keys[slot, 2] == c and keys[slot, 3] == d:
            words[PLACE, n], words[INFO, n] = np.int64(keys[slot, 4]), np.int64(keys[slot, 5])
        else:
            words[PLACE, n] = places + missing
            words[START, missing], words[SIZE, missing], words[SLOT, missing] = i, size, -1
            if size < 32:
                keys[slot, 0], keys[slot, 1], keys[slot, 2], keys[slot, 3] = a, b, c, d
                keys[slot, 4] = np.uint64(places + missing)
                words[SLOT, missing] = slot
            missing += 1
        i += size + gap
        n += 1
    return i, n, missing


@kernel
def _sum_missing(
    data, words, missing, blob, word_offsets, table, num_words, min_chars, max_chars, bucket, magic, seen, ranks,
    input_RD, codes, centroids, norms, padded, ngrams, rows, infos, sums, dims,
):  # fmt: skip
    """Sum the vectors of each missing word and of its n-grams into `sums[m * D : (m + 1) * D]`.

    Writes to `infos[m]` the number of vectors times 2**32, and the word's hash; -1 for a label, which is no word.
    """
    mask = np.int64(len(table) - 1)
    for m in range(missing):
        begin, size, at = words[START, m], words[SIZE, m], m * dims
        for d in range(at, at + dims):
            sums[d] = np.float32(0)
        h, beyond_ascii = _FNV_BASIS, np.uint8(0)
        for k in range(begin, begin + size):
            h = _step(h, data[k])
            beyond_ascii |= data[k]
        slot, word = np.int64(h) & mask, np.int64(0)
        while True:
            word = np.int64(table[slot])
            if word < 0:
                break
            from_ = word_offsets[word]
            if word_offsets[word + 1] - from_ == size:
                same = 0
                while same < size and blob[from_ + same] == data[begin + same]:
                    same += 1
                if same == size:
                    break
            slot = (slot + 1) & mask
        named = size >= 9 and load(data, begin) == _LABEL and data[begin + 8] == 0x5F
        if word >= num_words or (word < 0 and named):
            infos[m] = -1
            continue
        filled, count, i, total = 0, np.int64(0), 0, 0
        if word >= 0:
            rows[0] = word
            filled = 1
        if max_chars > 0:
            total = size + 2
            padded[0], padded[size + 1], padded[size + 2] = LESS, GREATER, 0
            for k in range(size):
                padded[k + 1] = data[begin + k]
        while True:
            found = 0
            while beyond_ascii < 0x80 and i < total and found + max_chars <= len(ngrams):
                g = _step(_FNV_BASIS, padded[i])
                if min_chars <= 1 and 0 < i < total - 1:  # the characters `<` and `>` alone are no n-grams
                    ngrams[found] = g
                    found += 1
                for j in range(i + 1, min(i + max_chars, total)):
                    g = _step(g, padded[j])
                    ngrams[found] = g
                    found += np.int64(j - i >= min_chars - 1)
                i += 1
            while beyond_ascii >= 0x80 and i < total and found + max_chars <= len(ngrams):
                g = _step(_FNV_BASIS, padded[i])
                j = i + 1
                while padded[j] & 0xC0 == 0x80:  # a zero byte follows the last one
                    g = _step(g, padded[j])
                    j += 1
                following = j
                if min_chars <= 1 and i > 0 and j < total:
                    ngrams[found] = g
                    found += 1
                for chars in range(2, max_chars + 1):
                    if j >= total:
                        break
                    g = _step(g, padded[j])
                    j += 1
                    while padded[j] & 0xC0 == 0x80:
                        g = _step(g, padded[j])
                        j += 1
                    ngrams[found] = g
                    found += np.int64(chars >= min_chars)
                i = following
            if len(ranks) == 0:
                for k in range(found):
                    rows[filled + k] = num_words + _modulo(ngrams[k], magic, bucket)
                filled += found
            else:
                before = filled
                for k in range(found):
                    place = _modulo(ngrams[k], magic, bucket)
                    rows[filled] = place
                    filled += np.int64(seen[place >> 6] >> np.uint64(place & 63) & np.uint64(1))
                for k in range(before, filled):
                    place = rows[k]
                    rows[k] = num_words + ranks[place >> 6] + _ones_below(seen[place >> 6], place & 63)
            count += filled
            if len(codes) == 0 and dims == 16:
                for k in range(filled):
                    row = rows[k]
                    for d in range(16):
                        sums[at + d] += input_RD[row, d]
            elif len(codes) == 0:
                for k in range(filled):
                    row = rows[k]
                    for d in range(dims):
                        sums[at + d] += input_RD[row, d]
            else:
                width = centroids.shape[2]
                for k in range(filled):
                    row = rows[k]
                    for d in range(dims):
                        sums[at + d] += norms[row] * centroids[d // width, codes[row, d // width], d % width]
            filled = 0
            if i >= total:
                break
        infos[m] = count << 32 | np.int64(h)


@kernel
def _add_words(words, n, missing, infos, keys, sums, acc_D, line, in_line):
    """Add the sums of n words to `acc_D`, in order; then put those of missing words into the cache.

    Returns (how many vectors, words of the line so far, whose hashes are in `line`).
    """
    dims, places, total = len(acc_D), len(keys), np.int64(0)
    for w in range(n):
        at = words[PLACE, w] * dims
        if dims == 16:
            for d in range(16):
                acc_D[d] += sums[at + d]
        else:
            for d in range(dims):
                acc_D[d] += sums[at + d]
    for w in range(n):
        info = words[INFO, w] if words[PLACE, w] < places else infos[words[PLACE, w] - places]
        total += max(info >> 32, 0)
        if len(line) > 1 and info >= 0:
            line[in_line] = np.int32(np.uint32(info))
            in_line += 1
    for m in range(missing):
        slot = words[SLOT, m]
        if slot >= 0:
            keys[slot, 4], keys[slot, 5] = np.uint64(slot), np.uint64(infos[m])
            for d in range(dims):
                sums[slot * dims + d] = sums[(places + m) * dims + d]
    return total, in_line


_WORD_NGRAM_PRIME = np.uint64(116049371)
BLOCK = 1 << 8


class Arrays(NamedTuple):
    """A model as the kernels read it: V words and labels, R rows of the input matrix, D dimensions, L labels."""

    blob: np.ndarray  # uint8: the bytes of all words and labels, in the order of the file
    word_offsets: np.ndarray  # int64[V + 1]
    table: np.ndarray  # int32[power of two]: word numbers by hash, -1 free; open addressing
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


@kernel
def _add_rows(m, rows, n, acc_D):
    """Add n rows of the input matrix to `acc_D`, in order."""
    if len(m.codes) == 0:
        for k in range(n):
            for d in range(len(acc_D)):
                acc_D[d] += m.input_RD[rows[k], d]
        return
    width = m.centroids.shape[2]
    for k in range(n):
        for d in range(len(acc_D)):
            acc_D[d] += m.norms[rows[k]] * m.centroids[d // width, m.codes[rows[k], d // width], d % width]


class _ReaderScratch(NamedTuple):
    """Scratch buffers of one call, and the cache of words, which outlives the call."""

    words: np.ndarray  # int64[5, W]: a block of words, see `_read_words`
    infos: np.ndarray  # int64[W]: of missing words
    padded: np.ndarray  # uint8: `<word>` and a zero byte
    ngrams: np.ndarray  # uint32: hashes of some character n-grams
    rows: np.ndarray  # int64: rows of the input matrix to add next
    line: np.ndarray  # int32: the words of a line, for word n-grams
    keys: np.ndarray  # uint64[places, 6]: see `_read_words`
    sums: np.ndarray  # float32[(places + W) * D]: of the words in the cache, then of missing words
    acc_D: np.ndarray  # float32


@kernel
def _scratch(m, longest, keys, sums):
    room = 256 + max(m.max_chars, m.word_ngrams)
    return _ReaderScratch(
        np.empty((5, BLOCK), np.int64),
        np.empty(BLOCK, np.int64),
        np.empty(longest + 3, np.uint8),
        np.empty(room, np.uint32),
        np.empty(room + 1, np.int64),
        np.empty(longest // 2 + 3 if m.word_ngrams > 1 else 1, np.int32),
        keys,
        sums,
        np.empty(m.output_DL.shape[0], np.float32),
    )


@kernel
def _piece(m, magic, data, begin, end, s, in_line):
    """Add the sums of all words of a piece of text to `s.acc_D`. Returns (how many vectors, words of the line)."""
    total, i, dims = np.int64(0), begin, len(s.acc_D)
    while i < end:
        i, n, missing = _read_words(data, i, end, s.keys, s.words)
        _sum_missing(
            data, s.words, missing, m.blob, m.word_offsets, m.table, np.int64(m.num_words), m.min_chars, m.max_chars,
            np.uint64(m.bucket), magic, m.seen, m.ranks, m.input_RD, m.codes, m.centroids, m.norms,
            s.padded, s.ngrams, s.rows, s.infos, s.sums[len(s.keys) * dims :], dims,
        )  # fmt: skip
        more, in_line = _add_words(s.words, n, missing, s.infos, s.keys, s.sums, s.acc_D, s.line, in_line)
        total += more
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
def means(m, magic, data, offsets, sample, keys, sums, means_ND, counts):
    """Write the mean of each row's input vectors (float32[N, D]) and how many there were (int64[N]).

    `keys` (uint64[places, 6], zeros at first; places are a power of two) and `sums` (float32[(places + BLOCK) * D])
    are the cache of words. `data` has 16 bytes more than the rows.
    """
    longest = np.int64(0)
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    s = _scratch(m, longest, keys, sums)
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
