"""Foreign layouts: each is recognised by its fields, and nothing a record says is lost."""

import json

import pytest

from datakit.read.layouts import tokenised
from datakit.read.layouts.conversations import from_alpaca, from_turns
from datakit.read.layouts.preferences import from_pair, from_transcripts
from datakit.read.layouts.recognise import LAYOUTS, choose, layout_of
from datakit.read.layouts.record import InexactNumbersError, MisfitError, parse_exactly, to_json, with_exact_numbers
from datakit.read.layouts.turns import PLAIN, Message, message, turns

USER, BOT = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}
HUMAN, GPT = {"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}
EXCHANGE = [Message("user", "hi"), Message("assistant", "yo")]

CONVERSATIONS = [
    ("messages", {"messages": [USER, BOT]}),
    ("messages", {"messages": [USER, BOT], "label": True}),
    ("sharegpt", {"conversations": [HUMAN, GPT]}),
    ("minimind", {"conversations": [USER, BOT]}),
    ("alpaca", {"instruction": "hi", "input": "", "output": "yo"}),
    ("alpaca", {"instruction": "hi", "response": "yo"}),
    ("alpaca", {"instruction": "hi", "input": None, "output": "yo", "text": "### Instruction: hi"}),
    ("alpaca", {"instruction": "", "input": "hi", "output": "yo"}),
    ("question_answer", {"question": "hi", "answer": "yo"}),
    ("question_answer", {"query": "hi", "response": "yo"}),
    ("prompt_completion", {"prompt": "hi", "completion": "yo"}),
    ("prompt_completion", {"prompt": [USER], "completion": [BOT]}),
    ("prompt_completion", {"input": "hi", "output": "yo"}),
]
PAIRS = [
    ("pairs", {"prompt": "hi", "chosen": "yo", "rejected": "no"}),
    ("pairs", {"prompt": "hi", "preferred": "yo", "other": "no"}),
    ("pairs", {"question": "hi", "response_chosen": "yo", "response_rejected": "no"}),
    ("pairs", {"instruction": "hi", "input": "", "chosen": "yo", "rejected": "no"}),
    ("pairs", {"conversations": [HUMAN], "chosen": "yo", "rejected": "no"}),
    ("pairs", {"conversations": [HUMAN], "chosen": GPT, "rejected": {"from": "gpt", "value": "no"}}),
    ("pairs", {"messages": [USER], "chosen": BOT, "rejected": {"role": "assistant", "content": "no"}}),
    ("pairs", {"prompt": [USER], "chosen": [BOT], "rejected": [{"role": "assistant", "content": "no"}]}),
    ("pairs", {"chosen": [USER, BOT], "rejected": [USER, {"role": "assistant", "content": "no"}]}),
    ("pairs", {"prompt": "hi", "chosen": [USER, BOT], "rejected": [USER, {"role": "assistant", "content": "no"}]}),
    ("pairs", {"chosen_messages": [USER, BOT], "rejected_messages": [USER, {"role": "assistant", "content": "no"}]}),
    ("transcripts", {"chosen": "\n\nHuman: hi\n\nAssistant: yo", "rejected": "\n\nHuman: hi\n\nAssistant: no"}),
]


@pytest.mark.parametrize(("name", "record"), CONVERSATIONS)
def test_every_way_to_write_an_exchange_gives_the_same_messages(name, record):
    layout = layout_of(record)
    assert (layout.name, layout.kind) == (name, "conversation")
    made = layout.convert(record, PLAIN)
    assert made.messages == EXCHANGE
    assert set(record) - set(made.used) <= {"label", "text"}


@pytest.mark.parametrize(("name", "record"), PAIRS)
def test_every_way_to_write_a_pair_gives_the_same_sides(name, record):
    layout = layout_of(record)
    assert (layout.name, layout.kind) == (name, "preference")
    made = layout.convert(record, PLAIN)
    assert (made.prompt, made.chosen, made.rejected) == (EXCHANGE[:1], EXCHANGE[1:], [Message("assistant", "no")])
    assert set(made.used) == set(record)


def test_transcripts_share_every_turn_up_to_the_first_difference():
    made = from_transcripts(
        {
            "chosen": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\nd\n\nAssistant: e",
            "rejected": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\nd\n\nAssistant: f\n\nHuman: g\n\nAssistant: h",
        }
    )
    assert [m.content for m in made.prompt] == ["a", "b", "c\nd"]
    assert ([m.content for m in made.chosen], [m.content for m in made.rejected]) == (["e"], ["f", "g", "h"])


def test_equal_sides_still_have_a_prompt_and_an_answer_each():
    made = from_pair({"chosen": [USER, BOT], "rejected": [USER, BOT]})
    assert (made.prompt, made.chosen, made.rejected) == (EXCHANGE[:1], EXCHANGE[1:], EXCHANGE[1:])


def test_a_pair_is_never_read_as_a_conversation():
    record = {"conversations": [HUMAN], "chosen": "yo", "rejected": "no"}
    assert layout_of(record, "conversation").kind == "preference"


def test_the_kind_asked_for_decides_where_a_record_could_be_two():
    record = {"instruction": "hi", "output": "yo", "text": "all of it"}
    assert [layout_of(record, kind).kind for kind in ("auto", "conversation", "document")] == [
        "conversation",
        "conversation",
        "document",
    ]


def test_a_file_has_the_layout_of_most_of_its_records():
    head = [{"text": "t"}, {"messages": [USER, BOT]}, {"messages": [USER, BOT]}, {"unknown": 1}]
    assert choose(head).layout == "messages"
    assert choose(head, forced="document").text_field == "text"
    assert choose([{"unknown": 1}]) is None
    assert choose([{"markdown": "m"}, {"markdown": "m", "text": None}]).text_field == "markdown"


def test_system_tools_and_history_find_their_places():
    record = {
        "system": "be kind",
        "tools": [{"name": "f"}],
        "history": [["a", "b"]],
        "instruction": "c",
        "input": "d",
        "output": "e",
    }
    made = from_alpaca(record)
    assert [(m.role, m.content) for m in made.messages] == [
        ("system", "be kind"),
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c\nd"),
        ("assistant", "e"),
    ]
    assert made.tools == '[{"name":"f"}]'
    assert set(made.used) == set(record)


def test_minimind_declares_tools_in_the_system_message():
    tools = '[{"type": "function"}]'
    made = from_turns({"conversations": [{"role": "system", "content": "s", "tools": tools}, USER, BOT]})
    assert (made.tools, made.messages[0], made.left) == (tools, Message("system", "s"), {})


def test_sharegpt_calls_become_openai_calls_with_their_json_untouched():
    call = '{"name": "f", "arguments": {"x": 1.50, "big": 123456789012345678901}}'
    record = {"conversations": [HUMAN, {"from": "function_call", "value": call}, {"from": "observation", "value": "3"}]}
    made = from_turns(record).messages
    assert made[1] == Message("assistant", "", tool_calls=f'[{{"type":"function","function":{call}}}]')
    assert made[2] == Message("tool", "3")


def test_typed_parts_are_joined_and_reasoning_and_calls_find_their_columns():
    parts = [
        {"type": "reasoning", "value": "hm"},
        {"type": "text", "text": "a"},
        {"type": "text", "value": "b"},
        "c",
        {"type": "tool_call", "value": '{"name": "f", "arguments": {}}'},
    ]
    made, left = message({"role": "assistant", "content": parts, "loss_weight": 0.5}, "m")
    assert (made.content, made.reasoning_content, made.weight, left) == ("abc", "hm", 0.5, {})
    assert json.loads(made.tool_calls) == [{"type": "function", "function": {"name": "f", "arguments": {}}}]


def test_openai_calls_are_kept_as_they_are():
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    for given in (calls, json.dumps(calls)):
        made, left = message({"role": "assistant", "content": None, "tool_calls": given}, "m")
        assert (made.content, json.loads(made.tool_calls), left) == ("", calls, {})
    made, _ = message({"role": "tool", "content": "3", "tool_call_id": "1", "name": "f"}, "m")
    assert made == Message("tool", "3", name="f", tool_call_id="1")


def test_fields_of_a_message_without_a_column_are_left_over():
    record = {
        "messages": [{**USER, "time": 7}, BOT, {"role": "user", "content": [{"type": "text", "text": "x", "c": 1}]}]
    }
    made = from_turns(record)
    assert made.left == {"messages": [{"time": 7}, {}, {"content": [{"c": 1}]}]}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "bad_messages"),
        ({}, "bad_messages"),
        (7, "bad_messages"),
        ("not json", "bad_messages"),
        (["hi"], "bad_messages"),
        ([{"role": "wizard", "content": "hi"}], "unknown_role"),
        ([{"content": "hi"}], "missing_field"),
        ([{"role": "user"}], "missing_field"),
        ([{"role": "user", "content": 7}], "not_text"),
        ([{"role": "user", "content": None}], "not_text"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}], "non_text_part"),
        ([{"role": "user", "content": [7]}], "not_text"),
        ([{"role": "user", "content": [{"type": "text", "text": 7}]}], "not_text"),
        ([{"from": "function_call", "value": "no json"}], "bad_tool_calls"),
        ([{"from": "function_call", "value": "[1]"}], "bad_tool_calls"),
        ([{"from": "function_call", "value": 7}], "bad_tool_calls"),
        ([{"role": "assistant", "content": "x", "tool_calls": "no json"}], "bad_tool_calls"),
        ([{"role": "assistant", "content": "x", "weight": "heavy"}], "bad_weight"),
    ],
)
def test_a_turn_that_is_no_message_is_told_apart(value, reason):
    with pytest.raises(MisfitError) as caught:
        turns(value, "messages")
    assert caught.value.reason == reason
    assert "messages" in caught.value.detail


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: x.name)
def test_a_record_without_the_fields_is_no_crash_in_any_layout(layout):
    if layout.convert is None:
        return
    for record in ({}, {"text": "t"}, {"messages": None, "prompt": None, "chosen": 1, "rejected": 2, "ids": "x"}):
        with pytest.raises(MisfitError):
            layout.convert(record, PLAIN)


def test_token_ids_with_masks_become_spans():
    ids = [5, 6, 7, 8, 9]
    assert tokenised.from_ids({"ids": ids}).label_spans is None
    masked = tokenised.from_ids({"input_ids": ids, "loss_mask": [0, 1, 1, 0, 1]})
    assert (masked.input_ids, masked.label_spans, masked.used) == (ids, [(1, 3), (4, 5)], ("input_ids", "loss_mask"))
    assert tokenised.from_ids({"input_ids": ids, "labels": [-100, -100, 7, 8, 9]}).label_spans == [(2, 5)]
    assert tokenised.from_ids({"input_ids": ids, "loss_mask": [0] * 5}).label_spans == []


def test_pairs_of_token_ids():
    made = tokenised.from_id_pair({"prompt_ids": [1, 2], "chosen_ids": [3], "rejected_ids": [4, 5]})
    assert (made.input_ids, made.label_spans) == ([1, 2, 3], [(2, 3)])
    assert (made.rejected_ids, made.rejected_label_spans) == ([1, 2, 4, 5], [(2, 4)])
    shared = tokenised.from_id_pair({"chosen_ids": [1, 2, 3], "rejected_ids": [1, 2, 4, 5]})
    assert (shared.label_spans, shared.rejected_label_spans) == ([(2, 3)], [(2, 4)])


@pytest.mark.parametrize(
    "record",
    [
        {"ids": [1, 2**31]},
        {"ids": [1, -1]},
        {"ids": [1, 2.5]},
        {"ids": []},
        {"ids": "12"},
        {"ids": [1, 2], "loss_mask": [1]},
        {"ids": [1, 2], "loss_mask": [1, 2]},
        {"ids": [1, 2], "labels": [2, -100]},
    ],
)
def test_ids_and_masks_that_cannot_be_are_refused(record):
    with pytest.raises(MisfitError):
        tokenised.from_ids(record)


def test_nested_numbers_are_written_as_they_were_read():
    text = '{"a":[1.0,1e400,0.10,{"b":123456789012345678901234567890}],"c":"x"}'
    with pytest.raises(InexactNumbersError):
        to_json(json.loads(text))
    assert to_json(parse_exactly(text)) == text
    assert to_json(with_exact_numbers({"a": [0.1, float("inf")]})) == '{"a":[0.1,"Infinity"]}'
