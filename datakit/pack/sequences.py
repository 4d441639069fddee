"""Token rows of a batch -> sequences no longer than a packed row, with every token accounted for."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.pack._kernels import count_labels, mark

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.uint8]

EMPTY, TOO_LONG, NO_LABELS, TRUNCATED = "empty", "too_long", "no_labels", "truncated"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What becomes of sequences that are too long for a row."""

    stride: int
    overflow: Literal["split", "truncate", "drop", "stream"]
    """`stream`: no row limits a sequence; they are cut when they are joined."""
    max_doc_tokens: int
    drop_long: bool
    sides: int
    """2 for preference pairs, of which both sides stay or neither."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """Runs of tokens within flat arrays; a run is packed whole. One entry a run in all but the first two."""

    ids: Int32
    mask: Mask
    """1 for tokens that are labels; empty for plain text, where all are."""
    start: Int64
    """In `ids`."""
    length: Int64
    row_key: npt.NDArray[np.uint64]
    offset: Int64
    """The run's first token within its row's tokens."""

    def __len__(self) -> int:
        return len(self.start)

    def take(self, which: "npt.NDArray[np.bool_] | Int64 | slice") -> Self:
        """Some of the runs, over the same flat arrays."""
        chosen = {name: getattr(self, name)[which] for name in ("start", "length", "row_key", "offset")}
        return replace(self, **chosen)

    def alone(self) -> Self:
        """The same runs over flat arrays that reach no further than they do."""
        first = int(self.start.min()) if len(self) else 0
        last = int((self.start + self.length).max(initial=0))
        return replace(self, ids=self.ids[first:last], mask=self.mask[first:last], start=self.start - first)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The runs of all parts, in order."""
        shifts = np.cumsum([0] + [len(p.ids) for p in parts[:-1]])
        return cls(
            np.concatenate([p.ids for p in parts]),
            np.concatenate([p.mask for p in parts]),
            np.concatenate([p.start + shift for p, shift in zip(parts, shifts, strict=True)]),
            *(np.concatenate([getattr(p, n) for p in parts]) for n in ("length", "row_key", "offset")),
        )


@dataclass(slots=True)
class Cut:
    """What came of one batch."""

    sequences: Sequences
    reasons: list[str | None]
    """One a row of the batch; None keeps it."""
    details: list[str | None]
    into: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Tokens by reason, of rows that stay and of rows that do not."""


def cut(batch: pa.RecordBatch, limits: Limits, labelled: bool) -> Cut:
    """The sequences of a batch's rows, those of a pair next to each other: chosen, rejected.

    A row goes if a side of it is empty, too long (`overflow = "drop"`, `drop_long`) or keeps no label token within its
    limits; of a row that is split, the pieces without label tokens go.
    """
    flat = _flat(batch, limits.sides, labelled)
    size = flat.length.copy()
    work = Cut(flat, [None] * batch.num_rows, [None] * batch.num_rows, into=int(size.sum()))
    kept = _drop(work, size == 0, size, limits, EMPTY, "nothing to pack")
    cap, drops = (limits.max_doc_tokens or size.max(initial=0)), limits.drop_long
    kept &= _drop(work, size > cap, size, limits, TOO_LONG, f"max_doc_tokens is {cap}") if drops else True
    length = np.minimum(size, cap)
    if limits.overflow == "drop":
        kept &= _drop(work, length > limits.stride, size, limits, TOO_LONG, f"a row holds {limits.stride}")
    elif limits.overflow == "truncate":
        length = np.minimum(length, limits.stride)
    work.lost[TRUNCATED] += int((size - length)[kept].sum())
    which, offset, run = _pieces(length, limits.stride if limits.overflow == "split" else 0)
    pieces = flat.take(which)
    pieces = replace(pieces, start=pieces.start + offset, length=run, offset=offset)
    alive = kept[which]
    if labelled and limits.overflow != "stream":
        labels = count_labels(flat.mask, pieces.start, pieces.length)
        silent = np.bincount(which, labels, len(size)) == 0
        cut_off = np.where(kept, length, size)
        kept &= _drop(work, silent & kept, cut_off, limits, NO_LABELS, "no label token is left within the limits")
        mute = kept[which] & (labels == 0)
        work.lost[NO_LABELS] += int(run[mute].sum())
        alive = kept[which] & ~mute
    work.sequences = pieces.take(alive)
    work.lost = +work.lost
    return work


def _drop(
    work: Cut, bad: npt.NDArray[np.bool_], size: Int64, limits: Limits, reason: str, why: str
) -> "npt.NDArray[np.bool_]":
    """Drop the rows of bad sequences, their other sides too; returns which sequences stay."""
    rows = bad.reshape(-1, limits.sides).any(axis=1)
    gone = np.repeat(rows, limits.sides)
    for row in np.flatnonzero(rows):
        if work.reasons[row] is None:
            sides = size[row * limits.sides : (row + 1) * limits.sides]
            work.reasons[row] = reason
            work.details[row] = f"{' and '.join(map(str, sides))} tokens; {why}"
            work.lost[reason] += int(sides.sum())
    return ~gone


def _pieces(length: Int64, stride: int) -> tuple[Int64, Int64, Int64]:
    """Sequence, offset and length of each piece of at most `stride` tokens (0: whole)."""
    if not stride:
        return np.arange(len(length)), np.zeros(len(length), np.int64), length
    count = -(-length // stride)
    which = np.repeat(np.arange(len(length)), count)
    offset = (np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)) * stride
    return which, offset, np.minimum(length[which] - offset, stride)


def _flat(batch: pa.RecordBatch, sides: int, labelled: bool) -> Sequences:
    """The batch's sequences as they are; for pairs, the sides' ids follow one another in memory, the runs alternate."""
    columns = [("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")][:sides]
    keys = batch.column("row_key").to_numpy(zero_copy_only=False).astype(np.uint64)
    parts = [_column(batch.column(ids), batch.column(spans), keys, labelled) for ids, spans in columns]
    if sides == 1:
        return parts[0]
    both = Sequences.join(parts)
    return both.take(np.arange(len(both)).reshape(sides, -1).T.ravel())


def _column(ids: pa.Array, spans: pa.Array, keys: npt.NDArray[np.uint64], labelled: bool) -> Sequences:
    length = pc.fill_null(pc.list_value_length(ids), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    start = np.cumsum(length) - length
    flat = ids.flatten().to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    mask = _mask(spans, start, length) if labelled else np.empty(0, np.uint8)
    return Sequences(flat, mask, start, length, keys, np.zeros(len(keys), np.int64))


def _mask(spans: pa.Array, start: Int64, length: Int64) -> Mask:
    """1 for each label token; all tokens of a row without spans (plain text among conversations) are labels."""
    mask = np.zeros(int(length.sum()), np.uint8)
    counts = pc.fill_null(pc.list_value_length(spans), 0).to_numpy(zero_copy_only=False)
    values = spans.flatten()
    base = np.repeat(start, counts)
    first, last = (values.field(i).to_numpy(zero_copy_only=False).astype(np.int64) + base for i in (0, 1))
    mark(mask, first, last)
    whole = spans.is_null().to_numpy(zero_copy_only=False)
    mark(mask, start[whole], (start + length)[whole])
    return mask
