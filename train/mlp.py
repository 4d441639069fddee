"""What a layer adds to the stream beside attention: SwiGLU, a squared ReLU, or a mixture of experts.

Shapes: N tokens, D hidden, X experts, A active experts of a token, M = N*A pairs of a token and one of its experts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from datakit.config import option
from datakit.errors import ConfigError
from train.attention import move_rows

Project = Callable[[Tensor], Tensor]
"""(..., I) -> (..., O)."""


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


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up."""
    if gate.device.type != "cpu" or torch.compiler.is_compiling():
        return F.silu(gate) * up
    product: Tensor = _Gated.apply(gate, up)  # type: ignore[no-untyped-call]
    return product


class _Gated(torch.autograd.Function):
    """Computes silu(gate) again in the backward pass rather than keep it."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        return torch.ops.aten.silu_backward(grads[0] * up, gate), F.silu(gate).mul_(grads[0])


class MLP(nn.Module):
    """SwiGLU (Shazeer, 2020)."""

    matrices = ("gate_proj", "up_proj", "down_proj")

    def __init__(self, hidden_size: int, inner_size: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.down_proj = nn.Linear(inner_size, hidden_size, bias=False)

    @staticmethod
    def through(x: Tensor, gate: Project, up: Project, down: Project) -> Tensor:
        """What its matrices, in any form, make of x."""
        return down(gated(gate(x), up(x)))

    def forward(self, x_BTD: Tensor) -> Tensor:
        """What the layer adds to the stream, (B, T, D)."""
        return self.through(x_BTD, self.gate_proj, self.up_proj, self.down_proj)


class SquaredReLU(nn.Module):
    """Two matrices and no gate: down(relu(up(x))^2) (Primer: So et al., 2021)."""

    matrices = ("up_proj", "down_proj")

    def __init__(self, hidden_size: int, inner_size: int) -> None:
        super().__init__()
        self.up_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.down_proj = nn.Linear(inner_size, hidden_size, bias=False)

    @staticmethod
    def through(x: Tensor, up: Project, down: Project) -> Tensor:
        """What its matrices, in any form, make of x."""
        return down(F.relu(up(x)).square())

    def forward(self, x_BTD: Tensor) -> Tensor:
        """What the layer adds to the stream, (B, T, D)."""
        return self.through(x_BTD, self.up_proj, self.down_proj)


class MoE(nn.Module):
    """Experts, of which a router picks `experts_per_token` for each token; with no limit on an expert's tokens, so
    that a token's result depends on no other token.
    """

    def __init__(self, hidden_size: int, inner_size: int, moe: MoeConfig, mlp: type[MLP | SquaredReLU]) -> None:
        super().__init__()
        self.config, self.kind = moe, mlp
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
        out_ND = (self._chosen(x_ND, chosen_NA) * weights_NA[..., None].to(x_ND.dtype)).sum(1)
        if self.shared:
            out_ND = out_ND + self.shared(x_ND)
        out: Tensor = out_ND.view_as(x_BTD)
        return out

    def _chosen(self, x_ND: Tensor, chosen_NA: Tensor) -> Tensor:
        """What each token's experts make of it, (N, A, D).

        Pairs of a token and an expert are sorted by expert, so that each expert has one segment.
        """
        flat_M = chosen_NA.flatten()
        pairs_M, places_M = flat_M.argsort(stable=True), torch.arange(len(flat_M), device=flat_M.device)
        x_MD = x_ND[:, None].expand(*chosen_NA.shape, x_ND.shape[-1]).flatten(0, 1)
        x_MD = move_rows(x_MD, pairs_M, places_M, len(flat_M))
        counts_X = torch.bincount(flat_M, minlength=len(self.experts))
        made_MD = self.grouped(x_MD, counts_X) if self._can_group(x_MD) else self.segmented(x_MD, counts_X)
        return move_rows(made_MD, places_M, pairs_M, len(flat_M)).view(*chosen_NA.shape, -1)

    def segmented(self, x_MD: Tensor, counts_X: Tensor) -> Tensor:
        """Each expert on its segment, one after another."""
        pieces = zip(self.experts, torch.split(x_MD, counts_X.tolist()), strict=True)
        # in training an expert without tokens has a gradient too, of zeros, so that ranks and accumulation agree
        found = [expert(piece) for expert, piece in pieces if len(piece) or torch.is_grad_enabled()]
        return torch.cat(found) if found else x_MD

    def grouped(self, x_MD: Tensor, counts_X: Tensor) -> Tensor:
        """All experts in one product a matrix; nothing waits for how many tokens each has."""
        ends_X = counts_X.cumsum(0).to(torch.int32)

        def product(name: str) -> Project:
            matrices = [expert.get_parameter(f"{name}.weight").to(x_MD.dtype) for expert in self.experts]
            weight_XOI = torch.stack(matrices)
            return partial(F.grouped_mm, mat_b=weight_XOI.transpose(1, 2), offs=ends_X)

        return self.kind.through(x_MD, *map(product, self.kind.matrices))

    def _can_group(self, x_MD: Tensor) -> bool:
        if not (x_MD.is_cuda and x_MD.dtype == torch.bfloat16):
            return False
        matrices = [m for expert in self.experts for m in expert.children()]
        plain = all(type(m) is nn.Linear and m.in_features % 8 == m.out_features % 8 == 0 for m in matrices)
        return plain and _has_grouped_product(x_MD.device)  # adapters stand beside a matrix, and rows must be aligned


@cache
def _has_grouped_product(device: torch.device) -> bool:
    """Whether a GPU multiplies groups in one kernel: tried, since this depends on its generation and on torch."""
    x, weight = (torch.ones(shape, dtype=torch.bfloat16, device=device) for shape in ((16, 16), (2, 16, 16)))
    try:
        found = F.grouped_mm(x, weight.transpose(1, 2), offs=torch.tensor([8, 16], dtype=torch.int32, device=device))
    except (RuntimeError, AttributeError):
        return False
    return bool((found == 16).all())


def mlp_of(hidden_size: int, inner_size: int, layer: int, moe: MoeConfig, relu2: bool) -> nn.Module:
    """A layer's MLP or experts."""
    mlp = SquaredReLU if relu2 else MLP
    if not moe.sparse(layer):
        return mlp(hidden_size, inner_size)
    return MoE(hidden_size, moe.inner_size(inner_size), moe, mlp)
