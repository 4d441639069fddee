"""Rewards that can be checked: exact answers, regular expressions, unit tests, and functions of the user.

A reward is a number for a text that a model wrote to a prompt; `row` is the line of the prompts file, with its fields.
"""

import contextlib
import importlib.util
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from datakit.errors import ConfigError, InputError

Reward = Callable[[str, Mapping[str, Any]], float]
"""(text, row) -> reward."""
ANSWER = r"(?:####|\\boxed\{|[Aa]nswer(?: is)?:?)\s*\$?(-?[\w./,]*\w)"
"""Where an answer stands in a text: after `####` (GSM8K), in \\boxed{}, or after the word."""
NUMBER = r"-?\d[\d,]*(?:\.\d+)?"


def answer_in(text: str, pattern: str = "") -> str:
    """The final answer of a text: the last match of `pattern` (its first group), without spaces and commas.

    Without a pattern: what follows the last `####`, `\\boxed{` or `Answer:`, else the last number, else the whole text.
    """
    for choice in (pattern,) if pattern else (ANSWER, NUMBER):
        if found := list(re.finditer(choice, text)):
            last = found[-1]
            return _plain(last[1] if last.re.groups else last[0])
    return "" if pattern else _plain(text)


def _plain(answer: str) -> str:
    return answer.strip().replace(",", "").removesuffix(".").strip()


def same_answer(one: str, other: str) -> bool:
    """Whether two answers are equal as texts or as numbers."""
    with contextlib.suppress(ValueError):
        return float(one) == float(other)
    return one.casefold() == other.casefold()


def reward_of(spec: str, answer_pattern: str = "", timeout_s: float = 5.0) -> Reward:
    """The reward that a specification names.

    `exact` compares the answer in the text with that in the row's `answer`; `regex:PATTERN` is 1 where the pattern is
    found; `tests` runs the code in the text with the row's `tests`; `FILE.py:NAME` calls a function of the user with
    (text, row).

    Raises:
        ConfigError: none of these, or a file, function or pattern that cannot be used.
    """
    kind, _, rest = spec.partition(":")
    if spec == "exact":
        return lambda text, row: float(same_answer(answer_in(text, answer_pattern), answer_in(_field(row, "answer"))))
    if spec == "tests":
        return lambda text, row: float(passes(code_in(text), _field(row, "tests"), timeout_s))
    if kind == "regex" and rest:
        try:
            pattern = re.compile(rest, re.DOTALL)
        except re.error as e:
            raise ConfigError(f"--reward {spec}: not a regular expression ({e})") from None
        return lambda text, row: float(pattern.search(text) is not None)
    if kind.endswith(".py") and rest:
        return _function(Path(kind), rest)
    raise ConfigError(f"--reward {spec}: expected exact, tests, regex:PATTERN or FILE.py:NAME")


def _field(row: Mapping[str, Any], name: str) -> str:
    if name not in row:
        raise InputError(f"a prompt has no field {name!r}, which its reward needs; its fields are {', '.join(row)}")
    return str(row[name])


def _function(path: Path, name: str) -> Reward:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"--reward {path}:{name}: no such file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if name not in vars(module):
        raise ConfigError(f"--reward {path}:{name}: the file has no function {name}")
    function = vars(module)[name]

    def reward(text: str, row: Mapping[str, Any]) -> float:
        found = float(function(text, row))
        if not math.isfinite(found):
            raise InputError(f"--reward {path}:{name}: returned {found} for the text {text[:200]!r}")
        return found

    return reward


def code_in(text: str) -> str:
    """The last fenced block of a text; without one, the text."""
    blocks = re.findall(r"```(?:python|py)?\n(.*?)(?:```|\Z)", text, re.DOTALL)
    return str(blocks[-1]) if blocks else text


SANDBOX = """
import ctypes, os, resource, sys
for limit, most in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_FSIZE, 1 << 20),
                    (resource.RLIMIT_NPROC, 0), (resource.RLIMIT_CORE, 0)):
    resource.setrlimit(limit, (most, most))
ctypes.CDLL(None).unshare(0x10000000 | 0x40000000)  # its own user and network, where the kernel allows that
source = sys.stdin.read()
exec(compile(source, "answer", "exec"), {"__name__": "answer"})
os.write(2, TOKEN)
os._exit(0)
"""
"""What the process of a test runs before the code. Limits hold for everything that the code starts."""


def passes(code: str, tests: str, timeout_s: float) -> bool:
    """Whether `tests` end without an error after `code`, both Python, in a process of their own.

    The process has no environment, an empty folder that is removed, and limits of time, memory, file size and child
    processes; where the kernel allows it, no network. This keeps mistakes of a model from doing harm. It is no prison
    for code that wants to break out: run on a machine where nothing is at stake.
    """
    token = os.urandom(16).hex()  # the code cannot end well by leaving early: this comes after the tests
    body = SANDBOX.replace("SECONDS", str(math.ceil(timeout_s))).replace("TOKEN", repr(token.encode()))
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", body], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, cwd=folder, env={}, start_new_session=True, text=True, errors="replace",
        )  # fmt: skip
        try:
            said = process.communicate(f"{code}\n{tests}\n", timeout_s)[1]
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return process.returncode == 0 and said.endswith(token)
