"""Plain text and Markdown: a document per file, per line or per paragraph. Records are numbered by their first line."""

import re
from collections.abc import Iterator
from typing import Final

from datakit.read.columnar import Cells
from datakit.read.files import Cut, Room, Segment, SourceFile, count_newlines, cut_lines, cut_stream
from datakit.read.json import BLOCK, lines
from datakit.read.layouts.record import MisfitError
from datakit.read.row_builder import MAX_RECORD_BYTES, Converter, Place

FIELD: Final = "text"
"""The field of the records that plain text is made of."""

_BLANK = re.compile(rb"\n[ \t\r]*\n\s*")


def cut(file: SourceFile, index: int, room: Room, split: str) -> Iterator[Segment]:
    """Cut where documents end: nowhere inside a file, at line ends, or after blank lines."""
    if split == "line":
        return cut_lines(file, index, room)
    return cut_stream(file, index, room, _whole if split == "file" else _paragraph_end)


def _whole(data: bytearray, room: int, at_end: bool) -> Cut | None:
    return Cut(len(data), 1, count_newlines(data)) if at_end else None


def _paragraph_end(data: bytearray, room: int, at_end: bool) -> Cut | None:
    match = _BLANK.search(data, max(room - 1, 0))
    if match is None or (match.end() == len(data) and not at_end):
        if not at_end:
            return None
        match = None
    stop = match.end() if match else len(data)
    newlines = count_newlines(memoryview(data)[:stop])
    return Cut(stop, newlines, newlines)


def read(data: bytes, segment: Segment, converter: Converter, split: str) -> Iterator[None]:
    """Put the documents of a segment into the converter's sink; white space around a line or paragraph is left out."""
    pending = BLOCK
    for start, stop, line in _documents(data, split):
        pending += stop - start
        if pending >= BLOCK:
            pending = 0
            yield
        raw = data[start:stop]
        place = Place(segment.first_line + line, segment.first_line + line, segment.start + start)
        try:
            fields = {FIELD: _decode(raw)}
            converter.add(fields, place.record, Cells(fields), len(raw), False)
            converter.sink.ends_badly = False
        except MisfitError as e:
            converter.sink.quarantine(converter.source.name, place, e, raw)
            converter.sink.ends_badly = True


def _documents(data: bytes, split: str) -> Iterator[tuple[int, int, int]]:
    """(start, stop, line) of each document."""
    if split == "file":
        if data.strip():
            yield 0, len(data), 0
    elif split == "line":
        yield from zip(*(a.tolist() for a in lines(data)), strict=True)
    else:
        begin = line = 0
        for match in [*_BLANK.finditer(data), None]:
            stop = match.start() if match else len(data)
            raw = data[begin:stop]
            body = raw.strip()
            if body:
                lead = len(raw) - len(raw.lstrip())
                yield begin + lead, begin + lead + len(body), line + raw[:lead].count(b"\n")
            if match:
                line += data[begin : match.end()].count(b"\n")
                begin = match.end()


def _decode(raw: bytes) -> str:
    if len(raw) > MAX_RECORD_BYTES:
        raise MisfitError("too_long", f"the record has {len(raw):,} bytes, more than {MAX_RECORD_BYTES:,}")
    if b"\0" in raw:
        raise MisfitError("nul_bytes", f"byte {raw.index(0)} of the record is NUL: this is no plain text")
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        raise MisfitError(
            "invalid_utf8", f"byte {e.start} of the record is 0x{raw[e.start]:02x}, which is not UTF-8 there"
        ) from None
