"""What is read and how: the plan (format and layout of each file), its work units, and the rows of a unit."""

import codecs
import gc
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice, pairwise
from pathlib import PurePath
from typing import Any, Final

import pyarrow as pa

import datakit.own_code as own_code
from datakit.config import options
from datakit.data import KINDS
from datakit.errors import ConfigError, DatakitError, InputError, LayoutError
from datakit.read import columnar, csv, record, streams, web
from datakit.read.csv import FIELD
from datakit.read.find import Skipped, absolute, find, of_split, shortened, suffixes_of
from datakit.read.layouts.conversations import Conversation, ParseOptions, role_of, speaker_key, speaker_of
from datakit.read.layouts.table import (
    MAPPED,
    advice,
    choose,
    flat,
    mapped,
    to_fill_in,
    user_mapping,
)
from datakit.read.record import HOLE, Fields, Record, at, listed
from datakit.read.row_builder import BATCH_BYTES, RowBuilder, inferred, unified
from datakit.read.stage import IngestConfig
from datakit.read.streams import (
    DOCUMENT,
    RECORD_BYTES,
    FindEnd,
    Layout,
    RecordError,
    Segment,
    SourceFile,
    StreamCutter,
    open_binary,
)
from datakit.stage import RawBatch
from datakit.storage import REQUESTS, is_url

COUNT_BYTES: Final = 1 << 20
"""Bytes that are read at once where records are only counted."""
GROUPS: Final = 32
"""Many small files make about 32 to 64 groups, since a unit takes about 50 ms over all stages, whatever it holds."""
LISTED_FIELDS: Final = 8
"""Names of fields in the plan's line about a file."""
LISTED_FILES: Final = 12
"""More files than that are summed up by suffix and layout."""
READERS: Final = "datakit.readers"
"""The entry points of installed packages whose functions give rows."""


_STREAMS: Final[dict[str, tuple[Callable[[SourceFile], FindEnd], Callable[..., Iterator[Record]]]]] = {
    "jsonl": (lambda file: streams.line_end, record.read_lines),
    "json": (lambda file: record.ValueFinder(in_array=True), record.read_values),
    "json_objects": (lambda file: record.ValueFinder(in_array=False), record.read_values),
    "csv": (csv.RecordFinder, csv.read),
    "text": (csv.text_end, csv.read_text),
    "html": (lambda file: streams.whole_file, web.read),
    "warc": (lambda file: web.records_end, web.read),
}
"""How files of a format are cut, and read from the bytes of a segment: all formats but those of typed columns."""
_BEGINS: Final[dict[FindEnd, re.Pattern[bytes]]] = {
    streams.line_end: streams.LINE_BEGIN,
    web.records_end: web.RECORD_BEGIN,
}
"""What stands before a record, where a mark tells it: reading goes on there behind a record that is too long."""


# Plan: the format of each file from its first bytes, its layout from its first records.


@dataclass(frozen=True, slots=True)
class Plan:
    """The sorted files with their layouts, and the kind of row that all of them make."""

    files: tuple[SourceFile, ...]
    kind: str
    segment_source: str
    columns: pa.Schema
    """The user's fields that are columns of their own, by name."""
    config: IngestConfig
    skipped: tuple[Skipped, ...]
    """Files and folders in the given folders that are not read, and why."""
    summary: tuple[str, ...]
    """The plan as lines for people; many files of one sort are one line."""


def plan(inputs: Sequence[Any], config: IngestConfig) -> Plan:
    """Find the files and recognise their layouts; one table in memory (`columnar.table_of`) is read as one file.

    Raises:
        InputError: no input, a missing or unreadable file, a file of an unknown format.
        LayoutError: records that fit no layout, or files of different kinds.
    """
    skipped, splits, wanted = list[Skipped](), "", KINDS.get(config.kind, "")
    if len(inputs) == 1 and (table := _table(inputs[0])):
        heads = [_first_records(table)]
        files = [replace(table, layout=_layout(table, heads[0], config))]
    else:
        found, skipped = find(inputs)
        found, unread, splits = of_split(found, inputs, config.split)
        named, skipped = set(absolute(inputs)), skipped + unread
        with ThreadPoolExecutor(REQUESTS if any(is_url(path) for path, _, _ in found) else 1) as pool:
            recognised = list(pool.map(lambda file: _recognised(file, config, file[0] in named), found))
        files, heads = [file for file, _, _ in recognised], [head for _, head, _ in recognised]
        errors = [error for _, _, error in recognised if error]
        misfits = [error for error in errors if isinstance(error, LayoutError)]
        if (misfits or len(errors) == len(files)) and not any(file.layout.kind for file in files):
            raise (misfits or errors)[0]
    if pages := next((file.path for file in files if file.format in web.FORMATS), ""):
        web.check(config.extractor, pages)
    _refuse_idle(files, config)
    kind = _kind(files, config)
    typed = config.columns == "typed" and not kind.startswith("tokens")
    columns = unified(_types(files, heads) if typed else [])
    if config.limit:
        files = list(_limited(files, config.limit))
    said = _summary(files, kind, skipped)
    said += [f"only the first {config.limit} records"] * bool(config.limit) + [splits] * bool(splits)
    source = "preference" if kind == "tokens_preference" else {"": "text", "document": "text"}.get(wanted, wanted)
    return Plan(tuple(files), kind, source, columns, config, tuple(skipped), tuple(said))


def _table(given: Any) -> SourceFile | None:
    """A table in memory, or what a function of the user gives (`file.py:name`, or an entry point), read as a file.

    Raises:
        ConfigError: there is no such function.
        InputError: it gives no table and no rows.
    """
    name, table = "table", given
    if not isinstance(given, pa.Table):
        if is_url(given) or os.path.exists(given) or not own_code.is_own(given, READERS):
            return None
        reader = own_code.find(given, READERS)
        try:
            name, table = PurePath(given).name, columnar.table_of(reader())
        except DatakitError:
            raise
        except Exception as e:  # whatever the user's reader raises
            raise InputError(f"{given}: {own_code.what_failed(e, reader)}") from e
    return SourceFile(name, name, "table", "", table.nbytes, table=table)


def _recognised(
    found: tuple[str, str, int], config: IngestConfig, is_named: bool
) -> tuple[SourceFile, list[Fields], InputError | None]:
    """(a file with its format and layout, its first records, what is wrong). A file of a folder that cannot be read,
    fits no layout, or holds rows of another kind than the one that is asked for, does not end the run.

    Raises:
        InputError: a file that the user named is such a file.
    """
    path, name, size = found
    try:
        file, head = _inspect(found, config.text_split)
        layout, wanted = _layout(file, head, config), KINDS.get(config.kind, "")
        if not is_named and wanted and layout.kind in KINDS.values() and layout.kind != wanted:
            raise LayoutError(f"{path}: it holds {layout.kind} rows, and {wanted} rows are asked for")
        return replace(file, layout=layout), head, None
    except InputError as e:
        if is_named or not size:
            raise
        why = str(e).removeprefix(f"{path}: ")
        why = why.split(". ")[0] if isinstance(e, LayoutError) else why
        return SourceFile(path, name, "unreadable", "", size, failure=why), [], e


def _refuse_idle(files: list[SourceFile], config: IngestConfig) -> None:
    """Refuse an option that was set for what no file has.

    Raises:
        ConfigError: there is one.
    """
    known = [file for file in files if file.layout.kind]
    pages = any(file.format in web.FORMATS for file in known)
    acts = dict.fromkeys(("extractor", "page_timeout_s", "on_timeout"), pages)
    acts["text_split"] = any(file.format == "text" for file in known)
    acts["roles"] = any(file.layout.kind != "document" for file in known)
    for o in options(IngestConfig) if known else ():
        value = getattr(config, o.name)
        if value != o.default and not acts.get(o.name, True):
            raise ConfigError(
                f"ingest: {o.name} = {value!r} would do nothing: no input has what it is for. Leave it out"
            )


def _types(files: list[SourceFile], heads: list[list[Fields]]) -> Iterator[Mapping[str, pa.DataType | None]]:
    """The types of the fields that layouts do not read: of each columnar file, and of all other files together."""
    others = list[Fields]()
    for file, head in zip(files, heads, strict=True):
        if file.format in columnar.FORMATS:
            types = columnar.types(file)
            yield {name: types[name] for name in file.layout.beside if name in types}
        else:
            beside = file.layout.beside
            others += [{name: fields[name] for name in beside if name in fields} for fields in head]
    yield inferred(others)


def _limited(files: list[SourceFile], limit: int) -> Iterator[SourceFile]:
    """The files with the number of their records that are among the first ones of all files."""
    for index, file in enumerate(files):
        yield replace(file, limit=limit)
        records = 0
        for segment in _segments(file, index, lambda: COUNT_BYTES) if limit else ():
            records = segment.first_record + segment.records
            if records >= limit:
                break
        limit = max(limit - records, 0)


# A file's format and first records.


def _inspect(found: tuple[str, str, int], text_split: str) -> tuple[SourceFile, list[Fields]]:
    """A file with its format and compression, and its first records (plain text: none).

    Raises:
        InputError: it cannot be read, or its bytes are not what its name says.
    """
    path, name, size = found
    with open_binary(path) as opened:
        magic = opened.read(8)
    suffix, compression = suffixes_of(name)[0], streams.named_by(streams.MAGIC, magic)
    file = SourceFile(path, name, suffix, compression, size, text_split=text_split)
    columns = streams.named_by(columnar.MAGIC, magic) or (suffix if suffix in columnar.FORMATS and magic else "")
    if columns and compression:
        raise InputError(f"{path}: a compressed {columns} file cannot be read in parts; decompress it first")
    if columns:
        file = replace(file, format=columns)
        return file, _first_records(file)
    head = _head(file)
    file = replace(file, format="warc") if web.VERSION.match(head) else file
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
    is_binary = not suffix and b"\0" in head[: 1 << 16]  # an archive may begin with the lines of a file in it
    form = "" if is_binary else record.format_of(head, suffix)
    if not form and suffix in ("", "jsonl") and _is_text(head[: 1 << 16]):
        form = suffix or "text"
    if not form:
        known = "JSON" if suffix else "any format that is read"
        unpack = "; unpack an archive of files first" * is_binary
        raise InputError(f"{path}: it is not {known}: it begins with {head[:24]!r}{unpack}")
    file = replace(file, format=form)
    return file, _first_records(file, head) if form != "text" else []


def _head(file: SourceFile) -> bytes:
    """The first bytes, uncompressed: enough records, one a line; or some megabytes with at least one whole record."""
    head, wanted = bytearray(), record.FIRST_BYTES
    for block in streams.blocks(file, record.FIRST_BYTES):
        head += block if isinstance(block, bytes) else b""
        if len(head) >= wanted:
            if record.tells_layout(bytes(head)) or len(head) > RECORD_BYTES:
                break
            wanted *= 2
    return bytes(head)


def _is_text(head: bytes) -> bool:
    """Whether some bytes are UTF-8 without NUL. The last character may be cut."""
    try:
        return "\0" not in codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False


def _first_records(file: SourceFile, head: bytes = b"") -> list[Fields]:
    """The first records that can be read, at most `HEAD_RECORDS`: of the first bytes, or of the first groups of typed
    columns. Where these have no rows, a record stands for them: its columns of strings tell the layout."""
    typed = file.format in columnar.FORMATS
    segments = columnar.cut(file, 0, lambda: 1) if typed else _segments(file, 0, lambda: 1 << 62, head)
    records = (found.fields for segment in segments for found in _records(segment, file))
    found = list(islice((fields for fields in records if type(fields) is dict), record.HEAD_RECORDS))
    if not found and typed:
        strings = [name for name, kind in columnar.types(file).items() if kind == pa.string()]
        return [dict.fromkeys(strings, "x")] if strings else []
    return found


# A file's layout.


def _layout(file: SourceFile, head: list[Fields], config: IngestConfig) -> Layout:
    """The layout of a file: that of the user's mapping, or the one that its records fit.

    Raises:
        LayoutError: they fit none, the mapping names fields that they do not have, or their speakers have no roles; or
            a field that it does not read holds more text than the questions: an answer may depend on it.
    """
    mapping, options = user_mapping(config.map, config.roles)
    found, kind = None, KINDS.get(config.kind, "auto")
    if mapping:
        _check_names(file, head, mapping, options)
        found = mapped(mapping, head)
    if found:
        if kind == "preference" and found.kind == "conversation" and "label" in {**found.required, **found.optional}:
            found = replace(found, kind=kind)  # each answer is one side of a pair
    elif file.format in ("text", *web.FORMATS):
        found = Layout(DOCUMENT, "document", required={"text": FIELD})
    elif not head and config.layout == "auto":
        return Layout()
    else:
        found = choose(head, kind, config.layout)
        if found is None:
            why = "the fields of its records fit no known layout"
            raise LayoutError(f"{file.path}: {why}. {advice(head, kind)}")
    if found.kind.startswith("tokens"):
        return found
    beside, asked, failed = _beside(found, head, mapping.get("id", ""), options)
    if failed and len(failed) == len(head):
        if speakers := _without_role(head, found.required.get("messages", ""), options):
            raise LayoutError(
                f"{file.path}: speakers have no role. Say which role each has (system, user, assistant or tool), in "
                f"place of ROLE:\n{to_fill_in('roles', speakers[:8], 'ROLE', mapping=config.map)}"
            )
        raise LayoutError(f"{file.path}: none of its first records makes a row: {failed[0].detail}")
    unread = [name for name, size in beside.items() if size > asked]
    if unread and found.name != MAPPED and config.layout == "auto":
        why = f"{unread[0]} holds more text than the questions, and the layout {found.name} does not read it"
        raise LayoutError(f"{file.path}: {why}. {advice(head, 'conversation')}")
    return replace(found, beside=tuple(beside))


def _without_role(head: list[Fields], field: str, options: ParseOptions) -> list[str]:
    """The speakers of the turns in a field of the first records whose role nobody told."""
    lists = (listed(at(fields, field)) for fields in head)
    turns = [turn for value in lists if type(value) is list for turn in value if type(turn) is dict]
    keys = (options.turn_fields.get("role") or speaker_key(turn) for turn in turns)
    speakers = [speaker_of(turn.get(key)) for turn, key in zip(turns, keys, strict=True)]
    return list(dict.fromkeys(s for s in speakers if type(s) is str and not role_of(s, options)))


def _beside(
    layout: Layout, head: list[Fields], id_field: str, options: ParseOptions
) -> tuple[Counter[str], int, list[RecordError]]:
    """(the fields of the first records that rows are not made from, with the characters of their texts beside answers;
    the characters of the questions; what is wrong with those that make no row)."""
    builder = RowBuilder(layout.kind, id_field=id_field, options=options)
    builder.begin_file(0, "", layout)
    beside, asked, failed = Counter[str](), 0, list[RecordError]()
    for fields in head:
        try:
            made, used, _ = builder.content(Record(fields, 0, 0, None, b""))
        except RecordError as e:
            failed.append(e)
        else:
            answers = made.answer_turns if isinstance(made, Conversation) else 0
            question = "\n".join(m.content for m in made.messages[:-answers]) if answers else ""
            asked += len(question)
            for name, value in fields.items():
                if name not in used and name != builder.id_field and (value is not None or name not in layout.later):
                    # a text that holds the question repeats it, as rendered by a template; a URL or a label is no text
                    is_text = type(value) is str and (len(value.split()) > 1 or not value.isascii())
                    beside[name] += len(value) if answers and is_text and question not in value else 0
    return beside, asked, failed


def _check_names(file: SourceFile, head: list[Fields], mapping: Mapping[str, str], options: ParseOptions) -> None:
    """Refuse a mapping that names a field which none of a file's first records, or of their turns, has.

    Of fields that records may lack (a turn's weight, one of several that make a text) only one that is spelled nearly
    like another is refused.

    Raises:
        LayoutError: there is one.
    """
    lists = (listed(at(fields, mapping.get("messages", ""))) for fields in head)
    turns = [turn for value in lists if type(value) is list for turn in value if type(turn) is dict]
    for ours, source in mapping.items():
        records = head if ours not in options.turn_fields else turns
        known = list(dict.fromkeys(name for fields in records for name in flat(fields)))
        paths = HOLE.findall(source) if "{" in source else source.split("+")
        absent = [p for p in paths if p not in known and all(at(fields, p) is None for fields in records)]
        optional = len(absent) < len(paths) or (ours in options.turn_fields and ours not in ("role", "content"))
        for path in absent if known else ():
            near = get_close_matches(path, known, 1, 0.75 if optional else 0.5)
            if near or not optional:
                raise LayoutError(
                    f"{file.path}: --map {ours}={source}: none of its first records has a field {path}; "
                    f"{f'perhaps {near[0]} is meant; ' if near else ''}the fields are {', '.join(known[:24])}"
                )


def _kind(files: list[SourceFile], config: IngestConfig) -> str:
    """The row kind of the dataset: the one asked for, or the one that all files make.

    Raises:
        LayoutError: some files make rows of another kind.
        InputError: no file could be recognised and no kind was asked for.
    """
    kinds = sorted({f.layout.kind for f in files} - {""})
    if len(kinds) == 1 and (config.kind == "auto" or kinds[0].startswith("tokens")):
        return kinds[0]
    if not kinds and config.kind == "auto":
        raise InputError(
            f"{files[0].path}: {_unreadable(files[0])}, so the kind of its rows is unknown. --kind text, sft or "
            "preference reads it all the same, and quarantines what is no row"
        )
    wanted = KINDS.get(config.kind, "")
    others = [kind for kind in kinds if kind != wanted]
    if others:
        said = [f"{kind} rows in {shortened([f.name for f in files if f.layout.kind == kind], 3)}" for kind in others]
        pairs = ". Pairs need a chosen and a rejected answer to one prompt, or one answer with a label true or false"
        raise LayoutError(
            f"one dataset has one kind{f', --kind {config.kind}' if wanted else ''}, and some inputs hold something "
            f"else: {'; '.join(said)}. Leave these files out; or name the kind (--kind text, sft or preference), and "
            f"files of folders that hold something else are quarantined{pairs * (wanted == 'preference')}"
        )
    return wanted


def _unreadable(file: SourceFile) -> str:
    """Why no record at the start of a file can be read."""
    records = (found.fields for segment in _segments(file, 0, lambda: 1) for found in _records(segment, file))
    why = next((found for found in records if isinstance(found, RecordError)), None)
    if why is None:
        return "no record is there" if file.bytes else "it is empty"
    convert = "; iconv -f LATIN1 -t UTF-8 FILE > NEW converts Latin-1" if why.reason == "invalid_utf8" else ""
    return f"no record there can be read ({why.detail}{convert})"


# The plan for people.


def _summary(files: list[SourceFile], kind: str, skipped: list[Skipped]) -> list[str]:
    cli = next((name for name, ours in KINDS.items() if ours == kind), kind)
    said = [f"{len(files):,} file{'s'[: len(files) != 1]}, {cli} rows"]
    if len(files) <= LISTED_FILES:
        for file in files:
            beside = file.layout.beside if file.bytes else ()
            kept = f"; kept beside: {shortened(beside, LISTED_FIELDS)}" if beside else ""
            said.append(f"{file.name}: {_read_as(file)}{kept}")
    else:  # by suffix and layout, the most frequent sort first: `9,998 x .md as document, text`
        suffixes = ("".join(PurePath(f.name).suffixes[-2 if f.compression else -1 :]) or "(no suffix)" for f in files)
        sorts = sorted(f"x {suffix} as {_read_as(f)}" for f, suffix in zip(files, suffixes, strict=True))
        said += [f"{n:,} {sort}" for sort, n in Counter(sorts).most_common()]
    for why in sorted({s.why for s in skipped}):
        said.append(f"not read ({why}): {shortened([PurePath(s.path).name for s in skipped if s.why == why], 5)}")
    return said


def _read_as(file: SourceFile) -> str:
    if file.failure:
        return f"not readable, quarantined as one record: {file.failure}"
    if not file.bytes and file.table is None:
        return "empty, makes no row"
    layout = file.layout
    field = f" ({layout.text_field})" if layout.text_field not in ("", FIELD) else ""
    other = "no readable record at its start"
    packed = f", {file.compression}" if file.compression else ""
    return f"{layout.name or other}{field}, {file.format.replace('_', ' ')}{packed}"


# Units: cut by the data alone.


Unit = tuple[Segment, ...]
"""A piece of work: parts of one or more files, about as many uncompressed bytes as a shard. Picklable."""


def groups(plan: Plan) -> list[range]:
    """The places of the files that are read into the same shards: one file, or neighbours where many are small.

    A file of `shard_mb` or more stands alone, and so does every file where there are few. Of many small files about 2,
    4, 8, ... neighbours form a group. A group begins where the hash of a file name says so. Hence a file that is added,
    removed or changed concerns its own group only, unless the number of small files passes a power of two.
    """
    size = plan.config.shard_mb << 20
    weights = [f.text_bytes for f in plan.files]
    small = sum(weight < size for weight in weights)
    mask = (1 << max(small // GROUPS, 1).bit_length() - 1) - 1
    begins, filled = list[int](), 0
    for place, (file, weight) in enumerate(zip(plan.files, weights, strict=True)):
        alone = weight >= size or (place > 0 and weights[place - 1] >= size)
        name_hash = int.from_bytes(hashlib.blake2b(file.name.encode(), digest_size=8).digest(), "little")
        if place == 0 or alone or filled >= size or not name_hash & mask:
            begins.append(place)
            filled = 0
        filled += weight
    return [range(a, b) for a, b in pairwise([*begins, len(plan.files)])]


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
        file = plan.files[index]
        for segment in _segments(file, index, remaining) if file.limit else ():
            if segment.first_record >= file.limit:
                break
            segments.append(segment)
            filled += segment.bytes
            if filled >= size:
                yield tuple(segments)
                segments, filled = [], 0
    if segments:
        yield tuple(segments)


def _segments(
    file: SourceFile, index: int, remaining: streams.Remaining, head: bytes | None = None
) -> Iterator[Segment]:
    """The segments of file number `index`; each has at least the remaining bytes at that time. `head`: only those of
    its first bytes."""
    if file.failure:
        why = RecordError("unreadable_file", file.failure)
        return iter([Segment(index, 0, 1, 0, 0, file.bytes, b"", failure=why)])
    if file.format in columnar.FORMATS:
        return columnar.cut(file, index, remaining)
    find_end = _STREAMS[file.format][0](file)
    return StreamCutter(file, index, remaining, find_end, _BEGINS.get(find_end), head).run()


# Read: the rows of a unit.


def read_unit(unit: Unit, plan: Plan) -> Iterator[RawBatch]:
    """The rows of a unit and its quarantined records, in order, in batches that depend on the data only.

    Raises:
        InputError: a file changed or vanished since it was planned.
    """
    config = plan.config
    mapping, options = user_mapping(config.map, config.roles)
    builder = RowBuilder(plan.kind, plan.segment_source, mapping.get("id", ""), options, plan.columns)
    pages = None
    if any(f.format in web.FORMATS for f in plan.files):
        pages = web.Pages(config.extractor, config.page_timeout_s, config.on_timeout)
    for segment in unit:
        file = plan.files[segment.file]
        builder.begin_file(segment.file, file.name, file.layout)
        records = _records(segment, file, pages)
        while _fill(builder, records, file.limit):
            yield builder.take()
    if builder.rows or builder.bad or builder.notes:
        yield builder.take()


def _fill(builder: RowBuilder, records: Iterator[Record], limit: int) -> bool:
    """Add records up to number `limit` until a batch is full, False where they end before. Python's cycle collector is
    off, since it would visit a million live tuples again and again."""
    paused = gc.isenabled()
    gc.disable()
    try:
        for found in records:
            if found.number >= limit:
                break
            builder.add(found)
            if builder.bytes >= BATCH_BYTES:
                return True
        return False
    finally:
        if paused:
            gc.enable()


def records_of(found: tuple[str, str, int], text_split: str) -> tuple[SourceFile, Iterator[Record]]:
    """(a file that `find` found, all its records in order), whatever its layout: for evaluation sets and scores.

    Text with objects of JSON at its beginning is JSON, whatever the file is called: as one long paragraph, an
    evaluation set would be searched for in vain.

    Raises:
        InputError: it cannot be read, or its bytes are not what its name says.
    """
    file, _ = _inspect(found, text_split)
    if file.format == "text" and (form := record.format_of(head := _head(file).removeprefix(streams.BOM), "")):
        as_json = replace(file, format=form)
        file = as_json if _first_records(as_json, head) else file
    pages = web.Pages("resiliparse") if file.format in web.FORMATS else None
    segments = _segments(file, 0, lambda: 1 << 62)
    return file, (record for segment in segments for record in _records(segment, file, pages))


def _records(segment: Segment, file: SourceFile, pages: web.Pages | None = None) -> Iterator[Record]:
    """The records of a segment; `pages` makes the text of web pages."""
    if why := segment.failure:
        return iter([Record(why, segment.first_record, segment.first_line, segment.start, segment.data or b"")])
    if segment.groups is not None:
        return columnar.read(file, segment)
    data = segment.data
    if data is None:
        with open_binary(file.path) as opened:
            opened.seek(segment.start)
            data = opened.read(segment.stop - segment.start)
        if len(data) != segment.stop - segment.start:
            gone = f"bytes {segment.start} to {segment.stop} are gone"
            raise InputError(f"{file.path}: it changed while it was being read: {gone}")
    more = (pages,) if file.format in web.FORMATS else ()
    return _STREAMS[file.format][1](file, data, segment, *more)
