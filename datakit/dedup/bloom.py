"""How large a blocked Bloom filter must be, and how often it is wrong.

Keys fall into blocks at random, so a block of a filter with c bits a key holds a Poisson-distributed number of them,
with mean 512 / c, and a block with i keys takes a new one for known with probability (1 - (1 - 1/512)^(ki))^k (Putze,
Sanders, Singler 2007, section 3). A filter of one piece would need fewer bits, and touch k cache lines a key.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from datakit.dedup.memory import Memory
from datakit.native import Kernels

BLOCK_BITS = 512
"""As the kernels have it: a cache line."""

MOST_HASHES = 32
PROBES = 1 << 20
"""Hashes that the rate of false positives is measured with."""


_kernels = Kernels("datakit.dedup._kernels_bloom")


@dataclass(frozen=True, slots=True)
class Bloom:
    """A filter: `bits` uint64, eight words a block."""

    bits: npt.NDArray[np.uint64]
    num_hashes: int

    def measured_rate(self) -> float:
        """Share of `PROBES` hashes which were never inserted that the filter takes for known."""
        probes = np.empty(PROBES, np.uint64)
        _kernels.fresh_hashes(1, probes)
        found: int = _kernels.contains(self.bits, probes, self.num_hashes, np.empty(PROBES, np.bool_))
        return found / PROBES


def false_positive_rate(bits_per_key: float, num_hashes: int) -> float:
    """The expected share of new keys that a filter with so many bits for each key takes for known."""
    mean, total, chance = BLOCK_BITS / bits_per_key, 0.0, 0.0
    keys = 0
    while total < 1 - 1e-15 and keys < 10 * mean + 100:
        weight = math.exp(keys * math.log(mean) - mean - math.lgamma(keys + 1))
        chance += weight * (1 - (1 - 1 / BLOCK_BITS) ** (num_hashes * keys)) ** num_hashes
        total += weight
        keys += 1
    return chance


@lru_cache(maxsize=16)
def best_size(rate: float) -> tuple[float, int]:
    """(bits a key, hashes a key) of the smallest filter whose rate of false positives is at most `rate` when full."""
    best = (math.inf, 0)
    for num_hashes in range(1, MOST_HASHES + 1):
        low, high = 0.5, min(best[0], 512.0)
        if false_positive_rate(high, num_hashes) > rate:
            continue
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if false_positive_rate(middle, num_hashes) <= rate else (middle, high)
        best = min(best, (high, num_hashes))
    return best


def filter_bytes(keys: int, rate: float) -> int:
    """Bytes of a filter for so many keys."""
    return (math.ceil(keys * best_size(rate)[0] / BLOCK_BITS) + 1) * BLOCK_BITS // 8


def make(keys: int, rate: float, memory: Memory) -> Bloom:
    """An empty filter for so many keys; in memory where it is no larger than that, else in a file (slow, and right)."""
    size = filter_bytes(keys, rate)
    words = size // 8
    bits = np.zeros(words, np.uint64) if size <= memory.bytes else memory.full((words,), 0, np.uint64)
    return Bloom(bits, best_size(rate)[1])
