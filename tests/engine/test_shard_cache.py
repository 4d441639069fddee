"""ShardCache: what it gives is what reading gives, within its room."""

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from datakit.data import read_rows
from datakit.engine.store import ShardCache, UnitWriter
from datakit.errors import IntegrityError
from datakit.manifest import Shard
from datakit.read.planning import plan, read_unit, units
from datakit.read.stage import IngestConfig

LINES = {
    "document": '{"text": "one", "n": 1}\n{"text": ""}\n',
    "conversation": '{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}\n',
    "preference": '{"prompt": "?", "chosen": "yes", "rejected": "no"}\n',
    "tokens": '{"ids": [1, 2, 3], "loss_mask": [0, 1, 1]}\n{"ids": [4]}\n',
}


def rows_of(kind: str, folder: Path) -> pa.RecordBatch:
    (folder / "rows.jsonl").write_text(LINES[kind])
    planned = plan([str(folder / "rows.jsonl")], IngestConfig())
    assert planned.kind == kind
    (unit,) = units(planned)
    (batch,) = read_unit(unit, planned)
    return batch.rows


def write(folder: Path, index: int, recent: ShardCache | None, *batches: pa.RecordBatch, first_file: int = 0) -> Shard:
    with UnitWriter(folder, index, recent, first_file) as out:
        for batch in batches:
            out.write("kept", batch)
        (shard,) = out.close()
    return shard


def strings(text: str) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array([text])})


@pytest.mark.parametrize("kind", LINES)
def test_rows_in_memory_are_those_that_are_read(kind: str, tmp_path: Path) -> None:
    recent, rows = ShardCache(1 << 20), rows_of(kind, tmp_path)
    shard = write(tmp_path, 0, recent, rows, rows)  # two batches, one row group
    (kept,), (read,) = list(recent.read(tmp_path, shard)), list(read_rows(tmp_path, shard))
    (tmp_path / shard.path).unlink()
    assert list(recent.read(tmp_path, shard)) == [kept], "it came from memory"
    assert kept.schema.equals(read.schema, check_metadata=True)
    assert kept.equals(read)
    assert kept.to_pylist() == [*rows.to_pylist(), *rows.to_pylist()]


def test_a_shard_written_from_memory_has_the_bytes_of_one_written_from_the_disk(tmp_path: Path) -> None:
    recent, rows = ShardCache(1 << 20), rows_of("conversation", tmp_path)
    first = write(tmp_path / "a", 0, recent, rows)
    source = tmp_path / "a"
    for name, batches in {"memory": recent.read(source, first), "disk": read_rows(source, first)}.items():
        assert write(tmp_path / name, 0, None, *batches) == first


def test_a_shard_stores_places_within_files_and_gives_row_keys_again(tmp_path: Path) -> None:
    rows = rows_of("document", tmp_path)
    moved = [rows.set_column(0, "row_key", pa.array([(n << 40) + 1, (n + 2 << 40) + 7], pa.uint64())) for n in (0, 5)]
    shards = [write(tmp_path / str(n), 0, None, moved[n], first_file=(0, 5)[n]) for n in (0, 1)]
    assert shards[0].sha256 == shards[1].sha256, "the same bytes wherever the file stands among others"
    for n, shard in enumerate(shards):
        assert [b.to_pylist() for b in read_rows(tmp_path / str(n), shard)] == [moved[n].to_pylist()]
        (keys,) = read_rows(tmp_path / str(n), shard, ["id", "row_key"])
        assert keys.to_pylist() == moved[n].select(["id", "row_key"]).to_pylist()


def test_the_oldest_make_room_and_what_is_gone_is_read(tmp_path: Path) -> None:
    recent = ShardCache(2500)
    shards = [write(tmp_path, n, recent, strings(str(n) * 1000)) for n in range(3)]
    paths = [tmp_path / shard.path for shard in shards]
    for path in paths:
        path.with_suffix(".gone").write_bytes(path.read_bytes())
        path.unlink()
    with pytest.raises(IntegrityError, match="part-00000"):
        list(recent.read(tmp_path, shards[0]))
    assert [next(recent.read(tmp_path, s)).column("text")[0].as_py()[0] for s in shards[1:]] == ["1", "2"]
    paths[0].with_suffix(".gone").rename(paths[0])
    assert next(recent.read(tmp_path, shards[0])).column("text")[0].as_py() == "0" * 1000


def test_a_shard_larger_than_the_room_and_a_worker_process_keep_nothing(tmp_path: Path) -> None:
    for recent in (ShardCache(500), pickle.loads(pickle.dumps(ShardCache(1 << 20)))):
        shard = write(tmp_path, 0, recent, strings("x" * 1000))
        (tmp_path / shard.path).unlink()
        with pytest.raises(IntegrityError):
            list(recent.read(tmp_path, shard))


def test_a_shard_is_found_under_its_new_name_only(tmp_path: Path) -> None:
    recent = ShardCache(1 << 20)
    shard = write(tmp_path, 0, recent, strings("x"))
    recent.rename(tmp_path / shard.path, tmp_path / "kept/new.parquet")
    (tmp_path / shard.path).unlink()
    assert next(recent.read(tmp_path, replace(shard, path="kept/new.parquet"))).num_rows == 1
    with pytest.raises(IntegrityError):
        list(recent.read(tmp_path, shard))
