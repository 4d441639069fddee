"""Prediction with fastText models: words and n-grams of a row, the mean of their vectors, the output layer.

Bojanowski et al. 2017, Enriching Word Vectors with Subword Information; Joulin et al. 2016, Bag of Tricks for Efficient
Text Classification, and FastText.zip. Sums are float32 in fastText's order, so that scores are equal to the last bit.

A row is one line. White space of ASCII separates words, new lines too, and so does the word `</s>`, at which fastText
would stop. A row is read in pieces of `PIECE_BYTES` and the rest of the last word, so that buffers stay in the
processor's cache. A piece becomes an array of characters: each is the bytes of its UTF-8 in a uint32, the first byte
lowest, and a separator is 0. There is a 0 before the first word and one after the last:

    0 t h e 0 c a t 0

The n-grams of a word are those of `<word>`. The 0 before a word stands for its `<`, the 0 after it for its `>`. So an
n-gram is a run of characters, and its hash (32-bit FNV-1a of its bytes) needs no knowledge of words: the hashes at all
places are made together, size after size, in loops without branches that LLVM turns into vector instructions. Runs that
go on after the end of a word get a hash, too, which nobody reads.

A feature is a number: that of a word in the dictionary, or `num_words` plus a hashed n-gram. It is the row of the input
matrix, but not in a pruned model, where most n-grams have no row. There `row_of` has the rows, and `known` one bit for
each feature: the bits of all fit into the processor's cache, where the rows do not.

What bounds the indices: `predict` makes buffers for the longest row, a piece is never longer than its row, and a piece
of b bytes has at most b characters, (b + 1) / 2 words, and one n-gram of each size at each place. A feature is below
`num_words + bucket`, for which `fasttext_model` checked the matrices. Invalid UTF-8 changes none of this: a byte that
continues no character is a character of its own.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from datakit.kernels import kernel

HIERARCHICAL, SOFTMAX = 1, 3
"""Losses by their numbers in files; the others (2: negative sampling, 4: one against all) predict by a sigmoid."""

PIECE_BYTES = 1 << 12
"""Rows of 3 MB in pieces of 4 KB run at 57 MB/s, in one piece at 34."""

_BASIS, _PRIME, _WORD_NGRAM_PRIME = np.uint32(2166136261), np.uint32(16777619), np.uint64(116049371)
_LESS, _GREATER = np.uint32(0x3C), np.uint32(0x3E)
_LABEL = np.array(list(b"__label__"), np.uint32)
_END_OF_LINE = np.int32(-677604519)  # the hash of `</s>`
_CHARACTER = np.array([0 if byte in b"\0\t\n\v\f\r " else byte for byte in range(256)], np.uint32)


class Arrays(NamedTuple):
    """A model as the kernels read it: V words and labels, F features, R rows of the input matrix, D dimensions, L
    labels."""

    chars: np.ndarray  # uint32: the characters of all words, then of all labels, with a 0 before and after each
    begins: np.ndarray  # int64[V]: where each begins in `chars`
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
    output_norms: np.ndarray  # float32[L]
    loss: int
    left: (
        np.ndarray
    )  # int32[2 L - 1]: children of the nodes of the tree; nodes below L are the labels, the last the root
    right: np.ndarray


# Words.


@kernel
def _step(h, byte):
    """One step of FNV-1a as in fastText: bytes are signed, so that those above 127 flip the upper bits, too.

    numba's product of two uint32 has 64 bits: every step is cut.
    """
    return np.uint32((h ^ np.uint32(np.int8(byte))) * _PRIME)


@kernel
def _word(chars, at):
    """(hash, place of the 0 behind it) of the word that begins at `at`; `chars` has a 0 behind every word."""
    h = _BASIS
    while chars[at] != 0:
        c = chars[at]
        while c != 0:
            h = _step(h, c)
            c >>= np.uint32(8)
        at += 1
    return h, at


@kernel
def enter_words(chars, begins, slots):
    """Enter the words of a dictionary into `slots`, which has more than twice as many places, all -1."""
    for word in range(len(begins)):
        slot = np.int64(_word(chars, begins[word])[0]) & len(slots) - 1
        while slots[slot] >= 0:
            slot = slot + 1 & len(slots) - 1
        slots[slot] = word


@kernel
def _find(m, h, chars, start):
    """The number of the word that begins at `start` and has the hash h; -1: it is unknown.

    The search ends, since half of the slots are free. Both words end with a 0, so neither is left.
    """
    slot = np.int64(h) & len(m.slots) - 1
    while m.slots[slot] >= 0:
        word, k = np.int64(m.slots[slot]), 0
        while m.chars[m.begins[word] + k] == chars[start + k]:
            if chars[start + k] == 0:
                return word
            k += 1
        slot = slot + 1 & len(m.slots) - 1
    return np.int64(-1)


@kernel
def _is_label(chars, at):
    """Whether the word that begins at `at` begins with `__label__`; a shorter one differs at its end, which is 0."""
    k = 0
    while k < len(_LABEL) and chars[at + k] == _LABEL[k]:
        k += 1
    return k == len(_LABEL)


# Features of a piece of text.


@kernel
def read_characters(data, begin, end, chars):
    """Write the characters of a piece of text to `chars` (end - begin + 2 places); returns how many, with the 0 at both
    ends."""
    chars[0], n, shift = 0, 1, np.uint32(32)
    for i in range(begin, end):
        byte = np.uint32(data[i])
        if byte & 0xC0 == 0x80 and shift < 32:  # a byte of the character before, of which four fit into 32 bits
            chars[n - 1] |= byte << shift
            shift = np.uint32(shift + 8)
        else:
            chars[n] = _CHARACTER[byte]
            shift = np.uint32(8 if byte >= 0xC0 else 32)
            n += 1
    chars[n] = 0
    return n + 1


@kernel
def _hash_ngrams(m, chars, n, hashes, begins, ngrams):
    """Fill `ngrams` (uint32[sizes, places]): the feature of the n-gram of each size that begins at each of n places.

    `begins` gets the places where at least one of them is known, in order, and then n: in a pruned model they are few.

    The last runs read up to `max_chars - 1` places behind the n characters: the buffer has them, and what they hold
    does not matter. h % bucket comes from h * (1 / bucket) in float64, without a division. That is exact: h + 0.5 is at
    least 0.5 / bucket away from a multiple of the bucket, and rounding moves the quotient by less than 2**-20 / bucket.
    """
    inverse, bucket, first = 1.0 / max(m.bucket, 1), np.uint32(m.bucket), np.uint32(m.num_words)
    widest = np.uint32(0)  # of ASCII alone, three of the four rounds are left out
    for k in range(n):
        widest |= chars[k]
        hashes[k], begins[k] = _BASIS, 0
    for size in range(1, m.max_chars + 1):
        last, bracket = chars[size - 1 :], _LESS if size == 1 else _GREATER
        for shift in range(0, 32, 8):
            if shift == 0 or widest >> np.uint32(shift) > 0:
                for k in range(n):
                    # these choices are between uint32: between narrower numbers, they would keep LLVM from using AVX2
                    c = np.uint32((last[k] if last[k] > 0 else bracket) >> np.uint32(shift))
                    hashes[k] = _step(hashes[k], c) if c > 0 else hashes[k]
        if size >= m.min_chars:
            of_size = ngrams[size - m.min_chars]
            for k in range(n):
                of_size[k] = first + hashes[k] - np.uint32((hashes[k] + 0.5) * inverse) * bucket
            for k in range(n):
                begins[k] |= m.known[of_size[k] >> 3] >> (of_size[k] & 7) & 1
    found = 0
    for k in range(n):  # flags become places, in the same array: `found` is never above k
        flag, begins[found] = begins[k], k
        found += flag
    begins[found] = n


@kernel
def _find_features(m, chars, n, begins, ngrams, features, hashes, words):
    """Write the features of a piece to `features`, in fastText's order; returns (how many, words of the line so far).

    A word comes first, then its n-grams by the place where they begin and by size; neither `<` nor `>` alone is one.
    Hashes of words go to `hashes`, behind those of the `words` in earlier pieces of the line.
    """
    filled, stop, sizes, i = 0, 0, len(ngrams), 0
    while stop < n - 1:
        start = stop  # the 0 before the word; `stop` becomes the 0 behind it
        h, stop = _word(chars, start + 1)
        word = _find(m, h, chars, start + 1) if stop > start + 1 else m.end_of_line
        # nothing between two separators, the end of a line, or a label, which the model may know or not
        no_word = word == m.end_of_line or word >= m.num_words or (word < 0 and _is_label(chars, start + 1))
        if m.word_ngrams > 1 and not no_word:
            hashes[words] = np.int32(h)
            words += 1
        features[filled] = word
        filled += word >= 0 and not no_word
        while begins[i] < stop:  # the n behind the last place ends it
            k, i = np.int64(begins[i]), i + 1
            # a run from k on may end at `stop`, which stands for `>`
            most = 0 if no_word else min(sizes, stop + 2 - k - m.min_chars)
            for size in range(k == start and m.min_chars == 1, most):
                feature = ngrams[size, k]
                features[filled] = feature  # always written, and kept if it is known: a branch would cost more
                filled += m.known[feature >> 3] >> (feature & 7) & 1
    return filled, words


# The hidden vector.


@kernel
def _add_rows(m, features, n, hidden_D):
    """Add the rows of n features to `hidden_D`, in order; returns n. The features become rows."""
    if len(m.row_of) > 0:
        for i in range(n):
            features[i] = m.row_of[features[i]]
    for i in range(n):
        row = features[i]  # looked up outside of the inner loop, which would not become vector instructions else
        for d in range(len(hidden_D)):
            hidden_D[d] += m.input_RD[row, d]
    return n


@kernel
def _add_word_ngrams(m, hashes, words, features, hidden_D):
    """Add the rows of the n-grams of two words and more of a line; returns how many. Their features come in batches."""
    total, filled = np.int64(0), np.int64(0)
    for i in range(words):
        h = np.uint64(np.int64(hashes[i]))
        if filled + m.word_ngrams > len(features):
            total, filled = total + _add_rows(m, features, filled, hidden_D), np.int64(0)
        for j in range(i + 1, min(words, i + m.word_ngrams)):
            h = np.uint64(h * _WORD_NGRAM_PRIME + np.uint64(np.int64(hashes[j])))
            feature = m.num_words + np.int64(h % np.uint64(m.bucket))
            features[filled] = feature
            filled += m.known[feature >> 3] >> (feature & 7) & 1
    return total + _add_rows(m, features, filled, hidden_D)


@kernel
def _fill_hidden(m, data, at, end, places, features, hashes, hidden_D):
    """Fill `hidden_D` with the mean of the vectors of the row data[at:end]; returns how many there were."""
    for d in range(len(hidden_D)):
        hidden_D[d] = 0
    total, words = 0, np.int64(0)  # numba compiles functions once more for the literal 0
    while at < end:
        until = min(at + PIECE_BYTES, end)
        while until < end and _CHARACTER[data[until]] > 0:  # to the end of the last word
            until += 1
        n = read_characters(data, at, until, places[0])
        _hash_ngrams(m, places[0], n, places[1], places[2], places[3:])
        filled, words = _find_features(m, places[0], n, places[2], places[3:], features, hashes, words)
        total += _add_rows(m, features, filled, hidden_D)
        at = until
    features[0] = m.end_of_line
    total += _add_rows(m, features, np.int64(m.end_of_line >= 0), hidden_D)
    if m.word_ngrams > 1:
        hashes[words] = _END_OF_LINE
        total += _add_word_ngrams(m, hashes, words + 1, features, hidden_D)
    scale = np.float32(1.0 / max(total, 1))
    for d in range(len(hidden_D)):
        hidden_D[d] *= scale
    return total


# The output layer.


@kernel
def _log(p):
    """fastText's logarithm of a float32, which is never that of zero."""
    return np.float32(np.log(np.float64(p) + 1e-5))


@kernel
def _logit(m, row, hidden_D):
    """A row of the output matrix times the hidden vector, summed in order."""
    total = np.float32(0)
    for d in range(len(hidden_D)):
        total += m.output_LD[row, d] * hidden_D[d]
    return total * m.output_norms[row]


@kernel
def _best_leaf(m, allowed, score, hidden_D, stack, scores):
    """(label, log score) of the best allowed leaf of the tree; (-1, `score`) where all have less than `score`.

    The score of a node is the sum over the path from the root, which only falls: depth first, in fastText's order, a
    node with less than the best leaf so far is not visited. The stack never holds more than one node a level and one.
    """
    labels, best, depth = len(m.output_norms), -1, 1
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


@kernel
def _sigmoid(x):
    """fastText's sigmoid of a float32: a table of 512 steps from -8 to 8, 0 and 1 beyond it."""
    if abs(x) > 8:
        return np.float32(x > 0)
    x = np.float32(np.floor((x + np.float32(8)) * np.float32(32))) / np.float32(32) - np.float32(8)
    return np.float32(1.0 / (1.0 + np.float64(np.exp(-x))))


@kernel
def _best_flat(m, allowed, score, hidden_D, p):
    """(label, log score) of the most probable allowed label, of equal ones the last; (-1, `score`) as in `_best_leaf`.

    Probabilities are by softmax or, with the losses that judge each label by itself, a sigmoid of each logit.
    """
    best, total, largest = -1, np.float32(0), np.float32(-np.inf)
    for label in range(len(m.output_norms)):
        p[label] = _logit(m, label, hidden_D)
        largest = max(largest, p[label])
    for label in range(len(m.output_norms)):
        p[label] = np.exp(np.float64(p[label] - largest)) if m.loss == SOFTMAX else _sigmoid(p[label])
        total += p[label]
    for label in range(len(m.output_norms)):
        this = _log(p[label] / total if m.loss == SOFTMAX else p[label])
        if allowed[label] and this >= score:
            best, score = label, this
    return best, score


@kernel
def predict(m, data, offsets, longest, allowed, floor, labels, scores):
    """Write the best allowed label of each row (int32; -1: none has `floor` or more) and its probability (float32).

    `longest` is the number of bytes of the longest row. Buffers are made for it, but no more of their memory is touched
    than the longest piece takes.
    """
    sizes = max(m.max_chars - m.min_chars + 1, 0)
    # characters, hashes, places where known n-grams begin, n-grams by size
    places = np.empty((3 + sizes, longest + 2 + m.max_chars), np.uint32)
    features = np.empty((longest + 2) * (sizes + 1) + m.word_ngrams, np.int32)
    hashes = np.empty(longest // 2 + 8, np.int32)  # of words
    hidden_D, values = np.empty(m.input_RD.shape[1], np.float32), np.empty(len(m.left) + 1, np.float32)
    stack = np.empty(len(m.left) + 1, np.int32)
    for row in range(len(labels)):
        labels[row], scores[row] = -1, 0
        if _fill_hidden(m, data, offsets[row], offsets[row + 1], places, features, hashes, hidden_D) > 0:
            if m.loss == HIERARCHICAL:
                label, score = _best_leaf(m, allowed, floor, hidden_D, stack, values)
            else:
                label, score = _best_flat(m, allowed, floor, hidden_D, values)
            if label >= 0:
                labels[row], scores[row] = label, np.exp(score)
