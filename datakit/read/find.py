"""Input files: from files, folders, globs and URLs to one sorted list, and which splits their names say.

Folders and patterns mean the same on a disk and on a store: one walk asks for the entries of a folder.
"""

import fnmatch
import glob
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from typing import Final, NamedTuple

import pyarrow as pa

from datakit.errors import InputError, UsageError
from datakit.manifest import FORMAT, ROLES
from datakit.object_store import first_line, reading_errors
from datakit.read.streams import filesystem, open_binary
from datakit.storage import SCHEMES, is_url, refuse_settings, spelled

FORMATS: Final = {
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "parquet": (".parquet",),
    "arrow": (".arrow", ".feather", ".ipc", ".arrows"),
    "csv": (".csv", ".tsv"),
    "text": (".txt", ".text", ".md", ".markdown"),
    "html": (".html", ".htm", ".xhtml"),
    "warc": (".warc", ".wet"),
}
SUFFIXES: Final = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}
COMPRESSED: Final = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".xz": "xz",
                     ".lz4": "lz4"}  # fmt: skip
ABOUT: Final = re.compile(
    r"(?i)^(?:(?:readme|license|licence|changelog|contributing|notice|citation|(?:sha\d*|md5)sums?)\b"
    r"|(?:dataset_infos?|dataset_dict|state)\.json$)"
)
"""Names of files that describe the data, as ours of checksums in an export, and those that `datasets` writes beside its
own. In a folder they are skipped; a path that names one file reads it."""
_RUN_FOLDER: Final = re.compile(r"/data/[^/]+/[^/]+/[0-9a-f]{16}$")
"""The data folder of a run: dataset, stage, key."""

UNKNOWN: Final = "unknown suffix, or a file like README"
HIDDEN: Final = "name begins with . or _"
OURS: Final = "written by datakit"
TWICE: Final = "link to what is already read"
SPECIAL: Final = "no regular file but a FIFO, a socket or a device"
DANGLING: Final = "link to a file that does not exist"


@dataclass(frozen=True, slots=True, order=True)
class Skipped:
    """A file or a folder that was found and is not read."""

    path: str
    why: str
    """`UNKNOWN`, `HIDDEN`, `OURS`, `TWICE`, `SPECIAL` or `DANGLING`; or the split that it belongs to."""


def find(inputs: Sequence[str]) -> tuple[list[tuple[str, str, int]], list[Skipped]]:
    """All files that the inputs name, as (path, name, bytes) sorted by name, and what was skipped in folders.

    The same set of files gives the same list; the order and the repetition of inputs do not matter.

    Raises:
        InputError: no input, a file that is missing, a glob or a folder without any file, a name that is not UTF-8.
    """
    if not inputs:
        raise InputError("no inputs: name at least one file, glob or folder to read")
    sizes: dict[str, int] = {}
    skipped: list[Skipped] = []
    for given in map(str, inputs):
        before = len(skipped)
        found = dict(_url_files(given, skipped) if is_url(given) else _local_files(given, skipped))
        if not found:
            why = "".join(f"; {_shown(s.path)}: {s.why}" for s in skipped[before:][:3])
            known = ", ".join([*SUFFIXES, *COMPRESSED])
            raise InputError(f"{_shown(given)}: no readable file there{why}; known suffixes are {known}")
        sizes |= found
    if strange := [path for path in sizes if _shown(path) != path]:
        name = os.fsencode(os.path.basename(strange[0]))
        raise InputError(
            f"{_shown(strange[0])}: its name is not UTF-8 ({name!r}), so that no row could name its file; rename the "
            "file, or its folder"
        )
    # a file's name is its path relative to the common parent folder, with forward slashes
    parts = {path: (path if is_url(path) else Path(path).as_posix()).split("/") for path in sizes}
    shared = len(os.path.commonprefix([part[:-1] for part in parts.values()]))  # noqa: RUF071 (of lists: part by part)
    listed = sorted(((path, "/".join(parts[path][shared:]), size) for path, size in sizes.items()), key=lambda f: f[1])
    return listed, sorted({replace(s, path=_shown(s.path)) for s in skipped if s.path not in sizes})


def absolute(inputs: Sequence[str]) -> list[str]:
    """The inputs as absolute paths; URLs as they are."""
    return [path if is_url(path) else os.path.abspath(os.path.expanduser(path)) for path in map(str, inputs)]


def _shown(path: str) -> str:
    """A path that can be printed: replacement characters for bytes that are not UTF-8."""
    return os.fsencode(path).decode(errors="replace")


def shortened(names: Sequence[str], most: int) -> str:
    """Some names for people, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def suffixes_of(name: str) -> tuple[str, str]:
    """(format, compression) from a file's suffixes; "" for each that they do not name."""
    stem, last = os.path.splitext(name.lower())
    if last in COMPRESSED:
        return SUFFIXES.get(os.path.splitext(stem)[1], ""), COMPRESSED[last]
    return SUFFIXES.get(last, ""), ""


# Where files lie.


class _Entry(NamedTuple):
    path: str
    name: str
    is_folder: bool
    size: int
    is_link: bool = False


def _on_disk(folder: str) -> list[_Entry]:
    """What is in a folder of this machine, by name.

    Raises:
        InputError: it cannot be listed.
    """
    try:
        with os.scandir(folder) as found:
            return [
                _Entry(e.path, e.name, e.is_dir(), e.stat().st_size if e.is_file() else -1, e.is_symlink())
                for e in sorted(found, key=lambda e: e.name)
            ]
    except OSError as e:
        raise InputError(f"{folder}: cannot be listed: {e.strerror or e}") from e


def _on_store(prefix: str, files: dict[str, int]) -> Callable[[str], list[_Entry]]:
    """What is in a folder of an object store, from one listing of all its files by their path."""
    folders = dict[str, dict[str, _Entry]]()
    for path, size in files.items():
        folder, _, name = path.rpartition("/")
        folders.setdefault(prefix + folder, {})[name] = _Entry(prefix + path, name, False, size)
        while "/" in folder:
            above, _, name = folder.rpartition("/")
            folders.setdefault(prefix + above, {})[name] = _Entry(prefix + folder, name, True, 0)
            folder = above
    return lambda folder: [entry for _, entry in sorted(folders.get(folder, {}).items())]


def _local_files(given: str, skipped: list[Skipped]) -> Iterator[tuple[str, int]]:
    path = os.path.abspath(os.path.expanduser(given))
    if not os.path.exists(path) and glob.has_magic(given):
        base = os.path.dirname(_before_magic(path) + "x")
        pattern = os.path.relpath(path, base).split(os.sep) + [""] * given.endswith("/")
        yield from _walk(base, tuple(pattern), _on_disk, skipped) if os.path.isdir(base) else ()
    elif os.path.isdir(path):
        yield from _walk(path, None, _on_disk, skipped)
    elif os.path.isfile(path):
        yield path, os.path.getsize(path)
    elif os.path.exists(path):
        raise InputError(f"{given}: is {SPECIAL}, and datakit reads a file more than once; write its bytes into a file")
    else:
        link = f"is a link to {os.readlink(path)}, which does not exist" if os.path.islink(path) else ""
        raise InputError(f"{given}: {link or 'no such file or folder'}")


def _before_magic(pattern: str) -> str:
    return re.split(r"[*?\[]", pattern)[0]


def _url_files(given: str, skipped: list[Skipped]) -> Iterator[tuple[str, int]]:
    """The files of a URL.

    Raises:
        InputError: there is nothing, it cannot be listed, it has settings, or an object has a key that is no path.
    """
    from pyarrow import fs

    given = spelled(given)
    refuse_settings(given)
    system, inner = filesystem(given)
    prefix = given[: len(given) - len(inner)] if given.endswith(inner) else given.split("://")[0] + "://"
    has_magic, pattern = glob.has_magic(inner), None
    try:
        whole = has_magic and given.split("://")[0] not in SCHEMES  # there, a key may hold these characters
        info = None if whole or given.endswith("/") else system.get_file_info(inner)
        if info is not None and info.type == fs.FileType.File:
            yield prefix + info.path, info.size
            return
        folder = _before_magic(inner).rpartition("/")[0] if has_magic else inner.rstrip("/")
        listed = system.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    except (*reading_errors(), pa.ArrowException) as e:
        raise InputError(f"{given}: cannot be listed: {first_line(e)}") from e
    if not listed:
        raise InputError(f"{given}: no such file or folder, no file matches, or there is no such bucket")
    if has_magic:
        pattern = tuple(inner.rstrip("/").removeprefix(f"{folder}/").split("/") + [""] * given.endswith("/"))
    files = {i.path: i.size for i in listed if i.type == fs.FileType.File}
    for path, size in _walk(prefix + folder, pattern, _on_store(prefix, files), skipped):
        if any(part in ("", ".", "..") for part in path.removeprefix(f"{prefix}{folder}/").split("/")):
            raise InputError(f"{path}: a key with an empty part, `.` or `..` is no path; copy it to another")
        yield path, size


Pattern = tuple[str, ...] | None
"""The parts of a pattern that a path must still match; "" at its end: folders alone. None: all data files are read."""


def _walk(
    base: str, pattern: Pattern, listed: Callable[[str], list[_Entry]], skipped: list[Skipped]
) -> Iterator[tuple[str, int]]:
    """(path, bytes) of the files below a folder, each once: those that match the pattern, with any name, and the data
    files below folders that match it. `*` stays within a folder, `**` does not, as in Python's `glob`.

    Links are followed last, and only if what they lead to was not read under its own path. So a circle of links ends,
    and no row is read twice.
    """
    entries, real = cache(listed), os.path.realpath if listed is _on_disk else str
    waiting, links, linked = [(base, pattern)], list[tuple[str, Pattern]](), list[_Entry]()
    folders, files = set[tuple[str, Pattern]](), set[str]()
    if pattern is None and _is_ours(base, entries):
        skipped.append(Skipped(base, OURS))
        return
    while waiting or links:
        is_link = not waiting
        folder, pattern = links.pop(links.index(min(links))) if is_link else waiting.pop()
        pattern, own = None if pattern in ((), ("",)) else pattern, real(folder)
        if (own, pattern) in folders:
            skipped += [Skipped(folder, TWICE)] * is_link
            continue
        folders.add((own, pattern))
        head, rest = (pattern[0], pattern[1:]) if pattern else ("", ())
        if head == "**" and rest:
            waiting.append((folder, rest))
        for entry in entries(folder):
            if pattern is None and entry.name.startswith((".", "_")):
                skipped += [Skipped(entry.path, HIDDEN)] * entry.is_folder
            elif pattern and not _fits(entry.name, head):
                continue
            elif entry.is_folder:
                if _is_ours(entry.path, entries):
                    skipped.append(Skipped(entry.path, OURS))
                else:
                    (links if entry.is_link else waiting).append((entry.path, pattern if head == "**" else rest))
            elif pattern is None and not _is_data(entry.name):
                skipped.append(Skipped(entry.path, UNKNOWN))
            elif not rest and f"{own}/{entry.name}" not in files:
                files.add(f"{own}/{entry.name}")
                if entry.size >= 0 and entry.is_link:
                    linked.append(entry)
                elif entry.size >= 0:
                    yield entry.path, entry.size
                else:
                    skipped.append(Skipped(entry.path, SPECIAL if os.path.exists(entry.path) else DANGLING))
    for entry in sorted(linked):
        if (own := real(entry.path)) in files:
            skipped.append(Skipped(entry.path, TWICE))
        else:
            files.add(own)
            yield entry.path, entry.size


def _fits(name: str, part: str) -> bool:
    """Whether a name matches one part of a pattern; a hidden one only where the part begins with a dot, too."""
    hidden = name.startswith(".") and not part.startswith(".")
    return not hidden and (part == "**" or fnmatch.fnmatchcase(name, part))


def _is_data(name: str) -> bool:
    """Whether a file of a folder is read: its suffix names a format, or it has none but that of a compression."""
    form, compression = suffixes_of(name)
    stem = PurePath(name).stem if compression else name
    return not ABOUT.match(name) and bool(form or not PurePath(stem).suffix)


def _is_ours(folder: str, entries: Callable[[str], list[_Entry]]) -> bool:
    """Whether datakit wrote a folder: a packed dataset, the data folder of a run, or a folder of manifests."""
    there, plain = {entry.name: entry.path for entry in entries(folder)}, PurePath(folder.replace(os.sep, "/"))
    if ".work" in there or (_RUN_FOLDER.search(str(plain)) and not there.keys().isdisjoint(ROLES)):
        return True
    of_manifests = plain.parent.name == "manifests"
    named = [
        path for name, path in there.items() if name == "manifest.json" or (of_manifests and name.endswith(".json"))
    ]
    return any(map(_is_manifest, named))


def _is_manifest(path: str) -> bool:
    try:
        with open_binary(path) as opened:
            body = json.load(opened)
    except (InputError, OSError, ValueError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("format") == FORMAT


# Splits: what the names of files say.

_NUMBERED: Final = re.compile(r"^(?P<split>\w[\w.]*?)-\d{5}-of-\d{5}")
"""How Hub data sets name the files of a split: `train-00000-of-00014.parquet`."""
_SPLITS: Final = {"train": "train", "training": "train", "test": "test", "testing": "test", "eval": "test",
                  "evaluation": "test", "validation": "validation", "valid": "validation", "val": "validation",
                  "dev": "validation"}  # fmt: skip
"""Names of files and folders -> the split that they say, as the `datasets` library has them."""
Found = list[tuple[str, str, int]]


def split_of(name: str) -> str:
    """The split that a file says it belongs to; "" if it says none.

    Its name without suffixes and a number at the end, or that of a folder which it is in, is the name of a split. In
    the Hub's form it is any name, if no folder says another one (`train/data-00000-of-00001.arrow`).
    """
    path = PurePath(name)
    numbered = _NUMBERED.match(path.name)
    stem = numbered["split"] if numbered else path.name.lower()
    while PurePath(stem).suffix in (*SUFFIXES, *COMPRESSED):
        stem = PurePath(stem).stem
    names = [re.sub(r"[-_.]?\d+$", "", stem), *(part.lower() for part in reversed(path.parts[:-1]))]
    known = next((name for name in names if name in _SPLITS), names[0])
    return numbered["split"] if numbered and known == names[0] else _SPLITS.get(known, "")


def of_split(found: Found, inputs: Sequence[str], wanted: str) -> tuple[Found, list[Skipped], str]:
    """(the files of the wanted splits, those of other splits, a line for people).

    Raises:
        UsageError: a folder or a glob has several splits, or there is no such split.
    """
    paths = absolute(inputs)
    bases = [_before_magic(path).rpartition("/")[0] if glob.has_magic(path) else path for path in paths]
    splits = {}
    for path, _, _ in found:  # only what stands below the folder or the glob that was named says something
        base = "" if path in paths else next((base for base in bases if path.startswith(base + "/")), "")
        splits[path] = split_of(path[len(base) + 1 :] if base else PurePath(path).name)
    counts = Counter(filter(None, splits.values()))
    there = ", ".join(f"{split} ({n} file{'s'[: n != 1]})" for split, n in sorted(counts.items()))
    given = shortened(list(map(str, inputs)), 3)
    asked = set(map(str.strip, wanted.split(","))) - {""}
    if "all" in asked:
        return found, [], ""
    if missing := asked - counts.keys():
        there = there or "no file whose name or folder says a split"
        raise UsageError(f"{given}: there is no split {', '.join(sorted(missing))}; there is {there}")
    if asked:
        left = [Skipped(path, f"split {split or 'unknown'}") for path, split in splits.items() if split not in asked]
        return [file for file in found if splits[file[0]] in asked], left, ""
    several = {split for path, split in splits.items() if split and path not in paths}
    if len(several) > 1 and any(split.startswith("train") for split in several):
        raise UsageError(
            f"{given}: several splits are there: {there}. Name what is read, as --split train "
            '(several with commas), or --split all; in a recipe, split = "train" under [ingest]'
        )
    return found, [], f"files of several splits are read: {there}" if len(counts) > 1 else ""
