"""Renders chat templates in jinja2's sandbox so that `Tracked` texts keep their spans; the built-in templates.

What cannot pass spans on gives an `opaque` text: all of it counts as one field, or as text of unknown origin.
"""

import ctypes
import datetime
import functools
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Self

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from datakit.pack.tracked import Sealed, Tracked, concat, dumped, join, opaque, refuse_sealed

MARK = -2
"""Tag of the two characters that mark the start and the end of a `{% generation %}` block; `unmarked` removes them."""
OPEN, CLOSE = "\ufdd1", "\ufdd2"

TODAY = datetime.date(2024, 7, 26)
"""The date that `strftime_now` formats: Llama 3.1's fallback. With the real date, tokens would change every day."""

KEEPING = frozenset({"trim", "replace", "default", "d", "first", "last", "upper", "lower", "capitalize", "attr"})
"""Filters that call methods of a `Tracked` value, which pass its spans on."""


class Generation(Extension):
    """`{% generation %} ... {% endgeneration %}`: marks the text of the assistant."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """Wrap the body of the block in a call of `_marked`."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Callable[[], str]) -> str:
        return concat((Tracked(OPEN, [(0, 1, MARK)]), caller(), Tracked(CLOSE, [(0, 1, MARK)])))


FORESEEN = frozenset({"trim", "replace", "default", "d"})
"""Filters that `Sealed` texts may be given to: they call its methods."""
TYPE_TESTS = frozenset(
    {"boolean", "callable", "defined", "false", "float", "integer", "iterable", "mapping", "none", "number", "sequence"}
    | {"string", "true", "undefined", "eq", "equalto", "==", "ne", "!="}
)
"""Tests that `Sealed` texts may be given to: they look at its type, or call its `__eq__`."""


class _Followable(NodeTransformer):
    """Turns `a ~ b` into the `_tilde` filter, because jinja2 compiles it to a plain join, which loses the spans; and
    `a in b` into the test `in`, which `Sealed` texts cannot pass unseen."""

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if len(node.ops) != 1 or node.ops[0].op not in ("in", "notin"):
            return node
        test = nodes.Test(node.expr, "in", [node.ops[0].expr], [], None, None).set_lineno(node.lineno)
        return test if node.ops[0].op == "in" else nodes.Not(test).set_lineno(node.lineno)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return nodes.Filter(nodes.List(node.nodes), "_tilde", [], [], None, None).set_lineno(node.lineno)


class Sandbox(ImmutableSandboxedEnvironment):
    """Renders chat templates in jinja2's sandbox; `Tracked` strings keep their spans."""

    intercepted_binops = frozenset(["%"])
    concat = staticmethod(concat)

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, LoopControlExtension])
        self.filters = {name: _followed(f, name) for name, f in self.filters.items()}
        tests: dict[str, Any] = self.tests
        self.tests = {name: f if name in TYPE_TESTS else _tested(f, name) for name, f in tests.items()}
        self.filters |= {"tojson": _tojson, "join": _join, "_tilde": concat, "string": _string, "safe": _string}
        self.globals |= {"raise_exception": _raise, "strftime_now": TODAY.strftime}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Followable().visit(super()._parse(source, name, filename))
        return tree

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`%` on strings does not pass spans on: the result is `opaque`."""
        result = super().call_binop(context, operator, left, right)
        return opaque(result, left, right) if isinstance(result, str) else result

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Call anything; methods of plain strings that get `Tracked` arguments pass on spans or are `opaque`."""
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(owner, str) and getattr(__obj, "__name__", "") == "join":
            return join(owner, *args)
        given = (args, {k: v for k, v in kwargs.items() if k not in ("_loop_vars", "_block_vars")})  # jinja2 adds them
        if isinstance(owner, str):
            refuse_sealed(*args, *kwargs.values())
        result = super().call(__context, __obj, *args, **kwargs)
        if isinstance(result, str) and not isinstance(result, Tracked):
            refuse_sealed(*args, *kwargs.values())
        if not (isinstance(owner, str) and isinstance(result, str)):
            return result
        followed = isinstance(result, Tracked) and __obj.__name__ not in ("format", "format_map")
        return result if followed else opaque(result, owner, *given)


def _tested(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The test `f`, which may look into texts."""

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if name != "in" or not isinstance(args[-1], Sealed | list | tuple):
            refuse_sealed(*args, *kwargs.values())
        return f(*args, **kwargs)

    return wrapper


def _followed(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The filter `f`; its result is `opaque` if it has no spans, or if the filter may move text."""

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if name not in FORESEEN:
            refuse_sealed(*args, *kwargs.values())
        result = f(*args, **kwargs)
        opaquely = isinstance(result, str) and (name not in KEEPING or not isinstance(result, Tracked))
        return opaque(result, args, kwargs) if opaquely else result

    return wrapper


def _join(value: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    return join(d, value if attribute is None else [v[attribute] for v in value])


def _string(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None,
            sort_keys: bool = False) -> str:  # fmt: skip
    return dumped(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> None:
    raise TemplateError(message)


CHATML = """\
{%- if tools -%}
{{ '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' -%}{{ messages[0].content + '\\n\\n' }}{%- endif -%}
{{ '# Tools\\n\\nYou may call these functions:\\n<tools>' }}
{%- for tool in tools -%}{{ '\\n' + (tool | tojson) }}{%- endfor -%}
{{ '\\n</tools>\\n\\nTo call one, answer with\\n<tool_call>\\n{"name": <name>, "arguments": <object>}\\n</tool_call>' }}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if not (tools and loop.first and message.role == 'system') -%}
{{ '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'tool' -%}{{ message.content }}
{%- elif message.role == 'assistant' -%}
{%- generation -%}
{%- if message.reasoning_content -%}{{ '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif -%}
{{ message.content }}
{%- for call in message.tool_calls or [] -%}
{%- if message.content or not loop.first -%}{{ '\\n' }}{%- endif -%}
{{ '<tool_call>\\n' + (call.function or call) | tojson + '\\n</tool_call>' }}
{%- endfor -%}
{{ '<|im_end|>' }}
{%- endgeneration -%}
{%- else -%}{{ message.content }}
{%- endif -%}
{%- if message.role != 'assistant' -%}{{ '<|im_end|>' }}{%- endif -%}
{{ '\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""

LLAMA3 = """\
{{- bos_token or '' -}}
{%- for message in messages -%}
{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{ message.content | trim + '<|eot_id|>' }}{%- endgeneration -%}
{%- else -%}{{ message.content | trim + '<|eot_id|>' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif -%}
"""

PLAIN = """\
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{ 'Assistant: ' }}{%- generation -%}{{ message.content + eos_token }}{%- endgeneration -%}{{ '\\n' }}
{%- elif message.role == 'system' -%}{{ message.content + '\\n' }}
{%- else -%}{{ message.role | capitalize + ': ' + message.content + '\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'Assistant: ' }}{%- endif -%}
"""
BUILT_IN = {"chatml": CHATML, "llama3": LLAMA3, "plain": PLAIN}

ROW_SECONDS = 1.0
"""A template that needs more than this for a row is stopped."""


class TooSlowError(Exception):
    """A chat template takes too long; raised in the thread that renders."""


class Watch:
    """Interrupts a template that renders one row for more than a second (of CPU time, where the system tells it).

    A row may take another second for each million characters.
    """

    def __init__(self) -> None:
        self._thread, self._row, self._done = threading.get_ident(), (0.0,), threading.Event()
        self._watcher = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._row = (0.0,)
        self._done.set()
        self._watcher.join()

    def begin(self, characters: int) -> None:
        """A row is about to be rendered; 0 characters: no row is."""
        self._row = (ROW_SECONDS * (1 + characters / 1e6) if characters else 0.0,)

    def _look(self) -> None:
        seen, since = self._row, 0.0
        clock = time.pthread_getcpuclockid(self._thread) if hasattr(time, "pthread_getcpuclockid") else None
        while not self._done.wait(ROW_SECONDS / 4):
            now = time.monotonic() if clock is None else time.clock_gettime(clock)
            if self._row is not seen:
                seen, since = self._row, now
            elif seen[0] and now - since > seen[0]:
                thread, error = ctypes.c_ulong(self._thread), ctypes.py_object(TooSlowError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)
                self._row = (0.0,)
