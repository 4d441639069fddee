"""Equal rows, arrays and files in bounded memory, and the ranges of hashes that rows are cut into."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from datakit.dedup.exact import Memory, first_of_equals, in_range

PAGE, MB = 4096, 1 << 20


def resident(array: np.ndarray) -> int:
    """Bytes of a mapped array that lie in this process's memory, by the system's own account."""
    begin = array.__array_interface__["data"][0]
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split(maxsplit=1)[0]
        if "-" in head and not head.endswith(":"):
            low, high = (int(part, 16) for part in head.split("-"))
            inside = low < begin + array.nbytes and high > begin
        elif inside and head == "Rss:":
            found += int(line.split()[1]) << 10
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell what lies in memory")
@pytest.mark.parametrize(("budget", "array_stays"), [(512 * MB, True), (1 * MB, False)])
def test_files_read_are_given_back_before_arrays(tmp_path: Path, budget: int, array_stays: bool) -> None:
    memory, path = Memory(budget, tmp_path), tmp_path / "sketch"
    path.write_bytes(bytes(160 * MB))
    array = memory.full((16 * MB,), 0, np.uint8)
    read = np.frombuffer(memory.map(path), np.uint8)
    array[:] = 7
    assert read[::PAGE].sum() == 0
    assert resident(read) > 128 * MB
    assert resident(array) == 16 * MB
    memory.release()
    assert resident(read) < 16 * MB
    assert (resident(array) == 16 * MB) == array_stays
    assert array.min() == 7


def test_a_large_array_takes_its_room_on_the_disk_at_once_and_leaves_no_file(tmp_path: Path) -> None:
    array = Memory(800, tmp_path).full((10, 20), -1, np.int32)
    assert array.shape == (10, 20) and (array == -1).all() and array.dtype == np.int32
    array[3, 4] = 7
    assert array.sum() == -192
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match=str(tmp_path)):
        Memory(800, tmp_path).full((1 << 45,), 0, np.int64)


@given(arrays(np.uint64, st.integers(0, 20)), st.sampled_from([1, 2, 8, 1 << 16]))
def test_ranges_hold_every_hash_once_and_in_order(hashes: np.ndarray, ranges: int) -> None:
    parts = [in_range(hashes, part, ranges) for part in range(min(ranges, 8))]
    if ranges <= 8:
        assert sorted(np.concatenate(parts).tolist()) == list(range(len(hashes)))
    for low, high in pairwise(parts):
        assert not len(low) or not len(high) or hashes[low].max() < hashes[high].min()


@given(arrays(np.uint64, st.tuples(st.integers(0, 20), st.just(2)), elements=st.integers(0, 2)))
def test_first_of_equals_needs_both_halves(digests: np.ndarray) -> None:
    seen: dict[tuple[int, int], int] = {}
    expected = [seen.setdefault((int(a), int(b)), row) for row, (a, b) in enumerate(digests)]
    assert first_of_equals(digests).tolist() == expected
