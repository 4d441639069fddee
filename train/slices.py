"""Tensors of which this process has a slice (torch's DTensor), beside whole ones."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor


def local(tensors: Iterable[Tensor]) -> list[Tensor]:
    """What lies in this process of each, in the same memory: for arithmetic element by element."""
    return [t.to_local() if isinstance(t, DTensor) else t for t in tensors]


def whole_of(value: Tensor) -> Tensor:
    """All of a tensor; of a sliced one all ranks take part."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def like(other: Tensor, value: Tensor) -> Tensor:
    """A whole tensor, or the slice of it that this rank has of `other`, if that is sliced and of the same shape."""
    if not isinstance(other, DTensor) or value.shape != other.shape:
        return value
    sliced: Tensor = distribute_tensor(value.to(other.device), other.device_mesh, other.placements, src_data_rank=None)
    return sliced


@torch.no_grad()
def fill(target: Tensor, value: Tensor) -> None:
    """Copy a whole tensor into a whole or sliced one."""
    target.copy_(like(target, value))
