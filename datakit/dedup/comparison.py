"""What the stages of this package share: options, sketches' first columns, policies, what they say of lost rows."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import at_least, option, shares
from datakit.data import compared_fields
from datakit.errors import ConfigError
from datakit.stage import Losses, worst_first

if TYPE_CHECKING:
    from datakit.dedup.shuffle import Compared, Memory, Rows

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

    A score may be a field of `extra`, where ingest keeps what has no column or does not fit it (1.5 among integers).
    """
    column = score_column(policy)
    if policy == "longest":
        return lengths().cast(pa.float64())
    ranks = pa.nulls(len(batch), pa.float64())
    if column in batch.schema.names:
        kind = batch.schema.field(column).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            ranks = batch.column(column).cast(pa.float64(), safe=False)  # the nearest: nanoseconds are beyond 2^53
    if not column or "extra" not in batch.schema.names or not ranks.null_count:
        return ranks
    both = zip(ranks.to_pylist(), batch.column("extra").to_pylist(), strict=True)
    return pa.array([_number(extra, column) if own is None else own for own, extra in both], pa.float64())


def _number(extra: str | None, name: str) -> float | None:
    value: Any = orjson.loads(extra).get(name) if extra else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def policy_order(rows: "Rows", policy: str, memory: "Memory") -> Numbers:
    """The numbers of the rows in the policy's order, ties by row_key; those of earlier runs come first, as they are."""
    row_key, order = rows.column("row_key", memory), memory.full(rows.numbers.shape, 0, np.int64)
    order[: rows.old] = np.arange(rows.old)
    order[rows.old :] = np.argsort(row_key[rows.old :], kind="stable")
    order[rows.old :] += rows.old
    if policy != "first":
        ranks = memory.take(rows.column("rank", memory, np.float64), order)
        order = memory.take(order, np.argsort(np.negative(ranks, out=ranks), kind="stable"))  # NaN sorts last
    return order


def string_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of strings (source, lang) of each row; null where the rows have no such column."""
    return batch.column(name).cast(pa.string()) if name in batch.schema.names else pa.nulls(len(batch), pa.string())


# Facts: how many rows are lost, and for which.

BLOCK_ROWS = 1 << 14
"""Rows of a group whose results are in memory at one time."""


def blocks(rows: int, begin: int = 0) -> Iterator[slice]:
    """The numbers of the rows from `begin` on, in blocks: a group may have more rows than fit into memory."""
    return (slice(at, min(at + BLOCK_ROWS, rows)) for at in range(begin, rows, BLOCK_ROWS))


def sums_of(column: pa.Array, amounts: npt.NDArray[Any]) -> dict[str, int]:
    """The sums of an amount of each row, by a column of strings; null counts as "", as alarms about sources have it."""
    table = pa.table({"value": pc.fill_null(column, ""), "amount": amounts.astype(np.int64)})
    sums = table.group_by("value").aggregate([("amount", "sum")])
    return dict(zip(sums.column("value").to_pylist(), sums.column("amount_sum").to_pylist(), strict=True))


def lost_rows(
    rows: "Rows", survivor: Numbers, columns: Sequence[str], most: int, memory: "Memory"
) -> tuple[Numbers, dict[str, Any]]:
    """What became of the rows of a group, from the row that stays for each (-1: it stays itself).

    (how many rows each stands for besides itself; how many are lost, by each of some columns of sketches as
    `lost_<column>`, and the rows that stand for at least `most` others)
    """
    stands_for = memory.full(survivor.shape, 0, np.int64)
    values, lost = {name: rows.values(name, rows.old) for name in columns}, defaultdict[str, Counter[str]](Counter)
    for at in blocks(len(survivor), rows.old):
        dropped = survivor[at] >= 0
        np.add.at(stands_for, survivor[at][dropped], 1)
        for name in columns:
            lost[f"lost_{name}"].update(sums_of(values[name][at.start - rows.old :][: len(dropped)], dropped))
    return stands_for, lost | {"large": {"rows": int((stands_for >= most).sum())}}


def cluster_facts(compared: "Compared", config: Any, large: str, others: str, check: str) -> dict[str, Any]:
    """The largest number of rows that count as one, and alarms about such rows and about sources that lose many.

    `large` is the sentence about a row that stands for at least `max_cluster_rows` others: it has places for the rows
    that count as one, the one that stays, and that number; `others` names those that have no sentence of their own.
    """
    most, survivors, sums = config.max_cluster_rows, compared.survivors, compared.sums
    sentences = [large.format(count + 1, name, most) for name, count in survivors if count >= most]
    sentences += [""] * (sums["large"]["rows"] - len(sentences))
    losses = Losses("rows", sums["source"], sums["lost_source"])
    alarms = losses.alarms(config.max_loss, MIN_ALARM_ROWS, check, survivors)
    return {
        "largest_cluster_rows": survivors[0][1] + 1 if survivors else int(sums["rows"]["all"] > 0),
        "alarms": [*worst_first(sentences, others), *alarms],
    }
