"""The user's own functions: rules of the filter stage, and the map stage. See docs/extending.md.

    def no_todo(row):                          # a row as a dictionary: its columns, and the fields of `extra`
        return "todo" if "TODO" in row["text"] else None

    @datakit.batched
    def long_enough(batch):                    # a pa.RecordBatch
        return pc.greater(pc.utf8_length(batch["text"]), 20)

A rule is a function of a row, a function of a batch, or a rule set. True or None keeps a row. False drops it, and the
function's name is the reason. A text drops it and is the reason.

    def shorten(row):
        return row | {"text": row["text"][:1000]}

A map returns the row as it shall be, or None to drop it; the reason is the function's name then. Fields that are no
column go into `extra`. `id`, `source` and `row_key` stay what they are.
"""

import dataclasses
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import orjson
import pyarrow as pa

import datakit.own_code as own_code
from datakit.config import assign, build, option
from datakit.data import MESSAGE
from datakit.errors import ConfigError, InputError
from datakit.filter.rule_set import Measure, MeasuredRows, Resources, RuleSet
from datakit.stage import Decision, Stage
from datakit.text.words import with_hashes

RULES: Final = "datakit.rules"
MAPS: Final = "datakit.maps"
"""The entry points of installed packages."""

_OURS: Final = ("row_key", "content_hash")
_FIXED: Final = ("id", "source")
_TURNS: Final = ("messages", "prompt", "chosen", "rejected")
_MESSAGE_KEYS: Final = frozenset(f.name for f in MESSAGE)
_MOST_CHARS: Final = 200
"""A reason is the name of a kind of rows: the ledger counts each by itself. What is measured belongs elsewhere."""


def records_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch as dictionaries for people's functions: the fields of `extra` stand beside the columns."""
    names = [name for name in batch.schema.names if name not in _OURS]
    for row in batch.select(names).to_pylist():
        extra = row.get("extra")
        yield (orjson.loads(extra) if extra else {}) | row


def name_of_row(batch: pa.RecordBatch, row: int) -> str:
    """A row for people."""
    return f"the row {batch.column('id')[row].as_py()!r}" if "id" in batch.schema.names and batch.num_rows else "a row"


def called(name: str, where: str, function: Any, given: Any) -> Any:
    """What a function of the user says.

    Raises:
        InputError: it fails; with `where` and the user's line.
    """
    try:
        return function(given)
    except Exception as e:  # whatever the user's function raises
        at = traceback.extract_tb(e.__traceback__)[-1]
        raise InputError(f"{name}: {where}: {type(e).__name__}: {e} ({at.filename}, line {at.lineno})") from e


# Rules.


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionRule(RuleSet):
    """A rule set that asks a function of the user about every row, or every batch."""

    name: ClassVar[str] = ""
    function: str
    """A name as in `own_code`."""

    def resources(self) -> Resources:
        """Find the function."""
        own_code.find(self.function, RULES)
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
        function = own_code.find(self.function, RULES)
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
            return str(own_code.find(self.function, RULES).__name__)
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
    found = own_code.find(name, RULES)
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


# The map stage.


@dataclass(frozen=True, kw_only=True, slots=True)
class MapConfig:
    """Which function changes rows."""

    function: str = option("", "your function, as file.py:name or module:name: a row in, a row or None (drop) out")


@dataclass(frozen=True)
class Map(Stage):
    """Changes rows by a function of the user."""

    name: ClassVar[str] = "map"
    help: ClassVar[str] = "docs/extending.md has examples."
    Config: ClassVar[type] = MapConfig
    holds_gil: ClassVar[bool] = True

    config: MapConfig = field(default_factory=MapConfig)

    def use_processes(self) -> bool:
        """A function that only this process has stays in it."""
        return not own_code.is_here_only(self.config.function)

    def open(self) -> None:
        """Find the function.

        Raises:
            ConfigError: none is named, or there is none of this name.
        """
        if not self.config.function:
            raise ConfigError("map: name your function with --function, as rules.py:shorten")
        own_code.find(self.config.function, MAPS)

    def resources(self) -> dict[str, Any]:
        """The digest of the function's code."""
        self.open()
        digest = own_code.code_digest(own_code.find(self.config.function, MAPS))
        return {f"code of {self.config.function}": digest}

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Ask the function about each row.

        Raises:
            InputError: it fails, or gives something else than a row; with the row and the user's line.
        """
        function, names = own_code.find(self.config.function, MAPS), set(batch.schema.names)
        given, made = list(records_of(batch)), list[dict[str, Any] | None]()
        for i, row in enumerate(given):
            found = called(self.config.function, name_of_row(batch, i), function, dict(row))
            if found is not None:
                self._check(found, row, batch, i)
            made.append(found)
        new = [row if found is None else found for row, found in zip(given, made, strict=True)]
        edited = pa.array([one != other for one, other in zip(given, new, strict=True)], pa.bool_())
        wanted = [n for n in names if any(one.get(n) != other.get(n) for one, other in zip(given, new, strict=True))]
        columns = {
            name: self._column(batch, name, [row.get(name) for row in new]) for name in wanted if name != "extra"
        }
        if "extra" in names:
            extras = [{k: v for k, v in row.items() if k not in names} for row in new]
            texts = batch.column("extra").to_pylist()  # as the user wrote them, where nothing changed
            columns["extra"] = pa.array(
                [text if orjson.loads(text or "{}") == extra else orjson.dumps(extra).decode()
                 for text, extra in zip(texts, extras, strict=True)], pa.string())  # fmt: skip
        reasons = [function.__name__ if found is None else None for found in made]
        return Decision(
            reasons=pa.array(reasons, pa.string()), columns=with_hashes(batch, columns, edited), edited=edited
        )

    def _check(self, found: Any, row: dict[str, Any], batch: pa.RecordBatch, number: int) -> None:
        where = f"{self.config.function}: {name_of_row(batch, number)}: expected"
        if not isinstance(found, dict) or any(found.get(name) != row.get(name) for name in _FIXED):
            wanted = "the changed row with its id and source, or None to drop it"
            raise InputError(f"{where} {wanted}; found {str(found)[:80]!r}")
        turns = [turn for name in _TURNS if name in row and isinstance(found.get(name), list) for turn in found[name]]
        if unknown := [key for turn in turns for key in turn if key not in _MESSAGE_KEYS]:
            raise InputError(f"{where} messages with {', '.join(sorted(_MESSAGE_KEYS))}; found {unknown[0]!r}")

    def _column(self, batch: pa.RecordBatch, name: str, values: list[Any]) -> pa.Array:
        kind = batch.schema.field(name).type
        try:
            return pa.array(values, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as e:
            raise InputError(f"{self.config.function}: the column {name!r} holds {kind}: {e}") from None
