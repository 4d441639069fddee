"""JSON records that stand at known places of a buffer: lines of JSONL, elements of an array.

orjson parses; what it refuses and `json.loads` takes (NaN and the infinities, numbers beyond a double) is parsed by the
latter. Refused by us although `json.loads` takes it: an escaped lone surrogate, which no UTF-8 text can hold.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import orjson

from datakit.layouts.record import Fields, MisfitError, parse_exactly, to_json
from datakit.read._kernels import members as member_spans
from datakit.read.convert import Converter
from datakit.read.sink import MAX_RECORD_BYTES, Place

BLOCK: Final = 1 << 20


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
    view, array = memoryview(data), np.frombuffer(data, np.uint8)
    count = len(starts)
    begin = 0
    while begin < count:
        yield
        end = max(begin + 1, int(np.searchsorted(stops, starts[begin] + BLOCK)))
        bad = _read_block(view, array, starts[begin:end], stops[begin:end], records[begin:end], converter)
        for i, why in bad:
            raw = bytes(view[int(starts[begin + i]) : int(stops[begin + i])])
            converter.sink.quarantine(converter.source.name, place(begin + i), why, raw)
        converter.sink.ends_badly = bool(bad) and bad[-1][0] == end - begin - 1
        begin = end


def _read_block(
    view: memoryview,
    array: np.ndarray[Any, Any],
    starts: np.ndarray[Any, Any],
    stops: np.ndarray[Any, Any],
    records: list[int],
    converter: Converter,
) -> list[tuple[int, MisfitError]]:
    """Add the records of a block; returns the places of those that do not fit, and why."""
    base, end = int(starts[0]), int(stops[-1])
    window, bad = view[base:end], []
    first, spans, repeated = member_spans(array[base:end], starts - base, stops - base)
    rows = zip((starts - base).tolist(), (stops - base).tolist(), records, repeated.tolist(), strict=True)
    for i, (start, stop, record, twice) in enumerate(rows):
        line, rewrite = window[start:stop], False
        try:
            if stop - start > MAX_RECORD_BYTES:
                raise MisfitError("too_long", f"the record has {stop - start:,} bytes, more than {MAX_RECORD_BYTES:,}")
            try:
                fields = orjson.loads(line)
            except orjson.JSONDecodeError as e:
                fields, rewrite = parse_slowly(bytes(line), str(e)), True
            members = partial(_members, window, spans, int(first[i]), int(first[i + 1]), rewrite)
            converter.add(fields, record, members, partial(_exact, line), stop - start, twice)
        except MisfitError as e:
            bad.append((i, e))
    return bad


def _exact(line: memoryview) -> Fields:
    fields: Fields = parse_exactly(bytes(line).decode())
    return fields


def _members(
    window: memoryview, spans: np.ndarray[Any, Any], first: int, last: int, rewrite: bool
) -> Iterator[tuple[str, str]]:
    """The members of one record; `rewrite` makes NaN and the infinities, which JSON lacks, strings."""
    for key_start, key_stop, start, stop in spans[first:last].tolist():
        key, value = str(window[key_start:key_stop], "utf-8"), str(window[start:stop], "utf-8")
        if rewrite and ("NaN" in value or "Infinity" in value):
            value = to_json(parse_exactly(value))
        yield (orjson.loads(f'"{key}"') if "\\" in key else key), value
