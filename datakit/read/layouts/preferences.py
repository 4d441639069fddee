"""Preference layouts: a prompt with a chosen and a rejected answer, in the shapes that published sets have."""

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
    """Prompt, chosen and rejected messages, and as in `conversations.Conversation`."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]
    tools: str | None
    used: tuple[str, ...]
    left: Fields


def pair_of(fields: Fields) -> tuple[str, str] | None:
    """The names of the chosen and the rejected field of a record, if it has both."""
    return next((p for p in PAIRS if fields.get(p[0]) is not None and fields.get(p[1]) is not None), None)


def is_transcript(value: Any) -> bool:
    """Whether a side is a whole dialogue in one string, "Human: ... Assistant: ..." with blank lines between."""
    return type(value) is str and _SPEAKER.match(value.lstrip()) is not None


def from_pair(fields: Fields) -> Preference:
    """Any shape whose sides are strings, turns, or lists of turns, with the prompt beside or inside them."""
    names = _names(fields)
    sides = [answer(fields[n], n) for n in names]
    left = {n: s.left for n, s in zip(names, sides, strict=True) if s.left}
    tools = sides[0].tools or sides[1].tools
    if all(s.messages[0].role != "assistant" for s in sides):
        return _inside(fields, names, sides, tools, left)
    key, before, used = _prompt(fields)
    whole = around(Turns(before.messages, before.tools or tools, None), key, fields)
    left |= {key: before.left} if before.left else {}
    return Preference(
        whole.messages, sides[0].messages, sides[1].messages, whole.tools, (*names, *whole.used, *used), left
    )


def from_transcripts(fields: Fields) -> Preference:
    """Two transcripts (Anthropic's hh-rlhf): what they share is the prompt, the rest are the sides."""
    names = _names(fields)
    sides = [Turns(transcript(text_of(fields[n], n), n), None, None) for n in names]
    return _inside({n: fields[n] for n in names}, names, sides, None, {})


def transcript(text: str, where: str) -> list[Message]:
    """ "Human: ... Assistant: ..." as messages, white space around each removed.

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


def _inside(fields: Fields, names: tuple[str, str], sides: list[Turns], tools: str | None, left: Fields) -> Preference:
    """Both sides hold the whole dialogue: the messages they share are the prompt, short of each side's last."""
    chosen, rejected = (s.messages for s in sides)
    limit = min(len(chosen), len(rejected)) - 1
    shared = next((i for i in range(limit) if chosen[i] != rejected[i]), limit)
    whole = around(Turns(chosen[:shared], tools, None), names[0], fields)
    said = {m.content for m in chosen[:shared]}
    used = tuple(n for n in PROMPTS if n in fields and fields[n] in said) if said else ()
    return Preference(
        whole.messages, chosen[shared:], rejected[shared:], whole.tools, (*names, *whole.used, *used), left
    )


def _prompt(fields: Fields) -> tuple[str, Turns, tuple[str, ...]]:
    """The prompt that stands beside the sides: (its field, its messages, more fields that it took)."""
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
