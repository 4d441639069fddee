"""Repeated passages and meaning in work units: the same bytes with any workers, on Ray, and after kills."""

import contextlib
import json
import os
import random
import signal
import threading
from pathlib import Path

import pytest

from datakit.engine.executors import Local, Ray
from datakit.manifest import load
from tests.engine.corpus import Shuffled, results, write_corpus
from tests.engine.test_bytes import killed_at, run_all
from tests.files import write_recipe, write_rows

RECIPE = """
[dataset]
kind = "text"
inputs = ["raw/*.jsonl"]
stages = ["ingest", "dedup_repeats", "dedup_semantic"]
[ingest]
shard_mb = 1
[dedup_semantic]
column = "vector"
cells = 6
"""


def project(root: Path) -> Path:
    """Rows with vectors, each near one of 40, and with a last line that many have."""
    rng = random.Random(4)
    middles = [[rng.gauss(0, 1) for _ in range(8)] for _ in range(40)]
    paths = [Path(path) for path in write_corpus(root / "raw", rows=900)]
    for path in paths:
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        for row in rows:
            row["vector"] = [value + rng.gauss(0, 0.3) for value in rng.choice(middles)]
            row["text"] += f"\nThe {rng.choice(['first', 'second', 'third'])} end of so many of these pages"
        write_rows(path, rows)
    write_recipe(root, RECIPE)
    return root


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = project(tmp_path_factory.mktemp("reference"))
    run_all(root, Local(1))
    repeats, meaning = (load(root / f"manifests/d/{stage}.json") for stage in ("dedup_repeats", "dedup_semantic"))
    assert repeats.ledger.notes["lines_cut"] > 100
    assert meaning.facts["cells"] == 6 and meaning.ledger.rows.dropped["semantic_duplicate"] > 100
    return root


def test_workers_and_order_do_not_change_a_byte(reference, tmp_path):
    root = project(tmp_path)
    run_all(root, Shuffled(2))
    assert results(root) == results(reference)


def test_a_run_killed_again_and_again_ends_with_the_same_bytes(reference, tmp_path):
    root, rng, killed = project(tmp_path), random.Random(3), 0
    while killed_at(root, str(rng.randint(12, 40)), rng.choice(["before", "after"])):
        killed += 1
    assert killed >= 3
    assert results(root) == results(reference)


def units_at_work() -> list[int]:
    """The processes of this test's own Ray in which units run: children of its raylet, which is a child of this one."""
    parents, named = dict[int, int](), list[int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            parents[int(path.parent.name)] = int(rest.split()[1])
            named += [int(path.parent.name)] * name.startswith("ray::_unit")
    return [pid for pid in named if parents.get(parents[pid]) == os.getpid()]


@pytest.mark.campaign
def test_ray_makes_the_same_bytes_though_its_workers_are_killed(reference, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    root, killed, ended = project(tmp_path), list[int](), threading.Event()

    def kill() -> None:
        while len(killed) < 3 and not ended.wait(0.05):
            if found := [pid for pid in units_at_work() if pid not in killed]:
                os.kill(found[0], signal.SIGKILL)
                killed.append(found[0])

    killer = threading.Thread(target=kill)
    try:
        executor = Ray().connect()
        killer.start()
        run_all(root, executor)
    finally:
        ended.set()
        killer.join()
        ray.shutdown()
    assert killed and results(root) == results(reference)
