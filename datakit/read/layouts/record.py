"""One foreign record, what may be said about it, and values back to JSON without changing a digit."""

import base64
import json
from typing import Any

import orjson

Fields = dict[str, Any]


class MisfitError(Exception):
    """A record that cannot become a row: `reason` is one word to count by, `detail` a sentence for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class InexactNumbersError(Exception):
    """Nested numbers must be written out again, and this parse may have rounded them: parse exactly and try again."""


class Number(str):
    """A JSON number as its characters, so that it can be written exactly as it was read."""

    __slots__ = ()


def parse_exactly(text: str) -> Any:
    """JSON with floats and big integers as `Number`; NaN and the infinities, which JSON lacks, as strings."""
    return json.loads(text, parse_float=Number, parse_int=_integer, parse_constant=str)


def _integer(digits: str) -> int | Number:
    return int(digits) if len(digits) < 19 else Number(digits)


def with_exact_numbers(value: Any) -> Any:
    """A value from a typed column with its floats as `Number`s: their shortest decimal form is exact."""
    if type(value) is float:
        return Number(json.dumps(value)) if value - value == 0 else json.dumps(value)
    if type(value) is dict:
        return {k: with_exact_numbers(v) for k, v in value.items()}
    return [with_exact_numbers(v) for v in value] if type(value) is list else value


def to_json(value: Any) -> str:
    """A nested value as JSON text.

    Raises:
        InexactNumbersError: it holds a float, whose original digits this parse no longer has.
        MisfitError: it is nested too deeply to be written.
    """
    if _has_float(value):
        raise InexactNumbersError
    try:
        return orjson.dumps(value, default=_default, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except TypeError as e:
        raise MisfitError("bad_value", f"a nested value cannot be written as JSON: {e}") from None


def _default(value: Any) -> Any:
    """What JSON has no type for: a `Number` as its digits, bytes in base64, anything else as its text."""
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
        MisfitError: it is something else; the detail names what.
    """
    if type(value) is not str:
        raise MisfitError("not_text", f"{where} should be a string, found {name_of(value)}")
    return value


def name_of(value: Any) -> str:
    """What a JSON value is, in JSON's words, with the value where it is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Number):
        return f"the number {value}"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else type(value).__name__
