"""JSON arrays and objects one after another: a broken element costs that element."""

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

GOOD = [{"text": f"text {i}", "n": {"i": i}} for i in range(6)]


def array(elements, indent=None, separator=", "):
    parts = [e if isinstance(e, str) else json.dumps(e, indent=indent) for e in elements]
    return ("[" + separator.join(parts) + "]").encode()


@pytest.mark.parametrize("indent", [None, 0, 4])
@pytest.mark.parametrize("name", ["data.json", "data.jsonl", "data"])
def test_an_array_is_read_whatever_its_indentation_and_suffix(read_bytes, indent, name):
    found = read_bytes(json.dumps(GOOD, indent=indent).encode(), name)
    assert found.texts == [g["text"] for g in GOOD]
    assert [r["row_key"] for r in found.rows] == list(range(6))
    assert json.loads(found.rows[3]["extra"]) == {"n": {"i": 3}}


BROKEN = {
    "quote forgotten at the end": '{"text": "no end, "n": 1}',
    "quote forgotten, nothing after": '{"text": "no end}',
    "brace forgotten": '{"text": "a", "n": {"i": 1}',
    "bracket for brace": '{"text": "a", "n": {"i": 1]}',
    "colon forgotten": '{"text" "a"}',
    "single quotes": "{'text': 'a'}",
    "trailing comma": '{"text": "a",}',
    "python literal": '{"text": "a", "n": None}',
    "not text": '{"text": 5}',
    "no object": "17",
    "a string": '"text"',
    "a list": '["text"]',
    "raw new line in a string": '{"text": "a\nb"}',
    "rubbish": "rubbish !!",
}


@pytest.mark.parametrize("separator", [", ", ",\n    "])
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_element_costs_that_element(read_bytes, what, separator):
    data = array([*GOOD[:3], BROKEN[what], *GOOD[3:]], separator=separator)
    found = read_bytes(data, "data.json")
    assert found.texts == [g["text"] for g in GOOD]
    assert len(found.bad) in (1, 2)
    bad = found.bad[0]
    assert data[bad["byte_offset"] :].startswith(bad["raw"])
    assert bad["line"] == data[: bad["byte_offset"]].count(b"\n") + 1
    quarantined = b"".join(b["raw"] for b in found.bad)
    assert quarantined.replace(b" ", b"").strip(b",]") in BROKEN[what].encode().replace(b" ", b"")


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_first_or_last_element_costs_that_element(read_bytes, what):
    for elements in ([BROKEN[what], *GOOD], [*GOOD, BROKEN[what]]):
        found = read_bytes(array(elements), "data.json")
        assert found.texts == [g["text"] for g in GOOD]
        assert found.bad


def test_a_brace_too_many_costs_the_brace(read_bytes):
    found = read_bytes(array([GOOD[0], '{"text": "a"}}', GOOD[1]]), "data.json")
    assert found.texts == ["text 0", "a", "text 1"]
    assert [b["raw"] for b in found.bad] == [b"}"]


def test_an_array_that_never_closes_is_told(read_bytes):
    found = read_bytes(array(GOOD)[:-1], "data.json")
    assert found.texts == [g["text"] for g in GOOD]
    assert found.reasons == ["invalid_json"]
    found = read_bytes(array(GOOD)[:-20], "data.json")
    assert found.texts == [g["text"] for g in GOOD[:-1]]
    assert found.reasons == ["invalid_json"]


def test_rubbish_after_an_array_is_told(read_bytes):
    found = read_bytes(array(GOOD) + b"\nrubbish", "data.json")
    assert found.texts == [g["text"] for g in GOOD]
    assert [b["raw"] for b in found.bad] == [b"rubbish"]


def test_an_empty_array_holds_no_rows(read_bytes):
    found = read_bytes(b" [ ]\n", "data.json", kind="text")
    assert (found.rows, found.bad) == ([], [])


@pytest.mark.parametrize("between", ["\n", "", "\n\n"])
def test_pretty_printed_objects_one_after_another(read_bytes, between):
    data = between.join(json.dumps(g, indent=2) for g in GOOD).encode()
    assert read_bytes(data, "data.json").texts == [g["text"] for g in GOOD]


def test_one_object_is_one_row(read_bytes):
    assert read_bytes(json.dumps(GOOD[0], indent=2).encode(), "data.json").texts == ["text 0"]
    assert read_bytes(json.dumps(GOOD[0]).encode(), "data.json").texts == ["text 0"]


def test_jsonl_named_json_is_read_as_lines(read_bytes):
    data = b"\n".join(json.dumps(g).encode() for g in GOOD)
    found = read_bytes(data, "data.json")
    assert (found.plan.files[0].format, found.texts) == ("jsonl", [g["text"] for g in GOOD])


def test_units_of_an_array_are_cut_between_elements(read_bytes):
    rng = random.Random(1)
    rows = [{"text": f"{i} " + "y" * rng.randrange(3000)} for i in range(3000)]
    whole = read_bytes(json.dumps(rows, indent=1).encode(), "data.json")
    cut = read_bytes(json.dumps(rows, indent=1).encode(), "data.json", shard_mb=1)
    assert cut.units > 3
    assert cut.rows == whole.rows
    assert cut.texts == [r["text"] for r in rows]


def test_positions_are_true_in_every_unit(read_bytes):
    rows = [json.dumps({"text": f"{i} " + "y" * 3000}) for i in range(2000)]
    for i in range(100, 2000, 100):
        rows[i] = f'{{"text": {i}}}'
    data = array(rows, separator=",\n")
    found = read_bytes(data, "data.json", shard_mb=1)
    assert len(found.rows) + len(found.bad) == 2000
    for bad in found.bad:
        assert data[bad["byte_offset"] :].startswith(bad["raw"])
        assert bad["line"] == data[: bad["byte_offset"]].count(b"\n") + 1


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(max_size=10), values), max_size=8), st.sampled_from([None, 0, 3]), st.booleans())
def test_any_array_gives_what_json_load_gives(read_bytes, elements, indent, ascii):
    rows = [{"text": t, "value": v} for t, v in elements]
    found = read_bytes(
        json.dumps(rows, indent=indent, ensure_ascii=ascii).encode(errors="replace"), "data.json", kind="text"
    )
    again = json.loads(json.dumps(rows, ensure_ascii=ascii).encode(errors="replace"))
    assert not found.bad
    assert found.texts == [r["text"] for r in again]
    assert [json.loads(r["extra"])["value"] for r in found.rows] == [r["value"] for r in again]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_crashes_or_loses_the_elements_before_it(read_bytes, data):
    whole = bytearray(array(GOOD, indent=data.draw(st.sampled_from([None, 2]))))
    at = data.draw(st.integers(1, len(whole) - 1))
    whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    found = read_bytes(bytes(whole), "data.json", kind="text")
    before = sum(1 for i in range(6) if (f'"text {i}"'.encode()) in whole[: max(at - 60, 0)])
    assert len(found.texts) >= before
    quarantined = b"".join(b["raw"] for b in found.bad).replace(b" ", b"")
    for i in range(6):
        assert f'"text {i}"'.encode() not in whole or f"text {i}" in found.texts or b"text%d" % i in quarantined


def test_a_first_element_of_many_megabytes_still_tells_the_layout(read_bytes):
    rows = [{"text": "x" * (9 << 20)}, {"text": "y"}]
    found = read_bytes(json.dumps(rows).encode(), "data.json", shard_mb=1)
    assert [len(t) for t in found.texts] == [9 << 20, 1]
