"""Text that remembers where its characters came from, through a chat template's string operations.

A template mixes its own text (role headers, end-of-turn tokens) with text from the row (what people wrote). Only the
template's own text may structure a conversation: a user who writes `<|im_end|>` has written ten characters. So row
text enters the template as `Tracked`, a `str` with spans (start, end, tag), and every operation that a template may
apply hands the spans on. Where an operation's result cannot be followed, its text is tagged `UNKNOWN`, and the caller
refuses the row instead of guessing.
"""

import datetime
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, SupportsIndex

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

Span = tuple[int, int, int]
"""Start, end (half-open, in characters) and tag."""

UNKNOWN = -1
"""Tag of text of unknown origin."""


class Tracked(str):
    """A string with the spans of it that came from a row; the rest is the template's own."""

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
        """The pieces as slices of this string; each is searched for behind the one before."""
        pieces, at = [], 0
        for text in found:
            at = self.index(text, at)
            pieces.append(self[at : at + len(text)])
            at += len(text)
        return pieces

    def _joined_by(self, gap: int, found: list[str]) -> list[str]:
        """The pieces as slices, where `gap` characters lie between each two."""
        pieces, at = [], 0
        for text in found:
            pieces.append(self[at : at + len(text)])
            at += len(text) + gap
        return pieces


def _cut(spans: tuple[Span, ...], start: int, stop: int) -> list[Span]:
    return [(max(a, start) - start, min(b, stop) - start, tag) for a, b, tag in spans if a < stop and b > start]


def concat(parts: Iterable[Any]) -> str:
    """The parts joined without a separator, their spans kept; a plain `str` if none has any."""
    texts: list[str] = []
    spans: list[Span] = []
    at = 0
    for part in parts:
        text = part if isinstance(part, str) else str(part)
        if isinstance(text, Tracked):
            spans.extend((a + at, b + at, tag) for a, b, tag in text.spans)
        texts.append(text)
        at += len(text)
    joined = "".join(texts)
    return Tracked(joined, spans) if spans else joined


def join(separator: str, parts: Iterable[Any]) -> str:
    """`separator.join(parts)` with the spans of both kept; parts that are no strings are made so."""
    pieces: list[Any] = []
    for part in parts:
        pieces += [separator, part]
    return concat(pieces[1:])


def track(value: Any, tag: int) -> Any:
    """A copy of a JSON value in which every string, and every key, carries the tag."""
    if isinstance(value, str):
        return Tracked(value, [(0, len(value), tag)] if value else [])
    if isinstance(value, dict):
        return {track(k, tag): track(v, tag) for k, v in value.items()}
    return [track(v, tag) for v in value] if isinstance(value, list | tuple) else value


def tags(*values: Any) -> set[int]:
    """Every tag in the values, however deep; `UNKNOWN` stands for strings that are only partly tagged."""
    found: set[int] = set()
    for value in values:
        if isinstance(value, Tracked):
            found |= {tag for _, _, tag in value.spans}
        elif isinstance(value, dict):
            found |= tags(*value.keys(), *value.values())
        elif isinstance(value, list | tuple):
            found |= tags(*value)
    return found


def opaque(text: str, *origins: Any) -> str:
    """A text made from the origins in a way that cannot be followed: theirs as a whole if they carry one tag."""
    found = tags(*origins)
    if not found or not text:
        return text
    return Tracked(text, [(0, len(text), found.pop() if len(found) == 1 else UNKNOWN)])


MARK = -2
"""Tag of the characters that stand where a `{% generation %}` block begins and ends; never part of the text."""
OPEN, CLOSE = "\ufdd1", "\ufdd2"

TODAY = datetime.date(2024, 7, 26)
"""What `strftime_now` formats: Llama 3.1's own fallback. A real date would make every day's tokens differ."""


KEEPING = frozenset({"trim", "replace", "default", "d", "first", "last", "upper", "lower", "capitalize", "attr"})
"""Filters that keep the provenance of a `Tracked` value by themselves, through its methods."""


class Generation(Extension):
    """`{% generation %} ... {% endgeneration %}`: marks what the assistant says."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """Wrap the block's body in a call to `_marked`."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Callable[[], str]) -> str:
        return concat((Tracked(OPEN, [(0, 1, MARK)]), caller(), Tracked(CLOSE, [(0, 1, MARK)])))


class _TildeToJoin(NodeTransformer):
    """`a ~ b` compiles to a plain join that forgets provenance: make it the `_tilde` filter."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return nodes.Filter(nodes.List(node.nodes), "_tilde", [], [], None, None).set_lineno(node.lineno)


class Sandbox(ImmutableSandboxedEnvironment):
    """Renders chat templates; strings that are `Tracked` keep their provenance, others cost nothing more."""

    intercepted_binops = frozenset(["%"])
    concat = staticmethod(concat)

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, LoopControlExtension])
        self.filters = {name: _followed(f, name not in KEEPING) for name, f in self.filters.items()}
        self.filters |= {"tojson": _tojson, "join": _join, "_tilde": concat, "string": _string, "safe": _string}
        self.globals |= {"raise_exception": _raise, "strftime_now": TODAY.strftime}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _TildeToJoin().visit(super()._parse(source, name, filename))
        return tree

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`%` on strings: the result cannot be followed."""
        result = super().call_binop(context, operator, left, right)
        return opaque(result, left, right) if isinstance(result, str) else result

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Call a method of the template's own string with the row's strings in it, or any other callable."""
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(owner, str) and getattr(__obj, "__name__", "") == "join":
            return join(owner, *args)
        result = super().call(__context, __obj, *args, **kwargs)
        if not (isinstance(owner, str) and isinstance(result, str)):
            return result
        followed = isinstance(result, Tracked) and __obj.__name__ not in ("format", "format_map")
        return result if followed else opaque(result, owner, args, kwargs)


def _followed(f: Callable[..., Any], mixes: bool) -> Callable[..., Any]:
    """A filter whose text counts as opaque where the filter forgets provenance, or may mix it up."""

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)
        opaquely = isinstance(result, str) and (mixes or not isinstance(result, Tracked))
        return opaque(result, args, kwargs) if opaquely else result

    return wrapper


def _join(value: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    return join(d, value if attribute is None else [v[attribute] for v in value])


def _string(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None,
            sort_keys: bool = False) -> str:  # fmt: skip
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    found = tags(value)
    return Tracked(text, [(0, len(text), found.pop() if len(found) == 1 else UNKNOWN)]) if found else text


def _raise(message: str) -> None:
    raise TemplateError(message)
