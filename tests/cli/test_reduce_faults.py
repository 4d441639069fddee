"""The phase that compares all rows, at every level of dedup: killed in the middle, or given a corrupted file."""

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from datakit.engine import executors as work
from tests.cli.test_levels import LEVELS, write_project
from tests.engine.corpus import results

DRIVER = """
import json, os, signal, sys
from datakit.engine import executors as work
stage, moment, workers = sys.argv[1], int(sys.argv[2]), sys.argv[3]
perform, calls = work._perform, {}

def watched(unit, data, records, needs, task):
    running = records.parents[2].name
    if records.name != "reduce":
        return perform(unit, data, records, needs, task)
    calls[running] = 0

    def count(frame, event, _):
        if event == "call" and "/datakit/dedup/" in frame.f_code.co_filename:
            calls[running] += 1
            if (running, calls[running]) == (stage, moment):
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    done = perform(unit, data, records, needs, task)
    sys.setprofile(None)
    return done

work._perform = watched
from datakit.cli.main import datakit
datakit.main(["run", "--dataset", "d", "--workers", workers], standalone_mode=False)
print(json.dumps(calls))
"""
"""A run that kills itself at the n-th call of a function of `datakit.dedup` within the reduce phase of a stage. One
that ends prints how many calls there were in that of each stage."""


def run(root: Path, stage: str, moment: int, workers: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", DRIVER, stage, str(moment), str(workers)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


@pytest.mark.parametrize("levels", [LEVELS[::2], pytest.param(LEVELS[1::2], marks=pytest.mark.campaign)])
def test_a_run_killed_within_the_reduce_phase_of_each_level_ends_with_the_same_bytes(
    tmp_path: Path, levels: list[str]
) -> None:
    whole, root = (write_project(tmp_path / name, rows=300) for name in ("whole", "killed"))
    done = run(whole, "none", 0, workers=3)
    assert done.returncode == 0, done.stderr
    calls = json.loads(done.stdout.splitlines()[-1])
    assert calls.pop("ingest") == 0  # it compares ids, without a function of this room
    assert list(calls) == LEVELS and min(calls.values()) > 10
    for stage, share in zip(levels, itertools.cycle((0.2, 0.9)), strict=False):
        killed = run(root, stage, max(1, int(share * calls[stage])), workers=1)
        assert killed.returncode == -signal.SIGKILL, (stage, share, killed.stderr)
        assert not (root / f"manifests/d/{stage}.json").exists()
        assert not list(root.glob(f"data/d/{stage}/*/.work/reduce/*.json"))
    assert run(root, "none", 0, workers=2).returncode == 0
    assert results(root) == results(whole)


@pytest.mark.parametrize("after", ["sketch", "reduce"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_bit_that_flips_between_two_phases_of_one_run_is_noticed_and_repaired_by_the_next_run(
    datakit: Callable, project: Path, monkeypatch: pytest.MonkeyPatch, level: str, after: str
) -> None:
    write_project(project, rows=60)
    assert datakit("run", "--dataset", "d", "--until", level).code == 0
    whole = results(project)
    for path in (project / f"manifests/d/{level}.json", *project.glob(f"data/d/{level}/*")):
        path.rename(project / f"aside-{path.name}")
    units = work.Work.units

    def corrupted(self: work.Work, name: str, *args: object, **more: object) -> list[work.Result]:
        made = units(self, name, *args, **more)  # type: ignore[arg-type]
        if name == after and self.data.parent.name == level:
            file = self.data / made[0]["files"][0][0]
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 4
            file.write_bytes(data)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(work.Work, "units", corrupted)
        said = datakit("run", "--dataset", "d", "--until", level)
    assert said.code == 1 and "changed after datakit wrote it" in said.err
    assert ("sketches/part-00000.arrow" if after == "sketch" else "decisions.arrow") in said.err
    assert not (project / f"manifests/d/{level}.json").exists()
    assert datakit("run", "--dataset", "d", "--until", level).code == 0
    assert results(project) == whole
