import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datakit.dedup import cluster
from datakit.dedup.cluster import Candidates, least_of_class, shared_values
from datakit.dedup.minhash import find_buckets
from datakit.dedup.shuffle import Memory

MEMORY = Memory(1 << 30, Path(tempfile.gettempdir()))
Row = tuple[frozenset[int], tuple[int, ...]]  # shingles, band hashes


def laid_out(sets: list[frozenset[int]]) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """(the arrays, which must stay alive; address; length); small numbers are spread as 32-bit hashes."""
    spread = [sorted(value * 0x9E3779B9 % 2**32 for value in values) for values in sets]
    memory = [np.array(values, dtype=np.uint32) for values in spread]
    address = np.array([values.ctypes.data for values in memory], dtype=np.uint64)
    return memory, address, np.array([len(values) for values in memory], dtype=np.int64)


def find(rows: list[Row], least: Fraction, index_threshold: int, keep: int = 1) -> tuple[np.ndarray, Any, list[int]]:
    memory, address, length = laid_out([shingles for shingles, _ in rows])
    bands = np.array([bands for _, bands in rows], dtype=np.uint64).reshape(len(rows), -1)
    of_row, sizes = find_buckets(bands.T, bands.T.shape, MEMORY)
    ratio = least.as_integer_ratio()
    like = np.empty(0, np.uint32)
    found = cluster.star(
        Candidates(of_row, address, length, like, *ratio, False, keep, 0, index_threshold), sizes, MEMORY
    )
    assert len(memory) == len(rows)
    return found


def reference(rows: list[Row], least: Fraction, keep: int = 1) -> tuple[list[int], list[int]]:
    """The definition in design.md: each row against every earlier kept row."""
    survivor, similarity = [], []
    for i, (shingles, bands) in enumerate(rows):
        similar = []
        for j in range(i):
            jaccard = Fraction(len(shingles & rows[j][0]), len(shingles | rows[j][0]))
            shares = any(a == b for a, b in zip(bands, rows[j][1], strict=True))
            if survivor[j] < 0 and shares and jaccard >= least:
                similar.append((j, int(jaccard * 1000 + Fraction(1, 2))))
        survivor.append(similar[0][0] if len(similar) >= keep else -1)
        similarity.append(similar[0][1] if len(similar) >= keep else 1000)
    return survivor, similarity


few_shingles = st.frozensets(st.integers(0, 11), min_size=1)
some_rows = st.lists(st.tuples(few_shingles, st.tuples(st.integers(0, 1), st.integers(0, 2))), min_size=1, max_size=30)
thresholds = st.sampled_from([Fraction(1, 5), Fraction(1, 2), Fraction(3, 4), Fraction(1)])


@given(some_rows, thresholds, st.sampled_from([0, 1, 3, 64]), st.integers(1, 3))
@example([(frozenset({1}), (0, 0)), (frozenset({1, 2}), (0, 1)), (frozenset({1}), (1, 0))], Fraction(1, 2), 0, 1)
@example([(frozenset({n}), (0, 0)) for n in range(6)] * 2, Fraction(1), 6, 1)  # a bucket that is almost large
@example([(frozenset({n}), (0, 0)) for n in range(6)] * 2, Fraction(1), 5, 1)
@settings(max_examples=200)
def test_star_follows_its_definition_walked_or_indexed(rows, least, index_threshold, keep):
    survivor, similarity, _ = find(rows, least, index_threshold, keep)
    assert (survivor.tolist(), similarity.tolist()) == reference(rows, least, keep)


@pytest.mark.parametrize("index_threshold", [0, 8])
def test_star_follows_its_definition_on_sets_of_many_sizes(index_threshold):
    rng = np.random.default_rng(5)
    rows: list[Row] = []
    for _ in range(300):
        base = int(rng.integers(4)) * 1000
        size = int(rng.choice([1, 2, 60, 127, 128, 200, 400]))
        shingles = frozenset(base + np.flatnonzero(rng.random(size) < 0.95)) or frozenset({base})
        rows.append((frozenset(map(int, shingles)), (base, int(rng.integers(3)))))
    for least in (Fraction(3, 5), Fraction(3, 4), Fraction(9, 10)):
        survivor, similarity, _ = find(rows, least, index_threshold)
        assert (survivor.tolist(), similarity.tolist()) == reference(rows, least)
        assert 0 < (survivor < 0).sum() < 300


def test_equal_rows_need_one_comparison_each():
    survivor, _, counts = find([(frozenset(range(20)), (7, 8))] * 5000, Fraction(3, 4), 64)
    assert counts == [4999, 4999] and (survivor[1:] == 0).all()


@pytest.mark.parametrize("common", [95, 40, 25, 22, 1])
def test_a_flood_of_rows_that_differ_in_one_word_is_not_quadratic(common):
    """Changing one word changes five shingles; all rows share a band that a common shingle decides."""
    count, own = 10_000, [frozenset(range(1000 + 5 * i, 1005 + 5 * i)) for i in range(10_000)]
    survivor, _, (compared, visited) = find(
        [(frozenset(range(common)) | words, (3, i)) for i, words in enumerate(own)], Fraction(3, 4), 64
    )
    similar = Fraction(common, common + 10) >= Fraction(3, 4)
    assert (survivor < 0).sum() == (1 if similar else count)
    assert compared < 5 * count and visited < 70 * count


def test_a_row_is_compared_with_the_first_rows_of_a_large_bucket_before_the_others_are_looked_for():
    """All rows share 60 shingles. No two of the first 200 are similar, and all others are similar to each of these."""
    own, count = [15] * 200 + [2] * 5000, 5000
    words = [frozenset(range(1000 + 20 * i, 1000 + 20 * i + n)) for i, n in enumerate(own)]
    survivor, _, (_, visited) = find([(frozenset(range(60)) | w, (3, 0)) for w in words], Fraction(3, 4), 64)
    assert (survivor[:200] == -1).all() and (survivor[200:] == 0).all()
    assert visited < 20 * count


@given(st.frozensets(st.integers(0, 50)), st.frozensets(st.integers(0, 50)), st.integers(0, 60))
def test_shared_values_are_counted_or_given_up_rightly(a, b, least):
    memory, _, _ = laid_out([a, b])
    assert shared_values(*memory, least) == (len(a & b) if len(a & b) >= least else -1)


def test_shared_values_of_large_sets():
    rng = np.random.default_rng(0)
    a, b = (np.unique(rng.integers(0, 20_000, 9_000, dtype=np.uint64)) for _ in range(2))
    assert shared_values(a, b, 0) == len(np.intersect1d(a, b))
    assert shared_values(a, b, len(a)) == -1


@given(st.integers(1, 400), st.integers(1, 400), st.sampled_from([Fraction(3, 4), Fraction(1, 3), Fraction(999, 1000)]))
def test_least_shared_is_where_the_threshold_is_reached(a, b, least):
    shared = cluster.least_shared(a, b, least.numerator, least.denominator)
    assert Fraction(shared, a + b - shared) >= least
    assert Fraction(shared - 1, a + b - shared + 1) < least


def test_size_classes_grow_and_begin_at_their_least_size():
    classes = [cluster.size_class(n) for n in range(1, 5000)]
    assert classes == sorted(classes) and len({*classes}) == classes[-1]
    assert all(least_of_class(c) <= n < least_of_class(c + 1) <= n * 1.02 + 2 for n, c in enumerate(classes, 1))


def test_cluster_sizes_are_counted_in_ranges():
    assert cluster.size_histogram({1: 5, 2: 1, 3: 2, 6: 1, 7: 3}, 20) == {"1": 8, "2": 5, "3": 1, "4-7": 3, "8-15": 3}
