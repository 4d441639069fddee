"""Rows of text, conversations or preference pairs -> token ids with the spans that the model must produce.

`encoder.py` decides which library encodes.

**Documents** end with the tokenizer's `eos_token`. Generation stops at the same token, so a model that is pretrained on
documents and fine-tuned on conversations has one stop token (minimind and Qwen end turns with it, too). All tokens of a
document are labels, so it has no label spans.

**Conversations** are rendered with the chat template; their label spans are the assistant's turns, and `turn_starts`
says where users' turns begin. Text in a row never becomes a special token (see `datakit.pack.chat`). Rows that bring
token ids keep their ids and spans, after a check.

A row of any kind is one **sequence** or more: messages of which the first ones are context without labels. A
conversation is one sequence; a preference pair has two, the prompt with each answer. Many templates strip the thoughts
of earlier turns (Qwen3's), because the model does not see them later: with `thinking = "every_turn"` each answer is a
sequence of its own, with the messages before it rendered as the model would have seen them. A conversation of n turns
then has about n / 2 times as many tokens. The sequences of a row stand one after the other in its `input_ids`;
`sequence_starts` says where each begins.
"""

import datetime
import hashlib
import json
import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import SPANS, TURN_STARTS, tokens
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.manifest import Ledger, tokenizer_file
from datakit.pack.chat import ChatTokenizer
from datakit.pack.encoder import Encoder, EngineChoice, Int32, Int64, Sample, choose_engine, encoder_of
from datakit.pack.labels import Labelled
from datakit.pack.marks import RESERVED, RESERVED_SPELLING, RenderError
from datakit.pack.shapes import LabelledBatch
from datakit.stage import Decision, Parent, Stage

READ_BYTES = 32 << 20
"""The sample is chosen from shards of about this size, in bytes."""
MAX_NOT_RENDERED = MAX_UNKNOWN = 0.01
"""Alarms: thoughts are left out of a larger share of the rows, or a larger share of the tokens is unknown."""
SIDES = (("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans"))
NOT_RENDERED, STRIPPED, UNENDED = "reasoning_not_rendered", "reasoning_stripped", "turns_without_end"
IGNORED, ROUNDED, UNKNOWN = "chat_template_kwargs_ignored", "loss_weights_rounded", "unknown_tokens"
STARTS = "sequence_starts"
COUNTERS = ("fast_rows", "library_rows")
"""Encoding counters: sequences that fastokens encoded, and that `tokenizers` did."""


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


@dataclass(slots=True)
class _Loaded:
    """What a stage loads and counts in one process. Copies of the stage share it."""

    encoder: Encoder | None = None
    reason: str = ""
    """Why `tokenizers` encodes all rows; empty if fastokens does."""
    template_is_checked: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)


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

    _loaded: _Loaded = field(default_factory=_Loaded, repr=False, compare=False)

    def __reduce__(self) -> tuple[type["Tokenize"], tuple[TokenizeConfig, str, EngineChoice]]:
        return type(self), (self.config, self.kind, self.choice)

    @property
    def tokenizer(self) -> ChatTokenizer:
        """The loaded tokenizer.

        Raises:
            ModelError: it is missing or cannot be used.
        """
        return self.encoder.tokenizer

    @property
    def encoder(self) -> Encoder:
        """The loaded tokenizer in both libraries."""
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
        return {"tokenizer": self.tokenizer.facts() | {"files": list(self.files())}}

    def files(self) -> dict[str, bytes]:
        """The tokenizer's files, stored with the result."""
        return {f"kept/tokenizer/{name}": content for name, content in self.tokenizer.files().items()}

    def kept_columns(self, names: list[str]) -> list[str]:
        """The columns of kept rows: the tokens schema, and where a row's sequences begin if it may have several."""
        known = [*tokens(preference="rejected_ids" in names).names, STARTS]
        return [name for name in known if name in names]

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

    def _count(self, fast: int, library: int) -> None:
        with self._loaded.lock:
            self._loaded.counts.update(dict(zip(COUNTERS, (fast, library), strict=True)))

    def measured(self) -> dict[str, int]:
        """Encoding counters of this process since the last call: rows by library."""
        with self._loaded.lock:
            taken, self._loaded.counts = self._loaded.counts, Counter()
        return {name: taken[name] for name in COUNTERS}

    def summary(self, counts: dict[str, int]) -> str:
        """The counters as a line of text."""
        fast, library = (counts.get(name, 0) for name in COUNTERS)
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
            sample, failed = Sample(), Counter[str]()
            for batch in rows(READ_BYTES):
                if "input_ids" in batch.schema.names:
                    return self
                keys = batch.column("row_key").to_numpy(zero_copy_only=False)
                sample.add(keys, batch.nbytes, partial(self._texts_of, batch, failed))
            if failed and not failed[""]:
                why = failed.most_common(1)[0][0]
                raise ModelError(f"{self.tokenizer.template_where} fails on every row: {why}")
            choice = choose_engine(self.encoder, sample)
            choice.save(path)
        self._loaded.reason = choice.reason
        return replace(self, choice=choice)

    def prepared(self) -> str:
        """The library that encodes: its ids are only known to be equal on the sample."""
        return self.choice.engine

    def _texts_of(self, batch: pa.RecordBatch, failed: Counter[str], which: list[int]) -> list[list[str]]:
        """The texts to encode of some rows of a batch; `failed` counts rows by the template's error, or none."""
        batch = batch.take(pa.array(which, pa.int64()))
        if "text" in batch.schema.names:
            return [[text] for text in batch.column("text").fill_null("").to_pylist()]
        texts: list[list[str]] = [[] for _ in which]
        sequences = Sequences.of(batch, self.config)
        labelled = self._labelled(batch, sequences)
        for row, text, number in zip(sequences.rows.tolist(), labelled.texts, labelled.which.tolist(), strict=True):
            if isinstance(found := labelled.facts[number], Labelled):
                texts[row].append(text)
            failed[found.detail if isinstance(found, RenderError) and found.reason == "template_error" else ""] += 1
        return texts

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
            return _checked(batch, self.tokenizer.vocab_size, self.config.min_label_tokens)
        decision = self._documents(batch) if "text" in names else self._conversations(batch)
        unknown = self.tokenizer.unknown_id
        if unknown is None or unknown in (self.tokenizer.bos_id, self.tokenizer.eos_id):
            return decision
        ids = (decision.columns[name].flatten() for name, _ in SIDES if name in decision.columns)
        found = sum(int(np.count_nonzero(own.to_numpy() == unknown)) for own in ids)
        return replace(decision, notes=decision.notes | {UNKNOWN: found}) if found else decision

    def _documents(self, batch: pa.RecordBatch) -> Decision:
        texts = batch.column("text").fill_null("").to_pylist()
        ids, offsets = self.encoder.encode(texts, self.choice.engine)
        fast = len(texts) if self.choice.engine == "fastokens" else 0
        self._count(fast, len(texts) - fast)
        lengths = np.diff(offsets)
        refused: dict[int, RenderError] = {
            row: RenderError("no text", "empty") for row in np.flatnonzero(lengths == 0).tolist()
        }
        for row, text in enumerate(texts):
            if RESERVED in text and RESERVED_SPELLING.search(text):
                refused[row] = RenderError("the text has U+FDD0 before a private-use character", "reserved_code_point")
        if refused:
            alive = ~np.isin(np.arange(len(texts)), list(refused))
            ids, offsets = ids[np.repeat(alive, lengths)], np.concatenate([[0], np.cumsum(lengths * alive)])
        bos = [self.tokenizer.bos_id] if self.config.add_bos else []
        eos = [self.tokenizer.eos_id] if self.config.add_eos else []
        ids, offsets = surround(ids, offsets, bos, eos)
        columns = {
            "input_ids": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(ids, pa.int32())),
            "label_spans": pa.nulls(len(texts), SPANS),
            TURN_STARTS: pa.nulls(len(texts), pa.list_(pa.int32())),
        }
        return _decision(refused, columns, "text", len(texts))

    def _check_template(self) -> None:
        """Refuse a template whose rendering of one question and answer does not show where the answer is."""
        if self._loaded.template_is_checked:
            return
        try:
            self.encoder.labeller.label([{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}])
        except RenderError as e:
            if e.reason == "labels_uncertain":
                raise ModelError(f"{self.tokenizer.template_where} cannot be used to train: {e.detail}") from None
        self._loaded.template_is_checked = True

    def _labelled(self, batch: pa.RecordBatch, sequences: "Sequences") -> LabelledBatch:
        """Each sequence of a batch, rendered and labelled."""
        tools, variables = batch.column("tools").to_pylist(), _row_variables(batch)[0]
        rows = sequences.rows.tolist()
        shapes = self.encoder.shapes(self.config.train_on)
        return shapes.label(sequences.messages, [tools[row] for row in rows], [variables[row] for row in rows])

    def _conversations(self, batch: pa.RecordBatch) -> Decision:
        """Tokenize conversations or preference pairs. Both sides of a pair are kept or dropped; a side without an
        answer has no tokens (an answer that is judged by itself has one side)."""
        self._check_template()
        sequences = Sequences.of(batch, self.config)
        labelled = self._labelled(batch, sequences)
        texts, places, num_places, which, facts = labelled
        ids, offsets, at, library = self.encoder.encode_placed(texts, places, num_places, self.choice.engine)
        self._count(len(texts) - library, library)
        num_edges = np.array([f.num_edges if isinstance(f, Labelled) else 0 for f in facts], np.int64)[which]
        num_starts = num_places - num_edges
        is_edge = np.repeat(np.tile([True, False], len(texts)), np.stack([num_edges, num_starts], axis=1).ravel())
        spans = at[is_edge].reshape(-1, 2)
        # the first token of a sequence is never a target
        targets = np.concatenate([[0], np.cumsum(spans[:, 1] - np.maximum(spans[:, 0], 1))])
        learnt, least = np.diff(targets[np.cumsum([0, *num_edges]) // 2]), self.config.min_label_tokens
        empty = np.setdiff1d(np.arange(batch.num_rows), sequences.rows).tolist()
        refused = dict.fromkeys(empty, RenderError("neither side has an answer", "empty"))
        for k in np.flatnonzero(learnt < max(least, 1)).tolist():
            row, found = int(sequences.rows[k]), facts[which[k]]
            if row not in refused and isinstance(found, RenderError):
                refused[row] = found
            elif row not in refused and learnt[k] < least:
                turns = int(num_edges[k]) // 2
                refused[row] = RenderError(f"fewer than {least} label tokens in {turns} labelled turns", "no_labels")
        alive = ~np.isin(sequences.rows, list(refused))
        lists = (
            _lists(ids, offsets),
            _lists(spans.astype(np.int32).ravel(), np.cumsum([0, *num_edges])),
            _lists(at[~is_edge].astype(np.int32), np.cumsum([0, *num_starts])),
        )
        columns: dict[str, pa.Array] = {}
        for side in range(1 + sequences.are_pairs):
            own = np.flatnonzero(alive & (sequences.sides == side))
            columns |= _columns(side, lists, own, sequences.rows[own], batch.num_rows)
        if sequences.are_pairs or self.config.thinking == "last":
            del columns[STARTS]
        if sequences.are_pairs:
            del columns[TURN_STARTS]
        notes = self._notes(batch, sequences.rows, labelled, refused)
        return _decision(
            refused, columns, "preference" if sequences.are_pairs else "conversation", batch.num_rows, notes
        )

    def _notes(
        self, batch: pa.RecordBatch, rows: Int64, labelled: LabelledBatch, refused: Mapping[int, RenderError]
    ) -> dict[str, int]:
        """How many of the kept rows each note is made of. `rows` are those of the sequences."""
        noted: dict[str, set[int]] = {name: set() for name in (UNENDED, NOT_RENDERED, STRIPPED)}
        for number, found in enumerate(labelled.facts):
            if isinstance(found, Labelled) and found[3:] != (0, 0, True):
                flags = (not found.ended, found.thoughts_not_rendered, found.thoughts_stripped)
                for name in compress(list(noted), flags):
                    noted[name].update(rows[labelled.which == number].tolist())
        if self.config.thinking != "last":
            noted[STRIPPED] = set()
        noted[ROUNDED] = _with_other_weights(batch)
        counts = {name: len(found - refused.keys()) for name, found in noted.items()}
        return counts | {IGNORED: _row_variables(batch)[1]}


@dataclass(frozen=True, slots=True)
class Sequences:
    """The sequences of a batch, in the order of their rows."""

    messages: pa.ListArray
    """Messages before the answers to label have weight 0."""
    rows: Int64
    """The row of each sequence."""
    sides: Int64
    """0; 1 for the rejected side of a preference pair."""
    are_pairs: bool

    @classmethod
    def of(cls, batch: pa.RecordBatch, config: TokenizeConfig) -> Self:
        """The sequences of a batch of conversations or preference pairs."""
        number = np.arange(batch.num_rows)
        if "prompt" not in batch.schema.names:
            messages = batch.column("messages")
            if config.thinking == "every_turn" and config.train_on == "all":
                return cls(*_each_answer(messages), are_pairs=False)
            return cls(messages, number, np.zeros_like(number), are_pairs=False)
        columns = [batch.column(name) for name in ("prompt", "chosen", "rejected")]
        flat = pa.concat_arrays([column.flatten() for column in columns])
        sizes = np.stack([_lengths(column) for column in columns])
        first = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)  # in `flat`, which has the columns in order
        rows, sides = np.repeat(number, 2), np.tile([0, 1], batch.num_rows)
        has_answer = sizes[1 + sides, rows] > 0
        rows, sides = rows[has_answer], sides[has_answer]
        context, answer = (first[0][rows], sizes[0][rows]), (first[1 + sides, rows], sizes[1 + sides, rows])
        return cls(_joined(flat, context, answer), rows, sides, are_pairs=True)


def _each_answer(messages: pa.ListArray) -> tuple[pa.ListArray, Int64, Int64]:
    """A sequence for each answer that has weight: the messages up to it. A row without one stays whole."""
    flat, sizes = messages.flatten(), _lengths(messages)
    first = np.cumsum(sizes) - sizes
    is_answer = pc.equal(flat.field("role"), "assistant").fill_null(False).to_numpy(zero_copy_only=False)
    answers = np.flatnonzero(is_answer & (flat.field("weight").fill_null(1.0).to_numpy(zero_copy_only=False) != 0))
    rows = np.repeat(np.arange(len(sizes)), sizes)[answers]
    without = np.setdiff1d(np.arange(len(sizes)), rows)
    order = np.argsort(np.concatenate([rows, without]), kind="stable")
    rows = np.concatenate([rows, without])[order]
    begin = np.concatenate([answers, first[without]])[order]
    size = np.concatenate([np.ones_like(answers), sizes[without]])[order]
    return _joined(flat, (first[rows], begin - first[rows]), (begin, size)), rows, np.zeros_like(rows)


def _joined(flat: pa.StructArray, context: tuple[Int64, Int64], answer: tuple[Int64, Int64]) -> pa.ListArray:
    """Sequences of messages from two parts of `flat` each (starts, sizes): context, which loses its weight, and
    answer."""
    starts, sizes = (np.stack(pair, axis=1).ravel() for pair in zip(context, answer, strict=True))
    before = np.cumsum(sizes) - sizes
    taken = flat.take(pa.array(np.arange(sizes.sum()) + np.repeat(starts - before, sizes)))
    is_context = pa.array(np.repeat(np.tile([True, False], len(sizes) // 2), sizes))
    weight = pc.if_else(is_context, 0.0, taken.field("weight"))
    fields = [weight if field.name == "weight" else taken.field(field.name) for field in taken.type]
    offsets = pa.array(np.append(before[::2], sizes.sum()), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, fields=list(taken.type)))


def _lengths(lists: pa.Array) -> Int64:
    found: Int64 = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _lists(values: Int32, offsets: Int64) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int32()))


def _columns(side: int, lists: Sequence[pa.ListArray], own: Int64, rows: Int64, num_rows: int) -> dict[str, pa.Array]:
    """The columns of one side of all rows, from the ids, the edges of label spans and the turn starts of all sequences.
    `own` are this side's sequences, and `rows` the rows that they are from, ascending."""
    ids, edges, starts = (whole if len(own) == len(whole) else whole.take(pa.array(own)) for whole in lists)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_rows))])
    of_ids = ids.offsets.to_numpy()
    within = of_ids[:-1] - of_ids[bounds[rows]]
    """The offset of each sequence in its row."""

    def in_rows(found: pa.ListArray) -> tuple[Int32, Int32]:
        """Token numbers counted from the start of the row, and their offsets."""
        moved = found.flatten().to_numpy() + np.repeat(within, np.diff(found.offsets.to_numpy()))
        return moved.astype(np.int32), found.offsets.to_numpy()[bounds]

    flat_edges, of_edges = in_rows(edges)
    flat_starts, of_starts = in_rows(starts)
    pairs = pa.StructArray.from_arrays([flat_edges[::2], flat_edges[1::2]], fields=list(SPANS.value_type))
    ids_name, spans_name = SIDES[side]
    return {
        ids_name: pa.ListArray.from_arrays(pa.array(of_ids[bounds]), ids.flatten()),
        spans_name: pa.ListArray.from_arrays(pa.array(of_edges // 2), pairs, type=SPANS),
        TURN_STARTS: _lists(flat_starts, of_starts.astype(np.int64)),
        STARTS: _lists(within.astype(np.int32), bounds),
    }


def surround(ids: Int32, offsets: Int64, before: Sequence[Any], after: Sequence[Any]) -> tuple[Int32, Int64]:
    """Put the ids `before` and `after` around each row that is not empty; returns the new ids and offsets."""
    filled = np.diff(offsets) > 0
    rows = int(filled.sum())
    behind = np.repeat(offsets[1:][filled], len(after)), np.tile(after, rows)
    front = np.repeat(offsets[:-1][filled], len(before)), np.tile(before, rows)
    if len(behind[0]) + len(front[0]):
        # at one place, the end of a row comes before the start of the next one
        ids = np.insert(ids, *(np.concatenate(parts) for parts in zip(behind, front, strict=True)))
    return ids, np.concatenate([[0], np.cumsum(np.diff(offsets) + filled * (len(before) + len(after)))])


def _with_other_weights(batch: pa.RecordBatch) -> set[int]:
    """The rows with an answer whose loss weight is neither 0 nor 1."""
    rows: set[int] = set()
    for name in ("messages", "prompt", "chosen", "rejected"):
        messages = batch.column(name) if name in batch.schema.names else None
        if messages is None or messages.flatten().field("weight").null_count == len(messages.flatten()):
            continue
        weights, roles = (messages.flatten().field(field) for field in ("weight", "role"))
        other = pc.and_(pc.not_equal(weights, 0), pc.not_equal(weights, 1))
        found = pc.and_(other, pc.equal(roles, "assistant")).fill_null(False)
        rows |= set(pc.filter(pc.list_parent_indices(messages), found).to_pylist())
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
    refused: Mapping[int, RenderError], columns: dict[str, pa.Array], source: str, rows: int,
    notes: Mapping[str, int] = MappingProxyType({}),
) -> Decision:  # fmt: skip
    told = [e and (e.reason, e.detail) for e in map(refused.get, range(rows))] if refused else [None] * rows
    reasons, details = (pa.array([t and t[n] for t in told], pa.string()) for n in (0, 1))
    columns = columns | {"segment_source": pa.repeat(pa.scalar(source), rows)}
    return Decision(reasons, details, columns, notes={name: count for name, count in notes.items() if count})


def _checked(batch: pa.RecordBatch, vocab_size: int, min_label_tokens: int) -> Decision:
    """Drop rows that bring their own ids if these are outside of the vocabulary, or their label spans of the ids."""
    refused: dict[int, RenderError] = {}
    for ids_name, spans_name in SIDES:
        if ids_name in batch.schema.names:
            rows = zip(batch.column(ids_name), batch.column(spans_name).to_pylist(), strict=True)
            for i, (ids, spans) in enumerate(rows):
                flat = np.empty(0, np.int32) if ids.values is None else ids.values.to_numpy()
                if problem := _problem(flat, spans, vocab_size, min_label_tokens):
                    refused.setdefault(i, problem)
    made = _decision(refused, {}, "", batch.num_rows)
    return replace(made, columns={"segment_source": batch.column("segment_source")})


def _problem(ids: Int32, spans: Any, vocab_size: int, min_label_tokens: int) -> RenderError | None:
    if not len(ids):
        return RenderError("no ids", "empty")
    if len(outside := ids[(ids < 0) | (ids >= vocab_size)]):
        return RenderError(f"id {outside[0]}; the tokenizer's vocabulary has {vocab_size}", "id_out_of_vocabulary")
    edges = [0, *(e for s in spans or () for e in (s["start"], s["end"])), len(ids)]
    if edges != sorted(edges):
        return RenderError(f"label spans are not in order or leave the {len(ids)} ids", "bad_label_spans")
    if spans is not None and sum(s["end"] - max(s["start"], 1) for s in spans) < min_label_tokens:
        return RenderError(f"fewer than {min_label_tokens} label tokens", "no_labels")
    return None
