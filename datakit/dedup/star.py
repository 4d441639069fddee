"""Who stays: each near-duplicate row is dropped for a kept row that it truly resembles."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from datakit.dedup.components import first_of_component
from datakit.dedup.lsh import Buckets
from datakit.dedup.memory import Memory, parts
from datakit.native import Kernels

_kernels_sets, _kernels_star = Kernels("datakit.dedup._kernels_sets"), Kernels("datakit.dedup._kernels_star")
_COUNTERS, _CLASSES, _LEVELS = 1 << 22, 64 << 7, 34  # as the kernels count shingles, sizes of sets, bits of a counter
_MAX_SLOTS = 1 << 24
_ROOM_BYTES, _ROOM_SHARE = 8, 4  # a row takes in each thread's room; rooms take no more than this part of the memory
_ROWS_AT_ONCE = 1 << 10  # then mapped memory is given back: for each set looked at the system may map 2 MiB

BLOCK_ROWS = 1 << 14
"""Rows that are held against what was kept before them at one time. It is the same however many threads there are, and
so are the counts of what was done."""

CROWD = 64
"""Kept rows in a bucket from which on they are looked up in an index instead of compared one by one."""


class Rows(NamedTuple):
    """The rows to decide about, in the policy's order, and the similarity that makes duplicates, as a ratio.

    of_row int32 (bands, rows): each row's buckets, -1 for none; address uint64 and length int64 (rows,): its set.
    sided: 1 where the answers have to be similar enough too (`sides`).
    """

    of_row: Any
    address: Any
    length: Any
    numerator: int
    denominator: int
    sided: int


class Lists(NamedTuple):
    """The kept rows of each bucket in order.

    ends int32 (buckets, 4): the first, the last, the first of the last block of rows that one was kept of, each -1
    at first; how many there are. Side by side, since they are looked up at random. after int32 (bands, rows), -1 at
    first: the next one.
    """

    ends: Any
    after: Any


class Index(NamedTuple):
    """Kept rows by the rarest shingles of their sets: a hash table with chains.

    counters uint32: how often shingles occur, by their leading bits. heads (-1) int64: first node of each slot.
    keys uint64, owners int32, nexts int64 (nodes,). per_class (0) int64: rows by class of size. used (0) int64 (1,):
    nodes. indexed (0) int8 (rows,).
    """

    counters: Any
    heads: Any
    keys: Any
    owners: Any
    nexts: Any
    per_class: Any
    used: Any
    indexed: Any


class Block(NamedTuple):
    """What a row is compared with: kept rows from `since` on, which have nodes of the index from `oldest` on."""

    since: int
    oldest: int


class Room(NamedTuple):
    """Room to work in: mark (-1) and found int32 (rows,), levels int64 and ordered uint64 (size of the largest set,),
    begins int64 (34,)."""

    mark: Any
    found: Any
    levels: Any
    ordered: Any
    begins: Any


@dataclass(frozen=True, slots=True)
class Clusters:
    """For rows in the policy's order: who stays, and how similar the others are to it.

    `survivor` int64 (rows,): the row that stays for this one, -1 where the row stays itself. `similarity` float64
    (rows,): exact Jaccard similarity with the survivor, rounded to 1e-3; 1 where the row stays.
    """

    survivor: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float64]
    pairs_compared: int
    entries_visited: int


def star(
    buckets: Buckets,
    address: npt.NDArray[np.uint64],
    length: npt.NDArray[np.int64],
    least: Fraction,
    memory: Memory,
    crowd: int = CROWD,
    settled: int = 0,
    sided: bool = False,
    workers: int = 1,
    block_rows: int = BLOCK_ROWS,
) -> Clusters:
    """A row is dropped exactly if an earlier kept row shares a band and their Jaccard similarity is at least `least`.

    Of several such rows the first is named. The first `settled` rows are kept without a comparison: an earlier run did.
    Rows are in the policy's order; `address` and `length` say where each row's set of shingles lies (`_kernels_sets`).
    The similarity is compared as a ratio of counts, without rounding. Where rows are preference pairs with their sides
    apart (`sided`), their answers must be as similar too.
    """
    rows = Rows(buckets.of_row, address, length, least.numerator, least.denominator, int(sided))
    lists = Lists(*(memory.full(shape, -1, np.int32) for shape in ((len(buckets.sizes), 4), buckets.of_row.shape)))
    lists.ends[:, 3] = 0
    survivor, shared = (memory.full(length.shape, value, np.int64) for value in (-1, 0))
    index = _index(rows, buckets.sizes, crowd, memory)
    rooms = [_room(length, memory) for _ in range(_threads(workers, len(length), memory))]
    free, counts = deque(rooms), np.zeros(2, np.int64)

    def look_back(part: range) -> npt.NDArray[np.int64]:
        room, tried = free.popleft(), np.zeros(2, np.int64)  # there are as many as threads
        before = rows, settled, Block(0, 0), crowd, lists, index, survivor, shared
        _kernels_star.look_back(*before, part.start, part.stop, room, tried)
        memory.release()
        free.append(room)
        return tried

    with ThreadPoolExecutor(len(rooms)) as pool:
        for block in _ranges(range(len(length)), block_rows):
            counts += sum(pool.map(look_back, _ranges(block, _ROWS_AT_ONCE)))
            decided = rows, settled, Block(block.start, int(index.used[0])), crowd, lists, index, survivor, shared
            _kernels_star.settle(*decided, block.start, block.stop, rooms[0], counts)
            memory.release()
    compared, visited = counts.tolist()
    return Clusters(survivor, _similarity(survivor, shared, length, memory), compared, visited)


def _ranges(rows: range, size: int) -> list[range]:
    return [range(begin, min(begin + size, rows.stop)) for begin in range(rows.start, rows.stop, size)]


def _threads(workers: int, rows: int, memory: Memory) -> int:
    """As many as have room to work in."""
    return max(1, min(workers, memory.bytes // _ROOM_SHARE // max(_ROOM_BYTES * rows, 1)))


def _index(rows: Rows, bucket_sizes: npt.NDArray[np.int64], crowd: int, memory: Memory) -> Index:
    """An empty index with room for the rows of large buckets, whose shingles are counted."""
    nodes, slots, counters = 0, 1024, np.zeros(0, np.uint32)
    if (bucket_sizes > crowd).any():
        counters = memory.full((_COUNTERS,), 0, np.uint32)
        nodes = _kernels_star.count_shingles(rows, bucket_sizes, crowd, counters)
    while slots < min(nodes, _MAX_SLOTS):
        slots *= 2
    keys, owners, nexts = (memory.full((nodes,), 0, dtype) for dtype in (np.uint64, np.int32, np.int64))
    heads, indexed = memory.full((slots,), -1, np.int64), memory.full(rows.length.shape, 0, np.int8)
    return Index(counters, heads, keys, owners, nexts, np.zeros(_CLASSES, np.int64), np.zeros(1, np.int64), indexed)


def _room(length: npt.NDArray[np.int64], memory: Memory) -> Room:
    mark, found = (memory.full(length.shape, -1, np.int32) for _ in range(2))
    longest = int(length.max(initial=0))
    return Room(mark, found, np.empty(longest, np.int64), np.empty(longest, np.uint64), np.empty(_LEVELS, np.int64))


def components(
    buckets: Buckets, address: npt.NDArray[np.uint64], length: npt.NDArray[np.int64], memory: Memory
) -> Clusters:
    """The first row of each chain of shared bands stays. The similarity with it is exact, and may be low."""
    first = first_of_component(buckets)
    survivor = np.where(first == np.arange(len(first)), -1, first)
    shared = np.zeros(len(first), dtype=np.int64)
    _kernels_sets.shared_with(address, length, survivor, shared)
    return Clusters(survivor, _similarity(survivor, shared, length, memory), int((survivor >= 0).sum()), 0)


def _similarity(
    survivor: npt.NDArray[np.int64], shared: npt.NDArray[np.int64], length: npt.NDArray[np.int64], memory: Memory
) -> npt.NDArray[np.float64]:
    similarity = memory.full(survivor.shape, 1, np.float64)
    for part in parts(len(survivor)):
        dropped = part.start + np.flatnonzero(survivor[part] >= 0)
        both = shared[dropped]
        similarity[dropped] = to_thousandths(both, length[dropped] + length[survivor[dropped]] - both)
    return similarity


def to_thousandths(shared: npt.NDArray[np.int64], union: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """shared / union rounded to 1e-3 (halves up) from the counts themselves, so that every host agrees; 0 / 0 is 0."""
    whole = np.maximum(union, 1)
    thousandths: npt.NDArray[np.int64] = (2000 * shared + whole) // (2 * whole)
    return thousandths / 1000
