"""The engine of this machine: threads, or processes for work that holds the interpreter lock."""

import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from datakit.errors import DatakitError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Local:
    """A pool of `workers`. The results of work units never depend on the pool: only the time does."""

    workers: int
    order_seed: int | None = None
    """Shuffles the order in which units are worked on; for tests that prove that it does not matter."""

    def map(self, work: Callable[[T], R], tasks: Iterable[T], *, processes: bool) -> Iterator[R]:
        """Results of `work` over tasks, as they are ready. Tasks are drawn as workers become free, so a feeder may
        make them on the way. `work` and tasks must pickle where `processes` is true.

        Raises:
            DatakitError: a worker process was killed. What `work` raises is raised here, after which no task starts.
        """
        if self.order_seed is not None:
            tasks = list(tasks)
            random.Random(self.order_seed).shuffle(tasks)
        iterator = iter(tasks)
        few = 2 if processes else 1  # a process is not worth its start for one task; making a task takes time as well
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
        import multiprocessing  # with its pool a tenth of all imports, and most runs need none
        from concurrent.futures import ProcessPoolExecutor

        return ProcessPoolExecutor(self.workers, multiprocessing.get_context("spawn"), initializer=_die_with_parent)


def _drive(pool: Executor, work: Callable[[T], R], first: list[T], rest: Iterator[T], workers: int) -> Iterator[R]:
    # one task waits for each worker: enough to keep it busy, and few decompressed units in memory
    running: set[Future[Any]] = {pool.submit(work, task) for task in first}
    while running:
        running |= {pool.submit(work, task) for task in islice(rest, max(0, 2 * workers - len(running)))}
        done, running = wait(running, return_when=FIRST_COMPLETED)
        if not running:  # all were done at once: draw the next ones before the loop asks whether any are left
            running = {pool.submit(work, task) for task in islice(rest, 2 * workers)}
        for future in done:
            yield future.result()


def _die_with_parent() -> None:
    """Ends this worker when its parent is gone, even by `kill -9`: the queue it reads from would never close."""
    import multiprocessing.connection

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
