"""Kernels for CUDA: attention within segments, and losses that never hold logits.

Each gives what its plain twin gives, `attention.masked_attention` or `loss.head_loss`, as exactly as half precision
has it. They are chosen by name; nothing here runs by itself.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn

from datakit.errors import ConfigError
from train.attention import Attend, SegmentAttention, Segments, grouped_attention, masked_attention


def flex_attention(segments: Segments) -> SegmentAttention:
    """FlexAttention (Dong et al., 2024): a kernel compiled for the mask, which skips blocks that it hides wholly."""
    return SegmentAttention(segments, _flex)


def varlen_attention(segments: Segments) -> SegmentAttention:
    """FlashAttention over sequences of any length laid after one another (Dao, 2023); in bf16 or fp16, on CUDA."""
    return SegmentAttention(segments, _varlen)


ATTENTIONS: dict[str, Callable[[Segments], SegmentAttention]] = {
    "grouped": grouped_attention,
    "masked": masked_attention,
    "flex": flex_attention,
    "varlen": varlen_attention,
}
CUDA_ONLY = ("flex", "varlen")
"""On other devices the first has no gradients, and the second is missing."""


def _flex(segments: Segments) -> Attend:
    from torch.nn.attention.flex_attention import create_block_mask  # slow to import, and not always needed

    sequence, (rows, width) = segments.sequence_BT, segments.sequence_BT.shape

    def sees(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (sequence[b, q] == sequence[b, k]) & (q >= k)

    blocks = create_block_mask(sees, rows, None, width, width, device=sequence.device)
    kernel = _flex_kernel(compiled=sequence.is_cuda)

    def attend(q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, layer: int) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q_BTHE, k_BTKE, v_BTKE))
        out: Tensor = kernel(q, k, v, block_mask=blocks, enable_gqa=True)
        return out.transpose(1, 2)

    return attend


@cache
def _flex_kernel(*, compiled: bool) -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention as kernel

    found: Any = torch.compile(kernel, dynamic=False) if compiled else kernel
    return found  # type: ignore[no-any-return]


def _varlen(segments: Segments) -> Attend:
    from torch.nn.attention.varlen import varlen_attn

    bounds, longest = sequence_bounds(segments)

    def attend(q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, layer: int) -> Tensor:
        q, k, v = (x.flatten(0, 1) for x in (q_BTHE, k_BTKE, v_BTKE))
        out: Any = varlen_attn(
            q, k, v, bounds, bounds, longest, longest, window_size=(-1, 0), enable_gqa=q.shape[1] != k.shape[1]
        )
        attended: Tensor = out.view_as(q_BTHE)
        return attended

    return attend


def sequence_bounds(segments: Segments) -> tuple[Tensor, int]:
    """Flat starts of all sequences and the end (int32), and the longest's length; padding is sequences of one token."""
    positions_N = segments.positions_BT.flatten()
    starts = (positions_N == 0).nonzero().flatten()
    end = starts.new_tensor([len(positions_N)])
    return torch.cat((starts, end)).int(), max((w for _, w in segments.groups), default=1)


FusedLoss = Callable[[Tensor, nn.Linear, Tensor], tuple[Tensor, int]]
PACKAGES = {"liger": "liger-kernel", "cce": "cut-cross-entropy"}


def fused_loss(name: Literal["liger", "cce"], device: torch.device) -> FusedLoss:
    """(loss_sum, count) of hidden states (L, D) that each have a target, by Liger (Hsu et al., 2024) or Cut
    Cross-Entropy (Wijmans et al., 2024).

    Raises:
        ConfigError: the package is not installed, or there is no CUDA device.
    """
    if device.type != "cuda":
        raise ConfigError(f"--head-loss {name} is a kernel for CUDA, and this run is on {device.type}; use plain")
    try:
        kernel = _liger() if name == "liger" else _cce()
    except ImportError as e:
        raise ConfigError(f"--head-loss {name} needs the package {PACKAGES[name]}: pip install it ({e})") from None
    return over_labels(kernel)


def over_labels(kernel: Callable[[Tensor, Tensor, Tensor, float | None], Tensor]) -> FusedLoss:
    """A loss from a kernel of (hidden, weight, targets, softcap), which a batch without labels does not reach."""

    def loss(hidden_LD: Tensor, head: nn.Linear, targets_L: Tensor) -> tuple[Tensor, int]:
        if not len(targets_L):
            return hidden_LD.sum() * 0, 0
        softcap = getattr(head, "softcap", None)
        with torch.autocast(hidden_LD.device.type, enabled=False):
            total = kernel(hidden_LD, head.weight.to(hidden_LD.dtype), targets_L, softcap)
        return total.float(), len(targets_L)

    return loss


def _liger() -> Callable[[Tensor, Tensor, Tensor, float | None], Tensor]:
    from liger_kernel.transformers.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyLoss

    def kernel(hidden_LD: Tensor, weight_VD: Tensor, targets_L: Tensor, softcap: float | None) -> Tensor:
        found: Any = LigerFusedLinearCrossEntropyLoss(reduction="sum", softcap=softcap)(weight_VD, hidden_LD, targets_L)
        total: Tensor = found
        return total

    return kernel


def _cce() -> Callable[[Tensor, Tensor, Tensor, float | None], Tensor]:
    from cut_cross_entropy import linear_cross_entropy

    def kernel(hidden_LD: Tensor, weight_VD: Tensor, targets_L: Tensor, softcap: float | None) -> Tensor:
        # its default leaves out gradients that are small; "auto" only those that the dtype could not show
        found: Any = linear_cross_entropy(
            hidden_LD, weight_VD, targets_L, softcap=softcap, reduction="sum", filter_eps="auto"
        )
        total: Tensor = found
        return total

    return kernel
