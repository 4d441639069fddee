"""Import modules without the slow libraries that they use, to read their options: `--help` need not wait for torch."""

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Absent(type):
    """A name of a library that is not loaded: a class whose items and results are itself, its attributes like it."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(name, (), {})  # of its own, as a class may have several bases

    def __call__(cls, *args: Any, **kwargs: Any) -> type:
        return cls

    __getitem__ = __call__


class _Finder(MetaPathFinder, Loader):
    """Finds modules of the libraries, in which every name is absent, as Sphinx does it to read docstrings."""

    def __init__(self, libraries: tuple[str, ...]) -> None:
        self.libraries = libraries

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.libraries else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = partial(getattr, _Absent("Absent", (), {}))


@contextlib.contextmanager
def absent(libraries: tuple[str, ...], package: str) -> Iterator[None]:
    """Inside the context modules of `package` are imported without some libraries; afterwards as if they never were.

    Classes and functions are made as always, but what uses a library does not work. Modules that were imported before
    the context stay, libraries too.
    """
    known, finder = set(sys.modules), _Finder(libraries)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n not in known and n.split(".")[0] in (package, *libraries)]:
            parent, _, own = name.rpartition(".")
            vars(sys.modules.get(parent, sys)).pop(own, None)  # a package has its modules as attributes, too
            del sys.modules[name]
