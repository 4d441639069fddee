"""From parsed records to rows: each record becomes a row of its file's layout, or is quarantined with the reason.

What the layout does not read stays beside the row: as a column of its type, or as JSON in `extra`.
"""

import datetime
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from datakit import data as schema
from datakit.data import conversation_view, preference_view
from datakit.read.layouts.conversations import (
    PLAIN,
    Conversation,
    Message,
    ParseOptions,
    Preference,
    one_sided,
    refuse_media,
)
from datakit.read.layouts.table import MAPPED, Spans, Tokens, converter
from datakit.read.record import (
    Fields,
    InexactNumbersError,
    Number,
    Picked,
    Record,
    at,
    to_json,
)
from datakit.read.streams import RECORD_BYTES, Layout, RecordError
from datakit.stage import RawBatch
from datakit.text.words import digest

BATCH_BYTES: Final = 16 << 20
"""The size of a batch, which depends on the records only."""
ROW_BYTES: Final = 256
"""What a row takes besides its record: so a batch has at most 65,536 of them."""
ID: Final = "id"


class RowBuilder:
    """Collects the rows and the quarantined records of one unit, file by file.

    `add` converts one record; `take` returns everything collected since the last call as one batch.
    """

    def __init__(
        self,
        kind: str,
        segment_source: str = "text",
        id_field: str = "",
        options: ParseOptions = PLAIN,
        columns: pa.Schema | None = None,
    ) -> None:
        self.kind, self.segment_source, self.options = kind, segment_source, options
        self.id_field = id_field or ID
        self.columns = columns or pa.schema([])
        self._tests = [(f.name, fitting(f.type)) for f in self.columns]
        self._begin_batch()

    def _begin_batch(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        """Of each row: key, id, source, extra, content, and the values of the user's own columns."""
        self.bad: list[tuple[str, int, int | None, str, str, bytes]] = []
        self.notes = Counter[str]()
        """Counts under the names of ledger notes."""
        self.bytes = 0
        """From `BATCH_BYTES` on, the caller should take a batch."""

    def begin_file(self, index: int, name: str, layout: Layout) -> None:
        """The next records come from file number `index`, which has this name and this layout."""
        self.name, self.layout = name, layout
        self.first_key = schema.row_key(index, 0)
        self.convert, self.sources = converter(layout), {**layout.required, **layout.optional}
        self._later = frozenset(_outer(source) for source in layout.later)
        self._known = {*layout.beside, self.id_field}

    def add(self, found: Record) -> None:
        """Add the row of a record, count it under its note, or quarantine it."""
        self.bytes += (found.size or len(found.raw)) + ROW_BYTES
        fields = found.fields
        if type(fields) is str:
            self.notes[fields] += 1
            return
        try:
            if type(fields) is RecordError:
                raise fields
            content, used, left = self.content(found)
            own_id = self._id(found)
            if own_id and self.id_field in fields:
                used.add(self.id_field)
            values = self._own(fields, used) if self._tests else ()
            extra = None
            if len(fields) > len(used) or left:
                kept = found.without(used) + left
                extra = "{" + ",".join(kept) + "}" if kept else None
                if not fields.keys() - used <= self._known:
                    self.notes["late_fields"] += 1
            row_id = own_id or f"{self.name}:{found.number}"
            self.rows.append((self.first_key + found.number, row_id, self.name, extra, content, *values))
        except RecordError as e:
            raw = found.written()[:RECORD_BYTES]
            self.bad.append((self.name, found.line + 1, found.offset, e.reason, e.detail, raw))

    def content(self, found: Record, exact: bool = False) -> tuple[Any, set[str], list[str]]:
        """(what a row says, the fields that it was made from, JSON members of what is left inside of these).

        Numbers are parsed exactly only where one of them must be written again.

        Raises:
            RecordError: the record does not fit the layout.
        """
        fields = found.exact() if exact else found.fields
        sources = self.sources if self._later.isdisjoint(fields) else self._sources(fields)
        picked = Picked(fields, sources, self.layout.required)
        try:
            made = self.convert(picked, self.options)
            left = [f"{to_json(k)}:{to_json(v)}" for k, v in picked.left.items() if v]
        except InexactNumbersError:
            return self.content(found, exact=True)
        except RecordError as e:  # in the words of the file
            ours = re.split(r"\W", e.detail, maxsplit=1)[0]
            raise RecordError(e.reason, sources.get(ours, ours) + e.detail[len(ours) :]) from None
        if isinstance(made, Conversation | Preference) and self.layout.name != MAPPED:
            refuse_media(fields, made[0])
        if isinstance(made, Conversation):
            made = self._judged(made)
        return made, picked.used, left

    def _sources(self, fields: Fields) -> dict[str, str]:
        """The sources of a record that has a field of which the first records of its file had none."""
        later, own = self.layout.later, self.sources
        found = {ours: source for source, ours in reversed(list(later.items())) if _has(fields, source)}
        return own | {ours: source for ours, source in found.items() if not _has(fields, own.get(ours, ""))}

    def _judged(self, found: Conversation) -> Conversation | Preference:
        """A pair with one side where pairs are asked for; among conversations, a bad answer has weight 0."""
        if self.kind == "preference":
            made = one_sided(found)
            self.notes["answers_judged_good" if made.chosen else "answers_judged_bad"] += 1
            return made
        if str(found.label) in ("0", "0.0"):
            self.notes["labels_of_0"] += 1
        elif str(found.label).lower() == "false":
            self.notes["answers_judged_bad"] += 1
            messages = [m._replace(weight=0.0) if m.role == "assistant" else m for m in found.messages]
            return found._replace(messages=messages)
        return found

    def _id(self, found: Record) -> str | None:
        """The user's id, a string or a whole number with all its digits; None for any other value."""
        given = at(found.fields, self.id_field)
        if type(given) is float:  # a big integer may be parsed as one
            given = at(found.exact(), self.id_field)
            return str(given) if type(given) is Number and given.lstrip("-").isdigit() else None
        return str(given) if type(given) in (int, str) else None

    def _own(self, fields: Fields, used: set[str]) -> list[Any]:
        """The values of the user's own columns, whose fields are then used up."""
        values = []
        for name, fits in self._tests:
            value = None if name in used else fields.get(name)
            if not fits(value):
                value = None
                self.notes["fields_of_other_type"] += 1
            elif name in fields and name not in used:
                used.add(name)
            values.append(value)
        return values

    def take(self) -> RawBatch:
        """Everything collected since the last call."""
        n, kinds = len(self.rows), schema.of_kind(self.kind)
        keys, ids, sources, extras, contents, *own = _transposed(self.rows, 5 + len(self.columns))
        made = _columns(self.kind, contents) | {
            "row_key": pa.array(np.asarray(keys, np.uint64)),
            "id": pa.array(ids, pa.string()),
            "source": pa.array(sources, pa.string()),
            "lang": pa.nulls(n, pa.string()),
            "lang_score": pa.nulls(n, pa.float32()),
            "extra": pa.array(extras, pa.string()),
            "segment_source": pa.array([self.segment_source] * n, pa.string()),
        }
        arrays = [array_of(v, f.type) for v, f in zip(own, self.columns, strict=True)]
        rows = pa.record_batch([made[name] for name in kinds.names] + arrays, schema=pa.schema([*kinds, *self.columns]))
        bad = _transposed(self.bad, len(schema.quarantine()))
        columns = [pa.array(c, f.type) for c, f in zip(bad, schema.quarantine(), strict=True)]
        batch = RawBatch(rows, pa.record_batch(columns, schema=schema.quarantine()), self.notes)
        self._begin_batch()
        return batch


def _outer(source: str) -> str:
    """The field that a source without alternatives begins with."""
    return re.split(r"[.+]", source, maxsplit=1)[0]


def _has(fields: Fields, source: str) -> bool:
    return at(fields, source.partition("+")[0]) is not None


def _transposed(rows: Iterable[Sequence[Any]], width: int) -> list[Sequence[Any]]:
    """The columns of some rows, `width` of them also where there is no row."""
    return list(zip(*rows, strict=True)) or [()] * width


# The columns of each kind.


def _columns(kind: str, contents: Sequence[Any]) -> dict[str, pa.Array]:
    """The columns that are made from the contents of rows of a kind."""
    if kind == "document":
        texts = pa.array(contents, pa.string())
        return {"text": texts, "content_hash": digest(texts)}
    if kind.startswith("tokens"):
        made = {
            "turn_starts": pa.nulls(len(contents), pa.list_(pa.int32())),
            "input_ids": pa.array([t.input_ids for t in contents], pa.list_(pa.int32())),
            "label_spans": _spans([t.label_spans for t in contents]),
            "content_hash": pa.array([_hash_ids(t) for t in contents], pa.string()),
        }
        if kind == "tokens_preference":
            made["rejected_ids"] = pa.array([t.rejected_ids for t in contents], pa.list_(pa.int32()))
            made["rejected_label_spans"] = _spans([t.rejected_label_spans for t in contents])
        return made
    if kind == "conversation":
        names, views = ["messages"], [conversation_view(c.messages, c.tools) for c in contents]
    else:
        names, views = ["prompt", "chosen", "rejected"], [preference_view(c[:3], c.tools) for c in contents]
    return {name: _messages_array([c[i] for c in contents]) for i, name in enumerate(names)} | {
        "tools": pa.array([c.tools for c in contents], pa.string()),
        "content_hash": digest(pa.array(views, pa.string())),
    }


def _messages_array(rows: list[list[Message]]) -> pa.Array:
    """Lists of messages as one Arrow list array. Its columns are built flat, many times faster than row by row."""
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(r) for r in rows], out=offsets[1:])
    flat = _transposed(chain.from_iterable(rows), len(Message._fields))
    columns = [pa.array(c, f.type) for c, f in zip(flat, schema.MESSAGE, strict=True)]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays(columns, fields=list(schema.MESSAGE)))


def _spans(rows: list[Spans | None]) -> pa.Array:
    spans = [None if r is None else [{"start": a, "end": b} for a, b in r] for r in rows]
    return pa.array(spans, schema.SPANS)


def _hash_ids(row: Tokens) -> str:
    made = hashlib.blake2b(digest_size=16)
    for ids in (row.input_ids, row.rejected_ids or []):
        made.update(len(ids).to_bytes(8, "little") + np.asarray(ids, "<i4").tobytes())
    return made.hexdigest()


# The user's own columns. A field is a column if it has one type in all files: that of the schema in Parquet and Arrow
# files; for all other files together, that which pyarrow infers from its values in their first records: whole numbers
# and fractions are one type, a missing field is null, and objects with different keys are one struct with all of them.
# Any other field stays in `extra`, as the JSON that the user wrote. So does a single value that does not fit its column
# exactly: nothing is rounded, cut or lost.

MAX_COLUMNS: Final = 256
MAX_NAME: Final = 200
MAX_KEYS: Final = 64
"""An object with more keys is a table of values by name, no struct: it stays in `extra`."""
_STORED: Final = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_PLAIN: Final = re.compile(r"bool|u?int\d+|float|double|string|binary|date32\[day\]|decimal\d+\(\d+, \d+\)")
"""Names of the types that a column may have as they are."""
EXACT: Final = 1 << 53
"""From here on, a float does not hold every whole number."""
_MICROSECONDS: Final = re.compile(r"(:\d\d|\.\d{6}000)(\+00:00)?$")
"""The end of a time with whole microseconds: Python's times, which show rows to people, have no more."""
INFINITY: Final = float("inf")
_TOKENS: Final = schema.of_kind("tokens_preference")
_KINDS: Final = [*map(schema.of_kind, schema.KINDS.values()), _TOKENS, schema.quarantine(), [schema.RECORD]]
RESERVED: Final = frozenset(
    {f.name for fields in _KINDS for f in fields}
    | {"stage", "duplicate_of", "duplicate_in", "similarity", "lang_raw", "classifier_score", "label", "notes"}
    | {"perplexity", "perplexity_bucket", "cluster_size", "duplicates", "minhash"}
)
"""Names that stages use or may use. A user's field of such a name stays in `extra`."""

Fits = Callable[[Any], bool]


def column_type(kind: pa.DataType) -> pa.DataType | None:
    """The type that a column of an Arrow type is stored as, without keys that are always null; None if it cannot be a
    column of its own."""
    t = pa.types
    if t.is_dictionary(kind):
        return column_type(kind.value_type)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        inner = column_type(kind.value_type)
        return None if inner is None else pa.list_(pa.field("element", inner))
    if t.is_struct(kind):
        fields = [(f.name, column_type(f.type)) for f in kind if not t.is_null(f.type)]
        whole = 0 < len(fields) <= MAX_KEYS and all(inner is not None for _, inner in fields)
        return pa.struct([pa.field(n, inner) for n, inner in fields]) if whole else None
    if t.is_timestamp(kind):
        return pa.timestamp("ms", kind.tz) if kind.unit == "s" else kind
    kind = pa.binary() if t.is_fixed_size_binary(kind) else _STORED.get(kind, kind)
    return kind if _PLAIN.fullmatch(str(kind)) else None


def inferred(head: Sequence[Fields]) -> dict[str, pa.DataType | None]:
    """The types of the fields of some records, as pyarrow infers them; None for a field with several types, or whose
    lists or objects are all empty. A field that is always null has no type, and is left out."""
    found: dict[str, pa.DataType | None] = {}
    for name in dict.fromkeys(n for fields in head for n in fields):
        values = [fields.get(name) for fields in head]
        try:
            kind = pa.infer_type(values)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            found[name] = None
            continue
        if not pa.types.is_null(kind):
            stored = column_type(kind)
            found[name] = stored if stored is not None and all(map(fitting(stored), values)) else None
    return found


def unified(files: Iterable[Mapping[str, pa.DataType | None]]) -> pa.Schema:
    """The columns of a dataset, by name, from the types in its files: the fields of one type."""
    found: dict[str, pa.DataType | None] = {}
    for types in files:
        for name, kind in types.items():
            found[name] = kind if found.setdefault(name, kind) == kind else None
    free = (n for n in sorted(found) if n not in RESERVED and n.isprintable() and 0 < len(n) <= MAX_NAME)
    return pa.schema([pa.field(n, kind) for n in free if (kind := found[n]) is not None][:MAX_COLUMNS])


def fitting(kind: pa.DataType) -> Fits:
    """A test whether a JSON value, or a cell of Arrow as Python has it, is kept exactly by a column of a type."""
    t = pa.types
    if t.is_integer(kind):
        low = -(1 << (kind.bit_width - 1)) if t.is_signed_integer(kind) else 0
        held = range(low, low + (1 << kind.bit_width))
        return lambda v: v is None or (type(v) is int and v in held)
    if t.is_floating(kind):
        exact = INFINITY if kind.bit_width == 32 else EXACT  # single ones come from typed cells only, which hold them
        # NaN and the infinities compare as False
        return lambda v: v is None or (type(v) in (int, float) and not exact <= abs(v) < INFINITY)
    if t.is_list(kind):
        inner = fitting(kind.value_type)
        return lambda v: v is None or (type(v) is list and all(map(inner, v)))
    if t.is_struct(kind):
        tests = {f.name: fitting(f.type) for f in kind}
        # of a key that the type has not, only null can be kept
        return lambda v: v is None or (type(v) is dict and all(tests.get(k, _is_null)(x) for k, x in v.items()))
    if t.is_timestamp(kind) and kind.unit == "ns":  # columnar files give such times as text
        return lambda v: v is None or (type(v) is str and _MICROSECONDS.search(v) is not None)
    times = datetime.datetime if t.is_timestamp(kind) else None
    if python := {pa.string(): str, pa.bool_(): bool, pa.date32(): datetime.date}.get(kind, times):
        return lambda v: v is None or type(v) is python
    return lambda v: not isinstance(v, str | int | float | bool | dict | list)


def _is_null(value: Any) -> bool:
    return value is None


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values that fit a type as an array of it."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":  # columnar files give them as ISO 8601 text
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)
