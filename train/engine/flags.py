"""Command-line flags from config dataclasses. The fields of nested sections become flags too, without a prefix."""

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, get_args, get_origin

from datakit.config import Option, build, options, parse
from datakit.errors import ConfigError, DatakitError
from datakit.terminal import guarded_output

T = TypeVar("T")


def given(config: type, prog: str, about: str | None, argv: Sequence[str]) -> dict[str, Any]:
    """The values given on the command line, nested like `config`; `-` and `_` in flags are the same.

    Exits with 2 and a message for an unknown flag or a value of the wrong type, and with 0 after `--help`.
    """
    about = (about or "").split("\n")[0]
    parser = _Parser(prog=prog, usage=f"{prog} [options]", description=about, allow_abbrev=False)
    sections: dict[str, tuple[str, ...]] = {}
    _add(parser, config, (), sections)
    values = vars(parser.parse_args([_dashed(a) for a in argv]))
    nested: dict[str, Any] = {}
    for name, value in values.items():
        table = nested
        for part in sections[name][:-1]:
            table = table.setdefault(part, {})
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


def line(config: Any) -> list[str]:
    """The command line that produces a configuration."""
    found: list[str] = []
    for o in options(type(config)):
        value, flag = getattr(config, o.name), o.name.replace("_", "-")
        if o.nested:
            found += line(value)
        elif o.type is bool:
            found.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            found.append(f"--{flag}={','.join(map(str, value)) if isinstance(value, tuple) else value}")
    return found


def _dashed(argument: str) -> str:
    flag, equals, value = argument.partition("=")
    return flag.replace("_", "-") + equals + value if flag.startswith("--") else argument


def _add(
    parser: argparse.ArgumentParser, config: type, section: tuple[str, ...], sections: dict[str, tuple[str, ...]]
) -> None:
    """Add a flag for each field; flags of a section are grouped under the first line of its docstring."""
    title = (config.__doc__ or "").split("\n")[0].split(";")[0].rstrip(".")
    group = parser.add_argument_group(title) if section else parser
    for o in options(config):
        if o.nested:
            _add(parser, o.nested, (*section, o.name), sections)
            continue
        assert o.name not in sections, f"two flags are called {o.name}"
        sections[o.name] = (*section, o.name)
        flag, about = f"--{o.name.replace('_', '-')}", f"{o.help} [{_shown(o.default)}]".replace("%", "%%")
        if o.type is bool:
            group.add_argument(flag, help=about, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS)
        else:
            action, kind = _Joined if _many(o.type) else "store", _parser(o, flag)
            shown = "|".join(o.choices) or _kind(o.type)
            group.add_argument(flag, help=about, metavar=shown, type=kind, default=argparse.SUPPRESS, action=action)


def _kind(value: Any) -> str:
    """The type of a flag's value, as `--help` shows it."""
    parts = [_kind(part) for part in get_args(value) if part is not Ellipsis]
    if get_origin(value) is tuple:
        return f"{parts[0]},..."
    return {int: "N", float: "X"}.get(value, "TEXT") if not parts else parts[-1]


def _many(kind: Any) -> bool:
    return get_origin(kind) is tuple or any(get_origin(k) is tuple for k in get_args(kind))


class _Joined(argparse.Action):
    """A list flag that can be repeated to add values."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Append the values to the earlier ones."""
        before = getattr(namespace, self.dest, None)
        both = [v if isinstance(v, tuple) else (v,) for v in (before, values) if v is not None]
        setattr(namespace, self.dest, values if before is None else sum(both, ()))


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
    """Build the config from nested values.

    Raises:
        ConfigError: an invalid value.
    """
    return build(config, values, "options")


def guarded(run: Callable[[Sequence[str]], int]) -> int:
    """Run a command with this process's arguments; a known error becomes a message and an exit code."""
    with guarded_output():
        return _guarded(run)


def _guarded(run: Callable[[Sequence[str]], int]) -> int:
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
            f"error: out of memory: {wanted} do not fit into the free memory of the machine or of --memory-limit. "
            f"Training needs less with --loss-chunk 512, with --checkpoint-every 1, or with fewer --batch-rows and "
            f"more --grad-accum. Saved checkpoints are intact: continue with --resume",
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
