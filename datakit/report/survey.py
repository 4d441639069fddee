"""What the report of a dataset shows, read from its shards: drops by source and language, samples, lengths, scores.

Every shard of dropped rows is read. Of the kept rows and of the signals, shards that are spread evenly over the data
are read until the sample is large enough; the page says of how many rows it speaks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_rows, view
from datakit.manifest import Manifest, Shard, data_dir, tables
from datakit.report.texts import body, shorten

SAMPLE_ROWS = 200_000
"""Rows whose signals and lengths are looked at, about."""
SAMPLE_BYTES = 256 << 20
"""Bytes of shards that are read for them, about."""
SAMPLES_EACH = 12
"""Rows that are shown of each reason: those with the least `content_hash`, which is as good as chance."""
MOST_REASONS = 40
SAMPLE_CHARACTERS = 700
BINS = 40

Link = tuple[Path, Manifest]


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

    by_source: dict[str, Counter[str]] = field(default_factory=dict)
    """By stage: dropped rows by source."""
    by_language: dict[str, Counter[str]] = field(default_factory=dict)
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
    path, manifest = link
    sources, languages, least = Counter[str](), Counter[str](), dict[str, pa.Table]()
    for shard in tables(manifest, "dropped"):
        for batch in read_rows(data_dir(path, manifest), shard):
            sources.update(_counts(batch.column("source"), ""))
            if "lang" in batch.schema.names:
                languages.update(_counts(batch.column("lang"), "unknown"))
            for reason in pc.unique(batch.column("reason")).to_pylist():
                rows = pa.table(batch.filter(pc.equal(batch.column("reason"), reason)))
                least[reason] = _least(rows, least.get(reason))
    if sources:
        found.by_source[manifest.stage] = sources
    if set(languages) - {"unknown"}:
        found.by_language[manifest.stage] = languages
    for reason, _ in Counter(manifest.ledger.rows.dropped).most_common(MOST_REASONS):
        rows = least[reason].to_pylist() if reason in least else []
        found.dropped += [_sample(manifest.stage, reason, row) for row in rows]


def _least(rows: pa.Table, before: pa.Table | None) -> pa.Table:
    both = rows if before is None else pa.concat_tables([before, rows])
    return both.sort_by([("content_hash", "ascending"), ("id", "ascending")]).slice(0, SAMPLES_EACH)


def _counts(column: pa.Array, missing: str) -> dict[str, int]:
    return {c["values"] or missing: c["counts"] for c in pc.value_counts(column).to_pylist()}


def _sample(stage: str, reason: str, row: dict[str, Any]) -> SampleRow:
    about = ", ".join(filter(None, (row["source"], row.get("lang"))))
    if reason and row.get("detail"):
        about += f": {row['detail']}"
    text = "" if reason == "removed" else shorten(body(row), SAMPLE_CHARACTERS)
    return SampleRow(stage, reason, row["id"], about, text)


def _spread(link: Link, shards: tuple[Shard, ...]) -> Iterator[pa.RecordBatch]:
    """Every n-th row of shards that are spread evenly: of about `SAMPLE_BYTES`, and about `SAMPLE_ROWS`."""
    step = max(1, round(sum(s.bytes for s in shards) / SAMPLE_BYTES))
    chosen = shards[step // 2 :: step] or shards[:1]
    thin = max(1, sum(s.rows for s in chosen) // SAMPLE_ROWS)
    for shard in chosen:
        for batch in read_rows(data_dir(*link), shard):
            yield batch if thin == 1 else batch.take(pa.array(np.arange(0, batch.num_rows, thin)))


_SCORES = {
    "language": ("lang_score", "min_score"), "classify": ("classifier_score", "min_score"),
    "perplexity": ("perplexity", "max_perplexity"), "dedup": ("similarity", "threshold"),
}  # fmt: skip
"""By stage: the column of a score, and the field of its config that it is compared with."""


def _scores(link: Link) -> Iterator[Histogram]:
    """The scores of a stage that has them; of dedup, the similarity of dropped rows."""
    manifest = link[1]
    column, limit = _SCORES.get(manifest.stage, ("", ""))
    shards = [shard for role in ("kept", "dropped") if column for shard in tables(manifest, role)]
    batches = _spread(link, tuple(s for s in shards if manifest.stage != "dedup" or s in tables(manifest, "dropped")))
    columns = [batch.column(column).drop_null() for batch in batches if column in batch.schema.names] if shards else []
    given = manifest.config.get(limit)
    made = histogram(column, _joined(columns), float(given) if isinstance(given, int | float) else None)
    yield from [made] if made else []


def _joined(columns: Iterable[pa.Array]) -> npt.NDArray[np.float64]:
    return np.concatenate([np.empty(0), *(column.to_numpy(zero_copy_only=False) for column in columns)])


def _signals(link: Link, found: Survey) -> Iterator[Histogram]:
    """The signal of each threshold of the filter, those that drop most rows first."""
    manifest = link[1]
    if manifest.stage != "filter" or not manifest.of_role("signals"):
        return
    from datakit.filter.thresholds import findings
    from datakit.report.tuning import rule_sets

    table = pa.Table.from_batches(list(_spread(link, manifest.of_role("signals"))))
    found.signal_rows = table.num_rows
    if table.num_rows:
        for one in sorted(findings(table, rule_sets(manifest), 0), key=lambda finding: -finding.drops):
            made = histogram(one.name, one.values, one.limit)
            yield from [made] if made else []


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
        for batch in _spread(link, tables(link[1], "kept")):
            if what == "characters":
                lengths.append(pc.utf8_length(view(batch, "all")))
                least = _least(pa.table(batch), least)
            else:
                lengths.append(pc.list_value_length(batch.column("input_ids")))
        if made := histogram(what, _joined(lengths), logarithmic=True):
            found.charts.setdefault("lengths", []).append(made)
        found.kept += [_sample(link[1].stage, "", row) for row in (least.to_pylist() if least is not None else ())]
