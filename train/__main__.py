"""The console command `datakit-train`: `datakit-train sft --manifest ...` is `python -m train.sft --manifest ...`.

A file `train.py` in the user's folder hides this package from `python -m`; the console command still works there.
"""

import difflib
import sys
from collections.abc import Sequence
from importlib import import_module

from datakit.errors import UsageError
from train.engine import flags

COMMANDS = {
    "pretrain": "train on every token",
    "sft": "supervised fine-tuning on labelled tokens",
    "dpo": "preference training on pairs: DPO, IPO, SimPO",
    "kto": "preference training on answers judged one by one",
    "distill": "train a student on the distribution of a teacher",
    "reference": "write the reference's log-probabilities for dpo",
    "generate": "generate text, answer a file of prompts, or chat",
    "serve": "serve a model: OpenAI's API and a page to chat on",
    "eval": "loss and perplexity on a packed set",
    "export": "write a model for other programs, such as Ollama",
    "merge": "merge adapters into their base model, or export averaged weights",
    "plot": "plot loss, learning rate and speed of runs",
    "selfcheck": "check that all optimizations give the same result on this machine",
}
"""Modules of this package with a `main`, and what they do."""


def usage() -> str:
    """The list of commands."""
    wide = max(map(len, COMMANDS))
    lines = [f"  {name:<{wide}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(
        ["usage: datakit-train COMMAND [options]", "", *lines, "", "datakit-train COMMAND --help lists options."]
    )


def run(argv: Sequence[str]) -> int:
    """Run the command that the first argument names; returns its exit code.

    Raises:
        UsageError: no such command.
    """
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    name, *rest = argv
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        meant = f"did you mean {near[0]!r}? It is" if near else "expected"
        raise UsageError(f"datakit-train: no command {name!r}; {meant} one of {', '.join(COMMANDS)}")
    code: int = import_module(f"train.{name}").main(rest, f"datakit-train {name}")
    return code


def main() -> int:
    """Run `datakit-train` with this process's arguments; returns the exit code."""
    return flags.guarded(run)


if __name__ == "__main__":
    sys.exit(main())
