"""Lines, spans and n-grams beside datatrove's, substrings beside a suffix array, and the Bloom filter's measured rates.

    python bench/dedup_levels.py lines|spans|ngrams TEXTS.jsonl.zst... --peer PYTHON
    python bench/dedup_levels.py substrings TEXTS.jsonl...     # needs pydivsufsort
    python bench/dedup_levels.py rates

PYTHON is that of an environment made from peers/requirements-datatrove.txt. The commands read the same uncompressed
JSONL, cut into as many files as there are workers, and write what they keep; runs alternate, the best of each counts.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from dedup import texts_of, timed

from datakit.dedup import _kernels_ngrams as kernels
from datakit.dedup.exact import Memory
from datakit.dedup.ngrams import PROBES, make_filter

HERE = Path(__file__).resolve().parent


def kept(name: str, output: Path) -> tuple[int, int]:
    """(rows, characters of their texts) that are left."""
    if name == "datakit":
        files = [pq.read_table(path, columns=["text"]).column("text") for path in (output / "kept").glob("*.parquet")]
        texts = [text for column in files for text in column.to_pylist()]
    else:
        found = [gzip.decompress(path.read_bytes()) for path in (output / "kept").glob("*.jsonl.gz")]
        texts = [json.loads(line)["text"] for data in found for line in data.splitlines()]
    return len(texts), sum(map(len, texts))


def command(level: str, paths: list[Path], peer: Path | None, repeats: int, workers: int, folder: Path) -> None:
    source = folder / "in"
    source.mkdir()
    texts = [text for path in paths for text in texts_of(path)]
    rows = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)]
    for number in range(workers):
        (source / f"{number}.jsonl").write_text("\n".join(rows[number::workers]) + "\n")
    inputs = sorted(map(str, source.glob("*.jsonl")))
    size = sum(Path(path).stat().st_size for path in inputs) / 1e6
    ours = [sys.executable, "-m", "datakit", f"dedup-{level}", *inputs, "--kind", "text", "--workers", str(workers)]
    if level == "ngrams":
        ours += ["--remove", "document"]
    commands = {"datakit": [*ours, "--output", str(folder / "datakit")]}
    if peer:
        script = HERE / "peers" / "levels_datatrove.py"
        commands["datatrove"] = [str(peer), str(script), level, str(source), str(folder / "datatrove"), str(workers)]
    best = {name: (float("inf"), float("inf")) for name in commands}
    for turn in range(repeats):
        for name, line in commands.items():
            wall, cpu, _ = timed(line, folder / name)
            best[name] = (min(best[name][0], wall), min(best[name][1], cpu))
            left, characters = kept(name, folder / name)
            print(
                f"run {turn + 1} {name}: {wall:.2f} s, {cpu:.2f} CPU s, kept {left} of {len(rows)} rows, "
                f"{characters / 1e6:.2f} M characters",
                flush=True,
            )
    for name, (wall, cpu) in best.items():
        print(f"{name:<10} {size / wall:8.2f} MB/s {size / cpu:8.2f} MB per CPU s")
    if peer:
        ratios = [theirs / mine for mine, theirs in zip(best["datakit"], best["datatrove"], strict=True)]
        print(f"datakit is {ratios[0]:.0f} times as fast, and needs {ratios[1]:.0f} times less processor time")


SUFFIX_ARRAY = """
import sys, time
from pathlib import Path
import pyarrow.parquet as pq
from pydivsufsort import divsufsort
tables = [pq.read_table(path, columns=["text"]) for path in sorted(Path(sys.argv[1]).glob("*.parquet"))]
texts = [text for table in tables for text in table["text"].to_pylist()]
data = "\\n".join(texts).encode()
del texts
begin = time.process_time()
divsufsort(data)
print(len(data) / 1e6, time.process_time() - begin)
"""


def substrings(paths: list[Path], folder: Path) -> None:
    """The stage on rows that were ingested, and the construction of a suffix array over the same texts alone: finding
    and cutting repeats in it would come on top."""
    ingest = [sys.executable, "-m", "datakit", "ingest", *map(str, paths), "--kind", "text"]
    timed([*ingest, "--output", str(folder / "rows")], folder / "rows")
    ours = [sys.executable, "-m", "datakit", "dedup-substrings", str(folder / "rows"), "--workers", "1"]
    wall, cpu, _ = min(timed([*ours, "--output", str(folder / "out")], folder / "out") for _ in range(2))
    done = subprocess.run(
        [sys.executable, "-c", SUFFIX_ARRAY, str(folder / "rows" / "kept")], capture_output=True, text=True, check=True
    )
    size, seconds = map(float, done.stdout.split())
    print(f"{size:.0f} MB of text. dedup-substrings: {wall:.1f} s, {cpu:.1f} CPU s, {size / cpu:.1f} MB per CPU s")
    print(f"suffix array (divsufsort) alone: {seconds:.1f} CPU s, {size / seconds:.1f} MB per CPU s")


def rates(keys: int) -> None:
    print(f"{keys:,} keys, {PROBES:,} probes: rate asked for, measured; bits a key, hashes, a filter of one piece")
    for rate in (0.1, 0.01, 0.001, 1e-4, 1e-5):
        made = make_filter(keys, rate, Memory(1 << 40, Path()))
        hashes = np.random.default_rng(1).integers(0, 1 << 64, keys, np.uint64)
        kernels.insert(made.bits, hashes, made.num_hashes)
        single = -np.log(rate) / np.log(2) ** 2
        bits = made.bits.nbytes * 8 / keys
        print(f"  {rate:<8g} {made.measured_rate():.3g}   {bits:.2f} {made.num_hashes} {single:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["lines", "spans", "ngrams", "substrings", "rates"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--peer", type=Path, help="the python of an environment with datatrove")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if args.what == "rates":
        rates(10_000_000)
    elif args.what == "substrings":
        with tempfile.TemporaryDirectory() as folder:
            substrings(args.files, Path(folder))
    else:
        with tempfile.TemporaryDirectory() as folder:
            command(args.what, args.files, args.peer, args.repeats, args.workers, Path(folder))


if __name__ == "__main__":
    main()
