"""Conversations that are joined by the plan of their shape are those that the template renders one by one."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from datakit.pack import _kernels_labels as kernels
from datakit.pack import shapes
from datakit.pack.chat import ChatTokenizer
from datakit.pack.labels import label
from datakit.pack.shapes import Joined, Shapes, make_plan
from datakit.pack.tokenize import EngineChoice, Tokenize, TokenizeConfig
from tests.pack.by_hand import says, user

PAIR = (("user", True), ("assistant", True))
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


LOOKS = [
    "{{ content }}{% if content | length > 3 %}long{% endif %}",
    "{{ content | upper }}",
    "{{ content[0] }}{{ content }}",
    "{{ content }}{% if content in 'abc' %}!{% endif %}",
    "{{ content }}{% if content not in 'abc' %}!{% endif %}",
    "{{ content | tojson }}",
    "{{ '%s' % content }}",
    "{{ '{}'.format(content) }}",
    "{{ content }}{% if 'abc'.startswith(content) %}!{% endif %}",
    "{% for character in content %}{{ character }}{% endfor %}",
    "{{ content }}{% if content == messages[1].content %}!{% endif %}",
    "{{ content }}{% if content > 'b' %}!{% endif %}",
    "{{ content }}{{ {'a': 'x'}.get(content, '') }}",
    "{{ content }}{% if content is upper %}!{% endif %}",
    "{{ content.split() | join(' ') }}",
    "{{ (content + '!').strip() }}",
    "{{ content }}{% if (messages | map(attribute='content') | map('length') | sum) > 4 %}!{% endif %}",
    "{{ content | reverse }}",
    "{{ content }}{% if content.isdigit() %}!{% endif %}",
    "{{ content.encode() }}",
    "{{ content | truncate(3) }}",
    "{{ content }}{% if content is in ('abc') %}!{% endif %}",
    "{{ messages[0] | tojson }}",
    "{{ content }}{{ content | int }}",
]


@pytest.mark.parametrize("expression", LOOKS)
def test_a_template_that_depends_on_contents_has_no_plan(with_body, expression):
    assert make_plan(with_body(expression), PAIR, "all") is None


@pytest.mark.parametrize(
    ("expression", "fits", "other"),
    [
        ("{{ content }}", ["a", " a ", "<think>", "x" * 9], []),
        ("{{ content + '' }}{{ content ~ '!' }}", ["a", " b"], []),
        ("{{ content | trim }}", ["a", "a b"], [" a", "a\n", "\u3000a", " "]),
        ("{{ content.rstrip('\\n') }}", ["a", " a "], ["a\n"]),
        ("{{ content }}{% if content.startswith('x') %}!{% endif %}", ["ab"], ["xa", "ax"]),
        ("{{ content }}{% if content.endswith(('x', 'y')) %}!{% endif %}", ["ab"], ["ax", "ay"]),
        ("{{ content }}{% if 'x' in content %}!{% endif %}", ["ab"], ["axb"]),
        ("{{ content }}{% if 'x' not in content %}!{% endif %}", ["ab"], ["axb"]),
        ("{{ content }}{% if content in ['ab', 'c'] %}!{% endif %}", ["b"], ["ab", "c"]),
        ("{{ content }}{% if content == 'ab' %}!{% endif %}", ["b"], ["ab"]),
        ("{{ content.split('</t>')[-1] }}", ["ab"], ["a</t>b"]),
        ("{{ content.replace('x', 'y') }}", ["ab"], ["axb"]),
        ("{{ content if content is string else content[0] }}{% if content %}!{% endif %}", ["ab", " "], []),
    ],
)
def test_contents_fit_a_plan_if_they_give_the_same_answers(with_body, expression, fits, other):
    tokenizer = with_body(expression)
    plan = make_plan(tokenizer, PAIR, "all")
    assert plan is not None
    for text in fits:
        assert plan.fitting([[text], ["yes"]]) == [0]
        assert plan.joined([[text], ["yes"]]) == [label(tokenizer, [user(text), says("yes")]).text]
    assert plan.fitting([[*fits, *other], ["yes"] * len([*fits, *other])]) == list(range(len(fits)))


def column(rows, conversations) -> pa.ListArray:
    return conversations(rows).column("messages")


def test_rows_with_fields_of_their_own_are_not_joined(small, conversations):
    given = [
        [user("a"), says("b")],
        [user("a"), says("b", weight=0.0)],
        [user("a"), says("b", reasoning_content="hm")],
        [user("a"), says("", tool_calls='[{"name": "f", "arguments": {}}]')],
        [user("a") | {"name": "Ada"}, says("b")],
        [],
        [user("a"), says("b"), user("c")],
        [user("c"), says("d")],
    ]
    usable = np.ones(len(given), bool)
    assert Shapes(small, "all").joined(column(given, conversations), usable).rows == [0, 7]
    usable[0] = False
    assert Shapes(small, "all").joined(column(given, conversations).slice(1), usable[1:]).rows == []


def test_a_plan_that_is_wrong_is_found_and_not_used(small, conversations, monkeypatch):
    rows = [[user(f"a{i}"), says(f"b{i}")] for i in range(5)]
    plan = make_plan(small, PAIR, "all")
    wrong = replace(plan, edges=((plan.edges[0][0] - 1, 1), plan.edges[1]))
    monkeypatch.setattr(shapes, "make_plan", lambda *given: wrong)
    made = Shapes(small, "all")
    assert made.joined(column(rows, conversations), np.ones(5, bool)).rows == []
    assert made.plans == {PAIR: None}


@pytest.mark.parametrize("engine", ["fastokens", "tokenizers"])
@pytest.mark.parametrize("train_on", ["all", "last"])
def test_decisions_are_the_same_with_and_without_plans(trained, conversations, monkeypatch, engine, train_on):
    texts = [
        "fine",
        "",
        " ",
        "a\ufdd0\U000f0001",
        "<|im_end|>",
        "e\u0301",
        "\ufdd0",
        "東京" * 40,
        "</think>x",
        " led\n",
    ]
    rows = [[user(a), says(b), user("and?"), says(a + b)] for a in texts for b in texts]
    config = TokenizeConfig(tokenizer=str(trained), train_on=train_on, min_label_tokens=5)
    joined, found = Shapes.joined, []
    counts = []
    for way in (joined, lambda *given: Joined([], [], [], [], [], [])):
        monkeypatch.setattr(Shapes, "joined", way)
        stage = Tokenize(config, "conversation", EngineChoice(engine))
        found.append(stage.decide(conversations(rows)))
        counts.append(stage.measured())
    assert found[0].reasons.equals(found[1].reasons) and found[0].detail.equals(found[1].detail)
    assert found[0].columns == found[1].columns and found[0].notes == found[1].notes
    assert counts[0] == counts[1]


@pytest.mark.parametrize("name", ["qwen2", "minimind"])
def test_real_conversations_are_the_same_with_and_without_plans(shared, real, conversations, monkeypatch, name):
    with (shared / "corpora/sft/sharegpt_zh_1k.jsonl").open(encoding="utf-8") as lines:
        given = [json.loads(line)["conversations"] for _, line in zip(range(150), lines, strict=False)]
    role = {"human": "user", "gpt": "assistant"}
    rows = [[{"role": role.get(m["from"], m["from"]), "content": m["value"]} for m in row] for row in given]
    joined, found = Shapes.joined, []
    for way in (joined, lambda *given: Joined([], [], [], [], [], [])):
        monkeypatch.setattr(Shapes, "joined", way)
        stage = Tokenize(TokenizeConfig(tokenizer=str(real(name))), "conversation", EngineChoice("fastokens"))
        found.append(stage.decide(conversations(rows)))
    assert found[0].reasons.equals(found[1].reasons) and found[0].columns == found[1].columns


def test_the_kernel_places_edges_as_a_search_in_the_offsets_does():
    rng = np.random.default_rng(7)
    spelled = [b"a", b"bc", b"def", b"", b"\xe4\xb8\xad"]
    starts = np.cumsum([0, *map(len, spelled)])
    rows = [rng.integers(0, 5, n).astype(np.int32) for n in (7, 0, 30, 5)]
    texts = [b"".join(spelled[i] for i in row) for row in rows]
    texts[3] = texts[3][:-1] + b"?" if texts[3] else b"?"
    edges = [np.sort(rng.integers(0, len(text) + 1, 6)) for text in texts]
    offsets, begins, bounds = (np.cumsum([0, *map(len, lists)]) for lists in (rows, texts, edges))
    structural = np.array([False, True, False, False, False])
    found, counts, placed = kernels.place(
        np.concatenate(rows), offsets, np.frombuffer(b"".join(spelled), np.uint8), starts, structural,
        np.frombuffer(b"".join(texts), np.uint8), begins, np.concatenate(edges), bounds,
    )  # fmt: skip
    assert placed.tolist() == [True, True, True, False]
    for k in range(3):
        begun = np.cumsum([0, *(len(spelled[i]) for i in rows[k])])[:-1]
        assert found[bounds[k] : bounds[k + 1]].tolist() == np.searchsorted(begun, edges[k]).tolist()
        assert counts[k] == (rows[k] == 1).sum()
