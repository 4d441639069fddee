"""Turns: lists of turns in other people's records as messages.

Turns are OpenAI's role/content, ShareGPT's from/value, speaker/utterance and the like, with typed content parts, tool
calls, reasoning and loss weights.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson

from datakit.read.layouts.record import Fields, MisfitError, Number, name_of, parse_exactly, text_of, to_json

ROLES: Final = MappingProxyType(
    {
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
        "chatbot": "assistant",
        "ai": "assistant",
        "model": "assistant",
        "tool": "tool",
        "tool_response": "tool",
        "tool_result": "tool",
        "function": "tool",
        "observation": "tool",
        "function_response": "tool",
        "ipython": "tool",
    }
)
"""A speaker's name in datasets -> the role in chat templates. Those of `CALLERS` are turns of the assistant, too."""

TEXT_PARTS: Final = ("text", "input_text", "output_text")
REASONING_PARTS: Final = ("reasoning", "thinking", "reasoning_content")
CALL_PARTS: Final = ("tool_call", "tool_calls", "function_call", "tool_use")
PART_VALUES: Final = ("text", "value", "content", "thinking", "reasoning")
_UNTYPED: Final = MappingProxyType(
    {
        "functionCall": "tool_use", "function_call": "tool_use", "toolUse": "tool_use",
        "functionResponse": "tool_result", "function_response": "tool_result", "toolResult": "tool_result",
        "reasoningContent": "reasoning",
    }
)  # fmt: skip
"""What is in a part without a type, by its key: Gemini's and Bedrock's calls, results and thoughts."""
ROLE_KEYS: Final = ("role", "from", "speaker")
CONTENT_KEYS: Final = ("content", "value", "utterance", "text", "message", "parts")
SYSTEMS: Final = (
    "system", "system_prompt", "system_message", "meta_instruction", "system_instruction", "systeminstruction",
    "preamble",
)  # fmt: skip
TOOLS: Final = ("tools", "functions", "toolconfig")
MEDIA: Final = frozenset({"image", "images", "video", "videos", "audio", "audios"})
"""Fields with pictures, films and sound."""
JUDGEMENTS: Final = ("label", "kto_tag", "is_correct", "correct", "is_safe")
"""Fields that say whether the answer is a good one."""
JUDGED: Final = MappingProxyType({"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False})
"""The values of these fields as text in lower case. Numbers count only where pairs are asked for: among conversations
a number may be the class of an example."""
WEIGHTS: Final = ("loss_weight", "weight", "loss", "train", "training", "message_training", "output_with_loss")
"""Fields of a turn with its loss weight: a number, or false for turns that are not learned."""
WEIGHTED_SPANS: Final = ("train_detail", "training_detail", "message_training_detail")
"""Fields of a turn that say which of its characters are learned (axolotl)."""
LITERAL: Final = re.compile(r"\s*\[\s*\{\s*'")
"""How a list of objects begins as Python prints it: so pandas writes lists into CSV."""
_WEIGHTED = frozenset((*WEIGHTS, *WEIGHTED_SPANS))
_TOOL_NAME = re.compile(r'"name"\s*:\s*"([^"]+)"')
_SEPARATORS = re.compile(r"[\s-]+")
_PLAIN = ({"role", "content"}, {"from", "value"})
CALLERS: Final = ("function_call", "tool_call", "tool_calls")
"""Speakers whose turns are calls of the assistant."""
_CALLS = CALLERS[0]


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
    left: list[Fields] | Fields | None


class Conversation(NamedTuple):
    """A record's messages and tools, the fields that they were made from, and what is left inside these fields."""

    messages: list[Message]
    tools: str | None
    used: tuple[str, ...]
    left: Fields
    judgement: Any = None
    """What the record says of its answer (see `JUDGED`); None: nothing."""
    answer_turns: int = 0
    """How many messages at the end are the answer; 0: those after the last one of the user."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a user says about records besides their layout. The default says nothing."""

    roles: Mapping[str, str] = field(default_factory=lambda: ROLES)
    """Speakers, as they are written or in lower case, to roles: `ROLES` and the user's."""
    turn_fields: tuple[tuple[str, str], ...] = ()
    """(name here, the user's name) of fields of a turn."""
    mapping: tuple[tuple[str, str], ...] = ()
    """(name here, the user's field, path or template) of fields of a record."""
    every_path: bool = False
    """A tree of messages gives each of its paths, not only the best one."""


PLAIN: Final = Reading()


def first_of(names: tuple[str, ...], fields: Fields) -> str:
    """The first of some field names with a value other than null; "" if there is none."""
    for name in names:  # a loop is faster than a generator, and this runs several times for each record
        if fields.get(name) is not None:
            return name
    return ""


def around(body: Turns, key: str, fields: Fields, used: tuple[str, ...] = ()) -> Conversation:
    """Turns from the field `key` with the system prompt, the tools and the judgement that are fields of the record.

    `used` are further fields that the turns were made from.
    """
    used = (*used, key)
    messages, tools = body.messages, body.tools
    system = first_of(SYSTEMS, fields)
    if system and type(fields[system]) in (str, list, dict) and (not messages or messages[0].role != "system"):
        prompt = _system_of(fields[system], system)
        messages = [Message("system", prompt), *messages] if prompt else messages
        used = (*used, system)
    declared = next((n for n in TOOLS if fields.get(n)), "tools")
    if tools is None and declared in fields:
        tools = tools_of(fields[declared], declared)
        used = (*used, declared)
    if not MEDIA.isdisjoint(fields):
        _refuse_media(messages, fields)
    return Conversation(
        messages, tools, used, {key: body.left} if body.left else {}, fields.get(judged_field_of(fields))
    )


def declares_tools_twice(found: Conversation) -> bool:
    """Whether the system prompt declares the first tool, too: a template that writes tools writes them once more."""
    name = _TOOL_NAME.search(found.tools or "")
    first = found.messages[0]
    return name is not None and first.role == "system" and any(f"{q}{name[1]}{q}" in first.content for q in "\"'")


def _refuse_media(messages: list[Message], fields: Fields) -> None:
    """Refuse a record with pictures, films or sound. A name of a file counts where a message says `<image>`.

    Raises:
        MisfitError: the record has such a field.
    """
    for name in MEDIA & fields.keys():
        value = fields[name]
        found = any(v is not None for v in value.values()) if type(value) is dict else bool(value)
        if found and (type(value) is not str or any(f"<{name.rstrip('s')}>" in m.content for m in messages)):
            raise MisfitError(
                "non_text_part",
                f"{name} is a part of the record, and only text can be trained on; to read the texts alone, name their "
                "fields with --map",
            )


def _system_of(value: Any, where: str) -> str:
    """A system prompt: a string, a list of text parts (Anthropic's and Bedrock's), or an object with such a list
    (Gemini's)."""
    if type(value) is dict:
        value = next((value[k] for k in CONTENT_KEYS if k in value), value)
    return _content(value, where)[0] or ""


def judged_field_of(fields: Fields) -> str:
    """The field of `JUDGEMENTS` that says whether the answer is a good one; "" without one."""
    found = (n for n in JUDGEMENTS if n in fields and str(fields[n]).lower() in JUDGED)
    return next(found, "") or first_of(JUDGEMENTS[:2], fields)


def turns(value: Any, where: str, reading: Reading = PLAIN) -> Turns:
    """A list of turns as messages. It may be a string of JSON or of Python, as in CSV files, or an object of lists.

    Raises:
        MisfitError: it is not a list, it is empty, or one of its turns is not a message.
    """
    value = list_of(value, where)
    messages, left, tools, thought = list[Message](), [], None, ""
    for i, turn in enumerate(chain.from_iterable(map(_apart, value))):
        made, rest = message(turn, f"{where}[{i}]", reading)
        if "tools" in rest and tools is None:
            tools = tools_of(rest.pop("tools"), f"{where}[{i}].tools")
        if rest.get("channel") == "analysis" and made.role == "assistant":  # Harmony: a thought is a turn of its own
            thought += made.content
            continue
        if thought and made.role == "assistant" and made.reasoning_content is None:
            made, thought = made._replace(reasoning_content=thought), ""
        messages.append(made)
        left.append(rest)
    if thought:
        raise MisfitError("no_answer", f"{where} ends with a thought that no answer follows")
    return Turns(messages, tools, left if any(left) else None)


def unzipped(value: Any) -> Any:
    """An object of lists that have one length as a list of objects: `datasets` stores sequences of objects so. Any
    other value as it is."""
    if type(value) is not dict or not value:
        return value
    columns = list(value.values())
    if any(type(column) is not list or len(column) != len(columns[0]) for column in columns):
        return value
    return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]


def list_of(value: Any, where: str) -> list[Any]:
    """The list of turns that a value holds (see `turns`).

    Raises:
        MisfitError: it holds none, or an empty one.
    """
    if type(value) is str:
        value = _literal(value) if LITERAL.match(value) else loads(value, where, "bad_messages")
    value = unzipped(value)
    if type(value) is not list or not value:
        found = "an empty list" if value == [] else name_of(value)
        raise MisfitError("bad_messages", f"{where} should be a list of messages, found {found}")
    return value


def _literal(text: str) -> Any:
    """The value of a list as Python prints it; None if it is none."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def parsed(text: str) -> Any:
    """The list or object that a text holds as JSON, or as Python prints it; any other text as it is."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        value = _literal(text)
        return value if type(value) in (list, dict) else text


def _apart(turn: Any) -> list[Any]:
    """A turn, with each tool's result in its content (Anthropic's `tool_result`, Bedrock's, Gemini's) as a turn before
    it."""
    key = "parts" if type(turn) is dict and type(turn.get("parts")) is list else "content"
    content = turn.get(key) if type(turn) is dict else None
    if type(content) is not list:
        return [turn]
    results = [part for part in content if type(part) is dict and _kind(part) == "tool_result"]
    rest = [part for part in content if part not in results]
    made = list(map(_result, results))
    return [*made, turn | {key: rest}] if rest or not results else made


def _kind(part: Fields) -> str:
    """The type of a part of content; "text" if it has none."""
    if part.get("type") is not None:
        return str(part["type"])
    if part.get("thought") is True:  # Gemini's
        return "reasoning"
    return next((kind for key, kind in _UNTYPED.items() if part.get(key) is not None), "text")


def _unwrapped(part: Fields) -> Fields:
    """A part without a type: what is in its one key, with the keys beside it."""
    key = next((k for k in _UNTYPED if type(part.get(k)) is dict), "")
    inner = {k: v for k, v in part.get(key, {}).items() if v is not None}
    return {k: v for k, v in part.items() if k != key and k not in _UNTYPED} | inner


def _result(part: Fields) -> Fields:
    """A tool's result as a turn of its own."""
    rest = _unwrapped(part)
    rest.pop("type", None)
    given = next((rest.pop(k) for k in ("content", "response") if k in rest), None)
    if type(given) is list:  # Bedrock's
        given = [to_json(p["json"]) if type(p) is dict and p.get("json") is not None else p for p in given]
    called = next((rest.pop(k) for k in ("tool_use_id", "toolUseId", "id") if k in rest), None)
    return rest | {"role": "tool", "content": "" if given is None else given, "tool_call_id": called}


def message(turn: Any, where: str, reading: Reading = PLAIN) -> tuple[Message, Fields]:
    """One turn as a message, and its fields without a column.

    Raises:
        MisfitError: not an object, an unknown speaker, content that is not text, calls that are not JSON.
    """
    if type(turn) is not dict:
        raise MisfitError("bad_messages", f"{where} should be an object, found {name_of(turn)}")
    speaker = turn.get("role", turn.get("from"))
    role = reading.roles.get(speaker) if type(speaker) is str else None
    if role is not None and turn.keys() in _PLAIN and not reading.turn_fields:
        content = turn.get("content", turn.get("value"))
        if type(content) is str:
            return Message(role, content), {}
    turn = dict(turn)
    for name, given in reading.turn_fields:
        found = _taken(turn, [given] if given in turn else given.split("."))
        if found is not None:
            turn = found[1] | {name: found[0]}
    return _full_message(turn, where, reading)


def _taken(fields: Fields, path: list[str]) -> tuple[Any, Fields] | None:
    """The value that a path leads to, and the fields without it; None where it leads nowhere."""
    key, *rest = path
    if not rest:
        return (fields[key], {k: v for k, v in fields.items() if k != key}) if key in fields else None
    inner = _taken(fields[key], rest) if type(fields.get(key)) is dict else None
    if inner is None:
        return None
    return inner[0], {k: v for k, v in (fields | {key: inner[1]}).items() if k != key or v}


def _full_message(turn: Fields, where: str, reading: Reading) -> tuple[Message, Fields]:
    role = _role(turn, where, reading)
    key = "content" if turn.get("content") is not None else _content_key(turn)
    if key not in turn and not {"tool_calls", "function_call"} & turn.keys():
        raise MisfitError("missing_field", f"{where} has neither content nor value; its fields are {', '.join(turn)}")
    given = turn.pop(key, None)
    if role in ("tool", _CALLS) and not _is_text(given):
        given = to_json(given)
    content, reasoning, calls, left = _content(given, f"{where}.{key}")
    if role == _CALLS:
        calls, content = [text_of(content, f"{where}.{key}")], ""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if turn.get(name) is None:
            turn.pop(name, None)
        elif not reasoning:
            reasoning = text_of(turn.pop(name), f"{where}.{name}")
    tool_calls = calls_of(turn.pop("tool_calls", None), [*calls, *_legacy_call(turn)], where)
    if content is None and not (tool_calls or reasoning):
        raise MisfitError("not_text", f"{where}.{key} should be a string, found null")
    made = Message(
        role="assistant" if role == _CALLS else role,
        content=content or "",
        name=_optional_text(turn, "name"),
        reasoning_content=reasoning or None,
        tool_calls=tool_calls,
        tool_call_id=_optional_text(turn, "tool_call_id"),
        weight=weight_of(turn, where),
    )
    return made, turn | left


def _content_key(turn: Fields) -> str:
    """The field of a turn that holds what is said: one that is null gives way to another."""
    named = [k for k in (*CONTENT_KEYS, *SYSTEMS) if k in turn]
    return next((k for k in named if turn[k] is not None), next(iter(named), "content"))


def _is_text(value: Any) -> bool:
    """Whether content is a text or a list of parts, and not an object that a tool gave or got."""
    if type(value) is not list:
        return value is None or type(value) is str
    return all(type(part) is str or (type(part) is dict and ("type" in part or "text" in part)) for part in value)


def _role(turn: Fields, where: str, reading: Reading) -> str:
    key = next((k for k in ROLE_KEYS if k in turn), "role")
    speaker = turn.pop(key, None)
    speaker = speaker_of(speaker)
    if type(speaker) is not str:
        raise MisfitError(
            "missing_field", f"{where} names no speaker: role or from should be a string, found {name_of(speaker)}"
        )
    role = reading.roles.get(speaker) or reading.roles.get(spelled(speaker))
    if role is None and spelled(speaker) in CALLERS:
        return _CALLS
    if role is None:
        known = f"{', '.join(ROLES)}, {', '.join(CALLERS)}"
        raise MisfitError(
            "unknown_role",
            f"{where}.{key} is {speaker!r}; name its role (system, user, assistant or tool) with "
            f"--roles {speaker}=ROLE; known are {known}",
        )
    return role


def spelled(speaker: str) -> str:
    """A speaker's name in the letters of `ROLES`: `Tool-Response` is `tool_response`."""
    return _SEPARATORS.sub("_", speaker.strip().lower())


def speaker_of(value: Any) -> Any:
    """The name of a speaker: a number or a boolean (`is_human`) as its text."""
    return str(value).lower() if type(value) in (int, bool) else value


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
    kind = _kind(part)
    if kind not in TEXT_PARTS + REASONING_PARTS + CALL_PARTS:
        raise MisfitError("non_text_part", f"{where} is of type {kind!r}, and only text can be trained on")
    rest = _unwrapped(part) if part.get("type") is None else {k: v for k, v in part.items() if k != "type"}
    if kind == "tool_use":  # Anthropic's, Bedrock's, Gemini's
        given = next((rest.pop(k) for k in ("input", "args", "arguments") if k in rest), None)
        called = {"name": rest.pop("name", None), "arguments": given or {}}
        number = next((rest.pop(k) for k in ("id", "toolUseId") if k in rest), None)
        return kind, ({} if number is None else {"id": number}) | {"type": "function", "function": called}, rest
    if type(rest.get("reasoningText")) is dict:  # Bedrock's
        rest |= rest.pop("reasoningText")
    if kind == "reasoning" and rest.get("thought") is True:
        del rest["thought"]
    for key in (kind, *PART_VALUES):
        if rest.get(key) is not None:
            return kind, rest.pop(key), rest
    raise MisfitError("missing_field", f"{where} has no value; its fields are {', '.join(part)}")


def _legacy_call(turn: Fields) -> list[str]:
    """The one call in OpenAI's former field `function_call`, as JSON text."""
    call = turn.pop("function_call", None)
    return [call if type(call) is str else to_json(call)] if call else []


def calls_of(given: Any, calls: list[str], where: str) -> str | None:
    """Tool calls as one JSON list: `given` as it was written if it is a list, then `calls` in OpenAI's form.

    Raises:
        MisfitError: they are not JSON, or call no function by name.
    """
    made = [_call(c, where) for c in calls]
    if not given:
        return f"[{','.join(made)}]" if made else None
    text = given if type(given) is str else to_json(given)
    value = loads(text, f"{where}.tool_calls", "bad_tool_calls")
    if type(value) is not list:
        text = f"[{text}]"
    return text[: text.rindex("]")] + "".join(f",{c}" for c in made) + "]" if made else text


def _call(text: str, where: str) -> str:
    """`{"name", "arguments"}` (or a list of them) as JSON text -> OpenAI calls, joined by commas."""
    value = loads(text, where, "bad_tool_calls")
    if type(value) is list:
        return ",".join(_call(to_json(v), where) for v in parse_exactly(text))
    if type(value) is not dict or not ({"name", "function"} & value.keys()):
        raise MisfitError("bad_tool_calls", f"{where} should call a function by name, found {name_of(value)}")
    return text.strip() if "function" in value else f'{{"type":"function","function":{text.strip()}}}'


def tools_of(value: Any, where: str) -> str | None:
    """A declaration of tools as JSON text; None for no tools. Each tool may be JSON text by itself.

    Raises:
        MisfitError: a string that is not JSON.
    """
    value = value["tools"] if type(value) is dict and type(value.get("tools")) is list else value
    if not value:
        return None
    if type(value) is list and all(type(tool) is str for tool in value):
        for i, tool in enumerate(value):
            loads(tool, f"{where}[{i}]", "bad_tools")
        return f"[{','.join(value)}]"
    if type(value) is list:
        return to_json([plain for tool in value for plain in _plain_tools(tool)])
    if type(value) is not str:
        return to_json(value)
    if not value.strip():
        return None
    read = loads(value, where, "bad_tools")
    if type(read) is list and any(type(tool) is str or _plain_tools(tool) != [tool] for tool in read):
        return tools_of(parse_exactly(value), where)
    return value if read else None


def _plain_tools(tool: Any) -> list[Any]:
    """A tool as OpenAI writes it, from Anthropic's (`input_schema`) or Bedrock's (`toolSpec`); the tools of one of
    Gemini's lists (`functionDeclarations`)."""
    if type(tool) is not dict:
        return [tool]
    for name in ("functionDeclarations", "function_declarations"):
        if type(tool.get(name)) is list:
            return [plain for one in tool[name] for plain in _plain_tools(one)]
    spec = tool["toolSpec"] if type(tool.get("toolSpec")) is dict else tool
    made = {"parameters" if k in ("input_schema", "inputSchema") else k: v for k, v in spec.items()}
    schema = made.get("parameters")
    if spec is not tool and type(schema) is dict and "json" in schema:
        made["parameters"] = schema["json"]
    return [made]


def _optional_text(turn: Fields, key: str) -> str | None:
    """Take a string field out of the turn. Any other value but null stays there, and so stays beside the messages."""
    value = turn.get(key)
    if value is None or type(value) is str:
        turn.pop(key, None)
    return value if type(value) is str else None


def weight_of(turn: Fields, where: str) -> float | None:
    """Take the loss weight of a message out of its turn: the first of `WEIGHTS`, a number or a boolean.

    Raises:
        MisfitError: no number, a negative one, or a part of the message only is learned.
    """
    if _WEIGHTED.isdisjoint(turn):
        return None
    found = None
    for key in WEIGHTS:
        value = turn.get(key)
        if isinstance(value, bool | int | float | Number):
            turn.pop(key)
            found = float(value)
            if not 0 <= found < float("inf"):
                raise MisfitError("bad_weight", f"{where}.{key} should be 0 or more, found {value}")
            break
        if value is not None and key in ("loss_weight", "weight"):
            raise MisfitError("bad_weight", f"{where}.{key} should be a number, found {name_of(value)}")
        if value is None:
            turn.pop(key, None)
    for key in WEIGHTED_SPANS:
        parts = turn.get(key)
        learned = {bool(p.get("train")) for p in parts if type(p) is dict} if type(parts) is list else set()
        if len(learned) == 2:
            raise MisfitError(
                "part_of_an_answer", f"{where}.{key} learns a part of the message, and datakit learns whole messages"
            )
        found = float(learned.pop()) if learned else found
    return found


def loads(text: str, where: str, reason: str) -> Any:
    """The value of a JSON text.

    Raises:
        MisfitError: it is not JSON; with this `reason`.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as e:
        raise MisfitError(reason, f"{where} is a string that is not JSON: {e}") from None
