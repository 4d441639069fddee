"""Which parameters move how: groups by kind, the optimizers, and their learning rates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from datakit.config import option
from datakit.errors import ConfigError
from train.lion import Lion
from train.optimizers import Optimizers

RATE_RATIO = {"adamw": 1.0, "muon": 1.0, "adafactor": 20.0, "lion": 0.2}
"""Default peak rates beside AdamW's. Muon's updates are scaled to AdamW's size (Liu et al., 2025); Adafactor's rate is
relative to a matrix's size, which begins near 0.02, half of its usual 0.05; Lion wants 3-10 times less."""
BETA2 = {"lion": 0.99}


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimConfig:
    """How the weights move."""

    optimizer: Literal["adamw", "muon", "adafactor", "lion"] = option(
        "adamw", "muon: the layers' matrices by Muon, the rest by AdamW"
    )
    lr: float = option(
        0.0, "peak learning rate; 0: 0.256 / hidden size for random weights, else the objective's (AdamW's, Muon's)"
    )
    schedule: Literal["cosine", "wsd", "constant"] = option("cosine", "course after warmup; wsd: stable, then decay")
    decay_ratio: float = option(0.2, "share of all steps in which wsd goes down")
    min_lr_ratio: float = option(0.1, "learning rate at the end, as a share of the peak")
    warmup_steps: int = option(-1, "steps of linear warmup; -1: a tenth of all steps, 100 at most")
    embed_lr_ratio: float = option(1.0, "learning rate of embeddings, as a multiple")
    head_lr_ratio: float = option(1.0, "learning rate of an untied output head, as a multiple")
    matrix_lr_ratio: float = option(1.0, "learning rate of the layers' matrices, as a multiple")
    scalar_lr_ratio: float = option(1.0, "learning rate of norms, biases and gates, as a multiple")
    weight_decay: float = option(0.01, "decay of matrices; norms, biases and embeddings have none")
    beta1: float = option(0.9, "decay of the mean gradient (AdamW, Lion)")
    beta2: float = option(0.0, "decay of the mean squared gradient (AdamW), of the momentum (Lion); 0: 0.95, Lion 0.99")
    momentum: float = option(0.95, "Muon's decay of the mean gradient")
    state_dtype: Literal["fp32", "bf16"] = option("fp32", "bf16: half the optimizer's memory")
    max_grad_norm: float = option(1.0, "gradients are scaled down to this norm; 0: never")
    ema_decay: float = option(0.0, "also keep an average of the weights with this decay, such as 0.999; 0: none")

    def __post_init__(self) -> None:
        if self.lr < 0 or not 0 <= self.min_lr_ratio <= 1 or self.weight_decay < 0 or self.max_grad_norm < 0:
            raise ConfigError(
                "lr must not be negative, min_lr_ratio within 0..1, weight_decay and max_grad_norm 0 or more"
            )
        if any(not 0 <= v < 1 for v in (self.beta1, self.beta2, self.momentum, self.ema_decay)):
            raise ConfigError("beta1, beta2, momentum and ema_decay must lie in 0..1 (1 excluded)")
        if self.warmup_steps < -1 or not 0 < self.decay_ratio <= 1:
            raise ConfigError("warmup_steps must be at least -1, decay_ratio within 0..1 (0 excluded)")
        if min(self.embed_lr_ratio, self.head_lr_ratio, self.matrix_lr_ratio, self.scalar_lr_ratio) < 0:
            raise ConfigError("multiples of the learning rate must not be negative")
        self._check_state()

    def _check_state(self) -> None:
        if self.state_dtype == "fp32":
            return
        if self.optimizer == "adafactor":
            raise ConfigError("adafactor's state is a row and a column a matrix: leave state_dtype at fp32")
        if max(self.betas[1], self.momentum) > 0.99:
            raise ConfigError(
                "with state_dtype bf16, decays over 0.99 change less than its digits show, so none at all"
            )

    @property
    def betas(self) -> tuple[float, float]:
        """Both decays, resolved."""
        return self.beta1, self.beta2 or BETA2.get(self.optimizer, 0.95)


def peak_rate(config: OptimConfig, hidden_size: int, trained_rate: float | None) -> float:
    """The peak learning rate where the user named none.

    Random weights (`trained_rate` is None): inversely to the width (Yang et al., 2022), 5e-4 at 512, where minimind
    trains; trained weights: `trained_rate`. Both are AdamW's; `RATE_RATIO` has the other optimizers'.
    """
    rate = 0.256 / hidden_size if trained_rate is None else trained_rate
    return config.lr or rate * RATE_RATIO[config.optimizer]


def make_optimizer(model: nn.Module, config: OptimConfig) -> Optimizers:
    """The optimizers of a model's trained parameters."""
    parts = list(_parts(list(_groups(model, config)), config))
    return Optimizers(parts, torch.bfloat16 if config.state_dtype == "bf16" else None)


def _groups(model: nn.Module, config: OptimConfig) -> Iterator[dict[str, Any]]:
    embeddings = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    head = getattr(getattr(model, "lm_head", None), "weight", None)
    kinds: dict[str, list[nn.Parameter]] = {"matrix": [], "head": [], "embed": [], "scalar": []}
    for p in (p for p in model.parameters() if p.requires_grad):
        kind = "embed" if id(p) in embeddings else "head" if p is head else "matrix" if p.ndim >= 2 else "scalar"
        kinds[kind].append(p)
    yield from (group_of(kind, params, config) for kind, params in kinds.items() if params)


def group_of(kind: str, params: list[nn.Parameter], config: OptimConfig) -> dict[str, Any]:
    """A parameter group of one kind: `matrix`, `head`, `embed` or `scalar`."""
    decay = config.weight_decay if kind in ("matrix", "head") else 0.0
    ratio = getattr(config, f"{kind}_lr_ratio")
    return {"params": params, "kind": kind, "lr_ratio": ratio, "lr": config.lr * ratio, "weight_decay": decay}


def _parts(groups: list[dict[str, Any]], config: OptimConfig) -> Iterator[torch.optim.Optimizer]:
    """AdamW (Loshchilov and Hutter, 2019); Muon (Jordan et al., 2024); Adafactor (Shazeer and Stern, 2018); Lion."""
    if config.optimizer == "adafactor":
        yield torch.optim.Adafactor(groups)
    elif config.optimizer == "lion":
        yield Lion(groups, betas=config.betas)
    else:
        by_muon = {"matrix"} if config.optimizer == "muon" else set()
        muon, rest = ([g for g in groups if (g["kind"] in by_muon) == own] for own in (True, False))
        if muon:
            yield torch.optim.Muon(muon, momentum=config.momentum, adjust_lr_fn="match_rms_adamw")
        if rest:
            yield torch.optim.AdamW(rest, betas=config.betas, eps=1e-8, fused=True)
