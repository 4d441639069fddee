"""What does work units (a pool on this machine, or a Ray cluster), what is printed meanwhile, records of what is done.

Results of units never depend on the executor, only the time does. Inside a data folder, `.work/` holds the key of the
run and one JSON record for each finished unit of each phase. A unit's record is written after its files are on the
disk. It names them, and it counts only while they are intact. So a run that was killed goes on with the units that are
missing. In a data folder on an object store a unit's files are uploaded under their final keys, then its record.
"""

import contextlib
import hashlib
import logging
import math
import os
import shutil
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import datakit.storage as storage
from datakit.errors import DatakitError, MissingExtraError, UsageError
from datakit.manifest import ROLES, difference
from datakit.terminal import printable, unguarded

T = TypeVar("T")
R = TypeVar("R")

GO_ON = "Finished work is kept: make room or mend the cause, and run the same command again to go on."


# This machine: threads, or processes for work that holds the interpreter lock.

_MAIN_MODULE = threading.Lock()  # two pools in threads of one process take turns to hide it


def all_cores() -> int:
    """The number of cores that this process may use; all of the machine's where the system does not say (macOS)."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Local:
    """A pool of `workers` on this machine."""

    workers: int

    def map(self, work: Callable[[T], R], tasks: Iterable[T], *, processes: bool) -> Iterator[R]:
        """Yield results of `work` over tasks as they become ready. Tasks are drawn lazily, as workers become free.

        With `processes`, `work` and tasks must pickle. An error of `work` is raised here, and no further task starts.

        Raises:
            DatakitError: a worker process was killed.
        """
        iterator = iter(tasks)
        few = 2 if processes else 1  # one task does not pay for the start of a process
        first = list(islice(iterator, few))
        if self.workers == 1 or len(first) < few:
            yield from (work(task) for task in (*first, *iterator))
            return
        pool: Executor = ThreadPoolExecutor(self.workers, thread_name_prefix="datakit")
        if processes:
            import multiprocessing  # imported late: slow to import, and most runs need no processes
            from concurrent.futures import ProcessPoolExecutor

            spawn = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(self.workers, spawn, initializer=_die_with_parent)
        running = set[Future[R]]()
        try:
            while True:
                # one task waits for each worker: that keeps it busy, with few decompressed units in memory
                room = max(len(first), 2 * self.workers - len(running))
                running |= {_submit(pool, work, task) for task in (*first, *islice(iterator, room - len(first)))}
                first = []
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenExecutor:
            why = "a worker process was killed (out of memory, perhaps); use fewer --workers if memory is short"
            raise DatakitError(f"{why}. {GO_ON}") from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: Executor, work: Callable[[T], R], task: T) -> Future[R]:
    """Hand a task to the pool, with `__main__` hidden: a pool of processes may start another one with it.

    multiprocessing imports the parent's main module in each worker. Datakit's tasks never need it, and a script without
    `if __name__ == "__main__"` would start itself over and over.
    """
    with _MAIN_MODULE:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            return pool.submit(work, task)
        finally:
            sys.modules["__main__"] = main


def _die_with_parent() -> None:
    """End this worker when its parent is gone, even by `kill -9`: the queue that it reads would never close."""
    import multiprocessing.connection

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# A cluster: Ray hands out work units. A unit's key and its stage go to a worker, its record comes back. Rows never pass
# through Ray: workers read and write the project's storage, which all machines must see under the same paths. Nothing
# is kept in actors, so a driver that died is started again, anywhere, with the same project, and goes on by records.

RETRIES = 20
"""How often a unit is handed out again after its machine or process died. An error of the work is not: it would come
again."""
UNIT_MEMORY = 1 << 30
"""Bytes of memory that a unit asks for: a shard of about 256 MB, decompressed, and what is written of it."""
SLOW_S = 60.0
"""Units that run or wait for longer are told, again and again in this interval."""


@dataclass(frozen=True, slots=True)
class Ray:
    """The workers of a Ray cluster, one core and `UNIT_MEMORY` each."""

    address: str = ""
    """Of the cluster's head, or "auto"; empty: RAY_ADDRESS, else a Ray of its own on this machine."""
    workers: int = 0
    """Threads of what runs in the driver."""

    def connect(self) -> "Ray":
        """Join the cluster, or start one on this machine.

        Raises:
            MissingExtraError: Ray is not installed.
            UsageError: there is no cluster at the address.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise MissingExtraError("--executor ray needs the package ray: pip install 'datakit[cluster]'") from None
        if not ray.is_initialized():
            address = self.address or os.environ.get("RAY_ADDRESS")
            where: dict[str, Any] = {"address": address} if address else {"include_dashboard": False}
            try:
                ray.init(log_to_driver=False, logging_level=logging.ERROR, **where)
            except Exception as e:  # Ray has no common class for these
                failed = f"--ray-address {address}: no Ray cluster answers there" if address else "Ray does not start"
                how = "Start one with `ray start --head` and name it with --ray-address auto; docs/cluster.md has more"
                raise UsageError(f"{failed} ({str(e).splitlines()[0]}). {how}") from None
        return Ray(self.address, self.workers or all_cores())

    def map(self, work: Callable[[T], R], tasks: Iterable[T], *, processes: bool) -> Iterator[R]:
        """Yield results of `work` over tasks as they become ready; tasks are drawn as the cluster has room for them.

        Raises:
            DatakitError: an error of the work, or a unit whose worker died more than `RETRIES` times.
        """
        import ray

        remote = ray.remote(_unit).options(
            num_cpus=1, memory=UNIT_MEMORY, max_retries=RETRIES, retry_exceptions=False, scheduling_strategy="SPREAD"
        )
        shared, driver = ray.put(work), (os.getcwd(), str(storage.mirror()), code_stamp())
        waiting, running = iter(tasks), dict[Any, float]()
        said = time.monotonic()
        while True:
            # the cluster may have grown, or have no machine at all until units wait for one
            room = max(2, 2 * int(ray.cluster_resources().get("CPU", 0))) - len(running)
            running |= {remote.remote(shared, driver, task): time.monotonic() for task in islice(waiting, max(0, room))}
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1, timeout=5.0)
            for reference in done:
                del running[reference]
                yield _result(reference)
            now, oldest = time.monotonic(), min(running.values(), default=math.inf)
            if now - max(said, oldest) > SLOW_S:
                said = now
                logging.getLogger(__name__).info(
                    f"{len(running)} units are at work, or wait for a machine with a core and 1 GiB of memory for one "
                    f"(see `ray status`); the oldest one for {now - oldest:,.0f} s"
                )


UnitExecutor = Local | Ray


@cache
def code_stamp() -> str:
    """A hash of all modules of datakit: workers with other code would make other bytes."""
    total, root = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _unit(work: Callable[[T], R], driver: tuple[str, str, str], task: T) -> R:
    """Do a unit in a process that is like the driver: its folder (for relative paths of configs), mirror and code.

    Raises:
        UsageError: the worker has another version of datakit.
    """
    folder, mirror, code = driver
    if code_stamp() != code:
        raise UsageError(f"the worker on {os.uname().nodename} has another version of datakit: install the same one")
    if os.path.isdir(folder):
        os.chdir(folder)
    os.environ["DATAKIT_MIRROR"] = mirror
    return work(task)


def _result(reference: Any) -> Any:
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as e:
        raise e.cause if isinstance(e.cause, BaseException) else DatakitError(str(e)) from None
    except ray.exceptions.RayError as e:
        why = f"a unit was lost {RETRIES} times with its worker ({type(e).__name__}; out of memory, perhaps)"
        raise DatakitError(f"{why}; use larger machines or a smaller shard_mb. {GO_ON}") from None


# Progress: lines with rows/s and MB/s for people, nothing for the library.

EVERY_S = 5.0
"""A long phase has a line in this interval."""
LEAST_S = 1.0
"""A phase that reads no rows and is over sooner has no line."""


class Progress:
    """Counts the units of a phase. With `shown` it prints lines on standard error.

    There is one line at the end of a phase, and one every few seconds of a long one. On a terminal the line of the
    phase at hand is written again and again in its place.
    """

    def __init__(self, shown: bool = False) -> None:
        self.shown, self.live = shown, shown and sys.stderr.isatty()
        self.units: int | None = None
        self.title, self.began, self.said = "", 0.0, 0.0
        self.done = self.again = self.rows = self.bytes = 0

    def start(self, title: str, units: int | None) -> None:
        """End the previous phase and begin another; `units` is None if their number is not known yet."""
        self.close()
        self.title, self.units, self.began = title, units, time.monotonic()
        self.said, self.done, self.again, self.rows, self.bytes = self.began, 0, 0, 0, 0

    def advance(self, unit: "Result", *, again: bool) -> None:
        """A unit is done; `again` if an earlier run already did it."""
        self.done += 1
        if again:
            self.again += 1
        else:
            self.rows += unit.get("rows", 0)
            self.bytes += unit.get("bytes", 0)
        if time.monotonic() - self.said > (0.1 if self.live else EVERY_S) and self.done != self.units:
            self._write(self._text()[: shutil.get_terminal_size().columns - 1] if self.live else f"{self._text()}\n")

    def line(self, text: str) -> None:
        """Show a message; a phase whose units are all done has its own line first."""
        if self.units is not None and self.done >= self.units:
            self.close()
        self._write(f"{text}\n")

    def close(self) -> None:
        """End the phase."""
        if self.title and self.done and (self.rows or time.monotonic() - self.began > LEAST_S):
            self._write(f"{self._text()}\n")
        elif self.live:
            self._write("")
        self.title = ""

    def _text(self) -> str:
        self.said = time.monotonic()
        seconds = max(self.said - self.began, 1e-9)
        of = f"/{self.units}" if self.units else ""
        again = f" ({self.again} done before)" if self.again else ""
        rows = f", {self.rows:,} rows, {self.rows / seconds:,.0f} rows/s" if self.rows else ""
        mb = f", {self.bytes / seconds / 1e6:,.1f} MB/s" if self.rows and self.bytes > 100_000 else ""
        return f"{self.title}: {self.done}{of} units{again}{rows}{mb}, {seconds:.1f} s"

    def _write(self, text: str) -> None:
        if self.shown:
            text, stream = printable(text), unguarded(sys.stderr)  # what clears the line must pass
            stream.write(storage.shown(f"\r\x1b[2K{text}" if self.live else text))
            stream.flush()


# Units of one run: done once, with a record of each.

Result = dict[str, Any]
"""What a unit reports, as JSON. `files` lists [path relative to the data folder, bytes, digest] of the files that must
be intact for the unit to count as done; `shards` the entries of those that are tables; `rows` and `bytes` feed the
progress report; `counts` is a tree of numbers: `bytes`, `rows` and `tokens` as in a ledger, `notes`, and by
source the `whole` and the `lost` rows."""


@contextlib.contextmanager
def working(
    data: Path,
    key: str,
    executor: UnitExecutor,
    progress: Progress,
    finished: Callable[[], bool] = lambda: False,
    stage: str = "",
) -> Iterator["Work"]:
    """Exclusive use of a data folder for one run. `finished` says whether another run has completed the result.

    Progress names the `stage`.

    Raises:
        UsageError: another run uses the folder, or has just finished.
    """
    with storage.locked(data) as claim:
        if finished():
            raise UsageError(f"{data}: another run has just finished this result; run the same command again")
        storage.pull(data)  # the records, and what `prepare` found
        mark = data / ".work" / "key"
        if not mark.is_file() or mark.read_bytes() != key.encode():
            # the manifest of a self-contained folder goes first: it must never name shards of another run
            there = storage.entries(data)
            for name in ("manifest.json", *(n for n in (*ROLES, ".work") if n in there)):
                storage.remove(data / name)
            storage.write_whole(mark, key.encode())
        for temporary in data.rglob(".*.tmp"):
            temporary.unlink(missing_ok=True)  # a worker of a killed run may still rename its last one
        yield Work(data, executor, progress, claim, stage)


class Work:
    """A data folder that one run uses (`working`), with a record of each finished unit."""

    def __init__(
        self, data: Path, executor: UnitExecutor, progress: Progress, claim: storage.Claim, stage: str
    ) -> None:
        self.data, self.folder, self.stage = data, data / ".work", stage
        self.workers = executor.workers
        self.share = executor.workers if isinstance(executor, Local) else 1
        """Units that run in one process at one time: on a cluster, each has a process of its own."""
        self._executor, self._progress, self._claim = executor, progress, claim
        self._stored = None if storage.url_of(data) is None else storage.sizes(data)
        """Of an object store: the files of the folder, with their bytes."""
        self.needs: list[tuple[Path, Sequence[Any]]] = []
        """Files that the units of later phases read besides their input, as (data folder, entry in a record)."""

    def units(
        self,
        name: str,
        work: Callable[[int, Any], Result],
        tasks: Iterable[tuple[int, Any]],
        *,
        title: str = "",
        processes: bool = False,
        here: bool = False,
    ) -> list[Result]:
        """Do `work(index, payload)` for each task that no earlier run finished; returns results by index.

        `here`: in this process, whatever the executor is. `title` is for progress; without one, it is the phase's name.
        """
        results: dict[int, Result] = {}
        self._progress.start(title or f"{self.stage}: {name}", len(tasks) if isinstance(tasks, Sized) else None)

        def to_do() -> Iterator[tuple[int, Any]]:
            for index, payload in tasks:
                if (done := self.record(name, index)) is None:
                    yield index, payload
                else:
                    results[index] = done
                    self._progress.advance(done, again=True)

        records = self.folder / name
        records.mkdir(exist_ok=True)
        perform = partial(_perform, work, self.data, records, tuple(self.needs), self._stored is not None)
        executor = Local(1) if here else self._executor
        for index, result in executor.map(perform, to_do(), processes=processes):
            self._claim.check()
            results[index] = result
            self._progress.advance(result, again=result.get("linked", False))  # from an earlier run
        self._claim.check(now=True)
        return [results[index] | {"index": index} for index in sorted(results)]

    def record(self, name: str, index: int) -> Result | None:
        """What an earlier run recorded of a unit; None unless the record and all files that it names are intact."""
        path = self.folder / name / f"{index:05d}.json"
        result: Result | None = storage.read_sealed(path) if path.is_file() else None
        files = result.get("files", []) if result is not None else []
        if self._stored is not None:  # on an object store; the digest is compared when the file is fetched
            return result if all(self._stored.get(path) == size for path, size, _ in files) else None
        return None if any(difference(self.data / path, *entry) for path, *entry in files) else result

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
        there = storage.entries(data)
        for name in there & {".work", ".done", storage.CLAIM}:
            storage.remove(data / name)


def _perform(
    work: Callable[[int, Any], Result],
    data: Path,
    records: Path,
    needs: Sequence[tuple[Path, Sequence[Any]]],
    remote: bool,
    task: tuple[int, Any],
) -> tuple[int, Result]:
    """Do one unit, wherever it runs, and write its record."""
    index, payload = task
    try:
        for folder, (path, size, sha256) in needs:  # on an object store they may not be on this machine
            storage.bring(folder / path, size, sha256)
        result = work(index, payload)
        if remote:
            storage.publish(data, result.get("files", []))
        storage.write_sealed(records / f"{index:05d}.json", result)
    except OSError as e:
        file, what = e.filename or records, os.strerror(e.errno) if e.errno else e
        raise DatakitError(f"{file}: {what}{storage.on_this_machine(file)}. {GO_ON}") from e
    return index, result
