"""Several optimizers as one, each with parameters of its own; their state in fp32 or, between steps, in bf16."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from train.slices import fill, like, whole_of

NEED_WHOLE = (torch.optim.Muon, torch.optim.Adafactor)
"""Optimizers that look at a matrix as such; the others go element by element, so that slices of it will do."""


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
        """Move every parameter that has a gradient; of slices all ranks take part."""
        for part in self.parts:
            if self.state_dtype is None and not (isinstance(part, NEED_WHOLE) and self._sliced()):
                part.step()
            else:
                self._step_one_by_one(part)

    def _sliced(self) -> bool:
        return any(isinstance(p, DTensor) for group in self.param_groups for p in group["params"])

    def _step_one_by_one(self, part: torch.optim.Optimizer) -> None:
        """Widen the state of one parameter at a time, so that the arithmetic is fp32 and the memory is not; or put one
        matrix at a time together.
        """
        groups = part.param_groups
        for group in groups:
            for p in (p for p in group["params"] if p.grad is not None):
                self._cast(p, torch.float32)
                with self._whole(p) if isinstance(part, NEED_WHOLE) else contextlib.nullcontext(p) as found:
                    part.param_groups = [group | {"params": [found]}]
                    part.step()
                self._cast(p, self.state_dtype or torch.float32)
        part.param_groups = groups

    @contextlib.contextmanager
    def _whole(self, p: Tensor) -> Iterator[Tensor]:
        """Within, all of a sliced parameter, its gradient and its state stand in for it, on every rank."""
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

    def _cast(self, p: Tensor, dtype: torch.dtype) -> None:
        state = self.state[p]
        state.update({k: v.to(dtype) for k, v in state.items() if v.ndim and v.is_floating_point()})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)
