"""Losses over the labels of a batch: hidden states at label positions, cross-entropy, log-probabilities.

Every loss is a sum with its count, so that the loop can divide by the count of a whole optimizer step. Only labels go
through the head: if a tenth of the tokens are labels, the head and the softmax cost a tenth.

Shapes: B rows, T positions, N = B*T flat positions, L labels, C labels of a chunk, D hidden, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from datakit.config import at_least
from datakit.errors import ConfigError
from datakit.pack.format import IGNORED
from train.attention import ATTENTIONS, Attend, taken
from train.config import more

if TYPE_CHECKING:
    from train.data import Batch
    from train.model import CausalLM

DENSE_SHARE = 0.9
"""From this share of labels on, a layer at label positions only saves less than the moving of rows costs."""


def head_loss(hidden_LD: Tensor, head: nn.Module, targets_L: Tensor) -> Tensor:
    """The summed loss of hidden states with one target each; a target of -100 gives loss 0."""
    return F.cross_entropy(head(hidden_LD).float(), targets_L, reduction="sum")


def chunked_loss(hidden_LD: Tensor, head: nn.Linear, targets_L: Tensor, chunk: int, how: str = "") -> Tensor:
    """`head_loss`, with the logits of at most `chunk` labels in memory at a time; `how`: see `compiled`."""
    if chunk >= len(targets_L):
        return compiled(head_loss, how)(hidden_LD, head, targets_L)
    one = compiled(_cross_entropy, how)

    def cross_entropy(logits_CV: Tensor, part: slice) -> tuple[Tensor, Tensor, Tensor]:
        loss, slopes_CV = one(logits_CV, targets_L[part, None])
        return loss, loss, slopes_CV

    return chunked_sum(hidden_LD, head, chunk, cross_entropy)[0]


def _cross_entropy(logits_CV: Tensor, targets_C1: Tensor) -> tuple[Tensor, Tensor]:
    """The summed loss and its gradient, softmax - one-hot. Compiled, no (C, V) in fp32 is written to memory."""
    counts_C1, targets_C1 = (targets_C1 != IGNORED).float(), targets_C1.clamp(min=0)
    logp_CV = logits_CV.float()
    logp_CV = logp_CV - logp_CV.logsumexp(-1, keepdim=True)
    loss = -(counts_C1 * logp_CV.gather(1, targets_C1)).sum()
    slope_CV = logp_CV.exp_().mul_(counts_C1).scatter_add_(1, targets_C1, -counts_C1)
    return loss, slope_CV.to(logits_CV.dtype)


@cache
def compiled(part: Callable[..., Any], how: str) -> Callable[..., Any]:
    """A part of the loss compiled for each number of labels (`static`) or once for all (`dynamic`); empty: as it is."""
    return torch.compile(part, dynamic=how == "dynamic") if how else part


Slopes = Callable[[Tensor, slice], tuple[Tensor, Tensor, Tensor]]
"""Logits (C, V) and their slice of the labels -> (summed loss, sums to log, gradient of the loss (C, V)).

The logits have the dtype of the product, or fp32 where they are capped; sums are in fp32."""


def chunked_sum(hidden_LD: Tensor, head: nn.Linear, chunk: int, slopes: Slopes) -> tuple[Tensor, Tensor]:
    """A loss summed over labels, and its sums to log, with the logits of `chunk` labels in memory at a time.

    The gradients of a chunk are computed in the forward pass, while its logits exist, so that no logits are computed
    twice (Liger: Hsu et al., 2024). The head has no bias; its logits may have a soft cap.
    """
    weight_VD, softcap = head.weight.to(hidden_LD.dtype), float(getattr(head, "softcap", 0.0))
    return _Chunked.apply(hidden_LD, weight_VD, softcap, chunk, slopes)  # type: ignore[no-untyped-call]


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
                logits_CV = hidden_LD[part] @ weight_VD.T
                if softcap:
                    logits_CV = logits_CV.float().div_(softcap).tanh_().mul_(softcap)
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


def token_log_probs(
    hidden_LD: Tensor, head: nn.Module, targets_L: Tensor, chunk: int = 0, temperature: float = 1.0
) -> Tensor:
    """The log-probability of each target (fp32), (L,), where logits are divided by `temperature`.

    With `chunk`, the logits of that many labels are in memory at a time. They are computed again in the backward pass,
    because the gradients depend on whole rows.
    """

    def losses(hidden_CD: Tensor, targets_C: Tensor) -> Tensor:
        return F.cross_entropy(head(hidden_CD).float() / temperature, targets_C, reduction="none")

    if 0 < chunk < len(targets_L):
        parts = zip(torch.split(hidden_LD, chunk), torch.split(targets_L, chunk), strict=True)
        again = partial(checkpoint, losses, use_reentrant=False) if torch.is_grad_enabled() else losses
        return -torch.cat([again(*part) for part in parts])
    return -losses(hidden_LD, targets_L)


@dataclass(frozen=True, kw_only=True, slots=True)
class LossConfig:
    """How the loss is computed; no value here changes the result."""

    label_only: bool = more(True, "compute the last layer at label positions only; not with experts")
    attention: Literal["auto", "grouped", "masked", "varlen"] = more(
        "auto", "groups of like length, one mask, or FlashAttention; auto: varlen on CUDA in bf16, else grouped"
    )
    loss_chunk: int = more(0, "labels with logits in memory at once; 0: for 128 MiB, on CUDA 256; in distillation 512")

    def __post_init__(self) -> None:
        at_least(self, 0, "loss_chunk")

    def attend(self, batch: "Batch") -> Attend:
        """Attention within the sequences of a batch."""
        return ATTENTIONS[self.attention](batch.segments)

    def check(self, device: torch.device) -> None:
        """Refuse a kernel that the device does not have.

        Raises:
            ConfigError: it does not have it.
        """
        if self.attention == "varlen" and device.type != "cuda":
            raise ConfigError(f"--attention {self.attention} is a CUDA kernel; this run is on {device.type}")


def chunk_of(head: nn.Linear) -> int:
    """How many labels take 128 MiB of logits in fp32, on CUDA 256 MiB: each chunk passes once over the head's gradient.

    At least 256: smaller products waste the hardware.
    """
    return max(256, (1 << (26 if head.weight.is_cuda else 25)) // head.weight.shape[0])


def label_states(model: "CausalLM", batch: "Batch", config: LossConfig, attend: Attend, filled: bool = False) -> Tensor:
    """Hidden states at the labels, (L, D); with `filled`, L includes the padding of `label_pos_L`."""
    where = batch.ids_BT, batch.segments.positions_BT
    few = batch.labels < DENSE_SHARE * batch.ids_BT.numel()
    if config.label_only and few and not model.config.moe.num_experts:  # routers see every position
        hidden_LD = model(*where, attend, batch.label_pos_L)
        return hidden_LD if filled else hidden_LD[: batch.labels]
    return taken(model(*where, attend), batch.label_pos_L if filled else batch.counted[0])


def label_log_probs(model: "CausalLM", batch: "Batch", config: LossConfig, temperature: float = 1.0) -> Tensor:
    """The log-probability of each label (fp32), (L,), where logits are divided by `temperature`."""
    hidden_LD, head = label_states(model, batch, config, config.attend(batch)), model.lm_head
    return token_log_probs(hidden_LD, head, batch.counted[1], config.loss_chunk or chunk_of(head), temperature)
