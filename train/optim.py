"""AdamW with decay on matrices only, and the learning-rate schedule."""

import math
from dataclasses import dataclass

import torch
from torch import nn

from datakit.config import option
from datakit.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimConfig:
    """How the weights move."""

    lr: float = option(0.0, "peak learning rate; 0: 0.256 / hidden size for random weights, else the objective's")
    min_lr_ratio: float = option(0.1, "learning rate at the end, as a share of the peak")
    warmup_steps: int = option(-1, "steps of linear warmup; -1: a tenth of all steps, 100 at most")
    weight_decay: float = option(0.01, "decay of matrices; norms, biases and embeddings have none")
    beta1: float = option(0.9, "AdamW's decay of the mean gradient")
    beta2: float = option(0.95, "AdamW's decay of the mean squared gradient")
    max_grad_norm: float = option(1.0, "gradients are scaled down to this norm; 0: never")

    def __post_init__(self) -> None:
        if self.lr < 0 or not 0 <= self.min_lr_ratio <= 1 or self.weight_decay < 0 or self.max_grad_norm < 0:
            raise ConfigError(
                "lr must not be negative, min_lr_ratio within 0..1, weight_decay and max_grad_norm 0 or more"
            )
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1) or self.warmup_steps < -1:
            raise ConfigError("beta1 and beta2 must lie in 0..1 (1 excluded), warmup_steps must be at least -1")


def peak_rate(config: OptimConfig, hidden_size: int, trained_rate: float | None) -> float:
    """The peak learning rate where the user named none.

    Random weights (`trained_rate` is None): inversely to the width (Yang et al., 2022), 5e-4 at 512, where minimind
    trains; trained weights: `trained_rate`.
    """
    return config.lr or (0.256 / hidden_size if trained_rate is None else trained_rate)


def learning_rate(config: OptimConfig, step: int, total_steps: int) -> float:
    """The rate of step 1..total_steps: linear warmup, then half a cosine (SGDR: Loshchilov and Hutter, 2017)."""
    warmup = min(100, total_steps // 10) if config.warmup_steps < 0 else config.warmup_steps
    if step <= warmup:
        return config.lr * step / warmup
    progress = min(1.0, (step - warmup) / max(1, total_steps - warmup))
    low = config.min_lr_ratio
    return config.lr * (low + (1 - low) * (1 + math.cos(math.pi * progress)) / 2)


def adamw(model: nn.Module, config: OptimConfig) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter, 2019), fused; one group with decay and one without."""
    embeddings = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    decay: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for p in (p for p in model.parameters() if p.requires_grad):
        (decay if p.ndim >= 2 and id(p) not in embeddings else rest).append(p)
    groups = [{"params": decay, "weight_decay": config.weight_decay}, {"params": rest, "weight_decay": 0.0}]
    betas = (config.beta1, config.beta2)
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=config.lr, betas=betas, eps=1e-8, fused=True)
