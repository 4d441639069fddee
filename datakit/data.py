"""Rows: the Arrow schema of each kind, reading a shard, and the text of a row that stages look at.

Every kind begins with the columns of `COMMON`, in that order. `row_key` is the total order that every tie is broken by:
the input file's place in the sorted list and the record's place in that file, in one unsigned 64-bit number. A shard
stores the record's place only, as `record`; the file's place stands in the shard's entry in the manifest, and `row_key`
is composed when rows are read. So a shard stays as it is when files are added or removed before its own.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import datakit.storage as storage
from datakit.config import OF_TURNS, canonical, digest_of, option
from datakit.errors import IntegrityError
from datakit.manifest import Shard, damaged

RECORD_BITS: Final = 40
"""Bits of `row_key` that number the records of one file; the file's index stands above them."""

KEY: Final = pa.field("row_key", pa.uint64(), nullable=False)
RECORD: Final = pa.field("record", pa.uint64(), nullable=False)
"""The column of a shard that `row_key` is made from: the record's place in its file. In a shard of several files, the
bits above `RECORD_BITS` number these files."""

KINDS: Final = {"text": "document", "sft": "conversation", "preference": "preference"}
"""What the command line calls a kind -> what the schemas, manifests and recipes' results call it."""

COMMON: Final[tuple[pa.Field, ...]] = (
    KEY,
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

TURN_STARTS: Final = "turn_starts"
"""The column of token rows with the tokens at which users' turns begin: a long conversation may be cut there."""


def row_key(file_index: int, record: int) -> int:
    """The key of record number `record` (0-based) of file number `file_index` (0-based)."""
    assert 0 <= record < 1 << RECORD_BITS
    assert 0 <= file_index < 1 << (64 - RECORD_BITS)
    return file_index << RECORD_BITS | record


def tokens(preference: bool = False) -> pa.Schema:
    """Token ids with the spans the model must produce (null: all of them, plain text).

    `segment_source` is the kind the ids were made from: "text", "conversation" or "preference". With `preference`,
    `input_ids` is the prompt and the chosen answer, `rejected_ids` the prompt and the rejected one, each with spans.
    """
    fields = [*COMMON, pa.field("input_ids", pa.list_(pa.int32()), nullable=False), pa.field("label_spans", SPANS)]
    fields.append(pa.field("segment_source", pa.string(), nullable=False))
    if preference:
        fields.append(pa.field("rejected_ids", pa.list_(pa.int32()), nullable=False))
        fields.append(pa.field("rejected_label_spans", SPANS))
    else:
        fields.append(pa.field(TURN_STARTS, pa.list_(pa.int32())))
    return pa.schema(fields)


def of_kind(kind: str) -> pa.Schema:
    """The schema of a row kind: document, conversation, preference, tokens or tokens_preference.

    A document has one `text`. A conversation has messages in order, a preference pair a prompt with the answer that was
    chosen and the one that was rejected, all three messages; both have the JSON of the tools that they may call (null
    without any).
    """
    if kind.startswith("tokens"):
        return tokens(preference=kind == "tokens_preference")
    if kind == "document":
        return pa.schema([*COMMON, pa.field("text", pa.string(), nullable=False)])
    names = ("messages",) if kind == "conversation" else ("prompt", "chosen", "rejected")
    return pa.schema([*COMMON, *(pa.field(n, MESSAGES, nullable=False) for n in names), pa.field("tools", pa.string())])


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


def read_rows(
    folder: Path, shard: Shard, columns: list[str] | None = None, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a shard in a data folder, with `row_key`, one batch a row group; `columns` and `groups` choose some.

    Raises:
        IntegrityError: it is missing, or its bytes are not those that were written.
    """
    first = shard.first_file
    if first is None:
        return read_shard(folder, shard, columns, groups)
    own = columns and [RECORD.name if name == KEY.name else name for name in columns]
    return (shifted(batch, RECORD, KEY, row_key(first, 0)) for batch in read_shard(folder, shard, own, groups))


def splitmix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea, Flood 2014) of each value, uint64: distinct values have distinct hashes."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def first_rows(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The first `limit` rows of some batches."""
    for batch in batches:
        if batch.num_rows >= limit:
            yield batch.slice(0, limit)
            return
        yield batch
        limit -= batch.num_rows


def shifted(batch: pa.RecordBatch, old: pa.Field, new: pa.Field, by: int) -> pa.RecordBatch:
    """A batch with `by` added to the keys in the column `old`, which becomes `new`; as it is without such a column."""
    at = batch.schema.get_field_index(old.name)
    if at < 0 or (by == 0 and old == new):
        return batch
    return batch.set_column(at, new, pa.array(batch.column(at).to_numpy() + np.uint64(by % (1 << 64))))


def read_shard(
    folder: Path, shard: Shard, columns: list[str] | None = None, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The columns of a shard as its file stores them, one batch a row group. `read_rows` has `row_key`, too.

    The file is read into memory once, and its digest is compared before any of it is used: values, page headers and
    the footer, which the page checksums of Parquet leave out. The memory is Arrow's own: its threads may let go of it
    when Python has ended, and to free Python's `bytes` then would abort the process.

    Raises:
        IntegrityError: it is missing, or its bytes are not those that were written.
    """
    path = storage.bring(folder / shard.path, shard.bytes, shard.sha256)
    try:
        with pa.OSFile(str(path)) as file:
            data = file.read_buffer()
    except FileNotFoundError:
        raise IntegrityError(
            f"{path}: is not there. `datakit history` tells whether the version was purged; if it is the current one, "
            "`datakit run` makes the file anew"
        ) from None
    except OSError as e:
        raise IntegrityError(damaged(path, f"cannot be read: {os.strerror(e.errno) if e.errno else e}")) from None
    if data.size != shard.bytes:
        raise IntegrityError(damaged(path, f"expected {shard.bytes} bytes, found {data.size}"))
    if (found := digest_of(pa.BufferReader(data), shard.sha256)) != shard.sha256:
        raise IntegrityError(damaged(path, f"expected sha256 {shard.sha256}, found {found}"))
    return _batches(data, columns, groups)


def _batches(data: pa.Buffer, columns: list[str] | None, groups: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        schema = file.schema_arrow
        if file.num_row_groups == 0:
            yield pa.RecordBatch.from_pylist([], pa.schema([schema.field(c) for c in columns or schema.names]))
        for group in range(file.num_row_groups) if groups is None else groups:
            yield from file.read_row_group(group, columns=columns).combine_chunks().to_batches()


def row_groups(folder: Path, shard: Shard, lists: Collection[str]) -> list[tuple[int, int]]:
    """(rows, values in the columns `lists`) of each row group of a shard; a list without values counts as one value.

    The footer of the file is read alone. Nothing is compared with a checksum: that is done when the rows are read.

    Raises:
        IntegrityError: the file is missing, or has no footer at its end.
    """
    file, size = folder / shard.path, 8
    try:
        for _ in range(0 if file.is_file() else 2):  # of an object, whose last eight bytes say how long the footer is
            tail = storage.read_range(file, max(shard.bytes - size, 0), size)
            size = int.from_bytes(tail[-8:-4], "little") + 8
        found = pq.read_metadata(file if file.is_file() else pa.BufferReader(tail))
    except (OSError, pa.ArrowException) as e:
        raise IntegrityError(damaged(file, f"has no Parquet footer at its end ({e})")) from None
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    columns = [n for n in range(found.num_columns) if found.schema.column(n).path.split(".")[0] in lists]
    return [(group.num_rows, sum(group.column(n).num_values for n in columns)) for group in groups]


# The values of a table, whatever their encoding.


ALL_VALID = memoryview(b"\x01" * (1 << 20))
"""What is hashed as the validity of values without nulls, so that no array is made of them."""


class ContentHash:
    """SHA-256 over the values of a table: equal for equal values, however they are chunked, encoded or compressed.

    Every node of the schema's tree (validity, lengths, values) is hashed as one stream over all rows; the digest is
    over the column names, types and the nodes' digests.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = [(f.name, _kind(f.type)) for f in schema]
        self._nodes: dict[str, Any] = {}
        self.bytes = 0
        """Bytes hashed so far: the size of the values, however they are stored."""

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch; its columns are those of the schema, in that order."""
        for (name, _), column in zip(self._schema, batch.columns, strict=True):
            self._add(name, column)

    def hexdigest(self) -> str:
        """64 hex digits."""
        nodes = {path: node.hexdigest() for path, node in self._nodes.items()}
        return hashlib.sha256(canonical({"schema": self._schema, "nodes": nodes})).hexdigest()

    def _feed(self, path: str, data: Any) -> None:
        self.bytes += memoryview(data).nbytes
        self._nodes.setdefault(path, hashlib.sha256()).update(data)

    def _add(self, path: str, array: pa.Array) -> None:
        kind = array.type
        if len(array) == 0:
            return
        if array.null_count:
            self._feed(f"{path}?", np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), np.uint8))
        else:
            for first in range(0, len(array), len(ALL_VALID)):
                self._feed(f"{path}?", ALL_VALID[: len(array) - first])
        if pa.types.is_struct(kind):
            for field, child in zip(kind, array.flatten(), strict=True):
                self._add(f"{path}.{field.name}", child)
        elif pa.types.is_list(kind):
            lengths = pc.fill_null(pc.list_value_length(array), 0)
            self._feed(f"{path}#", np.asarray(lengths, "<i8"))
            self._add(f"{path}[]", array.flatten())
        elif pa.types.is_string(kind) or pa.types.is_binary(kind):
            self._add_bytes(path, array if array.null_count == 0 else pc.fill_null(array, pa.scalar("").cast(kind)))
        elif pa.types.is_temporal(kind):
            self._add(path, array.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
        elif pa.types.is_decimal(kind):
            self._add_bytes(path, pc.fill_null(array.cast(pa.string()), ""))
        elif not pa.types.is_null(kind):
            filled = array if array.null_count == 0 else pc.fill_null(array, pa.scalar(0).cast(kind))
            self._feed(path, np.ascontiguousarray(filled.to_numpy(zero_copy_only=False)))

    def _add_bytes(self, path: str, array: pa.Array) -> None:
        _, offsets, data = array.buffers()
        ends = np.frombuffer(offsets, "<i4")[array.offset : array.offset + len(array) + 1]
        self._feed(f"{path}#", np.diff(ends).astype("<i8"))
        if data is not None:
            self._feed(path, memoryview(data)[ends[0] : ends[-1]])


def _kind(kind: pa.DataType) -> str:
    """A type's name without the name of a list's child, which Parquet changes."""
    if pa.types.is_list(kind):
        return f"list<{_kind(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{f.name}: {_kind(f.type)}' for f in kind)}>"
    return str(kind)


def stored(kind: pa.DataType) -> pa.DataType:
    """The type as Parquet gives it back: a list's child is called `element` there."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_name("element").with_type(stored(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(stored(f.type)) for f in kind])
    return kind


def content_of(batches: Iterable[pa.RecordBatch]) -> tuple[int, str]:
    """Rows and content hash of batches of one schema."""
    rows, content = 0, None
    for batch in batches:
        content = content or ContentHash(batch.schema)
        content.update(batch)
        rows += batch.num_rows
    return rows, "" if content is None else content.hexdigest()


# Writing a shard.

ROW_GROUP_BYTES = 16 << 20
ROW_GROUP_ROWS = 1 << 16
_IDS = stored(pa.list_(pa.int32()))


class ShardWriter:
    """Writes a table. Row groups are cut by data: after the batch that reaches 16 MiB of values or 65,536 rows.

    `row_key` is stored as `record`: the rows come from the input file with the place `first_file`, or from those after
    it.
    """

    def __init__(self, file: Path, schema: pa.Schema, first_file: int = 0) -> None:
        self.first_file = first_file if KEY.name in schema.names else None
        schema = pa.schema([RECORD if f.name == KEY.name else f for f in schema])
        self._schema = pa.schema([f.with_type(stored(f.type)) for f in schema])
        self._hash = ContentHash(self._schema)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd", **_encodings(self._schema))
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._flushed = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; the batch's columns are taken by name and cast to the schema."""
        if batch.num_rows == 0:
            return
        if self.first_file is not None:
            batch = shifted(batch, KEY, RECORD, -row_key(self.first_file, 0))
        columns = [batch.column(f.name).cast(f.type) for f in self._schema]
        batch = pa.record_batch(columns, schema=self._schema)
        self._hash.update(batch)
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows >= ROW_GROUP_ROWS or self._hash.bytes - self._flushed >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._writer.write_table(pa.Table.from_batches(self._pending), row_group_size=self._pending_rows)
        self._pending, self._pending_rows, self._flushed = [], 0, self._hash.bytes

    def close(self) -> str | None:
        """End the file; returns the hash of the values."""
        self._flush()
        self._writer.close()
        return self._hash.hexdigest()


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Parquet options for a schema with token ids: their bytes are split by significance, which zstd packs smaller and
    three times as fast as a dictionary's indices."""
    ids = [f.name for f in schema if f.type == _IDS]
    if not ids:
        return {}
    others = [name for name in schema.names if name not in ids]
    split_bytes = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in ids}
    return {"use_dictionary": others, "write_statistics": others, "column_encoding": split_bytes}


# Arrays by what they hold, as signatures name them.

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]


# The bytes of string arrays, as kernels read them.

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]


def string_buffers(array: pa.Array) -> tuple[Bytes, Offsets]:
    """The UTF-8 bytes of a string array and the offset of each value; the bytes are not copied.

    Nulls count as "". Returns data uint8 (bytes of the buffer) and offsets int64 (rows + 1); value i is
    `data[offsets[i]:offsets[i + 1]]`. The data is always read-only, so that kernels are compiled for one type.

    Raises:
        TypeError: the array is not of type string or large_string.
    """
    if pa.types.is_string(array.type):
        width: type[np.signedinteger] = np.int32
    elif pa.types.is_large_string(array.type):
        width = np.int64
    else:
        raise TypeError(f"expected an array of strings, found {array.type}")
    if array.null_count:
        array = pc.fill_null(array, "")
    _, offset_buffer, data_buffer = array.buffers()
    data = np.frombuffer(data_buffer or b"", dtype=np.uint8)
    data.setflags(write=False)
    if offset_buffer is None or len(array) == 0:
        return data, np.zeros(len(array) + 1, np.int64)
    offsets = np.frombuffer(offset_buffer, dtype=width)[array.offset : array.offset + len(array) + 1]
    return data, offsets.astype(np.int64)


def string_array(data: Bytes, offsets: Offsets) -> pa.Array:
    """The string array over `data` (bytes that end where the last offset says); the inverse of `string_buffers`.

    Raises:
        OverflowError: more than 2 GB in one array, which `pa.string()` cannot address.
    """
    if offsets[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{offsets[-1]} bytes of text in one batch; a batch holds less than 2 GiB")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def row_chunks(offsets: Offsets, chunk_bytes: int) -> Iterator[tuple[int, int]]:
    """Cut rows into runs [begin, end) of at most `chunk_bytes` of text each, or one longer row.

    For kernels whose output is larger than their input: memory that is given back and taken again costs a page fault
    every 4 KiB, which the C library avoids for allocations below 32 MiB.
    """
    begin, rows = 0, len(offsets) - 1
    while begin < rows:
        end = int(np.searchsorted(offsets, offsets[begin] + chunk_bytes, side="right")) - 1
        end = min(max(end, begin + 1), rows)
        yield begin, end
        begin = end


# The text of a row.

On = Literal["all", "prompt", "answer"]

SEPARATOR = "\n\n"
_ANSWER_ROLES = ("assistant",)
_CONTEXT_ROLES = ("system", "developer", "tool", "function")  # instructions and tool results


def view(
    batch: pa.RecordBatch, on: On = "all", include_system: bool = False, *, include_calls: bool = False
) -> pa.Array:
    """One text per row (string array, never null), its parts joined by a blank line.

    document: `text`, whatever `on` is. conversation: "prompt" is the user turns, "answer" the assistant turns with
    their reasoning, "all" both in order. preference: "prompt" is the prompt's turns, "answer" chosen then rejected.
    System prompts, tool results and tool schemas are left out unless `include_system`; the tool calls of the
    assistant, which are JSON and not prose, unless `include_calls`.

    Raises:
        KeyError: the batch has none of the columns that hold text.
    """
    return _joined(_parts(batch, on, include_system, include_calls))


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewOptions:
    """The options of a stage that reads one text per row."""

    on: On = option("all", "the part of a row to look at", acts_with=OF_TURNS)
    include_system: bool = option(
        False, "look at system prompts, tool schemas and tool results too", advanced=True, acts_with=OF_TURNS
    )

    def texts(self, batch: pa.RecordBatch) -> pa.Array:
        """The `view` of a batch that is asked for."""
        return view(batch, self.on, self.include_system)


def compared_fields(batch: pa.RecordBatch, on: On = "all") -> list[pa.Array]:
    """The texts of each row that are compared with the same texts of other rows; tool calls count.

    Of preference pairs: what stands before the answers, chosen, rejected, unless `on` is "prompt". Of all other rows:
    their `view` alone.
    """
    parts = _parts(batch, on, include_system=False, include_calls=True)
    if on == "prompt" or {"text", "messages"} & set(batch.schema.names):
        return [_joined(parts)]
    before = parts[:-2] or [pa.array([""] * batch.num_rows, pa.string())]
    return [_joined(before), *(_joined([answer]) for answer in parts[-2:])]


def _parts(batch: pa.RecordBatch, on: On, include_system: bool, include_calls: bool) -> list[pa.Array]:
    """The texts that a row's view is joined of; both answers of a preference pair come last."""
    names = batch.schema.names
    if "text" in names:
        return [batch.column("text").cast(pa.string())]
    if "messages" in names:
        parts = [_turns(batch.column("messages"), on, include_system, include_calls)]
    elif "chosen" in names:
        prompt = [] if on == "answer" else ["prompt"]
        answer = [] if on == "prompt" else ["chosen", "rejected"]
        parts = [_turns(batch.column(name), "all", include_system, include_calls) for name in prompt + answer]
    else:
        raise KeyError(f"rows with the columns {', '.join(names)} have no text to look at")
    if include_system and "tools" in names:
        parts.insert(0, batch.column("tools"))
    return parts


def _turns(messages: pa.Array, on: On, include_system: bool, include_calls: bool) -> pa.Array:
    """The turns that `on` asks for of a list<struct> column, joined per row."""
    turns = messages.flatten()
    role = pc.struct_field(turns, "role")
    answers = pc.is_in(role, pa.array(_ANSWER_ROLES))
    context = pc.is_in(role, pa.array(_CONTEXT_ROLES))
    prompts = pc.invert(pc.or_(answers, context))
    wanted = {"all": pc.or_(prompts, answers), "prompt": prompts, "answer": answers}[on]
    if include_system:
        wanted = pc.or_(wanted, context)
    names = ["reasoning_content", "content"] + (["tool_calls"] if include_calls else [])
    present = {field.name for field in turns.type}
    texts = _joined([pc.struct_field(turns, name) for name in names if name in present])
    wanted = pc.and_(wanted, pc.greater(pc.binary_length(texts), 0))
    lengths = pc.fill_null(pc.list_value_length(messages), 0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(messages)), lengths)[wanted.to_numpy(zero_copy_only=False)]
    offsets = np.searchsorted(row, np.arange(len(messages) + 1)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts.filter(wanted))
    return pc.binary_join(lists, SEPARATOR)


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Element-wise join of string arrays; nulls and empty texts leave no separator behind."""
    joined = pc.fill_null(parts[0], "")
    for part in parts[1:]:
        text = pc.fill_null(part, "")
        both = pc.and_(pc.greater(pc.binary_length(joined), 0), pc.greater(pc.binary_length(text), 0))
        separator = pc.if_else(both, pa.scalar(SEPARATOR), pa.scalar(""))
        # not with null_handling="skip": Arrow then loses elements that are null in every part
        joined = pc.binary_join_element_wise(joined, separator, text, pa.scalar(""))
    return joined


# Every text of a row, whatever its field.

JSON_FIELDS: Final = ("tool_calls", "tools", "extra")
"""Fields that hold JSON as a string."""

_NOT_TEXT: Final = ("row_key", "id", "content_hash", "source", "lang")
"""Columns that name a row or a file."""

_NAMES_IN_MESSAGES: Final = ("role", "tool_call_id")

TextEdit = Callable[[pa.Array, npt.NDArray[np.int64], str], pa.Array]
"""(string[M], int64[M]: the row of each text, the field's name) -> string[M]."""


def whole_rows(batch: pa.RecordBatch) -> pa.Array:
    """All text of each row as one (string array, never null), its parts joined by a blank line.

    Documents, all turns with system prompts and tool results, reasoning, tool-call arguments, tool schemas, `extra` and
    the user's own columns. Of JSON only its strings count, without escapes, also where a string is JSON itself.
    """
    parts: list[tuple[pa.Array, npt.NDArray[np.int64]]] = []

    def collect(texts: pa.Array, rows: npt.NDArray[np.int64], name: str) -> pa.Array:
        if name in JSON_FIELDS:
            leaves = ["\n".join(json_strings(t)) if t else "" for t in texts.to_pylist()]
            parts.append((pa.array(leaves, pa.string()), rows))
        else:
            parts.append((texts.cast(pa.string()), rows))
        return texts

    edit_whole_rows(batch, collect)
    if all(len(texts) == batch.num_rows for texts, _ in parts):
        return _joined([texts for texts, _ in parts] or [pa.array([""] * batch.num_rows, pa.string())])
    texts, rows = pa.concat_arrays([t for t, _ in parts]), np.concatenate([r for _, r in parts])
    filled = pc.greater(pc.fill_null(pc.binary_length(texts), 0), 0)
    texts, rows = texts.filter(filled), rows[filled.to_numpy(zero_copy_only=False)]
    order = np.argsort(rows, kind="stable")
    offsets = np.searchsorted(rows[order], np.arange(batch.num_rows + 1)).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts.take(pa.array(order))), SEPARATOR)


def edit_whole_rows(batch: pa.RecordBatch, edit: TextEdit) -> dict[str, pa.Array]:
    """The columns that `edit` changes, by name; it gets every array of texts of the rows, those inside lists too."""
    made = {}
    for name in batch.schema.names:
        if name not in _NOT_TEXT:
            column = batch.column(name)
            new = _edited(column, np.arange(batch.num_rows), name, edit)
            if new is not column:
                made[name] = new
    return made


def _edited(array: pa.Array, rows: npt.NDArray[np.int64], name: str, edit: TextEdit) -> pa.Array:
    """The array with its texts edited; the same object where nothing changed."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return edit(array, rows, name)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        values = array.flatten()
        made = _edited(values, np.repeat(rows, lengths), name, edit)
        if made is values:
            return array
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        nulls = {"mask": pc.is_null(array)} if array.null_count else {}
        return pa.ListArray.from_arrays(offsets, made, type=pa.list_(kind.value_field), **nulls).cast(kind)
    if pa.types.is_struct(kind):
        children = [pc.struct_field(array, [i]) for i in range(kind.num_fields)]
        new = [
            c if f.name in _NAMES_IN_MESSAGES else _edited(c, rows, f.name, edit)
            for f, c in zip(kind, children, strict=True)
        ]
        if all(a is b for a, b in zip(new, children, strict=True)):
            return array
        return pa.StructArray.from_arrays(new, fields=list(kind), mask=pc.is_null(array))
    return array


def json_strings(text: str) -> Iterator[str]:
    """The strings of a JSON text that are values, without escapes; the text itself where it is not JSON.

    Strings that are JSON objects or lists themselves (the arguments of tool calls) are taken apart too.
    """
    if text.lstrip()[:1] not in ("{", "["):
        yield text
        return
    try:
        waiting = [orjson.loads(text)]
    except orjson.JSONDecodeError:
        yield text
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if value.lstrip()[:1] in ("{", "["):
                yield from json_strings(value)
            else:
                yield value
        elif isinstance(value, dict):
            waiting += reversed(value.values())
        elif isinstance(value, list):
            waiting += reversed(value)


# The strings that `content_hash` is made from, where a row is more than one text.

_FIELD, _MESSAGE, _TURNS = " \x01 ", " \x02 ", " \x03 "  # with spaces, so that white space beside them does not count
_MARKS = {n: f"\x04{n}" for n in (1, 2, 3, 4)}
"""How a text writes these characters, so that no text ends a field, a message or a side."""


def conversation_view(messages: Sequence[Sequence[Any]], tools: str | None) -> str:
    """The string that a conversation's `content_hash` is made from. A message has its values as in `MESSAGE`."""
    return _canonical(messages) + _FIELD + _unmarked(tools or "")


def preference_view(fields: Sequence[Sequence[Sequence[Any]]], tools: str | None) -> str:
    """The string that a preference pair's `content_hash` is made from; the fields are prompt, chosen and rejected."""
    return _TURNS.join([*map(_canonical, fields), _unmarked(tools or "")])


def _canonical(messages: Sequence[Sequence[Any]]) -> str:
    """Messages as one string: equal exactly if roles, contents, names, reasoning and calls are equal."""
    return _MESSAGE.join([_FIELD.join([_unmarked(x) if x else "" for x in m[:6]]) for m in messages])


def _unmarked(text: str) -> str:
    """A text without the marks; nearly all have none."""
    return text.translate(_MARKS) if any(mark in text for mark in "\x01\x02\x03\x04") else text
