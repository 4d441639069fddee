"""Gopher's rules (Rae et al. 2021, Scaling Language Models, appendix A.1.1). `gopher_quality`: is this running text?
`gopher_repetition`: does this text say the same thing over and over?

Where implementations read the paper differently, `gopher_quality` reads it so:
- words are white-space tokens, and tokens without letters or digits are words too. datatrove counts the tokens of its
  splitter, and ignores pure punctuation for the count and the mean length, as `symbol_words = "ignore"` does here.
- blank lines are lines, as in datatrove and Dolma. A bullet is one of "• ‣ ◦ ● ▪", or "-" or "*" with a space
  after it (datatrove: "•" or "-", Dolma: "*" or "-").
- stop words are found in any case, and with punctuation around them; datatrove finds those in lower case only.
- word length does not count combining marks, so that it is the same in all normal forms. Characters of scripts written
  without spaces are left out; where they are over a fifth of the words, word length is not judged (the other words
  there are names and links).
- the paper's stop words are English. Rows in other languages need as many different stop words of their own language
  (`filter.stop_words`), or of English: an untranslated page may have the label of the site's language. These lists are
  longer than the paper's eight words, so that the rule is milder there. Rows in languages without a list, or written
  without spaces, are not judged; the ledger counts them. Where the language stage has not run, only rows that could be
  English are judged (at most 2% of their words have a letter beyond ASCII), and stop words of any one language count.

And `gopher_repetition` so:
- a duplicate is each copy after the first, as in datatrove (n-grams from left to right, continuing after each hit).
  Dolma counts the first copy too.
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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.filter.rule_set import Measure, MeasuredRows, Report, RuleSet, ratio
from datakit.filter.stop_words import check_stop_words, language_numbers, stop_word_languages

_MAX_FOREIGN_WORD_RATIO = 0.02
_MAX_UNSEGMENTED_WORD_RATIO = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherQuality(RuleSet):
    """Thresholds of the paper for running text."""

    name: ClassVar[str] = "gopher_quality"
    shared: ClassVar[bool] = True

    min_words: int = option(50, "drop rows with fewer words")
    max_words: int = option(100_000, "drop rows with more words")
    min_mean_word_chars: float = option(3.0, "drop rows whose words are shorter on average")
    max_mean_word_chars: float = option(10.0, "drop rows whose words are longer on average")
    max_hash_word_ratio: float = option(0.1, "drop rows with more # per word")
    max_ellipsis_word_ratio: float = option(0.1, "drop rows with more ellipses per word")
    max_bullet_line_ratio: float = option(0.9, "drop rows with a larger share of lines that begin with a bullet")
    max_ellipsis_line_ratio: float = option(0.3, "drop rows with a larger share of lines that end in an ellipsis")
    min_alpha_word_ratio: float = option(0.8, "drop rows with a smaller share of words that have a letter")
    min_stop_words: int = option(2, "drop rows with fewer stop words (the, be, to, of, and, that, have, with)")
    stop_words: tuple[str, ...] = option(("all",), "languages whose rows must have them; all: every one with a list")
    symbol_words: Literal["count", "ignore"] = option("count", "whether tokens without letters or digits are words")

    def check(self) -> None:
        """Refuse languages without a list of stop words."""
        check_stop_words(self.stop_words)

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The measures in the order of the fields, which is the paper's."""
        s = rows.signals
        spaced = s["words"] - s["unsegmented_words"]
        words, chars = s["words"], s["spaced_chars"]
        if self.symbol_words == "ignore":
            words, chars, spaced = words - s["symbol_words"], chars - s["symbol_chars"], spaced - s["symbol_words"]
        yield Measure("min_words", words)
        yield Measure("max_words", words)
        mean, by_spaces = ratio(chars, spaced), s.ratio("unsegmented_words", "words") <= _MAX_UNSEGMENTED_WORD_RATIO
        yield Measure("min_mean_word_chars", mean, by_spaces)
        yield Measure("max_mean_word_chars", mean, by_spaces)
        yield Measure("max_hash_word_ratio", s.ratio("hashes", "words"))
        yield Measure("max_ellipsis_word_ratio", s.ratio("ellipses", "words"))
        yield Measure("max_bullet_line_ratio", s.ratio("bullet_lines", "all_lines"))
        yield Measure("max_ellipsis_line_ratio", s.ratio("ellipsis_lines", "all_lines"))
        yield Measure("min_alpha_word_ratio", s.ratio("alpha_words", "words"))
        counts = np.maximum(s["stop_words"], s["own_stop_words"])
        yield Measure("min_stop_words", counts, self._judged_by_stop_words(rows))

    def report(self, rows: MeasuredRows, stays: NDArray[np.bool_]) -> Report:
        """By language, the number of rows without a list of stop words, or without one that is asked for."""
        if not self.min_stop_words:
            return Report()
        silent = rows.languages.filter(pa.array(~self._judged_by_stop_words(rows)))
        found = pc.value_counts(silent.drop_null()).to_pylist()
        return Report({f"min_stop_words_is_off_for_{r['values']}": r["counts"] for r in found})

    def _judged_by_stop_words(self, rows: MeasuredRows) -> NDArray[np.bool_]:
        """bool[N]: rows of a language whose list is asked for, and rows of unknown language that may be English."""
        asked = "all" in self.stop_words
        wanted = np.array([asked or n in self.stop_words for n in stop_word_languages()] + [False, False])
        listed = wanted[language_numbers(rows.languages)]  # UNKNOWN_LANGUAGE and NO_LIST are the last two
        english = pc.match_substring_regex(rows.languages, r"^eng?($|[_-])")
        english = pc.fill_null(english, False).to_numpy(zero_copy_only=False)
        ascii_words = rows.signals.ratio("foreign_words", "words") <= _MAX_FOREIGN_WORD_RATIO
        unknown = pc.is_null(rows.languages).to_numpy(zero_copy_only=False) & ascii_words
        return np.asarray(listed | unknown | (english & (asked or "en" in self.stop_words)))


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherRepetition(RuleSet):
    """Thresholds of the paper for repetition."""

    name: ClassVar[str] = "gopher_repetition"
    shared: ClassVar[bool] = True

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

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The measures in the order of the fields."""
        s = rows.signals
        yield Measure("max_dup_paragraph_ratio", s.ratio("dup_paragraphs", "paragraphs"))
        yield Measure("max_dup_paragraph_char_ratio", s.ratio("dup_paragraph_chars", "chars"))
        yield Measure("max_dup_line_ratio", s.ratio("dup_lines", "lines"))
        yield Measure("max_dup_line_char_ratio", s.ratio("dup_line_chars", "chars"))
        for n in range(2, 5):
            yield Measure(f"max_top_{n}gram_char_ratio", s.ratio(f"top_{n}gram_chars", "chars"))
        for n in range(5, 11):
            yield Measure(f"max_dup_{n}gram_char_ratio", s.ratio(f"dup_{n}gram_chars", "chars"))
