"""Who stays: exact duplicates first, then each near-duplicate row is dropped for a kept row that it truly resembles."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from datakit.dedup.exact import Memory, first_of_equals, parts
from datakit.dedup.index import Earlier, live_rows
from datakit.dedup.minhash import Buckets, Sketches, candidate_probability, find_buckets, open_sketches
from datakit.dedup.stage import alarms
from datakit.errors import ConfigError
from datakit.native import Kernels

if TYPE_CHECKING:
    from datakit.dedup.stage import DedupConfig


_kernels = Kernels("datakit.dedup._kernels_cluster")
_COUNTERS, _CLASSES, _LEVELS = 1 << 22, 64 << 7, 34  # as the kernels count shingles, sizes of sets, bits of a counter
_MAX_SLOTS = 1 << 24
_ROOM_BYTES, _ROOM_SHARE = 8, 4  # a row takes in each thread's room; rooms take no more than this part of the memory
_ROWS_AT_ONCE = 1 << 10  # of all threads; then mapped memory is given back: for each set the system may map 2 MiB

BLOCK_ROWS = 1 << 14
"""Rows that are held against what was kept before them at one time. It is the same however many threads there are, and
so are the counts of what was done."""

CROWD = 64
"""Kept rows in a bucket from which on they are looked up in an index instead of compared one by one."""


class Ranked(NamedTuple):
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
    Rows are in the policy's order; `address` and `length` say where each row's set of shingles lies.
    The similarity is compared as a ratio of counts, without rounding. Where rows are preference pairs with their sides
    apart (`sided`), their answers must be as similar too.
    """
    rows = Ranked(buckets.of_row, address, length, least.numerator, least.denominator, int(sided))
    lists = Lists(*(memory.full(shape, -1, np.int32) for shape in ((len(buckets.sizes), 4), buckets.of_row.shape)))
    lists.ends[:, 3] = 0
    survivor, shared = (memory.full(length.shape, value, np.int64) for value in (-1, 0))
    index = _index(rows, buckets.sizes, crowd, memory)
    rooms = [_room(length, memory) for _ in range(_threads(workers, len(length), memory))]
    free, counts = deque(rooms), np.zeros(2, np.int64)

    def look_back(part: range) -> npt.NDArray[np.int64]:
        room, tried = free.popleft(), np.zeros(2, np.int64)  # there are as many as threads
        before = rows, settled, Block(0, 0), crowd, lists, index, survivor, shared
        _kernels.look_back(*before, part.start, part.stop, room, tried)
        memory.release()
        free.append(room)
        return tried

    with ThreadPoolExecutor(len(rooms)) as pool:
        for block in _ranges(range(len(length)), block_rows):
            counts += sum(pool.map(look_back, _ranges(block, max(_ROWS_AT_ONCE // len(rooms), 1))))
            decided = rows, settled, Block(block.start, int(index.used[0])), crowd, lists, index, survivor, shared
            for part in _ranges(block, 2 * _ROWS_AT_ONCE):  # few of them are compared here
                _kernels.settle(*decided, part.start, part.stop, rooms[0], counts)
                memory.release()
    compared, visited = counts.tolist()
    return Clusters(survivor, _similarity(survivor, shared, length, memory), compared, visited)


def _ranges(rows: range, size: int) -> list[range]:
    return [range(begin, min(begin + size, rows.stop)) for begin in range(rows.start, rows.stop, size)]


def _threads(workers: int, rows: int, memory: Memory) -> int:
    """As many as have room to work in."""
    return max(1, min(workers, memory.bytes // _ROOM_SHARE // max(_ROOM_BYTES * rows, 1)))


def _index(rows: Ranked, bucket_sizes: npt.NDArray[np.int64], crowd: int, memory: Memory) -> Index:
    """An empty index with room for the rows of large buckets, whose shingles are counted."""
    nodes, slots, counters = 0, 1024, np.zeros(0, np.uint32)
    if (bucket_sizes > crowd).any():
        counters = memory.full((_COUNTERS,), 0, np.uint32)
        nodes = _kernels.count_shingles(rows, bucket_sizes, crowd, counters)
    while slots < min(nodes, _MAX_SLOTS):
        slots *= 2
    keys, owners, nexts = (memory.full((nodes,), 0, dtype) for dtype in (np.uint64, np.int32, np.int64))
    heads, indexed = memory.full((slots,), -1, np.int64), memory.full(rows.length.shape, 0, np.int8)
    return Index(counters, heads, keys, owners, nexts, np.zeros(_CLASSES, np.int64), np.zeros(1, np.int64), indexed)


def _room(length: npt.NDArray[np.int64], memory: Memory) -> Room:
    mark, found = (memory.full(length.shape, -1, np.int32) for _ in range(2))
    longest = int(length.max(initial=0))
    return Room(mark, found, np.empty(longest, np.int64), np.empty(longest, np.uint64), np.empty(_LEVELS, np.int64))


def first_of_component(buckets: Buckets) -> npt.NDArray[np.int64]:
    """For each row the first row that a chain of shared bands leads to (itself where there is none), int64 (rows,).

    Candidates are not verified here: a chain may join rows that have nothing in common.
    """
    first: npt.NDArray[np.int64] = np.arange(buckets.of_row.shape[1])
    _kernels.first_of_component(buckets.of_row, np.full(len(buckets.sizes), -1), first)
    return first


def components(
    buckets: Buckets, address: npt.NDArray[np.uint64], length: npt.NDArray[np.int64], memory: Memory
) -> Clusters:
    """The first row of each chain of shared bands stays. The similarity with it is exact, and may be low."""
    first = first_of_component(buckets)
    survivor = np.where(first == np.arange(len(first)), -1, first)
    shared = np.zeros(len(first), dtype=np.int64)
    _kernels.shared_with(address, length, survivor, shared)
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


_DIGEST_BYTES = 96  # a row takes while digests are sorted: the digest twice, its place, the order, ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of each row, in the order of the sketches.

    `survivor` int64 (rows,): the row that stays in its place, -1 where it stays itself. `similarity` float64 (rows,).
    `exact` bool (rows,): the survivor's text is equal. Rows of indexes come first, and stay.
    """

    sketches: Sketches
    survivor: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float64]
    exact: npt.NDArray[np.bool_]
    facts: dict[str, Any]


def decide_all(
    paths: Sequence[Path],
    config: "DedupConfig",
    memory: Memory,
    workers: int,
    earlier: tuple[Earlier, ...] = (),
    sided: bool = False,
) -> Verdict:
    """Compare all rows of the sketch files, with each other and with the rows of earlier runs.

    `sided`: the rows are preference pairs, whose answers must be similar too (`sides`).

    Rows with equal text form a group, which its first row in the policy's order stands for. Those first rows are
    compared by `star` or `components`. Where the first row of a group is dropped, its copies are near duplicates of the
    same survivor, with the same similarity: every row that is named stays.

    Raises:
        ConfigError: the policy's column holds no number in any row.
        IntegrityError: an index is damaged.
    """
    for one in earlier:
        one.check(workers)
    sketches = open_sketches([*(path for one in earlier for path in one.paths), *paths], memory)
    old = live_rows(sketches, earlier)
    order = memory.keep(np.concatenate([old, _policy_order(sketches, config, sum(one.rows for one in earlier))]))
    first = _first_of_equals(sketches, order, memory)
    stands_for, clusters, buckets = _near(sketches, order, len(old), first, config, memory, workers, sided)
    survivor, similarity, exact = _carried_over(sketches, order, first, stands_for, clusters, memory)
    cluster_rows = np.bincount(survivor[survivor >= 0], minlength=1)
    facts = _facts(config, buckets, clusters) | {
        "largest_cluster_rows": int(cluster_rows.max(initial=0)) + (len(order) > 0),
        "alarms": alarms(sketches, survivor, cluster_rows, config),
    }
    memory.release()
    return Verdict(sketches, survivor, similarity, exact, facts)


def _carried_over(
    sketches: Sketches,
    order: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    stands_for: npt.NDArray[np.int64],
    clusters: Clusters,
    memory: Memory,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """From the rows that stand for groups to all rows, and from the policy's order to that of the sketches."""
    last, likeness = memory.full(order.shape, -1, np.int64), memory.full(order.shape, 1, np.float64)
    for part in parts(len(stands_for)):
        near = clusters.survivor[part]
        last[stands_for[part]] = np.where(near < 0, -1, stands_for[near])
        likeness[stands_for[part]] = clusters.similarity[part]
    rows = sketches.row_key.shape  # more than are in order where rows were removed from an index
    survivor, similarity = memory.full(rows, -1, np.int64), memory.full(rows, 1, np.float64)
    exact = np.zeros(rows, np.bool_)
    for part in parts(len(order)):
        row, group = order[part], first[part]
        near = last[group]
        place = np.where(near < 0, group, near)
        survivor[row] = np.where(place == np.arange(part.start, part.stop), -1, order[place])
        similarity[row], exact[row] = likeness[group], near < 0
    return survivor, similarity, exact


def _policy_order(sketches: Sketches, config: "DedupConfig", old: int) -> npt.NDArray[np.int64]:
    """Numbers of all but the first `old` rows in the policy's order, ties by row_key."""
    if config.policy == "first":
        keys = sketches.row_key[old:]
        in_order = bool((keys[1:] > keys[:-1]).all())  # as ingest numbers them
        return np.arange(old, old + len(keys)) if in_order else old + np.argsort(keys, kind="stable")
    rank = sketches.ranks()
    if len(rank) and np.isnan(rank).all():
        raise ConfigError(f"policy {config.policy!r}: no row has a number in the column {config.score_column!r}")
    return np.lexsort((sketches.row_key, -rank))  # NaN sorts last


def _first_of_equals(sketches: Sketches, order: npt.NDArray[np.int64], memory: Memory) -> npt.NDArray[np.int64]:
    """For each row in the policy's order the first with the same text, int64 (rows,), by ranges of the digests."""
    place, first = memory.full(sketches.row_key.shape, -1, np.int64), memory.full(order.shape, 0, np.int64)
    for part in parts(len(order)):
        place[order[part]] = np.arange(part.start, part.stop)
    ranges = memory.ranges(len(order) * _DIGEST_BYTES)
    for number in range(ranges):
        rows, digests = sketches.digests(number, ranges)
        places = place[rows]
        by_place = np.argsort(places)
        by_place = by_place[np.searchsorted(places[by_place], 0) :]  # rows that were removed from an index have none
        places = places[by_place]
        first[places] = places[first_of_equals(digests[by_place])]
        memory.release()
    return first


def _near(
    sketches: Sketches,
    order: npt.NDArray[np.int64],
    old: int,
    first: npt.NDArray[np.int64],
    config: "DedupConfig",
    memory: Memory,
    workers: int,
    sided: bool,
) -> tuple[npt.NDArray[np.int64], Clusters, Buckets]:
    """(the first rows of groups that have shingles, numbered in the policy's order; what became of them; buckets).

    The first `old` rows in that order stay.
    """
    copy = memory.full(order.shape, -1, np.int64)  # any copy of a text may be the one whose shingles were kept
    for part in reversed(parts(len(order))):
        described = part.start + np.flatnonzero(sketches.length[order[part]] > 0)[::-1]
        copy[first[described]] = described  # the first of them is written last
    groups = memory.keep(np.flatnonzero(copy >= 0))
    where = memory.take(order, memory.take(copy, groups))
    del copy
    buckets = find_buckets(lambda n: sketches.band(n, where, memory), config.num_bands, len(where), memory, workers)
    memory.release()
    address, length = memory.take(sketches.address, where), memory.take(sketches.length, where)
    if config.cluster == "star":
        settled = int(np.searchsorted(groups, old))
        buckets.leave_settled(settled)
        return (
            groups,
            star(buckets, address, length, config.least, memory, settled=settled, sided=sided, workers=workers),
            buckets,
        )
    return groups, components(buckets, address, length, memory), buckets


def _facts(config: "DedupConfig", buckets: Buckets, clusters: Clusters) -> dict[str, Any]:
    return {
        "lsh": {
            "num_perm": config.num_perm,
            "num_bands": config.num_bands,
            "rows_per_band": config.rows_per_band,
            "seed": config.seed,
            "candidate_probability": {
                f"{s / 100:.2f}": candidate_probability(s / 100, config.num_bands, config.rows_per_band)
                for s in range(0, 101, 5)
            },
        },
        "candidates": {
            "buckets": len(buckets.sizes),
            "largest_bucket_rows": int(buckets.sizes.max(initial=0)),
            "pairs_in_buckets": buckets.pairs,
            "pairs_compared": clusters.pairs_compared,
            "entries_visited": clusters.entries_visited,
            "pairs_similar": int((clusters.survivor >= 0).sum()),
        },
    }
