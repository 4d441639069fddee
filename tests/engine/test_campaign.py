"""A few trials of every part of `make campaign`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_hostile_files_are_read_or_refused_with_a_clear_error(tmp_path):
    """Files of every format with wrong bytes, offsets and lengths: none ends the process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.campaign", tmp_path / "c", "inputs=200"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "inputs  all                                    200       0" in done.stdout


@pytest.mark.campaign
def test_kills_flips_and_failing_disks_lose_nothing_and_are_not_believed(tmp_path):
    parts = ["faults=6", "flips=12", "kills=4"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.campaign", tmp_path / "c", *parts], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{part:<8}{'all':<34}" in done.stdout for part in ("faults", "flips", "kills"))
