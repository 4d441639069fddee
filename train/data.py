"""A pack manifest -> memory-mapped rows -> the batches of each optimizer step.

Shapes: B rows, T positions (the row's bucket), N = B*T flat positions, L labels.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from datakit.config import option
from datakit.errors import ConfigError, InputError, IntegrityError, ManifestError
from datakit.manifest import data_dir, load
from datakit.pack.format import Packed
from train.attention import Segments
from train.order import Int64, MicroBatch, StepPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """What decides which rows make which step."""

    batch_rows: int = option(8, "packed rows that pass through the model at once")
    grad_accum: int = option(1, "micro-batches of batch_rows in one optimizer step")
    bucket_sizes: tuple[int, ...] = option((), "row lengths to pad to; a quarter, half and all of seq_len by default")
    shuffle_buffer: int = option(65536, "rows that are shuffled together; 0 keeps the file's order")

    def __post_init__(self) -> None:
        if self.batch_rows < 1 or self.grad_accum < 1 or self.shuffle_buffer < 0:
            raise ConfigError("batch_rows and grad_accum must be at least 1 and shuffle_buffer at least 0")
        if list(self.bucket_sizes) != sorted(set(self.bucket_sizes)) or min(self.bucket_sizes, default=1) < 1:
            raise ConfigError(f"bucket_sizes must be positive and ascending, found {self.bucket_sizes}")


@dataclass(frozen=True, slots=True)
class PackedSet:
    """One manifest's packed rows, and what the model must know about them."""

    manifest: Path
    version: str
    packed: Packed
    lengths: Int64
    """Real tokens of each row."""
    tokenizer: dict[str, Any]
    """The manifest's facts: sha256, vocab_size, special ids, chat_template_sha256."""
    tokenizer_files: tuple[Path, ...]

    @classmethod
    def open(cls, manifest: Path) -> "PackedSet":
        """Map the rows that a pack manifest names.

        Raises:
            ManifestError: not a manifest of a pack stage in bin2d format, or of one without rows.
            InputError: its files are missing or cut short.
        """
        found = load(manifest)
        prefix = found.facts.get("packed", {}).get("prefix")
        if found.stage != "pack" or prefix is None or found.facts["packed"].get("format") != "bin2d":
            raise ManifestError(
                f"{manifest}: expected the manifest of a pack stage in bin2d format, found stage {found.stage!r} with "
                f"format {found.facts.get('packed', {}).get('format')!r}; run `datakit pack --format bin2d` first"
            )
        folder = data_dir(manifest, found)
        packed = Packed.open(folder / prefix)
        if not packed.header.num_samples:
            raise ManifestError(f"{manifest}: holds no rows, so there is nothing to train on")
        if packed.labels is not None and not len(packed.labels):
            raise ManifestError(f"{manifest}: no token is a label, so there is no loss; does the chat template fit?")
        tokenizer = dict(found.facts.get("tokenizer", {}))
        files = tuple(folder / f for f in tokenizer.pop("files", ()))
        return cls(manifest, found.version, packed, _real_lengths(packed), tokenizer, files)

    def widths(self, bucket_sizes: tuple[int, ...]) -> Int64:
        """The bucket of each row: the smallest that holds its input positions.

        Raises:
            ConfigError: a row is longer than the largest bucket.
        """
        seq_len = self.packed.header.seq_len
        sizes = np.array(bucket_sizes or sorted({max(1, seq_len // 4), max(1, seq_len // 2), seq_len}))
        needed = np.maximum(self.lengths - 1, 1)
        if needed.max() > sizes[-1]:
            raise ConfigError(
                f"bucket_sizes {tuple(map(int, sizes))}: row {int(needed.argmax())} of {self.manifest} needs "
                f"{int(needed.max())} positions; add a bucket of at least that size"
            )
        widths: Int64 = sizes[np.searchsorted(sizes, needed)].astype(np.int64)
        return widths

    def keys_of(self, rows: Int64) -> list[int]:
        """The `row_key` of every source row in the given packed rows."""
        sources = self.packed.sources
        return [int(k) for k in sources["row_key"][np.isin(sources["row"], rows)]]


def _real_lengths(packed: Packed) -> Int64:
    index = np.asarray(packed.segment_index).astype(np.int64)
    if not (index[:, 1] >= 2).all():
        raise InputError(f"packed row {int((index[:, 1] < 2).argmax())} has no sequence; pack the set again")
    return np.asarray(packed.segments[index.sum(1) - 1], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch. Tensors are int64."""

    ids_BT: Tensor
    segments: Segments
    label_pos_L: Tensor
    """Flat positions into (B, T) whose next token is a target."""
    targets_L: Tensor
    rows: Int64
    """The packed rows, for messages."""
    real_tokens: int
    """Input positions that are not padding."""

    def to(self, device: torch.device | str) -> "Batch":
        """The same on another device."""
        moved = {n: getattr(self, n).to(device, non_blocking=True) for n in ("ids_BT", "label_pos_L", "targets_L")}
        return replace(self, segments=self.segments.to(device), **moved)


def collate(data: PackedSet, micro: MicroBatch, batch_rows: int) -> Batch:
    """The tensors of a micro-batch; missing rows are padding, so a bucket has one shape.

    Raises:
        IntegrityError: a token outside the vocabulary, or a label on padding or across two sequences.
    """
    packed, width = data.packed, micro.width
    ids_BT = np.full((batch_rows, width), packed.header.pad_id, np.int64)
    ids_BT[: len(micro.rows)] = packed.ids[micro.rows, :width]
    bounds = [packed.segments_of(int(row)) for row in micro.rows]
    labels = [_label_positions(data, int(row), b) for row, b in zip(micro.rows, bounds, strict=True)]
    targets = [np.asarray(packed.ids[row])[p + 1] for row, p in zip(micro.rows, labels, strict=True)]
    if max(ids_BT.max(), *(t.max(initial=0) for t in targets)) >= packed.header.vocab_size or ids_BT.min() < 0:
        raise IntegrityError(
            f"{data.manifest}: a token id of rows {micro.rows.tolist()} lies outside the vocabulary of "
            f"{packed.header.vocab_size}; the packed files are damaged: check them with `datakit verify`"
        )
    return Batch(
        ids_BT=torch.from_numpy(ids_BT),
        segments=Segments.of([*bounds, *[[0, 0]] * (batch_rows - len(bounds))], width),
        label_pos_L=torch.from_numpy(np.concatenate([p + r * width for r, p in enumerate(labels)])),
        targets_L=torch.from_numpy(np.concatenate(targets).astype(np.int64)),
        rows=micro.rows,
        real_tokens=int(np.minimum(data.lengths[micro.rows], width).sum()),
    )


def _label_positions(data: PackedSet, row: int, bounds: Any) -> Int64:
    """Positions whose next token is a target: the row's labels, or in plain text all inside a sequence."""
    labels = data.packed.labels_of(row)
    last = bounds[1:] - 1  # the next token of these belongs to another sequence or to padding
    if labels is None:
        return np.setdiff1d(np.arange(int(bounds[-1])), last).astype(np.int64)
    if len(labels) and (labels[0] < 0 or labels[-1] >= bounds[-1] or np.isin(labels, last).any()):
        raise IntegrityError(
            f"{data.manifest}: packed row {row} has a label on padding or across two sequences (labels "
            f"{labels[0]}..{labels[-1]}, boundaries {bounds.tolist()}); pack the set again"
        )
    return labels.astype(np.int64)


class StepStream(IterableDataset[list[Batch]]):
    """The micro-batches of each optimizer step, from a given step on; endless, epoch after epoch."""

    def __init__(self, data: PackedSet, config: DataConfig, seed: int, first_step: int = 0) -> None:
        super().__init__()
        if config.batch_rows % (unit := data.packed.header.rows_per_unit):
            raise ConfigError(
                f"batch_rows {config.batch_rows} would split units of {unit} rows: {data.manifest} needs a multiple"
            )
        self.data, self.config, self.first_step = data, config, first_step
        self.plan = StepPlan(
            data.widths(config.bucket_sizes),
            batch_rows=config.batch_rows,
            grad_accum=config.grad_accum,
            shuffle_buffer=config.shuffle_buffer,
            seed=(int(data.version, 16), seed),
            rows_per_unit=data.packed.header.rows_per_unit,
        )

    def __iter__(self) -> Iterator[list[Batch]]:
        """Endless; `first_step` is the state."""
        step = self.first_step
        while True:
            yield [collate(self.data, micro, self.config.batch_rows) for micro in self.plan.step(step)]
            step += 1
