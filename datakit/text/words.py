"""Words for dedup: runs of letters, combining marks and digits (Unicode L, M, N), case-folded.

Each character of a script that is written without spaces (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar) is a word
of its own. Case folding is the full one of `str.casefold`. The kernel works on hashes; `split_words` gives the words
themselves, for people.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.text import _kernels_words
from datakit.text.buffers import string_buffers
from datakit.text.characters import SPACELESS, WORD, character_table, entry


@dataclass(frozen=True, slots=True)
class WordTables:
    """The arrays that the word kernels read; see `characters.CharacterTable` for all but the first.

    `ascii_fold` is uint8 (128): the case-folded byte of an ASCII word character, 0 for any other.
    """

    ascii_fold: npt.NDArray[np.uint8]
    pages: npt.NDArray[np.uint16]
    entries: npt.NDArray[np.uint32]
    folds: npt.NDArray[np.int32]


@lru_cache(maxsize=1)
def word_tables() -> WordTables:
    """The tables of this process; treat the arrays as read-only."""
    table = character_table()
    fold = [ord(chr(code).casefold()) if entry(chr(code)) & WORD else 0 for code in range(128)]
    return WordTables(np.array(fold, dtype=np.uint8), table.pages, table.entries, table.folds)


def hash_words(array: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """64-bit hashes of the words of each text, and where each row's begin (rows + 1); equal words hash equally."""
    data, offsets = string_buffers(array)
    tables = word_tables()
    hashes = np.empty((offsets[-1] - offsets[0]) // 2 + len(array) + 1, dtype=np.uint64)
    starts = np.empty_like(offsets)
    _kernels_words.hash_all_words(
        data, offsets, tables.ascii_fold, tables.pages, tables.entries, tables.folds, hashes, starts
    )
    return hashes[: starts[-1]], starts


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
