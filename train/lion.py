"""Lion: the sign of a mean gradient, with one number of state a parameter (Chen et al., 2023)."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from train.slices import local


class Lion(torch.optim.Optimizer):
    """Steps by lr * sign(beta1 * m + (1 - beta1) * g), where m is the mean gradient of decay beta2; decoupled decay."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if params:
                self._move(params, group["lr"], group["betas"], group["weight_decay"])

    def _move(self, params: list[Tensor], lr: float, betas: tuple[float, float], weight_decay: float) -> None:
        for p in params:
            if "exp_avg" not in self.state[p]:
                self.state[p]["exp_avg"] = torch.zeros_like(p)
        grads, means = [p.grad for p in params if p.grad is not None], [self.state[p]["exp_avg"] for p in params]
        params, grads, means = local(params), local(grads), local(means)
        signs = torch._foreach_lerp(means, grads, 1 - betas[0])
        torch._foreach_sign_(signs)
        torch._foreach_mul_(params, 1 - lr * weight_decay)
        torch._foreach_add_(params, signs, alpha=-lr)
        torch._foreach_lerp_(means, grads, 1 - betas[1])
