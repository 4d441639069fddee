"""Private data: e-mail and IP addresses, phones, cards, bank accounts, national ids, keys; replaced or dropped.

A value must pass its own check: cards Luhn (ISO/IEC 7812) and a known prefix, IBANs modulo 97 (ISO 13616), Chinese,
French and Spanish ids their check characters, IP addresses must be public ones and not look like version numbers,
phone numbers must be written internationally, in North America's way, or behind a word that says so. Addresses that
are reserved for examples (RFC 2606, RFC 5737) and made-up keys stay. Private keys (PEM) go whole, other values only
within a line.

Placeholders are `<EMAIL>`, `<IP>`, `<PHONE>`, `<CARD>`, `<IBAN>`, `<NATIONAL_ID>`, `<KEY>`. In conversations what is
said and thought is looked at, tool calls and tool schemas are not. The ledger notes how many values of each type were
replaced. Names and addresses of people are not looked for: that takes a model.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.errors import ConfigError
from datakit.filter.private_values import FINDERS, find
from datakit.filter.rules import Measure, Rows, check_ratios
from datakit.filter.signals import Signals

SEES = "all"
COUNTING = ("types",)

_SUSPICIOUS = (
    r"[A-Za-z0-9]@[A-Za-z0-9]|\d[ ().-]{0,2}\d[ ().-]{0,2}\d[ ().-]{0,2}\d[ ().-]{0,2}\d[ ().-]{0,2}\d[ ().-]{0,2}\d"
    r"|\d\.\d{1,3}\.\d{1,3}\.\d|[0-9A-Fa-f]:[0-9A-Fa-f:]*:|[A-Z]{2}\d\d[ A-Z0-9]{6}"
    r"|A[KS]IA|gh[pousr]_|github_pat|glpat|xox|sk-|hf_|AIza|k_live_|npm_|SG\.|eyJ"
)
"""RE2: every line with a private value has a match."""
_PEM = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.{40,8000}?-----END \1PRIVATE KEY-----", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """What is private, and what becomes of it."""

    types: tuple[str, ...] = option(tuple(FINDERS), "the types of values to look for")
    action: Literal["replace", "drop"] = option("replace", "replace values by placeholders, or drop rows with them")
    max_values: int = option(0, "with drop: drop rows with more values")

    def __post_init__(self) -> None:
        check_ratios(self)
        unknown = [t for t in self.types if t not in FINDERS]
        if unknown or not self.types:
            raise ConfigError(f"types = {list(self.types)}: expected some of {', '.join(FINDERS)}")


def count(texts: pa.Array, config: Config) -> Signals:
    """How many values of each type each text holds."""
    counts = {f"private_{name}": np.zeros(len(texts), np.int64) for name in config.types}
    for row, text in _suspects(texts):
        for name, found in replace(text, config.types)[1].items():
            counts[f"private_{name}"][row] += found
    return Signals(counts)


def measure(rows: Rows, config: Config) -> Iterator[Measure]:
    """The number of values, where rows with them are dropped."""
    counts = rows.counted("private")
    total = np.sum([counts[f"private_{name}"] for name in config.types], axis=0)
    yield Measure("max_values", total, None if config.action == "drop" else np.zeros(len(total), np.bool_))


def edit(texts: pa.Array, config: Config, kind: str) -> pa.Array:
    """The texts with placeholders for private values."""
    if config.action == "drop":
        return texts
    mask, made = np.zeros(len(texts), np.bool_), []
    for row, text in _suspects(texts):
        changed, found = replace(text, config.types)
        if found:
            mask[row] = True
            made.append(changed)
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(made, pa.string()))


def notes(rows: Rows, stays: NDArray[np.bool_], config: Config) -> dict[str, int]:
    """How many values of each type the rows that stay hold."""
    counts = rows.counted("private")
    return {f"private_{name}": int(counts[f"private_{name}"][stays].sum()) for name in config.types}


def replace(text: str, types: tuple[str, ...]) -> tuple[str, dict[str, int]]:
    """(the text with placeholders, how many of each type that was found)."""
    counts: dict[str, int] = {}
    if "key" in types and "PRIVATE KEY-----" in text:
        text, found = _PEM.subn("<KEY>", text)
        counts |= {"key": found} if found else {}
    lines = text.split("\n")
    suspicious = pc.match_substring_regex(pa.array(lines, pa.string()), _SUSPICIOUS).to_numpy(zero_copy_only=False)
    for i in np.flatnonzero(suspicious).tolist():
        for begin, end, name in reversed(find(lines[i], types)):
            lines[i] = f"{lines[i][:begin]}<{name.upper()}>{lines[i][end:]}"
            counts[name] = counts.get(name, 0) + 1
    return "\n".join(lines), counts


def _suspects(texts: pa.Array) -> Iterator[tuple[int, str]]:
    """(row, text) of the texts that may hold a private value."""
    suspicious = pc.match_substring_regex(texts, f"{_SUSPICIOUS}|PRIVATE KEY")
    rows = np.flatnonzero(pc.fill_null(suspicious, False).to_numpy(zero_copy_only=False))
    yield from zip(rows.tolist(), texts.take(pa.array(rows)).to_pylist(), strict=True)
