"""What ingest promises of its rows: hashes, keys, batches, nothing lost, and units that travel."""

import json
import pickle

import pytest

from datakit.read import planning
from datakit.read.planning import plan, read_unit, units
from datakit.read.stage import IngestConfig
from tests.files import says, user
from tests.read.conftest import jsonl


def test_the_content_hash_of_a_conversation_covers_all_that_is_said(read_bytes):
    hi, yo = user("hi"), says("yo")
    same = [{"messages": [hi, yo]}, {"messages": [user(" hi "), yo], "id": "other", "note": 1},
            {"messages": [hi, says("yo", loss_weight=0.5)]}]  # fmt: skip
    others = [[hi], [yo, hi], [hi | {"role": "system"}, yo], [hi, says("yo", reasoning_content="hm")]]
    others += [[hi, says("yo", tool_calls=[{"name": "f"}])], [user("hi assistant yo")]]
    different = [{"messages": [hi, yo], "tools": [{"name": "f"}]}, *({"messages": row} for row in others)]
    hashes = [r["content_hash"] for r in read_bytes(jsonl(*same, *different)).rows]
    assert len(set(hashes[:3])) == 1
    assert len(set(hashes)) == 1 + len(different)


def test_numbers_nested_in_messages_are_written_as_they_were(read_bytes):
    line = (
        '{"messages":[{"role":"user","content":"hi","score":0.10},{"role":"assistant","content":null,"tool_calls":'
        '[{"function":{"name":"f","arguments":{"x":1.0,"big":12345678901234567890123}}}]}],"tools":[{"n":1e300}]}'
    )
    (row,) = read_bytes(line.encode()).rows
    assert row["messages"][1]["tool_calls"] == (
        '[{"function":{"name":"f","arguments":{"x":1.0,"big":12345678901234567890123}}}]'
    )
    assert row["tools"] == '[{"n":1e300}]'
    assert row["extra"] == '{"messages":[{"score":0.10},{}]}'


def test_token_ids_become_rows_of_their_own_kind(read_bytes):
    data = jsonl({"ids": [1, 2, 3]}, {"ids": [4, 5], "loss_mask": [0, 1], "id": 7}, {"ids": [4, "x"]})
    found = read_bytes(data, kind="sft")
    assert found.plan.kind == "tokens"
    assert [(r["input_ids"], r["label_spans"], r["segment_source"]) for r in found.rows] == [
        ([1, 2, 3], None, "conversation"),
        ([4, 5], [{"start": 1, "end": 2}], "conversation"),
    ]
    assert [r["id"] for r in found.rows] == ["data.jsonl:0", "7"]
    assert found.reasons == ["bad_ids"]
    pair = read_bytes(jsonl({"prompt_ids": [1], "chosen_ids": [2], "rejected_ids": [3, 4]}))
    assert (pair.rows[0]["rejected_ids"], pair.rows[0]["segment_source"]) == ([1, 3, 4], "preference")


@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_batches_are_bounded_and_plans_and_units_travel(tmp_path, monkeypatch, name):
    monkeypatch.setattr(planning, "BATCH_BYTES", 1 << 20)
    rows = [{"text": f"{i} " + "x" * (i % 3000)} if i % 7 else {"text": i} for i in range(5000)]
    (tmp_path / name).write_bytes(jsonl(*rows) if name == "x.jsonl" else json.dumps(rows).encode())
    planned = plan([str(tmp_path)], IngestConfig(shard_mb=3))
    assert planned.summary == ("1 file, text rows", f"{name}: document, {name[2:]}")
    batches = [b for u in units(planned) for b in read_unit(u, planned)]
    planned, cut = pickle.loads(pickle.dumps((planned, list(units(planned)))))
    again = [b for u in cut for b in read_unit(u, planned)]
    assert [b.rows for b in batches] == [b.rows for b in again] and len(batches) > 5
    texts = [r["text"] for r in rows if type(r["text"]) is str]
    assert [t for b in batches for t in b.rows["text"].to_pylist()] == texts
    assert sum(b.quarantined.num_rows for b in batches) == sum(type(r["text"]) is int for r in rows)
