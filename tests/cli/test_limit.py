"""`--limit` on a result: the first rows come in, no more and no others, and every check knows it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import datakit as dk
from datakit.engine.store import inspect
from datakit.manifest import load, load_run, save, verify
from datakit.report.peek import roundtrip_problem
from tests.cli.conftest import Said

ROWS = 90


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> dk.Dataset:
    """Rows in three shards, of 40, 30 and 20 rows; each fourth one repeats the one before it."""
    folder = tmp_path_factory.mktemp("limit")
    at = 0
    for number, rows in enumerate((40, 30, 20)):
        said = (f"the {at + n - (n % 4 == 3)}th of all rows has words of its own" for n in range(rows))
        lines = (json.dumps({"id": f"r{at + n}", "text": text}) for n, text in enumerate(said))
        (folder / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
        at += rows
    files = [str(p) for p in sorted(folder.glob("*.jsonl"))]
    return dk.ingest(files, output=folder / "ingested", shard_mb=1).dataset


def ids(dataset: dk.Dataset) -> list[str]:
    """The ids of the kept and the dropped rows, in the order of the input."""
    found = {row["id"] for role in ("kept", "dropped") for row in dataset.to_table(role).to_pylist()}
    return sorted(found, key=lambda name: int(name[1:]))


def problems(dataset: dk.Dataset) -> list[str]:
    return [problem for _, problem in verify(dataset.path, inspect) if problem]


@pytest.mark.parametrize(
    ("stage", "limit"), [*(("filter", limit) for limit in (1, 40, 41, 90, 1000)), ("dedup", 41), ("dedup_repeats", 70)]
)
def test_the_first_rows_come_in(ingested: dk.Dataset, tmp_path: Path, stage: str, limit: int) -> None:
    made = getattr(dk, stage)(ingested, limit=limit, output=tmp_path / "out").dataset
    assert ids(made) == [f"r{n}" for n in range(min(limit, ROWS))]
    assert made.ledger.rows.into == min(limit, ROWS)
    assert not problems(made)


def test_pack_takes_the_first_rows_and_proves_it(ingested: dk.Dataset, small_tokenizer: Path, tmp_path: Path) -> None:
    tokens = dk.tokenize(ingested, tokenizer=str(small_tokenizer), output=tmp_path / "tokens").dataset
    packed = dk.pack(tokens, limit=45, seq_len=64, output=tmp_path / "packed").dataset
    assert packed.ledger.rows.into == 45
    assert roundtrip_problem(packed.path) is None
    mixed = dk.pack(tokens, limit=45, seq_len=64, max_tokens={"0.jsonl": 50}, output=tmp_path / "mixed").dataset
    assert mixed.ledger.rows.into == 45 and mixed.ledger.rows.kept < 45
    assert roundtrip_problem(mixed.path) is None
    both = dk.pack(ingested, limit=45, seq_len=64, tokenize={"tokenizer": str(small_tokenizer)}, output=tmp_path / "b")
    assert both.dataset.parents[0].ledger.rows.into == 45


def test_a_wrong_count_is_found(ingested: dk.Dataset, tmp_path: Path) -> None:
    made = dk.filter(ingested, limit=50, output=tmp_path / "out").dataset
    entry = load(made.path).parents[0]
    assert entry["limit"] == 50
    forged = replace(made.manifest, parents=(entry | {"limit": 51}, *load(made.path).parents[1:]))
    save(made.path, forged, load_run(made.path))
    assert any("gives 51 rows" in problem and "took in 50" in problem for problem in problems(made))


def test_a_run_without_the_limit_makes_all_rows_anew(datakit: Callable[..., Said], project: Path) -> None:
    texts = [f"row {n} has words of its own, and more than three" for n in range(9)]
    lines = [json.dumps({"id": f"r{n}", "text": text}) for n, text in enumerate([*texts, texts[0]])]
    (project / "a.jsonl").write_text("\n".join(lines) + "\n")
    assert datakit("dedup", "a.jsonl", "--dataset", "a").code == 0
    said = datakit("filter", "--dataset", "a", "--limit", "4", "--allow-empty")
    assert said.code == 0 and "its first 4 rows" in datakit("show", "manifests/a/filter.json").out
    assert "up to date" in datakit("filter", "--dataset", "a", "--limit", "4").err
    told = {n: "not among the first 4 rows" in datakit("explain", n, "--dataset", "a").out for n in ("r3", "r4", "r9")}
    assert told == {"r3": False, "r4": True, "r9": False}, "r9 was dropped before"
    assert datakit("filter", "--dataset", "a").code == 3
    assert load(project / "manifests/a/filter.json").ledger.rows.into == 9
    assert "the limit on rows of dedup is not set now, and was 4" in datakit("history", "--dataset", "a").out
    wrong = datakit("filter", "--dataset", "a", "--limit", "-4")
    assert wrong.code == 2 and "limit is -4" in wrong.err
