import itertools
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from train.stream import MicroBatch, Mixed, StepPlan, micro_batches, windowed_permutation


@given(rows=st.integers(1, 300), window=st.integers(0, 400), seed=st.integers(0, 9))
@settings(max_examples=60)
def test_a_shuffle_buffer_is_a_permutation(rows, window, seed):
    order = windowed_permutation(rows, window, (1, seed))
    assert sorted(order.tolist()) == list(range(rows))
    assert order.tolist() == windowed_permutation(rows, window, (1, seed)).tolist()


def test_a_shuffle_buffer_keeps_rows_in_windows_and_zero_keeps_the_order():
    order = windowed_permutation(1000, 50, (3,))
    assert max(np.ptp(order[i : i + 10]) for i in range(0, 1000, 10)) >= 10
    assert windowed_permutation(1000, 0, (3,)).tolist() == list(range(1000))
    assert windowed_permutation(1000, 50, (4,)).tolist() != order.tolist()


@given(
    widths=st.lists(st.sampled_from([16, 32, 64]), min_size=1, max_size=60), batch_rows=st.integers(1, 5),
    seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60)
def test_a_micro_batch_comes_when_it_is_full_and_the_rest_at_the_end(widths, batch_rows, seed):
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
    assert [(b.rows.tolist(), b.width) for b in found.of()] == expected
    assert [(b.rows.tolist(), b.width) for b in found.of(1, 3)] == expected[1:3]


def rows_of(batches: list[MicroBatch]) -> list[int]:
    return [int(r) for b in batches for r in b.rows]


def test_epochs_differ_and_the_files_order_does_not():
    for window in (100, 0):
        plan = StepPlan(np.full(40, 16), sizes=[(0, 4)], grad_accum=1, shuffle_buffer=window, seed=(5,))
        one, two = (plan.step(s)[0].rows.tolist() for s in (0, plan.steps_per_epoch))
        assert (one == two) == (window == 0)
    assert one == [0, 1, 2, 3]
    pairs = StepPlan(np.full(40, 16), sizes=[(0, 40)], seed=(5,), shuffle_buffer=2, rows_per_unit=2)
    assert pairs.step(0)[0].rows.tolist() == list(range(40)), "the buffer is counted in rows: it has one unit"


@given(
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=3), weights=st.lists(st.floats(0.05, 1), min_size=3),
    batch_rows=st.integers(1, 5), window=st.sampled_from([0, 9]), seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60)
def test_a_mix_keeps_its_shares_and_gives_each_source_epochs_of_its_own(sizes, weights, batch_rows, window, seed):
    shares = np.array(weights[: len(sizes)]) / sum(weights[: len(sizes)])
    widths = np.random.default_rng(seed).choice([16, 32], sum(sizes))

    def made() -> StepPlan:
        return StepPlan(
            widths, sizes=[(0, batch_rows)], grad_accum=1, shuffle_buffer=window, seed=(seed,), source_rows=sizes,
            shares=shares.tolist(),
        )  # fmt: skip

    plan, resumed = made(), made()
    steps = 3 * plan.steps_per_epoch
    batches = [b for step in range(steps) for b in plan.step(step)]
    assert rows_of(resumed.step(steps - 1)) == batches[-1].rows.tolist(), "a step depends on nothing that ran before"
    assert rows_of(resumed.step(0)) == batches[0].rows.tolist()
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
    units=st.integers(1, 60), batch_units=st.integers(1, 8), grad_accum=st.integers(1, 4), ranks=st.integers(1, 5),
    unit=st.sampled_from([1, 2]), seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=150)
def test_ranks_share_a_step_whole_and_evenly(units, batch_units, grad_accum, ranks, unit, seed):
    widths = np.repeat(np.random.default_rng(seed).choice([16, 32], units), unit)
    plan = StepPlan(
        widths, sizes=[(0, batch_units * unit)], grad_accum=grad_accum, seed=(seed,), rows_per_unit=unit,
        shuffle_buffer=9,
    )  # fmt: skip
    for step in range(plan.steps_per_epoch + 1):
        whole = plan.step(step)
        shares, rows = zip(*(plan.share(step, rank, ranks) for rank in range(ranks)), strict=True)
        assert len({len(share) for share in shares}) == 1, "ranks wait for each other at every micro-batch"
        pieces = list(itertools.chain(*shares))
        assert sorted(rows_of(pieces)) == sorted(rows_of(whole))
        assert all(len(p.rows) <= rows[0] and len(p.rows) % unit == 0 for p in pieces)
        assert all((widths[p.rows] == p.width).all() for p in pieces)
        if ranks == 1:
            assert rows_of(pieces) == rows_of(whole) and rows[0] == batch_units * unit
        full = len(whole) == grad_accum and all(len(m.rows) == batch_units * unit for m in whole)
        if full and (batch_units * grad_accum) % ranks == 0 and batch_units * unit % rows[0] == 0:
            assert len({len(p.rows) for p in pieces}) == 1, "a whole step keeps every rank equally busy"


@given(
    units=st.integers(1, 60), first=st.integers(1, 5), window=st.sampled_from([0, 9, 1000]),
    sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), max_size=3), grad_accum=st.integers(1, 3),
    unit=st.sampled_from([1, 2]), seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=150)
def test_an_epoch_has_every_row_once_in_whole_units_and_batches_their_sizes_from_their_steps_on(
    units, first, window, sizes, grad_accum, unit, seed
):
    widths = np.random.default_rng(seed).choice([16, 32], units * unit)
    starts = np.cumsum([step for step, _ in sizes]).tolist()
    schedule = [(0, first * unit), *((start, many * unit) for start, (_, many) in zip(starts, sizes, strict=True))]

    def plan() -> StepPlan:
        return StepPlan(
            widths, sizes=schedule, grad_accum=grad_accum, seed=(seed,), shuffle_buffer=window, rows_per_unit=unit,
        )  # fmt: skip

    walked, step = plan(), 0
    for epoch in range(3):
        assert walked.first_step(epoch) == step
        seen = []
        while walked.epoch_of(step) == epoch:
            size = dict(reversed(schedule))[max(first for first, _ in schedule if first <= step)]
            assert walked.rows_at(step) == size
            found = walked.step(step)
            assert all(len(m.rows) <= size for m in found) and 0 < len(rows_of(found)) <= size * grad_accum
            assert all((widths[m.rows].reshape(-1, unit).max(1) == m.width).all() for m in found)
            assert all((np.diff(m.rows.reshape(-1, unit)) == 1).all() for m in found), "units are whole"
            assert [m.rows.tolist() for m in plan().step(step)] == [m.rows.tolist() for m in found]
            seen += rows_of(found)
            step += 1
        assert sorted(seen) == list(range(units * unit))
