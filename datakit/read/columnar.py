"""Parquet files, Arrow files and streams, and Arrow tables in memory: rows of typed columns.

Files come from anywhere. They are not memory-mapped, since one that is cut while it is mapped ends the process. Each
batch is validated in full before a value is used, since Arrow follows wrong offsets out of the memory of the process.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.data import RECORD_BITS
from datakit.errors import InputError
from datakit.read.columns import types_of
from datakit.read.record import Cells, Fields, RecordError
from datakit.read.row_builder import Position, RowBuilder
from datakit.read.streams import EXPANSION_FROM, Remaining, Segment, SourceFile, filesystem

ROWS: Final = 512
"""Rows that become Python objects at once."""
MOST_LOST: Final = 1 << 16
"""Rows of a damaged group that are quarantined one by one: a damaged file may claim any number of them."""
MOST_ROWS: Final = 1 << RECORD_BITS
_DAMAGE: Final = (OSError, pa.ArrowException, MemoryError, ValueError, TypeError, KeyError)
"""What Arrow raises about files that are damaged."""
FORMATS: Final = ("parquet", "arrow", "arrow_stream")
TOOLS: Final = ("tools", "functions")
CALLS: Final = ("tool_calls", "function_call", "tools")
"""Fields of a record, and of a turn, that hold objects without fixed keys."""


# Files.


def format_of(magic: bytes) -> str:
    """The format by a file's first bytes; "" for others."""
    if magic.startswith(b"PAR1"):
        return "parquet"
    if magic.startswith(b"ARROW1"):
        return "arrow"
    return "arrow_stream" if magic.startswith(b"\xff\xff\xff\xff") else ""


def head(file: SourceFile, count: int) -> list[Fields]:
    """The first rows of a file that can be read, at most `count`."""
    opened, rows = _open(file), list[Fields]()
    for group, _ in enumerate(_groups(file)):
        with suppress(*_DAMAGE):
            for batch in _batches(opened, file, group):
                rows += _good_rows(batch.slice(0, count - len(rows)))
                if len(rows) >= count:
                    return rows
    return rows


def cut(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    """Cut between row groups (Parquet) or record batches (Arrow)."""
    first_group = first_row = group = row = start = stop = 0
    for rows, size in _groups(file):
        group, row, stop = group + 1, row + rows, stop + size
        if stop - start >= remaining():
            yield Segment(index, first_row, first_row, start, stop, groups=(first_group, group))
            first_group, first_row, start = group, row, stop
    if group > first_group:
        yield Segment(index, first_row, first_row, start, stop, groups=(first_group, group))


def read(file: SourceFile, segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """Give the rows of a segment to the builder. Each row of a damaged group is quarantined."""
    assert segment.groups is not None
    opened, record, unpacked = _open(file), segment.first_record, 0
    for group in range(*segment.groups):
        begin, found = record, "corrupt_file"
        try:
            for batch in _batches(opened, file, group):
                unpacked += batch.nbytes
                if bomb := file.limits.expands_too_far(file.name, file.bytes, unpacked):
                    found = bomb.reason
                    raise ValueError(bomb.detail)
                yield
                _add(batch, record, builder)
                record += batch.num_rows
        except _DAMAGE as e:
            if isinstance(e, MemoryError) and not _asks_too_much(e, file):
                raise
            end = begin + next(islice(_groups(file), group, None))[0]
            why = RecordError(found, f"rows {record + 1} to {end} cannot be read: {e}")
            for lost in range(record, min(end, record + MOST_LOST)):
                yield
                builder.quarantine(Position(lost, lost, -1), why, b"")
            record = end


def _asks_too_much(error: MemoryError, file: SourceFile) -> bool:
    """Whether a damaged file asked for the memory that was not there, more than its bytes may become."""
    size = re.search(r"size (\d+)", str(error))
    return size is not None and int(size[1]) > EXPANSION_FROM + file.limits.expansion * file.bytes


class _Stream:
    """An Arrow stream that returns its batches by number, in rising order."""

    def __init__(self, reader: pa.RecordBatchStreamReader) -> None:
        self.reader = reader
        self.position = 0

    def following(self) -> pa.RecordBatch:
        """The next batch.

        Raises:
            StopIteration: there is none.
        """
        self.position += 1
        return self.reader.read_next_batch()

    def get_batch(self, number: int) -> pa.RecordBatch:
        """Batch `number`; those before it are skipped."""
        assert number >= self.position
        while self.position < number:
            self.following()
        return self.following()


def _open(file: SourceFile) -> Any:
    """A ParquetFile, a RecordBatchFileReader or a `_Stream`.

    Raises:
        InputError: the file does not have its format.
    """
    try:
        if file.is_local:
            source: Any = pa.OSFile(file.path)
        else:
            fs, inner = filesystem(file.path)
            source = fs.open_input_file(inner)
        if file.format == "parquet":
            opened: Any = pq.ParquetFile(source)
            names = opened.schema_arrow.names
        else:
            reader = pa.ipc.open_file(source) if file.format == "arrow" else pa.ipc.open_stream(source)
            opened, names = reader if file.format == "arrow" else _Stream(reader), reader.schema.names
    except _DAMAGE as e:
        raise InputError(f"{file.path}: not a readable {file.format.replace('_', ' ')} file: {e}") from e
    _check_names(names, file.path)
    return opened


def _check_names(names: list[str], path: str) -> None:
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: the schema names column {twice!r} twice; rename one of them")


def _groups(file: SourceFile) -> Iterator[tuple[int, int]]:
    """(rows, uncompressed bytes) of each row group or record batch. A batch that cannot be read counts as one row.

    Raises:
        InputError: the file claims to hold more rows than a file can have.
    """
    opened, total = _open(file), 0
    if file.format == "parquet":
        for i in range(opened.metadata.num_row_groups):
            group = opened.metadata.row_group(i)
            total += group.num_rows
            if group.num_rows < 0 or total >= MOST_ROWS:
                raise InputError(f"{file.path}: row group {i} is damaged: it claims to hold {group.num_rows:,} rows")
            yield group.num_rows, group.total_byte_size
    elif file.format == "arrow":
        for i in range(opened.num_record_batches):
            try:
                batch = _validated(opened.get_batch(i))
                yield batch.num_rows, batch.nbytes
            except _DAMAGE:
                yield 1, 0
    else:
        with suppress(StopIteration):
            while True:
                try:
                    batch = _validated(opened.following())
                    yield batch.num_rows, batch.nbytes
                except _DAMAGE:  # where the next batch begins is not known
                    yield 1, 0
                    return


def _batches(opened: Any, file: SourceFile, group: int) -> Iterator[pa.RecordBatch]:
    """The rows of one group, `ROWS` at a time."""
    if file.format == "parquet":
        for batch in opened.iter_batches(batch_size=ROWS, row_groups=[group]):
            yield _validated(batch)
        return
    whole = _validated(opened.get_batch(group))
    for at in range(0, whole.num_rows, ROWS):
        yield whole.slice(at, ROWS)


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, if no value in it lies outside of its buffers. Text that is not UTF-8 is left to its row.

    Raises:
        ArrowInvalid: an offset, a length or an index leads outside.
    """
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as e:
        if "UTF8" not in str(e):
            raise
        for column in batch.columns:
            column.view(_as_binary(column.type)).validate(full=True)
    return batch


def _as_binary(kind: pa.DataType) -> pa.DataType:
    """The type with binary for text."""
    return _replaced(kind, {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()})


def types(file: SourceFile) -> dict[str, pa.DataType | None]:
    """The type of each column of a file as a column of a dataset; None for those that stay in `extra`."""
    opened = _open(file)
    if file.format == "parquet":
        return types_of(opened.schema_arrow)
    return types_of(opened.schema if file.format == "arrow" else opened.reader.schema)


# Tables in memory.


def table_of(data: Any) -> pa.Table:
    """A Table, RecordBatch, RecordBatchReader, or any object with `__arrow_c_stream__`, as a table.

    Nothing is copied, but views of strings and binaries become large strings and binaries.

    Raises:
        InputError: it is none of these, its columns cannot be told apart, or its stream breaks.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    try:
        if not isinstance(data, pa.Table):
            data = pa.RecordBatchReader.from_stream(data).read_all()
    except TypeError:
        raise InputError(
            f"an object of type {type(data).__name__} cannot be read; give a pyarrow Table or RecordBatchReader, "
            "or an object with __arrow_c_stream__ (polars, pandas, DuckDB, Hugging Face datasets)"
        ) from None
    except (OSError, pa.ArrowException) as e:
        raise InputError(f"the Arrow stream of {type(data).__name__} cannot be read: {e}") from e
    _check_names(data.schema.names, "the table")
    schema = pa.schema([field.with_type(_without_views(field.type)) for field in data.schema])
    return data if schema == data.schema else data.cast(schema)


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type with large strings and binaries for views, which polars exports and few Arrow functions take."""
    return _replaced(kind, {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()})


def _replaced(kind: pa.DataType, other: dict[pa.DataType, pa.DataType]) -> pa.DataType:
    """The type with other types for some, at any depth."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_replaced(field.type, other)) for field in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_replaced(kind.value_type, other)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_replaced(kind.value_type, other)))
    return other.get(kind, kind)


def table_head(table: pa.Table, count: int) -> list[Fields]:
    """`head` for a table."""
    rows = list[Fields]()
    for batch in _table_batches(table):
        rows += _good_rows(batch.slice(0, count - len(rows)))
        if len(rows) >= count:
            break
    return rows


def cut_table(file: SourceFile, index: int, remaining: Remaining, table: pa.Table) -> Iterator[Segment]:
    """Cut after each `ROWS` rows at which the unit is full, however the table is chunked. Segments share its memory."""
    first = record = start = stop = 0
    for batch in _table_batches(table):
        record, stop = record + batch.num_rows, stop + batch.nbytes
        if stop - start >= remaining() or record == table.num_rows:
            yield Segment(index, first, first, start, stop, table=table.slice(first, record - first))
            first, start = record, stop


def read_table(segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """`read` for a segment that holds its rows. The record number in a row's `row_key` is the row's number."""
    assert segment.table is not None
    record = segment.first_record
    for batch in _table_batches(segment.table):
        yield
        _add(batch, record, builder)
        record += batch.num_rows


def _table_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows of a table, `ROWS` at a time, whatever its chunks."""
    for at in range(0, table.num_rows, ROWS):
        yield from table.slice(at, ROWS).combine_chunks().to_batches()


# Rows as Python objects.


def _add(batch: pa.RecordBatch, record: int, builder: RowBuilder) -> None:
    """Give the rows of a batch to the builder; the first has number `record`."""
    size = max(batch.nbytes // max(batch.num_rows, 1), 1)
    for number, (fields, wrong) in enumerate(_rows(batch), record):
        original = Cells(fields)
        try:
            if wrong is not None:
                raise wrong
            builder.add(fields, number, original, size)
        except RecordError as e:
            raw = "{" + ",".join(original.without(())) + "}"
            builder.quarantine(Position(number, number, -1), e, raw.encode())


def _good_rows(batch: pa.RecordBatch) -> list[Fields]:
    return [fields for fields, wrong in _rows(batch) if wrong is None]


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Fields, RecordError | None]]:
    """Each row as (fields, None). If a cell has no Python value: the row's other fields, and what is wrong."""
    batch = _with_nanoseconds_as_text(batch)
    try:
        rows = batch.to_pylist()
    except (ValueError, OverflowError):  # invalid UTF-8, a date after the year 9999: find the rows that have it
        yield from (_row(batch.slice(i, 1)) for i in range(batch.num_rows))
    else:
        for name in _columns_of_calls(batch.schema):
            for row in rows:
                row[name] = _as_called(row[name], name)
        yield from ((row, None) for row in rows)


def _columns_of_calls(schema: pa.Schema) -> list[str]:
    """The columns with tools or calls as objects. A struct has the keys of all rows, so that a call would have the
    arguments of every other function, as nulls."""
    names = []
    for field in schema:
        item = field.type.value_type if hasattr(field.type, "value_type") else field.type
        calls = pa.types.is_struct(item) and any(item.get_field_index(n) >= 0 for n in CALLS)
        if calls or (field.name in TOOLS and pa.types.is_nested(field.type)):
            names.append(field.name)
    return names


def _as_called(value: Any, name: str) -> Any:
    """The value of a column of `_columns_of_calls` without the keys that are null, at any depth of tools and calls."""
    if name in (*TOOLS, *CALLS):
        return _without_nulls(value)
    if type(value) is list:
        return [_as_called(turn, name) for turn in value]
    return {k: _without_nulls(v) if k in CALLS else v for k, v in value.items()} if type(value) is dict else value


def _without_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if type(value) is list else value


def _row(batch: pa.RecordBatch) -> tuple[Fields, RecordError | None]:
    fields, wrong = Fields(), None
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            fields[name] = column.to_pylist()[0]
        except (ValueError, OverflowError) as e:
            wrong = wrong or RecordError("bad_cell", f"column {name!r}, {column.type}: {e}")
    return fields, wrong


def _with_nanoseconds_as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Nanosecond times as ISO 8601 text, in UTC if they have a zone: Python's times have microseconds only."""
    for index, field in enumerate(batch.schema):
        kind, column = field.type, batch.column(index)
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            text = column.cast(pa.int64()).cast(pa.timestamp("ns")).cast(pa.string())
            text = pc.replace_substring(text, " ", "T", max_replacements=1)
            text = pc.binary_join_element_wise(text, "+00:00", "") if kind.tz else text
        elif pa.types.is_time(kind) and kind.bit_width == 64 and kind.unit == "ns":
            text = column.cast(pa.string())
        else:
            continue
        batch = batch.set_column(index, pa.field(field.name, pa.string()), text)
    return batch
