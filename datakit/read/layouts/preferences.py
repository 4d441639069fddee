"""Layouts of preference pairs: a prompt with a chosen and a rejected answer, as published datasets write them.

The two are fields of their own; or two answers and a verdict; or several answers with scores or ranks, of which the
best and the worst make the pair. One answer that is judged by itself makes a pair without its other side.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from datakit.read.layouts.conversations import (
    HISTORIES,
    TURN_FIELDS,
    answer,
    earlier,
    is_transcript,
    parsed_turns,
    transcript,
    turn_field_of,
)
from datakit.read.layouts.record import Fields, MisfitError, Number, name_of, text_of
from datakit.read.layouts.turns import (
    JUDGED,
    PLAIN,
    Conversation,
    Message,
    Reading,
    Turns,
    around,
    first_of,
    tools_of,
    turns,
)

PAIRS: Final = (
    ("chosen", "rejected"),
    ("chosen_messages", "rejected_messages"),
    ("preferred", "other"),
    ("response_chosen", "response_rejected"),
    ("chosen_response", "rejected_response"),
    ("preferred_output", "non_preferred_output"),
    ("accepted", "rejected"),
    ("response_j", "response_k"),
    ("chosen_conversations", "rejected_conversations"),
    ("chosen_conversation", "rejected_conversation"),
    ("chosen_answer", "rejected_answer"),
    ("chosen_completion", "rejected_completion"),
    ("chosen_output", "rejected_output"),
    ("chosen_text", "rejected_text"),
    ("answer_chosen", "answer_rejected"),
    ("messages", "rejected_messages"),
    ("messages", "rejected_response"),
    ("response", "rejected_response"),
)
PROMPTS: Final = ("prompt", "question", "query", "instruction", "input", "context", "history")
STEPS: Final = "initial_reason_steps"
"""Math-Step-DPO: the steps that both answers go on from. They begin both: a common beginning changes no preference."""


class Preference(NamedTuple):
    """The messages of prompt, chosen and rejected answer; the other fields as in `Conversation`."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]
    tools: str | None
    used: tuple[str, ...]
    left: Fields


def pair_of(fields: Fields) -> tuple[str, str] | None:
    """The names of a record's chosen and rejected field, if it has both."""
    return next((p for p in PAIRS if fields.get(p[0]) is not None and fields.get(p[1]) is not None), None)


def from_pair(fields: Fields, reading: Reading = PLAIN) -> Preference:
    """Answers that are strings, turns or lists of turns. The prompt is a field of its own or the answers contain it."""
    names = _pair_names(fields)
    asked = first_of(PROMPTS, fields)
    fields = parsed_turns(parsed_turns(fields, (*names, asked)) if asked else fields, names)
    answers, steps = [answer(fields[n], n, reading) for n in names], fields.get(STEPS)
    if type(steps) is not str:
        return _pair(fields, names, answers, reading)
    for turns_of in answers:
        first = turns_of.messages[0]
        turns_of.messages[0] = first._replace(content=steps + first.content)
    made = _pair(fields, names, answers, reading)
    return made._replace(used=(*made.used, STEPS))


def _pair(fields: Fields, names: tuple[str, str], answers: list[Turns], reading: Reading) -> Preference:
    left = {n: a.left for n, a in zip(names, answers, strict=True) if a.left}
    tools = answers[0].tools or answers[1].tools
    if answers[0].messages[0].role != "assistant" and all(m.role == "assistant" for m in answers[1].messages):
        return _instead_of_last(fields, names, answers, tools, left)
    if all(a.messages[0].role != "assistant" for a in answers):
        return _from_dialogues(fields, names, answers, tools, left)
    key, before, used = _prompt(fields, names, reading)
    whole = around(Turns(before.messages, before.tools or tools, None), key, fields)
    left |= {key: before.left} if before.left else {}
    return Preference(
        whole.messages, answers[0].messages, answers[1].messages, whole.tools, (*names, *whole.used, *used), left
    )


def from_transcripts(fields: Fields, _: Reading = PLAIN) -> Preference:
    """Two transcripts (Anthropic's hh-rlhf): their common beginning is the prompt, the rest are the answers."""
    names = _pair_names(fields)
    answers = [Turns(transcript(text_of(fields[n], n), n), None, None) for n in names]
    return _from_dialogues({n: fields[n] for n in names}, names, answers, None, {})


def _pair_names(fields: Fields) -> tuple[str, str]:
    names = pair_of(fields)
    if names is None:
        raise MisfitError(
            "missing_field", f"a chosen and a rejected answer should be there; the fields are {', '.join(fields)}"
        )
    return names


def _from_dialogues(
    fields: Fields, names: tuple[str, str], answers: list[Turns], tools: str | None, left: Fields
) -> Preference:
    """Both answers hold the whole dialogue. Their common messages are the prompt, but never the last of an answer."""
    chosen, rejected = (a.messages for a in answers)
    limit = min(len(chosen), len(rejected)) - 1
    shared = next((i for i in range(limit) if chosen[i] != rejected[i]), limit)
    whole = around(Turns(chosen[:shared], tools, None), names[0], fields)
    said = {m.content for m in chosen[:shared]}
    used = tuple(n for n in PROMPTS if type(fields.get(n)) is str and fields[n] in said) if said else ()
    return Preference(
        whole.messages, chosen[shared:], rejected[shared:], whole.tools, (*names, *whole.used, *used), left
    )


def _instead_of_last(
    fields: Fields, names: tuple[str, str], answers: list[Turns], tools: str | None, left: Fields
) -> Preference:
    """A whole dialogue, and what the worse answer is instead of its last one (ms-swift)."""
    said = answers[0].messages
    begin = next((i + 1 for i in reversed(range(len(said))) if said[i].role != "assistant"), 0)
    if begin == len(said):
        raise MisfitError("no_answer", f"{names[0]} should end with the better answer")
    whole = around(Turns(said[:begin], tools, None), names[0], fields)
    return Preference(whole.messages, said[begin:], answers[1].messages, whole.tools, (*names, *whole.used), left)


def _prompt(fields: Fields, answers: tuple[str, ...], reading: Reading) -> tuple[str, Turns, tuple[str, ...]]:
    """The prompt in a field of its own: (that field, its messages, more fields that were used)."""
    key = first_of(tuple(n for n in (*TURN_FIELDS[:3], *PROMPTS) if n not in answers), fields)
    if not key and (key := turn_field_of({n: v for n, v in fields.items() if n not in answers})):
        return key, turns(fields[key], key, reading), ()
    if not key:
        raise MisfitError("missing_field", f"the pair has no prompt; the fields are {', '.join(fields)}")
    if type(fields[key]) is dict and "messages" in fields[key]:  # OpenAI's format for preferences
        inner = fields[key]
        asked, left = turns(inner["messages"], f"{key}.messages", reading), dict(inner)
        tools, left["messages"] = tools_of(left.pop("tools", None), f"{key}.tools"), asked.left
        rest = {n: v for n, v in left.items() if v is not None}
        return key, Turns(asked.messages, tools or asked.tools, rest or None), ()
    if key in TURN_FIELDS or (type(fields[key]) is list and key != "history"):
        return key, turns(fields[key], key, reading), ()
    question, used = text_of(fields[key], key), list[str]()
    if is_transcript(question):
        said = transcript(question, key)
        return key, Turns(said if said[-1].content else said[:-1], None, None), ()
    if key == "instruction" and "input" in fields:
        used.append("input")
        question = "\n".join(part for part in (question, text_of(fields["input"] or "", "input")) if part)
    before, seen = ([], ()) if key in HISTORIES else earlier(fields, reading)
    return key, Turns([*before, Message("user", question)], None, None), (*used, *seen)


# Two answers and a verdict.

Verdict = Callable[[Any], int | None]
"""From the value of the field: 0 or 1, the place of the better answer; None for a tie."""


def _digits(value: Any) -> Any:
    """The number that a cell of a CSV file holds; any other value as it is."""
    return int(value) if type(value) is str and value.strip().lstrip("-").isdecimal() else value


def _number(value: Any) -> float:
    value = _digits(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Number):
        raise MisfitError("bad_verdict", f"the verdict should be a number, found {name_of(value)}")
    return float(value)


def _below_zero(value: Any) -> int | None:
    return None if _number(value) == 0 else int(_number(value) > 0)


def _place(value: Any) -> int | None:
    value = _digits(value)
    if type(value) is int and value in (0, 1):
        return value
    raise MisfitError("bad_verdict", f"the verdict should be 0 or 1, found {name_of(value)}")


def _first_is_one(value: Any) -> int | None:
    return 1 - (_place(value) or 0)


def _named(value: Any) -> int | None:
    """`model_a`, `a`, `tie`, ..."""
    value = str(value) if type(value) is int else value
    last = text_of(value, "the verdict").lower().replace("model_", "").replace("response_", "").strip()
    if last in ("a", "b", "1", "2", "0"):
        return int(last in ("b", "2"))
    if last.startswith(("tie", "both")) or last in ("neither", "none", "equal"):
        return None
    raise MisfitError("bad_verdict", f"the verdict should name one of the two answers, found {value!r}")


VERDICTS: Final[tuple[tuple[tuple[str, str], str, Verdict], ...]] = (
    (("response_0", "response_1"), "better_response_id", _place),
    (("response1", "response2"), "overall_preference", _below_zero),
    (("response_1", "response_2"), "preference_strength", _below_zero),
    (("conversation_a", "conversation_b"), "winner", _named),
    (("response_a", "response_b"), "winner", _named),
    (("response_a", "response_b"), "preference", _named),
    (("human_ref_a", "human_ref_b"), "labels", _first_is_one),
)
"""The two answers, the verdict, and how to read it: PKU-SafeRLHF, HelpSteer3, HelpSteer2, Chatbot Arena, SHP."""


def verdict_of(fields: Fields) -> tuple[tuple[str, str], str, Verdict] | None:
    """The row of `VERDICTS` with all the fields of a record."""
    return next((v for v in VERDICTS if all(fields.get(n) is not None for n in (*v[0], v[1]))), None)


def from_verdict(fields: Fields, reading: Reading = PLAIN) -> Preference:
    """Two answers and a verdict: the better one is chosen.

    Raises:
        MisfitError: no such fields, a verdict that cannot be read, a tie.
    """
    found = verdict_of(fields)
    if found is None:
        raise MisfitError("missing_field", f"two answers and a verdict should be there; found {', '.join(fields)}")
    names, field, read = found
    better = read(fields[field])
    if better is None:
        raise MisfitError("tie", f"{field} prefers neither answer, so they are no pair")
    return _pair(fields, *_ordered(fields, names, better, reading), reading)


def _ordered(
    fields: Fields, names: tuple[str, str], better: int, reading: Reading
) -> tuple[tuple[str, str], list[Turns]]:
    first = (names[better], names[1 - better])
    return first, [answer(fields[n], n, reading) for n in first]


# Several answers with scores or ranks.

RANKED: Final = ("completions", "answers", "responses", "candidates", "outputs", "generations")
_SCORES: Final = ("fine-grained_score", "overall_score", "score", "rating", "pm_score", "reward")
SCORE_LISTS: Final = ("scores", "ratings", "rewards", "ranks", "score", "rating", "reward", "rank")
_TEXTS: Final = ("response", "answer", "text", "content", "completion", "output", "generation")


def ranked_field_of(fields: Fields) -> str:
    """The field that is a list of answers with a score or a rank each; "" without one."""
    for name in RANKED:
        value = _scored(fields, name)
        first = value[0] if type(value) is list and len(value) > 1 else None
        if type(first) is dict and _text_key(first) and _score(first) is not None:
            return name
    return ""


def _scored(fields: Fields, name: str) -> Any:
    """A list of answers as objects, where it is one of texts, and another field is the list of their scores; else the
    value as it is."""
    value = fields.get(name)
    if type(value) is not list or not value or type(value[0]) is not str:
        return value
    for key in SCORE_LISTS:
        if type(fields.get(key)) is list and len(fields[key]) == len(value):
            kind = "rank" if key.startswith("rank") else "score"
            return [{"text": text, kind: score} for text, score in zip(value, fields[key], strict=True)]
    return value


def _text_key(one: Fields) -> str:
    return next((n for n in _TEXTS if type(one.get(n)) is str), "")


def _score(one: Fields) -> float | None:
    """How good an answer is, higher for better; None if nothing says it."""
    for name in (*_SCORES, "rank"):
        value = one.get(name)
        if isinstance(value, int | float | Number) and not isinstance(value, bool) and float(value) == float(value):
            return -float(value) if name == "rank" else float(value)
    return None


def from_ranked(fields: Fields, reading: Reading = PLAIN) -> Preference:
    """UltraFeedback, Nectar: of several answers the best and the worst, on a tie the earlier ones.

    Raises:
        MisfitError: no such list, or all answers are equally good.
    """
    key = ranked_field_of(fields)
    if not key:
        raise MisfitError("missing_field", f"a list of answers with scores should be there; found {', '.join(fields)}")
    listed = _scored(fields, key)
    scored = [(_score(one), i) for i, one in enumerate(listed) if type(one) is dict and _text_key(one)]
    known = [(score, i) for score, i in scored if score is not None]
    best, worst = max(known, key=lambda s: (s[0], -s[1])), min(known, key=lambda s: (s[0], s[1]))
    if best[0] == worst[0]:
        raise MisfitError("tie", f"all {len(known)} answers in {key} are equally good, so they are no pair")
    sides = [listed[i] for i in (best[1], worst[1])]
    answers = [Turns([Message("assistant", side[_text_key(side)])], None, None) for side in sides]
    made = _pair({k: v for k, v in fields.items() if k != key}, (key, key), answers, reading)
    return made._replace(used=tuple(n for n in made.used if n != key))  # the other answers stay beside the pair


# One answer, judged by itself.


def one_sided(found: Conversation) -> Preference:
    """A conversation whose answer is judged (KTO) as a pair with one side: good answers are chosen, bad ones rejected.

    Raises:
        MisfitError: the record does not judge its answer, or there is none.
    """
    good = JUDGED.get(str(found.judgement).lower())
    if good is None:
        said = "nothing" if found.judgement is None else repr(found.judgement)
        raise MisfitError(
            "no_judgement", f"label (or kto_tag) should be true for a good answer, else false; found {said}"
        )
    begin = len(found.messages) - found.answer_turns
    if not found.answer_turns:
        begin = next((i + 1 for i in reversed(range(begin)) if found.messages[i].role == "user"), 0)
    prompt, answered = found.messages[:begin], found.messages[begin:]
    if not prompt or all(m.role != "assistant" for m in answered):
        raise MisfitError("no_answer", "an answer of the assistant should follow a question")
    sides = (answered, []) if good else ([], answered)
    return Preference(prompt, *sides, found.tools, found.used, found.left)
