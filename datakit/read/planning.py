"""What is read and how: the plan (format and layout of each file), its work units, and the rows of a unit."""

import codecs
import gc
import hashlib
import os
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
from datakit.errors import InputError, LayoutError
from datakit.read import columnar, csv, json, streams, text, web
from datakit.read.columns import inferred, types_of, unified
from datakit.read.find import DANGLING, Skipped, find, of_split, suffixes_of
from datakit.read.layouts.conversations import CALLERS, ParseOptions, role_of, speaker_key, speaker_of
from datakit.read.layouts.mapping import HOLE, advice, flat, mapped, user_mapping
from datakit.read.layouts.table import FileLayout, choose
from datakit.read.record import Fields, InexactNumbersError, RecordError, at, listed
from datakit.read.row_builder import Position, RowBuilder
from datakit.read.stage import UNPACKED_RATIO, IngestConfig
from datakit.read.streams import Segment, SourceFile, open_binary
from datakit.read.text import FIELD
from datakit.stage import RawBatch
from datakit.storage import REQUESTS, is_url

COUNT_BYTES: Final = 1 << 20
"""Bytes that are read at once where records are only counted."""
HEAD_BYTES: Final = 4 << 20
"""How much of a file is read to recognise it; more only if its first record is longer."""
GROUP_BYTES: Final = 1 << 20
MIN_GROUPS: Final = 18
MAX_GROUPS: Final = 64
"""Many small files make groups of 1 MiB, but at least 18 groups, and about 64 to 128 of them at most."""
LISTED_FIELDS: Final = 8
"""Names of fields in the plan's line about a file."""
LISTED_FILES: Final = 12
"""More files than that are summed up by suffix and layout."""
_CLI_NAMES = {kind: name for name, kind in KINDS.items()}
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
    found, unread, splits = of_split(found, inputs, config.split)
    limits = streams.FileLimits(config.max_record_mb << 20, config.max_expansion)
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
    segment_source = "preference" if kind == "tokens_preference" else KINDS.get(config.kind, "text")
    segment_source = segment_source.replace("document", "text")
    lines = tuple(_about(*one) for one in zip(files, layouts, strict=True))
    made = Plan(tuple(files), tuple(layouts), kind, segment_source, columns, (), config, tuple(skipped), lines)
    return replace(made, summary=tuple(_summary(made)), listing=lines if len(files) > LISTED_FILES else ())


def _types(
    file: SourceFile, head: list[Fields], layout: FileLayout, types: Mapping[str, pa.DataType | None] | None
) -> dict[str, pa.DataType | None]:
    """The types of the fields of a file that its layout does not read."""
    if types is None:
        types = columnar.types(file) if file.format in columnar.FORMATS else inferred(head)
    if layout.html:
        types = {web.TITLE: pa.string(), **types}
    return {name: kind for name, kind in types.items() if name in layout.beside}


def _limited(plan: Plan, table: pa.Table | None = None) -> Plan:
    """The plan for the first records of all files, as many as the configuration says."""
    left, limits = plan.config.limit, list[int]()
    for index, file in enumerate(plan.files):
        limits.append(left)
        seen = 0
        for segment in _cutter(file, plan.config, table)(file, index, lambda: COUNT_BYTES) if left else ():
            seen = segment.first_record + _records_in(segment, file, plan)
            if seen >= left:
                break
        left = max(left - seen, 0)
    return replace(plan, limits=tuple(limits), summary=(*plan.summary, f"only the first {plan.config.limit} records"))


def _records_in(segment: Segment, file: SourceFile, plan: Plan) -> int:
    if segment.failure:
        return 1
    if file.format in web.FORMATS:
        return 1 if segment.spans is None else len(segment.spans)
    builder = RowBuilder("document")
    builder.begin_file(0, "", FileLayout("", ""))
    count = 0
    for _ in _records(segment, file, plan, builder):
        if builder.full:
            count += int(builder.take().quarantined.num_rows)
    return count + int(builder.take().quarantined.num_rows)


# A file's format and first records.


def _inspect(path: str, name: str, size: int, limits: streams.FileLimits) -> tuple[SourceFile, list[Fields]]:
    """A file with its format and compression, and its first records (plain text: none)."""
    if size == DANGLING:
        return SourceFile(path, name, "dangling", "", 0), []
    with open_binary(path) as opened:
        magic = opened.read(8)
    file = SourceFile(path, name, suffixes_of(name)[0], streams.compression_of(magic), size, limits=limits)
    columns = columnar.format_of(magic) or (file.format if file.format in columnar.FORMATS and magic else "")
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
    head = head.removeprefix(streams.BOM)
    if file.format != "text" and not head.strip() and len(head) < json.FIRST_BYTES:  # as good as blank lines
        return replace(file, format="jsonl"), []
    if file.format == "csv":
        header, delimiter = csv.header_of(head, file.name)
        file = replace(file, header=header, delimiter=delimiter)
        return file, csv.first_records(file, head, json.HEAD_RECORDS) or [dict.fromkeys(header, "x")] * bool(header)
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
    for block in streams.blocks(file, json.FIRST_BYTES):
        if isinstance(block, streams.Damage):
            continue
        head += block
        if len(head) < wanted:
            continue
        if wanted < HEAD_BYTES and json.begins_with_records(bytes(head[: json.FIRST_BYTES])):
            break
        if wanted >= HEAD_BYTES and (json.holds_a_record(head) or len(head) > file.limits.record_bytes):
            break
        wanted *= 2
    return bytes(head)


def _looks_binary(head: bytes) -> bool:
    begin = head[: 1 << 16]
    try:
        begin.decode()
    except UnicodeDecodeError as e:
        return b"\0" in begin or e.start < len(begin) - 4
    return b"\0" in begin


# A file's layout.


def _layout(file: SourceFile, head: list[Fields], config: IngestConfig) -> FileLayout:
    mapping, options = user_mapping(config.map, config.roles)
    _check_names(file, head, mapping | ({"id": config.id_field} if config.id_field else {}), options)
    if found := mapped(mapping, head):
        judged = "label" in dict(found.required + found.optional)
        if found.kind == "conversation" and config.kind == "preference" and judged:
            found = replace(found, kind=config.kind)  # each answer is one side of a pair
        _check_speakers(file, head, options, dict(found.required).get("messages", ""))
        return found
    if file.format in ("text", *web.FORMATS):
        return FileLayout("document", "document", FIELD)
    if config.html_field and any(type(fields.get(config.html_field)) in (str, bytes) for fields in head):
        return FileLayout("document", "document", config.html_field, len(head), html=True)
    if not head and config.layout == "auto":
        return FileLayout("", "")
    kind = KINDS.get(config.kind, "auto")
    ours = [_with_our_turns(fields, options) for fields in head] if options.turn_fields else head
    chosen = choose(ours, kind, config.layout, config.text_field)
    if chosen is None:
        wanted = f" with text in {config.text_field!r}" if config.text_field else ""
        why = f"the fields of its records fit no known layout{wanted}"
        raise LayoutError(f"{file.path}: {why}. {advice(head, kind)}")
    _check_speakers(file, head, options, dict(chosen.required).get("messages", ""))
    return chosen


def _check_names(file: SourceFile, head: list[Fields], mapping: Mapping[str, str], options: ParseOptions) -> None:
    """Refuse a mapping that names a field which none of a file's first records, or of their turns, has."""
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


def _with_fields_beside(layout: FileLayout, head: list[Fields], config: IngestConfig) -> FileLayout:
    if layout.kind.startswith("tokens") or not layout.layout:
        return layout
    mapping, options = user_mapping(config.map, config.roles)
    builder = RowBuilder(layout.kind, "", mapping.get("id") or config.id_field, options)
    builder.begin_file(0, "", layout)
    beside = dict[str, None]()
    for fields in head:
        with suppress(RecordError, InexactNumbersError):
            beside |= dict.fromkeys(builder.unused(fields))
    if layout.html:
        beside[web.TITLE] = None
    return replace(layout, beside=tuple(beside))


def _with_our_turns(fields: Fields, options: ParseOptions) -> Fields:
    """A record whose turns have the names that the user's mapping gives their fields."""
    names = {given: name for name, given in options.turn_fields}
    return {
        k: [{names.get(n, n): x for n, x in t.items()} if type(t) is dict else t for t in v] if type(v) is list else v
        for k, v in fields.items()
    }


def _check_speakers(file: SourceFile, head: list[Fields], options: ParseOptions, field: str) -> None:
    """Refuse a file most of whose turns have a speaker without a role, before any work.

    Raises:
        LayoutError: there are such; with the flag to fill in.
    """
    theirs, found = dict(options.turn_fields).get("role", ""), Counter[str]()
    for value in (listed(at(fields, field)) for fields in head) if field else ():
        turns = [turn for turn in value if type(turn) is dict] if type(value) is list else []
        found.update(str(speaker_of(at(turn, theirs or speaker_key(turn)))) for turn in turns)
    strange = [s for s, _ in found.most_common() if role_of(s, options) not in (*options.roles.values(), *CALLERS)]
    if found and 2 * sum(found[s] for s in strange) >= found.total():
        some = strange[:8]
        flag, table = ",".join(f"{s}=ROLE" for s in some), ", ".join(f'{_key(s)} = "ROLE"' for s in some)
        raise LayoutError(
            f"{file.path}: the turns in {field!r} have speakers of unknown roles: {', '.join(some)}. Say which role "
            f"each has (system, user, assistant or tool), in place of ROLE:\n  datakit run --dataset NAME --roles "
            f"{shlex.quote(flag)}\n  or in its recipe: [ingest] roles = {{ {table} }}"
        )


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else f'"{name}"'


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
        pairs = ". Pairs need a chosen and a rejected answer to one prompt, or one answer with a label true or false"
        raise LayoutError(
            f"--kind {config.kind} was asked for, and some inputs hold something else: "
            f"{_by_kind(files, layouts, others)}. Leave these files out, or set other_kinds to quarantine, which "
            f"quarantines their rows{pairs if wanted == 'preference' else ''}"
        )
    return wanted


def _unreadable(file: SourceFile) -> str:
    """Why no record at the start of a file can be read, as far as its bytes tell."""
    if file.is_local and file.format in ("jsonl", "json", "json_objects", "csv"):
        head = _head(file)
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError as e:
            found = f"byte {e.start} is 0x{head[e.start]:02x}, not UTF-8 there"
            return f"no record there can be read ({found}; iconv -f LATIN1 -t UTF-8 FILE > NEW converts Latin-1)"
        if file.format != "csv" and (found := json.first_of_others(head, file.format)):
            return f'its records are no objects: the first is {found}, and each should be as {{"text": ...}}'
    return "no record there can be read"


def _by_kind(files: list[SourceFile], layouts: list[FileLayout], kinds: list[str]) -> str:
    said = []
    for kind in kinds:
        names = [f.name for f, c in zip(files, layouts, strict=True) if c.kind == kind]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        said.append(f"{kind} rows in {', '.join(names[:3])}{more}")
    return "; ".join(said)


# The plan for people.


def _summary(plan: Plan) -> list[str]:
    cli, many = _CLI_NAMES.get(plan.kind, plan.kind), len(plan.files) > LISTED_FILES
    said = [f"{len(plan.files):,} file{'s'[: len(plan.files) != 1]}, {cli} rows"]
    said += _sorts(plan) if many else plan.summary
    for why in sorted({s.why for s in plan.skipped}):
        names = [PurePath(s.path).name for s in plan.skipped if s.why == why]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        said.append(f"not read ({why}): {', '.join(names[:5])}{more}")
    return said


def _about(file: SourceFile, layout: FileLayout) -> str:
    """A line about one file."""
    beside = ", ".join(layout.beside[:LISTED_FIELDS]) + (", ..." if len(layout.beside) > LISTED_FIELDS else "")
    return f"{file.name}: {_read_as(file, layout)}" + (f"; kept beside: {beside}" if beside else "")


def _read_as(file: SourceFile, layout: FileLayout) -> str:
    field = f" ({layout.text_field})" if layout.layout == "document" and layout.text_field != FIELD else ""
    other = f"{layout.other_kind} rows, all quarantined" if layout.other_kind else "no readable record at its start"
    packed = f", {file.compression}" if file.compression else ""
    return f"{layout.layout or other}{field}, {file.format.replace('_', ' ')}{packed}"


def _sorts(plan: Plan) -> list[str]:
    """Many files by suffix and layout, the most frequent sort first: `9,998 x .md as document, text`."""
    found: dict[str, list[str]] = {}
    for file, layout in zip(plan.files, plan.layouts, strict=True):
        suffix = "".join(PurePath(file.name).suffixes[-2 if file.compression else -1 :]) or "(no suffix)"
        dangling = file.format == "dangling"
        sort = "quarantined, a link to nothing" if dangling else f"x {suffix} as {_read_as(file, layout)}"
        found.setdefault(sort, []).append(file.name)
    said = []
    for sort, names in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        few = f": {', '.join(names)}" if len(names) < 4 else ""
        said.append(f"{len(names):,} {sort}{few}")
    return said


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
    are `MIN_GROUPS` of them, and 10,000 documents make about 100 groups. The median counts, since one larger file more
    must not move the bounds of all groups.
    """
    by_bytes = min(GROUP_BYTES // (max(1, median_low(small)) if small else 1), len(small) // MIN_GROUPS)
    wanted = max(1, by_bytes, len(small) // MAX_GROUPS)
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
        for segment in _cutter(file, plan.config, table)(file, index, remaining) if last != 0 else ():
            if last is not None and segment.first_record >= last:
                break
            segments.append(segment)
            filled += segment.bytes
            if filled >= size:
                yield Unit(tuple(segments))
                segments, filled = [], 0
    if segments:
        yield Unit(tuple(segments))


def _cut_dangling(file: SourceFile, index: int, remaining: streams.Remaining) -> Iterator[Segment]:
    found = f"a link to {os.readlink(file.path)}, which does not exist"
    yield Segment(index, 0, 0, 0, 0, b"", failure=("dangling_link", found))


def _cutter(file: SourceFile, config: IngestConfig, table: pa.Table | None) -> streams.Cutter:
    """The function that cuts files of this format."""
    cutters: dict[str, streams.Cutter] = {
        "jsonl": streams.cut_lines,
        "json": json.cut_array,
        "json_objects": json.cut_objects,
        "csv": csv.cut,
        "text": partial(text.cut, split=config.text_split),
        "html": partial(text.cut, split="file"),
        "warc": web.cut,
        "dangling": _cut_dangling,
        "table": partial(columnar.cut_table, table=table),
    }
    return cutters.get(file.format, columnar.cut)


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
        file = plan.files[segment.file]
        builder.begin_file(segment.file, file.name, plan.layouts[segment.file], file.limits)
        builder.last = plan.limits[segment.file] if plan.limits else None
        if segment.failure:
            position = Position(segment.first_record, segment.first_line, segment.start)
            builder.quarantine(position, RecordError(*segment.failure), segment.data or b"")
            continue
        steps = _records(segment, file, plan, builder)
        while _next_step(steps):
            if builder.full:
                yield builder.take()
    if not builder.empty:
        yield builder.take()


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
