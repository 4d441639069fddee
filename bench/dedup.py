"""Dedup: the signature kernel's speed, and the whole command compared with its peers.

    python bench/dedup.py kernel  TEXTS... --memory-peer PYTHON
    python bench/dedup.py command TEXTS... --cut 3000 --first 6668 --peer PYTHON --memory-peer PYTHON --daft PYTHON

PYTHON is that of an environment with peers/requirements-datatrove.txt, -inmemory.txt or -daft.txt. TEXTS are
JSONL (compressed or not) or Parquet. All commands read the same uncompressed JSONL; runs alternate, the best counts.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from measure import lines_of, texts_of, timed

from datakit.data import row_chunks, string_buffers
from datakit.dedup.minhash import shingle_sets, signatures
from datakit.dedup.stage import DedupConfig
from datakit.text.words import binary_digest, hash_words, normalize

HERE = Path(__file__).resolve().parent
Commands = dict[str, list[str]]


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """The least processor time of one thread over some runs, after one run that compiles."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def kernel(inputs: list[Path], repeats: int, memory_peer: Path | None) -> None:
    texts = pa.array([t for path in inputs for t in texts_of(path)], pa.string())
    config, size, offsets = DedupConfig(), texts.nbytes / 1e6, string_buffers(texts)[1]
    # as the stage gets them
    batches = [texts.slice(begin, end - begin) for begin, end in row_chunks(offsets, 16 << 20)]
    sets = [shingle_sets(batch, config.shingle_words) for batch in batches]
    values = f"{config.num_perm} values"
    works: dict[str, Callable[[], object]] = {
        "words": lambda: [hash_words(b) for b in batches],
        "words + shingle sets": lambda: [shingle_sets(b, config.shingle_words) for b in batches],
        values: lambda: [signatures(s, config.num_perm, config.seed) for s in sets],
        "normal form": lambda: [normalize(b) for b in batches],
        "digest": lambda: [binary_digest(b) for b in batches],
    }
    seconds = {name: cpu_seconds(work, repeats) for name, work in works.items()}
    shingles = sum(len(s.hashes) for s in sets) / 1e6
    print(f"{len(texts)} texts, {size:.1f} MB, {shingles:.1f} M distinct shingles; one core")
    for name, taken in seconds.items():
        print(f"  {name:<24} {size / taken:8.0f} MB per CPU second")
    whole = seconds["words + shingle sets"] + seconds[values]
    print(f"  {'text to signature':<24} {size / whole:8.0f} MB per CPU second, {len(texts) / whole:,.0f} texts")
    for name in ("datasketch", "rensa") if memory_peer else ():
        line = [str(memory_peer), str(HERE / "peers" / "inmemory.py"), "kernel", name, *map(str, inputs)]
        said = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
        speed = said["bytes"] / 1e6 / said["cpu"]
        print(f"  {name:<24} {speed:8.1f} MB per CPU second: ours is {size / whole / speed:.1f} times as fast")


def write_documents(paths: list[Path], cut: int, first: int, folder: Path) -> list[Path]:
    """Each file's texts, cut into documents of a number of characters (0: whole), the first of them, as JSONL."""
    folder.mkdir()
    made = []
    for number, path in enumerate(paths):
        texts = texts_of(path)
        parts = [t[i : i + cut] for t in texts for i in range(0, len(t), cut)] if cut else texts
        rows = [json.dumps({"id": f"{number}-{i}", "text": t}) for i, t in enumerate(parts[:first] if first else parts)]
        made.append(folder / f"{path.name.split('.')[0]}.jsonl")
        made[-1].write_text("\n".join(rows) + "\n", encoding="utf-8")
    return made


def commands(inputs: list[Path], folder: Path, args: argparse.Namespace) -> Commands:
    """Every program's command line; the folder `datakit` and the like in `folder` is its output."""
    names, peers, workers = list(map(str, inputs)), HERE / "peers", str(args.workers)
    ours = [sys.executable, "-m", "datakit", "dedup", *names, "--kind", "text", "--workers", workers]
    found: Commands = {"datakit": [*ours, "--output", str(folder / "datakit")]}
    if args.peer:
        script = [str(args.peer), str(peers / "minhash_datatrove.py")]
        found["datatrove"] = [*script, str(inputs[0].parent), str(folder / "datatrove"), workers]
    if args.daft:
        found["daft"] = [str(args.daft), str(peers / "dedup_daft.py"), *names, str(folder / "daft")]
    for name in ("datasketch", "rensa") if args.memory_peer else ():
        found[name] = [str(args.memory_peer), str(peers / "inmemory.py"), "search", name, *names]
    return found


def kept_rows(name: str, output: Path, said: str, rows: int) -> int:
    if name == "datakit":
        return int(json.loads((output / "manifest.json").read_text())["ledger"]["rows"]["kept"])
    if name == "datatrove":
        return sum(sum(1 for _ in gzip.open(path)) for path in (output / "kept").glob("*.jsonl.gz"))
    return rows - int(json.loads(said)["dropped"])


def command(inputs: list[Path], args: argparse.Namespace, folder: Path) -> None:
    """Compare whole commands. The peers in memory only count duplicates; the others write rows."""
    rows, size = sum(len(lines_of(p)) for p in inputs), sum(p.stat().st_size for p in inputs) / 1e6
    print(f"{rows} documents, {size:.1f} MB; {args.workers} workers")
    best: dict[str, tuple[float, float]] = {}
    for turn in range(args.repeats):
        for name, line in commands(inputs, folder, args).items():
            wall, cpu, said, _ = timed(line, folder / name)
            inner = f", of which its search {json.loads(said)['seconds']:.2f} s" if said.startswith("{") else ""
            kept = kept_rows(name, folder / name, said, rows)
            print(f"run {turn + 1} {name}: {wall:.2f} s, {cpu:.2f} CPU s{inner}, kept {kept} of {rows}", flush=True)
            before = best.get(name, (wall, cpu))
            best[name] = (min(before[0], wall), min(before[1], cpu))
    mine = best["datakit"]
    for name, (wall, cpu) in best.items():
        times = f"{wall / mine[0]:6.1f} x wall {cpu / mine[1]:6.1f} x CPU"
        print(f"{name:<10} {wall:8.2f} s {rows / wall:9.0f} docs/s {size / wall:7.2f} MB/s {times}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kernel", "command"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--peer", type=Path, help="the python of an environment with datatrove")
    parser.add_argument("--memory-peer", type=Path, help="the python of an environment with datasketch and rensa")
    parser.add_argument("--daft", type=Path, help="the python of an environment with daft, which takes all cores")
    parser.add_argument("--cut", type=int, default=0, help="characters of a document; 0: whole texts")
    parser.add_argument("--first", type=int, default=0, help="documents of each file; 0: all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        inputs = write_documents(args.files, args.cut, args.first, Path(name) / "in")
        if args.what == "kernel":
            kernel(inputs, args.repeats, args.memory_peer)
        else:
            command(inputs, args, Path(name))


if __name__ == "__main__":
    main()
