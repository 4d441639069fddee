import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.data.order import micro_batches, permuted, windowed_permutation


@given(rows=st.integers(1, 300), window=st.integers(0, 400), seed=st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_a_shuffle_buffer_is_a_permutation(rows: int, window: int, seed: int) -> None:
    order = windowed_permutation(rows, window, (1, seed))
    assert sorted(order.tolist()) == list(range(rows))
    assert order.tolist() == windowed_permutation(rows, window, (1, seed)).tolist()


def test_a_shuffle_buffer_keeps_rows_in_windows_and_zero_keeps_the_order() -> None:
    order = windowed_permutation(1000, 50, (3,))
    assert max(np.ptp(order[i : i + 10]) for i in range(0, 1000, 10)) >= 10
    assert windowed_permutation(1000, 0, (3,)).tolist() == list(range(1000))
    assert windowed_permutation(1000, 50, (4,)).tolist() != order.tolist()


@given(rows=st.integers(1, 600), seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_a_permutation_that_is_not_stored_is_one_and_is_the_same_at_any_place(rows: int, seed: int) -> None:
    whole = permuted(np.arange(rows), rows, (7, seed))
    assert sorted(whole.tolist()) == list(range(rows))
    some = np.arange(rows)[:: max(1, rows // 5)]
    assert permuted(some, rows, (7, seed)).tolist() == whole[some].tolist()


def test_a_permutation_that_is_not_stored_looks_like_chance() -> None:
    """Of 4,000 keys each row of ten comes to each place about 400 times (chi-squared, far beyond chance), and in a
    large one neighbours are as far apart as chance has them."""
    found = np.array([permuted(np.arange(10), 10, (key,)) for key in range(4000)])
    counts = np.array([np.bincount(found[:, place], minlength=10) for place in range(10)])
    assert ((counts - 400) ** 2 / 400).sum() < 81 + 6 * (2 * 81) ** 0.5
    gaps = np.abs(np.diff(permuted(np.arange(100_000), 100_000, (3,))))
    assert gaps.mean() == pytest.approx(100_000 / 3, rel=0.02)


@given(
    widths=st.lists(st.sampled_from([16, 32, 64]), min_size=1, max_size=60), batch_rows=st.integers(1, 5),
    seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_micro_batch_comes_when_it_is_full_and_the_rest_at_the_end(
    widths: list[int], batch_rows: int, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(widths))
    waiting: dict[int, list[int]] = {16: [], 32: [], 64: []}
    expected = []
    for row in order.tolist():
        waiting[widths[row]].append(row)
        if len(waiting[widths[row]]) == batch_rows:
            expected.append((waiting[widths[row]], widths[row]))
            waiting[widths[row]] = []
    expected += [(rows, width) for width, rows in waiting.items() if rows]
    found = micro_batches(order, np.array(widths), batch_rows)
    assert [(b.rows.tolist(), b.width) for b in found] == expected
    assert [(b.rows.tolist(), b.width) for b in found.of(1, 3)] == expected[1:3]
