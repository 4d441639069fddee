"""The kernel that finds label spans among ids. Numba and numpy only."""

import numpy as np
import numpy.typing as npt

from datakit.kernels import kernel

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]


@kernel
def place(
    ids: Int32, offsets: Int64, spelled: Bytes, starts: Int64, structural: Bools, text: Bytes, begins: Int64,
    edges: Int64, edge_offsets: Int64,
) -> tuple[Int64, Int64, Bools]:  # fmt: skip
    """Find the tokens at which labels begin and end.

    `ids` and `text` are those of N texts, with `offsets` and `begins` (N + 1,). `spelled` has the bytes of all tokens,
    with `starts`; `structural` says which tokens are special. `edges` are the ascending byte offsets of labels in their
    text, with `edge_offsets` (N + 1,).

    Returns for each edge the first token of its text that begins at it or after it; for each text the number of its
    structural tokens, and whether its tokens spell exactly its bytes. Other texts have no valid edges.
    """
    found, counts = np.zeros(len(edges), np.int64), np.zeros(len(offsets) - 1, np.int64)
    placed = np.ones(len(offsets) - 1, np.bool_)
    for row in range(len(offsets) - 1):
        at, edge, last = begins[row], edge_offsets[row], edge_offsets[row + 1]
        for i in range(offsets[row], offsets[row + 1]):
            while edge < last and edges[edge] <= at - begins[row]:
                found[edge] = i - offsets[row]
                edge += 1
            first, length = starts[ids[i]], starts[ids[i] + 1] - starts[ids[i]]
            if at + length > begins[row + 1]:
                placed[row] = False
                break
            for k in range(length):
                if text[at + k] != spelled[first + k]:
                    placed[row] = False
            at += length
            counts[row] += structural[ids[i]]
        placed[row] &= at == begins[row + 1]
        found[edge:last] = offsets[row + 1] - offsets[row]
    return found, counts, placed
