"""A dataset's own fields as columns of their type: which fields are columns, and the values of rows as arrays.

A field is a column if it has one type in all files: that of the schema in Parquet and Arrow files, in other files that
of its values in the first records. Whole numbers and fractions are one type, a missing field is null, and objects with
different keys are one struct with all of them. Any other field stays in `extra`, as the JSON that the user wrote. So
does a single value that does not fit its column exactly: nothing is rounded, cut or lost.
"""

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from datakit.data import COMMON, KEY, RECORD
from datakit.read.record import Fields

MAX_COLUMNS: Final = 256
MAX_KEYS: Final = 64
"""An object with more keys is a table of values by name, no struct: it stays in `extra`."""
EXACT: Final = 1 << 53
"""From here on, a float does not hold every whole number."""
_MICROSECONDS: Final = re.compile(r"(:\d\d|\.\d{6}000)(\+00:00)?$")
"""The end of a time with whole microseconds: Python's times, which show rows to people, have no more."""
INFINITY: Final = float("inf")
RESERVED: Final = frozenset(
    [f.name for f in (*COMMON, KEY, RECORD)]
    + ["text", "messages", "tools", "prompt", "chosen", "rejected", "input_ids", "label_spans", "segment_source"]
    + [
        "rejected_ids",
        "rejected_label_spans",
        "stage",
        "reason",
        "detail",
        "duplicate_of",
        "duplicate_in",
        "similarity",
    ]
    + ["lang_raw", "classifier_score", "perplexity", "perplexity_bucket", "cluster_size", "duplicates", "minhash"]
    + ["file", "line", "byte_offset", "raw", "label", "notes"]
)
"""Names that stages use or may use. A user's field of such a name stays in `extra`."""

Fits = Callable[[Any], bool]


def is_free(name: str) -> bool:
    """Whether a user's field of this name can be a column."""
    return name not in RESERVED and name.isprintable() and 0 < len(name) <= 200


def column_type(kind: pa.DataType) -> pa.DataType | None:
    """The type that a column of an Arrow type is stored as; None if it cannot be a column of its own."""
    t = pa.types
    if t.is_dictionary(kind):
        return column_type(kind.value_type)
    if t.is_large_string(kind) or t.is_string_view(kind):
        return pa.string()
    if t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind):
        return pa.binary()
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        inner = column_type(kind.value_type)
        return None if inner is None else pa.list_(pa.field("element", inner))
    if t.is_struct(kind):
        fields = [(f.name, column_type(f.type)) for f in kind if not pa.types.is_null(f.type)]
        whole = 0 < len(fields) <= MAX_KEYS and all(inner is not None for _, inner in fields)
        return pa.struct([pa.field(n, inner) for n, inner in fields]) if whole else None
    if t.is_timestamp(kind):
        return pa.timestamp("ms", kind.tz) if kind.unit == "s" else kind
    plain = (
        t.is_boolean,
        t.is_integer,
        t.is_float32,
        t.is_float64,
        t.is_string,
        t.is_binary,
        t.is_date32,
        t.is_decimal,
    )
    return kind if any(test(kind) for test in plain) else None


def types_of(schema: pa.Schema) -> dict[str, pa.DataType | None]:
    """The types of the columns of a Parquet or Arrow file; None for those that stay in `extra`."""
    return {f.name: column_type(f.type) for f in schema if not pa.types.is_null(f.type)}


def inferred(head: Sequence[Fields]) -> dict[str, pa.DataType | None]:
    """The types of the fields of some records; None for fields with several types. A field that is always null or empty
    has no type yet and is left out."""
    found: dict[str, pa.DataType | None] = {}
    for name in dict.fromkeys(n for fields in head for n in fields):
        try:
            kind = pa.infer_type([fields.get(name) for fields in head])
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            found[name] = None
            continue
        kind = _without_nulls(kind)
        if _is_known(kind):
            kind = column_type(kind)
            fits = kind is not None and fitting(kind)
            found[name] = kind if fits and all(fits(f.get(name)) for f in head) else None
    return found


def _without_nulls(kind: pa.DataType) -> pa.DataType:
    """A type without the keys of its objects that were always null: what they hold is not known yet."""
    if pa.types.is_list(kind):
        return pa.list_(_without_nulls(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _without_nulls(f.type)) for f in kind if not pa.types.is_null(f.type)])
    return kind


def _is_known(kind: pa.DataType) -> bool:
    """Whether a type says what all values will be: no part of it was only seen as null, [] or {}."""
    if pa.types.is_list(kind):
        return _is_known(kind.value_type)
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_known(f.type) for f in kind)
    return not pa.types.is_null(kind)


def unified(files: Iterable[Mapping[str, pa.DataType | None]]) -> pa.Schema:
    """The columns of a dataset, by name, from the types in each of its files."""
    found: dict[str, pa.DataType | None] = {}
    for types in files:
        for name, kind in types.items():
            found[name] = kind if name not in found else joined(found[name], kind)
    known = sorted((n, kind) for n, kind in found.items() if kind is not None and is_free(n))
    return pa.schema([pa.field(n, kind) for n, kind in known[:MAX_COLUMNS]])


def joined(one: pa.DataType | None, other: pa.DataType | None) -> pa.DataType | None:
    """The type that holds the values of both; None where there is none."""
    if one is None or other is None or one == other:
        return one if one == other else None
    try:
        schemas = [pa.schema([pa.field("x", kind)]) for kind in (one, other)]
        return column_type(pa.unify_schemas(schemas, promote_options="permissive").field(0).type)
    except (pa.ArrowException, TypeError):
        return None


def fitting(kind: pa.DataType) -> Fits:
    """A test whether a JSON value, or a cell of Arrow as Python has it, is kept exactly by a column of a type."""
    t = pa.types
    if t.is_string(kind):
        return lambda v: v is None or type(v) is str
    if t.is_boolean(kind):
        return lambda v: v is None or type(v) is bool
    if t.is_integer(kind):
        signed = t.is_signed_integer(kind)
        low, high = (-(1 << (kind.bit_width - 1)), 1 << (kind.bit_width - 1)) if signed else (0, 1 << kind.bit_width)
        return lambda v: v is None or (type(v) is int and low <= v < high)
    if t.is_floating(kind):
        single = kind.bit_width == 32  # from typed cells only, which hold it exactly
        return lambda v: (
            v is None
            or (
                type(v) in (int, float)
                and (single or v != v or abs(v) < EXACT or (type(v) is float and abs(v) == INFINITY))
            )
        )
    if t.is_list(kind):
        inner = fitting(kind.value_type)
        return lambda v: v is None or (type(v) is list and all(map(inner, v)))
    if t.is_struct(kind):
        tests = {f.name: fitting(f.type) for f in kind}
        return lambda v: v is None or (type(v) is dict and all(tests.get(k, _is_null)(x) for k, x in v.items()))
    if t.is_timestamp(kind):
        if kind.unit == "ns":  # columnar files give such times as text
            return lambda v: v is None or (type(v) is str and _MICROSECONDS.search(v) is not None)
        return lambda v: v is None or isinstance(v, datetime.datetime)
    if t.is_date32(kind):
        return lambda v: v is None or type(v) is datetime.date
    return lambda v: v is None or not isinstance(v, str | int | float | bool | dict | list)


def _is_null(value: Any) -> bool:
    return value is None


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values that fit a type as an array of it."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":  # columnar files give them as ISO 8601 text
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)
