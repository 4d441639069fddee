import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.order import StepPlan, windowed_permutation


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


@given(
    widths=st.lists(st.sampled_from([16, 32, 64]), min_size=1, max_size=80),
    batch_rows=st.integers(1, 5), grad_accum=st.integers(1, 4), window=st.sampled_from([0, 7, 1000]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_every_epoch_has_each_row_exactly_once(
    widths: list[int], batch_rows: int, grad_accum: int, window: int
) -> None:
    plan = StepPlan(np.array(widths), batch_rows=batch_rows, grad_accum=grad_accum, shuffle_buffer=window, seed=(5,))
    for epoch in range(2):
        first = epoch * plan.steps_per_epoch
        batches = [b for step in range(first, first + plan.steps_per_epoch) for b in plan.step(step)]
        assert sorted(int(r) for b in batches for r in b.rows) == list(range(len(widths)))
        assert all(widths[r] == b.width for b in batches for r in b.rows)
        assert all(len(b.rows) <= batch_rows for b in batches)
        assert {plan.epoch_of(first), plan.epoch_of(first + plan.steps_per_epoch - 1)} == {epoch}
    assert all(plan.step(s) for s in range(2 * plan.steps_per_epoch))


@pytest.mark.parametrize("first", [0, 3, 11])
def test_a_step_depends_on_nothing_that_ran_before(first: int) -> None:
    def plan() -> StepPlan:
        widths = np.array([16, 32] * 20)
        return StepPlan(widths, batch_rows=3, grad_accum=2, shuffle_buffer=8, seed=(5, 1))

    walked = plan()
    steps = [[b.rows.tolist() for b in walked.step(s)] for s in range(20)]
    resumed = plan()
    assert [[b.rows.tolist() for b in resumed.step(s)] for s in range(first, 20)] == steps[first:]


def test_epochs_differ() -> None:
    plan = StepPlan(np.full(40, 16), batch_rows=4, grad_accum=1, shuffle_buffer=100, seed=(5,))
    assert plan.step(0)[0].rows.tolist() != plan.step(plan.steps_per_epoch)[0].rows.tolist()


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 3), st.integers(0, 100), st.integers(0, 9))
def test_units_are_never_split_and_every_row_is_seen_once_an_epoch(
    units: int, batch_units: int, grad_accum: int, shuffle_buffer: int, seed: int
) -> None:
    widths = np.random.default_rng(seed).choice([16, 32, 64], units * 2)
    plan = StepPlan(
        widths, batch_rows=batch_units * 2, grad_accum=grad_accum, shuffle_buffer=shuffle_buffer, seed=(seed,),
        rows_per_unit=2,
    )  # fmt: skip
    seen = []
    for step in range(plan.steps_per_epoch):
        for micro in plan.step(step):
            assert len(micro.rows) <= batch_units * 2
            assert (micro.rows[0::2] % 2 == 0).all() and (micro.rows[1::2] == micro.rows[0::2] + 1).all()
            assert (widths[micro.rows].reshape(-1, 2).max(1) == micro.width).all()
            seen += micro.rows.tolist()
    assert sorted(seen) == list(range(units * 2))
