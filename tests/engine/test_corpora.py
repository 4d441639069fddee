"""On real corpora: every ledger balances to the row, and everything verifies."""

import pytest

from datakit.engine.executors import Local, Progress
from datakit.engine.plan import Flow
from datakit.engine.recipe import Recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout, inspect
from datakit.manifest import load, verify

FORCED = {"kind": "sft", "split": "all"}


@pytest.mark.parametrize(
    ("folder", "ingest", "records"),
    [
        pytest.param("web", {}, 7576, marks=pytest.mark.campaign),
        pytest.param("sft", FORCED, 43_725, marks=pytest.mark.campaign),
        ("preference", {"kind": "preference"}, 3722),
    ],
)
def test_a_corpus_goes_through_with_nothing_lost(shared, tmp_path, folder, ingest, records):
    # the language stage reads 190 MB of web pages for half a minute: it is left to the other two
    stages = ("ingest", "dedup", "filter") if folder == "web" else ("ingest", "language", "dedup", "filter")
    inputs = (str(shared / "corpora" / folder),)
    recipe = Recipe(dataset=folder, inputs=inputs, stages=stages, tables={"ingest": ingest})
    flow = Flow(run=Run(OutputLayout(tmp_path, folder), Local(2), Progress()), recipe=recipe)
    flow.all("filter")
    last, into = tmp_path / "manifests" / folder / "filter.json", records
    for stage in stages:
        ledger = load(last.with_stem(stage)).ledger
        assert ledger.rows.into == into
        assert ledger.rows.balance == 0
        into = ledger.rows.kept
    checked = list(verify(last, inspect))
    assert [p for p in checked if p[1]] == []
    assert len(checked) > 10
