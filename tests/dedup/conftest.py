"""Runs dedup stages over rows as the engine does: sketch each shard, compare, decide."""

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from datakit.config import sha256_file
from datakit.data import MESSAGES
from datakit.dedup.shuffle import ShuffleStage
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.stage import SketchFile
from tests.files import says, user

Messages = list[dict[str, Any]]


class ThreadUnits:
    """Work units of a comparison, in threads of this process and without records; data lies below `data`."""

    def __init__(self, data: Path, workers: int) -> None:
        self.data, self.workers, self.share = data, workers, workers

    def units(self, name: str, work: Callable, tasks: Sequence[Any], *, here: bool = False) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(lambda task: work(*task), tasks))


def sketch_file(path: Path) -> SketchFile:
    """A file that was just written."""
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        rows = sum(reader.get_batch(n).num_rows for n in range(reader.num_record_batches))
    return SketchFile(path, rows, path.stat().st_size, sha256_file(path))


@dataclass
class Outcome:
    """What a stage decided, by id: the texts of the rows that stay; of those that do not (reason, *drop columns) in
    `rows` and their detail; new content hashes; what was cut. `groups`: how many groups of rows were decided about."""

    texts: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    cuts: list[dict[str, Any]] = field(default_factory=list)
    edited: set[str] = field(default_factory=set)
    notes: Counter[str] = field(default_factory=Counter)
    facts: dict[str, Any] = field(default_factory=dict)
    groups: int = 0
    decisions: bytes = b""

    @property
    def kept(self) -> list[str]:
        return list(self.texts)

    @property
    def dropped_for(self) -> dict[str, str]:
        return {row: of for row, (_, of, *_) in self.rows.items()}


def run_stage(stage: Any, rows: pa.RecordBatch | Sequence[str], *, cut: int = 1000, workers: int = 2) -> Outcome:
    """The outcome of a stage over a batch, or over texts whose row numbers are their ids, `cut` rows a shard."""
    batch = rows if isinstance(rows, pa.RecordBatch) else documents(rows)
    names = batch.schema.names
    stage = stage.for_kind("document" if "text" in names else "conversation" if "messages" in names else "preference")
    stage.open()
    shards = [batch.slice(begin, cut) for begin in range(0, max(batch.num_rows, 1), cut)]
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        stage, outcome.facts = compare(stage, shards, Path(folder), workers)
        outcome.decisions = stage.decisions.read_bytes()
        outcome.groups = len(stage.compared.decisions) if getattr(stage, "compared", None) else 0
        for shard in shards:
            _take(outcome, shard, stage.decide(shard))
    return outcome


def compare(stage: ShuffleStage, shards: Sequence[pa.RecordBatch], folder: Path, workers: int) -> tuple[Any, dict]:
    """(the stage with its decisions about some shards, the facts); their sketches are `folder`'s 00000.arrow, ..."""
    files = [write(stage.sketch(shard), folder / f"{i:05d}.arrow") for i, shard in enumerate(shards)]
    compared = stage.compare([sketch_file(file) for file in files], ThreadUnits(folder, workers))
    facts = compared.reduce(files, folder / "decisions.arrow", workers=workers)
    return compared.bind(folder / "decisions.arrow"), facts


def _take(outcome: Outcome, shard: pa.RecordBatch, decision: Any) -> None:
    ids = shard.column("id").to_pylist()
    plain = shard.column("text") if "text" in shard.schema.names else pa.nulls(shard.num_rows)
    texts, details = decision.columns.get("text", plain).to_pylist(), decision.detail.to_pylist()
    why = (c.to_pylist() for c in (decision.reasons, *decision.drop_columns.values()))
    for name, text, detail, *found in zip(ids, texts, details, *why, strict=True):
        if found[0] is None:
            outcome.texts[name] = text
        else:
            outcome.rows[name], outcome.details[name] = tuple(found), detail
    if decision.edited is not None:
        outcome.edited |= set(shard.column("id").filter(decision.edited).to_pylist())
    if "content_hash" in decision.columns:
        outcome.hashes |= dict(zip(ids, decision.columns["content_hash"].to_pylist(), strict=True))
    for table in decision.side_tables.values():
        outcome.cuts += table.to_pylist()
    outcome.notes.update(decision.notes)


def deduplicate(rows: pa.RecordBatch | Sequence[str], *, cut: int = 1000, workers: int = 2, **config: Any) -> Outcome:
    """The outcome of dedup: `rows` has (reason, duplicate_of, similarity)."""
    return run_stage(Dedup(DedupConfig(**config)), rows, cut=cut, workers=workers)


def write(batch: pa.RecordBatch, path: Path) -> Path:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return path


def documents(texts: Sequence[str], ids: Sequence[str] = (), **columns: Any) -> pa.RecordBatch:
    """Rows with their number as id, if they have no other."""
    return _rows(len(texts), columns | {"text": pa.array(texts, pa.string())}, ids)


def _rows(count: int, columns: dict[str, Any], ids: Sequence[str] = ()) -> pa.RecordBatch:
    names = pa.array(ids or map(str, range(count)), pa.string())
    return pa.record_batch({"row_key": pa.array(range(count), pa.uint64()), "id": names} | columns)


def talk(*turns: str, system: str = "") -> Messages:
    """Turns of a user and an assistant, in turn, after a system prompt if there is one."""
    made: Messages = [{"role": "system", "content": system}] if system else []
    return made + [(user, says)[n % 2](text) for n, text in enumerate(turns)]


def pair(prompt: str, chosen: str, rejected: str) -> tuple[Messages, Messages, Messages]:
    """The sides of a preference pair."""
    return [user(prompt)], [says(chosen)], [says(rejected)]


def conversations(*rows: Messages, ids: Sequence[str] = (), **columns: Any) -> pa.RecordBatch:
    """The same of conversations."""
    return _rows(len(rows), {"messages": pa.array(rows, MESSAGES)} | columns, ids)


def preferences(rows: Sequence[Sequence[Messages]]) -> pa.RecordBatch:
    """Pairs of prompt, chosen, rejected."""
    names = ("prompt", "chosen", "rejected")
    return _rows(len(rows), {name: pa.array([row[n] for row in rows], MESSAGES) for n, name in enumerate(names)})


def restored(kept: str, cuts: Sequence[dict[str, Any]]) -> str:
    """The text as it was before pieces were cut out of it."""
    data = kept.encode()
    for piece in sorted(cuts, key=lambda c: c["start"]):
        data = data[: piece["start"]] + piece["text"].encode() + data[piece["start"] :]
    return data.decode()
