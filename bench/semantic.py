"""Dedup by meaning: labelled paraphrases, and the cells beside a comparison of all pairs.

    python bench/semantic.py pairs [--model FOLDER] [--thresholds 0.8 0.9]   # precision and recall on paraphrases.tsv
    python bench/semantic.py brute ROWS.jsonl [--model FOLDER] [--cells 50]  # the same rows with numpy, all pairs

paraphrases.tsv has pairs of questions and sentences: `same` ones say the same, `other` ones share most of their words
and ask for something else. They are much harder than the rows of a real set, whose neighbours mostly share nothing.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from datakit.config import sha256_file
from datakit.dedup.embedding import load_model
from datakit.dedup.semantic import DedupSemantic, SemanticConfig
from datakit.engine.executors import Local, Progress, working
from datakit.stage import SketchFile

HERE = Path(__file__).resolve().parent


def labelled() -> list[list[str]]:
    return [line.split("\t") for line in (HERE / "paraphrases.tsv").read_text(encoding="utf-8").splitlines()]


def table(texts: list[str]) -> pa.RecordBatch:
    keys = pa.array(range(len(texts)), pa.uint64())
    return pa.record_batch({"row_key": keys, "id": keys.cast(pa.string()), "text": pa.array(texts, pa.string())})


def decide(stage: DedupSemantic, sketch: pa.RecordBatch) -> tuple[dict[int, int], dict[str, Any]]:
    """{dropped row: the row that stays} and the facts of the comparison."""
    with tempfile.TemporaryDirectory() as folder, working(Path(folder), "bench", Local(2), Progress()) as work:
        path, out = Path(folder) / "0.arrow", Path(folder) / "out"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, sketch.schema) as writer:
            writer.write_batch(sketch)
        compared = stage.compare([SketchFile(path, len(sketch), path.stat().st_size, sha256_file(path))], work)
        facts = compared.reduce([path], out, workers=2)
        found = pa.ipc.open_file(pa.memory_map(str(out))).read_all()
        keys, others = found.column("row_key").to_pylist(), map(int, found.column("duplicate_of").to_pylist())
        return dict(zip(keys, others, strict=True)), facts


def pairs(model: str, thresholds: list[float]) -> None:
    """Each pair is a data set of its own: rows of other pairs must not stand in for one of its rows."""
    rows = labelled()
    wanted = sum(label == "same" for label, *_ in rows)
    sketches = [DedupSemantic(SemanticConfig(model=model)).sketch(table(texts)) for _, *texts in rows]
    for threshold in thresholds:
        stage = DedupSemantic(SemanticConfig(model=model, max_loss=1.0, threshold=threshold))
        found = [label for (label, *_), sketch in zip(rows, sketches, strict=True) if decide(stage, sketch)[0]]
        right = found.count("same")
        rates = f"precision {right / max(len(found), 1):.3f} recall {right / wanted:.3f}"
        counts = f"{right} of {wanted} same, {len(found) - right} of {len(rows) - wanted} other"
        print(f"threshold {threshold:.2f}: {rates} ({counts})", flush=True)


def brute(path: Path, model: str, cells: int, threshold: float) -> None:
    """Decisions, beside a star over the matrix of all cosines in double precision."""
    texts = [row.get("text") or row["instruction"] for row in map(json.loads, path.read_text("utf-8").splitlines())]
    config = SemanticConfig(model=model, max_loss=1.0, threshold=threshold, cells=cells)
    sketch = DedupSemantic(config).sketch(table(texts))
    begin = time.process_time()
    ours, facts = decide(DedupSemantic(config), sketch)
    seconds = time.process_time() - begin
    vectors = load_model(model).embed(texts)[0].astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1)
    kept, stay = list[int](), np.empty_like(vectors)
    theirs = dict[int, int]()
    for row in range(len(texts)):
        near = stay[: len(kept)] @ vectors[row]
        alike = np.flatnonzero(near >= threshold - 0.0005)
        if len(alike):
            theirs[row] = kept[int(alike[0])]
        else:
            stay[len(kept)] = vectors[row]
            kept.append(row)
    same = sum(theirs.get(row) == other for row, other in ours.items())
    work = f"{facts['cells']} cells, {facts['pairs_compared']} comparisons, {seconds:.2f} CPU s"
    found = f"{len(ours)} dropped, all pairs: {len(theirs)}, the same row for the same row: {same}"
    print(f"{len(texts)} rows, {work}: {found}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pairs", "brute"])
    parser.add_argument("file", nargs="?", default="", help="rows for brute")
    parser.add_argument("--model", default="")
    parser.add_argument("--cells", type=int, default=0)
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.7, 0.8, 0.85, 0.9, 0.95])
    asked = parser.parse_args()
    if asked.what == "pairs":
        pairs(asked.model, asked.thresholds)
    for threshold in asked.thresholds if asked.what == "brute" else ():
        brute(Path(asked.file), asked.model, asked.cells, threshold)


if __name__ == "__main__":
    sys.exit(main())
