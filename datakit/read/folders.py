"""Which files below a folder are data: walked by name order, links followed once, and told of whatever is left out."""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from datakit.errors import InputError
from datakit.manifest import FORMAT, ROLES

_RUN: Final = re.compile(r"/data/[^/]+/[^/]+/[0-9a-f]{16}$")
"""Where a run's data lies: root, dataset, stage, key."""

UNKNOWN: Final = "no suffix that is known, or about the data"
HIDDEN: Final = "name begins with . or _"
OURS: Final = "written by datakit"
TWICE: Final = "link to a folder that is read already"


@dataclass(frozen=True, slots=True, order=True)
class Skipped:
    """A file or a folder that lies beside what is read."""

    path: str
    why: str
    """`UNKNOWN`, `HIDDEN`, `OURS` or `TWICE`."""


class Walk:
    """One look through the folders that one input names: each folder and each file is given once."""

    def __init__(self, is_data: Callable[[str], bool], skipped: list[Skipped]) -> None:
        self.is_data = is_data
        self.skipped = skipped
        self._folders: set[str] = set()
        self._files: set[str] = set()
        self._ours: dict[str, bool] = {}

    def below(self, roots: Sequence[str]) -> Iterator[tuple[str, int]]:
        """The data files in these folders and in those below them, as (path, bytes).

        A folder is read under its own path rather than under a link's: links come last, and only where they lead to a
        folder that is not read yet. So links in a circle end.

        Raises:
            InputError: a folder cannot be listed, a link that should be data leads nowhere.
        """
        links = [r for r in roots if os.path.islink(r)]
        folders = sorted(set(roots) - set(links), reverse=True)
        while folders or links:
            at = (folders or links).pop()
            real = os.path.realpath(at)
            if real in self._folders:
                if os.path.islink(at):
                    self.skipped.append(Skipped(at, TWICE))
                continue
            if self.is_ours(at):
                self.skipped.append(Skipped(at, OURS))
                continue
            self._folders.add(real)
            yield from self._files_in(at, folders, links)
            folders.sort(reverse=True)
            links.sort(reverse=True)

    def matched(self, paths: Sequence[str], base: str) -> Iterator[tuple[str, int]]:
        """What a pattern matches below the folder `base`: files, whatever they are called, and all `below` a folder."""
        theirs = [p for p in sorted(paths) if not self._in_ours(p, base)]
        yield from self.below([p for p in theirs if os.path.isdir(p)])
        for path in sorted(theirs, key=lambda p: (os.path.realpath(p) != p, p)):
            if not os.path.isdir(path):
                yield from self._once(path)

    def _in_ours(self, path: str, base: str) -> bool:
        above = os.path.dirname(path)
        while len(above) > len(base):
            if self.is_ours(above):
                self.skipped.append(Skipped(above, OURS))
                return True
            above = os.path.dirname(above)
        return False

    def _once(self, path: str) -> Iterator[tuple[str, int]]:
        """A file, if it was not given before under another path of its folder."""
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if real not in self._files:
            self._files.add(real)
            yield path, _size(path)

    def is_ours(self, folder: str) -> bool:
        """Whether this program wrote the folder: a dataset with its manifest, a run's data, or manifests of a root."""
        if folder not in self._ours:
            self._ours[folder] = _is_ours(folder)
        return self._ours[folder]

    def _files_in(self, folder: str, folders: list[str], links: list[str]) -> Iterator[tuple[str, int]]:
        """The data files of one folder; the folders in it are added to the lists."""
        for entry in _entries(folder):
            hidden = entry.name.startswith((".", "_"))
            if entry.is_dir():
                if hidden:
                    self.skipped.append(Skipped(entry.path, HIDDEN))
                else:
                    (links if entry.is_symlink() else folders).append(entry.path)
            elif self.is_data(entry.name):
                yield from self._once(entry.path)
            elif not hidden:
                self.skipped.append(Skipped(entry.path, UNKNOWN))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda e: e.name)
    except OSError as e:
        raise InputError(f"{folder}: cannot be listed: {e.strerror or e}") from e


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror or e}") from e


def _is_ours(folder: str) -> bool:
    if _is_manifest(os.path.join(folder, "manifest.json")) or os.path.isdir(os.path.join(folder, ".work")):
        return True
    if _RUN.search(folder.replace(os.sep, "/")):
        return any(os.path.isdir(os.path.join(folder, role)) for role in ROLES)
    if os.path.basename(os.path.dirname(folder)) != "manifests":
        return False
    return any(_is_manifest(e.path) for e in _entries(folder) if e.name.endswith(".json"))


def _is_manifest(path: str) -> bool:
    try:
        with open(path, "rb") as opened:
            body = json.load(opened)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("format") == FORMAT
