"""Rows that share a key, linked; links joined to components; components in groups that are decided together."""

from collections.abc import Iterable

import numpy as np

from datakit.dedup.comparison import Flags, Hashes, Numbers
from datakit.kernels import kernel

GROUP_ROWS = 1 << 15
"""Rows of a group, besides its last component: one component is never cut."""
_LINKS = 1 << 21  # links that are joined at one time


def linked(hashes: Hashes, rows: Numbers, whole: Flags, old: int) -> Numbers:
    """int64 (links, 2): each row that has a hash again, and the first row that has it."""
    order = np.argsort(hashes)
    again = hashes[order[1:]] == hashes[order[:-1]]
    order = order[np.append(again, False) | np.append(False, again)] if len(order) else order  # most have no other
    order = order[np.lexsort((rows[order], hashes[order]))]
    _, first, key, sizes = np.unique(hashes[order], return_index=True, return_inverse=True, return_counts=True)
    rows = rows[order]
    joins = np.bincount(key, whole[order], len(first)) > 0
    joins &= rows[first + sizes - 1] >= old
    known = joins[key] & (first[key] != np.arange(len(rows)))
    return np.column_stack((rows[known], rows[first][key[known]]))


@kernel
def _join(links, first):  # type: ignore[no-untyped-def]
    """Union-find: join the two rows of each link, int64 (links, 2). `first` int64 (rows,) holds each row's own number,
    and becomes the smallest row of its component. A parent is never larger than its child, so one ascending pass
    flattens.
    """
    for k in range(len(links)):
        a, b = links[k]
        while first[a] != a:
            first[a] = first[first[a]]
            a = first[a]
        while first[b] != b:
            first[b] = first[first[b]]
            b = first[b]
        first[max(a, b)] = min(a, b)
    for row in range(len(first)):
        first[row] = first[first[row]]


def joined(links: Numbers) -> Numbers:
    """int64 (rows, 2): each row that a link names, ascending, and the first row of its component."""
    rows, place = np.unique(links, return_inverse=True)
    first = np.arange(len(rows))
    _join(place.reshape(-1, 2), first)
    return np.column_stack((rows, rows[first]))


def groups_of(forests: Iterable[Numbers]) -> tuple[Numbers, Numbers]:
    """(rows that are linked, ascending; the number of each one's group), from results of `joined`."""
    waiting, size = [np.empty((0, 2), np.int64)], 0
    for forest in forests:
        waiting.append(forest)
        size += len(forest)
        if size >= _LINKS:
            waiting, size = [joined(np.concatenate(waiting))], 0
    rows, first = joined(np.concatenate(waiting)).T
    _, place, sizes = np.unique(first, return_inverse=True, return_counts=True)
    before = np.cumsum(sizes) - sizes  # rows in components whose first row is before this one's
    return rows, np.unique(before // GROUP_ROWS, return_inverse=True)[1][place]
