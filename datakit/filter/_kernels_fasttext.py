"""fastText on rows of text: their words and n-grams, the mean of their input vectors, the output layer.

First: from UTF-8 bytes to the rows of the input matrix, by words, their character n-grams and the dictionary.
Bojanowski et al. 2017, Enriching Word Vectors with Subword Information; hashes are 32-bit FNV-1a. A row of text is one
line: white space and new lines of every kind separate words, and so does the text `</s>`, fastText's end-of-line mark,
at which fastText would stop. A word that occurred before in the same call is not looked up again.

Second, the hidden layer: the mean of the input vectors of a row's words and n-grams.
Joulin et al. 2016, Bag of Tricks for Efficient Text Classification, and FastText.zip for pruned and quantized matrices.
Every sum is computed in float32 in fastText's own order, so that scores agree to the last bits and the best label is
the same. Text is (data uint8, offsets int64), as `string_buffers` gives it.

Third, the output layer on that mean: softmax, hierarchical softmax, one-vs-all.
Sums, logarithms and ties are those of fastText. With hierarchical softmax (Joulin et al. 2016) a
label's probability is the product of those of the branches from the root of a Huffman tree to its leaf.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from datakit.kernels import kernel

_FNV_BASIS, _FNV_PRIME = np.uint32(2166136261), np.uint32(16777619)
_MIX = np.uint64(0x9E3779B97F4A7C15)
LESS, GREATER, SLASH, S = 0x3C, 0x3E, 0x2F, 0x73
CACHE_BITS = 13
LONG_BYTES = 1 << 9


@kernel(forceinline=True)
def _step(h, byte):
    """One step of FNV-1a as in fastText: bytes are signed, so that those above 127 flip the upper bits, too."""
    return np.uint32((h ^ np.uint32(np.int8(byte))) * _FNV_PRIME)


@kernel(forceinline=True)
def separator(data, i, end):
    """Bytes of the separator at byte i, where `Arrays.marks` allows one; 0 inside a word."""
    byte = data[i]
    if byte == LESS:
        mark = i + 4 <= end and data[i + 1] == SLASH and data[i + 2] == S and data[i + 3] == GREATER
        return 4 if mark else 0
    if byte == 0xC2:
        return 2 if i + 2 <= end and data[i + 1] == 0x85 else 0
    if byte == 0xE2:
        return 3 if i + 3 <= end and data[i + 1] == 0x80 and data[i + 2] & 0xFE == 0xA8 else 0
    return 1


@kernel
def possible_separators():
    """bool[256]: the bytes that a separator can begin with."""
    marks = np.zeros(256, np.bool_)
    for byte in (0, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, LESS, 0xC2, 0xE2):
        marks[byte] = True
    return marks


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
def find(blob, word_offsets, table, data, begin, end, h):
    """The number of a word, -1 for an unknown one."""
    mask = np.int64(len(table) - 1)
    slot = np.int64(h) & mask
    while True:
        word = np.int64(table[slot])
        if word < 0:
            return word
        at = word_offsets[word]
        size = word_offsets[word + 1] - at
        if size == end - begin:
            same = 0
            while same < size and blob[at + same] == data[begin + same]:
                same += 1
            if same == size:
                return word
        slot = (slot + 1) & mask


@kernel(forceinline=True)
def labelled(data, begin, end):
    """Whether a word begins with `__label__`: fastText then reads it as a label."""
    prefix = (0x5F, 0x5F, 0x6C, 0x61, 0x62, 0x65, 0x6C, 0x5F, 0x5F)
    same = 0
    while same < len(prefix) and begin + same < end and data[begin + same] == prefix[same]:
        same += 1
    return same == len(prefix)


@kernel(forceinline=True)
def fnv(data, begin, end):
    h = _FNV_BASIS
    for i in range(begin, end):
        h = _step(h, data[i])
    return h


@kernel(forceinline=True)
def _modulo(h, magic, bucket):
    """h % bucket without a division (Lemire, Kaser and Kurz 2019); magic = 2**64 // bucket + 1, h and bucket uint32."""
    low = np.uint64(magic * np.uint64(h))
    high = (low >> np.uint64(32)) * bucket + ((low & np.uint64(0xFFFFFFFF)) * bucket >> np.uint64(32))
    return np.int64(high >> np.uint64(32))


@kernel(forceinline=True)
def hashed_row(num_words, seen, kept, bucket):
    """The input row of a hashed n-gram, -1 where it was pruned."""
    if len(kept) == 0:
        return num_words + bucket
    if seen[bucket >> 3] >> (bucket & 7) & 1 == 0:
        return np.int64(-1)
    return num_words + np.int64(kept[bucket])


@kernel(forceinline=True)
def ngram_hashes(padded, total, i, min_chars, max_chars, hashes):
    """Hash the n-grams from byte i of `padded` on, while `hashes` has space. Returns (next i, number of hashes).

    The characters `<` and `>` alone are no n-grams.
    """
    n = np.int64(0)
    while i < total and n + max_chars <= len(hashes):
        h = _step(_FNV_BASIS, padded[i])
        j = i + 1
        while padded[j] & 0xC0 == 0x80:  # a zero byte follows the last one
            h = _step(h, padded[j])
            j += 1
        following = j
        if min_chars <= 1 and i > 0 and j < total:
            hashes[n] = h
            n += 1
        for chars in range(2, max_chars + 1):
            if j >= total:
                break
            h = _step(h, padded[j])
            j += 1
            while padded[j] & 0xC0 == 0x80:
                h = _step(h, padded[j])
                j += 1
            hashes[n] = h
            n += np.int64(chars >= min_chars)
        i = following
    return i, n


@kernel(forceinline=True)
def hashed_rows(hashes, found, magic, bucket, num_words, seen, kept, chosen, rows, n):
    """Append the rows of hashed n-grams to `rows`, which has space; returns the new number of rows."""
    if len(kept) == 0:
        for k in range(found):
            rows[n + k] = num_words + _modulo(hashes[k], magic, bucket)
        return n + found
    count = np.int64(0)
    for k in range(found):
        at = _modulo(hashes[k], magic, bucket)
        chosen[count] = at
        count += np.int64(seen[at >> 3] >> (at & 7) & 1)
    for k in range(count):
        rows[n + k] = num_words + np.int64(kept[chosen[k]])
    return n + count


@kernel(forceinline=True)
def _same_head(data, a, b, size):
    """Whether `size` bytes at a and at b are equal."""
    same = 0
    while same < size and data[a + same] == data[b + same]:
        same += 1
    return same == size


@kernel
def word_rows(
    data, begin, end, marks, blob, word_offsets, table, num_words, min_chars, max_chars, bucket, magic, seen, kept,
    rows, hashes, num_hashes, padded, ngrams, chosen, cache, pool, used,
):  # fmt: skip
    """Fill `rows` with the rows of the words from `begin` on: (where it stopped, rows, hashes).

    It stops at the end, before a word of more than `LONG_BYTES`, or where the rows of one more word may not fit. An
    entry of the cache has a word's last 16 bytes (a word holds no zero byte, so that shorter words differ, too), its
    position, its size (0: no entry), the place and number of its rows in the pool, its hash. Arrays are separate
    arguments, and all calls are inlined: otherwise numba would count references for every word.
    """
    n, i = 0, begin
    room = len(rows) - (LONG_BYTES + 2) * max_chars - 1
    while i < end and n <= room:
        skip = separator(data, i, end) if marks[data[i]] else 0
        if skip > 0:
            i += skip
            continue
        start, high, low = i, np.uint64(0), np.uint64(0)
        while i < end:
            if marks[data[i]] and separator(data, i, end) > 0:
                break
            high = high << np.uint64(8) | low >> np.uint64(56)
            low = low << np.uint64(8) | np.uint64(data[i])
            i += 1
        size = i - start
        if size > LONG_BYTES:
            return start, n, num_hashes
        slot = np.int64((high * _MIX ^ low) * _MIX >> np.uint64(64 - CACHE_BITS))
        cached = cache[slot, 3] == size and cache[slot, 0] == np.int64(high) and cache[slot, 1] == np.int64(low)
        if cached and (size <= 16 or _same_head(data, cache[slot, 2], start, size - 16)):
            at, count = cache[slot, 4], cache[slot, 5]
            for k in range(count):
                rows[n + k] = pool[at + k]
            n += count
            hashes[num_hashes] = np.int32(cache[slot, 6])
            num_hashes += len(hashes) > 1
            continue
        h = fnv(data, start, i)
        word = find(blob, word_offsets, table, data, start, i, h)
        if word >= num_words or (word < 0 and labelled(data, start, i)):
            continue
        first = n
        if word >= 0:
            rows[n] = word
            n += 1
        if max_chars > 0:
            padded[0], padded[size + 1], padded[size + 2] = LESS, GREATER, 0
            for k in range(size):
                padded[k + 1] = data[start + k]
            _, found = ngram_hashes(padded, size + 2, 0, min_chars, max_chars, ngrams)
            n = hashed_rows(ngrams, found, magic, bucket, num_words, seen, kept, chosen, rows, n)
        hashes[num_hashes] = np.int32(h)
        num_hashes += len(hashes) > 1
        count = n - first
        if used[0] + count > len(pool):
            for k in range(len(cache)):
                cache[k, 3] = 0
            used[0] = 0
        at = used[0]
        for k in range(count):
            pool[at + k] = rows[first + k]
        used[0] = at + count
        cache[slot, 0], cache[slot, 1], cache[slot, 2], cache[slot, 3] = np.int64(high), np.int64(low), start, size
        cache[slot, 4], cache[slot, 5], cache[slot, 6] = at, count, np.int64(h)
    return i, n, num_hashes


@kernel
def word_end(marks, data, i, end):
    while i < end and not (marks[data[i]] and separator(data, i, end) > 0):
        i += 1
    return i


_WORD_NGRAM_PRIME = np.uint64(116049371)
_CACHED_ROWS = 1 << 17


class Arrays(NamedTuple):
    """A model as the kernels read it: V words and labels, R rows of the input matrix, D dimensions, L labels."""

    blob: np.ndarray  # uint8: the bytes of all words and labels, in the order of the file
    word_offsets: np.ndarray  # int64[V + 1]
    table: np.ndarray  # int32[power of two]: word numbers by hash, -1 free; open addressing
    marks: np.ndarray  # bool[256]: bytes that a separator can begin with
    num_words: int  # words come before labels
    min_chars: int
    max_chars: int  # of character n-grams; 0: none
    word_ngrams: int
    bucket: int
    kept: np.ndarray  # int32[bucket] of a pruned model: row of a hashed n-gram, -1 pruned; else empty
    seen: (
        np.ndarray
    )  # uint8[bucket / 8 + 1] of a pruned model: one bit for each n-gram, 1: kept; it fits into the cache
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
def _long_word(m, magic, data, begin, end, h, s):
    """Add the rows of a word of any size to `s.acc_D`. Returns (how many, is it a word)."""
    word = find(m.blob, m.word_offsets, m.table, data, begin, end, h)
    if word >= m.num_words or (word < 0 and labelled(data, begin, end)):
        return 0, False
    total = 0
    if word >= 0:
        s.rows[0] = word
        _add_rows(m, s.rows, 1, s.acc_D)
        total = 1
    if m.max_chars > 0:
        size = end - begin + 2
        padded = np.empty(size + 1, np.uint8)
        padded[0], padded[size - 1], padded[size] = LESS, GREATER, 0
        padded[1 : size - 1] = data[begin:end]
        i = np.int64(0)
        while i < size:
            i, found = ngram_hashes(padded, size, i, m.min_chars, m.max_chars, s.ngrams)
            n = hashed_rows(
                s.ngrams, found, magic, np.uint64(m.bucket), m.num_words, m.seen, m.kept, s.chosen, s.rows, 0
            )
            _add_rows(m, s.rows, n, s.acc_D)
            total += n
    return total, True


@kernel
def _add_rows(m, rows, n, acc_D):
    """Add n rows of the input matrix to `acc_D`, in order."""
    if len(m.codes) == 0:
        dims = len(acc_D)
        first = 0
        while first + 16 <= dims:
            _add_16(m.input_RD, rows, n, first, acc_D)
            first += 16
        if first < dims:
            for k in range(n):
                for d in range(first, dims):
                    acc_D[d] += m.input_RD[rows[k], d]
        return
    subvectors, width = m.centroids.shape[0], m.centroids.shape[2]
    for k in range(n):
        row = rows[k]
        norm = m.norms[row]
        for s in range(subvectors):
            code = m.codes[row, s]
            for d in range(s * width, min((s + 1) * width, len(acc_D))):
                acc_D[d] += norm * m.centroids[s, code, d - s * width]


@kernel
def _add_16(input_RD, rows, n, f, acc):
    """`_add_rows` for 16 dimensions from f on, kept in registers."""
    a0, a1, a2, a3 = acc[f], acc[f + 1], acc[f + 2], acc[f + 3]
    a4, a5, a6, a7 = acc[f + 4], acc[f + 5], acc[f + 6], acc[f + 7]
    b0, b1, b2, b3 = acc[f + 8], acc[f + 9], acc[f + 10], acc[f + 11]
    b4, b5, b6, b7 = acc[f + 12], acc[f + 13], acc[f + 14], acc[f + 15]
    for k in range(n):
        r = rows[k]
        a0 += input_RD[r, f]
        a1 += input_RD[r, f + 1]
        a2 += input_RD[r, f + 2]
        a3 += input_RD[r, f + 3]
        a4 += input_RD[r, f + 4]
        a5 += input_RD[r, f + 5]
        a6 += input_RD[r, f + 6]
        a7 += input_RD[r, f + 7]
        b0 += input_RD[r, f + 8]
        b1 += input_RD[r, f + 9]
        b2 += input_RD[r, f + 10]
        b3 += input_RD[r, f + 11]
        b4 += input_RD[r, f + 12]
        b5 += input_RD[r, f + 13]
        b6 += input_RD[r, f + 14]
        b7 += input_RD[r, f + 15]
    acc[f], acc[f + 1], acc[f + 2], acc[f + 3] = a0, a1, a2, a3
    acc[f + 4], acc[f + 5], acc[f + 6], acc[f + 7] = a4, a5, a6, a7
    acc[f + 8], acc[f + 9], acc[f + 10], acc[f + 11] = b0, b1, b2, b3
    acc[f + 12], acc[f + 13], acc[f + 14], acc[f + 15] = b4, b5, b6, b7


class _ReaderScratch(NamedTuple):
    """Scratch buffers of one call, and its cache of words."""

    rows: np.ndarray  # int32: rows of the input matrix to add next
    hashes: np.ndarray  # int32: the words of a line, for word n-grams
    padded: np.ndarray  # uint8: `<word>` and a zero byte
    ngrams: np.ndarray  # uint32: hashes of some character n-grams
    chosen: np.ndarray  # int64: those that were not pruned
    cache: np.ndarray  # int64[cached words, 8]: see `word_rows`
    pool: np.ndarray  # int32
    used: np.ndarray  # int64[1]: of `pool`
    acc_D: np.ndarray  # float32


@kernel
def _scratch(m, longest):
    return _ReaderScratch(
        np.empty(2 * (LONG_BYTES + 2) * max(m.max_chars, 8), np.int32),
        np.empty(longest // 2 + 3 if m.word_ngrams > 1 else 1, np.int32),
        np.empty(LONG_BYTES + 3, np.uint8),
        np.empty((LONG_BYTES + 2) * m.max_chars + 1, np.uint32),
        np.empty((LONG_BYTES + 2) * m.max_chars + 1, np.int64),
        np.zeros((1 << CACHE_BITS, 8), np.int64),
        np.empty(max(_CACHED_ROWS, (LONG_BYTES + 2) * m.max_chars + 1), np.int32),
        np.zeros(1, np.int64),
        np.empty(m.output_DL.shape[0], np.float32),
    )


@kernel
def _piece(m, magic, data, begin, end, s, num_hashes):
    """Add the rows of all words of a piece of text to `s.acc_D`. Returns (how many, hashes)."""
    total, i = 0, begin
    while i < end:
        i, n, num_hashes = word_rows(
            data, i, end, m.marks, m.blob, m.word_offsets, m.table, np.int64(m.num_words), m.min_chars, m.max_chars,
            np.uint64(m.bucket), magic, m.seen, m.kept,
            s.rows, s.hashes, num_hashes, s.padded, s.ngrams, s.chosen, s.cache, s.pool, s.used,
        )  # fmt: skip
        _add_rows(m, s.rows, n, s.acc_D)
        total += n
        if i < end and n == 0:  # the next word is a long one
            stop = word_end(m.marks, data, i, end)
            h = fnv(data, i, stop)
            n, known = _long_word(m, magic, data, i, stop, h, s)
            total += n
            if known:
                s.hashes[num_hashes] = np.int32(h)
                num_hashes += len(s.hashes) > 1
            i = stop
    return total, num_hashes


@kernel
def _end_of_line(m, magic, s, num_hashes):
    """Add the end of the line: the word `</s>`, then the word n-grams of the line. Returns how many rows."""
    mark = np.array([LESS, SLASH, S, GREATER], np.uint8)
    h = fnv(mark, 0, 4)
    word = find(m.blob, m.word_offsets, m.table, mark, 0, 4, h)
    total = 0
    if 0 <= word < m.num_words:
        s.rows[0] = word
        _add_rows(m, s.rows, 1, s.acc_D)
        total = 1
    if m.word_ngrams > 1:
        s.hashes[num_hashes] = np.int32(h)
        total += _word_ngrams(m, s, num_hashes + 1)
    return total


@kernel
def _word_ngrams(m, s, num_hashes):
    """Add the rows of the n-grams of two words and more; how many."""
    total, n = 0, 0
    for i in range(num_hashes):
        if n + m.word_ngrams > len(s.rows):
            _add_rows(m, s.rows, n, s.acc_D)
            total, n = total + n, 0
        h = np.uint64(np.int64(s.hashes[i]))
        for j in range(i + 1, min(num_hashes, i + m.word_ngrams)):
            h = np.uint64(h * _WORD_NGRAM_PRIME + np.uint64(np.int64(s.hashes[j])))
            row = hashed_row(np.int64(m.num_words), m.seen, m.kept, np.int64(h % np.uint64(m.bucket)))
            if row >= 0:
                s.rows[n] = row
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
    total += _end_of_line(m, magic, s, hashes)
    if total > 0:
        scale = np.float32(1.0 / total)
        for d in range(len(s.acc_D)):
            s.acc_D[d] *= scale
    return total


@kernel
def means(m, magic, data, offsets, sample, means_ND, counts):
    """Write the mean of each row's input vectors (float32[N, D]) and how many there were (int64[N])."""
    longest = np.int64(0)
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    s = _scratch(m, longest)
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
