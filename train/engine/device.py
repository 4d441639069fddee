"""The device of a run: its choice, precision and compiler."""

import os
import shutil

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
        if device.type == "cuda":
            if device.index is None:  # each process on a machine has its own GPU
                device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
            torch.cuda.set_device(device)  # kernels and streams that name no device are on this one
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as e:
        raise ConfigError(f"--device {name}: cannot be used here ({str(e).splitlines()[0]})") from None
    return device


def allow_tf32(allowed: bool) -> None:
    """Whether CUDA computes fp32 products in TF32, in training, evaluation and generation alike."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


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
