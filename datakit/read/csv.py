"""CSV and TSV with a header line (RFC 4180): one record a row, every cell a string."""

import csv
import sys
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from datakit.errors import InputError
from datakit.native import Kernels
from datakit.read.columnar import Cells
from datakit.read.files import Cut, Room, Segment, SourceFile, count_newlines, cut_stream
from datakit.read.layouts.record import Fields, MisfitError
from datakit.read.row_builder import Converter, Place

kernels: Final = Kernels("datakit.read._kernels_records")
Found = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


class _Finder:
    """Finds record ends; the first record of a file is its header and no row."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.header = 1

    def __call__(self, data: bytearray, room: int, at_end: bool) -> Cut | None:
        """The first record's end at or past the room; see `files.Find`."""
        if at_end:
            starts, stops, _ = _records(data, self.delimiter, room)
            beyond = len(stops) > 0 and stops[-1] >= room
            stop = _line_end(data, int(stops[-1])) if beyond else len(data)
        else:
            starts, _, _, stop, _ = kernels.csv_records(
                np.frombuffer(data, np.uint8), 0, False, ord(self.delimiter), room
            )
            if stop < room:
                return None
        made = Cut(stop, len(starts) - self.header, count_newlines(memoryview(data)[:stop]))
        self.header = 0
        return made


def cut(file: SourceFile, index: int, room: Room) -> Iterator[Segment]:
    """Cut between records; a quoted cell may hold new lines."""
    return cut_stream(file, index, room, _Finder(file.delimiter))


def header_of(head: bytes, name: str) -> tuple[tuple[str, ...], str]:
    """(column names, delimiter): a tab for .tsv, else a comma, or where the header has none a semicolon or a tab.

    Raises:
        InputError: the header is not UTF-8, is broken, or names a column twice.
    """
    stops = _records(head, ",", 1)[1]
    line = head[: int(stops[0])] if len(stops) else b""
    try:
        text = line.decode()
        given = "\t" if ".tsv" in name.lower() else next((d for d in ",;\t" if d in text), ",")
        columns = tuple(_cells(text, given))
    except (UnicodeDecodeError, csv.Error) as e:
        raise InputError(f"{name}: its first line should be a header of column names: {e}") from e
    twice = next((c for c in columns if columns.count(c) > 1), None)
    if twice is not None:
        raise InputError(f"{name}: the header names column {twice!r} twice; rename one of them")
    return columns, given


def read(file: SourceFile, data: bytes, segment: Segment, converter: Converter) -> Iterator[None]:
    """Put the rows of a segment into the converter's sink."""
    csv.field_size_limit(sys.maxsize)  # the limit is the process's; a document is often longer than its default
    starts, stops, lines = (a.tolist() for a in _records(data, file.delimiter, len(data) + 1))
    skip = 1 if segment.first_line == 0 else 0
    for i in range(skip, len(starts)):
        if (i - skip) % 256 == 0:
            yield
        raw, record = data[starts[i] : stops[i]], segment.first_record + i - skip
        try:
            fields = _fields(raw, file)
            converter.add(fields, record, Cells(fields), len(raw), False)
            converter.sink.ends_badly = False
        except MisfitError as e:
            place = Place(record, segment.first_line + lines[i], segment.start + starts[i])
            converter.sink.quarantine(converter.source.name, place, e, raw)
            converter.sink.ends_badly = True


def _fields(raw: bytes, file: SourceFile) -> Fields:
    try:
        cells = _cells(raw.decode(), file.delimiter)
    except UnicodeDecodeError as e:
        raise MisfitError(
            "invalid_utf8", f"byte {e.start} of the record is 0x{raw[e.start]:02x}, which is not UTF-8 there"
        ) from None
    except csv.Error as e:
        raise MisfitError("bad_row", f"it is not CSV: {e}") from None
    if len(cells) != len(file.header):
        raise MisfitError("bad_row", f"it has {len(cells)} cells, the header {len(file.header)}")
    return dict(zip(file.header, cells, strict=True))


def _cells(text: str, delimiter: str) -> list[str]:
    rows = list(csv.reader([text], delimiter=delimiter, strict=True))
    return rows[0] if rows else []


def _records(data: bytes | bytearray, delimiter: str, room: int) -> Found:
    """Records of bytes that end where a file or a segment does. A quote that never closes costs its line only."""
    array, begin, lines = np.frombuffer(data, np.uint8), 0, 0
    found: list[Found] = []
    while begin < len(array):
        starts, stops, numbers, pos, newlines = kernels.csv_records(array, begin, True, ord(delimiter), room)
        found.append((starts, stops, numbers + lines))
        lines, begin = lines + newlines, pos
        if begin >= min(room, len(array)):
            break
        stop = _line_end(data, begin)
        end = len(data[begin:stop].rstrip(b"\r\n"))
        found.append((np.array([begin]), np.array([begin + end]), np.array([lines])))
        lines, begin = lines + 1, stop
    if not found:
        return (np.empty(0, np.int64),) * 3
    starts, stops, numbers = (np.concatenate(c) for c in zip(*found, strict=True))
    return starts, stops, numbers


def _line_end(data: bytes | bytearray, begin: int) -> int:
    """One past the next new line, or the end."""
    return data.find(b"\n", begin) + 1 or len(data)
