"""Commands made from annotated functions, and options made from the fields of a config; `--help` and `--help-all`."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from json import dumps
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NewType, get_args, get_origin, get_type_hints

import click

import datakit.storage as storage
from datakit.command import Command, field_flag
from datakit.config import options
from datakit.engine.recipe import KINDS, result_path, stage_class
from datakit.errors import UsageError

READING = ("map", "roles", "split", "limit")
"""The fields of ingest that are flags of every command that may read raw files."""
_PROJECT = "datakit.project"

Answer = tuple[Any, Iterable[str]]
"""What a command with `--json` returns: a value, and lines."""


# Commands.


def command(
    name: str = "", *, json: str = "", project: bool = False, more: Iterable[click.Parameter] = (), help: str = ""
) -> Callable[[Callable[..., Any]], Command]:
    """A command from a function; the lines that it returns are printed.

    Its docstring is the command's help, where there is no other `help`. With `json` (what `--json` prints), the
    function returns (value, lines), one of which is printed, and where something is wrong also the error that is raised
    then. With `project`, there is `--project`; `more` are given as keywords.
    """

    def make(function: Callable[..., Any]) -> Command:
        params = [*params_of(function), *more]
        if json:
            said = f"Print {json} as JSON, and nothing else."
            params.append(click.Option(["--json", "as_json"], is_flag=True, help=said))
        if project:
            params.append(project_option())

        def run(as_json: bool = False, **values: Any) -> None:
            value, lines, *problems = function(**values) if json else (None, function(**values))
            for line in [dumps(value, ensure_ascii=False, indent=1)] if as_json else lines:
                click.echo(line)
            for error in problems:
                raise error

        return Command(name or function.__name__, callback=run, params=params, help=help or inspect.getdoc(function))

    return make


def quiet() -> bool:
    """Whether the command prints JSON, and nothing else."""
    return bool(click.get_current_context().params.get("as_json"))


# Options and arguments from a function's parameters.


def path(text: str) -> Path:
    """A path on this machine or on an object store; the name is what `--help` shows."""
    return storage.local(text)


def file(text: str) -> Path:
    """A file on this machine, for files that other programs read.

    Raises:
        UsageError: it is a URL, or a folder.
    """
    if storage.is_url(text):
        raise UsageError(f"{text}: is written to this machine's disk; copy it to the store from there")
    if os.path.isdir(text):
        raise UsageError(f"{text}: is a folder; expected a file")
    return Path(text)


def manifest(text: str) -> Path:
    """The path of a manifest, also by the folder that holds it, or by the name of a dataset: its last one."""
    return result_path(text, project())


File = NewType("File", Path)
ManifestPath = NewType("ManifestPath", Path)
"""A manifest, also by the folder that holds it (`--output`), or by its dataset, whose last result it is."""
Kind = NewType("Kind", str)
AUTO = Kind(KINDS[0])
TYPES: dict[Any, Any] = {Path: path, File: file, ManifestPath: manifest, BinaryIO: click.File("rb")}
TYPES |= {int: click.IntRange(0), Kind: click.Choice(KINDS)}
"""What click converts the texts of a parameter with, by its type; other types are given to click as they are."""

DatasetName = Annotated[str | None, "The dataset's name."]
InProject = Annotated[ManifestPath | None, "--manifest MANIFEST: This result instead of those of the dataset."]


class Advanced(str):
    """The help of an option that only `--help-all` shows."""


def params_of(function: Callable[..., Any]) -> list[click.Parameter]:
    """Arguments from a function's positional parameters, options from its keywords that are annotated with help."""
    hints, params = get_type_hints(function, include_extras=True), list[click.Parameter]()
    for parameter in inspect.signature(function).parameters.values():
        hint, needed = hints.get(parameter.name), parameter.default is parameter.empty
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            many = -1 if get_origin(hint) is tuple else 1
            params.append(click.Argument([parameter.name], nargs=many, required=needed, type=_type(hint)))
        elif get_origin(hint) is Annotated:
            kind, about = get_args(hint)
            params.append(_option(parameter, kind, about))
    return params


def _option(parameter: inspect.Parameter, kind: Any, about: str) -> click.Option:
    """The option of a parameter: its name, or what stands before a colon in the help, as `--set: Another limit.`"""
    flag, said, default = "--" + parameter.name.replace("_", "-"), str(about), parameter.default
    if about.startswith("-"):
        flag, _, said = about.partition(": ")
    flag, _, metavar = flag.partition(" ")
    more: dict[str, Any] = {"required": True} if default is parameter.empty else {"default": default}
    more |= {"is_flag": True} if kind is bool else {"type": _type(kind), "multiple": get_origin(kind) is tuple}
    if default and default is not parameter.empty:
        said += f" [default: {default}]"
    names, hidden = [*flag.split("/"), parameter.name], isinstance(about, Advanced)
    return click.Option(names, help=said, metavar=metavar or None, hidden=hidden, **more)


def _type(kind: Any) -> Any:
    """What click converts a text with: by the type, or by its first member."""
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    member = (*get_args(kind), kind)[0]
    return TYPES.get(member, member)


# Options from the fields of a config.


def config_flags(stage: str, only: tuple[str, ...] = ()) -> Iterator[click.Option]:
    """A flag for each field of a stage's config, or for those in `only`, which are another stage's.

    A flag's parameter is `<stage>__<field>`. Fields of nested sections are set with `--set`; a field that declares a
    flag (`--eval`) has that flag too, with the parameter `<stage>__<section>__<field>`.
    """
    for o in options(stage_class(stage).Config):
        if o.nested and not only:
            for inner in (inner for inner in options(o.nested) if inner.flag):
                yield field_flag(inner, f"{stage}__{o.name}__{inner.name}")
        elif not o.nested and o.name != "kind" and (o.name in only or not only):
            yield field_flag(o, f"{stage}__{o.name}", f"{stage}; " if only else "")


def of_config(config: type) -> list[click.Option]:
    """An option for each field of a config; what is not given has the config's default."""
    return [field_flag(o, o.name) for o in options(config)]


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The values of `of_config` and `config_flags` that were given."""
    return {name: value for name, value in values.items() if value is not None}


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


# The project.


def project_option(hidden: bool = False) -> click.Option:
    """`--project`: the folder with `manifests/` and `data/`; `project` returns it."""
    return click.Option(
        ["--project"], type=path, envvar="DATAKIT_PROJECT", expose_value=False, is_eager=True, hidden=hidden,
        callback=lambda ctx, _, path: ctx.meta.__setitem__(_PROJECT, path),
        help="The project's folder; also s3://, gs:// or az:// [default: the current folder]",
    )  # fmt: skip


def project() -> Path:
    """The folder of the project that the command works in; its manifests are at hand."""
    given: Path | None = click.get_current_context().meta.get(_PROJECT)
    if given is not None:
        storage.pull(given / "manifests")
    return given or Path.cwd()
