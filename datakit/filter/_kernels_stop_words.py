"""How many different stop words a row has. Arrays only."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import njit

_LANGUAGES = 64  # bits of a mask


@njit(nogil=True, cache=True)
def count(words, starts, languages, slots, numbers, masks):
    """The different stop words of each row.

    words uint64[W] (hashes) and starts int64[N+1] of the rows in it, languages int64[N] (the bit of the row's language;
    negative: the language that it has most of), slots and numbers the table of the stop words' hashes, masks uint64[V]
    the languages of each -> int64[N].
    """
    rows = starts.size - 1
    out = np.zeros(rows, np.int64)
    seen = np.full(masks.size, -1, np.int64)  # the last row with that word
    of = np.empty(_LANGUAGES, np.int64)
    last = np.uint64(slots.size - 1)
    for row in range(rows):
        of[:] = 0
        for i in range(starts[row], starts[row + 1]):
            slot = words[i] >> np.uint64(20) & last
            while slots[slot] != 0 and slots[slot] != words[i]:
                slot = (slot + np.uint64(1)) & last
            number = numbers[slot]
            if slots[slot] != 0 and seen[number] != row:
                seen[number] = row
                for bit in range(_LANGUAGES):
                    of[bit] += np.int64(masks[number] >> np.uint64(bit) & np.uint64(1))
        out[row] = of[languages[row]] if languages[row] >= 0 else of.max()
    return out
