"""What a run costs: processor seconds, bytes and requests to an object store, by the phases of each stage.

    python bench/cost.py ../shared/tokenizers/minimind FILE... [--shard-mb 16]

The line runs with one worker on a project on a store (moto's, in a process of its own), and after each unit the mirror
is emptied: so everything is fetched and stored as if each unit ran on a machine of its own. Its processor time is
taken; what is left is the driver's. A first run on the first file loads kernels and models, and is not shown; a second
one on it is: what the driver takes for a GB is the difference to the run on all files, the rest is its start.
docs/cluster.md has the model that these figures are for.
"""

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from measure import object_store

from datakit import storage
from datakit.engine.executors import Progress
from datakit.engine.plan import Flow
from datakit.engine.recipe import load_recipe, write_recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout

STAGES = ("ingest", "language", "dedup", "dedup_repeats", "filter", "tokenize", "pack")
DRIVER = "driver"
REQUESTS = ("get", "get_range", "put", "list", "head", "delete")


class Clock(Progress):
    """An executor of one worker, the progress that tells it the phase, and what each phase of one stage took: units,
    processor seconds (`cpu`), those of its longest unit, bytes and requests."""

    workers = share = 1

    def __init__(self) -> None:
        super().__init__()
        self.phase, self.aside, self.library = DRIVER, 0.0, storage.library()
        self.took: dict[str, Counter[str]] = defaultdict(Counter)

    def map(self, work: Callable[[Any], Any], tasks: Iterable[Any], *, processes: bool) -> Iterator[Any]:
        for task in tasks:
            self.phase = self.title.partition(": ")[2] or "units"
            took, began = self.took[self.phase], time.process_time()
            result = work(task)
            spent = time.process_time() - began
            took["units"] += 1
            took["cpu"] += spent
            took["longest"] = max(took["longest"], spent)
            for file in storage.mirror().rglob("*"):
                if file.is_file() and file.suffix and not file.name.endswith(storage.SMALL):
                    file.unlink()
            self.phase, self.aside = DRIVER, self.aside + time.process_time() - began
            yield result

    def __getattr__(self, name: str) -> Any:
        """A function of the library that sends requests, counted; all else as it is."""
        function, took = getattr(self.library, name), self.took

        def counted(store: Any, *args: Any, **options: Any) -> Any:
            found, answer = took[self.phase], function(store, *args, **options)
            found[name] += 1
            if name == "put":
                found["out"] += len(args[1]) if isinstance(args[1], bytes) else args[1].stat().st_size
            elif name.startswith("get"):
                found["in"] += options["length"] if name == "get_range" else answer.meta["size"]
            return answer

        return counted if name in REQUESTS else function


def measured(tokenizer: Path, files: list[Path], shard_mb: int, place: str) -> dict[str, dict[str, Counter[str]]]:
    """Run the line on a project of the store: by stage and phase, what `Clock` says."""
    root, named = storage.local(place), [str(f.resolve()) for f in files]
    options = {"ingest": {"shard_mb": shard_mb}, "tokenize": {"tokenizer": str(tokenizer.resolve())}}
    write_recipe(root, "cost", "auto", named, STAGES, options)
    layout, found = OutputLayout(root=root, dataset="cost"), {}
    for stage in STAGES:
        clock, began = Clock(), time.process_time()
        storage.library = lambda clock=clock: clock
        Flow(run=Run(layout, clock, clock), recipe=load_recipe(root, "cost")).all(stage)
        storage.library, found[stage] = (lambda clock=clock: clock.library), dict(clock.took)
        found[stage][DRIVER]["cpu"] = time.process_time() - began - clock.aside
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--shard-mb", type=int, default=16)
    asked = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory() as folder, object_store(Path(folder)):
        for number, files in enumerate((asked.files[:1], asked.files[:1], asked.files)):
            gb, place = sum(f.stat().st_size for f in files) / 1e9, f"s3://corpus/{number}"
            runs.append((gb, measured(asked.tokenizer, files, asked.shard_mb, place)))
    (small, before), (gb, found) = runs[1:]
    print(f"{gb:.3f} GB raw; of the driver's seconds, the part that grows\n")
    head = ("phase", "units", "CPU s/GB", "longest, s", "GB in/GB", "GB out/GB", *REQUESTS)
    print("| " + " | ".join(head) + " |\n" + "| --- " * len(head) + "|")
    for stage, phases in found.items():
        for phase, took in phases.items():
            own = took["cpu"] / gb
            if phase == DRIVER:
                own = max(took["cpu"] - before[stage][DRIVER]["cpu"], 0.0) / max(gb - small, 1e-9)
            sizes = (f"{took[side] / 1e9 / gb:.3f}" for side in ("in", "out"))
            cells = f"{stage}: {phase}", took["units"], f"{own:.2f}", f"{took['longest']:.2f}", *sizes
            print("| " + " | ".join(map(str, (*cells, *(took[name] for name in REQUESTS)))) + " |", flush=True)


if __name__ == "__main__":
    main()
