"""Cross-entropy over the labels of a batch, summed, with their count.

Shapes: B rows, T positions, N = B*T flat positions, L labels, D hidden, V vocabulary.
"""

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
    labels = len(label_pos_L)
    rows_L = torch.arange(labels, device=label_pos_L.device)
    logits_LV = head(move_rows(hidden_BTD.flatten(0, 1), label_pos_L, rows_L, labels))
    return F.cross_entropy(logits_LV.float(), targets_L, reduction="sum"), labels


def row_log_probs(hidden_BTD: Tensor, head: nn.Module, label_pos_L: Tensor, targets_L: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row, the log-probability of its labels given what comes before (fp32), and how many they are (int64).

    The arguments are those of `sparse_loss`; both results are (B,), zero for a row without labels.
    """
    rows_B, row_L = hidden_BTD.shape[0], label_pos_L // hidden_BTD.shape[1]
    labels = len(label_pos_L)
    places_L = torch.arange(labels, device=label_pos_L.device)
    logits_LV = head(move_rows(hidden_BTD.flatten(0, 1), label_pos_L, places_L, labels))
    losses_L = F.cross_entropy(logits_LV.float(), targets_L, reduction="none")
    return losses_L.new_zeros(rows_B).index_add(0, row_L, -losses_L), torch.bincount(row_L, minlength=rows_B)


def dense_loss(hidden_BTD: Tensor, head: nn.Module, label_pos_L: Tensor, targets_L: Tensor) -> tuple[Tensor, int]:
    """The reference: logits of every position, the unlabelled ones ignored."""
    targets_N = torch.full((hidden_BTD.shape[:2].numel(),), IGNORED, device=hidden_BTD.device)
    targets_N[label_pos_L] = targets_L
    logits_NV = head(hidden_BTD.flatten(0, 1)).float()
    return F.cross_entropy(logits_NV, targets_N, ignore_index=IGNORED, reduction="sum"), len(targets_L)
