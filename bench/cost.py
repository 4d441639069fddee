"""The model of cost of docs/cluster.md: its constants, measured here, its check, and what more data would need.

    python bench/cost.py ../shared/tokenizers/minimind FILE...

The line runs with one worker, unit by unit; each unit's processor time is taken, and what is left is the driver's. It
runs on one file first, and then on all: what the driver takes for a GB is the difference, and the rest its start.

    wall(S, n) = start + sum over phases of (C * S / n + (1 - 1/n) * u) + D * S

S: GB of raw text; n: workers of one core; C: processor seconds of a phase's units for a GB; u: those of its longest
unit (Graham 1966: no list schedule takes longer); D: processor seconds of the driver for a GB. The check schedules the
measured units on 1, 2, 4 and 8 workers, each unit on the first worker that is free.
"""

import argparse
import heapq
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STAGES = ("ingest", "language", "dedup", "dedup_repeats", "filter", "tokenize", "pack")
SIZES = (1e3, 1e4, 1e5)
"""In GB."""
SHARD_GB = 0.256
"""Raw text of a shard, as a large run has it (`ingest.shard_mb`)."""
KEYS_OF_RANGE, BANDS = 1 << 22, 15


@dataclass
class Phase:
    """A phase of a stage: the processor seconds of its units."""

    units: list[float] = field(default_factory=list)


class Clock:
    """An executor of one worker that times each unit, and the progress that tells it the phase."""

    workers = share = 1

    def __init__(self) -> None:
        self.phases: dict[str, Phase] = {}
        self.title = ""

    def map(self, work: Callable[[Any], Any], tasks: Iterable[Any], *, processes: bool) -> Iterator[Any]:
        for task in tasks:
            began = time.process_time()
            result = work(task)
            self.phases.setdefault(self.title, Phase()).units.append(time.process_time() - began)
            yield result

    def start(self, title: str, units: int | None) -> None:
        self.title = title

    def advance(self, rows: int, bytes: int, *, again: bool) -> None: ...

    def line(self, text: str) -> None: ...

    def close(self) -> None: ...


@dataclass
class Measured:
    """One stage: its phases, the driver's processor seconds, bytes in and out."""

    phases: dict[str, Phase]
    driver: float
    read: int
    written: int
    files: int


def measured(tokenizer: Path, files: list[Path], folder: Path) -> dict[str, Measured]:
    """Run the line."""
    from datakit.engine.plan import Flow
    from datakit.engine.recipe import load_recipe, write_recipe
    from datakit.engine.runner import Run
    from datakit.engine.store import OutputLayout
    from datakit.manifest import load

    write_recipe(folder, "cost", "auto", [str(f.resolve()) for f in files], STAGES)
    recipe, clock, found = load_recipe(folder, "cost"), Clock(), dict[str, Measured]()
    layout = OutputLayout(root=folder, dataset="cost")
    before = sum(f.stat().st_size for f in files)
    run = Run(layout=layout, executor=clock, progress=clock)  # type: ignore[arg-type]
    flow = Flow(run=run, recipe=recipe, flags={"tokenize": {"tokenizer": str(tokenizer.resolve())}})
    for stage in STAGES:
        clock.phases, began = {}, time.process_time()
        done = {s: layout.manifest(s) for s in STAGES[: STAGES.index(stage)]}
        path = flow._one(stage, done, [str(f.resolve()) for f in files])
        spent = time.process_time() - began
        manifest = load(path)
        phases = {title.partition(": ")[2] or "units": phase for title, phase in clock.phases.items()}
        driver = spent - sum(sum(phase.units) for phase in phases.values())
        kept = sum(s.bytes for s in manifest.of_role("kept"))
        written = sum(s.bytes for s in manifest.shards)
        found[stage] = Measured(phases, driver, before, written, len(manifest.shards))
        before = kept
    return found


def model(found: dict[str, Measured], workers: int) -> float:
    """Wall seconds of the measured data, by the formula."""
    phases = [phase.units for stage in found.values() for phase in stage.phases.values()]
    units = sum(sum(seconds) / workers + (1 - 1 / workers) * max(seconds) for seconds in phases)
    return units + sum(stage.driver for stage in found.values())


def simulated(found: dict[str, Measured], workers: int) -> float:
    """Wall seconds of a schedule of the measured units."""
    total = 0.0
    for stage in found.values():
        for phase in stage.phases.values():
            free = [0.0] * workers
            for seconds in phase.units:
                heapq.heapreplace(free, free[0] + seconds)
            total += max(free)
        total += stage.driver
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    asked = parser.parse_args()
    found, sizes = dict[str, Measured](), list[float]()
    drivers: list[dict[str, float]] = []
    for files in (asked.files[:1], asked.files[:1], asked.files):  # the first run loads kernels and models
        with tempfile.TemporaryDirectory() as folder:
            found = measured(asked.tokenizer, files, Path(folder))
            rows, lines = rows_and_lines(Path(folder))
        drivers.append({name: stage.driver for name, stage in found.items()})
        sizes.append(sum(f.stat().st_size for f in files) / 1e9)
    gb = sizes[-1]
    slopes = {n: max(drivers[-1][n] - drivers[1][n], 0.0) / max(gb - sizes[1], 1e-9) for n in found}
    start = sum(stage.driver for stage in found.values()) - sum(slopes.values()) * gb
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{gb:.2f} GB raw, {rows:,} rows; start {start:.1f} s; peak {peak:.1f} GB\n")
    print("| stage | units' CPU s/GB | phases | driver CPU s/GB | GB read/GB | GB written/GB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, stage in found.items():
        spent = {title: sum(phase.units) / gb for title, phase in stage.phases.items()}
        shown = ", ".join(f"{title} {seconds:.1f}" for title, seconds in spent.items() if len(spent) > 1)
        cells = [sum(spent.values()), shown, slopes[name], stage.read / 1e9 / gb, stage.written / 1e9 / gb]
        print(f"| {name} | " + " | ".join(c if isinstance(c, str) else f"{c:.2f}" for c in cells) + " |")
    print("\n| workers | formula, s | simulation, s |\n| --- | --- | --- |")
    for workers in (1, 2, 4, 8):
        print(f"| {workers} | {model(found, workers):.1f} | {simulated(found, workers):.1f} |")
    own = sum(sum(p.units) for s in found.values() for p in s.phases.values()) / gb
    driver = sum(slopes.values())
    written = sum(s.written for s in found.values()) / 1e9 / gb
    print("\n| | " + " | ".join(f"{size / 1e3:g} TB" for size in SIZES) + " |\n| --- |" + " --- |" * len(SIZES))
    table: dict[str, Callable[[float], str]] = {
        "core hours of units": lambda s: f"{own * s / 3600:,.0f}",
        "hours of the driver": lambda s: f"{driver * s / 3600:,.1f}",
        "wall at 100 cores, hours": lambda s: f"{(own * s / 100 + driver * s) / 3600:,.1f}",
        "wall at 1,000 cores, hours": lambda s: f"{(own * s / 1000 + driver * s) / 3600:,.1f}",
        "results on the store, TB": lambda s: f"{written * s / 1e3:,.1f}",
        "shards": lambda s: f"{s / SHARD_GB:,.0f}",
        "range reads of `bucket`": lambda s: f"{s / SHARD_GB * ranges_of(rows / gb * s) * BANDS:,.0f}",
        "bytes of each": lambda s: f"{12 * rows / gb * SHARD_GB / ranges_of(rows / gb * s):,.0f}",
        "range reads of `match`": lambda s: f"{s / SHARD_GB * ranges_of(lines / gb * s):,.0f}",
    }
    for name, line in table.items():
        print(f"| {name} | " + " | ".join(line(size) for size in SIZES) + " |")


def ranges_of(keys: float) -> int:
    """Into how many ranges a comparison cuts so many keys."""
    from datakit.dedup.shuffle import number_of_ranges

    return number_of_ranges(int(keys))


def rows_and_lines(folder: Path) -> tuple[int, int]:
    """Rows that ingest read; lines that were compared."""
    from datakit.manifest import load

    manifests = folder / "manifests/cost"
    facts = load(manifests / "dedup_repeats.json").facts
    return load(manifests / "ingest.json").ledger.rows.into, facts["units"]


if __name__ == "__main__":
    main()
