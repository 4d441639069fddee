"""Where the numbers of a run go beside metrics.jsonl: TensorBoard, Weights & Biases, a progress line on a terminal.

None is needed; what is not installed is left out, or refused where it was asked for by name.
"""

import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from datakit.config import digest, option
from datakit.errors import ConfigError
from train.profile import Profile
from train.report import Records

KNOWN = ("tensorboard", "wandb")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackConfig:
    """Who is told."""

    report_to: tuple[str, ...] = option(
        ("auto",),
        "tensorboard, wandb (offline, unless WANDB_MODE says otherwise) or none; auto: tensorboard if installed",
    )
    progress: bool = option(True, "a progress line below the log, on a terminal")

    def __post_init__(self) -> None:
        if set(self.report_to) - {*KNOWN, "auto", "none"}:
            raise ConfigError(f"report_to must be some of {', '.join(KNOWN)}, auto, none; found {self.report_to}")
        for name in set(self.report_to) & set(KNOWN):
            if not _installed(name):
                raise ConfigError(f"--report-to {name}: it is not installed; pip install {name}")


class Tracker(Protocol):
    """Somebody who is told the numbers of each step."""

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Take the step's numbers."""
        ...

    def close(self) -> None:
        """Nothing more will come."""
        ...


def trackers(config: TrackConfig, out: Path, values: Mapping[str, Any], steps: int, first_step: int) -> list[Tracker]:
    """Those that the configuration names; `values` is the run's configuration, `steps` how many it has in all."""
    found: list[Tracker] = []
    if "tensorboard" in config.report_to or ("auto" in config.report_to and _installed("tensorboard")):
        found.append(TensorBoard(out / "tensorboard", first_step))
    if "wandb" in config.report_to:
        found.append(WeightsAndBiases(out, values))
    if config.progress and sys.stdout.isatty():
        found.append(Progress(steps, first_step))
    return found


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


class Log:
    """All that is told of a run's steps: metrics.jsonl, the trackers, and a profile if one is wanted."""

    def __init__(
        self, out: Path, config: TrackConfig, values: Mapping[str, Any], steps: int, first_step: int, profile: int
    ) -> None:
        self.metrics, self.evaluations = (Records(out / f"{n}.jsonl", first_step) for n in ("metrics", "eval"))
        self.trackers = trackers(config, out, values, steps, first_step)
        self.profile = Profile(profile, out) if profile else None

    def write(self, step: int, record: Mapping[str, Any]) -> None:
        """A step was taken."""
        self.metrics.write(record)
        self._tell(step, record)
        if self.profile:
            self.profile.step()

    def evaluated(self, step: int, record: Mapping[str, Any]) -> None:
        """The model was evaluated after that step; eval.jsonl has its sources and samples."""
        self.evaluations.write(record)
        self._tell(step, {f"eval/{name}": record[name] for name in ("loss", "perplexity")})

    def _tell(self, step: int, values: Mapping[str, Any]) -> None:
        for tracker in self.trackers:
            tracker.write(step, values)

    def close(self) -> None:
        """The run has ended, well or not."""
        if self.profile:
            self.profile.close()
        for tracker in self.trackers:
            tracker.close()


class TensorBoard:
    """Event files under `out/tensorboard`."""

    def __init__(self, folder: Path, first_step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder), purge_step=first_step + 1 if first_step else None)

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Every number under its name."""
        for name, value in _numbers(values).items():
            self.writer.add_scalar(name if "/" in name else f"train/{name}", value, step)

    def close(self) -> None:
        """Write what is waiting."""
        self.writer.close()


class WeightsAndBiases:
    """A run of that service, kept in `out/wandb` until `wandb sync`, unless WANDB_MODE says otherwise."""

    def __init__(self, out: Path, values: Mapping[str, Any]) -> None:
        import wandb

        self.run = wandb.init(
            dir=str(out), name=out.name, id=digest(str(out.resolve()))[:16], resume="allow", config=dict(values),
            mode=os.environ.get("WANDB_MODE", "offline"),
        )  # fmt: skip

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Every number under its name."""
        self.run.log(_numbers(values), step=step)

    def close(self) -> None:
        """Write what is waiting."""
        self.run.finish()


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {k: v for k, v in values.items() if isinstance(v, int | float) and k != "step"}


class Progress:
    """A line that stays below the log: how far, how long yet, and the last loss."""

    def __init__(self, steps: int, first_step: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            Remaining(),
            TextColumn("{task.description}"),
        )
        self.bar = Progress(*columns, transient=True)
        self.task = self.bar.add_task("", total=steps, completed=first_step)
        self.bar.start()

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Move on."""
        if "loss" in values:
            told = f"loss {values['loss']:.4f}  {values['real_tok_s']:,.0f} tok/s"
            self.bar.update(self.task, completed=step, description=told)

    def close(self) -> None:
        """Take the line away."""
        self.bar.stop()
