"""From files, globs, folders and URLs to one sorted list of files: what is read, and in which order."""

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from datakit.errors import InputError, MissingExtraError
from datakit.read.folders import OURS, UNKNOWN, Skipped, Walk

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


def find(inputs: Sequence[str]) -> tuple[list[tuple[str, str, int]], list[Skipped]]:
    """Every file that the inputs name, as (path, name, bytes) sorted by name; and what lies beside in folders, unread.

    The same set of files gives the same list, however it was named: order and repetition do not matter.

    Raises:
        InputError: no input, a file that is missing, a glob or a folder without any file, a name that is not UTF-8.
    """
    if not inputs:
        raise InputError("no inputs: name at least one file, glob or folder to read")
    sizes: dict[str, int] = {}
    skipped: list[Skipped] = []
    for given in inputs:
        before = len(skipped)
        found = list(_expand(str(given), skipped))
        if not found:
            raise InputError(_nothing(_shown(str(given)), skipped[before:]))
        sizes.update(found)
    for path in sizes:
        _check_name(path)
    names = _names(list(sizes))
    listed = sorted(((path, names[path], size) for path, size in sizes.items()), key=lambda f: f[1])
    return listed, sorted({replace(s, path=_shown(s.path)) for s in skipped if s.path not in sizes})


def _nothing(given: str, skipped: list[Skipped]) -> str:
    ours = [_shown(s.path) for s in skipped if s.why == OURS]
    if ours:
        return (
            f"{given}: no file to read there, for {ours[0]} was written by datakit, and its output is not read "
            "as input; name the files in it if that is what you want"
        )
    return f"{given}: no readable file there; known suffixes are {', '.join([*SUFFIXES, *COMPRESSED])}"


def _check_name(path: str) -> None:
    """Refuse a path that no UTF-8 text can hold: rows, manifests and reports name their files.

    Raises:
        InputError: the path's bytes are not UTF-8.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        name = os.fsencode(os.path.basename(path))
        raise InputError(
            f"{_shown(path)}: its name is not UTF-8 ({name!r}), so rows could not say where they are from; "
            "rename the file, or the folder it lies in"
        ) from None


def _shown(path: str) -> str:
    """A path for people: bytes that are not UTF-8 as replacement characters."""
    return os.fsencode(path).decode(errors="replace")


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


def _expand(given: str, skipped: list[Skipped]) -> Iterator[tuple[str, int]]:
    if is_url(given):
        yield from _expand_url(given, skipped)
        return
    path = os.path.abspath(os.path.expanduser(given))
    walk = Walk(_is_data, skipped)
    if not os.path.exists(path) and glob.has_magic(given):
        base = os.path.dirname(re.split(r"[*?\[]", path)[0] + "x")
        yield from walk.matched(glob.glob(path, recursive=True), base)
    elif os.path.isdir(path):
        yield from walk.below([path])
    elif os.path.isfile(path):
        yield path, os.path.getsize(path)
    else:
        raise InputError(f"{given}: no such file or folder")


def _is_data(name: str) -> bool:
    return bool(suffixes_of(name)[0]) and not name.startswith((".", "_")) and not ABOUT.match(name)


def _expand_url(given: str, skipped: list[Skipped]) -> Iterator[tuple[str, int]]:
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
        skipped += [
            Skipped(prefix + i.path, UNKNOWN) for i in infos if i.type == fs.FileType.File and not _is_data(i.base_name)
        ]
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
