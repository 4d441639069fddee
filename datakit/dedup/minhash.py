"""MinHash signatures of sets of word shingles (Broder, 1997), and LSH buckets of their bands (Indyk and Motwani, 1998).

In the order of the data: text of a row -> set of shingle hashes -> MinHash values -> bands; that is the sketch of a
document. Rows that share a band are then put into one bucket: they are the candidates that `cluster` compares.

Values follow datasketch's `affine32` scheme bit for bit: the low 32 bits of a shingle's hash go through MurmurHash3's
finalizer once, then each permutation takes the least `a * h + b` modulo 2**32. So
`datasketch.MinHash(num_perm, seed, hashfunc=identity, scheme="affine32")` fed the same 32-bit hashes is equal.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import row_chunks, string_buffers, view
from datakit.dedup import _kernels_minhash as kernels
from datakit.dedup.comparison import Hashes, Numbers, row_columns, string_column
from datakit.dedup.shuffle import Memory, first_of_equals
from datakit.dedup.stage import DedupConfig
from datakit.text.words import binary_digest, compose, hash_words_in, normalize, stated_digest

SHINGLES = pa.large_list(pa.field("item", pa.uint64(), nullable=False))

_CHUNK_BYTES = 1 << 20  # of text: its words and shingles then fit into the second-level cache
_BLOCK = 4096  # shingle hashes that stay in the first-level cache while all permutations pass over them


# Shingles.


@dataclass(frozen=True, slots=True)
class ShingleSets:
    """The sets of several rows: row i has `hashes[starts[i]:starts[i + 1]]`, distinct 64-bit hashes, ascending."""

    hashes: Hashes
    starts: Numbers

    def lists(self) -> pa.Array:
        """The sets as a column of lists, null where a set is empty."""
        starts, empty = pa.array(self.starts), pa.array(np.diff(self.starts) == 0)
        return pa.LargeListArray.from_arrays(starts, pa.array(self.hashes), type=SHINGLES, mask=empty)


def shingle_sets(texts: pa.Array, shingle_words: int) -> ShingleSets:
    """The set of hashes of every `shingle_words` consecutive words of each text; empty where a text has fewer words."""
    data, offsets = string_buffers(texts)
    sizes, found = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for begin, end in row_chunks(offsets, _CHUNK_BYTES):
        words, word_starts = hash_words_in(data, offsets[begin : end + 1])
        hashes, starts = np.empty(len(words) + 1, dtype=np.uint64), np.empty_like(word_starts)
        scratch = np.empty(6 * int(np.diff(word_starts).max(initial=0)) + 4, dtype=np.uint64)
        kernels.shingle_sets(words, word_starts, shingle_words, scratch, hashes, starts)
        found.append(hashes[: starts[-1]])
        sizes.append(np.diff(starts))
    return ShingleSets(np.concatenate(found), np.concatenate(([0], np.cumsum(np.concatenate(sizes)))))


def text_of(batch: pa.RecordBatch, config: DedupConfig) -> pa.Array:
    """What shingles are made of: the text of each row, in NFC. (No word has white space, so that may stay.)"""
    return compose(view(batch, config.on, config.include_system, include_calls=True))


# Signatures and bands.


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
    kernels.signatures(sets.hashes, sets.starts, *permutations(num_perm, seed), mixed, values)
    return values


def band_hashes(values: npt.NDArray[np.uint32], num_bands: int, rows_per_band: int) -> Hashes:
    """One 64-bit hash of the `rows_per_band` values of each band, uint64 (rows, num_bands)."""
    bands = np.empty((len(values), num_bands), dtype=np.uint64)
    kernels.band_hashes(values, rows_per_band, bands)
    return bands


def bands_of(sets: ShingleSets, config: DedupConfig) -> Hashes:
    """The bands of sets, uint64 (rows, num_bands)."""
    return band_hashes(signatures(sets, config.num_perm, config.seed), config.num_bands, config.rows_per_band)


# The sketch of a document.


def sketch(batch: pa.RecordBatch, config: DedupConfig) -> pa.RecordBatch:
    """For each document its `row_columns` and `lang`, the `digest` of its normalised text, its bands (`band0`, ...) and
    `shingles`.

    `shingles` is the sorted set of 64-bit shingle hashes. It is null where the row has fewer words than a shingle, and
    where an earlier row of the batch has the same digest (equal text has equal shingles: one copy is enough).
    """
    texts = text_of(batch, config)
    if "content_hash" in batch.schema.names and batch.column("content_hash").null_count == 0:
        digests = stated_digest(batch.column("content_hash"))  # made from the same text
    else:
        digests = binary_digest(normalize(texts))
    fresh = first_of_equals(digests) == np.arange(len(digests))
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


def find_buckets(bands: list[Hashes], rows: int, memory: Memory) -> tuple[npt.NDArray[np.int32], Numbers]:
    """Group rows by each of their bands, given as hashes, uint64 (rows,) each.

    int32 (num_bands, rows), the bucket that holds the row for that band, -1 where it is alone in it; int64 (buckets,),
    the rows in each, at least 2. Buckets are numbered by band, then by band hash.
    """
    of_row, every, first = memory.full((len(bands), rows), -1, np.int32), [np.empty(0, np.int64)], 0
    for number, hashes in enumerate(bands):
        order = np.argsort(hashes)
        ordered = hashes[order]
        begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if rows else order
        sizes = np.diff(begins, append=rows)
        shared = sizes > 1
        of_row[number, order] = np.repeat(np.where(shared, first + np.cumsum(shared) - 1, -1), sizes)
        every.append(sizes[shared])
        first += int(shared.sum())
        memory.release()
    return of_row, np.concatenate(every)
