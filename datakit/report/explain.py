"""`datakit explain`: where a row came from, which stage dropped it and why, and which row was kept instead."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import RECORD_BITS, read_rows
from datakit.engine.recipe import stage_class
from datakit.manifest import Manifest, ancestors, check_shards, data_dir, purged_on, tables
from datakit.report.pairs import shared_shingles
from datakit.report.texts import body, differences, shorten, side_by_side, visible

MOST_CUTS = 20
"""Cut pieces of a row that are shown; the others are counted."""
MOST_MATCHES = 5
"""Evaluation items that a row matches and that are shown, the largest share first; the others are counted."""
_MOST_CHARACTERS = 10_000_000
"""Longer texts (both together) are not compared by shingles: that takes some hundred bytes a word."""
INDENT = " " * 10


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row in the result of one stage."""

    path: Path
    manifest: Manifest
    role: str
    """"kept", "dropped" or "quarantined"."""
    row: dict[str, Any]


def story(row_id: str, paths: list[Path], columns: int = 0) -> list[str]:
    """Lines about the row with an id, stage by stage; empty if no stage knows the id.

    `paths` are manifests; the stages are those behind the one with the longest history. The text of a dropped duplicate
    is compared with the text of the kept row, in two columns if `columns` characters are enough.
    """
    chains = [ancestors(path) for path in paths]
    longest = max(chains, key=lambda chain: (len(chain), chain[0][0].stat().st_mtime_ns))
    order = [found for found in reversed(longest) if stage_class(found[1].stage).makes_rows]
    lines, text, row_key, known, role = list[str](), "", -1, False, ""
    for path, manifest in order:
        if day := purged_on(path, manifest):
            lines.append(f"{manifest.stage:<9} its shards were purged on {day}")
            continue
        found = _find(path, manifest, row_id)
        if found is None:
            lines += list(_packed(path, manifest, row_id, row_key)) or (_not_taken(manifest) if role == "kept" else [])
            role = ""
            continue
        row, known, role = found.row, True, found.role
        text, row_key = text or body(row), row.get("row_key", -1)
        lines.append(f"{manifest.stage:<9} {found.role}{_facts(manifest.stage, row)}")
        lines += [*_cuts(path, manifest, row_id)] if role == "kept" else []
        lines += _matches(path, manifest, row_id)
        if row.get("duplicate_of"):
            lines += _survivor(found, text, order, columns)
    if text:
        lines.insert(0, f"{row_id}\n  {shorten(text, 1000)}")
    return lines if known else []


def _find(path: Path, manifest: Manifest, row_id: str) -> FoundRow | None:
    folder = data_dir(path, manifest)
    for role in ("kept", "dropped"):
        for shard in tables(manifest, role):
            for batch in read_rows(folder, shard):
                at = pc.index(batch.column("id"), pa.scalar(row_id)).as_py()
                if at >= 0:
                    return FoundRow(path, manifest, role, batch.slice(at, 1).to_pylist()[0])
    for shard in tables(manifest, "quarantine"):
        for batch in read_rows(folder, shard):
            for row in batch.to_pylist():
                if row_id == f"{row['file']}:{row['line'] - 1}":  # the id that it would have got
                    return FoundRow(path, manifest, "quarantined", row)
    return None


def _not_taken(manifest: Manifest) -> list[str]:
    """A line for a stage that took in only the first rows, for a row that none of its tables has."""
    limits = [p["limit"] for p in manifest.parents if "limit" in p]
    return [f"{manifest.stage:<9} not among the first {limit:,} rows, which came in (--limit)" for limit in limits]


def _packed(path: Path, manifest: Manifest, row_id: str, row_key: int) -> Iterator[str]:
    """A line for the packed rows of each set that hold tokens of the row with a key; none for another stage."""
    from datakit.pack.inspect import headers

    folder, shards = data_dir(path, manifest), {shard.path: shard for shard in manifest.shards}
    for header in headers(manifest, str(path)) if manifest.stage == "pack" else ():
        file = f"{header['prefix']}.src.npy"
        check_shards(folder, [shards[file]])
        found = np.load(folder / file, mmap_mode="r", allow_pickle=False)
        mine = found[found["row_key"] == row_key]
        if len(mine):
            rows = list(dict.fromkeys(mine["row"].tolist()))
            listed = ", ".join(f"{row:,}" for row in rows[:MOST_CUTS]) + (", ..." if len(rows) > MOST_CUTS else "")
            yield (
                f"pack      kept  {int((mine['tokens'] - mine['head']).sum()):,} tokens in row {listed} of "
                f"{PurePath(header['prefix']).name}; `datakit peek {os.path.relpath(path)} --id {row_id}` shows them"
            )


def _facts(stage: str, row: dict[str, Any]) -> str:
    """What the stage says about the row."""
    if row.get("reason") and row.get("stage") == stage:
        return f"  [{row['reason']}] {row.get('detail') or ''}"
    if "raw" in row:
        where = f"{row['file']}, line {row['line']}, byte {row['byte_offset']}"
        return f"  [{row['reason']}] {row['detail'] or ''}: {where}"
    if stage == "ingest":
        return f"  from {row['source']}, record {row['row_key'] & ((1 << RECORD_BITS) - 1)}"
    if stage == "language":
        return f"  {row['lang']} {row['lang_score']:.3f}"
    if stage == "classify" and row.get("classifier_score") is not None:
        return f"  score {row['classifier_score']:.3f}"
    if stage == "perplexity" and row.get("perplexity") is not None:
        return f"  {row['perplexity_bucket']}, perplexity {row['perplexity']:g}"
    if stage == "tokenize" and row.get("input_ids") is not None:
        return f"  {len(row['input_ids'])} tokens"
    return ""


def _side_rows(path: Path, manifest: Manifest, role: str, row_id: str) -> list[dict[str, Any]]:
    """The rows about a row in a side table of a stage."""
    folder = data_dir(path, manifest)
    batches = (batch for shard in tables(manifest, role) for batch in read_rows(folder, shard))
    return [row for batch in batches for row in batch.filter(pc.equal(batch.column("id"), row_id)).to_pylist()]


def _cuts(path: Path, manifest: Manifest, row_id: str) -> Iterator[str]:
    """A line for each piece that the stage cut out of the row: its place, and the row that still has it."""
    pieces = _side_rows(path, manifest, "cuts", row_id)
    for piece in pieces[:MOST_CUTS]:
        kept = f", stays in {visible(piece['duplicate_of'])}" if piece["duplicate_of"] else ""
        kept += f" of {manifest.stage} {piece['duplicate_in']}" if piece.get("duplicate_in") else ""
        yield f"{INDENT}cut at byte {piece['start']}{kept}: {visible(shorten(piece['text'].strip(), 100))}"
    if len(pieces) > MOST_CUTS:
        yield f"{INDENT}and {len(pieces) - MOST_CUTS} more pieces"


def _matches(path: Path, manifest: Manifest, row_id: str) -> Iterator[str]:
    """A line for each evaluation item that the row matches: the item, its file, how much of it, and the passage."""
    found = sorted(_side_rows(path, manifest, "matches", row_id), key=lambda match: -match["overlap"])
    for match in found[:MOST_MATCHES]:
        file, _, record = match["item"].rpartition(":")
        yield (
            f"{INDENT}holds {match['overlap']:.0%} of the {match['part']} of item {record} of {visible(file)}: "
            f"{visible(shorten(match['passage'], 200))}"
        )
    if len(found) > MOST_MATCHES:
        yield f"{INDENT}and parts of {len(found) - MOST_MATCHES} more items"


def _survivor(gone: FoundRow, text: str, order: list[tuple[Path, Manifest]], columns: int) -> Iterator[str]:
    """Lines about the row that was kept instead of a duplicate, and how the two texts differ."""
    name, version = gone.row["duplicate_of"], gone.row.get("duplicate_in")
    results = order if not version else [r for r in ancestors(gone.path, against=True) if r[1].version == version]
    where = f" in {results[0][1].dataset} ({results[0][1].stage} {version})" if version and results else ""
    found = [row for row in (_find(*result, name) for result in results if not purged_on(*result)) if row is not None]
    if not found:
        stage = gone.manifest.stage
        yield f"{INDENT}{name} stayed in the {stage} {version}, whose manifest or shards are not where they were"
        return
    later = "".join(
        f", but was dropped later by {one.manifest.stage}: [{one.row['reason']}] {one.row['detail'] or ''}"
        for one in found
        if one.role == "dropped"
    )
    similarity = gone.row.get("similarity")  # null for a row that was dropped for its URL or its lines
    similar = "" if similarity is None else f"; similarity {similarity}{_compared(gone, found)}"
    yield f"{INDENT}{name} stayed{where}{later}{similar}"
    kept = body(found[0].row)
    two_columns = side_by_side(text, kept, gone.row["id"], name, columns - 12)
    if not two_columns:
        yield f"{INDENT}[-this row-], {{+that row+}}:"
    yield from (f"  {INDENT}{line}" for line in two_columns or differences(text, kept))


def _compared(gone: FoundRow, found: list[FoundRow]) -> str:
    """What the similarity is of: the shingles that two documents share, counted again in their texts, or a turn."""
    if "text" not in gone.row:
        return ", that of the least similar turn" if gone.row["similarity"] < 1 else ""
    kept = next((one for one in found if one.manifest.stage == "dedup" and one.role == "kept"), None)
    if kept is None:
        return ""
    texts, size = (gone.row["text"], kept.row["text"]), gone.manifest.config["shingle_words"]
    if sum(map(len, texts)) > _MOST_CHARACTERS:
        return ""
    shared, union, equal = shared_shingles(*texts, size)
    if equal:
        return ": the compared texts are equal"
    return f": {shared:,} of {union:,} shingles of {size} words are in both"
