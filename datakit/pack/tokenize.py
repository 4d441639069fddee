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
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import SPANS, tokens
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.manifest import data_dir
from datakit.pack.bpe_pipeline import NotRecognised, recognise, recognised
from datakit.pack.chat import RESERVED, ChatTokenizer
from datakit.pack.fast_bpe import FastBpe, Int32, Int64, Tally
from datakit.pack.labels import Labelled, RowError, Spans, label, labelled_bytes, labelled_ids, plain_ids
from datakit.stage import Decision, Parent, Stage
from datakit.text.characters import string_buffers

MIN_FAST_SHARE = 0.99
"""Share of the pieces below which the run says why the library had to encode."""
ENOUGH_BYTES = 500_000
"""The library encodes that much in about the time that the kernels' tables take to make."""


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


@dataclass(slots=True)
class Tokenize(Stage):
    """The stage: any row kind in, token rows out."""

    name: ClassVar[str] = "tokenize"
    holds_gil: ClassVar[bool] = True
    Config: ClassVar[type] = TokenizeConfig
    takes_tokens: ClassVar[bool] = True

    config: TokenizeConfig
    _tokenizer: ChatTokenizer | None = field(default=None, init=False, repr=False, compare=False)
    _fast: FastBpe | NotRecognised | None = field(default=None, init=False, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    _seen: int = field(default=0, init=False, repr=False, compare=False)
    _library: Tally = field(default_factory=Tally, init=False, repr=False, compare=False)
    _checked: bool = field(default=False, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type["Tokenize"], tuple[TokenizeConfig]]:
        return type(self), (self.config,)

    @property
    def tokenizer(self) -> ChatTokenizer:
        """The loaded tokenizer.

        Raises:
            ModelError: it is missing or cannot be used.
        """
        if self._tokenizer is None:
            if not self.config.tokenizer:
                raise ModelError("tokenize: no tokenizer; give --tokenizer FILE_OR_FOLDER or set it in the recipe")
            self._tokenizer = ChatTokenizer.load(Path(self.config.tokenizer), self.config.chat_template)
        return self._tokenizer

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
        return type(self)(replace(self.config, tokenizer=str(tokenizer_folder(trained)))), (trained,)

    def resources(self) -> dict[str, Any]:
        """Tokenizer and template by hash, vocabulary size and special ids; the settings, which travel along, too."""
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

    def kept_columns(self, names: Sequence[str]) -> list[str]:
        """The columns of kept rows: the tokens schema."""
        return list(tokens(preference="rejected_ids" in names).names)

    @property
    def fast(self) -> FastBpe | None:
        """The tokenizer in kernels; None where the library must encode."""
        with self._lock:
            if self._fast is None:
                self._fast = FastBpe.of(self.tokenizer.spec(), self.tokenizer.encoder)
        return self._fast if isinstance(self._fast, FastBpe) else None

    def _kernels(self, size: int) -> FastBpe | None:
        """The kernels, once there is enough text to make up for loading them; the ids are the same either way."""
        self._seen += size
        return self.fast if self._seen > ENOUGH_BYTES else None

    def measured(self) -> dict[str, int]:
        """How text was encoded in this process since this was asked last: see `Tally`."""
        with self._lock:
            tally, self._library = self._library, Tally()
        if isinstance(self._fast, FastBpe):
            tally.add(self._fast.counted())
        return asdict(tally)

    def summary(self, counts: Mapping[str, int]) -> str:
        """What `measured` came to, as a line for people."""
        tally = Tally(**counts)
        said = (
            f"{tally.fast_share:.2%} of the pieces encoded by the kernels ({tally.pieces:,}, of which "
            f"{tally.misses / max(tally.pieces, 1):.1%} merged), {tally.library_rows:,} rows by the library"
        )
        if not tally.library_rows or tally.fast_share >= MIN_FAST_SHARE:
            return said
        try:
            recognise(self.tokenizer.spec())
        except NotRecognised as e:
            return f"{said}: the kernels do not know this tokenizer, {e}"
        return f"{said}: less text than it takes to load the kernels, or text that is not in the normal form"

    def for_kind(self, kind: str) -> "Tokenize":
        """The stage for rows of that kind."""
        return _TokenizeText(self.config) if kind == "document" and recognised(self.tokenizer.spec()) else self

    def open(self) -> None:
        """Load the tokenizer; refuse one that lacks the tokens it is asked for."""
        if multiprocessing.parent_process() is not None:
            os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
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
        work = _Conversations(self.tokenizer, self._kernels(batch.nbytes), self.config, batch)
        decision = work.pairs() if "prompt" in names else work.rows()
        self._count(work.library)
        return decision

    def _count(self, library: Tally) -> None:
        with self._lock:
            self._library.add(library)

    def _check_template(self) -> None:
        """Refuse a template under which not even a plain exchange shows what the assistant says."""
        if self._checked:
            return
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
        try:
            label(self.tokenizer, turns)
        except RowError as e:
            if e.reason == "labels_uncertain":
                raise ModelError(
                    f"{self.tokenizer.where}: this chat template cannot be used to train: {e.detail}"
                ) from None
        self._checked = True

    def _documents(self, batch: pa.RecordBatch) -> Decision:
        bos, eos = self.tokenizer.bos_id, self.tokenizer.eos_id
        before = [bos] if self.config.add_bos and bos is not None else []
        after = [eos] if self.config.add_eos and eos is not None else []
        made = encode_documents(self.tokenizer, self._kernels(batch.nbytes), batch.column("text"), before, after)
        self._count(made.library)
        columns = {"input_ids": made.input_ids, "label_spans": pa.nulls(batch.num_rows, SPANS)}
        return _decision(made.reasons, made.details, columns, "text")


class _TokenizeText(Tokenize):
    """Plain text in kernels, which work in threads."""

    __slots__ = ()
    holds_gil: ClassVar[bool] = False


class _Conversations:
    """Renders, encodes and labels the conversations of a batch."""

    def __init__(
        self, tokenizer: ChatTokenizer, fast: FastBpe | None, config: TokenizeConfig, batch: pa.RecordBatch
    ) -> None:
        self.tokenizer, self.fast, self.config, self.batch = tokenizer, fast, config, batch
        self.tools: list[str | None] = batch.column("tools").to_pylist()
        self.reasons: list[str | None] = [None] * batch.num_rows
        self.details: list[str | None] = [None] * batch.num_rows
        self.library = Tally()

    def rows(self) -> Decision:
        """Conversations."""
        messages = self.batch.column("messages").to_pylist()
        side = self._side(lambda i: (messages[i], 0))
        return _decision(self.reasons, self.details, side.columns("input_ids", "label_spans"), "conversation")

    def pairs(self) -> Decision:
        """Preference pairs: labels on the answers only, both sides kept or neither."""
        prompts, chosen, rejected = (self.batch.column(c).to_pylist() for c in ("prompt", "chosen", "rejected"))
        sides = [self._answered(prompts, answers) for answers in (chosen, rejected)]
        columns: dict[str, pa.Array] = {}
        for side, names in zip(
            sides, (("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")), strict=True
        ):
            for i, reason in enumerate(self.reasons):
                if reason is not None:
                    side.ids[i] = side.spans[i] = None
            columns |= side.columns(*names)
        return _decision(self.reasons, self.details, columns, "preference")

    def _answered(self, prompts: list[list[Any]], answers: list[list[Any]]) -> _Tokens:
        return self._side(lambda i: (prompts[i] + answers[i], len(prompts[i])))

    def _side(self, messages: Callable[[int], tuple[list[dict[str, Any]], int]]) -> _Tokens:
        rendered = {i: r for i in range(self.batch.num_rows) if (r := self._rendered(i, *messages(i))) is not None}
        side = _Tokens.empty(self.batch.num_rows)
        given, least = list(rendered.values()), self.config.min_label_tokens
        made = encode_labelled(self.tokenizer, self.fast, given, least, self.library)
        for i, found in zip(rendered, made, strict=True):
            if isinstance(found, RowError):
                self.reasons[i], self.details[i] = found.reason, found.detail
            else:
                side.ids[i], side.spans[i] = found
        return side

    def _rendered(self, i: int, messages: list[dict[str, Any]], first: int) -> Labelled | None:
        if self.reasons[i] is not None:
            return None
        try:
            if not messages:
                raise RowError("empty", "no messages")
            return label(self.tokenizer, messages, self.tools[i], train_on=self.config.train_on, first=first)
        except RowError as e:
            self.reasons[i], self.details[i] = e.reason, e.detail
            return None


def _decision(
    reasons: list[str | None], details: list[str | None], columns: dict[str, pa.Array], source: str
) -> Decision:
    columns = columns | {"segment_source": pa.repeat(pa.scalar(source), len(reasons))}
    return Decision(pa.array(reasons, pa.string()), pa.array(details, pa.string()), columns)


@dataclass(frozen=True, slots=True)
class Documents:
    """The ids of a batch of documents; a refused one has none."""

    input_ids: pa.ListArray
    reasons: list[str | None]
    details: list[str | None]
    library: Tally
    """What the library encoded because there are no kernels."""


def encode_documents(
    tokenizer: ChatTokenizer, fast: FastBpe | None, texts: pa.Array, before: Sequence[int], after: Sequence[int]
) -> Documents:
    """Encode a string array; `before` and `after` are ids put around each document."""
    encode = fast.encode if fast else _Library(tokenizer).encode
    ids, offsets = encode(texts, before, after)
    library = Tally() if fast else Tally(library_rows=len(texts), library_ids=len(ids))
    reasons: list[str | None] = [None] * len(texts)
    details: list[str | None] = [None] * len(texts)
    alive = np.ones(len(texts), np.bool_)
    for row in _suspects(tokenizer, texts, ids, offsets, len(before) + len(after)):
        own = ids[offsets[row] : offsets[row + 1]].tolist()[len(before) :]
        own = own[: max(len(own) - len(after), 0)]
        try:
            plain_ids(tokenizer, texts[row].as_py() or "", own)
        except RowError as e:
            reasons[row], details[row], alive[row] = e.reason, e.detail, False
    lengths = np.diff(offsets)
    if not alive.all():
        ids, lengths = ids[np.repeat(alive, lengths)], lengths * alive
    starts = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return Documents(pa.ListArray.from_arrays(starts, pa.array(ids, pa.int32())), reasons, details, library)


class _Library:
    """The same as `FastBpe.encode`, for tokenizers that it does not know."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._encoder = tokenizer.encoder

    def encode(self, texts: pa.Array, before: Sequence[int], after: Sequence[int]) -> tuple[Int32, Int64]:
        given = [text or "" for text in texts.to_pylist()]
        found = [e.ids for e in self._encoder.encode_batch_fast(given, add_special_tokens=False)]
        rows = [np.array([*before, *ids, *after], np.int32) for ids in found]
        return np.concatenate([np.empty(0, np.int32), *rows]), np.cumsum([0, *map(len, rows)], dtype=np.int64)


def _suspects(tokenizer: ChatTokenizer, texts: pa.Array, ids: Int32, offsets: Int64, around: int) -> list[int]:
    """Rows that `plain_ids` may refuse: the empty ones, and those in which a mark of added tokens occurs."""
    found: list[npt.NDArray[np.int64]] = [np.flatnonzero(np.diff(offsets) <= around)]
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


Made = tuple[npt.NDArray[np.int32], Spans]


def encode_labelled(
    tokenizer: ChatTokenizer, fast: FastBpe | None, rows: Sequence[Labelled], min_label_tokens: int, library: Tally
) -> Iterator[Made | RowError]:
    """The ids and label spans of each row, or why it is to be dropped, in order; `library` counts what it encoded."""
    made = _by_kernels(tokenizer, fast, rows, min_label_tokens) if fast else [None] * len(rows)
    rest = [row for row, found in zip(rows, made, strict=True) if found is None]
    encodings = iter(tokenizer.encode([row.text for row in rest]))
    for row, found in zip(rows, made, strict=True):
        if found is not None:
            yield found
            continue
        try:
            encoding = next(encodings)
            library.add(Tally(library_rows=1, library_ids=len(encoding.ids)))
            yield labelled_ids(tokenizer, row, encoding, min_label_tokens)
        except RowError as e:
            yield e


def _by_kernels(
    tokenizer: ChatTokenizer, fast: FastBpe, rows: Sequence[Labelled], min_label_tokens: int
) -> list[Made | RowError | None]:
    """None for rows whose tokens cannot be placed in their text: those that normalisation changes."""
    ids, offsets, ends, aligned = fast.encode_aligned(pa.array([row.text for row in rows], pa.string()))
    made: list[Made | RowError | None] = [None] * len(rows)
    for i in np.flatnonzero(aligned).tolist():
        own = slice(offsets[i], offsets[i + 1])
        try:
            made[i] = labelled_bytes(tokenizer, rows[i], ids[own], ends[own], min_label_tokens)
        except RowError as e:
            made[i] = e
    return made


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
