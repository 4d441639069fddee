"""Packed rows for people: as coloured lines on a terminal, or as one HTML page that needs no network and no script."""

from collections.abc import Iterator, Sequence
from html import escape

import click

from datakit.pack.inspect import LabelRun, PackedRow, PackedSequence, TextPiece
from datakit.report.origins import called, visible

COLORS = ("cyan", "yellow", "magenta", "blue")


def lines(look: PackedRow, name: str, ids: dict[int, tuple[str, str]], total: int) -> Iterator[str]:
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


def _head(number: int, sequence: PackedSequence, ids: dict[int, tuple[str, str]]) -> str:
    label = f"── {number}  {called(sequence.row_key, ids)}  {sequence.tokens:,} tokens, {sequence.labels:,} labels"
    cut = f", from token {sequence.start:,} of its row" if sequence.start else ""
    return click.style(label + cut, fg=COLORS[number % len(COLORS)], bold=True)


def _bar(look: PackedRow, width: int = 64) -> str:
    """The row drawn to scale: a block a sequence, dots for padding."""
    whole = look.tokens + look.padding
    drawn, at, done = [], 0, 0
    for number, sequence in enumerate(look.sequences):
        at += sequence.tokens
        cells = round(at * width / whole) - done
        done += cells
        drawn.append(click.style("█" * cells, fg=COLORS[number % len(COLORS)]))
    return "".join(drawn) + click.style("·" * (width - done), dim=True)


def _styled(run: LabelRun) -> str:
    text = "".join(
        click.style(visible(p.text), fg="green" if run.learnt else None, bold=p.added, dim=not run.learnt)
        for p in run.pieces
    )
    return f"{click.style('⟦', fg='green')}{text}{click.style('⟧', fg='green')}" if run.learnt else text


STYLE = """\
:root { color-scheme: light dark; --line: #8884; --learnt: #2a924a30; --added: #8b5cf6; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.15rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: 2.5rem 0 .5rem; }
.facts { color: #888; font-weight: normal; }
.bar { display: flex; height: .9rem; border-radius: .3rem; overflow: hidden; margin: .6rem 0 1rem; }
.bar > * { border-right: 1px solid Canvas; }
.padding { background: repeating-linear-gradient(45deg, var(--line) 0 4px, transparent 4px 8px); }
.s0 { background: #3b82c4; } .s1 { background: #d98a29; } .s2 { background: #b5509c; } .s3 { background: #4b9b6e; }
section { border-left: .3rem solid; padding-left: .9rem; margin: 1rem 0; background: none; }
section.s0 { border-color: #3b82c4; } section.s1 { border-color: #d98a29; }
section.s2 { border-color: #b5509c; } section.s3 { border-color: #4b9b6e; }
h3 { font-size: .85rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
pre { font: 13px/1.65 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
mark { background: var(--learnt); color: inherit; border-bottom: 2px solid #2a924a; }
b { color: var(--added); font-weight: 600; } i { color: #888; font-style: normal; }
.key mark, .key b { padding: 0 .25rem; } .rest { padding: .3rem .9rem; color: #888; }
"""
HEAD = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{style}</style>
<h1>{title}</h1>
<p class="key"><mark>what the model learns</mark> <b>added token</b> <i>↵ new line</i>; hold the pointer over a token
for its id</p>
"""


def page(title: str, looks: Sequence[tuple[str, int, PackedRow]], ids: dict[int, tuple[str, str]]) -> str:
    """The page: `looks` are (set, number of its rows, row); `ids` names rows of the dataset by key."""
    body = [HEAD.format(title=escape(title), style=STYLE)]
    for name, total, look in looks:
        body.append(_heading(name, total, look) + _html_bar(look))
        body += [_sequence(n, s, ids) for n, s in enumerate(look.sequences)]
        if look.padding:
            body.append(f'<div class="padding rest">{look.padding:,} tokens of padding</div>')
    return "\n".join(body) + "\n</html>\n"


def _heading(name: str, total: int, look: PackedRow) -> str:
    share = f" ({look.labels / look.tokens:.1%})" if look.tokens else ""
    facts = (
        f"{len(look.sequences)} sequences, {look.tokens:,} tokens, {look.labels:,} labels{share}, "
        f"{look.padding:,} padding"
    )
    return f'<h2>{escape(name)}: row {look.row:,} of {total:,} <span class="facts">{facts}</span></h2>'


def _html_bar(look: PackedRow) -> str:
    parts = [
        f'<span class="s{n % 4}" style="flex:{s.tokens}" title="sequence {n}: {s.tokens:,} tokens"></span>'
        for n, s in enumerate(look.sequences)
    ]
    if look.padding:
        parts.append(f'<span class="padding" style="flex:{look.padding}" title="{look.padding:,} padding"></span>')
    return f'<div class="bar">{"".join(parts)}</div>'


def _sequence(number: int, sequence: PackedSequence, ids: dict[int, tuple[str, str]]) -> str:
    cut = f", from token {sequence.start:,} of its row" if sequence.start else ""
    facts = f"{sequence.tokens:,} tokens, {sequence.labels:,} labels{cut}"
    text = "".join(_run(run) for run in sequence.runs)
    head = f'<h3>{number}&ensp;{escape(called(sequence.row_key, ids))} <span class="facts">{facts}</span></h3>'
    return f'<section class="s{number % 4}">{head}\n<pre>{text}</pre></section>'


def _run(run: LabelRun) -> str:
    text = "".join(_piece(p) for p in run.pieces)
    return f"<mark>{text}</mark>" if run.learnt else text


def _piece(piece: TextPiece) -> str:
    """A token's text; new lines are drawn and broken, other control characters spelled out."""
    text = escape(visible(piece.text), quote=False).replace("\n", "<i>↵</i>\n")
    tag = "b" if piece.added else "span"
    return f'<{tag} title="{" ".join(map(str, piece.ids))}">{text}</{tag}>'
