"""Commands that look and change nothing (verify, show, explain), and gc."""

import json
from pathlib import Path

import click

from datakit.cli.stages import CONTEXT
from datakit.cli.tables import columns_option, ledger_lines, terminal_columns
from datakit.errors import InputError, IntegrityError, UsageError
from datakit.manifest import data_dir, load
from datakit.manifest import verify as verify_manifest
from datakit.engine.recipe import check_name, only_dataset

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
@click.option("--dataset", help="Only this dataset.")
@click.option("--history", is_flag=True, help="Forget old versions too: keep what the newest manifests are made from.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def gc(dataset: str | None, history: bool, dry_run: bool) -> None:
    """Remove data folders that no manifest names; interrupted runs are among them."""
    from datakit.engine.lineage import forget_history, remove, unnamed

    if dataset:
        check_name(dataset)

    root = Path.cwd()
    gone = forget_history(root, dataset, dry_run=dry_run) if history else set[Path]()
    total = 0
    for folder in unnamed(root, dataset, ignore=gone):
        size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
        done = "would remove" if dry_run else "removed" if remove(folder) else "in use:"
        total += 0 if done == "in use:" else size
        click.echo(f"{done} {folder.relative_to(root)} ({size:,} bytes)")
    click.echo(f"{total:,} bytes {'could be' if dry_run else 'were'} freed")
