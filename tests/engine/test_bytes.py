"""Same input, same bytes: whatever the workers, the order of work, and the moments at which the run was killed."""

import contextlib
import random
import signal
from pathlib import Path

import pytest

from datakit.engine.executors import Local, Progress, UnitExecutor
from datakit.engine.plan import Flow
from datakit.engine.recipe import load_recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout, inspect
from datakit.manifest import load, verify
from tests.engine.corpus import Shuffled, results, write_project
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


def run_all(root: Path, executor: UnitExecutor) -> None:
    place = OutputLayout(root=root, dataset="d")
    with contextlib.chdir(root):
        Flow(run=Run(place, executor, Progress()), recipe=load_recipe(root, "d")).all()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_project(tmp_path_factory.mktemp("reference"), rows=ROWS)
    run_all(root, Local(1))
    return root


def test_the_reference_has_work_for_many_and_balances(reference):
    manifests = {s: load(reference / f"manifests/d/{s}.json") for s in STAGES}
    assert len(manifests["ingest"].of_role("kept")) >= 3
    assert manifests["ingest"].ledger.rows.quarantined == 3
    assert manifests["dedup"].ledger.rows.dropped["exact_duplicate"] > 20
    assert manifests["dedup"].ledger.rows.dropped["near_duplicate"] > 20
    assert manifests["pack"].ledger.tokens.kept > 100_000
    assert len(manifests["pack"].facts["packed"]) >= 3
    assert [p for p in verify(reference / "manifests/d/pack.json", inspect) if p[1]] == []


def test_workers_and_order_do_not_change_a_byte(reference, tmp_path):
    root = write_project(tmp_path, rows=ROWS)
    run_all(root, Shuffled(3))
    assert results(root) == results(reference)


def test_a_run_killed_again_and_again_ends_with_the_same_bytes(reference, tmp_path):
    root, rng, killed = write_project(tmp_path, rows=ROWS), random.Random(3), 0
    while killed_at(root, str(rng.randint(8, 45)), rng.choice(["before", "after"])):
        killed += 1
    assert killed >= 3
    assert results(root) == results(reference)


def test_a_pack_that_was_killed_makes_the_missing_parts_alone(reference, tmp_path):
    root = write_project(tmp_path, rows=ROWS)
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
