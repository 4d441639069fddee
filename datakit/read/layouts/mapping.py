"""The user's mapping: which fields of other people's records are ours, and what to write for records of no layout.

A mapping names, for a field of ours, a field of the record (`turns`), a path into it (`meta.body`), two fields
(`instruction+input`: a new line between), or a template (`{instruction}\\n\\n{context}`). `--map NAME` is one of the
presets in `presets.toml`. A mapped record has the named fields only; the layouts' converters make the row.
"""

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from datakit.config import PRESET
from datakit.errors import ConfigError
from datakit.read.layouts.conversations import PLAIN, ROLES, ParseOptions, conversation
from datakit.read.layouts.preferences import preference
from datakit.read.layouts.table import NAMES, Convert, FileLayout, document, unread
from datakit.read.record import Fields, Number, RecordError, at, name_of, text_of, without

TARGETS: Final = {
    "text": "a document's text",
    "messages": "the list of turns",
    "role": "who speaks, in a turn",
    "content": "what is said, in a turn",
    "reasoning_content": "thoughts, in a turn or before the answer",
    "tool_calls": "calls, in a turn or as the answer",
    "weight": "the loss weight of a turn",
    "prompt": "the question",
    "answer": "the answer",
    "chosen": "the better answer",
    "rejected": "the worse answer",
    "history": "the turns before the question",
    "system": "the system prompt",
    "tools": "the tools",
    "label": "false for a bad answer",
    "id": "the record's id",
}
"""What can be mapped."""

ROW_NAMES: Final[dict[str, tuple[tuple[str, ...], str, Convert]]] = {
    "text": (("text",), "document", document),
    "messages": (("messages",), "conversation", conversation),
    "chosen": (("chosen", "rejected"), "preference", preference),
    "rejected": (("chosen", "rejected"), "preference", preference),
    "answer": (("prompt", "answer"), "conversation", conversation),
    "prompt": (("prompt", "answer"), "conversation", conversation),
}
"""What a mapping makes, by the first of these names that it has: the names that it then needs, the kind of row, and
the converter."""
_IN_TURNS: Final = ("role", "content", "reasoning_content", "tool_calls", "weight")
HOLE: Final = re.compile(r"\{([^{}]+)\}")
SAMPLE_CHARS: Final = 48
SAMPLES: Final = 24


# What the user says.


@cache
def presets() -> dict[str, dict[str, Any]]:
    """By name: the source, the mapping and the roles of each preset."""
    return tomllib.loads(files(__package__).joinpath("presets.toml").read_text(encoding="utf-8"))


def user_mapping(mapping: Mapping[str, str], roles: Mapping[str, str]) -> tuple[dict[str, str], ParseOptions]:
    """(the mapping, how turns are read) of what the user says, with the preset that it names; the user's counts more.

    Raises:
        ConfigError: an unknown name, role or preset, or a mapping that makes no row.
    """
    if name := mapping.get(PRESET):
        if name not in presets():
            raise ConfigError(f"map: there is no preset {name!r}; there are {', '.join(presets())}; or OURS=THEIRS")
        own = {ours: theirs for ours, theirs in mapping.items() if ours != PRESET}
        mapping, roles = presets()[name]["map"] | own, presets()[name].get("roles", {}) | dict(roles)
    if unknown := [name for name in mapping if name not in TARGETS]:
        known = "; ".join(f"{name} ({about})" for name, about in TARGETS.items())
        raise ConfigError(f"map: {unknown[0]!r} is no name that can be mapped; known are {known}")
    for speaker, role in roles.items():
        if role not in ROLES:
            raise ConfigError(f"roles: {speaker}={role}: a role is one of {', '.join(ROLES)}")
    makes = next((name for name in ROW_NAMES if name in mapping), "")
    record = [name for name in mapping if name != "id" and name not in _IN_TURNS]
    if record and not makes:
        raise ConfigError(
            f"map: {', '.join(record)} alone make no row: map text, or messages, or prompt and answer, or prompt, "
            "chosen and rejected"
        )
    missing = [name for name in (ROW_NAMES[makes][0] if makes else ()) if name not in mapping]
    if missing and not (missing == ["answer"] and "tool_calls" in mapping):
        raise ConfigError(f"map: {makes} needs {missing[0]}, too: add --map {missing[0]}=FIELD")
    turn_fields = tuple((n, mapping[n]) for n in _IN_TURNS if n in mapping) if makes in ("", "messages") else ()
    own_roles = {speaker.lower(): role for speaker, role in roles.items()} | dict(roles)
    return dict(mapping), ParseOptions({**PLAIN.roles, **own_roles}, turn_fields)


def mapped(mapping: Mapping[str, str], head: Sequence[Fields]) -> FileLayout | None:
    """The layout that a mapping describes; None if it names fields of turns and the id alone."""
    makes = next((name for name in ROW_NAMES if name in mapping), "")
    if not makes:
        return None
    names, kind, _ = ROW_NAMES[makes]
    in_turns = _IN_TURNS if "messages" in names else ()
    named = {ours: theirs for ours, theirs in mapping.items() if ours != "id" and ours not in in_turns}
    optional = {name: name for name in ("system", "tools", "label") if name not in named}
    found = {name: name for name in optional if any(name in fields for fields in head)}
    return FileLayout("mapped", kind, "", len(head), tuple(named.items()), tuple(found.items()))


def converter(layout: FileLayout) -> Convert:
    """What makes rows of a mapped record."""
    names = {ours for ours, _ in layout.required}
    return next(convert for name, (_, _, convert) in ROW_NAMES.items() if name in names)


# A record's values by our names.


class Picked:
    """The values of a record by our names, and which of its fields they were taken from."""

    __slots__ = ("fields", "found", "left", "sources")

    def __init__(self, fields: Fields, layout: FileLayout) -> None:
        self.fields, self.left = fields, Fields()
        self.found = found = Fields()
        self.sources: dict[str, tuple[str, ...]] = {}
        """Our name -> the fields, where these are not the one field that the layout names."""
        for ours, source in layout.required:
            if source in fields:
                found[ours] = fields[source]
            elif not self._take(ours, source):
                there = ", ".join(fields) or "none"
                raise RecordError("missing_field", f"{source} should be there; the fields are {there}")
        for ours, source in layout.optional:
            if source in fields:
                found[ours] = fields[source]
            else:
                self._take(ours, source)
        if layout.unless and (name := unread(fields, layout.unless)):
            raise RecordError(
                "unread_field", f"{name} holds something that the layout {layout.layout} does not read; map it"
            )

    def _take(self, ours: str, source: str) -> bool:
        """Take a value that is more than a field; False where there is none."""
        fields = self.fields
        if "{" in source:
            self.found[ours], self.sources[ours] = _filled(source, fields)
        elif "+" in source:
            first, _, second = source.partition("+")
            if first not in fields:
                return False
            self.found[ours], self.sources[ours] = fields[first], (first, second) if second in fields else (first,)
            if more := fields.get(second):
                texts = text_of(fields[first] or "", first), text_of(more, second)
                self.found[ours] = "\n".join(texts) if texts[0] else texts[1]
        elif "." in source and (value := at(fields, source)) is not None:
            name, _, inner = source.partition(".")
            self.found[ours], self.sources[ours] = value, (name,)
            self.left[name] = without(self.left.get(name, fields[name]), inner)
        else:
            return False
        return True

    def used(self, names: Sequence[str], fields_of: Mapping[str, str]) -> tuple[str, ...]:
        """The record's fields behind some of our names; `fields_of` are those that the layout names."""
        used: list[str] = []
        for ours in names:
            if ours in self.sources:
                used += self.sources[ours]
            elif ours in self.found:
                used.append(fields_of[ours])
        return tuple(used)

    def rest(self, left: Fields, fields_of: Mapping[str, str]) -> Fields:
        """What is left inside of fields that were used, by the record's names; `left` has our names."""
        own = {fields_of[ours]: value for ours, value in left.items() if "{" not in fields_of[ours]}
        return {name: value for name, value in self.left.items() if value} | own


@cache
def _holes(template: str) -> list[str]:
    """Text and fields of a template in turn."""
    return HOLE.split(template.replace("\\n", "\n"))


def _filled(template: str, fields: Fields) -> tuple[str, tuple[str, ...]]:
    """A template with the fields of a record, and these fields. A field that is null or missing is empty; white space
    at both ends goes. An object that the template looks into stays whole beside the row.

    Raises:
        RecordError: none of the fields is there, or one is not a text or a number.
    """
    parts, used, found = list[str](), list[str](), False
    for i, part in enumerate(_holes(template)):
        if i % 2 == 0:
            parts.append(part)
            continue
        value, found = at(fields, part), found or part.split(".")[0] in fields
        used += [part] * (part in fields)
        if value is not None:
            plain = isinstance(value, str | int | float | Number) and not isinstance(value, bool)
            parts.append(str(value) if plain else text_of(value, part))
    if not found:
        raise RecordError("missing_field", f"no field of {template!r} is there; the fields are {', '.join(fields)}")
    return "".join(parts).strip(), tuple(used)


# Records that fit no layout.


def flat(fields: Fields, depth: int = 3) -> Fields:
    """A record with the fields inside of its objects and of the first objects of its lists, under their paths."""
    found: Fields = {}
    for name, value in fields.items():
        inner = value[0] if type(value) is list and value and type(value[0]) is dict else value
        found[name] = value
        if type(inner) is dict and depth:
            between = ".0." if inner is not value else "."
            found |= {f"{name}{between}{key}": v for key, v in flat(inner, depth - 1).items()}
    return found


def fields_with_samples(head: Sequence[Fields]) -> str:
    """The fields of a file's first records, with those inside of objects, one a line, each with a value."""
    records = [flat(fields) for fields in head]
    names = list(dict.fromkeys(name for fields in records for name in fields))
    lines = []
    for name in names[:SAMPLES]:
        value = next((f[name] for f in records if f.get(name) not in (None, "", [], {})), None)
        text = value if type(value) is str else name_of(value) if value is None else repr(value)
        short = " ".join(str(text)[: 4 * SAMPLE_CHARS].split())
        lines.append(f"  {name}: {short[:SAMPLE_CHARS]}{'...' if len(short) > SAMPLE_CHARS else ''}")
    return "\n".join(lines + ([f"  and {len(names) - SAMPLES} more"] if len(names) > SAMPLES else []))


def advice(head: Sequence[Fields], kind: str) -> str:
    """What was found in records of no layout, and the mapping to fill in for a kind of row ("auto": for each kind).

    Which field is which is the user's to say: nothing here is a guess.
    """
    lists = any(type(v) is list and v and type(v[0]) is dict for fields in head for v in flat(fields).values())
    turns = ("messages", "role", "content") if lists else ("prompt", "answer")
    needed = {"document": ("text",), "conversation": turns, "preference": ("prompt", "chosen", "rejected")}
    wanted = {kind: needed[kind]} if kind in needed else needed
    said = [
        f"Its fields, each with a value:\n{fields_with_samples(head)}",
        "Say which field is which, in place of FIELD:",
    ]
    if len(head) == 1:
        said.insert(
            1, "It is one record. If its rows stand in one of its lists, write one row a line: jq -c '.FIELD[]'"
        )
    for made, names in wanted.items():
        flags = " ".join(f"--map {shlex.quote(f'{name}=FIELD')}" for name in names)
        table = ", ".join(f'{name} = "FIELD"' for name in names)
        about = "" if kind in needed else f"  ({made} rows)"
        said.append(f"  datakit run --dataset NAME {flags}{about}\n  or in its recipe: [ingest] map = {{ {table} }}")
    if "conversation" in wanted:
        said.append(
            "A conversation is one record; speakers of other names than user and assistant need --roles NAME=user"
        )
    known = f"Known layouts are {', '.join(NAMES)}; sets that --map NAME knows are {', '.join(presets())}"
    return "\n".join([*said, f"{known}. See docs/inputs.md"])
