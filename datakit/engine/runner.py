"""The runner: one stage, from its key to its manifest. Every stage goes through `run_stage`.

1. The key says whether the result is there already (`lineage`).
2. `prepare` looks at the rows once, if the stage wants that.
3. Raw files are read into staged shards (`read_unit`), or rows that are compared are sketched (`sketch_unit`).
4. Sketches are reduced to decisions.
5. Each shard is split into kept and dropped rows (`split_unit`), or linked where all its rows stay unchanged.
   A stage that needs all rows at once makes its files instead (`make_files`).
6. The ledger must balance; then the manifest is written, last.

Units of steps 3 to 5 are pure functions of (input shard, stage): they may run in any order, and an interrupted run goes
on with the units that are missing.
"""

import hashlib
import os
import platform
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit import __version__
from datakit.config import resolved, sha256_file
from datakit.data import first_rows, read_rows, read_shard, with_row_keys
from datakit.engine.alarms import loss_alarms, refuse_empty, result_alarms, stop_if_strict
from datakit.engine.executors import Progress, UnitExecutor
from datakit.engine.lineage import (
    FileHashes,
    changed_shards,
    code_hash,
    current,
    differences,
    earlier_tables,
    key_of,
    module_hashes,
    parent_entry,
    relative_path,
)
from datakit.engine.reuse import EarlierUnits, MadeUnits, decisions_hash
from datakit.engine.store import (
    OutputLayout,
    Result,
    ShardCache,
    UnitWriter,
    Work,
    check_intact,
    entry,
    finish_file,
    link_or_copy,
)
from datakit.errors import IntegrityError, ManifestError, UsageError
from datakit.manifest import (
    AGAINST,
    Count,
    Ledger,
    Manifest,
    Shard,
    ancestors,
    data_dir,
    load,
    make_folder,
    renew_run_file,
    save,
    tables,
    write_whole,
)
from datakit.stage import CompareUnits, Losses, Parent, RawFile, RawGroup, SketchFile, Stage, split

CACHE_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Run:
    """What all stages of one command share."""

    layout: OutputLayout
    executor: UnitExecutor
    progress: Progress
    strict: bool = False
    """End with an `AlarmError` after the first result with alarms or quarantined records."""
    allow_empty: bool = False
    """Let a result without rows replace one that holds rows, where the stage guards them."""
    verbose: bool = False
    """Print all details of what stages are about to do."""
    cache: ShardCache = field(default_factory=lambda: ShardCache(CACHE_BYTES))
    """What one stage wrote, for the next one to read."""


def run_stage(run: Run, stage: Stage, parents: Sequence[Parent] = (), against: Sequence[Parent] = ()) -> Path:
    """Run a stage on the kept rows of its first parent, or on its raw files; returns the stage's manifest.

    The result depends on all `parents` (a tokenizer's, too). Rows are compared with those of `against`.

    Raises:
        DatakitError: bad input or a missing model. Finished units are kept for the next run.
        AlarmError: with `strict`, after the manifest is written, for a result with alarms or quarantined records.
    """
    kind = parents[0].manifest.kind if parents else ""
    stage = stage.for_kind(kind)
    for line in (*stage.describe(), *(stage.details() if run.verbose else ())):
        run.progress.line(line)
    job = _begin(run, stage, kind, parents, against)
    if _up_to_date(job):
        return job.manifest
    stage.open()
    try:
        with _work(job) as work:
            work.needs += [file for parent in parents for file in travelling_files(parent)]
            run_units = make_files if stage.work_unit == "all" else _map_rows
            return _close(job, work, run_units(job, work, parents))
    except IntegrityError:
        hashes = FileHashes()
        for parent in (*parents, *against):  # the next run looks at all of them, and makes what is damaged again
            hashes.forget(data_dir(parent.path, parent.manifest))
        hashes.save()
        raise


def travelling_files(parent: Parent) -> list[tuple[Path, list[Any]]]:
    """The files of a result that are no tables and that later stages read (a tokenizer), as `Work.needs` has them."""
    folder = data_dir(parent.path, parent.manifest)
    plain = [s for s in parent.manifest.of_role("kept") if s.content_sha256 is None and parent.manifest.stage != "pack"]
    return [(folder, [s.path, s.bytes, s.sha256]) for s in plain]


def why_stale(run: Run, stage: Stage, parents: Sequence[Parent] = (), against: Sequence[Parent] = ()) -> str:
    """Why a run of a stage would not end with the result that is there; empty if it would. Nothing is run."""
    kind = parents[0].manifest.kind if parents else ""
    stage = stage.for_kind(kind)
    job = _begin(run, stage, kind, parents, against)
    if current(job.manifest, job.key) is not None:
        return ""
    return differences(job.manifest, job.parents, resolved(stage.config), job.resources, job.code)


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run of one stage: its inputs, its key, and where the result goes."""

    run: Run
    stage: Stage
    kind: str
    """The kind of the input rows; empty for raw files."""
    parents: tuple[dict[str, Any], ...]
    """As the manifest names them."""
    locations: dict[str, dict[str, str]]
    """Where the parents are, for the run file: {"parents": {version: path}, "raw": {name: path or URL}}."""
    paths: tuple[Path, ...]
    """The parents' manifests."""
    resources: dict[str, Any]
    code: str
    key: str
    started: float = field(default_factory=time.time)

    @property
    def manifest(self) -> Path:
        """Where the manifest goes."""
        return self.run.layout.manifest(self.stage.name)

    @property
    def data(self) -> Path:
        """Where the shards go."""
        return self.run.layout.data(self.stage.name, self.key)

    @property
    def grows(self) -> bool:
        """Whether later runs may take units of this one, and this one those of earlier runs: in a local project."""
        return self.run.layout.output is None and storage.url_of(self.data) is None

    def earlier(self, stage: Stage) -> EarlierUnits:
        """The units of earlier runs that serve again; `stage` is prepared."""
        return EarlierUnits.of(stage, self.kind, self.resources, self.code, self.data if self.grows else None)


@dataclass(slots=True)
class _Result:
    """What the units of a run came to."""

    rows: Count
    shards: list[Shard]
    tokens: Count | None = None
    notes: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    """Of the values of the rows that went in, in memory."""
    units: MadeUnits = field(default_factory=MadeUnits)


# From a stage to its key, and from its result to the manifest.


def _begin(run: Run, stage: Stage, kind: str, parents: Sequence[Parent], against: Sequence[Parent]) -> Job:
    folder = run.layout.manifest(stage.name).parent
    for parent in (*parents, *against):
        if run.layout.output and data_dir(parent.path, parent.manifest).resolve() == folder.resolve():
            raise UsageError(f"--output {run.layout.output}: is the folder of the input; name another")
    raw, raw_locations = _raw_entries(stage.sources(), folder)
    entries = [*map(parent_entry, parents), *(parent_entry(p, AGAINST) for p in against)]
    locations = {"parents": {p.manifest.version: relative_path(folder, p.path) for p in (*parents, *against)}}
    resources, named, code = stage.resources(), (*entries, *raw), code_hash(stage)
    return Job(
        run=run,
        stage=stage,
        kind=kind,
        parents=named,
        locations=locations | ({"raw": raw_locations} if raw else {}),
        paths=tuple(p.path for p in parents),
        resources=resources,
        code=code,
        key=key_of(stage.name, kind, named, resolved(stage.config), resources, code),
    )


def _raw_entries(files: Sequence[RawFile], folder: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """How a manifest names raw files, and where they are."""
    hashes, entries, locations = FileHashes(), [], {}
    remote = hashes.of_urls([f.path for f in files if not f.sha256 and not f.is_local], _remote_hash)
    for file in files:
        if file.name in locations:
            raise UsageError(f"two input files have the name {file.name!r}; rename one")
        if file.sha256:
            found = file.sha256
        else:
            found = hashes.of(Path(file.path)) if file.is_local else remote[file.path]
            locations[file.name] = relative_path(folder, file.path) if file.is_local else file.path
        entries.append({"raw": file.name, "bytes": file.bytes, "sha256": found})
    hashes.save()
    return entries, locations


def _remote_hash(url: str) -> str:
    from datakit.read.files import open_binary

    total = hashlib.sha256()
    with open_binary(url) as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def _up_to_date(job: Job) -> bool:
    """Whether the result of an earlier run with the same key is there and intact."""
    manifest = current(job.manifest, job.key)
    if manifest is None and job.manifest.is_file():
        for line in _damage(job):
            job.run.progress.line(line)
    if manifest is not None:
        Work.sweep(job.data)
        renewed = renew_run_file(job.manifest, manifest, job.locations)
        where = "; where its inputs are is written down again" if renewed else ""
        job.run.progress.line(f"{job.stage.name}: up to date ({manifest.version}){where}")
        stop_if_strict(job.run.strict, job.manifest, manifest)
    return manifest is not None


def _damage(job: Job) -> Iterator[str]:
    """Why a result with the same key must be made again."""
    try:
        manifest = load(job.manifest)
    except IntegrityError as e:
        yield f"{job.stage.name}: {e} It is made again"
        return
    except ManifestError:
        return
    changed = changed_shards(job.manifest, manifest) if manifest.key == job.key else []
    for file in changed[:5]:
        yield f"{job.stage.name}: {file} is missing or was changed after it was written: it is made again"
    if len(changed) > 5:
        yield f"{job.stage.name}: and {len(changed) - 5} more files"


def _work(job: Job) -> Work:
    def finished() -> bool:
        storage.refresh(job.manifest)
        return current(job.manifest, job.key) is not None

    return Work(job.data, job.key, job.run.executor, job.run.progress, finished)


def _close(job: Job, work: Work, result: _Result) -> Path:
    """Write the manifest; the stage is complete when this returns."""
    stage, notes = job.stage, Counter(result.notes)
    notes.update(duplicate_of_dropped(job.paths, job.data, result.shards))
    notes.update(stage.ledger())
    ledger = Ledger(result.rows, result.tokens, {name: count for name, count in sorted(notes.items()) if count})
    assert not list(ledger.problems()), list(ledger.problems())
    facts = result.facts | stage.facts()
    for alarm in facts.get("alarms", []) if not stage.compares_rows or stage.work_unit == "raw" else []:  # else printed
        job.run.progress.line(f"ALARM {stage.name}: {alarm}")
    for name, count in ledger.notes.items():
        if name in stage.note_lines:
            job.run.progress.line(f"{stage.name}: {count} {stage.note_lines[name]}")
    if alarms := list(result_alarms(stage, ledger, facts.get("alarms", []))):
        facts["alarms"] = [*facts.get("alarms", []), *alarms]
        for alarm in alarms:
            job.run.progress.line(f"ALARM {stage.name}: {alarm}")
    refuse_empty(job.manifest, job.run.allow_empty, stage, ledger)
    if ledger.rows.dropped:
        reasons = ", ".join(
            f"{name} {n:,}" for name, n in sorted(ledger.rows.dropped.items(), key=lambda item: -item[1])
        )
        job.run.progress.line(
            f"{stage.name}: {ledger.rows.kept:,} of {ledger.rows.into:,} rows stay; dropped: {reasons}"
        )
    if ledger.rows.quarantined:
        job.run.progress.line(
            f"{stage.name}: {ledger.rows.quarantined} records could not be read: see {job.data}/quarantine"
        )
    if result.measured and (line := stage.summary(result.measured)):
        job.run.progress.line(f"{stage.name}: {line}")
    manifest = Manifest(
        dataset=job.run.layout.dataset,
        kind=stage.output_kind(job.kind),
        stage=stage.name,
        key=job.key,
        parents=job.parents,
        config=resolved(stage.config),
        code=job.code,
        ledger=ledger,
        shards=(*result.shards, *_attach(job.data, stage.files())),
        facts=facts | ({"resources": job.resources} if job.resources else {}),
    )
    run = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(job.started)),
        "seconds": round(time.time() - job.started, 2),
        "bytes": result.bytes,
        "workers": job.run.executor.workers,
        "host": platform.node(),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "datakit": __version__,
        "data": relative_path(job.manifest.parent, job.data),
    }
    measured = {"measured": result.measured} if result.measured else {}
    hashes = FileHashes()
    hashes.remember(job.data, manifest.shards)
    hashes.save()
    units = {"units": counts} if (counts := result.units.counts()) else {}
    save(job.manifest, manifest, run | measured | units | job.locations)
    if job.grows:
        result.units.keep(job.data)
    work.finish()
    stop_if_strict(job.run.strict, job.manifest, manifest)
    return job.manifest


def _attach(data: Path, files: dict[str, bytes]) -> list[Shard]:
    """Write files that travel with a result (a tokenizer, say) and return their entries."""
    for path, content in files.items():
        write_whole(data / path, content)
    return [entry(data, path) for path in sorted(files)]


# Stages that decide row by row, with or without a comparison of all rows.


def _map_rows(job: Job, work: Work, parents: Sequence[Parent]) -> _Result:
    run, stage = job.run, job.stage
    facts: dict[str, Any] = {}
    saved = None
    if wants := stage.saves():
        facts["saved"] = wants = wants | {"code": module_hashes(stage)}
        if found := earlier_tables(job.manifest, job.data, job.parents[0], wants):
            run.progress.line(f"{stage.name}: uses the measurements of version {found[0].version}")
            saved = _Saved(found[1], {s.path: s for s in tables(found[0], wants["role"])}, wants["role"])
    if stage.work_unit == "raw":
        earlier = job.earlier(stage)
        folder, read = work.folder / "staged", _read_raw(job, work, earlier)
        inputs = [(unit["index"], _Input(*(Shard(**s) for s in unit["shards"]))) for unit in read if unit["shards"]]
        sketched = read
    else:
        folder, shards = _kept_rows(job, work, parents[0])
        inputs = [(index, _Input(shard)) for index, shard in enumerate(shards)]
        stage = stage.prepare(partial(_spread_rows, folder, shards, run.cache), work.folder)
        earlier = job.earlier(stage)
        sketched = _sketch(job, work, folder, shards, earlier) if stage.compares_rows else []
    if stage.compares_rows:
        stage, reduced = _reduce(job, work, stage, sketched)
        facts |= reduced
    index = _index(work, stage, sketched) if stage.saves_index else []
    results = work.phase(
        "split",
        partial(split_unit, stage, folder, job.data, saved, run.cache, earlier),
        inputs,
        title=f"{stage.name}: place" if stage.work_unit == "raw" else stage.name,
        units=len(inputs),
        processes=stage.work_unit != "raw" and stage.use_processes(),
    )
    rows = _total([Count.from_json(r["count"]) for r in results])
    if stage.work_unit == "raw":
        bad = _total([Count.from_json(unit["count"]) for unit in sketched]).quarantined
        rows = replace(rows, into=rows.into + bad, quarantined=bad)
    tokens = [Count.from_json(r["tokens"]) for r in results if r["tokens"] is not None]
    decided = sketched if stage.work_unit == "raw" else results if not stage.compares_rows else ()
    if alarms := loss_alarms(stage, [r["losses"] for r in decided]):
        facts["alarms"] = alarms
    notes = sum((Counter(r["notes"]) for r in (*results, *(sketched if stage.work_unit == "raw" else ()))), Counter())
    return _Result(
        rows=rows,
        shards=[Shard(**s) for r in results for s in r["shards"]] + index,
        tokens=_total(tokens) if tokens else None,
        notes=dict(notes),
        facts=facts,
        measured=dict(sum((Counter(r["measured"]) for r in results), Counter[str]())),
        bytes=sum(r["bytes"] for r in (sketched if stage.work_unit == "raw" else results)),
        units=MadeUnits(sketched, [], results) if stage.work_unit == "raw" else MadeUnits([], sketched, results),
    )


@dataclass(frozen=True, slots=True)
class _Input:
    """The input of one split unit: a shard of rows, and for raw files perhaps a shard of quarantined records."""

    kept: Shard
    quarantined: Shard | None = None


def _kept_rows(job: Job, work: Work, parent: Parent) -> tuple[Path, Sequence[Shard]]:
    """(a folder, the shards in it with the rows that come in): the parent's.

    Where only its first rows come in, the shards that hold them lie in the work folder, the last one cut.
    """
    folder, shards = data_dir(parent.path, parent.manifest), tables(parent.manifest, "kept")
    if not parent.limit:
        return folder, shards
    before = np.cumsum([0, *(shard.rows for shard in shards)]).tolist()
    wanted = [(shard, parent.limit - at) for shard, at in zip(shards, before, strict=False) if at < parent.limit]
    unit, title = partial(_first_rows_unit, folder, work.folder), f"{job.stage.name}: limit"
    made = work.phase("first", unit, enumerate(wanted), title=title, units=len(wanted))
    work.needs += [(work.data, file) for result in made for file in result["files"]]
    return work.folder / "first", [Shard(**s) for result in made for s in result["shards"]]


def _first_rows_unit(folder: Path, work: Path, index: int, wanted: tuple[Shard, int]) -> Result:
    """Put a shard into the work folder, or so many of its first rows."""
    shard, limit = wanted
    if shard.rows <= limit:
        link_or_copy(_here(folder, shard), work / "first" / shard.path)
    else:
        with UnitWriter(work / "first", index, None, shard.first_file or 0) as out:
            for batch in first_rows(read_rows(folder, shard), limit):
                out.write("kept", batch)
            (shard,) = out.close()
    files = [[f".work/first/{shard.path}", shard.bytes, shard.sha256]]
    return {"files": files, "shards": [asdict(shard)], "rows": shard.rows, "bytes": shard.bytes}


def _total(counts: Sequence[Count]) -> Count:
    total = Count()
    for count in counts:
        total = total.plus(count)
    return total


def _all_rows(folder: Path, shards: Sequence[Shard], cache: ShardCache) -> Iterator[pa.RecordBatch]:
    for shard in shards:
        yield from cache.read(folder, shard)


def _spread_rows(folder: Path, shards: Sequence[Shard], cache: ShardCache, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows of shards that are spread evenly over all and take about so many bytes on the disk."""
    step = max(1, round(sum(s.bytes for s in shards) / max_bytes))
    return _all_rows(folder, shards[step // 2 :: step], cache)


def _read_raw(job: Job, work: Work, earlier: EarlierUnits) -> list[Result]:
    """Read the raw files into staged shards, with a sketch of each unit's rows where rows are compared."""
    run, stage = job.run, job.stage
    return work.phase(
        "read",
        partial(read_unit, stage, work.folder, run.cache, earlier),
        enumerate(_raw_parts(job, earlier)),
        title=stage.name,
        processes=stage.use_processes(),
    )


@dataclass(frozen=True, slots=True)
class _RawPart:
    """The input of one read unit: a part of a group of raw files, or the same part as an earlier run read it."""

    group: RawGroup
    key: str
    """Of the group's units; empty where its files are not known by name."""
    number: int
    unit: Any = None
    found: tuple[Path, Any] | None = None


def _raw_parts(job: Job, earlier: EarlierUnits) -> Iterator[_RawPart]:
    """The parts of all groups of raw files, in order. Files that an earlier run read are not opened."""
    hashes = {parent["raw"]: parent["sha256"] for parent in job.parents if "raw" in parent}
    for group in job.stage.raw_groups():
        key = (
            earlier.key("read", [[name, hashes.get(name, "")] for name in group.files], group.reading)
            if group.files
            else ""
        )
        folder, known = (key and earlier.find("read", key)) or (None, [])
        if folder is None:
            for number, unit in enumerate(job.stage.raw_units(group)):
                yield _RawPart(group, key, number, unit)
        else:
            for number, record in enumerate(known):
                yield _RawPart(group, key, number, found=(folder, record))


def read_unit(
    stage: Stage, folder: Path, cache: ShardCache, earlier: EarlierUnits, index: int, part: _RawPart
) -> Result:
    """Read one part of the raw files into staged shards, and sketch its rows; or take both from an earlier run."""
    first_file = part.group.first_file
    if part.found and (taken := earlier.take_read(part.found, folder, index, first_file)):
        return taken | {"key": part.key}
    unit = next(islice(stage.raw_units(part.group), part.number, None)) if part.found else part.unit
    count, size, notes, losses = Count(), 0, Counter[str](), Losses("records")
    with UnitWriter(folder / "staged", index, cache, first_file) as out, _SketchWriter(folder, index) as sketches:
        for batch in stage.read(unit):
            out.write("kept", batch.rows)
            out.write("quarantine", batch.quarantined)
            if stage.compares_rows:
                sketches.write(stage.sketch(batch.rows))
            rows, bad = batch.rows.num_rows, batch.quarantined.num_rows
            count = count.plus(Count(into=rows + bad, kept=rows, quarantined=bad))
            size += batch.rows.nbytes
            notes.update(batch.notes)
            losses.add(batch.rows.column("source"), np.ones(rows), np.zeros(rows))
            losses.add(batch.quarantined.column("file"), np.ones(bad), np.ones(bad))
        shards = out.close()
        files = [[f".work/staged/{s.path}", s.bytes, s.sha256] for s in shards] + sketches.close()
    return {
        "index": index,
        "key": part.key,
        "first_file": first_file,
        "files": files,
        "shards": [asdict(s) for s in shards],
        "rows": count.into,
        "bytes": size,
        "count": count.to_json(),
        "notes": dict(notes),
        "losses": losses.to_json(),
    }


class _SketchWriter:
    """Writes the sketches of one unit into an Arrow IPC file; none for no sketches."""

    def __init__(self, folder: Path, index: int) -> None:
        self._target = folder / "sketches" / f"{index:05d}.arrow"
        self._temporary = self._target.with_name(f".{index:05d}.{os.getpid()}.tmp")
        self._writer: Any = None
        self._file: Any = None

    def write(self, sketch: pa.RecordBatch) -> None:
        """Append a batch."""
        if self._writer is None:
            self._target.parent.mkdir(exist_ok=True)
            self._file = pa.OSFile(str(self._temporary), "wb")
            self._writer = pa.ipc.new_file(self._file, sketch.schema)
        self._writer.write_batch(sketch)

    def close(self) -> list[list[Any]]:
        """Finish the file; returns its entry for the unit's record: [path, bytes, SHA-256]."""
        if self._writer is None:
            return []
        self._writer.close()
        self._file.close()
        written = [self._temporary.stat().st_size, sha256_file(self._temporary)]
        self._temporary.rename(self._target)  # not flushed: the checksum tells whether it reached the disk
        return [[f".work/sketches/{self._target.name}", *written]]

    def __enter__(self) -> "_SketchWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._file is not None:
            self._file.close()


def _sketch(job: Job, work: Work, folder: Path, shards: Sequence[Shard], earlier: EarlierUnits) -> list[Result]:
    run, stage = job.run, job.stage
    paths = [folder / shard.path for shard in shards]  # of an object store, some may not be on this machine
    if all(path.is_file() for path in paths) and (line := stage.forecast(paths)):
        run.progress.line(f"{stage.name}: {line}")
    return work.phase(
        "sketch",
        partial(sketch_unit, stage, folder, work.folder, run.cache, earlier),
        enumerate(shards),
        title=f"{stage.name}: sketch",
        units=len(shards),
        processes=stage.use_processes(),
    )


def sketch_unit(
    stage: Stage, folder: Path, work: Path, cache: ShardCache, earlier: EarlierUnits, index: int, shard: Shard
) -> Result:
    """Sketch the rows of one shard into an Arrow IPC file, or take the sketches of an earlier run."""
    key, first_file = earlier.key("sketch", shard.sha256), shard.first_file or 0
    if taken := earlier.take_sketch(key, work, index, first_file):
        return taken | {"key": key}
    stage.open()
    rows = size = 0
    with _SketchWriter(work, index) as sketches:
        for batch in cache.read(folder, shard):
            sketches.write(stage.sketch(batch))
            rows, size = rows + batch.num_rows, size + batch.nbytes
        return {"key": key, "first_file": first_file, "rows": rows, "bytes": size, "files": sketches.close()}


class _RecordedUnits(CompareUnits):
    """The units of a comparison as phases of a run: recorded, and handed to its executor."""

    def __init__(self, job: Job, work: Work) -> None:
        executor = job.run.executor
        super().__init__(work.data, executor.workers)
        self.share, self._work, self._stage = executor.share, work, job.stage.name

    def do(
        self, name: str, work: Callable[[int, Any], Result], payloads: Sequence[Any], *, here: bool = False
    ) -> list[Result]:
        """The records of `work(number, payload)`, in order."""
        title, tasks = f"{self._stage}: {name}", enumerate(payloads)
        return self._work.phase(name, work, tasks, title=title, units=len(payloads), here=here)


def _reduce(job: Job, work: Work, stage: Stage, sketched: Sequence[Result]) -> tuple[Stage, dict[str, Any]]:
    """(the stage with its decisions, facts about them)."""
    run, out = job.run, work.folder / "decisions.arrow"
    entries = [(unit, file) for unit in sketched for file in unit["files"] if file[0].startswith(".work/sketches/")]
    paths = [work.data / file[0] for _, file in entries]
    compared = stage
    if not work.is_done("reduce", 0):
        files = [SketchFile(work.data / path, unit["rows"], *about) for unit, (path, *about) in entries]
        compared = stage.compare(files, _RecordedUnits(job, work))

    def reduce(_: int, __: Any) -> Result:
        if compared is stage:
            with ThreadPoolExecutor(run.executor.workers) as pool:
                list(pool.map(partial(check_intact, work.data), [file for _, file in entries]))
        facts = compared.reduce(paths, out, workers=run.executor.workers)
        return {"facts": facts, "files": [[f".work/{out.name}", out.stat().st_size, sha256_file(out)]]}

    (result,) = work.phase("reduce", reduce, [(0, None)], title=f"{stage.name}: reduce", units=1, here=True)
    check_intact(work.data, *result["files"])
    storage.remove(work.folder / "compared")
    work.needs += [(work.data, file) for file in result["files"]]
    alarms = result["facts"].get("alarms", [])
    for alarm in alarms:
        run.progress.line(f"ALARM {stage.name}: {alarm}")
    return stage.bind(out), result["facts"]


def _index(work: Work, stage: Stage, sketched: Sequence[Result]) -> list[Shard]:
    """Write what later runs need to detect duplicates of the kept rows."""
    results = work.phase(
        "index",
        partial(index_unit, stage, work.data),
        enumerate(unit["files"][0] for unit in sketched),
        title=f"{stage.name}: index",
        units=len(sketched),
    )
    return [Shard(**result["shard"]) for result in results]


def index_unit(stage: Stage, data: Path, index: int, sketches: Sequence[Any]) -> Result:
    """Write the index of the kept rows of one shard, from the file of their sketches."""
    check_intact(data, sketches)
    path, rows = f"index/part-{index:05d}.arrow", 0
    make_folder(data / "index")
    temporary = data / "index" / f".{index:05d}.{os.getpid()}.tmp"
    with pa.memory_map(str(data / sketches[0])) as source, pa.OSFile(str(temporary), "wb") as file:
        reader = pa.ipc.open_file(source)
        batches = (stage.index(reader.get_batch(i)) for i in range(reader.num_record_batches))
        first = next(batches)
        with pa.ipc.new_file(file, first.schema) as writer:
            for batch in (first, *batches):
                writer.write_batch(batch)
                rows += batch.num_rows
    shard = finish_file(temporary, data / path, path, rows, None)
    return {"shard": asdict(shard), "rows": rows, "bytes": shard.bytes, "files": [[path, shard.bytes, shard.sha256]]}


def split_unit(
    stage: Stage,
    folder: Path,
    data: Path,
    saved: "_Saved | None",
    cache: ShardCache,
    earlier: EarlierUnits,
    index: int,
    unit: _Input,
) -> Result:
    """Decide about the rows of one shard and write kept rows, dropped rows and side tables.

    Rows that all stay as they are, or about which an earlier run decided the same, are linked.
    """
    parts, comparable = [unit.kept.sha256, unit.quarantined and unit.quarantined.sha256], True
    if stage.compares_rows:
        keys = _row_keys(folder, unit.kept)
        if stage.unchanged(keys):
            return _link_all(stage, folder, data, cache, index, unit)
        decided = stage.decided_about(keys)
        comparable = decided is not None
        parts += [decisions_hash(decided)] if decided is not None else []
    key = earlier.key("split", *parts) if comparable else ""
    if key and (taken := earlier.take_split(key, data, index, unit.kept.first_file or 0)):
        return taken | {"key": key}
    stage.open()
    linked = [_link(folder, data, cache, unit.quarantined)] if unit.quarantined else []
    sidecar = saved.reader(index, unit.kept.first_file) if saved else None
    count, tokens, size, notes, losses = Count(), None, 0, Counter[str](), Losses("rows")
    with UnitWriter(data, index, cache, unit.kept.first_file or 0) as out:
        for batch in cache.read(folder, unit.kept):
            known = sidecar.take(batch.num_rows) if sidecar else None
            decision = stage.decide(batch) if known is None else stage.decide_again(batch, known)
            kept, dropped = split(batch, decision, stage.name)
            columns = stage.kept_columns(kept.schema.names)
            out.write("kept", kept.select(columns))
            out.write("dropped", dropped)
            for role, table in decision.side_tables.items():
                out.write(role, table)
            count = count.plus(_count(batch, kept, dropped, decision.edited))
            notes.update(decision.notes)
            losses.add(
                batch.column("source"),
                np.ones(batch.num_rows),
                decision.reasons.is_valid().to_numpy(zero_copy_only=False),
            )
            size += batch.nbytes
            if "input_ids" in columns:
                made, lost = tokens_in(kept), tokens_in(dropped)
                reasons = {"row_dropped": lost} if lost else {}
                tokens = (tokens or Count()).plus(Count(into=made + lost, kept=made, dropped=reasons))
        shards = out.close()
    return _split_result([*shards, *linked], count, tokens, notes, size, stage.measured(), losses) | {"key": key}


def _split_result(
    shards: Sequence[Shard],
    count: Count,
    tokens: Count | None,
    notes: dict[str, int],
    size: int,
    measured: dict[str, int],
    losses: Losses,
) -> Result:
    return {
        "files": [[s.path, s.bytes, s.sha256] for s in shards],
        "shards": [asdict(s) for s in shards],
        "rows": count.into,
        "bytes": size,
        "count": count.to_json(),
        "tokens": None if tokens is None else tokens.to_json(),
        "notes": dict(notes),
        "measured": measured,
        "losses": losses.to_json(),
    }


def _row_keys(folder: Path, shard: Shard) -> Any:
    """uint64 (rows,): the keys of the rows of a shard."""
    return np.concatenate([b.column("row_key").to_numpy() for b in read_rows(folder, shard, ["row_key"])])


def _link_all(stage: Stage, folder: Path, data: Path, cache: ShardCache, index: int, unit: _Input) -> Result:
    """Keep all rows of a shard as they are: link its file, which was compared with its checksum for the keys."""
    file, shard = _here(folder, unit.kept), replace(unit.kept, path=f"kept/part-{index:05d}.parquet")
    linked = [_link(folder, data, cache, unit.quarantined)] if unit.quarantined else []
    link_or_copy(file, data / shard.path)
    cache.rename(file, data / shard.path)
    count = Count(into=shard.rows, kept=shard.rows)
    return _split_result([shard, *linked], count, None, {}, shard.bytes, {}, Losses("rows")) | {"linked": True}


def _link(folder: Path, data: Path, cache: ShardCache, shard: Shard) -> Shard:
    link_or_copy(_here(folder, shard), data / shard.path)
    cache.rename(folder / shard.path, data / shard.path)
    return shard


def _here(folder: Path, shard: Shard) -> Path:
    return storage.bring(folder / shard.path, shard.bytes, shard.sha256)


@dataclass(frozen=True, slots=True)
class _Saved:
    """The tables that an earlier run of a stage saved."""

    folder: Path
    shards: dict[str, Shard]
    """By path."""
    role: str

    def reader(self, index: int, first_file: int | None) -> "SidecarReader | None":
        """The rows saved beside shard number `index`; None where they are damaged, since they can be measured again."""
        shard = self.shards.get(f"{self.role}/part-{index:05d}.parquet")
        try:
            return SidecarReader(read_shard(self.folder, shard), first_file) if shard else None
        except IntegrityError:
            return None


class SidecarReader:
    """The saved rows beside one shard, in the order of the rows they were made from."""

    def __init__(self, batches: Iterator[pa.RecordBatch], first_file: int | None) -> None:
        self._batches = (with_row_keys(batch, first_file) for batch in batches)
        self._rest: pa.Table | None = None

    def take(self, rows: int) -> pa.RecordBatch | None:
        """The next rows; None for none of them."""
        while rows and (self._rest is None or self._rest.num_rows < rows):
            batch = pa.Table.from_batches([next(self._batches)])
            self._rest = batch if self._rest is None else pa.concat_tables([self._rest, batch])
        if not rows or self._rest is None:
            return None
        taken, self._rest = self._rest.slice(0, rows), self._rest.slice(rows)
        (made,) = taken.combine_chunks().to_batches()
        return made


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


# Stages that need all rows at once.


def make_files(job: Job, work: Work, parents: Sequence[Parent]) -> _Result:
    """Run a stage with `work_unit = "all"`: one unit, which writes files beside the data folder and then moves them."""
    run, stage = job.run, job.stage

    sources = [_kept_rows(job, work, parent) for parent in parents[:1]]

    def rows() -> Iterator[pa.RecordBatch]:
        for folder, shards in sources:
            yield from _all_rows(folder, shards, run.cache)

    def make(_: int, __: Any) -> Result:
        folder = work.folder / "made"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        made = stage.make(rows(), folder, parents)
        shards = []
        for path in made.files:
            make_folder((job.data / path).parent)
            shards.append(finish_file(folder / path, job.data / path, path, 0, None))
        with UnitWriter(job.data, 0) as out:
            for batch in made.dropped:
                out.write("dropped", batch)
            shards += out.close()
        return {
            "files": [[s.path, s.bytes, s.sha256] for s in shards],
            "shards": [asdict(s) for s in shards],
            "rows": made.rows.into,
            "bytes": sum(s.bytes for s in shards),
            "count": made.rows.to_json(),
            "tokens": None if made.tokens is None else made.tokens.to_json(),
            "facts": made.facts,
        }

    (result,) = work.phase("make", make, [(0, None)], title=stage.name, units=1, here=True)
    return _Result(
        rows=Count.from_json(result["count"]),
        shards=[Shard(**s) for s in result["shards"]],
        tokens=None if result["tokens"] is None else Count.from_json(result["tokens"]),
        facts=result["facts"],
        bytes=result["bytes"],
    )


# Survivors that were dropped later.


def duplicate_of_dropped(parents: Sequence[Path], data: Path, made: Sequence[Shard]) -> dict[str, int]:
    """Count what dedup removed earlier because of rows that are dropped now.

    `duplicate_of_dropped` counts rows, `cut_for_dropped` pieces that were cut out of texts.
    """
    dropped = [s for s in made if s.role == "dropped" and s.path.endswith(".parquet")]
    ids = [batch.column("id") for shard in dropped for batch in read_rows(data, shard, ["id"])]
    if not ids:
        return {}
    gone, counts = pa.chunked_array(ids), {"duplicate_of_dropped": 0, "cut_for_dropped": 0}
    for path, manifest in {m.version: (p, m) for parent in parents for p, m in ancestors(parent)}.values():
        for shard in tables(manifest, "dropped") if manifest.stage.startswith("dedup") else ():
            for batch in read_rows(data_dir(path, manifest), shard, _survivor_columns(manifest)):
                counts["duplicate_of_dropped"] += pc.sum(pc.is_in(_survivors_here(batch), gone)).as_py() or 0
        for shard in tables(manifest, "cuts"):
            for batch in read_rows(data_dir(path, manifest), shard, _survivor_columns(manifest)):
                counts["cut_for_dropped"] += pc.sum(pc.is_in(_survivors_here(batch), gone)).as_py() or 0
    return {name: count for name, count in counts.items() if count}


def _survivor_columns(manifest: Manifest) -> list[str]:
    """The columns that name the survivor of a dropped row or a cut piece, and its dataset where there are several."""
    elsewhere = any(p.get("use") == AGAINST for p in manifest.parents)
    return ["duplicate_of", "duplicate_in"] if elsewhere else ["duplicate_of"]


def _survivors_here(batch: pa.RecordBatch) -> pa.Array:
    """The survivors of dropped rows or cut pieces; null for survivors in another dataset, which has ids of its own."""
    if "duplicate_in" not in batch.schema.names:
        return batch.column("duplicate_of")
    return pc.if_else(pc.is_null(batch.column("duplicate_in")), batch.column("duplicate_of"), None)
