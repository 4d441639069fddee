"""Where a result comes from: a stage's code, the key that decides "up to date", hashes of files, what changed since.

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
import sqlite3
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from os.path import realpath, relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import datakit.storage as storage
from datakit.config import digest, file_mark, sha256_file
from datakit.errors import ManifestError
from datakit.manifest import Manifest, Shard, data_dir, load

if TYPE_CHECKING:
    from datakit.stage import Parent, Stage

# What commands remember of each other.

MOST_ENTRIES = 50_000
"""With more, files that are gone are forgotten."""


class Remembered:
    """A table of SQLite in the user's cache: by name, a mark that says what is meant, and what was found then.

    It only saves time: a cache that cannot be read or written is no error. It is read row by row, and commands that run
    at once add to each other's rows.
    """

    def __init__(self) -> None:
        self._table: sqlite3.Connection | None = None
        self._new: dict[str, tuple[str, str]] = {}
        self._forgotten: list[str] = []

    def get(self, name: str, mark: str) -> str | None:
        """What was found of a name with this mark; None where it is not known."""
        found = self._new.get(name)
        if found is None:
            with contextlib.suppress(ImportError, OSError, sqlite3.Error):
                found = self._open().execute("SELECT mark, found FROM known WHERE name = ?", (name,)).fetchone()
        if found is None or found[0] != mark or found[1] != sealed(name, mark, found[1][8:]):  # or its bits decayed
            return None
        return found[1][8:]

    def note(self, name: str, mark: str, found: str) -> str:
        """Remember for the next command, from `save` on."""
        self._new[name] = mark, sealed(name, mark, found)
        return found

    def save(self) -> None:
        """Write what is new."""
        if not self._new and not self._forgotten:
            return
        try:
            with self._open() as table:
                for folder in self._forgotten:
                    table.execute("DELETE FROM known WHERE substr(name, 1, ?) = ?", (len(folder), folder))
                rows = ((name, *about) for name, about in self._new.items())
                table.executemany("INSERT OR REPLACE INTO known VALUES (?, ?, ?)", rows)
                if table.execute("SELECT count(*) FROM known").fetchone()[0] > MOST_ENTRIES:
                    names = table.execute("SELECT name FROM known").fetchall()
                    gone = (row for row in names if row[0].startswith(os.sep) and not os.path.exists(row[0]))
                    table.executemany("DELETE FROM known WHERE name = ?", gone)
        except sqlite3.OperationalError:  # a full disk, or another command that holds it for long
            return
        except sqlite3.DatabaseError:  # a damaged file: the next run begins a new one
            with contextlib.suppress(OSError):
                self._file().unlink(missing_ok=True)
        except (ImportError, OSError):
            return

    @staticmethod
    def _file() -> Path:
        import platformdirs

        return platformdirs.user_cache_path("datakit") / "known.sqlite"

    def _open(self) -> sqlite3.Connection:
        if self._table is None:
            self._file().parent.mkdir(parents=True, exist_ok=True)
            table = sqlite3.connect(self._file(), timeout=5)
            table.execute("PRAGMA synchronous = OFF")  # what a power cut takes is made again
            table.execute("CREATE TABLE IF NOT EXISTS known (name TEXT PRIMARY KEY, mark TEXT, found TEXT)")
            self._table = table
        return self._table


def sealed(name: str, mark: str, found: str) -> str:
    """What is found of a name as the table holds it: after a checksum of eight digits."""
    return f"{zlib.crc32(f'{name} {mark} {found}'.encode()):08x}{found}"


class FileHashes(Remembered):
    """SHA-256 of files by path, size, times of change and inode.

    A remembered hash only decides what is up to date. `verify` never uses it, neither does what reads a file's rows.
    """

    def of(self, path: Path) -> str:
        """The hash of a local file's bytes."""
        name, mark = str(path.resolve()), str(file_mark(path))
        return self.get(name, mark) or self.note(name, mark, sha256_file(path))

    def of_urls(self, urls: Sequence[str], read: Callable[[str], str]) -> dict[str, str]:
        """The hashes of objects' bytes: of a store that says when an object changes, it is read once."""
        tags = storage.tags_of(urls)
        found = {url: known for url, tag in tags.items() if tag and (known := self.get(url, str(tag)))}
        new = [url for url in tags if url not in found]
        with ThreadPoolExecutor(storage.REQUESTS) as pool:
            for url, sha256 in zip(new, pool.map(read, new), strict=True):
                found[url] = self.note(url, str(tags[url]), sha256) if tags[url] else sha256
        return found

    def remember(self, folder: Path, shards: Iterable[Shard]) -> None:
        """Note the hashes of files that were just written to a data folder of this machine."""
        for shard in shards if storage.url_of(folder) is None else ():
            file = folder / shard.path
            self.note(str(file.resolve()), str(file_mark(file)), shard.sha256)

    def forget(self, folder: Path) -> None:
        """Read the files of a folder again at the next look: one of them was found damaged."""
        self._forgotten.append(f"{folder.resolve()}{os.sep}")


# The code of a stage.

PACKAGE = Path(__file__).parents[1]
ROW_CODE = ("datakit.engine.runner", "datakit.engine.store", "datakit.engine.units", "datakit.data", "datakit.stage")
"""The modules that cut, read or write the rows of every stage. What these import counts only if a stage imports it."""


def code_hash(stage: "Stage") -> str:
    """SHA-256 over the code that a stage runs, 64 hex digits."""
    lines = (f"{name}\0{found}\n" for name, found in module_hashes(stage).items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def module_hashes(stage: "Stage") -> dict[str, str]:
    """The hash of each module that holds code of a stage, sorted by name."""
    modules = {*import_closure((type(stage).__module__, *stage.modules())), *ROW_CODE}
    found = {name: module_hash(name) for name in sorted(modules)}
    _modules().save()
    return found


def import_closure(modules: Iterable[str]) -> set[str]:
    """The modules of this package that some modules import, directly or not, themselves among them.

    A package's `__init__` counts where it is imported by name. `datakit/__init__.py` itself never does: it offers the
    whole library, loaded on first use.
    """
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and name != PACKAGE.name and (path := _source(name)) is not None:
            found.add(name)
            waiting += _parsed(path, path.stat().st_mtime_ns)[1:]
    return found


def module_hash(name: str) -> str:
    """SHA-256 over a module's syntax tree without docstrings, 64 hex digits."""
    path = _source(name)
    assert path is not None, name
    return _parsed(path, path.stat().st_mtime_ns)[0]


def _source(module: str) -> Path | None:
    first, *rest = module.split(".")
    path = PACKAGE.joinpath(*rest)
    files = (path.with_suffix(".py"), path / "__init__.py") if first == PACKAGE.name else ()
    return next((file for file in files if file.is_file()), None)


@cache
def _modules() -> Remembered:
    return Remembered()


@cache
def _parsed(path: Path, _mtime_ns: int) -> list[str]:
    """The hash of a module's code, and the names of this package that it imports.

    Reading the modules of all stages takes a second, so that is remembered by the source, the code here and the version
    of Python: it is never stale.
    """
    source = path.read_bytes()
    mark = hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode() + source).hexdigest()
    known = _modules().get(f"module {mark}", mark)
    if known is None:
        imported: dict[str, None] = {}
        text = json.dumps(_plain(ast.parse(source), imported), separators=(",", ":")).encode()
        names = [name for name in imported if name.split(".")[0] == PACKAGE.name]
        known = _modules().note(f"module {mark}", mark, " ".join([hashlib.sha256(text).hexdigest(), *names]))
    return known.split(" ")


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
        elif not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and type(node.value.value) is str
        ):
            yield node


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


# What differs between two results, for people.


def differences(path: Path, parents: Iterable[dict[str, Any]], config: Any, resources: Any, code: str) -> str:
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
    said += [f"was made from other stages ({', '.join(before)})"] * (before.keys() != now.keys())
    said += [*limit_differences(old.parents, parents), *config_differences(old.config, config)]
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
