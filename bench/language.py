"""The language kernel compared with the fasttext module: answers by row, rows per CPU second, accuracy per language.

    python bench/language.py parity corpora/*            # every text of every file, whole: labels and scores
    python bench/language.py speed corpora/web/*         # the same texts cut into rows of 500 characters, one core each
    python bench/language.py accuracy corpora/language/* # per language

The module gets what its own reader needs: one Python string for each row, new lines as spaces. The time to make
these strings and the Arrow arrays is not counted.
"""

import argparse
import collections
import re
import time
from collections.abc import Iterator
from pathlib import Path

import fasttext
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from langcodes import Language as Tag

from datakit.filter import fasttext_model
from datakit.filter.language import Language, LanguageConfig, find


def records(path: Path) -> Iterator[dict]:
    if path.suffix == ".parquet":
        yield from pq.read_table(path).to_pylist()
        return
    with pa.input_stream(str(path)) as stream:
        raw = stream.read()
    if raw.lstrip()[:1] == b"[":
        yield from orjson.loads(raw)
        return
    for line in raw.splitlines():
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:  # a comment; for the model it is a text like any other
            yield {"text": line.decode()}


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def texts_of(path: Path) -> list[str]:
    return ["\n".join(strings(record)) for record in records(path)]


def line(text: str) -> str:
    """A row for the module's reader, which stops at a new line and at the word `</s>`."""
    return re.sub(r"(?<![^\0\t\v\f\r ])</s>(?![^\0\t\v\f\r ])", " ", text.replace("\n", " ")) + "\n"


def module_answers(module, lines: list[str]) -> tuple[list[str | None], np.ndarray]:
    labels, scores = module.f.multilinePredict(lines, 1, 0.0, "strict")
    best = [found[0].removeprefix("__label__") if found else None for found in labels]
    return best, np.array([found[0] if len(found) else 0.0 for found in scores])


def parity(args, module, ours) -> None:
    rows = different = exact = 0
    largest = 0.0
    for path in files(args.corpora):
        texts = texts_of(path)
        labels, scores = module_answers(module, [line(t) for t in texts])
        found, found_scores = ours.predict(pa.array(texts, pa.large_string()))
        wrong = sum(a != b for a, b in zip(found.to_pylist(), labels, strict=True))
        apart = float(np.abs(found_scores - scores).max(initial=0.0))
        print(f"{path.name}: {len(texts)} rows, {wrong} labels differ, scores by at most {apart:.1e}", flush=True)
        rows, different, largest = rows + len(texts), different + wrong, max(largest, apart)
        exact += int((found_scores == scores).sum())
    scores = f"scores by at most {largest:.1e}, {exact} equal to the last bit"
    print(f"all: {rows} rows, {different} labels differ, {scores}")


def speed(args, module, ours) -> None:
    total = collections.Counter()
    for path in files(args.corpora):
        whole = " ".join(line(t).rstrip("\n") for t in texts_of(path))
        cut = [whole[i : i + args.chars] for i in range(0, len(whole), args.chars)][: args.rows]
        rows, lines = pa.array(cut, pa.string()), [text + "\n" for text in cut]
        ours.predict(rows.slice(0, 1))
        mine, theirs = [], []
        for _ in range(args.repeats):  # in turns: a busy machine is busy for both
            start = time.thread_time()
            ours.predict(rows)
            mine.append(time.thread_time() - start)
            start = time.thread_time()
            module.f.multilinePredict(lines, 1, 0.0, "strict")
            theirs.append(time.thread_time() - start)
        a, b = min(mine), min(theirs)
        print(f"{path.name}: {len(cut)} rows; ours {len(cut) / a:,.0f} rows/s ({rows.nbytes / a / 1e6:.0f} MB/s), "
              f"module {len(cut) / b:,.0f} rows/s, {b / a:.1f} times", flush=True)  # fmt: skip
        total["rows"] += len(cut)
        total["ours"] += a
        total["module"] += b
    rates = [total["rows"] / total[side] for side in ("ours", "module")]
    print(f"all: ours {rates[0]:,.0f} rows/s, module {rates[1]:,.0f} rows/s, {rates[0] / rates[1]:.1f} times")


def code(tag: str) -> str:
    """A language as the code of its macrolanguage, in which the sets and the model agree."""
    found = Tag.get(tag).prefer_macrolanguage().language
    return "no" if found == "nb" else str(found)


def accuracy(args, module, ours) -> None:
    # lid.176 has the codes of Wikipedias; these mean another language in ISO 639-3, or none there
    wikipedia = {"als": "gsw", "bh": "bho", "eml": "egl", "sh": "hbs"}
    of = {label: code(wikipedia.get(label, label)) for label in ours.labels}
    for path in files(args.corpora):
        data = [(code(row.get("iso639_3") or row["lang"]), row["text"]) for row in records(path)]
        gold, texts = zip(*((gold, text) for gold, text in data if gold in of.values()), strict=True)
        rows, stage = collections.Counter(gold), Language(config=LanguageConfig(model=args.model))
        found = stage.decide(pa.record_batch({"text": pa.array(texts, pa.string())})).columns["lang_raw"]
        pairs = zip(gold, found.to_pylist(), strict=True)
        right = collections.Counter(wanted for wanted, label in pairs if wanted == of.get(label))
        print(path.name, "rows", "right", sep="\t")
        for name in sorted(rows):
            print(name, rows[name], f"{right[name] / rows[name]:.4f}", sep="\t")
        print("all", len(gold), f"{right.total() / len(gold):.4f}", sep="\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["parity", "speed", "accuracy"])
    parser.add_argument("corpora", nargs="+", type=Path, help="files, or folders of files")
    parser.add_argument("--model", default="lid.176")
    parser.add_argument("--chars", type=int, default=500, help="characters a row, for speed")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of each file at most, for speed")
    parser.add_argument("--repeats", type=int, default=3, help="for speed: the fastest counts")
    args = parser.parse_args()
    path = find(args.model)
    module, ours = fasttext.load_model(str(path)), fasttext_model.load(path)
    {"parity": parity, "speed": speed, "accuracy": accuracy}[args.what](args, module, ours)


if __name__ == "__main__":
    main()
