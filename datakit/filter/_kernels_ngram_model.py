"""The table of an n-gram model, and the probability of sentences under it.

The table has every n-gram of every order by a 64-bit hash of its words, from the last word to the first, as KenLM's
probing models do (Heafield 2011): n-grams are not compared by words, since of ten million and as many questions no two
share a hash but once in 300,000 models. `keys` (uint64[S], S a power of two, at most half full) holds hashes, 0 where a
place is free; `values` (float32[S, 2]) the logarithms of probability and back-off weight, to the base 10.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

_SEED, _MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@kernel
def _longer(h, word):
    """The hash of the n-gram that has one word more, in front."""
    h = np.uint64((h ^ np.uint64(word)) * _MULTIPLIER)
    return h ^ h >> np.uint64(32)


@kernel
def _slot(keys, h):
    """The place of an n-gram, or the free place where it would be; the hash 0, which means free, counts as 1."""
    slot = np.int64(h & np.uint64(len(keys) - 1))
    while keys[slot] != 0 and keys[slot] != max(h, np.uint64(1)):
        slot = slot + 1 & len(keys) - 1
    return slot


@kernel
def enter(grams, logs, keys, values):
    """Enter n-grams (int32[G, n]: their words) with their logarithms (float32[G, 2]) into the table."""
    for i in range(len(grams)):
        h = _SEED
        for k in range(grams.shape[1] - 1, -1, -1):
            h = _longer(h, grams[i, k])
        slot = _slot(keys, h)
        keys[slot] = max(h, np.uint64(1))
        values[slot, 0], values[slot, 1] = logs[i, 0], logs[i, 1]


@kernel
def score(keys, values, order, begin, ids, offsets, totals):
    """Fill `totals` (float32[S]): the logarithm of the probability of each sentence.

    The words of sentence i, with its end, are `ids[offsets[i] : offsets[i + 1]]`; it begins after the word `begin`,
    which is not there. For each word the longest n-gram counts that ends with it and is in the model, with the back-off
    weights of all contexts that are longer than that n-gram's. Sums are float32, in KenLM's order, so that a model has
    KenLM's scores. `ids` are words that the model has by themselves.
    """
    weights, before = np.zeros(order + 1, np.float32), np.zeros(order + 1, np.float32)
    for sentence in range(len(totals)):
        first, totals[sentence] = offsets[sentence], 0
        before[:] = 0  # by size: the back-off weight of the n-gram that ends with the word before
        before[1] = values[_slot(keys, _longer(_SEED, begin)), 1]
        for i in range(first, offsets[sentence + 1]):
            context = min(order - 1, i - first + 1)  # words before this one that count, `begin` among them
            h, longest, total = _SEED, 0, np.float32(0)
            for size in range(1, context + 2):
                h = _longer(h, ids[i - size + 1] if size <= i - first + 1 else begin)
                slot = _slot(keys, h)
                weights[size] = values[slot, 1]  # a free place has 0
                if keys[slot] != 0:
                    longest, total = size, values[slot, 0]
            for size in range(longest, context + 1):
                total += before[size]
            totals[sentence] += total
            before[:], weights[:] = weights, 0
