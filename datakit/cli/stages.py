"""Commands that make data: init, run, and one for each stage of the registry, with flags from the stage's config."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from datakit.cli.tables import ledger_lines
from datakit.config import Option, options, parse
from datakit.engine.local import Local, all_cores
from datakit.engine.plan import Flow, given_manifest, sections
from datakit.engine.progress import Progress, for_terminal
from datakit.engine.recipe import check_name, load_recipe, only_dataset, write_recipe
from datakit.engine.registry import FLOW, STAGES, config_class, stage_class
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from datakit.manifest import data_dir, load

F = TypeVar("F", bound=Callable[..., Any])
CONTEXT = {"token_normalize_func": lambda t: t.replace("_", "-"), "max_content_width": 110}


def stage_command(stage: str) -> click.Command:
    """The command of a stage: its inputs, the flags that all stages share, and a flag for each field of its config."""
    kind = stage_class(stage)

    def call(inputs: tuple[str, ...], sets: tuple[str, ...], **flags: Any) -> None:
        named = [f"{flag.path}={','.join(v)}" for flag in nested if (v := flags.pop(flag.parameter))]
        do(stage, inputs, sets=(*sets, *named), **flags)

    nested = list(_nested_flags(config_class(stage)))
    command: Callable[..., Any] = common(call)
    command = click.argument("inputs", nargs=-1, metavar="[INPUTS]...")(command)
    about = f"{STAGES[stage].summary}\n\n{kind.help}".strip()
    made = click.command(stage.replace("_", "-"), context_settings=CONTEXT, help=about)(command)
    made.params += list(_flags(stage, ()))
    if kind.directly_after:
        made.params += list(_flags(kind.directly_after, kind.input_flags))
    made.params += [click.Option([flag.name, flag.parameter], multiple=True, help=flag.help) for flag in nested]
    return made


def _flags(stage: str, only: tuple[str, ...]) -> Iterator[click.Option]:
    """A flag for each plain field of a stage's config, under the field's name."""
    for o in options(config_class(stage)):
        if o.nested or (only and o.name not in only) or o.name == "kind":
            continue
        flag, name = "--" + o.name.replace("_", "-"), f"{stage}__{o.name}"
        owner = f"{stage}; " if only else ""
        text = f"{o.help} [{owner}default: {_shown(o.default)}]"
        if o.type is bool:
            yield click.Option([f"{flag}/--no-{flag[2:]}", name], default=None, help=text)
        else:
            yield click.Option([flag, name], type=Field(o), default=None, help=text)


@dataclass(frozen=True, slots=True)
class _NestedFlag:
    """A field of a nested section that has a flag of its own."""

    name: str
    path: str
    """As `--set` names it."""
    help: str

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return f"nested_{self.path.replace('.', '_')}"


def _nested_flags(config: type, section: str = "") -> Iterator[_NestedFlag]:
    for o in options(config):
        if o.nested:
            yield from _nested_flags(o.nested, f"{section}{o.name}.")
        elif section and o.flag:
            yield _NestedFlag(o.flag, f"{section}{o.name}", f"{o.help} (also a,b)")


class Field(click.ParamType[Any]):
    """A flag's text as the type of a config field."""

    def __init__(self, option: Option) -> None:
        self._option = option
        self.name = "|".join(map(str, option.choices)) or getattr(
            option.type, "__name__", str(option.type).partition(" ")[0]
        )
        if self.name == "tuple":
            self.name = "a,b,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse, with the config's own rules."""
        return (
            parse(value, self._option.type, f"--{self._option.name.replace('_', '-')}")
            if isinstance(value, str)
            else value
        )


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value) if value not in ("", None) else "none"


def common(command: F) -> F:
    """The flags of every stage command."""
    for decorate in reversed(
        (
            click.option("--dataset", help="The dataset's name; its recipe is manifests/NAME/recipe.toml."),
            click.option("--output", type=click.Path(path_type=Path), help="A folder that holds the whole result."),
            click.option(
                "--kind", type=click.Choice(["text", "sft", "preference"]), help="The rows' kind [default: recognised]"
            ),
            click.option("--workers", type=click.IntRange(1), default=None, help="Workers [default: all cores]"),
            click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Any config value, dotted."),
            click.option("--strict", is_flag=True, help="Stop at what would be quarantined or only warned about."),
            click.option("--json", "as_json", is_flag=True, help="Print a machine-readable summary, and nothing else."),
        )
    ):
        command = decorate(command)
    return command


def flow(
    stage: str | None,
    inputs: tuple[str, ...],
    *,
    dataset: str | None,
    output: Path | None,
    kind: str | None,
    workers: int | None,
    sets: tuple[str, ...],
    strict: bool,
    as_json: bool,
    until: str | None = None,
    **flags: Any,
) -> tuple[Flow, Progress]:
    """The flow that a command's flags ask for, and its report."""
    root, progress = Path.cwd(), for_terminal(as_json)
    given = given_manifest(inputs)
    name = dataset or (given.dataset if given else _name(inputs) if inputs else only_dataset(root))
    recipe = load_recipe(root, check_name(name))
    layout = OutputLayout(root=root, dataset=name, output=output, final=stage or until or recipe.stages[-1])
    layout.check()
    by_stage: dict[str, dict[str, Any]] = {"ingest": {"kind": kind}} if kind else {}
    for key, value in flags.items():
        owner, _, field = key.partition("__")
        if value is not None:
            by_stage.setdefault(owner, {})[field] = value
    run = Run(layout=layout, executor=Local(workers or all_cores()), progress=progress, strict=strict)
    return Flow(run=run, recipe=recipe, flags=by_stage, sets=sections(sets, stage)), progress


def _name(inputs: tuple[str, ...]) -> str:
    """A dataset's name from its first input: `data/train.jsonl.gz` is `train`."""
    stem = Path(inputs[0].rstrip("/*")).name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in stem).strip("-") or "dataset"


def _report(path: Path, as_json: bool) -> None:
    manifest = load(path)
    if as_json:
        summary = {
            "manifest": str(path),
            "data": str(data_dir(path, manifest)),
            "dataset": manifest.dataset,
            "stage": manifest.stage,
            "version": manifest.version,
            "ledger": manifest.ledger.to_json(),
            "facts": manifest.facts,
        }
        click.echo(json.dumps(summary, ensure_ascii=False, indent=1))
    else:
        click.echo("\n".join([*ledger_lines(manifest), f"manifest: {path}", f"data:     {data_dir(path, manifest)}"]))


def do(stage: str | None, inputs: tuple[str, ...], until: str | None = None, **flags: Any) -> None:
    """Run one stage, or with `stage` None a whole recipe, and report on it."""
    made, progress = flow(stage, inputs, until=until, **flags)
    try:
        path = made.all(until) if stage is None else made.stage(stage, inputs)
    finally:
        progress.close()
    _report(path, flags["as_json"])


@click.command(context_settings=CONTEXT)
@click.argument("dataset")
@click.argument("inputs", nargs=-1, required=True)
@click.option(
    "--kind", type=click.Choice(["auto", "text", "sft", "preference"]), default="auto", help="The rows' kind."
)
@click.option("--tokenizer", help="A tokenizer's file or folder; without one the recipe trains one on the dataset.")
def init(dataset: str, inputs: tuple[str, ...], kind: str, tokenizer: str | None) -> None:
    """Begin DATASET: write manifests/DATASET/recipe.toml with every option, its help and its default."""
    stages = tuple(s for s in FLOW if STAGES[s].default or (s == "tokenizer" and not tokenizer))
    path = write_recipe(Path.cwd(), dataset, kind, list(inputs), stages)
    if tokenizer:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('# tokenizer = ""', f"tokenizer = {json.dumps(tokenizer)}"), encoding="utf-8")
    load_recipe(Path.cwd(), dataset)
    click.echo(f"wrote {path.relative_to(Path.cwd())}: read it, then `datakit run --dataset {dataset}`")


@click.command(context_settings=CONTEXT)
@common
@click.option("--until", type=click.Choice(FLOW), help="The last stage to run.")
def run(until: str | None, **flags: Any) -> None:
    """Run every stage of a dataset in its recipe's order; what is up to date is skipped."""
    do(None, (), until, **flags)
