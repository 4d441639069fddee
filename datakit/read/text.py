"""Plain text and Markdown: a document per file, per line or per paragraph. A record's number is its first line."""

import re
from collections.abc import Iterator
from typing import Final

from datakit.read.record import Fields, RecordError, decoded
from datakit.read.row_builder import Position, RowBuilder
from datakit.read.streams import (
    Remaining,
    Segment,
    SegmentEnd,
    SourceFile,
    count_newlines,
    cut_lines,
    cut_stream,
    whole_file,
)

FIELD: Final = "text"
"""The only field of the records that plain text is made of."""

_BLANK_LINES = re.compile(rb"\n[ \t\r]*\n\s*")
_SPACE = b" \t\r\n"


def cut(file: SourceFile, index: int, remaining: Remaining, split: str) -> Iterator[Segment]:
    """Cut where documents end: at the file's end, at line ends, or after blank lines."""
    if split == "line":
        return cut_lines(file, index, remaining)
    return cut_stream(file, index, remaining, whole_file if split == "file" else _paragraph_end)


def _paragraph_end(data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
    match = _BLANK_LINES.search(data, max(wanted - 1, 0))
    if (match is None or match.end() == len(data)) and not at_end:  # more blank lines may follow
        return None
    stop = match.end() if match else len(data)
    newlines = count_newlines(memoryview(data)[:stop])
    return SegmentEnd(stop, newlines, newlines)


def read(data: bytes, segment: Segment, builder: RowBuilder, split: str) -> Iterator[None]:
    """Give the documents of a segment to the builder, lines and paragraphs without the white space around them."""
    for start, stop, line in _documents(data, split):
        number = segment.first_line + line
        builder.read(Position(number, number, segment.start + start), data[start:stop], _fields)
        yield


def _documents(data: bytes, split: str) -> Iterator[tuple[int, int, int]]:
    """(start, stop, line) of each document."""
    if split == "file":
        if data.strip():
            yield 0, len(data), 0
        return
    space = _SPACE if split == "line" else None
    begin = line = 0
    while begin < len(data):
        if split == "line":
            stop = after = data.find(b"\n", begin) + 1 or len(data)
        else:
            match = _BLANK_LINES.search(data, begin)
            stop, after = match.span() if match else (len(data), len(data))
        part = data[begin:stop]
        body = part.strip(space)
        if body:
            lead = len(part) - len(part.lstrip(space))
            yield begin + lead, begin + lead + len(body), line + part.count(b"\n", 0, lead)
        line += data.count(b"\n", begin, after)
        begin = after


def _fields(raw: bytes) -> Fields:
    if b"\0" in raw:
        raise RecordError("nul_bytes", f"byte {raw.index(0)} of the record is NUL: this is no plain text")
    return {FIELD: decoded(raw)}
