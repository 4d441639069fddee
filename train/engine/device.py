"""The device that a run is on, and how much of its memory it may take."""

import os
import shutil

import torch

from datakit.errors import ConfigError


def usable_device(name: str) -> torch.device:
    """The device of a name; `auto` is cuda where there is one.

    Raises:
        ConfigError: there is no such device here.
    """
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
        device = local_device(device)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as e:
        raise ConfigError(f"--device {name}: cannot be used here ({str(e).splitlines()[0]})") from None
    return device


def limit_memory(device: torch.device, gib: float) -> None:
    """Let allocations beyond a limit fail with a message, before the machine or its other users run out.

    Raises:
        ConfigError: this system has no such limit.
    """
    limit = int(gib * (1 << 30))
    if device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total), device)
        return
    try:
        import resource  # not on every system

        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    except (ImportError, ValueError, OSError) as e:
        raise ConfigError(f"--memory-limit {gib}: cannot be set here ({e})") from None


def local_device(device: torch.device) -> torch.device:
    """Of several processes on one machine each has a GPU of its own."""
    if device.type == "cuda" and device.index is None and "LOCAL_RANK" in os.environ:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    return device


def need_compiler(device: torch.device) -> None:
    """Refuse to compile for a CPU without a C++ compiler.

    Raises:
        ConfigError: there is none.
    """
    found = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "c++")), None)
    if device.type == "cpu" and found is None:
        raise ConfigError(
            "--compile needs a C++ compiler on CPU, and there is no g++ or clang++: install one, or leave it"
        )


def precision(dtype: str, device: torch.device) -> str:
    """`bf16`, `fp16` or `fp32`; a CPU without bf16 products would be slower with them."""
    if dtype != "auto":
        return dtype
    if device.type == "cpu":
        return "bf16" if torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported() else "fp32"
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"


AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""Dtypes of autocast by the names of `--dtype`; fp32 has none."""


def allow_tf32(device: torch.device) -> None:
    """Let CUDA's fp32 products round their factors to TF32.

    Raises:
        ConfigError: no CUDA device.
    """
    if device.type != "cuda":
        raise ConfigError(f"--tf32 is a mode of CUDA's products; this run is on {device.type}")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
