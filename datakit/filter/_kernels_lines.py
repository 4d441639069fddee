"""The lines and paragraphs of a row and what is counted of them: the second half of the signal pass."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import njit

from datakit.filter._kernels_bytes import before, below, decode, first, hashed, load
from datakit.filter._kernels_signals import (
    ALL_LINES,
    BREAK,
    BULLET_LINES,
    ELLIPSIS_LINES,
    FIRST_KANA_HAN,
    KANA_HAN_EXTRA,
    LINE_BREAKS,
    LINE_CHARS,
    LINES,
    PARAGRAPHS,
    SHORT_LINE_CHARS,
    SHORT_LINES,
    SPACE,
    SPACELESS,
    TERMINAL,
    TERMINAL_LINES,
)

_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@njit(nogil=True, cache=True)
def scan_lines(data, low, high, classes, keys, sizes, paragraph_keys, paragraph_sizes, signals):
    """Find the lines and paragraphs of one row and count them; blank lines only separate paragraphs.

    Fills keys (hash) and sizes (code points) of the lines and of the paragraphs. White space at a line's end belongs to
    neither; indentation does.
    """
    line, place = low, 0  # where the line begins: its byte, its code point
    paragraph_key, paragraph_start, paragraph_end = _SEED, -1, 0
    while line <= high:
        stop, width, rest, extra = _line(data, line, high, classes)
        signals[LINE_BREAKS] += stop < high
        signals[ALL_LINES] += stop < high or stop > line
        end, trimmed = _solid_end(data, line, stop, classes)
        size = stop - line - rest
        if end > line:
            count, key = signals[LINES], hashed(data, line, end)
            keys[count], sizes[count] = key, size - trimmed
            _count_line(data, line, end, stop, classes, size - trimmed, extra, signals)
            if paragraph_start < 0:
                paragraph_key, paragraph_start = _SEED, place
            paragraph_key, paragraph_end = (paragraph_key ^ key) * _PRIME, place + size - trimmed
        if paragraph_start >= 0 and (end == line or stop == high):
            paragraph = signals[PARAGRAPHS]
            paragraph_keys[paragraph] = paragraph_key ^ paragraph_key >> np.uint64(32)
            paragraph_sizes[paragraph] = paragraph_end - paragraph_start
            signals[PARAGRAPHS] += 1
            paragraph_start = -1
        line, place = stop + width, place + size + 1


@njit(nogil=True, cache=True)
def _line(data, at, high, classes):
    """(where the line's break is, its bytes, bytes of the line that are not the first of their character, what
    characters of Han and kana count more than one). "\\r\\n" breaks at "\\n"."""
    rest, extra = 0, 0
    while at < high:
        while at + 8 <= high:
            found = below(load(data, at), 32)
            if found:
                at += first(found)
                break
            at += 8
        if at == high:
            break
        code, width = decode(data, at)
        kind = classes[code]
        if kind & BREAK and not (code == 13 and at + 1 < high and data[at + 1] == 10):
            return at, width, rest, extra
        rest += width - 1
        if kind & SPACELESS and code >= FIRST_KANA_HAN:
            extra += KANA_HAN_EXTRA
        at += width
    return high, 1, rest, extra


@njit(nogil=True, cache=True)
def _solid_end(data, line, end, classes):
    """(where the last character ends that is no white space, how many of it come behind); `line` if there is none."""
    trimmed = 0
    while end > line:
        begin = before(data, end, line)
        code, _ = decode(data, begin)
        if not classes[code] & SPACE:
            break
        end = begin
        trimmed += 1
    return end, trimmed


@njit(nogil=True, cache=True)
def _count_line(data, line, end, stop, classes, size, extra, signals):
    """Add a line to the row's signals: the solid part of it is data[line:end], its break comes at `stop`."""
    signals[LINES] += 1
    signals[LINE_CHARS] += size
    signals[SHORT_LINES] += size + extra <= SHORT_LINE_CHARS
    last, _ = decode(data, before(data, end, line))
    dots = end - line >= 3 and data[end - 1] == 46 and data[end - 2] == 46 and data[end - 3] == 46
    signals[ELLIPSIS_LINES] += last == 0x2026 or dots
    signals[TERMINAL_LINES] += (classes[last] & TERMINAL) != 0
    code, width = decode(data, line)
    while classes[code] & SPACE:
        line += width
        code, width = decode(data, line)
    behind = line + width
    second = 32 if behind == stop or (data[behind] == 13 and behind + 1 == stop) else np.int64(data[behind])
    dash = (code == 45 or code == 42) and (second == 32 or second == 9)
    # • ‣ ◦ ● ▪
    signals[BULLET_LINES] += (
        dash or code == 0x2022 or code == 0x2023 or code == 0x25E6 or code == 0x25CF or code == 0x25AA
    )
