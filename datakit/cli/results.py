"""Commands that make something of results for others."""

import json
from pathlib import Path
from typing import Any

import click

from datakit.cli.look import json_flag, manifest_argument, stale_line
from datakit.cli.stages import CONTEXT, HERE


@click.command(context_settings=CONTEXT)
@manifest_argument
@click.option("--output", required=True, type=HERE, help="The folder: new, or empty.")
@click.option(
    "--format", default="parquet", type=click.Choice(["parquet", "jsonl", "jsonl.gz", "jsonl.zst"]), show_default=True,
    help="Format of the files; `datasets.load_dataset` reads the folder with any of them.",
)  # fmt: skip
@click.option("--add", multiple=True, metavar="COLUMN", help="A column that datakit made, as lang (also a,b), or all.")
@click.option("--license", default="", help="The license, as the Hub names it: apache-2.0, cc-by-4.0, ...")
@click.option("--title", default="", help="The card's title [default: the dataset's name]")
@click.option(
    "--file-mb", default=500, type=click.IntRange(1), show_default=True, help="Megabytes of values in a file."
)
@json_flag("what was written")
def export(manifest: Path, output: Path, add: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Write the kept rows of MANIFEST into a folder for others: data, a dataset card (README.md) and SHA256SUMS.

    Rows have your own columns again, without those that datakit made. A packed set becomes rows of input_ids, labels
    and position_ids, with each of its sets as a split. The folder appears when it is complete.
    """
    from datakit.report.export import ExportConfig
    from datakit.report.export import export as export_rows

    columns = tuple(name.strip() for given in add for name in given.split(",") if name.strip())
    click.echo("".join(stale_line(manifest)), nl=False, err=as_json)
    made = export_rows(manifest, output, ExportConfig(add=columns, **values))
    if as_json:
        splits = {s.name: {"rows": s.rows, "files": s.files} for s in made.splits}
        click.echo(json.dumps({"folder": str(output), "splits": splits, "columns": made.columns}, indent=1))
        return
    for split in made.splits:
        click.echo(f"{split.name}: {split.rows:,} rows in {len(split.files)} files")
    click.echo(f"columns: {', '.join(made.columns)}")
    if not values["license"]:
        click.echo("the card states no license: --license NAME names it")
    click.echo(f'wrote {output}: datasets.load_dataset("{output}") reads it')
