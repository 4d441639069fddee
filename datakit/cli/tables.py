"""Ledgers as lines of text; how wide a page is."""

import shutil
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from datakit.manifest import Count, Manifest

F = TypeVar("F", bound=Callable[..., Any])


def columns_option(command: F) -> F:
    """The flag of commands that show two texts."""
    told = "Characters of a line; two texts stand in two columns from 72 on, 0: never [default: the terminal's]"
    return click.option("--columns", type=click.IntRange(0), default=None, help=told)(command)


def terminal_columns(asked: int | None) -> int:
    """Characters of a line as asked for, or of the terminal; 0 where the output is none."""
    if asked is not None:
        return asked
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def ledger_lines(manifest: Manifest) -> list[str]:
    """A stage's ledger: what went in, what became of it, what was noted."""
    lines = [f"{manifest.dataset} / {manifest.stage}  version {manifest.version}"]
    for unit, count in (("rows", manifest.ledger.rows), ("tokens", manifest.ledger.tokens)):
        if count is not None:
            lines += _count_lines(unit, count)
    lines += [f"  note      {n:>14,}  {name}" for name, n in manifest.ledger.notes.items()]
    lines += [f"  ALARM     {alarm}" for alarm in manifest.facts.get("alarms", [])]
    return lines


def _count_lines(unit: str, count: Count) -> list[str]:
    lines = [
        f"  in        {count.into:>14,}  {unit}",
        f"  kept      {count.kept:>14,}  {unit}{_share(count.kept, count)}",
    ]
    for reason, n in sorted(count.dropped.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  dropped   {n:>14,}  {reason}{_share(n, count)}")
    for name, n in (("quarantine", count.quarantined), ("edited", count.edited), ("padding", count.padding)):
        lines += [f"  {name:<10}{n:>14,}  {unit}"] if n else []
    return lines


def _share(part: int, count: Count) -> str:
    return f"  ({part / count.into:.1%})" if count.into else ""
