"""Optimizers: their settings, learning rates, parameter groups and state."""

import contextlib
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from datakit.config import option
from datakit.errors import ConfigError
from train.lora import bitsandbytes
from train.ranks import fill, like, whole_of


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimConfig:
    """Optimizer, learning rate and clipping."""

    optimizer: Literal["adamw", "adamw8bit", "muon", "lion", "adafactor"] = option(
        "adamw",
        "adamw8bit: a quarter of the state, needs bitsandbytes; muon: layers' matrices by Muon, the rest by AdamW; "
        "lion: half of the state; adafactor: hardly any",
    )
    lr: float = option(0.0, "peak learning rate; 0: 0.256 / hidden size, for trained weights a share by objective")
    schedule: Literal["cosine", "wsd", "constant"] = option("cosine", "after warmup; wsd: constant, then linear decay")
    decay_ratio: float = option(0.2, "share of all steps in which wsd decays")
    min_lr_ratio: float = option(0.1, "learning rate at the end, as a share of the peak")
    warmup_steps: int = option(-1, "steps of linear warmup; -1: a tenth of all steps, 100 at most")
    embed_lr_ratio: float = option(1.0, "learning rate of embeddings, as a multiple")
    head_lr_ratio: float = option(1.0, "learning rate of an untied output head, as a multiple")
    matrix_lr_ratio: float = option(1.0, "learning rate of matrices in the layers, as a multiple")
    scalar_lr_ratio: float = option(1.0, "learning rate of norms, biases and gates, as a multiple")
    weight_decay: float = option(0.01, "weight decay of matrices; norms, biases and embeddings have none")
    beta1: float = option(0.9, "decay of the mean gradient (AdamW, Lion)")
    beta2: float = option(0.0, "decay of the mean squared gradient (AdamW: 0.95), or of Lion's mean (0.99); 0: these")
    momentum: float = option(0.95, "Muon's decay of the mean gradient")
    max_grad_norm: float = option(1.0, "clip gradients to this norm; 0: no clipping")

    def __post_init__(self) -> None:
        if self.lr < 0 or not 0 <= self.min_lr_ratio <= 1 or self.weight_decay < 0 or self.max_grad_norm < 0:
            raise ConfigError("lr must not be negative, min_lr_ratio in 0..1, weight_decay and max_grad_norm 0 or more")
        if any(not 0 <= v < 1 for v in (self.beta1, self.beta2, self.momentum)):
            raise ConfigError("beta1, beta2 and momentum must lie in 0..1 (1 excluded)")
        if self.warmup_steps < -1 or not 0 < self.decay_ratio <= 1:
            raise ConfigError("warmup_steps must be at least -1, decay_ratio within 0..1 (0 excluded)")
        if min(self.embed_lr_ratio, self.head_lr_ratio, self.matrix_lr_ratio, self.scalar_lr_ratio) < 0:
            raise ConfigError("multiples of the learning rate (*_lr_ratio) must not be negative")


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


class Lion(torch.optim.Optimizer):
    """p <- (1 - lr * weight_decay) p - lr * sign(beta1 * m + (1 - beta1) g), m <- beta2 * m + (1 - beta2) g.

    Lion (Chen et al., 2023). One mean m for each value: half of the state of AdamW.
    """

    def __init__(self, groups: list[dict[str, Any]], betas: tuple[float, float]) -> None:
        super().__init__(groups, {"betas": betas})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            for p in params:
                self.state[p].setdefault("exp_avg", torch.zeros_like(p))
            means, grads, (beta1, beta2) = (
                [self.state[p]["exp_avg"] for p in params],
                [p.grad for p in params],
                group["betas"],
            )
            signs = torch._foreach_lerp(means, grads, 1 - beta1)
            torch._foreach_sign_(signs)
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(params, signs, alpha=-group["lr"])
            torch._foreach_lerp_(means, grads, 1 - beta2)


NEED_WHOLE = (torch.optim.Muon, torch.optim.Adafactor)
"""Optimizers that look at whole matrices; the others work value by value, and so on slices, too."""


class Optimizers:
    """Several optimizers as one, with shared `state`. Sliced matrices are gathered for those of `NEED_WHOLE`."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self.parts = parts
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for part in parts:
            part.state = self.state
        self.param_groups = [group for part in parts for group in part.param_groups]

    def set_rate(self, lr: float) -> None:
        """Set the learning rate of the next step; each group has its own multiple."""
        for group in self.param_groups:
            group["lr"] = lr * group["lr_ratio"]

    def step(self) -> None:
        """Update every parameter that has a gradient; with slices all ranks must call this."""
        for part in self.parts:
            if isinstance(part, NEED_WHOLE) and self.sliced:
                self._step_one_by_one(part)
            else:
                part.step()

    @property
    def sliced(self) -> bool:
        """Whether ranks have slices of the parameters."""
        return any(isinstance(p, DTensor) for group in self.param_groups for p in group["params"])

    def _step_one_by_one(self, part: torch.optim.Optimizer) -> None:
        """Step one parameter at a time, so that only one gathered matrix needs memory."""
        groups = part.param_groups
        for group in groups:
            for p in (p for p in group["params"] if p.grad is not None):
                with self._whole(p) as found:
                    part.param_groups = [group | {"params": [found]}]
                    part.step()
        part.param_groups = groups

    @contextlib.contextmanager
    def _whole(self, p: Tensor) -> Iterator[Tensor]:
        """Gather a sliced parameter, its gradient and state on every rank; update the slices at the end."""
        if not isinstance(p, DTensor):
            yield p
            return
        assert p.grad is not None
        whole = whole_of(p.detach())
        whole.grad = whole_of(p.grad)
        self.state[whole] = {k: whole_of(v) for k, v in self.state[p].items()}
        yield whole
        fill(p, whole)
        self.state[p] = {k: like(p, v) for k, v in self.state.pop(whole).items()}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)


def make_optimizer(model: nn.Module, config: OptimConfig) -> Optimizers:
    """Make the optimizers of a model's trained parameters.

    Raises:
        ConfigError: slices, which the 8-bit optimizer cannot update.
        MissingExtraError: it is not installed.
    """
    found = Optimizers(list(_parts(list(_groups(model, config)), config)))
    if config.optimizer == "adamw8bit" and found.sliced:
        raise ConfigError("--optimizer adamw8bit cannot update slices: remove --fsdp, or use adamw")
    return found


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
            ratio = getattr(config, f"{kind}_lr_ratio")
            yield {"params": params, "kind": kind, "lr_ratio": ratio, "lr": config.lr * ratio, "weight_decay": decay}


def _parts(groups: list[dict[str, Any]], config: OptimConfig) -> Iterator[torch.optim.Optimizer]:
    """AdamW (Loshchilov and Hutter, 2019), with state in 8 bits (Dettmers et al., 2022); Muon (Jordan et al., 2024);
    Lion; Adafactor (Shazeer and Stern, 2018)."""
    betas = (config.beta1, config.beta2 or (0.99 if config.optimizer == "lion" else 0.95))
    if config.optimizer == "lion":
        yield Lion(groups, betas)
    elif config.optimizer == "adafactor":
        yield torch.optim.Adafactor(groups)
    elif config.optimizer == "adamw8bit":
        yield bitsandbytes("--optimizer adamw8bit").optim.AdamW8bit(groups, betas=betas, eps=1e-8)
    else:
        by_muon = {"matrix"} if config.optimizer == "muon" else set()
        muon, rest = ([g for g in groups if (g["kind"] in by_muon) == own] for own in (True, False))
        if muon:
            yield torch.optim.Muon(muon, momentum=config.momentum, adjust_lr_fn="match_rms_adamw")
        if rest:
            yield torch.optim.AdamW(rest, betas=betas, eps=1e-8, fused=True)
