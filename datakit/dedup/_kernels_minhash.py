"""From word hashes to sets of shingle hashes, MinHash values and bands."""

import numpy as np

from datakit.kernels import kernel
from datakit.text._kernels_text import finalize

NONE = np.uint64(0xFFFFFFFFFFFFFFFF)  # a free slot; no hash that `finalize` makes has this value
BASE = np.uint64(0xA0761D6478BD642F)  # odd: the order of the words matters, no bit of a word is lost
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LARGEST = np.uint32(0xFFFFFFFF)


@kernel
def hash_shingles(words, size, out):  # type: ignore[no-untyped-def]
    """Hashes of every `size` consecutive words, in order and with repeats; returns how many."""
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
def sorted_set(hashes, count, table, out):  # type: ignore[no-untyped-def]
    """The distinct values of `hashes[:count]`, ascending, to `out`; returns how many.

    Ordered linear probing (Amble and Knuth, 1974): the slot grows with the hash, so the filled table is sorted.
    It takes linear time for hashes that are spread evenly. `table` has at least 5 * count + 4 slots, `out` count + 1.
    """
    bits = 2
    while 1 << bits < 2 * count:
        bits += 1
    shift = np.uint64(64 - bits)
    slots = (1 << bits) + count
    table[:slots] = NONE
    for j in range(count):
        value = hashes[j]
        at = np.int64(value >> shift)
        while table[at] < value:
            at += 1
        if table[at] == value:
            continue
        while value != NONE:
            value, table[at] = table[at], value
            at += 1
    size = 0
    for slot in range(slots):
        out[size] = table[slot]
        size += table[slot] != NONE
    return size


@kernel
def shingle_sets(words, word_starts, size, scratch, out, out_starts):  # type: ignore[no-untyped-def]
    """The sorted set of shingle hashes of each row, one after another in `out` (uint64, longer than `words` by one).

    The words of row i are `words[word_starts[i]:word_starts[i + 1]]`. `out_starts` (rows + 1) gets the place in `out`
    where each row begins. `scratch` (uint64) holds 6 times the words of the longest row, and 4.
    """
    rows, at = len(word_starts) - 1, 0
    for row in range(rows):
        out_starts[row] = at
        count = hash_shingles(words[word_starts[row] : word_starts[row + 1]], size, scratch)
        at += sorted_set(scratch[:count], count, scratch[count:], out[at:])
    out_starts[rows] = at


@kernel
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
def signatures(hashes, offsets, a, b, mixed, out):  # type: ignore[no-untyped-def]
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
def band_hashes(values, rows_per_band, out):  # type: ignore[no-untyped-def]
    """Each band of a signature as one 64-bit hash: `values` uint32 (rows, num_perm) -> `out` uint64 (rows, bands)."""
    for row in range(values.shape[0]):
        for band in range(out.shape[1]):
            h = np.uint64(0)
            for k in range(rows_per_band):
                h = finalize(h + _GOLDEN ^ np.uint64(values[row, band * rows_per_band + k]))
            out[row, band] = h
