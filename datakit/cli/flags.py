"""Flags: those that many commands have, and those made from the fields of a config; `--help` and `--help-all`."""

import inspect
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import click

import datakit.storage as storage
from datakit import removed
from datakit.config import Option, options, parse
from datakit.engine.recipe import config_class
from datakit.errors import UsageError

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
            yield field_flag(o, f"{stage}__{o.name}", whose=f"{stage}; " if only else "", shared=bool(only))


def field_flag(o: Option, parameter: str, whose: str = "", shared: bool = False) -> Flag:
    """The flag of a field of a config; None where it is not given."""
    flag, kind = o.name.replace("_", "-"), get_origin(o.type)
    about: dict[str, Any] = {"shared": shared, "advanced": o.advanced, "default": None}
    about["help"] = f"{o.help} [{whose}default: {_shown(o.default)}]"
    if o.type is bool:
        return Flag(f"--{flag}/--no-{flag}", parameter, **about)
    return Flag(f"--{flag}", parameter, type=FieldType(o), multiple=kind in (dict, tuple), **about)


def _shown(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return "none" if value is None or not text or value == {} else text


def stage_values(values: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """(values by stage and field, `--set` texts for nested fields) of the given parameters of `config_flags`."""
    flags, sets = dict[str, dict[str, Any]](), list[str]()
    for parameter, value in given(values).items():
        owner, *field = parameter.split("__")
        if len(field) > 1:
            sets.append(f"{owner}.{'.'.join(field)}={','.join(value)}")
        else:
            flags.setdefault(owner, {})[field[0]] = value
    return flags, sets


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The values that were given; of a flag that was given several times, all tables or lists as one."""
    found = dict[str, Any]()
    for name, value in values.items():
        if isinstance(value, tuple) and value and isinstance(value[0], dict):
            value = {key: inner for part in value for key, inner in part.items()}
        elif isinstance(value, tuple) and value and isinstance(value[0], tuple):
            value = tuple(inner for part in value for inner in part)
        elif value in (None, ()):
            continue
        found[name] = value
    return found


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


def _manifest_file(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """A manifest, also by the folder that holds it (`--output`)."""
    return storage.pull_result(path) if path is not None else None


_FILE: dict[str, Any] = {"type": ANY_PATH, "callback": _manifest_file}
ManifestArgument = Annotated[Path, click.Argument(["manifest"], **_FILE)]
AnyManifest = Annotated[Path | None, click.Argument(["manifest"], required=False, **_FILE)]
DatasetName = Annotated[str | None, "The dataset's name."]
Columns = Annotated[int, click.Option(
    ["--columns"],
    type=click.IntRange(0),
    callback=lambda ctx, parameter, given: _terminal() if given is None else given,
    help="Characters of a line: from 72 on, two texts stand in two columns; 0: never [default: the terminal's width]",
)]  # fmt: skip


def _terminal() -> int:
    """Characters of a line of the terminal; 0 for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def manifest_option(help: str) -> click.Option:
    """`--manifest`, instead of the manifests of a dataset."""
    return click.Option(["--manifest"], help=help, **_FILE)


def of_config(config: type) -> list[click.Parameter]:
    """An option for each field of a config; what is not given has the config's default."""
    return [field_flag(o, o.name) for o in options(config)]


class Advanced(str):
    """The help of an option that only `--help-all` shows."""


def command(
    name: str = "", *, json: str = "", project: bool = False, more: Iterable[click.Parameter] = ()
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command from a function; the lines that it returns are printed.

    The docstring is the command's help. With `json` (what `--json` prints), the function returns (value, lines), and
    one of both is printed; or it takes `as_json` and prints by itself. With `project`, there is `--project`; `more`
    are given as keywords.
    """

    def make(function: Callable[..., Any]) -> click.Command:
        params = [*params_of(function), *more]
        if json:
            said = f"Print {json} as JSON, and nothing else."
            params.append(click.Option(["--json", "as_json"], is_flag=True, help=said))
        if project:
            params.append(project_option())

        def run(as_json: bool = False, **values: Any) -> None:
            if "as_json" in inspect.signature(function).parameters:
                function(as_json=as_json, **values)
            elif json:
                value, lines = function(**values)
                say_json(value) if as_json else say(lines)
            else:
                say(function(**values))

        named = name or function.__name__
        return click.Command(named, CONTEXT, run, params, inspect.getdoc(function))

    return make


def params_of(function: Callable[..., Any]) -> list[click.Parameter]:
    """The options and arguments of a function's parameters: those annotated with help, or with a parameter of click."""
    hints, params = get_type_hints(function, include_extras=True), list[click.Parameter]()
    for parameter in inspect.signature(function).parameters.values():
        if get_origin(hint := hints[parameter.name]) is Annotated:
            kind, about = get_args(hint)
            params.append(about if isinstance(about, click.Parameter) else _option(parameter, kind, about))
    return params


def _option(parameter: inspect.Parameter, kind: Any, about: str) -> Flag:
    """The option of a parameter: its name, or what stands before a colon in the help, as `--set: Another limit.`"""
    flag, said = "--" + parameter.name.replace("_", "-"), str(about)
    if about.startswith("-"):
        flag, _, said = about.partition(": ")
    flag, _, metavar = flag.partition(" ")
    member = next((member for member in get_args(kind) if member is not type(None)), kind)
    more: dict[str, Any] = {"type": {Path: HERE, int: click.IntRange(0)}.get(member, member)}
    if kind is bool:
        more = {"is_flag": True}
    elif get_origin(kind) is tuple:
        more["multiple"] = True
    elif get_origin(kind) is Literal:
        more["type"] = click.Choice(get_args(kind))
    if parameter.default is parameter.empty:
        more["required"] = True
    else:
        more["default"] = parameter.default
        if parameter.default:
            said = f"{said} [default: {parameter.default}]"
    more |= {"metavar": metavar or None, "advanced": isinstance(about, Advanced)}
    return Flag(*flag.split("/"), parameter.name, help=said, **more)


# What commands print.


def say(lines: Iterable[str]) -> None:
    """Print lines, each when it is there."""
    for line in lines:
        click.echo(line)


def say_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=1))
