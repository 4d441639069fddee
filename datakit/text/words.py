"""Text as dedup and filter compare it: a table with the properties of every character, the normal form, and words.

Two texts are the same if their normal forms are: Unicode NFC, each run of white space as one space. Words are runs of
letters, combining marks and digits (Unicode L, M, N), case-folded as `str.casefold` does. Each character of a script
that is written without spaces (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar) is a word of its own. The kernels
work on bytes and hashes; `split_words` gives the words themselves, for people.

The table comes from Python's `unicodedata`, so its Unicode version is the interpreter's: stages whose result depends on
it name `UNICODE_VERSION` among their resources.
"""

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import Bytes, Offsets, conversation_view, preference_view, row_chunks, string_array, string_buffers

# The properties of characters.

UNICODE_VERSION = unicodedata.unidata_version

# The low byte of an entry. Kernel files repeat these values, since they import kernel files only.
WORD = 1  # letters, combining marks, numbers: Unicode L, M, N
SPACELESS = 2  # of a script written without spaces: each WORD character is a word
SPACE = 4  # white space as defined by str.isspace()
NOT_NFC = 8  # NFC may change the text around this character
LETTER, MARK, NUMBER = 16, 32, 64  # which kind of WORD

CCC_SHIFT = 8  # canonical combining class: bits 8-15
FOLD_SHIFT = 16  # row of `folds`, 0 where case folding changes nothing: bits 16-31

_CODE_POINTS = 0x110000
_PLANES = np.r_[0:0xD800, 0xE000:0x40000, 0xE0000:0xF0000]  # all that hold more than private use; no surrogates

# Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar with the marks that only they use (Unicode blocks; only the WORD
# characters in them count). Prolonged sound marks are Script=Common, but belong to the kana they lengthen.
_SPACELESS_BLOCKS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # Han iteration mark, closing mark, zero
    (0x3021, 0x3029),  # Hangzhou numerals
    (0x3031, 0x303C),  # kana repeat marks, Hangzhou tens
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana extensions
    (0x3400, 0x4DBF),  # Han extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA9E0, 0xA9FF),  # Myanmar extended B
    (0xAA60, 0xAA7F),  # Myanmar extended A
    (0xF900, 0xFAFF),  # Han compatibility
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x16FE2, 0x16FE4),  # Han iteration marks, Khitan filler
    (0x16FF0, 0x16FF1),  # Vietnamese reading marks
    (0x1AFF0, 0x1B16F),  # kana extended and supplement
    (0x20000, 0x3FFFF),  # Han extensions B and on
)
_HANGUL_TAILS = ((0x1161, 0x1175), (0x11A8, 0x11C2))  # compose with the character before them


@dataclass(frozen=True, slots=True)
class CharacterTable:
    """Entry of code point c: `entries[pages[c >> 8] << 8 | c & 255]`, uint32 of flags, combining class and fold row.

    `folds` is int32 (rows, 3): the full case folding (Unicode CaseFolding C + F, as `str.casefold`), -1 where shorter.
    """

    pages: npt.NDArray[np.uint16]
    entries: npt.NDArray[np.uint32]
    folds: npt.NDArray[np.int32]


@lru_cache(maxsize=1)
def character_table() -> CharacterTable:
    """The table of this process, built from `unicodedata` in about 0.05 s. Treat its arrays as read-only."""
    every = _PLANES.astype("<u4").tobytes().decode("utf-32-le")
    category = np.frombuffer("".join(map(unicodedata.category, every)).encode(), np.uint8).reshape(-1, 2)
    kinds = {kind: category[:, 0] == ord(kind) for kind in "LMNC"}
    flat = np.zeros(_CODE_POINTS, dtype=np.uint32)
    for kind, flag in (("L", LETTER), ("M", MARK), ("N", NUMBER)):
        flat[_PLANES[kinds[kind]]] = WORD | flag
    for first, last in _SPACELESS_BLOCKS:
        flat[first : last + 1] |= (flat[first : last + 1] & WORD) * np.uint32(SPACELESS // WORD)
    assigned = ~(kinds["C"] & ((category[:, 1] == ord("n")) | (category[:, 1] == ord("o"))))
    codes = _PLANES[assigned]
    chars = codes.astype("<u4").tobytes().decode("utf-32-le")
    flat[codes] |= np.fromiter(map(unicodedata.combining, chars), np.uint32, len(chars)) << CCC_SHIFT
    flat[codes[np.fromiter(map(str.isspace, chars), np.bool_, len(chars))]] |= SPACE
    flat[_not_nfc(chars)] |= NOT_NFC
    folded = [(char, fold) for char in chars if (fold := char.casefold()) != char]
    flat[[ord(char) for char, _ in folded]] |= np.arange(1, len(folded) + 1, dtype=np.uint32) << FOLD_SHIFT
    folds = np.full((len(folded) + 1, 3), -1, dtype=np.int32)
    for row, (_, fold) in enumerate(folded, start=1):
        folds[row, : len(fold)] = [ord(char) for char in fold]
    return CharacterTable(*_paged(flat), folds)


def entry(char: str) -> int:
    """The entry of one character, for code that is not a kernel."""
    table, code = character_table(), ord(char)
    return int(table.entries[int(table.pages[code >> 8]) << 8 | code & 255])


def _not_nfc(chars: str) -> list[int]:
    """NFC_Quick_Check No or Maybe: characters that NFC replaces, and second halves of compositions (UAX #15)."""
    found = {code for first, last in _HANGUL_TAILS for code in range(first, last + 1)}
    for char, parts in zip(chars, map(unicodedata.decomposition, chars), strict=True):
        if not parts or parts[0] == "<":
            continue
        if unicodedata.normalize("NFC", char) != char:
            found.add(ord(char))
        elif " " in parts:
            found.add(int(parts.split()[-1], 16))
    return sorted(found)


def _paged(flat: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
    """Entries of all code points -> (page number of each 256, the distinct pages one after another)."""
    numbers: dict[bytes, int] = {}
    pages = [numbers.setdefault(page.tobytes(), len(numbers)) for page in flat.reshape(-1, 256)]
    return np.array(pages, dtype=np.uint16), np.frombuffer(bytearray().join(numbers), dtype=np.uint32)


BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters at which `str.splitlines` ends a line."""

_TERMINAL_RANGES = (
    "!.?\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    "\u166e\u1735\u1736\u17d4-\u17d6\u17d9\u17da\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f"
    "\u1b7d-\u1b7f\u1c3b\u1c3c\u1c7e\u1c7f\u2024\u203c\u203d\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c\u2e53\u2e54\u2e60\u2e61"
    "\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb"
    "\ufe12\ufe15\ufe16\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61"
    "\U00010a56\U00010a57\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047\U00011048\U000110be-\U000110c1"
    "\U00011141-\U00011143\U000111c5\U000111c6\U000111cd\U000111de\U000111df\U00011238\U00011239\U0001123b\U0001123c"
    "\U000112a9\U000113d4\U000113d5\U0001144b\U0001144c\U000115c2\U000115c3\U000115c9-\U000115d7\U00011641\U00011642"
    "\U0001173c-\U0001173e\U00011944\U00011946\U00011a42\U00011a43\U00011a9b\U00011a9c\U00011c41\U00011c42\U00011ef7"
    "\U00011ef8\U00011f43\U00011f44\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44\U00016d6e\U00016d6f"
    "\U00016e98\U0001bc9f\U0001da88"
)
"""As in a regular expression, a hyphen makes a range."""

QUOTES = "\"'”’»›」』｣“‘"
"""Quotes that may follow a sentence's mark: closing ones, which are opening ones in some languages."""


def _expand(ranges: str) -> str:
    """Every character of a list with ranges: "a-cx" is "abcx"."""
    spans = re.findall("(.)-(.)|(.)", ranges, re.DOTALL)
    return "".join(alone or "".join(map(chr, range(ord(first), ord(last) + 1))) for first, last, alone in spans)


TERMINALS = _expand(_TERMINAL_RANGES)
"""Marks that end a sentence: Unicode's property Sentence_Terminal (UAX #44), and the Khmer signs that end one too."""

PAUSES = _expand(
    ",:;\u05c3\u060c\u061b\u0703-\u070a\u070c\u07f8\u0830-\u0835\u0838\u083a-\u083c\u085e\u0e5a\u0e5b\u0f08\u0f0d-\u0f12"
    "\u1361\u1363-\u1366\u16eb-\u16ed\u1802\u1804\u1805\u1808\u1b5d\u1c3d-\u1c3f\u2026\u2e41\u2e4c\u2e4e\u2e4f\u3001\ua4fe"
    "\ua60d\ua6f4-\ua6f6\ua9c7\uaadf\ufe50\ufe51\ufe54\ufe55\uff0c\uff1a\uff1b\uff64"
)
"""The other marks at the end of a clause or a word: the rest of Terminal_Punctuation (UAX #44), and the ellipsis."""


# The normal form and its digest.

DIGEST_BYTES = 16
_CHUNK_BYTES = 1 << 20


def normalize(array: pa.Array) -> pa.Array:
    """Each text in NFC (UAX #15), every run of white space (`str.isspace`) as one space, none at the ends.

    Takes a string array; null becomes "". Equal to `" ".join(unicodedata.normalize("NFC", text).split())`. Rows that
    are NFC already never become Python objects: a kernel finds them.
    """
    from datakit.text import _kernels_text as kernels

    composed = compose(array)
    data, offsets = string_buffers(composed)
    table = character_table()
    out = np.empty(offsets[-1] - offsets[0], dtype=np.uint8)
    out_offsets = np.empty_like(offsets)
    kernels.collapse_spaces(data, offsets, table.pages, table.entries, out, out_offsets)
    return string_array(out[: out_offsets[-1]], out_offsets)


def digest(array: pa.Array) -> pa.Array:
    """BLAKE2b-128 (RFC 7693) of each text's normal form as 32 hex digits (string array); null counts as "".

    Normal forms are made and hashed a megabyte at a time, so that they never leave the cache.
    """
    chunks = row_chunks(string_buffers(array)[1], _CHUNK_BYTES)
    found = b"".join(_digests(normalize(array.slice(begin, end - begin))) for begin, end in chunks)
    digits = np.frombuffer(found.hex().encode(), dtype=np.uint8)
    return string_array(digits, np.arange(len(array) + 1, dtype=np.int64) * 2 * DIGEST_BYTES)


def with_hashes(batch: pa.RecordBatch, columns: dict[str, pa.Array], changed: pa.Array) -> dict[str, pa.Array]:
    """New columns of a batch, with a new `content_hash` for the rows that changed (bool[N]), as ingest makes it."""
    names = [n for n in ("text", "messages", "prompt", "chosen", "rejected", "tools") if n in batch.schema.names]
    if not columns or "content_hash" not in batch.schema.names:
        return columns
    rows = pa.table({n: columns.get(n, batch.column(n)) for n in names}).filter(changed)
    texts = rows["text"].combine_chunks() if "text" in names else pa.array(map(_hashed_text, rows.to_pylist()))
    hashes = digest(texts.cast(pa.string()))
    return columns | {"content_hash": pc.replace_with_mask(batch.column("content_hash"), changed, hashes)}


def _hashed_text(row: dict[str, Any]) -> str:
    tools = row.pop("tools", None)
    fields = [[list(message.values()) for message in messages or ()] for messages in row.values()]
    return conversation_view(fields[0], tools) if "messages" in row else preference_view(fields, tools)


def binary_digest(array: pa.Array) -> pa.Array:
    """BLAKE2b-128 of each value's UTF-8 bytes as 16 bytes each (fixed_size_binary array); null counts as ""."""
    buffers = [None, pa.py_buffer(_digests(array))]
    return pa.Array.from_buffers(pa.binary(DIGEST_BYTES), len(array), buffers)


def stated_digest(hashes: pa.Array) -> pa.Array:
    """The hex digits of `digest` as the 16 bytes each of `binary_digest`."""
    data, offsets = string_buffers(hashes)
    digits = data[offsets[0] : offsets[-1]].tobytes()
    buffers = [None, pa.py_buffer(bytes.fromhex(digits.decode()))]
    return pa.Array.from_buffers(pa.binary(DIGEST_BYTES), len(hashes), buffers)


def hash_values(array: pa.Array) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each value of a string array. Values with equal hashes must still be compared themselves."""
    from datakit.text import _kernels_text as kernels

    data, offsets = string_buffers(array)
    hashes = np.empty(len(array), dtype=np.uint64)
    kernels.hash_values(data, offsets, hashes)
    return hashes


def compose(array: pa.Array) -> pa.Array:
    """Each text in NFC; only texts that fail a quick check become Python objects."""
    from datakit.text import _kernels_text as kernels

    data, offsets = string_buffers(array)
    table = character_table()
    suspect = np.zeros(len(array), dtype=np.bool_)
    kernels.may_not_be_nfc(data, offsets, table.pages, table.entries, suspect)
    if not suspect.any():
        return array
    texts = array.filter(pa.array(suspect)).to_pylist()
    return pc.replace_with_mask(
        array, pa.array(suspect), pa.array([unicodedata.normalize("NFC", text) for text in texts], type=array.type)
    )


def _digests(array: pa.Array) -> bytes:
    data, offsets = string_buffers(array)
    text, bounds = data.data, offsets.tolist()
    return b"".join(
        hashlib.blake2b(text[begin:end], digest_size=DIGEST_BYTES).digest() for begin, end in pairwise(bounds)
    )


# Words.


def hash_words(array: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """64-bit hashes of the words of all texts, and where those of each row begin (rows + 1)."""
    return hash_words_in(*string_buffers(array))


def hash_words_in(data: Bytes, offsets: Offsets) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """`hash_words` of a string array's buffers."""
    from datakit.text import _kernels_text as kernels

    table = character_table()
    hashes = np.empty((offsets[-1] - offsets[0]) // 2 + len(offsets), dtype=np.uint64)
    starts = np.empty_like(offsets)
    scratch = np.empty((3 * int(np.diff(offsets).max(initial=0)) >> 3) + 192, dtype=np.uint64)
    kernels.hash_all_words(data, offsets, table.pages, table.entries, table.folds, scratch, hashes, starts)
    return hashes[: starts[-1]], starts


@lru_cache(maxsize=1)
def spaceless_words() -> npt.NDArray[np.uint64]:
    """The hashes of all characters that are words of their own, ascending."""
    table = character_table()
    flat = table.entries.reshape(-1, 256)[table.pages].reshape(-1)
    chars = [chr(code) for code in np.flatnonzero(flat & SPACELESS).tolist()]
    return np.unique(hash_words(pa.array(chars, pa.string()))[0])


def split_words(text: str) -> list[str]:
    """The words of one text, case-folded, in order; what the kernel hashes."""
    words, current = [], ""
    for char in text:
        flags = entry(char)
        if flags & SPACELESS or not flags & WORD:
            words += [current] if current else []
            current = ""
        if flags & SPACELESS:
            words.append(char.casefold())
        elif flags & WORD:
            current += char.casefold()
    return words + ([current] if current else [])
