"""Messages and tools as chat templates see them, plain or with every string tagged by where it came from."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from datakit.errors import ModelError
from datakit.pack.provenance import track

FIELDS = ("content", "reasoning_content", "tool_calls", "name", "tool_call_id", "role")
CONTENT, REASONING, TOOL_CALLS = 0, 1, 2
WIDTH = 8
"""Tags of message i are i * WIDTH + the field's place in FIELDS, + 1; 0 is the tools'."""
TOOLS = 0

Message = Mapping[str, Any]


def of(tag: int) -> int:
    """The message that a tag is of; -1 for the tools."""
    return (tag - 1) // WIDTH


class RenderError(ModelError):
    """Messages that a template fails on or refuses; the text says why."""


def _fields(message: Message, as_text: bool) -> dict[str, Any]:
    """What a template sees of a message: fields that are there, calls as objects; no content is an empty one."""
    seen: dict[str, Any] = {"role": message["role"] or "", "content": message.get("content") or ""}
    for name in ("reasoning_content", "name", "tool_call_id"):
        if message.get(name) is not None:
            seen[name] = message[name]
    calls = message.get("tool_calls")
    if calls:
        seen["tool_calls"] = [
            _call(c, as_text) for c in (_json(calls, "tool_calls") if isinstance(calls, str) else calls)
        ]
    return seen


def _call(call: Any, as_text: bool) -> Any:
    """A tool call with its arguments as an object, as most templates expect, or as the JSON that OpenAI's are."""
    if not isinstance(call, dict):
        return call
    if isinstance(call.get("function"), dict):
        return call | {"function": _call(call["function"], as_text)}
    if as_text:
        given = call.get("arguments")
        return call if isinstance(given, str) else call | {"arguments": json.dumps(given, ensure_ascii=False)}
    try:
        parsed = json.loads(call["arguments"])
    except (KeyError, TypeError, ValueError):
        return call
    return call | {"arguments": parsed} if isinstance(parsed, dict) else call


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise RenderError(f"{where} is not JSON: {e}") from None


def plain_messages(messages: Sequence[Message], as_text: bool = False) -> list[dict[str, Any]]:
    """Messages as a template sees them, the arguments of calls as objects or `as_text`."""
    return [_fields(m, as_text) for m in messages]


def tracked_messages(messages: Sequence[Message], as_text: bool = False) -> list[dict[str, Any]]:
    """The same, each string tagged with its message and field.

    A role that is a plain word is the template's own text: templates build markers from it (`<|` + role + `|>`).
    """
    seen = []
    for i, message in enumerate(plain_messages(messages, as_text)):
        tagged = {k: track(v, 1 + i * WIDTH + FIELDS.index(k)) for k, v in message.items()}
        if message["role"].isidentifier():
            tagged["role"] = message["role"]
        seen.append(tagged)
    return seen


def plain_tools(tools: Any) -> Any:
    """Tools as a template sees them: None where there are none."""
    return (_json(tools, "tools") if isinstance(tools, str) else tools) or None


def tracked_tools(tools: Any) -> Any:
    """The same, tagged."""
    return track(plain_tools(tools), TOOLS)
