"""datatrove's Gopher filters over JSON lines {"text"} on standard input, words split at white space.

Runs in an environment of its own; bench/filters.py calls it.
Writes one JSON line {"quality", "repetition"} per row (null: kept) and last {"seconds": {...}}.
    pip install "datatrove[io,processing]==0.10.1" spacy
"""

import json
import sys
import time
import warnings

from datatrove.data import Document
from datatrove.pipeline.filters import GopherQualityFilter, GopherRepetitionFilter
from datatrove.utils.word_tokenizers import WordTokenizer


class WhiteSpace(WordTokenizer):
    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

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
    words = WhiteSpace()
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
