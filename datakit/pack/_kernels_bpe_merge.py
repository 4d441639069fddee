"""Byte-pair merges (Sennrich et al. 2016): the pair of lowest rank first, the leftmost of equals. Arrays only.

Short pieces are scanned for their best pair; long ones keep their pairs in a heap, so that a row of one letter a
million times over costs O(n log n).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from datakit.pack._kernels_bpe_split import kernel

NO_RANK = np.int32(0x7FFFFFFF)
SCAN_BYTES = 64
"""Pieces up to this many bytes are scanned."""

ID_BITS, RANK_BITS = 20, 24
"""Of a slot for a pair. No vocabulary known has a million tokens."""

_TOKEN, _LINK_RANK, _NEXT, _PREVIOUS = range(4)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing (Knuth, TAOCP 3, 6.4)
_32, _ID, _RANK = np.uint64(32), np.uint64(ID_BITS), np.uint64(RANK_BITS)
_RANKS = np.uint64((1 << RANK_BITS) - 1)


class MergeTables(NamedTuple):
    """The merges of a vocabulary."""

    byte_ids: npt.NDArray[np.int32]
    """(256) id of each byte, -1 for none: the library leaves such a byte out."""
    lacking: bool
    """Whether a byte of some UTF-8 text has no id."""
    byte_ranks: npt.NDArray[np.int32]
    """(65536) rank of each pair of bytes."""
    pairs: npt.NDArray[np.uint64]
    """Open addressing: left id << ID_BITS | right id, then RANK_BITS of rank: one line of memory a look."""
    products: npt.NDArray[np.int32]
    """Id that the merge of a rank makes."""


@kernel
def _slot(left, right, pairs):  # type: ignore[no-untyped-def]
    """A pair as its slot begins, and its slot, or the empty one where it would go; half of the slots are empty."""
    mask = np.uint64(len(pairs) - 1)
    key = np.uint64(left) << _ID | np.uint64(right)
    mixed = key * _MIX
    at = (mixed ^ (mixed >> _32)) & mask
    while pairs[at] >> _RANK != key and pairs[at] != _EMPTY:
        at = (at + np.uint64(1)) & mask
    return key << _RANK, at


@kernel
def pair_table(merges, pairs):  # type: ignore[no-untyped-def]
    """Fill `pairs` (all empty: 2**64 - 1; a power of two) with merges int32 (n, 2); a later rank of a pair counts."""
    for rank in range(len(merges)):
        key, at = _slot(merges[rank, 0], merges[rank, 1], pairs)
        pairs[at] = key | np.uint64(rank)


@kernel
def rank_of(left, right, tables):  # type: ignore[no-untyped-def]
    """Rank of a pair of ids."""
    found = tables.pairs[_slot(left, right, tables.pairs)[1]]
    return np.int32(found & _RANKS) if found != _EMPTY else NO_RANK


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
    return _scan(n, tables, ids, ranks)


@kernel
def merge_tokens(n, tables, ids, ranks):  # type: ignore[no-untyped-def]
    """Merge the n `ids` on, in place; returns how many are left. `ranks` has room for n."""
    for k in range(n - 1):
        ranks[k] = rank_of(ids[k], ids[k + 1], tables)
    return _scan(n, tables, ids, ranks)


@kernel
def _scan(n, tables, ids, ranks):  # type: ignore[no-untyped-def]
    """Merge n ids, of each the rank of the pair that it begins known; returns how many are left."""
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
            links[n, _TOKEN], links[n, _NEXT], links[n, _PREVIOUS], links[n, _LINK_RANK] = token, n + 1, n - 1, NO_RANK
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
        if links[k, _LINK_RANK] != top >> 32:
            continue
        links[k, _TOKEN] = tables.products[top >> 32]
        gone = links[k, _NEXT]
        links[gone, _LINK_RANK] = NO_RANK
        behind, before = links[gone, _NEXT], links[k, _PREVIOUS]
        links[k, _NEXT], links[k, _LINK_RANK] = behind, NO_RANK
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
    links[k, _LINK_RANK] = rank
    return size if rank == NO_RANK else _push(heap, size, np.int64(rank) << 32 | np.int64(k))


@kernel
def lacks_bytes(data, begin, end, tables):  # type: ignore[no-untyped-def]
    """Whether a byte of this text has no id: then tokens reach across it, and the text is not to be cut."""
    if tables.lacking:
        for i in range(begin, end):
            if tables.byte_ids[data[i]] < 0:
                return True
    return False
