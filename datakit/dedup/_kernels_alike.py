"""Conversations: how alike two streams of words are, with typing errors and other spellings."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.dedup._kernels_streams import (
    ALONE_BYTE,
    ANSWER,
    CAPITALS_BYTE,
    CASE_BYTES,
    CASED_BYTE,
    COUNT_BYTE,
    KNOWN_BYTE,
    MAY_BE_NAME_BYTE,
    NAME_BYTE,
    SPACE,
    STRICT_BYTE,
    TURN,
)
from datakit.dedup._kernels_tokens import PRIME, SEED, code_point_end, code_points, mixed, word_hash
from datakit.kernels import kernel
from datakit.text._kernels_text import decode

_ACCENTED = tuple(ord(c) for c in "àáâèéêìíîòóôùúûýỳŷ" if ord(c) < 0x180)
_PLAIN = tuple(ord(c) for c in "aaaeeeiiiooouuuyy"[: len(_ACCENTED)])
_BEYOND_CYRILLIC = 0xD6  # the first byte of Hebrew, Arabic and Indic letters, where a letter more is grammar
_LONGEST_VARIED = 32  # letters of a word that the index of a flood uses


@kernel
def _letters_begin(data, i):
    """Where the letters of a token begin, after the byte that says what it is and after its capitals."""
    i = _case_begins(data, i)
    return i + CASE_BYTES if CAPITALS_BYTE <= data[i] <= CASED_BYTE else i


@kernel
def _case_begins(data, i):
    return i + 1 if STRICT_BYTE <= data[i] <= KNOWN_BYTE else i


@kernel
def _same_case(a, i, b, j):
    """Whether the capitals of two tokens are equal. In prose they are, too, where one token has none."""
    i, j = _case_begins(a, i), _case_begins(b, j)
    if a[i] != CASED_BYTE and b[j] != CASED_BYTE and (a[i] != CAPITALS_BYTE or b[j] != CAPITALS_BYTE):
        return True
    if not CAPITALS_BYTE <= a[i] <= CASED_BYTE or not CAPITALS_BYTE <= b[j] <= CASED_BYTE:
        return False
    same = True
    for k in range(1, CASE_BYTES):
        same = same and a[i + k] == b[j + k]
    return same


@kernel
def _token_end(data, i):
    i = _letters_begin(data, i)
    while data[i] > SPACE:
        i += 1
    return i


@kernel
def _is_doubled(word, begin, i, end):
    """Whether the letter at [i, end) stands before itself, too; letters may have several bytes."""
    size = end - i
    same = i - size >= begin
    for k in range(size):
        same = same and word[i - size + k] == word[i + k]
    return same


@kernel
def _letter(data, i, end):
    """(code point at byte i without its acute, grave or circumflex, where the next one begins)."""
    code, width = decode(data, i, end)
    if 0xE0 <= code <= 0x17F:
        for k in range(len(_ACCENTED)):
            if code == _ACCENTED[k]:
                return np.int64(_PLAIN[k]), i + width
    return np.int64(code), i + width


@kernel
def _only_accents(a, i, a_end, b, j, b_end):
    """Whether two words differ only in accents that one of them lacks, and not in the last letter."""
    while i < a_end and j < b_end:
        one, i_next = _letter(a, i, a_end)
        other, j_next = _letter(b, j, b_end)
        if one != other:
            return False
        both = i_next - i > 1 and j_next - j > 1
        same = i_next - i == j_next - j
        for k in range(min(i_next - i, j_next - j)):
            same = same and a[i + k] == b[j + k]
        if not same and (both or i_next == a_end or j_next == b_end):
            return False
        i, j = i_next, j_next
    return i == a_end and j == b_end


@kernel
def _is_vowel(byte):
    return byte in (0x61, 0x65, 0x69, 0x6F, 0x75, 0x79)


@kernel
def edits_of_spelling(a, a_begin, a_end, b, b_begin, b_end):
    """1 where one of two words is a typing error of the other, 0 where they are spellings of one word, else -1.

    Spellings: accents that one lacks, the British s for z and ou for o. A typing error: two neighbours are
    swapped, or one is doubled (words of four letters at least), or in Latin, Greek or Cyrillic is missing, or another
    (of five; a vowel for a vowel only in words of eight: sing, sang). Not the first letter nor the last one: they say
    negation (typical, atypical), number, gender. Two words of `lookalikes` (house, horse) are two words. In names,
    negations, numbers in words and quotes letters may only be swapped. ä is written ae: there no e is missing.
    """
    if not _same_case(a, a_begin, b, b_begin):
        return -1
    named = a[a_begin] in (NAME_BYTE, COUNT_BYTE) or b[b_begin] in (NAME_BYTE, COUNT_BYTE)
    same_kind = (a[a_begin] == STRICT_BYTE or a[a_begin] == ALONE_BYTE) == (
        b[b_begin] == STRICT_BYTE or b[b_begin] == ALONE_BYTE
    )
    i, j = _letters_begin(a, a_begin), _letters_begin(b, b_begin)
    a_last, b_last = a_end, b_end
    while i < a_last and j < b_last and a[i] == b[j]:
        i += 1
        j += 1
    if i == a_last and j == b_last:
        return 0 if same_kind else -1
    if a[a_begin] == STRICT_BYTE or a[a_begin] == ALONE_BYTE or not same_kind:
        return -1
    begin, b_first = _letters_begin(a, a_begin), _letters_begin(b, b_begin)
    shorter = min(code_points(a, begin, a_end), code_points(b, b_first, b_end))
    if shorter < 4:
        return -1
    known = a[a_begin] == KNOWN_BYTE and b[b_begin] == KNOWN_BYTE
    if _only_accents(a, begin, a_end, b, b_first, b_end):
        return 0
    while i > begin and ((i < a_end and a[i] & 0xC0 == 0x80) or (j < b_end and b[j] & 0xC0 == 0x80)):
        i -= 1
        j -= 1
    if i == begin:
        return -1
    while a_last > i and b_last > j and a[a_last - 1] == b[b_last - 1]:
        a_last -= 1
        b_last -= 1
    while a_last < a_end and a[a_last] & 0xC0 == 0x80:
        a_last += 1
        b_last += 1
    one, other = code_points(a, i, a_last), code_points(b, j, b_last)
    if one == 2 and other == 2 and not known:
        middle, cut = code_point_end(a, i, a_last), code_point_end(b, j, b_last)
        if middle - i != b_last - cut or cut - j != a_last - middle:
            return -1
        for k in range(middle - i):
            if a[i + k] != b[cut + k]:
                return -1
        for k in range(cut - j):
            if b[j + k] != a[middle + k]:
                return -1
        return 1
    if one + other == 1:
        if one:
            return _one_letter_more(a, begin, i, a_last, a_end, named, known, shorter)
        return _one_letter_more(b, b_first, j, b_last, b_end, named, known, shorter)
    if one != 1 or other != 1 or shorter < 5 or named or a_last == a_end or a_last - i > 1 or b_last - j > 1:
        return -1
    if min(a[i], b[j]) == 0x73 and max(a[i], b[j]) == 0x7A:  # organise
        return 0
    return -1 if known or (shorter < 8 and _is_vowel(a[i]) and _is_vowel(b[j])) else 1


@kernel
def _one_letter_more(word, begin, i, last, end, named, known, shorter):
    """`edits_of_spelling` for a word with one letter more, at [i, last)."""
    if last - i == 1 and last < end and word[i] == 0x75 and word[i - 1] == 0x6F and word[last] == 0x72:  # colour
        return 0
    twice = word[i] == 0x6C and last < end and (word[last] == 0x65 or word[last] == 0x69) and i - begin >= 4
    if twice and (i - begin >= 6 or word[i - 2] == 0x65) and _is_doubled(word, begin, i, last):
        return 0  # travelling, but not filling
    if known:
        return -1
    if _is_doubled(word, begin, i, last):
        return -1 if named else 1
    if last - i == 1 and word[i] == 0x65 and word[i - 1] in (0x61, 0x6F, 0x75):  # ae is ä: schon, schön
        return -1
    if last == end or (named and shorter < 12):  # German nouns look like names
        return -1
    return 1 if word[i] < _BEYOND_CYRILLIC else -1


@kernel
def _same(a, i, b, j):
    """Whether two tokens are equal or spellings of one word."""
    return edits_of_spelling(a, i, _token_end(a, i), b, j, _token_end(b, j)) >= 0


@kernel
def _may_be_missing(a, i):
    """Whether a long answer may lack this word: no number, sign, negation or name."""
    return a[i] != STRICT_BYTE and a[i] != COUNT_BYTE and a[i] != NAME_BYTE


@kernel
def _repeats(data, i, previous):
    """Whether the word at i is the one before it again, which is a typing error."""
    if previous < 0 or data[i] == STRICT_BYTE or data[i] == COUNT_BYTE or data[_case_begins(data, i)] == CASED_BYTE:
        return False
    end, begin, other = _token_end(data, i), _letters_begin(data, i), _letters_begin(data, previous)
    for k in range(end - begin):
        if data[begin + k] != data[other + k]:
            return False
    return data[other + end - begin] <= SPACE


@kernel
def facts(stream, at, out):
    """A hash that two rows have in common if they are alike: their roles, and the words of which no letter may differ.

    Those are numbers and signs everywhere, and outside of answers in prose words of fewer than four letters and the
    characters of scripts without spaces. `out` int64 (n,) gets where the other words of these turns begin, in order, as
    far as it is long enough; -1 for one that follows a word put twice. Returns (the hash, how many there are). `at`:
    where the stream begins.
    """
    h, i, tolerant, before, count, straight = SEED, at, False, -1, 0, True
    while stream[i] != 0:
        if stream[i] != SPACE:
            tolerant = stream[i + 1] == ANSWER
            h = (h ^ np.uint64(stream[i])) * PRIME
            i, before = i + 1, -1
            while stream[i] > SPACE:
                h = (h ^ np.uint64(stream[i])) * PRIME
                i += 1
            continue
        i += 1
        end, begin = _token_end(stream, i), _letters_begin(stream, i)
        again = _repeats(stream, i, before)
        straight &= not again or tolerant
        exact = stream[i] == STRICT_BYTE
        if not exact and not tolerant:
            exact = stream[i] == ALONE_BYTE or code_points(stream, begin, end) < 4
            if not exact and not again:
                if count < len(out):
                    out[count] = i if straight else -1
                count += 1
        if exact and not again:
            h = mixed((h ^ word_hash(stream, begin, end)) * PRIME)
        before, i = i, end
    return h, count


@kernel
def word_variants(stream, i, out):
    """Hashes to `out` uint64 (n,) of a word and of it without each of its letters: how many, 0 if they do not fit.

    Two words that `edits_of_spelling` takes for one share a hash. Accents do not count.
    """
    begin, end = _letters_begin(stream, i), _token_end(stream, i)
    letters = code_points(stream, begin, end)
    if letters > _LONGEST_VARIED or letters >= len(out):
        return 0
    for left_out in range(-1, letters):
        h, at, number = SEED, begin, 0
        while at < end:
            letter, at = _letter(stream, at, end)
            if number != left_out:
                h = (h ^ np.uint64(letter)) * PRIME
            number += 1
        out[left_out + 1] = mixed(h)
    return letters + 1


@kernel
def _next(data, i):
    """The token after the one at i; -1 at the end of the turn."""
    i = _token_end(data, i)
    return i + 1 if data[i] == SPACE else -1


@kernel
def turn_similarity(words, edits, letters, spelled, others, short_words):
    """The similarity of two turns as a ratio of two counts.

    A turn of fewer than `short_words` words is compared by its letters. In others each misspelled word counts once. A
    word that one of two long answers lacks counts as the shingles that it changes, about 8.
    """
    if words < short_words:
        return (letters - edits if others == 0 else 0), max(letters, 1)
    return max(words - spelled - 8 * others, 0), words


@kernel
def alike(a, b, numerator, denominator, short_words):
    """The similarity of two rows, given by their streams, in thousandths: the least of their turns. -1: they differ.

    They are alike if each turn of one is alike its counterpart. The second row may have more turns: then the first one
    is a prefix of it.
    """
    i, j, least = 0, 0, 1000
    words, edits, letters, spelled, others, tolerant = 0, 0, 0, 0, 0, False
    i_before, j_before = -1, -1  # the words before, in this turn
    while True:
        # here a[i] and b[j] begin a turn or a token, or end a stream
        if a[i] != SPACE and b[j] != SPACE:
            ahead, whole = turn_similarity(words, edits, letters, spelled, others, short_words)
            if ahead * denominator < numerator * whole and words > 0:
                return -1
            if words > 0:
                least = min(least, (2000 * ahead + whole) // (2 * whole))
            if a[i] == 0:
                return least if b[j] == 0 or b[j] == TURN else -1
            if b[j] == 0:
                return -1
            tolerant = a[i + 1] == ANSWER
            while a[i] == b[j] and a[i] != SPACE and a[i] != 0:
                i += 1
                j += 1
                if a[i] == TURN or b[j] == TURN:
                    break
            if a[i] > SPACE or b[j] > SPACE:
                return -1  # another role, or prose and code
            words, edits, letters, spelled, others = 0, 0, 0, 0, 0
            i_before, j_before = -1, -1
            continue
        if a[i] == SPACE and _repeats(a, i + 1, i_before) and not (b[j] == SPACE and _same(a, i + 1, b, j + 1)):
            words, spelled, edits, i = words + 1, spelled + 1, edits + 1, _token_end(a, i + 1)
            continue
        if b[j] == SPACE and _repeats(b, j + 1, j_before) and not (a[i] == SPACE and _same(a, i + 1, b, j + 1)):
            words, spelled, edits, j = words + 1, spelled + 1, edits + 1, _token_end(b, j + 1)
            continue
        if a[i] != SPACE or b[j] != SPACE:  # one turn has words left
            if not tolerant:
                return -1
            longer, k = (a, i) if a[i] == SPACE else (b, j)
            while longer[k] == SPACE:
                if not _may_be_missing(longer, k + 1):
                    return -1
                k = _token_end(longer, k + 1)
                words += 1
                others += 1
            if a[i] == SPACE:
                i = k
            else:
                j = k
            continue
        i, j = i + 1, j + 1
        a_end, b_end = _token_end(a, i), _token_end(b, j)
        found = edits_of_spelling(a, i, a_end, b, j, b_end)
        if found >= 0:
            words += 1
            letters += max(code_points(a, _letters_begin(a, i), a_end), code_points(b, _letters_begin(b, j), b_end))
            edits += found
            spelled += found
            i_before, j_before, i, j = i, j, a_end, b_end
            continue
        if not tolerant:
            return -1
        a_next, b_next = _next(a, i), _next(b, j)
        a_second = _next(a, a_next) if a_next >= 0 else -1
        b_second = _next(b, b_next) if b_next >= 0 else -1
        if a_next >= 0 and _may_be_missing(a, i) and _same(a, a_next, b, j):
            words, others, i, j = words + 1, others + 1, a_next - 1, j - 1
        elif b_next >= 0 and _may_be_missing(b, j) and _same(a, i, b, b_next):
            words, others, i, j = words + 1, others + 1, i - 1, b_next - 1
        elif a_second >= 0 and _may_be_missing(a, i) and _may_be_missing(a, a_next) and _same(a, a_second, b, j):
            words, others, i, j = words + 2, others + 2, a_second - 1, j - 1
        elif b_second >= 0 and _may_be_missing(b, j) and _may_be_missing(b, b_next) and _same(a, i, b, b_second):
            words, others, i, j = words + 2, others + 2, i - 1, b_second - 1
        elif _replaceable(a, i, b, j) and (a_next < 0) == (b_next < 0) and (a_next < 0 or _same(a, a_next, b, b_next)):
            words, others, i, j = words + 2, others + 2, a_end, b_end
        else:
            return -1


@kernel
def _replaceable(a, i, b, j):
    """Whether a long answer may have another word here: both are words of a script with spaces, and no names."""
    named = (a[i] == NAME_BYTE or a[i] == MAY_BE_NAME_BYTE) and (b[j] == NAME_BYTE or b[j] == MAY_BE_NAME_BYTE)
    either = a[i] == ALONE_BYTE or b[j] == ALONE_BYTE
    return _may_be_missing(a, i) and _may_be_missing(b, j) and not named and not either
