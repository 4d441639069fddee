"""Mixture of experts, and the loss that balances its router.

Every token passes through the `experts_per_token` experts with the highest router probability (Shazeer et al., 2017).
Experts have no capacity limit, so the result of a token depends on no other token.

The balance loss of a layer is X * sum_i f_i P_i: f_i is the share of tokens of expert i, P_i its mean probability
(Switch: Fedus et al., 2021). Only P has a gradient, so f can come from the previous optimizer step. Each micro-batch
then adds a plain sum over its tokens, and the loss does not depend on micro-batches or ranks (with f of single
micro-batches it would, and f would be noisy: Qiu et al., 2025).

Shapes: B rows, T positions, N flat positions, D hidden, X experts, A active experts of a token, M = N*A pairs of a
token and one of its experts.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from train.attention import move_rows

if TYPE_CHECKING:
    from train.data import Batch
    from train.model import MLP, ModelConfig


class MoE(nn.Module):
    """A router and its experts."""

    def __init__(self, c: "ModelConfig", mlp: "Callable[[int], MLP]") -> None:
        """`mlp` makes an expert of an inner width."""
        super().__init__()
        self.config = c.moe
        self.gate = nn.Linear(c.hidden_size, c.moe.num_experts, bias=False)
        self.experts = nn.ModuleList(mlp(c.moe.expert_size) for _ in range(c.moe.num_experts))
        self.routed: tuple[Tensor, Tensor] | None = None
        """Router probabilities (N, X) and chosen experts (N, A) of the last forward pass."""

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The layer's addition to the residual stream, in the shape of the input: (B, T, D) or (L, D)."""
        x_ND = x_BTD.reshape(-1, x_BTD.shape[-1])
        probs_NX = self.gate(x_ND).float().softmax(-1)
        weights_NA, chosen_NA = probs_NX.topk(self.config.experts_per_token, -1)
        if self.config.norm_topk:
            weights_NA = weights_NA / weights_NA.sum(-1, keepdim=True)
        self.routed = probs_NX, chosen_NA
        weighted_NAD = self._apply_experts(x_ND, chosen_NA) * weights_NA[..., None].to(x_ND.dtype)
        out_ND = weighted_NAD.sum(1, dtype=x_ND.dtype)  # without a dtype, CUDA's autocast makes it fp32
        return out_ND.view_as(x_BTD)

    def _apply_experts(self, x_ND: Tensor, chosen_NA: Tensor) -> Tensor:
        """The outputs of each token's experts, (N, A, D).

        Pairs of a token and an expert are sorted by expert, so that each expert gets one segment.
        """
        flat_M = chosen_NA.flatten()
        pairs_M, places_M = flat_M.argsort(stable=True), torch.arange(len(flat_M), device=flat_M.device)
        x_MD = x_ND[:, None].expand(*chosen_NA.shape, x_ND.shape[-1]).flatten(0, 1)
        x_MD = move_rows(x_MD, pairs_M, places_M, len(flat_M))
        ones_M = torch.ones_like(flat_M)
        counts_X = flat_M.new_zeros(len(self.experts)).scatter_add_(0, flat_M, ones_M)  # bincount waits
        made_MD = self.grouped(x_MD, counts_X) if self._can_group(x_MD) else self.segmented(x_MD, counts_X)
        return move_rows(made_MD, places_M, pairs_M, len(flat_M)).view(*chosen_NA.shape, -1)

    def segmented(self, x_MD: Tensor, counts_X: Tensor) -> Tensor:
        """Run the experts one after another, each on its segment."""
        pieces = zip(self.experts, torch.split(x_MD, counts_X.tolist()), strict=True)
        # in training an expert without tokens gets a zero gradient, as it does with other ranks or micro-batches
        found = [expert(piece) for expert, piece in pieces if len(piece) or torch.is_grad_enabled()]
        return torch.cat(found) if found else x_MD

    def grouped(self, x_MD: Tensor, counts_X: Tensor) -> Tensor:
        """Run all experts with one grouped product per matrix, without a wait for the token counts."""
        ends_X = counts_X.cumsum(0).to(torch.int32)

        def product(name: str) -> Callable[[Tensor], Tensor]:
            """(..., I) -> (..., O)."""
            matrices = [expert.get_parameter(f"{name}.weight").to(x_MD.dtype) for expert in self.experts]
            weight_XOI = torch.stack(matrices)
            return partial(F.grouped_mm, mat_b=weight_XOI.transpose(1, 2), offs=ends_X)

        first: MLP = self.experts[0]  # type: ignore[assignment]
        return first.through(x_MD, *map(product, first.matrices))

    def _can_group(self, x_MD: Tensor) -> bool:
        """On CUDA in bf16; not with adapters or biases, and rows must be aligned."""
        if not x_MD.is_cuda or x_MD.dtype != torch.bfloat16 or torch.cuda.get_device_capability(x_MD.device) < (8, 0):
            return False
        matrices = [m for expert in self.experts for m in expert.children()]
        plain = all(type(m) is nn.Linear and m.bias is None for m in matrices)
        return plain and all(size % 8 == 0 for m in matrices for size in m.get_parameter("weight").shape)


class Balance:
    """Balance loss over all routers of a model, with the expert shares of the previous step."""

    def __init__(self, model: nn.Module, weight: float, state: dict[str, Any] | None = None) -> None:
        """`state` comes from a checkpoint."""
        self.weight, self.layers = weight, [m for m in model.modules() if isinstance(m, MoE)]
        experts = self.layers[0].config.num_experts
        self.shares: list[list[float]] = [[1 / experts] * experts for _ in self.layers]
        """f of each layer; a token with A experts counts once for each."""
        self.labels_per_token = 1.0
        if state:
            self.shares, self.labels_per_token = state["shares"], state["labels_per_token"]
        self._begin()

    def _begin(self) -> None:
        self._step = [(torch.tensor(f), torch.zeros(len(f), dtype=torch.float64)) for f in self.shares]
        """Shares and counts of each layer; both stay on the device until the step ends."""
        self._tokens = 0

    def loss(self, batch: "Batch") -> Tensor:
        """The balance loss of the micro-batch of the last forward pass, as a summed loss; counts its tokens per expert.

        The loop divides by the step's labels, so the sum is scaled to become a mean over tokens.
        """
        real_N1 = (batch.segments.sequence_BT.flatten() > 0)[:, None]
        terms = []
        for number, layer in enumerate(self.layers):
            assert layer.routed is not None
            probs_NX, chosen_NA = layer.routed
            share_X, counts_X = (x.to(probs_NX.device, non_blocking=True) for x in self._step[number])
            terms.append(((probs_NX * real_N1).sum(0) * share_X).sum() * len(share_X))
            real_M = real_N1.expand_as(chosen_NA).flatten().to(counts_X.dtype)
            self._step[number] = share_X, counts_X.scatter_add(0, chosen_NA.flatten(), real_M)
        self._tokens += batch.real_tokens
        return torch.stack(terms).mean() * (self.weight * self.labels_per_token)

    def counted(self) -> Tensor:
        """The tokens of the step so far, then of each expert of each layer; on the device, to be summed over ranks."""
        counts = torch.cat([counts_X for _, counts_X in self._step])
        return torch.cat((torch.full((1,), float(self._tokens), dtype=torch.float64).to(counts), counts))

    def finish(self, labels: int, counted: Sequence[float]) -> None:
        """End a step with this many labels on all ranks; `counted` is the sum of `counted()` over the ranks."""
        (tokens, *flat), size = counted, len(self.shares[0])
        if tokens:
            self.shares = [[n / tokens for n in flat[i : i + size]] for i in range(0, len(flat), size)]
            self.labels_per_token = labels / tokens
        self._begin()

    def busiest(self) -> float:
        """Tokens of the busiest expert, divided by the mean per expert; the largest value of all layers."""
        return max(max(f) * len(f) / sum(f) for f in self.shares)

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint, as plain numbers."""
        return {"shares": self.shares, "labels_per_token": self.labels_per_token}
