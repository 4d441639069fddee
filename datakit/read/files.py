"""Input files: find and sort them, open them (local, remote, compressed), cut them into segments of whole records."""

import bz2
import fnmatch
import glob
import json
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, cast

import numpy as np
import pyarrow as pa

from datakit.errors import InputError, MissingExtraError
from datakit.manifest import FORMAT, ROLES
from datakit.object_store import arrow_s3, first_line, fsspec_store, reading_errors
from datakit.read.layouts.record import MisfitError
from datakit.storage import SCHEMES, refuse_settings, spelled

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
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".warc": "warc",
    ".wet": "warc",
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
"""Names of files that describe the data. In a folder they are skipped; a path that names one file reads it."""

_RUN_FOLDER: Final = re.compile(r"/data/[^/]+/[^/]+/[0-9a-f]{16}$")
"""The data folder of a run: dataset, stage, key."""

UNKNOWN: Final = "unknown suffix, or a file like README"
HIDDEN: Final = "name begins with . or _"
OURS: Final = "written by datakit"
TWICE: Final = "link to a folder that is already read"
SPECIAL: Final = "no regular file but a FIFO, a socket or a device"

DANGLING: Final = -1
"""The size of a link to a file that does not exist. It is an input file without records, whose place is quarantined."""
EXPANSION_FROM: Final = 64 << 20
"""Bytes that any compressed file may grow to."""

BLOCK: Final = 4 << 20
CHUNK: Final = 1 << 18
"""Compressed bytes that are decompressed at once."""
MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
}
_MAKERS: Final[dict[str, Callable[[], Any]]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=1 << 30),  # `xz -9` needs 65 MiB
}
_ZLIB: Final = type(zlib.decompressobj())
_ERRORS: Final = (zlib.error, lzma.LZMAError, OSError, ValueError)

BOM: Final = b"\xef\xbb\xbf"
_PIECE: Final = 1 << 18
Spans = np.ndarray[Any, Any]

_URL = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")
_CREDENTIALS = re.compile(r"^(s3|gs|az|https?)://[^/]*@")


@dataclass(frozen=True, slots=True, order=True)
class Skipped:
    """A file or a folder that was found and is not read."""

    path: str
    why: str
    """`UNKNOWN`, `HIDDEN`, `OURS`, `TWICE` or `SPECIAL`."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """What a file may cost; see `IngestConfig`."""

    record_bytes: int = 256 << 20
    expansion: int = 300

    def check_record(self, size: int) -> None:
        """Raises a `MisfitError` for a record with too many bytes."""
        if size > self.record_bytes:
            raise MisfitError("too_long", self.too_long(size))

    def too_long(self, size: int) -> str:
        """Why a record is not read."""
        return f"the record has {size:,} bytes or more, and max_record_mb allows {self.record_bytes >> 20} MiB"

    def check_expansion(self, name: str, read: int, made: int) -> None:
        """Raises a `BrokenStreamError` if `read` bytes of a file have become too many."""
        if made > EXPANSION_FROM + self.expansion * read:
            raise BrokenStreamError(
                "too_large_unpacked",
                f"{read:,} bytes of {name} became {made:,} bytes, more than {self.expansion} times as many; what "
                "follows is not read. If the file is good, raise max_expansion",
            )


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One input file, and how it is read."""

    path: str
    """An absolute path, or a URL; for a table in memory its name."""
    name: str
    """The path relative to the common parent folder of all inputs, so that the folder can be moved."""
    format: str
    """"jsonl", "json" (an array), "json_objects", "csv", "text", "html", "warc", "parquet", "arrow", "arrow_stream",
    "table" or, for a link to nothing, "dangling"."""
    compression: str
    bytes: int
    header: tuple[str, ...] = ()
    """Column names of a CSV file."""
    delimiter: str = ","
    """The character between the cells of a CSV file."""
    nested: tuple[str, ...] = ()
    """Columns of a CSV file whose cells are lists and objects."""
    limits: FileLimits = field(default_factory=FileLimits)

    @property
    def is_local(self) -> bool:
        """Whether it lies on this machine's file system."""
        return not is_url(self.path)

    @property
    def has_ranges(self) -> bool:
        """Whether workers can read parts of it themselves: here, or on an object store."""
        return self.is_local or self.path.split("://")[0] in SCHEMES


# Find: from files, globs, folders and URLs to one sorted list of files.


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
    for given in inputs:
        before = len(skipped)
        found = list(_expand(str(given), skipped))
        if not found:
            raise InputError(_nothing_found(_shown(str(given)), skipped[before:]))
        sizes.update(found)
    for path in sizes:
        _check_name(path)
    names = _names(list(sizes))
    listed = sorted(((path, names[path], size) for path, size in sizes.items()), key=lambda f: f[1])
    return listed, sorted({replace(s, path=_shown(s.path)) for s in skipped if s.path not in sizes})


def _nothing_found(given: str, skipped: list[Skipped]) -> str:
    ours = [_shown(s.path) for s in skipped if s.why == OURS]
    if ours:
        return (
            f"{given}: no file to read there: {ours[0]} was written by datakit, and the output of datakit is not read "
            "as input; name the files in it if you want to read them"
        )
    return f"{given}: no readable file there; known suffixes are {', '.join([*SUFFIXES, *COMPRESSED])}"


def _check_name(path: str) -> None:
    """Refuse a path that is not UTF-8, because rows, manifests and reports name their files.

    Raises:
        InputError: the path's bytes are not UTF-8.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        name = os.fsencode(os.path.basename(path))
        raise InputError(
            f"{_shown(path)}: its name is not UTF-8 ({name!r}), so that rows could not name their file; "
            "rename the file, or its folder"
        ) from None


def _shown(path: str) -> str:
    """A path that can be printed: replacement characters for bytes that are not UTF-8."""
    return os.fsencode(path).decode(errors="replace")


def suffixes_of(name: str) -> tuple[str, str]:
    """(format, compression) from a file's suffixes; "" for each that they do not name."""
    stem, last = os.path.splitext(name.lower())
    if last in COMPRESSED:
        return SUFFIXES.get(os.path.splitext(stem)[1], ""), COMPRESSED[last]
    return SUFFIXES.get(last, ""), ""


def _expand(given: str, skipped: list[Skipped]) -> Iterator[tuple[str, int]]:
    if is_url(given):
        yield from _expand_url(given, skipped)
        return
    path = os.path.abspath(os.path.expanduser(given))
    walk = _Walk(skipped)
    if not os.path.exists(path) and glob.has_magic(given):
        base = os.path.dirname(re.split(r"[*?\[]", path)[0] + "x")
        matching = glob.glob(path + os.sep * given.endswith("/"), recursive=True)
        yield from walk.matched([found.rstrip(os.sep) for found in matching], base)
    elif os.path.isdir(path):
        yield from walk.below([path])
    elif os.path.isfile(path):
        yield path, os.path.getsize(path)
    elif os.path.exists(path):
        raise InputError(f"{given}: is {SPECIAL}, and datakit reads a file more than once; write its bytes into a file")
    elif os.path.islink(path):
        raise InputError(f"{given}: is a link to {os.readlink(path)}, which does not exist")
    else:
        raise InputError(f"{given}: no such file or folder")


def _is_data(name: str) -> bool:
    return bool(suffixes_of(name)[0]) and not name.startswith((".", "_")) and not ABOUT.match(name)


def _expand_url(given: str, skipped: list[Skipped]) -> Iterator[tuple[str, int]]:
    """The files of a URL. Patterns, folders and what is skipped in them are as on this machine's file system.

    Raises:
        InputError: there is nothing, it cannot be listed, it has settings, or an object has a key that is no path.
    """
    from pyarrow import fs

    given = spelled(given)
    refuse_settings(given)
    system, inner = filesystem(given)
    prefix = given[: len(given) - len(inner)] if given.endswith(inner) else given.split("://")[0] + "://"
    fixed, wanted = inner, list[str]()
    try:
        whole = glob.has_magic(inner) and given.split("://")[0] not in SCHEMES
        info = None if whole or given.endswith("/") else system.get_file_info(inner)
        if info is not None and info.type == fs.FileType.File:
            yield prefix + info.path, info.size
            return
        if glob.has_magic(inner):
            fixed = re.split(r"[*?\[]", inner)[0].rpartition("/")[0]
            wanted = inner.rstrip("/").removeprefix(f"{fixed}/").split("/")
        listed = system.get_file_info(fs.FileSelector(fixed, recursive=True, allow_not_found=True))
    except (*reading_errors(), pa.ArrowException) as e:
        raise InputError(f"{given}: cannot be listed: {first_line(e)}") from e
    if not listed:
        raise InputError(f"{given}: {_missing(system, given, fixed, bool(wanted))}")
    files = {i.path: i.size for i in listed if i.type == fs.FileType.File}
    ours = _ours_among(prefix, files)
    for path, size in files.items():
        parts = path.removeprefix(f"{fixed}/").split("/")
        ends = _ends(parts, wanted)
        if not ends or (min(ends) == len(parts) and given.endswith("/")):  # `*/` is for folders alone
            continue
        above = [path[: len(path) - len("/".join(parts[n:])) - 1] for n in range(bool(wanted), len(parts))]
        folders = [n for n in range(min(ends), len(parts) - 1) if parts[n] not in (".", "..")]
        hidden = next((n for n in folders if parts[n].startswith((".", "_"))), None)
        if own := next((folder for folder in above if folder in ours), None):
            skipped.append(Skipped(prefix + own, OURS))
        elif len(parts) in ends or (hidden is None and _is_data(parts[-1])):
            if any(part in ("", ".", "..") for part in parts):
                raise InputError(
                    f"{prefix}{path}: a key with an empty part, `.` or `..` is no path; copy it to another"
                )
            yield prefix + path, size
        elif hidden is not None:
            skipped.append(Skipped(prefix + path[: len(path) - len("/".join(parts[hidden + 1 :])) - 1], HIDDEN))
        elif not parts[-1].startswith((".", "_")):
            skipped.append(Skipped(prefix + path, UNKNOWN))


def _missing(system: Any, given: str, folder: str, pattern: bool) -> str:
    """Why a URL has no files: what is missing."""
    from pyarrow import fs

    bucket = folder.split("/")[0]
    with suppress(*reading_errors()):  # some may list a folder, but not ask for the bucket
        if given.split("://")[0] in SCHEMES and system.get_file_info(bucket).type == fs.FileType.NotFound:
            return f"there is no such bucket ({bucket}); make it, or name another"
    return "no file matches" if pattern else "no such file or folder"


def _ends(parts: Sequence[str], wanted: Sequence[str]) -> set[int]:
    """How many first parts of a path a pattern matches, as `glob` does: `*` stays within a part, `**` does not."""
    ends = {0}
    for part in wanted:
        visible = {n for n, own in enumerate(parts) if part.startswith(".") or not own.startswith(".")}
        if part == "**":
            for n in range(len(parts)):
                ends |= {n + 1} if n in ends and n in visible else set()
        else:
            ends = {n + 1 for n in ends & visible if fnmatch.fnmatchcase(parts[n], part)}
    return ends


def _ours_among(prefix: str, paths: Iterable[str]) -> set[str]:
    """The folders of a listing that datakit wrote; see `_is_ours`."""
    ours = set[str]()
    for path in paths:
        folder, _, name = path.rpartition("/")
        above, _, role = folder.rpartition("/")
        if "/.work/" in path:
            ours.add(path.partition("/.work/")[0])
        elif role in ROLES and _RUN_FOLDER.search(above):
            ours.add(above)
        elif folder not in ours and name.endswith(".json") and (name == "manifest.json" or _of_manifests(folder)):
            ours |= {folder} if _is_manifest(prefix + path) else set()
    return ours


def _names(paths: list[str]) -> dict[str, str]:
    """Path -> the same path relative to the common parent folder, with forward slashes."""
    local = [p for p in paths if not is_url(p)]
    if local and len(local) < len(paths):
        return {p: p if is_url(p) else Path(p).as_posix() for p in paths}
    split = [p.split("/") if is_url(p) else list(Path(p).parts) for p in paths]
    folders = [parts[:-1] for parts in split]
    shared = next(
        (i for i, level in enumerate(zip(*folders, strict=False)) if len(set(level)) > 1), min(map(len, folders))
    )
    return {p: "/".join(parts[shared:]) for p, parts in zip(paths, split, strict=True)}


class _Walk:
    """Walks the folders that one input names. Each folder and each file is returned once."""

    def __init__(self, skipped: list[Skipped]) -> None:
        self.skipped = skipped
        self._folders: set[str] = set()
        self._files: set[str] = set()
        self._ours: dict[str, bool] = {}

    def below(self, roots: Sequence[str]) -> Iterator[tuple[str, int]]:
        """The data files in these folders and below them, as (path, bytes).

        Links to folders are followed last, and only if the folder was not read under its own path. So a circle of
        links ends.

        Raises:
            InputError: a folder cannot be listed.
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
            if self._is_ours(at):
                self.skipped.append(Skipped(at, OURS))
                continue
            self._folders.add(real)
            yield from self._files_in(at, folders, links)
            folders.sort(reverse=True)
            links.sort(reverse=True)

    def matched(self, paths: Sequence[str], base: str) -> Iterator[tuple[str, int]]:
        """What a pattern matches below the folder `base`: files with any name, and the data files below folders."""
        theirs = [p for p in sorted(paths) if not self._in_ours(p, base)]
        yield from self.below([p for p in theirs if os.path.isdir(p)])
        for path in sorted(theirs, key=lambda p: (os.path.realpath(p) != p, p)):
            if not os.path.isdir(path):
                yield from self._once(path)

    def _in_ours(self, path: str, base: str) -> bool:
        above = os.path.dirname(path)
        while len(above) > len(base):
            if self._is_ours(above):
                self.skipped.append(Skipped(above, OURS))
                return True
            above = os.path.dirname(above)
        return False

    def _once(self, path: str) -> Iterator[tuple[str, int]]:
        """The file, unless it was returned before under another path of its folder."""
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if real in self._files:
            return
        self._files.add(real)
        if not os.path.exists(path):
            yield path, DANGLING
        elif os.path.isfile(path):
            yield path, _size(path)
        else:
            self.skipped.append(Skipped(path, SPECIAL))

    def _is_ours(self, folder: str) -> bool:
        if folder not in self._ours:
            self._ours[folder] = _is_ours(folder)
        return self._ours[folder]

    def _files_in(self, folder: str, folders: list[str], links: list[str]) -> Iterator[tuple[str, int]]:
        """The data files of one folder. The folders in it are added to the lists."""
        for entry in _entries(folder):
            hidden = entry.name.startswith((".", "_"))
            if entry.is_dir():
                if hidden:
                    self.skipped.append(Skipped(entry.path, HIDDEN))
                else:
                    (links if entry.is_symlink() else folders).append(entry.path)
            elif _is_data(entry.name):
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
    """Whether datakit wrote the folder: a packed dataset, the data folder of a run, or a folder of manifests."""
    if _is_manifest(os.path.join(folder, "manifest.json")) or os.path.isdir(os.path.join(folder, ".work")):
        return True
    if _RUN_FOLDER.search(folder.replace(os.sep, "/")):
        return any(os.path.isdir(os.path.join(folder, role)) for role in ROLES)
    if not _of_manifests(folder):
        return False
    return any(_is_manifest(e.path) for e in _entries(folder) if e.name.endswith(".json"))


def _of_manifests(folder: str) -> bool:
    return os.path.basename(os.path.dirname(folder)) == "manifests"


def _is_manifest(path: str) -> bool:
    try:
        with open_binary(path) as opened:
            body = json.load(opened)
    except (InputError, OSError, ValueError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("format") == FORMAT


# Open: local or remote, compressed or not.


def is_url(path: str) -> bool:
    """Whether a path is a URL."""
    return _URL.match(path) is not None


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
    except reading_errors() as e:
        raise InputError(f"{path}: cannot be opened: {getattr(e, 'strerror', '') or first_line(e)}") from e


def filesystem(url: str) -> tuple[Any, str]:
    """(Arrow file system, path in it) of a URL. Arrow itself reads s3, gs and hdfs, obstore az, fsspec all others.

    Raises:
        InputError: the URL's scheme is unknown, or the URL holds credentials.
        MissingExtraError: a package for that scheme is not installed.
    """
    from pyarrow import fs

    if found := _CREDENTIALS.match(url):
        raise InputError(f"{found[1]}://...: names credentials; give them by the environment or a profile")
    scheme, path = url.split("://", 1)
    bucket, stored = path.split("/")[0], scheme in SCHEMES
    if stored and (not bucket or glob.has_magic(bucket)):
        raise InputError(f"{url}: expected {scheme}://BUCKET/..., with the name of one bucket")
    if scheme == "az" or (scheme == "gs" and os.environ.get("STORAGE_EMULATOR_HOST")):
        return fs.PyFileSystem(fs.FSSpecHandler(fsspec_store(url))), path.rstrip("/")
    if stored or scheme == "hdfs":
        try:
            if scheme == "s3" and (options := arrow_s3()):
                return fs.S3FileSystem(**options), path.rstrip("/")
            # of the bucket alone: in a URI `%`, `#` and `?` mean something else than in a key
            found = fs.FileSystem.from_uri(f"{scheme}://{bucket}" if stored else url)
        except (OSError, ValueError) as e:
            raise InputError(f"{url}: no file system for it: {e}") from e
        return found[0], path.rstrip("/") if stored else found[1]
    try:
        from fsspec.core import url_to_fs

        found, path = url_to_fs(url)
    except ImportError as e:
        raise MissingExtraError(f"{url}: a package for this kind of URL is missing: {e}") from e
    except (OSError, ValueError) as e:
        raise InputError(f"{url}: no file system for it: {e}") from e
    return fs.PyFileSystem(fs.FSSpecHandler(found)), path


def compression_of(head: bytes) -> str:
    """The compression by a file's first bytes; "" for none."""
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")


class BrokenStreamError(Exception):
    """A compressed stream is truncated or damaged. Raised after all bytes before the damage were returned."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def blocks(file: SourceFile, size: int = BLOCK) -> Iterator[bytes]:
    """The uncompressed bytes of a file, for a file without compression `size` bytes at a time.

    Several compressed members or frames, one after another, are read as one stream.

    Raises:
        BrokenStreamError: the compressed stream is damaged, or grows beyond its limit; raised after the last good byte.
        InputError: the file cannot be opened or read.
    """
    with open_binary(file.path) as raw:
        try:
            if not file.compression:
                while block := raw.read(size):
                    yield block
                return
            made, maker = 0, _MAKERS.get(file.compression)
            for block in _members(raw, maker, file) if maker else _frames(raw, file):
                made += len(block)
                file.limits.check_expansion(file.name, file.bytes if raw.closed else raw.tell(), made)
                yield block
        except reading_errors() as e:
            raise InputError(f"{file.path}: cannot be read: {first_line(e)}") from e


def read_whole(path: str) -> tuple[bytes, bytes]:
    """(a file's bytes, the same decompressed), for lists and evaluation sets, which fit in memory.

    Raises:
        InputError: the file cannot be opened, read or decompressed.
    """
    with open_binary(path) as opened:
        raw = opened.read()
    compression = compression_of(raw[:8])
    if not compression:
        return raw, raw
    try:
        return raw, b"".join(blocks(SourceFile(path, path, "", compression, len(raw))))
    except BrokenStreamError as e:
        raise InputError(f"{path}: cannot be decompressed: {e}") from None


def _members(raw: BinaryIO, make: Callable[[], Any], file: SourceFile) -> Iterator[bytes]:
    """gzip, bz2, xz. After an error the stream is read again, byte by byte near the damage, to lose no good byte."""
    fed = done = 0

    def chunks(source: BinaryIO, until: int) -> Iterator[bytes]:
        nonlocal fed
        while data := source.read(CHUNK if fed < until else 1):
            yield data
            fed += len(data)

    try:
        for out in _inflate(chunks(raw, sys.maxsize), make):
            done += len(out)
            yield out
        return
    except _ERRORS as e:
        found, broken_at, fed = str(e), fed, 0
    except EOFError:
        raise _truncated(file) from None
    with open_binary(file.path) as again, suppress(*_ERRORS, EOFError):
        for out in _inflate(chunks(again, broken_at), make):
            if len(out) > done:
                yield out[done:]
            done = max(done - len(out), 0)
    raise _damaged(file, found)


def _inflate(chunks: Iterator[bytes], make: Callable[[], Any]) -> Iterator[bytes]:
    """Members one after another. Zeros between and after them are padding.

    Raises:
        EOFError: the last member is not complete.
    """
    decoder, fresh = make(), True
    for chunk in chunks:
        data = chunk
        while data := data.lstrip(b"\0") if fresh else data:
            fresh = False
            yield from _decompress(decoder, data)
            if not decoder.eof:
                break
            data, decoder, fresh = decoder.unused_data, make(), True
    if not fresh:
        raise EOFError


def _decompress(decoder: Any, data: bytes) -> Iterator[bytes]:
    """What some bytes of one member become, at most `BLOCK` bytes at a time: a few bytes can become gigabytes."""
    while True:
        out = decoder.decompress(data, BLOCK)
        if out:
            yield out
        data = decoder.unconsumed_tail if isinstance(decoder, _ZLIB) else b""
        if decoder.eof or (len(out) < BLOCK and not data):
            return


def _truncated(file: SourceFile) -> BrokenStreamError:
    said = f"the {file.compression} stream of {file.name} is truncated: it ends before its end mark"
    return BrokenStreamError("truncated_stream", said)


def _damaged(file: SourceFile, found: str) -> BrokenStreamError:
    return BrokenStreamError("corrupt_stream", f"the {file.compression} stream of {file.name} is damaged: {found}")


def _frames(raw: BinaryIO, file: SourceFile) -> Iterator[bytes]:
    """zstd and lz4, by Arrow. After an error the stream is read again in small steps, up to the last good byte."""
    codec, done = file.compression, 0
    try:
        stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec)
        while block := stream.read(BLOCK):
            done += len(block)
            yield block
        return
    except (OSError, pa.ArrowException) as e:
        found = str(e)
    with open_binary(file.path) as again:
        stream = pa.CompressedInputStream(pa.PythonFile(again, mode="r"), codec)
        left = done
        while left:
            left -= len(stream.read(min(left, BLOCK)))
        rest = bytearray()
        with suppress(OSError, pa.ArrowException):
            while byte := stream.read(1):
                rest += byte
    if rest:
        yield bytes(rest)
    if "runcated" in found:
        raise _truncated(file)
    raise _damaged(file, found)


# Cut: into segments that end where records end.


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of one file that holds whole records.

    Its bytes are `data`; for an uncompressed local file the worker reads the range `start:stop` itself. Columnar files
    have `groups` instead, tables in memory `table`.
    """

    file: int
    first_record: int
    first_line: int
    start: int
    stop: int
    data: bytes | None = None
    spans: Spans | None = None
    """int64[records, 3] of JSON values: start and stop in the segment's bytes, lines before the start. Of the records
    of a web archive: start, stop, and what is wrong with them."""
    groups: tuple[int, int] | None = None
    """Row groups (Parquet) or record batches (Arrow), half open."""
    table: pa.Table | None = None
    failure: tuple[str, str] | None = None
    """(reason, detail) if the file cannot be read beyond this segment."""
    members: bool = False
    """Whether the records of a web archive are gzip members, so that `start` and `stop` count compressed bytes."""
    unpacked: int | None = None
    """The uncompressed bytes of such a segment."""

    @property
    def bytes(self) -> int:
        """Uncompressed bytes."""
        return self.stop - self.start if self.unpacked is None else self.unpacked


Remaining = Callable[[], int]
"""How many bytes the current unit still takes; below 1: it is full, cut at the next record."""


class Cutter(Protocol):
    """Cuts one file into segments."""

    def __call__(self, file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
        """The segments of file number `index`; each has at least the remaining bytes at that time."""


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """Where a segment may end: its bytes, and the records and lines in it."""

    stop: int
    records: int
    lines: int
    spans: Spans | None = None


FindEnd = Callable[[bytearray, int, bool], SegmentEnd | None]
"""(bytes that begin with a record, wanted bytes, whether the file ends here) -> the first end of a record at or after
the wanted bytes; None if more bytes are needed."""


def cut_stream(file: SourceFile, index: int, remaining: Remaining, find_end: FindEnd) -> Iterator[Segment]:
    """Cut a file that is read once from its beginning to its end. A byte order mark is skipped."""
    keep, limits, skipping = bool(file.compression) or not file.has_ranges, file.limits, False
    buffer, base, record, line, wait = bytearray(), 0, 0, 0, 0
    for block, failure in _blocks_and_failure(file):
        at_end = block is None
        if skipping and block is not None:  # inside a line that is too long
            stop = block.find(b"\n") + 1
            base += stop or len(block)
            block, skipping = block[stop:] if stop else b"", not stop
        buffer += block or b""
        if base == 0 and buffer.startswith(BOM):
            del buffer[: len(BOM)]
            base = len(BOM)
        # The end of a long record is searched again only when twice the bytes are there: linear time in all.
        while buffer and (at_end or len(buffer) > max(remaining(), wait)):
            end, most = find_end(buffer, max(remaining(), 1), at_end), max(remaining(), 0) + limits.record_bytes
            if end is None and len(buffer) > most and (end := _last_end(buffer, find_end)) is None:
                why = "too_long", limits.too_long(len(buffer))
                yield Segment(index, record, line, base, base, b"", failure=why)
                if find_end is not line_end:
                    return
                base, record, line, wait, skipping = base + len(buffer), record + 1, line + 1, 0, True
                buffer.clear()
                break
            if end is None:
                wait = min(2 * len(buffer), most)
                break
            data = bytes(memoryview(buffer)[: end.stop]) if keep else None
            last = at_end and end.stop == len(buffer)
            stop, failed = base + end.stop, failure if last else None
            del buffer[: end.stop]
            yield Segment(index, record, line, base, stop, data, end.spans, failure=failed)
            base, record, line, wait = stop, record + end.records, line + end.lines, 0
            failure = None if last else failure
    if failure:
        yield Segment(index, record, line, base, base, b"", failure=failure)


def _last_end(data: bytearray, find_end: FindEnd) -> SegmentEnd | None:
    """The last end of a record in bytes whose last record goes on; None without any."""
    low, high = 0, len(data)
    while low < high:
        middle = (low + high + 1) // 2
        if copy(find_end)(data, middle, False) is None:  # a finder remembers what it found
            high = middle - 1
        else:
            low = middle
    return find_end(data, low, False) if low else None


def _blocks_and_failure(file: SourceFile) -> Iterator[tuple[bytes | None, tuple[str, str] | None]]:
    """(block, None) for each block of a file, then (None, the failure that ended the file or None)."""
    failure: tuple[str, str] | None = None
    try:
        for block in blocks(file):
            yield block, None
    except BrokenStreamError as e:
        failure = e.reason, e.detail
    yield None, failure


def cut_lines(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    """Cut at line ends. An uncompressed local file gives the same segments as by `cut_stream`, without their bytes.

    Raises:
        InputError: the file cannot be opened or read.
    """
    if file.compression or not file.is_local:
        yield from cut_stream(file, index, remaining, line_end)
        return
    with open_binary(file.path) as opened:
        try:
            base, line = len(BOM) if opened.read(len(BOM)) == BOM else 0, 0
            while True:
                opened.seek(base)
                stop, newlines, skip = _read_lines(opened, max(remaining(), 1), file.limits.record_bytes)
                if stop + skip == 0:
                    return
                if stop:
                    yield Segment(index, line, line, base, base + stop)
                    base, line = base + stop, line + newlines
                if skip:
                    why = "too_long", file.limits.too_long(skip)
                    yield Segment(index, line, line, base, base, b"", failure=why)
                    base, line = base + skip, line + 1
        except OSError as e:
            raise InputError(f"{file.path}: cannot be read: {e}") from e


def line_end(data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
    """A `FindEnd`: the first line end; at the file's end also the last byte."""
    found = data.find(b"\n", wanted - 1)
    if found < 0 and not at_end:
        return None
    stop = found + 1 if found >= 0 else len(data)
    newlines = count_newlines(memoryview(data)[:stop])
    return SegmentEnd(stop, newlines, newlines)


def _read_lines(opened: BinaryIO, wanted: int, longest: int) -> tuple[int, int, int]:
    """(bytes, new lines, 0) from here to the first line end at or after `wanted` bytes, or to the file's end.

    Before a line of more than `longest` bytes: (bytes, new lines, bytes of that line).
    """
    size = newlines = last = 0
    while piece := opened.read(_PIECE):
        if size + len(piece) >= wanted:
            found = piece.find(b"\n", max(wanted - 1 - size, 0)) + 1
            if found:
                return size + found, newlines + piece.count(b"\n", 0, found), 0
        newest = piece.rfind(b"\n") + 1
        size, newlines, last = size + len(piece), newlines + count_newlines(piece), size + newest if newest else last
        if size - last > longest:
            while piece := opened.read(_PIECE):
                if found := piece.find(b"\n") + 1:
                    return last, newlines, size + found - last
                size += len(piece)
            return last, newlines, size - last
    return size, newlines, 0


def count_newlines(data: bytes | bytearray | memoryview) -> int:
    """New lines in some bytes. They are compared in pieces that fit into the processor's cache."""
    array = np.frombuffer(data, np.uint8)
    return sum(int(np.count_nonzero(array[i : i + _PIECE] == 10)) for i in range(0, len(array), _PIECE))
