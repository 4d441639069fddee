"""Layouts of published datasets, each by the fields that it really has; what a user maps; splits of a folder."""

import csv
import gzip
import io
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datakit.errors import ConfigError, InputError, LayoutError, UsageError


def said(row, name="messages"):
    """Role, reasoning and content of each message of a row, the reasoning left out where there is none."""
    turns = [(m["role"], m["reasoning_content"], m["content"]) for m in row[name]]
    return [tuple(x for x in turn if x is not None) for turn in turns]


@pytest.fixture
def read_records(read_bytes):
    """Read records as a JSONL file."""

    def reading(*records, **config):
        return read_bytes("".join(json.dumps(r) + "\n" for r in records).encode(), **config)

    return reading


ASKED = [("user", "hi"), ("assistant", "yo")]
THOUGHT = [("user", "hi"), ("assistant", "because it is", "yo")]

CONVERSATIONS = [
    (
        "dolly",
        "alpaca",
        {"instruction": "who?", "context": "It was Ann.", "response": "Ann", "category": "closed_qa"},
        [("user", "who?\n\nIt was Ann."), ("assistant", "Ann")],
    ),
    ("dolly without context", "alpaca", {"instruction": "hi", "context": "", "response": "yo", "category": "x"}, ASKED),
    (
        "openorca",
        "question_answer",
        {"id": "flan.1", "system_prompt": "be", "question": "hi", "response": "yo"},
        [("system", "be"), *ASKED],
    ),
    ("r1 in Chinese", "prompt_completion",
     {"input": "hi", "content": "yo", "reasoning_content": "because it is", "score": 9}, THOUGHT),
    ("medical o1", "question_answer", {"Question": "hi", "Complex_CoT": "because it is", "Response": "yo"}, THOUGHT),
    ("openthoughts metadata", "question_answer",
     {"problem": "hi", "deepseek_reasoning": "because it is", "deepseek_solution": "yo", "domain": "math"}, THOUGHT),
    ("numina", "question_answer", {"problem": "hi", "solution": "yo", "answer": "42"}, ASKED),
    ("nemotron", "prompt_completion",
     {"input": [{"role": "user", "content": "hi"}], "output": "yo", "reasoning": "off", "version": "v1"}, ASKED),
    ("firefly", "prompt_completion", {"kind": "NLI", "input": "hi", "target": "yo"}, ASKED),
    ("lima", "alternating", {"conversations": ["hi", "yo"], "source": "stackexchange"}, ASKED),
    ("ultrachat", "alternating", {"id": "0", "data": ["hi", "yo", "a", "b"]},
     [*ASKED, ("user", "a"), ("assistant", "b")]),
    ("capybara", "exchanges", {"source": "Airoboros", "conversation": [{"input": "hi", "output": "yo"}]}, ASKED),
    ("exchanges of people", "exchanges", {"conversation": [{"human": "hi", "assistant": "yo"}]}, ASKED),
    ("smoltalk2", "messages",
     {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
      "chat_template_kwargs": {"enable_thinking": False, "python_tools": []}, "source": "x"}, ASKED),
    ("wildchat", "minimind",
     {"conversation_hash": "a", "conversation": [
         {"content": "hi", "role": "user", "language": "English", "toxic": False},
         {"content": "yo", "role": "assistant", "language": "English", "toxic": False}], "turn": 1}, ASKED),
    ("magpie", "sharegpt",
     {"instruction": "hi", "response": "yo", "conversations": [{"from": "human", "value": "hi"},
                                                               {"from": "gpt", "value": "yo"}]}, ASKED),
    ("schema guided", "schema_guided",
     {"dialogue_id": "1_00000", "services": ["Hotels_1"], "turns": [
         {"speaker": "USER", "utterance": "hi", "frames": []}, {"speaker": "SYSTEM", "utterance": "yo", "frames": []}]},
     ASKED),
    ("turns under another name", "turns",
     {"transcript": [{"speaker": "user", "text": "hi"}, {"speaker": "assistant", "text": "yo"}]}, ASKED),
    ("moss", "numbered_turns",
     {"conversation_id": "1", "meta_instruction": "You are MOSS.\n", "num_turns": 1, "chat": {"turn_1": {
         "Human": "<|Human|>: hi<eoh>\n", "Inner Thoughts": "<|Inner Thoughts|>: None<eot>\n",
         "Commands": "<|Commands|>: None<eoc>\n", "Tool Responses": "<|Results|>: None<eor>\n",
         "MOSS": "<|MOSS|>: yo<eom>\n"}}},
     [("system", "You are MOSS.\n"), *ASKED]),
    ("moss with a tool", "numbered_turns",
     {"chat": {"turn_1": {
         "Human": "<|Human|>: hi<eoh>\n", "Inner Thoughts": "<|Inner Thoughts|>: search it<eot>\n",
         "Commands": '<|Commands|>: Search("x")<eoc>\n', "Tool Responses": "<|Results|>:\nfound<eor>\n",
         "MOSS": "<|MOSS|>: yo<eom>\n"}}},
     [("user", "hi"), ("assistant", "search it", 'Search("x")'), ("tool", "found"), ("assistant", "yo")]),
    ("squad", "quoted_answer",
     {"id": "1", "context": "It was Ann.", "question": "who?", "answers": {"text": ["Ann"], "answer_start": [7]}},
     [("user", "It was Ann.\n\nwho?"), ("assistant", "Ann")]),
    ("options", "question_answer", {"question": "2+2?", "options": {"A": "3", "B": "4"}, "answer": "B"},
     [("user", "2+2?\n\nA. 3\nB. 4"), ("assistant", "B")]),
    ("choices of ARC", "question_answer",
     {"question": "2+2?", "choices": {"text": ["3", "4"], "label": ["1", "2"]}, "answer": "2"},
     [("user", "2+2?\n\n1. 3\n2. 4"), ("assistant", "2")]),
    ("choices by number (MMLU)", "question_answer", {"question": "2+2?", "choices": ["3", "4"], "answer": 1},
     [("user", "2+2?\n\nA. 3\nB. 4"), ("assistant", "B")]),
    ("choices by key (CommonsenseQA)", "question_answer",
     {"question_stem": "2+2?", "choices": {"text": ["3", "4"], "label": ["A", "B"]}, "answerKey": "B"},
     [("user", "2+2?\n\nA. 3\nB. 4"), ("assistant", "B")]),
    ("turns of calls", "messages",
     {"messages": [{"role": "user", "content": "hi"}, {"role": "tool_call", "content": '{"name": "f"}'},
                   {"role": "tool_result", "content": "3"}, {"role": "assistant", "content": "yo"}]},
     [("user", "hi"), ("assistant", ""), ("tool", "3"), ("assistant", "yo")]),
    ("prompts of system and user", "prompt_completion", {"system_prompt": "be", "user_prompt": "hi", "response": "yo"},
     [("system", "be"), *ASKED]),
    ("self instruct", "alpaca", {"instruction": "hi", "input": "<noinput>", "output": "yo"}, ASKED),
    ("race", "question_answer", {"article": "It was Ann.", "question": "who?", "options": ["Bo", "Ann"], "answer": "B"},
     [("user", "It was Ann.\n\nwho?\n\nA. Bo\nB. Ann"), ("assistant", "B")]),
    ("natural instructions", "prompt_completion",
     {"task_name": "t", "definition": "Greet.", "inputs": "hi", "targets": "yo"},
     [("user", "Greet.\n\nhi"), ("assistant", "yo")]),
    ("a context that the prompt holds", "prompt_completion",
     {"prompt": "Read: It was Ann. hi", "context": "It was Ann.", "completion": "yo"},
     [("user", "Read: It was Ann. hi"), ("assistant", "yo")]),
    ("dolphin r1", "messages",
     {"messages": [{"role": "user", "content": "hi"}], "reasoning": "because it is", "answer": "yo", "model": "x"},
     THOUGHT),
    ("s1k", "question_answer",
     {"question": "hi", "solution": "y", "thinking_trajectories": ["because it is"], "attempt": "yo"}, THOUGHT),
    ("attempts that are counted", "question_answer", {"question": "hi", "answer": "yo", "attempt": 3}, ASKED),
    ("an empty solution", "question_answer", {"problem": "hi", "solution": "", "answer": "yo"}, ASKED),
    ("saiga: an object of lists", "messages", {"messages": {"role": ["user", "bot"], "content": ["hi", "yo"]}}, ASKED),
    ("turns as JSON text", "messages",
     {"messages": '[\n {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]'}, ASKED),
    ("rendered as ChatML", "rendered",
     {"text": "<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\nhi\nUSER: x<|im_end|>\n"
              "<|im_start|>assistant\nyo<|im_end|>"},
     [("system", "be"), ("user", "hi\nUSER: x"), ("assistant", "yo")]),
    ("guanaco", "rendered", {"text": "### Human: hi### Assistant: yo"}, ASKED),
    ("rendered for Llama 2", "rendered",
     {"text": "<s>[INST] <<SYS>>\nbe\n<</SYS>>\n\nhi [/INST] yo </s><s>[INST] a [/INST] b </s>"},
     [("system", "be"), *ASKED, ("user", "a"), ("assistant", "b")]),
    ("rendered for Llama 3", "rendered",
     {"text": "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
              "<|start_header_id|>assistant<|end_header_id|>\n\nyo<|eot_id|>"}, ASKED),
    ("glaive", "rendered",
     {"system": "SYSTEM: be\n", "chat": "USER: hi\n\n\nASSISTANT: f() <|endoftext|>\n\n\nFUNCTION RESPONSE: 3\n\n\n"
                                        "ASSISTANT: yo <|endoftext|>\n"},
     [("system", "be"), ("user", "hi"), ("assistant", "f()"), ("tool", "3"), ("assistant", "yo")]),
    ("bedrock", "messages",
     {"schemaVersion": "x", "system": [{"text": "be"}], "messages": [
         {"role": "user", "content": [{"text": "hi"}]}, {"role": "assistant", "content": [{"text": "yo"}]}]},
     [("system", "be"), *ASKED]),
    ("gemini", "turns",
     {"systemInstruction": {"parts": [{"text": "be"}]}, "contents": [{"role": "user", "parts": [{"text": "hi"}]},
                                                                     {"role": "model", "parts": [{"text": "yo"}]}]},
     [("system", "be"), *ASKED]),
    ("gemini with a thought", "turns",
     {"contents": [{"role": "user", "parts": [{"text": "hi"}]},
                   {"role": "model", "parts": [{"text": "because it is", "thought": True}, {"text": "yo"}]}]}, THOUGHT),
    ("bedrock with a thought", "messages",
     {"messages": [{"role": "user", "content": [{"text": "hi"}]}, {"role": "assistant", "content": [
         {"reasoningContent": {"reasoningText": {"text": "because it is"}}}, {"text": "yo"}]}]}, THOUGHT),
    ("harmony", "messages",
     {"messages": [{"role": "user", "content": "hi"},
                   {"role": "assistant", "channel": "analysis", "content": "because it is"},
                   {"role": "assistant", "channel": "final", "content": "yo"}]}, THOUGHT),
    ("swe-agent: a prompt beside the text", "turns",
     {"trajectory": [{"role": "system", "system_prompt": "be", "text": None},
                     {"role": "user", "system_prompt": None, "text": "hi"},
                     {"role": "ai", "system_prompt": None, "text": "yo"}]}, [("system", "be"), *ASKED]),
    ("speakers with hyphens", "messages",
     {"messages": [{"role": "user", "content": "hi"}, {"role": "Tool-Response", "content": "3"},
                   {"role": "assistant", "content": "yo"}]}, [("user", "hi"), ("tool", "3"), ("assistant", "yo")]),
    ("chatqa", "messages",
     {"document": "It was Ann.", "messages": [{"role": "user", "content": "who?"}], "answers": ["Ann", "ann"]},
     [("user", "It was Ann.\n\nwho?"), ("assistant", "Ann")]),
    ("chatrag", "messages",
     {"ctxs": [{"title": "News", "text": "It was Ann."}], "messages": [{"role": "user", "content": "who?"}],
      "answers": ["Ann"]}, [("user", "News\nIt was Ann.\n\nwho?"), ("assistant", "Ann")]),
    ("earlier turns in a field", "question_answer",
     {"chat_history": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "question": "hi",
      "answer": "yo"}, [("user", "a"), ("assistant", "b"), *ASKED]),
    ("belle: a dialogue as prompt", "alpaca",
     {"instruction": "Human:a\nAssistant:b\nHuman:hi\nAssistant:", "input": "", "output": "yo"},
     [("user", "a"), ("assistant", "b"), *ASKED]),
    ("claude 2: a dialogue as prompt", "prompt_completion",
     {"prompt": "\n\nHuman: hi\nHuman: me\n\nAssistant:", "completion": "yo"},
     [("user", "hi\nHuman: me"), ("assistant", "yo")]),
    ("oig", "rendered", {"text": "<human>: hi\n<bot>: yo\n"}, ASKED),
    ("lists of two", "exchanges", {"interactions": [["hi", "yo"]], "num_turns": 1}, ASKED),
    ("mbpp: code", "prompt_completion", {"prompt": "hi", "code": "yo", "test_list": []}, ASKED),
    ("a final answer", "prompt_completion", {"prompt": "hi", "thinking": "because it is", "final": "yo"}, THOUGHT),
]  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "record", "expected"), [c[1:] for c in CONVERSATIONS], ids=[c[0] for c in CONVERSATIONS]
)
def test_each_published_layout_gives_the_conversation_that_its_record_holds(read_records, layout, record, expected):
    found = read_records(record)
    assert (found.plan.layouts[0].layout, found.bad) == (layout, [])
    assert said(found.rows[0]) == expected


BEST = {"message_id": "2", "text": "yo", "role": "assistant", "rank": 0, "replies": [
    {"message_id": "4", "text": "more?", "role": "prompter", "replies": []}]}  # fmt: skip
OTHER = {"message_id": "3", "text": "go away", "role": "assistant", "rank": 1, "replies": []}
GONE = {"message_id": "5", "text": "spam", "role": "assistant", "rank": -1, "deleted": True, "replies": []}
TREE = {"message_tree_id": "t", "tree_state": "ready_for_export",
        "prompt": {"message_id": "1", "text": "hi", "role": "prompter", "replies": [OTHER, GONE, BEST]}}  # fmt: skip


def test_of_a_tree_the_best_path_is_read_or_every_path_with_an_answer(read_records):
    best = read_records(TREE, TREE)
    assert best.plan.layouts[0].layout == "tree"
    assert [said(r) for r in best.rows] == [ASKED, ASKED]
    every = read_records(TREE, {**TREE, "id": "own"}, tree_paths="every")
    assert [said(r) for r in every.rows] == [ASKED, [("user", "hi"), ("assistant", "go away")]] * 2
    assert [r["id"] for r in every.rows] == ["data.jsonl:0", "data.jsonl:0/1", "own", "own/1"]
    assert len({r["row_key"] for r in every.rows}) == 4
    assert read_records(TREE, {"prompt": TREE["prompt"] | {"deleted": True}}).reasons == ["no_answer"]
    assert sorted(r["row_key"] for r in every.rows) == [r["row_key"] for r in every.rows]


def test_messages_of_a_tree_one_a_record_are_refused_with_what_to_read_instead(read_records):
    record = {"message_id": "1", "parent_id": None, "text": "hi", "role": "prompter", "lang": "en"}
    with pytest.raises(LayoutError, match="one message of a tree"):
        read_records(record)
    assert read_records(record, map={"text": "text"}).texts == ["hi"]


def test_calls_without_an_answer_are_what_the_assistant_says(read_records):
    record = {"id": 0, "query": "hi", "answers": '[{"name": "f", "arguments": {"x": 1.50}}]',
              "tools": '[{"name": "f", "description": "d", "parameters": {}}]'}  # fmt: skip
    (row,) = read_records(record).rows
    assert said(row) == [("user", "hi"), ("assistant", "")]
    assert row["messages"][1][
        "tool_calls"
    ] == '[{"type":"function","function":{"name":"f","arguments":{"x":1.50}}}]' or (
        json.loads(row["messages"][1]["tool_calls"])[0]["function"] == {"name": "f", "arguments": {"x": 1.5}}
    )
    assert json.loads(row["tools"])[0]["name"] == "f"


@pytest.mark.parametrize(
    "record",
    [
        {"prompt": "hi", "completion": "no", "label": False},
        {"prompt": [{"role": "user", "content": "hi"}], "completion": [{"role": "assistant", "content": "no"}],
         "label": False},
        {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "no"}], "kto_tag": False},
        {"question": "hi", "generated_solution": "no", "is_correct": False},
        {"prompt": "hi", "response": "no", "label": "class 3", "is_safe": False},
    ],
)  # fmt: skip
def test_an_answer_that_its_record_judges_bad_is_not_learned_and_counted(read_records, record):
    good = {k: True if v is False else v for k, v in record.items()}
    found = read_records(record, good)
    weights = [[m["weight"] for m in r["messages"] if m["role"] == "assistant"] for r in found.rows]
    assert weights == [[0.0], [None]]
    assert found.notes["answers_judged_bad"] == 1


def test_a_judgement_written_as_text_counts_and_a_class_of_an_example_does_not(read_bytes, read_records):
    found = read_bytes(b"prompt,completion,label\nhi,yo,True\nhi,no,False\n", "judged.csv")
    assert [r["messages"][1]["weight"] for r in found.rows] == [None, 0.0]
    classes = read_records({"question": "hi", "answer": "yo", "label": 0})
    assert classes.rows[0]["messages"][1]["weight"] is None
    assert classes.notes == {"labels_of_0": 1}
    options = read_records({"question": "hi", "answer": "yo", "correct": "B"})
    assert (options.rows[0]["messages"][1]["weight"], options.notes) == (None, {})


CALLED = [
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]},
    {"role": "tool", "content": "3"},
    {"role": "assistant", "content": "yo"},
]


@pytest.mark.parametrize(
    ("record", "more", "prompt", "answer"),
    [
        ({"prompt": "hi", "completion": "yo", "label": True}, {}, [("user", "hi")], [("assistant", "yo")]),
        ({"Prompt": "hi", "Response": "yo", "Label": True}, {}, [("user", "hi")], [("assistant", "yo")]),
        (
            {"prompt": [{"role": "user", "content": "hi"}, *CALLED[:2]], "completion": CALLED[2:], "label": 1},
            {},
            [("user", "hi"), ("assistant", ""), ("tool", "3")],
            [("assistant", "yo")],
        ),
        (
            {"messages": [{"role": "user", "content": "hi"}, *CALLED], "label": True},
            {},
            [("user", "hi")],
            [("assistant", ""), ("tool", "3"), ("assistant", "yo")],
        ),
        (
            {
                "conversations": [{"from": s, "value": v} for s, v in (("human", "a"), ("gpt", "b")) * 2],
                "kto_tag": True,
            },
            {},
            [("user", "a"), ("assistant", "b"), ("user", "a")],
            [("assistant", "b")],
        ),
        (
            {"instruction": "hi", "input": "you", "output": "yo", "system": "be", "kto_tag": "true"},
            {},
            [("system", "be"), ("user", "hi\nyou")],
            [("assistant", "yo")],
        ),
        (
            {"q": "hi", "a": "yo", "ok": True},
            {"map": {"prompt": "q", "answer": "a", "label": "ok"}},
            [("user", "hi")],
            [("assistant", "yo")],
        ),
    ],
)
def test_a_judged_answer_is_a_pair_with_one_side_where_pairs_are_asked_for(read_records, record, more, prompt, answer):
    bad = {k: type(v)(not v) if type(v) in (bool, int) else "False" if v == "true" else v for k, v in record.items()}
    found = read_records(record, bad, kind="preference", **more)
    assert found.plan.kind == "preference"
    assert [said(r, "prompt") for r in found.rows] == [prompt] * 2
    assert [said(r, "chosen") for r in found.rows] == [answer, []]
    assert [said(r, "rejected") for r in found.rows] == [[], answer]
    assert found.notes == {"answers_judged_good": 1, "answers_judged_bad": 1}


def test_pairs_and_judged_answers_are_one_set_and_records_without_a_judgement_are_quarantined(read_records):
    judged = {"prompt": "hi", "completion": "yo", "label": True}
    found = read_records(
        judged, judged | {"label": None}, judged | {"label": 3}, judged | {"completion": []}, kind="preference"
    )
    assert (len(found.rows), found.reasons) == (1, ["no_judgement", "no_judgement", "bad_messages"])
    with pytest.raises(LayoutError, match="or one answer with a label true or false"):
        read_records({"prompt": "hi", "completion": "yo"}, kind="preference")


PAIRS = [
    ("safe rlhf", "verdict", {"prompt": "hi", "response_0": "no", "response_1": "yo", "better_response_id": 1}),
    ("helpsteer3", "verdict", {"context": [{"role": "user", "content": "hi"}], "response1": "yo", "response2": "no",
                               "overall_preference": -2}),
    ("helpsteer2", "verdict", {"prompt": "hi", "response_1": "no", "response_2": "yo", "preference_strength": 3}),
    ("arena", "verdict", {"conversation_a": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "no"}],
                          "conversation_b": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
                          "winner": "model_b"}),
    ("shp", "verdict", {"history": "hi", "human_ref_A": "yo", "human_ref_B": "no", "labels": 1, "score_A": 5}),
    ("ultrafeedback", "ranked", {"source": "x", "instruction": "hi", "completions": [
        {"response": "so so", "overall_score": 5.0, "fine-grained_score": 3.0},
        {"response": "yo", "overall_score": 1.0, "fine-grained_score": 4.5},
        {"response": "no", "overall_score": 9.0, "fine-grained_score": 1.0}]}),
    ("nectar", "ranked", {"prompt": "\n\nHuman: hi\n\nAssistant: ", "answers": [
        {"answer": "no", "rank": 7.0}, {"answer": "yo", "rank": 1.0}]}),
    ("stack exchange", "ranked", {"qid": 1, "question": "hi", "answers": [
        {"answer_id": 1, "text": "no", "pm_score": 1}, {"answer_id": 2, "text": "yo", "pm_score": 4}]}),
    ("openai", "pairs", {"input": {"messages": [{"role": "user", "content": "hi"}], "parallel_tool_calls": True},
                         "preferred_output": [{"role": "assistant", "content": "yo"}],
                         "non_preferred_output": [{"role": "assistant", "content": "no"}]}),
    ("ultrainteract", "pairs", {"trajectory": [{"from": "user", "value": "hi"}], "chosen": "yo", "rejected": "no"}),
    ("code preferences", "pairs", {"input": "hi", "accepted": "yo", "rejected": "no"}),
    ("ms-swift", "pairs", {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
                           "rejected_response": "no"}),
    ("ms-swift's dialogues", "pairs", {
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
        "rejected_messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "no"}]}),
    ("torchtune", "pairs", {
        "chosen_conversations": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
        "rejected_conversations": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "no"}]}),
    ("rewards beside the answers", "ranked",
     {"prompt": "hi", "completions": ["so", "yo", "no"], "rewards": [0.1, 0.2, -1]}),
    ("outputs with rewards", "ranked", {"instruction": "hi", "outputs": [
        {"output": "no", "reward": 0.1}, {"output": "yo", "reward": 0.2}]}),
    ("stack exchange paired", "pairs", {"question": "hi", "response_j": "yo", "response_k": "no"}),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "record"), [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_each_way_to_prefer_an_answer_gives_the_pair(read_records, layout, record):
    found = read_records(record)
    assert (found.plan.layouts[0].layout, found.bad) == (layout, [])
    (row,) = found.rows
    assert [said(row, n) for n in ("prompt", "chosen", "rejected")] == [
        [("user", "hi")], [("assistant", "yo")], [("assistant", "no")]]  # fmt: skip


def test_both_answers_begin_with_the_steps_that_they_go_on_from(read_records):
    record = {
        "prompt": "2+2?",
        "initial_reason_steps": "Step 1:",
        "chosen": " 4",
        "rejected": " 5",
        "full_chosen": " 4!",
    }
    (row,) = read_records(record).rows
    assert [said(row, n)[0][1] for n in ("chosen", "rejected")] == ["Step 1: 4", "Step 1: 5"]


def test_tools_are_read_from_openais_former_field_and_from_a_list_of_json_texts(read_records):
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    found = read_records(
        {"messages": turns, "functions": [{"name": "f"}]}, {"messages": turns, "tools": ['{"name": "f"}']}
    )
    assert [json.loads(r["tools"]) for r in found.rows] == [[{"name": "f"}]] * 2
    assert read_records({"messages": turns, "tools": ["f"]}).reasons == ["bad_tools"]


@pytest.mark.parametrize(
    ("field", "value", "weight"),
    [("weight", 0.5, 0.5), ("loss", False, 0), ("message_training", False, 0), ("output_with_loss", True, 1),
     ("train_detail", [{"begin_offset": 0, "end_offset": 2, "train": False}], 0), ("train_detail", None, None)],
)  # fmt: skip
def test_what_is_learned_of_a_turn_is_read_from_each_of_its_usual_fields(read_records, field, value, weight):
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo", field: value}]
    lists = {"conversation": [{"input": "hi", "output": "yo", field: value}]}
    for record in ({"conversations": turns}, lists):
        (row,) = read_records(record).rows
        assert [m["weight"] for m in row["messages"]] == [None, weight]


@pytest.mark.parametrize(
    ("more", "reason"),
    [({"weight": -1}, "bad_weight"), ({"weight": "half"}, "bad_weight"),
     ({"message_training_detail": [{"begin_offset": 0, "end_offset": 1, "train": True},
                                   {"begin_offset": 1, "end_offset": 2, "train": False}]}, "part_of_an_answer")],
)  # fmt: skip
def test_a_weight_that_cannot_be_obeyed_is_quarantined(read_records, more, reason):
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"} | more]
    assert read_records({"messages": turns}).reasons == [reason]


@pytest.mark.parametrize(
    ("record", "kept"),
    [({"prompt": "<image>what?", "response": "a cat", "images": ["1.jpg"]}, False),
     ({"conversations": [{"from": "human", "value": "<image>\nwhat?"}, {"from": "gpt", "value": "a cat"}],
       "image": "1.jpg"}, False),
     ({"question": "what?", "answer": "a cat", "image": {"bytes": "/9j/", "path": None}}, False),
     ({"question": "what?", "chosen": "a cat", "rejected": "a dog", "image": {"bytes": "/9j/", "path": None}}, False),
     ({"prompt": "what is <image> in SVG?", "response": "a mark"}, True),
     ({"question": "what?", "answer": "a cat", "image": {"bytes": None, "path": None}, "videos": []}, True),
     ({"question": "what?", "answer": "a cat", "image": "https://logo"}, True)],
)  # fmt: skip
def test_what_a_picture_shows_is_not_learned_without_it(read_records, record, kept):
    found = read_records(record)
    assert (len(found.rows), found.reasons) == ((1, []) if kept else (0, ["non_text_part"]))


def test_calls_and_results_of_gemini_and_bedrock_are_turns_of_their_own(read_records):
    gemini = {"contents": [
        {"role": "user", "parts": [{"text": "hi", "functionCall": None}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"x": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"y": 3}}}]},
        {"role": "model", "parts": [{"text": "yo"}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {}}]}]}  # fmt: skip
    bedrock = {"messages": [
        {"role": "user", "content": [{"text": "hi"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {"x": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"json": {"y": 3}}]}}]},
        {"role": "assistant", "content": [{"text": "yo"}]}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}]}}  # fmt: skip
    for record, number in ((gemini, None), (bedrock, "a")):
        (row,) = read_records(record).rows
        assert said(row) == [("user", "hi"), ("assistant", ""), ("tool", '{"y":3}'), ("assistant", "yo")]
        (call,) = json.loads(row["messages"][1]["tool_calls"])
        assert (call.get("id"), call["function"]) == (number, {"name": "f", "arguments": {"x": 1}})
        assert row["messages"][2]["tool_call_id"] == number
        assert json.loads(row["tools"]) == [{"name": "f", "parameters": {}}]


def test_tools_that_the_system_prompt_declares_too_are_counted(read_records):
    turns = [{"role": "system", "content": "<tools>{'name': 'f'}</tools>"}, {"role": "user", "content": "hi"},
             {"role": "assistant", "content": "yo"}]  # fmt: skip
    found = read_records(*({"messages": turns, "tools": [{"name": name}]} for name in "fg"))
    assert found.notes == {"tools_twice": 1}


def test_one_turn_a_record_is_refused_with_the_command_that_groups_them(read_records):
    turns = [{"conversation_id": 7, "role": r, "content": c} for r, c in (("user", "hi"), ("assistant", "yo"))]
    with pytest.raises(LayoutError, match=re.escape("group_by(.conversation_id)[] | {messages: .}")):
        read_records(*turns)
    assert read_records(*turns, kind="text").texts == ["hi", "yo"]


def test_a_field_that_is_always_empty_is_no_document(read_records):
    with pytest.raises(LayoutError, match="no known layout"):
        read_records({"title": "t", "document": ""})
    assert read_records({"document": "", "body": "hi"}).texts == ["hi"]


def test_calls_and_results_that_are_parts_of_content_are_turns_of_their_own(read_records):
    """Anthropic's messages."""
    uses = [{"type": "tool_use", "id": i, "name": "f", "input": {"x": n}} for i, n in (("a", 1), ("b", 2))]
    results = [{"type": "tool_result", "tool_use_id": "a", "content": "3"},
               {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "4"}]}]  # fmt: skip
    record = {"system": [{"type": "text", "text": "be"}], "tools": [{"name": "f", "input_schema": {"type": "object"}}],
              "messages": [{"role": "user", "content": "hi"},
                           {"role": "assistant", "content": [{"type": "text", "text": "wait"}, *uses]},
                           {"role": "user", "content": [*results, {"type": "text", "text": "so?"}]},
                           {"role": "assistant", "content": "yo"}]}  # fmt: skip
    (row,) = read_records(record).rows
    assert said(row) == [("system", "be"), ("user", "hi"), ("assistant", "wait"), ("tool", "3"), ("tool", "4"),
                         ("user", "so?"), ("assistant", "yo")]  # fmt: skip
    assert [m["tool_call_id"] for m in row["messages"][3:5]] == ["a", "b"]
    calls = json.loads(row["messages"][2]["tool_calls"])
    assert [(c["id"], c["function"]) for c in calls] == [
        ("a", {"name": "f", "arguments": {"x": 1}}), ("b", {"name": "f", "arguments": {"x": 2}})]  # fmt: skip
    assert json.loads(row["tools"]) == [{"name": "f", "parameters": {"type": "object"}}]


def test_what_a_tool_gives_and_gets_may_be_an_object(read_records):
    turns = [{"from": "human", "value": "hi"}, {"from": "function_call", "value": {"name": "f", "arguments": {"x": 1}}},
             {"from": "observation", "value": {"temp": 1.50}}, {"from": "gpt", "value": "yo"}]  # fmt: skip
    (row,) = read_records({"conversations": turns}).rows
    assert [m["content"] for m in row["messages"]] == ["hi", "", '{"temp":1.5}', "yo"]
    assert read_records({"messages": [{"role": "user", "content": {"a": 1}}]}).reasons == ["not_text"]


@pytest.mark.parametrize("name", ["tool_calls", "function_call"])
def test_calls_and_tools_in_typed_columns_have_no_nulls_for_the_keys_of_other_functions(tmp_path, read, name):
    rows = []
    for key in ("a", "b"):
        call = {"name": "f", "arguments": {key: 1}}
        answer = {"role": "assistant", name: [call] if name == "tool_calls" else call}
        tools = [{"name": "f", "parameters": {key: {"type": "x"}}}]
        rows.append({"messages": [{"role": "user", "content": "hi"}, answer], "tools": tools})
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "calls.parquet")
    for key, row in zip("ab", read(tmp_path / "calls.parquet").rows, strict=True):
        (call,) = json.loads(row["messages"][1]["tool_calls"])
        assert call.get("function", call) == {"name": "f", "arguments": {key: 1}}
        assert json.loads(row["tools"]) == [{"name": "f", "parameters": {key: {"type": "x"}}}]


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({"question": "who?", "answer": "Ann", "context": {"title": ["t"], "sentences": [["s"]]}}, "context.PART"),
        ({"question": "is it?", "answer": True, "passage": "long text"}, "--map text=passage"),
        ({"question": "who?", "answer": {"aliases": ["Ann"], "value": "Ann"}}, "--map answer=answer.value"),
        ({"conversation": [{"message": "a", "is_human": False}, {"message": "b", "is_human": True}]},
         "--roles true=user,false=assistant"),
        ({"data": [{"role": "user", "text": "hi"}, {"role": "guide", "text": "yo"}]}, "--roles guide=assistant"),
        ({"system_prompt": "be", "my_prompt": "hi", "the_response": "yo"},
         "--map prompt=my_prompt --map answer=the_response --map system=system_prompt"),
        ({"input_text": "hi", "target_text": "yo"}, "--map prompt=input_text --map answer=target_text"),
        ({"question": "hi", "answers": ["yo", "ho"]}, "--map prompt=question --map answer=answers.0"),
        ({"page": "<!DOCTYPE html><p>hi</p>", "url": "u"}, "--html-field page"),
        ({"turns": {"speaker": [0, 1], "utterance": ["hi", "yo"]}}, "--roles 0=user,1=assistant"),
        ({"question": "where", "answer": ["Canada", "US"]}, "--map prompt=question --map answer=answer.0"),
        ({"inputs": [1], "inputs_pretokenized": "hi", "targets": [2], "targets_pretokenized": "yo"},
         "--map prompt=inputs_pretokenized --map answer=targets_pretokenized"),
        ({"ask": "hi", "query": "hi", "good_reply": "yo", "bad_reply": "no"},
         "--map prompt=query --map chosen=good_reply --map rejected=bad_reply"),
        ({"dialogue": "A: hi", "summary": "yo"}, "--map prompt=dialogue --map answer=summary"),
        ({"Q": "hi", "A": "yo"}, "--map prompt=Q --map answer=A"),
        ({"question": "hi", "solutions": '["yo"]', "input_output": "{}"},
         "--map prompt=question --map answer=solutions"),
        ({"body": {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}},
         "--map messages=body.messages"),
    ],
)  # fmt: skip
def test_what_would_be_read_without_a_part_is_refused_with_a_mapping(read_records, record, match):
    with pytest.raises(LayoutError, match=match):
        read_records(record, record)


def test_records_that_are_no_objects_are_refused_with_a_way_to_name_them(read_bytes):
    for raw, match in ((b'[{"role": "user"}]\n[]\n', "{messages: .}"), (b'"a"\n"b"\n', "{text: .}")):
        with pytest.raises(InputError, match=re.escape(match)):
            read_bytes(raw)


def test_the_layout_of_csv_is_told_by_its_cells(read_bytes):
    turns = json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]).replace('"', '""')
    found = read_bytes(f'messages,topic\n"{turns}",x\n'.encode(), "chat.csv")
    assert (found.plan.layouts[0].layout, said(found.rows[0])) == ("messages", ASKED)
    printed = str([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}])
    found = read_bytes(f'messages\n"{printed}"\n"[{{\'role\': }}]"\n'.encode(), "pandas.csv")
    assert (said(found.rows[0]), found.reasons) == (ASKED, ["bad_messages"])
    rows = {"prompt": "user hi", "chosen": "assistant yo", "rejected": "assistant no"}
    cells = [
        json.dumps([dict(zip(("role", "content"), v.split(), strict=True))]).replace('"', '""') for v in rows.values()
    ]
    (pair,) = read_bytes((",".join(rows) + "\n" + ",".join(f'"{c}"' for c in cells)).encode(), "pairs.csv").rows
    assert [said(pair, n) for n in rows] == [ASKED[:1], ASKED[1:], [("assistant", "no")]]
    about = read_bytes((f'prompt,completion\nan example,"{cells[0]}"\n').encode(), "about.csv").rows[0]
    assert said(about)[1][1].startswith("[{")
    with pytest.raises(LayoutError, match="oddity: a thing"):
        read_bytes(b"oddity,n\na thing,3\n", "odd.csv")


def test_lists_and_objects_in_cells_of_csv_are_what_they_are_in_json(read_records, read_bytes):
    for about, _, record, *_ in CONVERSATIONS + PAIRS:
        if about in ("choices by number (MMLU)", "attempts that are counted"):  # a number in a cell is a text
            continue
        cells = io.StringIO()
        table = csv.DictWriter(cells, record.keys())
        table.writeheader()
        table.writerow({k: json.dumps(v) if type(v) in (list, dict) else v for k, v in record.items()})
        found, wanted = read_bytes(cells.getvalue().encode(), "cells.csv"), read_records(record)
        for name in ("messages", "prompt", "chosen", "rejected"):
            assert [row.get(name) for row in found.rows] == [row.get(name) for row in wanted.rows], about
    about = read_bytes(b'prompt,completion\nas JSON,"{""a"": 1}"\nas JSON,"[1]"\n', "about.csv")
    assert [said(row)[1][1] for row in about.rows] == ['{"a": 1}', "[1]"]


def test_tools_as_text_are_those_of_a_list(read_records):
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    given = ('[{"name": "f", "input_schema": {"x": 1.50}}]', '["{\\"name\\": \\"g\\"}"]', '[{"name": "h", "x": 1.50}]')
    found = read_records(*({"messages": turns, "tools": text} for text in given))
    assert [r["tools"] for r in found.rows] == ['[{"name":"f","parameters":{"x":1.50}}]', '[{"name": "g"}]', given[2]]


def test_ties_are_quarantined_as_such(read_records):
    pair = {"prompt": "hi", "response_0": "a", "response_1": "b", "better_response_id": 0}
    even = {"context": "hi", "response1": "a", "response2": "b", "overall_preference": 0}
    equal = {"instruction": "hi", "completions": [{"response": "a", "score": 1}, {"response": "b", "score": 1}]}
    assert [read_records(r).reasons for r in (even, equal)] == [["tie"], ["tie"]]
    assert read_records(pair, {**pair, "better_response_id": 7}).reasons == ["bad_verdict"]


@pytest.mark.parametrize("text", ["On <|im_start|> and [INST].", "### Human rights", "USER: a question", "[INST] x"])
def test_a_text_that_only_names_the_marks_of_turns_is_a_document(read_records, text):
    assert read_records({"text": text}).texts == [text]
    rendered = "### Human: hi### Assistant: yo"
    assert read_records({"text": rendered}, kind="text").texts == [rendered]


@pytest.mark.parametrize("name", ["body", "raw_content", "content", "page_content", "Text", "article"])
def test_usual_names_of_a_text_are_recognised(read_records, name):
    found = read_records({name: "some text", "url": "http://x", "title": "t"})
    assert (found.plan.kind, found.texts) == ("document", ["some text"])


# Mapping.


def test_turns_speakers_and_texts_of_any_name_are_mapped(read_records):
    record = {"turns": [{"speaker": "SYSTEM", "utterance": "yo", "at": 3}, {"speaker": "Kundin", "utterance": "hi"}]}
    found = read_records(
        record, map={"messages": "turns", "role": "speaker", "content": "utterance"},
        roles={"SYSTEM": "assistant", "kundin": "user"},
    )  # fmt: skip
    assert said(found.rows[0]) == [("assistant", "yo"), ("user", "hi")]
    assert json.loads(found.rows[0]["extra"]) == {"turns": [{"at": 3}, {}]}


def test_a_path_leads_into_nested_fields_and_leaves_the_rest_beside_the_row(read_records):
    record = {"meta": {"doc": {"body": "long text", "lang": "sv"}, "n": 1}, "key": {"id": "k1"}}
    found = read_records(record, map={"text": "meta.doc.body", "id": "key.id"})
    assert (found.texts, found.rows[0]["id"]) == (["long text"], "k1")
    assert json.loads(found.rows[0]["extra"]) == {"meta": {"n": 1, "doc": {"lang": "sv"}}, "key": {"id": "k1"}}
    chat = {"data": {"log": [{"who": "a", "what": {"said": "hi"}}, {"who": "b", "what": {"said": "yo"}}]}}
    mapped = read_records(
        chat, map={"messages": "data.log", "role": "who", "content": "what.said"}, roles={"a": "user", "b": "assistant"}
    )
    assert said(mapped.rows[0]) == ASKED


def test_a_template_makes_the_prompt_and_empty_fields_leave_no_gap(read_records):
    mapping = {"prompt": "{instruction}\n\n{context}", "answer": "response"}
    found = read_records(
        {"instruction": "who?", "context": "Ann, 1.", "response": "Ann"},
        {"instruction": "hi", "context": None, "response": "yo"},
        {"response": "yo"},
        map=mapping,
    )
    assert [said(r) for r in found.rows] == [[("user", "who?\n\nAnn, 1."), ("assistant", "Ann")], ASKED]
    assert found.reasons == ["missing_field"]
    assert read_records({"a": {"b": 3}, "t": "x"}, map={"text": "{t} {a.b}"}).texts == ["x 3"]


def test_pairs_weights_and_labels_are_mapped(read_records):
    pair = read_records(
        {"q": "hi", "good": "yo", "bad": "no"}, map={"prompt": "q", "chosen": "good", "rejected": "bad"}
    )
    assert (pair.plan.kind, said(pair.rows[0], "rejected")) == ("preference", [("assistant", "no")])
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo", "learn": 0.25}]
    assert read_records({"messages": turns}, map={"weight": "learn"}).rows[0]["messages"][1]["weight"] == 0.25
    judged = read_records({"q": "hi", "a": "no", "ok": False}, map={"prompt": "q", "answer": "a", "label": "ok"})
    assert judged.rows[0]["messages"][1]["weight"] == 0.0


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"map": {"mesages": "turns"}}, "mesages"),
        ({"map": {"prompt": "q"}}, "answer"),
        ({"map": {"system": "s"}}, "make no row"),
        ({"roles": {"doctor": "asistant"}}, "system, user, assistant, tool"),
        ({"map": {"text": "a"}, "layout": "alpaca"}, "exclude"),
    ],
)
def test_a_mapping_that_makes_no_sense_is_refused(read_records, config, match):
    with pytest.raises(ConfigError, match=match):
        read_records({"text": "t"}, **config)


UNKNOWN = [
    ({"log": [{"who": "Kunde", "what": "Guten Tag, alles geht nicht"}, {"who": "Agent", "what": "Das tut mir leid"}]},
     "--map messages=log --map role=who --map content=what --roles Kunde=user,Agent=assistant"),
    ({"log": [{"who": "CUSTOMER", "what": "a room, please"}, {"who": "SYSTEM", "what": "for how many nights?"}]},
     "--map messages=log --map role=who --map content=what --roles CUSTOMER=user,SYSTEM=assistant"),
    ({"conv": {"log": [{"by": {"role": "kunde", "name": "x"}, "said": {"content": {"plain": "Hallo?"}}},
                       {"by": {"role": "rat", "name": "y"}, "said": {"content": {"plain": "Guten Tag"}}}]}},
     "--map messages=conv.log --map role=by.role --map content=said.content.plain --roles kunde=user,rat=assistant"),
    ({"frage": "hi", "user_question": "was?", "the_response": "das"},
     "--map prompt=user_question --map answer=the_response"),
    ({"meta": {"inhalt": "ein langer Text über vieles"}, "n": 3}, "--map text=meta.inhalt"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "match"),
    [({"map": {"prompt": "instrction", "answer": "output"}}, "--map prompt=instrction: .*perhaps instruction is meant"),
     ({"map": {"prompt": "{ask}: {what}", "answer": "output"}}, "none of its first records has such a field"),
     ({"map": {"id": "meta_id"}}, "--map id=meta_id: .*the fields are instruction, output, meta, turns"),
     ({"id_field": "uid"}, "--id-field uid"),
     ({"map": {"messages": "turns", "role": "who", "content": "wat"}}, "--map content=wat: .*perhaps what is meant"),
     ({"map": {"prompt": "meta.ix", "answer": "output"}}, "--map prompt=meta.ix: .*perhaps meta.id is meant")],
)  # fmt: skip
def test_a_field_that_no_record_has_is_refused_before_any_work_with_the_nearest_one(read_records, config, match):
    record = {"instruction": "hi", "output": "yo", "meta": {"id": 1}, "turns": [{"who": "user", "what": "hi"}]}
    with pytest.raises(LayoutError, match=match):
        read_records(record, **config)
    assert read_records(record, map={"prompt": "{ask}{instruction}", "answer": "output", "id": "meta.id"}).rows


@pytest.mark.parametrize(("record", "flags"), UNKNOWN)
def test_an_unknown_layout_shows_its_fields_and_the_nearest_mapping_which_works(read_records, record, flags):
    with pytest.raises(LayoutError) as caught:
        read_records(record, record)
    assert flags in str(caught.value)
    assert all(f"  {name}: " in str(caught.value) for name in record)
    words = flags.split()
    given = {w: words[i + 1] for i, w in enumerate(words) if w == "--roles"}
    mapping = dict(words[i + 1].split("=") for i, w in enumerate(words) if w == "--map")
    roles = dict(pair.split("=") for pair in given.get("--roles", "").split(",") if pair)
    assert read_records(record, map=mapping, roles=roles).bad == []


def test_speakers_of_unknown_roles_are_refused_before_any_work_with_the_flag_that_helps(read_records):
    record = {"messages": [{"role": "doctor", "content": "yo"}, {"role": "patient", "content": "hi"}]}
    with pytest.raises(LayoutError, match="--roles doctor=assistant,patient=user"):
        read_records(record)
    assert read_records(record, roles={"doctor": "assistant", "patient": "user"}).bad == []


# Splits.


@pytest.fixture
def folder(tmp_path):
    """A folder as the Hub has it."""

    def making(*names):
        for name in names:
            path = tmp_path / "set" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"text": name}) + "\n")
        return tmp_path / "set"

    return making


@pytest.mark.parametrize(
    "names",
    [
        ("data/train-00000-of-00002.jsonl", "data/train-00001-of-00002.jsonl", "data/test-00000-of-00001.jsonl"),
        ("train.jsonl", "train.extra.jsonl", "validation.jsonl"),
        ("en/c4-train.00000-of-01024.json", "en/c4-train.00001-of-01024.json", "en/c4-validation.00000-of-00008.json"),
        ("train/a.jsonl", "train/b.jsonl", "dev/a.jsonl"),
    ],
)
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


def test_splits_of_other_names_are_splits_too(folder, read):
    root = folder("data/train_sft-00000-of-00001.jsonl", "data/train_gen-00000-of-00001.jsonl")
    with pytest.raises(UsageError, match=r"train_gen .*train_sft"):
        read(root)
    assert read(root, split="train_sft").texts == ["data/train_sft-00000-of-00001.jsonl"]
    assert len(read(root, split="train_sft,train_gen").rows) == 2


def test_folders_without_splits_are_read_as_before(folder, read):
    assert len(read(folder("a.jsonl", "b/contest.jsonl", "latest.jsonl")).rows) == 3


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
            data = "".join(json.dumps(r) + "\n" for r in part).encode()
            path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    assert read(tmp_path, limit=limit).texts == [r["text"] for r in records[:limit]]
