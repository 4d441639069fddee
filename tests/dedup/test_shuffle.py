"""The comparison of all rows in work units: wherever they are cut, the decisions are those of all rows at once."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import datakit.dedup.shuffle as shuffle
from datakit.dedup.cluster import decide
from datakit.dedup.shuffle import (
    BEGINNING,
    GatheredRows,
    Memory,
    PartsWriter,
    first_of_equals,
    groups_of,
    joined,
    parts_by_number,
    read_parts,
    repeated_hashes,
)
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.errors import ConfigError, IntegrityError
from datakit.stage import CompareUnits, SketchFile
from tests.dedup.conftest import conversations, documents, talk, write

RunDedup = Callable[..., Any]
PAGE, MB = 4096, 1 << 20


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


def test_pieces_are_joined_in_files_that_vanish(tmp_path: Path) -> None:
    pieces = [(np.arange(n, dtype=np.uint64), np.full(2 * n, n, np.uint32)) for n in (3, 0, 100_000)]
    found = Memory(1 << 20, tmp_path).join(iter(pieces), np.uint64, np.uint32)
    for number, array in enumerate(found):
        assert np.array_equal(array, np.concatenate([piece[number] for piece in pieces]))
    assert [len(array) for array in Memory(1 << 20, tmp_path).join([], np.uint64, np.int64)] == [0, 0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("policy", ["first", "longest"])
def test_neither_ranges_nor_groups_nor_shards_change_a_decision(
    run_dedup: RunDedup, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    texts = edited(600, 1)
    whole = run_dedup(texts, cut=600, workers=1, policy=policy)
    reasons = {reason for reason, _, _ in whole.rows.values()}
    assert reasons == {"exact_duplicate", "near_duplicate"} and len(whole.kept) > 200
    for keys, rows, cut in ((64, 1, 600), (16, 40, 90), (1 << 22, 7, 33)):
        monkeypatch.setattr(shuffle, "RANGE_KEYS", keys)
        monkeypatch.setattr(shuffle, "GROUP_ROWS", rows)
        monkeypatch.setattr(shuffle, "_LINKS", 50)
        monkeypatch.setattr(shuffle, "_MERGED_ROWS", 128)
        monkeypatch.setattr(shuffle, "_GATHER_BYTES", 5000)
        cut_up = run_dedup(texts, cut=cut, workers=3, policy=policy)
        assert cut_up.rows == whole.rows and cut_up.kept == whole.kept
        sizes = ("cluster_sizes", "largest_cluster_rows", "alarms")
        assert {n: cut_up.facts[n] for n in sizes} == {n: whole.facts[n] for n in sizes}
        for count in ("buckets", "largest_bucket_rows", "pairs_in_buckets", "pairs_compared", "pairs_similar"):
            assert cut_up.facts["candidates"][count] == whole.facts["candidates"][count]


def test_groups_are_those_of_the_comparison_of_all_rows_at_once(tmp_path: Path, run_dedup: RunDedup) -> None:
    texts = edited(400, 2)
    stage = Dedup(DedupConfig())
    stage.open()
    batch = stage.sketch(documents(texts))
    rows = GatheredRows([batch], np.array([0, len(batch)]), np.arange(len(batch)), 0)
    verdict = decide(rows, stage.config, Memory(1 << 30, tmp_path))
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
    rows, groups = groups_of(map(joined, [chain, *np.array_split(links, 9)]))
    named = {*links.ravel().tolist()}
    assert rows.tolist() == sorted(named) + list(range(5000, 6000))
    found = dict(zip(rows.tolist(), groups.tolist(), strict=True))
    assert all(found[row] == found[root(row)] for row in named)
    assert joined(links)[:, 1].tolist() == [root(row) for row in sorted(named)]
    assert len({found[row] for row in range(5000, 6000)}) == 1


def test_groups_are_full_and_no_component_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "GROUP_ROWS", 10)
    pairs = np.array([[2 * n + 1, 2 * n] for n in range(100)])
    rows, groups = groups_of([joined(pairs)])
    assert rows.tolist() == list(range(200)) and (groups[::2] == groups[1::2]).all()
    assert np.bincount(groups).tolist() == [10] * 20


def test_a_damaged_part_is_an_error(tmp_path: Path) -> None:
    writer = PartsWriter(tmp_path, "parts.bin")
    writer.add(3, b"one", b" and two")
    writer.add(1, b"")
    writer.add(3, b"three" * 40)
    record = writer.close()
    parts = [part for _, part in parts_by_number([record])[3]]
    memory = Memory(1 << 20, tmp_path)
    assert [bytes(p) for p in read_parts(tmp_path, parts, memory)] == [b"one and two", b"three" * 40]
    assert parts_by_number([record]).keys() == {3} and all(begin % 64 == 0 for _, begin, _, _ in record["parts"])
    data = bytearray((tmp_path / "parts.bin").read_bytes())
    data[70] ^= 1
    (tmp_path / "parts.bin").write_bytes(data)
    with pytest.raises(IntegrityError, match=r"parts\.bin: was changed"):
        list(read_parts(tmp_path, parts, memory))


def test_a_policy_without_numbers_is_refused_only_where_no_row_has_one(run_dedup: RunDedup) -> None:
    texts = [f"one two three four five six seven eight {n // 2}" for n in range(8)]
    scores = pa.array([None, 1.0, *[None] * 6])
    batch = documents(texts).append_column("score", scores)
    assert set(run_dedup(batch, cut=2, policy="highest:score").rows) == {"0", "3", "5", "7"}
    nothing = documents(texts).append_column("score", pa.nulls(8, pa.float64()))
    with pytest.raises(ConfigError, match="no row has a number"):
        run_dedup(nothing, cut=2, policy="highest:score")


def test_a_key_of_a_beginning_joins_only_rows_with_that_key_as_a_whole(tmp_path: Path) -> None:
    keys = np.array([1, 1, 1, 2, 2, 3, 3, 4], np.uint64) << np.uint64(40)
    rows = np.array([0, 1, 2, 3, 4, 5, 5, 6], np.int64)
    whole = np.array([0, 0, 1, 0, 0, 1, 0, 1], np.bool_)
    memory = Memory(1 << 20, tmp_path)
    assert shuffle._linked(keys, rows, whole, 0, memory).tolist() == [[1, 0], [2, 0], [5, 5]]
    assert shuffle._linked(keys, rows, whole, 5, memory).tolist() == [[5, 5]], "old rows alone join nothing"
    assert BEGINNING == 1 << 31, "the highest bit of the row's number in a file"


def test_a_sketch_file_that_changed_is_found(tmp_path: Path) -> None:
    stage = Dedup(DedupConfig()).for_kind("conversation")
    file = SketchFile.of(write(stage.sketch(conversations(talk("a", "b"))), tmp_path / "0.arrow"))
    with pytest.raises(IntegrityError, match=r"0\.arrow"):
        stage.compare([replace(file, sha256="0" * 64)], CompareUnits(tmp_path, 1))


@given(arrays(np.uint64, st.integers(0, 40), elements=st.integers(0, 9).map(lambda n: n * 0x1234567812345678)))
def test_hashes_that_occur_again_are_all_among_the_repeated_ones(hashes: np.ndarray) -> None:
    rows = repeated_hashes(hashes, Memory(1 << 30, Path())).tolist()
    assert rows == sorted(set(rows))
    assert {n for n, value in enumerate(hashes.tolist()) if (hashes == value).sum() > 1} <= set(rows)


def test_few_hashes_that_are_alone_are_among_the_repeated_ones(tmp_path: Path) -> None:
    hashes = np.random.default_rng(1).integers(0, 1 << 64, 100_000, np.uint64)
    found = repeated_hashes(hashes, Memory(1 << 30, tmp_path))
    assert len(found) < 100_000 / 8
    assert np.array_equal(repeated_hashes(hashes, Memory(256, tmp_path)), found)


def resident(array: np.ndarray) -> int:
    """Bytes of a mapped array that lie in this process's memory, by the system's own account."""
    begin = array.__array_interface__["data"][0]
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split(maxsplit=1)[0]
        if "-" in head and not head.endswith(":"):
            low, high = (int(part, 16) for part in head.split("-"))
            inside = low < begin + array.nbytes and high > begin
        elif inside and head == "Rss:":
            found += int(line.split()[1]) << 10
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell what lies in memory")
@pytest.mark.parametrize(("budget", "array_stays"), [(512 * MB, True), (1 * MB, False)])
def test_files_read_are_given_back_before_arrays(tmp_path: Path, budget: int, array_stays: bool) -> None:
    memory, path = Memory(budget, tmp_path), tmp_path / "sketch"
    path.write_bytes(bytes(160 * MB))
    array = memory.full((16 * MB,), 0, np.uint8)
    read = np.frombuffer(memory.map(path), np.uint8)
    array[:] = 7
    assert read[::PAGE].sum() == 0
    assert resident(read) > 128 * MB
    assert resident(array) == 16 * MB
    memory.release()
    assert resident(read) < 16 * MB
    assert (resident(array) == 16 * MB) == array_stays
    assert array.min() == 7


def test_a_large_array_takes_its_room_on_the_disk_at_once_and_leaves_no_file(tmp_path: Path) -> None:
    array = Memory(800, tmp_path).full((10, 20), -1, np.int32)
    assert array.shape == (10, 20) and (array == -1).all() and array.dtype == np.int32
    array[3, 4] = 7
    assert array.sum() == -192
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match=str(tmp_path)):
        Memory(800, tmp_path).full((1 << 45,), 0, np.int64)


@given(arrays(np.uint64, st.tuples(st.integers(0, 20), st.just(2)), elements=st.integers(0, 2)))
def test_first_of_equals_needs_both_halves(digests: np.ndarray) -> None:
    seen: dict[tuple[int, int], int] = {}
    expected = [seen.setdefault((int(a), int(b)), row) for row, (a, b) in enumerate(digests)]
    assert first_of_equals(digests).tolist() == expected
