"""From what was asked for to the stages that must run: the recipe's order, what is there already, what comes first."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from datakit.errors import UsageError
from datakit.manifest import Manifest, load
from datakit.engine.recipe import STAGES, Recipe, StageName
from datakit.engine.runner import Run, ancestors

STAGE_CLASSES = {
    "normalize": "datakit.filter.normalize:Normalize",
    "language": "datakit.filter.language:Language",
    "dedup": "datakit.dedup.stage:Dedup",
    "dedup_urls": "datakit.dedup.urls:DedupUrls",
    "dedup_lines": "datakit.dedup.lines:DedupLines",
    "dedup_spans": "datakit.dedup.spans:DedupSpans",
    "dedup_ngrams": "datakit.dedup.ngrams:DedupNgrams",
    "filter": "datakit.filter.stage:Filter",
    "classify": "datakit.filter.classifier:Classify",
    "perplexity": "datakit.filter.perplexity:Perplexity",
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
        self._check(stages)
        done: dict[str, Path] = {}
        for stage in stages:
            done[stage] = self._one(stage, done, list(self.recipe.inputs))
        return done[stages[-1]]

    def _check(self, steps: Sequence[str]) -> None:
        """Refuse, before any work, values that make no sense, values for a stage that will not run, and, of stages that
        run for the first time, models, tokenizers and evaluation files that are not there or are none."""
        configs = {stage: self.config(stage) for stage in steps}
        idle = [s for s in (*self.flags, *self.sets) if s not in steps]
        if idle:
            raise UsageError(
                f"values are given for {idle[0]}, which does not run in this command (it runs {', '.join(steps)}): "
                "put them into the recipe and use `datakit run`, or give them to that stage's own command"
            )
        for stage, config in configs.items():
            if not self.run.place.manifest(stage).is_file():
                _try(stage, config)

    def stage(self, stage: str, inputs: Sequence[str]) -> Path:
        """Run one stage: on inputs (raw files or a manifest) with what they need first, or on the stage before it."""
        if not inputs:
            return self._go_on(stage)
        given = given_manifest(inputs)
        steps = [s for s in ("tokenize",) if stage == "pack" and (given is None or given.stage != s)] + [stage]
        done: dict[str, Path] = {}
        if given is not None:
            done[given.stage] = manifest_path(inputs[0])
        elif stage != "ingest":
            steps.insert(0, "ingest")
        self._check(steps)
        for step in steps:
            done[step] = self._one(step, done, list(inputs))
        return done[stage]

    def _go_on(self, stage: str) -> Path:
        """Run a stage on what is there: earlier manifests are taken as they are, and only missing stages run first."""
        if stage == "ingest":
            self._check(["ingest"])
            return self._one("ingest", {}, list(self.recipe.inputs))
        project = replace(self.run.place, output=None)
        before = self.recipe.before(stage)
        done = {s: project.manifest(s) for s in before if project.manifest(s).is_file()}
        if stage == "pack" and (self.flags.get("tokenize") or self.sets.get("tokenize")):  # to be tokenized again
            done.pop("tokenize", None)
        if stage in ("tokenize", "pack") and project.manifest("tokenizer").is_file():
            done.setdefault("tokenizer", project.manifest("tokenizer"))
        if not done and not self.recipe.inputs:
            raise UsageError(
                f"dataset {self.recipe.dataset!r} has no earlier stage and no recipe with inputs: give {stage} input "
                f"files or a manifest, or begin with `datakit init {self.recipe.dataset} FILES...`"
            )
        last = max((before.index(s) for s in done if s in before), default=-1)
        # without a recipe, only what cannot be left out
        steps = [s for s in before[last + 1 :] if self.recipe.path or s in ("ingest", "tokenize")]
        self._check([*steps, stage])
        self._tell_of_stale(done)
        for step in steps:
            done[step] = self._one(step, done, list(self.recipe.inputs))
        return self._one(stage, done, [])

    def _tell_of_stale(self, done: dict[str, Path]) -> None:
        """Say where a stage goes on from a result that was made from an older one than the newest."""
        rows = [s for s in done if s != "tokenizer"]
        if not rows:
            return
        used = {m.version for _, m in ancestors(done[rows[-1]])}
        for stage in rows[:-1]:
            if load(done[stage]).version not in used:
                self.run.progress.line(
                    f"{rows[-1]}: was made from an older {stage} than there is now; `datakit run` brings it up to date"
                )

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
        if stage not in ("tokenize", "pack") and load(parent).kind.startswith("tokens"):
            raise UsageError(
                f"{parent}: its rows hold token ids and no text: {stage} cannot look at them. Such rows "
                "need only the stages ingest, tokenize and pack, or `datakit pack FILES...`"
            )
        if stage in ("tokenizer", "pack"):
            from datakit.run import packing

            return (
                packing.train(self.run, config, parent)
                if stage == "tokenizer"
                else packing.pack(self.run, config, parent)
            )
        from datakit.engine.runner import map_stage

        extra = []
        if stage == "tokenize" and not config.tokenizer and "tokenizer" in done:
            from datakit.run.packing import tokenizer_folder

            extra = [done["tokenizer"]]
            config = replace(config, tokenizer=str(tokenizer_folder(done["tokenizer"])))
        made = _made(stage, config)
        against: list[Path] = []
        if stage == "dedup" and config.against:
            made, against = self._against(made, config, parent)
        return map_stage(self.run, made, parent, extra, against)

    def _against(self, stage: Any, config: Any, parent: Path) -> tuple[Any, list[Path]]:
        """The dedup stage with the earlier dataset that it compares its rows with, and that dataset's manifest."""
        from datakit.run.against import dedup_of, earlier

        place, manifest = dedup_of(Path(config.against))
        target = self.run.place.manifest("dedup")
        if target.resolve() in (place.resolve(), place.resolve().parent.parent / f"{manifest.stage}.json"):
            raise UsageError(
                f"--against {config.against}: is the result that this run writes: every row would be a duplicate of "
                "itself. Give this run another --dataset or --output"
            )
        return replace(stage, earlier=earlier(place, config, load(parent).kind)), [place]


def _made(stage: str, config: Any) -> Any:
    module, name = STAGE_CLASSES[stage].split(":")
    made: Any = getattr(importlib.import_module(module), name)(config=config)
    return made


def _try(stage: str, config: Any) -> None:
    """Open a stage as its workers will, for what it says of its files; the rows' kind does not change that."""
    if stage in ("language", "filter", "classify", "perplexity") or (stage == "tokenize" and config.tokenizer):
        made = _made(stage, config)
        made = getattr(made, "for_kind", lambda _: made)("document")
        made.resources()
        made.open()


def manifest_path(given: str) -> Path:
    """The manifest file that an input names: itself, or the one in the folder that it is."""
    return Path(given) / "manifest.json" if Path(given).is_dir() else Path(given)


def given_manifest(inputs: Sequence[str]) -> Manifest | None:
    """The manifest that the inputs are, or None for raw files."""
    path = manifest_path(inputs[0]) if len(inputs) == 1 else None
    if path is None or path.suffix != ".json" or not path.is_file():
        return None
    with path.open("rb") as f:
        head = f.read(4096)
    return load(path) if b'"code": "' in head and head.startswith(b"{\n ") else None


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
