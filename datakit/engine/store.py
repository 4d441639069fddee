"""Shards on the disk, what one work unit of a stage does with them, and units of earlier runs.

A shard is written to a temporary file, flushed and renamed; its entry has the SHA-256 of its bytes and of its values.
A unit reads a part of raw files, sketches a shard, writes its index, or splits it by decisions. It is a pure function
of its input and the stage; it writes its files and returns a record of them.

When a run is over, `.units/` keeps the records by key beside the result, with what rows were compared by (sketches)
and shards of ingest from before ids were made unique. The key of a unit says all that shapes its result: the stage
(config, models, code, kind of rows), the SHA-256 of its input, and what the comparison of all rows decided about its
rows; the place of a file among the others is not in it. So when a dataset gains, loses or changes one file of many, the
rows of that file are read, decided and written, and no others. `.units/` can be removed at any time.
"""

import contextlib
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import digest, digest_of, sha256_file
from datakit.data import KEY, ShardWriter, content_of, read_rows, read_shard, row_key, shifted
from datakit.engine.executors import Result
from datakit.errors import IntegrityError, UsageError
from datakit.manifest import Shard, check_file, difference, digest_of_work, is_manifest
from datakit.stage import Losses, Parent, Pieces, RawGroup, Stage, split


def added(total: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Add a tree of numbers to another one, in place."""
    for name, value in more.items():
        if isinstance(value, Mapping):
            added(total.setdefault(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value
    return total


def counted(units: Sequence[Result]) -> dict[str, Any]:
    """The sum of what units counted."""
    total = dict[str, Any]()
    for unit in units:
        added(total, unit["counts"])
    return total


def unit_result(shards: list[dict[str, Any]], files: list[list[Any]], counts: dict[str, Any], **others: Any) -> Result:
    """The result of a unit that wrote `shards` and other `files`."""
    rows, size = counts.get("rows", {}).get("in", 0), counts.get("bytes", 0)
    own = {"files": files, "shards": shards, "counts": counts, "rows": rows, "bytes": size}
    return own | {"key": "", "first_file": 0, "linked": False} | others


# The files of a unit: tables of rows in Parquet, sketches and indexes in Arrow IPC.


SKETCHES = ".work/sketches"


class UnitWriter:
    """The files of one work unit: kept rows always, other roles where there are any rows for them.

    `with UnitWriter(data, index) as out: ...; out.close(counts)`. Files lie below `base` in the data folder, sketches
    in the work folder. After an error nothing is left.
    """

    def __init__(self, data: Path, index: int, base: str = "", first_file: int = 0) -> None:
        self._data, self._index, self._base, self._first_file = data, index, base, first_file
        self._writers: dict[str, tuple[str, Path, Any]] = {}
        """By role: path relative to the data folder, the temporary file, what writes it."""
        self._rows = Counter[str]()
        self._stack = contextlib.ExitStack()

    def write(self, role: str, batch: pa.RecordBatch) -> None:
        """Append rows to the file of a role."""
        if batch.num_rows == 0 and role not in ("kept", "index", SKETCHES):
            return
        if role not in self._writers:
            name = f"{role}/part-{self._index:05d}.{'arrow' if role in ('index', SKETCHES) else 'parquet'}"
            path = name if role == SKETCHES else f"{self._base}{name}"
            file = self._data / path
            storage.make_folder(file.parent)
            # sketches are not flushed: their checksum tells whether they reached the disk
            temporary = self._stack.enter_context(storage.whole_file(file, flush=role != SKETCHES))
            table = file.suffix == ".parquet"
            make = partial(ShardWriter, first_file=self._first_file) if table else pa.ipc.new_file
            self._writers[role] = path, temporary, make(temporary, batch.schema)
        self._writers[role][2].write(batch)
        self._rows[role] += batch.num_rows

    def close(self, counts: dict[str, Any], key: str = "") -> Result:
        """Finish all files; returns the result of the unit. Paths of shards are relative to `base`; the digest of
        sketches on this machine's disk is a CRC-32."""
        shards, files = list[dict[str, Any]](), list[list[Any]]()
        for role, (path, temporary, writer) in sorted(self._writers.items()):
            content, size = writer.close(), temporary.stat().st_size  # the hash of a table's values
            if role == SKETCHES:
                sha256 = digest_of_work(temporary, self._data)
            else:
                with temporary.open("rb") as file:
                    sha256 = digest_of(file)
            files.append([path, size, sha256])
            about = {"path": path.removeprefix(self._base), "rows": self._rows[role], "bytes": size, "sha256": sha256}
            if isinstance(writer, ShardWriter) and writer.first_file is not None:
                about["first_file"] = writer.first_file
            if role != SKETCHES:
                shards.append(about | {"content_sha256": content})
        self._stack.close()
        return unit_result(shards, files, counts, key=key, first_file=self._first_file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            for *_, writer in self._writers.values():
                with contextlib.suppress(OSError, pa.ArrowException):  # a full disk: the first error is the one to tell
                    writer.close()
            self._stack.__exit__(kind, error, trace)


def entries(folder: Path, paths: Iterable[str]) -> list[dict[str, Any]]:
    """The entries of files that are no tables of rows."""
    found = [(path, (folder / path).stat().st_size, sha256_file(folder / path)) for path in paths]
    return [{"path": p, "rows": 0, "bytes": n, "sha256": sha256, "content_sha256": None} for p, n, sha256 in found]


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a finished file to `target`, or copy it where the file system has no hard links."""
    storage.make_folder(target.parent)
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
        storage.flush_folder(target.parent)
    except OSError:  # a file system without hard links
        with storage.whole_file(target) as temporary:
            shutil.copyfile(source, temporary)


def inspect(folder: Path, shard: Shard) -> Iterator[str]:
    """Yield how a shard's values differ from its entry: rows, content (for `manifest.verify`)."""
    try:
        rows, found = content_of(read_shard(folder, shard))
    except (IntegrityError, pa.ArrowException) as e:
        yield f"cannot be read: {e}"
        return
    if rows != shard.rows:
        yield f"expected {shard.rows} rows, found {rows}"
    if found != shard.content_sha256:
        yield f"expected content_sha256 {shard.content_sha256}, found {found}"


# Units of earlier runs.

UNITS = ".units"
_KEPT = 2
"""Results of a stage that keep their units: the newest."""
_FREE_SHARE = 0.1
"""Sketches and staged shards are kept where all together take at most this share of the free disk space."""

Records = dict[str, dict[str, list[Result]]]
"""By phase ("read", "sketch", "split"), by key: the records of units; those of one group of raw files have one key.
Their files lie where the records say, those in `.work` now in `.units`; they may be gone."""


@dataclass(frozen=True, slots=True)
class EarlierUnits:
    """Where a run finds units of earlier runs. Small and picklable: the records are read where they are needed."""

    base: str
    """What the keys of all units of the stage have in common."""
    folders: Sequence[Path]
    """Data folders of earlier results, the newest first."""

    def key(self, phase: str, *parts: Any) -> str:
        """The key of a unit from what it is made of, as JSON."""
        return digest([self.base, phase, *parts])

    def find(self, phase: str, key: str) -> tuple[Path, list[Result]] | None:
        """(data folder, records) of earlier units with this key."""
        for folder in self.folders if key else ():
            file = folder / UNITS / "units.json"
            found = _records(file, file.stat().st_mtime_ns).get(phase, {}).get(key) if file.is_file() else None
            if found is not None:
                return folder, found
        return None

    def take(self, phase: str, key: str, number: int, data: Path, index: int, first_file: int) -> Result | None:
        """Put the files of record `number` of a key into the data folder, as those of unit `index`.

        None where there is no such unit, or one of its files is damaged or gone.
        """
        found = self.find(phase, key)
        if found is None or number >= len(found[1]):
            return None
        folder, record, files = found[0], found[1][number], []
        for path, size, sha256 in record["files"]:
            at = path.replace(".work", UNITS, 1)
            if difference(folder / at, size, sha256):
                return None
            target = data / _numbered(path, index)
            if path.startswith(SKETCHES) and record["first_file"] != first_file:
                _move_sketches(folder / at, target, record["first_file"], first_file)
                size, sha256 = target.stat().st_size, sha256_file(target)
            else:
                link_or_copy(folder / at, target)
            files.append([_numbered(path, index), size, sha256])
        shards = [shard | {"path": _numbered(shard["path"], index)} for shard in record["shards"]]
        shards = [shard | {"first_file": first_file} if "first_file" in shard else shard for shard in shards]
        own = {"first_file": first_file, "key": key, "files": files, "shards": shards, "linked": True}
        return record | own


def with_units(stage_folder: Path) -> list[Path]:
    """The data folders of a stage that have units to take, the newest first."""
    found = list(stage_folder.glob(f"*/{UNITS}/units.json"))
    return [p.parent.parent for p in sorted(found, key=lambda p: -p.stat().st_mtime_ns)]


@lru_cache(maxsize=4)
def _records(path: Path, _written: int) -> Records:
    found: Records | None = storage.read_sealed(path)
    return found or {}


def _numbered(path: str, index: int) -> str:
    """The path of a unit's file for another unit."""
    return str(PurePosixPath(path).with_name(f"part-{index:05d}{PurePosixPath(path).suffix}"))


def _move_sketches(source: Path, target: Path, before: int, now: int) -> None:
    """Copy sketches of rows whose file stood at the place `before`, with the row keys of the place `now`."""
    storage.make_folder(target.parent)
    by = row_key(now, 0) - row_key(before, 0)
    with storage.whole_file(target, flush=False) as temporary, pa.memory_map(str(source)) as file:
        reader = pa.ipc.open_file(file)
        key = reader.schema.field(KEY.name)
        with pa.ipc.new_file(temporary, reader.schema) as writer:
            for number in range(reader.num_record_batches):
                writer.write(shifted(reader.get_batch(number), key, key, by))


def keep_units(data: Path, phases: Mapping[str, Sequence[Result]]) -> None:
    """Write the records of the units beside a result, and move their sketches and staged shards there.

    Nothing depends on it: a disk that is full or slow costs the next run time, and no result.
    """
    work, units = data / ".work", data / UNITS
    shutil.rmtree(units, ignore_errors=True)
    split = {unit["index"]: unit["counts"]["rows"].get("dropped") for unit in phases["split"]}
    for unit in phases.get("read", ()):  # what was read of rows that were removed since does not stay
        for path, *_ in unit["files"] if unit["shards"] and split[unit["index"]] else ():
            (data / path).unlink()
    files = [f.stat() for name in ("staged", "sketches") for f in (work / name).rglob("*") if f.is_file()]
    own = sum(f.st_size for f in files if f.st_nlink == 1)  # others are shards of the result
    if own <= shutil.disk_usage(data).free * _FREE_SHARE:
        units.mkdir()
        for name in ("staged", "sketches"):
            with contextlib.suppress(FileNotFoundError):
                (work / name).rename(units / name)
    records: Records = {phase: {} for phase in phases}
    for phase, unit in ((phase, unit) for phase, done in phases.items() for unit in done if unit["key"]):
        own_values = {k: v for k, v in unit.items() if k not in ("linked", "key", "index")}
        records[phase].setdefault(unit["key"], []).append(own_values)
    storage.write_sealed(units / "units.json", records)
    for old in with_units(data.parent)[_KEPT:]:
        shutil.rmtree(old / UNITS, ignore_errors=True)


# What one unit of a stage does: a pure function of its input and the stage.


@dataclass(frozen=True, slots=True)
class ShardRows:
    """The rows of one shard."""

    shard: Shard
    quarantined: Shard | None = None
    """Of raw files: the records of the same unit that could not be read."""


@dataclass(frozen=True, slots=True)
class RawPart:
    """The input of one read unit: a part of a group of raw files."""

    group: RawGroup
    number: int
    key: str
    """Of the group's units; empty where its files are not known by name."""
    unit: Any = None
    """None where an earlier run read the group: its files are opened only if that run's are damaged."""


@dataclass(frozen=True, slots=True)
class UnitWork:
    """The units of one run of a stage, in whatever process they run. Small and picklable."""

    stage: Stage
    source: Path
    """The folder of the shards that come in."""
    data: Path
    earlier: EarlierUnits

    def read(self, index: int, part: RawPart) -> Result:
        """Read one part of the raw files into staged shards, and sketch its rows; or take both from an earlier run."""
        stage, first_file, unit = self.stage, part.group.first_file, part.unit
        if unit is None:
            if taken := self.earlier.take("read", part.key, part.number, self.data, index, first_file):
                return taken
            unit = next(islice(stage.raw_units(part.group), part.number, None))
        counts, losses = dict[str, Any](), Losses("records")
        with UnitWriter(self.data, index, ".work/staged/", first_file) as out:
            for batch in stage.read(unit):
                out.write("kept", batch.rows)
                out.write("quarantine", batch.quarantined)
                if stage.compares_rows:
                    out.write(SKETCHES, stage.sketch(batch.rows))
                rows, bad = batch.rows.num_rows, batch.quarantined.num_rows
                fate = {"in": rows + bad, "kept": rows, "quarantined": bad}
                added(counts, {"bytes": batch.rows.nbytes, "rows": fate, "notes": batch.notes})
                losses.add(batch.rows.column("source"), np.ones(rows), np.zeros(rows))
                losses.add(batch.quarantined.column("file"), np.ones(bad), np.ones(bad))
            counts |= {"whole": losses.whole, "lost": losses.lost}
            return out.close(counts, part.key)

    def sketch(self, index: int, piece: ShardRows) -> Result:
        """Sketch the rows of one shard into an Arrow IPC file, or take the sketches of an earlier run."""
        key, first_file = self.earlier.key("sketch", piece.shard.sha256), piece.shard.first_file or 0
        if taken := self.earlier.take("sketch", key, 0, self.data, index, first_file):
            return taken
        self.stage.open()
        counts = dict[str, Any]()
        with UnitWriter(self.data, index, first_file=first_file) as out:
            for batch in read_rows(self.source, piece.shard):
                out.write(SKETCHES, self.stage.sketch(batch))
                added(counts, {"bytes": batch.nbytes, "rows": {"in": batch.num_rows}})
            return out.close(counts, key)

    def index(self, index: int, sketches: Sequence[Any]) -> Result:
        """Write what later runs need to detect duplicates of the kept rows of one shard, from their sketches."""
        check_file(self.data, *sketches)
        with UnitWriter(self.data, index) as out, pa.memory_map(str(self.data / sketches[0])) as source:
            reader = pa.ipc.open_file(source)
            counts: dict[str, Any] = {"bytes": sketches[1]}
            for batch in map(reader.get_batch, range(reader.num_record_batches)):
                out.write("index", self.stage.index(batch))
                added(counts, {"rows": {"in": batch.num_rows}})
            return out.close(counts)

    def split(self, index: int, piece: ShardRows) -> Result:
        """Decide about the rows of one shard and write kept rows, dropped rows and side tables.

        Rows that all stay as they are, or about which an earlier run decided the same, are linked.
        """
        stage, key, first_file = self.stage, "", piece.shard.first_file or 0
        parts = [piece.shard.sha256, piece.quarantined and piece.quarantined.sha256]
        if stage.compares_rows:
            keys = np.concatenate(
                [b.column("row_key").to_numpy() for b in read_rows(self.source, piece.shard, ["row_key"])]
            )
            if (decided := stage.decided_about(keys)) is not None:
                if len(keys) and all(column.null_count == len(keys) for column in decided.columns):
                    return self._link(index, piece)
                key = self.earlier.key("split", *parts, content_of([decided])[1])
        else:
            key = self.earlier.key("split", *parts)
        if taken := self.earlier.take("split", key, 0, self.data, index, first_file):
            return taken
        stage.open()
        counts, losses = dict[str, Any](), Losses("rows")
        with UnitWriter(self.data, index, first_file=first_file) as out:
            for batch in read_rows(self.source, piece.shard):
                decision = stage.decide(batch)
                kept, dropped = split(batch, decision, stage.name)
                out.write("kept", kept)
                out.write("dropped", dropped)
                for role, table in decision.side_tables.items():
                    out.write(role, table)
                lost = decision.reasons.is_valid().to_numpy(zero_copy_only=False)
                losses.add(batch.column("source"), np.ones(batch.num_rows), lost)
                added(counts, _fate(batch, kept, dropped, decision.edited))
                added(counts, {"bytes": batch.nbytes, "notes": decision.notes})
            counts |= {"whole": losses.whole, "lost": losses.lost}
            result = out.close(counts, key)
        return self._with_quarantine(result, piece)

    def _link(self, index: int, piece: ShardRows) -> Result:
        """Keep all rows of a shard as they are: link its file, which was compared with its checksum for the keys."""
        shard = replace(piece.shard, path=f"kept/part-{index:05d}.parquet")
        link_or_copy(self.source / piece.shard.path, self.data / shard.path)
        counts = {"bytes": shard.bytes, "rows": {"in": shard.rows, "kept": shard.rows}}
        files = [[shard.path, shard.bytes, shard.sha256]]
        return self._with_quarantine(unit_result([shard.to_json()], files, counts, linked=True), piece)

    def _with_quarantine(self, result: Result, piece: ShardRows) -> Result:
        """A result with the shard of what could not be read, which stays as it is."""
        if (shard := piece.quarantined) is not None:
            file = storage.bring(self.source / shard.path, shard.bytes, shard.sha256)
            link_or_copy(file, self.data / shard.path)
            result["files"].append([shard.path, shard.bytes, shard.sha256])
            result["shards"].append(shard.to_json())
        return result


def make(data: Path, parents: Sequence[Parent], index: int, part: tuple[Stage, Pieces | None]) -> Result:
    """Make the files of one part of the rows (`Stage.make`): in the work folder first, then moved."""
    (stage, pieces), folder = part, data / ".work" / "made" / f"{index:05d}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parents = [replace(parent, pieces=pieces) for parent in parents[:1]] + [*parents[1:]]
    made = stage.make(parents[0].rows() if parents else iter(()), folder, parents)
    for path in made.files:
        storage.make_folder((data / path).parent)
        with storage.whole_file(data / path) as temporary:
            (folder / path).rename(temporary)
    with UnitWriter(data, index) as out:
        for batch in made.dropped:
            out.write("dropped", batch)
        shards = [*entries(data, made.files), *out.close({})["shards"]]
    files, size = [[s["path"], s["bytes"], s["sha256"]] for s in shards], sum(s["bytes"] for s in shards)
    counts: dict[str, Any] = {"rows": made.rows.to_json(), "bytes": size}
    counts |= {"tokens": made.tokens.to_json()} if made.tokens else {}
    return unit_result(shards, files, counts, facts=made.facts)


def _fate(
    batch: pa.RecordBatch, kept: pa.RecordBatch, dropped: pa.RecordBatch, edited: pa.Array | None
) -> dict[str, Any]:
    """What became of the rows of a batch, and of the tokens where there are ids, those of both sides of pairs."""
    changed = 0
    if edited is not None:
        ids = batch.column("row_key").filter(edited)
        changed = pc.sum(pc.is_in(kept.column("row_key"), ids)).as_py() or 0
    reasons = Counter(dropped.column("reason").to_pylist())
    fate = {"rows": {"in": batch.num_rows, "kept": kept.num_rows, "dropped": reasons, "edited": changed}}
    ids = [name for name in ("input_ids", "rejected_ids") if name in kept.schema.names]
    if not ids:
        return fate
    made, gone = (
        sum(pc.sum(pc.list_value_length(rows.column(name))).as_py() or 0 for name in ids) for rows in (kept, dropped)
    )
    return fate | {"tokens": {"in": made + gone, "kept": made, "dropped": {"row_dropped": gone} if gone else {}}}


# Where results go.


@dataclass(frozen=True, slots=True)
class OutputLayout:
    """Where manifests and shards of a dataset go: a project's `manifests/` and `data/`, or one folder (`--output`).

    With `output`, the result of the stage `final` lies in that folder, and earlier stages in its `parents/`.
    """

    root: Path
    dataset: str
    output: Path | None = None
    final: str = ""

    def manifest(self, stage: str) -> Path:
        """The manifest file of a stage."""
        if self.output is None:
            return self.root / "manifests" / self.dataset / f"{stage}.json"
        return (self.output if stage == self.final else self.output / "parents" / stage) / "manifest.json"

    def data(self, stage: str, key: str) -> Path:
        """The data folder of a run of a stage with a key."""
        if self.output is None:
            return self.root / "data" / self.dataset / stage / key[:16]
        return self.manifest(stage).parent

    @property
    def removed(self) -> Path:
        """The list of rows that are never to come into the dataset again."""
        return self.root / "manifests" / self.dataset / "removed.jsonl"

    def check(self) -> None:
        """Refuse an output folder that holds something else.

        Raises:
            UsageError: the folder has entries and no manifest or interrupted run of ours among them.
        """
        if self.output is None or not storage.exists(self.output):
            return
        if not self.output.is_dir() and storage.url_of(self.output) is None:
            raise UsageError(f"--output {self.output}: is a file; name a folder")
        storage.pull(self.output)
        # a run on a store that was killed at once left its claims alone, also in folders below
        names = [n.split("/")[0] for n in storage.sizes(self.output) if not n.endswith(storage.CLAIM)]
        ours = (self.output, *self.output.glob("parents/*"))
        if names and not any((f / ".work/key").is_file() or is_manifest(f / "manifest.json") for f in ours):
            raise UsageError(f"--output {self.output}: holds {min(names)!r}, not datakit output; name a new folder")
