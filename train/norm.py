"""The norm before every layer's parts."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Scale to unit root mean square, then by a learned weight (Zhang and Sennrich, 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype."""
        # with an fp32 weight, half-precision input would miss the fused kernel
        weight = self.weight.to(x.dtype)
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.rms_norm(x, weight.shape, weight, self.eps)
        normed: Tensor = _OnCpu.apply(x, weight, self.eps)  # type: ignore[no-untyped-call]
        return normed


class _OnCpu(torch.autograd.Function):
    """torch's own on CPU keeps its input and output in fp32 for the backward pass; this keeps the input as it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(x, weight_D)
        ctx.eps = eps
        return F.rms_norm(x, weight_D.shape, weight_D, eps)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight_D = ctx.saved_tensors
        with torch.autocast("cpu", enabled=False):
            kind = torch.promote_types(x.dtype, torch.float32)
            grad, wide = grads[0].to(kind), x.to(kind)
            scale = wide.square().mean(-1, keepdim=True).add_(ctx.eps).rsqrt_()
            normed, weighted = wide * scale, grad * weight_D
            grad_D = (grad * normed).flatten(0, -2).sum(0)
            along = (weighted * normed).mean(-1, keepdim=True)
            return weighted.sub_(normed.mul_(along)).mul_(scale).to(x.dtype), grad_D.to(weight_D.dtype), None
