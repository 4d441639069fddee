"""Which rows packed tokens came from, by the tokenize manifest that a pack manifest was made from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import RECORD_BITS, read_shard
from datakit.manifest import Manifest, data_dir, find_parent, load, tables


@dataclass(frozen=True, slots=True)
class Origins:
    """The rows behind a packed set; without the tokenize manifest's files a row has its key alone."""

    path: Path | None
    manifest: Manifest | None

    @classmethod
    def of(cls, path: Path) -> "Origins":
        """The origins of the rows that the pack manifest at `path` packed."""
        for parent in load(path).parents:
            place = find_parent(path, parent) if parent.get("manifest") == "tokenize" else None
            if place is not None and all((data_dir(place, load(place)) / s.path).is_file() for s in load(place).shards):
                return cls(place, load(place))
        return cls(None, None)

    def batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Columns (None: all) of the rows, in order; nothing where they are gone."""
        if self.path is None or self.manifest is None:
            return
        for shard in tables(self.manifest, "kept"):
            yield from read_shard(data_dir(self.path, self.manifest) / shard.path, columns)

    def rows(self) -> Iterator[tuple[int, str, str]]:
        """Key, id and source of every row, in order."""
        for batch in self.batches(["row_key", "id", "source"]):
            yield from zip(*(c.to_pylist() for c in batch.columns), strict=True)

    def names(self, keys: set[int]) -> dict[int, tuple[str, str]]:
        """Id and source of rows by key, of those that are known."""
        wanted, found = pa.array(sorted(keys), pa.uint64()), dict[int, tuple[str, str]]()
        for batch in self.batches(["row_key", "id", "source"]):
            hits = batch.filter(pc.is_in(batch.column("row_key"), wanted))
            found |= {k: (i, s) for k, i, s in zip(*(c.to_pylist() for c in hits.columns), strict=True)}
            if len(found) == len(keys):
                break
        return found

    def key(self, row_id: str) -> int | None:
        """The key of the row of an id; None if it is not known."""
        for batch in self.batches(["row_key", "id"]):
            at = pc.index(batch.column("id"), pa.scalar(row_id)).as_py()
            if at >= 0:
                return int(batch.column("row_key")[at].as_py())
        return None

    def sources(self) -> dict[int, str]:
        """The name of each input file by its index, which is what a row key begins with."""
        found: dict[int, str] = {}
        for batch in self.batches(["row_key", "source"]):
            files: npt.NDArray[np.uint64] = batch.column("row_key").to_numpy() >> np.uint64(RECORD_BITS)
            for file, at in zip(*np.unique(files, return_index=True), strict=True):
                found.setdefault(int(file), batch.column("source")[int(at)].as_py())
        return found


def called(key: int, ids: dict[int, tuple[str, str]]) -> str:
    """What a row is called: its id and source, or its place where only the key is known."""
    if key not in ids:
        return f"file {key >> RECORD_BITS}, record {key & ((1 << RECORD_BITS) - 1)}"
    row_id, source = ids[key]
    return visible(row_id if row_id.startswith(source) else f"{row_id} ({source})")


def visible(text: str) -> str:
    """The text with control and direction characters spelled out: a row must not steer a terminal or a page."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in text)
