"""Bytes of UTF-8 text, eight at a time, for the kernels of the filters.

A mask has the highest bit of byte k set where byte k of eight matches. (Byte-parallel tests: Warren, Hacker's Delight,
2002.) LLVM turns the eight loads in `load` into one.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

_EACH = np.uint64(0x0101010101010101)
HIGH = np.uint64(0x8080808080808080)
_LOW_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_CASE = np.uint64(0x2020202020202020)
_ONE, _THREE, _TOP, _SHIFT = np.uint64(1), np.uint64(3), np.uint64(56), np.uint64(32)
_ALL = np.uint64(2**64 - 1)
_SEED, _MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@kernel(forceinline=True)
def load(data, at):
    """The eight bytes from `at` on as one number, the first one lowest. All must be in `data`; they may be in the next
    row."""
    value = np.uint64(0)
    for k in range(8):
        value |= np.uint64(data[np.uintp(at + k)]) << np.uint64(8 * k)
    return value


@kernel(forceinline=True)
def first(mask):
    """The index of the first byte that is set in a mask other than 0."""
    return np.int64((((mask & (~mask + _ONE)) - _ONE) & _EACH) * _EACH >> _TOP) - 1


@kernel
def letters(eight):
    """The mask of ASCII letters."""
    lower = eight & _LOW_SEVEN | _CASE
    return (lower + np.uint64(0x1F) * _EACH) & ~(lower + np.uint64(0x05) * _EACH) & ~eight & HIGH


@kernel
def digits(eight):
    """The mask of ASCII digits."""
    low = eight & _LOW_SEVEN
    return (low + np.uint64(0x50) * _EACH) & ~(low + np.uint64(0x46) * _EACH) & ~eight & HIGH


@kernel
def below(eight, limit):
    """The mask of bytes below `limit` (at most 128), and of those beyond ASCII; only its first byte is exact."""
    return ((eight - np.uint64(limit) * _EACH) & ~eight | eight) & HIGH


@kernel
def same(eight, byte):
    """The mask of bytes that equal `byte`; only its first byte is exact."""
    apart = eight ^ np.uint64(byte) * _EACH
    return (apart - _EACH) & ~apart & HIGH


@kernel(forceinline=True)
def head(data, begin, end):
    """The first eight bytes as in `load`, or fewer and then zeros; there must be at least one."""
    size = min(end - begin, 8)
    if begin + 8 <= data.size:
        return load(data, begin) & _ALL >> np.uint64(64 - 8 * size)
    value = np.uint64(0)
    for k in range(size):
        value |= np.uint64(data[np.uintp(begin + k)]) << np.uint64(8 * k)
    return value


@kernel
def mixed(value):
    """A 64-bit hash; different values have different hashes."""
    value = (value ^ _SEED) * _MULTIPLIER
    return value ^ value >> _SHIFT


@kernel
def hashed(data, begin, end):
    """A 64-bit hash of at least one byte. Of up to eight bytes it is `mixed(head(...))` plus their number."""
    state, size = np.uint64(0), np.uint64(end - begin)
    while end - begin > 8:
        state = mixed(state ^ load(data, begin))
        begin += 8
    return mixed(state ^ head(data, begin, end)) + size


@kernel
def before(data, at, low):
    """Where the character that ends at `at` begins; not before `low`, which is less than `at`."""
    at -= 1
    while at > low and data[at] & 0xC0 == 0x80:
        at -= 1
    return at
