"""Kernels as machine code beside the sources: the same results as through numba, and only where that is safe."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from datakit import native
from datakit.native import Kernels

SOURCE = """
import numpy as np
from numba import njit

from datakit.made_kernels_scale import scale


@njit(cache=False)
def summed(pair, factor, most, ratio, out):
    total = 0
    for i in range(len(pair.left)):
        out[i] = scale(pair.left[i], factor) + pair.right[0, i]
        total += out[i]
    return total, total * ratio > most


@njit(cache=False)
def nothing(out):
    out[:] = 7


@njit(cache=False)
def doubled(values):
    return values * 2


@njit(cache=False)
def room(size):
    return np.empty(size, np.int64)[:0].sum()
"""
SCALE = "from numba import njit\n\n\n@njit(cache=False)\ndef scale(value, factor):\n    return value * factor\n"


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Kernels]:
    """Makes the kernel modules of this file anew, with another body of `scale`, as after an edit."""
    folder = tmp_path / "datakit"
    folder.mkdir()
    monkeypatch.setattr("datakit.__path__", [*sys.modules["datakit"].__path__, str(folder)])
    monkeypatch.setattr(native, "_source", lambda module: folder / f"{module.rpartition('.')[2]}.py")

    def make(scale: str) -> Kernels:
        (folder / "made_kernels.py").write_text(SOURCE)
        (folder / "made_kernels_scale.py").write_text(SCALE.replace("value * factor", scale))
        for name in ("datakit.made_kernels", "datakit.made_kernels_scale"):
            sys.modules.pop(name, None)
        return Kernels("datakit.made_kernels")

    return make


def arguments() -> tuple[Any, ...]:
    pair = Pair(np.array([1, 2, 3]), np.array([[10, 20, 30]], np.int32))
    return pair, 5, np.uint64(89), 1.5, np.zeros(3, np.int64)


def test_a_kernel_gives_what_numba_gives(kernels):
    args = arguments()
    assert kernels("value * factor").summed(*args) == (90, True)
    assert args[-1].tolist() == [15, 30, 45]
    assert kernels("value * factor").nothing(args[-1]) is None
    assert args[-1].tolist() == [7, 7, 7]


def test_the_second_time_nothing_is_compiled(kernels, monkeypatch):
    kernels("value * factor").summed(*arguments())
    monkeypatch.setattr(native._Kernel, "_compile", lambda *_: pytest.fail("compiled again"))
    args = arguments()
    assert kernels("value * factor").summed(*args) == (90, True)
    assert args[-1].tolist() == [15, 30, 45]


def test_an_edit_in_an_imported_kernel_file_is_seen(kernels):
    assert kernels("value * factor").summed(*arguments())[0] == 90
    assert kernels("factor + value + 1").summed(*arguments())[0] == 84


def test_a_damaged_file_is_made_again(kernels, tmp_path):
    kernels("value * factor").summed(*arguments())
    (made,) = (tmp_path / "datakit" / "__pycache__").glob("made_kernels.*.made")
    whole = made.read_bytes()
    for damaged in (whole[:-9], whole[:40] + b"\x90" * 9 + whole[49:], b""):
        made.write_bytes(damaged)
        assert kernels("value * factor").summed(*arguments()) == (90, True)
        assert made.read_bytes() == whole


def test_a_kernel_that_asks_for_memory_is_left_to_numba(kernels, tmp_path):
    made = kernels("value * factor")
    assert made.doubled(np.arange(3)).tolist() == [0, 2, 4]
    assert made.room(4) == 0
    assert all(len(p.read_bytes()) < 64 for p in (tmp_path / "datakit" / "__pycache__").glob("*.made"))


def test_an_array_with_gaps_is_taken_as_it_is(kernels):
    out = np.zeros((4, 2), np.int64)
    kernels("value * factor").nothing(out[:, 0])
    assert out.tolist() == [[7, 0]] * 4


def test_a_folder_that_cannot_be_written_is_no_error(kernels, tmp_path, monkeypatch):
    (tmp_path / "datakit" / "__pycache__").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert kernels("value * factor").summed(*arguments()) == (90, True)
    assert len(list((tmp_path / "cache/datakit/made").iterdir())) == 1


def test_a_dedup_run_does_without_numba_once_its_kernels_are_made(tmp_path):
    rows = "".join(f'{{"id": "{i}", "text": "{"one two three four five six seven " * 9}{i}"}}\n' for i in range(150))
    (tmp_path / "in.jsonl").write_text(rows)
    script = (
        "import sys; from datakit.cli.main import main\n"
        "try: main(['dedup', 'in.jsonl', '--output', sys.argv[1]])\n"
        "except SystemExit as e: assert not e.code\n"
        "print('numba' in sys.modules)"
    )
    for turn in ("first", "second"):
        done = subprocess.run(
            [sys.executable, "-c", script, turn], cwd=tmp_path, capture_output=True, text=True, check=True
        )
    assert done.stdout.splitlines()[-1] == "False"
    first, second = ((tmp_path / turn / "manifest.json").read_bytes() for turn in ("first", "second"))
    assert first == second
