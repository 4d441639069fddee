"""Arithmetic in half precision: fp16's scaled loss, and TF32."""

from typing import Any

import torch

from datakit.errors import ConfigError

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""Dtypes of autocast by the names of `--dtype`; fp32 has none."""


class LossScale:
    """Keeps fp16's small gradients from vanishing: the loss is scaled up as far as nothing overflows.

    Halved at an overflow, doubled after 2,000 steps without one (Micikevicius et al., 2018), as torch's GradScaler
    does. It multiplies the loss *sum* of a micro-batch, so it begins thousands of times lower than is usual for means.
    """

    growth_interval = 2000
    smallest = 2.0**-24
    """Gradients that overflow even here are not finite in themselves."""

    def __init__(self, scale: float = 16.0, steps_since: int = 0, overflows: int = 0) -> None:
        self.scale, self.steps_since, self.overflows = scale, steps_since, overflows

    @property
    def can_shrink(self) -> bool:
        """Whether a smaller scale is left to try."""
        return self.scale > self.smallest

    def update(self, *, overflowed: bool) -> None:
        """Choose the next step's scale."""
        self.overflows += overflowed
        self.steps_since = 0 if overflowed else self.steps_since + 1
        if overflowed:
            self.scale /= 2
        elif self.steps_since == self.growth_interval:
            self.scale, self.steps_since = self.scale * 2, 0

    def logged(self) -> dict[str, float]:
        """What a log line says of it."""
        return {"loss_scale": self.scale, "overflows": float(self.overflows)}

    def state(self) -> dict[str, Any]:
        """What a resumed run makes it from."""
        return {"scale": self.scale, "steps_since": self.steps_since, "overflows": self.overflows}


def allow_tf32(device: torch.device) -> None:
    """Let CUDA's fp32 products round their factors to TF32.

    Raises:
        ConfigError: no CUDA device.
    """
    if device.type != "cuda":
        raise ConfigError(f"--tf32 is a mode of CUDA's products; this run is on {device.type}")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
