"""`datakit report`: a dataset on one page, read from its shards.

Every shard of dropped rows is read. Of the kept rows and of the signals, shards that are spread evenly over the data
are read until the sample is large enough; the page says of how many rows it speaks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_rows, view
from datakit.engine.recipe import stage_class
from datakit.manifest import ancestors, data_dir, load_run, tables
from datakit.report.compare import LEVEL, drops
from datakit.report.finder import Link, batches, body, shorten
from datakit.report.page import render
from datakit.report.tables import FunnelStage, funnel, losses
from datakit.report.texts import Stretch, hunks, join_words

SAMPLE_ROWS = 200_000
"""Rows whose signals and lengths are looked at, about."""
SAMPLE_BYTES = 256 << 20
"""Bytes of shards that are read for them, about."""
SAMPLES_EACH = 12
"""Rows that are shown of each reason: those with the least `content_hash`, which is as good as chance."""
MOST_REASONS = 40
SAMPLE_CHARACTERS = 700
BINS = 40
MOST_PAIRS = 12
"""Duplicates of each level that are shown, the least similar first."""
MOST_LINES = 25
"""Sources or languages in a table; the others are counted."""
MOST_BESIDE = 6
"""Dropped rows that stand beside rows that stayed, one of a reason."""
MOST_PLACES = 8
"""Places of a pair where the texts differ that are shown."""
MOST_WORDS = 60
"""Words of one stretch that are shown."""

# What is measured.


@dataclass(frozen=True, slots=True)
class Histogram:
    """Values of many rows, counted in bins of one width (of one ratio, where `logarithmic`), and their limit."""

    name: str
    counts: list[int]
    low: float
    high: float
    limit: float | None = None
    logarithmic: bool = False
    outside: int = 0
    """Values beyond the last edge, which are counted in the last bin."""

    @property
    def rows(self) -> int:
        """How many values there are."""
        return sum(self.counts)

    @property
    def about(self) -> str:
        """What stands beside the name."""
        limit = [] if self.limit is None else [f"limit {self.limit:g}"]
        return ", ".join([*limit, *[f"{self.outside:,} beyond the right end"] * bool(self.outside)])

    @property
    def ticks(self) -> tuple[float, float, float]:
        """The values at the left end, in the middle and at the right end."""
        middle = (self.low * self.high) ** 0.5 if self.logarithmic else (self.low + self.high) / 2
        return self.low, middle, self.high

    @property
    def mark(self) -> float | None:
        """Where the limit stands, in bins; None where it is out of sight."""
        if self.limit is None or not self.low <= self.limit <= self.high:
            return None
        return round((self.limit - self.low) / (self.high - self.low) * len(self.counts), 2)

    @property
    def outline(self) -> str:
        """The bars as an SVG path in a box that is one unit wide for each bin and 100 high."""
        top = max(self.counts) or 1
        return "M0 100" + "".join(f"V{100 - 96 * n / top:.1f}h1" for n in self.counts) + "V100Z"


def histogram(
    name: str, values: npt.NDArray[Any], limit: float | None = None, *, logarithmic: bool = False
) -> Histogram | None:
    """Count values from the least to the 99.5th percentile (or the largest, where `logarithmic`).

    The range reaches to the limit if that is near. None where there are no finite values.
    """
    values = np.asarray(values, np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    if logarithmic:
        low, high = max(float(values.min()), 1.0), max(float(values.max()), 2.0)
        edges = np.geomspace(low, high, BINS + 1)
    else:
        low, high = float(values.min()), float(np.quantile(values, 0.995))
        if limit is not None and np.isfinite(limit):
            span = max(high - low, 1e-9)
            if limit - high < 2 * span and low - limit < 2 * span:  # a limit that is far away would squeeze all bars
                low, high = min(low, limit), max(high, limit)
        low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
        edges = np.linspace(low, high, BINS + 1)
    counts = np.histogram(np.clip(values, low, high), edges)[0].tolist()
    return Histogram(name, counts, low, high, limit, logarithmic, int((values > high).sum()))


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A row that is shown; `reason` is empty for one that stays."""

    stage: str
    reason: str
    id: str
    about: str
    """Source, language and what the reason says."""
    text: str


@dataclass(slots=True)
class Survey:
    """What was found in the shards of the stages behind a result."""

    groups: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    """"source" and "language", where any row has one: dropped rows by stage, and by source or language."""
    dropped: list[SampleRow] = field(default_factory=list)
    kept: list[SampleRow] = field(default_factory=list)
    """Some rows of the last result with texts."""
    charts: dict[str, list[Histogram]] = field(default_factory=dict)
    """By stage, and "lengths": scores and signals with their limits, those that drop most first."""
    signal_rows: int = 0


def survey(chain: Sequence[Link]) -> Survey:
    """Look at the shards of some stages, the oldest first.

    Raises:
        IntegrityError: a shard is missing or damaged.
    """
    found = Survey()
    for link in chain:
        _dropped(link, found)
        if made := [*_scores(link), *_signals(link, found)]:
            found.charts[link[1].stage] = made
    _lengths(chain, found)
    return found


def _dropped(link: Link, found: Survey) -> None:
    """Counts of dropped rows by source and language, and for each reason the rows with the least `content_hash`."""
    stage, least = link[1].stage, dict[str, pa.Table]()
    counts = {"source": Counter[str](), "lang": Counter[str]()}
    for batch in batches(link, "dropped"):
        for column in counts.keys() & set(batch.schema.names):
            for pair in pc.value_counts(batch[column]).to_pylist():
                counts[column][pair["values"] or ""] += pair["counts"]
        for reason in pc.unique(batch["reason"]).to_pylist():
            rows = batch.filter(pc.equal(batch["reason"], reason))
            least[reason] = _least(rows, least.get(reason))
    for name, counted in (("source", counts["source"]), ("language", counts["lang"])):
        if set(counted) - {""}:
            found.groups.setdefault(name, {})[stage] = counted
    for reason, _ in losses(link[1].ledger.rows, False)[:MOST_REASONS]:
        found.dropped += [_sample(stage, reason, row) for row in least[reason].to_pylist()]


def _least(rows: pa.RecordBatch, before: pa.Table | None) -> pa.Table:
    both = [pa.table(rows)] if before is None else [before, pa.table(rows)]
    return pa.concat_tables(both).sort_by([("content_hash", "ascending"), ("id", "ascending")]).slice(0, SAMPLES_EACH)


def _sample(stage: str, reason: str, row: dict[str, Any]) -> SampleRow:
    about = ", ".join(filter(None, (row["source"], row.get("lang"))))
    if reason and row.get("detail"):
        about += f": {row['detail']}"
    text = "" if reason == "removed" else shorten(body(row), SAMPLE_CHARACTERS)
    return SampleRow(stage, reason, row["id"], about, text)


def _spread(link: Link, role: str) -> Iterator[pa.RecordBatch]:
    """Every n-th row of shards that are spread evenly: of about `SAMPLE_BYTES`, and about `SAMPLE_ROWS`."""
    shards = tables(link[1], role)
    step = max(1, round(sum(s.bytes for s in shards) / SAMPLE_BYTES))
    chosen = shards[step // 2 :: step] or shards[:1]
    thin = max(1, sum(s.rows for s in chosen) // SAMPLE_ROWS)
    for shard in chosen:
        for batch in read_rows(data_dir(*link), shard):
            yield batch if thin == 1 else batch.take(pa.array(np.arange(0, batch.num_rows, thin)))


_SCORES = {
    "language": ("lang_score", "min_score", ("kept", "dropped")),
    "classify": ("classifier_score", "min_score", ("kept", "dropped")),
    "perplexity": ("perplexity", "max_perplexity", ("kept", "dropped")),
    "dedup": ("similarity", "threshold", ("dropped",)),
}
"""By stage: the column of a score, the field of its config that it is compared with, and the rows that have one."""


def _scores(link: Link) -> Iterator[Histogram]:
    """The scores of a stage that has them."""
    column, field, roles = _SCORES.get(link[1].stage, ("", "", ()))
    found = (batch for role in roles for batch in _spread(link, role) if column in batch.schema.names)
    limit = link[1].config.get(field)
    limit = float(limit) if isinstance(limit, int | float) else None
    if made := histogram(column, _joined(batch[column].drop_null() for batch in found), limit):
        yield made


def _joined(columns: Iterable[pa.Array]) -> npt.NDArray[np.float64]:
    return np.concatenate([np.empty(0), *(column.to_numpy(zero_copy_only=False) for column in columns)])


def _signals(link: Link, found: Survey) -> Iterator[Histogram]:
    """The signal of each threshold of the filter, those that drop most rows first."""
    if link[1].stage != "filter" or not tables(link[1], "signals"):
        return
    from datakit.filter.thresholds import findings
    from datakit.report.tuning import rule_sets

    table = pa.Table.from_batches(list(_spread(link, "signals")))
    found.signal_rows = table.num_rows
    told = findings(table, rule_sets(link[1]), 0) if table.num_rows else ()
    for one in sorted(told, key=lambda finding: -finding.drops):
        if made := histogram(one.name, one.values, one.limit):
            yield made


def _lengths(chain: Sequence[Link], found: Survey) -> None:
    """Characters of the last result that holds texts, and some of its rows; tokens of the last that holds tokens."""
    measured = dict[str, Link]()
    for link in chain:
        if link[1].stage == "tokenize":
            measured["tokens"] = link
        elif link[1].kind in ("document", "conversation", "preference") and tables(link[1], "kept"):
            measured["characters"] = link
    for what, link in measured.items():
        lengths, least = list[pa.Array](), None
        for batch in _spread(link, "kept"):
            if what == "tokens":
                lengths.append(pc.list_value_length(batch["input_ids"]))
                continue
            lengths.append(pc.utf8_length(view(batch, "all")))
            least = _least(batch, least)
        if made := histogram(what, _joined(lengths), logarithmic=True):
            found.charts.setdefault("lengths", []).append(made)
        if least is not None:
            found.kept += [_sample(link[1].stage, "", row) for row in least.to_pylist()]


# The page.


def report(path: Path) -> str:
    """The page of the result at `path` and of all stages behind it.

    Raises:
        IntegrityError: a shard is missing or damaged.
    """
    stages = funnel(path)
    with_rows = [stage for stage in stages if stage_class(stage.manifest.stage).makes_rows]
    found = survey([(stage.path, stage.manifest) for stage in with_rows])
    first = [chart for name, charts in found.charts.items() for chart in charts[: 2 if name == "lengths" else 1]]
    others = [chart for charts in found.charts.values() for chart in charts if chart not in first]
    one_of_each = {(row.stage, row.reason): row for row in reversed(found.dropped)}
    gone = list(reversed(one_of_each.values()))[:MOST_BESIDE]
    last = stages[-1].manifest
    lineage = list(ancestors(path, against=True))
    return render(
        "report.html",
        title=f"{last.dataset} / {last.stage}",
        last=last,
        made=load_run(path).get("started", "").replace("T", " ").replace("Z", " UTC"),
        stages=stages,
        funnel=with_rows,
        found=found,
        charts=first + others,
        beside=list(zip_longest(gone, found.kept[:MOST_BESIDE])),
        pairs=list(_pairs(path, stages)),
        groups=[_group(name, counts) for name, counts in found.groups.items()],
        lineage=[(manifest, load_run(place).get("started", "")) for place, manifest in lineage],
        raw=[parent for _, manifest in lineage for parent in manifest.parents if "raw" in parent],
        home=path.parent.name,
    )


def _pairs(path: Path, stages: Iterable[FunnelStage]) -> Iterator[dict[str, Any]]:
    """The least similar duplicates of each level, side by side."""
    levels = [s.manifest.stage for s in stages if s.manifest.stage.startswith(LEVEL) and s.manifest.ledger.rows.dropped]
    for stage in levels:
        for pair in drops(path, MOST_PAIRS, stage).pairs:
            if pair.similarity < 1:
                places = list(hunks(body(pair.dropped), body(pair.stays), 12))
                yield {"stage": stage, "pair": pair, "places": [_sides(hunk) for hunk in places[:MOST_PLACES]],
                       "more": max(len(places) - MOST_PLACES, 0)}  # fmt: skip


def _sides(hunk: list[Stretch]) -> list[list[tuple[bool, str]]]:
    """(differs, text) of the parts of a place, of either text."""
    return [[(both[0] != both[1], join_words(both[side], MOST_WORDS)) for both in hunk] for side in (0, 1)]


def _group(title: str, counts: dict[str, Counter[str]]) -> tuple[str, list[str], list[list[object]]]:
    """A table of dropped rows by source or language and stage: (title, head, rows)."""
    total = sum(counts.values(), Counter[str]())
    columns = [*counts.values(), total]
    names = sorted(total, key=lambda name: (-total[name], name))
    rows: list[list[object]] = [[name or "(none)", *(c[name] for c in columns)] for name in names[:MOST_LINES]]
    if rest := names[MOST_LINES:]:
        rows.append([f"{len(rest):,} more", *(sum(c[name] for name in rest) for c in columns)])
    return title, [title, *counts, "all"], rows
