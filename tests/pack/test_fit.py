"""Fitting sequences into rows, against plain references and lower bounds."""

import bisect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.pack.fit import best_fit, fewest_rows, fit, paired_fit, valued_fit

LENGTHS = st.lists(st.integers(1, 200), max_size=80)


def reference_bins(lengths: list[int], capacity: int) -> int:
    """Best-fit decreasing with a sorted list of remaining spaces; how many bins it opens."""
    spaces: list[int] = []
    count = 0
    for length in sorted(lengths, reverse=True):
        at = bisect.bisect_left(spaces, length)
        space = capacity if at == len(spaces) else spaces.pop(at)
        count += space == capacity
        if space > length:
            bisect.insort(spaces, space - length)
    return count


def longest_first(lengths):
    return np.argsort(-lengths, kind="stable")


def num_rows(found) -> int:
    return int(found["row"].max(initial=-1)) + 1


@given(lengths=LENGTHS, capacity=st.integers(200, 300))
def test_best_fit_opens_as_many_bins_as_the_reference(lengths, capacity):
    array = np.array(lengths, np.int64)
    bins = best_fit(longest_first(array), array, capacity)
    assert len(set(bins.tolist())) == reference_bins(lengths, capacity)
    assert np.bincount(bins, array).max(initial=0) <= capacity


@given(lengths=LENGTHS, stride=st.integers(200, 260), packing=st.sampled_from(["best_fit", "wrap", "pad"]))
def test_every_token_has_one_place_and_no_row_overflows(lengths, stride, packing):
    array = np.array(lengths, np.int64)
    found = fit(array, stride, packing)
    placed = zip(found["sequence"], found["offset"], found["length"], strict=True)
    tokens = [(s, o + t) for s, o, n in placed for t in range(n)]
    assert sorted(tokens) == [(s, t) for s, n in enumerate(lengths) for t in range(n)]
    used = np.bincount(found["row"], found["length"], num_rows(found))
    assert (used > 0).all()
    assert used.max(initial=0) <= stride
    assert found["row"].tolist() == sorted(found["row"].tolist())
    if packing == "wrap":
        assert all(used[:-1] == stride)


@given(LENGTHS)
def test_rows_follow_the_order_of_the_data(lengths):
    found = fit(np.array(lengths, np.int64), 256, "best_fit")
    firsts = [found["sequence"][found["row"] == r].tolist() for r in range(num_rows(found))]
    assert all(row == sorted(row) for row in firsts)
    assert [row[0] for row in firsts] == sorted(row[0] for row in firsts)


def test_rows_of_many_words_of_the_bitmap():
    lengths = np.random.default_rng(0).integers(1, 4097, 3000)
    found = best_fit(longest_first(lengths), lengths, 4097)
    assert len(np.unique(found)) == reference_bins(lengths.tolist(), 4097)


RNG = np.random.default_rng(0)
SETS = {
    "no short sequences": (RNG.normal(150, 45, 30_000), 0.955, 0.975),
    "two or three make a row, as in gsm8k": (RNG.lognormal(np.log(211), 0.33, 7_500), 0.977, 0.987),
}


@pytest.mark.parametrize("name", SETS)
def test_rows_are_denser_than_those_of_best_fit_decreasing(name):
    lengths, most, least = SETS[name]
    lengths = lengths.clip(90, 513).astype(np.int64)
    assert lengths.sum() / (reference_bins(lengths.tolist(), 513) * 513) < most
    assert lengths.sum() / (num_rows(fit(lengths, 513, "best_fit")) * 513) > least


@given(lengths=LENGTHS, capacity=st.integers(200, 400), rounds=st.integers(0, 4), quarters=st.integers(0, 8))
def test_filling_row_by_row_places_every_sequence_once(lengths, capacity, rounds, quarters):
    array = np.array(lengths, np.int64)
    given = longest_first(array), array, capacity
    bins = valued_fit(*given, rounds, quarters) if rounds else paired_fit(*given)
    used = np.bincount(bins, array)
    assert used.max(initial=0) <= capacity
    assert (used > 0).all()


@given(lengths=st.lists(st.integers(1, 12), max_size=9), stride=st.integers(12, 16))
def test_the_lower_bound_is_never_above_what_is_needed(lengths, stride):
    def needed(rest: list[int], spaces: tuple[int, ...]) -> int:
        """Rows of the best packing, by trying every way."""
        if not rest:
            return len(spaces)
        fits = {s for s in spaces if s >= rest[0]}
        ways = [tuple(sorted((*spaces[: (i := spaces.index(s))], *spaces[i + 1 :], s - rest[0]))) for s in fits]
        return min(needed(rest[1:], w) for w in [*ways, tuple(sorted((*spaces, stride - rest[0])))])

    bound = fewest_rows(np.array(lengths, np.int64), stride)
    assert -(-sum(lengths) // stride) <= bound <= needed(sorted(lengths, reverse=True), ())
