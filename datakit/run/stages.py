"""Runs a map or map -> reduce -> map stage over the shards of its parent."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import sha256_file
from datakit.errors import DatakitError, InputError
from datakit.manifest import Count, Ledger, Shard, data_dir, load, tables
from datakit.recent import Recent
from datakit.run.aside import Beside, earlier
from datakit.run.job import Run, attach, begin, duplicate_of_dropped
from datakit.run.work import Result, Work, crc32, insist
from datakit.stage import Stage, split
from datakit.write import Split, read_shard, settle, take_over


def map_stage(run: Run, stage: Any, parent: Path, extra: Sequence[Path] = (), against: Sequence[Path] = ()) -> Path:
    """Run a map or map -> reduce -> map stage on the kept rows of a parent manifest; returns the stage's manifest.

    `extra` are manifests that the result depends on too (the tokenizer's), `against` those whose rows the rows are
    compared with.

    Raises:
        DatakitError: bad input, a missing model, or with `strict` an alarm. Finished units are kept for the next run.
    """
    parents = [parent, *extra]
    source = load(parent)
    stage = getattr(stage, "for_kind", lambda _: stage)(source.kind)
    job = begin(run, stage.name, parents, stage.config, stage.resources(), against)
    if job.current():
        return job.manifest
    stage.open()
    shards, folder = tables(source, "kept"), data_dir(parent, source)
    with job.work() as work:
        facts: dict[str, Any] = {}
        sketches, saved = list[Result](), None
        if isinstance(stage, Stage):
            stage = stage.prepare(partial(_spread, run.recent, folder, shards), work.folder)
        if wants := getattr(stage, "saves", lambda: None)():
            facts["saved"] = wants
            if found := earlier(job.manifest, job.data, source.version, wants):
                run.progress.line(f"{stage.name}: deciding from what {found[0].version} measured")
                saved = found[1] / wants["role"]
        if hasattr(stage, "reduce") and type(stage).reduce is not Stage.reduce:
            stage, reduced, sketches = _reduce(run, work, stage, folder, shards)
            facts |= reduced
        index = _index(work, stage, sketches) if getattr(stage, "saves_index", False) else []
        results = work.phase(
            "split",
            partial(split_unit, stage, folder, job.data, saved, run.recent),
            enumerate(shards),
            title=stage.name,
            units=len(shards),
            processes=stage.use_processes() if isinstance(stage, Stage) else stage.holds_gil,
        )
        made = [Shard(**s) for r in results for s in r["shards"]]
        ledger = _ledger(results, duplicate_of_dropped(parents, job.data, made))
        made += index
        made += attach(job.data, getattr(stage, "files", dict)())
        facts |= getattr(stage, "facts", dict)()
        kind = getattr(stage, "output_kind", "")
        kind = kind(source.kind) if callable(kind) else kind
        return job.close(work, ledger=ledger, shards=made, facts=facts, kind=kind, about=_measured(run, stage, results))


def _spread(recent: Recent, folder: Path, shards: Sequence[Shard], max_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows of shards that are spread evenly over all and take about so many bytes on the disk."""
    step = max(1, round(sum(s.bytes for s in shards) / max_bytes))
    for shard in shards[step // 2 :: step]:
        yield from recent.read(folder / shard.path)


def _measured(run: Run, stage: Any, results: Sequence[Result]) -> dict[str, Any]:
    """How the work went, told and for the run file."""
    counts = sum((Counter(r["measured"]) for r in results if "measured" in r), Counter[str]())
    if not counts:
        return {}
    line = (stage.summary if hasattr(stage, "summary") else stage.told)(counts)
    run.progress.line(f"{stage.name}: {line}")
    return {"measured": dict(counts)}


def _reduce(
    run: Run, work: Work, stage: Any, folder: Path, shards: Sequence[Shard]
) -> tuple[Any, dict[str, Any], list[Result]]:
    """(the stage with its decisions, facts about them, what the units of the sketch phase wrote)."""
    sketches = work.folder / "sketches"
    sketches.mkdir(exist_ok=True)
    if hasattr(stage, "forecast") and (line := stage.forecast([folder / s.path for s in shards])):
        run.progress.line(f"{stage.name}: {line}")
    sketched = work.phase(
        "sketch",
        partial(sketch_unit, stage, folder, sketches, run.recent),
        enumerate(s.path for s in shards),
        title=f"{stage.name}: sketch",
        units=len(shards),
        processes=stage.holds_gil,
    )
    out = work.folder / "decisions.arrow"

    def reduce(_: int, __: Any) -> Result:
        with ThreadPoolExecutor(run.executor.workers) as pool:
            list(pool.map(partial(insist, work.data), (entry for unit in sketched for entry in unit["files"])))
        files = [sketches / f"{i:05d}.arrow" for i in range(len(shards))]
        facts = stage.reduce(files, out, workers=run.executor.workers)
        return {"facts": facts, "files": [[f".work/{out.name}", out.stat().st_size, crc32(out)]]}

    (result,) = work.phase("reduce", reduce, [(0, None)], title=f"{stage.name}: reduce", units=1)
    insist(work.data, *result["files"])
    for alarm in result["facts"].get("alarms", []):
        run.progress.line(f"ALARM {stage.name}: {alarm}")
        if run.strict:
            raise DatakitError(f"{stage.name}: {alarm}. With --strict nothing is written; change the stage's config.")
    return stage.bind(out), result["facts"], sketched


def _index(work: Work, stage: Any, sketches: Sequence[Result]) -> list[Shard]:
    """Write what a later run needs to know of the kept rows."""
    results = work.phase(
        "index",
        partial(index_unit, stage, work.data),
        enumerate(unit["files"][0] for unit in sketches),
        title=f"{stage.name}: index",
        units=len(sketches),
    )
    return [Shard(**result["shard"]) for result in results]


def index_unit(stage: Any, data: Path, index: int, sketches: Sequence[Any]) -> Result:
    """Write the index of the rows of one shard that stay, from the file of their sketches."""
    insist(data, sketches)
    path, rows = f"index/part-{index:05d}.arrow", 0
    (data / "index").mkdir(exist_ok=True)
    aside = data / "index" / f".{index:05d}.{os.getpid()}.tmp"
    with pa.memory_map(str(data / sketches[0])) as source, pa.OSFile(str(aside), "wb") as file:
        reader = pa.ipc.open_file(source)
        batches = (stage.index(reader.get_batch(i)) for i in range(reader.num_record_batches))
        first = next(batches)
        with pa.ipc.new_file(file, first.schema) as writer:
            for batch in (first, *batches):
                writer.write_batch(batch)
                rows += batch.num_rows
    shard = settle(aside, data / path, path, rows, None)
    return {"shard": asdict(shard), "rows": rows, "bytes": shard.bytes, "files": [[path, shard.bytes]]}


def sketch_unit(stage: Any, folder: Path, sketches: Path, recent: Recent, index: int, path: str) -> Result:
    """Sketch the rows of one shard into an Arrow IPC file."""
    stage.open()
    rows = size = 0
    aside = sketches / f".{index:05d}.{os.getpid()}.tmp"
    writer = None
    with pa.OSFile(str(aside), "wb") as file:
        for batch in recent.read(folder / path):
            sketch = stage.sketch(batch)
            writer = writer or pa.ipc.new_file(file, sketch.schema)
            writer.write_batch(sketch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        assert writer is not None, "read_shard yields at least one batch"
        writer.close()
    written = [aside.stat().st_size, crc32(aside)]
    aside.rename(sketches / f"{index:05d}.arrow")  # not flushed: the checksum tells whether it reached the disk
    return {"rows": rows, "bytes": size, "files": [[f".work/sketches/{index:05d}.arrow", *written]]}


def split_unit(
    stage: Any, folder: Path, data: Path, saved: Path | None, recent: Recent, index: int, source: Shard
) -> Result:
    """Decide about the rows of one shard and write its kept and dropped rows, and what the stage saves beside them.

    `saved` is the folder with what an earlier run of the stage saved.
    """
    stage.open()
    if _stays(stage, folder / source.path, source):
        return _left(folder, data, recent, index, source)
    beside = Beside(saved / f"part-{index:05d}.parquet") if saved else None
    count, tokens, size, notes = Count(), None, 0, Counter[str]()
    with Split(data, index, recent) as out:
        for batch in recent.read(folder / source.path):
            known = beside.take(batch.num_rows) if beside else None
            decision = stage.decide(batch) if known is None else stage.decide_again(batch, known)
            kept, dropped = split(batch, decision, stage.name)
            columns = getattr(stage, "kept_columns", lambda names: names)(kept.schema.names)
            out.write("kept", kept.select(columns))
            out.write("dropped", dropped)
            for role, table in decision.side_tables.items():
                out.write(role, table)
            count = count.plus(_count(batch, kept, dropped, decision.edited))
            notes.update(decision.notes)
            size += batch.nbytes
            if "input_ids" in columns:
                made, lost = tokens_in(kept), tokens_in(dropped)
                reasons = {"row_dropped": lost} if lost else {}
                tokens = (tokens or Count()).plus(Count(into=made + lost, kept=made, dropped=reasons))
        shards = out.close()
    return {
        "files": [[s.path, s.bytes] for s in shards],
        "shards": [asdict(s) for s in shards],
        "rows": count.into,
        "bytes": size,
        "count": count.to_json(),
        "tokens": None if tokens is None else tokens.to_json(),
        "notes": dict(notes),
    } | ({"measured": stage.measured()} if hasattr(stage, "measured") else {})


def _stays(stage: Any, file: Path, source: Shard) -> bool:
    """Whether no row of a shard is dropped or changed: then it need not be written again, if it is whole.

    Raises:
        InputError: it is not what its manifest says.
    """
    unchanged = getattr(stage, "leaves", None) or (stage.unchanged if getattr(stage, "compares_rows", False) else None)
    if unchanged is None:
        return False
    keys = [batch.column("row_key").to_numpy() for batch in read_shard(file, ["row_key"])]
    if not unchanged(np.concatenate(keys)):
        return False
    if sha256_file(file) != source.sha256:
        raise InputError(f"{file}: it is not as it was written; `datakit verify` tells more. Run its stage again")
    return True


def _left(folder: Path, data: Path, recent: Recent, index: int, source: Shard) -> Result:
    """The shard of rows that all stay as they are, in its new place."""
    shard = replace(source, path=f"kept/part-{index:05d}.parquet")
    take_over(folder / source.path, data / shard.path)
    recent.rename(folder / source.path, data / shard.path)
    return {
        "files": [[shard.path, shard.bytes]],
        "shards": [asdict(shard)],
        "rows": shard.rows,
        "bytes": shard.bytes,
        "count": Count(into=shard.rows, kept=shard.rows).to_json(),
        "notes": {},
    }


def _count(batch: pa.RecordBatch, kept: pa.RecordBatch, dropped: pa.RecordBatch, edited: pa.Array | None) -> Count:
    reasons = Counter(dropped.column("reason").to_pylist())
    changed = 0
    if edited is not None:
        ids = batch.column("row_key").filter(edited)
        changed = pc.sum(pc.is_in(kept.column("row_key"), ids)).as_py() or 0
    return Count(into=batch.num_rows, kept=kept.num_rows, dropped=dict(sorted(reasons.items())), edited=changed)


def tokens_in(batch: pa.RecordBatch) -> int:
    """Tokens in the rows of a batch, both sides of preference pairs; 0 where there are no ids."""
    columns = [c for c in ("input_ids", "rejected_ids") if c in batch.schema.names]
    return sum(pc.sum(pc.list_value_length(batch.column(c))).as_py() or 0 for c in columns)


def _ledger(results: Sequence[Result], notes: dict[str, int]) -> Ledger:
    rows, tokens = Count(), None
    for result in results:
        rows = rows.plus(Count.from_json(result["count"]))
        if result.get("tokens") is not None:
            tokens = (tokens or Count()).plus(Count.from_json(result["tokens"]))
    noted = sum((Counter(r.get("notes", {})) for r in results), Counter(notes))
    return Ledger(rows, tokens, {name: count for name, count in sorted(noted.items()) if count})
