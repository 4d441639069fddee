"""The index of a dedup run, and `--against`: comparing new rows with the kept rows of earlier runs.

A run with `save_index` writes, for each shard, one Arrow IPC file with the id of each kept row and what others are
compared by, in row order: the digest, bands and shingles of a document, the hashes of the lines that were not cut out
of it, ... A later run loads the indexes of an earlier run and of all runs which that one was compared with, checks that
the settings match, and compares its rows with theirs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import datakit.storage as storage
from datakit.config import resolved
from datakit.errors import ConfigError, InputError
from datakit.manifest import AGAINST, COMPARED_WITH, Shard, ancestors, data_dir, find_parent, load
from datakit.stage import Parent

if TYPE_CHECKING:
    from datakit.dedup.shuffle import IndexedStage

INDEX_VERSION = 3
"""Grows when indexes hold other words, shingles, bands, digests or columns; a test has what some texts come to."""

_MAY_DIFFER = {"max_cluster_rows", "max_loss", "save_duplicates", "save_index"}
"""Settings that decide about no row: those of alarms, and of what else is written."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """An earlier dedup run whose rows new rows are compared with: its index."""

    name: str
    """The dataset and the version, for people."""
    version: str
    folder: Path
    shards: tuple[Shard, ...]
    """The files of the index, relative to the folder."""
    kept: int
    """Rows that the run kept."""

    @property
    def rows(self) -> int:
        """Rows in the index; more than one for a text that `dedup_repeats` cut in two."""
        return sum(shard.rows for shard in self.shards)


def run_of(path: Path, stage: str) -> Parent:
    """The manifest of a stage that `path` is, or was made from.

    Raises:
        InputError: there is none.
    """
    found = next((run for run in _lineage(path) if run.manifest.stage == stage), None)
    if found is None:
        raise InputError(f"{path}: expected the manifest of a {stage} stage, or of one that came after it")
    return found


def _lineage(path: Path) -> list[Parent]:
    return [Parent(p, m) for p, m in ancestors(storage.pull_result(path))]


def earlier_runs(newest: Parent, stage: "IndexedStage", kind: str) -> tuple[EarlierRun, ...]:
    """The run of a manifest and those that it was itself run against, oldest first.

    The result equals one run over all rows, the old rows before the new ones. So the settings must match.

    Raises:
        InputError: a run was made without save_index, or the manifest of one is missing.
        ConfigError: a setting that decides about rows differs.
        IntegrityError: a manifest, or a list of removed rows, is damaged.
    """
    found = list(_chain(newest))
    ours = _settings(kind, resolved(stage.config), stage.resources())
    for run in found:
        _check_settings(run, ours)
    return tuple(_earlier_run(run) for run in reversed(found))


def _chain(run: Parent) -> Iterator[Parent]:
    yield run
    for entry in run.manifest.parents:
        if entry.get("use") == AGAINST:
            place = find_parent(run.path, entry)
            if place is None or load(place).version != entry["version"]:
                raise InputError(
                    f"{run.path}: was run against the dedup {entry['version']}, whose manifest is not where it was. "
                    "Without it, duplicates of its rows would stay. Put it back"
                )
            yield from _chain(Parent(place, load(place)))


def _settings(kind: str, config: dict[str, Any], resources: dict[str, Any]) -> dict[str, Any]:
    """What decides about rows; models and tokenizers by their hashes, not by the names of their files."""
    shaping = {name: value for name, value in resources.items() if name not in COMPARED_WITH}
    return {"kind": kind} | {name: value for name, value in config.items() if name not in _MAY_DIFFER} | shaping


def _check_settings(run: Parent, ours: dict[str, Any]) -> None:
    path, manifest = run.path, run.manifest
    if "index" not in manifest.facts:
        raise InputError(f"{path}: that {manifest.stage} saved no index; run it again with --save-index")
    theirs = _settings(manifest.kind, manifest.config, manifest.facts.get("resources", {}))
    derived = ("num_bands", "rows_per_band")  # from the threshold, where they are not given
    for name in sorted(ours.keys() | theirs.keys(), key=lambda name: (name in derived, name)):
        if ours.get(name) != theirs.get(name):
            raise ConfigError(
                f"against {path}: it was made with {name} {theirs.get(name)!r}, and this run has {ours.get(name)!r}. "
                "Rows can only be compared under the same settings: give this run that value, or run both again"
            )
    if (found := manifest.facts["index"].get("version")) != INDEX_VERSION:
        raise ConfigError(
            f"against {path}: its index (version {found}) was made by a version of datakit that cuts or hashes words "
            f"differently from this one (version {INDEX_VERSION}). Run that {manifest.stage} again"
        )


def _earlier_run(run: Parent) -> EarlierRun:
    folder = data_dir(run.path, run.manifest)
    made = run.manifest
    name = f"{made.dataset} {made.version}"
    return EarlierRun(name, made.version, folder, made.of_role("index"), made.ledger.rows.kept)
