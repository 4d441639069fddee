"""A small exact 4-gram model over token ids: what local statistics alone predict.

Witten-Bell interpolation (Witten and Bell, 1991; Chen and Goodman, 1999): with c(h, w) occurrences of w after a history
h, c(h) in all, and t(h) different successors of h,

    p(w | h) = (c(h, w) + t(h) * p(w | h without its first token)) / (c(h) + t(h)),

down to 1 / vocabulary. Nothing is pruned or hashed. Price: one sort of the tokens for each order.

Shapes: N tokens of all sequences, one after another.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

ORDER = 4


@dataclass(frozen=True, slots=True)
class _Level:
    """The n-grams of one order. A key is number of the history * vocabulary + token."""

    keys: Int64
    """Ascending; the place of a key is the number of its n-gram, which is a history of the next order."""
    counts: Int64
    totals: Int64
    """c(h) of each history."""
    kinds: Int64
    """t(h) of each history."""

    def find(self, keys: Int64) -> Int64:
        """The number of each n-gram; -1 for one that was never seen."""
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """The counts of a training set."""

    vocab_size: int
    levels: tuple[_Level, ...]

    @classmethod
    def fit(cls, tokens_N: Int64, starts: Int64, vocab_size: int) -> Self:
        """Count the n-grams within sequences; `starts` are the places of their first tokens. N is at least 1."""
        levels, history_N = list[_Level](), np.zeros(len(tokens_N), np.int64)
        for _ in range(ORDER):
            known = history_N >= 0
            keys, counts = np.unique(history_N[known] * vocab_size + tokens_N[known], return_counts=True)
            if not len(keys):  # all sequences are shorter
                break
            histories = keys // vocab_size
            totals = np.bincount(histories, counts).astype(np.int64)
            levels.append(_Level(keys, counts, totals, np.bincount(histories)))
            history_N = _following(levels[-1], history_N, tokens_N, starts, vocab_size)
        return cls(vocab_size, tuple(levels))

    def bits(self, tokens_N: Int64, starts: Int64) -> Float64:
        """The bits that each token costs, (N,); a sequence's first token is predicted without a history."""
        p_N = np.full(len(tokens_N), 1 / self.vocab_size)
        history_N = np.zeros(len(tokens_N), np.int64)
        for level in self.levels:
            # a history that only ever ended a sequence has no successors: the shorter one decides
            known = np.flatnonzero((history_N >= 0) & (history_N < len(level.totals)))
            known = known[level.totals[history_N[known]] > 0]
            history = history_N[known]
            at = level.find(history * self.vocab_size + tokens_N[known])
            seen = np.where(at >= 0, level.counts[at], 0)
            total, kinds = level.totals[history], level.kinds[history]
            p_N[known] = (seen + kinds * p_N[known]) / (total + kinds)
            history_N = _following(level, history_N, tokens_N, starts, self.vocab_size)
        bits: Float64 = -np.log2(p_N)
        return bits


def _following(level: _Level, history_N: Int64, tokens_N: Int64, starts: Int64, vocab_size: int) -> Int64:
    """The history of each token for the next order: the n-gram that ends before it in its sequence, else -1."""
    ended_N = np.where(history_N >= 0, level.find(history_N * vocab_size + tokens_N), -1)
    after_N = np.append(-1, ended_N[:-1])
    after_N[starts] = -1
    return after_N
