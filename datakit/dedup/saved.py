"""Signatures in a form that other programs read: `datasketch.LeanMinHash`, serialised."""

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.dedup.config import DedupConfig
from datakit.dedup.minhash import signatures
from datakit.dedup.sides import compared, sets_of

COLUMN = "minhash"
BYTE_ORDER = "<"
"""As `datasketch.LeanMinHash.deserialize(value, "<")` takes it."""

_AFFINE32 = 1  # datasketch's code of the scheme


def saved_signatures(batch: pa.RecordBatch, config: DedupConfig) -> pa.Array:
    """binary[rows]: the MinHash values of each row, serialised; null where a row has fewer words than a shingle.

    `datasketch.LeanMinHash.deserialize(value, "<")` makes an object of one, with the scheme `affine32` and the seed.
    """
    sets = sets_of(compared(batch, config), config.shingle_words)
    made = serialised(signatures(sets, config.num_perm, config.seed), config.seed)
    return pc.if_else(pa.array(np.diff(sets.starts) > 0), made, pa.scalar(None, pa.binary()))


def serialised(values: npt.NDArray[np.uint32], seed: int) -> pa.Array:
    """binary[rows] of MinHash values uint32 (rows, num_perm): the seed, the negated count, the scheme, the values."""
    rows, num_perm = values.shape
    head = struct.pack(f"{BYTE_ORDER}qiB", seed, -num_perm, _AFFINE32)
    width = len(head) + 4 * num_perm
    made = np.empty((rows, width), dtype=np.uint8)
    made[:, : len(head)] = np.frombuffer(head, dtype=np.uint8)
    made[:, len(head) :] = values.astype("<u4").view(np.uint8).reshape(rows, 4 * num_perm)
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    large = pa.Array.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(made)])
    return large.cast(pa.binary())
