"""`@kernel`: numba functions over arrays, compiled once and cached on disk.

A file that imports this module holds kernels, beside their technique. Such files are imported when a stage opens, never
for `--help`, and a kernel uses names of such files, of numba and of numpy only. Numba's own cache looks at one source
file at a time and misses an edit in a file that a kernel imports. So a stamp over all kernel sources lies beside the
cache; where it differs, our entries are deleted before any kernel loads.

What differs from Python in a kernel. No index is checked: one that is too large reads or writes what lies behind the
array, and one below zero counts from the end. So each kernel's docstring says how large its arrays must be, and `make
check-kernels` runs all of them with checks. Integers wrap around in silence. int64 with uint64 makes float64, so both
sides of an operation get one type. Each new combination of types (dtype, read-only or not) is compiled once more. The
test for an index below zero costs time in the innermost loops; `np.uintp(i)` leaves it out.

The cache is beside the sources, else in the user's cache, else where NUMBA_CACHE_DIR says. Where none of these can be
written (a read-only install without a home), kernels are compiled in memory.
"""

import hashlib
import logging
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, overload

import numba
from numba.core import config

Kernel = Callable[..., Any]

STAMP = "datakit-kernels.stamp"
_log = logging.getLogger(__name__)


@overload
def kernel(function: Kernel) -> Kernel: ...


@overload
def kernel(**options: Any) -> Callable[[Kernel], Kernel]: ...


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function with `numba.njit`: it releases the interpreter lock, and its machine code is cached.

    With `inner=True`, kernels alone call it: it gets no way in from Python, which takes as long to compile as a small
    kernel. (Nor may a caller run as plain Python, by `py_func`.) The other `options` go to `njit`, as in
    `@kernel(inline="always")`.
    """
    if function is None:
        return lambda f: kernel(f, **options)
    inner = options.pop("inner", False)
    options = {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": inner} | options
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba: "no locator available": neither beside the sources nor in the user's cache
        _say("kernels are compiled in every run: no folder for them can be written. Set NUMBA_CACHE_DIR to one")
        return numba.njit(**options)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        _check_stamp(made.stats.cache_path)
    return made


def kernel_sources() -> list[Path]:
    """The files of the package that import this module, and this file."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return [path for path in files if path == Path(__file__) or b"from datakit.kernels import" in path.read_bytes()]


@cache
def source_stamp() -> str:
    """SHA-256 over all kernel sources of the package, 64 hex digits."""
    root, total = Path(__file__).parent, hashlib.sha256()
    for path in kernel_sources():
        total.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return total.hexdigest()


@cache
def _check_stamp(folder: str) -> None:
    """Delete our cached kernels in a folder if they were made from other sources, and say that they are compiled anew.

    The command line prints what is logged. Worker processes and the library print nothing.
    """
    stamp = Path(folder) / STAMP
    try:
        if stamp.is_file() and stamp.read_bytes() == source_stamp().encode():
            return
        for entry in Path(folder).glob("*.nb[ci]"):
            entry.unlink(missing_ok=True)
        # last: a process that is killed in between leaves old entries without a stamp, which the next one deletes
        temporary = stamp.with_name(f".{stamp.name}.{os.getpid()}.tmp")
        temporary.write_text(source_stamp(), encoding="ascii")
        temporary.replace(stamp)
    except OSError:  # a cache that cannot be cleaned now is cleaned by a later run
        return
    _say("compiling kernels for this machine, once (about a minute in all); `datakit compile` does it ahead")


@cache
def _say(line: str) -> None:
    """Log a line, once in a process."""
    _log.info(line)
