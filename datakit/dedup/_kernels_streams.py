"""Conversations: from the words and signs of turns to streams of those that count, and the keys of rows.

A stream is one row's turns after one another, in bytes. A turn begins with `TURN`, a byte for its mode and its label
(the role). Each token follows `SPACE` and perhaps a byte that says what it is, and perhaps its capitals
(`CAPITALS_BYTE` or `CASED_BYTE` and four bytes). A zero byte ends the stream.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.dedup._kernels_minhash import finalize, hash_shingles, sorted_set
from datakit.dedup._kernels_tokens import (
    AFTER_SPACE,
    ALONE,
    BEFORE_SPACE,
    CAPITAL,
    CAPITAL_BITS,
    CLAUSE,
    GOLDEN,
    HALF,
    LINE,
    NUMBER,
    OPERATOR,
    POINT,
    PRIME,
    QUOTED,
    SEED,
    SENTENCE,
    SIGN,
    WORDS,
    code_point_end,
    code_points,
    column,
    is_word,
    mixed,
    next_state,
    tokenize,
    word_hash,
)
from datakit.kernels import kernel
from datakit.text._kernels_text import decode

TURN, SPACE = 0x01, 0x20
STRICT_BYTE, NAME_BYTE, MAY_BE_NAME_BYTE, ALONE_BYTE, COUNT_BYTE, KNOWN_BYTE = 0x04, 0x05, 0x06, 0x07, 0x08, 0x09
CAPITALS_BYTE, CASED_BYTE = 0x0A, 0x0B  # capitals of a short word in prose, and of a word in code
CASE_BYTES = 5
ANSWER, _PROSE, _CODE = 0x41, 0x50, 0x43  # A: prose of the assistant; P: other prose; C: signs count

# Bits of a node of the phrase table, as in politeness.py.
_FORMULA, _AT_START, _LIGHT, _SOFT, _MARKER, _STRICT, _JOINS, _AT_EDGE, _GREETING = 1, 2, 4, 8, 16, 32, 64, 128, 256
_KNOWN, _WHOLE = 512, 1024

_KEEP, _GONE, _LIGHT_GONE = 0, 1, 2
_CODE_SHARE = 4  # a turn is a formula or code where it has at least one sign for so many words and numbers

_FEW_TOKENS = 8  # shorter rows have two letters of each word in their keys
_LONG_ANSWER = 32  # words of answers from which they are found by minima of hashes
_INSTRUCTION = 32  # words; what stands on the line after so many is no longer what an instruction is about
_FEW_LETTERS = 4  # in prose capitals count in shorter words: Co and CO, MB and Mb
_FIRST_LEVEL = 0x40
_LEVELS = 64  # of indentation; deeper ones are one


@kernel
def _joins(buffer, tokens, t):
    """Whether a formula goes on behind a token that is no word: "s'il", "बहुत-बहुत", "Надеюсь, это поможет"."""
    byte = buffer[tokens[t, 0]]
    glued = not tokens[t, 3] & (AFTER_SPACE | BEFORE_SPACE)
    return byte == 0x2C or (glued and (byte == 0x27 or byte == 0x2D))


@kernel
def _begins(tokens, act, word_bits, t):
    """Whether a clause begins here, or goes on after politeness or after a word like "and"."""
    if t == 0 or tokens[t, 3] & (CLAUSE | SENTENCE | LINE) or not is_word(tokens[t - 1, 2]):
        return True
    return act[t - 1] == _GONE or word_bits[t - 1] & _JOINS > 0


@kernel
def _is_end(tokens, t, count):
    """Whether a clause ends with this word."""
    return t + 1 == count or tokens[t + 1, 3] & (CLAUSE | LINE) > 0 or not is_word(tokens[t + 1, 2])


@kernel
def mark_politeness(
    asked, buffer, at, tokens, count, keys, values, bits, same, forms, act, word_bits, hashes
):  # fmt: skip
    """Set `act` of the tokens that do not count: formulas, light words, and clauses of soft words.

    asked: the turn is no answer. A form of another word is written as that one, to `buffer` from `at` on.
    """
    for t in range(count):
        act[t], word_bits[t], hashes[t] = _KEEP, 0, word_hash(buffer, tokens[t, 0], tokens[t, 1])
        if tokens[t, 2] == WORDS:
            state = next_state(0, hashes[t], keys, values)
            named = tokens[t, 3] & (CAPITAL | SENTENCE) == CAPITAL and tokens[t, 5] == 1  # Mr Gray
            plain = not (named or tokens[t, 3] & QUOTED)
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
                        tokens[t + 1, 3] |= tokens[t, 3] & SENTENCE
    t = 0
    while t < count:
        if tokens[t, 2] != WORDS or act[t] != _KEEP or tokens[t, 3] & QUOTED:
            t += 1
            continue
        state, last, k = 0, -1, t
        while k < count and (tokens[k, 2] == WORDS or _joins(buffer, tokens, k)):
            if act[k] == _KEEP and tokens[k, 2] == WORDS:
                state = next_state(state, hashes[k], keys, values)
                if state < 0:
                    break
                if (
                    bits[state] & _FORMULA
                    or (bits[state] & _AT_START and tokens[t, 3] & SENTENCE)
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
                tokens[k, 3] |= tokens[t, 3] & SENTENCE
                if is_word(tokens[k, 2]):
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
        while stop < count and not tokens[stop, 3] & CLAUSE:
            stop += 1
        if tokens[begin, 3] & LINE:
            content |= asked and 0 < counted <= _INSTRUCTION and breaks < 2
            breaks = max(breaks, 1) if counted else 0
        for t in range(begin, stop):
            soft &= not tokens[t, 3] & QUOTED
            if tokens[t, 2] == WORDS:
                marker |= act[t] == _GONE or word_bits[t] & _MARKER > 0
                soft &= act[t] != _KEEP or word_bits[t] & _SOFT > 0
            elif tokens[t, 2] == NUMBER or tokens[t, 2] == SIGN:
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
                while t < stop and (act[t] != _KEEP or not is_word(tokens[t, 2])):
                    act[t] = _KEEP if act[t] == _GONE else act[t]
                    t += 1
            _leave_out_end(tokens, act, word_bits, begin, stop)
            for t in range(begin, stop):
                if act[t] == _KEEP and is_word(tokens[t, 2]):
                    counted, content, given = counted + 1, False, False
                    breaks = 2 if breaks else 0
        if counted and buffer[tokens[stop - 1, 0]] == 0x3A:
            content, given = True, asked and counted <= _INSTRUCTION
        begin = stop
    for t in range(count):
        hard = tokens[t, 2] == NUMBER or (tokens[t, 2] == WORDS and not word_bits[t] & _SOFT)
        if (hard and act[t] == _KEEP) or tokens[t, 2] == SIGN:
            return
    act[:count] = _KEEP  # nothing but politeness: then it counts


@kernel
def _leave_out_end(tokens, act, word_bits, begin, stop):
    """Set `act` of the soft words at the end of a clause: from a formula on, or from a capital on if they are three."""
    first, marker = stop, False
    for t in range(stop - 1, begin - 1, -1):
        hard = tokens[t, 2] == WORDS and act[t] == _KEEP and not word_bits[t] & _SOFT
        if hard or tokens[t, 2] == NUMBER or tokens[t, 2] == SIGN:
            break
        marker |= act[t] == _GONE or word_bits[t] & _MARKER > 0
        if marker and (act[t] == _GONE or (tokens[t, 3] & CAPITAL and stop - t > 3)):
            first = t
    act[first:stop] = _GONE


@kernel
def _operand(buffer, tokens, t, left):
    """Whether a token can stand beside an operator: a number, a single letter, a bracket, or (at the right) a sign."""
    begin, end, kind = tokens[t, 0], tokens[t, 1], tokens[t, 2]
    if kind == NUMBER:
        return True
    if kind == WORDS:
        return end - begin == 1
    byte = buffer[begin]
    return byte == 0x29 or byte == 0x5D if left else byte == 0x28 or byte == 0x2D or byte == 0x2B


@kernel
def _counts_in_prose(buffer, tokens, count, t):
    """Whether a sign that may be punctuation is an operator here."""
    flags, byte = tokens[t, 3], buffer[tokens[t, 0]]
    follows = t + 1 < count and not tokens[t + 1, 3] & LINE
    joined = follows and not flags & BEFORE_SPACE
    before = t > 0 and not flags & LINE
    glued = before and not flags & AFTER_SPACE
    number_follows = joined and tokens[t + 1, 2] == NUMBER
    if byte == 0x23:  # C#
        return glued and tokens[t - 1, 2] == WORDS
    if byte == 0x21:
        if joined and tokens[t + 1, 2] == WORDS and not (glued and is_word(tokens[t - 1, 2])):  # not
            return True
        if not (glued and tokens[t - 1, 2] == NUMBER and follows):
            return False
        # a factorial, if the sentence or the formula goes on
        if tokens[t + 1, 2] == WORDS:
            return not tokens[t + 1, 3] & (CAPITAL | ALONE)
        return tokens[t + 1, 2] != POINT or buffer[tokens[t + 1, 0]] == 0x3F
    if byte == 0x2A and joined and not glued and buffer[tokens[t + 1, 0]] == 0x2E:  # *.txt
        return True
    if byte == 0x2E or byte == 0x2C or byte == 0x3A:  # .5, 1,2 and 10:30
        return number_follows and ((byte == 0x2E and not glued) or (glued and tokens[t - 1, 2] == NUMBER))
    if byte == 0x2D and number_follows and not (glued and is_word(tokens[t - 1, 2])):
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
        ends_line = t + 1 == count or tokens[t + 1, 3] & LINE > 0
        if t == 0 or tokens[t, 3] & LINE:
            if tokens[t, 4] > indent and t and is_word(kind):
                signs += 2 * (buffer[tokens[t - 1, 0]] == 0x3A or buffer[tokens[t - 1, 0]] == 0x7B)
            indent = tokens[t, 4]
        equals |= kind == SIGN and byte == 0x3D
        signs += kind == POINT and byte == 0x3B and ends_line
        if is_word(kind):
            words += act[t] == _KEEP
        elif kind == SIGN:
            signs += 1
        elif kind == OPERATOR:
            signs += _counts_in_prose(buffer, tokens, count, t)
        else:
            glued = t > 0 and not tokens[t, 3] & AFTER_SPACE
            bracket = byte == 0x7B or byte == 0x7D or byte == 0x5C or byte == 0x5F
            call = (byte == 0x28 or byte == 0x5B) and glued and tokens[t - 1, 2] == WORDS
            signs += bracket or call
            if byte == 0x5B and t + 1 < count:  # [1] and [[, but not a link in Markdown
                signs += 2 * (tokens[t + 1, 2] == NUMBER or buffer[tokens[t + 1, 0]] == 0x5B)
    return (signs >= 2 or equals) and signs * _CODE_SHARE >= words


@kernel
def reads_indentation(buffer, tokens, count):
    """Whether indentation says what belongs to a block, as in Python: a line goes in after one that ends in a colon."""
    columns = 0
    for t in range(count):
        if t == 0 or tokens[t, 3] & LINE:
            if t and tokens[t, 4] > columns and is_word(tokens[t, 2]) and buffer[tokens[t - 1, 0]] == 0x3A:
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
        while stop < count and not tokens[stop, 3] & (AFTER_SPACE | ALONE | LINE) and not tokens[stop - 1, 3] & ALONE:
            stop += 1
        code, words = always, 0
        for t in range(begin, stop):
            cased[t] = always or ticks
            byte = buffer[tokens[t, 0]]
            follows = t + 1 < stop and is_word(tokens[t + 1, 2])
            if is_word(tokens[t, 2]):
                words += 1
                continue
            if byte == 0x60:
                ticks = not ticks
                cased[t] = False
            after_word = t > begin and is_word(tokens[t - 1, 2])
            code |= byte in (0x5C, 0x7B, 0x7D) or (byte == 0x24 and follows and tokens[t + 1, 2] == WORDS)
            code |= (byte == 0x28 or byte == 0x5F or byte == 0x3D) and after_word and t + 1 < stop
            if tokens[t, 3] & (AFTER_SPACE | LINE) == AFTER_SPACE:
                code |= byte == 0x2D and t + 1 < stop and tokens[t + 1, 2] == WORDS
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
        letters = min(tokens[t, 1] - tokens[t, 0], CAPITAL_BITS)
        if tokens[t, 2] == WORDS and letters >= 4 and not tokens[t, 3] & ALONE:
            long += 1
            loud += _ones(tokens[t, 5]) * 2 >= letters
        low |= tokens[t, 2] == WORDS and not tokens[t, 3] & ALONE and _ones(tokens[t, 5]) < letters
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
    if kind == SIGN:  # but not a quotation's > and a list's + at the beginning of a line
        return code or not (flags & LINE and flags & BEFORE_SPACE)
    operator = kind == OPERATOR and _counts_in_prose(buffer, tokens, count, t)
    if not code or operator:
        return operator
    if not _is_point(buffer[tokens[t, 0]]):
        return True
    if buffer[tokens[t, 0]] == 0x3B:  # an empty statement is one
        return True
    while t + 1 < count and not tokens[t, 3] & BEFORE_SPACE and _is_point(buffer[tokens[t + 1, 0]]):
        t += 1
    return not (tokens[t, 3] & BEFORE_SPACE or t + 1 == count)


@kernel
def _variable(tokens, count, t):
    """Whether an `a` is a variable: a sign stands beside it."""
    alone = tokens[t, 1] - tokens[t, 0] == 1
    return alone and ((t > 0 and not is_word(tokens[t - 1, 2])) or (t + 1 < count and not is_word(tokens[t + 1, 2])))


@kernel
def _ends(data, begin, end, out):
    """Hashes of some letters of a word to `out` uint64 (2, 3): misspelled words share one of each row.

    The first letter, the last one; and for short rows the first and the last, the first two, the last two.
    """
    first = code_point_end(data, begin, end)
    last = end - 1
    while data[last] & 0xC0 == 0x80:
        last -= 1
    last_but_one = last - 1
    while data[last_but_one] & 0xC0 == 0x80:
        last_but_one -= 1
    out[0, 0], out[0, 1] = word_hash(data, begin, first), word_hash(data, last, end)
    out[0, 2] = out[0, 0]
    out[1, 0] = out[0, 0] * PRIME ^ out[0, 1]
    out[1, 1] = word_hash(data, begin, code_point_end(data, first, end))
    out[1, 2] = word_hash(data, last_but_one, end)


@kernel
def write_streams(
    data, offsets, labels, label_offsets, modes, row_starts, message_starts, how, canon, classes, pages, entries, folds,
    keys, values, bits, same, forms, buffer, tokens, act, word_bits, hashes, out, out_starts, row_keys, prefix_keys,
    prefix_starts
):  # fmt: skip
    """The streams of rows in `out` (uint8), each padded with zeros to a multiple of 8 and ended by one at least.

    Segment s has the text `offsets[s]:offsets[s + 1]`, a label, and a mode: `ANSWER`, `_PROSE` or `_CODE`. Row r has
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
        code[:] = SEED
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
                asked = modes[s] != ANSWER
                mark_politeness(
                    asked, buffer, used, tokens, count, keys, values, bits, same, forms, act, word_bits, hashes
                )  # fmt: skip
            strict = call or always or (signs and is_code(buffer, tokens, count, act))
            who = np.int64(modes[s] == ANSWER)
            out[at], out[at + 1] = TURN, _CODE if strict else modes[s]
            at += 2
            label = SEED ^ np.uint64(strict)
            for k in range(label_offsets[s], label_offsets[s + 1]):
                out[at] = labels[k] if labels[k] > SPACE else 0x5F
                label = (label ^ np.uint64(out[at])) * PRIME
                at += 1
            code[:] = (code ^ label) * PRIME
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
                if blocks and flags & LINE:
                    if first_word:
                        levels[0] = tokens[t, 4]
                    depth = indentation(levels, depth, tokens[t, 4])
                if is_word(kind):
                    if act[t] == _GONE or (act[t] == _LIGHT_GONE and not (cased[t] and _variable(tokens, count, t))):
                        continue
                elif not (call or _counts(buffer, tokens, count, t, cased[t], signs)):
                    continue
                if depth != written:  # white space says what belongs to a loop
                    out[at], out[at + 1], out[at + 2] = SPACE, STRICT_BYTE, _FIRST_LEVEL + depth
                    at, written = at + 3, depth
                capitals = tokens[t, 5]
                starts = first_word or _ends_sentence(buffer[tokens[t - 1, 0]])
                if shouts or (starts and capitals == 1 and flags & BEFORE_SPACE):
                    capitals = 0
                first_word = first_word and not is_word(kind)
                out[at] = SPACE
                at += 1
                whole = word_hash(buffer, begin, end)
                exact = call or kind != WORDS
                if exact:
                    out[at] = STRICT_BYTE
                elif word_bits[t] & _STRICT:
                    out[at] = COUNT_BYTE
                elif flags & ALONE:
                    out[at] = ALONE_BYTE
                elif flags & QUOTED:
                    out[at] = COUNT_BYTE
                elif word_bits[t] & _KNOWN and (flags & SENTENCE or not flags & CAPITAL):
                    out[at] = KNOWN_BYTE
                elif flags & CAPITAL:
                    out[at] = MAY_BE_NAME_BYTE if flags & SENTENCE else NAME_BYTE
                else:
                    at -= 1
                at += 1
                few = capitals != 0 and code_points(buffer, begin, end) < _FEW_LETTERS
                symbol = few and end - begin == 2 and 0xCE <= buffer[begin] <= 0xCF  # a Greek letter by itself
                if kind == WORDS and signs and ((cased[t] and capitals) or few):
                    out[at] = CASED_BYTE if cased[t] or symbol else CAPITALS_BYTE
                    for k in range(1, CASE_BYTES):
                        out[at + k] = 0x40 | capitals >> 6 * (k - 1) & 0x3F
                    at += CASE_BYTES
                out[at : at + end - begin] = buffer[begin:end]
                at += end - begin
                if whole == previous:  # a word put twice is a typing error
                    continue
                previous = whole
                total += 1
                if who and not strict:
                    answers += 1
                    for b in range(bands):
                        salted = mixed(mixed(whole ^ label ^ np.uint64(b + 1) * GOLDEN) + np.uint64(b))
                        minima[0, b] = min(minima[0, b], salted)
                        minima[1, b] = min(minima[1, b], mixed(salted ^ GOLDEN))
                exact = exact or flags & ALONE > 0 or code_points(buffer, begin, end) < 4
                if exact:
                    ends[:] = whole
                else:
                    _ends(buffer, begin, end, ends)
                for few in range(2):
                    for letters in range(3):
                        code[who, few, letters] = mixed((code[who, few, letters] ^ ends[few, letters]) * PRIME)
        for b in range(bands - 1):
            if answers >= _LONG_ANSWER:
                asked = code[0, 0, b & 1]
                row_keys[row, b] = mixed(mixed(mixed(asked ^ minima[0, b]) ^ minima[1, b]) + np.uint64(1))
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
                    columns = column(columns, byte)
            else:
                if fresh:
                    if blank:  # the first line begins at no depth
                        levels[0], blank = columns, False
                    was = depth
                    depth = indentation(levels, depth, columns)
                    blocks |= depth > was and last == 0x3A
                    if depth != was:
                        h = mixed((h ^ np.uint64(letters) * GOLDEN ^ np.uint64(depth)) * PRIME + np.uint64(1))
                    fresh = False
                letters, last = letters + 1, byte
        out[row] = h if blocks else np.uint64(0)


@kernel
def _row_key(code, asked, said, total):
    """The key of a row by some letters of its questions and of its answers; 0 where another key is the same."""
    few = 1 if total < _FEW_TOKENS else 0
    if not few and (asked == 2 or said == 2):
        return np.uint64(0)
    return mixed(mixed(code[0, few, asked]) + code[1, few, said] * GOLDEN)


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
        salt, made, previous, letters, depth = SEED, 0, np.uint64(0), 0, 0
        blocks, shouts = code and reads_indentation(buffer, tokens, count), _shouts(tokens, count, True)
        levels[0] = tokens[0, 4] if count else 0
        for t in range(count):
            kind = tokens[t, 2]
            if blocks and tokens[t, 3] & LINE:
                was = depth
                depth = indentation(levels, depth, tokens[t, 4])
                if depth != was:
                    salt = mixed((salt ^ np.uint64(made * _LEVELS + depth)) * PRIME)
            if code and kind == WORDS and tokens[t, 5] and not shouts:
                salt = mixed((salt ^ np.uint64(tokens[t, 5]) ^ np.uint64(made) << HALF) * PRIME)
            if not is_word(kind) and not _counts(buffer, tokens, count, t, code, how[0] > 0):
                continue
            word = word_hash(buffer, tokens[t, 0], tokens[t, 1])
            state = next_state(0, word, keys, values) if kind == WORDS else -1
            strict = kind != WORDS or (state >= 0 and bits[state] & _STRICT > 0)
            if strict:
                salt = mixed((salt ^ word) * PRIME)
            if not short[row]:
                hashes[made] = finalize(word)
                made += 1
            elif not strict:
                i = tokens[t, 0]
                while i < tokens[t, 1]:
                    after = code_point_end(buffer, i, tokens[t, 1])
                    letter = word_hash(buffer, i, after)
                    if letters:
                        hashes[made] = finalize(previous * PRIME ^ letter)
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
                hashes[k] += table[k] * GOLDEN
            if not made and salt != SEED:
                hashes[0] = GOLDEN
                made = 1
        else:
            table[:made] = hashes[:made]
            made = hash_shingles(table[:made], size, hashes)
        for k in range(made):
            hashes[k] = finalize(hashes[k] ^ salt)
        starts[row, 0] = at
        at += sorted_set(hashes[:made], made, table, out[at:])
        starts[row, 1] = at
