"""On real corpora: every ledger balances to the row, and everything verifies."""

import json

import pytest

from datakit.engine.executors import Local
from datakit.engine.store import inspect
from datakit.manifest import load, verify
from tests.engine.corpus import run_all
from tests.files import write_recipe


@pytest.mark.parametrize(
    ("folder", "ingest", "records"),
    [
        pytest.param("web", "", 7576, marks=pytest.mark.campaign),
        pytest.param("sft", 'split = "all"', 43_725, marks=pytest.mark.campaign),
        ("preference", "", 3722),
    ],
)
def test_a_corpus_goes_through_with_nothing_lost(shared, tmp_path, folder, ingest, records):
    # the language stage reads 190 MB of web pages for half a minute: it is left to the other two
    stages = ["ingest", *(["language"] if folder != "web" else []), "dedup", "filter"]
    kind, inputs = "auto" if folder == "web" else folder, [str(shared / "corpora" / folder)]
    head = f"[dataset]\nkind = {json.dumps(kind)}\ninputs = {json.dumps(inputs)}\nstages = {json.dumps(stages)}\n"
    write_recipe(tmp_path, f"{head}[ingest]\n{ingest}\n")
    run_all(tmp_path, Local(2))
    last = tmp_path / "manifests/d/filter.json"
    assert load(last.with_stem("ingest")).ledger.rows.into == records
    checked = list(verify(last, inspect))  # that rows and tokens balance, and that each stage took in what came out
    assert [p for p in checked if p[1]] == []
    assert len(checked) > 10
