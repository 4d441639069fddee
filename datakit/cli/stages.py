"""Commands that make data: init, run, and one for each stage of the registry, with flags from the stage's config."""

import os
import shlex
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import click

import datakit.cli.flags as cli
import datakit.storage as storage
from datakit.cli.flags import project, say, say_json
from datakit.engine.executors import Local, Progress, UnitExecutor, all_cores
from datakit.engine.plan import Flow, given_manifest, sections
from datakit.engine.recipe import FLOW, KINDS, STAGES, check_name, load_recipe, stage_class, which_dataset, write_recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from datakit.errors import AlarmError, UsageError
from datakit.manifest import data_dir, load

# Commands.


@cli.command(project=True)
def init(
    dataset: Annotated[str, click.Argument(["dataset"])],
    inputs: Annotated[tuple[str, ...], click.Argument(["inputs"], nargs=-1, required=True)],
    kind: Annotated[str, click.Option(["--kind"], type=click.Choice(KINDS), default="auto", help="The kind of rows.")],
    tokenizer: Annotated[str | None, "A tokenizer's file or folder; without one the recipe trains one."] = None,
) -> list[str]:
    """Begin DATASET: write manifests/DATASET/recipe.toml with the options that matter, and their help."""
    stages = tuple(s for s in FLOW if STAGES[s].default or (s == "tokenizer" and not tokenizer))
    root = project()
    elsewhere = root.resolve() != Path.cwd()  # the recipe of a project elsewhere needs whole paths
    named = [os.path.abspath(path) if elsewhere and not storage.is_url(path) else path for path in inputs]
    values: dict[str, dict[str, Any]] = {}
    if tokenizer:
        there = elsewhere and os.path.exists(tokenizer)
        values["tokenize"] = {"tokenizer": os.path.abspath(tokenizer) if there else tokenizer}
    path = write_recipe(root, dataset, kind, named, stages, values)
    load_recipe(root, dataset)
    where = f" --project {shlex.quote(storage.url_of(root) or str(root))}" if elsewhere else ""
    wrote = path if elsewhere else path.relative_to(root)
    return [f"wrote {wrote}: read it, then `datakit run --dataset {dataset}{where}`"]


def run_command() -> click.Command:
    """`datakit run`."""
    until = cli.Flag("--until", type=click.Choice(FLOW), help="The last stage to run.")
    return cli.StageCommand(
        "run",
        callback=lambda **flags: do(None, (), **flags),
        params=[until, *shared_flags(), *cli.config_flags("ingest", cli.READING)],
        help="Run every stage of a dataset in its recipe's order; skip what is up to date.",
    )


def stage_command(stage: str) -> click.Command:
    """The command of a stage, made from the registry and the stage's config."""
    kind = stage_class(stage)
    flags = [*cli.config_flags(stage), *shared_flags()]
    if stage != "ingest":
        only = "Run this stage alone; refuse if a result that it needs is stale, instead of running that first."
        flags.append(cli.Flag("--only", is_flag=True, shared=True, advanced=True, help=only))
        flags += cli.config_flags("ingest", cli.READING)
    if kind.directly_after:
        flags += cli.config_flags(kind.directly_after, kind.input_flags)
    return cli.StageCommand(
        stage.replace("_", "-"),
        callback=lambda inputs, **flags: do(stage, inputs, **flags),
        params=[click.Argument(["inputs"], nargs=-1, metavar="[INPUTS]..."), *flags],
        help=f"{STAGES[stage].summary}\n\n{kind.help}".strip(),
    )


def shared_flags() -> list[click.Parameter]:
    """The flags of `run` and of every stage command."""
    flags = [*cli.params_of(do), cli.project_option(advanced=True)]
    for flag in flags:
        vars(flag)["shared"] = True
    return flags


# What the commands do.

_OUTPUT = "A folder for the whole result; also s3://, gs:// or az://."
_KIND = "The kind of rows [default: recognised]"


def do(
    stage: str | None,
    inputs: tuple[str, ...],
    *,
    output: Annotated[Path | None, cli.Flag("--output", type=cli.ANY_PATH, help=_OUTPUT)],
    kind: Annotated[str | None, cli.Flag("--kind", type=click.Choice(KINDS[1:]), help=_KIND)],
    dataset: Annotated[str | None, "The dataset's name; its recipe is manifests/NAME/recipe.toml."] = None,
    workers: Annotated[int, "Workers; 0: all cores"] = 0,
    strict: Annotated[bool, "End with code 3 after a stage with alarms or records that cannot be read."] = False,
    sets: Annotated[tuple[str, ...], "--set KEY=VALUE: Any config value, dotted."] = (),
    as_json: Annotated[bool, "--json: Print a machine-readable summary, and nothing else."] = False,
    verbose: Annotated[bool, cli.Advanced("-v/--verbose: Print a line for each input file.")] = False,
    executor: Annotated[Literal["local", "ray"], cli.Advanced("This machine, or a Ray cluster.")] = "local",
    ray_address: Annotated[str, cli.Advanced("The cluster's head, or auto [default: RAY_ADDRESS, else here]")] = "",
    allow_empty: Annotated[bool, cli.Advanced("Let a pack without rows replace one that holds rows.")] = False,
    log: Annotated[Path | None, cli.Advanced("Append the progress to a file, as JSON lines.")] = None,
    until: str | None = None,
    only: bool = False,
    **values: Any,
) -> None:
    """Run one stage, or a whole recipe if `stage` is None, and print a summary.

    `values` are those of `config_flags`, by parameter name.
    """
    root, given = project(), given_manifest(inputs)
    name = (dataset or (given.dataset if given else _name_from(inputs))) if inputs else which_dataset(root, dataset)
    recipe = load_recipe(root, check_name(name))
    layout = OutputLayout(root=root, dataset=name, output=output, final=stage or until or recipe.stages[-1])
    layout.check()
    pool = _executor(executor, ray_address, workers)
    flags, nested = cli.stage_values(values)
    if kind:
        flags.setdefault("ingest", {})["kind"] = kind
    progress, began = Progress(shown=not as_json, log=log), time.time()
    run = Run(layout, pool, progress, strict=strict, allow_empty=allow_empty, verbose=verbose)
    stopped: AlarmError | None = None
    try:
        flow = Flow(run=run, recipe=recipe, flags=flags, sets=sections([*sets, *nested], stage), only=only)
        path = flow.all(until) if stage is None else flow.stage(stage, inputs)
    except AlarmError as e:
        path, stopped = e.manifest, e
    finally:
        progress.close()
    _print_summary(path, as_json, whole=stage in (None, "pack"), began=began)
    if stopped is not None:
        raise stopped


def _executor(name: str, address: str, workers: int) -> UnitExecutor:
    if name == "ray":
        from datakit.engine.executors import Ray

        return Ray(address, workers).connect()
    if address:
        raise UsageError("--ray-address is for --executor ray")
    return Local(workers or all_cores())


def _name_from(inputs: tuple[str, ...]) -> str:
    """A dataset's name from its first input: `data/train.jsonl.gz` is `train`."""
    stem = Path(inputs[0].rstrip("/*")).name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in stem).strip("-") or "dataset"


def _print_summary(path: Path, as_json: bool, *, whole: bool, began: float) -> None:
    """What a command made: the stage's ledger, or with `whole` the funnel; then what to look at, and alarms last."""
    import datakit.report.tables as report

    manifest, stages = load(path), report.funnel(path, began)
    data = data_dir(path, manifest)
    if as_json:
        made = {"manifest": str(path), "data": str(data), "dataset": manifest.dataset, "stage": manifest.stage}
        made["version"] = manifest.version
        about = {"ledger": manifest.ledger.to_json(), "facts": manifest.facts}
        say_json(made | about | {"funnel": [stage.to_json() for stage in stages]})
        return
    stages = stages if whole else stages[-1:]
    if whole:
        say([*report.funnel_lines(stages), report.head_line(manifest), *report.about_lines(manifest)])
    else:
        say(report.ledger_lines(manifest))
    after = [f"  {line}" for line in report.next_lines(stages)]
    say([f"manifest: {path}", f"data:     {data}", *(["next:", *after] if after else []), *report.alarm_lines(stages)])
