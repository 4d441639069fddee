"""Preference pairs: a prompt with a chosen and a rejected answer. A judged answer is a pair without its other side."""

import re
from typing import Final, NamedTuple

from datakit.read.layouts.conversations import (
    JUDGED,
    Conversation,
    Message,
    ParseOptions,
    Turns,
    around,
    asked,
    said,
    with_turns_parsed,
)
from datakit.read.record import Fields, RecordError, text_of

_SPEAKER: Final = re.compile(r"(?:^|\n\n)(Human|Assistant):")
_SPEAKERS: Final = {"Human": "user", "Assistant": "assistant"}


class Preference(NamedTuple):
    """The messages of prompt, chosen and rejected answer; the other fields as in `Conversation`."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]
    tools: str | None
    used: tuple[str, ...]
    left: Fields


def preference(found: Fields, options: ParseOptions) -> Preference:
    """`chosen` and `rejected`: texts, turns or whole dialogues; `prompt`, unless the answers hold it.

    Where both answers are whole dialogues, their common beginning is the prompt. Where only the chosen one is, the
    rejected one stands in the place of its last answer (ms-swift).

    Raises:
        RecordError: one of these cannot be what its name says, or there is no prompt.
    """
    found = with_turns_parsed(found, ("chosen", "rejected"))
    found = found if type(found["chosen"]) is str else with_turns_parsed(found, ("prompt",))
    sides = {name: said(found[name], name, "assistant", options) for name in ("chosen", "rejected")}
    chosen, rejected = (side.messages for side in sides.values())
    left = {name: side.left for name, side in sides.items() if side.left}
    used: tuple[str, ...] = ("chosen", "rejected")
    tools = sides["chosen"].tools or sides["rejected"].tools
    if chosen[0].role == "assistant":
        if found.get("prompt") is None:
            raise RecordError("missing_field", "the pair has no prompt, and its answers do not begin with one")
        prompt, names = asked(found, options)
        before, tools, used = prompt.messages, prompt.tools or tools, (*used, *names)
        left |= {"prompt": prompt.left} if prompt.left else {}
    elif all(m.role == "assistant" for m in rejected):
        begin = len(chosen)
        while begin and chosen[begin - 1].role == "assistant":
            begin -= 1
        if begin == len(chosen):
            raise RecordError("no_answer", "the dialogue in chosen should end with the better answer")
        before, chosen = chosen[:begin], chosen[begin:]
    else:
        begin = _shared(chosen, rejected)
        before, chosen, rejected = chosen[:begin], chosen[begin:], rejected[begin:]
        said_before = {m.content for m in before}
        used = (*used, "prompt") if found.get("prompt") in [*said_before] else used
    made = around(Turns(before, tools), found, used, left)
    return Preference(made.messages, chosen, rejected, made.tools, made.used, left)


def transcripts(found: Fields, options: ParseOptions) -> Preference:
    """Two transcripts (Anthropic's hh-rlhf): their common beginning is the prompt, the rest are the answers."""
    chosen, rejected = (transcript(text_of(found[name], name), name) for name in ("chosen", "rejected"))
    begin = _shared(chosen, rejected)
    return Preference(chosen[:begin], chosen[begin:], rejected[begin:], None, ("chosen", "rejected"), {})


def _shared(chosen: list[Message], rejected: list[Message]) -> int:
    """How many messages both dialogues begin with; the last one of each is its answer."""
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
    body = text.lstrip()
    if not _SPEAKER.match(body):
        raise RecordError("bad_transcript", f'{where} should begin with "Human:" or "Assistant:", found {body[:40]!r}')
    cuts = list(_SPEAKER.finditer(body))
    ends = [c.start() for c in cuts[1:]] + [len(body)]
    return [Message(_SPEAKERS[c[1]], body[c.end() : end].strip()) for c, end in zip(cuts, ends, strict=True)]


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
    sides = (answered, []) if good else ([], answered)
    return Preference(prompt, *sides, found.tools, found.used, found.left)
