"""The normal form that decides whether two texts are the same, and its digest."""

import hashlib
import unicodedata
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.text.characters import Bytes, Offsets, character_table, string_array, string_buffers

DIGEST_BYTES = 16


def normalize(array: pa.Array) -> pa.Array:
    """Each text in NFC (UAX #15), every run of white space (`str.isspace`) as one space, none at the ends.

    Takes a string array; null becomes "". Equal to `" ".join(unicodedata.normalize("NFC", text).split())`. Rows that
    are NFC already never become Python objects: a kernel finds them.
    """
    from datakit.text import _kernels_normal_form as kernels

    composed = compose(array)
    data, offsets = string_buffers(composed)
    table = character_table()
    out = np.empty(offsets[-1] - offsets[0] + 1, dtype=np.uint8)
    out_offsets = np.empty_like(offsets)
    kernels.collapse_spaces(data, offsets, table.pages, table.entries, out, out_offsets)
    return string_array(out[: out_offsets[-1]], out_offsets)


def digest(array: pa.Array) -> pa.Array:
    """BLAKE2b-128 (RFC 7693) of each value's UTF-8 bytes as 32 hex digits (string array); null counts as ""."""
    digits = np.frombuffer(_digests(array).hex().encode(), dtype=np.uint8)
    return string_array(digits, np.arange(len(array) + 1, dtype=np.int64) * 2 * DIGEST_BYTES)


def binary_digest(array: pa.Array) -> pa.Array:
    """The same digests as 16 bytes each (fixed_size_binary array)."""
    buffers = [None, pa.py_buffer(_digests(array))]
    return pa.Array.from_buffers(pa.binary(DIGEST_BYTES), len(array), buffers)


def stated_digest(hashes: pa.Array) -> pa.Array:
    """The hex digits of `digest` as the 16 bytes each of `binary_digest`."""
    data, offsets = string_buffers(hashes)
    digits = data[offsets[0] : offsets[-1]].tobytes()
    buffers = [None, pa.py_buffer(bytes.fromhex(digits.decode()))]
    return pa.Array.from_buffers(pa.binary(DIGEST_BYTES), len(hashes), buffers)


def hash_values(array: pa.Array) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each value of a string array. Values with equal hashes must still be compared themselves."""
    from datakit.text import _kernels_normal_form as kernels

    data, offsets = string_buffers(array)
    hashes = np.empty(len(array), dtype=np.uint64)
    kernels.hash_values(data, offsets, hashes)
    return hashes


def compose(array: pa.Array) -> pa.Array:
    """Each text in NFC; only texts that fail a quick check become Python objects."""
    data, offsets = string_buffers(array)
    table = character_table()
    suspect = may_not_be_nfc(data, offsets, table.pages, table.entries)
    if not suspect.any():
        return array
    texts = array.filter(pa.array(suspect)).to_pylist()
    return pc.replace_with_mask(
        array, pa.array(suspect), pa.array([unicodedata.normalize("NFC", text) for text in texts], type=array.type)
    )


def may_not_be_nfc(
    data: Bytes, offsets: Offsets, pages: npt.NDArray[np.uint16], entries: npt.NDArray[np.uint32]
) -> npt.NDArray[np.bool_]:
    """Which texts NFC may change, bool (rows,): False is certain, True is not."""
    from datakit.text import _kernels_normal_form as kernels

    suspect = np.zeros(len(offsets) - 1, dtype=np.bool_)
    kernels.may_not_be_nfc(data, offsets, pages, entries, suspect)
    return suspect


def _digests(array: pa.Array) -> bytes:
    data, offsets = string_buffers(array)
    text, bounds = data.data, offsets.tolist()
    return b"".join(
        hashlib.blake2b(text[begin:end], digest_size=DIGEST_BYTES).digest() for begin, end in pairwise(bounds)
    )
