"""A batch as rule sets see it: its rows, and its signals, measured when first asked for or saved by an earlier run."""

import functools
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from datakit.errors import InputError
from datakit.filter import stop_words
from datakit.filter.rules import has, labels, part
from datakit.filter.signals import Signals, measure
from datakit.text.view import On, view

KEYS = ("row_key", "id", "source", "lang")
"""Columns that saved signals share with their rows."""


@dataclass(frozen=True)
class Measured:
    """The rows of a batch under the config of a filter stage (`rules.Rows`)."""

    batch: pa.RecordBatch
    config: Any
    """`FilterOptions` with the rules and the view of the rows' kind."""
    saved: pa.RecordBatch | None = None
    """What `table` made of these rows."""

    @functools.cached_property
    def texts(self) -> pa.Array:
        """string[N]: the part of each row that is looked at."""
        return view(self.batch, cast(On, self.config.on), self.config.include_system)

    def texts_for(self, rule_set: str) -> pa.Array:
        """The same for a rule set that may look at another part than the stage."""
        return view(self.batch, part(rule_set, "SEES")) if has(rule_set, "SEES") else self.texts

    @functools.cached_property
    def signals(self) -> Signals:
        """The signals that all rule sets share."""
        if self.saved is not None:
            return Signals.from_batch(self.saved)
        own = {"own_stop_words": stop_words.count(self.texts, labels(self.batch))}
        return Signals(dict(measure(self.texts).counts) | own)

    @functools.cached_property
    def _counted(self) -> dict[str, Signals]:
        return {}

    def counted(self, rule_set: str) -> Signals:
        """The signals that a rule set counts by itself."""
        if self.saved is not None:
            return self.signals
        if rule_set not in self._counted:
            count = part(rule_set, "count")
            self._counted[rule_set] = count(self.texts_for(rule_set), getattr(self.config, rule_set))
        return self._counted[rule_set]

    def table(self) -> pa.RecordBatch:
        """The signals as columns, those of the active rule sets that count by themselves too, beside the rows' keys."""
        columns = {n: self.batch.column(n) for n in KEYS if n in self.batch.schema.names}
        own = [self.counted(n) for n in self.config.rules if has(n, "count")]
        for signals in (self.signals, *own):
            columns |= {n: pa.array(values) for n, values in signals.counts.items()}
        return pa.record_batch(columns)


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
