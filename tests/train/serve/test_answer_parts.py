"""Answers are taken apart the same way however the stream is cut, and nothing is lost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.serve.answer_parts import AnswerParts, Form, forced, form_of, read_calls


def parts_of(text: str, form: Form | None, size: int, thinking: bool = False) -> list[tuple[str, str, str]]:
    parts = AnswerParts(form, thinking)
    found = [p for at in range(0, len(text), size) for p in parts.add(text[at : at + size])] + parts.end()
    joined: list[tuple[str, str, str]] = []
    for p in found:
        if joined and p.kind == joined[-1][0] != "call":
            joined[-1] = (p.kind, joined[-1][1] + p.text, "")
        else:
            joined.append((p.kind, p.text, p.name))
    return joined


CALL = ("call", '{"city": "Paris"}', "weather")
SAID = ("content", "Let me look. ", "")


JSON = '{"name": "weather", "arguments": {"city": "Paris"}}'
LLAMA = JSON.replace("arguments", "parameters")
TAGGED = "<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>"


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        (f"Let me look. <tool_call>\n{JSON}\n</tool_call>", "hermes", [SAID, CALL]),
        (f"<tool_call>{JSON}</tool_call>\n" * 2, "hermes", [CALL, CALL]),
        (f"[TOOL_CALLS][{JSON}]", "mistral", [CALL]),
        ('[TOOL_CALLS]weather[ARGS]{"city": "Paris"}' * 2, "mistral", [CALL, CALL]),
        (f"<|python_tag|>{LLAMA}", "llama3", [CALL]),
        (f"{LLAMA}; {LLAMA}", "llama3", [CALL, CALL]),
        (f"<tool_call>\n{TAGGED}\n</tool_call>", "hermes", [CALL]),
        ("<think>\nhm\n</think>\n\nYes.", None, [("reasoning", "hm", ""), ("content", "Yes.", "")]),
        ("  plain", "hermes", [("content", "  plain", "")]),
        ("a <think> b", None, [("content", "a <think> b", "")]),
        ("<tool_call>{not json}</tool_call> x", "hermes", [("content", "<tool_call>{not json}</tool_call> x", "")]),
        ('<tool_call>{"name": "w', "hermes", [("content", '<tool_call>{"name": "w', "")]),
        ('{"name": 1}', "llama3", [("content", '{"name": 1}', "")]),
        ("1 < 2 <tool", "hermes", [("content", "1 < 2 <tool", "")]),
        (" {", "llama3", [("content", " {", "")]),
        (" <tool_call>no</tool_call>", "hermes", [("content", " <tool_call>no</tool_call>", "")]),
    ],
)
def test_an_answer_is_taken_apart(text: str, form: Form | None, expected: list, size: int) -> None:
    assert parts_of(text, form, size) == expected


def test_a_thought_that_the_prompt_began_is_a_thought() -> None:
    assert parts_of("so so</think>\nfour", None, 2, thinking=True) == [
        ("reasoning", "so so", ""),
        ("content", "four", ""),
    ]


@given(
    st.text(alphabet='<>/toolcath_{}" k\n', max_size=60),
    st.sampled_from(["hermes", "mistral", "llama3", None]),
    st.integers(1, 9),
)
def test_no_text_without_a_call_is_lost(text: str, form: Form | None, size: int) -> None:
    found = parts_of(text, form, size)
    if all(kind == "content" for kind, _, _ in found):
        assert "".join(said for _, said, _ in found) == text
    assert found == parts_of(text, form, 1000)


@pytest.mark.parametrize("form", ["hermes", "mistral", "llama3"])
def test_a_forced_beginning_completes_to_a_call(form: Form) -> None:
    end = {"hermes": "}\n</tool_call>", "mistral": "}]", "llama3": "}"}[form]
    assert parts_of(forced(form, "weather") + '{"city": "Paris"}' + end, form, 1) == [CALL]


def test_the_form_is_the_one_that_the_template_shows() -> None:
    assert form_of("... [TOOL_CALLS] ...") == "mistral"
    assert form_of("role == 'ipython' <|python_tag|>") == "llama3"
    assert form_of("<tool_call> <|python_tag|>") == form_of("nothing") == "hermes"


def test_arguments_that_are_json_text_already_stay_text() -> None:
    assert read_calls(json.dumps({"name": "f", "arguments": '{"a": 1}'}), "hermes") == [("f", '{"a": 1}')]
