"""The sketches of all rows where they lie on the disk: what stages that compare parts of texts share.

A sketch file (Arrow IPC) has a row a row, with `row_key`, `id` and `source`, and lists whose type is large_list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows, numbered through all files; `begins` (batches + 1) is where each batch's numbers begin."""

    batches: list[pa.RecordBatch]
    begins: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.begins[-1])

    def ids(self, numbers: npt.NDArray[np.int64]) -> pa.Array:
        """The ids of the given rows, in that order; null for -1."""
        distinct, place = np.unique(numbers, return_inverse=True)
        known = distinct[distinct >= 0]
        cuts = np.searchsorted(known, self.begins)
        parts = [
            batch.column("id").take(pa.array(known[low:high] - begin))
            for batch, begin, low, high in zip(self.batches, self.begins, cuts, cuts[1:], strict=False)
            if high > low
        ]
        unknown = pa.nulls(len(distinct) - len(known), pa.string())
        return pa.concat_arrays([unknown, *parts]).take(pa.array(place))


def open_rows(paths: Sequence[Path]) -> Rows:
    """Map the sketch files, in the order of their shards; rows are in the order of their keys."""
    readers = [pa.ipc.open_file(pa.memory_map(str(path))) for path in paths]
    batches = [reader.get_batch(i) for reader in readers for i in range(reader.num_record_batches)]
    batches = [batch for batch in batches if batch.num_rows]
    last = -1
    for batch in batches:
        keys = batch.column("row_key").to_numpy()
        assert int(keys[0]) > last and (keys[1:] > keys[:-1]).all(), "rows flow in the order of their keys"
        last = int(keys[-1])
    return Rows(batches, np.cumsum([0, *(b.num_rows for b in batches)], dtype=np.int64))


def values(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    """All values of a column of lists of numbers, where they lie."""
    return np.asarray(batch.column(name).flatten().to_numpy())


def starts(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    """Where the list of each row begins in `values` (rows + 1)."""
    offsets: npt.NDArray[np.int64] = batch.column(name).offsets.to_numpy()
    return np.asarray(offsets - offsets[0], np.int64)


def lists(numbers: npt.NDArray[Any], begins: npt.NDArray[np.int64]) -> pa.Array:
    """The large_list array whose row i is `numbers[begins[i]:begins[i + 1]]`."""
    kind = pa.large_list(pa.field("item", pa.from_numpy_dtype(numbers.dtype), nullable=False))
    return pa.LargeListArray.from_arrays(pa.array(begins), pa.array(numbers), type=kind)
