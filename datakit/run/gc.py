"""Which data folders no manifest names any more."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from datakit.errors import ManifestError
from datakit.manifest import ROLES, ancestors, data_dir, load, lock, run_file
from datakit.recipe import STAGES


def _manifests(root: Path, dataset: str | None) -> Iterator[Path]:
    """Current manifests and those in history."""
    for pattern in ("*.json", "history/*.json"):
        for path in sorted((root / "manifests").glob(f"{dataset or '*'}/{pattern}")):
            if not path.name.endswith(".run.json"):
                yield path


def unnamed(root: Path, dataset: str | None, ignore: set[Path]) -> list[Path]:
    """Data folders that no manifest names; manifests in `ignore` do not count.

    Raises:
        ManifestError: a manifest cannot be read: nothing may be removed then.
    """
    named = set()
    for path in _manifests(root, None):
        if path not in ignore:
            named.add(data_dir(path, load(path)).resolve())
    folders = sorted((root / "data").glob(f"{dataset or '*'}/*/*"))
    return [p for p in folders if _is_ours(p) and p.resolve() not in named]


def _is_ours(folder: Path) -> bool:
    """Whether a folder is a stage's data folder: users keep their own files below `data/` too."""
    if folder.is_symlink() or not folder.is_dir() or folder.parent.name not in STAGES:
        return False
    keyed = re.fullmatch("[0-9a-f]{16}", folder.name) is not None
    return keyed and {e.name for e in folder.iterdir()} <= {*ROLES, ".work", ".done"}


def remove(folder: Path) -> bool:
    """Remove a data folder, unless a run is writing there."""
    held = lock(folder)
    if held is None:
        return False
    shutil.rmtree(folder)
    os.close(held)
    return True


def forget_history(root: Path, dataset: str | None, *, dry_run: bool) -> set[Path]:
    """Remove the history manifests that no current manifest descends from; returns those removed."""
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
