"""What is read and how: the plan (format and layout of each file), its work units, and the rows of a unit."""

import codecs
import gc
import hashlib
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from itertools import pairwise
from pathlib import PurePath
from statistics import median_low
from typing import Final

import pyarrow as pa

from datakit.data import KINDS
from datakit.errors import InputError, LayoutError, UsageError
from datakit.read import columnar, csv, json, text, web
from datakit.read.columns import inferred, types_of, unified
from datakit.read.files import (
    BOM,
    DANGLING,
    BrokenStreamError,
    Cutter,
    FileLimits,
    Remaining,
    Segment,
    Skipped,
    SourceFile,
    blocks,
    compression_of,
    cut_lines,
    find,
    open_binary,
    suffixes_of,
)
from datakit.read.layouts.conversations import TURN_FIELDS, turn_field_of, unread_context
from datakit.read.layouts.mapping import (
    HOLE,
    fields_with_samples,
    found_at,
    is_missing,
    kind_of,
    nearest,
    reading_of,
    roles_flag,
    unknown_speakers,
    unnested,
)
from datakit.read.layouts.recognise import LAYOUTS, MAPPED, FileLayout, choose, nested_fields
from datakit.read.layouts.record import Fields, InexactNumbersError, MisfitError
from datakit.read.layouts.turns import Reading, judged_field_of, unzipped
from datakit.read.row_builder import Position, RowBuilder
from datakit.read.stage import UNPACKED_RATIO, IngestConfig
from datakit.read.text import FIELD
from datakit.stage import RawBatch
from datakit.storage import REQUESTS, is_url

COUNT_BYTES: Final = 1 << 20
"""Bytes that are read at once where records are only counted."""
HEAD_BYTES: Final = 4 << 20
"""How much of a file is read to recognise it; more only if its first record is longer."""
GROUP_BYTES: Final = 1 << 20
FEWEST_GROUPS: Final = 18
MOST_GROUPS: Final = 64
"""Many small files make groups of 1 MiB, but at least 18 groups, and about 64 to 128 of them at most."""
BESIDE: Final = 8
"""Names of fields in the plan's line about a file."""
_CLI_NAMES = {kind: name for name, kind in KINDS.items()}
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_END = object()


# Plan: the format of each file from its first bytes, its layout from its first records.


@dataclass(frozen=True, slots=True)
class Plan:
    """The sorted files, the layout of each, and the kind of row that all of them make."""

    files: tuple[SourceFile, ...]
    layouts: tuple[FileLayout, ...]
    kind: str
    segment_source: str
    columns: pa.Schema
    """The fields of documents that are columns of their own, by name."""
    limits: tuple[int, ...]
    """How many records of each file are read, the first ones; empty: all."""
    config: IngestConfig
    skipped: tuple[Skipped, ...]
    """Files and folders in the given folders that are not read, and why."""
    summary: tuple[str, ...]
    """The plan as lines for people; many files of one sort are one line."""
    listing: tuple[str, ...] = ()
    """A line for each file, where the summary has none."""


def plan(inputs: Sequence[str], config: IngestConfig) -> Plan:
    """Find the files and recognise their layouts.

    Raises:
        InputError: no input, a missing or unreadable file, a file of an unknown format.
        LayoutError: records that fit no layout, or files of different kinds.
    """
    found, skipped = find(inputs)
    found, unread, splits = _of_split(found, inputs, config.split)
    limits = FileLimits(config.max_record_mb << 20, config.max_expansion)
    with ThreadPoolExecutor(REQUESTS if any(is_url(path) for path, _, _ in found) else 1) as pool:
        inspected = list(pool.map(lambda file: _inspect(file[0], file[1], file[2], limits), found))
    if config.html_field or any(file.format in web.FORMATS for file, _ in inspected):
        web.check(config.extractor)
    made = _plan(inspected, skipped + unread, config)
    made = _limited(made) if config.limit else made
    return replace(made, summary=(*made.summary, splits)) if splits else made


def plan_table(table: pa.Table, config: IngestConfig, name: str = "table") -> Plan:
    """The plan for a table in memory (`columnar.table_of`), read as one file. Its rows get `name` as their source.

    Raises:
        LayoutError: the columns fit no layout.
    """
    file = SourceFile(name, name, "table", "", table.nbytes)
    types = types_of(table.schema)
    made = _plan([(file, columnar.table_head(table, json.HEAD_RECORDS) or _stand_in(types))], [], config, types)
    return _limited(made, table) if config.limit else made


def _plan(
    inspected: list[tuple[SourceFile, list[Fields]]],
    skipped: list[Skipped],
    config: IngestConfig,
    types: Mapping[str, pa.DataType | None] | None = None,
) -> Plan:
    files = [file for file, _ in inspected]
    layouts = [_with_fields_beside(_layout(file, head, config), head, config) for file, head in inspected]
    kind = _kind(files, layouts, config)
    layouts = [c if c.kind in (kind, "") else FileLayout("", "", other_kind=c.kind) for c in layouts]
    columns = pa.schema([])
    if not kind.startswith("tokens") and config.columns == "typed":
        found = zip(inspected, layouts, strict=True)
        columns = unified(_types(file, head, layout, types) for (file, head), layout in found if layout.layout)
    made = Plan(
        tuple(files), tuple(layouts), kind, _segment_source(kind, config), columns, (), config, tuple(skipped), ()
    )
    files_alone = [_about(*one) for one in zip(files, layouts, strict=True)]
    many = len(files) > LISTED_FILES
    return replace(made, summary=tuple(_summary(made, files_alone)), listing=tuple(files_alone) if many else ())


def _limited(plan: Plan, table: pa.Table | None = None) -> Plan:
    """The plan for the first records of all files, as many as the configuration says."""
    left, limits = plan.config.limit, list[int]()
    for index, file in enumerate(plan.files):
        limits.append(left)
        cut = _cutter(file, plan.config) if table is None else partial(columnar.cut_table, table=table)
        seen = 0
        for segment in cut(file, index, lambda: COUNT_BYTES) if left else ():
            seen = segment.first_record + _records_in(segment, file, plan)
            if seen >= left:
                break
        left = max(left - seen, 0)
    return replace(plan, limits=tuple(limits), summary=(*plan.summary, f"only the first {plan.config.limit} records"))


def _records_in(segment: Segment, file: SourceFile, plan: Plan) -> int:
    if file.format in web.FORMATS:
        return 1 if segment.spans is None else len(segment.spans)
    builder = RowBuilder("document")
    builder.begin_file(0, "", FileLayout("", ""))
    count = 0
    for _ in _records(segment, file, plan, builder):
        if builder.full:
            count += int(builder.take().quarantined.num_rows)
    return count + int(builder.take().quarantined.num_rows)


def _types(
    file: SourceFile, head: list[Fields], layout: FileLayout, types: Mapping[str, pa.DataType | None] | None
) -> dict[str, pa.DataType | None]:
    """The types of the fields of a file that its layout does not read."""
    if types is None:
        types = columnar.types(file) if file.format in ("parquet", "arrow", "arrow_stream") else inferred(head)
    if layout.html:
        types = {web.TITLE: pa.string(), **types}
    return {name: kind for name, kind in types.items() if name in layout.beside}


def _inspect(path: str, name: str, size: int, limits: FileLimits) -> tuple[SourceFile, list[Fields]]:
    """A file with its format and compression, and its first records (plain text: none)."""
    if size == DANGLING:
        return SourceFile(path, name, "dangling", "", 0), []
    with open_binary(path) as opened:
        magic = opened.read(8)
    file = SourceFile(path, name, suffixes_of(name)[0], compression_of(magic), size, limits=limits)
    columns = _columnar_format(magic) or (file.format if file.format in ("parquet", "arrow") and magic else "")
    if not columns:
        return _inspect_stream(file, _head(file))
    if file.compression:
        raise InputError(f"{path}: a compressed {columns} file cannot be read in parts; decompress it first")
    file = replace(file, format=columns)
    return file, columnar.head(file, json.HEAD_RECORDS) or _stand_in(columnar.types(file))


def _stand_in(types: Mapping[str, pa.DataType | None]) -> list[Fields]:
    """A record that stands for those of a file without rows: its columns of strings tell its layout."""
    fields: Fields = {name: "x" for name, kind in types.items() if kind == pa.string()}
    return [fields] if fields else []


def _columnar_format(magic: bytes) -> str:
    if magic.startswith(b"PAR1"):
        return "parquet"
    if magic.startswith(b"ARROW1"):
        return "arrow"
    return "arrow_stream" if magic.startswith(b"\xff\xff\xff\xff") else ""


def _inspect_stream(file: SourceFile, head: bytes) -> tuple[SourceFile, list[Fields]]:
    file = replace(file, format="warc") if web.begins_archive(head) else file
    if file.format in web.FORMATS:
        web.check_head(file, head)
        return file, [dict.fromkeys((FIELD, *web.COLUMNS), "x")]
    if head.startswith(_UTF16):
        raise InputError(
            f"{file.path}: it is UTF-16, and only UTF-8 is read; convert it first, for example with "
            "iconv -f UTF-16 -t UTF-8 FILE > NEW"
        )
    head = head.removeprefix(BOM)
    if file.format != "text" and not head.strip() and len(head) < json.FIRST_BYTES:  # as good as blank lines
        return replace(file, format="jsonl"), []
    if file.format == "csv":
        header, delimiter = csv.header_of(head, file.name)
        file = replace(file, header=header, delimiter=delimiter)
        stand_in = [dict.fromkeys(header, "x")] if header else []
        file = replace(file, nested=nested_fields(csv.first_records(file, head, json.HEAD_RECORDS)))
        return file, csv.first_records(file, head, json.HEAD_RECORDS) or stand_in
    if file.format == "text":
        return file, []
    found = json.format_of(head, file.format) or ("jsonl" if file.format == "jsonl" and not _looks_binary(head) else "")
    if not found:
        if file.format or _looks_binary(head):
            known = "JSON" if file.format else "any format that is read"
            raise InputError(f"{file.path}: it is not {known}: it begins with {head[:24]!r}")
        return replace(file, format="text"), []
    return replace(file, format=found), json.first_records(head, found)


def _head(file: SourceFile) -> bytes:
    """The first bytes, uncompressed: enough records, one a line; or some megabytes with at least one whole record."""
    head, wanted = bytearray(), json.FIRST_BYTES
    with suppress(BrokenStreamError):
        for block in blocks(file, json.FIRST_BYTES):
            head += block
            if len(head) >= wanted:
                if wanted < HEAD_BYTES and json.begins_with_records(bytes(head[: json.FIRST_BYTES])):
                    break
                if wanted >= HEAD_BYTES and (_holds_a_record(head) or len(head) > file.limits.record_bytes):
                    break
                wanted *= 2
    return bytes(head)


def _holds_a_record(head: bytearray) -> bool:
    if _ARRAY.match(head):
        return bool(json.first_records(bytes(head), "json"))
    return b"\n" in head


def _looks_binary(head: bytes) -> bool:
    begin = head[: 1 << 16]
    try:
        begin.decode()
    except UnicodeDecodeError as e:
        return b"\0" in begin or e.start < len(begin) - 4
    return b"\0" in begin


def _layout(file: SourceFile, head: list[Fields], config: IngestConfig) -> FileLayout:
    reading = reading_of(config.map, config.roles)
    if config.map or config.id_field:
        _check_fields(file, head, config, reading)
    if kind := kind_of(config.map):
        if (
            kind == "conversation"
            and config.kind == "preference"
            and ("label" in config.map or any(map(judged_field_of, head)))
        ):
            kind = config.kind  # each answer is one side of a pair
        _check_speakers(file, head, reading, config.map.get("messages", ""))
        return FileLayout(MAPPED.name, kind, records=len(head))
    if file.format in ("text", *web.FORMATS):
        return FileLayout("document", "document", FIELD)
    if config.html_field and any(type(fields.get(config.html_field)) in (str, bytes) for fields in head):
        return FileLayout("document", "document", config.html_field, len(head), html=True)
    if not head and config.layout == "auto":
        return FileLayout("", "")
    if reading.turn_fields:
        head = [_with_our_turns(fields, reading) for fields in head]
    found = choose(head, KINDS.get(config.kind, "auto"), config.layout, config.text_field)
    if found is None:
        wanted = f" with text in {config.text_field!r}" if config.text_field else ""
        raise LayoutError(f"{file.path}: the fields of its records fit no known layout{wanted}. {_advice(file, head)}")
    if found.layout == "loose_messages":
        raise LayoutError(
            f"{file.path}: each record is one message of a tree (message_id, parent_id), and conversations are made of "
            "whole trees: read the file of trees (OpenAssistant: ..._ready.trees.jsonl.gz). "
            "To read every message as a document: --map text=text"
        )
    if found.layout == "loose_turns":
        raise LayoutError(_loose(file, head))
    if found.layout in ("messages", "sharegpt", "minimind", "turns"):
        field = next((n for n in TURN_FIELDS if any(type(f.get(n)) is list for f in head)), turn_field_of(head[0]))
        _check_speakers(file, head, replace(reading, turn_fields=()), field)
    return found


def _loose(file: SourceFile, head: list[Fields]) -> str:
    """Why records that are single turns are refused, and how to group them."""
    ids = [n for n in head[0] if "id" in n.lower() and len({str(f.get(n)) for f in head}) < len(head)]
    made = PurePath(file.path).with_suffix(".grouped.jsonl").name
    return (
        f"{file.path}: each record is one turn of a conversation, and a conversation must be one record. Group them by "
        f"the field that names their conversation; JSON lines:\n  jq -s -c 'group_by(.{ids[0] if ids else 'FIELD'})[] "
        f"| {{messages: .}}' {file.path} > {made}\nTo read every turn as a document: --kind text"
    )


def _check_fields(file: SourceFile, head: list[Fields], config: IngestConfig, reading: Reading) -> None:
    """Refuse flags that name a field which none of a file's first records, or of their turns, has."""
    named = {f"--map {ours}={theirs}": theirs for ours, theirs in reading.mapping}
    if theirs := config.map.get("id"):
        named[f"--map id={theirs}"] = theirs
    if config.id_field:
        named[f"--id-field {config.id_field}"] = config.id_field
    _check_names(file, named, head)
    lists = [unzipped(found_at(f, config.map.get("messages", ""))) for f in head]
    turns = [t for v in lists if type(v) is list for t in v if type(t) is dict]
    in_turns = [(ours, theirs) for ours, theirs in reading.turn_fields if ours in ("role", "content")]
    _check_names(file, {f"--map {ours}={theirs}": theirs for ours, theirs in in_turns}, turns)


def _check_names(file: SourceFile, named: Mapping[str, str], records: list[Fields]) -> None:
    """Refuse a flag that names a field which none of a file's first records, or of their turns, has.

    Raises:
        LayoutError: there is one; with the nearest field.
    """
    inside = (n for fields in unnested(unnested(records)) for n in fields if not n.endswith(".0"))
    known = list(dict.fromkeys([*(n for fields in records for n in fields), *inside]))
    for flag, source in named.items():
        paths = HOLE.findall(source) if "{" in source else [source]
        if known and all(is_missing(path, records) for path in paths):
            near = get_close_matches(paths[0], known, 1, 0.5) if paths else []
            raise LayoutError(
                f"{file.path}: {flag}: none of its first records has such a field; "
                f"{f'perhaps {near[0]} is meant; ' if near else ''}the fields are {', '.join(known[:24])}"
            )


def _with_fields_beside(layout: FileLayout, head: list[Fields], config: IngestConfig) -> FileLayout:
    if layout.kind.startswith("tokens") or not layout.layout:
        return layout
    builder = RowBuilder(layout.kind, "", config.map.get("id") or config.id_field, reading_of(config.map, config.roles))
    builder.begin_file(0, "", layout)
    beside = dict[str, None]()
    for fields in head:
        with suppress(MisfitError, InexactNumbersError):
            beside |= dict.fromkeys(builder.unused(fields))
    if layout.html:
        beside[web.TITLE] = None
    return replace(layout, beside=tuple(beside))


def _with_our_turns(fields: Fields, reading: Reading) -> Fields:
    """A record whose turns have the names that the user's mapping gives their fields."""
    names = {given: name for name, given in reading.turn_fields}
    return {
        k: [{names.get(n, n): x for n, x in t.items()} if type(t) is dict else t for t in v] if type(v) is list else v
        for k, v in fields.items()
    }


def _check_speakers(file: SourceFile, head: list[Fields], reading: Reading, field: str) -> None:
    """Refuse a file most of whose turns have a speaker without a role, before any work.

    Raises:
        LayoutError: there are such; with the flag that names their roles.
    """
    strange, taken = unknown_speakers(head, field, reading)
    if strange:
        raise LayoutError(
            f"{file.path}: the turns in {field!r} have speakers of unknown roles: {', '.join(strange[:8])}. Name their "
            f"roles, for example: datakit ingest {file.path} {roles_flag(strange[:8], taken=taken)}"
        )


def _advice(file: SourceFile, head: list[Fields]) -> str:
    """What was found in records of no known layout, and how to go on."""
    said, command = [f"Its fields, each with a value:\n{fields_with_samples(head)}"], nearest(head, file.path)
    lists = [n for n, v in head[0].items() if type(v) is list and len(v) > 1 and type(v[0]) is dict]
    if len(head) == 1 and len(lists) == 1:
        made = PurePath(file.path).with_suffix(".rows.jsonl").name
        said.append(
            f"It is one record. If the rows stand in its list {lists[0]!r}, write one row a line:\n"
            f"  jq -c '.{lists[0]}[]' {file.path} > {made}"
        )
    elif command:
        if context := unread_context(head[0]):
            said.append(
                f"{context} is no text, so the question would be learned without it; a template may take its parts: "
                f"--map 'prompt={{{context}.PART}}\\n\\n{{question}}'"
            )
        said.append(f"Map its fields to ours; the nearest mapping is perhaps\n  {command}")
    known = ", ".join(x.name for x in LAYOUTS)
    return "\n".join([*said, f"Known layouts are {known}. See docs/inputs.md for their fields, and for mapping"])


def _kind(files: list[SourceFile], layouts: list[FileLayout], config: IngestConfig) -> str:
    """The row kind of the dataset: the one asked for, or the one that all files make.

    Raises:
        LayoutError: some files make rows of another kind.
        InputError: no file could be recognised and no kind was asked for.
    """
    kinds = sorted({c.kind for c in layouts if c.kind})
    if config.kind == "auto":
        if not kinds:
            empty = all(file.bytes == 0 for file in files)
            why = "it is empty" if empty else _unreadable(files[0])
            more = f" (and so {len(files) - 1:,} more files)" if len(files) > 1 else ""
            raise InputError(
                f"{files[0].path}: {why}{more}, so the kind of its rows is unknown. --kind text, sft or preference "
                "(in Python kind=) reads it all the same, and quarantines what is no row"
            )
        if len(kinds) > 1:
            raise LayoutError(
                f"the inputs hold rows of different kinds: {_by_kind(files, layouts, kinds)}. "
                "One dataset has one kind: leave out the others, or name the kind with --kind text, sft or preference"
            )
        return kinds[0]
    wanted = KINDS[config.kind]
    if len(kinds) == 1 and kinds[0].startswith("tokens"):
        return kinds[0]
    others = [k for k in kinds if k != wanted]
    if others and config.other_kinds == "refuse":
        raise LayoutError(
            f"--kind {config.kind} was asked for, and some inputs hold something else: "
            f"{_by_kind(files, layouts, others)}. Leave these files out, "
            "or set other_kinds to quarantine, which quarantines their rows"
            + (
                ". Pairs need a chosen and a rejected answer to one prompt, or one answer with a label true or false"
                if wanted == "preference"
                else ""
            )
        )
    return wanted


def _unreadable(file: SourceFile) -> str:
    """Why no record at the start of a file can be read, as far as its bytes tell."""
    if file.is_local and file.format in ("jsonl", "json", "json_objects", "csv"):
        head = _head(file)
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError as e:
            return (
                f"no record there can be read (byte {e.start} is 0x{head[e.start]:02x}, not UTF-8 there; Latin-1 "
                "is converted by iconv -f LATIN1 -t UTF-8 FILE > NEW)"
            )
        if found := json.first_of_others(head, file.format):
            made, each = PurePath(file.path).with_suffix(".objects.jsonl"), "." if file.format == "jsonl" else ".[]"
            name = "text" if found == "a string" else "messages"
            return (
                f"its records are no objects: the first is {found}. Give each a name, for example\n"
                f"  jq -c '{each} | {{{name}: .}}' {shlex.quote(file.path)} > {shlex.quote(made.name)}\nAs it is"
            )
    return "no record there can be read"


def _by_kind(files: list[SourceFile], layouts: list[FileLayout], kinds: list[str]) -> str:
    said = []
    for kind in kinds:
        names = [f.name for f, c in zip(files, layouts, strict=True) if c.kind == kind]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        said.append(f"{kind} rows in {', '.join(names[:3])}{more}")
    return "; ".join(said)


def _segment_source(kind: str, config: IngestConfig) -> str:
    """What rows of token ids were made from, as far as it is known."""
    if kind == "tokens_preference":
        return "preference"
    return KINDS.get(config.kind, "document").replace("document", "text")


LISTED_FILES: Final = 12
"""More files than that are summed up by suffix and layout."""


def _summary(plan: Plan, files: Sequence[str]) -> list[str]:
    cli = _CLI_NAMES.get(plan.kind, plan.kind)
    said = [f"{len(plan.files):,} file{'s'[: len(plan.files) != 1]}, {cli} rows"]
    said += files if len(files) <= LISTED_FILES else _sorts(plan)
    for why in sorted({s.why for s in plan.skipped}):
        names = [PurePath(s.path).name for s in plan.skipped if s.why == why]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        said.append(f"not read ({why}): {', '.join(names[:5])}{more}")
    return said


def _about(file: SourceFile, choice: FileLayout) -> str:
    """A line about one file."""
    beside = ", ".join(choice.beside[:BESIDE]) + (", ..." if len(choice.beside) > BESIDE else "")
    return f"{file.name}: {_read_as(file, choice)}" + (f"; kept beside: {beside}" if beside else "")


def _read_as(file: SourceFile, choice: FileLayout) -> str:
    field = f" ({choice.text_field})" if choice.layout == "document" and choice.text_field != FIELD else ""
    other = f"{choice.other_kind} rows, all quarantined" if choice.other_kind else "no readable record at its start"
    packed = f", {file.compression}" if file.compression else ""
    return f"{choice.layout or other}{field}, {file.format.replace('_', ' ')}{packed}"


def _sorts(plan: Plan) -> list[str]:
    """Many files by suffix and layout, the most frequent sort first: `9,998 x .md as document, text`."""
    found: dict[str, list[str]] = {}
    for file, choice in zip(plan.files, plan.layouts, strict=True):
        suffix = "".join(PurePath(file.name).suffixes[-2 if file.compression else -1 :]) or "(no suffix)"
        dangling = file.format == "dangling"
        sort = "quarantined, a link to nothing" if dangling else f"x {suffix} as {_read_as(file, choice)}"
        found.setdefault(sort, []).append(file.name)
    said = []
    for sort, names in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        few = f": {', '.join(names)}" if len(names) < 4 else ""
        said.append(f"{len(names):,} {sort}{few}")
    return said


# Splits: what the names of files say.

_NUMBERED = re.compile(r"^(?P<split>\w[\w.]*?)-\d{5}-of-\d{5}")
"""How Hub data sets name the files of a split: `train-00000-of-00014.parquet`."""
_SPLITS: Final = {
    "train": "train", "training": "train", "test": "test", "testing": "test", "eval": "test", "evaluation": "test",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
}  # fmt: skip
"""A word in a file's name -> its split, as the `datasets` library has it."""


def split_of(name: str) -> str:
    """The split that a file's name, or the folder that it is in, says it belongs to; "" if they say nothing."""
    path = PurePath(name)
    if numbered := _NUMBERED.match(path.name):
        return numbered["split"]
    words = [w for w in re.split(r"[^a-z0-9]+", path.name.lower()) if w in _SPLITS]
    folders = [part.lower() for part in reversed(path.parts[:-1]) if part.lower() in _SPLITS]
    return _SPLITS[words[0]] if words else _SPLITS[folders[0]] if folders else ""


def _below(path: str, within: Sequence[str]) -> str:
    """The part of a path below the folder or glob that names it."""
    for whole in within:
        base = re.split(r"[*?\[]", whole)[0]
        if path.startswith(base):
            return path[(len(base) if base == whole else base.rfind("/") + 1) :].lstrip("/")
    return PurePath(path).name


def _of_split(
    found: list[tuple[str, str, int]], inputs: Sequence[str], wanted: str
) -> tuple[list[tuple[str, str, int]], list[Skipped], str]:
    """(the files of the wanted splits, those of other splits, a line for people).

    Raises:
        UsageError: a folder or a glob has several splits, or there is no such split.
    """
    given_paths = [path if "://" in path else os.path.abspath(os.path.expanduser(path)) for path in map(str, inputs)]
    files = {path for path, _, _ in found}.intersection(given_paths)
    within = [path for path in given_paths if path not in files]  # folders and globs
    splits = {path: split_of(PurePath(path).name if path in files else _below(path, within)) for path, _, _ in found}
    listed = ", ".join(f"{s} ({n} file{'s'[: n != 1]})" for s, n in sorted(Counter(splits.values()).items()) if s)
    named = {s for s in splits.values() if s}
    given = ", ".join(map(str, inputs[:3])) + (", ..." if len(inputs) > 3 else "")
    if not wanted:
        files = {given if "://" in given else os.path.abspath(os.path.expanduser(given)) for given in map(str, inputs)}
        several = {splits[path]: path for path in splits if splits[path] and path not in files}
        # folders of texts may have pages with names like these
        sure = any(s.startswith("train") or _NUMBERED.match(PurePath(p).name) for s, p in several.items())
        if len(several) > 1 and (sure or not any(suffixes_of(p)[0] == "text" for p in several.values())):
            raise UsageError(
                f"{given}: several splits are there: {listed}. Name what is read, as --split train "
                '(several with commas), or --split all; in a recipe, split = "train" under [ingest]'
            )
        return found, [], f"files of several splits were named, and all are read: {listed}" if len(named) > 1 else ""
    asked = {s.strip() for s in wanted.split(",") if s.strip()}
    if "all" in asked:
        return found, [], ""
    if missing := asked - named:
        raise UsageError(
            f"{given}: there is no split {', '.join(sorted(missing))}; there is "
            f"{listed or 'no file whose name or folder says a split'}"
        )
    taken = [file for file in found if splits[file[0]] in asked]
    left = [Skipped(path, f"split {splits[path] or 'unknown'}") for path, _, _ in found if splits[path] not in asked]
    return taken, left, ""


# Units: cut by the data alone.


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of work: parts of one or more files, about as many uncompressed bytes as a shard. Picklable."""

    segments: tuple[Segment, ...]

    @property
    def bytes(self) -> int:
        """Uncompressed bytes."""
        return sum(s.bytes for s in self.segments)


def groups(plan: Plan) -> list[range]:
    """The places of the files that are read into the same shards: one file, or neighbours where many are small.

    A file of `shard_mb` or more stands alone, and so does every file where there are few. Of many small files about 2,
    4, 8, ... neighbours form a group (see `_neighbours`). A group begins where the hash of a file name says so. Hence a
    file that is added, removed or changed concerns its own group only, unless the number of small files or their median
    size passes a power of two.
    """
    size = plan.config.shard_mb << 20
    weights = [f.bytes * (UNPACKED_RATIO if f.compression else 1) for f in plan.files]
    mask = _neighbours([weight for weight in weights if weight < size]) - 1
    begins, filled = list[int](), 0
    for place, (file, weight) in enumerate(zip(plan.files, weights, strict=True)):
        alone = weight >= size or (place > 0 and weights[place - 1] >= size)
        if place == 0 or alone or filled >= size or not _name_hash(file.name) & mask:
            begins.append(place)
            filled = 0
        filled += weight
    return [range(a, b) for a, b in pairwise([*begins, len(plan.files)])]


def _neighbours(small: list[int]) -> int:
    """How many small files share shards on average, a power of two, from their sizes in bytes.

    A unit takes about 50 ms over all stages, whatever it holds. So a group is to have `GROUP_BYTES`, as long as there
    are `FEWEST_GROUPS` of them, and 10,000 documents make about 100 groups. The median counts, since one larger file
    more must not move the bounds of all groups.
    """
    by_bytes = min(GROUP_BYTES // (max(1, median_low(small)) if small else 1), len(small) // FEWEST_GROUPS)
    wanted = max(1, by_bytes, len(small) // MOST_GROUPS)
    return 1 << (wanted.bit_length() - 1)


def _name_hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def units(plan: Plan, table: pa.Table | None = None) -> Iterator[Unit]:
    """The work units of all groups of files in order (see `units_of`)."""
    for group in groups(plan):
        yield from units_of(plan, group, table)


def units_of(plan: Plan, group: range, table: pa.Table | None = None) -> Iterator[Unit]:
    """The work units of a group of files, in order; they depend on these files and the configuration only.

    A unit ends with the first record at which it has `shard_mb` or more. Uncompressed files are read once to find the
    ends and numbers of records; compressed ones are decompressed, and the units hold their bytes. `table` is the table
    of `plan_table`; the units hold its rows.
    """
    size = plan.config.shard_mb << 20
    segments, filled = list[Segment](), 0

    def remaining() -> int:
        return size - filled

    for index in group:
        file, last = plan.files[index], plan.limits[index] if plan.limits else None
        cut = _cutter(file, plan.config) if table is None else partial(columnar.cut_table, table=table)
        for segment in cut(file, index, remaining) if last != 0 else ():
            if last is not None and segment.first_record >= last:
                break
            segments.append(segment)
            filled += segment.bytes
            if filled >= size:
                yield Unit(tuple(segments))
                segments, filled = [], 0
    if segments:
        yield Unit(tuple(segments))


def _cut_dangling(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    found = f"a link to {os.readlink(file.path)}, which does not exist"
    yield Segment(index, 0, 0, 0, 0, b"", failure=("dangling_link", found))


def _cutter(file: SourceFile, config: IngestConfig) -> Cutter:
    """The function that cuts files of this format."""
    cutters: dict[str, Cutter] = {
        "jsonl": cut_lines,
        "json": json.cut_array,
        "json_objects": json.cut_objects,
        "csv": csv.cut,
        "text": partial(text.cut, split=config.text_split),
        "html": partial(text.cut, split="file"),
        "warc": web.cut,
        "dangling": _cut_dangling,
    }
    return cutters.get(file.format, columnar.cut)


# Read: the rows of a unit.


def read_unit(unit: Unit, plan: Plan) -> Iterator[RawBatch]:
    """The rows of a unit and its quarantined records, in order, in batches that depend on the data only.

    Raises:
        InputError: a file changed or vanished since it was planned.
    """
    config = plan.config
    reading = reading_of(config.map, config.roles, config.tree_paths == "every")
    id_field = config.map.get("id") or config.id_field
    builder = RowBuilder(plan.kind, plan.segment_source, id_field, reading, plan.columns)
    builder.pages = _pages(plan)
    for segment in unit.segments:
        file = plan.files[segment.file]
        builder.begin_file(segment.file, file.name, plan.layouts[segment.file], file.limits)
        builder.last = plan.limits[segment.file] if plan.limits else None
        steps = _records(segment, file, plan, builder)
        while _next_step(steps):
            if builder.full:
                yield builder.take()
        if segment.failure and segment.failure[0] == "too_long":  # the record before it is whole
            start = Position(segment.first_record, segment.first_line, segment.start)
            builder.quarantine(start, MisfitError(*segment.failure), b"")
        elif segment.failure:
            end = Position(segment.first_record, segment.first_line, segment.stop)
            builder.end_early(end, MisfitError(*segment.failure))
    if not builder.empty:
        yield builder.take()


def _pages(plan: Plan) -> web.Pages | None:
    """What makes documents of web pages; None where the inputs have none."""
    used = any(f.format in web.FORMATS or c.html for f, c in zip(plan.files, plan.layouts, strict=True))
    return web.Pages(plan.config.extractor, plan.config.page_limits) if used else None


def _next_step(steps: Iterator[None]) -> bool:
    """One step without Python's cycle collector, which would visit a million live tuples again and again."""
    paused = gc.isenabled()
    gc.disable()
    try:
        return next(steps, _END) is None
    finally:
        if paused:
            gc.enable()


def _records(segment: Segment, file: SourceFile, plan: Plan, builder: RowBuilder) -> Iterator[None]:
    """Give the records of a segment to the builder, and yield now and then so that a batch can be taken."""
    if segment.table is not None:
        return columnar.read_table(segment, builder)
    if segment.groups is not None:
        return columnar.read(file, segment, builder)
    data = _bytes(segment, file)
    if file.format == "jsonl":
        return json.read_lines(data, segment, builder)
    if file.format == "csv":
        return csv.read(file, data, segment, builder)
    if file.format in web.FORMATS:
        return web.read(file, data, segment, builder)
    if file.format == "text":
        return text.read(data, segment, builder, plan.config.text_split)
    return json.read_values(data, segment, builder)


def _bytes(segment: Segment, file: SourceFile) -> bytes:
    if segment.data is not None:
        return segment.data
    with open_binary(file.path) as opened:
        opened.seek(segment.start)
        data = opened.read(segment.stop - segment.start)
    if len(data) != segment.stop - segment.start:
        raise InputError(
            f"{file.path}: it changed while it was being read: bytes {segment.start} to {segment.stop} are gone"
        )
    return data
