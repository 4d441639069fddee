"""Rows of token ids -> sequences that fit into packed rows. Whatever is longer is cut, and every lost token is counted.

Plain text is cut into pieces. Conversations are cut between turns, in front of a user's turn: the column `turn_starts`
of token rows says where these begin (see `tokenize`). What stands before the first user's turn (the system prompt, the
tools) is repeated in each piece without labels, so nothing is learned twice. The model sees each piece as it would see
a conversation that begins with that turn. A template that writes the system prompt into the first user's turn (Gemma's,
Mistral's) has nothing before it to repeat.

All sequences of a batch are windows over flat arrays of ids and labels; pieces with repeated tokens are appended to
them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import TURN_STARTS

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

STARTS = "sequence_starts"
EMPTY, TOO_LONG, NO_LABELS = "empty", "too_long", "no_labels"
TRUNCATED, LONG_ANSWER, LONG_PROMPT = "truncated", "long_answer", "long_prompt"
LongAnswer = Literal["split", "drop"]
MIN_ANSWER_TOKENS = 16
"""An answer is split only if a row has so many tokens for a piece of it, beside its prompt."""


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


@dataclass(frozen=True, slots=True)
class TokenSequences:
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

    def take(self, which: Bools | Int64 | slice) -> Self:
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

    sequences: TokenSequences
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
    lengths: Counter[int] = field(default_factory=Counter)
    """How many sequences with labels have so many tokens, up to `max_doc_tokens`."""
    beyond: int = 0
    """Tokens of these that are lost because rows are too short."""


def count_labels(mask: Mask, start: Int64, length: Int64) -> Int64:
    """Label tokens of each window of a mask; the first token of a sequence is never a target."""
    before: Int64 = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
    counts: Int64 = before[start + length] - before[start + np.minimum(length, 1)]
    return counts


def cut(batch: pa.RecordBatch, limits: Limits, labelled: bool) -> CutBatch:
    """Cut the rows of a batch into sequences. The two of a preference pair are next to each other: chosen, rejected.

    A row is dropped if it is empty, or if one of its sides is too long (`overflow = "drop"`, `drop_long`) or has no
    label token left after cutting. One side of a pair may be empty. If a row is split, its pieces without label tokens
    are dropped. A row of several sequences is dropped if all of these are.
    """
    flat, rows = sequences_of(batch, limits.sides, labelled)
    size, cap = flat.length, limits.max_doc_tokens or int(flat.length.max(initial=0))
    length = np.minimum(size, cap)
    reasons = np.full(len(flat), "", object)  # "" keeps a sequence

    def drop(bad: Bools, reason: str) -> Bools:
        """Drop sequences, of pairs with the other side."""
        bad = bad.reshape(-1, limits.sides).any(axis=1).repeat(limits.sides) & (reasons == "")
        reasons[bad] = reason
        return bad

    drop((size.reshape(-1, limits.sides) == 0).all(axis=1).repeat(limits.sides), EMPTY)
    drop(limits.drop_long & (size > cap), TOO_LONG)
    work = CutBatch(flat, [], [], into=int(size.sum()))
    has_labels = count_labels(flat.mask, flat.start, length) > 0 if labelled else length > 0
    fair = has_labels & (reasons == "")
    work.lengths.update(length[fair].tolist())
    whole = int(length[fair].sum())
    drop((limits.overflow == "drop") & (length > limits.stride), TOO_LONG)
    for reason in (EMPTY, TOO_LONG):
        work.lost[reason] += int(size[reasons == reason].sum())
    kept = reasons == ""
    work.lost[TRUNCATED] += int((size - length)[kept].sum())
    if limits.overflow == "truncate":
        work.lost[TRUNCATED] += int(np.maximum(length - limits.stride, 0)[kept].sum())
        length = np.minimum(length, limits.stride)
    # Pieces of sequences: of each the number of its sequence, its first token there, and its own tokens.
    splits = limits.overflow in ("split", "split_turns")
    which, offset, run = split_lengths(length, limits.stride if splits else 0)
    pieces = flat.take(which)
    pieces = replace(pieces, start=pieces.start + offset, length=run, offset=pieces.offset + offset)
    why = np.full(len(flat), NO_LABELS, object)
    if limits.overflow == "split_turns" and labelled:
        has_turns = batch.column("label_spans").is_valid().to_numpy(zero_copy_only=False)[rows]
        long = np.flatnonzero(kept & (length > limits.stride) & has_turns)
        by_turns, of_long = _cut_turns(flat, length, long, _turn_starts(batch), limits, work, why)
        others = ~np.isin(which, long)
        pieces = TokenSequences.join([pieces.take(others), by_turns]) if len(long) else pieces
        which = np.concatenate([which[others], of_long])
        order = np.argsort(which, kind="stable")
        pieces, which = pieces.take(order), which[order]
    alive = kept[which]
    own = pieces.length - pieces.head
    if labelled and limits.overflow != "stream":
        says = alive & (count_labels(pieces.mask, pieces.start, pieces.length) > 0)
        silent = kept & (size > 0) & (np.bincount(which[says], minlength=len(flat)) == 0)
        gone = drop(silent, NO_LABELS)
        reasons[gone] = why[gone]
        says = ~gone[which] & (says | (alive & (own == 0)))
        work.lost[NO_LABELS] += int(own[alive & ~says].sum())
        alive = says
    work.sequences, work.lost = pieces.take(alive), +work.lost
    work.repeated = int(work.sequences.head.sum())
    work.beyond = whole - int(own[alive & fair[which]].sum())
    work.reasons, work.details = _of_rows(batch.num_rows, rows, reasons, size, limits)
    return work


def _of_rows(
    num_rows: int, rows: Int64, reasons: npt.NDArray[np.object_], size: Int64, limits: Limits
) -> tuple[list[str | None], list[str | None]]:
    """The reason and the detail of each row: it is dropped if all its sequences are."""
    kept = np.bincount(rows[(reasons == "")], minlength=num_rows) > 0
    found: list[str | None] = [None] * num_rows
    details: list[str | None] = [None] * num_rows
    for k in np.flatnonzero(~kept[rows]).tolist():
        row = int(rows[k])
        sides = " and ".join(map(str, size[rows == row] if limits.sides == 2 else [size[k]]))
        by_cap = limits.drop_long and reasons[k] == TOO_LONG and size[k] > limits.max_doc_tokens
        limit = f"max_doc_tokens is {limits.max_doc_tokens}" if by_cap else f"a row holds {limits.stride}"
        found[row], details[row] = reasons[k], f"{sides} tokens; {limit}"
    return found, details


def split_lengths(length: Int64, stride: int) -> tuple[Int64, Int64, Int64]:
    """Sequence, offset and length of each piece of at most `stride` tokens. 0: do not split."""
    if not stride:
        return np.arange(len(length)), np.zeros(len(length), np.int64), length
    count = np.maximum(-(-length // stride), 1)
    which = np.repeat(np.arange(len(length)), count)
    offset = (np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)) * stride
    return which, offset, np.minimum(length[which] - offset, stride)


# ---------------------------------------------------------------------- conversations, between turns


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a conversation: the repeated ranges of its tokens, then its own range."""

    head: tuple[tuple[int, int], ...]
    start: int
    end: int


def split_turns(learnt: Bools, starts: Int64, stride: int, long_answer: LongAnswer) -> tuple[list[Piece], Counter[str]]:
    """Pieces of at most `stride` tokens of a conversation whose users' turns begin at `starts`; the tokens that are in
    none, by reason. `learnt`, bool (tokens,), says which tokens are labels.

    Whole exchanges (a user's turn up to the next) are joined while they fit. An exchange longer than a row is split
    behind its prompt, which each piece repeats, or dropped (`long_answer`). It is dropped as `long_prompt` where the
    prompt leaves no space for an answer. Where no turn is known, the row is truncated.
    """
    if not len(starts):
        return [Piece((), 0, stride)], Counter({TRUNCATED: len(learnt) - stride})
    edges = [*starts.tolist(), len(learnt)]
    first, why = edges[0], LONG_ANSWER if long_answer == "drop" else LONG_PROMPT
    head = ((0, first),) if first else ()
    pieces, lost, begin = list[Piece](), Counter[str](), 0
    while begin < len(starts):
        end = int(np.searchsorted(edges, edges[begin] + stride - first, side="right")) - 1
        if end > begin:  # whole exchanges
            pieces.append(Piece(head, edges[begin], edges[end]))
        else:
            end = begin + 1
            made = list(_long(learnt, head, edges[begin], edges[end], stride)) if long_answer == "split" else []
            pieces += made
            lost[why] += 0 if made else edges[end] - edges[begin]
        begin = end
    if pieces and pieces[0].start == first:
        pieces[0] = Piece((), 0, pieces[0].end)
    else:  # what stands before the first exchange is lost with it
        lost[why] += first
    return pieces, +lost


def _long(learnt: Bools, head: tuple[tuple[int, int], ...], start: int, end: int, stride: int) -> Iterator[Piece]:
    """The pieces of one exchange that is longer than a row; none if its prompt leaves no space for an answer."""
    labels = np.flatnonzero(learnt[start:end])
    if not len(labels):
        return
    answer = start + int(labels[0])
    space = stride - sum(b - a for a, b in head) - (answer - start)
    if space < min(MIN_ANSWER_TOKENS, max(stride // 4, 1)):
        return
    yield Piece(head, start, min(answer + space, end))
    for at in range(answer + space, end, space):
        yield Piece((*head, (start, answer)), at, min(at + space, end))


def _cut_turns(
    flat: TokenSequences, length: Int64, long: Int64, turn_starts: Int64, limits: Limits, work: CutBatch,
    why: npt.NDArray[np.object_],
) -> tuple[TokenSequences, Int64]:  # fmt: skip
    """Pieces of the conversations `long`, and the sequence of each. Counts what is lost in `work`, and writes into
    `why` for what most tokens of a conversation are lost.

    The first own token behind repeated ones is no target: what stands before it is not what it follows.
    """
    ids, masks = [np.empty(0, np.int32)], [np.empty(0, np.uint8)]
    parts: list[tuple[int, int, int, int]] = []
    """By piece: its sequence, tokens, offset behind the head, and tokens in the head."""
    for k in long.tolist():
        window = slice(int(flat.start[k]), int(flat.start[k] + length[k]))
        tokens, mask = flat.ids[window], flat.mask[window]
        starts = turn_starts[(turn_starts >= window.start) & (turn_starts < window.stop)] - window.start
        pieces, lost = split_turns(mask.astype(bool), starts, limits.stride, limits.long_answer)
        work.lost.update(lost)
        if lost:
            why[k] = max(lost, key=lambda reason: lost[reason])
        for piece in pieces:
            head = [tokens[a:b] for a, b in piece.head]
            own = mask[piece.start : piece.end].copy()
            own[: 1 if head else 0] = 0
            repeated = sum(map(len, head))
            ids += [*head, tokens[piece.start : piece.end]]
            masks += [np.zeros(repeated, np.uint8), own]
            parts.append((k, repeated + len(own), int(flat.offset[k]) + piece.start, repeated))
    which, sizes, offsets, heads = np.array(parts, np.int64).reshape(-1, 4).T
    starts = np.cumsum(sizes) - sizes
    made = TokenSequences(
        np.concatenate(ids), np.concatenate(masks), starts, sizes, flat.row_key[which], offsets, heads
    )
    return made, which


# ---------------------------------------------------------------------- from Arrow


def sequences_of(batch: pa.RecordBatch, sides: int, labelled: bool) -> tuple[TokenSequences, Int64]:
    """The sequences of a batch before cutting, and the row of each, int64. For pairs, chosen and rejected alternate."""
    keys = batch.column("row_key").to_numpy(zero_copy_only=False).astype(np.uint64)
    columns = [("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")][:sides]
    parts = [_column(batch.column(ids), batch.column(spans), keys, labelled) for ids, spans in columns]
    rows = np.arange(batch.num_rows)
    if sides == 2:
        both = TokenSequences.join(parts)
        return both.take(np.arange(len(both)).reshape(sides, -1).T.ravel()), rows.repeat(2)
    flat = parts[0]
    if STARTS not in batch.schema.names:
        return flat, rows
    # the tokenize stage puts the sequences of a row one after the other
    column = batch.column(STARTS)
    rows = rows.repeat(list_lengths(column))
    offset = column.flatten().to_numpy().astype(np.int64)
    start = flat.start[rows] + offset
    length = np.diff(np.append(start, len(flat.ids)))
    zeros = np.zeros_like(start)
    return TokenSequences(flat.ids, flat.mask, start, length, keys[rows], offset, zeros), rows


def _column(ids: pa.Array, spans: pa.Array, keys: npt.NDArray[np.uint64], labelled: bool) -> TokenSequences:
    length = list_lengths(ids)
    start = np.cumsum(length) - length
    flat = ids.flatten().to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    mask = _mask(spans, start, length) if labelled else np.empty(0, np.uint8)
    return TokenSequences(flat, mask, start, length, keys, *np.zeros((2, len(keys)), np.int64))


def _mask(spans: pa.Array, start: Int64, length: Int64) -> Mask:
    """1 for each label token. All tokens of a row without spans (plain text among conversations) are labels."""
    base = np.repeat(start, list_lengths(spans))
    first, last = (spans.flatten().field(i).to_numpy(zero_copy_only=False) + base for i in (0, 1))
    whole = spans.is_null().to_numpy(zero_copy_only=False)
    changes = np.zeros(int(length.sum()) + 1, np.int8)  # spans of a row neither overlap nor repeat
    np.add.at(changes, np.concatenate([first, start[whole]]), 1)
    np.add.at(changes, np.concatenate([last, (start + length)[whole]]), -1)
    return np.cumsum(changes[:-1], dtype=np.int8).view(np.uint8)


def _turn_starts(batch: pa.RecordBatch) -> Int64:
    """The tokens, among all of a batch, at which users' turns begin; ascending."""
    if TURN_STARTS not in batch.schema.names:
        return np.empty(0, np.int64)
    length, column = list_lengths(batch.column("input_ids")), batch.column(TURN_STARTS)
    before = np.repeat(np.cumsum(length) - length, list_lengths(column))
    found: Int64 = before + column.flatten().to_numpy(zero_copy_only=False)
    return found


def list_lengths(lists: pa.Array) -> Int64:
    """The lengths of lists, int64; 0 for null."""
    found: Int64 = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return found
