"""Gopher's quality rules: is this running text? (Rae et al. 2021, Scaling Language Models, appendix A.1.1)

Readings of the paper that implementations differ in, and ours:
- words are white-space tokens, symbols among them; datatrove counts tokens of its splitter and leaves out pure
  punctuation for the count and the mean length: `symbol_words = "ignore"` does that.
- blank lines are lines too, as in datatrove and Dolma; a bullet is one of "• ‣ ◦ ● ▪", or "-" or "*" with a space
  behind it (datatrove: "•" or "-", Dolma: "*" or "-").
- stop words are found whatever their case and the punctuation around them; datatrove knows lower case only.
- word length counts combining marks with their letter, so that normalisation forms do not differ; it is not judged
  where over a fifth of the words are characters of scripts written without spaces (what is left there is names and
  links), and otherwise such characters are left out.
- the paper's stop words are English. Rows in other languages must have as many different ones of their own language's
  list (`stop_words`, the module), or of the English ones: a page that was never translated is no worse for its label.
  The lists are longer than the paper's eight, so that the rule is milder there. It says nothing about languages without
  a list, and about those written without spaces; the ledger notes how many rows those are. Where the language stage has
  not run, it speaks of rows that could be English, with at most 2% of words that have a letter beyond ASCII, and is
  content with stop words of any one language.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.errors import ConfigError
from datakit.filter import stop_words
from datakit.filter.rule_set import Measure, Rows, check_ratios, labels, ratio

_MAX_FOREIGN_WORD_RATIO = 0.02
_MAX_SPACELESS_WORD_RATIO = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Thresholds of the paper."""

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

    def __post_init__(self) -> None:
        check_ratios(self)
        if wrong := stop_words.refused(self.stop_words):
            raise ConfigError(wrong)


def measure(rows: Rows, config: Config) -> Iterator[Measure]:
    """The measures in the order of the config's fields, which is the paper's."""
    s = rows.signals
    spaced = s["words"] - s["spaceless_words"]
    words, chars = s["words"], s["spaced_chars"]
    if config.symbol_words == "ignore":
        words, chars, spaced = words - s["symbol_words"], chars - s["symbol_chars"], spaced - s["symbol_words"]
    yield Measure("min_words", words)
    yield Measure("max_words", words)
    mean, by_spaces = ratio(chars, spaced), s.ratio("spaceless_words", "words") <= _MAX_SPACELESS_WORD_RATIO
    yield Measure("min_mean_word_chars", mean, by_spaces)
    yield Measure("max_mean_word_chars", mean, by_spaces)
    yield Measure("max_hash_word_ratio", s.ratio("hashes", "words"))
    yield Measure("max_ellipsis_word_ratio", s.ratio("ellipses", "words"))
    yield Measure("max_bullet_line_ratio", s.ratio("bullet_lines", "all_lines"))
    yield Measure("max_ellipsis_line_ratio", s.ratio("ellipsis_lines", "all_lines"))
    yield Measure("min_alpha_word_ratio", s.ratio("alpha_words", "words"))
    yield _stop_words(rows, config)


def notes(rows: Rows, stays: NDArray[np.bool_], config: Config) -> dict[str, int]:
    """By language, the rows that have no list of stop words, or none that is asked for."""
    if not config.min_stop_words:
        return {}
    silent = labels(rows.batch).filter(pa.array(~_applying(rows, config)))
    found = pc.value_counts(silent.drop_null()).to_pylist()
    return {f"min_stop_words_is_off_for_{r['values']}": r["counts"] for r in found}


def _stop_words(rows: Rows, config: Config) -> Measure:
    counts = np.maximum(rows.signals["stop_words"], rows.signals["own_stop_words"])
    return Measure("min_stop_words", counts, _applying(rows, config))


def _applying(rows: Rows, config: Config) -> NDArray[np.bool_]:
    """bool[N]: rows of a language whose list is asked for, and rows of unknown language that may be English."""
    lang = labels(rows.batch)
    asked = "all" in config.stop_words
    wanted = np.array([asked or name in config.stop_words for name in stop_words.languages()] + [False, False])
    listed = wanted[stop_words.numbered(lang)]  # UNKNOWN and NONE are the last two
    english = pc.fill_null(pc.match_substring_regex(lang, r"^eng?($|[_-])"), False).to_numpy(zero_copy_only=False)
    ascii_words = rows.signals.ratio("foreign_words", "words") <= _MAX_FOREIGN_WORD_RATIO
    unknown = pc.is_null(lang).to_numpy(zero_copy_only=False) & ascii_words
    return np.asarray(listed | unknown | (english & (asked or "en" in config.stop_words)))
