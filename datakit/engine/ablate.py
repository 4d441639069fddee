"""What does each stage bring? From one recipe, the packed sets that lack one stage each, for `datakit-train compare`.

The arms are `all` (the recipe's own dataset), `without-STAGE` for each stage that a recipe may leave out, and `raw`
without all of these. An arm begins at the last result of the recipe's dataset that it shares, so rows are read once and
the stages before the missing one run once. Every arm has the tokenizer of the recipe. `map` stays in every arm: it is
part of how a user reads the rows. An arm whose packed bytes are those of an earlier one, since its stage changed
nothing, is left out: to train it would compare noise.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import datakit.storage as storage
from datakit.data import KINDS
from datakit.engine.executors import Local, Progress, all_cores
from datakit.engine.plan import Flow
from datakit.engine.recipe import Recipe, load_recipe, recipe_path, stage_class, which_dataset
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from datakit.errors import UsageError
from datakit.manifest import load

NEEDED = ("ingest", "map", "tokenizer", "tokenize", "pack")
"""Stages of every arm."""


def arms_of(recipe: Recipe) -> Iterator[tuple[str, Recipe]]:
    """The arms behind `all`: the name of each, and a recipe of its dataset without a tokenizer stage.

    Raises:
        UsageError: there is nothing to leave out, or nothing is packed.
    """
    stages, name = [s for s in recipe.stages if s != "tokenizer"], recipe.dataset
    # what makes no rows, as a model for a later stage, is no arm of its own
    optional = [s for s in stages if s not in NEEDED and stage_class(s).makes_rows]
    if not optional:
        raise UsageError(f"{name}: its recipe has no stage that it could leave out; it has {', '.join(recipe.stages)}")
    if stages[-1] != "pack":
        raise UsageError(f"{name}: its recipe ends with {stages[-1]}, and arms are packed: add tokenize and pack to it")
    lacking = {f"without-{s.replace('_', '-')}": {s} for s in optional if len(optional) > 1}
    for arm, without in (lacking | {"raw": {*stages} - {*NEEDED}}).items():
        left = tuple(s for s in stages if s not in without)
        tables = {s: values for s, values in recipe.tables.items() if s in left}
        yield arm, replace(recipe, dataset=f"{name}-{arm}", stages=left, tables=tables)


def ablate(
    dataset: str | Recipe | None = None, *, project: str | Path = ".", workers: int = 0, progress: bool = False
) -> dict[str, Path]:
    """Make the arms of a dataset's recipe, or of a `datakit.Pipeline.recipe`; what is up to date is skipped.

    Returns:
        The pack manifest of each arm, `all` first and `raw` last, without those that equal an earlier arm. Arms are
        datasets `DATASET-without-STAGE`.

    Raises:
        UsageError: no such dataset, an arm's name is that of another dataset, or the rows are no plain text.
        DatakitError: as in a run of the recipe. Finished work is kept.
    """
    root = storage.local(project)
    storage.pull(root / "manifests")
    recipe = dataset if isinstance(dataset, Recipe) else load_recipe(root, which_dataset(root, dataset))
    if recipe.path is None and recipe is not dataset:
        raise UsageError(
            f"{recipe.dataset}: has no recipe, and arms are made from one: `datakit init` writes it. What a pipeline "
            "made in Python needs none: datakit.ablate(pipeline.recipe)"
        )
    arms = list(arms_of(recipe))
    for name in (arm.dataset for _, arm in arms):
        taken = recipe_path(root, name), OutputLayout(root, name).manifest("ingest")  # an arm has neither
        if any(storage.exists(path) for path in taken):
            raise UsageError(
                f"manifests/ holds a dataset {name}, which is no arm of {recipe.dataset}: rename one of them"
            )
    with closing(Progress(shown=progress)) as shown:
        run = Run(OutputLayout(root, recipe.dataset), Local(workers or all_cores()), shown)
        base = Flow(run=run, recipe=recipe)
        if (kind := load(base.all("ingest")).kind) != KINDS["text"]:
            raise UsageError(
                f"{recipe.dataset}: holds rows of kind {kind}, and arms are plain text, since they are compared by "
                "bits per byte of texts; train the results of two recipes and compare your own scores instead"
            )
        found, before = {"all": base.all()}, [s for s in recipe.stages if s != "tokenizer"]
        for name, arm in arms:
            shared = [s for s, _ in takewhile(lambda pair: pair[0] == pair[1], zip(arm.stages, before, strict=False))]
            done = [s for s in recipe.stages if s in shared or s == "tokenizer"]
            shown.line(f"{arm.dataset}: begins after {shared[-1]} of {recipe.dataset}")
            flow = Flow(run=replace(run, layout=OutputLayout(root, arm.dataset)), recipe=arm)
            path = flow.after({s: run.layout.manifest(s) for s in done}, arm.stages[len(shared) :])
            if same := next((other for other, known in found.items() if _bytes(known) == _bytes(path)), None):
                shown.line(f"{name}: holds the same bytes as {same}, and is left out: that stage changed nothing")
            else:
                found[name] = path
    return found


def _bytes(path: Path) -> list[str]:
    """The digests of the packed files of an arm."""
    return [shard.sha256 for shard in load(path).of_role("kept")]
