"""The user's mapping: which fields of other people's records are ours, and the nearest mapping for unknown records.

A mapping names, for a field of ours, a field of the record (`turns`), a path into it (`meta.body`), or a template
(`{instruction}\\n\\n{context}`). A mapped record has the named fields only, under our names; layouts convert it.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any, Final, NamedTuple

from datakit.errors import ConfigError
from datakit.read.layouts.conversations import ANSWERS, CONTEXTS, QUESTIONS, from_prompt, from_turns
from datakit.read.layouts.preferences import PROMPTS, from_pair
from datakit.read.layouts.record import Fields, MisfitError, Number, name_of, text_of
from datakit.read.layouts.turns import (
    CALLERS,
    CONTENT_KEYS,
    ROLE_KEYS,
    ROLES,
    SYSTEMS,
    Reading,
    parsed,
    speaker_of,
    spelled,
    unzipped,
)

TARGETS: Final = {
    "text": "a document's text",
    "messages": "the list of turns",
    "role": "who speaks, in a turn",
    "content": "what is said, in a turn",
    "reasoning_content": "thoughts, in a turn or before the answer",
    "tool_calls": "calls, in a turn",
    "weight": "the loss weight of a turn",
    "prompt": "the question",
    "answer": "the answer",
    "chosen": "the better answer",
    "rejected": "the worse answer",
    "system": "the system prompt",
    "tools": "the tools",
    "label": "false for a bad answer",
    "id": "the record's id",
}
"""What can be mapped."""
_IN_TURNS: Final = ("role", "content", "reasoning_content", "tool_calls", "weight")
_KINDS: Final = {"text": "document", "messages": "conversation", "answer": "conversation", "chosen": "preference"}
HOLE: Final = re.compile(r"\{([^{}]+)\}")
KNOWN_ROLES: Final = ("system", "user", "assistant", "tool")
SAMPLE_CHARS: Final = 48
_ANSWERED: Final = (*ANSWERS[:12], "correct", "label", "summary", "highlights")
"""What answers are called, also where no layout reads them."""
_SIDES: Final = (("good", "bad"), ("better", "worse"), ("positive", "negative"), ("winner", "loser"),
                 ("preferred", "dispreferred"), ("accepted", "rejected"), ("chosen", "rejected"))  # fmt: skip
_HELPERS: Final = (
    "assist",
    "bot",
    "agent",
    "system",
    "doctor",
    "tutor",
    "teacher",
    "expert",
    "operator",
    "answer",
    "help",
    "model",
)
"""Parts of the names of speakers who answer."""


class Document(NamedTuple):
    """A document's text, the fields that it was made from, and what is left inside these fields."""

    text: str
    used: tuple[str, ...]
    left: Fields


def reading_of(mapping: Mapping[str, str], roles: Mapping[str, str], every_path: bool = False) -> Reading:
    """How to read records with the user's mapping and roles.

    Raises:
        ConfigError: an unknown name, an unknown role, or a mapping that makes no row.
    """
    unknown = [name for name in mapping if name not in TARGETS]
    if unknown:
        known = "; ".join(f"{name} ({about})" for name, about in TARGETS.items())
        raise ConfigError(f"map: {unknown[0]!r} is no name that can be mapped; known are {known}")
    for speaker, role in roles.items():
        if role not in KNOWN_ROLES:
            raise ConfigError(f"roles: {speaker}={role}: a role is one of {', '.join(KNOWN_ROLES)}")
    own = {speaker.lower(): role for speaker, role in roles.items()} | dict(roles)
    in_turns = mapping.keys() & {"messages", "role", "content"} or not mapping.keys() & _KINDS.keys()
    turn_fields = tuple((n, mapping[n]) for n in _IN_TURNS if n in mapping) if in_turns else ()
    record = tuple((n, field) for n, field in mapping.items() if n != "id" and (n, field) not in turn_fields)
    if record and not kind_of(mapping):
        raise ConfigError(
            f"map: {', '.join(n for n, _ in record)} alone make no row: map text, or messages, or prompt and answer, "
            "or chosen and rejected"
        )
    pairs = (("answer", "prompt"), ("prompt", "answer"), ("chosen", "rejected"), ("rejected", "chosen"))
    for one, other in pairs:
        if one in mapping and other not in mapping and not (one == "prompt" and "chosen" in mapping):
            raise ConfigError(f"map: {one} needs {other}, too: add --map {other}=FIELD")
    return Reading(ROLES | own, turn_fields, record, every_path)


def kind_of(mapping: Mapping[str, str]) -> str:
    """The kind of row that a mapping makes; "" if it leaves that to the layouts."""
    return next((kind for name, kind in _KINDS.items() if name in mapping), "")


def from_mapping(fields: Fields, reading: Reading) -> Any:
    """The row of a record by the user's mapping."""
    made, used, left = _mapped(fields, reading)
    names = {name for name, _ in reading.mapping}
    if made.get("messages", fields) is None:
        there = ", ".join(unnested([fields])[0])
        raise MisfitError(
            "missing_field", f"{dict(reading.mapping)['messages']} is no list of turns; there are {there}"
        )
    if "text" in names:
        return Document(text_of(made["text"], dict(reading.mapping)["text"]), used, left)
    if "chosen" in names:
        row: Any = from_pair(made, reading)
    else:
        row = from_turns(made, reading) if "messages" in names else from_prompt(made, reading)
    sources = dict(reading.mapping)
    inner = {sources.get(n, n): rest for n, rest in row.left.items() if "{" not in sources.get(n, n)}
    return row._replace(used=used, left=left | inner)


def _mapped(fields: Fields, reading: Reading) -> tuple[Fields, tuple[str, ...], Fields]:
    """(the record under our names, the fields that were used, what is left of those that a path leads into)."""
    made: Fields = {n: fields[n] for n in ("system", "tools", "label") if n in fields}
    used, left = [n for n in made if n != "label"], Fields()
    for name, source in reading.mapping:
        if "{" in source:
            made[_OURS.get(name, name)] = _filled(source, fields, used)
            continue
        if source in fields:
            path = [source]
        else:
            path = source.split(".")
            if path[0] not in fields:
                raise MisfitError("missing_field", f"{source} should be there; the fields are {', '.join(fields)}")
        made[_OURS.get(name, name)] = value_at(fields, path, source)
        used.append(path[0])
        if len(path) > 1:
            left[path[0]] = _without(left.get(path[0], fields[path[0]]), path[1:])
    return made, tuple(dict.fromkeys(used)), {k: v for k, v in left.items() if v}


_OURS: Final = {"answer": "completion"}
"""The name of the layouts for a name of the mapping."""


@cache
def _holes(template: str) -> list[str]:
    """Text and fields of a template in turn."""
    return HOLE.split(template.replace("\\n", "\n"))


def _filled(template: str, fields: Fields, used: list[str]) -> str:
    """A template with the fields of a record. A field that is null or missing is empty; white space at both ends goes.

    Raises:
        MisfitError: none of the fields is there, or one is not a text or a number.
    """
    parts, found = list[str](), False
    for i, part in enumerate(_holes(template)):
        if i % 2 == 0:
            parts.append(part)
            continue
        path = [part] if part in fields else part.split(".")
        if path[0] not in fields:
            continue
        value = value_at(fields, path, part)
        found = True
        if len(path) == 1:  # an object that a template looks into stays whole beside the row
            used.append(part)
        if value is None:
            continue
        plain = isinstance(value, str | int | float | Number) and not isinstance(value, bool)
        parts.append(str(value) if plain else text_of(value, part))
    if not found:
        raise MisfitError("missing_field", f"no field of {template!r} is there; the fields are {', '.join(fields)}")
    return "".join(parts).strip()


def value_at(fields: Fields, path: Sequence[str], source: str) -> Any:
    """The value that a path leads to; null where an object has no such key.

    Raises:
        MisfitError: the path leads into a value that is neither an object nor a list that long.
    """
    value: Any = fields
    for key in path:
        value = parsed(value) if type(value) is str else value
        if type(value) is list and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif type(value) is dict:
            value = value.get(key)
        else:
            raise MisfitError("missing_field", f"{source}: there is no {key!r} in {name_of(value)}")
    return value


def found_at(fields: Fields, source: str) -> Any:
    """The value that a name with dots leads to; None if it leads nowhere."""
    try:
        return fields[source] if source in fields else value_at(fields, source.split("."), source)
    except MisfitError:
        return None


def is_missing(source: str, records: Sequence[Fields]) -> bool:
    """Whether objects are where a path leads to, and none has its last key."""
    *inner, last = source.split(".")
    objects = [value for r in records if type(value := found_at(r, ".".join(inner)) if inner else r) is dict]
    return bool(objects) and not any(last in o for o in objects) and not any(source in r for r in records)


def _without(value: Any, path: Sequence[str]) -> Any:
    """A nested object without the value that a path leads to; lists stay whole."""
    if type(value) is not dict or path[0] not in value:
        return value
    inner = _without(value[path[0]], path[1:]) if len(path) > 1 else None
    rest = {k: v for k, v in value.items() if k != path[0]}
    return rest | {path[0]: inner} if inner else rest


# Records that fit no layout.


def fields_with_samples(head: Sequence[Fields]) -> str:
    """The fields of a file's first records, each with a value of one of them, one a line."""
    counts = Counter(name for fields in head for name in fields)
    lines = []
    for name, _ in counts.most_common(12):
        value = next((f[name] for f in head if f.get(name) not in (None, "", [], {})), None)
        text = value if type(value) is str else name_of(value) if value is None else repr(value)
        short = " ".join(str(text).split())
        lines.append(f"  {name}: {short[:SAMPLE_CHARS]}{'...' if len(short) > SAMPLE_CHARS else ''}")
    return "\n".join(lines + ([f"  and {len(counts) - 12} more"] if len(counts) > 12 else []))


def nearest(head: Sequence[Fields], path: str) -> str:
    """The command with the mapping that is nearest to records of no known layout; "" if they hold no text."""
    flat = unnested(head)
    turns = _turns_flags(head) or _turns_flags(flat) or _turns_flags(flat, nested=True)
    flags = _pair_flags(flat) or turns or _exchange_flags(flat) or _text_flags(flat)
    return f"datakit ingest {shlex.quote(path)} {flags}" if flags else ""


def unknown_speakers(head: Sequence[Fields], field: str, reading: Reading) -> tuple[list[str], set[str]]:
    """The speakers of a field's turns that have no role, the most frequent first (none if most turns have one), and the
    roles of the others."""
    known = dict(reading.turn_fields).get("role")
    found: Counter[str] = Counter()
    for fields in head:
        value = unzipped(fields.get(field))
        for turn in value if type(value) is list else ():
            if type(turn) is dict:
                key = known or next((k for k in ROLE_KEYS if k in turn), "")
                found.update([str(speaker_of(turn[key]))] if key in turn else [])
    strange = {s: n for s, n in found.items() if spelled(s) not in reading.roles and spelled(s) not in CALLERS}
    taken = {reading.roles[spelled(s)] for s in found if spelled(s) in reading.roles}
    many = 2 * sum(strange.values()) >= found.total() > 0
    return sorted(strange, key=lambda s: -strange[s]) if many else [], taken


def roles_flag(speakers: Sequence[str], field: str = "", taken: Collection[str] = ()) -> str:
    """`--roles` for speakers without a role: those that sound like the one who answers are the assistant. Of true and
    false, the name of their field says who is meant (`is_human`). `taken` are the roles of the other speakers."""
    speakers = sorted(speakers, key=lambda s: s == "false")
    named = [field if s == "true" else s for s in speakers]
    made = [
        (s, "assistant" if any(h in n.lower() for h in _HELPERS) else "user")
        for s, n in zip(speakers, named, strict=True)
    ]
    if made and len({role for _, role in made}) == 1 and len(made) > 1:
        other = {"user": "assistant", "assistant": "user"}[made[0][1]]
        made = [(s, role if i == 0 else other) for i, (s, role) in enumerate(made)]
    if len(made) == 1 and "user" in taken and "assistant" not in taken:
        made = [(speakers[0], "assistant")]
    return f"--roles {shlex.quote(','.join(f'{s}={role}' for s, role in made))}" if made else ""


def _turns_flags(head: Sequence[Fields], nested: bool = False) -> str:
    """The mapping for a list of objects of which one field says little in few ways, and another says much. `nested`:
    the fields may lie in objects of a turn, as in `author.role`."""
    for name in dict.fromkeys(n for fields in head for n in fields):
        lists = [fields.get(name) if nested else unzipped(fields.get(name)) for fields in head]
        rows = [value for value in lists if type(value) is list and value]
        turns = [turn for value in rows for turn in value if type(turn) is dict]
        turns = unnested(unnested(turns)) if nested else turns
        keys = Counter(k for turn in turns for k, v in turn.items() if type(v) in (str, int) or _says_who(k, v))
        common = [k for k, n in keys.items() if n >= len(turns) * 0.9]
        texts = [k for k in common if all(type(t.get(k, "")) is str for t in turns)]
        if len(turns) < 2 or len(common) < 2 or not texts:
            continue
        content = max(
            texts, key=lambda k: (not set(CONTENT_KEYS).isdisjoint(k.split(".")), sum(len(t.get(k, "")) for t in turns))
        )
        few = {k: {str(speaker_of(t.get(k))) for t in turns} for k in common if k != content}
        speakers = {k: v for k, v in few.items() if 1 < len(v) <= max(6, len(turns) // 20) or v <= ROLES.keys()}
        speakers = {k: v for k, v in speakers.items() if not all(n.isdigit() for n in v) or _names_speakers(k)}
        if not speakers:
            continue
        role = min(speakers, key=lambda k: (k.split(".")[-1] not in ROLE_KEYS, abs(len(speakers[k]) - 2)))
        in_order = dict.fromkeys(str(speaker_of(turn.get(role))) for turn in turns)  # the one who asks speaks first
        strange = [s for s in in_order if spelled(s) not in ROLES]
        if len(strange) == 1 and {ROLES.get(spelled(s)) for s in speakers[role]} == {None, "system"}:
            strange = sorted(speakers[role])  # a system that people talk to: it answers
        flags = [
            f"--map {shlex.quote(f'{n}={v}')}" for n, v in (("messages", name), ("role", role), ("content", content))
        ]
        return " ".join(
            [
                *flags,
                *([roles_flag(strange, role, {ROLES.get(spelled(s), "") for s in speakers[role]})] if strange else []),
            ]
        )
    return ""


def _names_speakers(field: str) -> bool:
    """Whether numbers in a field may be speakers: other numbers are scores and positions."""
    return any(part in field.lower() for part in (*ROLE_KEYS, "author", "sender", "user", "party"))


def _says_who(name: str, value: Any) -> bool:
    """Whether true and false in a field name the speaker, as in `is_human`."""
    return type(value) is bool and any(part in name.lower() for part in (*_HELPERS, "human", "user"))


def _pair_flags(flat: Sequence[Fields]) -> str:
    """The mapping for two answers whose names say which is better: `good_reply`, `bad_reply`."""
    texts = _text_columns(flat)
    for name in texts:
        for good, bad in _SIDES:
            other = re.sub(rf"(?<![a-z]){good}(?![a-z])", bad, name.lower())
            worse = next((n for n in texts if n.lower() == other and n != name), "")
            asked = {n: _likeness(n, (*QUESTIONS, *PROMPTS)) for n in texts if n not in (name, worse)}
            prompt = max(asked, key=lambda n: asked[n], default="")
            if worse and prompt and asked[prompt] >= 0.8:
                return _flags({"prompt": prompt, "chosen": name, "rejected": worse})
    return ""


def _exchange_flags(flat: Sequence[Fields]) -> str:
    """The mapping for fields whose names resemble those of questions and answers. Where only one of the two is found,
    the other is the longest text."""
    texts = _text_columns(flat)
    letters = {n.lower(): n for n in texts if len(n) == 1}
    if {"q", "a"} <= letters.keys():
        return _flags({"prompt": letters["q"], "answer": letters["a"]})
    answers = {n: _likeness(n, _ANSWERED) for n in texts}
    asked = {n: _likeness(n, (*QUESTIONS, *PROMPTS)) for n in texts if "system" not in n.lower()}
    best = max(answers, key=lambda n: answers[n], default="")
    best = best if answers.get(best, 0) >= 0.8 else ""
    question = max((n for n in asked if n != best), key=lambda n: asked[n], default="")
    question = question if asked.get(question, 0) >= 0.8 else ""
    others = [n for n in asked if n not in (best, question) and (best or n not in CONTEXTS)]
    rest = max(others, key=lambda n: texts[n], default="")
    if not (best or question) or not (rest or (best and question)):
        return ""
    best, question = best or rest, question or rest
    system = next((n for n in SYSTEMS[1:] if n in texts), "")
    return _flags({"prompt": question, "answer": best} | ({"system": system} if system else {}))


def _flags(mapping: Mapping[str, str]) -> str:
    return " ".join(f"--map {shlex.quote(f'{ours}={theirs}')}" for ours, theirs in mapping.items())


def _text_flags(flat: Sequence[Fields]) -> str:
    """The mapping for the longest text of the records, which may be nested."""
    texts = _text_columns(flat)
    longest = max(texts, key=lambda n: texts[n], default="")
    if any(str(fields.get(longest)).lstrip().lower().startswith(("<!doctype", "<html")) for fields in flat):
        return f"--html-field {shlex.quote(longest)}"
    return f"--map {shlex.quote(f'text={longest}')}" if longest else ""


def unnested(head: Sequence[Fields]) -> list[Fields]:
    """Records with the fields of their objects and the first values of their lists, under names with a dot."""
    inner = ((f, [(k, dict(enumerate(o[:1])) if type(o) is list else o) for k, o in f.items()]) for f in head)
    return [{f"{k}.{n}": v for k, o in own if type(o) is dict for n, v in o.items()} | f for f, own in inner]


def _text_columns(head: Sequence[Fields]) -> dict[str, int]:
    """The characters of each field that holds strings only."""
    sizes: Counter[str] = Counter()
    for fields in head:
        for name, value in fields.items():
            if type(value) is str:
                sizes[name] += len(value)
    return {n: s for n, s in sizes.items() if s and all(f.get(n) is None or type(f[n]) is str for f in head)}


def _likeness(name: str, known: Sequence[str]) -> float:
    """From 0 to 1: how much a name is like one of the known ones; a part of a name that is one counts most."""
    lowered = name.lower()
    parts = re.split(r"[^a-z0-9]+|(?<=[a-z])(?=[A-Z])", lowered)
    return max(1.0 if lowered == k else 0.9 if k in parts else SequenceMatcher(None, lowered, k).ratio() for k in known)
