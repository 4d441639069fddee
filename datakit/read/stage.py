"""Ingest: raw files -> rows, quarantined records, and unique ids."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather

from datakit.config import file_mark, option
from datakit.errors import ConfigError, InputError
from datakit.manifest import Ledger
from datakit.stage import Decision, Extras, RawBatch, RawFile, RawGroup, Stage
from datakit.storage import is_url, tags_of, whole_file

if TYPE_CHECKING:
    from datakit.read.planning import Plan
    from datakit.read.removal import RemovalList
    from datakit.read.streams import Layout

PROCESSES_FROM_BYTES: Final = 1 << 30
"""Below, the start of processes and their imports take longer than they save."""
PROCESSES_FROM_BYTES_OF_PAGES: Final = 1 << 26
"""Extractors hold the interpreter lock nearly all the time."""

_DECISIONS: Final = pa.schema(
    [pa.field("row_key", pa.uint64(), nullable=False), pa.field("id", pa.string()), pa.field("removed", pa.bool_())]
)
"""What is decided about some rows: a new id, and whether the row is removed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestConfig:
    """All values that shape the rows that are read."""

    kind: Literal["auto", "text", "sft", "preference"] = option(
        "auto", "the kind of every row; auto: that of all files"
    )
    layout: str = option("auto", "the layout of every file by name; auto: each file's own, from its fields")
    text_split: Literal["file", "line", "paragraph"] = option("file", "what is one document in plain text files")
    map: dict[str, str] = option(
        {}, "our name = the record's field, path or template ({instruction}\\n\\n{context}); or a known set, as squad"
    )
    roles: dict[str, str] = option({}, "speaker = role: system, user, assistant or tool; for speakers of other names")
    split: str = option("", "the split that is read, as train; several with commas; all: every file")
    limit: int = option(0, "take in only so many records, the first ones in the order of the files; 0: all")
    extractor: Literal["resiliparse", "trafilatura"] = option(
        "resiliparse", "what makes text of HTML: resiliparse is fast, trafilatura leaves out more of what is no content"
    )
    shard_mb: int = option(16, "uncompressed MiB of input per unit of work, and so per shard")
    columns: Literal["typed", "json"] = option(
        "typed", "fields that make no row and no id: columns of their type, or JSON in extra", advanced=True
    )
    page_timeout_s: int = option(120, "seconds for the text of one page; see on_timeout", advanced=True)
    on_timeout: Literal["error", "quarantine"] = option(
        "error",
        "a page that took longer ends the run, or is quarantined: rows then depend on it",
        advanced=True,
    )

    def __post_init__(self) -> None:
        for name, least, most in (("shard_mb", 1, 2048), ("page_timeout_s", 1, 1 << 20), ("limit", 0, 1 << 40)):
            value = getattr(self, name)  # the offsets of an Arrow string array end at 2 GiB
            if not least <= value <= most:
                raise ConfigError(f"{name} is {value}; it should be between {least} and {most}")
        if self.layout != "auto" or self.map or self.roles:
            from datakit.read.layouts.table import NAMES, user_mapping

            user_mapping(self.map, self.roles)
            if self.layout not in ("auto", *NAMES):
                raise ConfigError(f"layout is {self.layout!r}; known layouts are auto, {', '.join(NAMES)}")
            if self.layout != "auto" and self.map.keys() - {"id"}:
                raise ConfigError("layout and map exclude each other: the mapping says which fields are read")


@dataclass(frozen=True)
class Ingest(Stage):
    """Reads raw files, or a table in memory, into rows; quarantines what cannot be read; makes ids unique.

    Work units are cut from the raw files' bytes. Rows whose id an earlier row has get a suffix (`#2`, `#3`, ...): the
    ids of all rows are compared by 64-bit hashes, which are sorted in memory (17 bytes a row).
    """

    config: IngestConfig = field(default_factory=IngestConfig)
    plan: "Plan | None" = None
    marks: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    """By local path: size, times and inode when the files were planned."""
    decisions: Path | None = None
    """The file of new ids and removed rows, in the stage that `bind` returns."""
    removals: "RemovalList | None" = None
    """Rows that are dropped as `removed`."""
    output_kind: str = ""
    """The kind that all files have in common."""
    holds_gil: bool = False
    """Parsing holds the interpreter lock in part; only much input pays for the start of processes."""

    name: ClassVar[str] = "ingest"
    help: ClassVar[str] = "Inputs are files, folders, globs or URLs. Records that cannot be read are counted too."
    Config: ClassVar[type] = IngestConfig
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "raw"
    compares_rows: ClassVar[bool] = True
    note_lines: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "id_clashes": "rows had an id that an earlier row has; they got a suffix (#2, #3, ...)",
            "answers_judged_good": "answers are judged as good (label true): pairs without a rejected side",
            "answers_judged_bad": "answers are judged as bad (label, kto_tag, is_correct or is_safe false): no "
            "conversation learns them, and of a pair they are the rejected side",
            "labels_of_0": "answers have the label 0, which is read as a class: they are learned; with --kind "
            "preference they are bad answers",
            "fields_of_other_type": "values do not fit the column of their field; they are in `extra`",
            "late_fields": "rows have fields that the first records of their file lack; they are in `extra`",
            "archive_records": "records of web archives are requests, metadata and the like; they are no pages",
            "other_mimes": "records of web archives are images and other types; only HTML and plain text are pages",
            "answers_not_ok": "records of web archives are answers without a page (redirects, errors)",
        }
    )

    def read_from(self, inputs: Sequence[Any], removed: Path | None = None) -> Self:
        """The stage with its inputs planned: files, folders and globs, or one table in memory.

        Raises:
            InputError: no input, a missing or unreadable file, a file of an unknown format.
            LayoutError: records that fit no layout, or files of different kinds.
            IntegrityError: the list of removed rows is damaged.
        """
        from datakit.read.planning import plan
        from datakit.read.removal import RemovalList

        removals = RemovalList.load(removed) if removed is not None and removed.is_file() else self.removals
        planned = plan(inputs, self.config)
        marks = _marks([f.path for f in planned.files if f.table is None])
        pages = any(f.format in ("warc", "html") for f in planned.files)
        least = PROCESSES_FROM_BYTES_OF_PAGES if pages else PROCESSES_FROM_BYTES
        much = planned.files[0].table is None and sum(f.text_bytes for f in planned.files) > least
        return replace(self, plan=planned, marks=marks, removals=removals, output_kind=planned.kind, holds_gil=much)

    def describe(self) -> tuple[str, ...]:
        """What was found in the inputs, for people."""
        return self._plan.summary

    @property
    def _plan(self) -> "Plan":
        assert self.plan is not None, "call read_from first"
        return self.plan

    def extras(self, ledger: Ledger) -> Extras:
        """The layout of each file; of documents also the field of their text where it is not `text`, and the types of
        the user's own columns."""
        files = self._plan.files
        fields = {f.name: f.layout.text_field for f in files if f.layout.text_field not in ("", "text")}
        columns = {f.name: str(f.type) for f in self._plan.columns}
        layouts = {f.name: f.layout.name for f in files if not f.failure}
        found: dict[str, Any] = {"layouts": layouts, "text_fields": fields, "columns": columns}
        if failed := [f.name for f in files if f.failure]:
            from datakit.read.find import shortened

            said = f"{len(failed)} files cannot be read, and are quarantined whole: {shortened(failed, 5)}"
            found = {"alarms": [said]} | found
        return Extras({name: value for name, value in found.items() if value})

    def raw_groups(self) -> Sequence[RawGroup]:
        """The groups of files that share shards, each with the formats and layouts of its files; a table has the hash
        of its values."""
        from datakit.read.planning import groups

        plan, found = self._plan, []
        for group in groups(plan):
            files = plan.files[group.start : group.stop]
            columns = [[f.name, str(f.type)] for f in plan.columns]
            each = [[f.format, f.compression, f.header, f.delimiter, f.limit, _read_by(f.layout)] for f in files]
            reading = [plan.kind, plan.segment_source, columns, each]
            raw = (
                RawFile(f.name, f.path, f.bytes, not is_url(f.path))
                if f.table is None
                else RawFile(f.name, "", f.bytes, sha256=_table_hash(f.table))
                for f in files
            )
            found.append(RawGroup(group.start, tuple(raw), reading))
        return found

    def raw_units(self, group: RawGroup) -> Iterator[Any]:
        """The work units of a group, cut by its files' bytes and the configuration alone."""
        from datakit.read.planning import units_of

        first = group.first_file
        return units_of(self._plan, range(first, first + len(group.files)))

    def read(self, unit: Any) -> Iterator[RawBatch]:
        """The rows of a unit and the records that could not become rows."""
        from datakit.read.planning import read_unit

        return read_unit(unit, self._plan)

    def resources(self) -> dict[str, Any]:
        """The hash of the list of removed rows, where there are any."""
        return {"removed": self.removals.sha256} if self.removals and self.removals.rows else {}

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, a 64-bit hash of the id, and the `content_hash`."""
        from datakit.text.words import hash_values

        columns = {name: batch.column(name) for name in ("row_key", "id", "content_hash")}
        return pa.record_batch(columns | {"id_hash": hash_values(batch.column("id"))})

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write new ids for all rows but the first of each id, and which rows are removed, by `row_key`.

        Raises:
            InputError: a file changed while it was read.
        """
        changed = [path for path, _ in set(self.marks) - set(_marks([path for path, _ in self.marks]))]
        if changed:
            raise InputError(f"{min(changed)}: it changed while it was read; run the same command again")
        decisions = _decided(sketches, self.removals)
        with whole_file(out, flush=False) as temporary:
            pa.feather.write_feather(decisions, str(temporary), compression="uncompressed")
        return {}

    def bind(self, out: Path) -> Self:
        """The stage that gives rows the new ids in `out`."""
        return replace(self, decisions=out)

    def decided_about(self, row_keys: npt.NDArray[np.uint64]) -> pa.RecordBatch:
        """The new ids of the rows with these keys, null where the id stays; and whether they are removed, null for most
        of them."""
        assert self.decisions is not None, "call bind first"
        with pa.memory_map(str(self.decisions)) as file:
            decisions = pa.ipc.open_file(file).read_all().combine_chunks()
        found = decisions.take(pc.index_in(pa.array(row_keys), decisions.column("row_key").combine_chunks()))
        return pa.record_batch([found[name].combine_chunks() for name in ("id", "removed")], ["id", "removed"])

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Keep every row, some with a new id; drop those on the list of removed rows, without their id and text."""
        found = self.decided_about(batch.column("row_key").to_numpy())
        new, removed = found.column("id"), pc.fill_null(found.column("removed"), False)
        columns = {"id": pc.coalesce(new, batch.column("id"))}
        if self.removals and pc.any(removed).as_py():
            columns |= self.removals.blank(batch, removed, columns["id"])
        return Decision(
            reasons=pc.if_else(removed, "removed", None).cast(pa.string()),
            columns=columns,
            notes={"id_clashes": len(new) - new.null_count},
        )


def _marks(paths: Sequence[str]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """By path or URL: what changes when the file does; nothing where it would have to be read to know."""
    tags = tags_of([path for path in paths if is_url(path)])
    return tuple((path, tuple(tags[path] or ()) if path in tags else tuple(file_mark(Path(path)))) for path in paths)


def _read_by(layout: "Layout") -> list[Any]:
    """What the rows of a file depend on, of its layout."""
    fields = (layout.name, layout.kind, dict(layout.required), dict(layout.optional))
    return [*fields, dict(layout.later), layout.beside]


def _table_hash(table: pa.Table) -> str:
    """SHA-256 over the schema and the values of a table, however it is chunked, 64 hex digits."""
    total = hashlib.sha256(table.schema.serialize())
    for batch in table.combine_chunks().to_batches(max_chunksize=1 << 16):
        total.update(batch.serialize())
    return total.hexdigest()


def _decided(sketches: Sequence[Path], removals: "RemovalList | None") -> pa.Table:
    """By `row_key`: new ids of all rows but the first of each id (`id#2`, `id#3`, ..., whichever is free), and the rows
    whose content is on the list of removed rows."""
    found, seen = list[tuple[int, str | None, bool]](), dict[str, int]()
    taken = np.concatenate([np.empty(0, np.uint64), *(_sketches(path)["id_hash"].to_numpy() for path in sketches)])
    taken.sort()
    repeated = np.unique(taken[1:][taken[1:] == taken[:-1]])
    for table in map(_sketches, sketches):  # one at a time: their ids and hashes of content are ten times as large
        again = np.isin(table["id_hash"].to_numpy(), repeated)
        removed = np.zeros(len(again), bool)
        if removals and removals.rows:
            removed = np.array(removals.holds(table["content_hash"]), bool)
        some = np.flatnonzero(again | removed)
        rows = table.select(["row_key", "id"]).take(some).to_pylist()
        for row, is_again, gone in zip(rows, again[some].tolist(), removed[some].tolist(), strict=True):
            new = _free_id(row["id"], seen, taken) if is_again else None
            if new or gone:
                found.append((row["row_key"], new, gone))
    columns = zip(*sorted(found), strict=True) if found else ([] for _ in _DECISIONS)
    return pa.table(list(map(list, columns)), schema=_DECISIONS)


def _sketches(path: Path) -> pa.Table:
    """The sketches of a file, mapped into memory."""
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _free_id(name: str, seen: dict[str, int], taken: npt.NDArray[np.uint64]) -> str | None:
    """The next `id#n` that no row has: its hash is not in `taken`, which is sorted. None for the first row of an id.

    Two names make no equal `id#n`: what stands behind the last `#` is the number, and each name counts on.
    """
    from datakit.text.words import hash_values

    seen[name] = seen.get(name, 0) + 1
    while seen[name] > 1:
        new = f"{name}#{seen[name]}"
        mark = hash_values(pa.array([new]))[0]
        if np.searchsorted(taken, mark) == np.searchsorted(taken, mark, "right"):
            return new
        seen[name] += 1
    return None
