"""Packing: density against best-fit decreasing over the whole set at once, and millions of tokens a second on one core.

    python bench/pack.py ../shared/tokenizers/minimind ../shared/corpora/sft/{gpteacher,gsm8k/train.jsonl}

Each corpus is tokenized first, which is not counted. Packing is timed from Arrow batches to bin2d on the disk, on the
rows taken `--repeat` times over. Fails where best fit leaves a density below 0.99 that a lower bound on the rows does
not excuse, or 0.2% below that of best-fit decreasing offline (Johnson 1973) on the same sequences.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left, insort
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pyarrow as pa

from datakit.data import read_shard
from datakit.manifest import data_dir, load, tables
from datakit.pack.fit import fewest_rows
from datakit.pack.stage import Pack, PackConfig

LEAST, BEHIND = 0.99, 0.002


def tokenized(corpus: Path, tokenizer: Path, folder: Path) -> tuple[list[pa.RecordBatch], dict]:
    """Token rows of a corpus and the facts of their tokenizer."""
    command = [sys.executable, "-m", "datakit", "tokenize", str(corpus.resolve()), "--dataset", corpus.stem]
    done = subprocess.run(
        [*command, "--tokenizer", str(tokenizer.resolve())], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    path = folder / "manifests" / corpus.stem / "tokenize.json"
    manifest = load(path)
    folder = data_dir(path, manifest)
    return [b for s in tables(manifest, "kept") for b in read_shard(folder, s)], manifest.facts["tokenizer"]


def offline_rows(lengths: list[int], stride: int) -> int:
    """Rows that best-fit decreasing needs: longest first, each into the fullest row that holds it."""
    room: list[int] = []
    rows = 0
    for length in sorted(lengths, reverse=True):
        at = bisect_left(room, length)
        left = room.pop(at) - length if at < len(room) else stride - length
        rows += left == stride - length and at >= len(room)
        if left:
            insort(room, left)
    return rows


def offline(batches: list[pa.RecordBatch], seq_len: int) -> tuple[float, float]:
    """Density of best-fit decreasing over the whole set, truncated, and the most that whole sequences allow."""
    stride = seq_len + 1
    lengths = np.concatenate([b.column("input_ids").value_lengths().to_numpy() for b in batches]).astype(np.int64)
    cut = np.minimum(lengths, stride)
    rows = offline_rows(cut.tolist(), stride), fewest_rows(cut, stride)
    return cut.sum() / (rows[0] * stride), cut.sum() / (rows[1] * stride)


def measured(batches: list[pa.RecordBatch], facts: dict, times: int, folder: Path, **options) -> tuple[float, float]:
    """Density, and millions of tokens a second of processor time."""
    start = time.process_time()
    given = chain.from_iterable(repeat(batches, times))
    result = Pack(PackConfig(**options)).run(given, folder, facts)
    return result.facts["packing"]["density"], result.tokens.into / (time.process_time() - start) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path, help="a folder with a tokenizer.json")
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--seq-len", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--repeat", type=int, default=10, help="for the speed")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    failed = False
    for corpus in args.corpora:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            batches, facts = tokenized(corpus, args.tokenizer, folder)
            for seq_len in args.seq_len:
                density, _ = measured(batches, facts, 1, folder / f"once{seq_len}", seq_len=seq_len)
                decreasing, most = offline(batches, seq_len)
                speeds = {
                    packing: measured(batches, facts, args.repeat, folder / packing, seq_len=seq_len, packing=packing)[
                        1
                    ]
                    for packing in ("best_fit", "wrap")
                }
                said = "  ".join(f"{packing} {speed:.0f} Mtok/s" for packing, speed in speeds.items())
                dense = f"density {density:.4f}  offline {decreasing:.4f}  at most {most:.4f}"
                print(f"{corpus.stem:16} {seq_len:5}  {dense}  {said}", flush=True)
                failed |= density < max(min(LEAST, most * (1 - BEHIND)), decreasing * (1 - BEHIND))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
