"""CSV and TSV with a header line (RFC 4180): one record a row, every cell a string. Plain text and Markdown: a document
per file, per line or per paragraph, whose number is its first line."""

import csv
import re
import sys
from collections.abc import Iterator
from typing import Final

import numpy as np

from datakit.errors import InputError
from datakit.read import _kernels_records as kernels
from datakit.read.record import Fields, RecordError, decoded
from datakit.read.row_builder import Position, RowBuilder
from datakit.read.streams import FindEnd, Segment, SegmentEnd, SourceFile, Spans, line_end, whole_file

FIELD: Final = "text"
"""The only field of the records that plain text is made of."""
_BLANK_LINES = re.compile(rb"\n[ \t\r]*\n\s*")
_SPACE = b" \t\r\n"


def header_of(head: bytes, name: str) -> tuple[tuple[str, ...], str]:
    """(column names, delimiter): a tab for .tsv, else what the header has most of: comma, semicolon, tab or bar.

    Raises:
        InputError: the header is not UTF-8, is broken, or names a column twice.
    """
    stops = _records(head, ",", 1)[1]
    try:
        text = head[: int(stops[0])].decode() if len(stops) else ""
        delimiter = "\t" if ".tsv" in name.lower() else max(",;\t|", key=text.count)
        columns = tuple(_cells(text, delimiter))
    except (UnicodeDecodeError, csv.Error) as e:
        raise InputError(f"{name}: its first line should be a header of column names: {e}") from e
    twice = next((c for c in columns if columns.count(c) > 1), None)
    if twice is not None:
        raise InputError(f"{name}: the header names column {twice!r} twice; rename one of them")
    return columns, delimiter


class RecordFinder:
    """Finds where records end; see `streams.FindEnd`. The first record of a file is its header and not a row."""

    def __init__(self, file: SourceFile) -> None:
        self.delimiter, self.header = file.delimiter, 1

    def __call__(self, data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
        """See `streams.FindEnd`."""
        if at_end:
            starts, stops, _ = _records(data, self.delimiter, wanted)
            beyond = len(stops) > 0 and stops[-1] >= wanted
            stop = _line_end(data, int(stops[-1])) if beyond else len(data)
        else:
            starts, _, _, stop, _ = kernels.csv_records(_array(data), 0, False, ord(self.delimiter), wanted)
            if stop < wanted:
                return None
        end, self.header = SegmentEnd(stop, len(starts) - self.header), 0
        return end


def read(file: SourceFile, data: bytes, segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """Give the rows of a segment to the builder."""

    def fields(raw: bytes) -> Fields:
        try:
            cells = _cells(decoded(raw), file.delimiter)
        except csv.Error as e:
            raise RecordError("bad_row", f"it is not CSV: {e}") from None
        if len(cells) != len(file.header):
            raise RecordError("bad_row", f"it has {len(cells)} cells, the header {len(file.header)}")
        return dict(zip(file.header, cells, strict=True))

    csv.field_size_limit(sys.maxsize)  # for the whole process; a document is often longer than the default limit
    header = 1 if segment.first_line == 0 else 0
    starts, stops, lines = (a[header:].tolist() for a in _records(data, file.delimiter, len(data) + 1))
    for record, (start, stop, line) in enumerate(zip(starts, stops, lines, strict=True), segment.first_record):
        position = Position(record, segment.first_line + line, segment.start + start)
        builder.read(position, data[start:stop], fields)
        yield


def _cells(text: str, delimiter: str) -> list[str]:
    return next(csv.reader([text], delimiter=delimiter, strict=True), [])


def _records(data: bytes | bytearray, delimiter: str, wanted: int) -> tuple[Spans, ...]:
    """(starts, stops, new lines before) of records, up to the first that ends at or after `wanted`.

    `data` ends where a file or a segment ends. A quote that is never closed costs its line only.
    """
    array, begin, lines = _array(data), 0, 0
    found: list[tuple[Spans, ...]] = [(np.empty(0, np.int64),) * 3]
    while begin < len(array):
        starts, stops, numbers, begin, newlines = kernels.csv_records(array, begin, True, ord(delimiter), wanted)
        found.append((starts, stops, numbers + lines))
        lines += newlines
        if begin >= min(wanted, len(array)):
            break
        stop = _line_end(data, begin)
        end = len(data[begin:stop].rstrip(b"\r\n"))
        found.append((np.array([begin]), np.array([begin + end]), np.array([lines])))
        lines, begin = lines + 1, stop
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))


def _array(data: bytes | bytearray) -> Spans:
    return np.frombuffer(memoryview(data).toreadonly(), np.uint8)


def _line_end(data: bytes | bytearray, begin: int) -> int:
    """One past the next new line, or the end."""
    return data.find(b"\n", begin) + 1 or len(data)


# Plain text.


def text_end(file: SourceFile) -> FindEnd:
    """Where documents end: at the file's end, at line ends, or after blank lines."""
    return {"file": whole_file, "line": line_end, "paragraph": _paragraph_end}[file.text_split]


def _paragraph_end(data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
    match = _BLANK_LINES.search(data, max(wanted - 1, 0))
    if (match is None or match.end() == len(data)) and not at_end:  # more blank lines may follow
        return None
    return SegmentEnd(match.end() if match else len(data))


def read_text(file: SourceFile, data: bytes, segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """Give the documents of a segment to the builder, lines and paragraphs without the white space around them."""

    def fields(raw: bytes) -> Fields:
        if b"\0" in raw:
            raise RecordError("nul_bytes", f"byte {raw.index(0)} of the record is NUL: this is no plain text")
        return {FIELD: decoded(raw)}

    for start, stop, line in _documents(data, file.text_split):
        number = segment.first_line + line
        builder.read(Position(number, number, segment.start + start), data[start:stop], fields)
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
            stop = after = _line_end(data, begin)
        else:
            match = _BLANK_LINES.search(data, begin)
            stop, after = match.span() if match else (len(data), len(data))
        part = data[begin:stop]
        if body := part.strip(space):
            lead = len(part) - len(part.lstrip(space))
            yield begin + lead, begin + lead + len(body), line + part.count(b"\n", 0, lead)
        line += data.count(b"\n", begin, after)
        begin = after
