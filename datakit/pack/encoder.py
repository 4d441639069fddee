"""Texts -> token ids, with `fastokens` where it gives the ids of `tokenizers`.

**Which library encodes.** `tokenizers` is the reference; `fastokens` encodes where it gives the same ids. Before a run
begins, the identity gate (`choose_engine`) encodes a sample of the input, some awkward strings and texts of the
tokenizer's added tokens with both. If one id differs, `tokenizers` encodes the whole run. The choice is stored, so
every worker and every resumed run uses the same library. fastokens returns ids without offsets in the text. If the
tokens of a row, written as bytes, are exactly the bytes of its text, the offsets follow from the lengths of the tokens.
`tokenizers` encodes all other rows (for example those that a normaliser changes).
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import orjson

import datakit.storage as storage
from datakit.errors import ModelError
from datakit.manifest import tokenizer_file, write_whole
from datakit.pack.chat import FIRST_PRIVATE, PRIVATE, RESERVED, ChatTokenizer
from datakit.pack.shapes import Joined, Shapes

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

SAMPLE_BYTES = 1 << 20
"""The identity gate compares at most this much text; `tokenizers` encodes it in about a quarter of a second."""
SAMPLE_ROWS, PASSAGE_CHARS = 512, 2048
"""Rows in the sample, and the maximum of characters taken from each text."""
SMALL_BYTES = 500_000
"""`tokenizers` encodes smaller inputs: it needs less time for them than fastokens needs to load."""
ADDED_PAIRS = 1024
"""Pairs of added tokens that the identity gate compares, at least; each token is in one."""
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
    """The identity gate: fastokens if its ids equal those of `tokenizers` on a sample, on the awkward strings and on
    texts of the tokenizer's added tokens."""
    if sample.seen_bytes < SMALL_BYTES:
        return EngineChoice("tokenizers", "there is little text")
    try:
        encoder.load_fastokens()
    except Exception as e:  # fastokens raises several types
        return EngineChoice("tokenizers", f"fastokens does not read this tokenizer: {e}")
    given = [*AWKWARD, *_side_by_side(encoder.tokenizer.spec()["added_tokens"]), *sample.texts()]
    try:
        wanted_rows = encoder.tokenizer.encode_fast(given)
    except ModelError:
        return EngineChoice("tokenizers", "tokenizers fails on texts that the run may not have", len(given))
    ids, offsets = encoder.encode(given, "fastokens")
    for i, wanted in enumerate(wanted_rows):
        if not np.array_equal(ids[offsets[i] : offsets[i + 1]], wanted.ids):
            shown = given[i] if len(given[i]) <= 40 else f"{given[i][:40]}..."
            return EngineChoice("tokenizers", f"fastokens gives other ids than tokenizers for {shown!r}", len(given))
    return EngineChoice("fastokens", "", len(given))


def _side_by_side(added: list[dict[str, Any]]) -> Iterator[str]:
    """Texts in which added tokens touch each other, words and white space: where flags such as `single_word` matter."""
    contents = [token["content"] for token in added]
    for i, one in enumerate(contents):
        for step in range(min(len(contents), 1 + ADDED_PAIRS // len(contents))):
            other = contents[(i + step) % len(contents)]
            yield f"{one}{other} {other}{one}  {one}a{other}\n{one} \n_{other}_ \t{one}\u00e9"


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
        found = self.tokenizer.encode_fast(texts)
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


def encoder_of(tokenizer: str, chat_template: str, variables: Mapping[str, Any]) -> Encoder:
    """The encoder of a tokenizer, cached per process until one of its files changes: a large one takes seconds to load.

    Raises:
        ModelError: a file is missing or cannot be used.
    """
    files = [*tokenizer_file(tokenizer).parent.iterdir(), storage.here(chat_template)]
    found = ((file, file.stat()) for file in files if file.is_file())
    stamps = tuple(sorted((str(file), s.st_mtime_ns, s.st_size) for file, s in found))
    return _loaded(tokenizer, chat_template, json.dumps(variables, sort_keys=True), stamps)


@lru_cache(maxsize=1)
def _loaded(tokenizer: str, chat_template: str, variables: str, _: tuple[tuple[str, int, int], ...]) -> Encoder:
    return Encoder(ChatTokenizer.load(tokenizer, chat_template, json.loads(variables)))
