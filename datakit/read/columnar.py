"""Parquet, Arrow IPC files and Arrow streams: rows of columns."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.errors import InputError
from datakit.read.files import Room, Segment, SourceFile, filesystem
from datakit.read.layouts.record import Fields, InexactNumbersError, MisfitError, to_json, with_exact_numbers
from datakit.read.row_builder import Converter, Place

ROWS: Final = 512
"""Rows that become Python objects at once."""


def cut(file: SourceFile, index: int, room: Room) -> Iterator[Segment]:
    """Cut between row groups (Parquet) or record batches (Arrow)."""
    first_group = first_row = group = row = start = stop = 0
    for rows, size in _groups(file):
        group, row, stop = group + 1, row + rows, stop + size
        if stop - start >= room():
            yield Segment(index, first_row, first_row, start, stop, groups=(first_group, group))
            first_group, first_row, start = group, row, stop
    if group > first_group:
        yield Segment(index, first_row, first_row, start, stop, groups=(first_group, group))


def head(file: SourceFile, count: int) -> list[Fields]:
    """The first rows of a file that can be read, at most `count`."""
    opened, rows = _open(file), list[Fields]()
    for group, _ in enumerate(_groups(file)):
        with suppress(OSError, pa.ArrowException):
            for batch in _batches(opened, file, group):
                found = rows_of(batch.slice(0, count - len(rows)))
                rows += [r for r in found if isinstance(r, dict)]
                if len(rows) >= count:
                    return rows
    return rows


def read(file: SourceFile, segment: Segment, converter: Converter) -> Iterator[None]:
    """Put the rows of a segment into the converter's sink; rows of a damaged group are quarantined one by one."""
    assert segment.groups is not None
    opened, record = _open(file), segment.first_record
    for group in range(*segment.groups):
        begin = record
        try:
            for batch in _batches(opened, file, group):
                yield
                size = max(batch.nbytes // max(batch.num_rows, 1), 1)
                for fields in rows_of(batch):
                    _add(fields, record, size, converter)
                    record += 1
        except (OSError, pa.ArrowException) as e:
            end = begin + next(islice(_groups(file), group, None))[0]
            why = MisfitError("corrupt_file", f"rows {record + 1} to {end} cannot be read: {e}")
            for lost in range(record, end):
                converter.sink.quarantine(converter.source.name, Place(lost, lost, -1), why, b"")
            record = end


def _add(found: Fields | tuple[MisfitError, Fields], record: int, size: int, converter: Converter) -> None:
    wrong, fields = (None, found) if isinstance(found, dict) else found
    original = Cells(fields)
    try:
        if wrong is not None:
            raise wrong
        converter.add(fields, record, original, size, False)
    except MisfitError as e:
        raw = "{" + ",".join(original.without(())) + "}"
        converter.sink.quarantine(converter.source.name, Place(record, record, -1), e, raw.encode())


class Cells:
    """A row of typed cells as JSON; see `convert.Original`. Times are ISO 8601, bytes base64, decimals digits."""

    __slots__ = ("fields",)

    def __init__(self, fields: Fields) -> None:
        self.fields = fields

    def value(self, key: str) -> str:
        """The JSON text of a cell, "" without it."""
        return self._text(self.fields[key]) if key in self.fields else ""

    def without(self, used: tuple[str, ...]) -> list[str]:
        """All members but the used ones."""
        return [f"{to_json(k)}:{self._text(v)}" for k, v in self.fields.items() if k not in used]

    def exact(self) -> Fields:
        """The fields with their floats as `Number`s."""
        exact: Fields = with_exact_numbers(self.fields)
        return exact

    def _text(self, value: Any) -> str:
        try:
            return to_json(value)
        except InexactNumbersError:
            return to_json(with_exact_numbers(value))


class _Stream:
    """An Arrow stream that gives its batches by number, in rising order."""

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
        """Batch `number`; those before it are passed over."""
        assert number >= self.position
        while self.position < number:
            self.following()
        return self.following()


def _open(file: SourceFile) -> Any:
    """A ParquetFile, a RecordBatchFileReader or a `_Stream`.

    Raises:
        InputError: the file is not what its format says.
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
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise InputError(f"{file.path}: the schema names column {twice!r} twice; rename one of them")
    return opened


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


def rows_of(batch: pa.RecordBatch) -> Iterator[Fields | tuple[MisfitError, Fields]]:
    """Each row as a mapping, or what is wrong with it and its other cells where one is no Python value."""
    batch = _with_nanoseconds_as_text(batch)
    try:
        rows = batch.to_pylist()
    except (ValueError, OverflowError):  # invalid UTF-8, a date after the year 9999: look for the rows
        for row in range(batch.num_rows):
            yield _row(batch.slice(row, 1))
    else:
        yield from rows


def _row(batch: pa.RecordBatch) -> Fields | tuple[MisfitError, Fields]:
    fields, wrong = Fields(), None
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            fields[name] = column.to_pylist()[0]
        except (ValueError, OverflowError) as e:
            wrong = wrong or MisfitError("bad_cell", f"column {name!r}, {column.type}: {e}")
    return fields if wrong is None else (wrong, fields)


def _with_nanoseconds_as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Nanosecond times as ISO 8601 text, in UTC where they have a zone: Python's own end at microseconds."""
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
