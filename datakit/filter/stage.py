"""The filter stage: rule sets over shared signals, the first failed threshold is the reason."""

import dataclasses
import functools
import operator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option, section
from datakit.data import On
from datakit.errors import ConfigError
from datakit.filter import stop_words
from datakit.filter.rule_set import Measured, apply, available, config_class, counting, has, judge, kind_of, part
from datakit.stage import Decision, Stage
from datakit.text.characters import UNICODE_VERSION

DEFAULT_RULES: Final = {
    "document": ("gopher_quality", "gopher_repetition"),
    "conversation": ("empty_answer", "loops"),
    "preference": ("empty_answer",),
}
"""What is on where the recipe names no rules. Gopher's rules are for web pages: on answers, its 50 words and its
shares of repetition would drop thousands of good ones. The two answers of a preference pair are alike by nature, and a
rejected one may well repeat itself: that is what it is there to teach."""

DEFAULT_VIEW: Final[dict[str, On]] = {"document": "all", "conversation": "answer", "preference": "all"}
"""What `on = "auto"` looks at. Answers often repeat parts of their question, and rightly so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterOptions:
    """What the filter stage can be told, apart from the thresholds: one section a rule set, see `FilterConfig`."""

    rules: tuple[str, ...] = option((), "rule sets in the order they decide; empty: those of the row kind")
    on: Literal["auto", "all", "prompt", "answer"] = option("auto", "the part of a row to look at; auto: by row kind")
    include_system: bool = option(False, "look at system prompts, tool schemas and tool results too")
    signals: bool = option(True, "save what was measured beside the rows, for other thresholds and `datakit tune`")

    def __post_init__(self) -> None:
        for name in self.rules:
            config_class(name)
        unused = [n for n in self.changed() if self.rules and n not in self.rules]
        if unused:
            raise ConfigError(f"thresholds of {unused[0]!r} are set, but rules = {list(self.rules)} leaves it out")

    def changed(self) -> list[str]:
        """The rule sets with a threshold that is not the default."""
        return [n for n in available() if getattr(self, n) != config_class(n)()]

    def active(self, kind: str) -> tuple[str, ...]:
        """The rule sets that decide about a kind: those asked for, or the kind's and those with a threshold set."""
        default = DEFAULT_RULES[kind]
        return self.rules or default + tuple(n for n in self.changed() if n not in default)


FilterConfig: Final[type[FilterOptions]] = dataclasses.make_dataclass(
    "FilterConfig",
    [(n, c, section(c, (c.__doc__ or "").strip())) for n in available() if (c := config_class(n))],
    bases=(FilterOptions,),
    namespace={"__module__": __name__, "__doc__": FilterOptions.__doc__},
    frozen=True,
    kw_only=True,
    slots=True,
)
"""`FilterOptions` and a section of thresholds for every rule set in this folder."""


@dataclass(frozen=True, slots=True)
class Filter(Stage):
    """Drops rows that fail a threshold; the reason is `<rule set>.<threshold>`, the first in the order of the rules."""

    Config: ClassVar[type] = FilterConfig
    name: ClassVar[str] = "filter"
    holds_gil: ClassVar[bool] = False

    config: FilterOptions = dataclasses.field(default_factory=FilterConfig)

    def for_kind(self, kind: str) -> "Filter":
        """The stage for rows of a kind: the rules and the view that decide stand in its config, and in the manifest."""
        if kind not in DEFAULT_RULES:  # tokens: `decide` says what is wrong
            return self
        on = DEFAULT_VIEW[kind] if self.config.on == "auto" else self.config.on
        return Filter(config=dataclasses.replace(self.config, rules=self.config.active(kind), on=on))

    def resources(self) -> dict[str, Any]:
        """The versions behind the character classes and the stop words, and what the active rule sets name."""
        named = [part(n, "resources")(getattr(self.config, n)) for n in self.config.rules if has(n, "resources")]
        return functools.reduce(operator.or_, named, {"unicode": UNICODE_VERSION, "stop_words": stop_words.version()})

    def open(self) -> None:
        """Load what the active rule sets need; the character table is built with the first batch."""
        for name in self.config.rules:
            if has(name, "prepare"):
                part(name, "prepare")(getattr(self.config, name))

    def saves(self) -> dict[str, Any] | None:
        """What the saved signals depend on: the view, and the configs of rule sets that count by themselves."""
        if not self.config.signals:
            return None
        counted = {n: counting(n, getattr(self.config, n)) for n in self.config.rules if has(n, "count")}
        seen = {"on": self.config.on, "include_system": self.config.include_system}
        return {"role": "signals", "view": seen, "counted": counted} | self.resources()

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Hold every row against the active rule sets.

        Raises:
            InputError: the rows are tokens, which have no text.
        """
        return self._decide(Measured(batch, self.for_kind(kind_of(batch)).config))

    def decide_again(self, batch: pa.RecordBatch, saved: pa.RecordBatch) -> Decision:
        """The same decision from the signals that an earlier run saved of these rows."""
        return self._decide(Measured(batch, self.for_kind(kind_of(batch)).config, saved))

    def _decide(self, rows: Measured) -> Decision:
        kind, config, batch = kind_of(rows.batch), rows.config, rows.batch
        active = [(name, getattr(config, name)) for name in config.rules]
        verdicts = judge(active, rows, batch.num_rows)
        reasons = pa.array(verdicts.reasons, pa.string())
        edits = [partial(part(n, "edit"), config=rules, kind=kind) for n, rules in active if has(n, "edit")]
        columns, edited = apply(batch, pc.is_null(reasons), edits)
        aside = {"signals": rows.table()} if config.signals else {}
        for name, rules in active:
            if has(name, "report"):
                aside |= part(name, "report")(rows, rows.texts_for(name), rules)
        stays = pc.is_null(reasons).to_numpy(zero_copy_only=False)
        notes = [part(n, "notes")(rows, stays, rules) for n, rules in active if has(n, "notes")]
        return Decision(
            reasons=reasons,
            detail=pa.array(verdicts.details, pa.string()),
            columns=columns,
            side_tables=aside,
            notes=functools.reduce(operator.or_, notes, {}),
            edited=edited if edits else None,
        )
