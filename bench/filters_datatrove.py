"""datatrove's Gopher, C4 and FineWeb filters over JSON lines {"text"} on standard input; bench/filters.py calls it.

With the argument `words` it counts datakit's words and sentences instead of its own (spaCy), with `rounding` its
thresholds are those that datakit's amount to, whose ratios are rounded to 1e-3. Runs in an environment of its own.
Writes one JSON line {"quality", "repetition", "c4", "fineweb"} per row (null: kept) and last {"seconds": {...}}.
    pip install "datatrove[io,processing]==0.10.1" spacy
"""

import json
import re
import sys
import time
import warnings

from datatrove.data import Document
from datatrove.pipeline import filters
from datatrove.utils.text import TERMINAL_PUNCTUATION
from datatrove.utils.typeshelper import Languages
from datatrove.utils.word_tokenizers import WordTokenizer

SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
MARKS = tuple(sorted(TERMINAL_PUNCTUATION))
WIDE = re.compile("[" + "".join(m for m in MARKS if m > "\u3000") + "]")
QUOTES = "’”»›」』｣“‘"
ALONE, RUNS = re.compile(f"[{SPACELESS}]"), re.compile(f"[{SPACELESS}]|[^{SPACELESS}]+")


class SameWords(WordTokenizer):
    """The words that datakit counts: white-space tokens, and each character of a script without spaces."""

    def word_tokenize(self, text: str) -> list[str]:
        return [word for token in text.split() for word in self.parts(token)]

    def parts(self, token: str) -> list[str]:
        if not ALONE.search(token):
            return [token]
        return [run for run in RUNS.findall(token) if any(c.isalnum() for c in run)]

    def sent_tokenize(self, text: str) -> list[str]:
        """Tokens that end in a mark, closing quotes and brackets left aside, end a sentence; so does the line."""
        sentences, open_sentence = [], False
        for token in text.split():
            parts = WIDE.split(token)
            for part in parts[:-1]:
                open_sentence |= bool(part.strip(QUOTES))
                sentences += ["."] * open_sentence
                open_sentence = False
            rest = parts[-1].lstrip(QUOTES) if len(parts) > 1 else parts[-1]
            open_sentence |= bool(rest)
            if open_sentence and parts[-1].rstrip(QUOTES + "\"')]").endswith(MARKS):
                sentences.append(".")
                open_sentence = False
        return sentences + ["."] * open_sentence

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [(i, i + 1) for i, _ in enumerate(self.sent_tokenize(text))]  # datatrove only counts them


def verdict(rule, text: str) -> str | None:
    try:
        found = rule.filter(Document(text=text, id="row"))
    except ZeroDivisionError:
        return "division by zero"
    if found is True:
        return None
    return found[1] if isinstance(found, tuple) else "dropped"


def main() -> None:
    warnings.filterwarnings("ignore")  # the mean of no words
    texts = [json.loads(line)["text"] for line in sys.stdin]
    words = SameWords() if "words" in sys.argv else Languages.english
    up = 0.0005 if "rounding" in sys.argv else 0.0
    rules = {
        "quality": filters.GopherQualityFilter(
            min_avg_word_length=3 - up, max_avg_word_length=10 + up, max_symbol_word_ratio=0.1 + up, language=words,
            max_bullet_lines_ratio=0.9 + up, max_ellipsis_lines_ratio=0.3 + up, max_non_alpha_words_ratio=0.8 - up,
        ),
        "repetition": filters.GopherRepetitionFilter(
            dup_line_frac=0.3 + up, dup_para_frac=0.3 + up, dup_line_char_frac=0.2 + up, dup_para_char_frac=0.2 + up,
            language=words,
            top_n_grams=[(n, limit + up) for n, limit in ((2, 0.2), (3, 0.18), (4, 0.16))],
            dup_n_grams=[(n, 0.2 - n / 100 + up) for n in range(5, 11)],
        ),
        "c4": filters.C4QualityFilter(language=words),
        "fineweb": filters.FineWebQualityFilter(
            line_punct_thr=0.12 - up, short_line_thr=0.67 + up, char_duplicates_ratio=0.01 + up, language=words,
            new_line_ratio=0.3 + up,
        ),
    }  # fmt: skip
    verdicts, seconds = {}, {}
    for name, rule in rules.items():
        start = time.process_time()
        verdicts[name] = [verdict(rule, text) for text in texts]
        seconds[name] = time.process_time() - start
    for row in zip(*verdicts.values(), strict=True):
        print(json.dumps(dict(zip(rules, row, strict=True))))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
