import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from datakit.errors import DatakitError
from train.config import LoopConfig
from train.data import DataConfig
from train.loop import LossScale
from train.optim import OptimConfig, Optimizers
from train.sft import LabelConfig, label_loss
from train.start import RunConfig, Trainer

loss = label_loss(LabelConfig())


def trainer(manifest: Path, out: Path, objective: Callable = loss, **loop: object) -> Trainer:
    return Trainer(
        RunConfig(
            manifest=str(manifest), preset="tiny", optim=OptimConfig(lr=1e-3),
            data=DataConfig(batch_rows=4, bucket_sizes=(64,)),
            loop=LoopConfig(out=str(out), **{"steps": 4, "dtype": "fp16"} | loop),
        ),
        objective,
    )  # fmt: skip


def records(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_the_scale_halves_at_an_overflow_and_doubles_after_2000_steps() -> None:
    scale = LossScale(torch.device("cpu"), scale=1024.0)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = Optimizers([torch.optim.SGD([weight])])
    expected, since, overflows = 1024.0, 0, 0
    for step in range(4500):
        overflowed = step in (3, 4, 2600)
        scale.scaler.scale(weight.sum()).backward()
        if overflowed:
            weight.grad.fill_(float("inf"))
        assert overflowed or weight.grad.item() == expected
        scale.unscale(optimizer)
        assert scale.skip == overflowed and (overflowed or weight.grad.item() == 1)
        optimizer.zero_grad()
        since, overflows = (0, overflows + 1) if overflowed else (since + 1, overflows)
        if overflowed:
            expected /= 2
        elif since == 2000:
            expected, since = expected * 2, 0
        assert scale.scale == expected
        if step in (1000, 4000):  # as in a checkpoint
            scale = LossScale(torch.device("cpu"), **json.loads(json.dumps(scale.state())))
    assert scale.state() == {"scale": expected, "steps_since": since, "overflows": 3}


def test_fp16_follows_fp32(manifest: Path, tmp_path: Path) -> None:
    for dtype in ("fp16", "fp32"):
        trainer(manifest, tmp_path / dtype, dtype=dtype).fit()
    low, full = records(tmp_path / "fp16"), records(tmp_path / "fp32")
    assert [r["loss"] for r in low] == pytest.approx([r["loss"] for r in full], rel=1e-2)
    assert [r["grad_norm"] for r in low] == pytest.approx([r["grad_norm"] for r in full], rel=5e-2)
    assert low[0]["loss_scale"] == 16 and low[-1]["overflows"] == 0 and "loss_scale" not in full[0]


def test_an_overflow_skips_the_step_and_halves_the_scale(manifest: Path, tmp_path: Path) -> None:
    run = trainer(manifest, tmp_path, steps=2)
    run.loss_scale = LossScale(run.device, scale=2.0**40)  # fp16 ends at 65,504
    before = [p.detach().clone() for p in run.model.parameters()]
    run._step(iter(run.stream))
    assert all(torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))
    assert (run.loss_scale.scale, run.loss_scale.overflows, run.state.step) == (2.0**39, 1, 1)


def test_the_scale_is_resumed(manifest: Path, tmp_path: Path) -> None:
    first = trainer(manifest, tmp_path, stop_at=2)
    first.loss_scale = LossScale(first.device, scale=2.0**40)
    first.fit()
    again = trainer(manifest, tmp_path, resume=True)
    assert again.loss_scale.state() == {"scale": 2.0**38, "steps_since": 0, "overflows": 2}


def test_gradients_that_no_scale_mends_stop_the_run(manifest: Path, tmp_path: Path) -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan")

    def broken(*args: object) -> tuple:
        total, count = loss(*args)
        return Broken.apply(total), count

    run = trainer(manifest, tmp_path, broken, steps=10)
    run.loss_scale = LossScale(run.device, scale=LossScale.smallest * 8)
    with pytest.raises(DatakitError, match="not finite"):
        run.fit()
    assert (run.state.step, run.loss_scale.overflows) == (3, 3)
