"""A few trials of every part of `make campaign`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def campaign(folder: Path, *parts: str) -> str:
    command = [sys.executable, "-m", "bench.campaign", folder / "c", *parts]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_hostile_files_are_read_or_refused_with_a_clear_error(tmp_path):
    """Files of every format with wrong bytes, offsets and lengths: none ends the process."""
    assert "inputs  all                                    200       0" in campaign(tmp_path, "inputs=200")


@pytest.mark.campaign
def test_kills_flips_and_failing_disks_lose_nothing_and_are_not_believed(tmp_path):
    said = campaign(tmp_path, "faults=6", "flips=12", "kills=4")
    assert all(f"{part:<8}{'all':<34}" in said for part in ("faults", "flips", "kills"))
