"""Union-find over buckets. Arrays only."""

from numba import njit


@njit(cache=True, nogil=True)
def _root(parent, row):  # type: ignore[no-untyped-def]
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@njit(cache=True, nogil=True)
def first_of_component(of_row, seen, parent):  # type: ignore[no-untyped-def]
    """Write the least row number of each row's component to `parent`, which holds each row's own number.

    `of_row` int32 (bands, rows) is -1 for no bucket, `seen` int64 (buckets,) is -1.
    """
    bands, rows = of_row.shape
    for row in range(rows):
        for band in range(bands):
            bucket = of_row[band, row]
            if bucket < 0:
                continue
            if seen[bucket] < 0:
                seen[bucket] = row
            a, b = _root(parent, row), _root(parent, seen[bucket])
            parent[max(a, b)] = min(a, b)
    for row in range(rows):
        parent[row] = _root(parent, row)
