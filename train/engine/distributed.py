"""Several processes as one run: `torchrun --nproc-per-node 4 -m train.sft --manifest ... [--fsdp]`.

Every rank has the whole plan of steps, takes its pieces of each, and the sums of all make the step, so that more ranks
change nothing but speed. Data parallelism (Li et al., 2020): each rank has the whole model, and gradients are summed
while the last backward pass still runs. With `--fsdp` each has a slice of weights, gradients and optimizer's state, and
layers are put together as they are needed (`sharded`).

Rank 0 alone prints and writes; checkpoints are whole, and do not know how many ranks there were.
"""

import atexit
import contextlib
import copy
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from datakit.config import option
from datakit.errors import ConfigError, DatakitError
from train.model.decoder import CausalLM, ModelConfig
from train.model.hf import Weights
from train.model.lora import trained

if TYPE_CHECKING:
    from train.engine.optim import Optimizers, WeightAverage

T = TypeVar("T")
BUCKET_BYTES = 25 << 20
"""Gradients that are summed in one message; torch's own choice."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RanksConfig:
    """How the processes of a run share it."""

    fsdp: bool = option(
        False, "slice weights, gradients and the optimizer's state over the ranks of torchrun", result=False
    )
    rank_timeout_s: int = option(600, "how long ranks wait for each other, the slowest step included", result=False)

    def __post_init__(self) -> None:
        if self.rank_timeout_s < 1:
            raise ConfigError(f"rank_timeout_s must be at least 1, found {self.rank_timeout_s}")


@dataclass(frozen=True, slots=True)
class Ranks:
    """The processes of a run, and which of them this one is."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")

    @classmethod
    def join(cls, device: torch.device, config: RanksConfig) -> "Ranks":
        """Meet the processes that `torchrun` started; alone where it did not. What other ranks print is not shown.

        Raises:
            DatakitError: they did not all come in time.
        """
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            if config.fsdp:
                raise ConfigError("--fsdp needs ranks: start with torchrun --nproc-per-node 2 -m train.sft ..., say")
            return cls(device=device)
        found = cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device)
        if not dist.is_initialized():
            with found.talking():
                backend = "nccl" if device.type == "cuda" else "gloo"
                dist.init_process_group(backend, timeout=timedelta(seconds=config.rank_timeout_s))
            atexit.register(_leave)
            if not found.first:
                sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return found

    @property
    def first(self) -> bool:
        """Whether this is the rank that prints and writes."""
        return self.rank == 0

    @contextlib.contextmanager
    def talking(self) -> Iterator[None]:
        """Within, a rank that is gone, or does not answer in time, is an error in plain words."""
        try:
            yield
        except (dist.DistError, RuntimeError) as e:
            if self.size == 1 or not _of_network(e):
                raise
            raise DatakitError(
                f"rank {self.rank} of {self.size} cannot go on without the others: {_short(e)}. One of "
                f"them ended, hangs, or is slower than --rank-timeout-s; its own message says why. Go on from the "
                f"newest checkpoint with --resume"
            ) from None

    def sums(self, values: Iterable[float]) -> list[float]:
        """Each value summed over the ranks."""
        found = list(values)
        if self.size == 1:
            return found
        tensor = torch.tensor(found, dtype=torch.float64, device=self.device)
        with self.talking():
            dist.all_reduce(tensor)
            return [float(v) for v in tensor.tolist()]

    def agree(self, values: Mapping[str, Any]) -> None:
        """Refuse to go on with ranks that were started with other values.

        Raises:
            ConfigError: naming both values.
        """
        if self.size == 1:
            return
        everyone: list[Any] = [None] * self.size
        with self.talking():
            dist.all_gather_object(everyone, dict(values))
        for rank, theirs in enumerate(everyone):
            for name, value in everyone[0].items():
                if theirs.get(name) != value:
                    raise ConfigError(
                        f"rank 0 has {name} {value!r}, but rank {rank} has {theirs.get(name)!r}: start every rank with "
                        f"the same options and the same files"
                    )

    def by_first(self, does: Callable[[], T]) -> T:
        """What rank 0 finds by doing something; the others wait and are told.

        Raises:
            Exception: what rank 0 met.
        """
        if self.size == 1:
            return does()
        told: list[Any] = [None, None]
        if self.first:
            try:
                told[0] = does()
            except Exception as e:
                told[1] = e
        with self.talking():
            dist.broadcast_object_list(told, 0, device=self.device)
        if told[1] is not None:
            raise told[1]
        found: T = told[0]
        return found

    def share(self, model: nn.Module) -> None:
        """Begin with rank 0's weights."""
        if self.size > 1:
            with self.talking(), torch.no_grad():
                for parameter in model.parameters():
                    dist.broadcast(parameter, 0)


def _of_network(error: Exception) -> bool:
    words = ("connection", "timed out", "timeout", "gloo", "nccl", "socket", "store")
    return isinstance(error, dist.DistError) or any(w in str(error).lower() for w in words)


def _short(error: Exception) -> str:
    """Without the place in the library's sources, and its advice."""
    return str(error).splitlines()[0].split(". This is")[0].split(".cc:")[-1].lstrip("0123456789] ")


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


class GradientSum:
    """Sums gradients over ranks in buckets, in an order that all ranks share: the last layers' come first.

    torch's DistributedDataParallel does the same, but wants one forward method and equally many backward passes that
    touch every parameter.
    """

    def __init__(self, ranks: Ranks, model: nn.Module) -> None:
        self.ranks, self.buckets = ranks, _buckets(list(trained(model).values())[::-1])
        self._of: dict[Tensor, int] = {p: i for i, bucket in enumerate(self.buckets) for p in bucket}
        self._missing: list[int] = []
        self._sent: list[tuple[Tensor, Any]] = []
        for parameter in self._of:
            parameter.register_post_accumulate_grad_hook(self._ready)  # type: ignore[no-untyped-call]

    def last_pass(self) -> None:
        """The next backward pass is the step's last: send each bucket as soon as it is full."""
        self._missing, self._sent = [len(bucket) for bucket in self.buckets], []

    def _ready(self, parameter: Tensor) -> None:
        if self._missing:
            self._missing[self._of[parameter]] -= 1
            while len(self._sent) < len(self.buckets) and not self._missing[len(self._sent)]:
                self._send()

    def _send(self) -> None:
        bucket = self.buckets[len(self._sent)]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in bucket])
        with self.ranks.talking():
            self._sent.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self) -> None:
        """Send what is left and put the sums into place."""
        while len(self._sent) < len(self.buckets):
            self._send()
        for bucket, (flat, work) in zip(self.buckets, self._sent, strict=True):
            with self.ranks.talking():
                work.wait()
            for p, summed in zip(bucket, torch.split(flat, [p.numel() for p in bucket]), strict=True):
                p.grad = summed.view_as(p)
        self._missing, self._sent = [], []


def _buckets(parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    found: list[list[nn.Parameter]] = [[]]
    room = BUCKET_BYTES
    for p in parameters:
        if found[-1] and room < p.nbytes:
            found.append([])
            room = BUCKET_BYTES
        found[-1].append(p)
        room -= p.nbytes
    return found


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
    model: CausalLM, optimizer: "Optimizers", average: "WeightAverage | None"
) -> tuple[Weights, Any, "WeightAverage | None"]:
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
