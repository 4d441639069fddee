"""Passages that occur again: where words lie, winnowed anchors, hashes of windows, and which tokens are cut.

Texts are (data uint8, offsets int64), as `string_buffers` gives them. A window is `size` consecutive tokens; window
i of a row begins with its token i.
"""

import numpy as np

from datakit.dedup._kernels_minhash import BASE, NONE, finalize
from datakit.dedup._kernels_repeats import BREAK, SPACE
from datakit.kernels import kernel
from datakit.text._kernels_text import decode

_WORD, _SPACELESS = 1, 2  # words.WORD, words.SPACELESS
# What a mark is: it belongs to the word after it; it opens or closes a bracket.
OPENING, OPENS_BRACKET, CLOSES_BRACKET = 1, 2, 4
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def word_bounds(data, offsets, pages, entries, starts, ends, row_starts):  # type: ignore[no-untyped-def]
    """Write the bytes where the words of each row begin and end; those of row i are numbered from `row_starts[i]` on.

    `starts` and `ends` (int64) need a place for each byte. The words are those that `hash_words` hashes.
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
                ends[words] = i
                words += 1
                inside = False
            if entry & _WORD and not inside:
                starts[words] = i
                inside = True
            i += width
            if alone and inside:
                ends[words] = i
                words += 1
                inside = False
        if inside:
            ends[words] = end
            words += 1
    row_starts[len(offsets) - 1] = words


@kernel
def winnow(words, row_starts, size, short, hashes, firsts, anchor_starts):  # type: ignore[no-untyped-def]
    """Choose anchors of each row of `words` (uint32): every window has one, equal windows equal ones at the same place.

    The anchor of a window is the least hash of the `short` consecutive tokens (at most `size`) that lie in it, the last
    of equal ones. Consecutive windows mostly share theirs. `hashes` gets each anchor, `firsts` (uint32) the first
    window that has it: its windows end where those of the next anchor of the row begin. Both need a place for each
    token. Those of row i are numbered from `anchor_starts[i]` on.
    """
    high = np.uint64(1)
    for _ in range(short):
        high *= BASE
    span, count = size - short + 1, 0
    ring = np.empty(span, np.uint64)
    for row in range(len(row_starts) - 1):
        anchor_starts[row] = count
        begin, tokens = row_starts[row], row_starts[row + 1] - row_starts[row]
        if tokens < size:
            continue
        rolling, least, at = np.uint64(0), _EMPTY, -1
        slot = 0
        for i in range(tokens):
            rolling = rolling * BASE + np.uint64(words[begin + i])
            if i >= short:
                rolling -= high * np.uint64(words[begin + i - short])
            gram = i - short + 1  # the first token of the run that ends here
            if gram < 0:
                continue
            value = finalize(rolling)
            ring[slot] = value
            slot = slot + 1 if slot + 1 < span else 0
            window = gram - span + 1
            changed = False
            if value <= least:
                least, at, changed = value, gram, True
            elif at < window:  # the least one has left: look for the least of those that are left, the last of equals
                least, at, changed = _EMPTY, -1, True
                place = slot
                for k in range(span):  # from the oldest on
                    if ring[place] <= least:
                        least, at = ring[place], window + k
                    place = place + 1 if place + 1 < span else 0
            if window < 0:
                continue
            if changed or window == 0:
                hashes[count], firsts[count] = least, window
                count += 1
    anchor_starts[len(row_starts) - 1] = count


@kernel
def count_candidates(anchor_starts, firsts, chosen, tokens, size, out):  # type: ignore[no-untyped-def]
    """Write to `out` how many tokens of each row lie in windows with a chosen anchor (bool for each anchor)."""
    for row in range(len(anchor_starts) - 1):
        total, covered = 0, 0
        for a in range(anchor_starts[row], anchor_starts[row + 1]):
            if chosen[a]:
                first = np.int64(firsts[a])
                end = np.int64(firsts[a + 1]) if a + 1 < anchor_starts[row + 1] else tokens[row] - size + 1
                total += max(end - 1 + size - max(first, covered), 0)
                covered = max(covered, end - 1 + size)
        out[row] = total


@kernel
def hash_candidates(anchor_starts, firsts, chosen, tokens, words, word_starts, size, token_of, hashes):  # type: ignore[no-untyped-def]
    """For the tokens that `count_candidates` counts: their number in the row to `token_of` (int32), and to `hashes`
    the hash of the window that begins there, NONE where no window with a chosen anchor does.
    """
    at = 0
    high = np.uint64(1)
    for _ in range(size):
        high *= BASE
    for row in range(len(anchor_starts) - 1):
        covered, rolling, next_window = 0, np.uint64(0), -1
        base = word_starts[row]
        for a in range(anchor_starts[row], anchor_starts[row + 1]):
            if not chosen[a]:
                continue
            first = np.int64(firsts[a])
            end = np.int64(firsts[a + 1]) if a + 1 < anchor_starts[row + 1] else tokens[row] - size + 1
            token = first if first > covered else covered
            while token < end - 1 + size:
                token_of[at], hashes[at] = token, NONE
                token, at = token + 1, at + 1
            covered = max(covered, end - 1 + size)
            for window in range(first, end):
                if window != next_window:
                    rolling = np.uint64(0)
                    for k in range(size):
                        rolling = rolling * BASE + np.uint64(words[base + window + k])
                else:
                    rolling = rolling * BASE + np.uint64(words[base + window + size - 1])
                    rolling -= high * np.uint64(words[base + window - 1])
                next_window = window + 1
                hashes[at - (covered - window)] = finalize(rolling)


@kernel
def choose(row_starts, tokens, groups, size, min_left, settled, owner, found, dropped):  # type: ignore[no-untyped-def]
    """Process the rows in order: a window is cut where an equal one begins earlier and stays whole.

    The tokens of row i that may be cut are `[row_starts[i], row_starts[i + 1])`; `tokens` says how many the row has.
    `groups` numbers equal windows (-1: no equal one). `owner` (one for each group, -1 at first) becomes the row in
    which the window stays, `found` (one for each token, -1 at first) the row that a cut token stays in. A row that was
    cut and keeps fewer than `min_left` tokens is `dropped` and owns nothing.
    Of the first `settled` rows nothing is cut; `settle` has made them owners.

    A window stays whole if none of its tokens is cut. No later window can cut into it once `size` tokens have passed:
    so of a passage that repeats itself at a shorter distance the first `size` tokens stay.
    """
    for row in range(settled, len(row_starts) - 1):
        begin, end = row_starts[row], row_starts[row + 1]
        marked, last_cut, cuts = begin, begin - 1, 0
        for i in range(begin, end + size):
            if i - 1 >= begin and i - 1 < end and found[i - 1] != -1:
                last_cut = i - 1
            whole = i - size
            if begin <= whole and whole < end and groups[whole] >= 0 and last_cut < whole and owner[groups[whole]] < 0:
                owner[groups[whole]] = row
            if i < end and groups[i] >= 0 and owner[groups[i]] >= 0:
                for k in range(max(i, marked), i + size):
                    found[k] = owner[groups[i]]
                    cuts += 1
                marked = max(marked, i + size)
        dropped[row] = cuts > 0 and tokens[row] - cuts < min_left
        if dropped[row]:
            for i in range(begin, end):
                if groups[i] >= 0 and owner[groups[i]] == row:
                    owner[groups[i]] = -1


@kernel
def count_runs(row_starts, token_of, found, out):  # type: ignore[no-untyped-def]
    """Write to `out` how many runs of cut tokens each row has: consecutive tokens that stay in the same row."""
    for row in range(len(row_starts) - 1):
        runs = 0
        for i in range(row_starts[row], row_starts[row + 1]):
            runs += found[i] >= 0 and not _continues(i, row_starts[row], token_of, found)
        out[row] = runs


@kernel(inline="always")
def _continues(i, begin, token_of, found):  # type: ignore[no-untyped-def]
    return i > begin and found[i - 1] == found[i] and token_of[i - 1] + 1 == token_of[i]


@kernel
def write_runs(row_starts, token_of, found, firsts, ends, owners):  # type: ignore[no-untyped-def]
    """Write the first token, the end and the owner of each run that `count_runs` counts."""
    at = -1
    for row in range(len(row_starts) - 1):
        for i in range(row_starts[row], row_starts[row + 1]):
            if found[i] < 0:
                continue
            if not _continues(i, row_starts[row], token_of, found):
                at += 1
                firsts[at], owners[at] = token_of[i], found[i]
            ends[at] = token_of[i] + 1


@kernel
def _cut_begin(data, low, high, flags, marks):  # type: ignore[no-untyped-def]
    """Where a cut begins whose first word begins at `high`, after a word that stays and ends at `low`.

    Behind the last line break between them; else behind the first white space; else at an opening mark.
    """
    at_break, at_space, at_opening, i = -1, -1, -1, low
    while i < high:
        code, width = decode(data, i, high)
        if flags[code] & SPACE:
            if flags[code] & BREAK:
                at_break = i + width
            if at_space < 0:
                at_space = i + width
        elif marks[code] & OPENING and at_opening < 0:
            at_opening = i
        i += width
    if at_break >= 0:
        return at_break
    if at_space >= 0:
        return at_space
    return at_opening if at_opening >= 0 else high


@kernel
def _cut_end(data, begin, low, high, flags, marks):  # type: ignore[no-untyped-def]
    """Where a cut from `begin` on ends whose last word ends at `low`, before a word that stays and begins at `high`.

    Marks up to the next white space or opening mark go with it, but not a bracket that was opened before it.
    """
    depth, i = 0, begin
    while i < high:
        code, width = decode(data, i, high)
        depth += marks[code] & OPENS_BRACKET > 0
        if i >= low and (flags[code] & SPACE or marks[code] & OPENING):
            return i
        if marks[code] & CLOSES_BRACKET:
            if i >= low and depth <= 0:
                return i
            depth -= 1
        i += width
    return high


@kernel
def _trim(data, begin, end, flags):  # type: ignore[no-untyped-def]
    """The bytes from `begin` to `end` without white space at both ends."""
    first, last, i = end, begin, begin
    while i < end:
        code, width = decode(data, i, end)
        if not flags[code] & SPACE:
            first, last = min(first, i), i + width
        i += width
    return first, max(last, first)


@kernel
def units_around(data, offsets, flags, marks, bounds, run_starts, firsts, ends, starts, stops, row_starts, cut):  # type: ignore[no-untyped-def]
    """Divide each row into what is cut and what stays, as units for `cut_units`, trimmed of white space.

    `bounds` are (starts, ends, row_starts) of words. The runs of row i are numbered from `run_starts[i]` on; `firsts`
    and `ends` are tokens. Consecutive runs are units of their own. `starts`, `stops` and `cut` need three places for
    each run, and one for each row.
    """
    word_starts, word_ends, first_word = bounds
    count = 0
    for row in range(len(offsets) - 1):
        row_starts[row] = count
        base, words, done = first_word[row], first_word[row + 1] - first_word[row], offsets[row]
        for run in range(run_starts[row], run_starts[row + 1]):
            a, b = firsts[run], ends[run]
            joined = run > run_starts[row] and ends[run - 1] == a
            if joined:
                begin = done
            elif a == 0:
                begin = offsets[row]
            else:
                begin = _cut_begin(data, word_ends[base + a - 1], word_starts[base + a], flags, marks)
            if run + 1 < run_starts[row + 1] and firsts[run + 1] == b:
                end = word_starts[base + b]
            elif b == words:
                end = offsets[row + 1]
            else:
                end = _cut_end(data, begin, word_ends[base + b - 1], word_starts[base + b], flags, marks)
            first, last = _trim(data, done, begin, flags)
            if last > first:
                starts[count], stops[count], cut[count] = first, last, False
                count += 1
            starts[count], stops[count] = _trim(data, begin, end, flags)
            cut[count] = True
            count += 1
            done = end
        first, last = _trim(data, done, offsets[row + 1], flags)
        if last > first:
            starts[count], stops[count], cut[count] = first, last, False
            count += 1
    row_starts[len(offsets) - 1] = count
