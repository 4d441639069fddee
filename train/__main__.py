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
    "grpo": "reinforcement learning with rewards that can be checked",
    "distill": "train a student on the distribution of a teacher",
    "generate": "generate text, answer a file of prompts, or chat",
    "serve": "serve a model: OpenAI's API and a page to chat on",
    "eval": "loss and perplexity on a packed set",
    "export": "write a model for other programs, such as Ollama",
    "memory": "what fits: GiB by method and GPU",
    "merge": "merge adapters into their base model, or average checkpoints",
}
"""Modules of this package with a `main`, and what they do."""
SHELLS = ("bash", "zsh")


def usage() -> str:
    """The list of commands."""
    wide = max(map(len, COMMANDS))
    lines = [f"  {name:<{wide}}  {about}" for name, about in COMMANDS.items()]
    more = [
        "datakit-train COMMAND --help lists options.",
        "datakit-train completion bash >> ~/.bashrc completes in the shell (or zsh).",
    ]
    return "\n".join(["usage: datakit-train COMMAND [options]", "", *lines, "", *more])


def completion(shell: str) -> str:
    """The completion script of a shell: commands, their flags, and the choices of a flag."""
    flags_of: dict[str, dict[str, tuple[str, ...]]] = {}
    for name in (name for name in COMMANDS if name != "serve"):  # the server has its own dependencies
        configs = [c for c in vars(import_module(f"train.{name}")).values() if isinstance(c, type)]
        own = [c for c in configs if c.__module__ == f"train.{name}" and c.__name__.endswith("Config")]
        flags_of[name] = flags.names(own[-1] if own else import_module("train.sft").SftConfig)
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
        "complete -o default -F _datakit_train datakit-train",
    ])  # fmt: skip


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
    code: int = import_module(f"train.{name}").main(rest, f"datakit-train {name}")
    return code


def main() -> int:
    """Run `datakit-train` with this process's arguments; returns the exit code."""
    return flags.guarded(run)


if __name__ == "__main__":
    sys.exit(main())
