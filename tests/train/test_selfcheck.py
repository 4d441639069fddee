"""The table of equalities: it holds, and each line fails when what it watches is broken on purpose."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from datakit.errors import ConfigError
from train import selfcheck, sft
from train.engine import checkpoint
from train.model import attention
from train.model import decoder as model

NAMES = {
    "grouped attention = masked", "sparse loss = dense", "chunked loss = dense", "label-only last layer = full",
    "unpacked = packed", "one row at a time = all at once", "compiled = eager", "resumed = uninterrupted",
    "two ranks = one",
}  # fmt: skip


@pytest.fixture(scope="module")
def small(pack: Callable, random_rows: Callable) -> Path:
    return pack(random_rows(20, 64), seq_len=64)


def verdicts(manifest: Path, capsys: pytest.CaptureFixture) -> tuple[int, dict[str, str]]:
    options = ["--preset", "tiny", "--batch-rows", "4", "--threads", "1"]
    code = selfcheck.main(["--manifest", str(manifest), *options])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("[train] data:")][1:]
    return code, {line[:34].strip(): line[36:].strip() for line in lines}


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes long, and whether there is a compiler is the machine's affair."""

    def refuse(device: torch.device) -> None:
        raise ConfigError("there is no compiler")

    monkeypatch.setattr(selfcheck, "need_compiler", refuse)


@pytest.fixture(autouse=True)
def no_second_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two more processes take seconds; the tests that are about them start them."""
    monkeypatch.setattr(torch.distributed, "is_gloo_available", lambda: False)


def test_every_equality_holds(small: Path, capsys: pytest.CaptureFixture) -> None:
    code, found = verdicts(small, capsys)
    assert code == 0
    assert set(found) == NAMES
    assert found.pop("compiled = eager") == "skipped: there is no compiler"
    assert found.pop("two ranks = one") == "skipped: this torch has no gloo"
    assert all(v.endswith("equal") and "NOT" not in v for v in found.values()), found


def off_by_a_little(function: Callable) -> Callable:
    return lambda *a, **k: (lambda r: (r[0] * 1.001, r[1]))(function(*a, **k))


def break_groups(m: pytest.MonkeyPatch) -> None:
    whole = attention._causal_mask
    m.setattr(attention, "_causal_mask", lambda *a: torch.zeros_like(whole(*a)))  # the future is seen


def break_sparse(m: pytest.MonkeyPatch) -> None:
    m.setattr(sft, "sparse_loss", off_by_a_little(sft.sparse_loss))


def break_chunks(m: pytest.MonkeyPatch) -> None:
    whole = sft.chunked_loss
    m.setattr(sft, "chunked_loss", lambda h, head, t, chunk: whole(h[:-1], head, t[:-1], chunk))  # the last is lost


def break_label_only(m: pytest.MonkeyPatch) -> None:
    whole = model.CausalLM.hidden_at
    m.setattr(model.CausalLM, "hidden_at", lambda self, i, p, a, at: whole(self, i, p * 2, a, at))


def break_packing(m: pytest.MonkeyPatch) -> None:
    whole = selfcheck.unpacked

    def positions_go_on(*a: object) -> object:
        batch = whole(*a)
        return replace(batch, segments=replace(batch.segments, positions_BT=batch.segments.positions_BT * 2))

    m.setattr(selfcheck, "unpacked", positions_go_on)


def break_accumulation(m: pytest.MonkeyPatch) -> None:
    whole = selfcheck._single_rows
    m.setattr(selfcheck, "_single_rows", lambda *a: list(whole(*a))[:-1])


def break_resume(m: pytest.MonkeyPatch) -> None:
    def forget(place: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        whole(place, model, optimizer)
        optimizer.state.clear()

    whole = checkpoint.restore
    m.setattr(checkpoint, "restore", forget)


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (break_groups, "grouped attention = masked"),
        (break_sparse, "sparse loss = dense"),
        (break_chunks, "chunked loss = dense"),
        (break_label_only, "label-only last layer = full"),
        (break_packing, "unpacked = packed"),
        (break_accumulation, "one row at a time = all at once"),
        (break_resume, "resumed = uninterrupted"),
    ],
)
def test_a_broken_equality_is_seen(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, spoil: Callable, name: str
) -> None:
    spoil(monkeypatch)
    if spoil is not break_resume:  # four runs of four steps, which the other lines do not need
        monkeypatch.setattr(selfcheck, "_resumed", lambda config: 0.0)
    code, found = verdicts(small, capsys)
    assert code == 1
    assert found[name].endswith("NOT EQUAL")


def test_a_compiled_model_that_differs_is_seen(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(selfcheck, "need_compiler", lambda device: None)
    monkeypatch.setattr(model.CausalLM, "compile_parts", lambda self: self.model.norm.weight.data.mul_(1.01))
    monkeypatch.setattr(selfcheck, "_resumed", lambda config: 0.0)
    code, found = verdicts(small, capsys)
    assert code == 1
    assert found["compiled = eager"].endswith("NOT EQUAL")


def test_two_ranks_are_compared_with_one(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with real ranks, then with their losses and one process that is broken on purpose."""
    run, logged = selfcheck.subprocess.run, []

    def once(command: list[str], **options: object) -> subprocess.CompletedProcess:
        (out,) = (Path(part.removeprefix("--out=")) for part in command if part.startswith("--out="))
        if logged:
            out.mkdir()
            (out / "metrics.jsonl").write_text(logged[0])
            return subprocess.CompletedProcess(command, 0)
        done = run(command, **options)
        logged.append((out / "metrics.jsonl").read_text())
        return done

    (tmp_path / "train.py").write_text("raise SystemExit('a file of the user')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.distributed, "is_gloo_available", lambda: True)
    monkeypatch.setattr(selfcheck.subprocess, "run", once)
    config = selfcheck.configured(
        sft.SftConfig, "train.selfcheck", "", ["--manifest", str(small), "--preset", "tiny", "--batch-rows", "4"]
    )
    for spoilt in (False, True):
        if spoilt:
            monkeypatch.setattr(sft, "head_loss", off_by_a_little(sft.head_loss))
        check = selfcheck._two_ranks(config)
        assert check.difference is not None, check.remark
        assert check.holds != spoilt, check.remark


def test_a_value_that_is_no_number_is_a_difference() -> None:
    nan = [torch.tensor(float("nan"))]
    assert selfcheck.difference(nan, nan) == float("inf")
    assert selfcheck.difference([], nan) == float("inf")
    assert not selfcheck.Check("x", float("inf")).holds
