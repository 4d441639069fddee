"""Mapped memory is given back once it is much: what was read first, arrays only when they are too much themselves."""

from pathlib import Path

import numpy as np
import pytest

from datakit.dedup.memory import Memory

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
