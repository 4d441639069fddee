"""The inverse of a chat template: the text of an answer, taken apart while it streams into thoughts, content and calls.

Models write tool calls as text, each family in its own form. The form is known from the chat template.
"""

import json
import re
from typing import Any, Literal, NamedTuple

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


class Answer(NamedTuple):
    """What a text says, part by part."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Tool calls: name, and arguments as JSON text."""


class AnswerParts:
    """Take the text of an answer apart while it grows. Nothing is lost: what cannot be read as a tool call is content.

    `thinking` says that the prompt ended inside of a thought. Tool calls are only looked for where `form` is given, and
    after `most_calls` of them further ones are left out. The whole text is read again for each piece: some microseconds
    for an answer of 8192 tokens.
    """

    def __init__(
        self, form: Form | None, thinking: bool = False, beginning: str = "", most_calls: int | None = None
    ) -> None:
        self.form, self.thinking, self.text, self.most_calls = form, thinking, beginning, most_calls
        self.whole = Answer()
        """What is sure of the text so far."""

    def add(self, text: str, last: bool = False) -> Answer:
        """What the new text adds; with `last` also what was held back because later text could have changed it."""
        self.text += text
        before, found = self.whole, self._read(last)
        self.whole = found._replace(calls=found.calls[: self.most_calls])
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
        content, calls = self._calls(rest, last) if self.form else (rest, [])
        return Answer(content if last or content.strip() else "", thought, tuple(calls))

    def _calls(self, rest: str, last: bool) -> tuple[str, list[tuple[str, str]]]:
        """Content and calls of a text. A call is read when it is complete; white space before the first one goes."""
        assert self.form is not None
        begin, end = MARKERS[self.form]
        content, calls = "", list[tuple[str, str]]()
        if self.form == "llama3" and rest.lstrip().startswith("{"):  # Llama may omit the marker
            found = read_calls(rest, self.form) if last else []
            return (rest, []) if found is None else ("", found)
        while begin in rest:
            before, _, after = rest.partition(begin)
            body, closed, left = after.partition(end) if end else (after, "", "")
            if not closed and not last:
                return content + before, calls
            found = read_calls(body, self.form)
            content += f"{before}{begin}{body}{closed}" if found is None else before * bool((content + before).strip())
            calls, rest = calls + (found or []), left if found is None else left.lstrip()
        return content + _sure(rest, begin, last), calls


def _sure(text: str, marker: str, last: bool) -> str:
    """The text without an end that may be the start of a marker."""
    return text if last else text[: len(text) - start_of(marker, text)]


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
