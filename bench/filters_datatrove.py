"""datatrove's Gopher filters over JSON lines {"text"} on standard input; bench/filters.py calls it.

The words are datakit's, or with the argument `default` datatrove's own (spaCy). Runs in an environment of its own.
Writes one JSON line {"quality", "repetition"} per row (null: kept) and last {"seconds": {...}}.
    pip install "datatrove[io,processing]==0.10.1" spacy
"""

import json
import re
import sys
import time
import warnings

from datatrove.data import Document
from datatrove.pipeline.filters import GopherQualityFilter, GopherRepetitionFilter
from datatrove.utils.typeshelper import Languages
from datatrove.utils.word_tokenizers import WordTokenizer

SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
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
        return [text]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


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
    words = Languages.english if sys.argv[1:] == ["default"] else SameWords()
    rules = {"quality": GopherQualityFilter(language=words), "repetition": GopherRepetitionFilter(language=words)}
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
