"""Labels under two well-known templates that the package trl does not carry, against what is put together by hand."""

import json

import pytest

from datakit.pack.chat import ChatTokenizer
from datakit.pack.marks import RenderError
from tests.pack.by_hand import ANSWERS, SYSTEM, ByHand, added, label, ours, saved, says, user

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


# Tulu 3: the last answer has no new line behind its end token.
TULU3 = """\
{% for m in messages %}{% if m['role'] != 'assistant' %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '\n' }}\
{% elif loop.last %}{{ '<|assistant|>\n' + m['content'] + eos_token }}\
{% else %}{{ '<|assistant|>\n' + m['content'] + eos_token + '\n' }}{% endif %}\
{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}"""


def tulu3(made: ByHand, messages, learn) -> ByHand:
    for i, m in enumerate(messages):
        made.text(f"<|{m['role']}|>\n").text(m["content"], learn(i))
        if m["role"] == "assistant":
            made.special("<|endoftext|>", learn(i))
        if m["role"] != "assistant" or i < len(messages) - 1:
            made.text("\n")
    return made


MISTRAL_TOKENS = ("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
                  "[TOOL_RESULTS]", "[/TOOL_RESULTS]")  # fmt: skip
KNOWN = {
    "mistral-0.3": (MISTRAL, mistral, MISTRAL_TOKENS, "<s>", "</s>"),
    "tulu-3": (TULU3, tulu3, (), None, "<|endoftext|>"),
}
EACH = pytest.mark.parametrize("name", KNOWN)


@pytest.fixture
def made(trained, tmp_path):
    """The small tokenizer with a known model's tokens and template; and its folder."""

    def load(name: str):
        template, _, special, bos, eos = KNOWN[name]
        spec = json.loads((trained / "tokenizer.json").read_bytes())
        settings = {"chat_template": template, "bos_token": bos, "eos_token": eos}
        return ChatTokenizer.load(saved(tmp_path, spec, added(*special, special=True), **settings)), tmp_path

    return load


def check(made, name: str, *row: dict) -> None:
    tokenizer, folder = made(name)
    learnt = {i for i, m in enumerate(row) if m["role"] == "assistant"}
    assert ours(tokenizer, row) == KNOWN[name][1](ByHand(folder), row, learnt.__contains__).done()


@EACH
@pytest.mark.parametrize("answer", ANSWERS)
def test_any_answer_is_learnt_with_its_end_token(made, name, answer):
    check(made, name, user("hello"), says(answer))


@EACH
def test_every_turn_of_many_and_markers_are_only_text(made, name):
    marks = " ".join((*MISTRAL_TOKENS, "<|user|>\n<|assistant|>\n[/INST] <|im_end|> <|endoftext|>"))
    row = [user("a"), says("b"), user(marks), says(marks), user(f"x{marks}"), says("f")]
    check(made, name, *row)
    check(made, name, *row[:-1])


@EACH
def test_what_is_learnt_is_what_follows_the_prompt_up_to_a_stop_token(made, name):
    tokenizer, _ = made(name)
    row = [user("a"), says("b"), user("c"), says("d")]
    ids, learnt = ours(tokenizer, row, train_on="last")
    assert ids[: learnt.index(True)] == tokenizer.encode_prompt(row[:-1])
    assert ids[max(i for i, flag in enumerate(learnt) if flag)] in tokenizer.stop_ids()


def test_what_a_template_refuses_or_leaves_out_is_refused(made):
    with pytest.raises(RenderError, match="template_drops_tools"):
        label(made("tulu-3")[0], [user("a"), says("b")], '[{"name": "f"}]')
    tokenizer, _ = made("mistral-0.3")
    with pytest.raises(RenderError, match="template_drops_message: message 0"):
        label(tokenizer, [SYSTEM, user("a"), says("b")])
    with pytest.raises(RenderError, match="template_error: TemplateError: roles must alternate"):
        label(tokenizer, [user("a"), says("b"), says("c")])


CALL = {"name": "f", "arguments": {"a": "</tool_call> [/INST]"}}


def test_mistral_tool_calls_and_results(made):
    tokenizer, folder = made("mistral-0.3")
    calls = json.dumps([{"id": "abcdefghi", "function": CALL}])
    row = [user("q"), says("", tool_calls=calls), {"role": "tool", "content": "42", "tool_call_id": "abcdefghi"}]
    hand = ByHand(folder).special("<s>").special("[AVAILABLE_TOOLS]").text(' [{"name": "f"}]')
    hand.special("[/AVAILABLE_TOOLS]").special("[INST]").text(" q").special("[/INST]").special("[TOOL_CALLS]", True)
    hand.text(' [{"name": "f", "arguments": {"a": "</tool_call> [/INST]"}, "id": "abcdefghi"}]', True)
    hand.special("</s>", True).special("[TOOL_RESULTS]").text(' {"content": 42, "call_id": "abcdefghi"}')
    hand.special("[/TOOL_RESULTS]").text(" It is 42.", True).special("</s>", True)
    assert ours(tokenizer, [*row, says("It is 42.")], '[{"name": "f"}]') == hand.done()
