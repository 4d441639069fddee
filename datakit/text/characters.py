"""What every Unicode character is to us, as one table that the kernels read.

The table comes from Python's `unicodedata`, so its Unicode version is the interpreter's: stages whose result it shapes
name `UNICODE_VERSION` among their resources. Building it takes 0.14 s, so it is kept beside this file once it is made.
"""

import io
import sys
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from datakit.cached import cached

UNICODE_VERSION = unicodedata.unidata_version

# The low byte of an entry. _kernels.py repeats these values: numba freezes module globals of its own file only.
WORD = 1  # letters, combining marks, numbers: Unicode L, M, N
SPACELESS = 2  # of a script written without spaces: each WORD character is a word
SPACE = 4  # white space as str.isspace() has it
NOT_NFC = 8  # NFC may change the text around this character

CCC_SHIFT = 8  # canonical combining class: bits 8-15
FOLD_SHIFT = 16  # row of `folds`, 0 where case folding changes nothing: bits 16-31

_CODE_POINTS = 0x110000

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
_HANGUL_TAILS = ((0x1161, 0x1175), (0x11A8, 0x11C2))  # compose with what stands before them


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
    """The table of this process; treat its arrays as read-only."""
    source = Path(__file__)
    made_from = source.read_bytes(), sys.version.encode(), UNICODE_VERSION.encode(), np.__version__.encode()
    with np.load(io.BytesIO(cached(source, made_from, _saved_table)), allow_pickle=False) as saved:
        return CharacterTable(saved["pages"], saved["entries"], saved["folds"])


def _saved_table() -> bytes:
    table, file = make_table(), io.BytesIO()
    np.savez(file, pages=table.pages, entries=table.entries, folds=table.folds)
    return file.getvalue()


def make_table() -> CharacterTable:
    """The table from `unicodedata`."""
    codes, chars = _populated_planes()
    flat = np.zeros(_CODE_POINTS, dtype=np.uint32)
    word = np.fromiter((category[0] in "LMN" for category in map(unicodedata.category, chars)), np.uint32, len(chars))
    flat[codes] = word * WORD | np.fromiter(map(unicodedata.combining, chars), np.uint32, len(chars)) << CCC_SHIFT
    flat[[code for code, char in zip(codes, chars, strict=True) if char.isspace()]] |= SPACE
    for first, last in _SPACELESS_BLOCKS:
        flat[first : last + 1] |= (flat[first : last + 1] & WORD) * np.uint32(SPACELESS // WORD)
    flat[_not_nfc(codes, chars)] |= NOT_NFC
    folded = {code: fold for code, char in zip(codes, chars, strict=True) if (fold := char.casefold()) != char}
    flat[list(folded)] |= np.arange(1, len(folded) + 1, dtype=np.uint32) << FOLD_SHIFT
    folds = np.full((len(folded) + 1, 3), -1, dtype=np.int32)
    for row, fold in enumerate(folded.values(), start=1):
        folds[row, : len(fold)] = [ord(char) for char in fold]
    return CharacterTable(*_paged(flat), folds)


def entry(char: str) -> int:
    """The entry of one character, for code that is not a kernel."""
    table, code = character_table(), ord(char)
    return int(table.entries[int(table.pages[code >> 8]) << 8 | code & 255])


def _populated_planes() -> tuple[list[int], list[str]]:
    """Code points of the planes that hold characters other than private use; surrogates left out."""
    codes = [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xF0000)]
    return codes, list(map(chr, codes))


def _not_nfc(codes: list[int], chars: list[str]) -> list[int]:
    """NFC_Quick_Check No or Maybe: characters that NFC replaces, and second halves of compositions (UAX #15)."""
    found = {code for first, last in _HANGUL_TAILS for code in range(first, last + 1)}
    for code, char, parts in zip(codes, chars, map(unicodedata.decomposition, chars), strict=True):
        if not parts or parts[0] == "<":
            continue
        if unicodedata.normalize("NFC", char) != char:
            found.add(code)
        elif " " in parts:
            found.add(int(parts.split()[-1], 16))
    return sorted(found)


def _paged(flat: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
    """Entries of all code points -> (page number of each 256, the distinct pages one after another)."""
    numbers: dict[bytes, int] = {}
    pages = [numbers.setdefault(page.tobytes(), len(numbers)) for page in flat.reshape(-1, 256)]
    return np.array(pages, dtype=np.uint16), np.frombuffer(b"".join(numbers), dtype=np.uint32)
