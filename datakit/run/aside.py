"""Tables that a stage writes beside its kept and dropped rows, and their use by a later run that would make the same.

A stage with `saves()` says, as JSON, what the table it saves depends on besides the rows and the code; None saves none.
The manifest's facts hold it under `saved`, so that a run with other thresholds finds the table and need not measure.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from datakit.errors import ManifestError
from datakit.manifest import Manifest, data_dir, load
from datakit.run.lineage import code_hash
from datakit.write import read_shard


def earlier(manifest: Path, data: Path, parent: str, wants: dict[str, Any]) -> tuple[Manifest, Path] | None:
    """An earlier result of the stage whose saved table serves: (its manifest, its data folder), or None.

    `manifest` is where the stage's manifest goes and `data` where its shards go now, `parent` the version of the rows.
    The same code must have made it, and it must have saved all that `wants` names.
    """
    history = sorted(manifest.parent.glob(f"history/{manifest.stem}-*.json"), key=lambda p: -p.stat().st_mtime_ns)
    for path in [manifest, *history]:
        try:
            found = load(path)
            folder = data_dir(path, found)
        except (ManifestError, OSError):
            continue
        saved, whole = found.facts.get("saved"), folder.is_dir() and not folder.samefile(data)
        if whole and saved and found.code == code_hash() and found.parents[0].get("version") == parent:
            files = [(folder / s.path, s.bytes) for s in found.shards if s.role == saved["role"]]
            if _covers(saved, wants) and all(f.is_file() and f.stat().st_size == size for f, size in files):
                return found, folder
    return None


def _covers(saved: Any, wants: Any) -> bool:
    """Whether everything in `wants`, at any depth, stands in `saved` too."""
    if isinstance(wants, dict):
        return isinstance(saved, dict) and all(k in saved and _covers(saved[k], v) for k, v in wants.items())
    return bool(saved == wants)


class Beside:
    """The saved rows of one shard, in the order of the rows they were made from."""

    def __init__(self, path: Path) -> None:
        self._batches: Iterator[pa.RecordBatch] = read_shard(path)
        self._rest: pa.Table | None = None

    def take(self, rows: int) -> pa.RecordBatch | None:
        """The next so many rows; None for none of them."""
        while rows and (self._rest is None or self._rest.num_rows < rows):
            batch = pa.Table.from_batches([next(self._batches)])
            self._rest = batch if self._rest is None else pa.concat_tables([self._rest, batch])
        if not rows or self._rest is None:
            return None
        taken, self._rest = self._rest.slice(0, rows), self._rest.slice(rows)
        (made,) = taken.combine_chunks().to_batches()
        return made
