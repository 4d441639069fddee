"""From parsed records to rows: each record becomes a row of its file's layout, or is quarantined with the reason."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from datakit import data as schema
from datakit.data import conversation_view, preference_view
from datakit.read.columns import array_of, fitting
from datakit.read.files import FileLimits
from datakit.read.layouts.mapping import Document, value_at
from datakit.read.layouts.preferences import Preference, one_sided
from datakit.read.layouts.recognise import BY_NAME, FileLayout, folded
from datakit.read.layouts.record import Fields, InexactNumbersError, MisfitError, name_of, to_json, with_exact_numbers
from datakit.read.layouts.tokenised import Spans, Tokens
from datakit.read.layouts.turns import PLAIN, Conversation, Message, Reading, declares_tools_twice
from datakit.stage import RawBatch
from datakit.text.words import digest, normalize

if TYPE_CHECKING:
    from datakit.read.web import Pages

BATCH_BYTES: Final = 16 << 20
BATCH_ROWS: Final = 1 << 16
UNFINISHED: Final = ("invalid_json", "invalid_utf8", "bad_row")
"""Reasons that a record cut in the middle may have."""

PATHS: Final = 1 << 12
"""Rows that one record makes, at most; such a record takes so many numbers of rows."""

ID: Final = "id"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a record starts: record number and line (both from 0), byte offset in the uncompressed file (-1: none)."""

    record: int
    line: int
    offset: int


class Original(Protocol):
    """A record as the user wrote it."""

    def value(self, key: str) -> str:
        """The JSON text of a top-level field; "" if there is no such field."""

    def without(self, used: tuple[str, ...]) -> list[str]:
        """The JSON text of each `"key": value`, in the user's order, without the fields in `used`.

        If a used key occurs twice, only its last value was used, as in JSON parsers; the earlier ones are returned.
        """

    def exact(self) -> Fields:
        """The fields, with each number that a float or an int64 cannot hold exactly as a `Number`."""


class Cells:
    """An `Original` made of typed cells (Parquet, Arrow, CSV). Times are written in ISO 8601, bytes in base64."""

    __slots__ = ("fields",)

    def __init__(self, fields: Fields) -> None:
        self.fields = fields

    def value(self, key: str) -> str:
        """See `Original`."""
        return self._text(self.fields[key]) if key in self.fields else ""

    def without(self, used: tuple[str, ...]) -> list[str]:
        """See `Original`; a cell's name occurs once."""
        return [f"{to_json(k)}:{self._text(v)}" for k, v in self.fields.items() if k not in used]

    def exact(self) -> Fields:
        """See `Original`."""
        exact: Fields = with_exact_numbers(self.fields)
        return exact

    def _text(self, value: Any) -> str:
        try:
            return to_json(value)
        except InexactNumbersError:
            return to_json(with_exact_numbers(value))


DEFAULT_LIMITS: Final = FileLimits()


class RowBuilder:
    """Collects the rows and the quarantined records of one unit, file by file.

    `add` converts one record; `take` returns everything collected since the last call as one batch.
    """

    def __init__(
        self,
        kind: str,
        segment_source: str = "text",
        id_field: str = "",
        reading: Reading = PLAIN,
        columns: pa.Schema | None = None,
    ) -> None:
        self.kind = kind
        self.limits = DEFAULT_LIMITS
        self.columns = columns or pa.schema([])
        self._tests = [(f.name, fitting(f.type)) for f in self.columns]
        self.reading = reading
        self.segment_source = segment_source
        self.id_field = id_field or ID
        self.pages: Pages | None = None
        """What makes the text of records whose layout says that it is HTML."""
        self.last: int | None = None
        """Records with this number and later ones of the file are not read; None: all are."""
        self._begin_batch()

    def _begin_batch(self) -> None:
        self.rows: list[tuple[int, str, str, str | None, Any]] = []
        self.values: list[tuple[Any, ...]] = []
        """Of each row: the values of the user's own columns."""
        self.bad: list[tuple[str, int, int | None, str, str, bytes]] = []
        self.notes: dict[str, int] = {}
        self.bytes = 0

    def begin_file(self, index: int, name: str, choice: FileLayout, limits: FileLimits = DEFAULT_LIMITS) -> None:
        """The next records come from file number `index`, which has this name, this layout and these limits."""
        self.limits = limits
        self.name = name
        self.first_key = schema.row_key(index, 0)
        self.choice = choice
        self.text_field = choice.text_field
        self.text_used: tuple[str, ...] = (choice.text_field,)
        self.convert = BY_NAME[choice.layout].convert if choice.layout else None
        self.ends_badly = False

    @property
    def full(self) -> bool:
        """Whether the caller should take a batch; depends on the records only."""
        return self.bytes >= BATCH_BYTES or len(self.rows) + len(self.bad) >= BATCH_ROWS

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not (self.rows or self.bad or self.notes)

    def add(self, fields: Any, record: int, original: Original, size: int, repeated: bool = False) -> None:
        """Add record number `record`, which has `size` bytes. `repeated`: one of its keys occurs twice.

        Raises:
            MisfitError: the record does not fit the file's layout.
        """
        if self.last is not None and record >= self.last:
            return
        if type(fields) is not dict:
            raise MisfitError("not_an_object", f"a record should be an object, found {name_of(fields)}")
        left = ""
        if self.convert is None:
            content, used = fields.get(self.text_field), self.text_used
            if self.choice.html and isinstance(content, str | bytes):
                content, fields, left = self._page(content, fields, record)
            elif type(content) is not str:
                raise self._no_text(fields)
        else:
            content, used, left = self._content(fields, original)
        given = fields.get(self.id_field)
        if given is None and "." in self.id_field:
            given = self._id(value_at(fields, self.id_field.split("."), self.id_field), original)
        elif given is not None:
            given = self._id(given, original)
            used = used if given is None else (*used, self.id_field)
        extra = None
        values, used = self._own(fields, used) if self._tests else ((), used)
        if len(fields) > len(used) or left or repeated:
            kept = original.without(used)
            if left:
                kept.append(left)
            extra = "{" + ",".join(kept) + "}" if kept else None
            if repeated:
                self.notes["repeated_keys"] = self.notes.get("repeated_keys", 0) + 1
        key, name = self.first_key + record, given or f"{self.name}:{record}"
        if type(content) is list:
            self._add_paths(content, record, name, extra, values)
        else:
            self.rows.append((key, name, self.name, extra, content))
            if self._tests:
                self.values.append(values)
        self.bytes += size
        self.ends_badly = False

    def _page(self, html: str | bytes, fields: Fields, record: int) -> tuple[str, Fields, str]:
        """(text of a page, the fields with its title, the title as a JSON member if it is no column)."""
        assert self.pages is not None
        text, title = self.pages.of_html(html, f"{self.name}: record {record + 1}")
        if title is None or "title" in fields:
            return text, fields, ""
        if "title" in self.columns.names:
            return text, fields | {"title": title}, ""
        return text, fields, _members_of({"title": title})

    def _own(self, fields: Fields, used: tuple[str, ...]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """(the values of the user's own columns, the fields that are then used up)."""
        values, taken = [], list(used)
        for name, fits in self._tests:
            value = fields.get(name)
            if name in used:
                value = None
            elif not fits(value):
                value = None
                self.notes["fields_of_other_type"] = self.notes.get("fields_of_other_type", 0) + 1
            elif name in fields:
                taken.append(name)
            values.append(value)
        return tuple(values), tuple(taken)

    def _add_paths(self, paths: list[Any], record: int, name: str, extra: str | None, values: tuple[Any, ...]) -> None:
        """Add the rows of a record that makes several: numbers and ids of their own, in the order of records."""
        if len(paths) > PATHS:
            raise MisfitError("too_many_paths", f"the record makes {len(paths)} rows, more than {PATHS}")
        for i, content in enumerate(paths):
            key = self.first_key + record * PATHS + i
            self.rows.append((key, f"{name}/{i}" if i else name, self.name, extra, content))
            if self._tests:
                self.values.append(values)

    def quarantine(self, position: Position, why: MisfitError, raw: bytes) -> None:
        """Add a record that cannot become a row, with its bytes."""
        if self.last is not None and position.record >= self.last:
            return
        offset = None if position.offset < 0 else position.offset
        self.bad.append((self.name, position.line + 1, offset, why.reason, why.detail, raw[: self.limits.record_bytes]))
        self.bytes += len(raw)
        self.ends_badly = True

    def end_early(self, position: Position, why: MisfitError) -> None:
        """The file cannot be read beyond this position: quarantines its unfinished last record, or an empty one."""
        if self.ends_badly and self.bad and self.bad[-1][3] in UNFINISHED:
            file, line, offset, _, _, raw = self.bad[-1]
            self.bad[-1] = (file, line, offset, why.reason, why.detail, raw)
        else:
            self.quarantine(position, why, b"")

    def take(self) -> RawBatch:
        """Everything collected since the last call. `notes` counts `repeated_keys`: records with a key twice."""
        made = RawBatch(self._row_batch(), self._quarantine_batch(), self.notes)
        self._begin_batch()
        return made

    def unused(self, fields: Fields) -> list[str]:
        """The fields of a record that its row is not made from.

        Raises:
            MisfitError: the record does not fit the file's layout.
        """
        used = self.text_used if self.convert is None else self._converted(fields)[1]
        return [name for name in fields if name not in used and name != self.id_field]

    def _content(self, fields: Fields, original: Original) -> tuple[Any, tuple[str, ...], str]:
        """(content of the row or rows, the fields that it was made from, JSON members of what is left inside these)."""
        try:
            return self._converted(fields)
        except InexactNumbersError:
            return self._converted(original.exact())

    def _converted(self, fields: Fields) -> tuple[Any, tuple[str, ...], str]:
        assert self.convert is not None
        names = {folded(k): k for k in fields} if self.choice.folded else None
        content = self.convert(fields if names is None else {n: fields[k] for n, k in names.items()}, self.reading)
        first = content[0] if type(content) is list else content
        used, left = first.used, first.left
        if names is not None:
            used, left = tuple(names[n] for n in used), {names[n]: rest for n, rest in left.items()}
        if type(first) is Conversation and first.tools and declares_tools_twice(first):
            self.notes["tools_twice"] = self.notes.get("tools_twice", 0) + 1
        if type(first) is Conversation and (self.kind == "preference" or first.judgement is not None):
            content = [self._judged(c) for c in content] if type(content) is list else self._judged(content)
        members = _members_of(left) if left else ""
        return content.text if type(content) is Document else content, used, members

    def _judged(self, found: Conversation) -> Conversation | Preference:
        """A pair with one side; among conversations, a bad answer with weight 0."""
        made: Conversation | Preference = found
        name = "answers_judged_bad"
        if self.kind == "preference":
            made = one_sided(found)
            name = "answers_judged_good" if made.chosen else name
        elif str(found.judgement) in ("0", "0.0"):
            self.notes["labels_of_0"] = self.notes.get("labels_of_0", 0) + 1
        elif str(found.judgement).lower() == "false":
            messages = [m._replace(weight=0.0) if m.role == "assistant" else m for m in found.messages]
            made = found._replace(messages=messages)
        if made is not found:
            self.notes[name] = self.notes.get(name, 0) + 1
        return made

    def _no_text(self, fields: Fields) -> MisfitError:
        """Why a record in a file of documents has no text."""
        field, other = self.text_field, self.choice.other_kind
        if other:
            return MisfitError("other_kind", f"the file holds {other} rows, the dataset another kind")
        if not field:
            return MisfitError("no_layout", "none of the file's first records could be read: its layout is unknown")
        if field not in fields:
            return MisfitError(
                "missing_field", f"{field} should be there; the fields are {', '.join(fields) or 'none'}"
            )
        return MisfitError("not_text", f"{field} should be a string, found {name_of(fields[field])}")

    def _id(self, given: Any, original: Original) -> str | None:
        """The user's id: a string, or a whole number with all its digits; None for any other value."""
        if type(given) is str:
            return given or None
        if type(given) is int:
            return str(given)
        written = original.value(self.id_field) if type(given) is float else ""
        return written if written.lstrip("-").isdigit() else None

    def _row_batch(self) -> pa.RecordBatch:
        n = len(self.rows)
        keys, ids, sources, extras, contents = zip(*self.rows, strict=True) if n else [[]] * 5
        columns = _COLUMNS[self.kind](contents) | {
            "row_key": pa.array(np.asarray(keys, np.uint64)),
            "id": pa.array(ids, pa.string()),
            "source": pa.array(sources, pa.string()),
            "lang": pa.nulls(n, pa.string()),
            "lang_score": pa.nulls(n, pa.float32()),
            "extra": pa.array(extras, pa.string()),
            "segment_source": pa.array([self.segment_source] * n, pa.string()),
        }
        made = schema.of_kind(self.kind)
        own = list(zip(*self.values, strict=True)) if self.values else [()] * len(self.columns)
        arrays = [array_of(list(v), f.type) for v, f in zip(own, self.columns, strict=True)]
        return pa.record_batch(
            [columns[name] for name in made.names] + arrays, schema=pa.schema([*made, *self.columns])
        )

    def _quarantine_batch(self) -> pa.RecordBatch:
        made = schema.quarantine()
        columns = zip(*self.bad, strict=True) if self.bad else ([] for _ in made)
        return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, made, strict=True)], schema=made)


def _members_of(left: Fields) -> str:
    return ",".join(f"{to_json(k)}:{to_json(v)}" for k, v in left.items())


def _documents(texts: list[str]) -> dict[str, pa.Array]:
    array = pa.array(texts, pa.string())
    return {"text": array, "content_hash": digest(normalize(array))}


def _conversations(found: list[Conversation]) -> dict[str, pa.Array]:
    views = [conversation_view(c.messages, c.tools) for c in found]
    return {
        "messages": messages_array([c.messages for c in found]),
        "tools": pa.array([c.tools for c in found], pa.string()),
        "content_hash": digest(normalize(pa.array(views, pa.string()))),
    }


def _preferences(found: list[Preference]) -> dict[str, pa.Array]:
    views = [preference_view((p.prompt, p.chosen, p.rejected), p.tools) for p in found]
    return {
        "prompt": messages_array([p.prompt for p in found]),
        "chosen": messages_array([p.chosen for p in found]),
        "rejected": messages_array([p.rejected for p in found]),
        "tools": pa.array([p.tools for p in found], pa.string()),
        "content_hash": digest(normalize(pa.array(views, pa.string()))),
    }


def _tokens(found: list[Tokens]) -> dict[str, pa.Array]:
    return {
        "turn_starts": pa.nulls(len(found), pa.list_(pa.int32())),
        "input_ids": pa.array([t.input_ids for t in found], pa.list_(pa.int32())),
        "label_spans": _spans([t.label_spans for t in found]),
        "content_hash": pa.array([_hash_ids(t) for t in found], pa.string()),
    }


def _token_pairs(found: list[Tokens]) -> dict[str, pa.Array]:
    return _tokens(found) | {
        "rejected_ids": pa.array([t.rejected_ids for t in found], pa.list_(pa.int32())),
        "rejected_label_spans": _spans([t.rejected_label_spans for t in found]),
    }


_COLUMNS: Final[dict[str, Callable[[Any], dict[str, pa.Array]]]] = {
    "document": _documents,
    "conversation": _conversations,
    "preference": _preferences,
    "tokens": _tokens,
    "tokens_preference": _token_pairs,
}
"""Row kind -> the columns that are made from the contents of its rows."""


def messages_array(rows: list[list[Message]]) -> pa.Array:
    """Lists of messages as one Arrow list array. Its columns are built flat, many times faster than row by row."""
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(r) for r in rows], out=offsets[1:])
    flat: list[Any] = list(zip(*chain.from_iterable(rows), strict=True)) or [[] for _ in schema.MESSAGE]
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
