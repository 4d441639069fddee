"""Where a result comes from: the key that decides "up to date", hashes of raw files, earlier results, clean-up."""

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from os.path import realpath, relpath
from pathlib import Path
from typing import Any

import platformdirs
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import digest, file_mark, sha256_file
from datakit.data import read_shard
from datakit.engine.identity import code_hash
from datakit.engine.registry import STAGES
from datakit.errors import ManifestError
from datakit.manifest import (
    AGAINST,
    ROLES,
    Manifest,
    Shard,
    ancestors,
    data_dir,
    load,
    lock,
    run_file,
    tables,
    write_whole,
)
from datakit.stage import Stage

# Keys, and what is up to date.


def key_of(stage: Stage, kind: str, parents: tuple[dict[str, Any], ...], config: Any, resources: dict[str, Any]) -> str:
    """What decides "up to date": two runs with one key give the same bytes."""
    return digest([stage.name, kind, parents, config, resources, code_hash(stage)])


def parent_entry(path: Path, manifest: Manifest, use: str = "") -> dict[str, Any]:
    """A manifest as its child's manifest names it."""
    entry = {"manifest": manifest.stage, "version": manifest.version, "sha256": sha256_file(path)}
    return entry | ({"use": use} if use else {})


def relative_path(folder: Path, file: Path | str) -> str:
    """The relative path from a folder to a file, after symbolic links are resolved."""
    return relpath(realpath(file), realpath(folder))


def current(path: Path, key: str) -> Manifest | None:
    """The manifest at `path` if it has this key and its shards are there in their sizes; else None."""
    if not path.is_file():
        return None
    try:
        manifest = load(path)
    except ManifestError:
        return None
    folder = data_dir(path, manifest)
    intact = all((folder / s.path).is_file() and (folder / s.path).stat().st_size == s.bytes for s in manifest.shards)
    return manifest if manifest.key == key and intact else None


class FileHashes:
    """SHA-256 of raw files, remembered in the user's cache by path, size, times of change and inode.

    A remembered hash only decides what is up to date; `verify` never uses it.
    """

    def __init__(self) -> None:
        self._path = platformdirs.user_cache_path("datakit") / "raw-hashes.json"
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, Any] = known if isinstance(known, dict) else {}
        self._changed = False

    def of(self, path: Path) -> str:
        """The hash of a local file's bytes."""
        mark = file_mark(path)
        entry = self._known.get(str(path.resolve()))
        if entry is None or entry[0] != mark:
            entry = self._known[str(path.resolve())] = [mark, sha256_file(path)]
            self._changed = True
        found: str = entry[1]
        return found

    def save(self) -> None:
        """Remember for the next run; a cache that cannot be written is no error."""
        if self._changed:
            try:
                write_whole(self._path, json.dumps(self._known).encode())
            except OSError:
                return


def earlier_tables(manifest: Path, data: Path, parent: str, wants: dict[str, Any]) -> tuple[Manifest, Path] | None:
    """An earlier result of a stage whose saved table serves again: (its manifest, its data folder), or None.

    `manifest` is where the stage's manifest goes and `data` where its shards go now, `parent` the version of the rows.
    It must have saved all that `wants` names, made by the same code.
    """
    history = sorted(manifest.parent.glob(f"history/{manifest.stem}-*.json"), key=lambda p: -p.stat().st_mtime_ns)
    for path in [manifest, *history]:
        try:
            found = load(path)
            folder = data_dir(path, found)
        except (ManifestError, OSError):
            continue
        saved, exists = found.facts.get("saved"), folder.is_dir() and not folder.samefile(data)
        if exists and saved and found.parents[0].get("version") == parent:
            files = [(folder / s.path, s.bytes) for s in found.shards if s.role == saved["role"]]
            if _covers(saved, wants) and all(f.is_file() and f.stat().st_size == size for f, size in files):
                return found, folder
    return None


def _covers(saved: Any, wants: Any) -> bool:
    """Whether everything in `wants`, at any depth, is in `saved` too."""
    if isinstance(wants, dict):
        return isinstance(saved, dict) and all(k in saved and _covers(saved[k], v) for k, v in wants.items())
    return bool(saved == wants)


# Survivors that were dropped later.


def duplicate_of_dropped(parents: Sequence[Path], data: Path, made: Sequence[Shard]) -> dict[str, int]:
    """Count what dedup removed earlier because of rows that are dropped now.

    `duplicate_of_dropped` counts rows, `cut_for_dropped` pieces that were cut out of texts.
    """
    dropped = [data / s.path for s in made if s.role == "dropped" and s.path.endswith(".parquet")]
    ids = [b.column("id") for file in dropped for b in read_shard(file, ["id"])]
    if not ids:
        return {}
    gone, counts = pa.chunked_array(ids), {"duplicate_of_dropped": 0, "cut_for_dropped": 0}
    for path, manifest in {m.version: (p, m) for parent in parents for p, m in ancestors(parent)}.values():
        for shard in tables(manifest, "dropped") if manifest.stage.startswith("dedup") else ():
            for batch in read_shard(data_dir(path, manifest) / shard.path, _survivor_columns(manifest)):
                counts["duplicate_of_dropped"] += pc.sum(pc.is_in(_survivors_here(batch), gone)).as_py() or 0
        for shard in tables(manifest, "cuts"):
            for batch in read_shard(data_dir(path, manifest) / shard.path, ["duplicate_of"]):
                counts["cut_for_dropped"] += pc.sum(pc.is_in(batch.column(0), gone)).as_py() or 0
    return {name: count for name, count in counts.items() if count}


def _survivor_columns(manifest: Manifest) -> list[str]:
    """The columns that name the survivor of a dropped row, and the dataset of the survivor where there are several."""
    elsewhere = any(p.get("use") == AGAINST for p in manifest.parents)
    return ["duplicate_of", "duplicate_in"] if elsewhere else ["duplicate_of"]


def _survivors_here(batch: pa.RecordBatch) -> pa.Array:
    """The survivors of dropped rows; null for survivors in another dataset, which has ids of its own."""
    if "duplicate_in" not in batch.schema.names:
        return batch.column("duplicate_of")
    return pc.if_else(pc.is_null(batch.column("duplicate_in")), batch.column("duplicate_of"), None)


# Garbage collection: data folders that no manifest names any more.


def unused_folders(root: Path, dataset: str | None, ignore: set[Path]) -> list[Path]:
    """Data folders that no manifest names; manifests in `ignore` do not count.

    Raises:
        ManifestError: a manifest cannot be read; nothing may be removed then.
    """
    named = {data_dir(p, load(p)).resolve() for p in _manifests(root, None) if p not in ignore}
    folders = sorted((root / "data").glob(f"{dataset or '*'}/*/*"))
    return [p for p in folders if _is_data_folder(p) and p.resolve() not in named]


def remove_folder(folder: Path) -> bool:
    """Remove a data folder, unless a run is writing to it."""
    held = lock(folder)
    if held is None:
        return False
    shutil.rmtree(folder)
    os.close(held)
    return True


def forget_history(root: Path, dataset: str | None, *, dry_run: bool) -> set[Path]:
    """Remove the history manifests from which no current manifest descends; returns those removed."""
    live: set[str] = set()
    for path in _manifests(root, None):
        if path.parent.name != "history":
            live |= {m.version for _, m in ancestors(path, against=True)}
    gone = set()
    for path in _manifests(root, dataset):
        try:
            old = path.parent.name == "history" and load(path).version not in live
        except ManifestError:
            continue
        if old:
            gone.add(path)
            if not dry_run:
                path.unlink()
                run_file(path).unlink(missing_ok=True)
    return gone


def _manifests(root: Path, dataset: str | None) -> Iterator[Path]:
    """Current manifests and those in history."""
    for pattern in ("*.json", "history/*.json"):
        for path in sorted((root / "manifests").glob(f"{dataset or '*'}/{pattern}")):
            if not path.name.endswith(".run.json"):
                yield path


def _is_data_folder(folder: Path) -> bool:
    """Whether a folder holds a stage's data; users keep files of their own below `data/` too."""
    if folder.is_symlink() or not folder.is_dir() or folder.parent.name not in STAGES:
        return False
    keyed = re.fullmatch("[0-9a-f]{16}", folder.name) is not None
    return keyed and {e.name for e in folder.iterdir()} <= {*ROLES, ".work", ".done"}
