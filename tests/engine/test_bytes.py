"""Same input, same bytes: whatever the workers, the order of work, Ray, and the moments at which the run was killed."""

import contextlib
import json
import os
import random
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from datakit.engine.executors import Local, Ray
from datakit.engine.store import inspect
from datakit.manifest import Manifest, load, verify
from tests.engine.corpus import Shuffled, results, run_all, write_corpus, write_project
from tests.files import write_recipe, write_rows
from tests.processes import python

ROWS = 900
STAGES = ["ingest", "language", "dedup", "filter", "tokenizer", "tokenize", "pack"]

KILLED = """
import os, signal, sys
from pathlib import Path
moment, side = sys.argv[1:]
calls = 0
def watched(move):
    def kill(self, target):
        global calls
        calls += 1
        meant = moment in (str(calls), f"{target.parent.name}/{target.name}")
        if meant and side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        made = move(self, target)
        if meant:
            os.kill(os.getpid(), signal.SIGKILL)
        return made
    return kill
Path.rename, Path.replace = watched(Path.rename), watched(Path.replace)
from datakit.cli.main import datakit
datakit.main(["run", "--dataset", "d", "--workers", "1", "--json"], standalone_mode=False)
"""
"""A run that kills itself at its n-th rename, or at that of a file: every shard, record and manifest is put in its
place by one."""


def killed_at(root: Path, moment: str, side: str) -> bool:
    """Whether the run was killed; False where it ended before that moment."""
    done = python("-c", KILLED, moment, side, ends=None, cwd=root)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


# A whole line; and repeated passages and meaning, which compare rows in units of their own.


def line_has_work(made: dict[str, Manifest]) -> None:
    assert [*made] == sorted(STAGES) and len(made["ingest"].of_role("kept")) >= 3
    assert made["ingest"].ledger.rows.quarantined == 3
    assert made["dedup"].ledger.rows.dropped["exact_duplicate"] > 20
    assert made["dedup"].ledger.rows.dropped["near_duplicate"] > 20
    assert made["pack"].ledger.tokens.kept > 100_000 and len(made["pack"].facts["packed"]) >= 3


COMPARED = """
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


def write_compared(root: Path) -> Path:
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
    write_recipe(root, COMPARED)
    return root


def comparison_has_work(made: dict[str, Manifest]) -> None:
    repeats, meaning = made["dedup_repeats"], made["dedup_semantic"]
    assert repeats.ledger.notes["lines_cut"] > 100
    assert meaning.facts["cells"] == 6 and meaning.ledger.rows.dropped["semantic_duplicate"] > 100


class Case(NamedTuple):
    write: Callable[[Path], Path]
    has_work: Callable[[dict[str, Manifest]], None]
    last: str
    moments: tuple[int, int]
    """Renames after which it is killed."""


CASES = {
    "line": Case(partial(write_project, rows=ROWS), line_has_work, "pack", (8, 45)),
    "comparison": Case(write_compared, comparison_has_work, "dedup_semantic", (12, 40)),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def reference(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = case.write(tmp_path_factory.mktemp("reference"))
    run_all(root, Local(1))
    return root


def test_the_reference_has_work_for_many_and_balances(case, reference):
    paths = [path for path in sorted(reference.glob("manifests/d/*.json")) if ".run." not in path.name]
    case.has_work({path.stem: load(path) for path in paths})
    assert [p for p in verify(reference / f"manifests/d/{case.last}.json", inspect) if p[1]] == []


def test_workers_and_order_do_not_change_a_byte(case, reference, tmp_path):
    root = case.write(tmp_path)
    run_all(root, Shuffled(3))
    assert results(root) == results(reference)


def test_a_run_killed_again_and_again_ends_with_the_same_bytes(case, reference, tmp_path):
    root, rng, killed = case.write(tmp_path), random.Random(3), 0
    while killed_at(root, str(rng.randint(*case.moments)), rng.choice(["before", "after"])):
        killed += 1
    assert killed >= 3
    assert results(root) == results(reference)


@pytest.mark.parametrize("case", ["line"], indirect=True)
def test_a_pack_that_was_killed_makes_the_missing_parts_alone(case, reference, tmp_path):
    root = case.write(tmp_path)
    assert killed_at(root, "kept/train-00002.seg.bin", "after")
    parts = [sorted(root.glob(f"data/d/pack/*/kept/train-0000{n}.*")) for n in range(3)]
    assert [len(files) for files in parts[:2]] == [5, 5] and 0 < len(parts[2]) < 5
    before = {file: file.stat().st_ino for files in parts for file in files}
    assert not killed_at(root, "none", "before")
    assert {file for file, inode in before.items() if file.stat().st_ino == inode} == {*parts[0], *parts[1]}
    assert results(root) == results(reference)


@pytest.mark.campaign
def test_a_run_killed_on_either_side_of_every_manifest_ends_with_the_same_bytes(tmp_path):
    whole = write_project(tmp_path / "whole", rows=120, files=2)
    root = write_project(tmp_path / "killed", rows=120, files=2)
    for stage in STAGES:
        assert killed_at(root, f"d/{stage}.json", "before")
        assert not (root / f"manifests/d/{stage}.json").exists()
        assert killed_at(root, f"d/{stage}.json", "after")
        assert (root / f"manifests/d/{stage}.json").exists()
    for folder in (root, whole):
        assert not killed_at(folder, "none", "before")
    assert results(root) == results(whole)


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
@pytest.mark.parametrize("case", ["comparison"], indirect=True)
def test_ray_makes_the_same_bytes_though_its_workers_are_killed(case, reference, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    root, killed, ended = case.write(tmp_path), list[int](), threading.Event()

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
