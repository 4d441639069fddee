"""Loops over the bytes of JSON and CSV. Arrays only; offsets count from the start of `data`."""

import numpy as np
from numba import njit

MORE, CLOSED, BROKEN = 0, 1, 2
_VALUE, _FIRST_VALUE, _KEY, _FIRST_KEY, _COLON, _AFTER = 0, 1, 2, 3, 4, 5
_QUOTE, _BACKSLASH, _NEWLINE = 34, 92, 10
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = 123, 125, 91, 93
_COMMA, _COLON_BYTE = 44, 58
_BLOCK = 64  # bytes looked at together: LLVM turns such loops into vector instructions


@njit(cache=True, nogil=True, inline="always")
def _is_space(c):  # type: ignore[no-untyped-def]
    return c == 32 or c == 10 or c == 13 or c == 9


@njit(cache=True, nogil=True, inline="always")
def _is_literal(c):  # type: ignore[no-untyped-def]
    letter = (65 <= c <= 90) or (97 <= c <= 122)
    return letter or (48 <= c <= 57) or c == 43 or c == 45 or c == 46


@njit(cache=True, nogil=True, inline="always")
def _has_newline(block):  # type: ignore[no-untyped-def]
    found = False
    for k in range(_BLOCK):
        found |= block[k] == _NEWLINE
    return found


@njit(cache=True, nogil=True)
def _string_end(data, i, end):  # type: ignore[no-untyped-def]
    """One past the quote that closes the string whose first byte after the quote is at i; -1 where none does.

    -2 - j where a raw new line at j, which no JSON string may hold, stands before it.
    """
    while i < end:
        c = data[i]
        if c == _QUOTE:
            return i + 1
        if c == _NEWLINE:
            return -2 - i
        i += 2 if c == _BACKSLASH else 1
    return -1


@njit(cache=True, nogil=True)
def lines(data, skip_blank, starts, stops, numbers):  # type: ignore[no-untyped-def]
    """Where the lines of `data` start and stop, without the white space around; numbers count blank ones.

    Returns how many. The arrays (int64) have room for one line more than there are new lines.
    """
    found, start, end = 0, 0, len(data)
    for number in range(len(starts)):
        stop = start
        while stop + _BLOCK <= end and not _has_newline(data[stop : stop + _BLOCK]):
            stop += _BLOCK
        while stop < end and data[stop] != _NEWLINE:
            stop += 1
        first, last = start, stop
        if skip_blank:
            while first < last and _is_space(data[first]):
                first += 1
            while last > first and _is_space(data[last - 1]):
                last -= 1
        if first < last:
            starts[found], stops[found], numbers[found] = first, last, number
            found += 1
        start = stop + 1
    return found


@njit(cache=True, nogil=True, inline="always")
def key_hash(data, start, stop):  # type: ignore[no-untyped-def]
    """FNV-1a of a key's bytes."""
    code = np.uint64(14695981039346656037)
    for k in range(start, stop):
        code = (code ^ np.uint64(data[k])) * np.uint64(1099511628211)
    return code


@njit(cache=True, nogil=True)
def members(data, starts, stops, first, repeated, spans, hashes):  # type: ignore[no-untyped-def]
    """Where the members of each record's outermost object stand.

    Record r gets the rows `first[r]:first[r + 1]` of `spans`, each (key start, key stop, value start, value stop), the
    key without its quotes; `repeated[r]` if two of its keys are the same bytes. What is not an object has no members,
    and a broken one those before the break: parsing decides what is valid. `spans` int64 (n, 4) and `hashes` uint64
    (n,), which is room to work in, hold one for each five bytes of a record and one more.
    """
    n = 0
    first[0] = 0
    for r in range(len(starts)):
        begin = n
        i, end = starts[r], stops[r]
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
                stop = _value_end(data, i, end)
                if stop <= i:
                    break
                spans[n, 2], spans[n, 3] = i, stop
                hashes[n] = key_hash(data, spans[n, 0], spans[n, 1])
                i = stop
                n += 1
        first[r + 1] = n
        repeated[r] = has_equal(hashes[begin:n])


@njit(cache=True, nogil=True)
def has_equal(hashes):  # type: ignore[no-untyped-def]
    """Whether two of the hashes are equal; pairwise where there are few, by sorting (in place) where that is slow."""
    if len(hashes) > 32:
        _heap_sort(hashes)
        equal = False
        for i in range(1, len(hashes)):
            equal |= hashes[i] == hashes[i - 1]
        return equal
    for i in range(len(hashes)):
        for j in range(i):
            if hashes[i] == hashes[j]:
                return True
    return False


@njit(cache=True, nogil=True)
def _heap_sort(values):  # type: ignore[no-untyped-def]
    """Sort in place without asking for memory (Williams, 1964), ascending."""
    for begin in range(len(values) // 2 - 1, -1, -1):
        _sift_down(values, begin, len(values))
    for end in range(len(values) - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        _sift_down(values, 0, end)


@njit(cache=True, nogil=True)
def _sift_down(values, at, end):  # type: ignore[no-untyped-def]
    while 2 * at + 1 < end:
        child = 2 * at + 1
        if child + 1 < end and values[child] < values[child + 1]:
            child += 1
        if values[at] >= values[child]:
            return
        values[at], values[child] = values[child], values[at]
        at = child


@njit(cache=True, nogil=True)
def _value_end(data, i, end):  # type: ignore[no-untyped-def]
    """One past the value that begins at i: a string, a bracketed value, or a run of literal characters."""
    if i >= end:
        return i
    if data[i] == _QUOTE:
        return _string_end(data, i + 1, end)
    if data[i] != _OPEN_BRACE and data[i] != _OPEN_BRACKET:
        while i < end and _is_literal(data[i]):
            i += 1
        return i
    depth = 0
    while i < end:
        c = data[i]
        if c == _QUOTE:
            i = _string_end(data, i + 1, end)
            if i < 0:
                return -1
            continue
        if c in (_OPEN_BRACE, _OPEN_BRACKET):
            depth += 1
        elif c in (_CLOSE_BRACE, _CLOSE_BRACKET):
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    return -1


@njit(cache=True, nogil=True)
def values(data, pos, in_array, spans):  # type: ignore[no-untyped-def]
    """Scan JSON values that follow one another, as elements of an array (`in_array`) or with white space between.

    Fills `spans` (capacity, 3) with (start, stop, new lines before the start) of complete values. Returns (count,
    pos, new lines, status): pos is where to go on, at the start of an unfinished value; status MORE (the bytes or the
    capacity ended), CLOSED (the array's bracket, pos is past it) or BROKEN (the value at pos is no JSON).
    """
    end, count, newlines = len(data), 0, 0
    i = pos
    while count < len(spans):
        while i < end and (_is_space(data[i]) or (in_array and data[i] == _COMMA)):
            newlines += data[i] == _NEWLINE
            i += 1
        if i >= end:
            return count, i, newlines, MORE
        if in_array and data[i] == _CLOSE_BRACKET:
            return count, i + 1, newlines, CLOSED
        stop, inner = _check_value(data, i, end)
        if stop == -1:
            return count, i, newlines, MORE
        if stop == -2:
            return count, i, newlines, BROKEN
        spans[count, 0], spans[count, 1], spans[count, 2] = i, stop, newlines
        count += 1
        newlines += inner
        i = stop
    return count, i, newlines, MORE


@njit(cache=True, nogil=True)
def _check_value(data, start, end):  # type: ignore[no-untyped-def]
    """(stop, new lines inside) of the value at start; stop -1 if the bytes end in it, -2 if it is no JSON.

    A grammar check, so that a forgotten brace or quote is seen where it happens. Objects and arrays are told apart for
    the innermost 64 levels only.
    """
    i, newlines, depth, kinds, state = start, 0, 0, np.uint64(0), _VALUE
    one = np.uint64(1)
    while i < end:
        c = data[i]
        if _is_space(c):
            newlines += c == _NEWLINE
            i += 1
            continue
        in_object = (kinds & one) == one and depth > 0
        if c == _QUOTE:
            stop = _string_end(data, i + 1, end)
            if stop == -1:
                return -1, newlines
            if stop < -1 or state in (_COLON, _AFTER):
                return -2, newlines
            i = stop
            state = _COLON if state in (_KEY, _FIRST_KEY) else _AFTER
        elif c in (_OPEN_BRACE, _OPEN_BRACKET):
            if state != _VALUE and state != _FIRST_VALUE:
                return -2, newlines
            depth += 1
            kinds = kinds << one | np.uint64(c == _OPEN_BRACE)
            state = _FIRST_KEY if c == _OPEN_BRACE else _FIRST_VALUE
            i += 1
        elif c in (_CLOSE_BRACE, _CLOSE_BRACKET):
            closes = state == _AFTER or state == (_FIRST_KEY if c == _CLOSE_BRACE else _FIRST_VALUE)
            if depth == 0 or not closes or (depth <= 64 and in_object != (c == _CLOSE_BRACE)):
                return -2, newlines
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
                return -1, newlines
            state = _AFTER
        else:
            return -2, newlines
        if depth == 0 and state == _AFTER:
            return i, newlines
    return -1, newlines


@njit(cache=True, nogil=True)
def csv_records(data, start, at_end, delimiter, room):  # type: ignore[no-untyped-def]
    """Records of CSV (RFC 4180): a quote opens a field only at its beginning, and "" inside stands for one quote.

    Returns (starts, stops, lines, pos, newlines): records without their line ends and the new lines before each;
    blank lines are none. Stops after the first record that ends at or past `room`, or where the bytes end: with
    `at_end` what is left is a record, else pos is where it begins.
    """
    capacity = 16
    for c in data:
        capacity += c == _NEWLINE
    starts, stops, numbers = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    end, found, newlines = len(data), 0, 0
    begin, i, before = start, start, 0
    quoted, field_start = False, True
    while i <= end:
        if i == end and (not at_end or quoted):
            break
        c = data[i] if i < end else _NEWLINE
        if quoted:
            newlines += c == _NEWLINE
            if c == _QUOTE:
                if i + 1 < end and data[i + 1] == _QUOTE:
                    i += 1
                else:
                    quoted = False
        elif c == _NEWLINE:
            stop = i - 1 if i > begin and data[i - 1] == 13 else i
            if stop > begin:
                starts[found], stops[found], numbers[found] = begin, stop, before
                found += 1
            newlines += i < end
            begin, before, field_start = min(i + 1, end), newlines, True
            if begin >= room:
                break
        else:
            quoted = c == _QUOTE and field_start
            field_start = c == delimiter
        i += 1
    return starts[:found], stops[:found], numbers[:found], begin, before
