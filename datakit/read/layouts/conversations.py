"""Turns, conversations and pairs: what published records say in turn, as messages.

A turn is OpenAI's `role`/`content` or ShareGPT's `from`/`value`; its content is a text or a list of typed parts, as
OpenAI and Anthropic write them, with tool calls, reasoning and a loss weight. A converter takes the values that it
reads out of a `Picked`; what it does not take stays beside the row.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from datakit.read.record import (
    Fields,
    Number,
    Picked,
    at,
    listed,
    name_of,
    parse_exactly,
    text_of,
    to_json,
    without,
)
from datakit.read.streams import RecordError

ROLES: Final = {
    "system": ("system", "developer"),
    "user": ("user", "human"),
    "assistant": ("assistant", "gpt", "model", "bot", "ai"),
    "tool": ("tool", "tool_response", "tool_result", "function", "observation", "ipython"),
}
"""A role in chat templates -> the names that speakers of that role usually have. `--roles` names others."""
CALLERS: Final = ("function_call", "tool_call")
"""Speakers whose turns are calls of the assistant."""
SPEAKER_KEYS: Final = ("role", "from")
CONTENT_KEYS: Final = ("content", "value")
WEIGHTS: Final = ("weight", "loss_weight", "loss", "train", "training", "message_training", "train_detail")
"""Fields of a turn with its loss weight, a number or a boolean (OpenAI, LLaMA-Factory, ms-swift, axolotl)."""
MEDIA: Final = frozenset({"image", "images", "video", "videos", "audio", "audios"})
"""Fields with pictures, films and sound."""
TEXT_PARTS: Final = ("text", "input_text", "output_text")
CALL_PART: Final = "tool_call"
REASONING_PARTS: Final = ("reasoning", "thinking", "reasoning_content")
JUDGED: Final = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
"""What a label of an answer (KTO) may be, as text in lower case. Numbers count only where pairs are asked for: among
conversations a number may be the class of an example."""


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """What a user says about turns. The default says nothing."""

    roles: Mapping[str, str] = field(
        default_factory=lambda: {n: role for role, names in ROLES.items() for n in names} | {c: c for c in CALLERS}
    )
    """Speakers, as they are written or in lower case, to roles; those whose turns are calls to themselves."""
    turn_fields: Mapping[str, str] = field(default_factory=dict)
    """Our name -> the user's field or path, of fields of a turn."""


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


class Conversation(NamedTuple):
    """Messages, and the tools that a record, or one of its turns, declares."""

    messages: list[Message]
    tools: str | None = None
    left: list[Fields] | None = None
    """Each turn's fields without a column (None: none)."""
    label: Any = None
    """What the record says of its answer (see `JUDGED`); None: nothing."""
    answer_turns: int = 0
    """How many messages at the end are the answer; 0: those after the last one of the user."""


class Preference(NamedTuple):
    """The messages of prompt, chosen and rejected answer."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]
    tools: str | None


# Conversations.


def conversation(found: Picked, options: ParseOptions = PLAIN) -> Conversation:
    """`messages`, or `prompt` with `answer` (texts or turns), and `history`, `reasoning_content`, `system`, `tools`,
    `label` where the record has them.

    Raises:
        RecordError: one of these cannot be what its name says.
    """
    if "messages" in found.sources:
        body = turns(found.take("messages"), "messages", options)
        found.keep("messages", body.left)
        return _around(body, found)
    prompt, answer = _parsed_turns(found.take("prompt"), found.take("answer", ""))
    before, reply = _asked(prompt, found, options), _said(answer, "answer", "assistant", found, options)
    last = reply.messages[-1]
    if (calls := found.take("tool_calls")) is not None:
        last = last._replace(tool_calls=_calls_of(None, [_as_text(calls)], "tool_calls"))
    thought = found.get("reasoning_content")
    if thought and last.role == "assistant" and not last.reasoning_content and "<think>" not in last.content:
        last = last._replace(reasoning_content=text_of(found.take("reasoning_content"), "reasoning_content"))
    made = Conversation([*before.messages, *reply.messages[:-1], last], before.tools or reply.tools)
    return _around(made, found)._replace(answer_turns=len(reply.messages))


def _asked(prompt: Any, found: Picked, options: ParseOptions) -> Conversation:
    """The turns before an answer: the history, and the prompt."""
    asked, before = _said(prompt, "prompt", "user", found, options), found.take("history")
    if not before:
        return asked
    if type(before) is list and all(type(pair) is list and len(pair) == 2 for pair in before):  # alpaca's
        before = [text for pair in before for text in pair]
    return asked._replace(messages=turns(before, "history", options).messages + asked.messages)


def _said(value: Any, name: str, role: str, found: Picked, options: ParseOptions) -> Conversation:
    """What one side says: a text, one turn, or a list of turns, of which what has no column is kept beside the row."""
    if type(value) is dict:
        value = [value]
    if type(value) is not list:
        return Conversation([Message(role, text_of(value, name))])
    if role == "assistant" and value and type(value[0]) is str:
        raise RecordError("not_text", f"{name} is a list of texts: name the one that counts by its place, as FIELD.0")
    body = turns(value, name, options)
    found.keep(name, body.left)
    return body


def _parsed_turns(*values: Any) -> tuple[Any, ...]:
    """Values as lists of turns, if all are texts that hold turns as JSON (CSV). One alone may be an answer that is
    about such texts."""
    read = [listed(value) if type(value) is str else None for value in values]
    turns = [v and type(v) is list and all(type(t) is dict and speaker_key(t) for t in v) for v in read]
    return tuple(read) if all(turns) else values


def speaker_key(turn: Fields) -> str:
    """The field of a turn that names its speaker; "" without one."""
    return next((key for key in SPEAKER_KEYS if key in turn), "")


def _around(body: Conversation, found: Picked) -> Conversation:
    """Turns with the system prompt, the tools and the label that are fields of their record."""
    messages = body.messages
    if type(found.get("system")) in (str, list) and (not messages or messages[0].role != "system"):
        prompt = _content(found.take("system"), "system")[0]
        messages = [Message("system", prompt), *messages] if prompt else messages
    tools = tools_of(found.take("tools"), "tools") if body.tools is None else body.tools
    return Conversation(messages, tools, label=found.get("label"))


def refuse_media(fields: Fields, messages: list[Message]) -> None:
    """Refuse a record or a message with pictures, films or sound. A name of a file counts where a message says
    `<image>`.

    Raises:
        RecordError: there is such a field.
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


# Preference pairs: a prompt with a chosen and a rejected answer. A judged answer is a pair without its other side.

_SPEAKER: Final = re.compile(r"(?:^|\n\n)(Human|Assistant):")
_SPEAKERS: Final = {"Human": "user", "Assistant": "assistant"}


def preference(found: Picked, options: ParseOptions) -> Preference:
    """`chosen` and `rejected`: texts, turns or whole dialogues; `prompt`, unless the answers hold it.

    Where both answers are whole dialogues, their common beginning is the prompt. Where only the chosen one is, the
    rejected one stands in the place of its last answer (ms-swift).

    Raises:
        RecordError: one of these cannot be what its name says, or there is no prompt.
    """
    given = _parsed_turns(found.take("chosen"), found.take("rejected"))
    better, worse = (
        _said(v, name, "assistant", found, options) for v, name in zip(given, ("chosen", "rejected"), strict=True)
    )
    chosen, rejected, tools = better.messages, worse.messages, better.tools or worse.tools
    if chosen[0].role == "assistant":
        prompt = found.take("prompt")
        if prompt is None:
            raise RecordError("missing_field", "the pair has no prompt, and its answers do not begin with one")
        (prompt,) = (prompt,) if type(given[0]) is str else _parsed_turns(prompt)
        asked = _asked(prompt, found, options)
        before, tools = asked.messages, asked.tools or tools
        if before[-1].role == "assistant":  # a whole dialogue, whose answer would be said twice
            raise RecordError(
                "bad_prompt", "prompt ends with an answer: name the field of the question (--map prompt=)"
            )
    elif all(m.role == "assistant" for m in rejected):
        begin = next((i + 1 for i in reversed(range(len(chosen))) if chosen[i].role != "assistant"), 0)
        if begin == len(chosen):
            raise RecordError("no_answer", "the dialogue in chosen should end with the better answer")
        before, chosen = chosen[:begin], chosen[begin:]
    else:
        begin = shared(chosen, rejected)
        before, chosen, rejected = chosen[:begin], chosen[begin:], rejected[begin:]
        if found.get("prompt") in [m.content for m in before]:
            found.take("prompt")
    made = _around(Conversation(before, tools), found)
    return Preference(made.messages, chosen, rejected, made.tools)


def transcripts(found: Picked, options: ParseOptions) -> Preference:
    """Two transcripts (Anthropic's hh-rlhf): their common beginning is the prompt, the rest are the answers."""
    chosen, rejected = (transcript(text_of(found.take(name), name), name) for name in ("chosen", "rejected"))
    begin = shared(chosen, rejected)
    return Preference(chosen[:begin], chosen[begin:], rejected[begin:], None)


def shared(chosen: Sequence[Any], rejected: Sequence[Any]) -> int:
    """How many messages, or token ids, both sides begin with; the last one of each is its answer."""
    limit = min(len(chosen), len(rejected)) - 1
    return next((i for i in range(limit) if chosen[i] != rejected[i]), limit)


def is_transcript(value: object) -> bool:
    """Whether a text is a dialogue: "Human: ... Assistant: ..." with blank lines between."""
    return type(value) is str and _SPEAKER.match(value.lstrip()) is not None


def transcript(text: str, where: str) -> list[Message]:
    """ "Human: ... Assistant: ..." as messages, without the white space around each.

    Raises:
        RecordError: it does not begin with a speaker.
    """
    if not is_transcript(text):
        found = text.lstrip()[:40]
        raise RecordError("bad_transcript", f'{where} should begin with "Human:" or "Assistant:", found {found!r}')
    _, *parts = _SPEAKER.split(text.lstrip())  # speaker and text in turn
    return [Message(_SPEAKERS[who], said.strip()) for who, said in zip(parts[::2], parts[1::2], strict=True)]


def one_sided(found: Conversation) -> Preference:
    """A conversation whose answer is judged (KTO) as a pair with one side: good answers are chosen, bad ones rejected.

    Raises:
        RecordError: the record does not judge its answer, or there is none.
    """
    good = JUDGED.get(str(found.label).lower())
    if good is None:
        said_instead = "nothing" if found.label is None else repr(found.label)
        raise RecordError(
            "no_judgement", f"label (or kto_tag) should be true for a good answer, else false; found {said_instead}"
        )
    begin = len(found.messages) - found.answer_turns
    if not found.answer_turns:
        begin = next((i + 1 for i in reversed(range(begin)) if found.messages[i].role == "user"), 0)
    prompt, answered = found.messages[:begin], found.messages[begin:]
    if not prompt or all(m.role != "assistant" for m in answered):
        raise RecordError("no_answer", "an answer of the assistant should follow a question")
    return Preference(prompt, *((answered, []) if good else ([], answered)), found.tools)


# Turns.


def turns(value: Any, where: str, options: ParseOptions = PLAIN) -> Conversation:
    """A list of turns as messages (see `record.listed`). Texts are what the user and the assistant say in turn.

    Raises:
        RecordError: it is no list, it is empty, or one of its turns is not a message.
    """
    value = listed(value)
    if type(value) is not list or not value:
        found = "an empty list" if value == [] else name_of(value)
        raise RecordError("bad_messages", f"{where} should be a list of messages, found {found}")
    messages, left, tools = list[Message](), [], None
    for i, turn in enumerate(value):
        if type(turn) is str:
            turn = {"role": ("user", "assistant")[i % 2], "content": turn}
        for part in _results_apart(turn):
            made, rest = message(part, f"{where}[{i}]", options)
            refuse_media(rest, [made])
            if "tools" in rest and tools is None:  # minimind's
                tools = tools_of(rest.pop("tools"), f"{where}[{i}].tools")
            if rest.get("channel") == "analysis" and made.role == "assistant":
                raise RecordError(
                    "thought_apart",
                    f"{where}[{i}] is a thought of its own (Harmony's channel analysis): write it as "
                    "reasoning_content of the answer that follows it",
                )
            messages.append(made)
            left.append(rest)
    return Conversation(messages, tools, left if any(left) else None)


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
        if role in ROLES and type(text) is str:
            return Message(str(role), text), {}
    turn = dict(turn)
    for name, given in options.turn_fields.items():
        if (found := at(turn, given)) is not None:
            turn = without(turn, given) | {name: found}
    return _message(turn, where, options)


_NAME_YOURS: Final = (
    "Name yours with --map role=FIELD --map content=FIELD, beside --map messages; in a recipe "
    '[ingest] map = { messages = "FIELD", role = "FIELD", content = "FIELD" }'
)


def _message(turn: Fields, where: str, options: ParseOptions) -> tuple[Message, Fields]:
    """The message of a turn whose fields have our names; `turn` keeps what is left."""
    if turn.keys().isdisjoint((*CONTENT_KEYS, "tool_calls", "function_call")):
        found = f"has neither content nor value; its fields are {', '.join(turn)}"
        raise RecordError("missing_field", f"{where} {found}. {_NAME_YOURS}")
    role = _role(turn, where, options)
    key = next((k for k in CONTENT_KEYS if turn.get(k) is not None), "content")
    given, of_tool = turn.pop(key, None), role in ("tool", *CALLERS)
    if of_tool and type(given) not in (str, list, type(None)):
        given = to_json(given)  # what a tool gives and gets may be an object
    content, reasoning, calls, left = _content(given, f"{where}.{key}", of_tool)
    if role in CALLERS:
        role, calls, content = "assistant", [text_of(content, f"{where}.{key}")], ""
    for part in REASONING_PARTS:
        if turn.get(part) is None:
            turn.pop(part, None)
        elif not reasoning:
            reasoning = text_of(turn.pop(part), f"{where}.{part}")
    if legacy := turn.pop("function_call", None):  # OpenAI's former field for one call
        calls = [*calls, _as_text(legacy)]
    tool_calls = _calls_of(turn.pop("tool_calls", None), calls, where)
    if content is None and not (tool_calls or reasoning):
        raise RecordError("not_text", f"{where}.{key} should be a string, found null")
    name, call_id = _optional_text(turn, "name"), _optional_text(turn, "tool_call_id")
    made = Message(role, content or "", name, reasoning or None, tool_calls, call_id, _weight_of(turn, where))
    return made, turn | left


def _role(turn: Fields, where: str, options: ParseOptions) -> str:
    """Take the speaker out of a turn: its role, or one of `CALLERS`."""
    key = speaker_key(turn)
    speaker = speaker_of(turn.pop(key) if key else None)
    if type(speaker) is not str:
        raise RecordError(
            "missing_field",
            f"{where} names no speaker: role or from should be a string, found {name_of(speaker)}; its fields are "
            f"{', '.join(turn)}. {_NAME_YOURS}",
        )
    if role := role_of(speaker, options):
        return role
    raise RecordError(
        "unknown_role",
        f"{where}.{key} is {speaker!r}; name its role (system, user, assistant or tool) with --roles "
        f'"{speaker}=ROLE", in a recipe [ingest] roles = {{ "{speaker}" = "ROLE" }}',
    )


def speaker_of(value: Any) -> Any:
    """The name of a speaker; of a number or a truth value (`is_human`) its text."""
    return str(value).lower() if type(value) in (int, bool) else value


def role_of(speaker: str, options: ParseOptions) -> str:
    """The role of a speaker, or one of `CALLERS`; "" if it is unknown. `Tool-Response` is `tool_response`."""
    lowered = speaker.strip().lower()
    plain = lowered.replace("-", "_").replace(" ", "_")
    return next((options.roles[name] for name in (speaker, lowered, plain) if name in options.roles), "")


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
        if kind == CALL_PART:
            calls.append(_as_text(inner))
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
        return CALL_PART, number | {"type": "function", "function": function}, rest
    if kind not in (*TEXT_PARTS, *REASONING_PARTS, CALL_PART):
        raise RecordError("non_text_part", f"{where} is of type {kind!r}, and only text can be trained on")
    for key in (kind, "text", "value", "content"):
        if rest.get(key) is not None:
            return kind, rest.pop(key), rest
    raise RecordError("missing_field", f"{where} has no value; its fields are {', '.join(part)}")


def _as_text(value: Any) -> str:
    """JSON text: the value itself if it is a string."""
    return value if type(value) is str else to_json(value)


def _calls_of(given: Any, calls: list[str], where: str) -> str | None:
    """Tool calls as one JSON list: `given` as it was written, then `calls` in OpenAI's form.

    Raises:
        RecordError: they are not JSON, or call no function by name.
    """
    made = [_call(c, where) for c in calls]
    if not given:
        return f"[{','.join(made)}]" if made else None
    text = _as_text(given)
    if type(_loads(text, f"{where}.tool_calls", "bad_tool_calls")) is not list:
        text = f"[{text}]"
    own = text.strip()[1:-1].strip()  # without its brackets
    return f"[{','.join(filter(None, (own, *made)))}]" if made else text


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
    if type(value) is not str:
        return to_json(list(map(_plain_tool, value)) if type(value) is list else value)
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
        value = turn.get(key)
        with suppress(OverflowError):  # an integer beyond all floats
            if isinstance(value, bool | int | float | Number) and 0 <= float(value) < float("inf"):
                return float(turn.pop(key))
        if value is not None:
            found = f"{value}" if isinstance(value, int | float | Number) else name_of(value)
            raise RecordError("bad_weight", f"{where}.{key} should be one number of 0 or more, found {found}")
        turn.pop(key, None)
    return None


def _loads(text: str, where: str, reason: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as e:
        raise RecordError(reason, f"{where} is a string that is not JSON: {e}") from None
