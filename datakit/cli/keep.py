"""Commands for what lies on the disk: the index for `--against`, unused data folders, models, compiled kernels."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

import datakit.storage as storage
from datakit.cli.flags import ANY_PATH, CONTEXT, in_project, project, say
from datakit.engine.recipe import check_name
from datakit.errors import UsageError


def ids_in(file: BinaryIO) -> list[str]:
    """The ids in a UTF-8 file, one on each line; a byte order mark is not part of the first one.

    Raises:
        UsageError: there is none, or the file is not UTF-8.
    """
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise UsageError(
            f"{file.name}: byte {e.start} is not UTF-8; convert the list, as with iconv -f LATIN1 -t UTF-8"
        ) from None
    found = [name for line in text.split("\n") if (name := line.rstrip("\r"))]
    if not found:
        raise UsageError(f"{file.name}: holds no ids; expected one on each line")
    return found


def some_of(ids: Sequence[str]) -> str:
    """The first three of some ids."""
    return ", ".join(map(repr, ids[:3])) + ", ..." * (len(ids) > 3)


@click.group(context_settings=CONTEXT)
def index() -> None:
    """The index that a dedup stage with `--save-index` writes for later runs with `--against`."""


@index.command(context_settings=CONTEXT)
@click.argument("manifest", type=ANY_PATH)
@click.argument("ids", type=click.File("rb"), required=False)
@click.option(
    "--dropped-by",
    type=ANY_PATH,
    help="Remove the rows that the stage of this later manifest dropped.",
)
def remove(manifest: Path, ids: BinaryIO | None, dropped_by: Path | None) -> None:
    """Remove rows from the indexes of a dataset that has lost them, so that new rows like them may stay.

    These are the indexes of the dedup stage MANIFEST and of the dedup stages before it.

    IDS is a file with an id on each line, - for standard input. The shards of the dataset do not change. Later runs
    against the dataset, or against one that was itself run against it, ignore the removed rows and say so.
    """
    from datakit.dedup.index import dropped_ids
    from datakit.dedup.index import remove as remove_rows

    manifest = storage.pull_result(manifest)
    wanted = ids_in(ids) if ids is not None else []
    if ids is None and dropped_by is None:
        raise UsageError(
            "which rows? Give a file with an id on each line, or --dropped-by the manifest of a later stage"
        )
    if dropped_by is not None:
        wanted += dropped_ids(manifest, dropped_by)
    removed, unknown = remove_rows(manifest, wanted)
    click.echo(
        f"{removed:,} rows removed from the index; {len(set(wanted)) - len(unknown) - removed:,} were removed before"
    )
    if unknown:
        click.echo(
            f"{len(unknown):,} ids are not in it ({some_of(unknown)}): "
            "they are unknown, were dropped by that run, or belong to a dataset that it was run against"
        )


@in_project
@click.command("remove", context_settings=CONTEXT)
@click.argument("ids", type=click.File("rb"))
@click.option("--dataset", required=True, help="The dataset's name.")
@click.option("--why", required=True, help="The reason; it is kept beside the list and shapes no result.")
def remove_rows(ids: BinaryIO, dataset: str, why: str) -> None:
    """Remove rows from a dataset for good: from the next run on, ingest drops them as `removed`, without their text.

    IDS is a file with an id on each line, - for standard input. The list in manifests/DATASET/removed.jsonl holds
    salted hashes of the ids and of the contents; the content decides, so that equal rows under other ids go too. Near
    duplicates stay. Your raw files do not change.
    """
    from datakit.read.removal import remove

    found = remove(project(), check_name(dataset), ids_in(ids), why)
    click.echo(
        f"{found.added:,} ids are new on the list, {found.before:,} were on it; {found.rows:,} rows have their content"
    )
    if found.unknown:
        click.echo(f"{len(found.unknown):,} ids are in no row: {some_of(found.unknown)}")
    click.echo(
        f"next: `datakit run --dataset {dataset}` drops the rows in every stage, `datakit gc --purge` removes the "
        "versions that still hold them, and `datakit verify --absent IDS` proves that data/ holds none; exports and "
        "--output folders that were made before are yours to remove"
    )


@in_project
@click.command(context_settings=CONTEXT)
@click.option("--dataset", help="Only this dataset.")
@click.option("--history", is_flag=True, help="Remove old versions too; keep what the newest manifests are made from.")
@click.option(
    "--purge", is_flag=True, help="Remove the shards of old versions; their manifests stay, and are marked as purged."
)
@click.option(
    "--before",
    default="",
    metavar="STAGE",
    help="With --purge and --dataset: remove the shards of all stages before this one too (raw private values).",
)
@click.option(
    "--output",
    type=ANY_PATH,
    help="With --purge: remove the shards in parents/ of a folder that --output made, and nothing else.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def gc(dataset: str | None, history: bool, purge: bool, before: str, output: Path | None, dry_run: bool) -> None:
    """Remove data folders that no manifest names, also those of interrupted runs.

    After a stage has replaced private values, the stages before it still hold them: `--purge --before filter` takes
    their shards, quarantine and sketches from the disk. Later stages keep theirs, and `verify` passes. The next run
    reads the raw files again and makes the shards again.
    """
    if dataset:
        check_name(dataset)
    if history and purge:
        raise UsageError("--history removes the manifests of old versions, --purge keeps them: give one of the two")
    if before and not (purge and (dataset or output)):
        raise UsageError("--before goes with --purge and --dataset (or --output): it removes newest results")
    if output is not None and (not purge or dataset or history):
        raise UsageError("--output goes with --purge alone (and --before)")
    if output is not None:
        total = _purge_output(output, before, dry_run)
    else:
        total = _collect(project(), dataset, history=history, purge=purge, before=before, dry_run=dry_run)
    click.echo(f"{total:,} bytes {'could be' if dry_run else 'were'} freed")


def _purge_output(output: Path, before: str, dry_run: bool) -> int:
    """Purge the folders in parents/ of an `--output` folder; returns the bytes that are free now."""
    from datakit.engine.maintenance import purge_parents

    gone = list(purge_parents(output, before, dry_run=dry_run))
    say(f"{'would purge' if dry_run else 'purged'} {folder} ({size:,} bytes)" for folder, size in gone)
    return sum(size for _, size in gone)


def _collect(root: Path, dataset: str | None, *, history: bool, purge: bool, before: str, dry_run: bool) -> int:
    """Remove what a project does not need; returns the bytes that are free now."""
    from datakit.engine.maintenance import forget_history, remove_folder, unused_folders

    gone = forget_history(root, dataset, dry_run=dry_run) if history else set[Path]()
    total = _purge(root, dataset, before, dry_run) if purge else 0
    for folder in unused_folders(root, dataset, ignore=gone):
        size = sum(storage.sizes(folder).values())
        done = "would remove" if dry_run else "removed" if remove_folder(folder) else "in use:"
        total += 0 if done == "in use:" else size
        click.echo(f"{done} {folder.relative_to(root)} ({size:,} bytes)")
    return total


def _purge(root: Path, dataset: str | None, before: str, dry_run: bool) -> int:
    """Remove the shards of old versions, and of stages before one; returns the bytes that are free now."""
    from datakit.engine.maintenance import earlier_results, old_versions, purge

    total = 0
    earlier = earlier_results(root, dataset, before) if dataset and before else []
    for old in (*earlier, *old_versions(root, dataset)):
        name = f"{old.manifest.dataset} / {old.manifest.stage} {old.manifest.version}"
        if old.needed_by is not None:
            click.echo(f"kept {name}: {old.needed_by.relative_to(root)} was made with it; run that dataset again first")
        elif not storage.exists(old.folder):
            continue  # it went with another version of the same key
        elif dry_run or purge(old):
            click.echo(f"{'would purge' if dry_run else 'purged'} {name} ({old.bytes:,} bytes)")
            total += old.bytes
        else:
            click.echo(f"in use: {name}")
    return total


@click.group(context_settings=CONTEXT)
def models() -> None:
    """Models that stages use."""


@models.command()
@click.argument("name")
def fetch(name: str) -> None:
    """Fetch a model (lid.176) into the user's cache; its checksum is pinned."""
    from datakit.filter.fasttext_model import fetch as fetch_model

    click.echo(f"{name}: {fetch_model(name)}")


@click.command("compile", context_settings=CONTEXT)
def compile_() -> None:
    """Compile the kernels of all stages into the cache (about a minute, once), so that no later run waits for it."""
    from datakit.engine.maintenance import compile_kernels

    logging.getLogger("datakit.kernels").setLevel(logging.WARNING)  # the lines below say that kernels are compiled
    start = time.monotonic()
    compile_kernels(click.echo)
    click.echo(f"all kernels are compiled ({time.monotonic() - start:.0f} s)")
