"""The command group. Commands load when they are called, so that `datakit --help` answers at once."""

import importlib
import os
import sys

import click

from datakit import __version__
from datakit.engine.registry import FLOW, STAGES
from datakit.errors import DatakitError, UsageError

OTHER_COMMANDS = {
    "init": ("datakit.cli.stages:init", "Begin a dataset: write its commented recipe."),
    "run": ("datakit.cli.stages:run", "Run a dataset's stages in order; what is up to date is skipped."),
    "classifier": ("datakit.cli.train:classifier", "Train a classifier from examples."),
    "tokenizer": ("datakit.cli.train:tokenizer", "Train a tokenizer."),
    "tune": ("datakit.cli.tune:tune", "Show what each threshold of the filter drops, and what another would."),
    "verify": ("datakit.cli.look:verify", "Recompute every checksum and count, back to the raw inputs."),
    "peek": ("datakit.cli.packed:peek", "Show a packed row as text, with its labels."),
    "lint": ("datakit.cli.packed:lint", "Count what is wrong with a packed set's labels, by source."),
    "unpack": ("datakit.cli.packed:unpack", "Turn a packed set back into text."),
    "show": ("datakit.cli.look:show", "Show a manifest: ledger, shards, facts, some rows."),
    "explain": ("datakit.cli.look:explain", "Tell what became of a row, stage by stage."),
    "pairs": ("datakit.cli.look:pairs", "Show dropped duplicates beside their survivors, doubtful ones first."),
    "index": ("datakit.cli.keep:index", "Remove rows from the index that --against compares with."),
    "gc": ("datakit.cli.keep:gc", "Remove data folders that no manifest names."),
    "models": ("datakit.cli.keep:models", "Fetch models into the user's cache."),
    "compile": ("datakit.cli.keep:compile_", "Compile the kernels now, not in the first run."),
}
"""Commands that are no stages: where each is, and its line in `datakit --help`."""


def commands() -> dict[str, str]:
    """Every command with its line in `datakit --help`: init, run, the stages of a recipe, then all others."""
    others = {name: line for name, (_, line) in OTHER_COMMANDS.items()}
    first = {name: others.pop(name) for name in ("init", "run")}
    stages = {name.replace("_", "-"): STAGES[name].summary for name in FLOW}
    return first | stages | others


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order that data flows."""
        return list(commands())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, imported."""
        if name in OTHER_COMMANDS:
            module, attribute = OTHER_COMMANDS[name][0].split(":")
            found: click.Command = getattr(importlib.import_module(module), attribute)
            return found
        if name not in commands():
            return None
        from datakit.cli.stages import stage_command

        return stage_command(name.replace("-", "_"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(commands().items()))


@click.group(cls=LazyGroup, context_settings={"token_normalize_func": lambda t: t.replace("_", "-")})
@click.version_option(__version__, prog_name="datakit")
def datakit() -> None:
    """Turn raw text, conversations and preference pairs into packed, verified, versioned training data."""


def main(args: list[str] | None = None) -> None:
    """Run the command line. Errors are one paragraph on standard error: exit code 2 for usage, 1 for all others."""
    try:
        code = datakit.main(args, prog_name="datakit", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted. Finished work is kept: run the same command again to go on.")
        sys.exit(130)
    except UsageError as e:
        _say(str(e))
        sys.exit(2)
    except click.ClickException as e:
        e.show()
        sys.exit(2 if isinstance(e, click.UsageError) else 1)
    except DatakitError as e:
        _say(str(e))
        sys.exit(e.exit_code)
    except BrokenPipeError:  # the reader of our output has gone, as in `datakit show M | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as e:
        _say(f"{e.filename or 'file system'}: {e.strerror or e}. Finished work is kept: mend the cause and run again.")
        sys.exit(1)
    except Exception as e:
        if isinstance(e, MemoryError) or "can't start new thread" in str(e):  # no room for the thread's stack
            _say("out of memory. Finished work is kept: run again with fewer --workers, smaller shard_mb or memory_mb.")
            sys.exit(1)
        if os.environ.get("DATAKIT_TRACEBACK"):
            raise
        _say(
            f"this is a mistake in datakit, not in your data: {e!r}. Run again with DATAKIT_TRACEBACK=1 and report it."
        )
        sys.exit(1)


def _say(text: str) -> None:
    click.echo(f"datakit: {text}", err=True)
