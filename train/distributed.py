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
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from datakit.errors import ConfigError, DatakitError
from train.config import LOG
from train.model import CausalLM
from train.ranks import Ranks, RanksConfig, is_slice

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule

T = TypeVar("T")
_CALLS = itertools.count()
"""Numbers of the calls of `by_first`, the same on all ranks."""


def joined(device: torch.device, config: RanksConfig) -> "Processes":
    """Join the other processes; see `Ranks.join`."""
    found = Processes(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device)
    if not dist.is_initialized():
        with found.network_errors():
            own = device if device.type == "cuda" else None  # else NCCL guesses it at the first collective
            timeout = timedelta(seconds=config.rank_timeout_s)
            dist.init_process_group("nccl" if own else "gloo", timeout=timeout, device_id=own)
        atexit.register(lambda: dist.is_initialized() and dist.destroy_process_group())
        if not found.first:
            LOG.setLevel("WARNING")
    return found


class Processes(Ranks):
    """The processes that `torchrun` started; it may also be one."""

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

    def reduced(self, values: Tensor) -> Tensor:
        """The tensor summed over the ranks, in place."""
        with self.network_errors():
            dist.all_reduce(values)
        return values

    def gathered(self, value: T) -> list[T]:
        """The value of each rank, on every rank."""
        found: list[Any] = [value] * self.size
        with self.network_errors():
            dist.all_gather_object(found, value)
        return found

    def agree(self, values: Mapping[str, Any]) -> None:
        """Check that all ranks have the same values.

        Raises:
            ConfigError: they differ; the message has both values.
        """
        everyone = self.gathered(dict(values))
        for name, (rank, theirs) in itertools.product(values, enumerate(everyone)):
            if theirs[name] != (first := everyone[0][name]):
                differ = f"rank 0 has {name} {first!r}, but rank {rank} has {theirs[name]!r}"
                raise ConfigError(f"{differ}: start every rank with the same options and files")

    def by_first(self, does: Callable[[], T]) -> T:
        """Call `does` on rank 0; returns its result, or raises its error, on every rank.

        It may take longer than ranks wait for each other, such as packing files or writing a checkpoint: the others ask
        the store that they met in, ten times a second, and not a collective, which would time out.
        """
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

    def reshard(self, model: nn.Module) -> None:
        """Drop gathered layers; needed after slices were changed by anything but an optimizer step."""
        for part in _parts(model):
            part.reshard()

    def sum_in_last(self, model: nn.Module, last: bool) -> None:
        """Leave the sums of gradients of slices to the last micro-batch of a step."""
        for part in _parts(model)[:1]:
            part.set_requires_gradient_sync(last)


def _sum_bucket(_: None, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
    """A plain sum: torch's own hook takes the mean over ranks, and the loop divides by the labels of all."""
    sent = dist.all_reduce(bucket.buffer(), async_op=True)
    return sent.get_future().then(lambda future: future.value()[0])


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
