"""One rendering for all conversations of one shape: a cache for templates, which take 0.1 to 0.3 ms for a row.

**The shape** of a conversation is what is left without its texts; equal texts share a number. Objects that the template
writes with `tojson` alone (tools, arguments of calls) count as texts. **The plan** of a shape is what the template
writes between the texts, and where labels begin and end in it. It is made from two sets of placeholders, bland ones and
awkward ones, which must give the same; and it is compared with the first row.

A template may ask about a text: does it hold `</think>`, is it a number? So the strings of the template are tried as
texts, once, and in front, behind and inside of texts. Those that change what the template writes, and all that have
punctuation (`startswith('<tool_response>')`), send a row with such a text the long way, to `Labeller.label`. If odd
values (a number, a long text, many lines) change anything, no row is joined.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.pack.chat import MarkedRow, TooSlowError
from datakit.pack.labels import Chars, Labelled, Labeller, RowError
from datakit.pack.marks import (
    FIRST_PRIVATE,
    MARKS,
    OPEN,
    RESERVED,
    RESERVED_TEXT,
    Marker,
    Message,
    RenderError,
    around,
    marked_messages,
    plain_messages,
    plain_tools,
)

Outcome = Labelled | RowError
Row = tuple[list[dict[str, Any]], str | None, dict[str, Any]]
"""The messages, tools and variables of a conversation."""

BLAND, AWKWARD = "text{}of", "Aa{} \"q\" \\ 'x'\n\n\t <b>&amp;\u00e9\u4f60 %s {{}} zZ"
"""Placeholders for texts; the first {} is their number."""
ODD = ("7", "-1.5", "true", "None", "[1]", '{"a": 1}', "WORD", "http://a.b/c", "x" * 300, "x y\n" * 3000, AWKWARD)
NEUTRAL = "\ua66e"
"""A text that no template looks for."""
_HOLE = re.compile(f"{OPEN}(.)..", re.DOTALL)
MAX_PLANS = 20_000


def _json(value: Any, **how: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **how)


def _as_it_is(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _in_json(value: Any) -> str | None:
    return _json(value)[1:-1] if isinstance(value, str) else None


def _indented(value: Any) -> str:
    return _json(value, indent=4)


WAYS = (_as_it_is, _in_json, _json, _indented)
"""How a template may write a text or an object."""


class ShapePlan(NamedTuple):
    """What a template makes of the conversations of one shape."""

    gaps: list[str]
    """The template's own text before, between and after the texts, special tokens in reserved spelling."""
    holes: list[tuple[int, int]]
    """Between two gaps: the number of the text, and the number of its way in `WAYS`."""
    edges: list[tuple[int, int]]
    """Where labels begin and end, then where users' turns begin: the number of a gap, and characters of it before."""
    facts: Labelled
    """Of the row that the plan was made from: all but its text and places."""


class _Cutter(Marker):
    """Leaves the texts out between the marks."""

    def __init__(self, special: re.Pattern[str], tools_whole: bool, arguments_whole: bool) -> None:
        super().__init__(special)
        self.whole = (tools_whole, arguments_whole)
        self.numbers: dict[str, str] = {}

    def around(self, text: str, i: int, kind: str) -> str:
        if text not in self.numbers:
            self.numbers[text] = self.number(text, i, kind)
        return around("", self.numbers[text])

    def object(self, value: dict[str, Any], i: int, kind: str) -> Any:
        if self.whole[i >= 0]:
            return {OPEN + self.number(value, i, kind): bool(value)}
        return value if i < 0 else self.each(value, i, kind)


def _filled(shape: Any, values: Sequence[Any]) -> Any:
    """A shape with values in place of the texts that were cut out."""
    if isinstance(shape, str):
        return _HOLE.sub(lambda hole: values[ord(hole[1]) - FIRST_PRIVATE], shape) if OPEN in shape else shape
    if isinstance(shape, dict):
        key = next(iter(shape), "")
        if key.startswith(OPEN):
            return values[ord(key[1]) - FIRST_PRIVATE]
        return {name: _filled(value, values) for name, value in shape.items()}
    return [_filled(value, values) for value in shape] if isinstance(shape, list) else shape


def _placeholders(pattern: str, values: Sequence[Any]) -> list[Any]:
    """A text for each text, and an object for each object."""
    key = "name" if pattern is BLAND else "a'\"b"
    made: list[Any] = []
    for number, value in enumerate(values):
        text = pattern.replace("{}", str(number), 1)
        whole = {key: text, "type": key, "function": {"name": text, "number": [number, None]}} if value else {}
        made.append(whole if isinstance(value, dict) else text)
    return made


class Shapes:
    """Labels batches of conversations: the first ones of each shape one by one, the others by its plan."""

    def __init__(self, labeller: Labeller, train_on: Literal["all", "last"] = "all") -> None:
        self.labeller, self.tokenizer, self.train_on = labeller, labeller.tokenizer, train_on
        self.plans: dict[Any, ShapePlan | None] = {}
        self.seen: Counter[Any] = Counter()
        self.joined = 0
        """Rows that were joined from a plan."""
        self._roles: dict[str, int] = {}
        self._whole = self._written_whole()
        self._telling = self._strings_that_matter()

    # What the template asks about texts: found once, by probes.

    def _strings_that_matter(self) -> set[str] | None:
        """The template's strings that change what it makes of a text with them; None if it asks about more."""
        user, answer = ({"role": role, "content": NEUTRAL} for role in ("user", "assistant"))
        thought = answer | {"reasoning_content": NEUTRAL}
        system = {"role": "system", "content": NEUTRAL}
        tries = ([system, user, thought, user, thought], [user, thought, user, thought], [user, answer])
        turns, usual = next(((t, found) for t in tries if (found := self._around(t, NEUTRAL)) is not None), ([], None))
        if usual is None or any(self._around(turns, text) != usual for text in ODD):
            return None
        strings = {text for text in self.tokenizer.constants if text.strip()}
        telling = {text for text in strings if len(text.strip()) > 2 and re.search(r"[^\w\s]", text)}
        for text in strings - telling:
            if any(
                self._around(turns, tried) != usual
                for tried in (text + NEUTRAL, NEUTRAL + text, NEUTRAL + text + NEUTRAL)
            ):
                telling.add(text)
        # a text that has one of these also has every part of it
        return {text for text in telling if not any(part in text for part in telling - {text})}

    def _around(self, turns: Sequence[Message], text: str) -> list[str] | None:
        """The template's own text around texts that begin and end with `text`; None if it changes them."""
        fields = ("content", "reasoning_content")
        texts = [f"{text.strip()}{k or ''}{text.strip()}" for k in range(6)]
        filled = [
            dict(turn) | {name: texts[2 * (i % 3) + n] for n, name in enumerate(fields) if name in turn}
            for i, turn in enumerate(turns)
        ]
        marker, traits = Marker(self.tokenizer.special_text), self.tokenizer.traits
        try:
            found = self.tokenizer.render(marked_messages(marker, filled, traits))
            if found.text != self.tokenizer.render(plain_messages(filled, traits)).text:
                return None
        except RenderError:
            return None
        if any(found.text[a:b] != marker.values[number] for a, b, number in found.spans):
            return None
        bounds = [0, *(edge for a, b, _ in found.spans for edge in (a, b)), len(found.text)]
        return [found.text[a:b] for a, b in zip(bounds[::2], bounds[1::2], strict=True)]

    def _written_whole(self) -> tuple[bool, bool]:
        """Whether the template writes tools, and the arguments of calls, with `tojson` alone."""
        function = {"name": "f", "arguments": {"a": "b"}}
        tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
        call = {"id": "abcdefghi", "type": "function", "function": function}
        turns: list[Message] = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "c", "tool_call_id": "abcdefghi", "name": "f"},
            {"role": "assistant", "content": "!"},
        ]
        try:
            row = self.labeller.with_marks(turns, [tool], "all", {})[1]
        except RowError:
            return False, False
        seen = [row.marker.values[number] for _, _, number in row.rendering.spans]
        return tool in seen, function["arguments"] in seen and "b" not in seen

    # Rows.

    def label(self, messages: pa.ListArray, tools: Sequence[str | None], variables: Sequence[Any]) -> list[Outcome]:
        """Label the conversations of a batch; for a row that is refused, the reason."""
        flat = messages.flatten()
        bounds = [0, *np.cumsum(pc.list_value_length(messages).to_numpy(zero_copy_only=False)).tolist()]
        texts = flat.field("content").fill_null("").to_pylist()

        def row(k: int) -> Row:
            return flat[bounds[k] : bounds[k + 1]].to_pylist(), tools[k], variables[k]

        made: list[Any] = [None] * len(messages)
        for key, members in self._groups(flat, texts, bounds, row, tools, variables).items():
            self.seen[key] += len(members)
            if self.seen[key] > 1 and (plan := self._plan_of(key, row(members[0][0]), members[0][1])):
                self.joined += len(members)
                for (k, _), found in zip(members, _join(plan, [values for _, values in members]), strict=True):
                    made[k] = found
        for k in (k for k, found in enumerate(made) if found is None):
            try:
                made[k] = self._alone(row(k))
            except TooSlowError as e:
                e.sequence = k
                raise
        return made

    def _groups(
        self, flat: pa.StructArray, texts: list[str], bounds: list[int], row: Callable[[int], Row],
        tools: Sequence[str | None], variables: Sequence[Any],
    ) -> dict[Any, list[tuple[int, list[Any]]]]:  # fmt: skip
        """The rows of each shape that a plan may join: their numbers and texts.

        Most conversations have nothing but roles and plain texts, which all differ. Their shape is read off columns.
        """
        if self._telling is None:
            return {}
        data = _bytes_of(flat.field("content"))
        has_calls = flat.field("tool_calls").null_count < len(flat)
        telling = [text for text in self._telling if has_calls or text.encode() in data]
        reserved = (*RESERVED, *MARKS) if RESERVED.encode()[:2] in data else ()  # the same two bytes begin them all
        codes = self._codes(flat, texts, [*telling, *reserved, *(["think>"] if b"think>" in data else [])])
        odd, raw = np.concatenate([[0], np.cumsum(codes < 0)])[bounds], codes.tobytes()
        groups: dict[Any, list[tuple[int, list[Any]]]] = {}
        for k, is_plain in enumerate((odd[1:] == odd[:-1]).tolist()):
            a, b = bounds[k], bounds[k + 1]
            key: Any = raw[2 * a : 2 * b]
            values: list[Any] = texts[a:b]
            if not is_plain or len(set(values)) < b - a or tools[k] or variables[k]:
                key, values = self._shape(row(k), telling)
            if key is not None:
                groups.setdefault(key, []).append((k, values))
        return groups

    def _codes(self, flat: pa.StructArray, texts: list[str], telling: list[str]) -> npt.NDArray[np.int16]:
        """The role of each message and whether it has weight; -1 if there is more to say of it."""
        roles = flat.field("role").fill_null("").dictionary_encode()
        names = [self._roles.setdefault(name, len(self._roles)) for name in roles.dictionary.to_pylist()]
        silent = flat.field("weight").fill_null(1.0).to_numpy(zero_copy_only=False) == 0
        strings = self.tokenizer.constants
        odd = np.array([not t or t[0].isspace() or t[-1].isspace() or t in strings for t in texts], np.bool_)
        for text in telling:
            odd |= np.array([text in t for t in texts], np.bool_)
        for name in ("name", "tool_calls", "tool_call_id", "reasoning_content"):
            if flat.field(name).null_count < len(flat):
                odd |= flat.field(name).is_valid().to_numpy(zero_copy_only=False)
        codes = np.array(names, np.int16)[roles.indices.to_numpy(zero_copy_only=False)] * 2 + silent
        return np.where(odd, -1, codes).astype(np.int16)

    def _cut(self, row: Row) -> tuple[list[Any], Any, _Cutter]:
        """The messages and tools of a row without its texts, and the texts."""
        messages, tools, _ = row
        cutter = _Cutter(self.tokenizer.special_text, *self._whole)
        cut = marked_messages(cutter, messages, replace(self.tokenizer.traits, parts=False))
        weights = [{"weight": float(m.get("weight") != 0)} for m in messages]
        return [m | w for m, w in zip(cut, weights, strict=True)], cutter.tools(plain_tools(tools)), cutter

    def _shape(self, row: Row, telling: list[str]) -> tuple[str | None, list[Any]]:
        """A row without its texts, as JSON, and its texts. None if it cannot be told, or if a text is one of the
        template's own strings or has one that it looks for in texts."""
        whole = _json(row[:2])
        if RESERVED_TEXT.search(whole) or "\\ud" in whole or "\\uD" in whole:  # JSON that may escape half a character
            return None, []
        try:
            messages, tools, cutter = self._cut(row)
        except RenderError:
            return None, []
        given = [value for value in cutter.values if isinstance(value, str)]
        if not self.tokenizer.constants.isdisjoint(given) or any(text in value for text in telling for value in given):
            return None, []
        return _json([messages, tools, row[2]]), cutter.values

    def _alone(self, row: Row) -> Outcome:
        messages, tools, variables = row
        if not messages:
            return RowError("empty", "no messages")
        try:
            return self.labeller.label(messages, tools, train_on=self.train_on, variables=variables)
        except RowError as e:
            return e

    def _plan_of(self, key: Any, row: Row, values: list[Any]) -> ShapePlan | None:
        if key not in self.plans:
            if len(self.plans) > MAX_PLANS:
                self.plans, self.seen = {}, Counter()
            plan = self._plan(row)
            right = plan is not None and _join(plan, [values]) == [self._alone(row)]
            self.plans[key] = plan if right else None
        return self.plans[key]

    def _plan(self, row: Row) -> ShapePlan | None:
        """The plan of a row's shape; None if placeholders of two kinds give different ones."""
        messages, tools, cutter = self._cut(row)
        made = []
        for pattern in (AWKWARD, BLAND):
            values = _placeholders(pattern, cutter.values)
            given = _filled(messages, values), _filled(tools, values)
            try:
                found = self.labeller.with_marks(*given, self.train_on, row[2])
            except (RowError, TooSlowError):
                return None
            made.append(self._pieces(values, *found))
        awkward, bland = made
        if awkward is None or bland is None or awkward._replace(holes=[]) != bland._replace(holes=[]):
            return None
        return awkward if [hole for hole, _ in awkward.holes] == [hole for hole, _ in bland.holes] else None

    def _pieces(
        self, values: list[Any], labelled: Labelled, row: MarkedRow, labels: list[Chars], starts: list[int]
    ) -> ShapePlan | None:
        """The plan that a row of placeholders shows."""
        numbers = {_json(value): number for number, value in enumerate(values)}
        text, spelled = row.rendering.text, self.tokenizer.spelled
        tokens = self.tokenizer.special_tokens(row.rendering)
        wanted = [edge for span in labels for edge in span] + starts
        edges = [(-1, 0)] * len(wanted)
        gaps, holes, at = [""], list[tuple[int, int]](), 0
        for a, b, number in [*row.rendering.spans, (len(text), len(text), -1)]:
            inside = [(start - at, end - at, content) for start, end, content in tokens if at <= start and end <= a]
            for k, edge in enumerate(wanted):
                if at <= edge <= a and edges[k][0] < 0:
                    before = [token for token in inside if token[1] <= edge - at]
                    edges[k] = (len(gaps) - 1, len(gaps[-1]) + len(spelled(text[at:edge], before)))
            gaps[-1] += spelled(text[at:a], inside)
            value = None if number < 0 else row.marker.values[number]
            hole = numbers.get(_json(value))
            at = b
            if hole is None:
                gaps[-1] += text[a:b]
                continue
            way = next((n for n, way in enumerate(WAYS) if way(value) == text[a:b]), None)
            if way is None:
                return None
            holes.append((hole, way))
            gaps.append("")
        if any(gap < 0 for gap, _ in edges) or row.marker.level > 1:
            return None
        return ShapePlan(gaps, holes, edges, labelled._replace(text="", places=[]))


def _bytes_of(texts: pa.StringArray) -> bytes:
    """The bytes of all texts of a column."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return b"" if data is None else memoryview(data)[ends[0] : ends[-1]].tobytes()


def _join(plan: ShapePlan, rows: list[list[Any]]) -> list[Labelled]:
    """The conversations of a shape, from their texts."""
    columns = list(zip(*rows, strict=True))
    parts: list[Any] = [repeat(plan.gaps[0], len(rows))]
    ends = np.zeros((len(plan.gaps), len(rows)), np.int64)
    """Characters of texts before each gap, by row."""
    for at, (gap, (number, way)) in enumerate(zip(plan.gaps[1:], plan.holes, strict=True), 1):
        column = columns[number] if way == 0 else list(map(WAYS[way], columns[number]))
        parts += [column, repeat(gap, len(rows))]
        ends[at] = ends[at - 1] + np.fromiter(map(len, column), np.int64, len(rows))
    own = np.cumsum([0, *map(len, plan.gaps)])
    places = np.array([own[gap] + before for gap, before in plan.edges], np.int64)
    edges = (ends[[gap for gap, _ in plan.edges]].T + places).tolist()
    facts = plan.facts[2:]
    return [
        Labelled(text, found, *facts) for text, found in zip(map("".join, zip(*parts, strict=True)), edges, strict=True)
    ]
