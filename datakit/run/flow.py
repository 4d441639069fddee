"""From what was asked for to the stages that must run: the recipe's order, what is there already, what comes first."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from datakit.errors import UsageError
from datakit.manifest import Manifest, load
from datakit.recipe import STAGES, Recipe, StageName
from datakit.run.job import Run
from datakit.stage import Stage

STAGE_CLASSES = {
    "normalize": "datakit.filter.normalize:Normalize",
    "language": "datakit.filter.language:Language",
    "dedup": "datakit.dedup.stage:Dedup",
    "filter": "datakit.filter.stage:Filter",
    "classify": "datakit.filter.classifier:Classify",
    "tokenize": "datakit.pack.tokenize:Tokenize",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """One command's work on one dataset."""

    run: Run
    recipe: Recipe
    flags: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By stage: values from command-line flags."""
    sets: dict[str, dict[str, str]] = field(default_factory=dict)
    """By stage: `--set` values."""

    def config(self, stage: str) -> Any:
        """A stage's config with this command's flags."""
        name = cast(StageName, stage)
        return self.recipe.config(name, self.sets.get(stage), self.flags.get(stage))

    def all(self, until: str | None = None) -> Path:
        """Run the recipe's stages in order, up to and with `until`; what is up to date is skipped.

        Raises:
            UsageError: `until` is no stage of the recipe.
        """
        stages = self.recipe.stages
        if until is not None:
            if until not in stages:
                raise UsageError(
                    f"the recipe of {self.recipe.dataset} has no stage {until!r}; it has {', '.join(stages)}"
                )
            stages = stages[: stages.index(until) + 1]
        for stage in stages:  # a value that makes no sense is an error before any work
            self.config(stage)
        done: dict[str, Path] = {}
        for stage in stages:
            done[stage] = self._one(stage, done, list(self.recipe.inputs))
        return done[stages[-1]]

    def stage(self, stage: str, inputs: Sequence[str]) -> Path:
        """Run one stage: on inputs (raw files or a manifest) with what they need first, or on the stage before it."""
        self.config(stage)
        if not inputs:
            return self._go_on(stage)
        given = _manifest(inputs)
        needs = [s for s in ("tokenize",) if stage == "pack" and (given is None or given.stage != s)]
        if given is not None:
            if given.kind == "tokens" and stage != "pack":
                raise UsageError(f"{inputs[0]}: holds tokens; {stage} works on text or conversations")
            done = {given.stage: Path(inputs[0])}
        else:
            needs = [s for s in ("ingest",) if stage != "ingest"] + needs
            done = {}
        for step in (*needs, stage):
            done[step] = self._one(step, done, list(inputs))
        return done[stage]

    def _go_on(self, stage: str) -> Path:
        """Run a stage on what is there: earlier manifests are taken as they are, and only missing stages run first."""
        if stage == "ingest":
            return self._one("ingest", {}, list(self.recipe.inputs))
        project = replace(self.run.place, output=None)
        before = self.recipe.before(stage)
        done = {s: project.manifest(s) for s in before if project.manifest(s).is_file()}
        if stage == "pack" and self.flags.get("tokenize"):  # another tokenizer was asked for
            done.pop("tokenize", None)
        if not done and not self.recipe.inputs:
            raise UsageError(
                f"dataset {self.recipe.dataset!r} has no earlier stage and no recipe with inputs: give {stage} input "
                f"files or a manifest, or begin with `datakit init {self.recipe.dataset} FILES...`"
            )
        last = max((before.index(s) for s in done), default=-1)
        for step in before[last + 1 :]:
            if self.recipe.path or step in ("ingest", "tokenize"):  # without a recipe, only what cannot be left out
                done[step] = self._one(step, done, list(self.recipe.inputs))
        return self._one(stage, done, [])

    def _one(self, stage: str, done: dict[str, Path], inputs: list[str]) -> Path:
        config = self.config(stage)
        if stage == "ingest":
            from datakit.run.ingest import ingest

            if not inputs:
                raise UsageError(
                    f"dataset {self.recipe.dataset!r} names no inputs: give files, or put them into its recipe"
                )
            return ingest(self.run, inputs, config)
        rows = [s for s in done if s != "tokenizer"]
        parent = done[rows[-1]]
        if stage in ("tokenizer", "pack"):
            from datakit.run import packing

            return (
                packing.train(self.run, config, parent)
                if stage == "tokenizer"
                else packing.pack(self.run, config, parent)
            )
        from datakit.run.stages import map_stage

        extra = []
        if stage == "tokenize" and not config.tokenizer and "tokenizer" in done:
            from datakit.run.packing import tokenizer_folder

            extra = [done["tokenizer"]]
            config = replace(config, tokenizer=str(tokenizer_folder(done["tokenizer"])))
        module, name = STAGE_CLASSES[stage].split(":")
        made: Stage = getattr(importlib.import_module(module), name)(config=config)
        return map_stage(self.run, made, parent, extra)


def _manifest(inputs: Sequence[str]) -> Manifest | None:
    """The manifest that the inputs are, or None for raw files."""
    if len(inputs) != 1 or not inputs[0].endswith(".json") or not Path(inputs[0]).is_file():
        return None
    with Path(inputs[0]).open("rb") as f:
        head = f.read(4096)
    return load(inputs[0]) if b'"code": "' in head and head.startswith(b"{\n ") else None


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
        if head in STAGES and rest:
            found.setdefault(head, {})[rest] = value
        elif stage is not None:
            found.setdefault(stage, {})[key] = value
        else:
            raise UsageError(f"--set {text}: name the stage too, as in --set dedup.threshold=0.8")
    return found
