"""Records of a text and little else as Arrow columns: a kernel parses them, and none becomes a Python object."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from datakit.native import Kernels
from datakit.text.characters import Bytes, string_array

MAX_MEMBERS: Final = 64
"""A record with more of them is left to the parser."""

_kernels: Final = Kernels("datakit.read._kernels_flat")
Spans = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Flat:
    """Columns of the first records of a block: string arrays, `ids` and `extras` null where a record has none.

    `extras` are the members besides text and id, as the user wrote them, as one JSON object.
    """

    texts: pa.Array
    ids: pa.Array
    extras: pa.Array


def flat_records(array: Bytes, starts: Spans, stops: Spans, text_field: str, id_field: str) -> Flat:
    """The records `array[starts[r]:stops[r]]` up to the first that is not surely what a parser would make of it: an
    object whose values are strings, numbers and words, with the text and a string or whole number as id among them.
    """
    rows, size = len(starts), int((stops - starts).sum())
    names = tuple(np.frombuffer(name.encode(), np.uint8) for name in (text_field, id_field))
    outs = tuple(np.empty(size + 2 * rows, np.uint8) for _ in range(3))
    ends = np.empty((3, rows + 1), np.int64)
    taken = _kernels.flat_records(array, starts, stops, names, outs, ends, np.empty(MAX_MEMBERS, np.uint64))
    texts, ids, extras = (
        string_array(out[: end[taken]], end[: taken + 1]) for out, end in zip(outs, ends, strict=True)
    )
    return Flat(texts, _none_if_empty(ids), _none_if_empty(extras))


def _none_if_empty(array: pa.Array) -> pa.Array:
    _, offsets, data = array.buffers()
    there = np.diff(np.frombuffer(offsets, np.int32)[: len(array) + 1]) > 0
    if there.all():
        return array
    valid = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(array.type, len(array), [valid, offsets, data])
