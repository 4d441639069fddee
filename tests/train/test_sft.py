"""`python -m train.sft` from the outside: what it logs, refuses, and goes on from."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from train import flags
from train.sft import main

LINE = re.compile(
    r"^\[train\] step=\d+ epoch=\d+/\d+ loss=\d+\.\d{4} lr=\d\.\d\de-\d\d tok/s=\d+ \| step_ms=\d+ eta=\d:\d\d:\d\d"
)


def sft(manifest: Path, out: Path, *more: str, steps: int = 12) -> int:
    plain = ["--manifest", str(manifest), "--out", str(out), "--preset", "tiny", "--steps", str(steps)]
    return main([*plain, "--batch-rows", "4", "--grad-accum", "2", "--threads", "1", "--log-every", "1", *more])


def losses(out: Path) -> dict[int, float]:
    records = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return {r["step"]: r["loss"] for r in records}


@pytest.fixture(scope="module")
def whole(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 12 steps that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert sft(manifest, out, "--save-every", "4", "--keep_checkpoints", "0") == 0
    return out


def test_training_lowers_the_loss_and_leaves_checkpoints(whole: Path) -> None:
    found = losses(whole)
    assert list(found) == list(range(1, 13))
    assert found[12] < found[1] - 0.5
    steps = sorted(p.name for p in (whole / "checkpoints").iterdir())
    assert steps == ["step_00000004", "step_00000008", "step_00000012"]
    names = {p.name for p in (whole / "checkpoints" / steps[-1]).iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "state.json"} <= names


def test_the_log_line_begins_as_minillms_does(manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert sft(manifest, tmp_path / "run", "--log-every", "2", steps=3) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " step=" in line]
    assert [line.split()[1] for line in lines] == ["step=1", "step=2", "step=3"]
    assert all(LINE.match(line) and len(line) <= 100 for line in lines), lines


@pytest.mark.parametrize("stop", [3, 8])
def test_a_stopped_and_resumed_run_has_the_losses_of_a_whole_one(
    whole: Path, manifest: Path, tmp_path: Path, stop: int
) -> None:
    out = tmp_path / "run"
    assert sft(manifest, out, "--stop-at", str(stop)) == 0
    assert list(losses(out)) == list(range(1, stop + 1))
    assert main(["--resume", "--out", str(out)]) == 0  # every other value is the run's own
    assert losses(out) == losses(whole)


def test_a_run_resumes_from_the_newest_checkpoint_that_is_whole(
    whole: Path, manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "run"))
    for step, name in ((12, "model.safetensors"), (8, "optimizer.safetensors")):
        file = out / "checkpoints" / f"step_{step:08d}" / name
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    assert sft(manifest, out, "--resume") == 0
    said = capsys.readouterr().out
    assert "step_00000012/model.safetensors" in said
    assert "step_00000008/optimizer.safetensors" in said
    assert f"resumed from {out}/checkpoints/step_00000004" in said
    assert losses(out) == losses(whole)


def train(manifest: Path, out: Path, *more: str) -> Callable[[], int]:
    """`train.sft` as a process runs it."""

    def body() -> int:
        sys.argv = ["train.sft", "--manifest", str(manifest), "--out", str(out), "--preset", "tiny", "--steps", "12"]
        sys.argv += ["--batch-rows", "4", "--grad-accum", "2", "--threads", "1", "--log-every", "1", *more]
        return flags.guarded(main)

    return body


def test_a_killed_run_resumes_with_the_losses_of_a_whole_one(
    whole: Path, manifest: Path, tmp_path: Path, forked: Callable
) -> None:
    out = tmp_path / "run"
    process = forked(train(manifest, out, "--save-every", "1"))
    process.until("step=5 ")
    os.kill(process.pid, signal.SIGKILL)  # wherever it is: perhaps half way through a checkpoint
    assert process.wait() == -signal.SIGKILL
    with (out / "metrics.jsonl").open("a") as f:
        f.write('{"step": 6, "lo')  # as if cut short while writing
    assert sft(manifest, out, "--resume") == 0
    assert losses(out) == losses(whole)
    assert not list((out / "checkpoints").glob(".*"))


def test_sigterm_finishes_the_step_saves_and_ends_with_its_number(
    whole: Path, manifest: Path, tmp_path: Path, forked: Callable
) -> None:
    out = tmp_path / "run"
    process = forked(train(manifest, out, "--step-sleep-ms", "50"))
    process.until("step=2 ")
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM, process.output()
    assert "SIGTERM: stopping after this step" in process.output()
    saved = max(losses(out))
    assert (out / "checkpoints" / f"step_{saved:08d}").is_dir()
    assert sft(manifest, out, "--resume") == 0
    assert losses(out) == losses(whole)


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Run:
    """run(*argv) -> exit code and what was written to stderr."""

    def call(*argv: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["train.sft", *argv])
        code = flags.guarded(main)
        return code, capsys.readouterr().err

    return call


def test_an_out_folder_with_a_run_is_not_overwritten(whole: Path, manifest: Path, run: Run) -> None:
    code, said = run("--manifest", str(manifest), "--out", str(whole))
    assert code == 2
    assert "holds a run, up to step_00000012: add --resume" in said


def test_a_resumed_run_refuses_other_data_and_another_order_with_both_values(
    whole: Path, manifest: Path, pack: Callable, random_rows: Callable, tmp_path: Path,
    run: Run,
) -> None:  # fmt: skip
    out = Path(shutil.copytree(whole, tmp_path / "run"))
    versions = [json.loads(p.read_text())["version"] for p in (manifest, pack(random_rows(9, 64), seq_len=64))]
    other = pack(random_rows(9, 64), seq_len=64)
    code, said = run("--resume", "--out", str(out), "--manifest", str(other))
    assert code == 1
    assert all(v in said for v in versions)
    code, said = run("--resume", "--out", str(out), "--batch-rows", "5")
    assert code == 1
    assert "batch_rows 4, and this run has 5" in said
    code, said = run("--resume", "--out", str(out), "--preset", "26m")
    assert code == 1
    assert "in the checkpoint and" in said


def test_an_init_folder_of_another_tokenizer_vocabulary_or_length_is_refused_with_both_values(
    whole: Path, pack: Callable, random_rows: Callable, tmp_path: Path,
    run: Run,
) -> None:  # fmt: skip
    folder = Path(shutil.copytree(whole / "checkpoints" / "step_00000012", tmp_path / "model"))
    rows = random_rows(9, 64)

    def start(manifest: Path) -> tuple[int, str]:
        more = ["--init", str(folder), "--manifest", str(manifest), "--out", str(tmp_path / "run"), "--steps", "1"]
        return run(*more)

    assert start(pack(rows, seq_len=64)) == (0, "")
    code, said = start(pack(rows, seq_len=64, vocab_size=340))
    assert code == 1
    assert "340 tokens" in said and "320" in said
    code, said = start(pack(rows, seq_len=4096))
    assert code == 1
    assert "4096" in said and "2048" in said
    definition = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(definition + "\n")
    code, said = start(pack(rows, seq_len=64))
    assert code == 1
    assert len(re.findall(r"[0-9a-f]{64}", said)) == 2


def test_preference_pairs_are_refused(pack: Callable, random_rows: Callable, run: Run, tmp_path: Path) -> None:
    pairs = pack(random_rows(4, 64), seq_len=64, rows_per_unit=2)
    code, said = run("--manifest", str(pairs), "--out", str(tmp_path / "run"))
    assert code == 1
    assert "2 rows per unit" in said


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        (["--manifest", "nowhere.json"], 1, "nowhere.json: cannot read the manifest"),
        ([], 2, "--manifest"),
        (["--manifest", "x", "--lr", "-1"], 2, "lr = -1.0: expected 0 or more"),
        (["--manifest", "x", "--device", "abacus"], 2, "--device abacus"),
        (["--manifest", "x", "--init", "nowhere"], 1, "x: cannot read the manifest"),
    ],
)
def test_errors_are_one_paragraph_and_an_exit_code(argv: list[str], code: int, text: str, run: Run) -> None:
    found, said = run(*argv)
    assert found == code
    assert said.startswith("error: ") and said.count("\n") == 1 and text in said


@pytest.mark.parametrize("argv", [["--no-such-flag"], ["--steps", "many"], ["--preset", "7b"]])
def test_a_wrong_flag_is_a_usage_error(argv: list[str], run: Run) -> None:
    code, said = run(*argv)
    assert code == 2 and argv[0] in said and said.startswith("error: ")


def test_plain_text_trains_too(pack: Callable, random_rows: Callable, tmp_path: Path) -> None:
    manifest = pack(random_rows(20, 64), seq_len=64, labelled=False)
    assert sft(manifest, tmp_path / "run", steps=4) == 0
    assert losses(tmp_path / "run")[4] < losses(tmp_path / "run")[1]


def test_the_trainer_starts_without_the_factorys_libraries(manifest: Path, tmp_path: Path) -> None:
    code = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyarrow", "numba", "fasttext", "ray", "datasketch", "orjson"):
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
from train.sft import main
options = ["--manifest", {str(manifest)!r}, "--out", {str(tmp_path / "run")!r}, "--preset", "tiny", "--steps", "1"]
assert main(options) == 0
from train.generate import main
assert main(["--model", {str(tmp_path / "run")!r}, "--prompt", "hello", "--max-new-tokens", "2"]) == 0
used = {{n for n in sys.modules if n.startswith("datakit.") and n.count(".") == 1}}
allowed = {{"manifest", "pack", "config", "errors", "terminal", "storage", "object_store"}}
assert used <= {{f"datakit.{{name}}" for name in allowed}}, used
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_killed_while_starting_leaves_nothing_that_stops_a_fresh_start(manifest: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "train.sft", "--manifest", str(manifest), "--out", str(out), "--preset", "tiny"]
    process = subprocess.Popen([*command, "--steps", "12"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    process.kill()
    process.wait()
    assert sft(manifest, out, steps=1) == 0
