"""Runs the dedup stage over rows the way `run` does: sketches per shard, reduce, decide."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


def documents(texts: Sequence[str]) -> pa.RecordBatch:
    keys = pa.array(range(len(texts)), pa.uint64())
    return pa.record_batch(
        {"row_key": keys, "id": [str(i) for i in range(len(texts))], "text": pa.array(texts, pa.string())}
    )


def write(batch: pa.RecordBatch, path: Path) -> Path:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return path
