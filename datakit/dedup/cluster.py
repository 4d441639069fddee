"""Who stays: from the sketches of one group of rows to those that are dropped, each with the row that stays for it.

Rows with an equal digest count as one, and the first of them in the policy's order stands for it. A conversation that
another one begins with is dropped for the longest such one. The others are compared within their LSH buckets: a star
has a kept row in its middle, and drops the rows that are similar enough to it, so that no row is dropped for a chain of
others. Where the first row of equal ones is dropped, the others are dropped for the same row. So every row that is
named as `duplicate_of` stays.

Rows are numbered in the policy's order and decided one after another (`decide`). While few rows of a bucket are kept,
they are compared one by one. Above `index_threshold` kept rows that would take time with the square of the bucket; then
a row is compared with the first of them, which drop most rows of a flood, and if it stays, with others that are found
through an index of prefixes (prefix filtering: Chaudhuri, Ganti and Kaushik, 2006; Bayardo, Ma and Srikant, 2007): of
two sets that must share k values, the rarest |A| - k + 1 of one and |B| - k + 1 of the other have one in common,
whatever order "rarest" means. So the filter loses no pair, and rows that differ in a few rare shingles, but in too many
to be duplicates, are never compared.

A set of shingle hashes is sorted and distinct, given by its address and length: the sets of all rows stay in the
memory-mapped files that they were written to. The caller keeps the mapping open. Those of documents are uint32, those
of conversations uint64 with the number of the turn in the high bits (`turn_digests.TURN_SHIFT`). Kernels are compiled
for each of the two.
"""

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from datakit.dedup.comparison import Flags, Hashes, Numbers, blocks, exact_ratio, policy_order
from datakit.dedup.minhash import find_buckets, first_of_equals
from datakit.dedup.shuffle import Memory, Rows, digest_halves
from datakit.dedup.stage import DedupConfig
from datakit.kernels import kernel

_STRIDE = 512  # merge steps between two checks whether enough can still be shared
_COUNTER_BITS = 22  # shingles are counted by that many bits of their hash: enough to distinguish rare from common ones
_CLASS_BITS = 7  # sizes of sets are distinguished to 1 part in 2 ** (bits - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TURN_SHIFT = np.uint64(48)  # turn_digests.TURN_SHIFT
_COUNTERS, _CLASSES, _LEVELS = 1 << _COUNTER_BITS, 64 << _CLASS_BITS, 34  # sizes of tables by them; bits of a counter
_MAX_SLOTS = 1 << 24
_FIRST = 4  # kept rows of a large bucket that are compared before the others are looked for
_FEW_CANDIDATES = 64  # that are sorted by insertion, which takes time with their square
_ROWS_AT_ONCE = 1 << 10  # before mapped memory is released: the system may map 2 MiB for each set

INDEX_THRESHOLD = 64
"""Kept rows of a bucket above which they are found through an index instead of compared one by one."""

EXACT, LOOSE, NEAR, PREFIX = range(4)
REASONS = ("exact_duplicate", "loose_duplicate", "near_duplicate", "prefix")
"""Why a row is dropped, by these codes."""


class Verdict(NamedTuple):
    """The decision about each row of a group, in their order.

    `survivor` int64 (rows,): the row that stays for it, -1 where it stays itself. `similarity` int16 (rows,), in
    thousandths. `reason` int8 (rows,): a code of `REASONS`. `looser` bool (rows,): it stays, and `match = "loose"`
    would drop it. `facts`: counts of candidates, by `FACTS`.
    """

    survivor: Numbers
    similarity: npt.NDArray[np.int16]
    reason: npt.NDArray[np.int8]
    looser: Flags
    facts: dict[str, int]


class Fate(NamedTuple):
    """What becomes of rows, by their place in the order; of equal ones the first has it for all.

    target int64: the row that stays for it, or itself; similarity int16 with that row, in thousandths; code int8: why
    it is dropped, if not because its digest is equal.
    """

    target: Numbers
    similarity: npt.NDArray[np.int16]
    code: npt.NDArray[np.int8]


def decide(rows: Rows, config: DedupConfig, memory: Memory) -> Verdict:
    """Compare the rows of a group with each other; rows of earlier runs stay.

    A group may have more rows than fit into memory: what has an entry for each row lies in files (`Memory`), where no
    array for one step alone is larger than two numbers a row.
    """
    names, count = rows.batches[0].schema.names, len(rows.numbers)
    order = policy_order(rows, config.policy, memory)
    if "prefixes" in names:  # of conversations the longer ones first, so that they stay for their prefixes
        turns, new = rows.column("turns", memory, np.int64), order[rows.old :]
        turns = memory.take(np.negative(turns, out=turns), new)
        order[rows.old :] = memory.take(new, np.argsort(turns, kind="stable"))
    # From here on, a row is given by its place in `order`: rows that are decided earlier have lower ones.
    digests = {
        name: memory.take(rows.column(name, memory), order) for name in ("digest", "loose", "whole") if name in names
    }
    equal = digests["loose" if config.match == "loose" and "loose" in names else "digest"]
    exact = first_of_equals(digests["digest"], memory.full)
    prompts = exact if equal is digests["digest"] else first_of_equals(equal, memory.full)
    first = first_of_equals(digests["whole"], memory.full) if "whole" in names else prompts
    target = memory.hold(np.arange(count))
    fate = Fate(target, memory.full((count,), 1000, np.int16), memory.full((count,), LOOSE, np.int8))
    if "whole" in names:  # of the first rows with a prompt so many stay
        more = _number_among_equals(prompts, first == target, memory) >= config.keep_per_prompt
        np.copyto(target, prompts, where=more)
    if "prefixes" in names:
        _drop_prefixes(rows, order, first, equal, fate, memory)
    facts = dict.fromkeys(FACTS, 0)
    if "shingles" in names:
        facts = _drop_similar(rows, order, first, config, memory, fate)
    survivor, similarity = memory.full((count,), -1, np.int64), memory.full((count,), 0, np.int16)
    reason, looser = memory.full((count,), 0, np.int8), memory.full((count,), 0, np.bool_)
    for block in blocks(count, rows.old):
        own, row = first[block], order[block]
        near = target[own]
        stays = target[near]  # a prefix may be one of a row that is dropped
        survivor[row] = np.where(stays == np.arange(block.start, block.stop), -1, order[stays])
        similarity[row] = np.minimum(fate.similarity[own], fate.similarity[near])
        reason[row] = np.where(exact[block] == exact[stays], EXACT, fate.code[own])
    if "loose" in names and config.match != "loose":
        stays = memory.take(survivor, order) < 0
        again = _number_among_equals(first_of_equals(digests["loose"], memory.full), stays, memory)
        looser[order] = again >= config.keep_per_prompt
        looser[: rows.old] = False
    return Verdict(survivor, similarity, reason, looser, facts)


@kernel
def _count_earlier(first, counted, seen, number):  # type: ignore[no-untyped-def]
    """Write `number` (0) of each row that is `counted`: how many of these before it have the same `first` row.

    `first` int64, below the number of rows; `seen` (0) int32: counted so far, by first row.
    """
    for row in range(len(first)):
        if counted[row]:
            number[row] = seen[first[row]]
            seen[first[row]] += 1


def _number_among_equals(first: Numbers, counted: Flags, memory: Memory) -> npt.NDArray[np.int32]:
    """For each row that is counted how many counted ones before it have the same first row; 0 for the others."""
    seen, number = (memory.full(first.shape, 0, np.int32) for _ in range(2))
    _count_earlier(first, counted, seen, number)
    return number


def _drop_prefixes(rows: Rows, order: Numbers, first: Numbers, digests: Hashes, fate: Fate, memory: Memory) -> None:
    """Drop the first rows that others begin with for the longest of these, of two the earlier one. That one is no
    prefix itself: what begins with it would be longer."""
    count, place = len(order), memory.full(order.shape, 0, np.int64)  # the place of each row in the order
    for block in blocks(count):
        place[order[block]] = np.arange(block.start, block.stop)
    firsts = memory.hold(np.flatnonzero(first == fate.target))
    beginnings = [digest_halves(batch.column("prefixes").flatten()) for batch in rows.batches]
    every = memory.full((len(firsts) + sum(map(len, beginnings)), 2), 0, np.uint64)
    np.concatenate([memory.take(digests, firsts), *beginnings], out=every)
    begun, at = first_of_equals(every, memory.full), len(firsts)
    # For each the longest that begins with it, as one number: turns come first, then the place, the earliest largest.
    best = memory.full(firsts.shape, -1, np.int64)
    for batch, begin in zip(rows.batches, rows.begins, strict=False):
        turns = pc.list_value_length(batch.column("prefixes")).to_numpy()
        values = turns * count + count - 1 - place[begin : begin + len(turns)]
        which, at = begun[at : at + turns.sum()], at + turns.sum()
        known = which < len(firsts)
        np.maximum.at(best, which[known], np.repeat(values, turns)[known])
        memory.release()
    for block in blocks(len(firsts), int(np.searchsorted(firsts, rows.old))):
        found = best[block] >= 0
        own, longest = firsts[block][found], count - 1 - best[block][found] % count
        fate.target[own], fate.code[own] = first[longest], PREFIX


@kernel
def _find_copies(order, length, first, target, copies):  # type: ignore[no-untyped-def]
    """For each first row that stays the first of the rows equal to it that has shingles; -1 in `copies` is left."""
    for place in range(len(order)):
        own = first[place]
        if copies[own] < 0 and target[own] == own and length[order[place]] > 0:
            copies[own] = order[place]


def _drop_similar(
    rows: Rows, order: Numbers, first: Numbers, config: DedupConfig, memory: Memory, fate: Fate
) -> dict[str, int]:
    """Drop the first rows that are similar enough to kept ones.

    The sketch of any of equal rows may hold their shingles.
    """
    names = rows.batches[0].schema.names
    address, length, like = shingles_at(rows, memory)
    copies = memory.full(first.shape, -1, np.int64)
    _find_copies(order, length, first, fate.target, copies)
    firsts = memory.hold(np.flatnonzero(copies >= 0))
    copies = memory.take(copies, firsts)
    bands = (memory.take(rows.column(f"band{n}", memory), copies) for n in range(config.num_bands))
    of_row, sizes = find_buckets(bands, (config.num_bands, len(copies)), memory)
    least = exact_ratio(config.threshold)
    candidates = Candidates(
        of_row, memory.take(address, copies), memory.take(length, copies), like, least.numerator, least.denominator,
        "turns" in names, config.keep_per_prompt, int(np.searchsorted(firsts, rows.old)), INDEX_THRESHOLD,
    )  # fmt: skip
    survivor, similarity, counts = star(candidates, sizes, memory)
    similar = 0
    for block in blocks(len(firsts)):
        dropped = survivor[block] >= 0
        own = firsts[block][dropped]
        fate.target[own], fate.code[own] = firsts[survivor[block][dropped]], NEAR
        fate.similarity[own] = similarity[block][dropped]
        similar += len(own)
    pairs = int(np.dot(sizes, sizes) - sizes.sum()) // 2  # of rows in one bucket, once for each band that they share
    found = (len(sizes), int(sizes.max(initial=0)), pairs, *counts, similar)
    return dict(zip(FACTS, found, strict=True))


FACTS = ("buckets", "largest_bucket_rows", "pairs_in_buckets", "pairs_compared", "entries_visited", "pairs_similar")


def shingles_at(rows: Rows, memory: Memory) -> tuple[Hashes, Numbers, npt.NDArray[Any]]:
    """(address uint64, length int64) of the set of shingles of each row, in the memory of the batches; an empty array
    of the type that the sets have."""
    address, length = (memory.full(rows.numbers.shape, 0, dtype) for dtype in (np.uint64, np.int64))
    like = np.empty(0, rows.batches[0].schema.field("shingles").type.value_type.to_pandas_dtype())
    for batch, begin in zip(rows.batches, rows.begins, strict=False):
        lists, at = batch.column("shingles"), slice(begin, begin + batch.num_rows)
        starts = np.frombuffer(lists.buffers()[1], dtype=np.int64)[lists.offset : lists.offset + len(lists) + 1]
        values = lists.values.buffers()[1]
        begin_of_all = values.address if values is not None else 0
        address[at] = begin_of_all + (lists.values.offset + starts[:-1]) * like.itemsize
        length[at] = np.diff(starts)
        memory.release()
    return address, length, like


# Stars: what the kernels work on.


Candidates = namedtuple(
    "Candidates", "of_row address length like numerator denominator by_turn keep settled index_threshold"
)
"""The rows to decide about, in the policy's order, fewer than 2**31, and the similarity of duplicates as a ratio of
numbers up to 1000.

of_row int32 (bands, rows): each row's buckets, -1 for none; address uint64 and length int64 (rows,): its set, with
values of the type of `like` (an empty array). by_turn: each turn must be similar enough. keep: how many rows that are
similar stay. settled: how many of the first rows are kept without a comparison, since an earlier run compared them.
index_threshold: as `INDEX_THRESHOLD`.
"""

BucketLists = namedtuple("BucketLists", "begins counts rows")
"""The kept rows of each bucket, at most `index_threshold` + 1, in order.

Those of bucket b are `rows[begins[b]:begins[b] + counts[b]]`; begins int64 and counts (0) int64 (buckets,), rows int32
with space for the smaller of the bucket's size and that number.
"""

PrefixIndex = namedtuple("PrefixIndex", "counters heads keys owners nexts per_class used indexed")
"""Kept rows of large buckets by the rarest shingles of their sets: a hash table with chains, newest first.

counters uint32: how often shingles occur, by bits of a hash (an overflow, like a collision, costs time alone). heads
(-1) int64: first node of each slot, a power of two. keys uint64, owners int32, nexts int64 (nodes,), with space for the
prefixes of all rows that may enter; a key that two shingles share costs a comparison. per_class (0) int64: rows by
class of size. used (0) int64 (1,): nodes. indexed (0) int8 (rows,).
"""

Scratch = namedtuple("Scratch", "mark found levels ordered begins")
"""Scratch buffers: mark (-1) and found int32 (rows,), levels int64 and ordered uint64 (size of the largest set,),
begins int64 (34,)."""


@intrinsic
def _pointer(context, address, like):  # type: ignore[no-untyped-def]
    """An address (uint64) as a pointer to values of the type of `like`, for `carray`. Nothing is checked."""
    signature = types.CPointer(like.dtype)(types.uint64, like)  # type: ignore[no-untyped-call]

    def generate(target, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], target.get_value_type(signature.return_type))

    return signature, generate


@kernel(inner=True)
def set_at(rows, row):  # type: ignore[no-untyped-def]
    """The set of a row as an array, without a copy."""
    return carray(_pointer(rows.address[row], rows.like), (rows.length[row],))  # type: ignore[call-arg]


# Two sets.


@kernel
def shared_values(a, b, least):  # type: ignore[no-untyped-def]
    """How many values two sets share, or -1 as soon as they cannot share `least`."""
    i, j, shared = 0, 0, 0
    while i < len(a) and j < len(b):
        if shared + min(len(a) - i, len(b) - j) < least:
            return -1
        steps = min(min(len(a) - i, len(b) - j), _STRIDE)
        for _ in range(steps):  # neither runs out: each step passes at most one value of each
            x, y = a[i], b[j]
            shared += x == y
            i += x <= y
            j += y <= x
    return shared if shared >= least else -1


@kernel
def least_shared(a, b, numerator, denominator):  # type: ignore[no-untyped-def]
    """The least number of shared values with which sets of sizes a and b are similar enough.

    |A and B| / |A or B| >= numerator / denominator, solved for the shared values and rounded up.
    """
    return (numerator * (a + b) + numerator + denominator - 1) // (numerator + denominator)


@kernel
def least_similar_turn(a, b, numerator, denominator):  # type: ignore[no-untyped-def]
    """The similarity of the least similar turn of two conversations in thousandths (halves up); -1 if it is too low.

    The values of turn t, those with t in the high bits, lie side by side in both sets, in the order of turns.
    """
    i, j, least = 0, 0, 1000
    while i < len(a) or j < len(b):
        turn = a[i] >> _TURN_SHIFT if i < len(a) else np.uint64(0xFFFF)
        if j < len(b):
            turn = min(turn, b[j] >> _TURN_SHIFT)
        first, second = i, j
        while i < len(a) and a[i] >> _TURN_SHIFT == turn:
            i += 1
        while j < len(b) and b[j] >> _TURN_SHIFT == turn:
            j += 1
        shared = shared_values(a[first:i], b[second:j], 0)
        union = i - first + j - second - shared
        if shared * denominator < numerator * union:
            return -1
        least = min(least, (2000 * shared + union) // (2 * union))
    return least


@kernel(inner=True)
def _compare(row, other, rows):  # type: ignore[no-untyped-def]
    """(what two rows share, -1 where they are not similar enough; 1 if their sets were compared, else 0).

    Conversations must share enough in all, which is quickly seen, and in each turn; what comes back is then the
    similarity of the least similar turn in thousandths.
    """
    size, length = rows.length[row], rows.length[other]
    least = least_shared(size, length, rows.numerator, rows.denominator)
    if min(size, length) < least:
        return -1, 0
    values, others = set_at(rows, row), set_at(rows, other)
    shared = shared_values(values, others, least)
    if shared >= 0 and rows.by_turn:
        return least_similar_turn(values, others, rows.numerator, rows.denominator), 1
    return shared, 1


# The index of kept rows of large buckets. Sets are told apart by classes of sizes, because the number of shingles that
# must be tried depends on both sizes.


@kernel
def size_class(size):  # type: ignore[no-untyped-def]
    """A number that grows with the size: the size itself below 2 ** _CLASS_BITS, then its leading bits."""
    exponent = 0
    while size >> exponent >= 1 << _CLASS_BITS:
        exponent += 1
    return (exponent << (_CLASS_BITS - 1)) + (size >> exponent)


@kernel
def least_of_class(number):  # type: ignore[no-untyped-def]
    """The least size of a class."""
    exponent = max((number >> (_CLASS_BITS - 1)) - 1, 0)
    return (number - (exponent << (_CLASS_BITS - 1))) << exponent


@kernel(inner=True)
def _smallest(size, rows):  # type: ignore[no-untyped-def]
    """The size of the smallest set that may be similar enough to a set of this size."""
    return (rows.numerator * size + rows.denominator - 1) // rows.denominator


@kernel(inner=True)
def _counter(value):  # type: ignore[no-untyped-def]
    return (value * _GOLDEN) >> np.uint64(64 - _COUNTER_BITS)


@kernel
def _count_shingles(rows, bucket_sizes, begin, end, counters):  # type: ignore[no-untyped-def]
    """Count the shingles of the rows of large buckets in `counters`, of those from `begin` to `end`; returns the nodes
    that an index of them needs."""
    nodes = 0
    for row in range(begin, end):
        large = False
        for band in range(rows.of_row.shape[0]):
            bucket = rows.of_row[band, row]
            large |= bucket >= 0 and bucket_sizes[bucket] > rows.index_threshold
        if large:
            nodes += rows.length[row] - _smallest(rows.length[row], rows) + 1
            for value in set_at(rows, row):
                counters[_counter(value)] += np.uint32(1)
    return nodes


@kernel(inner=True)
def _rarest_first(values, counters, scratch):  # type: ignore[no-untyped-def]
    """The values in the order of (bit length of the counter, value), which is the same for every set: by counting sort.

    `scratch.levels` and `scratch.ordered` hold the largest set, `scratch.begins` one entry a bit length and one more.
    """
    begins, levels, ordered = scratch.begins, scratch.levels, scratch.ordered
    begins[:] = 0  # a level is at most 32, the bits of a counter, and counted one behind its place
    for j in range(len(values)):
        count, level = np.int64(counters[_counter(values[j])]), 0
        while count >> level:
            level += 1
        levels[j] = level
        begins[level + 1] += 1
    for level in range(1, len(begins)):
        begins[level] += begins[level - 1]
    for j in range(len(values)):
        ordered[begins[levels[j]]] = values[j]
        begins[levels[j]] += 1
    return ordered[: len(values)]


@kernel(inner=True)
def _key(value, number):  # type: ignore[no-untyped-def]
    """Key of a shingle in sets of a size class."""
    key = (value ^ np.uint64(number) * _GOLDEN) * _GOLDEN
    return key ^ key >> np.uint64(32)


@kernel(inner=True)
def _insert(row, rows, index, scratch):  # type: ignore[no-untyped-def]
    """Add a kept row to the index, under the prefix that is enough for similar sets of any size."""
    size = rows.length[row]
    number = size_class(size)
    index.per_class[number] += 1
    prefix = size - _smallest(size, rows) + 1
    for value in _rarest_first(set_at(rows, row), index.counters, scratch)[:prefix]:
        key, node = _key(value, number), index.used[0]
        slot = np.int64(key & np.uint64(len(index.heads) - 1))
        index.keys[node], index.owners[node], index.nexts[node] = key, row, index.heads[slot]
        index.heads[slot] = node
        index.used[0] += 1


@kernel(inner=True)
def _share_bucket(of_row, row, other):  # type: ignore[no-untyped-def]
    for band in range(of_row.shape[0]):  # near-equal rows mostly share the first ones
        bucket = of_row[band, row]
        if bucket >= 0 and bucket == of_row[band, other]:
            return True
    return False


@kernel(inner=True)
def _probe(row, rows, index, scratch, count):  # type: ignore[no-untyped-def]
    """Add to those found the indexed rows that share a bucket and may be similar enough: (how many are found, nodes
    visited)."""
    visited, size, smallest = 0, rows.length[row], _smallest(rows.length[row], rows)
    ordered = _rarest_first(set_at(rows, row), index.counters, scratch)
    for number in range(size_class(smallest), size_class(rows.denominator * size // rows.numerator) + 1):
        if index.per_class[number] == 0:
            continue
        partner = max(least_of_class(number), smallest)
        tries = max(size - least_shared(size, partner, rows.numerator, rows.denominator) + 1, np.int64(0))
        for value in ordered[:tries]:  # these meet every similar set of the class
            key = _key(value, number)
            node = index.heads[np.int64(key & np.uint64(len(index.heads) - 1))]
            while node >= 0:
                visited += 1
                other = index.owners[node]
                if index.keys[node] == key and scratch.mark[other] != row:
                    scratch.mark[other] = row
                    if _share_bucket(rows.of_row, row, other):
                        scratch.found[count] = other
                        count += 1
                node = index.nexts[node]
    return count, visited


# The kept rows of buckets.


@kernel
def _walk(row, rows, lists, scratch):  # type: ignore[no-untyped-def]
    """Write the kept rows of the row's small buckets, and the first ones of its large buckets, to `scratch.found`:
    (how many, the last row up to which none is missing, which is `row` itself where no bucket is large).

    `scratch.mark[other]` is the last row that met `other`, so that each is found once.
    """
    count, complete, first = 0, row, min(_FIRST, rows.index_threshold)
    for band in range(rows.of_row.shape[0]):
        bucket = rows.of_row[band, row]
        if bucket < 0:
            continue
        begin, kept = lists.begins[bucket], lists.counts[bucket]
        if kept > rows.index_threshold:
            kept = first
            complete = min(complete, lists.rows[begin + first] - 1)
        for at in range(begin, begin + kept):
            other = lists.rows[at]
            if scratch.mark[other] != row:
                scratch.mark[other] = row
                scratch.found[count] = other
                count += 1
    return count, complete


@kernel(inner=True)
def _ascending(found):  # type: ignore[no-untyped-def]
    """Sort in place: by insertion where candidates are few, since they come in runs that are sorted already."""
    if len(found) > _FEW_CANDIDATES:
        found.sort()
        return found
    for i in range(1, len(found)):
        row, j = found[i], i
        while j > 0 and found[j - 1] > row:
            found[j] = found[j - 1]
            j -= 1
        found[j] = row
    return found


@kernel(inner=True)
def _enter(row, rows, lists, index, scratch):  # type: ignore[no-untyped-def]
    """Add a kept row to the lists of its buckets, and to the index the rows of those that are large.

    A list ends when its bucket has become large: its rows, `index_threshold` + 1, are then put into the index, and
    later ones go there alone.
    """
    for band in range(rows.of_row.shape[0]):
        bucket = rows.of_row[band, row]
        if bucket < 0:
            continue
        begin, count = lists.begins[bucket], lists.counts[bucket]
        if count <= rows.index_threshold:
            lists.rows[begin + count] = row
            lists.counts[bucket] = count + 1
            if count < rows.index_threshold:
                continue
            for other in lists.rows[begin : begin + count]:
                if index.indexed[other] == 0:
                    index.indexed[other] = 1
                    _insert(other, rows, index, scratch)
        if index.indexed[row] == 0:
            index.indexed[row] = 1
            _insert(row, rows, index, scratch)


@kernel
def _decide_rows(rows, lists, index, survivor, similarity, begin, end, scratch, counts):  # type: ignore[no-untyped-def]
    """Decide about the rows from `begin` to `end`; those before `begin` are decided.

    A row is compared with the rows that `_walk` finds, as far as none before them is missing; if that does not decide,
    with all that `_probe` finds besides.

    The first `rows.settled` rows are kept without a comparison. `survivor` int64 (rows,) becomes the first kept row
    that shares a bucket with the row and is similar enough, and stays -1 where there are fewer than `rows.keep` such
    rows; `similarity` int16 (rows,) is the one with it, in thousandths, halves up. `counts` int64 (2,) grows by the
    sets compared, and by the rows and nodes visited.
    """
    for row in range(begin, end):
        if row >= rows.settled:
            found, complete = _walk(row, rows, lists, scratch)
            counts[1] += found
            compared, similar, best, shared = -1, 0, -1, 0
            while True:
                for other in _ascending(scratch.found[:found]):
                    if other <= compared:
                        continue
                    if other > complete:
                        break
                    same, tried = _compare(row, other, rows)
                    counts[0] += tried
                    if same >= 0:
                        if similar == 0:
                            best, shared = other, same
                        similar += 1
                        if similar == rows.keep:
                            union = rows.length[row] + rows.length[best] - shared
                            survivor[row] = best
                            # from the counts themselves, so that every host agrees
                            similarity[row] = shared if rows.by_turn else (2000 * shared + union) // (2 * union)
                            break
                if similar == rows.keep or complete == row:
                    break
                found, visited = _probe(row, rows, index, scratch, found)
                counts[1] += visited
                compared, complete = complete, row
        if survivor[row] < 0:
            _enter(row, rows, lists, index, scratch)


# Stars.


def star(rows: Any, sizes: Numbers, memory: Memory) -> tuple[Numbers, npt.NDArray[np.int16], list[int]]:
    """A row is dropped exactly if earlier kept rows, `keep` of them, share a band and are similar enough.

    `rows` are `Candidates`, `sizes` those of their buckets. The first such row is named. The similarity is compared as
    a ratio of counts, without rounding. With `by_turn` the least similar turn decides.

    Returns int64 (rows,), the row that stays for each, -1 where it stays itself; int16 (rows,), the exact Jaccard
    similarity with it (of conversations that of the least similar turn), in thousandths, 1000 where the row stays; and
    how many pairs were compared, and rows and nodes of the index visited.
    """
    length = rows.length
    begins = memory.sums(np.minimum(sizes, rows.index_threshold + 1, out=memory.full(sizes.shape, 0, np.int64)))
    lists = BucketLists(
        begins[:-1], memory.full(sizes.shape, 0, np.int64), memory.full((int(begins[-1]),), 0, np.int32)
    )
    index = _empty_index(rows, sizes, memory)
    survivor, similarity = memory.full(length.shape, -1, np.int64), memory.full(length.shape, 1000, np.int16)
    mark, found = (memory.full(length.shape, -1, np.int32) for _ in range(2))
    longest = int(length.max(initial=0))
    scratch = Scratch(
        mark, found, np.empty(longest, np.int64), np.empty(longest, np.uint64), np.empty(_LEVELS, np.int64)
    )
    counts = np.zeros(2, np.int64)
    for begin in range(0, len(length), _ROWS_AT_ONCE):
        end = min(begin + _ROWS_AT_ONCE, len(length))
        _decide_rows(rows, lists, index, survivor, similarity, begin, end, scratch, counts)
        memory.release()
    return survivor, similarity, counts.tolist()


def _empty_index(rows: Any, bucket_sizes: Numbers, memory: Memory) -> Any:
    """An empty index with space for the rows of large buckets, whose shingles are counted."""
    nodes, slots, counters = 0, 1024, np.zeros(0, np.uint32)
    if bucket_sizes.max(initial=0) > rows.index_threshold:
        counters = memory.full((_COUNTERS,), 0, np.uint32)
        for at in blocks(len(rows.length)):
            nodes += _count_shingles(rows, bucket_sizes, at.start, at.stop, counters)
            memory.release()
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
