"""Records: JSON found in the bytes of a file and parsed, numbers with every digit, and values by our names.

A JSON file has one record a line, an array of records, or objects one after another. First the records are found in the
bytes, then each is parsed by itself, so that a bad record costs one row. orjson parses. What orjson refuses and
`json.loads` accepts (NaN, the infinities, numbers beyond a double) is parsed by `json.loads`. An escaped lone surrogate
is refused although `json.loads` accepts it, because UTF-8 cannot hold it.

In arrays and between objects the records are found by their quotes and brackets alone. A record in which one of these
is missing has no end that could be known: it and the rest of the file are one record that is quarantined.
"""

import base64
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from typing import Any, Final

import numpy as np
import orjson

from datakit.kernels import kernel
from datakit.read.streams import BOM, PIECE, RECORD_BYTES, RecordError, Segment, SegmentEnd, SourceFile, Spans, too_long

Fields = dict[str, Any]
MAX_DEPTH: Final = 500
HEAD_RECORDS: Final = 100
"""How many of a file's first records are looked at to recognise its format and layout."""
FIRST_BYTES: Final = 1 << 19
"""Most files have that many records in their first 512 KiB."""
HEAD_BYTES: Final = 4 << 20
"""How much of other files is read; more only if the first record is longer."""
BLOCK: Final = 1 << 20
"""Bytes of records of which the members are found at once."""
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[")
_OBJECT = re.compile(rb'\[?\s*\{\s*"')
_SPACE = b" \t\r\n"


class InexactNumbersError(Exception):
    """A nested float must be written as JSON again, but parsing may have rounded it. Parse exactly and try again."""


class Number(str):
    """A JSON number as its characters, so that it is written exactly as it was read."""

    __slots__ = ()


@dataclass(slots=True)
class Record:
    """One record of a file: its fields, or what is wrong with it, and where it stands.

    The fields are those of JSON, typed cells (Parquet, Arrow) or texts (CSV, plain text, web pages).
    """

    fields: Any
    """A dict; a `RecordError`; or the ledger note that counts a record which is no row and no mistake."""
    number: int
    """Its place in the file, from 0."""
    line: int
    """Its line, from 0."""
    offset: int | None
    """Its first byte in the uncompressed file; None: cells."""
    raw: bytes
    """Its bytes; of cells none: see `written`."""
    size: int = 0
    """The bytes of its cells."""
    members: list[int] | None = None
    """Of JSON, for each member of the outermost object: key start and stop without the quotes, value start and stop, as
    offsets into `data`."""
    data: bytes = b""
    rewrite: bool = False
    """Whether only Python's parser reads it: NaN, infinities and numbers beyond all floats are written as strings."""

    def without(self, used: Collection[str]) -> list[str]:
        """The JSON text of each `"key": value`, in the user's order, without the fields in `used`.

        Of cells, times are written in ISO 8601, bytes in base64.
        """
        data, members = self.data, self.members
        if members is None or self.rewrite:
            return [f"{to_json(k)}:{_written(v)}" for k, v in self.exact().items() if k not in used]
        skip, spans = [k.encode() for k in used], zip(members[::4], members[1::4], members[3::4], strict=True)
        return [data[a - 1 : end].decode() for a, b, end in spans if _plain_key(data[a:b]) not in skip]

    def written(self) -> bytes:
        """The bytes that are kept of it: its own, or those of its cells as JSON."""
        if self.raw or type(self.fields) is not dict:
            return self.raw
        return ("{" + ",".join(self.without(())) + "}").encode()

    def exact(self) -> Fields:
        """The fields, with each number that a float or an int64 cannot hold exactly as a `Number`."""
        if self.members is None:
            return {k: _with_exact_numbers(v) for k, v in self.fields.items()}
        return dict(parse_exactly(self.raw.decode()))


def _plain_key(key: bytes) -> bytes:
    """A key of JSON without its escapes."""
    return str(orjson.loads(b'"%b"' % key)).encode() if b"\\" in key else key


def parsed(raw: bytes, parse: Callable[[bytes], Fields | str], number: int, line: int, offset: int | None) -> Record:
    """The record that `parse` makes of some bytes, or what is wrong with them."""
    try:
        made = parse(raw) if len(raw) <= RECORD_BYTES else too_long()
    except RecordError as e:
        made = e
    return Record(made, number, line, offset, raw)


def decoded(raw: bytes) -> str:
    """A record's bytes as text.

    Raises:
        RecordError: they are not UTF-8.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        found = f"byte {e.start} of the record is 0x{raw[e.start]:02x}, which is not UTF-8 there"
        raise RecordError("invalid_utf8", found) from None


def parse_exactly(text: str) -> Any:
    """Parse JSON with floats and big integers as `Number`; NaN, the infinities and numbers beyond all floats, which
    most parsers refuse, are strings."""

    def number(digits: str) -> str:
        return Number(digits) if isfinite(float(digits)) else digits

    integer = lambda digits: int(digits) if len(digits) < 19 else number(digits)  # noqa: E731
    return json.loads(text, parse_float=number, parse_int=integer, parse_constant=str)


def _with_exact_numbers(value: Any) -> Any:
    """A value with its floats as `Number`s in their shortest exact form, and its integers of more than 64 bits."""
    if type(value) is int and value.bit_length() > 63:
        return Number(value)
    if type(value) is float:
        return Number(json.dumps(value)) if value - value == 0 else json.dumps(value)
    if type(value) is dict:
        return {k: _with_exact_numbers(v) for k, v in value.items()}
    return [_with_exact_numbers(v) for v in value] if type(value) is list else value


def to_json(value: Any) -> str:
    """A nested value as JSON text.

    Raises:
        InexactNumbersError: it holds a float, whose original digits are lost.
        RecordError: it is nested too deeply.
    """
    if _has_float(value):
        raise InexactNumbersError
    return _written(value)


def _written(value: Any) -> str:
    try:
        return orjson.dumps(value, default=_default, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except TypeError as e:
        raise RecordError("bad_value", f"a nested value cannot be written as JSON: {e}") from None


def _default(value: Any) -> Any:
    """Values without a JSON type: a `Number` as its digits, bytes in base64, any other as its text."""
    if type(value) is Number:
        return orjson.Fragment(str.__str__(value))
    return base64.b64encode(value).decode() if type(value) is bytes else str(value)


def _has_float(value: Any, depth: int = 0) -> bool:
    if depth > MAX_DEPTH:
        raise RecordError("too_deep", f"a value is nested more than {MAX_DEPTH} levels deep")
    if type(value) is dict:
        return any(_has_float(v, depth + 1) for v in value.values())
    if type(value) is list:
        return any(_has_float(v, depth + 1) for v in value)
    return type(value) is float or (type(value) is int and value.bit_length() > 63)


def listed(value: Any) -> Any:
    """A list that is written as JSON text, as in CSV; any other value as it is."""
    if type(value) is str and value.lstrip().startswith("["):
        with suppress(orjson.JSONDecodeError):
            return parse_exactly(value) if _has_float(orjson.loads(value)) else orjson.loads(value)
    return value


def at(fields: Fields, path: str) -> Any:
    """The value of a field, or of a path with dots into objects, lists and lists as text; None where there is none."""
    if path in fields or "." not in path:
        return fields.get(path)
    value: Any = fields
    for key in path.split("."):
        value = listed(value) if type(value) is str else value
        if type(value) is list:
            value = value[int(key)] if key.isdigit() and int(key) < len(value) else None
        else:
            value = value.get(key) if type(value) is dict else None
    return value


def without(value: Any, path: str) -> Any:
    """An object without the value that a path leads to, and without what is then empty; lists stay whole."""
    key, _, rest = (path, "", "") if type(value) is dict and path in value else path.partition(".")
    if type(value) is not dict or key not in value:
        return value
    inner = without(value[key], rest) if rest else None
    return {k: v for k, v in value.items() if k != key} | ({key: inner} if inner else {})


def text_of(value: Any, where: str) -> str:
    """A value that must be a string.

    Raises:
        RecordError: it is not a string.
    """
    if type(value) is not str:
        raise RecordError("not_text", f"{where} should be a string, found {name_of(value)}")
    return value


def name_of(value: Any) -> str:
    """The type of a JSON value for error messages, with the value if it is short."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float | Number):
        return f"the number {value}"
    names = {"str": "a string", "dict": "an object", "list": "a list"}
    return names.get(type(value).__name__, type(value).__name__)


# Recognise: from a file's first bytes.


def format_of(head: bytes, suffix: str) -> str:
    """ "jsonl", "json" (an array) or "json_objects" (objects one after another); "" for what is none of them.

    A first line that is a complete array by itself means "jsonl" if more values follow it. Where no suffix says JSON,
    the file begins with an object, or most of its first lines are objects: code has lines that begin with brackets.
    """
    body, rows = head.lstrip(), _first_lines(head)
    values = [_value(row) for row in rows]
    good = sum(type(value) is dict for value in values)
    if not suffix and good <= len(rows) // 2 and not _OBJECT.match(body):
        return ""
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


# Where JSON records, and the members of their objects, start and stop. All offsets count from the start of `data`. A
# value is a string, a bracket with all up to the one that closes it, or a run of other characters. Whether it is JSON
# is for the parser to say, so a value that is not, and whose quotes and brackets are in order, costs itself alone.
# Bytes are not decoded: in UTF-8 no other character has a byte of a quote or a bracket.

_FOUND, _MORE, _CLOSED = 0, 1, 2
_QUOTE, _BACKSLASH, _COMMA, _COLON = 34, 92, 44, 58
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = 123, 125, 91, 93


@kernel(inline="always")
def _is_space(c):  # type: ignore[no-untyped-def]
    return c == 32 or c == 10 or c == 13 or c == 9


@kernel(inline="always")
def _ends_word(c):  # type: ignore[no-untyped-def]
    return _is_space(c) or c in (_COMMA, _CLOSE_BRACE, _CLOSE_BRACKET)


@kernel(inline="always")
def _past(data, i, end, between):  # type: ignore[no-untyped-def]
    """The first byte from i on, or `end`, that is neither white space nor `between`."""
    while i < end and (_is_space(data[i]) or data[i] == between):
        i += 1
    return i


@kernel
def _string_end(data, i, end):  # type: ignore[no-untyped-def]
    """One past the closing quote of the string whose first byte after the opening quote is at i; -1 without one."""
    while i < end:
        c = data[i]
        if c == _QUOTE:
            return i + 1
        i += 2 if c == _BACKSLASH else 1
    return -1


@kernel
def _members(data, starts, stops):  # type: ignore[no-untyped-def]
    """The members of the outermost object of each record `data[starts[r]:stops[r]]`.

    Returns (first, spans), int64: record r has the rows `first[r]:first[r + 1]` of `spans`, each (key start, key stop,
    value start, value stop), the key without its quotes. A record that is no object has no members, and a broken one
    has those before the break.
    """
    capacity = len(starts)
    for r in range(len(starts)):
        capacity += (stops[r] - starts[r]) // 5  # the shortest member, `"":0,`; the last one has no comma
    first, spans = np.empty(len(starts) + 1, np.int64), np.empty((capacity, 4), np.int64)
    n = 0
    first[0] = 0
    for r in range(len(starts)):
        end = stops[r]
        i = _past(data, starts[r], end, 32)
        before = _OPEN_BRACE  # what stands before a key
        while i < end and data[i] == before:
            i = _past(data, i + 1, end, 32)
            if i >= end or data[i] != _QUOTE:
                break
            key_stop = _string_end(data, i + 1, end)
            colon = _past(data, key_stop, end, 32) if key_stop > 0 else end
            if colon >= end or data[colon] != _COLON:
                break
            start = _past(data, colon + 1, end, 32)
            stop = _value_end(data, start, end)
            if stop <= start:
                break
            spans[n, 0], spans[n, 1], spans[n, 2], spans[n, 3] = i + 1, key_stop - 1, start, stop
            n += 1
            i, before = _past(data, stop, end, 32), _COMMA
        first[r + 1] = n
    return first, spans[:n]


@kernel
def _next_value(data, i, in_array):  # type: ignore[no-untyped-def]
    """(start, stop, status) of the next value from i on: an element of an array, or what follows white space.

    _FOUND: `data[start:stop]` is the value. _CLOSED: the array's bracket was found, `stop` is after it. _MORE: the
    bytes end inside of the value, or before one begins.
    """
    end = len(data)
    i = _past(data, i, end, _COMMA)
    if i < end and in_array and data[i] == _CLOSE_BRACKET:
        return i, i + 1, _CLOSED
    stop = _value_end(data, i, end)
    return i, stop, _FOUND if stop > 0 else _MORE


@kernel
def _value_end(data, i, end):  # type: ignore[no-untyped-def]
    """One past the value at i; -1 if the bytes end inside of it. A closing bracket that nothing opened is a value."""
    depth = 0
    while i < end:
        c = data[i]
        i += 1
        if c == _QUOTE:
            i = _string_end(data, i, end)
            if i < 0:
                return -1
        elif c in (_OPEN_BRACE, _OPEN_BRACKET):
            depth += 1
        elif c in (_CLOSE_BRACE, _CLOSE_BRACKET):
            depth -= 1
        elif depth == 0:
            while i < end and not _ends_word(data[i]):
                i += 1
            if i == end:
                return -1
        if depth <= 0:
            return i
    return -1


# Cut: between values.


class ValueFinder:
    """Finds the values of one file, call by call; see `streams.FindEnd`."""

    def __init__(self, in_array: bool) -> None:
        self.in_array = in_array
        self.opened = not in_array

    def __call__(self, data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
        """See `streams.FindEnd`. What was learned of the file is kept only with an end that is found."""
        spans, in_array = list[tuple[int, int]](), self.in_array
        pos = 0 if self.opened else data.find(b"[") + 1
        array = np.frombuffer(memoryview(data).toreadonly(), np.uint8)
        while not spans or spans[-1][1] < wanted:
            start, stop, status = _next_value(array, pos, in_array)
            if status == _FOUND:
                spans.append((start, stop))
                pos = stop
            elif status == _CLOSED:
                in_array, pos = False, stop
            elif not at_end:
                return None
            else:  # a value that does not end; or, empty, the bracket of an array that is still open
                spans += [(start, len(data))] * (start < len(data) or in_array)
                in_array = False
                break
        del array  # the caller shortens `data`
        self.opened, self.in_array = True, in_array
        end = spans[-1][1] if spans and spans[-1][1] >= wanted else len(data)
        return SegmentEnd(end, len(spans), np.array(spans, np.int64).reshape(-1, 2))


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
    """Where they are. A piece at a time, so that the flags stay in the cache."""
    array, pieces = np.frombuffer(data, np.uint8), range(0, len(data), PIECE)
    found = [at + np.flatnonzero(array[at : at + PIECE] == ord("\n")) for at in pieces]
    return np.concatenate([np.empty(0, np.int64), *found])


def _read(data: bytes, starts: Spans, stops: Spans, numbers: Spans, lines: Spans, segment: Segment) -> Iterator[Record]:
    """The records `data[starts[i]:stops[i]]`, without the white space around them, with their numbers and lines. The
    members of the records of one `BLOCK` are found at once."""
    array, begin = np.frombuffer(data, np.uint8), 0
    while begin < len(starts):
        end = max(begin + 1, int(np.searchsorted(stops, starts[begin] + BLOCK)))
        first, members = _members(array, starts[begin:end], stops[begin:end])
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
                if b - a > 4 * len(fields):
                    raise RecordError(
                        "repeated_keys", "a field stands twice in it, and nothing says which value counts"
                    )
            except RecordError as e:
                fields = e
            yield Record(fields, number, line, segment.start + start, raw, members=flat[a:b], data=data, rewrite=slowly)
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
        value = json.loads(text, parse_float=lambda digits: v if isfinite(v := float(digits)) else digits)
    except RecursionError:
        raise RecordError("too_deep", "its brackets are nested too deeply") from None
    except ValueError:
        raise RecordError("invalid_json", refusal) from None
    try:
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as e:
        found = f"it holds \\u{ord(e.object[e.start]):04x} without its other half, which is no character"
        raise RecordError("lone_surrogate", found) from None
    return value


# A record's values by our names.

HOLE: Final = re.compile(r"\{([^{}]+)\}")
"""A field in a template."""


class Picked:
    """The values of a record by our names. It notes which fields were taken, and what is left inside of them.

    The source of a name is a field, a path into one (`meta.body`), two fields (`instruction+input`: a new line
    between), or a template (`{instruction}\\n\\n{context}`).
    """

    __slots__ = ("fields", "left", "required", "sources", "used")

    def __init__(self, fields: Fields, sources: Mapping[str, str], required: Iterable[str] = ()) -> None:
        self.fields, self.sources, self.required = fields, sources, required
        self.used: set[str] = set()
        self.left: Fields = {}

    def get(self, ours: str) -> Any:
        """The value of a name; None where the record has none."""
        source = self.sources.get(ours, "")
        return self.fields[source] if source in self.fields else self._look(source, ours)[0]

    def take(self, ours: str, default: Any = None) -> Any:
        """The value of a name, whose fields are then used up; `default` where the layout has no such name.

        Raises:
            RecordError: a required field is not there, or the fields of a template are no texts.
        """
        source = self.sources.get(ours)
        if source is None:
            return default
        if source in self.fields:  # most of them: no sets
            self.used.add(source)
            return self.fields[source]
        value, used = self._look(source, ours)
        self.used |= used
        name, _, inner = source.partition(".")
        if inner and used == {name}:  # a path: the rest of the object stays
            self.left[name] = without(self.left.get(name, self.fields[name]), inner)
        return value

    def keep(self, ours: str, left: Any) -> None:
        """Keep what is left of the value of a name beside the row."""
        if left and "{" not in self.sources[ours]:
            self.left[self.sources[ours]] = left

    def _look(self, source: str, ours: str) -> tuple[Any, set[str]]:
        """(value, fields that it is made of) of a source that is more than a field."""
        fields, (first, _, second) = self.fields, source.partition("+")
        if "{" in source:
            return _filled(source, fields)
        if second and first in fields:
            if more := fields.get(second):
                both = text_of(fields[first] or "", first), text_of(more, second)
                return "\n".join(filter(None, both)), {first, second}
            return fields[first], {first, second} & fields.keys()
        if "." in source and (value := at(fields, source)) is not None:
            return value, {source.partition(".")[0]}
        if ours in self.required:
            there = ", ".join(fields) or "none"
            raise RecordError("missing_field", f"{source} should be there; the fields are {there}")
        return None, set()


def _filled(template: str, fields: Fields) -> tuple[str, set[str]]:
    """A template with the fields of a record, and these fields. A field that is null or missing is empty; white space
    at both ends goes. An object that the template looks into stays whole beside the row.

    Raises:
        RecordError: none of the fields is there, or one is not a text or a number.
    """

    def text(hole: re.Match[str]) -> str:
        value = at(fields, hole[1])
        plain = type(value) in (int, float, Number)
        return "" if value is None else str(value) if plain else text_of(value, hole[1])

    names = HOLE.findall(template)
    if not any(name.split(".")[0] in fields for name in names):
        raise RecordError("missing_field", f"no field of {template!r} is there; the fields are {', '.join(fields)}")
    made = HOLE.sub(text, template.replace("\\n", "\n")).strip()
    return made, fields.keys() & names
