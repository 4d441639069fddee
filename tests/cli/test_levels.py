"""Deduplication at every level by the command line: one recipe, killed, continued, verified, explained."""

import json
import random
from pathlib import Path

import pytest

from datakit.engine import executors as work
from datakit.manifest import load
from datakit.report.compare import text_similarity
from tests.cli.conftest import done
from tests.engine.corpus import results
from tests.files import flip, rows_of, write_recipe, write_rows

LEVELS = ["dedup_urls", "dedup", "dedup_repeats"]
RECIPE = f"""
[dataset]
kind = "text"
inputs = ["raw/*.jsonl"]
stages = {json.dumps(["ingest", *LEVELS])}
[ingest]
shard_mb = 1
[dedup_repeats]
min_words_left = 20
[dedup_urls]
field = "meta.url"
"""
BANNER = "Sign up for the weekly letter and never miss a thing again."


def words(rng: random.Random, count: int) -> str:
    return " ".join(f"w{rng.randrange(3000)}" for _ in range(count))


def write_project(root: Path, rows: int = 600) -> Path:
    rng = random.Random(2)
    said = [f"{words(rng, 9)}. {words(rng, 8)}. {words(rng, 9)}." for _ in range(60)]
    quoted = [words(rng, 40) for _ in range(60)]
    for number in range(3):
        lines = []
        for n in range(number, rows, 3):
            parts = [words(rng, 160), f"{words(rng, 5)}! {rng.choice(said)} {words(rng, 5)}"]
            parts.append(rng.choice(quoted) + " " + words(rng, 3))
            text = "\n".join([parts[0], *([BANNER] * (n % 5 == 0)), *parts[1:], words(rng, 100)])
            url = f"https://site.org/{n % 467}"
            lines.append({"id": f"r{n}", "text": BANNER if n % 97 == 5 else text, "meta": {"url": url}})
        write_rows(root / f"raw/part-{number}.jsonl", lines)
    write_recipe(root, RECIPE)
    return root


@pytest.fixture(scope="module")
def reference(workshop: Path) -> Path:
    write_project(workshop)
    done("run --dataset d --workers 3 --json")
    return workshop


def rows(root: Path, stage: str, role: str) -> list[dict]:
    return rows_of(root / f"manifests/d/{stage}.json", role)


def test_every_level_has_work_and_every_ledger_balances(reference):
    ledgers = {stage: load(reference / f"manifests/d/{stage}.json").ledger for stage in LEVELS}
    assert len(load(reference / "manifests/d/ingest.json").of_role("kept")) > 1
    assert ledgers["dedup_urls"].rows.dropped == {"duplicate_url": 133}
    assert ledgers["dedup_repeats"].rows.dropped["duplicate_passages"] >= 1
    assert ledgers["dedup_repeats"].notes["lines_cut"] > 60 and ledgers["dedup_repeats"].rows.edited > 60
    assert all(not list(ledger.problems()) for ledger in ledgers.values())
    done("verify", reference / "manifests/d/dedup_repeats.json")


def test_explain_tells_what_was_cut_and_for_which_row_a_row_went(reference, datakit, monkeypatch):
    monkeypatch.chdir(reference)
    cut = next(p for p in rows(reference, "dedup_repeats", "cuts") if BANNER in p["text"])
    said = datakit("explain", cut["id"], "--dataset", "d")
    (line,) = [line for line in said.out.splitlines() if f" start {cut['start']}," in line]
    assert "cuts: " in line and f"duplicate_of {cut['duplicate_of']}" in line and BANNER in line
    gone = rows(reference, "dedup_repeats", "dropped")[0]
    said = datakit("explain", gone["id"], "--dataset", "d")
    assert "[duplicate_passages] 12 of its 12 words stand before it, 0 are new" in said.out
    assert f"{gone['duplicate_of']} stayed\n" in said.out
    gone = rows(reference, "dedup_urls", "dropped")[0]
    said = datakit("explain", gone["id"], "--dataset", "d")
    assert f"[duplicate_url] has the URL of {gone['duplicate_of']}: https://site.org/" in said.out


def test_pairs_shows_the_drops_of_every_level_the_least_similar_first(reference, datakit):
    texts = {row["id"]: row["text"] for row in rows(reference, "ingest", "kept")}
    last = reference / "manifests/d/dedup_repeats.json"
    gone = {stage: rows(reference, stage, "dropped") for stage in LEVELS}
    found = json.loads(datakit("pairs", last, "--stage", "dedup_urls", "--lowest", 1000, "--json").out)
    assert found["stage"] == "dedup_urls" and len(found["pairs"]) == sum(found["similarities"].values()) == 133
    named = {(row["id"], row["duplicate_of"]) for row in gone["dedup_urls"]}
    assert {(p["dropped"]["id"], p["stays"]["id"]) for p in found["pairs"]} == named
    for pair in found["pairs"]:
        one, other = (texts[pair[side]["id"]] for side in ("dropped", "stays"))
        assert pair["similarity"] == text_similarity(one, other, 5)
    assert [p["similarity"] for p in found["pairs"]] == sorted(p["similarity"] for p in found["pairs"])
    assert found["others"] == {stage: len(gone[stage]) for stage in LEVELS if stage != "dedup_urls"}
    said = datakit("pairs", reference / "manifests/d/dedup_urls.json", "--lowest", 1).out.splitlines()
    assert said[0] == "dedup_urls dropped 133 rows: 133 duplicate_url" and said[1].startswith("similarities: 0.00: ")
    assert datakit("pairs", last, "--stage", "dedup").out.startswith("dedup dropped 4 rows: 4 exact_duplicate\n")
    assert "dedup_urls 133, dedup 4" in datakit("pairs", last).out
    found = json.loads(datakit("pairs", last, "--stage", "dedup_repeats", "--json").out)
    assert len(found["pairs"]) == found["named"]
    named = {(row["id"], row["duplicate_of"]) for row in gone["dedup_repeats"] if row["duplicate_of"]}
    assert {(p["dropped"]["id"], p["stays"]["id"]) for p in found["pairs"]} == named
    said = datakit("pairs", reference / "manifests/d/dedup_urls.json", "--stage", "dedup_repeats")
    said.fails(1, "expected the manifest of a dedup_repeats stage")


def test_what_a_row_stood_for_is_counted_when_the_row_goes_later(datakit, project):
    rng = random.Random(1)
    first = f"{BANNER} {words(rng, 12)}"
    texts = [first, words(rng, 60), f"{words(rng, 60)}\n{first}"]
    write_rows(project / "in.jsonl", ({"text": text} for text in texts))
    assert datakit("dedup-repeats in.jsonl --output lines").code == 0
    assert load(project / "lines/manifest.json").ledger.rows.edited == 1
    assert datakit("filter lines --output filtered --set gopher_quality.min_stop_words=0").code == 0
    assert load(project / "filtered/manifest.json").ledger.notes["cut_for_dropped"] == 1


@pytest.mark.parametrize("after", ["sketch", "reduce"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_bit_that_flips_between_two_phases_of_one_run_is_noticed_and_repaired_by_the_next_run(
    datakit, project, monkeypatch, level, after
):
    write_project(project, rows=60)
    assert datakit("run", "--dataset", "d", "--until", level).code == 0
    whole = results(project)
    for path in (project / f"manifests/d/{level}.json", *project.glob(f"data/d/{level}/*")):
        path.rename(project / f"aside-{path.name}")
    units = work.Work.units

    def corrupted(self: work.Work, name: str, *args: object, **more: object) -> list[work.Result]:
        made = units(self, name, *args, **more)  # type: ignore[arg-type]
        if name == after and self.data.parent.name == level:
            flip(self.data / made[0]["files"][0][0], 4)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(work.Work, "units", corrupted)
        said = datakit("run", "--dataset", "d", "--until", level)
    assert said.code == 1 and "changed after datakit wrote it" in said.err
    assert ("sketches/part-00000.arrow" if after == "sketch" else "decisions.arrow") in said.err
    assert not (project / f"manifests/d/{level}.json").exists()
    assert datakit("run", "--dataset", "d", "--until", level).code == 0
    assert results(project) == whole
