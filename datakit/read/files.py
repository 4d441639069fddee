"""From files, globs, folders and URLs to one sorted list of files: what is read, and in which order."""

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from datakit.errors import InputError, MissingExtraError

SUFFIXES: Final = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".markdown": "text",
}
COMPRESSED: Final = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bz2",
    ".xz": "xz",
    ".lz4": "lz4",
}
ABOUT: Final = re.compile(r"(?i)^(readme|license|licence|changelog|contributing|notice|citation)\b")
"""Files about the data rather than of it: in a folder they are left out, named on their own they are read."""

_URL = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")
_NATIVE = ("s3://", "gs://", "gcs://", "hdfs://")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One input file, and how it is to be read."""

    path: str
    """Where it lies: an absolute path or a URL."""
    name: str
    """Its path from the common parent folder of all inputs: the same wherever that folder lies."""
    format: str
    compression: str
    bytes: int
    header: tuple[str, ...] = ()
    """Column names of a CSV file."""
    delimiter: str = ","
    """Between the cells of a CSV file."""

    @property
    def is_local(self) -> bool:
        """Whether workers can read parts of it themselves."""
        return not is_url(self.path)


def is_url(path: str) -> bool:
    """Whether a path names a remote file system."""
    return _URL.match(path) is not None


def find(inputs: Sequence[str]) -> tuple[list[tuple[str, str, int]], list[str]]:
    """Every file that the inputs name, as (path, name, bytes) sorted by name; and what lies beside in folders, unread.

    The same set of files gives the same list, however it was named: order and repetition do not matter.

    Raises:
        InputError: no input, a file that is missing, a glob or a folder without any file.
    """
    if not inputs:
        raise InputError("no inputs: name at least one file, glob or folder to read")
    sizes: dict[str, int] = {}
    skipped: list[str] = []
    for given in inputs:
        found = list(_expand(str(given), skipped))
        if not found:
            raise InputError(
                f"{given}: no readable file there; known suffixes are {', '.join([*SUFFIXES, *COMPRESSED])}"
            )
        sizes.update(found)
    names = _names(list(sizes))
    listed = sorted(((path, names[path], size) for path, size in sizes.items()), key=lambda f: f[1])
    return listed, sorted(set(skipped) - sizes.keys())


def open_binary(path: str) -> BinaryIO:
    """Open a local file or a URL for reading.

    Raises:
        InputError: it cannot be opened; the message says why.
    """
    try:
        if is_url(path):
            fs, inner = filesystem(path)
            return cast(BinaryIO, fs.open_input_file(inner))
        return open(path, "rb")
    except OSError as e:
        raise InputError(f"{path}: cannot be opened: {e.strerror or e}") from e


def filesystem(url: str) -> tuple[Any, str]:
    """(Arrow file system, path in it) of a URL: s3, gs and hdfs by Arrow itself, all others through fsspec.

    Raises:
        InputError: the URL's scheme is unknown.
        MissingExtraError: a package for that scheme is not installed.
    """
    from pyarrow import fs

    if url.startswith(_NATIVE):
        try:
            return cast(tuple[Any, str], fs.FileSystem.from_uri(url.replace("gcs://", "gs://", 1)))
        except (OSError, ValueError) as e:
            raise InputError(f"{url}: no file system for it: {e}") from e
    try:
        from fsspec.core import url_to_fs

        found, path = url_to_fs(url)
    except ImportError as e:
        raise MissingExtraError(f"{url}: a package for this kind of URL is missing: {e}") from e
    except (OSError, ValueError) as e:
        raise InputError(f"{url}: no file system for it: {e}") from e
    return fs.PyFileSystem(fs.FSSpecHandler(found)), path


def suffixes_of(name: str) -> tuple[str, str]:
    """(format, compression) that a file's suffixes name, "" for what they do not say."""
    stem, last = os.path.splitext(name.lower())
    if last in COMPRESSED:
        return SUFFIXES.get(os.path.splitext(stem)[1], ""), COMPRESSED[last]
    return SUFFIXES.get(last, ""), ""


def _expand(given: str, skipped: list[str]) -> Iterator[tuple[str, int]]:
    if is_url(given):
        yield from _expand_url(given, skipped)
        return
    path = os.path.abspath(os.path.expanduser(given))
    if not os.path.exists(path) and glob.has_magic(given):
        for match in glob.glob(path, recursive=True):
            if os.path.isdir(match):
                yield from _folder(match, skipped)
            else:
                yield match, os.path.getsize(match)
    elif os.path.isdir(path):
        yield from _folder(path, skipped)
    elif os.path.isfile(path):
        yield path, os.path.getsize(path)
    else:
        raise InputError(f"{given}: no such file or folder")


def _folder(folder: str, skipped: list[str]) -> Iterator[tuple[str, int]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith((".", "_"))]
        for name in names:
            path = os.path.join(parent, name)
            if _is_data(name):
                yield path, os.path.getsize(path)
            elif not name.startswith((".", "_")):
                skipped.append(path)


def _is_data(name: str) -> bool:
    return bool(suffixes_of(name)[0]) and not name.startswith((".", "_")) and not ABOUT.match(name)


def _expand_url(given: str, skipped: list[str]) -> Iterator[tuple[str, int]]:
    from pyarrow import fs

    system, inner = filesystem(given)
    prefix = given[: len(given) - len(inner)] if given.endswith(inner) else given.split("://")[0] + "://"
    fixed = re.split(r"[*?\[]", inner)[0]
    if fixed != inner:
        infos = system.get_file_info(fs.FileSelector(fixed.rsplit("/", 1)[0], recursive=True, allow_not_found=True))
        matching = [i for i in infos if i.type == fs.FileType.File and fnmatch.fnmatch(i.path, inner)]
    else:
        info = system.get_file_info(inner)
        if info.type == fs.FileType.NotFound:
            raise InputError(f"{given}: no such file or folder")
        if info.type == fs.FileType.File:
            yield prefix + info.path, info.size
            return
        infos = system.get_file_info(fs.FileSelector(inner, recursive=True))
        matching = [i for i in infos if i.type == fs.FileType.File and _is_data(i.base_name)]
        skipped += [prefix + i.path for i in infos if i.type == fs.FileType.File and not _is_data(i.base_name)]
    yield from ((prefix + i.path, i.size) for i in matching)


def _names(paths: list[str]) -> dict[str, str]:
    """Each path from the common parent folder on, with forward slashes."""
    local = [p for p in paths if not is_url(p)]
    if local and len(local) < len(paths):
        return {p: p if is_url(p) else Path(p).as_posix() for p in paths}
    split = [p.split("/") if is_url(p) else list(Path(p).parts) for p in paths]
    folders = [parts[:-1] for parts in split]
    shared = next(
        (i for i, level in enumerate(zip(*folders, strict=False)) if len(set(level)) > 1), min(map(len, folders))
    )
    return {p: "/".join(parts[shared:]) for p, parts in zip(paths, split, strict=True)}
