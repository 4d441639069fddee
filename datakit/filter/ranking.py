"""Scores of all rows, for stages that compare a row's score with those of the other rows.

The sketch phase scores each row. The reduce phase gathers the scores and finds the cut. Then the scores are looked up
row by row, so that no row is scored twice.
"""

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import datakit.storage as storage
from datakit.data import Floats, Hashes

_SCHEMA = pa.schema([pa.field("row_key", pa.uint64()), pa.field("score", pa.float64())])


def read_sketches(sketches: Sequence[Path]) -> pa.Table:
    """The rows of all sketches, which are Arrow IPC files of one schema, in their order."""
    return pa.concat_tables([pa.ipc.open_file(pa.memory_map(str(path))).read_all() for path in sketches])


def save(out: Path, keys: Hashes, scores: Floats, cut: dict[str, Any]) -> None:
    """Write the scores, sorted by row key, and the cut that was found. `out` appears only when it is complete."""
    order = np.argsort(keys)
    columns = [pa.array(keys[order]), pa.array(scores[order])]
    table = pa.table(columns, schema=_SCHEMA.with_metadata({"cut": json.dumps(cut)}))
    with (
        storage.whole_file(out, flush=False) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table.combine_chunks())


def saved(out: Path | None, keys: Hashes) -> tuple[Floats, dict[str, Any]]:
    """What `save` wrote: (float64[N], the scores of the rows with these keys; the cut)."""
    assert out is not None, "decide needs what reduce wrote: call bind first"
    all_keys, scores, cut = _open(out, out.stat().st_mtime_ns)
    return scores[np.searchsorted(all_keys, keys)], cut


@functools.lru_cache(maxsize=2)
def _open(out: Path, _written: int) -> tuple[Hashes, Floats, dict[str, Any]]:
    table = pa.ipc.open_file(pa.memory_map(str(out))).read_all()
    cut: dict[str, Any] = json.loads(table.schema.metadata[b"cut"])
    return table["row_key"].to_numpy(), table["score"].to_numpy(), cut
