"""`@kernel`: numba functions over arrays, compiled once and cached on disk.

Each room keeps its kernels in `_kernels_<technique>.py` files, which import this module, numba and numpy only. They are
imported when a stage opens, never for `--help`. Numba's own cache looks at one source file at a time and misses an edit
in a file that a kernel imports. So a stamp over all kernel sources lies beside the cache; where it differs, our entries
are deleted before any kernel loads. A damaged entry is compiled again. Where no folder can be written, kernels are
compiled in memory.
"""

import contextlib
import hashlib
import logging
import os
import pickle
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, overload

import numba
from numba.core import config, event
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

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
    made = numba.njit(**{"nogil": True} | options)(function)
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return made
    try:
        made._cache = _KernelCache(function)  # type: ignore
    except RuntimeError:  # numba: "no locator available": neither beside the sources nor in the user's cache
        _log_no_cache()
        return made
    _log_first_compile()
    _check_stamp(made.stats.cache_path)
    return made


class _Checked(CompileResultCacheImpl):
    """What a cache entry holds: a compiled function, behind the SHA-256 of its bytes."""

    def reduce(self, compiled: Any) -> tuple[bytes, bytes]:
        data: bytes = dumps(super().reduce(compiled))  # type: ignore[no-untyped-call]
        return hashlib.sha256(data).digest(), data

    def rebuild(self, target_context: Any, entry: tuple[bytes, bytes]) -> Any:
        digest, data = entry
        if hashlib.sha256(data).digest() != digest:
            raise ValueError("a damaged cache entry")
        return super().rebuild(target_context, pickle.loads(data))  # type: ignore[no-untyped-call]


class _KernelCache(FunctionCache):
    """Numba's cache of one function, where an entry that cannot be used is compiled again and not an error."""

    _impl_class = _Checked

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(signature, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # a damaged pickle may raise anything
            self.flush()  # type: ignore[no-untyped-call]
            return None
        # two processes that compile one function for different types may write both entries to one file
        return found if found is None or tuple(found.signature.args) == tuple(signature) else None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        with contextlib.suppress(OSError):  # a full disk: the function itself works
            super().save_overload(signature, compiled)  # type: ignore[no-untyped-call]


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
