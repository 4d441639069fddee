"""Who stays: from sketches to the rows that are dropped, each with the row that stays for it.

Rows with equal text form a group, and the first row of a group stands for it. These first rows are compared within
their LSH buckets. `star` drops a row only for a kept row that is similar enough. `components` (union-find over similar
pairs) drops all rows of a chain but the first; it is there for comparison. Where the first row
of a group is dropped, its copies are near duplicates of the same row, with the same similarity. So every row that is
named as `duplicate_of` stays.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from datakit.dedup import _kernels_cluster as kernels
from datakit.dedup.alike import KEYS, Longer, longer_conversations
from datakit.dedup.exact import Memory, first_equal_rows, parts
from datakit.dedup.minhash import Buckets, Sketches, find_buckets
from datakit.dedup.stage import DedupConfig, candidate_probability, exact_ratio, policy_order

_COUNTERS, _CLASSES, _LEVELS = 1 << 22, 64 << 7, 34  # as the kernels count shingles, sizes of sets, bits of a counter
_MAX_SLOTS = 1 << 24
_WORDS = 64  # as the kernels choose among the first words of a conversation
_SCRATCH_BYTES, _SCRATCH_SHARE = 8, 4  # per row in each thread; scratch takes no more than this part of the memory
_ROWS_AT_ONCE = 1 << 10  # of all threads, before mapped memory is released: the system may map 2 MiB for each set

BLOCK_ROWS = 1 << 14
"""Rows that are compared at one time with what was kept before them. It does not depend on the number of threads, and
so the counts of comparisons do not either."""

_NO_FACTS = np.empty(0, np.uint64), np.empty(0, np.int32)
_NONE_LONGER = Longer(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))

INDEX_THRESHOLD = 64
"""Kept rows of a bucket above which they are found through an index instead of compared one by one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about each row, in the order of the sketches.

    `survivor` int64 (rows,): the row that stays for it, -1 where it stays itself. `similarity` float64 (rows,).
    `exact` bool (rows,): the survivor's text is equal. `prefix` bool (rows,): the survivor is a conversation that goes
    on. `cluster_rows` int64: how many rows are dropped for each row
    (it may be shorter than the rows). Rows of indexes come first, and stay.
    """

    sketches: Sketches
    survivor: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float64]
    exact: npt.NDArray[np.bool_]
    prefix: npt.NDArray[np.bool_]
    cluster_rows: npt.NDArray[np.int64]
    facts: dict[str, Any]


def decide(
    sketches: Sketches, old: int, config: DedupConfig, memory: Memory, workers: int, by_field: bool = False
) -> Verdict:
    """Compare rows with each other; the first `old` are of earlier runs, and stay.

    `by_field`: the rows are preference pairs, whose answers alone must be similar enough too.
    """
    order = memory.keep(np.concatenate([np.arange(old), _policy_order(sketches, config, old, memory)]))
    first = first_equal_rows(sketches, order, memory)
    groups, copies = _groups(sketches, order, first, memory)
    buckets = find_buckets(
        lambda n: memory.take(sketches.column(f"band{n}", memory), copies),
        KEYS - 1 if sketches.of_turns else config.num_bands, len(copies), memory, workers,
    )  # fmt: skip
    memory.release()
    address, length = memory.take(sketches.address, copies), memory.take(sketches.length, copies)
    if config.cluster == "star":
        settled = int(np.searchsorted(groups, old))
        buckets.leave_settled(settled)
        clusters = star(
            buckets, address, length, exact_ratio(config.threshold), memory, settled=settled, by_field=by_field,
            longer=longer_conversations(sketches, copies, memory) if sketches.of_turns else None,
            short_words=config.shingle_words, keep=config.keep_per_prompt, workers=workers,
        )  # fmt: skip
    else:
        clusters = components(buckets, address, length, exact_ratio(config.threshold), memory, by_field=by_field)
    survivor, similarity, exact = _to_all_rows(sketches, order, first, groups, clusters, memory)
    cluster_rows = np.bincount(survivor[survivor >= 0], minlength=1)
    memory.release()
    facts = {
        "buckets": len(buckets.sizes),
        "largest_bucket_rows": int(buckets.sizes.max(initial=0)),
        "pairs_in_buckets": buckets.pairs,
        "pairs_compared": clusters.pairs_compared,
        "entries_visited": clusters.entries_visited,
        "pairs_similar": int((clusters.survivor >= 0).sum()),
    }
    return Verdict(sketches, survivor, similarity, exact, _prefixes(sketches, survivor, memory), cluster_rows, facts)


def _policy_order(sketches: Sketches, config: DedupConfig, old: int, memory: Memory) -> npt.NDArray[np.int64]:
    """The rows that are not old in the policy's order; of conversations the longer ones first, so that they stay."""
    order = policy_order(sketches, sketches.row_key, config.policy, old, whole=False)
    if not sketches.of_turns:
        return order
    messages = sketches.column("messages", memory).astype(np.int64)
    return order[np.argsort(-messages[order], kind="stable")]


def _prefixes(sketches: Sketches, survivor: npt.NDArray[np.int64], memory: Memory) -> npt.NDArray[np.bool_]:
    """bool (rows,): the row is dropped for a conversation of more messages."""
    found = np.zeros(len(survivor), np.bool_)
    if sketches.of_turns:
        messages = sketches.column("messages", memory)
        for part in parts(len(survivor)):
            found[part] = (survivor[part] >= 0) & (messages[survivor[part]] > messages[part])
    return found


def _groups(
    sketches: Sketches, order: npt.NDArray[np.int64], first: npt.NDArray[np.int64], memory: Memory
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The groups of equal rows that have shingles: (places of their first rows in the policy's order, for each the row
    whose sketch holds the shingles, which may be any copy)."""
    copy = memory.full(order.shape, -1, np.int64)
    for part in reversed(parts(len(order))):
        described = part.start + np.flatnonzero(sketches.length[order[part]] > 0)[::-1]
        copy[first[described]] = described  # the first of them is written last
    groups = memory.keep(np.flatnonzero(copy >= 0))
    return groups, memory.take(order, memory.take(copy, groups))


def _to_all_rows(
    sketches: Sketches,
    order: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int64],
    clusters: "Clusters",
    memory: Memory,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Decisions about groups, in the policy's order -> decisions about all rows, in the order of the sketches."""
    last, likeness = memory.full(order.shape, -1, np.int64), memory.full(order.shape, 1, np.float64)
    for part in parts(len(groups)):
        near = clusters.survivor[part]
        last[groups[part]] = np.where(near < 0, -1, groups[near])
        likeness[groups[part]] = clusters.similarity[part]
    rows = sketches.row_key.shape  # more than `order` has, where rows were removed from an index
    survivor, similarity = memory.full(rows, -1, np.int64), memory.full(rows, 1, np.float64)
    exact = np.zeros(rows, np.bool_)
    for part in parts(len(order)):
        row, group = order[part], first[part]
        near = last[group]
        place = np.where(near < 0, group, near)
        survivor[row] = np.where(place == np.arange(part.start, part.stop), -1, order[place])
        similarity[row], exact[row] = likeness[group], near < 0
    return survivor, similarity, exact


def size_histogram(dropped_for: npt.NDArray[np.int64], kept: int) -> dict[str, int]:
    """Kept rows by the size of their cluster: 1, 2, 3, then ranges that double ("4-7", "8-15", ...).

    `dropped_for`: how many rows are dropped for each row; it may be shorter than the rows.
    """
    sizes = dropped_for[dropped_for > 0] + 1
    lows = np.array([2, 3, *(1 << n for n in range(2, 62))])
    counts = np.bincount(np.searchsorted(lows, sizes, side="right") - 1, minlength=1)
    names = [str(low) if low < 4 else f"{low}-{2 * low - 1}" for low in lows.tolist()]
    alone = {"1": kept - len(sizes)}
    return {name: n for name, n in (alone | dict(zip(names, counts.tolist(), strict=False))).items() if n}


def lsh_facts(config: DedupConfig) -> dict[str, Any]:
    """The parameters of the bands and the recall that they give, for the manifest."""
    return {
        "num_perm": config.num_perm,
        "num_bands": config.num_bands,
        "rows_per_band": config.rows_per_band,
        "seed": config.seed,
        "expected_recall": {
            f"{config.threshold:g}": candidate_probability(config.threshold, config.num_bands, config.rows_per_band)
        },
        "candidate_probability": {
            f"{s / 100:.2f}": candidate_probability(s / 100, config.num_bands, config.rows_per_band)
            for s in range(0, 101, 5)
        },
    }


# The two ways to cluster. Rows are numbered in the policy's order here; the kernels describe the technique.


class Candidates(NamedTuple):
    """The rows to decide about, in the policy's order, and the similarity of duplicates as a ratio.

    of_row int32 (bands, rows): each row's buckets, -1 for none; address uint64 and length int64 (rows,): its set.
    kind: 1 where the answers of preference pairs have to be similar enough too, 2 where the sets are the streams of
    conversations. settled: how many of the first rows are kept without a comparison. index_threshold: as
    `INDEX_THRESHOLD`. Of conversations: short_words, below which a turn is compared by letters; keep, how many rows
    that are alike stay; longer_begin and longer_end int64 (rows,), where the rows that may go on a row lie in longer
    int32; facts uint64 and word int32 (rows,), or none: by what rows of large buckets are found.
    """

    of_row: Any
    address: Any
    length: Any
    numerator: int
    denominator: int
    kind: int
    settled: int
    index_threshold: int
    short_words: int
    keep: int
    longer_begin: Any
    longer_end: Any
    longer: Any
    facts: Any
    word: Any


class BucketLists(NamedTuple):
    """Linked lists of the kept rows of each bucket, in order.

    ends int32 (buckets, 4): the first row, the last, the first that was kept of the last block of rows (each -1 at
    first), the number of rows. They lie side by side, since they are read at random. after int32 (bands, rows), -1 at
    first: the next row.
    """

    ends: Any
    after: Any


class PrefixIndex(NamedTuple):
    """Kept rows by the rarest shingles of their sets, or conversations by facts and a word: a hash table with chains.

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
    """What a row is compared with: kept rows from `since` on, whose nodes in the index begin at `oldest`, and longer
    conversations before `until`."""

    since: int
    oldest: int
    until: int


class Scratch(NamedTuple):
    """Scratch buffers of one thread: mark (-1) and found int32 (rows,), levels int64 and ordered uint64 (size of the
    largest set,), begins int64 (34,). places int64 and variants uint64 (64,): words of a row, hashes of one."""

    mark: Any
    found: Any
    levels: Any
    ordered: Any
    begins: Any
    places: Any
    variants: Any


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
    index_threshold: int = INDEX_THRESHOLD,
    settled: int = 0,
    by_field: bool = False,
    longer: Longer | None = None,
    short_words: int = 1,
    keep: int = 1,
    workers: int = 1,
    block_rows: int = BLOCK_ROWS,
) -> Clusters:
    """A row is dropped exactly if an earlier kept row shares a band and their Jaccard similarity is at least `least`.

    The first such row is named. The first `settled` rows are kept without a comparison: an earlier run compared them.
    Rows are in the policy's order; `address` and `length` say where each row's set of shingles lies. The similarity is
    compared as a ratio of counts, without rounding. With `by_field` the answers of preference pairs must be as similar
    too. With `longer` the rows are conversations, and `address` says where their streams lie: see `alike`. A row is
    then also dropped for a kept row that goes on after it, and only if `keep` kept rows are alike.
    """
    ratio, kind = (least.numerator, least.denominator), 2 if longer else int(by_field)
    found_by = (memory.full(length.shape, 0, dtype) for dtype in (np.uint64, np.int32)) if longer else _NO_FACTS
    rows = Candidates(
        buckets.of_row, address, length, *ratio, kind, settled, index_threshold, short_words, keep,
        *(longer or _NONE_LONGER), *found_by,
    )  # fmt: skip
    tally = memory.full((len(length) if keep > 1 else 1, 3), 0, np.int64)
    lists = _empty_lists(rows, buckets, memory)
    survivor, shared = (memory.full(length.shape, value, np.int64) for value in (-1, 0))
    index = _empty_index(rows, buckets.sizes, memory)
    threads = max(1, min(workers, memory.bytes // _SCRATCH_SHARE // max(_SCRATCH_BYTES * len(length), 1)))
    scratch = [_scratch(length, memory) for _ in range(threads)]
    free, counts = deque(scratch), np.zeros(2, np.int64)

    def look_back(part: range, begin: int) -> npt.NDArray[np.int64]:
        own, tried = free.popleft(), np.zeros(2, np.int64)  # there are as many as threads
        kernels.look_back(
            rows, Block(0, 0, begin), lists, index, survivor, shared, tally, part.start, part.stop, own, tried
        )  # fmt: skip
        memory.release()
        free.append(own)
        return tried

    with ThreadPoolExecutor(threads) as pool:
        for block in _ranges(range(len(length)), block_rows):
            parts_of_block = _ranges(block, max(_ROWS_AT_ONCE // threads, 1))
            counts += sum(pool.map(look_back, parts_of_block, [block.start] * len(parts_of_block)))
            within = Block(block.start, int(index.used[0]), block.stop)
            decided = rows, within, lists, index, survivor, shared, tally
            for part in _ranges(block, 2 * _ROWS_AT_ONCE):  # few of them are compared here
                kernels.decide_block(*decided, part.start, part.stop, scratch[0], counts)
                memory.release()
    compared, visited = counts.tolist()
    if kind == 2:
        return Clusters(survivor, np.where(survivor < 0, 1.0, shared / 1000), compared, visited)
    similarity = _similarity(survivor, shared, length, memory)
    return Clusters(survivor, similarity, compared, visited)


def _ranges(rows: range, size: int) -> list[range]:
    return [range(begin, min(begin + size, rows.stop)) for begin in range(rows.start, rows.stop, size)]


def _empty_lists(rows: Candidates, buckets: Buckets, memory: Memory) -> BucketLists:
    shapes = (len(buckets.sizes), 4), rows.of_row.shape
    lists = BucketLists(*(memory.full(shape, -1, np.int32) for shape in shapes))
    lists.ends[:, 3] = 0
    return lists


def _empty_index(rows: Candidates, bucket_sizes: npt.NDArray[np.int64], memory: Memory) -> PrefixIndex:
    """An empty index with space for the rows of large buckets, whose shingles are counted."""
    nodes, slots, counters = 0, 1024, np.zeros(0, np.uint32)
    large = (bucket_sizes > rows.index_threshold).any()
    if large and len(rows.facts):
        kernels.find_facts(rows, bucket_sizes, rows.facts)
        nodes = kernels.choose_words(rows, memory.keep(np.argsort(rows.facts, kind="stable")), rows.facts, rows.word)
    elif large:
        counters = memory.full((_COUNTERS,), 0, np.uint32)
        nodes = kernels.count_shingles(rows, bucket_sizes, counters)
    while slots < min(nodes, _MAX_SLOTS):
        slots *= 2
    keys, owners, nexts = (memory.full((nodes,), 0, dtype) for dtype in (np.uint64, np.int32, np.int64))
    heads, indexed = memory.full((slots,), -1, np.int64), memory.full(rows.length.shape, 0, np.int8)
    per_class, used = np.zeros(_CLASSES, np.int64), np.zeros(1, np.int64)
    return PrefixIndex(counters, heads, keys, owners, nexts, per_class, used, indexed)


def _scratch(length: npt.NDArray[np.int64], memory: Memory) -> Scratch:
    mark, found = (memory.full(length.shape, -1, np.int32) for _ in range(2))
    longest = int(length.max(initial=0))
    levels, ordered = np.empty(longest, np.int64), np.empty(longest, np.uint64)
    words = np.empty(_WORDS, np.int64), np.empty(_WORDS, np.uint64)
    return Scratch(mark, found, levels, ordered, np.empty(_LEVELS, np.int64), *words)


def components(
    buckets: Buckets,
    address: npt.NDArray[np.uint64],
    length: npt.NDArray[np.int64],
    least: Fraction,
    memory: Memory,
    index_threshold: int = INDEX_THRESHOLD,
    by_field: bool = False,
) -> Clusters:
    """The first row of each chain stays; neighbours in a chain share a band and are similar by at least `least`.

    The arguments are those of `star`. The similarity of a dropped row with the row that stays is exact, and may be
    lower than `least`.
    """
    ratio = least.numerator, least.denominator
    rows = Candidates(
        buckets.of_row, address, length, *ratio, int(by_field), 0, index_threshold, 1, 1, *_NONE_LONGER, *_NO_FACTS
    )
    lists, index = _empty_lists(rows, buckets, memory), _empty_index(rows, buckets.sizes, memory)
    jumps = memory.full(index.nexts.shape, -2, np.int64)
    first = memory.keep(np.arange(len(length)))
    scratch, counts = _scratch(length, memory), np.zeros(2, np.int64)
    for part in _ranges(range(len(length)), _ROWS_AT_ONCE):
        kernels.link_rows(rows, lists, index, jumps, first, part.start, part.stop, scratch, counts)
        memory.release()
    kernels.to_roots(first)
    survivor = np.where(first == np.arange(len(first)), -1, first)
    shared = np.zeros(len(first), dtype=np.int64)
    kernels.shared_with(address, length, survivor, shared)
    compared, visited = counts.tolist()
    return Clusters(survivor, _similarity(survivor, shared, length, memory), compared, visited)


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
