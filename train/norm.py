"""The norm before every layer's parts."""

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
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)
