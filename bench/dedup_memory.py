"""Dedup's memory, disk and time by the number of rows, with much memory and with little.

    python bench/dedup_memory.py TEXTS.parquet 100_000 1_000_000 --memory-mb 1024 64

Rows of about 500 characters are put together from pieces of the texts; 20% are earlier rows with one word changed
(Jaccard similarity about 0.88) and 10% are exact copies. The command runs as its users run it; the memory of its whole
process tree is read 20 times a second: resident, and of that what is no mapped file (anonymous), which the system
cannot take back. Sums over processes count shared pages more than once, so they are upper bounds.
"""

import argparse
import contextlib
import json
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

PIECES, PIECE_WORDS = 10, 9


def make(path: Path, words: list[str], rows: int) -> tuple[int, int]:
    """Write rows; returns (exact copies, rows with one word changed)."""
    rng, earlier, exact, edited = random.Random(0), list[list[str]](), 0, 0
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            kind = rng.random() if earlier else 1.0
            if kind < 0.3:
                row = list(earlier[rng.randrange(len(earlier))])
                exact, edited = exact + (kind < 0.1), edited + (kind >= 0.1)
                if kind >= 0.1:
                    row[rng.randrange(8, len(row) - 8)] = f"edit{number}"
            else:
                starts = [rng.randrange(len(words) - PIECE_WORDS) for _ in range(PIECES)]
                row = [word for start in starts for word in words[start : start + PIECE_WORDS]]
                if len(earlier) < 200_000:
                    earlier.append(row)
            file.write(json.dumps({"text": " ".join(row)}) + "\n")
    return exact, edited


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += tree(int(child))
    return found


def memory_of(pid: int) -> tuple[float, float]:
    """(resident, anonymous) MB of a process tree; what has just ended counts nothing."""
    sums = [0.0, 0.0]
    try:
        for process in tree(pid):
            status = Path(f"/proc/{process}/status").read_text()
            for at, name in enumerate(("VmRSS", "RssAnon")):
                found = re.search(rf"{name}:\s+(\d+)", status)
                sums[at] += int(found[1]) / 1000 if found else 0
    except OSError:
        pass
    return sums[0], sums[1]


def sketched(output: Path) -> float:
    """MB of sketches that lie there now."""
    with contextlib.suppress(FileNotFoundError):  # the stage has just finished, and removes them
        return sum(f.stat().st_size for f in (output / ".work/sketches").glob("*.arrow")) / 1e6
    return 0.0


def run(source: Path, output: Path, memory_mb: int, workers: int) -> dict[str, object]:
    shutil.rmtree(output, ignore_errors=True)
    line = [sys.executable, "-m", "datakit", "dedup", str(source), "--output", str(output)]
    line += ["--memory-mb", str(memory_mb), "--workers", str(workers), "--kind", "text"]
    before, start, peak, disk = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), [0.0] * 4, 0.0
    with tempfile.TemporaryFile("w+") as said, subprocess.Popen(line, stderr=said, stdout=said) as process:
        while process.poll() is None:
            comparing = (output / ".work/reduce").is_dir() and not (output / ".work/split").is_dir()
            now = memory_of(process.pid)
            peak = [max(a, b) for a, b in zip(peak, (*now, *(m * comparing for m in now)), strict=True)]
            disk = max(disk, sketched(output))
            time.sleep(0.05)
        said.seek(0)
        text = said.read()
    if process.returncode:
        sys.exit(text)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    manifest = json.loads((output / "manifest.json").read_text())
    return {
        "version": manifest["version"],
        "wall": time.perf_counter() - start,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak": "peak {:.0f} MB resident, {:.0f} anonymous; while comparing {:.0f} and {:.0f}".format(*peak),
        "sketches": disk,
        "forecast": next((part for part in text.splitlines() if "of disk" in part), ""),
        "reduce": next((part.rsplit(",", 1)[-1] for part in text.splitlines() if "dedup: reduce: 1/1" in part), ""),
        "dropped": manifest["ledger"]["rows"]["dropped"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("rows", type=int, nargs="+")
    parser.add_argument("--memory-mb", type=int, nargs="+", default=[1024])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the rows and the results go for the while")
    args = parser.parse_args()
    words = " ".join(pq.read_table(args.texts, columns=["text"]).column("text").to_pylist()).split()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        for rows in args.rows:
            exact, edited = make(folder / "rows.jsonl", words, rows)
            size = (folder / "rows.jsonl").stat().st_size / 1e6
            print(f"{rows:,} rows, {size:.0f} MB; {exact:,} exact copies, {edited:,} with one word changed", flush=True)
            for memory_mb in args.memory_mb:
                found = run(folder / "rows.jsonl", folder / "out", memory_mb, args.workers)
                print(
                    f"  memory_mb {memory_mb}: {found['wall']:.1f} s, {found['cpu']:.1f} CPU s, reduce{found['reduce']}"
                )
                print(f"    {found['peak']}; sketches {found['sketches']:.0f} MB; {found['forecast']}")
                print(f"    {found['dropped']}; version {found['version']}", flush=True)


if __name__ == "__main__":
    main()
