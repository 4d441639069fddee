"""MinHash signatures of sets of word shingles (Broder, 1997), and LSH buckets of their bands (Indyk and Motwani, 1998).

In the order of the data: texts of a row -> set of shingle hashes -> MinHash values -> bands; that is the sketch of a
row. The sketches of all rows are then read from the disk, and rows that share a band are put into one bucket: they are
the candidates that `cluster` compares.

Values follow datasketch's `affine32` scheme bit for bit: the low 32 bits of a shingle's hash go through MurmurHash3's
finalizer once, then each permutation takes the least `a * h + b` modulo 2**32. So
`datasketch.MinHash(num_perm, seed, hashfunc=identity, scheme="affine32")` fed the same 32-bit hashes is equal.
"""

import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import compared_fields, row_chunks, string_buffers
from datakit.dedup import _kernels_minhash as kernels
from datakit.dedup.alike import may_be_indented, segments, sign_sets, streams, whole_conversations, with_indentation
from datakit.dedup.exact import Memory, SketchRows, first_of_equals, in_range
from datakit.dedup.stage import DedupConfig, policy_rank, source_column
from datakit.text.words import binary_digest, compose, hash_values, hash_words_in, normalize, stated_digest

SHINGLES = pa.large_list(pa.field("item", pa.uint64(), nullable=False))

_CHUNK_BYTES = 1 << 20  # of text: its words and shingles then fit into the second-level cache
_BLOCK = 4096  # shingle hashes that stay in the first-level cache while all permutations pass over them
_FIELD_SHIFT = np.uint64(62)  # the two highest bits of a hash are the number of its field
_SALTS = np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # signatures are made of the low bits
_AFFINE32 = 1  # datasketch's code of the scheme
_SLOTS_PER_ROW = 8  # at least: then at most one row in eight is mistaken for one that shares its hash
_SORT_BYTES = 64  # per row while its band is sorted: the order, the hashes in it, where buckets begin, ...


# The texts of a row. The fields of a preference pair (prompt, chosen, rejected) are compared separately: a pair whose
# answers changed places teaches the opposite, so their shingles differ, and rows are duplicates only if their answers
# alone are similar enough too, however long the prompt is.


def compared_texts(batch: pa.RecordBatch, config: DedupConfig) -> list[pa.Array]:
    """The text of each row in NFC; of preference pairs the prompts, the chosen and the rejected answers, normalised.

    (No word has white space, so it may stay in a text. Short fields are compared as a whole, so they are normalised.)
    """
    texts = compared_fields(batch, config.on, include_calls=True)
    return [compose(texts[0])] if len(texts) == 1 else [normalize(t) for t in texts]


def whole_text(texts: Sequence[pa.Array]) -> pa.Array:
    """One normalised text for each row, equal for rows that are equal in every field (no field has a line break)."""
    return normalize(texts[0]) if len(texts) == 1 else pc.binary_join_element_wise(*texts, "\n")


@dataclass(frozen=True, slots=True)
class ShingleSets:
    """The sets of several rows: row i has `hashes[starts[i]:starts[i + 1]]`, distinct 64-bit hashes, ascending."""

    hashes: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]


def row_shingles(texts: Sequence[pa.Array], shingle_words: int, compare: str | None = "auto") -> ShingleSets:
    """The set of shingle hashes of each row, from its `compared_texts`.

    `compare` is that of the configuration; with None only words count. A text with fewer words than a shingle has pairs
    of letters, a formula or code shingles of words and signs. Of preference pairs, hashes of field n have n in their
    two highest bits, and are mixed with it; a field with fewer words than a shingle counts as one shingle, by its text;
    an empty one has none.
    """
    if len(texts) == 1:
        words = shingle_sets(texts[0], shingle_words)
        return words if compare is None else _with_signs(texts[0], words, shingle_words, compare)
    rows, hashes = [], []
    for number, text in enumerate(texts):
        found = shingle_sets(text, shingle_words)
        sizes = np.diff(found.starts)
        short = np.flatnonzero((sizes == 0) & (pc.binary_length(text).to_numpy() > 0))
        rows.append(np.concatenate([np.repeat(np.arange(len(sizes)), sizes), short]))
        mixed = np.concatenate([found.hashes, hash_values(text.take(pa.array(short)))]) ^ _SALTS[number]
        hashes.append(mixed << np.uint64(2) >> np.uint64(2) | np.uint64(number) << _FIELD_SHIFT)
    row, made = np.concatenate(rows), np.concatenate(hashes)
    order = np.lexsort((made, row))
    row, made = row[order], made[order]
    fresh = np.ones(len(row), np.bool_)
    fresh[1:] = (row[1:] != row[:-1]) | (made[1:] != made[:-1])
    counts = np.bincount(row[fresh], minlength=len(texts[0]))
    return ShingleSets(made[fresh], np.concatenate(([0], np.cumsum(counts))))


def _with_signs(texts: pa.Array, words: ShingleSets, shingle_words: int, compare: str) -> ShingleSets:
    """The sets of words, replaced where the text is short or where signs carry its meaning."""
    sizes = np.diff(words.starts)
    short = (sizes == 0) & (pc.binary_length(texts).to_numpy() > 0)
    rows, hashes, places = sign_sets(texts, short, compare, shingle_words)
    if not len(rows):
        return words
    pieces, done = [], 0
    for row, (begin, end) in zip(rows.tolist(), places.tolist(), strict=True):
        pieces += [words.hashes[words.starts[done] : words.starts[row]], hashes[begin:end]]
        sizes[row], done = end - begin, row + 1
    pieces.append(words.hashes[words.starts[done] :])
    return ShingleSets(np.concatenate(pieces), np.concatenate(([0], np.cumsum(sizes))))


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


def band_hashes(values: npt.NDArray[np.uint32], num_bands: int, rows_per_band: int) -> npt.NDArray[np.uint64]:
    """One 64-bit hash of the `rows_per_band` values of each band, uint64 (rows, num_bands)."""
    bands = np.empty((len(values), num_bands), dtype=np.uint64)
    kernels.band_hashes(values, rows_per_band, bands)
    return bands


# The sketch of a row.


def sketch(batch: pa.RecordBatch, config: DedupConfig) -> pa.RecordBatch:
    """For each row: `row_key`, `id`, `source`, `lang`, `digest` of the normalised text, `rank` (its value under the
    policy), its bands (`band0`, `band1`, ...) and `shingles`.

    `shingles` is the sorted set of 64-bit shingle hashes. It is null where the row has fewer words than a shingle, and
    where an earlier row of the batch has the same digest (equal text has equal shingles: one copy is enough).
    """
    if "messages" in batch.schema.names:
        return _sketch_of_turns(batch, config)
    texts = compared_texts(batch, config)
    digests = _digests(batch, texts, config.compare)
    halves = np.frombuffer(digests.buffers()[1], dtype=np.uint64).reshape(-1, 2)
    fresh = np.equal(first_of_equals(halves), np.arange(len(digests)))
    sets = row_shingles(
        texts if fresh.all() else [t.filter(pa.array(fresh)) for t in texts], config.shingle_words, config.compare
    )
    bands = band_hashes(signatures(sets, config.num_perm, config.seed), config.num_bands, config.rows_per_band)
    lengths = np.zeros(len(batch), dtype=np.int64)
    lengths[fresh] = np.diff(sets.starts)
    every_band = np.zeros((config.num_bands, len(batch)), dtype=np.uint64)
    every_band[:, fresh] = bands.T
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return _sketch_of(
        batch,
        digests,
        policy_rank(batch, config.policy, lambda: pc.utf8_length(whole_text(texts))),
        every_band,
        starts,
        sets.hashes,
    )


def _sketch_of_turns(batch: pa.RecordBatch, config: DedupConfig) -> pa.RecordBatch:
    """The sketch of conversations: the streams of `alike` instead of shingles, and their keys instead of bands.

    Further columns: `messages`, how many there are, and `prefixes`, the keys of the beginnings of the row. Where more
    answers of a prompt than one stay, the digest is of the whole conversation, so that equal ones count once.
    """
    compared = segments(batch, config)
    found = streams(compared, config.compare)
    whole = whole_conversations(compared)
    digested = whole
    if config.keep_per_prompt > 1:
        digested = whole_conversations(segments(batch, replace(config, on="all", keep_per_prompt=1)))
    alone = found.keys == 0
    found.keys[alone] = hash_values(whole)[np.nonzero(alone)[0]] + np.nonzero(alone)[1].astype(np.uint64)
    rank = policy_rank(batch, config.policy, lambda: pc.utf8_length(whole))
    made = _sketch_of(batch, binary_digest(digested), rank, found.keys.T, found.starts, found.values)
    messages = pa.array(np.diff(found.prefix_starts).astype(np.uint64))
    ends = found.prefix_starts if config.on == "all" else np.zeros_like(found.prefix_starts)
    beginnings = pa.LargeListArray.from_arrays(pa.array(ends), pa.array(found.prefixes), type=SHINGLES)
    return made.append_column("messages", messages).append_column("prefixes", beginnings)


def _sketch_of(
    batch: pa.RecordBatch,
    digests: pa.Array,
    rank: pa.Array,
    bands: npt.NDArray[np.uint64],
    starts: npt.NDArray[np.int64],
    values: npt.NDArray[np.uint64],
) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "row_key": batch.column("row_key"),
            "id": batch.column("id"),
            "source": source_column(batch),
            "lang": source_column(batch, "lang"),
            "digest": digests,
            "rank": rank,
            **{f"band{n}": pa.array(np.ascontiguousarray(band)) for n, band in enumerate(bands)},
            "shingles": pa.LargeListArray.from_arrays(
                pa.array(starts), pa.array(values), type=SHINGLES, mask=pa.array(np.diff(starts) == 0)
            ),
        }
    )


def _digests(batch: pa.RecordBatch, texts: Sequence[pa.Array], compare: str) -> pa.Array:
    """16 bytes for each row; a document has them in its `content_hash`, which is made from the same text.

    The digest of a short text that may be code is also of its indentation.
    """
    if {"text", "content_hash"} <= set(batch.schema.names) and batch.column("content_hash").null_count == 0:
        made = stated_digest(batch.column("content_hash"))
    else:
        made = binary_digest(whole_text(texts))
    indented = np.flatnonzero(may_be_indented(texts[0])) if len(texts) == 1 and compare != "words" else ()
    if len(indented):
        other = binary_digest(with_indentation(texts[0].take(pa.array(indented))))
        place = np.arange(len(made))
        place[indented] = len(made) + np.arange(len(indented))
        made = pa.concat_arrays([made, other]).take(pa.array(place))
    return made


def saved_signatures(batch: pa.RecordBatch, config: DedupConfig) -> pa.Array:
    """binary[rows]: the MinHash values of each row, serialised; null where a row has fewer words than a shingle.

    `datasketch.LeanMinHash.deserialize(value, "<")` makes an object of one, with the scheme `affine32` and the seed.
    The bytes are the seed, the negated number of values, the scheme, the values.
    """
    sets = row_shingles(compared_texts(batch, config), config.shingle_words, None)
    values = signatures(sets, config.num_perm, config.seed)
    rows, num_perm = values.shape
    head = struct.pack("<qiB", config.seed, -num_perm, _AFFINE32)
    width = len(head) + 4 * num_perm
    made = np.empty((rows, width), dtype=np.uint8)
    made[:, : len(head)] = np.frombuffer(head, dtype=np.uint8)
    made[:, len(head) :] = values.astype("<u4").view(np.uint8).reshape(rows, 4 * num_perm)
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    large = pa.Array.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(made)])
    return pc.if_else(pa.array(np.diff(sets.starts) > 0), large.cast(pa.binary()), pa.scalar(None, pa.binary()))


# The sketches of all rows.


@dataclass(frozen=True, slots=True)
class Sketches(SketchRows):
    """The sketches of all rows. What every row needs is in arrays; the rest stays mapped, and is read in parts.

    row_key uint64 (rows,); address uint64 and length int64 (rows,) of each shingle set, length 0 where there is none.
    """

    row_key: npt.NDArray[np.uint64]
    address: npt.NDArray[np.uint64]
    length: npt.NDArray[np.int64]

    @property
    def of_turns(self) -> bool:
        """Whether the rows are conversations."""
        return bool(self.batches) and "prefixes" in self.batches[0].schema.names


def sketches_of(rows: SketchRows, memory: Memory) -> Sketches:
    """What every row needs, in arrays, of rows whose batches are mapped."""
    address, length = (memory.full((len(rows),), 0, dtype) for dtype in (np.uint64, np.int64))
    for batch, begin in zip(rows.batches, rows.begins, strict=False):
        lists, at = batch.column("shingles"), slice(begin, begin + batch.num_rows)
        assert lists.offset == 0
        starts = np.frombuffer(lists.buffers()[1], dtype=np.int64)[: len(lists) + 1]
        values = lists.values.buffers()[1]
        address[at] = (values.address if values is not None else 0) + starts[:-1] * 8
        length[at] = np.diff(starts)
    row_key = rows.column("row_key", memory)
    memory.release()
    return Sketches(rows.batches, rows.begins, row_key, address, length)


# Buckets of rows that share a band.


@dataclass(frozen=True, slots=True)
class Buckets:
    """Rows by shared band.

    `of_row` is int32 (num_bands, rows): the bucket that holds the row for that band, -1 where it is alone in it.
    `sizes` is int64 (buckets,): rows in each, at least 2. Buckets are numbered by band, then by band hash.
    """

    of_row: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int64]

    @property
    def pairs(self) -> int:
        """Pairs of rows in the same bucket, counted once for each band that they share."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())

    def leave_settled(self, settled: int) -> None:
        """Take the first `settled` rows out of the buckets that hold no other: these rows are decided already.

        Changes `of_row` in place; `sizes` stay as they were found.
        """
        for of_row in self.of_row if settled and len(self.sizes) else ():
            holds_new = np.zeros(len(self.sizes), np.bool_)
            fresh, old = of_row[settled:], of_row[:settled]
            holds_new[fresh[fresh >= 0]] = True
            old[~holds_new[old]] = -1


def find_buckets(
    band: Callable[[int], npt.NDArray[np.uint64]], num_bands: int, rows: int, memory: Memory, workers: int = 1
) -> Buckets:
    """Group rows by each of their bands; `band(n)` gives the hashes of band n, uint64 (rows,).

    Each band is one task. Its hashes are sorted in ranges where all of them would take too much memory.
    """
    of_row = memory.full((num_bands, rows), -1, np.int32)
    ranges = memory.ranges(rows * workers * _SORT_BYTES)

    def one(number: int) -> npt.NDArray[np.int64]:
        sizes = _one_band(band(number), of_row[number], ranges, memory)
        memory.release()
        return sizes

    with ThreadPoolExecutor(workers) as pool:
        sizes = list(pool.map(one, range(num_bands)))
    first = 0
    for number, found in enumerate(sizes):
        np.add(of_row[number], first, out=of_row[number], where=of_row[number] >= 0)
        first += len(found)
    return Buckets(of_row, memory.keep(np.concatenate(sizes) if sizes else np.empty(0, np.int64)))


def _one_band(
    hashes: npt.NDArray[np.uint64], of_row: npt.NDArray[np.int32], ranges: int, memory: Memory
) -> npt.NDArray[np.int64]:
    """Write each row's bucket, numbered by hash within the band, to `of_row`; returns the buckets' sizes."""
    found, first = [np.empty(0, np.int64)], 0
    repeated = repeated_hashes(hashes, memory)
    chosen = memory.take(hashes, repeated)
    for part in range(ranges):
        places = in_range(chosen, part, ranges)
        order = np.argsort(chosen[places])
        places = places[order]
        rows, ordered = repeated[places], chosen[places]
        begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(rows) else order
        sizes = np.diff(begins, append=len(rows))
        shared = sizes > 1
        number = np.where(shared, first + np.cumsum(shared) - 1, -1)
        of_row[rows] = np.repeat(number, sizes)
        found.append(sizes[shared])
        first += int(shared.sum())
    return np.concatenate(found)


def repeated_hashes(hashes: npt.NDArray[np.uint64], memory: Memory) -> npt.NDArray[np.int32]:
    """The rows that may share their hash, in order: all that do and few others.

    Most rows share none, so that sorting them would be wasted.
    """
    words = 1
    while 64 * words < _SLOTS_PER_ROW * len(hashes):
        words *= 2
    seen, twice = memory.full((words,), 0, np.uint64), memory.full((words,), 0, np.uint64)
    out = memory.full((len(hashes),), 0, np.int32)
    return out[: kernels.repeated(hashes, seen, twice, out)]
