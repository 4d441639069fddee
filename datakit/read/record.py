"""What all readers and layouts share: why a record is refused, JSON that keeps every digit, values by our names."""

import ast
import base64
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

import orjson

Fields = dict[str, Any]
MAX_DEPTH: Final = 500
RECORD_BYTES: Final = 256 << 20
"""Bytes of the longest record. The offsets of an Arrow string array end at 2 GiB."""


class RecordError(Exception):
    """A record that cannot become a row. `reason` is one word that is counted, `detail` a sentence for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


class InexactNumbersError(Exception):
    """A nested float must be written as JSON again, but parsing may have rounded it. Parse exactly and try again."""


class Number(str):
    """A JSON number as its characters, so that it is written exactly as it was read."""

    __slots__ = ()


class Record:
    """One record of a file: its fields, or what is wrong with it, and where it stands. The fields here are typed cells
    (Parquet, Arrow) or texts (CSV, plain text, web pages); `json.JsonRecord` has the bytes that the user wrote."""

    repeated = False
    """Whether one of its keys occurs twice."""
    made: Mapping[str, Any] = MappingProxyType({})
    """Those of its fields that the user did not write (the title of a page)."""

    def __init__(self, fields: Any, number: int, line: int, offset: int | None, raw: bytes, size: int = -1) -> None:
        self.fields = fields
        """A dict; a `RecordError`; or the ledger note that counts a record which is no row and no mistake."""
        self.number, self.line, self.offset = number, line, offset
        """Its place in the file and its line, from 0; its first byte in the uncompressed file (None: cells)."""
        self.raw = raw
        """Its bytes; of cells none: see `written`."""
        self.size = len(raw) if size < 0 else size

    def without(self, used: Collection[str]) -> list[str]:
        """The JSON text of each `"key": value`, in the user's order, without the fields in `used`.

        If a used key occurs twice, only its last value was used, as in JSON parsers; the earlier ones are returned.
        Times are written in ISO 8601, bytes in base64.
        """
        fields = {k: v for k, v in self.fields.items() if k not in used and k not in self.made}
        return [f"{to_json(k)}:{_written(_with_exact_numbers(v))}" for k, v in fields.items()]

    def written(self) -> bytes:
        """The bytes that are kept of it: its own, or those of its cells as JSON."""
        if self.raw or type(self.fields) is not dict:
            return self.raw
        return ("{" + ",".join(self.without(())) + "}").encode()

    def exact(self) -> Fields:
        """The fields, with each number that a float or an int64 cannot hold exactly as a `Number`."""
        return {k: _with_exact_numbers(v) for k, v in self.fields.items()}


def parsed(raw: bytes, parse: Callable[[bytes], Fields | str], number: int, line: int, offset: int | None) -> Record:
    """The record that `parse` makes of some bytes, or what is wrong with them."""
    try:
        made = parse(raw) if len(raw) <= RECORD_BYTES else too_long()
    except RecordError as e:
        made = e
    return Record(made, number, line, offset, raw)


def too_long() -> RecordError:
    """What is wrong with a record of more than `RECORD_BYTES`."""
    return RecordError("too_long", f"the record has more than {RECORD_BYTES >> 20} MiB, the most that are read")


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
    """Parse JSON with floats and big integers as `Number`, and with NaN and the infinities as strings."""
    integer = lambda digits: int(digits) if len(digits) < 19 else Number(digits)  # noqa: E731
    return json.loads(text, parse_float=Number, parse_int=integer, parse_constant=str)


def _with_exact_numbers(value: Any) -> Any:
    """A value from a typed column, with its floats as `Number`s in their shortest exact form."""
    if type(value) is float:
        return Number(json.dumps(value)) if value - value == 0 else json.dumps(value)
    if type(value) is dict:
        return {k: _with_exact_numbers(v) for k, v in value.items()}
    return [_with_exact_numbers(v) for v in value] if type(value) is list else value


def _is_plain(value: Any) -> bool:
    """Whether a value of Python's is one that JSON has."""
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if type(value) is list else type(value) in (str, int, float, bool, type(None))


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
    return any(_has_float(v, depth + 1) for v in value) if type(value) is list else type(value) is float


def listed(value: Any) -> Any:
    """A list that is written in another way: as JSON text, as Python prints it (so pandas writes lists into CSV), or as
    an object of lists of one length (so `datasets` stores lists of objects). Any other value as it is."""
    if type(value) is str and value.lstrip().startswith("["):
        try:
            return parse_exactly(value) if _has_float(orjson.loads(value)) else orjson.loads(value)
        except orjson.JSONDecodeError:
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                made = ast.literal_eval(value.strip())
                return _with_exact_numbers(made) if _is_plain(made) else value
            return value
    if type(value) is not dict or not value:
        return value
    columns = list(value.values())
    if any(type(column) is not list or len(column) != len(columns[0]) for column in columns):
        return value
    return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]


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
