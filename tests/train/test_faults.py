"""What goes wrong for real: killed while saving, a full disk, files that were damaged, weights that are no numbers."""

import json
import os
import re
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from safetensors.torch import load_file, save_file

from datakit.errors import ModelError, UsageError
from tests.files import flip
from tests.train.runs import as_flags, losses
from train import checkpoint, distill, flags, generate, sft
from train import eval as evaluation

STEPS = 6


def options(manifest: Path, out: Path) -> list[str]:
    plain = {"preset": "tiny", "steps": STEPS, "batch_rows": 4, "threads": 1, "dtype": "fp32", "save_every": 2}
    return as_flags(manifest=manifest, out=out, **plain)


@pytest.fixture(scope="module")
def whole(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    assert sft.main([*options(manifest, out), "--keep-checkpoints", "0"]) == 0
    return out


def assert_same(out: Path, expected: Path) -> None:
    """Losses, and every tensor and number of the last checkpoint."""
    assert losses(out) == losses(expected)
    mine, theirs = (o / "checkpoints" / f"step_{STEPS:08d}" for o in (out, expected))
    assert sorted(f.name for f in mine.iterdir()) == sorted(f.name for f in theirs.iterdir())
    assert all((mine / f.name).read_bytes() == f.read_bytes() for f in theirs.glob("*.safetensors"))
    one, other = (json.loads((end / "state.json").read_text()) for end in (mine, theirs))
    assert one["loop"] == other["loop"]


def killed_at(module: ModuleType, function: str, call: int, argv: list[str]) -> Callable[[], int]:
    """`train.sft`, killed at the n-th call of a function."""

    def body() -> int:
        calls, whole = [], getattr(module, function)

        def killing(*args: object) -> object:
            calls.append(args)
            if len(calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return whole(*args)

        setattr(module, function, killing)
        return sft.main(argv)

    return body


@pytest.mark.parametrize(
    ("function", "call", "more"),
    [
        ("flush", 19, ["--dtype", "fp16"]),  # all its files are written, some are on the disk
        ("save_file", 4, ["--async-save", "--step-sleep-ms", "200"]),  # the training goes on meanwhile
    ],
)
def test_killed_while_saving_the_checkpoint_before_is_used(whole, manifest, tmp_path, forked, function, call, more):
    out = tmp_path / "run"
    if "fp16" in more:  # more to save: the scale of the loss
        whole = tmp_path / "whole"
        assert sft.main([*options(manifest, whole), *more]) == 0
    process = forked(killed_at(checkpoint, function, call, [*options(manifest, out), *more]))
    assert process.wait() == -signal.SIGKILL, process.output()
    names = sorted(p.name.split(".")[1] if p.name.startswith(".") else p.name for p in (out / "checkpoints").iterdir())
    assert names == ["step_00000002", "step_00000004"]  # the second is under a name that begins with a dot
    assert not (out / "checkpoints" / "step_00000004").exists()
    assert sft.main(["--resume", "--out", str(out)]) == 0
    assert_same(out, whole)
    assert not list((out / "checkpoints").glob(".*"))


@pytest.mark.skipif(sys.platform != "linux", reason="limits the process on Linux only")
@pytest.mark.parametrize(("preset", "limit", "code"), [("26m", "0.001", 1), ("tiny", "0.9", 0)])
def test_past_a_memory_limit_the_run_ends_with_one_clear_error(manifest, tmp_path, forked, preset, limit, code):
    """The system refuses what the process asks for beyond the limit."""
    out = tmp_path / "run"

    def body() -> int:
        sys.argv = ["train.sft", *options(manifest, out), "--preset", preset, "--memory-limit", limit]
        before = resource.getrlimit(resource.RLIMIT_DATA)
        ended = flags.guarded(sft.main)
        assert resource.getrlimit(resource.RLIMIT_DATA) == before, "later trainers of the process have no limit"
        return ended

    process = forked(body)
    assert process.wait() == code, process.output()
    assert bool(re.search(r"error: out of memory: .* --memory-limit is too low", process.output())) == bool(code)
    assert "Traceback" not in process.output() and (out / "checkpoints").exists() == (not code)


def test_nothing_starts_from_a_damaged_model_and_a_run_goes_on_from_the_checkpoint_before(
    whole, manifest, tmp_path, capsys
):
    out = Path(shutil.copytree(whole, tmp_path / "run"))
    folder, fresh = out / "checkpoints" / "step_00000006", ["--manifest", str(manifest), "--out", str(tmp_path / "out")]
    flip(folder / "model.safetensors")
    for main, argv in (
        (sft.main, [*fresh, "--init", str(folder)]),
        (distill.main, [*fresh, "--preset", "tiny", "--teacher", str(folder)]),
        (generate.main, ["--model", str(folder), "--prompt", "x"]),
        (evaluation.main, ["--model", str(folder), "--manifest", str(manifest)]),
    ):
        with pytest.raises(ModelError, match=f"{folder}.*changed or damaged since it was saved"):
            main(argv)
    assert not (tmp_path / "out").exists()
    assert sft.main(["--resume", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "step_00000006/model.safetensors: missing or damaged" in said
    assert f"resumed from {out}/checkpoints/step_00000004" in said
    assert losses(out) == losses(whole)


def test_weights_that_are_no_numbers_are_refused_by_tensor(whole, manifest, tmp_path):
    folder = Path(shutil.copytree(whole / "checkpoints" / "step_00000006", tmp_path / "model"))
    (folder / "state.json").unlink()  # so that only the weights themselves can tell
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][3:5] = float("nan")
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"'model\.norm\.weight': 2 of 128 values are not finite"):
        sft.main(["--manifest", str(manifest), "--out", str(tmp_path / "out"), "--init", str(folder), "--steps", "1"])


def test_of_two_runs_in_one_folder_the_second_is_refused_and_the_first_goes_on(
    whole, manifest, tmp_path, forked, capsys
):
    out = tmp_path / "run"
    first = forked(lambda: sft.main([*options(manifest, out), "--step-sleep-ms", "200"]))
    first.until("step=1 ")  # before its first checkpoint
    for more in ([], ["--resume"]):
        with pytest.raises(UsageError, match="another run is writing to this folder"):
            sft.main([*options(manifest, out), *more])
    assert first.wait() == 0, first.output()
    assert_same(out, whole)
    assert sft.main(["--resume", "--out", str(out)]) == 0
