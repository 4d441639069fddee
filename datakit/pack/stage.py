"""The pack stage: token rows -> packed rows. Cut sequences to length, fit them into rows, write windows of rows.

The rows are packed in parts, each by itself: `parts` cuts them, `make` packs one part into files of its own, `joined`
adds up. What concerns all rows is decided before: the task, and which rows a mixture takes.

Functions import `fit`, which has kernels: loading `PackConfig` for `--help` must not load numba.
"""

import math
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import at_least, option
from datakit.data import of_kind, read_rows, row_groups
from datakit.errors import ConfigError, InputError
from datakit.manifest import Count, Shard, check_file, check_shards, data_dir, digest_of_work, tables
from datakit.pack.format import Format, Header, Overflow, PackedWriter, Packing, Task
from datakit.pack.mixture import COLUMNS, Mixture, keyed, patterns_of
from datakit.stage import CompareUnits, Made, Parent, Pieces, Stage, split
from datakit.storage import make_folder, whole_file

MAX_LOSS = 0.05
"""A greater share of tokens that is lost because sequences are longer than a row is an alarm."""
FOLDER = "kept"
IDS_COLUMNS = ("input_ids", "rejected_ids")


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
    part_tokens: int = option(
        67_108_864, "tokens of the rows that are packed into the same files, a unit of work", advanced=True
    )

    def __post_init__(self) -> None:
        lengths = self.row_lengths
        if not lengths or list(lengths) != sorted(set(lengths)) or not 1 <= lengths[0] <= lengths[-1] < 1 << 24:
            raise ConfigError(f"seq_len: lengths are at least 1, below 2**24 and ascending, found {list(lengths)}")
        at_least(self, 0, "validation", "max_doc_tokens")
        at_least(self, 1, "window_tokens", "part_tokens")
        several, no_source = len(lengths) > 1, "must be above 0; leave a source out at ingest"
        wraps = self.packing == "wrap"
        for conflict, sentence in (
            (self.validation >= 1, f"validation must be below 1, found {self.validation}"),
            (min(self.max_tokens.values(), default=1) <= 0, f"max_tokens {no_source}"),
            (min(self.weights.values(), default=1) <= 0, f"weights {no_source}"),
            (self.part_tokens > 1 << 28, "part_tokens must be at most 2**28: a file stays below 2 GiB"),
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
    holds_gil = True
    guards_rows: ClassVar[bool] = True
    takes_tokens: ClassVar[bool] = True
    directly_after: ClassVar[str] = "tokenize"
    input_flags: ClassVar[tuple[str, ...]] = ("tokenizer", "chat_template", "template_var", "thinking", "train_on")
    help: ClassVar[str] = "Rows have seq_len + 1 tokens. Raw files are tokenized first."

    config: PackConfig
    task: Task = "pretrain"
    overflow: Overflow = "split"
    mixture: Mixture | None = None
    part: int = 0

    @property
    def max_loss(self) -> float:
        """Half of the rows; with limits or weights for sources what is left out is no loss."""
        return 1.0 if self.config.max_tokens or self.config.weights else 0.5

    def prepare(self, rows: Iterator[pa.RecordBatch]) -> Self:
        """The stage for the task that the first rows are for: pretrain, sft or dpo; and what it does with long ones.

        Raises:
            InputError: the settings are not for such rows, as `wrap` with `align_bos`, which would cut labels off.
        """
        first, config = next((batch for batch in rows if batch.num_rows), None), self.config
        task: Task = "pretrain"
        if first is not None and "rejected_ids" in first.schema.names:
            task = "dpo"
        elif first is not None and first.column("label_spans").null_count < first.num_rows:
            task = "sft"
        for refused, why in (
            (config.align_bos and config.packing == "wrap" and task != "pretrain",
             "wrap with align_bos would cut answers off; pack conversations with best_fit"),
            (task == "dpo" and config.overflow.startswith("split"),
             f"a preference pair is truncated or dropped, never split, found overflow {config.overflow}"),
            (task == "pretrain" and config.overflow == "split_turns", "plain text has no turns: use overflow split"),
        ):  # fmt: skip
            if refused and first is not None:
                raise InputError(f"pack: {why}")
        overflow: Overflow = "split_turns" if config.overflow == "auto" else config.overflow
        if task == "dpo":  # a pair can be truncated or dropped, but not split
            overflow = "drop" if config.overflow == "drop" else "truncate"
        elif config.packing == "wrap" or (config.format == "megatron" and config.overflow == "auto"):
            overflow = "stream"
        elif task == "pretrain" and config.overflow == "auto":
            overflow = "truncate" if config.align_bos else "split"
        return replace(self, task=task, overflow=overflow)

    def parts(self, parents: Sequence[Parent], work: CompareUnits) -> Sequence[tuple[Self, Pieces | None]]:
        """Consecutive row groups in parts of about as many tokens each, `part_tokens` at most where no row group has
        more; of those that a mixture takes.

        Where each sequence has a row of its own, padding counts, so that files stay small. Parts are even, since the
        slowest one decides how long they take side by side.
        """
        source, config, mixture = parents[0], self.config, self.mixture
        shards, folder = tables(source.manifest, "kept"), data_dir(source.path, source.manifest)
        with ThreadPoolExecutor(16) as pool:  # on an object store each footer is two requests
            sizes = list(pool.map(lambda shard: row_groups(folder, shard, IDS_COLUMNS), shards))
        room, fill = float(config.part_tokens), 0
        if config.format == "bin2d" and (config.packing == "pad" or self.task == "dpo"):
            fill = (config.row_lengths[-1] + 1) * (2 if self.task == "dpo" else 1)
        if config.max_tokens or config.weights:
            mixture = self._choose(source, work)
            tokens = sum(tokens for groups in sizes for _, tokens in groups)
            room *= tokens / max(tokens - mixture.tokens_left_out, 1)
        whole = sum(tokens + rows * fill for groups in sizes for rows, tokens in groups)
        even = max(whole / max(math.ceil(whole / room), 1), 1)
        found, full, before, last = [dict[Shard, list[int]]()], 0, 0, 0
        for shard, groups in zip(shards, sizes, strict=True):
            for number, (rows, tokens) in enumerate(groups):
                size = tokens + rows * fill
                place = int((before + size / 2) / even)  # of the row group's middle
                if full and (place != last or full + size > room):
                    found, full = [*found, {}], 0
                found[-1].setdefault(shard, []).append(number)
                full, before, last = full + size, before + size, place
        return [(replace(self, mixture=mixture, part=number), pieces) for number, pieces in enumerate(found)]

    def _choose(self, source: Parent, work: CompareUnits) -> Mixture:
        """The choice of rows of each source; each shard is read in a unit, and no row comes into this process."""
        folder, most, weights = data_dir(source.path, source.manifest), self.config.max_tokens, self.config.weights
        columns = [c for c in COLUMNS if c in of_kind(source.manifest.kind).names]
        choose = partial(_keys, work.data, folder, columns, patterns_of(most, weights))
        units = work.units("choose", choose, [*enumerate(tables(source.manifest, "kept"))])
        files = [file for unit in units for file in unit["files"]]
        for file in files:
            check_file(work.data, *file)
        names = {name for unit in units for name in unit["sources"]}
        return Mixture.of([work.data / path for path, *_ in files], names, most, weights)

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Write the packed sets of a part, and with the first one a copy of the tokenizer."""
        source = parents[0]
        tokenizer, origin = source.manifest.facts["tokenizer"], data_dir(source.path, source.manifest)
        if self.mixture is None:
            made = self.run(rows, folder, tokenizer)
        else:
            made = self._mixed(self.mixture, rows, folder, tokenizer, source)
        if self.part:
            return made
        kept = source.manifest.of_role("kept")
        copies = {
            f"{FOLDER}/tokenizer/{path.name}": s for s in kept if (path := Path(s.path)).parent.name == "tokenizer"
        }
        check_shards(origin, copies.values())
        (folder / FOLDER / "tokenizer").mkdir()
        for name, shard in copies.items():
            shutil.copyfile(origin / shard.path, folder / name)
        facts = made.facts | {"tokenizer": tokenizer | {"files": sorted(copies)}}
        return replace(made, files=(*made.files, *sorted(copies)), facts=facts)

    def _mixed(
        self, mixture: Mixture, rows: Iterator[pa.RecordBatch], folder: Path, tokenizer: dict[str, Any], source: Parent
    ) -> Made:
        """Pack the rows that a mixture chooses. The others are read once more: there may be too many for the memory."""
        gone = Counter[str](), Counter[str]()
        made = self.run(mixture.taken(rows, *gone), folder, tokenizer)
        rows_in, tokens_in = (
            replace(count, into=count.into + left_out.total(), dropped=count.dropped | left_out)
            for count, left_out in zip((made.rows, made.tokens or Count()), gone, strict=True)
        )
        others = (split(batch, mixture.decide(batch), self.name)[1] for batch in source.rows())
        dropped = chain(made.dropped, (batch for batch in others if batch.num_rows))
        return replace(made, rows=rows_in, tokens=tokens_in, dropped=dropped)

    def run(self, batches: Iterator[pa.RecordBatch], out: Path, tokenizer: dict[str, Any]) -> Made:
        """Write `out/kept/train-<part>.*` (and `validation-*`) from token rows in order; several row lengths make a set
        each, `train-<length>-<part>`.

        `tokenizer` has `vocab_size`, `pad_id` and `eos_id`. The facts are those of a part, for `joined`.

        Raises:
            InputError: there are labelled rows, and the first rows were plain text; or the format cannot store them.
        """
        from datakit.pack.fit import Cutter, Packer

        config, packers, writers = self.config, dict[str, Packer](), dict[str, PackedWriter]()
        cutter = Cutter(
            labelled=self.task != "pretrain",
            stride=config.row_lengths[-1] + 1,
            overflow=self.overflow,
            max_doc_tokens=config.max_doc_tokens,
            drop_long=config.drop_long,
        )
        packing = "pad" if config.format == "megatron" else config.packing  # Megatron's loader joins and cuts
        for name in ("train", "validation") if config.validation else ("train",):
            own = self._writers(out / FOLDER / name, tokenizer)
            packers[name] = Packer([*own.values()], packing, config.window_tokens, config.align_bos, cutter.lost)
            writers |= own
        num_rows, gone = 0, list[pa.RecordBatch]()
        # Rows of equal content go to the same set, which does not depend on other rows. Strings of 16 hex digits have
        # the order of their numbers.
        limit = f"{int(config.validation * (1 << 64)):016x}"
        for batch in (batch for batch in batches if batch.num_rows):
            if self.task == "pretrain" and batch.column("label_spans").null_count < batch.num_rows:
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

        reasons = Counter(reason for batch in gone for reason in batch.column("reason").to_pylist())
        sets = [(name, *_closed(writer)) for name, writer in writers.items()]
        tokens, slots = (sum(count[name] for *_, count in sets) for name in ("tokens", "slots"))
        return Made(
            files=tuple(sorted(f"{FOLDER}/{file.name}" for file in (out / FOLDER).iterdir())),
            rows=Count(into=num_rows, kept=num_rows - reasons.total(), dropped=dict(reasons)),
            tokens=Count(
                into=cutter.tokens,
                kept=tokens - cutter.repeated,
                dropped=dict(+cutter.lost),
                padding=slots - tokens if config.format == "bin2d" else 0,
            ),
            dropped=gone,
            facts={"tokenizer": tokenizer, "sets": sets, "cut": [cutter.tokens, cutter.repeated, cutter.beyond]},
        )

    def joined(self, facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The headers of all parts with their prefixes (`packed`, and `validation` if there is one), the shortest rows
        first; the counts (`packing`), in all and by set; `tokenizer`, `mixture` and `alarms`."""
        headers, counts = dict[str, list[Any]](), dict[str, Counter[str]]()
        for name, header, count in (one for parts in zip(*(f["sets"] for f in facts), strict=True) for one in parts):
            headers.setdefault("validation" if name.startswith("validation") else "packed", []).append(header)
            for of in ("", name):  # all sets together, and each
                counts.setdefault(of, Counter()).update(count)
        sets = {name: _told(count) for name, count in counts.items()}
        (tokens, repeated, beyond), config = map(sum, zip(*(f["cut"] for f in facts), strict=True)), self.config
        packing = sets.pop("") | ({"repeated_tokens": repeated} if repeated else {})
        if config.packing == "best_fit" and self.task != "dpo" and config.format != "megatron" and not config.align_bos:
            stride = config.row_lengths[-1] + 1  # the density that `wrap` would have
            split = [sum(counts[n]["tokens"] for n in sets if n.startswith(s)) for s in ("train", "validation")]
            rows = sum(-(-n // stride) for n in split)
            packing["density_wrap"] = round(sum(split) / (rows * stride), 4) if rows else 0.0
        if len(sets) > 1:
            packing["sets"] = sets
        found = headers | {"packing": packing, "tokenizer": facts[0]["tokenizer"]}
        alarms = self.mixture.alarms() if self.mixture else []
        if self.mixture and self.mixture.shares:
            found["mixture"] = self.mixture.facts()
        if beyond > MAX_LOSS * tokens:
            split_turns = ", or --overflow split_turns, which keeps questions with their answers"
            advice = f"give a longer --seq-len{split_turns * (config.overflow == 'split')}"
            lost = f"{beyond:,} of {tokens:,} tokens ({beyond / tokens:.1%}) are lost"
            alarms.append(f"{lost} because they do not fit into rows of {config.row_lengths[-1]}: {advice}")
        return found | ({"alarms": alarms} if alarms else {})

    def _writers(self, prefix: Path, tokenizer: dict[str, Any]) -> dict[str, PackedWriter]:
        """A writer for each row length, by the name of its set: that of the prefix, or for several lengths `train-256`.

        A tokenizer without a token for padding pads with id 0; one without an end token ends with that for padding.
        """
        config, pad, several = self.config, tokenizer["pad_id"] or 0, len(self.config.row_lengths) > 1
        headers = [
            Header(
                task=self.task,
                seq_len=seq_len,
                pad_id=pad,
                eos_id=pad if tokenizer["eos_id"] is None else tokenizer["eos_id"],
                vocab_size=tokenizer["vocab_size"],
                labelled=self.task != "pretrain",
                ids_dtype=config.ids_dtype,
                rows_per_unit=2 if self.task == "dpo" else 1,
                format=config.format,
            )
            for seq_len in config.row_lengths
        ]
        sets = {f"{prefix.name}-{h.seq_len}" if several else prefix.name: h for h in headers}
        return {name: PackedWriter(prefix.with_name(f"{name}-{self.part:05d}"), h) for name, h in sets.items()}


def _keys(
    data: Path, folder: Path, columns: list[str], patterns: list[str], number: int, shard: Shard
) -> dict[str, Any]:
    """Write what a mixture is chosen by, of the rows of a shard, into the work folder of `data`; returns a record."""
    rows, sources = keyed(read_rows(folder, shard, columns), patterns)
    path = f".work/choose/{number:05d}.bin"
    make_folder((data / path).parent)
    with whole_file(data / path, flush=False) as temporary:
        temporary.write_bytes(rows.tobytes())
    about = [path, rows.nbytes, digest_of_work(data / path, data)]
    return {"files": [about], "sources": sorted(sources), "rows": shard.rows}


def _closed(writer: PackedWriter) -> tuple[dict[str, Any], dict[str, int]]:
    """Finish the files of a set; returns its header for the manifest, and counts."""
    header = writer.close() | {"prefix": f"{FOLDER}/{writer.prefix.name}"}
    counts = {
        "packed_rows": writer.num_rows,
        "sequences": writer.num_sequences,
        "tokens": writer.num_tokens,
        "slots": writer.num_tokens if header["format"] == "megatron" else writer.num_rows * (header["seq_len"] + 1),
        "label_tokens": writer.num_labels,
        "good_answers": writer.num_chosen,
    }
    return header, counts


def _told(count: Counter[str]) -> dict[str, Any]:
    """What the manifest says of packed rows that were counted."""
    rows, sequences, tokens, slots = (count[name] for name in ("packed_rows", "sequences", "tokens", "slots"))
    facts: dict[str, Any] = {
        "packed_rows": rows,
        "sequences": sequences,
        "density": round(tokens / slots, 4) if slots else 0.0,
        "label_tokens": count["label_tokens"],
        "label_share": round(count["label_tokens"] / tokens, 4) if tokens else 0.0,
    }
    if sequences < rows:  # judged answers, not pairs: a row of a missing side has no sequence
        facts |= {"good_answers": count["good_answers"], "bad_answers": sequences - count["good_answers"]}
    return facts
