"""The device of a run: its choice, precision and compiler."""

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from datakit.errors import ConfigError


def usable_device(name: str, threads: int = 0) -> torch.device:
    """The device with this name; `auto` is cuda if there is one, else cpu. Sets the number of CPU threads, if given.

    Raises:
        ConfigError: the device cannot be used here.
    """
    if threads:
        torch.set_num_threads(threads)
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
        if device.type == "cuda" and device.index is None:  # each process on a machine has its own GPU
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.empty(1, device=device)  # first: a build of torch without CUDA says so here
        if device.type == "cuda":
            torch.cuda.set_device(device)  # kernels and streams that name no device are on this one
    except (RuntimeError, AssertionError) as e:
        raise ConfigError(f"--device {name}: cannot be used here ({str(e).splitlines()[0]})") from None
    return device


def allow_tf32(allowed: bool) -> None:
    """Whether CUDA computes fp32 products in TF32, in training, evaluation and generation alike."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def sum_in_one_order(device: torch.device) -> None:
    """Let CUDA's kernels add up in the same order in each run; an operation that cannot ends the run with its name.

    Without it a step differs from run to run by rounding, mostly in the backward pass of attention.
    """
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when the first product is made
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def limit_memory(device: torch.device, limit: float) -> Callable[[], None]:
    """Let this process take no more memory: up to 1 a share of what is free now, above 1 so many GiB; 0: no limit.

    On CUDA it bounds the allocator's memory on the device, else what the process may write to (RLIMIT_DATA). Past it an
    allocation fails, which ends the command with one clear error. Returns what sets the limit of before again.
    """
    if not limit:
        return lambda: None
    if device.type == "cuda":
        (free, total), before = torch.cuda.mem_get_info(device), torch.cuda.get_per_process_memory_fraction(device)
        wanted = limit * free if limit <= 1 else limit * 2**30
        torch.cuda.set_per_process_memory_fraction(min(1.0, wanted / total), device)
        return partial(torch.cuda.set_per_process_memory_fraction, before, device)
    if not Path("/proc/self/status").is_file():
        raise ConfigError("--memory-limit on CPU needs Linux: remove it, or limit the process from outside")
    import resource

    def kib(path: str, name: str) -> int:
        return int(next(line for line in Path(path).read_text().splitlines() if line.startswith(name)).split()[1])

    taken = kib("/proc/self/status", "VmData")
    wanted = taken + limit * kib("/proc/meminfo", "MemAvailable") if limit <= 1 else limit * 2**20
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(wanted) << 10, hard))
    return partial(resource.setrlimit, resource.RLIMIT_DATA, (soft, hard))


def peak_mib(device: torch.device) -> float:
    """The most memory so far, in MiB: of the device's allocator, or of this process with the files that it maps."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; on macOS bytes
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def need_compiler(device: torch.device) -> None:
    """Check for a C++ compiler, which torch.compile needs on CPU.

    Raises:
        ConfigError: there is no compiler.
    """
    found = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "c++")), None)
    if device.type == "cpu" and found is None:
        raise ConfigError("--compile on CPU needs a C++ compiler: install g++ or clang++, or remove --compile")


def precision(dtype: str, device: torch.device) -> str:
    """`bf16`, `fp16` or `fp32`; auto is bf16 where the hardware has bf16 products."""
    if dtype != "auto":
        return dtype
    if device.type == "cpu":
        return "bf16" if torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported() else "fp32"
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """The autocast context of a precision; does nothing for fp32."""
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    return torch.autocast(device.type, half, enabled=half is not None)
