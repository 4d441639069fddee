"""The disk: shards and their digests, the shard cache, work records that survive an interruption, where results go.

A shard is written to a temporary file, flushed and renamed; its entry has the SHA-256 of its bytes and of its values.
Inside a data folder, `.work/` holds the key of the run and one JSON record for each finished unit of each phase. A
unit's record is written after its files are on the disk. It names them, and it counts only while they are intact. In a
data folder on an object store a unit's files are uploaded under their final keys, then its record.
"""

import contextlib
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

import datakit.storage as storage
from datakit.config import sha256_file
from datakit.data import KEY, RECORD, ContentHash, as_stored, content_of, read_rows, read_shard, stored, with_row_keys
from datakit.engine.executors import Local, Progress, UnitExecutor
from datakit.errors import DatakitError, IntegrityError, ManifestError, UsageError
from datakit.manifest import ROLES, Shard, changed, flush_folder, load, make_folder, write_whole

ROW_GROUP_BYTES = 16 << 20
ROW_GROUP_ROWS = 1 << 16

Result = dict[str, Any]
"""What a unit reports, as JSON. `files` lists [path relative to the data folder, bytes, SHA-256] of the files that must
be intact for the unit to count as done; `rows` and `bytes` feed the progress report."""


# Shards: record batches in Parquet files.


class ShardWriter:
    """Writes one shard. Row groups are cut by data: after the batch that reaches 16 MiB of values or 65,536 rows.

    `row_key` is stored as `record`: the rows come from the input file with the place `first_file`, or from those after
    it. The row groups of a complete shard go into `cache`, too.
    """

    def __init__(
        self, folder: Path, path: str, schema: pa.Schema, cache: "ShardCache | None" = None, first_file: int = 0
    ) -> None:
        self._path, self._target, self.rows = path, folder / path, 0
        self._first_file = first_file if KEY.name in schema.names else None
        schema = pa.schema([RECORD if f.name == KEY.name else f for f in schema])
        make_folder(self._target.parent)
        self._temporary = self._target.with_name(f".{self._target.name}.{os.getpid()}.tmp")
        self._schema = pa.schema([f.with_type(stored(f.type)) for f in schema])
        self._hash = ContentHash(self._schema)
        self._writer = pq.ParquetWriter(self._temporary, self._schema, compression="zstd", **_encodings(self._schema))
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._flushed = 0
        self._cache, self._groups = cache, list[pa.RecordBatch]()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; the batch's columns are taken by name and cast to the shard's schema."""
        if batch.num_rows == 0:
            return
        if self._first_file is not None:
            batch = as_stored(batch, self._first_file)
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
            if self._cache:
                self._groups += group.combine_chunks().to_batches()
        self._pending, self._pending_rows, self._flushed = [], 0, self._hash.bytes

    def close(self) -> Shard:
        """Finish the shard under its name and return its entry."""
        self._flush()
        self._writer.close()
        shard = finish_file(self._temporary, self._target, self._path, self.rows, self._hash.hexdigest())
        shard = replace(shard, first_file=self._first_file)
        if self._cache and self._groups:
            self._cache.keep(self._target, self._groups)
        return shard

    def abandon(self) -> None:
        """Remove what was written."""
        self._writer.close()
        self._temporary.unlink(missing_ok=True)


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Parquet options for a schema with token ids: their bytes are split by significance, which zstd packs smaller and
    three times as fast as a dictionary's indices."""
    ids = [f.name for f in schema if f.type == stored(pa.list_(pa.int32()))]
    if not ids:
        return {}
    others = [name for name in schema.names if name not in ids]
    split_bytes = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in ids}
    return {"use_dictionary": others, "write_statistics": others, "column_encoding": split_bytes}


class UnitWriter:
    """The shards of one work unit: kept rows always, dropped and quarantined rows where there are any."""

    def __init__(self, folder: Path, index: int, cache: "ShardCache | None" = None, first_file: int = 0) -> None:
        self._folder, self._name, self._writers = folder, f"part-{index:05d}.parquet", dict[str, ShardWriter]()
        self._cache, self._first_file = cache, first_file

    def write(self, role: str, batch: pa.RecordBatch) -> None:
        """Append rows to the shard of a role; only `kept` is made for no rows."""
        if batch.num_rows == 0 and role != "kept":
            return
        if role not in self._writers:
            cache = self._cache if role == "kept" else None
            path = f"{role}/{self._name}"
            self._writers[role] = ShardWriter(self._folder, path, batch.schema, cache, self._first_file)
        self._writers[role].write(batch)

    def rows(self, role: str) -> int:
        """Rows written to a role so far."""
        return self._writers[role].rows if role in self._writers else 0

    def __enter__(self) -> Self:
        return self

    def close(self) -> list[Shard]:
        """Finish all shards."""
        return [self._writers[role].close() for role in sorted(self._writers)]

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for writer in self._writers.values():
                writer.abandon()


def entry(folder: Path, path: str) -> Shard:
    """The entry of a file that is no table of rows."""
    file = folder / path
    return Shard(path=path, rows=0, bytes=file.stat().st_size, sha256=sha256_file(file))


def finish_file(temporary: Path, target: Path, path: str, rows: int, content: str | None) -> Shard:
    """Flush a finished file to the disk, rename it to `target` and return its entry."""
    digest, size = sha256_file(temporary), temporary.stat().st_size
    flush_and_rename(temporary, target)
    return Shard(path=path, rows=rows, bytes=size, sha256=digest, content_sha256=content)


def flush_and_rename(temporary: Path, target: Path) -> None:
    """Flush a finished file to the disk and rename it to `target`; its name is flushed too."""
    with temporary.open("rb") as f:
        os.fsync(f.fileno())
    temporary.rename(target)
    flush_folder(target.parent)


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a finished file to `target`, or copy it where the file system has no hard links."""
    make_folder(target.parent)
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
        flush_folder(target.parent)
    except OSError:  # a file system without hard links
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        shutil.copyfile(source, temporary)
        flush_and_rename(temporary, target)


def inspect(folder: Path, shard: Shard) -> Iterator[str]:
    """Yield how a shard's values differ from its entry: rows, content (for `manifest.verify`)."""
    try:
        rows, digest = content_of(read_shard(folder, shard))
    except (IntegrityError, pa.ArrowException) as e:
        yield f"cannot be read: {e}"
        return
    if rows != shard.rows:
        yield f"expected {shard.rows} rows, found {rows}"
    if digest != shard.content_sha256:
        yield f"expected content_sha256 {shard.content_sha256}, found {digest}"


# The newest shards, kept in memory for the stage that reads them next.


class ShardCache:
    """The newest shards that this process wrote, up to `max_bytes` in memory.

    The next stage then need not decompress what this one compressed. Batches are those that reading the file gives, one
    for each row group, so results do not depend on what is cached. Worker processes get an empty cache of size 0.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._filled = max_bytes, 0
        self._shards: dict[Path, tuple[pa.RecordBatch, ...]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["ShardCache"], tuple[int]]:
        return ShardCache, (0,)

    def keep(self, path: Path, groups: Sequence[pa.RecordBatch]) -> None:
        """Add the row groups of a complete shard; the oldest shards are evicted."""
        size = _bytes(groups)
        if size > self._max_bytes:
            return
        with self._lock:
            self._forget(path)
            while self._filled + size > self._max_bytes:
                self._forget(next(iter(self._shards)))
            self._shards[path] = tuple(groups)
            self._filled += size

    def rename(self, source: Path, target: Path) -> None:
        """Note that a shard was moved or linked to `target`."""
        with self._lock:
            groups = self._forget(source)
            self._forget(target)
            if groups:
                self._shards[target] = groups
                self._filled += _bytes(groups)

    def read(self, folder: Path, shard: Shard) -> Iterator[pa.RecordBatch]:
        """The rows of a shard in a data folder, with `row_key`, one batch a row group.

        Raises:
            IntegrityError: the shard is not cached, and its file is missing or damaged.
        """
        with self._lock:
            groups = self._shards.get(folder / shard.path)
        if groups:
            yield from (with_row_keys(group, shard.first_file) for group in groups)
        else:
            yield from read_rows(folder, shard)

    def _forget(self, path: Path) -> tuple[pa.RecordBatch, ...]:
        groups = self._shards.pop(path, ())
        self._filled -= _bytes(groups)
        return groups


def _bytes(groups: Sequence[pa.RecordBatch]) -> int:
    return sum(g.nbytes for g in groups)


# Work records.


class Work:
    """Exclusive use of a data folder for one run, with a record of each finished unit.

    `with Work(data, key, ...) as work: work.phase(...)`. `finished` says whether another run has completed the result.
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
        self.folder.mkdir(exist_ok=True)
        self._discard_other_key()
        if storage.url_of(self.data) is not None:
            storage.sweep_uploads(self.data)
            self._stored = storage.sizes(self.data)
        for temporary in self.data.rglob(".*.tmp"):
            temporary.unlink(missing_ok=True)  # a worker of a killed run may still rename its last one
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

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

    def _discard_other_key(self) -> None:
        mark = self.folder / "key"
        if not mark.is_file() or mark.read_bytes() != self._key.encode():
            # the manifest of a self-contained folder goes first: it must never name shards of another run
            there = {name.split("/")[0] for name in storage.sizes(self.data)}
            for name in ("manifest.json", *(n for n in (*ROLES, ".work") if n in there)):
                storage.remove(self.data / name)
            self.folder.mkdir(exist_ok=True)
            write_whole(mark, self._key.encode())

    def phase(
        self,
        name: str,
        work: Callable[[int, Any], Result],
        tasks: Iterable[tuple[int, Any]],
        *,
        title: str,
        units: int | None = None,
        processes: bool = False,
        here: bool = False,
    ) -> list[Result]:
        """Do `work(index, payload)` for each task that no earlier run finished; returns results by index.

        `here`: in this process, whatever the executor is.
        """
        results: dict[int, Result] = {}
        self._progress.start(title, units)

        def to_do() -> Iterator[tuple[int, Any]]:
            for index, payload in tasks:
                done = self._done(name, index)
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
        return [results[i] for i in sorted(results)]

    def is_done(self, name: str, index: int) -> bool:
        """Whether an earlier run finished a unit."""
        return self._done(name, index) is not None

    def _done(self, name: str, index: int) -> Result | None:
        """What an earlier run recorded of a unit; None unless the record and all files that it names are intact."""
        result: Result | None = read_sealed(self.folder / name / f"{index:05d}.json")
        if result is None:
            return None
        files = result.get("files", [])
        if self._stored is not None:  # on an object store; the digest is compared when the file is fetched
            return result if all(self._stored.get(path) == size for path, size, _ in files) else None
        return None if any(corrupted(self.data, entry) for entry in files) else result


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


def corrupted(data: Path, entry: Sequence[Any]) -> bool:
    """Whether a file differs from its entry in a unit's record: [path, bytes, SHA-256]."""
    path, size, checksum = entry
    file = data / path
    return not file.is_file() or file.stat().st_size != size or sha256_file(file) != checksum


def check_intact(data: Path, entry: Sequence[Any]) -> None:
    """Check a file that a unit wrote against its record, before another phase reads it; fetch it if it is not here.

    Raises:
        IntegrityError: it differs. The next run makes it again.
    """
    storage.bring(data / entry[0], entry[1], entry[2])
    if corrupted(data, entry):
        raise IntegrityError(changed(data / entry[0]))


def _perform(
    work: Callable[[int, Any], Result],
    data: Path,
    records: Path,
    needs: Sequence[tuple[Path, Sequence[Any]]],
    task: tuple[int, Any],
) -> tuple[int, Result]:
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
        if entries and not any(_is_ours(f) for f in (self.output, *self.output.glob("parents/*"))):
            raise UsageError(
                f"--output {self.output}: holds {sorted(entries)[0]!r}, not datakit output; name a new or empty folder"
            )


def _is_ours(folder: Path) -> bool:
    """Whether a datakit run has written to a folder: it has the key of an unfinished run, or a manifest."""
    if (folder / ".work" / "key").is_file():
        return True
    try:
        load(folder / "manifest.json")
    except IntegrityError:
        return True  # a manifest of datakit, damaged
    except ManifestError:
        return False
    return True
