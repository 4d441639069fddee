"""Scores of all rows, made once where a decision needs all of them: sketched, gathered, read back row by row."""

import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_SCHEMA = pa.schema([pa.field("row_key", pa.uint64()), pa.field("score", pa.float64())])


def read(sketches: Sequence[Path]) -> pa.Table:
    """The rows of all sketches, which are Arrow IPC files of one schema, in their order."""
    return pa.concat_tables([pa.ipc.open_file(pa.memory_map(str(path))).read_all() for path in sketches])


def save(out: Path, keys: NDArray[np.uint64], scores: NDArray[np.float64], cut: dict[str, Any]) -> None:
    """Write the scores by rising row key, and the cut that was made from them, to `out`, which appears whole."""
    order = np.argsort(keys)
    columns = [pa.array(keys[order]), pa.array(scores[order])]
    table = pa.table(columns, schema=_SCHEMA.with_metadata({"cut": json.dumps(cut)}))
    aside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    aside.rename(out)


def saved(out: Path, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """float64[N]: the scores of rows, each of which `save` wrote."""
    all_keys, scores, _ = _open(out, out.stat().st_mtime_ns)
    return np.asarray(scores[np.searchsorted(all_keys, keys)])


def cut(out: Path) -> dict[str, Any]:
    """The cut that `save` wrote."""
    return _open(out, out.stat().st_mtime_ns)[2]


@functools.lru_cache(maxsize=2)
def _open(out: Path, _written: int) -> tuple[NDArray[np.uint64], NDArray[np.float64], dict[str, Any]]:
    table = pa.ipc.open_file(pa.memory_map(str(out))).read_all()
    made: dict[str, Any] = json.loads(table.schema.metadata[b"cut"])
    return table["row_key"].to_numpy(), table["score"].to_numpy(), made
