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
from datakit.engine.lineage import file_hashes
from datakit.engine.recipe import FLOW, Recipe, load_recipe, stage_class
from datakit.engine.runner import Run, run_stage, why_stale
from datakit.engine.store import OutputLayout
from datakit.errors import DatakitError, LayoutError, UsageError
from datakit.manifest import Manifest, ancestors, is_manifest, load, load_run
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
    only: bool = False
    """Run one stage alone, and refuse where what it needs is stale."""
    limited: tuple[str, int] = ("", 0)
    """(a stage, how many rows of the result before it come in); no stage: all rows come in everywhere."""

    def _made(self, stage: str) -> Stage:
        """A stage with this command's values."""
        make: Any = stage_class(stage)
        made: Stage = make(config=self.recipe.config(stage, self.sets.get(stage), self.flags.get(stage)))
        return made

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
        """Run one stage: on inputs (raw files or a manifest) with what they need first, or after the stages before it.

        Stages of a recipe before it run in the project, where their results are stale; without a recipe, the newest
        results are taken.

        Raises:
            UsageError: with `only`, an earlier stage is stale.
        """
        needs, recipe, earlier = stage_class(stage).directly_after, self.recipe, self.recipe.before(stage)
        if inputs:
            if self.only:
                raise UsageError("--only is for a stage of a dataset without inputs; with inputs, only these are read")
            given = given_manifest(inputs)
            steps = [s for s in (needs,) if s and (given is None or given.stage != s)] + [stage]
            if given is None and stage != "ingest":
                steps.insert(0, "ingest")
            return self._steps(steps, {given.stage: _result(storage.pull_result(inputs[0]))} if given else {}, inputs)
        # earlier stages of a dataset are in its project, whatever `--output` says
        project = replace(self, run=replace(self.run, layout=replace(self.run.layout, output=None)))
        if stage == "ingest" or not (recipe.path and recipe.inputs):
            done = project._there(stage, needs)
            last = max((earlier.index(s) for s in done if s in earlier), default=-1)
            # without a recipe, only what cannot be left out
            steps = [s for s in earlier[last + 1 :] if recipe.path or s in ("ingest", needs)]
            return self._steps([*steps, stage], done, recipe.inputs)
        if not self.only:
            return self._steps([*earlier, stage], {}, recipe.inputs, project)
        if stale := project.stale(earlier):
            said = "; ".join(f"{step} ({why})" for step, why in stale.items())
            raise UsageError(f"{stage} --only: what it needs is stale: {said}. Without --only that is run first")
        return self._steps([stage], {s: _result(project.run.layout.manifest(s)) for s in earlier}, ())

    def after(self, done: Mapping[str, Path], stages: Sequence[str]) -> Path:
        """Run stages after results by stage, which may be another dataset's; returns the last one's manifest."""
        return self._steps(stages, {stage: _result(path) for stage, path in done.items()}, ())

    def _steps(
        self, steps: Sequence[str], done: dict[str, Parent], inputs: Sequence[Any], before: "Flow | None" = None
    ) -> Path:
        """Run stages one after the other, after those that are done; returns the last one's manifest.

        `before` is the flow of the stages before the last one, where their results go elsewhere.
        """
        flow = self._limited(steps[0])
        flow._check(steps)
        for step in steps:
            at = before if before and step != steps[-1] else flow
            done[step] = run_stage(at.run, *at.ready(step, done, inputs))
        return done[steps[-1]].path

    def _limited(self, first: str) -> "Flow":
        """The flow of a command whose first stage this is: it takes in `--limit` rows, if it reads no raw files.

        Raises:
            ConfigError: the limit is below 0.
        """
        given = dict(self.flags.get("ingest", {}))
        if first == "ingest" or "limit" not in given:
            return self
        limit = self.recipe.config("ingest", flags={"limit": given.pop("limit")}).limit
        flags = {stage: values for stage, values in self.flags.items() if stage != "ingest"}
        return replace(self, flags=flags | ({"ingest": given} if given else {}), limited=(first, limit))

    def _there(self, stage: str, needs: str) -> dict[str, Parent]:
        """The results that a stage of a dataset without a recipe comes after, but for one that is to run again."""
        layout, before = self.run.layout, self.recipe.before(stage)
        there = [s for s in before if layout.manifest(s).is_file()]
        if stage in ("tokenize", "pack") and "tokenizer" not in there and layout.manifest("tokenizer").is_file():
            there.append("tokenizer")
        if needs in there and (self.flags.get(needs) or self.sets.get(needs)):  # it is to run again, with other values
            there.remove(needs)
        if not there and not self.recipe.inputs and stage != "ingest":
            raise UsageError(
                f"{self.recipe.dataset}: has no earlier stage and no recipe: give {stage} files or a manifest"
            )
        done = {s: _result(layout.manifest(s)) for s in there}
        self._refuse_stale(stage, [parent for s, parent in done.items() if stage_class(s).makes_rows])
        return done

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

    def _refuse_stale(self, stage: str, earlier: Sequence[Parent]) -> None:
        """Without a recipe nobody knows how to make the earlier results again, so they must be up to date.

        Raises:
            UsageError: a raw file changed, or an earlier result was made from an older one than the newest.
        """
        dataset = self.recipe.dataset
        last = earlier[-1].manifest.stage if earlier else ""
        made_from = ancestors(earlier[-1].path) if earlier else []
        for before in (parent.manifest for parent in earlier[:-1]):
            if before.version not in {manifest.version for _, manifest in made_from}:
                why = f"{last} was made from an older {before.stage} than there is now, and {dataset} has no recipe"
                raise UsageError(f"{stage}: {why}: run `datakit {last} --dataset {dataset}` first")
        for path, manifest in made_from:
            places = load_run(path).get("raw", {})
            for raw in (p for p in manifest.parents if "://" not in places.get(p.get("raw"), "://")):
                file = path.parent / places[raw["raw"]]
                if file.is_file() and file_hashes({file: ""})[file] != raw["sha256"]:
                    why = f"{raw['raw']} changed after {dataset} was made from it, and {dataset} has no recipe"
                    raise UsageError(f"{stage}: {why}: give the files again, as in `datakit {last} FILES...`")

    def ready(
        self, name: str, done: dict[str, Parent], inputs: Sequence[Any]
    ) -> tuple[Stage, Sequence[Parent], Sequence[Parent]]:
        """(a stage that can run, its parents, what it is compared with), as `run_stage` takes them."""
        stage = self._made(name)
        if stage.work_unit == "raw":
            if not inputs:
                raise UsageError(f"{self.recipe.dataset}: names no inputs: give files, or put them into its recipe")
            try:
                return stage.read_from(inputs, self.run.layout.removed), (), ()
            except LayoutError as e:
                named = "" if self.recipe.inputs else f"datakit ingest {shlex.join(map(str, inputs))} --dataset NAME"
                raise e.of_dataset(self.recipe.dataset, named) from None
        rows = [parent for s, parent in done.items() if stage_class(s).makes_rows][-1]
        rows = replace(rows, limit=self.limited[1]) if name == self.limited[0] else rows
        if rows.manifest.kind.startswith("tokens") and not stage.takes_tokens:
            why = "its rows hold token ids and no text, and need only the stages ingest, tokenize and pack"
            raise UsageError(f"{rows.path}: {why}; {name} cannot look at them")
        if stage.directly_after and rows.manifest.stage != stage.directly_after:
            found = rows.manifest.stage
            raise UsageError(
                f"{rows.path}: {name} works on the result of {stage.directly_after}, found that of {found}"
            )
        refuse_idle(stage.config, rows.manifest.kind, f"{name}.")
        stage, taken = stage.use_earlier(done)
        stage, against = stage.compare_with(self.run.layout.manifest(name), rows.manifest.kind)
        return stage, [rows, *taken], against


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
