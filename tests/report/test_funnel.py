"""The end of a command: the funnel, alarms, what comes next; and results without rows."""

import json
from collections.abc import Callable
from pathlib import Path

from datakit.manifest import load
from tests.cli.conftest import datakit, project  # noqa: F401
from tests.engine.corpus import RECIPE, write_corpus


def texts(path: Path, rows: int, bad: int = 0) -> None:
    lines = [json.dumps({"id": f"r{n}", "text": f"The {n * 7919}th sentence is about harbours."}) for n in range(rows)]
    path.write_text("\n".join(lines + ['{"text": '] * bad) + "\n")


def test_a_run_ends_with_the_funnel_and_what_to_look_at_next(datakit: Callable, project: Path) -> None:  # noqa: F811
    write_corpus(project / "raw", rows=60, files=2)
    (project / "manifests/d").mkdir(parents=True)
    (project / "manifests/d/recipe.toml").write_text(RECIPE)
    said = datakit("run", "--dataset", "d")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    head = next(n for n, line in enumerate(lines) if " / pack  version" in line)
    assert lines[0].split() == ["stage", "rows", "in", "kept", "tokens", "in", "kept", "s", "MB/s", "dropped"]
    stages = [line.split()[0] for line in lines[1:head]]
    assert stages == ["ingest", "language", "dedup", "filter", "tokenizer", "tokenize", "pack"]
    ingest, dedup = (next(line for line in lines if line.startswith(f"{stage} ")) for stage in ("ingest", "dedup"))
    assert ingest.split()[:4] == ["ingest", "62", "60", "96.8%"] and ingest.endswith("2 could not be read")
    rows, tokens = (load(project / f"manifests/d/{s}.json").ledger for s in ("dedup", "pack"))
    assert dict(reversed(part.split(" ")) for part in dedup.split("  ")[-1].strip().split(", ")) == {
        reason: str(n) for reason, n in rows.rows.dropped.items()
    }
    assert f"{tokens.tokens.into:,}" in next(line for line in lines if line.startswith("pack "))
    assert "  datakit pairs manifests/d/dedup.json    # dropped duplicates beside the rows that stay" in lines
    again = datakit("run", "--dataset", "d", "--json")
    funnel = json.loads(again.out)["funnel"]
    assert [s["stage"] for s in funnel] == stages and funnel[0]["seconds"] > 0 and funnel[0]["mb_per_s"] > 0


def test_a_stage_that_keeps_nothing_is_the_last_line_in_red(datakit: Callable, project: Path) -> None:  # noqa: F811
    texts(project / "a.jsonl", 3)
    said = datakit("filter", "a.jsonl", "--rules", "gopher_quality", "--dataset", "d")
    assert said.code == 0
    assert said.out.splitlines()[-1] == "ALARM filter: keeps none of its 3 rows"
    assert load(project / "manifests/d/filter.json").facts["alarms"] == ["keeps none of its 3 rows"]


def test_records_that_cannot_be_read_are_a_loss_of_their_file(datakit: Callable, project: Path) -> None:  # noqa: F811
    texts(project / "good.jsonl", 300)
    texts(project / "bad.jsonl", 10, bad=30)
    said = datakit("ingest", "good.jsonl", "bad.jsonl", "--dataset", "d")
    assert said.code == 0 and "the source 'bad.jsonl' loses 30 of its 40 records (75.0%" in said.out
    assert "of all" not in said.out


def test_no_rows_replace_no_pack_with_rows(datakit: Callable, project: Path) -> None:  # noqa: F811
    texts(project / "a.jsonl", 40)
    (project / "manifests/d").mkdir(parents=True)
    recipe = project / "manifests/d/recipe.toml"
    recipe.write_text(
        '[dataset]\nkind = "text"\ninputs = ["a.jsonl"]\nstages = ["ingest", "filter", "tokenizer", "tokenize", "pack"]'
        '\n[filter]\nrules = ["gopher_quality"]\n[filter.gopher_quality]\nmin_words = 1\nmin_stop_words = 0\n'
        "[tokenizer]\nvocab_size = 300\n[pack]\nseq_len = 64\n"
    )
    assert datakit("run", "--dataset", "d").code == 0
    (tokenizer,) = project.glob("data/d/tokenizer/**/tokenizer.json")
    text = (
        recipe.read_text()
        .replace('"tokenizer", ', "")
        .replace("[tokenizer]\nvocab_size = 300", "[tokenize]\ntokenizer =")
    )
    recipe.write_text(text.replace("tokenizer =", f'tokenizer = "{tokenizer}"'))
    assert datakit("run", "--dataset", "d").code == 0
    first = load(project / "manifests/d/pack.json")
    assert first.ledger.rows.kept == 40
    nothing = ("run", "--dataset", "d", "--set", "filter.gopher_quality.min_words=100")
    said = datakit(*nothing)
    assert said.code == 1 and "holds 40 rows" in said.err and "--allow-empty" in said.err, said.err + said.out
    assert load(project / "manifests/d/pack.json") == first
    assert datakit(*nothing, "--allow-empty").code == 0
    assert load(project / "manifests/d/pack.json").ledger.rows.kept == 0
