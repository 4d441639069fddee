"""Parquet files, Arrow files and streams, and Arrow tables in memory: rows of typed columns.

Files come from anywhere. They are not memory-mapped, since one that is cut while it is mapped ends the process. Each
batch is validated in full before a value is used, since Arrow follows wrong offsets out of the memory of the process.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count, islice, pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.data import RECORD_BITS
from datakit.errors import InputError
from datakit.read.record import Fields, Record
from datakit.read.row_builder import column_type
from datakit.read.streams import RecordError, Remaining, Segment, SourceFile, expands_too_far, open_binary, refuse_twice
from datakit.storage import is_url

ROWS: Final = 512
"""Rows that become Python objects at once."""
TAKEN: Final = 10_000
"""Rows of Python objects that become one table."""
OTHERWISE: Final = "if a field has values of several types, write JSON Lines, which can have them, and give the file"
MOST_LOST: Final = 1 << 16
"""Rows of a damaged group that are quarantined one by one: a damaged file may claim any number of them."""
MOST_ROWS: Final = 1 << RECORD_BITS
_DAMAGE: Final = (OSError, pa.ArrowException, MemoryError, ValueError, TypeError, KeyError)
"""What Arrow raises about files that are damaged."""
MAGIC: Final = {"parquet": b"PAR1", "arrow": b"ARROW1", "arrow_stream": b"\xff\xff\xff\xff"}
FORMATS: Final = (*MAGIC, "table")
_BINARY: Final = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
_LARGE: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""Views, which polars exports and few Arrow functions take -> the types that stand for them."""
TOOLS: Final = ("tools", "functions")
CALLS: Final = ("tool_calls", "function_call", "tools")
"""Fields of a record, and of a turn, that hold objects without fixed keys."""


# Groups of rows: of a Parquet file, the batches of an Arrow file or stream, slices of a table in memory.


class _Opened:
    """The groups of rows of an input, by number; those of a stream in rising order.

    Raises:
        InputError: the file does not have its format.
    """

    def __init__(self, file: SourceFile) -> None:
        self.file, self.next = file, 0
        try:
            self.reader: Any = _reader(file)
        except _DAMAGE as e:
            raise InputError(f"{file.path}: not a readable {file.format.replace('_', ' ')} file: {e}") from e
        self.schema: pa.Schema = self.reader.schema_arrow if file.format == "parquet" else self.reader.schema
        refuse_twice(self.schema.names, f"{file.path}: the schema")

    def groups(self) -> Iterator[tuple[int, int]]:
        """(rows, uncompressed bytes) of each group. A batch that cannot be read counts as one row.

        Raises:
            InputError: the file claims to hold more rows than a file can have.
        """
        if self.file.format == "parquet":
            yield from self._row_groups()
            return
        for number in count():
            try:
                batch = self._batch(number)
            except _DAMAGE:
                yield 1, 0
                if self.file.format == "arrow_stream":  # where the next batch begins is not known
                    return
                continue
            if batch is None:
                return
            yield batch.num_rows, batch.nbytes

    def _row_groups(self) -> Iterator[tuple[int, int]]:
        total = 0
        for i in range(self.reader.metadata.num_row_groups):
            group = self.reader.metadata.row_group(i)
            total += group.num_rows
            if group.num_rows < 0 or total >= MOST_ROWS:
                found = f"row group {i} is damaged: it claims to hold {group.num_rows:,} rows"
                raise InputError(f"{self.file.path}: {found}")
            yield group.num_rows, group.total_byte_size

    def batches(self, group: int) -> Iterator[pa.RecordBatch]:
        """The rows of one group, `ROWS` at a time."""
        if self.file.format == "parquet":
            yield from map(_validated, self.reader.iter_batches(batch_size=ROWS, row_groups=[group]))
        elif (whole := self._batch(group)) is not None:
            yield from (whole.slice(at, ROWS) for at in range(0, whole.num_rows, ROWS))

    def _batch(self, number: int) -> pa.RecordBatch | None:
        """Batch `number`; None if there are not so many."""
        if self.file.table is not None:
            part = self.file.table.slice(number * ROWS, ROWS).combine_chunks()
            return part.to_batches()[0] if part.num_rows else None
        if self.file.format == "arrow":
            return _validated(self.reader.get_batch(number)) if number < self.reader.num_record_batches else None
        with suppress(StopIteration):
            while self.next <= number:
                self.next += 1
                batch = self.reader.read_next_batch()
            return _validated(batch)
        return None


def _reader(file: SourceFile) -> Any:
    if file.table is not None:
        return file.table
    source = open_binary(file.path) if is_url(file.path) else pa.OSFile(file.path)
    return {"parquet": pq.ParquetFile, "arrow": pa.ipc.open_file}.get(file.format, pa.ipc.open_stream)(source)


def types(file: SourceFile) -> dict[str, pa.DataType | None]:
    """The type of each column as a column of a dataset; None for those that stay in `extra`."""
    schema = _Opened(file).schema
    return {f.name: column_type(f.type) for f in schema if not pa.types.is_null(f.type)}


def cut(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    """Cut between groups."""
    first_group = first_row = group = row = start = stop = 0
    for rows, size in _Opened(file).groups():
        group, row, stop = group + 1, row + rows, stop + size
        if stop - start >= remaining():
            yield Segment(index, first_row, row - first_row, first_row, start, stop, groups=(first_group, group))
            first_group, first_row, start = group, row, stop
    if group > first_group:
        yield Segment(index, first_row, row - first_row, first_row, start, stop, groups=(first_group, group))


def read(file: SourceFile, segment: Segment) -> Iterator[Record]:
    """The rows of a segment. Each row of a damaged group is wrong."""
    assert segment.groups is not None
    opened, row, unpacked = _Opened(file), segment.first_record, 0
    for group in range(*segment.groups):
        begin, found = row, "corrupt_file"
        try:
            for batch in opened.batches(group):
                unpacked += batch.nbytes
                if bomb := expands_too_far(file.name, file.bytes, unpacked):
                    found = bomb.reason
                    raise ValueError(bomb.detail)
                yield from _rows(batch, row)
                row += batch.num_rows
        except _DAMAGE as e:
            if isinstance(e, MemoryError) and not _asks_too_much(e, file):
                raise
            end = begin + next(islice(_Opened(file).groups(), group, None))[0]
            why = RecordError(found, f"rows {row + 1} to {end} cannot be read: {e}")
            for lost in range(row, min(end, row + MOST_LOST)):
                yield Record(why, lost, lost, None, b"")
            row = end


def _asks_too_much(error: MemoryError, file: SourceFile) -> bool:
    """Whether a damaged file asked for the memory that was not there, more than its bytes may become."""
    size = re.search(r"size (\d+)", str(error))
    return size is not None and expands_too_far(file.name, file.bytes, int(size[1])) is not None


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
            column.view(_replaced(column.type, _BINARY)).validate(full=True)
    return batch


# Tables in memory.


def table_of(data: Any) -> pa.Table:
    """Data of another library, or rows as dictionaries, as a table.

    Data is a Table, RecordBatch or RecordBatchReader, any object with `__arrow_c_stream__`, a Hugging Face `Dataset`
    or `IterableDataset`, a frame to `collect()`, and whatever gives dictionaries when it is iterated or indexed.
    Arrow data is not copied, but views of strings and binaries become large strings and binaries, and run-end encoded
    columns become plain ones. Rows that are iterated are written to a temporary file and mapped, so that they need no
    memory.

    Raises:
        InputError: it is none of these, its columns cannot be told apart, or its stream breaks.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not hasattr(data, "__arrow_c_stream__") and hasattr(data, "collect"):
        data = data.collect()
    try:
        if hasattr(data, "__arrow_c_stream__"):
            data = data if isinstance(data, pa.Table) else pa.RecordBatchReader.from_stream(data).read_all()
        else:
            data = pa.concat_tables([pa.table({}), *_on_disk(_tables(data))], promote_options="permissive")
    except (OSError, TypeError, OverflowError, pa.ArrowException) as e:
        raise InputError(f"the data of {type(data).__name__} cannot be read as a table: {e}; {OTHERWISE}") from e
    if not data.schema.names:
        raise InputError("the data has no columns, so that no row can be made of it; give at least one row")
    refuse_twice(data.schema.names, "the table: the schema")
    for i, field in enumerate(data.schema):
        if pa.types.is_run_end_encoded(field.type):  # few functions take such columns
            data = data.set_column(i, field.name, pc.run_end_decode(data.column(i)))
    schema = pa.schema([field.with_type(_replaced(field.type, _LARGE)) for field in data.schema])
    return data if schema == data.schema else data.cast(schema)


def _on_disk(tables: Iterator[pa.Table]) -> list[pa.Table]:
    """The tables, mapped from a temporary file without a name; the last of them frees it."""
    with tempfile.NamedTemporaryFile(prefix="datakit-", suffix=".arrow") as out:
        ends = list[int]()
        for table in tables:
            with pa.ipc.new_stream(out, table.schema) as writer:
                writer.write_table(table)
            ends.append(out.tell())
        out.flush()
        if not ends:
            return []
        mapped = pa.memory_map(out.name)
        return [pa.ipc.open_stream(mapped.read_buffer(end - begin)).read_all() for begin, end in pairwise([0, *ends])]


def _tables(data: Any) -> Iterator[pa.Table]:
    """The rows of an object that exports no Arrow stream, some thousands at a time."""
    found = type(data).__name__
    if isinstance(data, Mapping):
        raise InputError(
            f"a {found} of {', '.join(map(str, data))} is no table: give one split of it, or `pa.table(data)` if these "
            "are columns"
        )
    if hasattr(data, "with_format") and hasattr(data, "__len__"):  # a Dataset of Hugging Face
        yield from data.with_format("arrow").iter(batch_size=TAKEN)
        return
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):  # a torch dataset may have no iterator that ends
        rows: Iterator[Any] = map(data.__getitem__, range(len(data)))
    elif isinstance(data, Iterable):
        rows = iter(data)
    else:
        raise InputError(
            f"an object of type {found} cannot be read; give a pyarrow Table, an object with __arrow_c_stream__ "
            "(polars, pandas, DuckDB), a Hugging Face Dataset, or rows as dictionaries"
        )
    begin = 0
    while taken := list(islice(rows, TAKEN)):
        odd = next((i for i, row in enumerate(taken) if not isinstance(row, dict)), None)
        if odd is not None or not any(taken):
            row = taken[odd or 0]
            raise InputError(f"{found}: row {begin + (odd or 0)}: expected a dictionary with keys, found {row!r:.40}")
        try:
            # an array of structs has the keys of all rows; `Table.from_pylist` has those of the first alone
            yield pa.Table.from_struct_array(pa.array(taken))
        except (TypeError, OverflowError, UnicodeError, pa.ArrowException) as e:
            raise InputError(f"{found}: rows {begin} to {begin + len(taken) - 1} are no table: {e}; {OTHERWISE}") from e
        begin += len(taken)


def _replaced(kind: pa.DataType, other: dict[pa.DataType, pa.DataType]) -> pa.DataType:
    """The type with other types for some, at any depth."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_replaced(field.type, other)) for field in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_replaced(kind.value_type, other)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_replaced(kind.value_type, other)))
    return other.get(kind, kind)


# Rows as Python objects.


def _rows(batch: pa.RecordBatch, number: int) -> Iterator[Record]:
    """The rows of a batch, the first with this number. One with a cell that has no Python value has what is wrong."""
    size = max(batch.nbytes // max(batch.num_rows, 1), 1)
    batch = _with_nanoseconds_as_text(batch)
    try:
        rows = batch.to_pylist()
    except (ValueError, OverflowError):  # invalid UTF-8, a date after the year 9999: find the rows that have it
        for i in range(batch.num_rows):
            yield _row(batch.slice(i, 1), number + i, size)
        return
    # a struct has the keys of all rows: a call would have the arguments of every other function, as nulls
    nested = [f.name for f in batch.schema if f.name in TOOLS or any(f"{name}: " in str(f.type) for name in CALLS)]
    for i, row in enumerate(rows, number):
        for name in nested:
            row[name] = _without_nulls(row[name], name in TOOLS)
        yield Record(row, i, i, None, b"", size)


def _without_nulls(value: Any, in_call: bool) -> Any:
    """A value without the keys that are null, at any depth of its tools and calls."""
    if type(value) is dict:
        return {k: _without_nulls(v, in_call or k in CALLS) for k, v in value.items() if v is not None or not in_call}
    return [_without_nulls(v, in_call) for v in value] if type(value) is list else value


def _row(batch: pa.RecordBatch, number: int, size: int) -> Record:
    """The one row of a batch; of a bad one the cells that have a value."""
    fields, wrong = Fields(), None
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            fields[name] = column.to_pylist()[0]
        except (ValueError, OverflowError) as e:
            wrong = wrong or RecordError("bad_cell", f"column {name!r}, {column.type}: {e}")
    row = Record(fields, number, number, None, b"", size)
    return Record(wrong, number, number, None, row.written(), size) if wrong else row


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
