"""The jinja2 environment that chat templates run in: sandboxed, with Hugging Face's additions, keeping provenance.

Template conventions follow transformers' `apply_chat_template`: `trim_blocks`, `lstrip_blocks`, loop controls,
`tojson` without ASCII escapes, `raise_exception`, `strftime_now` and `{% generation %}` blocks.
"""

import datetime
import functools
import json
from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from datakit.pack.provenance import UNKNOWN, Tracked, concat, join, opaque, tags

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
