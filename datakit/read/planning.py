"""What is read and how: the plan (format and layout of each file), its work units, and the rows of a unit."""

import codecs
import gc
import hashlib
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from pathlib import PurePath
from statistics import median_low
from typing import Final, NamedTuple

import pyarrow as pa

from datakit.data import KINDS
from datakit.errors import InputError, LayoutError
from datakit.read import columnar, csv, json, streams, web
from datakit.read.csv import FIELD
from datakit.read.find import Skipped, find, of_split, suffixes_of
from datakit.read.layouts.conversations import CALLERS, Conversation, ParseOptions, role_of, speaker_key, speaker_of
from datakit.read.layouts.mapping import advice, flat, mapped, user_mapping
from datakit.read.layouts.table import DOCUMENT, MAPPED, FileLayout, choose
from datakit.read.record import HOLE, Cells, Fields, InexactNumbersError, RecordError, at, listed
from datakit.read.row_builder import FirstRecords, Position, RowBuilder, inferred, unified
from datakit.read.stage import UNPACKED_RATIO, IngestConfig
from datakit.read.streams import FindEnd, Segment, SourceFile, StreamCutter, open_binary
from datakit.stage import RawBatch
from datakit.storage import REQUESTS, is_url

COUNT_BYTES: Final = 1 << 20
"""Bytes that are read at once where records are only counted."""
GROUP_BYTES: Final = 1 << 20
MIN_GROUPS: Final = 18
MAX_GROUPS: Final = 64
"""Many small files make groups of 1 MiB, but at least 18 groups, and about 64 to 128 of them at most."""
LISTED_FIELDS: Final = 8
"""Names of fields in the plan's line about a file."""
LISTED_FILES: Final = 12
"""More files than that are summed up by suffix and layout."""
_CLI_NAMES = {kind: name for name, kind in KINDS.items()}
_END = object()


class _Format(NamedTuple):
    """How files of a format are cut and read, from their bytes."""

    find_end: Callable[[SourceFile], FindEnd]
    read: Callable[[SourceFile, bytes, Segment, RowBuilder], Iterator[None]]


_STREAMS: Final = {
    "jsonl": _Format(lambda file: streams.line_end, json.read_lines),
    "json": _Format(lambda file: json.ValueFinder(in_array=True), json.read_values),
    "json_objects": _Format(lambda file: json.ValueFinder(in_array=False), json.read_values),
    "csv": _Format(csv.RecordFinder, csv.read),
    "text": _Format(csv.text_end, csv.read_text),
    "html": _Format(lambda file: streams.whole_file, web.read),
    "warc": _Format(lambda file: web.records_end, web.read),
}
"""All formats but those of typed columns."""


# Plan: the format of each file from its first bytes, its layout from its first records.


@dataclass(frozen=True, slots=True)
class Plan:
    """The sorted files, the layout of each, and the kind of row that all of them make."""

    files: tuple[SourceFile, ...]
    layouts: tuple[FileLayout, ...]
    kind: str
    segment_source: str
    columns: pa.Schema
    """The user's fields that are columns of their own, by name."""
    limits: tuple[int, ...]
    """How many records of each file are read, the first ones; empty: all."""
    config: IngestConfig
    skipped: tuple[Skipped, ...]
    """Files and folders in the given folders that are not read, and why."""
    summary: tuple[str, ...] = ()
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
    found, unread, splits = of_split(found, inputs, config.split)
    with ThreadPoolExecutor(REQUESTS if any(is_url(path) for path, _, _ in found) else 1) as pool:
        inspected = list(pool.map(lambda file: _inspect(file[0], file[1], file[2], config.text_split), found))
    if config.html_field or any(file.format in web.FORMATS for file, _ in inspected):
        web.check(config.extractor)
    return _plan(inspected, skipped + unread, config, splits)


def plan_table(table: pa.Table, config: IngestConfig, name: str = "table") -> Plan:
    """The plan for a table in memory (`columnar.table_of`), read as one file. Its rows get `name` as their source.

    Raises:
        LayoutError: the columns fit no layout.
    """
    file = SourceFile(name, name, "table", "", table.nbytes, table=table)
    return _plan([(file, _first_records(file))], [], config)


def _plan(
    inspected: list[tuple[SourceFile, list[Fields]]], skipped: list[Skipped], config: IngestConfig, splits: str = ""
) -> Plan:
    files = [file for file, _ in inspected]
    layouts = [_with_fields_beside(file, _layout(file, head, config), head, config) for file, head in inspected]
    kind = _kind(files, layouts, config)
    layouts = [c if c.kind in (kind, "") else FileLayout("", "", other_kind=c.kind) for c in layouts]
    columns = pa.schema([])
    if not kind.startswith("tokens") and config.columns == "typed":
        found = zip(inspected, layouts, strict=True)
        columns = unified(_types(file, head, layout) for (file, head), layout in found if layout.layout)
    source = "preference" if kind == "tokens_preference" else KINDS.get(config.kind, "text")
    source = source.replace("document", "text")
    made = Plan(tuple(files), tuple(layouts), kind, source, columns, (), config, tuple(skipped))
    limits, said = _limits(made) if config.limit else (), _summary(made)
    said += [f"only the first {config.limit} records"] * bool(config.limit) + [splits] * bool(splits)
    lines = tuple(map(_about, files, layouts)) if len(files) > LISTED_FILES else ()
    return replace(made, limits=limits, summary=tuple(said), listing=lines)


def _types(file: SourceFile, head: list[Fields], layout: FileLayout) -> dict[str, pa.DataType | None]:
    """The types of the fields of a file that its layout does not read."""
    types = columnar.types(file) if file.format in columnar.FORMATS else inferred(head)
    types = ({web.TITLE: pa.string()} if layout.html else {}) | types
    return {name: kind for name, kind in types.items() if name in layout.beside}


def _limits(plan: Plan) -> tuple[int, ...]:
    """How many records of each file are among the first ones of all files that the configuration asks for."""
    left, limits = plan.config.limit, list[int]()
    for index, file in enumerate(plan.files):
        limits.append(left)
        counted = FirstRecords()
        for segment in _segments(file, index, lambda: COUNT_BYTES) if left else ():
            if segment.failure or file.format in web.FORMATS:
                counted.seen = segment.first_record + (1 if segment.spans is None else len(segment.spans))
            else:
                for _ in _records(segment, file, counted):
                    pass
            if counted.seen >= left:
                break
        left = max(left - counted.seen, 0)
    return tuple(limits)


# A file's format and first records.


def _inspect(path: str, name: str, size: int, text_split: str) -> tuple[SourceFile, list[Fields]]:
    """A file with its format and compression, and its first records (plain text: none).

    Raises:
        InputError: it cannot be read, or its bytes are not what its name says.
    """
    with open_binary(path) as opened:
        magic = opened.read(8)
    suffix, compression = suffixes_of(name)[0], streams.compression_of(magic)
    file = SourceFile(path, name, suffix, compression, size, text_split=text_split)
    columns = columnar.format_of(magic) or (suffix if suffix in columnar.FORMATS and magic else "")
    if columns and compression:
        raise InputError(f"{path}: a compressed {columns} file cannot be read in parts; decompress it first")
    if columns:
        file = replace(file, format=columns)
        return file, _first_records(file)
    head = _head(file)
    file = replace(file, format="warc") if web.begins_archive(head) else file
    if file.format == "warc" and head and web.BEGIN not in head:
        raise InputError(f"{path}: it is no web archive (WARC): it begins with {head[:24]!r}")
    if file.format in web.FORMATS:
        return file, [dict.fromkeys((FIELD, *web.COLUMNS), "x")]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        said = "it is UTF-16, and only UTF-8 is read; convert it first, for example with iconv -f UTF-16 -t UTF-8"
        raise InputError(f"{path}: {said} FILE > NEW")
    head = head.removeprefix(streams.BOM)
    if suffix == "text" or not head.strip():  # blank lines are no records
        return replace(file, format="text" if suffix == "text" else "jsonl"), []
    if suffix == "csv":
        header, delimiter = csv.header_of(head, name)
        file = replace(file, header=header, delimiter=delimiter)
        return file, _first_records(file, head) or [dict.fromkeys(header, "x")] * bool(header)
    is_text = b"\0" not in head[: 1 << 16] and _not_utf8(head[: 1 << 16]) < 0
    found = json.format_of(head, suffix) or ("jsonl" if suffix == "jsonl" and is_text else "")
    if not found and (suffix or not is_text):
        known = "JSON" if suffix else "any format that is read"
        raise InputError(f"{path}: it is not {known}: it begins with {head[:24]!r}")
    file = replace(file, format=found or "text")
    return file, _first_records(file, head) if found else []


def _head(file: SourceFile) -> bytes:
    """The first bytes, uncompressed: enough records, one a line; or some megabytes with at least one whole record."""
    head, wanted = bytearray(), json.FIRST_BYTES
    for block in streams.blocks(file, json.FIRST_BYTES):
        head += block if isinstance(block, bytes) else b""
        if len(head) >= wanted:
            if json.tells_layout(bytes(head)) or len(head) > streams.RECORD_BYTES:
                break
            wanted *= 2
    return bytes(head)


def _not_utf8(head: bytes) -> int:
    """Where the first byte stands that is not UTF-8; -1 without one. The last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as e:
        return e.start
    return -1


def _first_records(file: SourceFile, head: bytes = b"") -> list[Fields]:
    """The first records that can be read, at most `HEAD_RECORDS`: of the first bytes, or of the first groups of typed
    columns. Where these have no rows, a record stands for them: its columns of strings tell the layout."""
    builder, typed = FirstRecords(), file.format in columnar.FORMATS
    segments = columnar.cut(file, 0, lambda: 1) if typed else _segments(file, 0, lambda: 1 << 62, head)
    for segment in segments:
        for _ in _records(segment, file, builder) if not segment.failure else ():
            if builder.seen >= json.HEAD_RECORDS:
                break
        if builder.seen >= json.HEAD_RECORDS:
            break
    if not builder.found and typed:
        strings = [name for name, kind in columnar.types(file).items() if kind == pa.string()]
        return [dict.fromkeys(strings, "x")] if strings else []
    return builder.found[: json.HEAD_RECORDS]


# A file's layout.


def _layout(file: SourceFile, head: list[Fields], config: IngestConfig) -> FileLayout:
    """The layout of a file: that of the user's mapping, or the one that its records fit.

    Raises:
        LayoutError: they fit none, the mapping names fields that they do not have, or their speakers have no roles.
    """
    mapping, options = user_mapping(config.map, config.roles)
    _check_names(file, head, mapping | ({"id": config.id_field} if config.id_field else {}), options)
    kind = KINDS.get(config.kind, "auto")
    found = mapped(mapping, head)
    if found:
        judged = found.kind == "conversation" and "label" in dict(found.required + found.optional)
        if kind == "preference" and judged:
            found = replace(found, kind=kind)  # each answer is one side of a pair
    elif file.format in ("text", *web.FORMATS):
        return FileLayout(DOCUMENT, "document", (("text", FIELD),))
    elif config.html_field and any(type(fields.get(config.html_field)) in (str, bytes) for fields in head):
        return FileLayout(DOCUMENT, "document", (("text", config.html_field),), html=True)
    elif not head and config.layout == "auto":
        return FileLayout("", "")
    else:
        found = choose(head, kind, config.layout, config.text_field)
        if found is None:
            wanted = f" with text in {config.text_field!r}" if config.text_field else ""
            why = f"the fields of its records fit no known layout{wanted}"
            raise LayoutError(f"{file.path}: {why}. {advice(head, kind)}")
    if field := dict(found.required).get("messages"):
        _check_speakers(file, head, options, field)
    return found


def _check_names(file: SourceFile, head: list[Fields], mapping: Mapping[str, str], options: ParseOptions) -> None:
    """Refuse a mapping that names a field which none of a file's first records, or of their turns, has.

    Raises:
        LayoutError: there is one.
    """
    in_turns = dict(options.turn_fields)
    lists = [listed(at(fields, mapping.get("messages", ""))) for fields in head]
    turns = [t for v in lists if type(v) is list for t in v if type(t) is dict]
    for ours, source in mapping.items():
        records = head if ours not in in_turns else turns if ours in ("role", "content") else []
        known = list(dict.fromkeys(name for fields in records for name in flat(fields)))
        paths = HOLE.findall(source) if "{" in source else source.split("+")[:1]
        if known and not any(path in known or any(at(f, path) is not None for f in records) for path in paths):
            near = get_close_matches(paths[0], known, 1, 0.5) if paths else []
            raise LayoutError(
                f"{file.path}: --map {ours}={source}: none of its first records has such a field; "
                f"{f'perhaps {near[0]} is meant; ' if near else ''}the fields are {', '.join(known[:24])}"
            )


def _check_speakers(file: SourceFile, head: list[Fields], options: ParseOptions, field: str) -> None:
    """Refuse a file most of whose turns have a speaker without a role, before any work.

    Raises:
        LayoutError: there are such; with the flag to fill in.
    """
    theirs, found = dict(options.turn_fields).get("role", ""), Counter[str]()
    for value in (listed(at(fields, field)) for fields in head):
        turns = [turn for turn in value if type(turn) is dict] if type(value) is list else []
        found.update(str(speaker_of(at(turn, theirs or speaker_key(turn)))) for turn in turns)
    strange = [s for s, _ in found.most_common() if role_of(s, options) not in (*options.roles.values(), *CALLERS)]
    if found and 2 * sum(found[s] for s in strange) >= found.total():
        flag = ",".join(f"{s}=ROLE" for s in strange[:8])
        keys = [name if name.isidentifier() and name.isascii() else f'"{name}"' for name in strange[:8]]
        table = ", ".join(f'{key} = "ROLE"' for key in keys)
        raise LayoutError(
            f"{file.path}: the turns in {field!r} have speakers of unknown roles. Say which role each has (system, "
            f"user, assistant or tool), in place of ROLE:\n  datakit run --dataset NAME --roles {shlex.quote(flag)}\n"
            f"  or in its recipe: [ingest] roles = {{ {table} }}"
        )


def _with_fields_beside(file: SourceFile, layout: FileLayout, head: list[Fields], config: IngestConfig) -> FileLayout:
    """The layout with the fields of the first records that rows are not made from.

    Raises:
        LayoutError: one of these holds more text than the questions: an answer may depend on it.
    """
    if layout.kind.startswith("tokens") or not layout.layout:
        return layout
    mapping, options = user_mapping(config.map, config.roles)
    id_field = mapping.get("id") or config.id_field
    builder = RowBuilder(layout.kind, "", id_field, options)
    builder.begin_file(0, "", layout)
    beside, asked = Counter[str](), 0
    for fields in head:
        with suppress(RecordError, InexactNumbersError):
            made, used, _ = builder.content(fields, Cells(fields))
            answers = made.answer_turns if isinstance(made, Conversation) else 0
            question = "\n".join(m.content for m in made.messages[:-answers]) if answers else ""
            asked += len(question)
            for name, value in fields.items():
                if name not in used and name != builder.id_field:
                    # a text that holds the question repeats it, as rendered by a template; a URL or a label is no text
                    is_text = type(value) is str and (len(value.split()) > 1 or not value.isascii())
                    beside[name] += len(value) if answers and is_text and question not in value else 0
    unread = [name for name, size in beside.items() if size > asked]
    if unread and layout.layout != MAPPED and config.layout == "auto":
        why = f"{unread[0]} holds more text than the questions, and the layout {layout.layout} does not read it"
        raise LayoutError(f"{file.path}: {why}. {advice(head, 'conversation')}")
    return replace(layout, beside=(*beside, *[web.TITLE] * (layout.html and web.TITLE not in beside)))


def _kind(files: list[SourceFile], layouts: list[FileLayout], config: IngestConfig) -> str:
    """The row kind of the dataset: the one asked for, or the one that all files make.

    Raises:
        LayoutError: some files make rows of another kind.
        InputError: no file could be recognised and no kind was asked for.
    """
    kinds = sorted({c.kind for c in layouts if c.kind})
    if len(kinds) == 1 and (config.kind == "auto" or kinds[0].startswith("tokens")):
        return kinds[0]
    if not kinds and config.kind == "auto":
        raise InputError(
            f"{files[0].path}: {_unreadable(files[0])}, so the kind of its rows is unknown. --kind text, sft or "
            "preference (in Python kind=) reads it all the same, and quarantines what is no row"
        )
    wanted = KINDS.get(config.kind, "")
    others = [kind for kind in kinds if kind != wanted]
    if others and (not wanted or config.other_kinds == "refuse"):
        said = []
        for kind in others:
            names = [f.name for f, c in zip(files, layouts, strict=True) if c.kind == kind]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            said.append(f"{kind} rows in {', '.join(names[:3])}{more}")
        pairs = ". Pairs need a chosen and a rejected answer to one prompt, or one answer with a label true or false"
        raise LayoutError(
            f"one dataset has one kind{f', --kind {config.kind}' if wanted else ''}, and some inputs hold something "
            f"else: {'; '.join(said)}. Leave these files out, or name the kind (--kind text, sft or preference) and "
            f"set other_kinds to quarantine, which quarantines the rows of others{pairs * (wanted == 'preference')}"
        )
    return wanted


def _unreadable(file: SourceFile) -> str:
    """Why no record at the start of a file can be read, as far as its bytes tell."""
    head = _head(file) if file.bytes else b""
    if (at := _not_utf8(head)) >= 0:
        found = f"byte {at} is 0x{head[at]:02x}, not UTF-8 there"
        return f"no record there can be read ({found}; iconv -f LATIN1 -t UTF-8 FILE > NEW converts Latin-1)"
    if found := json.first_other(head):
        return f'its records are no objects: the first is {found}, and each should be as {{"text": ...}}'
    return "no record there can be read" if file.bytes else "it is empty"


# The plan for people.


def _summary(plan: Plan) -> list[str]:
    cli, several = _CLI_NAMES.get(plan.kind, plan.kind), "s"[: len(plan.files) != 1]
    said, sorts = [f"{len(plan.files):,} file{several}, {cli} rows"], dict[str, list[str]]()
    for file, layout in zip(plan.files, plan.layouts, strict=True):
        # many files by suffix and layout, the most frequent sort first: `9,998 x .md as document, text`
        suffix = "".join(PurePath(file.name).suffixes[-2 if file.compression else -1 :]) or "(no suffix)"
        sorts.setdefault(f"x {suffix} as {_read_as(file, layout)}", []).append(file.name)
    if len(plan.files) <= LISTED_FILES:
        said += map(_about, plan.files, plan.layouts)
    else:
        by_count = sorted(sorts.items(), key=lambda item: (-len(item[1]), item[0]))
        said += [f"{len(names):,} {sort}{_few(names, 3)}" for sort, names in by_count]
    for why in sorted({s.why for s in plan.skipped}):
        names = [PurePath(s.path).name for s in plan.skipped if s.why == why]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        said.append(f"not read ({why}): {', '.join(names[:5])}{more}")
    return said


def _few(names: list[str], most: int) -> str:
    return f": {', '.join(names)}" if len(names) <= most else ""


def _about(file: SourceFile, layout: FileLayout) -> str:
    """A line about one file."""
    beside = ", ".join(layout.beside[:LISTED_FIELDS]) + (", ..." if len(layout.beside) > LISTED_FIELDS else "")
    return f"{file.name}: {_read_as(file, layout)}" + (f"; kept beside: {beside}" if beside else "")


def _read_as(file: SourceFile, layout: FileLayout) -> str:
    field = f" ({layout.text_field})" if layout.text_field not in ("", FIELD) else ""
    other = f"{layout.other_kind} rows, all quarantined" if layout.other_kind else "no readable record at its start"
    packed = f", {file.compression}" if file.compression else ""
    return f"{layout.layout or other}{field}, {file.format.replace('_', ' ')}{packed}"


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
        name_hash = int.from_bytes(hashlib.blake2b(file.name.encode(), digest_size=8).digest(), "little")
        if place == 0 or alone or filled >= size or not name_hash & mask:
            begins.append(place)
            filled = 0
        filled += weight
    return [range(a, b) for a, b in pairwise([*begins, len(plan.files)])]


def _neighbours(small: list[int]) -> int:
    """How many small files share shards on average, a power of two, from their sizes in bytes.

    A unit takes about 50 ms over all stages, whatever it holds. So a group is to have `GROUP_BYTES`, as long as there
    are `MIN_GROUPS` of them, and 10,000 documents make about 100 groups. The median counts, since one larger file more
    must not move the bounds of all groups.
    """
    by_bytes = min(GROUP_BYTES // (max(1, median_low(small)) if small else 1), len(small) // MIN_GROUPS)
    wanted = max(1, by_bytes, len(small) // MAX_GROUPS)
    return 1 << (wanted.bit_length() - 1)


def units(plan: Plan) -> Iterator[Unit]:
    """The work units of all groups of files in order (see `units_of`)."""
    for group in groups(plan):
        yield from units_of(plan, group)


def units_of(plan: Plan, group: range) -> Iterator[Unit]:
    """The work units of a group of files, in order; they depend on these files and the configuration only.

    A unit ends with the first record at which it has `shard_mb` or more. Uncompressed files are read once to find the
    ends and numbers of records; compressed ones are decompressed, and the units hold their bytes.
    """
    size = plan.config.shard_mb << 20
    segments, filled = list[Segment](), 0

    def remaining() -> int:
        return size - filled

    for index in group:
        file, last = plan.files[index], plan.limits[index] if plan.limits else None
        for segment in _segments(file, index, remaining) if last != 0 else ():
            if last is not None and segment.first_record >= last:
                break
            segments.append(segment)
            filled += segment.bytes
            if filled >= size:
                yield Unit(tuple(segments))
                segments, filled = [], 0
    if segments:
        yield Unit(tuple(segments))


def _segments(
    file: SourceFile, index: int, remaining: streams.Remaining, head: bytes | None = None
) -> Iterator[Segment]:
    """The segments of file number `index`; each has at least the remaining bytes at that time. `head`: only those of
    its first bytes."""
    if file.format in columnar.FORMATS:
        return columnar.cut(file, index, remaining)
    begin = {"jsonl": streams.LINE_BEGIN, "warc": web.RECORD_BEGIN}.get(file.format)
    if file.format == "text" and file.text_split == "line":
        begin = streams.LINE_BEGIN
    return StreamCutter(file, index, remaining, _STREAMS[file.format].find_end(file), begin, head).run()


# Read: the rows of a unit.


def read_unit(unit: Unit, plan: Plan) -> Iterator[RawBatch]:
    """The rows of a unit and its quarantined records, in order, in batches that depend on the data only.

    Raises:
        InputError: a file changed or vanished since it was planned.
    """
    config = plan.config
    mapping, options = user_mapping(config.map, config.roles)
    id_field = mapping.get("id") or config.id_field
    builder = RowBuilder(plan.kind, plan.segment_source, id_field, options, plan.columns)
    if any(f.format in web.FORMATS or c.html for f, c in zip(plan.files, plan.layouts, strict=True)):
        builder.pages = web.Pages(config.extractor, config.page_timeout_s, config.on_timeout)
    for segment in unit.segments:
        file, last = plan.files[segment.file], plan.limits[segment.file] if plan.limits else None
        builder.begin_file(segment.file, file.name, plan.layouts[segment.file], last)
        if segment.failure:
            position = Position(segment.first_record, segment.first_line, segment.start)
            builder.quarantine(position, RecordError(*segment.failure), segment.data or b"")
            continue
        steps = _records(segment, file, builder)
        while _next_step(steps):
            if builder.full and (batch := builder.take()):
                yield batch
    if batch := builder.take():
        yield batch


def _next_step(steps: Iterator[None]) -> bool:
    """One step without Python's cycle collector, which would visit a million live tuples again and again."""
    paused = gc.isenabled()
    gc.disable()
    try:
        return next(steps, _END) is None
    finally:
        if paused:
            gc.enable()


def _records(segment: Segment, file: SourceFile, builder: RowBuilder) -> Iterator[None]:
    """Give the records of a segment to the builder, and yield now and then so that a batch can be taken."""
    if segment.groups is not None:
        return columnar.read(file, segment, builder)
    data = segment.data
    if data is None:
        with open_binary(file.path) as opened:
            opened.seek(segment.start)
            data = opened.read(segment.stop - segment.start)
        if len(data) != segment.stop - segment.start:
            gone = f"bytes {segment.start} to {segment.stop} are gone"
            raise InputError(f"{file.path}: it changed while it was being read: {gone}")
    return _STREAMS[file.format].read(file, data, segment, builder)
