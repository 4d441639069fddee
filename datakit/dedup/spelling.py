"""Characters that are compared as one, and those that stand for several: what differs in spelling alone.

Full-width and half-width forms, digits of every script, quotes and dashes; letters that people leave out or interchange
(accents of Greek, hamza, the nukta). The kernel writes ä as ae, and a nasal of Devanagari before its own row as a dot.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import string_buffers
from datakit.dedup import _kernels_streams as kernels
from datakit.text.words import compose

_CODE_POINTS = 0x30000
_SIGN, _OPERATOR, _POINT = 2, 3, 4

_SAME = {
    "'": "‘’‚‛ʼ′＇",
    '"': "“”„‟″«»「」『』〝〞",
    "-": "‐‑‒–—―−﹣－",
    ".": "。…․।॥۔",
    "?": "؟",
    ";": "؛",
    ",": "、，،",
    "*": "∗＊",
    "你": "您妳",
    "请": "請",
    "谢": "謝",
    "问": "問",
    "吗": "嗎",
    "烦": "煩",
    "帮": "幫",
    "诉": "訴",
    "个": "個",
    "这": "這",
    "账": "帐",
    "么": "麼",
    "е": "ё",
    "Е": "Ё",
    "ا": "أإآٱ",
    "ي": "ی",
    "ك": "ک",
    "ं": "ँ",
    "I": "İ",
    **dict(zip("αεηιουω", ["ά", "έ", "ή", "ίϊΐ", "ό", "ύϋΰ", "ώ"], strict=True)),
    **dict(zip("ΑΕΗΙΟΥΩ", ["Ά", "Έ", "Ή", "ΊΪ", "Ό", "ΎΫ", "Ώ"], strict=True)),
}
"""Characters that are compared as one."""

_LEFT_OUT = (*range(0x5B0, 0x5C8), 0x640, *range(0x64B, 0x653), 0x670, 0x93C, 0x200B, 0x200C, 0x200D, 0xFEFF)
"""Points of Hebrew, short vowels and stretched lines of Arabic, the nukta, and what is not seen: often left out."""


_VOICED = (0xFF9E, 0xFF9F)
"""Half-width marks of Katakana, which make one letter with the one before."""

_HALF_WIDTH = re.compile("[\uff65-\uff9f]+")
_WRITTEN_OUT = {"ä": "ae", "ö": "oe", "ü": "ue", "æ": "ae", "ø": "oe", "œ": "oe"}
_NASALS = re.compile("(?:ङ्(?=[क-घ])|ञ्(?=[च-झ])|ण्(?=[ट-ढ])|न्(?=[त-ध])|म्(?=[प-भ]))")


@dataclass(frozen=True, slots=True)
class Signs:
    """How characters are compared. canon uint32 and classes uint8 (code points,): what a character stands for, and the
    class of one that is no word. long bool (code points,): it stands for several characters; then see `spelled_out`."""

    canon: npt.NDArray[np.uint32]
    classes: npt.NDArray[np.uint8]
    long: npt.NDArray[np.bool_]


@lru_cache(maxsize=1)
def signs() -> Signs:
    """The tables of this process. Treat their arrays as read-only."""
    canon = np.arange(_CODE_POINTS, dtype=np.uint32)
    classes = np.full(_CODE_POINTS, _POINT, np.uint8)
    long = np.zeros(_CODE_POINTS, np.bool_)
    for code in (*range(0xA0, 0xD800), *range(0xF900, 0x10000), *range(0x1D400, 0x20000)):
        char = chr(code)
        tag = unicodedata.decomposition(char)
        if tag[:1] == "<":
            plain = unicodedata.normalize("NFKC", char)
            long[code] = len(plain) > 1 or tag.startswith(("<super>", "<fraction>"))
            if not long[code]:
                canon[code] = ord(plain)
        if unicodedata.category(char) in ("Sm", "Sc"):
            classes[code] = _SIGN
        if (digit := unicodedata.decimal(char, None)) is not None:
            canon[code] = ord("0") + digit
    for char, same in _SAME.items():
        canon[[ord(other) for other in same]] = ord(char)
        long[[ord(other) for other in same]] = False
    long[[*_LEFT_OUT, *_VOICED]] = True
    classes[[ord(char) for char in "+=<>^%$°‰"]] = _SIGN
    classes[[ord(char) for char in "-*/.,:!#"]] = _OPERATOR
    return Signs(canon, classes, long)


def spelled_out(texts: pa.Array) -> pa.Array:
    """Texts in NFC, where characters that stand for several are written out; ² is ^2, and ½ is apart from digits."""
    texts = compose(texts)
    data, offsets = string_buffers(texts)
    found = np.zeros(len(texts), np.bool_)
    kernels.find_characters(data, offsets, signs().long, found)
    if not found.any():
        return texts
    long = signs().long
    wide = (_HALF_WIDTH.sub(_full_width, text) for text in texts.filter(pa.array(found)).to_pylist())
    changed = ["".join(map(_spelled_out, text)) if any(long[ord(c)] for c in text if ord(c) < _CODE_POINTS) else text
               for text in wide]  # fmt: skip
    return pc.replace_with_mask(texts, pa.array(found), pa.array(changed, texts.type))


def _full_width(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", found.group())


def as_compared(text: str) -> str:
    """A text of letters in lower case as the kernel reads it, for the words of lists."""
    canon = signs().canon

    def one(char: str) -> str:
        same = (chr(canon[ord(c)]) if ord(c) < _CODE_POINTS else c for c in _spelled_out(char))
        return "".join(_WRITTEN_OUT.get(c, c) for c in same)

    text = unicodedata.normalize("NFC", text)
    return _NASALS.sub("ं", text.translate({ord(char): one(char) for char in set(text)}))


def _spelled_out(char: str) -> str:
    if ord(char) >= _CODE_POINTS or not signs().long[ord(char)]:
        return char
    if ord(char) in _LEFT_OUT:
        return ""
    tag = unicodedata.decomposition(char)
    before = {"<super>": "^", "<fraction>": " "}.get(tag.split(" ")[0], "")
    return before + unicodedata.normalize("NFKC", char)
