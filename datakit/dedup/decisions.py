"""What a reduce phase decided about the rows that it touches: written in the order of their keys, looked up by key."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("row_key", pa.uint64(), nullable=False),
        pa.field("reason", pa.string()),  # null: the row stays
        pa.field("detail", pa.string()),
        pa.field("duplicate_of", pa.string()),  # of a row that is dropped for another
        pa.field("cut", pa.list_(pa.int32())),  # numbers of the units that a row that stays loses
        pa.field("stays_in", pa.list_(pa.string())),  # the ids of the rows that still have them, where they are known
    ]
)


def write(out: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write decisions, rows in the order of their keys; columns that are not given are null."""
    aside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        for batch in batches:
            columns = [batch.column(f.name).cast(f.type) if f.name in batch.schema.names
                       else pa.nulls(batch.num_rows, f.type) for f in SCHEMA]  # fmt: skip
            writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
    aside.rename(out)


def decided(
    row_key: pa.Array,
    reason: str,
    dropped: npt.NDArray[np.bool_],
    unit_starts: npt.NDArray[np.int64],
    cut: npt.NDArray[np.bool_],
    tell: Callable[[int], str],
) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
    """(decisions about the rows of a batch that are dropped or lose units; the numbers of these rows).

    The units of row i are `[unit_starts[i], unit_starts[i + 1])`; `cut` marks those that rows which stay lose.
    `tell(i)` says why row i is dropped.
    """
    row_of = np.repeat(np.arange(len(dropped)), np.diff(unit_starts))
    cuts = np.bincount(row_of[cut], minlength=len(dropped))
    rows = np.flatnonzero((cuts > 0) | dropped)
    numbers = (np.arange(len(cut)) - unit_starts[row_of])[cut]
    lists = pa.ListArray.from_arrays(
        pa.array(np.concatenate(([0], np.cumsum(cuts[rows]))), pa.int32()), pa.array(numbers, pa.int32())
    )
    columns = {
        "row_key": row_key.take(pa.array(rows)),
        "reason": pa.array([reason if dropped[row] else None for row in rows], pa.string()),
        "detail": pa.array([tell(row) if dropped[row] else None for row in rows.tolist()], pa.string()),
        "cut": lists,
    }
    return pa.record_batch(columns), rows


def look_up(path: Path, row_key: pa.Array) -> pa.RecordBatch:
    """The decisions of rows; null in every column for a row that is not touched."""
    wanted = row_key.to_numpy()
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
    near = pa.Table.from_batches([b for b in batches if _may_hold(b.column("row_key").to_numpy(), wanted)], SCHEMA)
    known = near.column("row_key").to_numpy()
    at = np.searchsorted(known, wanted)
    hit = at < len(known)
    hit[hit] = known[at[hit]] == wanted[hit]
    found = near.take(pa.array(at, mask=~hit)).combine_chunks()
    columns = [pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type) for c in found.columns]
    return pa.record_batch(columns, names=SCHEMA.names)


def _may_hold(keys: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> bool:
    return len(keys) > 0 and len(wanted) > 0 and bool(keys[0] <= wanted.max() and keys[-1] >= wanted.min())
