"""Text -> token ids of a byte-level BPE: split, look each piece up in a cache, merge what is not there. Arrays only.

The cache is two hash tables of fixed size, for pieces of up to 16 and of up to 48 bytes. A slot holds the piece itself
and its ids, so a hit is exact whatever the hash; a bucket has four slots, and a new piece takes an empty one or, in
turn, one of the four. What a cache holds never shapes a result.
"""

import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from datakit.pack._kernels_bpe_merge import SCAN_BYTES, lacks_bytes, merge_long, merge_short, merge_tokens
from datakit.pack._kernels_bpe_seams import APART, FLAGS, PART, entry_of, seam_kind
from datakit.pack._kernels_bpe_split import character, kernel, next_added, piece_end

SHORT_BYTES, LONG_BYTES = 16, 48
SHORT_WORDS, LONG_WORDS = 8, 16
"""64-bit words a slot has: the piece, then its tag << 32 | number of ids, then the ids, two a word."""
WAYS = 4
"""Slots of a bucket."""
PIECES, MISSES = 0, 1
"""Counters of a cache: pieces of the text; those pieces, or parts of long ones, that had to be merged."""

_PART = 64  # added to the tag (the length) of a part of a piece, where the vocabulary is asked for whole pieces only
_LITTLE = sys.byteorder == "little"
_MIX_A, _MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_29, _32 = np.uint64(29), np.uint64(32)
_ID = np.uint64(0xFFFFFFFF)
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


class Whole(NamedTuple):
    """Tokens that a piece is looked up in before any merge (`ignore_merges`); empty where that is not asked for."""

    slots: npt.NDArray[np.int32]
    """Open addressing: number of the token, -1 where empty."""
    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]


class Cache(NamedTuple):
    """Ids of pieces; for one thread at a time."""

    short: npt.NDArray[np.uint64]
    """(slots, SHORT_WORDS)"""
    long: npt.NDArray[np.uint64]
    """(slots, LONG_WORDS)"""
    counts: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    ranks: npt.NDArray[np.int32]
    links: npt.NDArray[np.int32]
    heap: npt.NDArray[np.int64]
    """Room to merge in: see `merge_short` and `merge_long`."""


@intrinsic
def _unaligned_word(typing, data, i):  # type: ignore[no-untyped-def]
    """The eight bytes of `data` from byte i on as a number; they must be there."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, args[0])
        word = context.get_value_type(types.uint64).as_pointer()
        return builder.load(builder.bitcast(builder.gep(array.data, [args[1]]), word), align=1)

    return types.uint64(data, i), generate


@kernel
def _word(data, i, n):  # type: ignore[no-untyped-def]
    """The first n (at most 8) bytes from byte i on as a number, the first byte lowest."""
    if _LITTLE and i + 8 <= len(data):
        return _unaligned_word(data, i) & _FIRST_BYTES[n]  # type: ignore[call-arg]
    word = np.uint64(0)
    for k in range(n):
        word |= np.uint64(data[i + k]) << np.uint64(8 * k)
    return word


@kernel
def _bucket(mixed, table):  # type: ignore[no-untyped-def]
    mixed = (mixed ^ mixed >> _29) * _MIX_A
    return np.int64(mixed >> _32 & np.uint64(len(table) // WAYS - 1)) * WAYS


@kernel
def _emit(table, place, words, out, at):  # type: ignore[no-untyped-def]
    """Write the ids of a slot whose piece has that many words; returns where they end."""
    count = np.int64(table[place, words] & _ID)
    out[at] = np.int32(table[place, words + 1] & _ID)
    for k in range(1, count):
        out[at + k] = np.int32(table[place, words + 1 + (k >> 1)] >> np.uint64(32 * (k & 1)) & _ID)
    return at + count


@kernel
def _keep(table, bucket, words, tag, ids, count, turn):  # type: ignore[no-untyped-def]
    """Take a slot for a piece and write its ids there; returns it, its own bytes still to be set. -1: no room."""
    if count > 2 * (table.shape[1] - words - 1):
        return -1
    place = bucket + (turn & (WAYS - 1))
    for k in range(bucket, bucket + WAYS):
        if table[k, words] == 0:
            place = k
            break
    table[place, words] = tag << _32 | np.uint64(count)
    for k in range(0, count, 2):
        pair = np.uint64(ids[k])
        if k + 1 < count:
            pair |= np.uint64(ids[k + 1]) << _32
        table[place, words + 1 + (k >> 1)] = pair
    return place


@kernel
def _hash(data, begin, end):  # type: ignore[no-untyped-def]
    mixed = np.uint64(end - begin)
    for i in range(begin, end, 8):
        mixed = (mixed ^ _word(data, i, min(8, end - i))) * _MIX_B
        mixed ^= mixed >> _29
    return mixed


@kernel
def whole_table(data, offsets, slots):  # type: ignore[no-untyped-def]
    """Fill `slots` (all -1) with the tokens whose bytes are `data[offsets[k]:offsets[k + 1]]`."""
    mask = np.uint64(len(slots) - 1)
    for token in range(len(offsets) - 1):
        at = _hash(data, offsets[token], offsets[token + 1]) & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = token


@kernel
def _whole(data, begin, end, whole):  # type: ignore[no-untyped-def]
    """Id of the token that a piece is as a whole, -1 if it is none."""
    mask = np.uint64(len(whole.slots) - 1)
    at = _hash(data, begin, end) & mask
    while whole.slots[at] >= 0:
        token = whole.slots[at]
        first = whole.offsets[token]
        if whole.offsets[token + 1] - first == end - begin:
            same = True
            for k in range(end - begin):
                if data[begin + k] != whole.data[first + k]:
                    same = False
                    break
            if same:
                return whole.ids[token]
        at = (at + np.uint64(1)) & mask
    return np.int32(-1)


@kernel
def _ids(data, begin, n, chars, is_part, merges, whole, cache):  # type: ignore[no-untyped-def]
    """Make the ids of a piece, or part of one, of at most SCAN_BYTES, into `cache.ids`; returns how many.

    `chars` of them, if any, stand there already: the tokens of its characters, each of which merges for itself first.
    """
    cache.counts[MISSES] += 1
    if chars > 0:
        return merge_tokens(chars, merges, cache.ids, cache.ranks)
    if len(whole.slots) and not is_part:
        token = _whole(data, begin, begin + n, whole)
        if token >= 0:
            cache.ids[0] = token
            return 1
    return merge_short(data, begin, n, merges, cache.ids, cache.ranks)


@kernel
def _copy(ids, count, out, at):  # type: ignore[no-untyped-def]
    for k in range(count):
        out[at + k] = ids[k]
    return at + count


@kernel
def _short(data, begin, n, chars, is_part, merges, whole, cache, out, at):  # type: ignore[no-untyped-def]
    """Write the ids of n bytes, at most SHORT_BYTES; returns where they end."""
    table = cache.short
    first = _word(data, begin, min(n, 8))
    second = _word(data, begin + 8, n - 8) if n > 8 else np.uint64(0)
    tag = np.uint64(n + _PART * is_part)
    bucket = _bucket(first * _MIX_A ^ (second + tag) * _MIX_B, table)
    for place in range(bucket, bucket + WAYS):
        if table[place, 0] == first and table[place, 1] == second and table[place, 2] >> _32 == tag:
            return _emit(table, place, 2, out, at)
    count = _ids(data, begin, n, chars, is_part, merges, whole, cache)
    place = _keep(table, bucket, 2, tag, cache.ids, count, cache.counts[MISSES])
    if place >= 0:
        table[place, 0], table[place, 1] = first, second
    return _copy(cache.ids, count, out, at)


@kernel
def _holds(table, place, data, begin, n):  # type: ignore[no-untyped-def]
    same = True
    for k in range(0, n, 8):
        same &= table[place, k >> 3] == _word(data, begin + k, min(8, n - k))
    return same


@kernel
def _long(data, begin, n, chars, is_part, merges, whole, cache, out, at):  # type: ignore[no-untyped-def]
    """Write the ids of n bytes, at most LONG_BYTES; returns where they end."""
    table, words = cache.long, LONG_BYTES // 8
    tag = np.uint64(n + _PART * is_part)
    bucket = _bucket(_hash(data, begin, begin + n), table)
    for place in range(bucket, bucket + WAYS):
        if table[place, words] >> _32 == tag and _holds(table, place, data, begin, n):
            return _emit(table, place, words, out, at)
    count = _ids(data, begin, n, chars, is_part, merges, whole, cache)
    place = _keep(table, bucket, words, tag, cache.ids, count, cache.counts[MISSES])
    if place >= 0:
        for k in range(0, n, 8):
            table[place, k >> 3] = _word(data, begin + k, min(8, n - k))
    return _copy(cache.ids, count, out, at)


@kernel
def _part(data, begin, end, chars, is_part, merges, whole, cache, out, at):  # type: ignore[no-untyped-def]
    n = end - begin
    if n <= SHORT_BYTES:
        return _short(data, begin, n, chars, is_part, merges, whole, cache, out, at)
    if n <= LONG_BYTES:
        return _long(data, begin, n, chars, is_part, merges, whole, cache, out, at)
    if n <= SCAN_BYTES:
        return _copy(cache.ids, _ids(data, begin, n, chars, is_part, merges, whole, cache), out, at)
    cache.counts[MISSES] += 1
    return merge_long(data, begin, n, merges, cache.links, cache.heap, out, at)


@kernel
def _parts(data, begin, end, merges, seams, whole, cache, out, at):  # type: ignore[no-untyped-def]
    """Cut a piece wherever no token reaches across, and write the ids of its parts.

    A character alone is looked up; a part whose characters are one token each, and reached by no other in part, is
    merged from those.
    """
    if len(whole.slots):
        token = _whole(data, begin, end, whole)
        if token >= 0:
            out[at] = token
            return at + 1
    is_part, first, left, chars, known = len(whole.slots) > 0, begin, begin, 0, True
    if lacks_bytes(data, begin, end, merges):
        return _part(data, begin, end, 0, is_part, merges, whole, cache, out, at)
    code, size = character(data, begin)
    entry = entry_of(code, seams)
    while True:
        token = (entry >> FLAGS) - 1
        known &= token >= 0 and chars < SCAN_BYTES
        if known:
            cache.ids[chars] = token
            chars += 1
        seam = left + size
        kind = APART
        if seam < end:
            following, size = character(data, seam)
            behind = entry_of(following, seams)
            kind = seam_kind(data, left, seam, (code, following), (entry, behind), seams)
            code, entry = following, behind
        if kind == APART:
            if known and chars == 1:
                out[at] = token
                at += 1
            else:
                at = _part(data, first, seam, chars if known else 0, is_part, merges, whole, cache, out, at)
            if seam == end:
                return at
            first, chars, known = seam, 0, True
        known &= kind != PART
        left = seam


@kernel
def _segment(data, i, end, split, merges, seams, whole, cache, out, at):  # type: ignore[no-untyped-def]
    """Write the ids of text without added tokens; returns where they end."""
    while i < end:
        stop = piece_end(data, i, end, split)
        cache.counts[PIECES] += 1
        if stop - i == 1:
            out[at] = merges.byte_ids[data[i]]
            at += out[at] >= 0
        elif stop - i <= SHORT_BYTES:
            at = _short(data, i, stop - i, 0, False, merges, whole, cache, out, at)
        else:
            at = _parts(data, i, stop, merges, seams, whole, cache, out, at)
        i = stop
    return at


@kernel
def encode(data, offsets, skip, before, after, split, merges, seams, whole, cache, out, out_offsets):  # type: ignore[no-untyped-def]
    """Write the ids of rows `data[offsets[r]:offsets[r + 1]]` to `out`, where each begins to `out_offsets` (rows + 1).

    Rows of `skip` get none. `before` and `after` are ids put around each row that has text. `out` has room for one id
    a byte, and those.
    """
    at = 0
    for row in range(len(offsets) - 1):
        out_offsets[row] = at
        i, end = offsets[row], offsets[row + 1]
        if i == end or skip[row]:
            continue
        at = _copy(before, len(before), out, at)
        while i < end:
            begin, stop, token = next_added(data, i, end, split)
            at = _segment(data, i, begin, split, merges, seams, whole, cache, out, at)
            if token >= 0:
                out[at] = token
                at += 1
            i = stop
        at = _copy(after, len(after), out, at)
    out_offsets[len(offsets) - 1] = at
