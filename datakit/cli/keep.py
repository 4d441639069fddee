"""Commands for what lies on the disk: rows to remove, unused data folders, models, compiled kernels."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import click

import datakit.storage as storage
from datakit.cli.flags import command, project
from datakit.engine.recipe import check_name
from datakit.errors import UsageError

_PARENTS = "With --purge: remove the shards in parents/ of a folder that --output made, and nothing else."
_BEFORE = "remove the shards of all stages before this stage too (raw private values)."


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


@command(project=True)
def remove(
    ids: BinaryIO,
    *,
    dataset: Annotated[str, "The dataset's name."],
    why: Annotated[str, "The reason; it is kept beside the list and shapes no result."],
) -> Iterator[str]:
    """Remove rows from a dataset for good: from the next run on, ingest drops them as `removed`, without their text.

    IDS is a file with an id on each line, - for standard input. The list in manifests/DATASET/removed.jsonl holds
    salted hashes of the ids and of the contents; the content decides, so that equal rows under other ids go too. Near
    duplicates stay. Your raw files do not change.
    """
    from datakit.read.removal import remove as remove_rows
    from datakit.report.finder import some_of

    found = remove_rows(project(), check_name(dataset), ids_in(ids), why)
    counts = f"{found.before:,} were on it; {found.rows:,} rows have their content"
    yield f"{found.added:,} ids are new on the list, {counts}"
    if found.unknown:
        yield f"{len(found.unknown):,} ids are in no row: {some_of(map(repr, found.unknown), 3)}"
    yield (
        f"next: `datakit run --dataset {dataset}` drops the rows in every stage, `datakit gc --purge` removes the "
        "versions that still hold them; exports and --output folders that were made before are yours to remove"
    )


# Garbage.


@command(project=True)
def gc(
    *,
    output: Annotated[Path | None, _PARENTS] = None,
    dataset: Annotated[str | None, "Only this dataset."] = None,
    purge: Annotated[bool, "Remove the shards of old versions; their manifests stay, marked as purged."] = False,
    before: Annotated[str, f"With --purge and --dataset: {_BEFORE}"] = "",
    dry_run: Annotated[bool, "Only say what would be removed."] = False,
) -> Iterator[str]:
    """Remove data folders that no manifest names, also those of interrupted runs.

    After a stage has replaced private values, the stages before it still hold them: `--purge --before filter` takes
    their shards, quarantine and sketches from the disk. Later stages keep theirs, and `verify` passes. The next run
    reads the raw files again and makes the shards again.
    """
    if dataset:
        check_name(dataset)
    if before and not (purge and dataset):
        raise UsageError("--before goes with --purge and --dataset: it removes newest results")
    if output is not None and (not purge or dataset):
        raise UsageError("--output goes with --purge alone")
    total = 0
    for line, size in _garbage(output, dataset, before, dry_run, purge=purge):
        yield line
        total += size
    yield f"{total:,} bytes {'could be' if dry_run else 'were'} freed"


def _garbage(
    output: Path | None, dataset: str | None, before: str, dry_run: bool, *, purge: bool
) -> Iterator[tuple[str, int]]:
    """(a line on what was done, the bytes that are free now) for each folder, and for each version that is purged."""
    import datakit.engine.maintenance as maintenance

    removed, purged = ("would remove", "would purge") if dry_run else ("removed", "purged")
    root = project()
    versions = maintenance.old_versions(root, dataset, before) if purge and not output else ()
    for old in maintenance.in_parents(output) if output else versions:
        name = f"{old.manifest.dataset} / {old.manifest.stage} {old.manifest.version}"
        if old.needed_by is not None:
            yield f"kept {name}: {old.needed_by.relative_to(root)} was made with it; run that dataset again first", 0
        elif storage.exists(old.folder):  # else it went with another version of the same key
            size = old.bytes
            free = dry_run or maintenance.purge(old)
            yield (f"{purged} {name} ({size:,} bytes)", size) if free else (f"in use: {name}", 0)
    for folder in () if output else maintenance.unused_folders(root, dataset):
        name, size = str(folder.relative_to(root)), sum(storage.sizes(folder).values())
        free = dry_run or maintenance.remove_data(folder)
        yield (f"{removed} {name} ({size:,} bytes)", size) if free else (f"in use: {name} ({size:,} bytes)", 0)


# Models and kernels.


@command()
def fetch(name: str) -> list[str]:
    """Fetch a model (lid.176) into the user's cache; its checksum is pinned."""
    from datakit.filter.language import fetch as fetch_model

    return [f"{name}: {fetch_model(name)}"]


@command("compile")
def compile_() -> list[str]:
    """Compile the kernels of all stages into the cache (about a minute, once), so that no later run waits for it."""
    from datakit.engine.maintenance import compile_kernels

    logging.getLogger("datakit.kernels").setLevel(logging.WARNING)  # the lines below say that kernels are compiled
    start = time.monotonic()
    compile_kernels(click.echo)
    return [f"all kernels are compiled ({time.monotonic() - start:.0f} s)"]
