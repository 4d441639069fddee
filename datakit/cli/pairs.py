"""The command that shows what dedup dropped, and for what."""

import json
from pathlib import Path

import click

from datakit.cli.stages import CONTEXT
from datakit.cli.tables import columns_option, terminal_columns


@click.command(context_settings=CONTEXT)
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--stage", default="", help="The level: dedup, dedup_urls, dedup_lines, dedup_spans or dedup_ngrams.")
@click.option("--lowest", type=click.IntRange(0), default=10, help="How many pairs to show [default: 10]")
@columns_option
@click.option("--json", "as_json", is_flag=True, help="Print the counts and the pairs as JSON, and nothing else.")
def pairs(manifest: Path, stage: str, lowest: int, columns: int | None, as_json: bool) -> None:
    """Show the rows that dedup dropped beside the rows that stay for them, the least similar first.

    MANIFEST is of a dedup stage of any level, or of one that came after it: then --stage says which level, else it is
    that of documents. Rows that went for a URL or for their lines are compared here; n-grams name no row. What only
    the dropped row has stands in [-...-], what only the row that stays has in {+...+}; white space does not count.
    """
    from datakit.report.pairs import drops, listing

    found = drops(manifest / "manifest.json" if manifest.is_dir() else manifest, lowest, stage)
    if as_json:
        near = {f"{similarity:.2f}": n for similarity, n in found.near.items()}
        counts = {"stage": found.stage, "exact": found.exact, "near": near, "unnamed": found.unnamed}
        plain = counts | {"others": found.others, "pairs": [pair.to_json() for pair in found.pairs]}
        click.echo(json.dumps(plain, ensure_ascii=False, indent=1))
    else:
        click.echo("\n".join(listing(found, terminal_columns(columns))))
