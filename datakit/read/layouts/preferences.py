"""Preference layouts: a prompt with a chosen and a rejected answer, as published datasets write them."""

import re
from typing import Any, Final, NamedTuple

from datakit.read.layouts.conversations import TURN_FIELDS, Message, Turns, answer, around, first_of, history, turns
from datakit.read.layouts.record import Fields, MisfitError, text_of

PAIRS: Final = (
    ("chosen", "rejected"),
    ("chosen_messages", "rejected_messages"),
    ("preferred", "other"),
    ("response_chosen", "response_rejected"),
    ("chosen_response", "rejected_response"),
)
PROMPTS: Final = ("prompt", "question", "query", "instruction", "input")
_SPEAKER = re.compile(r"(?:^|\n\n)(Human|Assistant):")
_ROLES = {"Human": "user", "Assistant": "assistant"}


class Preference(NamedTuple):
    """The messages of prompt, chosen and rejected answer; the other fields as in `conversations.Conversation`."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]
    tools: str | None
    used: tuple[str, ...]
    left: Fields


def pair_of(fields: Fields) -> tuple[str, str] | None:
    """The names of a record's chosen and rejected field, if it has both."""
    return next((p for p in PAIRS if fields.get(p[0]) is not None and fields.get(p[1]) is not None), None)


def is_transcript(value: Any) -> bool:
    """Whether an answer is a whole dialogue in one string: "Human: ... Assistant: ..." with blank lines between."""
    return type(value) is str and _SPEAKER.match(value.lstrip()) is not None


def from_pair(fields: Fields) -> Preference:
    """Answers that are strings, turns or lists of turns. The prompt is a field of its own or the answers contain it."""
    names = _names(fields)
    answers = [answer(fields[n], n) for n in names]
    left = {n: a.left for n, a in zip(names, answers, strict=True) if a.left}
    tools = answers[0].tools or answers[1].tools
    if all(a.messages[0].role != "assistant" for a in answers):
        return _inside(fields, names, answers, tools, left)
    key, before, used = _prompt(fields)
    whole = around(Turns(before.messages, before.tools or tools, None), key, fields)
    left |= {key: before.left} if before.left else {}
    return Preference(
        whole.messages, answers[0].messages, answers[1].messages, whole.tools, (*names, *whole.used, *used), left
    )


def from_transcripts(fields: Fields) -> Preference:
    """Two transcripts (Anthropic's hh-rlhf): their common beginning is the prompt, the rest are the answers."""
    names = _names(fields)
    answers = [Turns(transcript(text_of(fields[n], n), n), None, None) for n in names]
    return _inside({n: fields[n] for n in names}, names, answers, None, {})


def transcript(text: str, where: str) -> list[Message]:
    """ "Human: ... Assistant: ..." as messages, without the white space around each.

    Raises:
        MisfitError: it does not begin with a speaker.
    """
    body = text.lstrip()
    if not _SPEAKER.match(body):
        raise MisfitError("bad_transcript", f'{where} should begin with "Human:" or "Assistant:", found {body[:40]!r}')
    cuts = list(_SPEAKER.finditer(body))
    ends = [c.start() for c in cuts[1:]] + [len(body)]
    return [Message(_ROLES[c[1]], body[c.end() : end].strip()) for c, end in zip(cuts, ends, strict=True)]


def _names(fields: Fields) -> tuple[str, str]:
    names = pair_of(fields)
    if names is None:
        raise MisfitError(
            "missing_field", f"a chosen and a rejected answer should be there; the fields are {', '.join(fields)}"
        )
    return names


def _inside(
    fields: Fields, names: tuple[str, str], answers: list[Turns], tools: str | None, left: Fields
) -> Preference:
    """Both answers hold the whole dialogue. Their common messages are the prompt, but never the last of an answer."""
    chosen, rejected = (a.messages for a in answers)
    limit = min(len(chosen), len(rejected)) - 1
    shared = next((i for i in range(limit) if chosen[i] != rejected[i]), limit)
    whole = around(Turns(chosen[:shared], tools, None), names[0], fields)
    said = {m.content for m in chosen[:shared]}
    used = tuple(n for n in PROMPTS if n in fields and fields[n] in said) if said else ()
    return Preference(
        whole.messages, chosen[shared:], rejected[shared:], whole.tools, (*names, *whole.used, *used), left
    )


def _prompt(fields: Fields) -> tuple[str, Turns, tuple[str, ...]]:
    """The prompt in a field of its own: (that field, its messages, more fields that were used)."""
    key = first_of((*TURN_FIELDS, *PROMPTS), fields)
    if not key:
        raise MisfitError("missing_field", f"the pair has no prompt; the fields are {', '.join(fields)}")
    if key in TURN_FIELDS or type(fields[key]) is list:
        return key, turns(fields[key], key), ()
    asked, used = text_of(fields[key], key), ["history"] if "history" in fields else []
    if key == "instruction" and "input" in fields:
        used.append("input")
        asked = "\n".join(part for part in (asked, text_of(fields["input"] or "", "input")) if part)
    return key, Turns([*history(fields.get("history")), Message("user", asked)], None, None), tuple(used)
