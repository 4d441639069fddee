"""`@kernel`: numba functions over arrays, compiled once and cached on disk.

Each room keeps its kernels in `_kernels_<technique>.py` files, which import this module, numba and numpy only. They are
imported when a stage opens, never for `--help`. Numba's own cache looks at one source file at a time and misses an edit
in a file that a kernel imports. So a stamp over all kernel sources lies beside the cache; where it differs, our entries
are deleted before any kernel loads. Numba believes whatever stands in its cache, too: a cut entry is a traceback, and a
flipped bit of machine code can be anything. So the digests of all entries are compared first, and damaged ones go.

Where neither the package's folder nor the user's cache can be written (a read-only install without a home), the cache
is in the folder for temporary files; where that is impossible, kernels are compiled in memory.
"""

import hashlib
import io
import json
import logging
import os
import pickletools
import stat
import tempfile
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, overload

import numba
from numba.core import config, event

Kernel = Callable[..., Any]

STAMP = "datakit-kernels.stamp"
DIGESTS = "datakit-kernels.digests"
_log = logging.getLogger(__name__)


@overload
def kernel(function: Kernel) -> Kernel: ...


@overload
def kernel(**options: Any) -> Callable[[Kernel], Kernel]: ...


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function with `numba.njit`: it releases the interpreter lock, and its machine code is cached.

    `options` go to `njit`, as in `@kernel(inline="always")`.
    """
    if function is None:
        return lambda f: kernel(f, **options)
    options = {"nogil": True} | options
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba: "no locator available": neither beside the sources nor in the user's cache
        if not _cache_in_temporary_folder():
            return numba.njit(**options)(function)
        made = numba.njit(cache=True, **options)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        _log_first_compile()
        _check_stamp(made.stats.cache_path)
    return made


@lru_cache(maxsize=1)
def source_stamp() -> str:
    """SHA-256 over all kernel sources of the package, 64 hex digits."""
    root, total = Path(__file__).parent, hashlib.sha256()
    for path in (Path(__file__), *sorted(root.rglob("_kernels*.py"))):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return total.hexdigest()


@cache
def _check_stamp(folder: str) -> None:
    """Delete our cached kernels in a folder if they were made from other sources."""
    stamp = Path(folder) / STAMP
    try:
        if stamp.is_file() and stamp.read_bytes() == source_stamp().encode():
            _remove_damaged(Path(folder))
            return
        for pattern in ("_kernels*.nbi", "_kernels*.nbc"):
            for entry in Path(folder).glob(pattern):
                entry.unlink(missing_ok=True)
        _write(stamp, source_stamp())
    except OSError:  # a cache that cannot be cleaned now is cleaned by a later run
        return


def _write(path: Path, content: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(content, encoding="ascii")
    temporary.replace(path)


def _remove_damaged(folder: Path) -> None:
    """Delete the entries whose bytes changed while their times did not, and those that are cut: numba makes them again.

    The first process that finds an entry notes its digest. One with another size or time is new (numba adds to its
    index), and must be whole.
    """
    try:
        known = json.loads((folder / DIGESTS).read_bytes())
    except (OSError, ValueError):
        known = {}
    known, found = known if isinstance(known, dict) else {}, {}
    for entry in (path for pattern in ("_kernels*.nbi", "_kernels*.nbc") for path in folder.glob(pattern)):
        about, content = entry.stat(), entry.read_bytes()
        mark, digest = [about.st_size, about.st_mtime_ns], hashlib.sha256(content).hexdigest()
        noted = known.get(entry.name)
        intact = noted == [mark, digest] or (not (noted and noted[0] == mark) and _is_whole(content))
        if intact:
            found[entry.name] = [mark, digest]
        else:
            entry.unlink(missing_ok=True)
    if found != known:
        _write(folder / DIGESTS, json.dumps(found))


def _is_whole(content: bytes) -> bool:
    """Whether an entry is made of whole pickles; nothing of them is executed."""
    file = io.BytesIO(content)
    try:
        while file.tell() < len(content):
            for _ in pickletools.genops(file):
                pass
    except Exception:  # ValueError and others: it is not the text of a pickle
        return False
    return bool(content)


@cache
def _log_first_compile() -> None:
    """Log a line when the first of our kernels must be compiled, because the cache does not hold it.

    The command line prints what is logged. Worker processes and the library print nothing.
    """

    class FirstCompile(event.Listener):
        logged = False

        def on_start(self, event: Any) -> None:
            ours = event.data["dispatcher"].py_func.__module__.startswith("datakit.")
            if ours and not self.logged:
                self.logged = True
                other = str(_temporary_cache()) == config.CACHE_DIR  # type: ignore[attr-defined]
                kept = f" They are kept in {_temporary_cache()}: no other folder can be written." if other else ""
                _log.info(
                    f"compiling kernels for this machine, once (about a minute); `datakit compile` does it ahead.{kept}"
                )

        def on_end(self, event: Any) -> None:
            return

    event.register("numba:compile", FirstCompile())  # type: ignore[no-untyped-call]


def _temporary_cache() -> Path:
    return Path(tempfile.gettempdir()) / f"datakit-kernels-{os.getuid()}"


@cache
def _cache_in_temporary_folder() -> bool:
    """Let numba use a folder of this user's own among the temporary files; False where there cannot be one.

    An entry is code that runs, so a folder that another user can write is not believed.
    """
    folder = _temporary_cache()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
            raise PermissionError(f"{folder}: belongs to another user")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        _log.info("kernels are compiled in every run: no folder for them can be written. Set NUMBA_CACHE_DIR to one")
        return False
    os.environ["NUMBA_CACHE_DIR"] = str(folder)  # for worker processes
    config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    return True
