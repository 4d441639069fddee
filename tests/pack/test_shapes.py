"""Conversations that are joined by the plan of their shape are those that the template renders one by one."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.pack.chat import ChatTokenizer
from datakit.pack.labels import Shapes
from datakit.pack.marks import RESERVED_SPELLING, RenderError
from tests.files import says, user
from tests.pack.by_hand import label, labelled_rows, labeller, outcome

BODY = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'user' -%}{% set content = message.content %}EXPRESSION
{%- else -%}{{ message.content }}{%- endif -%}
{{ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""


@pytest.fixture
def with_body(trained, tmp_path):
    def make(expression: str) -> ChatTokenizer:
        (tmp_path / "template.jinja").write_text(BODY.replace("EXPRESSION", expression), encoding="utf-8")
        return ChatTokenizer.load(trained, str(tmp_path / "template.jinja"))

    return make


def joined(tokenizer, conversations, rows, tools=None, variables=None) -> int:
    """How many of the rows are joined; all of them must be what they are one by one."""
    tools, variables = tools or [None] * len(rows), variables or [{}] * len(rows)
    shapes = Shapes(labeller(tokenizer))
    column = conversations(rows).column("messages")
    for _ in range(2):
        found = labelled_rows(shapes, column, tools, variables)
        for row, one, own, values in zip(rows, found, tools, variables, strict=True):
            alone = outcome(labeller(tokenizer), row, own, variables=values) if row else "empty: no messages"
            assert one == alone, row
    return shapes.joined


TEXTS = [
    "a", "yes", "b c", " led", "trailed ", "ab", "x", "xa", "ax", "axab", "7", "-1", "<think>", "a\nb", "A", "\u00e9",
    "{}", "%s", '"q"',
]  # fmt: skip
LOOKS = [
    "{{ content | upper }}", "{{ content[0] }}{{ content }}", "{{ '%s' % content }}", "{{ content | truncate(3) }}",
    "{{ content }}{% if content | length > 3 %}long{% endif %}", "{{ content }}{% if content in 'abc' %}!{% endif %}",
    "{{ content | tojson(ensure_ascii=true) }}", "{% for character in content %}{{ character }}{% endfor %}",
    "{{ content }}{% if messages | length > 1 and content == messages[1].content %}!{% endif %}",
    "{{ content.split() | join(' ') }}",
    "{{ content }}{% if content.isdigit() %}!{% endif %}", "{{ messages[0] | tojson }}", "{{ content | tojson }}",
    "{{ content | trim }}", "{{ content.rstrip('\\n') }}", "{{ content }}{% if content == 'ab' %}!{% endif %}",
    "{{ content }}{% if content.startswith('x') %}!{% endif %}", "{{ content }}{% if 'x' in content %}!{% endif %}",
    "{{ content }}{% if content.endswith(('x', 'y')) %}!{% endif %}", "{{ content.split('</t>')[-1] }}",
    "{{ content }}{% if 'xa' in content %}!{% endif %}", "{{ content.replace('x', 'y') }}",
    "{{ content }}{{ content | int }}",
]  # fmt: skip


@pytest.mark.parametrize("expression", LOOKS)
def test_a_template_that_looks_at_texts_gives_the_same_as_row_by_row(with_body, conversations, expression):
    tokenizer, rows = with_body(expression), [[user(text), says("yes")] for text in TEXTS]
    joined(tokenizer, conversations, rows)
    joined(tokenizer, conversations, rows, None, [{"more": "than texts"}] * len(rows))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("{{ content }}", 14),  # not "<think>", nor those with outer white space: they have shapes of their own
        ("{{ content | upper }}", 0),
        ("{{ content }}{% if content.isdigit() %}!{% endif %}", 0),
        ("{{ content }}{% if 'xa' in content %}!{% endif %}", 10),
    ],
)
def test_plain_texts_are_joined_unless_the_template_asks_about_them(with_body, conversations, expression, expected):
    found = joined(with_body(expression), conversations, [[user(text), says("yes")] for text in TEXTS])
    assert (found > 0) == (expected > 0) and found >= expected


def call(name: str, arguments: object) -> str:
    return json.dumps([{"id": "a1", "type": "function", "function": {"name": name, "arguments": arguments}}])


def result(text: str) -> dict:
    return {"role": "tool", "content": text, "tool_call_id": "a1"}


TOOL = '[{"type": "function", "function": {"name": "%s", "parameters": {"b": [1, null], "a": {}}}}]'
FIELDS = {
    "weights": [[user(f"a{i}"), says("b", weight=w)] for i, w in enumerate((0.0, 0.0, 0.5, 1.0))],
    "names": [[user(t) | {"name": t}, says("b")] for t in ("Ada", "Bob")],
    "thoughts in a field": [[user("a"), says(t, reasoning_content=t + "?")] for t in ("x", "y")],
    "thoughts in content": [[user("a"), says(f"<think>\n{t}\n</think>\n\n{t}!")] for t in ("x", "y", "long " * 9)],
    "thoughts that the prompt begins": [[user("a"), says(f"{t}\n</think>\n{t}!")] for t in ("x", "y")],
    "white space": [[user(f" {t}\n"), says(f"\n{t}")] for t in ("x", "y")],
    "calls": [[user("a"), says("", tool_calls=call(n, {n: 1})), result(n), says(n)] for n in ("f", "g")],
    "calls in text": [[user("a"), says(n, tool_calls=call(n, json.dumps({n: "\u4e2d"})))] for n in ("f", "g")],
    "no keys": [[user("a"), says(n, tool_calls=call(n, "{}"))] for n in ("f", "g")],
    "several turns": [[user(t), says(t), user(t), says(f"<think>{t}</think>{t}")] for t in ("x", "y")],
    "half a character": [[user(t), says("", tool_calls=call("f", {"a": "\ud83d"}))] for t in "ab"],
    "no list": [[user(t), says("", tool_calls='{"name": "f"}')] for t in "ab"],
    "blank": [[user(t), says(" ")] for t in "ab"],
    "nothing": [[], []],
    "marks": [[user(t), says("\ufdd6a\ufdd0\U000f0000")] for t in "ab"],
}  # fmt: skip


@pytest.mark.parametrize("name", ["minimind", "qwen2", "trained"])
@pytest.mark.parametrize("fields", FIELDS)
def test_every_field_gives_the_same_as_row_by_row(request, load, conversations, name, fields):
    folder = request.getfixturevalue("trained") if name == "trained" else request.getfixturevalue("real")(name)
    rows = FIELDS[fields]
    tools = [TOOL % f"f{i}" if fields in ("calls", "several turns") else None for i in range(len(rows))]
    joined(load(folder), conversations, rows, tools, [{"loud": fields == "names"}] * len(rows))


def test_a_plan_that_would_give_something_else_is_not_used(small, conversations, monkeypatch):
    """A plan is compared with the first row of its shape."""
    rows = [[user(f"a{i}"), says("b")] for i in range(4)]
    shapes = Shapes(labeller(small))
    right = Shapes._plan
    monkeypatch.setattr(Shapes, "_plan", lambda *args: (p := right(*args))._replace(gaps=[*p.gaps[:-1], "?"]))
    found = labelled_rows(shapes, conversations(rows).column("messages"), [None] * 4, [{}] * 4)
    assert found == [label(small, row) for row in rows]


def test_a_shape_that_the_template_refuses_is_refused_without_rendering_its_rows(
    real, load, conversations, monkeypatch
):
    tokenizer = load(real("qwen2"))
    rows = [[user(f"a{i}"), says("b")] for i in range(4)]
    shapes, column = Shapes(labeller(tokenizer)), conversations(rows).column("messages")
    first = labelled_rows(shapes, column, [TOOL % "f"] * 4, [{}] * 4)
    assert [found.split(":")[0] for found in first] == ["template_drops_tools"] * 4
    monkeypatch.setattr(ChatTokenizer, "render", lambda *_, **__: pytest.fail("rendered again"))
    assert labelled_rows(shapes, column, [TOOL % "f"] * 4, [{}] * 4) == first


SPECIAL = ("<|im_end|>", "<|im_start|>assistant\n", "<think>", "</think>", "<tool_response>\nx\n</tool_response>")
PLAIN = ("a", "", " ", "\n", " led", "x \n", "7", "None", "same", "\u4f60\u597d", "%s {}", '{"a": 1}')
MARKS = ("\ufdd6", "\ufdd0\U000f0000", "\ufdd0", "\U000f0001")
HOSTILE = st.sampled_from([*PLAIN, *SPECIAL, *MARKS])
TURNS = st.one_of(
    HOSTILE.map(user),
    HOSTILE.map(says),
    st.tuples(HOSTILE, HOSTILE).map(lambda texts: says(texts[0], reasoning_content=texts[1])),
    st.tuples(HOSTILE, HOSTILE).map(lambda texts: says(texts[0], tool_calls=call("f", {"x": texts[1]}))),
    HOSTILE.map(result),
)


@settings(max_examples=40)
@given(rows=st.lists(st.lists(TURNS, max_size=6), min_size=1, max_size=8))
@pytest.mark.parametrize("name", ["minimind", "qwen2"])
def test_hostile_conversations_are_refused_or_hold_their_answers_and_no_special_token_of_a_text(
    real, load, conversations, name, rows
):
    """Mark characters, special tokens in texts, blank contents: the same from a plan as row by row."""
    tokenizer = load(real(name))
    joined(tokenizer, conversations, rows)
    for row in rows:
        try:
            made = label(tokenizer, row)
        except RenderError:
            continue
        said = [m["content"].rpartition("</think>")[2].strip() for m in row if m["role"] == "assistant"]
        assert [text in made.text[a:b] for text, (a, b) in zip(said, made.labels, strict=True)] == [True] * len(said)
        written = len(RESERVED_SPELLING.findall(made.text))
        ids = tokenizer.encode([made.text])[0].ids
        assert sum(i in tokenizer.special.values() for i in ids) == written
