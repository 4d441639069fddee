"""Loops over records of JSON Lines that hold a text and little else. Arrays only; offsets count from `data`'s start.

What is taken here is what a parser would take, and nothing that parsers differ about: any doubt leaves a record to one.
"""

import numpy as np
from numba import njit

from datakit.read._kernels_records import has_equal, key_hash
from datakit.text._kernels_words import encode

_WORD = 8  # bytes looked at together
_ONES, _HIGH, _SPACES = (np.uint64(0x0101010101010101 * n) for n in (1, 0x80, 0x20))
_QUOTES, _BACKSLASHES = (np.uint64(0x0101010101010101 * n) for n in (0x22, 0x5C))
_QUOTE, _BACKSLASH, _COLON, _COMMA = 34, 92, 58, 44
_OPEN_BRACE, _CLOSE_BRACE = 123, 125
_ESCAPED = np.zeros(256, np.uint8)  # what stands for what after a backslash
_ESCAPED[np.frombuffer(b'"\\/bfnrt', np.uint8)] = np.frombuffer(b'"\\/\b\f\n\r\t', np.uint8)
_DIGITS = 18  # of a number: any such is exact, or kept as it is written


@njit(cache=True, nogil=True, inline="always")
def _skip_space(data, i, end):  # type: ignore[no-untyped-def]
    while i < end and (data[i] == 32 or data[i] == 9 or data[i] == 13):
        i += 1
    return i


@njit(cache=True, nogil=True, inline="always")
def _plain(block, out):  # type: ignore[no-untyped-def]
    """Copy eight bytes; returns how many of them stand for themselves in a JSON string before one that may not."""
    word = np.uint64(0)
    for k in range(_WORD):  # LLVM makes one load of it, and one store of the copies
        word |= np.uint64(block[k]) << np.uint64(8 * k)
    for k in range(_WORD):
        out[k] = block[k]
    quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
    zeros = (quote - _ONES) & ~quote | (backslash - _ONES) & ~backslash | (word - _SPACES) & ~word
    other = (zeros | word) & _HIGH  # the high bit of each byte that is one of those; the lowest is no false alarm
    if other == 0:
        return _WORD
    n = 0
    while other & np.uint64(0x80) == 0:
        other >>= np.uint64(8)
        n += 1
    return n


@njit(cache=True, nogil=True, inline="always")
def _hex(data, i, end):  # type: ignore[no-untyped-def]
    """The number that four hexadecimal digits at i stand for; -1 where there are none."""
    if i + 4 > end:
        return np.int64(-1)
    found = np.int64(0)
    for k in range(4):
        c = np.int64(data[i + k])
        low = c | 0x20
        if 48 <= c <= 57:
            found = found << 4 | (c - 48)
        elif 97 <= low <= 102:
            found = found << 4 | (low - 87)
        else:
            return np.int64(-1)
    return found


@njit(cache=True, nogil=True, inline="always")
def _character(data, i, end):  # type: ignore[no-untyped-def]
    """Bytes of the UTF-8 character (beyond ASCII) at i; 0 where there is none (Unicode 3.9, table 3-7)."""
    lead = data[i]
    second = data[i + 1] if i + 1 < end else np.uint8(0)
    size = 0
    if 0xC2 <= lead <= 0xDF:
        size = 2 if 0x80 <= second <= 0xBF else 0
    elif 0xE0 <= lead <= 0xEF:
        low, high = (0xA0 if lead == 0xE0 else 0x80), (0x9F if lead == 0xED else 0xBF)
        size = 3 if low <= second <= high else 0
    elif 0xF0 <= lead <= 0xF4:
        low, high = (0x90 if lead == 0xF0 else 0x80), (0x8F if lead == 0xF4 else 0xBF)
        size = 4 if low <= second <= high else 0
    if i + size > end:
        return 0
    for k in range(2, size):
        if data[i + k] & 0xC0 != 0x80:
            return 0
    return size


@njit(cache=True, nogil=True)
def _escape(data, i, end, out, at):  # type: ignore[no-untyped-def]
    """Write what the escape at i stands for; returns (one past it, one past what was written), -1 if it is none."""
    c = data[i + 1] if i + 1 < end else np.uint8(0)
    if _ESCAPED[c]:
        out[at] = _ESCAPED[c]
        return i + 2, at + 1
    code = _hex(data, i + 2, end) if c == 117 else np.int64(-1)
    size = 6
    if 0xD800 <= code <= 0xDBFF:  # the first half of a pair
        other = np.int64(-1)
        if i + 8 <= end and data[i + 6] == _BACKSLASH and data[i + 7] == 117:
            other = _hex(data, i + 8, end)
        code = 0x10000 + ((code - 0xD800) << 10 | (other - 0xDC00)) if 0xDC00 <= other <= 0xDFFF else np.int64(-1)
        size = 12
    elif 0xDC00 <= code <= 0xDFFF:
        code = np.int64(-1)
    if code < 0:
        return np.int64(-1), at
    return i + size, encode(code, out, at)


@njit(cache=True, nogil=True)
def _string(data, i, end, out, at):  # type: ignore[no-untyped-def]
    """Write the value of the string whose first byte after the quote is at i.

    Returns (one past its closing quote, one past what was written), -1 for what is no JSON string.
    """
    while i < end:
        if i + _WORD <= end:
            plain = _plain(data[i : i + _WORD], out[at : at + _WORD])
            i += plain
            at += plain
            if plain == _WORD:
                continue
        c = data[i]
        if c == _QUOTE:
            return i + 1, at
        if c == _BACKSLASH:
            i, at = _escape(data, i, end, out, at)
            if i < 0:
                return np.int64(-1), at
        elif c < 0x20:
            return np.int64(-1), at
        elif c < 0x80:
            out[at] = c
            i += 1
            at += 1
        else:
            size = _character(data, i, end)
            if size == 0:
                return np.int64(-1), at
            for k in range(size):
                out[at + k] = data[i + k]
            i += size
            at += size
    return np.int64(-1), at


@njit(cache=True, nogil=True)
def _number(data, i, end):  # type: ignore[no-untyped-def]
    """One past the number at i; -1 for what is none, or has so many digits that parsers differ."""
    if i < end and data[i] == 45:
        i += 1
    begin = i
    while i < end and 48 <= data[i] <= 57:
        i += 1
    digits = i - begin
    if digits == 0 or (digits > 1 and data[begin] == 48):
        return np.int64(-1)
    if i < end and data[i] == 46:
        i += 1
        begin = i
        while i < end and 48 <= data[i] <= 57:
            i += 1
        if i == begin:
            return np.int64(-1)
        digits += i - begin
    if digits > _DIGITS or (i < end and (data[i] == 101 or data[i] == 69)):
        return np.int64(-1)
    return np.int64(i)


@njit(cache=True, nogil=True)
def _is_key(data, start, stop, key):  # type: ignore[no-untyped-def]
    equal = stop - start == len(key)
    for k in range(len(key) if equal else 0):
        equal &= data[start + k] == key[k]
    return equal


@njit(cache=True, nogil=True)
def _is_word(data, i, end, word):  # type: ignore[no-untyped-def]
    return _is_key(data, i, min(i + len(word), end), word)


_TRUE, _FALSE, _NULL = (np.frombuffer(w, np.uint8) for w in (b"true", b"false", b"null"))


@njit(cache=True, nogil=True)
def _scalar(data, i, end, scratch):  # type: ignore[no-untyped-def]
    """One past the string, number or word at i; -1 for anything else."""
    c = data[i] if i < end else np.uint8(0)
    if c == _QUOTE:
        return _string(data, i + 1, end, scratch, 0)[0]
    if c == 116:
        return np.int64(i + 4) if _is_word(data, i, end, _TRUE) else np.int64(-1)
    if c == 102:
        return np.int64(i + 5) if _is_word(data, i, end, _FALSE) else np.int64(-1)
    if c == 110:
        return np.int64(i + 4) if _is_word(data, i, end, _NULL) else np.int64(-1)
    return _number(data, i, end)


@njit(cache=True, nogil=True)
def flat_records(data, starts, stops, names, outs, ends, hashes):  # type: ignore[no-untyped-def]
    """Take records `{"text": "...", "id": ..., ...}` as long as each is an object of strings, numbers and words.

    `names` are the keys of the text and of the id. Row r's text, id and the members besides (as a JSON object, each as
    it was written) end at `ends[0, r + 1]`, `ends[1, r + 1]` and `ends[2, r + 1]` of the three `outs`; an id or an
    object that is not there has no bytes. `hashes` (uint64) bounds the number of members. Returns how many were taken:
    the next record is left to a parser, which knows better.
    """
    texts, ids, others = outs
    text_key, id_key = names
    ends[:, 0] = 0
    for r in range(len(starts)):
        i, end = starts[r], stops[r]
        at_text, at_id, at_other = ends[0, r], ends[1, r], ends[2, r]
        members, seen = 0, 0
        if i >= end or data[i] != _OPEN_BRACE:
            return r
        i += 1
        while True:
            i = _skip_space(data, i, end)
            if members >= len(hashes) or i >= end or data[i] != _QUOTE:
                return r
            begin = i
            i, after = _string(data, i + 1, end, others, at_other + 1)
            if i < 0 or after - at_other - 1 != i - begin - 2:  # a key with an escape may be any other
                return r
            stop = i - 1
            hashes[members] = key_hash(data, begin + 1, stop)
            members += 1
            i = _skip_space(data, i, end)
            if i >= end or data[i] != _COLON:
                return r
            i = _skip_space(data, i + 1, end)
            if i >= end:
                return r
            if _is_key(data, begin + 1, stop, text_key):
                if data[i] != _QUOTE:
                    return r
                i, at_text = _string(data, i + 1, end, texts, at_text)
                seen += 1
            elif _is_key(data, begin + 1, stop, id_key):
                before = at_id
                if data[i] == _QUOTE:
                    i, at_id = _string(data, i + 1, end, ids, at_id)
                else:
                    number = i
                    while i < end and 48 <= data[i] <= 57:
                        ids[at_id] = data[i]
                        i += 1
                        at_id += 1
                    if at_id - before > _DIGITS or (at_id - before > 1 and data[number] == 48):
                        return r
                if at_id == before:
                    return r
            else:
                i = _scalar(data, i, end, others[at_other + 1 :])
                if i > 0:
                    others[at_other] = _OPEN_BRACE if at_other == ends[2, r] else _COMMA
                    for k in range(begin, i):
                        others[at_other + 1 + k - begin] = data[k]
                    at_other += 1 + i - begin
            if i < 0:
                return r
            i = _skip_space(data, i, end)
            if i >= end:
                return r
            if data[i] == _CLOSE_BRACE:
                i += 1
                break
            if data[i] != _COMMA:
                return r
            i += 1
        if i != end or seen != 1 or has_equal(hashes[:members]):
            return r
        if at_other > ends[2, r]:
            others[at_other] = _CLOSE_BRACE
            at_other += 1
        ends[0, r + 1], ends[1, r + 1], ends[2, r + 1] = at_text, at_id, at_other
    return len(starts)
