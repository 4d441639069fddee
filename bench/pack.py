"""Packing: density against best-fit decreasing over the whole set at once, and millions of tokens a second on one core.

    python bench/pack.py ../shared/tokenizers/minimind ../shared/corpora/sft/{gpteacher,gsm8k/train.jsonl}

Each corpus is tokenized first, which is not counted. Packing is timed from Arrow batches to bin2d on the disk, on the
rows taken ten times over. Fails where best fit leaves a density below 0.99 that a lower bound on the rows does not
excuse, or 0.2% below that of best-fit decreasing offline (Johnson 1973) on the same sequences.
"""

import sys
import tempfile
import time
from bisect import bisect_left, insort
from pathlib import Path

import numpy as np

import datakit
from datakit.manifest import load
from datakit.pack.fit import fewest_rows
from datakit.pack.stage import Pack, PackConfig
from datakit.stage import Parent

LEAST, BEHIND, REPEAT, SEQ_LENS = 0.99, 0.002, 10, (512, 2048)


def offline_rows(lengths: list[int], stride: int) -> int:
    """Rows that best-fit decreasing needs: longest first, each into the fullest row that holds it."""
    spaces: list[int] = []
    rows = 0
    for length in sorted(lengths, reverse=True):
        at = bisect_left(spaces, length)
        rows += at == len(spaces)
        left = (spaces.pop(at) if at < len(spaces) else stride) - length
        if left:
            insort(spaces, left)
    return rows


def main() -> int:
    tokenizer, *corpora = map(Path, sys.argv[1:])
    failed = False
    for corpus in corpora:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            datakit.tokenize(str(corpus), tokenizer=str(tokenizer), output=folder / "tokens")
            source = Parent(folder / "tokens" / "manifest.json", load(folder / "tokens" / "manifest.json"))
            batches, facts = list(source.rows()), source.manifest.facts["tokenizer"]
            lengths = np.concatenate([b.column("input_ids").value_lengths().to_numpy() for b in batches])
            for seq_len in SEQ_LENS:
                config = PackConfig(seq_len=seq_len, overflow="truncate")
                packed = Pack(config).prepare(iter(batches)).run(iter(batches), folder / f"once{seq_len}", facts)
                (_, _, counted), cut = packed.facts["sets"][0], np.minimum(lengths, seq_len + 1).astype(np.int64)
                density = counted["tokens"] / counted["slots"]
                rows = offline_rows(cut.tolist(), seq_len + 1), fewest_rows(cut, seq_len + 1)
                offline, most = (cut.sum() / (n * (seq_len + 1)) for n in rows)
                print(f"{corpus.stem:16} {seq_len:5}  density {density:.4f}  offline {offline:.4f}  at most {most:.4f}")
                failed |= density < max(min(LEAST, most * (1 - BEHIND)), offline * (1 - BEHIND))
                for packing in ("best_fit", "wrap"):
                    start = time.process_time()
                    stage = Pack(PackConfig(seq_len=seq_len, packing=packing)).prepare(iter(batches))
                    made = stage.run(iter(batches * REPEAT), folder / f"{packing}{seq_len}", facts)
                    speed = made.tokens.into / (time.process_time() - start) / 1e6
                    print(f"{corpus.stem:16} {seq_len:5}  {packing} {speed:.0f} Mtok/s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
