"""What a layer adds to the stream beside attention: SwiGLU, a squared ReLU, or a mixture of experts.

Shapes: N tokens, D hidden, X experts, A active experts of a token.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from datakit.config import option
from datakit.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class MoeConfig:
    """A mixture of experts in place of every layer's MLP (Shazeer et al., 2017)."""

    num_experts: int = option(0, "experts a layer, of which a router picks a few for each token; 0: one MLP for all")
    experts_per_token: int = option(1, "experts that a token passes through")
    expert_size: int = option(0, "inner width of an expert; 0: the MLP's, divided by experts_per_token")
    norm_topk: bool = option(True, "the picked experts' weights sum to 1, if a token has more than one")
    shared_expert_size: int = option(
        0, "inner width of an expert that every token passes through (DeepSeekMoE); 0: none"
    )
    balance_weight: float = option(0.01, "how strongly the router is drawn to use all experts alike (Switch, 2021)")
    dense_layers: tuple[int, ...] = option((), "layers that keep one MLP for all, from 0")

    def __post_init__(self) -> None:
        if min(self.num_experts, self.expert_size, self.shared_expert_size, self.balance_weight) < 0:
            raise ConfigError("num_experts, expert_size, shared_expert_size and balance_weight must not be negative")
        if self.num_experts and not 1 <= self.experts_per_token <= self.num_experts:
            raise ConfigError(f"experts_per_token must lie in 1..{self.num_experts}, found {self.experts_per_token}")

    def inner_size(self, mlp_size: int) -> int:
        """An expert's inner width, in a model whose MLPs have `mlp_size`."""
        return self.expert_size or mlp_size // self.experts_per_token

    def sparse(self, layer: int) -> bool:
        """Whether a layer has experts."""
        return self.num_experts > 0 and layer not in self.dense_layers


class MLP(nn.Module):
    """SwiGLU (Shazeer, 2020)."""

    def __init__(self, hidden_size: int, inner_size: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.down_proj = nn.Linear(inner_size, hidden_size, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """What the layer adds to the stream, (B, T, D)."""
        added: Tensor = self.down_proj(F.silu(self.gate_proj(x_BTD)) * self.up_proj(x_BTD))
        return added


class SquaredReLU(nn.Module):
    """Two matrices and no gate: down(relu(up(x))^2) (Primer: So et al., 2021)."""

    def __init__(self, hidden_size: int, inner_size: int) -> None:
        super().__init__()
        self.up_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.down_proj = nn.Linear(inner_size, hidden_size, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """What the layer adds to the stream, (B, T, D)."""
        added: Tensor = self.down_proj(F.relu(self.up_proj(x_BTD)).square())
        return added


class MoE(nn.Module):
    """Experts, of which a router picks `experts_per_token` for each token; with no limit on an expert's tokens, so
    that a token's result depends on no other token.
    """

    def __init__(self, hidden_size: int, inner_size: int, moe: MoeConfig, mlp: type[nn.Module]) -> None:
        super().__init__()
        self.config = moe
        self.gate = nn.Linear(hidden_size, moe.num_experts, bias=False)
        self.experts = nn.ModuleList(mlp(hidden_size, inner_size) for _ in range(moe.num_experts))
        self.shared = mlp(hidden_size, moe.shared_expert_size) if moe.shared_expert_size else None
        self.routed: tuple[Tensor, Tensor] | None = None
        """Of the last pass: every token's probabilities (N, X), and the experts that it took (N, A)."""

    def forward(self, x_BTD: Tensor) -> Tensor:
        """What the layer adds to the stream, (B, T, D), or (L, D) of (L, D)."""
        x_ND = x_BTD.reshape(-1, x_BTD.shape[-1])
        probs_NX = self.gate(x_ND).float().softmax(-1)
        weights_NA, chosen_NA = probs_NX.topk(self.config.experts_per_token, -1)
        if self.config.norm_topk:
            weights_NA = weights_NA / weights_NA.sum(-1, keepdim=True)
        self.routed = probs_NX, chosen_NA
        out_ND = self.shared(x_ND) if self.shared else torch.zeros_like(x_ND)
        for number, expert in enumerate(self.experts):
            token_M, place_M = (chosen_NA == number).nonzero(as_tuple=True)
            share_M1 = weights_NA[token_M, place_M, None].to(x_ND.dtype)
            out_ND = out_ND.index_add(0, token_M, expert(x_ND[token_M]) * share_M1)
        return out_ND.view_as(x_BTD)


def mlp_of(hidden_size: int, inner_size: int, layer: int, moe: MoeConfig, relu2: bool) -> nn.Module:
    """A layer's MLP or experts."""
    mlp = SquaredReLU if relu2 else MLP
    if not moe.sparse(layer):
        return mlp(hidden_size, inner_size)
    return MoE(hidden_size, moe.inner_size(inner_size), moe, mlp)
