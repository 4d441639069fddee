"""A classifier on projects that it has not seen: guides and books are wanted, API listings are not.

    python bench/classifier.py corpora/web             # trains on books, the Rust book and the Node.js API
    python bench/classifier.py corpora/web --flip 0.1  # from scores instead, with one row of ten scored wrong

Measured on the English pages of Electron (tutorials against API pages), of the open source guides and of FastAPI. AUC
is the probability that a tutorial scores more than an API page.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

import datakit
from datakit.filter import fasttext_model
from datakit.filter.language import find
from datakit.manifest import load

WANTED = ("classic_books_en.parquet", "rust_book_en.jsonl.zst")
UNWANTED = ("nodejs_13_versions_en.jsonl.zst",)


def english(path: Path, part: str = "") -> Iterator[str]:
    with pa.input_stream(str(path)) as stream:
        for row in map(orjson.loads, stream.read().splitlines()):
            if row["lang"].startswith("en") and part in row["id"]:
                yield row["text"]


def judged(web: Path, folder: Path, flip: float) -> dict[str, Any]:
    """Rows with scores: right but for a share of them."""
    rng, lines = random.Random(0), []
    for name in (WANTED[1], *UNWANTED):
        with pa.input_stream(str(web / name)) as stream:
            for row in map(orjson.loads, stream.read().splitlines()):
                good = (name in WANTED) != (rng.random() < flip)
                lines.append(json.dumps(row | {"score": 0.9 if good else 0.1}) + "\n")
    (folder / "scored.jsonl").write_text("".join(lines))
    return {"data": [str(folder / "scored.jsonl")], "score_field": "score"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("web", type=Path, help="the folder of web corpora")
    parser.add_argument("--flip", type=float, help="learn from scores, with this share of them wrong")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        examples: dict[str, Any] = {
            "data": [str(args.web / n) for n in (*WANTED, *UNWANTED)], "positive": [f"*{n}" for n in WANTED]
        }  # fmt: skip
        if args.flip is not None:
            examples = judged(args.web, folder, args.flip)
        start = time.time()
        datakit.classifier(**examples, output=folder / "made")
        manifest = folder / "made" / "manifest.json"
        facts = load(manifest).facts["classifier"]
        print(f"{facts['rows']}, {time.time() - start:.0f} s; held out: {facts['dev']}")
        model = fasttext_model.load(find(str(manifest)))
    unseen = {
        "electron tutorials": list(english(args.web / "electron_8_langs.jsonl.zst", "/docs/tutorial/")),
        "electron API": list(english(args.web / "electron_8_langs.jsonl.zst", "/docs/api/")),
        "opensource guide": list(english(args.web / "opensource_guide_28_langs.jsonl.gz")),
        "fastapi": list(english(args.web / "fastapi_docs_13_langs.jsonl.gz")),
    }
    scores = {name: model.predict(pa.array(texts, pa.string()), "positive")[1] for name, texts in unseen.items()}
    for name, found in scores.items():
        print(
            f"{name}: {len(found)} rows, median score {np.median(found):.3f}, {(found >= 0.5).mean():.1%} stay at 0.5"
        )
    tutorials, api = scores["electron tutorials"], scores["electron API"]
    print(f"electron, tutorials against API: AUC {(tutorials[:, None] > api[None]).mean():.3f}")


if __name__ == "__main__":
    main()
