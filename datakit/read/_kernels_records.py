"""Where JSON records, and the members of their objects, start and stop. All offsets count from the start of `data`."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

FOUND, MORE, CLOSED, BROKEN = 0, 1, 2, 3
_VALUE, _FIRST_VALUE, _KEY, _FIRST_KEY, _COLON, _AFTER = 0, 1, 2, 3, 4, 5
_QUOTE, _BACKSLASH, _NEWLINE = 34, 92, 10
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = 123, 125, 91, 93
_COMMA, _COLON_BYTE = 44, 58


@kernel(inline="always")
def _is_space(c):
    return c == 32 or c == 10 or c == 13 or c == 9


@kernel(inline="always")
def _is_literal(c):
    letter = (65 <= c <= 90) or (97 <= c <= 122)
    return letter or (48 <= c <= 57) or c == 43 or c == 45 or c == 46


@kernel
def _string_end(data, i, end):
    """One past the closing quote of the string whose first byte after the opening quote is at i.

    -1 if the string does not end; -2 - j if there is a raw new line at j, which a JSON string may not hold.
    """
    while i < end:
        c = data[i]
        if c == _QUOTE:
            return i + 1
        if c == _NEWLINE:
            return -2 - i
        i += 2 if c == _BACKSLASH else 1
    return -1


@kernel
def members(data, starts, stops):
    """The members of the outermost object of each record `data[starts[r]:stops[r]]`.

    Returns (first, spans), int64: record r has the rows `first[r]:first[r + 1]` of `spans`, each (key start, key stop,
    value start, value stop), the key without its quotes. A record that is no object has no members, and a broken one
    has those before the break: whether a record is valid is decided by the parser.
    """
    capacity = len(starts)
    for r in range(len(starts)):
        capacity += (stops[r] - starts[r]) // 5  # the shortest member, `"":0,`
    first, spans = np.empty(len(starts) + 1, np.int64), np.empty((capacity, 4), np.int64)
    n = 0
    first[0] = 0
    for r in range(len(starts)):
        i, end = starts[r], stops[r]
        while i < end and _is_space(data[i]):
            i += 1
        if i < end and data[i] == _OPEN_BRACE:
            i += 1
            while True:
                while i < end and (_is_space(data[i]) or data[i] == _COMMA):
                    i += 1
                if i >= end or data[i] != _QUOTE:
                    break
                key_stop = _string_end(data, i + 1, end)
                if key_stop < 0:
                    break
                spans[n, 0], spans[n, 1] = i + 1, key_stop - 1
                i = key_stop
                while i < end and (_is_space(data[i]) or data[i] == _COLON_BYTE):
                    i += 1
                stop = _checked_end(data, i, end)
                if stop <= i:
                    break
                spans[n, 2], spans[n, 3] = i, stop
                i = stop
                n += 1
        first[r + 1] = n
    return first, spans[:n]


@kernel
def next_value(data, i, in_array):
    """(start, stop, status) of the next JSON value from i on: an element of an array, or what follows white space.

    FOUND: `data[start:stop]` is the value. CLOSED: the array's bracket was found, `stop` is after it. MORE: the bytes
    end inside of the value, or before one begins. BROKEN: what begins at `start` is not JSON.
    """
    end = len(data)
    while i < end and (_is_space(data[i]) or (in_array and data[i] == _COMMA)):
        i += 1
    if i >= end:
        return i, i, MORE
    if in_array and data[i] == _CLOSE_BRACKET:
        return i, i + 1, CLOSED
    stop = _checked_end(data, i, end)
    if stop < 0:
        return i, i, MORE if stop == -1 else BROKEN
    return i, stop, FOUND


@kernel
def _checked_end(data, i, end):
    """One past the value at i; -1 if the bytes end inside of it, -2 if it is not JSON.

    Checks the grammar, so that a missing brace or quote is noticed where it is missing. `kinds` has a bit for each open
    bracket, the innermost lowest: 1 for an object. So whether a closing bracket matches its opening one is checked in
    the innermost 64 levels only.
    """
    depth, kinds, state, one = 0, np.uint64(0), _VALUE, np.uint64(1)
    while i < end:
        c = data[i]
        if _is_space(c):
            i += 1
            continue
        in_object = (kinds & one) == one and depth > 0
        if c == _QUOTE:
            stop = _string_end(data, i + 1, end)
            if stop == -1:
                return -1
            if stop < -1 or state in (_COLON, _AFTER):
                return -2
            i = stop
            state = _COLON if state in (_KEY, _FIRST_KEY) else _AFTER
        elif c in (_OPEN_BRACE, _OPEN_BRACKET):
            if state != _VALUE and state != _FIRST_VALUE:
                return -2
            depth += 1
            kinds = kinds << one | np.uint64(c == _OPEN_BRACE)
            state = _FIRST_KEY if c == _OPEN_BRACE else _FIRST_VALUE
            i += 1
        elif c in (_CLOSE_BRACE, _CLOSE_BRACKET):
            closes = state == _AFTER or state == (_FIRST_KEY if c == _CLOSE_BRACE else _FIRST_VALUE)
            if depth == 0 or not closes or (depth <= 64 and in_object != (c == _CLOSE_BRACE)):
                return -2
            depth -= 1
            kinds = kinds >> one
            state = _AFTER
            i += 1
        elif c == _COLON_BYTE and state == _COLON:
            state = _VALUE
            i += 1
        elif c == _COMMA and state == _AFTER and depth > 0:
            state = _KEY if in_object else _VALUE
            i += 1
        elif _is_literal(c) and (state in (_VALUE, _FIRST_VALUE)):
            while i < end and _is_literal(data[i]):
                i += 1
            if i >= end:
                return -1
            state = _AFTER
        else:
            return -2
        if depth == 0 and state == _AFTER:
            return i
    return -1
