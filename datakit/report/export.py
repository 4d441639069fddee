"""`datakit export`: the rows of a result as files for others, with their own columns again, a card and checksums.

A folder is complete or it is not there: everything is written into a hidden folder beside it, which is renamed at the
end. It holds `data/` (JSON lines, compressed or not, or Parquet), `README.md` (a dataset card with the YAML head that
the Hugging Face Hub reads) and `SHA256SUMS`. `datasets.load_dataset(folder)` reads it, since the card names the files
of each split.

Columns are those of the user: the text under the field that it came from, the fields that were columns, and the fields
in `extra`. Names that are taken, and in Parquet fields that have several types, stay in `extra`. What stages added is
left out unless it is asked for.
"""

import base64
import contextlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import datakit.storage as storage
from datakit.config import resolved, sha256_file
from datakit.data import KEY, MESSAGES, of_kind, read_rows, stored
from datakit.engine.recipe import config_class, stage_class
from datakit.engine.store import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from datakit.errors import InputError, UsageError
from datakit.manifest import Manifest, ancestors, data_dir, load, tables
from datakit.read.columns import array_of, fitting, inferred, joined
from datakit.report.page import templates
from datakit.report.tables import losses

Format = Literal["parquet", "jsonl", "jsonl.gz", "jsonl.zst"]
FORMATS: tuple[str, ...] = get_args(Format)
CODECS = {"jsonl.gz": "gzip", "jsonl.zst": "zstd"}

NOT_OWN = ("content_hash", "source", "lang", "lang_score")
"""The columns of every row that datakit made; `id` is always exported, `row_key` never."""
_SIDE = pa.field("side", pa.string())
"""Of packed preference pairs, whose two sides follow one another: `chosen` or `rejected`."""
MOST_SOURCES = 50
"""Sources that a card lists, the largest first; the others are counted."""
LEAST_LANGUAGE = 0.01
"""The share of rows from which on a language is named in a card's head."""


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
        if not re.fullmatch(r"[a-z0-9.+-]*", self.license):
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


def export(path: Path, output: Path, config: ExportConfig | None = None) -> Exported:
    """Export the kept rows of the result at `path` (a manifest) into a new or empty folder.

    Raises:
        UsageError: the folder holds something, or a column is asked for that the rows do not have.
        InputError: the result has no rows (a tokenizer, a classifier).
        IntegrityError: a shard is missing or damaged.
    """
    config, manifest = config or ExportConfig(), load(path)
    with _whole_folder(output) if storage.url_of(output) is None else _published(output) as folder:
        storage.make_folder(folder / "data")
        if manifest.stage == "pack":
            made = _export_packed(path, manifest, folder, config)
        elif tables(manifest, "kept"):
            made = _export_rows(path, manifest, folder, config)
        else:
            raise InputError(f"{path}: the result of {manifest.stage} has no rows to export; its files lie in "
                             f"{data_dir(path, manifest)}")  # fmt: skip
        storage.write_whole(folder / "README.md", _card(path, made, config).encode())
        names = ["README.md", *(name for split in made.splits for name in split.files)]
        sums = "".join(f"{sha256_file(folder / name)}  {name}\n" for name in sorted(names))
        storage.write_whole(folder / "SHA256SUMS", sums.encode())
    made.folder = output
    return made


# The folder.


@contextlib.contextmanager
def _whole_folder(output: Path) -> Iterator[Path]:
    """A hidden folder beside `output`, which becomes `output` if all goes well, and is removed if not.

    Raises:
        UsageError: `output` holds something, or another export writes there.
    """
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
            storage.flush_folder(output.parent)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


@contextlib.contextmanager
def _published(output: Path) -> Iterator[Path]:
    """The mirror of `output`, whose files become its objects if all goes well; SHA256SUMS is the last.

    Raises:
        UsageError: `output` holds something, or another export writes there.
        InputError: there is no such bucket, or no right to write to it.
    """
    names = storage.sizes(output).keys()
    if names and storage.CLAIM not in names:  # with a claim they are of an export that was killed
        raise UsageError(f"{output}: is not empty; name a new or an empty folder")
    with storage.Claim(output) as claim:
        for left in names - {storage.CLAIM}:
            storage.remove(output / left)
        try:
            storage.make_folder(output)
            yield output
            claim.check()
            files = [f for f in sorted(output.rglob("*")) if f.is_file() and f.name != storage.CLAIM]
            for file in sorted(files, key=lambda f: f.name == "SHA256SUMS"):
                about = file.relative_to(output).as_posix(), file.stat().st_size, sha256_file(file)
                storage.publish(output, [about])
        except BaseException:
            with contextlib.suppress(InputError):  # the store may be what failed
                for name in storage.sizes(output).keys() - {storage.CLAIM}:
                    storage.remove(output / name)
            raise
        finally:
            shutil.rmtree(output / "data", ignore_errors=True)  # it need not stay in the mirror


# Files of one split, cut by data.


class _ParquetFile:
    """Zstd, with row groups like those of shards, so that a reader needs little memory."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self.close = self._writer.close

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        per_row = max(1, rows.nbytes // max(1, rows.num_rows))
        self._writer.write_batch(rows, row_group_size=max(1, min(ROW_GROUP_ROWS, ROW_GROUP_BYTES // per_row)))


class _JsonFile:
    """One JSON object a line. Fields of messages without a value are left out, and JSON in strings is JSON again."""

    def __init__(self, path: Path, codec: str) -> None:
        self._file = pa.CompressedOutputStream(str(path), codec) if codec else pa.OSFile(str(path), "wb")
        self.close = self._file.close

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        lists = [f.name for f in rows.schema if f.type == MESSAGES or f.type == stored(MESSAGES)]
        for row in rows.to_pylist():
            for name in lists:
                row[name] = [_message(m) for m in row[name] or ()]
            if (tools := row.pop("tools", None)) is not None:
                row["tools"] = orjson.Fragment(tools)
            self._file.write(_line(row, row.pop("extra", None)) + b"\n")


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


def _write_split(
    folder: Path, name: str, schema: pa.Schema, rows: Iterator[pa.RecordBatch], config: ExportConfig
) -> Split:
    """Write a split into files `data/NAME-00000-of-00003.SUFFIX`; rows are cut into files by their bytes alone."""
    split, parts, filled = Split(name), list[Path](), 0
    writer: _ParquetFile | _JsonFile | None = None
    for batch in rows:
        if writer is None or filled >= config.file_mb * 1_000_000:
            if writer is not None:
                writer.close()
            parts.append(folder / "data" / f".{name}-{len(parts):05d}")
            writer, filled = _open(parts[-1], schema, config), 0
        writer.write(batch)
        filled += batch.nbytes
        split.rows += batch.num_rows
        split.bytes += batch.nbytes
    if writer is None:  # no rows are one file without rows
        parts.append(folder / "data" / f".{name}-00000")
        writer = _open(parts[-1], schema, config)
    writer.close()
    for number, part in enumerate(parts):
        place = part.with_name(f"{name}-{number:05d}-of-{len(parts):05d}.{config.format}")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        split.files.append(f"data/{part.rename(place).name}")
    storage.flush_folder(folder / "data")
    return split


def _open(path: Path, schema: pa.Schema, config: ExportConfig) -> _ParquetFile | _JsonFile:
    parquet = config.format == "parquet"
    return _ParquetFile(path, schema) if parquet else _JsonFile(path, CODECS.get(config.format, ""))


# Rows of all kinds.


@dataclass(frozen=True, slots=True)
class _Shape:
    """How the columns of a result become those of the export."""

    schema: pa.Schema
    """Of the exported rows."""
    names: dict[str, str]
    """Column of the export -> column of the result."""
    unpacked: dict[str, pa.DataType]
    """Fields of `extra` that are columns again, by name (Parquet only)."""

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the columns of the export."""
        fields, rest = (
            _fields_of(batch.column("extra"), self.unpacked) if self.unpacked else ({}, batch.column("extra"))
        )
        columns = []
        for f in self.schema:
            if f.name in self.names:
                columns.append(_narrowed(batch.column(self.names[f.name]), f.type))
            else:
                columns.append(array_of(fields[f.name], f.type) if f.name in fields else rest)
        return pa.record_batch(columns, schema=self.schema)


def _export_rows(path: Path, manifest: Manifest, folder: Path, config: ExportConfig) -> Exported:
    def rows() -> Iterator[pa.RecordBatch]:
        for shard in tables(manifest, "kept"):
            yield from read_rows(data_dir(path, manifest), shard)

    def converted() -> Iterator[pa.RecordBatch]:
        for batch in rows():
            for column, counts in (("source", made.sources), ("lang", made.languages)):
                values = pc.value_counts(batch.column(column).drop_null()).to_pylist()
                counts.update({pair["values"]: pair["counts"] for pair in values})
            yield shape.convert(batch)

    shape = _shape(path, manifest, rows, config)
    made = Exported(folder, manifest, config.format, [], {f.name: str(f.type) for f in shape.schema})
    made.splits.append(_write_split(folder, "train", shape.schema, converted(), config))
    return made


def _shape(
    path: Path, manifest: Manifest, rows: Callable[[], Iterator[pa.RecordBatch]], config: ExportConfig
) -> _Shape:
    first, ingest = next(rows()).schema, ancestors(path)[-1][1]
    own = {*of_kind(manifest.kind).names, *ingest.facts.get("columns", {})}
    added = [*NOT_OWN, *(name for name in first.names if name not in own)]
    wanted = added if config.add == ("all",) else list(config.add)
    if unknown := [n for n in wanted if n not in added]:
        there = ", ".join(added)
        raise UsageError(f"{path}: its rows have no column {unknown[0]!r} that datakit made; they have {there}")
    left_out = {KEY.name, "extra", *added} - set(wanted)
    names = {n: n for n in first.names if n not in left_out}
    fields_of_text = {ingest.facts.get("text_fields", {}).get(file, "text") for file in ingest.facts.get("layouts", {})}
    if "text" in names and len(fields_of_text) == 1 and (field := fields_of_text.pop()) not in names:
        names = {field if n == "text" else n: n for n in names}
    fields = [first.field(old).with_name(new) for new, old in names.items()]
    if config.format != "parquet":
        return _Shape(pa.schema([*fields, pa.field("extra", pa.string())]), names, {})
    seen = _Seen()
    for batch in rows():
        seen.look(batch, taken={*names, "extra"})
    fields = [f.with_type(seen.narrowed(f.type)) for f in fields if f.name != "tools" or seen.tools]
    fields += [pa.field(name, kind) for name, kind in sorted(seen.kinds.items()) if kind is not None]
    fields += [pa.field("extra", pa.string())] if seen.leftovers else []
    unpacked = {n: kind for n, kind in seen.kinds.items() if kind is not None}
    return _Shape(pa.schema(fields), {n: old for n, old in names.items() if old != "tools" or seen.tools}, unpacked)


@dataclass(slots=True)
class _Seen:
    """What the rows hold, which decides the columns of Parquet files."""

    kinds: dict[str, pa.DataType | None] = field(default_factory=dict)
    """Types of the fields of `extra` by name; None where there are several."""
    leftovers: bool = False
    """Something may stay in `extra`."""
    messages: set[str] = field(default_factory=lambda: {"role", "content"})
    """The fields of messages that any row has."""
    tools: bool = False

    def look(self, batch: pa.RecordBatch, taken: set[str]) -> None:
        """Look at some rows."""
        extras = [json.loads(e) for e in batch.column("extra").drop_null().to_pylist()]
        types = inferred(extras)
        for name in dict.fromkeys(n for e in extras for n, v in e.items() if v is not None):
            kind = types.get(name)
            if name not in taken and name in types:
                before = self.kinds.get(name, kind)
                self.kinds[name] = kind if name not in self.kinds else joined(before, kind)
                self.leftovers |= kind is None or before != kind  # types that are joined may not hold every value
            self.leftovers |= name in taken or name not in types
        for name in {"messages", "prompt", "chosen", "rejected"} & set(batch.schema.names):
            flat = batch.column(name).flatten()
            children = zip(flat.type, flat.flatten(), strict=True)
            self.messages |= {f.name for f, values in children if values.null_count < len(values)}
        self.tools |= "tools" in batch.schema.names and batch.column("tools").null_count < batch.num_rows

    def narrowed(self, kind: pa.DataType) -> pa.DataType:
        """A type of messages with the fields that are used; any other type as it is."""
        if kind not in (MESSAGES, stored(MESSAGES)):
            return kind
        return pa.list_(pa.struct([f for f in kind.value_type if f.name in self.messages]))


def _fields_of(extras: pa.Array, kinds: dict[str, pa.DataType]) -> tuple[dict[str, list[Any]], pa.Array]:
    """(values of the fields that are columns, JSON of what is left of each row)."""
    tests = {name: fitting(kind) for name, kind in kinds.items()}
    fields: dict[str, list[Any]] = {name: [] for name in kinds}
    rest: list[str | None] = []
    for text in extras.to_pylist():
        values = json.loads(text) if text is not None else {}
        for name, fits in tests.items():
            here = name in values and fits(values[name])
            fields[name].append(values.pop(name) if here else None)
        left = {n: v for n, v in values.items() if v is not None}
        rest.append(json.dumps(left, ensure_ascii=False) if left else None)
    return fields, pa.array(rest, pa.string())


def _narrowed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Messages with the fields of a narrower struct; any other column as it is."""
    if column.type == kind or not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return column.cast(kind)
    children = [column.values.field(f.name) for f in kind.value_type]
    made = pa.StructArray.from_arrays(children, fields=list(kind.value_type))
    return pa.ListArray.from_arrays(column.offsets, made, type=kind)


# Packed rows.


def _export_packed(path: Path, manifest: Manifest, folder: Path, config: ExportConfig) -> Exported:
    """Packed rows as tables of ids, labels (-100 where nothing is learnt) and positions; each set is a split."""
    from datakit.pack.format import Packed, training_schema
    from datakit.pack.inspect import open_all, training_tables

    if config.add:
        raise UsageError(f"{path}: packed rows have no columns that could be added; export an earlier stage")
    sets, _ = open_all(path)
    paired = any(rows.header.rows_per_unit > 1 for rows in sets)
    schema = training_schema().append(_SIDE) if paired else training_schema()

    def batches(rows: Packed) -> Iterator[pa.RecordBatch]:
        done = 0
        for table in training_tables(rows):
            if paired:
                sides = [("chosen", "rejected")[n % 2] for n in range(done, done + table.num_rows)]
                done += table.num_rows
                table = table.append_column(_SIDE, pa.array(sides, pa.string()))
                table = table.filter(pc.greater(pc.list_value_length(table["input_ids"]), 0))  # a missing side
            yield from table.to_batches()

    made = Exported(folder, manifest, config.format, [], {f.name: str(f.type) for f in schema})
    for rows in sets:
        made.splits.append(_write_split(folder, rows.name.replace("-", "_"), schema, batches(rows), config))
    return made


# The card.

_TASKS = {"document": "text-generation", "conversation": "text-generation", "preference": "reinforcement-learning"}
_ROWS = {
    "document": "Documents: plain text, for pretraining.",
    "conversation": "Conversations: messages in order, for supervised fine-tuning.",
    "preference": "Preference pairs: a prompt, the answer that was chosen and the one that was rejected; a judged "
    "answer has an empty other side.",
    "tokens": "Token ids with the spans that a model learns (`label_spans`; null: all of them).",
    "tokens_preference": "Token ids of both sides of preference pairs, with the spans that a model learns.",
    "packed": "Packed rows of token ids: `labels` are aligned with `input_ids` and -100 where nothing is learnt, "
    "`position_ids` start at 0 in each sequence, `seq_lens` are the lengths of the row's sequences.",
}


def _card(path: Path, made: Exported, config: ExportConfig) -> str:
    """README.md: what the rows are, what each stage kept and dropped, with which settings, and how to load them."""
    chain = [manifest for _, manifest in reversed(ancestors(path)) if stage_class(manifest.stage).makes_rows]
    files = sorted(name for split in made.splits for name in split.files)
    codes, total = made.languages.most_common(), max(sum(made.languages.values()), 1)
    sources = sorted(made.sources.items(), key=lambda item: (-item[1], item[0]))
    rest = sources[MOST_SOURCES:]
    kind = made.manifest.kind
    return (
        templates()
        .get_template("card.md")
        .render(
            made=made,
            title=config.title or made.manifest.dataset,
            license=config.license,
            languages=[code for code, n in codes if code != "und" and n >= LEAST_LANGUAGE * total],
            task=_TASKS.get(kind),
            size=size_category(sum(split.rows for split in made.splits)),
            download=sum((made.folder / name).stat().st_size for name in files),
            about=_ROWS["packed" if made.manifest.stage == "pack" else kind],
            reader="read_parquet" if made.format == "parquet" else "read_json",
            first=files[0],
            stages=[(m.stage, m.ledger.rows, _lost(m)) for m in chain],
            sources=sources[:MOST_SOURCES],
            others=(len(rest), sum(n for _, n in rest)),
            recipe="\n".join(_recipe(chain)),
        )
    )


def size_category(rows: int) -> str:
    """The size category of the Hub: powers of ten from a thousand on."""
    limits = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
    at = max(len(str(rows)) - 3, 0)
    return (
        f"n<{limits[0]}" if at == 0 else f"n>{limits[-1]}" if at >= len(limits) else f"{limits[at - 1]}<n<{limits[at]}"
    )


def _lost(manifest: Manifest) -> str:
    rows = manifest.ledger.rows
    lost = [f"{n:,} {reason}" for reason, n in losses(rows)]
    return ", ".join([*lost, *[f"{rows.edited:,} of the kept were edited"] * bool(rows.edited)])


def _recipe(chain: list[Manifest]) -> Iterator[str]:
    """The settings of each stage that are not its defaults, as the sections of a recipe."""
    yield "[dataset]"
    yield f"stages = {json.dumps([m.stage for m in chain])}"
    for manifest in chain:
        yield from _section(manifest.stage, manifest.config, resolved(config_class(manifest.stage)()))


def _section(name: str, values: dict[str, Any], defaults: dict[str, Any]) -> Iterator[str]:
    nested = {k: v for k, v in values.items() if isinstance(v, dict) and isinstance(defaults.get(k), dict)}
    other = {k: v for k, v in values.items() if k not in nested and v != defaults.get(k)}
    if other:
        yield f"\n[{name}]"
        yield from (f"{key} = {_toml(value)}" for key, value in other.items())
    for key, table in nested.items():
        yield from _section(f"{name}.{key}", table, defaults[key])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return '""' if value is None else json.dumps(value, ensure_ascii=False)
