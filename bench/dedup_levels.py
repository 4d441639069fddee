"""Repeated lines and spans of sentences beside datatrove's.

    python bench/dedup_levels.py line|sentence TEXTS.jsonl.zst... --peer PYTHON

PYTHON is that of an environment made from peers/requirements-datatrove.txt. The commands read the same uncompressed
JSONL, cut into as many files as there are workers, and write what they keep; runs alternate, the best of each counts.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from measure import texts_of, timed

HERE = Path(__file__).resolve().parent


def kept(output: Path) -> tuple[int, int]:
    """(rows, characters of their texts) that are left."""
    texts = [text for path in (output / "kept").glob("*.*") for text in texts_of(path)]
    return len(texts), sum(map(len, texts))


def command(unit: str, paths: list[Path], peer: Path | None, repeats: int, workers: int, folder: Path) -> None:
    source = folder / "in"
    source.mkdir()
    texts = [text for path in paths for text in texts_of(path)]
    rows = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)]
    for number in range(workers):
        (source / f"{number}.jsonl").write_text("\n".join(rows[number::workers]) + "\n")
    inputs = sorted(map(str, source.glob("*.jsonl")))
    size = sum(Path(path).stat().st_size for path in inputs) / 1e6
    ours = [sys.executable, "-m", "datakit", "dedup-repeats", *inputs, "--unit", unit, "--workers", str(workers)]
    commands = {"datakit": [*ours, "--kind", "text", "--output", str(folder / "datakit")]}
    if peer:
        script = HERE / "peers" / "levels_datatrove.py"
        commands["datatrove"] = [str(peer), str(script), unit, str(source), str(folder / "datatrove"), str(workers)]
    best = {name: (float("inf"), float("inf")) for name in commands}
    for turn in range(repeats):
        for name, line in commands.items():
            wall, cpu, *_ = timed(line, folder / name)
            best[name] = (min(best[name][0], wall), min(best[name][1], cpu))
            left, characters = kept(folder / name)
            found = f"kept {left} of {len(rows)} rows, {characters / 1e6:.2f} M characters"
            print(f"run {turn + 1} {name}: {wall:.2f} s, {cpu:.2f} CPU s, {found}", flush=True)
    for name, (wall, cpu) in best.items():
        print(f"{name:<10} {size / wall:8.2f} MB/s {size / cpu:8.2f} MB per CPU s")
    if peer:
        ratios = [theirs / mine for mine, theirs in zip(best["datakit"], best["datatrove"], strict=True)]
        print(f"datakit is {ratios[0]:.0f} times as fast, and needs {ratios[1]:.0f} times less processor time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("unit", choices=["line", "sentence"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--peer", type=Path, help="the python of an environment with datatrove")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command(args.unit, args.files, args.peer, args.repeats, args.workers, Path(folder))


if __name__ == "__main__":
    main()
