"""The signal pass: everything that the rule sets measure, in one call per batch, straight from the Arrow buffer.

Legend: N rows of the batch, S signals, W words of a row. Text is UTF-8 as Arrow guarantees it (always valid).
Per row the pass costs two scans of the bytes and one hash-table insertion per word; longer n-grams are looked at only
where both shorter ones inside them repeat, which ordinary text rarely has.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import njit

from datakit.filter._kernels_lines import scan_lines
from datakit.filter._kernels_repeats import duplicates, ngrams, number, table_size
from datakit.filter._kernels_signals import (
    CHARS,
    DUP_LINES,
    DUP_PARAGRAPHS,
    LINES,
    NGRAM_STEP,
    PARAGRAPHS,
    SIGNALS,
    TOP_NGRAM,
    WORDS,
)
from datakit.filter._kernels_words import scan_words


@njit(nogil=True, cache=True)
def measure(data, offsets, classes):
    """All signals of a batch.

    data uint8[bytes], offsets int64[N+1] into it, classes uint8[0x110000] -> int64[S, N], in the order of SIGNALS.
    """
    rows = offsets.size - 1
    out = np.zeros((len(SIGNALS), rows), np.int64)
    longest = 0
    for row in range(rows):
        longest = max(longest, offsets[row + 1] - offsets[row])
    # A word takes two bytes at least: its own and the space, or three for a character of a script without spaces.
    room = longest // 2 + 2
    keys, sizes, starts = np.empty(room, np.uint64), np.empty(room, np.int32), np.empty(room, np.int32)
    words, places, numbers = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    counts, firsts = np.empty(room, np.int32), np.empty(room, np.int32)
    paragraph_keys, paragraph_sizes = np.empty(room, np.uint64), np.empty(room, np.int32)
    table = np.empty(128, np.uint64)
    signals = np.empty(len(SIGNALS), np.int64)
    for row in range(rows):
        signals[:] = 0
        low, high = offsets[row], offsets[row + 1]
        scan_lines(data, low, high, classes, keys, sizes, paragraph_keys, paragraph_sizes, signals)
        lines, paragraphs = signals[LINES], signals[PARAGRAPHS]
        table = _at_least(2 * table_size(lines), table)
        if lines > 1:
            number(keys, lines, table, numbers, counts, firsts)
            duplicates(sizes, lines, numbers, counts, firsts, signals[DUP_LINES:])
        if paragraphs > 1:
            number(paragraph_keys, paragraphs, table, numbers, counts, firsts)
            duplicates(paragraph_sizes, paragraphs, numbers, counts, firsts, signals[DUP_PARAGRAPHS:])
        scan_words(data, low, high, classes, keys, sizes, starts, signals)
        total, step, chars, repeats = signals[WORDS], signals[NGRAM_STEP], signals[CHARS], signals[TOP_NGRAM:]
        table = _at_least(2 * table_size(total), table)
        ngrams(keys, total, step, sizes, starts, words, places, numbers, counts, firsts, table, chars, repeats)
        out[:, row] = signals
    return out


@njit(nogil=True, cache=True)
def _at_least(size, table):
    return table if table.size >= size else np.empty(size, np.uint64)
