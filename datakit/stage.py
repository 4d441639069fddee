"""What a stage is: a map over record batches, or map -> reduce -> map, that decides about every row.

A stage may have more than the protocols below ask for; `run.stages` looks for each by name:

    for_kind(kind)        the stage with its defaults settled for rows of a kind
    output_kind           the kind of the kept rows, where it is another than that of the rows that came in
    kept_columns(names)   which columns kept rows have
    files()               {path: bytes} that travel with the result (a tokenizer)
    facts()               what the manifest says besides
    saves()               what the table that `Decision.aside` carries depends on (`run.aside`); then `decide_again`
    decide_again(batch, saved)   the decision from such a table of an earlier run
    leaves(keys)          whether the rows with these keys (uint64, ascending) all stay as they are: their shard is then
                          taken over as it is
    measured()            {name: count}: how the work went in this process since it was asked last; may hang on workers
    told(counts)          what those came to, as a line for people; the counts themselves go into the run file
    forecast(shards)      of a `ReduceStage`: a line on the disk that the comparison needs, said beforehand
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Decision:
    """What a stage says about the rows of one batch."""

    reasons: pa.Array
    """string[rows]; null keeps the row."""
    detail: pa.Array | None = None
    """string[rows]: the measured value behind the reason, for people."""
    columns: dict[str, pa.Array] = field(default_factory=dict)
    """Columns added or rewritten, in kept and dropped rows alike."""
    drop_columns: dict[str, pa.Array] = field(default_factory=dict)
    """Columns that only dropped rows get (`duplicate_of`, `similarity`)."""
    aside: dict[str, pa.RecordBatch] = field(default_factory=dict)
    """By role: a table about the batch, written beside the kept and dropped rows."""
    notes: dict[str, int] = field(default_factory=dict)
    """Counts for the ledger beside the balance."""
    edited: pa.Array | None = None
    """bool[rows]: the stage changed the row's text."""


class Stage(Protocol):
    """A map over batches. A stage is small and picklable; what is heavy is loaded by `open`, in the worker."""

    name: ClassVar[str]
    holds_gil: ClassVar[bool]
    """True for a stage that keeps the interpreter lock while it works: it runs in processes, any other in threads."""

    @property
    def config(self) -> Any:
        """The frozen dataclass with every value that shapes the result."""

    def resources(self) -> dict[str, Any]:
        """Models and tokenizers that shape the result, by name and SHA-256, as JSON."""

    def open(self) -> None:
        """Load what `decide` needs. Called in each worker, more than once; raises a clear error before any work."""

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Decide about each row of a batch; a pure function of the row, whatever the batch around it."""


class ReduceStage(Stage, Protocol):
    """Map -> reduce -> map: rows are sketched, the sketches of all rows are reduced to decisions, rows are split."""

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What the reduce phase needs to know of each row, in row order."""

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """From all sketches (Arrow IPC files in shard order) to a decisions file; returns facts for the manifest."""

    def bind(self, out: Path) -> Self:
        """The same stage with the decisions of `out` behind its `decide`."""


def split(batch: pa.RecordBatch, decision: Decision, stage: str) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Partition a batch into the kept rows and the dropped rows; the latter gain `stage`, `reason` and `detail`.

    The two always add up to the batch.
    """
    assert len(decision.reasons) == batch.num_rows, f"{stage}: {len(decision.reasons)} decisions, {batch.num_rows} rows"
    reasons = decision.reasons.cast(pa.string())
    for name, column in decision.columns.items():
        batch = with_column(batch, name, column)
    kept = batch.filter(pc.is_null(reasons))
    dropped = batch
    extra = {
        "stage": pa.repeat(pa.scalar(stage), batch.num_rows),
        "reason": reasons,
        "detail": pa.nulls(batch.num_rows, pa.string()) if decision.detail is None else decision.detail,
    }
    for name, column in (extra | decision.drop_columns).items():
        dropped = with_column(dropped, name, column)
    dropped = dropped.filter(pc.is_valid(reasons))
    assert kept.num_rows + dropped.num_rows == batch.num_rows
    return kept, dropped


def with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    """The batch with a column added, or replaced where it already has one of that name, under the same field."""
    index = batch.schema.get_field_index(name)
    if index < 0:
        return batch.append_column(pa.field(name, column.type), column)
    return batch.set_column(index, batch.schema.field(index).with_type(column.type), column)
