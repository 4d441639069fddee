"""The kernel that finds label spans among ids. Numba and numpy only."""

import numpy as np
import numpy.typing as npt

from datakit.kernels import kernel

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


_ALL, _TOP, _THREE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(63), np.uint64(3)
_ONE = np.uint64(1)


@kernel(inline="always")
def _eight_bytes(eights: Words, at: int) -> np.uint64:
    """The eight bytes from byte `at` on, which may lie across two values of `eights`."""
    shift = np.uint64(at & 7) << _THREE
    word: np.uint64 = eights[at >> 3] >> shift | eights[(at >> 3) + 1] << _ONE << (_TOP - shift)
    return word


@kernel
def place(
    ids: Int32, offsets: Int64, table: Words, spelled: Bytes, starts: Int64, eights: Words, begins: Int64,
    edges: Int64, edge_offsets: Int64,
) -> tuple[Int64, Int64, Bools]:  # fmt: skip
    """Find the tokens at which labels begin and end.

    `ids` are those of N texts, with `offsets` (N + 1,). `eights` has the bytes of the texts and at least eight more,
    eight in a value, with `begins` (N + 1,). `table` says for each token its first eight bytes, with zeros behind them,
    and twice the number of its bytes, plus 1 if it is special; `spelled` has all bytes of all tokens, with `starts`.
    `edges` are the ascending byte offsets of labels in their text, with `edge_offsets` (N + 1,).

    Returns for each edge the first token of its text that begins at it or after it; for each text the number of its
    special tokens, and whether its tokens spell exactly its bytes. Other texts have no valid edges.
    """
    found, counts = np.zeros(len(edges), np.int64), np.zeros(len(offsets) - 1, np.int64)
    placed = np.ones(len(offsets) - 1, np.bool_)
    for row in range(len(offsets) - 1):
        at, edge, last, end = begins[row], edge_offsets[row], edge_offsets[row + 1], begins[row + 1]
        wrong = np.uint64(0)
        for i in range(offsets[row], offsets[row + 1]):
            while edge < last and edges[edge] <= at - begins[row]:
                found[edge] = i - offsets[row]
                edge += 1
            head, size = table[ids[i], 0], np.int64(table[ids[i], 1])
            length = size >> 1
            if at + length > end:
                wrong = _ONE
                break
            if length < 8:
                mask = (_ONE << (np.uint64(length) << _THREE)) - _ONE
                wrong |= (_eight_bytes(eights, at) ^ head) & mask
            else:
                wrong |= _eight_bytes(eights, at) ^ head
                for k in range(8, length):
                    own = _eight_bytes(eights, at + k) & np.uint64(255)
                    wrong |= own ^ np.uint64(spelled[starts[ids[i]] + k])
            at += length
            counts[row] += size & 1
        placed[row] = wrong == 0 and at == end
        found[edge:last] = offsets[row + 1] - offsets[row]
    return found, counts, placed
