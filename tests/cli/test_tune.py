"""Signals are measured once: other thresholds, and what each would drop."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from datakit.report.tuning import findings
from tests.cli.conftest import call, copy_of, done
from tests.files import says, user, write_rows
from tests.filter.rows import documents, filter_of

SENTENCE = "The river had been rising since the morning, and nobody in the town knew how long it would last. "


@pytest.fixture(scope="module")
def measured(workshop: Path) -> Path:
    """A project with a run `d` of the rules gopher_quality."""
    rows = [
        {"id": f"r{n}", "text": " ".join([f"Row {n} begins here.", *(SENTENCE.split() * 6)[: 10 * n]]) + "."}
        for n in range(12)
    ]
    write_rows(workshop / "corpus.jsonl", rows)
    done("filter corpus.jsonl --rules gopher_quality --dataset d")
    return workshop


@pytest.fixture
def corpus(measured: Path, project: Path) -> Path:
    return copy_of(measured, project) / "corpus.jsonl"


def test_tune_shows_what_each_threshold_drops_and_would_drop(datakit, corpus):
    (said,) = json.loads(datakit("tune gopher_quality.min_words --dataset d --json").out)
    words = [4 + 10 * n for n in range(12)]
    assert said["drops"] == sum(w < 50 for w in words)
    assert said["limits"]["64"] == 0.5
    assert said["inside"] == [["r5", 54], ["r6", 64]]
    assert said["outside"] == [["r4", 44], ["r3", 34]]
    shown = datakit("tune gopher-quality --dataset d --set gopher_quality.min_words=60").out
    assert "gopher_quality.min_words = 60" in shown
    assert "r6: Row 6 begins here." in shown
    head, *table = shown.partition("\n\n")[0].splitlines()
    drops = [int(line.split()[2].replace(",", "")) for line in table]
    assert head.split()[:3] == ["threshold", "limit", "drops"] and len(table) > 5
    assert drops == sorted(drops, reverse=True) and drops[0] > 0


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("gopher_qualty", "gopher_quality"),
        ("gopher_quality.min_wrods", "gopher_quality.min_words"),
        ("c4", "a rule set must be on"),
    ],
)
def test_a_misspelt_threshold_is_an_error_with_the_nearest_name(measured, asked, meant):
    call("tune", asked, "--dataset", "d").fails(2, meant)


def test_tune_without_a_run_or_without_signals_says_what_to_do(datakit, corpus):
    assert "holds no dataset 'x'" in datakit("tune --dataset x").err
    datakit("ingest", corpus, "--dataset", "x")
    assert "datakit filter" in datakit("tune --dataset x").err
    datakit("filter", corpus, "--no-signals", "--dataset", "x")
    assert "holds no signals" in datakit("tune --dataset x").err


@pytest.mark.parametrize("threshold", ["min_words", "max_words"])
def test_every_limit_drops_the_share_that_it_says(threshold):
    texts = ["the of " * n for n in (1, 1, 2, 3, 5, 8, 8, 8, 13, 30)]
    stage = filter_of("gopher_quality").for_kind("document")
    table = pa.Table.from_batches([stage.decide(documents(*texts)).side_tables["signals"]])
    config = stage.config.gopher_quality
    (found,) = [f for f in findings(table, [config], 1) if f.name.endswith(threshold)]
    words = [len(t.split()) for t in texts]
    assert found.limits
    for limit, share in found.limits.items():
        assert share == sum(w < limit if threshold == "min_words" else w > limit for w in words) / 10


def test_tune_shows_the_rules_of_conversations(datakit, project):
    answers = "  ", "Because.", "Since it rains."
    write_rows(project / "chats.jsonl", ({"messages": [user("Why?"), says(answer)]} for answer in answers))
    assert datakit("filter chats.jsonl --dataset chats").code == 0
    said = datakit("tune --dataset chats").out
    assert re.search(r"(?m)^empty_answer\.min_answer_chars +1 +1 +33\.3%", said)
    assert "a limit of 8 drops 33.3%" in said
