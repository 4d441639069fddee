"""Rows of results: reading a role, finding rows by id, and the text of a row on one line."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_rows
from datakit.manifest import Manifest, data_dir, tables

LINE_WIDTH = 400
"""Characters of a row that are shown on one line."""

Link = tuple[Path, Manifest]
"""A result: where its manifest lies, and the manifest."""


def batches(link: Link, role: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a role of a result, some columns (None: all).

    Raises:
        IntegrityError: a shard is missing or damaged.
    """
    for shard in tables(link[1], role):
        yield from read_rows(data_dir(*link), shard, columns)


def find(link: Link, role: str, ids: Collection[str]) -> list[dict[str, Any]]:
    """Whole rows of a result by id; from a shard without any of them only the ids are read."""
    wanted = pa.array(sorted(ids), pa.string())
    found = list[dict[str, Any]]()
    for shard in tables(link[1], role) if ids else ():
        if any(pc.any(pc.is_in(b["id"], wanted)).as_py() for b in read_rows(data_dir(*link), shard, ["id"])):
            for batch in read_rows(data_dir(*link), shard):
                found += batch.filter(pc.is_in(batch["id"], wanted)).to_pylist()
    return found


def first_of(before: pa.Table | None, rows: pa.RecordBatch, columns: Sequence[str], most: int) -> pa.Table:
    """The first `most` of the rows that were first before and of new ones, in the order of some columns."""
    both = [pa.table(rows)] if before is None else [before, pa.table(rows)]
    return pa.concat_tables(both).sort_by([(column, "ascending") for column in columns]).slice(0, most)


def body(row: dict[str, Any]) -> str:
    """The text of a row of any kind."""
    if "raw" in row:
        return bytes(row["raw"][:LINE_WIDTH]).decode("utf-8", errors="backslashreplace")
    if row.get("text") is not None:
        return str(row["text"])
    if row.get("input_ids") is not None:
        return f"{len(row['input_ids'])} tokens: {row['input_ids'][:40]}"
    lines = []
    for name in ("prompt", "messages", "chosen", "rejected"):
        prefix = "" if name in ("messages", "prompt") else f"{name} "
        for message in row.get(name) or []:
            lines.append(f"{prefix}{message['role']}: {message['content'] or message['tool_calls'] or ''}")
    return "\n".join(lines)


def some_of(names: Iterable[str], most: int) -> str:
    """The first `most` names in one phrase."""
    first = list(islice(names, most + 1))
    return ", ".join([*first[:most], "..."] if len(first) > most else first)


def row_name(row_id: str, source: str) -> str:
    """An id, and the source where the id does not begin with it."""
    return visible(row_id if row_id.startswith(source) else f"{row_id} ({source})")


def shorten(text: str, width: int = LINE_WIDTH) -> str:
    """One line of at most `width` characters, as `visible` shows them; ↵ stands for a line's end."""
    line = visible(text[: 2 * width].replace("\r\n", "\n").replace("\n", "↵"))
    return line if len(line) <= width else line[: width - 1] + "…"


def visible(text: str) -> str:
    """The text with control and direction characters spelled out, so that a row cannot control a terminal or a page."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in text)
