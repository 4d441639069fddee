"""JSON: records one a line, in an array, or one object after another.

Two steps: the records' places are found in the bytes, then each is parsed by itself, so that a bad one costs one row.
orjson parses; what it refuses and `json.loads` takes (NaN and the infinities, numbers beyond a double) is parsed by the
latter. Refused by us although `json.loads` takes it: an escaped lone surrogate, which no UTF-8 text can hold.

In arrays and among objects, values are found by a scan that knows JSON's grammar, so a forgotten quote or brace is
noticed where it happens and costs the one record: reading goes on where the next begins, recognised by the first key of
the records before.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import orjson

from datakit.native import Kernels
from datakit.read.files import Cut, Room, Segment, SourceFile, count_newlines, cut_lines, cut_stream
from datakit.read.layouts.record import Fields, MisfitError, parse_exactly, to_json
from datakit.read.row_builder import MAX_RECORD_BYTES, Converter, Place

HEAD_RECORDS: Final = 100
FIRST_BYTES: Final = 1 << 19
BLOCK: Final = 1 << 20
MANY: Final = 64
"""Records read without a parser after which one that needs it is taken for an exception, not for the rule."""
SPANS: Final = 4096
MORE, CLOSED, BROKEN = (
    0,
    1,
    2,
)  # how a scan of `_kernels_records.values` ended; the kernels are not imported to be called
_FIRST_KEY = re.compile(rb'\{\s*("(?:[^"\\\n]|\\.)*")\s*:')
_SPACE = b" \t\r\n"

kernels: Final = Kernels("datakit.read._kernels_records")
Spans = np.ndarray[Any, Any]


def format_of(head: bytes, suffix: str) -> str:
    """jsonl, json (an array) or json_objects (one after another); "" for what begins like neither.

    An array that is JSON by itself on the first line means lines if there are more.
    """
    body, rows = head.lstrip(), first_lines(head)
    good = sum(type(value_of(r)) is dict for r in rows)
    if not body:
        return "jsonl"
    if body.startswith(b"["):
        alone = value_of(rows[0]) is not None
        others = any(value_of(r) is not None for r in rows[1:])
        as_lines = others if alone else suffix == "jsonl" and good > len(rows) // 2
        return "jsonl" if as_lines else "json"
    if not good and body.startswith(b"{") and body[1:].lstrip().startswith(b'"'):
        return "json_objects"
    return "jsonl" if good or any(r[:1] in (b"{", b"[") for r in rows) else ""


def first_records(head: bytes, form: str) -> list[Fields]:
    """The first records that can be parsed."""
    if form == "jsonl":
        rows = first_lines(head)
    else:
        finder, data = Finder(in_array=form == "json"), bytearray(head)
        cut = finder(data, 1 << 62, True)
        spans = cut.spans[:HEAD_RECORDS].tolist() if cut is not None and cut.spans is not None else []
        rows = [head[start:stop] for start, stop, _ in spans]
    values = [value_of(r) for r in rows]
    return [v for v in values if type(v) is dict]


def first_lines(head: bytes) -> list[bytes]:
    """The first lines that are not blank; most often they stand at the very beginning of some megabytes."""
    begin = head[: head.rfind(b"\n", 0, FIRST_BYTES) + 1]
    starts, stops, _ = lines(begin)
    if len(starts) < HEAD_RECORDS:
        starts, stops, _ = lines(head)
    return [head[a:b] for a, b in zip(starts[:HEAD_RECORDS].tolist(), stops[:HEAD_RECORDS].tolist(), strict=True)]


def value_of(row: bytes) -> object:
    """The value of a JSON text, None where it is none."""
    try:
        return parse(row)
    except MisfitError:
        return None


def lines(data: bytes) -> tuple[Spans, Spans, Spans]:
    """(starts, stops, numbers) of the lines that are not blank, int64 each, without the white space around."""
    array = np.frombuffer(data, np.uint8)
    starts, stops, numbers = np.empty((3, int(np.count_nonzero(array == 10)) + 1), np.int64)
    found = kernels.lines(array, True, starts, stops, numbers)
    return starts[:found], stops[:found], numbers[:found]


def members(array: Spans, starts: Spans, stops: Spans) -> tuple[Spans, Spans, Spans]:
    """(first, spans, repeated): the members of record r are `spans[first[r]:first[r + 1]]`, as
    `_kernels_records.members` has it; `repeated[r]` if a key stands twice."""
    room = int((stops - starts).sum()) // 5 + len(starts)
    first, repeated = np.empty(len(starts) + 1, np.int64), np.empty(len(starts), np.bool_)
    spans = np.empty((room, 4), np.int64)
    kernels.members(array, starts, stops, first, repeated, spans, np.empty(room, np.uint64))
    return first, spans[: first[-1]], repeated


def cut(file: SourceFile, index: int, room: Room) -> Iterator[Segment]:
    """Cut at line ends."""
    return cut_lines(file, index, room)


def read(data: bytes, segment: Segment, converter: Converter) -> Iterator[None]:
    """Put the lines of a segment into the converter's sink."""
    starts, stops, numbers = lines(data)
    records = (numbers + segment.first_line).tolist()

    def place(i: int) -> Place:
        return Place(records[i], records[i], segment.start + int(starts[i]))

    return read_records(data, starts, stops, records, place, converter)


def parse(raw: bytes | memoryview) -> Any:
    """The value of a JSON text.

    Raises:
        MisfitError: what is wrong with it, in one word and in a sentence.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as e:
        return parse_slowly(bytes(raw), str(e))


def parse_slowly(raw: bytes, refusal: str = "") -> Any:
    """`parse` for what orjson refused, with the reason why it is no row if `json.loads` refuses it too."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        raise MisfitError(
            "invalid_utf8", f"byte {e.start} of the record is 0x{raw[e.start]:02x}, which is not UTF-8 there"
        ) from None
    try:
        value = json.loads(text)
    except RecursionError:
        raise MisfitError("too_deep", "its brackets are nested too deeply") from None
    except ValueError as e:
        raise MisfitError("invalid_json", refusal or str(e)) from None
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


def read_records(
    data: bytes,
    starts: np.ndarray[Any, Any],
    stops: np.ndarray[Any, Any],
    records: list[int],
    place: Callable[[int], Place],
    converter: Converter,
) -> Iterator[None]:
    """Put the records at `starts:stops` of `data` into the converter's sink; yields before each megabyte or so.

    `records` are their numbers in the file, `place(i)` says where record i of them stands.
    """
    array, begin = np.frombuffer(data, np.uint8), 0
    while begin < len(starts):
        yield
        end = max(begin + 1, int(np.searchsorted(stops, starts[begin] + BLOCK)))
        flat = converter.add_flat(array, starts[begin:end], stops[begin:end], records[begin:end])
        begin += flat
        end = min(end, begin + (1 if flat >= MANY else MANY * MANY))  # and is tried again
        bad = _read_block(data, array, starts[begin:end], stops[begin:end], records[begin:end], converter)
        for i, why in bad:
            raw = data[int(starts[begin + i]) : int(stops[begin + i])]
            converter.sink.quarantine(converter.source.name, place(begin + i), why, raw)
        converter.sink.ends_badly = bool(bad) and bad[-1][0] == end - begin - 1
        begin = end


def _read_block(
    data: bytes,
    array: np.ndarray[Any, Any],
    starts: np.ndarray[Any, Any],
    stops: np.ndarray[Any, Any],
    records: list[int],
    converter: Converter,
) -> list[tuple[int, MisfitError]]:
    """Add the records of a block; returns the places of those that do not fit, and why."""
    first, spans, repeated = members(array, starts, stops)
    firsts, flat, bad = first.tolist(), spans.ravel().tolist(), []
    rows = zip(starts.tolist(), stops.tolist(), records, repeated.tolist(), strict=True)
    for i, (start, stop, record, twice) in enumerate(rows):
        line, rewrite = data[start:stop], False
        try:
            if stop - start > MAX_RECORD_BYTES:
                raise MisfitError("too_long", f"the record has {stop - start:,} bytes, more than {MAX_RECORD_BYTES:,}")
            try:
                fields = orjson.loads(line)
            except orjson.JSONDecodeError as e:
                fields, rewrite = parse_slowly(line, str(e)), True
            original = _Written(data, line, flat[4 * firsts[i] : 4 * firsts[i + 1]], rewrite)
            converter.add(fields, record, original, stop - start, twice)
        except MisfitError as e:
            bad.append((i, e))
    return bad


class _Written:
    """A record's bytes; see `row_builder.Original`.

    `spans` are the rows of `_kernels_records.members` one after another; `rewrite` makes NaN and the infinities,
    which JSON lacks, strings.
    """

    __slots__ = ("data", "line", "rewrite", "spans")

    def __init__(self, data: bytes, line: bytes, spans: list[int], rewrite: bool) -> None:
        self.data, self.line, self.spans, self.rewrite = data, line, spans, rewrite

    def value(self, key: str) -> str:
        """The JSON text of a field, "" without it."""
        return next((self._text(start, stop) for k, start, stop in self._members() if k == key), "")

    def without(self, used: tuple[str, ...]) -> list[str]:
        """The members but the last of each used key, as they were written."""
        data, spans = self.data, self.spans
        keys = [data[a:b] for a, b in zip(spans[::4], spans[1::4], strict=True)]
        if self.rewrite or len(set(keys)) < len(keys) or b"\\" in b"".join(keys):
            members = self._members()
            last = {k: i for i, (k, _, _) in enumerate(members)}
            kept = [(k, a, b) for i, (k, a, b) in enumerate(members) if k not in used or last[k] != i]
            return [f"{to_json(k)}:{self._text(a, b)}" for k, a, b in kept]
        skip = [k.encode() for k in used]
        kept_spans = zip(keys, spans[::4], spans[3::4], strict=True)
        return [data[a - 1 : b].decode() for key, a, b in kept_spans if key not in skip]

    def exact(self) -> Fields:
        """The fields, numbers as they were written."""
        fields: Fields = parse_exactly(self.line.decode())
        return fields

    def _members(self) -> list[tuple[str, int, int]]:
        """(key, value start, value stop) of every member, the key's escapes undone."""
        spans = self.spans
        keys = [self.data[a:b].decode() for a, b in zip(spans[::4], spans[1::4], strict=True)]
        decoded = [orjson.loads(f'"{k}"') if "\\" in k else k for k in keys]
        return list(zip(decoded, spans[2::4], spans[3::4], strict=True))

    def _text(self, start: int, stop: int) -> str:
        text = self.data[start:stop].decode()
        return to_json(parse_exactly(text)) if self.rewrite and ("NaN" in text or "Infinity" in text) else text


class Finder:
    """Finds the values of one file, call by call; see `files.Find`."""

    def __init__(self, in_array: bool) -> None:
        self.in_array = in_array
        self.opened = not in_array
        self.closed = False
        self.key: bytes | None = None

    def __call__(self, data: bytearray, room: int, at_end: bool) -> Cut | None:
        """The first cut at or past the room; see `files.Find`."""
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


def read_values(data: bytes, segment: Segment, converter: Converter) -> Iterator[None]:
    """Put the values of a segment into the converter's sink; a record's number is its place in the array."""
    spans = segment.spans if segment.spans is not None else np.empty((0, 3), np.int64)
    records = list(range(segment.first_record, segment.first_record + len(spans)))

    def place(i: int) -> Place:
        return Place(records[i], segment.first_line + int(spans[i, 2]), segment.start + int(spans[i, 0]))

    starts, stops = np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1])
    return read_records(data, starts, stops, records, place, converter)
