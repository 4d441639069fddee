"""The text of an answer, taken apart while it streams: thoughts, content and tool calls.

Models write tool calls as text, each family in its own form. The form is known from the chat template.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from train.model.sample import start_of

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
class Part:
    """A piece of an answer."""

    kind: Literal["content", "reasoning", "call"]
    text: str
    """For a call, its arguments as JSON text."""
    name: str = ""
    """The tool that is called."""


class Parts:
    """Split a stream of text into parts. Nothing is lost: what cannot be read as a tool call is content.

    `thinking` says that the prompt ended inside of a thought. Tool calls are only looked for where `form` is given.
    """

    def __init__(self, form: Form | None, thinking: bool = False) -> None:
        self.form = form
        self._held, self._find = "", self._thought if thinking else self._begin

    def add(self, text: str) -> list[Part]:
        """The parts that the new text completes or continues."""
        self._held += text
        return list(self._read(last=False))

    def end(self) -> list[Part]:
        """The rest."""
        return list(self._read(last=True))

    def _read(self, last: bool) -> Iterator[Part]:
        while True:
            here: Callable[[bool], Iterator[Part]] = self._find
            yield from here(last)
            if self._find == here:
                return

    def _begin(self, last: bool) -> Iterator[Part]:
        """Before the first word: white space, then perhaps a thought."""
        text = self._held.lstrip()
        if text.startswith(THINK):
            self._held, self._find = text[len(THINK) :].lstrip("\n"), self._thought
        elif last or not THINK.startswith(text):
            calls = self.form == "llama3" and text.startswith(("{", "[{"))  # without a marker of its own
            self._find = self._calls if calls else self._content
        yield from ()

    def _thought(self, last: bool) -> Iterator[Part]:
        text, marker, after = self._held.partition(END_THINK)
        if marker:
            self._held, self._find = after.lstrip("\n"), self._after_thought
        else:
            text, self._held = self._sure(text, END_THINK, last)
        if marker:
            text = text.rstrip("\n")
        if text:
            yield Part("reasoning", text)

    def _after_thought(self, last: bool) -> Iterator[Part]:
        """New lines between the thought and the content are dropped."""
        self._held = self._held.lstrip("\n")
        if self._held or last:
            calls = self.form == "llama3" and self._held.startswith("{")
            self._find = self._calls if calls else self._content
        yield from ()

    def _content(self, last: bool) -> Iterator[Part]:
        text = self._held
        if self.form is None:
            self._held = ""
        else:
            text, marker, after = text.partition(MARKERS[self.form][0])
            if marker:
                self._held, self._find = marker + after, self._calls
                text = text.rstrip() if not text.strip() else text
            else:
                text, self._held = self._sure(text, MARKERS[self.form][0], last)
        if text:
            yield Part("content", text)

    def _calls(self, last: bool) -> Iterator[Part]:
        """A tool call, which is given when it is complete."""
        assert self.form is not None
        begin, end = MARKERS[self.form]
        text = self._held
        if end and end in text:
            body, _, self._held = text.removeprefix(begin).partition(end)
            self._held, self._find = self._held.lstrip("\n"), self._between
        elif last:
            body, self._held = text.removeprefix(begin), ""
        else:
            return
        calls = read_calls(body, self.form)
        if calls is None:
            yield Part("content", text[: len(text) - len(self._held)] if self._held else text)
        else:
            for name, arguments in calls:
                yield Part("call", arguments, name)

    def _between(self, last: bool) -> Iterator[Part]:
        """After a tool call: white space, then another call or content."""
        self._held = self._held.lstrip()
        if self._held or last:
            self._find = self._content
        yield from ()

    @staticmethod
    def _sure(text: str, marker: str, last: bool) -> tuple[str, str]:
        """Text that no marker can include, and the rest."""
        sure = len(text) - (0 if last else start_of(marker, text))
        return text[:sure], text[sure:]


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
        calls = [(name.strip(), _object(arguments)) for name, _, arguments in named]
        return [(n, a) for n, a in calls if a is not None] if all(n and a is not None for n, a in calls) else None
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


def _object(text: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else None


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


def hidden_ids(special: dict[str, int], stop_ids: Sequence[int]) -> frozenset[int]:
    """The ids that leave no text in an answer."""
    return frozenset(i for text, i in special.items() if text not in KEPT) | frozenset(stop_ids)
