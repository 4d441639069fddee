"""Finds what the model must produce in a rendered conversation, from the marks around its texts.

No template is named here, and no ids are searched for markers. A turn's label begins where the generation prompt ends:
in the template's text between the turn and the text before it, as far as `add_generation_prompt` writes the same. It
ends where the template still writes the same whatever follows: as far as the text behind the turn is that of a
rendering which ends with the turn. If that has no special token, the next one is the end: it is what stops generation.
A label holds no text of another message. A row whose labels are not certain is refused.

Both places need renderings of a part of the conversation. They are remembered by the template's text around the turn,
so that a conversation of n turns takes no more renderings than a short one.

Templates take 0.1 to 0.3 ms for a row, so one rendering serves all conversations of one shape: the same roles, weights
and outer white space. **The plan** of a shape is what the template writes between the texts, and where labels begin and
end in it. It is made of awkward texts, and is compared with a row of the shape that was labelled by itself.

A template may ask about a text: does it hold `</think>`, is it a number? So plans of one conversation are made of other
texts, once: with the strings of the template in front, behind and inside. Those that change the plan, and all that have
punctuation (`startswith('<tool_response>')`), send a row with such a text the long way, to `Labeller.label`. If odd
texts (a number, a long one, many lines) change anything, all rows go the long way. So do rows with tools, calls,
thoughts or variables, or with a text twice.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.pack.chat import ChatTokenizer, MarkedRow, common_prefix
from datakit.pack.marks import (
    MARKS,
    RESERVED,
    Marker,
    Message,
    RenderError,
    Rendering,
    Span,
    UncertainError,
)

Chars = tuple[int, int]
MEMORY = 20_000
"""Places that are remembered at most: templates that write ids or dates never repeat themselves."""


class Labelled(NamedTuple):
    """A rendered conversation."""

    text: str
    """The rendering with the template's special tokens in reserved spelling, ready to encode."""
    edges: list[int]
    """The characters of `text` at which labels begin and end, in turn."""
    turn_starts: list[int]
    """The characters at which users' turns begin, with their headers: a long conversation may be cut there."""
    thoughts_not_rendered: int = 0
    """Whether the template leaves out the thought of the last turn."""
    thoughts_stripped: int = 0
    """Thoughts of earlier turns that it leaves out."""
    ended: bool = True
    """False if no special token ends the last turn."""

    @property
    def labels(self) -> list[Chars]:
        """The labels as half-open ranges of characters of `text`."""
        return list(zip(self.edges[::2], self.edges[1::2], strict=True))


def _check_complete(row: MarkedRow) -> None:
    """Refuse a row if a message, a call or the tools are not rendered: what has marks must show one."""
    seen = {row.marker.owners[number] for start, end, number in row.rendering.spans if start < end}
    if row.tools:
        _check_needed(row, row.messages, False, "the row has tools, and the template renders none")
    for i, kind in dict.fromkeys(row.marker.owners):
        if (i, kind) in seen:
            continue
        if kind in ("content", "answer"):
            detail = f"message {i} ({row.messages[i]['role']}) is not in the rendering"
            raise RenderError(detail, "template_drops_message")
        if kind.startswith("call"):
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
        return self.row.marker.owners[span[2]][0]

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
        edges, starts = self._respelled(edges), self._respelled(self._question_starts())
        try:
            text.encode()
        except UnicodeEncodeError as e:
            detail = f"the JSON of a tool or a call escapes half a character: {e}"
            raise RenderError(detail, "lone_surrogate") from None
        return Labelled(text, edges, starts, *self._thoughts(), self.ended)

    def _respelled(self, places: Sequence[int]) -> list[int]:
        """Positions in the text with reserved spelling of characters that are not inside a special token."""
        ends = [end for _, end, _ in self.special]
        shifts = [0, *accumulate(2 - (end - start) for start, end, _ in self.special)]
        return [at + shifts[bisect_right(ends, at)] for at in places]

    def _thoughts(self) -> tuple[int, int]:
        """The thoughts that are not in the rendering: that of the last turn, and those of earlier ones."""
        seen = {self.row.marker.owners[number] for _, _, number in self.rendering.spans}
        missing = {i for i, kind in self.row.marker.owners if kind == "thought" and (i, kind) not in seen}
        earlier = sum(i < max(self.answers, default=-1) for i in missing)
        return len(missing) - earlier, earlier

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
            marker.owners = [*row.marker.owners]
            probe = marker.message({"role": "assistant", "content": "probe"}, i, row.traits)
            lead = row.tail([*before, probe], number, until=len(row.marker.owners))
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
Shape = tuple[tuple[str, bool, str, str], ...]
"""By message: its role, whether its weight is 0, and the white space before and behind its text."""

AWKWARD = "Aa{} \"q\" \\ 'x'\n\n\t <b>&amp;\u00e9\u4f60 %s {{}} zZ"
"""What texts that stand for others begin and end with; their number is between."""
ODD = ("7", "-1.5", "true", "None", "[1]", '{"a": 1}', "WORD", "http://a.b/c", "x" * 300, "x y\n" * 3000, AWKWARD)
NEUTRAL = "\ua66e"
"""A text that no template looks for."""
MAX_PLANS = 20_000


class ShapePlan(NamedTuple):
    """What a template makes of the conversations of one shape."""

    pieces: list[str]
    """What the template writes, special tokens in reserved spelling; each second piece is that of a text."""
    texts: list[int]
    """The numbers of these texts."""
    places: list[tuple[int, int]]
    """Where labels begin and end, then where users' turns begin: the number of a piece, and characters of it before."""
    num_edges: int
    """How many of the places are those of labels."""
    more: tuple[Any, ...]
    """The other fields of `Labelled`."""

    def join(self, texts: Sequence[str]) -> Labelled:
        """The conversation of these texts, without outer white space."""
        pieces = self.pieces.copy()
        pieces[1::2] = [texts[number] for number in self.texts]
        at = [0, *accumulate(map(len, pieces))]
        places = [at[piece] + before for piece, before in self.places]
        return Labelled("".join(pieces), places[: self.num_edges], places[self.num_edges :], *self.more)


class Labeller:
    """Labels conversations with one tokenizer; remembers where turns begin and end. Threads may share one."""

    def __init__(self, tokenizer: ChatTokenizer, train_on: Literal["all", "last"] = "all") -> None:
        """`train_on = "last"` labels only the last turn of the assistant."""
        self.tokenizer, self.train_on = tokenizer, train_on
        self.memory: dict[Any, int | None] = {}
        self.plans: dict[Shape, ShapePlan | None] = {}
        """The plan of each shape; None: its rows are labelled one by one."""
        self.joined = 0
        """Rows that were joined from a plan."""
        self._once: set[Shape] = set()
        """Shapes of which one row was seen."""

    def label(
        self, messages: Sequence[Message], tools: Any = None, variables: Mapping[str, Any] = MappingProxyType({})
    ) -> Labelled:
        """Render a conversation and label the assistant's turns. Messages of weight 0 have no labels. `variables` are
        the template's.

        Raises:
            RenderError: the template fails on the row, leaves out a part of it, or does not show where a turn is.
        """
        if not messages:
            raise RenderError("no messages", "empty")
        if len(self.memory) > MEMORY:
            self.memory = {}
        row = self.tokenizer.marked(messages, tools, **variables)
        _check_complete(row)
        return RenderedTurns(row, self.memory).labelled(messages, self.train_on)

    def _outcome(self, messages: Sequence[Message], tools: str | None, variables: Mapping[str, Any]) -> Outcome:
        try:
            return self.label(messages, tools, variables)
        except RenderError as e:
            return e

    def label_rows(
        self, messages: pa.ListArray, tools: Sequence[str | None], variables: Sequence[Mapping[str, Any]]
    ) -> list[Outcome]:
        """Label the conversations of a batch, or say why one is refused."""
        found = list[Outcome]()
        for k, (shape, texts) in enumerate(self._shapes(messages)):
            if tools[k] or variables[k]:
                shape = None
            if shape is not None and (plan := self.plans.get(shape)):
                found.append(plan.join(texts))
                self.joined += 1
                continue
            found.append(alone := self._outcome(messages[k].as_py(), tools[k], variables[k]))
            if shape in self._once and shape not in self.plans:
                plan = self._plan(shape, AWKWARD)
                self.plans[shape] = plan if plan and plan.join(texts) == alone else None
            elif shape is not None:
                if len(self._once) > MAX_PLANS:
                    self.plans, self._once = {}, set()
                self._once.add(shape)
        return found

    def _shapes(self, messages: pa.ListArray) -> Iterator[tuple[Shape | None, list[str]]]:
        """The shape of each row, and its texts; None for a row that no plan may join: with fields other than role,
        content and weight, with two equal texts, or with a text that the template may ask about."""
        flat, telling = messages.flatten(), self._telling
        constants, compared = self.tokenizer.constants | {""}, self.tokenizer.compared
        contents: list[str] = flat.field("content").fill_null("").to_pylist()
        cores, whole = [text.strip() for text in contents], "\n".join(contents)
        fields = ("name", "tool_calls", "tool_call_id", "reasoning_content")
        more: list[Any] = [flat.field(name).is_valid() for name in fields]
        for text in (*(telling or ()), RESERVED, *MARKS):
            if text in whole:  # searching all texts at once is much faster
                more.append([text in content for content in contents])
        roles, silent = flat.field("role").fill_null(""), pc.equal(flat.field("weight").fill_null(1.0), 0)
        rest = roles.to_pylist(), silent.to_pylist(), np.any(more, axis=0).tolist()
        besides: list[Any] = [  # `strip` returns a text without outer white space itself
            None
            if has_more or core in constants or text in constants or core in compared
            else (role, no_weight, *(("", "") if text is core else text.split(core, 1)))
            for text, core, role, no_weight, has_more in zip(contents, cores, *rest, strict=True)
        ]
        at = 0
        for size in pc.list_value_length(messages).to_pylist():
            shape, texts = tuple(besides[at : at + size]), cores[at : at + size]
            at += size
            alone = telling is None or not size or None in shape or len(set(texts)) < size
            yield None if alone else shape, texts

    def _plan(self, shape: Shape, edge: str) -> ShapePlan | None:
        """The plan of a shape, from texts that begin and end with `edge`; None if these do not show one."""
        cores = [f"{edge}{n}{edge}".strip() for n in range(len(shape))]
        found = self._outcome(
            [
                {"role": role, "content": before + core + behind, "weight": float(not no_weight)}
                for core, (role, no_weight, before, behind) in zip(cores, shape, strict=True)
            ], None, {},
        )  # fmt: skip
        if isinstance(found, RenderError):
            return None
        pieces = re.split(f"({re.escape(edge.lstrip())}[0-9]+{re.escape(edge.rstrip())})", found.text)
        if not set(cores).issuperset(pieces[1::2]):
            return None
        ends = list(accumulate(map(len, pieces)))
        given = [*found.edges, *found.turn_starts]
        gaps = [2 * bisect_left(ends[::2], at) for at in given]
        places = [(n, at - ends[n] + len(pieces[n])) for n, at in zip(gaps, given, strict=True)]
        if any(before < 0 for _, before in places):  # inside of a text
            return None
        texts = [cores.index(core) for core in pieces[1::2]]
        pieces[1::2] = [""] * len(texts)
        return ShapePlan(pieces, texts, places, len(found.edges), found[3:])

    @cached_property
    def _telling(self) -> set[str] | None:
        """The template's strings that change what it makes of a text with them; None if it asks about more."""
        system, ask, answer = ((role, False, "", "") for role in ("system", "user", "assistant"))
        tries: list[Shape] = [(system, ask, answer, ask, answer), (ask, answer) * 2, (ask, answer)]
        plans = ((shape, self._plan(shape, NEUTRAL)) for shape in tries)
        shape, usual = next(((shape, plan) for shape, plan in plans if plan), ((), None))

        def changes(*texts: str) -> bool:
            return any(self._plan(shape, text) != usual for text in texts)

        if usual is None or changes(*ODD):
            return None
        telling = {"think>"}  # an answer is divided there
        for text in filter(str.strip, self.tokenizer.constants):
            is_marker = len(text.strip()) > 2 and re.search(r"[^\w\s]", text)
            if is_marker or changes(text + NEUTRAL, NEUTRAL + text, NEUTRAL + text + NEUTRAL):
                telling.add(text)
        # a text that has one of these also has every part of it
        return {text for text in telling if not any(part in text for part in telling - {text})}
