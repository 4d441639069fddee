"""A packed row as text, with what the model learns marked: for people."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from datakit.pack.chat import ChatTokenizer
from datakit.pack.rows import Rows

MAX_PIECE = 8
"""Tokens of a piece; a character has four bytes at most, so more than this never become one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The fewest tokens that make whole characters: one token as a rule."""

    text: str
    ids: tuple[int, ...]
    added: bool
    """An added token (`<|im_end|>`, `<think>`), not text."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive tokens of one sequence that are all targets, or all not."""

    segment: int
    learnt: bool
    tokens: int
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The tokens as text."""
        return "".join(p.text for p in self.pieces)


@dataclass(frozen=True, slots=True)
class Sequence:
    """One sequence of a packed row."""

    row_key: int
    start: int
    """Its first token within the tokens of its own row."""
    tokens: int
    labels: int
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """A packed row."""

    row: int
    sequences: tuple[Sequence, ...]
    padding: int

    @property
    def tokens(self) -> int:
        """Real tokens."""
        return sum(s.tokens for s in self.sequences)

    @property
    def labels(self) -> int:
        """Targets that count."""
        return sum(s.labels for s in self.sequences)


def peek(rows: Rows, tokenizer: ChatTokenizer, row: int) -> Look:
    """A packed row's sequences in order.

    Raises:
        IndexError: there is no such row.
    """
    if not 0 <= row < len(rows):
        raise IndexError(f"row {row} of {len(rows)}")
    ids, bounds, learnt = rows.ids_of(row), rows.segments_of(row), learnt_of(rows, row)
    first = int(np.searchsorted(rows.sources["row"], row))
    sources = rows.sources[first : first + len(bounds) - 1]
    sequences = [
        Sequence(
            int(source["row_key"]), int(source["start"]), int(b - a), int(learnt[a:b].sum()),
            tuple(_runs(tokenizer, i, ids[a:b], learnt[a:b])),
        )
        for i, (source, (a, b)) in enumerate(zip(sources, pairwise(bounds.tolist()), strict=True))
    ]  # fmt: skip
    return Look(row, tuple(sequences), rows.padding_of(row))


def learnt_of(rows: Rows, row: int) -> npt.NDArray[np.bool_]:
    """For each real token of a row whether it is a target that counts."""
    bounds, labels = rows.segments_of(row), rows.labels_of(row)
    learnt = np.full(int(bounds[-1]), labels is None)
    if labels is not None:
        learnt[labels + 1] = True
    learnt[bounds[:-1]] = False  # the first token of a sequence is given, never a target
    return learnt


def _runs(
    tokenizer: ChatTokenizer, segment: int, ids: npt.NDArray[np.int32], learnt: npt.NDArray[np.bool_]
) -> list[Run]:
    changes = (np.flatnonzero(np.diff(learnt.astype(np.int8))) + 1).tolist()
    edges = [0, *changes, len(ids)]
    found = iter(pieces(tokenizer, ids.tolist(), frozenset(edges)))
    runs, at = [], 0
    for a, b in pairwise(edges):
        own = []
        while at < b:
            own.append(next(found))
            at += len(own[-1].ids)
        runs.append(Run(segment, bool(learnt[a]), b - a, tuple(own)))
    return runs


def pieces(tokenizer: ChatTokenizer, ids: list[int], edges: frozenset[int] = frozenset()) -> list[Piece]:
    """The ids as pieces of whole characters; none reaches over an edge, even if that tears a character apart.

    A piece is what its ids add to the text of the piece before it: some decoders treat a first token differently.
    """
    known = frozenset(tokenizer.real_ids.values())
    made: list[Piece] = []
    before: list[int] = []
    own: list[int] = []
    for at, token in enumerate(ids, 1):
        own.append(token)
        added = token in known
        text = (tokenizer.token(token) or "") if added else _continued(tokenizer, before, own)
        torn = text.endswith("\ufffd") and at < len(ids) and ids[at] not in known and len(own) < MAX_PIECE
        if added or not torn or at in edges:
            made.append(Piece(text, tuple(own), added))
            before, own = own, []
    return made


def _continued(tokenizer: ChatTokenizer, before: list[int], own: list[int]) -> str:
    return tokenizer.decode(before + own)[len(tokenizer.decode(before)) :]
