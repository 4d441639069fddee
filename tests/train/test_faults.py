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
from tests.train.runs import losses
from train import checkpoint, distill, flags, generate, sft
from train import eval as evaluation

STEPS = 6


def options(manifest: Path, out: Path) -> list[str]:
    plain = ["--manifest", str(manifest), "--out", str(out), "--preset", "tiny", "--steps", str(STEPS)]
    return [*plain, "--batch-rows", "4", "--threads", "1", "--dtype", "fp32", "--save-every", "2"]


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
    assert (
        json.loads((mine / "state.json").read_text())["loop"] == json.loads((theirs / "state.json").read_text())["loop"]
    )


HALF = ["--dtype", "fp16"]
"""More to save: averages, and the scale of the loss."""


@pytest.fixture(scope="module")
def whole_half(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("half") / "run"
    assert sft.main([*options(manifest, out), *HALF]) == 0
    return out


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
    ("module", "function", "call", "more"),
    [
        (checkpoint, "_flush", 19, []),  # all its files are written, some are on the disk
        (checkpoint, "save_file", 3, HALF),  # its model is written, its optimizer is not
        (checkpoint, "save_file", 4, ["--async-save", "--step-sleep-ms", "200"]),  # the training goes on meanwhile
    ],
)
def test_killed_while_saving_the_checkpoint_before_is_used(
    whole: Path,
    whole_half: Path,
    manifest: Path,
    tmp_path: Path,
    forked: Callable,
    module: ModuleType,
    function: str,
    call: int,
    more: list[str],
) -> None:
    out = tmp_path / "run"
    process = forked(killed_at(module, function, call, [*options(manifest, out), *more]))
    assert process.wait() == -signal.SIGKILL, process.output()
    names = sorted(p.name.split(".")[1] if p.name.startswith(".") else p.name for p in (out / "checkpoints").iterdir())
    assert names == ["step_00000002", "step_00000004"]  # the second is under a name that begins with a dot
    assert not (out / "checkpoints" / "step_00000004").exists()
    assert sft.main(["--resume", "--out", str(out)]) == 0
    assert_same(out, whole_half if more == HALF else whole)
    assert not list((out / "checkpoints").glob(".*"))


def test_a_disk_that_is_full_stops_the_run_with_its_reason_and_costs_no_checkpoint(
    whole: Path, manifest: Path, tmp_path: Path, forked: Callable
) -> None:
    """The system itself refuses to let files grow, as on a full disk, from the first checkpoint on."""
    out = tmp_path / "run"

    def body() -> int:
        sys.argv = ["train.sft", *options(manifest, out), "--step-sleep-ms", "50"]
        return flags.guarded(sft.main)

    process = forked(body)
    process.until("saved")
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (200_000, 200_000))
    assert process.wait() == 1, process.output()
    said = process.output()
    assert "cannot write the checkpoint" in said and "free some space and continue with --resume" in said
    assert "Traceback" not in said
    names = [p.name for p in (out / "checkpoints").iterdir()]
    assert len(names) == 1 and names[0] in ("step_00000002", "step_00000004")
    assert sft.main(["--resume", "--out", str(out)]) == 0
    assert losses(out) == losses(whole)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the process on Linux only")
@pytest.mark.parametrize(("preset", "limit", "code"), [("26m", "0.001", 1), ("tiny", "0.9", 0)])
def test_past_a_memory_limit_the_run_ends_with_one_clear_error(
    manifest: Path, tmp_path: Path, forked: Callable, preset: str, limit: str, code: int
) -> None:
    """The system refuses what the process asks for beyond the limit."""
    out = tmp_path / "run"

    def body() -> int:
        sys.argv = ["train.sft", *options(manifest, out), "--preset", preset, "--memory-limit", limit]
        return flags.guarded(sft.main)

    process = forked(body)
    assert process.wait() == code, process.output()
    assert bool(re.search(r"error: out of memory: .* --memory-limit is too low", process.output())) == bool(code)
    assert "Traceback" not in process.output() and (out / "checkpoints").exists() == (not code)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-5] ^= 64
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "name"),
    [(cut, "model.safetensors"), (flip, "optimizer.safetensors"), (Path.unlink, "rng.safetensors")],
)
def test_a_damaged_checkpoint_is_passed_over(
    whole: Path, manifest: Path, tmp_path: Path, spoil: Callable, name: str, capsys: pytest.CaptureFixture
) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "run"))
    spoil(out / "checkpoints" / "step_00000006" / name)
    assert sft.main(["--resume", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"step_00000006/{name}: missing or damaged" in said
    assert f"resumed from {out}/checkpoints/step_00000004" in said
    assert losses(out) == losses(whole)


@pytest.mark.parametrize("spoil", [cut, flip, Path.unlink])
def test_nothing_starts_from_a_damaged_model(whole: Path, manifest: Path, tmp_path: Path, spoil: Callable) -> None:
    folder = Path(shutil.copytree(whole / "checkpoints" / "step_00000006", tmp_path / "model"))
    spoil(folder / "model.safetensors")
    fresh = ["--manifest", str(manifest), "--out", str(tmp_path / "out"), "--steps", "1"]
    with pytest.raises(ModelError, match=r"cannot read the weights|changed or damaged since it was saved"):
        sft.main([*fresh, "--init", str(folder)])
    with pytest.raises(ModelError, match=str(folder)):
        distill.main([*fresh, "--preset", "tiny", "--teacher", str(folder)])
    with pytest.raises(ModelError, match=str(folder)):
        generate.main(["--model", str(folder), "--prompt", "x"])
    with pytest.raises(ModelError, match=str(folder)):
        evaluation.main(["--model", str(folder), "--manifest", str(manifest)])
    assert not (tmp_path / "out").exists()


def test_weights_that_are_no_numbers_are_refused_by_tensor(whole: Path, manifest: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole / "checkpoints" / "step_00000006", tmp_path / "model"))
    (folder / "state.json").unlink()  # so that only the weights themselves can tell
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][3:5] = float("nan")
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"'model\.norm\.weight': 2 of 128 values are not finite"):
        sft.main(["--manifest", str(manifest), "--out", str(tmp_path / "out"), "--init", str(folder), "--steps", "1"])


def test_of_two_runs_in_one_folder_the_second_is_refused_and_the_first_goes_on(
    whole: Path, manifest: Path, tmp_path: Path, forked: Callable, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "run"
    first = forked(lambda: sft.main([*options(manifest, out), "--step-sleep-ms", "200"]))
    first.until("step=1 ")  # before its first checkpoint
    for more in ([], ["--resume"]):
        with pytest.raises(UsageError, match="another run is writing to this folder"):
            sft.main([*options(manifest, out), *more])
    assert first.wait() == 0, first.output()
    assert_same(out, whole)
    assert sft.main(["--resume", "--out", str(out)]) == 0
