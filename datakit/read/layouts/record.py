"""What all readers and layouts share: why a record is refused, and JSON that keeps every digit of a number."""

import base64
import json
from typing import Any

import orjson

Fields = dict[str, Any]


class MisfitError(Exception):
    """A record that cannot become a row. `reason` is one word that is counted, `detail` a sentence for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def decoded(raw: bytes) -> str:
    """A record's bytes as text.

    Raises:
        MisfitError: they are not UTF-8.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        raise MisfitError(
            "invalid_utf8", f"byte {e.start} of the record is 0x{raw[e.start]:02x}, which is not UTF-8 there"
        ) from None


class InexactNumbersError(Exception):
    """A nested float must be written as JSON again, but parsing may have rounded it. Parse exactly and try again."""


class Number(str):
    """A JSON number as its characters, so that it is written exactly as it was read."""

    __slots__ = ()


def parse_exactly(text: str) -> Any:
    """Parse JSON with floats and big integers as `Number`, and with NaN and the infinities as strings."""
    return json.loads(text, parse_float=Number, parse_int=_integer, parse_constant=str)


def _integer(digits: str) -> int | Number:
    return int(digits) if len(digits) < 19 else Number(digits)


def with_exact_numbers(value: Any) -> Any:
    """A value from a typed column, with its floats as `Number`s in their shortest exact form."""
    if type(value) is float:
        return Number(json.dumps(value)) if value - value == 0 else json.dumps(value)
    if type(value) is dict:
        return {k: with_exact_numbers(v) for k, v in value.items()}
    return [with_exact_numbers(v) for v in value] if type(value) is list else value


def to_json(value: Any) -> str:
    """A nested value as JSON text.

    Raises:
        InexactNumbersError: it holds a float, whose original digits are lost.
        MisfitError: it is nested too deeply.
    """
    if _has_float(value):
        raise InexactNumbersError
    try:
        return orjson.dumps(value, default=_default, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except TypeError as e:
        raise MisfitError("bad_value", f"a nested value cannot be written as JSON: {e}") from None


def _default(value: Any) -> Any:
    """Values without a JSON type: a `Number` as its digits, bytes in base64, any other as its text."""
    if type(value) is Number:
        return orjson.Fragment(str.__str__(value))
    return base64.b64encode(value).decode() if type(value) is bytes else str(value)


def _has_float(value: Any, depth: int = 0) -> bool:
    if depth > 500:
        raise MisfitError("too_deep", "a value is nested more than 500 levels deep")
    if type(value) is dict:
        return any(_has_float(v, depth + 1) for v in value.values())
    return any(_has_float(v, depth + 1) for v in value) if type(value) is list else type(value) is float


def text_of(value: Any, where: str) -> str:
    """A value that must be a string.

    Raises:
        MisfitError: it is not a string.
    """
    if type(value) is not str:
        raise MisfitError("not_text", f"{where} should be a string, found {name_of(value)}")
    return value


def name_of(value: Any) -> str:
    """The type of a JSON value for error messages, with the value if it is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Number):
        return f"the number {value}"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else type(value).__name__
