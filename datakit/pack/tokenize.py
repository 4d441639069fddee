"""Rows of text, conversations or preference pairs -> token ids with the spans the model must produce.

Documents end with the tokenizer's `eos_token`, which is also what generation stops at: one stop token for a model
that is pretrained first and fine-tuned later, also where a chat template ends turns with it (minimind, Qwen).
Text never parses into added tokens; see `datakit.pack.chat`. Plain text and rows that bring ids have no or their own
spans; a conversation's are the assistant's turns.
"""

import hashlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import SPANS, string_buffers, tokens
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.manifest import data_dir
from datakit.pack.chat import RESERVED, ChatTokenizer
from datakit.pack.encode import (
    READ_BYTES,
    Choice,
    Encoder,
    EncodingCounts,
    Engine,
    Int32,
    Int64,
    Sample,
    choose_engine,
    surround,
    text_list,
)
from datakit.pack.labels import Labelled, RowError, Spans, label, labelled_bytes, labelled_ids, plain_ids
from datakit.stage import Decision, Parent, Stage


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizeConfig:
    """How rows become tokens."""

    tokenizer: str = option("", "a tokenizer.json, or a folder with one and its tokenizer_config.json", path=True)
    chat_template: str = option(
        "", "chatml, llama3, plain or a template file; empty: the tokenizer's own, else chatml", path=True
    )
    train_on: Literal["all", "last"] = option("all", "which assistant turns are labelled")
    add_bos: bool = option(False, "begin each document with the tokenizer's bos_token")
    add_eos: bool = option(True, "end each document with the tokenizer's eos_token")
    min_label_tokens: int = option(1, "drop conversations with fewer tokens to learn from")

    def __post_init__(self) -> None:
        if self.min_label_tokens < 0:
            raise ConfigError(f"min_label_tokens must be 0 or more, found {self.min_label_tokens}")


@dataclass(slots=True)
class _Tokens:
    """The tokens of one sequence a row, collected row by row; None where the row is dropped."""

    ids: list[npt.NDArray[np.int32] | None]
    spans: list[Spans | None]

    @classmethod
    def empty(cls, rows: int) -> "_Tokens":
        return cls([None] * rows, [None] * rows)

    def columns(self, ids: str, spans: str) -> dict[str, pa.Array]:
        """Arrow columns of these names; a dropped row has no ids."""
        lengths = [0 if a is None else len(a) for a in self.ids]
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        flat = np.concatenate([np.empty(0, np.int32), *(a for a in self.ids if a is not None)])
        made = [None if s is None else [{"start": a, "end": b} for a, b in s] for s in self.spans]
        return {ids: pa.ListArray.from_arrays(offsets, pa.array(flat, pa.int32())), spans: pa.array(made, SPANS)}


@lru_cache(maxsize=1)
def _encoder_of(tokenizer: str, chat_template: str, _: tuple[tuple[str, int, int], ...]) -> Encoder:
    """The encoder, once for all stages of a process: a large tokenizer takes seconds to load."""
    return Encoder(ChatTokenizer.load(Path(tokenizer), chat_template))


def _stamps(tokenizer: str, chat_template: str) -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of every file that a tokenizer is loaded from."""
    folder = Path(tokenizer) if Path(tokenizer).is_dir() else Path(tokenizer).parent
    files = [*(folder.iterdir() if folder.is_dir() else ()), Path(tokenizer), Path(chat_template)]
    found = ((file, file.stat()) for file in files if file.is_file())
    return tuple(sorted((str(file), s.st_mtime_ns, s.st_size) for file, s in found))


def tokenizer_folder(parent: Parent) -> Path:
    """The folder of the tokenizer that a manifest's result carries.

    Raises:
        UsageError: it carries none.
    """
    files = [s.path for s in parent.manifest.of_role("kept") if s.path.endswith("tokenizer/tokenizer.json")]
    if not files:
        raise UsageError(
            f"{parent.path}: the result of {parent.manifest.stage} carries no tokenizer; tokenize it first"
        )
    return (data_dir(parent.path, parent.manifest) / files[0]).parent


@dataclass(frozen=True)
class Tokenize(Stage):
    """The stage: any row kind in, token rows out."""

    name: ClassVar[str] = "tokenize"
    Config: ClassVar[type] = TokenizeConfig
    holds_gil: ClassVar[bool] = True
    takes_tokens: ClassVar[bool] = True

    config: TokenizeConfig
    kind: str = ""
    """Kind of the rows, where it is known."""
    choice: Choice = Choice()
    """Which library encodes; `tokenizers`, unless the identity gate found that fastokens gives the same ids."""

    _loaded: "_Loaded" = field(default_factory=lambda: _Loaded(), repr=False, compare=False)

    def __reduce__(self) -> tuple[type["Tokenize"], tuple[TokenizeConfig, str, Choice]]:
        return type(self), (self.config, self.kind, self.choice)

    @property
    def tokenizer(self) -> ChatTokenizer:
        """The loaded tokenizer.

        Raises:
            ModelError: it is missing or cannot be used.
        """
        return self._encoder.tokenizer

    @property
    def _encoder(self) -> Encoder:
        if self._loaded.encoder is None:
            if not self.config.tokenizer:
                raise ModelError("tokenize: no tokenizer; give --tokenizer FILE_OR_FOLDER or set it in the recipe")
            given = self.config.tokenizer, self.config.chat_template
            self._loaded.encoder = _encoder_of(*given, _stamps(*given))
        return self._loaded.encoder

    def use_processes(self) -> bool:
        """Not for text that fastokens encodes, in threads of its own; templates and `tokenizers` need the lock."""
        return self.kind != "document" or self.choice.engine != "fastokens"

    def output_kind(self, kind: str) -> str:
        """Always tokens."""
        return "tokens"

    def check(self) -> None:
        """Load the tokenizer, where the config names one; else the recipe trains one first."""
        if self.config.tokenizer:
            self.resources()
            self.open()

    def use_earlier(self, made: Mapping[str, Parent]) -> tuple[Self, tuple[Parent, ...]]:
        """With the tokenizer that the recipe trained, unless the config names one."""
        if self.config.tokenizer or "tokenizer" not in made:
            return self, ()
        trained = made["tokenizer"]
        config = replace(self.config, tokenizer=str(tokenizer_folder(trained)))
        return replace(self, config=config, _loaded=_Loaded()), (trained,)

    def resources(self) -> dict[str, Any]:
        """Tokenizer and template by hash, vocabulary size and special ids, and the settings that travel along."""
        settings = self.tokenizer.files()["tokenizer_config.json"]
        return {"tokenizer": self.tokenizer.facts() | {"settings_sha256": hashlib.sha256(settings).hexdigest()}}

    def facts(self) -> dict[str, Any]:
        """What the manifest says about the tokenizer."""
        return {
            "tokenizer": self.tokenizer.facts() | {"files": [f"kept/tokenizer/{n}" for n in self.tokenizer.files()]}
        }

    def files(self) -> dict[str, bytes]:
        """The tokenizer's files, which travel with the result."""
        return {f"kept/tokenizer/{name}": content for name, content in self.tokenizer.files().items()}

    def kept_columns(self, names: list[str]) -> list[str]:
        """The columns of kept rows: the tokens schema."""
        return list(tokens(preference="rejected_ids" in names).names)

    def measured(self) -> dict[str, int]:
        """Encoding counters of this process since the last call: rows by library."""
        return asdict(self._loaded.counted())

    def summary(self, counts: dict[str, int]) -> str:
        """The counters as a line for people."""
        fast, library = counts.get("fast_rows", 0), counts.get("library_rows", 0)
        said = f"{fast:,} rows encoded by fastokens, {library:,} by tokenizers"
        return f"{said} ({self._loaded.reason})" if self._loaded.reason else said

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of that kind."""
        return replace(self, kind=kind)

    def prepare(self, rows: Callable[[int], Iterator[pa.RecordBatch]], folder: Path) -> Self:
        """The identity gate: choose the library that encodes all rows, once for the run; kept in `folder`."""
        path = folder / "encoder.json"
        choice = Choice.load(path)
        if choice is None:
            sample = Sample()
            for batch in rows(READ_BYTES):
                if "input_ids" in batch.schema.names:
                    return self
                keys = batch.column("row_key").to_numpy(zero_copy_only=False)
                sample.add(keys, batch.nbytes, partial(self._texts_of, batch))
            choice = choose_engine(self._encoder, sample)
            choice.save(path)
        self._loaded.reason = choice.reason
        return replace(self, choice=choice)

    def _texts_of(self, batch: pa.RecordBatch, which: list[int]) -> list[list[str]]:
        """What is encoded of some rows of a batch."""
        batch = batch.take(pa.array(which, pa.int64()))
        if "text" in batch.schema.names:
            return [[text] for text in text_list(batch.column("text"))]
        work = _Conversations(self._encoder, self.choice.engine, self.config, batch)
        sides = work.sides()
        return [[row.text for side in sides if (row := work.rendered(i, *side(i)))] for i in range(batch.num_rows)]

    def open(self) -> None:
        """Load the tokenizer; refuse one that lacks the tokens it is asked for."""
        if multiprocessing.parent_process() is not None:  # the processes are the parallelism
            os.environ["TOKENIZERS_PARALLELISM"] = "false"
            os.environ.setdefault("RAYON_NUM_THREADS", "1")
        if self.config.add_eos and self.tokenizer.eos_id is None:
            raise ModelError(
                f"{self.config.tokenizer}: no eos_token in tokenizer_config.json; documents need one to end"
            )
        if self.config.add_bos and self.tokenizer.bos_id is None:
            raise ModelError(f"{self.config.tokenizer}: add_bos is set and tokenizer_config.json has no bos_token")

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Tokenize the rows of a batch."""
        self.open()
        names = batch.schema.names
        if "input_ids" in names:
            return CheckIds(self.tokenizer.vocab_size, self.config.min_label_tokens).decide(batch)
        if "text" in names:
            return self._documents(batch)
        self._check_template()
        work = _Conversations(self._encoder, self.choice.engine, self.config, batch)
        decision = work.pairs() if "prompt" in names else work.rows()
        self._loaded.count(work.counts)
        return decision

    def _check_template(self) -> None:
        """Refuse a template under which not even a plain exchange shows what the assistant says."""
        if self._loaded.template_is_checked:
            return
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
        try:
            label(self.tokenizer, turns)
        except RowError as e:
            if e.reason == "labels_uncertain":
                raise ModelError(
                    f"{self.tokenizer.where}: this chat template cannot be used to train: {e.detail}"
                ) from None
        self._loaded.template_is_checked = True

    def _documents(self, batch: pa.RecordBatch) -> Decision:
        bos, eos = self.tokenizer.bos_id, self.tokenizer.eos_id
        before = [bos] if self.config.add_bos and bos is not None else []
        after = [eos] if self.config.add_eos and eos is not None else []
        ids, reasons, details = encode_documents(self._encoder, self.choice.engine, batch.column("text"), before, after)
        fast = batch.num_rows if self.choice.engine == "fastokens" else 0
        self._loaded.count(EncodingCounts(fast_rows=fast, library_rows=batch.num_rows - fast))
        columns = {"input_ids": ids, "label_spans": pa.nulls(batch.num_rows, SPANS)}
        return _decision(reasons, details, columns, "text")


@dataclass(slots=True)
class _Loaded:
    """What a stage loads and counts in one process; copies of the stage share it."""

    encoder: Encoder | None = None
    reason: str = ""
    """Why `tokenizers` encodes all rows."""
    template_is_checked: bool = False
    _counts: EncodingCounts = field(default_factory=EncodingCounts)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, counts: EncodingCounts) -> None:
        """Add counters."""
        with self._lock:
            self._counts.add(counts)

    def counted(self) -> EncodingCounts:
        """The counters, which begin again at 0."""
        with self._lock:
            taken, self._counts = self._counts, EncodingCounts()
        return taken


Messages = Callable[[int], tuple[list[dict[str, Any]], int]]
"""Number of a row -> the messages of one side, and the first of them that may be labelled."""


class _Conversations:
    """Renders, encodes and labels the conversations of a batch."""

    def __init__(self, encoder: Encoder, engine: Engine, config: TokenizeConfig, batch: pa.RecordBatch) -> None:
        self.encoder, self.engine, self.config, self.batch = encoder, engine, config, batch
        self.tokenizer = encoder.tokenizer
        self.tools: list[str | None] = batch.column("tools").to_pylist()
        self.reasons: list[str | None] = [None] * batch.num_rows
        self.details: list[str | None] = [None] * batch.num_rows
        self.counts = EncodingCounts()

    def sides(self) -> list[Messages]:
        """The one side of conversations, or the chosen and the rejected one of preference pairs."""
        if "prompt" not in self.batch.schema.names:
            messages = self.batch.column("messages").to_pylist()
            return [lambda i: (messages[i], 0)]
        prompts, chosen, rejected = (self.batch.column(c).to_pylist() for c in ("prompt", "chosen", "rejected"))
        return [
            lambda i: (prompts[i] + chosen[i], len(prompts[i])),
            lambda i: (prompts[i] + rejected[i], len(prompts[i])),
        ]

    def rows(self) -> Decision:
        """Conversations."""
        (side,) = (self._side(messages) for messages in self.sides())
        return _decision(self.reasons, self.details, side.columns("input_ids", "label_spans"), "conversation")

    def pairs(self) -> Decision:
        """Preference pairs: labels on the answers only, both sides kept or neither."""
        sides = [self._side(messages) for messages in self.sides()]
        columns: dict[str, pa.Array] = {}
        for side, names in zip(
            sides, (("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")), strict=True
        ):
            for i, reason in enumerate(self.reasons):
                if reason is not None:
                    side.ids[i] = side.spans[i] = None
            columns |= side.columns(*names)
        return _decision(self.reasons, self.details, columns, "preference")

    def _side(self, messages: Messages) -> _Tokens:
        rendered = {i: r for i in range(self.batch.num_rows) if (r := self.rendered(i, *messages(i))) is not None}
        side = _Tokens.empty(self.batch.num_rows)
        made = self._encoded(list(rendered.values()))
        for i, found in zip(rendered, made, strict=True):
            if isinstance(found, RowError):
                self.reasons[i], self.details[i] = found.reason, found.detail
            else:
                side.ids[i], side.spans[i] = found
        return side

    def rendered(self, i: int, messages: list[dict[str, Any]], first: int) -> Labelled | None:
        """A row as text with its labels; None where it is dropped."""
        if self.reasons[i] is not None:
            return None
        try:
            if not messages:
                raise RowError("empty", "no messages")
            return label(self.tokenizer, messages, self.tools[i], train_on=self.config.train_on, first=first)
        except RowError as e:
            self.reasons[i], self.details[i] = e.reason, e.detail
            return None

    def _encoded(self, rows: Sequence[Labelled]) -> Iterator[tuple[Int32, Spans] | RowError]:
        """The ids and label spans of each row, or why it is dropped, in order."""
        placed = self._placed(rows)
        rest = [row for row, found in zip(rows, placed, strict=True) if found is None]
        self.counts.add(EncodingCounts(fast_rows=len(rows) - len(rest), library_rows=len(rest)))
        encodings = iter(self.tokenizer.encode([row.text for row in rest]))
        for row, found in zip(rows, placed, strict=True):
            if found is not None:
                yield found
                continue
            try:
                yield labelled_ids(self.tokenizer, row, next(encodings), self.config.min_label_tokens)
            except RowError as e:
                yield e

    def _placed(self, rows: Sequence[Labelled]) -> list[tuple[Int32, Spans] | RowError | None]:
        """The rows that fastokens encodes; None for those whose tokens have no known place in the text."""
        made: list[tuple[Int32, Spans] | RowError | None] = [None] * len(rows)
        if self.engine != "fastokens":
            return made
        ids, offsets, ends, placed = self.encoder.encode_placed([row.text for row in rows])
        for i in np.flatnonzero(placed).tolist():
            own = slice(offsets[i], offsets[i + 1])
            try:
                made[i] = labelled_bytes(
                    self.tokenizer, rows[i], ids[own].copy(), ends[own], self.config.min_label_tokens
                )
            except RowError as e:
                made[i] = e
        return made


def _decision(
    reasons: list[str | None], details: list[str | None], columns: dict[str, pa.Array], source: str
) -> Decision:
    columns = columns | {"segment_source": pa.repeat(pa.scalar(source), len(reasons))}
    return Decision(pa.array(reasons, pa.string()), pa.array(details, pa.string()), columns)


def encode_documents(
    encoder: Encoder, engine: Engine, texts: pa.Array, before: Sequence[int], after: Sequence[int]
) -> tuple[pa.ListArray, list[str | None], list[str | None]]:
    """The ids of a string array's documents, and the reason and detail for those that are refused: they have no ids.

    `before` and `after` are ids put around each document.
    """
    tokenizer = encoder.tokenizer
    ids, offsets = encoder.encode(text_list(texts), engine)
    reasons: list[str | None] = [None] * len(texts)
    details: list[str | None] = [None] * len(texts)
    alive = np.ones(len(texts), np.bool_)
    for row in _suspects(tokenizer, texts, ids, offsets):
        try:
            plain_ids(tokenizer, texts[row].as_py() or "", ids[offsets[row] : offsets[row + 1]].tolist())
        except RowError as e:
            reasons[row], details[row], alive[row] = e.reason, e.detail, False
    if not alive.all():
        lengths = np.diff(offsets)
        ids, offsets = ids[np.repeat(alive, lengths)], np.concatenate([[0], np.cumsum(lengths * alive)])
    ids, offsets = surround(ids, offsets, before, after)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(ids, pa.int32())), reasons, details


def _suspects(tokenizer: ChatTokenizer, texts: pa.Array, ids: Int32, offsets: Int64) -> list[int]:
    """Rows that `plain_ids` may refuse: the empty ones, and those in which a mark of added tokens occurs."""
    found: list[npt.NDArray[np.int64]] = [np.flatnonzero(np.diff(offsets) == 0)]
    data, begins = string_buffers(texts)
    first, *rest = RESERVED.encode()
    at = begins[0] + np.flatnonzero(data[begins[0] : begins[-1]] == first)
    for i, byte in enumerate(rest, start=1):
        at = at[data[at + i] == byte]  # a lead byte is never a text's last
    found.append(np.searchsorted(begins, at, side="right") - 1)
    if tokenizer.spelled_by_model:
        spelled = np.flatnonzero(np.isin(ids, list(tokenizer.spelled_by_model)))
        found.append(np.searchsorted(offsets, spelled, side="right") - 1)
    rows: list[int] = np.unique(np.concatenate(found)).tolist()
    return rows


@dataclass(frozen=True, slots=True)
class CheckIds:
    """Checks ids against a vocabulary and label spans against the ids."""

    vocab_size: int
    min_label_tokens: int

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Drop rows whose ids or spans are out of range."""
        reasons: list[str | None] = [None] * batch.num_rows
        details: list[str | None] = [None] * batch.num_rows
        for ids_name, spans_name in (("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")):
            if ids_name in batch.schema.names:
                spans = batch.column(spans_name).to_pylist()
                for i, problem in enumerate(self._problems(batch.column(ids_name), spans)):
                    if problem and reasons[i] is None:
                        reasons[i], details[i] = problem
        source = batch.column("segment_source")
        return Decision(pa.array(reasons, pa.string()), pa.array(details, pa.string()), {"segment_source": source})

    def _problems(self, ids: pa.Array, spans: list[Any]) -> Iterator[tuple[str, str] | None]:
        lengths, flat = pc.list_value_length(ids).to_numpy(zero_copy_only=False), ids.flatten().to_numpy()
        ends = np.cumsum(lengths)
        bad = np.add.accumulate(np.concatenate([[0], (flat < 0) | (flat >= self.vocab_size)]), dtype=np.int64)
        for length, end, row_spans in zip(lengths, ends, spans, strict=True):
            yield self._problem(flat[end - length : end], bool(bad[end] - bad[end - length]), row_spans)

    def _problem(self, ids: npt.NDArray[np.int32], outside: bool, spans: Any) -> tuple[str, str] | None:
        if not len(ids):
            return "empty", "no ids"
        if outside:
            worst = ids.max() if ids.max() >= self.vocab_size else ids.min()
            return "id_out_of_vocabulary", f"id {worst}; the tokenizer's vocabulary has {self.vocab_size}"
        if spans is None:
            return None
        edges = [0, *(e for s in spans for e in (s["start"], s["end"])), len(ids)]
        if edges != sorted(edges):
            return "bad_label_spans", f"label spans are not in order or leave the {len(ids)} ids"
        if sum(s["end"] - max(s["start"], 1) for s in spans) < self.min_label_tokens:
            return "no_labels", f"fewer than {self.min_label_tokens} label tokens"
        return None
