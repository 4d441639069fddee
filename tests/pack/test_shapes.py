"""Conversations that are joined by the plan of their shape are those that the template renders one by one."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from datakit.pack import _kernels_labels as kernels
from datakit.pack import shapes
from datakit.pack.chat import ChatTokenizer
from datakit.pack.encoder import EngineChoice
from datakit.pack.labels import bytes_before, label
from datakit.pack.shapes import PLAIN, Form, Joined, Sequences, Shape, Shapes, make_plan
from datakit.pack.template import Watch
from datakit.pack.tokenize import Tokenize, TokenizeConfig
from datakit.pack.tracked import spelled
from datakit.stage import with_column
from tests.pack.by_hand import says, user

PAIR = Shape(tuple(Form(role, (("content", PLAIN),)) for role in ("user", "assistant")))
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
    "{{ content | tojson(ensure_ascii=true) }}",
    "{{ '%s' % content }}",
    "{{ '{}'.format(content) }}",
    "{{ content }}{% if 'abc'.startswith(content) %}!{% endif %}",
    "{% for character in content %}{{ character }}{% endfor %}",
    "{{ content }}{% if content == messages[1].content %}!{% endif %}",
    "{{ content }}{% if content > 'b' %}!{% endif %}",
    "{{ content }}{{ {'a': 'x'}.get(content, '') }}",
    "{{ content }}{% if content is upper %}!{% endif %}",
    "{{ content.split() | join(' ') }}",
    "{{ content }}{% if (messages | map(attribute='content') | map('length') | sum) > 4 %}!{% endif %}",
    "{{ content | reverse }}",
    "{{ content }}{% if content.isdigit() %}!{% endif %}",
    "{{ content.encode() }}",
    "{{ content | truncate(3) }}",
    "{{ content }}{% if content is in ('abc') %}!{% endif %}",
    "{{ messages[0] | tojson | length }}",
    "{{ messages[0] | tojson | tojson }}",
    "{{ messages[0] | string }}",
    "{{ content }}{{ content | int }}",
]


@pytest.mark.parametrize("expression", LOOKS)
def test_a_template_that_depends_on_contents_has_no_plan(with_body, expression):
    assert make_plan(with_body(expression), PAIR, "all", Watch()) is None


@pytest.mark.parametrize(
    ("expression", "fits", "other"),
    [
        ("{{ content }}", ["a", " a ", "<think>", "x" * 9], []),
        ("{{ content + '' }}{{ content ~ '!' }}", ["a", " b"], []),
        ("{{ (content + '!').strip() }}", ["a", "a "], [" a", "\na"]),
        ("{{ messages[0] | tojson }}", ["a", '"'], []),
        ("{{ content | tojson }}", ["a", ' "\\\n\u2028🦊'], []),
        ("{{ {'a': content} | tojson }}{{ {'b': [content]} | tojson(indent=2) }}", ['"a"', "\n"], []),
        ("{{ ('<x>' + content).split('<x>')[1] }}", ["ab", "x>"], ["a<x>", "<x>"]),
        ("{{ ('<x>' + content + '</x>').replace('<x>', '[').replace('</x>', ']') }}", ["a", "<"], ["<x>", "</x>a"]),
        ("{{ content }}{% if (content + 'b').endswith('ab') %}!{% endif %}", ["xb", "b"], ["a", "xa"]),
        ("{{ content }}{% if 'aXb' in content + 'X' + content %}!{% endif %}", ["cd", "b"], ["aXb", "a", "ba"]),
        ("{{ (content + '/x').removesuffix('/x').removeprefix('a') }}", ["b"], ["a", "ba"]),
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
    plan = make_plan(tokenizer, PAIR, "all", Watch())
    assert plan is not None

    def columns(texts):
        given = texts, ["yes"] * len(texts)
        return {i: [spelled(t, how) for t in given[m]] for i, (m, _, how) in enumerate(plan.places)}

    for text in fits:
        assert plan.fitting(columns([text]), 1) == [0], text
        assert plan.joined(columns([text])) == [label(tokenizer, [user(text), says("yes")]).text]
    assert plan.fitting(columns([*fits, *other]), len([*fits, *other])) == list(range(len(fits)))


def column(rows, conversations) -> pa.ListArray:
    return conversations(rows).column("messages")


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
    "one object without keys": [[user("a"), says(n, tool_calls=call(n, "{}"))] for n in ("f", "g")],
    "several turns": [[user(t), says(t), user(t), says(f"<think>{t}</think>{t}")] for t in ("x", "y")],
}  # fmt: skip
SINGLE = {
    "half a character": [user("a"), says("", tool_calls=call("f", {"a": "\ud83d"}))],
    "no list": [user("a"), says("", tool_calls='{"name": "f"}')],
    "much white space": [user("a"), says(" " * 20 + "b</think>")],
    "nothing": [],
}


@pytest.mark.parametrize("template", ["", "chatml", "keys"])
def test_rows_with_fields_of_their_own_are_joined_to_what_the_template_renders(
    trained, tmp_path, conversations, template
):
    if template == "keys":  # as GLM's
        given = "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }};{% endfor %}"
        calls = "{% for c in message.tool_calls or [] %}{{ c.function.name }}" + given + "{% endfor %}"
        source = BODY.replace("{{ message.content }}{%- endif", "{{ message.content }}" + calls + "{%- endif")
        (tmp_path / "t.jinja").write_text(source.replace("EXPRESSION", "{{ content }}"), encoding="utf-8")
        template = str(tmp_path / "t.jinja")
    tokenizer = ChatTokenizer.load(trained, template)
    rows = [row for several in FIELDS.values() for row in several] + list(SINGLE.values())
    tools = [TOOL % "f" if len(row[0]["content"]) == 1 else None for row in rows if row] + [None]
    tools += [TOOL % "g" if t else "[]" for t in tools]
    rows, variables = rows * 2, [{}] * len(rows) + [{"x": 1}] * len(rows)
    made = Shapes(tokenizer, "all").joined(Sequences.of(column(rows, conversations)), tools, variables)
    edges = iter(made.edges)
    for row, text, size, number in zip(made.rows, made.texts, made.sizes, made.num_edges, strict=True):
        wanted = label(tokenizer, rows[row], tools[row], variables=variables[row])
        assert (text, size) == (wanted.text, len(wanted.text.encode())), rows[row]
        assert [next(edges) for _ in range(number)] == bytes_before(text, [c for s in wanted.labels for c in s])
    assert len(made.rows) >= (0.9 if template == "chatml" else 0.5) * sum(map(len, FIELDS.values()))
    assert not {row % (len(rows) // 2) for row in made.rows} & set(range(len(rows) // 2)[-len(SINGLE) :])


def test_a_content_that_continues_the_generation_prompt_is_rendered_alone(with_body, conversations):
    """The prompt of DeepSeek-V3 ends with `<think>`: an answer of this text alone is not learned."""
    tokenizer = with_body("{{ content }}")
    source = tokenizer.template_source.replace("message.role + '\\n'", "message.role + ': '")
    source = source.replace("assistant\\n' }}{%- endif", "assistant: <think>' }}{%- endif")
    assert "role + ': '" in source and "assistant: <think>" in source
    Path(tokenizer.where).with_name("own.jinja").write_text(source, encoding="utf-8")
    tokenizer = ChatTokenizer.load(Path(tokenizer.where), str(Path(tokenizer.where).with_name("own.jinja")))
    rows = [[user("a"), says(text)] for text in ("x", "y", "<think>", "<think>z", "z")]
    made = Shapes(tokenizer, "all").joined(Sequences.of(column(rows, conversations)), [None] * 5, [{}] * 5)
    assert sorted(made.rows) == [0, 1, 4]


def test_a_plan_that_is_wrong_is_found_and_not_used(small, conversations, monkeypatch):
    rows = [[user(f"a{i}"), says(f"b{i}")] for i in range(5)]
    plan = make_plan(small, PAIR, "all", Watch())
    wrong = replace(plan, edges=((plan.edges[0][0] - 1, 1), plan.edges[1]))
    monkeypatch.setattr(shapes, "make_plan", lambda *given: wrong)
    made = Shapes(small, "all")
    assert made.joined(Sequences.of(column(rows, conversations)), [None] * 5, [{}] * 5).rows == []
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
    for way in (joined, lambda *given: Joined()):
        monkeypatch.setattr(Shapes, "joined", way)
        stage = Tokenize(config, "conversation", EngineChoice(engine))
        found.append(stage.decide(conversations(rows)))
        counts.append(stage.measured())
    assert found[0].reasons.equals(found[1].reasons) and found[0].detail.equals(found[1].detail)
    assert found[0].columns == found[1].columns and found[0].notes == found[1].notes
    assert counts[0] == counts[1]


def both_ways(stage, batch, monkeypatch):
    """The decisions of a stage about a batch, with plans and without; and how many conversations were joined."""
    joined, numbers = Shapes.joined, []

    def counted(*given):
        made = joined(*given)
        numbers.append(len(made.rows))
        return made

    found = []
    for way in (counted, lambda *given: Joined()):
        monkeypatch.setattr(Shapes, "joined", way)
        found.append(stage().decide(batch))
    return *found, sum(numbers)


STRIPS = """\
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content and loop.last %}{{ '[' + m.reasoning_content + ']' }}{% endif %}{{ m.content }}<|im_end|>
{% endfor %}{% if tools %}{{ tools | length }}{% endif %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
THOUGHT = {"role": "assistant", "content": "yes", "reasoning_content": "hm, why not"}
CUT = {"role": "assistant", "content": "<think>\nno end"}
ANSWERS = [
    *([], [says("yes")], [says("no"), user("why?"), says("so")], [THOUGHT], [says("<think>\nhm\n</think>\n\nyes")]),
    *([{"role": "assistant", "content": "left out", "weight": 0}], [user("no answer")], [says(" \n")], [CUT]),
]
PROMPTS = [
    [],
    [user("a?")],
    [user("b?"), THOUGHT, user("and?")],
    [{"role": "system", "content": "be brief"}, user("c?")],
]


@pytest.mark.parametrize("template", ["", "strips"])
@pytest.mark.parametrize("min_label_tokens", [0, 1])
def test_pairs_are_the_same_with_and_without_plans(trained, pairs, tmp_path, monkeypatch, template, min_label_tokens):
    if template:  # earlier thoughts, as Qwen3's
        (tmp_path / "t.jinja").write_text(STRIPS, encoding="utf-8")
        template = str(tmp_path / "t.jinja")
    config = TokenizeConfig(tokenizer=str(trained), chat_template=template, min_label_tokens=min_label_tokens)
    rows = [(p, a, b) for p in PROMPTS for a in ANSWERS for b in ANSWERS]
    extra = [None if n % 5 else '{"chat_template_kwargs": {"x": true}}' for n in range(len(rows))]
    tools = [TOOL % "f" if len(p) == 1 and n % 2 else None for n, (p, _, _) in enumerate(rows)]
    batch = with_column(with_column(pairs(rows), "extra", pa.array(extra)), "tools", pa.array(tools))

    def stage():
        return Tokenize(config, "preference", EngineChoice("fastokens"))

    planned, alone, joined = both_ways(stage, batch, monkeypatch)
    assert planned.reasons.equals(alone.reasons) and planned.detail.equals(alone.detail)
    assert planned.columns == alone.columns and planned.notes == alone.notes
    assert joined > len(rows) / 2 and {*planned.reasons.to_pylist()} >= {None, "empty"}


def test_sequences_of_answers_are_the_same_with_and_without_plans(trained, tmp_path, conversations, monkeypatch):
    (tmp_path / "t.jinja").write_text(STRIPS, encoding="utf-8")
    config = TokenizeConfig(tokenizer=str(trained), chat_template=str(tmp_path / "t.jinja"), thinking="every_turn")
    rows = [p + a + [user("go on")] + b for p in PROMPTS[1:] for a in ANSWERS for b in ANSWERS]

    def stage():
        return Tokenize(config, "conversation", EngineChoice("fastokens"))

    planned, alone, joined = both_ways(stage, conversations(rows), monkeypatch)
    assert planned.reasons.equals(alone.reasons) and planned.columns == alone.columns
    assert planned.notes == alone.notes and joined > len(rows)
    starts = planned.columns["sequence_starts"].to_pylist()
    assert max(map(len, filter(None, starts))) == 5


@pytest.mark.parametrize("name", [pytest.param("qwen2", marks=pytest.mark.campaign), "minimind"])
def test_real_conversations_are_the_same_with_and_without_plans(shared, real, conversations, monkeypatch, name):
    with (shared / "corpora/sft/sharegpt_zh_1k.jsonl").open(encoding="utf-8") as lines:
        given = [json.loads(line)["conversations"] for _, line in zip(range(150), lines, strict=False)]
    role = {"human": "user", "gpt": "assistant"}
    rows = [[{"role": role.get(m["from"], m["from"]), "content": m["value"]} for m in row] for row in given]
    joined, found = Shapes.joined, []
    for way in (joined, lambda *given: Joined()):
        monkeypatch.setattr(Shapes, "joined", way)
        stage = Tokenize(TokenizeConfig(tokenizer=str(real(name))), "conversation", EngineChoice("fastokens"))
        found.append(stage.decide(conversations(rows)))
    assert found[0].reasons.equals(found[1].reasons) and found[0].columns == found[1].columns


def test_the_kernel_places_edges_as_a_search_in_the_offsets_does():
    rng = np.random.default_rng(7)
    spelled = [b"a", b"bc", b"def ghi ", b"", b"\xe4\xb8\xad of twelve"]
    starts = np.cumsum([0, *map(len, spelled)])
    rows = [rng.integers(0, 5, n).astype(np.int32) for n in (7, 0, 30, 5)]
    texts = [b"".join(spelled[i] for i in row) for row in rows]
    texts[3] = texts[3][:-1] + b"?" if texts[3] else b"?"
    edges = [np.sort(rng.integers(0, len(text) + 1, 6)) for text in texts]
    offsets, begins, bounds = (np.cumsum([0, *map(len, lists)]) for lists in (rows, texts, edges))
    table = np.zeros((5, 2), np.uint64)
    for i, token in enumerate(spelled):
        table[i] = int.from_bytes(token[:8], "little"), 2 * len(token) + (i == 1)
    joined = b"".join(texts)
    found, counts, placed = kernels.place(
        np.concatenate(rows), offsets, table, np.frombuffer(b"".join(spelled), np.uint8), starts,
        np.frombuffer(joined + bytes(16 - len(joined) % 8), np.uint64), begins, np.concatenate(edges), bounds,
    )  # fmt: skip
    assert placed.tolist() == [True, True, True, False]
    for k in range(3):
        begun = np.cumsum([0, *(len(spelled[i]) for i in rows[k])])[:-1]
        assert found[bounds[k] : bounds[k + 1]].tolist() == np.searchsorted(begun, edges[k]).tolist()
        assert counts[k] == (rows[k] == 1).sum()
