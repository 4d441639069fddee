"""Cross-entropy over the labels of a batch, summed, with their count.

Shapes: B rows, T positions, N = B*T flat positions, L labels, C labels of a chunk, D hidden, V vocabulary.
"""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from train.attention import move_rows

IGNORED = -100


def sparse_loss(hidden_BTD: Tensor, head: nn.Module, label_pos_L: Tensor, targets_L: Tensor) -> tuple[Tensor, int]:
    """(loss_sum, count) with only the labelled positions passing through the output head.

    `label_pos_L` are flat positions into (B, T), each at most once; `targets_L` the token each must predict. Where
    a tenth of the tokens are labels, the head and the softmax cost a tenth, and the value is that of `dense_loss`.
    """
    return head_loss(gathered(hidden_BTD, label_pos_L), head, targets_L)


def head_loss(hidden_LD: Tensor, head: nn.Module, targets_L: Tensor) -> tuple[Tensor, int]:
    """(loss_sum, count) of hidden states that each have a target."""
    return F.cross_entropy(head(hidden_LD).float(), targets_L, reduction="sum"), len(targets_L)


def chunked_loss(hidden_LD: Tensor, head: nn.Linear, targets_L: Tensor, chunk: int) -> tuple[Tensor, int]:
    """`head_loss` with the logits of `chunk` labels at a time, never of all.

    Each chunk's gradients are taken while its logits are there, so nothing is computed twice (Liger: Hsu et al.,
    2024); the head has no bias, but its logits may have a soft cap.
    """
    weight_VD, softcap = head.weight.to(hidden_LD.dtype), float(getattr(head, "softcap", 0.0))
    total: Tensor = _Chunked.apply(hidden_LD, weight_VD, targets_L, chunk, softcap)  # type: ignore[no-untyped-call]
    return total, len(targets_L)


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_LD: Tensor, weight_VD: Tensor, targets_L: Tensor, chunk: int, softcap: float
    ) -> Tensor:
        needs_hidden, needs_weight = ctx.needs_input_grad[:2]
        grad_LD = torch.empty_like(hidden_LD) if needs_hidden else None
        grad_VD = torch.zeros_like(weight_VD, dtype=torch.float32) if needs_weight else None
        total = hidden_LD.new_zeros((), dtype=torch.float32)
        with torch.autocast(hidden_LD.device.type, enabled=False):
            for begin in range(0, len(targets_L), chunk):
                part = slice(begin, begin + chunk)
                hidden_CD, targets_C1 = hidden_LD[part], targets_L[part, None]
                logits_CV = (hidden_CD @ weight_VD.T).float()
                if softcap:
                    logits_CV = logits_CV.div_(softcap).tanh_().mul_(softcap)
                logp_CV = logits_CV.log_softmax(-1)
                total -= logp_CV.gather(1, targets_C1).sum()
                if not (needs_hidden or needs_weight):
                    continue
                slope_CV = logp_CV.exp_().scatter_add_(1, targets_C1, -torch.ones_like(targets_C1, dtype=torch.float32))
                if softcap:
                    slope_CV *= 1 - (logits_CV / softcap).square_()
                slope_CV = slope_CV.to(hidden_LD.dtype)
                if grad_LD is not None:
                    torch.mm(slope_CV, weight_VD, out=grad_LD[part])
                if grad_VD is not None:
                    grad_VD += slope_CV.T @ hidden_CD
        ctx.save_for_backward(grad_LD, None if grad_VD is None else grad_VD.to(weight_VD.dtype))
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        grad_LD, grad_VD = (None if g is None else g * grads[0].to(g.dtype) for g in ctx.saved_tensors)
        return grad_LD, grad_VD, None, None, None


def gathered(hidden_BTD: Tensor, label_pos_L: Tensor) -> Tensor:
    """The hidden states at flat positions, each at most once, (L, D)."""
    labels = len(label_pos_L)
    rows_L = torch.arange(labels, device=label_pos_L.device)
    return move_rows(hidden_BTD.flatten(0, 1), label_pos_L, rows_L, labels)


def row_log_probs(hidden_BTD: Tensor, head: nn.Module, label_pos_L: Tensor, targets_L: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row, the log-probability of its labels given what comes before (fp32), and how many they are (int64).

    The arguments are those of `sparse_loss`; both results are (B,), zero for a row without labels.
    """
    rows_B, row_L = hidden_BTD.shape[0], label_pos_L // hidden_BTD.shape[1]
    logits_LV = head(gathered(hidden_BTD, label_pos_L))
    losses_L = F.cross_entropy(logits_LV.float(), targets_L, reduction="none")
    return losses_L.new_zeros(rows_B).index_add(0, row_L, -losses_L), torch.bincount(row_L, minlength=rows_B)


def dense_loss(hidden_BTD: Tensor, head: nn.Module, label_pos_L: Tensor, targets_L: Tensor) -> tuple[Tensor, int]:
    """The reference: logits of every position, the unlabelled ones ignored."""
    targets_N = torch.full((hidden_BTD.shape[:2].numel(),), IGNORED, device=hidden_BTD.device)
    targets_N[label_pos_L] = targets_L
    logits_NV = head(hidden_BTD.flatten(0, 1)).float()
    return F.cross_entropy(logits_NV, targets_N, ignore_index=IGNORED, reduction="sum"), len(targets_L)
