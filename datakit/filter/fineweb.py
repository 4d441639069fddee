"""FineWeb's own rules: is this prose, and not a list, a menu or a page that says its lines twice?

Penedo et al. 2024, The FineWeb Datasets, section 3.5; its language score is the language stage's `min_score`.

Where implementations read the paper differently, this one reads it so:
- the paper drops rows with 0.1 or more of their characters in duplicate lines; the code that made the dataset has 0.01,
  and so has this rule set.
- a line ends in punctuation if that is a sentence's mark of any script (Unicode's Sentence_Terminal), as in datatrove;
  white space at its end is ignored; in datatrove a line that ends in a space ends in no mark.
- blank lines do not count. A row without other lines fails `min_lines`; datatrove calls it empty.
- words are white-space tokens, datatrove's are those of its splitter, with punctuation among them.
- a character of Han or kana counts as three of a line's 30: a word takes two of them, where an English one takes six
  with its space. Thai, Lao, Khmer and Burmese put spaces where others put full stops: the rule on line ends does
  not judge rows mostly in them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from datakit.config import option
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, ratio


@dataclass(frozen=True, kw_only=True, slots=True)
class FineWeb(RuleSet):
    """Thresholds of the code that made the dataset."""

    name: ClassVar[str] = "fineweb"
    shared: ClassVar[bool] = True

    min_lines: int = option(1, "drop rows with fewer lines that are not blank")
    min_terminal_line_ratio: float = option(0.12, "drop rows with a smaller share of lines that end in punctuation")
    max_short_line_ratio: float = option(0.67, "drop rows with a larger share of lines of at most 30 characters")
    max_dup_line_char_ratio: float = option(0.01, "drop rows with a larger share of characters in duplicate lines")
    max_line_breaks_per_word: float = option(0.3, "drop rows with more line breaks per word")

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The measures in the order of the fields, which is datatrove's."""
        s = rows.signals
        marked = 2 * (s["unsegmented_words"] - s["kana_han_words"]) <= s["words"]
        yield Measure("min_lines", s["lines"])
        yield Measure("min_terminal_line_ratio", s.ratio("terminal_lines", "lines"), marked)
        yield Measure("max_short_line_ratio", s.ratio("short_lines", "lines"))
        yield Measure("max_dup_line_char_ratio", ratio(s["dup_line_chars"], s["chars"] - s["line_breaks"]))
        yield Measure("max_line_breaks_per_word", s.ratio("line_breaks", "words"))
