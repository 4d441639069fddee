"""Units of earlier runs, taken again where their input, their stage and the decisions about their rows are the same.

So when a dataset gains, loses or changes one file of many, the rows of that file are read, decided and written, and no
others. Beside the shards of a result lies `.units/`: `units.json` with the records of its units by key, `sketches/`
with what the rows were compared by, and `staged/` with shards of ingest from before ids were made unique. All of it can
be removed at any time; units are then done again. What is taken is compared with its checksum first, and linked.

The key of a unit says all that shapes its result: the stage (config, models, code, kind of rows), the SHA-256 of its
input, and what the comparison of all rows decided about its rows. The place of a file among the others is not in it.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from datakit.config import digest, resolved, sha256_file
from datakit.data import KEY, ContentHash, row_key
from datakit.engine.store import Result, corrupted, link_or_copy, read_sealed, write_sealed
from datakit.manifest import COMPARED_WITH, Shard
from datakit.stage import Stage

FOLDER = ".units"
_RECORDS = f"{FOLDER}/units.json"
_KEPT = 2
"""Results of a stage that keep their units: the newest."""
_FREE_SHARE = 0.1
"""Sketches and staged shards are kept where they take at most this share of the free disk space."""

Records = dict[str, dict[str, Any]]
"""By phase ("read", "sketch", "split"): the records of units by key."""


@dataclass(frozen=True, slots=True)
class EarlierUnits:
    """Where a run finds units of earlier runs. Small and picklable: the records are read where they are needed."""

    base: str = ""
    """What the keys of all units of the stage have in common."""
    folders: tuple[Path, ...] = ()
    """Data folders of earlier results, the newest first."""

    @classmethod
    def of(cls, stage: Stage, kind: str, resources: dict[str, Any], code: str, data: Path | None) -> "EarlierUnits":
        """The units that a stage may take; `data` is the folder of its result, None where nothing is kept beside it."""
        if data is None:
            return cls()
        own = {name: value for name, value in resources.items() if name not in COMPARED_WITH}
        base = digest([stage.name, kind, resolved(stage.config), own, code, stage.prepared(), pa.__version__])
        return cls(base, tuple(folder for folder in _with_units(data.parent) if folder != data))

    def key(self, phase: str, *parts: Any) -> str:
        """The key of a unit from what it is made of, as JSON."""
        return digest([self.base, phase, *parts])

    def find(self, phase: str, key: str) -> tuple[Path, Any] | None:
        """(data folder, record) of an earlier unit with this key."""
        for folder in self.folders:
            file = folder / _RECORDS
            record = _records(file, file.stat().st_mtime_ns).get(phase, {}).get(key) if file.is_file() else None
            if record is not None:
                return folder, record
        return None

    def take_read(self, found: tuple[Path, Any], work: Path, index: int, first_file: int) -> Result | None:
        """Stage the shards of an earlier unit that read raw files; None where one of them is damaged or gone."""
        folder, record = found
        sketch = _take_sketch(folder, record["sketch"], work, index, first_file)
        shards = _take_shards(folder, record["shards"], work / "staged", index, first_file)
        if sketch is None or shards is None:
            return None
        files = [[f".work/staged/{s['path']}", s["bytes"], s["sha256"]] for s in shards] + sketch
        return {**record, "index": index, "files": files, "shards": shards, "linked": True, "first_file": first_file}

    def take_sketch(self, key: str, work: Path, index: int, first_file: int) -> Result | None:
        """Put the sketches of an earlier unit into the work folder; None where there are none, or they are damaged."""
        found = self.find("sketch", key)
        files = _take_sketch(found[0], found[1]["sketch"], work, index, first_file) if found else None
        if found is None or files is None:
            return None
        return {**found[1], "files": files, "linked": True, "first_file": first_file}

    def take_split(self, key: str, data: Path, index: int, first_file: int) -> Result | None:
        """Put the shards of an earlier unit into the data folder; None where there is none, or one is damaged."""
        found = self.find("split", key)
        shards = _take_shards(found[0], found[1]["shards"], data, index, first_file) if found else None
        if found is None or shards is None:
            return None
        files = [[s["path"], s["bytes"], s["sha256"]] for s in shards]
        return {**found[1], "files": files, "shards": shards, "linked": True, "measured": {}}


def _with_units(stage_folder: Path) -> list[Path]:
    """The data folders of a stage that have units to take, the newest first."""
    found = list(stage_folder.glob(f"*/{_RECORDS}"))
    return [p.parent.parent for p in sorted(found, key=lambda p: -p.stat().st_mtime_ns)]


@lru_cache(maxsize=4)
def _records(path: Path, _written: int) -> Records:
    found: Records | None = read_sealed(path)
    return found or {}


def decisions_hash(decided: pa.RecordBatch) -> str:
    """A hash of what was decided about the rows of a unit."""
    made = ContentHash(decided.schema)
    made.update(decided)
    return made.hexdigest()


def _take_shards(
    folder: Path, shards: Sequence[dict[str, Any]], target: Path, index: int, first_file: int
) -> list[dict[str, Any]] | None:
    """Link shards into `target` as those of unit `index`, after their checksums were compared."""
    taken = []
    for shard in shards:
        source, new = folder / shard["at"], Shard(**{k: v for k, v in shard.items() if k != "at"})
        new = replace(new, path=f"{new.role}/part-{index:05d}.parquet")
        new = new if new.first_file is None else replace(new, first_file=first_file)
        try:
            whole = source.stat().st_size == new.bytes and sha256_file(source) == new.sha256
        except OSError:
            whole = False
        if not whole:
            return None
        link_or_copy(source, target / new.path)
        taken.append(asdict(new))
    return taken


def _take_sketch(
    folder: Path, entry: dict[str, Any] | None, work: Path, index: int, first_file: int
) -> list[list[Any]] | None:
    """Put sketches into the work folder, with the row keys of the place where their file stands now."""
    if entry is None:
        return []
    if corrupted(folder, [entry["at"], entry["bytes"], entry["sha256"]]):
        return None
    source, target = folder / entry["at"], work / "sketches" / f"{index:05d}.arrow"
    target.parent.mkdir(exist_ok=True)
    if entry["first_file"] == first_file:
        link_or_copy(source, target)
        return [[f".work/sketches/{target.name}", entry["bytes"], entry["sha256"]]]
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with pa.memory_map(str(source)) as file, pa.OSFile(str(temporary), "wb") as out:
        reader = pa.ipc.open_file(file)
        with pa.ipc.new_file(out, reader.schema) as writer:
            for number in range(reader.num_record_batches):
                writer.write_batch(_moved(reader.get_batch(number), entry["first_file"], first_file))
    written = [temporary.stat().st_size, sha256_file(temporary)]
    temporary.rename(target)
    return [[f".work/sketches/{target.name}", *written]]


def _moved(batch: pa.RecordBatch, before: int, now: int) -> pa.RecordBatch:
    """Rows whose file stood at the place `before`, with the keys of the place `now`."""
    at = batch.schema.get_field_index(KEY.name)
    keys = batch.column(at).to_numpy() - np.uint64(row_key(before, 0)) + np.uint64(row_key(now, 0))
    return batch.set_column(at, batch.schema.field(at), pa.array(keys))


# Keeping units for later runs.


@dataclass(slots=True)
class MadeUnits:
    """The units of a run, by phase, in their order; what `keep` needs to know of them."""

    read: list[Result] = field(default_factory=list)
    sketched: list[Result] = field(default_factory=list)
    split: list[Result] = field(default_factory=list)

    def counts(self) -> dict[str, dict[str, int]]:
        """By phase: units that were done, and units whose files were there already and were linked."""
        phases = {"read": self.read, "sketch": self.sketched, "split": self.split}
        linked = {name: sum(bool(unit.get("linked")) for unit in units) for name, units in phases.items()}
        return {n: {"done": len(units) - linked[n], "linked": linked[n]} for n, units in phases.items() if units}

    def keep(self, data: Path) -> None:
        """Write the records of the units beside the result, and move their sketches and staged shards there.

        Nothing depends on it: a disk that is full or slow costs the next run time, and no result.
        """
        folder, work = data / FOLDER, data / ".work"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "sketches").mkdir(parents=True)
        (folder / "staged").mkdir()
        room = [shutil.disk_usage(data).free * _FREE_SHARE]

        def kept(source: Path, target: Path) -> bool:
            room[0] -= source.stat().st_size
            if room[0] < 0:
                return False
            source.rename(target)
            return True

        def sketch_of(unit: Result) -> dict[str, Any] | None:
            entry = next((e for e in unit["files"] if e[0].startswith(".work/sketches/")), None)
            if entry is None:
                return None
            at = f"{FOLDER}/sketches/{Path(entry[0]).name}"
            if not kept(data / entry[0], data / at):
                return {}
            return {"at": at, "bytes": entry[1], "sha256": entry[2], "first_file": unit["first_file"]}

        records: Records = {"read": {}, "sketch": {}, "split": {}}
        for unit in self.split:
            if unit.get("key"):
                records["split"][unit["key"]] = _record(unit) | {
                    "shards": [{"at": s["path"]} | s for s in unit["shards"]]
                }
        for unit in self.sketched:
            sketch = sketch_of(unit)
            if sketch != {}:
                records["sketch"][unit["key"]] = _record(unit) | {"sketch": sketch}
        final = {s["sha256"]: s["path"] for unit in self.split for s in unit["shards"]}
        with_rows = [unit for unit in self.read if unit["shards"]]
        for unit, placed in zip(with_rows, self.split if with_rows else (), strict=True):
            if placed["count"]["dropped"]:  # its staged shard and its sketches hold rows that were removed
                records["read"].setdefault(unit["key"], []).append(None)
                continue
            sketch, shards = sketch_of(unit), []
            for shard in unit["shards"]:
                at = final.get(shard["sha256"])
                if at is None and kept(work / "staged" / shard["path"], folder / "staged" / Path(shard["path"]).name):
                    at = f"{FOLDER}/staged/{Path(shard['path']).name}"
                shards.append({"at": at} | shard)
            whole = sketch != {} and all(shard["at"] for shard in shards)
            records["read"].setdefault(unit["key"], []).append(
                _record(unit) | {"sketch": sketch, "shards": shards} if whole else None
            )
        records["read"] = {key: units for key, units in records["read"].items() if all(units)}
        write_sealed(data / _RECORDS, records)
        for old in _with_units(data.parent)[_KEPT:]:
            shutil.rmtree(old / FOLDER, ignore_errors=True)


def _record(unit: Result) -> Result:
    """What a later run needs to know of a unit."""
    return {k: v for k, v in unit.items() if k not in ("files", "linked", "key", "measured", "index", "first_file")}
