"""Where a long piece falls apart: seams between characters that no token reaches across. Arrays only.

No merge ever reaches across such a seam either, so both sides merge for themselves, and runs of Han or Thai become
short parts that repeat. Of two characters that whole tokens hold side by side a bit is set by the hash of the pair
(Bloom 1970): a pair that is taken for one of them keeps a part longer than need be, and changes nothing else. Tokens
that hold but a part of the character before or behind a seam are few, and noted exactly: where there is none of them,
every character merges for itself first, and its token can be looked up.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from datakit.pack._kernels_bpe_merge import merge_short
from datakit.pack._kernels_bpe_split import character, kernel

APART, WHOLE, PART = 0, 1, 2
"""Of a seam: no token reaches across; tokens that hold both characters whole may; some that holds but a part may."""
CODE_POINTS = 0x110000
BEFORE_PART, BEHIND_PART = 1, 2
"""Flags of a character: some token holds it and but a part of the next; it, or its beginning, and part of the last."""
FLAGS = 2
"""Bits of a character's entry that are flags."""
BITS_A_PAIR = 32

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing (Knuth, TAOCP 3, 6.4)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_1, _6, _8, _21, _32, _63, _64 = (np.uint64(n) for n in (1, 6, 8, 21, 32, 63, 64))


class SeamTables(NamedTuple):
    """What the tokens of a vocabulary say about neighbouring characters."""

    pages: npt.NDArray[np.uint16]
    entries: npt.NDArray[np.int32]
    """Of code point c, entries[pages[c >> 8] << 8 | c & 255]: the id that its bytes merge to by themselves, + 1, or 0
    if that is more than one; then FLAGS bits of flags."""
    pairs: npt.NDArray[np.uint64]
    """Bits of the pairs of characters that a token holds whole, by hash; a power of two of words."""
    joints: npt.NDArray[np.uint64]
    """Open addressing: what a token holds of the characters around a seam, where one of them is not whole."""


@kernel
def entry_of(code, seams):  # type: ignore[no-untyped-def]
    """Entry of a code point."""
    return seams.entries[np.int64(seams.pages[code >> 8]) << 8 | code & 255]


@kernel
def _pair(left, right):  # type: ignore[no-untyped-def]
    return np.uint64(left) << _21 | np.uint64(right)


@kernel
def _bit(pair, words):  # type: ignore[no-untyped-def]
    """Number of a pair's bit."""
    mixed = pair * _MIX
    return (mixed ^ mixed >> _32) & (np.uint64(words) * _64 - _1)


@kernel
def _packed(data, begin, end):  # type: ignore[no-untyped-def]
    """At most four bytes as a number; never 0 for a part of a character but NUL, and unique with its length."""
    value = np.uint64(end - begin)
    for k in range(begin, end):
        value = value << _8 | np.uint64(data[k])
    return value & np.uint64(0xFFFFFFFF) if end - begin == 4 else value


@kernel
def _joint(data, begin, seam, end):  # type: ignore[no-untyped-def]
    """The bytes around a seam as a number."""
    return _packed(data, begin, seam) << _32 | _packed(data, seam, end)


@kernel
def _slot(key, joints):  # type: ignore[no-untyped-def]
    """Slot of a joint, or the empty one where it would go."""
    mask = np.uint64(len(joints) - 1)
    mixed = key * _MIX
    at = (mixed ^ mixed >> _32) & mask
    while joints[at] != key and joints[at] != _EMPTY:
        at = (at + _1) & mask
    return at


@kernel
def _width(lead):  # type: ignore[no-untyped-def]
    """Bytes of the character that this byte leads."""
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


@kernel
def count_seams(data, offsets):  # type: ignore[no-untyped-def]
    """How many seams tokens `data[offsets[k]:offsets[k + 1]]` (UTF-8, cut anywhere) have between characters."""
    count = 0
    for token in range(len(offsets) - 1):
        for seam in range(offsets[token] + 1, offsets[token + 1]):
            count += data[seam] & 0xC0 != 0x80
    return count


@kernel
def list_seams(data, offsets, pairs, joints, flags):  # type: ignore[no-untyped-def]
    """List the seams of such tokens in `pairs` and `joints`, set `flags` (uint8 by code point); returns how many each.

    `data` has three bytes to spare. What no text has (a character cut short and another behind it) does no harm.
    """
    whole = part = 0
    for token in range(len(offsets) - 1):
        begin, end = offsets[token], offsets[token + 1]
        for seam in range(begin + 1, end):
            if data[seam] & 0xC0 == 0x80:
                continue
            left = seam - 1
            while left > begin and data[left] & 0xC0 == 0x80 and seam - left < 4:
                left -= 1
            begun = data[left] & 0xC0 != 0x80
            missing = max(0, seam + _width(data[seam]) - end)
            before, behind = character(data, left)[0], character(data, seam)[0]
            if begun and missing == 0:
                pairs[whole] = _pair(before, behind)
                whole += 1
                continue
            joints[part] = _joint(data, left, seam, min(end, seam + _width(data[seam])))
            part += 1
            if begun:
                flags[min(before, CODE_POINTS - 1)] |= BEFORE_PART
                continue
            low = behind >> 6 * missing << 6 * missing
            for code in range(low, min(low + (1 << 6 * missing), CODE_POINTS)):
                flags[code] |= BEHIND_PART
    return whole, part


@kernel
def fill_seams(pairs, joints, bits, slots):  # type: ignore[no-untyped-def]
    """Set the pairs' `bits` (all 0) and put the joints into their `slots` (all empty: 2**64 - 1)."""
    for pair in pairs:
        bit = _bit(pair, len(bits))
        bits[bit >> _6] |= _1 << (bit & _63)
    for joint in joints:
        slots[_slot(joint, slots)] = joint


@kernel
def ids_alone(data, offsets, merges, ids, ranks, found):  # type: ignore[no-untyped-def]
    """Into `found`: the id that the bytes of each text merge to, -1 if that is more than one; texts are short."""
    for text in range(len(offsets) - 1):
        n = offsets[text + 1] - offsets[text]
        count = merge_short(data, offsets[text], n, merges, ids, ranks)
        found[text] = ids[0] if count == 1 else -1


@kernel
def _reached_in_part(data, left, seam, joints):  # type: ignore[no-untyped-def]
    """Whether some token holds a part of the character that begins at `left` or of the one at `seam`, and both."""
    width = _width(data[seam])
    for cut in range(seam - left):
        for missing in range(width):
            if cut + missing > 0:
                key = _joint(data, left + cut, seam, seam + width - missing)
                if joints[_slot(key, joints)] == key:
                    return True
    return False


@kernel
def seam_kind(data, left, seam, codes, entries, seams):  # type: ignore[no-untyped-def]
    """What reaches across the seam between the characters at `left` and at `seam`, given code and entry of both.

    APART is certain.
    """
    if (entries[0] & BEFORE_PART or entries[1] & BEHIND_PART) and _reached_in_part(data, left, seam, seams.joints):
        return PART
    bit = _bit(_pair(codes[0], codes[1]), len(seams.pairs))
    return WHOLE if seams.pairs[bit >> _6] >> (bit & _63) & _1 else APART
