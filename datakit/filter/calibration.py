"""How well scores tell wanted rows from others, on rows that the model has not seen, and what a score means.

Three things come from held-out rows: the area under the ROC curve (AUC: how often a wanted row scores higher than
another one), precision and recall at each threshold, and a calibration, after which rows with the score 0.8 are wanted
in 8 of 10 cases, where wanted rows are as frequent as among the examples.

The calibration is Platt's (Platt 1999; Newton's method as in Lin, Lin and Weng 2007): a sigmoid of the logit of the
model's probability. Isotonic regression fits any rising curve, but needs about a thousand held-out rows
(Niculescu-Mizil and Caruana 2005), and its steps give many rows one score: then the best tenth of all rows would be
chosen by their order. Two numbers fit on a hundred rows, and no two different scores become one.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEAST_ROWS: Final = 10
"""Held-out rows that each side must have for a calibration."""

_LIMIT: Final = 1e-5
"""fastText's probabilities are never nearer to 0, and exceed 1 by as much."""
_BINS: Final = 10


@dataclass(frozen=True, slots=True)
class Calibration:
    """Platt's sigmoid: 1 / (1 + exp(-(slope * logit + intercept)))."""

    slope: float
    intercept: float

    def apply(self, scores: NDArray[Any]) -> Scores:
        """float64[N], 0 to 1: calibrated probabilities."""
        return _sigmoid(self.slope * _logit(scores) + self.intercept)


def fit(scores: NDArray[Any], positive: Flags) -> Calibration | None:
    """The calibration of held-out rows; None with fewer than `LEAST_ROWS` on a side, or if higher scores are no better.

    `scores` are the model's probabilities, `positive` says which rows are wanted.
    """
    wanted, other = int(positive.sum()), int((~positive).sum())
    if min(wanted, other) < LEAST_ROWS:
        return None
    x, targets = _logit(scores), np.where(positive, (wanted + 1) / (wanted + 2), 1 / (other + 2))
    slope, intercept = 0.0, float(np.log((wanted + 1) / (other + 1)))
    loss = _loss(x, targets, slope, intercept)
    for _ in range(100):
        p = _sigmoid(slope * x + intercept)
        weight, rest = p * (1 - p), p - targets
        a, b, c = float((x * x * weight).sum()) + 1e-12, float((x * weight).sum()), float(weight.sum()) + 1e-12
        d, e = float((x * rest).sum()), float(rest.sum())
        if abs(d) < 1e-7 and abs(e) < 1e-7:
            break
        determinant = a * c - b * b
        step, shift = (c * d - b * e) / determinant, (a * e - b * d) / determinant
        size = 1.0
        while size > 1e-10:
            new = _loss(x, targets, slope - size * step, intercept - size * shift)
            if new < loss:
                break
            size /= 2
        else:
            break
        slope, intercept, loss = slope - size * step, intercept - size * shift, new
    # rounded, so that the last bits of sums do not decide
    return Calibration(round(slope, 6), round(intercept, 6)) if slope > 1e-6 else None


def _logit(scores: NDArray[Any]) -> Scores:
    p = np.clip(scores.astype(np.float64), _LIMIT, 1 - _LIMIT)
    return np.asarray(np.log(p) - np.log1p(-p))


def _sigmoid(x: Scores) -> Scores:
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))


def _loss(x: Scores, targets: Scores, slope: float, intercept: float) -> float:
    """Cross entropy of the sigmoid with the targets."""
    z = slope * x + intercept
    return float((np.logaddexp(0, z) - targets * z).sum())


def held_out_error(scores: NDArray[Any], positive: Flags) -> tuple[float, float] | None:
    """Expected calibration error (before, after) calibrating, each half of the rows by what was fitted on the other.

    The mean, over ten bins of equally many rows, of how far the mean score is from the share of wanted rows; rounded to
    1e-4. None where a half is too small.
    """
    half = np.zeros(len(scores), np.bool_)
    for side in (positive, ~positive):
        half[np.flatnonzero(side)[::2]] = True
    after = np.empty(len(scores))
    for part in (half, ~half):
        fitted = fit(scores[~part], positive[~part])
        if fitted is None:
            return None
        after[part] = fitted.apply(scores[part])
    return _error(np.clip(scores.astype(np.float64), 0, 1), positive), _error(after, positive)


def _error(scores: Scores, positive: Flags) -> float:
    order = np.argsort(scores, kind="stable")
    parts = [part for part in np.array_split(order, _BINS) if len(part)]
    apart = sum(len(part) * abs(scores[part].mean() - positive[part].mean()) for part in parts)
    return round(float(apart / len(scores)), 4)


def auc(scores: NDArray[Any], positive: Flags) -> float | None:
    """The area under the ROC curve, rounded to 1e-4, equal scores as a half; None where a side has no rows.

    Mann and Whitney 1947: the share of pairs of a wanted and another row in which the wanted one scores higher.
    """
    wanted, other = int(positive.sum()), int((~positive).sum())
    if not wanted or not other:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return round(float((ranks[positive].sum() - wanted * (wanted + 1) / 2) / (wanted * other)), 4)


# Thresholds.


@dataclass(frozen=True, slots=True)
class Point:
    """What a threshold keeps of the held-out rows: those that score at least `min_score`."""

    min_score: float
    true_positive: int
    """Wanted rows that stay."""
    false_positive: int
    false_negative: int
    true_negative: int

    @property
    def precision(self) -> float | None:
        """The share of wanted rows among those that stay; None where none stays."""
        kept = self.true_positive + self.false_positive
        return self.true_positive / kept if kept else None

    @property
    def recall(self) -> float | None:
        """The share of the wanted rows that stay; None where there are none."""
        wanted = self.true_positive + self.false_negative
        return self.true_positive / wanted if wanted else None

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 where no wanted row stays."""
        return 2 * self.true_positive / max(2 * self.true_positive + self.false_positive + self.false_negative, 1)

    @property
    def kept(self) -> float:
        """The share of all rows that stay."""
        total = self.true_positive + self.false_positive + self.false_negative + self.true_negative
        return (self.true_positive + self.false_positive) / total if total else 0.0


THRESHOLDS: Final = tuple(n / 100 for n in range(101))


def curve(scores: Scores, positive: Flags) -> list[Point]:
    """A point for each of `THRESHOLDS`."""
    found = []
    for least in THRESHOLDS:
        stays = scores >= least
        true = int((stays & positive).sum())
        false = int(stays.sum()) - true
        found.append(Point(least, true, false, int(positive.sum()) - true, int((~positive).sum()) - false))
    return found


def best_f1(points: list[Point]) -> Point:
    """The threshold with the highest F1; of equal ones the one in the middle, farthest from where rows change sides."""
    most = max(point.f1 for point in points)
    equal = [point for point in points if point.f1 == most]
    return equal[len(equal) // 2]


def least_with_precision(points: list[Point], wanted: float) -> Point | None:
    """The lowest threshold with at least a precision, which keeps most rows; None where there is none."""
    return next((p for p in points if p.precision is not None and p.precision >= wanted), None)
