"""`datakit tune`: what each threshold of the last filter run drops by itself, and what other limits would drop.

All of it comes from the saved signals, without the text. The report draws them (`survey`).
"""

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import assign, build
from datakit.data import Bools, Floats
from datakit.engine.plan import sections
from datakit.errors import ConfigError, UsageError
from datakit.filter.rule_set import Measure, MeasuredRows, NotMeasuredError, RuleSet
from datakit.filter.stage import FilterConfig
from datakit.manifest import Manifest, load
from datakit.report.finder import batches, body, find, shorten
from datakit.report.tables import lines_of, share

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


def _limits(measure: Measure, judged: Bools) -> dict[float, float]:
    sign = 1 if measure.threshold.startswith("min_") else -1
    values, total, found = np.sort(sign * measure.values[judged]), len(judged), {}
    for drops in (int(np.ceil(part * total)) for part in SHARES):
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


# Of a run.


@dataclass(frozen=True, slots=True)
class Tuning:
    """The thresholds of a filter run, in the order in which they decide."""

    manifest: Manifest
    total: int
    """Rows that were measured."""
    found: list[Finding]
    texts: dict[str, str]
    """Of the rows that are named, by id."""
    untold: list[str]
    """Rule sets of the run of which the saved signals do not tell."""

    def to_json(self) -> list[dict[str, Any]]:
        """The findings as JSON, without the values of all rows."""
        return [{name: value for name, value in asdict(f).items() if name != "values"} for f in self.found]


def tune(path: Path, thresholds: Sequence[str], sets: Iterable[str], examples: int) -> Tuning:
    """What the thresholds of the filter result at `path` drop; `thresholds` are rule sets or `RULE_SET.THRESHOLD`.

    Raises:
        UsageError: a name that no finding has.
    """
    if not path.is_file():
        raise UsageError(f"{path}: is not there; run `datakit filter` first: it measures the rows")
    manifest, wanted = load(path), [t.replace("-", "_") for t in thresholds]
    if not manifest.of_role("signals"):
        raise UsageError(f"{path}: holds no signals; run `datakit filter` with --signals on an input with rows")
    signals = pa.Table.from_batches(list(batches((path, manifest), "signals")))
    judging = rule_sets(manifest, sets)
    found = list(findings(signals, list(judging.values()), examples))
    shown = {f.name.partition(".")[0] for f in found}
    told = {name for name, rule_set in judging.items() if rule_set.name in shown}
    untold = [name for name in manifest.config["rules"] if name not in told and not wanted]
    for name in wanted:
        if not any(f"{f.name}.".startswith(f"{name}.") for f in found):
            near = difflib.get_close_matches(name, [*shown, *(f.name for f in found)], n=1, cutoff=0.0)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"{name}: no saved signal of this run tells what it drops; a rule set must be on{meant}")
    found = [f for f in found if not wanted or any(f"{f.name}.".startswith(f"{t}.") for t in wanted)]
    ids = {row_id for f in found for row_id, _ in (*f.inside, *f.outside)}
    rows = [row for role in ("kept", "dropped") for row in find((path, manifest), role, ids)]
    return Tuning(manifest, signals.num_rows, found, {r["id"]: shorten(body(r), 160) for r in rows}, untold)


def rule_sets(manifest: Manifest, sets: Iterable[str] = ()) -> dict[str, RuleSet]:
    """By name, the rule sets of a run whose signals are saved, with `--set` values."""
    values, found = dict(manifest.config) | {"rules": []}, dict[str, RuleSet]()
    for key, value in sections(list(sets), "filter").get("filter", {}).items():
        assign(values, FilterConfig, key, value)
    config = build(FilterConfig, values, "filter")
    for name in manifest.config["rules"]:
        with contextlib.suppress(ConfigError):  # the user's own code may be gone
            rule_set = config.rule_set(name)
            if was_measured(rule_set, manifest.facts.get("saved", {})):
                found[name] = rule_set
    return found


def was_measured(rule_set: RuleSet, saved: dict[str, Any]) -> bool:
    """Whether a run counted all that the rule set's thresholds need; `saved` is what its manifest says of that."""
    shared = not rule_set.shared or saved.get("shared", False)
    own = not rule_set.counts or saved.get("counted", {}).get(rule_set.name) == rule_set.settings()
    return shared and own


# For people.


def tuning_lines(tuning: Tuning, groups: int) -> Iterator[str]:
    """A table of the thresholds, then lines about each; `groups` is the number of languages and sources to show."""
    if not tuning.found:
        yield "no threshold judges by a signal that is saved here; if the filter stage is stale, run it again"
    else:
        yield from lines_of(["threshold", "limit", "drops", "", "drops first"], _rows(tuning))
    if tuning.untold:
        yield f"not in the table, since its saved signals do not tell: {', '.join(tuning.untold)}"
    for finding in tuning.found:
        yield f"\n{finding.name} = {finding.limit}"
        yield from (f"  {line}" for line in _about(finding, tuning, groups))


def _rows(tuning: Tuning) -> list[tuple[object, ...]]:
    found = sorted(tuning.found, key=lambda f: -f.drops)
    return [(f.name, f"{f.limit:g}", f.drops, share(f.drops, tuning.total), f.first) for f in found]


def _about(finding: Finding, tuning: Tuning, groups: int) -> Iterator[str]:
    drops = f"{finding.drops:,} of {tuning.total:,} rows ({share(finding.drops, tuning.total)})"
    yield f"drops {drops}; {finding.first:,} that no earlier threshold drops"
    if finding.rows < tuning.total:
        yield f"does not judge {tuning.total - finding.rows:,}"
    if finding.limits:
        yield "a limit of " + ", ".join(f"{v:g} drops {s:.1%}" for v, s in finding.limits.items())
    for column, counts in finding.groups.items():
        shown = [f"{key} {share(n, rows)} of {rows:,}" for key, (rows, n) in list(counts.items())[:groups]]
        if shown:
            more = [f"and {len(counts) - groups} more"] if len(counts) > groups else []
            yield f"by {column}: {', '.join([*shown, *more])}"
    for side, rows in (("stays", finding.inside), ("drops", finding.outside)):
        yield from (f"{side}, {value:g}: {row_id}: {tuning.texts.get(row_id, '')}" for row_id, value in rows)
