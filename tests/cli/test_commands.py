"""The command line, as a user meets it: every way in, and what it says when something is wrong."""

import json
import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import datakit as python_api
import datakit.config as own_config
from datakit.cli.main import commands
from datakit.config import options
from datakit.engine.recipe import FLOW, STAGES, stage_class
from datakit.errors import ConfigError, DatakitError
from datakit.manifest import Manifest, load
from tests.cli.conftest import done
from tests.engine.corpus import WORDS, write_project
from tests.files import says, user, write_recipe, write_rows
from tests.processes import python

ANSWERS = [
    "A shard is one file of a larger set, so that each worker can take its own part without asking any other one.",
    "A token is the unit that a model reads: often a word, a part of a word or a single byte of the given text.",
    "A manifest names every file that a stage wrote, together with its checksum, and is written after all of them.",
    "A packed row holds several sequences one after the other, and attention never crosses from one to the next.",
]


def chats(path: Path, rows: int = 24) -> Path:
    made = []
    for n in range(rows):
        said = f"{ANSWERS[n % 4]} This is answer number {n}, given on request {n * n}."
        made.append({"id": f"c{n}", "messages": [user(f"Question {n}?"), says(said)]})
    return write_rows(path, made)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's memory")
def test_a_shard_gets_the_memory_of_the_one_before(monkeypatch):
    """Without the command's setting, the arrays of the second round take 3,000 fresh pages."""
    code = """
import datakit.__main__, resource
import numpy as np
def fresh_pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(2):
    before = fresh_pages()
    for _ in range(3):
        shard = [np.ones(20 << 20, np.uint8) for _ in range(3)]
        del shard
print(fresh_pages() - before)
"""
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    assert int(python("-c", code).stdout) < 500


def test_help_lists_every_command(datakit):
    said = datakit("--help").out
    assert all(re.search(rf"^  {name} ", said, re.M) for name in commands())


def test_a_command_that_compiles_kernels_says_so_once_and_not_with_json(project):
    (project / "in.txt").write_text("a\n")  # few kernels are needed

    for flags, count in (([], 1), (["--json"], 0)):
        command = ("-m", "datakit", "ingest", "in.txt", "--output", f"out{count}", *flags)
        said = python(*command, cwd=project, NUMBA_CACHE_DIR=str(project / f"cache{count}")).stderr
        assert said.count("compiling kernels") == count and bool(said) == bool(count)


def test_a_dataset_is_run_and_opened_by_its_name_and_new_files_of_its_pattern_are_read(datakit, project):
    for name in ("raw/a.jsonl", "raw/b.jsonl", "other/c.jsonl", "other/d.jsonl"):
        write_rows(project / name, [{"text": f"the text of {name}"}])
    said = datakit("init mine raw/a.jsonl other/c.jsonl raw/b.jsonl --map text=text").out
    recipe = (project / "manifests/mine/recipe.toml").read_text()
    assert 'inputs = ["raw/*.jsonl", "other/c.jsonl"]' in recipe and 'map = {text = "text"}' in recipe
    assert "new files like raw/*.jsonl are read too" in said and "other" not in said
    (project / "raw/e.jsonl").write_text('{"text": "a text of its own"}\n')
    assert datakit("run mine --until ingest").code == 0
    assert len(python_api.open("mine")) == 4
    assert datakit("show mine").out.startswith("mine / ingest") and datakit("verify mine").code == 0
    assert datakit("run mine --dataset other").code == 2
    with pytest.raises(DatakitError, match="absent: cannot read the manifest"):
        python_api.open("absent")


@pytest.mark.parametrize("command", commands())
def test_every_command_has_help(datakit, command):
    said = datakit(command, "--help")
    assert said.code == 0 and "Usage: datakit" in said.out


@pytest.mark.parametrize("stage", [s for s in FLOW if s != "tokenizer"])
def test_help_shows_what_matters_and_help_all_every_field_of_a_recipe(datakit, stage):
    shown, every = (datakit(stage, flag).out for flag in ("--help", "--help-all"))
    assert re.search(r"\n--help-all shows \d+ more options\.\n$", shown) and "more options" not in every
    for o in options(stage_class(stage).Config):
        assert o.help, f"{stage}.{o.name} has no help"
        if not o.nested and o.name != "kind":
            flag = rf"\n  --{o.name.replace('_', '-')}[ ,\n]"
            assert re.search(flag, every) and bool(re.search(flag, shown)) != o.advanced
    assert all(f"\n  {flag} " in shown for flag in ("--dataset", "--output", "--set"))
    assert "--executor" in every and "--executor" not in shown


def test_an_option_or_a_stage_that_is_gone_says_what_to_use_instead(datakit, project, monkeypatch):
    gone = {"dedup.old_flag": "use --on.", "old_stage": "use `datakit dedup`."}
    monkeypatch.setattr(own_config, "removed", lambda: gone)
    for args in (["--old-flag", "1"], ["--no-old-flag"], ["--old_flag=x"]):
        datakit("dedup", "in.jsonl", *args).fails(2, "is gone: use --on.")
    assert "'old-stage' is gone: use `datakit dedup`." in datakit("old-stage").err
    with pytest.raises(ConfigError, match="'old_flag' is gone: use --on"):
        python_api.dedup(["in.jsonl"], old_flag=1)


def test_a_file_that_is_not_what_a_stage_needs_is_refused_before_any_work(datakit, project):
    chats(project / "chats.jsonl")
    (project / "bad.txt").write_text("hello")
    for file, said in (("bad.txt", "expected a fastText model"), ("nothing.txt", "nothing.txt")):
        done = datakit("language", "chats.jsonl", "--model", file, "--output", "out")
        assert done.code == 1 and said in done.err and not (project / "out").exists()


def test_a_recipe_runs_every_stage_once_and_then_nothing(datakit, project):
    chats(project / "chats.jsonl")
    assert "wrote manifests/mine/recipe.toml" in datakit("init mine --kind sft chats.jsonl").out
    recipe = project / "manifests/mine/recipe.toml"
    recipe.write_text(recipe.read_text().replace("# vocab_size = ", "vocab_size = 400 # "))
    said = done("run --dataset mine --set pack.seq_len=128")
    assert all(f"\n{stage} " in said.out for stage in ("ingest", "dedup", "tokenize", "pack")) and "\nnext:" in said.out
    before = {p: p.stat().st_mtime_ns for p in (project / "data").rglob("*") if p.is_file()}
    again = datakit("run --dataset mine --set pack.seq_len=128")
    assert again.err.count("up to date") == sum(s.default for s in STAGES.values()) + 1  # init adds a tokenizer
    assert before == {p: p.stat().st_mtime_ns for p in (project / "data").rglob("*") if p.is_file()}
    assert datakit("verify manifests/mine/pack.json").code == 0


@pytest.mark.parametrize(
    ("stage", "found"), [("ingest", "raw input: cannot be checked"), ("language", "parent manifest")]
)
def test_a_run_file_that_is_lost_or_damaged_is_named_and_written_again(datakit, project, stage, found):
    write_project(project, rows=20, files=1)
    assert datakit("run --until language").code == 0
    file, result = project / f"manifests/d/{stage}.run.json", "manifests/d/language.json"
    whole = file.read_bytes()
    for spoil in (Path.unlink, lambda file: file.write_bytes(whole[:40])):
        spoil(file)
        datakit("verify", result).fails(1, found, f"{file.name} is missing or damaged")
        assert "where its inputs are is written down again" in datakit("run --until language").err
        assert file.read_bytes() == whole and datakit("verify", result).code == 0
    assert "written down" not in datakit("run --until language").err


def test_a_flag_may_have_underscores_and_a_dataset_has_the_name_of_its_file(datakit, project):
    chats(project / "chats.jsonl")
    assert datakit("ingest chats.jsonl --shard_mb 2").code == 0
    assert load(project / "manifests/chats/ingest.json").config["shard_mb"] == 2


def test_a_stage_without_inputs_goes_on_from_the_one_before(datakit, project):
    write_project(project, rows=80, files=2)
    assert datakit("dedup").code == 0  # ingest and language were missing and ran first
    made = {p.stem for p in (project / "manifests/d").glob("*.json") if ".run" not in p.name}
    assert made == {"dedup", "ingest", "language"}
    said = datakit("dedup --threshold 0.9 --json")
    assert json.loads(said.out)["stage"] == "dedup"
    assert datakit("filter manifests/d/dedup.json").code == 0
    assert load(project / "manifests/d/filter.json").parents[0]["version"] == json.loads(said.out)["version"]
    assert "dedup runs again" in datakit("filter").err, "the recipe has another threshold than the command before"


def test_a_shard_without_duplicates_is_taken_over(datakit, project):
    for name, numbers in {"a": range(9000), "b": [1, *range(9000, 9020), 9001]}.items():
        texts = [" ".join(random.Random(n).choices(WORDS, k=20)) for n in numbers]
        write_rows(project / f"{name}.jsonl", ({"text": text, "url": text[:60]} for text in texts))
    assert datakit("ingest a.jsonl b.jsonl --shard-mb 1 --output rows").code == 0
    assert datakit("dedup-urls rows --output unique").code == 0
    rows, unique = load(project / "rows/manifest.json"), load(project / "unique/manifest.json")
    assert unique.ledger.rows.dropped == {"duplicate_url": 2} and rows.ledger.rows.kept == 9022
    same = [(project / "rows" / s.path).samefile(project / "unique" / s.path) for s in rows.of_role("kept")]
    assert same == [True, True, False]
    assert unique.of_role("kept")[0] == rows.of_role("kept")[0]
    assert datakit("verify unique").code == 0


def two_versions(datakit: Callable, project: Path) -> Manifest:
    """A project with two results of dedup; the earlier one."""
    write_project(project, rows=80, files=2)
    assert datakit("run --until dedup").code == 0
    old = load(project / "manifests/d/dedup.json")
    assert datakit("dedup --threshold 0.9").code == 0
    return old


def test_gc_removes_only_what_no_manifest_names(datakit, project):
    old = two_versions(datakit, project)
    (project / "data/d/dedup/00ff00ff00ff00ff/kept").mkdir(parents=True)
    assert "would remove data/d/dedup/00ff00ff00ff00ff" in datakit("gc --dry-run").out
    said = datakit("gc")
    assert said.out.count("removed") == 1 and "00ff00ff00ff00ff" in said.out
    assert len(list((project / "data/d/dedup").iterdir())) == 2
    (project / f"manifests/d/history/dedup-{old.version}.json").unlink()
    assert datakit("gc").out.count("removed") == 1
    assert datakit("verify manifests/d/dedup.json").code == 0


def test_purged_versions_keep_their_manifests_and_verify_reports_them(datakit, project):
    old = two_versions(datakit, project)
    assert datakit("ingest raw --dataset other").code == 0
    assert "would purge d / dedup" in datakit("gc --purge --dry-run").out
    assert datakit("gc --purge --dataset other").out == "0 bytes were freed\n"
    said = datakit("gc --purge")
    assert said.out.count("purged") == 1 and f"purged d / dedup {old.version}" in said.out
    assert len(list((project / "data/d/dedup").iterdir())) == 1
    history = f"manifests/d/history/dedup-{old.version}.json"
    for command in (["verify", history], ["show", history]):
        said = datakit(*command)
        assert said.code == 0 and "shards were purged on 2" in said.out
    assert "purged" not in datakit("verify manifests/d/dedup.json").out
    assert datakit("gc --purge").out == "0 bytes were freed\n"
    (project / "data/d/dedup" / old.key[:16]).mkdir()
    assert datakit("verify", history).code == 1, "a folder without its shards is no purged one"


def test_raw_private_values_of_earlier_stages_can_be_taken_from_the_disk(datakit, project):
    secret = "anna.keller@firma-keller.de"
    rows = [{"id": f"r{n}", "text": f"Row {n} says {n * 7919}. Write to {secret} by {n}."} for n in range(30)]
    (project / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0]]) + "{broken\n")
    flags = ["--rules", "private"]
    assert datakit("dedup rows.jsonl --dataset d").code == 0
    assert datakit("filter", "manifests/d/dedup.json", *flags).code == 0

    def holders(folder: Path) -> set[str]:
        found = [f for f in folder.rglob("*.parquet") if secret in str(pq.read_table(f).to_pylist())]
        return {f.relative_to(folder).parts[0] for f in found}

    assert holders(project / "data/d") == {"ingest", "dedup"}
    assert datakit("gc --purge --before filter").code == 2, "which dataset?"
    assert "has no result of the stage 'pack'" in datakit("gc --purge --dataset d --before pack").err
    said = datakit("gc --purge --dataset d --before filter --dry-run").out
    assert said.count("would purge d / ") == 2 and holders(project / "data/d") == {"ingest", "dedup"}
    assert datakit("gc --purge --dataset d --before filter").out.count("purged d / ") == 2
    assert not holders(project / "data/d") and not list((project / "data/d").glob("[id]*/*"))
    said = datakit("verify manifests/d/filter.json")
    assert said.code == 0 and said.out.count("shards were purged on 2") >= 2
    assert datakit("dedup rows.jsonl --dataset d").code == 0, "a later run makes them again"

    assert datakit("filter", "rows.jsonl", "--output", "out", *flags).code == 0
    assert holders(project / "out") == {"parents"}
    assert datakit("gc --purge --output out").out.count("purged rows / ingest") == 1
    assert not holders(project / "out") and (project / "out/parents/ingest/manifest.json").is_file()
    said = datakit("verify out/manifest.json")
    assert said.code == 0 and "shards were purged on 2" in said.out
    assert datakit("gc --purge --output out").out == "0 bytes were freed\n"


def test_a_hub_that_cannot_be_reached_is_no_error_of_ours(datakit, monkeypatch, project):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # the port that discards: nobody answers
    said = datakit("ingest hf://datasets/none/none")
    assert said.code == 1 and "error in datakit" not in said.err, said.err


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["run"], 2, "no dataset named"), (["nope"], 2, "No such command"), (["dedup", "--nope"], 2, "No such option"),
        (["dedup", "missing.jsonl"], 1, "missing.jsonl"),
        (["dedup", "in.jsonl", "--threshold", "high"], 2, "expected float, found 'high'"),
        (["dedup", "in.jsonl", "--set", "threshold"], 2, "expected key=value"),
        (["ingest", "in.jsonl", "--output", "full"], 2, "holds 'other'"),
        (["ingest", "in.jsonl", "--output", "in.jsonl"], 2, "is a file"),
        (["ingest", "in.jsonl", "--kind", "sft"], 1, "in.jsonl"),
        (["ingest", "bad.jsonl", "--strict"], 3, "bad.jsonl, line 2"), (["ingest", "empty"], 1, "empty"),
        (["pack", "in.jsonl"], 2, "tokenizer"), (["run", "--dataset", "broken"], 2, "is not TOML"),
        (["verify", "in.jsonl"], 1, "in.jsonl"), (["show", "nowhere.json"], 1, "nowhere.json"),
        (["explain", "x", "--dataset", "none"], 2, "none"),
        (["ingest", "in.jsonl", "--kind", "none"], 2, "is not one of"),
        (["ingest", "in.jsonl", "--limit", "-3"], 2, "limit is -3"), (["export", "in.jsonl"], 2, "--output"),
        (["dedup", "ids.jsonl", "--output", "o"], 2, "hold token ids and no text"),
        (["run", "--dataset", "a"], 2, "recipe.toml"), (["run", "--dataset", "b"], 2, "recipe.toml"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_clear_paragraph(datakit, project, args, code, words):
    """Code 2: the command or the recipe is wrong. Code 1: what it names is missing, damaged or something else."""
    (project / "in.jsonl").write_text('{"text": "a"}\n')
    (project / "bad.jsonl").write_text('{"text": "a"}\n{"text": \n')
    (project / "empty").mkdir()
    write_rows(project / "full/other", [])
    (project / "ids.jsonl").write_text('{"input_ids": [1, 2, 3]}\n')
    recipes = {"broken": "x = ", "a": "dedup = 3\n", "b": '[dataset]\nstages = ["dedup"]\n'}
    for name, text in recipes.items():
        write_recipe(project, text, name)
    said = datakit(*args)
    assert said.code == code, said.err
    assert "Traceback" not in said.err and "error in datakit" not in said.err
    assert words in said.err


def test_clashing_ids_get_suffixes_that_are_free_and_explain_knows_quarantined_rows_too(datakit, project):
    ids = ["a", "b", "a", "a#2", "a"]
    write_rows(project / "in.jsonl", ({"id": i, "text": f"t{n}"} for n, i in enumerate(ids)))
    said = datakit("ingest in.jsonl --output o --json")
    summary = json.loads(said.out)
    assert summary["ledger"]["notes"] == {"id_clashes": 2} and said.err == "" and summary["ledger"]["rows"]["in"] == 5
    assert summary["version"] == load(project / "o/manifest.json").version
    shown = datakit("show o --rows 9").out
    assert re.findall(r"kept: (\S+)", shown) == ["a", "b", "a#3", "a#2", "a#4"]
    (project / "bad.jsonl").write_text('{"text": "a"}\n{"text": \n')
    assert datakit("ingest bad.jsonl --dataset x").code == 0
    said = datakit("explain bad.jsonl:1 --dataset x")
    assert said.code == 0 and "quarantined" in said.out and "line 2" in said.out
