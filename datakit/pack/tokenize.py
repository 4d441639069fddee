"""Rows of text, conversations or preference pairs -> token ids with the spans that the model must produce.

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

**Which library encodes.** `tokenizers` is the reference; `fastokens` encodes where it gives the same ids. When a
tokenizer is loaded, both encode some awkward strings and texts of the tokenizer's added tokens; and of each batch, both
encode a small sample. If one id differs, `tokenizers` encodes every batch, or this one. This depends on the tokenizer
and the batch alone, so it is the same for every worker and every resumed run.

**Where tokens are.** fastokens returns ids without offsets in the text. A token of a byte-level vocabulary stands for
so many bytes; if the normaliser leaves a text as it is, and the bytes of its tokens add up to those of the text, each
token's place follows. `tokenizers` tells the places in all other rows.
"""

import datetime
import hashlib
import json
import multiprocessing
import os
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, compress
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Encoding
from tokenizers.normalizers import NFC

import datakit.storage as storage
from datakit.config import OF_DOCUMENTS, OF_TURNS, option
from datakit.data import SPANS, TURN_STARTS, tokens
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.manifest import Ledger, tokenizer_file
from datakit.pack.chat import ChatTokenizer
from datakit.pack.labels import Labelled, LabelledBatch, Labeller, Shapes
from datakit.pack.marks import FIRST_PRIVATE, PRIVATE, RESERVED, RESERVED_SPELLING, RenderError
from datakit.stage import Decision, Extras, Parent, Stage

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
NONE: Int64 = np.empty(0, np.int64)


SMALL_BYTES = 500_000
"""`tokenizers` encodes smaller inputs: it needs less time for them than fastokens needs to load."""
FIRST_ROWS = 128
"""A template that fails on so many first rows of every batch ends the run."""
MAX_NOT_RENDERED = MAX_UNKNOWN = 0.01
"""Alarms: thoughts are left out of a larger share of the rows, or a larger share of the tokens is unknown."""
SIDES = (("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans"))
NOT_RENDERED, STRIPPED, UNENDED = "reasoning_not_rendered", "reasoning_stripped", "turns_without_end"
IGNORED, ROUNDED, UNKNOWN = "chat_template_kwargs_ignored", "loss_weights_rounded", "unknown_tokens"
STARTS = "sequence_starts"


# ---------------------------------------------------------------------- texts to ids

SAMPLED, PASSAGE_CHARS = 2000, 256
"""The sample of a batch: one of so many characters, in passages from the middle of texts. `tokenizers` takes as long
for it as fastokens for 3 to 8% of the batch."""
ADDED_PAIRS = 1024
"""Pairs of added tokens that both libraries encode, at least; each token is in one."""
AWKWARD = (
    *(" ", "  ", "\n", "\r\n\r\n", "\t x", "a\u00a0b", "\u3000", "\u2028", "\x85", "\x1c", "\x00", "\u200b", "\ufeffa"),
    *("we'LL they've 'S 'ſ 'K", "it’s ''", "1 12345 ٣²½Ⅷ〇一𝟘 १२", "a1b2 3.14e-10", "x" * 300, "=" * 70, " " * 50),
    *("é e\u0301 \u212b \u0958 \u1112\u1161\u11ab", "\u0345\u0334\u0301 \u0334\u0345", "ﬁ Ǆ ß ẞ İ ı"),
    "中文字，首都です。",
    *("ไทยนี้ 한국 हिन्दी עברית العربية", "🦊 👩‍👩‍👧 🇩🇪", "\U0010ffff \ufffd \ue000 \ufdd1", "日本の首都です東京は" * 4),
    *("!...---://_#\\", '"quoted"', "<|im_end|>", "<|im_", "<s> [INST] <think>", "▁ Ġ Ċ <0x0A> ##ing", "aaaaab" * 12),
    *("\tdef f(x):\n        return x\n\n\n", "https://a.b/c?d=e&f=%20", "ALLCAPS CamelCase snake_case"),
    "\n \n\t\n  x\r y",
)  # fmt: skip
"""Strings on which tokenizers often differ."""

FastEncode = Callable[[list[str]], tuple[Int32, Int64]]


class Encoded(NamedTuple):
    """What the texts of a batch became."""

    ids: Int32
    """Of all texts, flat."""
    offsets: Int64
    """Where each text begins in `ids`, and the end: (texts + 1,)."""
    tokens: Int64
    """For each place the first token of its text that begins at this character or after it."""


def sample(texts: Sequence[str]) -> list[str]:
    """Passages of some texts, spread evenly over a batch; of each text at most one, of a batch with texts one."""
    step = max(1, SAMPLED * PASSAGE_CHARS * len(texts) // max(1, sum(map(len, texts))))
    spread = texts[min(step, len(texts)) // 2 :: step]
    return [text[max(0, len(text) - PASSAGE_CHARS) // 2 :][:PASSAGE_CHARS] for text in spread]


EXCHANGE = ({"role": "user", "content": "?"}, {"role": "assistant", "content": "the"})
"""A question with an answer, for probes of templates."""


def _side_by_side(contents: list[str]) -> Iterator[str]:
    """Texts in which added tokens touch each other, words and white space: where flags such as `single_word` matter."""
    for i, one in enumerate(contents):
        for step in range(min(len(contents), 1 + ADDED_PAIRS // len(contents))):
            other = contents[(i + step) % len(contents)]
            yield f"{one}{other} {other}{one}  {one}a{other}\n{one} \n_{other}_ \t{one}\u00e9"


class Encoder:
    """A tokenizer, loaded in both libraries, with the plans of conversations. Threads may share one."""

    def __init__(self, tokenizer: ChatTokenizer, train_on: Literal["all", "last"] = "all") -> None:
        self.tokenizer, self.train_on = tokenizer, train_on

    @cached_property
    def fast(self) -> FastEncode | None:
        """How fastokens encodes texts; None if it does not, or gives other ids than `tokenizers`."""
        spec = self.tokenizer.spec()
        try:
            fast = fastokens_of(spec)
        except Exception:  # fastokens raises several types
            return None
        awkward = [*AWKWARD, *_side_by_side([t["content"] for t in spec["added_tokens"]])]
        return fast if self._agrees(fast, awkward) else None

    def _agrees(self, fast: FastEncode, texts: list[str]) -> bool:
        """Whether fastokens gives the ids of `tokenizers`; not if that fails on a text."""
        try:
            wanted = self.tokenizer.encode(texts, offsets=False)
        except ModelError:
            return False
        ids, offsets = fast(texts)
        rows = zip(wanted, offsets, offsets[1:], strict=False)
        return all(np.array_equal(ids[a:b], encoding.ids) for encoding, a, b in rows)

    @cached_property
    def shapes(self) -> Shapes:
        """The plans of conversations, which all batches of a process share.

        Raises:
            ModelError: the rendering of one question and answer does not show where the answer is.
        """
        labeller = Labeller(self.tokenizer)
        try:
            labeller.label(EXCHANGE)
        except RenderError as e:
            if e.reason == "labels_uncertain":
                where = self.tokenizer.template_where
                raise ModelError(f"{where} cannot be used to train: {e.detail}") from None
        return Shapes(labeller, self.train_on)

    @cached_property
    def splits_answers(self) -> bool:
        """Whether an answer begins inside of a token, as behind a prompt that ends with a space: it is not learned."""
        with suppress(RenderError):
            found = self.shapes.labeller.label(EXCHANGE)
            return found.places[0] not in [start for start, _ in self.tokenizer.encode([found.text])[0].offsets]
        return False

    def encode(self, texts: list[str], places: Int64 = NONE, of_text: Int64 = NONE, *, little: bool = False) -> Encoded:
        """Encode texts, and find the tokens at some places: characters of the texts with the numbers `of_text`.

        With `little` text, `tokenizers` encodes it: it needs less time than fastokens needs to load.
        """
        fast = None if little else self.fast
        certain, tokens = np.zeros(len(texts), bool), np.zeros(len(places), np.int64)
        if fast and self._agrees(fast, sample(texts)):
            ids, offsets = fast(texts)
            certain[:] = True
            if len(places):
                tokens, certain = self._by_bytes(texts, ids, offsets, places, of_text)
        else:
            fast = None
        rest = np.flatnonzero(~certain).tolist()
        encodings = dict(zip(rest, self.tokenizer.encode([texts[i] for i in rest], len(places) > 0), strict=True))
        if not fast:
            ids, offsets = _flat(encodings.values())
        starts = {i: [start for start, _ in encoding.offsets] for i, encoding in encodings.items() if len(places)}
        for k in np.flatnonzero(~certain[of_text]).tolist():
            tokens[k] = bisect_left(starts[of_text[k]], places[k])
        return Encoded(ids, offsets, tokens)

    def _by_bytes(
        self, texts: list[str], ids: Int32, offsets: Int64, places: Int64, of_text: Int64
    ) -> tuple[Int64, npt.NDArray[np.bool_]]:
        """The tokens at places in texts, from the numbers of bytes that tokens stand for; and the texts for which these
        are certain, bool (texts,)."""
        is_ascii = np.fromiter(map(str.isascii, texts), np.bool_, len(texts))
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        for i in np.flatnonzero(~is_ascii).tolist():
            sizes[i] = len(texts[i].encode())
        before = np.append(0, np.cumsum(self._token_bytes[ids]))
        until = before[offsets]
        certain = np.diff(until) == sizes
        if self.tokenizer.encoder.normalizer is not None:
            certain &= np.fromiter(map(self._is_normal, texts), np.bool_, len(texts))
        wanted, wide = until[of_text] + places, np.flatnonzero(~is_ascii[of_text])
        wanted[wide] += _more_bytes(texts, of_text[wide].tolist(), places[wide].tolist())
        found = np.searchsorted(before[:-1], wanted)
        return np.minimum(found, offsets[1:][of_text]) - offsets[of_text], certain

    def _is_normal(self, text: str) -> bool:
        """Whether the normaliser leaves a text as it is."""
        normalizer = self.tokenizer.encoder.normalizer
        if isinstance(normalizer, NFC):
            return text.isascii() or unicodedata.is_normalized("NFC", text)
        normal: str = normalizer.normalize_str(text)
        return normal == text

    @cached_property
    def _token_bytes(self) -> Int64:
        """How many bytes of text each token stands for, int64 (ids,); 0 where the vocabulary is not byte-level."""
        spec, sizes = self.tokenizer.spec(), np.zeros(self.tokenizer.vocab_size, np.int64)
        if '"ByteLevel"' in json.dumps([spec.get("pre_tokenizer"), spec.get("decoder")]):
            vocab = spec["model"]["vocab"]  # it has a character for each byte
            sizes[list(vocab.values())] = list(map(len, vocab))
        for token in spec["added_tokens"]:
            sizes[token["id"]] = len(token["content"].encode())
        return sizes


def _more_bytes(texts: list[str], of_text: list[int], places: list[int]) -> Int64:
    """How many more bytes than characters stand before each place of a text. A text is read once if its places are
    ascending."""
    found, last, at, more = list[int](), -1, 0, 0
    for i, place in zip(of_text, places, strict=True):
        if i != last or place < at:
            last, at, more = i, 0, 0
        more += len(texts[i][at:place].encode()) - (place - at)
        at = place
        found.append(more)
    return np.array(found, np.int64)


def _flat(encodings: Iterable[Encoding]) -> tuple[Int32, Int64]:
    """The ids of all texts, and their offsets."""
    rows = [np.empty(0, np.int32), *(np.array(e.ids, np.int32) for e in encodings)]
    return np.concatenate(rows), np.cumsum([len(row) for row in rows], dtype=np.int64)


def fastokens_of(spec: dict[str, Any]) -> FastEncode:
    """How fastokens encodes texts with a tokenizer of this definition.

    Raises:
        ValueError: it does not support a part of the definition. It raises other exceptions, too.
    """
    import fastokens

    _fill_holes(spec["model"].get("vocab"), len(spec["added_tokens"]))
    _join_merges(spec["model"])
    made = fastokens.Tokenizer.from_json_str(orjson.dumps(spec).decode())
    made.no_truncation()
    made.no_padding()

    def encode(texts: list[str]) -> tuple[Int32, Int64]:
        ids, offsets = made.encode_batch_flat(texts)
        return np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64)

    return encode


def _fill_holes(vocab: Any, added: int) -> None:
    """Give the ids that a vocabulary skips (GPT-4o's does) to tokens that no text reaches: fastokens needs every id."""
    if isinstance(vocab, dict) and max(vocab.values(), default=0) < len(vocab) + PRIVATE - added:
        missing = sorted(set(range(max(vocab.values(), default=0))) - set(vocab.values()))
        vocab |= {RESERVED + chr(FIRST_PRIVATE + added + i): number for i, number in enumerate(missing)}


def _join_merges(model: dict[str, Any]) -> None:
    """Write merges as texts, which fastokens reads a fifth faster than pairs; not if a token has a space."""
    merges = model.get("merges") or []
    if not any(isinstance(pair, str) or " " in pair[0] or " " in pair[1] for pair in merges):
        model["merges"] = list(map(" ".join, merges))


def encoder_of(
    tokenizer: str, chat_template: str, variables: Mapping[str, Any], train_on: Literal["all", "last"]
) -> Encoder:
    """The encoder of a tokenizer, cached per process until one of its files changes: a large one takes seconds to load.

    Raises:
        ModelError: a file is missing or cannot be used.
    """
    files = [*tokenizer_file(tokenizer).parent.iterdir(), storage.here(chat_template)]
    found = ((file, file.stat()) for file in files if file.is_file())
    stamps = tuple(sorted((str(file), s.st_mtime_ns, s.st_size) for file, s in found))
    return _loaded(tokenizer, chat_template, json.dumps(variables, sort_keys=True), train_on, stamps)


@lru_cache(maxsize=1)
def _loaded(
    tokenizer: str, chat_template: str, variables: str, train_on: Literal["all", "last"],
    _: tuple[tuple[str, int, int], ...],
) -> Encoder:  # fmt: skip
    return Encoder(ChatTokenizer.load(tokenizer, chat_template, json.loads(variables)), train_on)


# ---------------------------------------------------------------------- the stage


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizeConfig:
    """How rows become tokens."""

    tokenizer: str = option(
        "", "a tokenizer.json, its folder, a result with one, or a name on the Hugging Face Hub", path=True
    )
    chat_template: str = option(
        "", "chatml, llama3, plain or a template file; empty: the tokenizer's own, else chatml", path=True
    )
    train_on: Literal["all", "last"] = option("all", "which assistant turns are labelled", acts_with=OF_TURNS)
    thinking: Literal["last", "every_turn"] = option(
        "last",
        "conversations as one sequence, or one for each answer, with its thought: more tokens, all thoughts",
        acts_with={"kind": ("conversation",)},
    )
    template_var: dict[str, Any] = option(
        {}, "a variable of the chat template: enable_thinking=false, reasoning_effort=low, today=2025-07-31"
    )
    add_bos: bool = option(False, "begin each document with the tokenizer's bos_token", acts_with=OF_DOCUMENTS)
    add_eos: bool = option(True, "end each document with the tokenizer's eos_token", acts_with=OF_DOCUMENTS)
    min_label_tokens: int = option(1, "drop conversations with fewer label tokens", acts_with=OF_TURNS)

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
    output_kind = "tokens"
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
    little: bool = False
    """Whether the run has so little text that `tokenizers` encodes it."""
    holds_gil: bool = True
    """False if fastokens encodes documents (in its own threads); templates and `tokenizers` keep the lock."""

    def __reduce__(self) -> tuple[type["Tokenize"], tuple[TokenizeConfig, str, bool]]:
        return type(self), (self.config, self.kind, self.little)

    @property
    def tokenizer(self) -> ChatTokenizer:
        """The loaded tokenizer.

        Raises:
            ModelError: it is missing or cannot be used.
        """
        return self.encoder.tokenizer

    @cached_property
    def encoder(self) -> Encoder:
        """The loaded tokenizer in both libraries."""
        if not self.config.tokenizer:
            raise UsageError("tokenize: no tokenizer; give --tokenizer FILE_OR_FOLDER or set it in the recipe")
        variables = template_variables(self.config.template_var)
        return encoder_of(self.config.tokenizer, self.config.chat_template, variables, self.config.train_on)

    def check(self) -> None:
        """Load the tokenizer if the config names one; else the recipe trains one before this stage."""
        if self.config.tokenizer:
            self.open()

    def use_results(self, earlier: Mapping[str, Parent], target: Path, kind: str) -> tuple[Self, tuple[Parent, ...]]:
        """The stage with the tokenizer that the recipe trained, unless the config names one."""
        if self.config.tokenizer or "tokenizer" not in earlier:
            return self, ()
        trained = earlier["tokenizer"]
        config = replace(self.config, tokenizer=str(tokenizer_file(trained.path).parent))
        return replace(self, config=config), (trained,)

    def resources(self) -> dict[str, Any]:
        """The tokenizer's facts: hashes of tokenizer, template and settings, vocabulary size, special ids."""
        settings = self.tokenizer.files()["tokenizer_config.json"]
        return {"tokenizer": self.tokenizer.facts() | {"settings_sha256": hashlib.sha256(settings).hexdigest()}}

    def extras(self, ledger: Ledger) -> Extras:
        """The tokenizer's files, and facts about it; the revision of one from the Hugging Face Hub. Alarms if the
        template leaves thoughts out of more than 1% of the rows, if it hides first tokens of answers, or text is lost
        in encoding."""
        files = {f"kept/tokenizer/{name}": content for name, content in self.tokenizer.files().items()}
        folder = Path(self.tokenizer.where).parent
        hub = {"revision": folder.name} if folder.parent.name == "snapshots" else {}
        facts: dict[str, Any] = {"tokenizer": self.tokenizer.facts() | {"files": list(files)} | hub}
        rows, made = ledger.rows.kept, ledger.tokens.kept if ledger.tokens else 0
        lost, unknown = (ledger.notes.get(name, 0) for name in (NOT_RENDERED, UNKNOWN))
        found = list[str]()
        if lost > MAX_NOT_RENDERED * rows:
            found.append(
                f"the chat template does not render the thoughts of {lost} of {rows} rows ({NOT_RENDERED}): "
                "use a template of a thinking model, or --chat-template"
            )
        if unknown > MAX_UNKNOWN * made:
            found.append(
                f"{unknown:,} of {made:,} tokens are unknown to the tokenizer ({UNKNOWN}): "
                "their text is lost; use a tokenizer for this language or script, or one with bytes as tokens"
            )
        if self.kind in ("conversation", "preference") and self.encoder.splits_answers:
            found.append(
                f"the prompt of {self.tokenizer.template_where} ends inside of a token, so the first token of each "
                "answer is not learned: let it end before the space, and the answer begin with the space"
            )
        if self.tokenizer.drops_unknown:
            found.append(
                "the tokenizer has neither an unknown token nor bytes as tokens: characters that its vocabulary does "
                "not have vanish, and nothing counts them"
            )
        return Extras(facts | ({"alarms": found} if found else {}), files=files)

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of that kind."""
        return replace(self, kind=kind)

    def prepare(self, rows: Iterator[pa.RecordBatch]) -> Self:
        """Look whether there is little text.

        Raises:
            ModelError: the template fails on the first rows of every batch.
        """
        size, failed = 0, Counter[str]()
        for batch in rows:
            size += batch.nbytes
            if not {"text", "input_ids"} & set(batch.schema.names):
                labelled = self._labelled(batch.slice(0, FIRST_ROWS))[0]
                errors = [
                    f.detail if isinstance(f, RenderError) and f.reason == "template_error" else ""
                    for f in labelled.facts
                ]
                failed.update(errors[number] for number in labelled.which.tolist())
            if size >= SMALL_BYTES and (failed[""] or not failed):
                break
        if failed and not failed[""]:
            why = failed.most_common(1)[0][0]
            raise ModelError(f"{self.tokenizer.template_where} fails on every row: {why}")
        little = size < SMALL_BYTES
        return replace(self, little=little, holds_gil=self.kind != "document" or little or self.encoder.fast is None)

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
            decision = _checked(batch, self.tokenizer.vocab_size, self.config.min_label_tokens)
        else:
            decision = self._documents(batch) if "text" in names else self._conversations(batch)
        notes, unknown = dict(decision.notes), self.tokenizer.unknown_id
        if unknown is not None and unknown not in (self.tokenizer.bos_id, self.tokenizer.eos_id):
            ids = (decision.columns[name].flatten() for name, _ in SIDES if name in decision.columns)
            if found := sum(int(np.count_nonzero(own.to_numpy() == unknown)) for own in ids):
                notes[UNKNOWN] = found
        # kept rows have the columns of tokens, and where a row's sequences begin if it may have several
        columns = tokens(preference="rejected_ids" in {*names, *decision.columns}).names
        return replace(decision, notes=notes, kept_columns=(*columns, STARTS))

    def _documents(self, batch: pa.RecordBatch) -> Decision:
        texts = batch.column("text").fill_null("").to_pylist()
        refused: dict[int, RenderError] = {}
        for row, text in enumerate(texts):
            if RESERVED in text and RESERVED_SPELLING.search(text):
                refused[row] = RenderError("the text has U+FDD0 before a private-use character", "reserved_code_point")
                texts[row] = ""
        ids, offsets = self.encoder.encode(texts, little=self.little)[:2]
        for row in np.flatnonzero(np.diff(offsets) == 0).tolist():
            refused.setdefault(row, RenderError("no text", "empty"))
        bos = [self.tokenizer.bos_id] if self.config.add_bos else []
        eos = [self.tokenizer.eos_id] if self.config.add_eos else []
        columns = {
            "input_ids": _lists(*surround(ids, offsets, bos, eos)),
            "label_spans": pa.nulls(len(texts), SPANS),
            TURN_STARTS: pa.nulls(len(texts), pa.list_(pa.int32())),
        }
        return _decision(refused, columns, "text", len(texts))

    def _labelled(self, batch: pa.RecordBatch) -> tuple[LabelledBatch, pa.ListArray, Int64, Int64, int]:
        """The sequences of a batch, rendered and labelled; their messages, rows and sides, as `_sequences` returns
        them; and how many rows have variables that are no object."""
        messages, rows, sides = _sequences(batch, self.config)
        variables, ignored = _row_variables(batch)
        tools, of_rows = batch.column("tools").to_pylist(), rows.tolist()
        given = [tools[row] for row in of_rows], [variables[row] for row in of_rows]
        return self.encoder.shapes.label(messages, *given), messages, rows, sides, ignored

    def _conversations(self, batch: pa.RecordBatch) -> Decision:
        """Tokenize conversations or preference pairs. Both sides of a pair are kept or dropped; a side without an
        answer has no tokens (an answer that is judged by itself has one side)."""
        labelled, messages, rows, sides, ignored = self._labelled(batch)
        facts, (of_edge, edges), (of_start, starts) = labelled.facts, labelled.edges, labelled.starts
        of_place, of_span, sequences = np.append(of_edge, of_start), of_edge[::2], np.arange(len(rows))
        places = np.append(edges, starts)
        ids, offsets, at = self.encoder.encode(labelled.texts, places, of_place, little=self.little)
        begins, ends = at[: len(edges)].reshape(-1, 2).T
        turns = np.bincount(of_span, minlength=len(rows))
        learnt = np.bincount(of_span, ends - np.maximum(begins, 1), len(rows))  # no first token is a target

        num_rows, least, are_pairs = batch.num_rows, self.config.min_label_tokens, "prompt" in batch.schema.names
        empty = np.setdiff1d(np.arange(num_rows), rows).tolist()
        refused = dict.fromkeys(
            empty, RenderError("neither side has an answer" if are_pairs else "no messages", "empty")
        )
        for k in np.flatnonzero(learnt < max(least, 1)).tolist():
            found = facts[labelled.which[k]]
            if not isinstance(found, RenderError) and learnt[k] < least:
                found = RenderError(f"fewer than {least} label tokens in {turns[k]} labelled turns", "no_labels")
            if isinstance(found, RenderError):
                refused.setdefault(int(rows[k]), found)

        # `keys` are ascending. Places are counted from the start of the row: where its first sequence begins.
        keys = rows + num_rows * sides
        within = offsets[:-1] - offsets[np.searchsorted(keys, keys)]
        moved = pa.array(at + within[of_place], pa.int32())
        found_edges, found_starts = moved[: len(edges)], moved[len(edges) :]
        spans = pa.StructArray.from_arrays([found_edges[n::2] for n in range(2)], fields=list(SPANS.value_type))
        parts = (
            (pa.array(ids), sequences.repeat(np.diff(offsets))), (spans, of_span), (found_starts, of_start),
            (pa.array(within, pa.int32()), sequences),
        )  # fmt: skip
        columns: dict[str, pa.Array] = {}
        for side in range(1 + are_pairs):
            alive = (sides == side) & ~np.isin(rows, list(refused))
            for name, (values, of) in zip((*SIDES[side], TURN_STARTS, STARTS), parts, strict=True):
                stays = alive[of]
                sizes = np.bincount(rows[of[stays]], minlength=num_rows)
                columns[name] = _lists(values.filter(pa.array(stays)), np.append(0, np.cumsum(sizes)))
        if are_pairs or self.config.thinking == "last":
            del columns[STARTS]
        if are_pairs:
            del columns[TURN_STARTS]

        noted = self._noted(rows, labelled) | {ROUNDED: _with_other_weights(messages, rows)}
        notes = {name: len(found - refused.keys()) for name, found in noted.items()} | {IGNORED: ignored}
        return _decision(refused, columns, "preference" if are_pairs else "conversation", num_rows, notes)

    def _noted(self, rows: Int64, labelled: LabelledBatch) -> dict[str, set[int]]:
        """By note: the rows that it is about. `rows` are those of the sequences."""
        noted: dict[str, set[int]] = {name: set() for name in (UNENDED, NOT_RENDERED, STRIPPED)}
        for number, found in enumerate(labelled.facts):
            if isinstance(found, Labelled) and found[3:] != (0, 0, True):
                flags = (not found.ended, found.thoughts_not_rendered, found.thoughts_stripped)
                for name in compress(list(noted), flags):
                    noted[name].update(rows[labelled.which == number].tolist())
        return noted if self.config.thinking == "last" else noted | {STRIPPED: set()}


def _sequences(batch: pa.RecordBatch, config: TokenizeConfig) -> tuple[pa.ListArray, Int64, Int64]:
    """The sequences of a batch of conversations or preference pairs: messages, of which those before the answers to
    label have weight 0; the row of each, int64; and its side, 1 for the rejected one of a pair. In the order of sides,
    then rows."""
    number = np.arange(batch.num_rows)
    if "prompt" not in batch.schema.names:
        messages, rows = batch.column("messages"), number
        if config.thinking == "every_turn" and config.train_on == "all":
            messages, rows = _each_answer(messages)
        return messages, rows, np.zeros_like(rows)
    columns = [batch.column(name) for name in ("prompt", "chosen", "rejected")]
    flat = pa.concat_arrays([column.flatten() for column in columns])
    sizes = np.stack([pc.list_value_length(column).fill_null(0).to_numpy() for column in columns])
    first = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)  # in `flat`, which has the columns in order
    sides, rows = np.nonzero(sizes[1:])  # an answer has a message
    context, answer = (first[0][rows], sizes[0][rows]), (first[1 + sides, rows], sizes[1 + sides, rows])
    return _with_context(flat, context, answer), rows, sides


def _each_answer(messages: pa.ListArray) -> tuple[pa.ListArray, Int64]:
    """A sequence for each answer that has weight: the messages up to it; and the row of each. A row without one stays
    whole."""
    flat, sizes = messages.flatten(), pc.list_value_length(messages).fill_null(0).to_numpy()
    weights, ends = flat.field("weight").fill_null(1.0).to_pylist(), np.cumsum(sizes)
    said = [role == "assistant" and w != 0 for role, w in zip(flat.field("role").to_pylist(), weights, strict=True)]
    own = [
        [k for k in range(end - size, end) if said[k]] or [end - 1] * (size > 0)
        for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)
    ]
    answers, rows = np.fromiter(chain.from_iterable(own), np.int64), np.arange(len(own)).repeat(list(map(len, own)))
    first = (ends - sizes)[rows]
    return _with_context(flat, (first, answers - first), (answers, np.ones_like(answers))), rows


def _with_context(flat: pa.StructArray, context: tuple[Int64, Int64], answer: tuple[Int64, Int64]) -> pa.ListArray:
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


def _lists(values: Any, offsets: Int64) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def surround(ids: Int32, offsets: Int64, before: list[Any], after: list[Any]) -> tuple[Int32, Int64]:
    """Put the ids `before` and `after` around each row that is not empty; returns the new ids and offsets."""
    sizes = np.diff(offsets)
    filled = np.flatnonzero(sizes)
    # At one place, the end of a row comes before the start of the next one.
    places = np.concatenate([offsets[filled + 1].repeat(len(after)), offsets[filled].repeat(len(before))])
    sizes[filled] += len(before) + len(after)
    return np.insert(ids, places, after * len(filled) + before * len(filled)), np.append(0, np.cumsum(sizes))


def _with_other_weights(messages: pa.ListArray, rows: Int64) -> set[int]:
    """The rows with an answer whose loss weight is neither 0 nor 1."""
    flat = messages.flatten()
    weights = flat.field("weight").fill_null(1.0)
    other = pc.and_(pc.not_equal(weights, 0), pc.not_equal(weights, 1))
    found = pc.list_parent_indices(messages).filter(pc.and_(other, pc.equal(flat.field("role"), "assistant")))
    return set(rows[found.to_numpy()].tolist())


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
