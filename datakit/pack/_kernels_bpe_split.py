"""Splits UTF-8 text as a tokenizer's regex does, and finds added tokens: numba and numpy, arrays only.

The regexes are matched by hand, alternative by alternative and with their backtracking (a run of white space gives its
last character back where text follows). A character has exactly one class; ISOLATED is one of its own, which ends
every run, as a pre-tokenizer that cuts digits out first does.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

# Without reference counts: a kernel of this kind makes no array, and counting the references of a dozen of them around
# every call took nine tenths of the time. Numba hands the option on to the functions that a kernel calls.
_UNCOUNTED: dict[str, Any] = {"_nrt": False}
kernel = njit(cache=True, nogil=True, **_UNCOUNTED)
"""Compiles a function that allocates nothing."""

LETTER, NUMBER, SPACE, NEWLINE, OTHER, ISOLATED = 1, 2, 4, 8, 16, 32
"""Classes; NEWLINE (carriage return, line feed) comes with SPACE."""
GPT2, CL100K = 0, 1
"""'s|'t|'re|... | ?\\p{L}+| ?\\p{N}+|..., and the one with \\p{N}{1,k} and new lines of its own (Llama 3, Qwen2)."""

_S, _T, _M, _D, _R, _V, _L, _E = (np.int64(ord(c)) for c in "stmdrvle")


class SplitTables(NamedTuple):
    """What the regex and the added tokens are, as arrays."""

    pattern: int
    max_digits: int
    """CL100K: numbers a piece holds at most."""
    pages: npt.NDArray[np.uint16]
    classes: npt.NDArray[np.uint8]
    """Class of code point c: classes[pages[c >> 8] << 8 | c & 255]; page 0 comes first."""
    folds: npt.NDArray[np.int64]
    """(n, 2) code points beyond ASCII that a case-insensitive regex takes for an ASCII letter, and that letter."""
    token_starts: npt.NDArray[np.bool_]
    """(256) the bytes that an added token begins with."""
    trie: npt.NDArray[np.int32]
    """(states, 256) next state of the added tokens' bytes, 0 for none; state 0 is the root."""
    trie_ids: npt.NDArray[np.int32]
    """(states) id of the added token that ends in a state, -1 for none."""


@kernel
def character(data, i):  # type: ignore[no-untyped-def]
    """(code point, bytes) of the UTF-8 character at byte i; Arrow strings are valid UTF-8."""
    lead = np.int64(data[i])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | np.int64(data[i + 1] & 0x3F), 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | np.int64(data[i + 1] & 0x3F) << 6 | np.int64(data[i + 2] & 0x3F), 3
    code = (lead & 0x07) << 18 | np.int64(data[i + 1] & 0x3F) << 12
    return code | np.int64(data[i + 2] & 0x3F) << 6 | np.int64(data[i + 3] & 0x3F), 4


@kernel
def _class(data, i, tables):  # type: ignore[no-untyped-def]
    """(class, bytes) of the character at byte i."""
    byte = data[i]
    if byte < 0x80:
        return tables.classes[byte], 1
    code, size = character(data, i)
    return tables.classes[np.int64(tables.pages[code >> 8]) << 8 | code & 255], size


@kernel
def _run(data, i, end, kind, tables):  # type: ignore[no-untyped-def]
    """Where the run of characters of one class that begins at byte i ends."""
    while i < end:
        found, size = _class(data, i, tables)
        if not found & kind:
            break
        i += size
    return i


@kernel
def _folded(data, i, end, tables, ignore_case):  # type: ignore[no-untyped-def]
    """(ASCII letter that the character at byte i counts as, bytes)."""
    if i >= end:
        return np.int64(0), 0
    code, size = character(data, i)
    if ignore_case:
        if 65 <= code <= 90:
            code += 32
        elif code >= 128:
            for k in range(len(tables.folds)):
                if tables.folds[k, 0] == code:
                    return tables.folds[k, 1], size
    return code, size


@kernel
def _contraction(data, i, end, tables, ignore_case):  # type: ignore[no-untyped-def]
    """Bytes of 's, 't, 're, 've, 'm, 'll or 'd at byte i, 0 if there is none."""
    first, size = _folded(data, i + 1, end, tables, ignore_case)
    if first in (_S, _T, _M, _D):
        return 1 + size
    if first in (_R, _V, _L):
        second, more = _folded(data, i + 1 + size, end, tables, ignore_case)
        if second == (_L if first == _L else _E):
            return 1 + size + more
    return 0


@kernel
def _spaces(data, i, end, tables, by_line):  # type: ignore[no-untyped-def]
    r"""End of white space at byte i: `\s*[\r\n]+` first if by_line, then `\s+(?!\S)`, then `\s+`."""
    begin = last = line = i
    while i < end:
        found, size = _class(data, i, tables)
        if not found & SPACE:
            break
        last = i
        i += size
        if found & NEWLINE:
            line = i
    if by_line and line > begin:
        return line
    if last == begin or i == end or _class(data, i, tables)[0] == ISOLATED:
        return i
    return last


@kernel
def _gpt2(data, i, end, tables):  # type: ignore[no-untyped-def]
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ (Radford et al. 2019)."""
    byte = data[i]
    if byte == 0x27:
        size = _contraction(data, i, end, tables, False)
        if size:
            return i + size
    found, size = _class(data, i, tables)
    after = i + size
    if byte == 0x20 and after < end:
        following, more = _class(data, after, tables)
        if following & (LETTER | NUMBER | OTHER):
            return _run(data, after + more, end, following, tables)
    if found & (LETTER | NUMBER | OTHER):
        return _run(data, after, end, found, tables)
    return after if found == ISOLATED else _spaces(data, i, end, tables, False)


@kernel
def _cl100k(data, i, end, tables):  # type: ignore[no-untyped-def]
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,k}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|...

    and then white space as `_spaces` has it.
    """
    byte = data[i]
    if byte == 0x27:
        size = _contraction(data, i, end, tables, True)
        if size:
            return i + size
    found, size = _class(data, i, tables)
    after = i + size
    if found == LETTER:
        return _run(data, after, end, LETTER, tables)
    following, more = _class(data, after, tables) if after < end else (np.uint8(0), 0)
    if not found & (NUMBER | NEWLINE) and following == LETTER:
        return _run(data, after + more, end, LETTER, tables)
    if found == NUMBER:
        for _ in range(tables.max_digits - 1):
            if after == end or _class(data, after, tables)[0] != NUMBER:
                break
            after += _class(data, after, tables)[1]
        return after
    if found == OTHER or (byte == 0x20 and following == OTHER):
        return _run(data, _run(data, after, end, OTHER, tables), end, NEWLINE, tables)
    return _spaces(data, i, end, tables, True)


@kernel
def piece_end(data, i, end, tables):  # type: ignore[no-untyped-def]
    """Where the piece that begins at byte i ends; the regexes leave no character out."""
    if tables.pattern == GPT2:
        return _gpt2(data, i, end, tables)
    return _cl100k(data, i, end, tables)


@kernel
def next_added(data, i, end, tables):  # type: ignore[no-untyped-def]
    """(begin, end, id) of the next added token from byte i on, the longest of several; (end, end, -1) if none."""
    while i < end:
        if tables.token_starts[data[i]]:
            state, at, stop, found = 0, i, i, -1
            while at < end:
                state = tables.trie[state, data[at]]
                if state == 0:
                    break
                at += 1
                if tables.trie_ids[state] >= 0:
                    stop, found = at, tables.trie_ids[state]
            if found >= 0:
                return i, stop, found
        i += 1
    return end, end, -1
