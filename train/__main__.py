"""The console command `datakit-train`: `datakit-train sft --manifest ...` is `python -m train.sft --manifest ...`.

A file `train.py` in the user's folder hides this package from `python -m`; the console command still works there.

Importing torch takes seconds, so options are read before it is loaded: `--help` and wrong options are answered at once.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

from datakit.absent import absent
from datakit.config import build, instead_of
from datakit.errors import UsageError
from train import flags

COMMANDS = {
    "pretrain": "train on every token",
    "sft": "supervised fine-tuning on labelled tokens",
    "dpo": "preference training on pairs (DPO) or single answers (APO-zero)",
    "grpo": "reinforcement learning with rewards that can be checked",
    "distill": "train a student on the distribution of a teacher",
    "generate": "generate text, or answer a file of prompts",
    "serve": "serve a model: OpenAI's API and a page to chat on",
    "eval": "loss and perplexity on a packed set",
    "compare": "train on several packed sets, and say which one helps",
    "export": "write a model for other programs, adapters merged",
    "merge": "merge adapters into their base model: export by its older name",
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


def run(argv: Sequence[str]) -> int:
    """Run the command that the first argument names; returns its exit code.

    Raises:
        UsageError: no such command.
    """
    if argv and argv[0] in COMMANDS:
        name, *rest = argv
        check(name, rest, prog := f"datakit-train {name}")
        return import_module(f"train.{name}").main(rest, prog)
    if argv and not argv[0].startswith("-"):
        instead = instead_of("train", argv[0]) or f"Expected one of {', '.join(COMMANDS)}."
        raise UsageError(f"there is no command {argv[0]!r}. {instead}")
    print("Usage: datakit-train COMMAND ...; COMMAND --help lists options.\n")
    for name, about in COMMANDS.items():
        print(f"  {name:<9} {about}")
    return 0 if argv else 2


def main() -> int:
    """Run `datakit-train` with this process's arguments; returns the exit code."""
    return flags.guarded(run)


if __name__ == "__main__":
    sys.exit(main())
