"""The filter stage: each row is compared with the thresholds of rule sets; the first one that fails is the reason.

What was measured is saved beside the rows, for `tune`. Rule sets look at the rows as they came in; their edits are
applied, in their order, to the rows that stay.
"""

import dataclasses
import functools
import importlib
import importlib.metadata
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, cast

import numpy as np
import pyarrow as pa

import datakit.own_code as own_code
from datakit.config import OF_TURNS, instead_of, meant, option, section
from datakit.data import Bools, On
from datakit.errors import ConfigError, InputError
from datakit.filter.own_rules import GROUP, own_rule
from datakit.filter.rule_set import Edits, MeasuredRows, RuleSet
from datakit.manifest import Ledger
from datakit.stage import Decision, Extras, LossOptions, Stage, with_columns
from datakit.text.words import UNICODE_VERSION, with_hashes

RULE_SETS: Final = {
    "c4": "datakit.filter.web_rules:C4",
    "contamination": "datakit.filter.contamination:Contamination",
    "empty_answer": "datakit.filter.answers:EmptyAnswer",
    "fineweb": "datakit.filter.web_rules:FineWeb",
    "gopher_quality": "datakit.filter.web_rules:GopherQuality",
    "gopher_repetition": "datakit.filter.web_rules:GopherRepetition",
    "lengths": "datakit.filter.user_rules:Lengths",
    "loops": "datakit.filter.answers:Loops",
    "private": "datakit.filter.private:Private",
    "urls": "datakit.filter.user_rules:Urls",
    "words": "datakit.filter.user_rules:Words",
}
"""Every rule set: its name in recipes and reasons, and where its class is."""

DEFAULT_RULES: Final = {
    "document": ("gopher_quality", "gopher_repetition"),
    "conversation": ("empty_answer", "loops"),
    "preference": ("empty_answer",),
}
"""The rule sets that decide where the recipe names none. Gopher's rules are for web pages: on answers, its 50 words and
its repetition ratios would drop thousands of good ones. The two answers of a preference pair are naturally alike, and
a rejected answer may repeat itself: that is what it teaches."""

DEFAULT_VIEW: Final[dict[str, On]] = {"document": "all", "conversation": "answer", "preference": "all"}
"""The part of a row that `on = "auto"` looks at. Answers often repeat parts of their question, for good reason."""

_KIND_OF: Final = {"text": "document", "messages": "conversation", "chosen": "preference"}
"""A column of rows, and their kind."""

KEYS: Final = ("row_key", "id", "source", "lang")
"""Columns that saved signals share with their rows."""


def rule_set_class(name: str) -> type[RuleSet]:
    """The class of a rule set.

    Raises:
        ConfigError: there is no rule set of that name.
    """
    if name not in RULE_SETS:
        if instead := instead_of("filter", name):
            raise ConfigError(f"the rule set {name!r} was removed. {instead}")
        raise ConfigError(f"unknown rule set {name!r}; {meant(name, RULE_SETS)}there are {', '.join(RULE_SETS)}")
    module, _, found = RULE_SETS[name].partition(":")
    return cast(type[RuleSet], vars(importlib.import_module(module))[found])


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterOptions(LossOptions):
    """What the filter stage can be told. The thresholds have one section for each rule set: see `FilterConfig`."""

    rules: tuple[str, ...] = option(
        (), "rule sets in the order they decide, yours as file.py:name or module:name; empty: those of the row kind"
    )
    on: Literal["auto", "all", "prompt", "answer"] = option(
        "auto", "the part of a row to look at; auto: by row kind", acts_with=OF_TURNS
    )
    include_system: bool = option(
        False, "look at system prompts, tool schemas and tool results too", acts_with=OF_TURNS
    )
    signals: bool = option(True, "save what the rules measured, for other thresholds and `datakit tune`", advanced=True)
    own: dict[str, dict[str, Any]] = option(
        {}, "thresholds of your own rule sets, by their names in rules", advanced=True
    )

    def __post_init__(self) -> None:
        LossOptions.__post_init__(self)
        for name in self.rules:
            self.rule_set(name)
        if self.rules and (unknown := [name for name in self.own if name not in self.rules]):
            raise ConfigError(f"own.{unknown[0]}: thresholds of a rule that rules = {list(self.rules)} does not have")
        unused = [n for n in self.changed() if self.rules and n not in self.rules]
        if unused:
            raise ConfigError(f"thresholds of {unused[0]!r} are set, but rules = {list(self.rules)} leaves it out")

    def rule_set(self, name: str) -> RuleSet:
        """A rule set with the thresholds of its section, or with the defaults where there is none."""
        if name not in RULE_SETS and own_code.is_own(name, GROUP):
            return own_rule(name, self.own.get(name, {}))
        rule_set = rule_set_class(name)
        return cast(RuleSet, getattr(self, name) or rule_set())

    def changed(self) -> list[str]:
        """The rule sets with a threshold that is not the default."""
        return [n for n in RULE_SETS if (given := getattr(self, n)) is not None and given != type(given)()]


FilterConfig: Final[type[FilterOptions]] = dataclasses.make_dataclass(
    "FilterConfig",
    [(n, c | None, section(c, (c.__doc__ or "").strip(), optional=True))
     for n in RULE_SETS if (c := rule_set_class(n))],
    bases=(FilterOptions,),
    namespace={"__module__": __name__, "__doc__": FilterOptions.__doc__},
    frozen=True,
    kw_only=True,
    slots=True,
)  # fmt: skip
"""`FilterOptions` and a section of thresholds for every rule set, None for one that is not in use."""


@dataclass(frozen=True, slots=True)
class Filter(Stage):
    """Drops rows that fail a threshold. The reason is `<rule set>.<threshold>`, the first in the order of the rules."""

    name: ClassVar[str] = "filter"
    help: ClassVar[str] = "Thresholds are set like --set gopher_quality.min_words=30."
    Config: ClassVar[type] = FilterConfig

    config: FilterOptions = dataclasses.field(default_factory=FilterConfig)
    holds_gil: bool = False
    """Functions of the user hold the interpreter lock; those that only this process has must stay in it."""

    @property
    def rule_sets(self) -> list[RuleSet]:
        """The rule sets in use, in the order in which they decide."""
        return [self.config.rule_set(name) for name in self.config.rules]

    def for_kind(self, kind: str) -> "Filter":
        """The stage for rows of a kind: its config has the view and the rule sets that decide, each with its section.

        They are those asked for, or the kind's and those with a threshold set; no other section is there.
        """
        if kind not in DEFAULT_RULES:  # tokens: `decide` says what is wrong
            return self
        config, default = self.config, DEFAULT_RULES[kind]
        rules = config.rules or default + tuple(n for n in config.changed() if n not in default)
        on = DEFAULT_VIEW[kind] if config.on == "auto" else config.on
        sections = {name: config.rule_set(name) if name in rules else None for name in RULE_SETS}
        own = [name for name in rules if name not in RULE_SETS]
        holds_gil = bool(own) and not any(own_code.is_here_only(name) for name in own)
        return Filter(dataclasses.replace(config, rules=rules, on=on, **cast(Any, sections)), holds_gil)

    def resources(self) -> dict[str, Any]:
        """The versions of Unicode and of the stop words, the files that the rule sets in use name, the user's code."""
        shared = {"unicode": UNICODE_VERSION, "stop_words": importlib.metadata.version("stopwordsiso")}
        own = (name for name in self.config.rules if name not in RULE_SETS)
        shared |= {f"code of {name}": own_code.code_digest(own_code.find(name, GROUP)) for name in own}
        return functools.reduce(operator.or_, (r.resources().digests for r in self.rule_sets), shared)

    def open(self) -> None:
        """Load what the rule sets in use need; the character table is built with the first batch."""
        for rule_set in self.rule_sets:
            rule_set.resources()

    def describe(self) -> tuple[str, ...]:
        """What the rule sets in use say."""
        return tuple(line for r in self.rule_sets for line in r.resources().lines)

    def extras(self, ledger: Ledger) -> Extras:
        """The alarms and counts of the rule sets in use, and which signals are saved: `tune` reads them again."""
        rule_sets, facts = self.rule_sets, dict[str, Any]()
        if alarms := [alarm for r in rule_sets for alarm in r.resources().alarms]:
            facts["alarms"] = alarms
        if self.config.signals:
            counted = {r.name: r.settings() for r in rule_sets if r.counts}
            facts["saved"] = {"counted": counted, "shared": any(r.shared for r in rule_sets)}
        return Extras(facts, functools.reduce(operator.or_, (r.resources().counters for r in rule_sets), {}))

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Compare every row with the rule sets in use.

        Raises:
            InputError: the rows are tokens, which have no text.
        """
        names = batch.schema.names
        kind = next((kind for column, kind in _KIND_OF.items() if column in names), None)
        if kind is None:
            raise InputError(
                f"the filter stage reads text, but these rows have only {', '.join(names)}: filter before the tokenize "
                "stage"
            )
        stage = self.for_kind(kind)
        config, rule_sets = stage.config, stage.rule_sets
        rows = MeasuredRows(batch, cast(On, config.on), config.include_system)
        reasons, details = np.full(batch.num_rows, None, object), np.full(batch.num_rows, None, object)
        for reason, limit, measure in (found for rule_set in rule_sets for found in rule_set.judged(rows)):
            failed = np.flatnonzero(measure.fails(limit) & (reasons == None))  # noqa: E711
            if len(failed):
                reasons[failed], details[failed] = reason, measure.details(limit, failed)
        stays, tables = np.asarray(reasons == None), dict[str, pa.RecordBatch]()  # noqa: E711
        if config.signals:
            shared = [rows.signals] if any(r.shared for r in rule_sets) else []
            counted = (*shared, *(rows.counted(r) for r in rule_sets if r.counts))
            columns = {n: batch.column(n) for n in KEYS if n in names}
            columns |= {n: pa.array(values) for signals in counted for n, values in signals.items()}
            tables["signals"] = pa.record_batch(columns)
        counters = dict[str, int]()
        for report in (rule_set.report(rows, stays) for rule_set in rule_sets):
            tables, counters = tables | report.tables, counters | report.counters
        edits = _edited(rule_sets, batch, stays)
        # A passage of an evaluation item, a detail, or the reason of a user's function may hold a private value too.
        why = {"why": pa.array(reasons, pa.string()), "detail": pa.array(details, pa.string())}
        beside = {"why": pa.record_batch(why)} | tables
        for role, table in beside.items():
            made = _edited(rule_sets, table, np.ones(table.num_rows, np.bool_)).columns
            beside[role] = with_columns(table, made)
        told = beside.pop("why")
        return Decision(
            reasons=told.column("why"),
            detail=told.column("detail"),
            columns=with_hashes(batch, edits.columns, pa.array(edits.changed)),
            side_tables=beside,
            notes=counters | edits.counters,
            edited=pa.array(edits.changed),
        )


def _edited(rule_sets: Sequence[RuleSet], table: pa.RecordBatch, stays: Bools) -> Edits:
    """What the rule sets change in a table, one after another: each sees the edits of those before it."""
    columns, counters = dict[str, pa.Array](), dict[str, int]()
    changed = np.zeros(table.num_rows, np.bool_)
    for rule_set in rule_sets:
        if edits := rule_set.edit(with_columns(table, columns), stays):
            columns, counters, changed = columns | edits.columns, counters | edits.counters, changed | edits.changed
    return Edits(columns, changed, counters)
