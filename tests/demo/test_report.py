from dataclasses import replace

import pytest

from datakit.manifest import Count, Ledger, Manifest
from demo import report
from demo.found import Found
from demo.report import Training
from tests.files import write_rows

GOOD_RUN = Training(steps=2, first_loss=8.0, last_loss=2.0, tokens=1000.0, label_tokens=500, seconds=10.0)
ALL_FOUND = [Found("exact duplicates", "dedup", planted=3, found=3, besides=2)]


def manifest(stage, rows, tokens=None, facts=None):
    empty = {"parents": (), "config": {}, "code": "", "shards": (), "facts": facts or {}}
    return Manifest(dataset="demo", kind="conversation", stage=stage, key="", ledger=Ledger(rows, tokens), **empty)


@pytest.fixture
def manifests():
    facts = {
        "packing": {"packed_rows": 4, "sequences": 5, "density": 0.99, "label_share": 0.75},
        "packed": [{"seq_len": 64, "vocab_size": 300}],
    }
    return [
        manifest("ingest", Count(into=10, kept=9, quarantined=1)),
        manifest("dedup", Count(into=9, kept=5, dropped={"near_duplicate": 1, "exact_duplicate": 3})),
        manifest("pack", Count(into=5, kept=5), Count(into=250, kept=250, padding=6), facts),
    ]


def test_a_good_demo_has_no_problems(manifests):
    assert report.problems(manifests, ALL_FOUND, GOOD_RUN) == []


def test_ledgers_that_do_not_balance_or_fit_and_a_plant_that_was_missed_are_problems(manifests):
    unbalanced = [manifests[0], manifest("dedup", Count(into=9, kept=5, dropped={"exact": 3})), manifests[2]]
    (problem,) = report.problems(unbalanced, ALL_FOUND, GOOD_RUN)
    assert problem.startswith("dedup: ")
    lost = [*manifests[:2], manifest("pack", Count(into=4, kept=4))]
    assert report.problems(lost, ALL_FOUND, GOOD_RUN) == ["dedup kept 5 rows, but pack took in 4"]
    missed = [replace(ALL_FOUND[0], found=2)]
    assert report.problems(manifests, missed, GOOD_RUN) == ["dedup: of 3 planted exact duplicates, 2 found"]


@pytest.mark.parametrize("last", [8.0, 9.0, float("nan")])
def test_a_loss_that_does_not_fall_is_a_problem(manifests, last):
    assert len(report.problems(manifests, ALL_FOUND, replace(GOOD_RUN, last_loss=last))) == 1


def test_the_tables_name_what_was_missed_and_count_real_tokens(manifests):
    good, bad = (report.found_lines([replace(ALL_FOUND[0], found=found)])[1] for found in (3, 2))
    assert good.split() == ["exact", "duplicates", "dedup", "3", "3", "2"] and bad.endswith("MISSED")
    text = "\n".join(report.training_lines(manifests[-1], GOOD_RUN))
    assert "8.000 before, 2.000 after" in text and "100 tok/s, 50 of them" in text and "99.0% real tokens" in text


def test_a_run_is_read_from_its_metrics(tmp_path):
    steps = [{"loss": 8.0 - i / 10, "real_tok_s": 2000.0, "step_ms": 500.0, "label_tokens": 7} for i in range(20)]
    run = Training.read(write_rows(tmp_path / "metrics.jsonl", steps))
    assert (run.steps, run.first_loss, run.tokens, run.label_tokens) == (20, 8.0, 20_000.0, 140)
    assert run.seconds == 10.0
    assert run.last_loss == pytest.approx(6.55)  # the mean of the last ten steps
