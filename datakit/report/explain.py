"""The story of one row: where it came from, which stage dropped it and why, who stayed in its place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datakit.manifest import Manifest, data_dir
from datakit.report.cuts import cut_out
from datakit.report.differences import differences
from datakit.report.rows import body, shorten
from datakit.run.job import ancestors, tables
from datakit.write import read_shard


def story(row_id: str, paths: list[Path]) -> list[str]:
    """Lines about the row of an id, over the stages that the newest result comes from; empty if none knows it."""
    order = _lineage(paths)
    lines, text = [], ""
    for path, manifest in order:
        found = _find(path, manifest, row_id)
        if found is None:
            continue
        role, row = found
        text = text or body(row)
        lines.append(f"{manifest.stage:<9} {role}{_facts(manifest.stage, row)}")
        if role == "kept":
            lines += cut_out(path, manifest, row_id)
        if row.get("duplicate_of"):
            lines += _survivor(row, text, order)
    if lines and text:
        lines.insert(0, f"{row_id}\n  {shorten(text, 1000)}")
    return lines


def _lineage(paths: list[Path]) -> list[tuple[Path, Manifest]]:
    """What the manifest with the longest history comes from, oldest first, without those that hold no rows."""
    chains = [ancestors(path) for path in paths]
    longest = max(chains, key=lambda chain: (len(chain), chain[0][0].stat().st_mtime_ns))
    return [found for found in reversed(longest) if found[1].stage not in ("tokenizer", "classifier")]


def _find(path: Path, manifest: Manifest, row_id: str) -> tuple[str, dict[str, Any]] | None:
    folder = data_dir(path, manifest)
    for role in ("kept", "dropped"):
        for shard in tables(manifest, role):
            for batch in read_shard(folder / shard.path):
                at = pc.index(batch.column("id"), pa.scalar(row_id)).as_py()
                if at >= 0:
                    return role, batch.slice(at, 1).to_pylist()[0]
    for shard in tables(manifest, "quarantine"):
        for batch in read_shard(folder / shard.path):
            for row in batch.to_pylist():
                if row_id == f"{row['file']}:{row['line'] - 1}":  # the id it would have had
                    return "quarantined", row
    return None


def _facts(stage: str, row: dict[str, Any]) -> str:
    if row.get("reason") and row.get("stage") == stage:
        return f"  [{row['reason']}] {row.get('detail') or ''}"
    if "raw" in row:
        return (
            f"  [{row['reason']}] {row['detail'] or ''}: {row['file']}, line {row['line']}, byte {row['byte_offset']}"
        )
    if stage == "ingest":
        return f"  from {row['source']}, record {row['row_key'] & ((1 << 40) - 1)}"
    if stage == "language":
        return f"  {row['lang']} {row['lang_score']:.3f}"
    if stage == "tokenize" and row.get("input_ids") is not None:
        return f"  {len(row['input_ids'])} tokens"
    return ""


def _survivor(row: dict[str, Any], text: str, order: list[tuple[Path, Manifest]]) -> Iterator[str]:
    survivor, stayed, fate = row["duplicate_of"], "", ""
    for path, manifest in order:
        found = _find(path, manifest, survivor)
        if found is not None:
            stayed = stayed or body(found[1])
            if found[0] == "dropped":
                fate = f", but was dropped later by {manifest.stage}: [{found[1]['reason']}] {found[1]['detail'] or ''}"
    similar = f"; similarity {row['similarity']}" if row.get("similarity") is not None else ""
    yield f"          {survivor} stayed{fate}{similar}; [-this row-], {{+that row+}}:"
    yield from (f"            {line}" for line in differences(text, stayed))
