"""What a stage cut out of the text of a row."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc

from datakit.data import read_shard
from datakit.manifest import Manifest, data_dir, tables
from datakit.report.origins import visible
from datakit.report.rows import shorten

MOST = 20
"""Pieces of a row that are shown; the others are counted."""


def cut_out(path: Path, manifest: Manifest, row_id: str) -> Iterator[str]:
    """A line for each piece that a stage cut out of the row of an id: where it stood, and which row still has it."""
    pieces = []
    for shard in tables(manifest, "cuts"):
        for batch in read_shard(data_dir(path, manifest) / shard.path):
            pieces += batch.filter(pc.equal(batch.column("id"), row_id)).to_pylist()
    for piece in pieces[:MOST]:
        stays = f", stays in {visible(piece['duplicate_of'])}" if piece["duplicate_of"] else ""
        yield f"          cut at byte {piece['start']}{stays}: {visible(shorten(piece['text'].strip(), 100))}"
    if len(pieces) > MOST:
        yield f"          and {len(pieces) - MOST} more pieces"
