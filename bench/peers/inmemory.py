"""datasketch's and rensa's near-duplicate search in memory, each in the fastest way that it offers from Python.

    python inmemory.py kernel|search datasketch|rensa FILES.jsonl...      # environment: requirements-inmemory.txt

`kernel` times what is needed from text to 112 values a text: words, shingles of 5 words as the library takes them, the
values. `search` times that and the library's search, 14 bands of 8 values. Both print JSON.
"""

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

NUM_PERM, BANDS = 112, 14
WORD = re.compile(r"\w+")


def shingles(text: str) -> list[str]:
    words = WORD.findall(text.lower())
    return [" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))]


def datasketch_signatures(texts: Iterable[str]) -> Iterator[Any]:
    from datasketch import MinHash

    for text in texts:
        signature = MinHash(num_perm=NUM_PERM, scheme="affine32")
        signature.update_batch({s.encode() for s in shingles(text)})
        yield signature


def datasketch_search(texts: list[str]) -> int:
    from datasketch import MinHashLSH

    index, dropped = MinHashLSH(num_perm=NUM_PERM, params=(BANDS, NUM_PERM // BANDS)), 0
    for i, signature in enumerate(datasketch_signatures(texts)):
        if index.query(signature):
            dropped += 1
        else:
            index.insert(i, signature)
    return dropped


def rensa_signatures(texts: Iterable[str]) -> Any:
    import rensa

    return rensa.RMinHash.digest_matrix_from_token_sets(map(shingles, texts), NUM_PERM, 42)


def rensa_search(texts: list[str]) -> int:
    import rensa

    index, dropped = rensa.RMinHashDeduplicator(threshold=0.75, num_perm=NUM_PERM, use_lsh=True, num_bands=BANDS), 0
    for i, text in enumerate(texts):
        signature = rensa.RMinHash(num_perm=NUM_PERM, seed=42)
        signature.update(shingles(text))
        if index.is_duplicate(str(i), signature):
            dropped += 1
        else:
            index.add(str(i), signature)
    return dropped


def main(what: str, library: str, paths: list[str]) -> None:
    texts = [json.loads(line)["text"] for path in paths for line in Path(path).read_bytes().splitlines()]
    works = {
        ("kernel", "datasketch"): lambda: sum(0 for _ in datasketch_signatures(texts)),
        ("kernel", "rensa"): lambda: rensa_signatures(texts) and 0,
        ("search", "datasketch"): lambda: datasketch_search(texts),
        ("search", "rensa"): lambda: rensa_search(texts),
    }
    work = works[what, library]
    start, cpu = time.perf_counter(), time.process_time()
    dropped = work()
    said = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu, "dropped": dropped}
    print(json.dumps(said | {"texts": len(texts), "bytes": sum(len(t.encode()) for t in texts)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
