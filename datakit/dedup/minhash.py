"""MinHash signatures of sets of word shingles (Broder, 1997), and LSH buckets of their bands (Indyk and Motwani, 1998).

In the order of the data: text of a row -> set of shingle hashes -> MinHash values -> bands; that is the sketch of a
document. Rows that share a band are then put into one bucket: they are the candidates that `cluster` compares.

Values follow datasketch's `affine32` scheme bit for bit: the low 32 bits of a shingle's hash go through MurmurHash3's
finalizer once, then each permutation takes the least `a * h + b` modulo 2**32. So
`datasketch.MinHash(num_perm, seed, hashfunc=identity, scheme="affine32")` fed the same 32-bit hashes is equal.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import row_chunks, string_buffers, view
from datakit.dedup.comparison import Hashes, Numbers, row_columns, string_column
from datakit.dedup.shuffle import Memory, digest_halves
from datakit.dedup.stage import DedupConfig
from datakit.kernels import kernel
from datakit.text._kernels_text import BASE, NONE, finalize
from datakit.text.words import compose, digest, hash_words_in, normalize, stated_digest

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LARGEST = np.uint32(0xFFFFFFFF)


_CHUNK_BYTES = 1 << 20  # of text: its words and shingles then fit into the second-level cache
_BLOCK = 4096  # shingle hashes that stay in the first-level cache while all permutations pass over them


# Shingles.


@kernel(inner=True)
def _hash_shingles(words, size, out):  # type: ignore[no-untyped-def]
    """Hashes of every `size` consecutive words, in order and with repeats; returns how many. `out` is as long as
    `words`."""
    shingles = max(len(words) - size + 1, 0)
    for j in range(shingles):
        out[j] = words[j]
    for k in range(1, size):
        for j in range(shingles):
            out[j] = out[j] * BASE + words[j + k]
    for j in range(shingles):
        out[j] = finalize(out[j])
    return shingles


@kernel
def _sorted_set(hashes, count, table, out):  # type: ignore[no-untyped-def]
    """The distinct values of `hashes[:count]`, or of their low halves for `out` uint32, ascending; returns how many.

    Ordered linear probing (Amble and Knuth, 1974): the slot grows with the hash, so the filled table is sorted.
    It takes linear time for hashes that are spread evenly. `table`, of the type of `out`, has at least 3 * count slots:
    two for each hash, and as many as there are hashes behind the last one. An empty slot holds the largest value.
    """
    # The slot is the share of the upper 32 bits of a hash: below 2**32 times at most 2**32 places.
    low = NONE >> np.uint64(64 - 8 * out.itemsize)
    up, places, slots, largest = np.uint64(8 * out.itemsize - 32), np.uint64(2 * count), 3 * count, 0
    table[:slots] = low
    for j in range(count):
        value = hashes[j] & low
        if value == low:
            largest = 1
            continue
        at = np.int64((value >> up) * places >> np.uint64(32))
        while table[at] < value:
            at += 1
        if table[at] == value:
            continue
        while value != low:  # larger values move on, up to the next free slot
            value, table[at] = np.uint64(table[at]), value
            at += 1
    size = 0
    for slot in range(slots):
        out[size] = table[slot]  # always written, so `out` needs a place behind the set
        size += table[slot] != low
    out[size] = low
    return size + largest


@kernel
def _write_shingle_sets(words, word_starts, size, scratch, table, out, out_starts):  # type: ignore[no-untyped-def]
    """The sorted set of shingle hashes of each row, one after another in `out`, which is longer than `words` by one.

    The words of row i are `words[word_starts[i]:word_starts[i + 1]]`. `out_starts` (rows + 1) gets the place in `out`
    where each row begins. `scratch` (uint64) is as long as the longest row, `table` (as `out`) three times as long.
    """
    rows, at = len(word_starts) - 1, 0
    for row in range(rows):
        out_starts[row] = at
        count = _hash_shingles(words[word_starts[row] : word_starts[row + 1]], size, scratch)
        at += _sorted_set(scratch, count, table, out[at:])
    out_starts[rows] = at


@dataclass(frozen=True, slots=True)
class ShingleSets:
    """The sets of several rows: row i has `hashes[starts[i]:starts[i + 1]]`, distinct hashes, ascending."""

    hashes: npt.NDArray[np.unsignedinteger[Any]]
    starts: Numbers

    def lists(self) -> pa.Array:
        """The sets as a column of lists, null where a set is empty."""
        starts, values = pa.array(self.starts), pa.array(self.hashes)
        empty, kind = pa.array(np.diff(self.starts) == 0), pa.field("item", values.type, nullable=False)
        return pa.LargeListArray.from_arrays(starts, values, type=pa.large_list(kind), mask=empty)


def shingle_sets(texts: pa.Array, shingle_words: int, dtype: Any = np.uint32) -> ShingleSets:
    """The set of hashes of every `shingle_words` consecutive words of each text; empty where a text has fewer words.

    `dtype` uint32 takes the low half of 64-bit hashes, which is all that MinHash uses, and half the space. Two
    different shingles are then equal with a probability of 2**-32: of pairs of texts with 10,000 words one in 40 seems
    to share one shingle more than it does, which is 0.0001 of the similarity.
    """
    data, offsets = string_buffers(texts)
    sizes, found = [np.empty(0, np.int64)], [np.empty(0, dtype)]
    for begin, end in row_chunks(offsets, _CHUNK_BYTES):
        words, word_starts = hash_words_in(data, offsets[begin : end + 1])
        hashes, starts = np.empty(len(words) + 1, dtype), np.empty_like(word_starts)
        longest = int(np.diff(word_starts).max(initial=0))
        scratch, table = np.empty(longest, np.uint64), np.empty(3 * longest, dtype)
        _write_shingle_sets(words, word_starts, shingle_words, scratch, table, hashes, starts)
        found.append(hashes[: starts[-1]])
        sizes.append(np.diff(starts))
    return ShingleSets(np.concatenate(found), np.concatenate(([0], np.cumsum(np.concatenate(sizes)))))


def text_of(batch: pa.RecordBatch, config: DedupConfig) -> pa.Array:
    """What shingles are made of: the text of each row, in NFC. (No word has white space, so that may stay.)"""
    return compose(view(batch, config.on, config.include_system, include_calls=True))


# Signatures and bands.


@kernel(inner=True)
def _premix(hashes, out):  # type: ignore[no-untyped-def]
    """MurmurHash3's 32-bit finalizer over the low halves, as datasketch's affine32 does before it permutes."""
    for j in range(len(hashes)):
        h = np.uint32(hashes[j])
        h ^= h >> np.uint32(16)
        h = np.uint32(h * np.uint32(0x85EBCA6B))
        h ^= h >> np.uint32(13)
        h = np.uint32(h * np.uint32(0xC2B2AE35))
        out[j] = h ^ h >> np.uint32(16)


@kernel
def _write_signatures(hashes, offsets, a, b, mixed, out):  # type: ignore[no-untyped-def]
    """MinHash values (uint32, rows x num_perm) of the low 32 bits of each row's shingle hashes.

    The minimum over a row's shingles of `a * fmix32(h) + b` modulo 2**32; 0xFFFFFFFF for a row without shingles.
    `mixed` (uint32) is scratch for a block of hashes, which should stay in the first-level cache.
    """
    out[:] = _LARGEST
    for row in range(len(offsets) - 1):
        for begin in range(offsets[row], offsets[row + 1], len(mixed)):
            block = hashes[begin : min(begin + len(mixed), offsets[row + 1])]
            _premix(block, mixed)
            for p in range(len(a)):
                multiplier, addend, least = a[p], b[p], out[row, p]
                for j in range(len(block)):
                    # the cast back keeps the product in 32 bits: numba widens it, and LLVM then misses vpmulld, vpminud
                    least = min(least, np.uint32(np.uint32(multiplier * mixed[j]) + addend))
                out[row, p] = least


@kernel
def _write_band_hashes(values, rows_per_band, out):  # type: ignore[no-untyped-def]
    """Each band of a signature as one 64-bit hash: `values` uint32 (rows, num_perm) -> `out` uint64 (rows, bands)."""
    for row in range(values.shape[0]):
        for band in range(out.shape[1]):
            h = np.uint64(0)
            for k in range(rows_per_band):
                h = finalize(h + _GOLDEN ^ np.uint64(values[row, band * rows_per_band + k]))
            out[row, band] = h


@lru_cache(maxsize=8)
def permutations(num_perm: int, seed: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """datasketch's multipliers and addends for a seed, uint32 (num_perm,) each.

    Drawn here in datasketch's order, because importing it takes 0.4 s (it imports scipy); a test compares the two.
    """
    generator = np.random.RandomState(seed)
    a = generator.randint(0, 1 << 31, num_perm, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    b = generator.randint(0, 1 << 32, num_perm, dtype=np.uint32)
    return a, b


def signatures(sets: ShingleSets, num_perm: int, seed: int) -> npt.NDArray[np.uint32]:
    """MinHash values, uint32 (rows, num_perm); all 0xFFFFFFFF for an empty set."""
    values = np.empty((len(sets.starts) - 1, num_perm), dtype=np.uint32)
    mixed = np.empty(_BLOCK, dtype=np.uint32)
    _write_signatures(sets.hashes, sets.starts, *permutations(num_perm, seed), mixed, values)
    return values


def bands_of(sets: ShingleSets, config: DedupConfig) -> Hashes:
    """One 64-bit hash of the `rows_per_band` MinHash values of each band, uint64 (rows, num_bands)."""
    values = signatures(sets, config.num_perm, config.seed)
    bands = np.empty((len(values), config.num_bands), dtype=np.uint64)
    _write_band_hashes(values, config.rows_per_band, bands)
    return bands


# Rows with an equal digest.


@kernel
def _write_first_of_equals(digests, slots, first):  # type: ignore[no-untyped-def]
    """The first row with each row's digest, found in a hash table with linear probing.

    `digests` uint64 (rows, 2); `slots` (-1) int32: a power of two, more than there are rows, so that a search ends.
    """
    for row in range(len(digests)):
        at = np.int64(digests[row, 0] & np.uint64(len(slots) - 1))
        while slots[at] >= 0:
            other = slots[at]
            if digests[other, 0] == digests[row, 0] and digests[other, 1] == digests[row, 1]:
                break
            at = (at + 1) & (len(slots) - 1)
        if slots[at] < 0:
            slots[at] = row
        first[row] = slots[at]


def first_of_equals(digests: Hashes, full: Callable[..., npt.NDArray[Any]] = np.full) -> Numbers:
    """For each digest, uint64 (rows, 2), the number of the first that is equal to it (itself where it is the first).

    `full` makes the arrays: `Memory.full` for many rows.
    """
    first = full((len(digests),), 0, np.int64)
    slots = full((2 << len(digests).bit_length(),), -1, np.int32)
    _write_first_of_equals(digests, slots, first)
    return first


# The sketch of a document.


def sketch(batch: pa.RecordBatch, config: DedupConfig) -> pa.RecordBatch:
    """For each document its `row_columns` and `lang`, the `digest` of its normalised text, its bands (`band0`, ...) and
    `shingles`.

    `shingles` is the sorted set of 32-bit shingle hashes. It is null where the row has fewer words than a shingle, and
    where an earlier row of the batch has the same digest (equal text has equal shingles: one copy is enough).
    """
    texts = text_of(batch, config)
    hashes = batch.column("content_hash") if "content_hash" in batch.schema.names else None
    # of rows with a content hash it is the digest, made from the same text
    digests = stated_digest(digest(texts) if hashes is None or hashes.null_count else hashes)
    fresh = first_of_equals(digest_halves(digests)) == np.arange(len(digests))
    sets = shingle_sets(texts if fresh.all() else texts.filter(pa.array(fresh)), config.shingle_words)
    lengths, bands = np.zeros(len(batch), np.int64), np.zeros((config.num_bands, len(batch)), np.uint64)
    lengths[fresh] = np.diff(sets.starts)
    bands[:, fresh] = bands_of(sets, config).T
    every = ShingleSets(sets.hashes, np.concatenate(([0], np.cumsum(lengths))))
    named = {f"band{n}": pa.array(band) for n, band in enumerate(bands)}
    head = row_columns(batch, config.policy, lambda: pc.utf8_length(normalize(texts)))
    own = {"lang": string_column(batch, "lang"), "digest": digests} | named | {"shingles": every.lists()}
    return pa.record_batch(head | own)


# Buckets of rows that share a band.


@kernel
def _number_buckets(hashes, order, first, of_row, sizes):  # type: ignore[no-untyped-def]
    """Number the hashes that more than one row has, from `first` on, in `of_row`; returns the number after the last.

    `order` sorts the hashes. `sizes`, by number, gets how many rows have each: at least two, which bounds the numbers.
    `of_row` int32 (rows,) is -1 at first; all bands together have fewer than 2**31 numbers.
    """
    begin = 0
    for end in range(1, len(order) + 1):
        if end < len(order) and hashes[order[end]] == hashes[order[begin]]:
            continue
        if end - begin > 1:
            of_row[order[begin:end]] = first
            sizes[first] = end - begin
            first += 1
        begin = end
    return first


def find_buckets(
    bands: Iterable[Hashes], shape: tuple[int, int], memory: Memory
) -> tuple[npt.NDArray[np.int32], Numbers]:
    """Group rows by each of their bands, given as hashes, uint64 (rows,) each; `shape` is (num_bands, rows).

    int32 (num_bands, rows), the bucket that holds the row for that band, -1 where it is alone in it; int64 (buckets,),
    the rows in each, at least 2. Buckets are numbered by band, then by band hash.
    """
    of_row, first = memory.full(shape, -1, np.int32), 0
    sizes = memory.full((shape[0] * (shape[1] // 2),), 0, np.int64)
    for number, hashes in enumerate(bands):
        first = _number_buckets(hashes, np.argsort(hashes), first, of_row[number], sizes)
        memory.release()
    return of_row, sizes[:first]
