"""The device that a run is on, and how much of its memory it may take."""

import torch

from datakit.errors import ConfigError
from train.distributed import local_device


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
