"""One rendering for all conversations of one shape: a cache for templates, which take 0.1 to 0.3 ms for a row.

**The shape** of a conversation is what is left without its texts; equal texts share a number. Objects that the template
writes with `tojson` alone (tools, arguments of calls) count as texts. **The plan** of a shape is what the template
writes between the texts, and where labels begin and end in it. It is made from two sets of placeholders, bland ones and
awkward ones, which must give the same; and it is compared with the first row. A shape may also be refused.

A template may ask about a text: does it hold `</think>`, is it a number? So plans of a few conversations are made from
other placeholders, once: with the strings of the template in front, behind and inside. Those that change the plan, and
all that have punctuation (`startswith('<tool_response>')`), send a row with such a text the long way, to
`Labeller.label`. If odd values (a number, a long text, many lines) change anything, no row is joined.

Most conversations have nothing but roles and texts. Their shapes are read off Arrow columns, without a dict a message.
"""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.pack.labels import Labelled, Labeller, RenderedTurns
from datakit.pack.marks import CALL, MARKS, RESERVED, Marker, RenderError, plain_tools

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
