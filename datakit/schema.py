"""Arrow schemas of the row kinds: what flows between stages, and what a shard holds.

Every kind begins with the columns of `COMMON`, in that order. `row_key` is the total order that every tie is broken by:
the input file's place in the sorted list and the record's place in that file, in one unsigned 64-bit number.
"""

from typing import Final

import pyarrow as pa

RECORD_BITS: Final = 40
"""Bits of `row_key` that number the records of one file; the file's index stands above them."""

KINDS: Final = {"text": "document", "sft": "conversation", "preference": "preference"}
"""What the command line calls a kind -> what the schemas, manifests and recipes' results call it."""

COMMON: Final[tuple[pa.Field, ...]] = (
    pa.field("row_key", pa.uint64(), nullable=False),
    pa.field("id", pa.string(), nullable=False),
    pa.field("content_hash", pa.string(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    pa.field("lang", pa.string()),
    pa.field("lang_score", pa.float32()),
    pa.field("extra", pa.string()),
)

MESSAGE: Final = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("name", pa.string()),
        ("reasoning_content", pa.string()),
        ("tool_calls", pa.string()),
        ("tool_call_id", pa.string()),
        ("weight", pa.float64()),
    ]
)
"""One message. `tool_calls` is a JSON list as a string; `weight` is the user's loss weight, null where none was."""

MESSAGES: Final = pa.list_(MESSAGE)

SPANS: Final = pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32())]))
"""Half-open token ranges `[start, end)`."""


def row_key(file_index: int, record: int) -> int:
    """The key of record number `record` (0-based) of file number `file_index` (0-based)."""
    assert 0 <= record < 1 << RECORD_BITS
    assert 0 <= file_index < 1 << (64 - RECORD_BITS)
    return file_index << RECORD_BITS | record


def document() -> pa.Schema:
    """Plain text: one `text` per row."""
    return pa.schema([*COMMON, pa.field("text", pa.string(), nullable=False)])


def conversation() -> pa.Schema:
    """Messages in order, and the JSON of the tools they may call (null without any)."""
    return pa.schema([*COMMON, pa.field("messages", MESSAGES, nullable=False), pa.field("tools", pa.string())])


def preference() -> pa.Schema:
    """A prompt with the answer that was chosen and the one that was rejected; all three are messages."""
    sides = [pa.field(name, MESSAGES, nullable=False) for name in ("prompt", "chosen", "rejected")]
    return pa.schema([*COMMON, *sides, pa.field("tools", pa.string())])


def tokens(preference: bool = False) -> pa.Schema:
    """Token ids with the spans the model must produce (null: all of them, plain text).

    `segment_source` is the kind the ids were made from: "text", "conversation" or "preference". With `preference`,
    `input_ids` is the prompt and the chosen answer, `rejected_ids` the prompt and the rejected one, each with spans.
    """
    fields = [*COMMON, pa.field("input_ids", pa.list_(pa.int32()), nullable=False), pa.field("label_spans", SPANS)]
    fields.append(pa.field("segment_source", pa.string(), nullable=False))
    if preference:
        fields += [pa.field("rejected_ids", pa.list_(pa.int32()), nullable=False)]
        fields += [pa.field("rejected_label_spans", SPANS)]
    return pa.schema(fields)


def of_kind(kind: str) -> pa.Schema:
    """The schema of a row kind: document, conversation, preference, tokens or tokens_preference."""
    schemas = {"document": document, "conversation": conversation, "preference": preference, "tokens": tokens}
    return tokens(preference=True) if kind == "tokens_preference" else schemas[kind]()


def quarantine() -> pa.Schema:
    """What could not be read: where it stood, why, and its bytes as they were.

    `line` is 1-based, as editors count (for columnar files the row's number); `byte_offset` is 0-based in the
    uncompressed file, null where a format has none.
    """
    return pa.schema(
        [
            pa.field("file", pa.string(), nullable=False),
            pa.field("line", pa.int64(), nullable=False),
            pa.field("byte_offset", pa.int64()),
            pa.field("reason", pa.string(), nullable=False),
            pa.field("detail", pa.string()),
            pa.field("raw", pa.binary(), nullable=False),
        ]
    )
