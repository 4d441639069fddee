"""Some rows of a manifest's result as lines of text."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datakit.data import read_shard
from datakit.manifest import Manifest

WIDTH = 400


def sample(manifest: Manifest, folder: Path, rows: int) -> Iterator[str]:
    """The first `rows` rows of each role, shortened."""
    for role in ("kept", "dropped", "quarantine"):
        left = rows
        for shard in manifest.of_role(role):
            if left == 0 or not shard.path.endswith(".parquet"):
                continue
            for batch in read_shard(folder / shard.path):
                for row in batch.slice(0, left).to_pylist():
                    yield f"--- {role}: {row.get('id') or row.get('file')}{_why(row)}"
                    yield "    " + shorten(body(row))
                    left -= 1
                if left == 0:
                    break


def _why(row: dict[str, Any]) -> str:
    if not row.get("reason"):
        return ""
    line = f", line {row['line']}" if row.get("line") is not None else ""
    return f"{line}  [{row['reason']}] {row.get('detail') or ''}"


def body(row: dict[str, Any]) -> str:
    """The text of a row, whatever its kind."""
    if "raw" in row:
        return repr(row["raw"][:WIDTH])
    if row.get("text") is not None:
        return str(row["text"])
    if row.get("input_ids") is not None:
        return f"{len(row['input_ids'])} tokens: {row['input_ids'][:40]}"
    parts = []
    for name in ("prompt", "messages", "chosen", "rejected"):
        for message in row.get(name) or []:
            said = message["content"] or message["tool_calls"] or ""
            parts.append(f"{'' if name in ('messages', 'prompt') else name + ' '}{message['role']}: {said}")
    return "\n".join(parts)


def shorten(text: str, width: int = WIDTH) -> str:
    """One line of at most `width` characters, new lines shown as such."""
    line = json.dumps(text, ensure_ascii=False)[1:-1]
    return line if len(line) <= width else line[: width - 1] + "…"
