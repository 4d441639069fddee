"""The table of equalities: it holds, and each line fails when what it watches is broken on purpose."""

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
    lines = capsys.readouterr().out.splitlines()[1:]
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
    code, found = verdicts(small, capsys)
    assert code == 1
    assert found[name].endswith("NOT EQUAL")


def test_a_compiled_model_that_differs_is_seen(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(selfcheck, "need_compiler", lambda device: None)
    monkeypatch.setattr(model.CausalLM, "compile_parts", lambda self: self.model.norm.weight.data.mul_(1.01))
    code, found = verdicts(small, capsys)
    assert code == 1
    assert found["compiled = eager"].endswith("NOT EQUAL")


@pytest.mark.parametrize("spoilt", [False, True])
def test_two_ranks_are_compared_with_one(small: Path, monkeypatch: pytest.MonkeyPatch, spoilt: bool) -> None:
    monkeypatch.setattr(torch.distributed, "is_gloo_available", lambda: True)
    if spoilt:  # the one process here; the two others are whole
        monkeypatch.setattr(sft, "head_loss", off_by_a_little(sft.head_loss))
    config = selfcheck.configured(
        sft.SftConfig, "train.selfcheck", "", ["--manifest", str(small), "--preset", "tiny", "--batch-rows", "4"]
    )
    check = selfcheck._two_ranks(config)
    assert check.difference is not None, check.remark
    assert check.holds != spoilt


def test_a_value_that_is_no_number_is_a_difference() -> None:
    nan = [torch.tensor(float("nan"))]
    assert selfcheck.difference(nan, nan) == float("inf")
    assert selfcheck.difference([], nan) == float("inf")
    assert not selfcheck.Check("x", float("inf")).holds
