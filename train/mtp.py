"""Multi-token prediction: in training, further layers predict the tokens after the next (DeepSeek-V3, 2024).

Layer k takes the hidden state that was to predict this token, and the token, and predicts the next one: seen from the
first such state, that is k tokens further ahead. Generating does without these layers.

Shapes: B rows, T positions, L labels, D hidden.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from train.attention import SegmentAttention
from train.loss import sparse_loss
from train.norm import RMSNorm

if TYPE_CHECKING:
    from train.data import Batch
    from train.model import CausalLM, ModelConfig


class Ahead(nn.Module):
    """A layer that looks one token further."""

    def __init__(self, block: nn.Module, c: "ModelConfig") -> None:
        super().__init__()
        self.hidden_norm, self.token_norm, self.norm = (RMSNorm(c.hidden_size, c.norm_eps) for _ in range(3))
        self.proj = nn.Linear(2 * c.hidden_size, c.hidden_size, bias=False)
        self.block = block

    def forward(self, hidden_BTD: Tensor, embedded_BTD: Tensor, rotary: Any, attend: SegmentAttention) -> Tensor:
        """Hidden states (B, T, D), each made of the one before it and its own token."""
        before_BTD = attend.previous(hidden_BTD, torch.zeros_like(hidden_BTD))
        both = self.hidden_norm(before_BTD), self.token_norm(embedded_BTD)
        out: Tensor = self.norm(self.block(self.proj(torch.cat(both, -1)), rotary, attend))
        return out


def ahead_loss(model: "CausalLM", hidden_BTD: Tensor, batch: "Batch", attend: SegmentAttention) -> Tensor:
    """`mtp_weight` times the mean, over the layers ahead, of their summed losses; `hidden_BTD` is the model's result.

    A label counts in layer k if k tokens of its sequence stand before the token that predicts it.
    """
    o, positions_BT = model.config.options, batch.segments.positions_BT
    embedded_BTD = model.model.embed_tokens(batch.ids_BT).to(hidden_BTD.dtype)
    rotary, total = model.rotary(positions_BT, hidden_BTD.dtype), hidden_BTD.new_zeros((), dtype=torch.float32)
    label_pos_L, targets_L = batch.counted
    places_L = positions_BT.flatten()[label_pos_L]
    for depth, layer in enumerate(model.ahead, start=1):
        hidden_BTD = layer(hidden_BTD, embedded_BTD, rotary, attend)
        here = places_L >= depth
        total = total + sparse_loss(hidden_BTD, model.lm_head, label_pos_L[here], targets_L[here])[0]
    return total * (o.mtp_weight / o.mtp_depth)
