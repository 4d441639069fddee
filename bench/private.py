"""What the rule set `private` finds and what it hits wrongly: strings of our own, by type; and its speed.

    python bench/private.py [--set development|held-out|third|fourth] [--misses]     recall by type, false hits
    python bench/private.py --speed FILES                                     MB/s of one core

The development half is what the patterns were first written with. The held-out half, the third set and the
fourth were each written before they were first run; `bench/LOG.md` has those first figures. None is unseen now.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable

import pyarrow as pa

from bench import private_fourth, private_halves, private_third
from bench.private_halves import Case
from datakit.filter.private import FINDERS, Private, find

SETS: dict[str, Callable[[], tuple[list[Case], list[str]]]] = {
    "development": lambda: (private_halves.positives(False), private_halves.negatives(False)),
    "held-out": lambda: (private_halves.positives(True), private_halves.negatives(True)),
    "third": lambda: private_third.strings(random.Random(3)),
    "fourth": private_fourth.strings,
}
"""(values in their sentences, strings without private values) of each set."""


def found_in(text: str, value: str) -> bool:
    """Whether a value is gone, and as its own type or another one of private values."""
    if Private()._edited(pa.record_batch({"text": [text]}))[0].get("text", [text])[0] == pa.scalar(text):
        return False
    if "-----BEGIN" in text:
        return value not in Private().replace(text)[0]
    begin = text.index(value)
    covered = set()
    for a, b, _ in find(text, tuple(FINDERS)):
        covered |= set(range(a, b))
    return all(i in covered or not text[i].isalnum() for i in range(begin, begin + len(value)))


def judge(name: str, misses: bool) -> tuple[dict[str, tuple[int, int]], int, int]:
    """(by type: found, all), negatives with a hit, all negatives; a string that stands twice in a set counts once."""
    found, total = Counter[str](), Counter[str]()
    positives, negatives = (list(dict.fromkeys(strings)) for strings in SETS[name]())
    for kind, text, value in positives:
        total[kind] += 1
        good = found_in(text, value)
        found[kind] += good
        if misses and not good:
            print(f"  missed {kind:12} {text!r}")
    hits = [(text, spans) for text in negatives if (spans := find(text, tuple(FINDERS)))]
    for text, spans in hits if misses else ():
        print(f"  wrong  {[(text[a:b], k) for a, b, k in spans]} in {text!r}")
    return {k: (found[k], total[k]) for k in sorted(total)}, len(hits), len(negatives)


def speed(files: list[str]) -> None:
    for file in files:
        with pa.input_stream(file) as stream:
            text = stream.read().decode(errors="replace")
        texts = pa.array([text[i : i + 4000] for i in range(0, min(len(text), 40_000_000), 4000)])
        batch, rules = pa.record_batch({"text": texts}), Private()
        best = min(_timed(rules, batch) for _ in range(2))
        print(f"{file.rsplit('/', 1)[-1]:45} {texts.nbytes / 1e6 / best:7.1f} MB/s")


def _timed(rules: Private, batch: pa.RecordBatch) -> float:
    begin = time.process_time()
    rules._edited(batch)
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=tuple(SETS), help="default: all")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--speed", nargs="+", metavar="FILE")
    args = parser.parse_args()
    if args.speed:
        speed(args.speed)
        return
    for name in (args.set,) if args.set else SETS:
        recall, wrong, negatives = judge(name, args.misses)
        values = sum(total for _, total in recall.values())
        print(f"{name}: {values} values, {wrong} of {negatives} negatives hit ({wrong / negatives:.1%})")
        for kind, (good, total) in recall.items():
            print(f"  {kind:12} {good:4} of {total:4}  {good / total:.3f}")


if __name__ == "__main__":
    main()
