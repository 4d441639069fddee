"""The Python API: stages as functions over Arrow tables, datasets that are read again, and pipelines.

Everything here runs through the same engine as the command line, so decisions are those of the command on the same
rows. `datakit/__init__.py` loads this module on first use.
"""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

import datakit.own_code as own_code
import datakit.storage as storage
from datakit.config import build, instead_of, meant, options
from datakit.data import RECORD_BITS, first_rows, of_kind, read_rows
from datakit.engine.executors import Local, Progress, all_cores
from datakit.engine.plan import Flow
from datakit.engine.recipe import FLOW, STAGES, Recipe, check_name, registered, result_path, stage_class
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from datakit.engine.store import inspect as inspect_shard
from datakit.errors import ConfigError, DatakitError, InputError, MissingExtraError, UsageError, in_python
from datakit.manifest import Ledger, Manifest, ancestors, data_dir, find_parent, load, tables, verify

if TYPE_CHECKING:
    from datakit.report.forecast import Forecast
    from datakit.stage import Stage

TABLE = "table"
"""The name of the dataset and of the source of rows that come from memory."""

_TEXT_COLUMNS = ("text", "messages", "prompt", "chosen", "rejected")

READING = ("kind", "map", "roles", "split", "limit")
"""The options of ingest that every stage's function takes, too."""

_REPLACED = ("cluster_size", "duplicates")
"""Columns of an earlier dedup, which a later one replaces."""

_DROP_COLUMNS = dict.fromkeys(("stage", "reason", "detail", "duplicate_of"), pa.string()) | {"similarity": pa.float64()}
_IN = "duplicate_in"
"""A column of dropped rows where an earlier dataset was compared."""


class _Described:
    """What has a manifest."""

    manifest: Manifest

    @property
    def ledger(self) -> Ledger:
        """What went into the last stage, and what became of it."""
        return self.manifest.ledger

    @property
    def facts(self) -> dict[str, Any]:
        """What else the manifest says: alarms, layouts, tokenizer, packing."""
        return self.manifest.facts

    def to_table(self, role: str = "kept") -> pa.Table:
        """All rows of a role ("kept", "dropped", "quarantine", ...) in memory."""
        raise NotImplementedError

    def to_pandas(self, role: str = "kept") -> Any:
        """The same as a `pandas.DataFrame`."""
        return self.to_table(role).to_pandas()

    def to_polars(self, role: str = "kept") -> Any:
        """The same as a `polars.DataFrame`."""
        return _library("polars").from_arrow(self.to_table(role))

    def to_datasets(self, role: str = "kept") -> Any:
        """The same as a `datasets.Dataset` of Hugging Face."""
        return _library("datasets").Dataset(self.to_table(role))

    def __len__(self) -> int:
        """The number of kept rows."""
        return self.ledger.rows.kept

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The kept rows, as dictionaries."""
        for batch in self.to_table().to_batches(max_chunksize=1024):
            yield from batch.to_pylist()


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError(f"{name} is not installed: pip install {name}") from None


class Dataset(_Described):
    """The result of a stage on the disk, read again through its manifest: `datakit.open("manifests/d/filter.json")`.

    Rows have datakit's columns: `id`, `source`, `lang`, the text or messages, `extra`, and what stages added.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read a manifest, the manifest in a folder that `--output` made, or the last result of a dataset by its name.

        Raises:
            ManifestError: missing, or not a manifest.
            IntegrityError: changed after it was written.
        """
        self.path = result_path(path)
        self.manifest = load(self.path)

    def __repr__(self) -> str:
        rows = self.ledger.rows
        return f"<datakit.Dataset {self.manifest.dataset}/{self.manifest.stage}: {rows.kept:,} of {rows.into:,} rows>"

    @property
    def folder(self) -> Path:
        """The folder of the shards."""
        return data_dir(self.path, self.manifest)

    @property
    def parents(self) -> list["Dataset"]:
        """The results that this one was made from, as far as they can be found; empty for ingest."""
        found = (find_parent(self.path, p) for p in self.manifest.parents if "manifest" in p)
        return [Dataset(path) for path in found if path is not None]

    def kept(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """A reader over the kept rows."""
        return self._reader("kept", columns)

    def dropped(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """A reader over the dropped rows, with `stage`, `reason`, `detail`, and of dedup `duplicate_of`."""
        return self._reader("dropped", columns)

    def quarantined(self) -> pa.RecordBatchReader:
        """A reader over the records that could not be read: file, line, reason and their bytes."""
        return self._reader("quarantine", None)

    def to_table(self, role: str = "kept") -> pa.Table:
        """All rows of a role ("kept", "dropped", "quarantine", "signals", ...) in memory."""
        return self._reader(role, None).read_all()

    def _reader(self, role: str, columns: Sequence[str] | None) -> pa.RecordBatchReader:
        shards = tables(self.manifest, role)
        if not shards:
            fields = of_kind(self.manifest.kind) if role == "kept" else ()
            none = [field for field in fields if columns is None or field.name in columns]
            return pa.RecordBatchReader.from_batches(pa.schema(none), iter(()))
        wanted = list(columns) if columns is not None else None
        batches = (batch for shard in shards for batch in read_rows(self.folder, shard, wanted))
        first = next(batches)
        same = (b if b.schema == first.schema else b.cast(first.schema) for b in chain([first], batches))
        return pa.RecordBatchReader.from_batches(first.schema, same)

    def _repr_html_(self) -> str:
        """For notebooks: what became of the rows, and three of the dropped ones."""
        from datakit.report.finder import body
        from datakit.report.page import render

        gone = [row | {"said": body(row)} for batch in first_rows(self.dropped(), 3) for row in batch.to_pylist()]
        return render("notebook.html", manifest=self.manifest, dropped=gone)

    def explain(self, row_id: str) -> str:
        """What became of a row, stage by stage; for a duplicate, its text beside the survivor's.

        Raises:
            InputError: no row has this id.
        """
        from datakit.report.compare import story

        lines = story(row_id, [self.path])
        if not lines:
            raise InputError(f"no row has the id {row_id!r} in {self.path}")
        return "\n".join(lines)

    def export(self, output: str | os.PathLike[str], **values: Any) -> Path:
        """Write the kept rows into a new or empty folder for others, with a dataset card; returns the folder.

        `values` are `format` ("parquet", "jsonl", "jsonl.gz", "jsonl.zst"), `add` (columns that datakit made)
        and `license`.

        Raises:
            UsageError: the folder is not empty, or a value is senseless.
            ConfigError: an unknown argument, or a value of another type.
            IntegrityError: a shard is missing or damaged.
        """
        from datakit.report.export import ExportConfig, export

        return export(self.path, storage.local(output), build(ExportConfig, values, "export")).folder

    def verify(self) -> list[str]:
        """Recompute every checksum and count, back to the raw inputs; returns the problems found."""
        return [f"{name}: {problem}" for name, problem in verify(self.path, inspect_shard) if problem]


class Result(_Described):
    """What a stage made of the rows it was given.

    For rows from memory, `kept` has the input's rows, order and schema, and the columns that the stage adds; `dropped`
    has the input's columns and why each row went. So it is where such a result is given to a further stage. For files
    both have datakit's own columns, and so they have where
    private values were replaced, which may stand in any column. Without `output`, the files lie in a temporary folder
    that goes with `close`, at the end of a `with` block, or when the process ends.
    """

    def __init__(self, path: Path, table: pa.Table | None, scratch: "_Scratch | None", source: Any = None) -> None:
        self.dataset = Dataset(path)
        """The same result as it lies on the disk."""
        self.manifest = self.dataset.manifest
        self._scratch, self._source = scratch, source  # a temporary result that was given lives as long as this one
        self._in_memory = table is not None
        before = source._chain if isinstance(source, Result) and self._in_memory else []
        links = [Dataset(place) for place, _ in ancestors(path)] if self._in_memory else [self.dataset]
        self._ran = links[: len(links) - len(before)][::-1]
        """The results of the stages that this call ran, first to last."""
        self._chain: list[Dataset] = [*before, *self._ran]
        """The same of all stages since the rows came from memory."""
        self._table = None if self.manifest.config.get("private") else table
        """The rows from memory whose columns come back; None for datakit's own columns."""

    def __repr__(self) -> str:
        rows = self.ledger.rows
        return f"<datakit.Result of {self.dataset.manifest.stage}: {rows.kept:,} of {rows.into:,} rows kept>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary folder, if there is one; tables that were read stay in memory."""
        if self._scratch is not None:
            self._scratch.close()

    def to_table(self, role: str = "kept") -> pa.Table:
        """`kept` or `dropped` as below; of another role, the rows on the disk."""
        if role in ("kept", "dropped"):
            return self.kept if role == "kept" else self.dropped
        return self.dataset.to_table(role)

    @functools.cached_property
    def kept(self) -> pa.Table:
        """The kept rows.

        Raises:
            ConfigError: the stage adds a column that the input has already.
        """
        rows = self._kept_rows()
        if self._table is None:
            return rows.drop_columns(["row_key"])
        return self._with_added(self._table.take(_row_numbers(rows)), rows)

    @functools.cached_property
    def dropped(self) -> pa.Table:
        """The dropped rows of all stages that this call ran, with `stage`, `reason` and `detail`.

        From dedup also `duplicate_of` and `similarity`. Where the input has no `id` column, `duplicate_of` is the
        number of the surviving row in the input, from 0.
        """
        found = [d.to_table("dropped") for d in self._ran if tables(d.manifest, "dropped")]
        if self._table is None:
            parts = [part.drop_columns(["row_key"]) for part in found]
            return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
        nothing = pa.table({"row_key": pa.array([], pa.uint64())})
        parts = [self._dropped_rows(self._table, part) for part in found or [nothing]]
        return pa.concat_tables(parts, promote_options="default")

    @functools.cached_property
    def quarantined(self) -> pa.Table:
        """The records that could not become rows; for rows from memory, `row` is their number from 0."""
        found = [d.to_table("quarantine") for d in self._ran if tables(d.manifest, "quarantine")]
        table = pa.concat_tables(found) if found else pa.table({})
        if not self._in_memory or not found:
            return table
        return table.append_column("row", pc.subtract(table.column("line"), 1))

    def _repr_html_(self) -> str:
        return self.dataset._repr_html_()

    def export(self, output: str | os.PathLike[str], **values: Any) -> Path:
        """Write the kept rows into a folder for others; see `Dataset.export`."""
        return self.dataset.export(output, **values)

    def pairs(self, lowest: int = 10) -> list[Any]:
        """The least similar duplicates beside their survivors, for a stage of dedup.

        Raises:
            InputError: the result is not of a dedup stage.
        """
        from datakit.report.compare import drops

        return list(drops(self.dataset.path, lowest)["pairs"])

    def _kept_rows(self) -> pa.Table:
        if self.manifest.stage != "pack":
            return self.dataset.to_table()
        rows, gone = self.dataset.parents[0].to_table(), self.dataset.to_table("dropped")
        if gone.num_rows:
            rows = rows.filter(pc.invert(pc.is_in(rows.column("row_key"), gone.column("row_key").combine_chunks())))
        return rows

    def _with_added(self, table: pa.Table, rows: pa.Table) -> pa.Table:
        first = self._chain[0].manifest
        base = set(of_kind(first.kind).names) | set(first.facts.get("columns", ()))
        stages = {d.manifest.stage for d in self._chain}
        if "language" in stages:
            base -= {"lang", "lang_score"}
        if "map" in stages and rows.column("extra").null_count < rows.num_rows:
            base -= {"extra"}
        for name in [n for n in rows.column_names if n not in base]:
            if name in _REPLACED and name in table.column_names:
                table = table.drop_columns([name])
            if name in table.column_names:
                raise ConfigError(f"{self.manifest.stage} adds {name!r}, a column that the input has: rename it there")
            table = table.append_column(name, rows.column(name))
        if not any(d.ledger.rows.edited for d in self._chain):
            return table
        # token rows have no text: the last rows that have one
        texts = next(d for d in reversed(self._chain) if not d.manifest.kind.startswith("tokens"))
        with_text = texts.to_table() if texts is not self._chain[-1] else rows
        here = pc.index_in(rows.column("row_key"), with_text.column("row_key").combine_chunks())
        return self._with_edited(table, with_text.take(here), "map" in stages)

    def _with_edited(self, table: pa.Table, rows: pa.Table, mapped: bool) -> pa.Table:
        """The table with the texts that stages rewrote; if `mapped`, with all of its columns that rows have."""
        fields = self._chain[0].facts.get("text_fields", {})
        others = [n for n in table.column_names if n in rows.column_names and n not in (*_TEXT_COLUMNS, "id", "extra")]
        for name in others if mapped else ():
            table = table.set_column(table.column_names.index(name), name, rows.column(name))
        for column in [n for n in _TEXT_COLUMNS if n in rows.column_names]:
            name, new = fields.get(TABLE, "text") if column == "text" else column, rows.column(column)
            if name not in table.column_names:
                table = table.append_column(name, new)
                continue
            at = table.column_names.index(name)
            kind = table.schema.field(at).type
            if column != "text" and not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
                raise ConfigError(f"the column {name!r} is {kind}; its rewritten messages need a list of structs")
            given = new.cast(kind) if column == "text" else _like(new, kind)
            table = table.set_column(at, table.schema.field(at), given)
        return table

    def _dropped_rows(self, table: pa.Table, rows: pa.Table) -> pa.Table:
        """The input's columns of some dropped rows, then why they went."""
        taken = table.take(_row_numbers(rows))
        for name, kind in _DROP_COLUMNS.items():
            if name in table.column_names:
                raise ConfigError(f"dropped rows get the column {name!r}, which the input has already: rename it there")
            column = rows.column(name) if name in rows.column_names else pa.nulls(rows.num_rows, kind)
            if name == "duplicate_of" and "id" not in table.column_names and _IN not in rows.column_names:
                column = _numbers_in_ids(column)
            taken = taken.append_column(name, column)
        return taken.append_column(_IN, rows.column(_IN)) if _IN in rows.column_names else taken


def _row_numbers(rows: pa.Table) -> pa.ChunkedArray:
    """The numbers of the input's rows, from their keys."""
    return pc.bit_wise_and(rows.column("row_key"), pa.scalar((1 << RECORD_BITS) - 1, pa.uint64()))


def _numbers_in_ids(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers of rows in their ids: a row without an id of its own has `table:<number from 0>`."""
    return pc.replace_substring_regex(ids.cast(pa.string()), rf"^{TABLE}:(\d+)$", r"\1").cast(pa.int64())


def _like(messages: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Messages with the fields of the user's own list of structs."""
    wanted = [kind.value_type.field(i).name for i in range(kind.value_type.num_fields)]
    rows = [None if row is None else [{n: m.get(n) for n in wanted} for m in row] for row in messages.to_pylist()]
    return pa.chunked_array([pa.array(rows, kind)])


# A stage as a function.


def run_stage_on(
    stage: str,
    data: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    dataset: str = "",
    workers: int = 0,
    progress: bool = False,
    **values: Any,
) -> Result:
    """Run a stage on data: a table in memory, files, or a result on the disk.

    Args:
        stage: a name of the registry.
        data: a `pa.Table`, `RecordBatchReader` or anything with `__arrow_c_stream__`; a Hugging Face `Dataset`, or
            rows as dictionaries, from whatever can be iterated; a path or glob, or a list of them; a manifest's path, a
            `Dataset` or a `Result`.
        output: a folder that holds the whole result, as the command's `--output`; without it a temporary one.
        dataset: the name of the dataset.
        workers: threads and processes; 0: as many as there are cores.
        progress: show progress on standard error.
        values: fields of the stage's config, as in a recipe; sections as dictionaries. Fields of the stages that must
            run first are given under the stage's name, as `tokenize={"tokenizer": "folder/"}`.

    Raises:
        DatakitError: bad input, wrong values, a missing model.
    """
    table, inputs = _inputs(data)
    flags = _values(stage, values)
    name, scratch = check_name(dataset or TABLE), None
    if output is None:
        scratch = _Scratch()
        layout = OutputLayout(root=scratch.folder, dataset=name)
    else:
        layout = OutputLayout(root=Path.cwd(), dataset=name, output=storage.local(output), final=stage)
        layout.check()
    try:
        with contextlib.closing(Progress(shown=progress)) as shown:
            run = Run(layout=layout, executor=Local(workers or all_cores()), progress=shown)
            path = Flow(run=run, recipe=Recipe(dataset=name), flags=flags).stage(stage, inputs)
        return Result(path, table, scratch, data)
    except BaseException as e:
        if scratch is not None:
            scratch.close()
        if isinstance(e, DatakitError):
            raise e.of_python() from None
        raise


def run_on_splits(stage: str, data: Any, *, output: str | os.PathLike[str] | None = None, **values: Any) -> Any:
    """`run_stage_on`; of a Hugging Face `DatasetDict` the result of each split, by its name, below `output`."""
    if not (isinstance(data, Mapping) and hasattr(data, "with_format")):
        return run_stage_on(stage, data, output=output, **values)
    folders = {name: None if output is None else os.path.join(output, name) for name in data}
    return {name: run_stage_on(stage, split, output=folders[name], **values) for name, split in data.items()}


def _inputs(data: Any) -> tuple[pa.Table | None, list[Any]]:
    """(the table, where rows come from memory, perhaps through earlier results; the inputs of the flow)."""
    if isinstance(data, Result):
        return data._table, [str(data.dataset.path)]
    if isinstance(data, Dataset | str | os.PathLike):
        return None, [os.fspath(_plain(data))]
    if isinstance(data, Sequence) and data and all(isinstance(d, str | os.PathLike) for d in data):
        return None, [os.fspath(d) for d in data]
    from datakit.read.columnar import table_of

    table = table_of(data)
    return table, [table]


def _values(stage: str, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By stage: the values of the stage itself, and of the stages that run before it.

    Raises:
        ConfigError: a value is of no stage that runs.
    """
    kind = stage_class(stage)
    known = {o.name for o in options(kind.Config)}
    found: dict[str, dict[str, Any]] = {}
    for name, value in _with_names(stage, values).items():
        plain = _plain(value)
        if name in known:
            found.setdefault(stage, {})[name] = plain
        elif name in READING and stage != "ingest":
            found.setdefault("ingest", {})[name] = plain
        elif name in kind.input_flags:
            found.setdefault(kind.directly_after, {})[name] = plain
        elif name in {"ingest", kind.directly_after} - {""} and isinstance(plain, dict):
            found.setdefault(name, {}).update(plain)
        elif instead := instead_of(stage, name):
            raise ConfigError(f"{stage}: the argument {name!r} is gone: {instead}")
        else:
            own = meant(name, [*known, *READING, *kind.input_flags])
            raise ConfigError(f"{stage}: unknown argument {name!r}; {own}its arguments are {', '.join(sorted(known))}")
    return found


def _with_names(stage: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values of a stage with names in place of the user's own functions, classes and rule sets."""
    if stage == "map" and callable(values.get("function")):
        return {**values, "function": own_code.name_of(values["function"])}
    if stage != "filter" or "rules" not in values or isinstance(values["rules"], str):
        return values
    from datakit.filter.own_rules import named

    rules, thresholds = named(values["rules"])
    own = thresholds | values.get("own", {})
    return {**values, "rules": rules} | ({"own": own} if own else {})


def _plain(value: Any) -> Any:
    if isinstance(value, Result | Dataset):
        return str((value.dataset if isinstance(value, Result) else value).path)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def stage_function(stage: str) -> Callable[..., Result]:
    """The function of a stage, with the stage's help and options as its documentation and signature."""

    def call(data: Any, *given: Any, **values: Any) -> Any:
        return run_on_splits(stage, data, **_positional(stage, given), **values)

    shared = [p for p in inspect.signature(run_stage_on).parameters.values() if p.name not in ("stage", "values")]
    kind = stage_class(stage)
    known = [o for o in options(kind.Config) if not (o.name == "kind" and stage == "ingest")]
    known += [o for o in options(stage_class(kind.directly_after or stage).Config) if o.name in kind.input_flags]
    known += [o for o in options(stage_class("ingest").Config) if o.name in READING and stage != "ingest"]
    only = inspect.Parameter.KEYWORD_ONLY
    fields = [inspect.Parameter(o.name, only, default=o.default, annotation=o.type) for o in known]
    call.__name__ = call.__qualname__ = stage
    lines = [f"    {o.name}: {o.help or 'a section, as a dictionary'} (default: {o.default!r})" for o in known]
    call.__doc__ = f"{STAGES[stage].summary}\n\n{_SHARED}\n\nOptions:\n" + in_python("\n".join(lines))
    call.__signature__ = inspect.Signature([*shared, *fields], return_annotation=Result)  # type: ignore[attr-defined]
    return call


_SHARED = """`data` is a pa.Table, a RecordBatchReader, anything with __arrow_c_stream__ (polars, pandas), a Hugging
Face Dataset, rows as dictionaries, a path or glob, a manifest, a Dataset or a Result. `output` names a folder for the
whole result; `dataset`, `workers` and `progress` are as for the command. Returns a `Result`."""


# Pipelines.


@dataclass(frozen=True, slots=True)
class Step:
    """A stage of a pipeline with its values: `datakit.Dedup(threshold=0.8)`."""

    stage: str
    values: dict[str, Any]
    inputs: tuple[str, ...] = ()
    """Files, folders and globs, for `Ingest`."""

    def __repr__(self) -> str:
        given = [*map(repr, self.inputs), *(f"{k}={v!r}" for k, v in self.values.items())]
        return f"datakit.{step_name(self.stage)}({', '.join(given)})"


def step_name(stage: str) -> str:
    """`dedup_urls` is `DedupUrls` in a pipeline."""
    return "".join(part.capitalize() for part in stage.split("_"))


STEPS: dict[str, str] = {step_name(stage): stage for stage in FLOW if stage != "tokenizer"} | {
    "TrainTokenizer": "tokenizer"
}
"""By the name in a pipeline: the stage."""


_FIRST = {"tokenize": "tokenizer", "map": "function"}
"""By stage: the option that may be given without its name."""


def _positional(stage: str, given: Sequence[Any]) -> dict[str, Any]:
    if len(given) > (stage in _FIRST):
        raise UsageError(f"{stage} takes keyword arguments; found {given!r}")
    return {_FIRST[stage]: given[0]} if given else {}


def step_function(stage: str) -> Callable[..., Step]:
    """What makes a step of a stage: `datakit.Pack(seq_len=1024)`. Values are those of the stage's config."""

    def make(*given: Any, **values: Any) -> Step:
        inputs = tuple(os.fspath(g) for g in given) if stage == "ingest" else ()
        own = {} if stage == "ingest" else _positional(stage, given)
        return Step(stage, _plain(_with_names(stage, own | values)), inputs)

    make.__name__ = make.__qualname__ = step_name(stage)
    make.__doc__ = f"{STAGES[stage].summary}\n\nA step of a `datakit.Pipeline`; values are those of `[{stage}]`."
    return make


def _own_step(stage: "Stage") -> Step:
    """The step of a stage of the user's own."""
    return Step(registered(own_code.name_of(type(stage))), dataclasses.asdict(stage.config))


class Pipeline:
    """Stages in order, as a recipe has them; the result goes to `manifests/` and `data/` of a project.

    `datakit.Pipeline([datakit.Ingest("data/*.jsonl"), datakit.Dedup(), ...], dataset="mydata").run()`. What is up to
    date is skipped, and an interrupted run continues.
    """

    def __init__(
        self, steps: "Sequence[Step | Stage]", *, dataset: str, project: str | os.PathLike[str] = ".", workers: int = 0
    ) -> None:
        """Check the steps.

        Raises:
            ConfigError: unknown values, or stages in an impossible order.
            UsageError: the first step is no `Ingest` with inputs.
        """
        made = [step if isinstance(step, Step) else _own_step(step) for step in steps]
        if not made or made[0].stage != "ingest" or not made[0].inputs:
            raise UsageError("a pipeline begins with datakit.Ingest and its files, as datakit.Ingest('data/*.jsonl')")
        self.steps, self.project, self.workers = tuple(made), storage.local(project), workers
        self.recipe = Recipe(
            dataset=dataset,
            inputs=tuple(_from(self.project, given) for given in made[0].inputs),
            stages=tuple(step.stage for step in made),
            tables={step.stage: step.values for step in made if step.values},
        )
        for step in made:
            self.recipe.config(step.stage)

    def __repr__(self) -> str:
        return f"datakit.Pipeline([{', '.join(map(repr, self.steps))}], dataset={self.recipe.dataset!r})"

    def run(self, *, until: str | None = None, progress: bool = False) -> Dataset:
        """Run the stages, up to and with `until`; returns the last result.

        Raises:
            DatakitError: bad input or a missing model. Finished work is kept: run again to continue.
        """
        storage.pull(self.project / "manifests")
        layout = OutputLayout(root=self.project, dataset=self.recipe.dataset)
        with contextlib.closing(Progress(shown=progress)) as shown:
            run = Run(layout=layout, executor=Local(self.workers or all_cores()), progress=shown)
            try:
                return Dataset(Flow(run=run, recipe=self.recipe).all(until))
            except DatakitError as e:
                raise e.of_python() from None

    def forecast(self, **values: Any) -> "Forecast":
        """What `run` will take in time, memory and disk and what each stage will drop, from a sample; see
        `datakit forecast --help`. `values` are `share`, `rows` and `seed`."""
        from datakit.report.forecast import ForecastConfig, forecast

        return forecast(self.recipe, self.project, ForecastConfig(workers=self.workers, **values))


def _from(project: Path, given: str) -> str:
    if "://" in given or os.path.isabs(given):
        return given
    return os.path.abspath(given) if storage.url_of(project) else str(project / given)


# Temporary folders.


class _Scratch:
    """A temporary folder, removed with this object or at the end of the process; not by a child that was forked."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="datakit-"))
        self._finalizer = weakref.finalize(self, _remove, self.folder, os.getpid())

    def close(self) -> None:
        """Remove the folder."""
        self._finalizer()


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
