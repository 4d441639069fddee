"""Runs of one dedup stage, each against all before it, and one run over all of their rows."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from datakit.config import sha256_file
from datakit.dedup.index import EarlierRun
from datakit.dedup.shuffle import IndexedStage
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.dedup.urls import DedupUrls
from datakit.engine.store import EarlierUnits, UnitWork
from datakit.manifest import Shard
from tests.dedup.conftest import compare, documents

Fate = tuple[Any, ...]
DEDUP = Dedup(DedupConfig())


def rows(texts: Sequence[str], name: str) -> pa.RecordBatch:
    urls = pa.array([f"https://example.org/{len(text) % 40}" if len(text) % 3 else None for text in texts], pa.string())
    return documents(texts, [f"{name}{i}" for i in range(len(texts))], url=urls)


@dataclass
class Runs:
    """Dedup runs one after another, each against all before it."""

    folder: Path
    stage: IndexedStage
    done: tuple[EarlierRun, ...] = ()

    def add(self, batch: pa.RecordBatch, cut: int = 7, workers: int = 2) -> dict[str, Fate]:
        """What became of the rows that were dropped, (reason, survivor, ...), or lost some of their text."""
        data = self.folder / str(len(self.done))
        data.mkdir()
        stage = replace(self.stage, config=replace(self.stage.config, save_index=True), earlier=self.done)
        shards = [batch.slice(begin, cut) for begin in range(0, max(batch.num_rows, 1), cut)]
        bound, _ = compare(stage, shards, data, workers)
        files = sorted(data.glob("?????.arrow"))
        units = UnitWork(bound, data, data, EarlierUnits("", ()))
        records = [units.index(i, [f.name, f.stat().st_size, sha256_file(f)]) for i, f in enumerate(files)]
        index = tuple(Shard(**record["shards"][0]) for record in records)
        self.done += (EarlierRun(f"run {len(self.done)}", f"v{len(self.done)}", data, index, 0),)
        found = dict[str, Fate]()
        for shard in shards:
            decision = bound.decide(shard)
            columns = {"reason": decision.reasons, "detail": decision.detail} | decision.drop_columns
            if isinstance(stage, Dedup | DedupUrls):  # it names the other run
                del columns["detail"]
            told = pa.table({"id": shard.column("id")} | columns)
            gone = told.filter(pa.compute.field("reason").is_valid()).to_pylist()
            for row in [*gone, *(row for table in decision.side_tables.values() for row in table.to_pylist())]:
                name, known, where = row.pop("id"), row.get("duplicate_of"), row.pop("duplicate_in", None)
                assert where == self.version_of(known) or not (known and ":" in known)
                found[name] = (*found.get(name, ()), *(v for column, v in row.items() if column != "row_key"))
        return found

    def version_of(self, name: str | None) -> str | None:
        """The version of the earlier run that has the row; None for the newest run."""
        run = int(name.partition(":")[0]) if name and ":" in name else len(self.done) - 1
        return f"v{run}" if run < len(self.done) - 1 else None


def jointly_and_apart(
    parts: Sequence[Sequence[str]], cut: int = 7, stage: IndexedStage = DEDUP, workers: int = 2
) -> tuple[dict[str, Fate], dict[str, Fate]]:
    with tempfile.TemporaryDirectory() as folder:
        apart = dict[str, Fate]()
        runs = Runs(Path(folder), stage)
        for n, part in enumerate(parts):
            apart |= runs.add(rows(part, f"{n}:"), cut, workers)
        batches = [rows(part, f"{n}:") for n, part in enumerate(parts)]
        table = pa.Table.from_batches(batches).combine_chunks()
        table = table.set_column(0, "row_key", pa.array(range(table.num_rows), pa.uint64()))
        (joint,) = table.to_batches() or [rows([], "")]
        (Path(folder) / "joint").mkdir()
        return Runs(Path(folder) / "joint", stage).add(joint, cut, workers), apart
