"""Reading whole inputs in one call, for tests."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datakit.read import record, row_builder, streams, web
from datakit.read.planning import Plan, plan, read_unit, units
from datakit.read.stage import IngestConfig


@dataclass
class Found:
    """Everything that reading gave, as Python objects."""

    plan: Plan
    rows: list[dict[str, Any]] = field(default_factory=list)
    bad: list[dict[str, Any]] = field(default_factory=list)
    notes: Counter = field(default_factory=Counter)
    units: int = 0

    @property
    def texts(self) -> list[str]:
        return [r["text"] for r in self.rows]

    @property
    def reasons(self) -> list[str]:
        return [b["reason"] for b in self.bad]


AS_JSON = {"columns": "json"}
"""Most tests look at all fields of a record at once, in `extra`; test_columns looks at columns."""


def read_all(*inputs: Path | str, **config: Any) -> Found:
    return _read(plan([str(i) for i in inputs], IngestConfig(**AS_JSON | config)))


def read_table(table: pa.Table, **config: Any) -> Found:
    return _read(plan([table], IngestConfig(**AS_JSON | config)))


def _read(planned: Plan) -> Found:
    found = Found(planned)
    for unit in units(planned):
        found.units += 1
        for batch in read_unit(unit, planned):
            batch.rows.validate(full=True)
            batch.quarantined.validate(full=True)
            found.rows += batch.rows.to_pylist()
            found.bad += batch.quarantined.to_pylist()
            found.notes.update(batch.notes)
    return found


def limit_records(patch: pytest.MonkeyPatch, size: int = 1 << 20) -> None:
    """Let records have at most so many bytes."""
    for module in (record, streams, web, row_builder):
        patch.setattr(module, "RECORD_BYTES", size)


@pytest.fixture
def read() -> Callable[..., Found]:
    return read_all


@pytest.fixture(name="read_table")
def read_table_fixture() -> Callable[..., Found]:
    """Read a table in memory."""
    return read_table


@pytest.fixture
def read_bytes(tmp_path: Path) -> Callable[..., Found]:
    """Read one file of these bytes."""

    def reading(data: bytes, name: str = "data.jsonl", **config: Any) -> Found:
        path = tmp_path / name
        path.write_bytes(data)
        return read_all(path, **config)

    return reading


def jsonl(*records: Any) -> bytes:
    """Records, or bytes, a line each."""
    return b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in records)


@pytest.fixture
def read_records(read_bytes: Callable[..., Found]) -> Callable[..., Found]:
    """Read records as a JSONL file."""
    return lambda *records, **config: read_bytes(jsonl(*records), **config)
