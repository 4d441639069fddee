"""The story of one row: where it came from, which stage dropped it and why, who stayed in its place."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import compared_fields, read_shard
from datakit.manifest import Manifest, ancestors, data_dir, tables
from datakit.report.cuts import cut_out
from datakit.report.differences import differences
from datakit.report.rows import body, shorten
from datakit.report.side_by_side import side_by_side

_MOST_CHARACTERS = 10_000_000
"""Of two texts whose runs of words are counted again; it takes some hundred bytes a word."""


@dataclass(frozen=True, slots=True)
class Found:
    """A row where a stage left it."""

    path: Path
    manifest: Manifest
    role: str
    """"kept", "dropped" or "quarantined"."""
    batch: pa.RecordBatch
    """One row."""

    @property
    def row(self) -> dict[str, Any]:
        """The row as plain Python."""
        row: dict[str, Any] = self.batch.to_pylist()[0]
        return row


def story(row_id: str, paths: list[Path], columns: int = 0) -> list[str]:
    """Lines about the row of an id, over the stages that the newest result comes from; empty if none knows it.

    A duplicate stands beside the row that stayed, in two columns where `columns` characters are enough for them.
    """
    order = _lineage(paths)
    lines, text = [], ""
    for path, manifest in order:
        found = _find(path, manifest, row_id)
        if found is None:
            continue
        row = found.row
        text = text or body(row)
        lines.append(f"{manifest.stage:<9} {found.role}{_facts(manifest.stage, row)}")
        if found.role == "kept":
            lines += cut_out(path, manifest, row_id)
        if row.get("duplicate_of"):
            lines += _survivor(found, text, order, columns)
        elif found.role == "dropped" and manifest.stage == "dedup_ngrams":
            lines.append("          no row is named: a Bloom filter knows that it has seen an n-gram, not in which row")
    if lines and text:
        lines.insert(0, f"{row_id}\n  {shorten(text, 1000)}")
    return lines


def _lineage(paths: list[Path]) -> list[tuple[Path, Manifest]]:
    """What the manifest with the longest history comes from, oldest first, without those that hold no rows."""
    chains = [ancestors(path) for path in paths]
    longest = max(chains, key=lambda chain: (len(chain), chain[0][0].stat().st_mtime_ns))
    return [found for found in reversed(longest) if found[1].stage not in ("tokenizer", "classifier")]


def _find(path: Path, manifest: Manifest, row_id: str) -> Found | None:
    folder = data_dir(path, manifest)
    for role in ("kept", "dropped"):
        for shard in tables(manifest, role):
            for batch in read_shard(folder / shard.path):
                at = pc.index(batch.column("id"), pa.scalar(row_id)).as_py()
                if at >= 0:
                    return Found(path, manifest, role, batch.slice(at, 1))
    for shard in tables(manifest, "quarantine"):
        for batch in read_shard(folder / shard.path):
            for at, row in enumerate(batch.to_pylist()):
                if row_id == f"{row['file']}:{row['line'] - 1}":  # the id it would have had
                    return Found(path, manifest, "quarantined", batch.slice(at, 1))
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


def _survivor(gone: Found, text: str, order: list[tuple[Path, Manifest]], columns: int) -> Iterator[str]:
    name, there = gone.row["duplicate_of"], gone.row.get("duplicate_in")
    places = order if not there else [p for p in ancestors(gone.path, against=True) if p[1].version == there]
    where = f" in {places[0][1].dataset} (dedup {there})" if there and places else ""
    found = [one for one in (_find(*place, name) for place in places) if one is not None]
    if not found:
        yield f"          {name} stayed in the dedup {there}, whose manifest or shards are not where they were"
        return
    fate = "".join(
        f", but was dropped later by {one.manifest.stage}: [{one.row['reason']}] {one.row['detail'] or ''}"
        for one in found
        if one.role == "dropped"
    )
    yield f"          {name} stayed{where}{fate}{_similar(gone, found)}"
    stayed = body(found[0].row)
    beside = side_by_side(text, stayed, gone.row["id"], name, columns - 12)
    if not beside:
        yield "          [-this row-], {+that row+}:"
    yield from (f"            {line}" for line in beside or differences(text, stayed))


def _similar(gone: Found, found: list[Found]) -> str:
    """How similar the two rows are; nothing of a row that went for its URL or its lines."""
    similarity = gone.row.get("similarity")
    return "" if similarity is None else f"; similarity {similarity}{_shingles(gone, found)}"


def _shingles(gone: Found, found: list[Found]) -> str:
    """How many shingles the two rows share, counted again from the texts that were compared."""
    from datakit.report.likeness import (
        compare_fields,
    )  # brings the kernels: half a second that only a duplicate has to pay

    stayed = next((one for one in found if one.manifest.stage == "dedup" and one.role == "kept"), None)
    config = gone.manifest.config
    if stayed is None:
        return ""
    one, other = (
        [
            side[0].as_py()
            for side in compared_fields(row.batch, config["on"], config["include_system"], include_calls=True)
        ]
        for row in (gone, stayed)
    )
    if sum(map(len, [*one, *other])) > _MOST_CHARACTERS:
        return ""
    compared = compare_fields(one, other, config["shingle_words"])
    if compared.equal:
        return ": the texts that were compared are equal"
    total = len(compared.shared) + len(compared.only_first) + len(compared.only_second)
    return f": of {total:,} runs of {config['shingle_words']} words both have {len(compared.shared):,}"
