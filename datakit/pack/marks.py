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
from collections.abc import Callable, Mapping, Sequence
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
    """A conversation cannot be rendered or labelled: `reason` is counted in the ledger, `detail` says more."""

    def __init__(self, detail: str, reason: str = "template_error") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


class UncertainError(RenderError):
    """It is not certain what a template makes of a conversation, or where an answer is in the rendering."""

    def __init__(self, detail: str, reason: str = "labels_uncertain") -> None:
        super().__init__(detail, reason)


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
        UncertainError: the template took a marked text apart: its marks are not around one text.
    """
    parts, spans, blocks = list[str](), list[Span](), list[tuple[int, int]]()
    opened: list[tuple[str, int]] = []
    """Number ("" for a block) and start of what is not closed yet."""
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
            raise UncertainError("the template takes a text apart")
        _, start = opened.pop()
        if kind == CLOSE:
            spans.append((start, length, ord(number) - FIRST_PRIVATE))
        elif start < length:
            blocks.append((start, length))
    if opened:
        raise UncertainError("the template takes a text apart")
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
    how: dict[str, Any] = {"ensure_ascii": ensure_ascii, "indent": indent, "separators": separators}
    if isinstance(value, MarkedJson):
        return _between(json.dumps(value.real, sort_keys=sort_keys, **how), value.number)
    return json.dumps(value, sort_keys=sort_keys, **how)


def _between(text: str, number: str) -> str:
    return f"{OPEN}{number}{text}{CLOSE}{number}"


THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Names of a message's thought: data sets and templates use all three."""
THINK_TAG = re.compile("(</?think>)")
CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": {"a": "b"}}}
"""A tool call for probes; some templates want an id of nine characters."""


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

    def fields(self, message: Message) -> dict[str, Any]:
        """The fields of a message that are set: "" for missing content, the thought under the template's names for it,
        calls as objects."""
        role, content = message["role"] or "", message.get("content") or ""
        thought = next((message[k] for k in THOUGHT_KEYS if message.get(k) is not None), None)
        moved = thought is None and not self.splits_thoughts and role == "assistant"
        if moved and content.lstrip().startswith("<think>") and "</think>" in content:
            head, _, answer = content.partition("</think>")
            thought, content = head.partition("<think>")[2].strip() or None, answer.lstrip()
        seen: dict[str, Any] = {"role": role, "content": content}
        seen |= {name: message[name] for name in ("name", "tool_call_id") if message.get(name) is not None}
        if calls := message.get("tool_calls"):
            seen["tool_calls"] = [self._call(c) for c in _parsed(calls, "tool_calls")]
        return seen if thought is None else seen | dict.fromkeys(self.thought_keys, thought)

    def _call(self, call: Any) -> Any:
        """A tool call with its arguments as an object, as most templates expect, or as JSON text, as in OpenAI's
        API."""
        if not isinstance(call, dict):
            return call
        if isinstance(call.get("function"), dict):
            return call | {"function": self._call(call["function"])}
        given = call.get("arguments")
        if self.arguments_as_text:
            return call if isinstance(given, str) else call | {"arguments": tojson(given)}
        try:
            parsed = json.loads(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return call
        return call | {"arguments": parsed} if isinstance(parsed, dict) else call

    def message(self, fields: dict[str, Any]) -> dict[str, Any]:
        """A message as the template gets it, from its fields."""
        return fields | {"content": [{"type": "text", "text": fields["content"]}]} if self.parts else fields


def _parsed(value: Any, where: str) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as e:
        raise RenderError(f"{where} is not JSON: {e}") from None


def plain_messages(messages: Sequence[Message], traits: TemplateTraits = TemplateTraits()) -> list[dict[str, Any]]:
    """Messages as a template gets them."""
    return [traits.message(traits.fields(m)) for m in messages]


def plain_tools(tools: Any) -> Any:
    """Tools as a template gets them; None if there are none."""
    return _parsed(tools, "tools") or None


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with each of its texts changed, but not its keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: with_texts(v, change) for key, v in value.items()}
    return [with_texts(v, change) for v in value] if isinstance(value, list) else value


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
            raise UncertainError(f"more than {PRIVATE} texts in one row")
        return chr(FIRST_PRIVATE + len(self.owners) - 1)

    def around(self, text: str, i: int, kind: str) -> str:
        """A text between marks."""
        return _between(text, self.number(text, i, kind))

    def object(self, value: dict[str, Any], i: int, kind: str) -> Any:
        """An object that `tojson` writes between marks: the arguments of a call, or a tool."""
        number = self.number(value, i, kind)
        return MarkedJson(self.inside(value, i, kind), value, number)

    def inside(self, value: Any, i: int, kind: str) -> Any:
        """An object with marks around its texts; a tool has them where it must."""
        return self.unless_plain(value) if i < 0 else with_texts(value, lambda text: self.text(text, i, kind))

    def text(self, text: str, i: int, kind: str) -> str:
        """Marks inside of the outer white space of a text, because templates strip it. An answer is divided at the tags
        of its thoughts, because templates cut it there; a thought ends with its tag, and may lack the one before it."""
        parts = THINK_TAG.split(text) if kind == "answer" else [text]
        if not self.level and not "".join(parts[::2]).strip():
            parts = [text]  # the tags alone are the text
        for k in range(0, len(parts), 2):
            inside = parts[k + 1 : k + 2] == ["</think>"] and (not k or parts[k - 1] == "<think>")
            if core := parts[k].strip():
                before, _, behind = parts[k].partition(core)
                parts[k] = before + self.around(core, i, "thought" if inside else kind) + behind
        return "".join(parts)

    def unless_plain(self, value: Any, i: int = -1) -> Any:
        """Roles, names, ids and texts of tools get marks only where they spell a special token: templates compare them.

        Raises:
            RenderError: a key spells a special token; keys cannot be marked.
        """
        whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if not self.special.search(whole):
            return value
        if isinstance(value, dict):
            if any(map(self.special.search, value)):
                raise RenderError("a key of an object spells a special token", "special_token_in_key")
            return {key: self.unless_plain(v, i) for key, v in value.items()}
        return [self.unless_plain(v, i) for v in value] if isinstance(value, list) else self.text(value, i, "name")

    def message(self, fields: dict[str, Any], i: int, traits: TemplateTraits) -> dict[str, Any]:
        """A message with marks, from its fields."""
        made = {k: v if k in ("content", "tool_calls") else self.unless_plain(v, i) for k, v in fields.items()}
        if (key := traits.thought_keys[0]) in fields:
            thought = with_texts(fields[key], lambda text: self.text(text, i, "thought"))
            made |= dict.fromkeys(traits.thought_keys, thought)
        made["content"] = self.text(fields["content"], i, "answer" if fields["role"] == "assistant" else "content")
        if not self.level and not fields["content"].strip() and "tool_calls" not in fields:
            made["content"] = self.around("", i, "blank") + fields["content"]
        if "tool_calls" in fields:
            made["tool_calls"] = [self._call(c, i, f"call {k}") for k, c in enumerate(fields["tool_calls"])]
        return traits.message(made)

    def _call(self, call: Any, i: int, kind: str) -> Any:
        if not isinstance(call, dict):
            return self.unless_plain(call, i)
        made = {}
        for key, value in call.items():
            if key == "function":
                made[key] = self._call(value, i, kind)
            elif key == "name" or (key == "arguments" and self.level < 2):
                made[key] = (self.object if isinstance(value, dict) else self.inside)(value, i, kind)
            else:
                made[key] = self.unless_plain(value, i)
        return made

    def messages(self, messages: Sequence[Message], traits: TemplateTraits) -> list[dict[str, Any]]:
        """Messages as a template gets them, with marks."""
        return [self.message(traits.fields(m), i, traits) for i, m in enumerate(messages)]

    def tools(self, tools: Any) -> Any:
        """Tools with marks."""
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            return self.unless_plain(tools)
        return [self.object(tool, -1, f"tool {k}") for k, tool in enumerate(tools)]
