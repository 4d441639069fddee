"""Parquet, Arrow IPC files and Arrow streams: rows of columns."""

import base64
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from datakit.errors import InputError
from datakit.layouts.record import Fields, InexactNumbersError, MisfitError, to_json, with_exact_numbers
from datakit.read.convert import Converter
from datakit.read.files import SourceFile, filesystem
from datakit.read.sink import Place
from datakit.read.units import Room, Segment

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
    """The first rows of a file, at most `count`."""
    rows: list[Fields] = []
    for batch in _batches(file, 0, 1 << 31):
        rows += batch.slice(0, count - len(rows)).to_pylist()
        if len(rows) >= count:
            break
    return rows


def read(file: SourceFile, segment: Segment, converter: Converter) -> Iterator[None]:
    """Put the rows of a segment into the converter's sink; rows of a damaged part are quarantined one by one."""
    assert segment.groups is not None
    record, sizes = segment.first_record, list(_groups(file))
    last = record + sum(rows for rows, _ in sizes[slice(*segment.groups)])
    try:
        for batch in _batches(file, *segment.groups):
            size = max(batch.nbytes // max(batch.num_rows, 1), 1)
            for at in range(0, batch.num_rows, ROWS):
                yield
                for fields in batch.slice(at, ROWS).to_pylist():
                    _add(fields, record, size, converter)
                    record += 1
    except (OSError, pa.ArrowException) as e:
        why = MisfitError("corrupt_file", f"rows {record} to {last - 1} cannot be read: {e}")
        for lost in range(record, last):
            converter.sink.quarantine(converter.source.name, Place(lost, lost, -1), why, b"")


def _add(fields: Fields, record: int, size: int, converter: Converter) -> None:
    try:
        converter.add(fields, record, partial(_members, fields), partial(with_exact_numbers, fields), size, False)
    except MisfitError as e:
        raw = "{" + ",".join(f"{to_json(k)}:{v}" for k, v in _members(fields)) + "}"
        converter.sink.quarantine(converter.source.name, Place(record, record, -1), e, raw.encode())


def _members(fields: Fields) -> Iterator[tuple[str, str]]:
    """The columns of a row as JSON; what JSON has no type for becomes a string (times in ISO 8601, bytes in base64)."""
    for key, value in fields.items():
        try:
            yield key, to_json(value)
        except InexactNumbersError:
            yield key, to_json(with_exact_numbers(value))
        except MisfitError:
            yield key, to_json(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, str | int | bool) or value is None else str(value)


def _open(file: SourceFile) -> Any:
    """A ParquetFile, a RecordBatchFileReader or a RecordBatchStreamReader.

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
            return pq.ParquetFile(source)
        return pa.ipc.open_file(source) if file.format == "arrow" else pa.ipc.open_stream(source)
    except (OSError, pa.ArrowException) as e:
        raise InputError(f"{file.path}: not a readable {file.format.replace('_', ' ')} file: {e}") from e


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
        for batch in opened:
            yield batch.num_rows, batch.nbytes


def _batches(file: SourceFile, first: int, stop: int) -> Iterator[pa.RecordBatch]:
    """The rows of groups `first:stop`, in order."""
    opened = _open(file)
    if file.format == "parquet":
        groups = list(range(first, min(stop, opened.metadata.num_row_groups)))
        yield from opened.iter_batches(batch_size=ROWS, row_groups=groups)
    elif file.format == "arrow":
        for i in range(first, min(stop, opened.num_record_batches)):
            yield opened.get_batch(i)
    else:
        for i, batch in enumerate(opened):
            if i >= stop:
                return
            if i >= first:
                yield batch
