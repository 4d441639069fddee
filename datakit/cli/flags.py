"""Flags: those that many commands have, and those made from the fields of a config; `--help` and `--help-all`."""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_origin

import click

import datakit.storage as storage
from datakit import removed
from datakit.config import Option, options, parse
from datakit.engine.recipe import KINDS, config_class
from datakit.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

CONTEXT = {"token_normalize_func": lambda t: t.replace("_", "-"), "max_content_width": 110}
READING = ("map", "roles", "split", "limit")
"""The fields of ingest that are flags of every command that may read raw files."""
_EVERY, _PROJECT = "datakit.help_all", "datakit.project"


# Values.


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


class FieldType(click.ParamType[Any]):
    """Parses a flag's text with the rules of the config field."""

    def __init__(self, option: Option) -> None:
        self._option = option
        if option.choices:
            self.name = "|".join(map(str, option.choices))
        else:
            names: dict[Any, str] = {tuple: "a,b,...", dict: "KEY=VALUE"}
            plain = option.type.__name__ if isinstance(option.type, type) else str(option.type).partition(" ")[0]
            self.name = names.get(get_origin(option.type), plain)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The field's value."""
        flag = f"--{self._option.name.replace('_', '-')}"
        return parse(value, self._option.type, flag) if isinstance(value, str) else value


# Flags of stages.


class Flag(click.Option):
    """A flag of a stage; an advanced one is shown by `--help-all` only, a shared one below the stage's own."""

    def __init__(self, *names: str, advanced: bool = False, shared: bool = False, **about: Any) -> None:
        super().__init__(list(names), **about)
        self.advanced, self.shared = advanced, shared


class StageCommand(click.Command):
    """A command with the flags of a stage, or of a whole recipe."""

    def __init__(self, name: str, **about: Any) -> None:
        super().__init__(name, context_settings=CONTEXT, **about)
        self.params.append(Flag("--help-all", is_flag=True, is_eager=True, expose_value=False, callback=_help_all,
                                shared=True, help="Show all options."))  # fmt: skip

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left.

        Raises:
            UsageError: an option that was there in an earlier version: what to use instead.
        """
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as e:
            stage = (self.name or "").replace("-", "_")
            if instead := removed.sentence(stage, e.option_name.lstrip("-").removeprefix("no-")):
                raise UsageError(f"{e.option_name} is gone: {instead}") from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options that matter, first those of the stage; `--help-all` shows all."""
        every = ctx.meta.get(_EVERY, False)
        flags = [flag for flag in self.get_params(ctx) if isinstance(flag, click.Option)]
        shown = [flag for flag in flags if every or not isinstance(flag, Flag) or not flag.advanced]
        for title, shared in (("Options", False), ("Options of all stages", True)):
            mine = [flag for flag in shown if (isinstance(flag, Flag) and flag.shared) == shared]
            if records := [record for flag in mine if (record := flag.get_help_record(ctx))]:
                with formatter.section(title):
                    formatter.write_dl(records)
        if more := len(flags) - len(shown):
            formatter.write_paragraph()
            formatter.write_text(f"--help-all shows {more} more options.")


def _help_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        ctx.meta[_EVERY] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def shared_flags() -> list[click.Parameter]:
    """The flags of `run` and of every stage command."""
    plain: list[tuple[str, dict[str, Any]]] = [
        ("--dataset", {"help": "The dataset's name; its recipe is manifests/NAME/recipe.toml."}),
        ("--output", {"type": ANY_PATH, "help": "A folder for the whole result; also s3://, gs:// or az://."}),
        ("--kind", {"type": click.Choice(KINDS[1:]), "help": "The kind of rows [default: recognised]"}),
        ("--workers", {"type": click.IntRange(1), "help": "Workers [default: all cores]"}),
        ("--strict", {"is_flag": True,
                      "help": "End with code 3 after a stage with alarms or records that cannot be read."}),
    ]  # fmt: skip
    advanced: list[tuple[str, dict[str, Any]]] = [
        ("--executor", {"type": click.Choice(["local", "ray"]), "default": "local", "show_default": True,
                        "help": "What does the work: this machine, or a Ray cluster (docs/cluster.md)."}),
        ("--ray-address", {"default": "", "help": "The cluster's head, or auto [default: RAY_ADDRESS, else here]"}),
        ("--allow-empty", {"is_flag": True, "help": "Let a pack without rows replace one that holds rows."}),
        ("--log", {"type": HERE, "help": "Append the progress to a file, as JSON lines."}),
    ]  # fmt: skip
    return [
        *(Flag(name, shared=True, **about) for name, about in plain),
        Flag("--set", "sets", multiple=True, metavar="KEY=VALUE", shared=True, help="Any config value, dotted."),
        Flag(
            "--json", "as_json", is_flag=True, shared=True, help="Print a machine-readable summary, and nothing else."
        ),
        Flag("-v", "--verbose", is_flag=True, shared=True, advanced=True, help="Print a line for each input file."),
        *(Flag(name, shared=True, advanced=True, **about) for name, about in advanced),
        project_option(advanced=True),
    ]


def config_flags(stage: str, only: tuple[str, ...] = ()) -> Iterator[Flag]:
    """A flag for each field of a stage's config, or for those in `only`, which are another stage's.

    A flag's parameter is `<stage>__<field>`. Fields of nested sections are set with `--set`; a field that declares a
    flag (`--eval`) has that flag too, with the parameter `<stage>__<section>__<field>`.
    """
    for o in options(config_class(stage)):
        if o.nested and not only:
            for inner in (inner for inner in options(o.nested) if inner.flag):
                name = f"{stage}__{o.name}__{inner.name}"
                yield Flag(inner.flag, name, multiple=True, help=f"{inner.help} (also a,b)", advanced=inner.advanced)
        elif not o.nested and o.name != "kind" and (o.name in only or not only):
            flag, whose = "--" + o.name.replace("_", "-"), f"{stage}; " if only else ""
            about: dict[str, Any] = {"help": f"{o.help} [{whose}default: {_shown(o.default)}]"}
            about |= {"shared": bool(only), "advanced": o.advanced}
            if o.type is bool:
                yield Flag(f"{flag}/--no-{flag[2:]}", f"{stage}__{o.name}", default=None, **about)
            else:
                many = get_origin(o.type) is dict
                yield Flag(flag, f"{stage}__{o.name}", type=FieldType(o), multiple=many, **about)


def _shown(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return "none" if value is None or not text or value == {} else text


def stage_values(values: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """(values by stage and field, `--set` texts for nested fields) of the given parameters of `config_flags`."""
    flags, sets = dict[str, dict[str, Any]](), list[str]()
    for parameter, value in values.items():
        owner, *field = parameter.split("__")
        if value in (None, ()):
            continue
        if len(field) > 1:
            sets.append(f"{owner}.{'.'.join(field)}={','.join(value)}")
            continue
        if isinstance(value, tuple) and value and isinstance(value[0], dict):
            value = {key: inner for part in value for key, inner in part.items()}
        flags.setdefault(owner, {})[field[0]] = value
    return flags, sets


# Flags of other commands.


def project_option(advanced: bool = False) -> Flag:
    """`--project`: the folder with `manifests/` and `data/`; `project` returns it."""
    return Flag(
        "--project", type=ANY_PATH, envvar="DATAKIT_PROJECT", expose_value=False, is_eager=True, shared=True,
        callback=lambda ctx, _, path: ctx.meta.__setitem__(_PROJECT, path), advanced=advanced,
        help="The project's folder; also s3://, gs:// or az:// [default: the current folder]",
    )  # fmt: skip


def project() -> Path:
    """The folder of the project that the command works in; its manifests are at hand."""
    given: Path | None = click.get_current_context().meta.get(_PROJECT)
    if given is not None:
        storage.pull(given / "manifests")
    return given or Path.cwd()


def in_project(command: click.Command) -> click.Command:
    """The command with `--project`."""
    command.params.append(project_option())
    return command


def _manifest_file(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """A manifest, also by the folder that holds it (`--output`)."""
    return storage.pull_result(path) if path is not None else None


manifest_argument = click.argument("manifest", type=ANY_PATH, callback=_manifest_file)
optional_manifest = click.argument("manifest", type=ANY_PATH, callback=_manifest_file, required=False)


def manifest_option(help: str) -> Callable[[F], F]:
    """`--manifest`, instead of the manifests of a dataset."""
    return click.option("--manifest", type=ANY_PATH, callback=_manifest_file, help=help)


dataset_option = click.option("--dataset", help="The dataset's name.")


def json_flag(what: str) -> Callable[[F], F]:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what} as JSON, and nothing else.")


columns_option = click.option(
    "--columns",
    type=click.IntRange(0),
    callback=lambda ctx, parameter, given: _terminal() if given is None else given,
    help="Characters of a line: from 72 on, two texts stand in two columns; 0: never [default: the terminal's width]",
)


def _terminal() -> int:
    """Characters of a line of the terminal; 0 for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


# What commands print.


def say(lines: Iterable[str]) -> None:
    """Print lines; nothing for none."""
    if text := "\n".join(lines):
        click.echo(text)


def say_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=1))
