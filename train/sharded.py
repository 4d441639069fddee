"""A model of which each rank has a slice (ZeRO: Rajbhandari et al., 2020; FSDP: Zhao et al., 2023).

Rank 0 alone makes or reads the weights and deals them out, so no other rank ever holds the whole model. Gradients, the
optimizer's state and averages are sliced as the weights are. Checkpoints hold whole tensors: they are put together one
by one on rank 0, and each rank takes its slices out of them again.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from train.average import WeightAverage
from train.distributed import Ranks
from train.hf import Weights
from train.model import CausalLM, ModelConfig
from train.optimizers import Optimizers
from train.slices import whole_of


def shard(ranks: Ranks, model: CausalLM) -> None:
    """Leave each rank a slice of every weight of rank 0's model, on its device, in place.

    The other ranks' models need no memory yet (device `meta`).
    """
    mesh = init_device_mesh(ranks.device.type, (ranks.size,))
    whole = {name: p.detach() for name, p in model.named_parameters()}
    for module, method in [*((block, "at") for block in model.model.layers), (model, "hidden_at")]:
        fully_shard(module, mesh=mesh)
        register_fsdp_forward_method(module, method)
    for part in _parts(model):
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(True)
        part.set_reduce_scatter_unused_params(True)  # a rank's rows may have no label, or leave out an expert
    if not ranks.first:
        model.to_empty(device=ranks.device)
    for name, p in model.named_parameters():
        assert isinstance(p, DTensor)
        dealt = whole[name] if ranks.first else torch.empty(p.shape, device=ranks.device)
        with ranks.talking(), torch.no_grad():
            p.copy_(distribute_tensor(dealt.to(ranks.device), mesh, p.placements))


def _parts(model: nn.Module) -> Iterator[FSDPModule]:
    return (m for m in model.modules() if isinstance(m, FSDPModule))


def take_apart(model: nn.Module) -> None:
    """Forget layers that a forward pass put together: needed after the slices were changed by other than a step."""
    for part in _parts(model):
        part.reshard()


@dataclass(frozen=True, slots=True)
class WholeModel:
    """What a checkpoint needs of a model."""

    config: ModelConfig
    parameters: dict[str, nn.Parameter]

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """As a module's."""
        return iter(self.parameters.items())


def put_together(
    model: CausalLM, optimizer: Optimizers, average: WeightAverage | None
) -> tuple[Weights, Any, WeightAverage | None]:
    """Model, optimizer and average as one process would have them; of sliced ones, what stands in for them.

    All ranks take part, and rank 0 has the values, in the CPU's memory.
    """
    if not isinstance(model, FSDPModule):
        return model, optimizer, average
    parameters, state = {}, {}
    for name, p in model.named_parameters():
        parameters[name] = nn.Parameter(_on_first(p.detach()), requires_grad=p.requires_grad)
        state[parameters[name]] = {k: _on_first(v) for k, v in optimizer.state.get(p, {}).items()}
    if average:
        average = copy.copy(average)
        average.values = {name: _on_first(v) for name, v in average.values.items()}
    return WholeModel(model.config, parameters), SimpleNamespace(state=state), average


def _on_first(value: Tensor) -> Tensor:
    """All of a tensor on rank 0; nothing of it on the others, which takes no memory there."""
    found = whole_of(value)
    return found.cpu() if dist.get_rank() == 0 else found.new_empty(0)
