"""`datakit tune`: what each threshold of the last filter run drops by itself, from its saved signals."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datakit.config import assign, build
from datakit.engine.plan import sections
from datakit.errors import ConfigError, UsageError
from datakit.manifest import Manifest, load
from datakit.report.finder import batches, body, find, shorten
from datakit.report.page import histogram, render
from datakit.report.tables import lines_of, share

if TYPE_CHECKING:
    from datakit.filter.rule_set import RuleSet
    from datakit.filter.thresholds import Finding


@dataclass(frozen=True, slots=True)
class Tuning:
    """The thresholds of a filter run, in the order in which they decide."""

    manifest: Manifest
    total: int
    """Rows that were measured."""
    found: list["Finding"]
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
        UsageError: an unknown name, or a rule set that was not measured.
    """
    import pyarrow as pa

    from datakit.filter.thresholds import findings

    if not path.is_file():
        raise UsageError(f"{path}: is not there; run `datakit filter` first: it measures the rows")
    manifest, wanted = load(path), [t.replace("-", "_") for t in thresholds]
    if not manifest.of_role("signals"):
        raise UsageError(f"{path}: holds no signals; run `datakit filter` with --signals on an input with rows")
    signals = pa.Table.from_batches(list(batches((path, manifest), "signals")))
    judging = rule_sets(manifest, wanted, sets)
    found = list(findings(signals, list(judging.values()), examples))
    shown = {f.name.partition(".")[0] for f in found}
    told = {name for name, rule_set in judging.items() if rule_set.name in shown}
    untold = [name for name in manifest.config["rules"] if name not in told and not wanted]
    found = [f for f in found if not wanted or any(f"{f.name}.".startswith(f"{t}.") for t in wanted)]
    ids = {row_id for f in found for row_id, _ in (*f.inside, *f.outside)}
    rows = [row for role in ("kept", "dropped") for row in find((path, manifest), role, ids)]
    return Tuning(manifest, signals.num_rows, found, {r["id"]: shorten(body(r), 160) for r in rows}, untold)


def rule_sets(manifest: Manifest, wanted: Sequence[str] = (), sets: Iterable[str] = ()) -> "dict[str, RuleSet]":
    """By name, the rule sets of a run whose signals are saved, then others that are asked for, with `--set` values."""
    from datakit.filter.stage import FilterConfig
    from datakit.filter.thresholds import was_measured

    values = dict(manifest.config) | {"rules": []}
    for key, value in sections(list(sets), "filter").get("filter", {}).items():
        assign(values, FilterConfig, key, value)
    config, asked = build(FilterConfig, values, "filter"), [_known(t) for t in wanted]
    found = {}
    for name in dict.fromkeys([*manifest.config["rules"], *asked]):
        try:
            rule_set = config.rule_set(name)
        except ConfigError:  # the user's own code may be gone
            if name in asked:
                raise
            continue
        if was_measured(rule_set, manifest.facts.get("saved", {})):
            found[name] = rule_set
        elif name in asked:
            raise UsageError(f"{name}: was not measured with these values; run `datakit filter` with it first")
    return found


def _known(wanted: str) -> str:
    """The rule set of a threshold's name; an unknown name is refused with the nearest one."""
    from datakit.filter.stage import RULE_SETS, rule_set_class

    rules = wanted.partition(".")[0]
    within = [f"{rules}.{f.name}" for f in fields(rule_set_class(rules))] if rules in RULE_SETS else []
    if wanted not in (*RULE_SETS, *within):
        near = difflib.get_close_matches(wanted if within else rules, within or RULE_SETS, n=1, cutoff=0.0)
        raise UsageError(f"{wanted}: there is no such rule set or threshold; did you mean {near[0]}?")
    return rules


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


def tuning_page(tuning: Tuning, groups: int) -> str:
    """The page: the table, then a card with a histogram for each threshold, the one that drops most first."""
    found = sorted(tuning.found, key=lambda f: -f.drops)
    cards = [(f.name, histogram(f.name, f.values, f.limit), list(_about(f, tuning, groups))) for f in found]
    title = f"{tuning.manifest.dataset} / {tuning.manifest.stage} {tuning.manifest.version}"
    return render("tuning.html", title=title, total=tuning.total, rows=_rows(tuning), cards=cards)


def _rows(tuning: Tuning) -> list[tuple[object, ...]]:
    found = sorted(tuning.found, key=lambda f: -f.drops)
    return [(f.name, f"{f.limit:g}", f.drops, share(f.drops, tuning.total), f.first) for f in found]


def _about(finding: "Finding", tuning: Tuning, groups: int) -> Iterator[str]:
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
