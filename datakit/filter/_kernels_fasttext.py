"""The hidden layer of fastText: the mean of the input vectors of a row's words and n-grams.

Joulin et al. 2016, Bag of Tricks for Efficient Text Classification, and FastText.zip for pruned and quantized matrices.
Every sum is taken in float32 in fastText's own order, so that scores agree to the last bits and the best label is the
same one. Text is (data uint8, offsets int64), as `text.buffers` gives it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from datakit.filter._kernels_fasttext_words import (
    CACHE_BITS,
    GREATER,
    LESS,
    LONG_BYTES,
    SLASH,
    S,
    find,
    fnv,
    hashed_row,
    hashed_rows,
    labelled,
    ngram_hashes,
    word_end,
    word_rows,
)

_WORD_NGRAM_PRIME = np.uint64(116049371)
_CACHED_ROWS = 1 << 17


class Arrays(NamedTuple):
    """A model as the kernels read it. V words and labels, R rows of the input matrix, D dimensions, L labels."""

    blob: np.ndarray  # uint8: the words one after another, in the order of the file, labels among them
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
    )  # uint8[bucket / 8 + 1] of a pruned model: a bit per n-gram that is kept, small enough for the cache
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


@njit(cache=True, nogil=True)
def _long_word(m, magic, data, begin, end, h, s):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def _add_rows(m, rows, n, acc_D):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def _add_16(input_RD, rows, n, f, acc):  # type: ignore[no-untyped-def]
    """`_add_rows` for 16 dimensions from f on, which stay in registers."""
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


class _Scratch(NamedTuple):
    """What one call reuses from row to row. Words that came before are not looked up again."""

    rows: np.ndarray  # int32: rows of the input matrix that wait to be added
    hashes: np.ndarray  # int32: the words of a line, for word n-grams
    padded: np.ndarray  # uint8: `<word>` and a zero byte
    ngrams: np.ndarray  # uint32: hashes of some character n-grams
    chosen: np.ndarray  # int64: those that were not pruned
    cache: np.ndarray  # int64[cached words, 8]: a word, see `_remember`
    pool: np.ndarray  # int32
    used: np.ndarray  # int64[1]: of `pool`
    acc_D: np.ndarray  # float32


@njit(cache=True, nogil=True)
def _scratch(m, longest):  # type: ignore[no-untyped-def]
    return _Scratch(
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


@njit(cache=True, nogil=True)
def _piece(m, magic, data, begin, end, s, num_hashes):  # type: ignore[no-untyped-def]
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
        if i < end and n == 0:  # a long word, which it does not begin with
            stop = word_end(m.marks, data, i, end)
            h = fnv(data, i, stop)
            n, known = _long_word(m, magic, data, i, stop, h, s)
            total += n
            if known:
                s.hashes[num_hashes] = np.int32(h)
                num_hashes += len(s.hashes) > 1
            i = stop
    return total, num_hashes


@njit(cache=True, nogil=True)
def _end_of_line(m, magic, s, num_hashes):  # type: ignore[no-untyped-def]
    """Add what ends every line: the word `</s>`, then the word n-grams of the line. Returns how many rows."""
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


@njit(cache=True, nogil=True)
def _word_ngrams(m, s, num_hashes):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def _after_character(data, at, end):  # type: ignore[no-untyped-def]
    """The first place from `at` on where a character begins."""
    while at < end and data[at] & 0xC0 == 0x80:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _hidden(m, magic, data, begin, end, sample, s):  # type: ignore[no-untyped-def]
    """Fill `s.acc_D` with the mean of a row's input vectors; how many there were.

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


@njit(cache=True, nogil=True)
def means(m, magic, data, offsets, sample, means_ND, counts):  # type: ignore[no-untyped-def]
    """Write the mean of each row's input vectors (float32[N, D]) and how many there were (int64[N])."""
    longest = np.int64(0)
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    s = _scratch(m, longest)
    for row in range(len(offsets) - 1):
        counts[row] = _hidden(m, magic, data, offsets[row], offsets[row + 1], sample, s)
        for d in range(len(s.acc_D)):
            means_ND[row, d] = s.acc_D[d]
