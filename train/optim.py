"""Optimizers: their settings, learning rates and parameter groups."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Literal

import torch
from torch import nn

from datakit.config import at_least, option
from datakit.errors import ConfigError, MissingExtraError
from train.config import more
from train.ranks import is_slice

_of_means = partial(more, acts_with={"optimizer": ("adamw", "adamw8bit", "muon", "lion")})


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimConfig:
    """Optimizer, learning rate and clipping."""

    optimizer: Literal["adamw", "adamw8bit", "muon", "lion", "adafactor"] = more(
        "adamw",
        "adamw8bit: a quarter of the state, needs bitsandbytes; muon: layers' matrices by Muon, the rest by AdamW; "
        "lion: half of the state; adafactor: hardly any",
    )
    lr: float = option(0.0, "peak learning rate; 0: 0.256 / hidden size, for trained weights a share by objective")
    schedule: Literal["cosine", "wsd", "constant"] = more("cosine", "after warmup; wsd: constant, then linear decay")
    decay_ratio: float = more(0.2, "share of all steps in which wsd decays", acts_with={"schedule": ("wsd",)})
    min_lr_ratio: float = more(0.1, "last rate, as a share of the peak", acts_with={"schedule": ("cosine", "wsd")})
    warmup_steps: int = more(-1, "steps of linear warmup; -1: a tenth of all steps, 100 at most")
    weight_decay: float = more(0.01, "weight decay of matrices; norms, biases, embeddings have none")
    beta1: float = _of_means(0.9, "decay of the mean gradient (AdamW, Lion)")
    beta2: float = _of_means(0.0, "decay of the squared gradient (0: 0.95), of Lion's mean (0: 0.99)")
    momentum: float = more(0.95, "Muon's decay of the mean gradient", acts_with={"optimizer": ("muon",)})
    max_grad_norm: float = more(1.0, "clip gradients to this norm; 0: no clipping")

    def __post_init__(self) -> None:
        at_least(self, 0, "lr", "min_lr_ratio", "weight_decay", "max_grad_norm", "beta1", "beta2", "momentum")
        at_least(self, -1, "warmup_steps")
        if max(self.beta1, self.beta2, self.momentum) >= 1 or self.min_lr_ratio > 1 or not 0 < self.decay_ratio <= 1:
            raise ConfigError("beta1, beta2 and momentum must be below 1, min_lr_ratio up to 1, decay_ratio in 0..1")


RATE_RATIO = {"lion": 0.2, "adafactor": 20.0}
"""Default peak rate of an optimizer, as a multiple of AdamW's. A step of Lion has the size of the rate in every value,
so it needs 3 to 10 times less (Chen et al., 2023); Adafactor's rate is relative to a matrix, whose values start near
0.02 (Shazeer and Stern, 2018). Muon's updates are scaled to AdamW's, so one rate is for both (Liu et al., 2025)."""


def peak_rate(config: OptimConfig, hidden_size: int, share: float) -> float:
    """The peak learning rate: `config.lr`, or a default.

    For random weights the default is inverse to the width (Yang et al., 2022): 5e-4 at 512, as in minimind. For trained
    weights it is a share of that, by objective: small models need higher rates there too. `RATE_RATIO` converts it for
    other optimizers than AdamW.
    """
    return config.lr or share * 0.256 / hidden_size * RATE_RATIO.get(config.optimizer, 1.0)


def learning_rate(config: OptimConfig, step: int, total_steps: int) -> float:
    """The learning rate of step 1..total_steps: linear warmup, then the schedule down to `min_lr_ratio` of the peak.

    cosine: half a cosine (SGDR: Loshchilov and Hutter, 2017). wsd: the peak until the last `decay_ratio` of the steps,
    then linear decay (Hu et al., 2024; Hägele et al., 2024); a checkpoint from before the decay can continue to more
    steps. constant: the peak to the end.
    """
    warmup = min(100, total_steps // 10) if config.warmup_steps < 0 else config.warmup_steps
    if step <= warmup:
        return config.lr * step / warmup
    if config.schedule == "constant":
        return config.lr
    low = config.min_lr_ratio
    if config.schedule == "wsd":
        decay = max(1, min(round(total_steps * config.decay_ratio), total_steps - warmup))
        return config.lr * (low + (1 - low) * max(0.0, min(1.0, (total_steps - step) / decay)))
    progress = min(1.0, (step - warmup) / max(1, total_steps - warmup))
    return config.lr * (low + (1 - low) * (1 + math.cos(math.pi * progress)) / 2)


def make_optimizer(model: nn.Module, config: OptimConfig) -> torch.optim.Optimizer:
    """Make the optimizer of a model's trained parameters.

    AdamW (Loshchilov and Hutter, 2019), with state in 8 bits (Dettmers et al., 2022); Muon (Jordan et al., 2024); Lion;
    Adafactor (Shazeer and Stern, 2018).

    Raises:
        ConfigError: slices, which the 8-bit optimizer and Adafactor cannot update.
        MissingExtraError: it is not installed.
    """
    if config.optimizer in ("adamw8bit", "adafactor") and any(map(is_slice, model.parameters())):
        raise ConfigError(f"--optimizer {config.optimizer} cannot update slices: remove --fsdp, or use adamw")
    groups = list(_groups(model, config))
    adamw: dict[str, Any] = {"betas": (config.beta1, config.beta2 or 0.95), "eps": 1e-8}
    if config.optimizer in ("lion", "muon"):
        from train import updates

        if config.optimizer == "lion":
            return updates.Lion(groups, (config.beta1, config.beta2 or 0.99))
        return updates.Muon(groups, config.momentum, **adamw, fused=True)
    if config.optimizer == "adafactor":
        return torch.optim.Adafactor(groups)
    if config.optimizer == "adamw8bit":
        try:
            bitsandbytes: Any = import_module("bitsandbytes.optim")
        except ImportError as e:
            raise MissingExtraError(f"--optimizer adamw8bit: pip install bitsandbytes ({e})") from None
        return bitsandbytes.AdamW8bit(groups, **adamw)
    return torch.optim.AdamW(groups, **adamw, fused=True)


def _groups(model: nn.Module, config: OptimConfig) -> Iterator[dict[str, Any]]:
    """Parameter groups by kind: `matrix`, `head`, `embed` or `scalar`."""
    embeddings = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    head = getattr(getattr(model, "lm_head", None), "weight", None)
    kinds: dict[str, list[nn.Parameter]] = {"matrix": [], "head": [], "embed": [], "scalar": []}
    for p in (p for p in model.parameters() if p.requires_grad):
        kind = "embed" if id(p) in embeddings else "head" if p is head else "matrix" if p.ndim >= 2 else "scalar"
        kinds[kind].append(p)
    for kind, params in kinds.items():
        if params:
            decay = config.weight_decay if kind in ("matrix", "head") else 0.0
            yield {"params": params, "kind": kind, "lr": config.lr, "weight_decay": decay}
