"""Layouts: each line of the table is recognised by its fields and gives the rows that its records hold."""

import json

import pytest

from datakit.errors import LayoutError
from datakit.read import record
from datakit.read.layouts.conversations import PLAIN, message, turns
from datakit.read.layouts.table import choose, token_pairs, tokens
from datakit.read.record import Picked
from datakit.read.streams import RecordError

USER, BOT = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}
NO = {"role": "assistant", "content": "no"}
HUMAN, GPT = {"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}
ASKED = [("user", "hi"), ("assistant", "yo")]
THOUGHT = [("user", "hi"), ("assistant", "because", "yo")]


def picked(found):
    """A record whose fields have our names."""
    return Picked(found, {name: name for name in found})


def said(row, name="messages"):
    """Role, reasoning and content of each message of a row, the reasoning left out where there is none."""
    turns = [(m["role"], m["reasoning_content"], m["content"]) for m in row[name]]
    return [tuple(x for x in turn if x is not None) for turn in turns]


CONVERSATIONS = [
    ("messages", {"messages": [USER, BOT]}, ASKED),
    ("messages", {"messages": json.dumps([USER, BOT])}, ASKED),
    ("messages", {"messages": [{"role": "developer", "content": "be"}, USER, BOT]}, [("system", "be"), *ASKED]),
    ("messages", {"messages": [USER, {"role": "Tool-Response", "content": "3"}, BOT]},
     [("user", "hi"), ("tool", "3"), ("assistant", "yo")]),
    ("messages", {"messages": [USER, {"role": "tool_call", "content": '{"name": "f"}'},
                               {"role": "tool_result", "content": "3"}, BOT]},
     [("user", "hi"), ("assistant", ""), ("tool", "3"), ("assistant", "yo")]),
    ("messages", {"messages": [USER, BOT | {"reasoning": "because"}]}, THOUGHT),
    ("sharegpt", {"conversations": [HUMAN, GPT], "instruction": "hi", "response": "yo"}, ASKED),
    ("sharegpt", {"conversations": [HUMAN, GPT], "system": "be"}, [("system", "be"), *ASKED]),
    ("minimind", {"conversations": [USER, BOT]}, ASKED),
    ("minimind", {"conversation": [USER | {"toxic": False}, BOT], "turn": 1}, ASKED),
    ("alpaca", {"instruction": "hi", "input": "", "output": "yo"}, ASKED),
    ("alpaca", {"instruction": "hi", "response": "yo", "context": ""}, ASKED),
    ("alpaca", {"instruction": "hi", "input": None, "output": "yo", "text": "### Instruction: hi"}, ASKED),
    ("alpaca", {"instruction": "", "input": "hi", "output": "yo"}, ASKED),
    ("alpaca", {"instruction": "hi", "input": "you", "output": "yo", "history": [["a", "b"]], "system": "be"},
     [("system", "be"), ("user", "a"), ("assistant", "b"), ("user", "hi\nyou"), ("assistant", "yo")]),
    ("question_answer", {"question": "hi", "answer": "yo"}, ASKED),
    ("question_answer", {"Question": "hi", "Response": "yo"}, ASKED),
    ("question_answer", {"problem": "hi", "solution": "yo", "answer": "42"}, ASKED),
    ("question_answer", {"query": "hi", "response": "yo", "system_prompt": "be"}, [("system", "be"), *ASKED]),
    ("question_answer", {"question": "hi", "answer": "yo", "history": [USER, BOT]}, [*ASKED, *ASKED]),
    ("prompt_completion", {"prompt": "hi", "completion": "yo"}, ASKED),
    ("prompt_completion", {"prompt": [USER], "completion": [BOT]}, ASKED),
    ("prompt_completion", {"input": "hi", "output": "yo", "reasoning_content": "because"}, THOUGHT),
]  # fmt: skip
PAIRS = [
    ("pairs", {"prompt": "hi", "chosen": "yo", "rejected": "no"}),
    ("pairs", {"prompt": "hi", "preferred": "yo", "other": "no"}),
    ("pairs", {"question": "hi", "response_chosen": "yo", "response_rejected": "no"}),
    ("pairs", {"instruction": "hi", "input": "", "chosen": "yo", "rejected": "no"}),
    ("pairs", {"conversations": [HUMAN], "chosen": "yo", "rejected": "no"}),
    ("pairs", {"conversations": [HUMAN], "chosen": GPT, "rejected": {"from": "gpt", "value": "no"}}),
    ("pairs", {"messages": [USER], "chosen": BOT, "rejected": NO}),
    ("pairs", {"prompt": [USER], "chosen": [BOT], "rejected": [NO]}),
    ("pairs", {"chosen": [USER, BOT], "rejected": [USER, NO]}),
    ("pairs", {"prompt": "hi", "chosen": [USER, BOT], "rejected": [USER, NO]}),
    ("pairs", {"chosen_messages": [USER, BOT], "rejected_messages": [USER, NO]}),
    ("pairs", {"input": {"messages": [USER]}, "preferred_output": [BOT], "non_preferred_output": [NO]}),
    ("pairs", {"messages": [USER, BOT], "rejected_response": "no"}),
    ("transcripts", {"chosen": "\n\nHuman: hi\n\nAssistant: yo", "rejected": "\n\nHuman: hi\n\nAssistant: no"}),
]


@pytest.mark.parametrize(("name", "record", "expected"), CONVERSATIONS)
def test_every_way_to_write_a_conversation_gives_its_messages(read_records, name, record, expected):
    found = read_records(record)
    assert (found.plan.kind, found.plan.files[0].layout.name, found.bad) == ("conversation", name, [])
    assert said(found.rows[0]) == expected


@pytest.mark.parametrize(("name", "record"), PAIRS)
def test_every_way_to_write_a_pair_gives_the_same_sides(read_records, name, record):
    found = read_records(record)
    assert (found.plan.kind, found.plan.files[0].layout.name, found.bad) == ("preference", name, [])
    (row,) = found.rows
    assert [said(row, n) for n in ("prompt", "chosen", "rejected")] == [ASKED[:1], ASKED[1:], [("assistant", "no")]]
    assert row["extra"] is None


def test_sides_share_every_turn_up_to_the_first_difference_and_have_an_answer_each(read_records):
    better = "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\nd\n\nAssistant: e"
    worse = better[:-1] + "f\n\nHuman: g\n\nAssistant: h"
    (row,) = read_records({"chosen": better, "rejected": worse}).rows
    assert [[text for _, text in said(row, n)] for n in ("prompt", "chosen", "rejected")] == [
        ["a", "b", "c\nd"], ["e"], ["f", "g", "h"]]  # fmt: skip
    (row,) = read_records({"chosen": [USER, BOT], "rejected": [USER, BOT]}).rows
    assert [said(row, n) for n in ("prompt", "chosen", "rejected")] == [ASKED[:1], ASKED[1:], ASKED[1:]]


def test_the_kind_asked_for_decides_where_a_record_could_be_two_and_a_pair_is_no_conversation(read_records):
    record = {"instruction": "hi", "output": "yo", "text": "hi: all of it"}
    kinds = [read_records(record, kind=kind).plan.kind for kind in ("auto", "sft", "text")]
    assert kinds == ["conversation", "conversation", "document"]
    with pytest.raises(LayoutError, match="preference rows"):
        read_records({"conversations": [HUMAN], "chosen": "yo", "rejected": "no"}, kind="sft")


def test_a_question_beside_a_longer_text_that_would_stay_unread_is_refused(read_records):
    plain = {"question": "who?", "answer": "Ann"}
    about = plain | {"support": "It was Ann."}
    with pytest.raises(LayoutError, match=r"support holds more text than the questions(.|\n)*support: It was Ann"):
        read_records(plain, about)
    assert len(read_records(about, layout="question_answer").rows) == 1
    assert len(read_records(about, map={"prompt": "{support} {question}", "answer": "answer"}).rows) == 1
    for field, text in (("url", "https://a.org/b"), ("rendered", "Q: who?\nA: Ann"), ("topic", "a b!")):
        assert read_records(plain | {field: text}).plan.files[0].layout.beside == (field,)


def test_a_field_around_a_conversation_counts_also_where_the_first_records_do_not_have_it(read_records):
    plain = {"prompt": "hi", "completion": "yo"}
    late = {"system_prompt": "be kind", "history": [["a", "b"]], "functions": [{"name": "f"}], "label": False}
    head = [plain | {"system": None}] * record.HEAD_RECORDS
    found = read_records(*head, plain | late, plain | {"system": "be brief"})
    row, last = found.rows[-2:]
    assert said(row) == [("system", "be kind"), ("user", "a"), ("assistant", "b"), *ASKED]
    assert (json.loads(row["tools"]), row["messages"][-1]["weight"]) == ([{"name": "f"}], 0.0)
    assert (said(last)[0], found.plan.files[0].layout.beside) == (("system", "be brief"), ())
    masked = [{"ids": [1, 2]}] * record.HEAD_RECORDS + [{"ids": [1, 2], "loss_mask": [0, 1]}]
    assert read_records(*masked).rows[-1]["label_spans"] == [{"start": 1, "end": 2}]


def test_a_pair_whose_prompt_would_hold_the_answer_is_refused(read_records):
    pair = {"messages": [USER, BOT], "chosen": "yo", "rejected": "no"}
    with pytest.raises(LayoutError, match="messages ends with an answer: name the field of the question"):
        read_records(pair)
    found = read_records(pair | {"prompt": "hi"})
    assert (said(found.rows[0], "prompt"), found.plan.files[0].layout.beside) == (ASKED[:1], ("messages",))


def test_token_ids_with_padding_are_refused_so_that_padding_is_not_learned(read_records):
    found = read_records(*({"input_ids": [5, 6, 0], "attention_mask": mask} for mask in ([1, 1, 1], [1, 1, 0])))
    assert (len(found.rows), found.reasons) == (1, ["padded"])
    assert "attention_mask holds 0" in found.bad[0]["detail"]


def test_a_file_has_the_layout_of_most_of_its_records():
    head = [{"text": "t"}, {"messages": [USER, BOT]}, {"messages": [USER, BOT]}, {"unknown": 1}]
    assert choose(head).name == "messages"
    assert choose(head, forced="document").text_field == "text"
    assert choose([{"unknown": 1}]) is None
    assert choose([{"markdown": "m"}, {"markdown": "m", "text": None}]).text_field == "markdown"
    names = ("body", "raw_content", "content", "page_content", "Text")
    assert [choose([{name: "a text", "url": "u"}]).text_field for name in names] == [*names]


def test_one_turn_a_record_is_no_document_unless_it_is_asked_for(read_records):
    turns = [{"conversation_id": 7, "role": r, "content": c} for r, c in ASKED]
    with pytest.raises(LayoutError, match="content: hi"):
        read_records(*turns)
    assert read_records(*turns, kind="text").texts == ["hi", "yo"]


def test_cells_of_csv_with_turns_are_read_as_turns_and_other_json_stays_a_text(read_bytes):
    def cell(turns):
        return '"' + json.dumps(turns).replace('"', '""') + '"'

    found = read_bytes(f"messages,topic\n{cell([USER, BOT])},x\n".encode(), "chat.csv")
    assert (found.plan.files[0].layout.name, said(found.rows[0])) == ("messages", ASKED)
    found = read_bytes(f'messages\n{cell([USER, BOT])}\n"{[USER, BOT]}"\n'.encode(), "pandas.csv")
    assert (said(found.rows[0]), found.reasons) == (ASKED, ["bad_messages"])
    pair = f"prompt,chosen,rejected\n{cell([USER])},{cell([BOT])},{cell([NO])}\n"
    (row,) = read_bytes(pair.encode(), "pairs.csv").rows
    assert [said(row, n) for n in ("prompt", "chosen", "rejected")] == [ASKED[:1], ASKED[1:], [("assistant", "no")]]
    about = read_bytes(f'prompt,completion\nas JSON,{cell([BOT])}\nas JSON,"[1]"\n'.encode(), "about.csv").rows
    assert [said(row)[1][1] for row in about] == [json.dumps([BOT]), "[1]"]


# Labels (KTO).


@pytest.mark.parametrize("record", [
    {"prompt": "hi", "completion": "no", "label": False}, {"prompt": [USER], "completion": [NO], "label": False},
    {"conversations": [HUMAN, {"from": "gpt", "value": "no"}], "kto_tag": False},
    {"prompt": "hi", "response": "no", "label": "class3", "is_safe": False},
])  # fmt: skip
def test_an_answer_that_its_record_judges_bad_is_not_learned_and_counted(read_records, record):
    good = {k: True if v is False else v for k, v in record.items()}
    found = read_records(record, good)
    weights = [[m["weight"] for m in r["messages"] if m["role"] == "assistant"] for r in found.rows]
    assert weights == [[0.0], [None]]
    assert found.notes["answers_judged_bad"] == 1


def test_a_judgement_written_as_text_counts_and_a_class_of_an_example_does_not(read_bytes, read_records):
    found = read_bytes(b"prompt,completion,label\nhi,yo,True\nhi,no,False\n", "judged.csv")
    assert [r["messages"][1]["weight"] for r in found.rows] == [None, 0.0]
    yes_or_no = {"question": "Is the sky green?", "answer": "No", "label": False}
    said_no = read_records(yes_or_no)
    assert (said_no.rows[0]["messages"][1]["weight"], said_no.notes) == (None, {})
    assert said_no.plan.files[0].layout.beside == ("label",)
    assert read_records(yes_or_no, kind="preference").notes == {"answers_judged_bad": 1}
    assert read_records(yes_or_no | {"is_correct": False}).notes == {"answers_judged_bad": 1}
    classes = read_records({"prompt": "hi", "completion": "yo", "label": 0})
    assert classes.rows[0]["messages"][1]["weight"] is None
    assert classes.notes == {"labels_of_0": 1}
    scored = {"messages": [USER, BOT | {"score": 0.1}], "label": True}  # a number that is parsed again, exactly
    assert read_records(scored, kind="preference").notes == {"answers_judged_good": 1}
    options = read_records({"question": "hi", "answer": "yo", "correct": "B"})
    assert (options.rows[0]["messages"][1]["weight"], options.notes) == (None, {})


@pytest.mark.parametrize(
    ("record", "more", "prompt", "answer"),
    [
        ({"Prompt": "hi", "Response": "yo", "Label": True}, {}, ASKED[:1], ASKED[1:]),
        (
            {"messages": [USER, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]},
                          {"role": "tool", "content": "3"}, BOT], "label": True},
            {}, ASKED[:1], [("assistant", ""), ("tool", "3"), ("assistant", "yo")],
        ),
        (
            {"conversations": [{"from": s, "value": v} for s, v in (("human", "a"), ("gpt", "b")) * 2],
             "kto_tag": True},
            {}, [("user", "a"), ("assistant", "b"), ("user", "a")], [("assistant", "b")],
        ),
        (
            {"prompt": [USER, BOT, USER], "completion": [BOT], "label": 1},
            {}, [*ASKED, ("user", "hi")], ASKED[1:],
        ),
        (
            {"q": "hi", "a": "yo", "ok": True},
            {"map": {"prompt": "q", "answer": "a", "label": "ok"}}, ASKED[:1], ASKED[1:],
        ),
    ],
)  # fmt: skip
def test_a_judged_answer_is_a_pair_with_one_side_where_pairs_are_asked_for(read_records, record, more, prompt, answer):
    bad = {k: type(v)(not v) if type(v) in (bool, int) else v for k, v in record.items()}
    found = read_records(record, bad, kind="preference", **more)
    assert found.plan.kind == "preference"
    assert [said(r, "prompt") for r in found.rows] == [prompt] * 2
    assert [said(r, "chosen") for r in found.rows] == [answer, []]
    assert [said(r, "rejected") for r in found.rows] == [[], answer]
    assert found.notes == {"answers_judged_good": 1, "answers_judged_bad": 1}


def test_records_without_a_judgement_are_no_pair(read_records):
    judged = {"prompt": "hi", "completion": "yo", "label": True}
    found = read_records(judged, judged | {"label": None}, judged | {"label": 3}, kind="preference")
    assert (len(found.rows), found.reasons) == (1, ["no_judgement", "no_judgement"])
    with pytest.raises(LayoutError, match="or one answer with a label true or false"):
        read_records({"prompt": "hi", "completion": "yo"}, kind="preference")


# Turns.


def test_calls_and_tools_keep_their_json_however_they_are_written(read_records):
    call = '{"name": "f", "arguments": {"x": 1.50, "big": 123456789012345678901}}'
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    asked = [{"role": "system", "content": "s", "tools": '[{"type": "function"}]'}, USER | {"time": 7}]
    written = [{"tool_calls": calls}, {"tool_calls": json.dumps(calls)}, {"function_call": calls[0]["function"]}]
    turns = [{"role": "assistant", "content": None} | call for call in written]
    result = {"role": "tool", "content": "3", "tool_call_id": "1", "name": "f"}
    (row,) = read_records({"messages": [*asked, *turns, result, BOT]}).rows
    assert (row["tools"], row["extra"]) == ('[{"type": "function"}]', '{"messages":[{},{"time":7},{},{},{},{},{}]}')
    made = [json.loads(m["tool_calls"]) for m in row["messages"][2:5]]
    assert made == [calls, calls, [{"type": "function", "function": calls[0]["function"]}]]
    assert [row["messages"][5][key] for key in result] == list(result.values())
    turns = [HUMAN, {"from": "function_call", "value": call}, {"from": "observation", "value": {"temp": 1.50}}, GPT]
    (row,) = read_records({"conversations": turns}).rows
    assert row["messages"][1]["tool_calls"] == f'[{{"type":"function","function":{call}}}]'
    assert [m["content"] for m in row["messages"]] == ["hi", "", '{"temp":1.5}', "yo"]
    found = read_records(*[{"conversations": [HUMAN, GPT]}] * 2, {"conversations": [{"from": "x", "value": "y"}]})
    assert found.bad[0]["detail"].startswith("conversations[0].from is 'x'")


def test_typed_parts_are_joined_and_reasoning_and_calls_find_their_columns():
    parts = [{"type": "reasoning", "value": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "value": "b"}, "c",
             {"type": "tool_call", "value": '{"name": "f", "arguments": {}}'}]  # fmt: skip
    made, left = message({"role": "assistant", "content": parts, "loss_weight": 0.5}, "m")
    assert (made.content, made.reasoning_content, made.weight, left) == ("abc", "hm", 0.5, {})
    assert json.loads(made.tool_calls) == [{"type": "function", "function": {"name": "f", "arguments": {}}}]


def test_calls_and_results_that_are_parts_of_content_are_turns_of_their_own(read_records):
    """Anthropic's messages."""
    uses = [{"type": "tool_use", "id": i, "name": "f", "input": {"x": n}} for i, n in (("a", 1), ("b", 2))]
    results = [{"type": "tool_result", "tool_use_id": "a", "content": "3"},
               {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "4"}]}]  # fmt: skip
    record = {"system": [{"type": "text", "text": "be"}], "tools": [{"name": "f", "input_schema": {"type": "object"}}],
              "messages": [USER, {"role": "assistant", "content": [{"type": "text", "text": "wait"}, *uses]},
                           {"role": "user", "content": [*results, {"type": "text", "text": "so?"}]}, BOT]}  # fmt: skip
    (row,) = read_records(record).rows
    assert said(row) == [("system", "be"), ("user", "hi"), ("assistant", "wait"), ("tool", "3"), ("tool", "4"),
                         ("user", "so?"), ("assistant", "yo")]  # fmt: skip
    assert [m["tool_call_id"] for m in row["messages"][3:5]] == ["a", "b"]
    calls = json.loads(row["messages"][2]["tool_calls"])
    assert [(c["id"], c["function"]) for c in calls] == [
        ("a", {"name": "f", "arguments": {"x": 1}}), ("b", {"name": "f", "arguments": {"x": 2}})]  # fmt: skip
    assert json.loads(row["tools"]) == [{"name": "f", "parameters": {"type": "object"}}]


def test_tools_are_read_from_openais_former_field_and_as_text(read_records):
    given = [[{"name": "f"}], ['{"name": "f"}'], '[{"name": "f"}]', '["{\\"name\\": \\"f\\"}"]']
    found = read_records(*({"messages": [USER, BOT], "functions": tools} for tools in given))
    assert [json.loads(r["tools"]) for r in found.rows] == [[{"name": "f"}]] * 4
    exact = read_records({"messages": [USER, BOT], "tools": '[{"name": "h", "x": 1.50}]'})
    assert exact.rows[0]["tools"] == '[{"name": "h", "x": 1.50}]'
    assert read_records({"messages": [USER, BOT]}, {"messages": [USER, BOT], "tools": ["f"]}).reasons == ["bad_tools"]


@pytest.mark.parametrize(("field", "value", "weight"), [
    ("weight", 0.5, 0.5), ("loss", False, 0), ("message_training", False, 0), ("train", True, 1),
    ("loss", None, None),
])  # fmt: skip
def test_what_is_learned_of_a_turn_is_read_from_each_of_its_usual_fields(read_records, field, value, weight):
    (row,) = read_records({"conversations": [HUMAN, {**GPT, field: value}]}).rows
    assert [m["weight"] for m in row["messages"]] == [None, weight]


@pytest.mark.parametrize(
    ("record", "kept"),
    [({"prompt": "<image>what?", "response": "a cat", "images": ["1.jpg"]}, False),
     ({"conversations": [{"from": "human", "value": "<image>\nwhat?"}, GPT], "image": "1.jpg"}, False),
     ({"question": "what?", "answer": "a cat", "image": {"bytes": "/9j/", "path": None}}, False),
     ({"question": "what?", "chosen": "a cat", "rejected": "a dog", "image": {"bytes": "/9j/", "path": None}}, False),
     ({"messages": [{"role": "user", "content": "what?", "images": ["/9j/"]}, GPT]}, False),
     ({"messages": [{"role": "user", "content": "what?", "audio": None}, GPT]}, True),
     ({"prompt": "what is <image> in SVG?", "response": "a mark"}, True),
     ({"question": "what?", "answer": "a cat", "image": {"bytes": None, "path": None}, "videos": []}, True),
     ({"question": "what?", "answer": "a cat", "image": "https://logo"}, True)],
)  # fmt: skip
def test_what_a_picture_shows_is_not_learned_without_it(read_records, record, kept):
    if kept:
        assert len(read_records(record).rows) == 1
    else:
        with pytest.raises(LayoutError, match=r"none of its first records makes a row: image.*only text"):
            read_records(record)


@pytest.mark.parametrize(("value", "reason"), [
    ([], "bad_messages"), ({}, "bad_messages"), (7, "bad_messages"), ("not json", "bad_messages"),
    ([["hi"]], "bad_messages"), ([{"role": "wizard", "content": "hi"}], "unknown_role"),
    ([{"content": "hi"}], "missing_field"), ([{"role": "user"}], "missing_field"),
    ([{"role": "user", "content": 7}], "not_text"), ([{"role": "user", "content": None}], "not_text"),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}], "non_text_part"),
    ([{"role": "user", "content": [7]}], "not_text"),
    ([{"role": "user", "content": [{"type": "text", "text": 7}]}], "not_text"),
    ([{"role": "user", "content": [{"type": "text"}]}], "missing_field"),
    ([{"from": "function_call", "value": "no json"}], "bad_tool_calls"),
    ([{"from": "function_call", "value": "[1]"}], "bad_tool_calls"),
    ([{"from": "function_call", "value": 7}], "bad_tool_calls"),
    ([{"role": "assistant", "content": "x", "tool_calls": "no json"}], "bad_tool_calls"),
    ([{"role": "assistant", "content": "x", "weight": "heavy"}], "bad_weight"),
    ([{"role": "assistant", "content": "x", "weight": -1}], "bad_weight"),
    ([{"role": "assistant", "content": "x", "train_detail": [{"train": False}]}], "bad_weight"),
    ([{"role": "assistant", "channel": "analysis", "content": "x"}], "thought_apart"),
])  # fmt: skip
def test_a_turn_that_is_no_message_is_told_apart(value, reason):
    with pytest.raises(RecordError) as caught:
        turns(value, "messages")
    assert caught.value.reason == reason
    assert "messages" in caught.value.detail


# Token ids.


def test_token_ids_with_masks_become_spans():
    ids = [5, 6, 7, 8, 9]
    assert tokens(picked({"ids": ids}), PLAIN).label_spans is None
    assert tokens(picked({"ids": ids, "mask": [0, 1, 1, 0, 1]}), PLAIN).label_spans == [(1, 3), (4, 5)]
    assert tokens(picked({"ids": ids, "labels": [-100, -100, 7, 8, 9]}), PLAIN).label_spans == [(2, 5)]
    assert tokens(picked({"ids": ids, "mask": [0] * 5}), PLAIN).label_spans == []


def test_pairs_of_token_ids():
    made = token_pairs(picked({"prompt_ids": [1, 2], "chosen_ids": [3], "rejected_ids": [4, 5]}), PLAIN)
    assert (made.input_ids, made.label_spans) == ([1, 2, 3], [(2, 3)])
    assert (made.rejected_ids, made.rejected_label_spans) == ([1, 2, 4, 5], [(2, 4)])
    shared = token_pairs(picked({"chosen_ids": [1, 2, 3], "rejected_ids": [1, 2, 4, 5]}), PLAIN)
    assert (shared.label_spans, shared.rejected_label_spans) == ([(2, 3)], [(2, 4)])


@pytest.mark.parametrize("record", [
    {"ids": [1, 2**31]}, {"ids": [1, -1]}, {"ids": [1, 2.5]}, {"ids": []}, {"ids": "12"},
    {"ids": [1, 2], "mask": [1]}, {"ids": [1, 2], "mask": [1, 2]}, {"ids": [1, 2], "labels": [2, -100]},
])  # fmt: skip
def test_ids_and_masks_that_cannot_be_are_refused(record):
    with pytest.raises(RecordError):
        tokens(picked(record), PLAIN)
