"""Batches of rows, and the filter with some of its rules."""

from typing import Any

import pyarrow as pa

from datakit.config import build
from datakit.data import MESSAGES
from datakit.filter.stage import Filter, FilterConfig


def documents(*texts: str | None, **columns: list[str | None]) -> pa.RecordBatch:
    """Rows with the ids r0, r1, ..."""
    columns = {"id": [f"r{i}" for i in range(len(texts))], "text": [*texts]} | columns
    return pa.record_batch({name: pa.array(values, pa.string()) for name, values in columns.items()})


def conversations(*rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.record_batch({"messages": pa.array(rows, MESSAGES), "tools": pa.nulls(len(rows), pa.string())})


def filter_of(*rules: str, **values: Any) -> Filter:
    """The stage with these rules; their thresholds, and the stage's own options, by name."""
    return Filter(config=build(FilterConfig, ({"rules": [*rules]} if rules else {}) | values, "filter"))
