"""The local pool: every task once, whatever the pool; errors and killed workers are told, not swallowed."""

import os
import signal
import time
from functools import partial

import pytest

from datakit.engine.local import Local
from datakit.errors import DatakitError, InputError


def square(n: int) -> int:
    return n * n


def fail_at(bad: int, n: int) -> int:
    if n == bad:
        raise InputError(f"row {n} is bad")
    return n


def die_at(bad: int, n: int) -> int:
    if n == bad:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize(("workers", "seed"), [(1, None), (2, None), (3, 7)])
def test_every_task_is_done_once(workers: int, seed: int | None, processes: bool) -> None:
    found = Local(workers, seed).map(square, range(20), processes=processes)
    assert sorted(found) == [n * n for n in range(20)]


@pytest.mark.parametrize("tasks", [[], [3]])
def test_few_tasks_need_no_pool(tasks: list[int]) -> None:
    assert list(Local(4).map(square, tasks, processes=True)) == [n * n for n in tasks]


def test_tasks_are_drawn_as_workers_become_free() -> None:
    drawn = 0

    def feed():
        nonlocal drawn
        for n in range(100):
            drawn += 1
            yield n

    results = Local(2).map(square, feed(), processes=False)
    next(results)
    assert drawn <= 8
    assert len(list(results)) == 99


@pytest.mark.parametrize("processes", [False, True])
def test_an_error_in_a_worker_is_raised_as_it_was(processes: bool) -> None:
    with pytest.raises(InputError, match="row 5 is bad"):
        list(Local(2).map(partial(fail_at, 5), range(50), processes=processes))


def test_a_killed_worker_is_an_error_that_says_how_to_go_on() -> None:
    with pytest.raises(DatakitError, match="run the same command again"):
        list(Local(2).map(partial(die_at, 2), range(6), processes=True))


def test_workers_end_when_their_parent_is_killed() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # a command that is killed while its workers wait
        os.setpgid(0, 0)
        for pid in Local(2).map(report_and_wait, [0, 1], processes=True):
            os.write(write, str(pid).encode())
        os._exit(0)
    time.sleep(4)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and _group_alive(child):
        time.sleep(0.2)
    assert not _group_alive(child)
    os.close(read)
    os.close(write)


def report_and_wait(_: int) -> int:
    time.sleep(60)
    return os.getpid()


def _group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
