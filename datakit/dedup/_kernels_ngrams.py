"""A blocked Bloom filter (Bloom 1970; Putze, Sanders, Singler 2007) over 64-bit hashes, and decisions about rows.

All bits of a hash lie in one block of 512, a cache line. The high half of the hash chooses the block; the bits in it
are taken, nine at a time, from the hash mixed again.
"""

import numpy as np

from datakit.dedup._kernels_minhash import hash_shingles
from datakit.kernels import kernel

_WORDS = 8  # of 64 bits in a block: ngrams.BLOCK_BITS, a cache line
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)  # splitmix64's finalizer (Stafford's variant 13 of MurmurHash3's)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF, _NINE, _SIX = (np.uint64(n) for n in (32, 9, 6))
_ONE, _LOW_SIX, _LOW_THREE = (np.uint64(n) for n in (1, 63, 7))
_TAKEN = 7  # times nine bits of 64


@kernel(inline="always")
def _mix(h):  # type: ignore[no-untyped-def]
    h += _GOLDEN
    h = (h ^ h >> np.uint64(30)) * _MIX_1
    h = (h ^ h >> np.uint64(27)) * _MIX_2
    return h ^ h >> np.uint64(31)


@kernel(inline="always")
def _block(h, blocks):  # type: ignore[no-untyped-def]
    return np.int64((h >> _HALF) * np.uint64(blocks) >> _HALF) * _WORDS


@kernel
def contains(bits, hashes, num_hashes, known):  # type: ignore[no-untyped-def]
    """Write to `known` (bool) which hashes the filter has; returns how many. `bits` is uint64, eight per block."""
    found = 0
    for j in range(len(hashes)):
        h, has = hashes[j], True
        at, mixed = _block(h, len(bits) // _WORDS), h
        for k in range(num_hashes):
            mixed = _mix(h + np.uint64(k)) if k % _TAKEN == 0 else mixed >> _NINE
            has &= bits[at + np.int64(mixed >> _SIX & _LOW_THREE)] >> (mixed & _LOW_SIX) & _ONE > 0
        known[j] = has
        found += has
    return found


@kernel
def insert(bits, hashes, num_hashes):  # type: ignore[no-untyped-def]
    """Add the hashes to the filter."""
    for j in range(len(hashes)):
        h = hashes[j]
        at, mixed = _block(h, len(bits) // _WORDS), h
        for k in range(num_hashes):
            mixed = _mix(h + np.uint64(k)) if k % _TAKEN == 0 else mixed >> _NINE
            bits[at + np.int64(mixed >> _SIX & _LOW_THREE)] |= _ONE << (mixed & _LOW_SIX)


@kernel
def fresh_hashes(first, out):  # type: ignore[no-untyped-def]
    """Numbers from `first` on as hashes that no text has, except by chance: to measure the rate of false positives."""
    for j in range(len(out)):
        out[j] = _mix(_mix(np.uint64(first + j)))


@kernel
def hash_ngrams(words, word_starts, size, out, out_starts):  # type: ignore[no-untyped-def]
    """Hashes of every `size` consecutive words of each text, in order, with repeats; and where each text's begin."""
    at = 0
    for row in range(len(word_starts) - 1):
        out_starts[row] = at
        at += hash_shingles(words[word_starts[row] : word_starts[row + 1]], size, out[at:])
    out_starts[len(word_starts) - 1] = at


@kernel
def decide_rows(bits, num_hashes, rules, rows, is_known, cut, dropped, known):  # type: ignore[no-untyped-def]
    """Decide about the rows of a batch, in order, and add what stays of each to the filter.

    `rules` and `rows` are `ngrams.Rules` and `ngrams.TextParts`. Writes which parts are `cut`, which rows are `dropped`
    (1 for its share, 2 for too few words left), and `known` (rows), how many n-grams of the row the filter had. Returns
    how many n-grams were added.

    A row is compared only with the rows before it: its own n-grams are added when it is decided. `is_known` is scratch
    for the n-grams of one row.
    """
    inserted = 0
    for row in range(len(rows.part_starts) - 1):
        ngrams = rows.hashes[rows.hash_starts[row] : rows.hash_starts[row + 1]]
        known[row] = contains(bits, ngrams, num_hashes, is_known)
        first, stop = rows.part_starts[row], rows.part_starts[row + 1]
        words, cut_here = rows.words[first:stop], cut[first:stop]
        left = np.int64(0)
        if rules.cuts_parts:
            left = _judge_parts(words, is_known, rules, cut_here)
        if rules.drops_rows and len(ngrams) > 0 and known[row] * rules.denominator >= rules.numerator * len(ngrams):
            dropped[row] = 1
        elif left < rules.min_words_left and cut_here.any():
            dropped[row] = 2
        if not dropped[row]:
            inserted += _insert_parts(bits, num_hashes, words, ngrams, rules.ngram_words, cut_here)
    return inserted


@kernel
def _judge_parts(words, is_known, rules, cut):  # type: ignore[no-untyped-def]
    """Mark the parts to cut, by the n-grams that lie in each; returns how many words are left."""
    begin = left = np.int64(0)
    for part in range(len(words)):
        inside, seen = max(np.int64(words[part]) - rules.ngram_words + 1, np.int64(0)), 0
        for j in range(begin, begin + inside):
            seen += is_known[j]
        cut[part] = inside > 0 and seen * rules.denominator >= rules.numerator * inside
        left += np.int64(0) if cut[part] else np.int64(words[part])
        begin += np.int64(words[part])
    return left


@kernel
def _insert_parts(bits, num_hashes, words, ngrams, size, cut):  # type: ignore[no-untyped-def]
    """Add the n-grams that do not reach into a cut part; returns how many."""
    begin, end, inserted = np.int64(0), np.int64(0), 0
    for part in range(len(words) + 1):
        if part == len(words) or cut[part]:
            stop = max(end - size + 1, begin)
            insert(bits, ngrams[begin:stop], num_hashes)
            inserted += stop - begin
            begin = end + np.int64(words[part]) if part < len(words) else end
        if part < len(words):
            end += np.int64(words[part])
    return inserted
