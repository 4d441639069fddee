"""Conversations deduplicated by other libraries, on the joined text of their turns.

    python turns.py minhash|semhash|datatrove ROWS.jsonl     # prints {dropped id: id of the row that stays} as JSON

minhash is what text-dedup does: MinHash of word 5-grams, LSH for a Jaccard similarity of 0.7 with 256 values, the rows
of a cluster of candidates joined by union-find (with datasketch). semhash uses its defaults, with the vectors of
wordllama, which brings its weights. datatrove runs its four stages and tells which rows stayed, not for which row.
Environments: requirements-turns.txt, requirements-datatrove.txt.
"""

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

NGRAM, THRESHOLD, NUM_PERM = 5, 0.7, 256


def read(path: str) -> list[tuple[str, str]]:
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return [(r["id"], "\n\n".join(m["content"] or m.get("tool_calls", "") for m in r["messages"])) for r in rows]


def minhash(rows: list[tuple[str, str]]) -> dict[str, str]:
    from datasketch import MinHash, MinHashLSH

    index, parent = MinHashLSH(threshold=THRESHOLD, num_perm=NUM_PERM), {}
    for name, text in rows:
        words = [w for w in re.split(r"\W+", text.lower()) if w]
        grams = {" ".join(words[i : i + NGRAM]).encode() for i in range(max(len(words) - NGRAM + 1, 1))}
        made = MinHash(num_perm=NUM_PERM)
        made.update_batch(list(grams))
        found = [parent[other] for other in index.query(made)]
        root = min(found, default=name)
        parent[name] = root
        for other, old in parent.items():
            if old in found:
                parent[other] = root
        index.insert(name, made)
    return {name: root for name, root in parent.items() if name != root}


def semhash(rows: list[tuple[str, str]]) -> dict[str, str]:
    import numpy as np
    import wordllama
    from safetensors.numpy import load_file
    from semhash import SemHash
    from tokenizers import Tokenizer

    # WordLlama.load of 0.4.0.post1 does not find the tokenizer in its own package: its files are read here
    folder = Path(wordllama.__file__).parent
    (table,) = load_file(folder / "weights/l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()

    class Encoder:
        def encode(self, texts: list[str], **_: Any) -> Any:
            found = tokenizer.encode_batch(list(texts), add_special_tokens=False)
            means = np.array([table[one.ids].astype(np.float32).mean(axis=0) for one in found])
            return means / np.linalg.norm(means, axis=1, keepdims=True)

    records = [{"id": name, "text": text} for name, text in rows]
    found = SemHash.from_records(records, columns=["text"], model=Encoder()).self_deduplicate()
    of = {}
    for drop in getattr(found, "filtered", None) or found.duplicates:
        others = [(r["id"] if isinstance(r, dict) else r[0]["id"]) for r in drop.duplicates]
        name = drop.record["id"]
        of[name] = next((o for o in others if o[:-1] == name[:-1]), others[0] if others else "?")
    return {name: other for name, other in of.items() if other not in of}


def datatrove(rows: list[tuple[str, str]]) -> dict[str, str]:
    import gzip

    from datatrove.pipeline.readers import JsonlReader
    from datatrove_stages import minhash as stages
    from datatrove_stages import run

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "in"
        folder.mkdir()
        (folder / "rows.jsonl").write_text("\n".join(json.dumps({"id": n, "text": t}) for n, t in rows), "utf-8")
        read = JsonlReader(str(folder), glob_pattern="*.jsonl")
        run(stages(read, f"{scratch}/kept", scratch, 1), f"{scratch}/logs", 1)
        kept = set()
        for file in Path(scratch, "kept").rglob("*.jsonl.gz"):
            kept |= {json.loads(line)["id"] for line in gzip.decompress(file.read_bytes()).decode().splitlines()}
    pair = {"a": "b", "b": "a"}
    return {n: n[:-1] + pair[n[-1]] for n, _ in rows if n not in kept and n[:-1] + pair[n[-1]] in kept}


if __name__ == "__main__":
    ways = {"minhash": minhash, "semhash": semhash, "datatrove": datatrove}
    print(json.dumps(ways[sys.argv[1]](read(sys.argv[2]))))
