"""The console command `datakit-train`: `datakit-train sft --manifest ...` is `python -m train.sft --manifest ...`.

A file `train.py` in the user's folder hides this package from `python -m`; the console command still works there.

Importing torch takes seconds, so options are read before it is loaded: `--help` and wrong options are answered at once.
The shell completes with `eval "$(_DATAKIT_TRAIN_COMPLETE=bash_source datakit-train)"` (click's; also zsh and fish).
"""

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from datakit.absent import absent
from datakit.config import build
from datakit.errors import UsageError
from train import flags

COMMANDS = {
    "pretrain": "train on every token",
    "sft": "supervised fine-tuning on labelled tokens",
    "dpo": "preference training on pairs: DPO",
    "kto": "preference training on answers judged one by one",
    "grpo": "reinforcement learning with rewards that can be checked",
    "distill": "train a student on the distribution of a teacher",
    "generate": "generate text, answer a file of prompts, or chat",
    "serve": "serve a model: OpenAI's API and a page to chat on",
    "eval": "loss and perplexity on a packed set",
    "compare": "train on several packed sets, and say which one helps",
    "export": "write a model for other programs, adapters merged",
    "merge": "merge adapters into their base model, or average checkpoints",
}
"""Modules of this package with a `main`, and what they do."""
SLOW = ("torch", "safetensors", "fastapi", "pydantic", "starlette", "uvicorn")
"""Libraries that options do not need."""


def config_of(name: str) -> tuple[type, str | None]:
    """The configuration of a command, and the docstring of its module."""
    module = import_module("train.serve.server" if name == "serve" else f"train.{name}")
    found = [c for key, c in vars(module).items() if key.endswith("Config") and isinstance(c, type)]
    own = [c for c in found if c.__module__.startswith(f"train.{name}")]
    return (own or found)[-1], module.__doc__


def check(name: str, argv: Sequence[str], prog: str) -> int:
    """Answer `--help`, and refuse wrong options, without torch; returns 0.

    Raises:
        SystemExit: after `--help`.
        UsageError, ConfigError: options that do not exist, or an invalid value.
    """
    with absent(SLOW, "train"):
        config, about = config_of(name)
        values = flags.given(config, prog, about, argv)
        if not values.get("loop", {}).get("resume"):  # else most values are those of the run
            build(config, values, "options")
    return 0


class Commands(click.Group):
    """The list of commands, and their options for completion in a shell."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of a project."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The options of a command, read without torch."""
        if name not in COMMANDS:
            return None
        with absent(SLOW, "train"):
            return flags.Command(name, *config_of(name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def run(argv: Sequence[str]) -> int:
    """Run the command that the first argument names; returns its exit code.

    Raises:
        UsageError: no such command.
    """
    if argv and argv[0] in COMMANDS:
        name, *rest = argv
        check(name, rest, prog := f"datakit-train {name}")
        code: int = import_module(f"train.{name}").main(rest, prog)
        return code
    try:
        Commands(help="Train on packed data; COMMAND --help lists options.").main(
            list(argv) or ["--help"], "datakit-train", standalone_mode=False
        )
    except click.UsageError as e:
        raise UsageError(f"{e.format_message()} Expected one of {', '.join(COMMANDS)}") from None
    return 0 if argv else 2


def main() -> int:
    """Run `datakit-train` with this process's arguments; returns the exit code."""
    return flags.guarded(run)


if __name__ == "__main__":
    sys.exit(main())
