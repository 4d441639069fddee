"""Cutting files into work units by their data alone: the same inputs and sizes give the same units on any machine."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Protocol

import numpy as np

from datakit.errors import InputError
from datakit.read.files import SourceFile, open_binary
from datakit.read.streams import BrokenStreamError, blocks

BOM: Final = b"\xef\xbb\xbf"
_PIECE: Final = 1 << 18
Spans = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of one file that holds whole records.

    Its bytes are `data`, or for a plain local file the range `start:stop` that the worker reads itself. Columnar files
    have `groups` (row groups or record batches, half open) instead.
    """

    file: int
    first_record: int
    first_line: int
    start: int
    stop: int
    data: bytes | None = None
    spans: Spans | None = None
    """int64[records, 3] of JSON values: (start, stop) in the segment's bytes, lines before the start."""
    groups: tuple[int, int] | None = None
    failure: tuple[str, str] | None = None
    """(reason, detail) when the file could not be read beyond this segment."""

    @property
    def bytes(self) -> int:
        """Uncompressed bytes."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of work: parts of one or more files, about as many uncompressed bytes as a shard. Picklable."""

    index: int
    segments: tuple[Segment, ...]

    @property
    def bytes(self) -> int:
        """Uncompressed bytes."""
        return sum(s.bytes for s in self.segments)


Room = Callable[[], int]
"""How many bytes the unit under way still takes (below 1: none, cut at the next record)."""


class Cutter(Protocol):
    """Cuts one file into segments."""

    def __call__(self, file: SourceFile, index: int, room: Room) -> Iterator[Segment]:
        """The segments of file number `index`, each as long as the room when it is asked for."""


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


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a segment may end: its bytes, and the records and lines in it."""

    stop: int
    records: int
    lines: int
    spans: Spans | None = None


Find = Callable[[bytearray, int, bool], Cut | None]
"""(bytes from a record's start on, room, at the file's end) -> the first cut at or past the room; None: more bytes."""


def cut_stream(file: SourceFile, index: int, room: Room, find: Find) -> Iterator[Segment]:
    """Cut a file that is read from its beginning to its end. A byte order mark is skipped."""
    keep = bool(file.compression) or not file.is_local
    buffer, base, record, line, wait = bytearray(), 0, 0, 0, 0
    for block, failure in _with_failure(file):
        at_end = block is None
        buffer += block or b""
        if base == 0 and buffer.startswith(BOM):
            del buffer[: len(BOM)]
            base = len(BOM)
        # A record longer than the room is looked for again only when twice the bytes are there: linear in all.
        while buffer and (at_end or len(buffer) > max(room(), wait)):
            found = find(buffer, max(room(), 1), at_end)
            if found is None:
                wait = 2 * len(buffer)
                break
            data = bytes(memoryview(buffer)[: found.stop]) if keep else None
            last = at_end and found.stop == len(buffer)
            stop, failed = base + found.stop, failure if last else None
            del buffer[: found.stop]
            yield Segment(index, record, line, base, stop, data, found.spans, failure=failed)
            base, record, line, wait = stop, record + found.records, line + found.lines, 0
            failure = None if last else failure
    if failure:
        yield Segment(index, record, line, base, base, b"", failure=failure)


def line_end(data: bytearray, room: int, at_end: bool) -> Cut | None:
    """The first line end at or past `room`; at the file's end also the last byte."""
    found = data.find(b"\n", room - 1)
    if found < 0 and not at_end:
        return None
    stop = found + 1 if found >= 0 else len(data)
    newlines = count_newlines(memoryview(data)[:stop])
    return Cut(stop, newlines, newlines)


def cut_lines(file: SourceFile, index: int, room: Room) -> Iterator[Segment]:
    """What `cut_stream` gives with `line_end`; of a plain local file no byte is kept on the way.

    Raises:
        InputError: the file cannot be opened or read.
    """
    if file.compression or not file.is_local:
        yield from cut_stream(file, index, room, line_end)
        return
    with open_binary(file.path) as opened:
        try:
            base, line = len(BOM) if opened.read(len(BOM)) == BOM else 0, 0
            while True:
                opened.seek(base)
                stop, newlines = _lines_of(opened, max(room(), 1))
                if stop == 0:
                    return
                yield Segment(index, line, line, base, base + stop)
                base, line = base + stop, line + newlines
        except OSError as e:
            raise InputError(f"{file.path}: cannot be read: {e}") from e


def _lines_of(opened: BinaryIO, room: int) -> tuple[int, int]:
    """(bytes, new lines) from here to the first line end at or past `room`, or to the file's end."""
    size = newlines = 0
    while piece := opened.read(_PIECE):
        if size + len(piece) >= room:
            found = piece.find(b"\n", max(room - 1 - size, 0)) + 1
            if found:
                return size + found, newlines + piece.count(b"\n", 0, found)
        size, newlines = size + len(piece), newlines + count_newlines(piece)
    return size, newlines


def _with_failure(file: SourceFile) -> Iterator[tuple[bytes | None, tuple[str, str] | None]]:
    """The blocks of a file, then (None, the failure that ended them or None)."""
    failure: tuple[str, str] | None = None
    try:
        for block in blocks(file):
            yield block, None
    except BrokenStreamError as e:
        failure = e.reason, e.detail
    yield None, failure


def count_newlines(data: bytes | bytearray | memoryview) -> int:
    """New lines in some bytes, by pieces, whose comparisons stay in the processor's cache."""
    array = np.frombuffer(data, np.uint8)
    return sum(int(np.count_nonzero(array[i : i + _PIECE] == 10)) for i in range(0, len(array), _PIECE))
