"""The executor of one machine: threads, or processes for work that holds the interpreter lock."""

import contextlib
import os
import random
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeVar

from datakit.errors import DatakitError

T = TypeVar("T")
R = TypeVar("R")

_MAIN_MODULE = threading.Lock()  # two pools in threads of one process take turns to hide it


def all_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


class UnitExecutor(Protocol):
    """What does work units: `Local` on this machine, `datakit.engine.ray.Ray` on a cluster."""

    @property
    def workers(self) -> int:
        """Threads or processes on this machine."""

    @property
    def share(self) -> int:
        """Units that run in one process at one time, and share its memory."""

    def map(self, work: Callable[[T], R], tasks: Iterable[T], *, processes: bool) -> Iterator[R]:
        """Yield results of `work` over tasks as they become ready."""


@dataclass(frozen=True, slots=True)
class Local:
    """A pool of `workers`. Results of work units never depend on the pool; only the time does."""

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
        pool = self._pool(processes)
        try:
            yield from _drive(pool, work, first, iterator, self.workers)
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


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Hide `__main__` while a process may start, so that no worker runs the caller's script again.

    multiprocessing imports the parent's main module in each worker. Datakit's tasks never need it, and a script without
    `if __name__ == "__main__"` would start itself over and over.
    """
    with _MAIN_MODULE:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _drive(pool: Executor, work: Callable[[T], R], first: list[T], rest: Iterator[T], workers: int) -> Iterator[R]:
    running = _submit(pool, work, first)
    # one task waits for each worker: that keeps it busy, with few decompressed units in memory
    while running:
        running |= _submit(pool, work, islice(rest, max(0, 2 * workers - len(running))))
        done, running = wait(running, return_when=FIRST_COMPLETED)
        if not running:  # all were done at once: draw more before the loop ends
            running = _submit(pool, work, islice(rest, 2 * workers))
        for future in done:
            yield future.result()


def _submit(pool: Executor, work: Callable[[T], R], tasks: Iterable[T]) -> set[Future[R]]:
    """Hand tasks to the pool. A pool of processes starts another one with a task, until it has all its workers."""
    submitted = set()
    for task in tasks:  # drawn with the main module in its place: a task may need it
        with _without_main_module():
            submitted.add(pool.submit(work, task))
    return submitted


def _die_with_parent() -> None:
    """End this worker when its parent is gone, even by `kill -9`: the queue that it reads would never close."""
    import multiprocessing.connection

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
