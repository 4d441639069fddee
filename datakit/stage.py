"""What a stage is: a step that decides about every row. The engine knows stages by this base class only.

Three kinds of work go through one runner (`engine.runner`):

- map: `decide` says of each row of a batch whether it stays, and why not.
- map -> reduce -> map (`compares_rows`): `sketch` summarises rows, `reduce` compares the sketches of all rows and
  writes decisions, `bind` gives the stage its decisions, then `decide` applies them.
- all rows at once (`work_unit = "all"`): `make` reads every row and writes files (the training of a tokenizer). Or the
  stage cuts the rows into `parts`, and each is made by itself (pack).

A stage is a frozen dataclass, small and picklable. What is heavy is loaded by `open`, in each worker.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option, shares
from datakit.data import read_rows
from datakit.manifest import Count, Ledger, Manifest, Shard, data_dir, tables


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
    side_tables: dict[str, pa.RecordBatch] = field(default_factory=dict)
    """By role: a table about the batch, written beside the kept and dropped rows (signals, matches, cuts)."""
    notes: dict[str, int] = field(default_factory=dict)
    """Counts for the ledger beside the balance."""
    edited: pa.Array | None = None
    """bool[rows]: the stage changed the row's text."""
    kept_columns: Sequence[str] | None = None
    """Columns that kept rows have, where they are there; None: all."""


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file that a stage reads by itself, and that the manifest names by its SHA-256."""

    name: str
    """Unique among the files of a run; the manifest holds it."""
    path: str
    """Where it lies: a local path or a URL."""
    bytes: int
    is_local: bool = True
    sha256: str = ""
    """Where it is known already (a table in memory); else the engine computes it."""


@dataclass(frozen=True, slots=True)
class RawGroup:
    """Raw files that are read into shards of their own: one file, or neighbours where there are many small ones."""

    first_file: int
    """The place of its first file in the sorted list of all."""
    files: tuple[RawFile, ...]
    reading: Any
    """How the files are read, as JSON: all that shapes their rows besides their bytes, the config and the code."""


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Rows that were read, and the records that could not become rows."""

    rows: pa.RecordBatch
    quarantined: pa.RecordBatch
    notes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parent:
    """A manifest whose rows come into a stage, or which the stage needs for its work (a tokenizer's)."""

    path: Path
    manifest: Manifest
    use: str = ""
    """`AGAINST`: its rows do not come in, they are compared with."""
    pieces: "Pieces | None" = None
    """The rows that come in; None: all."""

    def rows(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows that come in, in order; `columns` (default: all) chooses some.

        Raises:
            IntegrityError: a shard is missing, or its bytes are not those that were written.
        """
        folder, everything = data_dir(self.path, self.manifest), dict.fromkeys(tables(self.manifest, "kept"))
        pieces = everything if self.pieces is None else self.pieces
        return (batch for shard, some in pieces.items() for batch in read_rows(folder, shard, columns, some))


Pieces = Mapping[Shard, Sequence[int] | None]
"""Rows of a dataset, in order: some row groups of each shard, or None for all of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """What a stage with `work_unit = "all"` made of all rows, or of one part of them."""

    files: tuple[str, ...]
    """Paths relative to the folder that `make` was given; each begins with a role, as `kept/model.bin` does."""
    rows: Count
    tokens: Count | None = None
    dropped: Iterable[pa.RecordBatch] = ()
    """Dropped rows, with `stage`, `reason` and `detail`."""
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extras:
    """What a result has besides rows."""

    facts: dict[str, Any] = field(default_factory=dict)
    """What the manifest says, as JSON; `alarms`: a sentence for each thing that is wrong with the result as a whole."""
    notes: dict[str, int] = field(default_factory=dict)
    """Counts for the ledger that do not depend on rows (evaluation items that were read)."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Files that travel with the result, by path below the data folder (a tokenizer)."""


MAX_ALARMS = 10
"""Alarms of one kind that are listed, the worst first; the others are counted."""


def worst_first(sentences: Iterable[str], more: str) -> Iterator[str]:
    """The first `MAX_ALARMS` sentences, and how many more there are."""
    found = list(sentences)
    yield from found[:MAX_ALARMS]
    if len(found) > MAX_ALARMS:
        yield f"{len(found) - MAX_ALARMS} more {more}"


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """The option of stages that say themselves which loss of rows is too much: see `Stage.max_loss`."""

    max_loss: float = option(0.5, "alarm where all rows, or those of a source, lose more than this", advanced=True)

    def __post_init__(self) -> None:
        shares(self, "max_loss")


@dataclass(frozen=True, slots=True)
class Losses:
    """Amounts (`what`: rows or words) by source: in total, and lost."""

    what: str
    whole: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def add(self, source: pa.Array, whole: npt.NDArray[Any], lost: npt.NDArray[Any]) -> None:
        """Count the amounts of some rows; rows without a source count as the source ""."""
        columns = {"source": pc.fill_null(source, ""), "whole": whole.astype(np.int64), "lost": lost.astype(np.int64)}
        sums = pa.table(columns).group_by("source").aggregate([("whole", "sum"), ("lost", "sum")])
        for row in sums.to_pylist():
            self.whole[row["source"]] += row["whole_sum"]
            self.lost[row["source"]] += row["lost_sum"]

    def alarms(
        self, max_loss: float, least: int, check: str, survivors: Sequence[tuple[str, int]] = (), each: str = "rows"
    ) -> list[str]:
        """Sentences about the whole, then about each source, if at least `least` rows or words lose more than a share.

        The first one also names the rows that most others were dropped for, (id, how many `each`), and what to `check`.
        """
        lost, whole = self.lost.total(), self.whole.total()
        parts = [(f"{lost} of all {whole} {self.what} are lost", lost, whole)]
        if len(self.whole) > 1:
            parts += sorted(
                ((f"the source {name!r} loses {self.lost[name]} of its {n} {self.what}", self.lost[name], n)
                 for name, n in self.whole.items()), key=lambda part: (-round(part[1] / max(part[2], 1), 3), part[0])
            )  # fmt: skip
        found = [
            f"{sentence} ({n / of:.1%}; max_loss is {max_loss:.1%})"
            for sentence, n, of in parts
            if of >= max(least, 1) and round(n / of, 3) > max_loss
        ]
        if found:
            named = ", ".join(f"{name!r} {count}" for name, count in survivors[:3])
            found[0] += f". Most {each} are lost for: {named}" if named else ""
            found[0] += f". {check}"
        return list(worst_first(found, "sources lose more than that"))


@dataclass(frozen=True, slots=True)
class SketchFile:
    """A file of sketches (Arrow IPC)."""

    path: Path
    rows: int
    """Rows in it, or more: rows are numbered through all files by these."""
    bytes: int
    sha256: str
    """Or a checksum by CRC-32 (`config.digest_of`)."""


class CompareUnits(Protocol):
    """Work units that look at all rows: a payload goes in, a record comes out; `data` is the folder of files."""

    data: Path
    workers: int
    share: int
    """Units that run in one process at one time, and share its memory."""

    def units(
        self,
        name: str,
        work: Callable[[int, Any], dict[str, Any]],
        tasks: Sequence[tuple[int, Any]],
        *,
        here: bool = False,
    ) -> list[dict[str, Any]]:
        """The records of `work(number, payload)` for each task (number, payload), by number.

        A record is JSON; its `files` lists [path relative to `data`, bytes, digest]. `here`: in this process.
        """


class Stage:
    """Base class of all stages. A subclass sets the class variables, declares `config`, and overrides what it needs.

    A stage that decides row by row has `name`, `Config`, `config` and `decide`; `open` and `resources` where it has a
    model, and `for_kind` and `extras` seldom. All else is for stages that are special in some way.
    """

    name: ClassVar[str]
    """What recipes, manifests and `--set` call the stage."""
    Config: ClassVar[type]
    """The frozen dataclass with every value that shapes the result; flags and recipe sections are made from it."""
    help: ClassVar[str] = ""
    """Further sentences for the stage's `--help`."""
    config: Any
    """An instance of `Config`."""

    def for_kind(self, kind: str) -> Self:
        """The stage with its defaults settled for rows of a kind ("document", "conversation", ...). Default: itself."""
        return self

    def resources(self) -> dict[str, Any]:
        """Models and tokenizers that shape the result, by name and SHA-256, as JSON. Default: none."""
        return {}

    def open(self) -> None:
        """Load what the work needs. Called in each worker, more than once; raises a clear error before any work."""

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Decide about each row of a batch; a pure function of the row, whatever the batch around it."""
        raise NotImplementedError(f"{type(self).__name__}.decide")

    def extras(self, ledger: Ledger) -> Extras:
        """What the result has besides rows; `ledger` is that of all rows. Default: nothing."""
        return Extras()

    # What it is, where it is something else than a filter of rows.

    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "shard"
    """What one unit of work takes: a shard of the parent, a part of the raw files (ingest), or all rows at once."""
    holds_gil: bool = False
    """True for a stage that keeps the interpreter lock while it works: it runs in processes, any other in threads. A
    field where that depends on the config or the rows: `for_kind` or `prepare` sets it then."""
    output_kind: str = ""
    """The kind of the kept rows; empty: that of the input rows."""
    compares_rows: ClassVar[bool] = False
    """True for map -> reduce -> map."""
    takes_tokens: ClassVar[bool] = False
    """True for a stage that also accepts rows which hold token ids and no text."""
    directly_after: ClassVar[str] = ""
    """The stage whose result this one needs as its input (pack: "tokenize"). Empty: any rows."""
    input_flags: ClassVar[tuple[str, ...]] = ()
    """The fields of that stage's config which are flags of this stage's command, too."""
    note_lines: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """By the name of a ledger note: the sentence that is printed after its count, where the count is not 0."""
    makes_rows: ClassVar[bool] = True
    """False for a stage whose result is no rows for a next stage (models, tokenizers)."""

    guards_rows: ClassVar[bool] = False
    """True for a stage whose result with rows is not to be replaced by one without any (pack)."""

    # In the main process, before any work.

    def check(self) -> None:
        """Raise a clear error, before any work of the command, for models and files that are missing or unusable."""
        stage = self.for_kind("document")
        stage.resources()
        stage.open()

    def use_results(self, earlier: Mapping[str, Parent], target: Path, kind: str) -> tuple[Self, tuple[Parent, ...]]:
        """The stage with the results that it needs besides the rows, and those results: of earlier stages (a trained
        tokenizer), or of datasets that its rows, which are of a kind, are compared with (`--against`).

        `earlier` has the results of the recipe's earlier stages by name, `target` is where the manifest of this run
        goes. Default: nothing is needed.
        """
        return self, ()

    def read_from(self, inputs: Sequence[Any], removed: Path | None = None) -> Self:
        """The stage with its raw inputs (files, folders, globs, a table in memory); for `work_unit = "raw"`.

        Rows on the list `removed` of a dataset, where there is such a file, are left out.
        """
        raise NotImplementedError(f"{type(self).__name__}.read_from")

    def describe(self) -> tuple[str, ...]:
        """Lines for people on what the stage is about to do, printed when it begins. Default: none."""
        return ()

    def prepare(self, rows: Iterator[pa.RecordBatch]) -> Self:
        """The stage for these rows, which are read only as far as it asks for them. Default: the stage itself."""
        return self

    @property
    def max_loss(self) -> float:
        """The share of rows, of all or of a source, whose loss raises an alarm: as configured, or half of them.

        Stages with `compares_rows` raise their own alarms, in `reduce`.
        """
        return self.config.max_loss if isinstance(self.config, LossOptions) else 0.5

    # Raw files: for `work_unit = "raw"`.

    def raw_groups(self) -> Sequence[RawGroup]:
        """All raw files in groups, in order. A group's rows depend on its own files alone."""
        raise NotImplementedError(f"{type(self).__name__}.raw_groups")

    def raw_units(self, group: RawGroup) -> Iterator[Any]:
        """The parts of a group's files, in order, cut by their bytes and the configuration alone."""
        raise NotImplementedError(f"{type(self).__name__}.raw_units")

    def read(self, unit: Any) -> Iterator[RawBatch]:
        """The rows of one part, in order, and what could not be read."""
        raise NotImplementedError(f"{type(self).__name__}.read")

    # Map -> reduce -> map: compare all rows.

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What the reduce phase needs to know of each row, in row order."""
        raise NotImplementedError(f"{type(self).__name__}.sketch")

    def compare(self, sketches: Sequence[SketchFile], work: CompareUnits) -> Self:
        """Compare rows in work units, wherever they run; the stage that comes back is asked to `reduce`.

        Default: `reduce` does everything, in one process.
        """
        return self

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """From all sketches (Arrow IPC files in shard order) to a decisions file; returns facts for the manifest."""
        raise NotImplementedError(f"{type(self).__name__}.reduce")

    def bind(self, out: Path) -> Self:
        """The same stage with the decisions of `out` behind its `decide`."""
        raise NotImplementedError(f"{type(self).__name__}.bind")

    def decided_about(self, row_keys: Any) -> pa.RecordBatch | None:
        """All that the comparison says about the rows with these keys (uint64, ascending), one row each, without keys.

        Where it says nothing (null) about any of them, their shard is linked, not written again; and where it equals
        what was decided earlier about the same rows, they are not decided again. Default: not known.
        """
        return None

    @property
    def saves_index(self) -> bool:
        """Whether the result holds an index that later runs compare with (`--against`). Default: no."""
        return False

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """Stores what later runs need to detect duplicates of kept rows; for stages with `saves_index`."""
        raise NotImplementedError(f"{type(self).__name__}.index")

    # All rows at once, or in parts.

    def parts(self, parents: Sequence[Parent], work: CompareUnits) -> Sequence[tuple[Self, Pieces | None]]:
        """The parts that the rows of the first parent are made in, each with the stage that makes it.

        The rows alone decide about them; they are looked at in units of `work`. Each part is one unit, too. Default:
        all rows are one part.
        """
        return [(self, None)]

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Read all rows of a part, which are also those of the first parent, and write files into `folder`, which is
        new and empty; for stages with `work_unit = "all"`."""
        raise NotImplementedError(f"{type(self).__name__}.make")

    def joined(self, facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The facts of the result from those of all parts (`Made.facts`), in order. Default: those of the only part."""
        (found,) = facts
        return found


def split(batch: pa.RecordBatch, decision: Decision, stage: str) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Partition a batch into the kept rows and the dropped rows; the latter gain `stage`, `reason` and `detail`.

    The two always add up to the batch.
    """
    assert len(decision.reasons) == batch.num_rows, f"{stage}: {len(decision.reasons)} decisions, {batch.num_rows} rows"
    reasons = decision.reasons.cast(pa.string())
    batch = with_columns(batch, decision.columns)
    everything_stays = reasons.null_count == len(reasons)
    kept = batch if everything_stays else batch.filter(pc.is_null(reasons))
    if decision.kept_columns is not None:
        kept = kept.select([name for name in decision.kept_columns if name in kept.schema.names])
    dropped = batch.slice(0, 0) if everything_stays else batch
    extra = {
        "stage": pa.repeat(pa.scalar(stage), batch.num_rows),
        "reason": reasons,
        "detail": pa.nulls(batch.num_rows, pa.string()) if decision.detail is None else decision.detail,
    }
    added = {name: column.slice(0, dropped.num_rows) for name, column in (extra | decision.drop_columns).items()}
    dropped = with_columns(dropped, added)
    if not everything_stays:
        dropped = dropped.filter(pc.is_valid(reasons))
    assert kept.num_rows + dropped.num_rows == batch.num_rows
    return kept, dropped


def with_columns(batch: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The batch with columns added, or replaced where it already has one of that name, under the same field."""
    for name, column in columns.items():
        index = batch.schema.get_field_index(name)
        if index < 0:
            batch = batch.append_column(pa.field(name, column.type), column)
        else:
            batch = batch.set_column(index, batch.schema.field(index).with_type(column.type), column)
    return batch
