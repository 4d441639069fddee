"""The command that changes what later runs are compared with."""

from pathlib import Path
from typing import IO

import click

from datakit.cli.stages import CONTEXT
from datakit.errors import UsageError


@click.group(context_settings=CONTEXT)
def index() -> None:
    """The index that `datakit dedup --save-index` leaves for `datakit dedup --against`."""


@index.command(context_settings=CONTEXT)
@click.argument("manifest", type=click.Path(path_type=Path))
@click.argument("ids", type=click.File(encoding="utf-8"), required=False)
@click.option("--dropped-by", type=click.Path(path_type=Path), help="The rows that a later stage's manifest dropped.")
def remove(manifest: Path, ids: IO[str] | None, dropped_by: Path | None) -> None:
    """Take rows out of an index, because the dataset of MANIFEST has lost them: new rows like them may stay.

    IDS is a file with an id on each line, - for standard input. The shards of the dataset do not change; runs that
    come after, also those against a dataset that was itself run against this one, leave the rows out and say so.
    """
    from datakit.dedup.index import dropped_ids
    from datakit.dedup.index import remove as remove_rows

    wanted = [line.rstrip("\r\n") for line in ids or ()]
    wanted = [name for name in wanted if name]
    if ids is None and dropped_by is None:
        raise UsageError(
            "which rows? Give a file with an id on each line, or --dropped-by the manifest of a later stage"
        )
    if ids is not None and not wanted:
        raise UsageError(f"{ids.name}: holds no ids; expected one on each line")
    if dropped_by is not None:
        wanted += dropped_ids(manifest, dropped_by)
    removed, unknown = remove_rows(manifest, wanted)
    click.echo(f"{removed:,} rows removed from the index; {len(set(wanted)) - len(unknown) - removed:,} were before")
    if unknown:
        click.echo(
            f"{len(unknown):,} ids are not in it ({', '.join(map(repr, unknown[:3]))}{', ...' * (len(unknown) > 3)}): "
            "unknown, dropped by that run, or of a dataset that it was run against"
        )
