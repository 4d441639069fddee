"""fastText models that classify: reading their files, and predicting.

Joulin et al. 2016, Bag of Tricks for Efficient Text Classification, and FastText.zip; Bojanowski et al. 2017, Enriching
Word Vectors with Subword Information. The files are `.bin`, and `.ftz` with a pruned and quantized input matrix, format
version 12; the losses are softmax and hierarchical softmax. The `fasttext` module trains such models and is the
reference in the tests. To use a model, only this file is needed: it releases the interpreter lock, which the module's
`predict` holds. Sums are float32 in fastText's order, so that scores are equal to the last bit.

A row is one line. White space of ASCII separates words, new lines too, and so does the word `</s>`, at which fastText
would stop. A row is read in pieces of `PIECE_BYTES` and the rest of the last word, so that buffers stay in the
processor's cache.

Most words of a text came before. Each thread has a cache of words with the rows of the input matrix that they have;
only the rows, since the sum of a word's rows cannot be added without another rounding. A word is known again by all of
its bytes. Of a piece, all words are looked up first; then the words that the cache misses are read together; then rows
are put in the order of the text.

The missing words of a piece become an array of characters: each is the bytes of its UTF-8 in a uint32, the first byte
lowest. There is a 0 before the first word and one after each:

    0 t h e 0 c a t 0

The n-grams of a word are those of `<word>`. The 0 before a word stands for its `<`, the 0 after it for its `>`. So an
n-gram is a run of characters, and its hash (32-bit FNV-1a of its bytes) needs no knowledge of words: the hashes at all
places are made together, size after size, in loops without branches that LLVM turns into vector instructions. Runs that
go on after the end of a word get a hash, too, and are left out like the n-grams that the model does not know.

A feature is a number: that of a word in the dictionary, or `num_words` plus a hashed n-gram. It is the row of the input
matrix, but not in a pruned model, where most n-grams have no row. There `row_of` has the rows, and `known` one bit for
each feature: the bits of all fit into the processor's cache, where the rows do not.

What bounds the indices: `predict` makes buffers for the longest row, a piece is never longer than its row, and a piece
of b bytes has at most b characters, (b + 1) / 2 words, and at b + 1 places one feature more than sizes of n-grams; the
rows that the cache has of a word are some of these. A feature is below `num_words + bucket`, for which `read` checked
the matrices. Invalid UTF-8 changes none of this: a byte that continues no character is a character of its own.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import difflib
import functools
import struct
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from datakit.config import file_mark
from datakit.data import Floats, Integers, Numbers, string_buffers
from datakit.errors import ConfigError, ModelError
from datakit.filter._kernels_bytes import load as eight
from datakit.kernels import kernel

HIERARCHICAL, SOFTMAX = 1, 3
"""Losses by their numbers in files; the others (2: negative sampling, 4: one against all) are refused."""

PIECE_BYTES = 1 << 12
"""The buffers of a piece fit into the processor's cache. Rows of 3 MB took 1.7 times as long in one piece,
before words had a cache."""

_BASIS, _PRIME, _WORD_NGRAM_PRIME = np.uint32(2166136261), np.uint32(16777619), np.uint64(116049371)
_LESS, _GREATER = np.uint32(0x3C), np.uint32(0x3E)
_LABEL = np.uint64(0x5F6C6562616C5F5F)  # `__label_`, and one more underscore follows
_END_OF_LINE = np.int32(-677604519)  # the hash of `</s>`
_INSIDE = np.array([byte not in b"\0\t\n\v\f\r " for byte in range(256)], np.uint8)
_KEEP = np.array([255] * 24 + [0] * 24, np.uint8)  # masks of the first bytes of a word: see `_key`
_MIX = np.uint64(0x9E3779B97F4A7C15)

CACHE_BITS = 16
"""Log2 of the words in a thread's cache, each a line of 64 bytes: of English, 11% miss it, 21% one of a quarter."""
_KEY, _ROWS = 24, 8
"""What the cache has of a word: all bytes, no more than 24 (the others are never in it), and at most 8 rows."""
_HASH, _IS_WORD, _COUNT = np.uint64(32), np.uint64(16), np.uint64(15)
"""Its fourth number: how many rows, a bit that is set unless it is a label or `</s>`, and 32 bits of FNV-1a."""


class Arrays(NamedTuple):
    """A model as the kernels read it: V words and labels, F features, R rows of the input matrix, D dimensions, L
    labels."""

    text: np.ndarray  # uint8: the bytes of all words, then of all labels, and 24 more
    offsets: np.ndarray  # int64[V + 1]: where each begins in `text`
    slots: np.ndarray  # int32[power of two > 2 V]: words and labels by hash, -1 free; open addressing
    num_words: int  # words come before labels
    end_of_line: int  # the number of the word `</s>`; -2: there is none
    min_chars: int  # of character n-grams, 1 or more
    max_chars: int  # 0: there are none
    word_ngrams: int
    bucket: int  # number of hashed n-grams; F = num_words + bucket
    row_of: np.ndarray  # int32[F]: rows of the input matrix; empty: a feature is its row
    known: np.ndarray  # uint8[F / 8 + 1]: one bit for each feature that has a row, the lowest first
    input_RD: np.ndarray  # float32
    output_LD: np.ndarray  # float32; hierarchical: of inner nodes of the tree
    loss: int
    left: (
        np.ndarray
    )  # int32[2 L - 1]: children of the nodes of the tree; nodes below L are the labels, the last the root
    right: np.ndarray


# Words.


@kernel
def _step(h, byte):
    """One step of FNV-1a (uint32) as in fastText: bytes are signed, so that those above 127 flip the upper bits, too.

    numba's product of two uint32 has 64 bits: every step is cut.
    """
    return np.uint32((h ^ np.uint32(np.int8(byte))) * _PRIME)


@kernel(forceinline=True, inner=True)
def _key(text, begin, size):
    """The bytes of a word as three numbers, with zeros behind, and a hash, of which the upper 32 bits are good.

    Of more than 24 bytes, the numbers are the first 16 and the last 8. The text goes on for 24 bytes after its words.
    """
    mask = _KEY - min(size, _KEY)
    a, b = eight(text, begin) & eight(_KEEP, mask), eight(text, begin + 8) & eight(_KEEP, mask + 8)
    c = eight(text, begin + max(size - 8, 16)) & eight(_KEEP, mask + 16)
    mixed = (a ^ (b ^ c * _MIX) * _MIX) * _MIX
    return a, b, c, (mixed ^ mixed >> np.uint64(32)) * _MIX


@kernel
def enter_words(text, offsets, slots):
    """Enter the words of a dictionary into `slots`, which has more than twice as many places, all -1."""
    for word in range(len(offsets) - 1):
        key = _key(text, offsets[word], offsets[word + 1] - offsets[word])[3]
        slot = np.int64(key >> np.uint64(32)) & len(slots) - 1
        while slots[slot] >= 0:
            slot = slot + 1 & len(slots) - 1
        slots[slot] = word


@kernel(inner=True)
def _split(piece, text, edges):
    """Copy a piece of text to `text`, with a 0 before it and 25 behind; returns how many words it has.

    `edges` gets where each word begins and where it ends, in turn.
    """
    size = len(piece)  # `text` has 26 places more, `edges` two: a word has at least a byte, and one behind it
    text[0] = 0
    for i in range(size):
        text[i + 1] = piece[i]
    text[size + 1 : size + 26] = 0
    found, before = 0, np.uint8(0)
    for i in range(1, size + 2):
        edges[found] = i
        inside = _INSIDE[text[i]]
        found += inside ^ before
        before = inside
    return found >> 1


@kernel(forceinline=True, inner=True)
def _copy_rows(source, at, target, to):
    """Copy `_ROWS` numbers: all are loaded before one is stored, so that LLVM makes one instruction of the eight."""
    a, b, c, d = source[np.uintp(at)], source[np.uintp(at + 1)], source[np.uintp(at + 2)], source[np.uintp(at + 3)]
    e, f, g, h = source[np.uintp(at + 4)], source[np.uintp(at + 5)], source[np.uintp(at + 6)], source[np.uintp(at + 7)]
    target[np.uintp(to)], target[np.uintp(to + 1)], target[np.uintp(to + 2)], target[np.uintp(to + 3)] = a, b, c, d
    target[np.uintp(to + 4)], target[np.uintp(to + 5)], target[np.uintp(to + 6)], target[np.uintp(to + 7)] = e, f, g, h


WORD, BEFORE, SLOT, FEATURE, PLACE = range(5)
"""Of each word that the cache misses: its number in the piece, how many rows of words in the cache come before it, its
place in the cache (-1: too long), its feature (-1: none), the place of the 0 before it."""


@kernel(inner=True)
def _look_up(cache, text, edges, words, found, infos, missing):
    """Look up the words of a piece in the cache: (how many rows they have, how many words are missing).

    `found` gets the rows of those that are there, `infos` their fourth number, `missing` `WORD` and `BEFORE` of the
    others. There is no branch, which a processor would guess wrong at every missing word: what does not count is
    overwritten by the next word.
    """
    keys, flat = cache.view(np.uint64), cache.reshape(cache.size)
    filled, count = np.int64(0), 0  # a plain 0 has a type of its own, for which `_copy_rows` is compiled once more
    for w in range(words):
        begin = np.int64(edges[2 * w])
        size = np.int64(edges[2 * w + 1]) - begin
        a, b, c, key = _key(text, begin, size)
        slot = np.uintp(key >> np.uint64(64 - CACHE_BITS))
        apart = (keys[slot, np.uintp(0)] ^ a) | (keys[slot, np.uintp(1)] ^ b) | (keys[slot, np.uintp(2)] ^ c)
        hit = np.int64((apart == 0) & (size <= _KEY))
        infos[w] = keys[slot, np.uintp(3)]
        missing[WORD, np.uintp(count)], missing[BEFORE, np.uintp(count)] = w, filled
        count += 1 - hit
        _copy_rows(flat, np.int64(slot) * 16 + 8, found, filled)
        filled += np.int64(infos[w] & _COUNT) & -hit
    return filled, count


@kernel(forceinline=True)
def _find(dictionary, offsets, slots, key, text, begin, size):
    """The number of the word of `size` bytes that begins at `begin`; -1: it is unknown. Half of the slots are free."""
    slot = np.int64(key >> np.uint64(32)) & len(slots) - 1
    while slots[slot] >= 0:
        word = np.int64(slots[slot])
        k = 0 if offsets[word + 1] - offsets[word] == size else -1
        while 0 <= k < size:
            k = k + 1 if dictionary[offsets[word] + k] == text[begin + k] else -1
        if k == size:
            return word
        slot = slot + 1 & len(slots) - 1
    return np.int64(-1)


@kernel(inner=True)
def read_characters(text, begin, end, chars, n):
    """Write the characters of a word and a 0 to `chars`, behind n others; returns how many there are then."""
    shift = np.uint32(32)
    for i in range(begin, end):
        byte = np.uint32(text[i])
        if byte & 0xC0 == 0x80 and shift < 32:  # a byte of the character before, of which four fit into 32 bits
            chars[n - 1] |= byte << shift
            shift = np.uint32(shift + 8)
        else:
            chars[n] = byte
            shift = np.uint32(8 if byte >= 0xC0 else 32)
            n += 1
    chars[n] = 0
    return n + 1


@kernel(inner=True)
def _read_missing(m, cache, text, edges, missing, count, infos, chars):
    """Write the characters of the words that the cache misses to `chars`; returns how many they are.

    `missing` gets the rest of its numbers, `infos` the fourth number without rows, the cache the bytes of the words.
    A label, which the model may know or not, and `</s>` have no characters: so they have no n-grams either.
    """
    chars[0], n, keys = 0, np.int64(1), cache.view(np.uint64)
    for i in range(count):
        w = missing[WORD, i]
        begin, end = np.int64(edges[2 * w]), np.int64(edges[2 * w + 1])
        a, b, c, key = _key(text, begin, end - begin)
        word = _find(m.text, m.offsets, m.slots, key, text, begin, end - begin)
        is_label = word >= m.num_words or (word < 0 and a == _LABEL and text[begin + 8] == 0x5F)
        missing[SLOT, i], missing[FEATURE, i], missing[PLACE, i], infos[w] = -1, -1, n - 1, 0
        if not is_label and word != m.end_of_line:
            missing[FEATURE, i], infos[w] = word, _IS_WORD
            n = read_characters(text, begin, end, chars, n)
        if m.word_ngrams > 1:
            h = _BASIS
            for k in range(begin, end):
                h = _step(h, text[k])
            infos[w] |= np.uint64(h) << _HASH
        if end - begin <= _KEY:
            slot = np.int64(key >> np.uint64(64 - CACHE_BITS))
            missing[SLOT, i], keys[slot, 0], keys[slot, 1], keys[slot, 2] = slot, a, b, c
    return n


# Features of missing words.


@kernel(inner=True)
def _hash_ngrams(m, chars, n, hashes, inside, grams, kept):
    """Fill `grams` (uint32[1 + sizes, places]), behind its first line: the feature of the n-gram of each size that
    begins at each of n places; and `kept` (uint8, the same shape): 1 where it is an n-gram, and known.

    The last runs read up to `max_chars - 1` places behind the n characters: the buffer has them, and what they hold
    does not matter, as `inside` is 0 for runs that go on after a 0. h % bucket comes without a division: 2**32 / bucket
    is rounded down to `inverse`, so h * inverse >> 32 is the quotient or one less, and the rest is below 2 * bucket.
    """
    inverse, bucket, first = np.uint32(0xFFFFFFFF // max(m.bucket, 1)), np.uint32(m.bucket), np.uint32(m.num_words)
    widest = np.uint32(0)  # of ASCII alone, three of the four rounds are left out
    for k in range(n):
        widest |= chars[k]
        hashes[k], inside[k] = _BASIS, 1
    for size in range(1, m.max_chars + 1):
        last, bracket = chars[size - 1 :], _LESS if size == 1 else _GREATER
        for shift in range(0, 32, 8):
            if shift == 0 or widest >> np.uint32(shift) > 0:
                for k in range(n):
                    # these choices are between uint32: between narrower numbers, they would keep LLVM from using AVX2
                    c = np.uint32((last[k] if last[k] > 0 else bracket) >> np.uint32(shift))
                    hashes[k] = _step(hashes[k], c) if c > 0 else hashes[k]
        if size >= m.min_chars:
            of_size, of_size_kept = grams[size - m.min_chars + 1], kept[size - m.min_chars + 1]
            for k in range(n):
                rest = np.uint32(hashes[k] - np.uint32(hashes[k] * inverse >> np.uint64(32)) * bucket)
                of_size[k] = first + min(rest, np.uint32(rest - bucket))
            for k in range(n):
                of_size_kept[k] = m.known[of_size[k] >> 3] >> (of_size[k] & 7) & inside[k]
        for k in range(n):  # a run ends with the 0 behind its word, and neither `<` nor `>` alone is an n-gram
            if size > 1:
                inside[k] &= last[k] > 0
            elif m.min_chars == 1:
                kept[1, k] &= last[k] > 0


@kernel(inner=True)
def _find_rows(row_of, n, grams, kept, missing, count, before, features):
    """Write the rows of missing words to `features`, in fastText's order; `before` gets how many are before each place.

    A word comes first, at the 0 before it, then its n-grams by the place where they begin and by size.
    """
    filled, grams[0, :n], kept[0, :n] = 0, 0, 0
    for i in range(count):
        grams[0, missing[PLACE, i]], kept[0, missing[PLACE, i]] = missing[FEATURE, i], missing[FEATURE, i] >= 0
    for k in range(n - 1):
        before[k] = filled
        for line in range(len(grams)):
            features[filled] = grams[line, k]  # always written, and kept or not: a branch would cost more
            filled += kept[line, k]
    before[n - 1] = filled
    if len(row_of) > 0:
        for i in range(filled):
            features[i] = row_of[features[i]]


@kernel(inner=True)
def _merge(cache, missing, count, n, before, features, found, filled, infos, rows):
    """Write the rows of all words to `rows`, in order; returns how many. The cache gets those of the missing words."""
    keys, end = cache.view(np.uint64), missing[BEFORE, 0]
    missing[BEFORE, count], missing[PLACE, count] = filled, n - 1
    for k in range(end):
        rows[k] = found[k]
    for i in range(count):
        begin, slot = np.int64(before[missing[PLACE, i]]), missing[SLOT, i]
        size = np.int64(before[missing[PLACE, i + 1]]) - begin
        for k in range(size):
            rows[end + k] = features[begin + k]
        if slot >= 0 and size <= _ROWS:
            keys[slot, 3] = infos[missing[WORD, i]] | np.uint64(size)
            for k in range(size):
                cache[slot, 8 + k] = features[begin + k]
        elif slot >= 0:
            keys[slot, 0] = 0  # a word has no byte 0: this place is free
        end += size
        begin = missing[BEFORE, i]
        for k in range(missing[BEFORE, i + 1] - begin):
            rows[end + k] = found[begin + k]
        end += missing[BEFORE, i + 1] - begin
    return end


# The hidden vector.


@kernel(inner=True)
def _add_rows(input_RD, rows, n, hidden_D):
    """Add n rows of the input matrix to `hidden_D`, in order; returns n. Most are added by four, with fewer stores."""
    for i in range(0, n - 3, 4):
        a, b, c, d = np.uintp(rows[i]), np.uintp(rows[i + 1]), np.uintp(rows[i + 2]), np.uintp(rows[i + 3])
        for k in range(len(hidden_D)):
            hidden_D[k] = hidden_D[k] + input_RD[a, k] + input_RD[b, k] + input_RD[c, k] + input_RD[d, k]
    for i in range(n & ~3, n):
        row = rows[i]  # looked up outside of the inner loop, which would not become vector instructions else
        for k in range(len(hidden_D)):
            hidden_D[k] += input_RD[row, k]
    return n


@kernel(inner=True)
def _add_word_ngrams(m, hashes, words, rows, hidden_D):
    """Add the rows of the n-grams of two words and more of a line; returns how many. They come in batches."""
    total, filled = np.int64(0), np.int64(0)
    for i in range(words):
        h = np.uint64(np.int64(hashes[i]))
        if filled + m.word_ngrams > len(rows):
            total, filled = total + _add_rows(m.input_RD, rows, filled, hidden_D), np.int64(0)
        for j in range(i + 1, min(words, i + m.word_ngrams)):
            h = np.uint64(h * _WORD_NGRAM_PRIME + np.uint64(np.int64(hashes[j])))
            feature = m.num_words + np.int64(h % np.uint64(m.bucket))
            rows[filled] = m.row_of[feature] if len(m.row_of) > 0 else feature
            filled += m.known[feature >> 3] >> (feature & 7) & 1
    return total + _add_rows(m.input_RD, rows, filled, hidden_D)


# The output layer.


@kernel
def _log(p):
    """fastText's logarithm of a float32, which is never that of zero."""
    return np.float32(np.log(np.float64(p) + 1e-5))


@kernel(inner=True)
def _logit(m, row, hidden_D):
    """A row of the output matrix times the hidden vector, summed in order."""
    total = np.float32(0)
    for d in range(len(hidden_D)):
        total += m.output_LD[row, d] * hidden_D[d]
    return total


@kernel(inner=True)
def _best_leaf(m, allowed, score, hidden_D, stack, scores):
    """(label, log score) of the best allowed leaf of the tree; (-1, `score`) where all have less than `score`.

    The score of a node is the sum over the path from the root, which only falls: depth first, in fastText's order, a
    node with less than the best leaf so far is not visited. The stack never holds more than one node a level and one.
    """
    labels, best, depth = len(m.output_LD), -1, 1
    stack[0], scores[0] = len(m.left) - 1, 0
    while depth > 0:
        depth -= 1
        node, here = np.int64(stack[depth]), scores[depth]
        if here < score or (node < labels and not allowed[node]):
            continue
        if node < labels:
            best, score = node, here
            continue
        f = np.float32(1.0 / np.float64(np.float32(1) + np.exp(-_logit(m, node - labels, hidden_D))))
        stack[depth], scores[depth] = m.right[node], here + _log(f)
        stack[depth + 1], scores[depth + 1] = m.left[node], here + _log(np.float32(1.0 - np.float64(f)))
        depth += 2
    return best, score


@kernel(inner=True)
def _best_flat(m, allowed, score, hidden_D, p):
    """(label, log score) of the most probable allowed label, of equal ones the last; (-1, `score`) as in `_best_leaf`.

    Probabilities are by softmax.
    """
    best, total, largest = -1, np.float32(0), np.float32(-np.inf)
    for label in range(len(m.output_LD)):
        p[label] = _logit(m, label, hidden_D)
        largest = max(largest, p[label])
    for label in range(len(m.output_LD)):
        p[label] = np.exp(np.float64(p[label] - largest))
        total += p[label]
    for label in range(len(m.output_LD)):
        this = _log(p[label] / total)
        if allowed[label] and this >= score:
            best, score = label, this
    return best, score


@kernel
def predict(m, cache, data, offsets, longest, allowed, floor, labels, scores):
    """Write the best allowed label of each row (int32; -1: none has `floor` or more) and its probability (float32).

    A row's hidden vector is the mean of its rows of the input matrix. `cache` is that of this thread, all 0 at first.
    `longest` is the number of bytes of the longest row. Buffers are made for it, but no more of their memory is touched
    than the longest piece takes.
    """
    sizes = max(m.max_chars - m.min_chars + 1, 0)
    room, most = longest + 26 + m.max_chars, (longest + 2) * (sizes + 1) + m.word_ngrams + _ROWS
    text, edges = np.empty(room, np.uint8), np.empty(room, np.uint32)
    missing, infos = np.empty((5, room // 2), np.int64), np.empty(room // 2, np.uint64)
    chars, hashes, inside = np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(room, np.uint8)
    grams, kept = np.empty((1 + sizes, room), np.uint32), np.empty((1 + sizes, room), np.uint8)
    before, line = np.empty(room, np.uint32), np.empty(longest // 2 + 8, np.int32)  # `line`: hashes of a row's words
    features, found, rows = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    hidden_D, values = np.empty(m.input_RD.shape[1], np.float32), np.empty(len(m.left) + 1, np.float32)
    stack = np.empty(len(m.left) + 1, np.int32)
    for row in range(len(labels)):
        at, end, total, words = offsets[row], offsets[row + 1], 0, 0
        hidden_D[:] = 0
        while at < end:
            until = min(at + PIECE_BYTES, end)
            while until < end and _INSIDE[data[until]] > 0:  # to the end of the last word
                until += 1
            in_piece = _split(data[at:until], text, edges)
            filled, count = _look_up(cache, text, edges, in_piece, found, infos, missing)
            if count > 0:
                n = _read_missing(m, cache, text, edges, missing, count, infos, chars)
                _hash_ngrams(m, chars, n, hashes, inside, grams, kept)
                _find_rows(m.row_of, n, grams, kept, missing, count, before, features)
                filled = _merge(cache, missing, count, n, before, features, found, filled, infos, rows)
            total += _add_rows(m.input_RD, rows if count > 0 else found, filled, hidden_D)
            if m.word_ngrams > 1:
                for w in range(in_piece):
                    line[words] = np.int32(infos[w] >> _HASH)
                    words += infos[w] & _IS_WORD > 0
            at = until
        rows[0] = m.end_of_line
        total += _add_rows(m.input_RD, rows, np.int64(m.end_of_line >= 0), hidden_D)
        if m.word_ngrams > 1:
            line[words] = _END_OF_LINE
            total += _add_word_ngrams(m, line, words + 1, rows, hidden_D)
        labels[row], scores[row] = -1, 0
        if total > 0:
            for d in range(len(hidden_D)):
                hidden_D[d] *= np.float32(1.0 / total)
            if m.loss == HIERARCHICAL:
                label, score = _best_leaf(m, allowed, floor, hidden_D, stack, values)
            else:
                label, score = _best_flat(m, allowed, floor, hidden_D, values)
            if label >= 0:
                labels[row], scores[row] = label, np.exp(score)


# Predicting.

LABEL: Final = "__label__"
"""The prefix of labels in fastText's files, which distinguishes them from words."""


class _Cache(threading.local):
    """The cache of words of one model, which each thread has for itself."""

    def __init__(self) -> None:
        """int32[words, 16]: 24 bytes of a word, its fourth number (uint64), its rows."""
        self.words: Numbers = np.zeros((1 << CACHE_BITS, 16), np.int32)


@dataclass(frozen=True, slots=True)
class FastTextModel:
    """A model that classifies lines of text; its methods release the interpreter lock."""

    labels: tuple[str, ...]
    """In the order of the file, without `__label__`."""
    arrays: Arrays
    _cache: _Cache = field(default_factory=_Cache, repr=False, compare=False)

    def predict(self, texts: pa.Array, label: str = "", without: str = "") -> tuple[pa.Array, NDArray[np.float32]]:
        """(string[N]: the best label of each text, float32[N]: its probability, which may exceed 1 by 1e-5).

        A text is read as one line, a null as an empty one. A label has no `__label__`; it is null where there is none.
        With a `label` of the model, that one alone counts; `without` one, all others do.
        """
        allowed, floor = np.full(len(self.labels), not label), -np.inf
        if label:
            allowed[self.labels.index(label)] = True
        elif self.arrays.loss == HIERARCHICAL:  # fastText's search of the tree gives up what is less probable
            floor = np.log(1e-5)
        if without:
            allowed[self.labels.index(without)] = False
        best, scores = np.empty(len(texts), np.int32), np.empty(len(texts), np.float32)
        data, offsets = string_buffers(texts)
        longest = int(np.diff(offsets).max(initial=0))
        predict(self.arrays, self._cache.words, data, offsets, longest, allowed, np.float32(floor), best, scores)
        return pa.array(self.labels, pa.string()).take(pa.array(best, mask=best < 0)), scores

    def check_labels(self, wanted: Iterable[str], known: Collection[str], what: str) -> None:
        """Read a text, so that the kernels are compiled, and look for wanted labels among those that are known.

        Raises:
            ConfigError: one is none of them; `what` is the option's and the model's name.
        """
        self.predict(pa.array(["a"]))
        for label in (label for label in wanted if label not in known):
            near = difflib.get_close_matches(label, sorted(known), n=3, cutoff=0.4)
            hint = f"; did you mean {' or '.join(near)}?" if near else f"; it has {', '.join(sorted(known)[:5])}, ..."
            raise ConfigError(f"{what} has no label {label!r}{hint}")


def rounded(probabilities: NDArray[np.float32]) -> Floats:
    """Probabilities, which may exceed 1 by 1e-5, as scores: at most 1, rounded to 1e-3 like everything that decides."""
    return np.asarray(np.minimum(probabilities.astype(np.float64), 1.0).round(3))


def load(path: Path) -> FastTextModel:
    """The model of a file, read once per process, and again where the file changed.

    Raises:
        ModelError: the file holds no fastText model that classifies, or ends too early.
    """
    return _loaded(path, *file_mark(path))


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, *_mark: int) -> FastTextModel:
    return read(path)


# Reading a file. Kernels check no index, so everything that they rely on is checked here.

_MAGIC, _SUPERVISED, _CENTROIDS = 793712314, 3, 256
_MAX_NGRAM, _MAX_BUCKETS = 64, 1 << 26
"""More than any real model has. Buffers grow with them, and a damaged file may say anything."""

_INNER_COUNT: Final = 10**15
"""The count of a node of the tree before its children are known, as in fastText; no count of a label may reach it."""


def read(path: Path) -> FastTextModel:
    """The model of a file as it is now; `load` keeps it.

    Raises:
        ModelError: the file holds no fastText model that classifies, or ends too early.
    """
    try:
        return _read(_Cursor(path.read_bytes()))
    except (ValueError, OverflowError, MemoryError, OSError, struct.error) as e:
        raise ModelError(f"{path}: expected a fastText model trained to classify (.bin or .ftz), found: {e}") from e


def _expect(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)


class _Cursor:
    """Values of a file, one after another, little-endian."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def numbers(self, types: str) -> tuple[Any, ...]:
        """The next numbers, their types as in `struct`.

        Raises:
            struct.error: the file ends before.
        """
        found = struct.unpack_from("<" + types, self.data, self.at)
        self.at += struct.calcsize("<" + types)
        return found

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        """The next `count` values, copied so that they are aligned.

        Raises:
            ValueError: the file ends before, or the count is negative.
        """
        size = np.dtype(dtype).itemsize * count
        _expect(0 <= size <= len(self.data) - self.at, f"too few bytes for {count} values of {dtype} at {self.at}")
        self.at += size
        return np.frombuffer(self.data[self.at - size : self.at], dtype).copy()

    def entry(self) -> tuple[bytes, int, int]:
        """The next entry of a dictionary: a word, its count, its kind (0 word, 1 label).

        Raises:
            ValueError: no zero byte follows.
            struct.error: the file ends before.
        """
        begin, end = self.at, self.data.index(b"\0", self.at)
        self.at = end + 1
        return self.data[begin:end], *self.numbers("qb")


def _read(file: _Cursor) -> FastTextModel:
    magic, version = file.numbers("ii")
    _expect(magic == _MAGIC, "a file that begins with other bytes")
    _expect(version == 12, f"format version {version}; version 12 is known")
    dim, _, _, _, _, word_ngrams, loss, kind, bucket, minn, maxn, _, _ = file.numbers("12id")
    _expect(kind == _SUPERVISED, "a model of word vectors, which was not trained to classify")
    _expect(
        loss in (HIERARCHICAL, SOFTMAX), f"the loss {loss} (1 is hs, 2 ns, 3 softmax, 4 ova); train with hs or softmax"
    )
    fits = 0 <= minn <= _MAX_NGRAM and max(maxn, word_ngrams) <= _MAX_NGRAM
    _expect(fits, f"n-grams of {minn}..{maxn} characters and {word_ngrams} words")
    words, counts, num_words, kept = _entries(file)
    quantized = file.numbers("?")[0]
    input_RD = _matrix(file, quantized)
    _expect(not (file.numbers("?")[0] and quantized), "a quantized output matrix; quantize without qout")
    output_LD = _matrix(file, False)
    fits = len(output_LD) == len(words) - num_words and dim == input_RD.shape[1] == output_LD.shape[1] > 0
    _expect(fits, f"matrices of {input_RD.shape} and {output_LD.shape} for {len(words) - num_words} labels")
    none_kept = kept is not None and not len(kept)  # pruning may have kept no n-gram at all
    maxn, word_ngrams = 0 if none_kept else max(maxn, 0), 1 if none_kept else max(word_ngrams, 1)
    hashed = maxn > 0 or word_ngrams > 1
    bucket = bucket if hashed else 0
    _expect(bucket != 0 or not hashed, "n-grams, but no bucket for them")
    end_of_line = words.index(b"</s>") if b"</s>" in words[:num_words] else -2
    features = _features(bucket, num_words, len(input_RD), kept)
    labels = tuple(word.decode(errors="replace").removeprefix(LABEL) for word in words[num_words:])
    arrays = Arrays(  # in the order in which they are declared
        *_dictionary(words), num_words, end_of_line, max(minn, 1), maxn, word_ngrams, bucket, *features,
        input_RD, output_LD, loss, *_tree(counts[num_words:]),
    )  # fmt: skip
    return FastTextModel(labels, arrays)


def _entries(file: _Cursor) -> tuple[tuple[bytes, ...], tuple[int, ...], int, Numbers | None]:
    """The dictionary: (words and then labels, their counts, how many words, the n-grams that a pruned model has).

    The n-grams are int32[kept, 2]: hash, and row after those of the words; None: the model is not pruned.
    """
    size, num_words, num_labels, _, pruned = file.numbers("iiiqq")
    fits = num_words >= 0 and num_labels > 0 and num_words + num_labels == size <= len(file.data)
    _expect(fits, f"a dictionary of {size} entries, {num_words} words and {num_labels} labels")
    words, counts, kinds = zip(*(file.entry() for _ in range(size)), strict=True)
    _expect(kinds == (0,) * num_words + (1,) * num_labels, "a dictionary with words after labels")
    _expect(min(counts) >= 0 and max(counts) < _INNER_COUNT, "a dictionary with impossible counts")
    return words, counts, num_words, None if pruned < 0 else file.array("<i4", 2 * pruned).reshape(-1, 2)


def _matrix(file: _Cursor, quantized: bool) -> NDArray[np.float32]:
    """A matrix of float32; a quantized one may have the factors of its rows apart."""
    if not quantized:
        rows, dims = file.numbers("qq")
        return file.array("<f4", rows * dims).reshape(rows, dims)
    has_norms, rows, dims, size = file.numbers("?qqi")
    matrix = _decoded(file, dims, file.array("u1", size).reshape(rows, -1))
    return matrix * _decoded(file, 1, file.array("u1", rows)[:, None]) if has_norms else matrix


def _decoded(file: _Cursor, dims: int, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """float32[R, D]: what the codes (uint8[R, subvectors]) of a product quantizer name (Jegou et al. 2011).

    A code is the number of a centroid of its subvector; the last subvector may be narrower than the others.
    """
    found = file.numbers("4i")
    _, subvectors, width, last = found
    fits = found[:2] == (dims, codes.shape[1]) and width * (subvectors - 1) + last == dims and 0 < last <= width
    _expect(fits, f"a quantizer of (dims, subvectors, width, last) {found} for {dims} dims")
    centroids = [file.array("<f4", _CENTROIDS * n).reshape(_CENTROIDS, n) for n in [width] * (subvectors - 1) + [last]]
    return np.hstack([of_part[codes[:, i]] for i, of_part in enumerate(centroids)])


def _features(bucket: int, num_words: int, rows: int, kept: Numbers | None) -> tuple[Numbers, NDArray[np.uint8]]:
    """The rows of features, and a bit for each that has one: see `Arrays`; `kept` as from `_entries`."""
    fault = f"an input matrix of {rows} rows for {num_words} words and {bucket} hashed n-grams"
    _expect(0 <= bucket <= _MAX_BUCKETS and num_words + (bucket if kept is None else 0) <= rows, fault)
    if kept is None:
        return np.empty(0, np.int32), np.full((num_words + bucket) // 8 + 1, 255, np.uint8)
    row_of = np.full(num_words + bucket, -1, np.int32)
    row_of[:num_words] = np.arange(num_words)
    if bucket:
        _expect(kept.min() >= 0 and kept[:, 0].max() < bucket and kept[:, 1].max() < rows - num_words, fault)
        row_of[num_words + kept[:, 0]] = num_words + kept[:, 1]
    return row_of, np.packbits(row_of >= 0, bitorder="little")


def _dictionary(words: tuple[bytes, ...]) -> tuple[NDArray[np.uint8], Integers, Numbers]:
    """The bytes of words, where each word begins, and the hash table: see `Arrays`."""
    text, offsets = np.frombuffer(b"".join([*words, b"\0" * 24]), np.uint8), np.cumsum([0, *map(len, words)])
    slots = np.full(1 << (4 * len(words)).bit_length(), -1, np.int32)
    _expect(bool(_INSIDE[text[:-24]].all()), "a dictionary with white space inside of words")
    enter_words(text, offsets, slots)
    return text, offsets, slots


def _tree(counts: tuple[int, ...]) -> tuple[Numbers, Numbers]:
    """Left, right (int32[2 L - 1] each) of fastText's Huffman tree; the labels are sorted by falling count.

    Each inner node joins the two lightest nodes that have no parent yet. Inner nodes are made in rising weight, so that
    the lightest are always the next leaf and the next inner node. A node that is not made yet weighs `_INNER_COUNT`,
    more than every leaf, so that it is never taken: two nodes without a parent are always left.
    """
    labels, nodes = len(counts), 2 * len(counts) - 1
    left, right = np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32)
    weights, leaf, inner = [*counts] + [_INNER_COUNT] * (labels - 1), labels - 1, labels
    for node in range(labels, nodes):
        for side in (left, right):
            if leaf >= 0 and weights[leaf] < weights[inner]:
                side[node], leaf = leaf, leaf - 1
            else:
                side[node], inner = inner, inner + 1
        weights[node] = weights[left[node]] + weights[right[node]]
    return left, right
