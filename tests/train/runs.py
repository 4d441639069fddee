"""Short runs of train.sft, in this process or forked from it, and what they leave."""

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from train import SFTConfig, Trainer
from train.attention import Segments, grouped_attention
from train.model import PRESETS, CausalLM
from train.sft import LabelConfig, label_loss

label_sum = label_loss(LabelConfig())
SMALL = replace(PRESETS["tiny"], vocab_size=300, num_layers=2, hidden_size=32, head_dim=8, intermediate_size=48)


def as_flags(**options: Any) -> list[str]:
    """Options of a command by name; a switch is True."""
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]


def trainer(manifest: Path, out: Path, loss: Callable | None = None, **options: Any) -> Trainer:
    """A run with options by name; `loss` takes the place of its objective."""
    plain = {"preset": "tiny", "steps": 4, "lr": 1e-3, "batch_rows": 4, "bucket_sizes": (64,), "dtype": "fp32"}
    return Trainer(SFTConfig.of(manifest=str(manifest), out=str(out), threads=1, **plain | options), loss)


def fitted(manifest: Path, out: Path, loss: Callable | None = None, **options: Any) -> Trainer:
    run = trainer(manifest, out, loss, **options)
    run.fit()
    return run


def records(out: Path, name: str = "metrics") -> list[dict]:
    return [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]


def losses(out: Path) -> list[float]:
    return [record["loss"] for record in records(out)]


def small_model(seed: int = 0, **size: Any) -> CausalLM:
    """Our own model with its start values."""
    model = CausalLM(replace(SMALL, **size))
    model.init_weights(torch.Generator().manual_seed(seed))
    return model


def logits(model: CausalLM, ids_BT: torch.Tensor, attention: Callable = grouped_attention) -> torch.Tensor:
    """Of whole sequences, one a row."""
    segments = Segments.of([[0, ids_BT.shape[1]]] * len(ids_BT), ids_BT.shape[1])
    with torch.no_grad():
        return model.lm_head(model(ids_BT, segments.positions_BT, attention(segments)))


def random_model(config: Any, **options: Any) -> torch.nn.Module:
    """A model of transformers' in which no parameter has its start value."""
    import transformers

    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, **options)
    for name, p in model.named_parameters():
        if "norm" in name or name.endswith("bias"):
            p.data += torch.randn_like(p) * 0.3
        elif p.ndim > 1:  # large enough that soft caps, windows and positions show
            p.data *= 4
    return model.float()


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


class Forked:
    """`body` in a forked process, so that imports cost nothing; its output goes to a file."""

    def __init__(self, body: Callable[[], int], log: Path) -> None:
        self.log = log
        self._process = multiprocessing.get_context("fork").Process(target=self._run, args=(body,))
        self._process.start()
        self.pid = self._process.pid

    def _run(self, body: Callable[[], int]) -> None:
        out = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", closefd=False) for n in (1, 2))
        code = body()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def output(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def until(self, text: str) -> None:
        """Wait until the process has printed a text."""
        for _ in range(6000):
            if text in self.output():
                return
            assert self._process.is_alive() or text in self.output(), self.output()
            time.sleep(0.01)
        raise AssertionError(self.output())

    def wait(self) -> int:
        """The exit code; minus the number of a signal that killed it."""
        self._process.join(120)
        assert self._process.exitcode is not None, self.output()
        return self._process.exitcode
