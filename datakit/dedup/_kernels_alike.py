"""Conversations: from the texts of turns to streams of the words that count, their keys, and the comparison of two.

A stream is one row's turns after one another, in bytes. A turn begins with `_TURN`, a byte for its mode and its label
(the role). Each token follows `_SPACE` and perhaps a byte that says what it is, and perhaps its capitals
(`_CAPITALS_BYTE` or `_CASED_BYTE` and four bytes). A zero byte ends the stream.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.dedup._kernels_minhash import finalize, hash_shingles, sorted_set
from datakit.kernels import kernel
from datakit.text._kernels_text import decode, encode

_WORD, _SPACELESS, _SPACE_FLAG, _MARK, _NUMBER_FLAG = 1, 2, 4, 32, 64  # as in words.CharacterTable
_FOLD_SHIFT = 16

_TURN, _SPACE = 0x01, 0x20
_STRICT_BYTE, _NAME_BYTE, _MAY_BE_NAME_BYTE, _ALONE_BYTE, _COUNT_BYTE, _KNOWN_BYTE = 0x04, 0x05, 0x06, 0x07, 0x08, 0x09
_CAPITALS_BYTE, _CASED_BYTE = 0x0A, 0x0B  # capitals of a short word in prose, and of a word in code
_CASE_BYTES = 5
_ANSWER, _PROSE, _CODE = 0x41, 0x50, 0x43  # A: prose of the assistant; P: other prose; C: signs count

# Kinds of tokens, and the classes of characters that are no word: a sign always counts, an operator between operands.
_WORDS, _NUMBER, _SIGN, _OPERATOR, _POINT = 0, 1, 2, 3, 4

# Flags of tokens.
_QUOTED, _SENTENCE, _CLAUSE, _CAPITAL, _AFTER_SPACE, _BEFORE_SPACE, _LINE, _ALONE = 1, 2, 4, 8, 16, 32, 64, 128

# Bits of a node of the phrase table, as in politeness.py.
_FORMULA, _AT_START, _LIGHT, _SOFT, _MARKER, _STRICT, _JOINS, _AT_EDGE, _GREETING = 1, 2, 4, 8, 16, 32, 64, 128, 256
_KNOWN, _WHOLE = 512, 1024

_CAPITAL_BITS = 24
_TAB = 8  # columns
_ANUSVARA = 0x902

_KEEP, _GONE, _LIGHT_GONE = 0, 1, 2
_CODE_SHARE = 4  # a turn is a formula or code where it has at least one sign for so many words and numbers

_ACCENTED = tuple(ord(c) for c in "àáâèéêìíîòóôùúûýỳŷ" if ord(c) < 0x180)
_PLAIN = tuple(ord(c) for c in "aaaeeeiiiooouuuyy"[: len(_ACCENTED)])
_BEYOND_CYRILLIC = 0xD6  # the first byte of Hebrew, Arabic and Indic letters, where a letter more is grammar

_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
_FEW_TOKENS = 8  # shorter rows have two letters of each word in their keys
_LONG_ANSWER = 32  # words of answers from which they are found by minima of hashes
_INSTRUCTION = 32  # words; what stands on the line after so many is no longer what an instruction is about
_FEW_LETTERS = 4  # in prose capitals count in shorter words: Co and CO, MB and Mb
_FIRST_LEVEL = 0x40
_LEVELS = 64  # of indentation; deeper ones are one
_LONGEST_VARIED = 32  # letters of a word that the index of a flood uses


@kernel
def word_hash(data, begin, end):
    """FNV-1a, as `politeness.word_hash`."""
    h = _SEED
    for i in range(begin, end):
        h = (h ^ np.uint64(data[i])) * _PRIME
    return h


@kernel(inline="always")
def _mixed(h):
    h *= _FINAL
    return h ^ h >> _HALF


@kernel
def next_state(state, word, keys, values):
    """The state of the trie after a word; -1 where no phrase goes on with it."""
    key = max(_mixed(word ^ np.uint64(state) * _GOLDEN), np.uint64(1))
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
        count = _add(tokens, count, start, at, _WORDS, 0)
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
    pending = _SENTENCE | _CLAUSE | _LINE | _AFTER_SPACE
    quoted = 0  # the flag of words between quotation marks, on one line
    single = False  # whether a single quotation mark is open
    open_kind = -1  # of the token that the next character may belong to
    indent, letter, started = 0, 0, 0
    while i < end:
        if count > started:  # this token is the first one of its line if it has `_LINE`
            tokens[started, 4] = indent
            started, indent = count, 0
        code, width = decode(data, i, end)
        opens = code == 0xAB or code == 0x201C or code == 0x201E or code == 0x300C or code == 0x300E or code == 0x301D
        if code < len(canon):
            code = np.int64(canon[code])
        entry = entries[np.int64(pages[code >> 8]) << 8 | code & 255]
        if entry & _WORD:
            kind = _NUMBER if entry & _NUMBER_FLAG else _WORDS
            alone = entry & _SPACELESS > 0
            joins = (open_kind == kind and not alone) or (entry & _MARK > 0 and open_kind == _WORDS)
            start, row = at, entry >> _FOLD_SHIFT
            if row:
                for k in range(3):
                    if folds[row, k] >= 0:
                        at = encode(np.int64(folds[row, k]), buffer, at)
            elif open_kind == _WORDS and _is_nasal(code, data, i + width, end):
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
                flags = pending | quoted | (_ALONE if alone else 0) | (_CAPITAL if row and kind == _WORDS else 0)
                count = _add(tokens, count, start, at, kind, flags)
                pending = 0
                open_kind = -1 if alone else kind
            if row and kind == _WORDS:
                tokens[count - 1, 5] ^= 1 << letter % _CAPITAL_BITS
            i += width
            continue
        after = i + width
        if entry & _SPACE_FLAG:
            if count:
                tokens[count - 1, 3] |= _BEFORE_SPACE
            pending = pending & ~_QUOTED | _AFTER_SPACE
            indent = _column(indent, code)
            if code == 0x0A or code == 0x0D or code == 0x2028 or code == 0x2029:
                pending |= _SENTENCE | _CLAUSE | _LINE
                quoted = 0
            open_kind = -1
            i = after
            continue
        if code == 0x27 and open_kind == _WORDS and after < end:
            stop = _ascii_letters(data, after, end)
            if 0 < stop - after <= 2:
                read, at, count = _contraction(data, after, stop, buffer, at, tokens, count)
                if read or stop - after == 0:
                    i = after + read
                    open_kind = -1
                    continue
        if open_kind == _NUMBER and _digit(data, after, end, canon):
            if code == 0x2C and _three_digits(data, after, end, canon):
                i = after
                continue
            if code == 0x2E:
                buffer[at] = 0x2E
                at += 1
                tokens[count - 1, 1] = at
                i = after
                continue
        kind = np.int64(classes[code]) if code < len(classes) else _POINT
        mark = (code == 0x27 and not single) or (code == 0x22 and not quoted)
        if mark and _is_primed(buffer, tokens, count, pending) and not _begins_word(data, after, end, entries, pages):
            for _ in range(2 if code == 0x22 else 1):  # f' and f'', 5' and 5"
                buffer[at] = 0x27
                count = _add(tokens, count, at, at + 1, _SIGN, 0)
                at += 1
            open_kind = -1
            i = after
            continue
        if code == 0x27:
            single = pending & _AFTER_SPACE > 0
        if code == 0x26:
            kind = _SIGN
        open_kind = -1
        i = after
        twin = (after < end and data[after] == 0x26) or (after - width > begin and data[after - width - 1] == 0x26)
        if code == 0x26 and not twin:  # & is "and", && is a sign
            buffer[at], buffer[at + 1], buffer[at + 2] = 0x61, 0x6E, 0x64
            count = _add(tokens, count, at, at + 3, _WORDS, pending)
            at += 3
            pending = 0
            continue
        if code == 0x22:
            quoted = _QUOTED if not quoted and (opens or pending & _AFTER_SPACE) else 0
        start = at
        at = encode(code, buffer, at)
        count = _add(tokens, count, start, at, kind, pending)
        pending = pending if code == 0xBF or code == 0xA1 else 0  # ¿ and ¡
        inside = after < end and (0x30 <= data[after] <= 0x39 or 0x61 <= (data[after] | 0x20) <= 0x7A)
        if code == 0x22 or code == 0x27:
            pending = _QUOTED
        elif width == 1 and inside and (code == 0x2E or code == 0x3A):
            pending = 0  # file.txt
        elif code == 0x2E or code == 0x21 or code == 0x3F or code == 0x3B:
            pending = _SENTENCE | _CLAUSE
        elif code == 0x2C or code == 0x3A or code == 0x7E:
            pending = _CLAUSE
    if count:
        tokens[count - 1, 3] |= _BEFORE_SPACE
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
    if not count or pending & _AFTER_SPACE or tokens[count - 1, 3] & _BEFORE_SPACE:
        return False
    last = count - 1
    begin, end, kind = tokens[last, 0], tokens[last, 1], tokens[last, 2]
    if kind == _NUMBER or (kind == _SIGN and buffer[begin] == 0x27):
        return True
    return kind == _WORDS and end - begin <= 2 and _code_points(buffer, begin, end) == 1


@kernel(inline="always")
def _column(indent, code):
    """The columns of white space at the beginning of a line after one more character."""
    if code == 0x09:
        return (indent // _TAB + 1) * _TAB
    return 0 if code == 0x0A or code == 0x0D or code == 0x2028 or code == 0x2029 else indent + 1


@kernel
def _is_word(kind):
    return kind in (_WORDS, _NUMBER)


@kernel
def _joins(buffer, tokens, t):
    """Whether a formula goes on behind a token that is no word: "s'il", "बहुत-बहुत", "Надеюсь, это поможет"."""
    byte = buffer[tokens[t, 0]]
    glued = not tokens[t, 3] & (_AFTER_SPACE | _BEFORE_SPACE)
    return byte == 0x2C or (glued and (byte == 0x27 or byte == 0x2D))


@kernel
def _begins(tokens, act, word_bits, t):
    """Whether a clause begins here, or goes on after politeness or after a word like "and"."""
    if t == 0 or tokens[t, 3] & (_CLAUSE | _SENTENCE | _LINE) or not _is_word(tokens[t - 1, 2]):
        return True
    return act[t - 1] == _GONE or word_bits[t - 1] & _JOINS > 0


@kernel
def _is_end(tokens, t, count):
    """Whether a clause ends with this word."""
    return t + 1 == count or tokens[t + 1, 3] & (_CLAUSE | _LINE) > 0 or not _is_word(tokens[t + 1, 2])


@kernel
def mark_politeness(
    asked, buffer, at, tokens, count, keys, values, bits, same, forms, act, word_bits, hashes
):  # fmt: skip
    """Set `act` of the tokens that do not count: formulas, light words, and clauses of soft words.

    asked: the turn is no answer. A form of another word is written as that one, to `buffer` from `at` on.
    """
    for t in range(count):
        act[t], word_bits[t], hashes[t] = _KEEP, 0, word_hash(buffer, tokens[t, 0], tokens[t, 1])
        if tokens[t, 2] == _WORDS:
            state = next_state(0, hashes[t], keys, values)
            named = tokens[t, 3] & (_CAPITAL | _SENTENCE) == _CAPITAL and tokens[t, 5] == 1  # Mr Gray
            plain = not (named or tokens[t, 3] & _QUOTED)
            if state >= 0 and same[state] >= 0 and plain:
                tokens[t, 0], k = at, same[state]
                while forms[k] != 0 and at < len(buffer):
                    buffer[at] = forms[k]
                    at, k = at + 1, k + 1
                tokens[t, 1] = at
                hashes[t] = word_hash(buffer, tokens[t, 0], at)
                state = next_state(0, hashes[t], keys, values)
            if state >= 0:
                word_bits[t] = bits[state]
                if bits[state] & _LIGHT:
                    act[t] = _LIGHT_GONE
                    if t + 1 < count:  # "Of course"
                        tokens[t + 1, 3] |= tokens[t, 3] & _SENTENCE
    t = 0
    while t < count:
        if tokens[t, 2] != _WORDS or act[t] != _KEEP or tokens[t, 3] & _QUOTED:
            t += 1
            continue
        state, last, k = 0, -1, t
        while k < count and (tokens[k, 2] == _WORDS or _joins(buffer, tokens, k)):
            if act[k] == _KEEP and tokens[k, 2] == _WORDS:
                state = next_state(state, hashes[k], keys, values)
                if state < 0:
                    break
                if (
                    bits[state] & _FORMULA
                    or (bits[state] & _AT_START and tokens[t, 3] & _SENTENCE)
                    or (bits[state] & _GREETING and _begins(tokens, act, word_bits, t))
                    or (bits[state] & _AT_EDGE and (_begins(tokens, act, word_bits, t) or _is_end(tokens, k, count)))
                    or (bits[state] & _WHOLE and _begins(tokens, act, word_bits, t) and _is_end(tokens, k, count))
                ):
                    last = k
            k += 1
        if last >= 0:
            for k in range(t, last + 1):
                act[k] = _GONE
            k = last + 1
            while k < count:  # what follows begins a sentence, as far as formulas are concerned
                tokens[k, 3] |= tokens[t, 3] & _SENTENCE
                if _is_word(tokens[k, 2]):
                    break
                k += 1
            t = last + 1
        else:
            t += 1
    # After a colon (in questions: or the first line break after a short instruction) that follows what counts,
    # politeness is what the turn is about, up to the first word that counts.
    begin, after_politeness, counted, content, given, breaks = 0, asked, 0, False, False, 0
    while begin < count:
        stop, soft, marker = begin + 1, True, False
        while stop < count and not tokens[stop, 3] & _CLAUSE:
            stop += 1
        if tokens[begin, 3] & _LINE:
            content |= asked and 0 < counted <= _INSTRUCTION and breaks < 2
            breaks = max(breaks, 1) if counted else 0
        for t in range(begin, stop):
            soft &= not tokens[t, 3] & _QUOTED
            if tokens[t, 2] == _WORDS:
                marker |= act[t] == _GONE or word_bits[t] & _MARKER > 0
                soft &= act[t] != _KEEP or word_bits[t] & _SOFT > 0
            elif tokens[t, 2] == _NUMBER or tokens[t, 2] == _SIGN:
                soft = False
        if soft and marker and not content:
            act[begin:stop] = _GONE
            after_politeness = True
        elif soft and marker:
            for t in range(begin, stop):
                act[t] = _KEEP if act[t] == _GONE else act[t]
        else:
            if after_politeness and word_bits[begin] & _JOINS:  # "Sorry to bother you, but"
                act[begin] = _GONE
            after_politeness = False
            if given:
                t = begin
                while t < stop and (act[t] != _KEEP or not _is_word(tokens[t, 2])):
                    act[t] = _KEEP if act[t] == _GONE else act[t]
                    t += 1
            _leave_out_end(tokens, act, word_bits, begin, stop)
            for t in range(begin, stop):
                if act[t] == _KEEP and _is_word(tokens[t, 2]):
                    counted, content, given = counted + 1, False, False
                    breaks = 2 if breaks else 0
        if counted and buffer[tokens[stop - 1, 0]] == 0x3A:
            content, given = True, asked and counted <= _INSTRUCTION
        begin = stop
    for t in range(count):
        hard = tokens[t, 2] == _NUMBER or (tokens[t, 2] == _WORDS and not word_bits[t] & _SOFT)
        if (hard and act[t] == _KEEP) or tokens[t, 2] == _SIGN:
            return
    act[:count] = _KEEP  # nothing but politeness: then it counts


@kernel
def _leave_out_end(tokens, act, word_bits, begin, stop):
    """Set `act` of the soft words at the end of a clause: from a formula on, or from a capital on if they are three."""
    first, marker = stop, False
    for t in range(stop - 1, begin - 1, -1):
        hard = tokens[t, 2] == _WORDS and act[t] == _KEEP and not word_bits[t] & _SOFT
        if hard or tokens[t, 2] == _NUMBER or tokens[t, 2] == _SIGN:
            break
        marker |= act[t] == _GONE or word_bits[t] & _MARKER > 0
        if marker and (act[t] == _GONE or (tokens[t, 3] & _CAPITAL and stop - t > 3)):
            first = t
    act[first:stop] = _GONE


@kernel
def _operand(buffer, tokens, t, left):
    """Whether a token can stand beside an operator: a number, a single letter, a bracket, or (at the right) a sign."""
    begin, end, kind = tokens[t, 0], tokens[t, 1], tokens[t, 2]
    if kind == _NUMBER:
        return True
    if kind == _WORDS:
        return end - begin == 1
    byte = buffer[begin]
    return byte == 0x29 or byte == 0x5D if left else byte == 0x28 or byte == 0x2D or byte == 0x2B


@kernel
def _counts_in_prose(buffer, tokens, count, t):
    """Whether a sign that may be punctuation is an operator here."""
    flags, byte = tokens[t, 3], buffer[tokens[t, 0]]
    follows = t + 1 < count and not tokens[t + 1, 3] & _LINE
    joined = follows and not flags & _BEFORE_SPACE
    before = t > 0 and not flags & _LINE
    glued = before and not flags & _AFTER_SPACE
    number_follows = joined and tokens[t + 1, 2] == _NUMBER
    if byte == 0x23:  # C#
        return glued and tokens[t - 1, 2] == _WORDS
    if byte == 0x21:
        if joined and tokens[t + 1, 2] == _WORDS and not (glued and _is_word(tokens[t - 1, 2])):  # not
            return True
        if not (glued and tokens[t - 1, 2] == _NUMBER and follows):
            return False
        # a factorial, if the sentence or the formula goes on
        if tokens[t + 1, 2] == _WORDS:
            return not tokens[t + 1, 3] & (_CAPITAL | _ALONE)
        return tokens[t + 1, 2] != _POINT or buffer[tokens[t + 1, 0]] == 0x3F
    if byte == 0x2A and joined and not glued and buffer[tokens[t + 1, 0]] == 0x2E:  # *.txt
        return True
    if byte == 0x2E or byte == 0x2C or byte == 0x3A:  # .5, 1,2 and 10:30
        return number_follows and ((byte == 0x2E and not glued) or (glued and tokens[t - 1, 2] == _NUMBER))
    if byte == 0x2D and number_follows and not (glued and _is_word(tokens[t - 1, 2])):
        return True
    left = before and _operand(buffer, tokens, t - 1, True)
    return left and follows and _operand(buffer, tokens, t + 1, False)


@kernel
def is_code(buffer, tokens, count, act):
    """Whether signs carry the meaning of a text: at least one for `_CODE_SHARE` words, and two at least.

    A line that goes in after a colon or a bracket is two signs; an equation of four words may have one.
    """
    signs, words, equals, indent = 0, 0, False, 0
    for t in range(count):
        kind, byte = tokens[t, 2], buffer[tokens[t, 0]]
        ends_line = t + 1 == count or tokens[t + 1, 3] & _LINE > 0
        if t == 0 or tokens[t, 3] & _LINE:
            if tokens[t, 4] > indent and t and _is_word(kind):
                signs += 2 * (buffer[tokens[t - 1, 0]] == 0x3A or buffer[tokens[t - 1, 0]] == 0x7B)
            indent = tokens[t, 4]
        equals |= kind == _SIGN and byte == 0x3D
        signs += kind == _POINT and byte == 0x3B and ends_line
        if _is_word(kind):
            words += act[t] == _KEEP
        elif kind == _SIGN:
            signs += 1
        elif kind == _OPERATOR:
            signs += _counts_in_prose(buffer, tokens, count, t)
        else:
            glued = t > 0 and not tokens[t, 3] & _AFTER_SPACE
            bracket = byte == 0x7B or byte == 0x7D or byte == 0x5C or byte == 0x5F
            call = (byte == 0x28 or byte == 0x5B) and glued and tokens[t - 1, 2] == _WORDS
            signs += bracket or call
            if byte == 0x5B and t + 1 < count:  # [1] and [[, but not a link in Markdown
                signs += 2 * (tokens[t + 1, 2] == _NUMBER or buffer[tokens[t + 1, 0]] == 0x5B)
    return (signs >= 2 or equals) and signs * _CODE_SHARE >= words


@kernel
def reads_indentation(buffer, tokens, count):
    """Whether indentation says what belongs to a block, as in Python: a line goes in after one that ends in a colon."""
    columns = 0
    for t in range(count):
        if t == 0 or tokens[t, 3] & _LINE:
            if t and tokens[t, 4] > columns and _is_word(tokens[t, 2]) and buffer[tokens[t - 1, 0]] == 0x3A:
                return True
            columns = tokens[t, 4]
    return False


@kernel
def mark_code(buffer, tokens, count, always, cased):
    """Set `cased` bool of the tokens in code in the midst of prose: `ls -S`, f(*args), $HOME, ./tmp, max_size.

    Code is what stands between backticks, and a piece between white space that has a sign of code inside or before.
    """
    ticks = False
    begin = 0
    while begin < count:
        stop = begin + 1
        while (
            stop < count and not tokens[stop, 3] & (_AFTER_SPACE | _ALONE | _LINE) and not tokens[stop - 1, 3] & _ALONE
        ):
            stop += 1
        code, words = always, 0
        for t in range(begin, stop):
            cased[t] = always or ticks
            byte = buffer[tokens[t, 0]]
            follows = t + 1 < stop and _is_word(tokens[t + 1, 2])
            if _is_word(tokens[t, 2]):
                words += 1
                continue
            if byte == 0x60:
                ticks = not ticks
                cased[t] = False
            after_word = t > begin and _is_word(tokens[t - 1, 2])
            code |= byte in (0x5C, 0x7B, 0x7D) or (byte == 0x24 and follows and tokens[t + 1, 2] == _WORDS)
            code |= (byte == 0x28 or byte == 0x5F or byte == 0x3D) and after_word and t + 1 < stop
            if tokens[t, 3] & (_AFTER_SPACE | _LINE) == _AFTER_SPACE:
                code |= byte == 0x2D and t + 1 < stop and tokens[t + 1, 2] == _WORDS
                code |= byte in (0x2E, 0x2F, 0x7E) and t + 1 < stop and (follows or buffer[tokens[t + 1, 0]] == 0x2F)
        if code and words:
            for t in range(begin, stop):
                cased[t] = buffer[tokens[t, 0]] != 0x60
        begin = stop


@kernel
def _shouts(tokens, count, code):
    """Whether capitals say nothing: most words of four letters have only them; in code all letters are capitals."""
    long, loud, low = 0, 0, False
    for t in range(count):
        letters = min(tokens[t, 1] - tokens[t, 0], _CAPITAL_BITS)
        if tokens[t, 2] == _WORDS and letters >= 4 and not tokens[t, 3] & _ALONE:
            long += 1
            loud += _ones(tokens[t, 5]) * 2 >= letters
        low |= tokens[t, 2] == _WORDS and not tokens[t, 3] & _ALONE and _ones(tokens[t, 5]) < letters
    return loud * 2 > long and not (code and low)


@kernel
def _ones(bits):
    found = 0
    while bits:
        bits &= bits - 1
        found += 1
    return found


@kernel
def _is_point(byte):
    """Whether a byte is one of . , ; : ? !"""
    return byte in (0x2E, 0x2C, 0x3B, 0x3A, 0x3F, 0x21)


@kernel
def _ends_sentence(byte):
    """Whether a byte is one of . ? !"""
    return byte in (0x2E, 0x3F, 0x21)


@kernel
def _counts(buffer, tokens, count, t, code, signs):
    """Whether a token that is no word counts."""
    kind, flags = tokens[t, 2], tokens[t, 3]
    if not signs:
        return False
    if kind == _SIGN:  # but not a quotation's > and a list's + at the beginning of a line
        return code or not (flags & _LINE and flags & _BEFORE_SPACE)
    operator = kind == _OPERATOR and _counts_in_prose(buffer, tokens, count, t)
    if not code or operator:
        return operator
    if not _is_point(buffer[tokens[t, 0]]):
        return True
    if buffer[tokens[t, 0]] == 0x3B:  # an empty statement is one
        return True
    while t + 1 < count and not tokens[t, 3] & _BEFORE_SPACE and _is_point(buffer[tokens[t + 1, 0]]):
        t += 1
    return not (tokens[t, 3] & _BEFORE_SPACE or t + 1 == count)


@kernel
def _variable(tokens, count, t):
    """Whether an `a` is a variable: a sign stands beside it."""
    alone = tokens[t, 1] - tokens[t, 0] == 1
    return alone and ((t > 0 and not _is_word(tokens[t - 1, 2])) or (t + 1 < count and not _is_word(tokens[t + 1, 2])))


@kernel
def _code_point_end(data, i, end):
    i += 1
    while i < end and data[i] & 0xC0 == 0x80:
        i += 1
    return i


@kernel
def _code_points(data, begin, end):
    found = 0
    for i in range(begin, end):
        found += data[i] & 0xC0 != 0x80
    return found


@kernel
def _ends(data, begin, end, out):
    """Hashes of some letters of a word to `out` uint64 (2, 3): misspelled words share one of each row.

    The first letter, the last one; and for short rows the first and the last, the first two, the last two.
    """
    first = _code_point_end(data, begin, end)
    last = end - 1
    while data[last] & 0xC0 == 0x80:
        last -= 1
    last_but_one = last - 1
    while data[last_but_one] & 0xC0 == 0x80:
        last_but_one -= 1
    out[0, 0], out[0, 1] = word_hash(data, begin, first), word_hash(data, last, end)
    out[0, 2] = out[0, 0]
    out[1, 0] = out[0, 0] * _PRIME ^ out[0, 1]
    out[1, 1] = word_hash(data, begin, _code_point_end(data, first, end))
    out[1, 2] = word_hash(data, last_but_one, end)


@kernel
def write_streams(
    data, offsets, labels, label_offsets, modes, row_starts, message_starts, how, canon, classes, pages, entries, folds,
    keys, values, bits, same, forms, buffer, tokens, act, word_bits, hashes, out, out_starts, row_keys, prefix_keys,
    prefix_starts
):  # fmt: skip
    """The streams of rows in `out` (uint8), each padded with zeros to a multiple of 8 and ended by one at least.

    Segment s has the text `offsets[s]:offsets[s + 1]`, a label, and a mode: `_ANSWER`, `_PROSE` or `_CODE`. Row r has
    the segments `row_starts[r]:row_starts[r + 1]`; `message_starts[s]` says that a message begins. `how` int64 (2,):
    whether signs count, and whether they always do. `row_keys` uint64 (rows, bands) gets the hashes by which rows are
    found; the last one is of the whole row, as `prefix_keys` has one for each message boundary inside of it.
    """
    rows, bands = row_keys.shape
    signs, always = how[0] > 0, how[1] > 0
    minima = np.empty((2, bands), np.uint64)
    levels = np.empty(_LEVELS, np.int64)
    cased = np.empty(len(act), np.bool_)
    code = np.empty((2, 2, 3), np.uint64)  # question or answer; of long or short rows; which letters
    ends = np.empty((2, 3), np.uint64)
    at, prefixes = 0, 0
    for row in range(rows):
        out_starts[row], prefix_starts[row] = at, prefixes
        code[:] = _SEED
        minima[:] = ~np.uint64(0)
        total, answers = 0, 0
        for s in range(row_starts[row], row_starts[row + 1]):
            if message_starts[s] and s > row_starts[row]:
                prefix_keys[prefixes] = _row_key(code, 0, 0, total)
                prefixes += 1
            count, used = tokenize(
                data, offsets[s], offsets[s + 1], canon, classes, pages, entries, folds, buffer, tokens
            )  # fmt: skip
            call = modes[s] == _CODE
            if call:
                act[:count], word_bits[:count] = _KEEP, 0
            else:
                asked = modes[s] != _ANSWER
                mark_politeness(
                    asked, buffer, used, tokens, count, keys, values, bits, same, forms, act, word_bits, hashes
                )  # fmt: skip
            strict = call or always or (signs and is_code(buffer, tokens, count, act))
            who = np.int64(modes[s] == _ANSWER)
            out[at], out[at + 1] = _TURN, _CODE if strict else modes[s]
            at += 2
            label = _SEED ^ np.uint64(strict)
            for k in range(label_offsets[s], label_offsets[s + 1]):
                out[at] = labels[k] if labels[k] > _SPACE else 0x5F
                label = (label ^ np.uint64(out[at])) * _PRIME
                at += 1
            code[:] = (code ^ label) * _PRIME
            previous, depth, written, first_word = np.uint64(0), 0, 0, True
            levels[0] = 0
            if signs:
                mark_code(buffer, tokens, count, strict, cased)
            else:
                cased[:count] = False
            shouts = _shouts(tokens, count, strict)
            blocks = strict and not call and reads_indentation(buffer, tokens, count)
            for t in range(count):
                begin, end, kind, flags = tokens[t, 0], tokens[t, 1], tokens[t, 2], tokens[t, 3]
                if blocks and flags & _LINE:
                    if first_word:
                        levels[0] = tokens[t, 4]
                    depth = indentation(levels, depth, tokens[t, 4])
                if _is_word(kind):
                    if act[t] == _GONE or (act[t] == _LIGHT_GONE and not (cased[t] and _variable(tokens, count, t))):
                        continue
                elif not (call or _counts(buffer, tokens, count, t, cased[t], signs)):
                    continue
                if depth != written:  # white space says what belongs to a loop
                    out[at], out[at + 1], out[at + 2] = _SPACE, _STRICT_BYTE, _FIRST_LEVEL + depth
                    at, written = at + 3, depth
                capitals = tokens[t, 5]
                starts = first_word or _ends_sentence(buffer[tokens[t - 1, 0]])
                if shouts or (starts and capitals == 1 and flags & _BEFORE_SPACE):
                    capitals = 0
                first_word = first_word and not _is_word(kind)
                out[at] = _SPACE
                at += 1
                whole = word_hash(buffer, begin, end)
                exact = call or kind != _WORDS
                if exact:
                    out[at] = _STRICT_BYTE
                elif word_bits[t] & _STRICT:
                    out[at] = _COUNT_BYTE
                elif flags & _ALONE:
                    out[at] = _ALONE_BYTE
                elif flags & _QUOTED:
                    out[at] = _COUNT_BYTE
                elif word_bits[t] & _KNOWN and (flags & _SENTENCE or not flags & _CAPITAL):
                    out[at] = _KNOWN_BYTE
                elif flags & _CAPITAL:
                    out[at] = _MAY_BE_NAME_BYTE if flags & _SENTENCE else _NAME_BYTE
                else:
                    at -= 1
                at += 1
                few = capitals != 0 and _code_points(buffer, begin, end) < _FEW_LETTERS
                symbol = few and end - begin == 2 and 0xCE <= buffer[begin] <= 0xCF  # a Greek letter by itself
                if kind == _WORDS and signs and ((cased[t] and capitals) or few):
                    out[at] = _CASED_BYTE if cased[t] or symbol else _CAPITALS_BYTE
                    for k in range(1, _CASE_BYTES):
                        out[at + k] = 0x40 | capitals >> 6 * (k - 1) & 0x3F
                    at += _CASE_BYTES
                out[at : at + end - begin] = buffer[begin:end]
                at += end - begin
                if whole == previous:  # a word put twice is a typing error
                    continue
                previous = whole
                total += 1
                if who and not strict:
                    answers += 1
                    for b in range(bands):
                        salted = _mixed(_mixed(whole ^ label ^ np.uint64(b + 1) * _GOLDEN) + np.uint64(b))
                        minima[0, b] = min(minima[0, b], salted)
                        minima[1, b] = min(minima[1, b], _mixed(salted ^ _GOLDEN))
                exact = exact or flags & _ALONE > 0 or _code_points(buffer, begin, end) < 4
                if exact:
                    ends[:] = whole
                else:
                    _ends(buffer, begin, end, ends)
                for few in range(2):
                    for letters in range(3):
                        code[who, few, letters] = _mixed((code[who, few, letters] ^ ends[few, letters]) * _PRIME)
        for b in range(bands - 1):
            if answers >= _LONG_ANSWER:
                asked = code[0, 0, b & 1]
                row_keys[row, b] = _mixed(_mixed(_mixed(asked ^ minima[0, b]) ^ minima[1, b]) + np.uint64(1))
            else:
                row_keys[row, b] = _row_key(code, b % 3, b // 3, total)
        row_keys[row, bands - 1] = _row_key(code, 0, 0, total)
        out[at] = 0
        at += 1
        while at & 7:
            out[at] = 0
            at += 1
    out_starts[rows], prefix_starts[rows] = at, prefixes


@kernel
def indentation(levels, depth, columns):
    """The depth of a line that begins after `columns` of white space, as Python counts. `levels` int64: open ones."""
    while depth and columns < levels[depth]:
        depth -= 1
    if columns > levels[depth] and depth + 1 < len(levels):
        depth += 1
        levels[depth] = columns
    return depth


@kernel
def indentation_hashes(data, offsets, out):
    """A hash of where the indentation of each text changes, to `out` uint64 (texts,).

    0 if no line goes in after one that ends in a colon: then white space says nothing.
    """
    levels = np.empty(_LEVELS, np.int64)
    for row in range(len(offsets) - 1):
        h, depth, columns, fresh, letters = np.uint64(0), 0, 0, True, 0
        levels[0] = 0
        blank, blocks, last = True, False, 0
        for i in range(offsets[row], offsets[row + 1]):
            byte = data[i]
            if byte == 0x0A or byte == 0x0D:
                fresh, columns = True, 0
            elif byte == 0x20 or byte == 0x09:
                if fresh:
                    columns = _column(columns, byte)
            else:
                if fresh:
                    if blank:  # the first line begins at no depth
                        levels[0], blank = columns, False
                    was = depth
                    depth = indentation(levels, depth, columns)
                    blocks |= depth > was and last == 0x3A
                    if depth != was:
                        h = _mixed((h ^ np.uint64(letters) * _GOLDEN ^ np.uint64(depth)) * _PRIME + np.uint64(1))
                    fresh = False
                letters, last = letters + 1, byte
        out[row] = h if blocks else np.uint64(0)


@kernel
def _row_key(code, asked, said, total):
    """The key of a row by some letters of its questions and of its answers; 0 where another key is the same."""
    few = 1 if total < _FEW_TOKENS else 0
    if not few and (asked == 2 or said == 2):
        return np.uint64(0)
    return _mixed(_mixed(code[0, few, asked]) + code[1, few, said] * _GOLDEN)


# The comparison of two streams.


@kernel
def _letters_begin(data, i):
    """Where the letters of a token begin, after the byte that says what it is and after its capitals."""
    i = _case_begins(data, i)
    return i + _CASE_BYTES if _CAPITALS_BYTE <= data[i] <= _CASED_BYTE else i


@kernel
def _case_begins(data, i):
    return i + 1 if _STRICT_BYTE <= data[i] <= _KNOWN_BYTE else i


@kernel
def _same_case(a, i, b, j):
    """Whether the capitals of two tokens are equal. In prose they are, too, where one token has none."""
    i, j = _case_begins(a, i), _case_begins(b, j)
    if a[i] != _CASED_BYTE and b[j] != _CASED_BYTE and (a[i] != _CAPITALS_BYTE or b[j] != _CAPITALS_BYTE):
        return True
    if not _CAPITALS_BYTE <= a[i] <= _CASED_BYTE or not _CAPITALS_BYTE <= b[j] <= _CASED_BYTE:
        return False
    same = True
    for k in range(1, _CASE_BYTES):
        same = same and a[i + k] == b[j + k]
    return same


@kernel
def _token_end(data, i):
    i = _letters_begin(data, i)
    while data[i] > _SPACE:
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
    named = a[a_begin] in (_NAME_BYTE, _COUNT_BYTE) or b[b_begin] in (_NAME_BYTE, _COUNT_BYTE)
    same_kind = (a[a_begin] == _STRICT_BYTE or a[a_begin] == _ALONE_BYTE) == (
        b[b_begin] == _STRICT_BYTE or b[b_begin] == _ALONE_BYTE
    )
    i, j = _letters_begin(a, a_begin), _letters_begin(b, b_begin)
    a_last, b_last = a_end, b_end
    while i < a_last and j < b_last and a[i] == b[j]:
        i += 1
        j += 1
    if i == a_last and j == b_last:
        return 0 if same_kind else -1
    if a[a_begin] == _STRICT_BYTE or a[a_begin] == _ALONE_BYTE or not same_kind:
        return -1
    begin, b_first = _letters_begin(a, a_begin), _letters_begin(b, b_begin)
    shorter = min(_code_points(a, begin, a_end), _code_points(b, b_first, b_end))
    if shorter < 4:
        return -1
    known = a[a_begin] == _KNOWN_BYTE and b[b_begin] == _KNOWN_BYTE
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
    one, other = _code_points(a, i, a_last), _code_points(b, j, b_last)
    if one == 2 and other == 2 and not known:
        middle, cut = _code_point_end(a, i, a_last), _code_point_end(b, j, b_last)
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
    return a[i] != _STRICT_BYTE and a[i] != _COUNT_BYTE and a[i] != _NAME_BYTE


@kernel
def _repeats(data, i, previous):
    """Whether the word at i is the one before it again, which is a typing error."""
    if previous < 0 or data[i] == _STRICT_BYTE or data[i] == _COUNT_BYTE or data[_case_begins(data, i)] == _CASED_BYTE:
        return False
    end, begin, other = _token_end(data, i), _letters_begin(data, i), _letters_begin(data, previous)
    for k in range(end - begin):
        if data[begin + k] != data[other + k]:
            return False
    return data[other + end - begin] <= _SPACE


@kernel
def facts(stream, at, out):
    """A hash that two rows have in common if they are alike: their roles, and the words of which no letter may differ.

    Those are numbers and signs everywhere, and outside of answers in prose words of fewer than four letters and the
    characters of scripts without spaces. `out` int64 (n,) gets where the other words of these turns begin, in order, as
    far as it is long enough; -1 for one that follows a word put twice. Returns (the hash, how many there are). `at`:
    where the stream begins.
    """
    h, i, tolerant, before, count, straight = _SEED, at, False, -1, 0, True
    while stream[i] != 0:
        if stream[i] != _SPACE:
            tolerant = stream[i + 1] == _ANSWER
            h = (h ^ np.uint64(stream[i])) * _PRIME
            i, before = i + 1, -1
            while stream[i] > _SPACE:
                h = (h ^ np.uint64(stream[i])) * _PRIME
                i += 1
            continue
        i += 1
        end, begin = _token_end(stream, i), _letters_begin(stream, i)
        again = _repeats(stream, i, before)
        straight &= not again or tolerant
        exact = stream[i] == _STRICT_BYTE
        if not exact and not tolerant:
            exact = stream[i] == _ALONE_BYTE or _code_points(stream, begin, end) < 4
            if not exact and not again:
                if count < len(out):
                    out[count] = i if straight else -1
                count += 1
        if exact and not again:
            h = _mixed((h ^ word_hash(stream, begin, end)) * _PRIME)
        before, i = i, end
    return h, count


@kernel
def word_variants(stream, i, out):
    """Hashes to `out` uint64 (n,) of a word and of it without each of its letters: how many, 0 if they do not fit.

    Two words that `edits_of_spelling` takes for one share a hash. Accents do not count.
    """
    begin, end = _letters_begin(stream, i), _token_end(stream, i)
    letters = _code_points(stream, begin, end)
    if letters > _LONGEST_VARIED or letters >= len(out):
        return 0
    for left_out in range(-1, letters):
        h, at, number = _SEED, begin, 0
        while at < end:
            letter, at = _letter(stream, at, end)
            if number != left_out:
                h = (h ^ np.uint64(letter)) * _PRIME
            number += 1
        out[left_out + 1] = _mixed(h)
    return letters + 1


@kernel
def _next(data, i):
    """The token after the one at i; -1 at the end of the turn."""
    i = _token_end(data, i)
    return i + 1 if data[i] == _SPACE else -1


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
        if a[i] != _SPACE and b[j] != _SPACE:
            ahead, whole = turn_similarity(words, edits, letters, spelled, others, short_words)
            if ahead * denominator < numerator * whole and words > 0:
                return -1
            if words > 0:
                least = min(least, (2000 * ahead + whole) // (2 * whole))
            if a[i] == 0:
                return least if b[j] == 0 or b[j] == _TURN else -1
            if b[j] == 0:
                return -1
            tolerant = a[i + 1] == _ANSWER
            while a[i] == b[j] and a[i] != _SPACE and a[i] != 0:
                i += 1
                j += 1
                if a[i] == _TURN or b[j] == _TURN:
                    break
            if a[i] > _SPACE or b[j] > _SPACE:
                return -1  # another role, or prose and code
            words, edits, letters, spelled, others = 0, 0, 0, 0, 0
            i_before, j_before = -1, -1
            continue
        if a[i] == _SPACE and _repeats(a, i + 1, i_before) and not (b[j] == _SPACE and _same(a, i + 1, b, j + 1)):
            words, spelled, edits, i = words + 1, spelled + 1, edits + 1, _token_end(a, i + 1)
            continue
        if b[j] == _SPACE and _repeats(b, j + 1, j_before) and not (a[i] == _SPACE and _same(a, i + 1, b, j + 1)):
            words, spelled, edits, j = words + 1, spelled + 1, edits + 1, _token_end(b, j + 1)
            continue
        if a[i] != _SPACE or b[j] != _SPACE:  # one turn has words left
            if not tolerant:
                return -1
            longer, k = (a, i) if a[i] == _SPACE else (b, j)
            while longer[k] == _SPACE:
                if not _may_be_missing(longer, k + 1):
                    return -1
                k = _token_end(longer, k + 1)
                words += 1
                others += 1
            if a[i] == _SPACE:
                i = k
            else:
                j = k
            continue
        i, j = i + 1, j + 1
        a_end, b_end = _token_end(a, i), _token_end(b, j)
        found = edits_of_spelling(a, i, a_end, b, j, b_end)
        if found >= 0:
            words += 1
            letters += max(_code_points(a, _letters_begin(a, i), a_end), _code_points(b, _letters_begin(b, j), b_end))
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
    named = (a[i] == _NAME_BYTE or a[i] == _MAY_BE_NAME_BYTE) and (b[j] == _NAME_BYTE or b[j] == _MAY_BE_NAME_BYTE)
    either = a[i] == _ALONE_BYTE or b[j] == _ALONE_BYTE
    return _may_be_missing(a, i) and _may_be_missing(b, j) and not named and not either


# Which rows are the beginning of others.


@kernel
def mark_keys(keys, table):
    """Set a bit of `table` (uint64, zeros, a power of two) for the leading bits of each key."""
    bits = 6
    while 1 << (bits - 6) < len(table):
        bits += 1
    shift = np.uint64(64 - bits)
    for key in keys:
        slot = key >> shift
        table[np.int64(slot >> np.uint64(6))] |= np.uint64(1) << (slot & np.uint64(63))


@kernel
def seen_keys(keys, table, out):
    """Whether the bit of each key is set, to `out` bool."""
    bits = 6
    while 1 << (bits - 6) < len(table):
        bits += 1
    shift = np.uint64(64 - bits)
    for k in range(len(keys)):
        slot = keys[k] >> shift
        out[k] = table[np.int64(slot >> np.uint64(6))] >> (slot & np.uint64(63)) & np.uint64(1) != 0


@kernel
def find_characters(data, offsets, wanted, out):
    """Set `out` (bool per row, false) where a row has a character beyond ASCII of which `wanted` bool is true."""
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        while i < end:
            if data[i] < 0x80:
                i += 1
                continue
            code, width = decode(data, i, end)
            if code < len(wanted) and wanted[code]:
                out[row] = True
                break
            i += width


# Short texts, formulas and code that are no conversations: sets of shingles in which signs and numbers count.


@kernel
def may_have_signs(data, offsets, most, share, out):
    """Set `out` (bool per row) where a text of at most `most` bytes has a sign for `share` bytes, and two at least.

    Bytes beyond ASCII that signs begin with count too: this only finds the texts that are worth a closer look.
    """
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        out[row] = False
        if not 0 < end - begin <= most:
            continue
        found = 0
        for i in range(begin, end):
            byte = data[i]
            low = 0x23 <= byte <= 0x2F and byte != 0x27 and byte != 0x2C and byte != 0x2E  # # $ % & ( ) * + - /
            high = 0x3C <= byte <= 0x3E or 0x5B <= byte <= 0x5F or byte == 0x7B or byte == 0x7D
            found += low or high or byte == 0xE2 or byte == 0xEF
        out[row] = found >= 2 and found * share >= end - begin


@kernel
def sign_sets(
    data, offsets, short, how, size, canon, classes, pages, entries, folds,
    keys, values, bits, buffer, tokens, act, word_bits, hashes, table, out, starts
):  # fmt: skip
    """The sorted sets of shingle hashes of texts one after another in `out` uint64; -1 in `starts` for none.

    A `short` text (bool) has the pairs of its letters, numbered where they occur again. Another one has shingles of
    `size` words and signs if it is a formula or code, else none. All are mixed with the text's numbers, signs and
    negations, in order: texts that differ in them share nothing. `starts` int64 (rows, 2): begin and end.
    """
    at = 0
    levels = np.empty(_LEVELS, np.int64)
    for row in range(len(offsets) - 1):
        count, _ = tokenize(
            data, offsets[row], offsets[row + 1], canon, classes, pages, entries, folds, buffer, tokens
        )  # fmt: skip
        act[:count] = _KEEP
        code = how[1] > 0 or (how[0] > 0 and is_code(buffer, tokens, count, act))
        starts[row, 0], starts[row, 1] = -1, -1
        if not (short[row] or code):
            continue
        salt, made, previous, letters, depth = _SEED, 0, np.uint64(0), 0, 0
        blocks, shouts = code and reads_indentation(buffer, tokens, count), _shouts(tokens, count, True)
        levels[0] = tokens[0, 4] if count else 0
        for t in range(count):
            kind = tokens[t, 2]
            if blocks and tokens[t, 3] & _LINE:
                was = depth
                depth = indentation(levels, depth, tokens[t, 4])
                if depth != was:
                    salt = _mixed((salt ^ np.uint64(made * _LEVELS + depth)) * _PRIME)
            if code and kind == _WORDS and tokens[t, 5] and not shouts:
                salt = _mixed((salt ^ np.uint64(tokens[t, 5]) ^ np.uint64(made) << _HALF) * _PRIME)
            if not _is_word(kind) and not _counts(buffer, tokens, count, t, code, how[0] > 0):
                continue
            word = word_hash(buffer, tokens[t, 0], tokens[t, 1])
            state = next_state(0, word, keys, values) if kind == _WORDS else -1
            strict = kind != _WORDS or (state >= 0 and bits[state] & _STRICT > 0)
            if strict:
                salt = _mixed((salt ^ word) * _PRIME)
            if not short[row]:
                hashes[made] = finalize(word)
                made += 1
            elif not strict:
                i = tokens[t, 0]
                while i < tokens[t, 1]:
                    after = _code_point_end(buffer, i, tokens[t, 1])
                    letter = word_hash(buffer, i, after)
                    if letters:
                        hashes[made] = finalize(previous * _PRIME ^ letter)
                        made += 1
                    previous, letters, i = letter, letters + 1, after
        if short[row]:
            if letters == 1:
                hashes[made] = finalize(previous)
                made += 1
            hashes[:made].sort()
            for k in range(made):
                table[k] = table[k - 1] + np.uint64(1) if k and hashes[k] == hashes[k - 1] else np.uint64(0)
            for k in range(made):
                hashes[k] += table[k] * _GOLDEN
            if not made and salt != _SEED:
                hashes[0] = _GOLDEN
                made = 1
        else:
            table[:made] = hashes[:made]
            made = hash_shingles(table[:made], size, hashes)
        for k in range(made):
            hashes[k] = finalize(hashes[k] ^ salt)
        starts[row, 0] = at
        at += sorted_set(hashes[:made], made, table, out[at:])
        starts[row, 1] = at
