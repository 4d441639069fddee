"""Command-line options from config dataclasses. The fields of nested sections become options too, without a prefix.

`--help` shows the options that most runs need, `--help-all` also those with `advanced=True`, by section.
"""

import logging
import re
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import click

import datakit.storage as storage
from datakit.command import Command, field_flag
from datakit.config import build
from datakit.errors import DatakitError, UsageError
from datakit.terminal import guarded_output
from train.config import LOG, every_option, placed

T = TypeVar("T")

WRITTEN = ("out", "output")
"""Options whose files are written to this machine's disk."""
OTHER_NAMES = {"learning-rate": "lr", "init": "model", "checkpoint": "model"}
"""Other names of options, the last two from earlier versions."""


class ConfigCommand(Command):
    """A command with the options of a config."""

    def __init__(self, name: str, config: type, about: str | None = None) -> None:
        flags, self.titles = list[click.Parameter](), dict[str | None, str]()
        for at, owner, o in every_option(config):
            flags.append(field_flag(o, o.name))
            said = (owner.__doc__ or "").split("\n")[0].split(";")[0].rstrip(".")
            self.titles[o.name] = said if at else "Options"
        super().__init__(name, "train", params=flags, help=(about or "").split("\n")[0])

    def normalized(self, name: str) -> str:
        """The name of an option as it is meant, also by another name."""
        name = super().normalized(name)
        return name if name.replace("-", "_") in self.titles else OTHER_NAMES.get(name, name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left. Of an option with a list, `--arms a b` is `--arms a --arms b`."""
        lists = {o.opts[0] for o in self.params if isinstance(o, click.Option) and o.multiple}
        spread, of, first = list[str](), "", True
        for text in args:
            if text.startswith("-"):
                name, equals, _ = text.replace("_", "-").partition("=")
                of, first = name if name in lists else "", not equals
                spread.append(text)
            else:
                spread += [text] if first or not of else [of, text]
                first = False
        return super().parse_args(ctx, spread)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options that most runs need; with `--help-all` every option, by section."""
        some, sections = any(o.hidden for o in self.advanced), dict[str, list[tuple[str, str]]]()
        for o in self.get_params(ctx):
            if record := o.get_help_record(ctx):
                title = "Options" if some else self.titles.get(o.name, "Options")
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def given(config: type, prog: str, about: str | None, argv: Sequence[str]) -> dict[str, Any]:
    """The values on the command line, nested like `config`. From then on what the package logs is printed.

    Exits with 0 after `--help` and `--help-all`.

    Raises:
        UsageError: an unknown option, or an object store as the place of what is written.
        ConfigError: a value of the wrong type.
    """
    try:
        values = ConfigCommand(prog, config, about).make_context(prog, list(argv)).params
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except click.UsageError as e:
        raise UsageError(f"{e.format_message()} ({prog} --help lists the options)") from None
    for name in WRITTEN:
        if storage.is_url(url := values.get(name) or ""):
            raise UsageError(f"--{name} {url}: is written to this machine's disk; copy it to the store from there")
    if not any(isinstance(handler, _Printed) for handler in LOG.handlers):
        LOG.addHandler(_Printed())
        LOG.setLevel(logging.INFO)
        for old in sorted({part.partition("=")[0] for part in argv} & {"--init", "--checkpoint"}):
            LOG.info(f"note: {old} is called --model now")
    return placed(config, {name: value for name, value in values.items() if value is not None})


class _Printed(logging.Handler):
    """Prints the messages of the package: the library itself prints nothing."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        print(text if text.startswith("[") else f"[train] {text}", flush=True)


def built(config: type[T], values: dict[str, Any]) -> T:
    """Build the config from nested values.

    Raises:
        ConfigError: an invalid value.
    """
    if getattr(signal.getsignal(signal.SIGINT), "__module__", "") == "train":  # imports are over: see its __init__
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return build(config, values, "options")


def command(config: type[T], name: str, about: str | None, run: Callable[[T], int | None]) -> Callable[..., int]:
    """The `main(argv, prog)` of the module `name`: `run` with the config from the command line; returns the exit code.

    It must be the module's last statement: see `started`.
    """

    def main(argv: Sequence[str], prog: str = f"python -m {name}") -> int:
        return run(built(config, given(config, prog, about, argv))) or 0

    return started(main, name)


def started(main: Callable[..., int], name: str) -> Callable[..., int]:
    """`main` as it is; but in a module that `python -m` runs, it runs at once and ends the process."""
    if name == "__main__":
        module = vars(sys.modules[name])["__spec__"].name.removesuffix(".__main__")
        sys.exit(guarded(partial(main, prog=f"python -m {module}")))
    return main


def guarded(run: Callable[[Sequence[str]], int]) -> int:
    """Run a command with this process's arguments; a known error becomes a message and an exit code."""
    with guarded_output():
        try:
            return run(sys.argv[1:])
        except DatakitError as e:
            print(f"error: {e}", file=sys.stderr)
            return e.exit_code
        except OSError as e:
            print(f"error: {e.filename or ''}: {e.strerror or e}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
        except (MemoryError, RuntimeError) as e:
            if (wanted := _memory_wanted(e)) is None:
                raise
            less = "--loss-chunk 512, --checkpoint-every 1, or fewer --batch-rows and more --grad-accum"
            why = f"error: out of memory: {wanted} do not fit into the memory, or --memory-limit is too low"
            print(f"{why}. Less is needed with {less}; saved checkpoints are intact: use --resume", file=sys.stderr)
            return 1


def _memory_wanted(error: Exception) -> str | None:
    """The size of a failed allocation; None for any other error."""
    message, words = str(error), ("can't allocate memory", "out of memory", "can't start new thread")
    if not isinstance(error, MemoryError) and not any(word in message for word in words):
        return None
    found = re.search(r"allocate ([\d.]+ \w+)", message)
    return found[1] if found else "further tensors"
