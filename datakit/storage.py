"""Files: whole writes and locks on this machine, and paths that may be on object stores: only this file tells which.

Everything else works on local paths. An object has one local path, its place in the mirror: `s3://bucket/a/b` is
`MIRROR/s3/bucket/a/b`, on every machine that has the same `MIRROR` ($DATAKIT_MIRROR, else a folder in the user's
cache). The store is the truth and the mirror a cache that can be removed at any time, since memory maps and appends
need a disk. So for a path in the mirror:

- `pull` fetches what is small (manifests, recipes, work records) at the start of a command;
- `bring` fetches one file when it is read, and compares its size and SHA-256;
- `here` fetches what a user names besides rows and results: models, tokenizers, lists;
- `put` stores a small file that may change, `publish` the finished files of a work unit, which never change: under
  their final keys, only where there is no such object yet. There is no rename;
- `locked` gives one run the use of a folder, on a store by a `Claim`.

For a path outside the mirror all of them do nothing. Requests go through `object_store.py`. Standard library only.
"""

import contextlib
import errno
import fnmatch
import hashlib
import json
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from datakit.errors import DatakitError, InputError, IntegrityError, UsageError
from datakit.object_store import OF_THE_DISK, NoAccessError, ask, library

T = TypeVar("T")

# Whole files on this machine, and the lock of a folder.


@contextlib.contextmanager
def whole_file(path: Path, *, flush: bool = True) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes the name `path` at the end, and is removed after an error.

    A reader sees the old file or the whole new one, also after a power cut. Without `flush` only other processes are
    thought of: for files that are compared with a checksum before they are read, or that can be made again.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        yield temporary
        if flush:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if flush:
        flush_folder(path.parent)


def write_whole(path: Path, data: bytes, *, flush: bool = True) -> None:
    """Write a small file as `whole_file` does; on an object store it is then put there, which is as whole."""
    make_folder(path.parent)
    with whole_file(path, flush=flush) as temporary:
        temporary.write_bytes(data)
    put(path)


def write_sealed(path: Path, record: Any) -> None:
    """Write a record as JSON, after a line with the SHA-256 of its bytes."""
    body = json.dumps(record).encode()
    write_whole(path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def read_sealed(path: Path) -> Any:
    """The record that `write_sealed` wrote; None where there is none, or it was changed."""
    try:
        checksum, body = path.read_bytes().split(b"\n", 1)
    except (OSError, ValueError):
        return None
    return json.loads(body) if checksum == hashlib.sha256(body).hexdigest().encode() else None


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they are still there after a power cut."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk: without this, a renamed file may lose its name in a power cut."""
    if os.name == "nt":  # Windows opens no folders; one can train there
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as e:
        if e.errno != errno.EINVAL:  # a file system that flushes no folders
            raise
    finally:
        os.close(opened)


_held: set[int] = set()
"""Open locks. A child that was forked closes its copies: a lock ends with the process that took it."""


def _close_in_child() -> None:
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


@contextlib.contextmanager
def locked(folder: Path, *, required: bool = True) -> Iterator["Claim"]:
    """Hold a folder, which is made where it is not there, for this caller alone, until the end of the block or process.

    A folder of an object store is also claimed there, against all machines; the caller has to `check` it. Without
    `required`, a file system without locks keeps nobody away, as Windows does.

    Raises:
        InputError: it cannot be made, or is no folder.
        UsageError: another one holds it; or the file system has no locks, and `DATAKIT_NO_LOCKS` is not set.
    """
    try:
        make_folder(folder)
    except OSError as e:
        raise InputError(f"{folder}: cannot make this folder ({e.strerror}); name another one") from None
    held = os.open(folder if os.name != "nt" else os.devnull, os.O_RDONLY)
    _held.add(held)
    try:
        try:
            import fcntl  # not there on Windows, where one can train

            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = "another run is writing to this folder; wait for it, stop it, or name another folder"
            raise UsageError(f"{folder}: {why}") from None
        except ImportError:
            pass
        except OSError as e:
            if required and not os.environ.get("DATAKIT_NO_LOCKS"):
                how = "Use another file system; or set DATAKIT_NO_LOCKS=1, and start one run at a time"
                raise UsageError(f"{folder}: its file system cannot lock a folder ({e.strerror}). {how}") from None
        claim = Claim(folder)
        try:
            yield claim
        finally:
            claim.release()
    finally:
        if held in _held:  # else in a child, which never held it
            _held.remove(held)
            os.close(held)


# Paths: a URL and its place in the mirror.

SCHEMES: Final = ("s3", "gs", "az")
"""What results can be written to. Raw inputs may have other schemes."""
SMALL: Final = (".json", ".jsonl", ".toml", ".txt", ".jinja", ".salt", ".work/key")
"""Ends of the names of the files that `pull` fetches."""
_OTHER_NAMES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_URL: Final = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*)://")
_SETTINGS: Final = re.compile(r"\?[\w.-]+=")


def mirror() -> Path:
    """The folder of the local copies."""
    return _mirror(os.environ.get("DATAKIT_MIRROR", ""), os.environ.get("XDG_CACHE_HOME", ""))


@cache
def _mirror(given: str, cached: str) -> Path:
    return Path(os.path.realpath(given or Path(cached or Path.home() / ".cache") / "datakit" / "mirror"))


def scheme_of(path: str) -> str:
    """The scheme of a URL as `SCHEMES` has it; empty for a path."""
    found = _URL.match(path)
    return _OTHER_NAMES.get(found[1].lower(), found[1].lower()) if found else ""


def is_url(path: str) -> bool:
    """Whether a path is a URL."""
    return bool(scheme_of(path))


def spelled(url: str) -> str:
    """A URL with its scheme as `SCHEMES` has it: `S3://` and Hadoop's `s3a://` are `s3://`. Other texts stay."""
    scheme = scheme_of(url)
    return f"{scheme}://{url.partition('://')[2]}" if scheme else url


def refuse_settings(url: str) -> None:
    """Refuse a URL with settings, which may be secret: signatures of presigned URLs, SAS tokens.

    Raises:
        InputError: it has some; the message does not show them.
    """
    if found := _SETTINGS.search(url):
        how = "settings and signatures in a URL are not read; give them by the environment or a profile"
        raise InputError(f"{url[: found.start()]}?...: {how}")


def local(given: str | os.PathLike[str]) -> Path:
    """The path to work with: the place in the mirror for a URL of an object store, any other path itself.

    Raises:
        UsageError: a URL that results cannot be written to, or that holds credentials.
        InputError: a URL with settings.
    """
    text = spelled(os.fspath(given))
    scheme, rest = scheme_of(text), text.partition("://")[2].strip("/")
    if not scheme:
        return Path(text)
    refuse_settings(text)
    if scheme not in SCHEMES:
        places = ", ".join(f"{s}://" for s in SCHEMES)
        raise UsageError(f"{scheme}://...: is for raw inputs only; all else is on this machine or below {places}")
    bucket, *parts = rest.split("/")
    if "@" in bucket:
        bucket = bucket.rpartition("@")[2]
        raise UsageError(f"{scheme}://...@{bucket}: names credentials; give them by the environment or a profile")
    if not bucket or any(part in ("", ".", "..") for part in parts):
        raise UsageError(f"{text}: expected {scheme}://BUCKET/FOLDER")
    return mirror().joinpath(scheme, bucket, *parts)


def url_of(path: str | os.PathLike[str]) -> str | None:
    """The URL of a path in the mirror; None for any other path."""
    below, text = f"{mirror()}{os.sep}", os.path.abspath(path)
    if not text.startswith(below):
        return None
    scheme, _, rest = text[len(below) :].replace(os.sep, "/").partition("/")
    return f"{scheme}://{rest}" if scheme in SCHEMES and rest else None


def relative_path(folder: Path, file: Path | str) -> str:
    """The relative path from a folder to a file, after symbolic links are resolved.

    Between this machine and an object store it is the file's URL or its absolute path.
    """
    url, inside = url_of(file), url_of(folder) is not None
    if (url is not None) != inside:
        return url or os.path.realpath(file)
    return os.path.relpath(os.path.realpath(file), os.path.realpath(folder))


def shown(text: str) -> str:
    """A text for people with URLs instead of places in the mirror."""
    below = f"{mirror()}{os.sep}"
    if below in text:
        for scheme in SCHEMES:
            text = text.replace(f"{below}{scheme}{os.sep}", f"{scheme}://")
    return text


def on_this_machine(path: str | os.PathLike[str]) -> str:
    """For the end of an error about a path in the mirror: where it is on this machine's disk. Empty for other paths."""
    found = f" on this machine's disk: its copy is below {mirror()} ($DATAKIT_MIRROR names another folder)"
    return found if url_of(path) else ""


def _ask(path: Path, request: Callable[[Any, str], T]) -> T:
    """Send a request about the object of a path in the mirror: `object_store.ask`."""
    scheme, _, rest = (url_of(path) or "").partition("://")
    bucket, _, key = rest.partition("/")
    return ask(scheme, bucket, key, request)


# Look.

REQUESTS: Final = 16
"""Requests at once where many small objects are read or removed."""


def sizes(folder: Path) -> dict[str, int]:
    """The files below a folder, by path relative to it, with their bytes."""
    if url_of(folder) is None:
        files = (f for f in folder.rglob("*") if f.is_file())
        return {f.relative_to(folder).as_posix(): f.stat().st_size for f in files}
    return {name: entry["size"] for name, entry in _listed(folder).items()}


def entries(folder: Path) -> set[str]:
    """The names in a folder, without those below; none where there is no such folder."""
    if url_of(folder) is None:
        return {e.name for e in folder.iterdir()} if folder.is_dir() else set()
    return {name.split("/")[0] for name in sizes(folder)}


def _listed(folder: Path) -> dict[str, Any]:
    """What the store says of the objects below a folder, by path relative to it."""

    def request(store: Any, key: str) -> dict[str, Any]:
        prefix = f"{key}/" if key else ""
        pages = library().list(store, prefix=key or None, chunk_size=1000)
        return {o["path"][len(prefix) :]: o for page in pages for o in page if o["path"].startswith(prefix)}

    return _ask(folder, request)


def exists(path: Path) -> bool:
    """Whether there is a file or a folder with files."""
    if url_of(path) is None:
        return path.exists()
    return _head(path) is not None or bool(_listed(path))


def _head(path: Path) -> Any:
    """What the store says of an object; None where there is none."""
    try:
        return _ask(path, library().head)
    except FileNotFoundError:
        return None


def subfolders(folder: Path, pattern: str) -> list[Path]:
    """The folders below a folder whose relative path, of as many parts, matches a pattern such as `*/*/*`."""
    if url_of(folder) is None:
        return sorted(folder.glob(pattern))
    wanted = pattern.split("/")
    heads = {tuple(name.split("/")[: len(wanted)]) for name in sizes(folder) if name.count("/") >= len(wanted)}
    return sorted(folder.joinpath(*parts) for parts in heads if all(map(fnmatch.fnmatch, parts, wanted)))


def tags_of(urls: Sequence[str]) -> dict[str, list[Any] | None]:
    """What changes when the object of a URL does, by URL; None where it has to be read to know."""

    def tag(url: str) -> list[Any] | None:
        try:
            there = _head(local(url)) if scheme_of(url) in SCHEMES else None
        except DatakitError:
            return None
        return None if there is None or not there["e_tag"] else [there["e_tag"], there["size"]]

    with ThreadPoolExecutor(REQUESTS) as pool:
        return dict(zip(urls, pool.map(tag, urls), strict=True))


def is_result(url: str) -> bool:
    """Whether a URL is of a manifest, or of a folder with one (`--output`), and not of raw inputs."""
    if scheme_of(url) not in SCHEMES or any(c in url for c in "*?["):
        return False
    path = local(url)
    run_file = path.with_name(f"{path.stem}.run.json") if path.suffix == ".json" else path / "manifest.run.json"
    try:
        return _head(run_file) is not None
    except NoAccessError:  # who may read a file, but not list its folder, is not told that there is no run file
        return False


# Read.

MIRROR_GB: Final = 100
"""Gigabytes that the mirror may hold before the oldest files are removed from it; $DATAKIT_MIRROR_GB is another."""
SPARED_S: Final = 900.0
"""A file of the mirror that was used in the last quarter of an hour stays."""
_fetched: dict[Path, dict[Path, int]] = {}
"""By what a user named: its files and their bytes when this process fetched them."""


def pull(folder: Path) -> None:
    """Make the small files below a folder in the mirror those of the store, and remove what is not there any more."""
    if url_of(folder) is not None:
        _renew(folder, _listed(folder), lambda name: name.endswith(SMALL))


def _renew(folder: Path, there: dict[str, Any], wanted: Callable[[str], bool]) -> None:
    """Make the wanted files below a folder of the mirror those that are `there`; what did not change is not fetched."""
    tags_file = mirror() / ".tags" / f"{hashlib.sha256(str(folder).encode()).hexdigest()[:24]}.json"
    tags: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        tags = json.loads(tags_file.read_bytes())
    listed = {n: o for n, o in there.items() if wanted(n)}
    old = [n for n, o in listed.items() if tags.get(n) != o["e_tag"] or _size(folder / n) != o["size"]]
    for file in [f for f in folder.rglob("*") if f.is_file()]:
        name = file.relative_to(folder).as_posix()
        if wanted(name) and name not in listed:
            file.unlink(missing_ok=True)
    with ThreadPoolExecutor(REQUESTS) as pool:
        list(pool.map(lambda name: _download(folder / name), old))
    others = {n: tag for n, tag in tags.items() if not wanted(n)}
    write_whole(tags_file, json.dumps(others | {n: o["e_tag"] for n, o in listed.items()}).encode(), flush=False)


def here(given: str | os.PathLike[str]) -> Path:
    """What a user names (a model, a tokenizer, a list), file or folder, on this machine's disk.

    Of a URL, what changed in the store is fetched, once in a process. It may be missing afterwards, as any path may.

    Raises:
        UsageError: a URL of a kind that is for raw inputs only.
    """
    path = local(given)
    if url_of(path) is None or (path in _fetched and all(_size(f) == size for f, size in _fetched[path].items())):
        return path
    if path.parent != mirror() / scheme_of(os.fspath(given)) and (found := _head(path)) is not None:
        _renew(path.parent, {path.name: found}, lambda name: name == path.name)
        _fetched[path] = {path: found["size"]}
    else:
        there = {n: o for n, o in _listed(path).items() if n != CLAIM and not n.startswith("parents/")}  # rows
        _renew(path, there, lambda name: not name.startswith("parents/"))
        _fetched[path] = {path / name: found["size"] for name, found in there.items()}
    for file in _fetched[path]:
        with contextlib.suppress(OSError):
            if file.stat().st_mtime < time.time() - SPARED_S / 3:  # not each time: what changes is read again
                os.utime(file)
    _make_room()
    return path


def pull_result(given: str | os.PathLike[str]) -> Path:
    """A manifest's path, from its own or from the folder that holds it (`--output`), after its small files were pulled.

    Of a manifest in a project, all manifests of the project are pulled.
    """
    path = local(given)
    if url_of(path) is None:
        return path / "manifest.json" if path.is_dir() else path
    if path.suffix != ".json":
        pull(path)
        return path / "manifest.json"
    above = path.parent.parent if path.parent.name == "history" else path.parent
    pull(above.parent if above.parent.name == "manifests" else above)
    return path


def refresh(file: Path) -> Path:
    """The file as the store has it now, for checks that must not trust the mirror; missing if it is missing there."""
    if url_of(file) is not None:
        file.unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            _download(file)
    return file


def bring(file: Path, size: int, sha256: str) -> Path:
    """The file on this machine's disk: fetched from the store if it is not there, whole and with the right digest.

    Raises:
        IntegrityError: the object is missing, or not what was written.
    """
    if url_of(file) is None:
        return file
    if _size(file) == size:
        with contextlib.suppress(OSError):
            os.utime(file)  # used: it stays longer
        return file
    for attempt in range(3):
        try:
            found = _download(file)
        except FileNotFoundError:
            raise IntegrityError(f"{file}: there is no such object in the store; run `datakit run` again") from None
        if found == sha256:
            _make_room()
            return file
        file.unlink(missing_ok=True)
        time.sleep(0.2 * 2**attempt)  # what a network broke may come whole the next time
    why = "the object was changed after datakit wrote it. Run `datakit run` again: it makes the file anew"
    raise IntegrityError(f"{file}: expected sha256 {sha256}, found {found}: {why}")


def read_range(file: Path, begin: int, size: int) -> bytes:
    """Some bytes of an object that is not on this machine.

    Raises:
        IntegrityError: there is no such object.
    """
    try:
        return _ask(file, lambda store, key: bytes(library().get_range(store, key, start=begin, length=size)))
    except FileNotFoundError:
        raise IntegrityError(f"{file}: there is no such object in the store; run `datakit run` again") from None


def digest_of(url: str) -> str:
    """SHA-256 of an object's bytes, 64 hex digits."""
    total = hashlib.sha256()
    for block in _ask(local(url), library().get).stream(min_chunk_size=1 << 20):
        total.update(block)
    return total.hexdigest()


def _download(file: Path) -> str:
    """Fetch an object to its place in the mirror; returns its SHA-256."""
    file.parent.mkdir(parents=True, exist_ok=True)

    def request(store: Any, key: str) -> str:
        total, answer, size = hashlib.sha256(), library().get(store, key), 0
        with whole_file(file, flush=False) as temporary:
            with temporary.open("wb") as out:
                for block in answer.stream(min_chunk_size=1 << 20):
                    total.update(block)
                    size += out.write(block)
            if size != answer.meta["size"]:
                raise OSError(f"expected {answer.meta['size']} bytes, found {size}")
        return total.hexdigest()

    try:
        return _ask(file, request)
    except OSError as e:
        if e.errno not in OF_THE_DISK:
            raise
        raise InputError(f"{file}: {e.strerror}{on_this_machine(file)}. Make room, and run the same again") from None


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1


_room = threading.Lock()
_next_look = [0.0]


def _make_room() -> None:
    """Remove the files of the mirror that were not used for longest, while it holds more than it may."""
    if time.monotonic() < _next_look[0] or not _room.acquire(blocking=False):  # another thread does it
        return
    try:
        _next_look[0], files = time.monotonic() + 60, []
        for file in (f for scheme in SCHEMES for f in (mirror() / scheme).rglob("*")):
            with contextlib.suppress(OSError):
                if not file.name.endswith(SMALL) and ".work" not in file.parts and file.is_file():
                    files.append((file.stat().st_mtime, file.stat().st_size, file))
        excess = sum(size for _, size, _ in files) - float(os.environ.get("DATAKIT_MIRROR_GB") or MIRROR_GB) * 1e9
        for used, size, file in sorted(files):
            if excess <= 0 or used > time.time() - SPARED_S:
                return
            file.unlink(missing_ok=True)
            excess -= size
    finally:
        _room.release()


# Write.

MULTIPART_FROM: Final = 256 << 20
"""Bytes from which a file is uploaded in parts, since obstore reads a smaller one into memory; most shards are smaller,
packed files may be larger."""
PARTS: Final = 9_000
"""A store takes 10,000 parts of one object."""


def put(file: Path) -> None:
    """Store a small file that was just written to the mirror, in the place of what was there."""
    if (url := url_of(file)) is None:
        return
    try:
        _ask(file, lambda store, key: library().put(store, key, file.read_bytes(), use_multipart=False))
    except FileNotFoundError:
        raise InputError(f"{url}: there is no such bucket; make it, or name another") from None


def publish(folder: Path, files: Iterable[Sequence[Any]]) -> None:
    """Store finished files under their final keys: [path relative to the folder, bytes, SHA-256] each.

    An object that is there already stays if it has these bytes: an earlier run was killed before it wrote its record,
    or another run of the same stage was faster. Else it is of no record, and is replaced.
    """
    if url_of(folder) is None:
        return
    for path, size, sha256 in files:
        file = folder / path
        if not _create(file, size):
            if digest_of(url_of(file) or "") == sha256:
                continue
            remove(file, here=False)
            if not _create(file, size):
                raise DatakitError(f"{file}: another run writes this object, too; stop one of them")
    _make_room()


def _create(file: Path, size: int) -> bool:
    """Upload a file if there is no object under its key; False where there is one.

    An upload in parts has no condition in obstore: there, a look before it and the claim on the folder keep other runs
    away.
    """
    ob, small = library(), size < MULTIPART_FROM
    if not small and _head(file) is not None:
        return False
    about: dict[str, Any] = {"mode": "create" if small else "overwrite", "use_multipart": not small}
    about |= {"chunk_size": max(16 << 20, size // PARTS), "max_concurrency": 4}
    try:
        _ask(file, lambda store, key: ob.put(store, key, file, **about))
    except (ob.exceptions.AlreadyExistsError, ob.exceptions.PreconditionError):
        return False
    return True


def remove(path: Path, *, here: bool = True) -> None:
    """Remove a file, or a folder with all in it, from the store and (`here`) from this machine's disk."""
    if url_of(path) is not None:

        def request(store: Any, key: str) -> None:
            found = [f"{key}/{name}" for name in _listed(path)]
            for begin in range(0, len(found), 1000):
                library().delete(store, found[begin : begin + 1000])
            with contextlib.suppress(FileNotFoundError):
                library().delete(store, key)

        _ask(path, request)
    if here and path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=url_of(path) is not None)
    elif here:
        path.unlink(missing_ok=True)


# Whose folder of a store it is.

CLAIM: Final = ".claim"
LOOK_S: Final = 5.0
"""A run looks in this interval whether the folder is still its own."""


class Claim:
    """The use of a folder by one run. On a store that is the run that began last: it goes on with what others finished.

    A store has no locks that end with a process. So a run writes an object with a name of its own, and ends where it
    finds another's there. Between two looks both may work: what they do for the same result has the same bytes.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder; for a local folder this does nothing, since its lock is enough."""
        self._path, self._run = folder / CLAIM, uuid.uuid4().hex if url_of(folder) else ""
        self._looked = time.monotonic()
        if self._run:
            write_whole(self._path, self._run.encode(), flush=False)

    def check(self, *, now: bool = False) -> None:
        """Raise a `DatakitError` if a later run has taken the folder. The store is asked at times, or `now`."""
        if not self._run or not (now or time.monotonic() - self._looked > LOOK_S):
            return
        self._looked = time.monotonic()
        if refresh(self._path).is_file() and self._path.read_text() != self._run:
            why = "a later run has taken over this folder. Finished work is kept; let the other run end"
            raise DatakitError(f"{self._path.parent}: {why}")

    def release(self) -> None:
        """Let another run have the folder."""
        with contextlib.suppress(DatakitError):  # it is another's already, or the store does not answer
            self.check(now=True)
            if self._run:
                remove(self._path)
