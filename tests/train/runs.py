"""Short runs of train.sft in this process, and what they leave."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from train import SFTConfig, Trainer
from train.sft import LabelConfig, label_loss

label_sum = label_loss(LabelConfig())


def trainer(manifest: Path, out: Path, loss: Callable | None = None, **options: Any) -> Trainer:
    """A run with options by name; `loss` takes the place of its objective."""
    plain = {"preset": "tiny", "steps": 4, "lr": 1e-3, "batch_rows": 4, "bucket_sizes": (64,), "dtype": "fp32"}
    return Trainer(SFTConfig.of(manifest=str(manifest), out=str(out), threads=1, **plain | options), loss)


def fitted(manifest: Path, out: Path, loss: Callable | None = None, **options: Any) -> Trainer:
    run = trainer(manifest, out, loss, **options)
    run.fit()
    return run


def records(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def losses(out: Path) -> list[float]:
    return [record["loss"] for record in records(out)]


def same_weights(one: torch.nn.Module, other: torch.nn.Module, **within: float) -> None:
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, **within or {"atol": 0, "rtol": 0})


class Spoiled(torch.autograd.Function):
    """The loss is what it was, its gradient is multiplied by `factor`."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None
