"""Recognise the layout of a file from the fields of its first records.

The order of `LAYOUTS` matters, because a record may fit several: an alpaca record that also has the rendered `text` is
a conversation, and a `conversations` list with `chosen` and `rejected` is a pair.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from datakit.read.layouts import conversations, preferences, tokenised
from datakit.read.layouts.mapping import from_mapping
from datakit.read.layouts.record import Fields
from datakit.read.layouts.turns import MEDIA, ROLE_KEYS, SYSTEMS, Reading, first_of, judged_field_of, parsed

TEXT_FIELDS: Final = (
    "text", "content", "markdown", "raw_content", "body", "document", "contents", "page_content", "raw_text",
    "article", "main_text", "full_text", "plain_text", "passage", "story", "post", "abstract", "code",
)  # fmt: skip
"""Fields that may hold a document's text, in this order, unless `text_field` names another."""

_SEPARATORS = re.compile(r"[\s-]+")


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to write records: its name, the kind of row it makes, how to recognise it and how to convert it."""

    name: str
    kind: str
    about: str
    """Its fields, for error messages."""
    fields: frozenset[str] | None
    """A record of this layout has one of these fields, and `fits` is asked only then. None: it may have any."""
    fits: Callable[[Fields], bool]
    convert: Callable[[Fields, Reading], Any] | None
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
    folded: bool = False
    """Its fields are those of the layout in other letters: `Question`, `Complex CoT`."""
    html: bool = False
    """The text is made of the HTML in `text_field`."""
    beside: tuple[str, ...] = ()
    """Fields of its first records that the layout does not read. They are kept beside the row."""


def folded(name: str) -> str:
    """A field's name in the letters of layouts: `Complex CoT` is `complex_cot`."""
    return _SEPARATORS.sub("_", name.strip().lower())


def _styled(names: tuple[str, ...], key: str) -> Callable[[Fields], bool]:
    def fits(fields: Fields) -> bool:
        value = next((fields[n] for n in names if fields.get(n)), None)
        return conversations.styled(value, key)

    return fits


def _is_transcript_pair(fields: Fields) -> bool:
    names = preferences.pair_of(fields)
    return names is not None and all(conversations.is_transcript(fields[n]) for n in names)


def _is_tokens(fields: Fields) -> bool:
    return tokenised.is_ids(fields.get("input_ids")) or ("text" not in fields and tokenised.is_ids(fields.get("ids")))


def _is_alpaca(fields: Fields) -> bool:
    answered = conversations.answer_field_of(fields, names=conversations.OUTPUTS[:-1])
    return type(fields.get("instruction")) is str and answered != ""


def _is_prompt(questions: tuple[str, ...]) -> Callable[[Fields], bool]:
    def fits(fields: Fields) -> bool:
        asked = first_of(questions, fields)
        key = conversations.answer_field_of(fields, asked)
        if not (asked and key) or (key == "content" and "text" in fields):
            return False
        if asked in conversations.ASKED and conversations.unread_context(fields):
            return False
        if type(fields[key]) is int:  # the place of the right option
            return fields[key] in range(len(conversations.options_of(fields)[0]))
        return _is_said(fields[asked]) and _is_said(fields[key])

    return fits


def _is_said(value: object) -> bool:
    """Whether a value may be a question or an answer: a text, a turn, or a list of turns."""
    turn = value[0] if type(value) is list and value else value
    return type(value) is str or value == [] or (type(turn) is dict and any(k in turn for k in ROLE_KEYS))


def _is_document(fields: Fields) -> bool:
    """Whether a record has a text, and no question about it."""
    name = text_field_of(fields)
    if name not in ("", "text") and not fields[name]:
        return False
    asks = first_of((*conversations.ASKED, "questions"), fields) and first_of(("answer", "answers"), fields)
    return name == "text" or (name != "" and not asks)


def text_field_of(fields: Fields) -> str:
    """The first of `TEXT_FIELDS` that holds a string; "" without one."""
    found = [n for n in TEXT_FIELDS if type(fields.get(n)) is str]
    return next((n for n in found if fields[n]), next(iter(found), ""))


_PAIRS = frozenset(chosen for chosen, _ in preferences.PAIRS)
_LISTS = conversations.TURN_FIELDS
_CONVERSATIONS = ("conversations", "conversation")
_VERDICTS = frozenset(verdict for _, verdict, _ in preferences.VERDICTS)

_SIDES = frozenset(name for pair in preferences.PAIRS for name in pair)
_NESTED: Final = frozenset(
    (
        *(*_LISTS, "interactions", "answers", *conversations.CONTEXTS, *conversations.OPTIONS),
        *(*conversations.HISTORIES, *conversations.REASONINGS, *preferences.RANKED, *preferences.SCORE_LISTS),
        *(*MEDIA, *SYSTEMS, *(name for names, _, _ in preferences.VERDICTS for name in names)),
    )
) - {*TEXT_FIELDS, *conversations.QUESTIONS, *conversations.ANSWERS, *_SIDES}
"""Fields in which layouts read lists and objects that are neither a question nor an answer."""

LAYOUTS: Final = (
    Layout("token_pairs", "tokens_preference", "chosen_ids, rejected_ids, prompt_ids", frozenset({"chosen_ids"}),
           lambda f: all(tokenised.is_ids(f.get(n)) for n in ("chosen_ids", "rejected_ids")), tokenised.from_id_pair),
    Layout("tokens", "tokens", "input_ids or ids, with a loss mask or labels", frozenset(tokenised.IDS),
           _is_tokens, tokenised.from_ids),
    Layout("transcripts", "preference", 'chosen and rejected: "Human: ... Assistant: ..."', _PAIRS,
           _is_transcript_pair, preferences.from_transcripts),
    Layout("pairs", "preference", "a prompt or turns, with chosen and rejected (or preferred and other)", _PAIRS,
           lambda f: preferences.pair_of(f) is not None, preferences.from_pair),
    Layout("verdict", "preference", "a prompt, two answers, and which is better", _VERDICTS,
           lambda f: preferences.verdict_of(f) is not None, preferences.from_verdict),
    Layout("ranked", "preference", "a prompt, and answers with scores or ranks", frozenset(preferences.RANKED),
           lambda f: bool(preferences.ranked_field_of(f)), preferences.from_ranked),
    Layout("messages", "conversation", "messages: a list of role, content", frozenset({"messages"}),
           _styled(("messages",), "role"), conversations.from_turns),
    Layout("sharegpt", "conversation", "conversations: a list of from, value", frozenset(_LISTS[:3]),
           _styled(_LISTS[:3], "from"), conversations.from_turns),
    Layout("minimind", "conversation", "conversations: a list of role, content", frozenset(_CONVERSATIONS),
           _styled(_CONVERSATIONS, "role"), conversations.from_turns),
    Layout("tree", "conversation", "prompt: a message with text, role and replies", frozenset({"prompt", "replies"}),
           lambda f: conversations.root_of(f) is not None, conversations.from_tree),
    Layout("loose_messages", "conversation", "refused: message_id, parent_id, text, role", frozenset({"message_id"}),
           conversations.is_loose_message, conversations.from_loose_message),
    Layout("alternating", "conversation", "conversations or data: a list of strings", frozenset(_LISTS),
           lambda f: bool(conversations.alternating_field_of(f)), conversations.from_alternating),
    Layout("exchanges", "conversation", "conversation: a list of input, output", frozenset((*_LISTS, "interactions")),
           lambda f: bool(conversations.exchanges_field_of(f)), conversations.from_exchanges),
    Layout("schema_guided", "conversation", "turns: a list of speaker (USER, SYSTEM), utterance", frozenset({"turns"}),
           conversations.is_schema_guided, conversations.from_schema_guided),
    Layout("numbered_turns", "conversation", "chat: turn_1 with Human and MOSS, turn_2, ...", frozenset({"chat"}),
           conversations.is_numbered, conversations.from_numbered),
    Layout("turns", "conversation", "one list of role, content (or speaker, text) in any field", None,
           lambda f: bool(conversations.turn_field_of(f)), conversations.from_turns),
    Layout("calls", "conversation", "query, tools, answers: a list of name, arguments", frozenset({"answers"}),
           conversations.is_calls, conversations.from_calls),
    Layout("alpaca", "conversation", "instruction, input or context, output or response", frozenset({"instruction"}),
           _is_alpaca, conversations.from_alpaca),
    Layout("question_answer", "conversation", "question, answer or response, and context, options, reasoning",
           frozenset(conversations.ASKED), _is_prompt(conversations.ASKED), conversations.from_prompt),
    Layout("quoted_answer", "conversation", "context, question, answers: text", frozenset({"answers"}),
           conversations.is_quoted, conversations.from_quoted),
    Layout("prompt_completion", "conversation", "prompt, completion or response", frozenset(conversations.QUESTIONS),
           _is_prompt(conversations.QUESTIONS), conversations.from_prompt),
    Layout("rendered", "conversation", "text or chat: a conversation with the marks of a template",
           frozenset(conversations.RENDERED), lambda f: bool(conversations.rendered_field_of(f)),
           conversations.from_rendered),
    Layout("loose_turns", "conversation", "refused: role, content; one turn a record", frozenset({"role", "from"}),
           conversations.is_loose_turn, conversations.from_loose_message),
    Layout("document", "document", f"one of {', '.join(TEXT_FIELDS)}", frozenset(TEXT_FIELDS), _is_document, None),
)  # fmt: skip

MAPPED: Final = Layout("mapped", "", "the fields that --map names", None, lambda f: True, from_mapping)

BY_NAME: Final = {layout.name: layout for layout in (*LAYOUTS, MAPPED)}


def nested_fields(head: Sequence[Fields]) -> tuple[str, ...]:
    """The columns of a CSV file whose first cells all are lists or objects as text, where layouts read such values.

    A question, and an answer to one that is such a value, must hold turns: an answer alone may be about JSON.
    """
    cells = {n: [parsed(f[n]) for f in head if f.get(n)] for n in dict.fromkeys(n for f in head for n in f)}
    nested = {n: v for n, v in cells.items() if v and all(type(x) in (list, dict) for x in v)}
    said = [n for n, v in nested.items() if all(_is_said(x) or (type(x) is dict and "messages" in x) for x in v)]
    asked = [n for n in said if folded(n) in (*conversations.QUESTIONS, *preferences.PROMPTS)]
    answers = _SIDES if not asked else {*_SIDES, *conversations.ANSWERS}
    wanted = [n for n in nested if folded(n) in _NESTED]
    return tuple(dict.fromkeys((*wanted, *asked, *(n for n in said if folded(n) in answers))))


def layout_of(fields: Fields, kind: str = "auto", text_field: str = "") -> Layout | None:
    """The first layout that fits a record; with a row `kind` the first of that kind. A pair is never a conversation.

    With `text_field`, every record with a string in that field is a document.
    """
    if text_field and kind in ("auto", "document"):
        return BY_NAME["document"] if type(fields.get(text_field)) is str else None
    fitting = [x for x in LAYOUTS if (x.fields is None or not x.fields.isdisjoint(fields)) and x.fits(fields)]
    if not fitting or kind == "auto" or fitting[0].kind.startswith(("tokens", "preference")):
        first = fitting[0] if fitting else None
        return first if kind != "document" or first is None else next((x for x in fitting if x.kind == kind), first)
    return next((layout for layout in fitting if layout.kind == kind), fitting[0])


def choose(head: Sequence[Fields], kind: str = "auto", forced: str = "auto", text_field: str = "") -> FileLayout | None:
    """The layout of most of a file's first records (on a tie the earlier in `LAYOUTS`); None if no record fits any.

    `forced` names a layout; then the records only decide which field holds a document's text. Names are compared as
    they are and in the letters of `folded`. With `kind` preference, conversations whose answer is judged make pairs of
    one side.
    """
    spelled = {name: folded(name) for f in head for name in f}
    if any(name != ours for name, ours in spelled.items()) and len(set(spelled.values())) == len(spelled):
        found = _choose([{spelled[k]: v for k, v in f.items()} for f in head], kind, forced, text_field)
        if found is not None and found.layout != "document":
            return replace(found, folded=True)
        if found is not None and not text_field:
            back = {ours: name for name, ours in spelled.items()}
            return replace(found, text_field=back.get(found.text_field, found.text_field))
    return _choose(head, kind, forced, text_field)


def _choose(head: Sequence[Fields], kind: str, forced: str, text_field: str) -> FileLayout | None:
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
    judged = kind == "preference" and found.kind == "conversation" and any(judged_field_of(f) for f in head)
    return FileLayout(found.name, kind if judged else found.kind, field, len(head))
