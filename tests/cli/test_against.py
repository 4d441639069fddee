"""Runs against earlier datasets, as a user meets them."""

import json
import random
import re
import shutil
from pathlib import Path

import pytest

from datakit.manifest import load
from tests.cli.conftest import call, copy_of, done
from tests.files import flip, rows_of, write_rows


def text(seed: int, changes: int = 0) -> str:
    rng = random.Random(seed)
    words = rng.choices([f"word{n}" for n in range(500)], k=150)
    for n in range(changes):
        words[n * 20 + 9] = f"new{n}"
    return " ".join(words)


def write(path: Path, rows: dict[str, str]) -> None:
    write_rows(path, ({"id": name, "text": said} for name, said in rows.items()))


OLD = {"x": text(1), "x near": text(1, 1), "y": text(2), "s": "a short row"}
NEXT = {"x": text(4), "again": text(1, 2), "y2": text(2), "s": "a short row", "z": text(3)}
LAST = {"of x": text(4, 1), "of y": text(2, 1), "of z": text(3), "of old x": text(1), "w": text(5), "s": "a short row"}


def dropped(path: Path) -> dict[str, tuple[str, str, float]]:
    """Survivor, version of the run that kept it ("" for this one), and similarity, by id."""
    found = rows_of(path / "manifest.json", "dropped")
    return {r["id"]: (r["duplicate_of"], r.get("duplicate_in") or "", r["similarity"]) for r in found}


def version(path: Path) -> str:
    return load(path / "manifest.json").version


@pytest.fixture(scope="module")
def made(workshop: Path) -> Path:
    """`old`, `next` against it, `last` against `next`; the rows of `old` ingested, and without an index."""
    for name, rows, against in (("old", OLD, ""), ("next", NEXT, "old"), ("last", LAST, "next/manifest.json")):
        write(workshop / f"{name}.jsonl", rows)
        done("dedup", f"{name}.jsonl", "--output", name, "--save-index", *(["--against", against] if against else []))
    done("ingest old.jsonl --output rows")
    done("dedup old.jsonl --output plain")
    return workshop


@pytest.fixture
def chain(made: Path, project: Path) -> Path:
    return copy_of(made, project)


def test_what_an_earlier_dataset_holds_is_dropped_and_its_place_named(datakit, chain):
    old, second = version(chain / "old"), version(chain / "next")
    assert dropped(chain / "next") == {"again": ("x", old, 0.872), "y2": ("y", old, 1.0), "s": ("s", old, 1.0)}
    assert dropped(chain / "last") == {
        "of x": ("x", second, 0.934), "of y": ("y", old, 0.934), "of z": ("z", second, 1.0),
        "of old x": ("x", old, 1.0), "s": ("s", old, 1.0),
    }  # fmt: skip
    made = load(chain / "last/manifest.json")
    assert made.parents[1]["use"] == "against" and made.parents[1]["version"] == second
    assert [(a["version"], a["rows"]) for a in made.facts["resources"]["against"]] == [(old, 3), (second, 2)]
    assert datakit("verify last").code == 0
    shown = datakit("show last").out
    assert re.search(rf"against +dedup +{second}", shown)
    assert f"duplicate of x in next {second}, similarity 0.934" in shown


def test_the_chain_verifies_down_to_every_index(datakit, chain):
    flip(chain / "old/index/part-00000.arrow")
    datakit("verify last").fails(1, "1 of ", "old/index/part-00000.arrow: expected sha256")
    said = datakit("dedup last.jsonl --output more --against last")
    said.fails(1, "old/index/part-00000.arrow: expected sha256", "damaged")
    assert not (chain / "more/manifest.json").exists() and not (chain / "more/kept").exists()


def test_explain_and_pairs_know_the_row_of_the_other_dataset(datakit, chain):
    old = version(chain / "old")
    said = datakit("explain again --manifest next").out
    assert f"x stayed in old (dedup {old}); similarity 0.872\n" in said
    assert "[-new0-]" in said, "and not the row x of next, which is another"
    found = json.loads(datakit("pairs next --json").out)
    stays = {p["dropped"]["id"]: p["stays"]["text"] for p in found["pairs"]}
    assert stays == {"again": text(1), "y2": text(2), "s": "a short row"}
    lines = datakit("pairs next").out.splitlines()
    assert lines[0] == "dedup dropped 3 rows: 2 exact_duplicate, 1 near_duplicate"
    assert lines[1] == "similarities: 0.85: 1, 1.00: 2"
    heads = [line for line in lines if "was dropped" in line]
    assert len(heads) == 3 and heads[0].endswith("[-again (next.jsonl)-] was dropped, {+x (old.jsonl)+} stays")
    assert sum("[-new" in line for line in lines) == 2
    assert datakit("explain x --manifest last").code == 1, "a row of another dataset is not of this one"
    shutil.rmtree(chain / "old")
    said = datakit("explain again --manifest next")
    assert said.code == 0 and f"x stayed in the dedup {old}, whose manifest or shards are not where" in said.out
    assert "whose manifest is not where it was" in datakit("pairs next").err
    said = datakit("dedup last.jsonl --output more --against next")
    said.fails(1, f"was run against the dedup {old}, whose manifest is not where it was")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--threshold", "0.8"], "made with threshold 0.75, and this run has 0.8"),
        (["--num-bands", "20"], "made with num_bands 14, and this run has 20"),
        (["--on", "prompt"], "it acts only with rows of the kind conversation or preference"),
        (["--policy", "longest"], "it needs policy first; found policy longest"),
        (["--max-cluster-rows", "7", "--save-duplicates"], ""),  # writes more, drops the same
        (["--against", "rows"], "expected the manifest of a dedup stage"),
        (["--against", "plain"], "saved no index; run it again with --save-index"),
        (["--against", "nowhere.json"], "nowhere.json: cannot read the manifest"),
    ],
)
def test_what_would_not_equal_a_joint_run_is_refused(made, tmp_path, flags, words):
    said = call("dedup", "old.jsonl", "--output", tmp_path / "new", "--against", "old", *flags)
    code = 3 if not words else 1 if "--against" in flags else 2
    assert said.code == code and words in said.err
    assert (tmp_path / "new/kept").exists() != bool(words)


def test_an_index_of_another_kind_or_other_code_or_of_the_run_itself_is_refused(datakit, chain, monkeypatch):
    (chain / "talks.jsonl").write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n')
    said = datakit("dedup talks.jsonl --output new --against old")
    said.fails(2, "made with kind 'document', and this run has 'conversation'")
    assert datakit("dedup old.jsonl --dataset d --save-index").code == 0
    said = datakit("dedup old.jsonl --dataset d --save-index --against manifests/d/dedup.json")
    said.fails(2, "is the result that this run writes")
    monkeypatch.setattr("datakit.dedup.index.INDEX_VERSION", 1000)
    datakit("dedup old.jsonl --output new2 --against old").fails(2, "(version 1000)", "Run that dedup again")


def test_an_empty_dataset_can_be_run_against_and_so_can_an_empty_input(datakit, project):
    write(project / "in.jsonl", OLD)
    (project / "bad.jsonl").write_text("{\n")
    done("dedup bad.jsonl --output none --kind text --save-index --allow-empty")
    done("dedup in.jsonl --output one --against none --save-index")
    done("dedup bad.jsonl --output two --kind text --against one --allow-empty")
    assert [load(project / name / "manifest.json").ledger.rows.kept for name in ("one", "two")] == [3, 0]
    assert datakit("verify two").code == 0
    assert datakit("pairs none").out == "dedup dropped 0 rows\n"


def test_the_story_of_later_stages_counts_no_row_of_another_dataset(datakit, chain):
    """A filter drops the `x` of next: what was dropped for the `x` of old is no duplicate of that."""
    said = done("filter next --output later --set gopher_quality.min_words=100000 --allow-empty")
    assert load(chain / "later/manifest.json").ledger.rows.kept == 0
    assert "duplicate_of_dropped" not in load(chain / "later/manifest.json").ledger.notes
    write(chain / "x.jsonl", {"x": text(1), "w": text(9)})  # its x goes for that of old, which stays
    done("dedup x.jsonl --output x --against old")
    made = load(chain / "x/manifest.json")
    assert made.ledger.rows.kept == 1 and "duplicate_of_dropped" not in made.ledger.notes
    said = datakit("explain again --manifest later").out
    assert "x stayed in old" in said and "dropped later" not in said


def test_gc_keeps_what_a_run_was_made_against(datakit, project):
    write(project / "old.jsonl", OLD)
    write(project / "next.jsonl", NEXT)
    assert datakit("dedup old.jsonl --dataset old --save-index").code == 0
    flags = ["--against", "manifests/old/dedup.json"]
    assert datakit("dedup", "next.jsonl", "--dataset", "next", *flags).code == 0
    assert datakit("dedup old.jsonl --dataset old --threshold 0.9").code == 0
    assert "was made with it; run that dataset again first" in datakit("gc --purge").out
    assert datakit("verify manifests/next/dedup.json").code == 0
    assert "x stayed in old" in datakit("explain again --dataset next").out


def sentences(seed: int) -> str:
    """Four sentences on a line."""
    words = text(seed).split()
    return " ".join(f"{' '.join(words[n : n + 35])}." for n in range(0, 140, 35))


@pytest.fixture
def levels(project: Path) -> Path:
    """`old.jsonl`; `next.jsonl`, where a row repeats one of it, another begins so, and another is new."""
    texts = {
        "old": {"x": sentences(1), "y": sentences(2)},
        "next": {"again": sentences(1), "begins": f"{sentences(2)}\n\n{sentences(5)}", "x": sentences(3)},
    }
    urls = {"x": "a", "again": "a", "y": "b", "begins": "b/#top"}
    for name, of in texts.items():
        rows = [{"id": n, "text": t, "url": f"http://e.org/{urls[n]}" if name == "old" or n != "x" else None}
                for n, t in of.items()]  # fmt: skip
        write_rows(project / f"{name}.jsonl", rows)
    return project


@pytest.mark.parametrize("level", ["dedup-urls", "dedup-repeats"])
def test_every_level_is_run_against_earlier_datasets(datakit, levels, level):
    stage = level.replace("-", "_")
    assert datakit(level, "old.jsonl", "--dataset", "old", "--save-index").code == 0
    old = f"manifests/old/{stage}.json"
    said = done(level, "next.jsonl", "--dataset", "next", "--against", old, "--save-index")
    path = levels / f"manifests/next/{stage}.json"
    gone, cuts = {row["id"]: row for row in rows_of(path, "dropped")}, rows_of(path, "cuts")
    version = load(levels / old).version
    assert (gone["again"]["duplicate_of"], gone["again"]["duplicate_in"]) == ("x", version)
    if level == "dedup-urls":
        assert gone["begins"]["duplicate_of"] == "y" and "has the URL of y in old" in gone["begins"]["detail"]
    else:
        assert set(gone) == {"again"} and "".join(cut["text"] for cut in cuts).strip() == sentences(2)
        assert {(cut["duplicate_of"], cut["duplicate_in"]) for cut in cuts} == {("y", version)}
    assert datakit(f"verify manifests/next/{stage}.json").code == 0
    assert f"x stayed in old ({stage} {version})" in datakit("explain again --dataset next").out
    pairs = json.loads(datakit(f"pairs manifests/next/{stage}.json --json").out)["pairs"]
    assert sentences(1) in [pair["stays"]["text"] for pair in pairs]
    assert "`datakit remove`" in datakit("index remove").err
    other = [*(["--policy", "longest"] if level == "dedup-urls" else ["--min-words", "6"]), "--output", "other"]
    said = datakit(level, "next.jsonl", "--against", old, *other)
    assert said.code == 2 and ("needs policy first" if level == "dedup-urls" else "made with min_words") in said.err
