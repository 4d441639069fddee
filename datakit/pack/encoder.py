"""Texts -> token ids, with `fastokens` where it gives the ids of `tokenizers`; and the tokens at given characters.

**Which library encodes.** `tokenizers` is the reference; `fastokens` encodes where it gives the same ids. When a
tokenizer is loaded, both encode some awkward strings and texts of the tokenizer's added tokens; and of each batch, both
encode a small sample. If one id differs, `tokenizers` encodes every batch, or this one. This depends on the tokenizer
and the batch alone, so it is the same for every worker and every resumed run.

**Where tokens are.** fastokens returns ids without offsets in the text. A token of a byte-level vocabulary stands for
so many bytes; if the normaliser leaves a text as it is, and the bytes of its tokens add up to those of the text, each
token's place follows. `tokenizers` tells the places in all other rows.
"""

import json
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

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
NONE: Int64 = np.empty(0, np.int64)

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

LITTLE = "there is little text"
FastEncode = Callable[[list[str]], tuple[Int32, Int64]]


class Encoded(NamedTuple):
    """What the texts of a batch became."""

    ids: Int32
    """Of all texts, flat."""
    offsets: Int64
    """Where each text begins in `ids`, and the end: (texts + 1,)."""
    tokens: Int64
    """For each place the first token of its text that begins at this character or after it."""
    library_rows: int
    """How many texts `tokenizers` encoded, or found the places of."""
    reason: str
    """Why it encoded all of them; empty if fastokens did."""


def sample(texts: Sequence[str]) -> list[str]:
    """Passages of some texts, spread evenly over a batch; of each text at most one, of a batch with texts one."""
    step = max(1, SAMPLED * PASSAGE_CHARS * len(texts) // max(1, sum(map(len, texts))))
    spread = texts[min(step, len(texts)) // 2 :: step]
    return [text[max(0, len(text) - PASSAGE_CHARS) // 2 :][:PASSAGE_CHARS] for text in spread]


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
    def fast(self) -> tuple[FastEncode | None, str]:
        """How fastokens encodes texts; or None, and why it does not."""
        spec = self.tokenizer.spec()
        try:
            fast = fastokens_of(spec)
        except Exception as e:  # fastokens raises several types
            return None, f"fastokens does not read this tokenizer: {e}"
        reason = self._difference(fast, [*AWKWARD, *_side_by_side([t["content"] for t in spec["added_tokens"]])])
        return (None, reason) if reason else (fast, "")

    def _difference(self, fast: FastEncode, texts: list[str]) -> str:
        """Why `tokenizers` must encode: a text for which fastokens gives other ids; empty if there is none."""
        try:
            wanted_rows = self.tokenizer.encode(texts, offsets=False)
        except ModelError:
            return "tokenizers fails on texts that the run may not have"
        ids, offsets = fast(texts)
        for text, wanted, a, b in zip(texts, wanted_rows, offsets, offsets[1:], strict=False):
            if not np.array_equal(ids[a:b], wanted.ids):
                shown = text if len(text) <= 40 else f"{text[:40]}..."
                return f"fastokens gives other ids than tokenizers for {shown!r}"
        return ""

    @cached_property
    def shapes(self) -> Shapes:
        """The plans of conversations, which all batches of a process share.

        Raises:
            ModelError: the rendering of one question and answer does not show where the answer is.
        """
        labeller = Labeller(self.tokenizer)
        try:
            labeller.label([{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}])
        except RenderError as e:
            if e.reason == "labels_uncertain":
                where = self.tokenizer.template_where
                raise ModelError(f"{where} cannot be used to train: {e.detail}") from None
        return Shapes(labeller, self.train_on)

    def encode(self, texts: list[str], places: Int64 = NONE, of_text: Int64 = NONE, *, little: bool = False) -> Encoded:
        """Encode texts, and find the tokens at some places: characters of the texts with the numbers `of_text`.

        With `little` text, `tokenizers` encodes it: it needs less time than fastokens needs to load.
        """
        fast, reason = (None, LITTLE) if little else self.fast
        if fast:
            reason = self._difference(fast, sample(texts))
        certain, tokens = np.full(len(texts), not reason), np.zeros(len(places), np.int64)
        if fast and not reason:
            ids, offsets = fast(texts)
            if len(places):
                tokens, certain = self._by_bytes(texts, ids, offsets, places, of_text)
        rest = np.flatnonzero(~certain).tolist()
        encodings = dict(zip(rest, self.tokenizer.encode([texts[i] for i in rest], len(places) > 0), strict=True))
        if reason:
            ids, offsets = _flat(encodings.values())
        starts = {i: [start for start, _ in encoding.offsets] for i, encoding in encodings.items() if len(places)}
        for k in np.flatnonzero(~certain[of_text]).tolist():
            tokens[k] = bisect_left(starts[of_text[k]], places[k])
        return Encoded(ids, offsets, tokens, len(rest), reason)

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
