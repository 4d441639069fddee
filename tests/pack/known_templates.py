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


def chatml(default: str = "") -> Hand:
    def hand(made: ByHand, messages: Sequence[dict], learn: Callable[[int], bool]) -> ByHand:
        if default and messages[0]["role"] != "system":
            made.turn("system", default)
        for i, m in enumerate(messages):
            made.turn(m["role"], m["content"], learn(i))
        return made

    return hand


QWEN25_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
QWEN_TOOLS = (
    "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>",
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call>",
)
QWEN_CALLS = """\
    {%- for c in m.tool_calls %}
        {%- if c.function is defined %}{% set c = c.function %}{% endif %}
        {%- if m.content or not loop.first or QWEN25 %}{{ '\\n' }}{% endif %}
        {{- '<tool_call>\\n{"name": "' ~ c.name ~ '", "arguments": ' ~ c.arguments | tojson ~ '}\\n</tool_call>' }}
    {%- endfor %}
"""
QWEN_RESULTS = """\
    {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
    {{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
    {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}
"""
QWEN25 = (
    "{%- set QWEN25 = true %}"
    "{%- set system = messages[0].content if messages[0].role == 'system' else '" + QWEN25_SYSTEM + "' %}\n"
    "{{- '<|im_start|>system\\n' + system }}"
    "{%- if tools %}{{ " + repr(QWEN_TOOLS[0]) + " }}"
    "{%- for t in tools %}{{ '\\n' + (t | tojson) }}{% endfor %}{{ " + repr(QWEN_TOOLS[1]) + " }}{% endif %}"
    "{{- '<|im_end|>\\n' }}\n"
    "{%- for m in messages %}\n"
    "{%- if m.role == 'user' or (m.role == 'system' and not loop.first)"
    " or (m.role == 'assistant' and not m.tool_calls) %}"
    "{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{%- elif m.role == 'assistant' %}"
    "{{- '<|im_start|>assistant' }}{%- if m.content %}{{ '\\n' + m.content }}{% endif %}\n"
    + QWEN_CALLS
    + "{{- '<|im_end|>\\n' }}"
    + "{%- elif m.role == 'tool' %}\n"
    + QWEN_RESULTS
    + "{%- endif %}{%- endfor %}"
    + "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


# Qwen3 shows thoughts in the turns after the last question only; there, also an empty one if the turn is the last.
QWEN3 = """\
{%- if messages[0].role == 'system' %}{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{% endif %}
{%- set ns = namespace(open=true, last=messages | length - 1) %}
{%- for m in messages[::-1] %}
    {%- set index = messages | length - 1 - loop.index0 %}
    {%- if ns.open and m.role == 'user' %}{% set ns.open = false %}{% set ns.last = index %}{% endif %}
{%- endfor %}
{%- for m in messages %}
    {%- if m.role == 'user' or (m.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
    {%- elif m.role == 'assistant' %}
        {%- set thought = m.reasoning_content if m.reasoning_content is string else '' %}
        {%- set content = m.content %}
        {%- if not thought and '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}
            {{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}{{ content }}{% endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def qwen3(made: ByHand, messages: Sequence[dict], learn: Callable[[int], bool]) -> ByHand:
    asked = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=len(messages) - 1)
    for i, m in enumerate(messages):
        if m["role"] != "assistant":
            made.turn(m["role"], m["content"])
            continue
        thought, content = m.get("reasoning_content", ""), m["content"]
        if not thought and "</think>" in content:
            head, content = content.rsplit("</think>", 1)
            thought = head.split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
            content = content.lstrip("\n")
        made.special("<|im_start|>").text("assistant\n")
        if i > asked and (i == len(messages) - 1 or thought):
            made.special("<think>", learn(i)).text("\n" + thought.strip("\n") + "\n", learn(i))
            made.special("</think>", learn(i)).text("\n\n", learn(i))
            content = content.lstrip("\n")
        made.text(content, learn(i)).special("<|im_end|>", learn(i)).text("\n")
    return made


LLAMA31 = """\
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}{%- set messages = messages[1:] %}
{%- else %}{%- set system = '' %}{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}
{%- if tools is not none %}{{ 'Environment: ipython\\n' }}{% endif %}
{{- 'Cutting Knowledge Date: December 2023\\nToday Date: ' + strftime_now('%d %b %Y') + '\\n\\n' + system }}
{{- '<|eot_id|>' }}
{%- if tools is not none %}
    {%- set question = messages[0]['content'] | trim %}{%- set messages = messages[1:] %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\nAnswer with a function call, as JSON.\\n\\n' }}
    {%- for t in tools %}{{ t | tojson(indent=4) + '\\n\\n' }}{% endfor %}
    {{- question + '<|eot_id|>' }}
{%- endif %}
{%- for m in messages %}
    {%- if m.role == 'tool' or m.role == 'ipython' %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}
        {%- if m.content is mapping or (m.content is iterable and m.content is not string) %}{{ m.content | tojson }}
        {%- else %}{{ m.content }}{% endif %}{{ '<|eot_id|>' }}
    {%- elif m.tool_calls %}
        {%- if m.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}
        {%- set call = m.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
        {{- '{"name": "' + call.name + '", ' + '"parameters": ' }}{{ call.arguments | tojson }}{{ '}' }}
        {{- '<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""


def llama3_turn(made: ByHand, role: str, text: str, learn: bool = False) -> ByHand:
    made.special("<|start_header_id|>").text(role).special("<|end_header_id|>")
    return made.text("\n\n").text(text, learn).special("<|eot_id|>", learn)


def llama31(made: ByHand, messages: Sequence[dict], learn: Callable[[int], bool]) -> ByHand:
    made.special("<|begin_of_text|>")
    system = messages[0]["content"].strip() if messages[0]["role"] == "system" else ""
    llama3_turn(made, "system", "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n" + system)
    for i, m in enumerate(messages):
        if i or m["role"] != "system":
            llama3_turn(made, m["role"], m["content"].strip(), learn(i))
    return made


ALTERNATE = """\
{%- for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('roles must alternate: user, assistant, user, assistant') }}{% endif %}{% endfor %}"""

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


LLAMA2 = """\
{%- if messages[0]['role'] == 'system' %}{% set turns = messages[1:] %}{% set system = messages[0]['content'] %}
{%- else %}{% set turns = messages %}{% set system = false %}{% endif %}
{%- for m in turns %}
    {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
    {%- if loop.first and system %}{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m['content'] %}
    {%- else %}{% set content = m['content'] %}{% endif %}
    {%- if m['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
    {%- else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}
{%- endfor %}"""


def llama2(made: ByHand, messages: Sequence[dict], learn: Callable[[int], bool]) -> ByHand:
    """Here [INST] and <<SYS>> are text, as in that model's tokenizer."""
    system = messages[0]["content"] if messages[0]["role"] == "system" else None
    for i, m in enumerate(messages):
        if m["role"] == "user":
            before = f"<<SYS>>\n{system}\n<</SYS>>\n\n" if system and i == 1 else ""
            made.special("<s>").text(f"[INST] {(before + m['content']).strip()} [/INST]")
        elif m["role"] == "assistant":
            made.text(f" {m['content'].strip()} ", learn(i)).special("</s>", learn(i))
    return made


GEMMA = (
    "{{ bos_token }}"
    "{%- if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + ALTERNATE + "\n"
    "{%- for m in messages %}{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
    "{{- '<start_of_turn>' + role + '\\n' + m['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)


def gemma(made: ByHand, messages: Sequence[dict], learn: Callable[[int], bool]) -> ByHand:
    made.special("<bos>")
    for i, m in enumerate(messages):
        role = "model" if m["role"] == "assistant" else m["role"]
        made.special("<start_of_turn>").text(role + "\n").text(m["content"].strip(), learn(i))
        made.special("<end_of_turn>", learn(i)).text("\n")
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


LLAMA3_TOKENS = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
MISTRAL_TOKENS = ("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
                  "[TOOL_RESULTS]", "[/TOOL_RESULTS]")  # fmt: skip
KNOWN = {
    "llama-3.1": Known(
        template=LLAMA31, hand=llama31, special=LLAMA3_TOKENS, bos="<|begin_of_text|>", eos="<|eot_id|>",
        says=str.strip, tools=True,
    ),
    "llama-2": Known(
        template=LLAMA2, hand=llama2, special=("<s>", "</s>"), bos="<s>", eos="</s>", alternates=True
    ),
    "mistral-0.3": Known(
        template=MISTRAL, hand=mistral, special=MISTRAL_TOKENS, bos="<s>", eos="</s>", alternates=True, system=False,
        tools=True,
    ),
    "gemma-2": Known(
        template=GEMMA, hand=gemma, special=("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"), bos="<bos>",
        eos="<eos>", alternates=True, system=False,
    ),
    "tulu-3": Known(template=TULU3, hand=tulu3, eos="<|endoftext|>"),
    "qwen2.5": Known(
        template=QWEN25, hand=chatml(QWEN25_SYSTEM), added=("<tool_call>", "</tool_call>"), tools=True
    ),
    "qwen3": Known(template=QWEN3, hand=qwen3, added=("<think>", "</think>")),
    "deepseek-v3": Known(
        template=DEEPSEEK_V3, hand=deepseek, special=DEEPSEEK, bos=DEEPSEEK[0], eos=DEEPSEEK[1]
    ),
    "deepseek-r1": Known(
        template=DEEPSEEK_R1, hand=deepseek_r1, special=DEEPSEEK, added=("<think>", "</think>"), bos=DEEPSEEK[0],
        eos=DEEPSEEK[1],
    ),
}  # fmt: skip
