"""AUC, thresholds and calibration beside plain Python and scipy."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from datakit.filter.calibration import (
    LEAST_ROWS,
    auc,
    best_f1,
    curve,
    fit,
    held_out_error,
    least_with_precision,
)

ROWS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60)


def arrays(rows):
    return np.array([s / 20 for s, _ in rows], float), np.array([p for _, p in rows], bool)


@given(ROWS)
def test_auc_is_the_share_of_pairs_in_order(rows):
    scores, positive = arrays(rows)
    pairs = [(a > b) + (a == b) / 2 for a, b in itertools.product(scores[positive], scores[~positive])]
    assert auc(scores, positive) == (pytest.approx(np.mean(pairs), abs=6e-5) if pairs else None)


@given(ROWS)
def test_thresholds_count_the_rows(rows):
    scores, positive = arrays(rows)
    points = curve(scores, positive)
    for point in points:
        stays = [s >= point.min_score for s in scores]
        assert point.true_positive == sum(a and b for a, b in zip(stays, positive, strict=True))
        assert point.false_positive == sum(a and not b for a, b in zip(stays, positive, strict=True))
        assert point.false_negative + point.true_positive == positive.sum()
        assert point.true_negative + point.false_positive == (~positive).sum()
    best = best_f1(points)
    assert best.f1 == max(p.f1 for p in points)
    found = least_with_precision(points, 0.7)
    enough = [p.min_score for p in points if (p.precision or 0) >= 0.7]
    assert (found.min_score if found else None) == (min(enough) if enough else None)


def sample(rows, seed=1, sharpness=3.0):
    """Scores of a model that is too sure by a factor of `sharpness`, and which rows are wanted."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 1.5, rows)
    positive = rng.random(rows) < 1 / (1 + np.exp(-logit))
    return (1 / (1 + np.exp(-sharpness * logit))).astype(np.float32), positive


def test_the_sigmoid_is_the_one_with_the_least_loss():
    scores, positive = sample(400)
    found = fit(scores, positive)
    p = np.clip(scores.astype(float), 1e-5, 1 - 1e-5)
    x, up, down = np.log(p / (1 - p)), int(positive.sum()), int((~positive).sum())
    targets = np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))

    def loss(values):
        z = values[0] * x + values[1]
        return (np.logaddexp(0, z) - targets * z).sum()

    expected = scipy.optimize.minimize(loss, [1.0, 0.0], method="BFGS").x
    assert (found.slope, found.intercept) == (
        pytest.approx(expected[0], abs=1e-3),
        pytest.approx(expected[1], abs=1e-3),
    )
    assert found.slope == pytest.approx(1 / 3, abs=0.08)


def test_a_model_that_is_too_sure_is_mended_and_the_order_stays():
    scores, positive = sample(3000)
    before, after = held_out_error(scores, positive)
    assert before > 0.1 and after < 0.03
    fitted = fit(scores, positive).apply(scores)
    assert scipy.stats.spearmanr(scores, fitted).statistic == pytest.approx(1, abs=1e-4)
    assert ((fitted > 0) & (fitted < 1)).all()


def test_too_few_rows_and_a_model_worse_than_chance_have_no_calibration():
    scores, positive = sample(200)
    assert fit(scores, ~positive) is None
    few = np.flatnonzero(positive)[: LEAST_ROWS - 1]
    some = np.concatenate([few, np.flatnonzero(~positive)])
    assert fit(scores[some], positive[some]) is None and held_out_error(scores[some], positive[some]) is None
    one = np.full(50, 0.5, np.float32)
    assert fit(one, np.arange(50) < 25) is None


def test_scores_that_separate_perfectly_stay_finite():
    positive = np.arange(40) < 20
    found = fit(np.where(positive, 1.00001, 0.0).astype(np.float32), positive)
    assert 0.9 < found.apply(np.array([1.0]))[0] < 1
