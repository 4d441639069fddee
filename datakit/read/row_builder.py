"""From parsed records to rows: each record becomes a row of its file's layout, or is quarantined with the reason."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from datakit import data as schema
from datakit.data import conversation_view, preference_view
from datakit.read.columns import array_of, fitting
from datakit.read.layouts.conversations import (
    PLAIN,
    Conversation,
    Message,
    ParseOptions,
    declares_tools_twice,
    refuse_media,
)
from datakit.read.layouts.mapping import Picked, converter
from datakit.read.layouts.preferences import Preference, one_sided
from datakit.read.layouts.table import CONVERTERS, MAPPED, Document, FileLayout, Spans, Tokens
from datakit.read.record import Cells, Fields, InexactNumbersError, Number, Original, RecordError, at, name_of, to_json
from datakit.read.streams import FileLimits
from datakit.stage import RawBatch
from datakit.text.words import digest, normalize

if TYPE_CHECKING:
    from datakit.read.web import Pages

BATCH_BYTES: Final = 16 << 20
BATCH_ROWS: Final = 1 << 16
ID: Final = "id"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a record starts: record number and line (both from 0), byte offset in the uncompressed file (-1: none)."""

    record: int
    line: int
    offset: int


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
        self.id_is_path = "." in self.id_field
        self.columns = columns or pa.schema([])
        self._tests = [(f.name, fitting(f.type)) for f in self.columns]
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

    def begin_file(self, index: int, name: str, layout: FileLayout, limits: FileLimits | None = None) -> None:
        """The next records come from file number `index`, which has this name, this layout and these limits."""
        self.limits = limits or FileLimits()
        self.name, self.layout = name, layout
        self.first_key = schema.row_key(index, 0)
        self.text_field = layout.text_field
        self.text_used: tuple[str, ...] = (layout.text_field,)
        self.is_plain = layout.layout in ("", "document")
        if not self.is_plain:
            self.convert = converter(layout) if layout.layout == MAPPED else CONVERTERS[layout.layout]
        self.fields_of = dict(layout.required + layout.optional)

    @property
    def full(self) -> bool:
        """Whether the caller should take a batch; depends on the records only."""
        return self.bytes >= BATCH_BYTES or len(self.rows) + len(self.bad) >= BATCH_ROWS

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not (self.rows or self.bad or self.notes)

    def count(self, note: str) -> None:
        """Count something under the name of a ledger note."""
        self.notes[note] = self.notes.get(note, 0) + 1

    def add(self, fields: Any, record: int, original: Original, size: int, repeated: bool = False) -> None:
        """Add record number `record`, which has `size` bytes. `repeated`: one of its keys occurs twice.

        Raises:
            RecordError: the record does not fit the file's layout.
        """
        if self.last is not None and record >= self.last:
            return
        if type(fields) is not dict:
            raise RecordError("not_an_object", f"a record should be an object, found {name_of(fields)}")
        left, used = "", self.text_used
        if self.is_plain:
            content = fields.get(self.text_field)
            if self.layout.html and isinstance(content, str | bytes):
                content, fields, left = self._page(content, fields, record)
            elif type(content) is not str:
                raise self._no_text(fields)
        else:
            try:
                content, used, left = self._converted(fields)
            except InexactNumbersError:
                content, used, left = self._converted(original.exact())
        own_id = given = fields.get(self.id_field)
        if given is not None or self.id_is_path:
            own_id = given if type(given) is str else self._id(fields, original)
            used = (*used, self.id_field) if own_id and given is not None else used
        values, used = self._own(fields, used) if self._tests else ((), used)
        extra = None
        if len(fields) > len(used) or left or repeated:
            kept = original.without(used) + ([left] if left else [])
            extra = "{" + ",".join(kept) + "}" if kept else None
        if repeated:
            self.count("repeated_keys")
        self.rows.append((self.first_key + record, own_id or f"{self.name}:{record}", self.name, extra, content))
        if self._tests:
            self.values.append(values)
        self.bytes += size

    def read(self, position: Position, raw: bytes, parse: Callable[[bytes], Fields | str]) -> None:
        """Add the record that `parse` makes of some bytes; count it under the note that `parse` returns instead; or
        quarantine it."""
        if self.last is not None and position.record >= self.last:
            return
        try:
            self.limits.check_record(len(raw))
            fields = parse(raw)
            if isinstance(fields, str):
                self.count(fields)
            else:
                self.add(fields, position.record, Cells(fields), len(raw))
        except RecordError as e:
            self.quarantine(position, e, raw)

    def _id(self, fields: Fields, original: Original) -> str | None:
        """The user's id, a string or a whole number with all its digits; None for any other value."""
        given = at(fields, self.id_field)
        if type(given) is float:  # a big integer may be parsed as one
            written = at(original.exact(), self.id_field)
            return str(written) if type(written) is Number and written.lstrip("-").isdigit() else None
        return str(given) if type(given) is int else given if type(given) is str else None

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
                self.count("fields_of_other_type")
            elif name in fields:
                taken.append(name)
            values.append(value)
        return tuple(values), tuple(taken)

    def quarantine(self, position: Position, why: RecordError, raw: bytes) -> None:
        """Add a record that cannot become a row, with its bytes."""
        if self.last is not None and position.record >= self.last:
            return
        offset = None if position.offset < 0 else position.offset
        self.bad.append((self.name, position.line + 1, offset, why.reason, why.detail, raw[: self.limits.record_bytes]))
        self.bytes += len(raw)

    def take(self) -> RawBatch:
        """Everything collected since the last call."""
        made = RawBatch(self._row_batch(), self._quarantine_batch(), self.notes)
        self._begin_batch()
        return made

    def unused(self, fields: Fields) -> list[str]:
        """The fields of a record that its row is not made from.

        Raises:
            RecordError: the record does not fit the file's layout.
        """
        used = self.text_used if self.is_plain else self._converted(fields)[1]
        return [name for name in fields if name not in used and name != self.id_field]

    def _converted(self, fields: Fields) -> tuple[Any, tuple[str, ...], str]:
        """(content of the row, the fields that it was made from, JSON members of what is left inside these)."""
        picked = Picked(fields, self.layout)
        try:
            made = self.convert(picked.found, self.options)
        except RecordError as e:  # in the words of the file
            ours = re.match(r"\w+", e.detail)
            theirs = self.fields_of.get(ours[0], ours[0]) if ours else ""
            raise RecordError(e.reason, theirs + e.detail[ours.end() if ours else 0 :]) from None
        used, left = picked.used(made.used, self.fields_of), ""
        if made.left or picked.left:
            left = _members_of(picked.rest(made.left, self.fields_of))
        if isinstance(made, Document):
            return made.text, used, left
        if not isinstance(made, Tokens):
            if self.layout.layout != MAPPED:
                refuse_media(fields, made.messages if isinstance(made, Conversation) else made.prompt)
            if isinstance(made, Conversation):
                made = self._judged(made)
        return made, used, left

    def _judged(self, found: Conversation) -> Conversation | Preference:
        """A pair with one side where pairs are asked for; among conversations, a bad answer has weight 0."""
        if found.tools and declares_tools_twice(found):
            self.count("tools_twice")
        if found.label is None and self.kind != "preference":
            return found
        if self.kind == "preference":
            made = one_sided(found)
            self.count("answers_judged_good" if made.chosen else "answers_judged_bad")
            return made
        if str(found.label) in ("0", "0.0"):
            self.count("labels_of_0")
        elif str(found.label).lower() == "false":
            self.count("answers_judged_bad")
            messages = [m._replace(weight=0.0) if m.role == "assistant" else m for m in found.messages]
            return found._replace(messages=messages)
        return found

    def _no_text(self, fields: Fields) -> RecordError:
        """Why a record in a file of documents has no text."""
        name, other = self.text_field, self.layout.other_kind
        if other:
            return RecordError("other_kind", f"the file holds {other} rows, the dataset another kind")
        if not name:
            return RecordError("no_layout", "none of the file's first records could be read: its layout is unknown")
        if name not in fields:
            return RecordError("missing_field", f"{name} should be there; the fields are {', '.join(fields) or 'none'}")
        return RecordError("not_text", f"{name} should be a string, found {name_of(fields[name])}")

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


# The columns of each kind.


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
