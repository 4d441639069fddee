"""Rendered conversations -> ids with label spans: all rows of a batch at once, in kernels where it can be."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.pack.chat import ChatTokenizer
from datakit.pack.encode import Spans, labelled_bytes, labelled_ids
from datakit.pack.fast_bpe import FastBpe, Tally
from datakit.pack.labels import Labelled, RowError

Made = tuple[npt.NDArray[np.int32], Spans]


def encode_labelled(
    tokenizer: ChatTokenizer, fast: FastBpe | None, rows: Sequence[Labelled], min_label_tokens: int, library: Tally
) -> Iterator[Made | RowError]:
    """The ids and label spans of each row, or why it is to be dropped, in order; `library` counts what it encoded."""
    made = _by_kernels(tokenizer, fast, rows, min_label_tokens) if fast else [None] * len(rows)
    rest = [row for row, found in zip(rows, made, strict=True) if found is None]
    encodings = iter(tokenizer.encode([row.text for row in rest]))
    for row, found in zip(rows, made, strict=True):
        if found is not None:
            yield found
            continue
        try:
            encoding = next(encodings)
            library.add(Tally(library_rows=1, library_ids=len(encoding.ids)))
            yield labelled_ids(tokenizer, row, encoding, min_label_tokens)
        except RowError as e:
            yield e


def _by_kernels(
    tokenizer: ChatTokenizer, fast: FastBpe, rows: Sequence[Labelled], min_label_tokens: int
) -> list[Made | RowError | None]:
    """None for rows whose tokens cannot be placed in their text: those that normalisation changes."""
    ids, offsets, ends, aligned = fast.encode_aligned(pa.array([row.text for row in rows], pa.string()))
    made: list[Made | RowError | None] = [None] * len(rows)
    for i in np.flatnonzero(aligned).tolist():
        own = slice(offsets[i], offsets[i + 1])
        try:
            made[i] = labelled_bytes(tokenizer, rows[i], ids[own], ends[own], min_label_tokens)
        except RowError as e:
            made[i] = e
    return made
