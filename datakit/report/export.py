"""`datakit export`: the rows of a result as files for others, with their own columns again, a card and checksums.

A folder is complete or it is not there: everything is written into a hidden folder beside it, which is renamed at the
end. It holds `data/` (JSON lines, compressed or not, or Parquet), `README.md` (a dataset card with the YAML head that
the Hugging Face Hub reads) and `SHA256SUMS`. `datasets.load_dataset(folder)` reads it, since the card names the files
of each split.

Columns are those of the user: the text under the field that it came from, and the fields that ingest made columns of.
The others are fields again in JSON lines, but for names that are taken, and JSON in the column `extra` in Parquet. What
stages added is left out unless it is asked for.
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
from itertools import cycle, groupby, islice
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
FILE_BYTES = 500_000_000
"""Values in memory after which a file ends."""
LEAST_LANGUAGE = 0.01
"""The share of rows from which on a language is named in a card's head."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportConfig:
    """What is exported, and how."""

    format: Format = option("parquet", "format of the files (`datasets` reads jsonl.zst with the package zstandard)")
    add: tuple[str, ...] = option((), "columns that datakit made, as lang, or all")
    license: str = option("", "the license, as the Hub names it: apache-2.0, cc-by-4.0, ...")

    def __post_init__(self) -> None:
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
        UsageError: the folder holds something or is on an object store, or the rows do not have a column asked for.
        InputError: the result has no rows (a tokenizer, a classifier).
        IntegrityError: a shard is missing or damaged.
    """
    config, link = config or ExportConfig(), (path, load(path))
    if url := storage.url_of(output):
        raise UsageError(
            f"{url}: an export is written to this machine's disk; copy the folder to the store from there (aws s3 cp "
            "--recursive, gcloud storage cp -r, azcopy copy)"
        )
    with _whole_folder(output) as folder:
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
        inside = {k: v for k in taken if (v := exact.pop(k)) != row[k]}
        extra = json.dumps(exact | ({"extra": inside} if inside else {}), ensure_ascii=False)
    head = orjson.dumps({k: v for k, v in row.items() if k not in keys or k in taken}, default=_plain)
    return head[:-1] + (b"," if len(head) > 2 and extra != "{}" else b"") + extra.encode()[1:]


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
            while batch is not None and filled < FILE_BYTES:
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
    names, columns = _columns(link, config)
    answers = link[1].kind == "preference" and all(map(_one_sided, batches(link, "kept", ["chosen", "rejected"])))
    schema = _judged(pa.RecordBatch.from_pylist([], schema=columns)).schema if answers else columns
    made = Exported(folder, link[1], config.format, [], {f.name: str(f.type) for f in schema})

    def converted() -> Iterator[pa.RecordBatch]:
        for batch in batches(link, "kept"):
            for column, counts in (("source", made.sources), ("lang", made.languages)):
                for pair in pc.value_counts(batch[column].drop_null()).to_pylist():
                    counts[pair["values"]] += pair["counts"]
            rows = pa.record_batch([batch[names[f.name]].cast(f.type) for f in columns], schema=columns)
            yield _judged(rows) if answers else rows

    made.splits.append(_write_split(folder, "train", schema, converted(), config))
    return made


def _one_sided(pairs: pa.RecordBatch) -> bool:
    """Whether every pair is a judged answer without its other side."""
    chosen, rejected = (pc.greater(pc.list_value_length(pairs[n]), 0) for n in ("chosen", "rejected"))
    return bool(pc.all(pc.xor(chosen, rejected)).as_py())


def _judged(pairs: pa.RecordBatch) -> pa.RecordBatch:
    """Pairs of one side as trainers of KTO read them: the answer is `completion`, and `label` says if it is good."""
    at, good = pairs.schema.get_field_index("chosen"), pc.greater(pc.list_value_length(pairs["chosen"]), 0)
    answer = pc.if_else(good, pairs["chosen"], pairs["rejected"]).cast(pairs.schema.field(at).type)
    return pairs.set_column(at, "completion", answer).set_column(at + 1, "label", good)


def _columns(link: Link, config: ExportConfig) -> tuple[dict[str, str], pa.Schema]:
    """How the columns of a result become those of the export: column of the export -> column of the result; the schema.

    For Parquet, all rows are read once before: what no row has (tools, `extra`, fields of messages) is left out.
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
    names["extra"] = "extra"
    if text not in names:
        names = {text if n == "text" else n: n for n in names}
    fields = [first.field(old).with_name(new) for new, old in names.items()]
    if config.format != "parquet":
        return names, pa.schema(fields)
    messages, empty = {"role", "content"}, {"tools", "extra"} & names.keys()
    lists = {"messages", "prompt", "chosen", "rejected"} & {*first.names}
    for batch in batches(link, "kept", [*empty, *lists]):
        empty -= {name for name in empty if batch[name].null_count < batch.num_rows}
        for name in lists:
            flat = batch[name].flatten()
            children = zip(flat.type, flat.flatten(), strict=True)
            messages |= {f.name for f, values in children if values.null_count < len(values)}
    used = pa.list_(pa.struct([f for f in MESSAGES.value_type if f.name in messages]))
    fields = [f.with_type(used) if f.type in (MESSAGES, stored(MESSAGES)) else f for f in fields if f.name not in empty]
    return names, pa.schema(fields)


def _field_of_text(ingest: Manifest) -> str:
    """The user's name for the text, where all files have one."""
    given = ingest.facts.get("text_fields", {})
    names = {given.get(file, "text") for file in ingest.facts.get("layouts", {})}
    return names.pop() if len(names) == 1 else "text"


# Packed rows.


def _export_packed(link: Link, folder: Path, config: ExportConfig) -> Exported:
    """Packed rows as tables of ids, labels (-100 where nothing is learnt) and positions; each set is a split."""
    from datakit.pack.format import Packed, set_of, training_schema
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
    for name, parts in groupby(sets, lambda rows: set_of(rows.name)):
        batches = (batch for rows in parts for batch in packed(rows))
        made.splits.append(_write_split(folder, name.replace("-", "_"), schema, batches, config))
    return made


# The card.


def _card(path: Path, made: Exported, config: ExportConfig) -> bytes:
    """README.md: what the rows are, what each stage kept and dropped, with which settings, and how to load them."""
    chain = [manifest for _, manifest in reversed(ancestors(path)) if stage_class(manifest.stage).makes_rows]
    total = max(made.languages.total(), 1)
    card = render(
        "card.md",
        made=made,
        title=made.manifest.dataset,
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
