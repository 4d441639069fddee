"""The dedup stage: sketch every row, decide over all of them, split."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.dedup.config import DedupConfig
from datakit.dedup.index import Earlier, fingerprint, index_rows
from datakit.dedup.memory import ARRAY_SHARE, Memory
from datakit.dedup.reduce import Verdict, decide_all
from datakit.dedup.saved import BYTE_ORDER, COLUMN, saved_signatures
from datakit.dedup.sides import has_sides
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
        pa.field("duplicate_in", pa.string()),
    ]
)


@dataclass(frozen=True)
class Dedup:
    """Drops every row that repeats another, and names the row that stays (`duplicate_of`, `similarity`).

    Reasons are `exact_duplicate` (the normalised text is equal) and `near_duplicate`. `decisions` is the file that
    `reduce` wrote, in the stage that `bind` returns. `earlier` are datasets whose rows are compared with too, oldest
    first; `duplicate_in` is then the version of the dedup run that kept the survivor, null where it was this one.
    `sided` is set for preference pairs (`sides`).
    """

    config: DedupConfig
    decisions: Path | None = None
    earlier: tuple[Earlier, ...] = ()
    sided: bool = False

    name: ClassVar[str] = "dedup"
    holds_gil: ClassVar[bool] = False

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind: the answers of preference pairs are compared by themselves too."""
        return replace(self, sided=has_sides(kind, self.config.on))

    def resources(self) -> dict[str, Any]:
        """The Unicode version that words and normal forms follow, which is the interpreter's; the earlier datasets."""
        against = [
            {"version": e.version, "rows": e.rows - len(e.removed.ids), "removed": len(e.removed.ids),
             "removed_sha256": e.removed.sha256} for e in self.earlier
        ]  # fmt: skip
        return {"unicode": UNICODE_VERSION} | ({"against": against} if against else {})

    def facts(self) -> dict[str, Any]:
        """How to read the column of signatures, and what the index was made by, where there is one."""
        signatures = {"column": COLUMN, "format": "datasketch.LeanMinHash", "byteorder": BYTE_ORDER}
        index = {"fingerprint": fingerprint(self.config)} if self.config.save_index else {}
        return ({"signatures": signatures} if self.config.save_signatures else {}) | ({"index": index} if index else {})

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
        told = f"{rows:,} rows, about {disk / 1e6:,.0f} MB of disk while they are compared"
        if self.config.save_index:
            index = rows * (_ROW_BYTES + 8 * self.config.num_bands) + int(_TEXT_RATIO * text)
            told += f", and up to {index / 1e6:,.0f} MB for the index, which stays"
        for e in self.earlier:
            size = sum(s.bytes for s in e.shards) / 1e6
            gone = f", {len(e.removed.ids):,} of them removed since" if e.removed.ids else ""
            told += f"; against {e.name}: {e.rows:,} rows{gone} ({size:,.0f} MB)"
        return told

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Digest, bands and shingles of each row."""
        return sketch(batch, self.config)

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows, by row_key, to `out`; returns the LSH parameters, counts of pairs and alarms."""
        memory = Memory(self.config.memory_mb << 20, out.parent)
        verdict = decide_all(sketches, self.config, memory, workers, self.earlier, self.sided)
        aside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
        with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
            writer.write_table(_dropped(verdict, self.earlier))
        aside.rename(out)
        return verdict.facts

    def bind(self, out: Path) -> Self:
        """The stage that carries out the decisions in `out`."""
        return replace(self, decisions=out)

    @property
    def saves_index(self) -> bool:
        """Whether `index` is to be called, and what it returns is to be kept."""
        return self.config.save_index

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """What a later run needs to know of the kept rows of a batch of sketches."""
        return index_rows(sketches, self._found(sketches).column("reason").is_null().to_numpy())

    def leaves(self, keys: npt.NDArray[np.uint64]) -> bool:
        """Whether rows with these keys, ascending, all stay, and as they are."""
        return not self.config.save_signatures and not np.isin(keys, self._decisions().column("row_key")).any()

    def _decisions(self) -> pa.Table:
        assert self.decisions is not None, "decide needs the decisions of reduce: call bind first"
        with pa.memory_map(str(self.decisions)) as file:
            return pa.ipc.open_file(file).read_all()

    def _found(self, batch: pa.RecordBatch) -> pa.Table:
        """The decision about each row, by row_key; null where it stays."""
        table = self._decisions()
        keys = table.column("row_key").to_numpy()
        wanted = batch.column("row_key").to_numpy()
        at = np.searchsorted(keys, wanted)
        hit = at < len(keys)
        hit[hit] = keys[at[hit]] == wanted[hit]
        return table.take(pa.array(at, mask=~hit)).combine_chunks()

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        found = self._found(batch)
        reasons, duplicate_of, similarity, there = (found.column(name).combine_chunks() for name in _SCHEMA.names[1:])
        detail = pc.binary_join_element_wise(
            pa.scalar("duplicate of "), duplicate_of, self._in(there), pa.scalar(", similarity "),
            similarity.cast(pa.string()), pa.scalar(""),
        )  # fmt: skip
        return Decision(
            reasons=reasons,
            detail=detail,
            columns={COLUMN: saved_signatures(batch, self.config)} if self.config.save_signatures else {},
            drop_columns={"duplicate_of": duplicate_of, "similarity": similarity}
            | ({"duplicate_in": there} if self.earlier else {}),
        )

    def _in(self, versions: pa.Array) -> pa.Array:
        """Where survivors of other datasets lie, in words."""
        known = pa.array([e.version for e in self.earlier], pa.string())
        words = pa.array(["", *(f" in {e.name}" for e in self.earlier)])
        return words.take(pc.add(pc.fill_null(pc.index_in(versions, known), -1), 1))


def _dropped(verdict: Verdict, earlier: tuple[Earlier, ...]) -> pa.Table:
    rows = np.flatnonzero(verdict.survivor >= 0)
    rows = rows[np.argsort(verdict.sketches.row_key[rows], kind="stable")]
    versions = pa.array([*(e.version for e in earlier), None], pa.string())
    there = np.searchsorted(np.cumsum([e.rows for e in earlier]), verdict.survivor[rows], side="right")
    reasons = pa.array(["near_duplicate", "exact_duplicate"]).take(pa.array(verdict.exact[rows].astype(np.int8)))
    return pa.table(
        {
            "row_key": verdict.sketches.row_key[rows],
            "reason": reasons,
            "duplicate_of": verdict.sketches.ids(verdict.survivor[rows]),
            "similarity": verdict.similarity[rows],
            "duplicate_in": versions.take(pa.array(there)),
        },
        schema=_SCHEMA,
    )
