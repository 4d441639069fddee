"""A stage that cuts units out of texts: carrying out what its reduce phase decided, and recording what was cut."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.dedup.decisions import look_up
from datakit.dedup.units import Unit, cut_units
from datakit.errors import UsageError
from datakit.stage import Decision
from datakit.text.characters import UNICODE_VERSION, character_table
from datakit.text.normal_form import digest, normalize

CUTS = "cuts"
"""The role of the tables that record what was cut."""


@dataclass(frozen=True)
class Cutting:
    """What the stages `dedup_lines`, `dedup_spans` and `dedup_ngrams` share; `decisions` is what `reduce` wrote.

    A row that stays without some of its units is edited: it gets a new `content_hash`, and a row in the table `cuts`
    for each of them: `row_key`, `id`, `start` (the byte of the row's text at which the piece stood), `text` (the
    piece), `duplicate_of` (the id of the row that still has it; null where it is not known). With the pieces put
    back, the text is as it was. Rows that are dropped keep their text.
    """

    config: Any
    decisions: Path | None = None
    name: ClassVar[str]
    holds_gil: ClassVar[bool] = False

    @property
    def unit(self) -> Unit:
        """What is cut."""
        raise NotImplementedError

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind: texts alone.

        Raises:
            UsageError: a conversation or preference pair; half an answer is not to be learned from.
        """
        if kind != "document":
            raise UsageError(
                f"{self.name} cuts pieces out of texts, and these rows are of the kind {kind}: an answer without some "
                f"of its {self.unit}s teaches what nobody said. Use dedup with --on answer, or dedup_ngrams, which "
                "drops such rows whole; leave this stage out of the recipe"
            )
        return self

    def resources(self) -> dict[str, Any]:
        """The Unicode version that words follow; it is the interpreter's."""
        return {"unicode": UNICODE_VERSION}

    def open(self) -> None:
        """Build the character table of this process."""
        character_table()

    def bind(self, out: Path) -> Self:
        """The stage that carries out the decisions in `out`."""
        return replace(self, decisions=out)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key, and cut."""
        assert self.decisions is not None, "decide needs the decisions of reduce: call bind first"
        found = look_up(self.decisions, batch.column("row_key"))
        reasons = found.column("reason")
        edited = pc.and_(pc.is_null(reasons), pc.greater(pc.fill_null(pc.list_value_length(found.column("cut")), 0), 0))
        columns, cuts = self._edit(batch, found, edited) if pc.any(edited).as_py() else ({}, None)
        bytes_cut = int(pc.sum(pc.binary_length(cuts.column("text"))).as_py()) if cuts else 0
        return Decision(
            reasons=reasons,
            detail=found.column("detail"),
            columns=columns,
            drop_columns={"duplicate_of": found.column("duplicate_of")},
            side_tables={CUTS: cuts} if cuts else {},
            notes={f"{self.unit}s_cut": cuts.num_rows if cuts else 0, "bytes_cut": bytes_cut},
            edited=edited,
        )

    def _edit(
        self, batch: pa.RecordBatch, found: pa.RecordBatch, edited: pa.Array
    ) -> tuple[dict[str, pa.Array], pa.RecordBatch]:
        touched = found.filter(edited)
        lengths = pc.list_value_length(touched.column("cut")).to_numpy(zero_copy_only=False)
        rows = np.repeat(np.arange(touched.num_rows), lengths)
        numbers = touched.column("cut").flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        cut = cut_units(batch.column("text").filter(edited), self.unit, rows, numbers)
        columns = {"text": pc.replace_with_mask(batch.column("text"), edited, cut.texts)}
        if "content_hash" in batch.schema.names:
            made = digest(normalize(cut.texts))
            columns["content_hash"] = pc.replace_with_mask(batch.column("content_hash"), edited, made)
        before = batch.select(["row_key", "id"]).filter(edited).take(pa.array(rows))
        stays_in = touched.column("stays_in").flatten()
        cuts = {
            "row_key": before.column("row_key"),
            "id": before.column("id"),
            "start": pa.array(cut.places),
            "text": cut.pieces,
            "duplicate_of": stays_in if len(stays_in) else pa.nulls(len(rows), pa.string()),
        }
        return columns, pa.record_batch(cuts)


def source(batch: pa.RecordBatch) -> pa.Array:
    """The source of each row; null where rows have none."""
    names = batch.schema.names
    return batch.column("source").cast(pa.string()) if "source" in names else pa.nulls(len(batch), pa.string())


def text_bytes(files: Sequence[Path]) -> tuple[int, int]:
    """(rows, bytes of their columns before compression) of Parquet shards."""
    shards = [pq.read_metadata(file) for file in files]
    sizes = (shard.row_group(n).total_byte_size for shard in shards for n in range(shard.num_row_groups))
    return sum(shard.num_rows for shard in shards), sum(sizes)
