"""The pack stage: token rows -> packed sets, window by window.

A window holds a bounded number of tokens; sequences are fitted into rows within it, so memory does not grow with the
dataset, and windows are cut by rows of data, so the result does not depend on how batches come.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.errors import ConfigError, InputError
from datakit.manifest import Count, data_dir
from datakit.pack.format import Format, Header
from datakit.pack.writers import open_writer
from datakit.stage import Decision, Made, Parent, Stage, split

if TYPE_CHECKING:  # it loads kernels, which the config must not
    from datakit.pack.fit import Limits, Output, Packer, Sequences

FOLDER = "kept"
Task = Literal["pretrain", "sft", "dpo"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PackConfig:
    """Settings of the pack stage."""

    seq_len: int | tuple[int, ...] = option(
        1024, "targets in a row; a row holds one token more. Several lengths, as 256,512,1024, make a set each"
    )
    packing: Literal["best_fit", "concat", "pad"] = option(
        "best_fit", "best_fit: whole sequences share rows; concat: joined and cut; pad: one sequence a row"
    )
    overflow: Literal["auto", "split", "truncate", "drop"] = option(
        "auto", "sequences longer than a row; auto: split plain text, truncate conversations and preference pairs"
    )
    align_bos: bool = option(
        False, "every row begins where a sequence does; what is cut off goes, instead of beginning another row"
    )
    format: Format = option(
        "bin2d", "file format: bin2d (fixed rows), bin (no padding), parquet, megatron (whole documents of plain text)"
    )
    ids_dtype: Literal["int32", "uint16"] = option("int32", "uint16 halves the bytes where the vocabulary allows")
    validation: float = option(
        0.0, "share of the rows that go to a validation set; chosen by content, so always the same rows"
    )
    max_doc_tokens: int = option(0, "longer sequences are cut to this before packing; 0: no limit")
    drop_long: bool = option(False, "drop sequences above max_doc_tokens instead of cutting them")
    window_tokens: int = option(16_777_216, "tokens that are fitted together; bounds memory")

    def __post_init__(self) -> None:
        for length in self.row_lengths or (0,):
            if not 1 <= length < 1 << 24:
                raise ConfigError(f"seq_len must be at least 1 and below 2**24, found {length}")
        if list(self.row_lengths) != sorted(set(self.row_lengths)):
            raise ConfigError(f"seq_len: several lengths must ascend, found {list(self.row_lengths)}")
        if len(self.row_lengths) > 1 and (self.packing == "concat" or self.format == "megatron"):
            raise ConfigError("seq_len: several lengths make sense for best_fit and pad, in bin2d, bin or parquet")
        if self.format == "parquet" and self.ids_dtype != "int32":
            raise ConfigError("format parquet holds int32 ids; it compresses them")
        if self.align_bos and self.overflow == "split":
            raise ConfigError("align_bos lets no row begin inside a sequence, which overflow = split does")
        if not 0 <= self.validation < 1:
            raise ConfigError(f"validation must be at least 0 and below 1, found {self.validation}")
        if self.max_doc_tokens < 0:
            raise ConfigError(f"max_doc_tokens must be 0 (no limit) or more, found {self.max_doc_tokens}")
        if self.drop_long and not self.max_doc_tokens:
            raise ConfigError("drop_long drops sequences above max_doc_tokens: set that too")
        if self.window_tokens < 1:
            raise ConfigError(f"window_tokens must be at least 1, found {self.window_tokens}")

    @property
    def row_lengths(self) -> tuple[int, ...]:
        """`seq_len` of each bucket, ascending."""
        return self.seq_len if isinstance(self.seq_len, tuple) else (self.seq_len,)


@dataclass(slots=True)
class PackResult:
    """Files, counts and dropped rows of a pack run."""

    files: list[str]
    """Relative to the output folder."""
    rows: Count
    """Rows of the dataset, not of the packed sets."""
    tokens: Count
    sets: dict[str, dict[str, Any]]
    """Headers with their prefixes: `packed`, and `validation` where there is one; of several row lengths `buckets`."""
    facts: dict[str, Any]
    dropped: list[pa.RecordBatch]
    """The dropped rows, with `stage`, `reason` and `detail`."""

    @property
    def header(self) -> dict[str, Any]:
        """The header of the training set."""
        return self.sets["packed"]


@dataclass(slots=True)
class _Work:
    """The state of a pack run."""

    limits: "Limits"
    labelled: bool
    packers: "dict[str, Packer]"
    """By split: `train`, and `validation` where one is asked for."""
    lost: Counter[str]
    """Tokens by reason."""
    gone: Counter[str] = field(default_factory=Counter)
    """Rows by reason."""
    dropped: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    tokens: int = 0

    def outputs(self) -> "Iterator[Output]":
        """The outputs of all packers."""
        return chain.from_iterable(p.outputs for p in self.packers.values())


@dataclass(frozen=True, slots=True)
class Pack(Stage):
    """Packs the rows of a tokenized set."""

    name: ClassVar[str] = "pack"
    Config: ClassVar[type] = PackConfig
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "all"
    takes_tokens: ClassVar[bool] = True
    directly_after: ClassVar[str] = "tokenize"
    input_flags: ClassVar[tuple[str, ...]] = ("tokenizer", "chat_template")
    help: ClassVar[str] = "Rows have seq_len + 1 tokens. Raw files are tokenized first."

    config: PackConfig

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Write the packed sets and a copy of the tokenizer."""
        source = parents[0]
        facts = source.manifest.facts["tokenizer"]
        packed = self.run(rows, folder, facts)
        copied = []
        for shard in source.manifest.of_role("kept"):
            path = PurePosixPath(shard.path)
            if path.parent.name == "tokenizer":
                target = f"{FOLDER}/tokenizer/{path.name}"
                (folder / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(data_dir(source.path, source.manifest) / shard.path, folder / target)
                copied.append(target)
        return Made(
            files=(*packed.files, *sorted(copied)),
            rows=packed.rows,
            tokens=packed.tokens,
            dropped=packed.dropped,
            facts={
                "tokenizer": facts | {"files": sorted(copied)},
                **packed.sets,
                "packing": packed.facts,
            },
        )

    def run(self, batches: Iterable[pa.RecordBatch], out: Path, tokenizer_facts: dict[str, Any]) -> PackResult:
        """Write `out/kept/train.*` (and `validation.*`) from token rows in order.

        `tokenizer_facts` gives `vocab_size`, `pad_id` and `eos_id`. The first batch decides what the set is for.

        Raises:
            InputError: labelled rows follow a first batch of plain text, the format cannot hold the rows, or
                `concat` with `align_bos` would cut labels off.
        """
        source = (batch for batch in batches if batch.num_rows)
        first = next(source, None)
        task = _task(first)
        work = self._begin(out, task, tokenizer_facts)
        for batch in () if first is None else chain([first], source):
            self._add(batch, work)
        for packer in work.packers.values():
            packer.flush(final=True)
        return _result(out, work)

    def _begin(self, out: Path, task: Task, tokenizer: dict[str, Any]) -> _Work:
        from datakit.pack.fit import Output, Packer

        config, lost = self.config, Counter[str]()
        if config.align_bos and config.packing == "concat" and task != "pretrain":
            raise InputError("pack: concat with align_bos would cut answers off; pack conversations with best_fit")
        headers = [_header(config, length, task, tokenizer) for length in config.row_lengths]
        packing = "pad" if config.format == "megatron" else config.packing  # Megatron's own loader joins and cuts
        packers = {}
        for name in ("train", "validation")[: 1 + (config.validation > 0)]:
            outputs = []
            for header in headers:
                stem = name if len(headers) == 1 else f"{name}-{header.seq_len}"
                outputs.append(Output(stem, open_writer(out / FOLDER / stem, header)))
            packers[name] = Packer(packing, config.window_tokens, outputs, lost, config.align_bos)
        return _Work(_limits(config, task, headers[-1].stride), task != "pretrain", packers, lost)

    def _add(self, batch: pa.RecordBatch, work: _Work) -> None:
        if not work.labelled and batch.column("label_spans").null_count < batch.num_rows:
            raise InputError("pack: labelled rows follow plain text; pack conversations and plain text separately")
        from datakit.pack.fit import cut

        found = cut(batch, work.limits, work.labelled)
        reasons = pa.array(found.reasons, pa.string())
        _, gone = split(batch, Decision(reasons, pa.array(found.details, pa.string())), self.name)
        if gone.num_rows:
            work.dropped.append(gone)
        work.gone.update(r for r in found.reasons if r is not None)
        work.lost.update(found.lost)
        work.rows += batch.num_rows
        work.tokens += found.into
        for name, sequences in self._splits(batch, found.sequences):
            work.packers[name].add(sequences)

    def _splits(self, batch: pa.RecordBatch, sequences: "Sequences") -> "Iterator[tuple[str, Sequences]]":
        """The sequences of each split, by their rows' content."""
        if not self.config.validation:
            yield "train", sequences
            return
        held_out = held_out_rows(batch.column("content_hash"), self.config.validation)
        of_validation = np.isin(sequences.row_key, batch.column("row_key").to_numpy()[held_out])
        yield "train", sequences.take(~of_validation)
        yield "validation", sequences.take(of_validation)


def held_out_rows(content_hash: pa.Array, share: float) -> npt.NDArray[np.bool_]:
    """Which rows are held out for validation: those whose content hash, as a fraction of its range, is below the share.

    Rows of equal content go to the same set, and a row's set does not depend on the other rows.
    """
    limit = f"{int(share * (1 << 64)):016x}"  # hex digits compare as the numbers that they are
    below: npt.NDArray[np.bool_] = pc.less(content_hash, pa.scalar(limit)).to_numpy(zero_copy_only=False)
    return below


def _task(first: pa.RecordBatch | None) -> Task:
    """The training task, from the first batch."""
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


def _limits(config: PackConfig, task: Task, stride: int) -> "Limits":
    from datakit.pack.fit import Limits

    overflow: Literal["split", "truncate", "drop", "stream"]
    if task == "dpo":  # a pair is one unit: it can be cut or dropped, never split
        overflow = "drop" if config.overflow == "drop" else "truncate"
    elif config.packing == "concat" or (config.format == "megatron" and config.overflow == "auto"):
        overflow = "stream"
    elif config.overflow == "auto":
        overflow = "split" if task == "pretrain" and not config.align_bos else "truncate"
    else:
        overflow = config.overflow
    return Limits(
        stride=stride,
        overflow=overflow,
        max_doc_tokens=config.max_doc_tokens,
        drop_long=config.drop_long,
        sides=2 if task == "dpo" else 1,
    )


def _result(out: Path, work: _Work) -> PackResult:
    for output in work.outputs():
        output.writer.close()
    lost = dict(sorted((+work.lost).items()))
    outputs = list(work.outputs())
    kept = sum(o.tokens for o in outputs)
    padding = sum(o.packed_rows * o.stride - o.tokens for o in outputs if o.writer.padded)
    facts = _counts(outputs)
    if len(outputs) > 1:
        facts["sets"] = {o.name: _counts([o]) for o in outputs}
    return PackResult(
        files=sorted(f"{FOLDER}/{f.name}" for o in outputs for f in (out / FOLDER).glob(f"{o.name}.*")),
        rows=Count(into=work.rows, kept=work.rows - work.gone.total(), dropped=dict(sorted(work.gone.items()))),
        tokens=Count(into=work.tokens, kept=kept, dropped=lost, padding=padding),
        sets={_role(name): _described(out, packer.outputs) for name, packer in work.packers.items()},
        facts=facts,
        dropped=work.dropped,
    )


def _role(name: str) -> str:
    return "packed" if name == "train" else name


def _described(out: Path, outputs: "Sequence[Output]") -> dict[str, Any]:
    """The header of a split, as its manifest holds it."""
    headers = []
    for output in outputs:
        meta = json.loads((out / FOLDER / f"{output.name}.meta.json").read_text(encoding="utf-8"))
        headers.append(meta | {"prefix": f"{FOLDER}/{output.name}"})
    if len(headers) == 1:
        found: dict[str, Any] = headers[0]
        return found
    return {"format": f"{headers[0]['format']} in {len(headers)} row lengths", "buckets": headers}


def _counts(outputs: "list[Output]") -> dict[str, Any]:
    rows, sequences, tokens, labels = (
        sum(getattr(o, n) for o in outputs) for n in ("packed_rows", "sequences", "tokens", "labels")
    )
    slots = sum(o.tokens if o.writer.header.format == "megatron" else o.packed_rows * o.stride for o in outputs)
    return {
        "packed_rows": rows,
        "sequences": sequences,
        "density": round(tokens / slots, 4) if slots else 0.0,
        "label_tokens": labels,
        "label_share": round(labels / tokens, 4) if tokens else 0.0,
    }
