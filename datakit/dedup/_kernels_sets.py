"""Comparing sets of shingle hashes where they lie. Arrays only.

A set is sorted and distinct, uint64, given by its address and length: the sets of all rows stay in the memory-mapped
files that they were written to. Whoever calls keeps the mapping open.
"""

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

_STRIDE = 512  # merge steps between two looks at whether enough can still be shared


@intrinsic
def _pointer(context, address):  # type: ignore[no-untyped-def]
    signature = types.CPointer(types.uint64)(types.uint64)  # type: ignore[no-untyped-call]

    def generate(target, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], target.get_value_type(signature.return_type))

    return signature, generate


@njit(cache=True, nogil=True)
def set_at(address, length):  # type: ignore[no-untyped-def]
    """The set as an array, without a copy."""
    return carray(_pointer(np.uint64(address)), (np.int64(length),))  # type: ignore[call-arg]


@njit(cache=True, nogil=True)
def shared_values(a, b, least):  # type: ignore[no-untyped-def]
    """How many values two sets share, or -1 as soon as they cannot share `least`."""
    i, j, shared = 0, 0, 0
    while i < len(a) and j < len(b):
        if shared + min(len(a) - i, len(b) - j) < least:
            return -1
        steps = min(min(len(a) - i, len(b) - j), _STRIDE)
        for _ in range(steps):  # neither runs out: each step passes at most one value of each
            x, y = a[i], b[j]
            shared += x == y
            i += x <= y
            j += y <= x
    return shared if shared >= least else -1


@njit(cache=True, nogil=True)
def least_shared(a, b, numerator, denominator):  # type: ignore[no-untyped-def]
    """The least number of shared values with which sets of sizes a and b are similar enough.

    |A and B| / |A or B| >= numerator / denominator, solved for the shared values and rounded up.
    """
    return (numerator * (a + b) + numerator + denominator - 1) // (numerator + denominator)


@njit(cache=True, nogil=True)
def shared_with(addresses, lengths, others, out):  # type: ignore[no-untyped-def]
    """For each row with `others[row] >= 0`, how many values it shares with that row, to `out` (int64)."""
    for row in range(len(others)):
        other = others[row]
        if other >= 0:
            a, b = set_at(addresses[row], lengths[row]), set_at(addresses[other], lengths[other])
            out[row] = shared_values(a, b, 0)
