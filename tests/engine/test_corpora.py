"""On real corpora: every ledger balances to the row, everything verifies, every duplicate names a row that stays."""

from pathlib import Path

import pyarrow as pa
import pytest

from datakit.engine.executors import Local, Progress
from datakit.engine.plan import Flow
from datakit.engine.recipe import Recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout, inspect, read_shard
from datakit.manifest import Manifest, data_dir, load, tables, verify

FORCED = {"kind": "sft", "split": "all"}


def rows(path: Path, role: str, columns: list[str]) -> pa.Table:
    manifest = load(path)
    batches = [b for s in tables(manifest, role) for b in read_shard(data_dir(path, manifest), s, columns)]
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize(
    ("folder", "ingest", "records"),
    [
        pytest.param("web", {}, 7576, marks=pytest.mark.campaign),
        pytest.param("sft", FORCED, 43_725, marks=pytest.mark.campaign),
        ("preference", {"kind": "preference"}, 3722),
    ],
)
def test_a_corpus_goes_through_with_nothing_lost(
    shared: Path, tmp_path: Path, folder: str, ingest: dict, records: int
) -> None:
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
    _duplicates_name_rows_that_stay(last.with_stem("dedup"))


def _duplicates_name_rows_that_stay(dedup: Path) -> None:
    manifest: Manifest = load(dedup)
    kept = set(rows(dedup, "kept", ["id"])["id"].to_pylist())
    dropped = rows(dedup, "dropped", ["id", "reason", "detail", "duplicate_of", "similarity"]).to_pylist()
    assert len(dropped) == sum(manifest.ledger.rows.dropped.values()) > 10
    threshold = manifest.config["threshold"]
    for row in dropped:
        assert row["duplicate_of"] in kept, row
        assert row["duplicate_of"] in row["detail"]
        assert row["similarity"] >= threshold - 1e-3, row
        assert row["similarity"] == 1.0 or row["reason"] == "near_duplicate", row
