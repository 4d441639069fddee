"""A stage's identity: a hash of the code that it runs, which decides with the input and the config what is up to date.

The code of a stage is the modules of this package that it imports, directly or not, also inside functions; the modules
that its configuration chooses; and the modules of the engine that cut, read or write rows. Comments, docstrings and
`if TYPE_CHECKING:` blocks do not count. Neither do the command line, reports and other stages.

The hash is taken from syntax trees, and it is the same on every Python version. Standard library only.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datakit.stage import Stage

PACKAGE = Path(__file__).parents[1]
ROW_CODE = ("datakit.engine.runner", "datakit.engine.store", "datakit.data", "datakit.stage")
"""The modules that cut, read or write the rows of every stage. What these import counts only if a stage imports it."""


def code_hash(stage: "Stage") -> str:
    """SHA-256 over the code that a stage runs, 64 hex digits."""
    lines = (f"{name}\0{digest}\n" for name, digest in module_hashes(stage).items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def module_hashes(stage: "Stage") -> dict[str, str]:
    """The hash of each module that holds code of a stage, sorted by name."""
    return {name: module_hash(name) for name in modules_of(type(stage).__module__, *stage.modules())}


def modules_of(*modules: str) -> list[str]:
    """The modules that hold the code of a stage, sorted, from its own module and those that its config chooses."""
    return sorted({*import_closure(modules), *ROW_CODE})


def import_closure(modules: Iterable[str]) -> set[str]:
    """The modules of this package that some modules import, directly or not, themselves among them.

    A package's `__init__` counts where it is imported by name. `datakit/__init__.py` itself never does: it offers the
    whole library, loaded on first use.
    """
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and name != PACKAGE.name and _source(name) is not None:
            found.add(name)
            waiting += _read_module(name)[1]
    return found


def module_hash(name: str) -> str:
    """SHA-256 over a module's syntax tree without docstrings, 64 hex digits."""
    return _read_module(name)[0]


def _source(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first != PACKAGE.name:
        return None
    path = PACKAGE.joinpath(*rest)
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


def _read_module(name: str) -> tuple[str, tuple[str, ...]]:
    """(hash of a module's code, the modules of this package that it imports)."""
    path = _source(name)
    assert path is not None, name
    return _parsed(path, path.stat().st_mtime_ns)


@cache
def _parsed(path: Path, mtime_ns: int) -> tuple[str, tuple[str, ...]]:
    imported: dict[str, None] = {}
    text = json.dumps(_plain(ast.parse(path.read_bytes()), imported), separators=(",", ":")).encode()
    return hashlib.sha256(text).hexdigest(), tuple(name for name in imported if _source(name) is not None)


_VERSION_FIELDS = {"type_params", "type_comment", "type_ignores", "kind"}  # differ between versions of Python


def _plain(node: Any, imported: dict[str, None]) -> Any:
    """A syntax tree as JSON, without positions and what differs between versions of Python; fills `imported`."""
    if isinstance(node, list):
        return [_plain(n, imported) for n in _code(node)]
    if isinstance(node, str):
        return node
    if not isinstance(node, ast.AST):
        return [type(node).__name__, repr(node)]
    if isinstance(node, ast.JoinedStr):  # Python 3.12 has empty texts in format specifications
        node.values = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")]
    elif isinstance(node, ast.Import):
        imported |= dict.fromkeys(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        imported |= dict.fromkeys([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    fields = ((name, getattr(node, name, None)) for name in sorted(node._fields) if name not in _VERSION_FIELDS)
    return [type(node).__name__, *([n, _plain(v, imported)] for n, v in fields if v is not None and v != [])]


def _code(nodes: list[Any]) -> Iterator[Any]:
    """The nodes without docstrings (also those under fields) and without blocks for type checkers."""
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _code(node.orelse)
        elif not _is_docstring(node):
            yield node


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
