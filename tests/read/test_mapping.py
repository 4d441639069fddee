"""What a user maps, presets, and what is said about records of no layout; splits of a folder, and limits."""

import gzip
import json
import re
import shlex
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datakit.config import parse
from datakit.errors import ConfigError, LayoutError, UsageError
from datakit.read.layouts.table import presets
from tests.files import says, user, write_rows
from tests.read.test_layouts import ASKED, said


def test_turns_speakers_and_texts_of_any_name_are_mapped(read_records):
    record = {"turns": [{"speaker": "SYSTEM", "utterance": "yo", "at": 3}, {"speaker": "Kundin", "utterance": "hi"}]}
    mapping = {"messages": "turns", "role": "speaker", "content": "utterance"}
    found = read_records(record, map=mapping, roles={"SYSTEM": "assistant", "kundin": "user"})
    assert said(found.rows[0]) == [("assistant", "yo"), ("user", "hi")]
    assert json.loads(found.rows[0]["extra"]) == {"turns": [{"at": 3}, {}]}


def test_a_path_leads_into_nested_fields_and_leaves_the_rest_beside_the_row(read_records):
    record = {"meta": {"doc": {"body": "long text", "lang": "sv"}, "n": 1}, "key": {"id": "k1"}}
    found = read_records(record, map={"text": "meta.doc.body", "id": "key.id"})
    assert (found.texts, found.rows[0]["id"]) == (["long text"], "k1")
    assert json.loads(found.rows[0]["extra"]) == {"meta": {"n": 1, "doc": {"lang": "sv"}}, "key": {"id": "k1"}}
    chat = {"data": {"log": [{"who": "a", "what": {"said": "hi"}}, {"who": "b", "what": {"said": "yo"}}]}}
    mapping = {"messages": "data.log", "role": "who", "content": "what.said"}
    mapped = read_records(chat, map=mapping, roles={"a": "user", "b": "assistant"})
    assert said(mapped.rows[0]) == ASKED


def test_a_template_makes_the_prompt_and_empty_fields_leave_no_gap(read_records):
    mapping = {"prompt": "{instruction}\n\n{context}", "answer": "response"}
    whole = {"instruction": "who?", "context": "Ann, 1.", "response": "Ann"}
    none = {"instruction": "hi", "context": None, "response": "yo"}
    found = read_records(whole, none, {"response": "yo"}, map=mapping)
    assert [said(r) for r in found.rows] == [[("user", "who?\n\nAnn, 1."), ("assistant", "Ann")], ASKED]
    assert found.reasons == ["missing_field"]
    assert read_records({"a": {"b": 3}, "t": "x"}, map={"text": "{t} {a.b}"}).texts == ["x 3"]


@pytest.mark.parametrize(
    "config", [{"prompt": "q", "answer": "all"}, {"prompt": "q", "chosen": "a", "rejected": "all"}]
)
def test_a_list_of_answers_is_refused_and_one_of_them_is_named_by_its_place(read_records, config):
    record = {"q": "hi", "a": "yes", "all": ["yo", "no"]}
    with pytest.raises(LayoutError, match=r"all is a list of texts: name the one that counts by its place"):
        read_records(record, map=config)
    first = {ours: "all.0" if theirs == "all" else theirs for ours, theirs in config.items()}
    assert said(read_records(record, map=first).rows[0], list(first)[-1].replace("answer", "messages"))[-1][1] == "yo"


def test_pairs_weights_and_labels_are_mapped(read_records):
    sides = {"prompt": "q", "chosen": "good", "rejected": "bad"}
    pair = read_records({"q": "hi", "good": "yo", "bad": "no"}, map=sides)
    assert (pair.plan.kind, said(pair.rows[0], "rejected")) == ("preference", [("assistant", "no")])
    turns = [user("hi"), says("yo", learn=0.25)]
    assert read_records({"messages": turns}, map={"weight": "learn"}).rows[0]["messages"][1]["weight"] == 0.25
    judged = read_records({"q": "hi", "a": "no", "ok": False}, map={"prompt": "q", "answer": "a", "label": "ok"})
    assert judged.rows[0]["messages"][1]["weight"] == 0.0


@pytest.mark.parametrize(("config", "match"), [
    ({"map": {"mesages": "turns"}}, "mesages"), ({"map": {"prompt": "q"}}, "answer"),
    ({"map": {"prompt": "q", "chosen": "c"}}, "rejected"), ({"map": {"chosen": "a", "rejected": "b"}}, None),
    ({"map": {"system": "s"}}, "make no row"), ({"map": {"preset": "sqaud"}}, "no preset 'sqaud'; there are .*squad"),
    ({"roles": {"doctor": "asistant"}}, "system, user, assistant, tool"),
    ({"map": {"text": "a"}, "layout": "alpaca"}, "exclude"), ({"layout": "unheard"}, "known layouts"),
    ({"shard_mb": 0}, "should be between 1"), ({"page_timeout_s": 0}, "page_timeout_s is 0"),
])  # fmt: skip
def test_a_mapping_that_makes_no_sense_is_refused(read_records, config, match):
    with pytest.raises(ConfigError if match else LayoutError, match=match):
        read_records({"text": "t"}, **config)


@pytest.mark.parametrize(
    ("config", "match"),
    [({"map": {"prompt": "instrction", "answer": "output"}}, "--map prompt=instrction: .*perhaps instruction is meant"),
     ({"map": {"prompt": "{ask}: {what}", "answer": "output"}}, "none of its first records has a field ask"),
     ({"map": {"prompt": "{instrction}{output}", "answer": "output"}}, "a field instrction; perhaps instr"),
     ({"map": {"prompt": "output+instrction", "answer": "output"}}, "a field instrction; perhaps instr"),
     ({"map": {"messages": "turns", "role": "who", "content": "what", "weight": "lern"}}, "perhaps learn"),
     ({"map": {"id": "meta_id"}}, "--map id=meta_id: .*the fields are instruction, output, meta"),
     ({"map": {"messages": "turns", "role": "who", "content": "wat"}}, "--map content=wat: .*perhaps what is meant"),
     ({"map": {"prompt": "meta.ix", "answer": "output"}}, "--map prompt=meta.ix: .*perhaps meta.id is meant")],
)  # fmt: skip
def test_a_field_that_no_record_has_is_refused_before_any_work_with_the_nearest_one(read_records, config, match):
    record = {"instruction": "a", "output": "b", "meta": {"id": 1}, "turns": [{"who": "user", "what": "a", "learn": 1}]}
    with pytest.raises(LayoutError, match=match):
        read_records(record, **config)
    assert read_records(record, map={"prompt": "{ask}{instruction}", "answer": "output", "id": "meta.id"}).rows


# Presets.

PRESETS = {
    "dolly": {"instruction": "who?", "context": "It was Ann.", "response": "Ann"},
    "squad": {"context": "It was Ann.", "question": "who?", "answers": {"text": ["Ann"], "answer_start": [7]}},
    "ultrachat": {"id": "0", "data": ["hi", "yo"]}, "lima": {"conversations": ["hi", "yo"], "source": "x"},
    "medical_o1": {"Question": "hi", "Complex_CoT": "because", "Response": "yo"},
    "openthoughts": {"problem": "hi", "deepseek_reasoning": "because", "deepseek_solution": "yo", "domain": "x"},
    "s1k": {"question": "hi", "solution": "y", "thinking_trajectories": ["because"], "attempt": "yo"},
    "xlam": {"query": "hi", "answers": '[{"name": "yo"}]', "tools": '[{"name": "f"}]'},
    "firefly": {"kind": "NLI", "input": "hi", "target": "yo"},
    "natural_instructions": {"definition": "who?", "inputs": "It was Ann.", "targets": "Ann"},
    "schema_guided": {"turns": [{"speaker": "USER", "utterance": "hi"}, {"speaker": "SYSTEM", "utterance": "yo"}]},
    "ultrainteract_pair": {"trajectory": [{"from": "user", "value": "hi"}], "chosen": "yo", "rejected": "no"},
    "code_preferences": {"input": "hi", "accepted": "yo", "rejected": "no"},
    "stack_exchange_paired": {"question": "hi", "response_j": "yo", "response_k": "no"},
}  # fmt: skip
PRESET_TEXTS = {
    "dolly": "who?\n\nIt was Ann.|Ann", "natural_instructions": "who?\n\nIt was Ann.|Ann", "xlam": "hi|",
    "squad": "It was Ann.\n\nwho?|Ann", **dict.fromkeys(("medical_o1", "openthoughts", "s1k"), "hi|because|yo"),
}  # fmt: skip


@pytest.mark.parametrize("name", presets())
def test_each_preset_reads_a_record_of_its_set(read_records, name):
    assert presets()[name]["source"].startswith("https://")
    (row,) = read_records(PRESETS[name], map={"preset": name}).rows
    sides = ("prompt", "chosen", "rejected") if "chosen" in row else ("messages",)
    texts = "|".join(text for side in sides for turn in said(row, side) for text in turn[1:])
    assert texts == PRESET_TEXTS.get(name, "hi|yo|no" if len(sides) == 3 else "hi|yo")
    assert name != "xlam" or '{"name":"yo"}' in row["messages"][1]["tool_calls"]


def test_a_preset_is_named_by_one_word_and_what_is_said_besides_counts_more(read_records):
    assert parse("squad", dict[str, str], "--map") == {"preset": "squad"}
    record = PRESETS["firefly"] | {"better": "ho"}
    assert said(read_records(record, map={"preset": "firefly", "answer": "better"}).rows[0])[1] == ("assistant", "ho")


# Records of no layout.

UNKNOWN = [
    ("preference", {"q": "hi", "good_reply": "yo", "bad_reply": "no"}, ["q", "good_reply", "bad_reply"]),
    ("preference", {"q": "hi", "good": ["yo"], "all": [{"a": "yo"}, {"a": "no"}]}, ["q", "good.0", "all.1.a"]),
    ("sft", {"thread": {"frage": "hi", "antwort": "yo"}}, ["thread.frage", "thread.antwort"]),
    ("sft", {"log": [{"wer": "user", "was": "hi"}, {"wer": "bot", "was": "yo"}]}, ["log", "wer", "was"]),
    ("sft", {"a": {"log": [{"by": {"r": "user"}, "was": "hi"}, {"by": {"r": "bot"}, "was": "yo"}]}},
     ["a.log", "by.r", "was"]),
    ("text", {"meta": {"inhalt": "ein Text"}, "n": 3}, ["meta.inhalt"]),
]  # fmt: skip


def filled_in(told, fields):
    """(the arguments of the one command, the one line for the recipe) of a refusal, with the fields filled in."""
    (line,) = (line.strip() for line in told.splitlines() if "datakit run --dataset" in line)
    (recipe,) = (line.strip() for line in told.splitlines() if "[ingest] map = {" in line)
    names = iter(fields * 2)
    command, table = (re.sub("FIELD", lambda _: next(names), text) for text in (line, recipe.split("[ingest] ")[1]))
    return shlex.split(command)[1:], table


@pytest.mark.parametrize(("kind", "record", "fields"), UNKNOWN)
def test_an_unknown_layout_is_refused_with_its_fields_and_one_line_to_fill_in_that_works(
    read_records, kind, record, fields
):
    with pytest.raises(LayoutError) as caught:
        read_records(record, record, kind=kind)
    told = str(caught.value)
    assert all(f"  {name}: " in told for name in record) and "--map NAME knows are dolly" in told
    assert ("FIELD may lead into a list" in told) == ("good" in record)
    with pytest.raises(LayoutError, match=r"(?s)--map text=FIELD.*--map \w+=FIELD.*--map prompt=FIELD --map chosen"):
        read_records(record, record)  # without a kind there is a line for each
    arguments, table = filled_in(told, fields)
    flags = {k: v for text in arguments[4::2] for k, v in parse(text, dict[str, str], "--map").items()}
    assert flags == tomllib.loads(table)["map"]
    found = read_records(record, record, kind=kind, map=flags)
    assert (len(found.rows), found.bad) == (2, [])
    for row in found.rows:
        if kind == "preference":
            assert [said(row, n)[0][1] for n in ("prompt", "chosen", "rejected")] == ["hi", "yo", "no"]
        else:
            assert row["text"] == "ein Text" if kind == "text" else said(row) == ASKED


def test_turns_that_name_no_speaker_are_refused_with_their_fields_and_the_flags_to_fill_in(read_records):
    turns = [{"author": "user", "content": "Where is it?"}, {"author": "assistant", "content": "In the harbour."}]
    expected = r"chat\[0\] names no speaker.*its fields are author, content.*--map role=FIELD"
    with pytest.raises(LayoutError, match=expected):
        read_records({"chat": turns}, map={"messages": "chat"})


def test_speakers_of_unknown_roles_are_refused_before_any_work_with_the_flag_to_fill_in(read_records):
    record = {"messages": [{"role": "doctor", "content": "yo"}, {"role": "Patient 1", "content": "hi"}]}
    with pytest.raises(LayoutError) as caught:
        read_records(record)
    assert "--roles doctor=ROLE --roles 'Patient 1=ROLE'\n" in str(caught.value)
    assert '[ingest] roles = { doctor = "ROLE", "Patient 1" = "ROLE" }' in str(caught.value)
    assert read_records(record, roles={"doctor": "assistant", "patient 1": "user"}).bad == []
    asked = {"chat": [{"text": "hi", "is_human": True}, {"text": "yo", "is_human": False}]}
    mapping = {"messages": "chat", "role": "is_human", "content": "text"}
    with pytest.raises(LayoutError, match=r"--map messages=chat --map role=is_human --map content=text --roles true="):
        read_records(asked, map=mapping)
    assert said(read_records(asked, map=mapping, roles={"true": "user", "false": "assistant"}).rows[0]) == ASKED


# Splits.


@pytest.fixture
def folder(tmp_path):
    """A folder as the Hub has it."""

    def making(*names):
        for name in names:
            write_rows(tmp_path / "set" / name, [{"text": name}])
        return tmp_path / "set"

    return making


@pytest.mark.parametrize("names", [
    ("data/train-00000-of-00002.jsonl", "data/train-00001-of-00002.jsonl", "data/test-00000-of-00001.jsonl"),
    ("train.jsonl", "train-2.jsonl", "validation.jsonl"),
    ("train/a.jsonl", "train/b.jsonl", "dev/a.jsonl"),
])  # fmt: skip
def test_a_folder_with_several_splits_needs_the_split_that_is_meant(folder, read, names):
    root = folder(*names)
    with pytest.raises(UsageError, match=r"several splits are there.*train \(2 files\)"):
        read(root)
    with pytest.raises(UsageError, match="several splits"):
        read(str(root) + "/**/*")
    assert sorted(read(root, split="train").texts) == sorted(n for n in names if "train" in n)
    assert len(read(root, split="all").rows) == 3
    with pytest.raises(UsageError, match=r"no split dev2; there is.*train \(2 files\)"):
        read(root, split="dev2")
    assert len(read(*(root / n for n in names)).rows) == 3  # each file was named


def test_splits_of_other_names_are_splits_too_and_words_within_names_are_none(folder, read):
    root = folder("train_sft-00000-of-00001.jsonl", "train_gen-00000-of-00001.jsonl")
    with pytest.raises(UsageError, match=r"train_gen .*train_sft"):
        read(root)
    assert read(root, split="train_sft").texts == ["train_sft-00000-of-00001.jsonl"]
    assert len(read(root, split="train_sft,train_gen").rows) == 2
    found = read(folder("x/a.jsonl", "x/test/contest.jsonl", "x/dev.jsonl") / "x")
    assert len(found.rows) == 3 and found.plan.summary[-1].startswith("files of several splits are read")


# Limits.


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet", "json"])
@pytest.mark.parametrize("limit", [1, 3, 4, 7, 100])
def test_a_limit_reads_the_first_records_in_the_order_of_the_files(tmp_path, read, limit, suffix):
    records = [{"text": f"t{i}"} for i in range(8)]
    for name, part in (("a", records[:3]), ("b", records[3:])):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "parquet":
            pq.write_table(pa.Table.from_pylist(part), path)
        elif suffix == "json":
            path.write_text(json.dumps(part))
        else:
            data = "\n".join(json.dumps(r) for r in part).encode()
            path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    assert read(tmp_path, limit=limit).texts == [r["text"] for r in records[:limit]]
