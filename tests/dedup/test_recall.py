"""The share of similar pairs that become candidates follows the probability curve, on real pairs."""

from pathlib import Path

import numpy as np
import pytest

from bench.dedup_recall import Recall, measure

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


def test_twenty_seeds_are_off_by_no_more_than_chance(recall: Recall) -> None:
    """8 of 50 groups of 20 seeds are within 0.01 everywhere: pairs of a bin share documents (bench/LOG.md)."""
    for found in recall.bins(20):
        assert abs(found.share - found.expected) <= max(3.5 * found.standard_error, 0.002), found
