"""From the text of a turn to its words, numbers and signs: where each lies, what it is and how it is written."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel
from datakit.text._kernels_text import decode, encode

SEED = np.uint64(0xCBF29CE484222325)
PRIME = np.uint64(0x100000001B3)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
HALF = np.uint64(32)

_WORD, _SPACELESS, _SPACE_FLAG, _MARK, _NUMBER_FLAG = 1, 2, 4, 32, 64  # as in words.CharacterTable
_FOLD_SHIFT = 16

# Kinds of tokens, and the classes of characters that are no word: a sign always counts, an operator between operands.
WORDS, NUMBER, SIGN, OPERATOR, POINT = 0, 1, 2, 3, 4

# Flags of tokens.
QUOTED, SENTENCE, CLAUSE, CAPITAL, AFTER_SPACE, BEFORE_SPACE, LINE, ALONE = 1, 2, 4, 8, 16, 32, 64, 128

CAPITAL_BITS = 24
_TAB = 8  # columns
_ANUSVARA = 0x902


@kernel
def word_hash(data, begin, end):
    """FNV-1a, as `politeness.word_hash`."""
    h = SEED
    for i in range(begin, end):
        h = (h ^ np.uint64(data[i])) * PRIME
    return h


@kernel(inline="always")
def mixed(h):
    h *= _FINAL
    return h ^ h >> HALF


@kernel
def next_state(state, word, keys, values):
    """The state of the trie after a word; -1 where no phrase goes on with it."""
    key = max(mixed(word ^ np.uint64(state) * GOLDEN), np.uint64(1))
    slot = np.int64(key & np.uint64(len(keys) - 1))
    while keys[slot] != 0:
        if keys[slot] == key:
            return np.int64(values[slot])
        slot = (slot + 1) & (len(keys) - 1)
    return np.int64(-1)


@kernel
def _add(tokens, count, begin, end, kind, flags):
    tokens[count, 0], tokens[count, 1], tokens[count, 2], tokens[count, 3] = begin, end, kind, flags
    tokens[count, 4], tokens[count, 5] = 0, 0
    return count + 1


@kernel
def _ascii_letters(data, i, end):
    """Where the run of ASCII letters from byte i ends."""
    while i < end and 0x61 <= (data[i] | 0x20) <= 0x7A:
        i += 1
    return i


@kernel
def _contraction(data, i, stop, buffer, at, tokens, count):
    """Write out what follows an apostrophe at byte i - 1 as words: (bytes read, end of buffer, tokens).

    "n't" is "not"; 's, 're and 'm vanish, as "is" and "are" do; 've, 'd and 'll are have, would and will.
    """
    size, begin = stop - i, tokens[count - 1, 0]
    first = data[i] | 0x20
    second = data[i + 1] | 0x20 if size > 1 else 0
    word = (0, 0, 0, 0, 0)
    if size == 1 and first == 0x74 and at - begin >= 2 and buffer[at - 1] == 0x6E:  # n't
        at -= 1
        tokens[count - 1, 1] = at
        if at - begin == 2 and buffer[begin] == 0x63 and buffer[begin + 1] == 0x61:  # can't is cannot
            for letter in (0x6E, 0x6E, 0x6F, 0x74):
                buffer[at] = letter
                at += 1
            tokens[count - 1, 1] = at
            return size, at, count
        if at - begin == 2 and buffer[begin] == 0x77 and buffer[begin + 1] == 0x6F:  # won't
            buffer[begin + 1], buffer[begin + 2], buffer[begin + 3] = 0x69, 0x6C, 0x6C
            at += 2
        tokens[count - 1, 1] = at
        word = (0x6E, 0x6F, 0x74, 0, 0)
    elif size == 1 and first == 0x64:
        word = (0x77, 0x6F, 0x75, 0x6C, 0x64)
    elif size == 2 and first == 0x76 and second == 0x65:
        word = (0x68, 0x61, 0x76, 0x65, 0)
    elif size == 2 and first == 0x6C and second == 0x6C:
        word = (0x77, 0x69, 0x6C, 0x6C, 0)
    elif not ((size == 1 and (first == 0x73 or first == 0x6D)) or (size == 2 and first == 0x72 and second == 0x65)):
        return 0, at, count
    start = at
    for letter in word:
        if letter:
            buffer[at] = letter
            at += 1
    if at > start:
        count = _add(tokens, count, start, at, WORDS, 0)
    return size, at, count


@kernel
def _digit(data, i, end, canon):
    """The bytes of the digit at byte i; 0 where there is none."""
    if i >= end:
        return 0
    code, width = decode(data, i, end)
    return width if code < len(canon) and 0x30 <= canon[code] <= 0x39 else 0


@kernel
def _three_digits(data, i, end, canon):
    """Whether exactly three digits follow."""
    for _ in range(3):
        width = _digit(data, i, end, canon)
        if not width:
            return False
        i += width
    return _digit(data, i, end, canon) == 0


@kernel
def tokenize(data, begin, end, canon, classes, pages, entries, folds, buffer, tokens):
    """The tokens of a text: (tokens, bytes of `buffer` in use).

    `tokens` int32 (n, 6): begin and end in `buffer`, kind, flags, the columns of white space before the first token
    of a line, and which letters are capitals (bit k mod 24 for letter k). Words are case-folded. Runs of letters and
    runs of digits are tokens, and so is each character of a script without spaces and each sign.
    """
    i, at, count = begin, 0, 0
    pending = SENTENCE | CLAUSE | LINE | AFTER_SPACE
    quoted = 0  # the flag of words between quotation marks, on one line
    single = False  # whether a single quotation mark is open
    open_kind = -1  # of the token that the next character may belong to
    indent, letter, started = 0, 0, 0
    while i < end:
        if count > started:  # this token is the first one of its line if it has `LINE`
            tokens[started, 4] = indent
            started, indent = count, 0
        code, width = decode(data, i, end)
        opens = code == 0xAB or code == 0x201C or code == 0x201E or code == 0x300C or code == 0x300E or code == 0x301D
        if code < len(canon):
            code = np.int64(canon[code])
        entry = entries[np.int64(pages[code >> 8]) << 8 | code & 255]
        if entry & _WORD:
            kind = NUMBER if entry & _NUMBER_FLAG else WORDS
            alone = entry & _SPACELESS > 0
            joins = (open_kind == kind and not alone) or (entry & _MARK > 0 and open_kind == WORDS)
            start, row = at, entry >> _FOLD_SHIFT
            if row:
                for k in range(3):
                    if folds[row, k] >= 0:
                        at = encode(np.int64(folds[row, k]), buffer, at)
            elif open_kind == WORDS and _is_nasal(code, data, i + width, end):
                at = encode(_ANUSVARA, buffer, at)
                width += 3
            else:
                at = encode(code, buffer, at)
            if at - start == 2 and (buffer[start] == 0xC3 or buffer[start] == 0xC5):
                at = _written_out(buffer, start, at)
            letter = letter + 1 if joins else 0
            if joins:
                tokens[count - 1, 1] = at
            else:
                flags = pending | quoted | (ALONE if alone else 0) | (CAPITAL if row and kind == WORDS else 0)
                count = _add(tokens, count, start, at, kind, flags)
                pending = 0
                open_kind = -1 if alone else kind
            if row and kind == WORDS:
                tokens[count - 1, 5] ^= 1 << letter % CAPITAL_BITS
            i += width
            continue
        after = i + width
        if entry & _SPACE_FLAG:
            if count:
                tokens[count - 1, 3] |= BEFORE_SPACE
            pending = pending & ~QUOTED | AFTER_SPACE
            indent = column(indent, code)
            if code == 0x0A or code == 0x0D or code == 0x2028 or code == 0x2029:
                pending |= SENTENCE | CLAUSE | LINE
                quoted = 0
            open_kind = -1
            i = after
            continue
        if code == 0x27 and open_kind == WORDS and after < end:
            stop = _ascii_letters(data, after, end)
            if 0 < stop - after <= 2:
                read, at, count = _contraction(data, after, stop, buffer, at, tokens, count)
                if read or stop - after == 0:
                    i = after + read
                    open_kind = -1
                    continue
        if open_kind == NUMBER and _digit(data, after, end, canon):
            if code == 0x2C and _three_digits(data, after, end, canon):
                i = after
                continue
            if code == 0x2E:
                buffer[at] = 0x2E
                at += 1
                tokens[count - 1, 1] = at
                i = after
                continue
        kind = np.int64(classes[code]) if code < len(classes) else POINT
        mark = (code == 0x27 and not single) or (code == 0x22 and not quoted)
        if mark and _is_primed(buffer, tokens, count, pending) and not _begins_word(data, after, end, entries, pages):
            for _ in range(2 if code == 0x22 else 1):  # f' and f'', 5' and 5"
                buffer[at] = 0x27
                count = _add(tokens, count, at, at + 1, SIGN, 0)
                at += 1
            open_kind = -1
            i = after
            continue
        if code == 0x27:
            single = pending & AFTER_SPACE > 0
        if code == 0x26:
            kind = SIGN
        open_kind = -1
        i = after
        twin = (after < end and data[after] == 0x26) or (after - width > begin and data[after - width - 1] == 0x26)
        if code == 0x26 and not twin:  # & is "and", && is a sign
            buffer[at], buffer[at + 1], buffer[at + 2] = 0x61, 0x6E, 0x64
            count = _add(tokens, count, at, at + 3, WORDS, pending)
            at += 3
            pending = 0
            continue
        if code == 0x22:
            quoted = QUOTED if not quoted and (opens or pending & AFTER_SPACE) else 0
        start = at
        at = encode(code, buffer, at)
        count = _add(tokens, count, start, at, kind, pending)
        pending = pending if code == 0xBF or code == 0xA1 else 0  # ¿ and ¡
        inside = after < end and (0x30 <= data[after] <= 0x39 or 0x61 <= (data[after] | 0x20) <= 0x7A)
        if code == 0x22 or code == 0x27:
            pending = QUOTED
        elif width == 1 and inside and (code == 0x2E or code == 0x3A):
            pending = 0  # file.txt
        elif code == 0x2E or code == 0x21 or code == 0x3F or code == 0x3B:
            pending = SENTENCE | CLAUSE
        elif code == 0x2C or code == 0x3A or code == 0x7E:
            pending = CLAUSE
    if count:
        tokens[count - 1, 3] |= BEFORE_SPACE
    if count > started:
        tokens[started, 4] = indent
    return count, at


@kernel
def _written_out(buffer, start, at):
    """Write ä, ö, ü, æ, ø, œ at the end of `buffer` as ae, oe, ue: the new end."""
    second, base = buffer[start + 1], 0
    if buffer[start] == 0xC3:
        base = 0x61 if second == 0xA4 or second == 0xA6 else 0x6F if second == 0xB6 or second == 0xB8 else 0
        base = 0x75 if second == 0xBC else base
    elif second == 0x93:
        base = 0x6F
    if base:
        buffer[start], buffer[start + 1] = base, 0x65
    return at


@kernel
def _is_nasal(code, data, i, end):
    """Whether a nasal of Devanagari stands before a consonant of its own row, and may be written as a dot."""
    if not (code == 0x919 or code == 0x91E or code == 0x923 or code == 0x928 or code == 0x92E) or i + 6 > end:
        return False
    virama, width = decode(data, i, end)
    follows, _ = decode(data, i + width, end)
    return virama == 0x94D and code - 4 <= follows < code


@kernel
def _begins_word(data, i, end, entries, pages):
    """Whether a letter or digit stands at byte i."""
    if i >= end:
        return False
    code, _ = decode(data, i, end)
    return entries[np.int64(pages[code >> 8]) << 8 | code & 255] & _WORD > 0


@kernel
def _is_primed(buffer, tokens, count, pending):
    """Whether a quotation mark behind the last token is a prime: of a number, a letter, a bracket, or a prime."""
    if not count or pending & AFTER_SPACE or tokens[count - 1, 3] & BEFORE_SPACE:
        return False
    last = count - 1
    begin, end, kind = tokens[last, 0], tokens[last, 1], tokens[last, 2]
    if kind == NUMBER or (kind == SIGN and buffer[begin] == 0x27):
        return True
    return kind == WORDS and end - begin <= 2 and code_points(buffer, begin, end) == 1


@kernel(inline="always")
def column(indent, code):
    """The columns of white space at the beginning of a line after one more character."""
    if code == 0x09:
        return (indent // _TAB + 1) * _TAB
    return 0 if code == 0x0A or code == 0x0D or code == 0x2028 or code == 0x2029 else indent + 1


@kernel
def is_word(kind):
    return kind in (WORDS, NUMBER)


@kernel
def code_point_end(data, i, end):
    i += 1
    while i < end and data[i] & 0xC0 == 0x80:
        i += 1
    return i


@kernel
def code_points(data, begin, end):
    found = 0
    for i in range(begin, end):
        found += data[i] & 0xC0 != 0x80
    return found
