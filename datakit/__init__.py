"""datakit: raw text, conversations and preference pairs in; packed, verified, versioned training data out.

    import datakit

    result = datakit.dedup(table, threshold=0.8)     # a pa.Table, anything with __arrow_c_stream__, files, a glob
    result.kept, result.dropped, result.quarantined  # pa.Table each
    datakit.open("manifests/mydata/filter.json")     # a result on the disk

Each stage is a function of its name; each is a step of a `Pipeline` too (`datakit.Dedup(threshold=0.8)`). This module
imports the standard library only; the rest is loaded on first use. See docs/python.md.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "DatakitError", "Dataset", "Dedup", "Filter", "Ingest", "Language", "Map", "Normalize", "Pack", "Pipeline",
    "Result", "Tokenize", "ablate", "batched", "dedup", "filter", "ingest", "language", "map", "normalize", "open",
    "pack", "tokenize",
]  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from datakit.api import Dataset, Pipeline, Result, Step
    from datakit.api import Dataset as open  # noqa: A004, N813
    from datakit.engine.ablate import ablate
    from datakit.errors import DatakitError
    from datakit.own_code import batched

    Dedup: Callable[..., Step]
    Filter: Callable[..., Step]
    Ingest: Callable[..., Step]
    Language: Callable[..., Step]
    Map: Callable[..., Step]
    Normalize: Callable[..., Step]
    Pack: Callable[..., Step]
    Tokenize: Callable[..., Step]
    ingest: Callable[..., Result]
    language: Callable[..., Result]
    map: Callable[..., Result]  # noqa: A001
    normalize: Callable[..., Result]
    tokenize: Callable[..., Result]


class StagePackage(ModuleType):
    """A package that is named as the stage it holds: `datakit.dedup(table)` runs the stage, as `datakit.language` does.

    The packages `dedup`, `filter` and `pack` have this class, so that the function and the package are one object.
    """

    def __call__(self, data: Any, **values: Any) -> Any:
        """Run the stage, as the function of `datakit.api.stage_function` does."""
        return self._function(data, **values)

    @property
    def _function(self) -> Any:
        from datakit.api import stage_function

        return stage_function(self.__name__.rpartition(".")[2])

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        return signature(self._function)


# `help(datakit.dedup)` shows the stage's options, and not the package's line
setattr(StagePackage, "__doc__", property(lambda package: package._function.__doc__))  # noqa: B010 (mypy takes no other)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    from importlib import import_module

    if name in ("dedup", "filter", "pack"):
        return import_module(f"datakit.{name}")
    if name in (places := {"DatakitError": "errors", "batched": "own_code", "ablate": "engine.ablate"}):
        return vars(import_module(f"datakit.{places[name]}"))[name]
    api = import_module("datakit.api")
    if name in ("Dataset", "Pipeline", "Result", "open"):
        return getattr(api, "Dataset" if name == "open" else name)
    if name in api.STEPS:
        made = api.step_function(api.STEPS[name])
    elif name in api.FLOW:
        made = api.stage_function(name)
    else:
        raise AttributeError(f"module 'datakit' has no attribute {name!r}")
    setattr(sys.modules[__name__], name, made)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
