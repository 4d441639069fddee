"""Rewards that can be checked: exact answers, regular expressions, unit tests, and functions of the user.

A reward is a number for a text that a model wrote to a prompt; `row` is the line of the prompts file, with its fields.
"""

import contextlib
import importlib.util
import math
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from datakit.errors import ConfigError, InputError
from train.sandbox import passes

Reward = Callable[[str, Mapping[str, Any]], float]
"""(text, row) -> reward."""
ANSWER = r"(?:####|\\boxed\{|[Aa]nswer(?: is)?:?)\s*\$?(-?[\w./,]*\w)"
"""Where an answer stands in a text: after `####` (GSM8K), in \\boxed{}, or after the word."""
NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
FIELDS = {"exact": "answer", "tests": "tests"}
"""The field of a row that a reward needs; functions of the user read what they like."""
_passes_once = cache(passes)


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
        return lambda text, row: float(same_answer(answer_in(text, answer_pattern), answer_in(needed(row, "answer"))))
    if spec == "tests":
        return lambda text, row: _solved(code_in(text), needed(row, "tests"), timeout_s)
    if kind == "regex" and rest:
        try:
            pattern = re.compile(rest, re.DOTALL)
        except re.error as e:
            raise ConfigError(f"--reward {spec}: not a regular expression ({e})") from None
        return lambda text, row: float(pattern.search(text) is not None)
    if kind.endswith(".py") and rest:
        return _function(Path(kind), rest)
    raise ConfigError(f"--reward {spec}: expected exact, tests, regex:PATTERN or FILE.py:NAME")


def needed(row: Mapping[str, Any], name: str, where: str = "a prompt") -> str:
    """The text of a field: a text, a number, or for tests also a list of texts, which are lines.

    Raises:
        InputError: there is none; an empty one would be passed by every answer.
    """
    found = row.get(name)
    if name == "tests" and isinstance(found, list) and all(isinstance(line, str) for line in found):
        found = "\n".join(found)
    if isinstance(found, bool) or not isinstance(found, str | int | float) or not str(found).strip():
        what = f"{name} = {str(found)[:60]!r}" if name in row else f"only {', '.join(row)}"
        raise InputError(f"{where}: its reward needs a text in the field {name!r}; found {what}")
    return str(found)


def _solved(code: str, tests: str, timeout_s: float) -> float:
    solved = passes(code, tests, timeout_s)
    if solved and _passes_once("", tests, timeout_s):
        raise InputError(
            f"--reward tests: these pass without any code, so they test nothing: do they only define functions that "
            f"nobody calls? {tests[:300]!r}"
        )
    return float(solved)


def _function(path: Path, name: str) -> Reward:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"--reward {path}:{name}: no such file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses look there
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise ConfigError(f"--reward {path}:{name}: cannot load the file: {_told(e)}") from None
    function = vars(module).get(name)
    if not callable(function):
        raise ConfigError(f"--reward {path}:{name}: the file has no function {name}")

    def reward(text: str, row: Mapping[str, Any]) -> float:
        try:
            found = float(function(text, row))
        except (Exception, SystemExit) as e:
            raise InputError(f"--reward {path}:{name}: expected a number for {text[:200]!r}; {_told(e)}") from None
        if not math.isfinite(found):
            raise InputError(f"--reward {path}:{name}: returned {found} for the text {text[:200]!r}")
        return found

    return reward


def _told(error: BaseException) -> str:
    """What went wrong in a file of the user, and in which line."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


def code_in(text: str) -> str:
    """The last fenced block of a text; without one, the text."""
    blocks = re.findall(r"```(?:python|py)?\n(.*?)(?:```|\Z)", text, re.DOTALL)
    return str(blocks[-1]) if blocks else text
