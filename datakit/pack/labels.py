"""Finds what the model must produce in a rendered conversation, from the marks around its texts.

No template is named here, and no ids are searched for markers. A turn's label begins where the generation prompt ends:
in the template's text between the turn and the text before it, as far as `add_generation_prompt` writes the same. It
ends where the template still writes the same whatever follows: as far as the text behind the turn is that of a
rendering which ends with the turn. If that has no special token, the next one is the end: it is what stops generation.
A label holds no text of another message. A row whose labels are not certain is refused.

Both places need renderings of a part of the conversation. They are remembered by the template's text around the turn,
so that a conversation of n turns takes no more renderings than a short one.

Templates take 0.1 to 0.3 ms for a row, so one rendering serves all conversations of one shape. **The shape** of a
conversation is what is left without its texts; equal texts share a number. Objects that the template writes with
`tojson` alone (tools, arguments of calls) count as texts. **The plan** of a shape is what the template writes between
the texts, and where labels begin and end in it. It is made from two sets of placeholders, bland ones and awkward ones,
which must give the same; and it is compared with the first row. A shape may also be refused.

A template may ask about a text: does it hold `</think>`, is it a number? So plans of a few conversations are made from
other placeholders, once: with the strings of the template in front, behind and inside. Those that change the plan, and
all that have punctuation (`startswith('<tool_response>')`), send a row with such a text the long way, to
`Labeller.label`. If odd values (a number, a long text, many lines) change anything, no row is joined.

Most conversations have nothing but roles and texts. Their shapes are read off Arrow columns, without a dict a message.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, repeat
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.pack.chat import ChatTokenizer, MarkedRow, common_prefix
from datakit.pack.marks import (
    CALL,
    MARKS,
    RESERVED,
    THOUGHT_KEYS,
    Marker,
    Message,
    RenderError,
    Rendering,
    Span,
    UncertainError,
    plain_tools,
)  # fmt: skip

Chars = tuple[int, int]
MEMORY = 20_000
"""Places that are remembered at most: templates that write ids or dates never repeat themselves."""


class Labelled(NamedTuple):
    """A rendered conversation."""

    text: str
    """The rendering with the template's special tokens in reserved spelling, ready to encode."""
    places: list[int]
    """The characters of `text` at which labels begin and end, in turn; then those at which users' turns begin, with
    their headers: a long conversation may be cut there."""
    num_edges: int
    """How many of the places are those of labels."""
    thoughts_not_rendered: int = 0
    """Thoughts of the assistant that the template leaves out."""
    thoughts_stripped: int = 0
    """Those of earlier turns that it leaves out, but would render in the last turn."""
    ended: bool = True
    """False if no special token ends the last turn."""

    @property
    def labels(self) -> list[Chars]:
        """The labels as half-open ranges of characters of `text`."""
        return list(zip(self.places[: self.num_edges : 2], self.places[1 : self.num_edges : 2], strict=True))

    @property
    def turn_starts(self) -> list[int]:
        """The characters of `text` at which users' turns begin."""
        return self.places[self.num_edges :]


class Labeller:
    """Labels conversations with one tokenizer; remembers where turns begin and end. Threads may share one."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self.tokenizer = tokenizer
        self.memory: dict[Any, int | None] = {}

    def label(
        self, messages: Sequence[Message], tools: Any = None, *, train_on: Literal["all", "last"] = "all",
        variables: Mapping[str, Any] = MappingProxyType({}),
    ) -> Labelled:  # fmt: skip
        """Render a conversation and label the assistant's turns.

        `train_on = "last"` labels only the last turn. Messages of weight 0 have no labels. `variables` are the
        template's.

        Raises:
            RenderError: the template fails on the row, leaves out a part of it, or does not show where a turn is.
        """
        return self.turns(messages, tools, variables).labelled(messages, train_on)

    def turns(self, messages: Sequence[Message], tools: Any, variables: Mapping[str, Any]) -> "RenderedTurns":
        """A rendered conversation, which has all its messages, calls and tools."""
        if not messages:
            raise RenderError("no messages", "empty")
        if len(self.memory) > MEMORY:
            self.memory = {}
        row = self.tokenizer.marked(messages, tools, **variables)
        _check_complete(row)
        return RenderedTurns(row, self.memory)


def _check_complete(row: MarkedRow) -> None:
    """Refuse a row if a text of a message, a call or the tools are not rendered."""
    shown = {number for start, end, number in row.rendering.spans if start < end}
    seen = {row.owners[number] for number in shown}
    if row.tools and all(i >= 0 for i, _ in seen):
        _check_needed(row, row.messages, False, "the row has tools, and the template renders none")
    for number, (i, kind) in enumerate(row.owners):
        if kind in ("content", "answer") and number not in shown:
            whole = "" if (i, kind) not in seen else ", or not whole: text beside <think> is lost"
            detail = f"message {i} ({row.messages[i]['role']}) is not in the rendering{whole}"
            raise RenderError(detail, "template_drops_message")
        if kind.startswith("call") and (i, kind) not in seen:
            calls, number = len(row.messages[i]["tool_calls"]), int(kind[5:]) + 1
            detail = f"message {i} has {calls} calls, and the template leaves out number {number}"
            raise RenderError(detail, "template_drops_tools")
    for i, message in enumerate(row.messages):
        if row.marker.level == 2 and "tool_calls" in message:  # the name of a call alone is no proof
            without = {key: value for key, value in message.items() if key != "tool_calls"}
            others = [*row.messages[:i], without, *row.messages[i + 1 :]]
            _check_needed(row, others, True, f"message {i} calls tools, and the template leaves them out")


def _check_needed(row: MarkedRow, messages: list[dict[str, Any]], with_tools: bool, detail: str) -> None:
    """Refuse a row that is rendered in the same way with less in it."""
    less = ""
    with suppress(RenderError):  # the template misses it, so it reads it
        less = row.render(messages, with_tools=with_tools).text
    if less == row.rendering.text:
        raise RenderError(detail, "template_drops_tools")


class RenderedTurns:
    """Finds the turns of one rendered conversation. `memory` has what was found in others."""

    def __init__(self, row: MarkedRow, memory: dict[Any, int | None]) -> None:
        self.row, self.rendering, self.tokenizer, self.memory = row, row.rendering, row.tokenizer, memory
        self.setting = (bool(row.tools), str(row.variables))
        self.special = self.tokenizer.special_tokens(row.rendering)
        """The special tokens in the template's own text."""
        self.ended = True
        """False if no special token ends the last turn."""
        self.answers = [i for i, m in enumerate(row.messages) if m["role"] == "assistant"]
        self.own: list[list[Span]] = [[] for _ in row.messages]
        """By message: its marked texts, in order."""
        for span in self.rendering.spans:
            if (owner := self._owner(span)) >= 0:
                self.own[owner].append(span)
        for i in self.answers:
            self.own[i] = self._without_repeated(i)
        ends = (max((end for _, end, _ in own), default=0) for own in self.own)
        self.until = [0, *accumulate(ends, max)]
        """By message i: the end of the text of the messages before it."""
        starts = (min((a for a, _, _ in own), default=len(self.rendering.text)) for own in reversed(self.own))
        self.since = [*list(accumulate(starts, min))[::-1], len(self.rendering.text)]
        """By message i: the start of the text of message i and all messages after it."""

    def _owner(self, span: Span) -> int:
        return self.row.owners[span[2]][0]

    def _without_repeated(self, i: int) -> list[Span]:
        """The marked texts of an answer without those that the header of what follows repeats: gpt-oss writes the name
        of the called function into the header of the result. The turn rendered as the last one has as many as are its
        own."""
        own, left = self.own[i], Counter(number for _, _, number in self.own[i])
        if len(left) == len(own):
            return own
        left = Counter(left.keys())
        with suppress(RenderError):
            left = Counter(number for _, _, number in self._up_to(i).spans)
        kept = []
        for span in own:
            left[span[2]] -= 1
            kept += [span] if left[span[2]] >= 0 else []
        return kept

    def _up_to(self, i: int) -> Rendering:
        """The messages up to an answer; after the last message stands another question, because some templates write
        more at the end of a conversation (Phi-3)."""
        question = [self.row.traits.message({"role": "user", "content": "."})] if i == len(self.own) - 1 else []
        return self.row.render([*self.row.messages[: i + 1], *question])

    def labelled(self, messages: Sequence[Message], train_on: str) -> Labelled:
        """The labels of the turns that have weight in `messages`."""
        said = self.answers[-1:] if train_on == "last" else self.answers
        edges = [e for i in said if messages[i].get("weight") != 0 for span in self._labels(i) for e in span]
        text = self.tokenizer.spelled(self.rendering.text, self.special)
        places = self.respelled(edges + self._question_starts())
        try:
            text.encode()
        except UnicodeEncodeError as e:
            detail = f"the JSON of a tool or a call escapes half a character: {e}"
            raise RenderError(detail, "lone_surrogate") from None
        return Labelled(text, places, len(edges), *self._thoughts(messages), self.ended)

    def respelled(self, places: Sequence[int]) -> list[int]:
        """Positions in the text with reserved spelling of characters that are not inside a special token."""
        ends = [end for _, end, _ in self.special]
        shifts = [0, *accumulate(2 - (end - start) for start, end, _ in self.special)]
        return [at + shifts[bisect_right(ends, at)] for at in places]

    def _thoughts(self, messages: Sequence[Message]) -> tuple[int, int]:
        """The thoughts that are not in the rendering: those that the template never shows, and those that it strips."""
        seen = {self.row.owners[number] for _, _, number in self.rendering.spans}
        missing = {i for i, kind in self.row.owners if kind == "thought" and (i, kind) not in seen}
        in_field, in_content = self.row.traits.shows
        shown = [in_field if any(messages[i].get(k) for k in THOUGHT_KEYS) else in_content for i in missing]
        last = max(self.answers, default=-1)
        stripped = sum(i < last and shows for i, shows in zip(missing, shown, strict=True))
        return len(missing) - stripped, stripped

    def _question_starts(self) -> list[int]:
        """Where users' turns begin with the header that the template writes before a question.

        A system prompt that the template writes into the first question stands behind that header, too.
        """
        found: list[int] = []
        header, text, plain = self.tokenizer.probe.question_header, self.rendering.text, self.row.messages
        for i, message in enumerate(plain if header else ()):
            if message["role"] != "user" or not self.own[i]:
                continue
            before = i - 1 if i and not found and plain[i - 1]["role"] == "system" else i
            for k in (i, before):
                first = len(text[: self.own[k][0][0]].rstrip()) if self.own[k] else 0
                if text.endswith(header, self.until[k], first):
                    found.append(first - len(header))
                    break
        return found

    def _labels(self, i: int) -> list[Chars]:
        """The characters of turn `i`; of those, what is in generation blocks, if the template has them."""
        own, blocks = self.own[i], self.rendering.generated
        first, last = (own[0][0], own[-1][1]) if own else (self.since[i], self.until[i])
        try:
            start = self._start(i, first)
            end = self._end(i, start, max(start, last))
        except RenderError:  # only the blocks say where the turn is
            blocks = self._blocks(i)
            if not blocks:
                raise
            start, end = blocks[0][0], blocks[-1][1]
            with suppress(RenderError):
                end = self._end(i, start, max(start, last))
        found: list[Chars] = []
        for a, b in blocks or [(start, end)]:
            a, b = max(a, start), min(b, end)
            if a < b and found and found[-1][1] == a:
                found[-1] = (found[-1][0], b)
            elif a < b:
                found.append((a, b))
        if not found and start < end:
            raise UncertainError(f"turn {i} is outside of the generation blocks")
        return found

    def _blocks(self, i: int) -> list[Chars]:
        """The generation blocks with texts of turn `i`, and those without texts that touch one of these."""
        found: list[Chars] = []
        for a, b in self.rendering.generated:
            inside = {self._owner(span) for span in self.rendering.spans if a <= span[0] and span[1] <= b}
            if i in inside or (found and found[-1][1] == a and not inside):
                found.append((a, b))
        return found

    def _remembered(self, i: int, key: tuple[Any, ...], find: Callable[[], int | None]) -> int | None:
        """A place in the template's text around turn `i`, which is found again for a turn without texts of its own."""
        key = (*key, self.setting)
        if key not in self.memory or not self.own[i]:
            self.memory[key] = find()
        return self.memory[key]

    def _start(self, i: int, first: int) -> int:
        """The start of turn `i`, whose own text begins at `first`: behind the generation prompt, or else behind the
        header of answers, which must stand once between its neighbours' texts."""
        spans = self.rendering.spans
        before = bisect_right(spans, first, key=lambda span: span[1]) - 1
        while before >= 0 and self._owner(spans[before]) == i:
            before -= 1
        _, anchor, number = spans[before] if before >= 0 else (0, 0, -1)
        gap = self.rendering.text[anchor:first]
        key = ("start", gap, i and self.row.messages[i - 1]["role"], number < 0)
        at = self._remembered(i, key, lambda: self._behind_prompt(i, number, gap))
        header = self.tokenizer.probe.answer_header
        if at is None and header.strip() and gap.count(header) == 1:
            at = gap.index(header) + len(header)
        if at is None:
            raise UncertainError(
                f"turn {i} does not begin as add_generation_prompt says, nor with the header of answers"
            )
        return anchor + at

    def _behind_prompt(self, i: int, number: int, gap: str) -> int | None:
        """Where turn `i` begins in the text between it and the marked text `number` before it; None if unknown."""
        if not i:
            return None
        before, row = self.row.messages[:i], self.row
        try:
            asked, base = (row.tail(before, number, asks) for asks in (True, False))
            if asked != base:
                return self.tokenizer.behind_prompt(gap, asked, base)
            # A template without a generation prompt: its header is what it writes before another answer.
            marker = Marker(self.tokenizer.special_text)
            marker.owners, marker.values = [*row.owners], [*row.marker.values]
            probe = marker.message({"role": "assistant", "content": "probe"}, i, row.traits)
            lead = row.tail([*before, probe], number, until=len(row.owners))
        except RenderError:
            return None
        if not gap.startswith(base):
            return None
        return len(lead) if gap.startswith(lead) and lead[len(base) :].strip() else len(base)

    def _end(self, i: int, start: int, last: int) -> int:
        """The end of turn `i`, whose own text ends at `last`: as far as the template writes the same whatever follows,
        or else behind the next special token."""
        spans, text = self.rendering.spans, self.rendering.text
        behind = bisect_left(spans, last, key=lambda span: span[0])
        until = next((a for a, b, _ in spans[behind : behind + 2] if b > last), len(text))
        if until < len(text) and not self.own[i]:
            until = self.since[i + 1]
        gap = text[last:until]
        key = ("end", gap, i == len(self.own) - 1, bool(self.own[i]))
        end = last + (self._remembered(i, key, lambda: self._same_whatever_follows(i, last, gap)) or 0)
        near = self.special[bisect_left(self.special, (last,)) : bisect_left(self.special, (until,))]
        if not any(behind <= end for _, behind, _ in near):
            end = self._by_next_token(i, last, near)
        inside = spans[bisect_right(spans, start, key=lambda span: span[1]) : bisect_left(spans, (end,))]
        if any(self._owner(span) != i for span in inside):
            raise UncertainError(f"another message is inside of turn {i}")
        return end

    def _by_next_token(self, i: int, last: int, near: list[tuple[int, int, str]]) -> int:
        """The end of a turn by the special tokens between its text and the next message: behind the first one, or
        before it if it begins the header of another answer."""
        probe, text = self.tokenizer.probe, self.rendering.text
        if not near:
            if not probe.ends_with_question or i != self.answers[-1]:
                raise UncertainError(f"no special token ends turn {i}: the model could not learn to stop")
            self.ended = False
            return max(last, len(text.rstrip()))
        start, end, _ = near[0]
        header = probe.answer_header.lstrip()
        return max(last, len(text[:start].rstrip())) if header and text.startswith(header, start) else end

    def _same_whatever_follows(self, i: int, last: int, gap: str) -> int:
        """How much of the text behind an answer the template also writes where the conversation ends with it."""
        try:
            alone = self._up_to(i)
        except RenderError:
            return 0
        at = last if alone.text.startswith(self.rendering.text[:last]) else -1
        if own := self.own[i]:
            at = next((end for _, end, number in reversed(alone.spans) if number == own[-1][2]), -1)
        tail = alone.text[at:] if at >= 0 else ""
        shared = common_prefix(tail, gap)
        return len(gap[: min(self.tokenizer.uncut(tail, shared), self.tokenizer.uncut(gap, shared))].rstrip())


# ---------------------------------------------------------------------- conversations of one shape

Outcome = Labelled | RenderError
Row = tuple[list[dict[str, Any]], str | None, dict[str, Any]]
"""The messages, tools and variables of a conversation."""
Int64 = npt.NDArray[np.int64]

BLAND, AWKWARD = "text", "Aa{} \"q\" \\ 'x'\n\n\t <b>&amp;\u00e9\u4f60 %s {{}} zZ"
"""What placeholders for texts begin and end with; their number is between."""
ODD = ("7", "-1.5", "true", "None", "[1]", '{"a": 1}', "WORD", "http://a.b/c", "x" * 300, "x y\n" * 3000, AWKWARD)
NEUTRAL = "\ua66e"
"""A text that no template looks for."""
MAX_PLANS = 20_000


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


WAYS: tuple[Callable[[Any], Any], ...] = (
    lambda value: value, lambda value: _json(value)[1:-1], _json, lambda value: _json(value, indent=4)
)  # fmt: skip
"""How a template may write a text or an object: as it is, inside of JSON text, as JSON, as indented JSON."""


class ShapePlan(NamedTuple):
    """What a template makes of the conversations of one shape."""

    gaps: list[str]
    """The template's own text before, between and after the texts, special tokens in reserved spelling."""
    holes: list[int]
    """Between two gaps: the number of the text."""
    ways: list[int]
    """How it is written: the number of its way in `WAYS`."""
    edges: list[tuple[int, int]]
    """Where labels begin and end, then where users' turns begin: the number of a gap, and characters of it before."""
    facts: Labelled
    """Of the row that the plan was made from: all but its text and places."""


class LabelledBatch:
    """The conversations of a batch: as columns, row by row, and what is made of them."""

    edges: tuple[Int64, Int64]
    """The edges of labels, as in `Labelled`, of all rows: the number of the row, ascending, and the character."""
    starts: tuple[Int64, Int64]
    """The same of users' turns."""

    def __init__(self, messages: pa.ListArray, tools: Sequence[str | None], variables: Sequence[Any]) -> None:
        self.messages, self.tools, self.variables = messages, tools, variables
        self.values: list[list[Any]] = []
        """By row: its texts, as its shape numbers them."""
        self.texts = [""] * len(messages)
        """As in `Labelled`; "" for a row that is refused."""
        self.which = np.zeros(len(messages), np.int64)
        """By row: the number of its facts."""
        self.facts = list[Outcome]()
        """Why a row is refused, or a row that has the same facts; its text and places mean nothing."""
        self._edges, self._starts = [np.empty((2, 0), np.int64)], [np.empty((2, 0), np.int64)]
        """Rows and characters, both flat."""

    def row(self, k: int) -> Row:
        """A conversation as Python objects."""
        return self.messages[k].as_py(), self.tools[k], self.variables[k]

    def join(self, rows: list[int], plan: ShapePlan) -> tuple[list[str], Int64]:
        """The texts of rows of one shape, and their places, int64 (rows, places)."""
        pieces: list[Any] = [repeat(plan.gaps[0])]
        sizes = [[0] * len(rows)]
        for number, way, behind in zip(plan.holes, plan.ways, plan.gaps[1:], strict=True):
            column = [self.values[k][number] for k in rows]
            column = list(map(WAYS[way], column)) if way else column
            sizes.append(list(map(len, column)))
            pieces += [column, repeat(behind)]
        gap, at = np.array(plan.edges, np.int64).reshape(-1, 2).T
        before = np.cumsum([0, *map(len, plan.gaps[:-1])])[:, None] + np.cumsum(sizes, axis=0)
        return list(map("".join, zip(*pieces, strict=False))), (before[gap] + at[:, None]).T

    def add(self, rows: list[int], texts: list[str], places: Int64, facts: Outcome) -> None:
        """What is made of some rows: their texts, their places, int64 (rows, places), and the facts that they share."""
        self.which[rows] = len(self.facts)
        self.facts.append(facts)
        edges = facts.num_edges if isinstance(facts, Labelled) else 0
        for known, own in ((self._edges, places[:, :edges]), (self._starts, places[:, edges:])):
            known.append(np.stack([np.repeat(rows, own.shape[1]), own.ravel()]))
        for k, text in zip(rows, texts, strict=True):
            self.texts[k] = text

    def settle(self) -> None:
        """Put the places in the order of the rows."""
        edges, starts = (np.concatenate(known, axis=1) for known in (self._edges, self._starts))
        self.edges, self.starts = (tuple(of[:, np.argsort(of[0], kind="stable")]) for of in (edges, starts))


class _Cutter(Marker):
    """Puts placeholders in the place of texts, the same one for equal texts."""

    def __init__(self, special: re.Pattern[str], whole: tuple[bool, bool], edge: str) -> None:
        super().__init__(special)
        self.whole, self.edge = whole, edge
        self.shown: list[Any] = []
        """The placeholders; `values` has what they stand for."""
        self.numbers: dict[str, int] = {}

    def _placeholder(self) -> str:
        return f"{self.edge}{len(self.values)}{self.edge}".strip()

    def _show(self, value: Any, shown: Any) -> Any:
        self.values.append(value)
        self.shown.append(shown)
        return shown

    def around(self, text: str, i: int, kind: str) -> str:
        if text not in self.numbers:
            self.numbers[text] = len(self.values)
            self._show(text, self._placeholder())
        return str(self.shown[self.numbers[text]])

    def object(self, value: dict[str, Any], i: int, kind: str) -> Any:
        if not self.whole[i >= 0]:
            return value if i < 0 else self.inside(value, i, kind)
        text, key = self._placeholder(), "name" if self.edge == BLAND else "a'\"b"
        made = {key: text, "type": key, "function": {"name": text, "number": [len(self.values), None]}}
        return self._show(value, made if value else {})


class Shapes:
    """Labels batches of conversations: the first ones of each shape one by one, the others by its plan."""

    def __init__(self, labeller: Labeller, train_on: Literal["all", "last"] = "all") -> None:
        self.labeller, self.tokenizer, self.train_on = labeller, labeller.tokenizer, train_on
        self.plans: dict[Any, ShapePlan | RenderError | None] = {}
        self.seen: Counter[Any] = Counter()
        self.joined = 0
        """Rows that were joined from a plan."""
        self._whole = (True, True)
        """Whether the template writes tools, and the arguments of calls, with `tojson` alone; else their texts are
        texts by themselves."""
        function = {"name": "f", "description": "d", "parameters": {"type": "object"}}
        result = {"role": "tool", "content": "c", "tool_call_id": CALL["id"], "name": "f"}
        turns = [_says("user", "?"), _says("assistant", "", tool_calls=[CALL]), result, _says("assistant", "!")]
        tools = _json([{"type": "function", "function": function}])
        for self._whole in ((True, True), (True, False), (False, True), (False, False)):
            if isinstance(self._plan((turns, tools, {})), ShapePlan):
                break
        self._telling = self._strings_that_matter()

    def _strings_that_matter(self) -> set[str] | None:
        """The template's strings that change what it makes of a text with them; None if it asks about more."""
        ask, answer = _says("user", "a"), _says("assistant", "b", reasoning_content="c")
        tries = ([_says("system", "d"), ask, answer, ask, answer], [ask, answer] * 2, [ask, _says("assistant", "b")])
        plans = ((turns, self._shown((turns, None, {}), NEUTRAL)) for turns in tries)
        turns, usual = next(((turns, plan) for turns, plan in plans if isinstance(plan, ShapePlan)), ([], None))

        def changes(*texts: str) -> bool:
            return any(str(self._shown((turns, None, {}), text)) != str(usual) for text in texts)

        if usual is None or changes(*ODD):
            return None
        telling = {"think>"}  # an answer is divided there
        for text in filter(str.strip, self.tokenizer.constants):
            is_marker = len(text.strip()) > 2 and re.search(r"[^\w\s]", text)
            if is_marker or changes(text + NEUTRAL, NEUTRAL + text, NEUTRAL + text + NEUTRAL):
                telling.add(text)
        # a text that has one of these also has every part of it
        return {text for text in telling if not any(part in text for part in telling - {text})}

    # Rows.

    def label(self, messages: pa.ListArray, tools: Sequence[str | None], variables: Sequence[Any]) -> LabelledBatch:
        """Label the conversations of a batch."""
        batch = LabelledBatch(messages, tools, variables)
        for key, rows in self._groups(batch).items():
            self.seen[key] += len(rows)
            plan = self._plan_of(key, batch, rows[0]) if key is not None and self.seen[key] > 1 else None
            if isinstance(plan, ShapePlan):
                batch.add(rows, *batch.join(rows, plan), plan.facts)
                self.joined += len(rows)
                continue
            for k in rows:
                found = plan or self._alone(batch.row(k))
                text, places = (found.text, found.places) if isinstance(found, Labelled) else ("", [])
                batch.add([k], [text], np.array([places], np.int64), found)
        batch.settle()
        return batch

    def _groups(self, batch: LabelledBatch) -> dict[Any, list[int]]:
        """The numbers of the rows of each shape; of None, those that no plan may join.

        The shape of a row of plain messages is what each has beside its text: role, weight and outer white space.
        """
        if self._telling is None:
            return {None: list(range(len(batch.texts)))}
        flat, constants = batch.messages.flatten(), self.tokenizer.constants | {""}
        contents: list[str] = flat.field("content").fill_null("").to_pylist()
        cores, whole = [text.strip() for text in contents], "\n".join(contents)
        fields = ("name", "tool_calls", "tool_call_id", "reasoning_content")
        more: list[Any] = [flat.field(name).is_valid() for name in fields]
        for text in (*self._telling, RESERVED, *MARKS):
            if text in whole:  # searching all texts at once is much faster
                more.append([text in content for content in contents])
        has_more = np.any(more, axis=0).tolist()
        roles = flat.field("role").fill_null("").to_pylist()
        special = set(filter(self.tokenizer.special_text.search, set(roles)))
        silent = pc.equal(flat.field("weight").fill_null(1.0), 0).to_pylist()
        texts = zip(contents, cores, strict=True)
        besides = [  # `strip` returns a text without outer white space itself
            (role, no_weight, *(() if text is core else text.split(core, 1)))
            if not (rest or core in constants or text in constants or role in special)
            else None
            for rest, role, no_weight, (text, core) in zip(has_more, roles, silent, texts, strict=True)
        ]
        groups, at = dict[Any, list[int]](), 0
        for k, size in enumerate(pc.list_value_length(batch.messages).to_pylist()):
            own, at = slice(at, at + size), at + size
            key: Any = tuple(besides[own])
            values = cores[own]
            if not key or None in key or len(set(values)) < size or batch.tools[k] or batch.variables[k]:
                key, values = self._shape(batch.row(k))
            batch.values.append(values)
            groups.setdefault(key, []).append(k)
        return groups

    def _cut(self, row: Row, edge: str) -> tuple[list[dict[str, Any]], Any, _Cutter]:
        """The messages and tools of a row with placeholders for its texts."""
        messages, tools, _ = row
        cutter = _Cutter(self.tokenizer.special_text, self._whole, edge)
        cut = cutter.messages(messages, replace(self.tokenizer.traits, parts=False))
        cut = [c | {"weight": float(m.get("weight") != 0)} for c, m in zip(cut, messages, strict=True)]
        return cut, cutter.tools(plain_tools(tools)), cutter

    def _shape(self, row: Row) -> tuple[str | None, list[Any]]:
        """A row without its texts, as JSON, and its texts. None if it cannot be told, or if a text is one of the
        template's own strings or has one that it looks for in texts."""
        whole = "\n".join(v for m in (*row[0], {"tools": row[1]}) for v in m.values() if isinstance(v, str))
        if not row[0] or any(text in whole for text in (RESERVED, *MARKS, "\\ud", "\\uD")):  # half a character in JSON
            return None, []
        try:
            messages, tools, cutter = self._cut(row, BLAND)
        except RenderError:
            return None, []
        given = [value for value in cutter.values if isinstance(value, str)]
        telling = self._telling or ()
        if not self.tokenizer.constants.isdisjoint(given) or any(text in value for text in telling for value in given):
            return None, []
        return _json([messages, tools, row[2]]), cutter.values

    def _alone(self, row: Row) -> Outcome:
        try:
            return self.labeller.label(*row[:2], train_on=self.train_on, variables=row[2])
        except RenderError as e:
            return e

    def _plan_of(self, key: Any, batch: LabelledBatch, k: int) -> ShapePlan | RenderError | None:
        """The plan of the shape of row `k`, or why its rows are refused; None if they must be rendered one by one."""
        if key not in self.plans:
            if len(self.plans) > MAX_PLANS:
                self.plans, self.seen = {}, Counter()
            shown: Any = (plan := self._plan(batch.row(k)))
            if isinstance(plan, ShapePlan):
                texts, places = batch.join([k], plan)
                shown = plan.facts._replace(text=texts[0], places=places[0].tolist())
            self.plans[key] = plan if str(shown) == str(self._alone(batch.row(k))) else None
        return self.plans[key]

    def _plan(self, row: Row) -> ShapePlan | RenderError | None:
        """The plan of a row's shape; None if placeholders of two kinds give different ones."""
        awkward, bland = self._shown(row, AWKWARD), self._shown(row, BLAND)
        if isinstance(awkward, ShapePlan) and isinstance(bland, ShapePlan):
            bland = bland._replace(ways=awkward.ways)  # bland texts look the same in all ways
        return awkward if str(awkward) == str(bland) else None

    def _shown(self, row: Row, edge: str) -> ShapePlan | RenderError | None:
        """The plan that a row shows with placeholders that begin and end with `edge`; None if there is none."""
        try:
            messages, tools, cutter = self._cut(row, edge)
            turns = self.labeller.turns(messages, tools, row[2])
            return _plan_shown(cutter, turns, turns.labelled(messages, self.train_on))
        except RenderError as e:
            return e


def _says(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | more


def _plan_shown(cutter: _Cutter, turns: RenderedTurns, labelled: Labelled) -> ShapePlan | None:
    """The plan that a row of placeholders shows."""
    row, numbers = turns.row, {_json(value): number for number, value in enumerate(cutter.shown)}
    holes, ways, edges = list[int](), list[int](), list[int]()
    for a, b, mark in row.rendering.spans:
        value = row.marker.values[mark]
        if (number := numbers.get(_json(value))) is None:
            continue
        way = next((n for n, way in enumerate(WAYS) if way(value) == row.rendering.text[a:b]), None)
        if way is None:
            return None
        holes, ways, edges = [*holes, number], [*ways, way], [*edges, a, b]
    bounds = [0, *turns.respelled(edges), len(labelled.text)]
    begins, ends = bounds[::2], bounds[1::2]
    places = [(bisect_left(ends, place), place) for place in labelled.places]
    if not holes or bounds != sorted(bounds) or row.marker.level > 1 or any(begins[gap] > at for gap, at in places):
        return None
    gaps = [labelled.text[a:b] for a, b in zip(begins, ends, strict=True)]
    facts = labelled._replace(text="", places=[])
    return ShapePlan(gaps, holes, ways, [(gap, at - begins[gap]) for gap, at in places], facts)
