"""Loops over UTF-8 bytes: normal form and white space. Text is (data uint8, offsets int64), as `buffers` gives it.

Arrays only; characters come as the arrays of `characters.CharacterTable`. Arrow strings are valid UTF-8; the decoder
stays inside its row whatever the bytes are.
"""

import numpy as np
from numba import njit

_SPACE = 4  # characters.SPACE
_NOT_NFC = 8  # characters.NOT_NFC
_CCC_SHIFT = 8  # characters.CCC_SHIFT
_ASCII_BLOCK = 64  # bytes tested at once: LLVM turns the loop into one vector register


@njit(cache=True, nogil=True, inline="always")
def _is_ascii(data, start):  # type: ignore[no-untyped-def]
    seen = np.uint8(0)
    for i in range(_ASCII_BLOCK):
        seen |= data[start + i]
    return seen < 0x80


@njit(cache=True, nogil=True)
def decode(data, i, end):  # type: ignore[no-untyped-def]
    """(code point, bytes) of the UTF-8 character that begins at byte i; U+FFFD and 1 where the row ends inside it."""
    lead = np.int64(data[i])
    if lead < 0x80:
        return lead, 1
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
def may_not_be_nfc(data, offsets, pages, entries):  # type: ignore[no-untyped-def]
    """Rows that NFC may change (bool per row): the quick check of UAX #15, exact for "no", cautious for "yes"."""
    rows = len(offsets) - 1
    suspect = np.zeros(rows, dtype=np.bool_)
    for row in range(rows):
        i, end = offsets[row], offsets[row + 1]
        previous_class = np.uint32(0)
        while i < end:
            if i + _ASCII_BLOCK <= end and _is_ascii(data, i):
                i += _ASCII_BLOCK
                previous_class = np.uint32(0)
                continue
            stop = min(i + _ASCII_BLOCK, end)
            while i < stop:
                if data[i] < 0x80:
                    previous_class = np.uint32(0)
                    i += 1
                    continue
                code, size = decode(data, i, end)
                i += size
                entry = entries[np.int64(pages[code >> 8]) << 8 | code & 255]
                combining = entry >> _CCC_SHIFT & 0xFF
                if entry & _NOT_NFC or 0 < combining < previous_class:
                    suspect[row] = True
                    break
                previous_class = combining
            if suspect[row]:
                break
    return suspect


@njit(cache=True, nogil=True)
def collapse_spaces(data, offsets, space_lead, pages, entries, out, out_offsets):  # type: ignore[no-untyped-def]
    """Copy rows to `out` (as large as the input) with white space as single spaces, none at the ends.

    `space_lead` (bool, 256) marks the bytes that a white space character can begin with. Writes where the rows begin
    to `out_offsets` (rows + 1).
    """
    at = 0
    for row in range(len(offsets) - 1):
        begin = at
        out_offsets[row] = begin
        i, end = offsets[row], offsets[row + 1]
        while i < end:
            byte = data[i]
            if not space_lead[byte]:
                out[at] = byte
                at += 1
                i += 1
                continue
            code, size = decode(data, i, end)
            if entries[np.int64(pages[code >> 8]) << 8 | code & 255] & _SPACE:
                if at > begin and out[at - 1] != 0x20:
                    out[at] = 0x20
                    at += 1
            else:
                for k in range(size):
                    out[at + k] = data[i + k]
                at += size
            i += size
        if at > begin and out[at - 1] == 0x20:
            at -= 1
    out_offsets[len(offsets) - 1] = at
