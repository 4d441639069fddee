"""Classes of characters that the signals need, one byte of flags per code point."""

import functools
import unicodedata

import numpy as np
from numpy.typing import NDArray

from datakit.text import characters

SPACE, BREAK, LETTER, MARK, NUMBER, SPACELESS, TERMINAL = (1 << bit for bit in range(7))

_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""Where `str.splitlines` ends a line."""

_TERMINALS = ".!?…\"'”’»)]。！？｡．؟۔।॥։።፧།៕\u037e\u203c\u203d\u2047\u2048\u2049"
"""What a finished line ends with: sentence marks of the world's scripts, and the quotes and brackets behind them."""

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
    for flag, marks in ((BREAK, _BREAKS), (TERMINAL, _TERMINALS)):
        table[[ord(c) for c in marks]] |= flag
    table.setflags(write=False)
    return table
