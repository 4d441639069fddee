"""pairs, as a user meets it."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.files import write_rows

WORDS = [f"word{n}" for n in range(500)]


def text(seed: int, changes: int = 0) -> str:
    rng = random.Random(seed)
    words = rng.choices(WORDS, k=150)
    for n in range(changes):
        words[n * 20 + 9] = f"new{n}"
    return " ".join(words)


def write(path: Path, rows: dict[str, str]) -> None:
    write_rows(path, ({"id": name, "text": said} for name, said in rows.items()))


@pytest.fixture
def deduplicated(datakit: Callable, project: Path) -> Path:
    rows = {"a": text(1), "near": text(1, 1), "same": text(1), "doubtful": text(1, 3), "other": text(2)}
    write(project / "in.jsonl", rows)
    assert datakit("dedup", "in.jsonl", "--output", "out", "--num-bands", "100", "--rows-per-band", "1").code == 0
    return project / "out"


def test_pairs_lists_the_most_doubtful_drops_first(datakit: Callable, deduplicated: Path) -> None:
    said = datakit("pairs", "out", "--lowest", "2")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0] == "dedup dropped 3 rows: 2 near_duplicate, 1 exact_duplicate"
    assert lines[1] == "similarities: 0.80: 1, 0.90: 1, 1.00: 1"
    heads = [line for line in lines if "was dropped" in line]
    assert heads[0].endswith("[-doubtful (in.jsonl)-] was dropped, {+a (in.jsonl)+} stays")
    assert "[-near (in.jsonl)-]" in heads[1]
    assert sum("[-new" in line for line in lines) == 4


def test_pairs_of_nothing_dropped(datakit: Callable, project: Path) -> None:
    write(project / "in.jsonl", {"a": text(1)})
    assert datakit("dedup", "in.jsonl", "--output", "out").code == 0
    assert datakit("pairs", "out").out == "dedup dropped 0 rows\n"
