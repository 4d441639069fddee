"""Dedup: the signature kernel's speed, recall by similarity beside the theory, and the whole command beside datatrove.

    python bench/dedup.py kernel  TEXTS.jsonl.zst...
    python bench/dedup.py recall  TEXTS.jsonl.zst PAIRS.jsonl.zst    # pairs: {"a": id, "b": id, "jaccard_word5": ...}
    python bench/dedup.py command TEXTS.jsonl.zst... --peer PYTHON   # PYTHON: peers/requirements-datatrove.txt

Both commands read the same uncompressed JSONL and write what they keep; runs alternate, the best of each counts.
"""

import argparse
import gzip
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from datakit.dedup._kernels_sets import shared_values
from datakit.dedup.config import DedupConfig
from datakit.dedup.minhash import band_hashes, shingle_sets, signatures
from datakit.text.buffers import row_chunks, string_buffers
from datakit.text.normalize import binary_digest, normalize
from datakit.text.words import hash_words

HERE = Path(__file__).resolve().parent


def lines_of(path: Path) -> list[bytes]:
    with pa.input_stream(str(path)) as stream:
        return stream.read().splitlines()


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """Least processor time of one thread over some runs, after one that compiles."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def batches_of(texts: pa.Array) -> list[pa.Array]:
    """Texts cut into batches of about 16 MB, as the stage gets them."""
    offsets = string_buffers(texts)[1]
    return [texts.slice(begin, end - begin) for begin, end in row_chunks(offsets, 16 << 20)]


def kernel(paths: list[Path], repeats: int) -> None:
    texts = pa.array([json.loads(line)["text"] for path in paths for line in lines_of(path)], pa.string())
    config, batches, size = DedupConfig(), batches_of(texts), texts.nbytes / 1e6
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
    print(
        f"{len(texts)} texts, {size:.1f} MB, {sum(len(s.hashes) for s in sets) / 1e6:.1f} M distinct shingles; one core"
    )
    for name, taken in seconds.items():
        print(f"  {name:<24} {size / taken:8.0f} MB per CPU second")
    whole = seconds["words + shingle sets"] + seconds[values]
    print(f"  {'text to signature':<24} {size / whole:8.0f} MB per CPU second, {len(texts) / whole:,.0f} texts")


def recall(texts_path: Path, pairs_path: Path, seeds: int) -> None:
    """Share of pairs that share a band, by similarity: candidates, before verification."""
    texts = {row["id"]: row["text"] for row in map(json.loads, lines_of(texts_path))}
    pairs = [json.loads(line) for line in lines_of(pairs_path)]
    config, number = DedupConfig(), {name: i for i, name in enumerate(texts)}
    sets = shingle_sets(normalize(pa.array(texts.values(), pa.string())), config.shingle_words)
    a, b = (np.array([number[pair[side]] for pair in pairs]) for side in "ab")
    rows = [sets.hashes[begin:end] for begin, end in zip(sets.starts, sets.starts[1:], strict=False)]
    shared = np.array([shared_values(rows[i], rows[j], 0) for i, j in zip(a, b, strict=True)])
    length = np.diff(sets.starts)
    similarity = shared / (length[a] + length[b] - shared)
    stated = np.array([pair["jaccard_word5"] for pair in pairs])
    print(f"{len(pairs)} pairs; our exact similarity differs from the stated by {abs(similarity - stated).max():.5f}")
    found = np.zeros(len(pairs))
    for seed in range(seeds):
        values = signatures(sets, config.num_perm, seed)
        bands = band_hashes(values, config.num_bands, config.rows_per_band)
        found += (bands[a] == bands[b]).any(axis=1)
    found /= seeds
    theory = np.array([1 - (1 - s**config.rows_per_band) ** config.num_bands for s in similarity])
    print(f"similarity   pairs   found   theory   off   ({seeds} seeds; theory averaged over the same pairs)")
    for low in range(0, 100, 5):
        inside = (similarity >= low / 100) & (similarity < (low + 5) / 100)
        if inside.any():
            share, expected = found[inside].mean(), theory[inside].mean()
            bucket = f"{low / 100:.2f}-{(low + 5) / 100:.2f} {inside.sum():9}"
            print(f"{bucket} {share:7.3f} {expected:8.3f} {share - expected:+.3f}")


def timed(command: list[str], output: Path) -> tuple[float, float]:
    """(wall, processor) seconds of a command with all its processes."""
    shutil.rmtree(output, ignore_errors=True)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def kept_rows(name: str, output: Path) -> int:
    if name == "datakit":
        return json.loads((output / "manifest.json").read_text())["ledger"]["rows"]["kept"]
    return sum(sum(1 for _ in gzip.open(path)) for path in (output / "kept").glob("*.jsonl.gz"))


def command(paths: list[Path], peer: Path | None, repeats: int, workers: int, folder: Path) -> None:
    source, rows = folder / "in", 0
    source.mkdir()
    for path in paths:
        lines = lines_of(path)
        (source / path.name.removesuffix(".zst")).write_bytes(b"\n".join(lines) + b"\n")
        rows += len(lines)
    inputs = sorted(map(str, source.glob("*.jsonl")))
    ours = [sys.executable, "-m", "datakit", "dedup", *inputs, "--kind", "text", "--workers", str(workers)]
    commands = {"datakit": [*ours, "--output", str(folder / "datakit")]}
    if peer:
        script = HERE / "peers" / "minhash_datatrove.py"
        commands["datatrove"] = [str(peer), str(script), str(source), str(folder / "datatrove"), str(workers)]
    best = {name: (float("inf"), float("inf")) for name in commands}
    for turn in range(repeats):
        for name, line in commands.items():
            wall, cpu = timed(line, folder / name)
            best[name] = (min(best[name][0], wall), min(best[name][1], cpu))
            print(
                f"run {turn + 1} {name}: {wall:.2f} s, {cpu:.2f} CPU s, kept {kept_rows(name, folder / name)} of {rows}"
            )
    size = sum(Path(path).stat().st_size for path in inputs) / 1e6
    for name, (wall, cpu) in best.items():
        print(f"{name:<10} {rows / wall:9.1f} docs/s {size / wall:8.2f} MB/s   {rows / cpu:9.1f} docs/CPU s")
    if peer:
        ratios = [theirs / mine for mine, theirs in zip(best["datakit"], best["datatrove"], strict=True)]
        print(f"datakit is {ratios[0]:.0f} times as fast, and needs {ratios[1]:.0f} times less processor time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kernel", "recall", "command"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--peer", type=Path, help="the python of an environment with datatrove")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    if args.what == "kernel":
        kernel(args.files, args.repeats)
    elif args.what == "recall":
        recall(*args.files, args.seeds)
    else:
        with tempfile.TemporaryDirectory() as folder:
            command(args.files, args.peer, args.repeats, args.workers, Path(folder))


if __name__ == "__main__":
    main()
