"""The pack stage: token rows -> packed rows. Cut sequences to length, fit them into rows, write windows of rows.

`packing = "best_fit"` uses best-fit decreasing (Johnson 1973; for training data: Ding et al. 2024, "Fewer Truncations
Improve Language Modeling"): the longest sequence first, each into the fullest row that still has space for it. If a set
has no short sequences that fill gaps, this leaves 4% or more of the space empty. So rows are also filled one by one
with pairs that fit exactly (a minimum bin slack heuristic after Gupta and Ho 1999, on a histogram of lengths), and the
denser result is used. If both need clearly more rows than a lower bound, sequential value correction is tried, too (see
`_kernels_fit`).

Sequences are fitted within a window of a bounded number of tokens, so memory does not grow with the dataset. A window
ends after the sequence that fills it, so the result does not depend on the size of the input batches.

Functions import the kernels that they use: loading `PackConfig` for `--help` must not load numba.
"""

import json
import os
import shutil
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.errors import ConfigError, InputError
from datakit.manifest import Count, check_shards, data_dir
from datakit.pack.format import SOURCE_DTYPE, Format, Header, RowWriter, open_writer
from datakit.pack.long_rows import LONG_ANSWER, LONG_PROMPT, TRUNCATED, LongAnswer, Piece, TurnMarks, split_turns
from datakit.stage import Decision, Made, Parent, Stage, split, with_column

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.uint8]

Packing = Literal["best_fit", "wrap", "pad"]

STARTS, FIRST = "sequence_starts", "first_token"
EMPTY, TOO_LONG, NO_LABELS = "empty", "too_long", "no_labels"
MAX_LOSS = 0.05
"""A greater share of tokens that is lost because sequences are longer than a row is an alarm."""
CLOSE = 1.005
"""A result with at most this many times the lower bound of rows is accepted."""
QUARTERS, FIRST_ROUNDS, ROUNDS, PROMISING = (1, 2, 3, 4, 6, 8), 2, 12, 2
"""Else sequential value correction: start with length ** (1 + quarters / 4), `FIRST_ROUNDS` rounds for each number of
quarters, then `ROUNDS` rounds for the `PROMISING` best."""
FOLDER = "kept"
OTHER: dict[Packing, Packing] = {"best_fit": "wrap", "wrap": "best_fit"}
"""The way to fill rows whose density is stated beside that of the one in use."""
Task = Literal["pretrain", "sft", "dpo"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PackConfig:
    """Settings of the pack stage."""

    seq_len: int | tuple[int, ...] = option(
        1024, "targets in a row; a row holds one token more. Several lengths, as 256,512,1024, make a set each"
    )
    packing: Packing = option(
        "best_fit",
        "best_fit: whole sequences share rows; wrap: joined and cut at row ends (formerly concat); pad: one a row",
    )
    overflow: Literal["auto", "split_turns", "split", "truncate", "drop"] = option(
        "auto",
        "sequences longer than a row; split_turns: cut between turns, the system prompt repeated; auto: split plain "
        "text, split_turns for conversations, truncate preference pairs",
    )
    long_answer: LongAnswer = option(
        "split", "with split_turns, a question whose answer is longer than a row: split with its prompt, or dropped"
    )
    align_bos: bool = option(
        False, "start each row with the start of a sequence; tokens cut off at a row's end are dropped"
    )
    format: Format = option(
        "bin2d", "file format: bin2d (fixed rows), bin (no padding), parquet, megatron (whole documents of plain text)"
    )
    ids_dtype: Literal["int32", "uint16"] = option("int32", "uint16 takes half the bytes; for vocabularies up to 65536")
    validation: float = option(
        0.0, "share of the rows that go to a validation set; chosen by content hash, so the same rows in each run"
    )
    max_doc_tokens: int = option(0, "longer sequences are cut to this before packing; 0: no limit")
    drop_long: bool = option(False, "drop sequences above max_doc_tokens instead of cutting them")
    window_tokens: int = option(16_777_216, "tokens that are fitted into rows together; limits memory")

    def __post_init__(self) -> None:
        for length in self.row_lengths or (0,):
            if not 1 <= length < 1 << 24:
                raise ConfigError(f"seq_len must be at least 1 and below 2**24, found {length}")
        if list(self.row_lengths) != sorted(set(self.row_lengths)):
            raise ConfigError(f"seq_len: several lengths must be in ascending order, found {list(self.row_lengths)}")
        if len(self.row_lengths) > 1 and (self.packing == "wrap" or self.format == "megatron"):
            raise ConfigError("seq_len: several lengths need packing best_fit or pad, and format bin2d, bin or parquet")
        if self.format == "parquet" and self.ids_dtype != "int32":
            raise ConfigError("format parquet needs ids_dtype int32; the file is compressed")
        if self.align_bos and self.overflow == "split":
            raise ConfigError("align_bos and overflow = split exclude each other: split starts rows inside a sequence")
        if not 0 <= self.validation < 1:
            raise ConfigError(f"validation must be at least 0 and below 1, found {self.validation}")
        if self.max_doc_tokens < 0:
            raise ConfigError(f"max_doc_tokens must be 0 (no limit) or more, found {self.max_doc_tokens}")
        if self.drop_long and not self.max_doc_tokens:
            raise ConfigError("drop_long drops sequences above max_doc_tokens: set max_doc_tokens, too")
        if self.window_tokens < 1:
            raise ConfigError(f"window_tokens must be at least 1, found {self.window_tokens}")

    @property
    def row_lengths(self) -> tuple[int, ...]:
        """`seq_len` of each row length, ascending."""
        return self.seq_len if isinstance(self.seq_len, tuple) else (self.seq_len,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What happens to sequences that are too long for a row."""

    stride: int
    """Tokens in a row; with several row lengths, in the longest."""
    overflow: Literal["split_turns", "split", "truncate", "drop", "stream"]
    """`stream`: keep sequences of any length; they are cut when they are joined into rows."""
    max_doc_tokens: int
    drop_long: bool
    sides: int
    """2 for preference pairs, whose sides are kept or dropped together; else 1."""
    long_answer: LongAnswer = "split"
    marks: TurnMarks | None = None
    """Where users' turns begin, for `split_turns`; None: unknown, and long conversations are truncated."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """N sequences over flat arrays of tokens. A sequence is packed in one piece, except with `wrap`. All arrays but
    `ids` and `mask` have shape (N,)."""

    ids: Int32
    mask: Mask
    """uint8, aligned with `ids`: 1 for tokens that are labels. Empty for plain text: all tokens are labels."""
    start: Int64
    """Index of the first token in `ids`."""
    length: Int64
    row_key: npt.NDArray[np.uint64]
    offset: Int64
    """Offset of the first token behind the head in the tokens of its row."""
    head: Int64
    """Tokens at the start that repeat earlier ones of the row."""

    def __len__(self) -> int:
        return len(self.start)

    def take(self, which: npt.NDArray[np.bool_] | Int64 | slice) -> Self:
        """Some of the sequences, over the same flat arrays."""
        chosen = {name: getattr(self, name)[which] for name in ("start", "length", "row_key", "offset", "head")}
        return replace(self, **chosen)

    def alone(self) -> Self:
        """The same sequences over the smallest slices of the flat arrays that have all their tokens."""
        first = int(self.start.min()) if len(self) else 0
        last = int((self.start + self.length).max(initial=0))
        return replace(self, ids=self.ids[first:last], mask=self.mask[first:last], start=self.start - first)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The sequences of all parts, in order."""
        shifts = np.cumsum([0] + [len(p.ids) for p in parts[:-1]])
        return cls(
            np.concatenate([p.ids for p in parts]),
            np.concatenate([p.mask for p in parts]),
            np.concatenate([p.start + shift for p, shift in zip(parts, shifts, strict=True)]),
            *(np.concatenate([getattr(p, n) for p in parts]) for n in ("length", "row_key", "offset", "head")),
        )


@dataclass(slots=True)
class CutBatch:
    """The sequences of one batch, and its dropped rows."""

    sequences: Sequences
    reasons: list[str | None]
    """One per row of the batch; None keeps the row."""
    details: list[str | None]
    """One per row of the batch: the token counts behind the reason."""
    into: int = 0
    """Tokens of the batch."""
    lost: Counter[str] = field(default_factory=Counter)
    """Dropped tokens by reason, of kept and of dropped rows."""
    repeated: int = 0
    """Tokens that are in several sequences: system prompts and prompts of long answers."""
    sizes: Counter[int] = field(default_factory=Counter)
    """How many sequences there were of each length, before cutting."""


def cut(batch: pa.RecordBatch, limits: Limits, labelled: bool) -> CutBatch:
    """Cut the rows of a batch into sequences. The two of a preference pair are next to each other: chosen, rejected.

    A row is dropped if one of its sides is empty, is too long (`overflow = "drop"`, `drop_long`), or has no label token
    left after cutting. If a row is split, its pieces without label tokens are dropped.
    """
    from datakit.pack import _kernels_fit as kernels

    flat = _flat(batch, limits.sides, labelled)
    size = flat.length.copy()
    work = CutBatch(flat, [None] * batch.num_rows, [None] * batch.num_rows, into=int(size.sum()))
    work.sizes.update(size.tolist())
    kept = _drop(work, size == 0, size, limits, EMPTY, "nothing to pack")
    cap, drops = (limits.max_doc_tokens or size.max(initial=0)), limits.drop_long
    kept &= _drop(work, size > cap, size, limits, TOO_LONG, f"max_doc_tokens is {cap}") if drops else True
    length = np.minimum(size, cap)
    if limits.overflow == "drop":
        kept &= _drop(work, length > limits.stride, size, limits, TOO_LONG, f"a row holds {limits.stride}")
    elif limits.overflow == "truncate" or (limits.overflow == "split_turns" and limits.marks is None):
        length = np.minimum(length, limits.stride)
    work.lost[TRUNCATED] += int((size - length)[kept].sum())
    if limits.overflow == "split_turns" and labelled and (length > limits.stride).any():
        return _cut_turns(work, flat, length, kept, limits, batch)
    which, offset, run = _pieces(length, limits.stride if limits.overflow in ("split", "split_turns") else 0)
    pieces = flat.take(which)
    pieces = replace(pieces, start=pieces.start + offset, length=run, offset=pieces.offset + offset)
    alive = kept[which]
    if labelled and limits.overflow != "stream":
        labels = kernels.count_labels(flat.mask, pieces.start, pieces.length)
        silent = np.bincount(which, labels, len(size)) == 0
        cut_off = np.where(kept, length, size)
        kept &= _drop(work, silent & kept, cut_off, limits, NO_LABELS, "no label token is left within the limits")
        mute = kept[which] & (labels == 0)
        work.lost[NO_LABELS] += int(run[mute].sum())
        alive = kept[which] & ~mute
    work.sequences = pieces.take(alive)
    work.lost = +work.lost
    return work


def _cut_turns(
    work: CutBatch, flat: Sequences, length: Int64, kept: npt.NDArray[np.bool_], limits: Limits, batch: pa.RecordBatch
) -> CutBatch:
    """Cut the conversations longer than a row between turns; the other sequences stay as they are."""
    from datakit.pack import _kernels_fit as kernels

    assert limits.marks is not None
    short = kept & (length <= limits.stride)
    plain = batch.column("label_spans").is_null().to_numpy(zero_copy_only=False)
    ids, masks, rows = [flat.ids], [flat.mask], [flat.take(short)]
    base, order = len(flat.ids), [np.flatnonzero(short)]
    for row in np.flatnonzero(kept & ~short).tolist():
        own = slice(int(flat.start[row]), int(flat.start[row] + length[row]))
        tokens, learnt = flat.ids[own], flat.mask[own].astype(bool)
        if plain[row]:
            _, offset, run = _pieces(length[row : row + 1], limits.stride)
            pieces, lost = [Piece((), int(a), int(a + n)) for a, n in zip(offset, run, strict=True)], Counter[str]()
        else:
            pieces, lost = split_turns(tokens, learnt, limits.stride, limits.marks, limits.long_answer)
        made = []
        for piece in pieces:
            mask = flat.mask[own][piece.start : piece.end].copy()
            mask[: 1 if piece.head or not piece.start else 0] = 0  # what stands before it is not what it follows
            if mask[1 if not piece.head else 0 :].any():
                made.append((piece, mask))
            else:
                lost[NO_LABELS] += piece.end - piece.start
        if not made:
            work.reasons[row] = max(lost, key=lambda reason: lost[reason])
            work.details[row] = f"{length[row]} tokens; a row holds {limits.stride}"
        work.lost.update(lost)
        for piece, mask in made:
            head = [tokens[a:b] for a, b in piece.head]
            ids += [*head, tokens[piece.start : piece.end]]
            masks += [np.zeros(piece.head_tokens, np.uint8), mask]
            work.repeated += piece.head_tokens
        sizes = np.array([p.head_tokens + p.end - p.start for p, _ in made], np.int64)
        starts = base + np.cumsum(sizes) - sizes
        offsets = np.array([p.start for p, _ in made], np.int64) + flat.offset[row]
        heads = np.array([p.head_tokens for p, _ in made], np.int64)
        base += int(sizes.sum())
        keys = np.repeat(flat.row_key[row], len(made))
        rows.append(Sequences(flat.ids, flat.mask, starts, sizes, keys, offsets, heads))
        order.append(np.full(len(made), row))
    silent = kernels.count_labels(flat.mask, rows[0].start, rows[0].length) == 0
    for row in order[0][silent].tolist():
        work.reasons[row], work.details[row] = NO_LABELS, f"{length[row]} tokens; no label token among them"
        work.lost[NO_LABELS] += int(length[row])
    rows[0], order[0] = rows[0].take(~silent), order[0][~silent]
    names = ("start", "length", "row_key", "offset", "head")
    joined = {n: np.concatenate([getattr(r, n) for r in rows]) for n in names}
    sequences = Sequences(np.concatenate(ids), np.concatenate(masks), **joined)
    work.sequences = sequences.take(np.argsort(np.concatenate(order), kind="stable"))
    work.lost = +work.lost
    return work


def each_sequence(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64]:
    """A batch with one row for each sequence, and the row of the given batch that each is from, int64 (sequences,).

    The tokenize stage puts a row's sequences (one for each answer) one after the other: `sequence_starts` says where
    they begin. The made batch has the first token of each in its row, as the column `first_token`.
    """
    if STARTS not in batch.schema.names:
        return batch, np.arange(batch.num_rows)
    ids, spans, starts = batch.column("input_ids"), batch.column("label_spans"), batch.column(STARTS)
    begin, count = np.concatenate([[0], np.cumsum(_lengths(ids))]), _lengths(starts)
    owner = np.repeat(np.arange(batch.num_rows), count)
    first = starts.flatten().to_numpy().astype(np.int64)
    place = begin[owner] + first
    edges = spans.flatten()
    a, b = (edges.field(i).to_numpy() + np.repeat(begin[:-1], _lengths(spans)) for i in (0, 1))
    sequence = np.searchsorted(place, a, side="right") - 1
    bounds = np.concatenate([[0], np.cumsum(np.bincount(sequence, minlength=len(place)))])
    relative = [pa.array((x - place[sequence]).astype(np.int32)) for x in (a, b)]
    values = pa.StructArray.from_arrays(relative, fields=list(spans.type.value_type))
    made = batch.drop_columns([STARTS]).take(pa.array(owner))
    offsets = pa.array(np.append(place, begin[-1]).astype(np.int32))
    made = with_column(made, "input_ids", pa.ListArray.from_arrays(offsets, ids.flatten(), type=ids.type))
    own_spans = pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values, type=spans.type)
    made = with_column(made, "label_spans", own_spans)
    return with_column(made, FIRST, pa.array(first)), owner


def _lengths(lists: pa.Array) -> Int64:
    found: Int64 = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _drop(
    work: CutBatch, bad: npt.NDArray[np.bool_], size: Int64, limits: Limits, reason: str, why: str
) -> npt.NDArray[np.bool_]:
    """Drop the rows that have a bad sequence, with both sides; returns the sequences that stay, bool (sequences,)."""
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
    """Sequence, offset and length of each piece of at most `stride` tokens. 0: do not split."""
    if not stride:
        return np.arange(len(length)), np.zeros(len(length), np.int64), length
    count = -(-length // stride)
    which = np.repeat(np.arange(len(length)), count)
    offset = (np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)) * stride
    return which, offset, np.minimum(length[which] - offset, stride)


def _flat(batch: pa.RecordBatch, sides: int, labelled: bool) -> Sequences:
    """The sequences of a batch before cutting. For pairs, chosen and rejected alternate."""
    columns = [("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")][:sides]
    keys = batch.column("row_key").to_numpy(zero_copy_only=False).astype(np.uint64)
    parts = [_column(batch.column(ids), batch.column(spans), keys, labelled) for ids, spans in columns]
    if FIRST in batch.schema.names:
        return replace(parts[0], offset=batch.column(FIRST).to_numpy())
    if sides == 1:
        return parts[0]
    both = Sequences.join(parts)
    return both.take(np.arange(len(both)).reshape(sides, -1).T.ravel())


def _column(ids: pa.Array, spans: pa.Array, keys: npt.NDArray[np.uint64], labelled: bool) -> Sequences:
    length = pc.fill_null(pc.list_value_length(ids), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    start = np.cumsum(length) - length
    flat = ids.flatten().to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    mask = _mask(spans, start, length) if labelled else np.empty(0, np.uint8)
    return Sequences(flat, mask, start, length, keys, *np.zeros((2, len(keys)), np.int64))


def _mask(spans: pa.Array, start: Int64, length: Int64) -> Mask:
    """1 for each label token. All tokens of a row without spans (plain text among conversations) are labels."""
    from datakit.pack import _kernels_fit as kernels

    mask = np.zeros(int(length.sum()), np.uint8)
    counts = pc.fill_null(pc.list_value_length(spans), 0).to_numpy(zero_copy_only=False)
    values = spans.flatten()
    base = np.repeat(start, counts)
    first, last = (values.field(i).to_numpy(zero_copy_only=False).astype(np.int64) + base for i in (0, 1))
    kernels.mark(mask, first, last)
    whole = spans.is_null().to_numpy(zero_copy_only=False)
    kernels.mark(mask, start[whole], (start + length)[whole])
    return mask


@dataclass(frozen=True, slots=True)
class Fit:
    """Pieces of sequences and the rows that they go to, sorted by row. One entry per piece."""

    sequence: Int64
    """Index of the sequence that the piece belongs to."""
    offset: Int64
    """Offset of the piece's first token in that sequence."""
    length: Int64
    row: Int64
    """Index of the row: ascending from 0, without gaps."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.row[-1]) + 1 if len(self.row) else 0


def fit(lengths: Int64, stride: int, packing: Packing, align_bos: bool = False) -> Fit:
    """Fit sequences of `lengths`, int64, into rows of `stride` tokens. `wrap` cuts them; `best_fit` and `pad` need
    lengths <= stride.

    With `align_bos`, each row of `wrap` starts with the start of a sequence; tokens cut off at a row's end are left
    out.
    """
    from datakit.pack import _kernels_fit as kernels

    if packing == "wrap":
        return _aligned(lengths, stride) if align_bos else _cut(lengths, stride)
    everything = np.arange(len(lengths))
    if packing == "pad":
        return Fit(everything, np.zeros_like(everything), lengths, everything)
    longest_first = kernels.by_length(lengths, stride)
    tries = [pack(longest_first, lengths, stride) for pack in (kernels.best_fit, kernels.paired_fit)]
    if min(bins.max(initial=-1) + 1 for bins in tries) > CLOSE * fewest_rows(lengths, stride):
        tries += _by_value(longest_first, lengths, stride)
    bins = min(tries, key=lambda bins: bins.max(initial=-1))
    # Number the rows by their first sequence, and keep the order of sequences in a row: close to the order of the data.
    first_of_bin = np.empty(int(bins.max(initial=-1)) + 1, np.int64)
    first_of_bin[bins[::-1]] = everything[::-1]  # the last assignment to an index wins: the first sequence
    rank = np.empty(len(first_of_bin), np.int64)
    rank[np.argsort(first_of_bin, kind="stable")] = np.arange(len(first_of_bin))
    rows = rank[bins]
    order = np.argsort(rows, kind="stable")
    return Fit(order, np.zeros(len(order), np.int64), lengths[order], rows[order])


def _by_value(longest_first: Int64, lengths: Int64, stride: int) -> list[Int64]:
    from datakit.pack import _kernels_fit as kernels

    found = {q: kernels.valued_fit(longest_first, lengths, stride, FIRST_ROUNDS, q) for q in QUARTERS}
    promising = sorted(found, key=lambda q: int(found[q].max()))[:PROMISING]
    return [*found.values(), *(kernels.valued_fit(longest_first, lengths, stride, ROUNDS, q) for q in promising)]


def fewest_rows(lengths: Int64, stride: int) -> int:
    """A lower bound on the rows of `stride` tokens that uncut sequences need: the bound L2 of Martello and Toth (1990).

    For each k up to stride / 2, sequences shorter than k are ignored. Sequences longer than stride / 2 need a row each.
    The others need further rows for the tokens that do not fit next to the sequences of (stride / 2, stride - k].
    """
    count = np.bincount(lengths, minlength=stride + 1)
    number, tokens = (np.concatenate([[0], np.cumsum(c)]) for c in (count, count * np.arange(stride + 1)))
    k, half = np.arange(stride // 2 + 1), stride // 2
    large = number[-1] - number[half + 1]
    beside = (number[stride - k + 1] - number[half + 1]) * stride - (tokens[stride - k + 1] - tokens[half + 1])
    small = tokens[half + 1] - tokens[k]
    return int(large + np.maximum(-(-(small - beside) // stride), 0).max(initial=0))


def _cut(lengths: Int64, stride: int) -> Fit:
    """Join the sequences, and cut them where a row is full."""
    starts = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    cuts = np.union1d(starts[lengths > 0], np.arange(0, total, stride))
    sequence = np.searchsorted(starts, cuts, side="right") - 1
    return Fit(sequence, cuts - starts[sequence], np.diff(np.append(cuts, total)), cuts // stride)


def _aligned(lengths: Int64, stride: int) -> Fit:
    """Join the sequences; the sequence at a row's end is truncated, and the next one starts the next row."""
    ends = np.cumsum(lengths)
    edges, base = [0], 0
    while edges[-1] < len(lengths):
        edges.append(min(int(np.searchsorted(ends, base + stride)) + 1, len(lengths)))
        base = int(ends[edges[-1] - 1])
    row = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    fitted = lengths.copy()
    last = np.array(edges[1:], np.int64) - 1
    begins = np.concatenate([[0], ends[last]])[:-1]
    fitted[last] -= np.maximum(ends[last] - begins - stride, 0)
    return Fit(np.arange(len(lengths)), np.zeros(len(lengths), np.int64), fitted, row)


@dataclass(slots=True)
class Output:
    """A packed set that is being written, with its totals."""

    name: str
    """The last part of its prefix: `train`, `validation`, `train-256`."""
    writer: RowWriter
    packed_rows: int = 0
    sequences: int = 0
    tokens: int = 0
    labels: int = 0

    @property
    def stride(self) -> int:
        """Tokens in a row."""
        return self.writer.header.stride


class Packer:
    """Collects sequences into windows and writes the rows of each window.

    With several outputs (in order of ascending row length), the longest rows are filled first, and shorter sequences
    fill their gaps. A row without any sequence longer than the next shorter row length is not written: its sequences go
    to the shorter rows.
    """

    def __init__(
        self, packing: Packing, window_tokens: int, outputs: Sequence[Output], lost: Counter[str], align_bos: bool
    ) -> None:
        self.packing, self.window_tokens, self.outputs = packing, window_tokens, outputs
        self.lost, self.align_bos = lost, align_bos
        self._waiting: list[Sequences] = []
        self._tokens = 0
        self._best_fit_rows = 0
        self._sides = outputs[0].writer.header.rows_per_unit
        if self._sides == 2:
            self.packing = "pad"

    def add(self, sequences: Sequences) -> None:
        """Add sequences. A window ends after the sequence that reaches `window_tokens`."""
        while len(sequences):
            ends = self._tokens + np.cumsum(sequences.length)
            count = int(np.searchsorted(ends, self.window_tokens)) + 1
            count = min(-(-count // self._sides) * self._sides, len(sequences))
            self._waiting.append(sequences.take(slice(0, count)).alone())
            self._tokens = int(ends[count - 1])
            sequences = sequences.take(slice(count, None))
            if self._tokens >= self.window_tokens:
                self.flush(final=False)

    def flush(self, final: bool) -> None:
        """Write the rows of the window. With `wrap`, the tokens of a partly filled last row go to the next window,
        unless this is the `final` one."""
        if not self._waiting:
            return
        window = Sequences.join(self._waiting)
        self._waiting, self._tokens = [], 0
        for output, fitted in self._fitted(window):
            if self.packing == "wrap" and not final:
                full = np.bincount(fitted.row, fitted.length)[fitted.row] == output.stride
                self._keep(window, Fit(*_part(fitted, ~full)))
                fitted = Fit(*_part(fitted, full))
            if fitted.num_rows:
                _write(output, window, fitted)

    def other_rows(self, tokens: int) -> int:
        """How many of the longest rows `OTHER` fills with all sequences, which have so many tokens."""
        return self._best_fit_rows if self.packing == "wrap" else -(-tokens // self.outputs[-1].stride)

    def _fitted(self, window: Sequences) -> Iterator[tuple[Output, Fit]]:
        """The rows of each output, the longest row length first."""
        left = np.arange(len(window))
        unit = window.length.reshape(-1, self._sides).max(axis=1).repeat(self._sides)  # a pair goes to one output
        for shorter, output in zip([None, *self.outputs][-2::-1], self.outputs[::-1], strict=True):
            fitted = fit(window.length[left], output.stride, self.packing, self.align_bos)
            if self.packing == "wrap":
                self._best_fit_rows += fit(_pieces(window.length, output.stride)[2], output.stride, "best_fit").num_rows
            cut_off = int(window.length[left].sum() - fitted.length.sum())
            self.lost.update({TRUNCATED: cut_off} if cut_off else {})
            if shorter is not None:
                needed = unit[left][fitted.sequence] > shorter.stride
                stays = np.bincount(fitted.row, needed, fitted.num_rows)[fitted.row] > 0
                rest = np.sort(left[fitted.sequence[~stays]])
                fitted = Fit(*_part(fitted, stays))
                _, rows = np.unique(fitted.row, return_inverse=True)
                fitted = Fit(left[fitted.sequence], fitted.offset, fitted.length, rows)
                left = rest
            else:
                fitted = Fit(left[fitted.sequence], fitted.offset, fitted.length, fitted.row)
            yield output, fitted

    def _keep(self, window: Sequences, fitted: Fit) -> None:
        left = _placed(window, fitted)
        if len(left):
            self._waiting, self._tokens = [Sequences.join([left.alone()])], int(left.length.sum())


def _write(output: Output, window: Sequences, fitted: Fit) -> None:
    from datakit.pack import _kernels_fit as kernels

    pieces, header = _placed(window, fitted), output.writer.header
    rows, tokens = fitted.num_rows, int(fitted.length.sum())
    labels = np.empty(tokens if header.labelled else 0, np.int32)
    segments = np.empty(len(pieces) + rows, np.int32)
    label_counts, segment_counts = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    places = np.empty(len(pieces), np.int64)
    kernels.lay_out(
        pieces.mask, pieces.start, pieces.length, fitted.row,
        labels, label_counts, segments, segment_counts, places,
    )  # fmt: skip
    sources = np.empty(len(pieces), SOURCE_DTYPE)
    sources["row_key"], sources["start"], sources["tokens"] = pieces.row_key, pieces.offset, pieces.length
    sources["row"], sources["segment"] = fitted.row + output.packed_rows, places
    sources["head"] = pieces.head
    labels = labels[: int(label_counts.sum())]
    ids = _ids(output.writer, pieces, fitted)
    output.writer.append(ids, labels, label_counts, segments, segment_counts, sources)
    output.packed_rows += rows
    output.sequences += len(pieces)
    output.tokens += tokens
    output.labels += len(labels) if header.labelled else tokens - len(pieces)


def _ids(writer: RowWriter, pieces: Sequences, fitted: Fit) -> npt.NDArray[np.int32]:
    """The ids of the rows: int32 (rows, stride) with padding, or the real tokens, flat."""
    from datakit.pack import _kernels_fit as kernels

    if not writer.padded:
        flat = np.empty(int(pieces.length.sum()), np.int32)
        kernels.copy_flat(pieces.ids, pieces.start, pieces.length, flat)
        return flat
    ids_NS = np.full((fitted.num_rows, writer.header.stride), writer.header.pad_id, np.int32)
    kernels.copy_rows(pieces.ids, pieces.start, pieces.length, fitted.row, ids_NS)
    return ids_NS


def _part(fitted: Fit, which: Any) -> Iterator[Any]:
    return (a[which] for a in (fitted.sequence, fitted.offset, fitted.length, fitted.row))


def _placed(window: Sequences, fitted: Fit) -> Sequences:
    """The fitted pieces as sequences, in the order of their rows."""
    whole = window.take(fitted.sequence)
    start, offset = whole.start + fitted.offset, whole.offset + fitted.offset
    return Sequences(window.ids, window.mask, start, fitted.length, whole.row_key, offset, whole.head)


@dataclass(slots=True)
class PackResult:
    """Files, counts and dropped rows of a pack run."""

    files: list[str]
    """Relative to the output folder."""
    rows: Count
    """Rows of the dataset (not packed rows)."""
    tokens: Count
    sets: dict[str, dict[str, Any]]
    """Headers with prefixes: `packed`, and `validation` if there is one. Several row lengths make a list `buckets`."""
    facts: dict[str, Any]
    dropped: list[pa.RecordBatch]
    """The dropped rows, with `stage`, `reason` and `detail`."""
    alarms: list[str]

    @property
    def header(self) -> dict[str, Any]:
        """The header of the training set."""
        return self.sets["packed"]


@dataclass(slots=True)
class _Work:
    """The state of a pack run."""

    limits: Limits
    labelled: bool
    packers: dict[str, Packer]
    """By split: `train`, and `validation` if the config asks for one."""
    lost: Counter[str]
    """Dropped tokens by reason."""
    gone: Counter[str] = field(default_factory=Counter)
    """Dropped rows by reason."""
    dropped: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    tokens: int = 0
    repeated: int = 0
    """Tokens in further sequences of their row; they are no part of the ledger's balance."""
    sizes: Counter[int] = field(default_factory=Counter)

    def outputs(self) -> Iterator[Output]:
        """The outputs of all packers."""
        return chain.from_iterable(p.outputs for p in self.packers.values())


@dataclass(frozen=True, slots=True)
class Pack(Stage):
    """The stage: packs the rows of a tokenized dataset."""

    name: ClassVar[str] = "pack"
    Config: ClassVar[type] = PackConfig
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "all"
    guards_rows: ClassVar[bool] = True
    takes_tokens: ClassVar[bool] = True
    directly_after: ClassVar[str] = "tokenize"
    input_flags: ClassVar[tuple[str, ...]] = ("tokenizer", "chat_template", "template_var", "thinking", "train_on")
    help: ClassVar[str] = "Rows have seq_len + 1 tokens. Raw files are tokenized first."

    config: PackConfig

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Write the packed sets and a copy of the tokenizer."""
        source = parents[0]
        facts = source.manifest.facts["tokenizer"]
        files = [s.path for s in source.manifest.of_role("kept") if s.path.endswith("tokenizer/tokenizer.json")]
        folders = [(data_dir(source.path, source.manifest) / path).parent for path in files]
        packed = self.run(rows, folder, facts, folders[0] if folders else None)
        copied = []
        for shard in source.manifest.of_role("kept"):
            path = PurePosixPath(shard.path)
            if path.parent.name == "tokenizer":
                check_shards(data_dir(source.path, source.manifest), [shard])
                target = f"{FOLDER}/tokenizer/{path.name}"
                (folder / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(data_dir(source.path, source.manifest) / shard.path, folder / target)
                copied.append(target)
        return Made(
            files=(*packed.files, *sorted(copied)),
            rows=packed.rows,
            tokens=packed.tokens,
            dropped=packed.dropped,
            facts={
                "tokenizer": facts | {"files": sorted(copied)},
                **packed.sets,
                "packing": packed.facts,
                **({"alarms": packed.alarms} if packed.alarms else {}),
            },
        )

    def run(
        self,
        batches: Iterable[pa.RecordBatch],
        out: Path,
        tokenizer_facts: dict[str, Any],
        tokenizer: Path | None = None,
    ) -> PackResult:
        """Write `out/kept/train.*` (and `validation.*`) from token rows in order.

        `tokenizer_facts` has `vocab_size`, `pad_id` and `eos_id`; `tokenizer` is the folder whose template wrote the
        rows, which shows where turns begin. The first batch with rows decides the task: pretrain,
        sft or dpo.

        Raises:
            InputError: labelled rows follow a first batch of plain text, the format cannot store such rows, or
                `wrap` with `align_bos` would cut labels off.
        """
        source = (batch for batch in batches if batch.num_rows)
        first = next(source, None)
        task = _task(first)
        work = self._begin(out, task, tokenizer_facts)
        if work.limits.overflow == "split_turns" and tokenizer is not None:
            work.limits = replace(work.limits, marks=TurnMarks.of(tokenizer))
        for batch, owner, found in _cut_ahead(() if first is None else chain([first], source), work):
            self._add(batch, owner, found, work)
        for packer in work.packers.values():
            packer.flush(final=True)
        return _result(out, work)

    def _begin(self, out: Path, task: Task, tokenizer: dict[str, Any]) -> _Work:
        config, lost = self.config, Counter[str]()
        if config.align_bos and config.packing == "wrap" and task != "pretrain":
            raise InputError("pack: wrap with align_bos would cut answers off; pack conversations with best_fit")
        headers = [_header(config, length, task, tokenizer) for length in config.row_lengths]
        packing = "pad" if config.format == "megatron" else config.packing  # Megatron's loader joins and cuts
        packers = {}
        for name in ("train", "validation")[: 1 + (config.validation > 0)]:
            outputs = []
            for header in headers:
                stem = name if len(headers) == 1 else f"{name}-{header.seq_len}"
                outputs.append(Output(stem, open_writer(out / FOLDER / stem, header)))
            packers[name] = Packer(packing, config.window_tokens, outputs, lost, config.align_bos)
        return _Work(_limits(config, task, headers[-1].stride), task != "pretrain", packers, lost)

    def _add(self, batch: pa.RecordBatch, owner: Int64, found: CutBatch, work: _Work) -> None:
        lost: dict[int, tuple[str | None, str | None]] = {}
        for row, why in zip(owner.tolist(), zip(found.reasons, found.details, strict=True), strict=True):
            lost[row] = why if lost.get(row, why)[0] is not None else (None, None)  # dropped if all its sequences are
        told = [
            pa.array([lost.get(row, (None, None))[i] for row in range(batch.num_rows)], pa.string()) for i in (0, 1)
        ]
        _, gone = split(batch, Decision(*told), self.name)
        if gone.num_rows:
            work.dropped.append(gone)
        work.gone.update(why for why, _ in lost.values() if why is not None)
        work.lost.update(found.lost)
        work.rows += batch.num_rows
        work.tokens += found.into
        work.repeated += found.repeated
        work.sizes.update(found.sizes)
        for name, chosen in self._splits(batch, found.sequences):
            work.packers[name].add(chosen)

    def _splits(self, batch: pa.RecordBatch, sequences: Sequences) -> Iterator[tuple[str, Sequences]]:
        """The sequences of each split, chosen by the content hash of their rows."""
        if not self.config.validation:
            yield "train", sequences
            return
        held_out = held_out_rows(batch.column("content_hash"), self.config.validation)
        of_validation = np.isin(sequences.row_key, batch.column("row_key").to_numpy()[held_out])
        yield "train", sequences.take(~of_validation)
        yield "validation", sequences.take(of_validation)


def _cut_ahead(batches: Iterable[pa.RecordBatch], work: _Work) -> Iterator[tuple[pa.RecordBatch, Int64, CutBatch]]:
    """Each batch, the row of each of its sequences, and these cut, in order. Some batches ahead are cut by as many
    threads as there are cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    waiting = deque[tuple[pa.RecordBatch, Future[tuple[Int64, CutBatch]]]]()

    def work_on(batch: pa.RecordBatch) -> tuple[Int64, CutBatch]:
        sequences, owner = each_sequence(batch)
        return owner, cut(sequences, work.limits, work.labelled)

    with ThreadPoolExecutor(cores) as pool:
        for batch in batches:
            if not work.labelled and batch.column("label_spans").null_count < batch.num_rows:
                raise InputError("pack: labelled rows follow plain text; pack conversations and plain text separately")
            waiting.append((batch, pool.submit(work_on, batch)))
            if len(waiting) > cores:
                ready, made = waiting.popleft()
                yield ready, *made.result()
        for ready, made in waiting:
            yield ready, *made.result()


def held_out_rows(content_hash: pa.Array, share: float) -> npt.NDArray[np.bool_]:
    """The rows for the validation set, bool (rows,): content hash / 2**64 < share; hashes are strings of 16 hex digits.

    Rows of equal content go to the same set, and the set of a row does not depend on other rows.
    """
    limit = f"{int(share * (1 << 64)):016x}"  # strings of 16 hex digits have the order of their numbers
    below: npt.NDArray[np.bool_] = pc.less(content_hash, pa.scalar(limit)).to_numpy(zero_copy_only=False)
    return below


def _task(first: pa.RecordBatch | None) -> Task:
    """The training task, from the first batch with rows."""
    if first is not None and "rejected_ids" in first.schema.names:
        return "dpo"
    return "sft" if first is not None and first.column("label_spans").null_count < first.num_rows else "pretrain"


def _header(config: PackConfig, seq_len: int, task: Task, tokenizer: dict[str, Any]) -> Header:
    pad = tokenizer["pad_id"]
    eos = tokenizer["eos_id"]
    return Header(
        task=task,
        seq_len=seq_len,
        pad_id=0 if pad is None else pad,
        eos_id=(0 if pad is None else pad) if eos is None else eos,
        vocab_size=tokenizer["vocab_size"],
        labelled=task != "pretrain",
        ids_dtype=config.ids_dtype,
        rows_per_unit=2 if task == "dpo" else 1,
        format=config.format,
    )


def _limits(config: PackConfig, task: Task, stride: int) -> Limits:
    overflow: Literal["split_turns", "split", "truncate", "drop", "stream"]
    if task == "dpo":  # a pair can be truncated or dropped, but not split
        overflow = "drop" if config.overflow == "drop" else "truncate"
    elif config.packing == "wrap" or (config.format == "megatron" and config.overflow == "auto"):
        overflow = "stream"
    elif config.overflow == "auto":
        text: Literal["split", "truncate"] = "truncate" if config.align_bos else "split"
        overflow = "split_turns" if task == "sft" else text
    elif config.overflow == "split_turns" and task == "pretrain":
        overflow = "split"
    else:
        overflow = config.overflow
    return Limits(
        stride=stride,
        overflow=overflow,
        max_doc_tokens=config.max_doc_tokens,
        drop_long=config.drop_long,
        sides=2 if task == "dpo" else 1,
        long_answer=config.long_answer,
    )


def _result(out: Path, work: _Work) -> PackResult:
    for output in work.outputs():
        output.writer.close()
    lost = dict(sorted((+work.lost).items()))
    outputs = list(work.outputs())
    kept = sum(o.tokens for o in outputs) - work.repeated
    padding = sum(o.packed_rows * o.stride - o.tokens for o in outputs if o.writer.padded)
    facts = _counts(outputs)
    if work.repeated:
        facts["repeated_tokens"] = work.repeated
    if work.packers["train"].packing in OTHER:
        other = sum(p.other_rows(sum(o.tokens for o in p.outputs)) for p in work.packers.values())
        name, stride = OTHER[work.packers["train"].packing], outputs[-1].stride
        facts[f"density_{name}"] = round(sum(o.tokens for o in outputs) / (other * stride), 4) if other else 0.0
    if len(outputs) > 1:
        facts["sets"] = {o.name: _counts([o]) for o in outputs}
    return PackResult(
        files=sorted(f"{FOLDER}/{f.name}" for o in outputs for f in (out / FOLDER).glob(f"{o.name}.*")),
        rows=Count(into=work.rows, kept=work.rows - work.gone.total(), dropped=dict(sorted(work.gone.items()))),
        tokens=Count(into=work.tokens, kept=kept, dropped=lost, padding=padding),
        sets={_role(name): _described(out, packer.outputs) for name, packer in work.packers.items()},
        facts=facts,
        dropped=work.dropped,
        alarms=list(_alarms(work, lost)),
    )


def _alarms(work: _Work, lost: dict[str, int]) -> Iterator[str]:
    """What a user must know of the tokens that rows are too short for."""
    gone = sum(lost.get(reason, 0) for reason in (TRUNCATED, TOO_LONG, LONG_ANSWER, LONG_PROMPT))
    if gone > MAX_LOSS * work.tokens:
        whole = work.limits.overflow in ("drop", "split_turns") and work.limits.marks is not None
        enough = [seq_len_for(work.sizes, share, whole) for share in (0.95, 0.99)]
        yield (
            f"{gone:,} of {work.tokens:,} tokens ({gone / work.tokens:.1%}) are lost because they do not fit into rows "
            f"of {work.limits.stride - 1}; --seq-len {enough[0]} would keep 95%, --seq-len {enough[1]} 99%"
        )


def seq_len_for(sizes: Counter[int], share: float, whole: bool) -> int:
    """The least `seq_len`, a multiple of 64, with which this share of all tokens is kept.

    `sizes` counts sequences by length. With `whole`, longer sequences are lost as a whole, else what is behind the
    row's end.
    """
    length = np.array(sorted(sizes), np.int64)
    count = np.array([sizes[n] for n in length.tolist()], np.int64)
    inside = np.cumsum(length * count)
    longer = count.sum() - np.cumsum(count)
    kept = inside if whole else inside + longer * length
    needed = int(length[np.searchsorted(kept, share * inside[-1])])
    return -(-(needed - 1) // 64) * 64


def _role(name: str) -> str:
    return "packed" if name == "train" else name


def _described(out: Path, outputs: Sequence[Output]) -> dict[str, Any]:
    """The header of a split, for the manifest."""
    headers = []
    for output in outputs:
        meta = json.loads((out / FOLDER / f"{output.name}.meta.json").read_text(encoding="utf-8"))
        headers.append(meta | {"prefix": f"{FOLDER}/{output.name}"})
    if len(headers) == 1:
        found: dict[str, Any] = headers[0]
        return found
    return {"format": f"{headers[0]['format']} in {len(headers)} row lengths", "buckets": headers}


def _counts(outputs: list[Output]) -> dict[str, Any]:
    rows, sequences, tokens, labels = (
        sum(getattr(o, n) for o in outputs) for n in ("packed_rows", "sequences", "tokens", "labels")
    )
    slots = sum(o.tokens if o.writer.header.format == "megatron" else o.packed_rows * o.stride for o in outputs)
    return {
        "packed_rows": rows,
        "sequences": sequences,
        "density": round(tokens / slots, 4) if slots else 0.0,
        "label_tokens": labels,
        "label_share": round(labels / tokens, 4) if tokens else 0.0,
    }
