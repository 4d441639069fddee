"""JSON records that stand at known places of a buffer: lines of JSONL, elements of an array.

orjson parses; what it refuses and `json.loads` takes (NaN and the infinities, numbers beyond a double) is parsed by the
latter. Refused by us although `json.loads` takes it: an escaped lone surrogate, which no UTF-8 text can hold.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import orjson

from datakit.layouts.record import Fields, MisfitError, parse_exactly, to_json
from datakit.read.convert import Converter
from datakit.read.scan import members as member_spans
from datakit.read.sink import MAX_RECORD_BYTES, Place

BLOCK: Final = 1 << 20
MANY: Final = 64
"""Records read without a parser after which one that needs it is taken for an exception, not for the rule."""


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


def read(
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
    first, spans, repeated = member_spans(array, starts, stops)
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
    """A record's bytes; see `convert.Original`.

    `spans` are the rows of `_kernels.members` one after another; `rewrite` makes NaN and the infinities, which JSON
    lacks, strings.
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
