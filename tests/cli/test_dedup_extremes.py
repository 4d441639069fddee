"""Inputs at the edge: floods of rows alike, one row longer than all others together, the same rows in many files."""

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from datakit.manifest import load
from tests.engine.corpus import write_corpus


def put(path: Path, texts: Iterable[str]) -> None:
    with path.open("w") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")


def test_a_row_longer_than_all_others_together(datakit: Callable, project: Path) -> None:
    rng = random.Random(3)
    long = " ".join(f"w{rng.randrange(50_000)}" for _ in range(200_000))
    small = "a few words that stay here for the test"
    put(project / "in.jsonl", [small, long, long[:-30] + " changed at the end", small, long + "\n"])
    assert datakit("dedup", "in.jsonl", "--output", "out", "--kind", "text", "--save-index").code == 0
    assert load(project / "out/manifest.json").ledger.rows.dropped == {"exact_duplicate": 2, "near_duplicate": 1}
    assert datakit("verify", "out").code == 0


BASE = [f"b{n}" for n in range(100)]


def lines_of(words: list[str]) -> str:
    return "\n".join(" ".join(words[n : n + 25]) + "." for n in range(0, 100, 25))


@pytest.mark.parametrize("level", ["line", "sentence"])
def test_what_a_flood_of_rows_that_differ_in_one_word_costs_a_level_grows_with_the_rows(
    datakit: Callable, project: Path, level: str
) -> None:
    """Each unit is compared once, whatever the number of rows."""
    rows = 3_000
    put(project / "in.jsonl", (lines_of([*BASE[:12], f"x{n}", *BASE[13:]]) for n in range(rows)))
    said = datakit("dedup-repeats", "in.jsonl", "--unit", level, "--output", "out", "--kind", "text")
    assert said.code == 0, said.err
    made = load(project / "out/manifest.json")
    assert made.ledger.rows.kept == 1
    compared, repeated = {"line": (4, 3), "sentence": (2, 1)}[level]
    assert (made.facts["windows_compared"], made.facts["windows_repeated"]) == (compared * rows, repeated)


def test_one_file_and_the_same_rows_in_many_files_give_the_same_rows(datakit: Callable, project: Path) -> None:
    """Rows do not depend on the files around theirs: `record` and `source` alone tell which file a row came from."""
    write_corpus(project / "one", rows=700, files=1)
    lines = (project / "one/part-0.jsonl").read_text().splitlines(keepends=True)
    (project / "many").mkdir()
    for number in range(37):
        part = lines[number * len(lines) // 37 : (number + 1) * len(lines) // 37]
        (project / f"many/part-{number:02d}.jsonl").write_text("".join(part))
    found = []
    for name, workers in (("one", 3), ("many", 2)):
        said = datakit("dedup", name, "--output", f"out-{name}", "--kind", "text", "--workers", workers,
                       "--set", "ingest.shard_mb=1")  # fmt: skip
        assert said.code == 0, said.err
        made = load(project / f"out-{name}/manifest.json")
        rows: dict[str, list] = {}
        for shard in made.shards:
            table = pq.read_table(project / f"out-{name}" / shard.path).drop_columns(["record", "source"])
            rows.setdefault(shard.role, []).extend(table.to_pylist())
        found.append(rows)
        assert made.ledger.rows.dropped["near_duplicate"] > 20
    assert len(found[0]["kept"]) > 400
    assert found[0] == found[1]
