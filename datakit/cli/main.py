"""The command group. A command's module loads when the command is called, so that `datakit --help` answers at once."""

import difflib
import importlib
import logging
import os
import sys

import click

import datakit.storage as storage
from datakit import __version__
from datakit.config import instead_of
from datakit.engine.recipe import FLOW, STAGES
from datakit.errors import DatakitError
from datakit.terminal import guarded_output, printable

COMMANDS = {
    "init": ("stages:init", "Begin a dataset: write its commented recipe."),
    "run": ("", "Run a dataset's stages in order; skip what is up to date."),
    "tune": ("look:tune", "Show what each threshold of the filter drops, and what another would."),
    "verify": ("look:verify", "Recompute every checksum and count, back to the raw inputs."),
    "peek": ("look:peek", "Show a packed row as text, with its labels."),
    "lint": ("look:lint", "Count label errors of a packed set, by source."),
    "unpack": ("look:unpack", "Turn a packed set back into text."),
    "show": ("look:show", "Show a manifest: ledger, shards, facts, some rows."),
    "status": ("look:status", "Show every dataset: stages, rows, sizes, what is stale."),
    "history": ("look:history", "Show the versions of a dataset, and what changed between them."),
    "forecast": ("results:forecast", "Say what a run will take and drop, from a sample."),
    "ablate": ("results:ablate", "Make the packed sets that lack one stage of a recipe each."),
    "diff": ("look:diff", "Show how two versions or two datasets differ: rows, reasons, settings."),
    "report": ("look:report", "Write one HTML page about a dataset."),
    "explain": ("look:explain", "Show what each stage did with a row."),
    "pairs": ("look:pairs", "Show dropped duplicates beside the rows that stay, least similar first."),
    "export": ("results:export", "Write the rows of a result as files for others, with a dataset card."),
    "remove": ("keep:remove", "Remove rows for good, at a person's request for example."),
    "gc": ("keep:gc", "Remove data folders that no manifest names."),
    "models fetch": ("keep:fetch", "Fetch a model into the user's cache."),
    "compile": ("keep:compile_", "Compile the kernels now, not in the first run."),
}
"""The commands that are not stages, some of two words: where each is in `datakit.cli` (`run` is made like a stage's),
and its line in the help."""
STAGE_NAMES = {
    "classifier": "classifier train",
    "tokenizer": "tokenizer train",
    "perplexity_model": "perplexity train",
}
"""What a stage's command is called, where not as the stage."""
NETWORK = ("httpx", "httpx2", "httpcore", "requests", "aiohttp", "urllib3", "huggingface_hub")
"""Packages whose errors are the network's: hf:// and the like are read through them, and not all are OSErrors."""


def commands() -> dict[str, str]:
    """Every command with its line in `datakit --help`: init, run, the stages of a recipe, then all others."""
    lines = {name: line for name, (_, line) in COMMANDS.items()}
    stages = {STAGE_NAMES.get(name, name.replace("_", "-")): STAGES[name].summary for name in FLOW}
    return {name: lines[name] for name in ("init", "run")} | stages | lines


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the data flow."""
        return list(commands())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, imported; None if there is none of that name."""
        stages = [s for s in FLOW if name in (s.replace("_", "-"), STAGE_NAMES.get(s))]
        if name == "run" or stages:
            from datakit.cli.stages import stage_command

            return stage_command(stages[0] if stages else None)
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name][0].split(":")
        command: click.Command = getattr(importlib.import_module(f"datakit.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of some arguments, of two words or of one; an unknown one is answered with the nearest."""
        for words in (2, 1):
            name = " ".join(args[:words]).replace("_", "-")
            if found := self.get_command(ctx, name):
                return name, found, args[words:]
            if instead := instead_of(name):
                ctx.fail(f"The command {name!r} is gone: {instead}")
        near = [c for c in commands() if c.startswith(f"{name} ")]
        near = near or difflib.get_close_matches(name, commands(), n=1, cutoff=0.6)
        meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        ctx.fail(f"No such command {args[0]!r}.{meant} `datakit --help` lists all.")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(commands().items()))


@click.group(cls=LazyGroup)
@click.version_option(__version__, prog_name="datakit")
def datakit() -> None:
    """Turn raw text, conversations and preference pairs into packed, verified, versioned training data."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: with code 2 where the command or the recipe is wrong, 1 for all other errors.

    An error is one paragraph on standard error. Messages that the package logs (that it compiles kernels) are printed
    there too, but not with `--json`.
    """
    log, notices = logging.getLogger("datakit"), _Notices()
    log.setLevel(logging.WARNING if "--json" in (sys.argv if args is None else args) else logging.INFO)
    log.addHandler(notices)
    try:
        with guarded_output():
            code = _exit_code(args)
        sys.exit(code)
    finally:
        log.removeHandler(notices)


def _exit_code(args: list[str] | None) -> int:
    try:
        code = datakit.main(args, prog_name="datakit", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted. Finished work is kept: run the same command again to go on.")
        return 130
    except click.ClickException as e:
        e.show()
        return 2 if isinstance(e, click.UsageError) else 1
    except BrokenPipeError:  # the reader of our output is gone, as in `datakit show M | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except DatakitError as e:
        _say(str(e))
        return e.exit_code
    except Exception as e:
        _say(_explained(e))
        return 1


def _explained(e: Exception) -> str:
    """What happened, where it is no error of the user's, and what to do."""
    if isinstance(e, OSError):
        where = storage.on_this_machine(e.filename) if isinstance(e.filename, str) else ""
        why = f"{e.filename or 'file system'}: {e.strerror or e}{where}"
        return f"{why}. Finished work is kept: fix the cause and run again."
    if isinstance(e, MemoryError) or "can't start new thread" in str(e):  # no memory for the thread's stack
        return "out of memory. Finished work is kept: run again with fewer --workers, smaller shard_mb or memory_mb."
    if type(e).__module__.split(".")[0] in NETWORK:
        return f"the network: {e}. Finished work is kept: run again, or check the address and the connection."
    if os.environ.get("DATAKIT_TRACEBACK"):
        raise e
    return f"this is an error in datakit, not in your data: {e!r}. Run again with DATAKIT_TRACEBACK=1 and report it."


class _Notices(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _say(record.getMessage())


def _say(text: str) -> None:
    print(f"datakit: {printable(text)}", file=sys.stderr, flush=True)
