"""Rows of token ids -> sequences that fit into packed rows. Whatever is longer is cut, and every lost token is counted.

Plain text is cut into pieces. Conversations are cut between turns, with the system prompt at the start of each piece.
Where a user's turn begins is known from the ids: the template writes a header before it (`<|im_start|>user`) with a
special token, and the text of a row never becomes a special token. The header is found by rendering probes. What stands
before the first user's turn (the system prompt, the tools) is repeated in each piece without labels, so nothing is
learned twice. The model sees each piece as it would see a conversation that begins with that turn. A template that
writes the system prompt into the first user's turn (Gemma's, Mistral's) has nothing before it to repeat.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.errors import ModelError
from datakit.pack.chat import ChatTokenizer, RenderError, tracked_messages
from datakit.stage import with_column

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Ranges = tuple[tuple[int, int], ...]

STARTS, FIRST = "sequence_starts", "first_token"
EMPTY, TOO_LONG, NO_LABELS = "empty", "too_long", "no_labels"
LongAnswer = Literal["split", "drop"]
TRUNCATED, LONG_ANSWER, LONG_PROMPT = "truncated", "long_answer", "long_prompt"
MIN_ANSWER_TOKENS = 16
"""An answer is split only if a row has so many tokens for a piece of it, beside its prompt."""


@dataclass(frozen=True, slots=True)
class TurnMarks:
    """The ids that begin a user's turn in one template, and those that begin a tool's result and look like a user's."""

    user: tuple[int, ...]
    tool: tuple[int, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> Self | None:
        """The marks of a tokenizer folder; None if its template writes no special token before a user's turn."""
        user, tool = _marks(str(folder))
        return cls(user, tool) if user else None

    def starts(self, ids: Int32) -> Int64:
        """The offsets at which users' turns begin."""
        found = _occurrences(ids, self.user)
        return np.setdiff1d(found, _occurrences(ids, self.tool)) if self.tool else found


@cache
def _marks(folder: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    try:
        tokenizer = ChatTokenizer.load(Path(folder))
        user = _header(tokenizer, {"role": "user", "content": "c"})
    except (ModelError, RenderError):
        return (), ()
    try:
        tool = _header(tokenizer, {"role": "tool", "content": "c"})
    except RenderError:
        tool = ()
    return user, tool if tool[: len(user)] == user and tool != user else ()


def _header(tokenizer: ChatTokenizer, message: dict[str, str]) -> tuple[int, ...]:
    """The ids that the template writes before a message that follows an answer, from their first special token on and
    without the last one if that is none: it may merge with the text. Empty without a special token."""
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    whole = tokenizer.render(tracked_messages([*turns, message]))
    text, spans = whole.text, [(a, b) for a, b, _ in whole.spans]
    (_, said), (begin, _) = spans[1], spans[-1]
    structure = [t for t in tokenizer.structure(whole).tokens if said <= t[0] and t[1] <= begin]
    ends = set(tokenizer.turn_end)
    opening = [t for i, t in enumerate(structure) if not (i < len(ends) and t[2] in ends)]
    if not opening:
        return ()
    pieces, at = list[int](), opening[0][0]
    for start, end, token in opening:
        pieces += tokenizer.encode_text(text[at:start]) if start > at else []
        pieces.append(token)
        at = end
    rest = tokenizer.encode_text(text[at:begin]) if begin > at else []
    return tuple(pieces + rest[:-1])


def _occurrences(ids: Int32, mark: Sequence[int]) -> Int64:
    """Where `mark` occurs in `ids`, ascending."""
    last = len(ids) - len(mark) + 1
    if last <= 0 or not mark:
        return np.empty(0, np.int64)
    found = np.flatnonzero(ids[:last] == mark[0])
    for i, token in enumerate(mark[1:], start=1):
        found = found[ids[found + i] == token]
    return found.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a conversation: the repeated ranges of its tokens, then its own range."""

    head: Ranges
    start: int
    end: int

    @property
    def head_tokens(self) -> int:
        """Number of repeated tokens."""
        return sum(b - a for a, b in self.head)


def split_turns(
    ids: Int32, learnt: Bools, stride: int, marks: TurnMarks, long_answer: LongAnswer
) -> tuple[list[Piece], Counter[str], Counter[int]]:
    """Pieces of at most `stride` tokens of a conversation; the tokens that are in none, by reason; and by the stride
    that they would need.

    Whole exchanges (a user's turn up to the next) are joined while they fit. An exchange longer than a row is split
    behind its prompt, which each piece repeats, or dropped (`long_answer`). It is dropped as `long_prompt` where the
    prompt leaves no space for an answer.
    """
    starts = marks.starts(ids)
    if not len(starts):  # nobody asks: the row is cut as other long sequences are
        cut_off = len(ids) - stride
        return [Piece((), 0, stride)], Counter({TRUNCATED: cut_off}), Counter({len(ids): cut_off})
    edges = [*starts.tolist(), len(ids)]
    first, why = edges[0], LONG_ANSWER if long_answer == "drop" else LONG_PROMPT
    head: Ranges = ((0, first),) if first else ()
    pieces, lost, needs, begin = list[Piece](), Counter[str](), Counter[int](), 0
    while begin < len(starts):
        end = int(np.searchsorted(edges, edges[begin] + stride - first, side="right")) - 1
        if end > begin:  # whole exchanges
            pieces.append(Piece(head, edges[begin], edges[end]))
        else:
            end = begin + 1
            made = list(_long(learnt, head, edges[begin], edges[end], stride)) if long_answer == "split" else []
            pieces += made
            if not made:
                lost[why] += edges[end] - edges[begin]
                needs[_needed(learnt, first, edges[begin], edges[end], long_answer)] += edges[end] - edges[begin]
        begin = end
    if pieces and pieces[0].start == first:
        pieces[0] = Piece((), 0, pieces[0].end)
    else:  # what stands before the first exchange is lost with it
        lost[why] += first
        needs[_needed(learnt, first, edges[0], edges[1], long_answer)] += first
    return pieces, +lost, needs


def _needed(learnt: Bools, head: int, start: int, end: int, long_answer: LongAnswer) -> int:
    """The least stride in which an exchange is not lost: whole, or its prompt and the first tokens of its answer."""
    labels = np.flatnonzero(learnt[start:end])
    if long_answer == "drop" or not len(labels):
        return head + end - start
    return min(head + int(labels[0]) + MIN_ANSWER_TOKENS, head + end - start)


def _long(learnt: Bools, head: Ranges, start: int, end: int, stride: int) -> Iterator[Piece]:
    """The pieces of one exchange that is longer than a row; none if its prompt leaves no space for an answer."""
    labels = np.flatnonzero(learnt[start:end])
    if not len(labels):
        return
    answer = start + int(labels[0])
    before = sum(b - a for a, b in head) + answer - start
    space = stride - before
    if space < min(MIN_ANSWER_TOKENS, max(stride // 4, 1)):
        return
    yield Piece(head, start, min(answer + space, end))
    for at in range(answer + space, end, space):
        yield Piece((*head, (start, answer)), at, min(at + space, end))


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
    fair: int = 0
    """Tokens that long enough rows would keep: those within `max_doc_tokens`, of rows with labels."""
    reach: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Of `truncate` and `drop`: sequences by the stride from which their row is kept, and by their length."""
    needs: Counter[int] = field(default_factory=Counter)
    """Tokens of exchanges that are lost, by the stride that they would need."""


def cut(batch: pa.RecordBatch, limits: Limits, labelled: bool) -> CutBatch:
    """Cut the rows of a batch into sequences. The two of a preference pair are next to each other: chosen, rejected.

    A row is dropped if it is empty, or if one of its sides is too long (`overflow = "drop"`, `drop_long`) or has no
    label token left after cutting. One side of a pair may be empty. If a row is split, its pieces without label tokens
    are dropped.
    """
    from datakit.pack import _kernels_fit as kernels

    flat = _flat(batch, limits.sides, labelled)
    size = flat.length.copy()
    work = CutBatch(flat, [None] * batch.num_rows, [None] * batch.num_rows, into=int(size.sum()))
    nothing = (size.reshape(-1, limits.sides) == 0).all(axis=1).repeat(limits.sides)
    kept = _drop(work, nothing, size, limits, EMPTY, "nothing to pack")
    cap, drops = (limits.max_doc_tokens or size.max(initial=0)), limits.drop_long
    kept &= _drop(work, size > cap, size, limits, TOO_LONG, f"max_doc_tokens is {cap}") if drops else True
    length = np.minimum(size, cap)
    truncates = limits.overflow == "truncate" or (limits.overflow == "split_turns" and limits.marks is None)
    if truncates or limits.overflow == "drop":
        fair, least = _least_strides(replace(flat, length=length), limits, labelled)
        fair &= kept
        work.reach.update(zip(least[fair].tolist(), length[fair].tolist(), strict=True))
        work.fair = int(length[fair].sum())
    else:
        work.fair = int(length[kept].sum())
    if limits.overflow == "drop":
        kept &= _drop(work, length > limits.stride, size, limits, TOO_LONG, f"a row holds {limits.stride}")
    elif truncates:
        length = np.minimum(length, limits.stride)
    work.lost[TRUNCATED] += int((size - length)[kept].sum())
    if limits.overflow == "split_turns" and labelled and (length > limits.stride).any():
        return _cut_turns(work, flat, length, kept, limits, batch)
    which, offset, run = split_lengths(length, limits.stride if limits.overflow in ("split", "split_turns") else 0)
    pieces = flat.take(which)
    pieces = replace(pieces, start=pieces.start + offset, length=run, offset=pieces.offset + offset)
    alive = kept[which]
    if labelled and limits.overflow != "stream":
        labels = kernels.count_labels(flat.mask, pieces.start, pieces.length)
        silent = (np.bincount(which, labels, len(size)) == 0) & (size > 0)
        cut_off = np.where(kept, length, size)
        kept &= _drop(work, silent & kept, cut_off, limits, NO_LABELS, "no label token is left within the limits")
        mute = kept[which] & (labels == 0) & (run > 0)
        work.lost[NO_LABELS] += int(run[mute].sum())
        alive = kept[which] & ~mute
    work.sequences = pieces.take(alive)
    work.lost = +work.lost
    return work


def _least_strides(flat: TokenSequences, limits: Limits, labelled: bool) -> tuple[npt.NDArray[np.bool_], Int64]:
    """Which sequences a long enough row keeps, bool (N,), and from which stride, int64 (N,): that of both sides of a
    pair. With `truncate` a label must be left of each, with `drop` all of it must fit."""
    least = flat.length if limits.overflow == "drop" else np.ones(len(flat), np.int64)
    found = np.ones(len(flat), np.bool_)
    if labelled:
        labels = np.append(np.flatnonzero(flat.mask), np.iinfo(np.int64).max)
        first = labels[np.searchsorted(labels, flat.start + 1)]  # the first token of a sequence is never a target
        found = (first < flat.start + flat.length) | (flat.length == 0)
        least = np.maximum(least, np.where(found & (flat.length > 0), first - flat.start + 1, 1))
    sides = (-1, limits.sides)
    return found.reshape(sides).all(axis=1).repeat(limits.sides), least.reshape(sides).max(axis=1).repeat(limits.sides)


def _cut_turns(
    work: CutBatch,
    flat: TokenSequences,
    length: Int64,
    kept: npt.NDArray[np.bool_],
    limits: Limits,
    batch: pa.RecordBatch,
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
            _, offset, run = split_lengths(length[row : row + 1], limits.stride)
            pieces, lost = [Piece((), int(a), int(a + n)) for a, n in zip(offset, run, strict=True)], Counter[str]()
        else:
            pieces, lost, needs = split_turns(tokens, learnt, limits.stride, limits.marks, limits.long_answer)
            work.needs.update(needs)
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
        rows.append(TokenSequences(flat.ids, flat.mask, starts, sizes, keys, offsets, heads))
        order.append(np.full(len(made), row))
    silent = kernels.count_labels(flat.mask, rows[0].start, rows[0].length) == 0
    for row in order[0][silent].tolist():
        work.reasons[row], work.details[row] = NO_LABELS, f"{length[row]} tokens; no label token among them"
        work.lost[NO_LABELS] += int(length[row])
    rows[0], order[0] = rows[0].take(~silent), order[0][~silent]
    names = ("start", "length", "row_key", "offset", "head")
    joined = {n: np.concatenate([getattr(r, n) for r in rows]) for n in names}
    sequences = TokenSequences(np.concatenate(ids), np.concatenate(masks), **joined)
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


def split_lengths(length: Int64, stride: int) -> tuple[Int64, Int64, Int64]:
    """Sequence, offset and length of each piece of at most `stride` tokens. 0: do not split."""
    if not stride:
        return np.arange(len(length)), np.zeros(len(length), np.int64), length
    count = -(-length // stride)
    which = np.repeat(np.arange(len(length)), count)
    offset = (np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)) * stride
    return which, offset, np.minimum(length[which] - offset, stride)


def _flat(batch: pa.RecordBatch, sides: int, labelled: bool) -> TokenSequences:
    """The sequences of a batch before cutting. For pairs, chosen and rejected alternate."""
    columns = [("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")][:sides]
    keys = batch.column("row_key").to_numpy(zero_copy_only=False).astype(np.uint64)
    parts = [_column(batch.column(ids), batch.column(spans), keys, labelled) for ids, spans in columns]
    if FIRST in batch.schema.names:
        return replace(parts[0], offset=batch.column(FIRST).to_numpy())
    if sides == 1:
        return parts[0]
    both = TokenSequences.join(parts)
    return both.take(np.arange(len(both)).reshape(sides, -1).T.ravel())


def _column(ids: pa.Array, spans: pa.Array, keys: npt.NDArray[np.uint64], labelled: bool) -> TokenSequences:
    length = pc.fill_null(pc.list_value_length(ids), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    start = np.cumsum(length) - length
    flat = ids.flatten().to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    mask = _mask(spans, start, length) if labelled else np.empty(0, np.uint8)
    return TokenSequences(flat, mask, start, length, keys, *np.zeros((2, len(keys)), np.int64))


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
