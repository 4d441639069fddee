"""Batches of each optimizer step: packed rows, padded to buckets, collated by worker threads.

Collation works on whole arrays: eight rows are so few that numpy calls for each micro-batch would cost ten times the
copy of its bytes. The rows of one width, of several steps, are gathered together, directly into the memory from which
the device copies, and cut into views.

Shapes: M micro-batches of B rows, T positions (the bucket of the row), N = B*T flat positions, L labels, S sequences. A
place is a flat position in all M*B rows.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby, islice, pairwise
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from datakit.config import option
from datakit.errors import ConfigError, IntegrityError
from train.attention import Groups, Segments, arrange_batches, numbers_in
from train.data.order import Int64, MicroBatch, Split, StepPlan
from train.data.packed import VERIFY_HELP, Mixture, PackedSet, mixture
from train.loss import IGNORED


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch. Tensors are int64."""

    ids_BT: Tensor
    segments: Segments
    label_pos_L: Tensor
    """Flat positions into (B, T) whose next token is a target; each position at most once."""
    targets_L: Tensor
    """The token to predict at each; -100 for padding."""
    labels: int
    """Number of real targets; they come before the padding."""
    rows: Int64
    """The packed rows, for messages."""
    real_tokens: int
    """Input positions that are not padding."""

    @property
    def counted(self) -> tuple[Tensor, Tensor]:
        """`label_pos_L` and `targets_L` without padding."""
        return self.label_pos_L[: self.labels], self.targets_L[: self.labels]

    def every_target(self) -> Tensor:
        """The target of every position, (B*T,); -100 where it is no label."""
        label_pos_L, targets_L = self.counted
        return torch.full_like(self.ids_BT.flatten(), IGNORED).scatter_(0, label_pos_L, targets_L)

    def to(self, device: torch.device | str) -> "Batch":
        """The batch on another device."""
        moved = {n: getattr(self, n).to(device) for n in ("ids_BT", "label_pos_L", "targets_L")}
        return replace(self, segments=self.segments.to(device), **moved)


@dataclass(frozen=True, slots=True)
class Packet:
    """A micro-batch in a compact form for the transfer to the device."""

    ids_BS: Tensor
    """(B, T + 1), of the stored dtype."""
    sequences_S4: Tensor
    """The table of `attention.arrange_batches`."""
    groups: Groups
    tokens: int
    label_pos_L: Tensor
    """Flat positions of the labels, then padding."""
    labels: int
    rows: Int64

    def to(self, device: torch.device | str) -> Batch:
        """Expand the micro-batch on the device; copies from pinned memory are asynchronous."""
        (rows, width), ids_BS = self.ids_BS.shape, self.ids_BS.to(device, non_blocking=True).long()
        pos_L = self.label_pos_L.to(device, non_blocking=True).long()
        targets_L = ids_BS[:, 1:].flatten().index_select(0, pos_L)
        targets_L[self.labels :] = IGNORED
        table = self.sequences_S4.to(device, non_blocking=True)
        return Batch(
            ids_BT=ids_BS[:, :-1].contiguous(),
            segments=Segments.expanded(table, self.groups, self.tokens, rows, width - 1),
            label_pos_L=pos_L, targets_L=targets_L, labels=self.labels, rows=self.rows, real_tokens=self.tokens,
        )  # fmt: skip


Array = npt.NDArray[Any]
_EMPTY = np.empty(0, np.int64)


def collate(data: PackedSet | Mixture, micro: MicroBatch, batch_rows: int) -> Batch:
    """One micro-batch of `packets`, expanded on the CPU."""
    return packets(data, [micro], batch_rows)[0].to("cpu")


def packets(
    data: PackedSet | Mixture, micros: Sequence[MicroBatch], batch_rows: int, label_fill: int = 0, pin: bool = False,
    flat: bool = False, label_sizes: Sequence[int] = (),
) -> list[Packet]:  # fmt: skip
    """Micro-batches of `batch_rows` rows each; missing rows are padding, so a bucket has one shape.

    Labels are padded to the smallest of `label_sizes` that has room for them; beyond these, `label_fill` 16 pads them
    to the next sixteenth of the positions. With `pin`, tensors are in pinned memory. With `flat`, the rows of a
    micro-batch become one row without their padding (see `flat_packet`).

    Raises:
        IntegrityError: a token outside the vocabulary, or a label on padding, across two sequences or out of order.
    """
    found: dict[int, Packet] = {}
    for width in sorted({m.width for m in micros}):
        here = [i for i, m in enumerate(micros) if m.width == width]
        block = _Block(mixture(data), [micros[i] for i in here], batch_rows, width, pin, tuple(label_sizes))
        if flat:
            found |= dict(zip(here, block.flat_packets(), strict=True))
            continue
        found |= dict(zip(here, block.packets(-(-block.places // label_fill) if label_fill else 0), strict=True))
    return [found[i] for i in range(len(micros))]


@dataclass(frozen=True, slots=True)
class _Part:
    """Sequences and labels of one packed file in a block."""

    starts: Int64
    """(S,) start of each sequence as a place, ascending."""
    lengths: Int64
    """(S,) number of input positions."""
    targets: Int64
    """(S,) plain text: number of labels, from the start of the sequence on."""
    labels: Array | None
    """(L,) labelled data: places of the labels, ascending."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Micro-batches of one width."""

    data: Mixture
    micros: Sequence[MicroBatch]
    batch_rows: int
    width: int
    pin: bool
    label_sizes: tuple[int, ...] = ()

    @property
    def places(self) -> int:
        """Number of positions of a micro-batch."""
        return self.batch_rows * self.width

    def packets(self, label_unit: int) -> list[Packet]:
        """One packet per micro-batch; labels are padded to a multiple of `label_unit`, 0: not at all."""
        ids, part = self._gathered()
        micro_S, row_S = part.starts // self.places, part.starts // self.width
        local_S, number_S = part.starts - micro_S * self.places, numbers_in(row_S)
        table, cuts, groups, tokens = arrange_batches(local_S, part.lengths, number_S, micro_S, len(self.micros))
        label_pos, labels = self._labels(_labels_of(part), label_unit)
        tables = torch.split(self._pinned(table), np.diff(cuts).tolist())
        return [
            Packet(
                ids_BS=ids[i], sequences_S4=tables[i], groups=groups[i], tokens=tokens[i],
                label_pos_L=label_pos[i], labels=labels[i], rows=micro.rows,
            )
            for i, micro in enumerate(self.micros)]  # fmt: skip

    def flat_packets(self) -> list[Packet]:
        """One packet per micro-batch, each a single row; a packed row has one sequence, from its start on, or none."""
        ids, part = self._gathered()
        tokens = np.zeros((len(self.micros), self.batch_rows), np.int64)
        tokens.reshape(-1)[part.starts // self.width] = part.targets + 1
        labels, found = _labels_of(part), []
        cuts = np.searchsorted(labels // self.width, np.arange(tokens.size + 1)).tolist()
        for i, micro in enumerate(self.micros):
            rows, first = ids[i].numpy(), i * self.batch_rows
            sequences = [rows[row, : tokens[i, row]] for row in range(len(micro.rows))]
            within = [labels[cuts[row] : cuts[row + 1]] % self.width for row in range(first, first + len(micro.rows))]
            unit = max(FLAT_UNIT, -(-self.places // 16))
            found.append(flat_packet(sequences, within, micro.rows, self.data.header.pad_id, unit, self.pin))
        return found

    def _gathered(self) -> tuple[Sequence[Tensor], _Part]:
        """Token ids of each micro-batch, (B, T + 1), with sequences and labels."""
        rows, header = np.concatenate([m.rows for m in self.micros]), self.data.header
        sizes = np.array([len(m.rows) for m in self.micros])
        shape = len(sizes), self.batch_rows, self.width + 1
        kind = torch.from_numpy(np.empty(0, header.dtype)).dtype
        ids = torch.empty(shape, dtype=kind, pin_memory=self.pin)
        flat = ids.numpy().reshape(-1, shape[-1])
        if len(rows) < len(flat) or len(self.data.sets) > 1:
            flat[:] = header.pad_id
        to = _ranges(np.arange(shape[0]) * self.batch_rows, sizes)
        parts = [_gather(owner, own, to[here], flat) for owner, own, here in self.data.places(rows)]
        return ids.unbind(0), parts[0] if len(parts) == 1 else _joined(parts)

    def _labels(self, labels: Array, unit: int) -> tuple[list[Tensor], list[int]]:
        """Flat label positions of each micro-batch with padding, and the number of real labels."""
        cuts = np.searchsorted(labels, np.arange(len(self.micros) + 1) * self.places)
        found = [labels[a:b] for a, b in pairwise(cuts.tolist())]
        for i, own in enumerate(found):
            own -= i * self.places
        counts = [len(own) for own in found]
        if not unit and not self.label_sizes:
            return list(torch.split(self._pinned(labels), counts)), counts
        return [self._pinned(_filled(own, unit or 1, self.places, self.label_sizes)) for own in found], counts

    def _pinned(self, values: Array) -> Tensor:
        tensor = torch.from_numpy(values)
        return tensor.pin_memory() if self.pin else tensor


LABEL_FILL = 16
"""Label counts are padded to sixteenths of the positions: oneDNN caches half a megabyte of kernels per count."""
FLAT_UNIT = 128
"""A flat row is padded to a multiple of this, or of a sixteenth of the positions, so that shapes repeat."""


def flat_packet(
    sequences: Sequence[Array], labels: Sequence[Array], rows: Int64, pad_id: int, unit: int = FLAT_UNIT,
    pin: bool = False,
) -> Packet:  # fmt: skip
    """A micro-batch of one row: sequences one after another, and padding up to a multiple of `unit` positions.

    `labels` are the label positions in each sequence, `rows` their numbers. Every sequence keeps its last token as an
    input, so that the targets of the one before are its own. Sequence i is number i + 1 in `Segments`; it may be empty.
    """
    lengths = np.array([len(s) for s in sequences], np.int64)
    starts = np.cumsum(lengths) - lengths
    width = max(1, -(-int(lengths.sum()) // unit)) * unit
    kind = torch.from_numpy(sequences[0][:0]).dtype if len(sequences) else torch.int64
    ids = torch.full((1, width + 1), pad_id, dtype=kind, pin_memory=pin)
    if len(sequences):
        ids.numpy()[0, : int(lengths.sum())] = np.concatenate(sequences)
    places = np.concatenate([_EMPTY, *(own + start for own, start in zip(labels, starts, strict=True))])
    count = len(places)
    places = _filled(places, -(-width // LABEL_FILL), width)
    real = np.flatnonzero(lengths)
    table_S4, _, (groups,), (tokens,) = arrange_batches(starts[real], lengths[real], real + 1, np.zeros_like(real), 1)
    table, label_pos = torch.from_numpy(table_S4), torch.from_numpy(places)
    return Packet(
        ids_BS=ids, sequences_S4=table.pin_memory() if pin else table, groups=groups, tokens=tokens,
        label_pos_L=label_pos.pin_memory() if pin else label_pos, labels=count, rows=rows)  # fmt: skip


def _gather(data: PackedSet, own: Int64, to: Int64, ids: Array) -> _Part:
    """Copy rows `own` of a file to rows `to` of `ids`, (M*B, T + 1)."""
    packed, width = data.packed, ids.shape[1] - 1
    _copy(data, own, to, ids)
    starts, ends, rows = _sequences(np.asarray(packed.segments), _index(packed.segment_index, own))
    first, shown = to[rows] * width + starts, np.minimum(ends, width) - starts
    labels = None
    if packed.labels is not None and packed.label_index is not None:
        index = _index(packed.label_index, own)
        values = np.asarray(packed.labels)
        within = np.concatenate([values[o : o + c] for o, c in index.tolist()] or [values[:0]])
        kind = np.int32 if len(ids) * width <= np.iinfo(np.int32).max else np.int64
        labels = np.repeat((to * width).astype(kind), index[:, 1])
        labels += within
        _check_labels(data, own, index[:, 1], within, labels, (to[rows] * width + ends - 1)[ends <= width])
    part = _Part(first, shown, ends - starts - 1, labels)
    if shown.all():
        return part
    real = shown > 0  # drop sequences whose only token is a target
    return _Part(first[real], shown[real], part.targets[real], labels)


def _copy(data: PackedSet, own: Int64, to: Int64, ids: Array) -> None:
    stored, header, index = np.asarray(data.packed.ids), data.header, data.packed.ids_index
    if index is not None:  # rows without padding
        counts = np.minimum(data.lengths[own], ids.shape[1])
        ids[to] = header.pad_id
        at = np.repeat(to * ids.shape[1], counts) + _ranges(np.zeros_like(counts), counts)
        ids.reshape(-1)[at] = stored[_ranges(_index(index, own)[:, 0], counts)]
        copied = ids[to]
    elif len(own) == len(ids) and header.stride == ids.shape[1]:  # all rows, in order
        copied = np.take(stored, own, 0, out=ids, mode="clip")  # the other modes copy twice
    else:
        copied = stored[:, : ids.shape[1]][own]
        ids[to, : copied.shape[1]] = copied
    ids_N = copied.view(copied.dtype.str.replace("i", "u"))
    if int(ids_N.max()) >= header.vocab_size:
        row = int(own[(ids_N >= header.vocab_size).any(1).argmax()])
        raise IntegrityError(
            f"{data.manifest}: a token id of packed row {row} lies outside the vocabulary of {header.vocab_size}; the "
            f"packed files are damaged: check them with `datakit verify`"
        )


def _index(pairs: Array, own: Int64) -> Int64:
    found: Int64 = np.asarray(pairs)[own].astype(np.int64)
    return found


def _ranges(starts: Int64, counts: Int64) -> Int64:
    """Concatenated ranges: start, start + 1, ... with `count` values each."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    found: Int64 = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return found


def _sequences(segments: npt.NDArray[np.int32], index: Int64) -> tuple[Int64, Int64, Int64]:
    """Start, end and row of each sequence in the rows of `index`."""
    offsets, counts = index.T
    bounds = segments[_ranges(offsets, counts)].astype(np.int64)
    firsts = np.cumsum(counts) - counts
    begins, ends = np.ones((2, len(bounds)), np.bool_)
    begins[firsts + counts - 1] = ends[firsts] = False
    return bounds[begins], bounds[ends], np.repeat(np.arange(len(counts)), counts - 1)


def _labels_of(part: _Part) -> Array:
    return _ranges(part.starts, part.targets) if part.labels is None else part.labels


def _joined(parts: Sequence[_Part]) -> _Part:
    """Sequences and labels of several files, sorted by place."""
    starts, lengths = (np.concatenate([_EMPTY, *(getattr(p, n) for p in parts)]) for n in ("starts", "lengths"))
    labels = np.sort(np.concatenate([_EMPTY, *map(_labels_of, parts)]))
    order = np.argsort(starts, kind="stable")
    targets = np.concatenate([_EMPTY, *(p.targets for p in parts)])
    return _Part(starts[order], lengths[order], targets[order], labels)


def _check_labels(data: PackedSet, own: Int64, counts: Int64, within: Array, places: Array, last_S: Int64) -> None:
    """Refuse labels that are not ascending in their row, and labels whose target is padding or in another sequence.

    `within` are the label positions in the rows `own`, with `counts` per row; `last_S` are the places of sequence ends.

    Raises:
        IntegrityError: naming the first wrong row.
    """
    if not len(places):
        return
    ends = np.cumsum(counts)
    some = counts > 0
    first, last = (ends - counts)[some], ends[some] - 1
    fit = (within[first] >= 0) & (within[last] < data.lengths[own[some]] - 1)
    found = np.searchsorted(places, last_S.astype(places.dtype))
    across = places[np.minimum(found, len(places) - 1)] == last_S
    if fit.all() and not across.any() and (places[1:] > places[:-1]).all():
        return
    raise _refused(data, own)


def _refused(data: PackedSet, own: Int64) -> IntegrityError:
    """The error for the first row with wrong labels."""
    for row in own.tolist():
        labels, bounds = np.asarray(data.packed.labels_of(row)), data.packed.segments_of(row)
        wrong = (labels < 0) | (labels >= bounds[-1]) | np.isin(labels + 1, bounds)
        if wrong.any() or (np.diff(labels) <= 0).any():
            break
    about = "on padding or across two sequences" if wrong.any() else "twice, or labels that are not ascending"
    return IntegrityError(
        f"{data.manifest}: packed row {row} has a label {about} (labels {labels[0]}..{labels[-1]}, boundaries "
        f"{bounds.tolist()}); pack the set again"
    )


def _filled(label_pos: Array, unit: int, positions: int, sizes: Sequence[int] = ()) -> Array:
    """Labels, then unlabelled positions up to the smallest size with room, beyond these up to a multiple of `unit`."""
    rounded = max(1, -(-len(label_pos) // unit)) * unit
    size = min(next((s for s in sizes if s >= len(label_pos)), rounded), positions)
    free = np.ones(positions, np.bool_)
    free[label_pos] = False
    return np.concatenate([label_pos, np.flatnonzero(free)[: size - len(label_pos)]])


J = TypeVar("J")
R = TypeVar("R")
BLOCK_BYTES = 1 << 21
"""Bytes of token ids gathered in one pass: large against the overhead of a pass, small enough for a core's cache."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """Order of rows, size of steps and batches, and loading."""

    batch_rows: int = option(8, "packed rows per micro-batch")
    grad_accum: int = option(1, "micro-batches per optimizer step, shared by all ranks")
    batch_size_schedule: tuple[str, ...] = option(
        (), "rows of a micro-batch from a step on, as 0:4,100:8, in place of --batch-rows"
    )
    weights: tuple[float, ...] = option((), "share of each manifest in the training tokens; none: every row once")
    bucket_sizes: tuple[int, ...] = option((), "row lengths to pad to; default: a quarter, a half and all of seq_len")
    label_bucket_sizes: tuple[int, ...] = option(
        (),
        "pad the labels of a micro-batch to one of these numbers, so that compiled parts see few shapes",
        result=False,
    )
    bin_cache: Literal["mmap", "memory"] = option(
        "mmap", "memory: read the packed files whole at the start, for slow or remote disks", result=False
    )
    shuffle_buffer: int = option(65536, "rows that are shuffled together; 0 keeps the order of the file")
    num_workers: int = option(1, "threads that prepare batches; 0: prepare in the main thread", result=False)
    prefetch_steps: int = option(2, "steps that each worker prepares ahead", result=False)
    verify: bool = option(True, VERIFY_HELP, result=False)

    def __post_init__(self) -> None:
        if self.batch_rows < 1 or self.grad_accum < 1 or self.shuffle_buffer < 0:
            raise ConfigError("batch_rows and grad_accum must be at least 1 and shuffle_buffer at least 0")
        if self.num_workers < 0 or self.prefetch_steps < 1:
            raise ConfigError("num_workers must be at least 0 and prefetch_steps at least 1")
        if list(self.bucket_sizes) != sorted(set(self.bucket_sizes)) or min(self.bucket_sizes, default=1) < 1:
            raise ConfigError(f"bucket_sizes must be positive and ascending, found {self.bucket_sizes}")
        if (
            list(self.label_bucket_sizes) != sorted(set(self.label_bucket_sizes))
            or min(self.label_bucket_sizes, default=1) < 1
        ):
            raise ConfigError(f"label_bucket_sizes must be positive and ascending, found {self.label_bucket_sizes}")
        if not all(0 < w < float("inf") for w in self.weights):
            raise ConfigError(f"weights must be positive, found {self.weights}")
        steps = [step for step, _ in self.sizes]
        if steps != sorted(set(steps)) or min(rows for _, rows in self.sizes) < 1:
            raise ConfigError(f"batch_size_schedule: steps must ascend, rows be at least 1: {self.batch_size_schedule}")

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """The schedule of batch sizes: (first step, rows of a micro-batch), the first at step 0.

        Raises:
            ConfigError: a part is not STEP:ROWS.
        """
        try:
            given = [(int(step), int(rows)) for step, rows in (part.split(":") for part in self.batch_size_schedule)]
        except ValueError:
            raise ConfigError(
                f"batch_size_schedule: expected STEP:ROWS,..., found {self.batch_size_schedule}"
            ) from None
        return tuple(given if given and given[0][0] == 0 else [(0, self.batch_rows), *given])


class StepStream(IterableDataset[list[Batch]]):
    """The micro-batches of each optimizer step, from a given step on, epoch after epoch without end.

    With several ranks, each gets its share of every step.
    """

    def __init__(
        self, data: PackedSet | Mixture, config: DataConfig, seed: int, first_step: int = 0, *, rank: int = 0,
        ranks: int = 1, pin: bool = False, label_fill: int = 0, flat: bool = False,
    ) -> None:  # fmt: skip
        """`label_fill`, `pin` and `flat`: see `packets`.

        Raises:
            ConfigError: `batch_rows` splits units, or the number of weights is not the number of manifests.
        """
        super().__init__()
        self.data, self.config, self.first_step = mixture(data), config, first_step
        self.pin, self.label_fill, self.flat = pin, label_fill, flat
        unit = self.data.header.rows_per_unit
        if odd := [rows for _, rows in config.sizes if rows % unit]:
            raise ConfigError(
                f"batch_rows {odd[0]} would split units of {unit} rows: {self.data.name} needs a multiple of {unit}"
            )
        if config.weights and len(config.weights) != len(self.data.manifests):
            raise ConfigError(
                f"weights: expected one per manifest, {len(self.data.manifests)} in all, found {len(config.weights)}: "
                f"{','.join(map(str, config.weights))}"
            )
        # the sets of a manifest are neighbours
        rows = np.bincount(self.data.of_manifest, np.diff(self.data.first_rows)).astype(int).tolist()
        tokens = [part.mean() for part in np.split(self.data.lengths, np.cumsum(rows)[:-1])]
        self.plan = StepPlan(
            self.data.widths(config.bucket_sizes),
            batch_rows=config.batch_rows, grad_accum=config.grad_accum, shuffle_buffer=config.shuffle_buffer,
            seed=(*(int(v, 16) for v in self.data.version.split("+")), seed), rows_per_unit=unit, source_rows=rows,
            shares=[w / t for w, t in zip(config.weights, tokens, strict=False)], sizes=config.sizes)  # fmt: skip
        most = max(rows for _, rows in config.sizes)
        self.split = Split(rank=rank, ranks=ranks, grad_accum=config.grad_accum, batch_rows=most, rows_per_unit=unit)
        """How ranks share the largest steps."""

    def epoch_of(self, step: int) -> int:
        """The epoch (from 0) of a step (from 0)."""
        return self.plan.epoch_of(step)

    def rows_of(self, step: int) -> Int64:
        """The packed rows of a step, of all ranks."""
        return np.concatenate([m.rows for m in self.plan.step(step)])

    def batches(self, step: int) -> list[Batch]:
        """This rank's micro-batches of a step."""
        return [found.to("cpu") for found in self._make(step, 1)[0]]

    def __iter__(self) -> Iterator[list[Batch]]:
        """Iterate without end from `first_step`, which is the whole state."""
        return self.on(torch.device("cpu"))

    def on(self, device: torch.device) -> Iterator[list[Batch]]:
        """Steps with batches on a device; workers start at once, and on CPU they expand the packets too."""
        steps, workers = self.packets(), self.config.num_workers
        if device.type != "cpu" or not workers:
            return ([packet.to(device) for packet in step] for step in steps)

        def expanded(step: Sequence[Packet]) -> list[Batch]:
            return [packet.to("cpu") for packet in step]

        return _Ahead(workers, expanded, steps, workers * self.config.prefetch_steps)

    def packets(self) -> Iterator[list[Packet]]:
        """Steps as packets, before the transfer to a device."""
        workers, blocks = self.config.num_workers, self._blocks()
        if not workers:
            return (step for block in blocks for step in self._tried(block))
        many = next(self._blocks())[1]
        made = _Ahead(workers, self._tried, blocks, workers * -(-self.config.prefetch_steps // many))
        return (step for block in made for step in block)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Blocks of steps that are collated together: (first step, number of steps)."""
        step, packed = self.first_step, self.data.header
        rows = self.split.piece_rows * -(-self.config.grad_accum // self.split.ranks)
        many = max(1, BLOCK_BYTES // (rows * packed.stride * np.dtype(packed.dtype).itemsize))
        while True:
            yield step, many
            step += many

    def _tried(self, block: tuple[int, int]) -> Iterable[list[Packet]]:
        """The steps of a block; an error is raised at the step that has it, not at earlier steps."""
        first, many = block
        try:
            return self._make(first, many)
        except IntegrityError:
            return (self._make(step, 1)[0] for step in range(first, first + many))

    def _make(self, first: int, many: int) -> list[list[Packet]]:
        """Collate the micro-batches of several steps."""
        found: list[list[Packet]] = []
        rows_of = [self.plan.rows_at(step) for step in range(first, first + many)]
        for rows, run in groupby(zip(rows_of, self.plan.steps(first, many), strict=True), key=lambda pair: pair[0]):
            split = replace(self.split, batch_rows=rows)
            shares = [split.of(micros) for _, micros in run]
            micros, sizes = [micro for share in shares for micro in share], self.config.label_bucket_sizes
            made = iter(packets(self.data, micros, split.piece_rows, self.label_fill, self.pin, self.flat, sizes))
            found += [list(islice(made, len(share))) for share in shares]
        return found


class _Ahead(Iterator[R]):
    """Run `make` on `jobs` in threads, up to `many` results ahead, and yield the results in order.

    The first jobs start at once. An error is raised only after all earlier results.
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
            except Exception as e:  # StopIteration too
                self._ended = e

    def __next__(self) -> R:
        if not self._made and self._ended:
            raise self._ended
        found = self._made.popleft().result()
        self._begin()
        return found
