"""What each threshold of the filter drops, and what other limits would drop, from saved signals, without the text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.data import Bools, Floats
from datakit.filter.rule_set import Measure, MeasuredRows, NotMeasuredError, RuleSet

SHARES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
"""Shares of rows for which `Finding.limits` has a limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one threshold drops by itself, without regard to the other thresholds."""

    name: str
    """`<rule set>.<threshold>`, or the name of a user's list or pattern in place of the threshold's."""
    limit: float
    rows: int
    """Rows that the threshold judges."""
    drops: int
    first: int
    """Those of the dropped rows that no earlier threshold drops."""
    limits: dict[float, float]
    """{limit: share of all rows that it drops}: the mildest limit for each of `SHARES`, mildest first."""
    groups: dict[str, dict[str, tuple[int, int]]]
    """By `lang` and `source`: {value: (rows, drops)}, the largest groups first."""
    inside: list[tuple[str, float]]
    """(id, measured value) of rows that just stay, nearest to the limit first."""
    outside: list[tuple[str, float]]
    """The same for rows that are just dropped."""
    values: Floats
    """float64[rows]: the measured values of the rows that it judges."""


def findings(table: pa.Table, rule_sets: Sequence[RuleSet], examples: int) -> Iterator[Finding]:
    """A finding for each threshold of the rule sets, in the order in which the thresholds decide.

    `table` holds the saved signals of all rows. There is no finding for a threshold that was not measured, or whose
    rule set needs more than signals. `examples` is the number of rows to name on each side of a limit.
    """
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    rows, gone = MeasuredRows(batch, saved=batch), np.zeros(batch.num_rows, np.bool_)
    for name, limit, measure in (found for rule_set in rule_sets for found in _judged(rule_set, rows)):
        failed, judged = measure.fails(limit), np.ones(batch.num_rows, np.bool_)
        judged = judged if measure.applies is None else measure.applies
        yield Finding(
            name=name,
            limit=limit,
            rows=int(judged.sum()),
            drops=int(failed.sum()),
            first=int((failed & ~gone).sum()),
            limits=_limits(measure, judged),
            groups={c: _groups(batch.column(c), failed) for c in ("lang", "source") if c in batch.schema.names},
            inside=_nearest(batch, measure.values, limit, judged & ~failed, examples),
            outside=_nearest(batch, measure.values, limit, failed, examples),
            values=measure.values[judged].astype(np.float64),
        )
        gone |= failed


def _judged(rule_set: RuleSet, rows: MeasuredRows) -> list[tuple[str, float, Measure]]:
    try:
        return list(rule_set.judged(rows))
    except NotMeasuredError:
        return []


def was_measured(rule_set: RuleSet, saved: dict[str, Any]) -> bool:
    """Whether a run counted all that the rule set's thresholds need; `saved` is what its manifest says of that."""
    shared = not rule_set.shared or saved.get("shared", False)
    own = not rule_set.counts or saved.get("counted", {}).get(rule_set.name) == rule_set.settings()
    return shared and own


def _limits(measure: Measure, judged: Bools) -> dict[float, float]:
    sign = 1 if measure.threshold.startswith("min_") else -1
    values, total, found = np.sort(sign * measure.values[judged]), len(judged), {}
    for drops in (int(np.ceil(share * total)) for share in SHARES):
        if 0 < drops < len(values):
            dropped = np.searchsorted(values, values[drops - 1], "right")  # all rows with this value are dropped
            if dropped < len(values):
                found[(sign * values[dropped]).item()] = round(int(dropped) / total, 4)
    return found


def _groups(column: pa.Array, failed: Bools) -> dict[str, tuple[int, int]]:
    keys = pc.fill_null(column.cast(pa.string()), "unknown")
    table = pa.table({"key": keys, "drops": pa.array(failed.astype(np.int64))})
    made = table.group_by("key").aggregate([("drops", "count"), ("drops", "sum")])
    made = made.sort_by([("drops_count", "descending"), ("key", "ascending")])
    return {row["key"]: (row["drops_count"], row["drops_sum"]) for row in made.to_pylist()}


def _nearest(
    batch: pa.RecordBatch, values: NDArray[Any], limit: float, of: Bools, count: int
) -> list[tuple[str, float]]:
    rows = np.flatnonzero(of)
    rows = rows[np.argsort(np.abs(values[rows] - limit), kind="stable")[:count]]
    return list(zip(batch.column("id").take(pa.array(rows)).to_pylist(), values[rows].tolist(), strict=True))
