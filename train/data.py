"""The batches of each optimizer step, made ahead by worker threads."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch.utils.data import IterableDataset

from datakit.config import option, resolved
from datakit.errors import ConfigError, IntegrityError
from train.batch import Batch as Batch
from train.batch import Packet as Packet
from train.collate import collate as collate
from train.collate import packets
from train.order import Order
from train.packed import Mixture as Mixture
from train.packed import PackedSet as PackedSet
from train.packed import mixture
from train.steps import Split, StepPlan

J = TypeVar("J")
R = TypeVar("R")
BLOCK_BYTES = 1 << 21
"""Ids that are gathered in one pass: many times what a pass costs by itself, and still in a core's cache."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """What decides which rows make which step, and how they come."""

    batch_rows: int = option(8, "packed rows that pass through the model at once")
    grad_accum: int = option(1, "micro-batches of batch_rows in one optimizer step; ranks share them")
    batch_size_schedule: tuple[str, ...] = option(
        (), "other steps from some on, such as 1000:16,5000:32: 16 rows a step after 1000 steps, 32 after 5000"
    )
    weights: tuple[float, ...] = option((), "share of each manifest in the tokens trained on; none: every row once")
    bucket_sizes: tuple[int, ...] = option((), "row lengths to pad to; a quarter, half and all of seq_len by default")
    label_bucket_sizes: tuple[int, ...] = option(
        (), "label counts to pad a micro-batch to; none: sixteenths of its positions"
    )
    order: Order = option("shuffle_buffer", "of rows; permutation shuffles all, and holds no list of them")
    shuffle_buffer: int = option(65536, "rows that are shuffled together; 0 keeps the file's order")
    num_workers: int = option(1, "threads that make batches ahead; 0: made when they are needed", result=False)
    prefetch_steps: int = option(2, "steps that each worker is ahead", result=False)
    data_cache: Literal["mmap", "memory"] = option("mmap", "memory: read all rows before the first step", result=False)

    def __post_init__(self) -> None:
        if self.batch_rows < 1 or self.grad_accum < 1 or self.shuffle_buffer < 0:
            raise ConfigError("batch_rows and grad_accum must be at least 1 and shuffle_buffer at least 0")
        self.schedule()
        if self.num_workers < 0 or self.prefetch_steps < 1:
            raise ConfigError("num_workers must be at least 0 and prefetch_steps at least 1")
        for name in ("bucket_sizes", "label_bucket_sizes"):
            sizes = getattr(self, name)
            if list(sizes) != sorted(set(sizes)) or min(sizes, default=1) < 1:
                raise ConfigError(f"{name} must be positive and ascending, found {sizes}")
        if not all(0 < w < float("inf") for w in self.weights):
            raise ConfigError(f"weights must be positive, found {self.weights}")

    def schedule(self) -> list[tuple[int, int]]:
        """`batch_size_schedule` as (steps taken, micro-batches of a step from then on), from step 0 on.

        Raises:
            ConfigError: not ascending, or not whole micro-batches.
        """
        found = [(0, self.grad_accum)]
        for part in self.batch_size_schedule:
            step, colon, rows = part.partition(":")
            if not (colon and step.isdecimal() and rows.isdecimal() and int(rows)):
                raise ConfigError(f"batch_size_schedule: expected STEP:ROWS such as 1000:16, found {part!r}")
            if int(rows) % self.batch_rows:
                raise ConfigError(
                    f"batch_size_schedule: {part} is no multiple of batch_rows {self.batch_rows}, the rows that pass "
                    f"through the model at once; lower --batch-rows"
                )
            if int(step) == 0 and len(found) == 1:
                found = []
            if found and int(step) <= found[-1][0]:
                raise ConfigError(f"batch_size_schedule: steps must ascend, found {','.join(self.batch_size_schedule)}")
            found.append((int(step), int(rows) // self.batch_rows))
        return found

    def deciding(self) -> dict[str, Any]:
        """The values that decide which rows make which step."""
        return {k: v for k, v in resolved(self).items() if k != "label_bucket_sizes"}


class StepStream(IterableDataset[list[Batch]]):
    """The micro-batches of each optimizer step, from a given step on; endless, epoch after epoch.

    Of several ranks each has its share of every step.
    """

    def __init__(
        self,
        data: PackedSet | Mixture,
        config: DataConfig,
        seed: int,
        first_step: int = 0,
        *,
        rank: int = 0,
        ranks: int = 1,
        pin: bool = False,
        label_fill: int = 0,
    ) -> None:
        """`label_fill`: as `collate.packets` has it."""
        super().__init__()
        self.data, self.config, self.first_step = mixture(data), config, first_step
        self.pin, self.label_fill = pin, label_fill
        unit = self.data.header.rows_per_unit
        if config.batch_rows % unit:
            raise ConfigError(
                f"batch_rows {config.batch_rows} would split units of {unit} rows: {self.data.name} needs a multiple"
            )
        self.plan = step_plan(self.data, config, seed)
        self.rank, self.ranks = rank, ranks

    def split(self, step: int) -> Split:
        """How ranks share a step."""
        return Split(
            rank=self.rank, ranks=self.ranks, grad_accum=self.plan.grad_accum_of(step),
            batch_rows=self.config.batch_rows, rows_per_unit=self.data.header.rows_per_unit,
        )  # fmt: skip

    def batches(self, step: int) -> list[Batch]:
        """This rank's micro-batches of a step."""
        return [found.to("cpu") for found in self._make(step, 1)[0]]

    def __iter__(self) -> Iterator[list[Batch]]:
        """Endless; `first_step` is the state."""
        return self.on(torch.device("cpu"))

    def on(self, device: torch.device) -> Iterator[list[Batch]]:
        """The same on a device; on CPU a worker unfolds them too. Workers begin at once."""
        steps, workers = self.packets(), self.config.num_workers
        if device.type != "cpu" or not workers:
            return ([packet.to(device) for packet in step] for step in steps)
        return _Ahead(workers, _unfolded, steps, workers * self.config.prefetch_steps)

    def packets(self) -> Iterator[list[Packet]]:
        """The same on their way to a device."""
        workers, blocks = self.config.num_workers, self._blocks()
        if not workers:
            return (step for block in blocks for step in self._tried(block))
        many = next(self._blocks())[1]
        made = _Ahead(workers, self._tried, blocks, workers * -(-self.config.prefetch_steps // many))
        return (step for block in made for step in block)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Steps that are made together: the first and how many."""
        step, packed = self.first_step, self.data.header
        row_bytes = packed.stride * np.dtype(packed.dtype).itemsize
        while True:
            rows = self.split(step).piece_rows * -(-self.plan.grad_accum_of(step) // self.ranks)
            many = max(1, min(BLOCK_BYTES // (rows * row_bytes), self.plan.steps_alike(step)))
            yield step, many
            step += many

    def _tried(self, block: tuple[int, int]) -> Iterable[list[Packet]]:
        """The steps of a block; an error comes with the step that has it, not with those before it."""
        first, many = block
        try:
            return self._make(first, many)
        except IntegrityError:
            return (self._make(step, 1)[0] for step in range(first, first + many))

    def _make(self, first: int, many: int) -> list[list[Packet]]:
        """Steps that ranks share alike."""
        split = self.split(first)
        shares = [split.of(micros) for micros in self.plan.steps(first, many)]
        micros = [micro for share in shares for micro in share]
        made = iter(
            packets(self.data, micros, split.piece_rows, self.config.label_bucket_sizes, self.label_fill, self.pin)
        )
        return [list(islice(made, len(share))) for share in shares]


def _unfolded(step: Sequence[Packet]) -> list[Batch]:
    return [packet.to("cpu") for packet in step]


class _Ahead(Iterator[R]):
    """What threads make of `jobs`, in order, `many` ahead of who takes it; the first are begun at once.

    An error, of a job or of making one, comes when what was before it has been taken.
    """

    def __init__(self, workers: int, make: Callable[[J], R], jobs: Iterator[J], many: int) -> None:
        self._make, self._jobs, self._many = make, jobs, many
        self._pool = ThreadPoolExecutor(workers, "batches")
        self._made: deque[Future[R]] = deque()
        self._ended: Exception | None = None
        self._begin()

    def _begin(self) -> None:
        while len(self._made) < self._many and self._ended is None:
            try:
                self._made.append(self._pool.submit(self._make, next(self._jobs)))
            except Exception as e:  # the jobs' end among them
                self._ended = e

    def __next__(self) -> R:
        if not self._made and self._ended:
            raise self._ended
        found = self._made.popleft().result()
        self._begin()
        return found


def step_plan(data: Mixture, config: DataConfig, seed: int) -> StepPlan:
    """The order of a run.

    Raises:
        ConfigError: other numbers of weights and of manifests.
    """
    if config.weights and len(config.weights) != len(data.manifests):
        raise ConfigError(
            f"weights: expected one a manifest, {len(data.manifests)} in all, found {len(config.weights)}: "
            f"{','.join(map(str, config.weights))}"
        )
    rows = data.rows_of_manifests
    tokens = [part.mean() for part in np.split(data.lengths, np.cumsum(rows)[:-1])]
    return StepPlan(
        data.widths(config.bucket_sizes),
        batch_rows=config.batch_rows, grad_accum=config.schedule(), order=config.order,
        shuffle_buffer=config.shuffle_buffer, seed=(*(int(v, 16) for v in data.version.split("+")), seed),
        rows_per_unit=data.header.rows_per_unit, source_rows=rows,
        shares=[w / t for w, t in zip(config.weights, tokens, strict=False)],
    )  # fmt: skip
