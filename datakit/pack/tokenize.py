"""Rows of text, conversations or preference pairs -> token ids with the spans that the model must produce.

**Which library encodes.** `tokenizers` is the reference; `fastokens` encodes where it gives the same ids. Before a run
begins, the identity gate (`choose_engine`) encodes a sample of the input and some awkward strings with both. If one id
differs, `tokenizers` encodes the whole run. The choice is stored, so every worker and every resumed run uses the same
library. fastokens returns ids without offsets in the text. If the tokens of a row, written as bytes, are exactly the
bytes of its text, the offsets follow from the lengths of the tokens. `tokenizers` encodes all other rows (for example
those that a normaliser changes).

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
from functools import cached_property, lru_cache, partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import option
from datakit.data import SPANS, tokens
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.manifest import Ledger, tokenizer_file, write_whole
from datakit.pack.chat import FIRST_PRIVATE, PRIVATE, RESERVED, ChatTokenizer
from datakit.pack.labels import Labelled, RowError, Spans, label, labelled_bytes, labelled_ids, plain_ids
from datakit.pack.shapes import Joined, Sequences, Shapes
from datakit.pack.template import TooSlowError, Watch
from datakit.stage import Decision, Parent, Stage

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

SAMPLE_BYTES = 1 << 20
"""The identity gate compares at most this much text; `tokenizers` encodes it in about a quarter of a second."""
READ_BYTES = 32 << 20
"""The sample is chosen from shards of about this size, in bytes."""
SAMPLE_ROWS, PASSAGE_CHARS = 512, 2048
"""Rows in the sample, and the maximum of characters taken from each text."""
SMALL_BYTES = 500_000
"""`tokenizers` encodes smaller inputs: it needs less time for them than fastokens needs to load."""
MAX_NOT_RENDERED = 0.01
"""With thoughts left out of a larger share of the rows, the run raises an alarm."""
LONG_ROW = 100
"""With more tokens per row on average, `surround` copies row by row."""
AWKWARD = (
    *(" ", "  ", "\n", "\r\n\r\n", "\t x", "a\u00a0b", "\u3000", "\u2028", "\x85", "\x1c", "\x00", "\u200b", "\ufeffa"),
    *("we'LL they've 'S 'ſ 'K", "it’s ''", "1 12345 ٣²½Ⅷ〇一𝟘 १२", "a1b2 3.14e-10", "x" * 300, "=" * 70, " " * 50),
    *(
        "é e\u0301 \u212b \u0958 \u1112\u1161\u11ab",
        "\u0345\u0334\u0301 \u0334\u0345",
        "ﬁ Ǆ ß ẞ İ ı",
        "中文字，首都です。",
    ),
    *("ไทยนี้ 한국 हिन्दी עברית العربية", "🦊 👩‍👩‍👧 🇩🇪", "\U0010ffff \ufffd \ue000 \ufdd1", "日本の首都です東京は" * 4),
    *("!...---://_#\\", '"quoted"', "<|im_end|>", "<|im_", "<s> [INST] <think>", "▁ Ġ Ċ <0x0A> ##ing", "aaaaab" * 12),
    *(
        "\tdef f(x):\n        return x\n\n\n",
        "https://a.b/c?d=e&f=%20",
        "ALLCAPS CamelCase snake_case",
        "\n \n\t\n  x\r y",
    ),
)
"""Strings on which tokenizers often differ; the identity gate always compares them."""

Engine = Literal["fastokens", "tokenizers"]

IDS, REJECTED_IDS = ("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")
NOT_RENDERED, STRIPPED, UNENDED = "reasoning_not_rendered", "reasoning_stripped", "turns_without_end"
IGNORED, ROUNDED = "chat_template_kwargs_ignored", "loss_weights_rounded"
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


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which library encodes a run, and the reason if it is not fastokens."""

    engine: Engine = "tokenizers"
    reason: str = ""
    rows: int = 0
    """Number of texts that were compared."""

    def save(self, path: Path) -> None:
        """Write the choice as JSON."""
        write_whole(path, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """The choice that `save` wrote; None if there is no file."""
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


@dataclass(slots=True)
class EncodingCounts:
    """Encoding counters."""

    fast_rows: int = 0
    """Rows that fastokens encoded."""
    library_rows: int = 0
    """Rows that `tokenizers` encoded."""

    def add(self, other: "EncodingCounts") -> None:
        """Add another's counts."""
        self.fast_rows += other.fast_rows
        self.library_rows += other.library_rows


COUNTED = {"fastokens": "fast_rows", "tokenizers": "library_rows"}


def choose_engine(encoder: "Encoder", sample: "Sample") -> EngineChoice:
    """The identity gate: fastokens if its ids equal those of `tokenizers` on a sample and on the awkward strings."""
    if sample.seen_bytes < SMALL_BYTES:
        return EngineChoice("tokenizers", "there is little text")
    try:
        encoder.load_fastokens()
    except Exception as e:  # fastokens raises several types
        return EngineChoice("tokenizers", f"fastokens does not read this tokenizer: {e}")
    given = [*AWKWARD, *sample.texts()]
    ids, offsets = encoder.encode(given, "fastokens")
    for i, wanted in enumerate(encoder.tokenizer.encoder.encode_batch_fast(given, add_special_tokens=False)):
        if not np.array_equal(ids[offsets[i] : offsets[i + 1]], wanted.ids):
            shown = given[i] if len(given[i]) <= 40 else f"{given[i][:40]}..."
            return EngineChoice("tokenizers", f"fastokens gives other ids than tokenizers for {shown!r}", len(given))
    return EngineChoice("fastokens", "", len(given))


class Sample:
    """A sample of the input's texts: the `SAMPLE_ROWS` rows with the smallest hashes of their row keys (bottom-k)."""

    def __init__(self) -> None:
        self.seen_bytes = 0
        self._ranks = np.empty(0, np.uint64)
        self._texts: list[list[str]] = []

    def add(
        self, row_keys: npt.NDArray[np.uint64], size: int, texts_of: Callable[[list[int]], list[list[str]]]
    ) -> None:
        """Add the rows of a batch of `size` bytes; `texts_of` returns the texts of some of its rows.

        The sample does not depend on the size of the batches.
        """
        self.seen_bytes += size
        ranks = _hashed(row_keys)
        chosen = np.argsort(ranks)[:SAMPLE_ROWS]
        if len(self._ranks) == SAMPLE_ROWS:
            chosen = chosen[ranks[chosen] < self._ranks[-1]]
        texts = self._texts + [
            [_passage(text, rank) for text in row]
            for row, rank in zip(texts_of(chosen.tolist()), ranks[chosen].tolist(), strict=True)
        ]
        joined = np.concatenate([self._ranks, ranks[chosen]])
        order = np.argsort(joined)[:SAMPLE_ROWS]
        self._ranks, self._texts = joined[order], [texts[i] for i in order.tolist()]

    def texts(self) -> list[str]:
        """The sampled passages, at most `SAMPLE_BYTES` in total."""
        found, left = [], SAMPLE_BYTES
        for text in chain.from_iterable(self._texts):
            left -= len(text.encode(errors="ignore"))
            if left < 0:
                break
            found.append(text)
        return found


def _hashed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64 (Steele et al. 2014): distinct keys have distinct hashes."""
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _passage(text: str, rank: int) -> str:
    """At most `PASSAGE_CHARS` characters of a text; `rank` chooses where they start."""
    first = rank % max(len(text) - PASSAGE_CHARS + 1, 1)
    return text[first : first + PASSAGE_CHARS]


class Encoder:
    """A tokenizer, loaded in both libraries. Safe for use by several threads at once."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self.tokenizer = tokenizer
        self._fast: Any = None
        self._shapes: dict[str, Shapes] = {}
        self._lock = threading.Lock()

    def load_fastokens(self) -> Any:
        """The tokenizer in fastokens, with the ids of `tokenizer.encoder`.

        Raises:
            ValueError: fastokens does not support a part of this tokenizer.json. It raises other exceptions, too.
        """
        with self._lock:
            if self._fast is None:
                import fastokens

                spec = self.tokenizer.spec()
                _fill_holes(spec["model"].get("vocab"), len(spec["added_tokens"]))
                _join_merges(spec["model"])
                made = fastokens.Tokenizer.from_json_str(orjson.dumps(spec).decode())
                made.no_truncation()
                made.no_padding()
                self._fast = made
        return self._fast

    def encode(self, texts: list[str], engine: Engine) -> tuple[Int32, Int64]:
        """Encode texts. Returns their ids, int32, flat, and offsets in these, int64 (texts + 1,)."""
        if engine == "fastokens":
            ids, offsets = self.load_fastokens().encode_batch_flat(texts)
            return np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64)
        found = self.tokenizer.encoder.encode_batch_fast(texts, add_special_tokens=False)
        rows = [np.empty(0, np.int32), *(np.array(e.ids, np.int32) for e in found)]
        return np.concatenate(rows), np.cumsum([len(row) for row in rows], dtype=np.int64)

    def encode_placed(self, texts: list[str]) -> tuple[Int32, Int64, Int64, npt.NDArray[np.bool_]]:
        """Encode texts with fastokens, and find where each token ends in its text.

        Returns ids and offsets as `encode` does; ends, int64 (ids,): the byte offset in its text at which each token
        ends; placed, bool (texts,): True if the tokens of a text, written as bytes, are exactly the bytes of the text.
        For other texts `ends` has no meaning.
        """
        ids, offsets = self.encode(texts, "fastokens")
        spelled, starts = self._spellings
        lengths = np.diff(starts)[ids]
        ends = np.cumsum(lengths)
        until = np.concatenate([[0], ends])[offsets]
        data = [text.encode() for text in texts]
        placed = np.diff(until) == [len(d) for d in data]
        of_token = np.repeat(placed, np.diff(offsets))
        own = lengths[of_token]
        within = np.arange(int(own.sum())) - np.repeat(np.cumsum(own) - own, own)
        given = np.frombuffer(b"".join(d for d, p in zip(data, placed, strict=True) if p), np.uint8)
        wrong = spelled[np.repeat(starts[ids[of_token]], own) + within] != given
        rows = np.flatnonzero(placed)
        row_of_byte = np.repeat(rows, np.diff(until)[rows])
        placed[row_of_byte[wrong]] = False
        return ids, offsets, ends - np.repeat(until[:-1], np.diff(offsets)), placed

    def shapes(self, train_on: Literal["all", "last"]) -> Shapes:
        """The plans of conversations, which all batches of a process share."""
        with self._lock:
            return self._shapes.setdefault(train_on, Shapes(self.tokenizer, train_on))

    def edges(self, made: Joined, ids: Int32, offsets: Int64) -> tuple[Int64, Int64, npt.NDArray[np.bool_]]:
        """The tokens at the edges of the labels of N joined rows, flat, with offsets, int64 (N + 1,); whether they and
        the special tokens are certain, bool (N,)."""
        from datakit.pack import _kernels_labels as kernels

        spelled, starts = self._spellings
        begins, bounds = (np.cumsum([0, *lengths]) for lengths in (made.sizes, made.num_edges))
        data = "".join(made.texts).encode()
        eights = np.frombuffer(data + bytes(16 - len(data) % 8), np.uint64)
        found, counts, placed = kernels.place(
            ids, offsets, self._token_table, spelled, starts, eights, begins, np.array(made.edges, np.int64), bounds
        )
        return found, bounds, placed & (counts == np.array(made.structural))

    @cached_property
    def _token_table(self) -> npt.NDArray[np.uint64]:
        """What `_kernels_labels.place` looks up for each id, uint64 (ids, 2)."""
        spelled, starts = self._spellings
        lengths = np.diff(starts)
        padded = np.concatenate([spelled, np.zeros(8, np.uint8)])
        within = np.arange(8)
        heads = np.where(within < lengths[:, None], padded[starts[:-1, None] + within], 0).astype(np.uint8)
        structural = np.isin(np.arange(len(lengths)), list(self.tokenizer.structural_ids))
        return np.stack([heads.view(np.uint64)[:, 0], (lengths * 2 + structural).astype(np.uint64)], axis=1)

    @cached_property
    def _spellings(self) -> tuple[npt.NDArray[np.uint8], Int64]:
        """The bytes of all tokens, flat, and offsets, int64 (ids + 1,). A token of unknown spelling has no bytes."""
        spec = self.tokenizer.spec()
        known = dict(_token_bytes(spec))
        for token in spec["added_tokens"]:
            if token["special"] or _on_bytes(spec) or token["id"] not in known:
                known[token["id"]] = token["content"].encode()
        tokens = [known.get(i, b"") for i in range(self.tokenizer.vocab_size)]
        return np.frombuffer(b"".join(tokens), np.uint8), np.cumsum([0, *map(len, tokens)], dtype=np.int64)


def _fill_holes(vocab: Any, added: int) -> None:
    """Give the ids that a vocabulary skips (GPT-4o's does) to tokens that no text reaches: fastokens needs every id."""
    if isinstance(vocab, dict) and max(vocab.values(), default=0) < len(vocab) + PRIVATE - added:
        missing = sorted(set(range(max(vocab.values(), default=0))) - set(vocab.values()))
        vocab |= {RESERVED + chr(FIRST_PRIVATE + added + i): number for i, number in enumerate(missing)}


def _join_merges(model: dict[str, Any]) -> None:
    """Write merges as texts, which fastokens reads a tenth faster than pairs; not if a token has a space."""
    merges = model.get("merges") or []
    if not any(isinstance(pair, str) or " " in pair[0] or " " in pair[1] for pair in merges):
        model["merges"] = list(map(" ".join, merges))


def _token_bytes(spec: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
    """Each id of the vocabulary, with the bytes of text that it stands for."""
    vocab = spec["model"].get("vocab")
    if not isinstance(vocab, dict):
        return
    if _on_bytes(spec):
        table = _byte_alphabet()
        for token, number in vocab.items():
            yield number, token.translate(table).encode("latin-1", errors="ignore")
    else:
        for token, number in vocab.items():
            is_byte = len(token) == 6 and token.startswith("<0x")
            yield number, bytes.fromhex(token[3:5]) if is_byte else token.replace("▁", " ").encode()


def _on_bytes(spec: dict[str, Any]) -> bool:
    return '"ByteLevel"' in json.dumps([spec.get("pre_tokenizer"), spec.get("decoder")])


def _byte_alphabet() -> dict[int, int]:
    """GPT-2's characters for bytes (Radford et al. 2019): printable characters stand for themselves, the others are
    numbered from U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (b for b in range(256) if b not in printable)
    return {0x100 + i: b for i, b in enumerate(others)}


@lru_cache(maxsize=1)
def _encoder_of(tokenizer: str, chat_template: str, variables: str, _: tuple[tuple[str, int, int], ...]) -> Encoder:
    """The encoder, cached per process: a large tokenizer takes seconds to load. `variables` are JSON."""
    return Encoder(ChatTokenizer.load(tokenizer, chat_template, json.loads(variables)))


def _stamps(tokenizer: str, chat_template: str) -> tuple[tuple[str, int, int], ...]:
    """Name, modification time and size of every file that the tokenizer is loaded from."""
    files = [*tokenizer_file(tokenizer).parent.iterdir(), storage.here(chat_template)]
    found = ((file, file.stat()) for file in files if file.is_file())
    return tuple(sorted((str(file), s.st_mtime_ns, s.st_size) for file, s in found))


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
            given = self.config.tokenizer, self.config.chat_template
            variables = json.dumps(template_variables(self.config.template_var), sort_keys=True)
            self._loaded.encoder = _encoder_of(*given, variables, _stamps(*given))
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
        """An alarm if the template leaves thoughts out of more than 1% of the rows."""
        lost, rows = ledger.notes.get(NOT_RENDERED, 0), ledger.rows.kept
        if lost <= MAX_NOT_RENDERED * rows:
            return []
        return [
            f"the chat template does not render the thoughts of {lost} of {rows} rows ({NOT_RENDERED}): "
            "use a template of a thinking model, or --chat-template"
        ]

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
                raise ModelError(f"{self.tokenizer.where}: the chat template fails on every row: {why}")
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
            return self._documents(batch)
        self._check_template()
        work = _Conversations(self._encoder, self.choice.engine, self.config, batch)
        decision = work.pairs() if work.are_pairs else work.rows()
        self._loaded.count(work.counts)
        return decision

    def _check_template(self) -> None:
        """Refuse a template whose rendering of one question and answer does not show where the answer is."""
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
            raise ModelError(f"{self.tokenizer.where}: the chat template takes too long for the row {row}") from None
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
