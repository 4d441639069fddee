"""Cross-entropy over the labels of a batch, summed, with their count.

Shapes: B rows, T positions, N = B*T flat positions, L labels, C labels of a chunk, D hidden, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from datakit.config import option
from datakit.errors import ConfigError
from train.model.attention import (
    ATTENTIONS,
    CUDA_ONLY,
    SegmentAttention,
    move_rows,
)

if TYPE_CHECKING:
    from train.data.batches import Batch
    from train.model.decoder import CausalLM

IGNORED = -100


def sparse_loss(hidden_BTD: Tensor, head: nn.Module, label_pos_L: Tensor, targets_L: Tensor) -> tuple[Tensor, int]:
    """(loss_sum, count) with only the labelled positions passing through the output head.

    `label_pos_L` are flat positions into (B, T), each at most once; `targets_L` the token each must predict. Where
    a tenth of the tokens are labels, the head and the softmax cost a tenth, and the value is that of `dense_loss`.
    """
    return head_loss(gathered(hidden_BTD, label_pos_L), head, targets_L)


def head_loss(hidden_LD: Tensor, head: nn.Module, targets_L: Tensor) -> tuple[Tensor, int]:
    """(loss_sum, count) of hidden states that each have a target; where that is -100, the loss is 0."""
    return F.cross_entropy(head(hidden_LD).float(), targets_L, reduction="sum"), len(targets_L)


def chunked_loss(hidden_LD: Tensor, head: nn.Linear, targets_L: Tensor, chunk: int) -> tuple[Tensor, int]:
    """`head_loss` with the logits of `chunk` labels at a time, never of all."""

    def cross_entropy(logits_CV: Tensor, part: slice) -> tuple[Tensor, Tensor, Tensor]:
        logp_CV, targets_C1 = logits_CV.log_softmax(-1), targets_L[part, None]
        loss = -logp_CV.gather(1, targets_C1).sum()
        minus_one_C1 = -torch.ones_like(targets_C1, dtype=torch.float32)
        return loss, loss, logp_CV.exp_().scatter_add_(1, targets_C1, minus_one_C1)

    return chunked_sum(hidden_LD, head, chunk, cross_entropy)[0], len(targets_L)


Slopes = Callable[[Tensor, slice], tuple[Tensor, Tensor, Tensor]]
"""Logits (C, V) in fp32 and their place among the labels -> a summed loss, what to log, the loss's gradient (C, V)."""


def chunked_sum(hidden_LD: Tensor, head: nn.Linear, chunk: int, slopes: Slopes) -> tuple[Tensor, Tensor]:
    """A loss summed over labels, and what it logs, with the logits of `chunk` labels at a time.

    Each chunk's gradients are taken while its logits are there, so nothing is computed twice (Liger: Hsu et al.,
    2024); the head has no bias, but its logits may have a soft cap.
    """
    weight_VD, softcap = head.weight.to(hidden_LD.dtype), float(getattr(head, "softcap", 0.0))
    found: tuple[Tensor, Tensor] = _Chunked.apply(hidden_LD, weight_VD, softcap, chunk, slopes)  # type: ignore[no-untyped-call]
    return found


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_LD: Tensor, weight_VD: Tensor, softcap: float, chunk: int, slopes: Slopes
    ) -> tuple[Tensor, Tensor]:
        needs_hidden, needs_weight = ctx.needs_input_grad[:2]
        grad_LD = torch.empty_like(hidden_LD) if needs_hidden else None
        grad_VD = torch.zeros_like(weight_VD, dtype=torch.float32) if needs_weight else None
        total, logged = hidden_LD.new_zeros((), dtype=torch.float32), torch.zeros((), device=hidden_LD.device)
        with torch.autocast(hidden_LD.device.type, enabled=False):
            for begin in range(0, len(hidden_LD), chunk):
                part = slice(begin, begin + chunk)
                logits_CV = (hidden_LD[part] @ weight_VD.T).float()
                if softcap:
                    logits_CV = logits_CV.div_(softcap).tanh_().mul_(softcap)
                loss, sums, slope_CV = slopes(logits_CV, part)
                total, logged = total + loss, logged + sums
                if softcap:
                    slope_CV *= 1 - (logits_CV / softcap).square_()
                slope_CV = slope_CV.to(hidden_LD.dtype)
                if grad_LD is not None:
                    torch.mm(slope_CV, weight_VD, out=grad_LD[part])
                if grad_VD is not None:
                    grad_VD += slope_CV.T @ hidden_LD[part]
        ctx.save_for_backward(grad_LD, None if grad_VD is None else grad_VD.to(weight_VD.dtype))
        ctx.mark_non_differentiable(logged)
        return total, logged

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        grad_LD, grad_VD = (None if g is None else g * grads[0].to(g.dtype) for g in ctx.saved_tensors)
        return grad_LD, grad_VD, None, None, None


def gathered(hidden_BTD: Tensor, label_pos_L: Tensor) -> Tensor:
    """The hidden states at flat positions, each at most once, (L, D)."""
    labels = len(label_pos_L)
    rows_L = torch.arange(labels, device=label_pos_L.device)
    return move_rows(hidden_BTD.flatten(0, 1), label_pos_L, rows_L, labels)


def row_log_probs(
    hidden_LD: Tensor, head: nn.Module, targets_L: Tensor, row_L: Tensor, rows: int, chunk: int = 0
) -> tuple[Tensor, Tensor]:
    """Of each row, the log-probability of its labels given what comes before (fp32), and how many they are (int64).

    `row_L` is the row of each label. Both results are (rows,), zero for a row without labels. With `chunk`, the logits
    of so many labels are there at a time, and are computed again for the gradients, which hang on the whole rows.
    """

    def losses(hidden_CD: Tensor, targets_C: Tensor) -> Tensor:
        return F.cross_entropy(head(hidden_CD).float(), targets_C, reduction="none")

    if chunk and len(targets_L):
        parts = zip(torch.split(hidden_LD, chunk), torch.split(targets_L, chunk), strict=True)
        losses_L = torch.cat([checkpoint(losses, *part, use_reentrant=False) for part in parts])
    else:
        losses_L = losses(hidden_LD, targets_L)
    return losses_L.new_zeros(rows).index_add(0, row_L, -losses_L), torch.bincount(row_L, minlength=rows)


def dense_loss(hidden_BTD: Tensor, head: nn.Module, label_pos_L: Tensor, targets_L: Tensor) -> tuple[Tensor, int]:
    """The reference: logits of every position, the unlabelled ones ignored."""
    targets_N = torch.full((hidden_BTD.shape[:2].numel(),), IGNORED, device=hidden_BTD.device)
    targets_N[label_pos_L] = targets_L
    logits_NV = head(hidden_BTD.flatten(0, 1)).float()
    return F.cross_entropy(logits_NV, targets_N, ignore_index=IGNORED, reduction="sum"), len(targets_L)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class StatesConfig:
    """How the loss is computed; no value changes what it is."""

    label_only: bool = option(True, "the last layer computes label positions alone; not with experts or tokens ahead")
    attention: Literal["grouped", "masked", "flex", "varlen"] = option(
        "grouped", "how attention stays within sequences: by groups of like length, by a mask, or by CUDA's kernels"
    )

    def attend(self, batch: "Batch") -> SegmentAttention:
        """Attention within the sequences of a batch."""
        return ATTENTIONS[self.attention](batch.segments)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkedConfig(StatesConfig):
    """How the loss is computed; no value changes what it is."""

    loss_chunk: int = option(0, "labels whose logits are held at once, to save memory; 0: all of a micro-batch")

    def __post_init__(self) -> None:
        if self.loss_chunk < 0:
            raise ConfigError(f"loss_chunk must not be negative, found {self.loss_chunk}")


C = TypeVar("C", bound=StatesConfig)


def usable(config: C, device: torch.device) -> C:
    """The configuration, which goes with the run's.

    Raises:
        ConfigError: a kernel that the device has not.
    """
    if config.attention in CUDA_ONLY and device.type != "cuda":
        raise ConfigError(f"--attention {config.attention} is a kernel for CUDA; this run is on {device.type}")
    return config


def label_states(
    model: "CausalLM",
    batch: "Batch",
    config: StatesConfig,
    attend: SegmentAttention,
    everywhere: bool = False,
    filled: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Hidden states at the labels, (L, D), and those of all positions, (B, T, D), where they were computed.

    They are if `everywhere` asks for them, or the model's own losses do. With `filled`, L counts the filling of
    `label_pos_L` too.
    """
    where = batch.ids_BT, batch.segments.positions_BT
    if config.label_only and not everywhere and not model.config.reads_everything:
        hidden_LD = model.hidden_at(*where, attend, batch.label_pos_L)
        return hidden_LD if filled else hidden_LD[: batch.labels], None
    hidden_BTD = model(*where, attend)
    return gathered(hidden_BTD, batch.label_pos_L if filled else batch.counted[0]), hidden_BTD
