"""Strings that know which field of which message their characters are from, for the rendering of chat templates.

The text of messages enters a template as `Tracked`: a `str` with spans (start, end, tag). Each string operation of a
template passes the spans on. If the origin of a result is not known, its text gets the tag `UNKNOWN`. `Sealed` texts
also refuse, or write down, all that a template asks about their characters; so one rendering can stand for many texts.
"""

from collections.abc import Iterable, Iterator
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
        return self._pieces(super().split(sep, maxsplit))

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
    asked: set[Question] | None = None
    at = 0
    for part in parts:
        text = part if isinstance(part, str) else str(part)
        if isinstance(text, Tracked):
            spans.extend((a + at, b + at, tag) for a, b, tag in text.spans)
            asked = text.asked if isinstance(text, Sealed) else asked
        texts.append(text)
        at += len(text)
    joined = "".join(texts)
    if asked is not None:
        return Sealed(joined, spans, asked)
    return Tracked(joined, spans) if spans else joined


Question = tuple[int, str, str]
"""A tag, a kind of question and a text: `has` (is the text in it? no), `lstrip` or `rstrip` (does removing these
characters, or white space if empty, change it? no)."""


class LooksInsideError(Exception):
    """A template depends on the text of a message in a way that `Sealed` does not follow."""


class Sealed(Tracked):
    """Stands for any text of a message that is not empty, to learn what a template does with it (see `shapes`).

    A question about the text gets the usual answer and is written into `asked`: the rendering is that of all texts
    for which the answers are true. What cannot be asked in this way raises LooksInsideError.
    """

    __slots__ = ("asked",)
    asked: set[Question]

    def __new__(cls, text: str, spans: Iterable[Span], asked: set[Question]) -> Self:  # noqa: D102
        made = super().__new__(cls, text, spans)
        made.asked = asked
        return made

    def _ask(self, kind: str, text: object) -> None:
        if len(self.spans) != 1 or self.spans[0][:2] != (0, len(self)):
            raise LooksInsideError("a text that the template joined from several")
        if not isinstance(text, str) or isinstance(text, Tracked):
            raise LooksInsideError("a text of another message")
        self.asked.add((self.spans[0][2], kind, text))

    def _has(self, text: object) -> bool:
        if text == "":
            raise LooksInsideError("an empty text")
        self._ask("has", text)
        return False

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other != "" and self._has(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __contains__(self, text: object) -> bool:
        return self._has(text)

    def __iter__(self) -> Iterator[str]:
        raise LooksInsideError("its characters")
        yield ""  # a generator: `is iterable` is true and looks at nothing

    def startswith(self, text: Any, *where: Any) -> bool:  # noqa: D102
        return any(self._has(t) for t in (text if isinstance(text, tuple) else (text,)))

    endswith = startswith

    def find(self, text: str, *where: Any) -> int:  # noqa: D102
        return self._has(text) - 1

    rfind = find

    def count(self, text: str, *where: Any) -> int:  # noqa: D102
        return int(self._has(text))

    def lstrip(self, chars: str | None = None) -> str:  # noqa: D102
        self._ask("lstrip", chars or "")
        return self

    def rstrip(self, chars: str | None = None) -> str:  # noqa: D102
        self._ask("rstrip", chars or "")
        return self

    def strip(self, chars: str | None = None) -> str:  # noqa: D102
        return self.rstrip(chars).lstrip(chars)

    def removeprefix(self, prefix: str) -> str:  # noqa: D102
        self._has(prefix)
        return self

    def removesuffix(self, suffix: str) -> str:  # noqa: D102
        return self.removeprefix(suffix)

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:  # noqa: D102
        self._has(old)
        return self

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:  # noqa: D102
        self._has(sep)
        return [self]

    rsplit = split


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
    """Raise `LooksInsideError` if one of the values is a `Sealed` text."""
    if any(isinstance(v, Sealed) for v in values):
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


def tags(*values: Any) -> set[int]:
    """Every tag in the values, at any depth."""
    found: set[int] = set()
    for value in values:
        refuse_sealed(value)
        if isinstance(value, Tracked):
            found |= {tag for _, _, tag in value.spans}
        elif isinstance(value, dict):
            found |= tags(*value.keys(), *value.values())
        elif isinstance(value, list | tuple):
            found |= tags(*value)
    return found


def opaque(text: str, *origins: Any) -> str:
    """A text made from `origins` by an operation that does not pass spans on.

    If the origins have one tag, the whole text gets it; several fields of one message count as its first field. If they
    have tags of several messages, the text gets `UNKNOWN`.
    """
    found = tags(*origins)
    if not found or not text:
        return text
    one = min(found) if len({of(tag) for tag in found}) == 1 and UNKNOWN not in found else UNKNOWN
    return Tracked(text, [(0, len(text), one)])
