"""Patterns of the user: rows that match a pattern are dropped, or only those that match one are kept.

Patterns are RE2 (Cox 2010), which Arrow runs over whole columns. RE2 has no look-around and no back-references; in
return every pattern takes time linear in the text, so that none can hang a run. Each pattern has a name, and the name
is the reason: `regex.viagra`. (?i) before a pattern ignores case; (?m) makes ^ and $ match at every line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.errors import ConfigError
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, Signals


@dataclass(frozen=True, kw_only=True, slots=True)
class Regex(RuleSet):
    """Patterns by name, and how often they may match."""

    name: ClassVar[str] = "regex"
    counts: ClassVar[bool] = True

    drop: dict[str, str] = option({}, "name = pattern (RE2): rows that match are dropped")
    keep: dict[str, str] = option({}, "name = pattern (RE2): rows that match none of them are dropped")
    max_drop_matches: int = option(0, "drop rows in which one pattern of drop matches more often")
    min_keep_matches: int = option(1, "drop rows in which the patterns of keep match less often, all together")

    def check(self) -> None:
        """Refuse patterns that RE2 does not know, and names that cannot be a reason."""
        for what, patterns in (("drop", self.drop), ("keep", self.keep)):
            for name, pattern in patterns.items():
                if not re.fullmatch(r"[\w-]+", name) or (what, name) == ("drop", "keep"):
                    raise ConfigError(f"{what}: a pattern's name is letters, digits, _ and -, and not keep: {name!r}")
                try:
                    pc.count_substring_regex(pa.array([""]), pattern)
                except pa.ArrowInvalid as e:
                    why = str(e).partition(": ")[2] or e
                    raise ConfigError(
                        f"{what}.{name} = {pattern!r}: is no RE2 pattern ({why}). RE2 has no look-around, no "
                        "back-references and at most 1000 repetitions, so that no pattern can hang"
                    ) from None

    def open(self) -> None:
        """Refuse a rule set without patterns.

        Raises:
            ConfigError: there is none.
        """
        if not self.drop and not self.keep:
            raise ConfigError('the rule set regex is on, but has no pattern: set regex.drop.NAME = "PATTERN"')

    def counted_with(self) -> dict[str, Any]:
        """The patterns."""
        return {"drop": self.drop, "keep": self.keep}

    def count(self, texts: pa.Array) -> Signals:
        """`regex_drop_NAME`, `regex_keep_NAME`: how often each pattern matches, without overlap."""
        plain = pc.fill_null(texts, "")
        return Signals(
            {
                f"regex_{what}_{name}": pc.count_substring_regex(plain, pattern).to_numpy().astype(np.int64)
                for what, patterns in (("drop", self.drop), ("keep", self.keep))
                for name, pattern in patterns.items()
            }
        )

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The patterns of `drop`, one by one, then those of `keep` together."""
        counts = rows.counted(self)
        for name in self.drop:
            yield Measure("max_drop_matches", counts[f"regex_drop_{name}"], label=name)
        if self.keep:
            together = np.sum([counts[f"regex_keep_{name}"] for name in self.keep], axis=0)
            yield Measure("min_keep_matches", together, label="keep")
