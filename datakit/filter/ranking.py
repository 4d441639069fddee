"""The base class of stages that compare a row's score with those of the other rows.

The sketch phase scores each row. The reduce phase gathers the scores and finds the cuts. Then the scores are looked up
row by row, so that no row is scored twice.
"""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.feather

import datakit.storage as storage
from datakit.data import Floats, Hashes
from datakit.stage import Stage


@dataclass(frozen=True)
class RankedStage(Stage):
    """A map -> reduce -> map stage whose `sketch` gives `row_key` and `score` (float64) of each row.

    A subclass has `rank`, which finds the cuts, and a `decide` that asks `ranked` for scores and cuts.
    """

    compares_rows: ClassVar[bool] = True

    cut: Path | None = None
    """The file that `reduce` wrote, in the stage that `bind` returns."""

    def rank(self, rows: pa.Table) -> tuple[dict[str, Any], dict[str, Any]]:
        """(what decides about scores, as JSON; facts for the manifest), from the sketches of all rows, in order."""
        raise NotImplementedError(f"{type(self).__name__}.rank")

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write to `out` the scores of all rows by key, and the cuts; `out` appears only when it is complete."""
        rows = pa.concat_tables([pa.ipc.open_file(pa.memory_map(str(path))).read_all() for path in sketches])
        cuts, facts = self.rank(rows)
        table = rows.select(["row_key", "score"]).sort_by("row_key").combine_chunks()
        table = table.replace_schema_metadata({"cuts": json.dumps(cuts)})
        with storage.whole_file(out, flush=False) as temporary:  # in one batch, which is read without a copy
            pa.feather.write_feather(table, str(temporary), "uncompressed", chunksize=max(len(table), 1))
        return facts

    def bind(self, out: Path) -> Self:
        """The stage that decides by the cuts in `out`."""
        return replace(self, cut=out)

    def ranked(self, row_keys: Hashes) -> tuple[Floats, dict[str, Any]]:
        """(float64[N], the scores of the rows with these keys; the cuts)."""
        assert self.cut is not None, "decide needs what reduce wrote: call bind first"
        all_keys, scores, cuts = _open(self.cut, self.cut.stat().st_mtime_ns)
        return scores[np.searchsorted(all_keys, row_keys)], cuts

    def decided_about(self, row_keys: Hashes) -> pa.RecordBatch:
        """The scores of the rows, and the cuts: the detail of a dropped row names them."""
        scores, cuts = self.ranked(row_keys)
        return pa.record_batch({"score": scores, "cuts": [json.dumps(cuts, sort_keys=True)] * len(scores)})


@functools.lru_cache(maxsize=2)
def _open(out: Path, _written: int) -> tuple[Hashes, Floats, dict[str, Any]]:
    table = pa.ipc.open_file(pa.memory_map(str(out))).read_all()
    cuts: dict[str, Any] = json.loads(table.schema.metadata[b"cuts"])
    return table["row_key"].to_numpy(), table["score"].to_numpy(), cuts
