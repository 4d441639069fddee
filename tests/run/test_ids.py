"""Ids that stand more than once, found by ranges of hashes."""

import random
from pathlib import Path

import numpy as np
import pytest
from datakit.run import ingest


@pytest.mark.parametrize("at_once", [1, 7, 1 << 22])
def test_repeated_hashes_are_found_whatever_the_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    rng = random.Random(at_once)
    values = [0, 0, 2**64 - 1, 2**64 - 1, *(rng.getrandbits(64) for _ in range(50)), *range(9), 5]
    rng.shuffle(values)
    files = []
    for unit, begin in enumerate(range(0, len(values), 20)):
        files.append(tmp_path / f"{unit}.npy")
        np.save(files[-1], np.array(values[begin : begin + 20], np.uint64))
    monkeypatch.setattr(ingest, "HASHES_AT_ONCE", at_once)
    assert sorted(ingest._repeated(files, len(values)).tolist()) == [0, 5, 2**64 - 1]
    assert ingest._repeated([], 0).tolist() == []
