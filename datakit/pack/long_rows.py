"""Conversations longer than a row: cut between turns, with the system prompt at the start of each piece.

Where a user's turn begins is known from the ids: the template writes a header before it (`<|im_start|>user`) with a
special token, and the text of a row never becomes a special token. The header is found by rendering probes. What stands
before the first user's turn (the system prompt, the tools) is repeated in each piece without labels, so nothing is
learned twice. The model sees each piece as it would see a conversation that begins with that turn. A template that
writes the system prompt into the first user's turn (Gemma's, Mistral's) has nothing before it to repeat.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from datakit.errors import ModelError
from datakit.pack.chat import ChatTokenizer, RenderError, tracked_messages

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ranges = tuple[tuple[int, int], ...]

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
) -> tuple[list[Piece], Counter[str]]:
    """Pieces of at most `stride` tokens of a conversation, and the tokens that are in none, by reason.

    Whole exchanges (a user's turn up to the next) are joined while they fit. An exchange longer than a row is split
    behind its prompt, which each piece repeats, or dropped (`long_answer`). It is dropped as `long_prompt` where the
    prompt leaves no space for an answer.
    """
    starts = marks.starts(ids)
    if not len(starts):  # nobody asks: the row is cut as other long sequences are
        return [Piece((), 0, stride)], Counter({TRUNCATED: len(ids) - stride})
    edges = [*starts.tolist(), len(ids)]
    first, why = edges[0], LONG_ANSWER if long_answer == "drop" else LONG_PROMPT
    head: Ranges = ((0, first),) if first else ()
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
    else:
        lost[why] += first
    return pieces, +lost


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
