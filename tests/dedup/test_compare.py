"""The comparison of all rows in work units: wherever they are cut, the decisions are those of all rows at once."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import datakit.dedup.compare as compare
from datakit.dedup.compare import groups_of
from datakit.dedup.exact import Memory, SketchRows
from datakit.dedup.minhash import sketches_of
from datakit.dedup.part_files import PartsWriter, by_number, read_parts
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.errors import ConfigError, IntegrityError
from tests.dedup.conftest import documents

RunDedup = Callable[..., Any]


def edited(rows: int, seed: int) -> list[str]:
    """Texts of which half are an earlier one again, some of them with one or many other words."""
    picks, words = random.Random(seed), [f"{a}{b}" for a in ("stone", "river", "lamp") for b in range(300)]
    texts: list[str] = []
    for number in range(rows):
        if number < 20 or picks.random() < 0.5:
            texts.append(" ".join(picks.choices(words, k=picks.randrange(4, 60))))
            continue
        copy = picks.choice(texts[-60:] if picks.random() < 0.5 else texts[:5]).split()
        for _ in range(picks.choice([0, 0, 1, 2, 6])):
            copy[picks.randrange(len(copy))] = picks.choice(words)
        texts.append(" ".join(copy))
    return texts


@pytest.mark.parametrize("policy", ["first", "longest"])
def test_neither_ranges_nor_groups_nor_shards_change_a_decision(
    run_dedup: RunDedup, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    texts = edited(600, 1)
    whole = run_dedup(texts, cut=600, workers=1, policy=policy)
    reasons = {reason for reason, _, _ in whole.rows.values()}
    assert reasons == {"exact_duplicate", "near_duplicate"} and len(whole.kept) > 200
    for keys, rows, cut in ((64, 1, 600), (16, 40, 90), (1 << 22, 7, 33)):
        monkeypatch.setattr(compare, "RANGE_KEYS", keys)
        monkeypatch.setattr(compare, "GROUP_ROWS", rows)
        monkeypatch.setattr(compare, "_LINKS", 50)
        monkeypatch.setattr(compare, "_GATHER_BYTES", 5000)
        monkeypatch.setattr(compare, "_MERGED_ROWS", 128)
        cut_up = run_dedup(texts, cut=cut, workers=3, policy=policy)
        assert cut_up.rows == whole.rows and cut_up.kept == whole.kept
        sizes = ("cluster_sizes", "largest_cluster_rows", "alarms")
        assert {n: cut_up.facts[n] for n in sizes} == {n: whole.facts[n] for n in sizes}
        for count in ("buckets", "largest_bucket_rows", "pairs_in_buckets", "pairs_compared", "pairs_similar"):
            assert cut_up.facts["candidates"][count] == whole.facts["candidates"][count]


def test_groups_are_those_of_the_comparison_of_all_rows_at_once(tmp_path: Path, run_dedup: RunDedup) -> None:
    from datakit.dedup.cluster import decide

    texts = edited(400, 2)
    stage = Dedup(DedupConfig())
    stage.open()
    memory = Memory(1 << 30, tmp_path)
    batch = stage.sketch(documents(texts))
    verdict = decide(sketches_of(SketchRows([batch], np.array([0, len(batch)])), memory), 0, stage.config, memory, 1)
    expected = {str(row): str(of) for row, of in enumerate(verdict.survivor.tolist()) if of >= 0}
    assert {name: of for name, (_, of, _) in run_dedup(texts, cut=70).rows.items()} == expected


def test_components_are_those_of_a_union_find() -> None:
    picks = random.Random(4)
    links = np.array([[picks.randrange(3000), picks.randrange(3000)] for _ in range(1600)])
    links = np.sort(links, axis=1)[:, ::-1]
    parent = list(range(3000))

    def root(row: int) -> int:
        while parent[row] != row:
            row = parent[row]
        return row

    for one, other in links.tolist():
        a, b = sorted((root(one), root(other)))
        parent[b] = a
    chain = np.array([[row + 1, row] for row in range(5000, 5999)])
    rows, groups = groups_of([chain, *np.array_split(links, 9)])
    sizes = Counter(map(root, range(3000)))
    alone = {row for row in range(3000) if sizes[root(row)] == 1}
    assert set(rows.tolist()) == {*range(3000), *range(5000, 6000)} - alone
    found = dict(zip(rows.tolist(), groups.tolist(), strict=True))
    assert all(found[row] == found[root(row)] for row in found if row < 3000)
    assert len({found[row] for row in range(5000, 6000)}) == 1


def test_groups_are_full_and_no_component_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "GROUP_ROWS", 10)
    pairs = np.array([[2 * n + 1, 2 * n] for n in range(100)])
    rows, groups = groups_of([pairs])
    assert rows.tolist() == list(range(200)) and (groups[::2] == groups[1::2]).all()
    assert np.bincount(groups).tolist() == [10] * 20


def test_a_damaged_part_is_an_error(tmp_path: Path) -> None:
    writer = PartsWriter(tmp_path, "parts.bin")
    writer.add(3, b"one", b" and two")
    writer.add(1, b"")
    writer.add(3, b"three" * 40)
    record = writer.close()
    parts = [part for _, part in by_number([record])[3]]
    memory = Memory(1 << 20, tmp_path)
    assert [bytes(p) for p in read_parts(tmp_path, parts, memory)] == [b"one and two", b"three" * 40]
    assert by_number([record]).keys() == {3} and all(begin % 64 == 0 for _, begin, _, _ in record["parts"])
    data = bytearray((tmp_path / "parts.bin").read_bytes())
    data[70] ^= 1
    (tmp_path / "parts.bin").write_bytes(data)
    with pytest.raises(IntegrityError, match=r"parts\.bin: the file changed"):
        list(read_parts(tmp_path, parts, memory))


def test_a_policy_without_numbers_is_refused_only_where_no_row_has_one(run_dedup: RunDedup) -> None:
    texts = [f"one two three four five six seven eight {n // 2}" for n in range(8)]
    scores = pa.array([None, 1.0, *[None] * 6])
    batch = documents(texts).append_column("score", scores)
    assert set(run_dedup(batch, cut=2, policy="highest:score").rows) == {"0", "3", "5", "7"}
    nothing = documents(texts).append_column("score", pa.nulls(8, pa.float64()))
    with pytest.raises(ConfigError, match="no row has a number"):
        run_dedup(nothing, cut=2, policy="highest:score")
