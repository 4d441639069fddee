"""Layouts with turns: conversations, and preference pairs as published datasets write them.

Conversations are lists of turns, alpaca's instruction and output, a prompt with its completion. Turns are OpenAI's
role/content, ShareGPT's from/value, typed content parts.
"""

import re
from typing import Any, Final, NamedTuple

import orjson

from datakit.read.layouts.record import Fields, MisfitError, Number, name_of, parse_exactly, text_of, to_json

ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "function_response": "tool",
    "ipython": "tool",
}
"""A speaker's name in datasets -> the role in chat templates. `function_call` is a turn of the assistant too."""

TEXT_PARTS: Final = ("text", "input_text", "output_text")
REASONING_PARTS: Final = ("reasoning", "thinking", "reasoning_content")
CALL_PARTS: Final = ("tool_call", "tool_calls", "function_call")
PART_VALUES: Final = ("text", "value", "content", "thinking", "reasoning")
TURN_FIELDS: Final = ("messages", "conversations", "conversation")
OUTPUTS: Final = ("output", "response", "completion", "answer")
QUESTIONS: Final = ("prompt", "question", "query", "inputs", "problem", "input")
ANSWERS: Final = ("completion", "response", "answer", "output", "targets", "solution")
SYSTEMS: Final = ("system", "system_prompt")
PAIRS: Final = (
    ("chosen", "rejected"),
    ("chosen_messages", "rejected_messages"),
    ("preferred", "other"),
    ("response_chosen", "response_rejected"),
    ("chosen_response", "rejected_response"),
)
PROMPTS: Final = ("prompt", "question", "query", "instruction", "input")
_SPEAKER = re.compile(r"(?:^|\n\n)(Human|Assistant):")
_SPEAKERS = {"Human": "user", "Assistant": "assistant"}
_PLAIN = ({"role", "content"}, {"from", "value"})
_CALLS = "function_call"


class Message(NamedTuple):
    """One message in the order of `data.MESSAGE`."""

    role: str
    content: str
    name: str | None = None
    reasoning_content: str | None = None
    tool_calls: str | None = None
    tool_call_id: str | None = None
    weight: float | None = None


class Turns(NamedTuple):
    """Messages, the tools that one of them declared, and each message's fields without a column (None: none)."""

    messages: list[Message]
    tools: str | None
    left: list[Fields] | None


class Conversation(NamedTuple):
    """A record's messages and tools, the fields that they were made from, and what is left inside these fields."""

    messages: list[Message]
    tools: str | None
    used: tuple[str, ...]
    left: Fields


# Conversations: a record to messages.


def first_of(names: tuple[str, ...], fields: Fields) -> str:
    """The first of some field names with a value other than null; "" if there is none."""
    for name in names:  # a loop is faster than a generator, and this runs several times for each record
        if fields.get(name) is not None:
            return name
    return ""


def from_turns(fields: Fields) -> Conversation:
    """`messages` or `conversations`, with the fields `system` and `tools` if the record has them."""
    key = first_of(TURN_FIELDS, fields)
    if not key:
        raise MisfitError(
            "missing_field", f"none of {', '.join(TURN_FIELDS)} is there; the fields are {', '.join(fields)}"
        )
    return around(turns(fields[key], key), key, fields)


def around(body: Turns, key: str, fields: Fields) -> Conversation:
    """Turns from the field `key`, with the system prompt and the tools that are fields of the record."""
    used = [key]
    messages = body.messages
    system = first_of(SYSTEMS, fields)
    if system and type(fields[system]) is str and (not messages or messages[0].role != "system"):
        messages = [Message("system", fields[system]), *messages] if fields[system] else messages
        used.append(system)
    tools = body.tools
    if tools is None and "tools" in fields:
        tools = tools_of(fields["tools"], "tools")
        used.append("tools")
    return Conversation(messages, tools, tuple(used), {key: body.left} if body.left else {})


def from_alpaca(fields: Fields) -> Conversation:
    """`instruction`, `input` (may be empty) and `output` or `response`; earlier turns in `history`."""
    key = first_of(OUTPUTS, fields)
    if not key or "instruction" not in fields:
        need = f"instruction and one of {', '.join(OUTPUTS)}"
        raise MisfitError("missing_field", f"{need} should be there; the fields are {', '.join(fields)}")
    asked = text_of(fields["instruction"], "instruction")
    given = fields.get("input")
    if given:
        asked = f"{asked}\n{text_of(given, 'input')}" if asked else text_of(given, "input")
    return exchange(fields, asked, key, ("instruction", *(["input"] if "input" in fields else [])))


def from_prompt(fields: Fields) -> Conversation:
    """A prompt and its completion, a question and its answer: strings, or lists of turns."""
    asked, key = first_of(QUESTIONS, fields), first_of(ANSWERS, fields)
    if not asked or not key:
        raise MisfitError(
            "missing_field", f"a prompt and a completion should be there; the fields are {', '.join(fields)}"
        )
    if type(fields[asked]) is not list:
        return exchange(fields, text_of(fields[asked], asked), key, (asked,))
    before, after = turns(fields[asked], asked), answer(fields[key], key)
    left = {k: t.left for k, t in ((asked, before), (key, after)) if t.left}
    whole = around(Turns(before.messages + after.messages, before.tools, None), asked, fields)
    return Conversation(whole.messages, whole.tools, (*whole.used, key), left)


def exchange(fields: Fields, asked: str, key: str, used: tuple[str, ...]) -> Conversation:
    """The history, the question and the answer in the field `key`, with system prompt and tools."""
    answered = answer(fields[key], key)
    messages = [*history(fields.get("history")), Message("user", asked), *answered.messages]
    whole = around(Turns(messages, answered.tools, None), key, fields)
    seen = ("history",) if "history" in fields else ()
    return Conversation(
        whole.messages, whole.tools, (*whole.used, *used, *seen), {key: answered.left} if answered.left else {}
    )


def answer(value: Any, key: str) -> Turns:
    """An answer as assistant messages: a string, one turn, or a list of turns."""
    if type(value) is dict:
        return turns([value], key)
    if type(value) is list:
        return turns(value, key)
    return Turns([Message("assistant", text_of(value, key))], None, None)


def history(value: Any) -> list[Message]:
    """Alpaca's `history`: pairs of (user, assistant).

    Raises:
        MisfitError: it is not a list of pairs of strings.
    """
    if not value:
        return []
    if type(value) is not list or any(type(pair) is not list or len(pair) != 2 for pair in value):
        raise MisfitError("bad_messages", f"history should be a list of pairs of strings, found {name_of(value)}")
    made = []
    for i, (asked, answered) in enumerate(value):
        made.append(Message("user", text_of(asked, f"history[{i}][0]")))
        made.append(Message("assistant", text_of(answered, f"history[{i}][1]")))
    return made


# Preference pairs: a prompt with a chosen and a rejected answer.


class Preference(NamedTuple):
    """The messages of prompt, chosen and rejected answer; the other fields as in `Conversation`."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]
    tools: str | None
    used: tuple[str, ...]
    left: Fields


def pair_of(fields: Fields) -> tuple[str, str] | None:
    """The names of a record's chosen and rejected field, if it has both."""
    return next((p for p in PAIRS if fields.get(p[0]) is not None and fields.get(p[1]) is not None), None)


def is_transcript(value: Any) -> bool:
    """Whether an answer is a whole dialogue in one string: "Human: ... Assistant: ..." with blank lines between."""
    return type(value) is str and _SPEAKER.match(value.lstrip()) is not None


def from_pair(fields: Fields) -> Preference:
    """Answers that are strings, turns or lists of turns. The prompt is a field of its own or the answers contain it."""
    names = _pair_names(fields)
    answers = [answer(fields[n], n) for n in names]
    left = {n: a.left for n, a in zip(names, answers, strict=True) if a.left}
    tools = answers[0].tools or answers[1].tools
    if all(a.messages[0].role != "assistant" for a in answers):
        return _from_dialogues(fields, names, answers, tools, left)
    key, before, used = _prompt(fields)
    whole = around(Turns(before.messages, before.tools or tools, None), key, fields)
    left |= {key: before.left} if before.left else {}
    return Preference(
        whole.messages, answers[0].messages, answers[1].messages, whole.tools, (*names, *whole.used, *used), left
    )


def from_transcripts(fields: Fields) -> Preference:
    """Two transcripts (Anthropic's hh-rlhf): their common beginning is the prompt, the rest are the answers."""
    names = _pair_names(fields)
    answers = [Turns(transcript(text_of(fields[n], n), n), None, None) for n in names]
    return _from_dialogues({n: fields[n] for n in names}, names, answers, None, {})


def transcript(text: str, where: str) -> list[Message]:
    """ "Human: ... Assistant: ..." as messages, without the white space around each.

    Raises:
        MisfitError: it does not begin with a speaker.
    """
    body = text.lstrip()
    if not _SPEAKER.match(body):
        raise MisfitError("bad_transcript", f'{where} should begin with "Human:" or "Assistant:", found {body[:40]!r}')
    cuts = list(_SPEAKER.finditer(body))
    ends = [c.start() for c in cuts[1:]] + [len(body)]
    return [Message(_SPEAKERS[c[1]], body[c.end() : end].strip()) for c, end in zip(cuts, ends, strict=True)]


def _pair_names(fields: Fields) -> tuple[str, str]:
    names = pair_of(fields)
    if names is None:
        raise MisfitError(
            "missing_field", f"a chosen and a rejected answer should be there; the fields are {', '.join(fields)}"
        )
    return names


def _from_dialogues(
    fields: Fields, names: tuple[str, str], answers: list[Turns], tools: str | None, left: Fields
) -> Preference:
    """Both answers hold the whole dialogue. Their common messages are the prompt, but never the last of an answer."""
    chosen, rejected = (a.messages for a in answers)
    limit = min(len(chosen), len(rejected)) - 1
    shared = next((i for i in range(limit) if chosen[i] != rejected[i]), limit)
    whole = around(Turns(chosen[:shared], tools, None), names[0], fields)
    said = {m.content for m in chosen[:shared]}
    used = tuple(n for n in PROMPTS if n in fields and fields[n] in said) if said else ()
    return Preference(
        whole.messages, chosen[shared:], rejected[shared:], whole.tools, (*names, *whole.used, *used), left
    )


def _prompt(fields: Fields) -> tuple[str, Turns, tuple[str, ...]]:
    """The prompt in a field of its own: (that field, its messages, more fields that were used)."""
    key = first_of((*TURN_FIELDS, *PROMPTS), fields)
    if not key:
        raise MisfitError("missing_field", f"the pair has no prompt; the fields are {', '.join(fields)}")
    if key in TURN_FIELDS or type(fields[key]) is list:
        return key, turns(fields[key], key), ()
    asked, used = text_of(fields[key], key), ["history"] if "history" in fields else []
    if key == "instruction" and "input" in fields:
        used.append("input")
        asked = "\n".join(part for part in (asked, text_of(fields["input"] or "", "input")) if part)
    return key, Turns([*history(fields.get("history")), Message("user", asked)], None, None), tuple(used)


# Turns: what a field holds to messages.


def turns(value: Any, where: str) -> Turns:
    """A list of turns as messages. The list may be a JSON string, as in CSV and Parquet files.

    Raises:
        MisfitError: it is not a list, it is empty, or one of its turns is not a message.
    """
    if type(value) is str:
        value = _loads(value, where, "bad_messages")
    if type(value) is not list or not value:
        found = "an empty list" if value == [] else name_of(value)
        raise MisfitError("bad_messages", f"{where} should be a list of messages, found {found}")
    messages, left, tools = [], [], None
    for i, turn in enumerate(value):
        made, rest = message(turn, f"{where}[{i}]")
        if "tools" in rest and tools is None:
            tools = tools_of(rest.pop("tools"), f"{where}[{i}].tools")
        messages.append(made)
        left.append(rest)
    return Turns(messages, tools, left if any(left) else None)


def message(turn: Any, where: str) -> tuple[Message, Fields]:
    """One turn as a message, and its fields without a column.

    Raises:
        MisfitError: not an object, an unknown speaker, content that is not text, calls that are not JSON.
    """
    if type(turn) is not dict:
        raise MisfitError("bad_messages", f"{where} should be an object, found {name_of(turn)}")
    speaker = turn.get("role", turn.get("from"))
    role = ROLES.get(speaker) if type(speaker) is str else None
    if role is not None and turn.keys() in _PLAIN:
        content = turn.get("content", turn.get("value"))
        if type(content) is str:
            return Message(role, content), {}
    return _full_message(dict(turn), where)


def _full_message(turn: Fields, where: str) -> tuple[Message, Fields]:
    role = _role(turn, where)
    key = "content" if "content" in turn else "value"
    if key not in turn and not {"tool_calls", "function_call"} & turn.keys():
        raise MisfitError("missing_field", f"{where} has neither content nor value; its fields are {', '.join(turn)}")
    content, reasoning, calls, left = _content(turn.pop(key, None), f"{where}.{key}")
    if role == _CALLS:
        calls, content = [text_of(content, f"{where}.{key}")], ""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if turn.get(name) is None:
            turn.pop(name, None)
        elif not reasoning:
            reasoning = text_of(turn.pop(name), f"{where}.{name}")
    tool_calls = _tool_calls(turn, calls, where)
    if content is None and not (tool_calls or reasoning):
        raise MisfitError("not_text", f"{where}.{key} should be a string, found null")
    made = Message(
        role="assistant" if role == _CALLS else role,
        content=content or "",
        name=_optional_text(turn, "name"),
        reasoning_content=reasoning or None,
        tool_calls=tool_calls,
        tool_call_id=_optional_text(turn, "tool_call_id"),
        weight=_weight(turn, where),
    )
    return made, turn | left


def _role(turn: Fields, where: str) -> str:
    key = "role" if "role" in turn else "from"
    speaker = turn.pop(key, None)
    if type(speaker) is not str:
        raise MisfitError(
            "missing_field", f"{where} names no speaker: role or from should be a string, found {name_of(speaker)}"
        )
    lowered = speaker.lower()
    if lowered == _CALLS:
        return _CALLS
    if lowered not in ROLES:
        raise MisfitError("unknown_role", f"{where}.{key} is {speaker!r}; known are {', '.join(ROLES)}, {_CALLS}")
    return ROLES[lowered]


def _content(value: Any, where: str) -> tuple[str | None, str, list[str], Fields]:
    """(text, reasoning, tool calls as JSON, what is left of typed parts) of a turn's content."""
    if value is None or type(value) is str:
        return value, "", [], {}
    if type(value) is not list:
        raise MisfitError("not_text", f"{where} should be a string or a list of parts, found {name_of(value)}")
    text: list[str] = []
    reasoning: list[str] = []
    calls, left = [], []
    for i, part in enumerate(value):
        kind, inner, rest = _part(part, f"{where}[{i}]")
        if kind in CALL_PARTS:
            calls.append(inner if type(inner) is str else to_json(inner))
        else:
            (reasoning if kind in REASONING_PARTS else text).append(text_of(inner, f"{where}[{i}]"))
        left.append(rest)
    joined = "".join(text) if text or not calls else None
    return joined, "".join(reasoning), calls, {"content": left} if any(left) else {}


def _part(part: Any, where: str) -> tuple[str, Any, Fields]:
    if type(part) is str:
        return "text", part, {}
    if type(part) is not dict:
        raise MisfitError("not_text", f"{where} should be a string or an object with a type, found {name_of(part)}")
    kind = part.get("type", "text")
    if kind not in TEXT_PARTS + REASONING_PARTS + CALL_PARTS:
        raise MisfitError("non_text_part", f"{where} is of type {kind!r}, and only text can be trained on")
    rest = {k: v for k, v in part.items() if k != "type"}
    for key in (kind, *PART_VALUES):
        if key in rest:
            return kind, rest.pop(key), rest
    raise MisfitError("missing_field", f"{where} has no value; its fields are {', '.join(part)}")


def _tool_calls(turn: Fields, calls: list[str], where: str) -> str | None:
    """The calls of a turn as one JSON list: as it was written if it was a list, else in OpenAI's form."""
    given, legacy = turn.pop("tool_calls", None), turn.pop("function_call", None)
    if legacy:
        calls = [*calls, legacy if type(legacy) is str else to_json(legacy)]
    made = [_call(c, where) for c in calls]
    if not given:
        return f"[{','.join(made)}]" if made else None
    text = given if type(given) is str else to_json(given)
    value = _loads(text, f"{where}.tool_calls", "bad_tool_calls")
    if type(value) is not list:
        text = f"[{text}]"
    return text[: text.rindex("]")] + "".join(f",{c}" for c in made) + "]" if made else text


def _call(text: str, where: str) -> str:
    """`{"name", "arguments"}` (or a list of them) as JSON text -> OpenAI calls, joined by commas."""
    value = _loads(text, where, "bad_tool_calls")
    if type(value) is list:
        return ",".join(_call(to_json(v), where) for v in parse_exactly(text))
    if type(value) is not dict or not ({"name", "function"} & value.keys()):
        raise MisfitError("bad_tool_calls", f"{where} should call a function by name, found {name_of(value)}")
    return text.strip() if "function" in value else f'{{"type":"function","function":{text.strip()}}}'


def tools_of(value: Any, where: str) -> str | None:
    """A declaration of tools as JSON text; None for no tools.

    Raises:
        MisfitError: a string that is not JSON.
    """
    if not value:
        return None
    if type(value) is not str:
        return to_json(value)
    if not value.strip():
        return None
    return value if _loads(value, where, "bad_tools") else None


def _optional_text(turn: Fields, key: str) -> str | None:
    """Take a string field out of the turn. Any other value but null stays there, and so goes to `extra`."""
    value = turn.get(key)
    if value is None or type(value) is str:
        turn.pop(key, None)
    return value if type(value) is str else None


def _weight(turn: Fields, where: str) -> float | None:
    """The loss weight of a message: `loss_weight` or `weight`, a number or a boolean."""
    for key in ("loss_weight", "weight"):
        value = turn.get(key)
        if isinstance(value, bool | int | float | Number):
            turn.pop(key)
            return float(value)
        if value is not None:
            raise MisfitError("bad_weight", f"{where}.{key} should be a number, found {name_of(value)}")
        turn.pop(key, None)
    return None


def _loads(text: str, where: str, reason: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as e:
        raise MisfitError(reason, f"{where} is a string that is not JSON: {e}") from None
