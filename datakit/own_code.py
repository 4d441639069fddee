"""The user's own code: what a name in a recipe means, what an object of the Python API is called, what it is made of.

A name is `package.module:Name`, or `file.py:name` with a path from the folder in which the command runs, or that of an
entry point of an installed package. That folder is searched for modules as `python -m` does it. Workers find the code
by its name too. Only a function that no import finds (of a notebook, of `__main__`, made by another function) stays an
object: it runs in threads of this process.

What a result depends on is the code's digest: the files of its module and of all modules of the user that this one
imports, directly or not; the constants in a closure; the versions of the installed packages that they import; and its
`version`, for what code cannot say, such as a list of words on the disk. A function of a notebook has no file: its own
source counts, and that of the functions and constants that it names.
"""

import ast
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
import traceback
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from datakit.config import digest
from datakit.errors import ConfigError

_GIVEN: dict[str, Any] = {}
"""By name: the objects that the Python API was given and no import finds."""


def name_of(given: Any) -> str:
    """The name by which `find` finds a function or class again.

    Raises:
        ConfigError: a function without a name, or an object that is neither a function nor a class.
    """
    if not isinstance(given, type | types.FunctionType) or given.__name__ == "<lambda>":
        raise ConfigError(f"{given!r}: expected a function with a name (def), a class, or a name of one")
    name = f"{given.__module__}:{given.__qualname__}"
    with_module = vars(sys.modules.get(given.__module__, types.ModuleType(""))).get(given.__qualname__)
    if given.__module__ == "__main__" or with_module is not given:
        name += f"@{code_digest(given)[:8]}"  # two of one name may be in use
        _GIVEN[name] = given
    return name


def batched(function: Any = None, *, version: str = "") -> Any:
    """Mark a function of the user's as one of batches (`pa.RecordBatch`), with `@datakit.batched` above it.

    `version` enters the key of results, for what the code cannot say. A function of rows has it as an attribute:
    `no_todo.version = "2"`.
    """
    if function is None:
        return lambda inner: batched(inner, version=version)
    function.takes_batches, function.version = True, version
    return function


def is_batched(function: Any) -> bool:
    """Whether a function is marked so."""
    return bool(vars(function).get("takes_batches"))


def is_own(name: str, group: str) -> bool:
    """Whether a name means code of the user, or of an installed package that offers it in a group of entry points."""
    return ":" in name or name in importlib.metadata.entry_points(group=group).names


def is_here_only(name: str) -> bool:
    """Whether a name means an object that only this process has."""
    return name in _GIVEN


def find(name: str, group: str) -> Any:
    """The object that a name means; a name without a colon is that of an entry point of a group (`datakit.rules`).

    Raises:
        ConfigError: there is none, or its module fails.
    """
    if name in _GIVEN:
        return _GIVEN[name]
    if ":" not in name:
        points = importlib.metadata.entry_points(group=group)
        if name not in points.names:
            raise ConfigError(f"{name}: no installed package has an entry point of this name in {group}")
        return points[name].load()
    place, _, attribute = name.rpartition(":")
    module = _module(place)
    if attribute not in vars(module):
        raise ConfigError(f"{name}: {module.__file__} has no {attribute!r}")
    return vars(module)[attribute]


@cache
def _module(place: str) -> types.ModuleType:
    """The module of a name's first part; its folder, or that of the command, is searched for what it imports."""
    file = Path(place).resolve() if place.endswith(".py") else None
    folder = str(file.parent if file else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        if file is None:
            return importlib.import_module(place)
        known = sys.modules.get(file.stem)  # as `import file` would have it, so that both are one module
        if known is not None and known.__file__ == str(file):
            return known
        spec = importlib.util.spec_from_file_location(file.stem if known is None else f"{file.stem} of {folder}", file)
        assert spec is not None and spec.loader is not None
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except Exception as e:  # whatever the user's module raises
        raise ConfigError(f"{place}: cannot be imported: {type(e).__name__}: {e}") from e


def what_failed(error: Exception, function: Any) -> str:
    """An error of the user's code for people: its type, its text, and the last line of the function's own file."""
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    own = [f for f in frames if code is not None and f.filename == code.co_filename]
    at = (own or frames)[-1]
    return f"{type(error).__name__}: {error} ({at.filename}, line {at.lineno})"


# What it is made of.


def code_digest(given: Any) -> str:
    """64 hex digits of a function's or class's code: see the head of this file.

    Raises:
        ConfigError: a function whose source cannot be read, or a closure with something else than constants.
    """
    parts: dict[str, str] = {"version": str(vars(given).get("version", ""))}
    module = sys.modules.get(given.__module__)
    if (file := getattr(module, "__file__", None)) is not None and Path(file).is_file():  # not <stdin>
        parts |= _files(Path(file), given.__module__)
        parts |= {f"closure {n}": v for n, v in _closure(given)}
    else:
        parts |= dict(_source(given, set()))
    return digest(parts)


def _files(file: Path, name: str) -> dict[str, str]:
    """The SHA-256 of a module's file and of those of the user that it imports, and versions of installed packages."""
    found, waiting = dict[str, str](), [(file, name)]
    while waiting:
        path, module = waiting.pop()
        if module in found:
            continue
        content = path.read_bytes()
        found[module] = hashlib.sha256(content).hexdigest()
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for imported in imports(ast.parse(content), package):
            origin = _origin(imported)
            if origin is not None and {"site-packages", "dist-packages"} & {*origin.parts}:
                found |= _version(imported.partition(".")[0])
            elif origin is not None:
                waiting.append((origin, imported))
    return found


def imports(tree: ast.AST, package: str = "") -> Iterator[str]:
    """The modules, and the names in them, that a module of a package may import, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(base, package) if node.level and package else base
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _origin(module: str) -> Path | None:
    """The file of a module; None for what is Python's own, datakit's, or no module."""
    if module.partition(".")[0] in (*sys.stdlib_module_names, "datakit"):
        return None
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


@cache
def _version(package: str) -> dict[str, str]:
    names = importlib.metadata.packages_distributions().get(package, ())
    return {f"package {name}": importlib.metadata.version(name) for name in names}


def _closure(function: Any) -> Iterator[tuple[str, str]]:
    """The names and values that a function took from the function around it, and the defaults of its arguments."""
    if isinstance(function, types.FunctionType):
        defaults = {f"default {i}": value for i, value in enumerate(function.__defaults__ or ())}
        taken = {**inspect.getclosurevars(function).nonlocals, **defaults, **(function.__kwdefaults__ or {})}
        for name, value in taken.items():
            yield name, _constant(name, value)


def _source(given: Any, seen: set[int]) -> Iterator[tuple[str, str]]:
    """The source of a function without a file, and what it names: functions, constants, modules."""
    seen.add(id(given))
    try:
        yield f"source {given.__qualname__}", inspect.getsource(given)
    except (OSError, TypeError):
        raise ConfigError(f"{given.__qualname__}: its source cannot be read; put it into a file") from None
    yield from _closure(given)
    named = inspect.getclosurevars(given).globals if isinstance(given, types.FunctionType) else {}
    for name, value in named.items():
        if isinstance(value, types.ModuleType):
            origin = _origin(value.__name__)
            installed = origin is not None and "site-packages" in origin.parts
            yield from (
                _version(value.__name__.partition(".")[0])
                if installed or not origin
                else _files(origin, value.__name__)
            ).items()
        elif isinstance(value, type | types.FunctionType):
            if id(value) not in seen and sys.modules.get(value.__module__) is sys.modules.get(given.__module__):
                yield from _source(value, seen)
        else:
            yield f"value {name}", _constant(name, value)


def _constant(name: str, value: Any) -> str:
    """A constant as text, equal in every process.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(value, set | frozenset):
        return f"set {sorted(_constant(name, v) for v in value)}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} {[_constant(name, v) for v in value]}"
    if isinstance(value, dict):
        return f"dict {[(_constant(name, k), _constant(name, v)) for k, v in value.items()]}"
    if value is None or isinstance(value, str | bytes | int | float):
        return repr(value)
    if isinstance(value, type | types.FunctionType):
        return code_digest(value)
    if pattern := getattr(value, "pattern", None):  # a compiled regular expression
        return f"{pattern!r} {value.flags}"
    raise ConfigError(f"{name} is a {type(value).__name__}: its value cannot enter the key. Put the function into a "
                      "module, and set its `version` when such a value changes")  # fmt: skip
