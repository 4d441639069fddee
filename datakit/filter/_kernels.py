"""The signal pass: everything that the rule sets measure, in one call per batch, straight from the Arrow buffer.

Legend: N rows of the batch, S signals, W words of a row. Text is UTF-8 as Arrow guarantees it (always valid).
Per row the pass costs two scans of the bytes and one hash-table insertion per word; longer n-grams are looked at only
where both shorter ones inside them repeat, which ordinary text rarely has.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import njit

from datakit.filter._kernels_repeats import duplicates, ngrams, number, table_size

SIGNALS = (
    "chars",  # code points of the row, white space included
    "words",
    "spaceless_words",  # words that are one character of a script written without spaces
    "kana_han_words",  # of those, characters of Han, Hiragana and Katakana
    "word_chars",  # code points in words
    "spaced_chars",  # code points in words with spaces around them, combining marks not counted
    "symbol_words",  # words without any letter, mark or digit
    "symbol_chars",  # their code points
    "alpha_words",  # words with a letter
    "foreign_words",  # words with a letter beyond ASCII
    "hashes",  # "#"
    "ellipses",  # "..." and "…"
    "stop_words",  # how many different ones of Gopher's eight English words
    "max_word_chars",
    "all_lines",  # blank ones too
    "lines",  # with anything but white space in them
    "bullet_lines",
    "ellipsis_lines",
    "terminal_lines",  # that end in a sentence's mark
    "short_lines",  # at most SHORT_LINE_CHARS code points, one of Han or kana counted as three
    "line_breaks",
    "line_chars",  # code points in lines, white space at their ends not counted
    "dup_lines",  # copies after the first
    "dup_line_chars",
    "all_dup_lines",  # every copy of what occurs twice or more
    "all_dup_line_chars",
    "paragraphs",  # lines between blank lines
    "dup_paragraphs",
    "dup_paragraph_chars",
    "all_dup_paragraphs",
    "all_dup_paragraph_chars",
    "ngram_step",  # words of the text to one of an n-gram
    "top_2gram_chars",
    "top_3gram_chars",
    "top_4gram_chars",
    "dup_5gram_chars",
    "dup_6gram_chars",
    "dup_7gram_chars",
    "dup_8gram_chars",
    "dup_9gram_chars",
    "dup_10gram_chars",
    "all_dup_5gram_chars",
    "all_dup_6gram_chars",
    "all_dup_7gram_chars",
    "all_dup_8gram_chars",
    "all_dup_9gram_chars",
    "all_dup_10gram_chars",
)
_AT = {name: place for place, name in enumerate(SIGNALS)}
CHARS, WORDS, SPACELESS_WORDS, WORD_CHARS = _AT["chars"], _AT["words"], _AT["spaceless_words"], _AT["word_chars"]
SPACED_CHARS, SYMBOL_WORDS, SYMBOL_CHARS = _AT["spaced_chars"], _AT["symbol_words"], _AT["symbol_chars"]
ALPHA_WORDS, FOREIGN_WORDS, STOP_WORDS = _AT["alpha_words"], _AT["foreign_words"], _AT["stop_words"]
HASHES, ELLIPSES = _AT["hashes"], _AT["ellipses"]
MAX_WORD_CHARS, LINES, BULLET_LINES = _AT["max_word_chars"], _AT["lines"], _AT["bullet_lines"]
ELLIPSIS_LINES, TERMINAL_LINES, SHORT_LINES = _AT["ellipsis_lines"], _AT["terminal_lines"], _AT["short_lines"]
ALL_LINES, LINE_BREAKS, LINE_CHARS, DUP_LINES = (
    _AT["all_lines"],
    _AT["line_breaks"],
    _AT["line_chars"],
    _AT["dup_lines"],
)
PARAGRAPHS, DUP_PARAGRAPHS = _AT["paragraphs"], _AT["dup_paragraphs"]
KANA_HAN_WORDS, NGRAM_STEP, TOP_NGRAM = _AT["kana_han_words"], _AT["ngram_step"], _AT["top_2gram_chars"]

# The flags of datakit.filter.chars; a test holds the two together.
SPACE, BREAK, LETTER, MARK, NUMBER, SPACELESS, TERMINAL = 1, 2, 4, 8, 16, 32, 64
FOREIGN_LETTER = 256  # of a word: a letter beyond ASCII

SHORT_LINE_CHARS = 30
MAX_STOP_WORD_CHARS = 40  # with the punctuation around it
# An English word takes about six characters with its space, one of Chinese or Japanese two.
KANA_HAN_EXTRA = 2
# A word of Chinese or Japanese is about two characters, one of Thai, Lao, Khmer or Burmese about four with its marks:
# n-grams of single characters repeat in any text.
KANA_HAN_STEP, OTHER_STEP = 2, 4
_FIRST_KANA_HAN = 0x2E80  # the other scripts without spaces come before

_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_STOP_WORDS = tuple(
    sum(byte << 8 * place for place, byte in enumerate(word))
    for word in (b"the", b"be", b"to", b"of", b"and", b"that", b"have", b"with")
)


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
    table, table_numbers = np.empty(64, np.uint64), np.empty(64, np.int32)
    signals = np.empty(len(SIGNALS), np.int64)
    for row in range(rows):
        signals[:] = 0
        low, high = offsets[row], offsets[row + 1]
        _scan_lines(data, low, high, classes, keys, sizes, paragraph_keys, paragraph_sizes, signals)
        lines, paragraphs = signals[LINES], signals[PARAGRAPHS]
        entries = table_size(lines)
        if entries > table.size:
            table, table_numbers = np.empty(entries, np.uint64), np.empty(entries, np.int32)
        if lines > 1:
            number(keys, lines, table, table_numbers, numbers, counts, firsts)
            duplicates(sizes, lines, numbers, counts, firsts, signals[DUP_LINES:])
        if paragraphs > 1:
            number(paragraph_keys, paragraphs, table, table_numbers, numbers, counts, firsts)
            duplicates(paragraph_sizes, paragraphs, numbers, counts, firsts, signals[DUP_PARAGRAPHS:])
        _scan_words(data, low, high, classes, keys, sizes, starts, signals)
        entries = table_size(signals[WORDS])
        if entries > table.size:
            table, table_numbers = np.empty(entries, np.uint64), np.empty(entries, np.int32)
        total, step, chars, repeats = signals[WORDS], signals[NGRAM_STEP], signals[CHARS], signals[TOP_NGRAM:]
        ngrams(
            keys,
            total,
            step,
            sizes,
            starts,
            words,
            places,
            numbers,
            counts,
            firsts,
            table,
            table_numbers,
            chars,
            repeats,
        )
        out[:, row] = signals
    return out


@njit(nogil=True, cache=True, inline="always")
def _decode(data, at):
    """(code point, bytes) of the UTF-8 character that begins at `at`."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | np.int64(data[at + 1]) & 0x3F, 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | np.int64(data[at + 2]) & 0x3F, 3
    high = (lead & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
    return high | (np.int64(data[at + 2]) & 0x3F) << 6 | np.int64(data[at + 3]) & 0x3F, 4


@njit(nogil=True, cache=True)
def _scan_words(data, low, high, classes, keys, sizes, starts, signals):
    """Find the words of one row and count them.

    Words are white-space tokens; in a token with characters of a script without spaces each of those is a word, and
    so are the runs between them that hold a letter or digit (a lone comma between two of them belongs to neither).
    Fills keys (hash), sizes (code points) and starts (place in the row with every gap as one space) of each word.
    Counts live in local variables until the end: a store to `signals` for each word would cost a third of the speed.
    """
    found, place, chars, dots = 0, 0, 0, 0
    hashes, ellipses, alone, kana_han, alpha, foreign = 0, 0, 0, 0, 0, 0
    word_chars, mark_chars, symbols, symbol_chars, longest, stop_words = 0, 0, 0, 0, 0, 0
    key, size, marks, flags, begin = _SEED, 0, 0, 0, low
    broken = False  # the token has already given words of one character
    at = low
    while at <= high:
        start = at
        while at < high:  # most of most words
            byte = data[np.uintp(at)]
            if byte >= 0x80 or not classes[byte] & (LETTER | NUMBER):
                break
            key = (key ^ np.uint64(byte)) * _PRIME
            flags |= classes[byte]
            at += 1
        if at > start:
            size += at - start
            dots = 0
        code, width = (32, 1) if at == high else _decode(data, at)
        kind = classes[code]
        if kind & (SPACE | SPACELESS):
            broken |= (kind & SPACELESS) != 0
            chars += size
            if size > 0 and (not broken or flags & (LETTER | MARK | NUMBER)):
                keys[found], sizes[found], starts[found] = key, size, place
                found += 1
                place += size
                word_chars += size
                mark_chars += marks
                longest = max(longest, size)
                if flags & LETTER:
                    alpha += 1
                    if flags & FOREIGN_LETTER:
                        foreign += 1
                    elif size <= MAX_STOP_WORD_CHARS:
                        stop_words |= _stop_word(data, begin, at)
                elif not flags & (MARK | NUMBER):
                    symbols += 1
                    symbol_chars += size
            chars += at < high
            dots = 0
            if kind & SPACELESS:
                keys[found], sizes[found], starts[found] = (_SEED ^ np.uint64(code)) * _PRIME, 1, place
                found += 1
                place += 1
                alone += 1
                kana_han += code >= _FIRST_KANA_HAN
                alpha += (kind & (LETTER | MARK)) != 0
                foreign += (kind & (LETTER | MARK)) != 0
            else:
                broken = False
                if found > 0 and starts[found - 1] + sizes[found - 1] == place:
                    place += 1
            key, size, marks, flags, begin = _SEED, 0, 0, 0, at + width
        else:
            dots = dots + 1 if code == 46 else 0
            if dots == 3:
                dots = 0
                ellipses += 1
            hashes += code == 35
            ellipses += code == 0x2026
            key = (key ^ np.uint64(code)) * _PRIME
            size += 1
            marks += (kind & MARK) != 0
            flags |= kind
            if kind & LETTER and code > 127:
                flags |= FOREIGN_LETTER
        at += width
    signals[CHARS], signals[WORDS], signals[SPACELESS_WORDS], signals[KANA_HAN_WORDS] = chars, found, alone, kana_han
    signals[WORD_CHARS], signals[SPACED_CHARS] = word_chars + alone, word_chars - mark_chars
    signals[SYMBOL_WORDS], signals[SYMBOL_CHARS], signals[HASHES], signals[ELLIPSES] = (
        symbols,
        symbol_chars,
        hashes,
        ellipses,
    )
    signals[ALPHA_WORDS], signals[FOREIGN_WORDS], signals[STOP_WORDS] = alpha, foreign, _bits(stop_words)
    signals[MAX_WORD_CHARS] = max(longest, min(alone, 1))
    signals[NGRAM_STEP] = 1
    if 2 * alone > found:
        signals[NGRAM_STEP] = KANA_HAN_STEP if 2 * kana_han > alone else OTHER_STEP


@njit(nogil=True, cache=True)
def _stop_word(data, begin, end):
    """The bit of the stop word that these bytes are, whatever its case and the punctuation around it; 0 for none."""
    while begin < end and not _ascii_alphanumeric(data[begin]):
        begin += 1
    while begin < end and not _ascii_alphanumeric(data[end - 1]):
        end -= 1
    if not 2 <= end - begin <= 4:
        return 0
    packed = 0
    for place in range(end - begin):
        packed |= (np.int64(data[begin + place]) | 32) << 8 * place
    for bit, word in enumerate(_STOP_WORDS):
        if packed == word:
            return 1 << bit
    return 0


@njit(nogil=True, cache=True, inline="always")
def _ascii_alphanumeric(byte):
    return 48 <= byte <= 57 or 97 <= (byte | 32) <= 122


@njit(nogil=True, cache=True)
def _bits(mask):
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@njit(nogil=True, cache=True)
def _scan_lines(data, low, high, classes, keys, sizes, paragraph_keys, paragraph_sizes, signals):
    """Find the lines and paragraphs of one row and count them; blank lines only separate paragraphs.

    Fills keys (hash) and sizes (code points) of the lines and of the paragraphs. White space at a line's end belongs to
    neither; indentation does.
    """
    at, place, line_start = low, 0, 0
    paragraph_key, paragraph_start, paragraph_end = _SEED, -1, 0
    key = solid_key = _SEED
    first, second, last, dots, solid_dots, end, extra = -1, -1, 0, 0, 0, 0, 0
    while at <= high:
        code, width = (10, 1) if at == high else _decode(data, at)
        kind = classes[code]
        crlf = code == 13 and at + 1 < high and data[at + 1] == 10
        if kind & BREAK and not crlf:
            signals[LINE_BREAKS] += at < high
            signals[ALL_LINES] += at < high or place > line_start
            if first >= 0:
                line = signals[LINES]
                keys[line], sizes[line] = solid_key, end - line_start
                _count_line(first, second, last, solid_dots, end - line_start, extra, classes[last], signals)
                if paragraph_start < 0:
                    paragraph_key, paragraph_start = _SEED, line_start
                paragraph_key, paragraph_end = (paragraph_key ^ solid_key) * _PRIME, end
            if paragraph_start >= 0 and (first < 0 or at == high):
                paragraph = signals[PARAGRAPHS]
                paragraph_keys[paragraph] = paragraph_key
                paragraph_sizes[paragraph] = paragraph_end - paragraph_start
                signals[PARAGRAPHS] += 1
                paragraph_start = -1
            line_start, key, first, second, dots, extra = place + 1, _SEED, -1, -1, 0, 0
        else:
            key = (key ^ np.uint64(code)) * _PRIME
            if first >= 0 and second < 0 and not crlf:
                second = code
            dots = dots + 1 if code == 46 else 0
            if not kind & SPACE:
                if first < 0:
                    first = code
                last, solid_key, solid_dots, end = code, key, dots, place + 1
                if kind & SPACELESS and code >= _FIRST_KANA_HAN:
                    extra += KANA_HAN_EXTRA
        place += 1
        at += width


@njit(nogil=True, cache=True)
def _count_line(first, second, last, dots, size, extra, last_kind, signals):
    """Add one line to the row's signals: its first two and its last characters, the full stops that it ends with."""
    signals[LINES] += 1
    signals[LINE_CHARS] += size
    signals[SHORT_LINES] += size + extra <= SHORT_LINE_CHARS
    signals[ELLIPSIS_LINES] += last == 0x2026 or dots >= 3
    signals[TERMINAL_LINES] += (last_kind & TERMINAL) != 0
    dash = (first == 45 or first == 42) and (second < 0 or second == 32 or second == 9)
    # • ‣ ◦ ● ▪
    signals[BULLET_LINES] += (
        dash or first == 0x2022 or first == 0x2023 or first == 0x25E6 or first == 0x25CF or first == 0x25AA
    )
