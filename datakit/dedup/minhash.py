"""MinHash signatures (Broder, 1997) of sets of word shingles, and their bands.

Values follow datasketch's `affine32` scheme bit for bit: the low 32 bits of a shingle's hash go through MurmurHash3's
finalizer once, then each permutation takes the least `a * h + b` modulo 2**32. So
`datasketch.MinHash(num_perm, seed, hashfunc=identity, scheme="affine32")` fed the same 32-bit hashes is equal.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.native import Kernels
from datakit.text.characters import row_chunks, string_buffers
from datakit.text.words import hash_words_in

_CHUNK_BYTES = 1 << 20  # of text: its words and shingles then stay in the second-level cache
_BLOCK = 4096  # shingle hashes that stay in the first-level cache while all permutations pass over them

_kernels = Kernels("datakit.dedup._kernels")


@dataclass(frozen=True, slots=True)
class ShingleSets:
    """The sets of several rows: row i is `hashes[starts[i]:starts[i + 1]]`, distinct 64-bit hashes, ascending."""

    hashes: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]


def shingle_sets(texts: pa.Array, shingle_words: int) -> ShingleSets:
    """The set of hashes of every `shingle_words` words in a row of each text; empty where a text has fewer words."""
    data, offsets = string_buffers(texts)
    parts = [
        _sets_of_words(*hash_words_in(data, offsets[begin : end + 1]), shingle_words)
        for begin, end in row_chunks(offsets, _CHUNK_BYTES)
    ]
    sizes = np.concatenate([np.diff(starts) for _, starts in parts]) if parts else np.empty(0, np.int64)
    hashes = np.concatenate([hashes for hashes, _ in parts]) if parts else np.empty(0, np.uint64)
    return ShingleSets(hashes, np.concatenate(([0], np.cumsum(sizes))))


def _sets_of_words(
    words: npt.NDArray[np.uint64], word_starts: npt.NDArray[np.int64], size: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    hashes, starts = np.empty(len(words) + 1, dtype=np.uint64), np.empty_like(word_starts)
    scratch = np.empty(6 * int(np.diff(word_starts).max(initial=0)) + 4, dtype=np.uint64)
    _kernels.shingle_sets(words, word_starts, size, scratch, hashes, starts)
    return hashes[: starts[-1]], starts


@lru_cache(maxsize=8)
def permutations(num_perm: int, seed: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """datasketch's multipliers and addends for a seed, uint32 (num_perm,) each.

    Drawn here in datasketch's order, because importing it takes 0.4 s (it brings scipy); a test compares the two.
    """
    generator = np.random.RandomState(seed)
    a = generator.randint(0, 1 << 31, num_perm, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    b = generator.randint(0, 1 << 32, num_perm, dtype=np.uint32)
    return a, b


def signatures(sets: ShingleSets, num_perm: int, seed: int) -> npt.NDArray[np.uint32]:
    """MinHash values, uint32 (rows, num_perm); all 0xFFFFFFFF for an empty set."""
    values = np.empty((len(sets.starts) - 1, num_perm), dtype=np.uint32)
    mixed = np.empty(_BLOCK, dtype=np.uint32)
    _kernels.signatures(sets.hashes, sets.starts, *permutations(num_perm, seed), mixed, values)
    return values


def band_hashes(values: npt.NDArray[np.uint32], num_bands: int, rows_per_band: int) -> npt.NDArray[np.uint64]:
    """One 64-bit hash of the `rows_per_band` values of each band, uint64 (rows, num_bands)."""
    bands = np.empty((len(values), num_bands), dtype=np.uint64)
    _kernels.band_hashes(values, rows_per_band, bands)
    return bands
