"""Rows of Arrow cells as Python objects, one bad cell costing its row alone."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from datakit.layouts.record import Fields, MisfitError


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
