"""The pack stage: token rows -> packed rows. Cut sequences to length, fit them into rows, write windows of rows.

Functions import the kernels that they use: loading `PackConfig` for `--help` must not load numba.
"""

import json
import math
import os
import shutil
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import of_kind
from datakit.errors import ConfigError, InputError
from datakit.manifest import Count, check_shards, data_dir
from datakit.pack.cut import CutBatch, Limits, LongAnswer, TokenSequences, cut
from datakit.pack.fit import OTHER, Output, Packer, Packing
from datakit.pack.format import Format, Header, PackedWriter
from datakit.pack.mixture import COLUMNS, Mixture
from datakit.stage import Decision, Made, Parent, Stage, split

Int64 = npt.NDArray[np.int64]

MAX_LOSS = 0.05
"""A greater share of tokens that is lost because sequences are longer than a row is an alarm."""
FOLDER = "kept"
Task = Literal["pretrain", "sft", "dpo"]


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
    long_answer: LongAnswer = option(
        "split", "with split_turns, a question whose answer is longer than a row: split with its prompt, or dropped"
    )
    align_bos: bool = option(
        False, "start each row with the start of a sequence; tokens cut off at a row's end are dropped"
    )
    format: Format = option(
        "bin2d", "file format: bin2d (fixed rows), bin (no padding), parquet, megatron (whole documents of plain text)"
    )
    ids_dtype: Literal["int32", "uint16"] = option("int32", "uint16 takes half the bytes; for vocabularies up to 65536")
    validation: float = option(
        0.0, "share of the rows that go to a validation set; chosen by content hash, so the same rows in each run"
    )
    max_doc_tokens: int = option(0, "longer sequences are cut to this before packing; 0: no limit")
    drop_long: bool = option(False, "drop sequences above max_doc_tokens instead of cutting them")
    max_tokens: dict[str, int] = option(
        {}, "SOURCE=TOKENS: at most so many tokens of a source (a file's name, or a pattern as code/*), in whole rows"
    )
    weights: dict[str, float] = option(
        {}, "SOURCE=WEIGHT: shares of the tokens, for every source; the largest set in which no row is used twice"
    )
    window_tokens: int = option(16_777_216, "tokens that are fitted into rows together; limits memory")

    def __post_init__(self) -> None:
        for length in self.row_lengths or (0,):
            if not 1 <= length < 1 << 24:
                raise ConfigError(f"seq_len must be at least 1 and below 2**24, found {length}")
        if list(self.row_lengths) != sorted(set(self.row_lengths)):
            raise ConfigError(f"seq_len: several lengths must be in ascending order, found {list(self.row_lengths)}")
        if len(self.row_lengths) > 1 and (self.packing == "wrap" or self.format == "megatron"):
            raise ConfigError("seq_len: several lengths need packing best_fit or pad, and format bin2d, bin or parquet")
        if self.format == "parquet" and self.ids_dtype != "int32":
            raise ConfigError("format parquet needs ids_dtype int32; the file is compressed")
        if self.align_bos and self.overflow == "split":
            raise ConfigError("align_bos and overflow = split exclude each other: split starts rows inside a sequence")
        if not 0 <= self.validation < 1:
            raise ConfigError(f"validation must be at least 0 and below 1, found {self.validation}")
        if self.max_doc_tokens < 0:
            raise ConfigError(f"max_doc_tokens must be 0 (no limit) or more, found {self.max_doc_tokens}")
        if self.drop_long and not self.max_doc_tokens:
            raise ConfigError("drop_long drops sequences above max_doc_tokens: set max_doc_tokens, too")
        for name, values in (("max_tokens", self.max_tokens), ("weights", self.weights)):
            wrong = next((f"{source}={value}" for source, value in values.items() if not 0 < value < math.inf), None)
            if wrong:
                raise ConfigError(
                    f"{name} must be above 0 for each source, found {wrong}; a source is left out at ingest"
                )
        if self.window_tokens < 1:
            raise ConfigError(f"window_tokens must be at least 1, found {self.window_tokens}")

    @property
    def row_lengths(self) -> tuple[int, ...]:
        """`seq_len` of each row length, ascending."""
        return self.seq_len if isinstance(self.seq_len, tuple) else (self.seq_len,)


@dataclass(slots=True)
class PackResult:
    """Files, counts and dropped rows of a pack run."""

    files: list[str]
    """Relative to the output folder."""
    rows: Count
    """Rows of the dataset (not packed rows)."""
    tokens: Count
    sets: dict[str, dict[str, Any]]
    """Headers with prefixes: `packed`, and `validation` if there is one. Several row lengths make a list `buckets`."""
    facts: dict[str, Any]
    dropped: list[pa.RecordBatch]
    """The dropped rows, with `stage`, `reason` and `detail`."""
    alarms: list[str]

    @property
    def header(self) -> dict[str, Any]:
        """The header of the training set."""
        return self.sets["packed"]


@dataclass(slots=True)
class _Work:
    """The state of a pack run."""

    limits: Limits
    labelled: bool
    packers: dict[str, Packer]
    """By split: `train`, and `validation` if the config asks for one."""
    lost: Counter[str]
    """Dropped tokens by reason."""
    gone: Counter[str] = field(default_factory=Counter)
    """Dropped rows by reason."""
    dropped: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    tokens: int = 0
    repeated: int = 0
    """Tokens in further sequences of their row; they are no part of the ledger's balance."""
    beyond: int = 0
    """Tokens that are lost because rows are too short."""
    lengths: Counter[int] = field(default_factory=Counter)
    """How many sequences have so many tokens."""

    def outputs(self) -> Iterator[Output]:
        """The outputs of all packers."""
        return chain.from_iterable(p.outputs for p in self.packers.values())


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
        facts = source.manifest.facts["tokenizer"]
        mixture = self._mixture(source)
        packed = self.run(mixture.taken(rows), folder, facts)
        copied = []
        for shard in source.manifest.of_role("kept"):
            path = PurePosixPath(shard.path)
            if path.parent.name == "tokenizer":
                check_shards(data_dir(source.path, source.manifest), [shard])
                target = f"{FOLDER}/tokenizer/{path.name}"
                (folder / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(data_dir(source.path, source.manifest) / shard.path, folder / target)
                copied.append(target)
        alarms = [*mixture.alarms(), *packed.alarms]
        return Made(
            files=(*packed.files, *sorted(copied)),
            rows=_with_dropped(packed.rows, mixture.left_out("rows")),
            tokens=_with_dropped(packed.tokens, mixture.left_out("tokens")),
            dropped=chain(packed.dropped, self._left_out(source, mixture)),
            facts={
                "tokenizer": facts | {"files": sorted(copied)},
                **packed.sets,
                "packing": packed.facts,
                **({"mixture": mixture.facts()} if mixture.shares else {}),
                **({"alarms": alarms} if alarms else {}),
            },
        )

    def _mixture(self, source: Parent) -> Mixture:
        """Which rows are taken, where the config has limits or weights for sources; else all are."""
        if not self.config.max_tokens and not self.config.weights:
            return Mixture({})
        columns = [c for c in COLUMNS if c in of_kind(source.manifest.kind).names]
        return Mixture.of(source.rows(columns), self.config.max_tokens, self.config.weights)

    def _left_out(self, source: Parent, mixture: Mixture) -> Iterator[pa.RecordBatch]:
        """The rows that the mixture leaves out, read once more: there may be too many of them for the memory."""
        for batch in source.rows() if mixture.shares else ():
            left_out = split(batch, mixture.decide(batch), self.name)[1]
            if left_out.num_rows:
                yield left_out

    def run(self, batches: Iterable[pa.RecordBatch], out: Path, tokenizer_facts: dict[str, Any]) -> PackResult:
        """Write `out/kept/train.*` (and `validation.*`) from token rows in order.

        `tokenizer_facts` has `vocab_size`, `pad_id` and `eos_id`. The first batch with rows decides the task: pretrain,
        sft or dpo.

        Raises:
            InputError: labelled rows follow a first batch of plain text, the format cannot store such rows, or
                `wrap` with `align_bos` would cut labels off.
        """
        source = (batch for batch in batches if batch.num_rows)
        first = next(source, None)
        task = _task(first)
        work = self._begin(out, task, tokenizer_facts)
        for batch, found in _cut_ahead(() if first is None else chain([first], source), work):
            self._add(batch, found, work)
        for packer in work.packers.values():
            packer.flush(final=True)
        return _result(out, work)

    def _begin(self, out: Path, task: Task, tokenizer: dict[str, Any]) -> _Work:
        config, lost = self.config, Counter[str]()
        if config.align_bos and config.packing == "wrap" and task != "pretrain":
            raise InputError("pack: wrap with align_bos would cut answers off; pack conversations with best_fit")
        headers = [_header(config, length, task, tokenizer) for length in config.row_lengths]
        packing = "pad" if config.format == "megatron" else config.packing  # Megatron's loader joins and cuts
        packers = {}
        for name in ("train", "validation")[: 1 + (config.validation > 0)]:
            outputs = []
            for header in headers:
                stem = name if len(headers) == 1 else f"{name}-{header.seq_len}"
                outputs.append(Output(stem, PackedWriter(out / FOLDER / stem, header)))
            packers[name] = Packer(packing, config.window_tokens, outputs, lost, config.align_bos)
        return _Work(_limits(config, task, headers[-1].stride), task != "pretrain", packers, lost)

    def _add(self, batch: pa.RecordBatch, found: CutBatch, work: _Work) -> None:
        told = (pa.array(values, pa.string()) for values in (found.reasons, found.details))
        _, gone = split(batch, Decision(*told), self.name)
        if gone.num_rows:
            work.dropped.append(gone)
        work.gone.update(reason for reason in found.reasons if reason is not None)
        work.lost.update(found.lost)
        work.rows += batch.num_rows
        work.tokens += found.into
        work.repeated += found.repeated
        work.beyond += found.beyond
        work.lengths.update(found.lengths)
        for name, chosen in self._splits(batch, found.sequences):
            work.packers[name].add(chosen)

    def _splits(self, batch: pa.RecordBatch, sequences: TokenSequences) -> Iterator[tuple[str, TokenSequences]]:
        """The sequences of each split, chosen by the content hash of their rows."""
        if not self.config.validation:
            yield "train", sequences
            return
        held_out = held_out_rows(batch.column("content_hash"), self.config.validation)
        of_validation = np.isin(sequences.row_key, batch.column("row_key").to_numpy()[held_out])
        yield "train", sequences.take(~of_validation)
        yield "validation", sequences.take(of_validation)


def _with_dropped(count: Count, more: dict[str, int]) -> Count:
    """A count with what was dropped before."""
    return replace(count, into=count.into + sum(more.values()), dropped=dict(sorted((count.dropped | more).items())))


def _cut_ahead(batches: Iterable[pa.RecordBatch], work: _Work) -> Iterator[tuple[pa.RecordBatch, CutBatch]]:
    """Each batch, and its sequences after cutting, in order. Some batches ahead are cut by as many threads as there are
    cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    waiting = deque[tuple[pa.RecordBatch, Future[CutBatch]]]()
    with ThreadPoolExecutor(cores) as pool:
        for batch in batches:
            if not work.labelled and batch.column("label_spans").null_count < batch.num_rows:
                raise InputError("pack: labelled rows follow plain text; pack conversations and plain text separately")
            waiting.append((batch, pool.submit(cut, batch, work.limits, work.labelled)))
            if len(waiting) > cores:
                ready, made = waiting.popleft()
                yield ready, made.result()
        for ready, made in waiting:
            yield ready, made.result()


def held_out_rows(content_hash: pa.Array, share: float) -> npt.NDArray[np.bool_]:
    """The rows for the validation set, bool (rows,): content hash / 2**64 < share; hashes are strings of 16 hex digits.

    Rows of equal content go to the same set, and the set of a row does not depend on other rows.
    """
    limit = f"{int(share * (1 << 64)):016x}"  # strings of 16 hex digits have the order of their numbers
    below: npt.NDArray[np.bool_] = pc.less(content_hash, pa.scalar(limit)).to_numpy(zero_copy_only=False)
    return below


def _task(first: pa.RecordBatch | None) -> Task:
    """The training task, from the first batch with rows."""
    if first is not None and "rejected_ids" in first.schema.names:
        return "dpo"
    return "sft" if first is not None and first.column("label_spans").null_count < first.num_rows else "pretrain"


def _header(config: PackConfig, seq_len: int, task: Task, tokenizer: dict[str, Any]) -> Header:
    pad = tokenizer["pad_id"]
    eos = tokenizer["eos_id"]
    return Header(
        task=task,
        seq_len=seq_len,
        pad_id=0 if pad is None else pad,
        eos_id=(0 if pad is None else pad) if eos is None else eos,
        vocab_size=tokenizer["vocab_size"],
        labelled=task != "pretrain",
        ids_dtype=config.ids_dtype,
        rows_per_unit=2 if task == "dpo" else 1,
        format=config.format,
    )


def _limits(config: PackConfig, task: Task, stride: int) -> Limits:
    overflow: Literal["split_turns", "split", "truncate", "drop", "stream"]
    if task == "dpo":  # a pair can be truncated or dropped, but not split
        overflow = "drop" if config.overflow == "drop" else "truncate"
    elif config.packing == "wrap" or (config.format == "megatron" and config.overflow == "auto"):
        overflow = "stream"
    elif config.overflow == "auto":
        text: Literal["split", "truncate"] = "truncate" if config.align_bos else "split"
        overflow = "split_turns" if task == "sft" else text
    elif config.overflow == "split_turns" and task == "pretrain":
        overflow = "split"
    else:
        overflow = config.overflow
    return Limits(
        stride=stride,
        overflow=overflow,
        max_doc_tokens=config.max_doc_tokens,
        drop_long=config.drop_long,
        sides=2 if task == "dpo" else 1,
        long_answer=config.long_answer,
    )


def _result(out: Path, work: _Work) -> PackResult:
    for output in work.outputs():
        output.writer.close()
    lost = dict(sorted((+work.lost).items()))
    outputs = list(work.outputs())
    kept = sum(o.tokens for o in outputs) - work.repeated
    padding = sum(o.packed_rows * o.stride - o.tokens for o in outputs if o.writer.padded)
    facts = _counts(outputs)
    if work.repeated:
        facts["repeated_tokens"] = work.repeated
    if work.packers["train"].packing in OTHER and not work.packers["train"].align_bos:  # each loses other tokens there
        other = sum(p.other_rows(sum(o.tokens for o in p.outputs)) for p in work.packers.values())
        name, stride = OTHER[work.packers["train"].packing], outputs[-1].stride
        facts[f"density_{name}"] = round(sum(o.tokens for o in outputs) / (other * stride), 4) if other else 0.0
    if len(outputs) > 1:
        facts["sets"] = {o.name: _counts([o]) for o in outputs}
    return PackResult(
        files=sorted(f"{FOLDER}/{f.name}" for o in outputs for f in (out / FOLDER).glob(f"{o.name}.*")),
        rows=Count(into=work.rows, kept=work.rows - work.gone.total(), dropped=dict(sorted(work.gone.items()))),
        tokens=Count(into=work.tokens, kept=kept, dropped=lost, padding=padding),
        sets={_role(name): _described(out, packer.outputs) for name, packer in work.packers.items()},
        facts=facts,
        dropped=work.dropped,
        alarms=list(_alarms(work)),
    )


def _alarms(work: _Work) -> Iterator[str]:
    """What a user must know of the tokens that rows are too short for."""
    if work.beyond > MAX_LOSS * work.tokens:
        enough = [seq_len_for(work.lengths, share) for share in (0.95, 0.99)]
        advice = (
            "; --overflow split_turns keeps questions with their answers" if work.limits.overflow == "split" else ""
        )
        yield (
            f"{work.beyond:,} of {work.tokens:,} tokens ({work.beyond / work.tokens:.1%}) are lost because they do not "
            f"fit into rows of {work.limits.stride - 1}; with --seq-len {enough[0]} 95% of the tokens are in sequences "
            f"that fit whole, with --seq-len {enough[1]} 99%{advice}"
        )


def seq_len_for(lengths: Counter[int], share: float) -> int:
    """The least `seq_len`, a multiple of 64, with which this share of all tokens is in sequences that fit whole.

    `lengths` counts sequences by their tokens.
    """
    total, reached, needed = sum(length * count for length, count in lengths.items()), 0, 1
    for needed in sorted(lengths):
        reached += needed * lengths[needed]
        if reached >= share * total:
            break
    return max(-(-(needed - 1) // 64), 1) * 64


def _role(name: str) -> str:
    return "packed" if name == "train" else name


def _described(out: Path, outputs: Sequence[Output]) -> dict[str, Any]:
    """The header of a split, for the manifest."""
    headers = []
    for output in outputs:
        meta = json.loads((out / FOLDER / f"{output.name}.meta.json").read_text(encoding="utf-8"))
        headers.append(meta | {"prefix": f"{FOLDER}/{output.name}"})
    if len(headers) == 1:
        found: dict[str, Any] = headers[0]
        return found
    return {"format": f"{headers[0]['format']} in {len(headers)} row lengths", "buckets": headers}


def _counts(outputs: list[Output]) -> dict[str, Any]:
    rows, sequences, tokens, labels = (
        sum(getattr(o, n) for o in outputs) for n in ("packed_rows", "sequences", "tokens", "labels")
    )
    chosen = sum(o.chosen for o in outputs)
    alone = outputs[0].writer.header.rows_per_unit == 2 and sequences < rows
    slots = sum(o.tokens if o.writer.header.format == "megatron" else o.packed_rows * o.stride for o in outputs)
    return {
        "packed_rows": rows,
        "sequences": sequences,
        "density": round(tokens / slots, 4) if slots else 0.0,
        "label_tokens": labels,
        "label_share": round(labels / tokens, 4) if tokens else 0.0,
        **({"good_answers": chosen, "bad_answers": sequences - chosen} if alone else {}),
    }
