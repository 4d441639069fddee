"""Optimizers: their settings, learning rates, parameter groups and state; the scale of the loss in fp16."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from datakit.config import at_least, option
from datakit.errors import ConfigError, MissingExtraError
from train.config import more
from train.ranks import is_slice, like, whole_of


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
    decay_ratio: float = more(0.2, "share of all steps in which wsd decays")
    min_lr_ratio: float = more(0.1, "learning rate at the end, as a share of the peak")
    warmup_steps: int = more(-1, "steps of linear warmup; -1: a tenth of all steps, 100 at most")
    weight_decay: float = more(0.01, "weight decay of matrices; norms, biases, embeddings have none")
    beta1: float = more(0.9, "decay of the mean gradient (AdamW, Lion)")
    beta2: float = more(0.0, "decay of the squared gradient (0: 0.95), of Lion's mean (0: 0.99)")
    momentum: float = more(0.95, "Muon's decay of the mean gradient")
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
            beta1, beta2 = group["betas"]
            for p in (p for p in group["params"] if p.grad is not None):
                mean = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                sign = mean.lerp(p.grad, 1 - beta1).sign_()
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(sign, alpha=-group["lr"])
                mean.lerp_(p.grad, 1 - beta2)


class Muon(torch.optim.Optimizer):
    """Momentum, then the nearest orthogonal matrix of each update (Jordan et al., 2024), as torch.optim.Muon has it.

    Matrices of one shape are orthogonalized together, which a GPU does several times as fast as one after another. The
    step is scaled to the size of AdamW's (Liu et al., 2025). Momentum is kept in slices where ranks have slices; only
    the update is gathered, and each rank takes its slice of the result.
    """

    together = 16
    """Most matrices in one product, which bounds the memory."""

    def __init__(self, groups: list[dict[str, Any]], momentum: float) -> None:
        super().__init__(groups, {"momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every matrix that has a gradient; with slices all ranks must call this."""
        for group in self.param_groups:
            by_shape = defaultdict[torch.Size, list[Tensor]](list)
            for p in (p for p in group["params"] if p.grad is not None):
                by_shape[p.shape].append(p)
            for params in (found[i : i + self.together] for found in by_shape.values()
                           for i in range(0, len(found), self.together)):  # fmt: skip
                updates = []
                for p in params:
                    assert p.grad is not None
                    mean = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
                    mean.lerp_(p.grad, 1 - group["momentum"])
                    updates.append(whole_of(p.grad.lerp(mean, group["momentum"])))
                scale = 0.2 * max(params[0].shape) ** 0.5
                torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
                for p, update in zip(params, orthogonal(torch.stack(updates)).to(params[0].dtype), strict=True):
                    p.add_(like(p, update), alpha=-group["lr"] * scale)


def orthogonal(matrices_NRC: Tensor) -> Tensor:
    """Nearly the orthogonal factor of each matrix: five steps of a quintic Newton-Schulz iteration.

    In bf16, as Jordan has it; on a CPU in fp32, whose products take a fifteenth of the time of emulated bf16.
    """
    a, b, c = 3.4445, -4.775, 2.0315  # Jordan's coefficients: singular values end near 1
    x = matrices_NRC.float() if matrices_NRC.device.type == "cpu" else matrices_NRC.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Optimizers:
    """Several optimizers as one, with shared `state`."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self.parts = parts
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for part in parts:
            part.state = self.state
        self.param_groups = [group for part in parts for group in part.param_groups]

    def set_rate(self, lr: float) -> None:
        """Set the learning rate of the next step."""
        for group in self.param_groups:
            group["lr"] = lr

    def step(self) -> None:
        """Update every parameter that has a gradient; with slices all ranks must call this."""
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)


@dataclass(slots=True)
class LossScale:
    """Loss scaling for fp16, with a count of overflows.

    Small gradients vanish in fp16, so the loss is multiplied by a scale. An overflow halves the scale and skips the
    step; 2,000 steps without one double it (Micikevicius et al., 2018). The scale multiplies the loss *sum* of a
    micro-batch, so it starts thousands of times lower than is usual for means. The gradients' norm, which every step
    computes, says whether one of them overflowed: torch's GradScaler would read all gradients once more, and wait.
    """

    scale: float = 16.0
    steps_since: int = 0
    """Steps since the last change of the scale."""
    overflows: int = 0

    smallest: ClassVar[float] = 2.0**-24
    """Gradients that overflow even with this scale are not finite in themselves."""

    def overflowed(self, finite: bool) -> bool:
        """Whether to skip a step, by its gradients; chooses the scale of the next one."""
        self.steps_since = self.steps_since + 1 if finite else 0
        if finite and self.steps_since == 2000:
            self.scale, self.steps_since = self.scale * 2, 0
        elif not finite and self.scale > self.smallest:
            self.scale, self.overflows = self.scale / 2, self.overflows + 1
            return True
        return False


def make_optimizer(model: nn.Module, config: OptimConfig) -> Optimizers:
    """Make the optimizers of a model's trained parameters.

    Raises:
        ConfigError: slices, which the 8-bit optimizer and Adafactor cannot update.
        MissingExtraError: it is not installed.
    """
    if config.optimizer in ("adamw8bit", "adafactor") and any(map(is_slice, model.parameters())):
        raise ConfigError(f"--optimizer {config.optimizer} cannot update slices: remove --fsdp, or use adamw")
    return Optimizers(list(_parts(list(_groups(model, config)), config)))


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


def _parts(groups: list[dict[str, Any]], config: OptimConfig) -> Iterator[torch.optim.Optimizer]:
    """AdamW (Loshchilov and Hutter, 2019), with state in 8 bits (Dettmers et al., 2022); Muon (Jordan et al., 2024);
    Lion; Adafactor (Shazeer and Stern, 2018)."""
    betas = (config.beta1, config.beta2 or (0.99 if config.optimizer == "lion" else 0.95))
    if config.optimizer == "lion":
        yield Lion(groups, betas)
    elif config.optimizer == "adafactor":
        yield torch.optim.Adafactor(groups)
    elif config.optimizer == "adamw8bit":
        try:
            bitsandbytes: Any = import_module("bitsandbytes.optim")
        except ImportError as e:
            raise MissingExtraError(f"--optimizer adamw8bit: pip install bitsandbytes ({e})") from None
        yield bitsandbytes.AdamW8bit(groups, betas=betas, eps=1e-8)
    else:
        by_muon = {"matrix"} if config.optimizer == "muon" else set()
        muon, rest = ([g for g in groups if (g["kind"] in by_muon) == own] for own in (True, False))
        if muon:
            yield Muon(muon, config.momentum)
        if rest:
            yield torch.optim.AdamW(rest, betas=betas, eps=1e-8, fused=True)
