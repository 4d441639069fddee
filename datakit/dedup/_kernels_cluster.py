"""Star clustering: each row is compared with the kept rows before it that share a band. Below it, union-find.

Rows are numbered in the policy's order and decided block by block. First all rows of a block are compared with what was
kept before the block (`look_back`, in several threads), then one after another with what is kept of the block
(`decide_block`). While few rows of a bucket are kept, they are compared one by one. Above `index_threshold` kept rows
that would take time with the square of the bucket; then its kept rows are found through an index of prefixes (prefix
filtering: Chaudhuri, Ganti and Kaushik, 2006; Bayardo, Ma and Srikant, 2007): of two sets that must share k values, the
rarest |A| - k + 1 of one and |B| - k + 1 of the other have one in common, whatever order "rarest" means. So the filter
loses no pair, and rows that differ in a few rare shingles, but in too many to be duplicates, are never compared.
Conversations have an index of their own, by what must be equal and by one word.

A set of shingle hashes is sorted and distinct, uint64, given by its address and length: the sets of all rows stay in
the memory-mapped files that they were written to. The caller keeps the mapping open. The named tuples are those of
`cluster.py`.
"""

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from datakit.dedup._kernels_alike import alike, facts, word_variants
from datakit.dedup._kernels_tokens import word_hash
from datakit.kernels import kernel

_STRIDE = 512  # merge steps between two checks whether enough can still be shared
_COUNTER_BITS = 22  # shingles are counted by that many bits of their hash: enough to distinguish rare from common ones
_CLASS_BITS = 7  # sizes of sets are distinguished to 1 part in 2 ** (bits - 1)
_PAIRS, _TURNS = 1, 2  # of `Candidates.kind`: preference pairs, conversations
_ANSWERS = np.uint64(1 << 62)  # of preference pairs, hashes of the prompt are smaller, those of answers are not
_HEAD, _TAIL, _FRESH, _KEPT = range(4)  # of `BucketLists.ends`
_UNKNOWN = -2  # of `jumps`
_FEW = 64  # conversations of equal facts that are compared one by one
_SAMPLE = 256  # of more, so many are looked at to choose the word that tells them apart
_WORDS = 64  # words of a conversation that may be chosen, and more variants than one has
_ALL, _PLAIN = 1, 2  # salts of keys: all rows of equal facts, and those without the chosen word
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@intrinsic
def _pointer(context, address):  # type: ignore[no-untyped-def]
    signature = types.CPointer(types.uint64)(types.uint64)  # type: ignore[no-untyped-call]

    def generate(target, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], target.get_value_type(signature.return_type))

    return signature, generate


@kernel
def set_at(address, length):  # type: ignore[no-untyped-def]
    """The set as an array, without a copy."""
    return carray(_pointer(np.uint64(address)), (np.int64(length),))  # type: ignore[call-arg]


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
def shared_with(addresses, lengths, others, out):  # type: ignore[no-untyped-def]
    """For each row with `others[row] >= 0`, how many values it shares with that row, to `out` (int64)."""
    for row in range(len(others)):
        other = others[row]
        if other >= 0:
            a, b = set_at(addresses[row], lengths[row]), set_at(addresses[other], lengths[other])
            out[row] = shared_values(a, b, 0)


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


@kernel
def _prefix(rows, size):  # type: ignore[no-untyped-def]
    """How many of the rarest shingles of a set of this size are enough to find similar sets of any size."""
    return size - (rows.numerator * size + rows.denominator - 1) // rows.denominator + 1


@kernel
def count_shingles(rows, bucket_sizes, counters):  # type: ignore[no-untyped-def]
    """Count the shingles of the rows of large buckets in `counters`; returns the nodes that an index of them needs."""
    shift = np.uint64(64 - _COUNTER_BITS)
    nodes = 0
    for row in range(len(rows.length)):
        large = False
        for band in range(rows.of_row.shape[0]):
            bucket = rows.of_row[band, row]
            large |= bucket >= 0 and bucket_sizes[bucket] > rows.index_threshold
        if large:
            nodes += _prefix(rows, rows.length[row])
            for value in set_at(rows.address[row], rows.length[row]):
                counters[value >> shift] += np.uint32(1)
    return nodes


@kernel
def _rarest_first(values, counters, scratch):  # type: ignore[no-untyped-def]
    """The values in the order of (bit length of the counter, value), which is the same for every set."""
    shift = np.uint64(64 - _COUNTER_BITS)
    begins, levels, ordered = scratch.begins, scratch.levels, scratch.ordered
    begins[:] = 0
    for j in range(len(values)):
        count, level = np.int64(counters[values[j] >> shift]), 0
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
def _key(value, number):  # type: ignore[no-untyped-def]
    """Key of a shingle in sets of a size class."""
    key = (value ^ np.uint64(number) * _GOLDEN) * _GOLDEN
    return key ^ key >> np.uint64(32)


# Floods of conversations: many that nearly agree, and all differ. Two that are alike agree in their `facts`, and word
# for word their questions are spellings of one another. So of many rows with the same facts, one is found by the word
# that differs most among them: by all of its letters but one. A row in which the place of this word is uncertain (a
# word is put twice before it), or that has no such word, or a very long one, is found by all, and finds all.


@kernel
def find_facts(rows, bucket_sizes, out):  # type: ignore[no-untyped-def]
    """The facts of the rows of large buckets, to `out` uint64 (rows,); 0 for other rows."""
    places = np.empty(0, np.int64)
    for row in range(len(rows.length)):
        out[row] = 0
        for band in range(rows.of_row.shape[0]):
            bucket = rows.of_row[band, row]
            if bucket >= 0 and bucket_sizes[bucket] > rows.index_threshold:
                found, _ = facts(_stream(row, rows), 0, places)
                out[row] = found | np.uint64(1)
                break


@kernel
def choose_words(rows, order, facts_of, out):  # type: ignore[no-untyped-def]
    """Which word of its questions finds a row, to `out` int32 (rows,); -1: its facts alone, -2: it has no large bucket.

    `order` int64: the rows in the order of their facts. Returns the nodes that an index of all rows needs.
    """
    places, hashes = np.empty(_WORDS, np.int64), np.empty((_WORDS, _SAMPLE), np.uint64)
    begin, nodes = 0, 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and facts_of[order[end]] == facts_of[order[begin]]:
            end += 1
        if facts_of[order[begin]] == 0:
            for k in range(begin, end):
                out[order[k]] = -2
            begin = end
            continue
        best, most = -1, 1
        sample = min(end - begin, _SAMPLE) if end - begin > min(_FEW, rows.index_threshold) else 0
        hashes[:] = 0
        for k in range(sample):
            stream = _stream(order[begin + k * (end - begin) // sample], rows)
            _, count = facts(stream, 0, places)
            for word in range(min(count, _WORDS)):
                if places[word] >= 0:
                    hashes[word, k] = _word(stream, places[word])
        for word in range(_WORDS if sample else 0):
            hashes[word, :sample].sort()
            different = 0
            for k in range(1, sample):
                different += hashes[word, k] != hashes[word, k - 1]
            if different >= most:
                best, most = word, different + 1
        for k in range(begin, end):
            out[order[k]] = best
            nodes += 1
            if best >= 0:
                nodes += 1 + _word_length(_stream(order[k], rows), best, places)
        begin = end
    return nodes


@kernel
def _stream(row, rows):  # type: ignore[no-untyped-def]
    return set_at(rows.address[row], rows.length[row]).view(np.uint8)


@kernel
def _word(stream, i):  # type: ignore[no-untyped-def]
    """The hash of the word whose token begins at byte i."""
    end = i
    while stream[end] > 0x20 or (end == i and stream[end]):
        end += 1
    return word_hash(stream, i, end) | np.uint64(1)


@kernel
def _word_length(stream, word, places):  # type: ignore[no-untyped-def]
    """At least as many as the variants of a word."""
    _, count = facts(stream, 0, places)
    if word >= count or places[word] < 0:
        return 0
    end = places[word] + 1
    while stream[end] > 0x20:
        end += 1
    return min(end - places[word], _WORDS)


@kernel
def _variants(row, rows, places, out):  # type: ignore[no-untyped-def]
    """The hashes of the row's chosen word to `out`: how many, 0 where it has none."""
    if rows.word[row] < 0:
        return 0
    stream = _stream(row, rows)
    _, count = facts(stream, 0, places)
    if rows.word[row] >= count or places[rows.word[row]] < 0:
        return 0
    return word_variants(stream, places[rows.word[row]], out)


@kernel
def _add_node(key, row, index):  # type: ignore[no-untyped-def]
    node, slot = index.used[0], np.int64(key & np.uint64(len(index.heads) - 1))
    index.keys[node], index.owners[node], index.nexts[node] = key, row, index.heads[slot]
    index.heads[slot] = node
    index.used[0] += 1


@kernel
def _insert_turns(row, rows, index, scratch):  # type: ignore[no-untyped-def]
    """Add a kept conversation to the index: under its facts, and with each variant of its chosen word or as plain."""
    _add_node(_key(rows.facts[row], _ALL), row, index)
    if rows.word[row] < 0:
        return
    made = _variants(row, rows, scratch.places, scratch.variants)
    for k in range(made):
        _add_node(_key(rows.facts[row] ^ scratch.variants[k], 0), row, index)
    if not made:
        _add_node(_key(rows.facts[row], _PLAIN), row, index)


@kernel
def _follow(key, row, rows, index, scratch, count, block):  # type: ignore[no-untyped-def]
    """Add the rows of the block under a key that share a bucket to those found: (how many, nodes visited)."""
    visited, mark = 0, scratch.mark
    node = index.heads[np.int64(key & np.uint64(len(index.heads) - 1))]
    while node >= block.oldest:
        visited += 1
        other = index.owners[node]
        if index.keys[node] == key and other >= block.since and mark[other] != row:
            mark[other] = row
            if _share_bucket(rows.of_row, row, other):
                scratch.found[count] = other
                count += 1
        node = index.nexts[node]
    return count, visited


@kernel
def _probe_turns(row, rows, index, scratch, count, block):  # type: ignore[no-untyped-def]
    """`_probe` for conversations."""
    made = _variants(row, rows, scratch.places, scratch.variants)
    if not made:
        return _follow(_key(rows.facts[row], _ALL), row, rows, index, scratch, count, block)
    count, visited = _follow(_key(rows.facts[row], _PLAIN), row, rows, index, scratch, count, block)
    for k in range(made):
        key = _key(rows.facts[row] ^ scratch.variants[k], 0)
        count, steps = _follow(key, row, rows, index, scratch, count, block)
        visited += steps
    return count, visited


@kernel
def _insert(row, rows, index, scratch):  # type: ignore[no-untyped-def]
    """Add a kept row to the index, under the prefix that is enough for similar sets of any size."""
    if rows.kind == _TURNS:
        _insert_turns(row, rows, index, scratch)
        return
    size = rows.length[row]
    number = size_class(size)
    index.per_class[number] += 1
    for value in _rarest_first(set_at(rows.address[row], size), index.counters, scratch)[: _prefix(rows, size)]:
        _add_node(_key(value, number), row, index)


@kernel
def _share_bucket(of_row, row, other):  # type: ignore[no-untyped-def]
    same = False
    for band in range(of_row.shape[0]):
        same |= of_row[band, row] >= 0 and of_row[band, row] == of_row[band, other]
    return same


@kernel(inline="always")
def _smallest(row, rows):  # type: ignore[no-untyped-def]
    """The size of the smallest set that may be similar enough to the row's."""
    return (rows.numerator * rows.length[row] + rows.denominator - 1) // rows.denominator


@kernel
def _classes(row, rows):  # type: ignore[no-untyped-def]
    """The first and the last class of the sizes of sets that may be similar enough to the row's."""
    return size_class(_smallest(row, rows)), size_class(rows.denominator * rows.length[row] // rows.numerator)


@kernel
def _shingles_to_try(row, rows, number, index):  # type: ignore[no-untyped-def]
    """How many of the row's shingles, the rarest first, meet every similar set of a class; 0 for an empty class."""
    if index.per_class[number] == 0:
        return np.int64(0)
    size, partner = rows.length[row], max(least_of_class(number), _smallest(row, rows))
    return max(size - least_shared(size, partner, rows.numerator, rows.denominator) + 1, np.int64(0))


@kernel
def _probe(row, rows, index, scratch, count, block):  # type: ignore[no-untyped-def]
    """Add to those found the indexed rows of the block that share a bucket and may be similar enough.

    Returns (how many are found, nodes visited). Chains go from new nodes to old ones.
    """
    if rows.kind == _TURNS:
        return _probe_turns(row, rows, index, scratch, count, block)
    visited = 0
    ordered = _rarest_first(set_at(rows.address[row], rows.length[row]), index.counters, scratch)
    first, last = _classes(row, rows)
    for number in range(first, last + 1):
        for value in ordered[: _shingles_to_try(row, rows, number, index)]:
            count, steps = _follow(_key(value, number), row, rows, index, scratch, count, block)
            visited += steps
    return count, visited


@kernel
def _walk(row, rows, lists, scratch, since):  # type: ignore[no-untyped-def]
    """Write the kept rows of the row's buckets from `since` on, which is 0 or where this block of rows began, to
    `scratch.found`: (how many, entries visited, a bucket is large).
    """
    count, visited, large = 0, 0, False
    mark, found = scratch.mark, scratch.found
    for band in range(rows.of_row.shape[0]):
        bucket = rows.of_row[band, row]
        if bucket < 0:
            continue
        if lists.ends[bucket, _KEPT] > rows.index_threshold:
            large = True
            continue
        other = lists.ends[bucket, _HEAD] if since == 0 else lists.ends[bucket, _FRESH]
        while other >= since:
            visited += 1
            if mark[other] != row:
                mark[other] = row
                found[count] = other
                count += 1
            other = lists.after[band, other]
    return count, visited, large


@kernel
def _ascending(found):  # type: ignore[no-untyped-def]
    """Sort in place by insertion: candidates are few, and come in runs that are sorted already."""
    for i in range(1, len(found)):
        row, j = found[i], i
        while j > 0 and found[j - 1] > row:
            found[j] = found[j - 1]
            j -= 1
        found[j] = row
    return found


@kernel
def _answers(values):  # type: ignore[no-untyped-def]
    """The values of the answers: the last ones of the set."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < _ANSWERS:
            low = middle + 1
        else:
            high = middle
    return values[low:]


@kernel
def answers_alike(a, b, numerator, denominator):  # type: ignore[no-untyped-def]
    """Whether the answers of two preference pairs are similar enough by themselves."""
    one, other = _answers(a), _answers(b)
    return shared_values(one, other, least_shared(len(one), len(other), numerator, denominator)) >= 0


@kernel
def _first_alike(row, rows, tally, candidates):  # type: ignore[no-untyped-def]
    """`_first_similar` for conversations: the similarity in thousandths instead of shared values.

    With `rows.keep` above 1, a row is only dropped if so many kept rows are alike. `tally` int64 (rows, 3) counts them:
    how many were found so far, the first of them and its similarity.
    """
    compared, stream = 0, set_at(rows.address[row], rows.length[row]).view(np.uint8)
    for other in candidates:
        compared += 1
        others = set_at(rows.address[other], rows.length[other]).view(np.uint8)
        found = alike(stream, others, rows.numerator, rows.denominator, rows.short_words)
        if found < 0:
            continue
        if rows.keep == 1:
            return other, found, compared
        if tally[row, 0] == 0:
            tally[row, 1], tally[row, 2] = other, found
        tally[row, 0] += 1
        if tally[row, 0] >= rows.keep:
            return tally[row, 1], tally[row, 2], compared
    return -1, 0, compared


@kernel
def _longer(row, rows, block, survivor, scratch, count):  # type: ignore[no-untyped-def]
    """Append the kept rows that the row may be the beginning of to the candidates: how many there are then."""
    for k in range(rows.longer_begin[row], rows.longer_end[row]):
        other = rows.longer[k]
        if block.since <= other < block.until and survivor[other] < 0 and scratch.mark[other] != row:
            scratch.mark[other] = row
            scratch.found[count] = other
            count += 1
    return count


@kernel
def _compare(row, other, rows):  # type: ignore[no-untyped-def]
    """(the values that two rows share, -1 where they are not similar enough; 1 if their sets were compared, else 0)."""
    size, length = rows.length[row], rows.length[other]
    least = least_shared(size, length, rows.numerator, rows.denominator)
    if min(size, length) < least:
        return -1, 0
    values, others = set_at(rows.address[row], size), set_at(rows.address[other], length)
    shared = shared_values(values, others, least)
    if shared >= 0 and rows.kind == _PAIRS and not answers_alike(values, others, rows.numerator, rows.denominator):
        return -1, 1
    return shared, 1


@kernel
def _first_similar(row, rows, candidates):  # type: ignore[no-untyped-def]
    """(the first candidate that is similar enough or -1, the values shared with it, sets compared)."""
    compared = 0
    for other in candidates:
        shared, tried = _compare(row, other, rows)
        compared += tried
        if shared >= 0:
            return other, shared, compared
    return -1, 0, compared


@kernel
def _keep(row, band, bucket, lists, begin):  # type: ignore[no-untyped-def]
    """Append a kept row, of the block of rows that began at `begin`, to the list of a bucket."""
    if lists.ends[bucket, _FRESH] < begin:
        lists.ends[bucket, _FRESH] = row
    if lists.ends[bucket, _HEAD] < 0:
        lists.ends[bucket, _HEAD] = row
    else:
        lists.after[band, lists.ends[bucket, _TAIL]] = row
    lists.ends[bucket, _TAIL] = row
    lists.ends[bucket, _KEPT] += 1


@kernel
def _enter(row, rows, begin, lists, index, scratch):  # type: ignore[no-untyped-def]
    """Add a row to the lists of its buckets, and to the index those of them that are large."""
    for band in range(rows.of_row.shape[0]):
        bucket = rows.of_row[band, row]
        if bucket < 0:
            continue
        _keep(row, band, bucket, lists, begin)
        if lists.ends[bucket, _KEPT] <= rows.index_threshold:
            continue
        # the whole list when the bucket has just become large, else the new row alone
        other = lists.ends[bucket, _HEAD] if lists.ends[bucket, _KEPT] == rows.index_threshold + 1 else row
        while other >= 0:
            if index.indexed[other] == 0:
                index.indexed[other] = 1
                _insert(other, rows, index, scratch)
            other = lists.after[band, other]


@kernel
def _first_kept(row, rows, block, lists, index, survivor, tally, scratch):  # type: ignore[no-untyped-def]
    """(the first kept row of the block that shares a bucket with the row and is similar enough or -1, the values
    shared with it, sets compared, entries and nodes visited).
    """
    candidates, visited, large = _walk(row, rows, lists, scratch, block.since)
    if large:
        candidates, steps = _probe(row, rows, index, scratch, candidates, block)
        visited += steps
    if rows.kind == _TURNS:
        candidates = _longer(row, rows, block, survivor, scratch, candidates)
        found = _first_alike(row, rows, tally, _ascending(scratch.found[:candidates]))
    else:
        found = _first_similar(row, rows, _ascending(scratch.found[:candidates]))
    return found[0], found[1], found[2], visited


@kernel
def look_back(  # type: ignore[no-untyped-def]
    rows, block, lists, index, survivor, shared, tally, begin, end, scratch, counts
):
    """Compare the rows from `begin` to `end` with all rows that were kept before their block.

    This changes only `survivor`, `shared`, `tally` and `counts`, so threads may share a block, each with its own
    scratch. The first `rows.settled` rows are kept without a comparison. `survivor` int64 (rows,) becomes the first
    kept row that shares a bucket with the row and is similar enough, -1 where there is none; `shared` int64 (rows,) how
    many shingles they share (of conversations: the similarity in thousandths). `counts` int64 (2,): sets compared, list
    entries and nodes visited.
    """
    for row in range(begin, end):
        survivor[row] = -1
        if row >= rows.settled:
            survivor[row], shared[row], tried, steps = _first_kept(
                row, rows, block, lists, index, survivor, tally, scratch
            )
            counts[0] += tried
            counts[1] += steps


@kernel
def decide_block(  # type: ignore[no-untyped-def]
    rows, block, lists, index, survivor, shared, tally, begin, end, scratch, counts
):
    """Decide about the rows from `begin` to `end` of a block, after `look_back`: a row that is similar to none
    before the block is compared with what was kept of the block. The other arguments are those of `look_back`.
    """
    for row in range(begin, end):
        if survivor[row] < 0 and row >= rows.settled:
            survivor[row], shared[row], tried, steps = _first_kept(
                row, rows, block, lists, index, survivor, tally, scratch
            )
            counts[0] += tried
            counts[1] += steps
        if survivor[row] < 0:
            _enter(row, rows, block.since, lists, index, scratch)


@kernel
def _root(parent, row):  # type: ignore[no-untyped-def]
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@kernel
def to_roots(parent):  # type: ignore[no-untyped-def]
    """Replace each row's parent by the first row of its component."""
    for row in range(len(parent)):
        parent[row] = _root(parent, row)


@kernel
def _link(row, other, rows, parent):  # type: ignore[no-untyped-def]
    """Join the components of two rows if the rows are similar enough; returns 1 if their sets were compared."""
    a, b = _root(parent, row), _root(parent, other)
    if a == b:
        return 0
    shared, tried = _compare(row, other, rows)
    if shared >= 0:
        parent[max(a, b)] = min(a, b)
    return tried


@kernel
def _next_stranger(node, index, jumps, parent):  # type: ignore[no-untyped-def]
    """The next node of the chain whose row is in another component than this node's, -1 at its end.

    `jumps` keeps how far that was: rows of one component stay in one component.
    """
    own, after = _root(parent, index.owners[node]), index.nexts[node]
    if jumps[node] != _UNKNOWN:
        after = jumps[node]
    while after >= 0 and _root(parent, index.owners[after]) == own:
        after = jumps[after] if jumps[after] != _UNKNOWN else index.nexts[after]
    jumps[node] = after
    return after


@kernel
def link_rows(rows, lists, index, jumps, parent, begin, end, scratch, counts):  # type: ignore[no-untyped-def]
    """Join the components of the rows from `begin` to `end` and of all rows before that share a bucket and are
    similar enough.

    `parent` int64 (rows,) holds each row's own number at first, `jumps` (nodes of the index,) -2. The other arguments
    are those of `decide_block`; every row is entered into the lists.
    """
    mark = scratch.mark
    for row in range(begin, end):
        candidates, visited, large = _walk(row, rows, lists, scratch, 0)
        counts[1] += visited
        for k in range(candidates):
            counts[0] += _link(row, scratch.found[k], rows, parent)
        if large:
            ordered = _rarest_first(set_at(rows.address[row], rows.length[row]), index.counters, scratch)
            first, last = _classes(row, rows)
            for number in range(first, last + 1):
                for value in ordered[: _shingles_to_try(row, rows, number, index)]:
                    key = _key(value, number)
                    node = index.heads[np.int64(key & np.uint64(len(index.heads) - 1))]
                    while node >= 0:
                        counts[1] += 1
                        other = index.owners[node]
                        if _root(parent, other) == _root(parent, row):
                            node = _next_stranger(node, index, jumps, parent)
                            continue
                        if index.keys[node] == key and mark[other] != row:
                            mark[other] = row
                            if _share_bucket(rows.of_row, row, other):
                                counts[0] += _link(row, other, rows, parent)
                        node = index.nexts[node]
        _enter(row, rows, 0, lists, index, scratch)
