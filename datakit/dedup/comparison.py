"""What the stages of this package share: options, sketches' first columns, the decisions file, policies."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import at_least, option, shares
from datakit.data import compared_fields
from datakit.errors import ConfigError
from datakit.stage import Stage

if TYPE_CHECKING:
    from datakit.dedup.shuffle import Rows

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MIN_ALARM_ROWS: Final = 20
"""Fewer rows, of all, a source or a language, raise no alarm."""

POLICY: Final = "which duplicate stays: first, longest, or highest:<column>; ties by position"
"""The help of the option `policy`."""


# Options.


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareOptions:
    """Options of all stages that compare rows."""

    max_loss: float = option(0.3, "raise an alarm where all rows, or those of a source, lose more than this share")
    memory_mb: int = option(
        1024, "memory for comparing all rows; larger arrays go to the disk, with the same result", result=False,
        advanced=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        at_least(self, 1, "memory_mb")
        shares(self, "max_loss")


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexOptions(CompareOptions):
    """Options of the stages whose rows can be compared with those of earlier runs."""

    save_index: bool = option(False, "write the index that a later run needs for --against")
    against: str = option(
        "", "compare with the rows that an earlier run of this stage kept, too: its manifest, run with save_index",
        result=False,
    )  # fmt: skip


def exact_ratio(threshold: float) -> Fraction:
    """A threshold as a ratio that counts are compared with, without rounding.

    Raises:
        ConfigError: it lies outside (0, 1] or has more than three decimals.
    """
    if not 0.0 < threshold <= 1.0 or round(threshold, 3) != threshold:
        raise ConfigError(f"threshold must lie in (0, 1], with at most three decimals; found {threshold}")
    return Fraction(round(threshold * 1000), 1000)


# The decisions file.

DECISIONS = pa.schema(
    [
        pa.field("row_key", pa.uint64(), nullable=False),
        pa.field("reason", pa.string()),  # null: the row stays
        pa.field("detail", pa.string()),
        pa.field("duplicate_of", pa.string()),  # the id of the row that a dropped row duplicates
        pa.field("similarity", pa.float64()),
        pa.field("duplicate_in", pa.string()),  # the version of the earlier run that kept that row; null: this run
        pa.field("cut", pa.list_(pa.int32())),  # numbers of the units that are cut out of a row that stays
        pa.field("cut_end", pa.list_(pa.int32())),  # for runs of units: where each ends
        pa.field("kept_in", pa.list_(pa.string())),  # for each of them the id of a row that still has it, if known
        pa.field("kept_in_run", pa.list_(pa.string())),  # and the version of the earlier run that kept that row
        pa.field("cluster_size", pa.int64()),  # of a row that stays: how many rows it stands for; null: itself
        pa.field("duplicates", pa.list_(pa.string())),  # and the ids of the others, where they are asked for
        pa.field("looser", pa.bool_()),  # of a row that stays: another setting of dedup would drop it
    ]
)
"""The decisions file: one row for each row that is dropped or changed, in the order of their keys."""


@dataclass(frozen=True)
class CompareStage(Stage):
    """A map -> reduce -> map stage: `reduce` writes a decisions file, `bind` names it, `decide` looks rows up in it."""

    config: Any
    decisions: Path | None = None

    compares_rows: ClassVar[bool] = True

    def bind(self, out: Path) -> Self:
        """The stage that applies the decisions in `out`."""
        return replace(self, decisions=out)

    def look_up(self, row_key: pa.Array) -> pa.RecordBatch:
        """The decisions about rows; null in every column for a row that stays unchanged."""
        assert self.decisions is not None, "bind comes before decide"
        wanted = row_key.to_numpy()
        low, high = wanted.min(initial=np.iinfo(np.uint64).max), wanted.max(initial=0)
        near = list[pa.RecordBatch]()
        reader = pa.ipc.open_file(pa.memory_map(str(self.decisions)))
        for batch in map(reader.get_batch, range(reader.num_record_batches)):
            keys = batch.column("row_key").to_numpy()  # in order, in the batch and from one to the next
            if keys[0] <= high and keys[-1] >= low:
                near.append(batch)
        table = pa.Table.from_batches(near, DECISIONS).to_struct_array()
        found = pa.RecordBatch.from_struct_array(table.combine_chunks())
        return found.take(pc.index_in(row_key, value_set=found.column("row_key")))

    def decided_about(self, row_keys: Hashes) -> pa.RecordBatch:
        """The decisions about the rows with these keys."""
        return self.look_up(pa.array(row_keys)).drop_columns(["row_key"])


def write_decisions(out: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a decisions file; columns that a batch does not have are null."""
    with (
        storage.whole_file(out, flush=False) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, DECISIONS) as writer,
    ):
        for batch in batches:
            columns = [batch.column(f.name).cast(f.type) if f.name in batch.schema.names
                       else pa.nulls(batch.num_rows, f.type) for f in DECISIONS]  # fmt: skip
            if batch.num_rows:
                writer.write_batch(pa.record_batch(columns, schema=DECISIONS))


# Policies: which of the rows that count as one stays.


def check_policy(config: Any) -> None:
    """Raise ConfigError where a config's policy is none of first, longest, highest:<column>, or goes with no index."""
    policy = config.policy
    if policy not in ("first", "longest") and not score_column(policy):
        raise ConfigError(f"policy must be first, longest or highest:<column>, found {policy!r}")
    for name in ("save_index", "against"):
        if policy != "first" and getattr(config, name, False):
            raise ConfigError(
                f"{name}: rows of earlier runs must stay, so it needs policy first; found policy {policy}"
            )


def score_column(policy: str) -> str:
    """The column of `highest:<column>`; "" for another policy."""
    return policy.removeprefix("highest:") if policy.startswith("highest:") else ""


def check_ranked(policy: str, ranked: Counter[str]) -> None:
    """Raise ConfigError where the policy's column holds no number in any row; they are counted as `ranked` does."""
    if (column := score_column(policy)) and ranked and not ranked["rows"]:
        raise ConfigError(f"policy {policy!r}: no row has a number in the column {column!r}")


def ranked(batch: pa.RecordBatch) -> dict[str, int]:
    """The rows of a batch of sketches that have a number in the policy's column."""
    return {"rows": pc.sum(pc.is_finite(batch.column("rank"))).as_py() or 0}


def row_columns(
    batch: pa.RecordBatch, policy: str = "first", lengths: Callable[[], pa.Array] | None = None
) -> dict[str, pa.Array]:
    """The columns that every sketch has: `row_key`, `id`, `source`, and `rank`, the value under the policy.

    `lengths` gives the characters of each row, for `longest`. Default: those of all its fields.
    """
    rank = policy_rank(batch, policy, lengths or partial(_characters, batch))
    head = {"row_key": batch.column("row_key"), "id": batch.column("id"), "source": string_column(batch, "source")}
    return head | {"rank": rank}


def _characters(batch: pa.RecordBatch) -> pa.Array:
    lengths = [pc.utf8_length(text).to_numpy() for text in compared_fields(batch)]
    return pa.array(np.sum(lengths, axis=0))


def policy_rank(batch: pa.RecordBatch, policy: str, lengths: Callable[[], pa.Array]) -> pa.Array:
    """float64 for each row; of rows that count as one the highest stays, and null counts as lowest.

    The column of a score may be a field of `extra`, where ingest keeps the user's own.
    """
    column = score_column(policy)
    if policy == "longest":
        return lengths().cast(pa.float64())
    if column in batch.schema.names:
        kind = batch.schema.field(column).type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        return batch.column(column).cast(pa.float64()) if numeric else pa.nulls(len(batch), pa.float64())
    fields = batch.column("extra").to_pylist() if column and "extra" in batch.schema.names else [None] * len(batch)
    return pa.array([_number(extra, column) for extra in fields], pa.float64())


def _number(extra: str | None, name: str) -> float | None:
    value: Any = orjson.loads(extra).get(name) if extra else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def policy_order(rows: "Rows", row_key: Hashes, policy: str) -> Numbers:
    """The numbers of the rows in the policy's order, ties by row_key; those of earlier runs come first, as they are."""
    if policy == "first":
        order = rows.old + np.argsort(row_key[rows.old :], kind="stable")
        return np.concatenate([np.arange(rows.old), order])
    ranks = [batch.column("rank").to_numpy(zero_copy_only=False) for batch in rows.batches]
    return np.lexsort((row_key, -np.concatenate([np.empty(0, np.float64), *ranks])))  # NaN sorts last


def string_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of strings (source, lang) of each row; null where the rows have no such column."""
    return batch.column(name).cast(pa.string()) if name in batch.schema.names else pa.nulls(len(batch), pa.string())
