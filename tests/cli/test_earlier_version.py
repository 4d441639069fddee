"""A project that an earlier version of datakit made: its manifests are refused in one sentence, and its stages run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from datakit.engine.maintenance import old_versions, unused_folders
from datakit.errors import FormatVersionError
from datakit.manifest import load
from tests.cli.conftest import Said
from tests.files import write_recipe, write_rows

Datakit = Callable[..., Said]
SENTENCE = "an earlier version of datakit wrote it (format version 1, expected 2)"
RECIPE = '[dataset]\nkind = "text"\ninputs = ["rows.jsonl"]\nstages = ["ingest", "dedup"]\n'


def by_an_earlier_version(path: Path) -> None:
    body = json.loads(path.read_text()) | {"format_version": 1}
    path.write_text(json.dumps(body, sort_keys=True, indent=1, ensure_ascii=False) + "\n")


@pytest.fixture
def old(datakit: Datakit, project: Path) -> Path:
    """A project of two stages, and a result in a folder, with manifests of version 1 and other values in their keys."""
    write_recipe(project, RECIPE)
    write_rows(project / "rows.jsonl", ({"text": f"row {n % 7}"} for n in range(20)))
    assert datakit("run --dataset d --set dedup.max_loss=0.9").code == 0
    assert datakit("ingest rows.jsonl --output alone").code == 0
    for path in (*project.glob("manifests/d/**/*.json"), project / "alone/manifest.json"):
        if ".run." not in path.name:
            by_an_earlier_version(path)
    return project


def test_its_manifests_are_refused_in_one_sentence(datakit, old):
    with pytest.raises(FormatVersionError, match="Run its stage again; `datakit run` does it for a whole dataset"):
        load(old / "manifests/d/dedup.json")
    for command in (["show", "manifests/d/dedup.json"], ["verify", "manifests/d/dedup.json"], ["filter", "alone"]):
        said = datakit(*command)
        assert said.code == 1 and SENTENCE in said.err and "error in datakit" not in said.err
    said = datakit("status")
    assert said.code == 0 and said.out.count(SENTENCE) == 2


def test_its_stages_run_again_and_its_data_stay_until_they_are_forgotten(datakit, old):
    (before,) = (old / "data/d/dedup").iterdir()
    assert unused_folders(old, None) == [] and old_versions(old, None) == []
    said = datakit("run --dataset d")
    assert said.code == 0 and "up to date" not in said.err
    assert load(old / "manifests/d/dedup.json").ledger.rows.kept == 7
    assert "ledgers balance" in datakit("verify manifests/d/dedup.json").out
    assert datakit("run --dataset d").err.count("up to date") == 2
    assert datakit("ingest rows.jsonl --output alone").code == 0
    assert load(old / "alone/manifest.json").ledger.rows.kept == 20
    assert datakit("history --dataset d").out.count("first version") == 2
    assert unused_folders(old, None) == [] and old_versions(old, None) == []
    for file in (old / "manifests/d/history").glob("dedup-*.json"):
        if b'"format_version": 1' in file.read_bytes():
            file.unlink()
    assert unused_folders(old, None) == [before]
