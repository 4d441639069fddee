"""Deciding how each input file is read: its format from its first bytes, its layout from its first records."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath

from datakit.errors import InputError, LayoutError
from datakit.layouts.recognise import LAYOUTS, Choice, choose
from datakit.layouts.record import Fields, MisfitError
from datakit.read import columnar, csv_rows, json_records, json_values
from datakit.read.files import SourceFile, find, open_binary, suffixes_of
from datakit.read.scan import lines
from datakit.read.stage import IngestConfig, Plan
from datakit.read.streams import BrokenStreamError, blocks, compression_of
from datakit.read.text import FIELD
from datakit.read.units import BOM
from datakit.schema import KINDS

HEAD_RECORDS = 100
HEAD_BYTES = 4 << 20
FIRST_BYTES = 1 << 19
_CLI_NAMES = {kind: name for name, kind in KINDS.items()}
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def make_plan(inputs: Sequence[str], config: IngestConfig) -> Plan:
    """See `stage.plan`."""
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
        return file, columnar.head(file, HEAD_RECORDS)
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
        header, delimiter = csv_rows.header_of(head, file.name)
        return replace(file, header=header, delimiter=delimiter), [dict.fromkeys(header, "x")] if header else []
    if file.format == "text":
        return file, []
    found = _json_format(head, file.format) or ("jsonl" if file.format == "jsonl" and not _looks_binary(head) else "")
    if not found:
        if file.format or _looks_binary(head):
            known = "JSON" if file.format else "any format that is read"
            raise InputError(f"{file.path}: it is not {known}: it begins with {head[:24]!r}")
        return replace(file, format="text"), []
    return replace(file, format=found), _json_head(head, found)


def _head(file: SourceFile) -> bytes:
    """The first bytes, uncompressed: some megabytes, and at least one whole record if there is one.

    Where they are records, a line each, those that are looked at are enough.
    """
    head, wanted = bytearray(), FIRST_BYTES
    with suppress(BrokenStreamError):
        for block in blocks(file, FIRST_BYTES):
            head += block
            if len(head) >= wanted:
                if wanted < HEAD_BYTES and _begins_with_lines(head):
                    break
                if wanted >= HEAD_BYTES and _holds_a_record(head):
                    break
                wanted *= 2
    return bytes(head)


def _begins_with_lines(head: bytearray) -> bool:
    rows = _lines(bytes(head[:FIRST_BYTES]))
    return len(rows) >= HEAD_RECORDS and type(_value(rows[0].removeprefix(BOM))) is dict


def _holds_a_record(head: bytearray) -> bool:
    if _ARRAY.match(head):
        return bool(_json_head(bytes(head), "json"))
    return b"\n" in head


def _looks_binary(head: bytes) -> bool:
    begin = head[: 1 << 16]
    try:
        begin.decode()
    except UnicodeDecodeError as e:
        return b"\0" in begin or e.start < len(begin) - 4
    return b"\0" in begin


def _json_format(head: bytes, suffix: str) -> str:
    """jsonl, json (an array) or json_objects (one after another); "" for what begins like neither.

    An array that is JSON by itself on the first line means lines if there are more.
    """
    body, rows = head.lstrip(), _lines(head)
    good = sum(type(_value(r)) is dict for r in rows)
    if not body:
        return "jsonl"
    if body.startswith(b"["):
        alone = _value(rows[0]) is not None
        others = any(_value(r) is not None for r in rows[1:])
        as_lines = others if alone else suffix == "jsonl" and good > len(rows) // 2
        return "jsonl" if as_lines else "json"
    if not good and body.startswith(b"{") and body[1:].lstrip().startswith(b'"'):
        return "json_objects"
    return "jsonl" if good or any(r[:1] in (b"{", b"[") for r in rows) else ""


def _json_head(head: bytes, form: str) -> list[Fields]:
    """The first records that can be parsed."""
    if form == "jsonl":
        rows = _lines(head)
    else:
        finder, data = json_values.Finder(in_array=form == "json"), bytearray(head)
        cut = finder(data, 1 << 62, True)
        spans = cut.spans[:HEAD_RECORDS].tolist() if cut is not None and cut.spans is not None else []
        rows = [head[start:stop] for start, stop, _ in spans]
    values = [_value(r) for r in rows]
    return [v for v in values if type(v) is dict]


def _lines(head: bytes) -> list[bytes]:
    """The first lines that are not blank; most often they stand at the very beginning of some megabytes."""
    begin = head[: head.rfind(b"\n", 0, FIRST_BYTES) + 1]
    starts, stops, _ = lines(begin)
    if len(starts) < HEAD_RECORDS:
        starts, stops, _ = lines(head)
    return [head[a:b] for a, b in zip(starts[:HEAD_RECORDS].tolist(), stops[:HEAD_RECORDS].tolist(), strict=True)]


def _value(row: bytes) -> object:
    try:
        return json_records.parse(row)
    except MisfitError:
        return None


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
