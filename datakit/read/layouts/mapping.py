"""The user's mapping: which fields of other people's records are ours, and what to write for records of no layout.

A mapping names a source for each field of ours (see `record.Picked`). `--map NAME` is one of the presets in
`presets.toml`. A mapped record has the named fields only; the layouts' converters make the row.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from datakit.config import PRESET
from datakit.errors import ConfigError
from datakit.read.layouts.conversations import PLAIN, ROLES, ParseOptions
from datakit.read.layouts.table import MAPPED, NAMES, FileLayout
from datakit.read.record import Fields, name_of

_IN_TURNS: Final = ("role", "content", "reasoning_content", "tool_calls", "weight")
_NEEDED: Final = (
    ("document", ("text",)),
    ("conversation", ("messages",)),
    ("preference", ("chosen", "rejected")),
    ("conversation", ("prompt", "answer")),
)
"""The kind of row, and the names that it needs: a mapping makes the first kind of which it has a name."""
TARGETS: Final = (
    *(name for _, names in _NEEDED for name in names),
    *_IN_TURNS,
    *("history", "system", "tools", "label", "id"),
)
"""What can be mapped."""
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
        raise ConfigError(f"map: {unknown[0]!r} is no name that can be mapped; known are {', '.join(TARGETS)}")
    for speaker, role in roles.items():
        if role not in ROLES:
            raise ConfigError(f"roles: {speaker}={role}: a role is one of {', '.join(ROLES)}")
    _, needed = _made(mapping)
    record = [name for name in mapping if name != "id" and name not in _IN_TURNS]
    if record and not needed:
        raise ConfigError(
            f"map: {', '.join(record)} alone make no row: map text, or messages, or prompt and answer, or prompt, "
            "chosen and rejected"
        )
    missing = [name for name in needed if name not in mapping]
    if missing and not (missing == ["answer"] and "tool_calls" in mapping):
        raise ConfigError(f"map: {', '.join(record)} needs {missing[0]}, too: add --map {missing[0]}=FIELD")
    in_turns = _IN_TURNS if not needed or "messages" in needed else ()
    own_roles = {speaker.lower(): role for speaker, role in roles.items()} | dict(roles)
    turn_fields = {name: mapping[name] for name in in_turns if name in mapping}
    return dict(mapping), ParseOptions({**PLAIN.roles, **own_roles}, turn_fields)


def _made(mapping: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The kind of row that a mapping makes, and the names that it needs; ("", ()) where it makes none."""
    return next((need for need in _NEEDED if any(name in mapping for name in need[1])), ("", ()))


def mapped(mapping: Mapping[str, str], head: Sequence[Fields]) -> FileLayout | None:
    """The layout that a mapping describes; None if it names fields of turns and the id alone."""
    kind, needed = _made(mapping)
    if not kind:
        return None
    in_turns = _IN_TURNS if "messages" in needed else ()
    named = {ours: theirs for ours, theirs in mapping.items() if ours != "id" and ours not in in_turns}
    there = [name for name in ("system", "tools", "label") if any(name in fields for fields in head)]
    return FileLayout(MAPPED, kind, named, {name: name for name in there if name not in named})


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


def advice(head: Sequence[Fields], kind: str) -> str:
    """What was found in records of no layout, and the mapping to fill in for a kind of row ("auto": for each kind).

    Which field is which is the user's to say: nothing here is a guess.
    """
    values: Fields = {}
    for fields in head:
        values |= {k: v for k, v in flat(fields).items() if values.get(k) in (None, "", [], {})}
    said = ["Its fields, each with a value:"]
    for name, value in list(values.items())[:SAMPLES]:
        text = value if type(value) is str else name_of(value) if value is None else repr(value)
        short = " ".join(text[: 4 * SAMPLE_CHARS].split())
        said.append(f"  {name}: {short[:SAMPLE_CHARS]}{'...' if len(short) > SAMPLE_CHARS else ''}")
    said += [f"  and {len(values) - SAMPLES} more"] * (len(values) > SAMPLES)
    if len(head) == 1:
        said.append("It is one record. If its rows stand in one of its lists, write one row a line: jq -c '.FIELD[]'")
    lists = any(type(v) is list and v and type(v[0]) is dict for v in values.values())
    turns = ("messages", "role", "content") if lists else ("prompt", "answer")
    needed = {"document": ("text",), "conversation": turns, "preference": ("prompt", "chosen", "rejected")}
    said.append("Say which field is which, in place of FIELD:")
    for made, names in needed.items() if kind not in needed else [(kind, needed[kind])]:
        flags = " ".join(f"--map {name}=FIELD" for name in names)
        table = ", ".join(f'{name} = "FIELD"' for name in names)
        about = "" if kind in needed else f"  ({made} rows)"
        said.append(f"  datakit run --dataset NAME {flags}{about}\n  or in its recipe: [ingest] map = {{ {table} }}")
    said.append("Speakers of other names than user and assistant need --roles NAME=user")
    known = f"Known layouts are {', '.join(NAMES)}; sets that --map NAME knows are {', '.join(presets())}"
    return "\n".join([*said, f"{known}. See docs/inputs.md"])
