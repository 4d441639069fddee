"""Answers of a model that repeats itself without end: a large share of the text is in repeated runs of ten words.

Gopher's repetition rules are for web pages. Short and technical answers naturally repeat a little of themselves (a
worked sum, a tool call in the question's words, the chorus of a song), and those rules drop one in eight answers of
GSM8K. This rule looks only for repetition that no good answer has: long n-grams, a large share. It measures the same as
`gopher_repetition.max_dup_10gram_char_ratio` with extra copies, with a threshold for answers instead of pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from datakit.config import option
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet


@dataclass(frozen=True, kw_only=True, slots=True)
class Loops(RuleSet):
    """The one threshold."""

    name: ClassVar[str] = "loops"

    max_dup_10gram_char_ratio: float = option(
        0.3, "drop rows with a larger share of characters in 10-grams that came before"
    )

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The share of characters in duplicate 10-grams."""
        yield Measure("max_dup_10gram_char_ratio", rows.signals.ratio("dup_10gram_chars", "chars"))
