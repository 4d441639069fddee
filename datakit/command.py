"""Commands with options made from the fields of a config, `--help` and `--help-all`; datakit's and the trainer's."""

from functools import reduce
from operator import or_
from typing import Any, get_args, get_origin

import click

from datakit.config import Option, instead_of, parse
from datakit.errors import UsageError


class Command(click.Command):
    """A command whose advanced (hidden) options only `--help-all` shows."""

    def __init__(self, name: str, owner: str = "", **about: Any) -> None:
        """`owner` is whose options `removed.toml` names; default: the stage with the command's name."""
        super().__init__(name, context_settings={"max_content_width": 110}, **about)
        self.owner = owner or name.replace("-", "_")
        self.context_settings["token_normalize_func"] = self.normalized
        self.advanced = [option for option in self.params if isinstance(option, click.Option) and option.hidden]
        if self.advanced:
            self.params.append(click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False,
                                            callback=self.help_all, help="Show all options."))  # fmt: skip

    def normalized(self, name: str) -> str:
        """The name of an option as it is meant."""
        return name.replace("_", "-")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left.

        Raises:
            UsageError: an option that was there in an earlier version: what to use instead.
        """
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as e:
            if instead := instead_of(self.owner, e.option_name.lstrip("-").removeprefix("no-")):
                raise UsageError(f"{e.option_name} is gone: {instead}") from None
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """How many options are not shown."""
        if more := sum(option.hidden for option in self.advanced):
            formatter.write(f"\n--help-all shows {more} more options.\n")

    def help_all(self, ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        """Show the help with all options, and end."""
        if wanted:
            for option in self.advanced:
                option.hidden = False
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()


def field_flag(o: Option, parameter: str, whose: str = "") -> click.Option:
    """The flag of a field of a config; None where it is not given.

    The texts are parsed with the rules of the field. Of a flag that is given several times, lists and tables are
    joined, and the last one of other values counts.
    """
    flag, kind = o.flag or "--" + o.name.replace("_", "-"), get_origin(o.type)
    text = ",".join(map(str, o.default)) if isinstance(o.default, tuple) else str(o.default)
    shown = "none" if text in ("", "None", "{}") else text
    about: dict[str, Any] = {"hidden": o.advanced, "default": None, "help": f"{o.help} [{whose}default: {shown}]"}
    if o.type is bool:
        return click.Option([f"{flag}/--no-{flag[2:]}", parameter], **about)
    plain = o.type.__name__ if isinstance(o.type, type) else str(o.type).partition(" ")[0]
    about["metavar"] = "|".join(o.choices) or {tuple: "A,B,...", dict: "KEY=VALUE"}.get(kind, plain.upper())
    about["type"] = lambda text: parse(text, o.type, flag)
    if {tuple, dict} & {kind, *map(get_origin, get_args(o.type))}:
        about |= {"multiple": True, "callback": lambda ctx, option, given: _joined(given)}
    return click.Option([flag, parameter], **about)


def _joined(values: Any) -> Any:
    """The value of a flag that is given several times: tables and lists are joined, where one value is a list, too."""
    if len(values) < 2:
        return values[0] if values else None
    if isinstance(values[0], dict):
        return reduce(or_, values)
    return sum((value if isinstance(value, tuple) else (value,) for value in values), ())
