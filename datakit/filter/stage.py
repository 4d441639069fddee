"""The filter stage: each row is compared with the thresholds of rule sets; the first one that fails is the reason.

What was measured is saved beside the rows, so that a later run with other thresholds decides without the text. Rule
sets look at the rows as they came in; their edits are applied, in their order, to the rows that stay.
"""

import dataclasses
import functools
import importlib
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option, section, shares
from datakit.data import On, conversation_view, preference_view
from datakit.errors import ConfigError, InputError
from datakit.filter.rule_set import MeasuredRows, RuleSet, stop_words_version
from datakit.stage import Decision, Stage, with_column
from datakit.text.words import UNICODE_VERSION, digest, normalize

RULE_SETS: Final = {
    "c4": "datakit.filter.c4:C4",
    "contamination": "datakit.filter.contamination:Contamination",
    "empty_answer": "datakit.filter.answers:EmptyAnswer",
    "fineweb": "datakit.filter.fineweb:FineWeb",
    "gopher_quality": "datakit.filter.gopher:GopherQuality",
    "gopher_repetition": "datakit.filter.gopher:GopherRepetition",
    "lengths": "datakit.filter.lengths:Lengths",
    "loops": "datakit.filter.answers:Loops",
    "private": "datakit.filter.private:Private",
    "regex": "datakit.filter.patterns:Regex",
    "sample": "datakit.filter.sample:RowSample",
    "urls": "datakit.filter.blocklists:Urls",
    "words": "datakit.filter.word_lists:Words",
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

KEYS: Final = ("row_key", "id", "source", "lang")
"""Columns that saved signals share with their rows."""

SPOKEN: Final = ("content", "reasoning_content")
"""The fields of a message that are prose."""

Edit = Callable[[pa.Array], pa.Array]
"""Texts to texts, string[N] without nulls each."""


def rule_set_class(name: str) -> type[RuleSet]:
    """The class of a rule set.

    Raises:
        ConfigError: there is no rule set of that name.
    """
    if name not in RULE_SETS:
        raise ConfigError(f"unknown rule set {name!r}; there are {', '.join(RULE_SETS)}")
    module, _, found = RULE_SETS[name].partition(":")
    return cast(type[RuleSet], vars(importlib.import_module(module))[found])


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterOptions:
    """What the filter stage can be told. The thresholds have one section for each rule set: see `FilterConfig`."""

    rules: tuple[str, ...] = option((), "rule sets in the order they decide; empty: those of the row kind")
    on: Literal["auto", "all", "prompt", "answer"] = option("auto", "the part of a row to look at; auto: by row kind")
    include_system: bool = option(False, "look at system prompts, tool schemas and tool results too")
    signals: bool = option(
        True, "save what the rules measured beside the rows, for other thresholds and `datakit tune`"
    )
    max_loss: float = option(0.5, "raise an alarm where all rows, or those of a source, lose more than this share")

    def __post_init__(self) -> None:
        shares(self, "max_loss")
        for name in self.rules:
            rule_set_class(name)
        unused = [n for n in self.changed() if self.rules and n not in self.rules]
        if unused:
            raise ConfigError(f"thresholds of {unused[0]!r} are set, but rules = {list(self.rules)} leaves it out")

    def rule_set(self, name: str) -> RuleSet:
        """A rule set with the thresholds of its section."""
        return cast(RuleSet, getattr(self, name))

    def changed(self) -> list[str]:
        """The rule sets with a threshold that is not the default."""
        default = {f.name: f.default for f in dataclasses.fields(self)}
        return [n for n in RULE_SETS if self.rule_set(n) != default[n]]

    def rules_for(self, kind: str) -> tuple[str, ...]:
        """The rule sets that decide about a kind: those asked for, or the kind's and those with a threshold set."""
        default = DEFAULT_RULES[kind]
        return self.rules or default + tuple(n for n in self.changed() if n not in default)


FilterConfig: Final[type[FilterOptions]] = dataclasses.make_dataclass(
    "FilterConfig",
    [(n, c, section(c, (c.__doc__ or "").strip())) for n in RULE_SETS if (c := rule_set_class(n))],
    bases=(FilterOptions,),
    namespace={"__module__": __name__, "__doc__": FilterOptions.__doc__},
    frozen=True,
    kw_only=True,
    slots=True,
)
"""`FilterOptions` and a section of thresholds for every rule set."""


@dataclass(frozen=True, slots=True)
class Filter(Stage):
    """Drops rows that fail a threshold. The reason is `<rule set>.<threshold>`, the first in the order of the rules."""

    name: ClassVar[str] = "filter"
    help: ClassVar[str] = "Thresholds are set like --set gopher_quality.min_words=30."
    Config: ClassVar[type] = FilterConfig

    config: FilterOptions = dataclasses.field(default_factory=FilterConfig)

    @property
    def max_loss(self) -> float:
        """As configured."""
        return self.config.max_loss

    def for_kind(self, kind: str) -> "Filter":
        """The stage for rows of a kind: its config names the rule sets and the view that decide."""
        if kind not in DEFAULT_RULES:  # tokens: `decide` says what is wrong
            return self
        on = DEFAULT_VIEW[kind] if self.config.on == "auto" else self.config.on
        return Filter(config=dataclasses.replace(self.config, rules=self.config.rules_for(kind), on=on))

    def modules(self) -> tuple[str, ...]:
        """The modules of the active rule sets."""
        return tuple(RULE_SETS[name].partition(":")[0] for name in self.config.rules)

    def resources(self) -> dict[str, Any]:
        """The versions of Unicode and of the stop words, and the files that the active rule sets name."""
        shared = {"unicode": UNICODE_VERSION, "stop_words": stop_words_version()}
        return functools.reduce(operator.or_, (r.resources() for r in self._active()), shared)

    def open(self) -> None:
        """Load what the active rule sets need; the character table is built with the first batch."""
        for rule_set in self._active():
            rule_set.open()

    def describe(self) -> tuple[str, ...]:
        """What the active rule sets say."""
        return tuple(line for r in self._active() for line in r.describe())

    def ledger(self) -> dict[str, int]:
        """The counts of the active rule sets."""
        return functools.reduce(operator.or_, (r.ledger() for r in self._active()), {})

    def facts(self) -> dict[str, Any]:
        """The alarms of the active rule sets."""
        alarms = [alarm for r in self._active() for alarm in r.alarms()]
        return {"alarms": alarms} if alarms else {}

    def saves(self) -> dict[str, Any] | None:
        """What the saved signals depend on: the view, and the values that shape what rule sets count by themselves.

        A run that counted the shared signals serves one that does not need them, too.
        """
        if not self.config.signals:
            return None
        counted = {r.name: r.counted_with() for r in self._active() if r.counts}
        seen = {"on": self.config.on, "include_system": self.config.include_system}
        shared = {"shared": True} if any(r.shared for r in self._active()) else {}
        return {"role": "signals", "view": seen, "counted": counted} | shared | self.resources()

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Compare every row with the active rule sets.

        Raises:
            InputError: the rows are tokens, which have no text.
        """
        return self._decide(batch, None)

    def decide_again(self, batch: pa.RecordBatch, saved: pa.RecordBatch) -> Decision:
        """The same decision from the signals that an earlier run saved of these rows."""
        return self._decide(batch, saved)

    def _decide(self, batch: pa.RecordBatch, saved: pa.RecordBatch | None) -> Decision:
        kind = kind_of(batch)
        stage = self.for_kind(kind)
        config, rule_sets = stage.config, stage._active()
        rows = MeasuredRows(batch, cast(On, config.on), config.include_system, saved)
        reasons, details = judge(rule_sets, rows)
        stays = pc.is_null(reasons)
        new = set[str]()
        made, edited, notes = batch, pa.array(np.zeros(batch.num_rows, np.bool_)), dict[str, int]()
        for rule_set in (r for r in rule_sets if r.edits):
            own = rule_set.edit_rows(made, rows)
            if own is None:
                columns, which = edit_rows(made, stays, [partial(rule_set.edit, kind=kind)])
            else:
                which, notes = pa.array(own.changed), notes | own.counts
                columns = with_hashes(made, own.columns, which)
            for name, column in columns.items():
                made = with_column(made, name, column)
                new.add(name)
            edited = pc.or_(edited, which)
        columns = {n: made.column(n) for n in batch.schema.names if n in new}
        side_tables = {"signals": _signals_table(rows, rule_sets)} if config.signals else {}
        for rule_set in rule_sets:
            side_tables |= rule_set.side_tables(rows)
            notes |= rule_set.notes(rows, stays.to_numpy(zero_copy_only=False))
        for rule_set in rule_sets:  # a passage of an evaluation item may hold a private value, too
            for role, table in side_tables.items():
                if "passage" in table.schema.names:
                    side_tables[role] = with_column(table, "passage", rule_set.edit_text(table.column("passage")))
        return Decision(
            reasons=reasons, detail=details, columns=columns, side_tables=side_tables, notes=notes, edited=edited
        )

    def _active(self) -> list[RuleSet]:
        return [self.config.rule_set(name) for name in self.config.rules]


def kind_of(batch: pa.RecordBatch) -> str:
    """The kind of a batch's rows.

    Raises:
        InputError: the rows are tokens, which have no text.
    """
    for column, kind in (("text", "document"), ("messages", "conversation"), ("chosen", "preference")):
        if column in batch.schema.names:
            return kind
    raise InputError(
        f"the filter stage reads text, but these rows have only {', '.join(batch.schema.names)}: filter before the "
        "tokenize stage"
    )


def judge(rule_sets: Sequence[RuleSet], rows: MeasuredRows) -> tuple[pa.Array, pa.Array]:
    """(reason, detail) of the first threshold that each row fails, string[N] each; null for a row that passes."""
    reasons, details = np.full(rows.batch.num_rows, None, object), np.full(rows.batch.num_rows, None, object)
    for rule_set in rule_sets:
        limits = dataclasses.asdict(rule_set)
        for measure in rule_set.measure(rows):
            limit = limits[measure.threshold]
            failed = np.flatnonzero(measure.fails(limit) & (reasons == None))  # noqa: E711
            reasons[failed] = f"{rule_set.name}.{measure.label or measure.threshold}"
            details[failed] = measure.details(limit, failed)
    return pa.array(reasons, pa.string()), pa.array(details, pa.string())


def _signals_table(rows: MeasuredRows, rule_sets: Sequence[RuleSet]) -> pa.RecordBatch:
    """What the rule sets measure by, as columns: shared signals and those of their own; and the keys of the rows."""
    columns = {n: rows.batch.column(n) for n in KEYS if n in rows.batch.schema.names}
    shared = [rows.signals] if any(r.shared for r in rule_sets) else []
    for signals in (*shared, *(rows.counted(r) for r in rule_sets if r.counts)):
        columns |= {n: pa.array(values) for n, values in signals.counts.items()}
    return pa.record_batch(columns)


def edit_rows(batch: pa.RecordBatch, stays: pa.Array, edits: Sequence[Edit]) -> tuple[dict[str, pa.Array], pa.Array]:
    """Edit the text of documents, and what is said in conversations and pairs, by each edit in turn.

    Only rows that stay (`stays`, bool[N]) are edited. Returns the columns that changed, `content_hash` among them, and
    bool[N]: the rows that changed.
    """
    changed = pa.array(np.zeros(batch.num_rows, np.bool_))
    columns: dict[str, pa.Array] = {}
    for name in ("text", "messages", "prompt", "chosen", "rejected"):
        if name in batch.schema.names and edits:
            column = batch.column(name)
            made, which = _edit_texts(column, stays, edits) if name == "text" else _edit_turns(column, stays, edits)
            if pc.any(which).as_py():
                columns[name] = made
                changed = pc.or_(changed, which)
    return with_hashes(batch, columns, changed), changed


def with_hashes(batch: pa.RecordBatch, columns: dict[str, pa.Array], changed: pa.Array) -> dict[str, pa.Array]:
    """The columns that changed, with the `content_hash` of the rows that changed (bool[N])."""
    if not columns or "content_hash" not in batch.schema.names:
        return columns
    hashes = pc.replace_with_mask(batch.column("content_hash"), changed, _hashes(batch, columns, changed))
    return columns | {"content_hash": hashes}


def _hashes(batch: pa.RecordBatch, columns: dict[str, pa.Array], changed: pa.Array) -> pa.Array:
    """`content_hash` of the rows that changed, as ingest makes it."""
    if "text" in columns:
        return digest(normalize(columns["text"].filter(changed)))
    names = [n for n in ("messages", "prompt", "chosen", "rejected", "tools") if n in batch.schema.names]
    rows = pa.table({n: columns.get(n, batch.column(n)) for n in names}).filter(changed).to_pylist()
    views = []
    for row in rows:
        tools = row.pop("tools", None)
        fields = [[list(message.values()) for message in row[n] or ()] for n in row]
        views.append(conversation_view(fields[0], tools) if "messages" in row else preference_view(fields, tools))
    return digest(normalize(pa.array(views, pa.string())))


def _edit_texts(texts: pa.Array, stays: pa.Array, edits: Sequence[Edit]) -> tuple[pa.Array, pa.Array]:
    """(the texts, which of them changed); texts of rows that do not stay are as before."""
    mask = pc.and_(stays, pc.is_valid(texts))
    made = before = texts.filter(mask)
    for edit in edits:
        made = edit(made)
    which = pc.not_equal(made, before)
    changed = np.zeros(len(texts), np.bool_)
    changed[np.flatnonzero(mask.to_numpy(zero_copy_only=False))] = which.to_numpy(zero_copy_only=False)
    return pc.replace_with_mask(texts, pa.array(changed), made.filter(which)), pa.array(changed)


def _edit_turns(messages: pa.Array, stays: pa.Array, edits: Sequence[Edit]) -> tuple[pa.Array, pa.Array]:
    """The same for a list<struct> column: every message of a row that stays."""
    turns = messages.flatten()
    lengths = pc.fill_null(pc.list_value_length(messages), 0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(messages)), lengths)
    turn_stays = pc.take(stays, pa.array(row))
    fields, changed = [], np.zeros(len(messages), np.bool_)
    for f in turns.type:
        column = pc.struct_field(turns, f.name)
        if f.name in SPOKEN:
            column, which = _edit_texts(column, turn_stays, edits)
            changed[row[which.to_numpy(zero_copy_only=False)]] = True
        fields.append(column)
    made = pa.StructArray.from_arrays(fields, fields=list(turns.type))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    nulls = {"mask": pc.is_null(messages)} if messages.null_count else {}
    return pa.ListArray.from_arrays(offsets, made, type=messages.type, **nulls), pa.array(changed)
