"""Answers of a model that got stuck: a large share of the text has been said before, ten words in a row.

Gopher's repetition rules were made for web pages. Short and technical answers repeat a little of themselves by nature
(a worked sum, a tool call in the question's words, the chorus of a song), and the rules drop one in eight of GSM8K's.
This rule looks only for repetition that no good answer has: long n-grams, a large share. It measures the same as
`gopher_repetition.max_dup_10gram_char_ratio` with extra copies, against a threshold for answers instead of pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from datakit.config import option
from datakit.filter.rule_set import Measure, Rows, check_ratios


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The one threshold."""

    max_dup_10gram_char_ratio: float = option(
        0.3, "drop rows with a larger share of characters in 10-grams that came before"
    )

    def __post_init__(self) -> None:
        check_ratios(self)


def measure(rows: Rows, config: Config) -> Iterator[Measure]:
    """The share of characters in duplicate 10-grams."""
    yield Measure("max_dup_10gram_char_ratio", rows.signals.ratio("dup_10gram_chars", "chars"))
