"""A few trials of every part of `make campaign`."""

import pytest

from tests.processes import python


def test_hostile_files_are_read_or_refused_with_a_clear_error(tmp_path):
    """Files of every format with wrong bytes, offsets and lengths: none ends the process."""
    said = python("-m", "bench.campaign", tmp_path / "c", "inputs=200").stdout
    assert "inputs  all                                    200       0" in said


@pytest.mark.campaign
def test_kills_flips_and_failing_disks_lose_nothing_and_are_not_believed(tmp_path):
    said = python("-m", "bench.campaign", tmp_path / "c", "faults=6", "flips=12", "kills=4").stdout
    assert all(f"{part:<8}{'all':<34}" in said for part in ("faults", "flips", "kills"))
