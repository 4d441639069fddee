"""Files that are made to harm: too large, endless, or no files at all. For broken bytes see engine/test_campaign."""

import gzip
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.errors import InputError
from datakit.read import streams
from tests.read.conftest import limit_records
from tests.read.test_files import SUFFIX, compress

LINE = b'{"text": "good"}\n'


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.txt", "a.parquet", "a.arrow", "a.jsonl.gz"])
@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_blank_files_hold_no_rows(read, tmp_path, name, content):
    if name.endswith((".parquet", ".arrow")) and content:
        pytest.skip("white space is no Parquet or Arrow file")
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") and content else content)
    (tmp_path / "z.jsonl").write_bytes(LINE)
    found = read(tmp_path, kind="text")
    assert found.texts == ["good"] and found.bad == []


@pytest.mark.parametrize(("make", "skipped", "refused"), [
    (os.mkfifo, "no regular file but a FIFO", "is no regular file but a FIFO, a socket or a device"),
    (lambda path: path.symlink_to("gone"), "link to a file that does not exist", "is a link to gone, which does not"),
])  # fmt: skip
def test_what_is_no_file_is_skipped_in_a_folder_and_refused_by_name(read, tmp_path, make, skipped, refused):
    make(tmp_path / "a.jsonl")
    (tmp_path / "z.jsonl").write_bytes(LINE)
    found = read(tmp_path)
    assert found.texts == ["good"]
    assert any(f"not read ({skipped}" in line and "a.jsonl" in line for line in found.plan.summary)
    with pytest.raises(InputError, match=rf"a\.jsonl: {refused}"):
        read(tmp_path / "a.jsonl")


@pytest.mark.parametrize("codec", ["gzip", "bz2", "xz", "zstd"])
def test_a_few_bytes_that_become_gigabytes_are_not_unpacked(read, tmp_path, monkeypatch, codec):
    monkeypatch.setattr(streams, "EXPANSION_FROM", 16 << 20)
    data = LINE * 1000 + b'{"text": "' + b"a" * (48 << 20) + b'"}\n' + LINE
    (tmp_path / f"a.jsonl.{SUFFIX[codec]}").write_bytes(compress(data, codec))
    monkeypatch.setattr(streams, "EXPANSION", 100)
    found = read(tmp_path)
    assert found.texts == ["good"] * 1000 and found.reasons == ["too_large_unpacked"]
    assert "decompress it first" in found.bad[0]["detail"]
    monkeypatch.setattr(streams, "EXPANSION", 10**6)
    assert len(read(tmp_path).texts) == 1002


def test_unpacking_makes_no_block_that_is_larger_than_the_others():
    for codec in ("gzip", "bz2", "xz"):
        blocks = list(streams._decompress(streams._DECODERS[codec](), compress(bytes(30 << 20), codec)))
        assert max(map(len, blocks)) <= streams.BLOCK and sum(map(len, blocks)) == 30 << 20


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_line_that_is_too_long_costs_one_row(read, tmp_path, monkeypatch, name):
    limit_records(monkeypatch)
    data = LINE * 3 + b'{"text": "' + b"a" * (3 << 20) + b'"}\n' + LINE * 2 + b"b" * (2 << 20)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    found = read(tmp_path)
    assert found.texts == ["good"] * 5 and found.reasons == ["too_long", "too_long"]
    assert [b["line"] for b in found.bad] == [4, 7]
    assert "more than 1 MiB" in found.bad[0]["detail"]


@pytest.mark.parametrize("form", ["array", "objects", "csv", "text"])
def test_the_records_before_one_that_is_too_long_are_read(read, tmp_path, monkeypatch, form):
    limit_records(monkeypatch)
    texts = [f"good {n}" for n in range(9)] + ["a" * (4 << 20)]
    rows = [json.dumps({"text": t}) for t in texts]
    data = {"array": f"[{','.join(rows)}]", "objects": "\n\n".join(rows).replace('{"', '{\n"'),
            "csv": "text\n" + "\n".join([*texts[:9], f'"{texts[9]}"']), "text": texts[9]}[form]  # fmt: skip
    (tmp_path / {"array": "a.json", "objects": "a.json", "csv": "a.csv", "text": "a.txt"}[form]).write_text(data)
    (tmp_path / "z.jsonl").write_bytes(LINE)
    found = read(tmp_path, kind="text")
    assert found.texts == ([] if form == "text" else texts[:9]) + ["good"] and found.reasons == ["too_long"]


def test_a_table_that_unpacks_to_far_more_is_not_read_to_its_end(read, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "EXPANSION_FROM", 1 << 20)
    pq.write_table(pa.table({"text": ["a" * 2000] * 20_000}), tmp_path / "a.parquet", compression="zstd")
    monkeypatch.setattr(streams, "EXPANSION", 10)
    found = read(tmp_path)
    assert 0 < len(found.rows) < 20_000 and len(found.rows) + len(found.bad) == 20_000
    assert set(found.reasons) == {"too_large_unpacked"}


# One bad record never ends a run.

LEAF = st.sampled_from(
    [None, True, False, 0, 1, -1, 10**400, 1.5, 1e300, "", " ", "a", "user", "assistant", "gpt", "human", "tool",
     "\x00", "[{1: 'a'}]", "[{'role': 'user', 'content': [{1: 'a'}]}]", "[(1,), {2}]", "[]", "{}", "[1, 2]",
     '[{"name": "f"}]', '{"name": "f", "arguments": "{}"}', "\\ud800", "Human: hi\n\nAssistant: yes", "<|im_end|>",
     "9" * 30]
)  # fmt: skip
NAMES = st.sampled_from(
    ["role", "from", "content", "value", "name", "weight", "loss_weight", "tool_calls", "function_call", "tool_call_id",
     "reasoning_content", "type", "text", "tool_use", "id", "input", "label", "arguments", "function", "a.b", "",
     "extra"]
)  # fmt: skip
VALUE = st.recursive(LEAF, lambda v: st.lists(v, max_size=3) | st.dictionaries(NAMES, v, max_size=3), max_leaves=8)
SAID = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": VALUE},
                             optional={"tool_calls": VALUE, "function_call": VALUE, "weight": VALUE, "name": VALUE,
                                       "reasoning_content": VALUE, "tool_call_id": VALUE})  # fmt: skip
GOOD = {
    "sft": ({"messages": [{"role": r, "content": "q"} for r in ("user", "assistant")]}, st.fixed_dictionaries(
        {"messages": st.lists(SAID | VALUE, max_size=4) | VALUE},
        optional={"tools": VALUE, "id": VALUE, "label": VALUE})),
    "alpaca": ({"instruction": "q", "input": "i", "output": "a"}, st.fixed_dictionaries(
        {"instruction": VALUE, "input": VALUE, "output": VALUE}, optional={"history": VALUE, "system": VALUE})),
    "pairs": ({"prompt": "q", "chosen": "a", "rejected": "b"}, st.fixed_dictionaries(
        {"prompt": VALUE | st.lists(SAID), "chosen": VALUE | st.lists(SAID), "rejected": VALUE | st.lists(SAID)},
        optional={"tools": VALUE})),
    "text": ({"text": "good", "n": 1}, st.dictionaries(st.sampled_from(["text", "n", "id", "url", "meta"]), VALUE)),
    "tokens": ({"ids": [1, 2, 3], "labels": [-100, 2, 3]}, st.fixed_dictionaries(
        {"ids": VALUE | st.lists(st.integers(-9, 2**40))}, optional={"labels": VALUE, "mask": VALUE})),
}  # fmt: skip


@pytest.mark.parametrize("layout", GOOD)
@given(data=st.data())
@settings(max_examples=12)
def test_each_record_is_a_row_or_is_quarantined_whatever_it_holds(read, tmp_path, layout, data):
    good, hostile = GOOD[layout]
    records = [good] * 130 + data.draw(st.lists(hostile | VALUE, min_size=1, max_size=4))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    found = read(tmp_path / "a.jsonl", columns=data.draw(st.sampled_from(["json", "typed"])))
    assert len(found.rows) + len(found.bad) == len(records) and len(found.rows) >= 130
    turns = [m for r in found.rows for name in ("messages", "prompt", "chosen", "rejected") for m in r.get(name) or []]
    texts = [r[name] for r in found.rows for name in ("extra", "tools") if r.get(name)]
    for text in [*texts, *(m["tool_calls"] for m in turns if m["tool_calls"])]:
        json.loads(text.encode())
