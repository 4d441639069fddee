"""The balance loss of a mixture of experts, from the router's statistics over whole optimizer steps.

A layer's loss is X * sum_i f_i P_i: f_i experts' shares of the tokens, P_i their mean probability (Switch: Fedus et
al., 2021). Only P has a gradient, so f may be the step's before. Then a micro-batch adds a plain sum over its tokens,
and splitting a step, or sharing it among ranks, changes nothing (over single micro-batches f would be noise: Qiu et
al., 2025).

Shapes: B rows, T positions, N flat positions, X experts, A active experts of a token.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from train.data import Batch
from train.mlp import MoE


class Balance:
    """The routers of a model, and what they did in the step before."""

    def __init__(self, model: nn.Module, weight: float, state: dict[str, Any] | None = None) -> None:
        """`state` is a checkpoint's."""
        self.weight, self.layers = weight, [m for m in model.modules() if isinstance(m, MoE)]
        experts = self.layers[0].config.num_experts
        self.shares: list[list[float]] = [[1 / experts] * experts for _ in self.layers]
        """f of each layer: of a token that passes through A experts, each counts as one."""
        self.labels_per_token = 1.0
        if state:
            self.shares, self.labels_per_token = state["shares"], state["labels_per_token"]
        self._begin()

    def _begin(self) -> None:
        self._counts, self._tokens = [torch.zeros(len(f), dtype=torch.long) for f in self.shares], 0

    def loss(self, batch: Batch) -> Tensor:
        """What a micro-batch that just passed through the model adds to the summed loss; notes where its tokens went.

        The loop divides by labels, so that this is scaled to be a mean over tokens in the end.
        """
        real_N = batch.segments.sequence_BT.flatten() > 0
        terms = []
        for number, layer in enumerate(self.layers):
            assert layer.routed is not None
            probs_NX, chosen_NA = (x[real_N] for x in layer.routed)
            share_X = torch.tensor(self.shares[number], device=probs_NX.device)
            terms.append((probs_NX.sum(0) * share_X).sum() * len(share_X))
            self._counts[number] += torch.bincount(chosen_NA.flatten(), minlength=len(share_X)).cpu()
        self._tokens += batch.real_tokens
        return torch.stack(terms).mean() * (self.weight * self.labels_per_token)

    def finish(self, labels: int, summed: Callable[[Iterable[float]], Sequence[float]]) -> None:
        """End a step of so many labels on all ranks; `summed` adds numbers over the ranks."""
        flat = [float(n) for counts in self._counts for n in counts.tolist()]
        tokens, *flat = summed([float(self._tokens), *flat])
        size = len(self.shares[0])
        if tokens:
            self.shares = [[n / tokens for n in flat[i : i + size]] for i in range(0, len(flat), size)]
            self.labels_per_token = labels / tokens
        self._begin()

    def busiest(self) -> float:
        """The busiest expert's tokens, as a multiple of what each would have if all had as many; the worst layer's."""
        return max(max(f) * len(f) / sum(f) for f in self.shares)

    def state(self) -> dict[str, Any]:
        """Plain numbers that a resumed run goes on from."""
        return {"shares": self.shares, "labels_per_token": self.labels_per_token}
