"""Words for dedup as 64-bit hashes, straight from UTF-8 bytes. Arrays only.

A word's hash is a function of the UTF-8 bytes of the case-folded word, taken eight at a time, so that the fast path
for ASCII and the path for everything else agree.
"""

import numpy as np
from numba import njit

_WORD = 1  # characters.WORD
_SPACELESS = 2  # characters.SPACELESS
_FOLD_SHIFT = 16  # characters.FOLD_SHIFT

_SEED = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)  # odd: a bijection on 64 bits
_HALF = np.uint64(32)
_BYTE = np.uint64(8)
_EMPTY = np.uint64(0)


@njit(cache=True, nogil=True, inline="always")
def _mix(state):  # type: ignore[no-untyped-def]
    state *= _MULTIPLIER
    return state ^ state >> _HALF


@njit(cache=True, nogil=True)
def _push(code, state, chunk, size):  # type: ignore[no-untyped-def]
    """Add the UTF-8 bytes of a code point to a word: (state of full chunks, the chunk being filled, bytes so far)."""
    if code < 0x80:
        count, lead = 1, code
    elif code < 0x800:
        count, lead = 2, 0xC0 | code >> 6
    elif code < 0x10000:
        count, lead = 3, 0xE0 | code >> 12
    else:
        count, lead = 4, 0xF0 | code >> 18
    for k in range(count):
        byte = lead if k == 0 else 0x80 | code >> 6 * (count - 1 - k) & 0x3F
        chunk = chunk << _BYTE | np.uint64(byte)
        size += 1
        if size & 7 == 0:
            state, chunk = _mix(state ^ chunk), _EMPTY
    return state, chunk, size


@njit(cache=True, nogil=True)
def _decode(data, i, end):  # type: ignore[no-untyped-def]
    """(code point, bytes) of the character at byte i, which is not ASCII; U+FFFD and 1 where the row ends inside it."""
    lead = np.int64(data[i])
    if lead < 0xE0 and i + 1 < end:
        return (lead & 0x1F) << 6 | np.int64(data[i + 1] & 0x3F), 2
    if lead < 0xF0 and i + 2 < end:
        return (lead & 0x0F) << 12 | np.int64(data[i + 1] & 0x3F) << 6 | np.int64(data[i + 2] & 0x3F), 3
    if lead < 0xF5 and i + 3 < end:
        code = (lead & 0x07) << 18 | np.int64(data[i + 1] & 0x3F) << 12
        code |= np.int64(data[i + 2] & 0x3F) << 6 | np.int64(data[i + 3] & 0x3F)
        return min(code, np.int64(0x10FFFF)), 4
    return np.int64(0xFFFD), 1


@njit(cache=True, nogil=True)
def hash_words(data, begin, end, ascii_fold, pages, entries, folds, out):  # type: ignore[no-untyped-def]
    """Write the hashes of one row's words to `out` (uint64, at least (end - begin) // 2 + 1) and return how many.

    `ascii_fold` (uint8, 128) is the folded byte of a word character, 0 for any other.
    """
    words = 0
    state, chunk, size = _SEED, _EMPTY, 0
    i = begin
    while i < end:
        byte = data[i]
        if byte < 0x80:
            i += 1
            folded = ascii_fold[byte]
            if folded:
                chunk = chunk << _BYTE | np.uint64(folded)
                size += 1
                if size & 7 == 0:
                    state, chunk = _mix(state ^ chunk), _EMPTY
                continue
        else:
            code, width = _decode(data, i, end)
            i += width
            entry = entries[np.int64(pages[code >> 8]) << 8 | code & 255]
            if entry & (_WORD | _SPACELESS) == _WORD:
                row = entry >> _FOLD_SHIFT
                if row == 0:
                    state, chunk, size = _push(code, state, chunk, size)
                else:
                    for k in range(3):
                        if folds[row, k] >= 0:
                            state, chunk, size = _push(np.int64(folds[row, k]), state, chunk, size)
                continue
            if entry & _SPACELESS:
                if size:
                    out[words] = _mix(state ^ chunk)
                    words += 1
                state, chunk, size = _push(code, _SEED, _EMPTY, 0)
        if size:
            out[words] = _mix(state ^ chunk)
            words += 1
            state, chunk, size = _SEED, _EMPTY, 0
    if size:
        out[words] = _mix(state ^ chunk)
        words += 1
    return words


@njit(cache=True, nogil=True)
def hash_all_words(data, offsets, ascii_fold, pages, entries, folds, out, out_offsets):  # type: ignore[no-untyped-def]
    """`hash_words` for every row, one after another in `out`; writes where each row begins to `out_offsets`."""
    at = 0
    for row in range(len(offsets) - 1):
        out_offsets[row] = at
        at += hash_words(data, offsets[row], offsets[row + 1], ascii_fold, pages, entries, folds, out[at:])
    out_offsets[len(offsets) - 1] = at
