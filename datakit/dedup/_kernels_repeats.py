"""Texts as lines, paragraphs, sentences or tokens, windows of them that occur again, and texts without these.

Texts are (data uint8, offsets int64), as `string_buffers` gives them; `flags` is `cuts.flags()`. Rows of units are
arrays with one entry a unit and `row_starts` int64 (rows + 1): the units of row i are `[row_starts[i], row_starts[i +
1])`. A window is `size` consecutive units of one row; window i of a row begins with its unit i.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel
from datakit.text._kernels_text import BASE, NONE, decode, finalize

LINE, PARAGRAPH, SENTENCE = range(3)

# What a character is: white space; the end of a line; the end of a sentence, and one that needs no space after it; and
# marks by their Unicode categories: initial quotes (Pi), brackets (Ps, Pe), final quotes (Pf). Quotes of either kind
# close in some language, so both may stand behind the end of a sentence; an initial one may also open the next.
SPACE, BREAK, TERMINAL, ALONE, OPENS_QUOTE, OPENS_BRACKET, CLOSES_BRACKET, CLOSES_QUOTE = (1 << bit for bit in range(8))
_CLOSES = OPENS_QUOTE | CLOSES_QUOTE | CLOSES_BRACKET
_OPENS = OPENS_QUOTE | OPENS_BRACKET

_CR, _LF = 13, 10
_WORD, _SPACELESS = 1, 2  # words.WORD, words.SPACELESS
_SECOND = np.uint64(0xE7037ED1A0B428DB)  # odd, and not BASE: the base of the second half of a hash of 128 bits


# Units.


@kernel
def find_units(data, offsets, flags, mode, starts, ends, row_starts):
    """Write where the lines, paragraphs or sentences (`mode`) of each row begin and end in `data`, without the white
    space around them.

    `starts` and `ends` need half as many places as there are bytes, and one more for each row: behind a unit is white
    space, or it has a mark of three bytes.
    """
    units = 0
    for row in range(len(offsets) - 1):
        row_starts[row] = units
        i, end = offsets[row], offsets[row + 1]
        last, previous = offsets[row], np.int64(0)
        # In a unit, whose last character ends at `last`; behind a sentence's mark, and marks that may follow it; that
        # mark needs no space after it; line breaks in the white space before i.
        inside, ended, alone, breaks = False, False, False, 0
        while i < end:
            code, width = np.int64(data[i]), 1
            if code >= 0x80:
                code, width = decode(data, i, end)
            flag = flags[code]
            if flag & SPACE:
                breaks += flag & BREAK > 0 and not (code == _LF and previous == _CR)
                closes = breaks >= 2 if mode == PARAGRAPH else breaks >= 1 or (mode == SENTENCE and ended)
            else:
                closes = alone and (flag & (TERMINAL | _CLOSES) == 0 or flag & OPENS_QUOTE > 0)
            if inside and closes:
                ends[units] = last
                units += 1
                inside = False
            if flag & SPACE == 0:
                if not inside:
                    starts[units] = i
                    inside, ended, alone = True, False, False
                breaks, last = 0, np.int64(i + width)
                if mode == SENTENCE and flag & TERMINAL:
                    ended = True
                    alone |= flag & ALONE > 0
                elif flag & _CLOSES == 0:
                    ended = alone = False
            previous = code
            i += width
        if inside:
            ends[units] = last
            units += 1
    row_starts[len(offsets) - 1] = units


@kernel
def find_words(data, offsets, pages, entries, starts, ends, row_starts):
    """Write the bytes where the words of each row begin and end; they are those that `hash_all_words` hashes, in order.

    `starts` and `ends` need a place for each byte, and one more.
    """
    words = 0
    for row in range(len(offsets) - 1):
        row_starts[row] = words
        i, end, inside = offsets[row], offsets[row + 1], False
        while i < end:
            code, width = decode(data, i, end)
            entry = entries[np.int64(pages[code >> 8]) << 8 | code & 255]
            alone = entry & _SPACELESS > 0
            if inside and (alone or entry & _WORD == 0):
                words += 1
                inside = False
            i += width
            if entry & _WORD:
                if not inside:
                    starts[words] = i - width
                ends[words] = i
                words += alone
                inside = not alone
        words += inside
    row_starts[len(offsets) - 1] = words


@kernel
def hash_units(words, word_starts, hashes, checks, counts):
    """Two 64-bit hashes of each unit's words in their order, and how many they are (uint32).

    The words of unit u are `words[word_starts[u]:word_starts[u + 1]]`.
    """
    for unit in range(len(word_starts) - 1):
        begin, end = word_starts[unit], word_starts[unit + 1]
        h = c = np.uint64(end - begin)
        for j in range(begin, end):
            h = h * BASE + words[j]
            c = c * _SECOND + words[j]
        hashes[unit], checks[unit], counts[unit] = finalize(h), finalize(c), end - begin


# Windows.


@kernel(inline="always")
def _power(base, exponent):
    made = np.uint64(1)
    for _ in range(exponent):
        made *= base
    return made


@kernel
def winnow(units, row_starts, size, short, anchors, firsts, anchor_starts):
    """Choose anchors of each row of units (Schleimer, Wilkerson, Aiken 2003): every window has one, equal windows have
    equal ones.

    The anchor of a window is the least hash of the `short` consecutive units (1 to `size`) that lie in it, the last
    of equal ones; so consecutive windows mostly share theirs. `anchors` gets each, `firsts` (uint32) the first window
    that has it: its windows end where those of the next anchor of the row begin. Both need a place for each unit.
    Those of row i are numbered from `anchor_starts[i]` on. Where `short` is `size`, every window is its own anchor.
    """
    high, span, count = _power(BASE, short), size - short + 1, 0
    ring = np.empty(span, np.uint64)  # the hashes of the runs in the present window; the oldest is in the next slot
    for row in range(len(row_starts) - 1):
        anchor_starts[row] = count
        begin, length = row_starts[row], row_starts[row + 1] - row_starts[row]
        if length < size:
            continue
        rolling, least, at, slot = np.uint64(0), NONE, -1, 0
        for i in range(length):
            rolling = rolling * BASE + units[begin + i]
            if i >= short:
                rolling -= high * units[begin + i - short]
            run = i - short + 1  # the first unit of the run that ends here
            if run < 0:
                continue
            value = finalize(rolling)
            ring[slot] = value
            slot = slot + 1 if slot + 1 < span else 0
            window = run - span + 1
            changed = False
            if value <= least:
                least, at, changed = value, run, True
            elif at < window:  # the least one has left: look for the least of the others, the last of equals
                least, at, changed = NONE, -1, True
                place = slot
                for k in range(span):  # from the oldest on
                    if ring[place] <= least:
                        least, at = ring[place], window + k
                    place = place + 1 if place + 1 < span else 0
            if window >= 0 and (changed or window == 0):
                anchors[count], firsts[count] = least, window
                count += 1
    anchor_starts[len(row_starts) - 1] = count


@kernel
def find_candidates(rows, firsts, anchor_starts, chosen, size, counts, unit_of, hashes, checks, weights):
    """Write to `counts` how many units of each row lie in windows with a chosen anchor (bool for each anchor).

    Of these units, where the other outputs are not empty: their number in the row to `unit_of` (int32), their words to
    `weights` (uint32), and to `hashes` and `checks` the two halves of the hash of the window that begins there, NONE
    where no window with a chosen anchor does.

    `rows` is `repeats.Units`; without checks of their own, units are words, and their hashes stand for them.
    `anchor_starts` are those of these rows in `firsts` and `chosen`, which have the anchors of all rows.
    """
    at, second = 0, rows.checks if len(rows.checks) else rows.hashes
    high, high_check = _power(BASE, size), _power(_SECOND, size)
    for row in range(len(anchor_starts) - 1):
        begin, covered, next_window, rolling, check = at, 0, -1, np.uint64(0), np.uint64(0)
        base, length = rows.row_starts[row], rows.row_starts[row + 1] - rows.row_starts[row]
        for a in range(anchor_starts[row], anchor_starts[row + 1]):
            if not chosen[a]:
                continue
            first = np.int64(firsts[a])
            end = np.int64(firsts[a + 1]) if a + 1 < anchor_starts[row + 1] else length - size + 1
            # `covered`: where the last window so far ends. Its units up to there were written one after another, so
            # unit u of this stretch has the place `at - (covered - u)`.
            fresh_units = max(first, covered)
            covered = max(covered, end - 1 + size)
            at += covered - fresh_units
            if len(unit_of) == 0:
                continue
            for unit in range(fresh_units, covered):
                place = at - (covered - unit)
                unit_of[place], hashes[place] = unit, NONE
                weights[place] = rows.words[base + unit] if len(rows.words) else 1
            for window in range(first, end):
                fresh = window != next_window  # else the hash of the window before it rolls on
                if fresh:
                    rolling = check = np.uint64(0)
                for k in range(window if fresh else window + size - 1, window + size):
                    rolling = rolling * BASE + rows.hashes[base + k]
                    check = check * _SECOND + second[base + k]
                if not fresh:
                    rolling -= high * rows.hashes[base + window - 1]
                    check -= high_check * second[base + window - 1]
                next_window = window + 1
                place = at - (covered - window)
                hashes[place], checks[place] = finalize(rolling), finalize(check)
        counts[row] = at - begin


@kernel
def divide(hashes, starts, order):
    """Divide values by the lowest bits of their hashes into parts that stay in the cache; returns the size of the
    largest one.

    Those of part p are `order[starts[p]:starts[p + 1]]`, in order; NONE is in no part. `starts` (0) int64: two more
    than there are parts, which are a power of two. `order` int64 (values,).
    """
    mask, largest = np.uint64(len(starts) - 3), 0
    for i in range(len(hashes)):
        if hashes[i] != NONE:
            starts[np.int64(hashes[i] & mask) + 2] += 1  # two behind the part: see below
    for part in range(2, len(starts)):
        largest = max(largest, starts[part])
        starts[part] += starts[part - 1]
    for i in range(len(hashes)):  # `starts[part + 1]` moves from the beginning of a part to its end
        if hashes[i] != NONE:
            own = np.int64(hashes[i] & mask) + 1
            order[starts[own]] = i
            starts[own] += 1
    return largest


@kernel
def number_equals(hashes, checks, starts, order, table, numbers):
    """Number the values that occur more than once, in `numbers` (-1); returns (how many there are, how many values are
    compared).

    A value is a hash with its check: together 128 bits. `starts` and `order` are those of `divide`; each part goes
    through a hash table of its own. `table` int64: scratch, twice as long as the largest part or longer, and a power of
    two.
    """
    count = 0
    for part in range(len(starts) - 2):
        slots = 4
        while slots < 2 * (starts[part + 1] - starts[part]):
            slots *= 2
        table[:slots] = -1
        for k in range(starts[part], starts[part + 1]):
            i = np.int64(order[k])
            at = np.int64(hashes[i] >> np.uint64(20)) & (slots - 1)
            first = table[at]
            while first >= 0 and (hashes[first] != hashes[i] or checks[first] != checks[i]):
                at = at + 1 if at + 1 < slots else 0
                first = table[at]
            if first < 0:
                table[at] = i
                continue
            if numbers[first] < 0:
                numbers[first] = count
                count += 1
            numbers[i] = numbers[first]
    return count, starts[len(starts) - 2]


# What stays. In what follows rows hold candidate units only: those of row i are `[row_starts[i], row_starts[i + 1])`,
# and the units of a window that is compared follow one another. `groups` numbers equal windows (-1: without an equal).


@kernel
def choose(row_starts, groups, weights, totals, size, min_left, share, settled, owner, found, dropped):
    """Process the rows from `settled` on, in order: a window is cut where an equal one begins earlier and stays whole.

    `weights` has the words of each candidate unit, `totals` those of each row. `owner` (one for each group, -1 where
    the first rows have none of it) becomes the row in which the window stays, `found` (one for each unit, -1 at first)
    the row that a cut unit stays in. A row that was cut and keeps fewer than `min_left` words is `dropped` and owns
    nothing.

    A window stays whole if none of its units is cut. No later window can cut into it once `size` units have passed: so
    of a passage that repeats itself at a shorter distance the first `size` units stay.

    With a `share` (numerator, denominator; at most 1000) above 0 nothing is cut: a row is dropped if more than that
    share of its words lies in windows of earlier rows that stay, and what it repeats of itself does not count.
    """
    cutting = share[0] == 0
    for row in range(settled, len(row_starts) - 1):
        begin, end = row_starts[row], row_starts[row + 1]
        marked, last_cut, cut = begin, begin - 1, np.int64(0)
        for i in range(begin, end + size):  # a window is known to stay whole when `size` units have passed
            if i - 1 >= begin and i - 1 < end and found[i - 1] >= 0:
                last_cut = i - 1
            whole = i - size
            own = cutting and begin <= whole and whole < end and last_cut < whole and groups[whole] >= 0
            if own and owner[groups[whole]] < 0:
                owner[groups[whole]] = row
            if i < end and groups[i] >= 0 and owner[groups[i]] >= 0:
                for k in range(max(i, marked), i + size):  # all of them in this row: i has a window
                    found[k] = owner[groups[i]]
                    cut += np.int64(weights[k])
                marked = max(marked, i + size)
        if cutting:
            dropped[row] = cut > 0 and totals[row] - cut < min_left
        else:
            dropped[row] = cut * share[1] > totals[row] * share[0]
        for i in range(begin, end):
            if cutting and dropped[row] and groups[i] >= 0 and owner[groups[i]] == row:
                owner[groups[i]] = -1
            elif not cutting and not dropped[row]:
                found[i] = -1
                if groups[i] >= 0 and owner[groups[i]] < 0:
                    owner[groups[i]] = row


# Cuts.


@kernel(inner=True)
def _cut_begin(data, low, high, flags):
    """Where a cut begins whose first unit begins at `high`, after a unit that stays and ends at `low`.

    Behind the last line break between them; else behind the first white space; else at an opening mark: what stands
    there belongs to the unit that it follows.
    """
    at_break, at_space, at_opening, i = -1, -1, -1, low
    while i < high:
        code, width = decode(data, i, high)
        if flags[code] & SPACE:
            if flags[code] & BREAK:
                at_break = i + width
            if at_space < 0:
                at_space = i + width
        elif flags[code] & _OPENS and at_opening < 0:
            at_opening = i
        i += width
    if at_break >= 0:
        return at_break
    if at_space >= 0:
        return at_space
    return at_opening if at_opening >= 0 else high


@kernel(inner=True)
def _cut_end(data, begin, low, high, flags):
    """Where a cut from `begin` on ends whose last unit ends at `low`, before a unit that stays and begins at `high`.

    Marks up to the next white space or opening mark go with it, but not a bracket that was opened before it.
    """
    depth, i = 0, begin
    while i < high:
        code, width = decode(data, i, high)
        depth += flags[code] & OPENS_BRACKET > 0
        if i >= low and flags[code] & (SPACE | _OPENS):
            return i
        if flags[code] & CLOSES_BRACKET:
            if i >= low and depth <= 0:
                return i
            depth -= 1
        i += width
    return high


@kernel(inner=True)
def _trim(data, begin, end, flags):
    """The bytes from `begin` to `end` without white space at both ends; (end, begin) where there is nothing else."""
    first, last, i = end, begin, begin
    while i < end:
        code, width = decode(data, i, end)
        if not flags[code] & SPACE:
            first, last = min(first, i), i + width
        i += width
    return first, last


@kernel(inner=True)
def _breaks_between(data, begin, end, flags):
    """(line breaks in a run of white space, the place after the last of them)."""
    breaks, behind, previous, i = 0, begin, 0, begin
    while i < end:
        code, width = decode(data, i, end)
        i += width
        if flags[code] & BREAK:
            breaks += not (code == _LF and previous == _CR)
            behind = i
        previous = code
    return breaks, behind


@kernel(inner=True)
def _range_to_cut(data, begin, end, starts, ends, first, stop, flags):
    """The bytes to cut for the units `first` to `stop` of a row, whose bytes are from `begin` to `end`.

    Marks go with the unit that they follow. Of the runs of white space on both sides, the one with more line breaks
    stays, so that paragraphs stay apart; the text after the cut keeps its own indentation.
    """
    at_begin, at_end = first == 0, stop == len(starts)
    before, behind = begin if at_begin else ends[first - 1], end if at_end else starts[stop]
    low = begin if at_begin else _cut_begin(data, before, starts[first], flags)
    high = end if at_end else _cut_end(data, low, ends[stop - 1], behind, flags)
    before, behind = _trim(data, before, low, flags)[1], _trim(data, high, behind, flags)[0]
    low, high = _trim(data, low, starts[first], flags)[0], _trim(data, ends[stop - 1], high, flags)[1]
    if at_end:
        return before, high
    breaks_before, indent_before = _breaks_between(data, before, low, flags)
    breaks_behind, indent_behind = _breaks_between(data, high, behind, flags)
    if breaks_behind == 0 and (at_begin or before < low):
        return low, behind
    if at_begin or breaks_before > breaks_behind:
        return indent_before, indent_behind
    return before, high


@kernel(inline="always")
def _copy(data, begin, end, out, at):
    for i in range(begin, end):
        out[at] = data[i]
        at += 1
    return at


@kernel
def cut_runs(data, offsets, flags, units, run_starts, firsts, ends, kept, kept_offsets, gone, gone_offsets, places):
    """Copy each row to `kept` without some runs of its units, and these to `gone`, one piece for each run.

    `units` are (starts, ends, row_starts). The runs of row i are numbered from `run_starts[i]` on: units `firsts[k]` up
    to `ends[k]`, in order, none empty. Both outputs have space for the bytes of all rows. `places` (runs) gets the byte
    of its row where each piece was: with the pieces put back there, the row is as it was.
    """
    at, gone_at = 0, 0
    for row in range(len(offsets) - 1):
        kept_offsets[row] = at
        begin, end = offsets[row], offsets[row + 1]
        starts = units[0][units[2][row] : units[2][row + 1]]
        stops = units[1][units[2][row] : units[2][row + 1]]
        copied, run = begin, run_starts[row]
        while run < run_starts[row + 1]:
            first = run  # runs that adjoin are cut at one time: between them there is nothing that stays
            while run + 1 < run_starts[row + 1] and firsts[run + 1] == ends[run]:
                run += 1
            low, high = _range_to_cut(data, begin, end, starts, stops, firsts[first], ends[run], flags)
            at = _copy(data, copied, low, kept, at)
            copied = high
            for k in range(first, run + 1):
                piece = low if k == first else starts[firsts[k]]
                places[k], gone_offsets[k] = piece - begin, gone_at
                gone_at = _copy(data, piece, high if k == run else starts[firsts[k + 1]], gone, gone_at)
            run += 1
        at = _copy(data, copied, end, kept, at)
    kept_offsets[len(offsets) - 1] = at
    gone_offsets[len(places)] = gone_at
