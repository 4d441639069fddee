"""`--memory-limit`, in processes of their own: a limit of this one would stay."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the process on Linux only")


def trained(manifest: Path, out: Path, preset: str, limit: str) -> subprocess.CompletedProcess[str]:
    options = ["--manifest", str(manifest), "--preset", preset, "--steps", "2", "--out", str(out)]
    options += ["--memory-limit", limit]
    return subprocess.run([sys.executable, "-m", "train.sft", *options], capture_output=True, text=True, cwd=ROOT)


def test_past_the_limit_the_run_ends_with_one_clear_error(manifest: Path, tmp_path: Path) -> None:
    done = trained(manifest, tmp_path / "run", "26m", "0.001")
    assert done.returncode == 1
    assert re.search(r"error: out of memory: .* --memory-limit is too low", done.stderr)
    assert "Traceback" not in done.stderr


def test_a_limit_with_room_changes_nothing(manifest: Path, tmp_path: Path) -> None:
    done = trained(manifest, tmp_path / "run", "tiny", "0.9")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "checkpoints" / "step_00000002").is_dir()
