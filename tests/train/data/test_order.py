import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.data.order import MicroBatch, Mixed, Split, StepPlan, micro_batches, permuted, windowed_permutation


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


ORDERS = st.sampled_from(["shuffle_buffer", "permutation", "sequential"])
SCHEDULES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=4).map(
    lambda parts: list(zip(itertools.accumulate([0, *(n for n, _ in parts[1:])]), (a for _, a in parts), strict=True))
)
"""(steps taken, micro-batches a step from then on), from step 0 on."""


def rows_of(batches: list[MicroBatch]) -> list[int]:
    return [int(r) for b in batches for r in b.rows]


def told(batches: list[MicroBatch]) -> list[tuple[list[int], int]]:
    return [(b.rows.tolist(), b.width) for b in batches]


@given(
    widths=st.lists(st.sampled_from([16, 32, 64]), min_size=1, max_size=80),
    batch_rows=st.integers(1, 5), grad_accum=st.integers(1, 4), window=st.sampled_from([0, 7, 1000]), order=ORDERS,
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_every_epoch_has_each_row_exactly_once(
    widths: list[int], batch_rows: int, grad_accum: int, window: int, order: str
) -> None:
    plan = StepPlan(
        np.array(widths), batch_rows=batch_rows, grad_accum=grad_accum, shuffle_buffer=window, seed=(5,), order=order
    )
    for epoch in range(2):
        first = epoch * plan.steps_per_epoch
        batches = [b for step in range(first, first + plan.steps_per_epoch) for b in plan.step(step)]
        assert sorted(rows_of(batches)) == list(range(len(widths)))
        assert all(widths[r] == b.width for b in batches for r in b.rows)
        assert all(len(b.rows) <= batch_rows for b in batches)
        assert {plan.epoch_of(first), plan.epoch_of(first + plan.steps_per_epoch - 1)} == {epoch}
    assert all(plan.step(s) for s in range(2 * plan.steps_per_epoch))


@pytest.mark.parametrize("first", [0, 3, 11, 19])
@pytest.mark.parametrize("shares", [(), (0.8, 0.2)])
@pytest.mark.parametrize("order", ["shuffle_buffer", "permutation", "sequential"])
def test_a_step_depends_on_nothing_that_ran_before(first: int, shares: tuple[float, ...], order: str) -> None:
    def plan() -> StepPlan:
        widths = np.array([16, 32] * 20)
        return StepPlan(
            widths, batch_rows=3, grad_accum=2, shuffle_buffer=8, seed=(5, 1), order=order, source_rows=(30, 10),
            shares=shares,
        )  # fmt: skip

    walked = plan()
    steps = [[b.rows.tolist() for b in walked.step(s)] for s in range(20)]
    resumed = plan()
    assert [[b.rows.tolist() for b in resumed.step(s)] for s in range(first, 20)] == steps[first:]


def test_epochs_differ_and_the_files_order_does_not() -> None:
    for order in ("shuffle_buffer", "permutation", "sequential"):
        plan = StepPlan(np.full(40, 16), batch_rows=4, grad_accum=1, shuffle_buffer=100, seed=(5,), order=order)
        one, two = (plan.step(s)[0].rows.tolist() for s in (0, plan.steps_per_epoch))
        assert (one == two) == (order == "sequential")
    assert one == [0, 1, 2, 3]


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 3), st.integers(0, 100), st.integers(0, 9), ORDERS)
def test_units_are_never_split_and_every_row_is_seen_once_an_epoch(
    units: int, batch_units: int, grad_accum: int, shuffle_buffer: int, seed: int, order: str
) -> None:
    widths = np.random.default_rng(seed).choice([16, 32, 64], units * 2)
    plan = StepPlan(
        widths, batch_rows=batch_units * 2, grad_accum=grad_accum, shuffle_buffer=shuffle_buffer, seed=(seed,),
        rows_per_unit=2, order=order,
    )  # fmt: skip
    seen = []
    for step in range(plan.steps_per_epoch):
        for micro in plan.step(step):
            assert len(micro.rows) <= batch_units * 2
            assert (micro.rows[0::2] % 2 == 0).all() and (micro.rows[1::2] == micro.rows[0::2] + 1).all()
            assert (widths[micro.rows].reshape(-1, 2).max(1) == micro.width).all()
            seen += micro.rows.tolist()
    assert sorted(seen) == list(range(units * 2))


@given(
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=3), weights=st.lists(st.floats(0.05, 1), min_size=3),
    batch_rows=st.integers(1, 5), order=ORDERS, seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_mix_keeps_its_shares_and_gives_each_source_epochs_of_its_own(
    sizes: list[int], weights: list[float], batch_rows: int, order: str, seed: int
) -> None:
    shares = np.array(weights[: len(sizes)]) / sum(weights[: len(sizes)])
    widths = np.random.default_rng(seed).choice([16, 32], sum(sizes))
    plan = StepPlan(
        widths, batch_rows=batch_rows, grad_accum=1, shuffle_buffer=9, seed=(seed,), order=order, source_rows=sizes,
        shares=shares.tolist(),
    )  # fmt: skip
    steps = 3 * plan.steps_per_epoch
    batches = [b for step in range(steps) for b in plan.step(step)]
    assert all(len(b.rows) == batch_rows and (widths[b.rows] == b.width).all() for b in batches)
    assert isinstance(plan.epochs, Mixed)
    drawn, carried = plan.epochs._begins[3]
    assert sum(drawn) == len(batches) * batch_rows + len(carried)
    assert (np.abs(drawn - sum(drawn) * shares) <= len(sizes)).all()
    counts = Counter(rows_of(batches) + carried.tolist())  # nothing drawn is lost: it is trained on or carried
    ends = np.cumsum(sizes)
    for size, end, many in zip(sizes, ends, drawn, strict=True):
        seen = [counts[row] for row in range(end - size, end)]
        assert sum(seen) == many
        assert max(seen) - min(seen) <= 1  # epochs of its own: no row again before all were seen


@given(
    rows=st.integers(1, 24), batch_units=st.integers(1, 8), grad_accum=st.integers(1, 4),
    ranks=st.integers(1, 5), unit=st.sampled_from([1, 2]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_ranks_share_a_step_whole_and_evenly(
    rows: int, batch_units: int, grad_accum: int, ranks: int, unit: int
) -> None:
    batch_rows = batch_units * unit
    rows = min(rows * unit, batch_rows * grad_accum)
    step = [MicroBatch(np.arange(i, min(rows, i + batch_rows)), 16 + i) for i in range(0, rows, batch_rows)]
    shares = [
        Split(rank=r, ranks=ranks, grad_accum=grad_accum, batch_rows=batch_rows, rows_per_unit=unit)
        for r in range(ranks)
    ]
    found = [share.of(step) for share in shares]
    assert len({len(pieces) for pieces in found}) == 1, "ranks wait for each other at every micro-batch"
    pieces = list(itertools.chain(*found))
    assert sorted(rows_of(pieces)) == list(range(rows))
    assert all(len(p.rows) <= shares[0].piece_rows and len(p.rows) % unit == 0 for p in pieces)
    width_of = {int(r): b.width for b in step for r in b.rows}
    assert all(width_of[int(r)] == p.width for p in pieces for r in p.rows)
    if rows == batch_rows * grad_accum and batch_units % shares[0].pieces == 0:
        assert len({len(p.rows) for p in pieces}) == 1, "a whole step keeps every rank equally busy"


def test_one_rank_has_the_step_as_it_is() -> None:
    step = [MicroBatch(np.arange(4), 16), MicroBatch(np.arange(4, 6), 64)]
    assert [p.rows.tolist() for p in Split(grad_accum=2, batch_rows=4).of(step)] == [[0, 1, 2, 3], [4, 5]]


@given(
    widths=st.lists(st.sampled_from([16, 32]), min_size=1, max_size=50), batch_rows=st.integers(1, 3),
    schedule=SCHEDULES, order=ORDERS, shares=st.sampled_from([(), (0.7, 0.3)]),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_a_schedule_cuts_the_same_micro_batches_into_other_steps(
    widths: list[int], batch_rows: int, schedule: list[tuple[int, int]], order: str, shares: tuple[float, ...]
) -> None:
    def plan(grad_accum: int | list[tuple[int, int]]) -> StepPlan:
        sizes = (len(widths) - 1, 1) if len(widths) > 1 else (1,)
        return StepPlan(
            np.array(widths), batch_rows=batch_rows, grad_accum=grad_accum, shuffle_buffer=8, seed=(3,), order=order,
            source_rows=sizes, shares=shares[: len(sizes)],
        )  # fmt: skip

    single, found = plan(1), plan(schedule)
    epochs = 3
    steps = [found.step(s) for s in range(found.first_step_of(epochs))]
    batches = [single.step(s) for s in range(epochs * single.steps_per_epoch)]
    assert told(list(itertools.chain(*steps))) == told(list(itertools.chain(*batches)))
    for number, step in enumerate(steps):
        epoch, size = found.epoch_of(number), [a for s, a in schedule if s <= number][-1]
        assert found.first_step_of(epoch) <= number < found.first_step_of(epoch + 1)
        assert found.grad_accum_of(number) == size
        assert len(step) == size or (len(step) < size and number + 1 == found.first_step_of(epoch + 1))
    middle = len(steps) // 2
    resumed = plan(schedule).steps(middle, len(steps) - middle)
    assert [told(step) for step in resumed] == [told(step) for step in steps[middle:]]
