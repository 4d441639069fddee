"""Shards on the disk, and the work units that write them: done once, recorded, and taken again by later runs.

A shard is written to a temporary file, flushed and renamed; its entry has the SHA-256 of its bytes and of its values.
Inside a data folder, `.work/` holds the key of the run and one JSON record for each finished unit of each phase. A
unit's record is written after its files are on the disk. It names them, and it counts only while they are intact. In a
data folder on an object store a unit's files are uploaded under their final keys, then its record.

When the run is over, `.units/` keeps the records by key beside the result, with what rows were compared by (sketches)
and shards of ingest from before ids were made unique. The key of a unit says all that shapes its result: the stage
(config, models, code, kind of rows), the SHA-256 of its input, and what the comparison of all rows decided about its
rows; the place of a file among the others is not in it. So when a dataset gains, loses or changes one file of many, the
rows of that file are read, decided and written, and no others. `.units/` can be removed at any time.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import datakit.storage as storage
from datakit.config import digest, resolved, sha256_file
from datakit.data import KEY, RECORD, ContentHash, as_stored, content_of, read_shard, row_key, stored
from datakit.engine.executors import Local, Progress, UnitExecutor
from datakit.errors import DatakitError, IntegrityError, UsageError
from datakit.manifest import COMPARED_WITH, ROLES, Count, Shard, changed, is_manifest
from datakit.stage import Stage
from datakit.storage import flush_folder, make_folder, whole_file, write_whole

ROW_GROUP_BYTES = 16 << 20
ROW_GROUP_ROWS = 1 << 16

Result = dict[str, Any]
"""What a unit reports, as JSON. `files` lists [path relative to the data folder, bytes, SHA-256] of the files that must
be intact for the unit to count as done; `shards` the entries of those that are tables; `rows` and `bytes` feed the
progress report."""


def unit_result(
    shards: Sequence[Shard], files: Sequence[Sequence[Any]], count: Count, size: int, **others: Any
) -> Result:
    """The result of a unit that counted rows and wrote `shards` and other `files`."""
    known: Result = {
        "tokens": None,
        "notes": {},
        "measured": {},
        "losses": {},
        "key": "",
        "first_file": 0,
        "linked": False,
    }
    counted = {"rows": count.into, "bytes": size, "count": count.to_json()}
    return {"files": [*files], "shards": [asdict(s) for s in shards]} | counted | known | others


# The files of a unit: tables of rows in Parquet, sketches and indexes in Arrow IPC.


class ShardWriter:
    """Writes a table. Row groups are cut by data: after the batch that reaches 16 MiB of values or 65,536 rows.

    `row_key` is stored as `record`: the rows come from the input file with the place `first_file`, or from those after
    it.
    """

    def __init__(self, file: Path, schema: pa.Schema, first_file: int = 0) -> None:
        self.rows, self.first_file = 0, first_file if KEY.name in schema.names else None
        schema = pa.schema([RECORD if f.name == KEY.name else f for f in schema])
        self._schema = pa.schema([f.with_type(stored(f.type)) for f in schema])
        self._hash = ContentHash(self._schema)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd", **_encodings(self._schema))
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._flushed = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; the batch's columns are taken by name and cast to the schema."""
        if batch.num_rows == 0:
            return
        if self.first_file is not None:
            batch = as_stored(batch, self.first_file)
        columns = [batch.column(f.name).cast(f.type) for f in self._schema]
        batch = pa.record_batch(columns, schema=self._schema)
        self._hash.update(batch)
        self.rows += batch.num_rows
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows >= ROW_GROUP_ROWS or self._hash.bytes - self._flushed >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            group = pa.Table.from_batches(self._pending)
            self._writer.write_table(group, row_group_size=max(1, self._pending_rows))
        self._pending, self._pending_rows, self._flushed = [], 0, self._hash.bytes

    def close(self) -> str | None:
        """End the file; returns the hash of the values."""
        self._flush()
        self._writer.close()
        return self._hash.hexdigest()


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Parquet options for a schema with token ids: their bytes are split by significance, which zstd packs smaller and
    three times as fast as a dictionary's indices."""
    ids = [f.name for f in schema if f.type == stored(pa.list_(pa.int32()))]
    if not ids:
        return {}
    others = [name for name in schema.names if name not in ids]
    split_bytes = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in ids}
    return {"use_dictionary": others, "write_statistics": others, "column_encoding": split_bytes}


class IpcWriter:
    """Writes batches into an Arrow IPC file, whose values have no hash."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        self.rows, self.first_file = 0, None
        self._file = pa.OSFile(str(file), "wb")
        self._writer = pa.ipc.new_file(self._file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> str | None:
        """End the file."""
        self._writer.close()
        self._file.close()
        return None


SKETCHES = ".work/sketches"


class UnitWriter:
    """The files of one work unit: kept rows always, other roles where there are any rows for them.

    `with UnitWriter(data, index) as out: ...; out.close()`. Files lie below `base` in the data folder, sketches in the
    work folder. After an error nothing is left.
    """

    def __init__(self, data: Path, index: int, base: str = "", first_file: int = 0) -> None:
        self._data, self._index, self._base, self._first_file = data, index, base, first_file
        self._writers: dict[str, tuple[Path, ShardWriter | IpcWriter]] = {}
        self._stack = contextlib.ExitStack()
        self.files: list[list[Any]] = []
        """After `close`: [path relative to the data folder, bytes, SHA-256] of each file."""

    def write(self, role: str, batch: pa.RecordBatch) -> None:
        """Append rows to the file of a role."""
        if batch.num_rows == 0 and role not in ("kept", "index", SKETCHES):
            return
        if role not in self._writers:
            file = self._data / self._path(role)
            make_folder(file.parent)
            # sketches are not flushed: their checksum tells whether they reached the disk
            temporary = self._stack.enter_context(whole_file(file, flush=role != SKETCHES))
            parquet = file.suffix == ".parquet"
            writer = (
                ShardWriter(temporary, batch.schema, self._first_file)
                if parquet
                else IpcWriter(temporary, batch.schema)
            )
            self._writers[role] = temporary, writer
        self._writers[role][1].write(batch)

    def _path(self, role: str) -> str:
        name = f"{role}/part-{self._index:05d}.{'arrow' if role in ('index', SKETCHES) else 'parquet'}"
        return name if role == SKETCHES else f"{self._base}{name}"

    def close(self) -> list[Shard]:
        """Finish all files; returns the entries of those with a role, with paths relative to `base`."""
        shards = []
        for role, (temporary, writer) in sorted(self._writers.items()):
            content, path = writer.close(), self._path(role)
            size, sha256 = temporary.stat().st_size, sha256_file(temporary)
            self.files.append([path, size, sha256])
            if role != SKETCHES:
                own = path.removeprefix(self._base)
                shards.append(Shard(own, writer.rows, size, sha256, content, writer.first_file))
        self._stack.close()
        return shards

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            for _, writer in self._writers.values():
                with contextlib.suppress(OSError, pa.ArrowException):  # a full disk: the first error is the one to tell
                    writer.close()
            self._stack.__exit__(kind, error, trace)


def entry(folder: Path, path: str) -> Shard:
    """The entry of a file that is no table of rows."""
    return Shard(path=path, rows=0, bytes=(folder / path).stat().st_size, sha256=sha256_file(folder / path))


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a finished file to `target`, or copy it where the file system has no hard links."""
    make_folder(target.parent)
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
        flush_folder(target.parent)
    except OSError:  # a file system without hard links
        with whole_file(target) as temporary:
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


# Units of one run.


class Work:
    """Exclusive use of a data folder for one run, with a record of each finished unit.

    `with Work(data, key, ...) as work: work.units(...)`. `finished` says whether another run has completed the result.
    """

    def __init__(
        self,
        data: Path,
        key: str,
        executor: UnitExecutor,
        progress: Progress,
        finished: Callable[[], bool] = lambda: False,
    ) -> None:
        self.data, self.folder = data, data / ".work"
        self._key, self._executor, self._progress, self._finished = key, executor, progress, finished
        self._stored: dict[str, int] | None = None
        self.needs: list[tuple[Path, Sequence[Any]]] = []
        """Files that the units of later phases read besides their input, as (data folder, entry in a record)."""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(storage.locked(self.data))
            self._claim = stack.enter_context(storage.Claim(self.data))
            if self._finished():
                raise UsageError(f"{self.data}: another run has just finished this result; run the same command again")
            self._stack = stack.pop_all()
        storage.pull(self.data)  # the records, and what `prepare` found
        mark = self.folder / "key"
        if not mark.is_file() or mark.read_bytes() != self._key.encode():
            # the manifest of a self-contained folder goes first: it must never name shards of another run
            there = {name.split("/")[0] for name in storage.sizes(self.data)}
            for name in ("manifest.json", *(n for n in (*ROLES, ".work") if n in there)):
                storage.remove(self.data / name)
            write_whole(mark, self._key.encode())
        if storage.url_of(self.data) is not None:
            storage.sweep_uploads(self.data)
            self._stored = storage.sizes(self.data)
        for temporary in self.data.rglob(".*.tmp"):
            temporary.unlink(missing_ok=True)  # a worker of a killed run may still rename its last one
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def units(
        self,
        name: str,
        work: Callable[[int, Any], Result],
        tasks: Iterable[tuple[int, Any]],
        *,
        title: str,
        count: int | None = None,
        processes: bool = False,
        here: bool = False,
    ) -> list[Result]:
        """Do `work(index, payload)` for each task that no earlier run finished; returns results by index.

        `here`: in this process, whatever the executor is.
        """
        results: dict[int, Result] = {}
        self._progress.start(title, count)

        def to_do() -> Iterator[tuple[int, Any]]:
            for index, payload in tasks:
                done = self.record(name, index)
                if done is None:
                    yield index, payload
                else:
                    results[index] = done
                    self._progress.advance(done.get("rows", 0), done.get("bytes", 0), again=True)

        records = self.folder / name
        records.mkdir(exist_ok=True)
        perform = partial(_perform, work, self.data, records, tuple(self.needs))
        executor = Local(1) if here else self._executor
        for index, result in executor.map(perform, to_do(), processes=processes):
            self._claim.check()
            results[index] = result
            again = result.get("linked", False)  # the files of an earlier run were linked
            self._progress.advance(result.get("rows", 0), result.get("bytes", 0), again=again)
        return [results[index] | {"index": index} for index in sorted(results)]

    def record(self, name: str, index: int) -> Result | None:
        """What an earlier run recorded of a unit; None unless the record and all files that it names are intact."""
        result: Result | None = read_sealed(self.folder / name / f"{index:05d}.json")
        files = result.get("files", []) if result is not None else []
        if self._stored is not None:  # on an object store; the digest is compared when the file is fetched
            return result if all(self._stored.get(path) == size for path, size, _ in files) else None
        return None if any(corrupted(self.data, file) for file in files) else result

    def finish(self) -> None:
        """Remove the records; the manifest replaces them."""
        if self._stored is not None:
            storage.remove(self.folder)
            return
        done = self.data / ".done"
        shutil.rmtree(done, ignore_errors=True)
        # renamed first: a kill in the middle of the deletion would leave half of the records without their key
        with contextlib.suppress(FileNotFoundError):  # another run saw the manifest and swept
            self.folder.rename(done)
        shutil.rmtree(done, ignore_errors=True)

    @staticmethod
    def sweep(data: Path) -> None:
        """Remove records that a run left because it was killed after it wrote its manifest."""
        for name in (".work", ".done"):
            if storage.url_of(data) is not None or (data / name).exists():
                storage.remove(data / name)
        if storage.url_of(data) is not None and data.is_dir():  # a run of this machine makes the folder first
            with contextlib.suppress(UsageError), storage.locked(data):
                storage.Claim.sweep(data)


def _perform(
    work: Callable[[int, Any], Result],
    data: Path,
    records: Path,
    needs: Sequence[tuple[Path, Sequence[Any]]],
    task: tuple[int, Any],
) -> tuple[int, Result]:
    """Do one unit, wherever it runs, and write its record."""
    index, payload = task
    try:
        for folder, (path, size, sha256) in needs:  # on an object store they may not be on this machine
            storage.bring(folder / path, size, sha256)
        result = work(index, payload)
        storage.publish(data, result.get("files", []))
        write_sealed(records / f"{index:05d}.json", result)
    except OSError as e:
        raise DatakitError(
            f"{e.filename or records}: {os.strerror(e.errno) if e.errno else e}"
            f"{storage.on_this_machine(e.filename or records)}. Finished work is kept: make room or mend the cause, "
            "and run the same command again to go on."
        ) from e
    return index, result


def write_sealed(path: Path, record: Any) -> None:
    """Write a record as JSON, after a line with the SHA-256 of its bytes."""
    body = json.dumps(record).encode()
    write_whole(path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def read_sealed(path: Path) -> Any:
    """The record that `write_sealed` wrote; None where there is none, or it was changed."""
    try:
        checksum, body = path.read_bytes().split(b"\n", 1)
    except (OSError, ValueError):
        return None
    return json.loads(body) if checksum == hashlib.sha256(body).hexdigest().encode() else None


def corrupted(data: Path, file: Sequence[Any]) -> bool:
    """Whether a file differs from its entry in a unit's record: [path, bytes, SHA-256]."""
    path, size, checksum = file
    try:
        return [(data / path).stat().st_size, sha256_file(data / path)] != [size, checksum]
    except OSError:
        return True


def check_intact(data: Path, file: Sequence[Any]) -> None:
    """Check a file that a unit wrote against its record, before another phase reads it; fetch it if it is not here.

    Raises:
        IntegrityError: it differs. The next run makes it again.
    """
    storage.bring(data / file[0], file[1], file[2])
    if corrupted(data, file):
        raise IntegrityError(changed(data / file[0]))


# Units of earlier runs.

UNITS = ".units"
_KEPT = 2
"""Results of a stage that keep their units: the newest."""
_FREE_SHARE = 0.1
"""Sketches and staged shards are kept where they take at most this share of the free disk space."""

Records = dict[str, dict[str, list[Result]]]
"""By phase ("read", "sketch", "split"), by key: the records of units; those of one group of raw files have one key.
`at` says where the files of a record lie now, in the order of its `files`."""


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
        for (path, size, sha256), at in zip(record["files"], record["at"], strict=True):
            if corrupted(folder, [at, size, sha256]):
                return None
            target = data / _numbered(path, index)
            if path.startswith(SKETCHES) and record["first_file"] != first_file:
                _move_sketches(folder / at, target, record["first_file"], first_file)
                size, sha256 = target.stat().st_size, sha256_file(target)
            else:
                link_or_copy(folder / at, target)
            files.append([_numbered(path, index), size, sha256])
        shards = [
            shard | {"path": _numbered(shard["path"], index)}
            | ({} if shard["first_file"] is None else {"first_file": first_file})
            for shard in record["shards"]
        ]  # fmt: skip
        own = {"first_file": first_file, "key": key, "files": files, "shards": shards}
        return record | own | {"linked": True, "measured": {}}


def _with_units(stage_folder: Path) -> list[Path]:
    """The data folders of a stage that have units to take, the newest first."""
    found = list(stage_folder.glob(f"*/{UNITS}/units.json"))
    return [p.parent.parent for p in sorted(found, key=lambda p: -p.stat().st_mtime_ns)]


@lru_cache(maxsize=4)
def _records(path: Path, _written: int) -> Records:
    found: Records | None = read_sealed(path)
    return found or {}


def _numbered(path: str, index: int) -> str:
    """The path of a unit's file for another unit."""
    return str(PurePosixPath(path).with_name(f"part-{index:05d}{PurePosixPath(path).suffix}"))


def _move_sketches(source: Path, target: Path, before: int, now: int) -> None:
    """Copy sketches of rows whose file stood at the place `before`, with the row keys of the place `now`."""
    make_folder(target.parent)
    with whole_file(target, flush=False) as temporary, pa.memory_map(str(source)) as file:
        reader = pa.ipc.open_file(file)
        writer, at = IpcWriter(temporary, reader.schema), reader.schema.get_field_index(KEY.name)
        for batch in (reader.get_batch(number) for number in range(reader.num_record_batches)):
            keys = batch.column(at).to_numpy() - np.uint64(row_key(before, 0)) + np.uint64(row_key(now, 0))
            writer.write(batch.set_column(at, batch.schema.field(at), pa.array(keys)))
        writer.close()


def keep_units(data: Path, phases: Mapping[str, Sequence[Result]]) -> None:
    """Write the records of the units beside a result, and move their sketches and staged shards there.

    Nothing depends on it: a disk that is full or slow costs the next run time, and no result.
    """
    shutil.rmtree(data / UNITS, ignore_errors=True)
    room, split = shutil.disk_usage(data).free * _FREE_SHARE, {unit["index"]: unit for unit in phases["split"]}
    final = {sha256: path for unit in split.values() for path, _, sha256 in unit["files"]}

    def kept(path: str, size: int, sha256: str) -> str:
        """Where a file lies from now on; empty for nowhere."""
        nonlocal room
        if sha256 in final:
            return str(final[sha256])
        room -= size
        if room < 0:
            return ""
        at = path.replace(".work", UNITS, 1)
        (data / at).parent.mkdir(parents=True, exist_ok=True)
        (data / path).rename(data / at)
        return at

    records: Records = {phase: {} for phase in phases}
    for phase, unit in ((phase, unit) for phase, units in phases.items() for unit in units if unit["key"]):
        # what was read of rows that were removed since does not stay, neither do their sketches
        removed = phase == "read" and unit["shards"] and split[unit["index"]]["count"]["dropped"]
        at = [] if removed else [kept(*file) for file in unit["files"]]
        own = {k: v for k, v in unit.items() if k not in ("linked", "key", "measured", "index")}
        records[phase].setdefault(unit["key"], []).append(own | {"at": at} if not removed and all(at) else {})
    whole = {phase: {key: units for key, units in found.items() if all(units)} for phase, found in records.items()}
    write_sealed(data / UNITS / "units.json", whole)
    for old in _with_units(data.parent)[_KEPT:]:
        shutil.rmtree(old / UNITS, ignore_errors=True)


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
        if storage.url_of(self.output) is not None:
            storage.pull(self.output)
            names = storage.sizes(self.output)  # a run that was killed at once left its claim alone
            entries = {name.split("/")[0] for name in names if not name.endswith(storage.CLAIM)}
        elif not self.output.is_dir():
            raise UsageError(f"--output {self.output}: is a file; name a folder")
        else:
            entries = {e.name for e in self.output.iterdir()}
        ours = (self.output, *self.output.glob("parents/*"))
        if entries and not any((f / ".work/key").is_file() or is_manifest(f / "manifest.json") for f in ours):
            raise UsageError(
                f"--output {self.output}: holds {sorted(entries)[0]!r}, not datakit output; name a new or empty folder"
            )
