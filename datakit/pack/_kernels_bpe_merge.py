"""Byte-pair merges (Sennrich et al. 2016): the pair of lowest rank first, the leftmost of equals. Arrays only.

Short pieces are scanned for their best pair; long ones keep their pairs in a heap, so that a row of one letter a
million times over costs O(n log n). Before that, long pieces are cut where no token of the vocabulary reaches across:
no merge ever does either, so both sides merge for themselves, and runs of Han or Thai become short, repeated parts.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from datakit.pack._kernels_bpe_split import kernel

NO_RANK = np.int32(0x7FFFFFFF)
SCAN_BYTES = 64
"""Pieces up to this many bytes are scanned."""

_TOKEN, _RANK, _NEXT, _PREVIOUS = range(4)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing (Knuth, TAOCP 3, 6.4)
_32 = np.uint64(32)


class MergeTables(NamedTuple):
    """The merges of a vocabulary."""

    byte_ids: npt.NDArray[np.int32]
    """(256) id of each byte, -1 for none: the library leaves such a byte out."""
    lacking: bool
    """Whether a byte of some UTF-8 text has no id."""
    byte_ranks: npt.NDArray[np.int32]
    """(65536) rank of each pair of bytes."""
    pair_keys: npt.NDArray[np.uint64]
    """Open addressing: left id << 32 | right id."""
    pair_ranks: npt.NDArray[np.int32]
    products: npt.NDArray[np.int32]
    """Id that the merge of a rank makes."""
    joints: npt.NDArray[np.uint64]
    """Open addressing: the (parts of) characters left and right of a seam inside some token; see `may_join`."""
    joint_kinds: npt.NDArray[np.uint16]
    """(2, 256) which combinations of parts occur with this last byte on the left, this first byte on the right."""


@kernel
def _slot(key, keys):  # type: ignore[no-untyped-def]
    """Slot of a key, or the empty one where it would go; the number of keys is a power of two and half are empty."""
    mask = np.uint64(len(keys) - 1)
    mixed = key * _MIX
    at = (mixed ^ (mixed >> _32)) & mask
    while keys[at] != key and keys[at] != _EMPTY:
        at = (at + np.uint64(1)) & mask
    return at


@kernel
def _pair(left, right):  # type: ignore[no-untyped-def]
    return np.uint64(left) << _32 | np.uint64(right)


@kernel
def pair_table(pairs, products, keys, ranks):  # type: ignore[no-untyped-def]
    """Fill `keys` (all empty: 2**64 - 1) and `ranks` with the merges int32 (n, 2); a later rank of a pair counts."""
    for rank in range(len(products)):
        at = _slot(_pair(pairs[rank, 0], pairs[rank, 1]), keys)
        keys[at] = _pair(pairs[rank, 0], pairs[rank, 1])
        ranks[at] = rank


@kernel
def rank_of(left, right, tables):  # type: ignore[no-untyped-def]
    """Rank of a pair of ids."""
    key = _pair(left, right)
    at = _slot(key, tables.pair_keys)
    return tables.pair_ranks[at] if tables.pair_keys[at] == key else NO_RANK


@kernel
def merge_short(data, begin, n, tables, ids, ranks):  # type: ignore[no-untyped-def]
    """Ids of the n bytes from `begin` into `ids`; returns how many. `ids` and `ranks` have room for n + 1."""
    end, previous = begin + n, np.int64(0)
    n = 0
    for k in range(begin, end):
        token, byte = tables.byte_ids[data[k]], np.int64(data[k])
        if token >= 0:
            ids[n] = token
            if n > 0:
                ranks[n - 1] = tables.byte_ranks[previous << 8 | byte]
            previous = byte
            n += 1
    while True:
        best, at = NO_RANK, -1
        for k in range(n - 1):
            if ranks[k] < best:
                best, at = ranks[k], k
        if at < 0:
            return n
        ids[at] = tables.products[best]
        n -= 1
        for k in range(at + 1, n):
            ids[k] = ids[k + 1]
            ranks[k] = ranks[k + 1]
        if at > 0:
            ranks[at - 1] = rank_of(ids[at - 1], ids[at], tables)
        if at < n - 1:
            ranks[at] = rank_of(ids[at], ids[at + 1], tables)


@kernel
def _sift(heap, at, size):  # type: ignore[no-untyped-def]
    """Let the entry at `at` sink to its place in a heap of the smallest first."""
    entry = heap[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= entry:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = entry


@kernel
def _push(heap, size, entry):  # type: ignore[no-untyped-def]
    at = size
    while at > 0 and heap[(at - 1) // 2] > entry:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = entry
    return size + 1


@kernel
def merge_long(data, begin, n, tables, links, heap, out, at):  # type: ignore[no-untyped-def]
    """Ids of n bytes from `begin`, written to `out` from `at` on; returns where they end.

    `links` is room for int32 (n, 4): id, rank of the pair that begins here, place behind, place before. `heap` is room
    for 3 n: each of at most n - 1 merges adds at most two entries to the first n - 1. An entry is rank << 32 | place;
    it is stale unless the place still begins a pair of that rank.
    """
    end, previous = begin + n, np.int64(0)
    n = size = 0
    for i in range(begin, end):
        token, byte = tables.byte_ids[data[i]], np.int64(data[i])
        if token >= 0:
            links[n, _TOKEN], links[n, _NEXT], links[n, _PREVIOUS], links[n, _RANK] = token, n + 1, n - 1, NO_RANK
            if n > 0:
                size = _rank(links, n - 1, tables.byte_ranks[previous << 8 | byte], heap, size)
            previous = byte
            n += 1
    while size > 0:
        top = heap[0]
        size -= 1
        heap[0] = heap[size]
        _sift(heap, 0, size)
        k = top & 0xFFFFFFFF
        if links[k, _RANK] != top >> 32:
            continue
        links[k, _TOKEN] = tables.products[top >> 32]
        gone = links[k, _NEXT]
        links[gone, _RANK] = NO_RANK
        behind, before = links[gone, _NEXT], links[k, _PREVIOUS]
        links[k, _NEXT], links[k, _RANK] = behind, NO_RANK
        if behind < n:
            links[behind, _PREVIOUS] = k
            size = _rank(links, k, rank_of(links[k, _TOKEN], links[behind, _TOKEN], tables), heap, size)
        if before >= 0:
            size = _rank(links, before, rank_of(links[before, _TOKEN], links[k, _TOKEN], tables), heap, size)
    k = 0
    while k < n:
        out[at] = links[k, _TOKEN]
        at += 1
        k = links[k, _NEXT]
    return at


@kernel
def _rank(links, k, rank, heap, size):  # type: ignore[no-untyped-def]
    """Give the pair that begins at k its rank."""
    links[k, _RANK] = rank
    return size if rank == NO_RANK else _push(heap, size, np.int64(rank) << 32 | np.int64(k))


@kernel
def lacks_bytes(data, begin, end, tables):  # type: ignore[no-untyped-def]
    """Whether a byte of this text has no id: then tokens reach across it, and the text is not to be cut."""
    if tables.lacking:
        for i in range(begin, end):
            if tables.byte_ids[data[i]] < 0:
                return True
    return False


@kernel
def _continues(byte):  # type: ignore[no-untyped-def]
    return byte & 0xC0 == 0x80


@kernel
def _packed(data, begin, end):  # type: ignore[no-untyped-def]
    """At most four bytes as a number; never 0 for a part of a character but NUL, and unique with its length."""
    value = np.uint64(end - begin)
    for k in range(begin, end):
        value = value << np.uint64(8) | np.uint64(data[k])
    return value & np.uint64(0xFFFFFFFF) if end - begin == 4 else value


@kernel
def _joint(data, begin, seam, end):  # type: ignore[no-untyped-def]
    return _packed(data, begin, seam) << _32 | _packed(data, seam, end)


@kernel
def _width(lead):  # type: ignore[no-untyped-def]
    """Bytes of the character that this byte leads."""
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


@kernel
def _kind(left_missing, right_missing):  # type: ignore[no-untyped-def]
    """Bit of a combination: bytes that a token leaves out of the character left and right of a seam, 0 to 3 each."""
    return np.uint16(1) << np.uint16(left_missing << 2 | right_missing)


@kernel
def joint_table(data, offsets, joints, kinds):  # type: ignore[no-untyped-def]
    """Note every seam between two characters, of which a token may hold but a part, inside tokens (UTF-8, offsets).

    How many bytes of the left one a token leaves out shows only in a text, so every number possible is noted. Returns
    the number of seams; with empty `joints` it is an upper bound and nothing is noted.
    """
    count = 0
    for token in range(len(offsets) - 1):
        begin, end = offsets[token], offsets[token + 1]
        for seam in range(begin + 1, end):
            if _continues(data[seam]):
                continue
            count += 1
            if len(joints) == 0:
                continue
            left = seam - 1
            while left > begin and _continues(data[left]) and seam - left < 4:
                left -= 1
            right = min(end, seam + _width(data[seam]))
            key = _joint(data, left, seam, right)
            joints[_slot(key, joints)] = key
            missing = seam + _width(data[seam]) - right
            for cut in range(4):
                if (cut > 0) == _continues(data[left]):
                    kinds[0, data[seam - 1]] |= _kind(cut, missing)
                    kinds[1, data[seam]] |= _kind(cut, missing)
    return count


@kernel
def may_join(data, left, seam, tables):  # type: ignore[no-untyped-def]
    """Whether some token reaches across the seam between the characters that begin at `left` and at `seam`.

    False is certain, and then no merge reaches across it.
    """
    kinds = tables.joint_kinds[0, data[seam - 1]] & tables.joint_kinds[1, data[seam]]
    width = _width(data[seam])
    for cut in range(seam - left):
        for missing in range(width):
            if kinds & _kind(cut, missing):
                key = _joint(data, left + cut, seam, seam + width - missing)
                if tables.joints[_slot(key, tables.joints)] == key:
                    return True
    return False
