"""Runs dedup stages over rows as the engine does: sketch each shard, reduce, decide."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datakit.dedup.stage import Dedup, DedupConfig


@dataclass(frozen=True)
class Outcome:
    """`rows` maps a dropped row's id to (reason, duplicate_of, similarity)."""

    rows: dict[str, tuple[str, str, float]]
    kept: list[str]
    facts: dict[str, Any]
    decisions: bytes


@pytest.fixture
def run_dedup(tmp_path: Path) -> Callable[..., Outcome]:
    """Deduplicate batches, or texts whose row numbers are their ids; `cut` is how many rows each shard has."""

    def run(rows: pa.RecordBatch | Sequence[str], *, cut: int = 1000, workers: int = 2, **config: Any) -> Outcome:
        batch = rows if isinstance(rows, pa.RecordBatch) else documents(rows)
        stage = Dedup(DedupConfig(**config)).for_kind("preference" if "chosen" in batch.schema.names else "document")
        stage.open()
        shards = [batch.slice(begin, cut) for begin in range(0, max(batch.num_rows, 1), cut)]
        files = [write(stage.sketch(shard), tmp_path / f"{i}.arrow") for i, shard in enumerate(shards)]
        facts = stage.reduce(files, tmp_path / "decisions.arrow", workers=workers)
        bound = stage.bind(tmp_path / "decisions.arrow")
        dropped, kept = {}, []
        for shard in shards:
            decision = bound.decide(shard)
            columns = (decision.reasons, *decision.drop_columns.values())
            for name, *found in zip(shard.column("id").to_pylist(), *(c.to_pylist() for c in columns), strict=True):
                if found[0] is None:
                    kept.append(name)
                else:
                    dropped[name] = tuple(found)
        return Outcome(dropped, kept, facts, (tmp_path / "decisions.arrow").read_bytes())

    return run


def write(batch: pa.RecordBatch, path: Path) -> Path:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return path


@dataclass
class LevelOutcome:
    """By id: the texts of the rows that stay; (reason, detail, duplicate_of) of those that do not; what was cut."""

    kept: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, tuple[str, str, str | None]] = field(default_factory=dict)
    cuts: list[dict[str, Any]] = field(default_factory=list)
    edited: set[str] = field(default_factory=set)
    notes: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    decisions: bytes = b""


def documents(texts: Sequence[str], **columns: Any) -> pa.RecordBatch:
    """Rows with their number as id."""
    head = {
        "row_key": pa.array(range(len(texts)), pa.uint64()),
        "id": pa.array(map(str, range(len(texts))), pa.string()),
    }
    return pa.record_batch(head | columns | {"text": pa.array(texts, pa.string())})


def run_level(
    stage: Any, rows: pa.RecordBatch | Sequence[str], *, cut: int = 1000, workers: int = 2, kind: str = "document"
) -> LevelOutcome:
    """The outcome of a stage; `cut` is how many rows each shard has."""
    batch = rows if isinstance(rows, pa.RecordBatch) else documents(rows)
    stage = stage.for_kind(kind)
    stage.open()
    outcome = LevelOutcome()
    shards = [batch.slice(begin, cut) for begin in range(0, max(batch.num_rows, 1), cut)]
    with tempfile.TemporaryDirectory() as folder:
        files = [write(stage.sketch(shard), Path(folder) / f"{i}.arrow") for i, shard in enumerate(shards)]
        out = Path(folder) / "decisions.arrow"
        outcome.facts = stage.reduce(files, out, workers=workers)
        outcome.decisions = out.read_bytes()
        for shard in shards:
            _take(outcome, shard, stage.bind(out).decide(shard))
    return outcome


def _take(outcome: LevelOutcome, shard: pa.RecordBatch, decision: Any) -> None:
    plain = shard.column("text") if "text" in shard.schema.names else pa.nulls(shard.num_rows)
    texts = decision.columns.get("text", plain).to_pylist()
    why = [c.to_pylist() for c in (decision.reasons, decision.detail, decision.drop_columns["duplicate_of"])]
    for name, text, *reason in zip(shard.column("id").to_pylist(), texts, *why, strict=True):
        if reason[0] is None:
            outcome.kept[name] = text
        else:
            outcome.dropped[name] = tuple(reason)
    if decision.edited is not None:
        outcome.edited |= set(shard.column("id").filter(decision.edited).to_pylist())
    for table in decision.side_tables.values():
        outcome.cuts += table.to_pylist()
    for name, count in decision.notes.items():
        outcome.notes[name] = outcome.notes.get(name, 0) + count


def restored(kept: str, cuts: Sequence[dict[str, Any]]) -> str:
    """The text as it was before pieces were cut out of it."""
    data = kept.encode()
    for piece in sorted(cuts, key=lambda c: c["start"]):
        data = data[: piece["start"]] + piece["text"].encode() + data[piece["start"] :]
    return data.decode()
