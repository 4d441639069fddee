"""The dedup stage: sketch every row, decide over all of them, split."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.dedup.config import DedupConfig
from datakit.dedup.memory import ARRAY_SHARE, Memory
from datakit.dedup.reduce import Verdict, decide_all
from datakit.dedup.saved import BYTE_ORDER, COLUMN, saved_signatures
from datakit.dedup.sketches import sketch
from datakit.stage import Decision
from datakit.text.characters import UNICODE_VERSION, character_table

_ROW_BYTES = 80  # of a sketch, besides bands and shingles: key, id, source, digest, ...
_TEXT_RATIO = (
    1.6  # bytes of shingle hashes to bytes of English prose, rounded up; scripts without spaces need twice that
)

_SCHEMA = pa.schema(
    [
        pa.field("row_key", pa.uint64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("duplicate_of", pa.string(), nullable=False),
        pa.field("similarity", pa.float64(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Dedup:
    """Drops every row that repeats another, and names the row that stays (`duplicate_of`, `similarity`).

    Reasons are `exact_duplicate` (the normalised text is equal) and `near_duplicate`. `decisions` is the file that
    `reduce` wrote, in the stage that `bind` returns.
    """

    config: DedupConfig
    decisions: Path | None = None

    name: ClassVar[str] = "dedup"
    holds_gil: ClassVar[bool] = False

    def resources(self) -> dict[str, Any]:
        """The Unicode version that words and normal forms follow; it is the interpreter's."""
        return {"unicode": UNICODE_VERSION}

    def facts(self) -> dict[str, Any]:
        """How to read the column of signatures, where there is one."""
        if not self.config.save_signatures:
            return {}
        return {"signatures": {"column": COLUMN, "format": "datasketch.LeanMinHash", "byteorder": BYTE_ORDER}}

    def open(self) -> None:
        """Build the character tables of this process."""
        character_table()

    def forecast(self, files: Sequence[Path]) -> str:
        """How much disk the sketches of the rows of these shards will take, and the comparison of all of them."""
        shards = [pq.read_metadata(file) for file in files]
        rows = sum(shard.num_rows for shard in shards)
        text = sum(shard.row_group(n).total_byte_size for shard in shards for n in range(shard.num_row_groups))
        tables = rows * (2 * 4 * self.config.num_bands + 150)  # the buckets of each row, the rows of each bucket, ...
        disk = rows * (_ROW_BYTES + 8 * self.config.num_bands) + int(_TEXT_RATIO * text)
        disk += tables if 4 * self.config.num_bands * rows > (self.config.memory_mb << 20) // ARRAY_SHARE else 0
        return f"{rows:,} rows, about {disk / 1e6:,.0f} MB of disk while they are compared"

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Digest, bands and shingles of each row."""
        return sketch(batch, self.config)

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows, by row_key, to `out`; returns the LSH parameters, counts of pairs and alarms."""
        verdict = decide_all(sketches, self.config, Memory(self.config.memory_mb << 20, out.parent), workers)
        aside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
        with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
            writer.write_table(_dropped(verdict))
        aside.rename(out)
        return verdict.facts

    def bind(self, out: Path) -> Self:
        """The stage that carries out the decisions in `out`."""
        return type(self)(self.config, out)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        assert self.decisions is not None, "decide needs the decisions of reduce: call bind first"
        with pa.memory_map(str(self.decisions)) as file:
            table = pa.ipc.open_file(file).read_all()
        keys = table.column("row_key").to_numpy()
        wanted = batch.column("row_key").to_numpy()
        at = np.searchsorted(keys, wanted)
        hit = at < len(keys)
        hit[hit] = keys[at[hit]] == wanted[hit]
        found = table.take(pa.array(at, mask=~hit)).combine_chunks()
        reasons, duplicate_of, similarity = (found.column(name).combine_chunks() for name in _SCHEMA.names[1:])
        detail = pc.binary_join_element_wise(
            pa.scalar("duplicate of "), duplicate_of, pa.scalar(", similarity "), similarity.cast(pa.string()),
            pa.scalar(""),
        )  # fmt: skip
        return Decision(
            reasons=reasons,
            detail=detail,
            columns={COLUMN: saved_signatures(batch, self.config)} if self.config.save_signatures else {},
            drop_columns={"duplicate_of": duplicate_of, "similarity": similarity},
        )


def _dropped(verdict: Verdict) -> pa.Table:
    rows = np.flatnonzero(verdict.survivor >= 0)
    rows = rows[np.argsort(verdict.sketches.row_key[rows], kind="stable")]
    reasons = pa.array(["near_duplicate", "exact_duplicate"]).take(pa.array(verdict.exact[rows].astype(np.int8)))
    return pa.table(
        {
            "row_key": verdict.sketches.row_key[rows],
            "reason": reasons,
            "duplicate_of": verdict.sketches.ids(verdict.survivor[rows]),
            "similarity": verdict.similarity[rows],
        },
        schema=_SCHEMA,
    )
