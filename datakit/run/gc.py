"""Which data folders no manifest names any more."""

from collections.abc import Iterator
from pathlib import Path

from datakit.errors import ManifestError
from datakit.manifest import data_dir, load, run_file
from datakit.run.job import ancestors


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
    folders = sorted(p for p in (root / "data").glob(f"{dataset or '*'}/*/*") if p.is_dir())
    return [p for p in folders if p.resolve() not in named]


def forget_history(root: Path, dataset: str | None, *, dry_run: bool) -> set[Path]:
    """Remove the history manifests that no current manifest descends from; returns those removed."""
    live: set[str] = set()
    for path in _manifests(root, None):
        if path.parent.name != "history":
            live |= {m.version for _, m in ancestors(path)}
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
