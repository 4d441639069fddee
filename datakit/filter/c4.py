"""C4's rules: cut lines that are no sentences, then drop pages with too few of them, code or filler text.

Raffel et al. 2020, Exploring the Limits of Transfer Learning (JMLR 21), section 2.2. Its list of bad words is not
part of this rule set: it drops medicine and law with the rest.

A line stays if it has enough words, none too long, ends in a sentence's mark or a quote (not in an ellipsis), and
mentions neither javascript nor a cookie, privacy or use policy. Rows that stay lose their other lines and their
citation marks ("[12]", "[edit]", "[citation needed]"): `lines = "count"` judges only. Conversations and preference
pairs are judged and never cut.

Readings that implementations differ in, and ours:
- the first version of the paper and datatrove ask for 5 sentences and 3 words a line, as our defaults; the last version
  and TFDS for 3 sentences and 5 words.
- a curly bracket or "lorem ipsum" anywhere drops the page, as the paper says; TFDS and datatrove look only at lines
  that are long and finished enough to stay (for brackets also without javascript): `where = "lines"`.
- sentences are tokens that end in a sentence's mark, quotes and brackets behind it left aside, and what is left at a
  line's end; marks of Chinese and Japanese need no space behind them. TFDS asks NLTK, datatrove spaCy.
- line ends: marks of any script and closing quotes of any shape count, for datatrove only . ? ! " and '.
- a citation behind the last full stop is left aside with the space before it; for datatrove the line ends in a space.
- blank lines between lines that stay remain, one at a time; in C4 there are none.
- a character of a script written without spaces is a word. Thai and Lao end no sentence with a mark: rows mostly in
  them are not cut and need no sentences.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.filter.rule_set import BREAK, SPACE, Measure, Rows, Signals, check_ratios, classes
from datakit.text.characters import string_array, string_buffers


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Thresholds of the paper's first version; the last one has 3 sentences and 5 words."""

    max_lorem_ipsum: int = option(0, 'drop rows that say "lorem ipsum" more often')
    max_curly_brackets: int = option(0, 'drop rows with more "{"')
    min_sentences: int = option(5, "drop rows with fewer sentences in the lines that stay")
    where: Literal["page", "lines"] = option("page", "where the first two look: everywhere, or at lines that may stay")
    lines: Literal["cut", "count"] = option("cut", "cut the other lines from documents that stay, or leave them")
    min_line_words: int = option(3, "lines with fewer words do not stay")
    max_line_word_chars: int = option(1000, "lines with a longer word do not stay")
    line_end: Literal["sentence", "any"] = option("sentence", "whether lines must end as sentences do")
    javascript: Literal["cut", "keep"] = option("cut", 'lines with the word "javascript"')
    policy: Literal["cut", "keep"] = option("cut", "lines with phrases of cookie, privacy and use policies")

    def __post_init__(self) -> None:
        check_ratios(self)


COUNTING = ("min_line_words", "max_line_word_chars", "line_end", "javascript", "policy")
"""The fields that shape the counts: another value of theirs needs the text again."""


def measure(rows: Rows, config: Config) -> Iterator[Measure]:
    """Lorem ipsum and curly brackets, then the sentences that stay."""
    counts = rows.counted("c4")
    judged = "judged_" if config.where == "lines" else ""
    yield Measure("max_lorem_ipsum", counts[f"c4_{judged}lorem_ipsum"])
    yield Measure("max_curly_brackets", counts[f"c4_{judged}curly_brackets"])
    yield Measure("min_sentences", counts["c4_sentences"], _marks_sentences(counts))


def count(texts: pa.Array, config: Config) -> Signals:
    """Count lines, sentences and phrases of each text; see `_kernels_c4.COUNTS`."""
    from datakit.filter import _kernels_c4

    data, offsets = string_buffers(texts)
    counted = _kernels_c4.count(data, offsets, classes(), _kinds(), *_rules(config))
    return Signals(dict(zip(_kernels_c4.COUNTS, counted, strict=True)))


def edit(texts: pa.Array, config: Config, kind: str) -> pa.Array:
    """The texts without the lines that do not stay; a text that loses nothing comes back as it is."""
    from datakit.filter import _kernels_c4

    if config.lines == "count" or kind != "document":
        return texts
    data, offsets = string_buffers(texts)
    out, out_offsets = np.empty(offsets[-1] - offsets[0], np.uint8), np.empty_like(offsets)
    changed = np.empty(len(texts), np.bool_)
    rows = (data, offsets, classes(), _kinds(), *_rules(config), out, out_offsets, changed)
    made = _kernels_c4.cut(*rows)
    cut = string_array(out[: out_offsets[made]], out_offsets[: made + 1])
    return pc.replace_with_mask(texts, pa.array(changed), cut)


def _kinds() -> NDArray[np.uint8]:
    """uint8[256]: 0 for the ASCII bytes inside a word that the kernel need not look at."""
    kinds = np.ones(256, np.uint8)
    kinds[:128] = classes()[:128] & (SPACE | BREAK) != 0
    kinds[[ord("{"), ord("[")]] = 1
    return kinds


def _rules(config: Config) -> tuple[Any, ...]:
    cuts = config.line_end == "sentence", config.javascript == "cut", config.policy == "cut"
    return (config.min_line_words, config.max_line_word_chars, *cuts)


def _marks_sentences(counts: Signals) -> NDArray[np.bool_]:
    """bool[N]: rows not mostly in a script that marks no sentence's end."""
    return np.asarray(2 * counts["c4_unmarked_words"] <= counts["c4_words"])
