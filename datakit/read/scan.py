"""Where lines and members stand in the bytes of a file: the kernels with the arrays that they write to."""

from typing import Any, Final

import numpy as np

from datakit.native import Kernels

kernels: Final = Kernels("datakit.read._kernels")
Spans = np.ndarray[Any, Any]


def lines(data: bytes) -> tuple[Spans, Spans, Spans]:
    """(starts, stops, numbers) of the lines that are not blank, int64 each, without the white space around."""
    array = np.frombuffer(data, np.uint8)
    starts, stops, numbers = np.empty((3, int(np.count_nonzero(array == 10)) + 1), np.int64)
    found = kernels.lines(array, True, starts, stops, numbers)
    return starts[:found], stops[:found], numbers[:found]


def members(array: Spans, starts: Spans, stops: Spans) -> tuple[Spans, Spans, Spans]:
    """(first, spans, repeated): the members of record r are `spans[first[r]:first[r + 1]]`, as `_kernels.members` has
    it; `repeated[r]` if a key stands twice."""
    room = int((stops - starts).sum()) // 5 + len(starts)
    first, repeated = np.empty(len(starts) + 1, np.int64), np.empty(len(starts), np.bool_)
    spans = np.empty((room, 4), np.int64)
    kernels.members(array, starts, stops, first, repeated, spans, np.empty(room, np.uint64))
    return first, spans[: first[-1]], repeated
