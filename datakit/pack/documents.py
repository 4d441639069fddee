"""Plain text -> ids: a column of documents at once, in kernels where the tokenizer is recognised."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.pack.chat import RESERVED, ChatTokenizer
from datakit.pack.encode import plain_ids
from datakit.pack.fast_bpe import FastBpe, Int32, Int64, Tally
from datakit.pack.labels import RowError
from datakit.text.characters import string_buffers


@dataclass(frozen=True, slots=True)
class Documents:
    """The ids of a batch of documents; a refused one has none."""

    input_ids: pa.ListArray
    reasons: list[str | None]
    details: list[str | None]
    library: Tally
    """What the library encoded because there are no kernels."""


def encode_documents(
    tokenizer: ChatTokenizer, fast: FastBpe | None, texts: pa.Array, before: Sequence[int], after: Sequence[int]
) -> Documents:
    """Encode a string array; `before` and `after` are ids put around each document."""
    encode = fast.encode if fast else _Library(tokenizer).encode
    ids, offsets = encode(texts, before, after)
    library = Tally() if fast else Tally(library_rows=len(texts), library_ids=len(ids))
    reasons: list[str | None] = [None] * len(texts)
    details: list[str | None] = [None] * len(texts)
    alive = np.ones(len(texts), np.bool_)
    for row in _suspects(tokenizer, texts, ids, offsets, len(before) + len(after)):
        own = ids[offsets[row] : offsets[row + 1]].tolist()[len(before) :]
        own = own[: max(len(own) - len(after), 0)]
        try:
            plain_ids(tokenizer, texts[row].as_py() or "", own)
        except RowError as e:
            reasons[row], details[row], alive[row] = e.reason, e.detail, False
    lengths = np.diff(offsets)
    if not alive.all():
        ids, lengths = ids[np.repeat(alive, lengths)], lengths * alive
    starts = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return Documents(pa.ListArray.from_arrays(starts, pa.array(ids, pa.int32())), reasons, details, library)


class _Library:
    """The same as `FastBpe.encode`, for tokenizers that it does not know."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._encoder = tokenizer.encoder

    def encode(self, texts: pa.Array, before: Sequence[int], after: Sequence[int]) -> tuple[Int32, Int64]:
        given = [text or "" for text in texts.to_pylist()]
        found = [e.ids for e in self._encoder.encode_batch_fast(given, add_special_tokens=False)]
        rows = [np.array([*before, *ids, *after], np.int32) for ids in found]
        return np.concatenate([np.empty(0, np.int32), *rows]), np.cumsum([0, *map(len, rows)], dtype=np.int64)


def _suspects(tokenizer: ChatTokenizer, texts: pa.Array, ids: Int32, offsets: Int64, around: int) -> list[int]:
    """Rows that `plain_ids` may refuse: the empty ones, and those in which a mark of added tokens occurs."""
    found: list[npt.NDArray[np.int64]] = [np.flatnonzero(np.diff(offsets) <= around)]
    data, begins = string_buffers(texts)
    first, *rest = RESERVED.encode()
    at = begins[0] + np.flatnonzero(data[begins[0] : begins[-1]] == first)
    for i, byte in enumerate(rest, start=1):
        at = at[data[at + i] == byte]  # a lead byte is never a text's last
    found.append(np.searchsorted(begins, at, side="right") - 1)
    if tokenizer.spelled_by_model:
        spelled = np.flatnonzero(np.isin(ids, list(tokenizer.spelled_by_model)))
        found.append(np.searchsorted(offsets, spelled, side="right") - 1)
    rows: list[int] = np.unique(np.concatenate(found)).tolist()
    return rows
