"""The signal pass: everything that the rule sets share, counted in one call per batch, from the Arrow buffer.

Legend: N rows of the batch, S signals, W words of a row. Text is UTF-8 as Arrow guarantees it (always valid).
Per row the pass costs two scans of the bytes and one hash-table insertion per word; longer n-grams are looked at only
where both shorter n-grams inside them repeat, which is rare in ordinary text.

In this file: the names of the counts, the scan of words, the scan of lines and paragraphs, repetition (which lines,
paragraphs and n-grams occur more than once), and the pass itself.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.filter._kernels_bytes import HIGH, before, below, digits, first, hashed, head, letters, load, mixed
from datakit.kernels import kernel
from datakit.text._kernels_text import decode

_OF_WORDS = (
    "chars",  # code points of the row, white space included
    "words",
    "unsegmented_words",  # words that are one character of a script written without spaces
    "kana_han_words",  # of those, characters of Han, Hiragana and Katakana
    "spaced_chars",  # code points in words with spaces around them, combining marks not counted
    "spaced_marks",  # their combining marks, and one for each syllable of Hangul, which stands for two letters or more
    "symbol_words",  # words without any letter, mark or digit
    "symbol_chars",  # their code points
    "alpha_words",  # words with a letter
    "foreign_words",  # words with a letter beyond ASCII
    "hashes",  # "#"
    "ellipses",  # "..." and "…"
    "stop_words",  # how many different ones of Gopher's eight English words
)
_OF_LINES = (
    "all_lines",  # blank ones too
    "lines",  # with anything but white space in them
    "bullet_lines",
    "ellipsis_lines",
    "terminal_lines",  # lines that end in a sentence's mark
    "short_lines",  # at most SHORT_LINE_CHARS code points, one of Han or kana counted as three
    "line_breaks",
    "dup_lines",  # copies after the first
    "dup_line_chars",  # their code points, white space at their ends not counted
    "paragraphs",  # lines between blank lines
    "dup_paragraphs",
    "dup_paragraph_chars",
)
MIN_TOP, MAX_TOP, MIN_DUP, MAX_DUP = 2, 4, 5, 10  # n of the n-grams: the most frequent one, all duplicate ones
_OF_NGRAMS = (
    *(f"top_{n}gram_chars" for n in range(MIN_TOP, MAX_TOP + 1)),
    *(f"dup_{n}gram_chars" for n in range(MIN_DUP, MAX_DUP + 1)),
)
SIGNALS = _OF_WORDS + _OF_LINES + _OF_NGRAMS
(CHARS, WORDS, UNSEGMENTED_WORDS, KANA_HAN_WORDS, SPACED_CHARS, SPACED_MARKS, SYMBOL_WORDS, SYMBOL_CHARS, ALPHA_WORDS,
 FOREIGN_WORDS, HASHES, ELLIPSES, STOP_WORDS) = range(13)  # fmt: skip
(ALL_LINES, LINES, BULLET_LINES, ELLIPSIS_LINES, TERMINAL_LINES, SHORT_LINES, LINE_BREAKS, DUP_LINES, _, PARAGRAPHS,
 DUP_PARAGRAPHS, _, FIRST_NGRAM) = range(13, 26)  # fmt: skip

# The flags of `filter.rule_set`; a test compares the two.
SPACE, BREAK, LETTER, MARK, NUMBER, UNSEGMENTED, TERMINAL = 1, 2, 4, 8, 16, 32, 64
FOREIGN_LETTER = 256  # of a word: a letter beyond ASCII

SHORT_LINE_CHARS = 30
MAX_STOP_WORD_CHARS = 40  # with the punctuation around it
# An English word takes about six characters with its space, one of Chinese or Japanese two.
KANA_HAN_EXTRA = 2
# A word of Chinese or Japanese is about two characters, one of Thai, Lao, Khmer or Burmese about four with its marks:
# n-grams of single characters repeat in any text.
KANA_HAN_STEP, OTHER_STEP = 2, 4
FIRST_KANA_HAN = 0x2E80  # the other scripts without spaces come before
FIRST_HANGUL, LAST_HANGUL = 0xAC00, 0xD7A3  # syllables

_ONE, _ALL, _CASE = np.uint64(1), np.uint64(2**64 - 1), np.uint64(0x2020202020202020)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

# Gopher's eight English words in a table of sixteen, each as a number whose lowest byte is its first letter: the
# multiplier was searched so that no two share a slot.
_SPREAD, _SPREAD_SHIFT = np.uint64(0xA648A7DD06839EB9), np.uint64(60)
_ENGLISH = np.zeros(16, np.uint64)
for _word in (b"the", b"be", b"to", b"of", b"and", b"that", b"have", b"with"):
    _packed = int.from_bytes(_word, "little")
    _ENGLISH[_packed * int(_SPREAD) % 2**64 >> 60] = _packed


@kernel(inner=True)
def scan_words(data, low, high, classes, keys, sizes, starts, signals):
    """Find the words of one row and count them.

    Words are white-space tokens; in a token with characters of a script without spaces each of those is a word, and
    so are the runs between them that hold a letter or digit (a lone comma between two of them belongs to neither).
    Fills keys (hash), sizes (code points) and starts (place in the row with every gap as one space) of each word; they
    have places for half of the row's bytes and two.
    Returns how many words of the text are one word of an n-gram.
    Counts live in local variables until the end: a store to `signals` for each word would cost a third of the speed.
    """
    found, place, chars, dots = 0, 0, 0, 0
    hashes, ellipses, alone, kana_han, alpha, foreign = 0, 0, 0, 0, 0, 0
    word_chars, mark_chars, symbols, symbol_chars, stop_words = 0, 0, 0, 0, 0
    # rest: bytes of the token that are not the first of their character
    hangul, marks, flags, rest, begin = 0, 0, 0, 0, low
    letter, digit = np.uint64(0), np.uint64(0)
    punctuated = False
    broken = False  # the token has a word of one character already
    at = low
    while at <= high:
        start = at
        while at + 8 <= high:  # most bytes of most words are letters and digits
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
        if at + 8 > high:  # fewer than eight bytes are left
            while at < high and data[at] < 0x80 and classes[data[at]] & (LETTER | NUMBER):
                flags |= classes[data[at]]
                at += 1
        if at > start:
            dots = 0
        byte = data[at] if at < high else 32
        if 32 < byte < 0x80:
            dots = dots + 1 if byte == 46 else 0
            if dots == 3:
                dots = 0
                ellipses += 1
            hashes += byte == 35
            punctuated = True
            at += 1
            continue
        code, width = (32, 1) if byte == 32 else decode(data, at, high)
        kind = classes[code]
        if kind & (SPACE | UNSEGMENTED):
            broken |= (kind & UNSEGMENTED) != 0
            size = at - begin - rest
            chars += size
            flags |= (LETTER if letter else 0) | (NUMBER if digit else 0)
            if size > 0 and (not broken or flags & (LETTER | MARK | NUMBER)):
                word = head(data, begin, at)
                keys[found] = hashed(data, begin, at) if at - begin > 8 else mixed(word) + np.uint64(at - begin)
                sizes[found], starts[found] = size, place
                found += 1
                place += size
                word_chars += size
                mark_chars += marks
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
            if kind & UNSEGMENTED:
                keys[found], sizes[found], starts[found] = hashed(data, at, at + width), 1, place
                found += 1
                place += 1
                alone += 1
                kana_han += code >= FIRST_KANA_HAN
                alpha += (kind & (LETTER | MARK)) != 0
                foreign += (kind & (LETTER | MARK)) != 0
            else:
                broken = False
                if found > 0 and starts[found - 1] + sizes[found - 1] == place:
                    place += 1
            marks, flags, rest, begin, punctuated = 0, 0, 0, at + width, False
            letter, digit = np.uint64(0), np.uint64(0)
        else:
            dots = 0
            ellipses += code == 0x2026
            punctuated = True
            rest += width - 1
            marks += (kind & MARK) != 0
            hangul += FIRST_HANGUL <= code <= LAST_HANGUL
            flags |= kind
            if kind & LETTER:
                flags |= FOREIGN_LETTER
        at += width
    signals[CHARS], signals[WORDS], signals[UNSEGMENTED_WORDS], signals[KANA_HAN_WORDS] = chars, found, alone, kana_han
    signals[SPACED_CHARS], signals[SPACED_MARKS] = word_chars - mark_chars, mark_chars + hangul
    signals[SYMBOL_WORDS], signals[SYMBOL_CHARS] = symbols, symbol_chars
    signals[ALPHA_WORDS], signals[FOREIGN_WORDS], signals[HASHES], signals[ELLIPSES] = alpha, foreign, hashes, ellipses
    while stop_words:  # a bit for each
        signals[STOP_WORDS] += stop_words & 1
        stop_words >>= 1
    if 2 * alone <= found:
        return 1
    return KANA_HAN_STEP if 2 * kana_han > alone else OTHER_STEP


@kernel(inner=True)
def _stop_word(word, size):
    """The bit of a stop word, given as the `size` lowest bytes of `word` in any case; 0 for any other word."""
    word = (word | _CASE) & _ALL >> np.uint64(64 - 8 * min(size, 8))
    slot = word * _SPREAD >> _SPREAD_SHIFT
    return np.int64(_ENGLISH[slot] == word) << np.int64(slot)


@kernel(inner=True)
def _quoted_stop_word(data, begin, end):
    """The same for a word with punctuation around it."""
    while begin < end and not (48 <= data[begin] <= 57 or 97 <= (data[begin] | 32) <= 122):
        begin += 1
    while begin < end and not (48 <= data[end - 1] <= 57 or 97 <= (data[end - 1] | 32) <= 122):
        end -= 1
    return _stop_word(head(data, begin, end), end - begin) if begin < end else 0


_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@kernel(inner=True)
def scan_lines(data, low, high, classes, keys, sizes, paragraph_keys, paragraph_sizes, signals):
    """Find the lines and paragraphs of one row and count them; blank lines only separate paragraphs.

    Fills keys (hash) and sizes (code points) of the lines and of the paragraphs, which have places for half of the
    row's bytes and two. White space at a line's end belongs to neither; indentation does.
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
            _count_line(data, line, end, classes, size - trimmed, extra, signals)
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


@kernel
def _line(data, at, high, classes):
    """(where the line breaks, bytes of the break, bytes of the line that are not the first of their character, how
    much more than one its characters of Han and kana count). "\\r\\n" breaks at "\\n"."""
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
        code, width = decode(data, at, high)
        kind = classes[code]
        if kind & BREAK and not (code == 13 and at + 1 < high and data[at + 1] == 10):
            return at, width, rest, extra
        rest += width - 1
        if kind & UNSEGMENTED and code >= FIRST_KANA_HAN:
            extra += KANA_HAN_EXTRA
        at += width
    return high, 1, rest, extra


@kernel(inner=True)
def _solid_end(data, line, end, classes):
    """(end of the last character that is no white space, characters after it); (`line`, ...) in a blank line."""
    trimmed = 0
    while end > line:
        begin = before(data, end, line)
        code, _ = decode(data, begin, end)
        if not classes[code] & SPACE:
            break
        end = begin
        trimmed += 1
    return end, trimmed


@kernel(inner=True)
def _count_line(data, line, end, classes, size, extra, signals):
    """Add a line to the row's signals: data[line:end] without the white space at its end."""
    signals[LINES] += 1
    signals[SHORT_LINES] += size + extra <= SHORT_LINE_CHARS
    last, _ = decode(data, before(data, end, line), end)
    dots = end - line >= 3 and data[end - 1] == 46 and data[end - 2] == 46 and data[end - 3] == 46
    signals[ELLIPSIS_LINES] += last == 0x2026 or dots
    signals[TERMINAL_LINES] += (classes[last] & TERMINAL) != 0
    code, width = decode(data, line, end)
    while classes[code] & SPACE:
        line += width
        code, width = decode(data, line, end)
    behind = line + width
    second = 32 if behind == end else np.int64(data[behind])
    dash = (code == 45 or code == 42) and (second == 32 or second == 9)
    # • ‣ ◦ ● ▪
    signals[BULLET_LINES] += (
        dash or code == 0x2022 or code == 0x2023 or code == 0x25E6 or code == 0x25CF or code == 0x25AA
    )


@kernel(inner=True)
def _duplicates(keys, sizes, total, scratch, out):
    """Fill out[2]: copies after the first of equal keys, and their code points."""
    _, numbers, _, firsts = scratch
    _number(keys, total, scratch)
    for i in range(total):
        if firsts[numbers[i]] != i:
            out[0] += 1
            out[1] += sizes[i]


@kernel
def _number(keys, total, scratch):
    """Number equal keys alike, in order of their first occurrence; returns how many different ones there are.

    scratch: slots int32[power of two], numbers, counts, firsts int32. Fills numbers[i] of each key, counts[number] and
    firsts[number] (the i of the first occurrence). A slot holds a number plus one, or 0; only as many slots are used
    as half load needs, so that those of a short row stay in the cache. `slots` has at least twice as many as keys.
    """
    slots, numbers, counts, firsts = scratch
    size = 64
    while size < 2 * total:
        size *= 2
    slots[:size] = 0
    distinct = 0
    for i in range(total):
        key = keys[np.uintp(i)]
        mixed_key = key * _GOLDEN
        slot = (mixed_key ^ mixed_key >> np.uint64(32)) & np.uint64(size - 1)
        while slots[slot] and keys[np.uintp(firsts[np.uintp(slots[slot] - 1)])] != key:
            slot = (slot + _ONE) & np.uint64(size - 1)
        if not slots[slot]:
            counts[np.uintp(distinct)], firsts[np.uintp(distinct)] = 0, i
            distinct += 1
            slots[slot] = distinct
        number = slots[slot] - 1
        numbers[np.uintp(i)] = number
        counts[np.uintp(number)] += 1
    return distinct


@kernel(inner=True)
def _ngrams(keys, total_words, step, sizes, starts, words, places, scratch, chars, out):
    """Characters in the most frequent 2..4-gram and in duplicate 5..10-grams of one row; an n-gram is n * step words.

    An n-gram can repeat only where the (n-1)-grams at its place and a step behind it do, so the places still worth a
    look shrink with n. An n-gram's key is exact: the number of its (n-1)-gram and the number of its last `step` words.
    Fills out: top 2..4-grams, then duplicate 5..10-grams. All arrays of words have places for `total_words`; `words`
    becomes the number of the `step` words that begin at each place, set where these repeat.
    """
    _, numbers, counts, firsts = scratch
    _number(keys, total_words, scratch)
    for i in range(total_words):
        places[i], words[i] = i, numbers[i]
    left = _repeated(places, numbers, counts, total_words)
    for length in range(2, step + 1):
        total = _longer(keys, words, places, numbers, left, length - 1, 1)
        _number(keys, total, scratch)
        left = _repeated(places, numbers, counts, total)
    for i in range(left):
        words[places[i]] = numbers[i]
    for n in range(MIN_TOP, MAX_DUP + 1):
        total = _longer(keys, words, places, numbers, left, (n - 1) * step, step)
        if total < 2:
            return
        distinct = _number(keys, total, scratch)
        if n <= MAX_TOP:
            out[n - MIN_TOP] = _top(sizes, starts, places, counts, firsts, distinct, n * step, chars)
        left = _repeated(places, numbers, counts, total)
        if n >= MIN_DUP:
            out[MAX_TOP - MIN_TOP + 1 + n - MIN_DUP] = _extra(sizes, places, numbers, counts, left, n * step)


# Branch-free: both always write an element, and advance only if it is kept.
@kernel(inner=True)
def _repeated(places, numbers, counts, total):
    """Keep only the places whose number occurs more than once; returns how many."""
    left = 0
    for i in range(total):
        same = numbers[i]
        places[left], numbers[left] = places[i], same
        left += counts[same] > 1
    return left


@kernel(inner=True)
def _longer(keys, words, places, numbers, left, length, step):
    """Keep only the places of n-grams of `length` words with another one `step` words later. Returns how many.

    Fills keys: the number of the n-gram and that of the `step` words after it."""
    total, behind = 0, 0
    for i in range(left):
        place = places[i]
        while behind < left and places[behind] < place + step:
            behind += 1
        if behind == left:
            break
        last = np.uint64(words[place + length])  # in the row: an n-gram that is `length` long begins at a later place
        keys[total] = np.uint64(numbers[i] + 1) << np.uint64(32) | last
        places[total] = place
        total += places[behind] == place + step
    return total


@kernel(inner=True)
def _top(sizes, starts, places, counts, firsts, distinct, length, chars):
    """Characters in all occurrences of the most frequent n-gram (the first of equals), spaces between words included;
    0 if none occurs twice. Occurrences may overlap, so the row's characters are the limit."""
    best = 0
    for i in range(distinct):
        if counts[i] > counts[best]:
            best = i
    if counts[best] < 2:
        return 0
    first = places[firsts[best]]
    last = first + length - 1
    return min(np.int64(counts[best]) * (starts[last] + sizes[last] - starts[first]), chars)


@kernel(inner=True)
def _extra(sizes, places, numbers, counts, total, length):
    """Characters of the words in n-grams that occurred before, from left to right, continuing after each hit."""
    for i in range(total):
        counts[numbers[i]] = 0  # from here on: 1 where the n-gram was seen
    chars, free = 0, 0
    for i in range(total):
        if places[i] < free:
            continue
        if counts[numbers[i]]:
            for word in range(places[i], places[i] + length):
                chars += sizes[word]
            free = places[i] + length
        counts[numbers[i]] = 1
    return chars


@kernel
def measure(data, offsets, classes):
    """All signals of a batch.

    data uint8[bytes], offsets int64[N+1] into it, classes uint8[0x110000] -> int64[S, N], in the order of SIGNALS.
    """
    rows = offsets.size - 1
    out = np.zeros((len(SIGNALS), rows), np.int64)
    longest, size = 0, 64
    for row in range(rows):
        longest = max(longest, offsets[row + 1] - offsets[row])
    # A word takes two bytes at least: its own and the space, or three for a character of a script without spaces; and
    # so does a line, with its break. Places and sizes are int32: a row has less than 2 GiB.
    most = longest // 2 + 2
    while size < 2 * most:
        size *= 2
    keys, paragraph_keys = np.empty(most, np.uint64), np.empty(most, np.uint64)
    sizes, starts, paragraph_sizes = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    words, places = np.empty(most, np.int32), np.empty(most, np.int32)
    scratch = np.empty(size, np.int32), np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    signals = np.empty(len(SIGNALS), np.int64)
    for row in range(rows):
        signals[:] = 0
        low, high = offsets[row], offsets[row + 1]
        scan_lines(data, low, high, classes, keys, sizes, paragraph_keys, paragraph_sizes, signals)
        _duplicates(keys, sizes, signals[LINES], scratch, signals[DUP_LINES:])
        _duplicates(paragraph_keys, paragraph_sizes, signals[PARAGRAPHS], scratch, signals[DUP_PARAGRAPHS:])
        step = scan_words(data, low, high, classes, keys, sizes, starts, signals)
        total, chars, repeats = signals[WORDS], signals[CHARS], signals[FIRST_NGRAM:]
        _ngrams(keys, total, step, sizes, starts, words, places, scratch, chars, repeats)
        out[:, row] = signals
    return out


_LOOP_UNIT, _LOOP_TIMES, _LOOP_BYTES = 64, 10, 200


@kernel
def loop_bytes(data, offsets):
    """int64[N]: bytes of each row in stretches of at least 200 bytes that repeat a unit of at most 64 ten times.

    A period is guessed where four bytes were seen before, at most 64 bytes ago; each byte is read about twice.
    """
    out = np.zeros(offsets.size - 1, np.int64)
    seen = np.full(1 << 12, -1, np.int64)
    for row in range(out.size):
        i, end = offsets[row], offsets[row + 1]
        while end - i >= 8:  # a stretch of 200 bytes is seen before its last eight
            slot = np.int64(np.uint32(load(data, i) * np.uint64(2654435761)) >> np.uint32(20))
            before, seen[slot] = seen[slot], i
            period = i - before
            if before < offsets[row] or period > _LOOP_UNIT:
                i += 1
                continue
            stop = i
            while stop < end and data[stop] == data[stop - period]:
                stop += 1
            if stop - before >= max(_LOOP_BYTES, _LOOP_TIMES * period):
                out[row] += stop - before
                i = stop
            else:  # within this stretch, the same period would only give shorter ones
                i = max(i + 1, stop - 3)
    return out
