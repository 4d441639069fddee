"""What few runs load: optimizers that torch lacks, or lacks as they are needed here, and the scale of the loss in fp16.

Lion, and Muon for batches of matrices and slices.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from train.ranks import like, whole_of


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


class Muon(torch.optim.AdamW):
    """Momentum, then the nearest orthogonal matrix of each update (Jordan et al., 2024), as torch.optim.Muon has it.

    That is for the groups of the kind `matrix`; the others are AdamW's.

    Matrices of one shape are orthogonalized together, which a GPU does several times as fast as one after another. The
    step is scaled to the size of AdamW's (Liu et al., 2025). Momentum is kept in slices where ranks have slices; only
    the update is gathered, and each rank takes its slice of the result.
    """

    together = 16
    """Most matrices in one product, which bounds the memory."""

    def __init__(self, groups: list[dict[str, Any]], momentum: float, **adamw: Any) -> None:
        super().__init__(groups, **adamw)
        self.momentum = momentum

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient; with slices all ranks must call this."""
        groups = self.param_groups
        self.param_groups = [g for g in groups if g["kind"] != "matrix"]
        super().step()
        self.param_groups = groups
        for group in (g for g in groups if g["kind"] == "matrix"):
            by_shape = defaultdict[torch.Size, list[Tensor]](list)
            for p in (p for p in group["params"] if p.grad is not None):
                by_shape[p.shape].append(p)
            for params in (found[i : i + self.together] for found in by_shape.values()
                           for i in range(0, len(found), self.together)):  # fmt: skip
                updates = []
                for p in params:
                    assert p.grad is not None
                    mean = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
                    mean.lerp_(p.grad, 1 - self.momentum)
                    updates.append(whole_of(p.grad.lerp(mean, self.momentum)))
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
