"""The pack stage: token rows -> bin2d, window by window.

A window holds a bounded number of tokens; sequences are fitted into rows within it, so memory does not grow with the
dataset, and windows are cut by rows of data, so the result does not depend on how batches come.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa

from datakit.config import option
from datakit.errors import ConfigError, InputError
from datakit.manifest import Count
from datakit.pack.format import Header, Writer
from datakit.pack.sequences import Limits, Sequences, cut
from datakit.pack.windows import Packer, Tally
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
        tally, dropped = Tally(), list[pa.RecordBatch]()
        limits = _limits(self.config, task, header.stride)
        with Writer(out / PREFIX, header) as writer:
            packer = Packer(self.config.packing, self.config.window_tokens, writer, tally)
            for batch in () if first is None else chain([first], source):
                packer.add(self._admitted(batch, limits, header.labelled, tally, dropped))
            packer.flush(final=True)
        return _result(out, tally, dropped)

    def _admitted(
        self, batch: pa.RecordBatch, limits: Limits, labelled: bool, tally: Tally, dropped: list[pa.RecordBatch]
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


def _result(out: Path, tally: Tally, dropped: list[pa.RecordBatch]) -> PackResult:
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
