"""The pack stage: token rows -> packed rows. Cut sequences to length, fit them into rows, write windows of rows.

Functions import `fit`, which has kernels: loading `PackConfig` for `--help` must not load numba.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import at_least, option
from datakit.data import of_kind
from datakit.errors import ConfigError, InputError
from datakit.manifest import Count, check_shards, data_dir
from datakit.pack.format import Format, Header, PackedWriter, Packing, Task
from datakit.pack.mixture import COLUMNS, Mixture
from datakit.stage import Made, Parent, Stage, split

if TYPE_CHECKING:
    from datakit.pack.fit import Cutter, Packer

MAX_LOSS = 0.05
"""A greater share of tokens that is lost because sequences are longer than a row is an alarm."""
FOLDER = "kept"


@dataclass(frozen=True, kw_only=True, slots=True)
class PackConfig:
    """Settings of the pack stage."""

    seq_len: int | tuple[int, ...] = option(
        1024, "targets in a row; a row holds one token more. Several lengths, as 256,512,1024, make a set each"
    )
    packing: Packing = option(
        "best_fit",
        "best_fit: whole sequences share rows; wrap: joined and cut at row ends (formerly concat); pad: one a row",
    )
    overflow: Literal["auto", "split_turns", "split", "truncate", "drop"] = option(
        "auto",
        "sequences longer than a row; split_turns: cut between turns, the system prompt repeated; auto: split plain "
        "text, split_turns for conversations, truncate preference pairs",
    )
    align_bos: bool = option(
        False, "start each row with the start of a sequence; tokens cut off at a row's end are dropped"
    )
    format: Format = option(
        "bin2d", "file format: bin2d (fixed rows), bin (no padding), megatron (whole documents of plain text)"
    )
    ids_dtype: Literal["int32", "uint16"] = option(
        "int32", "uint16 takes half the bytes; for vocabularies up to 65536", advanced=True
    )
    validation: float = option(
        0.0, "share of the rows that go to a validation set; chosen by content hash, so the same rows in each run"
    )
    max_doc_tokens: int = option(0, "longer sequences are cut to this before packing; 0: no limit")
    drop_long: bool = option(False, "drop sequences above max_doc_tokens instead of cutting them", advanced=True)
    max_tokens: dict[str, int] = option(
        {}, "SOURCE=TOKENS: at most so many tokens of a source (a file's name, or a pattern as code/*), in whole rows"
    )
    weights: dict[str, float] = option(
        {}, "SOURCE=WEIGHT: shares of the tokens, for every source; the largest set in which no row is used twice"
    )
    window_tokens: int = option(16_777_216, "tokens that are fitted into rows together; limits memory", advanced=True)

    def __post_init__(self) -> None:
        lengths = self.row_lengths
        if not lengths or list(lengths) != sorted(set(lengths)) or not 1 <= lengths[0] <= lengths[-1] < 1 << 24:
            raise ConfigError(f"seq_len: lengths are at least 1, below 2**24 and ascending, found {list(lengths)}")
        at_least(self, 0, "validation", "max_doc_tokens")
        at_least(self, 1, "window_tokens")
        several, no_source = len(lengths) > 1, "must be above 0; leave a source out at ingest"
        wraps = self.packing == "wrap"
        for conflict, sentence in (
            (self.validation >= 1, f"validation must be below 1, found {self.validation}"),
            (min(self.max_tokens.values(), default=1) <= 0, f"max_tokens {no_source}"),
            (min(self.weights.values(), default=1) <= 0, f"weights {no_source}"),
            (several and wraps, "packing wrap takes one seq_len"),
            (several and self.format == "megatron", "format megatron takes one seq_len"),
            (self.align_bos and self.overflow == "split", "overflow split starts rows inside sequences: not align_bos"),
            (self.drop_long and not self.max_doc_tokens, "drop_long needs max_doc_tokens"),
            (wraps and self.overflow != "auto", "packing wrap cuts at row ends, whatever overflow says: leave it out"),
        ):
            if conflict:
                raise ConfigError(sentence)

    @property
    def row_lengths(self) -> tuple[int, ...]:
        """`seq_len` of each row length, ascending."""
        return self.seq_len if isinstance(self.seq_len, tuple) else (self.seq_len,)


@dataclass(frozen=True, slots=True)
class Pack(Stage):
    """The stage: packs the rows of a tokenized dataset."""

    name: ClassVar[str] = "pack"
    Config: ClassVar[type] = PackConfig
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "all"
    guards_rows: ClassVar[bool] = True
    takes_tokens: ClassVar[bool] = True
    directly_after: ClassVar[str] = "tokenize"
    input_flags: ClassVar[tuple[str, ...]] = ("tokenizer", "chat_template", "template_var", "thinking", "train_on")
    help: ClassVar[str] = "Rows have seq_len + 1 tokens. Raw files are tokenized first."

    config: PackConfig

    @property
    def max_loss(self) -> float:
        """Half of the rows; with limits or weights for sources what is left out is no loss."""
        return 1.0 if self.config.max_tokens or self.config.weights else 0.5

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Write the packed sets and a copy of the tokenizer."""
        source = parents[0]
        tokenizer, origin = source.manifest.facts["tokenizer"], data_dir(source.path, source.manifest)
        if self.config.max_tokens or self.config.weights:
            made = self._mixed(rows, folder, tokenizer, source)
        else:
            made = self.run(rows, folder, tokenizer)
        copied = []
        for shard in source.manifest.of_role("kept"):
            path = PurePosixPath(shard.path)
            if path.parent.name == "tokenizer":
                check_shards(origin, [shard])
                copied.append(f"{FOLDER}/tokenizer/{path.name}")
                target = folder / copied[-1]
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(origin / shard.path, target)
        facts = made.facts | {"tokenizer": tokenizer | {"files": sorted(copied)}}
        return replace(made, files=(*made.files, *sorted(copied)), facts=facts)

    def _mixed(self, rows: Iterator[pa.RecordBatch], folder: Path, tokenizer: dict[str, Any], source: Parent) -> Made:
        """Pack the rows that a mixture chooses. The others are read once more: there may be too many for the memory."""
        columns = [c for c in COLUMNS if c in of_kind(source.manifest.kind).names]
        mixture = Mixture.of(source.rows(columns), self.config.max_tokens, self.config.weights)
        made = self.run(mixture.taken(rows), folder, tokenizer)
        rows_in, tokens_in = (
            replace(count, into=count.into + gone.total(), dropped=count.dropped | gone)
            for count, gone in zip((made.rows, made.tokens or Count()), mixture.left_out(), strict=True)
        )
        others = (split(batch, mixture.decide(batch), self.name)[1] for batch in source.rows())
        facts = made.facts | ({"mixture": mixture.facts()} if mixture.shares else {})
        if alarms := [*mixture.alarms(), *facts.get("alarms", ())]:
            facts["alarms"] = alarms
        dropped = chain(made.dropped, (batch for batch in others if batch.num_rows))
        return replace(made, rows=rows_in, tokens=tokens_in, dropped=dropped, facts=facts)

    def run(self, batches: Iterator[pa.RecordBatch], out: Path, tokenizer: dict[str, Any]) -> Made:
        """Write `out/kept/train.*` (and `validation.*`) from token rows in order.

        `tokenizer` has `vocab_size`, `pad_id` and `eos_id`. The first batch with rows decides the task: pretrain, sft
        or dpo. The facts are the headers with prefixes (`packed`, and `validation` if there is one; several row lengths
        make a list `buckets`), the counts (`packing`), and `alarms`.

        Raises:
            InputError: labelled rows follow a first batch of plain text, the format cannot store such rows, or
                `wrap` with `align_bos` would cut labels off.
        """
        from datakit.pack.fit import Packer

        config = self.config
        source = (batch for batch in batches if batch.num_rows)
        first = next(source, None)
        task = _task(first)
        for refused, why in (
            (config.align_bos and config.packing == "wrap" and task != "pretrain",
             "wrap with align_bos would cut answers off; pack conversations with best_fit"),
            (task == "dpo" and config.overflow.startswith("split"),
             f"a preference pair is truncated or dropped, never split, found overflow {config.overflow}"),
            (task == "pretrain" and config.overflow == "split_turns", "plain text has no turns: use overflow split"),
        ):  # fmt: skip
            if refused and first is not None:
                raise InputError(f"pack: {why}")
        packing = "pad" if config.format == "megatron" else config.packing  # Megatron's loader joins and cuts
        cutter, packers = _cutter(config, task), dict[str, Packer]()
        for name in ("train", "validation") if config.validation else ("train",):
            writers = _writers(config, task, out / FOLDER / name, tokenizer)
            packers[name] = Packer(writers, packing, config.window_tokens, config.align_bos, cutter.lost)
        num_rows, gone = 0, list[pa.RecordBatch]()
        # Rows of equal content go to the same set, which does not depend on other rows. Strings of 16 hex digits have
        # the order of their numbers.
        limit = f"{int(config.validation * (1 << 64)):016x}"
        for batch in () if first is None else chain([first], source):
            if task == "pretrain" and batch.column("label_spans").null_count < batch.num_rows:
                raise InputError("pack: labelled rows follow plain text; pack conversations and plain text separately")
            sequences, decision = cutter.cut(batch)
            gone += [dropped for dropped in split(batch, decision, self.name)[1:] if dropped.num_rows]
            num_rows += batch.num_rows
            held_out = batch.column("row_key").filter(pc.less(batch.column("content_hash"), limit))
            validation = np.isin(sequences.table["row_key"], held_out.to_numpy())
            packers["train"].add(sequences.take(~validation))
            if "validation" in packers:
                packers["validation"].add(sequences.take(validation))
        for packer in packers.values():
            packer.flush(final=True)

        facts: dict[str, Any] = {
            ("packed" if name == "train" else name): _closed(packer.writers) for name, packer in packers.items()
        }
        facts["packing"] = _facts(list(packers.values()), config, cutter.repeated)
        if cutter.beyond > MAX_LOSS * cutter.tokens:
            facts["alarms"] = [_alarm(cutter)]
        reasons = Counter(reason for batch in gone for reason in batch.column("reason").to_pylist())
        writers = [writer for packer in packers.values() for writer in packer.writers]
        tokens = sum(w.num_tokens for w in writers)
        slots = sum(w.num_rows * w.header.stride if w.header.padded else w.num_tokens for w in writers)
        kept, own = num_rows - reasons.total(), tokens - cutter.repeated
        return Made(
            files=tuple(sorted(f"{FOLDER}/{file.name}" for file in (out / FOLDER).iterdir())),
            rows=Count(into=num_rows, kept=kept, dropped=dict(reasons)),
            tokens=Count(into=cutter.tokens, kept=own, dropped=dict(+cutter.lost), padding=slots - tokens),
            dropped=gone,
            facts=facts,
        )


def _task(first: pa.RecordBatch | None) -> Task:
    """The training task, from the first batch with rows."""
    if first is not None and "rejected_ids" in first.schema.names:
        return "dpo"
    return "sft" if first is not None and first.column("label_spans").null_count < first.num_rows else "pretrain"


def _writers(config: PackConfig, task: Task, prefix: Path, tokenizer: dict[str, Any]) -> list[PackedWriter]:
    """A writer for each row length; the set of `train` is then called `train-256`, for example, if there are several.

    A tokenizer without a token for padding pads with id 0; one without an end token ends with that for padding.
    """
    pad, several = tokenizer["pad_id"] or 0, len(config.row_lengths) > 1
    headers = [
        Header(
            task=task,
            seq_len=seq_len,
            pad_id=pad,
            eos_id=pad if tokenizer["eos_id"] is None else tokenizer["eos_id"],
            vocab_size=tokenizer["vocab_size"],
            labelled=task != "pretrain",
            ids_dtype=config.ids_dtype,
            rows_per_unit=2 if task == "dpo" else 1,
            format=config.format,
        )
        for seq_len in config.row_lengths
    ]
    return [PackedWriter(prefix.with_name(f"{prefix.name}-{h.seq_len}") if several else prefix, h) for h in headers]


def _cutter(config: PackConfig, task: Task) -> "Cutter":
    from datakit.pack.fit import Cutter

    overflow: Literal["split_turns", "split", "truncate", "drop", "stream"]
    if task == "dpo":  # a pair can be truncated or dropped, but not split
        overflow = "drop" if config.overflow == "drop" else "truncate"
    elif config.packing == "wrap" or (config.format == "megatron" and config.overflow == "auto"):
        overflow = "stream"
    elif task == "pretrain" and config.overflow == "auto":
        overflow = "truncate" if config.align_bos else "split"
    else:
        overflow = "split_turns" if config.overflow == "auto" else config.overflow
    return Cutter(
        labelled=task != "pretrain",
        stride=config.row_lengths[-1] + 1,
        overflow=overflow,
        max_doc_tokens=config.max_doc_tokens,
        drop_long=config.drop_long,
    )


def _closed(writers: Sequence[PackedWriter]) -> dict[str, Any]:
    """Finish the sets of a split; returns their header for the manifest."""
    headers = [writer.close() | {"prefix": f"{FOLDER}/{writer.prefix.name}"} for writer in writers]
    if len(headers) == 1:
        return headers[0]
    return {"format": f"{headers[0]['format']} in {len(headers)} row lengths", "buckets": headers}


def _facts(packers: "Sequence[Packer]", config: PackConfig, repeated: int) -> dict[str, Any]:
    """Counts of packed rows, of all sets and by set, and the density that `wrap` would have instead of `best_fit`."""
    writers = [writer for packer in packers for writer in packer.writers]
    facts = _counts(writers)
    if repeated:
        facts["repeated_tokens"] = repeated
    if packers[0].packing == "best_fit" and not config.align_bos:
        stride = config.row_lengths[-1] + 1
        tokens = [sum(w.num_tokens for w in packer.writers) for packer in packers]
        rows = sum(-(-n // stride) for n in tokens)
        facts["density_wrap"] = round(sum(tokens) / (rows * stride), 4) if rows else 0.0
    if len(writers) > 1:
        facts["sets"] = {writer.prefix.name: _counts([writer]) for writer in writers}
    return facts


def _counts(writers: Sequence[PackedWriter]) -> dict[str, Any]:
    rows, tokens, labels = (sum(getattr(w, f"num_{n}") for w in writers) for n in ("rows", "tokens", "labels"))
    sources, header = np.concatenate([writer.sources for writer in writers]), writers[0].header
    slots = tokens if header.format == "megatron" else sum(w.num_rows * w.header.stride for w in writers)
    facts: dict[str, Any] = {
        "packed_rows": rows,
        "sequences": len(sources),
        "density": round(tokens / slots, 4) if slots else 0.0,
        "label_tokens": labels,
        "label_share": round(labels / tokens, 4) if tokens else 0.0,
    }
    if header.rows_per_unit == 2 and len(sources) < rows:  # judged answers, not pairs
        good = int((sources["row"] % 2 == 0).sum())
        facts |= {"good_answers": good, "bad_answers": len(sources) - good}
    return facts


def _alarm(cutter: "Cutter") -> str:
    """What a user must know of the tokens that rows are too short for."""
    advice = ", or --overflow split_turns, which keeps questions with their answers" * (cutter.overflow == "split")
    return (
        f"{cutter.beyond:,} of {cutter.tokens:,} tokens ({cutter.beyond / cutter.tokens:.1%}) are lost because they do "
        f"not fit into rows of {cutter.stride - 1}: give a longer --seq-len{advice}"
    )
