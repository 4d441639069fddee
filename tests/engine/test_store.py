"""Shards: content hashes that depend on values alone, row groups cut by data, whole files only."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.data import KEY, ROW_GROUP_ROWS, ContentHash, content_of, read_rows, read_shard
from datakit.engine.store import SKETCHES, UnitWriter, entries, inspect
from datakit.errors import InputError, IntegrityError
from datakit.manifest import Shard

MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("weight", pa.float64())]))
SCHEMA = pa.schema([("n", pa.uint64()), ("s", pa.string()), ("f", pa.float32()), ("b", pa.bool_()), ("m", MESSAGES)])

turn = st.fixed_dictionaries({"role": st.none() | st.text(max_size=3), "weight": st.none() | st.just(0.5)})
kinds = {
    "n": st.integers(0, 2**64 - 1), "s": st.text(max_size=5), "f": st.floats(width=32, allow_nan=False),
    "b": st.booleans(), "m": st.lists(st.none() | turn, max_size=3),
}  # fmt: skip
row = st.fixed_dictionaries({name: st.none() | values for name, values in kinds.items()})


def batch_of(rows: list[dict]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def write(folder: Path, *batches: pa.RecordBatch, index: int = 0, first_file: int = 0) -> Shard:
    with UnitWriter(folder, index, first_file=first_file) as out:
        for batch in batches:
            out.write("kept", batch)
        (shard,) = (Shard(**about) for about in out.close({})["shards"])
    return shard


def digest(*batches: pa.RecordBatch) -> str:
    total = ContentHash(SCHEMA)
    for batch in batches:
        total.update(batch)
    return total.hexdigest()


@given(st.lists(row, max_size=8), st.integers(0, 8))
def test_the_content_hash_ignores_how_rows_are_chunked(rows, cut):
    whole = batch_of(rows)
    assert digest(whole) == digest(whole.slice(0, cut), whole.slice(cut))
    assert digest(whole) == digest(batch_of(rows[:cut]), batch_of(rows[cut:]))


def test_the_content_hash_tells_null_from_empty_and_from_zero_and_where_values_are_cut():
    none = dict.fromkeys(SCHEMA.names)
    changes = [{}, {"n": 0}, {"n": 1}, {"s": ""}, {"f": 0.0}, {"f": -0.0}, {"b": False}, {"m": []}, {"m": [None]}]
    variants = [[none | change] for change in changes]
    cut = {"s": (["ab", "c"], ["a", "bc"]), "m": ([[None] * 2, [None]], [[None], [None] * 2])}
    variants += [[none | {name: value} for value in column] for name, columns in cut.items() for column in columns]
    assert len({digest(batch_of(rows)) for rows in variants}) == len(variants)


def test_garbage_under_a_null_does_not_reach_the_hash():
    clean = pa.array(["a", None, "b"])
    validity, offsets, data = pa.array(["a", "xx", "b"]).buffers()
    dirty = pa.Array.from_buffers(pa.string(), 3, [pa.array([True, False, True]).buffers()[1], offsets, data])
    assert dirty.equals(clean) and validity is None
    schema = pa.schema([("s", pa.string())])
    assert content_of([pa.record_batch([clean], schema)]) == content_of([pa.record_batch([dirty], schema)])


def test_the_same_batches_give_the_same_bytes_in_row_groups_of_bounded_size(tmp_path):
    rows = batch_of([{"n": i, "s": "x" * 50, "f": 0.5, "b": True, "m": []} for i in range(ROW_GROUP_ROWS + 1000)])
    shards = [write(tmp_path, *(rows.slice(at, 1000) for at in range(0, rows.num_rows, 1000)), index=n) for n in (0, 1)]
    assert shards[0].rows == rows.num_rows
    one, other = (tmp_path / shard.path for shard in shards)
    assert one.read_bytes() == other.read_bytes()
    assert pq.ParquetFile(one).num_row_groups == 2
    assert list(inspect(tmp_path, shards[0])) == []


def test_the_same_values_under_another_encoding_have_the_same_content_hash(tmp_path):
    turn = [{"role": "user", "weight": None}]
    rows = batch_of([{"n": i, "s": str(i % 7), "f": 1.5, "b": None, "m": turn} for i in range(999)])
    shard, table = write(tmp_path, rows), pa.Table.from_batches([rows])
    pq.write_table(table, tmp_path / "kept/b.parquet", compression="gzip", use_dictionary=False, row_group_size=100)
    other = replace(Shard(**entries(tmp_path, ["kept/b.parquet"])[0]), rows=999, content_sha256=shard.content_sha256)
    assert content_of(read_shard(tmp_path, other)) == (999, shard.content_sha256)
    assert list(inspect(tmp_path, other)) == []


def test_an_abandoned_unit_leaves_nothing_that_looks_whole(tmp_path):
    def fail() -> None:
        with UnitWriter(tmp_path, 0) as out:
            out.write("kept", batch_of([dict.fromkeys(SCHEMA.names)]))
            out.write(SKETCHES, batch_of([]))
            raise InputError("broken")

    with pytest.raises(InputError):
        fail()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_kept_is_written_for_no_rows_and_keeps_its_schema(tmp_path):
    with UnitWriter(tmp_path, 3) as out:
        out.write("kept", batch_of([]))
        out.write("dropped", batch_of([]))
        shards = [Shard(**about) for about in out.close({})["shards"]]
    assert [(s.path, s.rows) for s in shards] == [("kept/part-00003.parquet", 0)]
    (batch,) = read_shard(tmp_path, shards[0])
    assert batch.schema.names == SCHEMA.names and batch.num_rows == 0


@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_of_a_shard_is_read(tmp_path, where, bit):
    shard = write(tmp_path, batch_of([dict.fromkeys(SCHEMA.names) | {"n": i} for i in range(50)]))
    data = bytearray((tmp_path / shard.path).read_bytes())
    data[int(where * len(data))] ^= 1 << bit
    (tmp_path / shard.path).write_bytes(data)
    said = f"part-00000.parquet: expected sha256 {shard.sha256}, found .* `datakit run` again"
    with pytest.raises(IntegrityError, match=said):
        read_shard(tmp_path, shard, ["n"])


@pytest.mark.parametrize("damage", ["cut", "longer", "gone"])
def test_a_shard_of_another_size_is_not_read(tmp_path, damage):
    shard = write(tmp_path, batch_of([dict.fromkeys(SCHEMA.names)]))
    file = tmp_path / shard.path
    data = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(data[:-1] if damage == "cut" else data + b"x")
    said = "is not there. `datakit history`" if damage == "gone" else f"expected {shard.bytes}"
    with pytest.raises(IntegrityError, match=said):
        read_shard(tmp_path, shard)


def test_a_shard_stores_places_within_files_and_gives_row_keys_again(tmp_path):
    rows = pa.record_batch({"row_key": pa.array([0, 0], pa.uint64()), "id": pa.array(["a", "b"])})
    moved = [rows.set_column(0, KEY, pa.array([(n << 40) + 1, (n + 2 << 40) + 7], pa.uint64())) for n in (0, 5)]
    shards = [write(tmp_path / str(n), moved[n], first_file=(0, 5)[n]) for n in (0, 1)]
    assert shards[0].sha256 == shards[1].sha256, "the same bytes wherever the file stands among others"
    for n, shard in enumerate(shards):
        assert [b.to_pylist() for b in read_rows(tmp_path / str(n), shard)] == [moved[n].to_pylist()]
        (keys,) = read_rows(tmp_path / str(n), shard, ["id", "row_key"])
        assert keys.to_pylist() == moved[n].select(["id", "row_key"]).to_pylist()
