"""What the reduce phase knows of each row: how it is written, and how all of it is read where it lies on the disk."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from datakit.dedup.config import DedupConfig
from datakit.dedup.exact import first_of_equals
from datakit.dedup.memory import Memory, in_range
from datakit.dedup.minhash import band_hashes, signatures
from datakit.dedup.sides import compared, sets_of, whole
from datakit.text.normal_form import binary_digest, stated_digest

SHINGLES = pa.large_list(pa.field("item", pa.uint64(), nullable=False))


def sketch(batch: pa.RecordBatch, config: DedupConfig) -> pa.RecordBatch:
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


def _rank(batch: pa.RecordBatch, sides: Sequence[pa.Array], config: DedupConfig) -> pa.Array:
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
