"""Conversation layouts: lists of turns, alpaca's instruction and output, a prompt with its completion."""

from typing import Any, Final, NamedTuple

from datakit.layouts.record import Fields, MisfitError, name_of, text_of
from datakit.layouts.turns import Message, Turns, tools_of, turns

TURN_FIELDS: Final = ("messages", "conversations", "conversation")
OUTPUTS: Final = ("output", "response", "completion", "answer")
QUESTIONS: Final = ("prompt", "question", "query", "inputs", "problem", "input")
ANSWERS: Final = ("completion", "response", "answer", "output", "targets", "solution")
SYSTEMS: Final = ("system", "system_prompt")


class Conversation(NamedTuple):
    """A record's messages and tools, the fields they were made from, and what is left inside those fields."""

    messages: list[Message]
    tools: str | None
    used: tuple[str, ...]
    left: Fields


def first_of(names: tuple[str, ...], fields: Fields) -> str:
    """The first of some field names that a record has with a value other than null; "" where it has none."""
    for name in names:  # a loop, not a generator: this runs several times for every record
        if fields.get(name) is not None:
            return name
    return ""


def from_turns(fields: Fields) -> Conversation:
    """`messages` or `conversations`, with `system` and `tools` beside them where given."""
    key = first_of(TURN_FIELDS, fields)
    if not key:
        raise MisfitError(
            "missing_field", f"none of {', '.join(TURN_FIELDS)} is there; the fields are {', '.join(fields)}"
        )
    return around(turns(fields[key], key), key, fields)


def around(body: Turns, key: str, fields: Fields) -> Conversation:
    """Turns with the system prompt and the tools that stand beside them in a record."""
    used = [key]
    messages = body.messages
    system = first_of(SYSTEMS, fields)
    if system and type(fields[system]) is str and (not messages or messages[0].role != "system"):
        messages = [Message("system", fields[system]), *messages] if fields[system] else messages
        used.append(system)
    tools = body.tools
    if tools is None and "tools" in fields:
        tools = tools_of(fields["tools"], "tools")
        used.append("tools")
    return Conversation(messages, tools, tuple(used), {key: body.left} if body.left else {})


def from_alpaca(fields: Fields) -> Conversation:
    """`instruction`, `input` (may be empty) and `output` or `response`; earlier turns in `history`."""
    key = first_of(OUTPUTS, fields)
    if not key or "instruction" not in fields:
        need = f"instruction and one of {', '.join(OUTPUTS)}"
        raise MisfitError("missing_field", f"{need} should be there; the fields are {', '.join(fields)}")
    asked = text_of(fields["instruction"], "instruction")
    given = fields.get("input")
    if given:
        asked = f"{asked}\n{text_of(given, 'input')}" if asked else text_of(given, "input")
    return exchange(fields, asked, key, ("instruction", *(["input"] if "input" in fields else [])))


def from_prompt(fields: Fields) -> Conversation:
    """A prompt and its completion, a question and its answer: strings, or lists of turns."""
    asked, key = first_of(QUESTIONS, fields), first_of(ANSWERS, fields)
    if not asked or not key:
        raise MisfitError(
            "missing_field", f"a prompt and a completion should be there; the fields are {', '.join(fields)}"
        )
    if type(fields[asked]) is not list:
        return exchange(fields, text_of(fields[asked], asked), key, (asked,))
    before, after = turns(fields[asked], asked), answer(fields[key], key)
    left = {k: t.left for k, t in ((asked, before), (key, after)) if t.left}
    whole = around(Turns(before.messages + after.messages, before.tools, None), asked, fields)
    return Conversation(whole.messages, whole.tools, (*whole.used, key), left)


def exchange(fields: Fields, asked: str, key: str, used: tuple[str, ...]) -> Conversation:
    """History, what was asked and what was answered, with system prompt and tools."""
    told = answer(fields[key], key)
    messages = [*history(fields.get("history")), Message("user", asked), *told.messages]
    whole = around(Turns(messages, told.tools, None), key, fields)
    seen = ("history",) if "history" in fields else ()
    return Conversation(whole.messages, whole.tools, (*whole.used, *used, *seen), {key: told.left} if told.left else {})


def answer(value: Any, key: str) -> Turns:
    """An answer as assistant messages: a string, one turn, or a list of turns."""
    if type(value) is dict:
        return turns([value], key)
    if type(value) is list:
        return turns(value, key)
    return Turns([Message("assistant", text_of(value, key))], None, None)


def history(value: Any) -> list[Message]:
    """Alpaca's `history`: pairs of (user, assistant).

    Raises:
        MisfitError: it is not a list of pairs of strings.
    """
    if not value:
        return []
    if type(value) is not list or any(type(pair) is not list or len(pair) != 2 for pair in value):
        raise MisfitError("bad_messages", f"history should be a list of pairs of strings, found {name_of(value)}")
    made = []
    for i, (asked, told) in enumerate(value):
        made.append(Message("user", text_of(asked, f"history[{i}][0]")))
        made.append(Message("assistant", text_of(told, f"history[{i}][1]")))
    return made
