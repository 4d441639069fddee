"""Commands that look into packed sets: peek, lint, unpack."""

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from datakit.cli.look import json_flag, manifest_argument
from datakit.cli.stages import CONTEXT, HERE
from datakit.errors import IntegrityError, UsageError
from datakit.manifest import ancestors

if TYPE_CHECKING:
    from datakit.pack.inspect import PackedSet


@click.command(context_settings=CONTEXT)
@manifest_argument
@click.option("--row", type=click.IntRange(0), help="The packed row to show [default: 0]")
@click.option("--id", "row_id", help="Show every packed row that holds tokens of the row with this id.")
@click.option("--set", "name", help="Which set, as `validation` or `train-256` [default: the first, or all with --id]")
@click.option("--html", type=HERE, help="Write an HTML page instead.")
def peek(manifest: Path, row: int | None, row_id: str | None, name: str | None, html: Path | None) -> None:
    """Show a packed row as text: targets in green, each sequence with its source row, the padding."""
    from datakit.pack.inspect import open_all
    from datakit.pack.inspect import peek as open_row
    from datakit.report.peek import Origins, lines, page

    if row is not None and row_id is not None:
        raise UsageError("peek shows --row or --id, not both")
    sets, tokenizer = open_all(manifest)
    origins, sets = Origins.of(manifest), _chosen(sets, name)
    wanted = [(sets[0], row or 0)] if row_id is None else origins.packed_rows(sets, row_id)
    for rows, number in wanted:
        if number >= len(rows):
            raise UsageError(
                f"{manifest}: {rows.name} has {len(rows):,} rows, counted from 0; there is no row {number}"
            )
    looks = [(rows, open_row(rows, tokenizer, number)) for rows, number in wanted]
    names = origins.names({s.row_key for _, look in looks for s in look.sequences})
    if html is None:
        for rows, look in looks:
            click.echo("\n".join(lines(look, rows.name, names, len(rows))))
    else:
        html.write_text(page(str(manifest), [(rows.name, len(rows), look) for rows, look in looks], names), "utf-8")
        click.echo(f"wrote {html}")


def _chosen(sets: "list[PackedSet]", name: str | None) -> "list[PackedSet]":
    found = [s for s in sets if name in (None, s.name)]
    if not found:
        raise UsageError(f"no set is called {name!r}; there are {', '.join(s.name for s in sets)}")
    return found


@click.command(context_settings=CONTEXT)
@manifest_argument
@json_flag("the counts")
def lint(manifest: Path, as_json: bool) -> None:
    """Count by source what is wrong, or may be wrong, with a packed set's labels; fail if something is wrong."""
    from datakit.pack.inspect import WRONG, lint_rows, open_all
    from datakit.report.peek import Origins, lint_table

    sets, tokenizer = open_all(manifest)
    findings = lint_rows(sets, tokenizer)
    names = Origins.of(manifest).sources()
    by_source = {names.get(file, f"file {file}"): counts for file, counts in sorted(findings.items())}
    if as_json:
        click.echo(json.dumps({s: c.to_json() for s, c in by_source.items()}, ensure_ascii=False, indent=1))
    else:
        click.echo("\n".join(lint_table(by_source)))
        for _, earlier in ancestors(manifest):
            for name, count in earlier.ledger.notes.items() if earlier.stage == "tokenize" else ():
                click.echo(f"{earlier.stage}: {count:,} rows {name}")
    wrong = [f"{s}: {n:,} {w}" for s, c in by_source.items() for w in WRONG if (n := getattr(c, w))]
    if wrong:
        raise IntegrityError(f"{manifest}: labels or tokens are wrong: {'; '.join(wrong)}")


@click.command(context_settings=CONTEXT)
@manifest_argument
@click.option("--set", "name", help="Which set, as `validation` or `train-256` [default: all]")
@click.option("--output", type=HERE, help="A JSONL file [default: the terminal]")
@click.option("--limit", type=click.IntRange(0), help="Only the first rows, so many.")
def unpack(manifest: Path, name: str | None, output: Path | None, limit: int | None) -> None:
    """Turn a packed set back into text: one JSON line a row, with the parts that the model learns to write."""
    from datakit.pack.inspect import open_all
    from datakit.report.peek import unpacked

    sets, tokenizer = open_all(manifest)
    rows = islice(unpacked(manifest, _chosen(sets, name), tokenizer), limit)
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
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
