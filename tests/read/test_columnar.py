"""Parquet and Arrow files, and tables in memory: typed columns become the same rows as JSON would."""

import datetime
import decimal
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datakit.errors import InputError, LayoutError
from datakit.read.columnar import table_of

TABLE = pa.table({"id": [f"d{i}" for i in range(1000)], "text": [f"text {i}" for i in range(1000)], "n": range(1000)})


def write(path, table, form, rows=100):
    if form == "parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        new = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as out, new(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x"])
def test_rows_are_read_whatever_the_suffix(read, tmp_path, form, name):
    write(tmp_path / name, TABLE, form)
    found = read(tmp_path / name)
    assert found.texts == TABLE["text"].to_pylist()
    assert [r["row_key"] for r in found.rows] == list(range(1000))
    assert (found.rows[5]["id"], found.rows[5]["extra"]) == ("d5", '{"n":5}')


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_units_are_cut_between_row_groups(read, tmp_path, form):
    table = pa.table({"text": [f"{i} " + "z" * 5000 for i in range(1000)]})
    path = tmp_path / "x"
    pq.write_table(table, path, row_group_size=70, use_dictionary=False) if form == "parquet" else write(
        path, table, form, 70
    )
    found = read(path, shard_mb=1)
    assert found.units == 5
    assert found.texts == table["text"].to_pylist()
    assert [r["row_key"] for r in found.rows] == list(range(1000))


def test_every_column_type_reaches_extra_as_json(read, tmp_path):
    table = pa.table(
        {
            "text": ["t"],
            "when": [datetime.datetime(2024, 1, 2, 3, 4, 5)],
            "day": [datetime.date(2024, 1, 2)],
            "price": [decimal.Decimal("1.10")],
            "bytes": [b"\xff\x00"],
            "nan": [float("nan")],
            "f": [0.1],
            "big": pa.array([2**64 - 1], pa.uint64()),
            "null": pa.nulls(1),
            "nested": [{"a": [1.5, None], "b": {"c": True}}],
        }
    )
    write(tmp_path / "x.parquet", table, "parquet")
    assert read(tmp_path / "x.parquet").rows[0]["extra"] == (
        '{"when":"2024-01-02T03:04:05","day":"2024-01-02","price":"1.10","bytes":"/wA=","nan":"NaN","f":0.1,'
        '"big":18446744073709551615,"null":null,"nested":{"a":[1.5,null],"b":{"c":true}}}'
    )


def test_a_row_without_text_is_quarantined_as_json(read, tmp_path):
    write(tmp_path / "x.parquet", pa.table({"text": ["a", None, "c"], "n": [1, 2, 3]}), "parquet")
    found = read(tmp_path / "x.parquet")
    assert found.texts == ["a", "c"]
    assert [(b["line"], b["byte_offset"], b["reason"], b["raw"]) for b in found.bad] == [
        (2, None, "not_text", b'{"text":null,"n":2}')
    ]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_every_string_type_is_text(read, tmp_path, kind):
    write(tmp_path / "x.arrow", pa.table({"text": pa.array(["a", "b"]).cast(kind)}), "arrow")
    assert read(tmp_path / "x.arrow").texts == ["a", "b"]


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


def test_what_is_no_parquet_is_refused(read, tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 not at all")
    with pytest.raises(InputError, match="not a readable parquet file"):
        read(tmp_path / "x.parquet")


def test_a_bad_cell_costs_its_row_alone(read, tmp_path):
    broken = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], "<i4")), pa.py_buffer(b"a\xffc")]
    )
    far = pa.array([0, 0, 400_000_000_000], pa.int64()).cast(pa.timestamp("s"))
    table = pa.table({"text": ["one", "two", "three"], "name": broken, "when": far})
    pq.write_table(table, tmp_path / "x.parquet")
    found = read(tmp_path / "x.parquet")
    rows, quarantined = found.rows, found.bad
    assert [r["text"] for r in rows] == ["one"]
    assert [(q["line"], q["reason"]) for q in quarantined] == [(2, "bad_cell"), (3, "bad_cell")]
    assert "column 'name'" in quarantined[0]["detail"] and "column 'when'" in quarantined[1]["detail"]
    assert b'"text":"two"' in quarantined[0]["raw"]


def test_nanoseconds_are_kept(read, tmp_path):
    columns = {
        "text": pa.array(["a"]),
        "t": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns")),
        "z": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "Europe/Paris")),
        "n": pa.array([3_000_000_001], pa.time64("ns")),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    found = read(tmp_path / "x.parquet")
    rows, quarantined = found.rows, found.bad
    assert quarantined == []
    assert json.loads(rows[0]["extra"]) == {
        "t": "2023-11-14T22:13:20.123456789",
        "z": "2023-11-14T22:13:20.123456789+00:00",
        "n": "00:00:03.000000001",
    }


def test_a_column_named_twice_is_refused(read, tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(InputError, match="names column 'text' twice"):
        read(tmp_path / "x.parquet")


class Exporter:
    """What polars, pandas and DuckDB have: the Arrow C stream interface, and nothing else that we know."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def bad_and_typed():
    """600 rows of many types; some cannot become rows."""
    whole = [*range(297), 400_000_000_000, *range(302)]
    name = b"".join(b"\xff" if i == 77 else b"n" for i in range(600))
    return pa.table(
        {
            "text": [None if i % 100 == 50 else f"text {i}" for i in range(600)],
            "id": range(600),
            "name": pa.Array.from_buffers(
                pa.string(), 600, [None, pa.py_buffer(np.arange(601, dtype="<i4")), pa.py_buffer(name)]
            ),
            "when": pa.array([1000 * s for s in whole], pa.int64()).cast(pa.timestamp("ms")),
            "nano": pa.array(range(600), pa.timestamp("ns", "Europe/Paris")),
            "f": [i / 7 for i in range(600)],
            "kind": pa.array(["a", "b", None] * 200).dictionary_encode(),
            "nested": [[{"a": 1.5, "b": i}] for i in range(600)],
            "bytes": [b"\xff\x00"] * 600,
        }
    )


def test_a_table_gives_the_rows_and_the_quarantine_of_its_parquet_file(read, read_table, tmp_path):
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    for table in (
        bad_and_typed(),
        pa.table({"messages": [turns, None, turns]}),
        pa.table({"prompt": ["a"], "chosen": ["b"], "rejected": ["c"]}),
        pa.table({"input_ids": [[1, 2, 3]], "loss_mask": [[0, 1, 1]]}),
    ):
        pq.write_table(table, tmp_path / "table")
        in_memory, from_file = read_table(table), read(tmp_path / "table")
        assert in_memory.plan.kind == from_file.plan.kind
        assert in_memory.plan.files[0].layout == from_file.plan.files[0].layout
        assert in_memory.rows == from_file.rows
        assert in_memory.bad == from_file.bad
        assert len(in_memory.rows) + len(in_memory.bad) == table.num_rows


@pytest.mark.parametrize("data", [
    TABLE, TABLE.combine_chunks().to_batches()[0], TABLE.to_reader(), Exporter(TABLE),
    Exporter(TABLE.to_reader(max_chunksize=30)),
], ids=["table", "batch", "reader", "exporter", "exporter of chunks"])  # fmt: skip
def test_whatever_exports_an_arrow_stream_is_a_table(read_table, data):
    table = table_of(data)
    assert table.equals(TABLE)
    assert read_table(table).texts == TABLE["text"].to_pylist()


def test_what_is_no_arrow_data_is_refused():
    with pytest.raises(InputError, match=r"type list cannot be read.*__arrow_c_stream__"):
        table_of([{"text": "a"}])
    with pytest.raises(InputError, match="names column 'text' twice"):
        table_of(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]))

    def batches():
        yield TABLE.to_batches()[0]
        raise pa.ArrowInvalid("no more of it")

    with pytest.raises(InputError, match="no more of it"):
        table_of(Exporter(pa.RecordBatchReader.from_batches(TABLE.schema, batches())))


def test_a_table_of_unknown_columns_is_refused(read_table):
    with pytest.raises(LayoutError, match=r"table: the fields of its records fit no known layout(.|\n)*a: x"):
        read_table(pa.table({"a": ["x"]}))
    assert read_table(pa.table({"a": ["x"]}), text_field="a").texts == ["x"]


def test_the_units_of_a_table_do_not_depend_on_its_chunks(read_table):
    rows = 3000
    columns = {
        "text": [f"{i} " + "z" * (i % 2000) for i in range(rows)],
        "note": [None if i == 1234 else "n" for i in range(rows)],
        "l": [[{"a": i}] for i in range(rows)],
    }
    table = pa.table(columns)
    chunked = pa.concat_tables(pa.table({k: v[a : a + 700] for k, v in columns.items()}) for a in range(0, rows, 700))
    whole = read_table(table, shard_mb=1)
    assert whole.units == 2
    assert [r["row_key"] for r in whole.rows] == list(range(rows))
    for other in (chunked, chunked.combine_chunks(), pa.Table.from_batches(chunked.to_batches(max_chunksize=11))):
        found = read_table(other, shard_mb=1)
        assert (found.units, found.rows) == (whole.units, whole.rows)


def test_an_empty_table_has_no_rows(read_table):
    assert read_table(pa.table({"text": pa.array([], pa.string())}), kind="text").rows == []
