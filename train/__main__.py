"""The console command `datakit-train`: `datakit-train sft --manifest ...` is `python -m train.sft --manifest ...`.

A file `train.py` in the user's folder hides this package from `python -m`; the console command still works there.

Importing torch takes seconds, so options are read before it is loaded: `--help` and wrong options are answered at once.
"""

import difflib
import sys
from collections.abc import Sequence
from importlib import import_module

from datakit.absent import absent
from datakit.config import build
from datakit.errors import UsageError
from train import flags

COMMANDS = {
    "pretrain": "train on every token",
    "sft": "supervised fine-tuning on labelled tokens",
    "dpo": "preference training on pairs: DPO, IPO, SimPO",
    "kto": "preference training on answers judged one by one",
    "grpo": "reinforcement learning with rewards that can be checked",
    "distill": "train a student on the distribution of a teacher",
    "generate": "generate text, answer a file of prompts, or chat",
    "serve": "serve a model: OpenAI's API and a page to chat on",
    "eval": "loss and perplexity on a packed set",
    "export": "write a model for other programs, such as Ollama",
    "merge": "merge adapters into their base model, or average checkpoints",
}
"""Modules of this package with a `main`, and what they do."""
SHELLS = ("bash", "zsh")
SLOW = ("torch", "safetensors", "fastapi", "pydantic", "starlette", "uvicorn", "prometheus_client")
"""Libraries that options do not need."""


def usage() -> str:
    """The list of commands."""
    wide = max(map(len, COMMANDS))
    lines = [f"  {name:<{wide}}  {about}" for name, about in COMMANDS.items()]
    more = "datakit-train completion bash >> ~/.bashrc completes in the shell (or zsh)."
    more = f"\ndatakit-train COMMAND --help lists options.\n{more}"
    return "\n".join(["usage: datakit-train COMMAND [options]\n", *lines, more])


def config_of(name: str) -> tuple[type, str | None]:
    """The configuration of a command, and the docstring of its module."""
    module = import_module("train.serve.server" if name == "serve" else f"train.{name}")
    found = [c for key, c in vars(module).items() if key.endswith("Config") and isinstance(c, type)]
    own = [c for c in found if c.__module__.startswith(f"train.{name}")]
    return (own or found)[-1], module.__doc__


def check(name: str, argv: Sequence[str], prog: str) -> int:
    """Answer `--help`, and refuse wrong options, without torch; returns 0.

    Raises:
        SystemExit: after `--help`, or for options that do not exist.
        ConfigError: an invalid value.
    """
    with absent(SLOW, "train"):
        config, about = config_of(name)
        values = flags.given(config, prog, about, argv)
        if not values.get("loop", {}).get("resume"):  # else most values are those of the run
            build(config, values, "options")
    return 0


def completion(shell: str) -> str:
    """The completion script of a shell: commands, their flags, and the choices of a flag."""
    with absent(SLOW, "train"):
        flags_of = {name: flags.names(config_of(name)[0]) for name in COMMANDS}
    cases = []
    for name, found in flags_of.items():
        cases += [f"    {name}:{flag}) words='{' '.join(choices)}';;" for flag, choices in found.items() if choices]
        cases.append(f"    {name}:*) [[ $word == -* ]] && words='{' '.join(found)}';;")
    head = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return head + "\n".join([
        "_datakit_train() {", '  local word=${COMP_WORDS[COMP_CWORD]} words=""',
        f"  if [ $COMP_CWORD = 1 ]; then words='{' '.join(COMMANDS)}'; else",
        '    case "${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]}" in', *cases, "    esac", "  fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$word"))', "}",
        "complete -o default -F _datakit_train datakit-train"])  # fmt: skip


def run(argv: Sequence[str]) -> int:
    """Run the command that the first argument names; returns its exit code.

    Raises:
        UsageError: no such command.
    """
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    name, *rest = argv
    if name == "completion" and len(rest) == 1 and rest[0] in SHELLS:
        print(completion(rest[0]))
        return 0
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        meant = f"did you mean {near[0]!r}? It is" if near else "expected"
        raise UsageError(f"datakit-train: no command {name!r}; {meant} one of {', '.join(COMMANDS)}")
    check(name, rest, prog := f"datakit-train {name}")
    code: int = import_module(f"train.{name}").main(rest, prog)
    return code


def main() -> int:
    """Run `datakit-train` with this process's arguments; returns the exit code."""
    return flags.guarded(run)


if __name__ == "__main__":
    sys.exit(main())
