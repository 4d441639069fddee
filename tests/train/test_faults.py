"""What goes wrong for real: killed while saving, a full disk, files that were damaged, weights that are no numbers."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from datakit.errors import DatakitError, ManifestError, ModelError
from train import distill, generate, sft
from train import eval as evaluation

STEPS = 6


def options(manifest: Path, out: Path) -> list[str]:
    plain = ["--manifest", str(manifest), "--out", str(out), "--preset", "tiny", "--steps", str(STEPS)]
    return [*plain, "--batch-rows", "4", "--threads", "1", "--dtype", "fp32", "--save-every", "2"]


def losses(out: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    assert sft.main([*options(manifest, out), "--keep-checkpoints", "0"]) == 0
    return out


KILL = """
import os, signal, sys
from train import checkpoint, sft
calls, whole = [], checkpoint.{function}
def killing(*args):
    calls.append(args)
    if len(calls) == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*args)
checkpoint.{function} = killing
sys.exit(sft.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("save_file", 4),  # the second checkpoint's model is written, its optimizer is not
        ("_flush", 19),  # all its files are written, some are on the disk
    ],
)
def test_killed_while_saving_the_checkpoint_before_is_used(
    whole: Path, manifest: Path, tmp_path: Path, function: str, call: int
) -> None:
    out, program = tmp_path / "run", KILL.format(function=function, call=call)
    done = subprocess.run([sys.executable, "-c", program, *options(manifest, out)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    names = sorted(p.name.split(".")[1] if p.name.startswith(".") else p.name for p in (out / "checkpoints").iterdir())
    assert names == ["step_00000002", "step_00000004"]  # the second is under a name that begins with a dot
    assert not (out / "checkpoints" / "step_00000004").exists()
    assert sft.main(["--resume", "--out", str(out)]) == 0
    assert losses(out) == losses(whole)
    assert not list((out / "checkpoints").glob(".*"))


def test_a_disk_that_is_full_stops_the_run_with_its_reason_and_costs_no_checkpoint(
    whole: Path, manifest: Path, tmp_path: Path
) -> None:
    """The system itself refuses to let files grow, as on a full disk, from the first checkpoint on."""
    out = tmp_path / "run"
    command = [sys.executable, "-m", "train.sft", *options(manifest, out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "saved" in line:
            break
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (200_000, 200_000))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    assert "cannot write the checkpoint" in said and "make room and go on with --resume" in said
    assert "Traceback" not in said
    names = [p.name for p in (out / "checkpoints").iterdir()]
    assert len(names) == 1 and names[0] in ("step_00000002", "step_00000004")
    assert sft.main(["--resume", "--out", str(out)]) == 0
    assert losses(out) == losses(whole)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-5] ^= 64
    file.write_bytes(data)


@pytest.mark.parametrize("spoil", [cut, flip, Path.unlink])
@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "rng.safetensors"])
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
        generate.main(["--checkpoint", str(folder), "--prompt", "x"])
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


def test_no_labels_at_all_is_refused(pack: Callable, tmp_path: Path) -> None:
    manifest = pack([[([5, 6, 7, 8], [])]] * 3, seq_len=16)
    with pytest.raises(ManifestError, match="no token is a label"):
        sft.main(["--manifest", str(manifest), "--out", str(tmp_path / "out"), "--steps", "1"])


def test_a_loss_that_is_no_number_leaves_the_rows_of_its_step_in_a_file(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A learning rate that drives the weights to infinity, as users do."""
    out = tmp_path / "run"
    with pytest.raises(DatakitError, match=r"not finite, so the run stops .* also in .*not_finite_step_") as stopped:
        sft.main([*options(manifest, out), "--lr", "1e30", "--max-grad-norm", "0", "--warmup-steps", "0"])
    (place,) = out.glob("not_finite_step_*.json")
    told = json.loads(place.read_text())
    (rows,) = told["rows"]
    assert rows["manifest"] == str(manifest)
    assert rows["packed_rows"] and str(rows["packed_rows"]) in str(stopped.value)
    assert all(key // 100 in rows["packed_rows"] for key in rows["row_keys"])
    assert told["step"] > 1 and place.name == f"not_finite_step_{told['step']:08d}.json"
    assert all(int(p.name[-8:]) < told["step"] for p in (out / "checkpoints").glob("step_*"))
