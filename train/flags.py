"""Command-line flags from config dataclasses. The fields of nested sections become flags too, without a prefix."""

import argparse
import difflib
import re
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, get_args, get_origin

import datakit.storage as storage
from datakit.config import Option, build, options, parse
from datakit.errors import ConfigError, DatakitError, InputError
from datakit.terminal import guarded_output

T = TypeVar("T")

URLS = tuple(f"{scheme}://" for scheme in storage.SCHEMES)
AS_GIVEN = ("manifest", "eval_manifest", "data", "prompt")
"""Options whose URLs are read by others: packed files, raw files for `datakit pack`. A prompt may be any text."""
WRITTEN = ("out", "output")


def given(config: type, prog: str, about: str | None, argv: Sequence[str]) -> dict[str, Any]:
    """The values given on the command line, nested like `config`; `-` and `_` in flags are the same.

    Exits with 2 and a message for an unknown flag or topic, or a value of the wrong type, and with 0 after
    `--help [TOPIC]`.
    """
    about = (about or "").split("\n")[0]
    parser = _Parser(prog=prog, usage=f"{prog} [options]", description=about, allow_abbrev=False, add_help=False)
    sections: dict[str, tuple[str, ...]] = {}
    groups = _add(parser, config, (), sections)
    if found := [i for i, a in enumerate(argv) if a in ("-h", "--help")]:
        topic = next((a for a in argv[found[0] + 1 : found[0] + 2] if not a.startswith("-")), "")
        if topic not in ("", "all", *groups):
            near = difflib.get_close_matches(topic, groups, n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            parser.error(f"--help {topic}: no such topic; {meant}The topics are {', '.join(groups)}, all")
        print(_page(parser, groups, topic), end="")
        sys.exit(0)
    values = vars(parser.parse_args([re.sub("^--[^=]*", lambda flag: flag[0].replace("_", "-"), a) for a in argv]))
    nested: dict[str, Any] = {}
    for name, value in values.items():
        table = nested
        for part in sections[name][:-1]:
            table = table.setdefault(part, {})
        if isinstance(value, list):  # a list flag can be repeated to add values
            value = value[0] if len(value) == 1 else sum((v if isinstance(v, tuple) else (v,) for v in value), ())
        table[name] = value
    return nested


class _Parser(argparse.ArgumentParser):
    """Names the nearest flag where one is unknown."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments: "):
            unknown = message.split()[2].partition("=")[0]
            near = difflib.get_close_matches(unknown, self._option_string_actions, n=1)
            message += f"; did you mean {near[0]}?" if near else ""
        super().error(message)


def names(config: type) -> dict[str, tuple[str, ...]]:
    """Every flag of a configuration with its choices, for completion in a shell."""
    found: dict[str, tuple[str, ...]] = {}
    for o in options(config):
        flag = f"--{o.name.replace('_', '-')}"
        found |= names(o.nested) if o.nested else {flag: tuple(map(str, o.choices))}
        if not o.nested and o.type is bool:
            found[f"--no-{flag[2:]}"] = ()
    return found


FIRST = (
    "manifest", "data", "tokenizer", "preset", "init", "out", "resume", "steps", "epochs", "batch_rows", "grad_accum",
    "lr", "lora_rank", "dtype", "compile", "attention", "checkpoint_every", "save_every", "eval_every",
    "sample_prompts", "prompts", "reward", "teacher", "dpo_loss", "beta")  # fmt: skip
"""The options of training that matter first: the page of `--help`."""
SHORT = 40
"""Commands with at most this many options show all of them."""


def _page(parser: argparse.ArgumentParser, groups: dict[str, argparse._ArgumentGroup], topic: str) -> str:
    """The help of a topic, which is the name of a section; without one the options that matter first, or all."""
    if topic == "all" or (topic not in groups and len(parser._actions) <= SHORT):
        return parser.format_help()
    formatter = parser._get_formatter()
    formatter.add_usage(parser.usage, [], [])
    if topic in groups:
        _one_group(formatter, groups[topic].title or topic, groups[topic]._group_actions)
        return formatter.format_help()
    formatter.add_text(parser.description)
    first = [action for action in parser._actions if action.dest in FIRST]
    _one_group(formatter, "what matters first", sorted(first, key=lambda a: FIRST.index(a.dest)))
    wide = max(map(len, groups))
    lines = [f"  --help {name:<{wide}}  {group.title}" for name, group in groups.items()]
    more = [f"  --help {'all':<{wide}}  every option"]
    return formatter.format_help() + "\n".join(["", "more:", *lines, *more, ""])


def _one_group(formatter: argparse.HelpFormatter, title: str, actions: Sequence[argparse.Action]) -> None:
    formatter.start_section(title)
    formatter.add_arguments(actions)
    formatter.end_section()


def _add(
    parser: argparse.ArgumentParser, config: type, section: tuple[str, ...], sections: dict[str, tuple[str, ...]]
) -> dict[str, argparse._ArgumentGroup]:
    """Add a flag for each field; flags of a section are grouped under the first line of its docstring.

    Returns the groups by the names of their sections.
    """
    title = (config.__doc__ or "").split("\n")[0].split(";")[0].rstrip(".")
    group = parser.add_argument_group(title if section else "options of the run")
    groups = {section[-1] if section else "run": group}
    for o in options(config):
        if o.nested:
            groups |= _add(parser, o.nested, (*section, o.name), sections)
            continue
        assert o.name not in sections, f"two flags are called {o.name}"
        sections[o.name] = (*section, o.name)
        flag, about = f"--{o.name.replace('_', '-')}", f"{o.help} [{_shown(o.default)}]".replace("%", "%%")
        if o.type is bool:
            group.add_argument(flag, help=about, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS)
        else:
            shown, action = "|".join(o.choices) or _kind(o.type), "append" if _many(o.type) else "store"
            kind = _parser(o, flag)
            group.add_argument(flag, help=about, metavar=shown, type=kind, default=argparse.SUPPRESS, action=action)
    return groups


def _kind(value: Any) -> str:
    """The type of a flag's value, as `--help` shows it."""
    parts = [_kind(part) for part in get_args(value) if part is not Ellipsis]
    if get_origin(value) is tuple:
        return f"{parts[0]},..."
    return {int: "N", float: "X"}.get(value, "TEXT") if not parts else parts[-1]


def _many(kind: Any) -> bool:
    return get_origin(kind) is tuple or any(get_origin(k) is tuple for k in get_args(kind))


def _shown(default: Any) -> str:
    return ",".join(map(str, default)) or "none" if isinstance(default, tuple) else str(default) or "none"


def _parser(option: Option, flag: str) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return parse(text, option.type, flag)
        except ConfigError as e:
            raise argparse.ArgumentTypeError(str(e)) from None

    return convert


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`base` overridden by `over`, section by section."""
    both = base | over
    return both | {k: merged(base[k], v) for k, v in over.items() if isinstance(v, dict) and k in base}


def built(config: type[T], values: dict[str, Any]) -> T:
    """Build the config from nested values; models and files that they name on an object store are fetched.

    Raises:
        ConfigError: an invalid value.
        InputError: there is nothing in the store under such a name.
    """
    if getattr(signal.getsignal(signal.SIGINT), "__module__", "") == "train":  # imports are over: see its __init__
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return build(config, _here("", values), "options")


def _here(name: str, value: Any) -> Any:
    """A value with local paths instead of URLs of object stores."""
    if isinstance(value, dict):
        return {key: _here(key, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_here(name, inner) for inner in value)
    if not isinstance(value, str) or name in AS_GIVEN or not value.startswith(URLS):
        return value
    if name in WRITTEN:
        raise ConfigError(f"--{name} {value}: is written to this machine's disk; copy it to the store from there")
    found = storage.here(value)
    if not found.exists():
        raise InputError(f"--{name.replace('_', '-')} {value}: there is nothing in the store under this name")
    return str(found)


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
            print(
                f"error: out of memory: {wanted} do not fit into the free memory of the machine. "
                f"Training needs less with --loss-chunk 512, with --checkpoint-every 1, or with fewer --batch-rows and "
                f"more --grad-accum; or --memory-limit is too low. Saved checkpoints are intact: continue with "
                f"--resume",
                file=sys.stderr,
            )
            return 1


def _memory_wanted(error: Exception) -> str | None:
    """The size of a failed allocation; None for any other error."""
    message, words = str(error), ("can't allocate memory", "out of memory", "can't start new thread")
    if not isinstance(error, MemoryError) and not any(word in message for word in words):
        return None
    found = re.search(r"allocate ([\d.]+ \w+)", message)
    return found[1] if found else "further tensors"
