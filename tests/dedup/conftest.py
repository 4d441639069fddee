"""Runs dedup stages over rows as the engine does: sketch each shard, reduce, decide."""

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datakit.data import MESSAGES
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.stage import CompareUnits, SketchFile

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """`rows` maps a dropped row's id to (reason, duplicate_of, similarity). `groups`: how many were decided about."""

    rows: dict[str, tuple[str, str, float]]
    kept: list[str]
    facts: dict[str, Any]
    notes: Counter[str]
    groups: int
    decisions: bytes


@pytest.fixture
def run_dedup() -> Callable[..., Outcome]:
    """See `deduplicate`."""
    return deduplicate


def deduplicate(rows: pa.RecordBatch | Sequence[str], *, cut: int = 1000, workers: int = 2, **config: Any) -> Outcome:
    """Deduplicate batches, or texts whose row numbers are their ids; `cut` is how many rows each shard has."""
    batch = rows if isinstance(rows, pa.RecordBatch) else documents(rows)
    names = batch.schema.names
    kind = "document" if "text" in names else "conversation" if "messages" in names else "preference"
    stage = Dedup(DedupConfig(**config)).for_kind(kind)
    stage.open()
    shards = [batch.slice(begin, cut) for begin in range(0, max(batch.num_rows, 1), cut)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [write(stage.sketch(shard), folder / f"{i}.arrow") for i, shard in enumerate(shards)]
        compared = stage.compare([SketchFile.of(file) for file in files], CompareUnits(folder, workers))
        facts = compared.reduce(files, folder / "decisions.arrow", workers=workers)
        bound = stage.bind(folder / "decisions.arrow")
        outcome = Outcome({}, [], facts, Counter(), len(compared.compared.decides), bound.decisions.read_bytes())
        for shard in shards:
            decision = bound.decide(shard)
            outcome.notes.update(decision.notes)
            columns = (decision.reasons, *decision.drop_columns.values())
            for row, *found in zip(shard.column("id").to_pylist(), *(c.to_pylist() for c in columns), strict=True):
                if found[0] is None:
                    outcome.kept.append(row)
                else:
                    outcome.rows[row] = tuple(found)
    return outcome


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


def talk(*turns: str, system: str = "") -> Messages:
    """Turns of a user and an assistant, in turn, after a system prompt if there is one."""
    made: Messages = [{"role": "system", "content": system}] if system else []
    return made + [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(turns)]


def conversations(*rows: Messages, ids: Sequence[str] = (), **columns: Any) -> pa.RecordBatch:
    """Rows with their number as id, if they have no other."""
    keys = pa.array(range(len(rows)), pa.uint64())
    names = pa.array(ids or map(str, range(len(rows))), pa.string())
    return pa.record_batch({"row_key": keys, "id": names, "messages": pa.array(rows, MESSAGES)} | columns)


def preferences(rows: Sequence[Sequence[Messages]]) -> pa.RecordBatch:
    """Pairs of prompt, chosen, rejected."""
    sides = {
        name: pa.array([row[n] for row in rows], MESSAGES) for n, name in enumerate(("prompt", "chosen", "rejected"))
    }
    keys = {"row_key": pa.array(range(len(rows)), pa.uint64()), "id": [str(i) for i in range(len(rows))]}
    return pa.record_batch(keys | sides)


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
