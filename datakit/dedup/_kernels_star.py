"""Star clustering: each row against the kept rows before it that share a band. Arrays only.

Rows are numbered in the policy's order. A bucket is walked while few of its rows are kept. From `crowd` kept rows on,
when walking would grow with the square of the bucket, its kept rows are found through an index of prefixes instead
(prefix filtering: Chaudhuri, Ganti and Kaushik, 2006; Bayardo, Ma and Srikant, 2007): of two sets that must share
k values, the rarest |A| - k + 1 of one and |B| - k + 1 of the other have one in common, whatever the order that
"rarest" stands for. So the filter loses no pair, and rows that differ from each other in a few rare shingles, but in
too many to be duplicates, never meet.
"""

import numpy as np
from numba import njit

from datakit.dedup._kernels_sets import least_shared, set_at, shared_values

_COUNTER_BITS = 22  # shingles are counted by that many bits of their hash: enough to tell rare from common
_CLASS_BITS = 7  # sizes of sets are told apart to 1 part in 2 ** (bits - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def size_class(size):  # type: ignore[no-untyped-def]
    """A number that grows with the size: the size itself below 2 ** _CLASS_BITS, then its leading bits."""
    exponent = 0
    while size >> exponent >= 1 << _CLASS_BITS:
        exponent += 1
    return (exponent << (_CLASS_BITS - 1)) + (size >> exponent)


@njit(cache=True, nogil=True)
def least_of_class(number):  # type: ignore[no-untyped-def]
    """The least size of a class."""
    exponent = max((number >> (_CLASS_BITS - 1)) - 1, 0)
    return (number - (exponent << (_CLASS_BITS - 1))) << exponent


@njit(cache=True, nogil=True)
def _count_shingles(of_row, bucket_sizes, crowd, addresses, lengths):  # type: ignore[no-untyped-def]
    """(how often shingles occur in the rows of large buckets, how many nodes the index may need)."""
    counters = np.zeros(1 << _COUNTER_BITS, dtype=np.uint32)
    shift = np.uint64(64 - _COUNTER_BITS)
    nodes = 0
    for row in range(of_row.shape[0]):
        large = False
        for band in range(of_row.shape[1]):
            bucket = of_row[row, band]
            large |= bucket >= 0 and bucket_sizes[bucket] > crowd
        if large:
            nodes += lengths[row]
            for value in set_at(addresses[row], lengths[row]):
                counters[value >> shift] += np.uint32(1)
    return counters, nodes


@njit(cache=True, nogil=True)
def _rarest_first(values, counters, prefix):  # type: ignore[no-untyped-def]
    """The first `prefix` values in the order of (bit length of the counter, value), which is the same for every set."""
    shift = np.uint64(64 - _COUNTER_BITS)
    begins = np.zeros(34, dtype=np.int64)
    levels = np.empty(len(values), dtype=np.int64)
    for j in range(len(values)):
        count, level = np.int64(counters[values[j] >> shift]), 0
        while count >> level:
            level += 1
        levels[j] = level
        begins[level + 1] += 1
    for level in range(1, 34):
        begins[level] += begins[level - 1]
    ordered = np.empty_like(values)
    for j in range(len(values)):
        ordered[begins[levels[j]]] = values[j]
        begins[levels[j]] += 1
    return ordered[:prefix]


@njit(cache=True, nogil=True)
def _key(value, number):  # type: ignore[no-untyped-def]
    """Key of a shingle in sets of a size class."""
    key = (value ^ np.uint64(number) * _GOLDEN) * _GOLDEN
    return key ^ key >> np.uint64(32)


@njit(cache=True, nogil=True)
def _insert(row, values, counters, numerator, denominator, heads, keys, owners, nexts, used, per_class):  # type: ignore[no-untyped-def]
    """Put the prefix of a kept row into the index; returns the number of nodes in use."""
    size = len(values)
    prefix = size - (numerator * size + denominator - 1) // denominator + 1
    number = size_class(size)
    per_class[number] += 1
    for value in _rarest_first(values, counters, prefix):
        key = _key(value, number)
        slot = np.int64(key & np.uint64(len(heads) - 1))
        keys[used], owners[used], nexts[used] = key, row, heads[slot]
        heads[slot] = used
        used += 1
    return used


@njit(cache=True, nogil=True)
def _probe(  # type: ignore[no-untyped-def]
    row, values, counters, numerator, denominator, heads, keys, owners, nexts, per_class, of_row, mark, found, count
):
    """Add the indexed rows that share a band and may be similar enough to `found`: (their number, nodes visited)."""
    size, visited = len(values), 0
    smallest = (numerator * size + denominator - 1) // denominator
    largest = denominator * size // numerator
    ordered = _rarest_first(values, counters, size - smallest + 1)
    for number in range(size_class(smallest), size_class(largest) + 1):
        if per_class[number] == 0:
            continue
        partner = max(least_of_class(number), smallest)
        prefix = size - least_shared(size, partner, numerator, denominator) + 1
        for value in ordered[: max(prefix, 0)]:
            key = _key(value, number)
            node = heads[np.int64(key & np.uint64(len(heads) - 1))]
            while node >= 0:
                visited += 1
                other = owners[node]
                if keys[node] == key and mark[other] != row:
                    mark[other] = row
                    for band in range(of_row.shape[1]):
                        if of_row[row, band] >= 0 and of_row[row, band] == of_row[other, band]:
                            found[count] = other
                            count += 1
                            break
                node = nexts[node]
    return count, visited


@njit(cache=True, nogil=True)
def _ascending(rows):  # type: ignore[no-untyped-def]
    """Sort in place by insertion: candidates are few, and come in runs that are sorted already."""
    for i in range(1, len(rows)):
        row, j = rows[i], i
        while j > 0 and rows[j - 1] > row:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row
    return rows


@njit(cache=True, nogil=True)
def star(of_row, bucket_sizes, addresses, lengths, numerator, denominator, crowd):  # type: ignore[no-untyped-def]
    """(survivor int64 (rows,), shared int64 (rows,), pairs compared, list entries visited).

    `of_row` int32 (rows, bands) is each row's buckets, -1 for none. `survivor` is the first kept row that shares a
    bucket with the row and is similar enough, -1 where the row is kept; `shared` is how many shingles they share.
    """
    rows, bands = of_row.shape
    survivor = np.full(rows, -1, dtype=np.int64)
    shared = np.zeros(rows, dtype=np.int64)
    head = np.full(len(bucket_sizes), -1, dtype=np.int32)
    tail = np.full(len(bucket_sizes), -1, dtype=np.int32)
    kept_rows = np.zeros(len(bucket_sizes), dtype=np.int32)
    after = np.full((rows, bands), -1, dtype=np.int32)
    mark = np.full(rows, -1, dtype=np.int32)
    found = np.empty(rows, dtype=np.int32)
    indexed = np.zeros(rows, dtype=np.bool_)
    counters = np.zeros(0, dtype=np.uint32)
    heads, owners, nexts = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    keys, per_class, used = np.empty(0, dtype=np.uint64), np.zeros(64 << _CLASS_BITS, dtype=np.int64), 0
    compared, visited = 0, 0
    for row in range(rows):
        values = set_at(addresses[row], lengths[row])
        count, crowded = 0, False
        for band in range(bands):
            bucket = of_row[row, band]
            if bucket < 0:
                continue
            if kept_rows[bucket] > crowd:
                crowded = True
                continue
            other = head[bucket]
            while other >= 0:
                visited += 1
                if mark[other] != row:
                    mark[other] = row
                    found[count] = other
                    count += 1
                other = after[other, band]
        if crowded:
            count, more = _probe(
                row, values, counters, numerator, denominator,
                heads, keys, owners, nexts, per_class, of_row, mark, found, count,
            )  # fmt: skip
            visited += more
        for other in _ascending(found[:count]):
            least = least_shared(len(values), lengths[other], numerator, denominator)
            if min(len(values), lengths[other]) < least:
                continue
            compared += 1
            common = shared_values(values, set_at(addresses[other], lengths[other]), least)
            if common >= 0:
                survivor[row], shared[row] = other, common
                break
        if survivor[row] >= 0:
            continue
        for band in range(bands):
            bucket = of_row[row, band]
            if bucket < 0:
                continue
            if head[bucket] < 0:
                head[bucket] = row
            else:
                after[tail[bucket], band] = row
            tail[bucket] = row
            kept_rows[bucket] += 1
            if kept_rows[bucket] <= crowd:
                continue
            if len(counters) == 0:
                counters, nodes = _count_shingles(of_row, bucket_sizes, crowd, addresses, lengths)
                slots = 1024
                while slots < nodes and slots < 1 << 24:
                    slots *= 2
                heads = np.full(slots, -1, dtype=np.int64)
                keys = np.empty(nodes, dtype=np.uint64)
                owners = np.empty(nodes, dtype=np.int32)
                nexts = np.empty(nodes, dtype=np.int64)
            # the whole list when the bucket has just become crowded, else the new row alone
            other = head[bucket] if kept_rows[bucket] == crowd + 1 else row
            while other >= 0:
                if not indexed[other]:
                    indexed[other] = True
                    used = _insert(
                        other, set_at(addresses[other], lengths[other]), counters, numerator, denominator,
                        heads, keys, owners, nexts, used, per_class,
                    )  # fmt: skip
                other = after[other, band]
    return survivor, shared, compared, visited
