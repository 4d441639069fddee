"""Runs ingest: work units cut from the raw files are parsed, clashing ids are told apart, rows get their shards."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.config import resolved
from datakit.errors import InputError
from datakit.manifest import Count, Ledger, Shard
from datakit.read.files import open_binary
from datakit.read.planning import Plan, Unit, plan, read_unit, units
from datakit.read.stage import IngestConfig
from datakit.engine.store import Recent
from datakit.engine.runner import Job, Run, way
from datakit.engine.lineage import RawHashes
from datakit.engine.store import Result
from datakit.stage import with_column
from datakit.text.normal_form import hash_values
from datakit.engine.store import Split, read_shard, take_over

FEW_BYTES = 256 << 20
HASHES_AT_ONCE = 1 << 22
PACKED = 5
"""Bytes of text in a byte of a compressed file, roughly."""

NOTES = {
    "id_clashes": "rows whose id was taken got a suffix (#2, #3, ...)",
    "repeated_keys": "records name a field twice: the last value counts, the earlier ones are in `extra`",
}


def ingest(run: Run, inputs: Sequence[str], config: IngestConfig) -> Path:
    """Read raw files into rows; returns the manifest.

    Raises:
        InputError: no input, an unreadable file, or with `strict` the first record that would be quarantined.
        LayoutError: files whose fields fit no layout, or files of different kinds.
    """
    planned = plan(inputs, config)
    for line in planned.summary:
        run.progress.line(line)
    before = _marks(planned)
    job = _job(run, planned, config)
    if job.current():
        return job.manifest
    with job.work() as work:
        staged = work.folder / "staged"
        parsed = work.phase(
            "parse",
            partial(parse_unit, planned, staged, run.strict, run.recent),
            ((u.index, u) for u in units(planned)),
            title="ingest",
            processes=_needs_processes(planned),
        )
        if _marks(planned) != before:
            changed = [name for name, mark in _marks(planned).items() if mark != before[name]]
            raise InputError(f"{changed[0]}: it changed while it was read; run the same command again")
        renames = _clashes(staged, parsed)
        notes = sum((Counter(r["notes"]) for r in parsed), Counter({"id_clashes": sum(map(len, renames.values()))}))
        for name, count in sorted(notes.items()):
            if count:
                run.progress.line(f"ingest: {count} {NOTES[name]}")
        finished = work.phase(
            "place",
            partial(place_unit, staged, job.data, run.recent),
            ((i, (r["shards"], renames.get(i, {}))) for i, r in enumerate(parsed)),
            title="ingest: place",
            units=len(parsed),
        )
        rows = Count()
        for result in parsed:
            rows = rows.plus(Count.from_json(result["count"]))
        if rows.quarantined:
            run.progress.line(f"ingest: {rows.quarantined} records could not be read: see {job.data}/quarantine")
        shards = [Shard(**s) for r in finished for s in r["shards"]]
        facts = {"layouts": {f.name: c.layout for f, c in zip(planned.files, planned.layouts, strict=True)}}
        ledger = Ledger(rows, None, {name: count for name, count in sorted(notes.items()) if count})
        return job.close(work, ledger=ledger, shards=shards, facts=facts)


def _job(run: Run, planned: Plan, config: IngestConfig) -> Job:
    hashes, target = RawHashes(), run.place.manifest("ingest").parent
    parents, lay = [], {}
    for file in planned.files:
        found = hashes.of(Path(file.path)) if file.is_local else _remote_hash(file.path)
        parents.append({"raw": file.name, "bytes": file.bytes, "sha256": found})
        lay[file.name] = way(target, file.path) if file.is_local else file.path
    hashes.save()
    return Job(
        run=run,
        stage="ingest",
        kind=planned.kind,
        config=resolved(config),
        parents=tuple(parents),
        lay={"raw": lay},
    )


def _marks(planned: Plan) -> dict[str, list[int]]:
    return {f.path: RawHashes.mark(Path(f.path)) for f in planned.files if f.is_local}


def _needs_processes(planned: Plan) -> bool:
    """Whether parsing is so much work that processes, which share no interpreter lock, are worth their start."""
    size = sum(f.bytes * (PACKED if f.compression else 1) for f in planned.files)
    return size > FEW_BYTES


def _remote_hash(url: str) -> str:
    total = hashlib.sha256()
    with open_binary(url) as opened:
        while block := opened.read(8 << 20):
            total.update(block)
    return total.hexdigest()


def parse_unit(planned: Plan, staged: Path, strict: bool, recent: Recent, index: int, unit: Unit) -> Result:
    """Parse one unit into staged shards; beside them the 64-bit hashes of its ids.

    Raises:
        InputError: with `strict`, at the first record that cannot be read.
    """
    count, size, hashes, notes = Count(), 0, list[npt.NDArray[np.uint64]](), Counter[str]()
    with Split(staged, index, recent) as out:
        for batch in read_unit(unit, planned):
            if strict and batch.quarantined.num_rows:
                raise InputError(_complaint(batch.quarantined.slice(0, 1).to_pylist()[0]))
            out.write("kept", batch.rows)
            out.write("quarantine", batch.quarantined)
            hashes.append(hash_values(batch.rows.column("id")))
            rows, bad = batch.rows.num_rows, batch.quarantined.num_rows
            count = count.plus(Count(into=rows + bad, kept=rows, quarantined=bad))
            size += batch.rows.nbytes
            notes.update(batch.notes)
        shards = out.close()
    ids = staged / f"ids-{index:05d}.npy"
    np.save(ids, np.concatenate([np.empty(0, np.uint64), *hashes]))
    files = [(s.path, s.bytes) for s in shards] + [(ids.name, ids.stat().st_size)]
    return {
        "shards": [asdict(s) for s in shards],
        "files": [[f".work/staged/{path}", size] for path, size in files],
        "rows": count.into,
        "bytes": size,
        "count": count.to_json(),
        "notes": dict(notes),
    }


def _complaint(row: dict[str, Any]) -> str:
    where = f"{row['file']}, line {row['line']}, byte {row['byte_offset']}"
    found = bytes(row["raw"])[:80]
    return f"{where}: {row['reason']}: {row['detail']} (found {found!r}). Without --strict the row is quarantined."


def _clashes(staged: Path, parsed: Sequence[Result]) -> dict[int, dict[int, str]]:
    """New ids for all rows but the first of each id, by unit and row_key: `id#2`, `id#3`, ... whatever is free."""
    files = [staged / f"ids-{i:05d}.npy" for i in range(len(parsed))]
    repeated = _repeated(files, sum(r["rows"] for r in parsed))
    if len(repeated) == 0:
        return {}
    # Whether a new id is free is asked of all hashes at once: only runs with clashes hold them in memory.
    taken, made = np.sort(np.concatenate([np.load(file) for file in files])), set[int]()
    seen, renames = dict[str, int](), dict[int, dict[int, str]]()
    for unit, file in enumerate(files):
        for key, name in _rows_at(staged, unit, np.flatnonzero(np.isin(np.load(file), repeated))):
            if name not in seen:
                seen[name] = 1
                continue
            renames.setdefault(unit, {})[key] = _free(name, seen, taken, made)
    return renames


def _repeated(files: Sequence[Path], rows: int) -> npt.NDArray[np.uint64]:
    """The hashes that stand more than once, found by ranges of hashes, so that a few are in memory at one time."""
    ranges, found = rows // HASHES_AT_ONCE + 1, [np.empty(0, np.uint64)]
    for number in range(ranges):
        low, high = (np.uint64(min((n << 64) // ranges, (1 << 64) - 1)) for n in (number, number + 1))
        some = [h[(h >= low) & ((h < high) | (number == ranges - 1))] for h in map(np.load, files)]
        values = np.sort(np.concatenate(some)) if some else found[0]
        found.append(np.unique(values[1:][values[1:] == values[:-1]]))
    return np.concatenate(found)


def _rows_at(staged: Path, unit: int, rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, str]]:
    if len(rows):
        path = staged / "kept" / f"part-{unit:05d}.parquet"
        table = pa.Table.from_batches(list(read_shard(path, ["row_key", "id"]))).take(rows)
        yield from zip(table["row_key"].to_pylist(), table["id"].to_pylist(), strict=True)


def _free(name: str, seen: dict[str, int], taken: npt.NDArray[np.uint64], made: set[int]) -> str:
    """The next `id#n` that no row has: its hash is neither in `taken` (sorted) nor in `made`, which it joins."""
    while True:
        seen[name] += 1
        new = f"{name}#{seen[name]}"
        mark = hash_values(pa.array([new]))[0]
        at = int(np.searchsorted(taken, mark))
        if int(mark) not in made and (at == len(taken) or taken[at] != mark):
            made.add(int(mark))
            return new


def place_unit(
    staged: Path, data: Path, recent: Recent, index: int, payload: tuple[list[dict[str, Any]], dict[int, str]]
) -> Result:
    """Give a unit's staged shards their place: as they are, or written again with new ids."""
    shards, renames = payload
    made = []
    for shard in shards:
        if renames and shard["path"].startswith("kept/"):
            made.append(_renamed(staged, data, recent, index, shard["path"], renames))
            continue
        take_over(staged / shard["path"], data / shard["path"])
        recent.rename(staged / shard["path"], data / shard["path"])
        made.append(shard)
    return {"shards": made, "files": [[s["path"], s["bytes"]] for s in made]}


def _renamed(
    staged: Path, data: Path, recent: Recent, index: int, path: str, renames: dict[int, str]
) -> dict[str, Any]:
    with Split(data, index, recent) as out:
        for batch in recent.read(staged / path):
            keys, ids = batch.column("row_key").to_pylist(), batch.column("id").to_pylist()
            new = pa.array([renames.get(k, i) for k, i in zip(keys, ids, strict=True)], pa.string())
            out.write("kept", with_column(batch, "id", new))
        (shard,) = out.close()
    return asdict(shard)
