"""Renders a template once for each shape of conversation, and joins the texts of all rows of that shape.

The shape of a conversation is its roles, which fields its messages have, how its calls and tools are nested, and the
template's variables. To learn what a template makes of a shape, the values of rows are replaced by `Sealed` texts and
`SealedJson` objects, and `label` renders and labels them as always. The result is a `ShapePlan`: the template's own
text, where values go, where labels begin and end, and all that the template or `label` asked about the values ("does it
begin with <think>?"). For each row whose values give the same answers, the template takes the same branches, so its
rendering is the plan's text with the values put in.

A text is at first one value, and so are the arguments of a call. Rows without a plan, or that do not fit it, are looked
at more closely: the white space around a text, `<think>` and `</think>` in an answer are then parts of the shape, and
what is between them are values; and at last the keys of arguments, too.

All other rows are rendered one by one: shapes whose values a template transforms, or looks into in a way that cannot be
followed (the description of a tool); values with another answer; and texts with the template's own header, where
`label` compares texts. As a check, the first rows of each plan are rendered in both ways.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, repeat
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.pack.chat import ChatTokenizer, RenderError, unmarked
from datakit.pack.labels import Labelled, RowError, bytes_before, label
from datakit.pack.template import TooSlowError, Watch
from datakit.pack.tracked import (
    BEGIN,
    END,
    FIELDS,
    TOOLS,
    WIDTH,
    Holes,
    LooksInsideError,
    Place,
    Question,
    Sealed,
    SealedJson,
    pieces,
    spelled,
)

Int64 = npt.NDArray[np.int64]
TrainOn = Literal["all", "last"]

TEXTS = ("content", "reasoning_content", "name", "tool_call_id")
"""The fields of a message that are texts; each is null, empty or filled."""
APART = "\ufdd5"
"""Between values that are searched at once. A question with this character costs time, and changes no answer."""
CHECKED = 1
"""Rows of each plan that are rendered in full, too."""
MIN_ROWS = 2
"""A shape gets a plan as soon as this many rows have it."""
MAX_SHAPES = 50_000
"""More shapes have no plans: it bounds the memory."""
MAX_SPACE = 8
"""More white space on one side of a text is no part of a shape."""

Structure = tuple[Any, ...]
"""What is known of a value: ("text", parts), where a part is a text or None for a hole; ("json", filled) for an object;
("dict", keys and structures), ("list", structures) or ("literal", type, value) for what holds them."""
PLAIN: Structure = ("text", (None,))
EMPTY: Structure = ("text", ())


@dataclass(frozen=True, slots=True)
class Form:
    """The shape of a message."""

    role: str
    fields: tuple[tuple[str, Structure], ...]
    learnt: bool = True
    """False if its weight is 0."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a conversation."""

    forms: tuple[Form, ...]
    first: int = 0
    """The first message that may be labelled."""
    tools: Structure | None = None
    variables: str = "{}"
    """JSON."""

    def sealed(self, holes: Holes) -> tuple[list[dict[str, Any]], Any]:
        """The messages and the tools, with holes for values."""
        messages = []
        for i, form in enumerate(self.forms):
            numbers = count()
            message: dict[str, Any] = {"role": form.role, "content": "", "weight": None if form.learnt else 0}
            for name, structure in form.fields:
                tag = 1 + i * WIDTH + FIELDS.index(name)
                message[name] = _sealed(structure, i, numbers, tag, holes)
            messages.append(message)
        return messages, self.tools and _sealed(self.tools, -1, count(), TOOLS, holes)


def _sealed(structure: Structure, i: int, numbers: Iterator[int], tag: int, holes: Holes) -> Any:
    """A value of message `i` with this structure; its holes get the next of `numbers`."""
    kind, *given = structure
    if kind == "text":
        text = "".join(holes.text((i, next(numbers), "")) if part is None else part for part in given[0])
        return Sealed(text, [(0, len(text), tag)], holes) if BEGIN in text else text
    if kind == "json":
        return SealedJson((i, next(numbers)), given[0], tag, holes)
    if kind == "dict":
        return {key: _sealed(inner, i, numbers, tag, holes) for key, inner in given[0]}
    return given[1] if kind == "literal" else [_sealed(inner, i, numbers, tag, holes) for inner in given[0]]


class _NoShapeError(Exception):
    """A value has a structure that no shape has."""


def _text(text: str, values: list[Any], thoughts: bool = False) -> Structure:
    """The structure of a text, with its white space, and its thought if it may have one; adds its values."""
    around = [text]
    close = text.find("</think>") if thoughts else -1
    if close < 0 and text.strip() == text:
        values.append(text)
        return PLAIN
    if close >= 0:
        begin = text.find("<think>", 0, close)
        before = [text[:begin], "<think>"] if begin >= 0 else []
        around = [*before, text[begin + 7 if begin >= 0 else 0 : close], "</think>", text[close + 8 :]]
    parts: list[str | None] = []
    literal = ""
    for part in around:
        core = part.strip()
        start = part.index(core) if core else len(part)
        if max(start, len(part) - start - len(core)) > MAX_SPACE:
            raise _NoShapeError
        if not core or part in ("<think>", "</think>"):
            literal += part
            continue
        parts += [literal + part[:start], None]
        values.append(core)
        literal = part[start + len(core) :]
    found = tuple(part for part in [*parts, literal] if part != "")
    return PLAIN if found == (None,) else ("text", found)


def _object(value: Any, given: Any, values: list[Any]) -> Structure:
    if not all(isinstance(key, str) for key in value) or (value and not any(value)):
        raise _NoShapeError
    values.append((given, value))
    return "json", bool(value)


def _call(value: Any, values: list[Any], closely: bool, depth: int = 0) -> Structure:
    """The structure of a call: its own keys are known, its arguments are one value, unless looked at closely."""
    if not isinstance(value, dict) or depth > 1:
        raise _NoShapeError
    inner: list[tuple[str, Structure]] = []
    for key, own in value.items():
        parsed = _parsed(own) if key == "arguments" and isinstance(own, str) else own
        if not key or key in ("type", "index") or own is None:
            found: Structure = ("literal", type(own).__name__, own)
        elif key == "function":
            found = _call(own, values, closely, depth + 1)
        elif key == "arguments" and isinstance(parsed, dict):
            found = _value(parsed, values) if closely else _object(parsed, own, values)
        elif isinstance(own, str):
            found = _value(own, values)
        else:
            raise _NoShapeError
        inner.append((key, found))
    return _hashable(("dict", tuple(inner)))


def _value(value: Any, values: list[Any]) -> Structure:
    """The structure of a JSON value; its texts are values."""
    if isinstance(value, str):
        values += [value] if value else []
        return PLAIN if value else EMPTY
    if isinstance(value, dict):
        return "dict", tuple((key, _value(inner, values)) for key, inner in value.items())
    if isinstance(value, list):
        return "list", tuple(_value(inner, values) for inner in value)
    return "literal", type(value).__name__, value


def _hashable(structure: Structure) -> Structure:
    try:
        hash(structure)
    except TypeError:
        raise _NoShapeError from None
    return structure


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _listed(text: str, values: list[Any], each: Any) -> Structure | None:
    """The structure of calls or of tools, which are a JSON list; None for what a template does not get."""
    if "\\ud" in text or "\\uD" in text:  # half a character may be escaped: `label` refuses it
        raise _NoShapeError
    given = _parsed(text)
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise _NoShapeError
    return ("list", tuple(each(item, values) for item in given)) if given else None


def _tools(text: str | None) -> tuple[Structure | None, list[Any]] | None:
    """The structure of the tools and their values; None if no shape has it."""
    values: list[Any] = []
    try:
        found = _listed(text, values, lambda tool, values: _object(tool, tool, values)) if text else None
    except (_NoShapeError, RecursionError):
        return None
    return found, values


@dataclass(frozen=True, slots=True)
class ShapePlan:
    """What a template makes of all conversations of one shape."""

    texts: tuple[str, ...]
    """The template's text before, between and after the values, special tokens in reserved spelling."""
    holes: tuple[int, ...]
    """The places whose values stand between the texts."""
    places: tuple[Place, ...]
    edges: tuple[tuple[int, int], ...]
    """Where labels begin and end: bytes of the template before it, and how many values are before it."""
    asked: tuple[Question, ...]
    structural: int
    ended: bool
    not_rendered: bool
    """Whether the template leaves out a thought, and whether it leaves out one of an earlier turn alone."""
    stripped: bool

    def fitting(self, columns: Mapping[int, Sequence[str]], rows: int) -> list[int]:
        """Which of the rows have values that give the answers that the plan was made with, ascending.

        `columns` has the texts of each place, of all rows. Few rows give another answer, so each question is first
        asked about all rows at once.
        """
        left = list(range(rows))
        whole = {i: APART.join(columns[i]) for i in {i for i, kind, _ in self.asked if kind == "has"}}
        for i, kind, text in self.asked:
            column = columns[i]
            if kind == "has":
                if text in whole[i]:
                    left = [k for k in left if text not in column[k]]
                continue
            at = slice(1) if kind == "lstrip" else slice(-1, None)
            removed = {c for c in {value[at] for value in column} if (c in text if text else c.isspace())} - {""}
            if removed:
                left = [k for k in left if column[k][at] not in removed]
        return left

    def joined(self, columns: Mapping[int, Sequence[str]]) -> list[str]:
        """The text to encode of each row; `columns` as in `fitting`."""
        parts: list[Iterable[str]] = [repeat(self.texts[0])]
        for text, i in zip(self.texts[1:], self.holes, strict=True):
            parts += [columns[i], repeat(text)]
        return list(map("".join, zip(*parts, strict=False)))


def make_plan(tokenizer: ChatTokenizer, shape: Shape, train_on: TrainOn, watch: Watch) -> ShapePlan | None:
    """The plan of a shape; None if its rows must be rendered one by one."""
    holes = Holes()
    try:
        row = _labelled(tokenizer, *shape.sealed(holes), shape, train_on, watch)
    except LooksInsideError:
        return None
    if row is None or BEGIN not in row.text:
        return None
    parts = pieces(row.text)
    texts, placed = tuple(map(str, parts[::2])), tuple(map(int, parts[1::2]))
    edges = [_edge(row.text, at) for span in row.labels for at in span]
    if any(BEGIN in text or END in text for text in texts) or any(edge is None for edge in edges):
        return None
    questions = holes.asked | _headers(tokenizer, shape, texts, placed, holes.places)
    questions |= _joints(tokenizer, texts, placed)
    found = tuple(edge for edge in edges if edge is not None)
    return ShapePlan(
        texts, placed, tuple(holes.places), found, tuple(sorted(questions)), row.structural, row.ended,
        row.thoughts_not_rendered > 0, row.thoughts_stripped > 0,
    )  # fmt: skip


def _labelled(
    tokenizer: ChatTokenizer, messages: list[dict[str, Any]], tools: Any, shape: Shape, train_on: TrainOn, watch: Watch
) -> Labelled | None:
    """The messages as `label` renders them; None if it refuses them, or if the template takes too long."""
    try:
        watch.begin(sum(len(m["content"] or "") for m in messages) + 1)
        variables = json.loads(shape.variables)
        return label(tokenizer, messages, tools, train_on=train_on, first=shape.first, variables=variables)
    except (RowError, RenderError, LooksInsideError, TooSlowError):
        return None
    finally:
        watch.begin(0)


def _edge(text: str, at: int) -> tuple[int, int] | None:
    """A place in the text of a plan, as in `ShapePlan.edges`; None if it is inside a value."""
    before = text[:at]
    if before.count(BEGIN) != before.count(END):
        return None
    own = list(map(str, pieces(before)[::2]))
    return sum(len(part.encode()) for part in own), len(own) - 1


def _headers(
    tokenizer: ChatTokenizer, shape: Shape, texts: Sequence[str], placed: Sequence[int], places: Sequence[Place]
) -> set[Question]:
    """`label` searches for the generation prompt and the header of answers, also next to values, which may not be the
    rest of one (`<think>` is DeepSeek's)."""
    variables = json.loads(shape.variables)
    roles = {form.role for form in shape.forms}
    prompts = [tokenizer.answer_header, *(tokenizer.prompt_after(role, **variables) for role in roles)]
    lines = {line.strip() for prompt in prompts for line in prompt.splitlines()} - {""}
    found: set[Question] = {(i, "has", line) for i in placed for line in lines}
    for prompt in {tokenizer.structure(unmarked(prompt)).text for prompt in prompts}:
        cuts = [k for k in range(1, len(prompt)) if prompt[k:].strip()]
        found |= {
            (i, "has", prompt[k:].strip())
            for before, i in zip(texts, placed, strict=False)
            for k in cuts
            if before.endswith(prompt[:k])
        }
    said = {i for i in placed if places[i][0] >= 0 and shape.forms[places[i][0]].role == "assistant"}
    return found | {(i, "lstrip", "") for i in said if places[i][2] == ""}


def _joints(tokenizer: ChatTokenizer, texts: Sequence[str], placed: Sequence[int]) -> set[Question]:
    """`label` looks for added tokens (`<think>`) around the start of an answer: no value may complete one."""
    found: set[Question] = set()
    plain = [t for t in tokenizer.added if t not in tokenizer.special and len(t) > 1]
    for before, i, after in zip(texts[:-1], placed, texts[1:], strict=True):
        for token in plain:
            cuts = range(1, len(token))
            found |= {(i, "has", token[k:]) for k in cuts if before.endswith(token[:k])}
            found |= {(i, "has", token[:k]) for k in cuts if after.startswith(token[k:])}
    return found


@dataclass(frozen=True, slots=True)
class Sequences:
    """N conversations, each a run of messages; one message may be in several."""

    messages: pa.StructArray
    """Flat."""
    starts: Int64
    """(N,): the first message of each."""
    ends: Int64
    """(N,): behind its last one."""
    first: Int64
    """(N,): the first message that may be labelled, counted from its own first one."""
    rows: Int64
    """(N,): the row that it belongs to, ascending."""

    @classmethod
    def of(cls, messages: pa.ListArray) -> "Sequences":
        """Each row of a column of messages."""
        ends = _bounds(messages)
        rows = np.arange(len(messages))
        return cls(messages.flatten(), ends[:-1], ends[1:], np.zeros(len(rows), np.int64), rows)

    @classmethod
    def of_answers(cls, messages: pa.ListArray) -> "Sequences":
        """Each row up to each of its answers, which alone is labelled; the whole row where none is learned."""
        whole = cls.of(messages)
        flat = whole.messages
        said = pc.and_(pc.equal(flat.field("role"), "assistant"), pc.not_equal(flat.field("weight").fill_null(1.0), 0))
        answers = np.flatnonzero(said.fill_null(False).to_numpy(False))
        rows = np.searchsorted(whole.ends, answers, side="right")
        silent = np.bincount(rows, minlength=len(messages)) == 0
        of_row = np.concatenate([np.flatnonzero(silent), rows])
        order = np.argsort(of_row, kind="stable")
        starts = whole.starts[of_row]
        ends = np.concatenate([whole.ends[silent], answers + 1])
        first = np.concatenate([whole.first[silent], answers - whole.starts[rows]])
        return cls(flat, *(column[order] for column in (starts, ends, first, of_row)))

    @classmethod
    def of_pairs(cls, prompts: pa.ListArray, answers: Sequence[pa.ListArray]) -> tuple["Sequences", Int64]:
        """The prompt and the answer of each row, for each side that has an answer; with the number of the side, (N,).

        Only messages of the answer may be labelled. Rows without a prompt that lack an answer are left out.
        """
        parts = [prompts, *answers]
        flat = pa.concat_arrays([part.flatten() for part in parts])
        bounds = [_bounds(part) for part in parts]
        offsets = np.cumsum([0, *(int(own[-1]) for own in bounds)])
        sizes = np.stack([np.diff(own) for own in bounds], axis=1)
        whole = (sizes[:, :1] > 0) | (sizes[:, 1:] > 0).all(axis=1, keepdims=True)
        rows, sides = np.nonzero((sizes[:, 1:] > 0) & whole)
        runs = np.stack([np.zeros_like(sides), sides + 1], axis=1)  # of messages: a prompt, an answer
        lengths = sizes[rows[:, None], runs]
        begins = np.stack([own[:-1] + at for own, at in zip(bounds, offsets[:-1], strict=True)], axis=1)
        own = lengths.ravel()
        within = np.arange(int(own.sum())) - np.repeat(np.cumsum(own) - own, own)
        taken = flat.take(pa.array(np.repeat(begins[rows[:, None], runs].ravel(), own) + within))
        ends = np.cumsum(lengths.sum(axis=1))
        return cls(taken, ends - lengths.sum(axis=1), ends, lengths[:, 0], rows), sides

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, i: int) -> list[dict[str, Any]]:
        """The messages of one conversation."""
        found: list[dict[str, Any]] = self.messages[int(self.starts[i]) : int(self.ends[i])].to_pylist()
        return found


def _bounds(lists: pa.ListArray) -> Int64:
    """Where the values of each list begin and end in the flat ones, int64 (rows + 1,)."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(False)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@dataclass(slots=True)
class Joined:
    """Conversations of a batch that were joined by plans, N texts."""

    rows: list[int] = field(default_factory=list)
    """Their numbers in `Sequences`."""
    texts: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Bytes of each text."""
    edges: list[int] = field(default_factory=list)
    """Where labels begin and end: ascending byte offsets in their text, of all texts in turn. One list, because many
    small ones keep Python's garbage collector busy."""
    num_edges: list[int] = field(default_factory=list)
    """Number of edges in each text."""
    structural: list[int] = field(default_factory=list)
    ended: list[bool] = field(default_factory=list)
    not_rendered: list[bool] = field(default_factory=list)
    stripped: list[bool] = field(default_factory=list)


class Shapes:
    """The plans of one tokenizer, made as shapes occur."""

    def __init__(self, tokenizer: ChatTokenizer, train_on: TrainOn) -> None:
        self.tokenizer, self.train_on = tokenizer, train_on
        self.plans: dict[Shape, ShapePlan | None] = {}
        self._seen, self._checked = Counter[Shape](), Counter[Shape]()

    def joined(
        self, sequences: Sequences, tools: Sequence[str | None], variables: Sequence[Mapping[str, Any]]
    ) -> Joined:
        """Join the conversations that have a plan; with the tools and the template variables of each row."""
        return _Batch(self, sequences, tools, variables).joined()

    def plan(self, shape: Shape, rows: int, watch: Watch) -> ShapePlan | None:
        """The plan of a shape that so many more rows have; None if they must be rendered one by one."""
        self._seen[shape] += rows
        if shape not in self.plans and self._seen[shape] >= MIN_ROWS and len(self.plans) < MAX_SHAPES:
            self.plans[shape] = make_plan(self.tokenizer, shape, self.train_on, watch)
        if len(self._seen) > 2 * MAX_SHAPES:
            self._seen.clear()
        return self.plans.get(shape)

    def is_right(
        self, shape: Shape, rows: Sequence[tuple[list[dict[str, Any]], Any]], texts: list[str], edges: list[list[int]],
        watch: Watch,
    ) -> bool:  # fmt: skip
        """Render the first rows of a plan in full; a plan that is wrong is not used again."""
        plan = self.plans[shape]
        for row, text, own in zip(rows, texts, edges, strict=False):
            if not _same(_labelled(self.tokenizer, *row, shape, self.train_on, watch), plan, text, own):
                self.plans[shape] = None
                return False
            self._checked[shape] += 1
        return True

    def unchecked(self, shape: Shape) -> int:
        """How many more rows of a plan must be rendered in full."""
        return CHECKED - self._checked[shape]


def _same(row: Labelled | None, plan: ShapePlan | None, text: str, edges: list[int]) -> bool:
    if row is None or plan is None:
        return False
    wanted = bytes_before(row.text, [at for span in row.labels for at in span])
    thoughts = row.thoughts_not_rendered > 0, row.thoughts_stripped > 0
    made = plan.structural, plan.ended, (plan.not_rendered, plan.stripped)
    return (row.text, wanted, row.structural, row.ended, thoughts) == (text, edges, *made)


class _Batch:
    """The messages of a batch, flat, and the shapes of its conversations, which are called rows here."""

    def __init__(
        self, shapes: Shapes, sequences: Sequences, tools: Sequence[str | None], variables: Sequence[Mapping[str, Any]]
    ) -> None:
        self.shapes, self.sequences, self.made, self.watch = shapes, sequences, Joined(), Watch()
        self.flat, self.starts, self.ends = sequences.messages, sequences.starts, sequences.ends
        self.tools = [tools[row] for row in sequences.rows.tolist()]
        self.numbers: dict[Form, int] = {}
        self.known: list[Form] = []
        self.texts: dict[str, list[str]] = {}
        self.sizes: dict[str, Int64] = {}
        """Bytes of each text."""
        self.own: dict[int, list[Any]] = {}
        """By message: its values, of those that were looked at one by one."""
        self.heads: dict[tuple[Structure | None, str], int] = {(None, "{}"): 0}
        """Tools and variables of shapes."""
        self.tool_values: list[list[Any]] = []
        self.plain = self._plain()
        self.codes = self.plain.copy()
        self.calls = self.flat.field("tool_calls").fill_null("").to_pylist() if self._has("tool_calls") else []
        self.head = self._rest_of_shapes([variables[row] for row in sequences.rows.tolist()])

    def _has(self, name: str) -> bool:
        column = self.flat.field(name)
        return bool(column.null_count < len(column))

    def _plain(self) -> npt.NDArray[np.int32]:
        """The number of each message's form, with whole texts as values, and without its calls."""
        roles = self.flat.field("role").fill_null("").dictionary_encode()
        codes = roles.indices.to_numpy(False).astype(np.int64)
        for name in filter(self._has, TEXTS):
            column = self.flat.field(name)
            sizes = pc.binary_length(column).fill_null(-1).to_numpy(False).astype(np.int64)
            codes = codes * 3 + np.clip(sizes, 0 if name == "content" else -1, 1) + 1
            self.texts[name], self.sizes[name] = column.fill_null("").to_pylist(), sizes
        weights = self.flat.field("weight").fill_null(1.0).to_numpy(False)
        codes = codes * 2 + (weights == 0)
        names, table = roles.dictionary.to_pylist(), np.zeros(int(codes.max(initial=0)) + 1, np.int32)
        for code in np.flatnonzero(np.bincount(codes)).tolist():
            rest, weightless = divmod(code, 2)
            fields: list[tuple[str, Structure]] = []
            for name in reversed(self.texts):
                rest, state = divmod(rest, 3)
                fields += [(name, PLAIN if state == 2 else EMPTY)] if state else []
            if "content" not in self.texts:
                fields.append(("content", EMPTY))
            table[code] = self._number(Form(names[rest], tuple(reversed(fields)), not weightless))
        numbers: npt.NDArray[np.int32] = table[codes]
        return numbers

    def _number(self, form: Form) -> int:
        number = self.numbers.setdefault(form, len(self.numbers))
        if number == len(self.known):
            self.known.append(form)
        return number

    def _rest_of_shapes(self, variables: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.int32]:
        """For each row the number of its tools' structure and variables in `heads`; -1 if no shape has them."""
        if not any(self.tools) and not any(variables):
            return np.zeros(len(self.starts), np.int32)
        known = {text: _tools(text) for text in set(self.tools)}
        found = []
        for text, given in zip(self.tools, variables, strict=True):
            of_tools = known[text]
            self.tool_values.append(of_tools[1] if of_tools else [])
            key = (of_tools[0] if of_tools else None, json.dumps(given, sort_keys=True) if given else "{}")
            found.append(self.heads.setdefault(key, len(self.heads)) if of_tools else -1)
        return np.array(found, np.int32)

    def joined(self) -> Joined:
        """Join the rows that have a plan."""
        for k, calls in enumerate(self.calls):
            if calls:
                self.codes[k] = self._looked_at(k, 0)
        rows = np.flatnonzero((self.head >= 0) & (self.ends > self.starts)).tolist()
        with Watch() as self.watch:
            left = self._join_alike(rows)
            for depth in (1, 2):
                before, seen = self.codes.copy(), np.zeros(len(self.codes), np.bool_)
                for row in left:
                    seen[self.starts[row] : self.ends[row]] = True
                for k in np.flatnonzero(seen).tolist():
                    if depth == 1 or self._calls(k):
                        self.codes[k] = self._looked_at(k, depth)
                changed = np.concatenate([[0], np.cumsum(before != self.codes)])
                is_new = changed[self.ends[left]] > changed[self.starts[left]]
                rows = [row for row, new in zip(left, is_new.tolist(), strict=True) if new]
                same = [row for row, new in zip(left, is_new.tolist(), strict=True) if not new]
                left = [*same, *self._join_alike(rows)]
        return self.made

    def _looked_at(self, k: int, depth: int) -> int:
        """The number of the form of a message with its calls; -1 if no shape has it. Of depth 1: with what is around
        and within its texts; of depth 2: with the keys of arguments, too."""
        form, values = self.known[self.plain[k]], list[Any]()
        fields: list[tuple[str, Structure]] = []
        try:
            for name, structure in form.fields:
                found = structure
                if structure is PLAIN:
                    text = self.texts[name][k]
                    thoughts = name == "content" and form.role == "assistant"
                    found = _text(text, values, thoughts) if depth else PLAIN
                    values += [] if depth else [text]
                fields.append((name, found))
            if self._calls(k):
                found = _listed(self.calls[k], values, lambda call, values: _call(call, values, depth == 2))
                if found is None:
                    return -1
                fields.append(("tool_calls", found))
            self.own[k] = values
            if tuple(fields) == form.fields:
                return int(self.plain[k])
            return self._number(Form(form.role, tuple(fields), form.learnt))
        except (_NoShapeError, RecursionError):
            return -1

    def _calls(self, k: int) -> bool:
        return bool(self.calls and self.calls[k])

    def _join_alike(self, rows: list[int]) -> list[int]:
        """Join rows by the plans of their shapes; returns those that have none, or that do not fit it."""
        bad = np.concatenate([[0], np.cumsum(self.codes < 0)])
        alike: defaultdict[tuple[int, int, bytes], list[int]] = defaultdict(list)
        raw, left = self.codes.tobytes(), []
        cuts = ((self.codes.itemsize * edges[rows]).tolist() for edges in (self.starts, self.ends))
        wrong = (bad[self.starts[rows]] < bad[self.ends[rows]]).tolist()
        kinds = self.head[rows].tolist(), self.sequences.first[rows].tolist()
        for row, head, first, is_wrong, a, b in zip(rows, *kinds, wrong, *cuts, strict=True):
            if not is_wrong:
                alike[head, first, raw[a:b]].append(row)
        heads = list(self.heads)
        for (head, first, key), group in alike.items():
            forms = tuple(self.known[code] for code in np.frombuffer(key, np.int32).tolist())
            shape = Shape(forms, first, *heads[head])
            plan = self.shapes.plan(shape, len(group), self.watch)
            left += group if plan is None else self._join(shape, plan, group)
        return left

    def _join(self, shape: Shape, plan: ShapePlan, rows: list[int]) -> list[int]:
        """Join rows of one shape; returns those that do not fit."""
        columns = {i: self._column(shape, plan.places[i], rows) for i in {*plan.holes, *(i for i, _, _ in plan.asked)}}
        fitting, left = plan.fitting(columns, len(rows)), []
        if len(fitting) < len(rows):
            columns = {i: [column[k] for k in fitting] for i, column in columns.items()}
            fits = set(fitting)
            left, rows = [row for k, row in enumerate(rows) if k not in fits], [rows[k] for k in fitting]
        if not rows:
            return left
        texts = plan.joined(columns)
        placed = [self._bytes(shape, plan.places[i], rows, columns[i]) for i in plan.holes]
        before = np.zeros((len(rows), len(placed) + 1), np.int64)
        np.cumsum(np.array(placed, np.int64).reshape(len(placed), len(rows)).T, axis=1, out=before[:, 1:])
        own_bytes, behind = (np.array([edge[side] for edge in plan.edges], np.int64) for side in (0, 1))
        edges = own_bytes + before[:, behind]
        first = max(min(self.shapes.unchecked(shape), len(rows)), 0)
        samples = [(self.sequences.at(row), self.tools[row]) for row in rows[:first]]
        if not self.shapes.is_right(shape, samples, texts, edges[:first].tolist(), self.watch):
            return [*left, *rows]
        own = sum(len(text.encode()) for text in plan.texts)
        self.made.rows += rows
        self.made.texts += texts
        self.made.sizes += (before[:, -1] + own).tolist()
        self.made.edges += edges.ravel().tolist()
        self.made.num_edges += [len(plan.edges)] * len(rows)
        self.made.structural += [plan.structural] * len(rows)
        self.made.ended += [plan.ended] * len(rows)
        self.made.not_rendered += [plan.not_rendered] * len(rows)
        self.made.stripped += [plan.stripped] * len(rows)
        return left

    def _column(self, shape: Shape, place: Place, rows: list[int]) -> list[str]:
        """The texts of a place, of rows of one shape."""
        message, number, spelling = place
        if message < 0:
            values = [self.tool_values[row][number] for row in rows]
        else:
            at = (self.starts[rows] + message).tolist()
            name = self._name(shape, place, at[0])
            if name is None:
                values = [self.own[k][number] for k in at]
            else:
                texts = self.texts[name]
                values = [texts[k] for k in at]
        if not spelling and (not values or isinstance(values[0], str)):
            return values
        known = {id(value): value for value in values}
        shown = {key: spelled(value, spelling) for key, value in known.items()}
        return [shown[id(value)] for value in values]

    def _bytes(self, shape: Shape, place: Place, rows: list[int], column: list[str]) -> Int64:
        """The size of each text of a column."""
        at = self.starts[rows] + place[0]
        name = self._name(shape, place, int(at[0]))
        if name is not None and not place[2]:
            return self.sizes[name][at]
        return np.fromiter((len(t) if t.isascii() else len(t.encode()) for t in column), np.int64, len(column))

    def _name(self, shape: Shape, place: Place, first: int) -> str | None:
        """The field whose whole text a place has, in rows of which the first has message `first` there; None for other
        values."""
        message, number, _ = place
        if message < 0 or first in self.own:
            return None
        return [name for name, structure in shape.forms[message].fields if structure is PLAIN][number]
