"""Ids that stand more than once, found by ranges of hashes."""

import random

import numpy as np
import pytest

from datakit.read import stage as ingest


@pytest.mark.parametrize("at_once", [1, 7, 1 << 22])
def test_repeated_hashes_are_found_whatever_the_ranges(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    rng = random.Random(at_once)
    values = [0, 0, 2**64 - 1, 2**64 - 1, *(rng.getrandbits(64) for _ in range(50)), *range(9), 5]
    rng.shuffle(values)
    units = [np.array(values[begin : begin + 20], np.uint64) for begin in range(0, len(values), 20)]
    monkeypatch.setattr(ingest, "HASHES_AT_ONCE", at_once)
    assert sorted(ingest.repeated_hashes(units).tolist()) == [0, 5, 2**64 - 1]
    assert ingest.repeated_hashes([]).tolist() == []
