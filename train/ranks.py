"""The processes of a run, and tensors that each of them may have a slice of.

A run is one process, unless `torchrun` started more: those are in distributed.py, which is loaded then.
"""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from datakit.config import at_least, option
from datakit.errors import ConfigError
from train.config import more

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class RanksConfig:
    """Settings for several processes."""

    fsdp: bool = option(False, "shard weights, gradients and optimizer state over the ranks of torchrun", result=False)
    fsdp_keep_gradients: bool = more(False, "sum whole gradients once a step", result=False, acts_with={"fsdp": ()})
    rank_timeout_s: int = more(600, "seconds that ranks wait for each other, also in the slowest step", result=False)

    def __post_init__(self) -> None:
        at_least(self, 1, "rank_timeout_s")


@dataclass(frozen=True)
class Ranks:
    """The processes of a run, and the number of this one; this class is for a run of one process."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")

    @classmethod
    def join(cls, device: torch.device, config: RanksConfig) -> "Ranks":
        """Join the processes that `torchrun` started, if it did; ranks other than 0 log nothing from then on.

        Raises:
            DatakitError: some rank did not join in time.
        """
        if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
            from train.distributed import joined

            return joined(device, config)
        if config.fsdp:
            raise ConfigError("--fsdp needs several ranks: start with torchrun --nproc-per-node 2 -m train.sft ...")
        return cls(device=device)

    @property
    def first(self) -> bool:
        """Whether this is the rank that prints and writes."""
        return self.rank == 0

    def network_errors(self) -> contextlib.AbstractContextManager[None]:
        """Turn errors of communication inside the context into a clear DatakitError."""
        return contextlib.nullcontext()

    def summed(self, numbers: Sequence[float], tensors: Sequence[Tensor] = ()) -> Tensor:
        """Numbers, then tensors on the device, each summed over the ranks: fp64, flat, on the device; nothing waits."""
        flat = [torch.tensor(numbers, dtype=torch.float64).to(self.device, non_blocking=True)]
        return self.reduced(torch.cat([*flat, *(t.detach().to(self.device).double().flatten() for t in tensors)]))

    def reduced(self, values: Tensor) -> Tensor:
        """The tensor summed over the ranks, in place."""
        return values

    def gathered(self, value: T) -> list[T]:
        """The value of each rank, on every rank."""
        return [value]

    def agree(self, values: Mapping[str, Any]) -> None:
        """Check that all ranks have the same values.

        Raises:
            ConfigError: they differ; the message has both values.
        """

    def by_first(self, does: Callable[[], T]) -> T:
        """Call `does` on rank 0; returns its result, or raises its error, on every rank. It may take long."""
        return does()

    def data_parallel(self, module: nn.Module) -> "DistributedDataParallel | None":
        """`module` on every rank, with its gradients summed over them; None where there is one rank."""
        return None

    def reshard(self, model: nn.Module) -> None:
        """Drop gathered layers; needed after slices were changed by anything but an optimizer step."""

    def sum_in_last(self, model: nn.Module, last: bool) -> None:
        """Leave the sums of gradients of slices to the last micro-batch of a step."""


def is_slice(value: Tensor) -> bool:
    """Whether a tensor is a rank's slice of one, a DTensor; its module takes a second to import, so nobody asks it."""
    return hasattr(value, "to_local")


def whole_of(value: Any) -> Tensor:
    """The whole tensor; for a sliced one all ranks must call this."""
    return value.full_tensor() if is_slice(value) else value


def own_part(value: Any) -> Tensor:
    """This rank's part of a sliced tensor."""
    return value.to_local() if is_slice(value) else value


def like(other: Any, value: Tensor) -> Tensor:
    """`value`, sliced like `other` if that is sliced and has the same shape."""
    if not is_slice(other) or value.shape != other.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(other.device), other.device_mesh, other.placements, src_data_rank=None)
