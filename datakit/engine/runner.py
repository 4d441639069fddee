"""The runner: one stage, from its key to its manifest. Every stage goes through `run_stage`.

1. The key says whether the result is there already (`lineage`).
2. `prepare` looks at the rows once, if the stage wants that.
3. Raw files are read into staged shards (`UnitWork.read`), or rows that are compared are sketched (`UnitWork.sketch`).
4. Sketches are reduced to decisions.
5. Each shard is split into kept and dropped rows (`UnitWork.split`), or linked where all its rows stay unchanged.
   A stage that needs all rows at once makes its files instead (`_make`).
6. The ledger must balance; then the manifest is written, last.

Units of steps 3 to 5 are pure functions of (input shard, stage): they may run in any order, and an interrupted run goes
on with the units that are missing.
"""

import hashlib
import platform
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import datakit.engine.lineage as lineage
import datakit.engine.store as store
import datakit.storage as storage
from datakit import __version__
from datakit.config import digest, resolved, sha256_file
from datakit.data import read_rows
from datakit.engine.executors import Progress, Result, UnitExecutor, Work, working
from datakit.engine.lineage import changed_shards, file_hashes
from datakit.engine.store import SKETCHES, EarlierUnits, OutputLayout, RawPart, ShardRows, UnitWork
from datakit.errors import AlarmError, DatakitError, IntegrityError, ManifestError, UsageError
from datakit.manifest import (
    AGAINST,
    COMPARED_WITH,
    Ledger,
    Manifest,
    Shard,
    ancestors,
    check_file,
    data_dir,
    load,
    renew_run_file,
    save,
    tables,
)
from datakit.stage import Losses, Parent, RawFile, SketchFile, Stage


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


def run_stage(run: Run, stage: Stage, parents: Sequence[Parent] = ()) -> Parent:
    """Run a stage on the kept rows of its first parent, or on its raw files; returns the stage's result.

    The result depends on all `parents` (a tokenizer's, too; and those that rows are compared with).

    Raises:
        DatakitError: bad input or a missing model. Finished units are kept for the next run.
        AlarmError: with `strict`, after the manifest is written, for a result with alarms or quarantined records.
    """
    job = Job(run, stage, parents)
    for line in job.stage.describe():
        run.progress.line(line)
    manifest, why = _intact(job)
    for line in why:
        run.progress.line(f"{stage.name} runs again: {line}")
    if manifest is not None:
        Work.sweep(job.data)
        moved = renew_run_file(job.manifest, manifest, job.locations)
        renewed = "; where its inputs are is written down again" if moved else ""
        run.progress.line(f"{stage.name}: up to date ({manifest.version}){renewed}")
    else:
        job.stage.open()
        try:
            with working(job.data, job.key, run.executor, run.progress, lambda: _finished(job), stage.name) as work:
                manifest = _close(job, _make(job, work) if job.stage.work_unit == "all" else _map(job, work))
                work.finish()
        except IntegrityError:
            for parent in parents:  # the next run looks at all of them, and makes what is damaged again
                lineage.forget(data_dir(parent.path, parent.manifest))
            raise
    if run.strict:
        _stop_if_alarmed(job.manifest, manifest)
    return Parent(job.manifest, manifest)


def why_stale(run: Run, stage: Stage, parents: Sequence[Parent] = ()) -> str:
    """Why a run of a stage would not end with the result that is there; empty if it would. Nothing is run."""
    found, why = _intact(Job(run, stage, parents))
    return "; ".join(why) or ("" if found else "has not run")


# From a stage to its key.


class Job:
    """One run of one stage: its inputs, its key, and where the result goes."""

    def __init__(self, run: Run, stage: Stage, parents: Sequence[Parent]) -> None:
        self.run, self.parents, self.started = run, parents, time.time()
        self.kind = parents[0].manifest.kind if parents else ""
        """The kind of the input rows; empty for raw files."""
        self.stage = stage.for_kind(self.kind)
        self.manifest = run.layout.manifest(stage.name)
        folder = self.manifest.parent
        for parent in parents:
            if run.layout.output and data_dir(parent.path, parent.manifest).resolve() == folder.resolve():
                raise UsageError(f"--output {run.layout.output}: is the folder of the input; name another")
        self.groups = self.stage.raw_groups() if stage.work_unit == "raw" else ()
        raw, raw_locations = _raw_entries([file for group in self.groups for file in group.files], folder)
        made_from = [
            {"manifest": p.manifest.stage, "version": p.manifest.version, "sha256": sha256_file(p.path)}
            | ({"use": p.use} if p.use else {})
            for p in parents
        ]
        self.entries = (*made_from, *raw)
        """The parents and raw files as the manifest names them."""
        near = {p.manifest.version: storage.relative_path(folder, p.path) for p in parents}
        self.locations = {"parents": near} | ({"raw": raw_locations} if raw else {})
        """Where they are, for the run file: by version, and by name."""
        self.config, self.resources = resolved(self.stage.config), self.stage.resources()
        self.code = lineage.code_hash(self.stage)
        self.key = digest([stage.name, self.kind, self.entries, self.config, self.resources, self.code])
        """What decides "up to date": two runs with one key give the same bytes."""
        self.data = run.layout.data(stage.name, self.key)
        self.is_local = storage.url_of(self.data) is None
        self.grows = run.layout.output is None and self.is_local
        """Whether later runs may take units of this one, and this one those of earlier runs: in a local project."""


def _raw_entries(files: Sequence[RawFile], folder: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """How a manifest names raw files, and where they are."""
    entries, locations = list[dict[str, Any]](), dict[str, str]()
    remote = [f.path for f in files if not f.sha256 and not f.is_local]
    hashes = lineage.url_hashes(remote, _remote_hash) if remote else {}
    on_disk = file_hashes({Path(f.path): "" for f in files if not f.sha256 and f.is_local})
    for file in files:
        if file.name in locations:
            raise UsageError(f"two input files have the name {file.name!r}; rename one")
        # rows from memory have no place
        near = storage.relative_path(folder, file.path) if file.is_local and file.path else file.path
        locations[file.name] = near
        found = file.sha256 or (on_disk[Path(file.path)] if file.is_local else hashes[file.path])
        entries.append({"raw": file.name, "bytes": file.bytes, "sha256": found})
    return entries, locations


def _remote_hash(url: str) -> str:
    from datakit.read.streams import open_binary

    total = hashlib.sha256()
    with open_binary(url) as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def _finished(job: Job) -> bool:
    """Whether another run has completed the result meanwhile."""
    return storage.refresh(job.manifest).is_file() and _intact(job)[0] is not None


def _intact(job: Job) -> tuple[Manifest | None, list[str]]:
    """(the result of an earlier run with the same key, if it is there and intact; else why it is not, if it ran)."""
    try:
        manifest = load(job.manifest)
    except ManifestError as e:
        return None, [str(e)] if isinstance(e, IntegrityError) else []
    if manifest.key != job.key:
        changes = lineage.what_changed(manifest, job.entries, job.config, job.resources, job.code)
        return None, ["; ".join(changes) or "what it was made from is not what it would be made from now"]
    changed = changed_shards(job.manifest, manifest)
    more = f", and {len(changed) - 5} more files" if len(changed) > 5 else ""
    why = [f"{file} is missing or was changed after it was written{more}" for file in changed[:5]]
    return None if changed else manifest, why


# Stages that decide row by row, with or without a comparison of all rows.


def _map(job: Job, work: Work) -> Result:
    """Read or sketch, compare, split: one result from the units of all phases."""
    stage, name = job.stage, job.stage.name
    facts, raw = dict[str, Any](), stage.work_unit == "raw"
    source = work.folder / "staged" if raw else data_dir(job.parents[0].path, job.parents[0].manifest)
    pieces = [] if raw else [(i, ShardRows(s)) for i, s in enumerate(tables(job.parents[0].manifest, "kept"))]
    if not raw:
        stage = stage.prepare(batch for _, piece in pieces for batch in read_rows(source, piece.shard))
    own = {model: found for model, found in job.resources.items() if model not in COMPARED_WITH}
    shaped_by = [name, job.kind, job.config, own, job.code, pa.__version__]
    folders = [f for f in store.with_units(job.data.parent) if f != job.data] if job.grows else []
    earlier = EarlierUnits(digest(shaped_by), folders)
    units, first = UnitWork(stage, source, job.data, earlier), list[Result]()
    processes = stage.holds_gil
    if raw:
        first = work.units("read", units.read, enumerate(_raw_parts(job, earlier)), title=name, processes=processes)
        staged = ((unit["index"], [Shard(**s) for s in unit["shards"]]) for unit in first if unit["shards"])
        pieces = [(index, ShardRows(kept, *bad)) for index, (kept, *bad) in staged]
    elif stage.compares_rows:
        first = work.units("sketch", units.sketch, pieces, processes=processes)
    if stage.compares_rows:
        stage, reduced = _reduce(job, work, stage, first)
        facts, units = facts | reduced, replace(units, stage=stage)
    index = []
    if stage.saves_index:
        files = [(unit["index"], unit["files"][0]) for unit in first]
        index = work.units("index", units.index, files)
    title = f"{name}: place" if raw else name
    results = work.units("split", units.split, pieces, title=title, processes=not raw and processes)
    counts = store.counted(results)
    looked_at = store.counted(first) if raw else counts
    if raw:  # what was read is what came in
        bad = looked_at.get("rows", {}).get("quarantined", 0)
        store.added(counts, {"notes": looked_at.get("notes", {}), "rows": {"in": bad, "quarantined": bad}})
        counts["bytes"] = looked_at.get("bytes", 0)
    if raw or not stage.compares_rows:
        losses = looked_at.get("whole", {}), looked_at.get("lost", {})
        facts |= {"alarms": alarms} if (alarms := _loss_alarms(stage, *map(Counter, losses))) else {}
    shards = [shard for unit in (*results, *index) for shard in unit["shards"]]
    done = {"read" if raw else "sketch": first, "split": results}
    return {"shards": shards, "counts": counts, "facts": facts, "units": done}


def _raw_parts(job: Job, earlier: EarlierUnits) -> Iterator[RawPart]:
    """The parts of all groups of raw files, in order. Files that an earlier run read are not opened."""
    hashes = {parent["raw"]: parent["sha256"] for parent in job.entries if "raw" in parent}
    for group in job.groups:
        named = [[file.name, hashes[file.name]] for file in group.files]
        key = earlier.key("read", named, group.reading) if named else ""
        if found := earlier.find("read", key):
            yield from (RawPart(group, number, key) for number in range(len(found[1])))
        else:
            yield from (RawPart(group, number, key, unit) for number, unit in enumerate(job.stage.raw_units(group)))


# The comparison of all rows.


def _reduce(job: Job, work: Work, stage: Stage, sketched: Sequence[Result]) -> tuple[Stage, dict[str, Any]]:
    """(the stage with its decisions, facts about them)."""
    run, out = job.run, work.folder / "decisions.arrow"
    entries = [(unit, file) for unit in sketched for file in unit["files"] if file[0].startswith(SKETCHES)]
    compared = stage
    if work.record("reduce", 0) is None:
        files = [SketchFile(work.data / path, unit["rows"], *about) for unit, (path, *about) in entries]
        compared = stage.compare(files, work)

    def reduce(_: int, __: Any) -> Result:
        if compared is stage:
            with ThreadPoolExecutor(run.executor.workers) as pool:
                list(pool.map(lambda entry: check_file(work.data, *entry[1]), entries))
        paths = [work.data / file[0] for _, file in entries]
        facts = compared.reduce(paths, out, workers=run.executor.workers)
        return {"facts": facts, "files": [[f".work/{out.name}", out.stat().st_size, sha256_file(out)]]}

    (result,) = work.units("reduce", reduce, [(0, None)], here=True)
    check_file(work.data, *result["files"][0])
    storage.remove(work.folder / "compared")
    work.needs += [(work.data, file) for file in result["files"]]
    return stage.bind(out), result["facts"]


# Stages that need all rows at once.


def _make(job: Job, work: Work) -> Result:
    """Run a stage with `work_unit = "all"`: a unit for each part of the rows; what takes all rows at once runs here."""
    rows = job.parents[0].rows() if job.parents else iter(())
    stage = job.stage.prepare(rows)
    parts = stage.parts(job.parents, work)
    made = partial(store.make, job.data, tuple(job.parents))
    here = len(parts) == 1
    units = work.units("make", made, [*enumerate(parts)], title=stage.name, processes=stage.holds_gil, here=here)
    facts = parts[0][0].joined([unit["facts"] for unit in units])
    shards = [shard for unit in units for shard in unit["shards"]]
    return {"shards": shards, "counts": store.counted(units), "facts": facts, "units": {}}


# From a result to the manifest.


def _close(job: Job, made: Result) -> Manifest:
    """Write the manifest; the stage is complete when this returns."""
    stage, run, counts = job.stage, job.run, made["counts"]
    shards = list[dict[str, Any]](made["shards"])
    notes = store.added(counts.get("notes", {}), _duplicate_of_dropped(job, shards))
    rows, tokens = {"in": 0} | counts.get("rows", {}), counts.get("tokens")
    ledger = Ledger.from_json({"rows": rows, "tokens": tokens, "notes": notes})
    assert not list(ledger.problems()), list(ledger.problems())
    extras = stage.extras(ledger)
    notes = {name: n for name, n in sorted(store.added(notes, extras.notes).items()) if n}
    ledger, facts = replace(ledger, notes=notes), made["facts"] | extras.facts
    known = [alarm for found in (made["facts"], extras.facts) for alarm in found.get("alarms", [])]
    if alarms := [*known, *_result_alarms(stage, ledger, known)]:
        facts["alarms"] = alarms
    _refuse_empty(job.manifest, run.allow_empty, stage, ledger)
    for line in _lines(stage, ledger, alarms, job.data):
        run.progress.line(line)
    for path, content in extras.files.items():
        storage.write_whole(job.data / path, content)
    manifest = Manifest(
        dataset=run.layout.dataset,
        kind=stage.output_kind or job.kind,
        stage=stage.name,
        key=job.key,
        parents=job.entries,
        config=job.config,
        code=job.code,
        ledger=ledger,
        shards=tuple(Shard(**about) for about in (*shards, *store.entries(job.data, sorted(extras.files)))),
        facts=facts | ({"resources": job.resources} if job.resources else {}),
    )
    if job.is_local:
        file_hashes({job.data / shard.path: shard.sha256 for shard in manifest.shards})
    about = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(job.started)),
        "seconds": round(time.time() - job.started, 2),
        "bytes": counts.get("bytes", 0),
        "workers": run.executor.workers,
        "host": platform.node(),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "datakit": __version__,
        "data": storage.relative_path(job.manifest.parent, job.data),
    }
    linked = {name: sum(unit["linked"] for unit in units) for name, units in made["units"].items() if units}
    units = {name: {"done": len(made["units"][name]) - n, "linked": n} for name, n in linked.items()}
    about |= {"units": units} if units else {}
    save(job.manifest, manifest, about | job.locations)
    if job.grows and made["units"]:
        store.keep_units(job.data, made["units"])
    return manifest


def _lines(stage: Stage, ledger: Ledger, alarms: Sequence[str], data: Path) -> Iterator[str]:
    """What is printed of a result."""
    rows = ledger.rows
    yield from (f"ALARM {stage.name}: {alarm}" for alarm in alarms)
    for name, count in ledger.notes.items():
        if name in stage.note_lines:
            yield f"{stage.name}: {count} {stage.note_lines[name]}"
    if rows.dropped:
        reasons = ", ".join(f"{name} {n:,}" for name, n in sorted(rows.dropped.items(), key=lambda item: -item[1]))
        yield f"{stage.name}: {rows.kept:,} of {rows.into:,} rows stay; dropped: {reasons}"
    if rows.quarantined:
        yield f"{stage.name}: {rows.quarantined} records could not be read: see {data}/quarantine"


def _duplicate_of_dropped(job: Job, made: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Count what dedup removed earlier because of rows that are dropped now.

    `duplicate_of_dropped` counts rows, `cut_for_dropped` pieces that were cut out of texts.
    """
    dropped = [Shard(**about) for about in made if about["path"].startswith("dropped/")]
    gone, counts, survivors = list[pa.Array](), Counter[str](), _survivors(job) if dropped else iter(())
    while some := list(islice(survivors, 256)):  # together: each look-up begins with a table of all that are gone
        gone = gone or [batch.column("id") for shard in dropped for batch in read_rows(job.data, shard, ["id"])]
        for name in {name for name, _ in some}:
            found = pc.is_in(pa.chunked_array([ids for of, ids in some if of == name]), pa.chunked_array(gone))
            counts[name] += pc.sum(found).as_py() or 0
    return counts


def _survivors(job: Job) -> Iterator[tuple[str, pa.Array]]:
    """The ids of rows that earlier stages removed others for, a batch at a time, with the name of the note."""
    rows_of = [parent for parent in job.parents if not parent.use]
    for path, manifest in {m.version: (p, m) for parent in rows_of for p, m in ancestors(parent.path)}.values():
        # survivors in another dataset do not count, which has ids of its own
        elsewhere = ["duplicate_in"] if any(p.get("use") == AGAINST for p in manifest.parents) else []
        rows = [("duplicate_of_dropped", s) for s in tables(manifest, "dropped") if manifest.stage.startswith("dedup")]
        for name, shard in (*rows, *(("cut_for_dropped", s) for s in tables(manifest, "cuts"))):
            for batch in read_rows(data_dir(path, manifest), shard, ["duplicate_of", *elsewhere]):
                own = batch.filter(pc.is_null(batch.column("duplicate_in"))) if elsewhere else batch
                yield name, own.column("duplicate_of")


# Alarms: what is so unusual about a result that somebody should look at it. An alarm never changes a result. It is
# printed when its stage ends and again at the end of the command, and it is in the manifest's facts. Under `--strict`,
# alarms and quarantined records end the command with code 3 after the manifest is written, and no later stage runs.

MIN_ROWS = 20
"""Of all rows or of a source: a share of fewer rows says little."""
_CHECK = "Check with `datakit show` which reasons drop them, and some of the rows; then change settings, or max_loss"
_UNREAD = "`datakit show` on the manifest of ingest lists some of the records and what is wrong with them"


def _loss_alarms(stage: Stage, whole: Counter[str], lost: Counter[str]) -> list[str]:
    """Alarms about what a stage that decides row by row drops, or what ingest cannot read, by source. Stages that
    compare rows raise theirs in `reduce`."""
    raw = stage.work_unit == "raw"
    return Losses("records" if raw else "rows", whole, lost).alarms(
        stage.max_loss, MIN_ROWS, _UNREAD if raw else _CHECK
    )


def _result_alarms(stage: Stage, ledger: Ledger, known: Sequence[str]) -> Iterator[str]:
    """Alarms about the result as a whole; `known` are those that were raised already."""
    rows = ledger.rows
    if stage.makes_rows and rows.into and not rows.kept and not (known and rows.into >= MIN_ROWS):
        yield f"keeps none of its {rows.into:,} rows"
    elif stage.work_unit == "raw" and not rows.into:
        yield "found no rows in the input files"
    elif stage.work_unit == "all" and not known:  # others look at each source
        yield from _loss_alarms(stage, Counter({"": rows.into}), Counter({"": rows.into - rows.kept}))


def _stop_if_alarmed(path: Path, manifest: Manifest) -> None:
    """End the command after the result at `path` if it has quarantined records or alarms (`--strict`).

    Raises:
        AlarmError: there are some.
    """
    alarms = [*manifest.facts.get("alarms", [])]
    if bad := manifest.ledger.rows.quarantined:
        shard = tables(manifest, "quarantine")[0]
        row = next(batch.slice(0, 1).to_pylist()[0] for batch in read_rows(data_dir(path, manifest), shard))
        first = f"{row['file']}, line {row['line']}, byte {row['byte_offset']}: {row['reason']}: {row['detail']}"
        many = f"{bad:,} record{'s' * (bad != 1)} could not be read, the first of them"
        alarms.append(f"{many} {first} (found {bytes(row['raw'])[:80]!r})")
    if alarms:
        after = f"The result is written ({path}); without --strict the command goes on."
        raise AlarmError(f"{manifest.stage}: {'; '.join(alarms)}. {after}", path)


def _refuse_empty(target: Path, allow_empty: bool, stage: Stage, ledger: Ledger) -> None:
    """Keep a result that trainers read from being replaced by one without rows.

    Raises:
        DatakitError: it would be.
    """
    if allow_empty or not stage.guards_rows or ledger.rows.kept:
        return
    try:
        old = load(target)
    except ManifestError:
        return  # not there, or damaged: nothing can be read from it
    if old.ledger.rows.kept:
        why = (
            f"holds {old.ledger.rows.kept:,} rows (version {old.version}), and this run kept none, so it stays as it is"
        )
        raise DatakitError(f"{target}: {why}. Look at what earlier stages dropped; --allow-empty replaces it")
