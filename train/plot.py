"""Plot loss, learning rate and speed of runs over their steps.

    python -m train.plot out/run [out/other ...]

writes `plot.png` and `plot.svg` into the first folder, or to --output. Needs matplotlib.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from datakit.errors import ConfigError, InputError
from train.engine import flags

Series = npt.NDArray[np.float64]
SMOOTHING = 0.02
"""The bold line is a moving average; on each side it covers this share of the run."""


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a metrics file; an incomplete last line is ignored.

    Raises:
        InputError: no such file, no steps in it, or an invalid line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as e:
        raise InputError(f"{path}: cannot read it ({e.strerror}); expected the folder of a run") from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            found.append(record | {"step": int(record["step"])})
        except (ValueError, KeyError, TypeError) as e:
            if number < len(lines):
                raise InputError(f"{path}:{number}: expected a step's record, found {e!r}") from None
    if not found:
        raise InputError(f"{path}: has no steps yet")
    return found


def series(found: Sequence[dict[str, Any]], name: str) -> tuple[Series, Series]:
    """Steps and values of a metric, where the value is finite."""
    pairs = [(r["step"], r[name]) for r in found if isinstance(r.get(name), int | float) and math.isfinite(r[name])]
    steps, values = np.array(pairs, np.float64).reshape(-1, 2).T
    return steps, values


def smoothed(values: Series) -> Series:
    """The moving average of values."""
    half = max(1, round(len(values) * SMOOTHING))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    begins = np.maximum(np.arange(len(values)) - half, 0)
    ends = np.minimum(np.arange(len(values)) + half + 1, len(values))
    means: Series = (sums[ends] - sums[begins]) / (ends - begins)
    return means


def draw(runs: Sequence[Path], paths: Sequence[Path]) -> None:
    """Plot runs into one figure and write it to every path, in the format of its suffix.

    Raises:
        ConfigError: matplotlib is not installed.
        InputError: a folder has no run.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("train.plot needs matplotlib: pip install 'datakit[plot]'") from None
    figure = Figure(figsize=(9, 9), layout="constrained")
    loss, rate, speed = figure.subplots(3, 1, sharex=True, height_ratios=[3, 1, 1])
    for color, run in enumerate(runs):
        found, style = records(run / "metrics.jsonl"), {"color": f"C{color}"}
        name = f"{run}: " if len(runs) > 1 else ""
        steps, values = series(found, "loss")
        loss.plot(steps, values, alpha=0.3, linewidth=0.8, **style)
        loss.plot(steps, smoothed(values), label=f"{name}training", **style)
        if (run / "eval.jsonl").is_file():
            loss.plot(*series(records(run / "eval.jsonl"), "loss"), "o--", label=f"{name}validation", **style)
        rate.plot(*series(found, "lr"), **style)
        for kind, line in (("real", "-"), ("label", ":")):
            steps, values = series(found, f"{kind}_tok_s")
            speed.plot(steps, smoothed(values), line, label=f"{kind} tokens" if not color else None, **style)
    for axes, label in ((loss, "loss"), (rate, "learning rate"), (speed, "tok/s")):
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    loss.legend()
    speed.legend()
    speed.set_ylim(bottom=0)
    speed.set_xlabel("step")
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)


def main(argv: Sequence[str], prog: str = "python -m train.plot") -> int:
    """Write the plots; returns the exit code."""
    parser = argparse.ArgumentParser(prog, description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, help="folders of runs")
    parser.add_argument("--output", type=Path, help="path of the plots, without suffix [plot in the first run]")
    options = parser.parse_args(argv)
    target = options.output or options.runs[0] / "plot"
    paths = [target.with_name(f"{target.name}.{kind}") for kind in ("png", "svg")]
    draw(options.runs, paths)
    print("\n".join(map(str, paths)))
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
