"""pairs and dedup's alarms, as a user meets them."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from datakit.manifest import load
from datakit.report.compare import text_similarity

WORDS = [f"word{n}" for n in range(500)]


def text(seed: int, changes: int = 0) -> str:
    rng = random.Random(seed)
    words = rng.choices(WORDS, k=150)
    for n in range(changes):
        words[n * 20 + 9] = f"new{n}"
    return " ".join(words)


def write(path: Path, rows: dict[str, str]) -> None:
    path.write_text("".join(json.dumps({"id": name, "text": said}) + "\n" for name, said in rows.items()))


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


def test_pairs_as_json_follow_the_lineage(datakit: Callable, deduplicated: Path) -> None:
    assert datakit("filter", "out/manifest.json", "--output", "later").code == 0
    found = json.loads(datakit("pairs", "later/manifest.json", "--json").out)
    assert found["dropped"] == {"exact_duplicate": 1, "near_duplicate": 2} and found["named"] == 3
    assert found["similarities"] == {"0.80": 1, "0.90": 1, "1.00": 1}
    assert [p["dropped"]["id"] for p in found["pairs"]] == ["doubtful", "near", "same"]
    assert {p["stays"]["id"] for p in found["pairs"]} == {"a"}
    assert found["pairs"][2]["dropped"]["text"] == found["pairs"][2]["stays"]["text"] == text(1)
    assert [p["similarity"] for p in found["pairs"]] == sorted(p["similarity"] for p in found["pairs"])


def test_pairs_of_nothing_dropped_and_of_no_dedup(datakit: Callable, project: Path) -> None:
    write(project / "in.jsonl", {"a": text(1)})
    assert datakit("dedup", "in.jsonl", "--output", "out").code == 0
    assert datakit("pairs", "out").out == "dedup dropped 0 rows\n"
    assert datakit("ingest", "in.jsonl", "--output", "rows").code == 0
    said = datakit("pairs", "rows")
    assert said.code == 1 and "expected the manifest of a dedup stage" in said.err


def test_a_lost_source_is_an_alarm_and_strict_stops_there(datakit: Callable, project: Path) -> None:
    write(project / "one.jsonl", {f"a{n}": text(n) for n in range(30)})
    write(project / "two.jsonl", {f"b{n}": text(n) for n in range(30)})
    said = datakit("dedup", "one.jsonl", "two.jsonl", "--output", "out", "--strict")
    assert said.code == 3 and "the source 'two.jsonl' loses 30 of its 30 rows (100.0%" in said.err
    assert (project / "out/manifest.json").exists()
    said = datakit("dedup", "one.jsonl", "two.jsonl", "--output", "new")
    assert said.code == 0 and "ALARM dedup: the source 'two.jsonl'" in said.err
    assert (
        "ALARM dedup: 30 of all 60 rows are lost (50.0%; max_loss is 30.0%). Most rows are lost for: 'a0' 1" in said.err
    )
    assert len(load(project / "out/manifest.json").facts["alarms"]) == 2


def test_the_disk_is_told_beforehand_and_memory_changes_nothing(datakit: Callable, project: Path) -> None:
    write(project / "in.jsonl", {f"r{n}": text(n % 20, n % 3) for n in range(60)})
    versions = set()
    for memory_mb in (1, 1024):
        said = datakit("dedup", "in.jsonl", "--output", f"out{memory_mb}", "--dataset", "d", "--memory-mb", memory_mb)
        assert said.code == 0, said.err
        told, done = said.err.index("dedup: 60 rows, at most about 0 MB of disk"), said.err.index("dedup: sketch")
        assert told < done
        versions.add(load(project / f"out{memory_mb}/manifest.json").version)
    assert len(versions) == 1


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("sft/llamafactory/glaive_toolcall_en_demo.json", ["--match", "exact"]),
        ("sft/llamafactory/glaive_toolcall_en_demo.json", ["--match", "near", "--threshold", "0.4"]),
        ("sft/llamafactory/alpaca_zh_demo.json", ["--match", "loose"]),
    ],
)
def test_every_drop_among_real_conversations_is_true(
    datakit: Callable, project: Path, shared: Path, name: str, flags: list[str]
) -> None:
    """Counted again, turn by turn."""
    said = datakit("dedup", shared / "corpora" / name, "--output", "out", "--max-loss", "1", *flags)
    assert said.code == 0, said.err
    manifest = load(project / "out/manifest.json")
    kept, dropped = (
        [row for shard in manifest.of_role(role) for row in pq.read_table(project / "out" / shard.path).to_pylist()]
        for role in ("kept", "dropped")
    )
    rows = {row["id"]: row for row in (*kept, *dropped)}
    assert dropped
    for row in dropped:
        one, other = (rows[name]["messages"] for name in (row["id"], row["duplicate_of"]))
        if row["reason"] == "prefix":
            other = other[: len(one)]
        for field in ("role", "name", "tool_calls"):
            assert [turn[field] for turn in one] == [turn[field] for turn in other]
        pairs = [(a["content"] or "", b["content"] or "") for a, b in zip(one, other, strict=True)]
        if row["reason"] == "near_duplicate":
            assert row["similarity"] == min(text_similarity(a, b, 5) for a, b in pairs) >= 0.4
        else:
            fold = str.casefold if row["reason"] == "loose_duplicate" else str
            assert all(fold("".join(re.findall(r"\w", a))) == fold("".join(re.findall(r"\w", b))) for a, b in pairs)
