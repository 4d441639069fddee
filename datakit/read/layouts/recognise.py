"""Recognise the layout of a file from the fields of its first records.

The order of `LAYOUTS` matters, because a record may fit several: an alpaca record that also has the rendered `text` is
a conversation, and a `conversations` list with `chosen` and `rejected` is a pair.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from datakit.read.layouts import tokenised, turns
from datakit.read.layouts.record import Fields

TEXT_FIELDS: Final = ("text", "content", "markdown", "raw_content", "body", "document")
"""Fields that may hold a document's text, in this order, unless `text_field` names another."""

_ASKED = ("question", "query", "problem")


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to write records: its name, the kind of row it makes, how to recognise it and how to convert it."""

    name: str
    kind: str
    about: str
    """Its fields, for error messages."""
    fields: frozenset[str]
    """A record of this layout has one of these fields. `fits` is asked only then."""
    fits: Callable[[Fields], bool]
    convert: Callable[[Fields], Any] | None
    """None for documents: their text is the field `FileLayout.text_field`."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The layout of one file; `text_field` is the field of a document's text.

    `layout` is "" if no record could be read, or if the file's rows are of another kind than the dataset's.
    """

    layout: str
    kind: str
    text_field: str = ""
    records: int = 0
    """How many of the first records were looked at."""
    other_kind: str = ""
    """The file's kind, if its records are quarantined because the dataset is of another kind."""


def _styled(fields: Fields, names: tuple[str, ...], key: str) -> bool:
    value = next((fields[n] for n in names if fields.get(n)), None)
    if type(value) is str:
        return value.lstrip().startswith("[{") and f'"{key}"' in value
    return type(value) is list and type(value[0]) is dict and key in value[0]


def _is_pair(fields: Fields) -> bool:
    return turns.pair_of(fields) is not None


def _is_transcript_pair(fields: Fields) -> bool:
    names = turns.pair_of(fields)
    return names is not None and all(turns.is_transcript(fields[n]) for n in names)


def _is_tokens(fields: Fields) -> bool:
    return tokenised.is_ids(fields.get("input_ids")) or ("text" not in fields and tokenised.is_ids(fields.get("ids")))


def _is_alpaca(fields: Fields) -> bool:
    return type(fields.get("instruction")) is str and bool(turns.first_of(turns.OUTPUTS, fields))


def _is_prompt(questions: tuple[str, ...]) -> Callable[[Fields], bool]:
    def fits(fields: Fields) -> bool:
        names = turns.first_of(questions, fields), turns.first_of(turns.ANSWERS, fields)
        return all(names) and all(type(fields[n]) in (str, list, dict) for n in names)

    return fits


def _is_document(fields: Fields) -> bool:
    return text_field_of(fields) != ""


def text_field_of(fields: Fields) -> str:
    """The first of `TEXT_FIELDS` that holds a string; "" without one."""
    return next((n for n in TEXT_FIELDS if type(fields.get(n)) is str), "")


_PAIRS = frozenset(chosen for chosen, _ in turns.PAIRS)

LAYOUTS: Final = (
    Layout("token_pairs", "tokens_preference", "chosen_ids, rejected_ids, prompt_ids", frozenset({"chosen_ids"}),
           lambda f: all(tokenised.is_ids(f.get(n)) for n in ("chosen_ids", "rejected_ids")), tokenised.from_id_pair),
    Layout("tokens", "tokens", "input_ids or ids, with a loss mask or labels", frozenset(tokenised.IDS),
           _is_tokens, tokenised.from_ids),
    Layout("transcripts", "preference", 'chosen and rejected: "Human: ... Assistant: ..."', _PAIRS,
           _is_transcript_pair, turns.from_transcripts),
    Layout("pairs", "preference", "a prompt or turns, with chosen and rejected (or preferred and other)", _PAIRS,
           _is_pair, turns.from_pair),
    Layout("messages", "conversation", "messages: a list of role, content", frozenset({"messages"}),
           lambda f: _styled(f, ("messages",), "role"), turns.from_turns),
    Layout("sharegpt", "conversation", "conversations: a list of from, value", frozenset(turns.TURN_FIELDS),
           lambda f: _styled(f, turns.TURN_FIELDS, "from"), turns.from_turns),
    Layout("minimind", "conversation", "conversations: a list of role, content", frozenset(turns.TURN_FIELDS),
           lambda f: _styled(f, turns.TURN_FIELDS, "role"), turns.from_turns),
    Layout("alpaca", "conversation", "instruction, input, output or response", frozenset({"instruction"}),
           _is_alpaca, turns.from_alpaca),
    Layout("question_answer", "conversation", "question, answer or response", frozenset(_ASKED),
           _is_prompt(_ASKED), turns.from_prompt),
    Layout("prompt_completion", "conversation", "prompt, completion or response", frozenset(turns.QUESTIONS),
           _is_prompt(turns.QUESTIONS), turns.from_prompt),
    Layout("document", "document", f"one of {', '.join(TEXT_FIELDS)}", frozenset(TEXT_FIELDS), _is_document, None),
)  # fmt: skip

BY_NAME: Final = {layout.name: layout for layout in LAYOUTS}


def layout_of(fields: Fields, kind: str = "auto", text_field: str = "") -> Layout | None:
    """The first layout that fits a record; with a row `kind` the first of that kind. A pair is never a conversation.

    With `text_field`, every record with a string in that field is a document.
    """
    if text_field and kind in ("auto", "document"):
        return BY_NAME["document"] if type(fields.get(text_field)) is str else None
    fitting = [layout for layout in LAYOUTS if not layout.fields.isdisjoint(fields) and layout.fits(fields)]
    if not fitting or kind == "auto" or fitting[0].kind.startswith(("tokens", "preference")):
        first = fitting[0] if fitting else None
        return first if kind != "document" or first is None else next((x for x in fitting if x.kind == kind), first)
    return next((layout for layout in fitting if layout.kind == kind), fitting[0])


def choose(head: Sequence[Fields], kind: str = "auto", forced: str = "auto", text_field: str = "") -> FileLayout | None:
    """The layout of most of a file's first records (on a tie the earlier in `LAYOUTS`); None if no record fits any.

    `forced` names a layout; then the records only decide which field holds a document's text.
    """
    if forced != "auto":
        found = BY_NAME[forced]
    else:
        votes = Counter(layout.name for f in head if (layout := layout_of(f, kind, text_field)) is not None)
        if not votes:
            return None
        found = max((x for x in LAYOUTS if x.name in votes), key=lambda x: votes[x.name])
    field = text_field
    if found.name == "document" and not field:
        fields = Counter(name for f in head if (name := text_field_of(f)))
        field = max(fields, key=lambda n: (fields[n], -TEXT_FIELDS.index(n))) if fields else TEXT_FIELDS[0]
    return FileLayout(found.name, found.kind, field, len(head))
