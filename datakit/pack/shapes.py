"""Renders a template once for each shape of conversation, and joins the texts of all rows of that shape.

The shape of a conversation is its roles, and which of its messages have content. To learn what a template makes of a
shape, its contents are replaced by `Sealed` texts, and `label` renders and labels it as always. The result is a
`ShapePlan`: the template's own text, where contents go, where labels begin and end, and all that the template or
`label` asked about the contents ("does it begin with <think>?"). For each row whose contents give the same answers, the
template takes the same branches, so its rendering is the plan's text with the contents put in.

All other rows are rendered one by one: those with tools, calls, thoughts, weights or variables of their own; shapes
whose contents a template transforms, or looks into in a way that cannot be followed; contents with another answer (a
`</think>`, white space that the template removes); and answers that begin with white space or contain the template's
own header, where `label` compares texts. As a check, the first rows of each plan are rendered in both ways.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.pack.chat import ChatTokenizer, RenderError
from datakit.pack.labels import Labelled, RowError, bytes_before, label
from datakit.pack.template import TooSlowError, Watch
from datakit.pack.tracked import CONTENT, WIDTH, LooksInsideError, Sealed, of

Int64 = npt.NDArray[np.int64]
Shape = tuple[tuple[str, bool], ...]
"""The role of each message, and whether it has content."""
TrainOn = Literal["all", "last"]

BEGIN, END = "\ufdd3", "\ufdd4"
"""Around the number of a message: stands for its content. Noncharacters, which no template writes."""
APART = "\ufdd5"
"""Between contents that are searched at once. A question with this character costs time, and changes no answer."""
CHECKED = 2
"""Rows of each plan that are rendered in full, too."""
MIN_ROWS = 2
"""A shape gets a plan as soon as this many rows have it."""


@dataclass(frozen=True, slots=True)
class ShapePlan:
    """What a template makes of all conversations of one shape."""

    texts: tuple[str, ...]
    """The template's text before, between and after the contents, special tokens in reserved spelling."""
    contents: tuple[int, ...]
    """The messages whose contents stand between the texts."""
    edges: tuple[tuple[int, int], ...]
    """Where labels begin and end: bytes of the template before it, and how many contents are before it."""
    asked: tuple[tuple[int, str, str], ...]
    """A message, and what was asked about its content (see `Sealed`)."""
    structural: int
    ended: bool

    def fitting(self, columns: Sequence[Sequence[str]]) -> list[int]:
        """The rows whose contents give the answers that the plan was made with, ascending.

        `columns` has the contents of each message, of all rows. Few rows give another answer, so each question is first
        asked about all rows at once.
        """
        left = list(range(len(columns[0])))
        whole = {i: APART.join(columns[i]) for i, kind, _ in self.asked if kind == "has"}
        for i, kind, text in self.asked:
            column = columns[i]
            if kind == "has":
                if text in whole[i]:
                    left = [k for k in left if text not in column[k]]
                continue
            at = slice(1) if kind == "lstrip" else slice(-1, None)
            removed = {c for c in {content[at] for content in column} if (c in text if text else c.isspace())} - {""}
            if removed:
                left = [k for k in left if column[k][at] not in removed]
        return left

    def joined(self, columns: Sequence[Sequence[str]]) -> list[str]:
        """The text to encode of each row; `columns` as in `fitting`."""
        parts: list[Iterable[str]] = [repeat(self.texts[0])]
        for text, i in zip(self.texts[1:], self.contents, strict=True):
            parts += [columns[i], repeat(text)]
        return list(map("".join, zip(*parts, strict=False)))


def make_plan(tokenizer: ChatTokenizer, shape: Shape, train_on: TrainOn) -> ShapePlan | None:
    """The plan of a shape; None if its rows must be rendered one by one."""
    asked: set[tuple[int, str, str]] = set()
    messages: list[dict[str, Any]] = []
    for i, (role, filled) in enumerate(shape):
        tag = 1 + i * WIDTH + CONTENT
        name = f"{BEGIN}{i}{END}"
        messages.append({"role": role, "content": Sealed(name, [(0, len(name), tag)], asked) if filled else ""})
    row = _labelled(tokenizer, messages, train_on)
    if row is None:
        return None
    first, *rest = row.text.split(BEGIN)
    if row.thoughts_not_rendered or row.thoughts_stripped or any(END not in part for part in rest):
        return None
    parts = [part.split(END) for part in rest]
    texts, contents = (first, *(text for _, text in parts)), tuple(int(i) for i, _ in parts)
    edges = [_edge(row.text, at) for span in row.labels for at in span]
    if not rest or any(edge is None for edge in edges):
        return None
    questions = {(of(tag), kind, text) for tag, kind, text in asked}
    questions |= _headers(tokenizer, shape) | _joints(tokenizer, texts, contents)
    found = tuple(edge for edge in edges if edge is not None)
    return ShapePlan(texts, contents, found, tuple(sorted(questions)), row.structural, row.ended)


def _labelled(tokenizer: ChatTokenizer, messages: list[dict[str, Any]], train_on: TrainOn) -> Labelled | None:
    """The messages as `label` renders them; None if it refuses them, or if the template takes too long."""
    try:
        with Watch() as watch:
            watch.begin(sum(len(m["content"]) for m in messages) + 1)
            return label(tokenizer, messages, train_on=train_on)
    except (RowError, RenderError, LooksInsideError, TooSlowError):
        return None


def _edge(text: str, at: int) -> tuple[int, int] | None:
    """A place in the text of a plan, as in `ShapePlan.edges`; None if it is inside a content."""
    before = text[:at]
    if before.count(BEGIN) != before.count(END):
        return None
    own = [part.rpartition(END)[2] for part in before.split(BEGIN)]
    return sum(len(part.encode()) for part in own), len(own) - 1


def _headers(tokenizer: ChatTokenizer, shape: Shape) -> set[tuple[int, str, str]]:
    """`label` searches for the generation prompt and the header of answers, also next to contents."""
    prompts = [tokenizer.answer_header, *(tokenizer.prompt_after(role) for role in {role for role, _ in shape})]
    lines = {line.strip() for prompt in prompts for line in prompt.splitlines()} - {""}
    found = {(i, "has", line) for i, (_, filled) in enumerate(shape) for line in lines if filled}
    return found | {(i, "lstrip", "") for i, (role, filled) in enumerate(shape) if filled and role == "assistant"}


def _joints(tokenizer: ChatTokenizer, texts: Sequence[str], contents: Sequence[int]) -> set[tuple[int, str, str]]:
    """`label` looks for added tokens (`<think>`) around the start of an answer: no content may complete one."""
    found = set()
    plain = [t for t in tokenizer.added if t not in tokenizer.special and len(t) > 1]
    for before, i, after in zip(texts[:-1], contents, texts[1:], strict=True):
        for token in plain:
            cuts = range(1, len(token))
            found |= {(i, "has", token[k:]) for k in cuts if before.endswith(token[:k])}
            found |= {(i, "has", token[:k]) for k in cuts if after.startswith(token[k:])}
    return found


@dataclass(slots=True)
class Joined:
    """Rows of a batch that were joined by plans, N texts."""

    rows: list[int]
    texts: list[str]
    edges: list[int]
    """Where labels begin and end: ascending byte offsets in their text, of all texts in turn. One list, because many
    small ones keep Python's garbage collector busy."""
    num_edges: list[int]
    """Number of edges in each text."""
    structural: list[int]
    ended: list[bool]


class Shapes:
    """The plans of one tokenizer, made as shapes occur."""

    def __init__(self, tokenizer: ChatTokenizer, train_on: TrainOn) -> None:
        self.tokenizer, self.train_on = tokenizer, train_on
        self.plans: dict[Shape, ShapePlan | None] = {}
        self._seen, self._checked = Counter[Shape](), Counter[Shape]()

    def joined(self, messages: pa.ListArray, usable: npt.NDArray[np.bool_]) -> Joined:
        """Join the rows of a column of messages that have a plan; `usable` says which may have one, bool (rows,)."""
        made = Joined([], [], [], [], [], [])
        flat, ends = messages.flatten(), np.cumsum(pc.fill_null(pc.list_value_length(messages), 0).to_numpy(False))
        roles = flat.field("role").fill_null("").dictionary_encode()
        contents: list[str] = flat.field("content").fill_null("").to_pylist()
        sizes = pc.fill_null(pc.binary_length(flat.field("content")), 0).to_numpy(False).astype(np.int64)
        codes = roles.indices.to_numpy(False).astype(np.int32) * 2 + (sizes > 0)
        plain = np.ones(len(flat), np.bool_)
        for at in range(flat.type.num_fields):
            if flat.type.field(at).name not in ("role", "content"):
                plain &= flat.field(at).is_null().to_numpy(False)
        bad = np.concatenate([[0], np.cumsum(~plain)])
        starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        usable = usable & (bad[ends] == bad[starts]) & (ends > starts)
        alike: defaultdict[bytes, list[int]] = defaultdict(list)
        raw, of_row = codes.tobytes(), np.flatnonzero(usable)
        cuts = ((codes.itemsize * edges[of_row]).tolist() for edges in (starts, ends))
        for row, a, b in zip(of_row.tolist(), *cuts, strict=True):
            alike[raw[a:b]].append(row)
        names = roles.dictionary.to_pylist()
        for key, rows in alike.items():
            shape = tuple((names[code >> 1], bool(code & 1)) for code in np.frombuffer(key, np.int32).tolist())
            plan = self._plan(shape, len(rows))
            if plan is not None:
                self._join(made, shape, plan, rows, starts, contents, sizes)
        return made

    def _plan(self, shape: Shape, rows: int) -> ShapePlan | None:
        self._seen[shape] += rows
        if shape not in self.plans and self._seen[shape] >= MIN_ROWS:
            self.plans[shape] = make_plan(self.tokenizer, shape, self.train_on)
        return self.plans.get(shape)

    def _join(
        self,
        made: Joined,
        shape: Shape,
        plan: ShapePlan,
        rows: list[int],
        starts: Int64,
        contents: list[str],
        sizes: Int64,
    ) -> None:
        firsts = starts[rows].tolist()
        own = [[contents[a + i] for a in firsts] for i in range(len(shape))]
        fitting = plan.fitting(own)
        if len(fitting) < len(rows):
            own = [[column[k] for k in fitting] for column in own]
        texts = plan.joined(own)
        chosen = np.array([rows[k] for k in fitting], np.int64)
        placed = sizes[starts[chosen, None] + np.array(plan.contents, np.int64)]
        before = np.concatenate([np.zeros((len(chosen), 1), np.int64), np.cumsum(placed, axis=1)], axis=1)
        own_bytes, behind = (np.array([edge[side] for edge in plan.edges], np.int64) for side in (0, 1))
        edges = own_bytes + before[:, behind]
        for k in range(min(CHECKED - self._checked[shape], len(fitting))):
            messages = [{"role": role, "content": column[k]} for (role, _), column in zip(shape, own, strict=True)]
            if not _same(_labelled(self.tokenizer, messages, self.train_on), plan, texts[k], edges[k].tolist()):
                self.plans[shape] = None
                return
            self._checked[shape] += 1
        made.rows += chosen.tolist()
        made.texts += texts
        made.edges += edges.ravel().tolist()
        made.num_edges += [len(plan.edges)] * len(texts)
        made.structural += [plan.structural] * len(texts)
        made.ended += [plan.ended] * len(texts)


def _same(row: Labelled | None, plan: ShapePlan, text: str, edges: list[int]) -> bool:
    if row is None:
        return False
    wanted = bytes_before(row.text, [at for span in row.labels for at in span])
    return (row.text, wanted, row.structural, row.ended) == (text, edges, plan.structural, plan.ended)
