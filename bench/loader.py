"""The loader alone, from packed rows on disk to batches: ours beside mosaicml-streaming and litdata.

    python bench/loader.py TOKENIZER FILE... [--peer PYTHON] [--batch-rows 8,64,256] [--workers 0,2]

The files are packed at `--seq-len`, and the peers get the very same ids in their own formats, each with its quickest
settings for rows of one length. GB/s are bytes of stored ids a second, over whole shuffled epochs, by the wall and by
processor time; ours also finds boundaries and labels, checks both, and makes every tensor that the model takes
(positions, targets, groups), which the peers do not.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

sys.path[0] = str(Path(__file__).resolve().parents[1])
from train.data import DataConfig, PackedSet, StepStream  # noqa: E402


def ours(data: PackedSet, batch_rows: int, workers: int, seconds: float) -> dict[str, Any]:
    """Rates over whole epochs, for at least `seconds`."""
    config = DataConfig(batch_rows=batch_rows, num_workers=workers, bucket_sizes=(data.header.seq_len,))
    stream = StepStream(data, config, seed=0)
    steps, rows, passes, begin, cpu = iter(stream), 0, 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        rows += sum(len(batch.rows) for _ in range(stream.plan.steps_per_epoch) for batch in next(steps))
        passes += 1
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    gb = rows * data.header.stride * data.packed.ids.dtype.itemsize / 1e9
    return {
        "loader": "train.data", "batch_rows": batch_rows, "workers": workers,
        "rows": rows, "passes": passes, "gb_s": round(gb / wall, 4), "gb_cpu_s": round(gb / cpu, 4),
    }  # fmt: skip


def packed(tokenizer: str, files: list[str], seq_len: int, out: str) -> Path:
    """The manifest of the files, packed."""
    command = [sys.executable, "-m", "datakit", "pack", *files, "--tokenizer", tokenizer, "--seq-len", str(seq_len)]
    subprocess.run([*command, "--output", out], check=True, stdout=subprocess.DEVNULL)
    return Path(out) / "manifest.json"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tokenizer")
    p.add_argument("files", nargs="*")
    p.add_argument("--manifest", help="rows that are packed already, instead of files")
    p.add_argument("--seq-len", type=int, default=1024)
    p.add_argument("--batch-rows", default="8,64,256")
    p.add_argument("--workers", default="0,2")
    p.add_argument("--seconds", type=float, default=3.0)
    p.add_argument("--peer", help="interpreter of an environment with mosaicml-streaming and litdata")
    a = p.parse_args()
    torch.set_num_threads(1)
    script = Path(__file__).resolve().parent / "peers" / "loaders.py"
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(a.manifest) if a.manifest else packed(a.tokenizer, a.files, a.seq_len, f"{folder}/packed")
        data = PackedSet.open_all(manifest)[0]
        print(f"{len(data.lengths):,} rows of {data.header.stride} ids, {data.packed.ids.nbytes / 1e6:.0f} MB")
        for batch_rows in map(int, a.batch_rows.split(",")):
            for workers in map(int, a.workers.split(",")):
                print(json.dumps(ours(data, batch_rows, workers, a.seconds)), flush=True)
                for name in ("streaming", "litdata") if a.peer else ():
                    out = f"{folder}/{name}.{batch_rows}.{workers}"
                    place = str(data.packed.ids.base.filename)
                    call = [a.peer, str(script), name, place, *map(str, (data.header.stride, batch_rows, workers))]
                    done = subprocess.run([*call, str(a.seconds), out], capture_output=True, text=True, check=False)
                    said = done.stderr[-500:] if done.returncode else done.stdout.strip().splitlines()[-1]
                    print(said, flush=True)


if __name__ == "__main__":
    main()
