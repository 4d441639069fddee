"""Files of tests: rows as JSON lines, recipes, the rows of a result, damage."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from datakit.data import read_rows
from datakit.manifest import data_dir, load, tables

PROSE = (
    "The harbour of the old town was built in the year of the great flood, and for a long time nobody thought that it "
    "would be needed again. Then the railway came, and with it the merchants, who wanted to ship their grain before "
    "winter. They asked the council for a wall against the sea, and the council gave them one that stands to this day. "
)
"""What the rules of the filter keep."""


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    """A row on each line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


class Exporter:
    """What polars, pandas and DuckDB have: the Arrow C stream interface, and nothing else that we know."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def user(text: str, **more: Any) -> dict[str, Any]:
    """A turn of a user."""
    return {"role": "user", "content": text} | more


def says(text: str | None, **more: Any) -> dict[str, Any]:
    """A turn of the assistant."""
    return {"role": "assistant", "content": text} | more


def write_recipe(root: Path, text: str, dataset: str = "d") -> Path:
    path = root / "manifests" / dataset / "recipe.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def rows_of(manifest: Path, role: str) -> list[dict[str, Any]]:
    """The rows of a role of a result."""
    made = load(manifest)
    batches = (batch for shard in tables(made, role) for batch in read_rows(data_dir(manifest, made), shard))
    return [row for batch in batches for row in batch.to_pylist()]


def flip(file: Path, bit: int = 8) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= bit
    file.write_bytes(data)
