"""The comparison of all rows in work units: wherever they are cut, the decisions are those of all rows at once."""

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datakit.dedup.shuffle as shuffle
from datakit.dedup.repeats import DedupRepeats, RepeatsConfig
from datakit.dedup.shuffle import Memory, groups_of, joined, parts_by_number, read_parts, run_unit
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.dedup.urls import DedupUrls
from datakit.errors import ConfigError, IntegrityError
from tests.dedup.conftest import ThreadUnits, conversations, deduplicate, documents, run_stage, sketch_file, talk, write
from tests.files import flip
from tests.processes import python


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


STAGES = {
    "first": Dedup(DedupConfig()),
    "longest": Dedup(DedupConfig(policy="longest")),
    "lines": DedupRepeats(RepeatsConfig(min_words=1, min_words_left=3)),
    "tokens": DedupRepeats(RepeatsConfig(unit="token", window=6, min_words_left=3)),
    "shares": DedupRepeats(RepeatsConfig(unit="token", window=6, max_repeated_share=0.6)),
    "urls": DedupUrls(),
}


@pytest.mark.parametrize("name", STAGES)
def test_neither_ranges_nor_groups_nor_shards_nor_memory_change_a_decision(name, monkeypatch):
    picks, stage = random.Random(2), STAGES[name]
    urls = [picks.choice([None, f"https://example.org/{picks.randrange(200)}"]) for _ in range(360)]
    batch = documents([text.replace("river", "\n") for text in edited(360, 1)], url=pa.array(urls, pa.string()))
    whole, join, read = run_stage(stage, batch, cut=360, workers=1), shuffle.join_unit, list[int]()

    def watched(old, ranges, *others):
        read.extend(sum(part[2] for part in parts) // shuffle._KEY_BYTES for _, parts in ranges)
        return join(old, ranges, *others)

    assert whole.rows
    monkeypatch.setattr(shuffle, "join_unit", watched)
    for keys, rows, cut, workers in ((64, 1, 360, 1), (16, 40, 91, 3), (1 << 22, 7, 33, 2)):
        for constant, value in {"RANGE_KEYS": keys, "GROUP_ROWS": rows, "_LINKS": 50, "_GATHER_BYTES": 5000,
                                "_MERGED_ROWS": 128}.items():  # fmt: skip
            monkeypatch.setattr(shuffle, constant, value)
        monkeypatch.setattr("datakit.dedup.comparison.BLOCK_ROWS", rows)
        made = run_stage(replace(stage, config=replace(stage.config, memory_mb=1)), batch, cut=cut, workers=workers)
        assert (made.texts, made.rows, made.details) == (whole.texts, whole.rows, whole.details)
        assert sorted(map(str, made.cuts)) == sorted(map(str, whole.cuts))
        for facts in (made.facts, whole.facts):  # lists of large buckets are walked in another order
            facts.get("candidates", {}).pop("entries_visited", None)
        assert made.facts == whole.facts
        assert 0 < max(read) < 2.5 * keys  # also where a row has many keys
        read.clear()


def test_a_giant_group_takes_little_memory(tmp_path):
    """300,000 similar rows in one group; with an array in memory for each step they took 190 MB."""
    code = """if True:
        import pathlib, resource, sys, numpy as np, pyarrow as pa
        from datakit.dedup.shuffle import Memory, Rows
        from datakit.text.words import binary_digest
        from tests.dedup.conftest import documents
        from tests.dedup.runs import DEDUP
        sketch = DEDUP.sketch(documents([" ".join(map(str, range(60))) + f" {n}" for n in range(1000)]))
        for count in (2000, 300_000):  # kernels are compiled for the first
            (rows,) = pa.Table.from_batches([sketch] * (count // 1000)).combine_chunks().to_batches()
            keys = pa.array(range(count), pa.uint64())
            rows = rows.set_column(0, "row_key", keys).set_column(5, "digest", binary_digest(keys.cast(pa.string())))
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            rows = Rows([rows], np.array([0, count]), np.arange(count))
            decided = DEDUP.decide_rows(rows, Memory(16 << 20, pathlib.Path(sys.argv[1])))
            dropped = sum(batch.num_rows for batch in decided.decisions if "reason" in batch.schema.names)
        print(dropped, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
    """
    dropped, grown = map(int, python("-c", code, tmp_path).stdout.split())
    assert dropped == 299_999 and grown < 120


def test_a_key_that_all_rows_have_goes_on_once_for_each_file(tmp_path):
    stage = DedupRepeats(RepeatsConfig(min_words_left=0))
    batch = documents([f"the same words in every row here\nnumber {n} has some words of its own" for n in range(300)])
    files = [write(stage.sketch(batch.slice(n, 100)), tmp_path / f"{n}.arrow") for n in (0, 100, 200)]
    firsts = zip(map(sketch_file, files), (0, 100, 200), strict=True)
    sort = partial(shuffle.sort_unit, stage, 1)
    records = [run_unit(tmp_path, 1 << 20, "keys", sort, n, shuffle.Source(*of)) for n, of in enumerate(firsts)]
    parts = parts_by_number(records)
    sizes = [len(part) for part in read_parts([p for _, p in parts[0]], Memory(1 << 20, tmp_path))]
    assert sizes == [101 * 12] * 3


def test_components_are_those_of_a_union_find():
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


def test_groups_are_full_and_no_component_is_cut(monkeypatch):
    monkeypatch.setattr(shuffle, "GROUP_ROWS", 10)
    pairs = np.array([[2 * n + 1, 2 * n] for n in range(100)])
    rows, groups = groups_of([joined(pairs)])
    assert rows.tolist() == list(range(200)) and (groups[::2] == groups[1::2]).all()
    assert np.bincount(groups).tolist() == [10] * 20


def test_a_damaged_part_is_an_error(tmp_path):
    made = [(3, b"one and two"), (1, b""), (3, b"three" * 40)]
    record = run_unit(tmp_path, 1 << 20, "parts", lambda *_: iter(made), 0, None)
    parts = [part for _, part in parts_by_number([record])[3]]
    memory = Memory(1 << 20, tmp_path)
    assert [bytes(p) for p in read_parts(parts, memory)] == [b"one and two", b"three" * 40]
    assert parts_by_number([record]).keys() == {3} and all(begin % 64 == 0 for _, begin, _, _ in record["parts"])
    file = tmp_path / record["files"][0][0]
    flip(file)
    with pytest.raises(IntegrityError, match=r"parts-00000\.bin: was changed"):
        list(read_parts(parts, memory))


def test_a_policy_without_numbers_is_refused_only_where_no_row_has_one():
    texts = [f"one two three four five six seven eight {n // 2}" for n in range(8)]
    scores = pa.array([None, 1.0, *[None] * 6])
    batch = documents(texts).append_column("score", scores)
    assert set(deduplicate(batch, cut=2, policy="highest:score").rows) == {"0", "3", "5", "7"}
    nothing = documents(texts).append_column("score", pa.nulls(8, pa.float64()))
    with pytest.raises(ConfigError, match="no row has a number"):
        deduplicate(nothing, cut=2, policy="highest:score")


def test_a_sketch_file_that_changed_is_found(tmp_path):
    stage = Dedup(DedupConfig()).for_kind("conversation")
    file = sketch_file(write(stage.sketch(conversations(talk("a", "b"))), tmp_path / "0.arrow"))
    with pytest.raises(IntegrityError, match=r"0\.arrow"):
        stage.compare([replace(file, sha256="0" * 64)], ThreadUnits(tmp_path, 1))


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=40), st.integers(0, 40))
def test_links_are_those_of_plain_python(keys, old):
    rows = {key: [row for row, (other, _) in enumerate(keys) if other == key] for key, _ in keys}
    joins = {key for key, own in rows.items() if any(keys[row][1] for row in own) and own[-1] >= old}
    hashes = np.array([key * 0x1234567812345678 for key, _ in keys], np.uint64)
    found = shuffle.linked(hashes, np.arange(len(keys)), np.array([whole for _, whole in keys], np.bool_), old)
    assert sorted(zip(*found, strict=True)) == sorted((row, rows[key][0]) for key in joins for row in rows[key][1:])


@pytest.mark.skipif(not shuffle._resident_bytes(), reason="the system does not tell what lies in memory")
@pytest.mark.parametrize(("room", "released"), [(128 << 20, 160), (0, 176)])
def test_files_read_are_given_back_before_arrays(tmp_path, room, released):
    memory, path = Memory(room, tmp_path), tmp_path / "sketch"
    path.write_bytes(bytes(160 << 20))
    array, read = memory.full((16 << 20,), 0, np.uint8), np.frombuffer(memory.map(path), np.uint8)
    array[:] = 7
    assert read[::4096].sum() == 0
    before = shuffle._resident_bytes()
    memory.release()
    assert abs(before - shuffle._resident_bytes() - (released << 20)) < 12 << 20
    assert array.min() == 7


def test_a_large_array_takes_its_room_on_the_disk_at_once_and_leaves_no_file(tmp_path):
    array = Memory(800, tmp_path).full((10, 20), -1, np.int32)
    assert array.shape == (10, 20) and (array == -1).all() and array.dtype == np.int32
    array[3, 4] = 7
    assert array.sum() == -192
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match=str(tmp_path)):
        Memory(800, tmp_path).full((1 << 45,), 0, np.int64)
