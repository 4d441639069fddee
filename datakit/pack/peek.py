"""A packed row as text, with what the model learns marked: for people."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from datakit.pack.chat import ChatTokenizer
from datakit.pack.format import Packed


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive tokens of one sequence that are all targets, or all not."""

    segment: int
    learnt: bool
    tokens: int
    text: str


def peek(packed: Packed, tokenizer: ChatTokenizer, row: int) -> list[Run]:
    """The runs of a packed row in order; padding is left out.

    Raises:
        IndexError: there is no such row.
    """
    if not 0 <= row < packed.header.num_samples:
        raise IndexError(f"row {row} of {packed.header.num_samples}")
    ids, bounds, labels = packed.ids[row], packed.segments_of(row), packed.labels_of(row)
    learnt = np.zeros(len(ids), bool)
    if labels is None:
        learnt[: bounds[-1]] = True
    else:
        learnt[labels + 1] = True
    learnt[bounds[:-1]] = False  # the first token of a sequence is given, never a target
    segment = np.searchsorted(bounds, np.arange(bounds[-1]), side="right") - 1
    changes = (np.diff(segment) != 0) | (np.diff(learnt[: bounds[-1]].astype(np.int8)) != 0)
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), int(bounds[-1])]
    return [
        Run(int(segment[a]), bool(learnt[a]), b - a, tokenizer.decode(ids[a:b].tolist())) for a, b in pairwise(edges)
    ]
