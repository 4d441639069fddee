"""Vectors of texts in integers: their means, cells of k-means, and the comparison of rows within cells.

A vector has length 32767, in 16-bit integers (rounding adds less than half the root of its width). So the product of
two is below 2 ** 31 and exact in 32 bits, whatever the order of its terms: threads and hosts agree. The named tuples
are those of `semantic.py`.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

_ONE = 32767  # the length of vectors


@kernel
def sum_tokens(ids, starts, table, row_of, weight, unread, unread_share, out, read):
    """The sum of the table's rows for the tokens `ids[starts[i]:starts[i + 1]]` of each text, to `out` float64 (zeros).

    `table`, `row_of`, `weight` and `unread` are those of `embedding.StaticModel`; every token is below its vocabulary.
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
def round_vectors(vectors, out):
    """Vectors (float64) at length 32767 in integers, to `out` int16 (zeros), which may be wider.

    Zero stays zero, and so does a vector whose squares are too large or too small for float64.
    """
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
    """Add each vector int16 to the sum `out[of[i]]` float64; sums of integers below 2 ** 53 are exact (2 ** 38
    vectors)."""
    for i in range(len(vectors)):
        for d in range(vectors.shape[1]):
            out[of[i], d] += vectors[i, d]


@kernel(inner=True)
def _dot(a, b):
    """The product of two vectors of length 32767: exact in 32 bits."""
    total = np.int32(0)
    for d in range(len(a)):  # numba widens sums to 64 bits: cut back, LLVM has an instruction for pairs of products
        total = np.int32(total + np.int32(a[d]) * np.int32(b[d]))
    return np.int64(total)


@kernel
def nearest_cells(means, centroids, begin, end, out):
    """The nearest centroids of the rows from `begin` to `end`, the nearest first, to `out` int32 (rows, probes).

    Of equally near ones the first. Rows and centroids int16 (n, width).
    """
    probes = out.shape[1]
    best = np.empty(probes, np.int64)
    for row in range(begin, end):
        best[:] = -(1 << 62)
        out[row, :] = 0
        for c in range(len(centroids)):
            near, place = _dot(means[row], centroids[c]), probes
            while place > 0 and best[place - 1] < near:
                place -= 1
            if place < probes:
                for k in range(probes - 1, place, -1):
                    best[k], out[row, k] = best[k - 1], out[row, k - 1]
                best[place], out[row, place] = near, c


@kernel
def similarity(row, other, rows):
    """The least cosine of the parts of two rows, rounded to thousandths, halves up; -1 where they are no duplicates.

    `rows` is `semantic.SemanticRows`.
    """
    begin, count = rows.starts[row], rows.starts[row + 1] - rows.starts[row]
    other_begin = rows.starts[other]
    if rows.context[row] != rows.context[other] or rows.starts[other + 1] - other_begin != count:
        return -1
    least = 1000
    for part in range(count):
        product = _dot(rows.vectors[begin + part], rows.vectors[other_begin + part])
        least = min(least, (2000 * product + _ONE * _ONE) // (2 * _ONE * _ONE))
        if least < rows.threshold:
            return -1
    return least


@kernel(inner=True)
def _first_similar(row, rows, cells, begins, ends, kept):
    """Of the kept rows of a row's cells: (the first that is similar enough or -1, the similarity, rows compared)."""
    best, nearest, compared = -1, 0, 0
    for cell in cells[row]:
        for k in range(begins[cell], ends[cell]):
            other = np.int64(kept[k])
            if best >= 0 and other >= best:
                break  # kept rows of a cell are in order
            compared += 1
            near = similarity(row, other, rows)
            if near >= 0:
                best, nearest = other, near
                break
    return best, nearest, compared


@kernel
def decide(rows, cells, begins, ends, kept, begin, end, survivor, shared):
    """Decide about the rows from `begin` to `end`, in order, after all before them; returns how many comparisons that
    took.

    Kept rows of a cell have the places `begins[cell]:ends[cell]` of `kept` int32; a row that is similar to none of its
    cells is put behind those of its nearest, which has a place for each row that is nearest to it. `survivor` int64 (-1
    at first) gets the row that stays, `shared` int64 the similarity in thousandths.
    """
    compared = 0
    for row in range(begin, end):
        survivor[row], shared[row], tried = _first_similar(row, rows, cells, begins, ends, kept)
        compared += tried
        if survivor[row] < 0:
            cell = cells[row, 0]
            kept[ends[cell]] = row
            ends[cell] += 1
    return compared
