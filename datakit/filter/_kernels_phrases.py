"""Where texts speak of javascript, lorem ipsum and policies: a part of the line pass of C4."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import njit

JAVASCRIPT, POLICY, LOREM = 1, 2, 3  # kinds of phrases; 0 is none

_JAVASCRIPT = np.frombuffer(b"javascript", np.uint8)
_LOREM = np.frombuffer(b"lorem ipsum", np.uint8)
_TERMS = np.frombuffer(b"terms of use", np.uint8)
_PRIVACY = np.frombuffer(b"privacy policy", np.uint8)
_COOKIE_POLICY = np.frombuffer(b"cookie policy", np.uint8)
_USES_COOKIES = np.frombuffer(b"uses cookies", np.uint8)
_USE_COOKIES = np.frombuffer(b"use cookies", np.uint8)
_USE_OF_COOKIES = np.frombuffer(b"use of cookies", np.uint8)

_BLOCK = 64  # bytes looked at together: LLVM makes vectors of them


@njit(nogil=True, cache=True)
def room(offsets):
    """Room for the phrases of the longest row: each takes more than four bytes of its own."""
    longest = 0
    for row in range(offsets.size - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    return np.empty(longest // 4 + 2, np.int64), np.empty(longest // 4 + 2, np.uint8)


@njit(nogil=True, cache=True)
def matches(data, at, low, high, phrase):
    """Whether the bytes from `at` are the phrase, whatever the case of ASCII letters."""
    if at < low or at + phrase.size > high:
        return False
    for i in range(phrase.size):
        byte = data[at + i]
        if (byte | 32 if 65 <= byte <= 90 else byte) != phrase[i]:
            return False
    return True


@njit(nogil=True, cache=True)
def find(data, low, high, hits, hit_kinds):
    """Where javascript, lorem ipsum and the phrases of policies are: places in order, then one behind the row."""
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


@njit(nogil=True, cache=True, inline="always")
def _rare(one, two, three):
    """Whether lower-case bytes are three that every phrase has somewhere and hardly another text: "jav", "m i" of lorem
    ipsum, "f u" of terms of use, "y p" of privacy policy, "oki" of cookies."""
    return (
        ((one == 106) & (two == 97) & (three == 118))
        | ((one == 109) & (two == 32) & (three == 105))
        | ((one == 102) & (two == 32) & (three == 117))
        | ((one == 121) & (two == 32) & (three == 112))
        | ((one == 111) & (two == 107) & (three == 105))
    )


@njit(nogil=True, cache=True)
def _has_rare(block):
    """Whether three rare bytes begin in a block, which has two more bytes behind it; without branches."""
    found = False
    for k in range(_BLOCK):
        found |= _rare(block[k] | 32, block[k + 1] | 32, block[k + 2] | 32)
    return found


@njit(nogil=True, cache=True)
def _is_rare(data, at, high):
    return at + 2 < high and _rare(data[at] | 32, data[at + 1] | 32, data[at + 2] | 32)


@njit(nogil=True, cache=True)
def _phrase(data, at, low, high):
    """The kind of the phrase whose three rare bytes begin at `at`; 0 for none."""
    if matches(data, at, low, high, _JAVASCRIPT):
        return JAVASCRIPT
    if matches(data, at - 4, low, high, _LOREM):
        return LOREM
    if (
        matches(data, at - 7, low, high, _TERMS)
        or matches(data, at - 6, low, high, _PRIVACY)
        or matches(data, at - 2, low, high, _COOKIE_POLICY)
        or matches(data, at - 7, low, high, _USES_COOKIES)
        or matches(data, at - 6, low, high, _USE_COOKIES)
        or matches(data, at - 9, low, high, _USE_OF_COOKIES)
    ):
        return POLICY
    return 0
