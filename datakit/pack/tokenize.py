"""Rows of text, conversations or preference pairs -> token ids with the spans that the model must produce.

`encoder.py` decides which library encodes.

**Documents** end with the tokenizer's `eos_token`. Generation stops at the same token, so a model that is pretrained on
documents and fine-tuned on conversations has one stop token (minimind and Qwen end turns with it, too). All tokens of a
document are labels, so it has no label spans.

**Conversations** are rendered with the chat template; their label spans are the assistant's turns. Text in a row never
becomes a special token (see `datakit.pack.chat`). Rows that bring token ids keep their ids and spans, after a check.

**Thoughts** of earlier turns are stripped by many templates (Qwen3's), because the model does not see them later.
`thinking = "every_turn"` makes one sequence of each answer, with the messages before it rendered as the model would
have seen them; only that answer is labelled. A conversation of n turns then has about n / 2 times as many tokens. The
sequences of a row stand one after the other in its `input_ids`; `sequence_starts` says where each begins.
"""

import datetime
import hashlib
import json
import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import SPANS, tokens
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.manifest import Ledger, tokenizer_file
from datakit.pack.chat import RESERVED, ChatTokenizer
from datakit.pack.encoder import (
    COUNTED,
    Encoder,
    EncodingCounts,
    Engine,
    EngineChoice,
    Int32,
    Int64,
    Sample,
    choose_engine,
    encoder_of,
)
from datakit.pack.labels import Labelled, RowError, Spans, label, labelled_bytes, labelled_ids, plain_ids
from datakit.pack.shapes import Joined, Sequences
from datakit.pack.template import TooSlowError, Watch
from datakit.stage import Decision, Parent, Stage

READ_BYTES = 32 << 20
"""The sample is chosen from shards of about this size, in bytes."""
MAX_NOT_RENDERED = MAX_UNKNOWN = 0.01
"""Alarms: thoughts are left out of a larger share of the rows, or a larger share of the tokens is unknown."""
LONG_ROW = 100
"""With more tokens per row on average, `surround` copies row by row."""
IDS, REJECTED_IDS = ("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")
NOT_RENDERED, STRIPPED, UNENDED = "reasoning_not_rendered", "reasoning_stripped", "turns_without_end"
IGNORED, ROUNDED, UNKNOWN = "chat_template_kwargs_ignored", "loss_weights_rounded", "unknown_tokens"
STARTS = "sequence_starts"


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizeConfig:
    """How rows become tokens."""

    tokenizer: str = option(
        "", "a tokenizer.json, its folder, or the folder or manifest of a result with one", path=True
    )
    chat_template: str = option(
        "", "chatml, llama3, plain or a template file; empty: the tokenizer's own, else chatml", path=True
    )
    train_on: Literal["all", "last"] = option("all", "which assistant turns are labelled")
    thinking: Literal["last", "every_turn"] = option(
        "last", "conversations as one sequence, or one for each answer, with its thought: more tokens, all thoughts"
    )
    template_var: dict[str, Any] = option(
        {}, "a variable of the chat template: enable_thinking=false, reasoning_effort=low, today=2025-07-31"
    )
    add_bos: bool = option(False, "begin each document with the tokenizer's bos_token")
    add_eos: bool = option(True, "end each document with the tokenizer's eos_token")
    min_label_tokens: int = option(1, "drop conversations with fewer label tokens")

    def __post_init__(self) -> None:
        if self.min_label_tokens < 0:
            raise ConfigError(f"min_label_tokens must be 0 or more, found {self.min_label_tokens}")
        template_variables(self.template_var)


def template_variables(given: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of a chat template: a text that is JSON (`false`, `2`) is read as JSON.

    Raises:
        ConfigError: `today` is no date.
    """
    found = {name: _json_or_text(value) if isinstance(value, str) else value for name, value in given.items()}
    try:
        datetime.date.fromisoformat(str(found.get("today", "2024-07-26")))
    except ValueError:
        raise ConfigError(f"template_var today: expected a date such as 2025-07-31, found {found['today']!r}") from None
    return found


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass(frozen=True)
class Tokenize(Stage):
    """The stage: rows of any kind -> token rows."""

    name: ClassVar[str] = "tokenize"
    help: ClassVar[str] = "Label spans cover exactly what the assistant says, with its end token."
    Config: ClassVar[type] = TokenizeConfig
    holds_gil: ClassVar[bool] = True
    takes_tokens: ClassVar[bool] = True
    note_lines: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            NOT_RENDERED: "rows have thoughts that the chat template does not render: they are not learned",
            STRIPPED: "rows have thoughts in earlier turns, which the chat template strips (--thinking every_turn)",
            ROUNDED: "rows have answers with loss weights other than 0 and 1: they are learned as with 1",
            IGNORED: "rows have chat_template_kwargs that are no object: the template does not get them",
            UNENDED: "rows end without a special token: the template ends an answer with the next question",
            UNKNOWN: "tokens stand for text that the tokenizer's vocabulary does not have: it is lost",
        }
    )

    config: TokenizeConfig
    kind: str = ""
    """Kind of the rows; empty if unknown."""
    choice: EngineChoice = EngineChoice()
    """Which library encodes: `tokenizers`, unless the identity gate found the same ids from fastokens."""

    _loaded: "_Loaded" = field(default_factory=lambda: _Loaded(), repr=False, compare=False)

    def __reduce__(self) -> tuple[type["Tokenize"], tuple[TokenizeConfig, str, EngineChoice]]:
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
                raise UsageError("tokenize: no tokenizer; give --tokenizer FILE_OR_FOLDER or set it in the recipe")
            c = self.config
            self._loaded.encoder = encoder_of(c.tokenizer, c.chat_template, template_variables(c.template_var))
        return self._loaded.encoder

    def use_processes(self) -> bool:
        """False if fastokens encodes documents (in its own threads); templates and `tokenizers` keep the GIL."""
        return self.kind != "document" or self.choice.engine != "fastokens"

    def output_kind(self, kind: str) -> str:
        """Always tokens."""
        return "tokens"

    def check(self) -> None:
        """Load the tokenizer if the config names one; else the recipe trains one before this stage."""
        if self.config.tokenizer:
            self.resources()
            self.open()

    def use_earlier(self, made: Mapping[str, Parent]) -> tuple[Self, tuple[Parent, ...]]:
        """The stage with the tokenizer that the recipe trained, unless the config names one."""
        if self.config.tokenizer or "tokenizer" not in made:
            return self, ()
        trained = made["tokenizer"]
        config = replace(self.config, tokenizer=str(tokenizer_file(trained.path).parent))
        return replace(self, config=config, _loaded=_Loaded()), (trained,)

    def resources(self) -> dict[str, Any]:
        """The tokenizer's facts: hashes of tokenizer, template and settings, vocabulary size, special ids."""
        settings = self.tokenizer.files()["tokenizer_config.json"]
        return {"tokenizer": self.tokenizer.facts() | {"settings_sha256": hashlib.sha256(settings).hexdigest()}}

    def facts(self) -> dict[str, Any]:
        """The tokenizer's facts and files, for the manifest."""
        return {
            "tokenizer": self.tokenizer.facts() | {"files": [f"kept/tokenizer/{n}" for n in self.tokenizer.files()]}
        }

    def files(self) -> dict[str, bytes]:
        """The tokenizer's files, stored with the result."""
        return {f"kept/tokenizer/{name}": content for name, content in self.tokenizer.files().items()}

    def kept_columns(self, names: list[str]) -> list[str]:
        """The columns of kept rows: the tokens schema, and where a row's sequences begin if it may have several."""
        return [*tokens(preference="rejected_ids" in names).names, *(n for n in names if n == STARTS)]

    def alarms(self, ledger: Ledger) -> list[str]:
        """Alarms if the template leaves thoughts out of more than 1% of the rows, or text is lost in encoding."""
        found, rows, made = [], ledger.rows.kept, ledger.tokens.kept if ledger.tokens else 0
        if (lost := ledger.notes.get(NOT_RENDERED, 0)) > MAX_NOT_RENDERED * rows:
            found.append(
                f"the chat template does not render the thoughts of {lost} of {rows} rows ({NOT_RENDERED}): "
                "use a template of a thinking model, or --chat-template"
            )
        if (unknown := ledger.notes.get(UNKNOWN, 0)) > MAX_UNKNOWN * made:
            found.append(
                f"{unknown:,} of {made:,} tokens are unknown to the tokenizer ({UNKNOWN}): "
                "their text is lost; use a tokenizer for this language or script, or one with bytes as tokens"
            )
        if self.tokenizer.drops_unknown:
            found.append(
                "the tokenizer has neither an unknown token nor bytes as tokens: characters that its vocabulary does "
                "not have vanish, and nothing counts them"
            )
        return found

    def measured(self) -> dict[str, int]:
        """Encoding counters of this process since the last call: rows by library."""
        return asdict(self._loaded.counted())

    def summary(self, counts: dict[str, int]) -> str:
        """The counters as a line of text."""
        fast, library = counts.get("fast_rows", 0), counts.get("library_rows", 0)
        said = f"{fast:,} rows encoded by fastokens, {library:,} by tokenizers"
        return f"{said} ({self._loaded.reason})" if self._loaded.reason else said

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of that kind."""
        return replace(self, kind=kind)

    def prepare(self, rows: Callable[[int], Iterator[pa.RecordBatch]], folder: Path) -> Self:
        """Run the identity gate: choose the library that encodes all rows. The choice is stored in `folder`."""
        path = folder / "encoder.json"
        choice = EngineChoice.load(path)
        if choice is None:
            sample, tried = Sample(), _Tried()
            for batch in rows(READ_BYTES):
                if "input_ids" in batch.schema.names:
                    return self
                keys = batch.column("row_key").to_numpy(zero_copy_only=False)
                sample.add(keys, batch.nbytes, partial(self._texts_of, batch, tried))
            if tried.rows and sum(tried.failed.values()) == tried.rows:
                why = tried.failed.most_common(1)[0][0]
                raise ModelError(f"{self.tokenizer.template_where} fails on every row: {why}")
            choice = choose_engine(self._encoder, sample)
            choice.save(path)
        self._loaded.reason = choice.reason
        return replace(self, choice=choice)

    def prepared(self) -> str:
        """The library that encodes: its ids are only known to be equal on the sample."""
        return self.choice.engine

    def _texts_of(self, batch: pa.RecordBatch, tried: "_Tried", which: list[int]) -> list[list[str]]:
        """The texts to encode of some rows of a batch; `tried` counts those on which the template fails."""
        batch = batch.take(pa.array(which, pa.int64()))
        if "text" in batch.schema.names:
            return [[text] for text in text_list(batch.column("text"))]
        work = _Conversations(self._encoder, self.choice.engine, self.config, batch)
        sides = work.sides()
        with Watch() as watch:
            made = [
                [r.text for side in sides for r in work.rendered(i, *side(i), watch)] for i in range(batch.num_rows)
            ]
        tried.rows += batch.num_rows
        failed = (d for r, d in zip(work.reasons, work.details, strict=True) if r == "template_error")
        tried.failed.update(d or "" for d in failed)
        return made

    def open(self) -> None:
        """Load the tokenizer.

        Raises:
            ModelError: it cannot be loaded, or lacks the eos_token or bos_token that the config asks for.
        """
        if multiprocessing.parent_process() is not None:  # one thread per process
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
            return self._noted(self._documents(batch))
        self._check_template()
        work = _Conversations(self._encoder, self.choice.engine, self.config, batch)
        decision = work.pairs() if work.are_pairs else work.rows()
        self._loaded.count(work.counts)
        return self._noted(decision)

    def _noted(self, decision: Decision) -> Decision:
        """The decision with a note of its unknown tokens."""
        unknown = self.tokenizer.unknown_id
        if unknown is None or unknown in (self.tokenizer.bos_id, self.tokenizer.eos_id):
            return decision
        ids = (decision.columns[name].flatten() for name in (IDS[0], REJECTED_IDS[0]) if name in decision.columns)
        found = sum(int(np.count_nonzero(own.to_numpy() == unknown)) for own in ids)
        return replace(decision, notes=decision.notes | {UNKNOWN: found}) if found else decision

    def _check_template(self) -> None:
        """Refuse a template whose rendering of one question and answer does not show where the answer is."""
        if self._loaded.template_is_checked:
            return
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
        try:
            label(self.tokenizer, turns)
        except RowError as e:
            if e.reason == "labels_uncertain":
                raise ModelError(f"{self.tokenizer.template_where} cannot be used to train: {e.detail}") from None
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
class _Tried:
    """Rows of the sample that were rendered, and the template's errors."""

    rows: int = 0
    failed: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Loaded:
    """What a stage loads and counts in one process. Copies of the stage share it."""

    encoder: Encoder | None = None
    reason: str = ""
    """Why `tokenizers` encodes all rows; empty if fastokens does."""
    template_is_checked: bool = False
    _counts: EncodingCounts = field(default_factory=EncodingCounts)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, counts: EncodingCounts) -> None:
        """Add counters."""
        with self._lock:
            self._counts.add(counts)

    def counted(self) -> EncodingCounts:
        """The counters; resets them to 0."""
        with self._lock:
            taken, self._counts = self._counts, EncodingCounts()
        return taken


def encode_documents(
    encoder: Encoder, engine: Engine, texts: pa.Array, before: Sequence[int], after: Sequence[int]
) -> tuple[pa.ListArray, list[str | None], list[str | None]]:
    """Encode the documents of a string array, with the ids `before` and `after` around each.

    Returns list<int32> (rows,), and the reason and the detail for each row; None keeps it. Dropped rows have no ids.
    """
    given = text_list(texts)
    ids, offsets = encoder.encode(given, engine)
    reasons: list[str | None] = [None] * len(texts)
    details: list[str | None] = [None] * len(texts)
    alive = np.ones(len(texts), np.bool_)
    suspects = {*np.flatnonzero(np.diff(offsets) == 0).tolist(), *(i for i, t in enumerate(given) if RESERVED in t)}
    for row in suspects:
        try:
            plain_ids(given[row], ids[offsets[row] : offsets[row + 1]].tolist())
        except RowError as e:
            reasons[row], details[row], alive[row] = e.reason, e.detail, False
    if not alive.all():
        lengths = np.diff(offsets)
        ids, offsets = ids[np.repeat(alive, lengths)], np.concatenate([[0], np.cumsum(lengths * alive)])
    ids, offsets = surround(ids, offsets, before, after)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(ids, pa.int32())), reasons, details


def surround(ids: Int32, offsets: Int64, before: Sequence[int], after: Sequence[int]) -> tuple[Int32, Int64]:
    """Put the ids `before` and `after` around each row that is not empty; returns the new ids and offsets."""
    if not (before or after):
        return ids, offsets
    lengths = np.diff(offsets)
    filled = lengths > 0
    edges = np.concatenate([[0], np.cumsum(lengths + filled * (len(before) + len(after)))])
    made = np.empty(edges[-1], np.int32)
    places = [(edges[:-1] + i, token) for i, token in enumerate(before)]
    places += [(edges[1:] - len(after) + i, token) for i, token in enumerate(after)]
    if len(ids) > LONG_ROW * len(lengths):  # copying row by row is faster than a mask
        first = (edges[:-1] + len(before)).tolist()
        for to, a, b in zip(first, offsets.tolist(), offsets[1:].tolist(), strict=False):
            made[to : to + b - a] = ids[a:b]
    else:
        own = np.ones(len(made), np.bool_)
        for at, _ in places:
            own[at[filled]] = False
        made[own] = ids
    for at, token in places:
        made[at[filled]] = token
    return made, edges


def text_list(texts: pa.Array) -> list[str]:
    """A string array as a list; null becomes ""."""
    found: list[str] = (texts.fill_null("") if texts.null_count else texts).to_pylist()
    return found


@dataclass(slots=True)
class _Tokens:
    """Tokens and label spans of a batch; None for dropped rows."""

    ids: list[npt.NDArray[np.int32] | None]
    spans: list[Spans | None]
    starts: list[list[int] | None]
    """Where the sequences of each row begin in its ids."""

    @classmethod
    def empty(cls, rows: int) -> "_Tokens":
        return cls([None] * rows, [None] * rows, [None] * rows)

    def add(self, row: int, sequences: Sequence[tuple[Int32, Spans]]) -> None:
        """Put the sequences of a row one after the other."""
        if len(sequences) == 1:
            ((self.ids[row], self.spans[row]),), self.starts[row] = sequences, [0]
            return
        starts = np.cumsum([0, *(len(ids) for ids, _ in sequences[:-1])]).tolist()
        self.ids[row] = np.concatenate([ids for ids, _ in sequences])
        pairs = zip(sequences, starts, strict=True)
        self.spans[row] = [(a + start, b + start) for (_, spans), start in pairs for a, b in spans]
        self.starts[row] = starts

    def of(self, rows: Sequence[int]) -> "_Tokens":
        """Those of some rows."""
        return _Tokens([self.ids[i] for i in rows], [self.spans[i] for i in rows], [self.starts[i] for i in rows])

    def columns(self, ids: str, spans: str) -> dict[str, pa.Array]:
        """Arrow columns of these names; a dropped row has no ids."""
        lengths = [0 if a is None else len(a) for a in self.ids]
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        flat = np.concatenate([np.empty(0, np.int32), *(a for a in self.ids if a is not None)])
        return {
            ids: pa.ListArray.from_arrays(offsets, pa.array(flat, pa.int32())),
            spans: _spans_column(self.spans),
            STARTS: pa.array(self.starts, pa.list_(pa.int32())),
        }


def _in_rows(
    ids: pa.ListArray, spans: pa.ListArray, sequences: Int64, ids_name: str, spans_name: str
) -> dict[str, pa.Array]:
    """Columns of rows, from the ids and the label spans of their sequences, of which each row has so many, in order."""
    bounds = np.concatenate([[0], np.cumsum(sequences)])
    starts = ids.offsets.to_numpy()
    of_row = starts[bounds]
    within = starts[:-1] - np.repeat(of_row[:-1], sequences)
    num_spans = spans.offsets.to_numpy()
    shift = np.repeat(within, np.diff(num_spans)).astype(np.int32)
    edges = [spans.values.field(name).to_numpy() + shift for name in ("start", "end")]
    moved = pa.StructArray.from_arrays([pa.array(e) for e in edges], fields=list(SPANS.value_type))
    return {
        ids_name: pa.ListArray.from_arrays(pa.array(of_row), ids.values),
        spans_name: pa.ListArray.from_arrays(pa.array(num_spans[bounds]), moved, type=SPANS),
        STARTS: pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), pa.array(within.astype(np.int32))),
    }


def _spans_column(rows: Sequence[Spans | None]) -> pa.Array:
    """The label spans of rows, as an array of the type SPANS."""
    flat = np.array([edge for spans in rows if spans for span in spans for edge in span], np.int32)
    offsets = np.cumsum([0, *(len(spans or ()) for spans in rows)])
    missing = pa.array([spans is None for spans in rows], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _spans(flat), type=SPANS, mask=missing)


def _spans(edges: npt.NDArray[np.integer]) -> pa.StructArray:
    """Label spans, from the tokens at their starts and ends in turn."""
    flat = edges.astype(np.int32)
    return pa.StructArray.from_arrays([flat[::2], flat[1::2]], fields=list(SPANS.value_type))


Messages = Callable[[int], tuple[list[dict[str, Any]], int]]
"""Index of a row -> the messages of one side, and the index of the first message that may be labelled."""


class _Conversations:
    """Renders, encodes and labels the conversations of a batch."""

    def __init__(self, encoder: Encoder, engine: Engine, config: TokenizeConfig, batch: pa.RecordBatch) -> None:
        self.encoder, self.engine, self.config, self.batch = encoder, engine, config, batch
        self.tokenizer = encoder.tokenizer
        self.are_pairs = "prompt" in batch.schema.names
        self.columns = ["prompt", "chosen", "rejected"] if self.are_pairs else ["messages"]
        self.every_turn = config.thinking == "every_turn" and config.train_on == "all" and not self.are_pairs
        """Whether each answer of a row is a sequence of its own."""
        self.tools: list[str | None] = batch.column("tools").to_pylist()
        self.variables, self.ignored = _row_variables(batch)
        self.reasons: list[str | None] = [None] * batch.num_rows
        self.details: list[str | None] = [None] * batch.num_rows
        self.counts = EncodingCounts()
        self.noted: dict[str, set[int]] = {name: set() for name in (UNENDED, NOT_RENDERED, STRIPPED)}
        self.noted[ROUNDED] = {row for name in self.columns for row in _with_other_weights(batch.column(name))}
        """The rows of which a note is made."""
        self.rest = np.arange(batch.num_rows)
        """The rows that are rendered one by one."""

    def sides(self) -> list[Messages]:
        """The messages of the rows in `rest`: one entry for conversations; the chosen and the rejected side for
        preference pairs."""
        at = {row: k for k, row in enumerate(self.rest.tolist())}
        taken = pa.array(self.rest)
        given = [self.batch.column(name).take(taken).to_pylist() for name in self.columns]
        if not self.are_pairs:
            return [lambda i: (given[0][at[i]], 0)]
        prompts, chosen, rejected = given
        return [
            lambda i: (prompts[at[i]] + chosen[at[i]], len(prompts[at[i]])),
            lambda i: (prompts[at[i]] + rejected[at[i]], len(prompts[at[i]])),
        ]

    def rows(self) -> Decision:
        """Tokenize conversations."""
        messages = self.batch.column("messages")
        sequences = Sequences.of_answers(messages) if self.every_turn else Sequences.of(messages)
        rows, joined = self._joined(sequences, np.zeros(len(sequences), np.int64), (IDS,))
        (own,) = self.sides()
        alone = self._side(own).of(self.rest.tolist()).columns(*IDS)
        columns = self._merged(rows, joined, alone)
        if self.config.thinking == "last":
            del columns[STARTS]
        return _decision(self.reasons, self.details, columns, "conversation", self.notes())

    def pairs(self) -> Decision:
        """Tokenize preference pairs: only the answers have labels; both sides are kept or dropped. A side without an
        answer has no tokens (an answer that is judged by itself has one side)."""
        prompts, *answers = (self.batch.column(name) for name in self.columns)
        rows, joined = self._joined(*Sequences.of_pairs(prompts, answers), (IDS, REJECTED_IDS))
        sides = [self._side(messages) for messages in self.sides()]
        for i in self.rest.tolist():
            if self.reasons[i] is None and all(side.ids[i] is None for side in sides):
                self.reasons[i], self.details[i] = "empty", "neither side has an answer"
        alone: dict[str, pa.Array] = {}
        for side, names in zip(sides, (IDS, REJECTED_IDS), strict=True):
            for i in self.rest.tolist():
                if self.reasons[i] is not None:
                    side.ids[i] = side.spans[i] = None
                elif side.ids[i] is None:
                    side.spans[i] = []
            alone |= side.of(self.rest.tolist()).columns(*names)
        columns = self._merged(rows, joined, alone)
        del columns[STARTS]
        return _decision(self.reasons, self.details, columns, "preference", self.notes())

    def _joined(
        self, sequences: Sequences, sides: Int64, names: Sequence[tuple[str, str]]
    ) -> tuple[Int64, dict[str, pa.Array]]:
        """The rows that need no rendering of their own (see `shapes`), with the columns of each side; leaves the others
        in `rest`. `sides` says to which side of its row each sequence belongs."""
        shapes = self.encoder.shapes(self.config.train_on)
        made = shapes.joined(sequences, self.tools, self.variables)
        if not made.rows:
            return np.empty(0, np.int64), {}
        ids, offsets = self.encoder.encode(made.texts, self.engine)
        edges, bounds, certain = self.encoder.edges(made, ids, offsets)
        # the first token of a sequence is never a target; rows that are dropped go the long way, which says why
        learnt = np.concatenate([[0], np.cumsum(edges[1::2] - np.maximum(edges[::2], 1))])[bounds // 2]
        found = certain & (np.diff(learnt) >= self.config.min_label_tokens)
        number = np.array(made.rows, np.int64)
        rows = np.bincount(sequences.rows, minlength=self.batch.num_rows) > 0
        lost = np.ones(len(sequences), np.bool_)
        lost[number[found]] = False
        rows[sequences.rows[lost]] = False
        found &= rows[sequences.rows[number]]
        self.rest = np.flatnonzero(~rows)
        self.counts.add(EncodingCounts(**{COUNTED[self.engine]: int(found.sum())}))
        self._note(made, sequences.rows[number], found)
        order = np.flatnonzero(found)[np.argsort(number[found])]
        columns: dict[str, pa.Array] = {}
        flat = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(ids))
        spans = pa.ListArray.from_arrays(pa.array(bounds // 2, pa.int32()), _spans(edges), type=SPANS)
        for side, (ids_name, spans_name) in enumerate(names):
            own = order[sides[number[order]] == side]
            taken = pa.array(own)
            lengths = np.bincount(sequences.rows[number[own]], minlength=self.batch.num_rows)[rows]
            columns |= _in_rows(flat.take(taken), spans.take(taken), lengths, ids_name, spans_name)
        return np.flatnonzero(rows), columns

    def _note(self, made: Joined, rows: Int64, found: npt.NDArray[np.bool_]) -> None:
        seen = {UNENDED: ~np.array(made.ended, np.bool_), NOT_RENDERED: np.array(made.not_rendered, np.bool_)}
        seen[STRIPPED] = np.array(made.stripped, np.bool_)
        for note, is_so in seen.items():
            self.noted[note].update(rows[found & is_so].tolist())

    def notes(self) -> dict[str, int]:
        """How many rows each note is made of, without those that are dropped."""
        counts = {note: sum(self.reasons[i] is None for i in rows) for note, rows in self.noted.items()}
        if self.config.thinking != "last":
            del counts[STRIPPED]
        return counts | {IGNORED: self.ignored}

    def _merged(self, rows: Int64, joined: dict[str, pa.Array], alone: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The columns of all rows, from those that were joined and the rest, in order."""
        if not len(self.rest) or not len(rows):
            return joined if len(rows) else alone
        place = pa.array(np.argsort(np.concatenate([self.rest, rows])))
        return {name: pa.concat_arrays([alone[name], joined[name]]).take(place) for name in joined}

    def _side(self, messages: Messages) -> _Tokens:
        with Watch() as watch:
            rendered = [(i, r) for i in self.rest.tolist() for r in self.rendered(i, *messages(i), watch)]
        made = self._encoded([row for _, row in rendered])
        sequences: dict[int, list[tuple[Int32, Spans]]] = {}
        for (i, _), found in zip(rendered, made, strict=True):
            if isinstance(found, RowError):
                self.reasons[i], self.details[i] = found.reason, found.detail
            else:
                sequences.setdefault(i, []).append(found)
        side = _Tokens.empty(self.batch.num_rows)
        for i, own in sequences.items():
            if self.reasons[i] is None:
                side.add(i, own)
        return side

    def rendered(self, i: int, messages: list[dict[str, Any]], first: int, watch: Watch) -> list[Labelled]:
        """A row with its labels: one rendering, or one for each answer; empty if the row is dropped, or is a side of a
        pair without an answer.

        Raises:
            ModelError: the template takes too long.
        """
        if self.reasons[i] is not None or (first and len(messages) == first):
            return []
        try:
            if not messages:
                raise RowError("empty", "no messages")
            made = [
                self._labelled(own, self.tools[i], begin, self.variables[i], watch)
                for own, begin in self._sequences(messages, first)
            ]
        except RowError as e:
            self.reasons[i], self.details[i] = e.reason, e.detail
            return []
        except TooSlowError:
            row = self.batch.column("id")[i]
            raise ModelError(f"{self.tokenizer.template_where} takes too long for the row {row}") from None
        finally:
            watch.begin(0)
        seen = {UNENDED: not all(row.ended for row in made)}
        seen[NOT_RENDERED] = any(row.thoughts_not_rendered for row in made)
        seen[STRIPPED] = any(row.thoughts_stripped for row in made)
        for note in (note for note, is_so in seen.items() if is_so):
            self.noted[note].add(i)
        return made

    def _sequences(self, messages: list[dict[str, Any]], first: int) -> list[tuple[list[dict[str, Any]], int]]:
        """The messages of each sequence of a row, and the first one that may be labelled."""
        said = (i for i, m in enumerate(messages) if m["role"] == "assistant" and m.get("weight") != 0)
        answers = list(said) if self.every_turn else []
        return [(messages[: i + 1], i) for i in answers] or [(messages, first)]

    def _labelled(
        self, messages: list[dict[str, Any]], tools: str | None, first: int, variables: dict[str, Any], watch: Watch
    ) -> Labelled:
        watch.begin(1 + sum(len(m["content"] or "") for m in messages))
        return label(self.tokenizer, messages, tools, first=first, train_on=self.config.train_on, variables=variables)

    def _encoded(self, rows: Sequence[Labelled]) -> Iterator[tuple[Int32, Spans] | RowError]:
        """The ids and label spans of each row, or the reason why it is dropped, in order."""
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
        """The rows that fastokens encodes; None for those whose tokens have no known offsets in the text."""
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


def _with_other_weights(messages: pa.ListArray) -> list[int]:
    """The rows with an answer whose loss weight is neither 0 nor 1."""
    weights = messages.flatten().field("weight")
    if weights.null_count == len(weights):
        return []
    other = pc.and_(pc.not_equal(weights, 0), pc.not_equal(weights, 1))
    found = pc.and_(other, pc.equal(messages.flatten().field("role"), "assistant")).fill_null(False)
    rows: list[int] = pc.unique(pc.filter(pc.list_parent_indices(messages), found)).to_pylist()
    return rows


def _row_variables(batch: pa.RecordBatch) -> tuple[list[dict[str, Any]], int]:
    """The template's variables of each row: its `chat_template_kwargs`, a column or a field in `extra`. And how many of
    these are no object: such rows have none."""
    name = "chat_template_kwargs"
    if name in batch.schema.names:
        given = batch.column(name).to_pylist()
    else:
        extra = batch.column("extra")
        if not pc.any(pc.match_substring(extra, name)).as_py():
            return [{}] * batch.num_rows, 0
        given = [json.loads(e).get(name) if e and name in e else None for e in extra.to_pylist()]
    read = [_json_or_text(value) if isinstance(value, str) else value for value in given]
    found = [{k: v for k, v in r.items() if v is not None} if isinstance(r, dict) else {} for r in read]
    return found, sum(r is not None and not isinstance(r, dict) for r in read)


def _decision(
    reasons: list[str | None], details: list[str | None], columns: dict[str, pa.Array], source: str,
    notes: Mapping[str, int] = MappingProxyType({}),
) -> Decision:  # fmt: skip
    columns = columns | {"segment_source": pa.repeat(pa.scalar(source), len(reasons))}
    found = {name: count for name, count in notes.items() if count}
    return Decision(pa.array(reasons, pa.string()), pa.array(details, pa.string()), columns, notes=found)


@dataclass(frozen=True, slots=True)
class CheckIds:
    """Checks rows that bring their own ids: ids against the vocabulary, label spans against the ids."""

    vocab_size: int
    min_label_tokens: int
    """Fewer label tokens drop a row that has label spans."""

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Drop rows whose ids or spans are out of range."""
        reasons: list[str | None] = [None] * batch.num_rows
        details: list[str | None] = [None] * batch.num_rows
        for ids_name, spans_name in (IDS, REJECTED_IDS):
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
