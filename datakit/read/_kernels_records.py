"""Where JSON records, and the members of their objects, start and stop. All offsets count from the start of `data`.

A value is a string, a bracket with all up to the one that closes it, or a run of other characters. Whether it is JSON
is for the parser to say, so a value that is not, and whose quotes and brackets are in order, costs itself alone.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

FOUND, MORE, CLOSED = 0, 1, 2
_QUOTE, _BACKSLASH, _COMMA, _COLON = 34, 92, 44, 58
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = 123, 125, 91, 93


@kernel(inline="always")
def _is_space(c):
    return c == 32 or c == 10 or c == 13 or c == 9


@kernel(inline="always")
def _ends_word(c):
    return _is_space(c) or c in (_COMMA, _CLOSE_BRACE, _CLOSE_BRACKET)


@kernel(inline="always")
def _past(data, i, end, between):
    """The first byte from i on that is neither white space nor `between`."""
    while i < end and (_is_space(data[i]) or data[i] == between):
        i += 1
    return i


@kernel
def _string_end(data, i, end):
    """One past the closing quote of the string whose first byte after the opening quote is at i; -1 without one."""
    while i < end:
        c = data[i]
        if c == _QUOTE:
            return i + 1
        i += 2 if c == _BACKSLASH else 1
    return -1


@kernel
def members(data, starts, stops):
    """The members of the outermost object of each record `data[starts[r]:stops[r]]`.

    Returns (first, spans), int64: record r has the rows `first[r]:first[r + 1]` of `spans`, each (key start, key stop,
    value start, value stop), the key without its quotes. A record that is no object has no members, and a broken one
    has those before the break.
    """
    capacity = len(starts)
    for r in range(len(starts)):
        capacity += (stops[r] - starts[r]) // 5  # the shortest member, `"":0,`; the last one has no comma
    first, spans = np.empty(len(starts) + 1, np.int64), np.empty((capacity, 4), np.int64)
    n = 0
    first[0] = 0
    for r in range(len(starts)):
        end = stops[r]
        i = _past(data, starts[r], end, 32)
        before = _OPEN_BRACE  # what stands before a key
        while i < end and data[i] == before:
            i = _past(data, i + 1, end, 32)
            if i >= end or data[i] != _QUOTE:
                break
            key_stop = _string_end(data, i + 1, end)
            colon = _past(data, key_stop, end, 32)
            if key_stop < 0 or colon >= end or data[colon] != _COLON:
                break
            start = _past(data, colon + 1, end, 32)
            stop = _value_end(data, start, end)
            if stop <= start:
                break
            spans[n, 0], spans[n, 1], spans[n, 2], spans[n, 3] = i + 1, key_stop - 1, start, stop
            n += 1
            i, before = _past(data, stop, end, 32), _COMMA
        first[r + 1] = n
    return first, spans[:n]


@kernel
def next_value(data, i, in_array):
    """(start, stop, status) of the next value from i on: an element of an array, or what follows white space.

    FOUND: `data[start:stop]` is the value. CLOSED: the array's bracket was found, `stop` is after it. MORE: the bytes
    end inside of the value, or before one begins.
    """
    end = len(data)
    i = _past(data, i, end, _COMMA)
    if i < end and in_array and data[i] == _CLOSE_BRACKET:
        return i, i + 1, CLOSED
    stop = _value_end(data, i, end)
    return i, stop, FOUND if stop > 0 else MORE


@kernel
def _value_end(data, i, end):
    """One past the value at i; -1 if the bytes end inside of it. A closing bracket that nothing opened is a value."""
    depth = 0
    while i < end:
        c = data[i]
        i += 1
        if c == _QUOTE:
            i = _string_end(data, i, end)
            if i < 0:
                return -1
        elif c in (_OPEN_BRACE, _OPEN_BRACKET):
            depth += 1
        elif c in (_CLOSE_BRACE, _CLOSE_BRACKET):
            depth -= 1
        elif depth == 0:
            while i < end and not _ends_word(data[i]):
                i += 1
            if i == end:
                return -1
        if depth <= 0:
            return i
    return -1
