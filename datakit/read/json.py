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
from collections.abc import Collection, Iterator
from contextlib import suppress
from copy import copy
from itertools import islice
from typing import Any, Final

import numpy as np
import orjson

from datakit.read import _kernels_records as kernels
from datakit.read.record import (
    RECORD_BYTES,
    Fields,
    Record,
    RecordError,
    decoded,
    name_of,
    parse_exactly,
    to_json,
    too_long,
)
from datakit.read.streams import BOM, Segment, SegmentEnd, SourceFile, Spans

HEAD_RECORDS: Final = 100
"""How many of a file's first records are looked at to recognise its format and layout."""
FIRST_BYTES: Final = 1 << 19
"""Most files have that many records in their first 512 KiB."""
HEAD_BYTES: Final = 4 << 20
"""How much of other files is read; more only if the first record is longer."""
BLOCK: Final = 1 << 20
"""Bytes of records of which the members are found at once."""
_FIRST_KEY = re.compile(rb'\{\s*("(?:[^"\\\n]|\\.)*")\s*:')
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[")
_SPACE = b" \t\r\n"


# Recognise: from a file's first bytes.


def format_of(head: bytes, suffix: str) -> str:
    """ "jsonl", "json" (an array) or "json_objects" (objects one after another); "" for what is none of them.

    A first line that is a complete array by itself means "jsonl" if more values follow it.
    """
    body, rows = head.lstrip(), _first_lines(head)
    values = [_value(row) for row in rows]
    good = sum(type(value) is dict for value in values)
    if body.startswith(b"["):
        others = any(value is not None for value in values[1:])
        as_lines = others if values[0] is not None else suffix == "jsonl" and good > len(rows) // 2
        return "jsonl" if as_lines else "json"
    if not good and body.startswith(b"{") and body[1:].lstrip().startswith(b'"'):
        return "json_objects"
    return "jsonl" if good or any(row[:1] in (b"{", b"[") for row in rows) else ""


def tells_layout(head: bytes) -> bool:
    """Whether the first bytes of a file are enough: they hold `HEAD_RECORDS` records, one a line; or they are many,
    and the first value is whole."""
    rows = _first_lines(head[:FIRST_BYTES])
    if len(head) < HEAD_BYTES:
        return len(rows) >= HEAD_RECORDS and type(_value(rows[0].removeprefix(BOM))) is dict
    is_array = _ARRAY.match(head)
    return ValueFinder(True)(bytearray(head), 1, False) is not None if is_array else b"\n" in head


def _first_lines(head: bytes) -> list[bytes]:
    """The first lines that are not blank, without the white space around them."""
    lines = (row.strip(_SPACE) for row in head.split(b"\n"))
    return list(islice(filter(None, lines), HEAD_RECORDS))


def _value(row: bytes) -> object:
    with suppress(RecordError):
        return parse(row)
    return None


# Cut: between values.


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
        return SegmentEnd(end, len(spans), np.array(spans, np.int64).reshape(-1, 2))

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


def read_lines(file: SourceFile, data: bytes, segment: Segment) -> Iterator[Record]:
    """The lines of a segment that are not blank; a record's number is its line."""
    stops = np.append(_newlines(data), len(data))
    starts = np.append(0, stops[:-1] + 1)
    lines = np.arange(segment.first_line, segment.first_line + len(stops))
    return _read(data, starts, stops, lines, lines, segment)


def read_values(file: SourceFile, data: bytes, segment: Segment) -> Iterator[Record]:
    """The values of a segment; a record's number is its place among the file's values."""
    starts, stops = np.ascontiguousarray(segment.spans.T)
    numbers = np.arange(segment.first_record, segment.first_record + len(starts))
    lines = segment.first_line + np.searchsorted(_newlines(data), starts)
    return _read(data, starts, stops, numbers, lines, segment)


def _newlines(data: bytes) -> Spans:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))


def _read(data: bytes, starts: Spans, stops: Spans, numbers: Spans, lines: Spans, segment: Segment) -> Iterator[Record]:
    """The records `data[starts[i]:stops[i]]`, without the white space around them, with their numbers and lines. The
    members of the records of one `BLOCK` are found at once."""
    array, begin = np.frombuffer(data, np.uint8), 0
    while begin < len(starts):
        end = max(begin + 1, int(np.searchsorted(stops, starts[begin] + BLOCK)))
        first, members = kernels.members(array, starts[begin:end], stops[begin:end])
        flat, bounds = members.ravel().tolist(), (4 * first).tolist()
        columns = (column[begin:end].tolist() for column in (starts, stops, numbers, lines))
        for start, stop, number, line, a, b in zip(*columns, bounds[:-1], bounds[1:], strict=True):
            raw, fields, slowly = data[start:stop], None, False
            if raw[:1] != b"{" or raw[-1:] != b"}":
                start += len(raw) - len(raw.lstrip(_SPACE))
                raw = raw.strip(_SPACE)
                if not raw and segment.spans is None:  # a blank line is no record
                    continue
            try:
                try:
                    if len(raw) > RECORD_BYTES:
                        raise too_long()
                    fields = orjson.loads(raw)
                except orjson.JSONDecodeError as e:
                    fields, slowly = _parse_slowly(raw, str(e)), True
                if type(fields) is not dict:
                    raise RecordError("not_an_object", f"a record should be an object, found {name_of(fields)}")
            except RecordError as e:
                fields = e
            yield JsonRecord(fields, number, line, segment.start + start, raw, data, flat[a:b], slowly)
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


class JsonRecord(Record):
    """A JSON record with its bytes.

    `members` are four offsets into `data` for each member of the outermost object, one after another: key start and
    stop without the quotes, value start and stop. With `rewrite`, NaN and the infinities, which JSON does not have,
    are written as strings.
    """

    def __init__(
        self, fields: Any, number: int, line: int, offset: int, raw: bytes, data: bytes, members: list[int],
        rewrite: bool,
    ) -> None:  # fmt: skip
        super().__init__(fields, number, line, offset, raw)
        self.data, self.members, self.rewrite = data, members, rewrite
        if type(fields) is dict and len(members) > 4 * len(fields):
            self.repeated = True

    def without(self, used: Collection[str]) -> list[str]:
        """See `Record`."""
        data, members = self.data, self.members
        keys = [data[a:b] for a, b in zip(members[::4], members[1::4], strict=True)]
        if not self.rewrite and len(set(keys)) == len(keys) and b"\\" not in b"".join(keys):
            skip, spans = [k.encode() for k in used], zip(keys, members[::4], members[3::4], strict=True)
            return [data[a - 1 : b].decode() for key, a, b in spans if key not in skip]
        names = [orjson.loads(b'"%b"' % key) for key in keys]
        last = {name: i for i, name in enumerate(names)}
        values = [data[a:b].decode() for a, b in zip(members[2::4], members[3::4], strict=True)]
        return [
            f"{to_json(name)}:{self._plain(text)}"
            for i, (name, text) in enumerate(zip(names, values, strict=True))
            if name not in used or last[name] != i
        ]

    def exact(self) -> Fields:
        """See `Record`."""
        fields: Fields = parse_exactly(self.raw.decode())
        return fields

    def _plain(self, text: str) -> str:
        return to_json(parse_exactly(text)) if self.rewrite and ("NaN" in text or "Infinity" in text) else text
