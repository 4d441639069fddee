"""CSV and TSV with a header line (RFC 4180): one record a row, every cell a string."""

import csv
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import numpy as np

from datakit.errors import InputError
from datakit.read import _kernels_records as kernels
from datakit.read.record import Fields, RecordError, decoded
from datakit.read.row_builder import Position, RowBuilder
from datakit.read.streams import Remaining, Segment, SegmentEnd, SourceFile, Spans, count_newlines, cut_stream

HEAD_BYTES: Final = 1 << 19
"""The first records are looked for in so many bytes, or in one record that is longer."""


def header_of(head: bytes, name: str) -> tuple[tuple[str, ...], str]:
    """(column names, delimiter): a tab for .tsv, else what the header has most of: comma, semicolon, tab or bar.

    Raises:
        InputError: the header is not UTF-8, is broken, or names a column twice.
    """
    stops = _records(head, ",", 1)[1]
    line = head[: int(stops[0])] if len(stops) else b""
    try:
        text = line.decode()
        delimiter = "\t" if ".tsv" in name.lower() else max(",;\t|", key=text.count)
        columns = tuple(_cells(text, delimiter))
    except (UnicodeDecodeError, csv.Error) as e:
        raise InputError(f"{name}: its first line should be a header of column names: {e}") from e
    twice = next((c for c in columns if columns.count(c) > 1), None)
    if twice is not None:
        raise InputError(f"{name}: the header names column {twice!r} twice; rename one of them")
    return columns, delimiter


def first_records(file: SourceFile, head: bytes, count: int) -> list[Fields]:
    """The first records of a file that can be read, at most `count`, from its first bytes."""
    csv.field_size_limit(sys.maxsize)
    starts, stops, _ = _records(head, file.delimiter, min(len(head), HEAD_BYTES) + 1)
    rows = list[Fields]()
    for start, stop in list(zip(starts.tolist(), stops.tolist(), strict=True))[1 : count + 1]:
        with suppress(RecordError):
            rows.append(_fields(head[start:stop], file))
    return rows


def cut(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    """Cut between records; a quoted cell may hold new lines."""
    return cut_stream(file, index, remaining, _RecordFinder(file.delimiter))


class _RecordFinder:
    """Finds where records end; see `streams.FindEnd`. The first record of a file is its header and not a row."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.header = 1

    def __call__(self, data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
        if at_end:
            starts, stops, _ = _records(data, self.delimiter, wanted)
            beyond = len(stops) > 0 and stops[-1] >= wanted
            stop = _line_end(data, int(stops[-1])) if beyond else len(data)
        else:
            starts, _, _, stop, _ = kernels.csv_records(_array(data), 0, False, ord(self.delimiter), wanted)
            if stop < wanted:
                return None
        end = SegmentEnd(stop, len(starts) - self.header, count_newlines(memoryview(data)[:stop]))
        self.header = 0
        return end


def read(file: SourceFile, data: bytes, segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """Give the rows of a segment to the builder."""
    csv.field_size_limit(sys.maxsize)  # for the whole process; a document is often longer than the default limit
    starts, stops, lines = (a.tolist() for a in _records(data, file.delimiter, len(data) + 1))
    header = 1 if segment.first_line == 0 else 0
    records = zip(starts[header:], stops[header:], lines[header:], strict=True)
    for record, (start, stop, line) in enumerate(records, segment.first_record):
        position = Position(record, segment.first_line + line, segment.start + start)
        builder.read(position, data[start:stop], lambda raw: _fields(raw, file))
        yield


def _fields(raw: bytes, file: SourceFile) -> Fields:
    try:
        cells = _cells(decoded(raw), file.delimiter)
    except csv.Error as e:
        raise RecordError("bad_row", f"it is not CSV: {e}") from None
    if len(cells) != len(file.header):
        raise RecordError("bad_row", f"it has {len(cells)} cells, the header {len(file.header)}")
    return dict(zip(file.header, cells, strict=True))


def _cells(text: str, delimiter: str) -> list[str]:
    rows = list(csv.reader([text], delimiter=delimiter, strict=True))
    return rows[0] if rows else []


def _records(data: bytes | bytearray, delimiter: str, wanted: int) -> tuple[Spans, Spans, Spans]:
    """(starts, stops, new lines before) of records, up to the first that ends at or after `wanted`.

    `data` ends where a file or a segment ends. A quote that is never closed costs its line only.
    """
    array, begin, lines = _array(data), 0, 0
    found: list[tuple[Spans, Spans, Spans]] = []
    while begin < len(array):
        starts, stops, numbers, pos, newlines = kernels.csv_records(array, begin, True, ord(delimiter), wanted)
        found.append((starts, stops, numbers + lines))
        lines, begin = lines + newlines, pos
        if begin >= min(wanted, len(array)):
            break
        stop = _line_end(data, begin)
        end = len(data[begin:stop].rstrip(b"\r\n"))
        found.append((np.array([begin]), np.array([begin + end]), np.array([lines])))
        lines, begin = lines + 1, stop
    if not found:
        return (np.empty(0, np.int64),) * 3
    starts, stops, numbers = (np.concatenate(c) for c in zip(*found, strict=True))
    return starts, stops, numbers


def _array(data: bytes | bytearray) -> Spans:
    return np.frombuffer(memoryview(data).toreadonly(), np.uint8)


def _line_end(data: bytes | bytearray, begin: int) -> int:
    """One past the next new line, or the end."""
    return data.find(b"\n", begin) + 1 or len(data)
