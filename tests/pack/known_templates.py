"""Chat formats of well-known models, written from their published behaviour: a template, and the same by hand.

The templates reproduce what each model's tokenizer renders, with their own wording; the by-hand side writes the ids
turn by turn and says what is learnt. `learn(i)` tells whether message i is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.pack.by_hand import ByHand

Hand = Callable[[ByHand, Sequence[dict], Callable[[int], bool]], ByHand]


@dataclass(frozen=True, kw_only=True)
class Known:
    template: str
    hand: Hand
    special: tuple[str, ...] = ()
    """Beside <|endoftext|>, <|im_start|> and <|im_end|>, which the trained tokenizer has."""
    added: tuple[str, ...] = ()
    """Added tokens that are not special."""
    bos: str | None = None
    eos: str = "<|im_end|>"
    says: Callable[[str], str] = field(default=lambda text: text)
    """What the template makes of an assistant's content."""
    system: bool = True
    alternates: bool = False
    """Refuses anything but user and assistant in turn."""
    tools: bool = False


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


def mistral(made: ByHand, messages: Sequence[dict], learn: Callable[[int], bool]) -> ByHand:
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


def tulu3(made: ByHand, messages: Sequence[dict], learn: Callable[[int], bool]) -> ByHand:
    for i, m in enumerate(messages):
        made.text(f"<|{m['role']}|>\n").text(m["content"], learn(i))
        if m["role"] == "assistant":
            made.special("<|endoftext|>", learn(i))
        if m["role"] != "assistant" or i < len(messages) - 1:
            made.text("\n")
    return made


DEEPSEEK = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")
DEEPSEEK_V3 = (
    "{%- set ns = namespace(system='') %}"
    "{%- for m in messages %}{% if m['role'] == 'system' %}{% set ns.system = m['content'] %}{% endif %}{% endfor %}"
    "{{- bos_token + ns.system }}"
    "{%- for m in messages %}"
    "{%- if m['role'] == 'user' %}{{ '<USER>' + m['content'] }}"
    "{%- elif m['role'] == 'assistant' %}{{ '<ASSISTANT>' + m['content'] + eos_token }}{% endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<ASSISTANT>' }}{% endif %}"
).replace("<USER>", DEEPSEEK[2]).replace("<ASSISTANT>", DEEPSEEK[3])  # fmt: skip
# R1 leaves thoughts out of every answer, and asks for one: the prompt says more than a turn does.
DEEPSEEK_R1 = DEEPSEEK_V3.replace(
    "m['content'] + eos_token", "(m['content'].split('</think>') | last) + eos_token"
).replace("{{ '" + DEEPSEEK[3] + "' }}", "{{ '" + DEEPSEEK[3] + "<think>\\n' }}")


def deepseek(made: ByHand, messages: Sequence[dict], learn: Callable[[int], bool]) -> ByHand:
    bos, eos, user, assistant = DEEPSEEK
    made.special(bos).text("".join(m["content"] for m in messages if m["role"] == "system"))
    for i, m in enumerate(messages):
        if m["role"] == "user":
            made.special(user).text(m["content"])
        elif m["role"] == "assistant":
            made.special(assistant).text(m["content"], learn(i)).special(eos, learn(i))
    return made


def deepseek_r1(made: ByHand, messages: Sequence[dict], learn: Callable[[int], bool]) -> ByHand:
    shown = [m | {"content": m["content"].split("</think>")[-1]} if m["role"] == "assistant" else m for m in messages]
    return deepseek(made, shown, learn)


MISTRAL_TOKENS = ("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
                  "[TOOL_RESULTS]", "[/TOOL_RESULTS]")  # fmt: skip
KNOWN = {
    "mistral-0.3": Known(
        template=MISTRAL, hand=mistral, special=MISTRAL_TOKENS, bos="<s>", eos="</s>", alternates=True, system=False,
        tools=True,
    ),
    "tulu-3": Known(template=TULU3, hand=tulu3, eos="<|endoftext|>"),
    "deepseek-r1": Known(
        template=DEEPSEEK_R1, hand=deepseek_r1, special=DEEPSEEK, added=("<think>", "</think>"), bos=DEEPSEEK[0],
        eos=DEEPSEEK[1],
    ),
}  # fmt: skip
