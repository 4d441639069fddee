"""What each threshold drops, and what another one would: from the signals that a filter run saved, without the text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.filter.rule_set import Measure, Signals, measures

SHARES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
"""Shares of rows that `Finding.limits` looks for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One threshold, held against every row by itself, whatever the other thresholds say."""

    name: str
    """`<rule set>.<threshold>`."""
    limit: float
    rows: int
    """That the threshold speaks of."""
    drops: int
    first: int
    """Of those, the ones that no threshold before it drops."""
    limits: dict[float, float]
    """{limit: share of all rows that it drops}: the mildest limits that drop at least `SHARES`, mildest first."""
    groups: dict[str, dict[str, tuple[int, int]]]
    """By `lang` and `source`: {value: (rows, drops)}, the largest groups first."""
    inside: list[tuple[str, float]]
    """The ids of rows that just stay, nearest to the limit first, and what was measured."""
    outside: list[tuple[str, float]]
    """The same of rows that are just dropped."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Saved signals as rule sets see rows (`rule_set.Rows`)."""

    batch: pa.RecordBatch
    signals: Signals

    def counted(self, rule_set: str) -> Signals:
        """All of them: rule sets find their own by name."""
        return self.signals


def findings(table: pa.Table, rule_sets: Sequence[tuple[str, Any]], examples: int) -> Iterator[Finding]:
    """A finding for every threshold of (name, config) rule sets, in the order in which they decide.

    `table` holds the saved signals of all rows. A threshold that was not measured, or whose rule set looks at more than
    signals, has no finding.
    """
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    rows, gone = Saved(batch, Signals.from_batch(batch)), np.zeros(batch.num_rows, np.bool_)
    for name, config in rule_sets:
        for measure in measures(name, rows, config):
            limit = getattr(config, measure.threshold)
            failed = measure.fails(limit)
            yield _finding(f"{name}.{measure.threshold}", measure, limit, failed, gone, batch, examples)
            gone |= failed


def _finding(
    name: str,
    measure: Measure,
    limit: float,
    failed: NDArray[np.bool_],
    gone: NDArray[np.bool_],
    batch: pa.RecordBatch,
    examples: int,
) -> Finding:
    speaks = np.ones(len(failed), np.bool_) if measure.applies is None else measure.applies
    distance = np.abs(measure.values - limit)
    return Finding(
        name=name,
        limit=limit,
        rows=int(speaks.sum()),
        drops=int(failed.sum()),
        first=int((failed & ~gone).sum()),
        limits=_limits(measure, speaks),
        groups={c: _groups(batch.column(c), failed) for c in ("lang", "source") if c in batch.schema.names},
        inside=_nearest(batch, measure, distance, speaks & ~failed, examples),
        outside=_nearest(batch, measure, distance, failed, examples),
    )


def _limits(measure: Measure, speaks: NDArray[np.bool_]) -> dict[float, float]:
    values, total = np.sort(measure.values[speaks]), len(speaks)
    low = measure.threshold.startswith("min_")
    found = {}
    for share in SHARES:
        drops = int(np.ceil(share * total))
        if not 0 < drops < len(values):
            continue
        edge = values[drops - 1] if low else values[-drops]  # this row must go, and with it all that measure the same
        dropped = np.searchsorted(values, edge, "right") if low else len(values) - np.searchsorted(values, edge)
        if dropped < len(values):
            limit = values[dropped] if low else values[-dropped - 1]
            found[limit.item()] = round(int(dropped) / total, 4)
    return found


def _groups(column: pa.Array, failed: NDArray[np.bool_]) -> dict[str, tuple[int, int]]:
    keys = pc.fill_null(column.cast(pa.string()), "unknown")
    table = pa.table({"key": keys, "drops": pa.array(failed.astype(np.int64))})
    made = table.group_by("key").aggregate([("drops", "sum"), ("drops", "count")])
    rows = [(r["key"], r["drops_count"], r["drops_sum"]) for r in made.to_pylist()]
    return {key: (count, drops) for key, count, drops in sorted(rows, key=lambda r: (-r[1], r[0]))}


def _nearest(
    batch: pa.RecordBatch, measure: Measure, distance: NDArray[Any], of: NDArray[np.bool_], count: int
) -> list[tuple[str, float]]:
    rows = np.flatnonzero(of)
    rows = rows[np.argsort(distance[rows], kind="stable")[:count]]
    ids = batch.column("id").take(pa.array(rows)).to_pylist()
    return list(zip(ids, measure.values[rows].tolist(), strict=True))
