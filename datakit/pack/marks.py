"""Messages as chat templates read them, and marks around their texts.

Marks tell the text of messages from the template's own. Each text of a message goes into the template between two pairs
of characters: `OPEN` and a number before it, `CLOSE` and the same number after it. They are noncharacters, which no
text should have, and private-use characters for the numbers. What the template renders with marks must be, without
them, exactly what it renders without. Then it is known where each text stands, and the rest is the template's own. A
template that looks at a text (`startswith`, `| trim`) might see a mark where it expects a letter; then the two
renderings differ, and fewer texts are marked (see `Marker.level`), or the conversation is refused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datakit.errors import ModelError

RESERVED = "\ufdd0"
"""A Unicode noncharacter; with a private-use character after it, it spells a special token."""
FIRST_PRIVATE, PRIVATE = 0xF0000, 65534
"""The private-use characters that number special tokens and marks, and how many there are."""
OPEN, CLOSE = "\ufdd6", "\ufdd7"
"""Before and after a text of a message, each with a private-use character behind it."""
BLOCK, END_BLOCK = "\ufdd1", "\ufdd2"
"""Around what a `{% generation %}` block renders."""
MARKS = OPEN + CLOSE + BLOCK + END_BLOCK
_MARK = re.compile(f"[{OPEN}{CLOSE}](.)|[{BLOCK}{END_BLOCK}]", re.DOTALL)
RESERVED_SPELLING = re.compile(f"{RESERVED}[{chr(FIRST_PRIVATE)}-{chr(FIRST_PRIVATE + PRIVATE - 1)}]")
RESERVED_TEXT = re.compile(f"[{MARKS}]|{RESERVED_SPELLING.pattern}")
"""What no conversation may have: characters of marks, and the reserved spelling of a special token."""

Message = Mapping[str, Any]
Span = tuple[int, int, int]
"""Start and end (half-open, in characters) of a marked text, and its number."""


class RenderError(ModelError):
    """A template fails on some messages, or it is not certain what it makes of them; `reason` is the ledger's word."""

    def __init__(self, detail: str, reason: str = "template_error") -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Rendering:
    """Messages as text, without marks."""

    text: str
    spans: list[Span]
    """The marked texts, in the order in which they end."""
    generated: list[tuple[int, int]]
    """Start and end of the `{% generation %}` blocks that have text, ascending."""


def unmarked(marked: str) -> Rendering:
    """Take the marks out, and remember where they were.

    Raises:
        RenderError: the template took a marked text apart: its marks are not around one text.
    """
    parts: list[str] = []
    spans: list[Span] = []
    blocks: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []
    at = length = 0
    for mark in _MARK.finditer(marked):
        parts.append(marked[at : mark.start()])
        length += mark.start() - at
        at = mark.end()
        kind, number = marked[mark.start()], mark[1] or ""
        if kind in (OPEN, BLOCK):
            opened.append((number, length))
            continue
        if not opened or opened[-1][0] != number:
            raise RenderError("the template takes a text apart", "labels_uncertain")
        _, start = opened.pop()
        if kind == CLOSE:
            spans.append((start, length, ord(number) - FIRST_PRIVATE))
        elif start < length:
            blocks.append((start, length))
    if opened:
        raise RenderError("the template takes a text apart", "labels_uncertain")
    return Rendering("".join([*parts, marked[at:]]), spans, sorted(blocks))


class MarkedJson(dict[str, Any]):
    """An object that `tojson` writes between marks; a template that looks inside sees marks around its texts."""

    def __init__(self, shown: dict[str, Any], real: Any, number: str) -> None:
        super().__init__(shown)
        self.real, self.number = real, number


def tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """jinja\'s filter `tojson` as transformers has it: other scripts as they are, and keys in their order."""
    real = value.real if isinstance(value, MarkedJson) else value
    text = json.dumps(real, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    return around(text, value.number) if isinstance(value, MarkedJson) else text


def around(text: str, number: str) -> str:
    """A text between the marks of a number."""
    return f"{OPEN}{number}{text}{CLOSE}{number}"


THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Names of a message's thought: data sets and templates use all three."""
THINK_TAG = re.compile("(</?think>)")


@dataclass(frozen=True, slots=True)
class TemplateTraits:
    """How a template reads messages."""

    thought_keys: tuple[str, ...] = THOUGHT_KEYS[:1]
    """The fields in which it looks for a thought."""
    splits_thoughts: bool = True
    """It renders a thought in content (`<think>`) as it renders one in a field; otherwise it is moved there."""
    shows: tuple[bool, bool] = (True, True)
    """It renders the thought of the last turn: one in a field, one in content."""
    parts: bool = False
    """Content is a list of typed parts, as in templates for images."""
    arguments_as_text: bool = False
    """The arguments of tool calls are JSON text, as in OpenAI's API; otherwise objects."""


def plain_messages(messages: Sequence[Message], traits: TemplateTraits = TemplateTraits()) -> list[dict[str, Any]]:
    """Messages as a template gets them."""
    return [with_parts(message_fields(m, traits), traits) for m in messages]


def plain_tools(tools: Any) -> Any:
    """Tools as a template gets them; None if there are none."""
    return (_parsed(tools, "tools") if isinstance(tools, str) else tools) or None


def message_fields(message: Message, traits: TemplateTraits) -> dict[str, Any]:
    """The fields of a message that are set: "" for missing content, the thought under the template's names for it,
    calls as objects."""
    content = message.get("content") or ""
    seen: dict[str, Any] = {"role": message["role"] or "", "content": content}
    seen |= {name: message[name] for name in ("name", "tool_call_id") if message.get(name) is not None}
    thought = next((message[k] for k in THOUGHT_KEYS if message.get(k) is not None), None)
    moved = thought is None and not traits.splits_thoughts and message["role"] == "assistant"
    if moved and content.lstrip().startswith("<think>") and "</think>" in content:
        head, _, answer = content.partition("</think>")
        thought, seen["content"] = head.partition("<think>")[2].strip() or None, answer.lstrip()
    if calls := message.get("tool_calls"):
        parsed = _parsed(calls, "tool_calls") if isinstance(calls, str) else calls
        seen["tool_calls"] = [_call(c, traits.arguments_as_text) for c in parsed]
    return seen | ({} if thought is None else dict.fromkeys(traits.thought_keys, thought))


def _call(call: Any, as_text: bool) -> Any:
    """A tool call with its arguments as an object, as most templates expect, or as JSON text, as in OpenAI's API."""
    if not isinstance(call, dict):
        return call
    if isinstance(call.get("function"), dict):
        return call | {"function": _call(call["function"], as_text)}
    given = call.get("arguments")
    if as_text:
        return call if isinstance(given, str) else call | {"arguments": tojson(given)}
    try:
        parsed = json.loads(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return call
    return call | {"arguments": parsed} if isinstance(parsed, dict) else call


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise RenderError(f"{where} is not JSON: {e}") from None


def with_parts(fields: dict[str, Any], traits: TemplateTraits) -> dict[str, Any]:
    """The fields of a message with its content as the template reads it."""
    return fields | ({"content": [{"type": "text", "text": fields["content"]}]} if traits.parts else {})


class Marker:
    """Puts marks around the texts of one conversation, and numbers them."""

    def __init__(self, special: re.Pattern[str], level: int = 1) -> None:
        self.special = special
        self.level = level
        """0: all texts of messages are marked. 1: not blank ones. 2: of calls, only the names: a template that prints
        Python lists escapes the marks of arguments."""
        self.owners: list[tuple[int, str]] = []
        """By number: the message (-1: tools) and the kind of its text."""
        self.values: list[Any] = []
        """By number: the text, or the object."""

    def number(self, value: Any, i: int, kind: str) -> str:
        """The character that numbers a new mark."""
        self.owners.append((i, kind))
        self.values.append(value)
        if len(self.owners) > PRIVATE:
            raise RenderError(f"more than {PRIVATE} texts in one row", "labels_uncertain")
        return chr(FIRST_PRIVATE + len(self.owners) - 1)

    def around(self, text: str, i: int, kind: str) -> str:
        """A text between marks."""
        return around(text, self.number(text, i, kind))

    def object(self, value: dict[str, Any], i: int, kind: str) -> Any:
        """An object that `tojson` writes between marks: the arguments of a call, or a tool."""
        number = self.number(value, i, kind)
        return MarkedJson(self.unless_plain(value, i) if i < 0 else self.each(value, i, kind), value, number)

    def text(self, text: str, i: int, kind: str) -> str:
        """Marks inside of the outer white space of a text, because templates strip it. An answer is divided at the tags
        of its thought, because templates cut it there."""
        parts = THINK_TAG.split(text) if kind == "answer" else [text]
        if not self.level and not any(part.strip() for part in parts[::2]):
            parts = [text]  # the tags alone are the text
        thoughts = parts.index("</think>") if "</think>" in parts[1::2] else 0
        return "".join(
            part if k % 2 else self._inside(part, i, "thought" if k < thoughts else kind)
            for k, part in enumerate(parts)
        )

    def _inside(self, text: str, i: int, kind: str) -> str:
        core = text.strip()
        start = text.find(core)
        return text[:start] + self.around(core, i, kind) + text[start + len(core) :] if core else text

    def each(self, value: Any, i: int, kind: str) -> Any:
        """Marks around each text in a JSON value, but not its keys."""
        if isinstance(value, str):
            return self.text(value, i, kind)
        if isinstance(value, dict):
            return {key: self.each(v, i, kind) for key, v in value.items()}
        return [self.each(v, i, kind) for v in value] if isinstance(value, list) else value

    def unless_plain(self, value: Any, i: int = -1) -> Any:
        """Roles, names, ids and texts of tools get marks only where they spell a special token: templates compare them.

        Raises:
            RenderError: a key spells a special token; keys cannot be marked.
        """
        if not self.special.search(json.dumps(value, ensure_ascii=False)):
            return value
        if isinstance(value, dict):
            if any(map(self.special.search, value)):
                raise RenderError("a key of an object spells a special token", "special_token_in_key")
            return {key: self.unless_plain(v, i) for key, v in value.items()}
        return [self.unless_plain(v, i) for v in value] if isinstance(value, list) else self.text(value, i, "name")

    def message(self, fields: dict[str, Any], i: int, traits: TemplateTraits) -> dict[str, Any]:
        """A message with marks."""
        made = {k: v if k in ("content", "tool_calls") else self.unless_plain(v, i) for k, v in fields.items()}
        if traits.thought_keys[0] in fields:
            thought = self.each(fields[traits.thought_keys[0]], i, "thought")
            made |= dict.fromkeys(traits.thought_keys, thought)
        content = self.text(fields["content"], i, "answer" if fields["role"] == "assistant" else "content")
        if not self.level and not content.strip() and "tool_calls" not in fields:
            content = self.around("", i, "blank") + content
        if "tool_calls" in fields:
            made["tool_calls"] = [self._call(c, i, f"call {k}") for k, c in enumerate(fields["tool_calls"])]
        return with_parts(made | {"content": content}, traits)

    def _call(self, call: Any, i: int, kind: str) -> Any:
        if not isinstance(call, dict):
            return self.unless_plain(call, i)
        made = {}
        for key, value in call.items():
            if key == "function":
                made[key] = self._call(value, i, kind)
            elif key == "name" or (key == "arguments" and self.level < 2):
                made[key] = self.object(value, i, kind) if isinstance(value, dict) else self.each(value, i, kind)
            else:
                made[key] = self.unless_plain(value, i)
        return made

    def tools(self, tools: Any) -> Any:
        """Tools with marks."""
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            return self.unless_plain(tools)
        return [self.object(tool, -1, f"tool {k}") for k, tool in enumerate(tools)]


def marked_messages(marker: Marker, messages: Sequence[Message], traits: TemplateTraits) -> list[dict[str, Any]]:
    """Messages as a template gets them, with marks."""
    return [marker.message(message_fields(m, traits), i, traits) for i, m in enumerate(messages)]
