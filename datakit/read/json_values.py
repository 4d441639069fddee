"""Files of JSON values that are not one a line: an array of records, or objects one after another.

Values are found by a scan that knows JSON's grammar, so a forgotten quote or brace is noticed where it happens and
costs the one record: reading goes on where the next begins, recognised by the first key of the records before.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from datakit.read import json_records
from datakit.read.convert import Converter
from datakit.read.files import SourceFile
from datakit.read.scan import kernels
from datakit.read.sink import Place
from datakit.read.units import Cut, Room, Segment, count_newlines, cut_stream

SPANS: Final = 4096
MORE, CLOSED, BROKEN = 0, 1, 2  # as _kernels.values says how a scan ended; the kernels are not imported to be called
_FIRST_KEY = re.compile(rb'\{\s*("(?:[^"\\\n]|\\.)*")\s*:')
_SPACE = b" \t\r\n"


class Finder:
    """Finds the values of one file, call by call; see `units.Find`."""

    def __init__(self, in_array: bool) -> None:
        self.in_array = in_array
        self.opened = not in_array
        self.closed = False
        self.key: bytes | None = None

    def __call__(self, data: bytearray, room: int, at_end: bool) -> Cut | None:
        """The first cut at or past the room; see `units.Find`."""
        scan = _Scan(self, data, room, at_end)
        done = scan.run()
        if not done:
            return None
        made = scan.cut()
        self.opened, self.key = True, scan.key
        self.closed = self.closed or 0 <= scan.closed_at <= made.stop
        return made


class _Scan:
    """One call's way through the bytes. `run` is True when a cut is found, False when more bytes are needed."""

    def __init__(self, finder: Finder, data: bytearray, room: int, at_end: bool) -> None:
        self.data, self.room, self.at_end = data, room, at_end
        self.opened, self.key = finder.opened, finder.key
        self.in_array = finder.in_array and not finder.closed
        self.closed_at = -1
        self.array = np.frombuffer(memoryview(data), np.uint8)
        self.pos = self.lines = 0
        self.found: list[tuple[np.ndarray[Any, Any], int]] = []
        self.last = 0

    def run(self) -> bool:
        if not self.opened:
            self.pos = self.data.index(b"[") + 1
            self.lines, self.opened = count_newlines(memoryview(self.data)[: self.pos]), True
        while self.last < self.room:
            spans = np.empty((SPANS, 3), np.int64)
            count, self.pos, newlines, status = kernels.values(self.array, self.pos, self.in_array, spans)
            if count:
                self._remember_key(int(spans[0, 0]))
                self._take(spans[:count], self.lines)
            self.lines += newlines
            if status == CLOSED:
                self.closed_at, self.in_array = self.pos, False
            elif status == BROKEN or (self.pos < len(self.data) and count < SPANS):
                if self.last < self.room and not self._resume(status):
                    return False
            elif status == MORE and count < SPANS:
                return self._ended()
        return True

    def cut(self) -> Cut:
        """Everything found, up to the first value that ends at or past the room."""
        whole = [np.column_stack([s[:, :2], s[:, 2] + before]) for s, before in self.found]
        spans = np.concatenate(whole) if whole else np.empty((0, 3), np.int64)
        over = np.flatnonzero(spans[:, 1] >= self.room)
        if len(over):
            spans = spans[: over[0] + 1]
            stop = int(spans[-1, 1])
        else:
            stop = len(self.data)
        self.array = np.empty(0, np.uint8)  # lets go of the buffer
        return Cut(stop, len(spans), count_newlines(memoryview(self.data)[:stop]), spans)

    def _take(self, spans: np.ndarray[Any, Any], lines: int) -> None:
        self.found.append((spans, lines))
        self.last = int(spans[-1, 1])

    def _remember_key(self, start: int) -> None:
        if self.key is None and (match := _FIRST_KEY.match(self.data, start)):
            self.key = match[1]

    def _ended(self) -> bool:
        """The bytes end between values: with an array still open that is a record of its own, empty and broken."""
        if self.at_end and self.in_array:
            end = len(self.data)
            self._take(np.array([[end, end, 0]], np.int64), self.lines)
        return self.at_end

    def _resume(self, status: int) -> bool:
        """Take what is broken at `pos` as one record, up to where the next one seems to begin."""
        if status == MORE and not self.at_end:
            return False
        following = self._next_start(self.pos + 1)
        if following < 0 and not self.at_end:
            return False
        end = following if following >= 0 else len(self.data)
        raw = bytes(memoryview(self.data)[self.pos : end]).rstrip(_SPACE + b",")
        if following < 0 and self.in_array:
            raw = raw.removesuffix(b"]").rstrip(_SPACE)
        self._take(np.array([[self.pos, self.pos + len(raw), 0]], np.int64), self.lines)
        self.lines += count_newlines(memoryview(self.data)[self.pos : end])
        self.pos = end
        if following < 0:
            self.closed_at, self.in_array = end, False
        return True

    def _next_start(self, begin: int) -> int:
        """Where the next record begins: at a brace before the usual first key, after a comma, a brace or a new line."""
        self._remember_key(self.pos)
        key = re.escape(self.key) + rb"\s*:" if self.key else rb'"'
        known = self.key or self.data[self.pos : self.pos + 1] != b"{"
        between = rb"(?:[,\n}\]]\s*)" if known else rb"(?:\}\s*,?\s*)"
        match = re.compile(between + rb"(\{\s*" + key + rb")").search(self.data, begin)
        return match.start(1) if match else -1


def cut_array(file: SourceFile, index: int, room: Room) -> Iterator[Segment]:
    """Cut between the elements of a JSON array."""
    return cut_stream(file, index, room, Finder(in_array=True))


def cut_objects(file: SourceFile, index: int, room: Room) -> Iterator[Segment]:
    """Cut between objects that follow one another."""
    return cut_stream(file, index, room, Finder(in_array=False))


def read(data: bytes, segment: Segment, converter: Converter) -> Iterator[None]:
    """Put the values of a segment into the converter's sink; a record's number is its place in the array."""
    spans = segment.spans if segment.spans is not None else np.empty((0, 3), np.int64)
    records = list(range(segment.first_record, segment.first_record + len(spans)))

    def place(i: int) -> Place:
        return Place(records[i], segment.first_line + int(spans[i, 2]), segment.start + int(spans[i, 0]))

    starts, stops = np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1])
    return json_records.read(data, starts, stops, records, place, converter)
