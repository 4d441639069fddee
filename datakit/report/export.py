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
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tomlkit

import datakit.storage as storage
from datakit.config import option, options, resolved, sha256_file
from datakit.data import KEY, MESSAGES, of_kind, stored
from datakit.engine.recipe import stage_class
from datakit.errors import InputError, UsageError
from datakit.manifest import Manifest, ancestors, data_dir, load, tables
from datakit.read.row_builder import array_of, fitting, inferred, joined
from datakit.report.finder import Link, batches
from datakit.report.page import render

Format = Literal["parquet", "jsonl", "jsonl.gz", "jsonl.zst"]
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

    format: Format = option("parquet", "format of the files (`datasets` reads jsonl.zst with the package zstandard)")
    add: tuple[str, ...] = option((), "columns that datakit made, as lang, or all")
    license: str = option("", "the license, as the Hub names it: apache-2.0, cc-by-4.0, ...")
    title: str = option("", "the card's title; empty: the dataset's name")
    file_mb: int = option(500, "a file ends after so many megabytes (1e6 bytes) of values in memory")

    def __post_init__(self) -> None:
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

    @property
    def files(self) -> list[str]:
        """The files of all splits."""
        return sorted(name for split in self.splits for name in split.files)


def export(path: Path, output: Path, config: ExportConfig | None = None) -> Exported:
    """Export the kept rows of the result at `path` (a manifest) into a new or empty folder.

    Raises:
        UsageError: the folder holds something, or a column is asked for that the rows do not have.
        InputError: the result has no rows (a tokenizer, a classifier).
        IntegrityError: a shard is missing or damaged.
    """
    config, link = config or ExportConfig(), (path, load(path))
    with _whole_folder(output) if storage.url_of(output) is None else _published(output) as folder:
        storage.make_folder(folder / "data")
        if link[1].stage == "pack":
            made = _export_packed(link, folder, config)
        elif tables(link[1], "kept"):
            made = _export_rows(link, folder, config)
        else:
            there = data_dir(*link)
            raise InputError(f"{path}: the result of {link[1].stage} has no rows to export; its files lie in {there}")
        storage.write_whole(folder / "README.md", _card(path, made, config))
        names = sorted(["README.md", *made.files])
        sums = "".join(f"{sha256_file(folder / name)}  {name}\n" for name in names)
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
    with storage.locked(output) as claim:
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


@contextlib.contextmanager
def _writer(path: Path, schema: pa.Schema, format: Format) -> Iterator[Callable[[pa.RecordBatch], object]]:
    """A function that appends rows to a new file. A row group of Parquet is a batch, as the shards have them.

    JSON has one object a line. Fields of messages without a value are left out, and JSON in strings is JSON again.
    """
    if format == "parquet":
        with pq.ParquetWriter(path, schema, compression="zstd") as table:
            yield table.write
        return
    lists, codec = [f.name for f in schema if f.type in (MESSAGES, stored(MESSAGES))], CODECS.get(format)
    with pa.CompressedOutputStream(str(path), codec) if codec else pa.OSFile(str(path), "wb") as file:

        def write(rows: pa.RecordBatch) -> None:
            for row in rows.to_pylist():
                for name in lists:
                    row[name] = [_message(m) for m in row[name] or ()]
                if (tools := row.pop("tools", None)) is not None:
                    row["tools"] = orjson.Fragment(tools)
                file.write(_line(row, row.pop("extra", None)) + b"\n")

        yield write


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
    split, parts = Split(name), list[Path]()
    batch = next(rows, None)
    while batch is not None or not parts:  # no rows are one file without rows
        parts.append(folder / "data" / f".{name}-{len(parts):05d}")
        with _writer(parts[-1], schema, config.format) as write:
            filled = 0
            while batch is not None and filled < config.file_mb * 1_000_000:
                write(batch)
                filled += batch.nbytes
                split.rows += batch.num_rows
                batch = next(rows, None)
        split.bytes += filled
    for number, part in enumerate(parts):
        place = part.with_name(f"{name}-{number:05d}-of-{len(parts):05d}.{config.format}")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        split.files.append(f"data/{part.rename(place).name}")
    storage.flush_folder(folder / "data")
    return split


# Rows of all kinds.


def _export_rows(link: Link, folder: Path, config: ExportConfig) -> Exported:
    names, kinds, schema = _columns(link, config)
    made = Exported(folder, link[1], config.format, [], {f.name: str(f.type) for f in schema})

    def converted() -> Iterator[pa.RecordBatch]:
        for batch in batches(link, "kept"):
            for column, counts in (("source", made.sources), ("lang", made.languages)):
                for pair in pc.value_counts(batch[column].drop_null()).to_pylist():
                    counts[pair["values"]] += pair["counts"]
            fields, rest = _fields_of(batch["extra"], kinds) if kinds else ({}, batch["extra"])
            columns = {name: batch[old] for name, old in names.items()} | {"extra": rest}
            columns |= {name: array_of(values, kinds[name]) for name, values in fields.items()}
            yield pa.record_batch([columns[f.name].cast(f.type) for f in schema], schema=schema)

    made.splits.append(_write_split(folder, "train", schema, converted(), config))
    return made


def _columns(link: Link, config: ExportConfig) -> tuple[dict[str, str], dict[str, pa.DataType], pa.Schema]:
    """How the columns of a result become those of the export.

    Column of the export -> column of the result; the types of the fields of `extra` that are columns again; the schema.
    For Parquet, all rows are read once before: fields of `extra` with one type become columns, and what no row has
    (tools, fields of messages) is left out.
    """
    path, manifest = link
    first, ingest = next(batches(link, "kept")).schema, ancestors(path)[-1][1]
    own = {*of_kind(manifest.kind).names, *ingest.facts.get("columns", {})}
    added = [*NOT_OWN, *(name for name in first.names if name not in own)]
    wanted = added if config.add == ("all",) else config.add
    if unknown := [n for n in wanted if n not in added]:
        there = ", ".join(added)
        raise UsageError(f"{path}: its rows have no column {unknown[0]!r} that datakit made; they have {there}")
    left_out = {KEY.name, "extra", *added} - set(wanted)
    names, text = {n: n for n in first.names if n not in left_out}, _field_of_text(ingest)
    if text not in names:
        names = {text if n == "text" else n: n for n in names}
    fields = [first.field(old).with_name(new) for new, old in names.items()]
    if config.format != "parquet":
        return names, {}, pa.schema([*fields, pa.field("extra", pa.string())])
    unpacked, messages, empty = dict[str, pa.DataType | None](), {"role", "content"}, {"tools"} & names.keys()
    leftovers = False
    for batch in batches(link, "kept"):
        leftovers |= _unpack(batch, names, unpacked)
        empty -= {name for name in empty if batch[name].null_count < batch.num_rows}
        for name in {"messages", "prompt", "chosen", "rejected"} & set(batch.schema.names):
            flat = batch[name].flatten()
            children = zip(flat.type, flat.flatten(), strict=True)
            messages |= {f.name for f, values in children if values.null_count < len(values)}
    kinds = {name: kind for name, kind in unpacked.items() if kind is not None}
    used = pa.list_(pa.struct([f for f in MESSAGES.value_type if f.name in messages]))
    fields = [f.with_type(used) if f.type in (MESSAGES, stored(MESSAGES)) else f for f in fields if f.name not in empty]
    fields += [pa.field(name, kind) for name, kind in sorted(kinds.items())]
    return names, kinds, pa.schema(fields + [pa.field("extra", pa.string())] * leftovers)


def _unpack(batch: pa.RecordBatch, names: dict[str, str], unpacked: dict[str, pa.DataType | None]) -> bool:
    """Add the types of the fields of `extra` (None where there are several); whether `extra` is needed besides them."""
    extras = [json.loads(e) for e in batch["extra"].drop_null().to_pylist()]
    types, leftovers = inferred(extras), False
    for name in dict.fromkeys(n for e in extras for n, v in e.items() if v is not None):
        if name in names or name == "extra" or name not in types:
            leftovers = True
            continue
        kind = types[name]
        before = unpacked.get(name, kind)
        unpacked[name] = joined(before, kind)
        leftovers |= kind is None or before != kind  # types that are joined may not hold every value
    return leftovers


def _field_of_text(ingest: Manifest) -> str:
    """The user's name for the text, where all files have one."""
    given = ingest.facts.get("text_fields", {})
    names = {given.get(file, "text") for file in ingest.facts.get("layouts", {})}
    return names.pop() if len(names) == 1 else "text"


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


# Packed rows.


def _export_packed(link: Link, folder: Path, config: ExportConfig) -> Exported:
    """Packed rows as tables of ids, labels (-100 where nothing is learnt) and positions; each set is a split."""
    from datakit.pack.format import Packed, training_schema
    from datakit.pack.inspect import open_all, training_tables

    if config.add:
        raise UsageError(f"{link[0]}: packed rows have no columns that could be added; export an earlier stage")
    sets, _ = open_all(link[0])
    paired = any(rows.header.rows_per_unit > 1 for rows in sets)
    schema = training_schema().append(_SIDE) if paired else training_schema()

    def packed(rows: Packed) -> Iterator[pa.RecordBatch]:
        sides = cycle(("chosen", "rejected"))  # they follow one another, and a missing side is a row without tokens
        for table in training_tables(rows):
            if paired:
                table = table.append_column(_SIDE, pa.array(islice(sides, table.num_rows), pa.string()))
                table = table.filter(pc.greater(pc.list_value_length(table["input_ids"]), 0))
            yield from table.to_batches()

    made = Exported(folder, link[1], config.format, [], {f.name: str(f.type) for f in schema})
    for rows in sets:
        made.splits.append(_write_split(folder, rows.name.replace("-", "_"), schema, packed(rows), config))
    return made


# The card.


def _card(path: Path, made: Exported, config: ExportConfig) -> bytes:
    """README.md: what the rows are, what each stage kept and dropped, with which settings, and how to load them."""
    chain = [manifest for _, manifest in reversed(ancestors(path)) if stage_class(manifest.stage).makes_rows]
    total = max(made.languages.total(), 1)
    card = render(
        "card.md",
        made=made,
        title=config.title or made.manifest.dataset,
        license=config.license,
        languages=[c for c, n in made.languages.most_common() if c != "und" and n >= LEAST_LANGUAGE * total],
        rows=sum(split.rows for split in made.splits),
        download=sum((made.folder / name).stat().st_size for name in made.files),
        chain=chain,
        sources=sorted(made.sources.items(), key=lambda item: (-item[1], item[0])),
        most=MOST_SOURCES,
        recipe=_recipe(chain),
    )
    return card.encode()


def _recipe(chain: list[Manifest]) -> str:
    """The settings of each stage that are not its defaults, as the sections of a recipe."""
    recipe: dict[str, Any] = {"dataset": {"stages": [m.stage for m in chain]}}
    recipe |= {m.stage: changed for m in chain if (changed := _changed(m.config, stage_class(m.stage).Config))}
    return tomlkit.dumps(recipe).strip()


def _changed(values: dict[str, Any], config: type) -> dict[str, Any]:
    """The values that are not the defaults, sections last."""
    defaults, sections = resolved(config()), {o.name: o.nested for o in options(config) if o.nested}
    found = {k: "" if v is None else v for k, v in values.items() if k not in sections and v != defaults.get(k)}
    for name, section in sections.items():
        if changed := _changed(values.get(name, {}), section):
            found[name] = changed
    return found
