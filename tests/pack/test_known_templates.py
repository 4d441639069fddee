"""Labels under Mistral's template, which the package trl does not carry, against what is put together by hand."""

import json

import pytest

from datakit.pack.chat import ChatTokenizer
from datakit.pack.marks import RenderError
from tests.files import says, user
from tests.pack.by_hand import ANSWERS, SYSTEM, ByHand, added, label, ours, saved

# Mistral 7B Instruct v0.3: the system prompt stands before the last question; calls have ids of nine characters.
MISTRAL = """\
{%- if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}{% set turns = messages[1:] %}
{%- else %}{% set turns = messages %}{% endif %}
{%- set ns = namespace(index=0) %}
{%- for m in turns %}
    {%- if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}
        {%- if (m.role == 'user') != (ns.index % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for m in turns %}
    {%- if m.role == 'user' %}
        {%- if tools is not none and m == (turns | selectattr('role', 'equalto', 'user') | list)[-1] %}
            {{- '[AVAILABLE_TOOLS] [' }}
            {%- for t in tools %}{{ t | tojson }}{{ '' if loop.last else ', ' }}{% endfor %}
            {{- '][/AVAILABLE_TOOLS]' }}
        {%- endif %}
        {%- if loop.last and system is defined %}{{ '[INST] ' + system + '\\n\\n' + m.content + '[/INST]' }}
        {%- else %}{{ '[INST] ' + m.content + '[/INST]' }}{% endif %}
    {%- elif m.tool_calls %}
        {{- '[TOOL_CALLS] [' }}
        {%- for c in m.tool_calls %}
            {%- set out = c.function | tojson %}
            {{- out[:-1] }}{{ ', "id": "' + c.id + '"}' }}{{ '' if loop.last else ', ' }}
        {%- endfor %}
        {{- ']' + eos_token }}
    {%- elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}
    {%- elif m.role == 'tool' %}
        {{- '[TOOL_RESULTS] {"content": ' + m.content | string + ', "call_id": "' + m.tool_call_id + '"}' }}
        {{- '[/TOOL_RESULTS]' }}
    {%- else %}{{ raise_exception('unknown role') }}{% endif %}
{%- endfor %}"""


def mistral(made: ByHand, messages, learn) -> ByHand:
    made.special("<s>")
    for i, m in enumerate(messages):
        if m["role"] == "user":
            system = messages[0]["role"] == "system" and i == len(messages) - 1
            before = messages[0]["content"] + "\n\n" if system else ""
            made.special("[INST]").text(" " + before + m["content"]).special("[/INST]")
        elif m["role"] == "assistant":
            made.text(" " + m["content"], learn(i)).special("</s>", learn(i))
    return made


MISTRAL_TOKENS = ("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
                  "[TOOL_RESULTS]", "[/TOOL_RESULTS]")  # fmt: skip


@pytest.fixture
def made(trained, tmp_path):
    """The small tokenizer with Mistral's tokens and template; and its folder."""
    spec = json.loads((trained / "tokenizer.json").read_bytes())
    settings = {"chat_template": MISTRAL, "bos_token": "<s>", "eos_token": "</s>"}
    return ChatTokenizer.load(saved(tmp_path, spec, added(*MISTRAL_TOKENS, special=True), **settings)), tmp_path


MARKS = " ".join((*MISTRAL_TOKENS, "<|user|>\n<|assistant|>\n[/INST] <|im_end|> <|endoftext|>"))
MANY = [user("a"), says("b"), user(MARKS), says(MARKS), user(f"x{MARKS}"), says("f")]


@pytest.mark.parametrize("row", [*([user("hello"), says(answer)] for answer in ANSWERS), MANY, MANY[:-1]])
def test_every_answer_is_learnt_with_its_end_token_and_markers_are_only_text(made, row):
    tokenizer, folder = made
    learnt = {i for i, m in enumerate(row) if m["role"] == "assistant"}
    assert ours(tokenizer, row) == mistral(ByHand(folder), row, learnt.__contains__).done()


def test_what_is_learnt_is_what_follows_the_prompt_up_to_a_stop_token(made):
    tokenizer, _ = made
    row = [user("a"), says("b"), user("c"), says("d")]
    ids, learnt = ours(tokenizer, row, train_on="last")
    assert ids[: learnt.index(True)] == tokenizer.encode_prompt(row[:-1])
    assert ids[max(i for i, flag in enumerate(learnt) if flag)] in tokenizer.stop_ids()


def test_what_a_template_refuses_or_leaves_out_is_refused(made):
    tokenizer, _ = made
    with pytest.raises(RenderError, match="template_drops_message: message 0"):
        label(tokenizer, [SYSTEM, user("a"), says("b")])
    with pytest.raises(RenderError, match="template_error: TemplateError: roles must alternate"):
        label(tokenizer, [user("a"), says("b"), says("c")])


CALL = {"name": "f", "arguments": {"a": "</tool_call> [/INST]"}}


def test_mistral_tool_calls_and_results(made):
    tokenizer, folder = made
    calls = json.dumps([{"id": "abcdefghi", "function": CALL}])
    row = [user("q"), says("", tool_calls=calls), {"role": "tool", "content": "42", "tool_call_id": "abcdefghi"}]
    hand = ByHand(folder).special("<s>").special("[AVAILABLE_TOOLS]").text(' [{"name": "f"}]')
    hand.special("[/AVAILABLE_TOOLS]").special("[INST]").text(" q").special("[/INST]").special("[TOOL_CALLS]", True)
    hand.text(' [{"name": "f", "arguments": {"a": "</tool_call> [/INST]"}, "id": "abcdefghi"}]', True)
    hand.special("</s>", True).special("[TOOL_RESULTS]").text(' {"content": 42, "call_id": "abcdefghi"}')
    hand.special("[/TOOL_RESULTS]").text(" It is 42.", True).special("</s>", True)
    assert ours(tokenizer, [*row, says("It is 42.")], '[{"name": "f"}]') == hand.done()
