"""Finds what the model must produce in a rendered conversation, from the marks around its texts.

No template is named here, and no ids are searched for markers. A turn's label begins where the generation prompt ends:
in the template's text between the turn and the text before it, as far as `add_generation_prompt` writes the same. It
ends where the template still writes the same whatever follows: as far as the text behind the turn is that of a
rendering which ends with the turn. If that has no special token, the next one is the end: it is what stops generation.
A label holds no text of another message. A row whose labels are not certain is refused.

Both places need renderings of a part of the conversation. They are remembered by the template's text around the turn,
so that a conversation of n turns takes no more renderings than a short one.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from datakit.pack.chat import ChatTokenizer, MarkedRow
from datakit.pack.marks import THOUGHT_KEYS, Marker, Message, RenderError, Rendering, Span, plain_messages

Chars = tuple[int, int]
MEMORY = 20_000
"""Places that are remembered at most: templates that write ids or dates never repeat themselves."""


class RowError(Exception):
    """A row cannot be rendered or labelled: `reason` is counted in the ledger, `detail` says more."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


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


@dataclass(frozen=True, slots=True)
class Probe:
    """What a question, an answer and a question show of a template."""

    answer_header: str = ""
    """The text before an answer, as far as the generation prompt has it."""
    question_header: str = ""
    """The text before a question that follows an answer, from its first special token on; "" if it has none."""
    ends_with_question: bool = False
    """Only the header of the next question ends an answer (GLM-4.5)."""


class Labeller:
    """Labels conversations with one tokenizer; remembers where turns begin and end. Threads may share one."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self.tokenizer = tokenizer
        self.starts: dict[Any, int | None] = {}
        self.ends: dict[Any, int] = {}

    def label(
        self, messages: Sequence[Message], tools: Any = None, *, train_on: Literal["all", "last"] = "all",
        variables: Mapping[str, Any] = MappingProxyType({}),
    ) -> Labelled:  # fmt: skip
        """Render a conversation and label the assistant's turns.

        `train_on = "last"` labels only the last turn. Messages of weight 0 have no labels. `variables` are the
        template's.

        Raises:
            RowError: the template fails on the row, leaves out a part of it, or does not show where a turn is.
            TooSlowError: the template takes too long.
        """
        return self.with_marks(messages, tools, train_on, variables)[0]

    def with_marks(
        self, messages: Sequence[Message], tools: Any, train_on: str, variables: Mapping[str, Any]
    ) -> tuple[Labelled, MarkedRow, list[Chars], list[int]]:
        """The labelled row, what it was made from, and its labels and turn starts in characters of that rendering."""
        if len(self.starts) + len(self.ends) > MEMORY:
            self.starts, self.ends = {}, {}
        try:
            row = self.tokenizer.marked(messages, tools, **variables)
            _check_complete(self.tokenizer, row, variables)
            turns = _Turns(self, row, variables)
            said = turns.answers[-1:] if train_on == "last" else turns.answers
            wanted = [i for i in said if messages[i].get("weight") != 0]
            labels = [span for i in wanted for span in turns.labels(i) if span[0] < span[1]]
            starts = turns.question_starts()
            text = self.tokenizer.spelled(row.rendering.text, turns.special)
            text.encode()
        except RenderError as e:
            raise RowError(e.reason, str(e)) from None
        except UnicodeEncodeError as e:
            raise RowError("lone_surrogate", f"the JSON of a tool or a call escapes half a character: {e}") from None
        edges = [edge for span in labels for edge in span]
        lost, stripped = _thoughts(row, messages, turns.answers)
        made = Labelled(text, turns.respelled(edges + starts), len(edges), lost, stripped, turns.ended)
        return made, row, labels, starts

    @cached_property
    def probe(self) -> Probe:
        """Found by rendering; empty if the template refuses a question, an answer and a question."""
        turns = [{"role": k, "content": c} for k, c in (("user", "?"), ("assistant", "!"), ("user", "."))]
        try:
            row = self.tokenizer.marked(turns)
            (_, asked, _), (first, last, _), (question, _, _) = row.rendering.spans[:3]
            with_prompt, without = (self.tail(row.messages[:1], 0, None, asks, {}) for asks in (True, False))
        except (RenderError, ValueError):
            return Probe()
        gap, text = row.rendering.text[asked:first], row.rendering.text
        begin = self.tokenizer.uncut(gap, common_prefix(gap, without))
        header = gap[begin : self.behind_prompt(gap, with_prompt, without) or begin]
        ends = [token for token in self.tokenizer.special_tokens(row.rendering) if last <= token[0] < question]
        only_question = len(ends) == 1 and ends[0][0] == last
        opening = ends[len(self.tokenizer.turn_end) :]
        return Probe(header, text[opening[0][0] : question].rstrip() if opening else "", only_question)

    def tail(
        self, messages: list[dict[str, Any]], number: int, tools: Any, asks: bool, variables: Mapping[str, Any],
        until: int = -1,
    ) -> str:  # fmt: skip
        """The text behind the marked text of a number, up to that of another one, in a rendering of marked messages."""
        found = self.tokenizer.render(messages, tools, asks, **variables)
        start = max((end for _, end, n in found.spans if n == number), default=0)
        return found.text[start : next((a for a, _, n in found.spans if n == until), len(found.text))]

    def behind_prompt(self, gap: str, asked: str, base: str) -> int | None:
        """Where the generation prompt ends in the text before an answer, `gap`; None if it does not begin there.

        The prompt is what `asked` has more than `base`. It may have added tokens more than the answer's header has: an
        empty thought, where the turn has one with text.
        """
        at = self.tokenizer.uncut(gap, common_prefix(asked, gap))
        begins = at > self.tokenizer.uncut(gap, common_prefix(base, gap))
        return at if begins and self.tokenizer.only_added(asked[at:]) else None


def common_prefix(a: str, b: str) -> int:
    """The number of characters at the start that two texts share."""
    return next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _check_complete(tokenizer: ChatTokenizer, row: MarkedRow, variables: Mapping[str, Any]) -> None:
    """Refuse a row if a message, a call or the tools are not rendered: what has marks must show one."""
    seen = {row.owners[number] for start, end, number in row.rendering.spans if start < end}
    if row.plain_tools and all(i >= 0 for i, _ in seen):
        _check_needed(tokenizer, row, row.plain, None, variables, "the row has tools, and the template renders none")
    for i, kind in dict.fromkeys(row.owners):
        if (i, kind) in seen:
            continue
        if kind in ("content", "answer"):
            role = row.plain[i]["role"]
            raise RenderError(f"message {i} ({role}) is not in the rendering", "template_drops_message")
        if kind.startswith("call"):
            calls = len(row.plain[i]["tool_calls"])
            detail = f"message {i} has {calls} calls, and the template leaves out number {int(kind[5:]) + 1}"
            raise RenderError(detail, "template_drops_tools")
    for k, message in enumerate(row.plain):
        if row.marker.level == 2 and "tool_calls" in message:  # the name of a call alone is no proof
            without = {name: value for name, value in message.items() if name != "tool_calls"}
            others = [*row.plain[:k], without, *row.plain[k + 1 :]]
            detail = f"message {k} calls tools, and the template leaves the calls out"
            _check_needed(tokenizer, row, others, row.plain_tools, variables, detail)


def _check_needed(
    tokenizer: ChatTokenizer, row: MarkedRow, messages: list[dict[str, Any]], tools: Any, variables: Mapping[str, Any],
    detail: str,
) -> None:  # fmt: skip
    """Refuse a row that is rendered in the same way with less in it."""
    with suppress(RenderError):  # the template misses it, so it reads it
        if tokenizer.render(messages, tools, **variables).text == row.rendering.text:
            raise RowError("template_drops_tools", detail)


def _thoughts(row: MarkedRow, messages: Sequence[Message], answers: list[int]) -> tuple[int, int]:
    """The thoughts that are not in the rendering: those that the template never shows, and those that it strips."""
    seen = {row.owners[number] for _, _, number in row.rendering.spans}
    missing = {i for i, kind in row.owners if kind == "thought" and (i, kind) not in seen}
    stripped = [
        i for i in missing if i < answers[-1] and row.traits.shows[not any(messages[i].get(k) for k in THOUGHT_KEYS)]
    ]
    return len(missing) - len(stripped), len(stripped)


class _Turns:
    """Finds the turns of one rendered conversation."""

    def __init__(self, labeller: Labeller, row: MarkedRow, variables: Mapping[str, Any]) -> None:
        self.labeller, self.tokenizer = labeller, labeller.tokenizer
        self.row, self.rendering, self.variables = row, row.rendering, variables
        self.setting = (bool(row.tools), str(variables))
        self.special = self.tokenizer.special_tokens(row.rendering)
        """The special tokens in the template's own text."""
        self.ended = True
        """False if no special token ends the last turn."""
        self.answers = [i for i, m in enumerate(row.plain) if m["role"] == "assistant"]
        self.own: list[list[Span]] = [[] for _ in row.plain]
        """By message: its marked texts, in order."""
        for span in row.rendering.spans:
            if (owner := row.owners[span[2]][0]) >= 0:
                self.own[owner].append(span)
        for i in self.answers:
            self.own[i] = self._without_repeated(i)
        ends = (max((end for _, end, _ in own), default=0) for own in self.own)
        self.until = [0, *accumulate(ends, max)]
        """By message i: the end of the text of the messages before it."""
        starts = (min((a for a, _, _ in own), default=len(self.rendering.text)) for own in reversed(self.own))
        self.since = [*list(accumulate(starts, min))[::-1], len(self.rendering.text)]
        """By message i: the start of the text of message i and all messages after it."""

    def _without_repeated(self, i: int) -> list[Span]:
        """The marked texts of an answer without those that the header of what follows repeats: gpt-oss writes the name
        of the called function into the header of the result. The turn rendered as the last one has as many as are its
        own."""
        own, count = self.own[i], Counter(number for _, _, number in self.own[i])
        if len(count) == len(own):
            return own
        try:
            left = Counter(number for _, _, number in self._up_to(i).spans)
        except RenderError:
            left = Counter(count.keys())
        kept = []
        for span in own:
            left[span[2]] -= 1
            kept += [span] if left[span[2]] >= 0 else []
        return kept

    def _up_to(self, i: int) -> Rendering:
        """The messages up to an answer; after the last message stands another question, because some templates write
        more at the end of a conversation (Phi-3)."""
        question = [{"role": "user", "content": "."}] if i == len(self.own) - 1 else []
        messages = [*self.row.messages[: i + 1], *plain_messages(question, self.row.traits)]
        return self.tokenizer.render(messages, self.row.tools, **self.variables)

    def respelled(self, places: Sequence[int]) -> list[int]:
        """Positions in the text with reserved spelling of characters that are not inside a special token."""
        ends = [end for _, end, _ in self.special]
        shifts = [0, *accumulate(2 - (end - start) for start, end, _ in self.special)]
        return [at + shifts[bisect_right(ends, at)] for at in places]

    def question_starts(self) -> list[int]:
        """Where users' turns begin with the header that the template writes before a question.

        A system prompt that the template writes into the first question stands behind that header, too.
        """
        found: list[int] = []
        header, text = self.labeller.probe.question_header, self.rendering.text
        for i, message in enumerate(self.row.plain if header else ()):
            if message["role"] != "user" or not self.own[i]:
                continue
            before = i - 1 if i and not found and self.row.plain[i - 1]["role"] == "system" else i
            for k in (i, before):
                first = len(text[: self.own[k][0][0]].rstrip()) if self.own[k] else 0
                if text.endswith(header, self.until[k], first):
                    found.append(first - len(header))
                    break
        return found

    def labels(self, i: int) -> list[Chars]:
        """The characters of turn `i`; of those, what is in generation blocks, if the template has them."""
        own = self.own[i]
        first, last = (own[0][0], own[-1][1]) if own else (self.since[i], self.until[i])
        blocks = self.rendering.generated
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
            raise RenderError(f"turn {i} is outside of the generation blocks", "labels_uncertain")
        return found

    def _blocks(self, i: int) -> list[Chars]:
        """The generation blocks with texts of turn `i`, and those without texts that touch one of these."""
        found: list[Chars] = []
        for a, b in self.rendering.generated:
            inside = {self.row.owners[n][0] for start, end, n in self.rendering.spans if a <= start and end <= b}
            if i in inside or (found and found[-1][1] == a and not inside):
                found.append((a, b))
        return found

    def _start(self, i: int, first: int) -> int:
        """The start of turn `i`, whose own text begins at `first`: behind the generation prompt, or else behind the
        header of answers, which must stand once between its neighbours' texts."""
        spans = self.rendering.spans
        before = bisect_right(spans, first, key=lambda span: span[1]) - 1
        while before >= 0 and self.row.owners[spans[before][2]][0] == i:
            before -= 1
        anchor, number = (spans[before][1], spans[before][2]) if before >= 0 else (0, -1)
        gap = self.rendering.text[anchor:first]
        key = (gap, i and self.row.plain[i - 1]["role"], number < 0, self.setting)
        if key not in self.labeller.starts or not self.own[i]:
            self.labeller.starts[key] = self._behind_prompt(i, number, gap)
        at, header = self.labeller.starts[key], self.labeller.probe.answer_header
        if at is None and header.strip() and gap.count(header) == 1:
            at = gap.index(header) + len(header)
        if at is None:
            detail = f"turn {i} does not begin as add_generation_prompt says, nor with the header of answers"
            raise RenderError(detail, "labels_uncertain")
        return anchor + at

    def _behind_prompt(self, i: int, number: int, gap: str) -> int | None:
        """Where turn `i` begins in the text between it and the marked text `number` before it; None if unknown."""
        if not i:
            return None
        before = self.row.messages[:i]
        try:
            asked, base = (
                self.labeller.tail(before, number, self.row.tools, asks, self.variables) for asks in (True, False)
            )
            if asked != base:
                return self.labeller.behind_prompt(gap, asked, base)
            # A template without a generation prompt: its header is what it writes before another answer.
            marker = Marker(self.tokenizer.special_text)
            marker.owners, marker.values = [*self.row.owners], [*self.row.marker.values]
            probe = marker.message({"role": "assistant", "content": "probe"}, i, self.row.traits)
            until = len(self.row.owners)
            lead = self.labeller.tail([*before, probe], number, self.row.tools, False, self.variables, until)
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
        key = (gap, i == len(self.own) - 1, bool(self.own[i]), self.setting)
        if key not in self.labeller.ends or not self.own[i]:
            self.labeller.ends[key] = self._same_whatever_follows(i, last, gap)
        end = last + self.labeller.ends[key]
        near = self.special[bisect_left(self.special, (last,)) : bisect_left(self.special, (until,))]
        if not any(behind <= end for _, behind, _ in near):
            end = self._by_next_token(i, last, near)
        inside = spans[bisect_right(spans, start, key=lambda span: span[1]) : bisect_left(spans, (end,))]
        if any(self.row.owners[n][0] != i for _, _, n in inside):
            raise RenderError(f"another message is inside of turn {i}", "labels_uncertain")
        return end

    def _by_next_token(self, i: int, last: int, near: list[tuple[int, int, str]]) -> int:
        """The end of a turn by the special tokens between its text and the next message: behind the first one, or
        before it if it begins the header of another answer."""
        probe, text = self.labeller.probe, self.rendering.text
        if not near:
            if not probe.ends_with_question or i != self.answers[-1]:
                detail = f"no special token ends turn {i}: the model could not learn to stop"
                raise RenderError(detail, "labels_uncertain")
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
        if own := self.own[i]:
            at = next((end for _, end, number in reversed(alone.spans) if number == own[-1][2]), -1)
        else:
            at = last if alone.text.startswith(self.rendering.text[:last]) else -1
        if at < 0:
            return 0
        tail = alone.text[at:]
        shared = common_prefix(tail, gap)
        return len(gap[: min(self.tokenizer.uncut(tail, shared), self.tokenizer.uncut(gap, shared))].rstrip())
