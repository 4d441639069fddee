"""Inputs at the edge: floods of rows alike, one row longer than all others together, the same rows in many files."""

import random

import pytest

from datakit.manifest import load
from tests.cli.conftest import done
from tests.files import write_rows


def test_a_row_longer_than_all_others_together(datakit, project):
    rng = random.Random(3)
    long = " ".join(f"w{rng.randrange(50_000)}" for _ in range(200_000))
    small = "a few words that stay here for the test"
    texts = [small, long, long[:-30] + " changed at the end", small, long + "\n"]
    write_rows(project / "in.jsonl", ({"text": text} for text in texts))
    assert datakit("dedup in.jsonl --output out --kind text --save-index").code == 0
    assert load(project / "out/manifest.json").ledger.rows.dropped == {"exact_duplicate": 2, "near_duplicate": 1}
    assert datakit("verify out").code == 0


BASE = [f"b{n}" for n in range(100)]


def lines_of(words: list[str]) -> str:
    return "\n".join(" ".join(words[n : n + 25]) + "." for n in range(0, 100, 25))


@pytest.mark.parametrize("level", ["line", "sentence"])
def test_what_a_flood_of_rows_that_differ_in_one_word_costs_a_level_grows_with_the_rows(datakit, project, level):
    """Each unit is compared once, whatever the number of rows."""
    rows = 3_000
    write_rows(project / "in.jsonl", ({"text": lines_of([*BASE[:12], f"x{n}", *BASE[13:]])} for n in range(rows)))
    done("dedup-repeats", "in.jsonl", "--unit", level, "--output", "out", "--kind", "text")
    made = load(project / "out/manifest.json")
    assert made.ledger.rows.kept == 1
    compared, repeated = {"line": (4, 3), "sentence": (2, 1)}[level]
    assert (made.facts["windows_compared"], made.facts["windows_repeated"]) == (compared * rows, repeated)
