"""A dataset that grows: units of earlier runs serve again, and the result is that of a fresh run, byte for byte."""

import gzip
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from datakit.engine.executors import Local
from datakit.manifest import data_dir, load, load_run, verify
from datakit.read.planning import groups, plan
from datakit.read.stage import IngestConfig
from tests.engine.corpus import WORDS, run_all
from tests.files import flip, write_recipe

STAGES = ("ingest", "language", "dedup", "filter")
RECIPE = """
[dataset]
kind = "text"
inputs = ["raw/*"]
stages = ["ingest", "language", "dedup", "filter"]
[filter.gopher_quality]
min_words = 10
min_stop_words = 0
[dedup]
save_index = SAVE_INDEX
AGAINST
"""
Files = dict[str, list[str]]


def text_of(number: int) -> str:
    return " ".join(random.Random(number).choices(WORDS, k=40)) + f" number {number}"


def corpus(files: int = 5, rows: int = 12, first: int = 0) -> Files:
    """Files of lines without ids; the last line of each repeats a line of the first file."""
    numbers = [first + n for n in range(files * rows)]
    of_file = [[*numbers[f * rows : (f + 1) * rows], first + f + 1] for f in range(files)]
    return {f"f{f}.jsonl": [json.dumps({"text": text_of(n)}) for n in own] for f, own in enumerate(of_file)}


class Project:
    """A project whose raw files are put there as a whole."""

    def __init__(self, root: Path, settings: str = "", save_index: bool = False) -> None:
        self.root = root
        (root / "raw").mkdir(parents=True)
        recipe = RECIPE.replace("SAVE_INDEX", str(save_index).lower()).replace("AGAINST", settings)
        write_recipe(root, recipe)

    def run(self, files: Files, workers: int = 1) -> None:
        """Put these files there and run all stages."""
        for old in (self.root / "raw").iterdir():
            old.unlink()
        for name, lines in files.items():
            data = ("\n".join(lines) + "\n").encode()
            (self.root / "raw" / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        run_all(self.root, Local(workers))

    def manifest(self, stage: str) -> Path:
        return self.root / f"manifests/d/{stage}.json"

    def results(self) -> dict[str, bytes]:
        """The manifests, and all files that they name."""
        found = {stage: self.manifest(stage).read_bytes() for stage in STAGES}
        for stage in STAGES:
            manifest = load(self.manifest(stage))
            folder = data_dir(self.manifest(stage), manifest)
            found |= {f"{stage}/{s.path}": (folder / s.path).read_bytes() for s in manifest.shards}
        return found

    def done(self) -> dict[str, int]:
        """Units that the last run did itself, by stage and phase."""
        runs = {stage: load_run(self.manifest(stage))["units"] for stage in STAGES}
        return {f"{stage} {phase}": n["done"] for stage, phases in runs.items() for phase, n in phases.items()}


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[..., dict[str, bytes]]:
    """The results of one run over some files in a new project."""

    def run(files: Files, **settings: object) -> dict[str, bytes]:
        project = Project(tmp_path / f"fresh-{len(list(tmp_path.iterdir()))}", **settings)
        project.run(files)
        return project.results()

    return run


def changes() -> dict[str, tuple[Callable[[Files], Files], int]]:
    """By name: how the files change, and the units of ingest and language that must be done."""
    new = [json.dumps({"text": text_of(n)}) for n in range(900, 910)]
    other = {"f3.jsonl": "z.jsonl", "f4.jsonl": "f4.jsonl.gz"}
    return {
        "a file is added before all others": (lambda f: f | {"a.jsonl": new}, 1),
        "a file is removed": (lambda f: {n: lines for n, lines in f.items() if n != "f1.jsonl"}, 0),
        "a file changes, one is renamed, one compressed": (
            lambda f: {other.get(n, n): lines for n, lines in f.items()} | {"f2.jsonl": [*f["f2.jsonl"], *new]},
            3,
        ),
    }


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project that ran once."""
    project = Project(tmp_path_factory.mktemp("original") / "grown")
    project.run(corpus(rows=6))
    return project.root


@pytest.mark.parametrize("change", changes())
def test_only_the_files_that_changed_are_read_and_the_result_is_that_of_a_fresh_run(change, original, tmp_path, fresh):
    alter, units = changes()[change]
    project, files = Project(tmp_path / "grown"), corpus(rows=6)
    shutil.copytree(original, project.root, dirs_exist_ok=True)
    assert project.done() == {
        "ingest read": 5, "ingest split": 0, "language split": 5,
        "dedup sketch": 5, "dedup split": 5, "filter split": 5,
    }  # fmt: skip
    before = project.manifest("dedup").read_bytes()
    project.run(alter(files), workers=2)
    assert project.results() == fresh(alter(files))
    assert [p for p in verify(project.manifest("filter")) if p[1]] == []
    done = project.done()
    assert [done[k] for k in ("ingest read", "language split", "dedup sketch")] == [units] * 3
    assert project.manifest("dedup").read_bytes() != before
    assert max(done["dedup split"], done["filter split"]) < 5, "the decisions about the other files are the same"


def test_files_whose_ids_clash_are_read_once(tmp_path, fresh):
    """Every file numbers its rows from 0, so that most get another id, and another one when a file comes before."""

    def numbered(lines: list[str]) -> list[str]:
        return [json.dumps({"id": n} | json.loads(line)) for n, line in enumerate(lines)]

    files = {name: numbered(lines) for name, lines in corpus().items()}
    project, more = Project(tmp_path / "grown"), files | {"a.jsonl": files["f0.jsonl"][:3]}
    project.run(files)
    whole = project.results()
    project.run(more)
    assert project.done()["ingest read"] == 1
    assert project.results() == fresh(more)
    project.run(files)
    assert project.done()["ingest read"] == 0
    assert project.results() == whole


@pytest.mark.campaign
def test_growing_against_an_earlier_dataset_is_a_fresh_run_against_it(tmp_path, fresh):
    old = Project(tmp_path / "old", save_index=True)
    old.run(corpus(2, first=6))
    against = {"settings": f'against = "{old.manifest("dedup")}"', "save_index": True}
    project, files = Project(tmp_path / "grown", **against), corpus()
    project.run(files)
    more = {"a.jsonl": [json.dumps({"text": text_of(n)}) for n in (3, 7, 901)]} | files
    project.run(more)
    assert project.done()["dedup sketch"] == 1
    assert project.results() == fresh(more, **against)
    old.run(corpus(3, first=6))  # the earlier dataset grows, too
    project.run(more)
    assert project.done()["dedup sketch"] == 0
    assert project.results() == fresh(more, **against)


def test_what_is_damaged_or_gone_is_made_again(tmp_path):
    project, files = Project(tmp_path / "grown"), corpus()
    project.run(files)
    whole = project.results()
    folder = data_dir(project.manifest("language"), load(project.manifest("language")))
    (sketch,) = folder.parents[1].glob("dedup/*/.units/sketches/part-00002.arrow")
    for file in (folder / "kept/part-00001.parquet", sketch):
        copy = Path(shutil.copy(file, tmp_path))
        flip(copy)
        copy.replace(file)  # a new file: other runs have links to the one before
    for gone in folder.parents[1].glob("ingest/*/**/kept/part-00003.parquet"):  # the shard, and its link in `.units`
        gone.unlink()
    project.run(files | {"z.jsonl": files["f0.jsonl"][:1]})
    done = project.done()
    assert (done["ingest read"], done["language split"], done["dedup sketch"]) == (2, 2, 2)
    (tmp_path / "grown/data/d/filter").rename(tmp_path / "gone")
    project.run(files)
    assert project.results() == whole


def test_many_small_files_share_shards_and_a_new_one_concerns_its_neighbours_only(tmp_path):
    for n in range(700):
        (tmp_path / f"{n:04d}.txt").write_text("x")

    def names() -> set[tuple[str, ...]]:
        planned = plan([str(tmp_path)], IngestConfig())
        return {tuple(planned.files[place].name for place in group) for group in groups(planned)}

    before = names()
    assert 12 < len(before) < 80
    (tmp_path / "0300b.txt").write_text("x")
    (tmp_path / "large.txt").write_text("x" * (16 << 20))
    new = names() - before
    assert ("large.txt",) in new and len(new) <= 4
