"""The line pass of C4: which lines stay, what is in them, and the text without the others.

Legend: N rows of the batch, C counts. Text is UTF-8 as Arrow guarantees it. Nearly all bytes are skipped, eight at a
time: only the ends of words, brackets and characters beyond ASCII are looked at.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.filter._kernels_bytes import below, first, load, same
from datakit.kernels import kernel
from datakit.text._kernels_text import decode

COUNTS = (
    "c4_words",
    "c4_unmarked_words",  # of those, characters of Thai and Lao, which end no sentence with a mark
    "c4_lines",  # with anything but white space in them: the six below add up to them
    "c4_long_word_lines",
    "c4_unfinished_lines",
    "c4_few_word_lines",
    "c4_javascript_lines",
    "c4_policy_lines",
    "c4_kept_lines",
    "c4_sentences",  # in kept lines
    "c4_citations",  # in kept lines
    "c4_curly_brackets",  # "{", in the whole row
    "c4_judged_curly_brackets",  # in lines that only a policy may cut
    "c4_lorem_ipsum",
    "c4_judged_lorem_ipsum",  # in lines that are long and finished enough to stay
)
WORDS, UNMARKED, LINES, LONG_WORD, UNFINISHED, FEW_WORDS, JAVASCRIPT, POLICY, KEPT = range(9)
SENTENCES, CITATIONS, CURLY, JUDGED_CURLY, LOREM, JUDGED_LOREM = range(9, 15)

# The flags of `filter.rule_set`; a test compares the two.
SPACE, BREAK, SPACELESS, TERMINAL, QUOTE = 1, 2, 32, 64, 128
_LAST_UNMARKED = 0x0EFF  # Thai and Lao come before, the other scripts without spaces after

_PLAIN, _CASE = 0, np.uint64(0x2020202020202020)
_EDIT = np.frombuffer(b"[edit]", np.uint8)
_CITATION_NEEDED = np.frombuffer(b"[citation needed]", np.uint8)


@kernel
def count(data, offsets, classes, kinds, min_words, max_chars, unfinished, javascript, policy):
    """The counts of a batch.

    data uint8[bytes], offsets int64[N+1], classes uint8[0x110000], kinds uint8[256] (0: a byte inside a word that can
    be skipped); then the rules: a line needs `min_words` words, none longer than `max_chars` code points. It is cut if
    it does not end in a sentence's mark or quote (`unfinished`), or holds a phrase (`javascript`, `policy`), where
    these flags are set. Returns int64[C, N].
    """
    rows = offsets.size - 1
    out = np.zeros((len(COUNTS), rows), np.int64)
    hits, hit_kinds = _phrase_buffers(offsets)
    counts, nothing = np.empty(len(COUNTS), np.int64), np.empty(0, np.uint8)
    for row in range(rows):
        counts[:] = 0
        low, high = offsets[row], offsets[row + 1]
        _find_phrases(data, low, high, hits, hit_kinds)
        rules = (min_words, max_chars, unfinished, javascript, policy, False)
        _scan(data, low, high, classes, kinds, hits, hit_kinds, rules, counts, nothing, 0)
        out[:, row] = counts
    return out


@kernel
def cut(data, offsets, classes, kinds, min_words, max_chars, unfinished, javascript, policy, out, out_offsets, changed):
    """Copy the lines that stay of rows that lose any, without citations; arguments as those of `count`, and to fill:

    out uint8 (as large as the rows), out_offsets int64[N+1] of the changed rows in it, changed bool[N]. Line breaks
    become new lines, and a blank line stays between lines that had one between them. Rows mostly in Thai and Lao lose
    nothing. Returns how many rows changed.
    """
    hits, hit_kinds = _phrase_buffers(offsets)
    counts = np.empty(len(COUNTS), np.int64)
    at, made = 0, 0
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        counts[:] = 0
        low, high = offsets[row], offsets[row + 1]
        _find_phrases(data, low, high, hits, hit_kinds)
        rules = (min_words, max_chars, unfinished, javascript, policy, True)
        end = _scan(data, low, high, classes, kinds, hits, hit_kinds, rules, counts, out, at)
        loses = counts[KEPT] < counts[LINES] or counts[CITATIONS] > 0
        changed[row] = loses and 2 * counts[UNMARKED] <= counts[WORDS]
        if changed[row]:
            made += 1
            out_offsets[made] = at = end
    return made


@kernel
def _citation(data, at, high):
    """Bytes of the citation mark that begins at `at` ("[12]", "[]", "[edit]", "[citation needed]"); 0 for none."""
    end = at + 1
    while end < high and 48 <= data[end] <= 57:
        end += 1
    if end < high and data[end] == 93:
        return end + 1 - at
    for phrase in (_EDIT, _CITATION_NEEDED):
        if _matches(data, at, at, high, phrase):
            return phrase.size
    return 0


@kernel
def _scan(data, low, high, classes, kinds, hits, hit_kinds, rules, counts, out, out_at):
    """Count a row line by line; with the last rule also copy what stays to `out`. Returns where that ends."""
    at, line, end = low, low, low  # where the line begins, where its last solid character ends
    words, chars, longest, sentences, citations, curly, hit = 0, 0, 0, 0, 0, 0, 0
    last, said, begun, blank = 0, False, out_at, False  # `said`: there is text since the last sentence's end
    while at <= high:
        start = at
        while at + 8 <= high:
            eight = load(data, at)
            found = below(eight, 33) | same(eight | _CASE, 123)  # white space, what is not ASCII, "{" and "["
            if found:
                at += first(found)
                break
            at += 8
        if at + 8 > high:  # fewer than eight bytes are left
            while at < high and kinds[data[np.uintp(at)]] == _PLAIN:
                at += 1
        if at > start:
            chars += at - start
            last, end, said = np.int64(data[at - 1]), at, True
        if at < high and data[at] == 32:  # nearly every word's end
            words += chars > 0
            longest = max(longest, chars)
            chars = 0
            if (
                said
                and (classes[last] & (TERMINAL | QUOTE) or last == 41 or last == 93)
                and _ends(data, line, end, last, classes)
            ):
                sentences += 1
                said = False
            at += 1
            continue
        code, width = (10, 1) if at == high else decode(data, at, high)
        kind = classes[code]
        if code == 13 and at + 1 < high and data[at + 1] == 10:
            kind = SPACE  # the new line after it ends the line
        if kind & (SPACE | BREAK | SPACELESS):
            words += chars > 0
            longest = max(longest, chars)
            chars = 0
            if (
                said
                and kind & (SPACE | BREAK)
                and (classes[last] & (TERMINAL | QUOTE) or last == 41 or last == 93)  # before a call for each word
                and _ends(data, line, end, last, classes)
            ):
                sentences += 1
                said = False
            if kind & SPACELESS:
                words += 1
                longest = max(longest, 1)
                counts[UNMARKED] += code <= _LAST_UNMARKED
                last, end, said = code, at + width, True
        elif code == 123:
            chars += 1
            curly += 1
            last, end, said = code, at + 1, True
        elif code == 91:
            chars += 1
            citations += _citation(data, at, high) > 0
            last, end, said = code, at + 1, True
        else:
            chars += 1
            last, end = code, at + width
            if kind & TERMINAL and code > 0x3000:  # a mark that needs no space after it
                sentences += said
                said = False
            elif not kind & QUOTE:
                said = True
        if kind & BREAK:
            sentences += said
            lorem, javascript, policy = 0, 0, 0
            while hits[hit] < at:
                lorem += hit_kinds[hit] == SAYS_LOREM
                javascript += hit_kinds[hit] == SAYS_JAVASCRIPT
                policy += hit_kinds[hit] == SAYS_POLICY
                hit += 1
            counts[LOREM] += lorem
            counts[CURLY] += curly
            if words > 0:
                verdict = _verdict(data, line, end, words, longest, javascript, policy, classes, rules)
                counts[WORDS] += words
                counts[LINES] += 1
                counts[verdict] += 1
                if verdict >= JAVASCRIPT:
                    counts[JUDGED_LOREM] += lorem
                if verdict >= POLICY:
                    counts[JUDGED_CURLY] += curly
                if verdict == KEPT:
                    counts[SENTENCES] += sentences
                    counts[CITATIONS] += citations
                    if rules[5]:
                        out_at = _copy(data, line, end, citations, blank, begun, out, out_at)
                        blank = False
            else:
                blank = True
            line = end = at + width
            words, longest, sentences, citations, curly, last, said = 0, 0, 0, 0, 0, 0, False
        at += width
    return out_at


@kernel
def _ends(data, line, end, last, classes):
    """Whether a sentence's mark is the last character before `end`; quotes and brackets after it are ignored."""
    while classes[last] & QUOTE or last == 41 or last == 93:
        end -= 1
        while end > line and data[end] & 0xC0 == 0x80:
            end -= 1
        if end <= line:
            return False
        begin = end - 1
        while begin > line and data[begin] & 0xC0 == 0x80:
            begin -= 1
        last, _ = decode(data, begin, end)
    return classes[last] & TERMINAL != 0


@kernel
def _verdict(data, line, end, words, longest, javascript, policy, classes, rules):
    """What happens to a line: the index of the count that it adds to."""
    min_words, max_chars, unfinished, no_javascript, no_policy, _ = rules
    if longest > max_chars:
        return LONG_WORD
    if unfinished and not _finished(data, line, end, classes):
        return UNFINISHED
    if words < min_words:
        return FEW_WORDS
    if no_javascript and javascript:
        return JAVASCRIPT
    if no_policy and policy:
        return POLICY
    return KEPT


@kernel
def _finished(data, line, end, classes):
    """Whether a line ends in a sentence's mark or a quote; citations are ignored, an ellipsis ends no sentence."""
    end = _before_citations(data, line, end)
    if end == line or (end - line >= 3 and data[end - 1] == 46 and data[end - 2] == 46 and data[end - 3] == 46):
        return False
    begin = end - 1
    while begin > line and data[begin] & 0xC0 == 0x80:
        begin -= 1
    code, _ = decode(data, begin, end)
    return classes[code] & (TERMINAL | QUOTE) != 0


@kernel
def _before_citations(data, line, end):
    """The end of a line without the citations at its end and the spaces before them."""
    while end > line and data[end - 1] == 93:
        begin = end - 1
        while begin > line and data[begin] != 91:
            begin -= 1
        if data[begin] != 91 or _citation(data, begin, end) != end - begin:
            break
        end = begin
        while end > line and data[end - 1] == 32:
            end -= 1
    return end


@kernel
def _copy(data, line, end, citations, blank, begun, out, at):
    """Append a line without its citations to the row that begins at `begun`."""
    if at > begun:
        out[at] = 10
        at += 1
        if blank:
            out[at] = 10
            at += 1
    if not citations:
        out[at : at + end - line] = data[line:end]
        return at + end - line
    end = _before_citations(data, line, end)
    place = line
    while place < end:
        width = _citation(data, place, end) if data[place] == 91 else 0
        if width:
            place += width
        else:
            out[at] = data[place]
            at += 1
            place += 1
    return at


SAYS_JAVASCRIPT, SAYS_POLICY, SAYS_LOREM = 1, 2, 3  # kinds of phrases; 0 is none

_JAVASCRIPT = np.frombuffer(b"javascript", np.uint8)
_LOREM = np.frombuffer(b"lorem ipsum", np.uint8)
_TERMS = np.frombuffer(b"terms of use", np.uint8)
_PRIVACY = np.frombuffer(b"privacy policy", np.uint8)
_COOKIE_POLICY = np.frombuffer(b"cookie policy", np.uint8)
_USES_COOKIES = np.frombuffer(b"uses cookies", np.uint8)
_USE_COOKIES = np.frombuffer(b"use cookies", np.uint8)
_USE_OF_COOKIES = np.frombuffer(b"use of cookies", np.uint8)

_BLOCK = 64  # bytes at a time: LLVM makes vector instructions of such loops


@kernel
def _phrase_buffers(offsets):
    """Scratch buffers for the phrases of the longest row: each phrase takes more than four bytes."""
    longest = 0
    for row in range(offsets.size - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    return np.empty(longest // 4 + 2, np.int64), np.empty(longest // 4 + 2, np.uint8)


@kernel
def _matches(data, at, low, high, phrase):
    """Whether the bytes from `at` are the phrase, whatever the case of ASCII letters."""
    if at < low or at + phrase.size > high:
        return False
    for i in range(phrase.size):
        byte = data[at + i]
        if (byte | 32 if 65 <= byte <= 90 else byte) != phrase[i]:
            return False
    return True


@kernel
def _find_phrases(data, low, high, hits, hit_kinds):
    """Find javascript, lorem ipsum and the phrases of policies: their places in order, then the end of the row."""
    found, at = 0, low
    while at < high:
        end = min(at + _BLOCK, high)
        if at + _BLOCK + 2 > high or _has_rare(data[at : at + _BLOCK + 2]):
            for place in range(at, end):
                kind = _phrase(data, place, low, high) if _is_rare(data, place, high) else 0
                if kind:
                    hits[found], hit_kinds[found] = place, kind
                    found += 1
        at = end
    hits[found] = high


@kernel(inline="always")
def _rare(one, two, three):
    """Whether three lower-case bytes occur in one of the phrases and are rare elsewhere: "jav", "m i" of lorem ipsum,
    "f u" of terms of use, "y p" of privacy policy, "oki" of cookies. Every phrase has such bytes."""
    return (
        ((one == 106) & (two == 97) & (three == 118))
        | ((one == 109) & (two == 32) & (three == 105))
        | ((one == 102) & (two == 32) & (three == 117))
        | ((one == 121) & (two == 32) & (three == 112))
        | ((one == 111) & (two == 107) & (three == 105))
    )


@kernel
def _has_rare(block):
    """Whether three rare bytes begin in a block, which is followed by two more bytes; without branches."""
    found = False
    for k in range(_BLOCK):
        found |= _rare(block[k] | 32, block[k + 1] | 32, block[k + 2] | 32)
    return found


@kernel
def _is_rare(data, at, high):
    return at + 2 < high and _rare(data[at] | 32, data[at + 1] | 32, data[at + 2] | 32)


@kernel
def _phrase(data, at, low, high):
    """The kind of the phrase whose three rare bytes begin at `at`; 0 for none."""
    if _matches(data, at, low, high, _JAVASCRIPT):
        return SAYS_JAVASCRIPT
    if _matches(data, at - 4, low, high, _LOREM):
        return SAYS_LOREM
    if (
        _matches(data, at - 7, low, high, _TERMS)
        or _matches(data, at - 6, low, high, _PRIVACY)
        or _matches(data, at - 2, low, high, _COOKIE_POLICY)
        or _matches(data, at - 7, low, high, _USES_COOKIES)
        or _matches(data, at - 6, low, high, _USE_COOKIES)
        or _matches(data, at - 9, low, high, _USE_OF_COOKIES)
    ):
        return SAYS_POLICY
    return 0
