"""Dedup by the number of rows: time, memory of the process tree, disk, and whether the known duplicates are found.

    python bench/dedup_scale.py make TEXTS.parquet ROWS FILE.jsonl       # deterministic; also FILE.truth.json
    python bench/dedup_scale.py run FILE.jsonl... [--memory-mb 1024] [--limit-mb N]

Rows of about 500 characters are made of pieces of the texts. 10% are exact copies of earlier rows, 8% have one word
changed (Jaccard similarity 0.89), 6% two (0.79), and 6% three (0.70: no duplicates). A row's id says which row it was
made from, so that every drop can be checked. The command runs as its users run it. The memory of its process tree is
read four times a second as PSS (shared pages are counted once): the total, and the part that is no mapped file, which
the system cannot take back. --limit-mb is RLIMIT_DATA, a hard limit on that part for each process.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measure import memory_of, size_of, timed

PIECES, PIECE_WORDS = 10, 9
BLOCK = 100_000
KINDS = {"c0": 0.10, "e1": 0.08, "e2": 0.06, "e3": 0.06}
"""Exact copies, and rows with so many words changed: shares of all rows."""
EDITED = (12, 42, 72)  # the words that are changed: no shingle holds two of them


def make(texts: Path, rows: int, out: Path) -> None:
    """Write the rows; a shorter file has the first rows of a longer one."""
    found = " ".join(pq.read_table(texts, columns=["text"]).column("text").to_pylist()).split()
    words = [w for w in found if w.isprintable() and '"' not in w and "\\" not in w]
    text, ends = " ".join(words), np.cumsum([0, *(len(w) + 1 for w in words)])
    begins, stops = ends.tolist(), (ends[PIECE_WORDS:] - 1).tolist()
    originals, made, counts = np.empty((rows, PIECES), np.int32), 0, Counter[str]()
    edges = np.cumsum(list(KINDS.values()))
    with out.open("w", encoding="utf-8") as file:
        for block in range(0, rows, BLOCK):
            rng = np.random.default_rng([7, block])
            starts = rng.integers(0, len(words) - PIECE_WORDS, (BLOCK, PIECES), dtype=np.int32)
            kinds = np.searchsorted(edges, rng.random(BLOCK), side="right").tolist()
            earlier = rng.random(BLOCK).tolist()
            for i in range(min(BLOCK, rows - block)):
                kind = (*KINDS, "o0")[kinds[i]] if made else "o0"
                family = int(earlier[i] * made) if kind != "o0" else made
                if kind == "o0":
                    originals[made] = starts[i]
                    made += 1
                pieces = originals[family].tolist()
                row = " ".join([text[begins[s] : stops[s]] for s in pieces])
                if kind in ("e1", "e2", "e3"):
                    split = row.split(" ")
                    for word in EDITED[: int(kind[1])]:
                        split[word] = f"edit{block + i}"
                    row = " ".join(split)
                counts[kind] += 1
                file.write(f'{{"id": "{family:08d}-{kind}-{block + i:08d}", "text": "{row}"}}\n')
    out.with_suffix(".truth.json").write_text(json.dumps({"rows": rows, **counts}))
    print(f"{rows:,} rows, {out.stat().st_size / 1e6:,.0f} MB: {dict(counts)}")


def run(source: Path, output: Path, memory_mb: int, workers: int, limit_mb: int) -> None:
    """Run the command once; print its time, memory and disk, and what it found."""
    line = [sys.executable, "-m", "datakit", "dedup", str(source), "--output", str(output), "--kind", "text"]
    line += ["--memory-mb", str(memory_mb), "--workers", str(workers)]
    line = ["prlimit", f"--data={limit_mb << 20}", *line] if limit_mb else line
    peak, disk = [0.0, 0.0], [0.0]

    def look(pid: int) -> None:
        peak[:] = map(max, peak, memory_of(pid, "Pss", "Pss_Anon"))
        disk.append(size_of(output))
        time.sleep(0.25)

    wall, cpu, _, told = timed(line, output, source.parent, look)
    rows = json.loads(source.with_suffix(".truth.json").read_text())["rows"]
    print(f"{rows:,} rows: {wall:.1f} s, {cpu:.1f} CPU s ({cpu / rows * 1e6:.1f} us a row), {rows / wall:,.0f} rows/s")
    print(f"  peak of the tree: {peak[0]:.0f} MB, {peak[1]:.0f} without mapped files; disk {max(disk):,.0f} MB")
    print("  " + "\n  ".join(part for part in told.splitlines() if part.endswith(" s")))
    judge(source, output)


def judge(source: Path, output: Path) -> None:
    """Compare every drop with the known duplicates."""
    truth = json.loads(source.with_suffix(".truth.json").read_text())
    manifest = json.loads((output / "manifest.json").read_text())
    paths = [output / s["path"] for s in manifest["shards"] if s["path"].startswith("dropped/")]
    columns = ["id", "reason", "duplicate_of", "similarity"]
    dropped = pa.concat_tables([pq.read_table(path, columns=columns) for path in paths])
    family, survivor = (pc.utf8_slice_codeunits(dropped[name], 0, 8) for name in ("id", "duplicate_of"))
    kinds = pc.utf8_slice_codeunits(dropped["id"], 9, 11)
    found = Counter(dict(zip(*(c.to_pylist() for c in pc.value_counts(kinds).flatten()), strict=True)))
    wrong = dropped.num_rows - (pc.sum(pc.equal(family, survivor)).as_py() or 0)
    share = {kind: round(found[kind] / truth[kind], 5) for kind in KINDS}
    print(f"  dropped of each kind: {share}, originals {found['o0']}; for a row of another family: {wrong}")
    total = hashlib.sha256("\n".join(map(str, dropped.to_pylist())).encode()).hexdigest()[:12]
    least = pc.min(dropped["similarity"]).as_py()
    print(f"  drops {total}; least similarity {least}; version {manifest['version']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    todo = parser.add_subparsers(dest="todo", required=True)
    making, running = (todo.add_parser(name) for name in ("make", "run"))
    making.add_argument("texts", type=Path)
    making.add_argument("rows", type=int)
    making.add_argument("out", type=Path)
    running.add_argument("files", type=Path, nargs="+")
    running.add_argument("--memory-mb", type=int, default=1024)
    running.add_argument("--limit-mb", type=int, default=0)
    running.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if args.todo == "make":
        make(args.texts, args.rows, args.out)
        return
    for source in map(Path.resolve, args.files):
        with tempfile.TemporaryDirectory(dir=source.parent) as folder:
            run(source, Path(folder) / "out", args.memory_mb, args.workers, args.limit_mb)


if __name__ == "__main__":
    main()
