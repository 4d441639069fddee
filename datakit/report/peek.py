"""Packed sets for people: rows with their labels (peek), the table of lint, the rows behind the tokens.

A packed row is shown as colored lines on a terminal, or as one HTML page that needs no network and no script.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import RECORD_BITS
from datakit.errors import InputError
from datakit.manifest import data_dir, find_parent, load
from datakit.pack.format import Packed
from datakit.pack.inspect import WRONG, LabelRun, LintCounts, PackedRow, open_all, prove, texts
from datakit.report.finder import row_name, visible
from datakit.report.page import render
from datakit.report.tables import lines_of, share
from datakit.stage import Parent

Names = dict[int, tuple[str, str]]
"""Id and source of rows by key."""


# The rows behind a packed set.


class Origins:
    """The tokenized rows behind a packed set. Without the files of the tokenize manifest, only row keys are known."""

    def __init__(self, path: Path) -> None:
        """Find the rows that the pack manifest at `path` packed."""
        self.tokenized: Parent | None = None
        for entry in load(path).parents:
            found = find_parent(path, entry) if entry.get("manifest") == "tokenize" else None
            if found is not None and all((data_dir(found, load(found)) / s.path).is_file() for s in load(found).shards):
                self.tokenized = Parent(found, load(found))

    def batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Columns (None: all) of the rows, in order; nothing if the rows are gone."""
        return iter(()) if self.tokenized is None else self.tokenized.rows(columns)

    def names(self, keys: set[int]) -> Names:
        """Id and source of the rows with these keys, as far as they are known."""
        wanted, found = pa.array(sorted(keys), pa.uint64()), Names()
        for batch in self.batches(["row_key", "id", "source"]):
            for row in batch.filter(pc.is_in(batch["row_key"], wanted)).to_pylist():
                found[row["row_key"]] = row["id"], row["source"]
            if len(found) == len(keys):
                break
        return found

    def sources(self) -> dict[int, str]:
        """The name of each input file by its number (the upper bits of a row key)."""
        found: dict[int, str] = {}
        for batch in self.batches(["row_key", "source"]):
            files = batch["row_key"].to_numpy() >> np.uint64(RECORD_BITS)
            for file, at in zip(*np.unique(files, return_index=True), strict=True):
                found.setdefault(int(file), batch["source"][int(at)].as_py())
        return found

    def packed_rows(self, sets: Sequence[Packed], row_id: str) -> list[tuple[Packed, int]]:
        """The packed rows that hold tokens of the row with an id.

        Raises:
            InputError: there is no such row, it was not packed, or the tokenized rows are gone.
        """
        if self.tokenized is None:
            raise InputError("the tokenize manifest behind this set is gone, and the ids of rows with it; use --row")
        named = (b.filter(pc.equal(b["id"], row_id)) for b in self.batches(["row_key", "id"]))
        key = next((found["row_key"][0].as_py() for found in named if found.num_rows), None)
        if key is None:
            why = f"no kept row has the id {row_id!r}; `datakit explain` tells what became of it"
            raise InputError(f"{self.tokenized.path}: {why}")
        mine = [(rows, rows.sources["row"][rows.sources["row_key"] == key]) for rows in sets]
        found = [(rows, number) for rows, numbers in mine for number in dict.fromkeys(numbers.tolist())]
        if not found:
            raise InputError(f"the row {row_id!r} was tokenized, and pack dropped it; `datakit explain` says why")
        return found


def _row_title(key: int, names: Names) -> str:
    """Id and source of a row; its file and record if only the key is known."""
    if key in names:
        return row_name(*names[key])
    return f"file {key >> RECORD_BITS}, record {key & ((1 << RECORD_BITS) - 1)}"


def unpacked(path: Path, sets: Sequence[Packed], tokenizer: Any) -> Iterator[dict[str, Any]]:
    """The rows of packed sets as text, in ascending order of `row_key`, with `id` and `source` (null if not known).

    Where they are known, `missing` counts the tokens that were cut off after the last packed one, too.
    """
    known = (row for batch in Origins(path).batches(None) for row in batch.to_pylist())
    at = next(known, None)
    for row in texts(sets, tokenizer):
        while at is not None and at["row_key"] < row["row_key"]:
            at = next(known, None)
        if at is None or at["row_key"] != row["row_key"]:
            yield {"id": None, "source": None} | row
            continue
        tokens = len(at[("input_ids", "rejected_ids")[row["side"]]])
        yield {"id": at["id"], "source": at["source"]} | row | {"missing": tokens - row["tokens"]}


def roundtrip_problem(path: Path) -> str | None:
    """How a packed set differs from the tokens that were packed, the first 20 differences; None if it does not.

    Raises:
        InputError: the tokens that were packed are gone.
    """
    sets, _ = open_all(path)
    origins, ledger = Origins(path), load(path).ledger
    if origins.tokenized is None or ledger.tokens is None:
        raise InputError(f"{path}: the tokenize manifest behind it, or one of its shards, is gone: nothing to compare")
    problems = islice(prove(sets, origins.batches(None), ledger.rows, ledger.tokens), 20)
    return "; ".join(problems) or None


# The table of lint.

WORTH_A_LOOK = ("truncated_answers",)


def lint_lines(by_source: dict[str, LintCounts]) -> Iterator[str]:
    """A line for each source, with what is wrong or worth a look."""
    rows, wrong = [], False
    for source, counts in by_source.items():
        named = [("WRONG", name) for name in WRONG] + [("look at", name) for name in WORTH_A_LOOK]
        said = [f"{what} {n:,} {name}" for what, name in named if (n := getattr(counts, name))]
        wrong |= any(getattr(counts, name) for name in WRONG)
        part = share(counts.labels, counts.tokens)
        rows.append((source, counts.sequences, counts.tokens, counts.labels, part, "; ".join(said)))
    yield from lines_of(["source", "sequences", "tokens", "labels", "share", ""], rows)
    if not wrong:
        yield "no errors found"


# A packed row for people.

COLORS = ("cyan", "yellow", "magenta", "blue")
Look = tuple[str, int, PackedRow]
"""The name of a set, the number of its rows, and one of them."""


def page(title: str, looks: Sequence[Look], names: Names) -> str:
    """The HTML page."""
    return render("peek.html", title=title, looks=looks, row_title=lambda key: _row_title(key, names))


def lines(looks: Sequence[Look], names: Names) -> Iterator[str]:
    """Colored lines; targets are green, and between ⟦ and ⟧ for terminals without colors."""
    for name, total, look in looks:
        labels = f"{look.labels:,} labels ({share(look.labels, look.tokens) or 'none'})"
        said = f"{len(look.sequences)} sequences, {look.tokens:,} tokens, {labels}, {look.padding:,} padding"
        yield f"{click.style(f'{name}: row {look.row} of {total:,}', bold=True)}  {said}"
        for number, s in enumerate(look.sequences):
            cut = f", from token {s.start:,} of its row" if s.start else ""
            head = f"── {number}  {_row_title(s.row_key, names)}  {s.tokens:,} tokens, {s.labels:,} labels{cut}"
            yield click.style(head, fg=COLORS[number % len(COLORS)], bold=True)
            yield "".join(_styled(run) for run in s.runs)


def _styled(run: LabelRun) -> str:
    colour = "green" if run.learnt else None
    text = "".join(click.style(visible(p.text), fg=colour, bold=p.added, dim=not run.learnt) for p in run.pieces)
    return f"{click.style('⟦', fg='green')}{text}{click.style('⟧', fg='green')}" if run.learnt else text
