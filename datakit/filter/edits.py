"""What rule sets change in rows that stay: the text of a document, what is said in a conversation."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.read.row_builder import conversation_view, preference_view
from datakit.text.normalize import digest, normalize

Edit = Callable[[pa.Array], pa.Array]
"""Texts to texts, string[N] without nulls each."""

SPOKEN = ("content", "reasoning_content")
"""The parts of a message that are prose."""


def apply(batch: pa.RecordBatch, stays: pa.Array, edits: Sequence[Edit]) -> tuple[dict[str, pa.Array], pa.Array]:
    """Edit the rows that stay, by each edit in turn.

    `stays` is bool[N]. Returns the columns that changed, `content_hash` among them, and bool[N]: which rows did.
    """
    changed = pa.array(np.zeros(batch.num_rows, np.bool_))
    columns: dict[str, pa.Array] = {}
    for name in ("text", "messages", "prompt", "chosen", "rejected"):
        if name in batch.schema.names and edits:
            column = batch.column(name)
            made, which = _text(column, stays, edits) if name == "text" else _messages(column, stays, edits)
            if pc.any(which).as_py():
                columns[name] = made
                changed = pc.or_(changed, which)
    if columns and "content_hash" in batch.schema.names:
        columns["content_hash"] = pc.replace_with_mask(
            batch.column("content_hash"), changed, _hashes(batch, columns, changed)
        )
    return columns, changed


def _hashes(batch: pa.RecordBatch, columns: dict[str, pa.Array], changed: pa.Array) -> pa.Array:
    """`content_hash` of the rows that changed, as ingest makes it."""
    if "text" in columns:
        return digest(normalize(columns["text"].filter(changed)))
    names = [n for n in ("messages", "prompt", "chosen", "rejected", "tools") if n in batch.schema.names]
    rows = pa.table({n: columns.get(n, batch.column(n)) for n in names}).filter(changed).to_pylist()
    views = []
    for row in rows:
        tools = row.pop("tools", None)
        sides = [[list(message.values()) for message in row[n] or ()] for n in row]
        views.append(conversation_view(sides[0], tools) if "messages" in row else preference_view(sides, tools))
    return digest(normalize(pa.array(views, pa.string())))


def _text(texts: pa.Array, stays: pa.Array, edits: Sequence[Edit]) -> tuple[pa.Array, pa.Array]:
    """(the texts, which of them changed); texts of rows that do not stay are as they were."""
    mask = pc.and_(stays, pc.is_valid(texts))
    made = before = texts.filter(mask)
    for edit in edits:
        made = edit(made)
    which = pc.not_equal(made, before)
    changed = np.zeros(len(texts), np.bool_)
    changed[np.flatnonzero(mask.to_numpy(zero_copy_only=False))] = which.to_numpy(zero_copy_only=False)
    return pc.replace_with_mask(texts, pa.array(changed), made.filter(which)), pa.array(changed)


def _messages(messages: pa.Array, stays: pa.Array, edits: Sequence[Edit]) -> tuple[pa.Array, pa.Array]:
    """The same for list<struct>: every message of a row that stays."""
    turns = messages.flatten()
    lengths = pc.fill_null(pc.list_value_length(messages), 0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(messages)), lengths)
    turn_stays = pc.take(stays, pa.array(row))
    fields, changed = [], np.zeros(len(messages), np.bool_)
    for field in turns.type:
        column = pc.struct_field(turns, field.name)
        if field.name in SPOKEN:
            column, which = _text(column, turn_stays, edits)
            changed[row[which.to_numpy(zero_copy_only=False)]] = True
        fields.append(column)
    made = pa.StructArray.from_arrays(fields, fields=list(turns.type))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    nulls = {"mask": pc.is_null(messages)} if messages.null_count else {}
    return pa.ListArray.from_arrays(offsets, made, type=messages.type, **nulls), pa.array(changed)
