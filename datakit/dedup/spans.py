"""Duplicate spans of sentences over the whole data set (C4: Raffel et al. 2020, section 2.2): all but one are cut.

The paper discards "all but one of any three-sentence span occurring more than once in the data set"; TFDS does so line
by line, datatrove for every three sentences in a row. Ours are every three sentences in a row of one text, compared by
their words (`units`). A span is cut only where it can still be read whole, in a row that stays or earlier in its own.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from datakit.dedup.levels import SpansConfig
from datakit.dedup.repeating import Repeating
from datakit.dedup.units import Unit


@dataclass(frozen=True)
class DedupSpans(Repeating):
    """Cuts duplicate spans of sentences; rows of which too little is left are dropped as `duplicate_spans`."""

    config: SpansConfig = field(default_factory=SpansConfig)
    name: ClassVar[str] = "dedup_spans"
    reason: ClassVar[str] = "duplicate_spans"

    @property
    def unit(self) -> Unit:
        """What spans are made of, and what is cut."""
        return "sentence"

    @property
    def span(self) -> int:
        """Sentences that are compared as one."""
        return self.config.span_sentences
