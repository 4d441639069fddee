"""Turns and conversations: what published records say in turn, as messages.

A turn is OpenAI's `role`/`content` or ShareGPT's `from`/`value`; its content is a text or a list of typed parts, as
OpenAI and Anthropic write them, with tool calls, reasoning and a loss weight.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson

from datakit.read.record import (
    Fields,
    Number,
    RecordError,
    at,
    listed,
    name_of,
    parse_exactly,
    text_of,
    to_json,
    without,
)

ROLES: Final = MappingProxyType(
    {
        "system": ("system", "developer"),
        "user": ("user", "human"),
        "assistant": ("assistant", "gpt", "model", "bot", "ai"),
        "tool": ("tool", "tool_response", "tool_result", "function", "observation", "ipython"),
    }
)
"""A role in chat templates -> the names that speakers of that role usually have. `--roles` names others."""
_TOOL_NAME: Final = re.compile(r'"name"\s*:\s*"([^"]+)"')
CALLERS: Final = ("function_call", "tool_call")
"""Speakers whose turns are calls of the assistant."""
SPEAKER_KEYS: Final = ("role", "from")
CONTENT_KEYS: Final = ("content", "value")
WEIGHTS: Final = ("weight", "loss_weight", "loss", "train", "training", "message_training", "train_detail")
"""Fields of a turn with its loss weight, a number or a boolean (OpenAI, LLaMA-Factory, ms-swift, axolotl)."""
MEDIA: Final = frozenset({"image", "images", "video", "videos", "audio", "audios"})
"""Fields with pictures, films and sound."""
TEXT_PARTS: Final = ("text", "input_text", "output_text")
REASONING_PARTS: Final = ("reasoning", "thinking", "reasoning_content")
CALL_PARTS: Final = ("tool_call", "tool_calls", "function_call")
JUDGED: Final = MappingProxyType({"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False})
"""What a label of an answer (KTO) may be, as text in lower case. Numbers count only where pairs are asked for: among
conversations a number may be the class of an example."""


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """What a user says about turns. The default says nothing."""

    roles: Mapping[str, str] = field(default_factory=lambda: {n: role for role, names in ROLES.items() for n in names})
    """Speakers, as they are written or in lower case, to roles."""
    turn_fields: tuple[tuple[str, str], ...] = ()
    """(our name, the user's field or path) of fields of a turn."""


PLAIN: Final = ParseOptions()


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
    """Messages, the tools that one of them declared, and each turn's fields without a column (None: none)."""

    messages: list[Message]
    tools: str | None = None
    left: list[Fields] | None = None


class Conversation(NamedTuple):
    """A record's messages and tools, the names (ours) that they were made from, and what is left inside these."""

    messages: list[Message]
    tools: str | None
    used: tuple[str, ...]
    left: Fields
    label: Any = None
    """What the record says of its answer (see `JUDGED`); None: nothing."""
    answer_turns: int = 0
    """How many messages at the end are the answer; 0: those after the last one of the user."""


# Conversations.


def conversation(found: Fields, options: ParseOptions = PLAIN) -> Conversation:
    """`messages`, or `prompt` with `answer` (texts or turns), and `history`, `reasoning_content`, `system`, `tools`,
    `label` where the record has them.

    Raises:
        RecordError: one of these cannot be what its name says.
    """
    if "messages" in found:
        body = turns(found["messages"], "messages", options)
        return around(body, found, ("messages",), {"messages": body.left} if body.left else {})
    found = with_turns_parsed(found, ("prompt", "answer"))
    prompt, used = asked(found, options)
    answer = said(found.get("answer", ""), "answer", "assistant", options)
    if found.get("tool_calls") is not None:
        calls = calls_of(None, [as_text(found["tool_calls"])], "tool_calls")
        answer.messages[-1] = answer.messages[-1]._replace(tool_calls=calls)
    last, thought = answer.messages[-1], found.get("reasoning_content")
    if thought and last.role == "assistant" and not last.reasoning_content and "<think>" not in last.content:
        answer.messages[-1] = last._replace(reasoning_content=text_of(thought, "reasoning_content"))
        used = (*used, "reasoning_content")
    left = {name: part.left for name, part in (("prompt", prompt), ("answer", answer)) if part.left}
    body = Turns(prompt.messages + answer.messages, prompt.tools or answer.tools)
    made = around(body, found, (*used, "answer", "tool_calls"), left)
    return made._replace(answer_turns=len(answer.messages))


def asked(found: Fields, options: ParseOptions) -> tuple[Turns, tuple[str, ...]]:
    """(the turns before an answer, the names that they were made from): the history, and the prompt."""
    prompt, before = said(found["prompt"], "prompt", "user", options), found.get("history")
    if not before:
        return prompt, ("prompt",) if before is None else ("prompt", "history")
    if type(before) is list and all(type(pair) is list and len(pair) == 2 for pair in before):  # alpaca's
        before = [{"role": role, "content": text} for pair in before for role, text in zip(_PAIR, pair, strict=True)]
    earlier = turns(before, "history", options).messages
    return prompt._replace(messages=earlier + prompt.messages), ("prompt", "history")


_PAIR: Final = ("user", "assistant")


def said(value: Any, where: str, role: str, options: ParseOptions) -> Turns:
    """What one side says: a text, one turn, or a list of turns."""
    if type(value) is list or (type(value) is dict and type(listed(value)) is list):
        return turns(value, where, options)
    return turns([value], where, options) if type(value) is dict else Turns([Message(role, text_of(value, where))])


def with_turns_parsed(found: Fields, names: tuple[str, ...]) -> Fields:
    """The values with turns as lists, if all these are texts that hold turns as JSON (CSV). One alone may be an answer
    that is about such texts."""
    for name in names:
        if type(found.get(name)) is not str or found[name][:1] != "[":
            return found
    read = {name: listed(found[name]) for name in names}
    good = all(v and type(v) is list and all(type(t) is dict and speaker_key(t) for t in v) for v in read.values())
    return found | read if good else found


def speaker_key(turn: Fields) -> str:
    """The field of a turn that names its speaker; "" without one."""
    return next((key for key in SPEAKER_KEYS if key in turn), "")


def around(body: Turns, found: Fields, used: tuple[str, ...], left: Fields) -> Conversation:
    """Turns with the system prompt, the tools and the label that are fields of their record."""
    messages, tools, system = body.messages, body.tools, found.get("system")
    if type(system) in (str, list) and (not messages or messages[0].role != "system"):
        prompt = _content(system, "system")[0] or ""
        messages = [Message("system", prompt), *messages] if prompt else messages
        used = (*used, "system")
    if tools is None and "tools" in found:
        tools = tools_of(found["tools"], "tools")
        used = (*used, "tools")
    return Conversation(messages, tools, used, left, found.get("label"))


def declares_tools_twice(found: Conversation) -> bool:
    """Whether the system prompt declares the first tool, too: a template that writes tools writes them once more."""
    name = _TOOL_NAME.search(found.tools or "")
    first = found.messages[0]
    return name is not None and first.role == "system" and any(f"{q}{name[1]}{q}" in first.content for q in "\"'")


def refuse_media(fields: Fields, messages: list[Message]) -> None:
    """Refuse a record with pictures, films or sound. A name of a file counts where a message says `<image>`.

    Raises:
        RecordError: the record has such a field.
    """
    for name in () if MEDIA.isdisjoint(fields) else MEDIA & fields.keys():
        value = fields[name]
        found = any(v is not None for v in value.values()) if type(value) is dict else bool(value)
        if found and (type(value) is not str or any(f"<{name.rstrip('s')}>" in m.content for m in messages)):
            raise RecordError(
                "non_text_part",
                f"{name} is a part of the record, and only text can be trained on; to read the texts alone, name their "
                "fields with --map",
            )


# Turns.


def turns(value: Any, where: str, options: ParseOptions = PLAIN) -> Turns:
    """A list of turns as messages (see `record.listed`). Texts are what the user and the assistant say in turn.

    Raises:
        RecordError: it is no list, it is empty, or one of its turns is not a message.
    """
    value = listed(value)
    if type(value) is not list or not value:
        found = "an empty list" if value == [] else name_of(value)
        raise RecordError("bad_messages", f"{where} should be a list of messages, found {found}")
    messages, left, tools, thought = list[Message](), [], None, ""
    for i, turn in enumerate(value):
        if type(turn) is str:
            turn = {"role": _PAIR[i % 2], "content": turn}
        for part in _results_apart(turn):
            made, rest = message(part, f"{where}[{i}]", options)
            if "tools" in rest and tools is None:  # minimind's
                tools = tools_of(rest.pop("tools"), f"{where}[{i}].tools")
            if rest.get("channel") == "analysis" and made.role == "assistant":  # Harmony: a thought is its own turn
                thought += made.content
                continue
            if thought and made.role == "assistant" and made.reasoning_content is None:
                made, thought = made._replace(reasoning_content=thought), ""
            messages.append(made)
            left.append(rest)
    if thought:
        raise RecordError("no_answer", f"{where} ends with a thought that no answer follows")
    return Turns(messages, tools, left if any(left) else None)


def _results_apart(turn: Any) -> list[Any]:
    """A turn, with each tool's result in its content (Anthropic's `tool_result`) as a turn of the tool before it."""
    content = turn.get("content") if type(turn) is dict else None
    if type(content) is not list:
        return [turn]
    results = [part for part in content if type(part) is dict and part.get("type") == "tool_result"]
    rest = [part for part in content if part not in results]
    made = [
        {k: v for k, v in part.items() if k not in ("type", "tool_use_id")}
        | {"role": "tool", "content": part.get("content") or "", "tool_call_id": part.get("tool_use_id")}
        for part in results
    ]
    return [*made, turn | {"content": rest}] if rest or not results else made


_BARE = ({"role", "content"}, {"from", "value"})


def message(turn: Any, where: str, options: ParseOptions = PLAIN) -> tuple[Message, Fields]:
    """One turn as a message, and its fields without a column.

    Raises:
        RecordError: not an object, an unknown speaker, content that is not text, calls that are not JSON.
    """
    if type(turn) is not dict:
        raise RecordError("bad_messages", f"{where} should be an object, found {name_of(turn)}")
    if turn.keys() in _BARE and not options.turn_fields:  # most turns: nothing else to look for
        speaker, text = turn.get("role", turn.get("from")), turn.get("content", turn.get("value"))
        role = options.roles.get(speaker) if type(speaker) is str else None
        if role is not None and type(text) is str:
            return Message(role, text), {}
    turn = dict(turn)
    for name, given in options.turn_fields:
        if (found := at(turn, given)) is not None:
            turn = without(turn, given) | {name: found}
    return _message(turn, where, options)


def _message(turn: Fields, where: str, options: ParseOptions) -> tuple[Message, Fields]:
    role = _role(turn, where, options)
    key = next((k for k in CONTENT_KEYS if turn.get(k) is not None), "content")
    if turn.keys().isdisjoint((*CONTENT_KEYS, "tool_calls", "function_call")):
        raise RecordError("missing_field", f"{where} has neither content nor value; its fields are {', '.join(turn)}")
    given = turn.pop(key, None)
    if role in ("tool", *CALLERS) and type(given) not in (str, list, type(None)):
        given = to_json(given)  # what a tool gives and gets may be an object
    content, reasoning, calls, left = _content(given, f"{where}.{key}", role in ("tool", *CALLERS))
    if role in CALLERS:
        calls, content = [text_of(content, f"{where}.{key}")], ""
    for name in REASONING_PARTS:
        if turn.get(name) is None:
            turn.pop(name, None)
        elif not reasoning:
            reasoning = text_of(turn.pop(name), f"{where}.{name}")
    if legacy := turn.pop("function_call", None):  # OpenAI's former field for one call
        calls = [*calls, as_text(legacy)]
    tool_calls = calls_of(turn.pop("tool_calls", None), calls, where)
    if content is None and not (tool_calls or reasoning):
        raise RecordError("not_text", f"{where}.{key} should be a string, found null")
    made = Message(
        role="assistant" if role in CALLERS else role,
        content=content or "",
        name=_optional_text(turn, "name"),
        reasoning_content=reasoning or None,
        tool_calls=tool_calls,
        tool_call_id=_optional_text(turn, "tool_call_id"),
        weight=_weight_of(turn, where),
    )
    return made, turn | left


def _role(turn: Fields, where: str, options: ParseOptions) -> str:
    key = speaker_key(turn)
    speaker = speaker_of(turn.pop(key)) if key else None
    if type(speaker) is not str:
        raise RecordError(
            "missing_field", f"{where} names no speaker: role or from should be a string, found {name_of(speaker)}"
        )
    role = role_of(speaker, options)
    if not role:
        raise RecordError(
            "unknown_role",
            f"{where}.{key} is {speaker!r}; name its role (system, user, assistant or tool) with --roles "
            f"{speaker}=ROLE; known are {', '.join((*PLAIN.roles, *CALLERS))}",
        )
    return role


def speaker_of(value: Any) -> Any:
    """The name of a speaker: a number or a boolean (`is_human`) as its text."""
    return str(value).lower() if type(value) in (int, bool) else value


def role_of(speaker: str, options: ParseOptions) -> str:
    """The role of a speaker, or one of `CALLERS`; "" if it is unknown. `Tool-Response` is `tool_response`."""
    lowered = speaker.strip().lower()
    plain = lowered.replace("-", "_").replace(" ", "_")
    found = next((options.roles[name] for name in (speaker, lowered, plain) if name in options.roles), "")
    return found or (plain if plain in CALLERS else "")


def _content(value: Any, where: str, from_tool: bool = False) -> tuple[str | None, str, list[str], Fields]:
    """(text, reasoning, tool calls as JSON, what is left of typed parts) of a turn's content.

    A tool's result may be any list, too; it is then the list's JSON.
    """
    if value is None or type(value) is str:
        return value, "", [], {}
    if type(value) is not list:
        raise RecordError("not_text", f"{where} should be a string or a list of parts, found {name_of(value)}")
    if from_tool and not all(type(p) is str or (type(p) is dict and ("type" in p or "text" in p)) for p in value):
        return to_json(value), "", [], {}
    text, reasoning, calls, left = list[str](), list[str](), list[str](), list[Fields]()
    for i, part in enumerate(value):
        kind, inner, rest = _part(part, f"{where}[{i}]")
        if kind in CALL_PARTS:
            calls.append(as_text(inner))
        else:
            (reasoning if kind in REASONING_PARTS else text).append(text_of(inner, f"{where}[{i}]"))
        left.append(rest)
    joined = "".join(text) if text or not calls else None
    return joined, "".join(reasoning), calls, {"content": left} if any(left) else {}


def _part(part: Any, where: str) -> tuple[str, Any, Fields]:
    """(its type, its value, what is left of it) of a typed part."""
    if type(part) is str:
        return "text", part, {}
    if type(part) is not dict:
        raise RecordError("not_text", f"{where} should be a string or an object with a type, found {name_of(part)}")
    kind, rest = str(part.get("type", "text")), {k: v for k, v in part.items() if k != "type"}
    if kind == "tool_use":  # Anthropic's
        function = {"name": rest.pop("name", None), "arguments": rest.pop("input", None) or {}}
        number = {"id": rest.pop("id")} if rest.get("id") is not None else {}
        return CALL_PARTS[0], number | {"type": "function", "function": function}, rest
    if kind not in TEXT_PARTS + REASONING_PARTS + CALL_PARTS:
        raise RecordError("non_text_part", f"{where} is of type {kind!r}, and only text can be trained on")
    for key in (kind, "text", "value", "content"):
        if rest.get(key) is not None:
            return kind, rest.pop(key), rest
    raise RecordError("missing_field", f"{where} has no value; its fields are {', '.join(part)}")


def as_text(value: Any) -> str:
    """JSON text: the value itself if it is a string."""
    return value if type(value) is str else to_json(value)


def calls_of(given: Any, calls: list[str], where: str) -> str | None:
    """Tool calls as one JSON list: `given` as it was written if it is a list, then `calls` in OpenAI's form.

    Raises:
        RecordError: they are not JSON, or call no function by name.
    """
    made = [_call(c, where) for c in calls]
    if not given:
        return f"[{','.join(made)}]" if made else None
    text = as_text(given)
    if type(_loads(text, f"{where}.tool_calls", "bad_tool_calls")) is not list:
        text = f"[{text}]"
    return text[: text.rindex("]")] + "".join(f",{c}" for c in made) + "]" if made else text


def _call(text: str, where: str) -> str:
    """`{"name", "arguments"}` (or a list of them) as JSON text -> OpenAI calls, joined by commas."""
    value = _loads(text, where, "bad_tool_calls")
    if type(value) is list:
        return ",".join(_call(to_json(v), where) for v in parse_exactly(text))
    if type(value) is not dict or not ({"name", "function"} & value.keys()):
        raise RecordError("bad_tool_calls", f"{where} should call a function by name, found {name_of(value)}")
    return text.strip() if "function" in value else f'{{"type":"function","function":{text.strip()}}}'


def tools_of(value: Any, where: str) -> str | None:
    """A declaration of tools as JSON text; None for no tools. Each tool may be JSON text by itself. Anthropic's
    `input_schema` becomes OpenAI's `parameters`.

    Raises:
        RecordError: a string that is not JSON.
    """
    if not value or (type(value) is str and not value.strip()):
        return None
    if type(value) is list and all(type(tool) is str for tool in value):
        for i, tool in enumerate(value):
            _loads(tool, f"{where}[{i}]", "bad_tools")
        return f"[{','.join(value)}]"
    if type(value) is list:
        return to_json(list(map(_plain_tool, value)))
    if type(value) is not str:
        return to_json(value)
    read = _loads(value, where, "bad_tools")
    if type(read) is list and any(type(tool) is str or _plain_tool(tool) is not tool for tool in read):
        return tools_of(parse_exactly(value), where)
    return value if read else None


def _plain_tool(tool: Any) -> Any:
    if type(tool) is not dict or "input_schema" not in tool:
        return tool
    return {"parameters" if k == "input_schema" else k: v for k, v in tool.items()}


def _optional_text(turn: Fields, key: str) -> str | None:
    """Take a string field out of the turn. Any other value but null stays there, and so stays beside the messages."""
    value = turn.get(key)
    if value is None or type(value) is str:
        turn.pop(key, None)
    return value if type(value) is str else None


def _weight_of(turn: Fields, where: str) -> float | None:
    """Take the loss weight of a message out of its turn: the first of `WEIGHTS`, a number or a boolean.

    Raises:
        RecordError: no number, or a negative one.
    """
    for key in WEIGHTS:
        if (value := turn.get(key)) is None:
            turn.pop(key, None)
            continue
        if not isinstance(value, bool | int | float | Number):
            raise RecordError("bad_weight", f"{where}.{key} should be one number, found {name_of(value)}")
        turn.pop(key)
        if not 0 <= float(value) < float("inf"):
            raise RecordError("bad_weight", f"{where}.{key} should be 0 or more, found {value}")
        return float(value)
    return None


def _loads(text: str, where: str, reason: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as e:
        raise RecordError(reason, f"{where} is a string that is not JSON: {e}") from None
