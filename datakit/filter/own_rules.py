"""Rules of the user's own: a function of a row, a function of a batch, or a rule set. See docs/extending.md.

    def no_todo(row):                          # a row as a dictionary: its columns, and the fields of `extra`
        return "todo" if "TODO" in row["text"] else None

    @datakit.batched
    def long_enough(batch):                    # a pa.RecordBatch
        return pc.greater(pc.utf8_length(batch["text"]), 20)

True or None keeps a row. False drops it, and the function's name is the reason. A text drops it and is the reason.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

import datakit.own_code as own_code
from datakit.config import assign, build
from datakit.errors import ConfigError, InputError
from datakit.filter.own_map import called, name_of_row, records_of
from datakit.filter.rule_set import Measure, MeasuredRows, Resources, RuleSet

GROUP = "datakit.rules"
"""The entry points of installed packages."""
_MOST_CHARS = 200
"""A reason is the name of a kind of rows: the ledger counts each by itself. What is measured belongs elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionRule(RuleSet):
    """A rule set that asks a function of the user about every row, or every batch."""

    name: ClassVar[str] = ""
    function: str
    """A name as in `own_code`."""

    def resources(self) -> Resources:
        """Find the function."""
        own_code.find(self.function, GROUP)
        return Resources()

    def judged(self, rows: MeasuredRows) -> Iterator[tuple[str, float, Measure]]:
        """A threshold for each reason that the function gives."""
        found = np.array(self._reasons(rows.unmeasured()), object)
        for reason in dict.fromkeys(r for r in found if r is not None):
            measure = Measure("max_rows", np.asarray(found == reason, np.int64), describe=self._details)
            yield reason, 0, measure

    def _details(self, rows: Any) -> list[str]:
        return [f"by {self.function}"] * len(rows)

    def _reasons(self, batch: pa.RecordBatch) -> list[str | None]:
        function = own_code.find(self.function, GROUP)
        if own_code.is_batched(function):
            found = called(self.function, f"the batch that begins with {name_of_row(batch, 0)}", function, batch)
            said = found.to_pylist() if isinstance(found, pa.Array | pa.ChunkedArray) else list(found)
            if len(said) != batch.num_rows:
                raise InputError(
                    f"{self.function}: expected {batch.num_rows} answers, one for each row; found {len(said)}"
                )
        else:
            records = records_of(batch)
            said = [called(self.function, name_of_row(batch, i), function, row) for i, row in enumerate(records)]
        return [self._reason(batch, i, answer) for i, answer in enumerate(said)]

    def _reason(self, batch: pa.RecordBatch, row: int, answer: Any) -> str | None:
        if answer is None or answer is True or (isinstance(answer, np.bool_) and answer):
            return None
        if answer is False or isinstance(answer, np.bool_):
            return str(own_code.find(self.function, GROUP).__name__)
        if isinstance(answer, str) and 0 < len(answer) <= _MOST_CHARS:
            return answer
        raise InputError(
            f"{self.function}: {name_of_row(batch, row)}: expected True or None (keep), False, or a reason of 1 to "
            f"{_MOST_CHARS} characters; found {str(answer)[:80]!r}"
        )


def own_rule(name: str, values: dict[str, Any]) -> RuleSet:
    """The rule set that a name means: a function, or a subclass of `RuleSet` with the thresholds `values`.

    Raises:
        ConfigError: it is neither, or it has no such thresholds.
    """
    found = own_code.find(name, GROUP)
    where, typed = f"filter.own.{name}", dict[str, Any]()
    if isinstance(found, type) and issubclass(found, RuleSet):
        for key, value in values.items():
            if isinstance(value, str):  # of a flag
                assign(typed, found, key, value, where)
            else:
                typed[key] = value
        return build(found, typed, where)
    if isinstance(found, type) or not callable(found):
        raise ConfigError(
            f"{name}: expected a function or a subclass of datakit.filter.rule_set.RuleSet; found {found!r}"
        )
    if values:
        raise ConfigError(f"{where}: a function has no thresholds; make it a RuleSet to give it some")
    return FunctionRule(function=name)


def named(rules: Sequence[Any]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Rules as the Python API is given them -> (their names, the thresholds of rule sets by these names)."""
    names, thresholds = list[str](), dict[str, dict[str, Any]]()
    for rule in rules:
        if isinstance(rule, str):
            names.append(rule)
        elif isinstance(rule, RuleSet):
            names.append(own_code.name_of(type(rule)))
            thresholds[names[-1]] = dataclasses.asdict(rule)
        else:
            names.append(own_code.name_of(rule))
    return names, thresholds
