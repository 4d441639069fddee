"""JSON lines, arrays and objects: one bad record costs one row, whatever is wrong with it."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.read import record
from tests.read.conftest import jsonl


def test_a_bad_line_costs_one_row_and_blank_lines_and_line_ends_are_no_part_of_records(read_bytes):
    data = b'\xef\xbb\xbf{"text":"a"}\r\n\n \t\r\n  {"text": 3.5}\r\n{"text": "tw\r\n  {"text":"b"} \n{"text":"c"}'
    found = read_bytes(data)
    assert found.texts == ["a", "b", "c"]
    assert [(r["row_key"], r["id"]) for r in found.rows] == [(n, f"data.jsonl:{n}") for n in (0, 5, 6)]
    assert [(b["line"], b["reason"], b["raw"]) for b in found.bad] == [
        (4, "not_text", b'{"text": 3.5}'), (5, "invalid_json", b'{"text": "tw')]  # fmt: skip
    assert found.bad[0]["detail"] == "text should be a string, found the number 3.5"
    assert all(data[b["byte_offset"] :].startswith(b["raw"]) for b in found.bad)


@pytest.mark.parametrize(("line", "reason"), [
    (b'{"text": "a"} trailing', "invalid_json"), (b'{"text": "a"}{"text": "b"}', "invalid_json"),
    (b'{"text": "a\x00b"}', "invalid_json"), (b"\x00\x00\x00\x00", "invalid_json"),
    (b'{"text": "\xff\xfe"}', "invalid_utf8"), (b'{"text": "\xed\xa0\x80"}', "invalid_utf8"),
    (b'["text"]', "not_an_object"), (b'"text"', "not_an_object"), (b"null", "not_an_object"),
    (b"17", "not_an_object"), (b'{"text": 17}', "not_text"), (b'{"text": null}', "not_text"),
    (b'{"text": ["a"]}', "not_text"), (b'{"txt": "a"}', "missing_field"), (b'{"text": "\\ud83d"}', "lone_surrogate"),
    (b'{"text": "a", "meta": {"b": ["\\udc00"]}}', "lone_surrogate"), (b"[" * 100_000, "too_deep"),
    (b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too_deep"),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "too_deep"),
])  # fmt: skip
def test_what_is_wrong_is_named_and_the_bytes_are_kept(read_bytes, line, reason):
    found = read_bytes(jsonl({"text": "before"}, line, {"text": "after"}))
    assert found.texts == ["before", "after"]
    assert [(b["line"], b["reason"], b["raw"]) for b in found.bad] == [(2, reason, line)]
    assert found.bad[0]["detail"]


@pytest.mark.parametrize(("line", "extra"), [
    ('{"te\\u0078t":"a","lang":"de"}', '{"lang":"de"}'),
    ('{"text":"a","b":NaN,"c":[-Infinity,1.0],"d":2.50}', '{"b":"NaN","c":["-Infinity",1.0],"d":2.50}'),
    ('{"text":"a","b":-1e400,"c":[%s],"d":2.50}' % ("9" * 400), '{"b":"-1e400","c":["%s"],"d":2.50}' % ("9" * 400)),
    ('{"text":"a","text":"b"}', None), ('{"text":"a","te\\u0078t":"b"}', None), ('{"text":"a","n":1,"n":1}', None),
])  # fmt: skip
def test_escaped_keys_are_keys_and_a_field_that_stands_twice_is_quarantined(read_bytes, line, extra):
    found = read_bytes(line.encode() + b'\n{"text":"c"}\n')
    assert (found.texts, found.reasons) == ((["a", "c"], []) if extra else (["c"], ["repeated_keys"]))
    assert found.rows[0]["extra"] == extra


def test_extra_holds_other_fields_exactly_as_written(read_bytes):
    extra = (
        '{"big":123456789012345678901234567890,"float":1.0,"trail":0.10,"date":"2024-01-01T00:00:00",'
        '"null":null,"nested":{"a":[1.50,{"b":-0.0}],"dup":1,"dup":2},"lang":"en","source":"web","lang_score":0.3,'
        '"row_key":"mine","key with \\"quotes\\" é":true}'
    )
    line = '{"text":"t",' + extra[1:-1] + "}"
    found = read_bytes(line.encode() + b"\n")
    assert found.rows[0]["extra"] == extra
    assert found.rows[0]["lang"] is None


@pytest.mark.parametrize(("given", "expected", "extra"), [
    ('"x-1"', "x-1", None), ("17", "17", None), ("-3", "-3", None),
    ("123456789012345678901234567890", "123456789012345678901234567890", None), ("1.5", "data.jsonl:0", '{"id":1.5}'),
    ('""', "data.jsonl:0", '{"id":""}'), ("null", "data.jsonl:0", '{"id":null}'),
    ("true", "data.jsonl:0", '{"id":true}'),
])  # fmt: skip
def test_ids_are_the_users_where_they_are_usable(read_bytes, given, expected, extra):
    found = read_bytes(f'{{"text":"t","id":{given}}}\n'.encode())
    assert (found.rows[0]["id"], found.rows[0]["extra"]) == (expected, extra)


def test_units_are_cut_by_data_alone_and_row_numbers_go_on(read, tmp_path):
    texts = [f"{i} " + "x" * (i * 7919 % 5000) for i in range(2000)]
    (tmp_path / "a.jsonl").write_bytes(jsonl(*({"text": t} for t in texts)))
    (tmp_path / "b.jsonl").write_bytes(jsonl(*({"text": t} for t in texts[:10])))
    whole, cut = read(tmp_path), read(tmp_path, shard_mb=1)
    assert (whole.units, cut.units) == (2, 6)
    assert cut.rows == whole.rows
    assert cut.texts == texts + texts[:10]
    assert [r["row_key"] for r in cut.rows] == [*range(2000), *range(1 << 40, (1 << 40) + 10)]
    rows = [json.dumps({"text": t if n % 100 else n}) for n, t in enumerate(texts)]
    (tmp_path / "c.json").write_bytes(data := array(rows, separator=",\n"))
    found = read(tmp_path / "c.json", shard_mb=1)
    assert found.units > 2 and len(found.rows) + len(found.bad) == 2000 and len(found.bad) == 20
    for bad in found.bad:
        assert data[bad["byte_offset"] :].startswith(bad["raw"])
        assert bad["line"] == data[: bad["byte_offset"]].count(b"\n") + 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


GOOD = [{"text": f"text {i}", "n": {"i": i}} for i in range(6)]


def array(elements, indent=None, separator=", "):
    parts = [e if isinstance(e, str) else json.dumps(e, indent=indent) for e in elements]
    return ("[" + separator.join(parts) + "]").encode()


BROKEN = {
    "bracket for brace": '{"text": "a", "n": {"i": 1]}', "colon forgotten": '{"text" "a"}',
    "single quotes": "{'text': 'a'}", "trailing comma": '{"text": "a",}', "python literal": '{"text": "a", "n": None}',
    "not text": '{"text": 5}', "no object": "17", "a string": '"text"', "raw new line in a string": '{"text": "a\nb"}',
    "rubbish": "rubbish", "brace too many": "}",
}  # fmt: skip
ENDLESS = ['{"text": "no end, "n": 1}', '{"text": "no end}', '{"text": "a", "n": {"i": 1}', "{"]


@pytest.mark.parametrize("place", [0, 3, 6])
@pytest.mark.parametrize("broken", [*BROKEN.values(), *ENDLESS], ids=[*BROKEN, *ENDLESS])
def test_a_broken_element_costs_itself_or_the_rest_where_its_end_is_unknown(read_bytes, broken, place):
    data = array([*GOOD[:place], broken, *GOOD[place:]], separator=",\n    ")
    found = read_bytes(data, "data.json", kind="text")
    assert found.texts == [g["text"] for g in (GOOD[:place] if broken in ENDLESS else GOOD)]
    bad, *still_open = found.bad
    assert [b["raw"] for b in still_open] in ([], [b""])
    begin = data.index(broken.encode(), len(array(GOOD[:place], separator=",\n    ")) - 1 if place else 1)
    assert bad["byte_offset"] == begin and bad["line"] == data[:begin].count(b"\n") + 1
    assert bad["raw"] == (data[begin:] if broken in ENDLESS else broken.encode())


@settings(max_examples=150)
@given(st.data())
def test_no_damage_crashes_or_loses_an_element_without_a_word(read_bytes, data):
    whole = bytearray(array(GOOD, indent=data.draw(st.sampled_from([None, 2]))))
    at = data.draw(st.integers(1, len(whole) - 1))
    whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    found = read_bytes(bytes(whole), "data.json", kind="text")
    assert len(found.texts) >= sum(1 for i in range(6) if f'"text {i}"'.encode() in whole[: max(at - 60, 0)])
    quarantined = b"".join(b["raw"] for b in found.bad)
    for i in range(6):
        assert f"text {i}".encode() not in whole or f"text {i}" in found.texts or b"text %d" % i in quarantined


@pytest.mark.parametrize(("member", "count"), [('""0', 0), ('"":0', 0), ('"":0,', 60)])
def test_members_stay_within_their_array(member, count):
    raw = ("{" + member * 60).encode()
    first, spans = record._members.py_func(np.frombuffer(raw, np.uint8), np.array([0]), np.array([len(raw)]))
    assert len(spans) == first[1] == count


@pytest.mark.parametrize(("data", "texts", "raws"), [
    (array([GOOD[0], '{"text": "a"}}', GOOD[1]]), ["text 0", "a", "text 1"], [b"}"]),
    (array(GOOD[:2])[:-1], ["text 0", "text 1"], [b""]),
    (array(GOOD[:2])[:-20], ["text 0"], [b'{"text": "text']),
    (array(GOOD[:1]) + b"\nrubbish", ["text 0"], [b"rubbish"]), (b" [ ]\n", [], []),
    (json.dumps(GOOD[0], indent=2).encode(), ["text 0"], []), (json.dumps(GOOD[0]).encode(), ["text 0"], []),
    *((between.join(json.dumps(g, indent=2) for g in GOOD[:2]).encode(), ["text 0", "text 1"], [])
      for between in ("", "\n", "\n\n")),
    (b'{"text": "a"}\n{"text": "b"}', ["a", "b"], []),
])  # fmt: skip
def test_what_stands_around_values_is_told_and_costs_no_value(read_bytes, data, texts, raws):
    found = read_bytes(data, "data.json", kind="text")
    assert (found.texts, [b["raw"] for b in found.bad]) == (texts, raws)


def without_nan(value):
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return json.dumps(value)
    if isinstance(value, dict):
        return {k: without_nan(v) for k, v in value.items()}
    return [without_nan(v) for v in value] if isinstance(value, list) else value


@settings(max_examples=150)
@given(st.lists(st.tuples(st.text(max_size=10), json_values), max_size=8), st.sampled_from([None, 0, 4, "lines"]),
       st.booleans(), st.sampled_from(["data.json", "data.jsonl", "data"]))  # fmt: skip
def test_all_values_are_what_json_load_gives_whatever_the_indentation_and_suffix(
    read_bytes, elements, indent, ascii, name
):
    rows = [{"text": t, "value": v} for t, v in elements]
    form = {"ensure_ascii": ascii, "indent": None if indent == "lines" else indent}
    written = "\n".join(json.dumps(r, **form) for r in rows) if indent == "lines" else json.dumps(rows, **form)
    found = read_bytes(written.encode(errors="replace"), name if rows else "data.json", kind="text")
    again = json.loads(json.dumps(rows, ensure_ascii=ascii).encode(errors="replace"))
    assert not found.bad
    assert found.texts == [r["text"] for r in again]
    assert [r["row_key"] for r in found.rows] == list(range(len(rows)))
    extras = [json.dumps(json.loads(r["extra"])["value"]) for r in found.rows]
    assert extras == [json.dumps(without_nan(r["value"])) for r in again]


def test_a_first_element_of_many_megabytes_still_tells_the_layout(read_bytes):
    rows = [{"text": "x" * (9 << 20)}, {"text": "y"}]
    found = read_bytes(json.dumps(rows).encode(), "data.json", shard_mb=1)
    assert [len(t) for t in found.texts] == [9 << 20, 1]
