"""Who stays: from the sketches of one group of rows to those that are dropped, each with the row that stays for it.

Rows with an equal digest count as one, and the first of them in the policy's order stands for it. A conversation that
another one begins with is dropped for the longest such one. The others are compared within their LSH buckets: a star
has a kept row in its middle, and drops the rows that are similar enough to it, so that no row is dropped for a chain of
others. Where the first row of equal ones is dropped, the others are dropped for the same row. So every row that is
named as `duplicate_of` stays.
"""

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.dedup import _kernels_cluster as kernels
from datakit.dedup.comparison import Flags, Hashes, Numbers, exact_ratio, policy_order
from datakit.dedup.minhash import find_buckets
from datakit.dedup.shuffle import Memory, Rows, first_of_equals
from datakit.dedup.stage import DedupConfig

_COUNTERS, _CLASSES, _LEVELS = 1 << 22, 64 << 7, 34  # as the kernels count shingles, sizes of sets, bits of a counter
_MAX_SLOTS = 1 << 24
_ROWS_AT_ONCE = 1 << 10  # before mapped memory is released: the system may map 2 MiB for each set

INDEX_THRESHOLD = 64
"""Kept rows of a bucket above which they are found through an index instead of compared one by one."""

EXACT, LOOSE, NEAR, PREFIX = range(4)
REASONS = ("exact_duplicate", "loose_duplicate", "near_duplicate", "prefix")
"""Why a row is dropped, by these codes."""


class Verdict(NamedTuple):
    """The decision about each row of a group, in their order.

    `survivor` int64 (rows,): the row that stays for it, -1 where it stays itself. `similarity` float64 (rows,).
    `reason` int64 (rows,): a code of `REASONS`. `looser` bool (rows,): it stays, and `match = "loose"` would drop it.
    `facts`: counts of candidates, by `FACTS`.
    """

    survivor: Numbers
    similarity: npt.NDArray[np.float64]
    reason: Numbers
    looser: Flags
    facts: dict[str, int]


class Fate(NamedTuple):
    """What becomes of rows, by their place in the order; of equal ones the first has it for all.

    target int64: the row that stays for it, or itself; similarity float64 with that row; code int64: why it is dropped,
    if not because its digest is equal.
    """

    target: Numbers
    similarity: npt.NDArray[np.float64]
    code: Numbers


def decide(rows: Rows, config: DedupConfig, memory: Memory) -> Verdict:
    """Compare the rows of a group with each other; rows of earlier runs stay."""
    names = rows.batches[0].schema.names
    order = policy_order(rows, rows.column("row_key", memory), config.policy)
    if "prefixes" in names:  # of conversations the longer ones first, so that they stay for their prefixes
        turns = rows.column("turns", memory).astype(np.int64)
        new = order[rows.old :]
        order[rows.old :] = new[np.argsort(-turns[new], kind="stable")]
    # From here on, a row is given by its place in `order`: rows that are decided earlier have lower ones.
    places, row_of = np.arange(len(order)), np.argsort(order)
    digests = {name: rows.digests(name).take(pa.array(order)) for name in ("digest", "loose", "whole") if name in names}
    equal = digests["loose" if config.match == "loose" and "loose" in names else "digest"]
    exact, prompts = first_of_equals(digests["digest"]), first_of_equals(equal)
    first = first_of_equals(digests["whole"]) if "whole" in names else prompts
    fate = Fate(places.copy(), np.ones(len(order)), np.full(len(order), LOOSE))
    target, similarity = fate.target, fate.similarity
    if "whole" in names:  # of the first rows with a prompt so many stay
        firsts = np.flatnonzero(first == places)
        more = firsts[_number_among_equals(prompts[firsts]) >= config.keep_per_prompt]
        target[more] = prompts[more]
    if "prefixes" in names:
        _drop_prefixes(rows, row_of, first, equal, fate)
    facts = dict.fromkeys(FACTS, 0)
    if "shingles" in names:
        stays = (target == places)[first]
        facts = _drop_similar(rows, order, np.where(stays, first, -1), config, memory, fate)
        similarity = similarity[target] * similarity  # a prefix of a row that is dropped
        target = target[target]
    dropped = target[first] != places
    dropped[: rows.old] = False
    survivor = np.where(dropped, target[first], -1)
    reason = np.where(exact == exact[survivor], EXACT, fate.code[first])
    looser = np.zeros(len(order), np.bool_)
    if "loose" in names and config.match != "loose":
        kept = np.flatnonzero(~dropped)
        again = _number_among_equals(first_of_equals(digests["loose"].take(pa.array(kept)))) >= config.keep_per_prompt
        looser[kept] = again & (kept >= rows.old)
    survivor = np.where(dropped, order[survivor], -1)
    return Verdict(survivor[row_of], similarity[first][row_of], reason[row_of], looser[row_of], facts)


def _number_among_equals(group: Numbers) -> Numbers:
    """For each element how many before it have the same value."""
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    number = np.empty_like(order)
    number[order] = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    return number


def _drop_prefixes(rows: Rows, place: Numbers, first: Numbers, digests: pa.Array, fate: Fate) -> None:
    """Drop the first rows that others begin with for the longest of these, of two the earlier one. That one is no
    prefix itself: what begins with it would be longer. `place` has the place of each row in the order."""
    lists = pa.chunked_array(batch.column("prefixes") for batch in rows.batches)
    counts = pc.list_value_length(lists).to_numpy()
    firsts = np.flatnonzero(first == np.arange(len(first)))
    beginnings = [batch.column("prefixes").flatten() for batch in rows.batches]
    begun = first_of_equals(pa.concat_arrays([digests.take(pa.array(firsts)), *beginnings]))[len(firsts) :]
    known = begun < len(firsts)
    owner, turns, begun = np.repeat(place, counts)[known], np.repeat(counts, counts)[known], firsts[begun[known]]
    longest = np.lexsort((owner, -turns, begun))
    which, at = np.unique(begun[longest], return_index=True)
    new = which >= rows.old
    fate.target[which[new]], fate.code[which[new]] = first[owner[longest][at]][new], PREFIX


def _drop_similar(
    rows: Rows, order: Numbers, first: Numbers, config: DedupConfig, memory: Memory, fate: Fate
) -> dict[str, int]:
    """Drop the first rows that are similar enough to kept ones; `first` is -1 where a row is not compared.

    The sketch of any of equal rows may hold their shingles.
    """
    names = rows.batches[0].schema.names
    address, length = shingles_at(rows, memory)
    described = np.flatnonzero((length[order] > 0) & (first >= 0))
    firsts, at = np.unique(first[described], return_index=True)
    copies = order[described[at]]
    bands = [memory.take(rows.column(f"band{n}", memory), copies) for n in range(config.num_bands)]
    of_row, sizes = find_buckets(bands, len(copies), memory)
    least = exact_ratio(config.threshold)
    candidates = Candidates(
        of_row, address[copies], length[copies], least.numerator, least.denominator, "turns" in names,
        config.keep_per_prompt, int(np.searchsorted(firsts, rows.old)), INDEX_THRESHOLD,
    )  # fmt: skip
    survivor, alike, counts = star(candidates, sizes, memory)
    dropped = survivor >= 0
    fate.target[firsts[dropped]], fate.code[firsts[dropped]] = firsts[survivor[dropped]], NEAR
    fate.similarity[firsts] = alike
    pairs = int((sizes * (sizes - 1) // 2).sum())  # of rows in one bucket, once for each band that they share
    found = (len(sizes), int(sizes.max(initial=0)), pairs, *counts, int(dropped.sum()))
    return dict(zip(FACTS, found, strict=True))


FACTS = ("buckets", "largest_bucket_rows", "pairs_in_buckets", "pairs_compared", "entries_visited", "pairs_similar")


def shingles_at(rows: Rows, memory: Memory) -> tuple[Hashes, Numbers]:
    """(address uint64, length int64) of the set of shingles of each row, in the memory of the batches."""
    address, length = (memory.full((len(rows),), 0, dtype) for dtype in (np.uint64, np.int64))
    for batch, begin in zip(rows.batches, rows.begins, strict=False):
        lists, at = batch.column("shingles"), slice(begin, begin + batch.num_rows)
        starts = np.frombuffer(lists.buffers()[1], dtype=np.int64)[lists.offset : lists.offset + len(lists) + 1]
        values = lists.values.buffers()[1]
        address[at] = (values.address if values is not None else 0) + (lists.values.offset + starts[:-1]) * 8
        length[at] = np.diff(starts)
    return address, length


# Stars. The kernels describe the technique.


Candidates = namedtuple(
    "Candidates", "of_row address length numerator denominator by_turn keep settled index_threshold"
)
"""The rows to decide about, in the policy's order, and the similarity of duplicates as a ratio.

of_row int32 (bands, rows): each row's buckets, -1 for none; address uint64 and length int64 (rows,): its set. by_turn:
each turn must be similar enough. keep: how many rows that are similar stay. settled: how many of the first rows are
kept without a comparison, since an earlier run compared them. index_threshold: as `INDEX_THRESHOLD`.
"""

BucketLists = namedtuple("BucketLists", "begins counts rows")
"""The kept rows of each bucket, at most `index_threshold` + 1, in order.

Those of bucket b are `rows[begins[b]:begins[b] + counts[b]]`; begins int64 and counts (0) int64 (buckets,), rows int32
with space for the smaller of the bucket's size and that number.
"""

PrefixIndex = namedtuple("PrefixIndex", "counters heads keys owners nexts per_class used indexed")
"""Kept rows of large buckets by the rarest shingles of their sets: a hash table with chains, newest first.

counters uint32: how often shingles occur, by bits of a hash. heads (-1) int64: first node of each slot, a power of two.
keys uint64, owners int32, nexts int64 (nodes,). per_class (0) int64: rows by class of size. used (0) int64 (1,):
nodes. indexed (0) int8 (rows,).
"""

Scratch = namedtuple("Scratch", "mark found levels ordered begins")
"""Scratch buffers: mark (-1) and found int32 (rows,), levels int64 and ordered uint64 (size of the largest set,),
begins int64 (34,)."""


def star(rows: Any, sizes: Numbers, memory: Memory) -> tuple[Numbers, npt.NDArray[np.float64], list[int]]:
    """A row is dropped exactly if earlier kept rows, `keep` of them, share a band and are similar enough.

    `rows` are `Candidates`, `sizes` those of their buckets. The first such row is named. The similarity is compared as
    a ratio of counts, without rounding. With `by_turn` the least similar turn decides.

    Returns int64 (rows,), the row that stays for each, -1 where it stays itself; float64 (rows,), the exact Jaccard
    similarity with it (of conversations that of the least similar turn), rounded to 1e-3, 1 where the row stays; and
    how many pairs were compared and entries of lists visited.
    """
    length = rows.length
    space = np.minimum(sizes, rows.index_threshold + 1)
    lists = BucketLists(np.cumsum(space) - space, np.zeros_like(space), memory.full((int(space.sum()),), 0, np.int32))
    index = _empty_index(rows, sizes, memory)
    survivor, shared = (memory.full(length.shape, value, np.int64) for value in (-1, 0))
    mark, found = (memory.full(length.shape, -1, np.int32) for _ in range(2))
    longest = int(length.max(initial=0))
    scratch = Scratch(
        mark, found, np.empty(longest, np.int64), np.empty(longest, np.uint64), np.empty(_LEVELS, np.int64)
    )
    counts = np.zeros(2, np.int64)
    for begin in range(0, len(length), _ROWS_AT_ONCE):
        end = min(begin + _ROWS_AT_ONCE, len(length))
        kernels.decide(rows, lists, index, survivor, shared, begin, end, scratch, counts)
        memory.release()
    similarity, dropped = np.ones(len(length)), survivor >= 0
    both = shared[dropped]
    union = length[dropped] + length[survivor[dropped]] - both
    # rounded to 1e-3, halves up, from the counts themselves, so that every host agrees
    similarity[dropped] = (both if rows.by_turn else (2000 * both + union) // (2 * union)) / 1000
    return survivor, similarity, counts.tolist()


def _empty_index(rows: Any, bucket_sizes: Numbers, memory: Memory) -> Any:
    """An empty index with space for the rows of large buckets, whose shingles are counted."""
    nodes, slots, counters = 0, 1024, np.zeros(0, np.uint32)
    if (bucket_sizes > rows.index_threshold).any():
        counters = memory.full((_COUNTERS,), 0, np.uint32)
        nodes = kernels.count_shingles(rows, bucket_sizes, counters)
    while slots < min(nodes, _MAX_SLOTS):
        slots *= 2
    keys, owners, nexts = (memory.full((nodes,), 0, dtype) for dtype in (np.uint64, np.int32, np.int64))
    heads, indexed = memory.full((slots,), -1, np.int64), memory.full(rows.length.shape, 0, np.int8)
    per_class, used = np.zeros(_CLASSES, np.int64), np.zeros(1, np.int64)
    return PrefixIndex(counters, heads, keys, owners, nexts, per_class, used, indexed)


def size_histogram(dropped_for: dict[int, int], kept: int) -> dict[str, int]:
    """Kept rows by the size of their cluster: 1, 2, 3, then ranges that double ("4-7", "8-15", ...).

    `dropped_for`: how many rows others are dropped for, by how many these are.
    """
    found = {"1": kept - sum(dropped_for.values())}
    for size, rows in sorted((count + 1, rows) for count, rows in dropped_for.items()):
        low = 1 << size.bit_length() - 1
        name = str(size) if size < 4 else f"{low}-{2 * low - 1}"
        found[name] = found.get(name, 0) + rows
    return {name: rows for name, rows in found.items() if rows}
