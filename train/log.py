"""Logs of a run: the log line and metrics.jsonl, TensorBoard, Weights & Biases, a profiler trace.

TensorBoard and Weights & Biases are optional: `auto` uses what is installed, a name that is not installed is an error.
Chrome (chrome://tracing), Perfetto and TensorBoard read the trace; Nsight Systems shows the marks as NVTX ranges.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from datakit.config import digest, option
from datakit.errors import ConfigError
from datakit.storage import write_whole

PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165e12}
"""Dense bf16 operations per second from data sheets, by a part of the device name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepReport:
    """The numbers of one optimizer step."""

    step: int
    steps: int
    """All steps of the run."""
    epoch: int
    epochs: int
    loss: float
    """Mean over the label tokens, or pairs, of the step."""
    lr: float
    grad_norm: float
    """Before clipping."""
    all_tokens: int
    real_tokens: int
    label_tokens: int
    seconds: float
    data_seconds: float
    """Time spent waiting for data."""
    flops: float
    peak_flops: float | None
    logged: Mapping[str, float] = field(default_factory=dict)
    """More means of the objective, by name."""

    @property
    def mfu(self) -> float | None:
        """Model FLOPs utilization: share of the hardware peak (PaLM: Chowdhery et al., 2022)."""
        return self.flops / self.seconds / self.peak_flops if self.peak_flops else None

    def line(self) -> str:
        """The log line; it starts like MiniLLM's, so that parsers of those logs work."""
        parts = [
            f"[train] step={self.step} epoch={self.epoch}/{self.epochs} loss={self.loss:.4f} lr={self.lr:.2e} "
            f"tok/s={self.all_tokens / self.seconds:.0f} | step_ms={self.seconds * 1e3:.0f}",
            f"grad_norm={self.grad_norm:.3f}",
            f"real_tok/s={self.real_tokens / self.seconds:.0f}",
            f"label_tok/s={self.label_tokens / self.seconds:.0f}",
            f"data_wait={self.data_seconds / self.seconds:.1%}",
            f"eta={timedelta(seconds=round((self.steps - self.step) * self.seconds))}".replace(" ", ""),
        ]
        parts += [f"mfu={self.mfu:.1%}"] if self.mfu is not None else []
        return " ".join(parts + [f"{name}={value:.4f}" for name, value in self.logged.items()])

    def record(self) -> dict[str, Any]:
        """The record for metrics.jsonl; the loss is not rounded."""
        per_second = {f"{k}_tok_s": getattr(self, f"{k}_tokens") / self.seconds for k in ("all", "real", "label")}
        plain = {k: getattr(self, k) for k in ("step", "epoch", "loss", "lr", "grad_norm", "label_tokens")}
        data = {"step_ms": self.seconds * 1e3, "data_wait": self.data_seconds / self.seconds, "mfu": self.mfu}
        return plain | per_second | data | dict(self.logged)


class RecordFile:
    """A file with one JSON line per step; a resumed run first removes lines from after its checkpoint."""

    def __init__(self, path: Path, after_step: int) -> None:
        self.path, kept = path, list[str]()
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            with contextlib.suppress(ValueError, KeyError, TypeError):  # incomplete after a crash
                kept += [line] if json.loads(line)["step"] <= after_step else []
        if path.is_file():
            write_whole(path, "".join(f"{line}\n" for line in kept).encode())

    def write(self, record: Mapping[str, Any]) -> None:
        """Append a record."""
        with self.path.open("a", encoding="utf-8") as f:
            f.write(json.dumps(record) + "\n")


def peak_flops(device: torch.device) -> float | None:
    """Peak operations per second of the device, if known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAK_FLOPS.items() if part in name), None)


KNOWN = ("tensorboard", "wandb")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackConfig:
    """Where metrics are reported."""

    report_to: tuple[str, ...] = option(("auto",), "tensorboard, wandb (offline by default), none; auto: tensorboard")

    def __post_init__(self) -> None:
        if set(self.report_to) - {*KNOWN, "auto", "none"}:
            raise ConfigError(f"report_to must be some of {', '.join(KNOWN)}, auto, none; found {self.report_to}")
        for name in set(self.report_to) & set(KNOWN):
            if find_spec(name) is None:
                raise ConfigError(f"--report-to {name}: it is not installed; pip install {name}")


Tracker = Callable[[int, Mapping[str, float]], None]
"""Logs numbers of a step under their names."""


def trackers(
    config: TrackConfig, out: Path, values: Mapping[str, Any], first_step: int, closing: contextlib.ExitStack
) -> list[Tracker]:
    """The metric loggers that the configuration names; `values` is the run's configuration, `closing` ends them.

    TensorBoard writes to `out/tensorboard`; Weights & Biases to `out/wandb`, until `wandb sync`.
    """
    found: list[Tracker] = []
    if "tensorboard" in config.report_to or ("auto" in config.report_to and find_spec("tensorboard")):
        from torch.utils.tensorboard import SummaryWriter

        purged = first_step + 1 if first_step else None
        writer = closing.enter_context(SummaryWriter(str(out / "tensorboard"), purge_step=purged))

        def scalars(step: int, numbers: Mapping[str, float]) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name if "/" in name else f"train/{name}", value, step)

        found.append(scalars)
    if "wandb" in config.report_to:
        import wandb

        mode, name = os.environ.get("WANDB_MODE", "offline"), digest(str(out.resolve()))[:16]
        run = closing.enter_context(
            wandb.init(dir=str(out), name=out.name, id=name, resume="allow", config=dict(values), mode=mode)
        )
        found.append(lambda step, numbers: run.log(dict(numbers), step=step))
    return found


class Log:
    """All logs of a run: metrics.jsonl, eval.jsonl, metric loggers, and a trace of `profile` steps in profile.json."""

    def __init__(
        self, out: Path, config: TrackConfig, values: Mapping[str, Any], first_step: int, profile: int
    ) -> None:
        self.metrics, self.evaluations = (RecordFile(out / f"{n}.jsonl", first_step) for n in ("metrics", "eval"))
        self.closing = contextlib.ExitStack()
        """Closes all logs; to be left after errors, too."""
        self.trackers = trackers(config, out, values, first_step, self.closing)
        self.profiler = self.closing.enter_context(profiler(profile, out / "profile.json")) if profile else None

    def write(self, step: int, record: Mapping[str, Any]) -> None:
        """Log a training step."""
        self.metrics.write(record)
        self._track(step, {k: v for k, v in record.items() if isinstance(v, int | float) and k != "step"})
        if self.profiler:
            self.profiler.step()

    def evaluated(self, step: int, record: Mapping[str, Any]) -> None:
        """Log an evaluation; eval.jsonl also gets its sources and samples."""
        self.evaluations.write(record)
        self._track(step, {f"eval/{name}": record[name] for name in ("loss", "perplexity")})

    def _track(self, step: int, numbers: Mapping[str, float]) -> None:
        for tracker in self.trackers:
            tracker(step, numbers)


@contextlib.contextmanager
def mark(name: str, device: torch.device) -> Iterator[None]:
    """Mark a part of a step by name in profiler traces."""
    cuda = torch.cuda.nvtx.range(name) if device.type == "cuda" else contextlib.nullcontext()
    with cuda, record_function(name):
        yield


def profiler(steps: int, path: Path) -> profile:
    """A profiler that writes a trace of `steps` steps, also an incomplete one, and prints a table."""

    def write(found: profile) -> None:
        found.export_chrome_trace(str(path))
        by = "self_device_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        print(found.key_averages().table(sort_by=by, row_limit=12, max_name_column_width=48), flush=True)
        print(f"[train] profile: {path}", flush=True)

    cuda = [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
    when = schedule(wait=1, warmup=1, active=steps, repeat=1)  # the first step allocates memory
    return profile(activities=[ProfilerActivity.CPU, *cuda], schedule=when, on_trace_ready=write)
