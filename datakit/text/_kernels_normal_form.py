"""Loops over UTF-8 bytes: normal form, white space, hashes. Text is (data uint8, offsets int64): see `string_buffers`.

Properties of characters are the arrays of `characters.CharacterTable`. Arrow strings are valid UTF-8; the decoder never
reads beyond its row, whatever the bytes are.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

_SPACE = 4  # characters.SPACE
_NOT_NFC = 8  # characters.NOT_NFC
_CCC_SHIFT = 8  # characters.CCC_SHIFT
_BLOCK = 64  # bytes at a time: LLVM turns such loops into vector instructions
_ONE = np.uint64(1)
_SPACED = np.arange(256, dtype=np.uint8)  # ASCII white space as a space
_SPACED[[*range(0x09, 0x0E), *range(0x1C, 0x20)]] = 0x20


@kernel(inline="always")
def _is_ascii(block):
    seen = np.uint8(0)
    for k in range(_BLOCK):
        seen |= block[k]
    return seen < 0x80


@kernel
def hash_values(data, offsets, out):
    """A 64-bit hash of the bytes of each value (uint64 per row): FNV-1a, then the finalizer of MurmurHash3."""
    for row in range(len(offsets) - 1):
        h = np.uint64(0xCBF29CE484222325)
        for i in range(offsets[row], offsets[row + 1]):
            h = (h ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
        h = (h ^ h >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
        h = (h ^ h >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
        out[row] = h ^ h >> np.uint64(33)


@kernel
def decode(data, i, end):
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


@kernel
def may_not_be_nfc(data, offsets, pages, entries, suspect):
    """Set `suspect` (bool per row, false) where NFC may change a row: the quick check of UAX #15, exact for "no"."""
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        previous_class = np.uint32(0)
        while i < end:
            if i + _BLOCK <= end and _is_ascii(data[i : i + _BLOCK]):
                i += _BLOCK
                previous_class = np.uint32(0)
                continue
            stop = min(i + _BLOCK, end)
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


@kernel(inline="always")
def _is_simple(block):
    """Whether no byte of a block can begin a white space character beyond ASCII."""
    found = False
    for k in range(_BLOCK):
        byte = block[k]
        found |= (byte == 0xC2) | ((byte >= 0xE1) & (byte <= 0xE3))
    return not found


@kernel(inline="always")
def _copy_simple(block, out, after_space):
    """Copy a block, branch-free: always write a byte, advance only if it is kept.

    Returns (bytes copied, whether the last one was a space). The counter is unsigned, which saves a test for negative
    indices.
    """
    at, after = np.uint64(0), np.uint64(after_space)
    for k in range(_BLOCK):
        byte = _SPACED[block[k]]
        out[at] = byte
        space = np.uint64(byte == 0x20)
        at += _ONE - (space & after)
        after = space
    return np.int64(at), after != 0


@kernel
def collapse_spaces(data, offsets, pages, entries, out, out_offsets):
    """Copy rows to `out` (one byte larger than the input) with white space as single spaces, none at the ends.

    Writes where the rows begin to `out_offsets` (rows + 1).
    """
    at = 0
    for row in range(len(offsets) - 1):
        out_offsets[row] = at
        i, end, after_space = offsets[row], offsets[row + 1], True
        while i < end:
            if i + _BLOCK <= end and _is_simple(data[i : i + _BLOCK]):
                copied, after_space = _copy_simple(data[i : i + _BLOCK], out[at:], after_space)
                i += _BLOCK
                at += copied
                continue
            stop = min(i + _BLOCK, end)
            while i < stop:
                code, size, space = np.int64(0), 1, False
                if data[i] & 0xC0 != 0x80:  # a simple block before this one may have ended inside a character
                    code, size = decode(data, i, end)
                    space = entries[np.int64(pages[code >> 8]) << 8 | code & 255] & _SPACE > 0
                if not space:
                    for k in range(size):
                        out[at + k] = data[i + k]
                    at += size
                elif not after_space:
                    out[at] = 0x20
                    at += 1
                after_space = space
                i += size
        if at > out_offsets[row] and after_space:
            at -= 1
    out_offsets[len(offsets) - 1] = at
