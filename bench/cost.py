"""What a run costs: processor seconds of units and of the driver, and bytes, for a GB of raw text, by stage.

    python bench/cost.py ../shared/tokenizers/minimind FILE...

The line runs with one worker, unit by unit; each unit's processor time is taken, and what is left is the driver's. It
runs on the first file before it runs on all: what the driver takes for a GB is the difference, and the rest its start.
With C seconds of units for a GB in a phase, u of its longest unit and D of the driver, S GB on n workers of one core
take no more than `start + sum over phases of (C * S / n + (1 - 1/n) * u) + D * S` (Graham, 1966).
"""

import argparse
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from datakit.engine.executors import Progress
from datakit.engine.plan import Flow
from datakit.engine.recipe import load_recipe, write_recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from datakit.manifest import load

STAGES = ("ingest", "language", "dedup", "dedup_repeats", "filter", "tokenize", "pack")
WORKERS = (1, 2, 4, 8, 100)


class Clock(Progress):
    """An executor of one worker that times each unit, and the progress that tells it the phase."""

    workers = share = 1

    def __init__(self) -> None:
        self.phases: dict[str, list[float]] = defaultdict(list)

    def map(self, work: Callable[[Any], Any], tasks: Iterable[Any], *, processes: bool) -> Iterator[Any]:
        for task in tasks:
            began, title = time.process_time(), self.title
            result = work(task)
            self.phases[title.partition(": ")[2] or "units"].append(time.process_time() - began)
            yield result


def measured(tokenizer: Path, files: list[Path], folder: Path) -> dict[str, tuple[dict[str, list[float]], float, int]]:
    """Run the line: by stage, the processor seconds of the units of each phase, those of the driver, bytes written."""
    named = [str(f.resolve()) for f in files]
    write_recipe(folder, "cost", "auto", named, STAGES, {"tokenize": {"tokenizer": str(tokenizer.resolve())}})
    layout, found = OutputLayout(root=folder, dataset="cost"), {}
    for stage in STAGES:
        clock, began = Clock(), time.process_time()
        path = Flow(run=Run(layout, clock, clock), recipe=load_recipe(folder, "cost")).all(stage)
        spent = time.process_time() - began - sum(map(sum, clock.phases.values()))
        found[stage] = dict(clock.phases), spent, sum(shard.bytes for shard in load(path).shards)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    asked = parser.parse_args()
    runs = []
    for files in (asked.files[:1], asked.files[:1], asked.files):  # the first run loads kernels and models
        with tempfile.TemporaryDirectory() as folder:
            gb = sum(f.stat().st_size for f in files) / 1e9
            runs.append((gb, measured(asked.tokenizer, files, Path(folder))))
    (small, before), (gb, found) = runs[1:]
    print(f"{gb:.2f} GB raw; peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB of memory\n")
    print("| stage | units, CPU s/GB | phases | driver, CPU s/GB | written, GB/GB |\n| --- | --- | --- | --- | --- |")
    walls, start = dict.fromkeys(WORKERS, 0.0), 0.0
    for stage, (phases, driver, written) in found.items():
        slope = max(driver - before[stage][1], 0.0) / max(gb - small, 1e-9)
        start += driver - slope * gb
        shown = ", ".join(f"{name} {sum(units) / gb:.1f}" for name, units in phases.items() if len(phases) > 1)
        own = sum(map(sum, phases.values())) / gb
        print(f"| {stage} | {own:.2f} | {shown} | {slope:.2f} | {written / 1e9 / gb:.2f} |")
        for n in WORKERS:
            walls[n] += sum(sum(units) / n + (1 - 1 / n) * max(units) for units in phases.values()) + slope * gb
    print(f"\nstart {start:.1f} s; wall: " + ", ".join(f"{start + wall:.1f} s on {n}" for n, wall in walls.items()))


if __name__ == "__main__":
    main()
