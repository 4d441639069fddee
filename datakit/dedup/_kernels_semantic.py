"""Vectors of texts in integers: their means, cells of k-means, and the comparison of rows within cells.

A vector has length 32767, in 16-bit integers. So the product of two is below 2 ** 30 and exact in 32 bits, whatever the
order of its terms: threads and hosts agree. The named tuples are those of `semantic.py`.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.dedup._kernels_cluster import least_shared, set_at
from datakit.dedup._kernels_tokens import next_state, tokenize, word_hash
from datakit.kernels import kernel

_ONE = 32767  # the length of vectors
_WORDS, _NUMBER, _SIGN = 0, 1, 2  # kinds of tokens, as in _kernels_alike
_SENTENCE, _CAPITAL = 2, 8  # flags of tokens
_LIGHT, _SOFT, _STRICT = 4, 8, 32  # bits of the phrase table
_PART_SHIFT = np.uint64(48)  # the highest bits of a fact number the part that it stands in
_INVERSE_ROOT_TWO = 0.7071067811865476


@kernel
def sum_tokens(ids, starts, table, row_of, weight, unread, unread_share, out, read):
    """The sum of the table's rows for the tokens `ids[starts[i]:starts[i + 1]]` of each text, to `out` float64 (zeros).

    `read` bool: at most `unread_share` of the tokens are `unread`.
    """
    for text in range(len(starts) - 1):
        strange = 0
        for k in range(starts[text], starts[text + 1]):
            token = ids[k]
            if unread[token]:
                strange += 1
                continue
            row, factor = row_of[token], weight[token]
            for d in range(table.shape[1]):
                out[text, d] += factor * table[row, d]
        read[text] = strange <= unread_share * (starts[text + 1] - starts[text])


@kernel
def _error_function(x):
    """erf to 1.5e-7, which is what float32 holds (Abramowitz and Stegun, 1964, 7.1.26)."""
    t = 1.0 / (1.0 + 0.3275911 * abs(x))
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.copysign(1.0 - tail * np.exp(-x * x), x)


@kernel
def gelu(values):
    """Gaussian error linear units (Hendrycks and Gimpel, 2016), float32 (rows, width), in place."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            x = np.float64(values[i, j])
            values[i, j] = np.float32(0.5 * x * (1.0 + _error_function(x * _INVERSE_ROOT_TWO)))


@kernel
def round_vectors(vectors, out):
    """Vectors (float64) at length 32767 in integers, to `out` int16; zero stays zero. `out` may be wider."""
    for i in range(len(vectors)):
        total = 0.0
        for d in range(vectors.shape[1]):
            total += vectors[i, d] * vectors[i, d]
        if total > 0.0:
            factor = _ONE / np.sqrt(total)
            for d in range(vectors.shape[1]):
                out[i, d] = np.int16(np.floor(vectors[i, d] * factor + 0.5))


@kernel
def sum_vectors(vectors, of, out):
    """Add each vector int16 to the sum `out[of[i]]` int64; -1 adds it to none."""
    for i in range(len(vectors)):
        if of[i] >= 0:
            for d in range(vectors.shape[1]):
                out[of[i], d] += vectors[i, d]


@kernel
def dot(a, b):
    """The product of two vectors of length 32767: exact in 32 bits."""
    total = np.int32(0)
    for d in range(len(a)):
        total += np.int32(a[d]) * np.int32(b[d])
    return np.int64(total)


@kernel
def thousandths(product):
    """The cosine of two vectors in thousandths, halves up, from their product."""
    return (2000 * product + _ONE * _ONE) // (2 * _ONE * _ONE)


# Cells.


@kernel
def nearest_cells(rows, sides, width, centroids, begin, end, out):
    """The nearest centroids of the rows from `begin` to `end`, the nearest first, to `out` int32 (rows, probes).

    Of equally near ones the first. Rows and centroids int16 (n, sides * width).
    """
    probes = out.shape[1]
    best = np.empty(probes, np.int64)
    for row in range(begin, end):
        best[:] = -(1 << 62)
        out[row, :] = 0
        for c in range(len(centroids)):
            near = np.int64(0)
            for s in range(sides):
                near += dot(rows[row, s * width : (s + 1) * width], centroids[c, s * width : (s + 1) * width])
            place = probes
            while place > 0 and best[place - 1] < near:
                place -= 1
            if place < probes:
                for k in range(probes - 1, place, -1):
                    best[k], out[row, k] = best[k - 1], out[row, k - 1]
                best[place], out[row, place] = near, c


# The comparison.


@kernel
def _facts_alike(a, b, numerator, denominator):
    """Whether the facts of two rows are similar enough, part by part: sorted sets of hashes."""
    i, j = 0, 0
    while i < len(a) or j < len(b):
        if i < len(a) and (j == len(b) or a[i] >> _PART_SHIFT <= b[j] >> _PART_SHIFT):
            part = a[i] >> _PART_SHIFT
        else:
            part = b[j] >> _PART_SHIFT
        first, second, shared = i, j, 0
        while i < len(a) and j < len(b) and a[i] >> _PART_SHIFT == part and b[j] >> _PART_SHIFT == part:
            x, y = a[i], b[j]
            shared += x == y
            i += x <= y
            j += y <= x
        while i < len(a) and a[i] >> _PART_SHIFT == part:
            i += 1
        while j < len(b) and b[j] >> _PART_SHIFT == part:
            j += 1
        if shared < least_shared(i - first, j - second, numerator, denominator):
            return False
    return True


@kernel
def _near(a, b, least):
    """The cosine of two vectors in thousandths; -1 if it is below the threshold `least`."""
    near = thousandths(dot(a, b))
    return near if near >= least else -1


@kernel
def similarity(row, other, rows):
    """The least cosine of the sides and parts of two rows in thousandths; -1 where they are no duplicates."""
    size, width = rows.length[row], rows.width
    if rows.context[row] != rows.context[other] or size != rows.length[other]:
        return -1
    least = 1000
    a = set_at(rows.address[row], size >> 2).view(np.int16)
    b = set_at(rows.address[other], size >> 2).view(np.int16)
    for begin in range(0, size, width):
        near = _near(a[begin : begin + width], b[begin : begin + width], rows.threshold)
        if near < 0:
            return -1
        least = min(least, near)
    if rows.fact_numerator:
        a_facts = set_at(rows.fact_address[row], rows.fact_length[row])
        b_facts = set_at(rows.fact_address[other], rows.fact_length[other])
        if not _facts_alike(a_facts, b_facts, rows.fact_numerator, rows.fact_denominator):
            return -1
    return least


@kernel
def copy_sides(rows, begin, end, out):
    """The vectors of the sides of the rows from `begin` to `end`, to `out` int16 (rows, sides * width)."""
    for row in range(begin, end):
        out[row] = set_at(rows.address[row], rows.length[row] >> 2).view(np.int16)[: out.shape[1]]


@kernel
def _first_similar(row, rows, vectors, cells, kept, low, high):
    """(the first kept row that is similar enough or -1, the similarity, rows compared): those of the row's cells whose
    places lie in `low[cell]:high[cell]`.
    """
    best, nearest, compared, width = -1, 0, 0, rows.width
    for cell in cells[row]:
        for k in range(low[cell], high[cell]):
            other = np.int64(kept.owners[k])
            if best >= 0 and other >= best:
                break  # kept rows of a cell are in order
            compared += 1
            if dot(vectors[row, :width], kept.vectors[k, :width]) >= rows.least_product:
                near = similarity(row, other, rows)
                if near >= 0:
                    best, nearest = other, near
                    break
    return best, nearest, compared


@kernel
def look_back(rows, vectors, cells, kept, numbers, survivor, shared):
    """Compare some rows with all that were kept before their block; returns how many comparisons that took.

    This changes only `survivor` int64 (-1 where none is similar) and `shared` int64 (thousandths) of these rows, so
    threads may share a block.
    """
    compared = 0
    for row in numbers:
        survivor[row], shared[row], tried = _first_similar(row, rows, vectors, cells, kept, kept.begins, kept.fresh)
        compared += tried
    return compared


@kernel
def decide_block(rows, vectors, cells, kept, begin, end, survivor, shared):
    """Decide about the rows from `begin` to `end`, after `look_back`, in order: a row that is similar to none kept
    before the block is compared with what is kept of the block. Returns how many comparisons that took.
    """
    compared = 0
    kept.fresh[:] = kept.ends
    for row in range(begin, end):
        if survivor[row] < 0 and row >= rows.settled:
            survivor[row], shared[row], tried = _first_similar(row, rows, vectors, cells, kept, kept.fresh, kept.ends)
            compared += tried
        if survivor[row] < 0:
            cell = cells[row, 0]
            place = kept.ends[cell]
            kept.owners[place], kept.vectors[place] = row, vectors[row]
            kept.ends[cell] = place + 1
    kept.fresh[:] = kept.ends
    return compared


# What must be equal besides: facts.


@kernel
def find_facts(
    data, offsets, part_of, canon, classes, pages, entries, folds, keys, values, bits, buffer, tokens, out, starts
):  # fmt: skip
    """Hashes of the facts of texts to `out` uint64: numbers, signs, negations and names, those of text i up to
    `starts[i + 1]`. A name is a word with a capital inside of a sentence. `part_of` int64: the text's
    number in its row.
    """
    at = 0
    for text in range(len(offsets) - 1):
        starts[text] = at
        count, _ = tokenize(
            data, offsets[text], offsets[text + 1], canon, classes, pages, entries, folds, buffer, tokens
        )  # fmt: skip
        part = np.uint64(part_of[text]) << _PART_SHIFT
        for t in range(count):
            kind, flags = tokens[t, 2], tokens[t, 3]
            if kind not in (_WORDS, _NUMBER, _SIGN):
                continue
            word = word_hash(buffer, tokens[t, 0], tokens[t, 1])
            if kind == _WORDS:
                state = next_state(0, word, keys, values)
                known = bits[state] if state >= 0 else 0
                name = flags & _CAPITAL and not flags & _SENTENCE and not known & (_SOFT | _LIGHT)
                if not (name or known & _STRICT):
                    continue
            out[at] = part | word >> np.uint64(16)
            at += 1
    starts[len(offsets) - 1] = at
