"""fastokens against `tokenizers.encode_batch_fast`: every row compared, MB per CPU second.

    python bench/encode.py ../shared/tokenizers/* --corpora ../shared/corpora/web/*

A corpus is read from JSON lines, JSON or Parquet, every string in it a row (or its `text`); plain text is cut at blank
lines. Both libraries get the same lists of texts, in batches, on one thread, in the spelling that the tokenize stage
uses. Fails if an id differs.
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

from datakit.pack.chat import ChatTokenizer
from datakit.pack.tokenize import FastEncode, fastokens_of

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
    start = time.process_time()
    result = function(*args, **more)
    return result, time.process_time() - start


def compare(tokenizer: ChatTokenizer, encode: FastEncode, texts: list[str]) -> tuple[float, float, int]:
    """CPU seconds of fastokens and of the library, and how many rows differ."""
    fast = library = 0.0
    different = 0
    for batch in batches(texts):
        (ids, offsets), seconds = clocked(encode, batch)
        fast += seconds
        encodings, seconds = clocked(tokenizer.encoder.encode_batch_fast, batch, add_special_tokens=False)
        library += seconds
        for row, encoding in enumerate(encodings):
            if ids[offsets[row] : offsets[row + 1]].tolist() != encoding.ids:
                different += 1
                print(f"DIFFERENT: {batch[row][:200]!r}")
    return fast, library, different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizers", nargs="+", type=Path, help="folders with a tokenizer.json")
    parser.add_argument("--corpora", nargs="+", type=Path, required=True)
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"], os.environ["RAYON_NUM_THREADS"] = "false", "1"
    failed = False
    for folder in args.tokenizers:
        tokenizer = ChatTokenizer.load(folder)
        try:
            encode, seconds = clocked(fastokens_of, tokenizer.spec())
        except ValueError as e:
            print(f"{folder.name}: fastokens does not read it: {e}")
            failed = True
            continue
        print(f"{folder.name}: loaded in {seconds:.1f} s")
        for path in args.corpora:
            texts = rows(path)
            fast, library, different = compare(tokenizer, encode, texts)
            size = sum(len(text.encode()) for text in texts) / 1e6
            rates = f"fastokens {size / fast:5.1f} MB/s ({library / fast:4.1f} times)  tokenizers {size / library:4.2f}"
            found = f"{len(texts):7} rows {size:6.1f} MB  {rates}  different {different}"
            print(f"  {path.name[:40]:40} {found}", flush=True)
            failed |= different > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
