"""The whole line, raw JSON lines to packed rows on two workers: MB/s by stage and in total, beside datatrove's stages.

    python bench/line.py ../shared/tokenizers/smollm ../shared/corpora/web/* --megabytes 8 --peer PEER_PYTHON

Rows are dealt out to four JSONL files, because datatrove splits no file. Both sides then ingest, name the language,
drop near duplicates, apply Gopher's, C4's and FineWeb's rules, and tokenize; datakit packs into bin2d, datatrove writes
one row of ids. MB are those of the raw lines for every stage.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from measure import lines_of, texts_of, timed

from datakit.filter.language import find

HERE = Path(__file__).resolve().parent
FILES = 4
STAGES = ("ingest", "language", "dedup", "filter", "tokenize", "pack")
RULES = ("gopher_repetition", "gopher_quality", "c4", "fineweb")


def records_of(path: Path) -> list[bytes]:
    if path.suffix == ".parquet":
        return [json.dumps({"id": f"{path.stem}-{i}", "text": t}).encode() for i, t in enumerate(texts_of(path))]
    return lines_of(path)


def deal(corpora: list[Path], megabytes: float, into: Path) -> float:
    """Write the rows, or about so many megabytes of them from all over; returns how many megabytes."""
    lines = [line for path in corpora for line in records_of(path)]
    size = sum(map(len, lines)) / 1e6
    lines = lines[:: max(1, round(size / megabytes)) if megabytes else 1]
    into.mkdir()
    for i in range(FILES):
        (into / f"part{i}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines[i::FILES]))
    return sum(map(len, lines)) / 1e6


def report(name: str, size: float, wall: float, cpu: float, seconds: dict[str, float]) -> None:
    stages = "  ".join(f"{stage} {size / s:.2f}" for stage, s in seconds.items())
    total = f"total {size / wall:.2f} MB/s ({wall:.1f} s, {cpu:.1f} CPU s)"
    print(f"{name:<10} {size:.1f} MB  {total}  {stages}", flush=True)


def ours(folder: Path, source: Path, tokenizer: Path, workers: int) -> tuple[float, float, dict[str, float]]:
    datakit = [sys.executable, "-m", "datakit"]
    inputs = sorted(map(str, source.glob("*.jsonl")))
    timed([*datakit, "init", "line", *inputs, "--kind", "text", "--tokenizer", str(tokenizer)], cwd=folder)
    command = [*datakit, "run", "--dataset", "line", "--workers", str(workers)]
    wall, cpu, *_ = timed([*command, "--set", f"filter.rules={','.join(RULES)}"], cwd=folder)
    runs = {s: json.loads((folder / f"manifests/line/{s}.run.json").read_text()) for s in STAGES}
    return wall, cpu, {stage: run["seconds"] for stage, run in runs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path, help="a folder with a tokenizer.json")
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--megabytes", type=float, default=0, help="about so much of all; 0: everything")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peer", type=Path, help="the python of an environment with datatrove")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, tokenizer = Path(scratch), args.tokenizer.resolve()
        size = deal(args.corpora, args.megabytes, folder / "raw")
        wall, cpu, seconds = ours(folder, folder / "raw", tokenizer, args.workers)
        report("datakit", size, wall, cpu, seconds)
        if args.peer:
            script = [str(args.peer.absolute()), str(HERE / "peers" / "line_datatrove.py")]
            given = [str(folder / "raw"), str(folder / "peer"), str(args.workers), str(tokenizer / "tokenizer.json")]
            their_wall, their_cpu, said, _ = timed([*script, *given, str(find("lid.176"))], cwd=folder)
            report("datatrove", size, their_wall, their_cpu, json.loads(said.splitlines()[-1]))
            print(f"datakit is {their_wall / wall:.0f} times as fast, with {their_cpu / cpu:.0f} times less CPU time")


if __name__ == "__main__":
    main()
