"""From the text of a turn to the form by which turns are equal, and from the digests of turns to those of rows."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel
from datakit.text._kernels_text import decode, finalize, fold_expanding

_WORD, _SPACE, _LETTER, _NUMBER = 1, 4, 16, 64  # as in words.CharacterTable
_FOLD_SHIFT = 16
_TAB = 4  # columns

# Kinds of characters: the end of a line; a sentence mark; quotes and brackets that may stand between a word and its
# sentence mark; an ASCII sign that prose lacks.
_BREAK, _MARK, _CLOSING, _SIGN = 1, 2, 4, 8
_KINDS = np.zeros(1 << 16, np.uint8)
for _flag, _chars in (
    (_BREAK, "\n\v\f\r\x85\u2028\u2029"),
    (_MARK, ".,!?;\u3002\uff0e\uff0c\uff01\uff1f\uff1b"),
    (_CLOSING, "\"')\u2019\u201d\u300d\u300f\uff09"),
    (_SIGN, "#$%&*+/<=>@[\\]^_`{|}~"),
):
    _KINDS[[ord(_char) for _char in _chars]] = _flag


@kernel
def _kind(code):
    return _KINDS[min(code, 0xFFFF)]


@kernel
def _entry(code, pages, entries):
    return np.int64(entries[np.int64(pages[code >> 8]) << 8 | code & 255])


@kernel
def has_code(data, begin, end, pages, entries):
    """Whether a text may be code or a formula.

    That is: it has an ASCII sign that prose lacks, an indented line, a point or an opening bracket right between a
    letter and a letter or digit, as in `a.b` and `f(x)`, or a hyphen that begins a word, as in `-1` and `-v`.
    """
    i, indented, letter, space, joint = begin, False, False, True, False
    while i < end:
        code, width = decode(data, i, end)
        entry = _entry(code, pages, entries)
        if entry & _SPACE:
            indented |= _kind(code) == _BREAK
            if indented and _kind(code) != _BREAK and i + width < end:
                after, _ = decode(data, i + width, end)
                if not _entry(after, pages, entries) & _SPACE:
                    return True
        elif _kind(code) == _SIGN or (joint and entry & _WORD):
            return True
        else:
            indented = False
        joint = (letter and (code == 0x2E or code == 0x28)) or (space and code == 0x2D)
        letter, space = entry & _LETTER > 0, entry & _SPACE > 0
        i += width
    return False


@kernel
def _ends_word(code, data, i, end, pages, entries):
    """Whether the sentence mark before byte i ends a word: a full-width one where no digit follows, any other one
    before white space, a further mark, something that closes, or the end."""
    if i >= end:
        return True
    after, _ = decode(data, i, end)
    entry = _entry(after, pages, entries)
    if code >= 0x80:
        return entry & _NUMBER == 0
    return entry & _SPACE > 0 or _kind(after) == _MARK or _kind(after) == _CLOSING


@kernel
def _plain(data, i, end, loose, pages, entries, folds, out, at):
    """Write one text as `plain_turns` says; returns where it ends."""
    start, gap, columns = at, 0, 0  # gap: 1 after white space, 2 after a line break
    letters, word = 0, False  # letters before this place, and whether a word ends there, but for marks and what closes
    while i < end:
        code, width = decode(data, i, end)
        entry = _entry(code, pages, entries)
        begin, i = i, i + width
        if entry & _SPACE:
            if _kind(code) == _BREAK:
                gap, columns = 2, 0
            else:
                gap = max(gap, 1)
                columns = (columns // _TAB + 1) * _TAB if code == 0x09 else columns + 1
            letters, word = 0, False
            continue
        factorial = letters <= 1 and (code == 0x21 or code == 0xFF01)
        counts = not (loose and word and _kind(code) == _MARK and not factorial)
        if not counts and _ends_word(code, data, i, end, pages, entries):
            continue
        if gap and at > start:
            out[at] = 0x0A if gap == 2 and columns else 0x20
            at += 1
            for _ in range(columns if gap == 2 else 0):
                out[at] = 0x20
                at += 1
        gap = 0
        fold = entry >> _FOLD_SHIFT
        if loose and fold:
            at = fold_expanding(fold, folds, out, at)
        else:
            for k in range(begin, i):
                out[at] = data[k]
                at += 1
        letters = letters + 1 if entry & _LETTER else letters if _kind(code) == _CLOSING else 0
        word = entry & _WORD > 0 or (word and _kind(code) == _CLOSING)
    return at


@kernel
def plain_turns(data, offsets, loose, pages, entries, folds, out, out_offsets):
    """Each text with its white space as single spaces, but for the indentation of its lines.

    A line break before white space is a line feed and as many spaces as there are columns: so lines without indentation
    may be broken anywhere, and no other text has a line feed. White space at both ends is left out. With `loose`, a
    text without code is case-folded and loses the sentence marks at the ends of words; one after a digit or a single
    letter that may be a factorial (`5!`) stays.

    `out` holds 4 times the bytes of the texts: a tab becomes 4 spaces, folding makes at most three bytes of one.
    """
    at = 0
    for row in range(len(offsets) - 1):
        out_offsets[row] = at
        begin, end = offsets[row], offsets[row + 1]
        fold = loose and not has_code(data, begin, end, pages, entries)
        at = _plain(data, begin, end, fold, pages, entries, folds, out, at)
    out_offsets[len(offsets) - 1] = at


@kernel
def chain(digests, starts, states, every):
    """Chain the digests of turns, uint64 (turns, 2). `states` uint64 (rows, 2) holds where each row begins, and becomes
    its digest; `every` uint64 (turns, 2) becomes the state after each turn.

    The turns of row r are those from `starts[r]` to `starts[r + 1]`. A step is a bijection of the state for one turn,
    and of the turn for one state: two rows that differ in one turn alone never meet.
    """
    for row in range(len(starts) - 1):
        a, b = states[row, 0], states[row, 1]
        for turn in range(starts[row], starts[row + 1]):
            a = finalize(a ^ digests[turn, 0]) + b
            b = finalize(b ^ digests[turn, 1]) + a
            every[turn, 0], every[turn, 1] = a, b
        states[row, 0], states[row, 1] = a, b
