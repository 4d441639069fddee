"""Commands for packed sets: peek and lint look at them, unpack makes text of them again."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datakit.cli.stages import CONTEXT
from datakit.errors import InputError, IntegrityError, UsageError

if TYPE_CHECKING:
    from datakit.pack.inspect import PackedSet
    from datakit.report.origins import Origins

Manifest = click.argument("manifest", type=click.Path(path_type=Path))


def _manifest(path: Path) -> Path:
    return path / "manifest.json" if path.is_dir() else path


@click.command(context_settings=CONTEXT)
@Manifest
@click.option("--row", type=click.IntRange(0), help="The packed row to show [default: 0]")
@click.option("--id", "row_id", help="Show every packed row that holds tokens of the row of this id.")
@click.option("--set", "name", help="Which set, as `validation` or `train-256` [default: the first, or all with --id]")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page instead.")
def peek(manifest: Path, row: int | None, row_id: str | None, name: str | None, html: Path | None) -> None:
    """Show a packed row as text: what the model learns in green, each sequence with its source row, the padding."""
    from datakit.pack.inspect import open_all
    from datakit.pack.inspect import peek as look_at
    from datakit.report.origins import Origins
    from datakit.report.peek import lines, page

    if row is not None and row_id is not None:
        raise UsageError("peek shows --row or --id, not both")
    path = _manifest(manifest)
    sets, tokenizer = open_all(path)
    origins, sets = Origins.of(path), _chosen(sets, name)
    places = [(sets[0], row or 0)] if row_id is None else _places(sets, origins, row_id)
    for rows, number in places:
        if number >= len(rows):
            raise UsageError(f"{path}: {rows.name} has {len(rows):,} rows, counted from 0; there is no row {number}")
    looks = [(rows, look_at(rows, tokenizer, number)) for rows, number in places]
    ids = origins.names({s.row_key for _, look in looks for s in look.sequences})
    if html is None:
        for rows, look in looks:
            click.echo("\n".join(lines(look, rows.name, ids, len(rows))))
    else:
        html.write_text(page(str(manifest), [(rows.name, len(rows), look) for rows, look in looks], ids), "utf-8")
        click.echo(f"wrote {html}")


def _chosen(sets: "list[PackedSet]", name: str | None) -> "list[PackedSet]":
    found = [s for s in sets if name in (None, s.name)]
    if not found:
        raise UsageError(f"no set is called {name!r}; there are {', '.join(s.name for s in sets)}")
    return found


def _places(sets: "list[PackedSet]", origins: "Origins", row_id: str) -> "list[tuple[PackedSet, int]]":
    """The packed rows that hold tokens of a row."""
    if origins.path is None:
        raise InputError("the tokenize manifest behind this set is gone, and with it the rows' ids; use --row")
    key = origins.key(row_id)
    if key is None:
        raise InputError(f"{origins.path}: no row kept there has the id {row_id!r}; `datakit explain` tells its story")
    places = [
        (rows, number)
        for rows in sets
        for number in dict.fromkeys(rows.sources["row"][rows.sources["row_key"] == key].tolist())
    ]
    if not places:
        raise InputError(f"the row {row_id!r} was tokenized, and pack dropped it; `datakit explain` says why")
    return places


@click.command(context_settings=CONTEXT)
@Manifest
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON, and nothing else.")
def lint(manifest: Path, as_json: bool) -> None:
    """Count by source what is wrong, or may be, with a packed set's labels; fail on what is always wrong."""
    from datakit.pack.inspect import WRONG, lint_rows, open_all
    from datakit.report.findings import table
    from datakit.report.origins import Origins

    path = _manifest(manifest)
    sets, tokenizer = open_all(path)
    findings = lint_rows(sets, tokenizer)
    names = Origins.of(path).sources()
    by_source = {names.get(file, f"file {file}"): counts for file, counts in sorted(findings.items())}
    if as_json:
        click.echo(json.dumps({s: c.to_json() for s, c in by_source.items()}, ensure_ascii=False, indent=1))
    else:
        click.echo("\n".join(table(by_source)))
    wrong = [f"{s}: {n:,} {w}" for s, c in by_source.items() for w in WRONG if (n := getattr(c, w))]
    if wrong:
        raise IntegrityError(f"{manifest}: what is never right in a packed set: {'; '.join(wrong)}")


@click.command(context_settings=CONTEXT)
@Manifest
@click.option("--set", "name", help="Which set, as `validation` or `train-256` [default: all]")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="A JSONL file [default: the terminal]")
@click.option("--limit", type=click.IntRange(0), help="Only so many rows.")
def unpack(manifest: Path, name: str | None, output: Path | None, limit: int | None) -> None:
    """Turn a packed set back into text: a JSON line a row, with the stretches that the model must produce."""
    from datakit.pack.inspect import TokenIndex, open_all, texts
    from datakit.report.origins import Origins

    path = _manifest(manifest)
    sets, tokenizer = open_all(path)
    rows = _named(texts(TokenIndex(_chosen(sets, name)), tokenizer), Origins.of(path))
    lines = (json.dumps(row, ensure_ascii=False) for row in islice(rows, limit))
    if output is None:
        for line in lines:
            click.echo(line)
        return
    count = 0
    with output.open("w", encoding="utf-8") as f:
        for line in lines:
            f.write(line + "\n")
            count += 1
    click.echo(f"wrote {count:,} rows to {output}")


def _named(rows: "Iterator[dict[str, Any]]", origins: "Origins") -> "Iterator[dict[str, Any]]":
    """The rows with their ids and sources, both in order of their keys."""
    known = origins.rows()
    key, row_id, source = next(known, (-1, None, None))
    for row in rows:
        while 0 <= key < row["row_key"]:
            key, row_id, source = next(known, (-1, None, None))
        found = key == row["row_key"]
        yield {"id": row_id if found else None, "source": source if found else None} | row


def compare(path: Path) -> str | None:
    """What differs between a packed set and the tokens that went in; None if nothing does.

    Raises:
        InputError: the tokens that went in are gone.
    """
    from datakit.manifest import load
    from datakit.pack.inspect import TokenIndex, open_all, prove
    from datakit.report.origins import Origins

    sets, _ = open_all(path)
    origins, ledger = Origins.of(path), load(path).ledger
    if origins.path is None or ledger.tokens is None:
        raise InputError(f"{path}: the tokenize manifest behind it, or a shard of that, is gone: nothing to compare")
    problems = list(islice(prove(TokenIndex(sets), origins.batches(None), ledger.rows, ledger.tokens), 20))
    return "; ".join(problems) or None
