"""A packed row on a terminal: labels, sequences, where they came from, and padding."""

from collections.abc import Iterator

import click

from datakit.pack.peek import Look, Run, Sequence
from datakit.report.origins import called, visible

COLORS = ("cyan", "yellow", "magenta", "blue")


def lines(look: Look, name: str, ids: dict[int, tuple[str, str]], total: int) -> Iterator[str]:
    """Coloured lines; what the model learns is green and, for terminals without colours, between ⟦ and ⟧."""
    share = f"{look.labels / look.tokens:.1%}" if look.tokens else "none"
    yield click.style(f"{name}: row {look.row} of {total:,}", bold=True) + (
        f"  {len(look.sequences)} sequences, {look.tokens:,} tokens, {look.labels:,} labels ({share}), "
        f"{look.padding:,} padding"
    )
    yield _bar(look)
    for number, sequence in enumerate(look.sequences):
        yield _head(number, sequence, ids)
        yield "".join(_styled(run) for run in sequence.runs)
    if look.padding:
        yield click.style(f"── padding: {look.padding:,} tokens", dim=True)


def _head(number: int, sequence: Sequence, ids: dict[int, tuple[str, str]]) -> str:
    label = f"── {number}  {called(sequence.row_key, ids)}  {sequence.tokens:,} tokens, {sequence.labels:,} labels"
    cut = f", from token {sequence.start:,} of its row" if sequence.start else ""
    return click.style(label + cut, fg=COLORS[number % len(COLORS)], bold=True)


def _bar(look: Look, width: int = 64) -> str:
    """The row drawn to scale: a block a sequence, dots for padding."""
    whole = look.tokens + look.padding
    drawn, at, done = [], 0, 0
    for number, sequence in enumerate(look.sequences):
        at += sequence.tokens
        cells = round(at * width / whole) - done
        done += cells
        drawn.append(click.style("█" * cells, fg=COLORS[number % len(COLORS)]))
    return "".join(drawn) + click.style("·" * (width - done), dim=True)


def _styled(run: Run) -> str:
    text = "".join(
        click.style(visible(p.text), fg="green" if run.learnt else None, bold=p.added, dim=not run.learnt)
        for p in run.pieces
    )
    return f"{click.style('⟦', fg='green')}{text}{click.style('⟧', fg='green')}" if run.learnt else text
