"""Deciding how each input file is read: its format from its first bytes, its layout from its first records."""

import gc
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath

from datakit.data import KINDS
from datakit.errors import InputError, LayoutError
from datakit.read import columnar, csv, json, text
from datakit.read.files import (
    BOM,
    BrokenStreamError,
    Cutter,
    Segment,
    Skipped,
    SourceFile,
    blocks,
    compression_of,
    find,
    open_binary,
    suffixes_of,
)
from datakit.read.layouts.recognise import LAYOUTS, Choice, choose
from datakit.read.layouts.record import Fields, MisfitError
from datakit.read.row_builder import Batch, Converter, Place, Sink, Source
from datakit.read.stage import IngestConfig
from datakit.read.text import FIELD

HEAD_BYTES = 4 << 20
_CLI_NAMES = {kind: name for name, kind in KINDS.items()}
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[")
_END = object()
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is read: the sorted files, each one's layout, and the kind of row that all of them make."""

    files: tuple[SourceFile, ...]
    layouts: tuple[Choice, ...]
    kind: str
    segment_source: str
    config: IngestConfig
    skipped: tuple[Skipped, ...]
    """Files and folders in the given folders that are not read, and why."""
    summary: tuple[str, ...]
    """Lines that tell people what was found."""


def plan(inputs: Sequence[str], config: IngestConfig) -> Plan:
    """Find the files and decide their layouts, from the first records of each.

    Raises:
        InputError: no input, a missing or unreadable file, a file of an unknown format.
        LayoutError: records that fit no layout, or files of different kinds.
    """
    found, skipped = find(inputs)
    files, layouts = [], []
    for path, name, size in found:
        file, head = _inspect(path, name, size)
        files.append(file)
        layouts.append(_layout(file, head, config))
    kind = _kind(files, layouts, config)
    layouts = [c if c.kind in (kind, "") else Choice("", "", other_kind=c.kind) for c in layouts]
    made = Plan(tuple(files), tuple(layouts), kind, _segment_source(kind, config), config, tuple(skipped), ())
    return replace(made, summary=tuple(_summary(made)))


def _inspect(path: str, name: str, size: int) -> tuple[SourceFile, list[Fields]]:
    """A file's format and compression, and its first records (plain text: none)."""
    with open_binary(path) as opened:
        magic = opened.read(8)
    compression = compression_of(magic)
    file = SourceFile(path, name, suffixes_of(name)[0], compression, size)
    columns = _by_magic(magic) or (file.format if file.format in ("parquet", "arrow") else "")
    if columns:
        if compression:
            raise InputError(f"{path}: a compressed {columns} file cannot be read in parts; decompress it first")
        file = replace(file, format=columns)
        return file, columnar.head(file, json.HEAD_RECORDS)
    return _inspect_stream(file, _head(file))


def _by_magic(magic: bytes) -> str:
    if magic.startswith(b"PAR1"):
        return "parquet"
    if magic.startswith(b"ARROW1"):
        return "arrow"
    return "arrow_stream" if magic.startswith(b"\xff\xff\xff\xff") else ""


def _inspect_stream(file: SourceFile, head: bytes) -> tuple[SourceFile, list[Fields]]:
    if head.startswith(_UTF16):
        raise InputError(
            f"{file.path}: it is UTF-16, and only UTF-8 is read; convert it first, for example with "
            "iconv -f UTF-16 -t UTF-8 FILE > NEW"
        )
    head = head.removeprefix(BOM)
    if file.format == "csv":
        header, delimiter = csv.header_of(head, file.name)
        return replace(file, header=header, delimiter=delimiter), [dict.fromkeys(header, "x")] if header else []
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
    """The first bytes, uncompressed: some megabytes, and at least one whole record if there is one.

    Where they are records, a line each, those that are looked at are enough.
    """
    head, wanted = bytearray(), json.FIRST_BYTES
    with suppress(BrokenStreamError):
        for block in blocks(file, json.FIRST_BYTES):
            head += block
            if len(head) >= wanted:
                if wanted < HEAD_BYTES and _begins_with_lines(head):
                    break
                if wanted >= HEAD_BYTES and _holds_a_record(head):
                    break
                wanted *= 2
    return bytes(head)


def _begins_with_lines(head: bytearray) -> bool:
    rows = json.first_lines(bytes(head[: json.FIRST_BYTES]))
    return len(rows) >= json.HEAD_RECORDS and type(json.value_of(rows[0].removeprefix(BOM))) is dict


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


def _layout(file: SourceFile, head: list[Fields], config: IngestConfig) -> Choice:
    if file.format == "text":
        return Choice("document", "document", FIELD)
    if not head and config.layout == "auto":
        return Choice("", "")
    kind = KINDS.get(config.kind, "auto")
    found = choose(head, kind, config.layout, config.text_field)
    if found is None:
        fields = Counter(name for f in head for name in f)
        seen = ", ".join(name for name, _ in fields.most_common(12))
        known = "; ".join(f"{x.name} ({x.about})" for x in LAYOUTS)
        wanted = f" with text in {config.text_field!r}" if config.text_field else ""
        raise LayoutError(
            f"{file.path}: the fields of its records ({seen}) fit no known layout{wanted}. Known are: {known}. "
            "Name the field that holds the text with --text-field, or force a layout with --layout"
        )
    return found


def _kind(files: list[SourceFile], layouts: list[Choice], config: IngestConfig) -> str:
    """The kind of row that all files make, or the one asked for.

    Raises:
        LayoutError: files of another kind.
        InputError: nothing says which kind it is.
    """
    kinds = sorted({c.kind for c in layouts if c.kind})
    if config.kind == "auto":
        if not kinds:
            raise InputError(f"{files[0].path}: no record can be read there that tells its kind; name it with --kind")
        if len(kinds) > 1:
            raise LayoutError(
                f"the inputs hold rows of different kinds: {_by_kind(files, layouts, kinds)}. "
                "One dataset has one kind: leave out the others, or name the kind with --kind text, sft or preference"
            )
        return kinds[0]
    wanted = KINDS[config.kind]
    if kinds and all(k.startswith("tokens") for k in kinds) and len(kinds) == 1:
        return kinds[0]
    others = [k for k in kinds if k != wanted]
    if others and config.other_kinds == "refuse":
        raise LayoutError(
            f"--kind {config.kind} was asked for, and some inputs hold something else: "
            f"{_by_kind(files, layouts, others)}. Leave these files out, "
            "or set other_kinds to quarantine to set their rows aside"
            + (". Pairs need a chosen and a rejected answer to one prompt" if wanted == "preference" else "")
        )
    return wanted


def _by_kind(files: list[SourceFile], layouts: list[Choice], kinds: list[str]) -> str:
    said = []
    for kind in kinds:
        names = [f.name for f, c in zip(files, layouts, strict=True) if c.kind == kind]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        said.append(f"{kind} rows in {', '.join(names[:3])}{more}")
    return "; ".join(said)


def _segment_source(kind: str, config: IngestConfig) -> str:
    """What token ids were made from, as far as it can be known."""
    if kind == "tokens_preference":
        return "preference"
    return KINDS.get(config.kind, "document").replace("document", "text")


def _summary(plan: Plan) -> list[str]:
    cli = _CLI_NAMES.get(plan.kind, plan.kind)
    said = [f"{len(plan.files)} file{'s'[: len(plan.files) != 1]}, {cli} rows"]
    for file, choice in zip(plan.files, plan.layouts, strict=True):
        field = f" ({choice.text_field})" if choice.layout == "document" and choice.text_field != FIELD else ""
        other = f"{choice.other_kind} rows, all quarantined" if choice.other_kind else "no readable record at its start"
        packed = f", {file.compression}" if file.compression else ""
        said.append(f"{file.name}: {choice.layout or other}{field}, {file.format.replace('_', ' ')}{packed}")
    for why in sorted({s.why for s in plan.skipped}):
        names = [PurePath(s.path).name for s in plan.skipped if s.why == why]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        said.append(f"not read ({why}): {', '.join(names[:5])}{more}")
    return said


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of work: parts of one or more files, about as many uncompressed bytes as a shard. Picklable."""

    index: int
    segments: tuple[Segment, ...]

    @property
    def bytes(self) -> int:
        """Uncompressed bytes."""
        return sum(s.bytes for s in self.segments)


class _Assembly:
    """Segments on their way into units of at least `size` bytes each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.segments: list[Segment] = []
        self.filled = 0
        self.index = 0

    def room(self) -> int:
        return self.size - self.filled

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.filled += segment.bytes

    def take(self) -> Unit:
        made = Unit(self.index, tuple(self.segments))
        self.segments, self.filled, self.index = [], 0, self.index + 1
        return made


def assemble(files: list[tuple[SourceFile, Cutter]], size: int) -> Iterator[Unit]:
    """The units of all files, in order. A unit ends with the first record at which it has `size` bytes or more."""
    assembly = _Assembly(size)
    for index, (file, cut) in enumerate(files):
        for segment in cut(file, index, assembly.room):
            assembly.add(segment)
            if assembly.room() <= 0:
                yield assembly.take()
    if assembly.segments:
        yield assembly.take()


def units(plan: Plan) -> Iterator[Unit]:
    """The work units of a plan in order: a function of the files' bytes and the configuration alone.

    Plain files are read once to find record ends and numbers; compressed ones are decompressed, and their bytes travel
    in the unit.
    """
    return assemble([(f, cutter(f, plan.config)) for f in plan.files], plan.config.shard_mb << 20)


def cutter(file: SourceFile, config: IngestConfig) -> Cutter:
    """How a file of this format is cut."""
    cutters: dict[str, Cutter] = {
        "jsonl": json.cut,
        "json": json.cut_array,
        "json_objects": json.cut_objects,
        "csv": csv.cut,
        "text": partial(text.cut, split=config.text_split),
    }
    return cutters.get(file.format, columnar.cut)


def read_unit(unit: Unit, plan: Plan) -> Iterator[Batch]:
    """The rows of a unit and the records that could not become rows, in order, in batches cut by the data alone.

    Raises:
        InputError: a file changed or vanished since it was planned.
    """
    sink = Sink(plan.kind, plan.segment_source)
    for segment in unit.segments:
        file = plan.files[segment.file]
        source = Source(segment.file, file.name, plan.layouts[segment.file], plan.config.id_field)
        sink.ends_badly = False
        steps = _records(segment, file, plan, Converter(source, sink))
        while _advance(steps):
            if sink.full:
                yield sink.take()
        if segment.failure:
            end = Place(segment.first_record, segment.first_line, segment.stop)
            sink.broken_off(file.name, end, MisfitError(*segment.failure))
    if not sink.empty:
        yield sink.take()


def _advance(steps: Iterator[None]) -> bool:
    """One step with the cycle collector paused: it would walk a million live tuples again and again, none a cycle."""
    paused = gc.isenabled()
    gc.disable()
    try:
        return next(steps, _END) is None
    finally:
        if paused:
            gc.enable()


def _records(segment: Segment, file: SourceFile, plan: Plan, converter: Converter) -> Iterator[None]:
    if segment.groups is not None:
        return columnar.read(file, segment, converter)
    data = _bytes(segment, file)
    if file.format == "jsonl":
        return json.read(data, segment, converter)
    if file.format == "csv":
        return csv.read(file, data, segment, converter)
    if file.format == "text":
        return text.read(data, segment, converter, plan.config.text_split)
    return json.read_values(data, segment, converter)


def _bytes(segment: Segment, file: SourceFile) -> bytes:
    if segment.data is not None:
        return segment.data
    with open_binary(file.path) as opened:
        opened.seek(segment.start)
        data = opened.read(segment.bytes)
    if len(data) != segment.bytes:
        raise InputError(
            f"{file.path}: it changed while it was being read: bytes {segment.start} to {segment.stop} are gone"
        )
    return data
