"""Commands that look and change nothing (verify, show, explain, pairs)."""

import json
from pathlib import Path

import click

from datakit.cli.stages import CONTEXT
from datakit.cli.tables import columns_option, ledger_lines, terminal_columns
from datakit.engine.recipe import only_dataset
from datakit.errors import InputError, IntegrityError, UsageError
from datakit.manifest import data_dir, load
from datakit.manifest import verify as verify_manifest

Manifest = click.argument("manifest", type=click.Path(path_type=Path))


@click.command(context_settings=CONTEXT)
@Manifest
@click.option("--roundtrip", is_flag=True, help="Of a packed set: also compare each token and label with what went in.")
@click.option("--json", "as_json", is_flag=True, help="Print a machine-readable summary, and nothing else.")
def verify(manifest: Path, roundtrip: bool, as_json: bool) -> None:
    """Recompute every checksum and count of MANIFEST and of all that it was made from, back to the raw inputs."""
    from datakit.engine.store import inspect

    checked = list(verify_manifest(_manifest(manifest), inspect))
    if roundtrip and not any(problem for _, problem in checked):
        from datakit.cli.packed import compare

        checked.append((f"{manifest}, token by token", compare(_manifest(manifest))))
    problems = [(name, problem) for name, problem in checked if problem]
    if as_json:
        click.echo(json.dumps({"checked": len(checked), "problems": problems}, ensure_ascii=False, indent=1))
    if problems:
        listed = "\n".join(f"  {name}: {problem}" for name, problem in problems)
        raise IntegrityError(
            f"{manifest}: {len(problems)} of {len(checked)} things checked are not as they were written:\n{listed}"
        )
    if not as_json:
        click.echo(
            f"{manifest}: all {len(checked)} files and manifests are as they were written, and the ledgers balance"
        )


def _manifest(path: Path) -> Path:
    return path / "manifest.json" if path.is_dir() else path


@click.command(context_settings=CONTEXT)
@Manifest
@click.option("--rows", type=click.IntRange(0), default=3, help="Rows of each role to show [default: 3]")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON, and nothing else.")
def show(manifest: Path, rows: int, as_json: bool) -> None:
    """Show a manifest: ledger, shards, facts, and some rows that were kept, dropped and quarantined."""
    from datakit.report.rows import sample

    path = _manifest(manifest)
    found = load(path)
    if as_json:
        click.echo(found.to_bytes().decode(), nl=False)
        return
    click.echo("\n".join(ledger_lines(found)))
    for parent in found.parents:
        click.echo(
            f"  {parent.get('use', 'from'):<9} {parent.get('raw') or parent['manifest']}  "
            f"{parent.get('version', parent['sha256'][:12])}"
        )
    folder = data_dir(path, found)
    for shard in found.shards:
        click.echo(f"  {shard.path:<32} {shard.rows:>12,} rows {shard.bytes:>16,} bytes")
    for line in sample(found, folder, rows):
        click.echo(line)


@click.command(context_settings=CONTEXT)
@click.argument("row_id")
@click.option("--dataset", help="The dataset's name.")
@click.option("--manifest", type=click.Path(path_type=Path), help="A manifest whose lineage to search, instead.")
@columns_option
def explain(row_id: str, dataset: str | None, manifest: Path | None, columns: int | None) -> None:
    """Tell what became of the row ROW_ID, stage by stage; of a duplicate, show the row that stayed beside it.

    What one of the two rows alone has stands in [-...-] and {+...+}; white space does not count.
    """
    from datakit.report.explain import story

    root = Path.cwd()
    if manifest is None:
        folder = root / "manifests" / (dataset or only_dataset(root))
        paths = sorted(p for p in folder.glob("*.json") if not p.name.endswith(".run.json"))
        if not paths:
            raise UsageError(f"{folder}: holds no manifests; has the dataset been run?")
    else:
        paths = [_manifest(manifest)]
    lines = story(row_id, paths, terminal_columns(columns))
    if not lines:
        raise InputError(f"no row has the id {row_id!r} in {', '.join(map(str, paths))}; `datakit show` lists some ids")
    click.echo("\n".join(lines))


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
