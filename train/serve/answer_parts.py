"""The inverse of a chat template: the text of an answer, taken apart while it streams into thoughts, content and calls.

Models write tool calls as text, each family in its own form. The form is known from the chat template.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

Form = Literal["hermes", "mistral", "llama3"]
THINK, END_THINK = "<think>", "</think>"
MARKERS: dict[Form, tuple[str, str]] = {
    "hermes": ("<tool_call>", "</tool_call>"),
    "mistral": ("[TOOL_CALLS]", ""),
    "llama3": ("<|python_tag|>", ""),
}
"""What begins a tool call, and what ends it; "" where the calls are the rest of the answer."""
KEPT = frozenset({THINK, END_THINK, "[ARGS]", *(m for pair in MARKERS.values() for m in pair if m)})
"""Tokens that stay in the text although tokenizers mark some of them as special."""


def form_of(template: str) -> Form:
    """The form of tool calls that a chat template shows to its model."""
    if "[TOOL_CALLS]" in template:
        return "mistral"
    if "<tool_call>" not in template and ("<|python_tag|>" in template or "ipython" in template):
        return "llama3"
    return "hermes"


def forced(form: Form, name: str | None) -> str:
    """The beginning of an answer that calls a tool: the tool `name`, or one that the model chooses."""
    if form == "mistral":
        return '[TOOL_CALLS][{"name": "' + (f'{name}", "arguments": ' if name else "")
    begin = "<tool_call>\n" if form == "hermes" else ""
    key = "arguments" if form == "hermes" else "parameters"
    return begin + '{"name": "' + (f'{name}", "{key}": ' if name else "")


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A piece of an answer."""

    kind: Literal["content", "reasoning", "call"]
    text: str
    """For a call, its arguments as JSON text."""
    name: str = ""
    """The tool that is called."""


class AnswerParts:
    """Split a stream of text into parts. Nothing is lost: what cannot be read as a tool call is content.

    `thinking` says that the prompt ended inside of a thought. Tool calls are only looked for where `form` is given.
    """

    def __init__(self, form: Form | None, thinking: bool = False) -> None:
        self.form = form
        self._held, self._find = "", self._thought if thinking else self._begin
        self._spoken = False
        """Whether a thought has begun, or something stands before white space: it is dropped then."""

    def add(self, text: str) -> list[AnswerPart]:
        """The parts that the new text completes or continues."""
        self._held += text
        return list(self._read(last=False))

    def end(self) -> list[AnswerPart]:
        """The rest."""
        return list(self._read(last=True))

    def _read(self, last: bool) -> Iterator[AnswerPart]:
        while True:
            here: Callable[[bool], Iterator[AnswerPart]] = self._find
            yield from here(last)
            if self._find == here:
                return

    def _begin(self, last: bool) -> Iterator[AnswerPart]:
        """Before the first word, after a thought or a call: white space, then a thought, a call or content."""
        text, call = self._held.lstrip(), MARKERS[self.form][0] if self.form else THINK
        if text.startswith(THINK):
            self._held, self._find, self._spoken = text[len(THINK) :], self._thought, False
        elif text.startswith(call) or (self.form == "llama3" and text.startswith("{")):  # Llama may omit the marker
            self._held, self._find = text if self._spoken else self._held, self._calls
        elif last or not (THINK.startswith(text) or call.startswith(text)):
            self._held, self._find = text if self._spoken else self._held, self._content
        yield from ()

    def _thought(self, last: bool) -> Iterator[AnswerPart]:
        """A thought, without the new lines around it."""
        text, marker, after = (self._held if self._spoken else self._held.lstrip("\n")).partition(END_THINK)
        said = text.rstrip("\n") if marker else self._sure(text, END_THINK, last).rstrip("\n")
        if marker:
            self._held, self._find = after, self._begin
        else:
            self._held = "" if last else text[len(said) :]
        self._spoken = self._spoken or bool(said or marker)
        if said:
            yield AnswerPart("reasoning", said)

    def _content(self, last: bool) -> Iterator[AnswerPart]:
        text, marker, after = self._held, "", ""
        if self.form is not None:
            text, marker, after = text.partition(MARKERS[self.form][0])
        said = text if marker or self.form is None else self._sure(text, MARKERS[self.form][0], last)
        self._held = marker + after if marker else text[len(said) :]
        if marker:
            self._find = self._calls
        if said:
            yield AnswerPart("content", said)

    def _calls(self, last: bool) -> Iterator[AnswerPart]:
        """A tool call, which is given when it is complete."""
        assert self.form is not None
        begin, end = MARKERS[self.form]
        text = self._held
        if end and end in text:
            body, _, self._held = text.partition(end)
        elif last:
            body, self._held = text, ""
        else:
            return
        calls = read_calls(body.lstrip().removeprefix(begin), self.form)
        self._find, self._spoken = self._content if calls is None else self._begin, True
        if calls is None:
            yield AnswerPart("content", text[: len(text) - len(self._held)])
        else:
            for name, arguments in calls:
                yield AnswerPart("call", arguments, name)

    @staticmethod
    def _sure(text: str, marker: str, last: bool) -> str:
        """The text without an end that may be the start of a marker."""
        return text[: len(text) - (0 if last else start_of(marker, text))]


def read_calls(body: str, form: Form) -> list[tuple[str, str]] | None:
    """The calls in a text, each (name, arguments as JSON text); None if it is no valid call.

    Read are `{"name": ..., "arguments": {...}}` (or `parameters`), several such objects or a list of them, Mistral's
    `name[ARGS]{...}`, and `<function=name><parameter=key>value</parameter></function>`.
    """
    body = body.strip()
    if body.startswith("<function="):
        return _tagged(body)
    if form == "mistral" and "[ARGS]" in body:
        named = [piece.partition("[ARGS]") for piece in body.split("[TOOL_CALLS]") if piece.strip()]
        body = "\n".join(f'{{"name": {json.dumps(name.strip())}, "arguments": {given}}}' for name, _, given in named)
    decoder, found, at = json.JSONDecoder(), list[Any](), 0
    try:
        while at < len(body):
            value, at = decoder.raw_decode(body, at)
            found += value if isinstance(value, list) else [value]
            at += len(re.match(r"[\s;,]*", body[at:])[0])  # type: ignore[index]
    except ValueError:
        return None
    calls = [_call(value) for value in found]
    return [c for c in calls if c] if calls and all(calls) else None


def _call(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):  # already JSON text
        return value["name"], arguments
    return value["name"], json.dumps(arguments, ensure_ascii=False)


def _tagged(body: str) -> list[tuple[str, str]] | None:
    """Qwen3-Coder's form: values are JSON where they can be read as JSON, else text."""
    calls = []
    for name, inner in re.findall(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", body, re.DOTALL):
        arguments: dict[str, Any] = {}
        for key, value in re.findall(r"<parameter=([^>\s]+)>(.*?)</parameter>", inner, re.DOTALL):
            text = value.removeprefix("\n").removesuffix("\n")
            try:
                arguments[key] = json.loads(text)
            except ValueError:
                arguments[key] = text
        calls.append((name, json.dumps(arguments, ensure_ascii=False)))
    return calls or None


def thinks_first(prompt_end: str) -> bool:
    """Whether a prompt that ends like this leaves a thought open."""
    return prompt_end.rfind(THINK) > prompt_end.rfind(END_THINK)


def start_of(marker: str, text: str) -> int:
    """Number of characters at the end of `text` that may be the start of `marker`."""
    lengths = range(min(len(marker) - 1, len(text)), 0, -1)
    return next((n for n in lengths if text.endswith(marker[:n])), 0)
