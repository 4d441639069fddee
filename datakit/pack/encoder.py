"""Texts -> token ids, with `fastokens` where it gives the ids of `tokenizers`; and the tokens at given characters.

**Which library encodes.** `tokenizers` is the reference; `fastokens` encodes where it gives the same ids. Before a run
begins, the identity gate (`choose_engine`) encodes a sample of the input, some awkward strings and texts of the
tokenizer's added tokens with both. If one id differs, `tokenizers` encodes the whole run. The choice is stored, so
every worker and every resumed run uses the same library.

**Where tokens are.** fastokens returns ids without offsets in the text. A token stands for so many characters; if the
normaliser leaves a text as it is, and the characters of its tokens add up to those of the text, each token's place
follows. `tokenizers` tells the places in all other rows.
"""

import json
import threading
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import orjson
from tokenizers import Encoding
from tokenizers.normalizers import NFC

import datakit.storage as storage
from datakit.errors import ModelError
from datakit.manifest import tokenizer_file
from datakit.pack.chat import ChatTokenizer
from datakit.pack.labels import Labeller
from datakit.pack.marks import FIRST_PRIVATE, PRIVATE, RESERVED, RenderError
from datakit.pack.shapes import Shapes

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

SAMPLE_BYTES = 1 << 20
"""The identity gate compares at most this much text; `tokenizers` encodes it in about a quarter of a second."""
SAMPLE_ROWS, PASSAGE_CHARS = 128, 2048
"""Rows of a batch in the sample, and the maximum of characters taken from the middle of each text."""
SMALL_BYTES = 500_000
"""`tokenizers` encodes smaller inputs: it needs less time for them than fastokens needs to load."""
ADDED_PAIRS = 1024
"""Pairs of added tokens that the identity gate compares, at least; each token is in one."""
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
"""Strings on which tokenizers often differ; the identity gate always compares them."""

PRINTABLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
"""Bytes that stand for themselves in byte-level vocabularies (Radford et al. 2019); the others count up from U+0100."""
INSIDE = {chr(b): b & 0xC0 == 0x80 for b in PRINTABLE} | {
    chr(0x100 + i): b & 0xC0 == 0x80 for i, b in enumerate(b for b in range(256) if b not in PRINTABLE)
}
"""By the character for a byte: whether UTF-8 has it inside of a character only."""

Engine = Literal["fastokens", "tokenizers"]


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which library encodes a run, and the reason if it is not fastokens."""

    engine: Engine = "tokenizers"
    reason: str = ""


def choose_engine(encoder: "Encoder", sample: Sequence[str], size: int) -> EngineChoice:
    """The identity gate: fastokens if its ids equal those of `tokenizers` on a sample of an input of `size` bytes, on
    the awkward strings and on texts of the tokenizer's added tokens."""
    if size < SMALL_BYTES:
        return EngineChoice("tokenizers", "there is little text")
    try:
        encoder.load_fastokens()
    except Exception as e:  # fastokens raises several types
        return EngineChoice("tokenizers", f"fastokens does not read this tokenizer: {e}")
    sizes = accumulate(len(text.encode(errors="ignore")) for text in sample)
    passages = [text for text, until in zip(sample, sizes, strict=True) if until <= SAMPLE_BYTES]
    added = [token["content"] for token in encoder.tokenizer.spec()["added_tokens"]]
    given = [*AWKWARD, *_side_by_side(added), *passages]
    try:
        wanted_rows = encoder.tokenizer.encode(given, offsets=False)
    except ModelError:
        return EngineChoice("tokenizers", "tokenizers fails on texts that the run may not have")
    ids, offsets = encoder.encode(given, "fastokens")
    for i, wanted in enumerate(wanted_rows):
        if not np.array_equal(ids[offsets[i] : offsets[i + 1]], wanted.ids):
            shown = given[i] if len(given[i]) <= 40 else f"{given[i][:40]}..."
            return EngineChoice("tokenizers", f"fastokens gives other ids than tokenizers for {shown!r}")
    return EngineChoice("fastokens")


def passage(text: str) -> str:
    """At most `PASSAGE_CHARS` characters from the middle of a text."""
    return text[max(0, len(text) - PASSAGE_CHARS) // 2 :][:PASSAGE_CHARS]


def _side_by_side(contents: list[str]) -> Iterator[str]:
    """Texts in which added tokens touch each other, words and white space: where flags such as `single_word` matter."""
    for i, one in enumerate(contents):
        for step in range(min(len(contents), 1 + ADDED_PAIRS // len(contents))):
            other = contents[(i + step) % len(contents)]
            yield f"{one}{other} {other}{one}  {one}a{other}\n{one} \n_{other}_ \t{one}\u00e9"


class Encoder:
    """A tokenizer, loaded in both libraries. Safe for use by several threads at once."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self.tokenizer, self.labeller = tokenizer, Labeller(tokenizer)
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

    def shapes(self, train_on: Literal["all", "last"]) -> Shapes:
        """The plans of conversations, which all batches of a process share.

        Raises:
            ModelError: the rendering of one question and answer does not show where the answer is.
        """
        with self._lock:
            if train_on not in self._shapes:
                try:
                    self.labeller.label([{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}])
                except RenderError as e:
                    if e.reason == "labels_uncertain":
                        where = self.tokenizer.template_where
                        raise ModelError(f"{where} cannot be used to train: {e.detail}") from None
                self._shapes[train_on] = Shapes(self.labeller, train_on)
            return self._shapes[train_on]

    def encode(self, texts: list[str], engine: Engine) -> tuple[Int32, Int64]:
        """Encode texts. Returns their ids, int32, flat, and offsets in these, int64 (texts + 1,)."""
        if engine == "fastokens":
            ids, offsets = self.load_fastokens().encode_batch_flat(texts)
            return np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64)
        return _flat(self.tokenizer.encode(texts, offsets=False))

    def encode_placed(
        self, texts: list[str], places: Int64, num_places: Int64, engine: Engine
    ) -> tuple[Int32, Int64, Int64, int]:
        """Encode texts, and find the tokens at some places (characters, flat; each text has `num_places` of them).

        Returns ids and offsets as `encode` does; for each place the first token of its text that begins at this
        character or after it, int64; and how many texts `tokenizers` encoded.
        """
        certain, bounds = np.zeros(len(texts), np.bool_), np.append(0, np.cumsum(num_places))
        tokens = np.zeros(len(places), np.int64)
        if engine == "fastokens":
            ids, offsets = self.encode(texts, engine)
            tokens, certain = self._by_sizes(texts, ids, offsets, places, np.repeat(np.arange(len(texts)), num_places))
        rest = np.flatnonzero(~certain).tolist()
        encodings = self.tokenizer.encode([texts[i] for i in rest])
        for i, encoding in zip(rest, encodings, strict=True):
            starts = [start for start, _ in encoding.offsets]
            own = slice(bounds[i], bounds[i + 1])
            tokens[own] = [bisect_left(starts, at) for at in places[own].tolist()]
        if engine == "tokenizers":
            ids, offsets = _flat(encodings)
        return ids, offsets, tokens, len(rest)

    def _by_sizes(
        self, texts: list[str], ids: Int32, offsets: Int64, places: Int64, of_text: Int64
    ) -> tuple[Int64, npt.NDArray[np.bool_]]:
        """The tokens at places in texts, from the numbers of characters that tokens begin; and the texts for which
        these are certain, bool (texts,)."""
        sizes, inside, in_bytes = self._token_sizes
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        # 32 bits take half the time; but every_turn repeats texts, which may then have more than 2**31 characters.
        before: npt.NDArray[Any] = np.zeros(len(ids) + 1, np.int32 if lengths.sum() < 1 << 30 else np.int64)
        np.cumsum(sizes[ids], out=before[1:])
        until = before[offsets]
        certain = np.diff(until) == lengths
        if in_bytes is not None:  # the vocabulary lacks a byte, which vanishes from within a character
            found = np.add.reduceat(np.append(in_bytes[ids], 0), np.minimum(offsets[:-1], len(ids)))
            certain &= (found == [len(text.encode()) for text in texts]) | (np.diff(offsets) == 0)
        if self.tokenizer.encoder.normalizer is not None:
            certain &= np.fromiter(map(self._is_normal, texts), np.bool_, len(texts))
        wanted = (places + until[of_text]).astype(before.dtype)
        found = np.searchsorted(before[:-1], wanted)
        begins_inside = np.append(inside[ids], False)  # of a character; the end of the texts begins no token
        while len(split := np.flatnonzero(begins_inside[found] & (before[found] == wanted))):
            found[split] += 1
        return np.minimum(found, offsets[1:][of_text]) - offsets[of_text], certain

    def _is_normal(self, text: str) -> bool:
        """Whether the normaliser leaves a text as it is."""
        normalizer = self.tokenizer.encoder.normalizer
        if isinstance(normalizer, NFC):
            return text.isascii() or unicodedata.is_normalized("NFC", text)
        normal: str = normalizer.normalize_str(text)
        return normal == text

    @cached_property
    def _token_sizes(self) -> tuple[Int64, npt.NDArray[np.bool_], Int64 | None]:
        """How many characters of text each token begins, int64 (ids,); whether its first byte is inside of a character,
        bool (ids,); and its bytes, int64 (ids,), if the vocabulary lacks the token of a byte."""
        spec, made = self.tokenizer.spec(), np.zeros((3, self.tokenizer.vocab_size), np.int64)
        vocab = spec["model"].get("vocab")
        on_bytes = '"ByteLevel"' in json.dumps([spec.get("pre_tokenizer"), spec.get("decoder")])
        for token, number in vocab.items() if isinstance(vocab, dict) else ():
            # A byte-level vocabulary has a character for each byte; others write "▁" for a space.
            is_byte = len(token) == 6 and token.startswith("<0x")
            data = bytes([int(token[3:5], 16)]) if is_byte else token.encode()
            inside = [INSIDE.get(c, False) for c in token] if on_bytes else [b & 0xC0 == 0x80 for b in data]
            made[:, number] = len(inside) - sum(inside), inside[:1] == [True], len(inside)
        for token in spec["added_tokens"]:
            made[:, token["id"]] = len(token["content"]), 0, len(token["content"].encode())
        lacks_bytes = on_bytes and not INSIDE.keys() <= vocab.keys()
        return made[0].astype(np.int32), made[1] > 0, made[2] if lacks_bytes else None


def _flat(encodings: Sequence[Encoding]) -> tuple[Int32, Int64]:
    """The ids of all texts, and their offsets."""
    rows = [np.empty(0, np.int32), *(np.array(e.ids, np.int32) for e in encodings)]
    return np.concatenate(rows), np.cumsum([len(row) for row in rows], dtype=np.int64)


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
