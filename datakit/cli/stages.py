"""Commands that make data: init, run, and one for each stage of the registry, with flags from the stage's config."""

import glob
import os
import shlex
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import click

import datakit.cli.flags as cli
import datakit.storage as storage
from datakit.cli.flags import AUTO, Kind, project
from datakit.command import Command
from datakit.engine.executors import Local, Progress, Ray, all_cores
from datakit.engine.plan import Flow, given_manifest, sections
from datakit.engine.recipe import FLOW, STAGES, check_name, load_recipe, stage_class, which_dataset, write_recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from datakit.errors import AlarmError, UsageError
from datakit.manifest import data_dir, load

OUTPUT = "A folder for the whole result; also s3://, gs:// or az://."
SUMMARY = "a machine-readable summary"

# Commands.


@cli.command(project=True, more=cli.config_flags("ingest", cli.READING))
def init(
    dataset: str,
    inputs: tuple[str, ...],
    *,
    kind: Annotated[Kind, "The kind of rows."] = AUTO,
    tokenizer: Annotated[str | None, "A tokenizer's file or folder; without one the recipe trains one."] = None,
    **reading: Any,
) -> list[str]:
    """Begin DATASET: write manifests/DATASET/recipe.toml with the options that matter, and their help."""
    stages = tuple(s for s in FLOW if STAGES[s].default or (s == "tokenizer" and not tokenizer))
    root = project()
    elsewhere = root.resolve() != Path.cwd()  # the recipe of a project elsewhere needs whole paths
    named = [os.path.abspath(path) if elsewhere and not storage.is_url(path) else path for path in _patterns(inputs)]
    values, _ = cli.stage_values(reading)
    if tokenizer:
        there = elsewhere and os.path.exists(tokenizer)
        values["tokenize"] = {"tokenizer": os.path.abspath(tokenizer) if there else tokenizer}
    path = write_recipe(root, dataset, kind, named, stages, values)
    load_recipe(root, dataset)
    where = f" --project {shlex.quote(storage.url_of(root) or str(root))}" if elsewhere else ""
    wrote = path if elsewhere else path.relative_to(root)
    new = [f"new files like {pattern} are read too" for pattern in named if pattern not in inputs and not elsewhere]
    return [*new, f"wrote {wrote}: read it, then `datakit run {dataset}{where}`"]


def _patterns(inputs: tuple[str, ...]) -> list[str]:
    """The inputs with a pattern in place of files that are all of a folder's with their suffix: a shell wrote out
    `data/*.jsonl`, and later files are meant, too."""
    found, left = list[str](), dict.fromkeys(inputs)
    for given in inputs:
        pattern = str(Path(given).with_name(f"*{''.join(Path(given).suffixes[-2:])}"))
        files = set() if storage.is_url(given) or glob.has_magic(given) else set(glob.glob(pattern))
        if given in left and len(files) > 1 and files <= {str(Path(path)) for path in left}:
            found.append(pattern)
            left = {path: None for path in left if str(Path(path)) not in files}
        elif given in left:
            found.append(given)
    return found


def stage_command(stage: str | None) -> Command:
    """The command of a stage, made from the registry and the stage's config; `datakit run` where it is None."""
    shared = [*cli.params_of(do), cli.project_option(hidden=True)]
    if stage is None:
        until = click.Option(["--until"], type=click.Choice(FLOW), help="The last stage to run.")
        params = [click.Argument(["name"], required=False), until, *shared, *cli.config_flags("ingest", cli.READING)]
        about = "Run every stage of the dataset NAME in its recipe's order; skip what is up to date."
        return cli.command("run", json=SUMMARY, more=params, help=about)(lambda **values: do(stage=None, **values))
    kind = stage_class(stage)
    flags: list[click.Parameter] = [click.Argument(["inputs"], nargs=-1), *cli.config_flags(stage), *shared]
    if stage != "ingest":
        flags += cli.config_flags("ingest", cli.READING)
    if kind.directly_after:
        flags += cli.config_flags(kind.directly_after, kind.input_flags)
    about = f"{STAGES[stage].summary}\n\n{kind.help}".strip()
    made = cli.command(stage.replace("_", "-"), json=SUMMARY, more=flags, help=about)
    return made(lambda **values: do(stage=stage, **values))


# What the commands do.


def do(
    *,
    stage: str | None,
    inputs: tuple[str, ...] = (),
    output: Annotated[Path | None, OUTPUT] = None,
    kind: Annotated[Kind | None, "The kind of rows [default: recognised]"] = None,
    dataset: Annotated[str | None, "The dataset's name; its recipe is manifests/NAME/recipe.toml."] = None,
    workers: Annotated[int, "Workers; 0: all cores"] = 0,
    strict: Annotated[
        bool, "End with code 3 after a stage with alarms or records that cannot be read; without rows it always does."
    ] = False,
    sets: Annotated[tuple[str, ...], "--set KEY=VALUE: Any config value, dotted."] = (),
    executor: Annotated[Literal["local", "ray"], cli.Advanced("This machine, or a Ray cluster.")] = "local",
    ray_address: Annotated[str, cli.Advanced("The cluster's head, or auto [default: RAY_ADDRESS, else here]")] = "",
    allow_empty: Annotated[
        bool, cli.Advanced("Accept a result without rows; a pack may then replace one that holds rows.")
    ] = False,
    name: str | None = None,
    until: str | None = None,
    **values: Any,
) -> tuple[object, ...]:
    """Run one stage, or a whole recipe if `stage` is None; what it made, and an alarm that ended it.

    `values` are those of `config_flags`, by parameter name. A recipe's dataset is named by `--dataset` or by NAME.
    """
    if name and dataset not in (None, name):
        raise UsageError(f"datakit run {name} --dataset {dataset}: name one dataset")
    root, given, dataset = project(), given_manifest(inputs), name or dataset
    name = (dataset or (given.dataset if given else _name_from(inputs))) if inputs else which_dataset(root, dataset)
    recipe = load_recipe(root, check_name(name))
    layout = OutputLayout(root=root, dataset=name, output=output, final=stage or until or recipe.stages[-1])
    layout.check()
    if ray_address and executor != "ray":
        raise UsageError("--ray-address is for --executor ray")
    pool = Ray(ray_address, workers).connect() if executor == "ray" else Local(workers or all_cores())
    flags, nested = cli.stage_values(values)
    if kind:
        flags.setdefault("ingest", {})["kind"] = kind
    progress, began = Progress(shown=not cli.quiet()), time.time()
    run = Run(layout, pool, progress, strict=strict, allow_empty=allow_empty)
    stopped: AlarmError | None = None
    try:
        flow = Flow(run=run, recipe=recipe, flags=flags, sets=sections([*sets, *nested], stage))
        path = flow.all(until) if stage is None else flow.stage(stage, inputs)
    except AlarmError as e:
        path, stopped = e.manifest, e
    finally:
        progress.close()
    made = load(path)
    if not (stopped or allow_empty or made.ledger.rows.kept) and stage_class(made.stage).makes_rows:
        why = f"`datakit show {path}` says what became of its rows; --allow-empty accepts it"
        stopped = AlarmError(f"{made.stage}: the result is written, and holds no rows. {why}", path)
    return *_summary(path, whole=stage in (None, "pack"), began=began), *([stopped] if stopped else [])


def _name_from(inputs: tuple[str, ...]) -> str:
    """A dataset's name from its first input: `data/train.jsonl.gz` is `train`."""
    stem = Path(inputs[0].rstrip("/*")).name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in stem).strip("-") or "dataset"


def _summary(path: Path, *, whole: bool, began: float) -> cli.Answer:
    """What a command made: the stage's ledger, or with `whole` the funnel; then what to look at, and alarms last."""
    import datakit.report.tables as report

    manifest, stages = load(path), report.funnel(path, began)
    data = data_dir(path, manifest)
    about = {"manifest": str(path), "data": str(data), "dataset": manifest.dataset, "facts": manifest.facts}
    told = [{"stage": s.manifest.stage, "version": s.manifest.version, "ledger": s.manifest.ledger.to_json(),
             "seconds": s.seconds, "mb_per_s": s.mb_per_s, "ran": s.ran, "alarms": s.alarms}
            for s in stages]  # fmt: skip
    value = about | {name: told[-1][name] for name in ("stage", "version", "ledger")} | {"funnel": told}
    stages = stages if whole else stages[-1:]
    lines = [*report.funnel_lines(stages), *report.about_lines(manifest)] if whole else report.ledger_lines(manifest)
    after = [f"  {line}" for line in report.next_lines(stages)]
    alarms = [f"ALARM {stage.manifest.stage}: {alarm}" for stage in stages for alarm in stage.alarms]
    lines += [f"manifest: {path}", f"data:     {data}", *(["next:", *after] if after else [])]
    return value, [*lines, *(click.style(alarm, fg="red") for alarm in alarms)]
