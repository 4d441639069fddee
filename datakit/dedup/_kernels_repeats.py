"""Which spans of which rows are cut, and which rows go with them. Arrays only."""

from numba import njit


@njit(cache=True, nogil=True)
def choose(row_starts, words, groups, size, min_words_left, owner, found, dropped):  # type: ignore[no-untyped-def]
    """Go through the rows in order; a span is cut where an earlier row that stays still has it, whole.

    `groups` numbers spans that are equal (-1: the span has no equal); span i is the units from i to i + size. `owner`
    (one a group, -1 at first) becomes the row in which the span stays. `found` (one a unit, -1 at first) becomes the
    row that a cut unit stays in. A row that was cut and keeps fewer than `min_words_left` words is `dropped`, and owns
    nothing.
    """
    for row in range(len(row_starts) - 1):
        begin, end = row_starts[row], row_starts[row + 1]
        for i in range(begin, end):
            if i - size >= begin:  # no span that is yet to come can cut into this one
                _own(i - size, row, groups, size, owner, found)
            group = groups[i]
            if group >= 0 and owner[group] >= 0:
                for k in range(i, i + size):
                    if found[k] < 0:
                        found[k] = owner[group]
        for i in range(max(begin, end - size), end):
            _own(i, row, groups, size, owner, found)
        cut, left = False, 0
        for i in range(begin, end):
            cut |= found[i] >= 0
            left += words[i] if found[i] < 0 else 0
        dropped[row] = cut and left < min_words_left
        if dropped[row]:
            for i in range(begin, end):
                if groups[i] >= 0 and owner[groups[i]] == row:
                    owner[groups[i]] = -1


@njit(cache=True, nogil=True, inline="always")
def _own(span, row, groups, size, owner, found):  # type: ignore[no-untyped-def]
    """The row owns a span that no earlier row has, if it stays whole there."""
    group = groups[span]
    if group < 0 or owner[group] >= 0:
        return
    for k in range(span, span + size):
        if found[k] >= 0:
            return
    owner[group] = row
