"""The words of a row and what is counted of them: the first half of the signal pass."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import njit

from datakit.filter._kernels_bytes import HIGH, decode, digits, first, hashed, head, letters, load, mixed
from datakit.filter._kernels_signals import (
    ALPHA_WORDS,
    CHARS,
    ELLIPSES,
    FIRST_KANA_HAN,
    FOREIGN_LETTER,
    FOREIGN_WORDS,
    HASHES,
    KANA_HAN_STEP,
    KANA_HAN_WORDS,
    LETTER,
    MARK,
    MAX_STOP_WORD_CHARS,
    MAX_WORD_CHARS,
    NGRAM_STEP,
    NUMBER,
    OTHER_STEP,
    SPACE,
    SPACED_CHARS,
    SPACELESS,
    SPACELESS_WORDS,
    STOP_WORDS,
    SYMBOL_CHARS,
    SYMBOL_WORDS,
    WORD_CHARS,
    WORDS,
)

_ONE, _ALL, _CASE = np.uint64(1), np.uint64(2**64 - 1), np.uint64(0x2020202020202020)

# Gopher's eight English words in a table of sixteen, each as a number whose lowest byte is its first letter: the
# multiplier was searched so that no two share a slot.
_SPREAD, _SPREAD_SHIFT = np.uint64(0xA648A7DD06839EB9), np.uint64(60)
_ENGLISH = np.zeros(16, np.uint64)
for _word in (b"the", b"be", b"to", b"of", b"and", b"that", b"have", b"with"):
    _packed = int.from_bytes(_word, "little")
    _ENGLISH[_packed * int(_SPREAD) % 2**64 >> 60] = _packed


@njit(nogil=True, cache=True)
def scan_words(data, low, high, classes, keys, sizes, starts, signals):
    """Find the words of one row and count them.

    Words are white-space tokens; in a token with characters of a script without spaces each of those is a word, and
    so are the runs between them that hold a letter or digit (a lone comma between two of them belongs to neither).
    Fills keys (hash), sizes (code points) and starts (place in the row with every gap as one space) of each word.
    Counts live in local variables until the end: a store to `signals` for each word would cost a third of the speed.
    """
    found, place, chars, dots = 0, 0, 0, 0
    hashes, ellipses, alone, kana_han, alpha, foreign = 0, 0, 0, 0, 0, 0
    word_chars, mark_chars, symbols, symbol_chars, longest, stop_words = 0, 0, 0, 0, 0, 0
    marks, flags, rest, begin = 0, 0, 0, low  # rest: bytes of the token that are not the first of their character
    letter, digit = np.uint64(0), np.uint64(0)
    punctuated = False
    broken = False  # the token has already given words of one character
    at = low
    while at <= high:
        start = at
        while at + 8 <= high:  # most of most words: letters and digits
            eight = load(data, at)
            is_letter, is_digit = letters(eight), digits(eight)
            other = ~(is_letter | is_digit) & HIGH
            if other:
                inside = (other & (~other + _ONE)) - _ONE
                letter |= is_letter & inside
                digit |= is_digit & inside
                at += first(other)
                break
            letter |= is_letter
            digit |= is_digit
            at += 8
        if at + 8 > high:  # what no eight bytes are left for
            while at < high and data[np.uintp(at)] < 0x80 and classes[data[np.uintp(at)]] & (LETTER | NUMBER):
                flags |= classes[data[np.uintp(at)]]
                at += 1
        if at > start:
            dots = 0
        byte = data[np.uintp(at)] if at < high else 32
        if 32 < byte < 0x80:
            dots = dots + 1 if byte == 46 else 0
            if dots == 3:
                dots = 0
                ellipses += 1
            hashes += byte == 35
            punctuated = True
            at += 1
            continue
        code, width = (32, 1) if byte == 32 else decode(data, at)
        kind = classes[code]
        if kind & (SPACE | SPACELESS):
            broken |= (kind & SPACELESS) != 0
            size = at - begin - rest
            chars += size
            flags |= (LETTER if letter else 0) | (NUMBER if digit else 0)
            if size > 0 and (not broken or flags & (LETTER | MARK | NUMBER)):
                word = head(data, begin, at)
                keys[np.uintp(found)] = (
                    hashed(data, begin, at) if at - begin > 8 else mixed(word) + np.uint64(at - begin)
                )
                sizes[np.uintp(found)], starts[np.uintp(found)] = size, place
                found += 1
                place += size
                word_chars += size
                mark_chars += marks
                longest = max(longest, size)
                if flags & LETTER:
                    alpha += 1
                    if flags & FOREIGN_LETTER:
                        foreign += 1
                    elif not punctuated:
                        stop_words |= _stop_word(word, size)
                    elif size <= MAX_STOP_WORD_CHARS:
                        stop_words |= _quoted_stop_word(data, begin, at)
                elif not flags & (MARK | NUMBER):
                    symbols += 1
                    symbol_chars += size
            chars += at < high
            dots = 0
            if kind & SPACELESS:
                keys[found], sizes[found], starts[found] = hashed(data, at, at + width), 1, place
                found += 1
                place += 1
                alone += 1
                kana_han += code >= FIRST_KANA_HAN
                alpha += (kind & (LETTER | MARK)) != 0
                foreign += (kind & (LETTER | MARK)) != 0
            else:
                broken = False
                if found > 0 and starts[np.uintp(found - 1)] + sizes[np.uintp(found - 1)] == place:
                    place += 1
            marks, flags, rest, begin, punctuated = 0, 0, 0, at + width, False
            letter, digit = np.uint64(0), np.uint64(0)
        else:
            dots = 0
            ellipses += code == 0x2026
            punctuated = True
            rest += width - 1
            marks += (kind & MARK) != 0
            flags |= kind
            if kind & LETTER:
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
def _stop_word(word, size):
    """The bit of the stop word that the `size` lowest bytes of `word` are, whatever their case; 0 for none."""
    word = (word | _CASE) & _ALL >> np.uint64(64 - 8 * min(size, 8))
    slot = word * _SPREAD >> _SPREAD_SHIFT
    return np.int64(_ENGLISH[slot] == word) << np.int64(slot)


@njit(nogil=True, cache=True)
def _quoted_stop_word(data, begin, end):
    """The same of a word with punctuation around it."""
    while begin < end and not _ascii_alphanumeric(data[begin]):
        begin += 1
    while begin < end and not _ascii_alphanumeric(data[end - 1]):
        end -= 1
    return _stop_word(head(data, begin, end), end - begin) if begin < end else 0


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
