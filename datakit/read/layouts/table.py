"""The layouts of published records, a line each, and which one a file has.

A line says which of the file's fields are ours. A source is a field, `a|b` (the first of these that the file has; where
it is optional, that the record has), `a+b` (both texts, a new line between), or a path into a field (`input.messages`).
What a layout makes of these fields follows from our names: `text` is a document, `messages`, or `prompt` and `answer`,
a conversation, `chosen` and `rejected` a pair, `ids` token ids. A record that fits no line is refused with `advice`.
`--map` says the same for records of other names.
"""

import shlex
import tomllib
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from datakit.config import PRESET
from datakit.errors import ConfigError
from datakit.read.layouts.conversations import (
    JUDGED,
    PLAIN,
    ROLES,
    ParseOptions,
    conversation,
    is_transcript,
    preference,
    shared,
    transcripts,
)
from datakit.read.record import Fields, Picked, at, listed, name_of, text_of
from datakit.read.streams import DOCUMENT, Layout, RecordError

Convert = Callable[[Picked, ParseOptions], Any]
"""From a record's values by our names to a row's content."""


# What the fields of layouts hold.


def _is_text(value: Any) -> bool:
    return type(value) is str


def _are_turns(speaker: str, value: Any) -> bool:
    value = listed(value)
    return type(value) is list and bool(value) and type(value[0]) is dict and speaker in value[0]


_BY_ROLE, _BY_FROM = partial(_are_turns, "role"), partial(_are_turns, "from")


def _is_said(value: Any) -> bool:
    """Whether a value may be a question or an answer: a text, a turn, or a list of turns."""
    return type(value) is str or value == [] or any(holds(value) or holds([value]) for holds in (_BY_ROLE, _BY_FROM))


def _is_ids(value: Any) -> bool:
    return type(value) is list and len(value) > 0 and type(value[0]) is int and type(value[-1]) is int


# Documents and token ids.

Ids = list[int]
Spans = list[tuple[int, int]]
IGNORED: Final = -100
"""The label of tokens that are not learned, PyTorch's default `ignore_index`."""


class Tokens(NamedTuple):
    """Token ids and the spans to learn (None: all of them); for a pair also those of the rejected answer."""

    input_ids: Ids
    label_spans: Spans | None
    rejected_ids: Ids | None = None
    rejected_label_spans: Spans | None = None


def document(found: Picked, _: ParseOptions) -> str:
    """`text`, a string."""
    return text_of(found.take("text"), "text")


def tokens(found: Picked, _: ParseOptions) -> Tokens:
    """`ids`, with a `mask` of 0 and 1 for each id, or with `labels`: -100 for ids that are not learned."""
    ids, attended = _ids(found.take("ids"), "ids"), found.get("attended")
    if type(attended) is list and 0 in attended:
        raise RecordError("padded", "attended holds 0 at tokens that are padding: give the ids without them")
    name = next((n for n in ("mask", "labels") if found.get(n) is not None), "")
    return Tokens(ids, _spans(found.take(name), name, ids) if name else None)


def token_pairs(found: Picked, _: ParseOptions) -> Tokens:
    """`chosen_ids` and `rejected_ids`, which follow `prompt_ids`; without it their common beginning is the prompt."""
    chosen, rejected = (_ids(found.take(n), n) for n in ("chosen_ids", "rejected_ids"))
    if (before := found.take("prompt_ids")) is not None:
        prompt = _ids(before, "prompt_ids")
        chosen, rejected, begin = prompt + chosen, prompt + rejected, len(prompt)
    else:
        begin = shared(chosen, rejected)
    return Tokens(chosen, [(begin, len(chosen))], rejected, [(begin, len(rejected))])


def _ids(value: Any, where: str) -> Ids:
    if type(value) is not list or not value:
        raise RecordError("bad_ids", f"{where} should be a list of token ids, found {name_of(value)}")
    try:
        array("i", value)  # checks in C that all are integers of at most 31 bits
    except (TypeError, OverflowError) as e:
        raise RecordError("bad_ids", f"{where} should hold token ids below 2**31: {e}") from None
    if min(value) < 0:
        raise RecordError("bad_ids", f"{where} should hold token ids, found {min(value)}")
    return value


def _spans(mask: Any, where: str, ids: Ids) -> Spans:
    """The runs of ids to learn, as half-open ranges."""
    if type(mask) is not list or len(mask) != len(ids):
        found = f"{len(mask)} of them" if type(mask) is list else name_of(mask)
        raise RecordError("bad_mask", f"{where} should be a list of {len(ids)} values, one per token id, found {found}")
    if where == "labels":
        if any(label not in (IGNORED, token) for label, token in zip(mask, ids, strict=True)):
            raise RecordError("bad_mask", f"labels should repeat the token ids or be {IGNORED}, aligned with them")
        mask = [label != IGNORED for label in mask]
    elif any(m not in (0, 1) for m in mask):
        raise RecordError("bad_mask", f"{where} should hold 0 and 1 only")
    edges = [i for i, (a, b) in enumerate(pairwise([0, *mask, 0])) if bool(a) != bool(b)]
    return list(zip(edges[::2], edges[1::2], strict=True))


# The table. The order matters, because a record may fit several lines: an alpaca record that also has the rendered
# `text` is a conversation, and a `conversations` list with `chosen` and `rejected` is a pair.

TRANSCRIPTS: Final = "transcripts"
MAPPED: Final = "mapped"
"""The layout of files that the user's mapping describes."""
LABELS: Final = "label|kto_tag|is_correct|correct|is_safe"
AROUND: Final = {"system": "system|system_prompt", "tools": "tools|functions", "label": LABELS}
_ASKED: Final = AROUND | {"history": "history", "reasoning_content": "reasoning_content"}
_PROMPT: Final = "prompt|messages|conversations|question|instruction+input|query|input.messages|input"
_MASKS: Final = {"mask": "loss_mask|assistant_masks|completion_mask", "labels": "labels", "attended": "attention_mask"}
_PAIRS: Final = (
    ("chosen", "rejected"),
    ("preferred", "other"),
    ("response_chosen", "response_rejected"),
    ("chosen_messages", "rejected_messages"),
    ("preferred_output", "non_preferred_output"),
    ("messages", "rejected_response"),
)
"""TRL; mini-llm; MedicalGPT; LLaMA-Factory; OpenAI; ms-swift."""


def _pairs(name: str, holds: Callable[[Any], bool], optional: Mapping[str, str]) -> list[Layout]:
    return [Layout(name, "preference", holds, {"chosen": a, "rejected": b}, optional) for a, b in _PAIRS]


def _talk(name: str, holds: Callable[[Any], bool], **required: str) -> Layout:
    return Layout(name, "conversation", holds, required, AROUND if "messages" in required else _ASKED)


LAYOUTS: Final = (
    Layout("token_pairs", "tokens_preference", _is_ids,
           {"chosen_ids": "chosen_ids", "rejected_ids": "rejected_ids"}, {"prompt_ids": "prompt_ids"}),
    Layout("tokens", "tokens", _is_ids, {"ids": "input_ids"}, _MASKS),
    Layout("tokens", "tokens", _is_ids, {"ids": "ids"}, _MASKS, ("text",)),
    *_pairs(TRANSCRIPTS, is_transcript, {}),
    *_pairs("pairs", _is_said, {"prompt": _PROMPT, "tools": "tools|input.tools"} | _ASKED),
    _talk("messages", _BY_ROLE, messages="messages"),
    _talk("sharegpt", _BY_FROM, messages="messages|conversations|conversation"),
    _talk("minimind", _BY_ROLE, messages="conversations|conversation"),
    _talk("alpaca", _is_said, prompt="instruction+input", answer="output|response"),
    Layout("question_answer", "conversation", _is_said,
           {"prompt": "question|query|problem", "answer": "response|solution|answer"},
           _ASKED | {"label": LABELS.removeprefix("label|")}),  # its `label` is the class of a question: yes/no sets
    _talk("prompt_completion", _is_said, prompt="prompt|input", answer="completion|response|output|answer"),
    Layout(DOCUMENT, "document", _is_text, {"text": "text"}, {}, ("role",)),
    Layout(DOCUMENT, "document", _is_text, {"text": "content|markdown|raw_content|body|page_content"}, {},
           ("role", "from", "prompt", "question", "instruction", "input")),
)  # fmt: skip
NAMES: Final = tuple(dict.fromkeys(layout.name for layout in LAYOUTS))
_CONTENTS: Final[dict[tuple[str, ...], tuple[str, Convert]]] = {
    ("text",): ("document", document),
    ("messages",): ("conversation", conversation),
    ("chosen", "rejected"): ("preference", preference),
    ("prompt", "answer"): ("conversation", conversation),
    ("ids",): ("tokens", tokens),
    ("chosen_ids", "rejected_ids"): ("tokens_preference", token_pairs),
}
"""The names that content is made of -> the kind of its row, and what makes it. The first counts of which a layout or a
mapping has a name."""


def converter(layout: Layout) -> Convert:
    """What makes the contents of rows of a file's records, by the names that its layout has."""
    if layout.name == TRANSCRIPTS:
        return transcripts
    _, names = _made(layout.required)
    return _CONTENTS[names][1] if names else _refuse


def _made(names: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """The kind of row that some of our names make, and those that it needs; ("", ()) where they make none."""
    return next(((kind, need) for need, (kind, _) in _CONTENTS.items() if any(n in names for n in need)), ("", ()))


def _refuse(found: Picked, _: ParseOptions) -> None:
    """No row of any record of a file of no layout."""
    raise RecordError("no_layout", "none of the file's first records could be read: its layout is unknown")


# Which layout a file has.


def choose(head: Sequence[Fields], kind: str = "auto", forced: str = "auto") -> Layout | None:
    """The layout of most of a file's first records (on a tie the earlier in the table); None if no record fits any.

    `forced` names a layout; then the records only decide which of its fields they have. Names of fields count in any
    letters. With `kind` preference, conversations whose answer is judged make pairs of one side. A pair and token ids
    are never anything else, whatever `kind` is.
    """
    lines = [line for line in LAYOUTS if forced in ("auto", line.name)]
    plain = [{name.strip().lower(): value for name, value in fields.items()} for fields in head]
    fitting = [_line_of(fields, lines, kind) for fields in plain]
    if not any(fitting) and forced == "auto":
        return None
    return _in_file(max(lines, key=fitting.count), head, plain, kind)


def _line_of(fields: Fields, lines: Sequence[Layout], kind: str) -> Layout | None:
    fitting = [line for line in lines if _fits(line, fields, kind)]
    if kind == "document" or (fitting and fitting[0].kind == "conversation"):
        fitting.sort(key=lambda line: line.kind != kind)
    return fitting[0] if fitting else None


def _fits(line: Layout, fields: Fields, kind: str) -> bool:
    if line.kind != kind and any(fields.get(name) for name in line.unless):
        return False
    found = [_first(source, fields)[1] for source in line.required.values()]
    return all(value is not None and line.holds(value) for value in found)


def _first(source: str, fields: Fields) -> tuple[str, Any]:
    """(the first of the sources `a|b` that a record has, its value); the first of all and None if it has none."""
    named = source.split("|")
    keys = ((name, name.split("+")[0]) for name in named)
    values = ((name, at(fields, key) if "." in key else fields.get(key)) for name, key in keys)
    return next((found for found in values if found[1] is not None), (named[0], None))


def _in_file(line: Layout, head: Sequence[Fields], plain: Sequence[Fields], kind: str) -> Layout:
    """A line of the table with the names of fields that a file has."""
    whole: Fields = {}
    for fields in plain:
        whole |= {name: value for name, value in fields.items() if whole.get(name) is None}
    given = {name.strip().lower(): name for fields in head for name in fields}

    def named(source: str) -> str:
        parts = (path.split(".") for path in source.split("+"))
        return "+".join(".".join(given.get(key, key) for key in path) for path in parts)

    required = {ours: named(_first(source, whole)[0]) for ours, source in line.required.items()}
    found = {ours: _first(source, whole) for ours, source in line.optional.items()}
    optional = {ours: named(source) for ours, (source, value) in found.items() if value is not None}
    verdicts = LABELS if kind == "preference" and "label" in line.optional else line.optional.get("label", "")
    judged = next((n for n in verdicts.split("|") if any(str(f.get(n)).lower() in JUDGED for f in plain)), "")
    if judged:
        optional["label"] = given[judged]
    read_once = {ours: source for ours, source in optional.items() if source not in required.values()}
    pairs = kind == "preference" and line.kind == "conversation" and judged
    taken = {*required.values(), *read_once.values()}
    others = ((named(one), ours) for ours, source in line.optional.items() for one in source.split("|"))
    later = {source: ours for source, ours in others if source not in taken}
    return Layout(line.name, kind if pairs else line.kind, line.holds, required, read_once, later=later)


# The user's mapping: a source for each field of ours (see `record.Picked`). `--map NAME` is one of the presets in
# `presets.toml`. A mapped record has the named fields only; the layouts' converters make the row.

_IN_TURNS: Final = ("role", "content", "reasoning_content", "tool_calls", "weight")
TARGETS: Final = (
    *(name for names in list(_CONTENTS)[:4] for name in names),
    *_IN_TURNS,
    *("history", "system", "tools", "label", "id"),
)
"""What can be mapped."""
SAMPLE_CHARS: Final = 48
SAMPLES: Final = 24


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


def mapped(mapping: Mapping[str, str], head: Sequence[Fields]) -> Layout | None:
    """The layout that a mapping describes; None if it names fields of turns and the id alone."""
    kind, needed = _made(mapping)
    if not kind:
        return None
    in_turns = _IN_TURNS if "messages" in needed else ()
    named = {ours: theirs for ours, theirs in mapping.items() if ours != "id" and ours not in in_turns}
    around = [name for name in ("system", "tools", "label") if name not in named]
    optional = {name: name for name in around if any(name in fields for fields in head)}
    later = {name: name for name in around if name not in optional}
    return Layout(MAPPED, kind, bool, named, optional, later=later)


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


def to_fill_in(
    option: str, names: Sequence[str], blank: str, about: str = "", mapping: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Lines for a user: flags of an option that give each name a value in place of `blank`, and those of a recipe.

    The flags repeat the `mapping` that the user gave.
    """
    given = [("map", theirs if ours == PRESET else f"{ours}={theirs}") for ours, theirs in mapping.items()]
    flags = " ".join(f"--{o} {shlex.quote(v)}" for o, v in [*given, *((option, f"{name}={blank}") for name in names)])
    keys = (name if name.isidentifier() and name.isascii() else f'"{name}"' for name in names)
    table = ", ".join(f'{key} = "{blank}"' for key in keys)
    return f"  datakit run --dataset NAME {flags}{about}\n  or in its recipe: [ingest] {option} = {{ {table} }}"


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
    if any(type(v) is bytes for v in values.values()):
        said.append("Bytes (b'...') are no text: cast such a column to string and write the file again")
    if len(head) == 1:
        said.append("It is one record. If its rows stand in one of its lists, write one row a line: jq -c '.FIELD[]'")
    lists = any(type(v) is list and v and type(v[0]) is dict for v in values.values())
    turns = ("messages", "role", "content") if lists else ("prompt", "answer")
    needed = {"document": ("text",), "conversation": turns, "preference": ("prompt", "chosen", "rejected")}
    said.append("Say which field is which, in place of FIELD:")
    for made, names in needed.items() if kind not in needed else [(kind, needed[kind])]:
        said.append(to_fill_in("map", names, "FIELD", "" if kind in needed else f"  ({made} rows)"))
    if kind == "preference" and any(type(v) is list for v in values.values()):
        said.append(
            "FIELD may lead into a list, as answers.0.text. No mapping reads ranks or scores: where these say which "
            "answer is better, write one record for each pair of chosen and rejected first"
        )
    said.append("Speakers of other names than user and assistant need --roles NAME=user, in a recipe [ingest] roles")
    known = f"Known layouts are {', '.join(NAMES)}; sets that --map NAME knows are {', '.join(presets())}"
    return "\n".join([*said, f"{known}. See docs/inputs.md"])
