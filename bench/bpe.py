"""Documents -> ids, ours against `tokenizers.encode_batch_fast`: every row compared, MB per CPU second on one core.

    python bench/bpe.py ../shared/tokenizers/* --corpora ../shared/corpora/web/*

A corpus is read from JSON lines, JSON or Parquet, every string in it a row (or its `text`); plain text is cut at blank
lines. Both sides get the same Arrow column or list, in batches, on one thread. Cold is a first pass with empty caches,
the time to load tables not counted (it is printed); warm is a second pass. Fails if an id differs, or if less than 99%
of a corpus' pieces went through the kernels.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from datakit.pack.bpe_pipeline import NotRecognised
from datakit.pack.chat import ChatTokenizer
from datakit.pack.fast_bpe import FastBpe, Tally
from datakit.pack.tokenize import MIN_FAST_SHARE

BATCH_BYTES = 8_000_000


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value.encode(errors="replace").decode()
    elif isinstance(value, dict):
        yield from strings(value["text"]) if isinstance(value.get("text"), str) else strings(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def rows(path: Path) -> list[str]:
    suffix = Path(path.name.removesuffix(".gz").removesuffix(".zst")).suffix
    if suffix == ".parquet":
        return pq.read_table(path, columns=["text"])["text"].to_pylist()
    with pa.input_stream(str(path)) as stream:
        content = stream.read()
    if suffix == ".jsonl":
        return [text for line in content.splitlines() for text in strings(json.loads(line))]
    return list(strings(json.loads(content))) if suffix == ".json" else content.decode().split("\n\n")


def sample(texts: list[str], megabytes: float) -> list[str]:
    """Rows from all over, about as many megabytes as asked for."""
    size = sum(map(len, texts)) / 1e6
    step = max(1, round(size / megabytes)) if megabytes else 1
    return texts[::step]


def batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def clocked(function, *args, **more):
    start = time.thread_time()
    result = function(*args, **more)
    return result, time.thread_time() - start


def compare(fast: FastBpe, library, texts: list[str]) -> tuple[float, float, float, int]:
    """Seconds cold, warm and of the library, and how many rows differ."""
    fast.forget()
    fast.tally = Tally()
    cold = warm = theirs = 0.0
    different = 0
    columns = [(pa.array(batch, pa.string()), batch) for batch in batches(texts)]
    for column, _ in columns:
        cold += clocked(fast.encode, column)[1]
    for column, batch in columns:
        (ids, offsets), seconds = clocked(fast.encode, column)
        warm += seconds
        encodings, seconds = clocked(library.encode_batch_fast, batch, add_special_tokens=False)
        theirs += seconds
        for row, encoding in enumerate(encodings):
            if ids[offsets[row] : offsets[row + 1]].tolist() != encoding.ids:
                different += 1
                print(f"DIFFERENT: {batch[row][:200]!r}")
    return cold, warm, theirs, different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizers", nargs="+", type=Path, help="folders with a tokenizer.json")
    parser.add_argument("--corpora", nargs="+", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=0, help="about so much of each corpus; 0: all of it")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    failed = False
    for folder in args.tokenizers:
        tokenizer = ChatTokenizer.load(folder)
        fast, seconds = clocked(FastBpe.of, tokenizer.spec(), tokenizer.encoder)
        if isinstance(fast, NotRecognised):
            print(f"{folder.name}: not recognised: {fast}")
            failed = True
            continue
        _, first = clocked(fast.encode, pa.array(["compile"]))
        print(f"{folder.name}: tables in {seconds:.1f} s, first call {first:.1f} s")
        for path in args.corpora:
            texts = sample(rows(path), args.megabytes)
            cold, warm, theirs, different = compare(fast, tokenizer.encoder, texts)
            size, tally = sum(len(text.encode()) for text in texts) / 1e6, fast.tally
            print(
                f"  {path.name[:40]:40} {len(texts):7} rows {size:6.1f} MB  cold {size / cold:5.1f} MB/s "
                f"({theirs / cold:4.1f} times)  warm {size / warm:5.1f} ({theirs / warm:4.1f})  "
                f"library {size / theirs:4.2f}  fast {tally.fast_share:.2%}  "
                f"merged {tally.misses / max(tally.pieces, 1):.1%}  different {different}",
                flush=True,
            )
            failed |= different > 0 or tally.fast_share < MIN_FAST_SHARE
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
