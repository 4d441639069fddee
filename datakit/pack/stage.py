"""The pack stage: token rows -> bin2d, window by window.

A window holds a bounded number of tokens; sequences are fitted into rows within it, so memory does not grow with the
dataset, and windows are cut by rows of data, so the result does not depend on how batches come.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from datakit.config import option
from datakit.errors import ConfigError, InputError
from datakit.manifest import Count
from datakit.pack._kernels import lay_out
from datakit.pack.fit import Fit, fit
from datakit.pack.format import SOURCE_DTYPE, Header, Writer
from datakit.pack.sequences import Limits, Sequences, cut
from datakit.stage import Decision, split

PREFIX = "kept/train"


@dataclass(frozen=True, kw_only=True, slots=True)
class PackConfig:
    """How sequences become rows."""

    seq_len: int = option(1024, "targets in a row; a row holds one token more")
    packing: Literal["best_fit", "concat", "pad"] = option(
        "best_fit", "best_fit: whole sequences share rows; concat: joined and cut; pad: one sequence a row"
    )
    overflow: Literal["auto", "split", "truncate", "drop"] = option(
        "auto", "sequences longer than a row; auto: split plain text, truncate conversations and preference pairs"
    )
    format: Literal["bin2d"] = option("bin2d", "file format of the packed rows")
    ids_dtype: Literal["int32", "uint16"] = option("int32", "uint16 halves the bytes where the vocabulary allows")
    max_doc_tokens: int = option(0, "longer sequences are cut to this before packing; 0: no limit")
    drop_long: bool = option(False, "drop sequences above max_doc_tokens instead of cutting them")
    window_tokens: int = option(16_777_216, "tokens that are fitted together; bounds memory")

    def __post_init__(self) -> None:
        if not 1 <= self.seq_len < 1 << 24:
            raise ConfigError(f"seq_len must be at least 1 and below 2**24, found {self.seq_len}")
        if self.max_doc_tokens < 0:
            raise ConfigError(f"max_doc_tokens must be 0 (no limit) or more, found {self.max_doc_tokens}")
        if self.drop_long and not self.max_doc_tokens:
            raise ConfigError("drop_long drops sequences above max_doc_tokens: set that too")
        if self.window_tokens < 1:
            raise ConfigError(f"window_tokens must be at least 1, found {self.window_tokens}")


@dataclass(slots=True)
class PackResult:
    """What was packed and what was not."""

    files: list[str]
    """Relative to the output folder."""
    rows: Count
    """Rows of the dataset, not of the packed set."""
    tokens: Count
    header: dict[str, Any]
    """The bin2d header, with its prefix."""
    facts: dict[str, Any]
    dropped: list[pa.RecordBatch]
    """The dropped rows, with `stage`, `reason` and `detail`."""


@dataclass(slots=True)
class _Tally:
    """Running counts of one set."""

    rows: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    rows_in: int = 0
    tokens_in: int = 0
    kept: int = 0
    packed_rows: int = 0
    sequences: int = 0
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Pack:
    """Packs the rows of a tokenized set into one bin2d set."""

    name: ClassVar[str] = "pack"

    config: PackConfig

    def run(self, batches: Iterable[pa.RecordBatch], out: Path, tokenizer_facts: dict[str, Any]) -> PackResult:
        """Write `out/kept/train.*` from token rows in order.

        `tokenizer_facts` gives `vocab_size`, `pad_id` and `eos_id`. What the set is for is told from its first batch.

        Raises:
            InputError: labelled rows behind a first batch of plain text, or ids that the dtype does not hold.
        """
        source = (batch for batch in batches if batch.num_rows)
        first = next(source, None)
        task = _task(first)
        header = _header(self.config, task, tokenizer_facts)
        tally, dropped = _Tally(), list[pa.RecordBatch]()
        limits = _limits(self.config, task, header.stride)
        with Writer(out / PREFIX, header) as writer:
            packer = _Packer(self.config, writer, tally)
            for batch in () if first is None else chain([first], source):
                packer.add(self._admitted(batch, limits, header.labelled, tally, dropped))
            packer.flush(final=True)
        return _result(out, tally, dropped)

    def _admitted(
        self, batch: pa.RecordBatch, limits: Limits, labelled: bool, tally: _Tally, dropped: list[pa.RecordBatch]
    ) -> Sequences:
        if not labelled and batch.column("label_spans").null_count < batch.num_rows:
            raise InputError("pack: labelled rows behind plain text; pack conversations and plain text apart")
        found = cut(batch, limits, labelled)
        reasons = pa.array(found.reasons, pa.string())
        _, gone = split(batch, Decision(reasons, pa.array(found.details, pa.string())), self.name)
        if gone.num_rows:
            dropped.append(gone)
        tally.rows.update(r for r in found.reasons if r is not None)
        tally.lost.update(found.lost)
        tally.rows_in += batch.num_rows
        tally.tokens_in += found.into
        return found.sequences


class _Packer:
    """Gathers sequences into windows and writes each window's rows."""

    def __init__(self, config: PackConfig, writer: Writer, tally: _Tally) -> None:
        self.config, self.writer, self.tally = config, writer, tally
        self._waiting: list[Sequences] = []
        self._tokens = 0

    def add(self, sequences: Sequences) -> None:
        """Take sequences; whenever the window is full, the sequence that fills it ends it."""
        pairs = self.writer.header.rows_per_unit
        while len(sequences):
            ends = self._tokens + np.cumsum(sequences.length)
            count = int(np.searchsorted(ends, self.config.window_tokens)) + 1
            count = min(-(-count // pairs) * pairs, len(sequences))
            self._waiting.append(sequences.take(slice(0, count)).alone())
            self._tokens = int(ends[count - 1])
            sequences = sequences.take(slice(count, None))
            if self._tokens >= self.config.window_tokens:
                self.flush(final=False)

    def flush(self, final: bool) -> None:
        """Write the window's rows; joined sequences leave what fills no row to the next window."""
        if not self._waiting:
            return
        window = Sequences.join(self._waiting)
        stride = self.writer.header.stride
        fitted = fit(window.length, stride, "pad" if self._pairs else self.config.packing)
        self._waiting, self._tokens = [], 0
        if self.config.packing == "concat" and not final and not self._pairs:
            full = int(window.length.sum()) // stride
            self._keep(window, Fit(*(_part(fitted, fitted.row >= full))))
            fitted = Fit(*(_part(fitted, fitted.row < full)))
        if fitted.num_rows:
            self._write(window, fitted)

    @property
    def _pairs(self) -> bool:
        return self.writer.header.rows_per_unit == 2

    def _keep(self, window: Sequences, fitted: Fit) -> None:
        left = _placed(window, fitted)
        if len(left):
            self._waiting, self._tokens = [Sequences.join([left.alone()])], int(left.length.sum())

    def _write(self, window: Sequences, fitted: Fit) -> None:
        pieces, header, tally = _placed(window, fitted), self.writer.header, self.tally
        rows, tokens = fitted.num_rows, int(fitted.length.sum())
        ids = np.full((rows, header.stride), header.pad_id, np.int32)
        labels = np.empty(tokens if header.labelled else 0, np.int32)
        segments = np.empty(len(pieces) + rows, np.int32)
        label_counts, segment_counts = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        places = np.empty(len(pieces), np.int64)
        lay_out(
            pieces.ids, pieces.mask, pieces.start, pieces.length, fitted.row, ids,
            labels, label_counts, segments, segment_counts, places,
        )  # fmt: skip
        sources = np.empty(len(pieces), SOURCE_DTYPE)
        sources["row_key"], sources["start"], sources["tokens"] = pieces.row_key, pieces.offset, pieces.length
        sources["row"], sources["segment"] = fitted.row + tally.packed_rows, places
        labels = labels[: int(label_counts.sum())]
        self.writer.append(ids, labels, label_counts, segments, segment_counts, sources)
        tally.packed_rows += rows
        tally.sequences += len(pieces)
        tally.kept += tokens
        tally.labels += len(labels) if header.labelled else tokens - len(pieces)


def _part(fitted: Fit, which: Any) -> Iterator[Any]:
    return (a[which] for a in (fitted.sequence, fitted.offset, fitted.length, fitted.row))


def _placed(window: Sequences, fitted: Fit) -> Sequences:
    """The fitted pieces as sequences of their own, in order of their rows."""
    whole = window.take(fitted.sequence)
    start, offset = whole.start + fitted.offset, whole.offset + fitted.offset
    return Sequences(window.ids, window.mask, start, fitted.length, whole.row_key, offset)


def _task(first: pa.RecordBatch | None) -> Literal["pretrain", "sft", "dpo"]:
    """What a trainer does with the set, from its first batch."""
    if first is not None and "rejected_ids" in first.schema.names:
        return "dpo"
    return "sft" if first is not None and first.column("label_spans").null_count < first.num_rows else "pretrain"


def _header(config: PackConfig, task: Literal["pretrain", "sft", "dpo"], tokenizer: dict[str, Any]) -> Header:
    pad = tokenizer["pad_id"]
    eos = tokenizer["eos_id"]
    return Header(
        task=task,
        seq_len=config.seq_len,
        pad_id=0 if pad is None else pad,
        eos_id=(0 if pad is None else pad) if eos is None else eos,
        vocab_size=tokenizer["vocab_size"],
        labelled=task != "pretrain",
        ids_dtype=config.ids_dtype,
        rows_per_unit=2 if task == "dpo" else 1,
    )


def _limits(config: PackConfig, task: str, stride: int) -> Limits:
    overflow: Literal["split", "truncate", "drop", "stream"]
    if task == "dpo":  # a pair is one unit: it can be cut or dropped, never split
        overflow = "drop" if config.overflow == "drop" else "truncate"
    elif config.packing == "concat":
        overflow = "stream"
    elif config.overflow == "auto":
        overflow = "split" if task == "pretrain" else "truncate"
    else:
        overflow = config.overflow
    return Limits(
        stride=stride,
        overflow=overflow,
        max_doc_tokens=config.max_doc_tokens,
        drop_long=config.drop_long,
        sides=2 if task == "dpo" else 1,
    )


def _result(out: Path, tally: _Tally, dropped: list[pa.RecordBatch]) -> PackResult:
    meta = json.loads((out / f"{PREFIX}.meta.json").read_text(encoding="utf-8"))
    slots = tally.packed_rows * meta["stride"]
    rows_dropped, tokens_dropped = dict(sorted(tally.rows.items())), dict(sorted(tally.lost.items()))
    folder = out / Path(PREFIX).parent
    return PackResult(
        files=sorted(str(Path(PREFIX).with_name(f.name)) for f in folder.glob(f"{Path(PREFIX).name}.*")),
        rows=Count(into=tally.rows_in, kept=tally.rows_in - sum(rows_dropped.values()), dropped=rows_dropped),
        tokens=Count(into=tally.tokens_in, kept=tally.kept, dropped=tokens_dropped, padding=slots - tally.kept),
        header=meta | {"prefix": PREFIX},
        facts={
            "packed_rows": tally.packed_rows,
            "sequences": tally.sequences,
            "density": round(tally.kept / slots, 4) if slots else 0.0,
            "label_tokens": tally.labels,
            "label_share": round(tally.labels / tally.kept, 4) if tally.kept else 0.0,
        },
        dropped=dropped,
    )
