"""Answers are taken apart the same way however the stream is cut, and nothing is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.serve.answer_parts import Answer, AnswerParts, read_call

CALL = ("weather", '{"city": "Paris"}')
JSON = '{"name": "weather", "arguments": {"city": "Paris"}}'


def parts_of(text: str, tools: bool, size: int, thinking: bool = False) -> Answer:
    parts, found = AnswerParts(tools, thinking), Answer()
    for piece in (*(text[at : at + size] for at in range(0, len(text), size)), ""):
        new = parts.add(piece, last=not piece)
        found = Answer(*(was + more for was, more in zip(found, new, strict=True)))
    assert found == parts.whole
    return found


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "tools", "expected"),
    [
        (f"Let me look. <tool_call>\n{JSON}\n</tool_call>", True, Answer("Let me look. ", calls=(CALL,))),
        (f" <tool_call>{JSON}</tool_call>\n" * 2, True, Answer(calls=(CALL, CALL))),
        (f"<tool_call>{JSON}</tool_call> so", True, Answer("so", calls=(CALL,))),
        ("<think>\nhm\n</think>\n\nYes.", False, Answer("Yes.", "hm")),
        ("  plain", True, Answer("  plain")),
        ("a <think> b", False, Answer("a <think> b")),
        ("<tool_call>{not json}</tool_call> x", True, Answer("<tool_call>{not json}</tool_call> x")),
        ('<tool_call>{"name": "w', True, Answer('<tool_call>{"name": "w')),
        ("1 < 2 <tool", True, Answer("1 < 2 <tool")),
        (" <tool_call>no</tool_call>", True, Answer(" <tool_call>no</tool_call>")),
    ],
)
def test_an_answer_is_taken_apart(text, tools, expected, size):
    assert parts_of(text, tools, size) == expected


def test_a_thought_that_the_prompt_began_is_a_thought():
    assert parts_of("so so</think>\nfour", False, 2, thinking=True) == Answer("four", "so so")


@given(st.text(alphabet='<>/toolcath_{}" k\n', max_size=60), st.booleans(), st.integers(1, 9))
def test_no_text_without_a_call_is_lost(text, tools, size):
    found = parts_of(text, tools, size)
    assert found.reasoning or found.calls or found.content == text
    assert found == parts_of(text, tools, 1000)


@pytest.mark.parametrize(
    "form", [f"[TOOL_CALLS][{JSON}]", f"<|python_tag|>{JSON}", "<tool_call>\n<function=f>\n</tool_call>"]
)
def test_calls_in_other_forms_are_text(form):
    assert parts_of(form, True, 3) == Answer(form)


def test_arguments_may_be_json_text_already():
    assert read_call('{"name": "f", "arguments": "{}"}') == ("f", "{}")
    assert read_call('{"name": 1}') is None
