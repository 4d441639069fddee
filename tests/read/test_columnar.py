"""Parquet and Arrow files, and tables in memory: typed columns become the same rows as JSON would."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datakit.errors import InputError
from datakit.read.columnar import table_of
from tests.files import Exporter, says, user

TABLE = pa.table({"id": [f"d{i}" for i in range(1000)], "text": [f"text {i}" for i in range(1000)], "n": range(1000)})


def write(path, table, form, rows=100):
    if form == "parquet":
        pq.write_table(table, path, row_group_size=rows, use_dictionary=False)
    else:
        new = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as out, new(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x"])
def test_rows_are_read_whatever_the_suffix_in_units_of_whole_row_groups(read, tmp_path, form, name):
    table = TABLE.set_column(1, "text", [[f"{i} " + "z" * 5000 for i in range(1000)]])
    write(tmp_path / name, table, form, 70)
    found = read(tmp_path / name, shard_mb=1)
    assert (found.units, found.texts) == (5, table["text"].to_pylist())
    assert [r["row_key"] for r in found.rows] == list(range(1000))
    assert (found.rows[5]["id"], found.rows[5]["extra"]) == ("d5", '{"n":5}')


def test_every_column_type_reaches_extra_as_json(read, tmp_path):
    at = 1_700_000_000_123_456_789
    table = pa.table({
        "text": ["t", None], "when": [datetime.datetime(2024, 1, 2, 3, 4, 5)] * 2,
        "day": [datetime.date(2024, 1, 2)] * 2, "t": pa.array([3_000_000_001] * 2, pa.time64("ns")),
        "price": [decimal.Decimal("1.10")] * 2, "bytes": [b"\xff\x00"] * 2, "nan": [float("nan")] * 2, "f": [0.1] * 2,
        "big": pa.array([2**64 - 1] * 2, pa.uint64()), "null": pa.nulls(2),
        "nano": pa.array([at] * 2, pa.timestamp("ns")), "zone": pa.array([at] * 2, pa.timestamp("ns", "Europe/Paris")),
        "nested": [{"a": [1.5, None], "b": {"c": True}}] * 2,
    })  # fmt: skip
    write(tmp_path / "x.parquet", table, "parquet")
    rest = (
        '"when":"2024-01-02T03:04:05","day":"2024-01-02","t":"00:00:03.000000001","price":"1.10","bytes":"/wA=",'
        '"nan":"NaN","f":0.1,"big":18446744073709551615,"null":null,"nano":"2023-11-14T22:13:20.123456789",'
        '"zone":"2023-11-14T22:13:20.123456789+00:00","nested":{"a":[1.5,null],"b":{"c":true}}}'
    )
    found = read(tmp_path / "x.parquet")
    assert found.rows[0]["extra"] == "{" + rest
    wrong = [(b["line"], b["byte_offset"], b["reason"], b["raw"].decode()) for b in found.bad]
    assert wrong == [(2, None, "not_text", '{"text":null,' + rest)]
    write(tmp_path / "x.parquet", pa.table({"text": [b"a text"]}), "parquet")
    with pytest.raises(InputError, match=r"text: b'a text'\nBytes .* are no text"):
        read(tmp_path / "x.parquet")


def test_a_damaged_page_costs_its_row_group_row_by_row(read, tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE, path, row_group_size=100, compression="zstd")
    place = pq.ParquetFile(path).metadata.row_group(4).column(1).data_page_offset
    data = bytearray(path.read_bytes())
    data[place : place + 40] = b"\xff" * 40
    path.write_bytes(bytes(data))
    found = read(path)
    assert len(found.rows) + len(found.bad) == 1000
    assert set(found.reasons) == {"corrupt_file"}
    assert found.texts == [f"text {i}" for i in range(1000) if i // 100 != 4]
    assert [b["line"] for b in found.bad] == list(range(401, 501))


def test_a_bad_cell_costs_its_row_alone(read, tmp_path):
    offsets = pa.py_buffer(np.array([0, 1, 2, 3], "<i4"))
    broken = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"a\xffc")])
    far = pa.array([0, 0, 400_000_000_000], pa.int64()).cast(pa.timestamp("s"))
    table = pa.table({"text": ["one", "two", "three"], "name": broken, "when": far})
    pq.write_table(table, tmp_path / "x.parquet")
    found = read(tmp_path / "x.parquet")
    first, second = found.bad
    assert found.texts == ["one"]
    assert [(bad["line"], bad["reason"]) for bad in found.bad] == [(2, "bad_cell"), (3, "bad_cell")]
    assert "column 'name'" in first["detail"] and "column 'when'" in second["detail"]
    assert b'"text":"two"' in first["raw"]


def test_a_table_gives_the_rows_and_the_quarantine_of_its_parquet_file(read, read_table, tmp_path):
    turns = [user("hi"), says("yo")]
    far = pa.array([i if i != 297 else 400_000_000_000_000 for i in range(1000)]).cast(pa.timestamp("ms"))
    for table in (TABLE.append_column("when", far), pa.table({"messages": [turns, None, turns]}),
                  pa.table({"input_ids": [[1, 2, 3]], "loss_mask": [[0, 1, 1]]})):  # fmt: skip
        pq.write_table(table, tmp_path / "table")
        in_memory, from_file = read_table(table), read(tmp_path / "table")
        assert (in_memory.rows, in_memory.bad) == (from_file.rows, from_file.bad)
        assert in_memory.plan.files[0].layout == from_file.plan.files[0].layout
        assert len(in_memory.rows) + len(in_memory.bad) == table.num_rows


@pytest.mark.parametrize("data", [
    TABLE, TABLE.combine_chunks().to_batches()[0], TABLE.to_reader(), Exporter(TABLE),
    Exporter(TABLE.to_reader(max_chunksize=30)),
], ids=["table", "batch", "reader", "exporter", "exporter of chunks"])  # fmt: skip
def test_whatever_exports_an_arrow_stream_is_a_table(read_table, data):
    table = table_of(data)
    assert table.equals(TABLE)
    assert read_table(table).texts == TABLE["text"].to_pylist()


class Indexed:
    """A map-style dataset as torch has them: a length and rows by number, and an end that nothing tells."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return ROWS[i % 3]


ROWS = [{"id": "a", "text": "one"}, {"id": "b", "text": "two", "later": {"x": 1}}, {"id": "c", "text": "three"}]


@pytest.mark.parametrize("data", [ROWS, iter(ROWS), (row for row in ROWS), Indexed()],
                         ids=["list", "iterator", "generator", "map-style dataset"])  # fmt: skip
def test_rows_as_dictionaries_are_a_table_with_the_keys_of_all_rows(read_table, data):
    table = table_of(data)
    assert table.to_pylist() == [{"later": None} | row for row in ROWS]
    assert read_table(table).texts == ["one", "two", "three"]


def test_rows_by_the_ten_thousands_have_one_schema():
    rows = [{"text": f"text {i}"} | ({"n": i} if i > 20_000 else {}) for i in range(20_010)]
    assert [{k: v for k, v in row.items() if v is not None} for row in table_of(rows).to_pylist()] == rows


def test_datasets_of_hugging_face_are_tables():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list([{"id": row["id"], "text": row["text"]} for row in ROWS])
    assert table_of(data)["text"].to_pylist() == ["one", "two", "three"]
    assert table_of(data.select([2, 0]).with_format("numpy"))["text"].to_pylist() == ["three", "one"]
    assert table_of(data.to_iterable_dataset())["text"].to_pylist() == ["one", "two", "three"]
    late = datasets.IterableDataset.from_generator(lambda: iter(ROWS))
    assert table_of(late).to_pylist() == [{"later": None} | row for row in ROWS]
    with pytest.raises(InputError, match="DatasetDict of train, test is no table: give one split"):
        table_of(datasets.DatasetDict(train=data, test=data))


def test_lazy_frames_are_collected():
    polars = pytest.importorskip("polars")
    assert table_of(polars.DataFrame(ROWS).lazy()).num_rows == 3


@pytest.mark.parametrize(("data", "why"), [
    (3, "type int cannot be read; give a pyarrow Table"), (b"ab", "bytes: row 0: expected a dictionary .* 97"),
    ([{"text": "a"}, None], "list: row 1: expected a dictionary .* None"), ([{}], "row 0: expected a dictionary .* {}"),
    ([{"text": "a"}, {"text": 7}], "rows 0 to 1 are no table"), ([{"n": 2**70}], "rows 0 to 0 are no table"),
    ([{"text": "a"}] * 10_000 + [{"text": [7]}], "Field text has incompatible types"),
    ([], "the data has no columns"), (pa.table({}), "no columns"), ([{"text": "\ud800"}], "surrogates not allowed"),
    ({"text": ["a"]}, "a dict of text is no table: give one split of it, or `pa.table"),
])  # fmt: skip
def test_what_is_no_table_is_refused(data, why):
    with pytest.raises(InputError, match=why):
        table_of(data)


def test_a_broken_stream_or_a_column_named_twice_is_refused(read, tmp_path):
    twice = pa.Table.from_arrays([pa.array(["a"])] * 2, names=["text", "text"])
    pq.write_table(twice, tmp_path / "y.parquet")
    for reading in (lambda: table_of(twice), lambda: read(tmp_path / "y.parquet")):
        with pytest.raises(InputError, match="names column 'text' twice"):
            reading()

    def batches():
        yield TABLE.to_batches()[0]
        raise pa.ArrowInvalid("no more of it")

    with pytest.raises(InputError, match="no more of it"):
        table_of(Exporter(pa.RecordBatchReader.from_batches(TABLE.schema, batches())))


def test_the_units_of_a_table_do_not_depend_on_its_chunks(read_table):
    rows = 3000
    columns = {"text": [f"{i} " + "z" * (i % 2000) for i in range(rows)], "l": [[{"a": i}] for i in range(rows)]}
    columns["note"] = [None if i == 1234 else "n" for i in range(rows)]
    table = pa.table(columns)
    chunked = pa.concat_tables(pa.table({k: v[a : a + 700] for k, v in columns.items()}) for a in range(0, rows, 700))
    whole = read_table(table, shard_mb=1)
    assert whole.units == 2
    assert [r["row_key"] for r in whole.rows] == list(range(rows))
    for other in (chunked, chunked.combine_chunks(), pa.Table.from_batches(chunked.to_batches(max_chunksize=11))):
        found = read_table(other, shard_mb=1)
        assert (found.units, found.rows) == (whole.units, whole.rows)
