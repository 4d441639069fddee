"""A single stage never works on stale data: it brings up to date what it needs."""

import json
from pathlib import Path

import pytest

from datakit.manifest import load
from tests.cli.conftest import copy_of, done
from tests.engine.corpus import write_project
from tests.files import write_rows


@pytest.fixture(scope="module")
def original(workshop: Path) -> Path:
    """A project up to its filter, small."""
    write_project(workshop, rows=60, files=2)
    done("run --until filter")
    return workshop


@pytest.fixture
def made(original: Path, project: Path) -> Path:
    return copy_of(original, project)


def add_file(root: Path) -> None:
    write_rows(root / "raw/z.jsonl", [{"text": "One more row of the text that was not there before."}])


def test_a_stage_brings_up_to_date_what_it_needs_and_says_so(datakit, made):
    add_file(made)
    said = datakit("filter --dataset d")
    assert said.code == 0
    assert "ingest runs again: input files are new: z.jsonl" in said.err
    after, before = (load(made / f"manifests/d/{stage}.json").ledger.rows for stage in ("filter", "dedup"))
    assert after.into == before.kept
    assert datakit("verify manifests/d/filter.json").code == 0
    again = datakit("filter --dataset d")
    assert "runs again" not in again.err and "filter: up to date" in again.err


def test_another_value_in_the_recipe_is_seen_and_an_earlier_stage_alone_is_run_again(datakit, made):
    ingested = (made / "manifests/d/ingest.run.json").read_bytes()
    recipe = made / "manifests/d/recipe.toml"
    recipe.write_text(recipe.read_text() + "[dedup]\nthreshold = 0.9\n")
    said = datakit("filter --dataset d")
    assert "threshold is 0.9 now, and was 0.75" in said.err
    assert load(made / "manifests/d/dedup.json").config["threshold"] == 0.9
    assert (made / "manifests/d/ingest.run.json").read_bytes() == ingested


def test_show_and_verify_of_a_stale_result_say_so(datakit, made):
    for command in ("show", "verify"):
        assert "STALE" not in datakit(command, "manifests/d/filter.json").out
    add_file(made)
    for command in ("show", "verify"):
        said = datakit(command, "manifests/d/filter.json")
        assert said.code == 0 and "STALE: manifests/d/filter.json: comes after ingest" in said.out
    assert "input files are new: z.jsonl" in datakit("show manifests/d/ingest.json").out


def test_without_a_recipe_a_stage_needs_its_input(datakit, project):
    (project / "a.jsonl").write_text('{"text": "a text of some words"}\n')
    assert datakit("dedup a.jsonl --dataset x").code == 0
    said = datakit("language --dataset x")
    said.fails(2, "x: has no recipe that says what language comes after: give language files")
    assert datakit("language manifests/x/dedup.json").code == 0


def test_status_and_history_tell_what_is_there_stale_and_what_changed(datakit, made):
    first = load(made / "manifests/d/ingest.json")
    assert "STALE" not in datakit("status").out
    add_file(made)
    (state,) = json.loads(datakit("status --json").out)
    assert [s["stage"] for s in state["stages"]] == ["ingest", "language", "dedup", "filter"]
    assert all(s["stale"] for s in state["stages"])
    assert "input files are new: z.jsonl" in datakit("status").out and "not run yet: tokenizer" in datakit("status").out
    assert datakit("ingest --dataset d").code == 0
    found = json.loads(datakit("history --dataset d --stage ingest --json").out)
    second = load(made / "manifests/d/ingest.json")
    assert [(v["version"], v["current"]) for v in found] == [(first.version, False), (second.version, True)]
    assert found[1]["changed"] == ["input files are new: z.jsonl", "+1 rows"]
    assert datakit("gc --purge").code == 0
    said = datakit("history --dataset d").out
    assert "language" in said and "*  ingest" in said
    assert datakit("history --dataset nope").code == 2 and datakit("status --dataset nope").code == 2
