"""MinHash signatures (Broder, 1997) of sets of word shingles, and their bands.

Values follow datasketch's `affine32` scheme bit for bit: the low 32 bits of a shingle's hash go through MurmurHash3's
finalizer once, then each permutation takes the least `a * h + b` modulo 2**32. So
`datasketch.MinHash(num_perm, seed, hashfunc=identity, scheme="affine32")` fed the same 32-bit hashes is equal.
"""

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import sides
from datakit.dedup.exact import Memory, first_of_equals, in_range
from datakit.native import Kernels
from datakit.text.characters import row_chunks, string_buffers
from datakit.text.normal_form import binary_digest, compose, hash_values, normalize, stated_digest
from datakit.text.words import hash_words_in

if TYPE_CHECKING:
    from datakit.dedup.stage import DedupConfig


_CHUNK_BYTES = 1 << 20  # of text: its words and shingles then stay in the second-level cache
_BLOCK = 4096  # shingle hashes that stay in the first-level cache while all permutations pass over them

_kernels = Kernels("datakit.dedup._kernels_minhash")


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


_SIDE_SHIFT = np.uint64(62)  # the two highest bits of a hash are the number of its side
_SALTS = np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # signatures are made of the low bits


def compared(batch: pa.RecordBatch, config: "DedupConfig") -> list[pa.Array]:
    """The text of each row in NFC; of preference pairs the prompts, the chosen answers and the rejected ones, each in
    its normal form, by which the short ones are compared. (White space is in no word, so a text may keep its own.)"""
    texts = sides(batch, config.on, config.include_system, include_calls=True)
    return [compose(texts[0])] if len(texts) == 1 else [normalize(t) for t in texts]


def whole(texts: Sequence[pa.Array]) -> pa.Array:
    """One normalised text a row, equal for rows that are equal on every side: none has a line break of its own."""
    return normalize(texts[0]) if len(texts) == 1 else pc.binary_join_element_wise(*texts, "\n")


def sets_of(texts: Sequence[pa.Array], shingle_words: int) -> ShingleSets:
    """The set of shingle hashes of each row.

    Those of side n have n in their two highest bits, and are mixed with it. A side with fewer words than a shingle
    counts as one, by its text; an empty one not at all.
    """
    if len(texts) == 1:
        return shingle_sets(texts[0], shingle_words)
    rows, hashes = [], []
    for side, text in enumerate(texts):
        found = shingle_sets(text, shingle_words)
        sizes = np.diff(found.starts)
        short = np.flatnonzero((sizes == 0) & (pc.binary_length(text).to_numpy() > 0))
        rows.append(np.concatenate([np.repeat(np.arange(len(sizes)), sizes), short]))
        mixed = np.concatenate([found.hashes, hash_values(text.take(pa.array(short)))]) ^ _SALTS[side]
        hashes.append(mixed << np.uint64(2) >> np.uint64(2) | np.uint64(side) << _SIDE_SHIFT)
    row, made = np.concatenate(rows), np.concatenate(hashes)
    order = np.lexsort((made, row))
    row, made = row[order], made[order]
    fresh = np.ones(len(row), np.bool_)
    fresh[1:] = (row[1:] != row[:-1]) | (made[1:] != made[:-1])
    counts = np.bincount(row[fresh], minlength=len(texts[0]))
    return ShingleSets(made[fresh], np.concatenate(([0], np.cumsum(counts))))


SHINGLES = pa.large_list(pa.field("item", pa.uint64(), nullable=False))


def sketch(batch: pa.RecordBatch, config: "DedupConfig") -> pa.RecordBatch:
    """One row per row: `row_key`, `id`, `source`, `lang`, `digest` of the normalised text, `rank` (its value under the
    policy), its bands (`band0`, `band1`, ...) and `shingles`.

    `shingles` is the sorted set of 64-bit shingle hashes; it is null where the row has fewer words than a shingle, and
    where an earlier row of the batch has the same digest (equal text has equal shingles: one copy is enough).
    """
    sides = compared(batch, config)
    digests = _digests(batch, sides)
    fresh = _first_occurrences(digests)
    sets = sets_of(sides if fresh.all() else [side.filter(pa.array(fresh)) for side in sides], config.shingle_words)
    bands = band_hashes(signatures(sets, config.num_perm, config.seed), config.num_bands, config.rows_per_band)
    lengths = np.zeros(len(batch), dtype=np.int64)
    lengths[fresh] = np.diff(sets.starts)
    every_band = np.zeros((config.num_bands, len(batch)), dtype=np.uint64)
    every_band[:, fresh] = bands.T
    starts = np.concatenate(([0], np.cumsum(lengths)))
    has_set = pa.array(lengths > 0)
    return pa.record_batch(
        {
            "row_key": batch.column("row_key"),
            "id": batch.column("id"),
            "source": _column(batch, "source"),
            "lang": _column(batch, "lang"),
            "digest": digests,
            "rank": _rank(batch, sides, config),
            **{f"band{n}": pa.array(band) for n, band in enumerate(every_band)},
            "shingles": pa.LargeListArray.from_arrays(
                pa.array(starts), pa.array(sets.hashes), type=SHINGLES, mask=pc.invert(has_set)
            ),
        }
    )


def _digests(batch: pa.RecordBatch, sides: Sequence[pa.Array]) -> pa.Array:
    """16 bytes a row; a document's are in its `content_hash`, which is made from the same text."""
    if {"text", "content_hash"} <= set(batch.schema.names) and batch.column("content_hash").null_count == 0:
        return stated_digest(batch.column("content_hash"))
    return binary_digest(whole(sides))


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(name).cast(pa.string()) if name in batch.schema.names else pa.nulls(len(batch), pa.string())


def _first_occurrences(digests: pa.Array) -> npt.NDArray[np.bool_]:
    halves = np.frombuffer(digests.buffers()[1], dtype=np.uint64).reshape(-1, 2)
    return np.equal(first_of_equals(halves), np.arange(len(digests)))


def _rank(batch: pa.RecordBatch, sides: Sequence[pa.Array], config: "DedupConfig") -> pa.Array:
    """float64 per row; among duplicates the highest stays, and null counts as lowest."""
    if config.policy == "longest":
        return pc.utf8_length(whole(sides)).cast(pa.float64())
    if not config.score_column:
        return pa.nulls(len(batch), pa.float64())
    if config.score_column in batch.schema.names:
        return batch.column(config.score_column).cast(pa.float64())
    if "extra" not in batch.schema.names:
        return pa.nulls(len(batch), pa.float64())
    return pa.array([_number(extra, config.score_column) for extra in batch.column("extra").to_pylist()], pa.float64())


def _number(extra: str | None, name: str) -> float | None:
    """The user's own field, which ingest keeps in `extra`."""
    value: Any = orjson.loads(extra).get(name) if extra else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


@dataclass(frozen=True, slots=True)
class Sketches:
    """The sketches of all rows. What every row needs is gathered; the rest stays memory-mapped, and is read in parts.

    row_key uint64 (rows,); address uint64 and length int64 (rows,) of each shingle set, length 0 where there is none.
    `batches` are the mapped record batches, which own that memory; `begins` the number of the first row of each.
    """

    row_key: npt.NDArray[np.uint64]
    address: npt.NDArray[np.uint64]
    length: npt.NDArray[np.int64]
    batches: list[pa.RecordBatch]
    begins: npt.NDArray[np.int64]

    def ranks(self) -> npt.NDArray[np.float64]:
        """float64 (rows,), NaN where there is none."""
        return _gather([b.column("rank").to_numpy(zero_copy_only=False) for b in self.batches], np.float64)

    def band(self, number: int, rows: npt.NDArray[np.int64], memory: Memory) -> npt.NDArray[np.uint64]:
        """The hashes of one band in the given rows, uint64 (n,)."""
        return memory.take(
            _gathered(memory, (b.column(f"band{number}") for b in self.batches), len(self.row_key)), rows
        )

    def digests(self, part: int, ranges: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """(row numbers int64 (n,), digests uint64 (n, 2)) of the rows whose digest lies in a part of equal ranges."""
        rows, digests = [], []
        for batch, begin in zip(self.batches, self.begins, strict=True):
            words = _words(batch.column("digest"), 2)
            chosen = in_range(words[:, 0], part, ranges)
            rows.append(begin + chosen)
            digests.append(words[chosen])
        return _gather(rows, np.int64), _gather(digests, np.uint64, 2)

    def ids(self, rows: npt.NDArray[np.int64]) -> pa.Array:
        """The ids of the given rows, in that order; rows are numbered through all files."""
        distinct, place = np.unique(rows, return_inverse=True)
        cuts = np.searchsorted(distinct, np.append(self.begins, len(self.row_key)))
        parts = [
            batch.column("id").take(pa.array(distinct[low:high] - begin))
            for batch, begin, low, high in zip(self.batches, self.begins, cuts, cuts[1:], strict=False)
            if high > low
        ]
        return pa.concat_arrays(parts).take(pa.array(place)) if parts else pa.array([], pa.string())

    def count(self, name: str, rows: npt.NDArray[np.bool_]) -> Counter[str]:
        """How often each value of the column `name` (`source`, `lang`) stands in the given rows; nulls do not count,
        nor rows of an index, which has no such column.
        """
        found: Counter[str] = Counter()
        for batch, begin in zip(self.batches, self.begins, strict=True):
            if name not in batch.schema.names:
                continue
            chosen = batch.column(name).filter(pa.array(rows[begin : begin + batch.num_rows])).drop_null()
            values, counts = pc.value_counts(chosen).flatten()
            found.update(dict(zip(values.to_pylist(), counts.to_pylist(), strict=True)))
        return found


def open_sketches(paths: Sequence[Path], memory: Memory) -> Sketches:
    """Map the sketch files (Arrow IPC, in shard order) into memory."""
    readers = [pa.ipc.open_file(pa.py_buffer(memory.map(path))) for path in paths]
    batches = [reader.get_batch(i) for reader in readers for i in range(reader.num_record_batches)]
    batches = [batch for batch in batches if batch.num_rows]
    begins = np.cumsum([0, *(b.num_rows for b in batches)])
    address, length = (memory.full((int(begins[-1]),), 0, dtype) for dtype in (np.uint64, np.int64))
    for batch, begin, end in zip(batches, begins, begins[1:], strict=False):
        address[begin:end], length[begin:end] = _sets(batch.column("shingles"))
    row_key = _gathered(memory, (b.column("row_key") for b in batches), int(begins[-1]))
    memory.release()
    return Sketches(row_key=row_key, address=address, length=length, batches=batches, begins=begins[:-1])


def _gathered(memory: Memory, columns: Iterable[pa.Array], rows: int) -> npt.NDArray[np.uint64]:
    """Columns of uint64 one after another."""
    made, at = memory.full((rows,), 0, np.uint64), 0
    for column in columns:
        made[at : at + len(column)] = column.to_numpy()
        at += len(column)
    return made


def _gather(parts: list[npt.NDArray[Any]], dtype: Any, *width: int) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty((0, *width), dtype=dtype)


def _words(array: pa.Array, width: int) -> npt.NDArray[np.uint64]:
    """The 64-bit words of a fixed-width array where they lie, `width` to a row."""
    assert array.offset == 0
    words = np.frombuffer(array.buffers()[1], dtype=np.uint64)
    return words[: len(array) * array.type.bit_width // 64].reshape(-1, width)


def _sets(lists: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Address and length of each row's shingle set."""
    assert lists.offset == 0
    starts = np.frombuffer(lists.buffers()[1], dtype=np.int64)[: len(lists) + 1]
    values = lists.values.buffers()[1]
    base = values.address if values is not None else 0
    return (base + starts[:-1] * 8).astype(np.uint64), np.diff(starts)


_SLOTS_A_ROW = 8  # at least: one row in eight is taken for one that shares its hash, or fewer
_SORT_BYTES = 64  # a row takes while its band is sorted: the order, the hashes in it, where buckets begin, ...


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
        """Take the first `settled` rows out of the buckets that hold no other: there is nothing left to decide there.

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

    Each band is a task of its own, and is sorted by ranges of its hashes where all of it is too much.
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

    Most rows are alone, and not worth a sort.
    """
    words = 1
    while 64 * words < _SLOTS_A_ROW * len(hashes):
        words *= 2
    seen, twice, out = (memory.full((n,), 0, kind) for n, kind in
                        ((words, np.uint64), (words, np.uint64), (len(hashes), np.int32)))  # fmt: skip
    return out[: _kernels.repeated(hashes, seen, twice, out)]


def candidate_probability(similarity: float, num_bands: int, rows_per_band: int) -> float:
    """P(two rows of this Jaccard similarity share a band) = 1 - (1 - s^r)^b, rounded to 1e-3."""
    return round(1.0 - (1.0 - similarity**rows_per_band) ** num_bands, 3)


BYTE_ORDER = "<"
"""As `datasketch.LeanMinHash.deserialize(value, "<")` takes it."""

_AFFINE32 = 1  # datasketch's code of the scheme


def saved_signatures(batch: pa.RecordBatch, config: "DedupConfig") -> pa.Array:
    """binary[rows]: the MinHash values of each row, serialised; null where a row has fewer words than a shingle.

    `datasketch.LeanMinHash.deserialize(value, "<")` makes an object of one, with the scheme `affine32` and the seed.
    """
    sets = sets_of(compared(batch, config), config.shingle_words)
    made = serialised(signatures(sets, config.num_perm, config.seed), config.seed)
    return pc.if_else(pa.array(np.diff(sets.starts) > 0), made, pa.scalar(None, pa.binary()))


def serialised(values: npt.NDArray[np.uint32], seed: int) -> pa.Array:
    """binary[rows] of MinHash values uint32 (rows, num_perm): the seed, the negated count, the scheme, the values."""
    rows, num_perm = values.shape
    head = struct.pack(f"{BYTE_ORDER}qiB", seed, -num_perm, _AFFINE32)
    width = len(head) + 4 * num_perm
    made = np.empty((rows, width), dtype=np.uint8)
    made[:, : len(head)] = np.frombuffer(head, dtype=np.uint8)
    made[:, len(head) :] = values.astype("<u4").view(np.uint8).reshape(rows, 4 * num_perm)
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    large = pa.Array.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(made)])
    return large.cast(pa.binary())
