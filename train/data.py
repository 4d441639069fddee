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
from datakit.pack.format import Header
from train.attention import Groups, Segments, arranged, repeated
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
        """The same on another device."""
        moved = {n: getattr(self, n).to(device) for n in ("ids_BT", "label_pos_L", "targets_L")}
        return replace(self, segments=self.segments.to(device), **moved)


@dataclass(frozen=True, slots=True)
class Packet:
    """A micro-batch as it travels to the device: little more than what is stored."""

    ids_BS: Tensor
    """(B, T + 1), of the stored dtype."""
    sequences_4S: Tensor
    """As `attention.arranged` has them."""
    groups: Groups
    tokens: int
    runs_2R: Tensor | None
    """Flat start and count of runs of labels; of plain text, where they are all but a sequence's last token."""
    label_pos_L: Tensor | None
    """Otherwise the labels' flat positions, the filling last."""
    labels: int
    rows: Int64

    def pinned(self) -> "Packet":
        """The same in memory that a GPU copies from by itself."""
        names = ("ids_BS", "sequences_4S", "runs_2R", "label_pos_L")
        return replace(self, **{n: t.pin_memory() for n in names if (t := getattr(self, n)) is not None})

    def to(self, device: torch.device | str) -> Batch:
        """The micro-batch, unfolded on the device; from pinned memory nothing waits for the copies."""
        (rows, width), ids_BS = self.ids_BS.shape, self.ids_BS.to(device, non_blocking=True).long()
        pos_L = self._positions(device)
        targets_L = ids_BS[:, 1:].flatten().index_select(0, pos_L)
        targets_L[self.labels :] = IGNORED
        table = self.sequences_4S.to(device, non_blocking=True)
        return Batch(
            ids_BT=ids_BS[:, :-1].contiguous(),
            segments=Segments.unfolded(table, self.groups, self.tokens, rows, width - 1),
            label_pos_L=pos_L, targets_L=targets_L, labels=self.labels, rows=self.rows, real_tokens=self.tokens,
        )  # fmt: skip

    def _positions(self, device: torch.device | str) -> Tensor:
        if self.label_pos_L is not None:
            return self.label_pos_L.to(device, non_blocking=True).long()
        assert self.runs_2R is not None
        starts, counts = self.runs_2R.to(device, non_blocking=True)
        before = repeated(starts - (counts.cumsum(0) - counts), counts, self.labels)
        return before + torch.arange(self.labels, device=before.device)


def collate(data: PackedSet | Mixture, micro: MicroBatch, batch_rows: int, label_sizes: Sequence[int] = ()) -> Batch:
    """`packet` unfolded on the CPU."""
    return packet(data, micro, batch_rows, label_sizes).to("cpu")


def packet(data: PackedSet | Mixture, micro: MicroBatch, batch_rows: int, label_sizes: Sequence[int] = ()) -> Packet:
    """A micro-batch of `batch_rows` rows; missing ones are padding, so a bucket has one shape.

    `label_sizes` are counts that labels are filled up to; beyond the largest they are filled to every position.

    Raises:
        IntegrityError: a token outside the vocabulary, or a label on padding or across two sequences.
    """
    data, width = mixture(data), micro.width
    parts = [_gather(owner, own, np.flatnonzero(here), width) for owner, own, here in data.places(micro.rows)]
    part = parts[0] if len(parts) == 1 else _joined(parts)
    labels = int(part.runs[1].sum()) if part.runs is not None else len(part.label_pos)
    runs, label_pos = part.runs, part.label_pos
    if label_sizes:
        label_pos = _filled(_positions(part), label_sizes, batch_rows * width)
        runs = None
    table, groups, tokens = arranged(part.starts, part.lengths, width)
    return Packet(
        ids_BS=torch.from_numpy(_padded(parts, batch_rows, width + 1, data.header)),
        sequences_4S=table, groups=groups, tokens=tokens,
        runs_2R=None if runs is None else torch.from_numpy(runs),
        label_pos_L=None if runs is not None else torch.from_numpy(label_pos),
        labels=labels, rows=micro.rows,
    )  # fmt: skip


def _padded(parts: Sequence["_Part"], rows: int, columns: int, header: Header) -> npt.NDArray[Any]:
    if len(parts) == 1 and parts[0].ids.shape == (rows, columns):
        return parts[0].ids
    ids = np.full((rows, columns), header.pad_id, header.dtype)
    for part in parts:
        ids[part.rows, : part.ids.shape[1]] = part.ids
    return ids


@dataclass(frozen=True, slots=True)
class _Part:
    """What one packed file gives to a micro-batch."""

    rows: Int64
    """Places in the micro-batch."""
    ids: npt.NDArray[Any]
    """(rows, at most T + 1)."""
    starts: Int64
    """(S,) flat position of each sequence, ascending."""
    lengths: Int64
    """(S,) input positions of each."""
    runs: Int64 | None
    """(2, R) of plain text: flat start and count of runs of labels."""
    label_pos: npt.NDArray[Any]
    """(L,) of a labelled set: their flat positions, ascending."""


_EMPTY = np.empty(0, np.int64)


def _positions(part: _Part) -> npt.NDArray[Any]:
    return part.label_pos if part.runs is None else _ranges(*part.runs)


def _joined(parts: Sequence[_Part]) -> _Part:
    """Sequences and labels of several files, in order of position."""
    starts, lengths = (np.concatenate([_EMPTY, *(getattr(p, n) for p in parts)]) for n in ("starts", "lengths"))
    label_pos = np.sort(np.concatenate([_EMPTY, *map(_positions, parts)]))
    order = np.argsort(starts, kind="stable")
    return _Part(_EMPTY, np.empty((0, 0)), starts[order], lengths[order], None, label_pos)


def _gather(data: PackedSet, own: Int64, places: Int64, width: int) -> _Part:
    """Rows `own` of a file, which go to `places` of the micro-batch."""
    packed = data.packed
    ids = packed.ids[own] if packed.header.stride <= width + 1 else packed.ids[:, : width + 1][own]
    if int(ids.view(ids.dtype.str.replace("i", "u")).max()) >= packed.header.vocab_size:
        raise IntegrityError(
            f"{data.manifest}: a token id of rows {own.tolist()} lies outside the vocabulary of "
            f"{packed.header.vocab_size}; the packed files are damaged: check them with `datakit verify`"
        )
    starts, ends, rows = _sequences(packed.segments, packed.segment_index[own].astype(np.int64))
    first = places[rows] * width + starts
    shown = np.minimum(ends, width) - starts
    runs, label_pos = None, _EMPTY
    if packed.labels is None or packed.label_index is None:
        runs = np.stack([first, ends - starts - 1])
    else:
        index = packed.label_index[own].astype(np.int64)
        row_L, pos_L = np.repeat(np.arange(len(own)), index[:, 1]), packed.labels[_ranges(*index.T)]
        _check_labels(data, own, row_L, pos_L, rows * packed.header.stride + ends - 1)
        label_pos = places[row_L] * width + pos_L
    if not shown.all():  # a sequence that is all target
        first, shown = first[shown > 0], shown[shown > 0]
    return _Part(places, ids, first, shown, runs, label_pos)


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


def _check_labels(data: PackedSet, own: Int64, row_L: Int64, pos_L: npt.NDArray[Any], last_S: Int64) -> None:
    """`last_S` are positions whose next token belongs to another sequence or to padding."""
    stride = data.header.stride
    last = np.zeros(len(own) * stride, np.bool_)
    last[last_S] = True
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


def _filled(label_pos: npt.NDArray[Any], sizes: Sequence[int], positions: int) -> npt.NDArray[Any]:
    """Labels, and behind them other positions up to the next size."""
    size = min(next((s for s in sizes if s >= len(label_pos)), positions), positions)
    free = np.ones(positions, np.bool_)
    free[label_pos] = False
    return np.concatenate([label_pos, np.flatnonzero(free)[: size - len(label_pos)]])


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
        return [found.to("cpu") for found in self._make(self.split.of(self.plan.step(step)))]

    def __iter__(self) -> Iterator[list[Batch]]:
        """Endless; `first_step` is the state."""
        for packets in self.packets():
            yield [found.to("cpu") for found in packets]

    def packets(self) -> Iterator[list[Packet]]:
        """The same on their way to a device."""
        step, workers = self.first_step, self.config.num_workers
        if not workers:
            while True:
                yield self._make(self.split.of(self.plan.step(step)))
                step += 1
        with ThreadPoolExecutor(workers, "batches") as pool:
            ahead: deque[Future[list[Packet]]] = deque()
            try:
                while True:
                    while len(ahead) < workers * self.config.prefetch_steps:
                        ahead.append(pool.submit(self._make, self.split.of(self.plan.step(step))))
                        step += 1
                    yield ahead.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _make(self, micros: Sequence[MicroBatch]) -> list[Packet]:
        sizes = self.config.label_bucket_sizes
        found = [packet(self.data, micro, self.split.piece_rows, sizes) for micro in micros]
        return [p.pinned() for p in found] if self.pin else found


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
