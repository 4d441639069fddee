"""Components of linked rows, and stars: each row is compared with the kept rows before it that share a band.

Rows are numbered in the policy's order and decided one after another (`decide`). While few rows of a bucket are kept,
they are compared one by one. Above `index_threshold` kept rows that would take time with the square of the bucket; then
its kept rows are found through an index of prefixes (prefix filtering: Chaudhuri, Ganti and Kaushik, 2006; Bayardo, Ma
and Srikant, 2007): of two sets that must share k values, the rarest |A| - k + 1 of one and |B| - k + 1 of the other
have one in common, whatever order "rarest" means. So the filter loses no pair, and rows that differ in a few rare
shingles, but in too many to be duplicates, are never compared.

A set of shingle hashes is sorted and distinct, uint64, given by its address and length: the sets of all rows stay in
the memory-mapped files that they were written to. The caller keeps the mapping open. In the sets of conversations the
number of the turn is in the high bits (`turn_digests.TURN_SHIFT`). The named tuples are those of `cluster.py`.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from datakit.kernels import kernel

_STRIDE = 512  # merge steps between two checks whether enough can still be shared
_COUNTER_BITS = 22  # shingles are counted by that many bits of their hash: enough to distinguish rare from common ones
_CLASS_BITS = 7  # sizes of sets are distinguished to 1 part in 2 ** (bits - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TURN_SHIFT = np.uint64(48)  # turn_digests.TURN_SHIFT


@intrinsic
def _pointer(context, address):
    signature = types.CPointer(types.uint64)(types.uint64)

    def generate(target, builder, signature, args):
        return builder.inttoptr(args[0], target.get_value_type(signature.return_type))

    return signature, generate


@kernel
def set_at(address, length):
    """The set as an array, without a copy."""
    return carray(_pointer(np.uint64(address)), (np.int64(length),))


# Components of rows that are linked by equal keys.


@kernel
def join(links, first):
    """Union-find: join the two rows of each link, int64 (links, 2). `first` int64 (rows,) holds each row's own number,
    and becomes the smallest row of its component. A parent is never larger than its child, so one ascending pass
    flattens.
    """
    for k in range(len(links)):
        a, b = links[k]
        while first[a] != a:
            first[a] = first[first[a]]
            a = first[a]
        while first[b] != b:
            first[b] = first[first[b]]
            b = first[b]
        first[max(a, b)] = min(a, b)
    for row in range(len(first)):
        first[row] = first[first[row]]


# Two sets.


@kernel
def shared_values(a, b, least):
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
def least_shared(a, b, numerator, denominator):
    """The least number of shared values with which sets of sizes a and b are similar enough.

    |A and B| / |A or B| >= numerator / denominator, solved for the shared values and rounded up.
    """
    return (numerator * (a + b) + numerator + denominator - 1) // (numerator + denominator)


@kernel
def least_similar_turn(a, b, numerator, denominator):
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


@kernel
def _compare(row, other, rows):
    """(what two rows share, -1 where they are not similar enough; 1 if their sets were compared, else 0).

    Conversations must share enough in all, which is quickly seen, and in each turn; what comes back is then the
    similarity of the least similar turn in thousandths.
    """
    size, length = rows.length[row], rows.length[other]
    least = least_shared(size, length, rows.numerator, rows.denominator)
    if min(size, length) < least:
        return -1, 0
    values, others = set_at(rows.address[row], size), set_at(rows.address[other], length)
    shared = shared_values(values, others, least)
    if shared >= 0 and rows.by_turn:
        return least_similar_turn(values, others, rows.numerator, rows.denominator), 1
    return shared, 1


# The index of kept rows of large buckets. Sets are told apart by classes of sizes, because the number of shingles that
# must be tried depends on both sizes.


@kernel
def size_class(size):
    """A number that grows with the size: the size itself below 2 ** _CLASS_BITS, then its leading bits."""
    exponent = 0
    while size >> exponent >= 1 << _CLASS_BITS:
        exponent += 1
    return (exponent << (_CLASS_BITS - 1)) + (size >> exponent)


@kernel
def least_of_class(number):
    """The least size of a class."""
    exponent = max((number >> (_CLASS_BITS - 1)) - 1, 0)
    return (number - (exponent << (_CLASS_BITS - 1))) << exponent


@kernel
def _smallest(size, rows):
    """The size of the smallest set that may be similar enough to a set of this size."""
    return (rows.numerator * size + rows.denominator - 1) // rows.denominator


@kernel
def _counter(value):
    return (value * _GOLDEN) >> np.uint64(64 - _COUNTER_BITS)


@kernel
def count_shingles(rows, bucket_sizes, counters):
    """Count the shingles of the rows of large buckets in `counters`; returns the nodes that an index of them needs."""
    nodes = 0
    for row in range(len(rows.length)):
        large = False
        for band in range(rows.of_row.shape[0]):
            bucket = rows.of_row[band, row]
            large |= bucket >= 0 and bucket_sizes[bucket] > rows.index_threshold
        if large:
            nodes += rows.length[row] - _smallest(rows.length[row], rows) + 1
            for value in set_at(rows.address[row], rows.length[row]):
                counters[_counter(value)] += np.uint32(1)
    return nodes


@kernel
def _rarest_first(values, counters, scratch):
    """The values in the order of (bit length of the counter, value), which is the same for every set: by counting sort.

    `scratch.levels` and `scratch.ordered` hold the largest set, `scratch.begins` one entry a bit length and one more.
    """
    begins, levels, ordered = scratch.begins, scratch.levels, scratch.ordered
    begins[:] = 0
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


@kernel
def _key(value, number):
    """Key of a shingle in sets of a size class."""
    key = (value ^ np.uint64(number) * _GOLDEN) * _GOLDEN
    return key ^ key >> np.uint64(32)


@kernel
def _insert(row, rows, index, scratch):
    """Add a kept row to the index, under the prefix that is enough for similar sets of any size."""
    size = rows.length[row]
    number = size_class(size)
    index.per_class[number] += 1
    prefix = size - _smallest(size, rows) + 1
    for value in _rarest_first(set_at(rows.address[row], size), index.counters, scratch)[:prefix]:
        key, node = _key(value, number), index.used[0]
        slot = np.int64(key & np.uint64(len(index.heads) - 1))
        index.keys[node], index.owners[node], index.nexts[node] = key, row, index.heads[slot]
        index.heads[slot] = node
        index.used[0] += 1


@kernel
def _share_bucket(of_row, row, other):
    same = False
    for band in range(of_row.shape[0]):
        same |= of_row[band, row] >= 0 and of_row[band, row] == of_row[band, other]
    return same


@kernel
def _probe(row, rows, index, scratch, count):
    """Add to those found the indexed rows that share a bucket and may be similar enough: (how many are found, nodes
    visited)."""
    visited, size, smallest = 0, rows.length[row], _smallest(rows.length[row], rows)
    ordered = _rarest_first(set_at(rows.address[row], size), index.counters, scratch)
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
def _walk(row, rows, lists, scratch):
    """Write the kept rows of the row's small buckets to `scratch.found`: (how many, entries visited, a bucket is
    large).

    `scratch.mark[other]` is the last row that met `other`, so that each is found once.
    """
    count, visited, large = 0, 0, False
    for band in range(rows.of_row.shape[0]):
        bucket = rows.of_row[band, row]
        if bucket < 0:
            continue
        if lists.counts[bucket] > rows.index_threshold:
            large = True
            continue
        for at in range(lists.begins[bucket], lists.begins[bucket] + lists.counts[bucket]):
            visited += 1
            other = lists.rows[at]
            if scratch.mark[other] != row:
                scratch.mark[other] = row
                scratch.found[count] = other
                count += 1
    return count, visited, large


@kernel
def _ascending(found):
    """Sort in place by insertion: candidates are few, and come in runs that are sorted already."""
    for i in range(1, len(found)):
        row, j = found[i], i
        while j > 0 and found[j - 1] > row:
            found[j] = found[j - 1]
            j -= 1
        found[j] = row
    return found


@kernel
def _enter(row, rows, lists, index, scratch):
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
def decide(rows, lists, index, survivor, shared, begin, end, scratch, counts):
    """Decide about the rows from `begin` to `end`; those before `begin` are decided.

    The first `rows.settled` rows are kept without a comparison. `survivor` int64 (rows,) becomes the first kept row
    that shares a bucket with the row and is similar enough, and stays -1 where there are fewer than `rows.keep` such
    rows; `shared` int64 (rows,) is what `_compare` gives for it. `counts` int64 (2,) grows by the sets compared, and by
    the list entries and nodes visited.
    """
    for row in range(begin, end):
        if row >= rows.settled:
            found, visited, large = _walk(row, rows, lists, scratch)
            if large:
                found, steps = _probe(row, rows, index, scratch, found)
                visited += steps
            counts[1] += visited
            similar, best = 0, -1
            for other in _ascending(scratch.found[:found]):
                same, tried = _compare(row, other, rows)
                counts[0] += tried
                if same >= 0:
                    if similar == 0:
                        best, shared[row] = other, same
                    similar += 1
                    if similar == rows.keep:
                        survivor[row] = best
                        break
        if survivor[row] < 0:
            _enter(row, rows, lists, index, scratch)
