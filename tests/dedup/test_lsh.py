import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from datasketch import MinHashLSH
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from datakit.dedup.components import first_of_component
from datakit.dedup.exact import first_of_equals
from datakit.dedup.lsh import Buckets, candidate_probability, find_buckets, repeated_hashes
from datakit.dedup.memory import Memory, in_range

small_bands = arrays(np.uint64, st.tuples(st.integers(0, 20), st.integers(1, 4)), elements=st.integers(0, 4))

SPARE, SCARCE = Memory(1 << 30, Path(tempfile.gettempdir())), Memory(64, Path(tempfile.gettempdir()))


def found(bands: np.ndarray, memory: Memory = SPARE, workers: int = 1) -> Buckets:
    return find_buckets(lambda n: bands[:, n], bands.shape[1], len(bands), memory, workers)


@given(arrays(np.uint64, st.tuples(st.integers(0, 40), st.just(3)), elements=st.integers(0, 15).map(lambda n: n << 60)))
def test_little_memory_gives_the_same_buckets(bands: np.ndarray) -> None:
    assert len(bands) < 2 or SCARCE.ranges(len(bands) * 64) > 1
    spare, scarce = found(bands), found(bands, SCARCE, workers=2)
    assert np.array_equal(spare.of_row, scarce.of_row)
    assert np.array_equal(spare.sizes, scarce.sizes)


def test_a_large_array_takes_its_room_on_the_disk_at_once_and_leaves_no_file(tmp_path: Path) -> None:
    array = Memory(800, tmp_path).full((10, 20), -1, np.int32)
    assert array.shape == (10, 20) and (array == -1).all() and array.dtype == np.int32
    array[3, 4] = 7
    assert array.sum() == -192
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match=str(tmp_path)):
        Memory(800, tmp_path).full((1 << 45,), 0, np.int64)


@given(arrays(np.uint64, st.integers(0, 20)), st.sampled_from([1, 2, 8, 1 << 16]))
def test_ranges_hold_every_hash_once_and_in_order(hashes: np.ndarray, ranges: int) -> None:
    parts = [in_range(hashes, part, ranges) for part in range(min(ranges, 8))]
    if ranges <= 8:
        assert sorted(np.concatenate(parts).tolist()) == list(range(len(hashes)))
    for low, high in pairwise(parts):
        assert not len(low) or not len(high) or hashes[low].max() < hashes[high].min()


@given(arrays(np.uint64, st.integers(0, 40), elements=st.integers(0, 9).map(lambda n: n * 0x1234567812345678)))
def test_hashes_that_occur_again_are_all_among_the_repeated_ones(hashes: np.ndarray) -> None:
    rows = repeated_hashes(hashes, SPARE).tolist()
    assert rows == sorted(set(rows))
    assert {n for n, value in enumerate(hashes.tolist()) if (hashes == value).sum() > 1} <= set(rows)


def test_few_rows_that_are_alone_are_among_the_repeated_ones() -> None:
    hashes = np.random.default_rng(1).integers(0, 1 << 64, 100_000, np.uint64)
    assert len(repeated_hashes(hashes, SPARE)) < 100_000 / 8
    assert np.array_equal(repeated_hashes(hashes, SCARCE), repeated_hashes(hashes, SPARE))


@given(small_bands)
def test_rows_share_a_bucket_exactly_where_they_share_a_band(bands: np.ndarray) -> None:
    buckets = found(bands, workers=2)
    for row in range(len(bands)):
        for band in range(bands.shape[1]):
            fellows = bands[:, band] == bands[row, band]
            bucket = buckets.of_row[band, row]
            if fellows.sum() == 1:
                assert bucket == -1
            else:
                assert np.array_equal(np.argwhere(buckets.of_row == bucket)[:, 1], np.flatnonzero(fellows))
                assert buckets.sizes[bucket] == fellows.sum()


@given(small_bands)
def test_components_are_what_chains_of_bands_reach(bands: np.ndarray) -> None:
    linked = (bands[:, None, :] == bands[None, :, :]).any(axis=2)
    reach = np.linalg.matrix_power(linked.astype(object), max(len(bands), 1)) > 0 if len(bands) else linked
    expected = [int(np.flatnonzero(reach[row])[0]) for row in range(len(bands))]
    assert first_of_component(found(bands)).tolist() == expected


@given(arrays(np.uint64, st.tuples(st.integers(0, 20), st.just(2)), elements=st.integers(0, 2)))
def test_first_of_equals_needs_both_halves(digests: np.ndarray) -> None:
    seen: dict[tuple[int, int], int] = {}
    expected = [seen.setdefault((int(a), int(b)), row) for row, (a, b) in enumerate(digests)]
    assert first_of_equals(digests).tolist() == expected


@pytest.mark.parametrize("similarity", [0.0, 0.3, 0.72, 0.8, 1.0])
def test_probability_curve_is_the_known_one(similarity: float) -> None:
    curve = MinHashLSH(num_perm=112, params=(14, 8))
    assert (curve.b, curve.r) == (14, 8)
    assert candidate_probability(similarity, 14, 8) == round(1 - (1 - similarity**8) ** 14, 3)


def test_fineweb_parameters_find_most_pairs_of_similarity_080() -> None:
    assert candidate_probability(0.8, 14, 8) == pytest.approx(0.924, abs=5e-4)
