"""The map stage: a function of the user changes rows, or drops them.

    def shorten(row):                       # a row as a dictionary: its columns, and the fields of `extra`
        return row | {"text": row["text"][:1000]}

It returns the row as it shall be, or None to drop it; the reason is the function's name then. Fields that are no column
go into `extra`. `id`, `source` and `row_key` stay what they are.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

import orjson
import pyarrow as pa

import datakit.own_code as own_code
from datakit.config import option
from datakit.data import MESSAGE
from datakit.errors import ConfigError, InputError
from datakit.stage import Decision, Stage
from datakit.text.words import with_hashes

GROUP: Final = "datakit.maps"
_OURS: Final = ("row_key", "content_hash")
_FIXED: Final = ("id", "source")
_TURNS: Final = ("messages", "prompt", "chosen", "rejected")
_ROLES: Final = ("system", "user", "assistant", "tool")
_MESSAGE_KEYS: Final = frozenset(f.name for f in MESSAGE)


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

    config: MapConfig = field(default_factory=MapConfig)
    holds_gil: bool = True

    def for_kind(self, kind: str) -> Self:
        """The stage, which runs in threads for a function that only this process has."""
        return replace(self, holds_gil=not own_code.is_here_only(self.config.function))

    def open(self) -> None:
        """Find the function.

        Raises:
            ConfigError: none is named, or there is none of this name.
        """
        if not self.config.function:
            raise ConfigError("map: name your function with --function, as rules.py:shorten")
        own_code.find(self.config.function, GROUP)

    def resources(self) -> dict[str, Any]:
        """The digest of the function's code."""
        self.open()
        digest = own_code.code_digest(own_code.find(self.config.function, GROUP))
        return {f"code of {self.config.function}": digest}

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Ask the function about each row.

        Raises:
            InputError: it fails, or gives something else than a row; with the row and the user's line.
        """
        function, names = own_code.find(self.config.function, GROUP), set(batch.schema.names)
        given, made = list(records_of(batch)), list[dict[str, Any] | None]()
        for i, row in enumerate(given):
            mine = deepcopy(row)  # the function may edit it in place, also inside
            found = called(self.config.function, name_of_row(batch, i), function, mine)
            if found is not None:
                self._check(found, row, batch, i)
            made.append(found)
        new = [row if found is None else found for row, found in zip(given, made, strict=True)]
        edited = pa.array([one != other for one, other in zip(given, new, strict=True)], pa.bool_())
        wanted = [n for n in names if any(one.get(n) != other.get(n) for one, other in zip(given, new, strict=True))]
        texts = batch.column("extra").to_pylist() if "extra" in names else [None] * len(new)
        fields = [orjson.loads(text or "{}") for text in texts]
        stay = [  # what its column cannot hold, and the function did not change
            {k for k in of if k in names and one.get(k) == other.get(k)}
            for of, one, other in zip(fields, given, new, strict=True)
        ]
        columns = {
            name: self._column(
                batch, name, [None if name in of else row.get(name) for row, of in zip(new, stay, strict=True)]
            )
            for name in wanted if name != "extra"
        }  # fmt: skip
        if "extra" in names:
            extras = [
                {k: v for k, v in row.items() if k not in names or k in of} for row, of in zip(new, stay, strict=True)
            ]
            columns["extra"] = pa.array(
                [self._extra(texts[i], fields[i], extra, batch, i) for i, extra in enumerate(extras)], pa.string()
            )
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
        if strange := [turn.get("role") for turn in turns if turn.get("role") not in _ROLES]:
            raise InputError(f"{where} messages of the roles {', '.join(_ROLES)}; found {strange[0]!r}")

    def _extra(
        self, text: str | None, of: dict[str, Any], extra: dict[str, Any], batch: pa.RecordBatch, number: int
    ) -> str | None:
        """The fields without a column as JSON; those that did not change as the user wrote them, with every digit."""
        if of == extra:
            return text
        written = json.loads(text or "{}", parse_float=orjson.Fragment, parse_int=orjson.Fragment)
        same = {k: written[k] for k, value in extra.items() if k in of and of[k] == value}
        try:
            return orjson.dumps(extra | same, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        except TypeError as e:
            where = f"{self.config.function}: {name_of_row(batch, number)}"
            raise InputError(f"{where}: a field without a column should hold what JSON can: {e}") from None

    def _column(self, batch: pa.RecordBatch, name: str, values: list[Any]) -> pa.Array:
        column = batch.schema.field(name)
        try:
            return _exact(values, column)
        except (ValueError, TypeError, OverflowError) as whole:  # Arrow's errors are of these, too
            for row, value in enumerate(values):  # which row it is
                try:
                    _exact([value], column)
                except (ValueError, TypeError, OverflowError) as e:
                    where = f"{self.config.function}: {name_of_row(batch, row)}"
                    raise InputError(f"{where}: the column {name!r} holds {column.type}: {e}") from None
            raise InputError(f"{self.config.function}: the column {name!r} holds {column.type}: {whole}") from None


def _exact(values: list[Any], column: pa.Field) -> pa.Array:
    """Values as a column of this type. (Arrow makes 1 of 1.5 without a word.)"""
    if not column.nullable and None in values:
        raise ValueError("it must hold a value in each row; found None")
    made = pa.array(values, column.type)
    kind = column.type.value_type if pa.types.is_list(column.type) else column.type
    if pa.types.is_integer(kind) and (got := made.to_pylist()) != values:
        found = next(value for value, taken in zip(values, got, strict=True) if value != taken)
        raise ValueError(f"expected whole numbers; found {str(found)[:80]}")
    return made


def records_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch as dictionaries for people's functions: the fields of `extra` stand beside the columns.

    Where a column could not hold a value (1.5 among whole numbers), it is null, and the value is that of `extra`.
    """
    names = [name for name in batch.schema.names if name not in _OURS]
    for row in batch.select(names).to_pylist():
        fields = orjson.loads(row.get("extra") or "{}")
        yield fields | {name: value for name, value in row.items() if value is not None or name not in fields}


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
        raise InputError(f"{name}: {where}: {own_code.what_failed(e, function)}") from e
