"""HTML pages that need nothing else, no network and no other file; and `datakit report`, a dataset on one of them.

Templates are in `templates/`. Everything that comes from data is escaped, and a content security policy lets only the
page's own script run, by its hash: the search in the samples. Pages follow the reader's light or dark setting and are
readable on a telephone.
"""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datakit.engine.recipe import stage_class
from datakit.manifest import Manifest, ancestors, load_run
from datakit.report.pairs import LEVEL, Pair, drops
from datakit.report.survey import Histogram, SampleRow, Survey, survey
from datakit.report.tables import FunnelStage, funnel, losses, share
from datakit.report.texts import body, hunks, join_words, visible

if TYPE_CHECKING:
    import jinja2

MOST_PAIRS = 12
"""Duplicates of each level that are shown, the least similar first."""
MOST_LINES = 25
"""Sources or languages in a table; the others are counted."""
MOST_INPUTS = 200
MOST_BESIDE = 6
"""Dropped rows that stand beside rows that stayed, one of a reason."""
_MOST_PLACES = 8
"""Places of a pair where the texts differ that are shown."""
_MOST_WORDS = 60
"""Words of one stretch that are shown."""


# Templates.


@cache
def templates() -> "jinja2.Environment":
    """The templates of pages, with a filter for numbers; control characters in what they are given are spelled out."""
    import jinja2
    from markupsafe import Markup, escape

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("datakit.report"),
        autoescape=lambda name: name is None or name.endswith((".html", ".svg")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda v: visible(v) if type(v) is str else v,
    )
    made.filters["number"] = lambda v: f"{v:,}" if isinstance(v, int) else v
    made.filters["plain"] = lambda v: f"{v:,.0f}" if abs(v) >= 100 else f"{v:.3g}"
    made.filters["sha256"] = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    made.filters["line"] = lambda text: " ".join(re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text).split())  # of Markdown
    made.filters["code"] = lambda text: "`" + " ".join(text.replace("`", "'").replace("|", "\\|").split()) + "`"
    made.filters["label_share"] = lambda look: f" ({look.labels / look.tokens:.1%})" if look.tokens else ""
    made.filters["breaks"] = lambda text: Markup(str(escape(visible(text))).replace("\n", "<em>↵</em>\n"))
    return made


def render(template: str, **values: Any) -> str:
    """A page of a template."""
    return templates().get_template(template).render({"script": "", **values})


# The report.


def report(path: Path) -> str:
    """The page of the result at `path` and of all stages behind it.

    Raises:
        IntegrityError: a shard is missing or damaged.
    """
    stages = funnel(path)
    last, found = stages[-1].manifest, survey([(s.path, s.manifest) for s in stages if _has_rows(s)])
    loader = templates().loader
    assert loader is not None
    script, *_ = loader.get_source(templates(), "search.js")
    return render(
        "report.html",
        title=f"{last.dataset} / {last.stage}",
        script=script,
        last=last,
        made=load_run(path).get("started", "").replace("T", " ").replace("Z", " UTC"),
        funnel=list(_funnel(stages)),
        alarms=[(s.manifest.stage, alarm) for s in stages for alarm in s.alarms],
        found=found,
        charts=_most_telling(found.charts),
        beside=list(zip_longest(_one_of_each_reason(found), found.kept[:MOST_BESIDE])),
        pairs=list(_pairs(path, stages)),
        numbers=_numbers(path, stages, found),
    )


def _has_rows(stage: FunnelStage) -> bool:
    return stage_class(stage.manifest.stage).makes_rows


def _funnel(stages: Sequence[FunnelStage]) -> Iterator[dict[str, Any]]:
    """What the bars show: parts of the rows that came into the first stage."""
    most = max((s.manifest.ledger.rows.into for s in stages), default=0) or 1
    for stage in filter(_has_rows, stages):
        rows, tokens = stage.manifest.ledger.rows, stage.manifest.ledger.tokens
        yield {
            "name": stage.manifest.stage,
            "into": rows.into,
            "kept": rows.kept,
            "share": f" ({share(rows.kept, rows.into)})" if rows.into else "",
            "tokens": f", {tokens.kept:,} tokens" if tokens else "",
            "width": round(100 * rows.kept / most, 2),
            "lost": [(reason, n, round(100 * n / most, 2)) for reason, n in losses(rows)],
        }


def _most_telling(charts: dict[str, list[Histogram]]) -> list[Histogram]:
    """One chart of each stage and both lengths first, then the others."""
    first = [shown for name, found in charts.items() for shown in found[: 2 if name == "lengths" else 1]]
    return first + [shown for found in charts.values() for shown in found if shown not in first]


def _one_of_each_reason(found: Survey) -> list[SampleRow]:
    reasons = {(row.stage, row.reason): row for row in reversed(found.dropped)}
    return list(reversed(reasons.values()))[:MOST_BESIDE]


def _pairs(path: Path, stages: Iterable[FunnelStage]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The least similar duplicates of each level, side by side."""
    for stage in stages:
        name = stage.manifest.stage
        if name.startswith(LEVEL) and stage.manifest.ledger.rows.dropped:
            found = drops(stage.path, MOST_PAIRS, name).pairs
            yield from ((name, _pair(pair)) for pair in found if pair.similarity < 1)


def _pair(pair: Pair) -> dict[str, Any]:
    found = list(hunks(body(pair.dropped), body(pair.stays), 12))
    places = [
        [[(one != other, join_words((one, other)[side], _MOST_WORDS)) for one, other in hunk] for side in (0, 1)]
        for hunk in found[:_MOST_PLACES]
    ]
    about = {"similarity": pair.similarity, "dropped": pair.dropped["id"], "stays": pair.stays["id"]}
    return about | {"places": places, "more": max(len(found) - _MOST_PLACES, 0)}


# Tables.


def _numbers(path: Path, stages: Sequence[FunnelStage], found: Survey) -> dict[str, Any]:
    reasons = [
        (s.manifest.stage, reason, n, share(n, s.manifest.ledger.rows.into))
        for s in stages
        for reason, n in losses(s.manifest.ledger.rows)
    ]
    facts = stages[-1].manifest.facts.get("packing", {})
    lineage = list(ancestors(path, against=True))
    raw = [(p["raw"], p["bytes"], p["sha256"][:16]) for _, m in lineage for p in m.parents if "raw" in p]
    more = [(f"{len(raw) - MOST_INPUTS:,} more", "", "")] if len(raw) > MOST_INPUTS else []
    return {
        "stages": list(map(_stage_cells, stages)),
        "reasons": reasons,
        "groups": [*_groups("source", found.by_source), *_groups("language", found.by_language)],
        "packing": list(_packing(facts)) if facts else [],
        "densities": [(k.removeprefix("density_"), v) for k, v in facts.items() if k.startswith("density_")],
        "lineage": [_made_from(place, m, path.parent.name) for place, m in lineage],
        "raw": raw[:MOST_INPUTS] + more,
    }


def _stage_cells(stage: FunnelStage) -> tuple[object, ...]:
    rows, tokens = stage.manifest.ledger.rows, stage.manifest.ledger.tokens
    counts = rows.into, rows.kept, share(rows.kept, rows.into), sum(rows.dropped.values()), rows.quarantined
    time = "" if stage.seconds is None else f"{stage.seconds:,.1f}", f"{stage.mb_per_s:,.1f}" if stage.mb_per_s else ""
    return stage.manifest.stage, *counts, tokens.kept if tokens else "", *time


def _groups(title: str, counts: dict[str, Counter[str]]) -> Iterator[tuple[str, list[str], list[list[object]]]]:
    """A table of dropped rows by source or language and stage."""
    if not counts:
        return
    total: Counter[str] = sum(counts.values(), Counter())
    names = sorted(total, key=lambda name: (-total[name], name))
    columns = [*counts.values(), total]
    rows: list[list[object]] = [[name or "(none)", *(c[name] for c in columns)] for name in names[:MOST_LINES]]
    if rest := names[MOST_LINES:]:
        rows.append([f"{len(rest):,} more", *(sum(c[name] for name in rest) for c in columns)])
    yield title, [title, *counts, "all"], rows


def _packing(facts: dict[str, Any]) -> Iterator[list[object]]:
    names = ("packed_rows", "sequences", "density", "label_tokens", "label_share")
    for name, counts in ({"all": facts} | facts.get("sets", {})).items():
        values = [counts.get(n, "") for n in names]
        yield [name, *(f"{v:.1%}" if isinstance(v, float) else v for v in values)]


def _made_from(place: Path, manifest: Manifest, dataset: str) -> tuple[str, ...]:
    parents = ", ".join(f"{p['manifest']} {p['version']}" for p in manifest.parents if "manifest" in p)
    name = manifest.stage if manifest.dataset == dataset else f"{manifest.dataset} / {manifest.stage}"
    made = load_run(place).get("started", "")
    return name, manifest.version, made, parents or f"{len(manifest.parents):,} raw files"
