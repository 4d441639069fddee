"""The local pool: every task once, whatever the pool; errors and killed workers are told, not swallowed."""

import os
import signal
import time
from functools import partial

import pytest

from datakit.engine.executors import Local, all_cores
from datakit.errors import DatakitError, InputError
from tests.processes import ROOT, python


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
@pytest.mark.parametrize(("workers", "tasks"), [(1, 20), (2, 20), (3, 20), (4, 0), (4, 1)])
def test_every_task_is_done_once(workers, tasks, processes):
    found = Local(workers).map(square, range(1, tasks + 1), processes=processes)
    assert sorted(found) == [n * n for n in range(1, tasks + 1)]


def test_tasks_are_drawn_as_workers_become_free():
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
def test_an_error_in_a_worker_is_raised_as_it_was(processes):
    with pytest.raises(InputError, match="row 5 is bad"):
        list(Local(2).map(partial(fail_at, 5), range(50), processes=processes))


def test_a_killed_worker_is_an_error_that_says_how_to_go_on():
    with pytest.raises(DatakitError, match="run the same command again"):
        list(Local(2).map(partial(die_at, 2), range(6), processes=True))


def test_workers_end_when_their_parent_is_killed():
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


@pytest.mark.parametrize("command", [["script.py"], ["-m", "package"]], ids=" ".join)
def test_no_worker_runs_the_callers_script_again(tmp_path, command):
    """A script without `if __name__ == "__main__"` would start itself over and over."""
    script = (
        "print('begins')\n"
        "from datakit.engine.executors import Local\n"
        "import sys\n"
        "found = sorted(Local(3).map(abs, range(-40, 0), processes=True))\n"
        "assert found == list(range(1, 41))\n"
        "assert sys.modules['__main__'].found is found\n"
    )
    (tmp_path / "package").mkdir()
    for path in (tmp_path / "script.py", tmp_path / "package/__main__.py"):
        path.write_text(script)
    assert python(*command, cwd=tmp_path, PYTHONPATH=str(ROOT)).stdout.count("begins") == 1


def test_the_cores_are_counted_where_a_process_cannot_ask_for_its_own(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    assert all_cores() == os.cpu_count()
