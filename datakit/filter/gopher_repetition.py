"""Gopher's repetition rules: does this text say the same thing over and over? (Rae et al. 2021, appendix A.1.1)

Where implementations read the paper differently, this one reads it so:
- what is a duplicate: `duplicates = "extra_copies"` counts each copy after the first, as datatrove does (n-grams from
  left to right, continuing after each hit); "all_copies" counts the first one too, as Dolma does (every word inside a
  repeated n-gram, once).
- shares of characters are of all characters of the text, white space included; the top n-gram's characters include the
  spaces between its words, those of duplicate n-grams do not. Both as in datatrove.
- an n-gram that occurs once is no repetition. In datatrove it is one, and every text of a few words is dropped.
- in rows mostly of scripts without spaces, where a word is one character, an n-gram is 2n characters of Han and kana
  and 4n of Thai, Lao, Khmer and Myanmar: about n words. Ordinary Japanese often repeats five characters.
- a line's indentation is part of it, white space at its end is not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from datakit.config import option
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherRepetition(RuleSet):
    """Thresholds of the paper."""

    name: ClassVar[str] = "gopher_repetition"

    max_dup_paragraph_ratio: float = option(0.3, "drop rows with a larger share of duplicate paragraphs")
    max_dup_paragraph_char_ratio: float = option(0.2, "drop rows with a larger share of characters in them")
    max_dup_line_ratio: float = option(0.3, "drop rows with a larger share of duplicate lines")
    max_dup_line_char_ratio: float = option(0.2, "drop rows with a larger share of characters in them")
    max_top_2gram_char_ratio: float = option(
        0.2, "drop rows whose most frequent 2-gram takes a larger share of characters"
    )
    max_top_3gram_char_ratio: float = option(0.18, "the same for 3-grams")
    max_top_4gram_char_ratio: float = option(0.16, "the same for 4-grams")
    max_dup_5gram_char_ratio: float = option(0.15, "drop rows with a larger share of characters in duplicate 5-grams")
    max_dup_6gram_char_ratio: float = option(0.14, "the same for 6-grams")
    max_dup_7gram_char_ratio: float = option(0.13, "the same for 7-grams")
    max_dup_8gram_char_ratio: float = option(0.12, "the same for 8-grams")
    max_dup_9gram_char_ratio: float = option(0.11, "the same for 9-grams")
    max_dup_10gram_char_ratio: float = option(0.1, "the same for 10-grams")
    duplicates: Literal["extra_copies", "all_copies"] = option("extra_copies", "whether the first copy counts too")

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The measures in the order of the fields."""
        s, dup = rows.signals, "all_dup" if self.duplicates == "all_copies" else "dup"
        yield Measure("max_dup_paragraph_ratio", s.ratio(f"{dup}_paragraphs", "paragraphs"))
        yield Measure("max_dup_paragraph_char_ratio", s.ratio(f"{dup}_paragraph_chars", "chars"))
        yield Measure("max_dup_line_ratio", s.ratio(f"{dup}_lines", "lines"))
        yield Measure("max_dup_line_char_ratio", s.ratio(f"{dup}_line_chars", "chars"))
        for n in range(2, 5):
            yield Measure(f"max_top_{n}gram_char_ratio", s.ratio(f"top_{n}gram_chars", "chars"))
        for n in range(5, 11):
            yield Measure(f"max_dup_{n}gram_char_ratio", s.ratio(f"{dup}_{n}gram_chars", "chars"))
