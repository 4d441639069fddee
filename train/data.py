"""Rows -> the batches of each optimizer step, made ahead by worker threads.

Shapes: B rows, T positions (the row's bucket), N = B*T flat positions, L labels, S sequences.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from datakit.config import option, resolved
from datakit.errors import ConfigError, IntegrityError
from train.attention import Segments
from train.loss import IGNORED
from train.order import Int64, MicroBatch, Order, Split, StepPlan
from train.packed import Mixture as Mixture
from train.packed import PackedSet as PackedSet
from train.packed import mixture


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """What decides which rows make which step, and how they come."""

    batch_rows: int = option(8, "packed rows that pass through the model at once")
    grad_accum: int = option(1, "micro-batches of batch_rows in one optimizer step; ranks share them")
    weights: tuple[float, ...] = option((), "share of each manifest in the tokens trained on; none: every row once")
    bucket_sizes: tuple[int, ...] = option((), "row lengths to pad to; a quarter, half and all of seq_len by default")
    label_bucket_sizes: tuple[int, ...] = option((), "label counts to pad a micro-batch to; none: as many as it has")
    order: Order = option("shuffle_buffer", "of rows; permutation shuffles all, and holds no list of them")
    shuffle_buffer: int = option(65536, "rows that are shuffled together; 0 keeps the file's order")
    num_workers: int = option(1, "threads that make batches ahead; 0: made when they are needed", result=False)
    prefetch_steps: int = option(2, "steps that each worker is ahead", result=False)
    data_cache: Literal["mmap", "memory"] = option("mmap", "memory: read all rows before the first step", result=False)

    def __post_init__(self) -> None:
        if self.batch_rows < 1 or self.grad_accum < 1 or self.shuffle_buffer < 0:
            raise ConfigError("batch_rows and grad_accum must be at least 1 and shuffle_buffer at least 0")
        if self.num_workers < 0 or self.prefetch_steps < 1:
            raise ConfigError("num_workers must be at least 0 and prefetch_steps at least 1")
        for name in ("bucket_sizes", "label_bucket_sizes"):
            sizes = getattr(self, name)
            if list(sizes) != sorted(set(sizes)) or min(sizes, default=1) < 1:
                raise ConfigError(f"{name} must be positive and ascending, found {sizes}")
        if not all(0 < w < float("inf") for w in self.weights):
            raise ConfigError(f"weights must be positive, found {self.weights}")

    def deciding(self) -> dict[str, Any]:
        """The values that decide which rows make which step."""
        return {k: v for k, v in resolved(self).items() if k != "label_bucket_sizes"}


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch. Tensors are int64."""

    ids_BT: Tensor
    segments: Segments
    label_pos_L: Tensor
    """Flat positions into (B, T) whose next token is a target, each at most once."""
    targets_L: Tensor
    """What each must predict; -100 where `label_bucket_sizes` asked for more than there are."""
    labels: int
    """Targets that count; they come first."""
    rows: Int64
    """The packed rows, for messages."""
    real_tokens: int
    """Input positions that are not padding."""

    @property
    def counted(self) -> tuple[Tensor, Tensor]:
        """`label_pos_L` and `targets_L` without the filling."""
        return self.label_pos_L[: self.labels], self.targets_L[: self.labels]

    def to(self, device: torch.device | str) -> "Batch":
        """The same on another device; from pinned memory without waiting for the copy."""
        moved = {n: getattr(self, n).to(device, non_blocking=True) for n in ("ids_BT", "label_pos_L", "targets_L")}
        return replace(self, segments=self.segments.to(device), **moved)

    def pinned(self) -> "Batch":
        """The same in memory that a GPU copies from by itself."""
        moved = {n: getattr(self, n).pin_memory() for n in ("ids_BT", "label_pos_L", "targets_L")}
        return replace(self, segments=self.segments.pinned(), **moved)


def collate(data: PackedSet | Mixture, micro: MicroBatch, batch_rows: int, label_sizes: Sequence[int] = ()) -> Batch:
    """The tensors of a micro-batch; missing rows are padding, so a bucket has one shape.

    `label_sizes` are counts that labels are filled up to; beyond the largest they are filled to every position.

    Raises:
        IntegrityError: a token outside the vocabulary, or a label on padding or across two sequences.
    """
    data, width = mixture(data), micro.width
    parts = [_gather(owner, own, np.flatnonzero(here), width) for owner, own, here in data.places(micro.rows)]
    ids_BT = np.full((batch_rows, width), data.header.pad_id, np.int64)
    for part in parts:
        ids_BT[part.rows, : part.ids.shape[1]] = part.ids
    joined = parts[0] if len(parts) == 1 else _joined(parts)
    label_pos, targets, labels = joined.label_pos, joined.targets, len(joined.targets)
    if label_sizes:
        label_pos, targets = _filled(label_pos, targets, label_sizes, ids_BT.size)
    return Batch(
        ids_BT=torch.from_numpy(ids_BT),
        segments=Segments.of_sequences(joined.starts, joined.lengths, batch_rows, width),
        label_pos_L=torch.from_numpy(label_pos),
        targets_L=torch.from_numpy(targets),
        labels=labels,
        rows=micro.rows,
        real_tokens=int(joined.lengths.sum()),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """What one packed file gives to a micro-batch."""

    rows: Int64
    """Places in the micro-batch."""
    ids: npt.NDArray[Any]
    """(rows, at most T)."""
    starts: Int64
    """(S,) flat position of each sequence, in order."""
    lengths: Int64
    """(S,) input positions of each."""
    label_pos: Int64
    targets: Int64


_EMPTY = np.empty(0, np.int64)


def _joined(parts: Sequence[_Part]) -> _Part:
    """Sequences and labels of several files, in order of position."""
    if not parts:
        return _Part(_EMPTY, np.empty((0, 0)), _EMPTY, _EMPTY, _EMPTY, _EMPTY)
    starts, lengths, label_pos, targets = (
        np.concatenate([getattr(p, n) for p in parts]) for n in ("starts", "lengths", "label_pos", "targets")
    )
    by_start, by_position = np.argsort(starts, kind="stable"), np.argsort(label_pos, kind="stable")
    return _Part(
        _EMPTY, parts[0].ids, starts[by_start], lengths[by_start], label_pos[by_position], targets[by_position]
    )


def _gather(data: PackedSet, own: Int64, places: Int64, width: int) -> _Part:
    """Rows `own` of a file, which go to `places` of the micro-batch."""
    packed = data.packed
    ids = packed.ids[own]
    if int(ids.view(ids.dtype.str.replace("i", "u")).max()) >= packed.header.vocab_size:
        raise IntegrityError(
            f"{data.manifest}: a token id of rows {own.tolist()} lies outside the vocabulary of "
            f"{packed.header.vocab_size}; the packed files are damaged: check them with `datakit verify`"
        )
    starts, ends, rows = _sequences(packed.segments, packed.segment_index[own].astype(np.int64))
    stride = ids.shape[1]
    last = np.zeros(ids.size, np.bool_)  # positions whose next token belongs to another sequence or to padding
    last[rows * stride + ends - 1] = True
    if packed.labels is None or packed.label_index is None:
        row_L, pos_L = np.repeat(rows, ends - starts - 1), _ranges(starts, ends - starts - 1)
    else:
        index = packed.label_index[own].astype(np.int64)
        row_L, pos_L = np.repeat(np.arange(len(own)), index[:, 1]), packed.labels[_ranges(*index.T)].astype(np.int64)
        _check_labels(data, own, row_L, pos_L, last)
    at_L = row_L * stride + pos_L
    shown = np.minimum(ends, width) - np.minimum(starts, width)
    return _Part(
        rows=places, ids=ids[:, :width], starts=(places[rows] * width + starts)[shown > 0], lengths=shown[shown > 0],
        label_pos=places[row_L] * width + pos_L, targets=ids.ravel()[at_L + 1].astype(np.int64),
    )  # fmt: skip


def _ranges(starts: Int64, counts: Int64) -> Int64:
    """start, start + 1, ... of each pair, after one another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    found: Int64 = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return found


def _sequences(segments: npt.NDArray[np.int32], index: Int64) -> tuple[Int64, Int64, Int64]:
    """Start, end and row of each sequence of the rows that an index names."""
    offsets, counts = index.T
    bounds = segments[_ranges(offsets, counts)].astype(np.int64)
    firsts = np.cumsum(counts) - counts
    begins, ends = np.ones((2, len(bounds)), np.bool_)
    begins[firsts + counts - 1] = ends[firsts] = False
    return bounds[begins], bounds[ends], np.repeat(np.arange(len(counts)), counts - 1)


def _check_labels(data: PackedSet, own: Int64, row_L: Int64, pos_L: Int64, last: npt.NDArray[np.bool_]) -> None:
    stride = data.header.stride
    wrong = (pos_L < 0) | (pos_L >= data.lengths[own][row_L])
    wrong |= last[np.where(wrong, 0, row_L * stride + pos_L)]
    if not wrong.any():
        return
    row = int(own[row_L[wrong.argmax()]])
    labels = data.packed.labels_of(row)
    assert labels is not None
    raise IntegrityError(
        f"{data.manifest}: packed row {row} has a label on padding or across two sequences (labels "
        f"{labels[0]}..{labels[-1]}, boundaries {data.packed.segments_of(row).tolist()}); pack the set again"
    )


def _filled(label_pos: Int64, targets: Int64, sizes: Sequence[int], positions: int) -> tuple[Int64, Int64]:
    """Labels filled up to the next size with other positions, which do not count."""
    size = min(next((s for s in sizes if s >= len(targets)), positions), positions)
    free = np.ones(positions, np.bool_)
    free[label_pos] = False
    more = np.flatnonzero(free)[: size - len(targets)]
    return np.concatenate([label_pos, more]), np.concatenate([targets, np.full(len(more), IGNORED)])


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
    ) -> None:
        super().__init__()
        self.data, self.config, self.first_step, self.pin = mixture(data), config, first_step, pin
        unit = self.data.header.rows_per_unit
        if config.batch_rows % unit:
            raise ConfigError(
                f"batch_rows {config.batch_rows} would split units of {unit} rows: {self.data.name} needs a multiple"
            )
        self.plan = step_plan(self.data, config, seed)
        self.split = Split(
            rank=rank, ranks=ranks, grad_accum=config.grad_accum, batch_rows=config.batch_rows, rows_per_unit=unit
        )

    def batches(self, step: int) -> list[Batch]:
        """This rank's micro-batches of a step."""
        return self._collated(self.split.of(self.plan.step(step)))

    def _collated(self, micros: Sequence[MicroBatch]) -> list[Batch]:
        sizes = self.config.label_bucket_sizes
        found = [collate(self.data, micro, self.split.piece_rows, sizes) for micro in micros]
        return [batch.pinned() for batch in found] if self.pin else found

    def __iter__(self) -> Iterator[list[Batch]]:
        """Endless; `first_step` is the state."""
        step, workers = self.first_step, self.config.num_workers
        if not workers:
            while True:
                yield self.batches(step)
                step += 1
        with ThreadPoolExecutor(workers, "batches") as pool:
            ahead: deque[Future[list[Batch]]] = deque()
            try:
                while True:
                    while len(ahead) < workers * self.config.prefetch_steps:
                        ahead.append(pool.submit(self._collated, self.split.of(self.plan.step(step))))
                        step += 1
                    yield ahead.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)


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
        batch_rows=config.batch_rows, grad_accum=config.grad_accum, order=config.order,
        shuffle_buffer=config.shuffle_buffer, seed=(*(int(v, 16) for v in data.version.split("+")), seed),
        rows_per_unit=data.header.rows_per_unit, source_rows=rows,
        shares=[w / t for w, t in zip(config.weights, tokens, strict=False)],
    )  # fmt: skip
