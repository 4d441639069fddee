"""Loops over UTF-8 bytes: normal form, white space, hashes, words. Text is (data uint8, offsets int64), from
`data.string_buffers`: row i is `data[offsets[i]:offsets[i + 1]]`, and the first row may begin anywhere.

Properties of characters are the arrays of `words.CharacterTable`. Arrow strings are valid UTF-8. Whatever the bytes
are, the decoder never reads beyond its row, and no code point is above 0x10FFFF: that bounds the look-up in the table.

Words take two passes over a row, so that neither has a branch for every byte. The first writes the row to a scratch
buffer: words case-folded, a zero byte for everything between them; 64 bytes at once where they are ASCII. The second
finds the edges of the words in 64-bit masks and hashes each word in pieces of eight bytes. (Byte-parallel methods:
Warren, Hacker's Delight, 2002.)
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

_SPACE = 4  # words.SPACE
_NOT_NFC = 8  # words.NOT_NFC
_CCC_SHIFT = 8  # words.CCC_SHIFT
_BLOCK = 64  # bytes at a time: LLVM turns such loops into vector instructions
_ONE = np.uint64(1)
_SHIFT = np.uint64(33)
_SPACED = np.arange(256, dtype=np.uint8)  # ASCII white space as a space
_SPACED[[*range(0x09, 0x0E), *range(0x1C, 0x20)]] = 0x20


NONE = np.uint64(0xFFFFFFFFFFFFFFFF)  # no hash, or a free slot: no hash that `finalize` makes has this value
BASE = np.uint64(0xA0761D6478BD642F)  # odd: in a hash of several values their order matters, and no bit is lost


@kernel(inline="always")
def finalize(h):
    """A hash whose bits all depend on all bits of `h` (MurmurHash3's finalizer: Appleby, 2011); never 2**64 - 1."""
    h = (h ^ h >> _SHIFT) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ h >> _SHIFT) * np.uint64(0xC4CEB9FE1A85EC53)
    return min(h ^ h >> _SHIFT, np.uint64(2**64 - 2))


@kernel
def hash_values(data, offsets, out):
    """A 64-bit hash of the bytes of each value (uint64 per row): FNV-1a, then `finalize`."""
    for row in range(len(offsets) - 1):
        h = np.uint64(0xCBF29CE484222325)
        for i in range(offsets[row], offsets[row + 1]):
            h = (h ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
        out[row] = finalize(h)


@kernel
def decode(data, i, end):
    """(code point, bytes) of the UTF-8 character that begins at byte i; U+FFFD and 1 where the row ends inside it.

    The bytes after the first are not checked.
    """
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


@kernel(inline="always")
def _may_compose(byte):
    """Whether a byte begins a character that NFC may change, or that has a combining class. ASCII, Latin and IPA, most
    of Cyrillic, and Han from U+4000 on have none (a test asks all characters)."""
    return (byte >= 0xCC) & (byte | 1 != 0xD1) & ((byte < 0xE4) | (byte > 0xE9))


@kernel(inline="always")
def _mark_composing(block, marks):
    """Write `_may_compose` of 64 bytes; returns whether it holds for any. Branch-free."""
    found = False
    for k in range(_BLOCK):
        marks[k] = _may_compose(block[k])
        found |= marks[k] != 0
    return found


@kernel
def may_not_be_nfc(data, offsets, pages, entries, suspect):
    """Set `suspect` (bool per row, false) where NFC may change a row: the quick check of UAX #15, exact for "no".

    Characters that cannot decide, nearly all, are passed 64 bytes at a time and never decoded.
    """
    marks = np.zeros(_BLOCK, np.uint8)
    eights = marks.view(np.uint64)
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        after, previous_class = i, np.uint32(0)  # where the character before ends, and its combining class
        while i < end and not suspect[row]:
            if i + _BLOCK <= end:
                some = _mark_composing(data[i : i + _BLOCK], marks)
            else:
                some = True
                for k in range(_BLOCK):
                    marks[k] = i + k < end and _may_compose(data[i + k])
            for eight in range(8 if some else 0):
                if eights[eight] == 0:
                    continue
                for k in range(8 * eight, 8 * eight + 8):
                    if marks[k] == 0:
                        continue
                    code, size = decode(data, i + k, end)
                    entry = entries[np.int64(pages[code >> 8]) << 8 | code & 255]
                    combining = entry >> _CCC_SHIFT & 0xFF
                    if i + k != after:  # another character, of class 0, is between
                        previous_class = np.uint32(0)
                    if entry & _NOT_NFC or 0 < combining < previous_class:
                        suspect[row] = True
                    after, previous_class = i + k + size, combining
            i += _BLOCK


@kernel(inline="always")
def _is_simple(block):
    """Whether no byte of a block can begin a white space character beyond ASCII."""
    found = np.uint8(0)  # a byte, as all values here: a flag would keep LLVM from vector instructions
    for k in range(_BLOCK):
        byte = block[k]
        found |= np.uint8((byte == np.uint8(0xC2)) | (np.uint8(byte - np.uint8(0xE1)) < np.uint8(3)))
    return found == 0


@kernel(inline="always")
def _copy_clean(block, out):
    """Copy a block with white space as spaces; False where two of these are neighbours, and one must go. Branch-free,
    and without an index that depends on the bytes, so that LLVM makes vector instructions of it."""
    twice = np.uint8(0)
    for k in range(_BLOCK):
        byte = block[k]
        control = (np.uint8(byte - np.uint8(0x09)) < np.uint8(5)) | (np.uint8(byte - np.uint8(0x1C)) < np.uint8(4))
        out[k] = np.uint8(0x20) if control else byte
    for k in range(_BLOCK - 1):
        twice |= np.uint8((out[k] == np.uint8(0x20)) & (out[k + 1] == np.uint8(0x20)))
    return twice == 0


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
    """Copy rows to `out` (as large as the rows) with white space as single spaces, none at the ends.

    Writes where the rows begin to `out_offsets` (rows + 1). No step writes more bytes than it reads, so `at` is never
    ahead of the input.
    """
    at = 0
    for row in range(len(offsets) - 1):
        out_offsets[row] = at
        i, end, after_space = offsets[row], offsets[row + 1], True
        while i < end:
            if i + _BLOCK <= end and _is_simple(data[i : i + _BLOCK]):
                # `out` has room for a whole block: a row never grows, and this block is not yet in it
                block = data[i : i + _BLOCK]
                if _copy_clean(block, out[at : at + _BLOCK]) and not (after_space and out[at] == 0x20):
                    copied, after_space = _BLOCK, out[at + _BLOCK - 1] == 0x20
                else:
                    copied, after_space = _copy_simple(block, out[at:], after_space)
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


# Words.

_WORD = 1  # words.WORD
_SPACELESS = 2  # words.SPACELESS
_FOLD_SHIFT = 16  # words.FOLD_SHIFT

_SEED = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)  # odd, so that multiplying is a bijection on 64 bits
_SEVEN, _HALF, _TOP, _ALL = (np.uint64(n) for n in (7, 32, 63, 2**64 - 1))
_LOW_SEVEN_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)  # of each of eight bytes
_HIGH_BITS = np.uint64(0x8080808080808080)
_GATHER = np.uint64(0x0102040810204080)  # moves the lowest bit of byte k to bit 56 + k
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # Leiserson, Prokop and Randall, 1998
_BIT_OF = np.zeros(64, dtype=np.int64)
for _bit in range(64):
    _BIT_OF[(0x03F79D71B4CB0A89 << _bit & 2**64 - 1) >> 58] = _bit
_ASCII_FOLD = np.zeros(128, dtype=np.uint8)
for _character in "0123456789abcdefghijklmnopqrstuvwxyz":
    _ASCII_FOLD[[ord(_character), ord(_character.upper())]] = ord(_character)


@kernel(inline="always")
def _mix(state):
    """A bijection. (So a word's hash may have any value, `NONE` and 0 too.)"""
    state *= _MULTIPLIER
    return state ^ state >> _HALF


@kernel
def encode(code, out, at):
    """Write a code point as UTF-8; returns where it ends."""
    if code < 0x80:
        out[at] = code
        return at + 1
    more = 1 if code < 0x800 else 2 if code < 0x10000 else 3  # bytes after the first one
    out[at] = 0x100 - (0x80 >> more) | code >> 6 * more
    for k in range(1, more + 1):
        out[at + k] = 0x80 | code >> 6 * (more - k) & 0x3F
    return at + more + 1


@kernel(inline="always")
def _fold_block(block, out):
    """Fold 64 bytes as ASCII; False if some are not. Branch-free, so that LLVM makes vector instructions of it."""
    seen = np.uint8(0)
    for k in range(_BLOCK):
        byte = block[k]
        seen |= byte
        lower = np.uint8(byte | np.uint8(0x20))
        letter = np.uint8(lower - np.uint8(0x61)) < np.uint8(26)
        digit = np.uint8(byte - np.uint8(0x30)) < np.uint8(10)
        out[k] = lower if letter else (byte if digit else np.uint8(0))
    return seen < 0x80


@kernel(inner=True)
def fold_expanding(row, folds, out, at):
    """Write the folded form of a character that folding changes; returns where it ends."""
    for k in range(3):
        if folds[row, k] >= 0:
            at = encode(np.int64(folds[row, k]), out, at)
    return at


@kernel(inner=True)
def _fold_mixed(data, i, stop, end, pages, entries, folds, out, at):
    """Fold the characters that begin in [i, stop): (where the last one ends, where the folded text ends).

    Every byte up to there is written, since `_fold_block` may have left others. A character becomes at most three times
    its bytes: by folding (U+0390 has 2, its three code points 6); zeros on both sides make 5 of 3.
    """
    while i < stop:
        byte = data[i]
        if byte < 0x80:
            out[at] = _ASCII_FOLD[byte]
            i, at = i + 1, at + 1
            continue
        code, width = decode(data, i, end)
        entry = entries[np.int64(pages[code >> 8]) << 8 | code & 255]
        kind, fold = entry & (_WORD | _SPACELESS), entry >> _FOLD_SHIFT
        out[at] = 0
        if kind & _WORD == 0:
            at += 1
        elif fold:
            at = fold_expanding(fold, folds, out, at)
        else:
            alone = kind >> 1  # a zero on both sides
            at += alone
            for k in range(width):
                out[at + k] = data[i + k]
            at += width
            out[at] = 0
            at += alone
        i += width
    return i, at


@kernel(inner=True)
def _fold(data, begin, end, pages, entries, folds, out):
    """Fold a row to `out`, followed by zeros; returns the bytes before them."""
    i, at = begin, 0
    while i < end:
        if i + _BLOCK <= end and _fold_block(data[i : i + _BLOCK], out[at : at + _BLOCK]):
            i += _BLOCK
            at += _BLOCK
        else:
            i, at = _fold_mixed(data, i, min(i + _BLOCK, end), end, pages, entries, folds, out, at)
    out[at : at + 2 * _BLOCK] = 0  # the second pass reads whole blocks, and up to 15 bytes behind a word
    return at


@kernel(inline="always")
def _nonzero_bytes(eights, first):
    """Bit k of the result: byte k of the 64 from `eights[first]` on is not zero."""
    mask = np.uint64(0)
    for k in range(8):
        x = eights[first + k]
        high = ((x & _LOW_SEVEN_BITS) + _LOW_SEVEN_BITS | x) & _HIGH_BITS
        mask |= ((high >> _SEVEN) * _GATHER >> np.uint64(56)) << np.uint64(8 * k)
    return mask


@kernel(inline="always")
def _eight_bytes(eights, at):
    """The eight bytes from byte `at` on, which may lie across two values of `eights`."""
    shift = np.uint64(at & 7) << np.uint64(3)
    low, high = eights[at >> 3], eights[(at >> 3) + 1]
    return low >> shift | high << _ONE << (_TOP - shift)  # in two steps, since a shift by 64 is not defined


@kernel(inline="always")
def _hash_word(eights, begin, end):
    """The hash of the bytes from `begin` to `end`, at least one."""
    state = _SEED
    while end - begin > 8:
        state = _mix(state ^ _eight_bytes(eights, begin))
        begin += 8
    rest = _eight_bytes(eights, begin) & _ALL >> np.uint64(8 * (8 - (end - begin)))
    return _mix(state ^ rest)


@kernel
def hash_all_words(data, offsets, pages, entries, folds, scratch, out, out_offsets):
    """The hashes of every row's words, one after another in `out`; where each row begins goes to `out_offsets`.

    `out` (uint64) has a place for every two bytes, and one more for each row: a word is a byte with another one behind
    it, or a character of three that is a word of its own. `scratch` is uint64, of at least 3/8 of the longest row's
    bytes and 192: folding makes at most three bytes of one, then come zeros.
    """
    at = 0
    for row in range(len(offsets) - 1):
        out_offsets[row] = at
        size = _fold(data, offsets[row], offsets[row + 1], pages, entries, folds, scratch.view(np.uint8))
        start, inside = 0, np.uint64(0)
        for block in range(0, size + 1, _BLOCK):  # with the zero at `size`, which ends the last word
            mask = _nonzero_bytes(scratch, block >> 3)
            edges = mask ^ (mask << _ONE | inside)  # bytes that differ from the one before: words begin and end here
            inside = mask >> _TOP
            while edges:
                lowest = edges & (~edges + _ONE)
                edges ^= lowest
                place = block + _BIT_OF[lowest * _DE_BRUIJN >> np.uint64(58)]
                if mask & lowest:
                    start = place
                else:
                    out[at] = _hash_word(scratch, start, place)
                    at += 1
    out_offsets[len(offsets) - 1] = at
