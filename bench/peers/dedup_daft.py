"""Daft's MinHash as a peer: JSONL in, kept rows as Parquet out, as a user of Daft 0.7 writes it.

    python dedup_daft.py IN.jsonl ... OUT_FOLDER

112 values of 5-word shingles in 14 bands of 8. Rows that share a band are duplicates, of duplicates too: nothing is
verified, and nothing says which row stayed. Prints {"dropped", "seconds"}.
"""

import json
import sys
import time

import daft
from daft import col
from daft.functions import monotonically_increasing_id

begin = time.perf_counter()
*paths, out = sys.argv[1:]
rows = daft.read_json(paths).with_column("row", monotonically_increasing_id())
plain = col("text").normalize(remove_punct=True, lowercase=True, nfd_unicode=True, white_space=True)
values = plain.minhash(num_hashes=112, ngram_size=5, seed=42, hash_function="xxhash")
bands = rows.select("row", values.chunk(8).alias("band")).with_column("number", daft.lit(list(range(14))))
groups = bands.explode("band", "number").groupby("number", "band").agg(col("row").list_agg().alias("rows"))
parents: dict[int, int] = {}


def first_of(row: int) -> int:
    """The first row that this one is a duplicate of, through others (union-find)."""
    while parents.setdefault(row, row) != row:
        parents[row] = row = parents[parents[row]]
    return row


for members in groups.where(col("rows").list_count() > 1).select("rows").to_pydict()["rows"]:
    least = min(map(first_of, members))
    for member in members:
        parents[first_of(member)] = least
dropped = [row for row in parents if first_of(row) != row]
kept = rows.join(daft.from_pydict({"row": dropped}), on="row", how="anti") if dropped else rows
kept.write_parquet(out)
print(json.dumps({"dropped": len(dropped), "seconds": time.perf_counter() - begin}))
