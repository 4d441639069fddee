"""Several processes as one run: real ranks over gloo, forked from this process, so that imports cost nothing."""

import json
import math
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
import torch
import torch._dynamo  # once for all ranks, of which each would import it for itself
import torch.distributed as dist
import torch.distributed.fsdp  # likewise
from safetensors.torch import load_file

from datakit.errors import ConfigError, ModelError
from tests.files import flip, write_rows
from tests.processes import python
from tests.train.runs import Forked, Spoiled, as_flags, records, small_model
from train import checkpoint, flags, grpo, sft
from train import loss as losses_of
from train.hf import write_model
from train.weights import read_model

SIZES = ["--hidden-size=64", "--num-layers=2", "--num-heads=2", "--num-kv-heads=1", "--intermediate-size=96"]
STEPS = 16  # of 13 steps an epoch: across its end, where steps are short


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Run:
    """A command, `train.sft`, as `ranks` processes; `each` gives a rank options of its own."""

    def __init__(
        self, out: Path, ranks: int, argv: list[str], each: Callable[[int], list[str]] = lambda r: [],
        main: Callable[[list[str]], int] = sft.main,
    ) -> None:  # fmt: skip
        port, log = free_port(), f"{out.name}.{time.monotonic_ns()}"
        argv = [*argv, "--out", str(out)]
        bodies = [partial(_rank, r, ranks, port, [*argv, *each(r)], main) for r in range(ranks)]
        self.ranks = [Forked(body, out.parent / f"{log}.{r}.log") for r, body in enumerate(bodies)]

    def wait(self) -> list[int]:
        """The exit codes; a rank that hangs fails the test."""
        return [process.wait() for process in self.ranks]

    def said(self, rank: int | None = None) -> str:
        return "".join(process.output() for r, process in enumerate(self.ranks) if rank in (None, r))


def _rank(rank: int, ranks: int, port: int, argv: list[str], main: Callable[[list[str]], int]) -> int:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": str(port)}  # fmt: skip
    sys.argv = ["train.sft", *argv]
    code = flags.guarded(main)
    if dist.is_initialized():  # a forked process ends without what was registered to run at its end
        dist.destroy_process_group()
    return code


def run(out: Path, ranks: int, argv: list[str]) -> Run:
    """A run that ends well."""
    done = Run(out, ranks, argv)
    assert done.wait() == [0] * ranks, done.said()
    return done


@pytest.fixture(scope="module")
def argv(pack: Callable, random_rows: Callable) -> list[str]:
    options = {"preset": "tiny", "dtype": "fp32", "threads": 1, "batch_rows": 4, "steps": STEPS, "warmup_steps": 0}
    options |= {"lr": 1e-3, "rank_timeout_s": 60, "log_every": 1}
    return ["--manifest", str(pack(random_rows(50, 32), seq_len=32)), *as_flags(**options), *SIZES]


def by_step(out: Path, name: str = "metrics") -> dict[int, float]:
    """The loss of each step, of the training or of its evaluations."""
    return {r["step"]: r["loss"] for r in records(out, name)}


@pytest.fixture(scope="module")
def whole(argv: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], dict[int, float]]:
    """The losses of one process with `grad_accum` micro-batches a step."""

    @cache
    def alone(accum: int) -> dict[int, float]:
        out = tmp_path_factory.mktemp("whole") / "run"
        assert sft.main([*argv, "--out", str(out), "--grad-accum", str(accum)]) == 0
        return by_step(out)

    return alone


@pytest.mark.parametrize(
    ("ranks", "accum", "more"),
    [(2, 1, []), (4, 2, ["--num-workers", "2"]), (2, 3, ["--fsdp", "--fsdp-keep-gradients", "--no-label-only"])],
)
def test_ranks_have_the_losses_of_one(argv, whole, tmp_path, ranks, accum, more):
    done = run(tmp_path / "run", ranks, [*argv, "--grad-accum", str(accum), *more])
    assert by_step(tmp_path / "run") == pytest.approx(whole(accum), abs=1e-5)
    assert done.said(1) == "" and done.said(0).count("step=3 ") == 1, "other ranks are silent"


def test_weights_in_bf16_are_sliced_as_they_are(argv, tmp_path):
    argv = [*argv, "--weights-dtype", "bf16", "--dtype", "bf16", "--steps", "4"]
    for ranks, more in ((1, []), (2, ["--fsdp"])):
        run(tmp_path / str(ranks), ranks, [*argv, *more])
    assert by_step(tmp_path / "2") == pytest.approx(by_step(tmp_path / "1"), rel=1e-2)


def test_a_run_goes_on_with_other_ranks_and_workers_in_the_same_steps(argv, whole, tmp_path):
    """1 -> 4 ranks, then two of them sharded, then one; 0 -> 3 workers; stopped in the middle of an epoch."""
    out, parts = tmp_path / "run", [(1, 3, []), (4, 8, []), (2, 11, ["--fsdp"]), (1, 13, [])]
    for number, (ranks, stop, more) in enumerate(parts):
        resume = ["--resume"] if number else []
        workers = ["--num-workers", str(min(number, 3)), "--stop-at", str(stop)]
        run(out, ranks, [*argv, "--grad-accum", "1", *workers, *more, *resume])
    assert by_step(out) == pytest.approx({s: loss for s, loss in whole(1).items() if s <= 13}, abs=1e-5)


def spoil(monkeypatch: pytest.MonkeyPatch, call: int, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Change the loss of a call on rank 1."""
    plain, calls = losses_of.head_loss, []

    def spoiled(*a: object) -> torch.Tensor:
        calls.append(1)
        return change(plain(*a)) if os.environ["RANK"] == "1" and len(calls) == call else plain(*a)

    monkeypatch.setattr(losses_of, "head_loss", spoiled)


def test_a_loss_that_is_not_finite_on_one_rank_stops_all_and_names_the_rows(argv, tmp_path, monkeypatch):
    spoil(monkeypatch, 3, lambda loss: loss * float("nan"))
    started = Run(tmp_path / "run", 2, [*argv, "--save-every", "1"])
    assert started.wait() == [1, 1]
    for rank in (0, 1):
        assert "step 3: loss nan" in started.said(rank) and "row_key" in started.said(rank)
    assert sorted(p.name for p in (tmp_path / "run" / "checkpoints").iterdir()) == ["step_00000001", "step_00000002"]


@pytest.mark.parametrize("more", [[], ["--fsdp"]])
def test_an_fp16_overflow_on_one_rank_skips_the_step_on_all(argv, tmp_path, monkeypatch, more):
    spoil(monkeypatch, 2, lambda loss: Spoiled.apply(loss, float("inf")))
    started = Run(tmp_path / "run", 2, [*argv, "--dtype", "fp16", "--stop-at", "4", *more])
    assert started.wait() == [0, 0], started.said()
    found = records(tmp_path / "run")
    assert [(r["loss_scale"], r["overflows"]) for r in found] == [(16, 0), (8, 1), (8, 1), (8, 1)]
    assert not math.isfinite(found[1]["grad_norm"]) and math.isfinite(found[3]["grad_norm"])
    state = json.loads((tmp_path / "run" / "checkpoints" / "step_00000004" / "state.json").read_text())
    assert state["loop"]["loss_scale"] == {"scale": 8, "steps_since": 2, "overflows": 1}


def test_a_signal_to_one_rank_stops_all_after_the_same_step(argv, whole, tmp_path):
    out = tmp_path / "run"
    started = Run(out, 2, [*argv, "--step-sleep-ms", "50"])
    started.ranks[0].until("step=3 ")
    os.kill(started.ranks[1].pid, signal.SIGTERM)
    assert started.wait() == [128 + signal.SIGTERM] * 2
    last = max(by_step(out))
    assert 3 <= last < STEPS
    assert [p.name for p in (out / "checkpoints").iterdir()] == [f"step_{last:08d}"]
    run(out, 2, [*argv, "--resume"])
    assert by_step(out) == pytest.approx(whole(1), abs=1e-5)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_others_end_with_a_message_when_a_rank_is_killed_or_hangs(argv, tmp_path, number):
    started = Run(tmp_path / "run", 2, [*argv, "--step-sleep-ms", "50", "--rank-timeout-s", "3"])
    started.ranks[0].until("step=2 ")
    os.kill(started.ranks[1].pid, number)
    assert started.ranks[0].wait() == 1
    assert "error: rank 0 of 2 cannot continue without the other ranks" in started.said(0)
    assert "slower than --rank-timeout-s" in started.said(0)
    os.kill(started.ranks[1].pid, signal.SIGKILL)


def test_ranks_with_other_data_or_options_are_refused_with_both_values(argv, pack, random_rows, tmp_path):
    other = pack(random_rows(20, 32, seed=8), seq_len=32)
    for theirs in (["--manifest", str(other)], [*argv[:2], "--seed", "5"]):
        started = Run(tmp_path / "run", 2, argv[2:], lambda rank, theirs=theirs: theirs if rank else argv[:2])
        assert started.wait() == [2, 2]
        assert "rank 0 has" in started.said(0) and "but rank 1 has" in started.said(1), started.said()
        assert not (tmp_path / "run").exists()


def test_torchrun_starts_it(argv, whole, tmp_path):
    command = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port(), "-m", "train.sft")
    done = python(*command, *argv, "--stop-at", "3", "--out", tmp_path / "run")
    assert "2 ranks with 1 x 2 rows a step each" in done.stdout
    expected = {step: loss for step, loss in whole(1).items() if step <= 3}
    assert by_step(tmp_path / "run") == pytest.approx(expected, abs=1e-5)


def test_a_rank_without_a_prompt_at_the_end_of_an_epoch_waits_for_nobody(tokenizer_folder, tmp_path):
    write_model(tmp_path, small_model(), tuple(tokenizer_folder.iterdir()), {})
    prompts = write_rows(tmp_path / "prompts.jsonl", ({"prompt": w, "answer": "1"} for w in ("cat", "mat", "sat")))
    options = {"model": tmp_path, "prompts": prompts, "reward": "exact", "kl_beta": 0.1, "steps": 2, "batch_rows": 2}
    argv = as_flags(**options, group_size=2, max_new_tokens=3, lr=0.1, dtype="fp32", rank_timeout_s=60)
    for ranks in (1, 2):
        started = Run(tmp_path / str(ranks), ranks, argv, main=grpo.main)
        assert started.wait() == [0] * ranks, started.said()
    assert by_step(tmp_path / "2") == pytest.approx(by_step(tmp_path / "1"), abs=1e-5)


LOOKING = ["--eval-every", "2", "--eval-rows", "12"]
SLICED = {
    "adapters": ["--lora-rank", "4", "--lr", "0.01", *LOOKING],
    "experts": [
        "--seed", "1", "--num-experts", "3", "--experts-per-token", "2", "--balance-weight", "1",
        "--checkpoint-every", "1", *LOOKING,
    ],
    "muon": ["--optimizer", "muon"],
}  # fmt: skip
ONE, TWO, SLICES = (1, []), (2, []), (2, ["--fsdp", "--async-save"])
WAYS = {"adapters": [SLICES, ONE, TWO, SLICES], "experts": [SLICES, TWO, SLICES], "muon": [SLICES, ONE, SLICES]}


@pytest.mark.parametrize("name", list(SLICED))
def test_what_is_sliced_goes_on_whole_and_sliced_again_as_if_it_never_had_been(argv, tmp_path, name):
    """Slices, then one process or two whole ranks, then slices: losses, evaluations, and all that is saved."""
    argv = [*argv, "--steps", "6", "--grad-accum", "2", *SLICED[name]]
    argv += ["--eval-manifest", argv[1]] if "--eval-every" in argv else []
    if "--lora-rank" in argv:
        base = ["--out", str(tmp_path / "base"), "--steps", "1", "--lora-rank", "0"]
        run(tmp_path / "base", 1, [*argv, *base])
        argv = [part for part in argv if part not in SIZES]
        argv += ["--init", str(tmp_path / "base" / "checkpoints" / "step_00000001")]
    whole, out = tmp_path / "whole", tmp_path / "run"
    run(whole, 1, argv)
    for number, (ranks, more) in enumerate(WAYS[name]):
        stop = [] if number + 1 == len(WAYS[name]) else ["--stop-at", str(2 + number)]
        done = run(out, ranks, [*argv, *more, *stop, *(["--resume"] if number else [])])
        assert done.said(1) == "", "rank 0 alone tells what all of them found"
    assert by_step(out) == pytest.approx(by_step(whole), abs=1e-5)
    if "--eval-every" in argv:
        found = {step: loss for step, loss in by_step(out, "eval").items() if step != 3}
        assert found == pytest.approx(by_step(whole, "eval"), abs=1e-5) and list(found) == [2, 4, 6]
        assert {r["label_tokens"] for r in records(out, "eval")} == {records(whole, "eval")[0]["label_tokens"]}
    assert_same_end(out, whole)


def assert_same_end(out: Path, whole: Path) -> None:
    ends = [folder / "checkpoints" / "step_00000006" for folder in (whole, out)]
    kind = "adapter_model" if (ends[0] / "adapter_model.safetensors").exists() else "model"
    for name in (kind, "optimizer"):
        expected, found = (load_file(end / f"{name}.safetensors") for end in ends)
        assert expected.keys() == found.keys()
        for key, value in expected.items():
            torch.testing.assert_close(found[key], value, atol=1e-4, rtol=1e-2, msg=f"{name} {key}")


def test_a_kill_while_slices_are_saved_and_a_damaged_checkpoint_cost_no_earlier_one(argv, whole, tmp_path, monkeypatch):
    finished = checkpoint._finished

    def killing(file: Path) -> str:
        if file.parent.name.startswith(".step_00000009") and file.name.startswith("optimizer"):
            os.kill(os.getpid(), signal.SIGKILL)  # its weights are written, and what others need to read them is not
        return finished(file)

    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_finished", killing)
        started = Run(out, 2, [*argv, "--fsdp", "--async-save", "--save-every", "3", "--step-sleep-ms", "20"])
        assert started.wait() == [-signal.SIGKILL, 1], started.said()
    assert "error: rank 1 of 2 cannot continue without the other ranks" in started.said(1)
    newer = out / "checkpoints" / "step_00000006"
    assert not newer.with_name("step_00000009").exists() and newer.with_name(".step_00000009.tmp").exists()
    flip(newer / "model.safetensors")
    with pytest.raises(ModelError, match=r"model\.safetensors: changed or damaged"):
        read_model(newer)
    assert sft.main([*argv, "--out", str(out), "--resume"]) == 0
    assert by_step(out) == pytest.approx(whole(1), abs=1e-5)
    assert (out / "checkpoints" / "damaged.step_00000006").is_dir()


def test_a_checkpoint_that_cannot_be_written_stops_every_rank_with_the_reason(argv, tmp_path):
    started = Run(tmp_path / "run", 2, [*argv, "--fsdp", "--save-every", "2", "--step-sleep-ms", "50"])
    started.ranks[0].until("saved")
    resource.prlimit(started.ranks[0].pid, resource.RLIMIT_FSIZE, (200_000, 200_000))  # its disk is full from now on
    assert started.wait() == [1, 1]
    for rank in (0, 1):
        assert "cannot write the checkpoint" in started.said(rank) and "free some space" in started.said(rank)
    run(tmp_path / "run", 1, [*argv, "--resume"])


def test_slices_need_ranks(argv, tmp_path):
    with pytest.raises(ConfigError, match="--fsdp needs several ranks"):
        sft.main([*argv, "--out", str(tmp_path / "run"), "--fsdp"])
