"""Strings that know which field of which message their characters are from, for the rendering of chat templates.

The text of messages enters a template as `Tracked`: a `str` with spans (start, end, tag). Each string operation of a
template passes the spans on. If the origin of a result is not known, its text gets the tag `UNKNOWN`. `Sealed` texts
also refuse, or write down, all that a template asks about their characters; so one rendering can stand for many texts.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Self, SupportsIndex

FIELDS = ("content", "reasoning_content", "tool_calls", "name", "tool_call_id", "role")
CONTENT, REASONING, TOOL_CALLS = 0, 1, 2
WIDTH = 8
"""The tag of a field of message i is 1 + i * WIDTH + the index of the field in FIELDS."""
TOOLS = 0
"""The tag of the tools."""

Span = tuple[int, int, int]
"""Start, end (half-open, in characters) and tag."""

UNKNOWN = -1
"""Tag of text of unknown origin."""


def of(tag: int) -> int:
    """Index of the message that a tag belongs to; -1 for the tools."""
    return (tag - 1) // WIDTH


class Tracked(str):
    """A string with the spans of its text that come from a row; the rest is the template's own text."""

    __slots__ = ("spans",)
    spans: tuple[Span, ...]

    def __new__(cls, text: str, spans: Iterable[Span] = ()) -> Self:  # noqa: D102
        made = super().__new__(cls, text)
        made.spans = tuple(spans)
        return made

    def __str__(self) -> str:
        return self

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        text = super().__getitem__(key)
        if not isinstance(key, slice):
            i = range(len(self))[key]
            return Tracked(text, _cut(self.spans, i, i + 1))
        start, stop, step = key.indices(len(self))
        return Tracked(text, _cut(self.spans, start, stop)) if step == 1 else opaque(text, self)

    def __add__(self, other: str) -> str:
        return concat((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> str:
        return concat((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> str:
        return concat([self] * int(times))

    __rmul__ = __mul__

    def lstrip(self, chars: str | None = None) -> str:  # noqa: D102
        return self[len(self) - len(super().lstrip(chars)) :]

    def rstrip(self, chars: str | None = None) -> str:  # noqa: D102
        return self[: len(super().rstrip(chars))]

    def strip(self, chars: str | None = None) -> str:  # noqa: D102
        return self.rstrip(chars).lstrip(chars)

    def removeprefix(self, prefix: str) -> str:  # noqa: D102
        return self[len(prefix) :] if prefix and self.startswith(prefix) else self

    def removesuffix(self, suffix: str) -> str:  # noqa: D102
        return self[: len(self) - len(suffix)] if suffix and self.endswith(suffix) else self

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:  # noqa: D102
        found = super().split(sep, maxsplit)
        return self._pieces(found) if sep is None else self._joined_by(len(sep), found)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:  # noqa: D102
        found = super().rsplit(sep, maxsplit)
        return self._pieces(found) if sep is None else self._joined_by(len(sep), found)

    def splitlines(self, keepends: bool = False) -> list[str]:  # noqa: D102
        whole = self._joined_by(0, super().splitlines(keepends=True))
        return whole if keepends else [w[: len(t)] for w, t in zip(whole, super().splitlines(), strict=True)]

    def partition(self, sep: str) -> tuple[str, str, str]:  # noqa: D102
        at = self.find(sep)
        return (self, "", "") if at < 0 else (self[:at], self[at : at + len(sep)], self[at + len(sep) :])

    def rpartition(self, sep: str) -> tuple[str, str, str]:  # noqa: D102
        at = self.rfind(sep)
        return ("", "", self) if at < 0 else (self[:at], self[at : at + len(sep)], self[at + len(sep) :])

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:  # noqa: D102
        if not old:
            return opaque(super().replace(old, new, count), self, new)
        return join(new, self._joined_by(len(old), super().split(old, count)))

    def join(self, parts: Iterable[str]) -> str:  # noqa: D102
        return join(self, parts)

    def lower(self) -> str:  # noqa: D102
        return self._cased(super().lower())

    def upper(self) -> str:  # noqa: D102
        return self._cased(super().upper())

    def title(self) -> str:  # noqa: D102
        return self._cased(super().title())

    def capitalize(self) -> str:  # noqa: D102
        return self._cased(super().capitalize())

    def _cased(self, text: str) -> str:
        return Tracked(text, self.spans) if len(text) == len(self) else opaque(text, self)

    def _pieces(self, found: list[str]) -> list[str]:
        """The pieces as slices of this string; each is searched for after the previous one."""
        pieces, at = [], 0
        for text in found:
            at = self.index(text, at)
            pieces.append(self[at : at + len(text)])
            at += len(text)
        return pieces

    def _joined_by(self, gap: int, found: list[str]) -> list[str]:
        """The pieces as slices of this string, with `gap` characters between two pieces."""
        pieces, at = [], 0
        for text in found:
            pieces.append(self[at : at + len(text)])
            at += len(text) + gap
        return pieces


def _cut(spans: tuple[Span, ...], start: int, stop: int) -> list[Span]:
    return [(max(a, start) - start, min(b, stop) - start, tag) for a, b, tag in spans if a < stop and b > start]


def concat(parts: Iterable[Any]) -> str:
    """The parts, joined without a separator, with their spans; a plain `str` if there are no spans."""
    texts: list[str] = []
    spans: list[Span] = []
    holes: Holes | None = None
    at = 0
    for part in parts:
        text = part if isinstance(part, str) else str(part)
        if isinstance(text, Tracked):
            spans.extend((a + at, b + at, tag) for a, b, tag in text.spans)
            holes = text.holes if isinstance(text, Sealed) else holes
        texts.append(text)
        at += len(text)
    joined = "".join(texts)
    if holes is not None:
        return Sealed(joined, spans, holes)
    return Tracked(joined, spans) if spans else joined


Place = tuple[int, int, str]
"""Where the text of a hole comes from: a message (-1: the tools), the number of the value among its values, and how the
value becomes text: "" as it is, `CHARACTERS`, or the arguments of `json.dumps` as JSON (see `spelled`)."""
Question = tuple[int, str, str]
"""A hole, a kind of question and a text: `has` (is the text in it? no), `lstrip` or `rstrip` (does removing these
characters, or white space if empty, change it? no)."""
BEGIN, END = "\ufdd3", "\ufdd4"
"""Around the character that numbers a hole. Noncharacters, which no template writes."""
FIRST_HOLE, HOLES = 0x100000, 65534
_HOLE = re.compile(f"{BEGIN}(.){END}", re.DOTALL)


class LooksInsideError(Exception):
    """A template depends on the text of a message in a way that `Sealed` does not follow."""


class Holes:
    """The holes of the texts of one conversation, and what was asked about them."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.asked: set[Question] = set()

    def text(self, place: Place) -> str:
        """The text that stands for a hole."""
        if place not in self.places:
            self.places.append(place)
        if len(self.places) > HOLES:
            raise LooksInsideError("too many texts")
        return f"{BEGIN}{chr(FIRST_HOLE + self.places.index(place))}{END}"


def pieces(text: str) -> list[str | int]:
    """A text with holes as the text before, between and after them, and their numbers: an odd number of items."""
    found: list[str | int] = list(_HOLE.split(text))
    found[1::2] = [ord(str(hole)) - FIRST_HOLE for hole in found[1::2]]
    return found


class Sealed(Tracked):
    """A text of a message with holes, to learn what a template does with it (see `shapes`): a hole stands for any text
    that is not empty.

    A question about the text gets the usual answer, and what that says about the holes is written down: the rendering
    is that of all texts for which it is true. What cannot be asked in this way raises LooksInsideError.
    """

    __slots__ = ("holes",)
    holes: Holes

    def __new__(cls, text: str, spans: Iterable[Span], holes: Holes) -> Self:  # noqa: D102
        made = super().__new__(cls, text, spans)
        made.holes = holes
        return made

    def cut(self, start: int, stop: int) -> str:
        """A slice with its spans. Offsets count a hole as three characters."""
        text, spans = str.__getitem__(self, slice(start, stop)), _cut(self.spans, start, stop)
        return Sealed(text, spans, self.holes) if BEGIN in text else Tracked(text, spans)

    def where(self, text: str, *bounds: int) -> int:
        """`find`, counting a hole as three characters; the text is in no hole and touches none."""
        self._only_outside(text)
        return str.find(self, text, *bounds)

    def _ask(self, hole: str | int, kind: str, text: str) -> None:
        self.holes.asked.add((int(hole), kind, text))

    def _only_outside(self, text: object) -> None:
        """Ask that the text is in no hole, and neither begins nor ends in one."""
        if not isinstance(text, str) or isinstance(text, Tracked):
            raise LooksInsideError("a text of another message")
        if not text:
            raise LooksInsideError("an empty text")
        parts = pieces(self)
        for at in range(1, len(parts), 2):
            hole, before, after = parts[at], str(parts[at - 1]), str(parts[at + 1])
            self._ask(hole, "has", text)
            for k in range(1, len(text)):
                if after.startswith(text[k:]) or (at + 2 < len(parts) and text[k:].startswith(after)):
                    self._ask(hole, "rstrip", text[k - 1])
                if before.endswith(text[:k]):
                    self._ask(hole, "lstrip", text[k])

    def _has(self, text: object) -> bool:
        self._only_outside(text)
        return str.__contains__(self, str(text))

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str) or not other:
            return False
        before, hole, after, *more = pieces(self)
        if isinstance(other, Tracked) or more:
            raise LooksInsideError("it is compared with another text")
        within = other.removeprefix(str(before)).removesuffix(str(after))
        if other == f"{before}{within}{after}" and within:
            self._ask(hole, "has", within)
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __contains__(self, text: object) -> bool:
        return self._has(text)

    def __iter__(self) -> Iterator[str]:
        raise LooksInsideError("its characters")
        yield ""  # a generator: `is iterable` is true and looks at nothing

    def _at(self, end: int, text: Any, where: tuple[Any, ...]) -> bool:
        if where:
            raise LooksInsideError("its characters")
        found = []
        for t in text if isinstance(text, tuple) else (text,):
            self._only_outside(t)
            found.append(str.startswith(self, t) if end == 0 else str.endswith(self, t))
        return any(found)

    def startswith(self, text: Any, *where: Any) -> bool:  # noqa: D102
        return self._at(0, text, where)

    def endswith(self, text: Any, *where: Any) -> bool:  # noqa: D102
        return self._at(-1, text, where)

    def find(self, text: str, *where: Any) -> int:  # noqa: D102
        if where or self._has(text):
            raise LooksInsideError("a position")
        return -1

    rfind = find

    def count(self, text: str, *where: Any) -> int:  # noqa: D102
        self._has(text)
        if where:
            raise LooksInsideError("its characters")
        return str.count(self, text)

    def lstrip(self, chars: str | None = None) -> str:  # noqa: D102
        left = self.cut(len(self) - len(str.lstrip(self, chars)), len(self))
        if str.startswith(left, BEGIN):
            self._ask(pieces(left)[1], "lstrip", chars or "")
        return left

    def rstrip(self, chars: str | None = None) -> str:  # noqa: D102
        left = self.cut(0, len(str.rstrip(self, chars)))
        if str.endswith(left, END):
            self._ask(pieces(left)[-2], "rstrip", chars or "")
        return left

    def strip(self, chars: str | None = None) -> str:  # noqa: D102
        return self.rstrip(chars).lstrip(chars)

    def removeprefix(self, prefix: str) -> str:  # noqa: D102
        return self.cut(len(prefix), len(self)) if self.startswith(prefix) else self

    def removesuffix(self, suffix: str) -> str:  # noqa: D102
        return self.cut(0, len(self) - len(suffix)) if self.endswith(suffix) else self

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:  # noqa: D102
        return join(new, self.split(old, count)) if self._has(old) else self

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:  # noqa: D102
        return self._parts(sep, str.split(self, sep, maxsplit))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:  # noqa: D102
        return self._parts(sep, str.rsplit(self, sep, maxsplit))

    def _parts(self, sep: str | None, found: list[str]) -> list[str]:
        self._has(sep)
        gap = len(sep or "")
        ends = accumulate(len(part) + gap for part in found)
        return [self.cut(end - len(part) - gap, end - gap) for part, end in zip(found, ends, strict=True)]


def cut(text: str, start: int, stop: int) -> str:
    """`text[start:stop]`, also of a sealed text."""
    return text.cut(start, stop) if isinstance(text, Sealed) else text[start:stop]


class SealedJson(Mapping[str, Any]):
    """Stands for any JSON object that is empty or not, as `filled` says: the arguments of a call, or a tool.

    A template may ask for its type, and write it as JSON; all else raises LooksInsideError.
    """

    __slots__ = ("filled", "holes", "source", "tag")

    def __init__(self, source: tuple[int, int], filled: bool, tag: int, holes: Holes) -> None:
        self.source, self.filled, self.tag, self.holes = source, filled, tag, holes

    def dumped(self, **how: Any) -> str:
        """The JSON text; `how` are arguments of `json.dumps`."""
        if not self.filled:
            return json.dumps({}, **how)  # without keys it has no text of the row
        text = self.holes.text((*self.source, json.dumps(how, sort_keys=True)))
        return Sealed(text, [(0, len(text), self.tag)], self.holes)

    def given(self) -> str:
        """The JSON text as it was given, or else as `json.dumps` writes it."""
        text = self.holes.text((*self.source, ""))
        return Sealed(text, [(0, len(text), self.tag)], self.holes)

    def __bool__(self) -> bool:
        return self.filled

    def __len__(self) -> int:  # jinja's `is sequence` calls it; the filter `length` refuses
        return int(self.filled)

    def __iter__(self) -> Iterator[str]:
        raise LooksInsideError("the keys of an object")
        yield ""

    def __getitem__(self, key: str) -> Any:
        raise LooksInsideError("a value of an object")

    def __eq__(self, other: object) -> bool:
        raise LooksInsideError("an object is compared")

    def __repr__(self) -> str:
        raise LooksInsideError("an object as text")

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        raise LooksInsideError("an object as text")


def _refusing(name: str) -> Any:
    def refuse(self: Sealed, *args: Any, **kwargs: Any) -> Any:
        raise LooksInsideError(name)

    return refuse


_HARMLESS = {
    "__new__",
    "__getattribute__",
    "__doc__",
    "__len__",
    "__str__",
    "__add__",
    "__radd__",
    "__mul__",
    "__rmul__",
}
for _name in [*sorted(vars(str).keys() - vars(Sealed).keys() - _HARMLESS - {"join"}), "__hash__", "__format__"]:
    setattr(Sealed, _name, _refusing(_name))


def refuse_sealed(*values: Any) -> None:
    """Raise `LooksInsideError` if one of the values is sealed."""
    if any(isinstance(v, Sealed | SealedJson) for v in values):
        raise LooksInsideError("a text given to a function")


def join(separator: str, parts: Iterable[Any]) -> str:
    """`separator.join(parts)` with the spans of both; parts that are not strings are converted."""
    pieces: list[Any] = []
    for part in parts:
        pieces += [separator, part]
    return concat(pieces[1:])


def track(value: Any, tag: int) -> Any:
    """A copy of a JSON value in which every string and every key has the tag."""
    if isinstance(value, Sealed):
        return value
    if isinstance(value, str):
        return Tracked(value, [(0, len(value), tag)] if value else [])
    if isinstance(value, dict):
        return {track(k, tag): track(v, tag) for k, v in value.items()}
    return [track(v, tag) for v in value] if isinstance(value, list | tuple) else value


SEALED = -3
"""`tags` has it if there is something sealed in a value."""


def tags(*values: Any) -> set[int]:
    """Every tag in the values, at any depth."""
    found: set[int] = set()
    for value in values:
        if isinstance(value, Tracked):
            found |= {tag for _, _, tag in value.spans}
            found |= {SEALED} if isinstance(value, Sealed) else set()
        elif isinstance(value, dict):
            found |= tags(*value.keys(), *value.values())
        elif isinstance(value, list | tuple):
            found |= tags(*value)
        elif isinstance(value, SealedJson):
            found |= {value.tag, SEALED}
    return found


def plain_json(value: Any) -> str:
    """The value as JSON text, with its characters; a sealed value has none."""
    if SEALED in tags(value):
        raise LooksInsideError("JSON of a text")
    return json.dumps(value, ensure_ascii=False)


def dumped(value: Any, **how: Any) -> str:
    """The value as JSON text with its origin; `how` are arguments of `json.dumps`."""
    if isinstance(value, SealedJson):
        return value.dumped(**how)
    found = tags(value)
    if SEALED not in found:
        return _tagged(json.dumps(value, **how), found)
    if how.get("ensure_ascii", True):
        raise LooksInsideError("the escapes of a text")
    objects: dict[str, Holes] = {}

    def as_text(value: SealedJson) -> str:
        if how.get("indent") is not None:
            raise LooksInsideError("an object with the indent of its place")
        text = value.dumped(**how)
        objects[text] = value.holes
        return text

    text = json.dumps(value, default=as_text, **how)
    holes = next(iter(objects.values()), None) or _holes_of(value)
    for part in objects:
        text = text.replace(f'"{part}"', part)
    parts = pieces(text)
    for at in range(1, len(parts), 2):
        message, number, spelling = holes.places[int(parts[at])]
        if spelling != "" and holes.text((message, number, spelling)) not in objects:
            raise LooksInsideError("JSON in JSON")
        parts[at] = holes.text((message, number, spelling or CHARACTERS))
    text = "".join(map(str, parts))
    return Sealed(text, [(0, len(text), _one_tag(found - {SEALED}))], holes)


def _holes_of(value: Any) -> Holes:
    """The holes of the first sealed text in a value that has one."""
    if isinstance(value, Sealed | SealedJson):
        return value.holes
    inside = value.values() if isinstance(value, dict) else value
    return _holes_of(next(v for v in inside if SEALED in tags(v)))


CHARACTERS = "characters"
"""A hole's text as it is between the quotes of a JSON string."""


def spelled(value: Any, spelling: str) -> str:
    """The text of a hole from its value: a text, or an object as it was given and as it was parsed (see `Place`)."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)[1:-1] if spelling else value
    given, parsed = value
    if spelling:
        return json.dumps(parsed, **json.loads(spelling))
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def opaque(text: str, *origins: Any) -> str:
    """A text made from `origins` by an operation that does not pass spans on.

    If the origins have one tag, the whole text gets it; several fields of one message count as its first field. If they
    have tags of several messages, the text gets `UNKNOWN`.
    """
    return _tagged(text, tags(*origins))


def _tagged(text: str, found: set[int]) -> str:
    if SEALED in found:
        raise LooksInsideError("a text given to a function")
    return Tracked(text, [(0, len(text), _one_tag(found))]) if found and text else text


def _one_tag(found: set[int]) -> int:
    return min(found) if len({of(tag) for tag in found}) == 1 and UNKNOWN not in found else UNKNOWN
