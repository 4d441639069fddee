"""The inverse of a chat template: the text of an answer, taken apart while it streams into thoughts, content and calls.

A tool call is `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, as Hermes, Qwen and our own template ChatML
have it. Calls in other forms are content, which a client can read for itself.
"""

import json
from typing import NamedTuple

THINK, END_THINK, CALL, END_CALL = "<think>", "</think>", "<tool_call>", "</tool_call>"
KEPT = frozenset({THINK, END_THINK, CALL, END_CALL})
"""Tokens that stay in the text although tokenizers mark some of them as special."""


class Answer(NamedTuple):
    """What a text says, part by part."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Tool calls: name, and arguments as JSON text."""


class AnswerParts:
    """Take the text of an answer apart while it grows. Nothing is lost: what cannot be read as a tool call is content.

    `thinking` says that the prompt ended inside of a thought; tool calls are only looked for with `tools`. The whole
    text is read again for each piece: some microseconds for an answer of 8192 tokens.
    """

    def __init__(self, tools: bool, thinking: bool = False) -> None:
        self.tools, self.thinking, self.text = tools, thinking, ""
        self.whole = Answer()
        """What is sure of the text so far."""

    def add(self, text: str, last: bool = False) -> Answer:
        """What the new text adds; with `last` also what was held back because later text could have changed it."""
        self.text += text
        before, self.whole = self.whole, self._read(last)
        return Answer(*(now[len(was) :] for was, now in zip(before, self.whole, strict=True)))  # type: ignore[arg-type]

    def _read(self, last: bool) -> Answer:
        """An answer is a thought, if it begins so, then content and calls; white space after a thought or call goes."""
        thought, rest = "", self.text
        if self.thinking or rest.lstrip().startswith(THINK):
            thought, closed, rest = (rest if self.thinking else rest.lstrip()[len(THINK) :]).partition(END_THINK)
            thought = (thought if closed else _sure(thought, END_THINK, last)).strip("\n")
            rest = rest.lstrip()
        elif THINK.startswith(rest.lstrip()) and not last:
            return Answer()
        content, calls = _content_and_calls(rest, last) if self.tools else (rest, [])
        return Answer(content if last or content.strip() else "", thought, tuple(calls))


def _content_and_calls(rest: str, last: bool) -> tuple[str, list[tuple[str, str]]]:
    """Content and calls of a text. A call is read when it is complete; white space before the first one goes."""
    content, calls = "", list[tuple[str, str]]()
    while CALL in rest:
        before, _, after = rest.partition(CALL)
        body, closed, left = after.partition(END_CALL)
        if not closed and not last:
            return content + before, calls
        found = read_call(body) if closed else None
        if found is None:
            content, rest = f"{content}{before}{CALL}{body}{closed}", left
            continue
        content, rest = content + before * bool((content + before).strip()), left.lstrip()
        calls.append(found)
    return content + _sure(rest, CALL, last), calls


def _sure(text: str, marker: str, last: bool) -> str:
    """The text without an end that may be the start of a marker."""
    return text if last else text[: len(text) - start_of(marker, text)]


def read_call(body: str) -> tuple[str, str] | None:
    """The name and the arguments (JSON text) of a call; None if it is no valid call."""
    try:
        call = json.loads(body)
        name, arguments = call["name"], call.get("arguments", {})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(name, str):
        return None
    return name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def thinks_first(prompt_end: str) -> bool:
    """Whether a prompt that ends like this leaves a thought open."""
    return prompt_end.rfind(THINK) > prompt_end.rfind(END_THINK)


def start_of(marker: str, text: str) -> int:
    """Number of characters at the end of `text` that may be the start of `marker`."""
    lengths = range(min(len(marker) - 1, len(text)), 0, -1)
    return next((n for n in lengths if text.endswith(marker[:n])), 0)
