"""Commands that make data: init, run, and one for each stage of the registry, with flags from the stage's config."""

import json
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin

import click

import datakit.storage as storage
from datakit.config import Option, options, parse
from datakit.engine.executors import JsonLog, Local, UnitExecutor, all_cores, for_terminal
from datakit.engine.plan import Flow, given_manifest, sections
from datakit.engine.recipe import (
    FLOW,
    STAGES,
    check_name,
    config_class,
    load_recipe,
    stage_class,
    which_dataset,
    write_recipe,
)
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from datakit.errors import AlarmError, UsageError
from datakit.manifest import Count, Manifest, data_dir, load

CONTEXT = {"token_normalize_func": lambda t: t.replace("_", "-"), "max_content_width": 110}


# Flags.


class AnyPath(click.ParamType[Path]):
    """A path on this machine or on an object store."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path to work with (`datakit.storage`)."""
        return value if isinstance(value, Path) else storage.local(value)


class PathHere(click.Path):
    """A file on this machine, for files that other programs read."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path.

        Raises:
            UsageError: it is a URL, or a folder.
        """
        if not isinstance(value, Path) and storage.is_url(value):
            self.fail(f"{value}: is written to this machine's disk; copy it to the store from there", param, ctx)
        return super().convert(value, param, ctx)


ANY_PATH, HERE = AnyPath(), PathHere()


def project_option() -> click.Option:
    """`--project`: the folder with `manifests/` and `data/`; `project` returns it."""
    return click.Option(
        ["--project"], type=ANY_PATH, envvar="DATAKIT_PROJECT", expose_value=False, is_eager=True,
        callback=lambda ctx, _, path: ctx.meta.__setitem__("datakit.project", path),
        help="The project's folder; also s3://, gs:// or az:// [default: the current folder]",
    )  # fmt: skip


def project() -> Path:
    """The folder of the project that the command works in; its manifests are at hand."""
    given: Path | None = click.get_current_context().meta.get("datakit.project")
    if given is not None:
        storage.pull(given / "manifests")
    return given or Path.cwd()


def in_project(command: click.Command) -> click.Command:
    """The command with `--project`."""
    command.params.append(project_option())
    return command


READING = ("map", "roles", "split", "limit")
"""The fields of ingest that are flags of every command that may read raw files."""


def shared_flags() -> list[click.Parameter]:
    """The flags of `run` and of every stage command."""
    return [
        click.Option(["--dataset"], help="The dataset's name; its recipe is manifests/NAME/recipe.toml."),
        click.Option(["--output"], type=ANY_PATH, help="A folder for the whole result; also s3://, gs:// or az://."),
        project_option(),
        click.Option(
            ["--kind"], type=click.Choice(["text", "sft", "preference"]), help="The kind of rows [default: recognised]"
        ),
        click.Option(["--workers"], type=click.IntRange(1), help="Workers [default: all cores]"),
        click.Option(
            ["--executor"],
            type=click.Choice(["local", "ray"]),
            default="local",
            show_default=True,
            help="What does the work: this machine, or a Ray cluster (docs/cluster.md).",
        ),
        click.Option(
            ["--ray-address"], default="", help="The cluster's head, or auto [default: RAY_ADDRESS, else here]"
        ),
        click.Option(["--set", "sets"], multiple=True, metavar="KEY=VALUE", help="Any config value, dotted."),
        click.Option(
            ["--strict"], is_flag=True, help="End with code 3 after a stage with alarms or records that cannot be read."
        ),
        click.Option(["--allow-empty"], is_flag=True, help="Let a pack without rows replace one that holds rows."),
        click.Option(["-v", "--verbose"], is_flag=True, help="Print more: a line for each input file."),
        click.Option(["--log"], type=HERE, help="Append the progress to a file, as JSON lines."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print a machine-readable summary, and nothing else."),
    ]


def config_flags(stage: str, only: tuple[str, ...] = ()) -> Iterator[click.Option]:
    """A flag for each field of a stage's config, or for those in `only`.

    A flag's parameter is `<stage>__<field>`. Fields of nested sections are set with `--set`; a field that declares a
    flag (`--eval`) has that flag too, with the parameter `<stage>__<section>__<field>`.
    """
    for o in options(config_class(stage)):
        if o.nested:
            for inner in options(o.nested):
                if inner.flag and not only:
                    name = f"{stage}__{o.name}__{inner.name}"
                    yield click.Option([inner.flag, name], multiple=True, help=f"{inner.help} (also a,b)")
        elif o.name != "kind" and (o.name in only or not only):
            flag, name = "--" + o.name.replace("_", "-"), f"{stage}__{o.name}"
            text = f"{o.help} [{f'{stage}; ' if only else ''}default: {_shown(o.default)}]"
            if o.type is bool:
                yield click.Option([f"{flag}/--no-{flag[2:]}", name], default=None, help=text)
            elif get_origin(o.type) is dict:
                yield click.Option([flag, name], type=FieldType(o), multiple=True, help=text)
            else:
                yield click.Option([flag, name], type=FieldType(o), help=text)


class FieldType(click.ParamType[Any]):
    """Parses a flag's text with the rules of the config field."""

    def __init__(self, option: Option) -> None:
        self._option = option
        if option.choices:
            self.name = "|".join(map(str, option.choices))
        elif get_origin(option.type) is tuple:
            self.name = "a,b,..."
        elif get_origin(option.type) is dict:
            self.name = "KEY=VALUE"
        elif isinstance(option.type, type):
            self.name = option.type.__name__
        else:
            self.name = str(option.type).partition(" ")[0]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The field's value."""
        flag = f"--{self._option.name.replace('_', '-')}"
        return parse(value, self._option.type, flag) if isinstance(value, str) else value


def _shown(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return "none" if value is None or not text or value == {} else text


# Commands.


@in_project
@click.command(context_settings=CONTEXT)
@click.argument("dataset")
@click.argument("inputs", nargs=-1, required=True)
@click.option(
    "--kind", type=click.Choice(["auto", "text", "sft", "preference"]), default="auto", help="The kind of rows."
)
@click.option("--tokenizer", help="A tokenizer's file or folder; without one the recipe trains one on the dataset.")
def init(dataset: str, inputs: tuple[str, ...], kind: str, tokenizer: str | None) -> None:
    """Begin DATASET: write manifests/DATASET/recipe.toml with every option, its help and its default."""
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
    click.echo(f"wrote {wrote}: read it, then `datakit run --dataset {dataset}{where}`")


@click.command(
    context_settings=CONTEXT,
    params=[
        *shared_flags(),
        *config_flags("ingest", READING),
        click.Option(["--until"], type=click.Choice(FLOW), help="The last stage to run."),
    ],
)
def run(until: str | None, **flags: Any) -> None:
    """Run every stage of a dataset in its recipe's order; skip what is up to date."""
    do(None, (), until, **flags)


def stage_command(stage: str) -> click.Command:
    """The command of a stage, made from the registry and the stage's config."""
    kind = stage_class(stage)

    def call(inputs: tuple[str, ...], **flags: Any) -> None:
        do(stage, inputs, **flags)

    only = "Run this stage alone; refuse if a result that it needs is stale, instead of running that first."
    flags = [*shared_flags(), *config_flags(stage)]
    if stage != "ingest":
        flags.append(click.Option(["--only"], is_flag=True, help=only))
        flags += config_flags("ingest", READING)
    if kind.directly_after:
        flags += config_flags(kind.directly_after, kind.input_flags)
    return click.Command(
        stage.replace("_", "-"),
        callback=call,
        params=[click.Argument(["inputs"], nargs=-1, metavar="[INPUTS]..."), *flags],
        help=f"{STAGES[stage].summary}\n\n{kind.help}".strip(),
        context_settings=CONTEXT,
    )


# What the commands do.


def do(
    stage: str | None,
    inputs: tuple[str, ...],
    until: str | None = None,
    *,
    dataset: str | None,
    output: Path | None,
    kind: str | None,
    workers: int | None,
    executor: str,
    ray_address: str,
    sets: tuple[str, ...],
    strict: bool,
    allow_empty: bool,
    verbose: bool,
    log: Path | None,
    as_json: bool,
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
    flags: dict[str, dict[str, Any]] = {"ingest": {"kind": kind}} if kind else {}
    for parameter, value in values.items():
        owner, *field = parameter.split("__")
        if isinstance(value, tuple) and value and isinstance(value[0], dict):
            value = {key: inner for part in value for key, inner in part.items()}
        if len(field) == 1 and value not in (None, ()):
            flags.setdefault(owner, {})[field[0]] = value
        elif len(field) > 1 and value:
            sets = (*sets, f"{owner}.{'.'.join(field)}={','.join(value)}")
    progress, began = for_terminal(as_json), time.time()
    progress = JsonLog(progress, log) if log else progress
    run = Run(layout, pool, progress, strict=strict, allow_empty=allow_empty, verbose=verbose)
    stopped: AlarmError | None = None
    try:
        flow = Flow(run=run, recipe=recipe, flags=flags, sets=sections(sets, stage), only=only)
        path = flow.all(until) if stage is None else flow.stage(stage, inputs)
    except AlarmError as e:
        path, stopped = e.manifest, e
    finally:
        progress.close()
    _print_summary(path, as_json, whole=stage in (None, "pack"), began=began)
    if stopped is not None:
        raise stopped


def _executor(name: str, address: str, workers: int | None) -> UnitExecutor:
    if name == "ray":
        from datakit.engine.executors import Ray

        return Ray(address, workers or 0).connect()
    if address:
        raise UsageError("--ray-address is for --executor ray")
    return Local(workers or all_cores())


def _name_from(inputs: tuple[str, ...]) -> str:
    """A dataset's name from its first input: `data/train.jsonl.gz` is `train`."""
    stem = Path(inputs[0].rstrip("/*")).name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in stem).strip("-") or "dataset"


def _print_summary(path: Path, as_json: bool, *, whole: bool, began: float) -> None:
    """What a command made: the stage's ledger, or with `whole` the funnel; alarms last."""
    from datakit.report.funnel import alarm_lines, funnel, funnel_lines, next_lines

    manifest, stages = load(path), funnel(path, began)
    data = data_dir(path, manifest)
    if as_json:
        summary = {
            "manifest": str(path),
            "data": str(data),
            "dataset": manifest.dataset,
            "stage": manifest.stage,
            "version": manifest.version,
            "ledger": manifest.ledger.to_json(),
            "facts": manifest.facts,
            "funnel": [stage.to_json() for stage in stages],
        }
        click.echo(json.dumps(summary, ensure_ascii=False, indent=1))
        return
    if whole:
        lines = [*funnel_lines(stages), head_line(manifest), *about_lines(manifest)]
    else:
        stages = stages[-1:]
        lines = [*ledger_lines(manifest)]
    after = [f"  {line}" for line in next_lines(stages)]
    lines += [f"manifest: {path}", f"data:     {data}", *(["next:", *after] if after else []), *alarm_lines(stages)]
    click.echo("\n".join(lines))


def head_line(manifest: Manifest) -> str:
    """Which result it is."""
    return f"{manifest.dataset} / {manifest.stage}  version {manifest.version}"


def ledger_lines(manifest: Manifest) -> list[str]:
    """A stage's ledger as lines: rows and tokens in, kept and dropped by reason, notes."""
    lines = [head_line(manifest)]
    for unit, count in (("rows", manifest.ledger.rows), ("tokens", manifest.ledger.tokens)):
        if count is not None:
            lines += _count_lines(unit, count)
    return lines + about_lines(manifest)


def about_lines(manifest: Manifest) -> list[str]:
    """What is known of a result besides what came in and stayed."""
    lines = [f"  note      {n:>14,}  {name}" for name, n in manifest.ledger.notes.items()]
    if packing := manifest.facts.get("packing"):
        lines += list(_packing_lines(packing, str(manifest.config["packing"])))
    return lines


def _packing_lines(packing: dict[str, Any], name: str) -> Iterator[str]:
    """How full the rows are, and how full another way to fill them would make them."""
    others = [(k.removeprefix("density_"), v) for k, v in packing.items() if k.startswith("density_")]
    beside = "".join(f"; {other} would be {density:.1%}" for other, density in others)
    yield f"  density   {packing['density']:>14.1%}  {name}{beside}"
    if "good_answers" in packing:
        good, bad = packing["good_answers"], packing["bad_answers"]
        yield f"  answers   {good:>14,}  good, {bad:,} bad; pairs with one side are for train.kto"
    if "repeated_tokens" in packing:
        yield f"  repeated  {packing['repeated_tokens']:>14,}  tokens of prompts, in more than one piece of their row"


def _count_lines(unit: str, count: Count) -> list[str]:
    lines = [
        f"  in        {count.into:>14,}  {unit}",
        f"  kept      {count.kept:>14,}  {unit}{_share(count.kept, count)}",
    ]
    for reason, n in sorted(count.dropped.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  dropped   {n:>14,}  {reason}{_share(n, count)}")
    for name, n in (("quarantine", count.quarantined), ("edited", count.edited), ("padding", count.padding)):
        lines += [f"  {name:<10}{n:>14,}  {unit}"] if n else []
    return lines


def _share(part: int, count: Count) -> str:
    return f"  ({part / count.into:.1%})" if count.into else ""
