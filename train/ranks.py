"""Several processes as one run: `torchrun --nproc-per-node 4 -m train.sft --manifest ... [--fsdp]`.

Every rank knows the whole plan of steps and takes its share of each step. Sums over all ranks make the step, so the
result does not depend on the number of ranks. Without options each rank has the whole model, and torch's
DistributedDataParallel sums gradients in the last backward pass of a step. With `--fsdp` (ZeRO: Rajbhandari et al.,
2020; FSDP: Zhao et al., 2023) each rank has a slice of weights, gradients and optimizer state, layers are gathered when
needed, and each micro-batch sums its gradients into the slices. Rank 0 makes or reads the weights and distributes the
slices, so no other rank ever holds the whole model.

Only rank 0 prints and writes.
"""

import atexit
import contextlib
import itertools
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from datakit.errors import ConfigError, DatakitError
from train.config import RanksConfig
from train.model import CausalLM

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule

T = TypeVar("T")
_CALLS = itertools.count()
"""Numbers of the calls of `by_first`, the same on all ranks."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The processes of a run, and the number of this one."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")
    timeout: timedelta | None = None

    @classmethod
    def join(cls, device: torch.device, config: RanksConfig) -> "Ranks":
        """Join the processes that `torchrun` started, if it did; ranks other than 0 log nothing from then on.

        Raises:
            DatakitError: some rank did not join in time.
        """
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            if config.fsdp:
                raise ConfigError("--fsdp needs several ranks: start with torchrun --nproc-per-node 2 -m train.sft ...")
            return cls(device=device)
        timeout = timedelta(seconds=config.rank_timeout_s)
        found = cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device, timeout)
        if not dist.is_initialized():
            with found.network_errors():
                backend = "nccl" if device.type == "cuda" else "gloo"
                own = device if device.type == "cuda" else None  # else NCCL guesses it at the first collective
                dist.init_process_group(backend, timeout=timeout, device_id=own)
            atexit.register(lambda: dist.is_initialized() and dist.destroy_process_group())
            if not found.first:
                logging.getLogger("train").setLevel(logging.WARNING)
        return found

    @property
    def first(self) -> bool:
        """Whether this is the rank that prints and writes."""
        return self.rank == 0

    @contextlib.contextmanager
    def network_errors(self) -> Iterator[None]:
        """Turn errors of communication inside the context into a clear DatakitError."""
        try:
            yield
        except (dist.DistError, RuntimeError) as e:
            words = ("connection", "timed out", "timeout", "gloo", "nccl", "socket", "store")
            if self.size == 1 or not (isinstance(e, dist.DistError) or any(w in str(e).lower() for w in words)):
                raise
            # the first line, without source location and advice
            short = str(e).splitlines()[0].split(". This is")[0].split(".cc:")[-1].lstrip("0123456789] ")
            raise DatakitError(
                f"rank {self.rank} of {self.size} cannot continue without the other ranks: {short}. Another ended, "
                f"hangs, or is slower than --rank-timeout-s; see its message, and continue with --resume"
            ) from None

    def sums(self, values: Iterable[float]) -> list[float]:
        """Each value summed over the ranks."""
        found: list[float] = self.summed(list(map(float, values))).tolist()
        return found

    def summed(self, numbers: Sequence[float], tensors: Sequence[Tensor] = ()) -> Tensor:
        """Numbers, then tensors on the device, each summed over the ranks: fp64, flat, on the device; nothing waits."""
        flat = [torch.tensor(numbers, dtype=torch.float64).to(self.device, non_blocking=True)]
        found = torch.cat([*flat, *(t.detach().to(self.device).double().flatten() for t in tensors)])
        if self.size > 1:
            with self.network_errors():
                dist.all_reduce(found)
        return found

    def gathered(self, value: T) -> list[T]:
        """The value of each rank, on every rank."""
        found: list[Any] = [value] * self.size
        if self.size > 1:
            with self.network_errors():
                dist.all_gather_object(found, value)
        return found

    def agree(self, values: Mapping[str, Any]) -> None:
        """Check that all ranks have the same values.

        Raises:
            ConfigError: they differ; the message has both values.
        """
        everyone = self.gathered(dict(values))
        for rank, theirs in enumerate(everyone):
            for name in (name for name, value in everyone[0].items() if theirs.get(name) != value):
                raise ConfigError(
                    f"rank 0 has {name} {everyone[0][name]!r}, but rank {rank} has {theirs.get(name)!r}: start every "
                    f"rank with the same options and files"
                )

    def by_first(self, does: Callable[[], T]) -> T:
        """Call `does` on rank 0; returns its result, or raises its error, on every rank.

        It may take longer than ranks wait for each other, such as packing files or writing a checkpoint: the others ask
        the store that they met in, ten times a second, and not a collective, which would time out.
        """
        if self.size == 1:
            return does()
        outcome: tuple[T | None, Exception | None] = (None, None)
        store, key = dist.distributed_c10d._get_default_store(), f"datakit/{next(_CALLS)}"
        with self.network_errors():
            if self.first:
                try:
                    outcome = does(), None
                except Exception as e:
                    outcome = None, e
                store.set(key, "done")
            while not store.check([key]):
                time.sleep(0.1)
        found, error = self.gathered(outcome)[0]
        if error:
            raise error
        return found  # type: ignore[return-value]

    def data_parallel(self, module: nn.Module) -> DistributedDataParallel:
        """`module` on every rank: it begins with the weights of rank 0, and its backward passes sum gradients.

        A bucket of gradients is sent as soon as it is complete, while the backward pass goes on (Li et al., 2020).
        Every rank has to run every pass, also one whose micro-batch has no labels.
        """
        with self.network_errors():
            parallel = DistributedDataParallel(module, broadcast_buffers=False, gradient_as_bucket_view=True)
        parallel.register_comm_hook(None, _sum_bucket)
        return parallel


def _sum_bucket(_: None, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
    """A plain sum: torch's own hook takes the mean over ranks, and the loop divides by the labels of all."""
    sent = dist.all_reduce(bucket.buffer(), async_op=True)
    found: torch.futures.Future[Tensor] = sent.get_future().then(lambda future: future.value()[0])
    return found


def shard(ranks: Ranks, model: CausalLM, precision: str = "fp32") -> None:
    """Shard the model in place: each rank gets a slice of every weight of rank 0, on its device.

    The models of other ranks can be on the device `meta`. With `precision` bf16, layers are gathered in bf16, half the
    bytes, and gradients are summed in fp32; the slices that the optimizer updates keep their dtype.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.tensor import DTensor, distribute_tensor

    halves = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False)
    policy = halves if precision == "bf16" else MixedPrecisionPolicy()
    mesh = init_device_mesh(ranks.device.type, (ranks.size,))
    whole = {name: p.detach() for name, p in model.named_parameters()}
    for module in (*model.model.layers, model):
        fully_shard(module, mesh=mesh, mp_policy=policy)
    for part in _parts(model):
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(True)
        part.set_reduce_scatter_unused_params(True)  # the rows of a rank may have no label, or not use an expert
    if not ranks.first:
        model.to_empty(device=ranks.device)
    for name, p in model.named_parameters():
        assert isinstance(p, DTensor)
        source = whole[name] if ranks.first else torch.empty(p.shape, dtype=p.dtype, device=ranks.device)
        with ranks.network_errors(), torch.no_grad():
            p.copy_(distribute_tensor(source.to(ranks.device), mesh, p.placements))


def _parts(model: nn.Module) -> "list[FSDPModule]":
    if not any(map(is_slice, model.parameters())):
        return []
    from torch.distributed.fsdp import FSDPModule

    return [m for m in model.modules() if isinstance(m, FSDPModule)]


def reshard(model: nn.Module) -> None:
    """Drop gathered layers; needed after slices were changed by anything but an optimizer step."""
    for part in _parts(model):
        part.reshard()


def sum_in_last(model: nn.Module, last: bool) -> None:
    """Leave the sums of gradients to the last micro-batch of a step."""
    for part in _parts(model)[:1]:
        part.set_requires_gradient_sync(last)


def is_slice(value: Tensor) -> bool:
    """Whether a tensor is a rank's slice of one, a DTensor; its module takes a second to import, so nobody asks it."""
    return hasattr(value, "to_local")


def whole_of(value: Any) -> Tensor:
    """The whole tensor; for a sliced one all ranks must call this."""
    found: Tensor = value.full_tensor() if is_slice(value) else value
    return found


def own_part(value: Any) -> Tensor:
    """This rank's part of a sliced tensor."""
    found: Tensor = value.to_local() if is_slice(value) else value
    return found


def like(other: Tensor, value: Tensor) -> Tensor:
    """`value`, sliced like `other` if that is sliced and has the same shape."""
    if not is_slice(other) or value.shape != other.shape:
        return value
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(other, DTensor)
    sliced: Tensor = distribute_tensor(value.to(other.device), other.device_mesh, other.placements, src_data_rank=None)
    return sliced


@torch.no_grad()
def fill(target: Tensor, value: Tensor) -> None:
    """Copy a whole tensor into a whole or sliced tensor."""
    target.copy_(like(target, value))
