"""Where a result comes from: the key that decides what is up to date, raw inputs' hashes, the package's own sources."""

import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from datakit.config import digest, sha256_file
from datakit.errors import ManifestError
from datakit.manifest import Manifest, data_dir, load, write_whole


@lru_cache(maxsize=1)
def code_hash() -> str:
    """SHA-256 over the names and bytes of this package's Python sources."""
    root, total = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        total.update(f"{path.relative_to(root).as_posix()}\0{sha256_file(path)}\n".encode())
    return total.hexdigest()


def key_of(stage: str, kind: str, parents: tuple[dict[str, Any], ...], config: Any, resources: dict[str, Any]) -> str:
    """What decides "up to date": two runs with one key give the same bytes."""
    return digest([stage, kind, parents, config, resources, code_hash()])


def parent_entry(path: Path, manifest: Manifest, use: str = "") -> dict[str, Any]:
    """A manifest as its child's manifest names it."""
    entry = {"manifest": manifest.stage, "version": manifest.version, "sha256": sha256_file(path)}
    return entry | ({"use": use} if use else {})


def current(path: Path, key: str) -> Manifest | None:
    """The manifest at `path` if it is of this key and its shards lie there in their sizes; else None."""
    if not path.is_file():
        return None
    try:
        manifest = load(path)
    except ManifestError:
        return None
    folder = data_dir(path, manifest)
    whole = all((folder / s.path).is_file() and (folder / s.path).stat().st_size == s.bytes for s in manifest.shards)
    return manifest if manifest.key == key and whole else None


class RawHashes:
    """SHA-256 of raw files, remembered by path, size, times of change and inode in the user's cache.

    A remembered hash only decides what is up to date; `verify` never asks here.
    """

    def __init__(self) -> None:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self._path = Path(base) / "datakit" / "raw-hashes.json"
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, Any] = known if isinstance(known, dict) else {}
        self._changed = False

    def of(self, path: Path) -> str:
        """The hash of a local file's bytes."""
        mark = self.mark(path)
        entry = self._known.get(str(path.resolve()))
        if entry is None or entry[0] != mark:
            entry = self._known[str(path.resolve())] = [mark, sha256_file(path)]
            self._changed = True
        found: str = entry[1]
        return found

    @staticmethod
    def mark(path: Path) -> list[int]:
        """What changes when a file does; the time of its last status change cannot be set back."""
        stat = path.stat()
        return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]

    def save(self) -> None:
        """Remember for the next run; a cache that cannot be written is no error."""
        if self._changed:
            try:
                write_whole(self._path, json.dumps(self._known).encode())
            except OSError:
                return
