"""`datakit report`: a dataset on one page, read from its shards.

Every shard of dropped rows is read. Of the kept rows and of the signals, whole shards that are spread evenly over the
data are read; the page says of how many rows it speaks.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import options
from datakit.data import read_rows, view
from datakit.engine.recipe import stage_class
from datakit.manifest import Manifest, ancestors, data_dir, load_run, tables
from datakit.report.compare import LEVEL, Pair, drops
from datakit.report.finder import Link, Stretch, batches, body, first_of, hunks, shorten
from datakit.report.page import Histogram, histogram, render
from datakit.report.tables import FunnelStage, funnel, losses
from datakit.report.tuning import findings, rule_sets

SAMPLE_ROWS = 200_000
"""Rows whose signals and lengths are looked at, about."""
SAMPLE_BYTES = 256 << 20
"""Bytes of shards that are read for them, about."""
SAMPLES_EACH = 12
"""Rows that are shown of each reason: those with the least `content_hash`, which is as good as chance."""
MOST_REASONS = 40
SAMPLE_CHARACTERS = 700
MOST_PAIRS = 12
"""Duplicates of each level that are shown, the least similar first."""
MOST_LINES = 25
"""Sources or languages in a table; the others are counted."""
MOST_BESIDE = 6
"""Dropped rows, one of a reason, and rows that stayed, in two columns."""
BY_CHANCE = ("content_hash", "id")
"""The order of rows in which the first ones are as good as any."""

# Rows, dropped and kept.

Mending = Callable[[Any], Any]

Groups = dict[str, dict[str, Counter[str]]]
"""Dropped rows by column ("source", "lang"), by stage, and by the values of the column."""


def _dropped(link: Link, groups: Groups, mended: Mending) -> Iterator[dict[str, str]]:
    """Count dropped rows by source and language; of each reason the rows with the least `content_hash`."""
    stage, least = link[1].stage, dict[str, pa.Table]()
    for batch in batches(link, "dropped"):
        for column in groups.keys() & set(batch.schema.names):
            for pair in pc.value_counts(batch[column]).to_pylist():
                groups[column].setdefault(stage, Counter())[pair["values"] or ""] += pair["counts"]
        for reason in pc.unique(batch["reason"]).to_pylist():
            rows = batch.filter(pc.equal(batch["reason"], reason))
            least[reason] = first_of(least.get(reason), rows, BY_CHANCE, SAMPLES_EACH)
    for reason, _ in losses(link[1].ledger.rows, False)[:MOST_REASONS]:
        yield from (_sample(stage, reason, row, mended) for row in least[reason].to_pylist())


def _mending(chain: Iterable[Link]) -> Mending:
    """What makes rows of earlier stages as the rule `private` has made later ones."""
    from datakit.filter.private import Private

    for rule in (rule for link in chain if link[1].stage == "filter" for rule in rule_sets(link[1]).values()):
        if isinstance(rule, Private):
            return rule.cleaner.value
    return lambda value: value


def _sample(stage: str, reason: str, row: dict[str, Any], mended: Mending) -> dict[str, str]:
    """A row that is shown; `reason` is empty for one that stays."""
    about = ", ".join(filter(None, (row["source"], row.get("lang"))))
    if reason and row.get("detail"):
        about += f": {row['detail']}"
    text = "" if reason == "removed" else mended(body(row)[: 8 * SAMPLE_CHARACTERS])
    shown = {"stage": stage, "reason": reason, "id": mended(row["id"]), "about": mended(about)}
    return shown | {"text": shorten(text, SAMPLE_CHARACTERS)}


def _table(column: str, stages: dict[str, Counter[str]]) -> tuple[str, list[str], list[list[object]]]:
    """A table of dropped rows by source or language and stage: (title, head, rows)."""
    title, total = {"lang": "language"}.get(column, column), sum(stages.values(), Counter[str]())
    columns = [*stages.values(), total]
    names = sorted(total, key=lambda name: (-total[name], name))
    rows: list[list[object]] = [[name or "(none)", *(c[name] for c in columns)] for name in names[:MOST_LINES]]
    if rest := names[MOST_LINES:]:
        rows.append([f"{len(rest):,} more", *(sum(c[name] for name in rest) for c in columns)])
    return title, [title, *stages, "all"], rows


# What is measured.


def _spread(link: Link, role: str) -> Iterator[pa.RecordBatch]:
    """The rows of shards that are spread evenly: of about `SAMPLE_BYTES` or `SAMPLE_ROWS`, whatever is less."""
    shards = tables(link[1], role)
    size, rows = sum(s.bytes for s in shards), sum(s.rows for s in shards)
    step = max(1, round(max(size / SAMPLE_BYTES, rows / SAMPLE_ROWS)))
    for shard in shards[step // 2 :: step] or shards[:1]:
        yield from read_rows(data_dir(*link), shard)


_SCORES = {
    "language": ("lang_score", "min_score", ("kept", "dropped")),
    "classify": ("classifier_score", "min_score", ("kept", "dropped")),
    "perplexity": ("perplexity", "max_perplexity", ("kept", "dropped")),
    "dedup": ("similarity", "threshold", ("dropped",)),
}
"""By stage: the column of a score, the field of its config that it is compared with, and the rows that have one."""


def _charts(link: Link) -> Iterator[Histogram | None]:
    """The score of a stage that has one; the signals of the filter's thresholds, those that drop most rows first."""
    stage = link[1].stage
    if stage in _SCORES:
        column, field, roles = _SCORES[stage]
        found = (batch for role in roles for batch in _spread(link, role) if column in batch.schema.names)
        limit = link[1].config.get(field) if _acts(link[1], field) else None
        limit = float(limit) if isinstance(limit, int | float) else None
        yield histogram(column, _joined([batch[column].drop_null() for batch in found]), limit)
    if stage == "filter" and (signals := list(_spread(link, "signals"))):
        told = findings(pa.Table.from_batches(signals), list(rule_sets(link[1]).values()), 0)
        for one in sorted(told, key=lambda finding: -finding.drops):
            yield histogram(one.name, one.values, one.limit)


def _acts(manifest: Manifest, name: str) -> bool:
    """Whether an option did something in a result: without listed languages, no row has too low a score."""
    values = manifest.config | {"kind": manifest.kind}
    needed = next((o.acts_with for o in options(stage_class(manifest.stage).Config) if o.name == name), {})
    return not needed or any(values[n] in of if of else values[n] for n, of in needed.items())


def _joined(columns: Sequence[pa.Array]) -> npt.NDArray[np.float64]:
    return np.concatenate([np.empty(0), *(column.to_numpy(zero_copy_only=False) for column in columns)])


def _lengths(chain: Sequence[Link], kept: list[dict[str, str]], mended: Mending) -> Iterator[Histogram | None]:
    """Characters of the last result that holds texts, and some of its rows; tokens of the last that holds tokens."""
    with_text = [k for k in chain if k[1].kind in ("document", "conversation", "preference") and tables(k[1], "kept")]
    for link in with_text[-1:]:
        lengths, least = list[pa.Array](), None
        for batch in _spread(link, "kept"):
            lengths.append(pc.utf8_length(view(batch, "all")))
            least = first_of(least, batch, BY_CHANCE, SAMPLES_EACH)
        kept += [_sample(link[1].stage, "", row, mended) for row in least.to_pylist()] if least is not None else []
        yield histogram("characters", _joined(lengths), logarithmic=True)
    for link in [link for link in chain if link[1].stage == "tokenize"][-1:]:
        lengths = [pc.list_value_length(batch["input_ids"]) for batch in _spread(link, "kept")]
        yield histogram("tokens", _joined(lengths), logarithmic=True)


# The page.


def report(path: Path) -> str:
    """The page of the result at `path` and of all stages behind it.

    Raises:
        IntegrityError: a shard is missing or damaged.
    """
    stages = funnel(path)
    with_rows = [stage for stage in stages if stage_class(stage.manifest.stage).makes_rows]
    chain, groups = [(stage.path, stage.manifest) for stage in with_rows], Groups(source={}, lang={})
    kept = list[dict[str, str]]()
    mended = _mending(chain)
    dropped = [row for link in chain for row in _dropped(link, groups, mended)]
    charts = [[chart for chart in _charts(link) if chart] for link in chain]
    lengths = [chart for chart in _lengths(chain, kept, mended) if chart]
    one_of_each = {(row["stage"], row["reason"]): row for row in reversed(dropped)}
    gone = list(reversed(one_of_each.values()))[:MOST_BESIDE]
    last, lineage = stages[-1].manifest, list(ancestors(path, against=True))
    return render(
        "report.html",
        title=f"{last.dataset} / {last.stage}",
        last=last,
        made=load_run(path).get("started", "").replace("T", " ").replace("Z", " UTC"),
        stages=stages,
        funnel=with_rows,
        dropped=dropped,
        charts=[chart for found in charts for chart in found[:1]]
        + lengths
        + [c for found in charts for c in found[1:]],
        some={"dropped": gone, "stayed": kept[:MOST_BESIDE]},
        pairs=list(_pairs(path, stages, mended)),
        groups=[_table(column, found) for column, found in groups.items() if any(map(any, found.values()))],
        lineage=[(manifest, load_run(place).get("started", "")) for place, manifest in lineage],
        raw=[parent for _, manifest in lineage for parent in manifest.parents if "raw" in parent],
        home=path.parent.name,
    )


def _pairs(
    path: Path, stages: Iterable[FunnelStage], mended: Mending
) -> Iterator[tuple[str, Pair, list[list[Stretch]]]]:
    """The least similar duplicates of each level, with the places where they differ."""
    levels = [s.manifest.stage for s in stages if s.manifest.stage.startswith(LEVEL) and s.manifest.ledger.rows.dropped]
    for stage in levels:
        for pair in drops(path, MOST_PAIRS, stage)["pairs"]:
            if pair.similarity < 1:
                pair = replace(pair, dropped=mended(pair.dropped), stays=mended(pair.stays))
                yield stage, pair, list(hunks(body(pair.dropped), body(pair.stays), 12))
