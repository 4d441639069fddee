"""Packed rows of manifests as batches: for our loop (`StepStream`) and for a loop of your own (`PackedDataset`).

A `PackedSet` is one part of a packed set: rows of one length, memory-mapped. A `Mixture` is the training data of a run:
the parts of all row lengths and of all manifests, with rows numbered from 0 across them. `stream.StepPlan` says which
rows make which micro-batch; `StepStream.batch` makes a `Batch` of them. A row costs about 20 microseconds, in threads
beside training.

Shapes: B rows, T positions (the bucket of the rows), N = B*T flat positions, L labels, S sequences. A row of n tokens
fills n positions, or T = n - 1 where its last token is only a target.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

import datakit.storage as storage
from datakit.config import at_least, digest, file_mark, option, resolved
from datakit.errors import ConfigError, InputError, IntegrityError, ManifestError
from datakit.manifest import Manifest, check_shards, data_dir, load
from datakit.pack.format import IGNORED, Header, Packed, headers
from train.attention import Segments
from train.config import LOG, more
from train.stream import NO_ROWS, Int64, MicroBatch, StepPlan

Part = Literal["packed", "validation"]
VERIFY_HELP = "check every byte of the data against its checksum before the first step, at 1 GB/s a core or more"


def _fetched(manifest: Path) -> Manifest:
    """The manifest, once its files are on this machine."""
    found = load(manifest)
    for shard in found.shards if storage.url_of(manifest) else ():
        LOG.info("data: %s: fetching %s, %.1f MB", manifest, shard.path, shard.bytes / 1e6)
        storage.bring(data_dir(manifest, found) / shard.path, shard.bytes, shard.sha256)
    return found


@lru_cache(maxsize=64)
def _verify(manifest: Path, marks: tuple[tuple[int, ...], ...]) -> None:
    """Compare every byte with its checksum, in threads; not again while the `marks` of the files stay."""
    found = load(manifest)
    size = sum(shard.bytes for shard in found.shards) / 1e6
    LOG.info("data: %s (%s): checking %.1f MB", manifest, found.version, size)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda shard: check_shards(data_dir(manifest, found), [shard]), found.shards))


@dataclass(frozen=True, slots=True)
class PackedSet:
    """One part of a packed set, with the facts of its manifest."""

    manifest: Path
    version: str
    packed: Packed
    tokenizer: dict[str, Any]
    """Tokenizer facts of the manifest: sha256, vocab_size, special ids, chat_template_sha256."""
    tokenizer_files: tuple[Path, ...]

    @classmethod
    def open_all(cls, manifest: Path, part: Part = "packed", verify: bool = True, memory: bool = False) -> list[Self]:
        """Map the rows of a pack manifest, its parts in order, the shortest rows first; empty parts are skipped.

        `part` is the training data (`packed`) or the validation split, if there is one. With `memory` the files are
        read whole instead of mapped.

        Raises:
            ManifestError: not a pack manifest in format bin2d or bin, or no rows or labels.
            IntegrityError: files are missing or changed. What was checked in this process, and has not changed since,
                is not checked again.
            MissingExtraError: the manifest is on an object store, and obstore is not installed.
        """
        found = _fetched(manifest)
        parts = headers(found.facts, part)
        if part == "validation" and found.stage == "pack" and not parts:
            raise ManifestError(f"{manifest}: has no validation rows; pack with, for example, --validation 0.01")
        formats = {h.get("format") for h in parts}
        if found.stage != "pack" or not parts or not formats <= {"bin2d", "bin"}:
            found_format = f"found stage {found.stage!r} with format {', '.join(map(repr, formats)) or None}"
            raise ManifestError(f"{manifest}: expected a pack stage in format bin2d or bin, {found_format}; pack first")
        folder, tokenizer = data_dir(manifest, found), dict(found.facts.get("tokenizer", {}))
        if verify:  # not before the refusals above: other stages' files may be large
            files = [folder / shard.path for shard in found.shards]
            _verify(manifest, tuple(tuple(file_mark(f)) if f.is_file() else () for f in files))
        copies = tuple(folder / f for f in tokenizer.pop("files", ()))
        # slices of np.memmap are ten times as slow as those of plain arrays over the same memory
        kind = np.array if memory else np.asarray
        rows = (Packed.open(folder / h["prefix"]) for h in parts)
        opened = [with_each(p, np.ndarray, kind) for p in rows if len(p)]
        if not opened:
            raise ManifestError(f"{manifest}: has no rows, so there is nothing to train on")
        if not any(p.labels is None or len(p.labels) for p in opened):
            raise ManifestError(f"{manifest}: no token is a label, so there is no loss; check the chat template")
        for p in opened:  # of a pair, one side may be missing
            filled = (p.segment_index[:, 1] >= 2).reshape(-1, p.header.rows_per_unit).any(1)
            if not filled.all():
                row = int(filled.argmin()) * p.header.rows_per_unit
                raise InputError(f"{manifest}: packed row {row} has no sequence; pack the set again")
        return [cls(manifest, found.version, p, tokenizer, copies) for p in opened]

    @property
    def header(self) -> Header:
        """The header of the rows."""
        return self.packed.header

    @property
    def lengths(self) -> Int64:
        """Real tokens of each row."""
        return self.packed.real_tokens[:, 1]

    def row(self, row: int, width: int) -> "Row":
        """A row cut to `width` positions, after checks.

        Raises:
            IntegrityError: a token outside the vocabulary, or a label on padding, across two sequences or out of order.
        """
        ids, bounds, labels = self.packed.ids_of(row), self.packed.segments_of(row), self.packed.labels_of(row)
        if len(ids) and int(ids.view(f"u{ids.itemsize}").max()) >= self.header.vocab_size:
            where = f"{self.manifest}: a token id of packed row {row} lies outside the vocabulary of"
            raise IntegrityError(f"{where} {self.header.vocab_size}; check the packed files with `datakit verify`")
        inside = np.ones(len(ids), np.bool_)
        inside[bounds[1:] - 1] = False  # the last token of a sequence has no target
        if labels is None:
            return Row(ids[: width + 1], bounds, np.flatnonzero(inside))
        ascend = not (labels[1:] <= labels[:-1]).any()  # then the first and the last label bound all
        if len(labels) and not (ascend and labels[0] >= 0 and labels[-1] < len(ids) and inside[labels].all()):
            raise IntegrityError(
                f"{self.manifest}: packed row {row} has a label twice, out of order, on padding or across two "
                f"sequences (labels {labels.tolist()}, boundaries {bounds.tolist()}); pack the set again"
            )
        return Row(ids[: width + 1], bounds, labels)


M = TypeVar("M", Packed, "Batch", Segments)


def with_each(found: M, kind: type, changed: Callable[[Any], Any]) -> M:
    """The same, with every field of a kind changed."""
    values: dict[str, Any] = {f.name: getattr(found, f.name) for f in fields(found)}
    return replace(found, **{name: changed(v) for name, v in values.items() if isinstance(v, kind)})


@dataclass(frozen=True, slots=True)
class Row:
    """The tokens of a packed row."""

    ids: npt.NDArray[Any]
    bounds: npt.NDArray[np.int32]
    """Where its sequences begin, and the end of the last one."""
    labels: npt.NDArray[Any]
    """Positions whose next token is a target, ascending."""


class Mixture:
    """The training data of a run: several sets, with rows numbered from 0 across sets."""

    def __init__(self, sets: Sequence[PackedSet]) -> None:
        self.sets = tuple(sets)
        self.manifests = list(dict.fromkeys(s.manifest for s in self.sets))
        self.manifest = self.manifests[0]
        self.name = ", ".join(map(str, self.manifests))
        self.version = "+".join({s.manifest: s.version for s in self.sets}.values())
        self.header = max((s.header for s in self.sets), key=lambda h: h.seq_len)
        """The header of the set with the longest rows."""
        labelled = next((s for s in self.sets if s.packed.labels is not None), self.sets[0])
        self.tokenizer, self.tokenizer_files = labelled.tokenizer, labelled.tokenizer_files
        """Of the first labelled set, whose chat template is in use; else of the first set."""
        self.lengths = np.concatenate([s.lengths for s in self.sets])
        """Real tokens of each row."""
        self.first_rows = np.cumsum([0, *(len(s.packed) for s in self.sets)])
        """Number of the first row of each set, followed by the number of all rows."""
        for other in self.sets[1:]:
            _check_alike(self.sets[0], other)

    @classmethod
    def open(cls, manifests: Sequence[Path], part: Part = "packed", verify: bool = True, memory: bool = False) -> Self:
        """Map the rows of several pack manifests.

        Raises:
            ManifestError: see `PackedSet.open_all`; or tokenizers, vocabularies or kinds of rows differ.
            IntegrityError: a file is missing or changed.
            ConfigError: a manifest is listed twice.
        """
        if len(set(manifests)) != len(manifests):
            raise ConfigError(f"--manifest has one manifest twice: {', '.join(map(str, manifests))}")
        return cls([s for m in manifests for s in PackedSet.open_all(m, part, verify, memory)])

    def unlabelled(self) -> "Mixture":
        """The same rows, with every target as label."""
        return Mixture([replace(s, packed=replace(s.packed, labels=None, label_index=None)) for s in self.sets])

    def find(self, row: int) -> tuple[PackedSet, int]:
        """The set of a row, and the number of the row in it."""
        i = int(np.searchsorted(self.first_rows, row, side="right")) - 1
        return self.sets[i], row - int(self.first_rows[i])

    def rows(self, micro: MicroBatch) -> list[Row]:
        """The rows of a micro-batch.

        Raises:
            IntegrityError: see `PackedSet.row`.
        """
        return [owner.row(row, micro.width) for owner, row in map(self.find, micro.rows.tolist())]

    def widths(self, bucket_sizes: tuple[int, ...]) -> Int64:
        """The bucket of each row: the smallest one with room for its input positions.

        The default buckets are the row lengths; for a single row length a quarter, a half and all of it.

        Raises:
            ConfigError: a row is longer than the largest bucket.
        """
        lengths = sorted({s.header.seq_len for s in self.sets})
        if len(lengths) == 1:
            lengths = sorted({max(1, lengths[0] // 4), max(1, lengths[0] // 2), lengths[0]})
        sizes = np.array(bucket_sizes or lengths)
        needed = np.maximum(self.lengths - 1, 1)
        if needed.max() > sizes[-1]:
            owner, row = self.find(int(needed.argmax()))
            room = f"row {row} of {owner.manifest} needs {int(needed.max())} positions"
            raise ConfigError(f"bucket_sizes {tuple(map(int, sizes))}: {room}; add a bucket of at least that size")
        return sizes[np.searchsorted(sizes, needed)].astype(np.int64)

    def describe(self, rows: Int64) -> list[dict[str, Any]]:
        """Packed rows and their source rows, by manifest and row length, for messages."""
        found = []
        for data, (first, end) in zip(self.sets, pairwise(self.first_rows), strict=True):
            if len(own := rows[(rows >= first) & (rows < end)] - first):
                sources = data.packed.sources
                keys = np.sort(sources["row_key"][np.isin(sources["row"], own)]).tolist()
                where = {"manifest": str(data.manifest), "seq_len": data.header.seq_len}
                found.append(where | {"packed_rows": own.tolist(), "row_keys": keys})
        return found


def _check_alike(a: PackedSet, b: PackedSet) -> None:
    """Refuse sets with different tokenizers, vocabularies or kinds of rows."""
    names = ["sha256", "pad_id", "eos_id"]
    if a.packed.labels is not None and b.packed.labels is not None:
        names.append("chat_template_sha256")
    facts = [(f"tokenizer {k}", a.tokenizer.get(k), b.tokenizer.get(k)) for k in names]
    facts += [(k, getattr(a.header, k), getattr(b.header, k)) for k in ("vocab_size", "rows_per_unit")]
    for name, one, two in facts:
        if one != two:
            raise ManifestError(f"{a.manifest} has {name} {one!r}, but {b.manifest} has {two!r}: they cannot be mixed")


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

    def to(self, device: torch.device | str) -> "Batch":
        """The batch on another device; copies from pinned memory are asynchronous."""
        return self.moved(lambda x: x.to(device, non_blocking=True))

    def moved(self, move: Callable[[Tensor], Tensor]) -> "Batch":
        """The batch with every tensor moved."""
        return with_each(replace(self, segments=with_each(self.segments, Tensor, move)), Tensor, move)


LABEL_FILL = 16
"""Label counts are padded to sixteenths of the positions: oneDNN caches half a megabyte of kernels per count."""
FLAT_UNIT = 128
"""A flat row is padded to a multiple of this, or of a sixteenth of the positions, so that shapes repeat."""


def flat_batch(rows: Sequence[Row], numbers: Int64, pad_id: int, unit: int = FLAT_UNIT) -> Batch:
    """A micro-batch of one row: rows one after another, and padding up to a multiple of `unit` positions.

    Every row keeps its last token as an input, so that the targets of the one before are its own. Where each row is one
    sequence, or none, that of row i is number i + 1 in `Segments`; `numbers` name the packed rows.
    """
    joined = _joined(rows)
    return _batch([joined], (1, max(1, -(-len(joined.ids) // unit)) * unit), numbers, pad_id, fill=True)


def _joined(rows: Sequence[Row]) -> Row:
    """Rows one after another as one; a row without a sequence is an empty one."""
    starts = np.cumsum([0, *(len(row.ids) for row in rows)])
    ids, bounds, labels = [NO_ROWS], [starts[:1]], [NO_ROWS]
    for row, start in zip(rows, starts, strict=False):
        ids.append(row.ids)
        bounds.append(start + (row.bounds[1:] if len(row.bounds) > 1 else row.bounds))
        labels.append(start + row.labels)
    return Row(np.concatenate(ids), np.concatenate(bounds), np.concatenate(labels))


def _batch(
    rows: Sequence[Row], shape: tuple[int, int], numbers: Int64, pad_id: int, fill: bool, sizes: Sequence[int] = ()
) -> Batch:
    """`rows` as (B, T), cut to T inputs and filled up with padding; `numbers` name the packed rows."""
    height, width = shape
    ids = np.full((height, width + 1), pad_id, np.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)] = row.ids
    labels = np.concatenate([NO_ROWS, *(row.labels + i * width for i, row in enumerate(rows))])
    label_pos = _filled(labels, height * width, fill, sizes)
    targets = ids[:, 1:].ravel()[label_pos]
    targets[len(labels) :] = IGNORED
    segments = Segments.of([row.bounds for row in rows] + [[0]] * (height - len(rows)), width)
    return Batch(
        torch.from_numpy(np.ascontiguousarray(ids[:, :-1])), segments, torch.from_numpy(label_pos),
        torch.from_numpy(targets), len(labels), numbers, len(segments.tokens_N))  # fmt: skip


def _filled(label_pos: Int64, positions: int, fill: bool, sizes: Sequence[int]) -> Int64:
    """Labels, then unlabelled positions up to the smallest size with room, beyond these as `fill` says."""
    if not fill and not sizes:
        return label_pos
    unit = -(-positions // LABEL_FILL) if fill else 1
    rounded = max(1, -(-len(label_pos) // unit)) * unit
    size = min(next((s for s in sizes if s >= len(label_pos)), rounded), positions)
    free = np.ones(positions, np.bool_)
    free[label_pos] = False
    return np.concatenate([label_pos, np.flatnonzero(free)[: size - len(label_pos)]])


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """Order of rows, size of steps and batches, and loading."""

    batch_rows: int = option(8, "packed rows per micro-batch")
    grad_accum: int = option(1, "micro-batches per optimizer step, shared by all ranks")
    batch_size_schedule: tuple[str, ...] = more((), "rows of a micro-batch from a step on, as 0:4,100:8")
    weights: tuple[float, ...] = more((), "share of each manifest in the training tokens; none: every row once")
    bucket_sizes: tuple[int, ...] = more((), "row lengths to pad to; default: a quarter, a half and all of seq_len")
    label_bucket_sizes: tuple[int, ...] = more((), "pad labels to one of these: few shapes to compile", result=False)
    bin_cache: Literal["mmap", "memory"] = more("mmap", "memory: read the packed files whole at first", result=False)
    shuffle_buffer: int = more(65536, "rows that are shuffled together; 0 keeps the order of the file")
    num_workers: int = more(1, "threads that prepare batches; 0: prepare in the main thread", result=False)
    prefetch_steps: int = more(2, "steps that each worker prepares ahead", result=False)
    verify: bool = more(True, VERIFY_HELP, result=False)

    def __post_init__(self) -> None:
        at_least(self, 1, "batch_rows", "grad_accum", "prefetch_steps")
        at_least(self, 0, "shuffle_buffer", "num_workers")
        for name in ("bucket_sizes", "label_bucket_sizes"):
            sizes = getattr(self, name)
            if list(sizes) != sorted(set(sizes)) or min(sizes, default=1) < 1:
                raise ConfigError(f"{name} must be positive and ascending, found {sizes}")
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
            found = ",".join(self.batch_size_schedule)
            raise ConfigError(f"batch_size_schedule: expected STEP:ROWS,..., found {found}") from None
        return tuple(given if given and given[0][0] == 0 else [(0, self.batch_rows), *given])

    def plan(self, data: Mixture, seed: int) -> StepPlan:
        """The steps over `data`.

        Raises:
            ConfigError: `batch_rows` splits units, or the number of weights is not the number of manifests.
        """
        unit = data.header.rows_per_unit
        if odd := [rows for _, rows in self.sizes if rows % unit]:
            raise ConfigError(f"batch_rows {odd[0]}: {data.name} needs a multiple of {unit}, the rows of a unit")
        if self.weights and len(self.weights) != len(data.manifests):
            given, needed = self.weights, len(data.manifests)
            raise ConfigError(f"weights: expected one per manifest, {needed} in all, found {len(given)}: {given}")
        lengths = [np.concatenate([s.lengths for s in data.sets if s.manifest == m]) for m in data.manifests]
        return StepPlan(
            data.widths(self.bucket_sizes), sizes=self.sizes, grad_accum=self.grad_accum,
            seed=(*(int(v, 16) for v in data.version.split("+")), seed), shuffle_buffer=self.shuffle_buffer,
            rows_per_unit=unit, source_rows=list(map(len, lengths)),
            shares=[w / own.mean() for w, own in zip(self.weights, lengths, strict=False)])  # fmt: skip


class StepStream:
    """The micro-batches of each optimizer step, from a given step on, epoch after epoch without end.

    With several ranks, each gets its share of every step. The index of the step is the whole state.
    """

    def __init__(
        self, data: PackedSet | Mixture, config: DataConfig, seed: int, first_step: int = 0, *, rank: int = 0,
        ranks: int = 1, pin: bool = False, fill: bool = False, flat: bool = False,
    ) -> None:  # fmt: skip
        """`fill` and `flat`: see `batch`. With `pin`, batches are in pinned memory.

        Raises:
            ConfigError: see `DataConfig.plan`.
        """
        self.data = data if isinstance(data, Mixture) else Mixture([data])
        self.config, self.first_step, self.rank, self.ranks = config, first_step, rank, ranks
        self.pin, self.fill, self.flat = pin, fill, flat
        self.plan = config.plan(self.data, seed)

    def batches(self, step: int) -> list[Batch]:
        """This rank's micro-batches of a step."""
        micros, rows = self.plan.share(step, self.rank, self.ranks)
        found = [self.batch(micro, rows) for micro in micros]
        return [batch.moved(Tensor.pin_memory) for batch in found] if self.pin else found

    def batch(self, micro: MicroBatch, batch_rows: int) -> Batch:
        """A micro-batch of `batch_rows` rows; missing rows are padding, so a bucket has one shape.

        Labels are padded to the smallest label bucket that has room for them; beyond these, with `fill`, to the next
        sixteenth of the positions. With `flat`, rows of one sequence each become one row without their padding.

        Raises:
            IntegrityError: see `PackedSet.row`.
        """
        rows, pad_id = self.data.rows(micro), self.data.header.pad_id
        if self.flat:
            return flat_batch(rows, micro.rows, pad_id, max(FLAT_UNIT, -(-batch_rows * micro.width // LABEL_FILL)))
        sizes = self.config.label_bucket_sizes
        return _batch(rows, (batch_rows, micro.width), micro.rows, pad_id, self.fill, sizes)

    def __iter__(self) -> Iterator[list[Batch]]:
        """Iterate without end from `first_step`; threads prepare steps ahead, an error is raised at its own step."""
        steps, workers = count(self.first_step), self.config.num_workers
        if not workers:
            yield from map(self.batches, steps)
        pool = ThreadPoolExecutor(workers, "batches")
        try:
            made = deque(pool.submit(self.batches, next(steps)) for _ in range(workers * self.config.prefetch_steps))
            while True:
                yield made.popleft().result()
                made.append(pool.submit(self.batches, next(steps)))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class PackedDataset(IterableDataset[dict[str, Any]]):
    """Micro-batches of packed manifests as dictionaries, for a training loop of your own, transformers or TRL.

    An iteration is one epoch; each item is a whole micro-batch, so a `DataLoader` needs `batch_size=None`. All values
    are tensors of int64 but where it says otherwise:

        input_ids, position_ids   positions restart with each sequence
        labels                    aligned with the ids, as transformers expects: -100 where a token is no label, and on
                                  the first token of each sequence (the model shifts them)
        boundaries="mask": (B, T + 1) rows padded to their bucket, and `attention_mask`, bool (B, 1, T + 1, T + 1): true
                                  where a query sees a key. Right with transformers' SDPA attention, in training and in
                                  `eval()`, and with a cache, because nothing is left to be guessed from positions
        boundaries="additive": the same with 0 and the smallest float32, for `attn_implementation="eager"`, which would
                                  add a bool mask to the scores as 0 and 1, without a word
        boundaries="flash": (1, N) rows one after another without padding, and `cu_seq_lens_q`, `cu_seq_lens_k`, int32
                                  (S + 1,), `max_length_q`, `max_length_k`, int: what FlashAttention's varlen kernels
                                  take. Other attentions of transformers ignore these: use "mask" with them

    The order is that of our own loop with the same `config` and `seed` (`grad_accum` is the loop's own affair). With
    several ranks each gets every `ranks`-th micro-batch; in the last round of an epoch a rank may get padding without a
    label. DataLoader's workers share the micro-batches of a rank; their order does not change. `state_dict` and
    `load_state_dict` go on with the next micro-batch; torchdata's `StatefulDataLoader` calls them in its workers.
    """

    def __init__(
        self, *manifests: str | Path, config: DataConfig | None = None, split: Literal["train", "validation"] = "train",
        boundaries: Literal["mask", "additive", "flash"] = "mask", seed: int = 0, rank: int = 0, ranks: int = 1,
    ) -> None:  # fmt: skip
        """`manifests` are pack manifests or their folders; `config` gives rows, buckets, shuffling and weights.

        Raises:
            ConfigError: a value that is none of those above.
            ManifestError, IntegrityError, ConfigError: see `Mixture.open` and `DataConfig.plan`.
        """
        known = {"split": ("train", "validation"), "boundaries": ("mask", "additive", "flash"), "rank": range(ranks)}
        for name, found in {"split": split, "boundaries": boundaries, "rank": rank}.items():
            if found not in known[name]:
                raise ConfigError(f"{name}: expected one of {[*known[name]]}, found {found!r}")
        config = replace(config or DataConfig(), grad_accum=ranks)
        part: Part = "packed" if split == "train" else "validation"
        paths, memory = [*map(storage.pull_result, manifests)], config.bin_cache == "memory"
        self.data = Mixture.open(paths, part, config.verify, memory)
        self.plan, self.boundaries, self.rank, self.ranks = config.plan(self.data, seed), boundaries, rank, ranks
        self._order = digest([self.data.version, resolved(config), seed])
        self.set_epoch(0)

    def __len__(self) -> int:
        """Micro-batches of the current epoch, the same for every rank."""
        return self.plan.first_step(self.epoch + 1) - self.plan.first_step(self.epoch)

    def set_epoch(self, epoch: int) -> None:
        """Begin with this epoch (from 0) at the next iteration; each has its own order."""
        self.epoch, self._begin, self._next = epoch, 0, 0

    def state_dict(self) -> dict[str, Any]:
        """Where to go on: the epoch, the next micro-batch of this rank (and worker) in it, a digest of the order."""
        return {"epoch": self.epoch, "next": self._next, "order": self._order}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration go on where `state_dict` was called; the one after it is a whole epoch again.

        Raises:
            ConfigError: the state is of another order of rows.
        """
        if state.get("order", self._order) != self._order:
            raise ConfigError("the state is of other manifests, or of another config, seed or number of ranks")
        self.epoch, self._begin, self._next = state["epoch"], state["next"], state["next"]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker, first = get_worker_info(), self.plan.first_step(self.epoch)
        begin, self._begin = self._begin, 0
        for i in range(begin, len(self)):
            if worker is None or i % worker.num_workers == worker.id:
                micros, rows = self.plan.share(first + i, self.rank, self.ranks)
                self._next = i + 1
                yield self._item(micros[0], rows)

    def _item(self, micro: MicroBatch, batch_rows: int) -> dict[str, Any]:
        rows, shape = self.data.rows(micro), (batch_rows, micro.width + 1)
        if self.boundaries == "flash":
            rows = [_joined(rows)]
            shape = 1, max(1, len(rows[0].ids))  # in the last round a rank may have no row
        batch = _batch(rows, shape, micro.rows, self.data.header.pad_id, fill=False)
        labels = torch.full_like(batch.ids_BT, IGNORED)
        labels.view(-1)[batch.label_pos_L + 1] = batch.targets_L
        item = {"input_ids": batch.ids_BT, "labels": labels, "position_ids": batch.segments.positions_BT}
        if self.boundaries != "flash":
            mask = batch.segments.mask()
            hidden = torch.finfo(torch.float32).min
            return item | {"attention_mask": mask if self.boundaries == "mask" else torch.where(mask, 0.0, hidden)}
        ends = np.union1d(rows[0].bounds, shape[1]).astype(np.int32)
        cuts, longest = torch.from_numpy(ends), int(np.diff(ends).max())
        return item | {"cu_seq_lens_q": cuts, "cu_seq_lens_k": cuts, "max_length_q": longest, "max_length_k": longest}
