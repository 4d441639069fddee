"""Answers are taken apart the same way however the stream is cut, and nothing is lost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.serve.answer_parts import Answer, AnswerParts, Form, forced, form_of, read_calls

CALL = ("weather", '{"city": "Paris"}')
JSON = '{"name": "weather", "arguments": {"city": "Paris"}}'
LLAMA = JSON.replace("arguments", "parameters")
TAGGED = "<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>"


def parts_of(text: str, form: Form | None, size: int, thinking: bool = False) -> Answer:
    parts, found = AnswerParts(form, thinking), Answer()
    for piece in (*(text[at : at + size] for at in range(0, len(text), size)), ""):
        new = parts.add(piece, last=not piece)
        found = Answer(*(was + more for was, more in zip(found, new, strict=True)))
    assert found == parts.whole
    return found


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        (f"Let me look. <tool_call>\n{JSON}\n</tool_call>", "hermes", Answer("Let me look. ", calls=(CALL,))),
        (f" <tool_call>{JSON}</tool_call>\n" * 2, "hermes", Answer(calls=(CALL, CALL))),
        (f"<tool_call>{JSON}</tool_call> so", "hermes", Answer("so", calls=(CALL,))),
        (f"[TOOL_CALLS][{JSON}]", "mistral", Answer(calls=(CALL,))),
        ('[TOOL_CALLS]weather[ARGS]{"city": "Paris"}' * 2, "mistral", Answer(calls=(CALL, CALL))),
        (f"<|python_tag|>{LLAMA}", "llama3", Answer(calls=(CALL,))),
        (f"{LLAMA}; {LLAMA}", "llama3", Answer(calls=(CALL, CALL))),
        (f"<tool_call>\n{TAGGED}\n</tool_call>", "hermes", Answer(calls=(CALL,))),
        ("<think>\nhm\n</think>\n\nYes.", None, Answer("Yes.", "hm")),
        ("  plain", "hermes", Answer("  plain")),
        ("a <think> b", None, Answer("a <think> b")),
        ("<tool_call>{not json}</tool_call> x", "hermes", Answer("<tool_call>{not json}</tool_call> x")),
        ('<tool_call>{"name": "w', "hermes", Answer('<tool_call>{"name": "w')),
        ('{"name": 1}', "llama3", Answer('{"name": 1}')),
        ("1 < 2 <tool", "hermes", Answer("1 < 2 <tool")),
        (" {", "llama3", Answer(" {")),
        (" <tool_call>no</tool_call>", "hermes", Answer(" <tool_call>no</tool_call>")),
    ],
)
def test_an_answer_is_taken_apart(text: str, form: Form | None, expected: Answer, size: int) -> None:
    assert parts_of(text, form, size) == expected


def test_a_thought_that_the_prompt_began_is_a_thought() -> None:
    assert parts_of("so so</think>\nfour", None, 2, thinking=True) == Answer("four", "so so")


@given(
    st.text(alphabet='<>/toolcath_{}" k\n', max_size=60),
    st.sampled_from(["hermes", "mistral", "llama3", None]),
    st.integers(1, 9),
)
def test_no_text_without_a_call_is_lost(text: str, form: Form | None, size: int) -> None:
    found = parts_of(text, form, size)
    assert found.reasoning or found.calls or found.content == text
    assert found == parts_of(text, form, 1000)


@pytest.mark.parametrize(("form", "end"), [("hermes", "}\n</tool_call>"), ("mistral", "}]"), ("llama3", "}")])
def test_a_forced_beginning_completes_to_a_call(form: Form, end: str) -> None:
    assert parts_of(forced(form, "weather") + '{"city": "Paris"}' + end, form, 1) == Answer(calls=(CALL,))


def test_further_calls_are_left_out_where_one_is_wanted() -> None:
    parts = AnswerParts("mistral", beginning="[TOOL", most_calls=1)
    assert parts.add(f"_CALLS][{JSON}, {JSON}]", last=True) == parts.whole == Answer(calls=(CALL,))


def test_the_form_is_the_one_that_the_template_shows() -> None:
    assert form_of("... [TOOL_CALLS] ...") == "mistral"
    assert form_of("role == 'ipython' <|python_tag|>") == "llama3"
    assert form_of("<tool_call> <|python_tag|>") == form_of("nothing") == "hermes"
    assert read_calls(json.dumps({"name": "f", "arguments": '{"a": 1}'}), "hermes") == [("f", '{"a": 1}')]
