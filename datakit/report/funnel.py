"""The funnel: what each stage of a dataset took in, kept and dropped, how long it took, and what to look at next."""

import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from datakit.manifest import Count, Manifest, ancestors, load_run
from datakit.storage import url_of

MOST_REASONS = 8
"""Reasons of a stage that are listed, the most frequent first; the others are counted."""


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """One stage of a funnel."""

    path: Path
    manifest: Manifest
    seconds: float | None
    """None where no run file tells."""
    bytes: int
    """Of the values that went in, in memory."""
    now: bool
    """The stage ran in this command; else it was up to date."""

    @property
    def mb_per_s(self) -> float | None:
        """Megabytes (1e6 bytes) of values a second."""
        return self.bytes / self.seconds / 1e6 if self.seconds and self.bytes else None

    @property
    def alarms(self) -> list[str]:
        """The alarms of the stage."""
        found: list[str] = self.manifest.facts.get("alarms", [])
        return found

    def to_json(self) -> dict[str, Any]:
        """The stage as JSON."""
        speed = self.mb_per_s
        return {
            "stage": self.manifest.stage,
            "version": self.manifest.version,
            "ledger": self.manifest.ledger.to_json(),
            "seconds": self.seconds,
            "mb_per_s": None if speed is None else round(speed, 2),
            "ran": self.now,
            "alarms": self.alarms,
        }


def funnel(path: Path, since: float = 0.0) -> list[FunnelStage]:
    """The stages behind the manifest at `path`, in the order of the rows; `since` is when the command began (epoch)."""
    found = []
    for place, manifest in _in_order(path):
        run = load_run(place)
        ended = _started(run) + float(run.get("seconds", 0.0))
        now = bool(run) and ended + 1.0 >= since  # `started` has whole seconds
        found.append(FunnelStage(place, manifest, run.get("seconds"), int(run.get("bytes", 0)), now))
    return found


def _in_order(path: Path) -> list[tuple[Path, Manifest]]:
    """The manifest and those behind it, the oldest first; what is no rows (a tokenizer) stands before what needs it."""
    known = {manifest.version: (place, manifest) for place, manifest in ancestors(path)}
    ordered: dict[str, tuple[Path, Manifest]] = {}

    def add(version: str) -> None:
        if version in known and version not in ordered:
            for parent in known[version][1].parents:
                add(parent.get("version", ""))
            ordered[version] = known[version]

    add(next(iter(known)))
    return list(ordered.values())


def _started(run: dict[str, Any]) -> float:
    import calendar

    try:
        return float(calendar.timegm(time.strptime(run["started"], "%Y-%m-%dT%H:%M:%SZ")))
    except (KeyError, ValueError):
        return 0.0


def funnel_lines(stages: list[FunnelStage]) -> Iterator[str]:
    """The funnel as a table for people, with the reasons of drops below each stage."""
    yield f"{'stage':<17}{'rows in':>13}{'kept':>13}{'':>8}{'tokens in':>16}{'kept':>16}{'s':>9}{'MB/s':>8}"
    for stage in stages:
        ledger = stage.manifest.ledger
        rows, tokens = ledger.rows, ledger.tokens
        share = f"{rows.kept / rows.into:.1%}" if rows.into else ""
        into, kept = ("", "") if tokens is None else (f"{tokens.into:,}", f"{tokens.kept:,}")
        seconds = "before" if not stage.now else "" if stage.seconds is None else f"{stage.seconds:,.1f}"
        speed = f"{stage.mb_per_s:,.1f}" if stage.now and stage.mb_per_s else ""
        line = f"{stage.manifest.stage:<17}{rows.into:>13,}{rows.kept:>13,}{share:>8}{into:>16}{kept:>16}"
        yield f"{line}{seconds:>9}{speed:>8}".rstrip()
        yield from _losses(rows, "")
        if tokens is not None:
            yield from _losses(tokens, " tokens")


def _losses(count: Count, unit: str) -> Iterator[str]:
    lost = sorted(count.dropped.items(), key=lambda item: (-item[1], item[0]))
    if count.quarantined:
        lost.insert(0, ("could not be read", count.quarantined))
    for reason, n in lost[:MOST_REASONS]:
        yield f"  - {n:>13,}{unit}  {reason}"
    if len(lost) > MOST_REASONS:
        yield f"  - {sum(n for _, n in lost[MOST_REASONS:]):>13,}{unit}  {len(lost) - MOST_REASONS} other reasons"


def next_lines(stages: list[FunnelStage]) -> Iterator[str]:
    """What to look at next: a command for each stage that has something to show."""
    for stage in stages:
        name, rows, where = stage.manifest.stage, stage.manifest.ledger.rows, shlex.quote(_shown(stage.path))
        if rows.quarantined:
            yield f"datakit show {where}    # records that could not be read"
        if name.startswith("dedup") and rows.dropped:
            yield f"datakit pairs {where}    # dropped duplicates beside the rows that stay"
        if name == "filter" and rows.dropped and stage.manifest.of_role("signals"):
            yield f"datakit tune --manifest {where}    # what each threshold drops"
        if name == "pack":
            yield f"datakit peek {where}    # packed rows as text, with their labels"


def alarm_lines(stages: list[FunnelStage]) -> Iterator[str]:
    """The alarms of all stages, in red."""
    for stage in stages:
        for alarm in stage.alarms:
            yield click.style(f"ALARM {stage.manifest.stage}: {alarm}", fg="red")


def _shown(path: Path) -> str:
    """A path as one would type it here."""
    if url := url_of(path):
        return url
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
