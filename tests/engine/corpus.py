"""A small corpus made in the tests: five and more work units of text, with duplicates and broken lines in it."""

import contextlib
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from datakit.engine.executors import Local, Progress, UnitExecutor
from datakit.engine.plan import Flow
from datakit.engine.recipe import load_recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from tests.files import write_recipe


class Shuffled(Local):
    """A pool that draws its tasks in an order of its own."""

    def map(self, work: Any, tasks: Iterable[Any], *, processes: bool) -> Iterator[Any]:
        shuffled = list(tasks)
        random.Random(self.workers).shuffle(shuffled)
        return Local.map(self, work, shuffled, processes=processes)


VOCABULARY = (
    "the of and to in that with for data model train token shard row count hash word text near same other field value "
    "begin end small large first last read write keep drop merge split sort pack order stage input output file line"
)
WORDS = VOCABULARY.split()


def write_corpus(folder: Path, rows: int = 2600, files: int = 3) -> list[str]:
    """JSONL files of about 2 kB a row; every tenth row repeats one before it, exactly or with one word changed."""
    rng = random.Random(5)
    folder.mkdir(parents=True, exist_ok=True)
    texts: list[str] = []
    for n in range(rows):
        if n % 10 == 7:
            words = rng.choice(texts[-200:]).split(" ")
            if n % 20 == 7:
                words[rng.randrange(len(words))] = "changed"
            texts.append(" ".join(words))
        else:
            sentences = (" ".join(rng.choices(WORDS, k=rng.randint(6, 15))) + "." for _ in range(30))
            texts.append(f"Row {n} is about {rng.randrange(10**9)}. " + "\n".join(sentences))
    paths = []
    for f in range(files):
        path = folder / f"part-{f}.jsonl"
        lines = [json.dumps({"id": f"r{n}", "text": t, "n": n}) for n, t in enumerate(texts) if n % files == f]
        lines.insert(11, '{"text": "cut off')
        path.write_text("\n".join(lines) + "\n")
        paths.append(str(path))
    return paths


RECIPE = """
[dataset]
kind = "text"
inputs = ["raw/*.jsonl"]
stages = ["ingest", "language", "dedup", "filter", "tokenizer", "tokenize", "pack"]
[ingest]
shard_mb = 1
[filter.gopher_quality]
min_stop_words = 1
[tokenizer]
vocab_size = 600
[pack]
seq_len = 256
part_tokens = 60000
"""


def write_project(root: Path, **corpus: int) -> Path:
    """A project with that corpus and a recipe for all stages."""
    write_corpus(root / "raw", **corpus)
    write_recipe(root, RECIPE)
    return root


def run_all(root: Path, executor: UnitExecutor) -> None:
    """Run all stages of a project's recipe."""
    with contextlib.chdir(root):
        Flow(run=Run(OutputLayout(root, "d"), executor, Progress()), recipe=load_recipe(root, "d")).all()


def results(root: Path) -> dict[str, bytes]:
    """Every file that a run made, but those that tell when and where it ran, and those that only save work."""
    return {
        str(p.relative_to(root)): p.read_bytes()
        for top in ("manifests", "data")
        for p in sorted((root / top).rglob("*"))
        if p.is_file() and not p.name.endswith(".run.json") and ".units" not in p.parts
    }
