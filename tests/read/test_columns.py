"""A document set's own columns: their types, fields with several types, and nothing lost in either place."""

import datetime
import decimal
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import datakit
from datakit.read.row_builder import RESERVED, column_type
from tests.files import says, user, write_rows
from tests.read.conftest import read_all

SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text("abc", min_size=1, max_size=2)
JSON = st.recursive(
    SCALARS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
RECORD = st.dictionaries(st.sampled_from(["a", "b", "lang", "ü x"]), JSON, max_size=4)


def without_nulls(value):
    """A value without null fields of objects: a struct says null where an object has no such key."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def own_fields(row):
    """What a row holds of the user's fields, in its columns and in `extra`."""
    columns = {k: v for k, v in row.items() if k not in RESERVED and v is not None}
    return columns | json.loads(row["extra"] or "{}")


MADE = {"text": "t"}, {"messages": [user("t"), says("u")]}, {"prompt": "t", "chosen": "u", "rejected": "v"}
ROWS = st.sampled_from(MADE)
"""What makes a document, a conversation, a pair."""


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_key_that_is_always_null_does_not_keep_an_object_from_being_a_column(tmp_path, suffix):
    rows = [{"text": "t", "meta": {"a": i, "b": None}} for i in range(120)]
    path = tmp_path / f"x.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        rows[-1]["meta"] = {"a": 1, "b": "late"}  # behind the records that tell the types
        write_rows(path, rows)
    found = read_all(path, columns="typed")
    assert found.rows[0]["meta"] == {"a": 0} and found.rows[0]["extra"] is None
    if suffix == "jsonl":
        assert json.loads(found.rows[-1]["extra"]) == {"meta": {"a": 1, "b": "late"}}
        assert found.notes["fields_of_other_type"] == 1


@settings(max_examples=80)
@given(row=ROWS, records=st.lists(RECORD, min_size=1, max_size=8))
def test_every_field_is_in_its_column_or_in_extra_with_its_value(tmp_path_factory, row, records):
    path = write_rows(tmp_path_factory.mktemp("in") / "x.jsonl", (row | record for record in records))
    found = read_all(path, columns="typed")
    assert not found.bad
    for row, record in zip(found.rows, records, strict=True):
        assert without_nulls(own_fields(row)) == without_nulls(record)
        for name, value in json.loads(row["extra"] or "{}").items():
            assert json.dumps(value) == json.dumps(record[name])  # what stays in extra is as it was written


def test_types_of_files_with_different_fields_join_in_any_order(tmp_path):
    for name, record in {
        "a": {"text": "x", "url": "u", "n": 1, "meta": {"lang": "en", "p": 0.5}, "mixed": 1},
        "b": {"text": "y", "date": "2024-01-02", "n": 1.5, "meta": {"tags": ["q"]}, "mixed": "one", "source": "s"},
        "c": {"text": "z", "n": None, "empty": {}, "table": {str(i): i for i in range(100)}},
    }.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(record))
    found = read_all(tmp_path, columns="typed")
    meta = "struct<lang: string, p: double, tags: list<element: string>>"
    types = {f.name: str(f.type) for f in found.plan.columns}
    assert types == {"date": "string", "meta": meta, "n": "double", "url": "string"}
    assert [(r["url"], r["date"], r["n"]) for r in found.rows] == [
        ("u", None, 1.0), (None, "2024-01-02", 1.5), (None, None, None)]  # fmt: skip
    assert [json.loads(r["extra"] or "{}").keys() for r in found.rows] == [
        {"mixed"}, {"mixed", "source"}, {"empty", "table"}]  # fmt: skip
    again = read_all(*sorted(map(str, tmp_path.iterdir()), reverse=True), columns="typed")
    assert again.plan.columns == found.plan.columns


def test_a_value_that_its_column_cannot_hold_exactly_stays_in_extra_and_is_counted(read_bytes):
    lines = [b'{"text":"t","n":1,"f":0.5,"o":{"a":1}}'] * 150
    lines += [
        b'{"text":"t","n":123456789012345678901,"f":1e300,"o":{"b":2}}',
        b'{"text":"t","n":"x","f":null,"o":null}',
        b'{"text":"t","new":1}',
    ]
    found = read_bytes(b"\n".join(lines) + b"\n", columns="typed")
    assert [str(f.type) for f in found.plan.columns] == ["double", "int64", "struct<a: int64>"]
    late = found.rows[150]
    assert late["extra"] == '{"n":123456789012345678901,"f":1e300,"o":{"b":2}}'
    assert (late["n"], late["f"], late["o"]) == (None, None, None)
    assert json.loads(found.rows[151]["extra"]) == {"n": "x"}
    assert found.rows[152]["extra"] == '{"new":1}'
    assert (found.notes["fields_of_other_type"], found.notes["late_fields"]) == (4, 1)


TYPED = {
    "url": pa.array(["u", None], pa.large_string()),
    "when": pa.array([datetime.datetime(2024, 1, 2, 3), None], pa.timestamp("us", "UTC")),
    "nano": pa.array([1704164645123456000, None], pa.timestamp("ns")),
    "day": pa.array([datetime.date(2024, 1, 2), None], pa.date32()),
    "price": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(10, 2)),
    "small": pa.array([7, None], pa.int8()),
    "share": pa.array([0.1, None], pa.float32()),
    "blob": pa.array([b"\xff", None], pa.binary()),
    "kind": pa.array(["x", "x"]).dictionary_encode(),
    "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
    "meta": pa.array([{"a": {"b": [1, 2]}}, None]),
}


def test_columns_of_typed_files_keep_their_types_and_values_through_stages(tmp_path):
    table = pa.table({"text": ["one text", "another text"], **TYPED})
    pq.write_table(table, tmp_path / "x.parquet")
    rows = datakit.dedup(datakit.normalize(tmp_path / "x.parquet")).to_table()
    wanted = table.cast(pa.schema([
        ("text", pa.string()), ("url", pa.string()), *[table.schema.field(n) for n in list(TYPED)[1:8]],
        ("kind", pa.string()), ("vector", pa.list_(pa.float32())), table.schema.field("meta")]))  # fmt: skip
    for name in TYPED:
        got = rows.column(name).combine_chunks()
        assert got.to_pylist() == wanted.column(name).to_pylist() or name == "share", name
        assert str(got.type).replace("element:", "item:") == str(wanted.schema.field(name).type), name
    # Parquet has no negative scale
    assert pc.all(pc.is_null(rows.column("extra"))).as_py() and column_type(pa.decimal128(5, -2)) is None
