"""`datakit export`: the rows of a result as files for others, with their own columns again, a card and checksums.

A folder is complete or it is not there: everything is written into a hidden folder beside it, which is renamed at the
end. It holds `data/` (JSON lines, compressed or not, or Parquet), `README.md` (a dataset card, see `report/card`) and
`SHA256SUMS`. `datasets.load_dataset(folder)` reads it, since the card names the files of each split.

Columns are those of the user: the text under the field that it came from, the fields that were columns, and the fields
in `extra`. Names that are taken, and in Parquet fields that have several types, stay in `extra`. What stages added is
left out unless it is asked for.
"""

import base64
import contextlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import datakit.storage as storage
from datakit.config import sha256_file
from datakit.data import KEY, MESSAGES, of_kind, read_rows, stored
from datakit.engine.store import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from datakit.errors import InputError, UsageError
from datakit.manifest import Manifest, ancestors, data_dir, flush_folder, load, make_folder, tables, write_whole
from datakit.read.columns import array_of, fitting, inferred, joined

Format = Literal["parquet", "jsonl", "jsonl.gz", "jsonl.zst"]
FORMATS: tuple[str, ...] = get_args(Format)
CODECS = {"jsonl.gz": "gzip", "jsonl.zst": "zstd"}

NOT_OWN = ("content_hash", "source", "lang", "lang_score")
"""The columns of every row that datakit made; `id` is always exported, `row_key` never."""
_SIDE = pa.field("side", pa.string())
"""Of packed preference pairs, whose two sides follow one another: `chosen` or `rejected`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportConfig:
    """What is exported, and how."""

    format: Format = "parquet"
    add: tuple[str, ...] = ()
    """Columns that datakit made, by name, or `all`."""
    file_mb: int = 500
    """A file ends after so many megabytes (1e6 bytes) of values in memory."""
    license: str = ""
    """As the Hugging Face Hub names it, `apache-2.0`; empty: the card says that it is not stated."""
    title: str = ""
    """The title of the card; empty: the dataset's name."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise UsageError(f"format: expected one of {', '.join(FORMATS)}, found {self.format!r}")
        if self.file_mb < 1:
            raise UsageError(f"file_mb: expected at least 1, found {self.file_mb}")
        if not set(self.license) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-+"):
            raise UsageError(f"license: expected a name as the Hub has it, such as apache-2.0, found {self.license!r}")


@dataclass(slots=True)
class Split:
    """One split of an exported dataset."""

    name: str
    files: list[str] = field(default_factory=list)
    """Relative to the folder."""
    rows: int = 0
    bytes: int = 0
    """Of the values, in memory."""


@dataclass(slots=True)
class Exported:
    """What was exported."""

    folder: Path
    manifest: Manifest
    format: str
    splits: list[Split]
    columns: dict[str, str]
    """Name -> type."""
    sources: Counter[str] = field(default_factory=Counter)
    """Rows by source; empty for packed rows."""
    languages: Counter[str] = field(default_factory=Counter)
    """Rows by language, where they have one."""

    @property
    def rows(self) -> int:
        """Rows of all splits."""
        return sum(split.rows for split in self.splits)


def export(path: Path, output: Path, config: ExportConfig | None = None) -> Exported:
    """Export the kept rows of the result at `path` (a manifest) into a new or empty folder.

    Raises:
        UsageError: the folder holds something, or a column is asked for that the rows do not have.
        InputError: the result has no rows (a tokenizer, a classifier).
        IntegrityError: a shard is missing or damaged.
    """
    from datakit.report.card import card

    config, manifest = config or ExportConfig(), load(path)
    with _whole_folder(output) as folder:
        make_folder(folder / "data")
        if manifest.stage == "pack":
            made = _export_packed(path, manifest, folder, config)
        elif tables(manifest, "kept"):
            made = _export_rows(path, manifest, folder, config)
        else:
            raise InputError(f"{path}: the result of {manifest.stage} has no rows to export; its files lie in "
                             f"{data_dir(path, manifest)}")  # fmt: skip
        write_whole(folder / "README.md", card(path, made, config).encode())
        names = ["README.md", *(name for split in made.splits for name in split.files)]
        sums = "".join(f"{sha256_file(folder / name)}  {name}\n" for name in sorted(names))
        write_whole(folder / "SHA256SUMS", sums.encode())
    made.folder = output
    return made


@contextlib.contextmanager
def _whole_folder(output: Path) -> Iterator[Path]:
    """A hidden folder beside `output`, which becomes `output` if all goes well, and is removed if not.

    Raises:
        UsageError: `output` holds something, or another export writes there.
    """
    if storage.url_of(output) is not None:
        with _published(output) as folder:
            yield folder
        return
    if output.is_symlink() or (output.exists() and (not output.is_dir() or any(output.iterdir()))):
        raise UsageError(f"{output}: is not empty; name a new or an empty folder")
    output = output.absolute()
    folder = output.with_name(f".{output.name}.export")
    with storage.locked(folder):
        try:
            for left in folder.iterdir():  # of an export that was killed
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield folder
            folder.rename(output)
            flush_folder(output.parent)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


@contextlib.contextmanager
def _published(output: Path) -> Iterator[Path]:
    """A folder on this machine, whose files become the objects of `output` if all goes well; SHA256SUMS is the last.

    Raises:
        UsageError: `output` holds something, or another export writes there.
        InputError: there is no such bucket, or no right to write to it.
    """
    names = storage.sizes(output).keys()
    if names and storage.CLAIM not in names:  # with a claim they are of an export that was killed
        raise UsageError(f"{output}: is not empty; name a new or an empty folder")
    with storage.Claim(output) as claim, tempfile.TemporaryDirectory(prefix="datakit-export-") as made:
        for left in names - {storage.CLAIM}:
            storage.remove(output / left)
        yield Path(made)
        claim.check()
        files = sorted(f.relative_to(made) for f in Path(made).rglob("*") if f.is_file())
        try:
            for name in sorted(files, key=lambda f: f.name == "SHA256SUMS"):
                place = output / name
                make_folder(place.parent)
                shutil.move(Path(made) / name, place)
                storage.publish(output, [(name.as_posix(), place.stat().st_size, sha256_file(place))])
                place.unlink()
        except BaseException:
            with contextlib.suppress(InputError):  # the store may be what failed
                for name in files:
                    storage.remove(output / name)
            raise


# Files of one split, cut by data.


class _RowWriter(Protocol):
    def write(self, rows: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


class _ParquetFile:
    """Zstd, with row groups like those of shards, so that a reader needs little memory."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, rows: pa.RecordBatch) -> None:
        per_row = max(1, rows.nbytes // max(1, rows.num_rows))
        self._writer.write_batch(rows, row_group_size=max(1, min(ROW_GROUP_ROWS, ROW_GROUP_BYTES // per_row)))

    def close(self) -> None:
        self._writer.close()


class _JsonFile:
    """One JSON object a line. Fields of messages without a value are left out, and JSON in strings is JSON again."""

    def __init__(self, path: Path, codec: str) -> None:
        self._file = pa.CompressedOutputStream(str(path), codec) if codec else pa.OSFile(str(path), "wb")

    def write(self, rows: pa.RecordBatch) -> None:
        extras = rows.column("extra").to_pylist() if "extra" in rows.schema.names else [None] * rows.num_rows
        plain = rows.drop_columns(["extra"]) if "extra" in rows.schema.names else rows
        lines = []
        for row, extra in zip(_json_rows(plain), extras, strict=True):
            lines.append(_line(row, extra))
        if lines:
            self._file.write(b"\n".join(lines) + b"\n")

    def close(self) -> None:
        self._file.close()


def _json_rows(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.to_pylist()
    lists = [f.name for f in rows.schema if f.type == MESSAGES or f.type == stored(MESSAGES)]
    for row in found if lists else ():
        for name in lists:
            row[name] = [_message(m) for m in row[name] or ()]
    if "tools" in rows.schema.names:
        for row in found:
            tools = row.pop("tools")
            if tools is not None:
                row["tools"] = orjson.Fragment(tools)
    return found


def _message(message: dict[str, Any]) -> dict[str, Any]:
    plain = {k: v for k, v in message.items() if v is not None or k == "content"}
    if "tool_calls" in plain:
        plain["tool_calls"] = orjson.Fragment(plain["tool_calls"])
    return plain


def _line(row: dict[str, Any], extra: str | None) -> bytes:
    """A row and its other fields as one JSON object; the other fields keep every digit that the user wrote."""
    if extra is None:
        return orjson.dumps(row, default=_plain)
    keys = orjson.loads(extra).keys()
    taken = [k for k in keys if row.get(k) is not None]
    if taken:  # a name cannot stand twice in a line
        exact = json.loads(extra)
        inside = {k: exact.pop(k) for k in taken}
        extra = json.dumps(exact | {"extra": inside}, ensure_ascii=False)
    head = orjson.dumps({k: v for k, v in row.items() if k not in keys or k in taken}, default=_plain)
    return head[:-1] + (b"," if len(head) > 2 else b"") + extra.encode()[1:]


def _plain(value: Any) -> Any:
    """What JSON has no type for: bytes in base64, decimals as they are written."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


class _SplitWriter:
    """Writes a split into files `data/NAME-00000-of-00003.SUFFIX`; rows are cut into files by their bytes alone."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema, config: ExportConfig) -> None:
        self._folder, self._schema, self._config = folder, schema, config
        self.split = Split(name)
        self._writer: _RowWriter | None = None
        self._parts: list[Path] = []
        self._filled = 0

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if self._writer is None or self._filled >= self._config.file_mb * 1_000_000:
            self._next_file()
        assert self._writer is not None
        self._writer.write(rows)
        self._filled += rows.nbytes
        self.split.rows += rows.num_rows
        self.split.bytes += rows.nbytes

    def _next_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._parts.append(self._folder / "data" / f".{self.split.name}-{len(self._parts):05d}")
        self._filled = 0
        if self._config.format == "parquet":
            self._writer = _ParquetFile(self._parts[-1], self._schema)
        else:
            self._writer = _JsonFile(self._parts[-1], CODECS.get(self._config.format, ""))

    def close(self) -> Split:
        """Finish the files, flush them to the disk and give them their names."""
        if self._writer is None:
            self._next_file()  # no rows are one file without rows
        assert self._writer is not None
        self._writer.close()
        for number, part in enumerate(self._parts):
            name = f"{self.split.name}-{number:05d}-of-{len(self._parts):05d}.{self._config.format}"
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.rename(part.with_name(name))
            self.split.files.append(f"data/{name}")
        flush_folder(self._folder / "data")
        return self.split


# Rows of all kinds.


@dataclass(frozen=True, slots=True)
class _Shape:
    """How the columns of a result become those of the export."""

    schema: pa.Schema
    """Of the exported rows."""
    names: dict[str, str]
    """Column of the result -> column of the export."""
    unpacked: Mapping[str, pa.DataType]
    """Fields of `extra` that are columns again, by name (Parquet only)."""
    messages: tuple[str, ...]
    """The fields of messages that any row has (Parquet only)."""


def _export_rows(path: Path, manifest: Manifest, folder: Path, config: ExportConfig) -> Exported:
    def rows() -> Iterator[pa.RecordBatch]:
        for shard in tables(manifest, "kept"):
            yield from read_rows(data_dir(path, manifest), shard)

    shape = _shape(path, manifest, rows, config)
    convert = _typed if config.format == "parquet" else _renamed
    made = Exported(folder, manifest, config.format, [], {f.name: str(f.type) for f in shape.schema})
    writer = _SplitWriter(folder, "train", shape.schema, config)
    for batch in rows():
        writer.write(convert(batch, shape))
        made.sources.update(_counted(batch, "source"))
        made.languages.update(_counted(batch, "lang"))
    made.splits.append(writer.close())
    return made


def _counted(batch: pa.RecordBatch, column: str) -> dict[str, int]:
    counts = pc.value_counts(batch.column(column).drop_null()).to_pylist()
    return {pair["values"]: pair["counts"] for pair in counts}


def _shape(
    path: Path, manifest: Manifest, rows: Callable[[], Iterator[pa.RecordBatch]], config: ExportConfig
) -> _Shape:
    first = next(rows())
    ingest = ancestors(path)[-1][1]
    own = of_kind(manifest.kind).names
    added = [n for n in first.schema.names if n not in own and n not in ingest.facts.get("columns", {})]
    added = [*NOT_OWN, *added]
    wanted = added if config.add == ("all",) else list(config.add)
    if unknown := [n for n in wanted if n not in added]:
        raise UsageError(
            f"{path}: its rows have no column {unknown[0]!r} that datakit made; they have {', '.join(added)}"
        )
    left_out = {KEY.name, "extra", *added} - set(wanted)
    names = {n: n for n in first.schema.names if n not in left_out}
    if text := _text_field(ingest, names):
        names["text"] = text
    fields = [first.schema.field(old).with_name(new) for old, new in names.items()]
    if config.format != "parquet":
        return _Shape(pa.schema([*fields, pa.field("extra", pa.string())]), names, {}, ())
    unpacked, messages, leftovers, used = _look_at(rows, {*names.values(), "extra"})
    made = []
    for f in fields:
        if f.type in (MESSAGES, stored(MESSAGES)):
            made.append(pa.field(f.name, pa.list_(pa.struct([m for m in f.type.value_type if m.name in messages]))))
        elif f.name != "tools" or "tools" in used:
            made.append(f)
    made += [pa.field(n, kind) for n, kind in unpacked.items()]
    made += [pa.field("extra", pa.string())] if leftovers else []
    return _Shape(pa.schema(made), names, unpacked, messages)


def _text_field(ingest: Manifest, names: Mapping[str, str]) -> str:
    """The field that all texts came from, if it is one and not `text`."""
    found = {ingest.facts.get("text_fields", {}).get(file, "text") for file in ingest.facts.get("layouts", {})}
    name = found.pop() if len(found) == 1 else ""
    return name if "text" in names and name and name not in names else ""


def _look_at(
    rows: Callable[[], Iterator[pa.RecordBatch]], taken: set[str]
) -> tuple[dict[str, pa.DataType], tuple[str, ...], bool, set[str]]:
    """(types of the fields of `extra` that have one, fields of messages that are used, whether anything stays in
    `extra`, which of the columns that may be empty are not)."""
    kinds: dict[str, pa.DataType | None] = {}
    messages, used = dict.fromkeys(("role", "content")), set[str]()
    leftovers = False
    for batch in rows():
        extras = [json.loads(e) for e in batch.column("extra").drop_null().to_pylist()]
        for name, kind in inferred(extras).items():
            kinds[name] = kind if name not in kinds else joined(kinds[name], kind)
        for name in dict.fromkeys(n for e in extras for n, v in e.items() if v is not None):
            leftovers |= name in taken or name not in kinds
        for name in ("messages", "prompt", "chosen", "rejected"):
            if name in batch.schema.names:
                flat = batch.column(name).flatten()
                children = zip(flat.type, flat.flatten(), strict=True)
                messages |= dict.fromkeys(f.name for f, values in children if values.null_count < len(values))
        if "tools" in batch.schema.names and batch.column("tools").null_count < batch.num_rows:
            used.add("tools")
    columns = {n: kind for n, kind in sorted(kinds.items()) if kind is not None and n not in taken}
    tests = {n: fitting(kind) for n, kind in columns.items()}
    leftovers |= any(kind is None for kind in kinds.values())
    if not leftovers:  # types that were joined may not hold every value
        for batch in rows():
            extras = [json.loads(e) for e in batch.column("extra").drop_null().to_pylist()]
            leftovers |= any(n not in tests or not tests[n](v) for e in extras for n, v in e.items() if v is not None)
    return columns, tuple(messages), leftovers, used


def _renamed(batch: pa.RecordBatch, shape: _Shape) -> pa.RecordBatch:
    """The batch with the columns of the export, and `extra` as it is."""
    columns = [batch.column(old) for old in shape.names]
    return pa.record_batch([*columns, batch.column("extra")], names=[*shape.names.values(), "extra"])


def _typed(batch: pa.RecordBatch, shape: _Shape) -> pa.RecordBatch:
    """The batch with the columns of the export, and the fields of `extra` in columns."""
    origin = {new: old for old, new in shape.names.items()}
    fields, rest = _fields_of(batch.column("extra").to_pylist(), shape.unpacked)
    columns = []
    for f in shape.schema:
        if f.name in origin:
            columns.append(_narrowed(batch.column(origin[f.name]), f.type))
        else:
            columns.append(pa.array(rest, pa.string()) if f.name not in fields else array_of(fields[f.name], f.type))
    return pa.record_batch(columns, schema=shape.schema)


def _fields_of(
    extras: Sequence[str | None], kinds: Mapping[str, pa.DataType]
) -> tuple[dict[str, list[Any]], list[str | None]]:
    """(values of the fields that are columns, JSON of what is left of each row)."""
    tests = {name: fitting(kind) for name, kind in kinds.items()}
    fields: dict[str, list[Any]] = {name: [] for name in kinds}
    rest: list[str | None] = []
    for text in extras:
        values = json.loads(text) if text is not None else {}
        for name, fits in tests.items():
            given = values.get(name)
            fields[name].append(given if fits(given) else None)
            if name in values and fits(given):
                del values[name]
        left = {n: v for n, v in values.items() if v is not None}
        rest.append(json.dumps(left, ensure_ascii=False) if left else None)
    return fields, rest


def _narrowed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Messages with the fields of a narrower struct; any other column as it is."""
    if column.type == kind or not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return column.cast(kind)
    flat, offsets = column.values, column.offsets
    wanted = [f.name for f in kind.value_type]
    made = pa.StructArray.from_arrays([flat.field(name) for name in wanted], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(offsets, made, type=kind)


# Packed rows.


def _export_packed(path: Path, manifest: Manifest, folder: Path, config: ExportConfig) -> Exported:
    """Packed rows as tables of ids, labels (-100 where nothing is learnt) and positions; each set is a split."""
    from datakit.pack.format import training_schema
    from datakit.pack.inspect import open_all, training_tables

    if config.add:
        raise UsageError(f"{path}: packed rows have no columns that could be added; export an earlier stage")
    sets, _ = open_all(path)
    paired = any(rows.header.rows_per_unit > 1 for rows in sets)
    schema = training_schema().append(_SIDE) if paired else training_schema()
    made = Exported(folder, manifest, config.format, [], {f.name: str(f.type) for f in schema})
    for rows in sets:
        writer, done = _SplitWriter(folder, rows.name.replace("-", "_"), schema, config), 0
        for table in training_tables(rows):
            if paired:
                sides = [("chosen", "rejected")[n % 2] for n in range(done, done + table.num_rows)]
                done += table.num_rows
                table = table.append_column(_SIDE, pa.array(sides, pa.string()))
                table = table.filter(pc.greater(pc.list_value_length(table["input_ids"]), 0))  # a missing side
            for batch in table.to_batches():
                writer.write(batch)
        made.splits.append(writer.close())
    return made
