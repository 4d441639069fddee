"""Arms of one recipe: what each holds, what is done once, and what is refused."""

import json
import random
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import datakit as python_api
from datakit import Dedup, Ingest, Pack, Pipeline, Tokenize
from datakit.errors import UsageError
from datakit.manifest import load
from tests.cli.conftest import Said, call, copy_of, done
from tests.engine.corpus import WORDS
from tests.files import says, user, write_recipe, write_rows
from train.compare import CompareConfig, open_arms

Datakit = Callable[..., Said]
STAGES = ["ingest", "normalize", "dedup", "filter", "tokenizer", "tokenize", "pack"]


def recipe(root: Path, dataset: str, stages: list[str], kind: str = "text", more: str = "") -> None:
    head = f'[dataset]\nkind = "{kind}"\ninputs = ["{dataset}.jsonl"]\nstages = {json.dumps(stages)}\n'
    write_recipe(root, head + more, dataset)


def texts() -> list[str]:
    """Fifty texts, ten of them again, five too short for the filter, and five with white space at the ends of lines."""
    long = [f"{' '.join(random.Random(i).choices(WORDS, k=80))}." for i in range(55)]
    return [*long[:50], *long[:10], *(f"short {i}" for i in range(5)), *(f"a cafe \n{text}" for text in long[50:])]


@pytest.fixture(scope="module")
def made(workshop: Path) -> Path:
    write_rows(workshop / "mydata.jsonl", ({"id": f"r{i}", "text": text} for i, text in enumerate(texts())))
    values = "[filter.gopher_quality]\nmin_words = 10\nmin_stop_words = 0\n[tokenizer]\nvocab_size = 300\n"
    recipe(workshop, "mydata", STAGES, more=f"{values}[pack]\nseq_len = 64\n")
    (workshop / "said.txt").write_text(done("ablate --dataset mydata").out)
    return workshop


def test_an_arm_lacks_what_one_stage_does_and_nothing_else(made):
    everything = {f"r{i}" for i in range(70)}
    again, short = {f"r{i}" for i in range(50, 60)}, {f"r{i}" for i in range(60, 65)}
    expected = {
        "mydata": everything - again - short,
        "mydata-without-normalize": everything - again - short,
        "mydata-without-dedup": everything - short,
        "mydata-without-filter": everything - again,
        "mydata-raw": everything,
    }
    assert {p.name for p in Path("manifests").iterdir()} == {*expected}
    for arm, rows in expected.items():
        kept = python_api.open(f"manifests/{arm}/tokenize.json").kept(["id"]).read_all()
        assert sorted(kept.column("id").to_pylist()) == sorted(rows)
        spaces = 5 * (arm in ("mydata-without-normalize", "mydata-raw"))
        assert done(f"unpack manifests/{arm}/pack.json").out.count("cafe \\n") == spaces
        assert done(f"verify manifests/{arm}/pack.json").code == 0


def test_arms_share_the_tokenizer_and_the_stages_before_the_missing_one(made):
    own = {p.parent.name: {q.stem for q in p.parent.glob("*.json") if ".run" not in q.name}
           for p in Path("manifests").glob("mydata-*/pack.json")}  # fmt: skip
    assert own == {
        "mydata-without-normalize": {"dedup", "filter", "tokenize", "pack"},
        "mydata-without-dedup": {"filter", "tokenize", "pack"},
        "mydata-without-filter": {"tokenize", "pack"},
        "mydata-raw": {"tokenize", "pack"},
    }
    first = {arm: load(next(Path("manifests", arm).glob(f"{stage}.json"))).parents[0] for arm, stage in (
        ("mydata-without-normalize", "dedup"), ("mydata-without-dedup", "filter"),
        ("mydata-without-filter", "tokenize"), ("mydata-raw", "tokenize"))}  # fmt: skip
    assert [p["manifest"] for p in first.values()] == ["ingest", "normalize", "dedup", "ingest"]
    packs = [load(Path("manifests", arm, "pack.json")) for arm in ("mydata", *own)]
    assert len({pack.facts["tokenizer"]["sha256"] for pack in packs}) == 1


def test_the_last_line_is_a_command_that_compare_takes_and_the_others_count(made):
    *counts, last = Path("said.txt").read_text().splitlines()
    assert [line.split()[:3] for line in counts] == [
        ["all", "55", "rows"], ["without-normalize", "55", "rows"], ["without-dedup", "65", "rows"],
        ["without-filter", "60", "rows"], ["raw", "70", "rows"],
    ]  # fmt: skip
    command = shlex.split(last.removeprefix("next: "))
    assert command[:3] == ["datakit-train", "compare", "--arms"] and command[-2] == "--heldout"
    arms = open_arms(CompareConfig(arms=tuple(command[3:-2]), heldout=("own=x.jsonl",)))
    sizes = {arm.name: len(arm.docs) for arm in arms}
    assert sizes == {"all": 55, "without-normalize": 55, "without-dedup": 65, "without-filter": 60, "raw": 70}
    assert arms[0].docs.keys() < arms[-1].docs.keys()


def test_a_second_time_everything_is_up_to_date_from_python_too(made):
    before = {p: p.read_bytes() for p in Path("manifests").rglob("*.json")}
    found = python_api.ablate("mydata")
    assert [*found] == ["all", "without-normalize", "without-dedup", "without-filter", "raw"]
    assert found["raw"] == Path("manifests/mydata-raw/pack.json")
    assert {p: p.read_bytes() for p in Path("manifests").rglob("*.json")} == before


def test_of_a_pipeline_one_stage_to_leave_out_gives_raw_alone(made, project):
    copy_of(made, project)
    (project / "small.jsonl").write_bytes((project / "mydata.jsonl").read_bytes())
    (folder,) = project.glob("data/mydata/tokenizer/*/kept/tokenizer")
    folder.rename("given")
    steps = [Ingest("small.jsonl"), Dedup(), Tokenize(tokenizer="given"), Pack()]
    assert [*python_api.ablate(Pipeline(steps, dataset="small").recipe)] == ["all", "raw"]
    with pytest.raises(UsageError, match=r"small: has no recipe.*datakit.ablate\(pipeline.recipe\)"):
        python_api.ablate("small")


def test_an_arm_that_equals_an_earlier_one_is_said_and_left_out(made, project):
    copy_of(made, project)
    (folder,) = project.glob("data/mydata/tokenizer/*/kept/tokenizer")
    folder.rename("given")
    stages = ["ingest", "normalize", "dedup", "tokenize", "pack"]
    recipe(project, "idle", stages, more='[tokenize]\ntokenizer = "given"\n')
    lines = [json.dumps({"text": text}) + "\n" for text in texts()[:60]]
    (project / "idle.jsonl").write_text("".join(lines))
    said = done("ablate --dataset idle")
    assert "without-normalize: holds the same bytes as all, and is left out" in said.err
    assert "raw: holds the same bytes as without-dedup" in said.err and "--arms all=" in said.out
    (project / "idle.jsonl").write_text("".join(lines[:50]))
    assert "nothing to compare" in done("ablate --dataset idle").out


@pytest.mark.parametrize(
    ("stages", "kind", "row", "said"),
    [
        (["ingest", "tokenizer", "tokenize", "pack"], "text", {"text": "x"}, "no stage that it could leave out"),
        (["ingest", "dedup", "filter"], "text", {"text": "x"}, "ends with filter.*add tokenize and pack"),
        (STAGES, "auto", {"messages": [user("a"), says("b")]}, "kind conversation, and arms are plain text"),
    ],
)  # fmt: skip
def test_recipes_that_have_no_arms_are_refused(project, stages, kind, row, said):
    recipe(project, "d", stages, kind)
    write_rows(project / "d.jsonl", [row])
    with pytest.raises(UsageError, match=said):
        python_api.ablate("d")


def test_a_dataset_that_is_missing_or_in_the_way_is_named(datakit, project):
    datakit("ablate --dataset absent").fails(2, "no dataset 'absent'")
    for name in ("d", "d-raw"):
        recipe(project, name, STAGES)
    datakit("ablate --dataset d").fails(2, "a dataset d-raw, which is no arm of d")
    assert call("ablate --help").out.count("without") > 1
