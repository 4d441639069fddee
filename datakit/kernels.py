"""`@kernel`: numba functions over arrays, compiled once and cached on disk.

Each room keeps its kernels in `_kernels_<technique>.py` files, which import this module, numba and numpy only. They are
imported when a stage opens, never for `--help`. Numba's own cache looks at one source file at a time and misses an edit
in a file that a kernel imports. So a stamp over all kernel sources lies beside the cache; where it differs, our entries
are deleted before any kernel loads. Where no folder can be written, kernels are compiled in memory.
"""

import hashlib
import logging
import os
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, overload

import numba
from numba.core import config, event

Kernel = Callable[..., Any]

STAMP = "datakit-kernels.stamp"
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
        _log_no_cache()
        return numba.njit(**options)(function)
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
            return
        for pattern in ("_kernels*.nbi", "_kernels*.nbc"):
            for entry in Path(folder).glob(pattern):
                entry.unlink(missing_ok=True)
        temporary = stamp.with_name(f".{STAMP}.{os.getpid()}.tmp")
        temporary.write_text(source_stamp(), encoding="ascii")
        temporary.replace(stamp)
    except OSError:  # a cache that cannot be cleaned now is cleaned by a later run
        return


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
                _log.info("compiling kernels for this machine, once (about a minute); `datakit compile` does it ahead")

        def on_end(self, event: Any) -> None:
            return

    event.register("numba:compile", FirstCompile())  # type: ignore[no-untyped-call]


@cache
def _log_no_cache() -> None:
    _log.info("kernels are compiled in every run: no folder for them can be written. Set NUMBA_CACHE_DIR to one")
