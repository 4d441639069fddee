"""What a run says of its steps: the log line, and the same numbers as records of metrics.jsonl."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from datakit.manifest import write_whole

PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165e12}
"""Dense bf16 operations a second by the maker's data sheet, by a part of the device's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepReport:
    """One optimizer step in numbers."""

    step: int
    epoch: int
    epochs: int
    loss: float
    """Mean over the step's label tokens, or pairs."""
    lr: float
    grad_norm: float
    """Before clipping."""
    all_tokens: int
    real_tokens: int
    label_tokens: int
    seconds: float
    data_seconds: float
    """Of those, waiting for data."""
    flops: float
    peak_flops: float | None
    logged: Mapping[str, float] = field(default_factory=dict)
    """Further means of the objective, by name."""

    @property
    def mfu(self) -> float | None:
        """Share of the hardware's peak that the model's operations are (PaLM: Chowdhery et al., 2022)."""
        return self.flops / self.seconds / self.peak_flops if self.peak_flops else None

    def line(self) -> str:
        """The log line; its beginning is MiniLLM's, so that readers of those logs work."""
        parts = [
            f"[train] step={self.step} epoch={self.epoch}/{self.epochs} loss={self.loss:.4f} lr={self.lr:.2e} "
            f"tok/s={self.all_tokens / self.seconds:.0f} | step_ms={self.seconds * 1e3:.0f}",
            f"grad_norm={self.grad_norm:.3f}",
            f"real_tok/s={self.real_tokens / self.seconds:.0f}",
            f"label_tok/s={self.label_tokens / self.seconds:.0f}",
            f"data_wait={self.data_seconds / self.seconds:.1%}",
        ]
        parts += [f"mfu={self.mfu:.1%}"] if self.mfu is not None else []
        return " ".join(parts + [f"{name}={value:.4f}" for name, value in self.logged.items()])

    def record(self) -> dict[str, Any]:
        """The line of metrics.jsonl; the loss is not rounded."""
        per_second = {f"{k}_tok_s": getattr(self, f"{k}_tokens") / self.seconds for k in ("all", "real", "label")}
        plain = {k: getattr(self, k) for k in ("step", "epoch", "loss", "lr", "grad_norm", "label_tokens")}
        data = {"step_ms": self.seconds * 1e3, "data_wait": self.data_seconds / self.seconds, "mfu": self.mfu}
        return plain | per_second | data | dict(self.logged)


class Records:
    """A file of JSON lines, one a step; a resumed run first drops what was written after its checkpoint."""

    def __init__(self, path: Path, after_step: int) -> None:
        self.path = path
        if not path.is_file():
            return
        lines = path.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if _step_of(line) <= after_step]
        write_whole(path, "".join(f"{line}\n" for line in kept).encode())

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one step."""
        with self.path.open("a", encoding="utf-8") as f:
            f.write(json.dumps(record) + "\n")


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # cut short by a crash
        return float("inf")


def peak_flops(device: torch.device) -> float | None:
    """The device's peak, where it is known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAK_FLOPS.items() if part in name), None)
