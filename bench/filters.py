"""Gopher quality and repetition, C4 and FineWeb compared with datatrove's, row by row and in MB per CPU second.

    python bench/filters.py --peer PYTHON corpora/web/*.jsonl.zst      # PYTHON: an environment with datatrove 0.10.1

Both sides get the same words and sentences (datakit's), the same line breaks (CRLF as LF) and the same rounding
(thresholds apply to ratios rounded to 1e-3: datatrove gets 0.1005 for 0.1), as far as --same says so. English rows are
compared (by fastText), because datatrove's stop words are English; differences are listed by both verdicts.
"""

import argparse
import collections
import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from measure import texts_of

from datakit.config import build
from datakit.filter.language import Language
from datakit.filter.stage import Filter, FilterConfig

RULES = {"quality": "gopher_quality", "repetition": "gopher_repetition", "c4": "c4", "fineweb": "fineweb"}
REASONS = {
    "gopher_short_doc": "min_words", "gopher_long_doc": "max_words", "gopher_enough_stop_words": "min_stop_words",
    "gopher_below_avg_threshold": "min_mean_word_chars", "gopher_above_avg_threshold": "max_mean_word_chars",
    "gopher_too_many_hashes": "max_hash_word_ratio", "gopher_too_many_ellipsis": "max_ellipsis_word_ratio",
    "gopher_too_many_bullets": "max_bullet_line_ratio", "gopher_too_many_end_ellipsis": "max_ellipsis_line_ratio",
    "gopher_below_alpha_threshold": "min_alpha_word_ratio", "lorem_ipsum": "max_lorem_ipsum",
    "dup_line_frac": "max_dup_line_ratio", "dup_line_char_frac": "max_dup_line_char_ratio",
    "dup_para_frac": "max_dup_paragraph_ratio", "dup_para_char_frac": "max_dup_paragraph_char_ratio",
    "curly_bracket": "max_curly_brackets", "too_few_sentences": "min_sentences",
    "line_punct_ratio": "min_terminal_line_ratio", "short_line_ratio": "max_short_line_ratio",
    "char_dup_ratio": "max_dup_line_char_ratio", "list_ratio": "max_line_breaks_per_word",
    **{f"top_{n}_gram": f"max_top_{n}gram_char_ratio" for n in range(2, 5)},
    **{f"duplicated_{n}_n_grams": f"max_dup_{n}gram_char_ratio" for n in range(5, 11)},
}  # fmt: skip


def english(texts: pa.Array) -> pa.Array:
    lang = Language().decide(pa.record_batch({"text": texts})).columns["lang"]
    return texts.filter(pc.equal(lang, "en"))


def ours(texts: pa.Array, symbol_words: str) -> tuple[dict[str, list[str | None]], float]:
    batch = pa.record_batch({"text": texts, "lang": pa.repeat("en", len(texts))})
    verdicts = {}
    for name, rule in RULES.items():
        options = {"quality": {rule: {"symbol_words": symbol_words}}, "c4": {rule: {"where": "lines"}}}.get(name, {})
        stage = Filter(config=build(FilterConfig, {"rules": [rule], **options}, "filter"))
        stage.decide(batch.slice(0, 1))
        reasons = stage.decide(batch).reasons.to_pylist()
        verdicts[name] = [reason and reason.partition(".")[2] for reason in reasons]
    both = Filter(config=build(FilterConfig, {"rules": list(RULES.values())}, "filter"))
    both.decide(batch.slice(0, 1))
    start = time.thread_time()
    both.decide(batch)
    return verdicts, time.thread_time() - start


def theirs(python: Path, texts: pa.Array, same: list[str]) -> tuple[dict[str, list[str | None]], dict[str, float]]:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts.to_pylist())
    script = Path(__file__).with_name("filters_datatrove.py")
    run = subprocess.run([python, script, *same], input=lines, capture_output=True, text=True, check=True)
    *rows, last = map(json.loads, run.stdout.splitlines())
    return {name: [REASONS.get(r[name], r[name]) for r in rows] for name in RULES}, last["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--peer", required=True, type=Path, help="the python of an environment with datatrove")
    parser.add_argument("--rows", type=int, help="only so many rows of each corpus")
    parser.add_argument("--symbol-words", default="ignore", choices=["count", "ignore"])
    parser.add_argument("--same", default="words,breaks,rounding", help="what datatrove gets from us [default: all]")
    parser.add_argument("--show", type=int, default=0, help="print so many differing rows of each kind")
    args = parser.parse_args()
    total, same = collections.Counter(), args.same.split(",")
    differences: dict[tuple, list[str]] = collections.defaultdict(list)
    for path in args.corpora:
        texts = english(pa.array(texts_of(path), pa.string()))
        texts = texts.slice(0, args.rows) if args.rows else texts
        texts = pc.replace_substring(texts, "\r\n", "\n") if "breaks" in same else texts
        mine, my_seconds = ours(texts, args.symbol_words)
        peers, peer_seconds = theirs(args.peer, texts, same)
        megabytes = pc.sum(pc.binary_length(texts)).as_py() / 1e6
        both = sum(peer_seconds.values())
        print(f"{path.name}: {len(texts)} rows, {megabytes:.1f} MB; ours {megabytes / my_seconds:.1f} MB/s, "
              f"datatrove {megabytes / both:.2f} MB/s, {both / my_seconds:.0f} times")  # fmt: skip
        total["MB"] += megabytes
        total["ours"] += my_seconds
        total["theirs"] += both
        for name in RULES:
            for text, a, b in zip(texts.to_pylist(), mine[name], peers[name], strict=True):
                total[name, "rows"] += 1
                total[name, "verdict"] += (a is None) == (b is None)
                total[name, "reason"] += a == b
                if a != b:
                    differences[name, a, b].append(text)
    for name in RULES:
        rows = total[name, "rows"]
        verdict, reason = total[name, "verdict"] / rows, total[name, "reason"] / rows
        print(f"{name}: verdict equal {verdict:.2%}, reason equal {reason:.2%}")
    for key, rows in sorted(differences.items(), key=lambda kv: -len(kv[1])):
        print(f"{len(rows):6} {key[0]}: ours {key[1]}, datatrove {key[2]}")
        for text in rows[: args.show]:
            print("      ", repr(text[:300]))
    print(f"all: ours {total['MB'] / total['ours']:.1f} MB/s, datatrove {total['MB'] / total['theirs']:.2f} MB/s, "
          f"{total['theirs'] / total['ours']:.0f} times")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
