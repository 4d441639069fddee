"""Classes of characters that the signals need, one byte of flags per code point."""

import functools
import unicodedata

import numpy as np
from numpy.typing import NDArray

from datakit.text import characters
from datakit.text.marks import BREAKS, QUOTES, TERMINALS

SPACE, BREAK, LETTER, MARK, NUMBER, SPACELESS, TERMINAL, QUOTE = (1 << bit for bit in range(8))

_KINDS = {"L": LETTER, "M": MARK, "N": NUMBER}


@functools.cache
def classes() -> NDArray[np.uint8]:
    """uint8[0x110000]: the flags of every code point; built once a process, in some 0.2 s. Read-only.

    SPACELESS characters are the letters, marks and numbers of scripts written without spaces, as dedup has them.
    """
    shared = characters.character_table()
    flat = shared.entries.reshape(-1, 256)[shared.pages].reshape(-1)
    table = np.zeros(flat.size, np.uint8)
    table[(flat & characters.SPACE) != 0] = SPACE
    for code in np.flatnonzero(flat & characters.WORD):
        table[code] = _KINDS[unicodedata.category(chr(code))[0]]
    table[(flat & characters.SPACELESS) != 0] |= SPACELESS
    for flag, marks in ((BREAK, BREAKS), (TERMINAL, TERMINALS), (QUOTE, QUOTES)):
        table[[ord(c) for c in marks]] |= flag
    table.setflags(write=False)
    return table
