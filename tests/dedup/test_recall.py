"""The share of similar pairs that become candidates follows the probability curve, on real pairs."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from bench.dedup_recall import Recall, chance_of_a_band, measure

SEEDS = 200


@pytest.fixture(scope="module")
def recall(shared: Path) -> Recall:
    return measure(
        shared / "corpora/web/nodejs_13_versions_en.jsonl.zst",
        shared / "corpora/neardup/nodejs_versions_pairs.jsonl.zst",
        SEEDS,
    )


def test_our_similarity_is_the_stated_one(recall: Recall) -> None:
    assert np.abs(recall.similarity - recall.stated).max() <= 5.1e-5, "stated with four decimals"


def test_candidates_follow_the_curve_within_a_hundredth(recall: Recall) -> None:
    assert len(recall.bins()) == 20
    for found in recall.bins():
        assert abs(found.share - found.expected) <= 0.01, found


@pytest.mark.parametrize(("num_bands", "rows_per_band"), [(1, 1), (3, 1), (1, 3), (2, 2), (3, 2), (2, 3)])
def test_the_mean_over_all_groupings_is_that_of_trying_each(num_bands: int, rows_per_band: int) -> None:
    values = num_bands * rows_per_band
    chance = chance_of_a_band(num_bands, rows_per_band)
    for equal in range(values + 1):
        tried = [
            any(set(order[b : b + rows_per_band]) <= set(range(equal)) for b in range(0, values, rows_per_band))
            for order in permutations(range(values))
        ]
        assert chance[equal] == pytest.approx(sum(tried) / len(tried), abs=1e-12)
