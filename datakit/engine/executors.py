"""What does work units: a pool on this machine, or a Ray cluster; and what is printed meanwhile.

Results of units never depend on the executor, only the time does. `datakit.engine.store` hands it units and records
what comes back; so a run that was killed goes on with the units that are missing.
"""

import hashlib
import json
import logging
import os
import random
import shutil
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from datakit.errors import DatakitError, MissingExtraError, UsageError
from datakit.storage import mirror, shown
from datakit.terminal import printable, unguarded

T = TypeVar("T")
R = TypeVar("R")


class UnitExecutor(Protocol):
    """What does work units: `Local` or `Ray`."""

    @property
    def workers(self) -> int:
        """Threads or processes on this machine."""

    @property
    def share(self) -> int:
        """Units that run in one process at one time, and share its memory."""

    def map(self, work: Callable[[T], R], tasks: Iterable[T], *, processes: bool) -> Iterator[R]:
        """Yield results of `work` over tasks as they become ready."""


# This machine: threads, or processes for work that holds the interpreter lock.

_MAIN_MODULE = threading.Lock()  # two pools in threads of one process take turns to hide it


def all_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Local:
    """A pool of `workers` on this machine."""

    workers: int
    order_seed: int | None = None
    """Shuffles the order of the units; for tests which prove that the order does not matter."""

    @property
    def share(self) -> int:
        """All units in threads share the memory."""
        return self.workers

    def map(self, work: Callable[[T], R], tasks: Iterable[T], *, processes: bool) -> Iterator[R]:
        """Yield results of `work` over tasks as they become ready. Tasks are drawn lazily, as workers become free.

        With `processes`, `work` and tasks must pickle. An error of `work` is raised here, and no further task starts.

        Raises:
            DatakitError: a worker process was killed.
        """
        if self.order_seed is not None:
            tasks = list(tasks)
            random.Random(self.order_seed).shuffle(tasks)
        iterator = iter(tasks)
        few = 2 if processes else 1  # one task does not pay for the start of a process
        first = list(islice(iterator, few))
        if self.workers == 1 or len(first) < few:
            yield from (work(task) for task in (*first, *iterator))
            return
        pool, running = self._pool(processes), set[Future[R]]()
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
            raise DatakitError(
                "a worker process was killed (out of memory, perhaps). Finished work is kept: run the same command "
                "again to go on, with fewer --workers if memory is short."
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _pool(self, processes: bool) -> Executor:
        if not processes:
            return ThreadPoolExecutor(self.workers, thread_name_prefix="datakit")
        import multiprocessing  # imported late: slow to import, and most runs need no processes
        from concurrent.futures import ProcessPoolExecutor

        return ProcessPoolExecutor(self.workers, multiprocessing.get_context("spawn"), initializer=_die_with_parent)


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
SLOW_S = 120.0
"""A unit that runs for longer is named, again and again in this interval."""
STARTING_S = 20.0
"""Seconds after which units are said to wait for a machine that can take them."""


@dataclass(frozen=True, slots=True)
class Ray:
    """The workers of a Ray cluster, one core and `UNIT_MEMORY` each."""

    address: str = ""
    """Of the cluster's head, or "auto"; empty: RAY_ADDRESS, else a Ray of its own on this machine."""
    workers: int = 0
    """Threads of what runs in the driver."""

    @property
    def share(self) -> int:
        """One: each unit has a process of its own."""
        return 1

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
                raise UsageError(
                    f"{failed} ({str(e).splitlines()[0]}). Start a cluster with `ray start --head`, and name it with "
                    "--ray-address auto. If it asks for a token: RAY_AUTH_MODE=token, and the token of its head in "
                    "~/.ray/auth_token or RAY_AUTH_TOKEN"
                ) from None
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
        shared, driver = ray.put(work), Driver(os.getcwd(), str(mirror()), code_stamp())
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
            oldest = max((time.monotonic() - began for began in running.values()), default=0.0)
            since = time.monotonic() - said
            if oldest > STARTING_S and since > STARTING_S and not done and not has_room(ray.nodes()):
                line = "units wait: no machine of the cluster has a core and 1 GiB of memory for one; see `ray status`"
            elif oldest > SLOW_S and since > SLOW_S:
                line = f"{len(running)} units are at work or wait for a core; the oldest one for {oldest:,.0f} s"
            else:
                continue
            said = time.monotonic()
            logging.getLogger(__name__).info(line)


def has_room(nodes: Iterable[dict[str, Any]]) -> bool:
    """Whether a unit fits on one of a cluster's machines, once that has nothing else to do."""
    own = [node["Resources"] for node in nodes if node["Alive"]]
    return any(has.get("CPU", 0) >= 1 and has.get("memory", 0) >= UNIT_MEMORY for has in own)


@dataclass(frozen=True, slots=True)
class Driver:
    """What a worker must have in common with the driver: its folder, the place of the mirror, the code."""

    folder: str
    mirror: str
    code: str

    def enter(self) -> None:
        """Make this process like the driver: relative paths of configs, paths of the mirror.

        Raises:
            UsageError: the worker has another version of datakit.
        """
        if code_stamp() != self.code:
            raise UsageError(
                f"the worker on {os.uname().nodename} runs another version of datakit than the driver; install the "
                "same one on all machines"
            )
        if os.path.isdir(self.folder):
            os.chdir(self.folder)
        os.environ["DATAKIT_MIRROR"] = self.mirror


@cache
def code_stamp() -> str:
    """A hash of all modules of datakit: workers with other code would make other bytes."""
    total, root = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _unit(work: Callable[[T], R], driver: Driver, task: T) -> R:
    driver.enter()
    return work(task)


def _result(reference: Any) -> Any:
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as e:
        raise e.cause if isinstance(e.cause, BaseException) else DatakitError(str(e)) from None
    except ray.exceptions.RayError as e:
        raise DatakitError(
            f"a unit was lost {RETRIES} times with its worker ({type(e).__name__}; out of memory, perhaps). Finished "
            "work is kept: run the same command again to go on, with larger machines or a smaller shard_mb"
        ) from None


# Progress: lines with rows/s and MB/s for people, nothing for the library.


class Progress:
    """Counts the units of a phase. The base class prints nothing: for `--json`, and the library without `progress`."""

    title = ""
    units: int | None = None
    done = again = rows = bytes = 0
    began = 0.0

    def start(self, title: str, units: int | None) -> None:
        """End the previous phase and begin another; `units` is None if their number is not known yet."""
        self.end()
        self.title, self.units, self.began = title, units, time.monotonic()
        self.done = self.again = self.rows = self.bytes = 0
        self.show()

    def advance(self, rows: int, bytes: int, *, again: bool) -> None:
        """A unit is done; `again` if an earlier run already did it."""
        self.done += 1
        if again:
            self.again += 1
        else:
            self.rows += rows
            self.bytes += bytes
        self.show()

    def speed(self) -> str:
        """Rows and megabytes in a second."""
        seconds = max(time.monotonic() - self.began, 1e-9)
        mb = f", {self.bytes / seconds / 1e6:,.1f} MB/s" if self.bytes > 100_000 else ""
        return f"{self.rows / seconds:,.0f} rows/s{mb}" if self.rows else ""

    def line(self, text: str) -> None:
        """Show a message."""

    def show(self) -> None:
        """The phase began, or a unit of it is done."""

    def end(self) -> None:
        """The phase is over."""

    def close(self) -> None:
        """The work is over."""
        self.end()


class Lines(Progress):
    """Lines on standard error: one at the end of a phase, and one every few seconds of a long one.

    On a terminal the line of the phase at hand is written again and again in its place. A phase that reads no rows and
    is over at once has no line.
    """

    every_s = 5.0
    least_s = 1.0
    said = 0.0

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.every_s = 0.1 if self.live else self.every_s

    def line(self, text: str) -> None:
        """Print a line; a phase whose units are all done has its own first."""
        if self.units is not None and self.done >= self.units:
            self.end()
        self._write(f"{printable(text)}\n")

    def show(self) -> None:
        """A line every few seconds."""
        if not self.done:
            self.said = self.began
        elif time.monotonic() - self.said > self.every_s and self.done != self.units:
            self._write(self._text()[: shutil.get_terminal_size().columns - 1] if self.live else f"{self._text()}\n")

    def end(self) -> None:
        """The totals of the phase."""
        if self.title and self.done and (self.rows or time.monotonic() - self.began > self.least_s):
            self._write(f"{self._text()}\n")
        elif self.live:
            self._write("")
        self.title = ""

    def _text(self) -> str:
        self.said = time.monotonic()
        of = f"/{self.units}" if self.units else ""
        again = f" ({self.again} done before)" if self.again else ""
        speed = f", {self.rows:,} rows, {self.speed()}" if self.rows else ""
        return printable(f"{self.title}: {self.done}{of} units{again}{speed}, {self.said - self.began:.1f} s")

    def _write(self, text: str) -> None:
        stream = unguarded(sys.stderr)  # the text is printable, and what clears the line must pass
        stream.write(shown(f"\r\x1b[2K{text}" if self.live else text))
        stream.flush()


class JsonLog(Progress):
    """Passes everything on, and appends it to a file as JSON lines: `time` (UTC), `event`, and what it is about.

    Events are `begin` (of a phase: `title`, `units`), `unit` (`rows`, `bytes`, `again`), `message` (`text`), `end`.
    """

    def __init__(self, shown: Progress, path: Path) -> None:
        """Open the file.

        Raises:
            UsageError: it cannot be written.
        """
        self._shown = shown
        try:
            self._file = path.open("a", encoding="utf-8")
        except OSError as e:
            raise UsageError(f"--log {path}: cannot be written: {e.strerror}") from None

    def _write(self, event: str, **about: Any) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._file.write(json.dumps({"time": now, "event": event} | about, ensure_ascii=False) + "\n")
        self._file.flush()

    def start(self, title: str, units: int | None) -> None:
        """A phase begins."""
        self.title = title
        self._write("begin", title=title, units=units)
        self._shown.start(title, units)

    def advance(self, rows: int, bytes: int, *, again: bool) -> None:
        """A unit is done."""
        self._write("unit", title=self.title, rows=rows, bytes=bytes, again=again)
        self._shown.advance(rows, bytes, again=again)

    def line(self, text: str) -> None:
        """A message."""
        self._write("message", text=text)
        self._shown.line(text)

    def close(self) -> None:
        """The work is over."""
        self._write("end")
        self._file.close()
        self._shown.close()


def for_terminal(quiet: bool) -> Progress:
    """Progress on standard error; nothing if `quiet`."""
    return Progress() if quiet else Lines()
