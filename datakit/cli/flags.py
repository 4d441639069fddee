"""Command-line flags made from config classes, and the flags that all stages share."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from datakit.config import Option, options, parse
from datakit.engine.local import Local
from datakit.engine.progress import Bar, Lines, Quiet, for_terminal
from datakit.engine.recipe import StageName, check_name, config_class, load_recipe, only_dataset
from datakit.engine.plan import Flow, given_manifest, sections
from datakit.engine.runner import Run
from datakit.engine.store import Place

F = TypeVar("F", bound=Callable[..., Any])


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


class StageCommand(click.Command):
    """A command with `stage_flags`, made when they are asked for: none waits for the imports of another's stage."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All parameters, those of the stages last."""
        wanted = self.callback.__dict__.pop("stage_flags", ())
        self.params += [flag for stage, only in wanted for flag in _flags(stage, only)]
        return super().get_params(ctx)


def stage_flags(stage: StageName, only: tuple[str, ...] = ()) -> Callable[[F], F]:
    """A flag for every plain field of a stage's config, under the field's name; of a `StageCommand`."""

    def add(command: F) -> F:
        command.__dict__["stage_flags"] = [(stage, only), *command.__dict__.get("stage_flags", ())]
        return command

    return add


def _flags(stage: StageName, only: tuple[str, ...]) -> Iterator[click.Option]:
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
) -> tuple[Flow, Quiet | Lines | Bar]:
    """The flow that a command's flags ask for, and its report."""
    root, progress = Path.cwd(), for_terminal(as_json)
    given = given_manifest(inputs)
    name = dataset or (given.dataset if given else _name(inputs) if inputs else only_dataset(root))
    recipe = load_recipe(root, check_name(name))
    place = Place(root=root, dataset=name, output=output, final=stage or until or recipe.stages[-1])
    place.check()
    by_stage: dict[str, dict[str, Any]] = {"ingest": {"kind": kind}} if kind else {}
    for key, value in flags.items():
        owner, _, field = key.partition("__")
        if value is not None:
            by_stage.setdefault(owner, {})[field] = value
    run = Run(place=place, executor=Local(workers or len(os.sched_getaffinity(0))), progress=progress, strict=strict)
    return Flow(run=run, recipe=recipe, flags=by_stage, sets=sections(sets, stage)), progress


def _name(inputs: tuple[str, ...]) -> str:
    """A dataset's name from its first input: `data/train.jsonl.gz` is `train`."""
    stem = Path(inputs[0].rstrip("/*")).name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in stem).strip("-") or "dataset"
