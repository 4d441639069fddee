"""What the `tokenizers` library takes each character for, asked of the library itself.

Its regex engine, its digits and its normal forms each come with a Unicode version of their own, none of them Python's.
So every code point is put to it, once per process (about a second).
"""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, normalizers, pre_tokenizers

from datakit.pack._kernels_bpe_split import ISOLATED, LETTER, NEWLINE, NUMBER, OTHER, SPACE

_CODE_POINTS = 0x110000
_LETTERS = "stremvld"
NOT_NFC = 8
"""Flag of an NFC entry, as the kernels of the normal form read it: NFC may change the text around this character."""
CLASS_SHIFT = 8
"""Where an NFC entry holds an order of combining classes."""


@dataclass(frozen=True, slots=True)
class Paged:
    """A value per code point c: `entries[pages[c >> 8] << 8 | c & 255]`; the page of ASCII is the first."""

    pages: npt.NDArray[np.uint16]
    entries: npt.NDArray[Any]

    @classmethod
    def of(cls, flat: npt.NDArray[Any]) -> "Paged":
        """Share equal pages of 256."""
        numbers: dict[bytes, int] = {}
        pages = [numbers.setdefault(page.tobytes(), len(numbers)) for page in flat.reshape(-1, 256)]
        return cls(np.array(pages, np.uint16), np.frombuffer(b"".join(numbers), flat.dtype))


@lru_cache(maxsize=1)
def _all() -> str:
    return "".join(map(chr, [*range(0xD800), *range(0xE000, _CODE_POINTS)]))


def _codes(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _matching(regex: str) -> npt.NDArray[np.bool_]:
    """Which code points match, as the library's regex engine has it."""
    rest = _codes(normalizers.Replace(Regex(regex), "").normalize_str(_all()))
    found = np.zeros(_CODE_POINTS, np.bool_)
    found[_codes(_all())] = True
    found[rest] = False
    return found


def _numeric() -> npt.NDArray[np.bool_]:
    """Which code points the pre-tokenizer Digits cuts out: its pieces are runs of numeric and other characters."""
    found = np.zeros(_CODE_POINTS, np.bool_)
    codes = _codes(_all())
    # The first piece begins with NUL, which is not numeric.
    for i, (_, (start, end)) in enumerate(pre_tokenizers.Digits(individual_digits=False).pre_tokenize_str(_all())):
        found[codes[start:end]] = i % 2 == 1
    return found


@lru_cache(maxsize=2)
def classes(isolate_digits: bool) -> Paged:
    """The class of every code point (uint8), see `_kernels_bpe_split`."""
    letter, number, space = map(_matching, (r"\p{L}", r"\p{N}", r"\s"))
    assert not (letter & number | letter & space | number & space).any()
    flat = np.where(letter, LETTER, np.where(number, NUMBER, np.where(space, SPACE, OTHER))).astype(np.uint8)
    flat[[10, 13]] |= NEWLINE
    if isolate_digits:
        flat[_numeric()] = ISOLATED
    return Paged.of(flat)


@lru_cache(maxsize=1)
def folds() -> npt.NDArray[np.int64]:
    """(n, 2) characters beyond ASCII that match an ASCII letter of a contraction without regard to case, and which."""
    found = np.flatnonzero(_matching(f"(?i:[{_LETTERS}])"))
    far = "".join(map(chr, found[found >= 128]))
    pairs = [
        (ord(c), ord(letter))
        for letter in _LETTERS
        for c in far
        if not normalizers.Replace(Regex(f"(?i:{letter})"), "").normalize_str(c)
    ]
    return np.array(pairs, np.int64).reshape(-1, 2)


@lru_cache(maxsize=1)
def nfc_entries() -> Paged:
    """uint32 per code point for `datakit.text`'s quick check of NFC (UAX #15): sure when it says that nothing changes.

    Characters that NFC replaces or that may compose with one before them have NOT_NFC; combining ones have the order of
    their combining class from CLASS_SHIFT on, found by letting the library sort pairs of them.
    """
    nfc, nfd = normalizers.NFC(), normalizers.NFD()
    # Between marks of the highest and the lowest class: the line changes exactly if c combines or decomposes.
    lines = [f"\u0345{c}\u0334" for c in _all() if c != "\n"]
    changing = [a[1] for a, b in zip(lines, _lines(nfd, lines), strict=True) if a != b]
    flat = np.zeros(_CODE_POINTS, np.uint32)
    marks = []
    for c, composed, parts in zip(changing, _lines(nfc, changing), _lines(nfd, changing), strict=True):
        if composed != c:
            flat[ord(c)] |= NOT_NFC
        elif parts == c:
            marks.append(c)
        else:  # each but the first of its parts composes with what stands before it
            flat[[ord(part) for part in parts[1:]]] |= NOT_NFC
    flat[[ord(c) for c in marks]] |= _order(marks, nfd) << CLASS_SHIFT
    return Paged.of(flat)


def _lines(normalizer: normalizers.Normalizer, lines: list[str]) -> list[str]:
    """Each line normalised; nothing composes with or moves across a new line."""
    made: list[str] = normalizer.normalize_str("\n".join(lines)).split("\n")
    return made


def _order(marks: list[str], nfd: normalizers.Normalizer) -> npt.NDArray[np.uint32]:
    """Numbers from 1 on that order marks as their combining classes do: twice the classes known to be lower, and 1 if
    one is equal; the library tells of two marks which one it sorts to the front."""
    known = list({unicodedata.combining(c): c for c in marks if unicodedata.combining(c)}.values())
    after = [f"{c}{k}" for c in marks for k in known]
    before = [f"{k}{c}" for c in marks for k in known]
    higher = np.array([a != b for a, b in zip(after, _lines(nfd, after), strict=True)]).reshape(len(marks), -1)
    lower = np.array([a != b for a, b in zip(before, _lines(nfd, before), strict=True)]).reshape(len(marks), -1)
    found: npt.NDArray[np.uint32] = (1 + 2 * higher.sum(1) + (~higher & ~lower).any(1)).astype(np.uint32)
    return found
