"""The line pass of C4: which lines stay, what is in them, and the text without the others.

Legend: N rows of the batch, C counts. Text is UTF-8 as Arrow guarantees it. Nearly all bytes are skipped, eight at a
time: only the ends of words, brackets and characters beyond ASCII are looked at.

A line is `data[line:end]`: `end` is where its last solid character ends, so white space at its end is not part of it.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.filter._kernels_bytes import before, below, first, load, same
from datakit.kernels import kernel
from datakit.text._kernels_text import decode

COUNTS = (
    "c4_words",
    "c4_unmarked_words",  # of those, characters of Thai and Lao, which end no sentence with a mark
    "c4_lines",  # with anything but white space in them
    "c4_kept_lines",
    "c4_sentences",  # in kept lines
    "c4_citations",  # in kept lines
    "c4_curly_brackets",  # "{", in the whole row
    "c4_judged_curly_brackets",  # in lines that only a policy may cut
    "c4_lorem_ipsum",
    "c4_judged_lorem_ipsum",  # in lines that are long and finished enough to stay
)
WORDS, UNMARKED, LINES, KEPT, SENTENCES, CITATIONS, CURLY, JUDGED_CURLY, LOREM, JUDGED_LOREM = range(len(COUNTS))

# The flags of `filter.rule_set`; a test compares the two.
SPACE, BREAK, UNSEGMENTED, TERMINAL, QUOTE = 1, 2, 32, 64, 128
_LAST_UNMARKED = 0x0EFF  # Thai and Lao come before, the other scripts without spaces after

MIN_WORDS, MAX_CHARS, FINISHED = range(3)  # the places of the rules

_CASE, _BLOCK = np.uint64(0x2020202020202020), 64

# The phrases of the paper, lower case; those of policies as in datatrove. Each has three bytes that are rare in other
# text ("jav", "m i", "f u", "y p", "oki"), which are looked for first: here with the place of these bytes.
_SAYS_NOTHING, _SAYS_JAVASCRIPT, _SAYS_POLICY, _SAYS_LOREM, _CITES = range(5)
_PHRASES = (
    (b"javascript", 0, _SAYS_JAVASCRIPT), (b"lorem ipsum", 4, _SAYS_LOREM), (b"terms of use", 7, _SAYS_POLICY),
    (b"privacy policy", 6, _SAYS_POLICY), (b"cookie policy", 2, _SAYS_POLICY), (b"uses cookies", 7, _SAYS_POLICY),
    (b"use cookies", 6, _SAYS_POLICY), (b"use of cookies", 9, _SAYS_POLICY), (b"[edit]", 0, _CITES),
    (b"[citation needed]", 0, _CITES),
)  # fmt: skip
_TEXTS = np.array([list(text.ljust(20, b"\0")) for text, _, _ in _PHRASES], np.uint8)
_SIZES = np.array([len(text) for text, _, _ in _PHRASES])
_RARE_AT = np.array([place for _, place, _ in _PHRASES])
_KINDS = np.array([kind for _, _, kind in _PHRASES])
_RARE = np.unique([list(text[at : at + 3]) for text, at, kind in _PHRASES if kind != _CITES], axis=0).astype(np.uint8)


@kernel
def scan(data, offsets, classes, rules, stays, out, out_offsets, changed):
    """The counts of a batch, int64[C, N]; with `out`, also the text of rows that lose lines.

    data uint8[bytes], offsets int64[N+1], classes uint8[0x110000], rules int64[3] (a line needs so many words, none
    longer than so many code points; whether it must end as a sentence does).
    To fill, if out (uint8) is not empty: it must be as large as the rows, since for each new line that is written a
    break was read; out_offsets int64[N+1], empty for rows without a change; changed bool[N]. Only rows of `stays`
    (bool[N]) are looked at then. Rows mostly in Thai and Lao lose nothing.
    """
    counts = np.zeros((len(COUNTS), offsets.size - 1), np.int64)
    own = np.zeros(len(COUNTS), np.int64)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        at = out_offsets[row]
        out_offsets[row + 1] = at
        if stays[row]:
            own[:] = 0
            at = _scan_row(data, offsets[row], offsets[row + 1], classes, rules, own, out, at)
            counts[:, row] = own
            loses = own[KEPT] < own[LINES] or own[CITATIONS] > 0
            if out.size and loses and 2 * own[UNMARKED] <= own[WORDS]:
                changed[row] = True
                out_offsets[row + 1] = at
    return counts


@kernel(inner=True)
def _scan_row(data, low, high, classes, rules, counts, out, out_at):
    """Count a row line by line, and copy what stays to `out` if it is not empty. Returns where that ends."""
    at, line, end, said = low, low, low, np.empty(5, np.int64)
    words, chars, longest, sentences, citations, curly = 0, 0, 0, 0, 0, 0  # of the line; `chars` of the present word
    # `last`: the line's last solid character; `unended`: there is text since the last sentence's end; `begun`: where
    # the row begins in `out`
    last, unended, begun = 0, False, out_at
    blank = low > high  # False, but no literal, for which numba would compile `_copy` once more
    while at <= high:  # behind the last byte counts as a line break
        start = at
        while at + 8 <= high:
            eight = load(data, at)
            found = below(eight, 33) | same(eight | _CASE, 123)  # white space, what is not ASCII, "{" and "["
            if found:
                at += first(found)
                break
            at += 8
        if at > start:
            chars += at - start
            last, end, unended = np.int64(data[at - 1]), at, True
        code, width = (10, 1) if at == high else decode(data, at, high)
        kind = classes[code]
        if code == 13 and at + 1 < high and data[at + 1] == 10:
            kind = SPACE  # the new line after it ends the line
        if kind & (SPACE | BREAK | UNSEGMENTED):
            words += chars > 0
            longest = max(longest, chars)
            chars = 0
            if kind & UNSEGMENTED:
                words += 1
                longest = max(longest, 1)
                counts[UNMARKED] += code <= _LAST_UNMARKED
                last, end, unended = code, at + width, True
            elif (
                unended
                and (classes[last] & (TERMINAL | QUOTE) or last == 41 or last == 93)  # before a call for each word
                and _ends_sentence(data, line, end, classes)
            ):
                sentences += 1
                unended = False
        else:
            chars += 1
            curly += code == 123
            citations += code == 91 and _citation(data, at, high) > 0
            last, end = code, at + width
            if kind & TERMINAL and code > 0x3000:  # a mark that needs no space after it
                sentences += unended
                unended = False
            elif code < 0x80 or not kind & QUOTE:
                unended = True
        at += width
        if not kind & BREAK:
            continue
        sentences += unended
        said[:] = 0
        _count_phrases(data, line, at - width, said)
        counts[LOREM] += said[_SAYS_LOREM]
        counts[CURLY] += curly
        if words > 0:
            counts[WORDS] += words
            counts[LINES] += 1
            finished = not rules[FINISHED] or _is_finished(data, line, end, classes)
            if longest <= rules[MAX_CHARS] and words >= rules[MIN_WORDS] and finished:
                counts[JUDGED_LOREM] += said[_SAYS_LOREM]
                if not said[_SAYS_JAVASCRIPT]:
                    counts[JUDGED_CURLY] += curly
                    if not said[_SAYS_POLICY]:
                        counts[KEPT] += 1
                        counts[SENTENCES] += sentences
                        counts[CITATIONS] += citations
                        if out.size:
                            out_at = _copy(data, line, end, citations, blank, begun, out, out_at)
                            blank = False
        else:
            blank = True
        line = end = at
        words, longest, sentences, citations, curly, last, unended = 0, 0, 0, 0, 0, 0, False
    return out_at


@kernel(inner=True)
def _ends_sentence(data, line, end, classes):
    """Whether a sentence's mark is the last character before `end`; quotes and brackets after it are ignored."""
    while end > line:
        begin = before(data, end, line)
        code, _ = decode(data, begin, end)
        if not (classes[code] & QUOTE or code == 41 or code == 93):
            return classes[code] & TERMINAL != 0
        end = begin
    return False


@kernel(inner=True)
def _is_finished(data, line, end, classes):
    """Whether a line ends in a sentence's mark or a quote; citations are ignored, an ellipsis ends no sentence."""
    end = _before_citations(data, line, end)
    if end == line or (end - line >= 3 and data[end - 1] == 46 and data[end - 2] == 46 and data[end - 3] == 46):
        return False
    code, _ = decode(data, before(data, end, line), end)
    return classes[code] & (TERMINAL | QUOTE) != 0


@kernel(inner=True)
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


@kernel(inner=True)
def _citation(data, at, high):
    """Bytes of the citation mark that begins at `at` ("[12]", "[]", "[edit]", "[citation needed]"); 0 for none."""
    end = at + 1
    while end < high and 48 <= data[end] <= 57:
        end += 1
    if end < high and data[end] == 93:
        return end + 1 - at
    for k in range(_SIZES.size):
        if _KINDS[k] == _CITES and _is_phrase(data, at, at, high, k):
            return _SIZES[k]
    return 0


@kernel(inner=True)
def _copy(data, line, end, citations, blank, begun, out, at):
    """Append a line without its citations to the row that begins at `begun`; returns where it ends.

    Between two lines is a new line, or a blank line if there was one.
    """
    for _ in range((at > begun) * (1 + blank)):
        out[at] = 10
        at += 1
    if citations:
        end = _before_citations(data, line, end)
    while line < end:
        width = _citation(data, line, end) if citations and data[line] == 91 else 0
        line += width
        if not width:
            out[at] = data[line]
            at += 1
            line += 1
    return at


@kernel(inner=True)
def _count_phrases(data, line, end, said):
    """Count, by kind, the phrases of a line, but citations."""
    for at in range(line, end, _BLOCK):  # the test of a block may look into the next rows, what follows it may not
        if at + _BLOCK + 2 > data.size or _has_rare(data[at : at + _BLOCK + 2]):
            for place in range(at, min(at + _BLOCK, end - 2)):
                if _rare(data[place] | 32, data[place + 1] | 32, data[place + 2] | 32):
                    said[_phrase(data, place, line, end)] += 1


@kernel(inline="always")
def _rare(one, two, three):
    """Whether three lower-case bytes are those of a phrase; without branches, so that LLVM unrolls and vectorizes."""
    found = False
    for k in range(len(_RARE)):
        found |= (one == _RARE[k, 0]) & (two == _RARE[k, 1]) & (three == _RARE[k, 2])
    return found


@kernel(inner=True)
def _has_rare(block):
    """Whether three rare bytes begin in a block, which is followed by two more bytes: LLVM makes vectors of it."""
    found = False
    for k in range(_BLOCK):
        found |= _rare(block[k] | 32, block[k + 1] | 32, block[k + 2] | 32)
    return found


@kernel(inner=True)
def _phrase(data, at, low, high):
    """The kind of the phrase in [low, high) whose three rare bytes begin at `at`."""
    for k in range(_SIZES.size):
        if _KINDS[k] != _CITES and _is_phrase(data, at - _RARE_AT[k], low, high, k):
            return _KINDS[k]
    return _SAYS_NOTHING


@kernel(inner=True)
def _is_phrase(data, at, low, high, k):
    """Whether the bytes from `at` are phrase k and lie in [low, high), whatever the case of ASCII letters."""
    if at < low or at + _SIZES[k] > high:
        return False
    for i in range(_SIZES[k]):
        byte = data[at + i]
        if (byte | 32 if 65 <= byte <= 90 else byte) != _TEXTS[k, i]:
            return False
    return True
