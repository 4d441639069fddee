"""Where a result comes from: a stage's code, the key that decides "up to date", hashes of raw files, old results.

A stage's identity is the hash of the code that it runs: the modules of this package that it imports, directly or not,
also inside functions; the modules that its configuration chooses; and the modules that cut, read or write rows.
Comments, docstrings and `if TYPE_CHECKING:` blocks do not count, neither do the command line, reports and other stages.
The hash is taken from syntax trees and is the same on every Python version. Standard library only, but for the place
of the user's cache.
"""

import ast
import contextlib
import hashlib
import json
import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from os.path import realpath, relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import datakit.storage as storage
from datakit.config import digest, file_mark, sha256_file
from datakit.engine.recipe import STAGES
from datakit.errors import ManifestError, UsageError
from datakit.manifest import (
    ROLES,
    Manifest,
    Shard,
    ancestors,
    data_dir,
    load,
    load_run,
    run_file,
    write_whole,
)

if TYPE_CHECKING:
    from datakit.stage import Parent, Stage

# The code of a stage.

PACKAGE = Path(__file__).parents[1]
MOST_MODULES = 2_000
"""Modules that are remembered; the newest of them."""
ROW_CODE = (
    "datakit.engine.alarms", "datakit.engine.runner", "datakit.engine.reuse", "datakit.engine.store", "datakit.data",
    "datakit.stage",
)  # fmt: skip
"""The modules that cut, read or write the rows of every stage. What these import counts only if a stage imports it."""


def code_hash(stage: "Stage") -> str:
    """SHA-256 over the code that a stage runs, 64 hex digits."""
    lines = (f"{name}\0{digest}\n" for name, digest in module_hashes(stage).items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def module_hashes(stage: "Stage") -> dict[str, str]:
    """The hash of each module that holds code of a stage, sorted by name."""
    found = {name: module_hash(name) for name in modules_of(type(stage).__module__, *stage.modules())}
    _module_cache().save()
    return found


def modules_of(*modules: str) -> list[str]:
    """The modules that hold the code of a stage, sorted, from its own module and those that its config chooses."""
    return sorted({*import_closure(modules), *ROW_CODE})


def import_closure(modules: Iterable[str]) -> set[str]:
    """The modules of this package that some modules import, directly or not, themselves among them.

    A package's `__init__` counts where it is imported by name. `datakit/__init__.py` itself never does: it offers the
    whole library, loaded on first use.
    """
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and name != PACKAGE.name and _source(name) is not None:
            found.add(name)
            waiting += _read_module(name)[1]
    return found


def module_hash(name: str) -> str:
    """SHA-256 over a module's syntax tree without docstrings, 64 hex digits."""
    return _read_module(name)[0]


def _source(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first != PACKAGE.name:
        return None
    path = PACKAGE.joinpath(*rest)
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


def _read_module(name: str) -> tuple[str, list[str]]:
    """(hash of a module's code, the modules of this package that it imports)."""
    path = _source(name)
    assert path is not None, name
    code, imported = _parsed(path, path.stat().st_mtime_ns)
    return code, [module for module in imported if _source(module) is not None]


@cache
def _parsed(path: Path, _mtime_ns: int) -> tuple[str, list[str]]:
    """(hash of a module's code, the names of this package that it imports)."""
    return _module_cache().of(path.read_bytes())


@cache
def _module_cache() -> "_ModuleCache":
    return _ModuleCache()


class _ModuleCache:
    """What commands found in modules, in the user's cache: reading those of all stages takes a second.

    It is kept by the SHA-256 of a module's source, for this version of the code here and of Python: it is never stale.
    """

    def __init__(self) -> None:
        made_by = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
        name = f"modules-{made_by}-{sys.version_info.major}.{sys.version_info.minor}.json"
        try:
            import platformdirs

            self._path: Path | None = platformdirs.user_cache_path("datakit") / name
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except ModuleNotFoundError:  # hashes need the standard library only
            self._path, known = None, {}
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, Any] = known if isinstance(known, dict) else {}
        self._changed = False

    def of(self, source: bytes) -> tuple[str, list[str]]:
        """(hash of the code, the names of this package that it imports)."""
        key = hashlib.sha256(source).hexdigest()
        if key not in self._known:
            imported: dict[str, None] = {}
            text = json.dumps(_plain(ast.parse(source), imported), separators=(",", ":")).encode()
            names = [name for name in imported if name.split(".")[0] == PACKAGE.name]
            self._known[key] = [hashlib.sha256(text).hexdigest(), names]
            self._changed = True
        code, names = self._known[key]
        return code, names

    def save(self) -> None:
        """Remember for the next command; a cache that cannot be written is no error."""
        if self._changed and self._path is not None:
            self._changed = False
            with contextlib.suppress(OSError):
                write_whole(self._path, json.dumps(dict(list(self._known.items())[-MOST_MODULES:])).encode())


_VERSION_FIELDS = {"type_params", "type_comment", "type_ignores", "kind"}  # differ between versions of Python


def _plain(node: Any, imported: dict[str, None]) -> Any:
    """A syntax tree as JSON, without positions and what differs between versions of Python; fills `imported`."""
    if isinstance(node, list):
        return [_plain(n, imported) for n in _code(node)]
    if isinstance(node, str):
        return node
    if not isinstance(node, ast.AST):
        return [type(node).__name__, repr(node)]
    if isinstance(node, ast.JoinedStr):  # Python 3.12 has empty texts in format specifications
        node.values = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")]
    elif isinstance(node, ast.Import):
        imported |= dict.fromkeys(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        imported |= dict.fromkeys([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    fields = ((name, getattr(node, name, None)) for name in sorted(node._fields) if name not in _VERSION_FIELDS)
    return [type(node).__name__, *([n, _plain(v, imported)] for n, v in fields if v is not None and v != [])]


def _code(nodes: list[Any]) -> Iterator[Any]:
    """The nodes without docstrings (also those under fields) and without blocks for type checkers."""
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _code(node.orelse)
        elif not _is_docstring(node):
            yield node


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


# Keys, and what is up to date.


def key_of(
    stage: str, kind: str, parents: tuple[dict[str, Any], ...], config: Any, resources: dict[str, Any], code: str
) -> str:
    """What decides "up to date": two runs with one key give the same bytes. `code` is the stage's `code_hash`."""
    return digest([stage, kind, parents, config, resources, code])


def parent_entry(parent: "Parent", use: str = "") -> dict[str, Any]:
    """A manifest as its child's manifest names it; `limit` where only its first rows came in."""
    manifest = parent.manifest
    entry = {"manifest": manifest.stage, "version": manifest.version, "sha256": sha256_file(parent.path)}
    return entry | ({"use": use} if use else {}) | ({"limit": parent.limit} if parent.limit else {})


def relative_path(folder: Path, file: Path | str) -> str:
    """The relative path from a folder to a file, after symbolic links are resolved.

    Between this machine and an object store it is the file's URL or its absolute path.
    """
    url, inside = storage.url_of(file), storage.url_of(folder) is not None
    if (url is not None) != inside:
        return url or realpath(file)
    return relpath(realpath(file), realpath(folder))


def current(path: Path, key: str) -> Manifest | None:
    """The manifest at `path` if it has this key and its shards are intact (`changed_shards`); else None."""
    if not path.is_file():
        return None
    try:
        manifest = load(path)
    except ManifestError:
        return None
    return manifest if manifest.key == key and not changed_shards(path, manifest) else None


def changed_shards(path: Path, manifest: Manifest) -> list[Path]:
    """The files of the manifest at `path` that are missing or not as they were written.

    A file whose size, times of change and inode are those of the last look is not read again.
    """
    folder, hashes, changed = data_dir(path, manifest), FileHashes(), []
    if storage.url_of(folder) is not None:  # the digest is compared when a shard is fetched
        there = storage.sizes(folder)
        return [folder / s.path for s in manifest.shards if there.get(s.path) != s.bytes]
    for shard in manifest.shards:
        file = folder / shard.path
        if not file.is_file() or file.stat().st_size != shard.bytes or hashes.of(file) != shard.sha256:
            changed.append(file)
    hashes.save()
    return changed


MOST_HASHES = 50_000
"""With more remembered files, those that are gone are forgotten."""


def differences(
    path: Path, parents: Iterable[dict[str, Any]], config: dict[str, Any], resources: dict[str, Any], code: str
) -> str:
    """In what the manifest at `path` differs from one that would be made now, for people."""
    if not path.is_file():
        return "has not run"
    try:
        old = load(path)
    except ManifestError as e:
        return str(e)
    said = [*raw_differences(old.parents, parents)]
    before, now = ({p["manifest"]: p["version"] for p in ps if "manifest" in p} for ps in (old.parents, parents))
    said += [f"was made from an older {name}" for name in now if name in before and before[name] != now[name]]
    said += [f"was made from other stages ({', '.join(before)})" for _ in [0] if before.keys() != now.keys()]
    said += limit_differences(old.parents, parents)
    said += config_differences(old.config, config)
    used = old.facts.get("resources", {})
    said += [
        "rows were put on the list of removed rows" if name == "removed" else f"its {name} changed"
        for name in sorted(resources.keys() | used.keys())
        if resources.get(name) != used.get(name)
    ]
    said += ["was made by another version of the code"] * (old.code != code)
    return "; ".join(said) or "its shards are not as they were written"


def config_differences(old: dict[str, Any], new: dict[str, Any], section: str = "") -> Iterator[str]:
    """The values that differ between two configs, for people; keys of a section with its name."""
    for key in sorted(old.keys() | new.keys()):
        if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
            yield from config_differences(old[key], new[key], f"{section}{key}.")
        elif old.get(key) != new.get(key):
            yield f"{section}{key} is {new.get(key)!r} now, and was {old.get(key)!r}"


def raw_differences(old: Iterable[dict[str, Any]], new: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The raw files that differ between the parents of two manifests, for people."""
    before, now = ({p["raw"]: p["sha256"] for p in parents if "raw" in p} for parents in (old, new))
    found = {
        "new": now.keys() - before.keys(),
        "gone": before.keys() - now.keys(),
        "changed": {name for name in now.keys() & before.keys() if now[name] != before[name]},
    }
    for what, names in found.items():
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            yield f"input files are {what}: {', '.join(sorted(names)[:3])}{more}"


def limit_differences(old: Iterable[dict[str, Any]], new: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Where other numbers of first rows come in (`--limit`), for people."""
    before, now = ({p["manifest"]: p.get("limit") for p in parents if "manifest" in p} for parents in (old, new))
    for name in now.keys() & before.keys():
        if now[name] != before[name]:
            said = [f"the first {limit:,}" if limit else "all" for limit in (now[name], before[name])]
            yield f"takes {said[0]} rows of {name} now, and took {said[1]}"


class FileHashes:
    """SHA-256 of files, remembered in the user's cache by path, size, times of change and inode.

    A remembered hash only decides what is up to date. `verify` never uses it, neither does what reads a file's rows.
    The cache is a table of SQLite: it is read row by row, and commands that run at once add to each other's rows. A
    cache that cannot be read or written is no error.
    """

    def __init__(self) -> None:
        import platformdirs

        self._path = platformdirs.user_cache_path("datakit") / "file-hashes.sqlite"
        self._table: sqlite3.Connection | None = None
        self._new: dict[str, tuple[str, str]] = {}
        self._forgotten: list[str] = []

    def of(self, path: Path) -> str:
        """The hash of a local file's bytes."""
        name, mark = str(path.resolve()), str(file_mark(path))
        return self._known(name, mark) or self._note(name, mark, sha256_file(path))

    def of_urls(self, urls: Sequence[str], read: Callable[[str], str]) -> dict[str, str]:
        """The hashes of objects' bytes: of a store that says when an object changes, it is read once."""
        tags = storage.tags_of(urls)
        found = {url: known for url, tag in tags.items() if tag and (known := self._known(url, str(tag)))}
        new = [url for url in tags if url not in found]
        with ThreadPoolExecutor(storage.REQUESTS) as pool:
            for url, sha256 in zip(new, pool.map(read, new), strict=True):
                found[url] = self._note(url, str(tags[url]), sha256) if tags[url] else sha256
        return found

    def remember(self, folder: Path, shards: Iterable[Shard]) -> None:
        """Note the hashes of files that were just written to a data folder of this machine."""
        for shard in shards if storage.url_of(folder) is None else ():
            file = folder / shard.path
            self._note(str(file.resolve()), str(file_mark(file)), shard.sha256)

    def forget(self, folder: Path) -> None:
        """Read the files of a folder again at the next look: one of them was found damaged."""
        self._forgotten.append(f"{folder.resolve()}{os.sep}")

    def save(self) -> None:
        """Remember for the next run."""
        if not self._new and not self._forgotten:
            return
        with contextlib.suppress(OSError):
            try:
                self._write()
            except sqlite3.OperationalError:  # a full disk, or another command that holds it for long
                return
            except sqlite3.DatabaseError:  # a damaged file: the next run begins a new one
                self._path.unlink(missing_ok=True)

    def _known(self, name: str, mark: str) -> str | None:
        if (entry := self._new.get(name)) is None:
            with contextlib.suppress(OSError, sqlite3.Error):
                asked = self._open().execute("SELECT mark, sha256 FROM hashes WHERE name = ?", (name,))
                entry = asked.fetchone()
        return entry[1] if entry is not None and entry[0] == mark else None

    def _note(self, name: str, mark: str, sha256: str) -> str:
        self._new[name] = mark, sha256
        return sha256

    def _open(self) -> sqlite3.Connection:
        if self._table is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            table = sqlite3.connect(self._path, timeout=5)
            table.execute("PRAGMA synchronous = OFF")  # what a power cut takes is made again
            table.execute("CREATE TABLE IF NOT EXISTS hashes (name TEXT PRIMARY KEY, mark TEXT, sha256 TEXT)")
            self._table = table
        return self._table

    def _write(self) -> None:
        with self._open() as table:
            for folder in self._forgotten:
                table.execute("DELETE FROM hashes WHERE substr(name, 1, ?) = ?", (len(folder), folder))
            rows = ((name, *entry) for name, entry in self._new.items())
            table.executemany("INSERT OR REPLACE INTO hashes VALUES (?, ?, ?)", rows)
            if table.execute("SELECT count(*) FROM hashes").fetchone()[0] > MOST_HASHES:
                names = table.execute("SELECT name FROM hashes").fetchall()
                gone = (row for row in names if not storage.is_url(row[0]) and not os.path.exists(row[0]))
                table.executemany("DELETE FROM hashes WHERE name = ?", gone)


def earlier_tables(
    manifest: Path, data: Path, parent: dict[str, Any], wants: dict[str, Any]
) -> tuple[Manifest, Path] | None:
    """An earlier result of a stage whose saved table serves again: (its manifest, its data folder), or None.

    `manifest` is where the stage's manifest goes and `data` where its shards go now, `parent` names the rows. It must
    have saved all that `wants` names, made by the same code.
    """
    history = sorted(manifest.parent.glob(f"history/{manifest.stem}-*.json"), key=lambda p: -p.stat().st_mtime_ns)
    for path in [manifest, *history]:
        try:
            found = load(path)
            folder = data_dir(path, found)
        except (ManifestError, OSError):
            continue
        saved, exists = found.facts.get("saved"), folder.is_dir() and not folder.samefile(data)
        if exists and saved and all(found.parents[0].get(key) == parent.get(key) for key in ("version", "limit")):
            files = [(folder / s.path, s.bytes) for s in found.shards if s.role == saved["role"]]
            if _covers(saved, wants) and all(f.is_file() and f.stat().st_size == size for f, size in files):
                return found, folder
    return None


def _covers(saved: Any, wants: Any) -> bool:
    """Whether everything in `wants`, at any depth, is in `saved` too."""
    if isinstance(wants, dict):
        return isinstance(saved, dict) and all(k in saved and _covers(saved[k], v) for k, v in wants.items())
    return bool(saved == wants)


# Garbage collection: data folders that no manifest names any more.


def unused_folders(root: Path, dataset: str | None, ignore: set[Path]) -> list[Path]:
    """Data folders that no manifest names; manifests in `ignore` do not count.

    Raises:
        ManifestError: a manifest cannot be read; nothing may be removed then.
    """
    named = {data_dir(p, load(p)).resolve() for p in _manifests(root, None) if p not in ignore}
    folders = storage.subfolders(root / "data", f"{dataset or '*'}/*/*")
    return [p for p in folders if _is_data_folder(p) and p.resolve() not in named]


def remove_folder(folder: Path) -> bool:
    """Remove a data folder, unless a run is writing to it."""
    try:  # of an object store, it may never have been on this machine
        with storage.locked(folder), storage.Claim(folder):
            storage.remove(folder)
    except UsageError:
        return False
    return True


def forget_history(root: Path, dataset: str | None, *, dry_run: bool) -> set[Path]:
    """Remove the history manifests from which no current manifest descends; returns those removed."""
    live, gone = _live_versions(root), set()
    for path in _manifests(root, dataset):
        try:
            old = path.parent.name == "history" and load(path).version not in live
        except ManifestError:
            continue
        if old:
            gone.add(path)
            if not dry_run:
                storage.remove(path)
                storage.remove(run_file(path))
    return gone


def _live_versions(root: Path) -> dict[str, Path]:
    """The versions that a project's current manifests are or were made from, each with such a current manifest."""
    live: dict[str, Path] = {}
    for path in _manifests(root, None):
        if path.parent.name != "history":
            for _, manifest in ancestors(path, against=True):
                live.setdefault(manifest.version, path)
    return live


@dataclass(frozen=True, slots=True)
class OldVersion:
    """A version whose shards may go: an old one, or a newest one before a stage; or one that another dataset needs."""

    path: Path
    manifest: Manifest
    folder: Path
    bytes: int
    """What its removal would free: files that no other version has."""
    needed_by: Path | None = None
    """A current manifest of another dataset that was made from it, or was run against it."""


def old_versions(root: Path, dataset: str | None) -> list[OldVersion]:
    """The versions in the history of a dataset (None: of all) whose shards are still on the disk.

    Raises:
        ManifestError: a manifest cannot be read; nothing may be removed then.
    """
    live, found = _live_versions(root), []
    current_folders = {data_dir(p, load(p)) for p in _manifests(root, None) if p.parent.name != "history"}
    own = {
        m.version
        for p in _manifests(root, dataset)
        if p.parent.name != "history"
        for _, m in ancestors(p)
        if m.dataset == load(p).dataset
    }
    for path in _manifests(root, dataset):
        if path.parent.name == "history":
            manifest = load(path)
            folder = data_dir(path, manifest)
            if manifest.version not in own and folder not in current_folders and storage.exists(folder):
                found.append(OldVersion(path, manifest, folder, _own_bytes(folder), live.get(manifest.version)))
    return found


def _own_bytes(folder: Path) -> int:
    """The bytes of a folder's files that are in no other folder (hard links share them)."""
    if storage.url_of(folder) is not None:
        return sum(storage.sizes(folder).values())
    return sum(s.st_size for f in folder.rglob("*") if f.is_file() and (s := f.stat()).st_nlink == 1)


def purge(old: OldVersion) -> bool:
    """Remove the shards of an old version and mark its manifests as purged; False where a run is writing there.

    The manifests stay. `verify` then reports the version as purged.
    """
    folder = old.path.parent if old.path.parent.name == "history" else old.path.parent / "history"
    for path in (old.path, *folder.glob("*.json")):  # another version may have had the same folder
        if not path.name.endswith(".run.json") and data_dir(path, load(path)) == old.folder:
            _mark_purged(path)
    return remove_folder(old.folder)


def earlier_results(root: Path, dataset: str, before: str) -> list[OldVersion]:
    """The newest results of a dataset's stages before a stage, and those that other datasets need.

    They are what the stage's result was made from, and other results of the stages that come before it in recipes.

    Raises:
        UsageError: the dataset has no result of that stage.
    """
    last = root / "manifests" / dataset / f"{before}.json"
    if not last.is_file():
        raise UsageError(f"{last}: is not there: {dataset} has no result of the stage {before!r}")
    others = {
        manifest.version: path
        for path in _manifests(root, None)
        if path.parent.name not in ("history", dataset)
        for _, manifest in ancestors(path, against=True)
    }
    made_from, order = {m.version for _, m in ancestors(last)[1:]}, list(STAGES)
    found = []
    for path in _manifests(root, dataset):
        manifest = load(path)
        earlier = manifest.stage in order and order.index(manifest.stage) < order.index(before)
        folder = data_dir(path, manifest)
        if path.parent.name != "history" and (manifest.version in made_from or earlier) and storage.exists(folder):
            found.append(OldVersion(path, manifest, folder, _own_bytes(folder), others.get(manifest.version)))
    return found


def purge_parents(output: Path, before: str, *, dry_run: bool) -> Iterator[tuple[Path, int]]:
    """Remove the shards of the earlier stages that an `--output` folder carries in `parents/`; their manifests stay.

    With `before`, only of the stages before it. Yields each stage's folder with its bytes.

    Raises:
        ManifestError: the folder has no manifest.
        UsageError: it carries no result of the stage `before`.
    """
    last, parents = output / "manifest.json", (output / "parents").resolve()
    carried = {m.stage: p for p, m in ancestors(last) if p.resolve().parent.parent == parents}
    first = carried.get(before, last) if before else last
    if before and load(first).stage != before:
        raise UsageError(
            f"{output}: holds no result of the stage {before!r}; parents/ has {', '.join(carried) or 'none'}"
        )
    for path, manifest in ancestors(first)[1:]:
        names = (*ROLES, ".work", ".done", ".units")
        entries = [path.parent / name for name in names if storage.exists(path.parent / name)]
        if carried.get(manifest.stage) == path and entries:
            size = sum(_own_bytes(e) for e in entries)
            if not dry_run:
                _mark_purged(path)
                for entry in entries:
                    storage.remove(entry)
            yield output / "parents" / path.parent.name, size


def _mark_purged(path: Path) -> None:
    run = load_run(path) | {"purged": time.strftime("%Y-%m-%d", time.gmtime())}
    write_whole(run_file(path), (json.dumps(run, indent=1, sort_keys=True) + "\n").encode())


def _manifests(root: Path, dataset: str | None) -> Iterator[Path]:
    """Current manifests and those in history."""
    for pattern in ("*.json", "history/*.json"):
        for path in sorted((root / "manifests").glob(f"{dataset or '*'}/{pattern}")):
            if not path.name.endswith(".run.json"):
                yield path


def _is_data_folder(folder: Path) -> bool:
    """Whether a folder holds a stage's data; users keep files of their own below `data/` too."""
    if folder.is_symlink() or folder.parent.name not in STAGES or not re.fullmatch("[0-9a-f]{16}", folder.name):
        return False
    if storage.url_of(folder) is not None:
        names = {name.split("/")[0] for name in storage.sizes(folder)}
    else:
        names = {e.name for e in folder.iterdir()} if folder.is_dir() else {""}
    return names <= {*ROLES, ".work", ".done", ".units", ".claim"}
