"""Tables on a terminal: what each stage took in, kept and dropped, what to look at next, and what a project holds.

Every table is laid out by `lines_of`; what is printed passes through `datakit.terminal`, so that no text from data can
control the terminal.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

from datakit.data import first_rows
from datakit.engine.lineage import what_changed
from datakit.engine.maintenance import old_versions, unused_folders
from datakit.engine.plan import stale_results
from datakit.engine.recipe import FLOW, datasets
from datakit.errors import DatakitError
from datakit.manifest import Count, Manifest, ancestors, data_dir, load, load_readable, load_run, purged_on
from datakit.report.finder import Link, batches, body, shorten
from datakit.storage import exists, sizes, url_of

MOST_REASONS = 3
"""Reasons of a stage that are named in the table of a run, the most frequent first; the others are counted."""
_NUMBER = re.compile(r"[-+]?[\d,.]*%?")


def cell(value: object) -> str:
    """A value as tables on a terminal and on a page show it; numbers get separators of thousands."""
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    return "" if value is None else str(value)


def lines_of(columns: Sequence[str], rows: Iterable[Sequence[object]], indent: int = 0) -> list[str]:
    """Lines of a table, with columns of numbers aligned to the right. Without names of columns there is no head."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(columns))
    cells, page = [list(map(cell, row)) for row in rows], StringIO()
    for at, name in enumerate(columns):
        numbers = all(_NUMBER.fullmatch(row[at]) for row in cells)
        table.add_column(Text(name), justify="right" if numbers else "left", no_wrap=True)
    for row in cells:
        table.add_row(*map(Text, row))
    Console(file=page, width=100_000, color_system=None, legacy_windows=False).print(table)
    return [" " * indent + line.rstrip() for line in page.getvalue().splitlines()]


def share(part: float, whole: float) -> str:
    """A part as a percentage; empty where there is nothing to be a part of."""
    return f"{part / whole:.1%}" if whole else ""


# The funnel: the stages of one run.


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """One stage of a funnel."""

    path: Path
    manifest: Manifest
    alarms: list[str]
    seconds: float | None
    """None where no run file tells."""
    mb_per_s: float | None
    """Megabytes (1e6 bytes) of values that went in, in memory, a second."""
    ran: bool
    """In this command; else it was up to date."""


def losses(count: Count, unread: bool = True) -> list[tuple[str, int]]:
    """(reason, number) of what did not stay: records that could not be read, then the most frequent reasons first."""
    found = [("could not be read", count.quarantined)] if unread and count.quarantined else []
    return found + sorted(count.dropped.items(), key=lambda item: (-item[1], item[0]))


def funnel(path: Path, since: float = 0.0) -> list[FunnelStage]:
    """The stages behind the manifest at `path`, in the order of the rows; `since` is when the command began (epoch)."""
    found, links = [], ancestors(path)
    parents = {manifest.version: [p.get("version") for p in manifest.parents] for _, manifest in links}

    def history(version: str) -> set[str]:
        return {version}.union(*(history(parent) for parent in parents[version] if parent in parents))

    # a tokenizer has a longer history than the rows that it was trained on, a shorter one than what needs it
    for place, manifest in sorted(links, key=lambda link: len(history(link[1].version))):
        run = load_run(place)
        seconds, size = run.get("seconds"), run.get("bytes", 0)
        speed = round(size / seconds / 1e6, 2) if seconds and size else None
        started = datetime.fromisoformat(run["started"]).timestamp() if "started" in run else 0.0
        ran = bool(run) and started + (seconds or 0.0) + 1.0 >= since  # `started` has whole seconds
        found.append(FunnelStage(place, manifest, manifest.facts.get("alarms", []), seconds, speed, ran))
    return found


def funnel_lines(stages: Sequence[FunnelStage]) -> list[str]:
    """The funnel as a table: a line a stage, with the most frequent reasons of drops."""
    rows = []
    for stage in stages:
        count, tokens = stage.manifest.ledger.rows, stage.manifest.ledger.tokens
        into, kept = (tokens.into, tokens.kept) if tokens else (None, None)
        why = "; ".join(filter(None, [reasons(count), reasons(tokens, " tokens") if tokens else ""]))
        cost = (stage.seconds, stage.mb_per_s) if stage.ran else ("before", None)
        rows.append(
            [stage.manifest.stage, count.into, count.kept, share(count.kept, count.into), into, kept, *cost, why]
        )
    return lines_of(["stage", "rows in", "kept", "", "tokens in", "kept", "s", "MB/s", "dropped"], rows)


def reasons(count: Count, unit: str = "") -> str:
    """The most frequent reasons in one phrase."""
    lost = losses(count)
    most = MOST_REASONS + (len(lost) == MOST_REASONS + 1)  # a single other one takes no more space than its number
    named = [f"{n:,}{unit} {reason}" for reason, n in lost[:most]]
    if rest := lost[most:]:
        named.append(f"{sum(n for _, n in rest):,}{unit} for {len(rest)} other reasons")
    return ", ".join(named)


def ledger_lines(manifest: Manifest) -> list[str]:
    """A stage's ledger: rows and tokens in, kept and dropped by reason; counters and packing."""
    rows = list[tuple[object, ...]]()
    for unit, count in (("rows", manifest.ledger.rows), ("tokens", manifest.ledger.tokens)):
        if count is None:
            continue
        rows.append(("in", count.into, unit))
        for what, n, name in [("kept", count.kept, unit), *(("dropped", n, why) for why, n in losses(count, False))]:
            rows.append((what, n, f"{name}  ({share(n, count.into)})" if count.into else name))
        besides = {"quarantine": count.quarantined, "edited": count.edited, "padding": count.padding}
        rows += [(name, n, unit) for name, n in besides.items() if n]
    return about_lines(manifest, rows)


def about_lines(manifest: Manifest, rows: Iterable[tuple[object, ...]] = ()) -> list[str]:
    """Which result it is; `rows` of its ledger, and what else is known of it."""
    known = [*rows, *(("note", n, name) for name, n in manifest.ledger.notes.items())]
    if packing := manifest.facts.get("packing", {}):
        others = [f"; {other} would be {density:.1%}" for other, density in densities(packing).items()]
        known.append(("density", f"{packing['density']:.1%}", manifest.config["packing"] + "".join(others)))
    if "good_answers" in packing:
        bad = f"good, {packing['bad_answers']:,} bad; pairs with one side are for train.dpo --dpo-loss apo_zero"
        known.append(("answers", packing["good_answers"], bad))
    if "repeated_tokens" in packing:
        known.append(("repeated", packing["repeated_tokens"], "tokens of prompts, in more than one piece of their row"))
    name = f"{manifest.dataset} / {manifest.stage}  version {manifest.version}"
    dev = manifest.facts.get("classifier", {}).get("dev", {})
    return [name, *lines_of(["", "", ""], known, indent=2), *(_thresholds(dev) if "best_f1" in dev else ())]


def _thresholds(dev: dict[str, Any]) -> list[str]:
    """What each threshold of a classifier keeps of the rows that its training held out, with the best F1."""
    points = sorted([*dev["thresholds"], dev["best_f1"]], key=lambda p: float(p["min_score"]))
    names = ["min_score", "kept", "precision", "recall", "f1"]
    table = lines_of(names, [["-" if p[name] is None else f"{p[name]:g}" for name in names] for p in points])
    best = f"the best F1 is {dev['best_f1']['f1']} at a score of {dev['best_f1']['min_score']}"
    return [f"{dev['rows']} rows held out: AUC {dev['auc']}; {best}", *table]


def densities(packing: dict[str, Any]) -> dict[str, float]:
    """By name of another packing: the density that it would have."""
    return {k.removeprefix("density_"): v for k, v in packing.items() if k.startswith("density_")}


def about_files(manifest: Manifest, most: int | None) -> Iterator[str]:
    """What a result was made from, and its files; of each at most `most`."""
    parents = list[tuple[object, ...]]()
    files = [(s.path, *((s.rows, "rows") if s.content_sha256 else ("", "")), s.bytes, "bytes") for s in manifest.shards]
    for parent in manifest.parents:
        name, version = parent.get("raw") or parent["manifest"], parent.get("version", parent["sha256"][:12])
        parents.append((parent.get("use", "from"), name, version))
    size = sum(shard.bytes for shard in manifest.shards)
    for listed, what in ((parents, "inputs"), (files, f"files, {size:,} bytes in all")):
        if shown := listed[:most]:
            yield from lines_of([""] * len(shown[0]), shown, indent=2)
        if more := len(listed) - len(shown):
            yield f"  ... {more:,} more {what} (--verbose lists them)"


def sample_lines(link: Link, rows: int) -> Iterator[str]:
    """The first `rows` rows of each role, shortened."""
    for role in ("kept", "dropped", "quarantine"):
        shown = first_rows(batches(link, role), rows) if rows else ()
        for row in (row for batch in shown for row in batch.to_pylist()):
            line = f", line {row['line']}" if row.get("line") is not None else ""
            why = f"{line}  [{row['reason']}] {row.get('detail') or ''}" if row.get("reason") else ""
            yield f"--- {role}: {row.get('id') or row.get('file')}{why}"
            yield f"    {shorten(body(row))}"


def next_lines(stages: Iterable[FunnelStage]) -> Iterator[str]:
    """What to look at next: a command for each stage that has something to show."""
    for stage in stages:
        name, rows, path = stage.manifest.stage, stage.manifest.ledger.rows, stage.path
        short = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        where = shlex.quote(url_of(path) or str(short))
        if rows.quarantined:
            yield f"datakit show {where}    # records that could not be read"
        if name.startswith("dedup") and rows.dropped:
            yield f"datakit pairs {where}    # dropped duplicates beside the rows that stay"
        if name == "filter" and rows.dropped and stage.manifest.of_role("signals"):
            yield f"datakit tune --manifest {where}    # what each threshold drops"
        if name == "pack" and rows.kept:
            yield f"datakit peek {where}    # packed rows as text, with their labels"


# What a project holds: the state of every dataset, and the versions of each stage.


def states(root: Path, dataset: str | None = None) -> list[dict[str, Any]]:
    """The state of every dataset of a project, or of one, as JSON.

    It holds the stages with rows, bytes and why they are stale, and what `datakit gc` would free.
    """
    return [_state(root, name) for name in datasets(root) if dataset in (None, name)]


def _state(root: Path, dataset: str) -> dict[str, Any]:
    folder, stale = root / "manifests" / dataset, stale_results(root, dataset)
    stages = list[dict[str, Any]]()
    for stage in (s for s in FLOW if (folder / f"{s}.json").is_file()):
        path = folder / f"{stage}.json"
        try:
            manifest = load(path)
        except DatakitError as e:
            stages.append({"stage": stage, "problem": str(e)})
            continue
        rows, made = manifest.ledger.rows, load_run(path).get("started", "")
        about = {"stage": stage, "version": manifest.version, "in": rows.into, "kept": rows.kept}
        about |= {"bytes": sum(shard.bytes for shard in manifest.shards), "made": made}
        stages.append(about | {"stale": stale.get(stage, "")})
    missing = [s for s in stale if not (folder / f"{s}.json").is_file()]
    unused = sum(sum(sizes(f).values()) for f in unused_folders(root, dataset))
    purgeable = sum(old.bytes for old in old_versions(root, dataset) if old.needed_by is None)
    return {"dataset": dataset, "stages": stages, "missing": missing, "gc": unused, "gc_purge": purgeable}


def state_lines(found: dict[str, Any]) -> Iterator[str]:
    """A state for people."""
    yield found["dataset"]
    rows = []
    for s in (s for s in found["stages"] if "problem" not in s):
        stale = s["stale"] and f"STALE: {s['stale']}"
        rows.append((s["stage"], s["version"], s["in"], s["kept"], s["bytes"], s["made"][:10], stale))
    yield from lines_of(["stage", "version", "rows in", "kept", "bytes", "made", ""], rows, 2) if rows else ()
    yield from (f"  {s['stage']}  {s['problem']}" for s in found["stages"] if "problem" in s)
    if found["missing"]:
        yield f"  not run yet: {', '.join(found['missing'])}"
    yield f"  `datakit gc` would free {found['gc']:,} bytes, `datakit gc --purge` {found['gc_purge']:,} more"


def versions(root: Path, dataset: str, stage: str | None = None) -> list[dict[str, Any]]:
    """All versions of a dataset's stages as JSON, the oldest of each first: when it was made and what changed."""
    folder, found = root / "manifests" / dataset, list[dict[str, Any]]()
    for name in (s for s in FLOW if stage in (None, s)):
        paths = (p for p in folder.glob(f"history/{name}-*.json") if not p.name.endswith(".run.json"))
        made = [(load_run(p).get("started", ""), p, m) for p in paths if (m := load_readable(p)) and m.stage == name]
        before, current = None, folder / f"{name}.json"
        now = load_readable(current) if current.is_file() else None
        # run files tell seconds: two quick runs are told apart by their files
        for when, path, manifest in sorted(made, key=lambda version: (version[0], version[1].stat().st_mtime_ns)):
            about = {"stage": name, "version": manifest.version, "made": when, "rows": manifest.ledger.rows.kept}
            about["current"] = now is not None and now.version == manifest.version
            purged = purged_on(path, manifest)
            there = "there" if exists(data_dir(path, manifest)) else "gone"
            about["shards"] = f"purged on {purged}" if purged else there
            found.append(about | {"changed": list(_changes(before, manifest))})
            before = manifest
    return found


def _changes(before: Manifest | None, after: Manifest) -> Iterator[str]:
    """What differs between two versions of a stage, and what came of it."""
    if before is None:
        yield "first version"
        return
    yield from what_changed(before, after.parents, after.config, after.facts.get("resources", {}), after.code)
    if kept := after.ledger.rows.kept - before.ledger.rows.kept:
        yield f"{kept:+,} rows"


def version_lines(found: list[dict[str, Any]]) -> list[str]:
    """Versions for people."""
    rows = []
    for v in found:
        made = v["made"].replace("T", " ").removesuffix("Z") or "(no run file)"
        said = [*v["changed"], f"shards {v['shards']}"] if v["shards"] != "there" else v["changed"]
        rows.append(("*" if v["current"] else "", v["stage"], v["version"], made, v["rows"], "; ".join(said)))
    return lines_of(["", "stage", "version", "made", "rows", "what changed"], rows)
