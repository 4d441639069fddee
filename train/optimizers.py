"""Several optimizers as one, each with parameters of its own; their state in fp32 or, between steps, in bf16."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class Optimizers:
    """What the loop and checkpoints need of an optimizer: `param_groups`, `state`, `step` and `zero_grad`."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer], state_dtype: torch.dtype | None = None) -> None:
        """`state_dtype` is how state is kept between steps; None: as the optimizers make it."""
        self.parts, self.state_dtype = parts, state_dtype
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for part in parts:
            part.state = self.state
        self.param_groups = [group for part in parts for group in part.param_groups]

    def set_rate(self, lr: float) -> None:
        """The learning rate of the next step; each group takes its multiple."""
        for group in self.param_groups:
            group["lr"] = lr * group["lr_ratio"]

    def add(self, group: dict[str, Any], like: Tensor) -> None:
        """Take in a group of one parameter, which goes on from the state of another of the same shape."""
        self.parts[-1].add_param_group(group)
        self.param_groups = [group for part in self.parts for group in part.param_groups]
        (p,) = group["params"]
        self.state[p] = {k: v.clone() for k, v in self.state[like].items()}

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for part in self.parts:
            if self.state_dtype is None:
                part.step()
            else:
                self._step_one_by_one(part, self.state_dtype)

    def _step_one_by_one(self, part: torch.optim.Optimizer, dtype: torch.dtype) -> None:
        """Widen the state of one parameter at a time, so that the arithmetic is fp32 and the memory is not."""
        groups = part.param_groups
        for group in groups:
            for p in (p for p in group["params"] if p.grad is not None):
                self._cast(p, torch.float32)
                part.param_groups = [group | {"params": [p]}]
                part.step()
                self._cast(p, dtype)
        part.param_groups = groups

    def _cast(self, p: Tensor, dtype: torch.dtype) -> None:
        state = self.state[p]
        state.update({k: v.to(dtype) for k, v in state.items() if v.ndim and v.is_floating_point()})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)
