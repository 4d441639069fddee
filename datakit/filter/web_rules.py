"""Rules for web pages, as three papers have them: `gopher_quality` and `gopher_repetition`, `fineweb`, `c4`.

**Gopher** (Rae et al. 2021, Scaling Language Models, appendix A.1.1). `gopher_quality`: is this running text?
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
  (`filter.rule_set`), or of English: an untranslated page may have the label of the site's language. These lists are
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

**FineWeb**'s own rules: is this prose, and not a list, a menu or a page that says its lines twice?

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

**C4**'s rules: cut lines that are no sentences, then drop pages with too few sentences, with code or with filler
text.

Raffel et al. 2020, Exploring the Limits of Transfer Learning (JMLR 21), section 2.2. Its list of bad words is not
part of this rule set: it would drop texts on medicine and law, too.

A line stays if it has enough words, none too long, ends in a sentence's mark or a quote (not in an ellipsis), and
mentions neither javascript nor a policy on cookies, privacy or use. Rows that stay lose their other lines and their
citation marks ("[12]", "[edit]", "[citation needed]"): `lines = "count"` judges only. Conversations and preference
pairs are judged and never cut.

Where implementations differ, this one reads the paper so:
- the first version of the paper and datatrove ask for 5 sentences and 3 words a line, as our defaults; the last version
  and TFDS for 3 sentences and 5 words.
- a curly bracket or "lorem ipsum" anywhere drops the page, as the paper says; TFDS and datatrove look only at lines
  that are long and finished enough to stay (for brackets also without javascript): `where = "lines"`.
- a sentence ends with a token that ends in a sentence's mark (quotes and brackets after it are ignored), or with the
  line; marks of Chinese and Japanese need no space after them. TFDS uses NLTK, datatrove spaCy.
- line ends: marks of any script and closing quotes of any shape count; in datatrove only . ? ! " and '.
- a citation after the last full stop is ignored, with the space before it; in datatrove that line ends in a space.
- of the blank lines between two lines that stay, one remains; in C4 none does.
- a character of a script written without spaces is a word. Thai and Lao end no sentence with a mark: rows mostly in
  these scripts are not cut and need no sentences.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import Bools, Integers, string_array, string_buffers
from datakit.filter.rule_set import (
    Edits,
    Measure,
    MeasuredRows,
    Report,
    RuleSet,
    Signals,
    character_classes,
    language_numbers,
    ratio,
)

_MAX_FOREIGN_WORD_RATIO = 0.02
_MAX_UNSEGMENTED_WORD_RATIO = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherQuality(RuleSet):
    """Thresholds of the paper for running text."""

    name: ClassVar[str] = "gopher_quality"
    shared: ClassVar[bool] = True
    ratios: ClassVar[dict[str, tuple[str, str]]] = {
        "max_hash_word_ratio": ("hashes", "words"),
        "max_ellipsis_word_ratio": ("ellipses", "words"),
        "max_bullet_line_ratio": ("bullet_lines", "all_lines"),
        "max_ellipsis_line_ratio": ("ellipsis_lines", "all_lines"),
        "min_alpha_word_ratio": ("alpha_words", "words"),
    }

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
    symbol_words: Literal["count", "ignore"] = option(
        "count", "whether tokens without letters or digits are words", advanced=True
    )

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The measures in the order of the fields, which is the paper's."""
        s = rows.signals
        spaced = s["words"] - s["unsegmented_words"]
        words, chars = s["words"], s["spaced_chars"]
        if self.symbol_words == "ignore":
            words, chars, spaced = words - s["symbol_words"], chars - s["symbol_chars"], spaced - s["symbol_words"]
        yield Measure("min_words", words)
        yield Measure("max_words", words)
        by_spaces = s.ratio("unsegmented_words", "words") <= _MAX_UNSEGMENTED_WORD_RATIO
        # Without marks a word of Hindi has 2.7 characters, too few; with them one of Malayalam has 12.5, too many. One
        # of Korean has 3.0 syllables. So marks count for the lower limit alone.
        yield Measure("min_mean_word_chars", ratio(chars + s["spaced_marks"], spaced), by_spaces)
        yield Measure("max_mean_word_chars", ratio(chars, spaced), by_spaces)
        yield from RuleSet.measures(self, rows)
        counts = np.maximum(s["stop_words"], s["own_stop_words"])
        yield Measure("min_stop_words", counts, self._judged_by_stop_words(rows))

    def report(self, rows: MeasuredRows, stays: Bools) -> Report:
        """By language, the number of rows without a list of stop words."""
        if not self.min_stop_words:
            return Report()
        silent = rows.languages.filter(pa.array(~self._judged_by_stop_words(rows)))
        found = pc.value_counts(silent.drop_null()).to_pylist()
        return Report({f"min_stop_words_is_off_for_{r['values']}": r["counts"] for r in found})

    def _judged_by_stop_words(self, rows: MeasuredRows) -> Bools:
        """bool[N]: rows of a language with a list, and rows of unknown language that may be English."""
        listed = language_numbers(rows.languages) >= 0
        english = pc.match_substring_regex(rows.languages, r"^eng?($|[_-])")
        english = pc.fill_null(english, False).to_numpy(zero_copy_only=False)
        ascii_words = rows.signals.ratio("foreign_words", "words") <= _MAX_FOREIGN_WORD_RATIO
        unknown = pc.is_null(rows.languages).to_numpy(zero_copy_only=False) & ascii_words
        return np.asarray(listed | unknown | english)


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherRepetition(RuleSet):
    """Thresholds of the paper for repetition."""

    name: ClassVar[str] = "gopher_repetition"
    shared: ClassVar[bool] = True
    ratios: ClassVar[dict[str, tuple[str, str]]] = {
        "max_dup_paragraph_ratio": ("dup_paragraphs", "paragraphs"),
        "max_dup_paragraph_char_ratio": ("dup_paragraph_chars", "chars"),
        "max_dup_line_ratio": ("dup_lines", "lines"),
        "max_dup_line_char_ratio": ("dup_line_chars", "chars"),
        **{f"max_top_{n}gram_char_ratio": (f"top_{n}gram_chars", "chars") for n in range(2, 5)},
        **{f"max_dup_{n}gram_char_ratio": (f"dup_{n}gram_chars", "chars") for n in range(5, 11)},
    }

    max_dup_paragraph_ratio: float = option(0.3, "drop rows with a larger share of duplicate paragraphs")
    max_dup_paragraph_char_ratio: float = option(0.2, "drop rows with a larger share of text in duplicate paragraphs")
    max_dup_line_ratio: float = option(0.3, "drop rows with a larger share of duplicate lines")
    max_dup_line_char_ratio: float = option(0.2, "drop rows with a larger share of text in duplicate lines")
    max_top_2gram_char_ratio: float = option(0.2, "drop rows with a larger share of characters in their top 2-gram")
    max_top_3gram_char_ratio: float = option(0.18, "the same for 3-grams")
    max_top_4gram_char_ratio: float = option(0.16, "the same for 4-grams")
    max_dup_5gram_char_ratio: float = option(0.15, "drop rows with a larger share of characters in duplicate 5-grams")
    max_dup_6gram_char_ratio: float = option(0.14, "the same for 6-grams")
    max_dup_7gram_char_ratio: float = option(0.13, "the same for 7-grams")
    max_dup_8gram_char_ratio: float = option(0.12, "the same for 8-grams")
    max_dup_9gram_char_ratio: float = option(0.11, "the same for 9-grams")
    max_dup_10gram_char_ratio: float = option(0.1, "the same for 10-grams")


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


@dataclass(frozen=True, kw_only=True, slots=True)
class C4(RuleSet):
    """Thresholds of the paper's first version; the last one has 3 sentences and 5 words."""

    name: ClassVar[str] = "c4"
    measured_with: ClassVar[tuple[str, ...]] = ("min_line_words", "max_line_word_chars", "line_end")

    max_lorem_ipsum: int = option(0, 'drop rows that say "lorem ipsum" more often')
    max_curly_brackets: int = option(0, 'drop rows with more "{"')
    min_sentences: int = option(5, "drop rows with fewer sentences in the lines that stay")
    where: Literal["page", "lines"] = option(
        "page", "where the first two thresholds look: everywhere, or only at lines that may stay", advanced=True
    )
    lines: Literal["cut", "count"] = option("cut", "cut the other lines from documents that stay, or leave them")
    min_line_words: int = option(3, "lines with fewer words do not stay")
    max_line_word_chars: int = option(1000, "lines with a longer word do not stay")
    line_end: Literal["sentence", "any"] = option("sentence", "whether lines must end as sentences do", advanced=True)

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """Lorem ipsum and curly brackets, then the sentences that stay."""
        counts = rows.counted(self)
        where = "judged_" if self.where == "lines" else ""
        marks_sentences = np.asarray(2 * counts["c4_unmarked_words"] <= counts["c4_words"])
        yield Measure("max_lorem_ipsum", counts[f"c4_{where}lorem_ipsum"])
        yield Measure("max_curly_brackets", counts[f"c4_{where}curly_brackets"])
        yield Measure("min_sentences", counts["c4_sentences"], marks_sentences)

    def signals(self, rows: MeasuredRows) -> Signals:
        """Lines, sentences and phrases of each text; see `_kernels_c4.COUNTS`."""
        from datakit.filter import _kernels_c4

        counted, _, _ = self._scan(rows.texts, np.ones(len(rows.texts), np.bool_), cut=False)
        return Signals(zip(_kernels_c4.COUNTS, counted, strict=True))

    def edit(self, table: pa.RecordBatch, stays: Bools) -> Edits | None:
        """The documents that stay, without the lines that do not."""
        if self.lines == "count" or "text" not in table.schema.names:
            return None
        _, cut, changed = self._scan(table.column("text"), stays, cut=True)
        if not changed.any():
            return None
        return Edits({"text": pc.if_else(pa.array(changed), cut, table.column("text"))}, changed)

    def _scan(self, texts: pa.Array, stays: Bools, *, cut: bool) -> tuple[Integers, pa.Array, Bools]:
        """(counts int64[C, N], with `cut` the texts that lose lines without them, bool[N]: which ones these are)."""
        from datakit.filter import _kernels_c4

        data, offsets = string_buffers(texts)
        out, out_offsets = np.empty(offsets[-1] - offsets[0] if cut else 0, np.uint8), np.empty_like(offsets)
        changed = np.zeros(len(texts), np.bool_)
        rules = np.array([self.min_line_words, self.max_line_word_chars, self.line_end == "sentence"], np.int64)
        counts = _kernels_c4.scan(data, offsets, character_classes(), rules, stays, out, out_offsets, changed)
        return counts, string_array(out[: out_offsets[-1]], out_offsets), changed
