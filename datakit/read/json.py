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
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Final

import numpy as np
import orjson

from datakit.read import _kernels_records as kernels
from datakit.read.record import Fields, RecordError, decoded, name_of, parse_exactly, to_json
from datakit.read.row_builder import Position, RowBuilder
from datakit.read.streams import BOM, Remaining, Segment, SegmentEnd, SourceFile, Spans, count_newlines, cut_stream

HEAD_RECORDS: Final = 100
"""How many of a file's first records are looked at to recognise its format and layout."""
FIRST_BYTES: Final = 1 << 19
"""Most files have that many records in their first 512 KiB."""
BLOCK: Final = 1 << 20
"""Bytes of records that are parsed between two looks at the size of the batch."""
_FIRST_KEY = re.compile(rb'\{\s*("(?:[^"\\\n]|\\.)*")\s*:')
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[")
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
    return [head[start:stop] for start, stop in spans]


def begins_with_records(head: bytes) -> bool:
    """Whether the first bytes hold enough lines to recognise the layout, and the first of them is a record."""
    rows = first_lines(head[:FIRST_BYTES])
    return len(rows) >= HEAD_RECORDS and type(_value(rows[0].removeprefix(BOM))) is dict


def holds_a_record(head: bytearray) -> bool:
    """Whether the first bytes of a file hold a whole record."""
    return bool(first_records(bytes(head), "json")) if _ARRAY.match(head) else b"\n" in head


def first_lines(head: bytes) -> list[bytes]:
    """The first lines that are not blank, without the white space around them."""
    starts, stops, _ = _lines(head[: head.rfind(b"\n", 0, FIRST_BYTES) + 1])
    if len(starts) < HEAD_RECORDS:
        starts, stops, _ = _lines(head)
    return [head[a:b] for a, b in zip(starts[:HEAD_RECORDS].tolist(), stops[:HEAD_RECORDS].tolist(), strict=True)]


def _value(row: bytes) -> object:
    try:
        return parse(row)
    except RecordError:
        return None


# Cut: between values. (Lines are cut by `streams.cut_lines`.)


def cut_array(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    """Cut between the elements of a JSON array."""
    return cut_stream(file, index, remaining, ValueFinder(in_array=True))


def cut_objects(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    """Cut between objects that follow one another."""
    return cut_stream(file, index, remaining, ValueFinder(in_array=False))


class ValueFinder:
    """Finds the values of one file, call by call; see `streams.FindEnd`."""

    def __init__(self, in_array: bool) -> None:
        self.in_array = in_array
        self.opened = not in_array
        self.key: bytes | None = None
        """The first key of the file's first record, with its quotes."""

    def __call__(self, data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
        """See `streams.FindEnd`. What was learned of the file is kept only with an end that is found."""
        seen, spans, pos = copy(self), list[tuple[int, int]](), 0
        array = np.frombuffer(memoryview(data).toreadonly(), np.uint8)
        if not seen.opened:
            pos, seen.opened = data.find(b"[") + 1, True
        while not spans or spans[-1][1] < wanted:
            start, stop, status = kernels.next_value(array, pos, seen.in_array)
            if status == kernels.FOUND:
                seen._remember_key(data, start)
                spans.append((start, stop))
                pos = stop
            elif status == kernels.CLOSED:
                seen.in_array, pos = False, stop
            elif start < len(data):  # not JSON, or cut where the bytes end
                pos = -1 if status == kernels.MORE and not at_end else seen._next_start(data, start)
                if pos < 0 and not at_end:
                    return None
                spans.append((start, seen._broken_end(data, start, pos)))
                seen.in_array, pos = seen.in_array and pos >= 0, pos if pos >= 0 else len(data)
            elif not at_end:
                return None
            else:
                spans += [(start, start)] * seen.in_array  # an array that is still open is an empty bad record
                seen.in_array = False
                break
        del array  # the caller shortens `data`
        vars(self).update(vars(seen))
        end = spans[-1][1] if spans and spans[-1][1] >= wanted else len(data)
        newlines = count_newlines(memoryview(data)[:end])
        return SegmentEnd(end, len(spans), newlines, np.array(spans, np.int64).reshape(-1, 2))

    def _remember_key(self, data: bytearray, start: int) -> None:
        if self.key is None and (match := _FIRST_KEY.match(data, start)):
            self.key = match[1]

    def _next_start(self, data: bytearray, broken: int) -> int:
        """Where the record after a broken one begins: a brace before the usual first key, after a comma, a bracket or a
        new line; -1 where none is in sight."""
        self._remember_key(data, broken)
        key = re.escape(self.key) + rb"\s*:" if self.key else rb'"'
        known = self.key or data[broken : broken + 1] != b"{"
        between = rb"(?:[,\n}\]]\s*)" if known else rb"(?:\}\s*,?\s*)"
        match = re.compile(between + rb"(\{\s*" + key + rb")").search(data, broken + 1)
        return match.start(1) if match else -1

    def _broken_end(self, data: bytearray, start: int, following: int) -> int:
        """Where a broken record ends: before the next one, or what closes the array."""
        raw = bytes(memoryview(data)[start : following if following >= 0 else len(data)]).rstrip(_SPACE + b",")
        if following < 0 and self.in_array:
            raw = raw.removesuffix(b"]").rstrip(_SPACE)
        return start + len(raw)


# Read: parse each record.


def read_lines(data: bytes, segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """Give the lines of a segment to the builder; a record's number is its line."""
    starts, stops, numbers = _lines(data)
    return _read(data, starts, stops, (numbers + segment.first_line).tolist(), segment, builder)


def read_values(data: bytes, segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """Give the values of a segment to the builder; a record's number is its place among the file's values."""
    spans = segment.spans if segment.spans is not None else np.empty((0, 2), np.int64)
    records = range(segment.first_record, segment.first_record + len(spans))
    starts, stops = np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1])
    return _read(data, starts, stops, records, segment, builder)


def _lines(data: bytes) -> tuple[Spans, Spans, Spans]:
    starts, stops, numbers = kernels.lines(np.frombuffer(data, np.uint8))
    return starts, stops, numbers


def _read(
    data: bytes, starts: Spans, stops: Spans, records: Sequence[int], segment: Segment, builder: RowBuilder
) -> Iterator[None]:
    """Give the records `data[starts[i]:stops[i]]`, which have the numbers `records`, to the builder.

    Yields before each `BLOCK`, so that the caller can take a batch.
    """
    array, begin = np.frombuffer(data, np.uint8), 0
    counted, line_number = 0, segment.first_line
    while begin < len(starts):
        yield
        end = max(begin + 1, int(np.searchsorted(stops, starts[begin] + BLOCK)))
        first, members = kernels.members(array, starts[begin:end], stops[begin:end])
        ends, flat, a = (4 * first[1:]).tolist(), members.ravel().tolist(), 0
        here = zip(records[begin:end], starts[begin:end].tolist(), stops[begin:end].tolist(), ends, strict=True)
        for record, start, stop, b in here:
            line, rewrite = data[start:stop], False
            try:
                builder.limits.check_record(stop - start)
                try:
                    fields = orjson.loads(line)
                except orjson.JSONDecodeError as e:
                    fields, rewrite = _parse_slowly(line, str(e)), True
                repeated = type(fields) is dict and b - a > 4 * len(fields)
                builder.add(fields, record, JsonRecord(data, line, flat[a:b], rewrite), stop - start, repeated)
            except RecordError as e:
                line_number, counted = line_number + data.count(b"\n", counted, start), start
                builder.quarantine(Position(record, line_number, segment.start + start), e, line)
            a = b
        begin = end


def parse(raw: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        RecordError: it is not JSON, or not UTF-8.
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
        raise RecordError("too_deep", "its brackets are nested too deeply") from None
    except ValueError:
        raise RecordError("invalid_json", refusal) from None
    if "\\u" in text:
        _refuse_lone_surrogates(value)
    return value


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as e:
        found = ord(e.object[e.start])
        raise RecordError(
            "lone_surrogate", f"it holds \\u{found:04x} without its other half, which is no character"
        ) from None


class JsonRecord:
    """The bytes of a JSON record; see `record.Original`.

    `members` are four offsets into `data` for each member of the outermost object, one after another: key start and
    stop without the quotes, value start and stop. With `rewrite`, NaN and the infinities, which JSON does not have,
    are written as strings.
    """

    __slots__ = ("data", "line", "members", "rewrite")

    def __init__(self, data: bytes, line: bytes, members: list[int], rewrite: bool) -> None:
        self.data, self.line, self.members, self.rewrite = data, line, members, rewrite

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
