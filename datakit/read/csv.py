"""CSV and TSV with a header line (RFC 4180): one record a row, every cell a string. Plain text and Markdown: a document
per file, per line or per paragraph, whose number is its first line."""

import csv
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Final

from datakit.errors import InputError
from datakit.read.record import Fields, Record, decoded, parsed
from datakit.read.streams import (
    FindEnd,
    RecordError,
    Segment,
    SegmentEnd,
    SourceFile,
    line_end,
    refuse_twice,
    whole_file,
)

FIELD: Final = "text"
"""The only field of the records that plain text is made of."""
_SPACE: Final = b" \t\r\n"


def header_of(head: bytes, name: str) -> tuple[tuple[str, ...], str]:
    """(column names, delimiter): a tab for .tsv, else what the header has most of: comma, semicolon, tab or bar.

    Raises:
        InputError: the header is not UTF-8, is broken, or names a column twice.
    """
    first = next((slice(a, b) for a, b, _ in _records(head, ",") if b > a), slice(0))
    try:
        text = head[first].decode()
        delimiter = "\t" if ".tsv" in name.lower() else max(",;\t|", key=text.count)
        columns = tuple(_cells(text, delimiter))
    except (UnicodeDecodeError, csv.Error) as e:
        if isinstance(e, csv.Error) and b"\r" in head[first]:
            said = "its lines end with CR, and LF or CRLF is read; convert it first: tr '\\r' '\\n' < FILE > NEW"
            raise InputError(f"{name}: {said}") from e
        raise InputError(f"{name}: its first line should be a header of column names: {e}") from e
    refuse_twice(columns, f"{name}: the header")
    return columns, delimiter


class RecordFinder:
    """Finds where records end; see `streams.FindEnd`. The first record of a file is its header and not a row."""

    def __init__(self, file: SourceFile) -> None:
        self.delimiter, self.header = file.delimiter, 1

    def __call__(self, data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
        """See `streams.FindEnd`."""
        records, end = -self.header, 0
        for start, stop, end in _records(data, self.delimiter, at_end):
            records += stop > start
            if end >= wanted:
                break
        if end < wanted and not at_end:
            return None
        self.header = 0
        return SegmentEnd(end, records)


def read(file: SourceFile, data: bytes, segment: Segment) -> Iterator[Record]:
    """The rows of a segment."""

    def fields(raw: bytes) -> Fields:
        try:
            cells = _cells(decoded(raw), file.delimiter)
        except csv.Error as e:
            raise RecordError("bad_row", f"it is not CSV: {e}") from None
        if len(cells) != len(file.header):
            raise RecordError("bad_row", f"it has {len(cells)} cells, the header {len(file.header)}")
        return dict(zip(file.header, cells, strict=True))

    csv.field_size_limit(sys.maxsize)  # for the whole process; a document is often longer than the default limit
    number, line, counted = segment.first_record - (segment.first_line == 0), segment.first_line, 0
    for start, stop, _ in _records(data, file.delimiter):
        if stop > start:
            line, counted = line + data.count(b"\n", counted, start), start
            if number >= segment.first_record:  # the header is before it
                yield parsed(data[start:stop], fields, number, line, segment.start + start)
            number += 1


def _cells(text: str, delimiter: str) -> list[str]:
    return next(csv.reader([text], delimiter=delimiter, strict=True), [])


@cache
def _record(delimiter: str) -> re.Pattern[bytes]:
    """A record with its line end. A quote opens a cell only at the cell's beginning; "" inside of it means one quote.
    Nothing is tried twice: `*+` gives nothing back."""
    other = rb"[^\n%b]*+" % re.escape(delimiter).encode()
    cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"%b|(?!")%b)' % (other, other)
    return re.compile(rb"%b(?:%b%b)*+(?:\n|\Z)" % (cell, re.escape(delimiter).encode(), cell))


def _records(data: bytes | bytearray, delimiter: str, at_end: bool = True) -> Iterator[tuple[int, int, int]]:
    """(start, stop, end) of each record without and with its line end; `start == stop` for blank lines, which are no
    records. A quote that is never closed costs its line only. Without `at_end`, up to the last line end."""
    start = 0
    while start < len(data):
        found = _record(delimiter).match(data, start)
        if not at_end and (found is None or not data.endswith(b"\n", start, found.end())):
            return
        end = found.end() if found else data.find(b"\n", start) + 1 or len(data)
        stop = end - data.endswith(b"\n", start, end)
        yield start, stop - data.endswith(b"\r", start, stop), end
        start = end


# Plain text.

_SEPARATORS: Final = {
    "file": re.compile(rb"(?!)"),
    "line": re.compile(rb"\n"),
    "paragraph": re.compile(rb"\n[ \t\r]*\n\s*"),
}
"""What stands between two documents of a file."""


def text_end(file: SourceFile) -> FindEnd:
    """Where documents end: at the file's end, at line ends, or after blank lines."""
    return {"file": whole_file, "line": line_end, "paragraph": _paragraph_end}[file.text_split]


def _paragraph_end(data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
    match = _SEPARATORS["paragraph"].search(data, max(wanted - 1, 0))
    if (match is None or match.end() == len(data)) and not at_end:  # more blank lines may follow
        return None
    return SegmentEnd(match.end() if match else len(data))


def read_text(file: SourceFile, data: bytes, segment: Segment) -> Iterator[Record]:
    """The documents of a segment that are not blank, lines and paragraphs without the white space around them."""

    def fields(raw: bytes) -> Fields:
        if b"\0" in raw:
            raise RecordError("nul_bytes", f"byte {raw.index(0)} of the record is NUL: this is no plain text")
        return {FIELD: decoded(raw)}

    begin, line, space = 0, segment.first_line, _SPACE if file.text_split == "line" else None
    gaps = (gap.span() for gap in _SEPARATORS[file.text_split].finditer(data))
    for stop, after in chain(gaps, [(len(data), len(data))]):
        part = data[begin:stop]
        lead = 0 if file.text_split == "file" else len(part) - len(part.lstrip(space))
        if body := part.strip(space):
            number = line + part.count(b"\n", 0, lead)
            raw = part if file.text_split == "file" else body
            yield parsed(raw, fields, number, number, segment.start + begin + lead)
        line, begin = line + data.count(b"\n", begin, after), after
