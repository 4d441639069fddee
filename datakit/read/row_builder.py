"""From parsed records to rows: each becomes a row of its file's layout, or is quarantined with what is wrong."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit import data as schema
from datakit.read.flat import flat_records
from datakit.read.layouts.conversations import Conversation, Message
from datakit.read.layouts.preferences import Preference
from datakit.read.layouts.recognise import BY_NAME, Choice
from datakit.read.layouts.record import Fields, InexactNumbersError, MisfitError, name_of, to_json
from datakit.read.layouts.tokenised import Spans, Tokens
from datakit.text.characters import Bytes
from datakit.text.normal_form import digest, normalize

ID: Final = "id"
BATCH_BYTES: Final = 16 << 20
BATCH_ROWS: Final = 1 << 16
MAX_RECORD_BYTES: Final = 1 << 30
"""A longer record is quarantined: offsets of an Arrow string array end at 2 GiB."""

UNFINISHED: Final = ("invalid_json", "invalid_utf8", "bad_row")
"""Reasons that a record cut in the middle may have."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of the dataset's kind, the records that could not become rows, and what happened on the way."""

    rows: pa.RecordBatch
    quarantined: pa.RecordBatch
    notes: dict[str, int] = field(default_factory=dict)
    """Counted events that cost no row: `repeated_keys` (records in which a key stands twice)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands: record number and line (both 0-based), byte offset in the uncompressed file (-1: none)."""

    record: int
    line: int
    offset: int


class Sink:
    """Collects rows and quarantined records of one unit; `take` gives them out as a batch and begins anew."""

    def __init__(self, kind: str, segment_source: str = "text") -> None:
        self.kind = kind
        self.segment_source = segment_source
        self.ends_badly = False
        """Whether the record read last was quarantined; readers say so."""
        self._begin()

    def _begin(self) -> None:
        self.rows: list[tuple[int, str, str, str | None, Any]] = []
        self.batches: list[pa.RecordBatch] = []
        self.taken = 0
        self.bad: list[tuple[str, int, int | None, str, str, bytes]] = []
        self.notes: dict[str, int] = {}
        self.bytes = 0

    @property
    def full(self) -> bool:
        """Whether it is time to take a batch: decided by the records alone."""
        return self.bytes >= BATCH_BYTES or self.taken + len(self.rows) + len(self.bad) >= BATCH_ROWS

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not (self.batches or self.rows or self.bad)

    def row(self, key: int, id: str, source: str, extra: str | None, content: Any, size: int) -> None:
        """Add a row; `content` is a text, `Conversation`, `Preference` or `Tokens` by the sink's kind."""
        self.rows.append((key, id, source, extra, content))
        self.bytes += size

    def documents(
        self, keys: npt.NDArray[np.uint64], ids: pa.Array, source: str, extras: pa.Array, texts: pa.Array, size: int
    ) -> None:
        """Add rows of documents as columns, of `size` bytes in all."""
        self._end_run()
        sources = pa.repeat(pa.scalar(source), len(keys))
        self.batches.append(self._batch(pa.array(keys), ids, sources, extras, _hashed(texts)))
        self.taken += len(keys)
        self.bytes += size

    def quarantine(self, name: str, place: Place, why: MisfitError, raw: bytes) -> None:
        """Add a record that could not become a row, with its bytes."""
        offset = None if place.offset < 0 else place.offset
        self.bad.append((name, place.line + 1, offset, why.reason, why.detail, raw[:MAX_RECORD_BYTES]))
        self.bytes += len(raw)

    def broken_off(self, name: str, place: Place, why: MisfitError) -> None:
        """The file cannot be read further: `why` is the reason of its unfinished last record, or of an empty one."""
        if self.ends_badly and self.bad and self.bad[-1][3] in UNFINISHED:
            file, line, offset, _, _, raw = self.bad[-1]
            self.bad[-1] = (file, line, offset, why.reason, why.detail, raw)
        else:
            self.quarantine(name, place, why, b"")

    def note(self, event: str) -> None:
        """Count an event that costs no row."""
        self.notes[event] = self.notes.get(event, 0) + 1

    def take(self) -> Batch:
        """Everything collected since the last call."""
        self._end_run()
        made = Batch(self._together(), self._quarantined(), self.notes)
        self._begin()
        return made

    def _together(self) -> pa.RecordBatch:
        if len(self.batches) < 2:
            return self.batches[0] if self.batches else self._run([])
        (rows,) = pa.Table.from_batches(self.batches).combine_chunks().to_batches()
        return rows

    def _end_run(self) -> None:
        """Make a batch of the rows that came one by one."""
        if self.rows:
            self.batches.append(self._run(self.rows))
            self.taken, self.rows = self.taken + len(self.rows), []

    def _run(self, rows: list[tuple[int, str, str, str | None, Any]]) -> pa.RecordBatch:
        n = len(rows)
        keys, ids, sources, extras, contents = zip(*rows, strict=True) if n else [[]] * 5
        columns = _BY_KIND[self.kind](contents)
        if self.kind.startswith("tokens"):
            columns["segment_source"] = pa.array([self.segment_source] * n, pa.string())
        ids, sources, extras = (pa.array(values, pa.string()) for values in (ids, sources, extras))
        return self._batch(pa.array(np.asarray(keys, np.uint64)), ids, sources, extras, columns)

    def _batch(
        self, keys: pa.Array, ids: pa.Array, sources: pa.Array, extras: pa.Array, content: dict[str, pa.Array]
    ) -> pa.RecordBatch:
        columns = content | {
            "row_key": keys,
            "id": ids,
            "source": sources,
            "lang": pa.nulls(len(keys), pa.string()),
            "lang_score": pa.nulls(len(keys), pa.float32()),
            "extra": extras,
        }
        made = schema.of_kind(self.kind)
        return pa.record_batch([columns[name] for name in made.names], schema=made)

    def _quarantined(self) -> pa.RecordBatch:
        made = schema.quarantine()
        columns = zip(*self.bad, strict=True) if self.bad else ([] for _ in made)
        return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, made, strict=True)], schema=made)


def _documents(texts: list[str]) -> dict[str, pa.Array]:
    return _hashed(pa.array(texts, pa.string()))


def _hashed(texts: pa.Array) -> dict[str, pa.Array]:
    return {"text": texts, "content_hash": digest(normalize(texts))}


def _conversations(found: list[Conversation]) -> dict[str, pa.Array]:
    views = [conversation_view(c.messages, c.tools) for c in found]
    return {
        "messages": messages_array([c.messages for c in found]),
        "tools": pa.array([c.tools for c in found], pa.string()),
        "content_hash": digest(normalize(pa.array(views, pa.string()))),
    }


def _preferences(found: list[Preference]) -> dict[str, pa.Array]:
    views = [preference_view((p.prompt, p.chosen, p.rejected), p.tools) for p in found]
    sides = {name: messages_array([getattr(p, name) for p in found]) for name in ("prompt", "chosen", "rejected")}
    tools = pa.array([p.tools for p in found], pa.string())
    return sides | {"tools": tools, "content_hash": digest(normalize(pa.array(views, pa.string())))}


def _tokens(found: list[Tokens]) -> dict[str, pa.Array]:
    return {
        "input_ids": pa.array([t.input_ids for t in found], pa.list_(pa.int32())),
        "label_spans": _spans([t.label_spans for t in found]),
        "content_hash": pa.array([_hash_ids(t) for t in found], pa.string()),
    }


def _token_pairs(found: list[Tokens]) -> dict[str, pa.Array]:
    return _tokens(found) | {
        "rejected_ids": pa.array([t.rejected_ids for t in found], pa.list_(pa.int32())),
        "rejected_label_spans": _spans([t.rejected_label_spans for t in found]),
    }


_BY_KIND: Final[dict[str, Callable[[Any], dict[str, pa.Array]]]] = {
    "document": _documents,
    "conversation": _conversations,
    "preference": _preferences,
    "tokens": _tokens,
    "tokens_preference": _token_pairs,
}
_FIELD, _MESSAGE, _SIDE = (
    " \x01 ",
    " \x02 ",
    " \x03 ",
)  # the spaces make white space beside a separator count for nothing


def conversation_view(messages: Sequence[Sequence[Any]], tools: str | None) -> str:
    """What a conversation's `content_hash` is made from; a message is its values in the order of `schema.MESSAGE`."""
    return _canonical(messages) + _FIELD + (tools or "")


def preference_view(sides: Sequence[Sequence[Sequence[Any]]], tools: str | None) -> str:
    """The same of a preference pair: prompt, chosen, rejected."""
    return _SIDE.join([*map(_canonical, sides), tools or ""])


def _canonical(messages: Sequence[Sequence[Any]]) -> str:
    """Messages as one string for hashing: equal exactly if roles, contents, reasoning and calls are."""
    return _MESSAGE.join([_FIELD.join([x or "" for x in m[:6]]) for m in messages])


def _hash_ids(row: Tokens) -> str:
    made = hashlib.blake2b(digest_size=16)
    for ids in (row.input_ids, row.rejected_ids or []):
        made.update(len(ids).to_bytes(8, "little") + np.asarray(ids, "<i4").tobytes())
    return made.hexdigest()


def _spans(rows: list[Spans | None]) -> pa.Array:
    spans = [None if r is None else [{"start": a, "end": b} for a, b in r] for r in rows]
    return pa.array(spans, schema.SPANS)


def messages_array(rows: list[list[Message]]) -> pa.Array:
    """Lists of messages as one Arrow list array: columns are built flat, which is many times faster than row by row."""
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(r) for r in rows], out=offsets[1:])
    flat: list[Any] = list(zip(*chain.from_iterable(rows), strict=True)) or [[] for _ in schema.MESSAGE]
    columns = [pa.array(c, f.type) for c, f in zip(flat, schema.MESSAGE, strict=True)]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays(columns, fields=list(schema.MESSAGE)))


class Original(Protocol):
    """A record as the user wrote it."""

    def value(self, key: str) -> str:
        """The JSON text of a top-level field, "" without it."""

    def without(self, used: tuple[str, ...]) -> list[str]:
        """The JSON text of every `"key": value` but the last of each used key, in the order they stand.

        Of a key that stands twice the last is the value, as parsers have it; the earlier ones are not lost here.
        """

    def exact(self) -> Fields:
        """The fields once more, numbers that a float or an int64 cannot hold exactly as `Number`."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file as the rows of it need it: its place in the list, its name, its layout, the field of the user's ids."""

    index: int
    name: str
    choice: Choice
    id_field: str = ""


class Converter:
    """Turns the records of one file into rows of a sink."""

    def __init__(self, source: Source, sink: Sink) -> None:
        self.source = source
        self.sink = sink
        self.id_field = source.id_field or ID
        self.first_key = schema.row_key(source.index, 0)
        layout = source.choice.layout
        self.text_field = source.choice.text_field
        self.text_used: tuple[str, ...] = (self.text_field,)
        self.convert = BY_NAME[layout].convert if layout else None

    def add(self, fields: Any, record: int, original: Original, size: int, repeated: bool) -> None:
        """Add one record; `repeated` tells that one of its keys stands twice.

        Raises:
            MisfitError: it does not fit the file's layout.
        """
        if type(fields) is not dict:
            raise MisfitError("not_an_object", f"a record should be an object, found {name_of(fields)}")
        left = ""
        if self.convert is None:
            content, used = fields.get(self.text_field), self.text_used
            if type(content) is not str:
                raise self._no_text(fields)
        else:
            content, used, left = self._content(fields, original)
        given = fields.get(self.id_field)
        if given is not None:
            given = self._id(given, original)
            used = used if given is None else (*used, self.id_field)
        extra = None
        if len(fields) > len(used) or left or repeated:
            kept = original.without(used)
            if left:
                kept.append(left)
            extra = "{" + ",".join(kept) + "}" if kept else None
            if repeated:
                self.sink.note("repeated_keys")
        name = self.source.name
        self.sink.row(self.first_key + record, given or f"{name}:{record}", name, extra, content, size)

    def add_flat(
        self, array: Bytes, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64], records: Sequence[int]
    ) -> int:
        """Add the first records of a block, as far as they are documents that need no parser; returns how many.

        They become the rows that `add` makes of them.
        """
        other = self.convert is not None or not self.text_field or self.text_field == self.id_field
        if other or int((stops - starts).max()) > MAX_RECORD_BYTES:
            return 0
        found = flat_records(array, starts, stops, self.text_field, self.id_field)
        rows, name, ids = len(found.texts), self.source.name, found.ids
        if rows == 0:
            return 0
        if ids.null_count:
            ids = pc.coalesce(ids, pa.array([f"{name}:{record}" for record in records[:rows]]))
        keys = np.asarray(records[:rows], np.uint64) + np.uint64(self.first_key)
        size = int((stops[:rows] - starts[:rows]).sum())
        self.sink.documents(keys, ids, name, found.extras, found.texts, size)
        return rows

    def _content(self, fields: Fields, original: Original) -> tuple[Any, tuple[str, ...], str]:
        """The row's content, the fields that it took, and what is left inside them as JSON members."""
        assert self.convert is not None
        try:
            content = self.convert(fields)
            left = _members_of(content.left) if content.left else ""
        except InexactNumbersError:
            content = self.convert(original.exact())
            left = _members_of(content.left) if content.left else ""
        return content, content.used, left

    def _no_text(self, fields: Fields) -> MisfitError:
        """Why a record of a file of documents is none."""
        field, other = self.text_field, self.source.choice.other_kind
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
        """The user's id: a string, or a whole number with all its digits; None for what is neither."""
        if type(given) is str:
            return given or None
        if type(given) is int:
            return str(given)
        written = original.value(self.id_field) if type(given) is float else ""
        return written if written.lstrip("-").isdigit() else None


def _members_of(left: Fields) -> str:
    return ",".join(f"{to_json(k)}:{to_json(v)}" for k, v in left.items())
