"""What the report of a dataset shows, read from its shards: drops by source and language, samples, lengths, signals.

Every shard of dropped rows is read. Of the kept rows and of the signals, shards that are spread evenly over the data
are read until the sample is large enough; the page says of how many rows it speaks.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import build
from datakit.data import read_rows, view
from datakit.manifest import Manifest, Shard, data_dir, tables
from datakit.report.charts import Histogram, histogram
from datakit.report.texts import body, shorten, visible

SAMPLE_ROWS = 200_000
"""Rows whose signals and lengths are looked at, about."""
SAMPLE_BYTES = 256 << 20
"""Bytes of shards that are read for them, about."""
SAMPLES_EACH = 12
"""Dropped rows that are shown of each reason: those with the least `content_hash`, which is as good as chance."""
MOST_REASONS = 40
SAMPLE_CHARACTERS = 700
OTHERS = "(others)"


@dataclass(frozen=True, slots=True)
class DroppedSample:
    """A dropped row that is shown."""

    stage: str
    reason: str
    id: str
    source: str
    language: str
    detail: str
    text: str


@dataclass(slots=True)
class Survey:
    """What was found in the shards of the stages behind a result."""

    by_source: dict[str, Counter[str]] = field(default_factory=dict)
    """By stage: dropped rows by source."""
    by_language: dict[str, Counter[str]] = field(default_factory=dict)
    samples: list[DroppedSample] = field(default_factory=list)
    signals: dict[str, list[Histogram]] = field(default_factory=dict)
    """By rule set or stage."""
    signal_rows: int = 0
    lengths: dict[str, Histogram] = field(default_factory=dict)
    """"characters" and "tokens" of the kept rows."""
    length_rows: dict[str, int] = field(default_factory=dict)


def survey(chain: list[tuple[Path, Manifest]]) -> Survey:
    """Look at the shards of some stages, the oldest first.

    Raises:
        IntegrityError: a shard is missing or damaged.
    """
    found = Survey()
    for path, manifest in chain:
        _dropped(path, manifest, found)
        if manifest.stage == "filter" and manifest.of_role("signals"):
            _signals(path, manifest, found)
    _scores(chain, found)
    for what, (path, manifest) in _measured(chain):
        _lengths(path, manifest, what, found)
    return found


def _dropped(path: Path, manifest: Manifest, found: Survey) -> None:
    sources, languages = Counter[str](), Counter[str]()
    least: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for shard in tables(manifest, "dropped"):
        for batch in read_rows(data_dir(path, manifest), shard):
            sources.update(_counts(batch.column("source")))
            if "lang" in batch.schema.names:
                languages.update(_counts(pc.fill_null(batch.column("lang"), "unknown")))
            for reason in pc.unique(batch.column("reason")).to_pylist():
                _take(batch.filter(pc.equal(batch.column("reason"), reason)), least.setdefault(reason, []))
    if sources:
        found.by_source[manifest.stage] = sources
    if set(languages) - {"unknown"}:
        found.by_language[manifest.stage] = languages
    most = [reason for reason, _ in Counter(manifest.ledger.rows.dropped).most_common(MOST_REASONS)]
    for reason in most:
        for _, _, row in sorted(least.get(reason, []), key=lambda item: item[:2], reverse=True):
            found.samples.append(_sample(manifest.stage, reason, row))


def _take(batch: pa.RecordBatch, least: list[tuple[str, str, dict[str, Any]]]) -> None:
    """Keep the rows with the least hashes in a heap, whose first one has the largest of these."""
    order = pc.sort_indices(batch.column("content_hash"))[:SAMPLES_EACH]
    for row in batch.take(order).to_pylist():
        mark = "".join(chr(255 - ord(c)) for c in row["content_hash"])  # a heap keeps the least on top: turned round
        item = (mark, row["id"], row)
        if len(least) < SAMPLES_EACH:
            heapq.heappush(least, item)
        elif item[:2] > least[0][:2]:
            heapq.heapreplace(least, item)


def _sample(stage: str, reason: str, row: dict[str, Any]) -> DroppedSample:
    text = shorten(body(row), SAMPLE_CHARACTERS) if reason != "removed" else ""
    fields = (stage, reason, row["id"], row["source"], row.get("lang") or "", row.get("detail") or "", text)
    return DroppedSample(*map(visible, fields))


def _counts(column: pa.Array) -> dict[str, int]:
    return {c["values"] or "": c["counts"] for c in pc.value_counts(column).to_pylist()}


def _spread(shards: tuple[Shard, ...]) -> list[Shard]:
    """Shards that are spread evenly, of about `SAMPLE_BYTES`."""
    step = max(1, round(sum(s.bytes for s in shards) / SAMPLE_BYTES))
    return list(shards[step // 2 :: step]) or list(shards[:1])


def _thinned(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Every n-th row, so that about `SAMPLE_ROWS` of `rows` rows stay."""
    step = max(1, rows // SAMPLE_ROWS)
    for batch in batches:
        yield batch if step == 1 else batch.take(pa.array(np.arange(0, batch.num_rows, step)))


def _signals(path: Path, manifest: Manifest, found: Survey) -> None:
    """A histogram for each threshold of the rule sets that were on."""
    import json

    from datakit.filter.rule_set import MeasuredRows
    from datakit.filter.stage import FilterConfig

    folder, shards = data_dir(path, manifest), _spread(manifest.of_role("signals"))
    batches = (batch for shard in shards for batch in read_rows(folder, shard))
    table = pa.Table.from_batches(list(_thinned(batches, sum(s.rows for s in shards)))).combine_chunks()
    if not table.num_rows:
        return
    (batch,) = table.to_batches()
    found.signal_rows = table.num_rows
    config, rows = build(FilterConfig, dict(manifest.config), "filter"), MeasuredRows(batch, saved=batch)
    counted = manifest.facts.get("saved", {}).get("counted", {})
    for name in manifest.config["rules"]:
        rule_set = config.rule_set(name)
        if rule_set.counts and counted.get(name) != json.loads(json.dumps(rule_set.counted_with())):
            continue
        limits = asdict(rule_set)
        for measure in rule_set.measure(rows):
            values = measure.values if measure.applies is None else measure.values[measure.applies]
            if made := histogram(measure.threshold, values, limits[measure.threshold]):
                found.signals.setdefault(name, []).append(made)


_SCORES = {
    "language": ("lang_score", "min_score"), "classify": ("classifier_score", "min_score"),
    "perplexity": ("perplexity", "max_perplexity"), "dedup": ("similarity", "threshold"),
}  # fmt: skip
"""By stage: the column of a score, and the field of its config that it is compared with."""


def _scores(chain: list[tuple[Path, Manifest]], found: Survey) -> None:
    """A histogram of the score of each stage that has one; of dedup, the similarity of dropped rows."""
    for path, manifest in chain:
        column, limit = _SCORES.get(manifest.stage, ("", ""))
        values: list[npt.NDArray[Any]] = []
        roles = () if not column else ("dropped",) if manifest.stage == "dedup" else ("kept", "dropped")
        for role in roles:
            shards = _spread(tables(manifest, role)) if tables(manifest, role) else []
            for shard in shards:
                for batch in read_rows(data_dir(path, manifest), shard):
                    if column in batch.schema.names:
                        values.append(batch.column(column).drop_null().to_numpy(zero_copy_only=False))
        if values:
            given = manifest.config.get(limit)
            shown = float(given) if isinstance(given, int | float) else None
            if made := histogram(column, np.concatenate(values), shown):
                found.signals.setdefault(manifest.stage, []).append(made)


def _measured(chain: list[tuple[Path, Manifest]]) -> Iterator[tuple[str, tuple[Path, Manifest]]]:
    """The last result that holds texts, and the one that holds tokens."""
    texts = [link for link in chain if link[1].kind in ("document", "conversation", "preference") and
             tables(link[1], "kept")]  # fmt: skip
    tokens = [link for link in chain if link[1].stage == "tokenize"]
    yield from (("characters", link) for link in texts[-1:])
    yield from (("tokens", link) for link in tokens[-1:])


def _lengths(path: Path, manifest: Manifest, what: str, found: Survey) -> None:
    lengths = []
    for shard in _spread(tables(manifest, "kept")):
        for batch in read_rows(data_dir(path, manifest), shard):
            if what == "characters":
                lengths.append(pc.utf8_length(view(batch, "all")).to_numpy(zero_copy_only=False))
            else:
                lengths.append(pc.list_value_length(batch.column("input_ids")).to_numpy(zero_copy_only=False))
    values = np.concatenate(lengths) if lengths else np.zeros(0)
    if made := histogram(what, values, logarithmic=True):
        found.lengths[what] = made
        found.length_rows[what] = len(values)
