import numpy as np
import pytest
from datasketch import MinHashLSH
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from datakit.dedup.components import first_of_component
from datakit.dedup.exact import first_of_equals
from datakit.dedup.lsh import candidate_probability, find_buckets

small_bands = arrays(np.uint64, st.tuples(st.integers(0, 20), st.integers(1, 4)), elements=st.integers(0, 4))


@given(small_bands)
def test_rows_share_a_bucket_exactly_where_they_share_a_band(bands: np.ndarray) -> None:
    buckets = find_buckets(bands, workers=2)
    for row in range(len(bands)):
        for band in range(bands.shape[1]):
            fellows = bands[:, band] == bands[row, band]
            bucket = buckets.of_row[row, band]
            if fellows.sum() == 1:
                assert bucket == -1
            else:
                assert np.array_equal(np.argwhere(buckets.of_row == bucket)[:, 0], np.flatnonzero(fellows))
                assert buckets.sizes[bucket] == fellows.sum()


@given(small_bands)
def test_components_are_what_chains_of_bands_reach(bands: np.ndarray) -> None:
    linked = (bands[:, None, :] == bands[None, :, :]).any(axis=2)
    reach = np.linalg.matrix_power(linked.astype(object), max(len(bands), 1)) > 0 if len(bands) else linked
    expected = [int(np.flatnonzero(reach[row])[0]) for row in range(len(bands))]
    assert first_of_component(find_buckets(bands, workers=1)).tolist() == expected


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
