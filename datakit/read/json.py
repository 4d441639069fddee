"""JSON files: one record a line, an array of records, or objects one after another.

First the records are found in the bytes, then each is parsed by itself, so that a bad record costs one row. orjson
parses. What orjson refuses and `json.loads` accepts (NaN, the infinities, numbers beyond a double) is parsed by
`json.loads`. An escaped lone surrogate is refused although `json.loads` accepts it, because UTF-8 cannot hold it.

In arrays and between objects the records are found by a scan that checks JSON's grammar, so that a missing quote or
brace is noticed where it happens. The broken record ends where the next one seems to begin, which is recognised by the
first key of the records before it.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import orjson

from datakit.read import _kernels_records as kernels
from datakit.read.files import BOM, Remaining, Segment, SegmentEnd, SourceFile, Spans, count_newlines, cut_stream
from datakit.read.layouts.record import Fields, MisfitError, decoded, name_of, parse_exactly, to_json
from datakit.read.row_builder import Position, RowBuilder

HEAD_RECORDS: Final = 100
"""How many of a file's first records are looked at to recognise its format and layout."""
FIRST_BYTES: Final = 1 << 19
"""Most files have that many records in their first 512 KiB."""
BLOCK: Final = 1 << 20
"""Bytes of records that are parsed between two looks at the size of the batch."""
VALUES_AT_ONCE: Final = 4096
_FIRST_KEY = re.compile(rb'\{\s*("(?:[^"\\\n]|\\.)*")\s*:')
_SPACE = b" \t\r\n"


# Recognise: from a file's first bytes.


def format_of(head: bytes, suffix: str) -> str:
    """ "jsonl", "json" (an array) or "json_objects" (objects one after another); "" for what is none of them.

    A first line that is a complete array by itself means "jsonl" if more values follow it.
    """
    body, rows = head.lstrip(), first_lines(head)
    good = sum(type(_value(r)) is dict for r in rows)
    if not body:
        return "jsonl"
    if body.startswith(b"["):
        first_is_complete = _value(rows[0]) is not None
        others = any(_value(r) is not None for r in rows[1:])
        as_lines = others if first_is_complete else suffix == "jsonl" and good > len(rows) // 2
        return "jsonl" if as_lines else "json"
    if not good and body.startswith(b"{") and body[1:].lstrip().startswith(b'"'):
        return "json_objects"
    return "jsonl" if good or any(r[:1] in (b"{", b"[") for r in rows) else ""


def first_records(head: bytes, form: str) -> list[Fields]:
    """The first records that can be parsed."""
    return [v for r in _first_values(head, form) if type(v := _value(r)) is dict]


def first_of_others(head: bytes, form: str) -> str:
    """What the first value is, if it is JSON and no object; "" otherwise."""
    value = next((v for r in _first_values(head, form) if (v := _value(r)) is not None), {})
    return "" if type(value) is dict else name_of(value)


def _first_values(head: bytes, form: str) -> list[bytes]:
    if form == "jsonl":
        return first_lines(head)
    end = ValueFinder(in_array=form == "json")(bytearray(head), 1 << 62, True)
    spans = end.spans[:HEAD_RECORDS].tolist() if end is not None and end.spans is not None else []
    return [head[start:stop] for start, stop, _ in spans]


def begins_with_records(head: bytes) -> bool:
    """Whether the first bytes hold enough lines to recognise the layout, and the first of them is a record."""
    rows = first_lines(head[:FIRST_BYTES])
    return len(rows) >= HEAD_RECORDS and type(_value(rows[0].removeprefix(BOM))) is dict


def first_lines(head: bytes) -> list[bytes]:
    """The first lines that are not blank, without the white space around them."""
    starts, stops, _ = _lines(head[: head.rfind(b"\n", 0, FIRST_BYTES) + 1])
    if len(starts) < HEAD_RECORDS:
        starts, stops, _ = _lines(head)
    return [head[a:b] for a, b in zip(starts[:HEAD_RECORDS].tolist(), stops[:HEAD_RECORDS].tolist(), strict=True)]


def _value(row: bytes) -> object:
    try:
        return parse(row)
    except MisfitError:
        return None


# Cut: between values. (Lines are cut by `files.cut_lines`.)


def cut_array(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    """Cut between the elements of a JSON array."""
    return cut_stream(file, index, remaining, ValueFinder(in_array=True))


def cut_objects(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    """Cut between objects that follow one another."""
    return cut_stream(file, index, remaining, ValueFinder(in_array=False))


class ValueFinder:
    """Finds the values of one file, call by call; see `files.FindEnd`."""

    def __init__(self, in_array: bool) -> None:
        self.in_array = in_array
        self.opened = not in_array
        self.closed = False
        self.key: bytes | None = None
        """The first key of the file's first record, with its quotes."""

    def __call__(self, data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
        """See `files.FindEnd`."""
        scan = _Scan(self, data, wanted, at_end)
        if not scan.run():
            return None
        end = scan.end()
        self.opened, self.key = True, scan.key
        self.closed = self.closed or 0 <= scan.closed_at <= end.stop
        return end


class _Scan:
    """One call of a `ValueFinder`: scans `data` until a value ends at or after `wanted` bytes."""

    def __init__(self, finder: ValueFinder, data: bytearray, wanted: int, at_end: bool) -> None:
        self.data, self.wanted, self.at_end = data, wanted, at_end
        self.opened, self.key = finder.opened, finder.key
        self.in_array = finder.in_array and not finder.closed
        self.closed_at = -1
        self.array = np.frombuffer(memoryview(data).toreadonly(), np.uint8)
        self.pos = self.lines = self.last = 0
        self.found: list[tuple[Spans, int]] = []

    def run(self) -> bool:
        """True when the end of a segment is found, False when more bytes are needed."""
        if not self.opened:
            self.pos = self.data.index(b"[") + 1
            self.lines, self.opened = count_newlines(memoryview(self.data)[: self.pos]), True
        while self.last < self.wanted:
            spans = np.empty((VALUES_AT_ONCE, 3), np.int64)
            count, self.pos, newlines, status = kernels.values(self.array, self.pos, self.in_array, spans)
            if count:
                self._remember_key(int(spans[0, 0]))
                self._take(spans[:count], self.lines)
            self.lines += newlines
            if status == kernels.CLOSED:
                self.closed_at, self.in_array = self.pos, False
            elif status == kernels.BROKEN or (self.pos < len(self.data) and count < VALUES_AT_ONCE):
                if self.last < self.wanted and not self._skip_broken(status):
                    return False
            elif status == kernels.MORE and count < VALUES_AT_ONCE:
                return self._finish()
        return True

    def end(self) -> SegmentEnd:
        """The segment's values: all found, up to the first that ends at or after `wanted`."""
        whole = [np.column_stack([s[:, :2], s[:, 2] + before]) for s, before in self.found]
        spans = np.concatenate(whole) if whole else np.empty((0, 3), np.int64)
        beyond = np.flatnonzero(spans[:, 1] >= self.wanted)
        stop = len(self.data)
        if len(beyond):
            spans = spans[: beyond[0] + 1]
            stop = int(spans[-1, 1])
        self.array = np.empty(0, np.uint8)  # releases `data`, which the caller shortens
        return SegmentEnd(stop, len(spans), count_newlines(memoryview(self.data)[:stop]), spans)

    def _take(self, spans: Spans, lines: int) -> None:
        self.found.append((spans, lines))
        self.last = int(spans[-1, 1])

    def _remember_key(self, start: int) -> None:
        if self.key is None and (match := _FIRST_KEY.match(self.data, start)):
            self.key = match[1]

    def _finish(self) -> bool:
        """The bytes end between two values. An array that is still open at the file's end is an empty bad record."""
        if self.at_end and self.in_array:
            end = len(self.data)
            self._take(np.array([[end, end, 0]], np.int64), self.lines)
        return self.at_end

    def _skip_broken(self, status: int) -> bool:
        """Take the broken bytes at `pos` as one record, up to where the next record seems to begin."""
        if status == kernels.MORE and not self.at_end:
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
        """Where the next record begins: a brace before the usual first key, after a comma, a bracket or a new line."""
        self._remember_key(self.pos)
        key = re.escape(self.key) + rb"\s*:" if self.key else rb'"'
        known = self.key or self.data[self.pos : self.pos + 1] != b"{"
        between = rb"(?:[,\n}\]]\s*)" if known else rb"(?:\}\s*,?\s*)"
        match = re.compile(between + rb"(\{\s*" + key + rb")").search(self.data, begin)
        return match.start(1) if match else -1


# Read: parse each record.


def read_lines(data: bytes, segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """Give the lines of a segment to the builder; a record's number is its line."""
    starts, stops, numbers = _lines(data)
    records = (numbers + segment.first_line).tolist()

    def position(i: int) -> Position:
        return Position(records[i], records[i], segment.start + int(starts[i]))

    return _read(data, starts, stops, records, position, builder)


def read_values(data: bytes, segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """Give the values of a segment to the builder; a record's number is its place among the file's values."""
    spans = segment.spans if segment.spans is not None else np.empty((0, 3), np.int64)
    records = range(segment.first_record, segment.first_record + len(spans))

    def position(i: int) -> Position:
        return Position(records[i], segment.first_line + int(spans[i, 2]), segment.start + int(spans[i, 0]))

    starts, stops = np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1])
    return _read(data, starts, stops, records, position, builder)


def _lines(data: bytes) -> tuple[Spans, Spans, Spans]:
    starts, stops, numbers = kernels.lines(np.frombuffer(data, np.uint8))
    return starts, stops, numbers


def _read(
    data: bytes,
    starts: Spans,
    stops: Spans,
    records: Sequence[int],
    position: Callable[[int], Position],
    builder: RowBuilder,
) -> Iterator[None]:
    """Give the records `data[starts[i]:stops[i]]`, which have the numbers `records`, to the builder.

    Yields before each `BLOCK`, so that the caller can take a batch.
    """
    array, begin = np.frombuffer(data, np.uint8), 0
    while begin < len(starts):
        yield
        end = max(begin + 1, int(np.searchsorted(stops, starts[begin] + BLOCK)))
        first, members = kernels.members(array, starts[begin:end], stops[begin:end])
        ends, flat = (4 * first[1:]).tolist(), members.ravel().tolist()
        a = 0
        records_here = zip(range(begin, end), starts[begin:end].tolist(), stops[begin:end].tolist(), ends, strict=True)
        for i, start, stop, b in records_here:
            line, rewrite = data[start:stop], False
            try:
                builder.limits.check_record(stop - start)
                try:
                    fields = orjson.loads(line)
                except orjson.JSONDecodeError as e:
                    fields, rewrite = _parse_slowly(line, str(e)), True
                repeated = type(fields) is dict and b - a > 4 * len(fields)
                builder.add(fields, records[i], JsonRecord(data, line, flat[a:b], rewrite), stop - start, repeated)
            except MisfitError as e:
                builder.quarantine(position(i), e, line)
            a = b
        begin = end


def parse(raw: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        MisfitError: it is not JSON, or not UTF-8.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as e:
        return _parse_slowly(raw, str(e))


def _parse_slowly(raw: bytes, refusal: str) -> Any:
    """Parse what orjson refused with the message `refusal`."""
    text = decoded(raw)
    try:
        value = json.loads(text)
    except RecursionError:
        raise MisfitError("too_deep", "its brackets are nested too deeply") from None
    except ValueError:
        raise MisfitError("invalid_json", refusal) from None
    if "\\u" in text:
        _refuse_lone_surrogates(value)
    return value


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as e:
        found = ord(e.object[e.start])
        raise MisfitError(
            "lone_surrogate", f"it holds \\u{found:04x} without its other half, which is no character"
        ) from None


class JsonRecord:
    """The bytes of a JSON record; see `row_builder.Original`.

    `members` are four offsets into `data` for each member of the outermost object, one after another: key start and
    stop without the quotes, value start and stop. With `rewrite`, NaN and the infinities, which JSON does not have,
    are written as strings.
    """

    __slots__ = ("data", "line", "members", "rewrite")

    def __init__(self, data: bytes, line: bytes, members: list[int], rewrite: bool) -> None:
        self.data, self.line, self.members, self.rewrite = data, line, members, rewrite

    def value(self, key: str) -> str:
        """See `Original`."""
        return next((self._text(start, stop) for k, start, stop in self._decoded() if k == key), "")

    def without(self, used: tuple[str, ...]) -> list[str]:
        """See `Original`."""
        data, members = self.data, self.members
        keys = [data[a:b] for a, b in zip(members[::4], members[1::4], strict=True)]
        if self.rewrite or len(set(keys)) < len(keys) or b"\\" in b"".join(keys):
            found = self._decoded()
            last = {k: i for i, (k, _, _) in enumerate(found)}
            kept = [(k, a, b) for i, (k, a, b) in enumerate(found) if k not in used or last[k] != i]
            return [f"{to_json(k)}:{self._text(a, b)}" for k, a, b in kept]
        skip = [k.encode() for k in used]
        spans = zip(keys, members[::4], members[3::4], strict=True)
        return [data[a - 1 : b].decode() for key, a, b in spans if key not in skip]

    def exact(self) -> Fields:
        """See `Original`."""
        fields: Fields = parse_exactly(self.line.decode())
        return fields

    def _decoded(self) -> list[tuple[str, int, int]]:
        """(key without escapes, value start, value stop) of each member."""
        keys = [self.data[a:b].decode() for a, b in zip(self.members[::4], self.members[1::4], strict=True)]
        plain = [orjson.loads(f'"{k}"') if "\\" in k else k for k in keys]
        return list(zip(plain, self.members[2::4], self.members[3::4], strict=True))

    def _text(self, start: int, stop: int) -> str:
        text = self.data[start:stop].decode()
        return to_json(parse_exactly(text)) if self.rewrite and ("NaN" in text or "Infinity" in text) else text
