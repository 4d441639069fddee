"""The probability of sentences under an n-gram model.

The model's table (`_kernels_lookup.table_of`) has every n-gram of every order by a 64-bit hash of its words, from the
last word to the first, as KenLM's probing models do (Heafield 2011): n-grams are not compared by words, since of ten
million and as many questions no two share a hash but once in 300,000 models.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.filter._kernels_lookup import slot_of
from datakit.kernels import kernel

SEED, _MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@kernel
def longer(h, word):
    """The hash of the n-gram that has one word more, in front; never 0."""
    h = np.uint64((h ^ np.uint64(word)) * _MULTIPLIER)
    return max(h ^ h >> np.uint64(32), np.uint64(1))


@kernel
def hashes_of(grams):
    """uint64[G]: the hashes of n-grams, int32[G, n]: their words."""
    out = np.full(len(grams), SEED)
    for i in range(len(grams)):
        for k in range(grams.shape[1] - 1, -1, -1):
            out[i] = longer(out[i], grams[i, k])
    return out


@kernel
def score(slots, numbers, logs, order, begin, ids, offsets, totals):
    """Fill `totals` (float32[S]): the logarithm of the probability of each sentence.

    The words of sentence i, with its end, are `ids[offsets[i] : offsets[i + 1]]`; it begins after the word `begin`,
    which is not there. For each word the longest n-gram counts that ends with it and is in the model, with the back-off
    weights of all contexts that are longer than that n-gram's. Sums are float32, in KenLM's order, so that a model has
    KenLM's scores. `ids` are words that the model has by themselves. Slots and numbers: the table; logs: float32[G, 2],
    the logarithms of probability and back-off weight of n-grams by their numbers, to the base 10.
    """
    weights, before = np.zeros(order + 1, np.float32), np.zeros(order + 1, np.float32)
    for sentence in range(len(totals)):
        first, totals[sentence] = offsets[sentence], 0
        before[:] = 0  # by size: the back-off weight of the n-gram that ends with the word before
        before[1] = logs[numbers[slot_of(slots, longer(SEED, begin))], 1]
        for i in range(first, offsets[sentence + 1]):
            context = min(order - 1, i - first + 1)  # words before this one that count, `begin` among them
            h, longest, total = SEED, 0, np.float32(0)
            for size in range(1, context + 2):
                h = longer(h, ids[i - size + 1] if size <= i - first + 1 else begin)
                slot = slot_of(slots, h)
                weights[size] = 0
                if slots[slot] != 0:
                    longest, total, weights[size] = size, logs[numbers[slot], 0], logs[numbers[slot], 1]
            for size in range(longest, context + 1):
                total += before[size]
            totals[sentence] += total
            before[:], weights[:] = weights, 0
