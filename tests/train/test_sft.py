"""`python -m train.sft` from the outside: what it logs, refuses, and goes on from; and train.pretrain."""

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from datakit.manifest import load
from tests.train.runs import losses, records
from train import flags, pretrain
from train.sft import main


def argv(manifest: Path, out: Path, *more: str, steps: int = 12) -> list[str]:
    plain = ["--manifest", str(manifest), "--out", str(out), "--preset", "tiny", "--steps", str(steps), "--threads=1"]
    return [*plain, "--batch-rows", "4", "--grad-accum", "2", "--log-every", "1", *more]


@pytest.fixture(scope="module")
def whole(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 12 steps that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert main(argv(manifest, out, "--save-every", "4", "--keep_checkpoints", "0")) == 0
    return out


def test_training_lowers_the_loss_and_leaves_checkpoints(whole):
    assert [r["step"] for r in records(whole)] == list(range(1, 13))
    assert losses(whole)[-1] < losses(whole)[0] - 0.5
    steps = sorted(p.name for p in (whole / "checkpoints").iterdir())
    assert steps == ["step_00000004", "step_00000008", "step_00000012"]
    names = {p.name for p in (whole / "checkpoints" / steps[-1]).iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "state.json"} <= names


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_a_signal_ended_resumes_with_the_losses_of_a_whole_one(whole, manifest, tmp_path, forked, number):
    out, sleep = tmp_path / "run", "--step-sleep-ms=50" if number == signal.SIGTERM else "--save-every=1"

    def body() -> int:
        sys.argv = ["train.sft", *argv(manifest, out, sleep)]
        return flags.guarded(main)

    process = forked(body)
    process.until("step=5 ")
    os.kill(process.pid, number)  # wherever it is: perhaps half way through a checkpoint
    if number == signal.SIGKILL:
        assert process.wait() == -signal.SIGKILL
        with (out / "metrics.jsonl").open("a") as f:
            f.write('{"step": 6, "lo')  # as if cut short while writing
    else:
        assert process.wait() == 128 + signal.SIGTERM, process.output()
        assert "SIGTERM: stopping after this step" in process.output()
        last = len(losses(out))
        assert last < 12 and (out / "checkpoints" / f"step_{last:08d}").is_dir(), "the step is finished and saved"
    assert main(["--resume", "--out", str(out)]) == 0  # every other value is the run's own
    assert losses(out) == losses(whole)
    assert not list((out / "checkpoints").glob(".*"))


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Run:
    """run(*argv) -> exit code and what was written to stderr."""

    def call(*argv: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["train.sft", *argv])
        code = flags.guarded(main)
        return code, capsys.readouterr().err

    return call


def test_a_resumed_run_refuses_other_data_and_another_order_with_both_values(
    whole, manifest, pack, random_rows, tmp_path, run
):
    code, said = run("--manifest", str(manifest), "--out", str(whole))
    assert code == 2 and "holds a run, up to step_00000012: add --resume" in said
    out, other = Path(shutil.copytree(whole, tmp_path / "run")), pack(random_rows(9, 64), seq_len=64)
    for more, expected in (
        (["--manifest", str(other)], [load(m).version for m in (manifest, other)]),
        (["--batch-rows", "5"], ["batch_rows 4, and this run has 5"]),
        (["--preset", "26m"], ["hidden_size 128, and this run has"]),
    ):
        code, said = run("--resume", "--out", str(out), *more)
        assert code == 1 and all(text in said for text in expected)


def test_an_init_folder_of_another_tokenizer_vocabulary_or_length_is_refused_with_both_values(
    whole, pack, random_rows, tmp_path, run
):
    folder, rows = tmp_path / "model", random_rows(9, 64)
    shutil.copytree(whole / "checkpoints" / "step_00000012", folder)

    def start(**packed: int) -> tuple[int, str]:
        manifest = pack(rows, **{"seq_len": 64} | packed)
        more = ["--init", str(folder), "--manifest", str(manifest), "--out", str(tmp_path / "run"), "--steps", "1"]
        return run(*more)

    assert start() == (0, "")
    for packed, values in (({"vocab_size": 340}, ("340", "320")), ({"seq_len": 4096}, ("4096", "2048"))):
        code, said = start(**packed)
        assert code == 1 and all(value in said for value in values)
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text() + "\n")
    code, said = start()
    assert code == 1 and len(re.findall(r"[0-9a-f]{64}", said)) == 2


def test_preference_pairs_are_refused(pack, random_rows, run, tmp_path):
    pairs = pack(random_rows(4, 64), seq_len=64, rows_per_unit=2)
    code, said = run("--manifest", str(pairs), "--out", str(tmp_path / "run"))
    assert code == 1 and "2 rows per unit" in said


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        (["--manifest", "nowhere.json"], 1, "nowhere.json: cannot read the manifest"), ([], 2, "--manifest"),
        (["--manifest", "x", "--lr", "-1"], 2, "lr = -1.0: expected 0 or more"),
        (["--manifest", "x", "--device", "abacus"], 2, "--device abacus"), (["--no-such-flag"], 2, "--no-such-flag"),
        (["--steps", "many"], 2, "--steps"), (["--preset", "7b"], 2, "--preset"),
        (["--manifest", "m", "--lora-rank", "4"], 2, "--model"),
        (["--manifest", "m", "--lora-rank", "4", "--init", "x", "--lora-targets", "q,w"], 2, "q,w"),
        (["--manifest", "m", "--model", "x", "--num-experts", "4"], 2, "has its own in config.json"),
        (["--manifest", "m", "--qlora"], 2, "--qlora is gone: Use"),
    ],
)  # fmt: skip
def test_errors_are_one_paragraph_and_an_exit_code(argv, code, text, run):
    found, said = run(*argv)
    assert found == code
    assert said.startswith("error: ") and said.count("\n") == 1 and text in said


def test_pretraining_counts_every_token_and_is_sft_on_plain_text(pack, random_rows, tmp_path):
    rows = random_rows(8, 64)
    labelled, plain = (pack(rows, seq_len=64, labelled=given) for given in (True, False))
    for train, manifest, name in ((pretrain.main, labelled, "a"), (pretrain.main, plain, "b"), (main, plain, "c")):
        looking = "--eval-every", "6", "--eval-manifest", str(manifest)
        assert train(argv(manifest, tmp_path / name, *looking, steps=6)) == 0
    every = sum(len(ids) - 1 for row in rows for ids, _ in row)
    assert sum(r["label_tokens"] for r in records(tmp_path / "a") if r["epoch"] == 1) == every
    assert [records(tmp_path / name, "eval")[0]["label_tokens"] for name in "abc"] == [every] * 3
    assert losses(tmp_path / "a")[-1] < losses(tmp_path / "a")[0]
    assert losses(tmp_path / "b") == losses(tmp_path / "c")
