"""Arrow string arrays as the plain numpy arrays that kernels take, and back."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]


def string_buffers(array: pa.Array) -> tuple[Bytes, Offsets]:
    """The UTF-8 bytes of a string array and where each value begins in them; no copy of the bytes.

    Nulls count as "". Returns data uint8 (bytes of the buffer) and offsets int64 (rows + 1); value i is
    `data[offsets[i]:offsets[i + 1]]`.

    Raises:
        TypeError: the array is not of type string or large_string.
    """
    if pa.types.is_string(array.type):
        width: type[np.signedinteger] = np.int32
    elif pa.types.is_large_string(array.type):
        width = np.int64
    else:
        raise TypeError(f"expected an array of strings, found {array.type}")
    if array.null_count:
        array = pc.fill_null(array, "")
    _, offset_buffer, data_buffer = array.buffers()
    if offset_buffer is None or len(array) == 0:
        return np.empty(0, np.uint8), np.zeros(len(array) + 1, np.int64)
    offsets = np.frombuffer(offset_buffer, dtype=width)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return data, offsets.astype(np.int64)


def string_array(data: Bytes, offsets: Offsets) -> pa.Array:
    """The string array over `data` (bytes that end where the last offset says); the inverse of `string_buffers`.

    Raises:
        OverflowError: more than 2 GB in one array, which `pa.string()` cannot address.
    """
    if offsets[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{offsets[-1]} bytes of text in one batch; a batch holds less than 2 GiB")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def row_chunks(offsets: Offsets, chunk_bytes: int) -> Iterator[tuple[int, int]]:
    """Cut rows into runs [begin, end) of at most `chunk_bytes` of text each, or one longer row.

    For kernels whose output is larger than their input: memory that is given back and taken again costs a page fault
    every 4 KiB, which the C library avoids for allocations below 32 MiB.
    """
    begin, rows = 0, len(offsets) - 1
    while begin < rows:
        end = int(np.searchsorted(offsets, offsets[begin] + chunk_bytes, side="right")) - 1
        end = min(max(end, begin + 1), rows)
        yield begin, end
        begin = end
