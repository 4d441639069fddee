"""Words for dedup: runs of letters, combining marks and digits (Unicode L, M, N), case-folded.

Each character of a script that is written without spaces (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar) is a word
of its own. Case folding is the full one of `str.casefold`. The kernel works on hashes; `split_words` gives the words
themselves, for people.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.text.characters import SPACELESS, WORD, Bytes, Offsets, character_table, entry, string_buffers


def hash_words(array: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """64-bit hashes of the words of all texts, and where those of each row begin (rows + 1)."""
    return hash_words_in(*string_buffers(array))


def hash_words_in(data: Bytes, offsets: Offsets) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """`hash_words` of a string array's buffers."""
    from datakit.text import _kernels_words as kernels

    table = character_table()
    hashes = np.empty((offsets[-1] - offsets[0]) // 2 + len(offsets), dtype=np.uint64)
    starts = np.empty_like(offsets)
    scratch = np.empty((3 * int(np.diff(offsets).max(initial=0)) >> 3) + 192, dtype=np.uint64)
    kernels.hash_all_words(data, offsets, table.pages, table.entries, table.folds, scratch, hashes, starts)
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
