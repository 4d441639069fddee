"""From what was asked for to the stages that must run: the recipe's order, what is there already, what comes first."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import datakit.storage as storage
from datakit.config import refuse_idle
from datakit.data import KINDS
from datakit.engine.executors import Local, Progress
from datakit.engine.recipe import FLOW, Recipe, load_recipe, stage_class
from datakit.engine.runner import Run, run_stage, why_stale
from datakit.engine.store import OutputLayout
from datakit.errors import DatakitError, LayoutError, UsageError
from datakit.manifest import Manifest, is_manifest, load
from datakit.stage import Parent, Stage


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """One command's work on one dataset."""

    run: Run
    recipe: Recipe
    flags: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By stage: values from command-line flags."""
    sets: dict[str, dict[str, str]] = field(default_factory=dict)
    """By stage: `--set` values."""
    _stages: dict[str, Stage] = field(default_factory=dict, init=False, compare=False)

    def _made(self, stage: str) -> Stage:
        """A stage with this command's values, made once."""
        if stage not in self._stages:
            make: Any = stage_class(stage)
            self._stages[stage] = make(config=self.recipe.config(stage, self.sets.get(stage), self.flags.get(stage)))
        return self._stages[stage]

    def all(self, until: str | None = None) -> Path:
        """Run the recipe's stages in order, up to and with `until`; what is up to date is skipped.

        Raises:
            UsageError: `until` is no stage of the recipe.
        """
        stages = self.recipe.stages
        if until is not None:
            if until not in stages:
                raise UsageError(
                    f"{self.recipe.dataset}: its recipe has no stage {until!r}; it has {', '.join(stages)}"
                )
            stages = stages[: stages.index(until) + 1]
        return self._steps(stages, {}, self.recipe.inputs)

    def _check(self, steps: Sequence[str]) -> None:
        """Refuse wrong requests before any work.

        These are senseless values, values for a stage that will not run, and for stages that run for the first time,
        models, tokenizers and evaluation files that are missing or unusable.
        """
        stages = {stage: self._made(stage) for stage in steps}
        for idle in (s for s in (*self.flags, *self.sets) if s not in steps):
            values = ", ".join(self.flags.get(idle, {}) | self.sets.get(idle, {}))
            raise UsageError(
                f"{values} of {idle}, which does not run in this command (it runs {', '.join(steps)}): put them into "
                f"the recipe and use `datakit run`, or give them to `datakit {idle}`"
            )
        kind = KINDS.get(self.flags.get("ingest", {}).get("kind", self.recipe.kind), "")
        for stage, made in stages.items():
            refuse_idle(made.config, kind, f"{stage}.")
            if not self.run.layout.manifest(stage).is_file():
                made.check()

    def stage(self, stage: str, inputs: Sequence[Any]) -> Path:
        """Run one stage: on inputs (raw files or a manifest) with what they need first, or after the recipe's stages
        before it, which run in the project where their results are stale.

        Raises:
            UsageError: no inputs, and no recipe that names them.
        """
        needs, recipe = stage_class(stage).directly_after, self.recipe
        if inputs:
            given = given_manifest(inputs)
            steps = [s for s in (needs,) if s and (given is None or given.stage != s)] + [stage]
            if given is None and stage != "ingest":
                steps.insert(0, "ingest")
            return self._steps(steps, {given.stage: _result(storage.pull_result(inputs[0]))} if given else {}, inputs)
        if recipe.path is None:
            how = f"give {stage} files or a manifest, or begin a recipe with `datakit init {recipe.dataset} FILES...`"
            raise UsageError(f"{recipe.dataset}: has no recipe that says what {stage} comes after: {how}")
        # earlier stages of a dataset are in its project, whatever `--output` says
        project = replace(self, run=replace(self.run, layout=replace(self.run.layout, output=None)))
        return self._steps([*recipe.before(stage), stage], {}, recipe.inputs, project)

    def after(self, done: Mapping[str, Path], stages: Sequence[str]) -> Path:
        """Run stages after results by stage, which may be another dataset's; returns the last one's manifest."""
        return self._steps(stages, {stage: _result(path) for stage, path in done.items()}, ())

    def _steps(
        self, steps: Sequence[str], done: dict[str, Parent], inputs: Sequence[Any], before: "Flow | None" = None
    ) -> Path:
        """Run stages one after the other, after those that are done; returns the last one's manifest.

        `before` is the flow of the stages before the last one, where their results go elsewhere.
        """
        self._check(steps)
        for step in steps:
            at = before if before and step != steps[-1] else self
            done[step] = run_stage(at.run, *at.ready(step, done, inputs))
        return done[steps[-1]].path

    def stale(self, stages: Sequence[str]) -> dict[str, str]:
        """Which results of the recipe's first stages are not what a run would make now, and why. Nothing is run."""
        found: dict[str, str] = {}
        done: dict[str, Parent] = {}
        for stage in stages:
            path = self.run.layout.manifest(stage)
            if not path.is_file():
                found[stage] = "has not run"
            elif found:
                found[stage] = f"comes after {next(iter(found))}, which is stale"
            else:
                try:
                    why = why_stale(self.run, *self.ready(stage, done, self.recipe.inputs))
                    done[stage] = _result(path)
                except DatakitError as e:
                    why = str(e)
                found |= {stage: why} if why else {}
        return found

    def ready(self, name: str, done: dict[str, Parent], inputs: Sequence[Any]) -> tuple[Stage, Sequence[Parent]]:
        """(a stage that can run, its parents), as `run_stage` takes them."""
        stage = self._made(name)
        if stage.work_unit == "raw":
            if not inputs:
                raise UsageError(f"{self.recipe.dataset}: names no inputs: give files, or put them into its recipe")
            try:
                return stage.read_from(inputs, self.run.layout.removed), ()
            except LayoutError as e:
                named = "" if self.recipe.inputs else f"datakit ingest {shlex.join(map(str, inputs))} --dataset NAME"
                raise e.of_dataset(self.recipe.dataset, named) from None
        rows = [parent for s, parent in done.items() if stage_class(s).makes_rows][-1]
        if rows.manifest.stage == "pack":
            raise UsageError(
                f"{rows.path}: is packed already; {name} works on rows: give its tokenize or ingest manifest"
            )
        if rows.manifest.kind.startswith("tokens") and not stage.takes_tokens:
            why = "its rows hold token ids and no text, and need only the stages ingest, tokenize and pack"
            raise UsageError(f"{rows.path}: {why}; {name} cannot look at them")
        if stage.directly_after and rows.manifest.stage != stage.directly_after:
            found = rows.manifest.stage
            raise UsageError(
                f"{rows.path}: {name} works on the result of {stage.directly_after}, found that of {found}"
            )
        refuse_idle(stage.config, rows.manifest.kind, f"{name}.")
        stage, used = stage.use_results(done, self.run.layout.manifest(name), rows.manifest.kind)
        return stage, (rows, *used)


def stale_results(root: Path, dataset: str) -> dict[str, str]:
    """Which results of a dataset are stale by its recipe, and why; empty where the recipe names no inputs.

    The inputs of a recipe are relative to the current folder, so that a project elsewhere cannot be judged.
    """
    recipe = load_recipe(root, dataset)
    relative = any(not storage.is_url(given) and not os.path.isabs(given) for given in recipe.inputs)
    if recipe.path is None or not recipe.inputs or (relative and root.resolve() != Path.cwd()):
        return {}
    layout = OutputLayout(root=root, dataset=dataset)
    return Flow(run=Run(layout, Local(1), Progress()), recipe=recipe).stale(recipe.stages)


def why_stale_result(path: Path) -> str:
    """Why a result of a dataset in the current folder, or in a project on an object store, is stale; empty where it is
    not, or its recipe does not tell."""
    elsewhere = storage.url_of(path) is not None and len(path.parents) > 2
    root, dataset = path.parents[2] if elsewhere else Path.cwd(), path.parent.name
    try:
        if path.resolve() != OutputLayout(root=root, dataset=dataset).manifest(path.stem).resolve():
            return ""
        return stale_results(root, dataset).get(path.stem, "")
    except DatakitError as e:
        return str(e)


def _result(path: Path) -> Parent:
    """The result with this manifest, as an input of later stages."""
    return Parent(path, load(path))


def given_manifest(inputs: Sequence[Any]) -> Manifest | None:
    """The manifest that the inputs are, or None for raw files."""
    if len(inputs) != 1 or not isinstance(inputs[0], str):
        return None
    if storage.is_url(inputs[0]) and not storage.is_result(inputs[0]):
        return None
    path = storage.pull_result(inputs[0])
    return load(path) if is_manifest(path) else None


def sections(sets: Sequence[str], stage: str | None) -> dict[str, dict[str, str]]:
    """`--set` values by stage: `key=value` of the command's stage, or `stage.key=value` of any.

    Raises:
        UsageError: no `=`, or no stage named where the command has none.
    """
    found: dict[str, dict[str, str]] = {}
    for text in sets:
        key, equals, value = text.partition("=")
        head, _, rest = key.partition(".")
        if not equals:
            raise UsageError(f"--set {text}: expected key=value")
        if head in FLOW and rest:
            found.setdefault(head, {})[rest] = value
        elif stage is not None:
            found.setdefault(stage, {})[key] = value
        else:
            raise UsageError(f"--set {text}: name the stage too, as in --set dedup.threshold=0.8")
    return found
