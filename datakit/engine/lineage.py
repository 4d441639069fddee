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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import datakit.own_code as own_code
import datakit.storage as storage
from datakit.config import digest, file_mark, options, resolved, sha256_file
from datakit.manifest import Manifest, data_dir

if TYPE_CHECKING:
    from datakit.stage import Stage

# What commands remember of each other.

MOST_ENTRIES = 50_000
"""With more, files that are gone are forgotten."""


def remembered(name: str, mark: Any, find: Callable[[], str]) -> str:
    """What `find` says about a name, or said when an earlier command asked with the same mark.

    It is kept in a table of SQLite in the user's cache, and only saves time: a table that cannot be read or written is
    no error. Every row has a checksum, since its bits may decay.
    """
    mark = str(mark)
    for known, said in _query("SELECT mark, found FROM known WHERE name = ?", name):
        if known == mark and said == sealed(name, mark, said[8:]):
            return str(said[8:])
    found = find()
    _query("INSERT OR REPLACE INTO known VALUES (?, ?, ?)", name, mark, sealed(name, mark, found))
    return found


def sealed(name: str, mark: str, found: str) -> str:
    """What is found of a name as the table holds it: after a checksum of eight digits."""
    return f"{zlib.crc32(f'{name} {mark} {found}'.encode()):08x}{found}"


def _query(sql: str, *values: str) -> list[Any]:
    """The rows of a query; none where the table cannot be used."""
    try:
        import platformdirs

        file = platformdirs.user_cache_path("datakit") / "known.sqlite"
        return _table(file, os.getpid()).execute(sql, values).fetchall()
    except sqlite3.OperationalError:  # a full disk, or another command that holds it for long
        return []
    except sqlite3.DatabaseError:  # a damaged file: the next run begins a new one
        _table.cache_clear()
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
        return []
    except (ImportError, OSError):
        return []


@cache
def _table(file: Path, _process: int) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    table = sqlite3.connect(file, timeout=5, isolation_level=None, check_same_thread=False)
    table.execute("PRAGMA synchronous = OFF")  # what a power cut takes is made again
    table.execute("PRAGMA journal_mode = MEMORY")
    table.execute("CREATE TABLE IF NOT EXISTS known (name TEXT PRIMARY KEY, mark TEXT, found TEXT)")
    if table.execute("SELECT count(*) FROM known").fetchone()[0] > MOST_ENTRIES:
        names = table.execute("SELECT name FROM known").fetchall()
        gone = [row for row in names if row[0].startswith(os.sep) and not os.path.exists(row[0])]
        table.executemany("DELETE FROM known WHERE name = ?", gone)
    return table


def file_hashes(files: Mapping[Path, str]) -> dict[Path, str]:
    """SHA-256 of local files, remembered by path, size, times of change and inode.

    `files` has the SHA-256 of a file where it is known already, else "".
    A remembered hash only decides what is up to date. `verify` never uses it, neither does what reads a file's rows.
    """
    finds = {path: partial(str, known) if known else partial(sha256_file, path) for path, known in files.items()}
    marks = [(path, find, str(path.resolve()), file_mark(path)) for path, find in finds.items()]
    return {path: remembered(name, mark, find) for path, find, name, mark in marks}


def url_hashes(urls: Sequence[str], read: Callable[[str], str]) -> dict[str, str]:
    """The hashes of objects' bytes: of a store that says when an object changes, it is read once."""
    tags = storage.tags_of(urls)

    def find(url: str) -> str:
        return remembered(url, tags[url], partial(read, url)) if tags[url] else read(url)

    with ThreadPoolExecutor(storage.REQUESTS) as pool:
        return dict(zip(urls, pool.map(find, urls), strict=True))


def forget(folder: Path) -> None:
    """Read the files of a folder again at the next look: one of them was found damaged."""
    below = f"{folder.resolve()}{os.sep}"
    _query("DELETE FROM known WHERE substr(name, 1, length(?)) = ?", below, below)


# The code of a stage.

PACKAGE = Path(__file__).parents[1]
ROW_CODE = ("datakit.engine.runner", "datakit.engine.store", "datakit.data", "datakit.stage")
"""The modules that cut, read or write the rows of every stage. What these import counts only if a stage imports it."""


def code_hash(stage: "Stage") -> str:
    """SHA-256 over the code that a stage runs, 64 hex digits."""
    used = resolved(stage.config)  # without the sections that are not in use
    sections = (o.nested for o in options(type(stage.config)) if o.nested and o.name in used)  # of rule sets, say
    modules = {*import_closure(kind.__module__ for kind in (type(stage), *sections)), *ROW_CODE}
    lines = [f"{name}\0{module_hash(name)}\n" for name in sorted(modules)]
    if _source(type(stage).__module__) is None:  # a stage of the user's own
        lines.append(f"own\0{own_code.code_digest(type(stage))}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


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
def _parsed(path: Path, _mtime_ns: int) -> list[str]:
    """The hash of a module's code, and the names of this package that it imports.

    Reading the modules of all stages takes a second, so that is remembered by the source, the code here and the version
    of Python: it is never stale.
    """
    source = path.read_bytes()
    mark = hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode() + source).hexdigest()

    def find() -> str:
        tree = ast.parse(source)
        tree.body = [*_code(tree.body)]
        text = json.dumps(_plain(tree), separators=(",", ":")).encode()
        names = {name for name in own_code.imports(tree) if name.split(".")[0] == PACKAGE.name}
        return " ".join([hashlib.sha256(text).hexdigest(), *sorted(names)])

    return remembered(f"module {mark}", mark, find).split(" ")


_VERSION_FIELDS = {"type_params", "type_comment", "type_ignores", "kind"}  # differ between versions of Python


def _plain(node: Any) -> Any:
    """A syntax tree as JSON, without positions and what differs between versions of Python."""
    if isinstance(node, list):
        return [_plain(n) for n in _code(node)]
    if isinstance(node, str):
        return node
    if not isinstance(node, ast.AST):
        return [type(node).__name__, repr(node)]
    if isinstance(node, ast.JoinedStr):  # Python 3.12 has empty texts in format specifications
        node.values = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")]
    fields = ((name, getattr(node, name, None)) for name in sorted(node._fields) if name not in _VERSION_FIELDS)
    return [type(node).__name__, *([n, _plain(v)] for n, v in fields if v is not None and v != [])]


def _code(nodes: list[Any]) -> Iterator[Any]:
    """The nodes without docstrings (also those under fields) and without blocks for type checkers."""
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _code(node.orelse)
        elif not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and type(node.value.value) is str
        ):
            yield node


# What is up to date, and what differs between two results.


def changed_shards(path: Path, manifest: Manifest) -> list[Path]:
    """The files of the manifest at `path` that are missing or not as they were written.

    A file whose size, times of change and inode are those of the last look is not read again.
    """
    folder = data_dir(path, manifest)
    if storage.url_of(folder) is not None:  # the digest is compared when a shard is fetched
        there = storage.sizes(folder)
        return [folder / s.path for s in manifest.shards if there.get(s.path) != s.bytes]
    files = {folder / s.path: s for s in manifest.shards}
    same = {f: "" for f, s in files.items() if f.is_file() and f.stat().st_size == s.bytes}
    found = file_hashes(same)
    return [f for f, s in files.items() if found.get(f) != s.sha256]


def what_changed(
    old: Manifest, parents: Sequence[dict[str, Any]], config: dict[str, Any], resources: dict[str, Any], code: str
) -> Iterator[str]:
    """In what a result differs from one of other inputs, values, models and code, for people."""
    files, values = list[dict[str, str]](), list[dict[str, Any]]()
    of_old = old.parents, old.config, old.facts.get("resources", {})
    for inputs, settings, models in (of_old, (parents, config, resources)):
        made_from = [p for p in inputs if "manifest" in p]
        files.append({p["raw"]: p["sha256"] for p in inputs if "raw" in p})
        values.append(dict(_flat(settings)))
        values[-1] |= {f"the version of {p['manifest']}": p["version"] for p in made_from}
        values[-1] |= {f"the hash of {name}": digest(found)[:12] for name, found in models.items()}
    before, now = files
    both = {name for name in now.keys() & before.keys() if now[name] != before[name]}
    for what, names in ("new", now.keys() - before.keys()), ("gone", before.keys() - now.keys()), ("changed", both):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            yield f"input files are {what}: {', '.join(sorted(names)[:3])}{more}"
    for name in sorted(values[0].keys() | values[1].keys()):
        first, second = (repr(found[name]) if name in found else "not set" for found in values)
        if first != second:
            yield f"{name} is {second} now, and was {first}"
    if old.code != code:
        yield "it was made by another version of the code"


def _flat(values: dict[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a config, those of a section with its name: `gopher_quality.min_words`."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{section}{name}.")
        else:
            yield f"{section}{name}", value
