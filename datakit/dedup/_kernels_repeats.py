"""Texts as lines, paragraphs or sentences: their places, their hashes, which are repeated, texts without them.

Texts are (data uint8, offsets int64), as `string_buffers` gives them; `flags` is `repeats.flags()`. A unit begins and
ends with something else than white space; there is only white space between two units.
"""

import numpy as np

from datakit.dedup._kernels_minhash import BASE, NONE, finalize
from datakit.kernels import kernel
from datakit.text._kernels_text import decode

LINE, PARAGRAPH, SENTENCE = range(3)

# What a character is: white space, the end of a line, the end of a sentence, what may stand after that, what of these
# may also open the next sentence, an end that needs no space after it, a letter.
SPACE, BREAK, TERMINAL, CLOSER, OPENER, ALONE, LETTER = (1 << bit for bit in range(7))

_CR, _LF, _STOP = 13, 10, 46
_ALWAYS, _PERHAPS = 1, 2


@kernel
def find_units(data, offsets, flags, abbreviations, mode, starts, ends, row_starts):  # type: ignore[no-untyped-def]
    """Write where the units of each row begin and end.

    `starts` and `ends` need half as many places as there are bytes, and one more for each row. `row_starts` (rows + 1)
    gets the number of each row's first unit. `abbreviations` is `repeats.abbreviations()`.
    """
    units = 0
    for row in range(len(offsets) - 1):
        row_starts[row] = units
        i, end = offsets[row], offsets[row + 1]
        last, previous = offsets[row], np.int64(0)
        inside, ended, alone, breaks = False, False, False, 0
        word, letters, perhaps = np.uint64(0), 0, False
        while i < end:
            code, size = np.int64(data[i]), 1
            if code >= 0x80:
                code, size = decode(data, i, end)
            flag = flags[code]
            if flag & SPACE:
                breaks += flag & BREAK > 0 and not (code == _LF and previous == _CR)
                if inside and _closes(mode, breaks, ended) and not (perhaps and breaks == 0 and _goes_on(data, i, end)):
                    ends[units] = last
                    units += 1
                    inside = False
            else:
                if inside and alone and (flag & (TERMINAL | CLOSER) == 0 or flag & OPENER > 0):
                    ends[units] = last
                    units += 1
                    inside = False
                if not inside:
                    starts[units] = i
                    inside, ended, alone = True, False, False
                breaks, last = 0, np.int64(i + size)
                if mode == SENTENCE and flag & TERMINAL:
                    kind = _abbreviation(word, letters, abbreviations) if code == _STOP else 0
                    ended, perhaps = kind != _ALWAYS, kind == _PERHAPS
                    alone |= flag & ALONE > 0
                elif flag & CLOSER == 0:
                    ended = alone = perhaps = False
            if flag & LETTER:
                word, letters = word << np.uint64(8) | np.uint64(code & 255 | 0x20), letters + 1
            else:
                word, letters = np.uint64(0), 0
            previous = code
            i += size
        if inside:
            ends[units] = last
            units += 1
    row_starts[len(offsets) - 1] = units


@kernel
def _abbreviation(word, letters, abbreviations):  # type: ignore[no-untyped-def]
    """What a full stop means behind a word, given as its last eight letters in lower case.

    The sentence goes on (_ALWAYS), it does before a digit or a small letter (_PERHAPS), or it ends (0). Single letters
    are initials, but for the English I.
    """
    if letters == 1:
        return 0 if word == np.uint64(0x69) else _ALWAYS
    if letters < 2 or letters > 8:
        return 0
    at = np.searchsorted(abbreviations[0], word)
    if at < len(abbreviations[0]) and abbreviations[0][at] == word:
        return np.int64(abbreviations[1][at])
    return 0


@kernel
def _goes_on(data, i, end):  # type: ignore[no-untyped-def]
    """Whether a digit or a small letter of ASCII comes behind white space; not a letter with a mark, whose normal forms
    differ.
    """
    while i < end and (data[i] == 0x20 or data[i] == 0x09):
        i += 1
    if i >= end or (i + 1 < end and data[i + 1] >= 0x80):
        return False
    return 0x61 <= data[i] <= 0x7A or 0x30 <= data[i] <= 0x39


@kernel(inline="always")
def _closes(mode, breaks, ended):  # type: ignore[no-untyped-def]
    """Whether white space with this number of line breaks ends a unit."""
    return breaks >= 2 if mode == PARAGRAPH else breaks >= 1 or (mode == SENTENCE and ended)


@kernel
def hash_units(words, word_starts, hashes, counts):  # type: ignore[no-untyped-def]
    """The hash of each unit's words in their order, and how many they are."""
    for unit in range(len(word_starts) - 1):
        h = np.uint64(word_starts[unit + 1] - word_starts[unit])
        for j in range(word_starts[unit], word_starts[unit + 1]):
            h = h * BASE + words[j]
        hashes[unit], counts[unit] = finalize(h), word_starts[unit + 1] - word_starts[unit]


@kernel
def hash_spans(hashes, counts, row_starts, size, min_words, out):  # type: ignore[no-untyped-def]
    """The hash of the `size` units of a row from each unit on; NONE where there are fewer units, or too few words."""
    for row in range(len(row_starts) - 1):
        for unit in range(row_starts[row], row_starts[row + 1]):
            out[unit] = NONE
            if unit + size > row_starts[row + 1]:
                continue
            h, words = np.uint64(0), 0
            for k in range(unit, unit + size):
                h = h * BASE + hashes[k]
                words += counts[k]
            if words >= min_words:
                out[unit] = finalize(h)


@kernel
def _breaks_between(data, begin, end, flags):  # type: ignore[no-untyped-def]
    """(line breaks in a run of white space, the place after the last of them)."""
    breaks, behind, previous, i = 0, begin, 0, begin
    while i < end:
        code, size = decode(data, i, end)
        i += size
        if flags[code] & BREAK:
            breaks += not (code == _LF and previous == _CR)
            behind = i
        previous = code
    return breaks, behind


@kernel
def _range_to_cut(data, begin, first, last, end, at_begin, at_end, flags):  # type: ignore[no-untyped-def]
    """The bytes to cut for units from `first` to `last`, with white space from `begin` on and up to `end` around them.

    Of the two runs of white space, the one with more line breaks stays, so that paragraphs stay apart. The text after
    the cut keeps its own indentation.
    """
    if at_end:
        return begin, last
    breaks_before, indent_before = _breaks_between(data, begin, first, flags)
    breaks_behind, indent_behind = _breaks_between(data, last, end, flags)
    if breaks_behind == 0 and (at_begin or begin < first):
        return first, end
    if at_begin or breaks_before > breaks_behind:
        return indent_before, indent_behind
    return begin, last


@kernel
def cut_units(data, offsets, flags, units, cut, kept, kept_offsets, gone, gone_offsets, places):  # type: ignore[no-untyped-def]
    """Copy each row to `kept` without the units that `cut` marks, and these to `gone`, one piece for each unit.

    `units` is `repeats.Units`. Both outputs have space for the bytes of all rows. `places` (cut units) gets the byte of
    its row where each piece was: with the pieces put back there, the row is as it was.
    """
    starts, ends, row_starts = units
    at, gone_at, piece = 0, 0, 0
    for row in range(len(offsets) - 1):
        kept_offsets[row] = at
        begin, end, unit, stop = offsets[row], offsets[row + 1], row_starts[row], row_starts[row + 1]
        copied = begin
        while unit < stop:
            if not cut[unit]:
                unit += 1
                continue
            first = unit
            while unit < stop and cut[unit]:
                unit += 1
            before = ends[first - 1] if first > row_starts[row] else begin
            behind = starts[unit] if unit < stop else end
            low, high = _range_to_cut(
                data, before, starts[first], ends[unit - 1], behind, first == row_starts[row], unit == stop, flags
            )
            for i in range(copied, low):
                kept[at] = data[i]
                at += 1
            copied = high
            for k in range(first, unit):
                places[piece] = (low if k == first else starts[k]) - begin
                gone_offsets[piece] = gone_at
                for i in range(places[piece] + begin, high if k == unit - 1 else starts[k + 1]):
                    gone[gone_at] = data[i]
                    gone_at += 1
                piece += 1
        for i in range(copied, end):
            kept[at] = data[i]
            at += 1
    kept_offsets[len(offsets) - 1] = at
    gone_offsets[piece] = gone_at


@kernel
def number_equals(hashes, bits, starts, order, table, numbers):  # type: ignore[no-untyped-def]
    """Number the values that occur more than once, in `numbers` (int64, -1 for the others); returns how many there are.

    They are divided by their lowest `bits` bits into parts that stay in the cache, and each part goes through a hash
    table of its own. `starts` int64 (2 ** bits + 1,), `order` int32 or int64 (values,), `table` int64: twice the values
    and at least 4.
    """
    mask = np.uint64((1 << bits) - 1)
    starts[:] = 0
    for i in range(len(hashes)):
        starts[np.int64(hashes[i] & mask) + 1] += 1
    for part in range(1, len(starts)):
        starts[part] += starts[part - 1]
    for i in range(len(hashes) - 1, -1, -1):  # from the end of each part to its beginning, which moves there
        own = np.int64(hashes[i] & mask) + 1
        starts[own] -= 1
        order[starts[own]] = i
    count = 0
    for part in range(1, len(starts)):
        end = starts[part + 1] if part + 1 < len(starts) else len(hashes)
        slots = 4
        while slots < 2 * (end - starts[part]):
            slots *= 2
        table[:slots] = -1
        for k in range(starts[part], end):
            i = order[k]
            at = np.int64(hashes[i] >> np.uint64(20)) & (slots - 1)
            while table[at] >= 0 and hashes[table[at]] != hashes[i]:
                at = np.int64(at + 1 if at + 1 < slots else 0)
            first = table[at]
            if first < 0:
                table[at] = i
                numbers[i] = -1
                continue
            if numbers[first] < 0:
                numbers[first] = count
                count += 1
            numbers[i] = numbers[first]
    return count


@kernel
def choose(row_starts, words, groups, size, min_words_left, settled, owner, found, dropped):  # type: ignore[no-untyped-def]
    """Process the rows in order; a span is cut where an earlier kept row still has it, whole.

    `groups` numbers equal spans (-1: the span has no equal); span i is the units from i to i + size. `owner` (one for
    each group, -1 at first) becomes the row in which the span stays. `found` (one for each unit, -1 at first) becomes
    the row that a cut unit stays in. A row that was cut and keeps fewer than `min_words_left` words is `dropped`, and
    owns nothing.
    The first `settled` rows stay as they are; `settle` has made them owners.
    """
    for row in range(settled, len(row_starts) - 1):
        begin, end = row_starts[row], row_starts[row + 1]
        for i in range(begin, end):
            if i - size >= begin:  # no later span can cut into this one
                _own(i - size, row, groups, size, owner, found)
            group = groups[i]
            if group >= 0 and owner[group] >= 0:
                for k in range(i, i + size):
                    if found[k] < 0:
                        found[k] = owner[group]
        for i in range(max(begin, end - size), end):
            _own(i, row, groups, size, owner, found)
        cut, left = False, 0
        for i in range(begin, end):
            cut |= found[i] >= 0
            left += words[i] if found[i] < 0 else 0
        dropped[row] = cut and left < min_words_left
        if dropped[row]:
            for i in range(begin, end):
                if groups[i] >= 0 and owner[groups[i]] == row:
                    owner[groups[i]] = -1


@kernel
def settle(row_starts, groups, live, names, owner):  # type: ignore[no-untyped-def]
    """Make the first rows owners of all that they have, under the number that `names` (int64) has for each.

    Those that are not `live` (bool) own nothing.
    """
    for row in range(len(live)):
        for i in range(row_starts[row], row_starts[row + 1]):
            if live[row] and groups[i] >= 0 and owner[groups[i]] < 0:
                owner[groups[i]] = names[row]


@kernel(inline="always")
def _own(span, row, groups, size, owner, found):  # type: ignore[no-untyped-def]
    """Make the row the owner of a span that no earlier row has, if the span stays whole in it."""
    group = groups[span]
    if group < 0 or owner[group] >= 0:
        return
    for k in range(span, span + size):
        if found[k] >= 0:
            return
    owner[group] = row
