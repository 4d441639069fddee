"""Layouts of conversations: records that become messages, as published datasets write them.

Lists of turns; an instruction with its output; a prompt or question with its answer, context, options and reasoning;
lists of strings that alternate; lists of exchanges; MOSS's numbered turns; trees of messages.
"""

import re
from collections.abc import Iterator
from itertools import cycle
from typing import Any, Final

from datakit.read.layouts.record import Fields, MisfitError, name_of, text_of, to_json
from datakit.read.layouts.turns import (
    CONTENT_KEYS,
    LITERAL,
    PLAIN,
    ROLE_KEYS,
    Conversation,
    Message,
    Reading,
    Turns,
    around,
    calls_of,
    first_of,
    list_of,
    spelled,
    turns,
    unzipped,
    weight_of,
)

TURN_FIELDS: Final = ("messages", "conversations", "conversation", "turns", "dialogue", "dialog", "chat", "data")
ANSWERS: Final = (
    "completion", "response", "output", "attempt", "deepseek_attempt", "solution", "generated_solution",
    "deepseek_solution", "answer", "targets", "target", "reply", "assistant", "bot", "answer_key", "answerkey",
    "final_answer", "final", "code", "content",
)  # fmt: skip
OUTPUTS: Final = ("output", *ANSWERS)
ASKED: Final = ("question", "query", "problem", "question_stem")
QUESTIONS: Final = ("prompt", "user_prompt", *ASKED, "inputs", "input", "instruction", "user", "human")
CONTEXTS: Final = (
    "context", "passage", "article", "paragraph", "story", "document", "documents", "contexts", "definition", "ctxs",
)  # fmt: skip
"""Fields with what a question is about, or with the task that it is an example of."""
HISTORIES: Final = ("history", "chat_history", "conversation_history", "dialog_history", "dialogue_history")
"""Fields with the turns before a question."""
OPTIONS: Final = ("options", "choices")
REASONINGS: Final = (
    "reasoning_content", "reasoning", "thinking", "complex_cot", "deepseek_reasoning", "chain_of_thought", "cot",
    "thinking_content", "thinking_trajectory", "thinking_trajectories", "deepseek_thinking_trajectory", "thoughts",
    "think", "rationale", "thought", "reasoning_trace",
)  # fmt: skip
"""Fields that may have what the assistant thought before its answer."""
NO_INPUT: Final = "<noinput>"
"""What Self-Instruct writes for an instruction without an input."""
MIN_REASONING_CHARS: Final = 6
"""Shorter values are switches (`on`, `off`, `high`), not thoughts."""
RENDERED: Final = ("text", "chat", "conversation", "dialogue")
"""Fields that may hold a whole conversation as one text, with the marks of a template."""
_HEADER = re.compile(
    r"<\|im_start\|>(\w+)\n|<\|start_header_id\|>(\w+)<\|end_header_id\|>\s*|<start_of_turn>(\w+)\n"
    r"|<\|(system|user|assistant|tool)\|>\s*|###\s*(System|Human|User|Assistant):|(\[/?INST\])"
    r"|(?:^|(?<=\n))(SYSTEM|USER|ASSISTANT|FUNCTION RESPONSE): |(?:^|(?<=\n))<(human|bot)>:"
)
"""What begins a turn: ChatML, Llama 3, Gemma, Zephyr, Guanaco, Llama 2 and Mistral, Glaive, OIG."""
_SPEAKER = re.compile(r"(?:^|\n\n)(Human|Assistant):")
_LINE_SPEAKER = re.compile(r"(?:^|\n)(Human|Assistant):")
_SPEAKERS: Final = {"Human": "user", "Assistant": "assistant"}
_ENDS: Final = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<|endoftext|>", "<end_of_turn>", "<s>", "</s>", "<eos>")
_BEGINS = re.compile(r"^\s*(?:<s>|<bos>|<\|begin_of_text\|>)?\s*")
_SYSTEM = re.compile(r"\s*<<SYS>>\s*(.*?)\s*<</SYS>>\s*", re.DOTALL)
_MARKED: Final = {"[INST]": "user", "[/INST]": "assistant", "function response": "tool"}
_LIST_OF_OBJECTS = re.compile(r"\s*\[\s*\{")
_MARK = re.compile(r"^\s*<\|[^|<>]*\|>:?\s*|\s*<eo[a-z]>\s*$")
"""MOSS's marks at both ends of a text: `<|Human|>: ` and `<eoh>`."""


# Lists of turns.


def styled(value: Any, key: str) -> bool:
    """Whether a value is a list of turns (as JSON text, too, or an object of lists) whose first turn has this key."""
    if type(value) is str:
        quote = "'" if LITERAL.match(value) else '"'
        return _LIST_OF_OBJECTS.match(value) is not None and f"{quote}{key}{quote}" in value
    if type(value) is dict:
        value = unzipped(value) if type(value.get(key)) is list else None
    return type(value) is list and bool(value) and type(value[0]) is dict and key in value[0]


def turn_field_of(fields: Fields) -> str:
    """The field with a list of turns that name a speaker and hold text: one of `TURN_FIELDS`, or the only one there is;
    "" without one."""
    named = [n for n in TURN_FIELDS if _has_speakers(fields.get(n))]
    found = named or [n for n, value in fields.items() if n not in _OTHERS and _has_speakers(value)]
    return found[0] if named or len(found) == 1 else ""


def _has_speakers(value: Any) -> bool:
    return any(styled(value, k) for k in ROLE_KEYS) and any(styled(value, k) for k in (*CONTENT_KEYS, "tool_calls"))


def parsed_turns(fields: Fields, names: tuple[str, ...]) -> Fields:
    """The record with its turns parsed, if all these fields hold turns as text (CSV). One alone may be an answer that
    is about such texts."""
    if not all(type(fields[n]) is str and _has_speakers(fields[n]) for n in names):
        return fields
    return fields | {n: list_of(fields[n], n) for n in names}


def from_turns(fields: Fields, reading: Reading = PLAIN) -> Conversation:
    """A list of turns, with the fields `system` and `tools` if the record has them.

    Where it ends with the user, the answer is in a field of its own (Dolphin R1, AceMath).
    """
    key = next((n for n in TURN_FIELDS[:3] if fields.get(n) is not None), "") or turn_field_of(fields)
    if not key:
        raise MisfitError("missing_field", f"no list of messages is there; the fields are {', '.join(fields)}")
    found = turns(fields[key], key, reading)
    name = _text_answer_of(fields) if found.messages[-1].role == "user" else ""
    if not name:
        return around(found, key, fields)
    several = type(fields[name]) is list  # ChatQA's: the first one is learned, and all stay beside the row
    answered, thought = _answered(fields | {name: fields[name][0]} if several else fields, name, reading)
    messages = found.messages + answered.messages
    first = next(i for i, m in enumerate(messages) if m.role == "user")
    context, used = context_of(fields, messages[first].content)
    if context:
        messages[first] = messages[first]._replace(content=f"{context}\n\n{messages[first].content}")
    found = found._replace(messages=messages)
    return around(found, key, fields, (*used, *thought, *(() if several else (name,))))


def _text_answer_of(fields: Fields) -> str:
    """The first of `ANSWERS`, or `answers`, with a text, which answers a conversation that ends with the user; ""
    without one."""
    for name in (*ANSWERS, "answers"):
        value = fields.get(name)
        if value and (type(value) is str or (type(value) is list and type(value[0]) is str and value[0])):
            return name
    return ""


def from_schema_guided(fields: Fields, reading: Reading = PLAIN) -> Conversation:
    """Dialogues of USER and SYSTEM (Rastogi et al. 2020, "Towards Scalable Multi-Domain Conversational Agents"): there
    the system is who answers."""
    own = reading.roles if reading is not PLAIN else PLAIN.roles
    return from_turns(fields, Reading({**own, "SYSTEM": "assistant", "USER": "user"}, reading.turn_fields))


def is_schema_guided(fields: Fields) -> bool:
    """Whether a record has turns of a speaker USER or SYSTEM and an utterance."""
    value = fields.get("turns")
    if not (styled(value, "speaker") and styled(value, "utterance")) or type(value) is not list:
        return False
    return {turn.get("speaker") for turn in value if type(turn) is dict} <= {"USER", "SYSTEM"}


def alternating_field_of(fields: Fields) -> str:
    """The field of `TURN_FIELDS` that is a list of strings; "" without one."""
    lists = (n for n in TURN_FIELDS if type(fields.get(n)) is list and fields[n])
    return next((n for n in lists if all(type(s) is str for s in fields[n])), "")


def from_alternating(fields: Fields, _: Reading = PLAIN) -> Conversation:
    """A list of strings (LIMA, UltraChat): what the user and the assistant say in turn."""
    key = alternating_field_of(fields)
    if not key:
        raise MisfitError("missing_field", f"a list of strings should be there; the fields are {', '.join(fields)}")
    messages = [Message(role, text) for role, text in zip(cycle(("user", "assistant")), fields[key], strict=False)]
    return around(Turns(messages, None, None), key, fields)


def exchanges_field_of(fields: Fields) -> str:
    """The field of `TURN_FIELDS` that is a list of objects with a question and an answer; "" without one.

    Not `data`: that is how a file wraps rows which have nothing to do with each other.
    """
    for name in (*TURN_FIELDS[:-1], "interactions"):
        value = fields.get(name)
        if type(value) is list and value and all(_sides(_as_exchange(value[0]))):
            return name
    return ""


def _as_exchange(value: Any) -> Fields:
    """An exchange as an object: it is one, or a question and its answer in a list."""
    if type(value) is list and len(value) == 2 and all(type(v) is str for v in value):
        return {"input": value[0], "output": value[1]}
    return value if type(value) is dict else {}


def _sides(exchange: Fields) -> tuple[str, str]:
    asked = first_of(QUESTIONS, exchange)
    return asked, answer_field_of(exchange, asked)


def answer_field_of(fields: Fields, asked: str = "", names: tuple[str, ...] = ANSWERS) -> str:
    """The first of some names that holds an answer; else the first that is there, but empty or a number."""
    other = ""
    for name in names:
        value = fields.get(name)
        if value is not None and name != asked:
            if value and type(value) in (str, list, dict):
                return name
            other = other or name
    return other


def from_exchanges(fields: Fields, reading: Reading = PLAIN) -> Conversation:
    """A list of objects with input and output (Capybara), question and answer, and the like."""
    key = exchanges_field_of(fields)
    if not key:
        raise MisfitError("missing_field", f"a list of exchanges should be there; the fields are {', '.join(fields)}")
    messages, left = list[Message](), []
    for i, exchange in enumerate(fields[key]):
        where, exchange = f"{key}[{i}]", dict(_as_exchange(exchange))
        if not all(_sides(exchange)):
            raise MisfitError("bad_messages", f"{where} should have a question and an answer")
        weight = weight_of(exchange, where)
        made = from_prompt(exchange, reading)
        messages += [m._replace(weight=weight) if m.role == "assistant" else m for m in made.messages]
        left.append({k: v for k, v in exchange.items() if k not in made.used})
    return around(Turns(messages, None, left if any(left) else None), key, fields)


def is_numbered(fields: Fields) -> bool:
    """Whether `chat` holds MOSS's `turn_1`, `turn_2`, ..."""
    chat = fields.get("chat")
    return type(chat) is dict and type(chat.get("turn_1")) is dict and "Human" in chat["turn_1"]


def from_numbered(fields: Fields, _: Reading = PLAIN) -> Conversation:
    """MOSS-003: `chat` has numbered turns of Human, Inner Thoughts, Commands, Tool Responses and MOSS, all marked.

    Thoughts are the assistant's reasoning. A turn with a command has the command as an answer and the tool's response
    as a message, before the final answer.
    """
    if not is_numbered(fields):
        raise MisfitError("bad_messages", f"chat should hold turn_1, turn_2, ..., found {name_of(fields.get('chat'))}")
    chat, messages = fields["chat"], list[Message]()
    for number in range(1, len(chat) + 1):
        turn = chat.get(f"turn_{number}")
        if type(turn) is not dict:
            raise MisfitError("bad_messages", f"chat.turn_{number} should be an object, found {name_of(turn)}")
        said = {k: _unmarked(text_of(v, f"chat.turn_{number}.{k}")) for k, v in turn.items() if v is not None}
        thought, command, result = (said.get(k) for k in ("Inner Thoughts", "Commands", "Tool Responses"))
        messages.append(Message("user", said.get("Human") or ""))
        if command:
            messages += [Message("assistant", command, reasoning_content=thought), Message("tool", result or "")]
            thought = None
        messages.append(Message("assistant", said.get("MOSS") or "", reasoning_content=thought))
    return around(Turns(messages, None, None), "chat", fields)


def _unmarked(text: str) -> str | None:
    bare = _MARK.sub("", text).strip()
    return None if bare == "None" else bare


def rendered_field_of(fields: Fields) -> str:
    """The field of `RENDERED` with a text that begins with the mark of a turn, and has an answer; "" without one."""
    for name in RENDERED:
        value = fields.get(name)
        if type(value) is str and {"user", "assistant"} <= {_role_of(header) for header in _headers(value)}:
            return name
    return ""


def _headers(text: str) -> list[re.Match[str]]:
    """The marks of turns that are of the sort that the text begins with; none if it begins otherwise."""
    begin = _BEGINS.match(text)
    first = _HEADER.match(text, begin.end() if begin else 0)
    return [header for header in _HEADER.finditer(text) if header.lastindex == first.lastindex] if first else []


def _role_of(header: re.Match[str]) -> str:
    name = next(group for group in header.groups() if group)
    return _MARKED.get(name) or _MARKED.get(name.lower()) or PLAIN.roles.get(name.lower(), "")


def from_rendered(fields: Fields, _: Reading = PLAIN) -> Conversation:
    """A conversation as a template writes it, in one text. The marks go, and the white space around each message."""
    key = rendered_field_of(fields)
    if not key:
        raise MisfitError(
            "bad_transcript", f"a conversation with marks of turns should be there, in {', '.join(fields)}"
        )
    text, messages = fields[key], list[Message]()
    headers = _headers(text)
    for header, end in zip(headers, [h.start() for h in headers[1:]] + [len(text)], strict=True):
        role, said = _role_of(header), text[header.end() : end]
        if not role:
            raise MisfitError("unknown_role", f"{key} has a turn that begins with {header[0].strip()!r}")
        said = said.strip()
        while said.endswith(_ENDS):
            said = said[: max(said.rfind(mark) for mark in _ENDS if said.endswith(mark))].rstrip()
        if role == "user" and (system := _SYSTEM.match(said)):
            messages.append(Message("system", system[1]))
            said = said[system.end() :]
        messages.append(Message(role, said))
    whole = around(Turns(messages, None, None), key, fields)
    first = whole.messages[0]
    if first.role == "system" and first.content.startswith("SYSTEM: "):
        whole.messages[0] = first._replace(content=first.content.removeprefix("SYSTEM: ").strip())
    return whole


# A question and its answer.


def from_alpaca(fields: Fields, reading: Reading = PLAIN) -> Conversation:
    """`instruction`, with `input` (may be empty) or Dolly's `context`, and `output` or `response`; earlier turns in
    `history`."""
    key = answer_field_of(fields, names=OUTPUTS)
    if not key or "instruction" not in fields:
        need = f"instruction and one of {', '.join(OUTPUTS)}"
        raise MisfitError("missing_field", f"{need} should be there; the fields are {', '.join(fields)}")
    asked = text_of(fields["instruction"], "instruction")
    given = fields.get("input")
    if given and given != NO_INPUT:
        asked = f"{asked}\n{text_of(given, 'input')}" if asked else text_of(given, "input")
    context, used = context_of(fields, asked)
    asked = "\n\n".join(part for part in (asked, context) if part)
    return exchange(fields, asked, key, ("instruction", *used, *(["input"] if "input" in fields else [])), reading)


def from_prompt(fields: Fields, reading: Reading = PLAIN) -> Conversation:
    """A prompt and its completion, a question and its answer: strings, or lists of turns."""
    asked, key = _sides(fields)
    if not asked or not key:
        raise MisfitError(
            "missing_field", f"a prompt and a completion should be there; the fields are {', '.join(fields)}"
        )
    fields = parsed_turns(fields, (asked, key))
    if type(fields[asked]) is not list:
        question = text_of(fields[asked], asked)
        context, used = context_of(fields, question)
        options, more = options_of(fields)
        if type(fields[key]) is int and fields[key] in range(len(options)):
            fields = fields | {key: list(options)[fields[key]]}
        parts = (context, question, "\n".join(f"{k}. {v}" for k, v in options.items()))
        return exchange(fields, "\n\n".join(part for part in parts if part), key, (asked, *used, *more), reading)
    before, (after, thought) = turns(fields[asked], asked, reading), _answered(fields, key, reading)
    left = {k: t.left for k, t in ((asked, before), (key, after)) if t.left}
    whole = around(Turns(before.messages + after.messages, before.tools, None), asked, fields, (*thought, key))
    return whole._replace(left=left, answer_turns=len(after.messages))


def context_of(fields: Fields, question: str) -> tuple[str, tuple[str, ...]]:
    """What a question is about (the first of `CONTEXTS` with a text or a list of texts), and the fields used. A text
    that the question holds is not repeated."""
    empty = tuple[str, ...]()
    for name in CONTEXTS:
        value = fields.get(name)
        value = _passages(value) if name == "ctxs" else value
        if type(value) is list and all(type(v) is str for v in value):
            value = "\n\n".join(value)
        if type(value) is str and value.strip():
            return "" if value.strip() in question else value, (name,)
        if type(value) is str:
            empty = (*empty, name)
    return "", empty


def _passages(value: Any) -> Any:
    """Retrieved passages, objects with a text and perhaps a title (ChatRAG), as texts; any other value as it is."""
    if type(value) is not list or any(type(v) is not dict or type(v.get("text")) is not str for v in value):
        return value
    return ["\n".join(v[k] for k in ("title", "text") if type(v.get(k)) is str and v[k]) for v in value]


def unread_context(fields: Fields) -> str:
    """The first of `CONTEXTS` that holds more than texts, so that a question alone would be wrong; "" without one."""
    if context_of(fields, "")[0]:
        return ""
    return next((n for n in CONTEXTS if type(fields.get(n)) in (list, dict) and fields[n]), "")


def options_of(fields: Fields) -> tuple[dict[str, str], tuple[str, ...]]:
    """The options of a question by letter, and the field that they are in: a list or an object of strings, or an object
    of two lists, `label` and `text`."""
    for name in OPTIONS:
        value = fields.get(name)
        if type(value) is dict and type(value.get("text")) is list and type(value.get("label")) is list:
            value = dict(zip(map(str, value["label"]), value["text"], strict=False))
        if type(value) is list:
            value = {chr(ord("A") + i): v for i, v in enumerate(value[:26])}
        if type(value) is dict and value and all(type(v) is str for v in value.values()):
            return value, (name,)
    return {}, ()


def exchange(fields: Fields, asked: str, key: str, used: tuple[str, ...], reading: Reading) -> Conversation:
    """The history, the question and the answer in the field `key`, with reasoning, system prompt and tools."""
    answered, thought = _answered(fields, key, reading)
    before, seen = earlier(fields, reading)
    said = transcript(asked, "the prompt")[:-1] if is_open_transcript(asked) else [Message("user", asked)]
    messages = [*before, *said, *answered.messages]
    whole = around(Turns(messages, answered.tools, None), key, fields, (*used, *thought, *seen))
    left = {key: answered.left} if answered.left else {}
    return whole._replace(left=left, answer_turns=len(answered.messages))


def _answered(fields: Fields, key: str, reading: Reading) -> tuple[Turns, tuple[str, ...]]:
    """The answer in the field `key` with its reasoning, and the field that this is in."""
    answered, name = answer(fields[key], key, reading), reasoning_field_of(fields)
    last = answered.messages[-1]
    if not name or name == key or last.role != "assistant" or last.reasoning_content or "<think>" in last.content:
        return answered, ()
    given = fields[name]
    answered.messages[-1] = last._replace(reasoning_content=given[0] if type(given) is list else given)
    return answered, (name,)


def reasoning_field_of(fields: Fields) -> str:
    """The field of `REASONINGS` with thoughts; "" without one."""
    for name in REASONINGS:
        value = fields.get(name)
        value = value[0] if type(value) is list and len(value) == 1 else value  # s1K: a list of one trajectory
        if type(value) is str and len(value.strip()) >= MIN_REASONING_CHARS:
            return name
    return ""


def answer(value: Any, key: str, reading: Reading = PLAIN) -> Turns:
    """An answer as assistant messages: a string, one turn, or a list of turns."""
    if type(value) is dict:
        return turns([value], key, reading)
    if type(value) is list:
        return turns(value, key, reading)
    return Turns([Message("assistant", text_of(value, key))], None, None)


def earlier(fields: Fields, reading: Reading) -> tuple[list[Message], tuple[str, ...]]:
    """The turns before a question, and the field that they are in: alpaca's `history` of pairs (user, assistant), or a
    list of turns.

    Raises:
        MisfitError: it is neither.
    """
    name = first_of(HISTORIES, fields)
    value = fields[name] if name else None
    if not value:
        return [], (name,) if name else ()
    if type(value) is not list or any(type(pair) is not list or len(pair) != 2 for pair in value):
        if _has_speakers(value):
            return turns(value, name, reading).messages, (name,)
        raise MisfitError(
            "bad_messages", f"{name} should be a list of turns, or of pairs of strings, found {name_of(value)}"
        )
    made = []
    for i, (asked, answered) in enumerate(value):
        made.append(Message("user", text_of(asked, f"{name}[{i}][0]")))
        made.append(Message("assistant", text_of(answered, f"{name}[{i}][1]")))
    return made, (name,)


def is_transcript(value: Any) -> bool:
    """Whether a text is a whole dialogue: "Human: ... Assistant: ..." with blank lines between."""
    return type(value) is str and _SPEAKER.match(value.lstrip()) is not None


def is_open_transcript(text: str) -> bool:
    """Whether a prompt is a dialogue, in lines or with blank lines between, whose answer is to follow."""
    return text.rstrip().endswith("\nAssistant:") and is_transcript(text)


def transcript(text: str, where: str) -> list[Message]:
    """ "Human: ... Assistant: ..." as messages, without the white space around each.

    Raises:
        MisfitError: it does not begin with a speaker.
    """
    body = text.lstrip()
    if not _SPEAKER.match(body):
        raise MisfitError("bad_transcript", f'{where} should begin with "Human:" or "Assistant:", found {body[:40]!r}')
    by_line = is_open_transcript(text) and not body.rstrip().endswith("\n\nAssistant:")  # BELLE's
    cuts = list((_LINE_SPEAKER if by_line else _SPEAKER).finditer(body))
    ends = [c.start() for c in cuts[1:]] + [len(body)]
    return [Message(_SPEAKERS[c[1]], body[c.end() : end].strip()) for c, end in zip(cuts, ends, strict=True)]


def is_calls(fields: Fields) -> bool:
    """Whether a record has a question, tools, and calls of them as `answers`."""
    value = fields.get("answers")
    return bool(first_of(ASKED, fields)) and fields.get("tools") is not None and styled(value, "name")


def from_calls(fields: Fields, _: Reading = PLAIN) -> Conversation:
    """xlam: `query`, `tools`, and `answers`: a list of {name, arguments}, the calls of the assistant."""
    asked = first_of(ASKED, fields)
    if not asked or "answers" not in fields:
        raise MisfitError("missing_field", f"a query and answers should be there; the fields are {', '.join(fields)}")
    given = fields["answers"]
    calls = calls_of(None, [given if type(given) is str else to_json(given)], "answers")
    messages = [Message("user", text_of(fields[asked], asked)), Message("assistant", "", tool_calls=calls)]
    return around(Turns(messages, None, None), "answers", fields, (asked,))


def is_quoted(fields: Fields) -> bool:
    """Whether `answers` holds the text of an answer as SQuAD writes it."""
    value = fields.get("answers")
    return bool(first_of(ASKED, fields)) and type(value) is dict and type(value.get("text")) is list


def from_quoted(fields: Fields, reading: Reading = PLAIN) -> Conversation:
    """SQuAD: `context`, `question`, and `answers` with a list `text`, of which the first is the answer.

    Raises:
        MisfitError: the question has no answer.
    """
    if not is_quoted(fields):
        raise MisfitError("missing_field", f"question and answers should be there; the fields are {', '.join(fields)}")
    texts = fields["answers"]["text"]
    if not texts:
        raise MisfitError("no_answer", "answers.text is empty: the question has no answer")
    made = from_prompt({**fields, "answer": texts[0]}, reading)
    return made._replace(used=tuple(n for n in made.used if n in fields))


# Trees of messages.


def root_of(fields: Fields) -> Any:
    """The first message of a tree: the record's `prompt`, or the record itself; None for other records."""
    for root in (fields.get("prompt"), fields):
        if type(root) is dict and type(root.get("replies")) is list and type(root.get("text")) is str:
            return root
    return None


def is_loose_message(fields: Fields) -> bool:
    """Whether a record is one message of a tree, which names its parent."""
    return {"message_id", "parent_id", "text", "role"} <= fields.keys()


def is_loose_turn(fields: Fields) -> bool:
    """Whether a record is one turn of a conversation: a speaker of a known role, and what is said."""
    speaker = next((fields[k] for k in ("role", "from") if k in fields), None)
    known = type(speaker) is str and spelled(speaker) in PLAIN.roles
    return known and any(type(fields.get(k)) is str for k in CONTENT_KEYS)


def from_loose_message(fields: Fields, _: Reading = PLAIN) -> Conversation:
    """Refused: a conversation of such messages can be made of all of them only."""
    if "parent_id" in fields:
        raise MisfitError("loose_message", "the record is one message of a tree; read the file of whole trees instead")
    raise MisfitError(
        "loose_message",
        "the record is one turn of a conversation; write each conversation as one record with a list of its turns, or "
        "read each turn as a document with --text-field",
    )


def from_tree(fields: Fields, reading: Reading = PLAIN) -> Any:
    """OpenAssistant (Köpf et al. 2023): a tree of messages, in which the replies to a message are ranked.

    The conversation is the path of best replies: the lowest rank, on a tie the first. With `reading.every_path` it is a
    list with each path that ends in an answer, best first. Deleted and rejected messages are left out.

    Raises:
        MisfitError: no tree, or no answer in it.
    """
    root = root_of(fields)
    if root is None:
        raise MisfitError(
            "bad_messages", f"the record should be a tree of messages; its fields are {', '.join(fields)}"
        )
    key = "prompt" if root is not fields else "replies"
    paths = _paths(root, reading, [], 0) if _stands(root) else iter(())
    found = list(paths) if reading.every_path else [next(paths, None)]
    if not found or found[0] is None:
        raise MisfitError("no_answer", "no path of the tree has an answer that was not deleted or rejected")
    used = ("replies", "text", "role") if key == "replies" else ()
    made = [around(Turns(path, None, None), key, fields, used) for path in found if path]
    return made if reading.every_path else made[0]


def _paths(node: Fields, reading: Reading, before: list[Message], depth: int) -> Iterator[list[Message]]:
    """Paths below a message that end in an answer, the best first; one that ends in a question is cut before it."""
    if depth > 200:
        raise MisfitError("too_deep", "the tree has more than 200 levels")
    speaker = text_of(node.get("role"), "role")
    role = reading.roles.get(speaker) or reading.roles.get(speaker.lower())
    if role is None:
        raise MisfitError("unknown_role", f"a message's role is {speaker!r}; name its role with --roles {speaker}=user")
    here = [*before, Message(role, text_of(node.get("text"), "text"))]
    replies = [r for r in node.get("replies") or () if type(r) is dict and _stands(r)]
    replies.sort(key=lambda r: (r.get("rank") is None, r.get("rank") or 0))
    any_below = False
    for reply in replies:
        for path in _paths(reply, reading, here, depth + 1):
            any_below = True
            yield path
    if not any_below and role == "assistant":
        yield here


def _stands(reply: Fields) -> bool:
    return not reply.get("deleted") and reply.get("review_result") is not False


_OTHERS: Final = frozenset((*QUESTIONS, *ANSWERS, *HISTORIES, "tools", "chosen", "rejected", "completions", "context"))
"""Fields that may be lists of turns, and are no whole conversation."""
