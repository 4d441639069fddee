"""Kernels without their compiler: what numba made of them is kept as machine code, and called without importing numba.

Importing numba and loading its own cache take half a second, more than all work of a small run. A kernel that is called
through `Kernels` is compiled once for the types of its arguments; from then on LLVM (llvmlite, which numba brings)
loads the object file and ctypes calls it, with the interpreter lock released. That goes for kernels that allocate and
raise nothing: they take contiguous arrays, numbers and named tuples of those, and return numbers. Any other, and all on
processors that are not x86-64, are called through numba, as if it were not for this file.

Unlike numba's own cache, this one sees an edit in a kernel file that another one imports.
"""

import ctypes
import importlib
import importlib.util
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from datakit.cached import cached

_IMPORTED = re.compile(rb"^from (datakit\.[\w.]*_kernels\w*) import", re.MULTILINE)
_LIBC = {"memset", "memcpy", "memmove"}  # all that machine code may ask for from outside
_INTRINSICS = (
    *("llvm.assume", "llvm.ctlz.", "llvm.cttz.", "llvm.ctpop.", "llvm.fsh", "llvm.masked.", "llvm.umin.", "llvm.umax."),
    *("llvm.smin.", "llvm.smax.", "llvm.usub.with.overflow.i64", "llvm.vector.reduce.", "llvm.x86."),
    *("llvm.memset.", "llvm.memcpy.", "llvm.memmove."),
)  # become instructions, or one of those: others might call a library that is not there
_FREE = "NRT_MemInfo_call_dtor"  # numba frees an array's owner so when its last view is gone; here none has an owner
_RETURNED = {"int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "boolean": ctypes.c_bool, "float64": ctypes.c_double}

Function = Callable[..., Any]


class Kernels:
    """The kernels of a module as attributes; the module itself is imported only where one must be compiled.

    `_kernels = Kernels("datakit.text._kernels_normal_form")`, then `_kernels.collapse_spaces(...)`.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__"):
            raise AttributeError(name)
        kernel = _Kernel(self._module, name)
        setattr(self, name, kernel)
        return kernel


class _Kernel:
    """One kernel, compiled or loaded for each combination of argument types that it is called with."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name
        self._functions: dict[tuple[Any, ...], Function] = {}
        self._lock = threading.Lock()

    def __call__(self, *args: Any) -> Any:
        kinds = _kinds(args)
        function = self._functions.get(kinds)
        if function is None:
            with self._lock:
                function = self._functions.get(kinds) or self._function(kinds, args)
                self._functions[kinds] = function
        return function(*args)

    def _function(self, kinds: tuple[Any, ...], args: tuple[Any, ...]) -> Function:
        if not llvm.get_default_triple().startswith("x86_64"):  # elsewhere nobody has tried it
            return self._numba()
        source = _source(self._module)
        made_from = [*_sources(self._module), *_compiler(), self._name.encode(), repr(kinds).encode()]
        head, _, code = cached(source, made_from, lambda: self._compile(args)).partition(b"\n")
        return _linked(json.loads(head), code) if code else self._numba()

    def _numba(self) -> Function:
        function: Function = getattr(importlib.import_module(self._module), self._name)
        return function

    def _compile(self, args: tuple[Any, ...]) -> bytes:
        """A line of JSON with the symbol and the type returned, then the object file; none for a kernel that needs more
        than memory that it is given."""
        dispatcher: Any = self._numba()
        if not hasattr(dispatcher, "py_func"):  # numba is switched off
            return b"{}\n"
        from numba import typeof
        from numba.core import compiler as untyped
        from numba.core.registry import cpu_target

        compiler: Any = untyped
        flags = compiler.Flags()
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.nrt = True
        contexts = cpu_target.typing_context, cpu_target.target_context
        types = tuple(typeof(a) for a in args)  # type: ignore[no-untyped-call]
        made = compiler.compile_extra(*contexts, dispatcher.py_func, types, None, flags, {})
        returned = _names(made.signature.return_type)
        module = made.library._final_module
        asked = {f.name for f in module.functions if f.is_declaration and not f.name.startswith(_INTRINSICS)}
        if asked - _LIBC - {_FREE} or returned is None:
            return b"{}\n"
        module.link_in(llvm.parse_assembly(f"define void @{_FREE}(ptr %owner) {{ ret void }}"))
        head = {"symbol": made.fndesc.llvm_func_name, "returned": returned}
        return json.dumps(head).encode() + b"\n" + bytes(made.library._codegen._tm.emit_object(module))


def _kinds(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the machine code for some arguments depends on."""
    return tuple(
        (a.dtype.str, a.ndim, a.flags.c_contiguous and a.flags.aligned, a.flags.writeable)
        if type(a) is np.ndarray
        else (type(a).__name__, _kinds(a))
        if isinstance(a, tuple)
        else type(a).__name__
        for a in args
    )


def _names(returned: Any) -> list[str] | None:
    """The types of what is returned: none, one or as many as a tuple has; None where it is more than numbers."""
    names = [str(t) for t in getattr(returned, "types", [returned])]
    if names == ["none"]:
        return []
    return names if all(n in _RETURNED for n in names) else None


def _source(module: str) -> Path:
    return Path(__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py")


def _sources(module: str) -> list[bytes]:
    """The sources of a kernel module and of those that it imports."""
    found: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _source(name).read_bytes()
            waiting += [m.decode() for m in _IMPORTED.findall(found[name])]
    return [found[name] for name in sorted(found)]


@lru_cache(maxsize=1)
def _compiler() -> tuple[bytes, ...]:
    """What the machine code depends on besides the sources: compiler, processor, switches."""
    spec = importlib.util.find_spec("numba")
    assert spec is not None
    assert spec.origin is not None
    switches = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith("NUMBA_"))
    host = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    parts = [llvmlite.__version__, np.__version__, llvm.get_default_triple(), *host, *switches]
    version = Path(spec.origin).with_name("_version.py").read_bytes()
    return Path(__file__).read_bytes(), version, json.dumps(parts).encode()


def _linked(head: dict[str, Any], code: bytes) -> Function:
    """A Python function that calls the machine code as numba's own calls do: where to put what it returns, where to put
    an exception, then the arguments, arrays and tuples in their parts."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(head["symbol"])
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32)
    raw = prototype(address)
    fields = [(f"f{i}", _RETURNED[name]) for i, name in enumerate(head["returned"])]
    returned = type("Returned", (ctypes.Structure,), {"_fields_": fields or [("f0", ctypes.c_void_p)]})

    def call(*args: Any, _engine: Any = engine) -> Any:
        result, exception = returned(), ctypes.c_void_p()
        status = raw(ctypes.byref(result), ctypes.byref(exception), *_flat(args))
        assert status == 0 or (status == -2 and not fields), f"{head['symbol']} returned with status {status}"
        values = tuple(getattr(result, name) for name, _ in fields)
        return values if len(values) > 1 else values[0] if values else None

    return call


def _flat(args: tuple[Any, ...]) -> Iterator[Any]:
    """Arguments as numba passes them. An array: its owner (none), items, bytes of one, address, shape, strides."""
    for a in args:
        if type(a) is np.ndarray:
            parts = 0, 0, a.size, a.itemsize, a.__array_interface__["data"][0], *a.shape, *a.strides
            yield from map(ctypes.c_int64, parts)
        elif isinstance(a, tuple):
            yield from _flat(a)
        elif isinstance(a, float):
            yield ctypes.c_double(a)
        else:
            yield ctypes.c_int64(int(a))


def _engine() -> Any:
    _initialize()
    machine = llvm.Target.from_default_triple().create_target_machine()
    module = llvm.parse_assembly("")
    return llvm.create_mcjit_compiler(module, machine)


@lru_cache(maxsize=1)
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
