"""What a rule set is, how it is found, and how its measures become reasons.

A rule set is a module of `datakit.filter` with two names: `Config`, a frozen dataclass of thresholds, and
`measure(rows, config)`, which yields one `Measure` for each threshold in the order in which they decide. The module's
name is the rule set's name in recipes and reasons: a file put into the folder is a rule set, with no list to enter.
A threshold's name says how it decides: `min_words` drops what measures less, `max_words` what measures more.

More names where a rule set needs them:
- `count(texts, config)` counts signals of its own (`COUNTING` are the fields of its config that shape them), which it
  asks for with `rows.counted(name)`; `SEES` is the view of a row that it counts in, whatever the stage's;
- `edit(texts, config, kind)` says what the texts of rows that stay become;
- `report(rows, texts, config)` makes tables to write beside the rows, `notes(rows, stays, config)` counts for the
  ledger; `resources(config)` and `prepare(config)` are a stage's `resources` and `open`.
"""

import functools
import importlib
import math
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import datakit.filter
from datakit.errors import ConfigError
from datakit.filter.signals import Signals


class Rows(Protocol):
    """What a rule set may look at."""

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows as they are."""

    @property
    def signals(self) -> Signals:
        """The signals of the rows' view, counted when first asked for."""

    def counted(self, rule_set: str) -> Signals:
        """The signals that a rule set counts by itself, by its config of these rows' stage."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a threshold is held against."""

    threshold: str
    """The config's field, `min_...` or `max_...`; the rest of the name is what was measured."""
    values: NDArray[Any]
    """int64[N] or float64[N], floats rounded to 1e-3."""
    applies: NDArray[np.bool_] | None = None
    """bool[N]: False where the rule says nothing about a row; None applies to all."""

    def fails(self, limit: float) -> NDArray[np.bool_]:
        """bool[N]: the rows on the wrong side of the limit."""
        wrong = self.values < limit if self.threshold.startswith("min_") else self.values > limit
        return np.asarray(wrong if self.applies is None else wrong & self.applies)

    def details(self, limit: float, rows: NDArray[np.int64]) -> list[str]:
        """For people, of some rows: what was measured, and the limit."""
        what, sign = self.threshold[4:], "<" if self.threshold.startswith("min_") else ">"
        return [f"{what} {value} {sign} {limit}" for value in self.values[rows].tolist()]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The first threshold that each row fails: object[N] of str, None for a row that passes."""

    reasons: NDArray[np.object_]
    details: NDArray[np.object_]


def available() -> tuple[str, ...]:
    """The names of the rule sets there are, sorted."""
    return tuple(_modules())


def config_class(name: str) -> type:
    """The class of a rule set's thresholds.

    Raises:
        ConfigError: there is no rule set of that name.
    """
    found: type = _module(name).Config
    return found


def measures(name: str, rows: Rows, config: Any) -> Iterator[Measure]:
    """What a rule set measures of rows, in the order in which its thresholds decide."""
    found: Iterator[Measure] = _module(name).measure(rows, config)
    return found


def has(name: str, function: str) -> bool:
    """Whether a rule set has one of the names that not all have."""
    return hasattr(_module(name), function)


def part(name: str, what: str) -> Any:
    """One of the names that not all rule sets have, of one that has it."""
    return getattr(_module(name), what)


def counting(name: str, config: Any) -> dict[str, Any]:
    """The values of a rule set's config that shape what it counts."""
    return {field: getattr(config, field) for field in _module(name).COUNTING}


def judge(rule_sets: Iterable[tuple[str, Any]], rows: Rows, count: int) -> Verdicts:
    """Hold the rows against (name, config) of each rule set, in that order; the first failure is a row's reason."""
    reasons, details = np.full(count, None, object), np.full(count, None, object)
    for name, config in rule_sets:
        for measure in measures(name, rows, config):
            limit = getattr(config, measure.threshold)
            failed = np.flatnonzero(measure.fails(limit) & (reasons == None))  # noqa: E711
            reasons[failed] = f"{name}.{measure.threshold}"
            details[failed] = measure.details(limit, failed)
    return Verdicts(reasons, details)


@functools.cache
def _modules() -> dict[str, ModuleType]:
    """Rule sets by name: the modules of this package that have a Config and a measure()."""
    names = sorted(m.name for m in pkgutil.iter_modules(datakit.filter.__path__) if not m.name.startswith("_"))
    found = {n: importlib.import_module(f"{datakit.filter.__name__}.{n}") for n in names if n != "stage"}
    return {n: m for n, m in found.items() if hasattr(m, "Config") and hasattr(m, "measure")}


def _module(name: str) -> ModuleType:
    if name not in _modules():
        raise ConfigError(f"unknown rule set {name!r}; there are {', '.join(available())}")
    return _modules()[name]


def labels(batch: pa.RecordBatch) -> pa.Array:
    """string[N]: the language of each row, null where it is not known."""
    return (
        batch.column("lang").cast(pa.string())
        if "lang" in batch.schema.names
        else pa.nulls(batch.num_rows, pa.string())
    )


def check_ratios(config: Any) -> None:
    """For `__post_init__`: every `*_ratio` lies in 0..1, no other number is negative, no minimum exceeds its maximum.

    Raises:
        ConfigError: a threshold that makes no sense.
    """
    values = {n: v for n in type(config).__slots__ if isinstance(v := getattr(config, n), int | float)}
    for name, value in values.items():
        if not 0 <= value < math.inf or (name.endswith("_ratio") and value > 1):
            raise ConfigError(
                f"{name} = {value}: expected {'a share from 0 to 1' if '_ratio' in name else '0 or more'}"
            )
        if name.startswith("min_") and value > values.get("max_" + name[4:], value):
            raise ConfigError(f"{name} = {value} is more than max_{name[4:]} = {values['max_' + name[4:]]}")
