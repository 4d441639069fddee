"""Text -> token ids: `fastokens` where it gives the ids of the `tokenizers` library, that library for everything else.

`tokenizers` is the reference. Before a run begins, the identity gate (`choose_engine`) encodes a sample of its text and
some awkward strings with both; if one id differs, the whole run goes to `tokenizers`. The choice is stored, so every
worker and every resumed run uses the same engine.

fastokens gives ids without places in the text. Where a row's tokens, spelled as bytes, are exactly the row's text, the
place of each token follows from the lengths. Other rows (those that a normaliser changes, say) go to `tokenizers`.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.manifest import write_whole
from datakit.pack.chat import ChatTokenizer

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

SAMPLE_BYTES = 1 << 20
"""Text that the identity gate compares at most; `tokenizers` encodes it in about a quarter of a second."""
READ_BYTES = 32 << 20
"""Bytes of shards that the sample is chosen from."""
SAMPLE_ROWS, PASSAGE_CHARS = 512, 2048
"""Rows that are sampled, and the characters of a longer text that are taken."""
SMALL_BYTES = 500_000
"""Input with less text goes to `tokenizers`, which encodes that much while fastokens would still load."""
LONG_ROW = 100
"""Tokens of a row on average, from which on `surround` copies row by row."""
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
"""Strings on which tokenizers disagree most easily; always compared."""

Engine = Literal["fastokens", "tokenizers"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which library encodes a run, and why it is not fastokens."""

    engine: Engine = "tokenizers"
    reason: str = ""
    rows: int = 0
    """Texts that were compared."""

    def save(self, path: Path) -> None:
        """Write the choice as JSON."""
        write_whole(path, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """The choice that `save` wrote; None where there is none."""
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


def choose_engine(encoder: "Encoder", sample: "Sample") -> Choice:
    """The identity gate: fastokens if it gives the ids of `tokenizers` for a sample and for the awkward strings."""
    if sample.seen_bytes < SMALL_BYTES:
        return Choice("tokenizers", "there is little text")
    try:
        encoder.load_fastokens()
    except Exception as e:  # it raises several kinds
        return Choice("tokenizers", f"fastokens does not read this tokenizer: {e}")
    given = [*AWKWARD, *sample.texts()]
    ids, offsets = encoder.encode(given, "fastokens")
    for i, wanted in enumerate(encoder.tokenizer.encoder.encode_batch_fast(given, add_special_tokens=False)):
        if not np.array_equal(ids[offsets[i] : offsets[i + 1]], wanted.ids):
            shown = given[i] if len(given[i]) <= 40 else f"{given[i][:40]}..."
            return Choice("tokenizers", f"fastokens gives other ids than tokenizers for {shown!r}", len(given))
    return Choice("fastokens", "", len(given))


class Sample:
    """Texts of `SAMPLE_ROWS` rows of the whole input: those whose row keys have the smallest hashes."""

    def __init__(self) -> None:
        self.seen_bytes = 0
        self._ranks = np.empty(0, np.uint64)
        self._texts: list[list[str]] = []

    def add(
        self, row_keys: npt.NDArray[np.uint64], size: int, texts_of: Callable[[list[int]], list[list[str]]]
    ) -> None:
        """Look at a batch of `size` bytes; `texts_of` gives the texts of some of its rows. The cut into batches does
        not matter."""
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
        """Passages of `SAMPLE_BYTES` together at most."""
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
    """At most `PASSAGE_CHARS` characters, from anywhere in the text."""
    first = rank % max(len(text) - PASSAGE_CHARS + 1, 1)
    return text[first : first + PASSAGE_CHARS]


class Encoder:
    """A tokenizer in both libraries. Any number of threads may encode at once."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self.tokenizer = tokenizer
        self._fast: Any = None
        self._lock = threading.Lock()

    def load_fastokens(self) -> Any:
        """The tokenizer in fastokens, with the ids of `tokenizer.encoder`.

        Raises:
            ValueError: it does not know a part of this tokenizer.json. It raises other exceptions too.
        """
        with self._lock:
            if self._fast is None:
                import fastokens

                spec = self.tokenizer.spec()
                # fastokens takes the ids of added tokens from the file, `tokenizers` numbers them behind the vocabulary
                numbers = {real: own for own, real in self.tokenizer.real_ids.items()}
                spec["added_tokens"] = [token | {"id": numbers[token["id"]]} for token in spec["added_tokens"]]
                made = fastokens.Tokenizer.from_json_str(json.dumps(spec))
                made.no_truncation()
                made.no_padding()
                self._fast = made
        return self._fast

    def encode(self, texts: list[str], engine: Engine) -> tuple[Int32, Int64]:
        """Ids of each text, int32, and where each text's ids begin in them, int64 (texts + 1)."""
        if engine == "fastokens":
            ids, offsets = self.load_fastokens().encode_batch_flat(texts)
            return np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64)
        found = self.tokenizer.encoder.encode_batch_fast(texts, add_special_tokens=False)
        rows = [np.empty(0, np.int32), *(np.array(e.ids, np.int32) for e in found)]
        return np.concatenate(rows), np.cumsum([len(row) for row in rows], dtype=np.int64)

    def encode_placed(self, texts: list[str]) -> tuple[Int32, Int64, Int64, npt.NDArray[np.bool_]]:
        """Ids and offsets from fastokens, the byte of its text at which each id ends, and for which rows that is known.

        It is known where a row's tokens spell its text byte for byte; the ends of other rows mean nothing.
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

    @cached_property
    def _spellings(self) -> tuple[npt.NDArray[np.uint8], Int64]:
        """The bytes of all tokens one after another, and where each id's begin; an unknown token has none."""
        spec = self.tokenizer.spec()
        known = dict(_token_bytes(spec))
        added = {token["id"]: token["content"].encode() for token in spec["added_tokens"]}
        known |= {own: added[real] for own, real in self.tokenizer.real_ids.items()}
        numbers = self.tokenizer.encoder.get_vocab(with_added_tokens=True).values()
        tokens = [known.get(i, b"") for i in range(max(numbers, default=-1) + 1)]
        return np.frombuffer(b"".join(tokens), np.uint8), np.cumsum([0, *map(len, tokens)], dtype=np.int64)


def _token_bytes(spec: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
    """Each id of the vocabulary with the bytes of text that it stands for."""
    vocab = spec["model"].get("vocab")
    if not isinstance(vocab, dict):
        return
    if '"ByteLevel"' in json.dumps([spec.get("pre_tokenizer"), spec.get("decoder")]):
        table = _byte_alphabet()
        for token, number in vocab.items():
            yield number, token.translate(table).encode("latin-1", errors="ignore")
    else:
        for token, number in vocab.items():
            is_byte = len(token) == 6 and token.startswith("<0x")
            yield number, bytes.fromhex(token[3:5]) if is_byte else token.replace("▁", " ").encode()


def _byte_alphabet() -> dict[int, int]:
    """GPT-2's characters for bytes: printable ones stand for themselves, the others follow from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (b for b in range(256) if b not in printable)
    return {0x100 + i: b for i, b in enumerate(others)}


def surround(ids: Int32, offsets: Int64, before: Sequence[int], after: Sequence[int]) -> tuple[Int32, Int64]:
    """The ids with some put before and after each row that is not empty."""
    if not (before or after):
        return ids, offsets
    lengths = np.diff(offsets)
    filled = lengths > 0
    edges = np.concatenate([[0], np.cumsum(lengths + filled * (len(before) + len(after)))])
    made = np.empty(edges[-1], np.int32)
    places = [(edges[:-1] + i, token) for i, token in enumerate(before)]
    places += [(edges[1:] - len(after) + i, token) for i, token in enumerate(after)]
    if len(ids) > LONG_ROW * len(lengths):  # a copy a row is faster than a mask
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
    """A string array as a list; nulls count as ""."""
    found: list[str] = (texts.fill_null("") if texts.null_count else texts).to_pylist()
    return found
