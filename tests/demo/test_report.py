import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from datakit.manifest import Count, Ledger, Manifest
from demo import report
from demo.found import Found
from demo.report import Training

GOOD_RUN = Training(steps=2, first_loss=8.0, last_loss=2.0, tokens=1000.0, label_tokens=500, seconds=10.0)
ALL_FOUND = [Found("exact duplicates", "dedup", planted=3, found=3, besides=2)]


def manifest(stage, rows, tokens=None, facts=None):
    empty = {"parents": (), "config": {}, "code": "", "shards": (), "facts": facts or {}}
    return Manifest(dataset="demo", kind="conversation", stage=stage, key="", ledger=Ledger(rows, tokens), **empty)


@pytest.fixture
def manifests():
    facts = {
        "packing": {"packed_rows": 4, "sequences": 5, "density": 0.99, "label_share": 0.75},
        "packed": {"seq_len": 64, "vocab_size": 300},
    }
    return [
        manifest("ingest", Count(into=10, kept=9, quarantined=1)),
        manifest("dedup", Count(into=9, kept=5, dropped={"near_duplicate": 1, "exact_duplicate": 3})),
        manifest("pack", Count(into=5, kept=5), Count(into=250, kept=250, padding=6), facts),
    ]


def shown(table):
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_a_good_demo_has_no_problems(manifests):
    assert report.problems(manifests, ALL_FOUND, GOOD_RUN) == []


def test_a_ledger_that_does_not_balance_is_a_problem(manifests):
    manifests[1] = manifest("dedup", Count(into=9, kept=5, dropped={"exact_duplicate": 3}))
    (problem,) = report.problems(manifests, ALL_FOUND, GOOD_RUN)
    assert problem.startswith("dedup: ")


def test_rows_lost_between_two_stages_are_a_problem(manifests):
    manifests[2] = manifest("pack", Count(into=4, kept=4))
    assert report.problems(manifests, ALL_FOUND, GOOD_RUN) == ["dedup kept 5 rows, but pack took in 4"]


def test_a_plant_that_was_missed_is_a_problem(manifests):
    missed = [replace(ALL_FOUND[0], found=2)]
    assert report.problems(manifests, missed, GOOD_RUN) == ["dedup: of 3 planted exact duplicates, 2 found"]


@pytest.mark.parametrize("last", [8.0, 9.0, float("nan")])
def test_a_loss_that_does_not_fall_is_a_problem(manifests, last):
    assert len(report.problems(manifests, ALL_FOUND, replace(GOOD_RUN, last_loss=last))) == 1


def test_the_ledger_table_gives_each_reason_largest_first(manifests):
    text = shown(report.ledger_table(manifests))
    assert text.index("3 exact_duplicate") < text.index("1 near_duplicate")
    assert "1 broken" in text
    assert "250" in text


def test_the_training_table_counts_real_tokens(manifests):
    text = shown(report.training_table(manifests[-1], GOOD_RUN))
    assert "8.000 before, 2.000 after" in text
    assert "100 tok/s" in text
    assert "99.0% real tokens" in text


def test_a_run_is_read_from_its_metrics(tmp_path):
    steps = [{"loss": 8.0 - i / 10, "real_tok_s": 2000.0, "step_ms": 500.0, "label_tokens": 7} for i in range(20)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(s) + "\n" for s in steps))
    run = Training.read(tmp_path / "metrics.jsonl")
    assert (run.steps, run.first_loss, run.tokens, run.label_tokens) == (20, 8.0, 20_000.0, 140)
    assert run.seconds == 10.0
    assert run.last_loss == pytest.approx(6.55)  # the mean of the last ten steps


def test_a_long_answer_without_spaces_is_shown_whole():
    assert shown(report.answers_table({"?": "词" * 300})).count("词") == 300


def test_an_answer_is_shown_as_it_is():
    assert "[bold]no markup[/bold]" in shown(report.answers_table({"?": "[bold]no markup[/bold]"}))


def test_reasons_of_a_rule_set_stand_below_their_sum():
    dropped = {"empty_answer.min_answer_chars": 2, "gopher.max_a": 1, "gopher.max_b": 3, "near_duplicate": 3}
    assert report.reasons(dropped) == [
        "4 gopher",
        "  3 max_b",
        "  1 max_a",
        "3 near_duplicate",
        "2 empty_answer",
        "  2 min_answer_chars",
    ]
