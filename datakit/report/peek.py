"""Packed sets for people: rows with their labels (peek), the table of lint, the rows behind the tokens.

A packed row is shown as colored lines on a terminal, or as one HTML page that needs no network and no script.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import RECORD_BITS
from datakit.errors import InputError
from datakit.manifest import data_dir, find_parent, load
from datakit.pack.inspect import (
    WRONG,
    LabelRun,
    LintCounts,
    PackedRow,
    PackedSequence,
    PackedSet,
    TextPiece,
    TokenIndex,
    open_all,
    prove,
    texts,
)
from datakit.report.texts import visible
from datakit.stage import Parent

Names = dict[int, tuple[str, str]]
"""Id and source of rows by key."""


# The rows behind a packed set.


@dataclass(frozen=True, slots=True)
class Origins:
    """The tokenized rows behind a packed set. Without the files of the tokenize manifest, only row keys are known."""

    tokenized: Parent | None

    @classmethod
    def of(cls, path: Path) -> "Origins":
        """The rows that the pack manifest at `path` packed."""
        for entry in load(path).parents:
            found = find_parent(path, entry) if entry.get("manifest") == "tokenize" else None
            if found is not None and all((data_dir(found, load(found)) / s.path).is_file() for s in load(found).shards):
                return cls(Parent(found, load(found), entry.get("limit", 0)))
        return cls(None)

    def batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Columns (None: all) of the rows, in order; nothing if the rows are gone."""
        return iter(()) if self.tokenized is None else self.tokenized.rows(columns)

    def names(self, keys: set[int]) -> Names:
        """Id and source of the rows with these keys, as far as they are known."""
        wanted, found = pa.array(sorted(keys), pa.uint64()), Names()
        for batch in self.batches(["row_key", "id", "source"]):
            hits = batch.filter(pc.is_in(batch.column("row_key"), wanted))
            found |= {k: (i, s) for k, i, s in zip(*(c.to_pylist() for c in hits.columns), strict=True)}
            if len(found) == len(keys):
                break
        return found

    def sources(self) -> dict[int, str]:
        """The name of each input file by its number (the upper bits of a row key)."""
        found: dict[int, str] = {}
        for batch in self.batches(["row_key", "source"]):
            files: npt.NDArray[np.uint64] = batch.column("row_key").to_numpy() >> np.uint64(RECORD_BITS)
            for file, at in zip(*np.unique(files, return_index=True), strict=True):
                found.setdefault(int(file), batch.column("source")[int(at)].as_py())
        return found

    def packed_rows(self, sets: Sequence[PackedSet], row_id: str) -> list[tuple[PackedSet, int]]:
        """The packed rows that hold tokens of the row with an id.

        Raises:
            InputError: there is no such row, it was not packed, or the tokenized rows are gone.
        """
        if self.tokenized is None:
            raise InputError("the tokenize manifest behind this set is gone, and the ids of rows with it; use --row")
        key = self._key(row_id)
        if key is None:
            raise InputError(
                f"{self.tokenized.path}: no kept row has the id {row_id!r}; `datakit explain` tells what became of it"
            )
        found = [
            (rows, number)
            for rows in sets
            for number in dict.fromkeys(rows.sources["row"][rows.sources["row_key"] == key].tolist())
        ]
        if not found:
            raise InputError(f"the row {row_id!r} was tokenized, and pack dropped it; `datakit explain` says why")
        return found

    def _key(self, row_id: str) -> int | None:
        for batch in self.batches(["row_key", "id"]):
            at = pc.index(batch.column("id"), pa.scalar(row_id)).as_py()
            if at >= 0:
                return int(batch.column("row_key")[at].as_py())
        return None

    def with_names(self, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Rows, in ascending order of `row_key`, with `id` and `source` added (null if they are not known).

        `missing` then counts the tokens that were cut off after the last packed one, too.
        """
        known = (row for batch in self.batches(None) for row in _with_sizes(batch))
        key, row_id, source, sizes = next(known, (-1, None, None, (0,)))
        for row in rows:
            while 0 <= key < row["row_key"]:
                key, row_id, source, sizes = next(known, (-1, None, None, (0,)))
            found = key == row["row_key"]
            named = {"id": row_id if found else None, "source": source if found else None} | row
            yield named | ({"missing": sizes[row["side"]] - row["tokens"]} if found else {})


def _with_sizes(batch: pa.RecordBatch) -> Iterator[tuple[int, str | None, str | None, tuple[int, ...]]]:
    """Key, id, source, and the number of tokens of each side of the rows of a batch."""
    sides = [n for n in ("input_ids", "rejected_ids") if n in batch.schema.names]
    sizes = zip(*(pc.list_value_length(batch.column(n)).to_pylist() for n in sides), strict=True)
    yield from zip(*(batch.column(n).to_pylist() for n in ("row_key", "id", "source")), sizes, strict=True)


def _row_title(key: int, names: Names) -> str:
    """Id and source of a row; its file and record if only the key is known."""
    if key not in names:
        return f"file {key >> RECORD_BITS}, record {key & ((1 << RECORD_BITS) - 1)}"
    row_id, source = names[key]
    return visible(row_id if row_id.startswith(source) else f"{row_id} ({source})")


def unpacked(path: Path, sets: Sequence[PackedSet], tokenizer: Any) -> Iterator[dict[str, Any]]:
    """The rows of packed sets as text, with their ids and sources."""
    return Origins.of(path).with_names(texts(TokenIndex(sets), tokenizer))


def roundtrip_problem(path: Path) -> str | None:
    """How a packed set differs from the tokens that were packed, the first 20 differences; None if it does not.

    Raises:
        InputError: the tokens that were packed are gone.
    """
    sets, _ = open_all(path)
    origins, ledger = Origins.of(path), load(path).ledger
    if origins.tokenized is None or ledger.tokens is None:
        raise InputError(f"{path}: the tokenize manifest behind it, or one of its shards, is gone: nothing to compare")
    problems = islice(prove(TokenIndex(sets), origins.batches(None), ledger.rows, ledger.tokens), 20)
    return "; ".join(problems) or None


# The table of lint.

WORTH_A_LOOK = ("truncated_answers", "special_in_content")


def lint_table(by_source: dict[str, LintCounts]) -> Iterator[str]:
    """A line for each source; below it what is wrong or worth a look."""
    width = max((len(s) for s in by_source), default=6)
    yield f"{'source':<{width}} {'sequences':>12} {'tokens':>16} {'labels':>16} {'share':>7}"
    for source, c in by_source.items():
        yield f"{source:<{width}} {c.sequences:>12,} {c.tokens:>16,} {c.labels:>16,} {c.label_share:>7.1%}"
        for names, mark in ((WRONG, "WRONG"), (WORTH_A_LOOK, "look at")):
            yield from (f"  {mark:<8} {n:>12,} {name}" for name in names if (n := getattr(c, name)))
    if not any(getattr(c, name) for c in by_source.values() for name in WRONG):
        yield "no errors found"


# A packed row on a terminal.

COLORS = ("cyan", "yellow", "magenta", "blue")


def lines(look: PackedRow, name: str, names: Names, total: int) -> Iterator[str]:
    """Colored lines; targets are green, and between ⟦ and ⟧ for terminals without colors."""
    share = f"{look.labels / look.tokens:.1%}" if look.tokens else "none"
    yield click.style(f"{name}: row {look.row} of {total:,}", bold=True) + (
        f"  {len(look.sequences)} sequences, {look.tokens:,} tokens, {look.labels:,} labels ({share}), "
        f"{look.padding:,} padding"
    )
    yield _bar(look)
    for number, sequence in enumerate(look.sequences):
        yield _head(number, sequence, names)
        yield "".join(_styled(run) for run in sequence.runs)
    if look.padding:
        yield click.style(f"── padding: {look.padding:,} tokens", dim=True)


def _head(number: int, sequence: PackedSequence, names: Names) -> str:
    label = (
        f"── {number}  {_row_title(sequence.row_key, names)}  {sequence.tokens:,} tokens, {sequence.labels:,} labels"
    )
    cut = f", from token {sequence.start:,} of its row" if sequence.start else ""
    return click.style(label + cut, fg=COLORS[number % len(COLORS)], bold=True)


def _bar(look: PackedRow, width: int = 64) -> str:
    """The row to scale: one colored block for each sequence, dots for padding."""
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


# Packed rows as an HTML page.

STYLE = """\
:root { color-scheme: light dark; --line: #8884; --learnt: light-dark(#a3e4b2, #12693a); --text: light-dark(#000, #fff);
--other: light-dark(#5b5b5b, #a9a9a9); --added: light-dark(#7c5aa6, #a892c8); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.15rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: 2.5rem 0 .5rem; }
.facts { color: #888; font-weight: normal; }
.bar { display: flex; height: .9rem; border-radius: .3rem; overflow: hidden; margin: .6rem 0 1rem; }
.bar > * { border-right: 1px solid Canvas; }
.padding { background: repeating-linear-gradient(45deg, var(--line) 0 4px, transparent 4px 8px); }
span.s0 { background: #8a95a5; } span.s1 { background: #5d6878; }
section { border-left: .3rem solid; padding-left: .9rem; margin: 1rem 0; }
section.s0 { border-color: #8a95a5; } section.s1 { border-color: #5d6878; }
h3 { font-size: .85rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
pre { font: 13px/1.65 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0;
  color: var(--other); }
mark { background: var(--learnt); color: var(--text); border-bottom: 2px solid #2a924a; }
b { color: var(--added); font-weight: 600; } mark b, mark i { color: inherit; } i { color: #888; font-style: normal; }
.key mark, .key b { padding: 0 .25rem; } .rest { padding: .3rem .9rem; color: #888; }
"""
HEAD = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
<h1>{title}</h1>
<p class="key"><mark>what the model learns</mark> <b>added token</b> <i>↵ new line</i>; point at a token to see
its id</p>
"""


def page(title: str, looks: Sequence[tuple[str, int, PackedRow]], names: Names) -> str:
    """The page; `looks` are (name of the set, number of its rows, row)."""
    body = [HEAD.format(title=escape(visible(title)), style=STYLE)]
    for name, total, look in looks:
        body.append(_heading(name, total, look) + _html_bar(look))
        body += [_sequence(n, s, names) for n, s in enumerate(look.sequences)]
        if look.padding:
            body.append(f'<div class="padding rest">{look.padding:,} tokens of padding</div>')
    return "\n".join(body) + "\n</html>\n"


def _heading(name: str, total: int, look: PackedRow) -> str:
    share = f" ({look.labels / look.tokens:.1%})" if look.tokens else ""
    facts = (
        f"{len(look.sequences)} sequences, {look.tokens:,} tokens, {look.labels:,} labels{share}, "
        f"{look.padding:,} padding"
    )
    return f'<h2>{escape(visible(name))}: row {look.row:,} of {total:,} <span class="facts">{facts}</span></h2>'


def _html_bar(look: PackedRow) -> str:
    parts = [
        f'<span class="s{n % 2}" style="flex:{s.tokens}" title="sequence {n}: {s.tokens:,} tokens"></span>'
        for n, s in enumerate(look.sequences)
    ]
    if look.padding:
        parts.append(f'<span class="padding" style="flex:{look.padding}" title="{look.padding:,} padding"></span>')
    return f'<div class="bar">{"".join(parts)}</div>'


def _sequence(number: int, sequence: PackedSequence, names: Names) -> str:
    cut = f", from token {sequence.start:,} of its row" if sequence.start else ""
    facts = f"{sequence.tokens:,} tokens, {sequence.labels:,} labels{cut}"
    text = "".join(_run(run) for run in sequence.runs)
    head = f'<h3>{number}&ensp;{escape(_row_title(sequence.row_key, names))} <span class="facts">{facts}</span></h3>'
    return f'<section class="s{number % 2}">{head}\n<pre>{text}</pre></section>'


def _run(run: LabelRun) -> str:
    text = "".join(_piece(p) for p in run.pieces)
    return f"<mark>{text}</mark>" if run.learnt else text


def _piece(piece: TextPiece) -> str:
    """The text of a token. New lines are shown as ↵ and break the line; other control characters are spelled out."""
    text = escape(visible(piece.text), quote=False).replace("\n", "<i>↵</i>\n")
    tag = "b" if piece.added else "span"
    return f'<{tag} title="{" ".join(map(str, piece.ids))}">{text}</{tag}>'
