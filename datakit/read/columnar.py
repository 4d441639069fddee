"""Parquet files, Arrow files and streams, and Arrow tables in memory: rows of typed columns."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.errors import InputError
from datakit.read.columns import types_of
from datakit.read.files import Remaining, Segment, SourceFile, filesystem
from datakit.read.layouts.record import Fields, MisfitError
from datakit.read.row_builder import Cells, Position, RowBuilder

ROWS: Final = 512
"""Rows that become Python objects at once."""


# Files.


def head(file: SourceFile, count: int) -> list[Fields]:
    """The first rows of a file that can be read, at most `count`."""
    opened, rows = _open(file), list[Fields]()
    for group, _ in enumerate(_groups(file)):
        with suppress(OSError, pa.ArrowException):
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
    opened, record = _open(file), segment.first_record
    for group in range(*segment.groups):
        begin = record
        try:
            for batch in _batches(opened, file, group):
                yield
                _add(batch, record, builder)
                record += batch.num_rows
        except (OSError, pa.ArrowException) as e:
            end = begin + next(islice(_groups(file), group, None))[0]
            why = MisfitError("corrupt_file", f"rows {record + 1} to {end} cannot be read: {e}")
            for lost in range(record, end):
                builder.quarantine(Position(lost, lost, -1), why, b"")
            record = end


class _Stream:
    """An Arrow stream that returns its batches by number, in rising order."""

    def __init__(self, reader: pa.RecordBatchStreamReader) -> None:
        self.reader = reader
        self.position = 0

    def following(self) -> pa.RecordBatch | None:
        """The next batch; None at the end."""
        self.position += 1
        try:
            return self.reader.read_next_batch()
        except StopIteration:
            return None

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
            source: Any = pa.memory_map(file.path)
        else:
            fs, inner = filesystem(file.path)
            source = fs.open_input_file(inner)
        if file.format == "parquet":
            opened: Any = pq.ParquetFile(source)
            names = opened.schema_arrow.names
        else:
            reader = pa.ipc.open_file(source) if file.format == "arrow" else pa.ipc.open_stream(source)
            opened, names = reader if file.format == "arrow" else _Stream(reader), reader.schema.names
    except (OSError, pa.ArrowException) as e:
        raise InputError(f"{file.path}: not a readable {file.format.replace('_', ' ')} file: {e}") from e
    _check_names(names, file.path)
    return opened


def _check_names(names: list[str], path: str) -> None:
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: the schema names column {twice!r} twice; rename one of them")


def _groups(file: SourceFile) -> Iterator[tuple[int, int]]:
    """(rows, uncompressed bytes) of each row group or record batch."""
    opened = _open(file)
    if file.format == "parquet":
        for i in range(opened.metadata.num_row_groups):
            group = opened.metadata.row_group(i)
            yield group.num_rows, group.total_byte_size
    elif file.format == "arrow":
        for i in range(opened.num_record_batches):
            batch = opened.get_batch(i)
            yield batch.num_rows, batch.nbytes
    else:
        while (batch := opened.following()) is not None:
            yield batch.num_rows, batch.nbytes


def _batches(opened: Any, file: SourceFile, group: int) -> Iterator[pa.RecordBatch]:
    """The rows of one group, `ROWS` at a time."""
    if file.format == "parquet":
        yield from opened.iter_batches(batch_size=ROWS, row_groups=[group])
        return
    whole = opened.get_batch(group)
    for at in range(0, whole.num_rows, ROWS):
        yield whole.slice(at, ROWS)


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
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_views(kind.value_type)))
    return kind


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
        except MisfitError as e:
            raw = "{" + ",".join(original.without(())) + "}"
            builder.quarantine(Position(number, number, -1), e, raw.encode())


def _good_rows(batch: pa.RecordBatch) -> list[Fields]:
    return [fields for fields, wrong in _rows(batch) if wrong is None]


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Fields, MisfitError | None]]:
    """Each row as (fields, None). If a cell has no Python value: the row's other fields, and what is wrong."""
    batch = _with_nanoseconds_as_text(batch)
    try:
        rows = batch.to_pylist()
    except (ValueError, OverflowError):  # invalid UTF-8, a date after the year 9999: find the rows that have it
        yield from (_row(batch.slice(i, 1)) for i in range(batch.num_rows))
    else:
        yield from ((row, None) for row in rows)


def _row(batch: pa.RecordBatch) -> tuple[Fields, MisfitError | None]:
    fields, wrong = Fields(), None
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            fields[name] = column.to_pylist()[0]
        except (ValueError, OverflowError) as e:
            wrong = wrong or MisfitError("bad_cell", f"column {name!r}, {column.type}: {e}")
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
